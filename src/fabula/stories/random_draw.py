"""Draw texts of many: at random, or pieces of feedback evenly, for people to rate.

Rashkin et al. 2025, section 6, had 1,920 pieces rated, the same number for each model, corruption,
prompt and number of examples. Here stories are used evenly too: nobody reads two pieces about one
story, so a frequent story requires many people.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.text import check_documents
from fabula.text.feedback_pieces import count_missing, feedback_id, why_missing


@dataclass(frozen=True, slots=True)
class DrawnTexts:
    """Texts drawn from groups, in the order in which they were read."""

    documents: tuple[Document, ...]
    n_there: Mapping[str, int]
    """By group, how many texts were read."""
    n_drawn: Mapping[str, int]


def draw_texts(
    documents: Iterable[Document], n_each: int, *, by: str | None = None, seed: int = 0
) -> DrawnTexts:
    """Draw `n_each` texts of each group at random, or all of a group that has fewer.

    A text is drawn if a hash of the seed, its id and its words is among the smallest of its group,
    so the same texts are drawn whatever their order, and those of a larger draw include them. Takes
    memory for the drawn texts only. Without `by` all texts are one group, named "". Raises
    `InputError` if a text lacks the field `by`.
    """
    kept: dict[str, list[tuple[int, int, Document]]] = {}
    n_there: Counter[str] = Counter()
    for place, document in enumerate(check_documents(documents)):
        group = "" if by is None else document.group(by)
        n_there[group] += 1
        heap = kept.setdefault(group, [])
        # The largest rank is on top, and leaves first.
        named = f"{seed} {len(document.id)} {document.id}{document.text}"
        rank = hashlib.blake2b(named.encode(errors="replace"), digest_size=8).digest()
        entry = -int.from_bytes(rank, "big"), place, document
        if len(heap) < n_each:
            heapq.heappush(heap, entry)
        else:
            heapq.heappushpop(heap, entry)
    drawn = sorted((place, document) for heap in kept.values() for _, place, document in heap)
    n_drawn = {group: len(heap) for group, heap in kept.items()}
    return DrawnTexts(tuple(document for _, document in drawn), n_there, n_drawn)


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
    that were drawn least; the last turn is of those cells that leave every field's values drawn
    equally often, or once more. Missing pieces and refusals are skipped. Raises `InputError`.
    """
    pieces = [row for row in rows if why_missing(row) is None]
    if n > len(pieces):
        raise InputError(f"`pieces` {n:,}: there are only {len(pieces):,} pieces to sample from")
    pools: dict[tuple[str, ...], list[int]] = {}
    for place, row in enumerate(pieces):
        if lack := [name for name in by if row.get(name) is None]:
            raise InputError(f"{feedback_id(row)}: has no {lack[0]!r}, which even sampling needs")
        pools.setdefault(tuple(str(row[name]) for name in by), []).append(place)
    ranks = [_draw(seed, feedback_id(row)) for row in pieces]
    left = {cell: sorted(places, key=ranks.__getitem__) for cell, places in pools.items()}
    turns = sorted(left, key=lambda cell: _draw(seed, repr(cell)))
    used: Counter[str] = Counter()
    drawn: set[int] = set()
    counts: Counter[tuple[int, str]] = Counter()
    while len(drawn) < n:
        for cell in _even_cells(turns, n - len(drawn), counts):
            place = min(left[cell], key=lambda k: used[str(pieces[k]["story_id"])])
            left[cell].remove(place)
            used[str(pieces[place]["story_id"])] += 1
            drawn.add(place)
        turns = [cell for cell in turns if left[cell]]
    cells = [Cell(c, len(some), len(drawn.intersection(some))) for c, some in sorted(pools.items())]
    chosen, n_of_story = [pieces[place] for place in sorted(drawn)], max(used.values())
    return Sample(chosen, cells, len(pieces), len(used), n_of_story, count_missing(rows))


def _even_cells(
    cells: Sequence[tuple[str, ...]], n: int, counts: Counter[tuple[int, str]]
) -> Sequence[tuple[str, ...]]:
    """n of the cells, whose fields' values are then as evenly drawn as they can be; adds to counts.

    The least drawn first; then cells are exchanged while that lowers the sum of squared counts.
    """
    if n >= len(cells):
        for cell in cells:
            counts.update(enumerate(cell))
        return cells
    chosen: list[tuple[str, ...]] = []
    rest = list(cells)
    for _ in range(n):
        best = min(rest, key=lambda cell: sum(counts[pair] for pair in enumerate(cell)))
        rest.remove(best)
        chosen.append(best)
        counts.update(enumerate(best))

    def gain(a: tuple[str, ...], b: tuple[str, ...]) -> int:
        fields = enumerate(zip(a, b, strict=True))
        return sum(counts[k, x] - counts[k, y] - 1 for k, (x, y) in fields if x != y)

    while True:
        pairs = product(enumerate(chosen), enumerate(rest))
        most, i, j = max((gain(a, b), i, j) for (i, a), (j, b) in pairs)
        if most <= 0:
            break
        counts.subtract(enumerate(chosen[i]))
        counts.update(enumerate(rest[j]))
        chosen[i], rest[j] = rest[j], chosen[i]
    return chosen


def _draw(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed} {name}".encode(errors="replace")).digest()
