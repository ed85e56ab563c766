"""The replication of "Help Me Write a Story" for the terminal and as plain values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from fabula.presentation.sheet import interval_shown, number, render
from fabula.replicate.story_feedback import LAYOUT, Automatic, Replica, Row
from fabula.replicate.story_feedback_check import RULES, Check
from fabula.replicate.story_feedback_files import HOME, RATINGS_FILE
from fabula.replicate.story_feedback_printed import AUTOMATIC, COLUMNS, QUESTIONS
from fabula.replicate.story_feedback_ratings import Rated

__all__ = ["check_tables", "replica_json", "replica_tables"]

_TITLES = {
    "length": "length", "perfect": "% PAI", "perfect_precision": "PAI prec",
    "repetition": "3-gramR", "repetition_imperfect": "w/o PAI", "overlap": "with story",
    "bertscore": "BERTScore", "one_sentence": "1 sentence",
}  # fmt: skip
_HEADERS = dict(
    zip(
        QUESTIONS,
        ("sanity", "feedb.-\ntype", "perfect-\nagree", "correct-\nness", "error-\ndetect.",
         "speci-\nficity", "rele-\nvance"), strict=True,
    )
)  # fmt: skip
_SPLITS = (("model",), ("prompt",), ("shots",))
_TABLES: tuple[tuple[str, tuple[tuple[str, ...], ...], tuple[str, ...]], ...] = (
    ("Table 1: feedback by model, prompt and examples", (*_SPLITS, ()), COLUMNS),
    ("Table 6: shared with the story", _SPLITS, ("overlap", "bertscore")),
    ("Table 7: % PAI by what was done to the story", (("method",),), ("perfect",)),
    ("Table 8: how many are one sentence, where that was asked", (LAYOUT,), ("one_sentence",)),
    ("Table 9: feedback by prompt, examples and model", (LAYOUT,), COLUMNS),
)
_DIFFERS = "!"
_NOTE = (
    "PAI: says that the text is perfect as it is; prec: of those, how many stories were not "
    "corrupted. 3-gramR: trigrams of an answer that another of the same model, prompt and number "
    "of examples holds too."
)


def check_tables(check: Check) -> str:
    """Which figures of Table 1 follow from Table 9, and those that do not with both numbers."""
    first = [one for one in check.derived if (one.column, one.rule) in RULES[:5]]
    table = _table("Table 1", *(_TITLES[column] for column in COLUMNS))
    for name in AUTOMATIC:
        shown = [
            f"{one.printed:.2f}{' ' if one.follows else _DIFFERS}"
            for one in first
            if one.name == name
        ]
        table.add_row(name, *shown)
    failing = [
        f"  {one.name}, {_TITLES[one.column]}: printed {one.printed:.2f}, Table 9 allows "
        f"{_span(one.allowed, 3)}"
        for one in first
        if not one.follows
    ]
    plain = [one for one in check.derived if (one.column, one.rule) == RULES[5]]
    return render(
        f"THE PRINTED TABLES AMONG EACH OTHER. Does Table 1 follow from Table 9, up to rounding? "
        f"{sum(one.follows for one in first)} of {len(first)} figures do; {_DIFFERS} where not.",
        "", table, "", *failing,
        "Lengths, % PAI and 3-gramR are plain means of the cells, so repetition is among the "
        "answers of one cell; PAI prec is a ratio of pooled counts; w/o PAI weighs each cell by "
        f"the answers that are left: as a plain mean {sum(one.follows for one in plain)} of "
        f"{len(plain)} would follow.",
        "An answer of fewer than three words has no trigram. Were such answers left out of the "
        "means, a cell that has many would weigh less; that may be why a figure does not follow.",
        *_unknown(check), *_agreements(check), "",
    )  # fmt: skip


def _unknown(check: Check) -> Iterator[str]:
    prompt, shots, model = check.unknown_cell
    needed = ", ".join(
        f"{_TITLES[column]} {_span(interval, 2)}" for column, interval in check.unknown.items()
    )
    yield (
        f"One cell ({model}, {prompt}, {shots}) is missing from the text that the figures were "
        f"read from. Its three rows of Table 1 together require of it: {needed}. Each of these "
        f"rows is held against what the other two require."
    )


def _agreements(check: Check) -> Iterator[str]:
    for one in check.agreements:
        sources = "; ".join(f"{name} {_span(i, 3)}" for name, i in one.sources.items())
        verdict = "agree" if one.agrees else "DISAGREE"
        yield f"Overall {_TITLES[one.what]}: the tables {verdict} ({sources})."


def _span(interval: tuple[float, float] | None, n_digits: int) -> str:
    if interval is None:
        return "nothing"
    return f"{interval[0]:.{n_digits}f} to {interval[1]:.{n_digits}f}"


def replica_tables(replica: Replica) -> str:
    """All tables of a source, in the paper's order, then what is missing."""
    parts: list[Table | str] = [f"{replica.source}", ""]
    names = [f"{ours} ({theirs})" for ours, theirs in replica.names.items() if ours != theirs]
    if names:
        parts += [f"Prompts, as the files call them: {', '.join(names)}.", ""]
    if replica.automatic is not None:
        parts += _automatic_parts(replica.automatic)
    for rated in replica.rated:
        parts += _rated_parts(rated)
    if replica.rated and replica.is_released:
        parts += [
            "Table 2, how far the annotators agree: cannot be had; only means over annotators are "
            "released.", "",
        ]  # fmt: skip
    if replica.validations:
        parts += ["Appendix E: measures against raters, Pearson", "", _validated(replica), ""]
    for name in replica.lacking:
        tables = "Tables 3 to 5" if name == RATINGS_FILE else "Tables 1 and 6 to 9"
        parts.append(f"No {name} there: without it {tables} are missing. Get it from {HOME}.")
    return render(*parts)


