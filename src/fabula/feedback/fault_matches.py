"""Decide which answers find the fault planted in a story, by the places they point at.

An answer is parsed into points (`answer_lines`); the sentence for a text without faults is not a
point, nor is a line that only repeats the story. A point is at the places of the story that it

- quotes: words in quotation marks or emphasised, ignoring case and punctuation (`exact`);
- repeats without marks, or misquotes: four consecutive words of the story (`near`);
- counts: "the third sentence", "sentences 3 and 4", "the last sentence" (`near`).

It finds the fault if one of these places overlaps the recorded place of the change: the text that
is there now, or, where something was removed, the sentences on both sides of the gap. A changed
name is also found by a point that names both names, and a planted thing by one that names
it (`near`), since the records guarantee that these words occur nowhere else.

A place does not show what is said about it. So each answer also has its *chance*: the probability
that spans as long as its own, each placed at random in the story, would overlap the place; and a
judge may read the answers instead.

How well is measured for any subset of the answers that could be parsed (a model, a prompt, a kind
of fault), by ratios of pooled counts with intervals over stories; all answers about one story, in
whatever form, are one unit:

- *recall*: the share of answers on changed stories that find the planted fault; *exact*: by
  quotation alone; *chance*: the expected value if each answer pointed at random places; *at least*:
  recall if every missing answer counted as a miss;
- *false alarms*: the share of answers on unchanged stories that name a fault. Such a story may have
  faults of its own, so this is an upper bound;
- *precision*: the share of answers naming a fault, on changed stories or not, that find the planted
  one; so it depends on how many of the stories were changed;
- *F1*: the harmonic mean of recall and precision, which is a ratio of counts too.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from fabula.core import __version__
from fabula.core.errors import InputError
from fabula.core.types import Contrast, Estimate, Signature
from fabula.feedback.answer_lines import QuotableText, answer_lines, quotations_in
from fabula.feedback.eliciting import without_perfect
from fabula.feedback.scores import DIMENSIONS, POOLED, checked_row
from fabula.feedback.written_faults import apply_edits, edits_between
from fabula.stats.agreement import Confusion, Statistic, cohen, difference
from fabula.stats.contrasts import adjusted, permutation_f, pooled_estimate
from fabula.text.feedback_pieces import feedback_id, why_missing
from fabula.text.sentences import overlaps
from fabula.text.words import ORDINALS

Span = tuple[int, int]
_Row = Mapping[str, Any]
_RUN = 4
_MIN_WORDS = 2
_ECHO = 0.9
"""A point of which this share repeats the story, without marks, says nothing about it."""
_ORDINAL = "|".join([*ORDINALS, "last", "final", "opening", "closing", r"\d{1,2}(?:st|nd|rd|th)"])
_BY_ORDINAL = re.compile(
    rf"(?i)\b((?:{_ORDINAL})(?:(?:,| and| or|, and|, or) (?:the )?(?:{_ORDINAL}))*) sentences?\b"
)
_BY_NUMBER = re.compile(r"\bsentences? #?(\d{1,2}(?:(?:, | and | or | to |[-–])\d{1,2})*)\b", re.I)


@dataclass(frozen=True, slots=True)
class Answer:
    """What an answer points at. `found` is None, and `chance` NaN, if nothing was planted."""

    id: str
    question: str
    """The story, prompt and number of examples: the same for all models."""
    labels: Mapping[str, str]
    """Labels by dimension."""
    story: str
    names_fault: bool
    """Whether it makes at least one point."""
    found: bool | None
    rule: str | None = None
    """The rule by which it found the fault: exact or near."""
    chance: float = math.nan
    n_points: int = 0


@dataclass(frozen=True, slots=True)
class Findings:
    """All answers as one reader interprets them, and those that could not be parsed."""

    by: str
    """The reader: `quotation`, or the name of a judge."""
    answers: Sequence[Answer]
    missing: Sequence[tuple[Mapping[str, str], str]]
    """The labels of missing answers, each with the reason."""
    signature: str

    def as_judged(
        self, by: str, verdicts: Mapping[str, Mapping[str, str | None]], signature: str
    ) -> Findings:
        """The same answers as a judge reads them: by answer, its verdicts on `asks` and `found`.

        An answer without points was not given to the judge. One without a verdict is missing.
        """
        kept, missing = [], list(self.missing)
        for answer in self.answers:
            answered = verdicts.get(answer.id, {})
            asks = answered.get("asks") if answer.names_fault else "No"
            found = answered.get("found") if asks == "Yes" else "No"
            if asks is None or (answer.found is not None and found is None):
                missing.append((answer.labels, "no_verdict"))
                continue
            is_found = None if answer.found is None else found == "Yes"
            judged = replace(answer, names_fault=asks == "Yes", found=is_found)
            kept.append(replace(judged, rule=None, chance=math.nan))
        return Findings(by, kept, missing, signature)


def read_findings(
    rows: Iterable[_Row],
    sentences_of: Callable[[str], Sequence[Span]],
    *,
    pipeline: str = "",
    meter: Callable[[int], None] = lambda _: None,
) -> Findings:
    """Parse the rows of `feedback elicit`, with the places each points at.

    `sentences_of` splits a story into sentences, by the language `pipeline` of this name. A refusal
    is missing, and so is an answer without points that does not call the text perfect (`no_point`).
    Raises `InputError` if a row lacks a field, or its record is of another text.
    """
    stories: dict[str, tuple[Sequence[Span], Callable[[str], list[_Point]]]] = {}
    answers: list[Answer] = []
    missing: list[tuple[Mapping[str, str], str]] = []
    signatures: dict[str, None] = {}
    for number, row in enumerate(rows, 1):
        checked_row(row, number)
        labels = {name: str(row[name]) for name in DIMENSIONS}
        signatures[str(row.get("signature", ""))] = None
        meter(1)
        reason = why_missing(row)
        if reason is not None:
            missing.append((labels, reason))
            continue
        text = row["story"]
        if text not in stories:
            sentences = sentences_of(text)
            stories[text] = sentences, _pointer(text, sentences)
        sentences, points_of = stories[text]
        remarks, says_perfect = without_perfect(str(row["feedback"]))
        points = points_of(remarks)
        if not points and not says_perfect:
            # Nothing of it can be parsed.
            missing.append((labels, "no_point"))
            continue
        ids, about = (feedback_id(row), str(row["id"])), str(row["story_id"])
        answer = Answer(*ids, labels, about, bool(points), None, n_points=len(points))
        if row["method"] != "original":
            change = row.get("change") or {}
            places = fault_places(text, row.get("original"), change, sentences, f"answer {number}")
            planted = ["thing"] if "thing" in change else ["old", "new"]
            names = [change.get(key) for key in planted]
            rules: set[str] = set()
            for words, quoted, spans in points:
                if any(overlaps(span, places) for span in quoted):
                    rules.add("exact")
                elif all(
                    isinstance(name, str) and name.casefold() in words for name in names
                ) or any(overlaps(span, places) for span in spans):
                    rules.add("near")
            at = [span for _, _, spans in points for span in spans]
            chance = _chance(_merged(at), places, len(text))
            rule = min(rules, default=None)
            answer = replace(answer, found=bool(rules), rule=rule, chance=chance)
        answers.append(answer)
    signature = Signature.of(
        "feedback-find", match="near@1", run=str(_RUN), sentences=pipeline, v=__version__
    )
    return Findings("quotation", answers, missing, f"{signature}|of:{'+'.join(signatures)}")


_Point = tuple[frozenset[str], list[Span], list[Span]]
"""The words of a point; the spans of the story that it quotes; and all at which it points: by
quotation, by runs of words, and by sentence number."""


def _pointer(story: str, sentences: Sequence[Span]) -> Callable[[str], list[_Point]]:
    """Finds the points of answers about a story; lines that only repeat it are not points."""
    draft = QuotableText.of(story)
    story_words: list[str] = []
    spans: list[Span] = []
    for token in re.finditer(r"[^ ]+", draft.folded):
        story_words.append(token[0].strip("'"))
        spans.append((draft.places[token.start()], draft.places[token.end() - 1] + 1))
    starts: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for k in range(len(story_words) - _RUN + 1):
        starts[tuple(story_words[k : k + _RUN])].append(k)

    def points_of(remarks: str) -> list[_Point]:
        points = []
        for item in answer_lines(remarks, draft).items:
            words = [word.strip("'") for word in QuotableText.of(item.text).folded.split()]
            if len(words) < _MIN_WORDS:
                continue
            quotations = quotations_in(item.text, item.emphasised, draft)
            quoted = [place for _, _, places in quotations for place in places]
            runs: list[Span] = []
            repeated: set[int] = set()
            for k in range(len(words) - _RUN + 1):
                for at in starts.get(tuple(words[k : k + _RUN]), ()):
                    runs.append((spans[at][0], spans[at + _RUN - 1][1]))
                    repeated.update(range(k, k + _RUN))
            # The sentences that are named by number.
            numbers: list[int] = []
            for match in _BY_ORDINAL.finditer(item.text):
                for word in re.findall(_ORDINAL, match[1].lower()):
                    if word in ORDINALS:
                        numbers.append(ORDINALS.index(word))
                    elif word[0].isdigit():
                        numbers.append(int(re.sub(r"\D", "", word)) - 1)
                    else:
                        numbers.append(0 if word == "opening" else len(sentences) - 1)
            for match in _BY_NUMBER.finditer(item.text):
                numbered = [int(digits) - 1 for digits in re.findall(r"\d+", match[1])]
                is_range = len(numbered) == 2 and re.search(r"to|[-–]", match[1])
                numbers += range(numbered[0], numbered[1] + 1) if is_range else numbered
            if quoted or len(repeated) < _ECHO * len(words):
                counted = [sentences[k] for k in numbers if 0 <= k < len(sentences)]
                points.append((frozenset(words), quoted, [*quoted, *runs, *counted]))
        return points

    return points_of


def fault_places(
    story: str, original: object, change: _Row, sentences: Sequence[Span], where: str = ""
) -> list[Span]:
    """Where the change is in the story, half-open in characters; by comparison without a record.

    Raises `InputError` if the record is of another text, or there is neither record nor original.
    """
    edits = change.get("edits")
    if not edits:
        if not isinstance(original, str):
            raise InputError(f"{where}: no recorded change and no original of a corrupted story")
        _, edits = apply_edits(original, edits_between(original, story))
    places: list[Span] = []
    for edit in edits:
        start, end = edit["text"]
        if story[start:end] != edit["is"]:
            raise InputError(f"{where}: the recorded change belongs to another text")
        if story[start:end].strip():
            places.append((start, end))
        elif str(edit["was"]).strip():
            # The sentence around a gap, or those on both sides of it.
            around = [span for span in sentences if span[0] < start < span[1]]
            before = [span for span in sentences if span[1] <= start][-1:]
            after = [span for span in sentences if span[0] >= start][:1]
            places += around or [*before, *after]
    return _merged(places)


def _merged(spans: Iterable[Span]) -> list[Span]:
    """The same characters as ordered spans that do not overlap."""
    merged: list[Span] = []
    for start, end in sorted(set(spans)):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _chance(spans: Sequence[Span], places: Sequence[Span], n_chars: int) -> float:
    """The probability that such spans, each placed at random in the text, overlap a place."""
    missed = 1.0
    for start, end in spans:
        last = n_chars - (end - start)
        # A span overlaps a place if it begins after `a - length` and before the place's end.
        begins = ((max(0, a - (end - start) + 1), min(last, b - 1) + 1) for a, b in places)
        hits = _merged((first, stop) for first, stop in begins if first < stop)
        missed *= 1 - sum(len(range(*hit)) for hit in hits) / (last + 1)
    return 1 - missed


_Counts = tuple[float, float]
_COUNTED: dict[str, Callable[[Answer], _Counts]] = {
    "recall": lambda a: (a.found is True, a.found is not None),
    "recall_exact": lambda a: (a.rule == "exact", a.chance == a.chance),
    "chance": lambda a: (a.chance, 1) if a.chance == a.chance else (0, 0),
    "false_alarms": lambda a: (a.found is None and a.names_fault, a.found is None),
    "precision": lambda a: (a.found is True, a.names_fault),
    "f1": lambda a: (2 * (a.found is True), a.names_fault + (a.found is not None)),
}
"""By measure, what an answer adds to the numerator and to the denominator."""


@dataclass(frozen=True, slots=True)
class FindScore:
    """The measures of one subset; `where` names the dimensions that are fixed."""

    where: Mapping[str, str]
    n_changed: int
    n_original: int
    missing: Mapping[str, int]
    """Answers that could not be parsed, by reason."""
    n_points: float | None
    """The mean number of points per answer."""
    values: Mapping[str, Estimate]


def score_findings(findings: Findings, crosses: Sequence[Sequence[str]]) -> Iterator[FindScore]:
    """The measures of every subset by each cross of dimensions, as the module's docstring says."""
    for names in crosses:
        groups: dict[tuple[str, ...], list[Answer]] = {}
        missing: dict[tuple[str, ...], list[tuple[bool, str]]] = {}
        for answer in findings.answers:
            groups.setdefault(tuple(answer.labels[name] for name in names), []).append(answer)
        for labels, reason in findings.missing:
            key = tuple(labels[name] for name in names)
            missing.setdefault(key, []).append((labels["method"] != "original", reason))
        for key in sorted(groups.keys() | missing.keys()):
            lacking, answers = missing.get(key, []), groups.get(key, [])
            n_changed = sum(answer.found is not None for answer in answers)
            columns = {name: [count(a) for a in answers] for name, count in _COUNTED.items()}
            stories, signature = [answer.story for answer in answers], findings.signature
            values = {name: _ratio(column, stories, signature) for name, column in columns.items()}
            n = values["recall"].n + sum(is_changed for is_changed, _ in lacking)
            least = math.fsum(part for part, _ in columns["recall"]) / n if n else None
            method = "recall where a missing answer is a miss"
            values["recall_at_least"] = Estimate(least, None, None, n, method, signature, None)
            where = dict(zip(names, key, strict=True))
            reasons = dict(sorted(Counter(reason for _, reason in lacking).items()))
            points = math.fsum(a.n_points for a in answers) / len(answers) if answers else None
            yield FindScore(where, n_changed, len(answers) - n_changed, reasons, points, values)


