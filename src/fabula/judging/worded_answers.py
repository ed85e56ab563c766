"""Answers in words, by scale: a mark is never shown as a Yes, and a choice has no percentage."""

from __future__ import annotations

from fabula.reasons import explain
from fabula.scales import Scale
from fabula.types import Measurement, Rubric


def answer_shown(one: Measurement, scale: Scale) -> str:
    """The answer about one document: `Yes`, `67% Yes of 3`, `4 (1 to 5)`, a choice."""
    if one.value is None:
        return f"missing: {explain(one.missing_reason)}"
    n_samples = one.details.get("n_samples", 1)
    if n_samples == 1:
        return scale.shown(one.value)
    return scale.shown_repeated(one.value, one.details.get("n_answered", n_samples), one.details)


def score_range(rubric: Rubric) -> str:
    """The range of a document's aggregate: `of 14`, or `1 to 5`; empty if it has none."""
    if rubric.aggregate.rule == "count":
        return f"of {sum(item.scale.is_test for item in rubric.items)}"
    if rubric.aggregate.rule == "none":
        return ""
    ranges = {item.scale.range for item in rubric.items if item.scale.is_grade}
    return ranges.pop() if len(ranges) == 1 else "" if ranges else "0 to 1"
