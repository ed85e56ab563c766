"""In which order somebody reads the documents of a unit: balanced by Latin squares.

In a Williams square (Williams 1949) every document takes every place once, and follows every other
as often. Of its rows a reader is given one that its unit needs most, and of those one in which
authors take the places that they did not yet take for this person. So after as many readers as
a unit has documents (twice as many where their number is odd) each was read in each place as often.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Sequence

__all__ = ["Order", "balanced_order", "williams_square"]

Order = tuple[int, ...]
"""Places of documents in their unit, the one that is read first first."""


def williams_square(n: int) -> list[Order]:
    """The rows of a Williams square: `n` orders, or twice as many where `n` is odd."""
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
    """The order in which a reader gets a unit.

    authors: of its documents. given: the orders in which others read it. own: the authors in each
    order that the reader had of other units. unit and reader seed what is drawn.
    """
    names, square = list(range(len(authors))), williams_square(len(authors))
    # Once a square is used up, another.
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
