"""The numbers of a text, side by side: for tables and for comparing groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fabula.measures.groups import Distribution, GroupNumbers
from fabula.review.found import Review, TextReview
from fabula.review.report_parts import Number, parts_of

__all__ = ["comparable", "numbers_of_review", "share_below"]

Shares = Mapping[str, float]
Values = dict[str, float | None]


def numbers_of_review(review: Review) -> tuple[list[Number], list[Values]]:
    """The numbers that at least one text has, and each text's values, including judges' scores.

    What was requested and is missing is None.
    """
    parts = sorted(parts_of(review), key=lambda one: one.asks_model)
    rows = [
        {key: value for part in parts for key, value in part.values(text, review).items()}
        for text in review.texts
    ]
    known = {key for row in rows for key in row}
    return [n for part in parts for n in part.numbers(review) if n.key in known], rows


_BY_LENGTH = frozenset(("type_token_ratio", "unique_trigram_ratio", "repeated_share"))
"""Numbers that depend on length so much that only texts of similar length are comparable."""
_LIKE = 2
"""Range of similar length: from half of a group's first decile to twice its last."""


def comparable(
    groups: Iterable[GroupNumbers], item: str, n_words: float | None
) -> tuple[GroupNumbers, ...]:
    """The groups that a number of a text with `n_words` words can be compared with."""
    return tuple(
        group
        for group in groups
        if item not in _BY_LENGTH or _is_like(group.items.get("n_words"), n_words)
    )


def _is_like(lengths: Distribution | None, n_words: float | None) -> bool:
    if lengths is None or n_words is None:
        return False
    return lengths.quantile(0.1) / _LIKE <= n_words <= lengths.quantile(0.9) * _LIKE


def share_below(review: Review, text: TextReview, part: str, item: str, value: float) -> Shares:
    """For each comparable group, the share that is below a text's value."""
    n_words = None if text.profile is None else text.profile.values["n_words"]
    found = review.groups.find(review.signatures[part]).groups
    return {
        group.group: group.items[item].share_below(value)
        for group in comparable(found, item, n_words)
        if item in group.items
    }
