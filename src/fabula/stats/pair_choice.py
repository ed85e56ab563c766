"""Drawing which pairs to compare, when the budget does not allow all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

CHOICE = "cycles-1"
"""How pairs are drawn, for signatures."""

_N_CYCLES = 2

Pair = tuple[int, int]


def _parts(pairs: Sequence[Pair]) -> list[list[int]]:
    """The connected components of the pairs, each in the order of its first pair."""
    part_of: dict[int, list[int]] = {}
    for a, b in pairs:
        one, other = part_of.setdefault(a, [a]), part_of.setdefault(b, [b])
        if one is not other:
            one += other
            for thing in other:
                part_of[thing] = one
    return list({id(part): part for part in part_of.values()}.values())


def least_pairs(pairs: Sequence[Pair]) -> int:
    """The minimum number of these pairs that connects everything they connect."""
    return sum(len(part) - 1 for part in _parts(pairs))


def drawn_pairs(pairs: Sequence[Pair], n_pairs: int, rng: np.random.Generator) -> list[Pair]:
    """`n_pairs` of the pairs: random cycles through each part, then others at random.

    The first pairs connect everything, and each thing is compared about equally often. A smaller
    `n_pairs` gives the first pairs of a larger one.

    pairs: all pairs that may be asked; any two things of a part are a pair.
    """
    known = set(pairs)
    chosen: dict[Pair, None] = {}
    for _ in range(_N_CYCLES):
        paths: list[Pair] = []
        closing: list[Pair] = []
        for part in _parts(pairs):
            order = [int(thing) for thing in rng.permutation(part)]
            paths += pairwise(order)
            closing.append((order[-1], order[0]))
        both = ((a, b) if (a, b) in known else (b, a) for a, b in [*paths, *closing])
        chosen |= dict.fromkeys(both)
    left = sorted(known - chosen.keys())
    return [*chosen, *(left[k] for k in rng.permutation(len(left)))][:n_pairs]
