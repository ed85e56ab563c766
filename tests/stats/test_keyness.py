"""Log-odds are those of a published tool; the test by text is that of all permutations."""

import itertools
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from fabula.stats.contrasts import can_pass, exact_p, log_odds, smallest_p

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "keyness.json").read_text("utf-8"))
"""z of `fighting_words_py3.py` (github.com/jmhessel/FightingWords at 09087d6, scikit-learn 1.9.1),
with priors of these sizes in proportion to the words of both groups."""


@pytest.mark.parametrize("size", ["1.0", "10.0", "45.0"])
def test_z_is_that_of_a_published_tool(size: str):
    words = sorted(GOLDEN["z"][size])
    a, b = (Counter(" ".join(GOLDEN[group]).split()) for group in "ab")
    counts = [np.array([of[word] for word in words], float) for of in (a, b)]
    _, z = log_odds(*counts, a.total(), b.total(), float(size))
    # The tool counts in single precision.
    np.testing.assert_allclose(z, [GOLDEN["z"][size][word] for word in words], rtol=1e-6)


TEXTS = st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.booleans()), min_size=1, max_size=9)
"""Each with its stratum, whether it is of A, and whether it holds the phrase."""


@given(TEXTS)
def test_p_is_that_of_all_permutations_within_strata(texts: list[tuple[int, bool, bool]]):
    strata = sorted({stratum for stratum, _, _ in texts})
    rows, ways = [], []
    for stratum in strata:
        own = [(in_a, holds) for s, in_a, holds in texts if s == stratum]
        n_a = sum(in_a for in_a, _ in own)
        rows.append((len(own), n_a, sum(holds for _, holds in own)))
        chosen = itertools.combinations(range(len(own)), n_a)
        ways.append([sum(own[k][1] for k in some) for some in chosen])
    seen = sum(in_a and holds for _, in_a, holds in texts)
    sums = np.array([sum(way) for way in itertools.product(*ways)])
    is_as_far = np.abs(sums - sums.mean()) >= abs(seen - sums.mean()) - 1e-9
    assert exact_p(rows, seen) == pytest.approx(is_as_far.mean())
    (least,) = smallest_p(np.zeros(len(rows), np.int64), np.array(rows), 1)
    assert all(least <= exact_p(rows, k) + 1e-12 for k in {*sums.tolist()})


def test_no_p_is_above_1_by_rounding():
    """Of 49 texts 45 hold the phrase: all outcomes are as far, their chances sum to above 1."""
    assert exact_p([(49, 4, 45)], 4) == 1.0


@given(st.lists(st.floats(0, 1), max_size=30), st.sampled_from([0.01, 0.05, 0.3]))
def test_no_more_are_tested_than_the_correction_allows_for(smallest: list[float], max_p: float):
    """Tarone 1990: the smallest K such that at most K tests can reach max_p / K."""
    values = np.array(smallest)
    k = next(n for n in itertools.count(1) if sum(p <= max_p / n for p in smallest) <= n)
    np.testing.assert_array_equal(can_pass(values, max_p), values <= max_p / k)


def test_the_smallest_p_is_the_chance_of_the_rarer_end():
    """Over all tables of up to nine texts, beside scipy's hypergeometric distribution."""
    tables = [(n, n_a, n_holders) for n in range(2, 10) for n_a in range(1, n)
              for n_holders in range(1, n)]  # fmt: skip
    found = smallest_p(np.arange(len(tables)), np.array(tables), len(tables))
    for (n, n_a, n_holders), smallest in zip(tables, found, strict=True):
        chances = hypergeom.pmf(range(n + 1), n, n_holders, n_a)
        possible = chances[chances > 0]
        assert smallest == pytest.approx(min(possible[0], possible[-1]))
    # Of two strata the ends of both together.
    (both,) = smallest_p(np.array([0, 0]), np.array([(8, 3, 4), (6, 2, 1)]), 1)
    low = hypergeom.pmf(0, 8, 4, 3) * hypergeom.pmf(0, 6, 1, 2)
    high = hypergeom.pmf(3, 8, 4, 3) * hypergeom.pmf(1, 6, 1, 2)
    assert both == pytest.approx(min(low, high))
