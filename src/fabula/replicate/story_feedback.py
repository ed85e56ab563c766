"""The tables of "Help Me Write a Story" (Rashkin, Clark, Huot and Lapata 2025).

From the authors' released files, or from your own feedback. `generated_feedback.jsonl` has each
piece of feedback with the authors' measures of it; these are averaged next to ours, which shows
where ours differ from theirs. `human_ratings.jsonl` has those that people rated, with the mean of
three raters for each question, NaN if it was not asked. A missing figure is None here, never 0.
Repetition in Table 1 is the mean of that in Table 9 (68 of 70 figures follow so): it is computed
among the answers of one model to one prompt with one number of shots, so it is here too.
Tables 3 to 5 and appendix E are means over documents of the raters' means, with their standard
errors, and the agreement of measures with raters. Table 2, the agreement of raters, needs single
ratings, which were not released.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fabula.core.errors import InputError
from fabula.core.store import read_rows
from fabula.core.types import Estimate, by_rater
from fabula.feedback.eliciting import PROMPTS as OWN_PROMPTS
from fabula.feedback.released import (
    HOME,
    METHODS,
    MODELS,
    PROMPTS,
    QUESTIONS,
    RATINGS_FILE,
    RELEASED_FILES,
    SHOTS,
    known_model,
    read_released,
    shots_of,
)
from fabula.feedback.scores import (
    VALIDATED,
    Tokens,
    bertscore,
    cell_repetition,
    known_values,
    read_answers,
    score_answers,
    validate,
)
from fabula.jobs.result import picked
from fabula.judging.session import read_run
from fabula.models.encoder import Encoder
from fabula.raters.ratings import GroupMean, group_means, mean_scores, score_table
from fabula.replicate.tables import Claim, claims_of, load_printed, printed_table, section
from fabula.show.sheet import Block, Cell, Column, Sheet, interval_shown
from fabula.stats.agreement import pearson
from fabula.text.feedback_pieces import check_feedback_row, feedback_id

PAPER = "story_feedback"
COLUMNS = tuple(printed_table(PAPER, "Table 1")["GPT 4"])
"""Metrics of Tables 1 and 9, under the names of `feedback.scores`."""
ERROR = ", standard error"
"""Suffix of a question's column of standard errors."""


_OWN_PROMPTS = {
    "full": "bulleted list",
    "list": "bulleted list only",
    "sentence": "one sentence",
    "spot": "spot the problem",
}
ONE_SENTENCE = frozenset(_OWN_PROMPTS[name] for name in OWN_PROMPTS.one_sentence)
"""The prompts that ask for one sentence, under the paper's names."""
ORDERS = {"model": MODELS, "prompt": PROMPTS, "shots": SHOTS, "method": METHODS}
"""The values of each dimension in the paper's order."""
LAYOUT = ("prompt", "shots", "model")
"""The order of the cells in Table 9."""
_CROSSES = ((), ("model",), ("prompt",), ("shots",), ("method",), LAYOUT)
_MEASURED = ("Table 1", "Table 6", "Table 7", "Table 8", "Table 9", "Appendix E")
RATED_TABLES = ("Table 3", "Table 4", "Table 5")

Rows = Sequence[Mapping[str, Any]]
_Numbers = Mapping[str, float | None]
CountSentences = Callable[[list[str]], list[int]]


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
class RatedRow:
    """Means by question of the feedback in a subset."""

    where: Mapping[str, str]
    printed: Mapping[str, tuple[float, float]]
    ours: Mapping[str, GroupMean]


@dataclass(frozen=True, slots=True)
class Rated:
    """Tables 3 to 5 by one rater."""

    rater: str
    is_people: bool
    n: int
    n_unknown: int
    """Rated pieces of feedback that are not among the answers."""
    rows: tuple[RatedRow, ...]


