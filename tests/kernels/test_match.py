"""Search kernels against their oracles, on ids."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests import oracles

from fabula.kernels import match
from fabula.kernels.grams import BLOCK_WORDS, OVERLAP, add_grams, bound_ends
from fabula.kernels.packed import bits_below, pack, pack_tokens
from fabula.kernels.suffix import build_suffix_array
from fabula.kernels.token_pairs import list_pairs, pack_pairs
from fabula.reference.vocabulary import Vocabulary

documents = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=25), min_size=1, max_size=6)
queries = st.lists(st.integers(0, 5), max_size=150)


N_COMMON = 65_532
"""Ids begin here, so that the first two are common ones and the others rare."""


class Index:
    def __init__(self, texts: list[list[int]]) -> None:
        ids = np.array([t + N_COMMON if t else 0 for text in texts for t in [*text, 0]], np.uint32)
        n = len(ids)
        suffixes = build_suffix_array(ids, N_COMMON + 6)
        # In parts, as threads list them; each pair begins in just one.
        edges = [0, n // 3, n // 2, n]
        listed = [list_pairs(ids, suffixes, *e) for e in pairwise(edges)]
        self.pairs = pack_pairs(listed, n)
        self.tokens = pack_tokens(ids)
        # In chunks and in parts of the filter, as threads fill it.
        self.grams = np.zeros((2, BLOCK_WORDS), np.uint64)
        for begin in range(0, n, 7):
            for part in (0, 1):
                add_grams(ids[begin : begin + 7 + OVERLAP], self.grams, part, part + 1)
        self.suffixes = pack(suffixes, bits_below(n))
        lengths = np.array([len(text) + 1 for text in texts])
        self.starts = (np.cumsum(lengths) - lengths).astype(np.int64)

    def search(
        self,
        query: NDArray[np.uint32],
        known: NDArray[np.int32] | None = None,
        *,
        filtered: bool = False,
        ahead: bool = False,
    ) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
        ends = match.run_ends(query)
        if filtered:
            ends = bound_ends(self.grams, query, ends)
        if known is None:
            known = np.zeros(len(query), np.int32)
        lengths = np.zeros(len(query), np.int32)
        witnesses = np.zeros(len(query), np.uint32)
        for begin in range(0, len(query), 50):
            match.longest_matches(
                self.tokens, self.suffixes, self.pairs, query, ends, known,
                begin, min(begin + 50, len(query)), lengths, witnesses, ahead=ahead,
            )  # fmt: skip
        return lengths, witnesses


def expected(query: list[int], texts: list[list[int]]) -> list[int]:
    words = [[str(t) for t in text] for text in texts]
    known_ids = {t for text in texts for t in text}
    # 0 and ids that no document holds match nothing.
    return oracles.longest_matches([str(q) if q in known_ids else "?" for q in query], words)


def mask_unknown(query: list[int], texts: list[list[int]]) -> NDArray[np.uint32]:
    known = {t for text in texts for t in text}
    return np.array([q + N_COMMON if q in known else 0 for q in query], np.uint32)


@given(documents, queries, st.booleans(), st.booleans())
def test_longest_matches_equal_sets_of_ngrams(
    texts: list[list[int]], query: list[int], filtered: bool, ahead: bool
) -> None:
    ids = mask_unknown(query, texts)
    lengths, _ = Index(texts).search(ids, filtered=filtered, ahead=ahead)
    assert lengths.tolist() == expected(query, texts)


@given(documents, queries, st.booleans(), st.data())
def test_only_longer_matches_than_those_known_are_looked_for(
    texts: list[list[int]], query: list[int], filtered: bool, data: st.DataObject
) -> None:
    known = data.draw(st.lists(st.integers(0, 6), min_size=len(query), max_size=len(query)))
    lengths, _ = Index(texts).search(
        mask_unknown(query, texts), np.array(known, np.int32), filtered=filtered
    )
    right = expected(query, texts)
    assert np.maximum(lengths, known).tolist() == np.maximum(right, known).tolist()
    assert (lengths <= right).all()


@given(documents, queries)
def test_the_filter_bounds_no_match_that_there_is(texts: list[list[int]], query: list[int]) -> None:
    ids = mask_unknown(query, texts)
    ends = match.run_ends(ids)
    bounds = bound_ends(Index(texts).grams, ids, ends)
    assert (bounds <= ends).all()
    assert (bounds - np.arange(len(query)) >= expected(query, texts)).all()
    # Most of what does not occur is told: a text of other pairs is bounded at two words.
    other = np.arange(N_COMMON + 100, N_COMMON + 164, dtype=np.uint32)
    n_bounded = (bound_ends(Index(texts).grams, other, match.run_ends(other)) < 64).sum()
    assert n_bounded > 32


@given(documents, queries, st.data())
def test_excluded_documents_count_only_where_others_hold_the_same(
    texts: list[list[int]], query: list[int], data: st.DataObject
) -> None:
    index = Index(texts)
    out = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    ids = mask_unknown(query, texts)
    lengths, witnesses = index.search(ids, filtered=data.draw(st.booleans()))
    match.allowed_matches(
        index.tokens, index.suffixes, index.starts, np.array(out), ids, match.run_ends(ids),
        lengths, witnesses,
    )  # fmt: skip
    left = [text for text, is_out in zip(texts, out, strict=True) if not is_out]
    assert lengths.tolist() == expected(query, left)


@given(documents, st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_intervals_hold_every_occurrence(
    texts: list[list[int]], gram: list[int], data: st.DataObject
) -> None:
    index = Index(texts)
    low, high = match.find_interval(
        index.tokens, index.suffixes, np.array(gram, np.uint32) + np.uint32(N_COMMON)
    )
    assert high - low == oracles.count(gram, texts)  # type: ignore[arg-type]
    out = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    left = [text for text, is_out in zip(texts, out, strict=True) if not is_out]
    counted = match.count_allowed(index.suffixes, index.starts, np.array(out), low, high)
    assert counted == oracles.count(gram, left)  # type: ignore[arg-type]


words = st.lists(st.text(max_size=6).filter(lambda w: max(w, default="") < "\ud800"), max_size=40)


@given(words, words)
def test_words_are_found_where_they_stand(table: list[str], wanted: list[str]) -> None:
    table = list(dict.fromkeys(table))
    asked = [*wanted, *table[:5]]
    found = Vocabulary.of(table).find(asked)
    places = {word: k for k, word in enumerate(table, 1)}
    assert found.tolist() == [places.get(word, 0) for word in asked]
