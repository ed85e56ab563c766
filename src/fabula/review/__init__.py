"""Every instrument on the same texts: what can run runs, and what cannot says how to turn it on."""

from __future__ import annotations

from fabula.review.comparing import GroupTest, compare_groups
from fabula.review.found import LeftOut, Review, TextReview
from fabula.review.grouping import group_numbers
from fabula.review.numbers import NUMBERS, Number, numbers_of, numbers_of_review
from fabula.review.plan import PARTS, Part, ReviewPlan
from fabula.review.running import Declined, Progress, Reviewer

__all__ = [
    "NUMBERS",
    "PARTS",
    "Declined",
    "GroupTest",
    "LeftOut",
    "Number",
    "Part",
    "Progress",
    "Review",
    "ReviewPlan",
    "Reviewer",
    "TextReview",
    "compare_groups",
    "group_numbers",
    "numbers_of",
    "numbers_of_review",
]