@dataclass(frozen=True, slots=True)
class Validation:
    """Appendix E: a measure compared with a rater's answers."""

    rater: str
    question: str
    metric: str
    by: str
    """`released` or `ours`."""
    printed: float | None
    correlation: Estimate


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
        # Tables with numbers of a subset, what computed these, the subset, the numbers.
        computed: list[tuple[tuple[str, ...], str, Mapping[str, str], _Numbers]] = []
        for row_ in self.automatic.rows if self.automatic else ():
            ours = {name: estimate.value for name, estimate in row_.ours.items()}
            computed.append((_MEASURED, "ours", row_.where, ours))
            if self.is_released:
                computed.append((_MEASURED, "released", row_.where, row_.released))
        for rated in self.rated:
            for means in rated.rows:
                errors = {question + ERROR: group.error for question, group in means.ours.items()}
                known = {question: group.mean for question, group in means.ours.items()} | errors
                computed.append((RATED_TABLES, rated.rater, means.where, known))
        for v in self.validations if self.is_released else ():
            value = {v.metric: v.correlation.value}
            computed.append((_MEASURED, v.by, {"question": v.question}, value))
        for tables, by, where, values in computed:
            by, row = self.place(where, by)
            cells = numbers.setdefault((tables, by), {})
            cells |= {(row, column): value for column, value in values.items()}
        lacking = f"no {' and no '.join(self.lacking)}" if self.lacking else "no such feedback"
        return [
            claim
            for (tables, by), its in numbers.items()
            for claim in claims_of(PAPER, tables, its, missing=f"{lacking}, or not measured", by=by)
            if self.is_released or claim.row in {row for row, _ in its}
        ]

    def place(self, where: Mapping[str, str], by: str) -> tuple[str, str]:
        """The `by` and the row of the claims of a subset; for your own feedback with its model."""
        suffix = "" if self.is_released else f", {where.get('model')}"
        return by + suffix, row_of_paper(where, is_released=self.is_released)


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
    files, names = read_released(folder)
    feedback, ratings = map(files.get, RELEASED_FILES)
    measured: dict[str, dict[str, dict[str, float]]] = {}
    tables = None
    if feedback is not None:
        tables, measured["ours"] = _automatic(feedback, means, is_released=True)
    rated: tuple[Rated, ...] = ()
    validations: tuple[Validation, ...] = ()
    if ratings is not None:

        def column(kind: str, name: str) -> dict[str, float]:
            return {row["id"]: row[kind][name] for row in ratings if row[kind][name] is not None}

        by_question = {question: column("ratings", question) for question in QUESTIONS}
        rated = (rate("people", True, by_question, ratings),)
        measured["released"] = {m: column("columns", m) for m in ("perfect", "repetition")}
        validations = validate_rater("people", by_question, measured, ratings, seed)
    lacking = tuple(name for name in RELEASED_FILES if name not in files)
    return Replica(str(folder), True, tables, rated, validations, names, lacking)


def replicate_run(
    paths: Sequence[Path], folders: Sequence[Path] = (), *, means: Means = _PLAIN, seed: int = 0
) -> Replica:
    """The same tables for your own feedback, and for runs of `judge` that rated it.

    A figure of the paper is shown only next to a model that it had. Raises `InputError`.
    """
    rows: list[dict[str, Any]] = []
    seen: set[tuple[str, str]] = set()
    for path in paths:
        for number, row in enumerate(read_rows(path), 1):
            check_feedback_row(row, f"{path}, line {number}")
            if (row["id"], row["model"]) in seen:
                raise InputError(f"{path}, line {number}: {row['id']!r} occurs twice")
            seen.add((row["id"], row["model"]))
            # Prompts and shots under the paper's names.
            prompt = _OWN_PROMPTS.get(row["prompt"], row["prompt"])
            renamed = {"id": feedback_id(row), "prompt": prompt, "shots": shots_of(row["shots"])}
            rows.append({**row, **renamed})
    if not rows:
        raise InputError(f"{', '.join(map(str, paths))}: no feedback found")
    tables, measured = _automatic(rows, means, is_released=False)
    rated: list[Rated] = []
    validations: list[Validation] = []
    for folder in folders:
        rubric, measurements = read_run(folder)
        if rubric.id != "feedback":
            raise InputError(
                f"{folder}: was judged with the rubric {rubric.id!r}; Tables 3 to 5 need `feedback`"
            )
        for rater, marks in by_rater(measurements).items():
            means_by_item = mean_scores(score_table(marks, rubric))
            by_question = {item.replace("_", "-"): mean for item, mean in means_by_item.items()}
            rating = rate(rater, False, by_question, rows)
            if not rating.n:
                raise InputError(
                    f"{folder}: rated none of this feedback; use the run of "
                    "`fabula feedback rate` on it"
                )
            rated.append(rating)
            validations += validate_rater(rater, by_question, {"ours": measured}, rows, seed)
    return Replica(", ".join(map(str, paths)), False, tables, tuple(rated), tuple(validations), {})


