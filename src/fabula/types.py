"""The words everybody uses: documents, spans, rubrics, measurements, estimates, signatures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from fabula import __version__
from fabula.scales import Scale

__all__ = [
    "PARTS",
    "Aggregate",
    "Document",
    "Estimate",
    "Item",
    "Measurement",
    "Part",
    "Rubric",
    "Scale",
    "Signature",
    "Span",
    "by_rater",
    "newer_version",
]


Part = Literal["originality", "fluency", "profile", "lines", "verdicts", "feedback"]
"""A part of a report, by the instrument that says it."""
PARTS: tuple[Part, ...] = ("originality", "fluency", "profile", "lines", "verdicts", "feedback")
"""In the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Document:
    """A text and what is known about it. Offsets everywhere are into `text` as it stands."""

    id: str
    text: str
    author: str | None = None
    prompt_id: str | None = None
    meta: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def title(self) -> str:
        """As its file names it, else its id."""
        return str(self.meta.get("title") or self.id)


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a document: half-open, in characters."""

    document_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Signature:
    """All that decides a number, as a short string (the idea is sacrebleu's).

    >>> str(Signature.of("originality", L="5-12", case="fold"))
    'originality|L:5-12|case:fold'
    """

    name: str
    parts: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, name: str, **parts: str) -> Signature:
        return cls(name, tuple(parts.items()))

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Read back what `str` wrote."""
        name, *parts = text.split("|")
        return cls(name, tuple((key, value) for key, _, value in (p.partition(":") for p in parts)))

    def __str__(self) -> str:
        return "|".join([self.name, *(f"{key}:{value}" for key, value in self.parts)])

    def differences(self, other: Signature) -> list[str]:
        """The parts in which two signatures differ, each as `key: mine | theirs`.

        A name before `@` is a label for people; what comes after it decides.
        """
        mine = {"instrument": self.name, **dict(self.parts)}
        theirs = {"instrument": other.name, **dict(other.parts)}
        keys = [*mine, *(key for key in theirs if key not in mine)]
        return [
            f"{key}: {mine.get(key, 'absent')} | {theirs.get(key, 'absent')}"
            for key in keys
            if _decisive(mine.get(key)) != _decisive(theirs.get(key))
        ]


def by_rater(measurements: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    """What each rater says, in the order in which raters and measurements come."""
    found: dict[str, list[Measurement]] = {}
    for one in measurements:
        found.setdefault(one.rater, []).append(one)
    return found


def newer_version(signature: object) -> str | None:
    """The version of Fabula that a signature names, where it is newer than this one."""
    found = re.search(r"\|v:(\d+(?:\.\d+)*)", signature) if isinstance(signature, str) else None
    if found is None or _numbers(found[1]) <= _numbers(__version__):
        return None
    return found[1]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def _decisive(value: str | None) -> str | None:
    return None if value is None else value.rpartition("@")[2]


@dataclass(frozen=True, slots=True)
class Item:
    """One question of a rubric. `index` is its number in the published instrument."""

    id: str
    index: int
    title: str
    question: str
    dimension: str = ""
    background: str = ""
    paraphrases: tuple[str, ...] = ()
    """The question in other words, to see how far an answer depends on the wording."""
    list_first: str = ""
    """What to list before deciding, for those who reason before they judge."""
    scale: Scale = Scale()
    show_if: str = ""
    """Asked only where this holds of earlier answers, as in `sanity == 'Yes' and not short`."""
    reveals: str = ""
    """What is shown from this item on and not before, such as `original`."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """How the answers to a rubric become one number.

    `count`: how many items were answered with `counts`. `mean`: the mean of the numbers.
    `none`: they do not. A document that lacks an answer has no aggregate.
    """

    rule: Literal["count", "mean", "none"] = "none"
    counts: str = "Yes"
    title: str = ""


@dataclass(frozen=True, slots=True)
class Rubric:
    """Items that people and models answer alike. `digest` changes with any word of it."""

    id: str
    version: str
    title: str
    items: tuple[Item, ...]
    citation: str = ""
    aggregate: Aggregate = Aggregate()
    unit: Literal["story", "group", "text", "feedback"] = "story"
    facts: tuple[str, ...] = ()
    """What conditions may name besides items: fields that are known of a document."""
    wording: str = ""
    digest: str = ""

    @property
    def key(self) -> str:
        """How signatures name it: `ttcw-1@3f9c1a2b`; the digest after `@` decides."""
        return f"{self.id}-{self.version}@{self.digest}"

    def item(self, id: str) -> Item:  # noqa: A002 (an item's own word)
        """The item of this id. Raises `KeyError`."""
        return next((item for item in self.items if item.id == id), None) or _no_item(self, id)


def _no_item(rubric: Rubric, item: str) -> Item:
    raise KeyError(f"rubric {rubric.id} has no item {item}")


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one rater (a measure, a model or a person) says of one document on one item.

    `value` is None exactly when `missing_reason` says why: missing is never zero.
    """

    document_id: str
    rubric: str
    item: str
    rater: str
    value: float | str | None
    missing_reason: str | None
    evidence: tuple[Span, ...]
    rationale: str | None
    signature: str
    details: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """What else decided the value: probabilities, repeated answers, a missing answer's text."""

    def __post_init__(self) -> None:
        if (self.value is None) != (self.missing_reason is not None):
            raise ValueError("a measurement has either a value or a reason for having none")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic of n measurements, with the ends of its interval (None where there is none)."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str
    signature: str
    n_units: int | None = None
    """Independent units (texts, stories, chapters) that the interval is over; None where the
    statistic is not of any."""
