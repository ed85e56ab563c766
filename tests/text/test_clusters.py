"""What counts as one: clusters against a slow comparison of every text with every other."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.oracles import components, longest_common_run

from fabula.text import read_documents
from fabula.text.clusters import Clusters, cluster_field, find_clusters, sketch_of


def words_of(seed: int, n: int) -> list[str]:
    return [f"w{k}" for k in np.random.default_rng(seed).integers(400, size=n)]


def edited(words: list[str], every: int) -> list[str]:
    return [f"x{k}" if k % every == every - 1 else word for k, word in enumerate(words)]


def clusters_of(texts: list[list[str]], keys: Any = None, human: bool = False) -> Clusters:
    keys = keys or [f"k{n:03}" for n in range(len(texts))]
    sketches = [sketch_of(" ".join(words)) for words in texts]
    return find_clusters(keys, sketches, [human] * len(texts))


def test_clusters_are_those_of_a_comparison_of_all_pairs():
    rng = np.random.default_rng(5)
    texts: list[list[str]] = []
    for n in range(24):
        words = words_of(n, int(rng.integers(30, 100)))
        kind = n % 4
        if kind == 1:  # shares a run
            at = int(rng.integers(0, len(texts[-1]) - 25))
            words[5:5] = texts[-1][at : at + int(rng.integers(10, 40))]
        elif kind == 2:  # edited lightly
            words = edited(texts[int(rng.integers(len(texts)))], 12)
        texts.append(words)
    surely, perhaps = [], []
    for a, b in combinations(range(len(texts)), 2):
        run = longest_common_run(texts[a], texts[b])
        grams = [{tuple(t[k : k + 3]) for k in range(len(t) - 2)} for t in (texts[a], texts[b])]
        shared = len(grams[0] & grams[1]) / len(grams[0] | grams[1])
        if run >= 25 or shared > 0.4:
            surely.append((a, b))
        if run >= 20 or shared > 0.1:
            perhaps.append((a, b))
    found = clusters_of(texts)
    mine = [set(np.flatnonzero(found.numbers == k).tolist()) for k in range(len(found))]
    # What must be joined is, and nothing that has little in common.
    assert len(components(len(texts), surely)) < 20
    assert all(any(peer <= own for own in mine) for peer in components(len(texts), surely))
    assert all(any(own <= peer for peer in components(len(texts), perhaps)) for own in mine)
    assert sorted(found.copies) == sorted(k for own in mine if len(own) > 1 for k in own)
    assert found.n_before == len(texts)


def test_edited_copies_and_an_excerpt_are_one_and_a_shared_phrase_is_not():
    words, book, other = words_of(0, 200), words_of(0, 3000), words_of(1, 300)
    for every in (5, 8, 15):
        assert len(clusters_of([words, edited(words, every), words_of(1, 200)])) == 2
    assert len(clusters_of([book, book[900:960], other])) == 2
    assert len(clusters_of([book, other[:100] + book[900:919] + other[100:]])) == 2


def test_people_who_open_alike_were_given_the_opening_and_machines_were_not():
    opening = words_of(9, 10)
    texts = [opening + words_of(n, 50) for n in range(3)]
    assert len(clusters_of(texts, human=True)) == 1
    assert len(clusters_of(texts, human=False)) == 3


def test_keys_and_copies_join_each_other_whatever_the_order():
    a, b = words_of(0, 60), words_of(1, 60)
    texts = [a, words_of(2, 60), edited(a, 10), b, b, words_of(3, 60)]
    keys = ["p", "p", "q", "q", "r", "s"]
    found = clusters_of(texts, keys)
    assert found.numbers.tolist() == [0, 0, 0, 0, 0, 1]
    assert (found.names, found.n_before, found.copies) == (("p", "s"), 4, (0, 2, 3, 4))
    backwards = clusters_of(texts[::-1], keys[::-1])
    assert backwards.numbers.tolist()[::-1] == found.numbers.tolist()


def test_short_and_empty_texts_are_copies_only_by_their_digest():
    sketches = [sketch_of(text) for text in ("", "", "yes", "yes", "no")]
    for digests, n in (((), 5), (["0", "0", "1", "1", "2"], 3)):
        assert len(find_clusters("abcde", sketches, [True] * 5, digests)) == n


def test_the_field_is_the_one_named_or_the_first_usual_one_with_a_value():
    rows = [{"author": "x", "pair_id": "", "prompt_id": None}]
    assert cluster_field(rows, None) == "author"
    assert cluster_field([{"pair_id": 0}, *rows], None) == "pair_id"
    assert cluster_field(rows, "id") == "id"
    assert cluster_field([{}], None) is None


@pytest.mark.parametrize(
    ("name", "n_before", "n"), [("fastdetect_writing", 219, 131), ("hanna_writingprompts", 48, 48)]
)
def test_continued_stories_are_one_prompt(shared_data: Path, name: str, n_before: int, n: int):
    """131 also by the first ten words alone, which the data's README says a pair begins with."""
    documents = list(read_documents([shared_data / "human_vs_machine" / f"{name}.jsonl"]))
    people = [d.meta["label"] == "human" for d in documents]
    sketches = [sketch_of(d.text) for d in documents]
    found = find_clusters([d.meta["pair_id"] for d in documents], sketches, people)
    assert (found.n_before, len(found)) == (n_before, n)