def _automatic(
    rows: Rows, means: Means, *, is_released: bool
) -> tuple[Automatic, dict[str, dict[str, float]]]:
    score = None if means.encoder is None else bertscore(means.encoder)
    answers = read_answers(
        rows,
        one_sentence=ONE_SENTENCE,
        count_sentences=means.count_sentences,
        similarity=None if score is None else lambda text, other: 100 * score(text, other),
        encoder="" if means.encoder is None else means.encoder.name,
        keep_refusals=True,
        tokens=means.tokens,
    )
    answered = [row for row in rows if row["feedback"] is not None]
    ours = {
        "length": answers.lengths,
        "perfect": answers.is_perfect.astype(np.float64),
        "repetition": cell_repetition(answers),
        "repetition_imperfect": cell_repetition(answers, ~answers.is_perfect),
        "overlap": answers.overlaps,
        "one_sentence": answers.one_sentence,
        "n_words": answers.n_words,
        "n_trigrams": np.maximum(answers.n_words - 2, 0),
    }
    subsets = []
    for subset in score_answers(answers, crosses=_CROSSES):
        held = [row for row in answered if all(row[k] == v for k, v in subset.where.items())]
        printed = printed_row(row_of_paper(subset.where, is_released=is_released), _MEASURED)
        subsets.append(Row(subset.where, subset.n, printed, _released(held), subset.values))

    def place(row: Row) -> tuple[Any, ...]:
        """Subsets in the paper's order; others come last, by name."""
        values = []
        for dimension, value in row.where.items():
            order = ORDERS[dimension]
            values.append((order.index(value) if value in order else len(order), value))
        return _CROSSES.index(tuple(row.where)), values

    matches = {}
    for metric, mine in ours.items():
        columns = [row.get("columns", {}).get(metric) for row in answered]
        theirs = np.array([np.nan if value is None else value for value in columns])
        both = ~(np.isnan(mine) | np.isnan(theirs))
        if both.any():
            apart = np.abs(mine[both] - theirs[both])
            n, n_equal = int(both.sum()), int((apart < 1e-6).sum())
            matches[metric] = Match(n, n_equal, float(apart.mean()), pearson(mine, theirs).value)
    tables = Automatic(
        rows=tuple(sorted(subsets, key=place)),
        n_answers=len(answers),
        n_empty=sum(not row["feedback"] for row in answered),
        n_missing=answers.n_missing,
        matches=matches,
        signature=answers.signature,
    )
    return tables, known_values([row["id"] for row in answered], ours)


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
    means: dict[str, float | None] = {name: statistics.fmean(v) for name, v in kept.items()}
    if means:
        means["perfect_precision"] = is_right / says if says else None
    return means


def row_of_paper(where: Mapping[str, str], *, is_released: bool) -> str:
    """The name of a subset in the paper's tables; none for a model that is not in the paper.

    For your own feedback, only subsets of a model compare: the paper's others are of eight models.
    """
    if is_released:
        return ", ".join(where.values())
    model = known_model(where.get("model", ""))
    return "" if model is None else ", ".join({**where, "model": model}.values())


def printed_row(name: str, tables: Sequence[str]) -> dict[str, float]:
    """The printed numbers of a subset, by the names of the columns."""
    of_row = {key: printed for key, printed in load_printed(PAPER).items() if key[1] == name}
    return {column: float(n) for (table, _, column), n in of_row.items() if table in tables}


def rate(
    rater: str,
    is_people: bool,
    means: Mapping[str, Mapping[str, float]],
    rows: Sequence[Mapping[str, Any]],
) -> Rated:
    """The tables by one rater; `means` by question and document, described by `rows`."""
    by_id = {row["id"]: row for row in rows}
    documents = {document for of_question in means.values() for document in of_question}
    rated: list[RatedRow] = []
    for dimension, order in ORDERS.items():
        labels = {id_: str(row[dimension]) for id_, row in by_id.items()}
        groups = group_means(means, labels.get)
        known = [name for name in order if name in groups]
        for name in known + sorted(set(groups) - set(known)):
            where = {dimension: name}
            of_row = printed_row(row_of_paper(where, is_released=is_people), RATED_TABLES)
            printed = {q: (of_row[q], of_row[q + ERROR]) for q in QUESTIONS if q in of_row}
            rated.append(RatedRow(where, printed, groups[name]))
    n_known = len(documents & by_id.keys())
    return Rated(rater, is_people, n_known, len(documents) - n_known, tuple(rated))


