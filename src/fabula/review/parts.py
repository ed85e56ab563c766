"""The results of all instruments on the same texts, side by side: a review, and its parts.

A part of a report has one class, with everything about it as a whole: tables, pages, files, groups
and the sentences for a paper iterate over `parts_of`. A registered instrument is a part like
Fabula's own; `review/reviewer.py` runs them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from fabula.core import __version__
from fabula.core.instruments import PARTS, Instrument
from fabula.core.store import measurement_row
from fabula.core.types import Document, Measurement, Rubric, Signature
from fabula.linguistic.profile import PROFILE_METRICS, Profile
from fabula.novelty.measure import Originality
from fabula.novelty.scores import to_row
from fabula.stats.norms import GroupBook, GroupKind, GroupNumbers, measure_group
from fabula.style.lines import LINE_KINDS
from fabula.text import TextSettings

if TYPE_CHECKING:
    from fabula.feedback.advising import Advice
    from fabula.groups.diversity import Together
    from fabula.judging.summary import JudgeSummary
    from fabula.raters.corrected_means import Correction
    from fabula.style.fluency import Fluency
    from fabula.style.lines import LineReview

NOTES_PER_1000 = 10
"""Marked notes on lines per 1,000 words."""
_TTCW = "ttcw"
Values = dict[str, float | None]
_BY_LENGTH = frozenset(("type_token_ratio", "unique_trigram_ratio", "repeated_share"))
"""Numbers that depend on length so much that only texts of similar length are comparable."""
_LIKE = 2
"""Range of similar length: from half of a group's first decile to twice its last."""
SENTENCE_ITEM = "sentence_bits_per_word"
"""The surprisal of every sentence of the group; other items have one value per text."""
_MIN_SENTENCE_WORDS = 3
"""Minimum length in words: one or two say little, as a cry surprises more than a strange sentence.
"""


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
    """All results for one text; None and empty for instruments that did not run."""

    document: Document
    originality: Originality | None = None
    fluency: Fluency | None = None
    profile: Profile | None = None
    lines: LineReview | None = None
    verdicts: tuple[Measurement, ...] = ()
    advice: tuple[Advice, ...] = ()
    others: Mapping[str, tuple[Measurement, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    """Results of registered instruments, by their ids."""

    def _repr_html_(self) -> str:
        from fabula.web import measured_lines, notebook_table

        return notebook_table(self.document.id, measured_lines(self.measurements()))

    def measurements(self) -> list[Measurement]:
        """All results as measurements."""
        results: list[Measurement] = []
        for result in (self.originality, self.fluency, self.profile):
            results += [] if result is None else result.measurements()
        results += [] if self.lines is None else self.lines.measurements(self.document.id)
        results += self.verdicts
        for advice in self.advice:
            results += advice.measurements()
        for measured in self.others.values():
            results += measured
        return results


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
    rubric: Rubric | None = None
    judges: tuple[JudgeSummary, ...] = ()
    people: tuple[Measurement, ...] = ()
    """People's labels of some of the texts."""
    corrected: Mapping[str, Correction] = field(default_factory=lambda: MappingProxyType({}))
    """By judge, what these people would have said of all texts; empty without labels."""
    signatures: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """What determined the numbers of each instrument, by its name."""
    together: Together | None = None
    """What several texts have in common."""
    instruments: tuple[Instrument, ...] = ()
    """Those besides Fabula's own parts: registered ones, and those named in the settings."""

    def found_elsewhere(self) -> dict[str, float | None]:
        """For a class, by id, the share of a text's words that originality found in other sources.

        None if it is missing; empty if only the runs shared between texts were searched.
        """
        parts = dict(Signature.parse(self.signatures.get("originality", "originality")).parts)
        is_more = parts.get("match") == "near" or "+" in parts.get("ref", "")
        if self.together is None or not self.together.is_class or not is_more:
            return {}
        shares = {}
        for text in self.texts:
            levels = {} if text.originality is None else text.originality.uniqueness
            lowest = next(iter(levels.values()), None)
            shares[text.document.id] = None if lowest is None else 1 - lowest
        return shares

    def measurements(self) -> list[Measurement]:
        return [m for text in self.texts for m in text.measurements()]


def _papers(*keys: str) -> list[str]:
    """Entries of `references.bib`."""
    text = files("fabula.review").joinpath("references.bib").read_text(encoding="utf-8")
    entries = {re.split("[{,]", entry)[1]: entry for entry in text.rstrip().split("\n\n")}
    return [entries[key] for key in keys]


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a text. `item` is its name among measurements."""

    key: str
    title: str
    form: str
    part: str
    item: str


class ReportPart:
    """A part of a report. `id` is its name in settings and signatures, `title` on pages."""

    id: str
    title: str
    has_groups = True
    """Whether its numbers can be those of a reference group."""
    asks_model = False
    """Whether it comes from language models; these parts come after the measured ones."""
    findings: Sequence[str] = ()
    """The kinds of findings that it has."""

    def numbers(self, review: Review) -> Sequence[Number]:
        """The numbers that it can have for a text."""
        return ()

    def values(self, text: TextReview, review: Review) -> Values:
        """Its numbers for a text by key: None if missing, absent if it did not run."""
        return {}

    def content(self, text: TextReview) -> Mapping[str, Any]:
        """Its content for a text, as in JSON."""
        return {}

    def methods(self, review: Review) -> str:
        """What was done, for the methods section of a paper."""
        raise NotImplementedError

    def references(self, review: Review) -> Sequence[str]:
        """BibTeX of the sources of `methods`."""
        return ()

    def _decided(self, review: Review) -> dict[str, str]:
        """The parts of its signature; if models have one each, of the first."""
        return dict(Signature.parse(review.signatures[self.id].split("\n")[0]).parts)


class _Measured(ReportPart):
    """A part whose result for a text is in the field of its name."""

    metrics: Sequence[tuple[str, str, str]] = ()
    """Of its numbers: the name, which is the result's own too, the title, the form."""

    def numbers(self, review: Review) -> Sequence[Number]:
        return [Number(key, title, form, self.id, key) for key, title, form in self.metrics]

    def values(self, text: TextReview, review: Review) -> Values:
        result = getattr(text, self.id)
        return {} if result is None else {key: getattr(result, key) for key, _, _ in self.metrics}

    def content(self, text: TextReview) -> Mapping[str, Any]:
        return {} if getattr(text, self.id) is None else {self.id: self.row_of(text)}

    def row_of(self, text: TextReview) -> dict[str, Any]:
        """The result as plain values."""
        row: dict[str, Any] = getattr(text, self.id).to_row()
        return row


class _Originality(_Measured):
    id, title = "originality", "Originality"
    findings = ("passage", "near")
    metrics = (("creativity_index", "Creativity Index", ".3f"),)

    def row_of(self, text: TextReview) -> dict[str, Any]:
        assert text.originality is not None
        return to_row(text.originality)

    def methods(self, review: Review) -> str:
        parts = self._decided(review)
        levels = parts.get("L", "")
        kind = "verbatim" if parts.get("match") == "verbatim" else "verbatim or near-verbatim"
        return (
            "Originality is the Creativity Index (Lu et al. 2024): the sum over L = "
            f"{levels.replace('-', ' to ')} of the share of words outside any run of L or more "
            f"words found ({kind}) in the reference corpus ({review.size}; "
            f"{parts.get('ref', '')}). Case was "
            f"{'folded' if parts.get('case') == 'fold' else 'kept'}, punctuation "
            f"{'dropped' if parts.get('punct') == 'drop' else 'kept'}. Missing scores were left "
            "out, never counted as 0."
        )

    def references(self, review: Review) -> Sequence[str]:
        return _papers("lu2024salieri")


class _Fluency(_Measured):
    id, title = "fluency", "Fluency"
    metrics = (("bits_per_word", "Surprisal, bits a word", ".2f"),)

    def methods(self, review: Review) -> str:
        parts = self._decided(review)
        model = parts.get("model", "a language model").partition("@")[0]
        return (
            f"Fluency is the surprisal of the words under {model}, in bits per word, with each "
            f"sentence read after the preceding text, up to {parts.get('ctx', 'some')} tokens."
        )


class _Profile(_Measured):
    id, title = "profile", "Linguistic profile"
    metrics = tuple((metric.item, metric.title, metric.form) for metric in PROFILE_METRICS)

    def values(self, text: TextReview, review: Review) -> Values:
        return {} if text.profile is None else dict(text.profile.values)

    def methods(self, review: Review) -> str:
        parts = self._decided(review)
        return (
            f"The linguistic profile follows Roemmele, Gordon and Swanson (2017), with MTLD "
            f"(McCarthy and Jarvis 2010), parsed by {parts.get('pipe', 'spaCy')}; word frequencies "
            f"are those of {parts.get('freq', 'wordfreq').partition(',')[0]}."
        )

    def references(self, review: Review) -> Sequence[str]:
        return _papers("roemmele2017evaluating", "mccarthy2010mtld")


class _Lines(_Measured):
    id, title = "lines", "Notes on lines"
    has_groups = False
    findings = tuple(LINE_KINDS)

    def row_of(self, text: TextReview) -> dict[str, Any]:
        assert text.lines is not None
        return text.lines.to_row(text.document, NOTES_PER_1000)

    def methods(self, review: Review) -> str:
        parts = self._decided(review)
        return (
            "Notes on lines (repetitions, names in two spellings, errors, stock phrases, matters "
            f"of style) follow Fabula's rules, version {parts.get('rules', '')}; errors of grammar "
            f"and spelling are those found by {parts.get('grammar', 'no checker')}."
        )


class _Verdicts(ReportPart):
    id, title = "verdicts", "Tests of creative writing"
    has_groups = False
    asks_model = True

    def numbers(self, review: Review) -> Sequence[Number]:
        rubric = review.rubric
        if rubric is None:
            return ()
        from fabula.judging.measurements import score_range

        if not score_range(rubric):
            return ()
        title = rubric.aggregate.title or "Score"
        return [
            Number(f"score {j.rater}", f"{title}, by {_name(j.rater)}", "g", self.id, "score")
            for j in review.judges
        ]

    def values(self, text: TextReview, review: Review) -> Values:
        scores = {f"score {judge.rater}": judge.scores for judge in review.judges}
        return {n.key: scores[n.key].get(text.document.id) for n in self.numbers(review)}

    def content(self, text: TextReview) -> Mapping[str, Any]:
        return {self.id: [measurement_row(verdict) for verdict in text.verdicts]}

    def methods(self, review: Review) -> str:
        rubric = review.rubric
        title = rubric.title if rubric else "the rubric"
        source = " (Chakrabarty et al. 2024)" if rubric and rubric.id == _TTCW else ""
        checked = [
            f"{_name(judge.rater)}: Cohen's kappa with experts {judge.overall_trust.shown}"
            if judge.overall_trust
            else f"{_name(judge.rater)}: {judge.unchecked}"
            for judge in review.judges
        ]
        sentence = (
            f"{_listed([_name(judge.rater) for judge in review.judges])} answered the items of the "
            f"rubric “{title}”{source}, one at a time, at temperature 0; answers without a verdict "
            f"are missing ({'; '.join(checked)})."
        )
        n_labelled = max((c.overall.n_labelled for c in review.corrected.values()), default=0)
        if n_labelled:
            sentence += (
                " What experts would have said about all texts was estimated from these answers "
                f"and their labels for {n_labelled:,} texts by prediction-powered inference "
                "(Angelopoulos et al. 2023), with 95 % intervals over texts."
            )
        return sentence

    def references(self, review: Review) -> Sequence[str]:
        is_ttcw = review.rubric is not None and review.rubric.id == _TTCW
        return _papers("chakrabarty2024art") if is_ttcw else ()


class _Feedback(ReportPart):
    id, title = "feedback", "Feedback"
    has_groups = False
    asks_model = True
    findings = ("point",)

    def content(self, text: TextReview) -> Mapping[str, Any]:
        return {"points": [measurement_row(m) for a in text.advice for m in a.measurements()]}

    def methods(self, review: Review) -> str:
        advice = [a for text in review.texts for a in text.advice]
        names = _listed(list(dict.fromkeys(_name(a.model) for a in advice)))
        times = self._decided(review).get("times", "several")
        return (
            f"Feedback was requested from {names}, {times} times for each text, after the task of "
            "Rashkin et al. (2025); points about the same place with the same meaning were "
            "joined, and points that quote words not in the text were dropped."
        )

    def references(self, review: Review) -> Sequence[str]:
        return _papers("rashkin2025help")


class _Diversity(ReportPart):
    """About several texts together: none of its numbers belongs to a single text."""

    id, title = "diversity", "Diversity"
    has_groups = False

    def methods(self, review: Review) -> str:
        return (
            "The diversity of the set was measured at equal length after Shaib et al. (2024), "
            "with jackknife intervals over texts; pairs of texts were compared by runs of six or "
            "more words in common."
        )


class _Registered(ReportPart):
    """A registered instrument, a phrase list or word ratings, as a part."""

    def __init__(self, instrument: Instrument) -> None:
        self.id, self.title = instrument.id, instrument.title
        self.instrument = instrument

    def numbers(self, review: Review) -> Sequence[Number]:
        return [
            Number(f"{self.id}.{figure.item}", figure.title, figure.form, self.id, figure.item)
            for figure in self.instrument.figures
        ]

    def values(self, text: TextReview, review: Review) -> Values:
        return {
            f"{self.id}.{m.item}": None if isinstance(m.value, str) else m.value
            for m in text.others.get(self.id, ())
        }

    def methods(self, review: Review) -> str:
        return self.instrument.methods

    def references(self, review: Review) -> Sequence[str]:
        return (self.instrument.citation,) if self.instrument.citation else ()


_OWN = {
    part.id: part()
    for part in (_Originality, _Fluency, _Profile, _Lines, _Verdicts, _Feedback, _Diversity)
}
OWN_PARTS: tuple[ReportPart, ...] = tuple(_OWN[name] for name in PARTS)
"""Fabula's own parts, in the order of the registry."""
_OF_FINDING = {kind: part.id for part in OWN_PARTS for kind in part.findings}


def parts_of(review: Review) -> list[ReportPart]:
    """Everything that this report may have: Fabula's own parts, then the instruments."""
    return [*OWN_PARTS, *map(_Registered, review.instruments)]


def methods_of(review: Review) -> list[str]:
    """The paragraphs for a paper: what was measured in these texts, and how."""
    n = len(review.texts)
    texts = "one text was" if n == 1 else f"{n:,} texts were"
    first = f"With Fabula {__version__}, {texts} measured as follows."
    return [first, *(part.methods(review) for part in _measured(review))]


def bibtex_of(review: Review) -> str:
    """The references of `methods_of`."""
    entries = [entry for part in _measured(review) for entry in part.references(review)]
    entries += _papers("angelopoulos2023ppi") if review.corrected else []
    return "\n\n".join(dict.fromkeys(entries))


def _measured(review: Review) -> list[ReportPart]:
    return [part for part in parts_of(review) if part.id in review.signatures]


def title_of(part: str, review: Review) -> str:
    """The title of a part of the report; its id if it is unknown."""
    return next((p.title for p in parts_of(review) if p.id == part), part)


def part_of_finding(kind: str) -> str:
    """The part that has this kind of finding."""
    return _OF_FINDING.get(kind, "lines")


def _name(rater: str) -> str:
    """A model's name without its settings."""
    return rater.partition("@")[0]


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


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


def comparable(
    groups: Iterable[GroupNumbers], item: str, n_words: float | None
) -> tuple[GroupNumbers, ...]:
    """The groups that a number of a text with `n_words` words can be compared with."""
    alike = []
    for group in groups:
        lengths = group.items.get("n_words")
        is_like = item not in _BY_LENGTH
        if not is_like and lengths is not None and n_words is not None:
            low, high = lengths.quantile(0.1) / _LIKE, lengths.quantile(0.9) * _LIKE
            is_like = low <= n_words <= high
        alike += [group] * is_like
    return tuple(alike)


def share_below(
    review: Review, text: TextReview, part: str, item: str, value: float
) -> Mapping[str, float]:
    """For each comparable group, the share that is below a text's value."""
    n_words = None if text.profile is None else text.profile.values["n_words"]
    return {
        group.group: group.items[item].share_below(value)
        for group in comparable(review.groups.find(review.signatures[part]).groups, item, n_words)
        if item in group.items
    }


def group_numbers(review: Review, group: str, kind: GroupKind, title: str) -> list[GroupNumbers]:
    """The distribution of every number over the texts, one entry per instrument."""
    measured = review.measurements()
    for text in review.texts:
        if text.fluency is not None:
            about = text.document.id, "fluency", SENTENCE_ITEM, "fabula"
            signature = str(text.fluency.signature)
            measured += [
                Measurement(*about, s.bits_per_word, s.missing_reason, (), None, signature)
                for s in text.fluency.sentences
                if s.n_words >= _MIN_SENTENCE_WORDS
            ]
    return measure_group(group, kind, title, measured)


def by_chapter(
    text: TextReview, chapters: Sequence[Mapping[str, Any]]
) -> list[dict[str, float | None]]:
    """Return the numbers of each chapter, given as a row of a book.

    These are its number, the share of its words in borrowed passages, and its surprise in bits per
    word. What was not measured, or is missing, is None.
    """
    places = [(int(chapter["start"]), int(chapter["end"])) for chapter in chapters]
    bits: list[float | None] = [None] * len(places)
    if text.fluency is not None:
        bits = [span.bits_per_word for span in text.fluency.of_spans(places)]
    shares: list[float | None] = [None] * len(places)
    originality = text.originality
    if originality is not None and originality.ranked is not None:
        starts = TextSettings().locate(originality.document.text).starts
        is_borrowed = np.zeros(len(starts), bool)
        for passage in originality.ranked.passages:
            for run in passage.runs:
                is_borrowed[slice(*np.searchsorted(starts, (run.span.start, run.span.end)))] = True
        parts = [is_borrowed[slice(*np.searchsorted(starts, place))] for place in places]
        shares = [float(part.mean()) if len(part) else None for part in parts]
    return [
        {"chapter": chapter["number"], "borrowed": share, "surprise": surprise}
        for chapter, share, surprise in zip(chapters, shares, bits, strict=True)
    ]
