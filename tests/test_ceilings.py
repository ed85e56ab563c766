"""How large the project may be. The ceilings in `ceilings.toml` only fall.

Who makes it smaller runs `python -m tests.test_ceilings`, which lowers them to what is there.
"""

import ast
import dataclasses
import importlib
import pkgutil
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
import tomli_w

import fabula
from fabula.cli.main import cli
from fabula.cli.notices import common_options
from fabula.core.settings import Settings
from tests.cli.test_derived import commands as tree

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fabula"
CEILINGS = Path(__file__).with_name("ceilings.toml")
MANUAL = "README.md", "CHANGELOG.md", "docs/*.md"
LONG_FUNCTION = 80
"""Lines. A function that tells a whole flow fits into them."""


def n_lines(file: Path) -> int:
    return file.read_text(encoding="utf-8").count("\n")


def commands() -> list[click.Command]:
    return [
        command
        for _, command in tree(cli)
        if not isinstance(command, click.Group) or command.invoke_without_command
    ]


def n_options() -> int:
    shared = {option.opts[-1] for option in common_options()}
    return sum(
        isinstance(param, click.Option) and not param.hidden and param.opts[-1] not in shared
        for command in commands()
        for param in command.params
    )


def settings_classes(kind: type = Settings) -> Iterator[type]:
    for below in kind.__subclasses__():
        if below.__module__.startswith("fabula."):  # and not one of a test
            yield below
        yield from settings_classes(below)


def n_settings() -> int:
    """Fields, each where it is declared."""
    for module in pkgutil.walk_packages(fabula.__path__, "fabula."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    # A dataclass with slots is made twice; the first stays among the subclasses until it is freed.
    fields = {
        (kind.__module__, kind.__qualname__, field.name)
        for kind in settings_classes()
        if dataclasses.is_dataclass(kind)
        for field in dataclasses.fields(kind)
        if "fabula" in field.metadata and field.name in kind.__annotations__
    }
    return len(fields)


@cache
def counts() -> dict[str, int]:
    files = sorted(SOURCE.rglob("*.py"))
    found: Counter[str] = Counter()
    classes: Counter[str] = Counter()
    for file in files:
        room = file.relative_to(SOURCE).with_suffix("").parts[0]
        found["lines of src"] += n_lines(file)
        found[f"lines of src/{room}"] += n_lines(file)
        tree = ast.parse(file.read_text(encoding="utf-8"))
        classes.update(
            node.name
            for node in tree.body
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        )
        found[f"functions over {LONG_FUNCTION} lines"] += sum(
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and (node.end_lineno or 0) - node.lineno >= LONG_FUNCTION
            for node in ast.walk(tree)
        )
    found["public class names used twice"] = sum(n > 1 for n in classes.values())
    found["files of src"] = len(files)
    found["lines of tests"] = sum(map(n_lines, (ROOT / "tests").rglob("*.py")))
    found["lines of bench"] = sum(map(n_lines, (ROOT / "bench").rglob("*.py")))
    found["commands"] = len(commands())
    found["options placed on commands"] = n_options()
    found["settings"] = n_settings()
    found["names of the Python face"] = len(fabula.__all__)
    texts = [page.read_text(encoding="utf-8") for name in MANUAL for page in ROOT.glob(name)]
    found["words of the manual"] = sum(len(re.findall(r"\S+", text)) for text in texts)
    return dict(found)


def ceilings() -> dict[str, int]:
    return tomllib.loads(CEILINGS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(ceilings()))
def test_nothing_grows_above_its_ceiling(name: str):
    assert counts().get(name, 0) <= ceilings()[name]


def test_each_room_has_a_ceiling():
    assert counts().keys() <= ceilings().keys()


def lower() -> None:
    """Write the ceilings that can fall."""
    found, known = counts(), ceilings()
    lowered = {name: min(n, known.get(name, n)) for name, n in sorted(found.items())}
    CEILINGS.write_text(tomli_w.dumps(lowered), encoding="utf-8")


if __name__ == "__main__":
    lower()
