"""A report's parts: the results of each instrument for a text, and how pages and files show them.

An instrument that a report always has lies in its room with a module `part`, whose `PARTS` hold
one object a part, and with a template; both are found there, and no list names them. Registered
instruments (`fabula.core.instruments`) are parts like these. Tables, pages, files, groups and the
sentences for a paper iterate over `parts_of`; `review/reviewer.py` runs the instruments.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fabula.core import __version__
from fabula.core.errors import explain
from fabula.core.instruments import Figure, Instrument, own_parts
from fabula.core.types import Document, Measurement, Signature
from fabula.show.norms import comparable, strip
from fabula.show.page import Borrowed, Listed, Note
from fabula.show.sheet import Block
from fabula.stats.norms import GroupBook, GroupNumbers
from fabula.text.chapters import line_of, where_of
from fabula.text.emphasis import unmarked
from fabula.text.words import UNITS, count_words

Values = dict[str, float | None]
FindingKey = tuple[str, int, int]
"""A finding's kind and place."""
_MAX_QUOTED_CHARS = 300
_AROUND_CHARS = 40
_MAX_ALONE = 2
_NUMBERS = ("No", *(unit.capitalize() for unit in UNITS))


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An instrument that did not run, or did not finish."""

    part: str
    reason: str
    remedy: str
    """How to enable it; commands are in backticks."""
    is_failure: bool = False
    """It was requested and failed."""


@dataclass(frozen=True, slots=True)
class TextReview:
    """All results for one text."""

    document: Document
    results: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """By the part's id, each of the part's own type; absent if it did not run, or has none."""

    def having(self, part: str, result: Any) -> TextReview:
        """The same with a part's result."""
        return replace(self, results={**self.results, part: result})

    def _repr_html_(self) -> str:
        from fabula.web import measured_lines, notebook_table

        return notebook_table(self.document.id, measured_lines(self.measurements()))

    def measurements(self) -> list[Measurement]:
        """All results as measurements: those of Fabula's own parts, then those of instruments."""
        own = {part.id: part for part in own_parts()}
        names = [*own, *(name for name in self.results if name not in own)]
        return [
            m
            for name in names
            if name in self.results
            for m in own.get(name, _UNKNOWN).measurements(self.results[name], self.document)
        ]


@dataclass(frozen=True, slots=True)
class Review:
    """All results for some texts."""

    texts: tuple[TextReview, ...]
    left_out: tuple[LeftOut, ...]
    groups: GroupBook
    size: str = ""
    """The size and age of the reference, for display."""
    remarks: tuple[str, ...] = ()
    """What a reader of the numbers should know."""
    signatures: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """What determined the numbers of each part, by its id."""
    of_all: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """What is known of the texts together, by the part's id."""
    instruments: tuple[Instrument, ...] = ()
    """Those besides Fabula's own parts: registered ones, and those named in the settings."""

    def measurements(self) -> list[Measurement]:
        return [m for text in self.texts for m in text.measurements()]

    def groups_of(self, part: str) -> Sequence[GroupNumbers]:
        """The groups that were measured in the same way."""
        signature = self.signatures.get(part, "")
        return self.groups.find(signature).groups if signature else ()


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a text. `item` is its name among measurements."""

    key: str
    title: str
    form: str
    part: str
    item: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A place to look at, half-open in characters, and why."""

    kind: str
    """`passage`, `near`, `point`, or a kind of note on lines."""
    title: str
    start: int
    end: int
    line: int
    why: str
    words: str
    """The text at its place, truncated if it is long."""
    where: str = field(default="", compare=False)
    """Its chapter, or its line, or both; empty if the source shows neither."""
    around: tuple[str, str] = field(default=("", ""), compare=False)
    """The text before and after, unless `words` and `where` are enough to find it."""
    number: int = field(default=0, compare=False)
    """Its number among those of its instrument, from 1, as shown on the page; 0 if unknown."""

    @property
    def key(self) -> FindingKey:
        """What tells it from the other findings of its text."""
        return self.kind, self.start, self.end


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence on the first screen, and the part of the report that it is about."""

    sentence: str
    about: str
    first: Finding | None = None
    """The first of the findings that it counts."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What a part marks in the text."""

    borrowed: Sequence[Borrowed] = ()
    rows: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    """For a borrowed passage the row of its source."""
    notes: Sequence[Note] = ()
    listed: Sequence[Listed] = ()


