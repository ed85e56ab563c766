"""Passages of a reference by BM25: against the engine's own ranking, and however it is cut."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.errors import CorpusError, InputError
from fabula.reference import Reference
from fabula.reference.parts import JoinedParts, LocalPart
from fabula.reference.passage_parts import Queries
from fabula.reference.passages import PassageIndex, PassageSettings, build_passages
from fabula.text.stopwords import load_stop_words
from fabula.types import Document

SETTINGS = PassageSettings(8, 2)
STOP = load_stop_words()


def corpus(n: int, seed: int = 0) -> list[Document]:
    rng = np.random.default_rng(seed)
    words = np.array([f"w{k}" for k in range(40)] + ["the", "of", "and"])
    weights = 1 / np.arange(1, len(words) + 1)
    weights /= weights.sum()
    return [
        Document(f"d{k}", " ".join(rng.choice(words, int(rng.integers(1, 30)), p=weights)))
        for k in range(n)
    ]


def index_of(path: Path, documents: list[Document], **options: int) -> PassageIndex:
    reference = Reference.build(documents, path, **options)
    build_passages(path, [s.info for s in reference.local.shards], SETTINGS, STOP)
    return PassageIndex(reference, SETTINGS, STOP)


def named(
    index: PassageIndex, query: list[str], n: int, **options: list[int]
) -> set[tuple[str, int]]:
    found = [index.passage(int(k), int(p)) for k, p in index.best(query, n, **options)]
    return {(index.reference.document(p.number).id, p.first_word) for p in found}


@given(st.integers(0, 200), st.integers(2, 60), st.data())
def test_passages_cover_a_document_and_hold_every_short_n_gram(
    n_words: int, length: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, length - 1))
    cut = PassageSettings(length, overlap).cut(n_words)
    assert sorted({w for begin, n in cut for w in range(begin, begin + n)}) == list(range(n_words))
    for i in range(n_words - overlap + 1):
        assert any(begin <= i and i + overlap <= begin + n for begin, n in cut)
    with pytest.raises(InputError):
        PassageSettings(length, length)


def test_the_best_passages_are_those_of_the_engine_itself(tmp_path: Path) -> None:
    documents = corpus(60)
    index = index_of(tmp_path, documents)
    texts = [
        (d.id, begin, d.text.split()[begin : begin + n])
        for d in documents
        for begin, n in SETTINGS.cut(len(d.text.split()))
    ]
    plain = [[w for w in words if STOP.is_content(w)] for _, _, words in texts]
    engine = bm25s.BM25(k1=1.5, b=0.0, method="lucene")
    engine.index(plain, show_progress=False)
    for query in (["w3", "w30"], ["w0", "w1", "w39", "the"], ["w5", "w6", "w7", "w8"]):
        scores = engine.get_scores([w for w in query if STOP.is_content(w)])
        for n in (1, 5, 20):
            found = named(index, query, n)
            assert len(found) == min(n, int((scores > 0).sum()))
            mine = sorted(scores[k] for k, t in enumerate(texts) if t[:2] in found)
            best = np.sort(scores)[::-1][: len(mine)][::-1]
            assert mine == pytest.approx(best.tolist(), abs=1e-3)


def test_the_ranking_does_not_depend_on_shards_or_on_what_was_added_later(tmp_path: Path) -> None:
    documents = corpus(80)
    whole = index_of(tmp_path / "whole", documents)
    cut = index_of(tmp_path / "cut", documents, shard_tokens=150)
    assert len(cut.reference.local.shards) > 4
    for query in (["w3", "w30"], ["w0", "w1", "w39"], ["w20", "w21", "w22", "w23"]):
        for n in (1, 7, 40):
            assert named(whole, query, n) == named(cut, query, n)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> PassageIndex:
    """Many shards: texts that stand there twice, so that scores tie, and words of few shards."""
    documents = [
        Document(f"d{k}", f"{document.text} here{k // 20}")
        for k, document in enumerate(corpus(60) + corpus(60))
    ]
    return index_of(tmp_path_factory.mktemp("many"), documents, shard_tokens=150)


def in_parts(index: PassageIndex, ends: list[int]) -> PassageIndex:
    """The same shards in several parts, a part ending before each of `ends`."""
    whole = index.reference.local
    bounds = [0, *ends, len(whole.shards)]
    parts = [
        LocalPart(whole.shards[a:b], whole.removed[whole.first_numbers[a] : whole.first_numbers[b]])
        for a, b in pairwise(bounds)
    ]
    return PassageIndex(Reference(index.reference.about, JoinedParts(parts)), SETTINGS, STOP)


@given(
    st.lists(
        st.lists(st.sampled_from([*(f"w{k}" for k in range(12)), "here0", "here5", "no", "the"])),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 60),
    st.sets(st.integers(0, 119), max_size=30),
    st.sets(st.integers(1, 8), max_size=4),
)
def test_the_best_of_parts_are_the_best_of_the_whole_and_a_full_sort_finds_them(
    many: PassageIndex, texts: list[list[str]], n: int, out: set[int], ends: set[int]
) -> None:
    assert len(many.reference.local.shards) > 8
    parts = in_parts(many, sorted(ends))
    assert parts.n_passages == many.n_passages
    found = many.best_many(texts, n, exclude=out)
    for mine, whole in zip(parts.best_many(texts, n, exclude=out), found, strict=True):
        assert mine.tolist() == whole.tolist()
    for words, chosen in zip(texts, found, strict=True):
        terms = sorted({word for word in words if STOP.is_content(word)})
        queries = Queries(terms, many._weights(terms), [np.arange(len(terms))])
        (everything,) = many.part.best(queries, 10**6, exclude=sorted(out))
        places = zip(everything.shards.tolist(), everything.passages.tolist(), strict=True)
        ranked = sorted(zip((-everything.scores).tolist(), places, strict=True))
        assert chosen.tolist() == sorted(list(place) for _, place in ranked[:n])


@given(st.sets(st.integers(1, 8), max_size=4))
def test_passages_are_read_as_their_documents_have_them(many: PassageIndex, ends: set[int]) -> None:
    parts = in_parts(many, sorted(ends))
    chosen = parts.best_many([["w1", "w30"], ["w2", "here3"]], 40)
    for k, read in parts.read(chosen).items():
        assert {(k, p) for p in read.passages.tolist()} == {
            (shard, p) for some in chosen for shard, p in some.tolist() if shard == k
        }
        for at, number in enumerate(read.numbers.tolist()):
            begin, n = int(read.begins[at]), int(read.lengths[at])
            words = parts.part.words({k: read.tokens[begin : begin + n]})[k]
            first = int(read.first_words[at])
            assert words == many.reference.document(number).text.split()[first : first + n]


def test_documents_that_are_left_out_have_no_passages(tmp_path: Path) -> None:
    index = index_of(tmp_path, corpus(20))
    everything = named(index, ["w0", "w1", "w2"], 100)
    without = named(index, ["w0", "w1", "w2"], 100, exclude=(3, 4))
    assert without == {x for x in everything if x[0] not in ("d3", "d4")} != everything
    assert named(index, ["nowhere", "the"], 10) == set()


def test_building_again_changes_nothing_and_a_cut_build_goes_on(tmp_path: Path) -> None:
    reference = Reference.build(corpus(80), tmp_path, shard_tokens=150)
    said: list[str] = []
    build_passages(
        tmp_path, [s.info for s in reference.local.shards[:2]], SETTINGS, STOP, said.append
    )
    build_passages(tmp_path, [s.info for s in reference.local.shards], SETTINGS, STOP, said.append)
    build_passages(tmp_path, [s.info for s in reference.local.shards], SETTINGS, STOP, said.append)
    assert len(said) == len(reference.local.shards)
    home = tmp_path / "passages" / SETTINGS.key(STOP)
    first = (home / "00000" / "data.npy").read_bytes()
    # A corpus that was built anew in the same place makes its passages stale.
    Reference.build(corpus(80, seed=1), tmp_path, shard_tokens=150, restart=True)
    again = Reference.open(tmp_path)
    with pytest.raises(CorpusError, match="other texts"):
        PassageIndex(again, SETTINGS, STOP)
    build_passages(tmp_path, [s.info for s in again.local.shards], SETTINGS, STOP)
    assert (home / "00000" / "data.npy").read_bytes() != first
    with pytest.raises(CorpusError, match="no passages"):
        PassageIndex(again, PassageSettings(9, 2), STOP)


def test_a_stop_list_is_a_file_or_a_name(tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("# remarks\nWhale, harpoon’s\n", encoding="utf-8")
    chosen = load_stop_words(str(own))
    assert chosen.words == {"whale", "harpoon's"}
    assert (chosen.is_content("ship"), chosen.is_content("harpoon's")) == (True, False)
    assert chosen.name != load_stop_words("none").name != load_stop_words().name
    assert not STOP.is_content("The".casefold())
    assert not STOP.is_content("—")
    assert STOP.is_content("whale")
    with pytest.raises(InputError, match="`stop_words`"):
        load_stop_words(str(tmp_path / "none.txt"))


def test_damaged_passages_are_refused_and_found_by_verify(tmp_path: Path) -> None:
    from fabula.reference.verify import verify_reference

    index = index_of(tmp_path, corpus(20))
    folder = tmp_path / "passages" / SETTINGS.key(STOP) / "00000"
    verify_reference(tmp_path)
    whole = np.load(folder / "indices.npy")
    np.save(folder / "indices.npy", np.where(np.arange(len(whole)) == 3, 2**31 - 1, whole))
    with pytest.raises(CorpusError, match=r"indices\.npy: damaged"):
        PassageIndex(index.reference, SETTINGS, STOP)
    with pytest.raises(CorpusError, match=r"indices\.npy: damaged"):
        verify_reference(tmp_path)


def test_a_corpus_of_function_words_has_passages_that_nothing_finds(tmp_path: Path) -> None:
    index = index_of(tmp_path, [Document("a", "the of and the of")])
    assert named(index, ["the", "w1"], 5) == set()
