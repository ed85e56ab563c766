"""Small changes of statistics, kernels and measures, each of which some test should notice.

    python bench/mutants.py [--n 40] [--seed 0] [--rooms stats kernels measures] [--only MODULE]

Takes a sample of all places that can be changed (a comparison, an operator, a constant, a `not`),
changes one at a time in a copy of the sources, and runs the tests that import the module. A change
that no test notices is printed as it is in the source: it needs a test, or a reason.
"""

from __future__ import annotations

import ast
import functools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import corpora

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fabula"
_TIMEOUT_S = 900
_COMPARED = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="),
}  # fmt: skip
_OPERATORS = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "*"),
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    path: Path
    line: int
    start: int
    end: int
    new: str
    """In place of the bytes from `start` to `end` of the file."""

    def applied(self, data: bytes) -> bytes:
        return data[: self.start] + self.new.encode() + data[self.end :]

    def shown(self, data: bytes) -> str:
        where = self.path.relative_to(SOURCE.parent)
        before = data.decode().splitlines()[self.line - 1].strip()
        after = self.applied(data).decode().splitlines()[self.line - 1].strip()
        return f"{where}:{self.line}\n    - {before}\n    + {after}"


def mutants_of(path: Path) -> Iterator[Mutant]:
    data = path.read_bytes()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def begin(node: ast.expr) -> int:
        return starts[node.lineno - 1] + node.col_offset

    def end(node: ast.expr) -> int:
        return starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)

    for node in ast.walk(ast.parse(data)):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from _between(
                path, data, end(node.left), begin(node.comparators[0]), node.lineno,
                _COMPARED.get(type(node.ops[0])),
            )  # fmt: skip
        elif isinstance(node, ast.BinOp):
            pair = _OPERATORS.get(type(node.op))
            if not any(isinstance(side, ast.Constant | ast.JoinedStr)
                       and not isinstance(getattr(side, "value", ""), int | float)
                       for side in (node.left, node.right)):  # fmt: skip
                yield from _between(
                    path, data, end(node.left), begin(node.right), node.lineno, pair
                )
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield Mutant(path, node.lineno, begin(node), end(node), repr(node.value + 1))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield Mutant(path, node.lineno, begin(node), begin(node.operand), "")


def _between(
    path: Path, data: bytes, start: int, end: int, line: int, pair: tuple[str, str] | None
) -> Iterator[Mutant]:
    """The operator that stands between two operands, if it is there alone."""
    if pair is None:
        return
    found = re.search(
        rb"(?<![<>=!*/])" + re.escape(pair[0].encode()) + rb"(?![=*/])", data[start:end]
    )
    if found is not None:
        line += data[start : start + found.start()].count(b"\n")
        yield Mutant(path, line, start + found.start(), start + found.end(), pair[1])


def tests_of(path: Path) -> list[str]:
    """The test files that name the module, those of its own room first, five at most.

    Where none does, those that name a module which imports it.
    """
    found = _naming(path, ROOT / "tests", "test_*.py")
    if not found:
        users = _naming(path, SOURCE, "*.py")
        found = [test for user in users[:4] for test in _naming(user, ROOT / "tests", "test_*.py")]
    room = path.relative_to(SOURCE).parts[0]
    found.sort(key=lambda file: file.relative_to(ROOT / "tests").parts[0] != room)
    return [str(file.relative_to(ROOT)) for file in dict.fromkeys(found)][:5]


def _naming(path: Path, folder: Path, pattern: str) -> list[Path]:
    """The files of a folder that name a module."""
    module = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
    package, name = module.rpartition(".")[::2]
    named = re.compile(
        rf"{re.escape(module)}\b|from {re.escape(package)} import[^\n(]*(\([^)]*)?\b{name}\b"
    )
    return [file for file in sorted(folder.rglob(pattern)) if named.search(_text_of(file))]


@functools.cache
def _text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def is_noticed(mutant: Mutant, tests: list[str], folder: Path) -> bool:
    """Whether the tests fail with the change; also where they do not end."""
    place = folder / "fabula" / mutant.path.relative_to(SOURCE)
    sound = place.read_bytes()
    place.write_bytes(mutant.applied(sound))
    path = os.pathsep.join((str(folder), str(ROOT)))
    words = [
        "-x",
        "-q",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        "-o",
        f"pythonpath={ROOT} {ROOT}/bench",
    ]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words, "-m", "not browser and not ray", *tests],
            capture_output=True, cwd=ROOT, timeout=_TIMEOUT_S, check=False,
            env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return True
    finally:
        place.write_bytes(sound)
    return done.returncode != 0


def main() -> None:
    options = corpora.options(
        __doc__, n=40, seed=0, rooms={"nargs": "*", "default": ["stats", "kernels", "measures"]},
        only=("", "a module by its path, as stats/compare.py"),
    )  # fmt: skip
    files = [file for room in options.rooms for file in sorted((SOURCE / room).rglob("*.py"))]
    files = [file for file in files if options.only in str(file.relative_to(SOURCE))]
    tests = {file: tests_of(file) for file in files}
    places = [mutant for file in files for mutant in mutants_of(file) if tests[file]]
    untested = [str(file.relative_to(SOURCE)) for file in files if not tests[file]]
    print(f"{len(places):,} places in {len(files)} files; no test imports {', '.join(untested)}")
    if corpora.SMOKE:
        return
    chosen = random.Random(options.seed).sample(places, min(options.n, len(places)))
    n_noticed = 0
    with tempfile.TemporaryDirectory(prefix="fabula-mutants-") as folder:
        shutil.copytree(
            SOURCE, Path(folder, "fabula"), ignore=shutil.ignore_patterns("__pycache__")
        )
        for number, mutant in enumerate(chosen, 1):
            noticed = is_noticed(mutant, tests[mutant.path], Path(folder))
            n_noticed += noticed
            if not noticed:
                print(f"not noticed: {mutant.shown(mutant.path.read_bytes())}", flush=True)
            print(f"{number} of {len(chosen)}: {n_noticed} noticed", flush=True)


if __name__ == "__main__":
    main()
