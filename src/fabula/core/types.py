"""Common types: documents, spans, rubrics, measurements, estimates, signatures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal

from fabula.core import __version__
from fabula.core.errors import InputError, MixError
from fabula.core.scales import Scale


@dataclass(frozen=True, slots=True)
class Document:
    """A text and its metadata. All offsets refer to `text` exactly as it is."""

    id: str
    text: str
    author: str | None = None
    prompt_id: str | None = None
    meta: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def title(self) -> str:
        """The title from its file, or its id."""
        return str(self.meta.get("title") or self.id)

    @property
    def fields(self) -> dict[str, Any]:
        """What it may be grouped by: its author and prompt, if it has them, and its metadata."""
        known = {"author": self.author, "prompt_id": self.prompt_id}
        fields = {name: value for name, value in known.items() if value is not None}
        return fields | {k: v for k, v in self.meta.items() if k != "italic_places"}

    def beside(self, row: Mapping[str, Any], taken: Iterable[str] = ()) -> dict[str, Any]:
        """A row of results with the text's own fields; those whose names it has get `input_`."""
        names = {*row, *taken}
        return dict(row) | {f"input_{k}" if k in names else k: v for k, v in self.fields.items()}

    def group(self, by: str) -> str:
        """The value of the field `by`. Raises `InputError` if the text has none."""
        value = self.fields.get(by)
        if value is None:
            has = ", ".join(sorted(name for name, v in self.fields.items() if v is not None))
            raise InputError(
                f"{self.id}: no field {by!r} to group by; its fields are {has or 'none'}"
            )
        return str(value)


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of characters of a document."""

    document_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Signature:
    """Everything that determines a number, as a short string (an idea of sacrebleu).

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
        """Parse the output of `str`."""
        name, *parts = text.split("|")
        return cls(name, tuple((key, value) for key, _, value in (p.partition(":") for p in parts)))

    def __str__(self) -> str:
        return "|".join([self.name, *(f"{key}:{value}" for key, value in self.parts)])

    def differences(self, other: Signature) -> list[str]:
        """The parts in which two signatures differ, each as `key: mine | theirs`.

        A name before `@` is a label for people; only what follows it is compared.
        """
        mine = {"instrument": self.name, **dict(self.parts)}
        theirs = {"instrument": other.name, **dict(other.parts)}
        keys = [*mine, *(key for key in theirs if key not in mine)]
        return [
            f"{key}: {mine.get(key, 'absent')} | {theirs.get(key, 'absent')}"
            for key in keys
            if _decisive(mine.get(key)) != _decisive(theirs.get(key))
        ]

    def check_same(self, found: str, what: str, remedy: str) -> None:
        """Raise `MixError` if what has the signature `found` cannot be compared with this."""
        if differences := self.differences(Signature.parse(found)):
            raise MixError(
                f"{what}: not measured in the same way ({'; '.join(differences)}); {remedy}"
            )


def by_rater(measurements: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    """Measurements grouped by rater, in order of appearance."""
    groups: dict[str, list[Measurement]] = {}
    for measurement in measurements:
        groups.setdefault(measurement.rater, []).append(measurement)
    return groups


def newer_version(signature: object) -> str | None:
    """The version of Fabula that a signature names, if it is newer than this one."""
    return _newer(signature) if isinstance(signature, str) else None


@lru_cache(maxsize=1024)
def _newer(signature: str) -> str | None:
    """Cached: the rows of a file have the same one, millions of times."""
    match = re.search(r"\|v:(\d+(?:\.\d+)*)", signature)
    return match[1] if match and _numbers(match[1]) > _numbers(__version__) else None


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
    """The question in other words, to test how much an answer depends on the wording."""
    list_first: str = ""
    """What to list before deciding, for raters who reason before they judge."""
    scale: Scale = Scale()
    show_if: str = ""
    """Ask only if this holds for earlier answers, as in `sanity == 'Yes' and not short`."""
    reveals: str = ""
    """What is shown from this item on but not before, such as `original`."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """How the answers to a rubric are aggregated into one number.

    `count`: how many items were answered with `counts`. `mean`: the mean of the numbers.
    `none`: no aggregate. A document with a missing answer has no aggregate.
    """

    rule: Literal["count", "mean", "none"] = "none"
    counts: str = "Yes"
    title: str = ""


@dataclass(frozen=True, slots=True)
class Rubric:
    """Items that people and models answer alike. Any change of wording changes `digest`."""

    id: str
    version: str
    title: str
    items: tuple[Item, ...]
    citation: str = ""
    aggregate: Aggregate = Aggregate()
    unit: Literal["story", "group", "text", "feedback"] = "story"
    facts: tuple[str, ...] = ()
    """What conditions may refer to besides items: fields of a document."""
    wording: str = ""
    digest: str = ""

    @property
    def key(self) -> str:
        """Its name in signatures: `ttcw-1@3f9c1a2b`; only the digest after `@` is compared."""
        return f"{self.id}-{self.version}@{self.digest}"

    def item(self, id: str) -> Item:  # noqa: A002 (an item's own word)
        """The item with this id. Raises `KeyError`."""
        for item in self.items:
            if item.id == id:
                return item
        raise KeyError(f"rubric {self.id} has no item {id}")


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one rater (a measure, a model or a person) says of one document on one item.

    `value` is None exactly when `missing_reason` is set: missing is never zero.
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
    """What else determined the value: probabilities, repeated answers, a missing answer's text."""

    def __post_init__(self) -> None:
        if (self.value is None) != (self.missing_reason is not None):
            raise ValueError("a measurement has either a value or a reason for having none")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic of n measurements, with the bounds of its interval (None if there is none)."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str
    signature: str
    n_units: int | None = None
    """Independent units (texts, stories, chapters) of the interval; None if the statistic has
    none."""

    def ends(self) -> dict[str, float | None]:
        """The value and its interval, for JSON."""
        return {"value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True)
class Contrast:
    """How A differs from B in a number: the one form of what every comparison says."""

    number: str
    """What is compared: a metric, a measure, an item."""
    a: str
    b: str
    difference: Estimate
    """A - B."""
    p: float | None = None
    """Two-sided; None if it was not tested, with the `reason`."""
    p_adjusted: float | None = None
    """Corrected over all that was tested together (Holm, where nothing else is said)."""
    test: str = ""
    reason: str | None = None
    details: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """What else this comparison says, such as `superiority`, or an effect size."""

    def to_json(self) -> dict[str, Any]:
        """As plain values; each estimate with the ends of its interval."""
        return {
            "number": self.number,
            "a": self.a,
            "b": self.b,
            "difference": self.difference.ends(),
            **{
                name: value.ends() if isinstance(value, Estimate) else value
                for name, value in self.details.items()
            },
            "n": self.difference.n,
            "n_units": self.difference.n_units,
            "p": self.p,
            "p_adjusted": self.p_adjusted,
            "test": self.test,
            **({} if self.reason is None else {"reason": self.reason}),
            "signature": self.difference.signature,
        }
