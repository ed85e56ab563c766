"""The tables of "Help Me Write a Story" (Rashkin, Clark, Huot and Lapata 2025).

From the authors' released files, or from your own feedback. If the released rows carry the authors'
measures, these are averaged next to ours, which shows where ours differ from theirs.
Repetition in Table 1 is the mean of that in Table 9 (68 of 70 figures follow so): it is computed
among the answers of one model to one prompt with one number of shots, so it is here too.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError
from fabula.models.encoder import Encoder
from fabula.replicate.claims import Claim, claims_of
from fabula.replicate.story_feedback_files import (
    ERROR,
    ONE_SENTENCE,
    PAPER,
    QUESTIONS,
    RELEASED_FILES,
    read_own,
    read_released,
)
from fabula.replicate.story_feedback_ratings import (
    ORDERS,
    RATED_TABLES,
    Rated,
    Validation,
    printed_row,
    rate,
    read_rated,
    row_of_paper,
    validate_rater,
)
from fabula.stats.agreement import pearson
from fabula.tasks.feedback.answers import Tokens, bertscore, read_answers
from fabula.tasks.feedback.feedback_scores import (
    CELL,
    group_answers,
    known_values,
    repetition,
    score_answers,
)
from fabula.text.feedback_pieces import feedback_id
from fabula.types import Estimate

Rows = Sequence[Mapping[str, Any]]
_Numbers = Mapping[str, float | None]
CountSentences = Callable[[list[str]], list[int]]

LAYOUT = ("prompt", "shots", "model")
"""The order of the cells in Table 9."""
_MEASURED = ("Table 1", "Table 6", "Table 7", "Table 8", "Table 9", "Appendix E")
_CROSSES = ((), ("model",), ("prompt",), ("shots",), ("method",), LAYOUT)


@dataclass(frozen=True, slots=True)
class Row:
    """A subset of the answers: each metric as printed, from the released columns, and from ours."""

    where: Mapping[str, str]
    n: int
    printed: Mapping[str, float]
    released: Mapping[str, float | None]
    ours: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class Match:
    """Our measure compared with the released column, answer by answer."""

    n: int
    n_equal: int
    mean_difference: float
    """Mean absolute difference."""
    correlation: float | None


@dataclass(frozen=True, slots=True)
class Automatic:
    """Tables 1 and 6 to 9."""

    rows: tuple[Row, ...]
    n_answers: int
    n_empty: int
    """Answers without a character, which have length 0 and no trigrams."""
    n_missing: Mapping[str, int]
    matches: Mapping[str, Match]
    signature: str


@dataclass(frozen=True, slots=True)
class Replica:
    """The results from one source of feedback."""

    source: str
    is_released: bool
    automatic: Automatic | None
    rated: tuple[Rated, ...]
    validations: tuple[Validation, ...]
    names: Mapping[str, str]
    lacking: tuple[str, ...] = ()
    """Released files that are missing."""

    @property
    def claims(self) -> list[Claim]:
        """Tables 1 and 3 to 9, and appendix E: each number once for each `by` that computed it.

        For your own feedback, only the paper's numbers for the same models.
        """
        numbers: dict[tuple[tuple[str, ...], str], dict[tuple[str, str], float | None]] = {}
        if self.is_released:
            sources = (_MEASURED, "released"), (_MEASURED, "ours"), (RATED_TABLES, "people")
            numbers = {source: {} for source in sources}
        for tables, by, where, values in self._computed():
            by, row = self.place(where, by)
            own = numbers.setdefault((tables, by), {})
            own |= {(row, column): value for column, value in values.items()}
        lacking = f"no {' and no '.join(self.lacking)}" if self.lacking else "no such feedback"
        return [
            claim
            for (tables, by), own in numbers.items()
            for claim in claims_of(PAPER, tables, own, missing=f"{lacking}, or not measured", by=by)
            if self.is_released or claim.row in {row for row, _ in own}
        ]

    def place(self, where: Mapping[str, str], by: str) -> tuple[str, str]:
        """The `by` and the row of the claims of a subset; for your own feedback with its model."""
        own = "" if self.is_released else f", {where.get('model')}"
        return by + own, row_of_paper(where, is_released=self.is_released)

    def _computed(self) -> Iterator[tuple[tuple[str, ...], str, Mapping[str, str], _Numbers]]:
        """Tables with numbers of a subset, what computed these, the subset, the numbers."""
        for row in self.automatic.rows if self.automatic else ():
            yield _MEASURED, "ours", row.where, {name: e.value for name, e in row.ours.items()}
            if self.is_released:
                yield _MEASURED, "released", row.where, row.released
        for rated in self.rated:
            for means in rated.rows:
                errors = {question + ERROR: one.error for question, one in means.ours.items()}
                values = {question: one.mean for question, one in means.ours.items()}
                yield RATED_TABLES, rated.rater, means.where, values | errors
        for one in self.validations if self.is_released else ():
            where = {"question": one.question}
            yield _MEASURED, one.by, where, {one.metric: one.correlation.value}


@dataclass(frozen=True, slots=True)
class Means:
    """What measures need besides the answers; without it they are omitted."""

    count_sentences: CountSentences | None = None
    encoder: Encoder | None = None
    """For BERTScore, in percent as the paper prints it; comparable within one encoder only."""
    tokens: Tokens = "words"
    """The tokenizer for trigrams."""


_PLAIN = Means()


def replicate_released(folder: Path, *, means: Means = _PLAIN, seed: int = 0) -> Replica:
    """The results from the released files of `folder`. Raises `InputError`."""
    given = read_released(folder)
    measured: dict[str, dict[str, dict[str, float]]] = {}
    tables = None
    if given.feedback is not None:
        tables, measured["ours"] = _automatic(given.feedback, means, is_released=True)
    rated: tuple[Rated, ...] = ()
    validations: tuple[Validation, ...] = ()
    if given.rated is not None:
        said = {question: _column(given.rated, "ratings", question) for question in QUESTIONS}
        rated = (rate("people", True, said, given.rated),)
        measured["released"] = {
            metric: _column(given.rated, "columns", metric) for metric in ("perfect", "repetition")
        }
        stories = {row["id"]: row["story_id"] for row in given.rated}
        validations = validate_rater("people", said, measured, stories, seed)
    present = dict(zip(RELEASED_FILES, (given.feedback, given.rated), strict=True))
    return Replica(
        source=str(folder),
        is_released=True,
        automatic=tables,
        rated=rated,
        validations=validations,
        names=given.names,
        lacking=tuple(name for name, rows in present.items() if rows is None),
    )


def replicate_run(
    paths: Sequence[Path], folders: Sequence[Path] = (), *, means: Means = _PLAIN, seed: int = 0
) -> Replica:
    """The same tables for your own feedback, and for runs of `judge` that rated it.

    A figure of the paper is shown only next to a model that it had. Raises `InputError`.
    """
    rows = [{**row, "id": feedback_id(row)} for row in read_own(paths)]
    tables, measured = _automatic(rows, means, is_released=False)
    rated: list[Rated] = []
    validations: list[Validation] = []
    stories = {row["id"]: row["story_id"] for row in rows}
    for folder in folders:
        for rater, said in read_rated(folder).items():
            one = rate(rater, False, said, rows)
            if not one.n:
                raise InputError(
                    f"{folder}: rated none of this feedback; use the run of "
                    "`fabula feedback rate` on it"
                )
            rated.append(one)
            validations += validate_rater(rater, said, {"ours": measured}, stories, seed)
    return Replica(
        source=", ".join(map(str, paths)),
        is_released=False,
        automatic=tables,
        rated=tuple(rated),
        validations=tuple(validations),
        names={},
    )


def _automatic(
    rows: Rows, means: Means, *, is_released: bool
) -> tuple[Automatic, dict[str, dict[str, float]]]:
    """The tables, and our measures of each answer by metric and id."""
    answers = read_answers(
        rows,
        one_sentence=ONE_SENTENCE,
        count_sentences=means.count_sentences,
        similarity=None if means.encoder is None else _percent(bertscore(means.encoder)),
        encoder="" if means.encoder is None else means.encoder.name,
        keep_refusals=True,
        tokens=means.tokens,
    )
    given = [row for row in rows if row["feedback"] is not None]
    _, cells = group_answers(answers, CELL)
    ours = {
        "length": answers.lengths,
        "perfect": answers.is_perfect.astype(np.float64),
        "repetition": repetition(answers.trigrams, cells, np.ones(len(answers), np.bool_)),
        "repetition_imperfect": repetition(answers.trigrams, cells, ~answers.is_perfect),
        "overlap": answers.overlaps,
        "one_sentence": answers.one_sentence,
        "n_words": answers.n_words,
        "n_trigrams": np.maximum(answers.n_words - 2, 0),
    }
    found = []
    for subset in score_answers(answers, crosses=_CROSSES):
        held = [row for row in given if all(row[k] == v for k, v in subset.where.items())]
        row = row_of_paper(subset.where, is_released=is_released)
        printed = dict(printed_row(row, _MEASURED))
        found.append(Row(subset.where, subset.n, printed, _released(held), subset.values))
    tables = Automatic(
        rows=tuple(sorted(found, key=lambda row: _place(row.where))),
        n_answers=len(answers),
        n_empty=sum(not row["feedback"] for row in given),
        n_missing=answers.n_missing,
        matches=_matches(ours, given),
        signature=answers.signature,
    )
    return tables, known_values([row["id"] for row in given], ours)


def _percent(score: Callable[[str, str], float]) -> Callable[[str, str], float]:
    return lambda text, other: 100 * score(text, other)


def _released(rows: Rows) -> dict[str, float | None]:
    """Means of the authors' columns over the rows that have them; none if no row does."""
    kept: dict[str, list[float]] = {}
    says, is_right = 0, 0
    for row in rows:
        columns = row.get("columns", {})
        for metric, value in columns.items():
            if metric == "repetition_imperfect" and columns["perfect"]:
                continue
            if metric == "one_sentence" and row["prompt"] not in ONE_SENTENCE:
                continue
            if value is not None:
                kept.setdefault(metric, []).append(value)
        if columns.get("perfect"):
            says += 1
            is_right += row["method"] == "original"
    found: dict[str, float | None] = {name: statistics.fmean(v) for name, v in kept.items()}
    if found:
        found["perfect_precision"] = is_right / says if says else None
    return found


def _matches(ours: Mapping[str, NDArray[np.float64]], rows: Rows) -> dict[str, Match]:
    found = {}
    for metric, mine in ours.items():
        values = [row.get("columns", {}).get(metric) for row in rows]
        theirs = np.array([np.nan if value is None else value for value in values])
        both = ~(np.isnan(mine) | np.isnan(theirs))
        if both.any():
            apart = np.abs(mine[both] - theirs[both])
            found[metric] = Match(
                n=int(both.sum()),
                n_equal=int((apart < 1e-6).sum()),
                mean_difference=float(apart.mean()),
                correlation=pearson(mine, theirs).value,
            )
    return found


def _place(where: Mapping[str, str]) -> tuple[Any, ...]:
    """Subsets in the paper's order; others come last, by name."""
    values = []
    for dimension, value in where.items():
        order = ORDERS[dimension]
        values.append((order.index(value) if value in order else len(order), value))
    return _CROSSES.index(tuple(where)), values


def _column(rows: Rows, kind: str, name: str) -> dict[str, float]:
    return {row["id"]: row[kind][name] for row in rows if row[kind][name] is not None}
