"""The parts of a report: one class each, with everything about a part as a whole.

Tables, pages, files, groups and the sentences for a paper iterate over `parts_of`. A registered
instrument is a part like Fabula's own; `jobs/reviewer.py` runs them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabula import __version__
from fabula.instruments import SET, Instrument
from fabula.measures.line_read import LINE_KINDS
from fabula.measures.linguistic.profile import PROFILE_METRICS
from fabula.measures.scores import to_row
from fabula.review import citations
from fabula.review.findings import NOTES_PER_1000
from fabula.review.found import Review, TextReview
from fabula.store import measurement_row
from fabula.types import Signature

_TTCW = "ttcw"
Values = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a text. `item` is its name among measurements."""

    key: str
    title: str
    form: str
    part: str
    item: str


class ReportPart(ABC):
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

    @abstractmethod
    def methods(self, review: Review) -> str:
        """What was done, for the methods section of a paper."""

    def references(self, review: Review) -> Sequence[str]:
        """BibTeX of the sources of `methods`."""
        return ()

    def _decided(self, review: Review) -> dict[str, str]:
        """The parts of its signature; if models have one each, of the first."""
        return dict(Signature.parse(review.signatures[self.id].split("\n")[0]).parts)


class _Originality(ReportPart):
    id, title = "originality", "Originality"
    findings = ("passage", "near")

    def numbers(self, review: Review) -> Sequence[Number]:
        return (Number("creativity_index", "Creativity Index", ".3f", self.id, "creativity_index"),)

    def values(self, text: TextReview, review: Review) -> Values:
        one = text.originality
        return {} if one is None else {"creativity_index": one.creativity_index}

    def content(self, text: TextReview) -> Mapping[str, Any]:
        return {} if text.originality is None else {self.id: to_row(text.originality)}

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
        return (citations.SALIERI,)


class _Fluency(ReportPart):
    id, title = "fluency", "Fluency"

    def numbers(self, review: Review) -> Sequence[Number]:
        return (Number("bits_per_word", "Surprisal, bits a word", ".2f", self.id, "bits_per_word"),)

    def values(self, text: TextReview, review: Review) -> Values:
        return {} if text.fluency is None else {"bits_per_word": text.fluency.bits_per_word}

    def content(self, text: TextReview) -> Mapping[str, Any]:
        return {} if text.fluency is None else {self.id: text.fluency.to_row()}

    def methods(self, review: Review) -> str:
        parts = self._decided(review)
        model = parts.get("model", "a language model").partition("@")[0]
        return (
            f"Fluency is the surprisal of the words under {model}, in bits per word, with each "
            f"sentence read after the preceding text, up to {parts.get('ctx', 'some')} tokens."
        )


class _Profile(ReportPart):
    id, title = "profile", "Linguistic profile"

    def numbers(self, review: Review) -> Sequence[Number]:
        return [Number(one.id, one.title, one.form, self.id, one.id) for one in PROFILE_METRICS]

    def values(self, text: TextReview, review: Review) -> Values:
        return {} if text.profile is None else dict(text.profile.values)

    def content(self, text: TextReview) -> Mapping[str, Any]:
        return {} if text.profile is None else {self.id: text.profile.to_row()}

    def methods(self, review: Review) -> str:
        parts = self._decided(review)
        return (
            f"The linguistic profile follows Roemmele, Gordon and Swanson (2017), with MTLD "
            f"(McCarthy and Jarvis 2010), parsed by {parts.get('pipe', 'spaCy')}; word frequencies "
            f"are those of {parts.get('freq', 'wordfreq').partition(',')[0]}."
        )

    def references(self, review: Review) -> Sequence[str]:
        return (citations.LINGUISTIC, citations.MTLD)


