"""How many pairs a ranking takes: drawn at random, and chosen by the answers so far.

    python bench/pairs.py [--stories 40] [--items 5] [--runs 20] [--smoke]

Stories of normally distributed worth are compared by the model that the ranking supposes, in both
orders, with a place effect, and pairs that deviate from the strengths of their stories. For each
budget the Spearman correlation of the ranking with the truth is shown, and for each correlation how
many pairs it takes.
"""

from __future__ import annotations

import argparse
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

import corpora
from fabula.stats.pair_choice import Pair, first_pairs, next_pairs, posterior, round_size
from fabula.stats.ranking import Comparisons

PLACE, DEVIATION, WORTH = 0.3, 0.5, 2.0
LEVELS = 0.9, 0.95, 0.98


def all_answers(
    worth: NDArray[np.float64], n_items: int, rng: np.random.Generator
) -> dict[Pair, Comparisons]:
    """What would be answered about each pair, in both orders."""
    found = {}
    for a, b in combinations(range(len(worth)), 2):
        gap = worth[a] - worth[b] + DEVIATION * rng.standard_normal()
        ahead = np.repeat([gap, -gap], n_items) + PLACE
        first, second = np.repeat([a, b], n_items), np.repeat([b, a], n_items)
        outcome = (rng.random(2 * n_items) < 1 / (1 + np.exp(-ahead))).astype(np.float64)
        found[a, b] = Comparisons(first, second, outcome)
    return found


def joined(answers: dict[Pair, Comparisons], pairs: list[Pair]) -> Comparisons:
    parts = [answers[pair] for pair in pairs]
    return Comparisons(
        np.concatenate([part.first for part in parts]),
        np.concatenate([part.second for part in parts]),
        np.concatenate([part.outcome for part in parts]),
    )


def chosen_order(
    answers: dict[Pair, Comparisons], n_pairs: int, n_stories: int, rng: np.random.Generator
) -> list[Pair]:
    """Pairs as a run under a budget asks them."""
    pairs = list(answers)
    order = first_pairs(pairs, n_pairs, rng)
    n_answers = len(next(iter(answers.values())).first)
    while len(order) < n_pairs:
        asked = set(order)
        left = [pair for pair in pairs if pair not in asked]
        n_next = min(round_size(n_stories), n_pairs - len(order))
        order += next_pairs(left, joined(answers, order), n_stories, n_next, n_answers)
    return order


def correlation(answers: Comparisons, worth: NDArray[np.float64]) -> float:
    return float(spearmanr(posterior(answers, len(worth))[0], worth)[0])


def correlations(
    n_stories: int, n_items: int, budgets: list[int], seed: int
) -> NDArray[np.float64]:
    """Of a run: shape (2, n_budgets), pairs at random and chosen."""
    rng = np.random.default_rng(seed)
    worth = rng.normal(0, WORTH, n_stories)
    answers = all_answers(worth, n_items, rng)
    pairs = list(answers)
    at_random = [pairs[k] for k in rng.permutation(len(pairs))]
    chosen = chosen_order(answers, budgets[-1], n_stories, rng)
    return np.array(
        [
            [correlation(joined(answers, order[:n]), worth) for n in budgets]
            for order in (at_random, chosen)
        ]
    )


def needed(level: float, budgets: list[int], means: NDArray[np.float64]) -> str:
    """The number of pairs at which a correlation is reached, between budgets by a straight line."""
    if means[-1] < level:
        return f"> {budgets[-1]}"
    return f"{np.interp(level, np.maximum.accumulate(means), budgets):.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stories", type=int, default=corpora.sized(40, 10))
    parser.add_argument("--items", type=int, default=corpora.sized(5, 2))
    parser.add_argument("--runs", type=int, default=corpora.sized(20, 2))
    given = parser.parse_args()
    n_all = given.stories * (given.stories - 1) // 2
    budgets = [n for n in (given.stories * k // 2 for k in range(2, 17)) if n <= n_all]
    runs = [correlations(given.stories, given.items, budgets, seed) for seed in range(given.runs)]
    at_random, chosen = np.mean(runs, axis=0)
    print(f"{given.stories} stories, {given.items} items, {given.runs} runs, {n_all} pairs in all")
    print("pairs   random   chosen   (Spearman with the truth)")
    for n, *both in zip(budgets, at_random, chosen, strict=True):
        print(f"{n:5}   " + "   ".join(f"{one:6.3f}" for one in both))
    for level in LEVELS:
        print(
            f"Spearman {level}: {needed(level, budgets, at_random)} pairs at random, "
            f"{needed(level, budgets, chosen)} chosen"
        )


if __name__ == "__main__":
    main()
