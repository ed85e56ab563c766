"""Infini-gram mini's server finds characters; what is found here is words.

The server answers as api/api_server.py and docs/source/api.rst in xuhaoxh/infini-gram-mini say: it
counts a string wherever it stands, within words too.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import oracles
from tests.infinigram_serving import Body, serving_infinigram

from fabula.core.errors import LookupFailed
from fabula.jobs.job import SILENT
from fabula.novelty.job import OriginalityOptions
from fabula.reference.backend import LocatedText
from fabula.reference.catalogue import BY_CHARACTERS, MINI_URL
from fabula.reference.infinigram import InfiniGramMini
from fabula.reference.search import index_url, open_backend
from fabula.text import TextSettings
from fabula.writer.work import Asked, where_to

SETTINGS = TextSettings(case="keep", punct="keep")
DOCUMENTS = [
    "The cats sat on the mat. It was late, and the cat said: "
    "\u201cwell-known things don\u2019t last.\u201d",
    "A bathe cataract fell (so they say) into the sea\u2014and nobody saw it.",
    "He said 'so be it' and left. The dogs' owner left, too; it was the end.",
]


Open = Callable[..., InfiniGramMini]


class Mini:
    """The engine: a string is counted wherever it stands in a document."""

    def __init__(self, documents: list[str], index: str = "v2_cc-2025-30") -> None:
        self.documents, self.index = documents, index

    def places(self, query: str) -> list[tuple[int, int]]:
        return [
            (k, at)
            for k, text in enumerate(self.documents)
            for at in range(len(text) - len(query) + 1)
            if text.startswith(query, at)
        ]

    def __call__(self, body: Body) -> tuple[int, dict[str, Any]]:
        if body["index"] != self.index:
            return 400, {"error": f"[Flask] Invalid index: {body['index']}"}
        places = self.places(body["query"])
        if body["query_type"] == "count":
            return 200, {"count": len(places), "latency": 500.0}
        if body["query_type"] == "find":
            segments = [[0, len(places)]]
            return 200, {"cnt": len(places), "segment_by_shard": segments, "latency": 500.0}
        k, at = places[body["rank"]]
        begin = max(0, at - body["max_ctx_len"])
        shown = self.documents[k][begin : at + len(body["query"]) + body["max_ctx_len"]]
        return 200, {
            "doc_ix": k, "doc_len": len(self.documents[k]), "disp_len": len(shown),
            "needle_offset": at - begin, "text": shown, "latency": 500.0,
        }  # fmt: skip


@pytest.fixture
def open_mini(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    monkeypatch.setenv("FABULA_CACHE", str(tmp_path))
    with ExitStack() as opened:

        def open_one(url: str, **options: Any) -> InfiniGramMini:
            options = {"backoff_s": 0.001, "timeout_s": 5} | options
            mini = InfiniGramMini("v2_cc-2025-30", url, **options)
            return opened.enter_context(closing(mini))

        yield open_one


def located(text: str) -> LocatedText:
    return LocatedText(text, SETTINGS.locate(text))


def longest(text: str, documents: list[str]) -> list[int]:
    return oracles.longest_matches(SETTINGS.words(text), list(map(SETTINGS.words, documents)))


TEXTS = [
    "the cat said", "he cat", "It was late, and the cat said so be it", "known things", "don",
    "t last", "well-known things don\u2019t last.", "into the sea\u2014and nobody", "so they say",
    "the dogs' owner", "dogs", "cataract fell, the end.", "at the mat . It",
]  # fmt: skip


def test_no_match_inside_a_word_is_counted(open_mini: Open):
    with serving_infinigram(Mini(DOCUMENTS)) as served:
        mini = open_mini(served.url)
        found = mini.match_texts([located(text) for text in TEXTS])
    counted = {text: list(map(int, one)) for text, one in zip(TEXTS, found, strict=True)}
    for text, lengths in (
        ("he cat", [0, 1]), ("known things", [0, 1]), ("don", [0]), ("t last", [0, 1]),
    ):  # fmt: skip
        assert counted[text] == lengths
    for text in TEXTS[:-1]:
        assert counted[text] == longest(text, DOCUMENTS), text
    # A space before a full stop is part of what is looked for.
    assert counted["at the mat . It"] == [0, 2, 1, 2, 1]


words = st.sampled_from(["a", "aa", "ab", "ba", "a-b", "a'b", "b", "A"])
between = st.sampled_from([" ", ", ", ". ", " (", ") ", "\u2014", ' "', '" ', "' ", " '"])


@st.composite
def texts(draw: st.DrawFn) -> str:
    parts = [draw(words)]
    for _ in range(draw(st.integers(0, 7))):
        parts += [draw(between), draw(words)]
    return "".join(parts)


@settings(max_examples=60)
@given(st.lists(texts(), min_size=1, max_size=3), texts())
def test_what_is_found_is_never_more_than_the_words_that_are_there(documents: list[str], text: str):
    mini = Mini(documents)
    web = InfiniGramMini.__new__(InfiniGramMini)
    web._count = lambda query, stop: len(mini.places(query))  # type: ignore[method-assign]
    one = located(text)

    def occurs(i: int, j: int) -> bool:
        return web._found_as(one, i, j - i, None)[1] > 0  # type: ignore[arg-type]

    truth = longest(text, documents)
    n = len(one)
    there = {(i, j) for i in range(n) for j in range(i + 1, n + 1) if occurs(i, j)}
    # A mark alone is found wherever it stands: no level of a measure is so short.
    marks = {i for i in range(n) if not one.words.words[i][0].isalnum()}
    assert all(j - i <= truth[i] for i, j in there if (i, j) not in {(k, k + 1) for k in marks})
    # A search by two pointers needs every part of what is found to be found.
    for i, j in there:
        assert all((a, b) in there for a in range(i, j) for b in range(a + 1, j + 1))


def test_a_failed_look_up_is_never_novelty(open_mini: Open):
    # Every look-up beside a bracket fails: the words may stand there, so nothing can be said.
    def faults(what: str, attempt: int) -> str | None:
        return "500" if "(so they" in what else None

    with serving_infinigram(Mini(DOCUMENTS), faults) as served:
        mini = open_mini(served.url, max_retries=1)
        one, other = mini.match_texts([located("so they say"), located("the end.")])
    assert isinstance(one, LookupFailed)
    assert isinstance(other, np.ndarray)
    assert list(other) == [3, 2, 1]


def test_sources_are_shown_where_the_words_stand(open_mini: Open):
    with serving_infinigram(Mini([*DOCUMENTS, "bathe cats"])) as served:
        (found,) = open_mini(served.url).cite(located("the cats"), [(0, 2)], 3)
        (there,) = open_mini(served.url).cite(located("the cat said"), [(0, 3)], 3)
    assert (found.count, there.count) == (0, 1)
    (source,) = there.sources
    assert source.number == 0
    assert source.document.text[source.span.start : source.span.end] == "the cat said"


def test_the_name_in_the_documentation_asks_for_the_one_that_the_server_knows():
    assert index_url("infinigram:v2_cc_2025-30") == MINI_URL
    assert index_url("infinigram-mini:own") == MINI_URL
    with serving_infinigram(Mini(DOCUMENTS)) as served:
        backend = open_backend([f"infinigram:v2_cc_2025-30@{served.url}"])
        (found,) = backend.match_texts([located("the cat said")])
        backend.close()
    assert isinstance(backend, InfiniGramMini)
    assert not isinstance(found, LookupFailed)
    assert list(found) == [3, 2, 1]
    assert {body["index"] for body in served.requests} == {"v2_cc-2025-30"}
    assert backend.fingerprint.endswith(".beside1")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("infinigram-mini:own", "3,000 look-ups per 1,000 words of text, some 6 minutes"),
        ("infinigram:v4_rpj_llama_s4", "2,000 look-ups per 1,000 words of text, some 1 minute"),
    ],
)
def test_before_a_run_it_says_what_a_text_takes(spec: str, said: str):
    progress = Mock(spec=SILENT)
    OriginalityOptions(references=(f"{spec}@http://127.0.0.1:9/",)).open_backend(progress).close()
    assert f"about {said}" in progress.tell.call_args.args[0]


def test_a_desk_says_that_runs_of_words_leave_the_machine():
    for name in ("infinigram:v2_cc-2025-30", "infinigram-mini:own"):
        (sentence, *_) = where_to(Asked(reference=name))
        assert "runs of words from the draft are sent to api.infini-gram-mini.io" in sentence


def test_a_text_takes_about_as_many_look_ups_as_was_said(open_mini: Open):
    text = " ".join(DOCUMENTS[k % 3].replace("the", "our") for k in range(6))
    n_lookups = 0

    def count(n: int, n_from_cache: int) -> None:
        nonlocal n_lookups
        n_lookups = n - n_from_cache

    with serving_infinigram(Mini(DOCUMENTS)) as served:
        one = located(text)
        open_mini(served.url, meter=count).match_texts([one])
    assert n_lookups < 1.5 * BY_CHARACTERS.lookups_a_word * len(one)