def _ratio(counts: Sequence[_Counts], stories: Sequence[str], signature: str) -> Estimate:
    parts, wholes = np.array(counts, np.float64).reshape(-1, 2).T
    n = int((wholes > 0).sum())
    return pooled_estimate(
        parts, wholes, stories, method=POOLED, signature=signature, n=n, is_share=True
    )


def compare_models(findings: Findings, *, seed: int = 0) -> list[Contrast]:
    """Compare every pair of models in `recall` and `false_alarms`, paired by question: story,
    change, prompt and examples.

    p is from a permutation test within stories, equally weighted; corrected over the pairs of a
    measure. `n_answers`: the questions that both answered.
    """
    by_model: dict[str, dict[str, Answer]] = {}
    for answer in findings.answers:
        by_model.setdefault(answer.labels["model"], {})[answer.question] = answer
    contrasts: list[Contrast] = []
    for measure in ("recall", "false_alarms"):
        counted, pairs = _COUNTED[measure], []
        for a, b in combinations(by_model, 2):
            shared = [
                (answer, by_model[b][question])
                for question, answer in by_model[a].items()
                if question in by_model[b] and counted(answer)[1]
            ]
            if not shared:
                continue
            stories = [answer.story for answer, _ in shared]
            sides = [[counted(pair[k]) for pair in shared] for k in (0, 1)]
            rows = [np.array(side, np.float64) for side in sides]
            ratios = [
                Statistic(row, lambda sums, _: (sums[..., 0], sums[..., 1]), row[:0], len(row))
                for row in rows
            ]
            method = f"difference of {measure} over stories"
            both = [(ratio, stories) for ratio in ratios]
            apart = difference(*both, method=method, signature=findings.signature)
            clustered: list[dict[str, list[float]]] = [{}, {}]
            for group, side in zip(clustered, sides, strict=True):
                for story, (part, _) in zip(stories, side, strict=True):
                    group.setdefault(story, []).append(float(part))
            p = permutation_f(clustered, seed=seed).p
            about = {"n_answers": len(shared)}
            pairs.append(Contrast(measure, a, b, apart, p, test="permutation", details=about))
        contrasts += adjusted(pairs)
    return contrasts


