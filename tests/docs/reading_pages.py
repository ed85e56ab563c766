"""The commands and Python blocks of the project's own pages, as a reader would copy them."""

import re
import shlex
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_SHELLS = {"console", "sh", "bash"}
_HERE = re.compile(r"<<'(\w+)'")
_WRITES = re.compile(r"--(?:out|html|plot|latex|csv)")


@dataclass(frozen=True, slots=True)
class Step:
    """Something to run, where it stands, and what the page says that it prints."""

    page: str
    line: int
    kind: Literal["command", "python"]
    text: str
    shown: tuple[str, ...] = ()
    """The lines of output on the page; `...` stands for any number of lines."""
    session: int = 0
    """Commands with output are one session of their own: the line where it begins; else 0."""

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
        if language == "python":
            steps.append(Step(page, first, "python", "\n".join(lines) + "\n"))
        elif language in _SHELLS:
            steps += _commands(page, first, lines)
    if page != "docs/commands.md":
        return steps
    steps = [replace(step, text=step.text.strip()) for step in steps]
    return [one for one in steps if re.match(r"fabula (?!.*\[OPTIONS\])", one.text, re.DOTALL)]


def _blocks(text: str) -> list[tuple[str, int, list[str]]]:
    """Each code block: its language (`sh` where it is indented), its first line, its lines."""
    blocks: list[tuple[str, int, list[str]]] = []
    fence: str | None = None
    is_open = False
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        if fence is not None:
            if line.strip() == "```":
                fence = None
            else:
                blocks[-1][2].append(line)
        elif line.startswith("```"):
            fence = line[3:].strip()
            blocks.append((fence, number + 1, []))
            is_open = False
        elif line.startswith("    ") and line.strip() and (is_open or not before.strip()):
            if not is_open:
                blocks.append(("sh", number, []))
            blocks[-1][2].append(line[4:])
            is_open = True
        elif line.strip():
            is_open = False
        elif is_open:
            blocks[-1][2].append("")
        before = line
    return blocks


def _commands(page: str, first: int, lines: list[str]) -> list[Step]:
    """The commands of a block: all its lines, or those after `$ `, with what they print."""
    has_output = any(line.startswith("$ ") for line in lines)
    found: list[Step] = []
    goes_on = False
    ends_at = ""
    for number, line in enumerate(lines, first):
        if goes_on or ends_at:
            found[-1] = replace(found[-1], text=f"{found[-1].text}\n{line}")
            if ends_at:
                ends_at = "" if line == ends_at else ends_at
                continue
        elif has_output and not line.startswith("$ "):
            assert found, f"{page}:{number}: output before the first command"
            if line.strip():
                found[-1] = replace(found[-1], shown=(*found[-1].shown, line))
            continue
        elif line.strip():
            session = first if has_output else 0
            found.append(Step(page, number, "command", line.removeprefix("$ "), session=session))
        goes_on = line.endswith("\\") and bool(line.strip())
        if here := _HERE.search(line):
            ends_at = here[1]
    return found


def expected_files(command: str) -> list[str]:
    """What a command says that it writes."""
    words = shlex.split(command.replace("\\\n", " "), comments=True)
    return [after for word, after in pairwise(words) if _WRITES.fullmatch(word) or word == ">"]
