"""Walks over a suffix array against a search of every place, on ids."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import WalkCase

from fabula.kernels.packed import bits_below, fixed, pack, pack_tokens
from fabula.kernels.suffix import build_suffix_array
from fabula.reference.parts import Walk, WalkTerms, walk_shard

N_WORDS = 9
"""Those of the texts are 0 to 8, those of the documents 1 to 9; 0 ends a document."""


TERMS = ["enough", "width", "drop", "exchange", "reach", "company", "least", "gap", "join", "need"]
LEAST, MOST = [3, 1, 2, 0, 5, 0, 5, 1, 1, 8], [14, 6, 16, 4, 50, 15, 25, 8, 8, 45]
"""What they are drawn from."""


def case_of(seed: int) -> tuple[WalkCase, tuple[int, int]]:
    """A text that repeats parts of the documents, changed, and what a skipped content word costs,
    and any other."""
    rng = np.random.default_rng(seed)
    n_words = (int(rng.integers(1, 40)) for _ in range(int(rng.integers(1, 4))))
    documents = [rng.integers(1, N_WORDS + 1, n).tolist() for n in n_words]
    text = []
    for _ in range(int(rng.integers(1, 4))):
        some = documents[int(rng.integers(len(documents)))]
        begin = int(rng.integers(len(some)))
        part = [word - 1 for word in some[begin : begin + int(rng.integers(1, 15))]]
        text += [int(rng.integers(N_WORDS)) if rng.random() < 0.25 else word for word in part]
        if rng.random() < 0.5 and len(text) > 1:
            text[-1], text[-2] = text[-2], text[-1]
    pairs = {(word, word + 1) for word in range(N_WORDS)}
    pairs |= {tuple(map(int, rng.integers(1, N_WORDS, 2))) for _ in range(5)}
    is_content = (rng.random(N_WORDS) < 0.7).tolist()
    is_there = [False, *(rng.random(N_WORDS) < 0.7).tolist()]
    content, function = rng.integers(1, 4, 2).tolist()
    case = WalkCase(
        text=text,
        is_content=is_content,
        documents=documents,
        gains={pair: int(rng.integers(1, 12)) for pair in sorted(pairs)},
        rarities={word: int(rng.integers(1, 6)) for word in range(1, N_WORDS + 1)},
        anchored={pair for pair in sorted(pairs) if rng.random() < 0.9},
        costs_here=[content if one else function for one in is_content],
        costs_there=[0, *(content if one else function for one in is_there[1:])],
        **dict(zip(TERMS, rng.integers(LEAST, MOST).tolist(), strict=True)),
    )
    return case, (content, function)


def shard_of(case: WalkCase) -> Any:
    ids = np.array([word for one in case.documents for word in (*one, 0)], np.uint32)
    lengths = np.array([len(one) + 1 for one in case.documents])
    tokens, suffixes = pack_tokens(ids), build_suffix_array(ids, N_WORDS + 1)
    return SimpleNamespace(
        tokens=tokens,
        suffixes=pack(suffixes, bits_below(len(ids))),
        starts=fixed((np.cumsum(lengths) - lengths).astype(np.int64)),
        first_suffixes=np.cumsum(np.append(0, np.bincount(ids, minlength=N_WORDS + 1))),
        info=SimpleNamespace(n_vocabulary=N_WORDS),
    )


def walk_of(case: WalkCase, content: int, function: int) -> Walk:
    """The words that may be in an anchor come first."""
    distinct = list(dict.fromkeys(case.text))
    alike = [
        sorted((there for here, there in case.gains if here == word),
               key=lambda there, word=word: ((word, there) not in case.anchored, there))
        for word in distinct
    ]  # fmt: skip
    pairs = [(word, there) for word, some in zip(distinct, alike, strict=True) for there in some]
    return Walk(
        units=np.array([distinct.index(word) for word in case.text], np.int32),
        is_content=np.array([case.is_content[word] for word in distinct]),
        starts=np.cumsum([0, *map(len, alike)]).astype(np.int64),
        n_anchors=np.array(
            [sum((word, there) in case.anchored for there in some)
             for word, some in zip(distinct, alike, strict=True)], np.int64
        ),
        ids=np.array([there for _, there in pairs], np.int64),
        rarities=np.array([case.rarities[there] for _, there in pairs], np.int32),
        gains=np.array([case.gains[pair] for pair in pairs], np.int32),
        functions=np.flatnonzero(np.array(case.costs_there[1:]) != content) + 1,
        terms=WalkTerms(content, function, *(getattr(case, name) for name in TERMS)),
    )  # fmt: skip


@given(st.integers(0, 2**32), st.booleans())
def test_a_walk_finds_what_a_search_of_every_place_finds(seed: int, is_first_out: bool):
    case, costs = case_of(seed)
    out = np.zeros(len(case.documents), np.bool_)
    out[0] = is_first_out
    found = walk_shard(shard_of(case), walk_of(case, *costs), out if is_first_out else out[:0])
    expected = [
        (a, b, number, c, d, score)
        for number, words in enumerate(case.documents) if not out[number]
        for a, b, c, d, score in case.chains(words)
    ]  # fmt: skip
    columns = (found.firsts, found.ends, found.numbers, found.first_words, found.end_words,
               found.scores)  # fmt: skip
    assert list(zip(*(c.tolist() for c in columns), strict=True)) == expected