def finding_at(
    text: TextReview, kind: str, title: str, place: tuple[int, int], why: str, number: int
) -> Finding:
    whole, (start, end) = text.document.text, place
    words = " ".join(unmarked(whole, start, end)[:_MAX_QUOTED_CHARS].split())
    line, where = line_of(whole, start), where_of(text.document, start)
    around = around_of(text.document, start, end)
    return Finding(
        kind, title, start, end, line, why, words, where=where, around=around, number=number
    )


def around_of(document: Document, start: int, end: int) -> tuple[str, str]:
    """The text before and after a place, up to the paragraph's ends, cut between words.

    Empty for a place of more than two words that has a line or a chapter.
    """
    text = document.text
    if len(text[start:end].split()) > _MAX_ALONE and where_of(document, start):
        return "", ""
    low, high = max(0, start - _AROUND_CHARS), end + _AROUND_CHARS
    before = text[low:start].rpartition("\n\n")[2]
    after = text[end:high].partition("\n\n")[0]
    opens = closes = ""
    if low and len(before) == _AROUND_CHARS:
        opens, before = "… ", before.partition(" ")[2]
    if high < len(text) and len(after) == _AROUND_CHARS:
        closes, after = " …", after.rpartition(" ")[0]
    before, after = (
        unmarked(text, start - len(before), start),
        unmarked(text, end, end + len(after)),
    )
    return opens + before.replace("\n", " "), after.replace("\n", " ") + closes


class ReportPart:
    """A part of a report. `id` is its name in settings and signatures, `title` on pages."""

    id: str
    title: str
    order = 0
    """Its place among the parts in tables and files."""
    page_order = 0
    """Its place on the page."""
    template: str
    """Its macros, below `src/fabula`: `section(view, id, h)` shows it for one text; `contents`,
    `kpi`, `notices`, `beside`, `below`, `key` and `of_all` are optional."""
    style: str | None = None
    """Its style sheet, next to the template."""
    has_groups = True
    """Whether its numbers can be those of a reference group."""
    asks_model = False
    """Whether it comes from language models; these parts come after the measured ones."""
    findings: Sequence[str] = ()
    """The kinds of findings that it has."""
    colour = "of-line"
    """The CSS class of its findings."""
    fading: Mapping[str, float] = MappingProxyType({})
    """By kind, the weight of each further finding relative to the one before it."""

    def measurements(self, result: Any, document: Document) -> Sequence[Measurement]:
        """A text's result as measurements."""
        return list(result.measurements())

    def group_measurements(self, text: TextReview) -> Sequence[Measurement]:
        """What a reference group stores besides the measurements."""
        return ()

    def numbers(self, review: Review) -> Sequence[Number]:
        """The numbers that it can have for a text."""
        return ()

    def values(self, text: TextReview, review: Review) -> Values:
        """Its numbers for a text by key: None if missing, absent if it did not run."""
        return {}

    def compared(self, text: TextReview) -> Mapping[str, tuple[str, float | None]]:
        """By name, the items and values that JSON places among the reference groups."""
        return {}

    def content(self, text: TextReview) -> Mapping[str, Any]:
        """Its content for a text, as in JSON."""
        return {}

    def content_of_all(self, review: Review) -> Mapping[str, Any]:
        """Its content for all texts together, as in JSON."""
        return {}

    def blocks(self, review: Review) -> Sequence[Block]:
        """What the terminal shows after the numbers."""
        return ()

    def sheets(self, review: Review) -> Sequence[Block]:
        """The tables for files, besides the numbers."""
        return ()

    def leads(self, review: Review) -> bool:
        """Whether what is known of the texts together comes before all else."""
        return False

    def weighed(self, text: TextReview) -> Iterable[list[tuple[float, Finding]]]:
        """The findings of each kind, the most important first, with their weights."""
        return ()

    def without(self, text: TextReview, hidden: Collection[FindingKey]) -> TextReview:
        """The text without these of its findings; its numbers stay."""
        return text

    def said(self, text: TextReview) -> Iterable[Said]:
        """Its sentences on the first screen."""
        return ()

    def view(self, number: int, text: TextReview, review: Review) -> Any:
        """What its template shows for the text, of this number on the page; None for nothing."""
        return None

    def view_of_all(self, review: Review, n_linked: int) -> Any:
        """What its template shows for all texts together; the first `n_linked` have a link."""
        return None

    def marks(self, view: Any) -> Marks:
        """What the text shows of its view."""
        return Marks()

    def anchor(self, number: int, finding: Finding, view: Any) -> str:
        """Where a finding is marked in the text of this number; empty if it is not."""
        return f"l{number}-{finding.number}"

    def models(self, review: Review) -> Sequence[str]:
        """The models whose answers it shows."""
        return ()

    def methods_of(self, review: Review) -> str:
        """What was done, for the methods section of a paper."""
        raise NotImplementedError

    def references_of(self, review: Review) -> Sequence[str]:
        """BibTeX of the sources of `methods_of`."""
        return ()

    def decided(self, review: Review) -> dict[str, str]:
        """The parts of its signature; if models have one each, of the first."""
        return dict(Signature.parse(review.signatures[self.id].split("\n")[0]).parts)


