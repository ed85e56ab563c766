"""Originality scores, and comparisons of groups of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from fabula.errors import explain
from fabula.measures.groups import Distribution
from fabula.presentation.sheet import Block, Cell, Column, Displayed, Sheet, known

_QUOTE_CHARS = 60


def originality_table(
    rows: Sequence[tuple[str, int, float | None, float | None, str | None]],
    levels: Sequence[str],
    signature: str,
    own: Distribution | None = None,
) -> list[Block]:
    """Texts with their scores: (id, words, index, uniqueness at the lowest L, missing reason).

    `own`: the index of the reference's own documents, to which each text is compared.
    """
    columns = [
        Column("text"),
        Column("words", ",", name="n_words"),
        Column(f"Creativity Index, of {len(levels)}", ".3f", name="creativity_index"),
        Column(f"{levels[0]}-uniqueness", ".1%", name=f"uniqueness_{levels[0]}"),
    ]
    cells: list[list[Cell]] = [
        [name, n_words, known(index, explain(reason)), lowest]
        for name, n_words, index, lowest, reason in rows
    ]
    if own is not None:
        columns.append(Column("above", ".0%", name="share_below"))
        for row, (_, _, index, _, _) in zip(cells, rows, strict=True):
            row.append(None if index is None else own.share_below(index))
    footer = []
    values = [index for _, _, index, _, _ in rows if index is not None]
    if len(rows) > 1 and values:
        n_missing = len(rows) - len(values)
        footer.append(
            f"mean Creativity Index {statistics.fmean(values):.3f} over {len(values):,} text"
            + ("" if len(values) == 1 else "s")
            + (f", {n_missing:,} without one" if n_missing else "")
        )
    if own is not None:
        footer.append(
            f"above: the share of {own.n:,} documents of the reference itself that score less"
        )
    return [Sheet("scores", columns, cells, many="texts"), *footer, signature]


def passages_table(
    passages: Sequence[dict[str, Any]], n_passages: int, n_commonplaces: int
) -> list[Block]:
    """The first of the borrowed passages, the least probable first; empty if there are none."""
    if not n_passages and not n_commonplaces:
        return []
    common = f"{n_commonplaces:,} common phrase" + ("s" if n_commonplaces != 1 else "")
    if not passages:
        return ["", f"no borrowed passage; {common}"]
    columns = [Column("passage", cut=True, of="quote"), _TEXT, *_WORDS, _PLACES, _SOURCE]
    if len({one["id"] for one in passages}) == 1:
        columns.remove(_TEXT)
    n_more = n_passages - len(passages)
    more = f"and {n_more:,} more borrowed passages; " if n_more else ""
    return ["", Sheet.of("passages", passages, columns), f"{more}{common}"]


def ranked_sheet(passages: Sequence[dict[str, Any]]) -> list[Block]:
    """All borrowed passages of all texts with their ranks, as files store them."""
    if not passages:
        return []

    def passage(one: dict[str, Any]) -> Cell:
        """In full in CSV, elsewhere as many words as fit on a line."""
        quote: str = one["quote"]
        cut = quote[:_QUOTE_CHARS].rpartition(" ")[0] + " ..."
        return Displayed(quote, cut) if len(quote) > _QUOTE_CHARS else quote

    columns = [
        _TEXT,
        Column("rank", "d"),
        Column("passage", of=passage),
        *_WORDS,
        Column("bits over chance", ".0f", name="over_chance", of=lambda p: known(p["over_chance"])),
        _PLACES,
        Column("documents", ",", name="n_documents"),
        _SOURCE,
    ]
    return [Sheet.of("passages", passages, columns)]


_TEXT = Column("text", once=True, of="id")
_WORDS = (
    Column("words", "d", name="n_words"),
    Column("word for word", "d", name="n_verbatim"),
    Column("bits", ".0f", of=lambda one: known(one["bits"])),
)
_PLACES = Column("places", ",", name="count")
_SOURCE = Column("also found in", name="source")
