"""Sketches of texts: what they promise to see, against texts compared word by word."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import longest_common_run

from fabula.text.clusters import RUN_WORDS, Sketch, sketch_of

_words = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f", "g"]), max_size=80)


@given(_words, _words, _words, st.integers(0, 40))
def test_a_long_shared_run_is_a_shared_hash(a: list[str], b: list[str], shared: list[str], n: int):
    first, second = [*a, *shared[:n]], [*b, *shared[:n], *a[:5]]
    common = longest_common_run(first, second)
    runs = [set(sketch_of(" ".join(words)).runs.tolist()) for words in (first, second)]
    if common >= RUN_WORDS:
        assert runs[0] & runs[1]
    if common < 20:
        assert not runs[0] & runs[1]


@given(_words, st.integers(0, 10_000))
def test_shingles_estimate_how_much_wording_is_shared(words: list[str], seed: int):
    rng = np.random.default_rng(seed)
    other = [w if rng.random() < 0.8 else "x" for w in words]
    a, b = ({tuple(w[k : k + 3]) for k in range(len(w) - 2)} for w in (words, other))
    if not (a and b):
        return
    jaccard = len(a & b) / len(a | b)
    one, two = sketch_of(" ".join(words)).shingles, sketch_of(" ".join(other)).shingles
    # 128 values: 5 standard deviations, and equal sets are equal.
    assert abs(np.mean(one == two) - jaccard) <= 5 * np.sqrt(jaccard * (1 - jaccard) / 128) + 0.02


@given(st.text(max_size=300))
def test_a_sketch_survives_its_row(text: str):
    sketch = sketch_of(text)
    read = Sketch.of_row(json.loads(json.dumps(sketch.to_row())))
    assert read.to_row() == sketch.to_row()
    assert len(read.vocabulary) <= max(1, sketch.n_words)


def test_layout_is_counted_per_hundred_words():
    sketch = sketch_of('“Yes,” she said.\n\n«No», ‘perhaps’ and it\'s "so"...\n— Well')
    assert sketch.n_words == 9
    counts = {name: round(value * 9 / 100, 2) for name, value in sketch.marks.items()}
    assert counts == {
        "line_breaks": 3, "sentence_ends": 2, "straight_quotes": 2, "curly_quotes": 2,
        "other_quotes": 4,
    }  # fmt: skip


def test_rows_without_a_sketch_or_of_other_rules_have_none():
    row = sketch_of("a text").to_row()
    for damaged in (None, {}, row | {"rules": 0}, row | {"runs": "?"}, row | {"line_breaks": "x"}):
        assert Sketch.of_row(damaged) is None
