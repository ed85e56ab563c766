"""The replication of "Help Me Write a Story" as tables and as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fabula.presentation.sheet import Block, Cell, Column, Sheet, interval_shown
from fabula.replicate.claims import Claim, agreement_lines
from fabula.replicate.story_feedback import LAYOUT, Automatic, Replica, Row
from fabula.replicate.story_feedback_files import COLUMNS, ERROR, HOME, QUESTIONS, RATINGS_FILE
from fabula.replicate.story_feedback_ratings import RATED_TABLES, Rated
from fabula.types import Estimate

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
        parts += _rated_parts(replica, rated, claims)
    if replica.rated and replica.is_released:
        parts += [
            "Table 2, how far the annotators agree: cannot be computed; only means over "
            "annotators are released.",
            "",
        ]
    if replica.validations:
        title = "Appendix E: measures against raters, Pearson (printed)"
        parts += [title, "", _validated(replica, claims), *_agreement(claims, "Appendix E"), ""]
    for name in replica.lacking:
        tables = "Tables 3 to 5" if name == RATINGS_FILE else "Tables 1 and 6 to 9"
        parts.append(f"No {name} there: without it {tables} are missing. Download it from {HOME}.")
    return parts


def _agreement(claims: Claims, *tables: str, by: str = "") -> list[str]:
    """The claims of some tables; `by` is the rater whose claims these are."""
    some = [one for one in claims.values() if one.table in tables]
    some = [one for one in some if f"{one.by}, ".startswith(by and f"{by}, ")]
    return ["", *agreement_lines(some)] if some else []


def _automatic_parts(replica: Replica, found: Automatic, claims: Claims) -> Iterator[Block]:
    released = "released: means of the authors' columns; " if found.matches else ""
    yield (
        f"{found.n_answers:,} answers. {released}ours: measured here; in brackets what the paper "
        "prints. ! beyond the rounding of what is printed."
    )
    for title, crosses, metrics in _TABLES:
        rows = [row for row in found.rows if tuple(row.where) in crosses]
        table = title.partition(":")[0]
        sheet = _automatic_sheet(table, replica, rows, metrics, claims)
        if sheet.rows:
            yield from ("", title, "", sheet)
            yield from _agreement(claims, table)
    yield from ("", _NOTE)
    if found.n_empty:
        yield f"{found.n_empty:,} answers are empty: of length 0, and without a trigram."
    for reason, n in sorted(found.n_missing.items()):
        yield f"missing: {n:,} answers, {reason}"
    if found.matches:
        columns = [
            Column("ours against released"),
            Column("answers", ","),
            Column("equal", ".1%"),
            Column("mean |difference|", ".3f", name="mean_difference"),
            Column("Pearson", ".3f"),
        ]
        cells: list[list[Cell]] = [
            [_TITLES[metric], one.n, one.n_equal / one.n, one.mean_difference, one.correlation]
            for metric, one in found.matches.items()
        ]
        title = "Are our measures theirs? Answer by answer"
        yield from ("", title, "", Sheet("matches", columns, cells))
    yield from (found.signature, "") if found.signature else ("",)


def _automatic_sheet(
    table: str, replica: Replica, rows: list[Row], metrics: Sequence[str], claims: Claims
) -> Sheet:
    """A line for each metric and subset for which either was measured."""
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
    columns = [
        Column("", name="measure", once=True),
        Column("", name="feedback"),
        Column("n", ","),
        *(Column(by, ".2f") for by in sources),
    ]
    return Sheet(table.lower().replace(" ", ""), columns, cells)


def _rated_parts(replica: Replica, rated: Rated, claims: Claims) -> Iterator[Block]:
    who = "people" if rated.is_people else f"{rated.rater}, a model and not people"
    yield from (f"Tables 3, 4 and 5 (printed), rated by {who}: {rated.n:,} answers", "")
    rows: list[list[Cell]] = []
    for question in QUESTIONS:
        for row in rated.rows:
            (label,) = row.where.values()
            place, mean = replica.place(row.where, rated.rater), row.ours[question]
            values = {question: mean.mean, question + ERROR: mean.error}
            shown = [claims.get((*place, column), value) for column, value in values.items()]
            rows.append([question, label, mean.n, *shown])
    columns = [
        Column("", name="question", once=True),
        Column("", name="feedback"),
        Column("n", ","),
        Column("mean", ".3f"),
        Column("standard error", ".2f"),
    ]
    yield Sheet("ratings", columns, rows, about=("rater", rated.rater))
    yield from (*_agreement(claims, *RATED_TABLES, by=rated.rater), "")
    if rated.n_unknown:
        yield f"{rated.n_unknown:,} rated answers are not in the file and have no part."


def _validated(replica: Replica, claims: Claims) -> Sheet:
    columns = [
        Column("rater"),
        Column("question"),
        Column("measure", of=lambda one: _TITLES[one.metric]),
        Column("by"),
        Column(
            "r",
            ".2f",
            of=lambda one: claims.get((one.by, one.question, one.metric), one.correlation.value),
        ),
        Column(
            "95 % interval", name="interval", of=lambda one: interval_shown(one.correlation, ".2f")
        ),
        Column("n", ",", of="correlation.n"),
    ]
    return Sheet.of("validation", replica.validations, columns)


def replica_json(replica: Replica) -> dict[str, Any]:
    """As plain values, with all intervals."""
    found = replica.automatic
    return {
        "source": replica.source,
        "names": dict(replica.names),
        "lacking": list(replica.lacking),
        "automatic": found
        and {
            "n": found.n_answers,
            "n_empty": found.n_empty,
            "missing": dict(found.n_missing),
            "signature": found.signature,
            "rows": [asdict(row) | {"ours": _ends(row.ours)} for row in found.rows],
            "matches": {metric: asdict(one) for metric, one in found.matches.items()},
        },
        "rated": [asdict(one) for one in replica.rated],
        "validation": [asdict(one) for one in replica.validations],
    }


def _ends(estimates: Mapping[str, Estimate]) -> dict[str, Any]:
    return {
        metric: {"value": e.value, "low": e.low, "high": e.high, "n": e.n}
        for metric, e in estimates.items()
    }
