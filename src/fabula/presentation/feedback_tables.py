"""Tables of feedback measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fabula.presentation.sheet import Block, Cell, Column, Sheet, interval_notes
from fabula.reasons import explain
from fabula.tasks.feedback.answers import Answers
from fabula.tasks.feedback.feedback_scores import VALIDATED, Subset
from fabula.types import Estimate

_COLUMNS = {
    "length": "length", "perfect": "% PAI", "perfect_precision": "PAI prec",
    "perfect_precision_chance": "by chance", "repetition": "3-gramR",
    "repetition_imperfect": "w/o PAI", "overlap": "in story", "bertscore": "BERTSc.",
    "one_sentence": "1 sentence",
}  # fmt: skip
"""Labels as in Tables 1, 6 and 8."""
_SAYS = ("length", "perfect", "perfect_precision", "perfect_precision_chance")
"""Metrics of the first table of a cross; the others concern words."""
_WITHOUT = ("perfect_precision_chance",)
"""Shown without an interval."""


def score_tables(
    subsets: Sequence[Subset], crosses: Sequence[tuple[str, ...]], answers: Answers
) -> list[Block]:
    """A table for each cross of dimensions, in the paper's columns, then missing values."""
    parts: list[Block] = []
    columns = {
        name: title
        for name, title in _COLUMNS.items()
        if name != "bertscore" or subsets[0].values[name].n
    }
    for names in [(), *crosses]:
        chosen = [s for s in subsets if set(s.where) == set(names)]
        for part in (
            {k: v for k, v in columns.items() if (k in _SAYS) is says} for says in (True, False)
        ):
            sheet = _cross(names, chosen, part)
            parts += [sheet, *interval_notes(sheet.estimates(), "stories"), ""]
    parts.append(
        "PAI: says that the text is perfect as it is; prec: of those, the share of stories that "
        "were not corrupted, with the precision expected by chance beside it. 3-gramR: trigrams "
        "that also occur in another answer; in story: trigrams from the story."
    )
    for reason, n in sorted(answers.n_missing.items()):
        parts.append(f"missing: {n:,} answers, {explain(reason)}")
    return [*parts, subsets[0].values["repetition"].signature]


def _cross(names: Sequence[str], chosen: Sequence[Subset], columns: Mapping[str, str]) -> Sheet:
    head = [
        Column("*".join(names) or "all answers", name="subset"),
        Column("n", ","),
        Column("stories", ",", name="n_stories"),
    ]
    figures = [
        Column(title, ".0f" if name == "length" else ".2f", name not in _WITHOUT, name=name)
        for name, title in columns.items()
    ]
    rows: list[list[Cell]] = [
        [
            " ".join(subset.where[name] for name in names) or "all",
            subset.n,
            subset.n_stories,
            *(subset.values[name] for name in columns),
        ]
        for subset in chosen
    ]
    name = "-".join(names) or "all"
    return Sheet(name if "length" in columns else f"{name}-words", [*head, *figures], rows)


_SAID = {"perfect": ("says perfect", "is praise only"), "repetition": ("repetition", "is specific")}


def validation_table(found: Mapping[str, Estimate]) -> list[Block]:
    """How automatic measures correlate with people's ratings."""
    columns = [
        Column("measure"),
        Column("people: the feedback", name="people"),
        Column("n", ","),
        Column("stories", ",", name="n_stories"),
        Column("Pearson", "+.2f", with_interval=True),
        Column("paper", "+.2f"),
    ]
    rows: list[list[Cell]] = []
    for item, one in found.items():
        measure, printed = VALIDATED[item]
        rows.append([*_SAID[measure], one.n, one.n_units, one, printed])
    sheet = Sheet("validation", columns, rows)
    return ["", sheet, *interval_notes(found.values(), "stories")]


def subset_row(subset: Subset) -> dict[str, Any]:
    """A subset as plain values, with its intervals."""
    return {
        "where": dict(subset.where),
        "n": subset.n,
        "n_stories": subset.n_stories,
        "values": {
            name: {"value": e.value, "low": e.low, "high": e.high, "n": e.n, "n_stories": e.n_units}
            for name, e in subset.values.items()
        },
    }
