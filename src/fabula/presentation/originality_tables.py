"""Scores of originality, and groups of them beside each other."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from fabula.measures.comparison import Comparison
from fabula.presentation.sheet import Block, Cell, Column, Missing, Sheet, interval_notes
from fabula.reasons import explain

__all__ = ["comparison_tables", "originality_table"]


def originality_table(
    rows: Sequence[tuple[str, int, float | None, float | None, str | None]],
    levels: Sequence[str],
    signature: str,
) -> list[Block]:
    """Texts with their scores: (id, words, index, uniqueness at the lowest L, missing reason)."""
    columns = [
        Column("text"),
        Column("words", ",", name="n_words"),
        Column(f"Creativity Index, of {len(levels)}", ".3f", name="creativity_index"),
        Column(f"{levels[0]}-uniqueness", ".1%"),
    ]
    cells: list[list[Cell]] = [
        [name, n_words, _index(index, reason), lowest]
        for name, n_words, index, lowest, reason in rows
    ]
    footer = []
    values = [index for _, _, index, _, _ in rows if index is not None]
    if len(rows) > 1 and values:
        n_missing = len(rows) - len(values)
        footer.append(
            f"mean Creativity Index {statistics.fmean(values):.3f} over {_count(len(values))}"
            + (f", {n_missing:,} without one" if n_missing else "")
        )
    return [Sheet("scores", columns, cells, many="texts"), *footer, signature]


def _index(value: float | None, reason: str | None) -> Cell:
    return Missing(explain(reason)) if value is None else value


def comparison_tables(comparison: Comparison) -> list[Block]:
    """Groups with their means, then pairs with their tests."""
    groups = Sheet(
        "groups",
        [
            Column(comparison.field),
            Column("texts", ","),
            Column("missing", ","),
            Column("Creativity Index", ".3f", with_interval=True, name="creativity_index"),
        ],
        [
            [group.name, group.index.n, sum(group.missing.values()), group.index]
            for group in comparison.groups
        ],
    )
    pairs = Sheet(
        "pairs",
        [
            Column("A against B"),
            Column("(A - B) / B, %", "+.1f", with_interval=True, name="percent"),
            Column("P(A > B)", ".3f", name="superiority"),
            Column("p (Mann-Whitney)", ".2g", name="p"),
            Column("p (Holm)", ".2g", name="p_holm"),
        ],
        [
            [
                f"{pair.a} : {pair.b}",
                pair.difference.percent,
                pair.difference.superiority,
                pair.difference.p,
                pair.p_holm,
            ]
            for pair in comparison.pairs
        ],
    )
    reasons = [
        f"missing in {group.name}: {n:,} {explain(reason)}"
        for group in comparison.groups
        for reason, n in group.missing.items()
    ]
    tests: Block = pairs if comparison.pairs else "one group, nothing to compare"
    notes = interval_notes([*groups.estimates(), *pairs.estimates()], "texts")
    return [groups, *reasons, "", tests, *notes, "", comparison.signature]


def _count(n_texts: int) -> str:
    return f"{n_texts:,} text" if n_texts == 1 else f"{n_texts:,} texts"
