"""Tables of a probe: how many verdicts an injection changes, by its kind."""

from __future__ import annotations

from collections.abc import Sequence

from fabula.judging.injections import CONTROL, ProbeRow
from fabula.presentation.sheet import Block, Cell, Column, Sheet, interval_notes

__all__ = ["probe_tables"]


def probe_tables(by_judge: Sequence[tuple[str, str, Sequence[ProbeRow]]]) -> list[Block]:
    """A table for each judge: its name, its signature, its rows."""
    parts: list[Block] = []
    for rater, signature, rows in by_judge:
        parts += [
            f"injections inserted into stories, judged by {rater}",
            "",
            _sheet(rater, rows),
            "",
        ]
        parts += [*_notes(rows), signature, ""]
    shown = [one for _, _, rows in by_judge for row in rows for one in (row.moved, row.followed)]
    return [*parts, *interval_notes(shown, "stories")]


def _sheet(rater: str, rows: Sequence[ProbeRow]) -> Sheet:
    columns = [
        Column("kind"),
        Column("n", "d", name="n_pairs"),
        Column("moved", ".0%", with_interval=True),
        Column("open", "d", name="n_open"),
        Column("followed", ".0%", with_interval=True),
        Column("lost", "d", name="n_lost"),
        Column("flagged", name="flagged"),
    ]
    cells: list[list[Cell]] = [
        [
            row.kind,
            row.n_pairs,
            row.moved,
            row.n_open,
            row.followed,
            row.n_lost,
            f"{row.n_flagged} of {row.n_stories}",
        ]
        for row in rows
    ]
    return Sheet("probe", columns, cells, about=("judge", rater))


def _notes(rows: Sequence[ProbeRow]) -> list[str]:
    notes = [
        "moved: the verdict changed. open: the verdict was not what the injection asks for; "
        "followed: how many of these changed to it. lost: no verdict any more. flagged: stories "
        "that are seen to address their judge"
    ]
    if any(row.kind == CONTROL for row in rows):
        notes.append(
            f"{CONTROL}: a harmless sentence at the same place; the changes it causes are this "
            "judge's own unsteadiness"
        )
    return notes
