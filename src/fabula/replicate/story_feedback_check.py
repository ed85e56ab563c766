"""Check whether the printed tables of Rashkin et al. 2025 are consistent, without any data.

The 64 cells of Table 9 (prompt, shots, model) have the same number of answers, 1,304. So a figure
of Table 1 is the plain mean of its cells, except that the precision of "perfect as-is" is a ratio
of pooled counts (equation 1), which is the mean weighted by the share that says so, and repetition
without those answers is weighted by the share of the others. Each printed figure is the interval of
values that round to it; a figure follows if its interval meets what the cells' intervals allow.

For the one unknown cell, what the *other* rows of Table 1 require of it is used.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from fabula.replicate.claims import printed_table
from fabula.replicate.story_feedback_files import COLUMNS, METHODS, MODELS, PAPER, PROMPTS, SHOTS

_AUTOMATIC = printed_table(PAPER, "Table 1")
_CELLS = {
    cell: printed_table(PAPER, "Table 9").get(", ".join(cell))
    for cell in itertools.product(PROMPTS, SHOTS, MODELS)
}
"""None for the one cell missing from the text that the figures were read from. A precision is
omitted if nothing was said to be perfect."""

_HALF = 0.005
"""Half of the last printed digit."""
_TINY = 1e-9


class Interval(NamedTuple):
    """The possible values of a number."""

    low: float
    high: float

    def meets(self, other: Interval) -> bool:
        return self.low <= other.high + _TINY and other.low <= self.high + _TINY

    def within(self, other: Interval) -> Interval:
        return Interval(max(self.low, other.low), min(self.high, other.high))

    @classmethod
    def printed(cls, value: float) -> Interval:
        """The values that round to a figure of two decimals that cannot be below zero."""
        return cls(max(0.0, value - _HALF), value + _HALF)


_SHARE = Interval(0.0, 1.0)
_LENGTH = Interval(0.0, float("inf"))


@dataclass(frozen=True, slots=True)
class Derived:
    """A figure of Table 1, and what Table 9 allows for it under a rule."""

    name: str
    column: str
    rule: str
    """`mean`, or `weighted`."""
    printed: float
    allowed: Interval | None
    """None if the other rows contradict each other about the unknown cell."""

    @property
    def follows(self) -> bool:
        return self.allowed is not None and self.allowed.meets(Interval.printed(self.printed))

    def shown(self) -> str:
        """The printed figure, with a mark if it does not follow."""
        return f"{self.printed:.2f}{'' if self.follows else ' !'}"

    def record(self, field: str) -> dict[str, object]:
        """Its part of a row of a CSV file."""
        low, high = self.allowed or (None, None)
        bounds = {f"{field}_low": low, f"{field}_high": high}
        return {field: self.printed, **bounds, f"{field}_follows": self.follows}


@dataclass(frozen=True, slots=True)
class Agreement:
    """A quantity given in several tables."""

    what: str
    sources: Mapping[str, Interval]

    @property
    def agrees(self) -> bool:
        low = max(interval.low for interval in self.sources.values())
        return low <= min(interval.high for interval in self.sources.values()) + _TINY


@dataclass(frozen=True, slots=True)
class Check:
    """Everything that was compared."""

    derived: tuple[Derived, ...]
    unknown: Mapping[str, Interval | None]
    """What the rows of Table 1 together require of the unknown cell, by column."""
    unknown_cell: tuple[str, str, str]
    agreements: tuple[Agreement, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "derived": [{**asdict(one), "follows": one.follows} for one in self.derived],
            "unknown_cell": {"where": self.unknown_cell, "requires": dict(self.unknown)},
            "agreements": [{**asdict(one), "agrees": one.agrees} for one in self.agreements],
        }


def mean_bounds(values: Sequence[Interval]) -> Interval:
    """The possible values of the plain mean of numbers in intervals."""
    n = len(values)
    return Interval(math.fsum(v.low for v in values) / n, math.fsum(v.high for v in values) / n)


def weighted_bounds(weights: Sequence[Interval], values: Sequence[Interval]) -> Interval:
    """The possible values of sum(w x) / sum(w).

    It is greatest if the values are, with the most weight on the greatest of them and the least on
    the others; every number of greatest values is tried.
    """
    signed = [(w, v.high) for w, v in zip(weights, values, strict=True)]
    high = _greatest(signed)
    low = -_greatest([(w, -v.low) for w, v in zip(weights, values, strict=True)])
    return Interval(low, high)


def _greatest(pairs: Sequence[tuple[Interval, float]]) -> float:
    pairs = sorted(pairs, key=lambda pair: -pair[1])
    best = -float("inf")
    for n_heavy in range(1, len(pairs) + 1):
        weights = [w.high if k < n_heavy else w.low for k, (w, _) in enumerate(pairs)]
        if math.fsum(weights) > 0:
            total = math.fsum(
                weight * value for weight, (_, value) in zip(weights, pairs, strict=True)
            )
            best = max(best, total / math.fsum(weights))
    return best


RULES = (
    ("length", "mean"),
    ("perfect", "mean"),
    ("perfect_precision", "weighted"),
    ("repetition", "mean"),
    ("repetition_imperfect", "weighted"),
    ("repetition_imperfect", "mean"),
)
"""How a column of Table 1 may follow from Table 9; the paper does not state the last one's rule."""


