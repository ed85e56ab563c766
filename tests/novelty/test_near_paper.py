"""The published search for near matches: what is found, against a search of every n-gram."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabula.core.types import Document
from fabula.models.vectors import WordVectors, quantise
from fabula.novelty.measure import Levels, OriginalityMeasure, uniqueness
from fabula.novelty.near import PaperSearch, PaperSettings
from fabula.novelty.part import article_of
from fabula.novelty.scores import to_row
from fabula.reference.search import Reference
from fabula.text.words import StopWords

STOP = StopWords.of("few", ["the", "of", "and", "a", "in"])
PLAIN = PaperSettings(threshold=0.9, floor=2, n_passages=1000, passage_words=15, overlap=5)
WORDS = ["the", "of", *(f"w{k}" for k in range(12)), "x0", "x1"]


def vectors() -> WordVectors:
    """w0 to w11 in pairs that are alike; x0 and x1 have no vector."""
    rng = np.random.default_rng(5)
    base = np.repeat(rng.normal(size=(6, 20)), 2, axis=0)
    table = base + 0.25 * rng.normal(size=(12, 20))
    known = {f"w{k}": k for k in range(12)}
    return WordVectors("pairs", quantise(table), lambda word: known.get(word, -1), b"w0-w11")


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> PaperSearch:
    rng = np.random.default_rng(1)
    texts = [rng.choice(WORDS, int(rng.integers(3, 25))) for _ in range(8)]
    documents = [Document(f"d{k}", " ".join(words)) for k, words in enumerate(texts)]
    return open_search(tmp_path_factory.mktemp("ref"), documents)


def open_search(
    path: Path, documents: list[Document], settings: PaperSettings = PLAIN, **options: int
) -> PaperSearch:
    return PaperSearch(Reference.build(documents, path, **options), vectors(), STOP, settings)


def plain_near(search: PaperSearch, words: list[str], min_words: int) -> set[tuple[int, int, int]]:
    """(first, end, document) of every n-gram that is near to an n-gram of a passage, slowly."""
    unit, rows = search.vectors.unit(np.arange(12)), search.vectors.rows

    @functools.cache
    def cosine(a: str, b: str) -> float:
        if a == b:
            return 1.0
        i, j = rows([a, b])
        return float(unit[i] @ unit[j]) if i >= 0 and j >= 0 else 0.0

    def content(part: list[str]) -> tuple[str, ...]:
        return tuple(w for w in part if STOP.is_content(w))

    @functools.cache
    def similarity(a: tuple[str, ...], b: tuple[str, ...]) -> float:
        here = sum(max(cosine(x, y) for y in b) for x in a) / len(a)
        return min(here, sum(max(cosine(x, y) for x in a) for y in b) / len(b))

    reference, floor = search.reference, search.settings.floor
    passages = []
    for number in range(reference.n_documents):
        other = reference.document(number).text.split()
        for begin, n in search.settings.cut(len(other)):
            part = other[begin : begin + n]
            spans = {content(part[a:b]) for a in range(n) for b in range(a + min_words, n + 1)}
            passages.append((number, [span for span in spans if len(span) >= floor]))
    n, least = len(words), search.settings.threshold
    grams = [(i, j, content(words[i:j])) for i in range(n) for j in range(i + min_words, n + 1)]
    return {
        (i, j, number)
        for i, j, mine in grams
        for number, spans in passages
        if len(mine) >= floor and any(similarity(mine, span) >= least for span in spans)
    }


@settings(max_examples=6)
@given(seed=st.integers(0, 10**6))
def test_matches_are_those_of_the_definition_and_none_met_is_missed(search: PaperSearch, seed: int):
    rng = np.random.default_rng(seed)
    words = list(rng.choice(WORDS, 12))
    reference = search.reference
    exact = reference.longest_matches(words)
    lengths, counterparts = search.search(words, exact, 3)
    near = plain_near(search, words, 3)
    spans = {(i, j) for i, j, _ in near}
    assert (lengths >= exact).all()
    assert {(i, i + n) for i, n in enumerate(lengths.tolist()) if n > exact[i]} <= spans
    for i, counterpart in counterparts.items():
        assert counterpart.similarity >= search.settings.threshold - 1e-6
        source = counterpart.source
        assert (i, i + lengths[i], source.number) in near
        text = source.document.text
        assert text[source.span.start : source.span.end].split() == counterpart.words.words
    # The first n-gram of a text is always asked.
    j = next((j for j in range(3, 13) if sum(map(STOP.is_content, words[:j])) >= 2), None)
    if j is not None and (0, j) in spans:
        assert lengths[0] >= j
    for level in range(3, 13):
        assert uniqueness(lengths, level) <= uniqueness(exact, level)
    everywhere = [(0, len(words))]
    for document, stretches in search.covered_by(words, 3, within=everywhere).items():
        assert all((i, j, document) in near for i, j in stretches)


def measure_with(path: Path, held: Document) -> Any:
    search = open_search(path, [held, Document("t", "w1 x1 " * 8)])
    return OriginalityMeasure(search.reference, levels=Levels(5, 6), near=search)


def test_a_reworded_copy_is_found_with_its_words_aligned(tmp_path: Path):
    held = Document("s", "x1 the w0 w2 of the w4 and x0 w6 the w8 in w10", meta={"title": "Old"})
    measure = measure_with(tmp_path, held)
    text = Document("mine", "Here: w1 w2 of THE w5 and x0 w6 the w9 stand")
    (result,) = measure.measure([text])
    row = to_row(result)
    (span,) = row["covered"]
    assert (span["kind"], span["sources"][0]["title"]) == ("near", "Old")
    assert 0.9 <= span["similarity"] <= 1
    pairs = {text.text[p["start"] : p["end"]]: p["source"] for p in span["pairs"]}
    assert pairs.items() >= {"w1": "w0", "w2": "w2", "w5": "w4", "x0": "x0", "w9": "w8"}.items()
    for pair in span["pairs"]:
        assert held.text[pair["source_start"] :].startswith(pair["source"])
    verbatim = OriginalityMeasure(measure.reference, levels=Levels(5, 6))
    assert next(verbatim.measure([text])).creativity_index == 2
    assert row["creativity_index"] < 2
    lengths, near = measure.near.search(held.text.split(), np.zeros(13, np.int32), 5, exclude=[0])
    assert (lengths.max(), near) == (0, {})


def test_vectors_of_english_measure_english_only(tmp_path: Path):
    text = Document("fr", "Il était une fois un roi qui aimait les livres et la neige.")
    search = open_search(tmp_path, [text])
    own = PaperSearch(search.reference, vectors(), STOP, PLAIN, is_english=False)
    measures = [OriginalityMeasure(search.reference, near=one) for one in (search, None, own)]
    near, verbatim, of_own = (next(measure.measure([text])) for measure in measures)
    assert near.missing_reason == "not English: looks like French"
    assert (near.creativity_index, near.borrowed) == (None, ())
    # Words that are compared as they stand are of any language, and so are vectors of one's own.
    assert (verbatim.missing_reason, of_own.missing_reason) == (None, None)
    assert "lang" not in dict(measures[2].signature.parts)


def test_what_is_near_is_never_said_to_be_wholly_alike(tmp_path: Path):
    # The same content words: only the others differ.
    document = Document("mine", "w0 the w2 and w4 w6 of w8 w10")
    measure = measure_with(tmp_path, Document("s", "w0 of w2 the w4 w6 in w8 w10"))
    (result,) = measure.measure([document])
    row = to_row(result)
    (span,) = row["covered"]
    assert span["kind"] == "near"
    assert span["similarity"] == 0.9999
    assert {pair["similarity"] for pair in span["pairs"]} == {1.0}, "these words are the same"
    (shown,) = article_of(1, document, row)["near"]
    assert shown.reason == "found in other words, 99% similar"


def test_documents_cover_only_what_was_kept(search: PaperSearch):
    words = list(np.random.default_rng(3).choice(WORDS, 40))
    everything = search.covered_by(words, 3, within=[(0, 40)])
    some = search.covered_by(words, 3, within=[(4, 9), (20, 30)])
    assert everything
    for number, spans in some.items():
        for first, end in spans:
            assert (4 <= first < end <= 9) or (20 <= first < end <= 30)
            assert any(a <= first and end <= b for a, b in everything[number])
    assert search.covered_by(words, 3, within=[]) == {}
