"""Which differences between systems are real: Monte Carlo permutation tests between all pairs.

Roemmele, Gordon and Swanson 2017, section 5: two-sample tests, and a level divided by the number of
pairs (Bonferroni). P-values are (b + 1) / (m + 1), with b of m permutations at least as extreme as
what was seen (Phipson and Smyth 2010), so that none is 0. Beside each stands how large the
difference is, with its interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fabula.kernels.permute import count_types, draw_labels
from fabula.stats.compare import holm
from fabula.stats.effects import Bootstrap, Tokens, divide, ratio_difference
from fabula.types import Estimate

__all__ = ["N_PERMUTATIONS", "PairTest", "compare_pairs"]

N_PERMUTATIONS = 10_000
_BLOCK_WORDS = 4
# Two sums of the same numbers in another order differ by less than this share of their size.
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class PairTest:
    """How A differs from B in one metric; None where one of them has no value."""

    metric: str
    a: str
    b: str
    difference: Estimate
    """A - B."""
    d: Estimate | None
    """Cohen's d; None for ratios, whose items have no values of their own."""
    p: float | None
    p_bonferroni: float | None
    p_holm: float | None
    """Both corrected over the pairs of this metric."""


def compare_pairs(
    means: Mapping[str, Mapping[str, NDArray[np.float64]]],
    ratios: Mapping[str, Mapping[str, Tokens]],
    *,
    seed: int = 0,
    n_permutations: int = N_PERMUTATIONS,
    signature: str = "",
) -> list[PairTest]:
    """Test every pair of systems in every metric.

    means: by metric and system, float64, shape (n_items,), NaN where an item has no value; item k
    of every system belongs to the same passage. ratios: by metric and system. Systems whose items
    all lack a value are tested by nothing.
    """
    by_metric = [*means.values(), *ratios.values()]
    systems = list(by_metric[0]) if by_metric else []
    bootstrap = Bootstrap(means, seed)
    drawn: dict[tuple[int, int], NDArray[np.uint64]] = {}
    p_values: dict[tuple[str, str, str], float | None] = {}
    for a, b in combinations(systems, 2):
        pooled = _Pool(
            [np.concatenate([metric[a], metric[b]]) for metric in means.values()],
            [(metric[a], metric[b]) for metric in ratios.values()],
            n_a=_n_items(a, means, ratios), n_b=_n_items(b, means, ratios),
        )  # fmt: skip
        size = pooled.n_a, pooled.n_b
        if size not in drawn:
            # Pairs of the same sizes share their permutations: each test is valid by itself.
            drawn[size] = draw_labels(sum(size), size[0], -(-n_permutations // 64), seed)
        for metric, p in zip(
            [*means, *ratios], pooled.p_values(drawn[size], n_permutations), strict=True
        ):
            p_values[metric, a, b] = p
    tests: list[PairTest] = []
    for metric in [*means, *ratios]:
        pairs = list(combinations(systems, 2))
        raw = [p_values[metric, a, b] for a, b in pairs]
        n_tests = sum(p is not None for p in raw)
        for (a, b), p, p_holm in zip(pairs, raw, holm(raw), strict=True):
            if metric in means:
                difference, d = bootstrap.effect(metric, a, b, signature)
            else:
                difference, d = (
                    ratio_difference(ratios[metric][a], ratios[metric][b], signature),
                    None,
                )
            bonferroni = None if p is None else min(1.0, p * n_tests)
            tests.append(PairTest(metric, a, b, difference, d, p, bonferroni, p_holm))
    return tests


def _n_items(
    system: str,
    means: Mapping[str, Mapping[str, NDArray[np.float64]]],
    ratios: Mapping[str, Mapping[str, Tokens]],
) -> int:
    for metric in means.values():
        return len(metric[system])
    return len(next(iter(ratios.values()))[system].ends)


class _Pool:
    """The items of two systems thrown together, the first system's before the second's."""

    def __init__(
        self,
        values: Sequence[NDArray[np.float64]],
        tokens: Sequence[tuple[Tokens, Tokens]],
        *,
        n_a: int,
        n_b: int,
    ) -> None:
        self.n_a, self.n_b = n_a, n_b
        self._n_means = len(values)
        columns: list[NDArray[np.float64]] = []
        for column in values:
            known = ~np.isnan(column)
            columns += [np.where(known, column, 0.0), known.astype(np.float64)]
        self._shared: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        for first, second in tokens:
            single, n_tokens, shared = _group_types(first, second, n_a + n_b)
            columns += [single, n_tokens]
            self._shared.append(shared)
        self._columns = np.stack(columns, axis=1)
        self._totals = self._columns.sum(axis=0)

    def p_values(self, labels: NDArray[np.uint64], n_permutations: int) -> list[float | None]:
        """Two-sided p-values of all metrics, the means before the ratios."""
        observed = np.zeros((1, self.n_a + self.n_b), np.uint64)
        observed[0, : self.n_a] = 1
        seen = self._differences(observed)[:, 0]
        drawn = self._differences(labels)[:, :n_permutations]
        found: list[float | None] = []
        for k in range(len(seen)):
            if np.isnan(seen[k]):
                found.append(None)
                continue
            slack = _SLACK * max(1e-300, float(np.nanmax(np.abs(drawn[k]), initial=abs(seen[k]))))
            # A permutation that leaves one side without a value counts as extreme.
            n_extreme = np.count_nonzero(~(np.abs(drawn[k]) < abs(seen[k]) - slack))
            found.append(float(n_extreme + 1) / (n_permutations + 1))
        return found

    def _differences(self, labels: NDArray[np.uint64]) -> NDArray[np.float64]:
        """A - B in every metric under each labelling: float64, shape (n_metrics, 64 * n_words)."""
        chosen = self._sums(labels)
        others = self._totals[:, None] - chosen
        rows = [
            divide(chosen[2 * k], chosen[2 * k + 1]) - divide(others[2 * k], others[2 * k + 1])
            for k in range(self._n_means)
        ]
        for k, (items, ends) in enumerate(self._shared, self._n_means):
            n_shared = count_types(labels, items, ends)
            rows.append(
                divide(chosen[2 * k] + n_shared[0], chosen[2 * k + 1])
                - divide(others[2 * k] + n_shared[1], others[2 * k + 1])
            )
        return np.stack(rows)

    def _sums(self, labels: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Each column's sum over the chosen items: float64, shape (n_columns, 64 * n_words)."""
        sums = np.empty((self._columns.shape[1], 64 * len(labels)))
        shifts = np.arange(64, dtype=np.uint64)
        for start in range(0, len(labels), _BLOCK_WORDS):
            block = labels[start : start + _BLOCK_WORDS]
            bits = (block[:, None, :] >> shifts[None, :, None]) & np.uint64(1)
            flags = bits.reshape(-1, labels.shape[1]).astype(np.float64)
            sums[:, 64 * start : 64 * start + len(flags)] = (flags @ self._columns).T
        return sums


def _group_types(
    first: Tokens, second: Tokens, n_items: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Types by the items that hold them.

    Returns how many types each item alone holds and how many tokens it has, float64, shape
    (n_items,); and for the types that several hold, those items and where each type's end.
    """
    lengths = np.concatenate([np.diff(first.ends, prepend=0), np.diff(second.ends, prepend=0)])
    items = np.repeat(np.arange(n_items), lengths)
    types = np.concatenate([first.types, second.types])
    order = np.lexsort((items, types))
    types, items = types[order], items[order]
    fresh = np.ones(len(types), np.bool_)
    fresh[1:] = (types[1:] != types[:-1]) | (items[1:] != items[:-1])
    types, items = types[fresh], items[fresh]
    begins = (
        np.flatnonzero(np.r_[True, types[1:] != types[:-1]]) if len(types) else np.empty(0, int)
    )
    n_holders = np.diff(np.r_[begins, len(types)])
    alone = np.bincount(items[begins[n_holders == 1]], minlength=n_items).astype(np.float64)
    several = np.repeat(n_holders > 1, n_holders)
    ends = np.cumsum(n_holders[n_holders > 1])
    return alone, lengths.astype(np.float64), (items[several], ends)
