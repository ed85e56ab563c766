"""Answers in words, each by its scale: a mark is never a Yes, and a choice has no percentage."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from fabula.models.verdicts import MISSING
from fabula.types import Item, Measurement, Rubric, Scale

__all__ = ["answer_shown", "answers_shown", "range_shown", "score_range"]

_MAX_CHOICES = 5
_MAX_CHARS = 400


def answer_shown(one: Measurement, scale: Scale) -> str:
    """What was answered about one document: `Yes`, `67% Yes of 3`, `4 (1 to 5)`, a choice."""
    if one.value is None:
        return f"missing: {MISSING[one.missing_reason or '']}"
    n_samples = one.details.get("n_samples", 1)
    n_answered = one.details.get("n_answered", n_samples)
    if isinstance(one.value, str):
        counts = one.details.get("counts") or {}
        often = f" ({counts[one.value]} of {n_answered})" if one.value in counts else ""
        return _cut(one.value) + often
    if scale.kind == "yes-no":
        if n_samples == 1:
            return "Yes" if one.value else "No"
        return f"{one.value:.0%} Yes of {n_answered}"
    if n_samples == 1:
        return f"{one.value:g}{_bracketed(scale)}"
    low, high = one.details.get("range") or (one.value, one.value)
    return f"mean {one.value:.3g} of {n_answered}, from {low:g} to {high:g}{_bracketed(scale)}"


def answers_shown(values: Sequence[float | str], item: Item) -> str:
    """What was answered about many documents: a share, mean and median, the most frequent."""
    n = len(values)
    if not n:
        return "-"
    numbers = [value for value in values if isinstance(value, float)]
    if item.scale.kind == "yes-no":
        return f"{sum(value > 0.5 for value in numbers) / n:.1%}"
    if item.scale.kind == "text":
        return "1 text" if n == 1 else f"{n:,} texts"
    if item.scale.kind == "choice":
        counts = sorted(Counter(map(str, values)).items(), key=lambda entry: (-entry[1], entry[0]))
        more = [f"{len(counts) - _MAX_CHOICES} others"] if len(counts) > _MAX_CHOICES else []
        return ", ".join([*(f"{option} {k}" for option, k in counts[:_MAX_CHOICES]), *more])
    mean, median = statistics.fmean(numbers), statistics.median(numbers)
    return f"mean {mean:.2f}, median {median:g}{_bracketed(item.scale)}"


def range_shown(scale: Scale) -> str:
    """`1 to 5`; empty where a scale has no ends."""
    if scale.low is None or scale.high is None:
        return ""
    return f"{scale.low:g} to {scale.high:g}"


def score_range(rubric: Rubric) -> str:
    """What a document's aggregate is out of: `of 14`, or `1 to 5`; empty where it has none."""
    if rubric.aggregate.rule == "count":
        return f"of {sum(item.scale.kind == 'yes-no' for item in rubric.items)}"
    if rubric.aggregate.rule == "none":
        return ""
    ranges = {range_shown(item.scale) for item in rubric.items if item.scale.kind == "number"}
    return ranges.pop() if len(ranges) == 1 else "" if ranges else "0 to 1"


def _bracketed(scale: Scale) -> str:
    shown = range_shown(scale)
    return f" ({shown})" if shown else ""


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS].rstrip()} …"
