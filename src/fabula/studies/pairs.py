"""Preferences between stories shown side by side.

Which stories are shown together, the questions, and the answers in the form of `judge --pairwise`.
Either two are compared, or the best and the worst of four are named (best-worst scaling; Louviere,
Flynn and Marley 2015). The latter answers five of the six comparisons of four stories: the best is
preferred to the three others, and the two others to the worst.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from fabula.errors import InputError
from fabula.scales import Scale
from fabula.stats.ranking import Pair, drawn_pairs, least_pairs
from fabula.types import Document, Item, Measurement

TIE = "Neither"
BEST, WORST = "best", "worst"
"""Parts used for questions about four stories."""
_BETWEEN = " : "
_SETS_A_STORY = 2
"""Sets per story.

Kiritchenko and Mohammad 2017: with twice as many sets of four as texts, rankings are as reliable as
those from many more ratings.
"""


def options_of(n: int) -> tuple[str, ...]:
    """Return the names of n stories shown together."""
    return tuple(f"Story {place}" for place in range(1, n + 1))


def pair_key(*documents: Document) -> str:
    """Return the id of stories shown together; for two, the same as a judge uses."""
    return _BETWEEN.join(one.id for one in documents)


def pair_item(item: Item, n: int = 2, *, ties: bool = False) -> Item:
    """Turn a question about one story into a question about n of them."""
    options = (*options_of(n), TIE) if ties else options_of(n)
    return replace(item, scale=Scale("choice", options))


def pairs_within(sets: Sequence[Sequence[Document]]) -> dict[str, tuple[Document, Document]]:
    """Return all pairs of stories shown together, by the pair id that a judge uses."""
    return {pair_key(*two): two for one in sets for two in combinations(one, 2)}


def chosen_pairs(
    groups: Sequence[Sequence[Document]], n: int | None, seed: int
) -> list[tuple[Document, Document]]:
    """Return all pairs of stories within groups, or `n` of them.

    Pairs that connect the stories of each group are drawn first, using each story about equally
    often, then others at random. Raises `InputError`.
    """
    stories = [one for group in groups for one in group]
    starts = np.cumsum([0, *map(len, groups)]).tolist()
    every: list[Pair] = [
        pair
        for start, group in zip(starts, groups, strict=False)
        for pair in combinations(range(start, start + len(group)), 2)
    ]
    if n is not None and n < len(every):
        if n < (least := least_pairs(every)):
            raise InputError(
                f"max_pairs: at least {least:,} pairs are needed to connect all stories"
            )
        every = sorted(drawn_pairs(every, n, np.random.default_rng([seed, 3])))
    return [(stories[a], stories[b]) for a, b in every]


def chosen_sets(
    groups: Sequence[Sequence[Document]], size: int, n: int | None, seed: int
) -> list[tuple[Document, ...]]:
    """Return sets of `size` stories of a group: all, or `n`, or twice as many as stories.

    Every story is in about the same number of sets, every pair in a group appears together about
    equally often, and all stories of a group are connected. Raises `InputError`.
    """
    drawn: list[tuple[Document, ...]] = []
    shares = _shares(groups, size, n)
    for group, share in zip(groups, shares, strict=True):
        places = [*combinations(range(len(group)), size)]
        if share < len(places):
            # Each group is drawn separately, so that its sets stay the same when other groups are
            # added.
            own = zlib.crc32("\n".join(one.id for one in group).encode(errors="replace"))
            rng = np.random.default_rng([seed, 4, own])
            places = sorted(_balanced_sets(len(group), size, share, rng))
        drawn += [tuple(group[place] for place in one) for one in places]
    return drawn


def _shares(groups: Sequence[Sequence[Document]], size: int, n: int | None) -> list[int]:
    """Return the number of sets per group. Raises `InputError` if too few to connect a group."""
    every = [sum(1 for _ in combinations(range(len(group)), size)) for group in groups]
    least = [-(-(len(group) - 1) // (size - 1)) for group in groups]
    usual = [min(of, _SETS_A_STORY * len(group)) for of, group in zip(every, groups, strict=True)]
    if n is None:
        return usual
    if n < sum(least):
        raise InputError(
            f"max_pairs: at least {sum(least):,} sets are needed to connect all stories"
        )
    shares = least
    # Add one at a time, to the group with the fewest sets for its size.
    for _ in range(min(n, sum(every)) - sum(least)):
        open_ = [k for k, share in enumerate(shares) if share < every[k]]
        shares[min(open_, key=lambda k: shares[k] / len(groups[k]))] += 1
    return shares


def _balanced_sets(
    n_stories: int, size: int, n: int, rng: np.random.Generator
) -> set[tuple[int, ...]]:
    """Return `n` different sets: first a connecting chain, then those least seen together."""
    used: Counter[int] = Counter()
    together: Counter[Pair] = Counter()
    sets: set[tuple[int, ...]] = set()

    def add(members: Sequence[int]) -> None:
        sets.add(tuple(sorted(members)))
        used.update(members)
        together.update(combinations(sorted(members), 2))

    order = rng.permutation(n_stories).tolist()
    for start in range(0, n_stories - 1, size - 1):
        add(order[min(start, n_stories - size) :][:size])
    while len(sets) < n:
        rank = rng.permutation(n_stories).tolist()
        members = [min(range(n_stories), key=lambda k: (used[k], rank[k]))]
        while len(members) < size:
            left = [k for k in range(n_stories) if k not in members]
            met = {k: sum(together[min(k, m), max(k, m)] for m in members) for k in left}
            members.append(min(left, key=lambda k: (met[k], used[k], rank[k])))
        while tuple(sorted(members)) in sets:
            # All least-seen sets have been drawn: any other is as good.
            members = rng.choice(n_stories, size, replace=False).tolist()
        add(members)
    return sets


def preferences(best: int | None, worst: int | None, n: int) -> Iterator[tuple[int, int]]:
    """Yield the pairwise preferences in an answer about n documents.

    Each is the index of the preferred document and that of the other. None means not answered.
    """
    others = [place for place in range(n) if place not in (best, worst)]
    if best is not None:
        yield from ((best, place) for place in others)
        if worst is not None:
            yield best, worst
    if worst is not None:
        yield from ((place, worst) for place in others)


def said_of(pair: tuple[int, int], preferred: int | None, order: Sequence[int]) -> list[str | None]:
    """Return an answer about two documents in a judge's format, by the order they were shown in.

    The result is [straight, turned]. `preferred` is one of the two indexes, or None for neither.
    """
    first, second = pair
    is_straight = order.index(first) < order.index(second)
    shown_first = first if is_straight else second
    said = "tie" if preferred is None else "A" if preferred == shown_first else "B"
    return [said, None] if is_straight else [None, said]


@dataclass(frozen=True, slots=True)
class Compared:
    """One participant's answer, and others' answers to the same question about the same pair."""

    item: str
    document_id: str
    rater: str
    n_same: int
    n_others: int


def compared_answers(found: Sequence[Measurement]) -> list[Compared]:
    """Return each answer that has others to compare with; "neither" agrees only with "neither"."""
    asked: dict[tuple[str, str], list[tuple[str, object]]] = {}
    for one in found:
        if "orders" in one.details:
            asked.setdefault((one.item, one.document_id), []).append((one.rater, one.value))
    return [
        Compared(item, document, rater, sum(v == value for v in others), len(others))
        for (item, document), given in asked.items()
        for rater, value in given
        if (others := [v for who, v in given if who != rater])
    ]
