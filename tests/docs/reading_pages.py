"""The commands of the project's own pages, as a reader would copy them."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK = re.compile(
    r"^```(\S*)[^\n]*\n(.*?)^```$|(?<=\n\n)((?: {4}[^\n]*\S[^\n]*\n\n*)+)", re.DOTALL | re.MULTILINE
)
_HERE = re.compile(r"<<'(\w+)'")
_WRITES = re.compile(r"--(?:out|html|plot|latex|csv)")
_NOT_RUN = {"text", "toml", "pycon"}
"""Languages of blocks that hold no commands; the last has tests of its own."""


@dataclass(frozen=True, slots=True)
class Step:
    """A command to run, and where it stands."""

    page: str
    line: int
    text: str

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line} {self.text.splitlines()[0][:60]}"


def read_page(path: Path) -> list[Step]:
    """The steps of a page of the project, in order.

    Of the reference of commands only the examples count: its usage lines name no real files.
    """
    steps: list[Step] = []
    page = path.relative_to(ROOT).as_posix()
    for language, first, lines in _blocks(path.read_text(encoding="utf-8")):
        if language == "sh":
            steps += _commands(page, first, lines)
        else:
            assert language in _NOT_RUN or language.startswith("{"), f"{page}:{first}: {language}"
    if page != "docs/commands.md":
        return steps
    steps = [replace(step, text=step.text.strip()) for step in steps]
    return [one for one in steps if re.match(r"fabula (?!.*\[OPTIONS\])", one.text, re.DOTALL)]


def _blocks(text: str) -> Iterator[tuple[str, int, list[str]]]:
    """Each code block: its language (`sh` where it is indented), its first line, its lines."""
    for found in _BLOCK.finditer(text):
        number = 3 if found[2] is None else 2
        lines = [line[4:] if number == 3 else line for line in found[number].splitlines()]
        yield "sh" if number == 3 else found[1], text.count("\n", 0, found.start(number)) + 1, lines


def _commands(page: str, first: int, lines: list[str]) -> list[Step]:
    """Those of a block, of one line or of several."""
    found: list[Step] = []
    goes_on = False
    ends_at = ""
    for number, line in enumerate(lines, first):
        if goes_on or ends_at:
            found[-1] = replace(found[-1], text=f"{found[-1].text}\n{line}")
            if ends_at:
                ends_at = "" if line == ends_at else ends_at
                continue
        elif line.strip():
            found.append(Step(page, number, line))
        goes_on = line.endswith("\\") and bool(line.strip())
        if here := _HERE.search(line):
            ends_at = here[1]
    return found


def expected_files(command: str) -> list[str]:
    """What a command says that it writes."""
    words = shlex.split(command.replace("\\\n", " "), comments=True)
    return [after for word, after in pairwise(words) if _WRITES.fullmatch(word) or word == ">"]
