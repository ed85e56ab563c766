"""Open questions of "Art or Artifice?": intervals, tests between authors, overlap of its tests.

Chakrabarty et al. 2024 print the rates of Table 5 without intervals, and in section 8 suppose that
their 14 tests overlap. Stories of one plot are compared with each other, one by each author.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fabula.measures.rater_agreement import Panel
from fabula.rubrics.released import split_story_id
from fabula.stats.bounds import share_high
from fabula.stats.effects import mean_estimates
from fabula.stats.permutation import PairTest, compare_pairs
from fabula.stats.reliability import bootstrap_interval, pearson, pearson_of_sums, pearson_sums
from fabula.types import Estimate, Rubric

__all__ = ["ALL_TESTS", "AuthorAnalysis", "Overlap", "analyse_authors", "overlaps"]

ALL_TESTS = "all"


@dataclass(frozen=True, slots=True)
class AuthorAnalysis:
    """Shares of Yes by test (`all`: over all tests) and author, and every pair of authors."""

    rates: Mapping[tuple[str, str], Estimate]
    tests: Sequence[PairTest]
    n_plots: int


@dataclass(frozen=True, slots=True)
class Overlap:
    """The correlation of the verdicts on two tests, over all assessments of a story."""

    first: str
    second: str
    correlation: Estimate
    """Pearson's correlation of Yes and No: phi."""


def analyse_authors(panel: Panel, rubric: Rubric, authors: Sequence[str]) -> AuthorAnalysis:
    """Over the plots with a story by every author; a story's value is its experts' mean."""
    shares: dict[tuple[str, str, str], list[float]] = {}
    for (story, item), row in zip(panel.subjects, panel.ratings, strict=True):
        plot, author = split_story_id(story)
        given = row[~np.isnan(row)].tolist()
        for name in (item, ALL_TESTS):
            shares.setdefault((name, author, plot), []).extend(given)
    plots = sorted({plot for _, _, plot in shares})
    plots = [plot for plot in plots if all(shares.get((ALL_TESTS, one, plot)) for one in authors)]
    means = {
        name: {author: _values(shares, name, author, plots) for author in authors}
        for name in (*(item.id for item in rubric.items), ALL_TESTS)
    }
    signature = f"experts:{panel.source}|rubric:{rubric.key}"
    rates = mean_estimates(means, signature=signature)
    return AuthorAnalysis(
        {key: _bounded(rate, means[key[0]][key[1]]) for key, rate in rates.items()},
        compare_pairs(means, {}, signature=signature),
        len(plots),
    )


def _values(
    shares: Mapping[tuple[str, str, str], Sequence[float]],
    name: str,
    author: str,
    plots: Sequence[str],
) -> NDArray[np.float64]:
    given = [shares.get((name, author, plot)) for plot in plots]
    return np.array([np.mean(values) if values else np.nan for values in given], np.float64)


def _bounded(rate: Estimate, values: NDArray[np.float64]) -> Estimate:
    """For stories that all have one share, which resampling cannot vary: bounds by their number."""
    known = values[~np.isnan(values)]
    if rate.low is None or np.ptp(known) > 0:
        return rate
    low, high = 1 - share_high(1 - known, 0.975), share_high(known, 0.975)
    return replace(rate, low=low, high=high, method="mean, Gaffke's bounds over stories")


def overlaps(panel: Panel, rubric: Rubric) -> list[Overlap]:
    """Every pair of tests, the most similar first."""
    places = {subject: k for k, subject in enumerate(panel.subjects)}
    stories = list(dict.fromkeys(story for story, _ in panel.subjects))
    n_raters = panel.ratings.shape[1]
    nothing = np.full(n_raters, np.nan)

    def verdicts(item: str) -> NDArray[np.float64]:
        rows = [
            panel.ratings[places[story, item]] if (story, item) in places else nothing
            for story in stories
        ]
        return np.concatenate(rows)

    by_item = {item.id: verdicts(item.id) for item in rubric.items}
    groups = [story for story in stories for _ in range(n_raters)]
    found = []
    for first, second in combinations(by_item, 2):
        a, b = by_item[first], by_item[second]
        correlation = bootstrap_interval(
            pearson(a, b),
            pearson_sums(a, b),
            pearson_of_sums,
            groups,
            seed=0,
            method="phi of two tests, percentile bootstrap over stories",
            signature=f"experts:{panel.source}|rubric:{rubric.key}",
            n=int((~np.isnan(a + b)).sum()),
        )
        found.append(Overlap(first, second, correlation))
    undefined = -2.0
    return sorted(
        found,
        key=lambda one: undefined if one.correlation.value is None else one.correlation.value,
        reverse=True,
    )
