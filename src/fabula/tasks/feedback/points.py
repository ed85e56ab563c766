"""From an editor's answers to points that can be acted on: each at a place of the draft.

What several answers say is one point, and stands above what one of them said: an editor, human or
not, who says a thing once in five readings may not say it again. A point whose quotation is not in
the draft is about another text, and is dropped.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabula.models.encoder import Encoder
from fabula.text import TextSettings
from fabula.text.quotations import QuotableText, quoted_parts

__all__ = ["DROPPED", "Point", "Remark", "group_remarks", "is_same", "read_remarks"]

DROPPED = {
    "not_in_text": "quoted words that are not in the draft",
    "no_quotation": "quoted nothing of the draft",
    "no_point": "quoted the draft and said nothing of it",
    "cut": "were cut at the limit of tokens",
    "praise": "asked for no change",
}
"""Why a remark is no point, for people."""

_ITEM = re.compile(r"^\s{0,8}(?:[-*•–]|\(?\d{1,2}[.)])\s+")
_MIN_WORDS = 3
# Cosines of 24 remarks on eight faults, each put in three ways: on the same fault the median is
# 0.51 and one in ten below 0.40; on different ones 99 of 100 are below 0.38. Where two quote the
# same words, less is enough.
_NEAR = 0.45
_NEAR_HERE = 0.3


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing that one answer said, with the place that it quoted: half-open, in characters."""

    answer: int
    rank: int
    """Its place in the answer: 0 is first."""
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Point:
    """What one or more answers said. `remarks` has the most typical first."""

    remarks: tuple[Remark, ...]

    @property
    def text(self) -> str:
        return self.remarks[0].text

    @property
    def places(self) -> list[tuple[int, int]]:
        """Every place that was quoted, the most typical remark's first, none twice."""
        return list(dict.fromkeys((remark.start, remark.end) for remark in self.remarks))

    @property
    def n_said(self) -> int:
        """How many answers said it."""
        return len({remark.answer for remark in self.remarks})

    @property
    def rank(self) -> float:
        """Mean place among the points of the answers that said it."""
        first: dict[int, int] = {}
        for remark in self.remarks:
            first[remark.answer] = min(remark.rank, first.get(remark.answer, remark.rank))
        return sum(first.values()) / len(first)


def read_remarks(
    answer: str, number: int, draft: QuotableText, *, is_cut: bool = False
) -> tuple[list[Remark], Counter[str]]:
    """The remarks of an answer, and how many were dropped, by reason (`DROPPED`)."""
    remarks: list[Remark] = []
    dropped: Counter[str] = Counter()
    items = _items(answer)
    if is_cut and items and items[-1][-1] not in ".!?\"”')":
        items.pop()
        dropped["cut"] += 1
    for item in items:
        found = _place(item, draft)
        if found is None:
            dropped["not_in_text" if quoted_parts(item) else "no_quotation"] += 1
            continue
        said, start, end = found
        if len(TextSettings().words(said)) < _MIN_WORDS:
            dropped["no_point"] += 1
            continue
        remarks.append(Remark(number, len(remarks), said, start, end))
    return remarks, dropped


def _items(answer: str) -> list[str]:
    """The entries of a list, each on one line; without list marks every line is one."""
    lines = [line for line in answer.splitlines() if line.strip()]
    if not any(_ITEM.match(line) for line in lines):
        return [line.strip() for line in lines]
    items: list[str] = []
    for line in lines:
        if _ITEM.match(line):
            items.append(_ITEM.sub("", line).strip(" *_"))
        elif items:
            items[-1] += " " + line.strip()
    return [item for item in items if item]


def _place(item: str, draft: QuotableText) -> tuple[str, int, int] | None:
    """What is said, and where: the longest quotation of the item that the draft holds."""
    for start, end in quoted_parts(item):
        places = draft.find(item[start:end])
        if places:
            before, after = item[: start - 1].strip(" *_:-–—"), item[end + 1 :]
            said = after.lstrip(" *_:,.;-–—") if not before else item
            said = said.strip()
            return said[:1].upper() + said[1:], *places[0]
    return None


def group_remarks(remarks: Sequence[Remark], encoder: Encoder) -> list[Point]:
    """Remarks that say the same as one point each: what most answers say first, then by rank."""
    if not remarks:
        return []
    vectors = encoder.encode([remark.text for remark in remarks])
    groups: list[list[int]] = []
    for k, remark in enumerate(remarks):
        scores = [
            statistics.fmean(_nearness(remark, remarks[j], vectors[k], vectors[j]) for j in group)
            for group in groups
        ]
        if scores and max(scores) >= 0:
            groups[int(np.argmax(scores))].append(k)
        else:
            groups.append([k])
    points = [Point(tuple(remarks[k] for k in _typical_first(group, vectors))) for group in groups]
    return sorted(points, key=lambda point: (-point.n_said, point.rank))


def is_same(
    mine: Remark, theirs: Remark, vectors: tuple[NDArray[np.float32], NDArray[np.float32]]
) -> bool:
    """Whether two remarks say the same; `vectors` are of what they say."""
    return _nearness(mine, theirs, *vectors) >= 0


def _nearness(
    mine: Remark, theirs: Remark, a: NDArray[np.float32], b: NDArray[np.float32]
) -> float:
    """How far their cosine is above what it takes to be the same; negative where they differ."""
    overlap = mine.start < theirs.end and theirs.start < mine.end
    return float(a @ b) - (_NEAR_HERE if overlap else _NEAR)


def _typical_first(group: Sequence[int], vectors: NDArray[np.float32]) -> list[int]:
    """The group's members, the one most like all of them first; the others as they came."""
    chosen = vectors[list(group)]
    best = group[int(np.argmax(np.round(chosen @ chosen.mean(axis=0), 5)))]
    return [best, *(k for k in group if k != best)]
