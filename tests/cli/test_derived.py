"""Options derived from settings: names, defaults, earlier names, errors, and their reference."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from tests.commands import invoke

from fabula.cli.derived import Command, Option
from fabula.cli.main import cli
from fabula.cli.manual import command_reference
from fabula.core.errors import InputError
from fabula.core.settings import Between, Settings, part, setting

SOURCE = Path(__file__).parents[2] / "src" / "fabula"


@dataclass(frozen=True, slots=True)
class Inner(Settings):
    n_samples: int = setting(1, help="Times; see `out`.", unit="N", check=Between(1, 9))


@dataclass(frozen=True, slots=True)
class Job(Settings):
    names: tuple[str, ...] = setting(("a",), help="Names.", option="name")
    inner: Inner = part(Inner)
    wanted: bool | None = setting(None, help="Wanted.")
    quick: bool = setting(False, help="Quick.")
    out: Path | None = setting(None, help="File.")


seen: list[Job] = []


@click.group()
def tool() -> None:
    pass


@tool.command(cls=Command)
def work(settings: Job) -> None:
    seen.append(settings)
    if settings.quick:
        raise InputError("run.jsonl: taken; choose another `out` or more `n_samples`, not `other`")


def run(*words: str) -> Any:
    seen.clear()
    return CliRunner().invoke(tool, ["work", *words])


def test_options_become_settings_parts_included():
    assert run().exit_code == 0
    assert seen == [Job()]
    run("--name", "b", "--name", "c", "--samples", "3", "--no-wanted", "--out", "x")
    assert seen == [Job(("b", "c"), Inner(3), False, False, Path("x"))]


def test_a_value_out_of_range_is_refused_with_the_option():
    done = run("--samples", "10")
    assert done.exit_code == 2
    assert "--samples" in done.stderr
    assert "1<=x<=9" in done.stderr


def test_a_folder_that_is_a_file_is_refused_with_the_option(tmp_path: Path):
    (tmp_path / "file").touch()
    done = invoke("continuation", "train", tmp_path, "--out", tmp_path / "file", code=2)
    assert "'--out'" in done.stderr


def test_errors_and_help_name_options_where_the_layers_below_name_settings():
    error = run("--quick").exception
    assert str(error) == "run.jsonl: taken; choose another --out or more --samples, not `other`"
    assert "Times; see --out." in CliRunner().invoke(tool, ["work", "--help"]).stdout


def commands(command: click.Command, path: str = "fabula") -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, f"{path} {name}")


@pytest.mark.parametrize(("path", "command"), list(commands(cli)))
def test_every_command_is_derived_and_has_a_short_help(path: str, command: click.Command):
    assert isinstance(command, Command | type(cli))
    # Of two parameters with one name click gives one the value of the other.
    names = [param.name for param in command.params if param.name != "as_json"]
    assert len(set(names)) == len(names)
    said = command.short_help or ""
    assert path == "fabula" or (said.endswith(".") and len(said) <= 60)


def test_options_are_derived_from_settings_besides_how_a_command_speaks():
    """What a job can be told is a field of its settings, so that Python can tell it too."""
    declared = [
        f"{path} {option.opts[-1]}"
        for path, command in commands(cli)
        for option in command.params
        if isinstance(option, click.Option) and not isinstance(option, Option)
        and option.opts[-1] not in SPEAKING
    ]  # fmt: skip
    assert declared == []


SPEAKING = {"--json", "--jsonl", "--yes", "--quiet", "--verbose", "--log", "--version"}


OPTION = re.compile(r"(?<![-\w(!`])--[a-z][a-z-]+(?!\s*\()")
COMMANDS = re.compile(
    r"`[^`]*`|<code>.*?</code>|inspect (?:eval|score) .*|<!--|var\(--|--no-deps"
    r"|llama-gguf-split --merge|--max-places|--max-excluded|--num-gpus|--head\b|--token-file"
    # A whole command on a line of its own, to be copied.
    r"|\"  fabula .*"
    # Those of pip and uv.
    r"|--no-compile|--no-input|--disable-pip-version-check|--python|--quiet|--require-hashes"
    r"|--only-binary|--target|--hash"
)


def test_every_command_that_ends_prints_json_where_it_is_asked_to():
    lacking = [
        path
        for path, command in commands(cli)
        if not isinstance(command, click.Group)
        and not any("--json" in param.opts for param in command.params)
    ]
    # These serve until they are stopped.
    assert sorted(lacking) == ["fabula desk", "fabula reference serve", "fabula study serve"]


def test_layers_below_the_command_line_name_no_options_in_what_they_say():
    """An option stands there only inside a whole command; `name` is shown as an option by cli/."""
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        if file.relative_to(SOURCE).parts[0] == "cli":
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if OPTION.search(COMMANDS.sub("", line)) and "`fabula" not in line:
                found.append(f"{file.relative_to(SOURCE)}:{number}: {line.strip()}")
    assert found == []


DOCS = Path(__file__).parents[2] / "docs" / "commands.md"


def test_the_written_reference_is_that_of_these_commands():
    assert DOCS.read_text(encoding="utf-8") == command_reference(), "run `make docs`"


def test_every_command_and_option_is_in_it():
    text = command_reference()
    shared = text.partition("## Shared options")[2]
    single = {path: one for path, one in commands(cli) if not isinstance(one, click.Group)}
    assert len(single) >= 35
    for path, command in single.items():
        section = text.split(f" {path}\n", 1)[1].partition("\n## ")[0].partition("\n### ")[0]
        assert isinstance(command, Command)
        apart = [option for options in command.shared().values() for option in options]
        for option in command.params:
            if isinstance(option, click.Option):
                name = option.opts[0]
                shown = f"--set {name[2:]}" if getattr(option, "tuned", False) else name
                assert shown in (shared if option in apart else section), f"{path} {name}"
