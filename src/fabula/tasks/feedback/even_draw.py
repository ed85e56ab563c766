"""Draw pieces of feedback evenly for people to rate.

Rashkin et al. 2025, section 6, had 1,920 pieces rated, the same number for each model, corruption,
prompt and number of examples. Here stories are used evenly too: nobody reads two pieces about one
story, so a frequent story requires many people.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fabula.errors import InputError
from fabula.text.feedback_pieces import count_withheld, feedback_id, is_withheld

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cell:
    """Pieces with the same value in all fields."""

    values: tuple[str, ...]
    n_there: int
    n_drawn: int


@dataclass(frozen=True, slots=True)
class Sample:
    """The sampled rows, in their order, and how evenly they are distributed."""

    rows: Sequence[Row]
    cells: Sequence[Cell]
    n_there: int
    n_stories: int
    n_of_story: int
    """The largest number of pieces about one story."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Rows without feedback, by reason."""


def sample_evenly(rows: Sequence[Row], n: int, by: Sequence[str], seed: int) -> Sample:
    """Draw `n` pieces, as evenly as possible over cells and over stories.

    One piece is drawn from each cell in turn until there are `n`, always about one of the stories
    that were drawn least. Missing pieces and refusals are skipped. Raises `InputError`.
    """
    given = [row for row in rows if not is_withheld(row)]
    if n > len(given):
        raise InputError(f"`n_pieces` {n:,}: there are only {len(given):,} pieces to sample from")
    pools: dict[tuple[str, ...], list[int]] = {}
    for place, row in enumerate(given):
        lacking = [name for name in by if row.get(name) is None]
        if lacking:
            raise InputError(
                f"{feedback_id(row)}: has no {lacking[0]!r}, which even sampling needs"
            )
        pools.setdefault(tuple(str(row[name]) for name in by), []).append(place)
    ranks = [_draw(seed, feedback_id(row)) for row in given]
    left = {cell: sorted(places, key=ranks.__getitem__) for cell, places in pools.items()}
    turns = sorted(left, key=lambda cell: _draw(seed, repr(cell)))
    used: Counter[str] = Counter()
    drawn: set[int] = set()
    while len(drawn) < n:
        for cell in turns[: n - len(drawn)]:
            place = min(left[cell], key=lambda k: used[str(given[k]["story_id"])])
            left[cell].remove(place)
            used[str(given[place]["story_id"])] += 1
            drawn.add(place)
        turns = [cell for cell in turns if left[cell]]
    cells = [
        Cell(cell, len(places), sum(place in drawn for place in places))
        for cell, places in sorted(pools.items())
    ]
    return Sample(
        rows=[given[place] for place in sorted(drawn)],
        cells=cells,
        n_there=len(given),
        n_stories=len(used),
        n_of_story=max(used.values()),
        left_out=count_withheld(rows),
    )


def _draw(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed} {name}".encode(errors="replace")).digest()
