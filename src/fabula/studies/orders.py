"""The reading order of a unit's documents, balanced by Latin squares.

In a Williams square (Williams 1949) every document occupies every position once, and follows every
other equally often. A reader gets one of the rows that the unit needs most, preferably one in which
authors take positions that they have not yet had for this reader. After as many readers as a unit
has documents (twice as many for an odd number), each document has been read in each position
equally often.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Sequence

Order = tuple[int, ...]
"""Indexes of documents in their unit, in reading order."""


def williams_square(n: int) -> list[Order]:
    """Return the rows of a Williams square: `n` orders, or `2n` if `n` is odd."""
    first = [step // 2 + 1 if step % 2 else (n - step // 2) % n for step in range(n)]
    rows = [tuple((place + shift) % n for place in first) for shift in range(n)]
    return rows if n % 2 == 0 else [*rows, *(row[::-1] for row in rows)][: 2 * n if n > 1 else 1]


def balanced_order(
    authors: Sequence[str | None],
    given: Sequence[Order],
    own: Iterable[Sequence[str | None]],
    *,
    unit: str,
    reader: str,
) -> Order:
    """Return the order in which a reader gets a unit.

    authors: author of each document. given: the orders used by other readers of the unit. own: the
    authors in each order of the reader's other units. The random choice is seeded by unit and
    reader.
    """
    names, square = list(range(len(authors))), williams_square(len(authors))
    # Once a square is used up, start another.
    random.Random(f"{unit} {len(given) // len(square)}").shuffle(names)
    placed = Counter((place, k) for order in given for k, place in enumerate(order))
    used = Counter(given)
    mine = Counter((name, k) for order in own for k, name in enumerate(order) if name)

    def cost(row: Order) -> tuple[int, int, int, bytes]:
        return (
            sum(int(placed[place, k]) for k, place in enumerate(row)),
            used[row],
            sum(int(mine[authors[place] or "", k]) for k, place in enumerate(row)),
            hashlib.sha256(f"{reader} {row}".encode(errors="replace")).digest(),
        )

    return min((tuple(names[place] for place in row) for row in square), key=cost)
