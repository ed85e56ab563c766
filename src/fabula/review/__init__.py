"""The results of all instruments on the same texts, side by side."""

from __future__ import annotations

from fabula.review.comparing import group_numbers, numbers_of_review
from fabula.review.found import LeftOut, Review, TextReview
from fabula.review.report_parts import Number

__all__ = ["LeftOut", "Number", "Review", "TextReview", "group_numbers", "numbers_of_review"]
