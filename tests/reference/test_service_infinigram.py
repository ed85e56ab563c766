"""Infini-gram's protocol over a served reference, asked by our own client and as it is written."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.reference_serving import Serving, serving_reference

from fabula.errors import LookupFailed
from fabula.reference import LocatedText, Reference
from fabula.reference.http_client import LookupServer
from fabula.reference.infinigram import InfiniGramWeb
from fabula.reference.infinigram_server import InfiniGramServer
from fabula.reference.tombstones import remove_documents
from fabula.text import TextSettings
from fabula.types import Document

PAPER = TextSettings(case="keep", punct="keep")


@pytest.fixture(scope="module", params=["whole", "removed"])
def path(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, examples: Path
) -> Path:
    """Several shards; where documents were removed, ranks do not lead to them."""
    path = tmp_path_factory.mktemp("infinigram") / "library"
    held = [
        Document(file.stem, file.read_text(encoding="utf-8"))
        for file in sorted((examples / "library").iterdir())
    ]
    Reference.build(held, path, settings=PAPER, shard_tokens=400)
    if request.param == "removed":
        remove_documents(path, [0, 3])
    return path


@pytest.fixture(scope="module")
def serving(path: Path) -> Iterator[Serving]:
    with serving_reference(path, tokens=()) as serving:
        yield serving


def ask(serving: Serving, **asked: Any) -> Any:
    return httpx.post(serving.url + "/", json={"index": "library", **asked}).json()


def some_grams(reference: Reference) -> list[list[str]]:
    """Frequent and rare, with punctuation, and what does not occur."""
    words = PAPER.words(reference.document(2).text)
    grams = [words[k : k + n] for k in range(0, 60, 7) for n in (1, 2, 5)]
    return [gram for gram in grams if not {"AND", "OR"} & {*gram}] + [["zyx"], ["the", "zyx"]]


def test_counts_and_segments_are_those_of_the_reference(path: Path, serving: Serving) -> None:
    reference = Reference.open(path)
    for gram in some_grams(reference):
        query = " ".join(gram)
        assert PAPER.words(query) == gram
        count = ask(serving, query_type="count", query=query)
        assert (count["count"], count["approx"]) == (reference.count(gram), False)
        # In milliseconds, as docs/source/api.rst says; no search takes less than a millionth.
        assert count["latency"] > 0.001
        found = ask(serving, query_type="find", query=query)
        assert found["cnt"] == count["count"]
        ends = found["segment_by_shard"]
        assert len(ends) == len(reference.local.shards)
        assert sum(high - low for low, high in ends) == found["cnt"]


def test_each_rank_leads_to_a_document_that_holds_the_words(path: Path, serving: Serving) -> None:
    reference = Reference.open(path)
    for gram in some_grams(reference)[:12]:
        query = " ".join(gram)
        segments = ask(serving, query_type="find", query=query)["segment_by_shard"]
        numbers = set()
        for shard, (low, high) in enumerate(segments):
            for rank in range(low, high):
                shown = ask(serving, query_type="get_doc_by_rank", query=query, s=shard, rank=rank,
                            max_disp_len=20)  # fmt: skip
                text = reference.document(shown["doc_ix"]).text
                (needle,) = [part for part, label in shown["spans"] if label == "0"]
                assert PAPER.words(needle) == gram
                assert "".join(part for part, _ in shown["spans"]) in text
                assert shown["disp_len"] <= 20
                assert shown["metadata"] == reference.document(shown["doc_ix"]).id
                numbers.add(shown["doc_ix"])
        assert sorted(numbers) == reference.documents_with(gram)


def test_our_own_client_finds_what_the_corpus_finds(
    path: Path, serving: Serving, tmp_path: Path, examples: Path
) -> None:
    reference = Reference.open(path)
    story = (examples / "the-count.txt").read_text(encoding="utf-8")[:600]
    text = f"{reference.document(2).text[:200]} {story}"
    located = LocatedText(text, PAPER.locate(text))
    cache = tmp_path / "cache"
    with closing(InfiniGramWeb("library", serving.url, cache=cache, backoff_s=0.001)) as web:
        (found,) = web.match_texts([located])
        expected = reference.longest_matches(located.words.words).tolist()
        # It tells no match longer than it needs to know.
        assert found.tolist() == expected  # type: ignore[union-attr]
        (cited,) = web.cite(located, [(0, 6)], 3)
        (known,) = reference.cite(located, [(0, 6)], 3)
        assert cited.count == known.count
        assert {source.document.text[source.span.start : source.span.end]
                for source in cited.sources} == {text[: int(located.words.ends[5])]}  # fmt: skip


@pytest.mark.parametrize(("asked", "said"), [
    ({"query_type": "count", "query": "a", "index": "other"}, "Invalid index"),
    ({"query_type": "count", "query_ids": [1], "query": "a"}, "Exactly one"),
    ({"query_type": "count", "query_ids": [10**9]}, "out-of-range"),
    ({"query_type": "count", "query_ids": [-1]}, "out-of-range"),
    ({"query_type": "count", "query_ids": [True]}, "list of integers"),
    ({"query_type": "count", "query_ids": [[[1], [2]]]}, "list of integers"),
    ({"query_type": "count", "query": "a", "index": "library", "corpus": "other"},
     "Invalid index: other"),
    ({"query_type": "count"}, "query: is missing"),
    ({"query_type": "count", "query": "this AND that"}, "operators"),
    ({"query_type": "count", "query": "this OR that"}, "operators"),
    ({"query_type": "prob", "query": "a"}, "Invalid query_type"),
    ({"query_type": "count", "query": "a" * 1001}, "Please limit your input to <= 1000 char"),
    ({"query_type": "count", "query": "a " * 500 + "b"}, "Please limit your input"),
    ({"query_type": "get_doc_by_rank", "query": "the", "s": 99, "rank": 0}, "s: there are"),
    ({"query_type": "get_doc_by_rank", "query": "the", "s": 0, "rank": 0}, "call find again"),
    ({"query_type": "count", "query": 5}, "query"),
])  # fmt: skip
def test_what_it_does_not_answer_has_the_protocols_error(
    serving: Serving, asked: dict[str, Any], said: str
) -> None:
    reply = ask(serving, **asked)
    assert set(reply) == {"error"}
    assert said in reply["error"]


def test_token_ids_stand_for_the_words_that_answers_tell(path: Path, serving: Serving) -> None:
    reference = Reference.open(path)
    for gram in some_grams(reference):
        said = ask(serving, query_type="count", query=" ".join(gram))
        held = [word if reference.count([word]) else "\ufffd" for word in gram]
        if "\ufffd" not in held:
            assert said["tokens"] == gram
        again = ask(serving, query_type="count", query_ids=said["token_ids"])
        assert again["count"] == said["count"]
        assert (again["token_ids"], again["tokens"]) == (said["token_ids"], said["tokens"])
    assert ask(serving, query_type="count", query_ids=[])["count"] == reference.n_words


def test_an_index_has_its_former_name_too(serving: Serving) -> None:
    """api_server.py takes `corpus`, and before `index`."""
    reply = httpx.post(
        serving.url + "/", json={"corpus": "library", "query_type": "count", "query": "the"}
    ).json()
    assert reply["count"] == ask(serving, query_type="count", query="the")["count"] > 0


def test_operators_are_words_in_a_text(tmp_path: Path) -> None:
    """The client asks for token ids, in which AND and OR mean nothing more."""
    held = "Cats AND dogs came. THIS OR THAT AND so on: AND OR AND, said the old man to the sea."
    library = tmp_path / "library"
    Reference.build([Document("a", held), Document("b", "OR AND THAT")], library, settings=PAPER)
    reference = Reference.open(library)
    text = f"He saw Cats AND dogs OR cows. {held} NOT AND nor OR never AND"
    located = LocatedText(text, PAPER.locate(text))
    cache = tmp_path / "cache"
    with (
        serving_reference(library, tokens=()) as serving,
        closing(InfiniGramWeb("library", serving.url, cache=cache, max_retries=0)) as web,
    ):
        (found,) = web.match_texts([located])
        assert found.tolist() == reference.longest_matches(located.words.words).tolist()  # type: ignore[union-attr]
        first = located.words.words.index("AND")
        (cited,) = web.cite(located, [(first, 2)], 3)
        assert cited.count == reference.count(["AND", "dogs"]) == 1
        assert [source.document.text[source.span.start : source.span.end]
                for source in cited.sources] == ["AND dogs"]  # fmt: skip


def test_ids_of_an_index_that_was_replaced_are_no_answer(tmp_path: Path) -> None:
    stop = threading.Event()
    library = tmp_path / "library"
    Reference.build([Document("a", "cats AND dogs")], library, settings=PAPER)
    with serving_reference(library, tokens=()) as serving:
        lookups = LookupServer(
            serving.url + "/", n_parallel=1, max_retries=0, timeout_s=30, backoff_s=0.001
        )
        server = InfiniGramServer(lookups, "library")
        assert server.count("cats AND dogs", stop) == 1
        server._tokens["AND dogs"] = server._tokens["cats"][0], ["AND", "dogs"]
        with pytest.raises(LookupFailed, match="replaced"):
            server.count("cats AND dogs", stop)
        assert server.count("cats AND dogs", stop) == 1
        server.close()


def test_of_no_words_all_words_are_counted(path: Path, serving: Serving) -> None:
    assert ask(serving, query_type="count", query=" ")["count"] == Reference.open(path).n_words
