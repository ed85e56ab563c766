"""Near-verbatim search against a plain transcription of the paper's Algorithm 3."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fabula.kernels.movers import (
    best_passage,
    gather_passages,
    number_units,
    search_near,
    similarities,
)

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
        n_units, n_columns = int(rng.integers(2, 8)), int(rng.integers(1, 6))
        # Few values, so that means often lie exactly at the threshold.
        self.sims = rng.choice([0.2, 0.5, 0.8, 0.9, 1.0], (n_units, n_columns)).astype(np.float32)
        n = int(rng.integers(3, 14))
        self.columns = np.where(rng.random(n) < 0.6, rng.integers(n_columns, size=n), -1)
        self.columns = self.columns.astype(np.int32)
        self.passages: list[list[int]] = [
            [int(u) if rng.random() < 0.6 else -1 for u in rng.integers(n_units, size=m)]
            for m in rng.integers(1, 12, size=int(rng.integers(1, 4)))
        ]
        self.exact = np.zeros(n, np.int32)
        if rng.random() < 0.5:
            at = int(rng.integers(n))
            for k in range(at, min(n, at + 6)):
                self.exact[k] = min(n, at + 6) - k
        self.min_words = int(rng.integers(2, 5))
        self.floor = int(rng.integers(1, 4))
        self.threshold = float(rng.choice([0.5, 0.8, 0.85, 0.9, 0.95, 1.0]))
        self.ratio = float(rng.choice([1.0, 1.5, 2.0, np.inf]))

    def arrays(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64],
                              NDArray[np.int32]]:  # fmt: skip
        content, places, offsets = [], [], [0]
        for passage in self.passages:
            places += [k for k, u in enumerate(passage) if u >= 0]
            content += [u for u in passage if u >= 0]
            offsets.append(len(content))
        lengths = np.array([len(p) for p in self.passages], np.int32)
        return (np.array(content, np.int32), np.array(places, np.int32),
                np.array(offsets, np.int64), lengths)  # fmt: skip

    def spans(self, passage: list[int], n_words: int) -> list[tuple[int, int]]:
        """Algorithm 3's loops: every n-gram of at least `min_words` words that says enough.

        From its first content word to its last it is as long as one of `n_words`, but for `ratio`.
        """
        n = len(passage)
        found = []
        for a in range(n):
            for b in range(a + self.min_words, n + 1):
                content = [k for k in range(a, b) if passage[k] >= 0]
                if len(content) < self.floor:
                    continue
                n_there = content[-1] - content[0] + 1
                if max(n_there, n_words) <= self.ratio * min(n_there, n_words):
                    found.append((a, b))
        return found

    def occurs(self, i: int, j: int) -> bool:
        words = [int(c) for c in self.columns[i:j] if c >= 0]
        return any(
            similarity_of(self.sims, words, [u for u in p[a:b] if u >= 0]) >= self.threshold - 1e-9
            for p in self.passages
            for a, b in self.spans(p, j - i)
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
def test_the_search_equals_a_transcription_of_algorithm_3(seed: int) -> None:
    case = Case(seed)
    found = case.exact.copy()
    content, places, offsets, lengths = case.arrays()
    search_near(
        case.sims, case.columns, case.exact, 0, len(case.columns), 0, content, places, offsets,
        lengths, case.min_words, case.floor, MAX_WORDS, case.threshold, case.ratio, found,
    )  # fmt: skip
    expected, n_asked = case.dj_search()
    assert found.tolist() == expected
    assert n_asked <= 2 * len(case.columns), "two pointers ask at most twice the length"


@given(st.integers(0, 2**32))
def test_the_best_span_is_the_best_of_all(seed: int) -> None:
    case = Case(seed)
    own = case.columns[case.columns >= 0]
    if not len(own):
        return
    content, places, offsets, lengths = case.arrays()
    top, p, a, b = best_passage(
        case.sims, own, len(case.columns), content, places, offsets, lengths, case.min_words,
        case.floor, case.ratio,
    )  # fmt: skip
    every = [
        similarity_of(case.sims, own.tolist(), [u for u in passage[s:e] if u >= 0])
        for passage in case.passages
        for s, e in case.spans(passage, len(case.columns))
    ]
    if not every:
        assert p == -1
        return
    assert top == pytest.approx(max(every))
    chosen = content[offsets[p] + a : offsets[p] + b].tolist()
    assert similarity_of(case.sims, own.tolist(), chosen) == pytest.approx(max(every))


@given(st.integers(0, 2**32))
def test_similarities_are_cosines_and_a_word_without_a_vector_is_like_itself_alone(
    seed: int,
) -> None:
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
            if row < 0 or column < 0:
                assert out[r, c] == float(row == column)
            else:
                expected = unit[row] @ unit[column] if row == column else 0.999
                expected = min(expected, unit[row] @ unit[column])
                assert out[r, c] == pytest.approx(expected, abs=1e-4)
                assert (row == column) == (out[r, c] == 1)


@given(st.lists(st.integers(-6, 5).filter(lambda u: u not in (-1, -2)), max_size=20))
def test_units_are_numbered_as_they_come(units: list[int]) -> None:
    distinct, numbers = np.empty((2, len(units)), np.int32)
    n = number_units(np.array(units, np.int32), 6, 4, distinct, numbers)
    assert distinct[:n].tolist() == list(dict.fromkeys(units))
    assert [int(distinct[k]) for k in numbers] == units


def test_passages_are_gathered_without_their_function_words() -> None:
    tokens = np.array([1, 2, 3, 0, 2, 2, 1, 0], np.uint32)
    units = np.array([-2, 7, -2, -3], np.int32)  # by token: end, content, function, no vector
    out, places = np.empty((2, 6), np.int32)
    offsets = np.zeros(3, np.int64)
    n = gather_passages(tokens, np.array([0, 4]), np.array([3, 3], np.int32), units, out, places,
                        offsets)  # fmt: skip
    assert out[:n].tolist() == [7, -3, 7]
    assert places[:n].tolist() == [0, 2, 2]
    assert offsets.tolist() == [0, 2, 3]
