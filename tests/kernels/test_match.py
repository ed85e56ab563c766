"""Search kernels against their oracles, on ids."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests import oracles

from fabula.kernels import match
from fabula.kernels.grams import BLOCK_WORDS, add_grams, bound_ends, list_pairs, pack_pairs
from fabula.kernels.match import N_ROUNDS, choose_positions, spread_matches
from fabula.kernels.packed import bits_below, fixed, pack, pack_tokens
from fabula.kernels.sampled_keys import sample_keys
from fabula.kernels.suffix import build_suffix_array
from fabula.reference.files import Strings, concatenated

Ids, Texts = list[int], list[list[int]]
documents = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=25), min_size=1, max_size=6)
queries = st.lists(st.integers(0, 5), max_size=150)
ways = st.fixed_dictionaries({name: st.booleans() for name in ("filtered", "from_disk", "ahead")})

N_COMMON = 65_532
"""Ids begin here, so that the first two are common ones and the others rare."""


class Index:
    def __init__(self, texts: Texts) -> None:
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
                add_grams(ids[begin : begin + 7 + 3], self.grams, part, part + 1)
        fixed(self.grams)
        self.suffixes = pack(suffixes, bits_below(n))
        self.keys = sample_keys(self.tokens.codes, suffixes[::3], 3)
        lengths = np.array([len(text) + 1 for text in texts])
        self.starts = fixed((np.cumsum(lengths) - lengths).astype(np.int64))

    def search(
        self, query: NDArray[np.uint32], *, filtered: bool, known: Any = None,
        excluded: Sequence[bool] = (), **how: bool,
    ) -> NDArray[np.int32]:  # fmt: skip
        ends = match.run_ends(query)
        if filtered:
            ends = bound_ends(self.grams, query, ends)
        known = np.zeros(len(query), np.int32) if known is None else np.array(known, np.int32)
        found = [np.empty(0, np.int32)]
        for begin in range(0, len(query), 50):
            here = slice(begin, begin + 50)
            found.append(match.longest_matches(
                self.tokens, self.suffixes, self.pairs, self.keys, query[begin:],
                ends[here] - begin, known[here], self.starts, np.array(excluded, np.bool_), **how,
            ))  # fmt: skip
        return np.concatenate(found)


def expected(query: Ids, texts: Texts) -> list[int]:
    words = [[str(t) for t in text] for text in texts]
    known_ids = {t for text in texts for t in text}
    # 0 and ids that no document holds match nothing.
    return oracles.longest_matches([str(q) if q in known_ids else "?" for q in query], words)


def mask_unknown(query: Ids, texts: Texts) -> NDArray[np.uint32]:
    known = {t for text in texts for t in text}
    return np.array([q + N_COMMON if q in known else 0 for q in query], np.uint32)


@given(documents, queries, ways)
def test_longest_matches_equal_sets_of_ngrams(texts: Texts, query: Ids, way: Any):
    lengths = Index(texts).search(mask_unknown(query, texts), **way)
    assert lengths.tolist() == expected(query, texts)


@given(documents, queries, ways, st.data())
def test_only_longer_matches_than_those_known_are_looked_for(
    texts: Texts, query: Ids, way: Any, data: Any
):
    known = data.draw(st.lists(st.integers(0, 6), min_size=len(query), max_size=len(query)))
    lengths = Index(texts).search(mask_unknown(query, texts), known=known, **way)
    right = expected(query, texts)
    assert np.maximum(lengths, known).tolist() == np.maximum(right, known).tolist()
    assert (lengths <= right).all()


@given(documents, queries, st.data())
def test_what_matches_imply_is_true(texts: Texts, query: Ids, data: st.DataObject):
    right = np.array(expected(query, texts), np.int32)
    ends = match.run_ends(mask_unknown(query, texts))
    drawn = st.lists(st.integers(0, 3), min_size=len(query), max_size=len(query))
    known = np.array(data.draw(drawn), np.int32)
    lengths, chosen = np.zeros(len(query), np.int32), np.empty(len(query), np.int64)
    n_searched = 0
    for n_done in range(N_ROUNDS):
        searched = chosen[: choose_positions(ends, known, lengths, n_done, chosen)]
        assert (np.diff(searched) > 0).all()
        n_searched += len(searched)
        lengths[searched] = right[searched]
        spread_matches(searched, ends, lengths)
        assert (lengths <= right).all()
        assert (ends - np.arange(len(query)) >= right).all()
    assert np.maximum(lengths, known.clip(1)).tolist() == np.maximum(right, known.clip(1)).tolist()
    assert n_searched <= len(query)


@given(documents, queries)
def test_the_filter_bounds_no_match_that_there_is(texts: Texts, query: Ids):
    ids = mask_unknown(query, texts)
    ends = match.run_ends(ids)
    bounds = bound_ends(Index(texts).grams, ids, ends)
    assert (bounds <= ends).all()
    assert (bounds - np.arange(len(query)) >= expected(query, texts)).all()
    # Most of what does not occur is told: a text of other pairs is bounded at two words.
    other = np.arange(N_COMMON + 100, N_COMMON + 164, dtype=np.uint32)
    n_bounded = (bound_ends(Index(texts).grams, other, match.run_ends(other)) < 64).sum()
    assert n_bounded > 32


@given(documents, queries, ways, st.data())
def test_excluded_documents_count_only_where_others_hold_the_same(
    texts: Texts, query: Ids, way: Any, data: Any
):
    out = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    lengths = Index(texts).search(mask_unknown(query, texts), excluded=out, **way)
    left = [text for text, is_out in zip(texts, out, strict=True) if not is_out]
    assert lengths.tolist() == expected(query, left)


@given(documents, st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_intervals_hold_every_occurrence(texts: Texts, gram: list[int], data: Any):
    index = Index(texts)
    query = np.array(gram, np.uint32) + np.uint32(N_COMMON)
    low, high = match.find_interval(*index.tokens, *index.suffixes, query)
    assert high - low == oracles.count(gram, texts)  # type: ignore[arg-type]
    out = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    left = [text for text, is_out in zip(texts, out, strict=True) if not is_out]
    counted = match.count_allowed(*index.suffixes[:2], index.starts, np.array(out), low, high)
    assert counted == oracles.count(gram, left)  # type: ignore[arg-type]


words = st.lists(st.text(max_size=6).filter(lambda w: max(w, default="") < "\ud800"), max_size=40)


@given(words, words)
def test_words_are_found_where_they_stand(table: list[str], wanted: list[str]):
    table = list(dict.fromkeys(table))
    asked = [*wanted, *table[:5]]
    order = np.array(sorted(range(len(table)), key=table.__getitem__), np.uint32)
    found = Strings(*concatenated(table), order).find(asked)
    places = {word: k for k, word in enumerate(table, 1)}
    assert found.tolist() == [places.get(word, 0) for word in asked]