def validate_rater(
    rater: str,
    means: Mapping[str, Mapping[str, float]],
    measures: Mapping[str, Mapping[str, Mapping[str, float]]],
    rows: Rows,
    seed: int,
) -> tuple[Validation, ...]:
    """Two correlations by each way of measuring, with intervals over stories."""
    stories = {row["id"]: row["story_id"] for row in rows}
    people = {question.replace("-", "_"): scores for question, scores in means.items()}
    printed = printed_table(PAPER, "Appendix E") if rater == "people" else {}
    validations = []
    for by, measured in measures.items():
        for item, estimate in validate(measured, people, stories, seed=seed).items():
            if estimate.n:
                metric, question = VALIDATED[item][0], item.replace("_", "-")
                shown = printed.get(question, {}).get(metric)
                validations.append(Validation(rater, question, metric, by, shown, estimate))
    return tuple(validations)


_TITLES = {
    "length": "length", "perfect": "% PAI", "perfect_precision": "PAI prec",
    "repetition": "3-gramR", "repetition_imperfect": "w/o PAI", "overlap": "with story",
    "bertscore": "BERTScore", "one_sentence": "1 sentence", "n_words": "words",
    "n_trigrams": "trigrams",
}  # fmt: skip
_SPLITS = (("model",), ("prompt",), ("shots",))
_TABLES: Sequence[tuple[str, Sequence[tuple[str, ...]], Sequence[str]]] = (
    ("Table 1: feedback by model, prompt and examples", (*_SPLITS, ()), COLUMNS),
    ("Table 6: shared with the story", _SPLITS, ("overlap", "bertscore")),
    ("Table 7: % PAI by what was done to the story", (("method",),), ("perfect",)),
    ("Table 8: how many are one sentence, where that was asked", (LAYOUT,), ("one_sentence",)),
    ("Table 9: feedback by prompt, examples and model", (LAYOUT,), COLUMNS),
)
_NOTE = (
    "PAI: says that the text is perfect as it is; prec: of those, how many stories were not "
    "corrupted. 3-gramR: trigrams of an answer that another of the same model, prompt and number "
    "of examples holds too."
)
Claims = Mapping[tuple[str, str, str], Claim]


def replica_tables(replica: Replica) -> list[Block]:
    """All tables of a source, in the paper's order, then missing values."""
    claims = {(claim.by, claim.row, claim.column): claim for claim in replica.claims}
    parts: list[Block] = [replica.source, ""]
    names = [f"{ours} ({theirs})" for ours, theirs in replica.names.items() if ours != theirs]
    if names:
        parts += [f"Prompts, as the files call them: {', '.join(names)}.", ""]
    if replica.automatic is not None:
        parts += _automatic_parts(replica, replica.automatic, claims)
    for rated in replica.rated:
        who = "people" if rated.is_people else f"{rated.rater}, a model and not people"
        rows: list[list[Cell]] = []
        for question in QUESTIONS:
            for row in rated.rows:
                (label,) = row.where.values()
                place, mean = replica.place(row.where, rated.rater), row.ours[question]
                values = {question: mean.mean, question + ERROR: mean.error}
                shown = [claims.get((*place, column), value) for column, value in values.items()]
                rows.append([question, label, mean.n, *shown])
        columns = _columns("question", Column("mean", ".3f"), Column("standard error", ".2f"))
        parts += section(
            f"Tables 3, 4 and 5 (printed), rated by {who}: {rated.n:,} answers",
            Sheet("ratings", columns, rows, about=("rater", rated.rater)),
            claims=_of(claims, *RATED_TABLES, by=rated.rater),
        )
        if rated.n_unknown:
            parts.append(f"{rated.n_unknown:,} rated answers are not in the file and have no part.")
    if replica.rated and replica.is_released:
        parts += [
            "Table 2, how far the annotators agree: cannot be computed; only means over "
            "annotators are released.",
            "",
        ]
    if replica.validations:
        columns = [
            Column("rater"),
            Column("question"),
            Column("measure", of=lambda v: _TITLES[v.metric]),
            Column("by"),
            Column(
                "r",
                ".2f",
                of=lambda v: claims.get((v.by, v.question, v.metric), v.correlation.value),
            ),
            Column(
                "95 % interval", name="interval", of=lambda v: interval_shown(v.correlation, ".2f")
            ),
            Column("n", ",", of="correlation.n"),
        ]
        parts += section(
            "Appendix E: measures against raters, Pearson (printed)",
            Sheet.of("validation", replica.validations, columns),
            claims=_of(claims, "Appendix E"),
        )
    for name in replica.lacking:
        tables = "Tables 3 to 5" if name == RATINGS_FILE else "Tables 1 and 6 to 9"
        parts.append(f"No {name} there: without it {tables} are missing. Download it from {HOME}.")
    return parts