class NumbersPart(ReportPart):
    """A part whose result for a text has its numbers as attributes, and a row for JSON."""

    metrics: Sequence[tuple[str, str, str]] = ()
    """Of its numbers: the name, which is the result's own too, the title, the form."""

    def numbers(self, review: Review) -> Sequence[Number]:
        return [Number(key, title, form, self.id, key) for key, title, form in self.metrics]

    def values(self, text: TextReview, review: Review) -> Values:
        result = text.results.get(self.id)
        return {} if result is None else {key: getattr(result, key) for key, _, _ in self.metrics}

    def compared(self, text: TextReview) -> Mapping[str, tuple[str, float | None]]:
        result = text.results.get(self.id)
        return {} if result is None else {k: (k, getattr(result, k)) for k, _, _ in self.metrics}

    def content(self, text: TextReview) -> Mapping[str, Any]:
        return {self.id: self.row_of(text)} if self.id in text.results else {}

    def row_of(self, text: TextReview) -> dict[str, Any]:
        """The result as plain values."""
        row: dict[str, Any] = text.results[self.id].to_row()
        return row


class MeasuredPart(ReportPart):
    """An instrument as a part: its results for a text are a sequence of measurements."""

    order, page_order = 90, 60
    template = "show/templates/instrument.html.j2"
    figures: Sequence[Figure] = ()
    citation = ""

    @property
    def methods(self) -> str:
        """As of `Instrument`."""
        raise NotImplementedError

    def measurements(self, result: Any, document: Document) -> Sequence[Measurement]:
        return list(result)

    def numbers(self, review: Review) -> Sequence[Number]:
        return [
            Number(f"{self.id}.{figure.item}", figure.title, figure.form, self.id, figure.item)
            for figure in self.figures
        ]

    def values(self, text: TextReview, review: Review) -> Values:
        return {
            f"{self.id}.{m.item}": None if isinstance(m.value, str) else m.value
            for m in text.results.get(self.id, ())
        }

    def compared(self, text: TextReview) -> Mapping[str, tuple[str, float | None]]:
        return {
            f"{self.id}.{m.item}": (m.item, float(m.value))
            for m in text.results.get(self.id, ())
            if isinstance(m.value, int | float)
        }

    def said(self, text: TextReview) -> Iterable[Said]:
        for measurement in text.results.get(self.id, ()):
            listed = measurement.details.get("findings")
            for sentence in listed if isinstance(listed, list | tuple) else ():
                yield Said(str(sentence), self.id)

    def view(self, number: int, text: TextReview, review: Review) -> Any:
        """Its figures among groups, and the places it names."""
        if self.id not in text.results:
            return None
        figures = {figure.item: figure for figure in self.figures}
        groups, rows, places = review.groups_of(self.id), [], []
        n_words = count_words(text.document.text)
        for measurement in text.results[self.id]:
            figure = figures.get(measurement.item, Figure(measurement.item, measurement.item))
            value, like = measurement.value, comparable(groups, measurement.item, n_words)
            numeric = None if isinstance(value, str) else value
            rows.append(
                {
                    "title": figure.title,
                    "explained": figure.explained,
                    "value": str(value) if numeric is None else format(numeric, figure.form),
                    "missing": explain(measurement.missing_reason) if value is None else "",
                    "strip": None if numeric is None else strip(like, measurement.item, numeric),
                }
            )
            quoted = [text.document.text[span.start : span.end] for span in measurement.evidence]
            if quoted or measurement.rationale:
                places.append({"quoted": quoted, "text": measurement.rationale or figure.title})
        return {"id": self.id, "title": self.title, "figures": rows, "places": places}

    def methods_of(self, review: Review) -> str:
        return self.methods

    def references_of(self, review: Review) -> Sequence[str]:
        return (self.citation,) if self.citation else ()


