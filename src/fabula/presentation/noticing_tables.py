"""Whether planted faults are noticed, by kind and by reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from fabula.presentation.sheet import Block, Cell, Column, Sheet, interval_notes
from fabula.reasons import explain
from fabula.tasks.feedback.noticed_faults import NoticeScore

__all__ = ["noticing_tables"]


def noticing_tables(scores: Sequence[NoticeScore], status: Mapping[str, int]) -> list[Block]:
    """A row for each kind, writer and reader; then how many faults are known to be noticed."""
    columns = [
        Column("kind of fault", name="method"),
        Column("written by", name="written_by"),
        Column("read by", name="reader"),
        Column("stories", ",d", name="n_stories"),
        Column("checked", ",d", name="n_checked"),
        Column("answers", ",d", name="n"),
        Column("missing", ",d", name="n_missing"),
        Column("noticed", ".2f", with_interval=True),
    ]
    rows: list[list[Cell]] = [
        [
            one.method,
            one.written_by,
            one.reader,
            one.n_stories,
            one.n_checked,
            one.noticed.n,
            sum(one.missing.values()),
            one.noticed,
        ]
        for one in scores
    ]
    sheet = Sheet("noticed", columns, rows)
    parts: list[Block] = [sheet, *interval_notes(sheet.estimates(), "stories")]
    parts.append(
        "noticed: of the answers, the share that says something is wrong and copies words from the "
        "changed place; of original stories, the share that says something is wrong."
    )
    missing = Counter[str]()
    for one in scores:
        missing.update(one.missing)
    parts += [f"missing: {n:,} answers, {explain(why)}" for why, n in sorted(missing.items())]
    known = ", ".join(f"{n:,} {name}" for name, n in status.items())
    parts.append(f"changed stories: {known or 'none'}")
    return [*parts, scores[0].noticed.signature]