@dataclass(frozen=True, slots=True)
class ReaderAccuracy:
    """Agreement of a reader of answers with people, on the answers that both read."""

    by: str
    item: str
    n: int
    n_yes: int
    """Answers that people labelled Yes."""
    accuracy: Estimate
    sensitivity: float | None
    specificity: float | None
    kappa: float | None
    n_unread: int
    """Answers that people labelled and this reader could not parse."""


def reader_accuracy(
    findings: Findings, labels: Mapping[str, Mapping[str, bool]]
) -> Iterator[ReaderAccuracy]:
    """Yield the accuracy per item (`found`, `asks`), against people's labels by item and answer."""
    answers = {answer.id: answer for answer in findings.answers}
    for item, labelled in labels.items():
        verdicts, truth, stories = [], [], []
        n_unread = 0
        for id_, is_so in labelled.items():
            mine = answers.get(id_)
            verdict = None if mine is None else mine.found if item == "found" else mine.names_fault
            if verdict is None:
                n_unread += mine is None
                continue
            verdicts.append(float(verdict))
            truth.append(float(is_so))
            stories.append(answers[id_].story)
        a, b = np.array(verdicts, np.float64), np.array(truth, np.float64)
        table = Confusion.of(a, b)
        hits = [(x == y, 1) for x, y in zip(verdicts, truth, strict=True)]
        accuracy = _ratio(hits, stories, findings.signature)
        rates = table.recall, table.specificity, cohen(a, b).value
        counts = len(verdicts), int(b.sum())
        yield ReaderAccuracy(findings.by, item, *counts, accuracy, *rates, n_unread)