def _columns(what: str, *numbers: Column) -> list[Column]:
    first = [Column("", name=what, once=True), Column("", name="feedback"), Column("n", ",")]
    return [*first, *numbers]


def _of(claims: Claims, *tables: str, by: str = "") -> list[Claim]:
    """The claims of some tables; `by` is the rater whose claims these are."""
    some = (claim for claim in claims.values() if claim.table in tables)
    return [claim for claim in some if f"{claim.by}, ".startswith(by and f"{by}, ")]


def _automatic_parts(replica: Replica, tables: Automatic, claims: Claims) -> Iterator[Block]:
    released = "released: means of the authors' columns; " if tables.matches else ""
    yield (
        f"{tables.n_answers:,} answers. {released}ours: measured here; in brackets what the paper "
        "prints. ! beyond the rounding of what is printed."
    )
    yield ""
    for title, crosses, metrics in _TABLES:
        rows = [row for row in tables.rows if tuple(row.where) in crosses]
        table = title.partition(":")[0]
        sources = ("released", "ours") if replica.is_released else ("ours",)
        cells: list[list[Cell]] = []
        for metric in metrics:
            for row in rows:
                ours = row.ours.get(metric)
                numbers = {"released": row.released.get(metric), "ours": ours and ours.value}
                if any(value is not None for value in numbers.values()):
                    label = ", ".join(row.where.values()) or "all"
                    values: list[Cell] = [
                        claims.get((*replica.place(row.where, by), metric), numbers[by])
                        for by in sources
                    ]
                    cells.append([_TITLES[metric], label, row.n, *values])
        columns = _columns("measure", *(Column(by, ".2f") for by in sources))
        sheet = Sheet(table.lower().replace(" ", ""), columns, cells)
        if sheet.rows:
            yield from section(title, sheet, claims=_of(claims, table))
    yield _NOTE
    if tables.n_empty:
        yield f"{tables.n_empty:,} answers are empty: of length 0, and without a trigram."
    for reason, n in sorted(tables.n_missing.items()):
        yield f"missing: {n:,} answers, {reason}"
    if tables.matches:
        columns = [
            Column("ours against released", of=lambda match: _TITLES[match[0]]),
            Column("answers", ",", of=lambda match: match[1].n),
            Column("equal", ".1%", of=lambda match: match[1].n_equal / match[1].n),
            Column(
                "mean |difference|",
                ".3f",
                name="mean_difference",
                of=lambda match: match[1].mean_difference,
            ),
            Column("Pearson", ".3f", of=lambda match: match[1].correlation),
        ]
        title = "Are our measures theirs? Answer by answer"
        yield from ("", title, "", Sheet.of("matches", tables.matches.items(), columns))
    yield from (tables.signature, "") if tables.signature else ("",)


def replica_json(replica: Replica) -> dict[str, Any]:
    """As plain values, with all intervals."""
    automatic = replica.automatic
    return {
        "source": replica.source,
        "names": dict(replica.names),
        "lacking": list(replica.lacking),
        "automatic": automatic
        and {
            "n": automatic.n_answers,
            "n_empty": automatic.n_empty,
            "missing": dict(automatic.n_missing),
            "signature": automatic.signature,
            "rows": [
                asdict(row)
                | {"ours": {m: picked(e, "value", "low", "high", "n") for m, e in row.ours.items()}}
                for row in automatic.rows
            ],
            "matches": {metric: asdict(match) for metric, match in automatic.matches.items()},
        },
        "rated": [asdict(rated) for rated in replica.rated],
        "validation": [asdict(validation) for validation in replica.validations],
    }