_UNKNOWN = MeasuredPart()


class _Registered(MeasuredPart):
    """An instrument of another package."""

    def __init__(self, instrument: Instrument) -> None:
        self.id, self.title = instrument.id, instrument.title
        self.figures, self.citation = instrument.figures, instrument.citation
        self._instrument = instrument

    @property
    def methods(self) -> str:
        return self._instrument.methods


def parts_of(review: Review) -> list[ReportPart]:
    """Everything that this report may have: Fabula's own parts, then the instruments."""
    instruments = (i if isinstance(i, MeasuredPart) else _Registered(i) for i in review.instruments)
    return [*own_parts(), *instruments]


def title_of(part: str, review: Review) -> str:
    """The title of a part of the report; its id if it is unknown."""
    return next((p.title for p in parts_of(review) if p.id == part), part)


def part_of_finding(kind: str) -> ReportPart:
    """The part that has this kind of finding. Raises `StopIteration` for an unknown kind."""
    part: ReportPart = next(part for part in own_parts() if kind in part.findings)
    return part


def numbers_of_review(review: Review) -> tuple[list[Number], list[Values]]:
    """The numbers that at least one text has, and each text's values, including judges' scores.

    What was requested and is missing is None.
    """
    parts = sorted(parts_of(review), key=lambda part: part.asks_model)
    rows = [
        {key: value for part in parts for key, value in part.values(text, review).items()}
        for text in review.texts
    ]
    keys = {key for row in rows for key in row}
    return [n for part in parts for n in part.numbers(review) if n.key in keys], rows


def share_below(
    review: Review, text: TextReview, part: str, item: str, value: float
) -> Mapping[str, float]:
    """For each comparable group, the share that is below a text's value."""
    n_words = count_words(text.document.text)
    return {
        group.group: group.items[item].share_below(value)
        for group in comparable(review.groups_of(part), item, n_words)
        if item in group.items
    }


def methods_of(review: Review) -> list[str]:
    """The paragraphs for a paper: what was measured in these texts, and how."""
    n = len(review.texts)
    texts = "one text was" if n == 1 else f"{n:,} texts were"
    first = f"With Fabula {__version__}, {texts} measured as follows."
    return [first, *(part.methods_of(review) for part in _measured(review))]


def bibtex_of(review: Review) -> str:
    """The references of `methods_of`."""
    entries = [entry for part in _measured(review) for entry in part.references_of(review)]
    return "\n\n".join(dict.fromkeys(entries))


def _measured(review: Review) -> list[ReportPart]:
    return [part for part in parts_of(review) if part.id in review.signatures]


@cache
def _bibliography() -> Mapping[str, str]:
    text = Path(__file__).with_name("references.bib").read_text(encoding="utf-8")
    return {re.split("[{,]", entry)[1]: entry for entry in text.rstrip().split("\n\n")}


def papers(*keys: str) -> list[str]:
    """Entries of `references.bib`."""
    return [_bibliography()[key] for key in keys]


def name_of(rater: str) -> str:
    """A model's name without its settings."""
    return rater.partition("@")[0]


def joined(names: Sequence[str]) -> str:
    """`a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def counted(n: int, what: str) -> str:
    """`Three passages`."""
    return f"{number_word(n)} {plural(what, n)}"


def number_word(n: int) -> str:
    """`Three`: in words up to twelve."""
    return _NUMBERS[n] if n < len(_NUMBERS) else f"{n:,}"


def plural(what: str, n: int) -> str:
    """`points of style`, unless it is one."""
    noun, of, rest = what.partition(" of ")
    return what if n == 1 else f"{noun}s{of}{rest}"
