"""Infini-gram's engine, over HTTP and on disk, agrees with a reference of the same documents."""

import json
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests import oracles
from tests.infinigram_serving import NONSENSE, Answers, serving_infinigram, some_faults

from fabula.core.cached_results import CachedResults
from fabula.core.errors import CorpusError, InputError, LookupFailed
from fabula.core.types import Document
from fabula.novelty.measure import Levels, OriginalityMeasure
from fabula.novelty.scores import run_measure
from fabula.reference.backend import Backend, LocatedText, dj_search
from fabula.reference.catalogue import API_URL
from fabula.reference.infinigram import InfiniGramIndex, InfiniGramWeb
from fabula.reference.search import Reference, open_backend
from fabula.text import TextSettings

pytest.importorskip("infini_gram", reason="infini-gram has no wheel for this platform")
import peer

SETTINGS = TextSettings(case="keep", punct="keep")
SIGN = (
    "The sign over the gate said TAKE THIS OR THAT AND NOTHING ELSE in red. Nobody took anything; "
    "the gate was painted on the wall, and the wall OR what was left of it AND the sign came down."
)
# The same words as Fabula's, for text in Latin letters.
WORD = r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*(?:['’-](?=[\p{L}\p{N}])[\p{L}\p{M}\p{N}]+)*"
TOKEN = rf"{WORD}|[-–—]+|\.{{2,}}|[^\s\p{{L}}\p{{N}}]"


Open = Callable[..., InfiniGramWeb]


@dataclass(frozen=True)
class Built:
    """One corpus, three ways."""

    index: Path
    reference: Reference
    answers: Answers
    texts: list[LocatedText]

    def expected(self) -> list[NDArray[np.int32]]:
        return [self.reference.longest_matches(text.words.words) for text in self.texts]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, examples: Path) -> Built:
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    home = tmp_path_factory.mktemp("infinigram")
    files = sorted((examples / "library").iterdir())
    documents = [Document(file.stem, file.read_text(encoding="utf-8")) for file in files]
    documents.append(Document("sign", SIGN))
    words = sorted({word for d in documents for word in SETTINGS.raw_words(d.text)})
    vocabulary = {"[UNK]": 0} | {word: k + 1 for k, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(TOKEN), "removed", invert=True)
    index = home / "examples-7"
    index.mkdir()
    tokenizer.save(str(index / "tokenizer.json"))
    for document in documents:
        assert tokenizer.encode(document.text).tokens == SETTINGS.raw_words(document.text)
    write_index(index, [tokenizer.encode(d.text).ids for d in documents])
    reference = Reference.build(documents, home / "reference", settings=SETTINGS)
    answers = Answers(peer.open_engine(index), tokenizer, "examples-7")
    texts = [located(text) for text in mixed_texts(documents, examples)]
    return Built(index, reference, answers, texts)


def write_index(folder: Path, documents: list[list[int]]) -> None:
    ids = np.array([k for d in documents for k in (peer.SEPARATOR, *d)], np.uint16)
    (folder / "data").mkdir()
    ids.tofile(folder / "tokenized.0")
    (2 * np.flatnonzero(ids == peer.SEPARATOR)).astype(np.uint64).tofile(folder / "offset.0")
    # Of so few tokens, its indexing fails with more threads than one.
    peer.build_index(folder, n_threads=1)


def mixed_texts(documents: list[Document], examples: Path) -> list[str]:
    """Texts that are borrowed in part, wholly and not at all."""
    own = (examples / "the-count.txt").read_text(encoding="utf-8")
    parts = [d.text.split("\n\n") for d in documents]
    return [
        f"{own[:250]}\n\n{parts[0][1][:300]} Zyx. {parts[3][2][40:200]}  {own[500:600]}",
        f"{parts[2][1][:200]} And {parts[4][1][17:150]}",
        "I was told to TAKE THIS OR THAT AND NOTHING, AND so the wall OR what was left OR AND OR.",
        "Qwertz uiop!",
        "",
    ]


@pytest.fixture
def web(built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens webs, with a cache of the test's own and short waits, and closes them at the end."""
    with ExitStack() as opened:

        def open_web(
            url: str, corpus: str = "examples-7", cache: str = "cache", **options: Any
        ) -> InfiniGramWeb:
            monkeypatch.setenv("FABULA_CACHE", str(tmp_path / cache))
            options = {"backoff_s": 0.001, "timeout_s": 5} | options
            return opened.enter_context(closing(InfiniGramWeb(corpus, url, **options)))

        yield open_web


def assert_equal(found: list[Any], expected: list[NDArray[np.int32]]) -> None:
    for mine, theirs in zip(found, expected, strict=True):
        assert not isinstance(mine, LookupFailed), mine
        assert mine.dtype == np.int32
        assert np.array_equal(mine, theirs)


def located(text: str) -> LocatedText:
    return LocatedText(text, SETTINGS.locate(text))


def failing(part: str, kind: str) -> Callable[[str, int], str | None]:
    """A server that fails so at whatever holds the part."""
    return lambda what, attempt: kind if part in what else None


def test_index_and_reference_find_the_same(built: Built):
    expected = built.expected()
    assert max(map(int, np.concatenate(expected))) > 40
    index: Backend = InfiniGramIndex(built.index)
    assert_equal(index.match_texts(built.texts, n_threads=2), expected)


@pytest.mark.parametrize(
    ("kinds", "share"),
    [([], 0.0), (["drop"], 0.33), ([*NONSENSE, "drop", "cut"], 0.4)],
    ids=["no fault", "a third of the connections dropped", "every kind of nonsense"],
)
def test_web_and_reference_find_the_same_whatever_fails(
    built: Built, web: Open, kinds: list[str], share: float
):
    with serving_infinigram(built.answers, some_faults(3, kinds, share)) as served:
        assert_equal(web(served.url).match_texts(built.texts), built.expected())
        assert len(served.requests) >= (1.2 if kinds else 1) * len(served.attempts)


def test_a_slow_server_is_asked_again(built: Built, web: Open):
    faults = some_faults(1, ["slow"], 0.1, most=1)
    with serving_infinigram(built.answers, faults, slow_s=0.4) as served:
        slow = web(served.url, timeout_s=0.2)
        assert_equal(slow.match_texts(built.texts[1:2]), built.expected()[1:2])
        assert max(served.attempts.values()) == 2


@pytest.mark.parametrize("kind", [*NONSENSE, "drop", "cut"])
def test_no_nonsense_is_taken_for_a_count(built: Built, web: Open, kind: str):
    with serving_infinigram(built.answers, failing("TAKE", kind)) as served:
        one = web(served.url, max_retries=2)
        known, failed = one.match_texts([located("gate"), located("TAKE")])
        assert not isinstance(known, LookupFailed)
        assert isinstance(failed, LookupFailed)
        assert "'TAKE'" in str(failed)
        assert "3 attempts" in str(failed)
        assert len(served.requests) == 4
    with closing(sqlite3.connect(CachedResults().path)) as rows:
        assert rows.execute("SELECT count(*) FROM results").fetchone() == (1,)


def test_three_texts_in_a_row_end_the_work(built: Built, web: Open):
    bad, good = located("Zyx again"), located("the gate")
    with serving_infinigram(built.answers, failing("Zyx", "503")) as served:
        one = web(served.url, max_retries=0)
        for texts in ([good], [bad], [bad], [good], [bad], [bad]):
            one.match_texts(texts)
        with pytest.raises(LookupFailed, match=r"not responding .* same command resumes"):
            one.match_texts([bad])
    with pytest.raises(LookupFailed, match="is not responding"):
        web(served.url, max_retries=2).match_texts(built.texts)


def test_the_second_run_asks_nothing(built: Built, web: Open):
    told: list[tuple[int, int]] = []
    with serving_infinigram(built.answers) as served:
        first = web(served.url)
        first.match_texts(built.texts)
        n_asked = len(served.requests)
        again = web(served.url, meter=lambda *counts: told.append(counts))
        assert_equal(again.match_texts(built.texts), built.expected())
        # But for words that it lacks: perhaps it was not whole.
        absent = {r["query"] for r in served.requests[n_asked:]}
        assert n_asked > 100
        assert all(" " not in query and built.reference.count([query]) == 0 for query in absent)
        assert told[-1][0] == len(told) == told[-1][1] + len(absent)
        anew = web(served.url, fresh=True)
        assert_equal(anew.match_texts(built.texts), built.expected())
        assert len(served.requests) == 2 * n_asked + len(absent)
        # Another corpus of that name is another one.
        assert first.fingerprint.startswith("examples-7.")
    with serving_infinigram(built.answers) as other:
        moved = web(other.url)
        moved.match_texts(built.texts[1:2])
        assert other.requests
        assert moved.fingerprint != first.fingerprint


def test_results_do_not_depend_on_how_many_are_asked(built: Built, web: Open):
    asked, numbers = [], [1, 3, 1]
    for n_parallel in (1, 3, 8):
        with serving_infinigram(built.answers, each_s=0.002) as served:
            one = web(served.url, n_parallel=n_parallel, cache=f"{n_parallel}")
            found = one.match_texts([built.texts[k] for k in numbers])
            assert_equal(found, [built.expected()[k] for k in numbers])
            assert served.peak <= n_parallel
            assert n_parallel == 1 or served.peak > 1
            assert set(served.attempts.values()) == {1}
            asked.append(set(served.attempts))
    assert asked[0] == asked[1] == asked[2]


def test_an_unknown_index_is_said_at_once(built: Built, web: Open):
    said = r"'v9_moon' \(HTTP 400 \[Flask\] Invalid index: v9_moon\)"
    with serving_infinigram(built.answers) as served:
        with pytest.raises(InputError, match=said):
            web(served.url, "v9_moon").match_texts(built.texts[3:])
        assert max(served.attempts.values()) == 1
    refused = pytest.raises(InputError, match="Unknown index")
    with serving_infinigram(lambda _: (200, {"error": "Unknown index"})) as served, refused:
        web(served.url).match_texts(built.texts[3:])


def test_the_wait_that_the_server_asks_for_is_kept(built: Built, web: Open):
    later = {"later": (429, {"Retry-After": "1"}, b"")}
    with (
        patch.dict(NONSENSE, later),
        serving_infinigram(built.answers, lambda _, n: None if n else "later") as served,
    ):
        began = time.monotonic()
        assert_equal(web(served.url).match_texts([located("gate")]), [np.ones(1, np.int32)])
        assert time.monotonic() - began >= 1


def test_a_match_beyond_the_servers_limit_is_cut(built: Built, web: Open, examples: Path):
    copied = (examples / "library" / "market-day.md").read_text(encoding="utf-8")[:1150]
    text = located(copied)
    exact = built.reference.longest_matches(text.words.words)
    longest = [
        sum(1 for end in text.words.ends[k:] if len(" ".join(copied[start:end].split())) <= 1000)
        for k, start in enumerate(text.words.starts)
    ]
    assert exact[0] > longest[0] > 100
    with serving_infinigram(built.answers) as served:
        one = web(served.url)
        assert_equal(one.match_texts([text]), [np.minimum(exact, longest).astype(np.int32)])
        (found,) = one.match_texts([located("so " + "a" * 1001)])
        assert isinstance(found, LookupFailed)
        assert "more than 1000 characters" in str(found)
    # Nobody is away then, though nobody was asked.
    found = web("http://127.0.0.1:9/").match_texts([located("a" * 1001)] * 4)
    assert all(isinstance(one, LookupFailed) for one in found)


def test_sources_are_shown_with_the_place_of_the_n_gram(built: Built, web: Open):
    texts = ("of the", "THIS OR THAT AND NOTHING", "on the\n  second Saturday,", "On the second")
    with serving_infinigram(built.answers) as served:
        for backend in (web(served.url), InfiniGramIndex(built.index)):
            for raw in texts:
                text = located(raw)
                expected = built.reference.attribute(text.words.words, 3)
                [found] = backend.cite(text, [(0, len(text))], 3)
                assert found.count == expected.count
                assert found.is_bounded
                assert len(found.sources) == min(3, expected.n_documents) or raw == "of the"
                for source in found.sources:
                    shown = source.document.text[source.span.start : source.span.end]
                    assert SETTINGS.words(shown) == text.words.words
                    assert source.span.document_id == source.document.id
                assert backend.cite(text, [(0, len(text))], 0)[0].sources == ()
            cite = partial(backend.cite, text, [(0, 1)], 1)
            for ask in (cite, partial(backend.match_texts, [text])):
                with pytest.raises(InputError, match="leave documents out"):
                    ask(exclude=[0])


def test_a_failed_citation_is_said(built: Built, web: Open):
    text = located("the gate")

    def faults(what: str, attempt: int) -> str | None:
        return None if '"count"' in what else "html"

    with serving_infinigram(built.answers, faults) as served:
        one = web(served.url, max_retries=1)
        [counted] = one.cite(text, [(0, 2)], 0)
        assert counted.count > 0
        for _ in range(4):
            [found] = one.cite(text, [(0, 2)], 1)
            assert (found.count, found.sources) == (counted.count, ())
        assert found.missing_sources == "the server does not provide documents"
        n_asked = len(served.requests)
        one.cite(text, [(0, 2)], 1)
        assert len(served.requests) == n_asked, "a server that shows none is not asked for ever"


def test_the_public_server_is_named_by_the_index_alone():
    with InfiniGramWeb("v4_pileval_llama") as public:
        assert public.fingerprint == "v4_pileval_llama"
        assert public.size == "the infini-gram index v4_pileval_llama"
        assert public.match_texts([]) == []


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, built: Built):
    for options, said in (
        ({"url": "ftp://x"}, "is not a valid index address"),
        ({"url": "http://x:moon/"}, "is not a valid index address"),
        ({"n_parallel": 0}, "at least 1"),
    ):
        with pytest.raises(InputError, match=said):
            InfiniGramWeb("c", **options)
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(InputError, match=r"fabula\[remote\]"):
        InfiniGramWeb("c")
    monkeypatch.setitem(sys.modules, "infini_gram.engine", None)
    with pytest.raises(InputError, match="pip install infini-gram"):
        InfiniGramIndex(built.index)


def copy_of(built: Built, folder: Path) -> Path:
    folder.mkdir(parents=True)
    for file in filter(Path.is_file, built.index.iterdir()):
        shutil.copy(file, folder)
    return folder


def test_an_index_says_what_it_is(built: Built, tmp_path: Path):
    index = InfiniGramIndex(built.index)
    n_tokens = sum(len(SETTINGS.words(built.reference.document(k).text)) for k in range(7))
    assert index.size == f"{n_tokens:,} tokens in 7 documents"
    assert (index.name, index.token_dtype) == ("examples-7", "u16")
    same = copy_of(built, tmp_path / "same")
    assert InfiniGramIndex(same).fingerprint == index.fingerprint
    with (same / "tokenizer.json").open("a") as file:
        file.write("\n")
    assert InfiniGramIndex(same).fingerprint != index.fingerprint


def test_an_index_of_wider_ids_is_seen_from_its_files(built: Built, tmp_path: Path):
    """Its own indexing of u32 wants 32 GiB, so the suffixes are sorted here."""
    wide = copy_of(built, tmp_path / "wide")
    ids = np.fromfile(wide / "tokenized.0", np.uint16).astype(np.uint32)
    ids[ids == peer.SEPARATOR] = 2**32 - 1
    data = ids.tobytes()
    ids.tofile(wide / "tokenized.0")
    (4 * np.flatnonzero(ids == 2**32 - 1)).astype(np.uint64).tofile(wide / "offset.0")
    ordered = sorted(range(0, len(data), 4), key=lambda k: data[k:])
    (wide / "table.0").write_bytes(b"".join(k.to_bytes(2, "little") for k in ordered))
    index = InfiniGramIndex(wide)
    assert index.token_dtype == "u32"
    assert index.size == InfiniGramIndex(built.index).size
    assert_equal(index.match_texts(built.texts[1:4]), built.expected()[1:4])


def test_an_index_that_is_not_whole_is_refused(built: Built, tmp_path: Path):
    cut, plain = copy_of(built, tmp_path / "cut"), copy_of(built, tmp_path / "plain")
    (cut / "table.0").write_bytes((cut / "table.0").read_bytes()[:-200])
    half = copy_of(built, tmp_path / "half")
    (half / "table.0").unlink()
    (plain / "tokenizer.json").unlink()
    for folder, said in (
        (cut, "not built to its end"), (half, "not a complete infini-gram index"),
        (copy_of(built, tmp_path / "portable" / "index"), "a folder name must not contain"),
        (tmp_path / "nowhere", "is not a folder"), (plain, "is not a tokenizer"),
    ):  # fmt: skip
        with pytest.raises(CorpusError, match=said):
            InfiniGramIndex(folder)
    assert InfiniGramIndex(plain, built.index / "tokenizer.json").name == "plain"


def test_a_tokenizer_that_does_not_fit_is_said(built: Built, tmp_path: Path):
    written = json.loads((built.index / "tokenizer.json").read_text(encoding="utf-8"))
    written["model"]["vocab"] = {k: n + 65_000 for k, n in written["model"]["vocab"].items()}
    other = tmp_path / "other.json"
    other.write_text(json.dumps(written), encoding="utf-8")
    with pytest.raises(CorpusError, match="use the tokenizer that the index was built with"):
        InfiniGramIndex(built.index, other).match_texts(built.texts[:1])


@pytest.mark.parametrize("kind", ["byte-level", "metaspace"])
def test_n_grams_are_encoded_as_in_the_middle_of_a_text(built: Built, tmp_path: Path, kind: str):
    """Both kinds of subword tokenizers find every word of the corpus where it stands."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    if kind == "byte-level":  # as GPT-2's
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
    else:  # as Llama's
        marked = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        split = [pre_tokenizers.Split("▁", "merged_with_next"), pre_tokenizers.Punctuation()]
        joined = [decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        tokenizer.normalizer = normalizers.Sequence(marked)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(split)
        tokenizer.decoder = decoders.Sequence(joined)
    documents = [built.reference.document(k).text for k in range(7)]
    trainer = trainers.BpeTrainer(vocab_size=700, show_progress=False)
    tokenizer.train_from_iterator(documents, trainer)
    folder = tmp_path / kind
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    write_index(folder, [tokenizer.encode(text).ids for text in documents])
    index = InfiniGramIndex(folder)
    speech = documents[3][:1100]
    text = located(speech)
    [lengths] = index.match_texts([text])
    n_glued = 0
    for k, (word, start) in enumerate(zip(*text.words[:2], strict=True)):
        before = text.text[start - 1 : start]
        if word.isalnum() and start > 0 and before != "\n":
            assert lengths[k] > 0, text.raw(k, 1)
            n_glued += not before.isspace()
    assert n_glued > 0
    # Behind an opening quotation mark a word has no space in its token.
    quoted = text.words.words.index('"') + 1
    # A match goes on over the comma and the mark at the end of speech, which may be one token.
    assert text.raw(quoted, 6) == 'If they took it,"'
    assert lengths[quoted] > 12
    [source] = index.cite(text, [(quoted, 6)], 1)[0].sources
    assert text.raw(quoted, 6) in source.document.text


@given(
    corpus=st.text(alphabet="ab", max_size=40),
    query=st.text(alphabet="abc", max_size=30),
    min_words=st.integers(1, 4),
    borders=st.lists(st.integers(0, 30), max_size=4),
)
def test_dj_search_in_parts_is_exact_and_within_its_bound(
    corpus: str, query: str, min_words: int, borders: list[int]
):
    n = len(query)
    expected = [k * (k >= min_words) for k in oracles.longest_matches(query, [corpus])]
    asked: list[tuple[int, int]] = []

    def occurs(i: int, j: int) -> bool:
        asked.append((i, j))
        return query[i:j] in corpus

    found: list[int] = []
    for begin, end in pairwise(sorted({0, n, *(border for border in borders if border < n)})):
        asked.clear()
        lengths = dj_search(n, min_words, occurs, begin=begin, end=end).tolist()
        found += lengths
        assert len(asked) == len(set(asked))
        assert len(asked) <= 2 * (end - begin) + max(0, max(lengths) - min_words)
        assert len(asked) <= (end - begin) + (n - begin)
    assert found == expected


def test_a_run_asks_again_for_what_failed_alone(built: Built, web: Open, tmp_path: Path):
    fault: list[str] = ["Zyx"]  # in which queries the server fails; "" for all
    out = tmp_path / "scores.jsonl"
    documents = [Document(f"t{k}", text.text) for k, text in enumerate(built.texts)]

    def faults(what: str, attempt: int) -> str | None:
        return "500" if fault and fault[0] in what else None

    def score(**options: Any) -> list[dict[str, Any]]:
        with web(served.url, max_retries=1, **options) as one:
            measure = OriginalityMeasure(one, levels=Levels(2, 4), n_sources=1)
            return [row for _, row in run_measure(measure, documents, out)]

    with serving_infinigram(built.answers, faults) as served:
        first = score()
        assert first[0]["missing_reason"] == "lookup_failed"
        assert first[0]["creativity_index"] is None
        assert "Zyx" in first[0]["missing_detail"]
        assert [row["creativity_index"] is None for row in first[1:3]] == [False, False]
        before = out.read_bytes()
        fault[0] = ""
        with pytest.raises(LookupFailed, match="is not responding"):
            score(cache="empty")
        assert out.read_bytes() == before, "a run without its server loses nothing"
        fault.clear()
        n_asked = len(served.requests)
        second = score()
        assert second[1:] == first[1:]
        asked = [r["query"] for r in served.requests[n_asked:] if r["query_type"] == "count"]
        assert asked
        assert all(query in " ".join(documents[0].text.split()) for query in asked)
        out.unlink()
        assert score() == second, "the same as if it had never failed"


def test_the_environment_names_a_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("FABULA_CACHE", str(tmp_path))
    for ours, spec, url in (
        ("http://127.0.0.1:9/", "infinigram:x", "http://127.0.0.1:9/"),
        ("http://127.0.0.1:9/", "infinigram:x@http://127.0.0.1:7/", "http://127.0.0.1:7/"),
        ("", "infinigram:x", API_URL),
    ):
        monkeypatch.setenv("FABULA_INFINIGRAM_URL", ours)
        with closing(open_backend([spec])) as web:
            assert isinstance(web, InfiniGramWeb)
            assert web.url == url
