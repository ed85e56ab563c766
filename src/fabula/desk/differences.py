"""What changed between two versions: words and numbers."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fabula.web import visible

# A word with the following space, so that a changed phrase is one change.
_TOKEN = re.compile(r"\w+\s*|[^\w\s]+\s*|\s+")
_MAX_TOKENS = 6_000
# Longer stretches would take long, and nobody reads them word by word.


@dataclass(frozen=True, slots=True)
class Changed:
    """A stretch of a version. `kind` is `same`, `gone` (in the earlier) or `new` (in the later)."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class NumberPair:
    """A number in two versions, as displayed. `note` says why two are not comparable."""

    title: str
    before: str
    after: str
    change: str
    note: str = ""

    @property
    def has_moved(self) -> bool:
        """Whether it differs as displayed, or the comparison is impossible."""
        return self.change != "same"


def changed_words(before: str, after: str) -> tuple[list[Changed], list[Changed]]:
    """Both versions split where they differ: by lines, and within changed lines by words."""
    old: list[Changed] = []
    new: list[Changed] = []
    a, b = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for is_same, left, right in _compared(a, b):
        n_tokens = len(_TOKEN.findall(left)) + len(_TOKEN.findall(right))
        if is_same or not left or not right or n_tokens > _MAX_TOKENS:
            _add(old, new, is_same, left, right)
            continue
        for same, x, y in _compared(_TOKEN.findall(left), _TOKEN.findall(right)):
            _add(old, new, same, x, y)
    return old, new


def _compared(a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[bool, str, str]]:
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    for what, a1, a2, b1, b2 in matcher.get_opcodes():
        yield what == "equal", "".join(a[a1:a2]), "".join(b[b1:b2])


def _add(old: list[Changed], new: list[Changed], is_same: bool, left: str, right: str) -> None:
    if left:
        old.append(Changed("same" if is_same else "gone", visible(left)))
    if right:
        new.append(Changed("same" if is_same else "new", visible(right)))


def number_pairs(
    before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]
) -> Iterator[NumberPair]:
    """The numbers of both, in the order of the later one."""
    old = {one["key"]: one for one in before}
    for one in after:
        other = old.get(one["key"])
        if other is None:
            continue
        x, y = other["value"], one["value"]
        change, note = "", ""
        if other["signature"] != one["signature"]:
            note = "measured differently, so they cannot be compared"
        elif _shown(x, one) == _shown(y, one):
            change = "same"
        elif x is not None and y is not None:
            change = ("+" if y > x else "−") + format(abs(y - x), one["form"])
        yield NumberPair(one["title"], _shown(x, one), _shown(y, one), change, note)


def _shown(value: float | None, number: dict[str, Any]) -> str:
    return "missing" if value is None else format(value, number["form"])
