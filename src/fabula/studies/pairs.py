"""Two stories side by side, and which of them is preferred: which pairs, what is asked, and answers
in the form of `judge --pairwise`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from fabula.errors import InputError
from fabula.stats.pair_choice import Pair, first_pairs, least_pairs
from fabula.types import Document, Item, Measurement, Scale

__all__ = [
    "TIE",
    "Compared",
    "chosen_pairs",
    "compared_answers",
    "outcome_of",
    "pair_item",
    "pair_key",
]

OPTIONS = ("Story 1", "Story 2")
TIE = "Neither"
_BETWEEN = " : "


def pair_key(first: Document, second: Document) -> str:
    """What a pair is called, here as by a judge."""
    return f"{first.id}{_BETWEEN}{second.id}"


def pair_item(item: Item, *, ties: bool) -> Item:
    """A question about one story, as it is answered about two."""
    options = (*OPTIONS, TIE) if ties else OPTIONS
    return replace(item, scale=Scale("choice", options))


def chosen_pairs(
    groups: Sequence[Sequence[Document]], n: int | None, seed: int
) -> list[tuple[Document, Document]]:
    """All pairs of stories within groups, or `n` of them: first those that connect the stories of
    each group, each compared about as often, then others at random. Raises `InputError`.
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
        rng = np.random.default_rng([seed, 3])
        drawn = first_pairs(every, n, rng)
        left = sorted(set(every) - set(drawn))
        more = rng.permutation(len(left))[: n - len(drawn)]
        every = sorted([*drawn, *(left[k] for k in more)])
    return [(stories[a], stories[b]) for a, b in every]


def outcome_of(answer: str, order: Sequence[int]) -> tuple[int | None, list[str | None]]:
    """Which document of a pair an answer prefers, None for neither; and the answer as a judge gives
    it, in the order in which the pair was shown: [straight, turned].
    """
    said = "tie" if answer == TIE else "AB"[OPTIONS.index(answer)]
    preferred = None if said == "tie" else order["AB".index(said)]
    return preferred, [said, None] if order[0] == 0 else [None, said]


@dataclass(frozen=True, slots=True)
class Compared:
    """Somebody's answer beside those of others to the same question about the same pair."""

    item: str
    document_id: str
    rater: str
    n_same: int
    n_others: int


def compared_answers(found: Sequence[Measurement]) -> list[Compared]:
    """Each answer that others gave one beside. Who prefers neither agrees with the same alone."""
    asked: dict[tuple[str, str], list[tuple[str, object]]] = {}
    for one in found:
        if "orders" in one.details:
            asked.setdefault((one.item, one.document_id), []).append((one.rater, one.value))
    return [
        Compared(item, document, rater, sum(v == value for _, v in given) - 1, len(given) - 1)
        for (item, document), given in asked.items()
        for rater, value in given
        if len(given) > 1
    ]
