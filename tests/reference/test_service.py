"""A served reference answers as the one on the disk, and nothing else is believed."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.http_serving import Handler, on_loopback
from tests.novelty.test_near import FEW, KNOWN, changed_copies
from tests.novelty.test_near_paper import STOP, vectors
from tests.reference_serving import TOKEN, serving_reference

from fabula.core.errors import CorpusError, InputError, LookupFailed
from fabula.core.types import Document
from fabula.novelty.measure import Levels, OriginalityMeasure
from fabula.novelty.near import NearSearch, PaperSearch
from fabula.novelty.scores import to_row
from fabula.reference.backend import LocatedText, ServerAway
from fabula.reference.build import remove_documents
from fabula.reference.client import Limits, _token_for, open_served
from fabula.reference.exclude import CopyRule
from fabula.reference.search import Reference, open_backend
from fabula.text import TextSettings

WORDS = ["the", "sea", "was", "calm", "and", "Grey", "naïve", "🐋"]
texts = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=20), min_size=2, max_size=8)
queries = st.lists(
    st.lists(st.sampled_from([*WORDS, "unseen"]), max_size=40), min_size=1, max_size=3
)
slow = settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])


def documents(many: list[list[str]]) -> list[Document]:
    return [
        Document(f"d{k % 5}", " ".join(words), author=f"a{k % 2}", meta={"year": 1850 + k})
        for k, words in enumerate(many)
    ]


@contextmanager
def opened_service(*paths: Path, limits: Limits | None = None) -> Iterator[Reference]:
    """A reference as a client sees it."""
    with serving_reference(*paths, limits=limits) as serving, closing(serving.open()) as served:
        yield served


@slow
@given(texts, queries, st.data())
def test_a_served_reference_answers_as_the_local_one(
    tmp_path_factory: pytest.TempPathFactory,
    held: list[list[str]],
    asked: list[list[str]],
    data: st.DataObject,
):
    """Lengths, sources, exclusions and ids; removed documents; shards; several requests."""
    path = tmp_path_factory.mktemp("ref") / "r"
    Reference.build(documents(held), path, shard_tokens=data.draw(st.sampled_from([1, 25, 1000])))
    every = list(range(len(held)))
    gone = data.draw(st.lists(st.sampled_from(every), unique=True, max_size=len(held) - 1))
    remove_documents(path, gone)
    local = Reference.open(path)
    out = data.draw(st.sets(st.sampled_from(every), max_size=3))
    limits = Limits(max_documents=data.draw(st.sampled_from([1, 2, 64])), n_per_s=0)
    with opened_service(path, limits=limits) as served, pytest.MonkeyPatch.context() as smaller:
        for name, values in {"MAX_GRAMS": [1, 3, 100], "MAX_NAMED": [1, 10, 1000]}.items():
            most = data.draw(st.sampled_from(values))
            smaller.setattr(f"fabula.reference.client.{name}", most)
        assert served.about.removed.tolist() == local.about.removed.tolist()
        for name in ("name", "fingerprint", "size", "settings", "age"):
            assert getattr(served, name) == getattr(local, name)
        for exclude in (set[int](), out):
            found = served.longest_matches_many(asked, exclude=exclude)
            expected = local.longest_matches_many(asked, exclude=exclude)
            assert [f.tolist() for f in found] == [e.tolist() for e in expected]
            grams = [words[k : k + n] for words in asked for k in range(len(words)) for n in (1, 3)]
            for n_sources in (0, 1, 100):
                assert served.attribute_many(grams, n_sources, exclude=exclude) == (
                    local.attribute_many(grams, n_sources, exclude=exclude)
                )
            for gram in grams[:3]:
                assert served.count(gram, exclude=exclude) == local.count(gram, exclude=exclude)
                assert served.occurrences(gram, 50) == local.occurrences(gram, 50)
        assert served.numbers() == local.numbers()
        assert list(served.documents(served.numbers())) == list(local.documents(local.numbers()))
        ids = sorted({id_ for _, id_ in local.local.ids()})
        assert served.numbers_of(ids) == local.numbers_of(ids)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, examples: Path) -> Path:
    """The library of the examples, in several shards, one text of it removed."""
    path = tmp_path_factory.mktemp("served") / "library"
    files = sorted((examples / "library").iterdir())
    held = [
        Document(one.stem, one.read_text(encoding="utf-8"), author=one.stem[0]) for one in files
    ]
    Reference.build(held, path, shard_tokens=400)
    remove_documents(path, [1])
    return path


def test_served_and_local_are_searched_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FABULA_REFERENCE_TOKEN", TOKEN)
    held = {"a": "the sea was calm", "b": "calm and grey the sea", "c": "and grey"}
    for name, text in held.items():
        Reference.build([Document(f"{name}1", text)], tmp_path / name)
    whole = Reference.open(*(tmp_path / name for name in "abc"))
    with serving_reference(tmp_path / "b") as serving:
        joined = open_backend([str(tmp_path / "a"), serving.url, str(tmp_path / "c")])
        assert isinstance(joined, Reference)
        words = ["the", "sea", "was", "calm", "and", "grey", "the", "sea"]
        assert (joined.name, joined.fingerprint) == (whole.name, whole.fingerprint)
        assert joined.longest_matches(words).tolist() == whole.longest_matches(words).tolist()
        assert joined.attribute(["grey"]) == whole.attribute(["grey"])
        joined.close()
        paper = TextSettings(case="keep", punct="keep")
        Reference.build([Document("d", "Calm.")], tmp_path / "d", settings=paper)
        said = "only references with the same settings can be searched together"
        with pytest.raises(CorpusError, match=said):
            open_backend([serving.url, str(tmp_path / "d")])


def test_what_was_removed_is_not_given_out(library: Path):
    said = "no document has the number 1, or it was removed"
    with opened_service(library) as served, pytest.raises(LookupFailed, match=said):
        served.document(1)


def test_a_text_longer_than_a_request_is_missing_and_not_cut(tmp_path: Path):
    words = [f"w{k}" for k in range(40)]
    Reference.build([Document("d", " ".join(words))], tmp_path / "r")
    with opened_service(tmp_path / "r", limits=Limits(max_words=30)) as served:
        found = served.match_texts([located(" ".join(words))] * 4 + [located("w1 w2 new")])
        assert all(isinstance(one, LookupFailed) for one in found[:4])
        assert "41 words; the limit per request is 30" in str(found[0])
        grams = [[f"w{k}", f"w{k + 1}"] for k in range(30)]
        assert [one.count for one in served.attribute_many(grams, 1)] == [1] * 30
        # It is no fault of the server's, so the others are asked.
        assert np.array_equal(found[4], [2, 1, 0])  # type: ignore[arg-type]


def located(text: str) -> LocatedText:
    return LocatedText(text, TextSettings().locate(text))


def test_near_matches_of_a_served_reference_are_those_of_the_local_one(tmp_path: Path):
    """The same bytes, over several shards, with documents left out."""
    held, texts = changed_copies(KNOWN)
    Reference.build(held, tmp_path / "r", shard_tokens=200)
    remove_documents(tmp_path / "r", [3])
    with serving_reference(tmp_path / "r") as serving:
        rows = []
        for reference in (Reference.open(tmp_path / "r"), serving.open()):
            near = NearSearch(reference, vectors(), STOP, FEW)
            measure = OriginalityMeasure(
                reference, levels=Levels(3, 5), near=near, exclude=CopyRule(run=30), spread=3
            )
            rows.append([to_row(result) for result in measure.measure(texts)])
            reference.close()
    assert rows[0] == rows[1]
    assert any(span["kind"] == "near" for row in rows[0] for span in row["covered"])


def test_what_needs_the_files_of_a_corpus_is_told_so(library: Path):
    said = "not one that is served; use the folder"
    with opened_service(library) as served, pytest.raises(InputError, match=said):
        PaperSearch(served, vectors(), STOP)


BAD_STRETCHES: list[dict[str, Any]] = [
    {"firsts": []}, {"ends": [99]}, {"numbers": [9]}, {"firsts": [3], "ends": [3]},
    {"first_words": [5]}, {"scores": [-1]}, {"scores": None},
]  # fmt: skip


@pytest.mark.parametrize("wrong", BAD_STRETCHES, ids=str)
def test_stretches_that_no_text_can_have_are_a_failed_look_up(wrong: dict[str, Any]):
    good = {"firsts": [0], "ends": [2], "numbers": [0], "first_words": [0], "end_words": [2],
            "scores": [9]}  # fmt: skip
    answers = {
        "/v1/about": ABOUT | {"vocabularies": [2]},
        "/v1/words": {"state": "f@1", "words": ["w0", "sea"], "counts": [5, 4]},
        "/v1/near": {"state": "f@1", **good, **wrong},
    }
    with opened(answers) as reference:
        near = NearSearch(reference, vectors(), STOP, FEW)
        with pytest.raises(LookupFailed):
            near.search(["w0", "sea", "w1"], np.zeros(3, np.int32), 2)


def test_a_token_goes_to_the_host_it_was_given_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("fabula.reference.client._first_host", [])
    monkeypatch.setenv("FABULA_REFERENCE_TOKEN", "one@a.example two@b.example:8100 three")
    assert _token_for("https://a.example/books") == "one"
    assert _token_for("http://b.example:8100") == "two"
    assert _token_for("http://c.example") == _token_for("http://c.example:81") == "three"
    with pytest.raises(InputError, match="; say which token is for which"):
        _token_for("http://b.example:9")
    monkeypatch.setenv("FABULA_REFERENCE_TOKEN", "one@a.example")
    assert _token_for("http://c.example") == ""


def test_without_the_right_token_it_says_what_to_do(library: Path, monkeypatch: pytest.MonkeyPatch):
    with serving_reference(library) as serving:
        for token in ("", "wrong"):
            with pytest.raises(InputError, match="environment variable FABULA_REFERENCE_TOKEN"):
                serving.open(token=token)
        monkeypatch.setenv("FABULA_REFERENCE_TOKEN", TOKEN)
        part = open_served(serving.url)
        assert part.about.name == "library"
        part.close()


def test_an_address_where_nobody_is_or_something_else_is_said():
    with pytest.raises(LookupFailed, match="did not answer in 3 attempts"):
        open_served("http://127.0.0.1:9", backoff_s=0.001)
    for status, kind, said in (
        (404, InputError, "does not serve a reference"),
        (200, LookupFailed, "not a valid answer"),
    ):
        page, refused = (status, b"<html>"), pytest.raises(kind, match=said)
        with answering(lambda path, body, page=page: page) as url, refused:
            open_served(url, backoff_s=0.001, max_retries=1)


@contextmanager
def answering(answer: Callable[[str, Any], tuple[int, bytes]]) -> Iterator[str]:
    """A server that says to each path and body what a test wants."""

    class Answering(Handler):
        def do_GET(self) -> None:  # noqa: N802
            self.reply(*answer(self.path, json.loads(self.asked() or b"null")))

        do_POST = do_GET  # noqa: N815

    with on_loopback(Answering) as url:
        yield url


ABOUT = {
    "service": "fabula-reference", "protocol": 3, "version": "0", "name": "r", "fingerprint": "f",
    "state": "f@1", "tokeniser": "word1", "settings": {"case": "fold", "punct": "drop"},
    "n_documents": 2, "n_words": 9, "removed": [1], "age": {}, "written_by": [], "limits": {},
    "vocabularies": [], "held_out": [],
}  # fmt: skip

BAD_ABOUTS = [
    {"service": "other"}, {"protocol": 1}, {"n_documents": 2**52 - 1}, {"n_documents": -1},
    {"removed": [3]}, {"removed": [1, 1]}, {"removed": "1"}, {"settings": {"case": "upper"}},
    {"limits": {"max_words": 0}}, {"limits": {"max_words": "many"}},
    {"name": None}, {"state": ["f"]},
]  # fmt: skip


@pytest.mark.parametrize("wrong", BAD_ABOUTS, ids=str)
def test_what_no_reference_can_be_is_not_opened(wrong: dict[str, Any]):
    with pytest.raises(LookupFailed), opened({"/v1/about": ABOUT | wrong}):
        pass


BAD_LENGTHS = [
    b"<html>", b"[]", b"[" * 100_000, b'{"state": "f@1"}', b"\xff\xfe", b"null", b"",
    *(json.dumps({"state": "f@1", "lengths": lengths}).encode() for lengths in (
        [], [0, 0], [0, 0, 0, 0], [-1, 0, 0], [4, 0, 0], [0, 2, 0], [3, 0, 0], [True, 0, 0],
        ["1", 0, 0], [1.0, 0, 0], [None, 0, 0], [10**30, 0, 0], {"0": 1}, "000",
    )),
    json.dumps({"state": "other@1", "lengths": [0, 0, 0]}).encode(),
]  # fmt: skip


@pytest.mark.parametrize("data", BAD_LENGTHS, ids=lambda data: repr(data[:60]))
def test_lengths_that_no_text_can_have_are_a_failed_look_up(data: bytes):
    with opened({"/v1/about": ABOUT, "/v1/match": data}) as reference:
        (found,) = reference.match_texts([located("grey sea")])
        assert isinstance(found, LookupFailed), found
        (result,) = OriginalityMeasure(reference).measure([Document("t", "grey sea")])
        assert (result.missing_reason, result.creativity_index) == ("lookup_failed", None)
        # Three failures in a row end the run.
        with pytest.raises(ServerAway, match="the same command with `out` resumes"):
            reference.match_texts([located("grey sea")])


@contextmanager
def opened(answers: dict[str, Any]) -> Iterator[Reference]:
    """The reference of a server that gives these answers by path."""

    def answer(path: str, _: Any) -> tuple[int, bytes]:
        said = answers[path]
        return 200, said if isinstance(said, bytes) else json.dumps(said).encode()

    with answering(answer) as url:
        served = open_served(url, backoff_s=0.001, max_retries=0)
        with closing(Reference(served)) as reference:
            yield reference


GOOD_FOUND = {"count": 2, "n_places": 2, "n_documents": 2, "numbers": [0, 2], "places": [0, 0]}
BAD_FOUND: list[Any] = [
    [], [GOOD_FOUND, GOOD_FOUND], "x",
    *([GOOD_FOUND | wrong] for wrong in (
        {"count": 1}, {"count": -1}, {"n_places": 1}, {"n_documents": 1}, {"numbers": [0, 3]},
        {"numbers": [0, 1]}, {"numbers": [2, 0]}, {"numbers": [0, 0]}, {"numbers": [0]},
        {"places": [0]}, {"places": [0, -1]}, {"places": [0, 10**30]}, {"places": None},
    )),
]  # fmt: skip


def about_sea(found: Any, n_documents: int = 2) -> dict[str, Any]:
    documents = [{"id": "d", "text": "sea"}] * n_documents
    return {
        "/v1/about": ABOUT, "/v1/find": {"state": "f@1", "found": found},
        "/v1/documents": {"state": "f@1", "documents": documents},
    }  # fmt: skip


@pytest.mark.parametrize("found", BAD_FOUND, ids=str)
def test_places_that_no_reference_can_have_are_a_failed_look_up(found: Any):
    answers = about_sea(found)
    with opened(answers) as reference:
        with pytest.raises(LookupFailed):
            reference.attribute(["sea"])
        answers["/v1/find"]["found"] = [GOOD_FOUND]
        assert len(reference.attribute(["sea"]).sources) == 2


@pytest.mark.parametrize(
    ("n_documents", "said"),
    [(2, "is shorter than the place where the match"), (1, "an answer that no reference can give")],
)
def test_a_place_beyond_the_document_is_a_failed_look_up(n_documents: int, said: str):
    """A server may say one thing of a document, and give another."""
    answers = about_sea([GOOD_FOUND | {"places": [0, 7]}], n_documents)
    with opened(answers) as reference, pytest.raises(LookupFailed, match=said):
        reference.attribute(["sea"])


def test_a_server_that_stumbles_is_asked_again(library: Path):
    """Cut connections, too much to do and errors of its own change no number."""
    local = Reference.open(library)
    faults = [(503, b""), (429, b'{"error": "slowly"}'), (500, b"<html>"), (502, b"")]
    asked: list[str] = []
    with serving_reference(library) as serving, httpx.Client() as client:

        def answer(path: str, body: Any) -> tuple[int, bytes]:
            asked.append(path)
            if len(asked) % 3:
                return faults[len(asked) % len(faults)]
            headers = {"Authorization": f"Bearer {TOKEN}"}
            method = "GET" if body is None else "POST"
            reply = client.request(method, serving.url + path, json=body, headers=headers)
            return reply.status_code, reply.content

        with answering(answer) as url:
            there = Reference(open_served(url, backoff_s=0.001, token=TOKEN))
            words = local.settings.words(local.document(0).text)[:60]
            assert there.longest_matches(words).tolist() == local.longest_matches(words).tolist()
            assert there.attribute(words[:5]) == local.attribute(words[:5])
            assert len(asked) >= 12
            there.close()
