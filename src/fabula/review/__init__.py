"""The results of all instruments on the same texts, side by side."""

from __future__ import annotations

from fabula.review.comparing import GroupTest, compare_groups, group_numbers, numbers_of_review
from fabula.review.found import LeftOut, Review, TextReview
from fabula.review.report_parts import Number

__all__ = [
    "GroupTest",
    "LeftOut",
    "Number",
    "Review",
    "TextReview",
    "compare_groups",
    "group_numbers",
    "numbers_of_review",
]
