"""A reference finds what a set of n-grams finds: many shards, additions, removals, threads."""

import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import oracles

from fabula.core.errors import CorpusError
from fabula.core.types import Document
from fabula.reference.build import add_documents, remove_documents
from fabula.reference.parts import JoinedParts, LocalPart
from fabula.reference.search import Reference, open_backend
from fabula.text import TextSettings

WORDS = ["the", "sea", "was", "calm", "and", "Grey"]
texts = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=20), min_size=2, max_size=8)
queries = st.lists(st.sampled_from([*WORDS, "unseen"]), max_size=40)
slow = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])


def documents(many: list[list[str]], prefix: str = "d") -> list[Document]:
    return [Document(f"{prefix}{k}", " ".join(words)) for k, words in enumerate(many)]


def fold(words: list[str]) -> list[str]:
    return [word.casefold() for word in words]


@slow
@given(texts, texts, st.lists(queries, min_size=1, max_size=4), st.data())
def test_shards_additions_and_removals_answer_as_sets_of_ngrams(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[list[str]],
    second: list[list[str]],
    asked: list[list[str]],
    data: st.DataObject,
):
    path = tmp_path_factory.mktemp("ref") / "r"
    shard_tokens = data.draw(st.sampled_from([1, 10, 1000]))
    Reference.build(documents(first), path, shard_tokens=shard_tokens)
    # Texts may be those of the build again, which only `restart` adds twice.
    add_documents(documents(second, "e"), path, n_jobs=1, restart=True)
    held = {d.id: fold(d.text.split()) for d in documents(first) + documents(second, "e")}
    gone = data.draw(st.lists(st.sampled_from(sorted(held)), unique=True, max_size=len(held) - 1))
    reference = Reference.open(path)
    if gone:
        numbers = [n for found in reference.numbers_of(gone).values() for n in found]
        remove_documents(path, numbers)
        reference = Reference.open(path)
    left = [words for id_, words in held.items() if id_ not in gone]
    for n_threads in (1, 3):
        found = reference.longest_matches_many(asked, n_threads=n_threads)
        for words, lengths in zip(asked, found, strict=True):
            assert lengths.tolist() == oracles.longest_matches(fold(words), left)
    gram = fold(data.draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3)))
    assert reference.count(gram) == oracles.count(gram, left)
    shown = reference.occurrences(gram, limit=1000)
    assert len(shown) == oracles.count(gram, left)
    for place in shown:
        span = place.document.text[place.span.start : place.span.end]
        assert fold(span.split()) == gram
        assert place.document.id not in gone
    attribution = reference.attribute(gram, 100)
    holders = {id_ for id_, words in held.items() if oracles.count(gram, [words])} - set(gone)
    assert {source.document.id for source in attribution.sources} == holders
    assert attribution.n_documents == len(holders)


@slow
@given(texts, texts, queries)
def test_two_references_searched_as_one_equal_one_that_holds_both(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[list[str]],
    second: list[list[str]],
    words: list[str],
):
    folder = tmp_path_factory.mktemp("ref")
    Reference.build(documents(first), folder / "a")
    Reference.build(documents(second), folder / "b")
    both = Reference.open(folder / "a", folder / "b")
    # The same corpus at two paths counts once, whatever the order of its documents.
    left = [fold(w) for w in (first if sorted(first) == sorted(second) else first + second)]
    assert both.longest_matches(words).tolist() == oracles.longest_matches(fold(words), left)
    assert both.count(["the"]) == oracles.count(["the"], left)


def in_parts(whole: Reference, *edges: int) -> Reference:
    """Cut before these shards."""
    local, parts = whole.local, []
    for low, high in pairwise([0, *edges, len(local.shards)]):
        first, end = local.first_numbers[[low, high]]
        about = replace(local.about, removed=local.about.removed[first:end])
        parts.append(LocalPart(about, local.shards[low:high]))
    return Reference(JoinedParts(parts, local.about))


@slow
@given(texts, queries, st.data())
def test_a_reference_in_parts_answers_as_the_whole(
    tmp_path_factory: pytest.TempPathFactory,
    held: list[list[str]],
    words: list[str],
    data: st.DataObject,
):
    """Numbers are those of the whole, whichever part a document lies in."""
    path = tmp_path_factory.mktemp("ref") / "r"
    whole = Reference.build(documents(held), path, shard_tokens=5)
    n_shards = len(whole.local.shards)
    cut = in_parts(whole, *sorted(data.draw(st.sets(st.integers(1, n_shards), max_size=3))))
    out = data.draw(st.sets(st.integers(0, len(whole.about.removed) - 1), max_size=3))
    assert cut.longest_matches(words, exclude=out).tolist() == (
        whole.longest_matches(words, exclude=out).tolist()
    )
    grams = [[word] for word in words] + [words[k : k + 2] for k in range(len(words))]
    for n_sources in (1, 100):
        assert cut.attribute_many(grams, n_sources, exclude=out) == [
            whole.attribute(gram, n_sources, exclude=out) for gram in grams
        ]
    ids = sorted(id_ for _, id_ in whole.local.ids())
    assert cut.numbers_of(ids) == whole.numbers_of(ids)


def test_corpora_of_other_settings_are_not_mixed(tmp_path: Path):
    Reference.build([Document("a", "One")], tmp_path / "a")
    Reference.build([Document("a", "One")], tmp_path / "b", settings=TextSettings("keep", "keep"))
    with pytest.raises(CorpusError, match="references with the same settings"):
        Reference.open(tmp_path / "a", tmp_path / "b")


def test_case_and_punctuation_count_only_where_they_are_kept(tmp_path: Path):
    text = [Document("a", "The sea, the sea!")]
    folded = Reference.build(text, tmp_path / "a")
    paper = Reference.build(text, tmp_path / "b", settings=TextSettings("keep", "keep"))
    query = "the sea the sea"
    assert folded.longest_matches(folded.locate(query).words).tolist() == [4, 3, 2, 1]
    assert paper.longest_matches(paper.locate(query).words).tolist() == [2, 1, 2, 1]


def test_documents_come_back_as_they_were_read(tmp_path: Path):
    given_ = [
        Document("a", "Ein “Text”\n\nmit Zeilen \u2028 und 🎈", author="Ann", meta={"year": 1900}),
        Document("empty", " … "),
        Document("b", "zwei", prompt_id="p"),
    ]
    reference = Reference.build(given_, tmp_path / "r")
    assert [reference.document(k) for k in range(2)] == [given_[0], given_[2]]
    assert list(reference.local.ids()) == [(0, "a"), (1, "b")]


def test_a_corpus_that_is_given_twice_counts_once(tmp_path: Path):
    held = [Document("a", "the same old words stand here"), Document("b", "and other words there")]
    once = Reference.build(held, tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    Reference.build([Document("c", "the same old words again")], tmp_path / "two")
    for twice in (
        Reference.open(tmp_path / "one", tmp_path / "one"),
        Reference.open(tmp_path / "one", tmp_path / "copy"),
        open_backend([str(tmp_path / "one"), f"{tmp_path}/./one", str(tmp_path / "copy")]),
    ):
        assert isinstance(twice, Reference)
        found = twice.attribute(["same", "old", "words"])
        assert (found.count, found.n_documents, len(found.sources)) == (1, 1, 1)
        assert (twice.name, twice.fingerprint) == (once.name, once.fingerprint)
        assert twice.size == once.size
    both = Reference.open(tmp_path / "one", tmp_path / "two", tmp_path / "copy")
    assert both.count(["same", "old", "words"]) == 2
