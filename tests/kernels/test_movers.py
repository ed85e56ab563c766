"""Near-verbatim search against a plain transcription of the paper's Algorithm 3."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabula.kernels.movers import best_passage, search_near, similarities

MAX_WORDS = 12


def similarity_of(sims: NDArray[np.float32], words: list[int], span: list[int]) -> float:
    """1 - WMD of appendix A.2: the smaller mean of best cosines, from scratch."""
    here = np.mean([max(float(sims[v, w]) for v in span) for w in words])
    there = np.mean([max(float(sims[v, w]) for w in words) for v in span])
    return float(min(here, there))


class Case:
    """A text and passages over a few units, with random similarities."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        n_units, n_columns, n = (int(rng.integers(a, b)) for a, b in ((2, 8), (1, 6), (3, 14)))
        # Few values, so that means often lie exactly at the threshold.
        self.sims = rng.choice([0.2, 0.5, 0.8, 0.9, 1.0], (n_units, n_columns)).astype(np.float32)
        columns = np.where(rng.random(n) < 0.6, rng.integers(n_columns, size=n), -1)
        self.columns = columns.astype(np.int32)
        self.passages: list[list[int]] = [
            [int(u) if rng.random() < 0.6 else -1 for u in rng.integers(n_units, size=m)]
            for m in rng.integers(1, 12, size=int(rng.integers(1, 4)))
        ]
        self.exact = np.zeros(n, np.int32)
        if rng.random() < 0.5:
            run = self.exact[int(rng.integers(n)) :][:6]
            run[:] = range(len(run), 0, -1)
        self.min_words = int(rng.integers(2, 5))
        self.floor = int(rng.integers(1, 4))
        self.threshold = float(rng.choice([0.5, 0.8, 0.85, 0.9, 0.95, 1.0]))

    def arrays(self) -> tuple[Any, Any, Any, Any]:
        held = [[(k, u) for k, u in enumerate(passage) if u >= 0] for passage in self.passages]
        places, content = np.array([one for own in held for one in own], np.int32).reshape(-1, 2).T
        offsets = np.cumsum([0, *map(len, held)]).astype(np.int64)
        lengths = np.array([len(p) for p in self.passages], np.int32)
        return content.copy(), places.copy(), offsets, lengths

    def spans(self, passage: list[int]) -> list[tuple[int, int]]:
        """Algorithm 3's loops: every n-gram of at least `min_words` words that says enough."""
        n = len(passage)
        spans = [(a, b) for a in range(n) for b in range(a + self.min_words, n + 1)]
        return [(a, b) for a, b in spans if sum(u >= 0 for u in passage[a:b]) >= self.floor]

    def occurs(self, i: int, j: int) -> bool:
        words = [int(c) for c in self.columns[i:j] if c >= 0]
        return any(
            similarity_of(self.sims, words, [u for u in p[a:b] if u >= 0]) >= self.threshold - 1e-9
            for p in self.passages
            for a, b in self.spans(p)
        )

    def dj_search(self) -> tuple[list[int], int]:
        """Algorithm 5 over this `occurs`; an n-gram that says too little grows until it does."""
        found = self.exact.tolist()
        n, i, j, n_asked = len(self.columns), 0, self.min_words, 0
        while i < n and j <= n:
            n_content = int((self.columns[i:j] >= 0).sum())
            occurs = j - i <= self.exact[i]
            if not occurs and n_content < self.floor and j < n and j - i < MAX_WORDS:
                j += 1
                continue
            if not occurs and n_content >= self.floor and j - i <= MAX_WORDS:
                n_asked += 1
                occurs = self.occurs(i, j)
            if occurs:
                found[i] = max(found[i], j - i)
                j += 1
            else:
                i += 1
                j = max(j, i + self.min_words)
        return found, n_asked


@given(st.integers(0, 2**32))
def test_the_search_equals_a_transcription_of_algorithm_3(seed: int):
    case = Case(seed)
    found = case.exact.copy()
    content, places, offsets, lengths = case.arrays()
    search_near(
        case.sims, case.columns, case.exact, content, places, offsets, lengths, case.min_words,
        case.floor, MAX_WORDS, case.threshold, found,
    )  # fmt: skip
    expected, n_asked = case.dj_search()
    assert found.tolist() == expected
    assert n_asked <= 2 * len(case.columns), "two pointers ask at most twice the length"


@given(st.integers(0, 2**32))
def test_the_best_span_is_the_best_of_all(seed: int):
    case = Case(seed)
    own = case.columns[case.columns >= 0]
    assume(len(own))
    content, places, offsets, lengths = case.arrays()
    least = case.min_words, case.floor
    top, p, a, b = best_passage(case.sims, own, content, places, offsets, lengths, *least)
    every = [
        similarity_of(case.sims, own.tolist(), [u for u in passage[s:e] if u >= 0])
        for passage in case.passages
        for s, e in case.spans(passage)
    ]
    assert every or p == -1
    assume(every)
    assert top == pytest.approx(max(every))
    chosen = content[offsets[p] + a : offsets[p] + b].tolist()
    assert similarity_of(case.sims, own.tolist(), chosen) == pytest.approx(max(every))


@given(st.integers(0, 2**32))
def test_similarities_are_cosines_and_a_word_without_a_vector_is_like_itself_alone(seed: int):
    rng = np.random.default_rng(seed)
    unit = rng.normal(size=(9, 32))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    vectors = np.zeros((10, 32), np.int16)
    unit[3] = unit[7]  # two words, one vector
    vectors[:9] = np.rint(unit * 32767)
    rows = rng.choice([0, 1, 2, 3, 8, -3, -4], int(rng.integers(1, 9))).astype(np.int32)
    columns = rng.choice([0, 1, 5, 7, -3, -5], int(rng.integers(1, 6))).astype(np.int32)
    out = np.empty((len(rows), len(columns)), np.float32)
    similarities(vectors, rows, columns, out)
    for r, row in enumerate(rows):
        for c, column in enumerate(columns):
            assert (row == column) == (out[r, c] == 1)
            if row < 0 or column < 0:
                assert out[r, c] == float(row == column)
            elif row != column:
                expected = min(0.999, unit[row] @ unit[column])
                assert out[r, c] == pytest.approx(expected, abs=1e-4)
