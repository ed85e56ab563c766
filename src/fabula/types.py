"""The words everybody uses: documents, spans, measurements, estimates, signatures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

__all__ = ["Document", "Estimate", "Measurement", "Signature", "Span"]


@dataclass(frozen=True, slots=True)
class Document:
    """A text and what is known about it. Offsets everywhere are into `text` as it stands."""

    id: str
    text: str
    author: str | None = None
    prompt_id: str | None = None
    meta: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


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


def _decisive(value: str | None) -> str | None:
    return None if value is None else value.rpartition("@")[2]


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

    def __post_init__(self) -> None:
        if (self.value is None) != (self.missing_reason is not None):
            raise ValueError("a measurement has either a value or a reason for having none")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic of n measurements, with the ends of its interval (None where undefined)."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str
    signature: str