def _automatic_parts(found: Automatic) -> Iterator[Table | str]:
    released = "released: means of the authors' columns; " if found.matches else ""
    yield (
        f"{found.n_answers:,} answers. printed: the paper; {released}ours: measured here. "
        f"{_DIFFERS} beyond the rounding of what is printed."
    )
    for title, crosses, metrics in _TABLES:
        rows = [row for row in found.rows if tuple(row.where) in crosses]
        metrics = tuple(m for m in metrics if any(_has(row, m) for row in rows))
        if metrics:
            yield from ("", title, "", _automatic_table(rows, metrics))
    yield from ("", _NOTE)
    if found.n_empty:
        yield f"{found.n_empty:,} answers are empty: of length 0, and without a trigram."
    for reason, n in sorted(found.n_missing.items()):
        yield f"missing: {n:,} answers, {reason}"
    if found.matches:
        table = _table("ours against released", "answers", "equal", "mean |difference|", "Pearson")
        for metric, one in found.matches.items():
            table.add_row(
                _TITLES[metric], f"{one.n:,}", f"{one.n_equal / one.n:.1%}",
                f"{one.mean_difference:.3f}", number(one.correlation, ".3f"),
            )  # fmt: skip
        yield from ("", "Are our measures theirs? Answer by answer", "", table)
    yield from (found.signature, "") if found.signature else ("",)


def _has(row: Row, metric: str) -> bool:
    """Whether the metric was measured at all: what is only printed makes no column."""
    ours = row.ours.get(metric)
    return row.released.get(metric) is not None or (ours is not None and ours.value is not None)


def _automatic_table(rows: Sequence[Row], metrics: Sequence[str]) -> Table:
    """Up to three lines a subset: printed, released, ours."""
    table = _table("", "n", *(_TITLES[metric] for metric in metrics), n_left=2)
    for row in rows:
        if not any(_has(row, metric) for metric in metrics):
            continue
        ours = {metric: estimate.value for metric, estimate in row.ours.items()}
        label = ", ".join(row.where.values()) or "all"
        for whose, values in (("printed", row.printed), ("released", row.released), ("ours", ours)):
            if any(values.get(metric) is not None for metric in metrics):
                cells = [_beside(values.get(m), row.printed.get(m), 2) for m in metrics]
                n = "" if whose == "printed" else f"{row.n:,}"
                table.add_row(Text(label), whose, n, *cells)
                label = ""
    return table


