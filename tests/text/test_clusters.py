"""What counts as one: clusters against a slow comparison of every text with every other."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from tests.oracles import components, longest_common_run

from fabula.text import TextSettings, read_documents
from fabula.text.clusters import Clusters, cluster_field, find_clusters, sketch_of


def words_of(seed: int, n: int) -> list[str]:
    return [f"w{k}" for k in np.random.default_rng(seed).integers(400, size=n)]


def edited(words: list[str], every: int) -> list[str]:
    return [f"x{k}" if k % every == every - 1 else word for k, word in enumerate(words)]


def clusters_of(
    texts: list[list[str]], keys: list[str] | None = None, human: bool = False
) -> Clusters:
    keys = keys or [f"k{n:03}" for n in range(len(texts))]
    sketches = [sketch_of(" ".join(words)) for words in texts]
    return find_clusters(keys, sketches, [human] * len(texts))


def test_clusters_are_those_of_a_comparison_of_all_pairs():
    rng = np.random.default_rng(5)
    texts: list[list[str]] = []
    for n in range(40):
        words = words_of(n, int(rng.integers(30, 120)))
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
    assert len(components(len(texts), surely)) < 30
    assert all(any(peer <= own for own in mine) for peer in components(len(texts), surely))
    assert all(any(own <= peer for peer in components(len(texts), perhaps)) for own in mine)
    assert sorted(found.copies) == sorted(k for own in mine if len(own) > 1 for k in own)
    assert found.n_before == len(texts)


@pytest.mark.parametrize("every", [5, 8, 15])
def test_edited_copies_are_one(every: int):
    words = words_of(0, 200)
    assert len(clusters_of([words, edited(words, every), words_of(1, 200)])) == 2


def test_an_excerpt_and_its_text_are_one_and_a_shared_phrase_is_not():
    book, other = words_of(0, 3000), words_of(1, 300)
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
    texts = [[], [], ["yes"], ["yes"], ["no"]]
    assert len(clusters_of(texts)) == 5
    sketches = [sketch_of(" ".join(words)) for words in texts]
    keys = list("abcde")
    assert len(find_clusters(keys, sketches, [True] * 5, ["0", "0", "1", "1", "2"])) == 3


def test_the_field_is_the_one_named_or_the_first_usual_one_with_a_value():
    rows = [{"author": "x", "pair_id": "", "prompt_id": None}]
    assert cluster_field(rows, None) == "author"
    assert cluster_field([{"pair_id": 0}, *rows], None) == "pair_id"
    assert cluster_field(rows, "id") == "id"
    assert cluster_field([{}], None) is None


def test_stories_that_several_models_continued_are_one_prompt(shared_data: Path):
    path = shared_data / "human_vs_machine" / "fastdetect_writing.jsonl"
    documents = list(read_documents([str(path)]))
    sketches = [sketch_of(d.text) for d in documents]
    people = [d.meta["label"] == "human" for d in documents]
    found = find_clusters([d.meta["pair_id"] for d in documents], sketches, people)
    assert (found.n_before, len(found)) == (219, 131)
    # By the first ten words alone, which the data's README says a pair begins with.
    openings: dict[tuple[str, ...], set[str]] = {}
    for document in documents:
        start = tuple(TextSettings().words(document.text)[:10])
        openings.setdefault(start, set()).add(document.meta["pair_id"])
    place = {d.meta["pair_id"]: k for k, d in enumerate(documents)}
    joined = [(place[min(p)], place[pair]) for p in openings.values() for pair in p]
    pairs = set(place.values())
    assert sum(bool(c & pairs) for c in components(len(documents), joined)) == 131
    stories = list(read_documents([str(path.with_name("hanna_writingprompts.jsonl"))]))
    keys, people = (
        [d.meta["pair_id"] for d in stories],
        [d.meta["label"] == "human" for d in stories],
    )
    assert len(find_clusters(keys, [sketch_of(d.text) for d in stories], people)) == 48
