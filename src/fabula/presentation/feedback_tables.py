"""Tables of what was measured of feedback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from fabula.presentation.tables import interval_notes, number, render, shown_interval
from fabula.tasks.feedback.answers import Answers
from fabula.tasks.feedback.scoring import Subset
from fabula.tasks.feedback.validation import VALIDATED
from fabula.types import Estimate

__all__ = ["score_tables", "subset_row", "validation_table"]

_COLUMNS = {
    "length": "length",
    "perfect": "% PAI",
    "perfect_precision": "PAI prec",
    "repetition": "3-gramR",
    "repetition_imperfect": "w/o PAI",
    "overlap": "in story",
    "bertscore": "BERTSc.",
    "one_sentence": "1 sentence",
}
"""As Table 1, 6 and 8 call them."""


def score_tables(
    subsets: Sequence[Subset], crosses: Sequence[tuple[str, ...]], answers: Answers
) -> str:
    """A table for each cross of dimensions, in the paper's columns, then what is missing."""
    parts: list[Table | str] = []
    columns = {
        name: title
        for name, title in _COLUMNS.items()
        if name != "bertscore" or subsets[0].values[name].n
    }
    for names in [(), *crosses]:
        chosen = [s for s in subsets if set(s.where) == set(names)]
        table = Table(box=None, pad_edge=False)
        table.add_column("*".join(names) or "all answers", overflow="fold", min_width=12)
        table.add_column("n", justify="right")
        table.add_column("stories", justify="right")
        for title in columns.values():
            table.add_column(title, justify="right", no_wrap=True)
        for subset in chosen:
            label = " ".join(subset.where[name] for name in names) or "all"
            cells = [_shown(name, subset.values) for name in columns]
            table.add_row(Text(label), f"{subset.n:,}", f"{subset.n_stories:,}", *cells)
        parts += [table, ""]
    parts.append(
        "PAI: says that the text is perfect as it is; prec: of those, how many stories were not "
        "corrupted, and in brackets what saying so of any story would get by chance. 3-gramR: "
        "trigrams of another answer too; in story: trigrams of the story."
    )
    for reason, n in sorted(answers.n_missing.items()):
        parts.append(f"missing: {n:,} answers, {reason}")
    return render(*parts, subsets[0].values["repetition"].signature)


_SAID = {
    "perfect": ("says perfect", "is praise only"), "repetition": ("repetition", "is specific"),
}  # fmt: skip


def validation_table(found: Mapping[str, Estimate]) -> str:
    """How measures without people go together with what people said."""
    table = Table(box=None, pad_edge=False)
    titles = ("measure", "people: the feedback", "n", "stories", "Pearson", "95 %", "paper")
    for k, title in enumerate(titles):
        table.add_column(title, justify="right" if k > 1 else "left")
    for item, one in found.items():
        measure, printed = VALIDATED[item]
        measure, asked = _SAID[measure]
        table.add_row(
            measure, asked, f"{one.n:,}", f"{one.n_units:,}", number(one.value, "+.2f"),
            shown_interval(one, "+.2f"), f"{printed:+.2f}",
        )  # fmt: skip
    return render("", table, *interval_notes(found.values(), "stories"))


def _shown(name: str, values: Mapping[str, Estimate]) -> str:
    shown = number(values[name].value, ".0f" if name == "length" else ".2f")
    if name == "perfect_precision" and values[name].n:
        return f"{shown} ({number(values['perfect_precision_chance'].value, '.2f')})"
    return shown


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
