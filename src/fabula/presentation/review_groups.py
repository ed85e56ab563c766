"""Groups of texts compared: each number's means with intervals, and which pairs differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fabula.review import GroupTest
from fabula.types import Estimate
from fabula.web import visible

_WIDTH = 240
_MAX_PAIRS = 12


def group_views(tests: Sequence[GroupTest]) -> list[dict[str, Any]]:
    """Each number as the page shows it."""
    return [_view(test) for test in tests if any(mean.n for mean in test.means.values())]


def _view(test: GroupTest) -> dict[str, Any]:
    known = [e for e in test.means.values() if e.value is not None]
    ends = [end for e in known for end in (e.low, e.high, e.value) if end is not None]
    low, high = min(ends), max(ends)
    span = (high - low) or 1.0

    def x(value: float | None) -> float | None:
        return None if value is None else round(6 + (_WIDTH - 12) * (value - low) / span, 1)

    form = test.number.form
    pairs = sorted(
        (pair for pair in test.pairs if pair.p_holm is not None), key=lambda pair: pair.p_holm or 0
    )
    return {
        "title": visible(test.number.title),
        "groups": [
            {
                "name": visible(name),
                "n": mean.n,
                "n_missing": test.n_missing[name],
                "mean": "missing" if mean.value is None else format(mean.value, form),
                "interval": interval_shown(mean, form),
                "x": x(mean.value),
                "low": x(mean.low),
                "high": x(mean.high),
            }
            for name, mean in test.means.items()
        ],
        "width": _WIDTH,
        "pairs": [
            {
                "a": visible(pair.a),
                "b": visible(pair.b),
                "percent": _signed(pair.difference.percent),
                "p": p_shown(pair.p_holm),
                "is_sure": (pair.p_holm or 0) < 0.05,
            }
            for pair in pairs[:_MAX_PAIRS]
        ],
        "n_more_pairs": max(0, len(pairs) - _MAX_PAIRS),
    }


def was_tested(tests: Sequence[GroupTest]) -> bool:
    """Whether any two groups could be compared."""
    return any(pair.p_holm is not None for test in tests for pair in test.pairs)


def interval_shown(mean: Estimate, form: str) -> str:
    """`[7.91, 7.95]`, empty if there is no interval."""
    if mean.low is None or mean.high is None:
        return ""
    return f"[{mean.low:{form}}, {mean.high:{form}}]"


def p_shown(p: float | None) -> str:
    """`p = 0.031`, `p < 0.001`."""
    if p is None:
        return "no test"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _signed(percent: Estimate) -> str:
    return "" if percent.value is None else f"{percent.value:+.1f} %"