class _Lines(ReportPart):
    id, title = "lines", "Notes on lines"
    has_groups = False
    findings = tuple(LINE_KINDS)

    def content(self, text: TextReview) -> Mapping[str, Any]:
        one = text.lines
        return {} if one is None else {self.id: one.to_row(text.document, NOTES_PER_1000)}

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
            Number(f"score {one.rater}", f"{title}, by {_name(one.rater)}", "g", self.id, "score")
            for one in review.judges
        ]

    def values(self, text: TextReview, review: Review) -> Values:
        scores = {f"score {one.rater}": one.scores for one in review.judges}
        return {n.key: scores[n.key].get(text.document.id) for n in self.numbers(review)}

    def content(self, text: TextReview) -> Mapping[str, Any]:
        return {self.id: [measurement_row(one) for one in text.verdicts]}

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
        said = (
            f"{_listed([_name(judge.rater) for judge in review.judges])} answered the items of the "
            f"rubric “{title}”{source}, one at a time, at temperature 0; answers without a verdict "
            f"are missing ({'; '.join(checked)})."
        )
        n_labelled = max((one.overall.n_labelled for one in review.corrected.values()), default=0)
        if n_labelled:
            said += (
                " What experts would have said about all texts was estimated from these answers "
                f"and their labels for {n_labelled:,} texts by prediction-powered inference "
                "(Angelopoulos et al. 2023), with 95 % intervals over texts."
            )
        return said

    def references(self, review: Review) -> Sequence[str]:
        is_ttcw = review.rubric is not None and review.rubric.id == _TTCW
        return (citations.TTCW,) if is_ttcw else ()


class _Feedback(ReportPart):
    id, title = "feedback", "Feedback"
    has_groups = False
    asks_model = True
    findings = ("point",)

    def content(self, text: TextReview) -> Mapping[str, Any]:
        return {"points": [measurement_row(m) for one in text.advice for m in one.measurements()]}

    def methods(self, review: Review) -> str:
        advice = [one for text in review.texts for one in text.advice]
        names = _listed(list(dict.fromkeys(_name(one.model) for one in advice)))
        times = self._decided(review).get("times", "several")
        return (
            f"Feedback was requested from {names}, {times} times for each text, after the task of "
            "Rashkin et al. (2025); points about the same place with the same meaning were "
            "joined, and points that quote words not in the text were dropped."
        )

    def references(self, review: Review) -> Sequence[str]:
        return (citations.FEEDBACK,)


class _Diversity(ReportPart):
    """About several texts together: none of its numbers belongs to a single text."""

    id, title = SET, "Diversity"
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
            Number(f"{self.id}.{one.item}", one.title, one.form, self.id, one.item)
            for one in self.instrument.figures
        ]

    def values(self, text: TextReview, review: Review) -> Values:
        return {
            f"{self.id}.{one.item}": None if isinstance(one.value, str) else one.value
            for one in text.others.get(self.id, ())
        }

    def methods(self, review: Review) -> str:
        return self.instrument.methods

    def references(self, review: Review) -> Sequence[str]:
        return (self.instrument.citation,) if self.instrument.citation else ()


OWN_PARTS: tuple[ReportPart, ...] = (
    _Originality(),
    _Fluency(),
    _Profile(),
    _Lines(),
    _Verdicts(),
    _Feedback(),
    _Diversity(),
)
"""Fabula's own parts, in display order."""
_OF_FINDING = {kind: part.id for part in OWN_PARTS for kind in part.findings}


def parts_of(review: Review) -> list[ReportPart]:
    """Everything that this report may have: Fabula's own parts, then the instruments."""
    return [*OWN_PARTS, *map(_Registered, review.instruments)]


def methods_of(review: Review) -> list[str]:
    """The paragraphs for a paper: what was measured in these texts, and how."""
    n = len(review.texts)
    many = "one text was" if n == 1 else f"{n:,} texts were"
    first = f"With Fabula {__version__}, {many} measured as follows."
    return [first, *(part.methods(review) for part in _measured(review))]


def bibtex_of(review: Review) -> str:
    """The references of `methods_of`."""
    found = [entry for part in _measured(review) for entry in part.references(review)]
    found += [citations.PPI] if review.corrected else []
    return "\n\n".join(dict.fromkeys(found))


def _measured(review: Review) -> list[ReportPart]:
    return [part for part in parts_of(review) if part.id in review.signatures]


def title_of(part: str, review: Review) -> str:
    """The title of a part of the report; its id if it is unknown."""
    return next((one.title for one in parts_of(review) if one.id == part), part)


def part_of_finding(kind: str) -> str:
    """The part that has this kind of finding."""
    return _OF_FINDING.get(kind, "lines")


def _name(rater: str) -> str:
    """A model's name without its settings."""
    return rater.partition("@")[0]


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
