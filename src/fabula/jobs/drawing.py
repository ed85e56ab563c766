"""Draw some texts of many, for instruments that compare texts with each other or cost money."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabula.jobs.job import Stream
from fabula.jobs.result import Result, Row
from fabula.settings import Between, Settings, SettingsError, of_field, seed_setting, setting

_CELLS = "model,method,prompt,shots"
_N_LISTED = 20
"""Groups that are listed one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawSettings(Settings):
    """How many texts or pieces are drawn, and from which groups."""

    n_each: int | None = setting(
        None,
        help="Draw N texts of each group, or all of a group that has fewer.",
        option="each",
        check=Between(1),
    )
    pieces: int | None = setting(
        None,
        help="Draw N pieces of feedback in all (1,920 in the paper), equally many of each cell.",
        check=Between(1),
    )
    by: str | None = of_field(
        "Field to group the texts by, such as author or model; of feedback, fields whose "
        "values together make a cell.",
        default_text=f"all texts are one group; of feedback, {_CELLS}",
    )
    out: Path = setting(help="Write what was drawn here (.jsonl); feedback is for `study new`.")
    seed: int = seed_setting()

    def check_together(self) -> None:
        if (self.n_each is None) == (self.pieces is None):
            raise SettingsError("n_each", "or, of feedback, `pieces` is required, but not both")


@dataclass(frozen=True, slots=True, repr=False)
class Drawn(Result):
    """What was drawn, of how many, and where it was written."""

    drawn: Sequence[Row]
    said: Sequence[str]
    counts: Mapping[str, Any]

    def rows(self) -> list[Row]:
        return list(self.drawn)

    def lines(self) -> Sequence[str]:
        return self.said

    def to_json(self) -> dict[str, Any]:
        return dict(self.counts)


def draw(sources: Stream, settings: DrawSettings) -> Drawn:
    """Draw texts of SOURCES at random, the same number of each group.

    For commands that keep all texts in memory, as `diversity` and `report` do, or pay for each, as
    `judge` does: SOURCES may have millions of texts, of which only the drawn ones are kept. With
    the same seed, the same texts are drawn whatever their order.

    With `pieces`, SOURCES are files that `feedback elicit` wrote, and pieces of feedback are drawn
    for people to rate, evenly from cells and stories; a cell is a model, a corruption, a prompt and
    a number of examples. Withheld feedback and models' refusals are left out. If a cell has too few
    pieces, all are used, and the other cells supply more. Source: Rashkin et al. 2025, section 6.

    Raises `InputError`, `SettingsError`.
    """
    from fabula.store import write_rows

    found = _texts(sources, settings) if settings.pieces is None else _pieces(sources, settings)
    write_rows(settings.out, found.drawn)
    return found


def _texts(sources: Stream, settings: DrawSettings) -> Drawn:
    from fabula.tasks.random_draw import draw_texts
    from fabula.text import check_ids

    by = settings.by
    found = draw_texts(sources, settings.n_each or 1, by=by, seed=settings.seed)
    check_ids(found.documents)
    rows = [{**one.fields, "id": one.id, "text": one.text} for one in found.documents]
    there, drawn = found.n_there, found.n_drawn
    groups, n_there = [] if by is None else sorted(there), sum(there.values())
    lines = [f"{len(rows):,} of {n_there:,} texts"]
    if by is not None:
        lines[0] += f", from {len(groups):,} groups ({by})"
        lines += [f"  {one}: {drawn[one]:,} of {there[one]:,}" for one in groups[:_N_LISTED]]
    if len(groups) > _N_LISTED:
        lines.append(f"  and {len(groups) - _N_LISTED:,} more groups")
    each = [{"group": one, "n_there": there[one], "n_drawn": drawn[one]} for one in groups]
    counts = {"out": str(settings.out), "n": len(rows), "n_there": n_there, "groups": each}
    return Drawn(rows, [*lines, f"written: {settings.out}"], counts)


def _pieces(sources: Stream, settings: DrawSettings) -> Drawn:
    from fabula.jobs.feedback import feedback_rows
    from fabula.reasons import explain
    from fabula.tasks.random_draw import sample_evenly

    if not sources.names:
        raise SettingsError("pieces", "needs files that `fabula feedback elicit` wrote")
    by = tuple(dict.fromkeys(name.strip() for name in (settings.by or _CELLS).split(",")))
    rows = feedback_rows(map(Path, sources.names), whole=True)
    found = sample_evenly(rows, settings.pieces or 1, by, settings.seed)
    drawn = [cell.n_drawn for cell in found.cells]
    least, most = min(drawn), max(drawn)
    each = f"{most:,} each" if least == most else f"{least:,} to {most:,} each"
    lines = [
        f"{len(found.rows):,} of {found.n_there:,} pieces, from {len(found.cells):,} cells "
        f"({', '.join(by)}): {each}",
        *(
            f"fully used: {', '.join(cell.values)} ({cell.n_drawn:,})"
            for cell in found.cells
            if cell.n_drawn == cell.n_there and cell.n_drawn < most - 1
        ),
        f"{found.n_stories:,} stories, each in {found.n_of_story:,} pieces at most",
        *(f"left out: {n:,}, {explain(why)}" for why, n in found.left_out.items()),
        f"written: {settings.out}",
    ]
    counts: Row = {"out": str(settings.out), "n": len(found.rows)}
    for name in ("n_there", "n_stories", "n_of_story", "left_out"):
        counts[name] = getattr(found, name)
    counts["cells"] = [
        dict(zip(by, cell.values, strict=True)) | {"n_there": cell.n_there, "n_drawn": cell.n_drawn}
        for cell in found.cells
    ]
    return Drawn([dict(row) for row in found.rows], lines, counts)