def _beside(value: float | None, printed: float | None, n_digits: int) -> str:
    if value is None:
        return "- "
    half = 0.5 * 10**-n_digits
    differs = printed is not None and abs(value - printed) > half + 1e-9
    return f"{value:.{n_digits}f}{_DIFFERS if differs else ' '}"


def _rated_parts(rated: Rated) -> Iterator[Table | str]:
    who = "people" if rated.is_people else f"{rated.rater}, a model and not people"
    yield f"Tables 3, 4 and 5, rated by {who}: mean ± standard error, {rated.n:,} answers"
    yield ""
    table = _table("", *_HEADERS.values(), n_left=2)
    for row in rated.rows:
        (label,) = row.where.values()
        if row.printed:
            printed = [_rating(row.printed.get(question), None) for question in QUESTIONS]
            table.add_row(Text(label), "printed", *printed)
            label = ""
        cells = [
            _rating((one.mean, one.error), row.printed.get(question))
            for question in QUESTIONS
            if (one := row.ours[question])
        ]
        whose = "people" if rated.is_people else "rater"
        table.add_row(Text(label), whose, *cells)
    yield table
    yield ""
    if rated.n_unknown:
        yield f"{rated.n_unknown:,} rated answers are not in the file and have no part."


def _rating(
    value: tuple[float | None, float | None] | None, printed: tuple[float, float] | None
) -> str:
    mean, error = value or (None, None)
    if mean is None:
        return "- "
    marked = _beside(mean, printed[0] if printed else None, 3)
    shown = "" if error is None else f"±{error:.2f}"
    # Without leading zeros seven of them fit into 100 columns.
    return re.sub(r"(?<!\d)0\.", ".", f"{marked[:-1]}{shown}{marked[-1]}")


def _validated(replica: Replica) -> Table:
    table = _table("rater", "question", "measure", "by", "printed", "r", "95 % interval", "n",
                   n_left=4)  # fmt: skip
    for one in replica.validations:
        table.add_row(
            Text(one.rater), one.question, _TITLES[one.metric], one.by,
            number(one.printed, ".2f"), number(one.correlation.value, ".2f"),
            interval_shown(one.correlation, ".2f"), f"{one.correlation.n:,}",
        )  # fmt: skip
    return table


def _table(*columns: str, n_left: int = 1) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    titles = ("", *columns) if n_left == 2 and columns[0] == "" else columns
    for place, title in enumerate(titles):
        table.add_column(title, justify="left" if place < n_left else "right", no_wrap=place > 0)
    return table


def replica_json(replica: Replica) -> dict[str, Any]:
    """As plain values, with all intervals."""
    found = replica.automatic
    return {
        "source": replica.source,
        "names": dict(replica.names),
        "lacking": list(replica.lacking),
        "automatic": found and {
            "n": found.n_answers,
            "n_empty": found.n_empty,
            "missing": dict(found.n_missing),
            "signature": found.signature,
            "rows": [_row_json(row) for row in found.rows],
            "matches": {metric: asdict(one) for metric, one in found.matches.items()},
        },
        "rated": [asdict(one) for one in replica.rated],
        "validation": [asdict(one) for one in replica.validations],
    }  # fmt: skip


def _row_json(row: Row) -> dict[str, Any]:
    ours: Mapping[str, Any] = {
        metric: {"value": e.value, "low": e.low, "high": e.high, "n": e.n}
        for metric, e in row.ours.items()
    }
    return {
        "where": dict(row.where), "n": row.n, "printed": dict(row.printed),
        "released": dict(row.released), "ours": ours,
    }  # fmt: skip