def check_printed() -> Check:
    """Table 1 against Table 9, the three splits of Table 1 against each other and Table 7."""
    (cell,) = (key for key, row in _CELLS.items() if row is None)
    perfect = _required("perfect", "mean", cell, cell, _SHARE)
    derived = []
    for name, printed in _AUTOMATIC.items():
        for column, rule in RULES:
            # A row is not used to constrain the cell that it is checked with.
            others = [other for other in cell if other != name] if name in cell else []
            missing = _required(column, rule, others, cell, perfect)
            allowed = None if missing is None else _allowed(column, rule, name, missing, perfect)
            derived.append(Derived(name, column, rule, printed[column], allowed))
    unknown = {column: _required(column, rule, cell, cell, perfect) for column, rule in RULES[:5]}
    return Check(tuple(derived), unknown, cell, _agreements())


def _cells(name: str) -> list[dict[str, float] | None]:
    return [row for key, row in _CELLS.items() if name in key]


def _allowed(
    column: str, rule: str, name: str, missing: Interval, perfect: Interval | None
) -> Interval:
    """What the cells allow for a figure of a row of Table 1, the unknown one being `missing`."""
    values, weights = [], []
    for row in _cells(name):
        share = perfect or _SHARE
        value = missing
        if row is not None:
            own = row.get(column)
            # No precision: no answer said so, and the cell is not part of the ratio.
            nobody = column == "perfect_precision" and own is None
            share = Interval(0.0, 0.0) if nobody else Interval.printed(row["perfect"])
            value = Interval.printed(own or 0.0)
        values.append(value)
        low, high = share.low, min(share.high, 1.0)
        weights.append(
            Interval(1 - high, 1 - low) if column == "repetition_imperfect" else Interval(low, high)
        )
    return mean_bounds(values) if rule == "mean" else weighted_bounds(weights, values)


def _required(
    column: str, rule: str, names: Sequence[str], cell: Sequence[str], perfect: Interval | None
) -> Interval | None:
    """What some rows of Table 1 require of the unknown cell; None if no number satisfies it."""
    found: Interval | None = _LENGTH if column == "length" else _SHARE
    for name in names:
        if name in cell and found is not None:
            printed = Interval.printed(_AUTOMATIC[name][column])
            one = (
                _solve_mean(column, name, printed)
                if rule == "mean"
                else _solve_weighted(column, name, printed, perfect)
            )
            found = None if one is None or not one.meets(found) else one.within(found)
    return found


def _solve_mean(column: str, name: str, printed: Interval) -> Interval:
    n = len(_cells(name))
    rest = _allowed(column, "mean", name, Interval(0.0, 0.0), None)
    return Interval(n * (printed.low - rest.high), n * (printed.high - rest.low))


@functools.cache
def _solve_weighted(
    column: str, name: str, printed: Interval, perfect: Interval | None
) -> Interval | None:
    """By trying every figure that may be printed there."""
    good = [
        value
        for value in (Interval.printed(k / 100) for k in range(101))
        if _allowed(column, "weighted", name, value, perfect).meets(printed)
    ]
    return Interval(good[0].low, min(1.0, good[-1].high)) if good else None


def _agreements() -> tuple[Agreement, ...]:
    splits = {"models": MODELS, "prompts": PROMPTS, "shots": SHOTS}
    columns = {split: [_AUTOMATIC[name] for name in names] for split, names in splits.items()}
    found = []
    table_7 = printed_table(PAPER, "Table 7")
    by_method = [Interval.printed(table_7[name]["perfect"]) for name in METHODS]
    for column in ("length", "perfect", "repetition"):
        sources = {
            f"Table 1, {split}": mean_bounds([Interval.printed(row[column]) for row in rows])
            for split, rows in columns.items()
        }
        if column == "perfect":
            sources["Table 7"] = mean_bounds(by_method)
        found.append(Agreement(column, sources))
    precision = {
        f"Table 1, {split}": weighted_bounds(
            *([Interval.printed(row[name]) for row in rows] for name in COLUMNS[1:3])
        )
        for split, rows in columns.items()
    }
    is_original = [
        Interval(float(name == "original"), float(name == "original")) for name in METHODS
    ]
    precision["Table 7"] = weighted_bounds(by_method, is_original)
    found.append(Agreement("perfect_precision", precision))
    return tuple(found)
