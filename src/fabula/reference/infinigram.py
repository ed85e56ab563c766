"""Infini-gram: indexes of trillions of tokens (Liu et al. 2024), over HTTP or on disk.

The protocol is that of api/api_server.py and docs/source/api.rst in liujch1998/infini-gram: a POST
with `index`, `query_type` and `query` or `query_ids`; an answer, or an `error` with any status.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property, partial
from itertools import islice, pairwise, product
from pathlib import Path
from threading import Event
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from fabula.core.cached_results import CachedResults
from fabula.core.errors import CorpusError, InputError, LookupFailed
from fabula.core.packages import needing
from fabula.core.types import Document, Span
from fabula.reference.backend import Age, Attribution, LocatedText, Matches, Occurrence, dj_search
from fabula.reference.catalogue import API_URL, MINI_URL, read_catalogue
from fabula.reference.client import LookupServer, Refused
from fabula.text import TextSettings, TextWords

Reply = dict[str, Any]
Check = Callable[[Reply], None]
_NAMES_URL = "https://infini-gram.readthedocs.io/en/latest/api.html"
_MAX_QUERY_CHARS = 1000
"""MAX_QUERY_CHARS in api_server.py: the maximum length of a query."""
_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair, which no request can contain."""
_SHOWN_TOKENS = 1000
_SHOWN_CHARS = 1000
"""On either side of the place: `max_ctx_len`; 1,000 is the server's own default."""

# The server parses " AND " and " OR " in a query as operators and counts something else.
_BEFORE_OPERATOR = re.compile(r" (?=(?:AND|OR) )")
_TOO_LONG = re.compile(r"limit your input", re.IGNORECASE)
_NO_SUCH_INDEX = re.compile(
    r"(invalid|unknown|unsupported|no such)\W+(index|corpus)"
    r"|\b(index|corpus)\b.{0,80}(not found|not exist|is unknown|is invalid)",
    re.IGNORECASE | re.DOTALL,
)
_ENOUGH_WORDS = 32
"""A match may be truncated at the server's limits only beyond this: no level is so long."""
_SEGMENT_WORDS = 32
_N_FAILED_IN_A_ROW = 3
_TOKEN_BYTES: dict[Literal["u16", "u32"], int] = {"u16": 2, "u32": 4}
_KINDS = ("tokenized", "table", "offset")
_END_BYTES = 64 * 1024


class TooLong(Exception):  # noqa: N818 (the server's limit, not an error)
    """The server does not accept this n-gram, usually because it is too long."""


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _check_count(reply: Reply) -> None:
    if not _is_count(reply.get("count")):
        raise ValueError(f"no count in the reply {str(reply)[:80]}")
    if reply.get("approx"):
        # Only operators make a count approximate, and then 0 may hide some.
        raise ValueError("an approximate count")


class _Index(ABC):
    """An index that others built, of words and punctuation marks as written, its only form."""

    settings = TextSettings(case="keep", punct="keep")

    @property
    def age(self) -> Age:
        """Unknown, unless set."""
        return Age()

    def locate(self, text: str) -> TextWords:
        """The words and punctuation marks of `text`, with their positions."""
        return self.settings.locate(text)

    def cite(
        self,
        text: LocatedText,
        spans: Sequence[tuple[int, int]],
        n_sources: int,
        *,
        exclude: Iterable[int] = (),
    ) -> list[Attribution]:
        """`cite_one` for each n-gram of a text: (first word, number of words)."""
        self._refuse(exclude)
        return [self.cite_one(text, first, n_words, n_sources) for first, n_words in spans]

    @abstractmethod
    def cite_one(self, text: LocatedText, first: int, n_words: int, n_sources: int) -> Attribution:
        """How often an n-gram occurs, and up to `n_sources` documents that contain it."""

    def _refuse(self, exclude: Iterable[int]) -> None:
        if any(True for _ in exclude):
            raise InputError(
                "an infini-gram index cannot leave documents out; build your own reference with "
                "`fabula reference build`, or score without exclusions"
            )

    def _occurrence(
        self, text: LocatedText, first: int, n_words: int, number: int, shown: Document
    ) -> Occurrence | None:
        """The n-gram's first place in a document as shown, or None. Words are compared: an index
        returns its tokens, and spaces between them may differ."""
        gram = text.words.words[first : first + n_words]
        words, starts, ends = self.locate(shown.text)
        for k in range(len(words) - n_words + 1):
            if words[k] == gram[0] and words[k : k + n_words] == gram:
                span = Span(shown.id, int(starts[k]), int(ends[k + n_words - 1]))
                return Occurrence(number, shown, span)
        return None


def _n_gram_text(text: LocatedText, first: int, n_words: int) -> str:
    """An n-gram as written in its text, with each run of white space replaced by one space."""
    # A request cannot contain a lone half of a surrogate pair.
    return _SURROGATE.sub("\ufffd", " ".join(text.raw(first, n_words).split()))


def _is_in_tokens(text: LocatedText, i: int, j: int, occurs: Callable[[int, int], bool]) -> bool:
    """Whether words i to j (half-open) occur in an index that finds only whole tokens. A run of
    punctuation, such as the comma and the quotation mark after speech, is often one token: an
    n-gram that ends in its middle is not found, but occurs if it is found with the rest."""
    if occurs(i, j):
        return True
    words, starts, ends = text.words
    while (
        j < len(words)
        and ends[j - 1] == starts[j]
        and not words[j - 1][-1].isalnum()
        and not words[j][0].isalnum()
    ):
        j += 1
        if occurs(i, j):
            return True
    return False


class _Stopped(LookupFailed):
    """Another part of the text failed, so this one was not looked up."""


class InfiniGramWeb(_Index):
    """A corpus behind infini-gram's public HTTP API, or behind a compatible server.

    Matches are exact as the server counts: it tokenises each n-gram as if a space stood before it,
    and finds only whole tokens. It accepts queries of up to 1,000 characters or 500 tokens; a
    longer match is reported as the longest that can be queried, never below 32 words.

    `n_parallel`: maximum number of requests in flight. `max_retries`: retries after faults of the
    server and the network; `backoff_s` is the wait before the first retry, doubled each time.
    Counts are cached (`cached_results`); `fresh` ignores cached ones and queries each again, once.
    `meter(n_lookups, n_from_cache)` is called for each answer, from any thread. None of these
    changes a result. `close` it, or use it in `with`. Raises `InputError` without httpx, or for an
    invalid address.
    """

    def __init__(
        self,
        corpus: str,
        url: str = API_URL,
        *,
        n_parallel: int = 8,
        max_retries: int = 5,
        timeout_s: float = 30,
        backoff_s: float = 1.0,
        fresh: bool = False,
        meter: Callable[[int, int], None] | None = None,
    ) -> None:
        if n_parallel < 1:
            raise InputError(f"{n_parallel} requests in parallel: must be at least 1")
        self.name = corpus
        self.url = url.rstrip("/") + "/" if url.count("/") == 2 else url
        self._server = LookupServer(
            self.url,
            n_parallel=n_parallel,
            max_retries=max_retries,
            timeout_s=timeout_s,
            backoff_s=backoff_s,
        )
        self._tokens: dict[str, tuple[list[int], list[Any] | None]] = {}
        self._cache = CachedResults(stays_open=True)
        self._n_parallel, self._meter = n_parallel, meter
        self._lock = threading.Lock()
        self._in_flight: dict[str, Future[int]] = {}
        self._n_lookups = self._n_from_cache = 0
        self._n_failed_in_a_row = self._n_cites_failed = 0
        self._n_answered = self._n_answered_before = 0
        self._absent: set[str] = set()
        self._fresh: set[str] | None = set() if fresh else None

    _public_url: ClassVar[str] = API_URL
    _finds_only_tokens: ClassVar[bool] = True
    _shown: ClassVar[Reply] = {"max_disp_len": _SHOWN_TOKENS}
    """How much of a document to request."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and the cache."""
        self._server.close()
        self._cache.close()

    @property
    def fingerprint(self) -> str:
        """The corpus's name, and the server if it is not the public one."""
        if self.url == self._public_url:
            return self.name
        return f"{self.name}.{hashlib.sha256(self.url.encode()).hexdigest()[:8]}"

    @property
    def size(self) -> str:
        return f"the infini-gram index {self.name}"

    @property
    def age(self) -> Age:
        """The age that the catalogue states for the index of that name."""
        index = read_catalogue().index(self.name)
        return Age() if index is None else Age(None, index.youngest)

    def match_texts(
        self, texts: Sequence[LocatedText], *, exclude: Iterable[int] = (), n_threads: int = 1
    ) -> list[Matches]:
        """The longest matches of many texts; `n_parallel` requests at a time, not `n_threads`.

        If a lookup fails for a text after all retries, its result is that `LookupFailed`, which is
        raised if three texts in a row failed, over all calls, or if the first failed and the server
        never answered. Raises `InputError` for an unknown index, or if `exclude` is used.
        """
        self._refuse(exclude)
        stop = Event()
        pool = ThreadPoolExecutor(self._n_parallel)
        try:
            searches = []
            for text in texts:
                # The parts do not depend on the number searched at a time: the server answers
                # slightly differently at each boundary, because it assumes a space before every
                # n-gram. So a part begins after a space.
                borders = [0]
                for k, start in enumerate(text.words.starts):
                    if k - borders[-1] >= _SEGMENT_WORDS and text.text[start - 1].isspace():
                        borders.append(k)
                search = partial(self._search, text, Event(), stop)
                bounds = pairwise([*borders, len(text)])
                searches.append([pool.submit(search, begin, end) for begin, end in bounds])
            return [self._gather(parts) for parts in searches]
        except KeyboardInterrupt:
            # Do not wait for requests that hang.
            stop.set()
            self._server.close()
            raise
        finally:
            # If one text ends the work, do not wait for the others.
            stop.set()
            pool.shutdown(cancel_futures=True)

    def cite_one(self, text: LocatedText, first: int, n_words: int, n_sources: int) -> Attribution:
        """How often the n-gram occurs, and up to `n_sources` documents that the server shows.

        A document is shown around the n-gram, up to 1,000 tokens. If the server counts but does not
        show documents, the result has none and a reason; after three such n-grams in a row,
        documents are no longer requested. Raises `LookupFailed` if the count is not known.
        """
        query, stop = _n_gram_text(text, first, n_words), Event()
        try:
            query, count = self._found_as(text, first, n_words, stop)
        except TooLong as error:
            raise LookupFailed(f"{query[:40]!r}... is too long to look up: {error}") from error
        if not count or n_sources < 1:
            return Attribution(count, 0, True, ())
        if self._n_cites_failed >= _N_FAILED_IN_A_ROW:
            return Attribution(count, 0, True, (), "the server does not provide documents")
        try:
            located = (
                self._occurrence(text, first, n_words, ix, Document(f"{self.name}:{ix}", shown))
                for ix, shown in self._documents(query, 3 * n_sources, stop)
            )
            sources = tuple(islice(filter(None, located), n_sources))
        except (LookupFailed, TooLong) as error:
            # The matches of the text are known, and so is its score; only the sources are not.
            self._n_cites_failed += 1
            return Attribution(count, 0, True, (), str(error))
        self._n_cites_failed = 0
        return Attribution(count, 0, True, sources)

    def _search(
        self, text: LocatedText, given_up: Event, stop: Event, begin: int, end: int
    ) -> NDArray[np.int32]:
        """Longest matches at the words from `begin` to `end`: int32, shape (end - begin,)."""

        def occurs(i: int, j: int) -> bool:
            if given_up.is_set():
                raise _Stopped("another part of the text could not be looked up")
            try:
                return self._found_as(text, i, j - i, stop)[1] > 0
            except TooLong as error:
                if j - i > _ENOUGH_WORDS:
                    return False
                fault: Exception = error
            except LookupFailed as error:
                fault = error
            given_up.set()
            query = _n_gram_text(text, i, j - i)
            raise LookupFailed(f"cannot look up {query!r} in {self.name}: {fault}") from fault

        test = occurs
        if self._finds_only_tokens:
            test = partial(_is_in_tokens, text, occurs=occurs)
        return dj_search(len(text), 1, test, begin=begin, end=end)

    def _found_as(self, text: LocatedText, first: int, n: int, stop: Event) -> tuple[str, int]:
        """The query that an n-gram is looked up as, and how often it occurs."""
        query = _n_gram_text(text, first, n)
        return query, self._count(query, stop)

    def _gather(self, parts: Sequence[Future[NDArray[np.int32]]]) -> Matches:
        """Merge the parts of a text, or return its failure; counts consecutive failures."""
        failures = []
        for part in parts:
            error = part.exception()
            if isinstance(error, LookupFailed):
                failures.append(error)
            elif error is not None:
                raise error
        if not failures:
            self._n_failed_in_a_row = 0
            return np.concatenate([np.zeros(0, np.int32), *(part.result() for part in parts)])
        failure = next((f for f in failures if not isinstance(f, _Stopped)), failures[0])
        if isinstance(failure.__cause__, TooLong):
            # The text is at fault, not the server.
            return failure
        # A server that has answered other requests since is up.
        has_answered = self._n_answered > self._n_answered_before
        self._n_answered_before = self._n_answered
        self._n_failed_in_a_row = 1 if has_answered else self._n_failed_in_a_row + 1
        if self._n_failed_in_a_row >= _N_FAILED_IN_A_ROW or not self._n_answered:
            raise LookupFailed(
                f"the server is not responding ({failure}); finished scores are kept, and the "
                "same command resumes"
            )
        return failure

    def _count(self, query: str, stop: Event) -> int:
        """How often `query` occurs; requested once for several threads. Raises as `_ask` does."""
        mine: Future[int] = Future()
        with self._lock:
            theirs = self._in_flight.setdefault(query, mine)
        if theirs is not mine:
            count = theirs.result()
            self._tell(from_cache=True)
            return count
        try:
            key = f"infini-gram\0{self.url}\0{self.name}\0{query}".encode()
            is_new = False
            if self._fresh is not None:
                with self._lock:
                    is_new = query not in self._fresh
                    self._fresh.add(query)
            data = None if is_new else b"0" if query in self._absent else self._cache.find([key])[0]
            if data is None:
                reply = self._ask_about(query, {"query_type": "count"}, _check_count, stop)
                # For an empty query the server counts every token of the corpus.
                count = 0 if reply.get("token_ids") == [] else int(reply["count"])
                if count or " " in query:
                    self._cache.keep({key: b"%d" % count})
                else:
                    # An index that lacks a single word may be incomplete: the next run asks again.
                    self._absent.add(query)
            else:
                count = int(data)
        except BaseException as error:
            mine.set_exception(error)
            raise
        else:
            mine.set_result(count)
        finally:
            with self._lock:
                del self._in_flight[query]
        self._tell(from_cache=data is not None)
        return count

    def _tell(self, *, from_cache: bool) -> None:
        with self._lock:
            self._n_lookups += 1
            self._n_from_cache += from_cache
            if self._meter is not None:
                self._meter(self._n_lookups, self._n_from_cache)

    def _documents(self, query: str, limit: int, stop: Event) -> Iterator[tuple[int, str]]:
        """Distinct documents at the first `limit` places: the number, and the text as shown."""

        def check_places(reply: Reply) -> None:
            segments = reply.get("segment_by_shard")
            if not isinstance(segments, list) or not all(
                isinstance(ends, list) and len(ends) == 2 and all(map(_is_count, ends))
                for ends in segments
            ):
                raise ValueError("no segment_by_shard in the reply")

        def check_document(reply: Reply) -> None:
            try:
                self._text_in(reply)
                is_document = _is_count(reply.get("doc_ix"))
            except (AttributeError, LookupError, TypeError, ValueError):
                is_document = False
            if not is_document:
                raise ValueError("no document in the reply")

        places = self._ask_about(query, {"query_type": "find"}, check_places, stop)
        seen: set[tuple[int, int]] = set()
        for shard, rank in islice(_ranks(places), limit):
            request = {"query_type": "get_doc_by_rank", "s": shard, "rank": rank, **self._shown}
            reply = self._ask_about(query, request, check_document, stop)
            if (shard, reply["doc_ix"]) not in seen:
                seen.add((shard, reply["doc_ix"]))
                yield reply["doc_ix"], self._text_in(reply)

    @staticmethod
    def _text_in(reply: Reply) -> str:
        """The text of a document. Raises `ValueError`, `KeyError`, `TypeError` if it is none."""
        spans = reply["spans"]
        if not isinstance(spans, list) or not all(isinstance(span, list) for span in spans):
            raise TypeError
        joined = ""
        for part in [part for part, *_ in spans]:
            # Each was decoded separately, and some tokenizers drop a space at the beginning.
            joined += f" {part}" if joined[-1:].isalnum() and part[:1].isalnum() else part
        return joined

    def _ask_about(self, query: str, request: Reply, check: Check, stop: Event) -> Reply:
        """The answer about an n-gram, whose token ids must mean what they did before: an index may
        be replaced during a run. Raises `TooLong`, and as `_ask`."""
        if len(query) > _MAX_QUERY_CHARS:
            raise TooLong(f"it has more than {_MAX_QUERY_CHARS} characters")
        asked_as, expected = self._asked_as(query, stop)
        reply = self._ask({**request, **asked_as}, check, stop)
        if expected is not None and reply.get("tokens", expected) != expected:
            self._tokens.clear()
            raise LookupFailed(f"{self.url}: the index was replaced during the search")
        return reply

    def _asked_as(self, query: str, stop: Event) -> tuple[Reply, list[Any] | None]:
        """The n-gram in a request: as text, or as token ids if some of its words are operators; and
        the text of these, if the server returns it. No token spans a space, so the ids of the
        pieces are those of the whole. A server that returns no token ids has no operators."""
        pieces = _BEFORE_OPERATOR.split(query)
        if len(pieces) == 1:
            return {"query": query}, None
        ids: list[int] = []
        tokens: list[Any] | None = []
        for piece in pieces:
            if (encoded := self._tokens.get(piece)) is None:
                reply = self._ask({"query_type": "count", "query": piece}, _check_count, stop)
                if not isinstance(reply.get("token_ids"), list):
                    return {"query": query}, None
                texts = reply.get("tokens")
                encoded = reply["token_ids"], texts if isinstance(texts, list) else None
                self._tokens[piece] = encoded
            ids += encoded[0]
            tokens = tokens + encoded[1] if tokens is not None and encoded[1] is not None else None
        return {"query_ids": ids}, tokens

    def _ask(self, request: Reply, check: Check, stop: Event) -> Reply:
        """The server's answer. Raises `LookupFailed` if no valid one was received in all attempts,
        or `stop` was set; `TooLong`; and `InputError` if the server does not know the index."""

        def read(content: bytes) -> Reply:
            reply = json.loads(content)
            if not isinstance(reply, dict):
                raise ValueError("the reply is not a JSON object")  # noqa: TRY004
            if "error" in reply:
                words = str(reply["error"])
                if _TOO_LONG.search(words) or _NO_SUCH_INDEX.search(words):
                    raise Refused(words)
                raise ValueError(f"error: {words}")
            check(reply)
            return reply

        try:
            reply = self._server.ask({"index": self.name, **request}, read, stop)
        except Refused as error:
            # A server that has answered knows the index, but rejects this query.
            knows_it = self._n_answered and not _NO_SUCH_INDEX.search(str(error))
            if knows_it or _TOO_LONG.search(str(error)):
                raise TooLong(str(error)) from error
            raise InputError(
                f"{self.url} does not serve the index {self.name!r} ({error}); the "
                f"index names of infini-gram's server are listed at {_NAMES_URL}"
            ) from error
        self._n_answered += 1
        return reply


_BEFORE = (
    *(" ", "\n", '"', "(", "\u201c", "\u2018", "\u2014", "--", "[", "*", ">", "\t"),
    *(" '", " \u2019", " -"),
)
_AFTER = (
    *(" ", ",", ".", "\n", '"', "?", "!", ";", ":", ")", "\u201d", "\u2014", "--", "]", "*", "<"),
    *("\u2026", "' ", "\u2019 ", "- "),
)
"""Characters before and after a word, the most frequent first. An apostrophe or a hyphen alone may
occur within a word."""
_IN_WORDS = "'\u2019-"


class InfiniGramMini(InfiniGramWeb):
    """A corpus behind infini-gram mini's API, which indexes characters.

    The server finds `he cat` in `the cats`. So if an n-gram begins or ends with a word, it is
    looked up together with its neighbours: a space on both sides, the neighbours in the text
    itself, and then each of a fixed list of marks before and after it. Occurrences only beside
    other characters, or within words, do not count; a count is that of the first neighbours that
    occur, and a lower bound.

    The protocol is that of docs/source/api.rst in xuhaoxh/infini-gram-mini: it has no operators,
    and shows a document as text around the place.
    """

    _public_url = MINI_URL
    # Here, punctuation can be split anywhere.
    _finds_only_tokens = False
    _shown: ClassVar[Reply] = {"max_ctx_len": _SHOWN_CHARS}

    @property
    def fingerprint(self) -> str:
        """The fingerprint, including the rule of neighbours, which affects results."""
        return f"{super().fingerprint}.beside1"

    def _found_as(self, text: LocatedText, first: int, n: int, stop: Event) -> tuple[str, int]:
        query = _n_gram_text(text, first, n)
        # The neighbours to try before and after it: marks, then those in its own text. Beside a
        # punctuation mark, anything may stand. They depend only on the first and last word, so that
        # every part of a match is a match.
        begin, end = int(text.words.starts[first]), int(text.words.ends[first + n - 1])
        inside, before = text.text[begin:end], text.text[max(0, begin - 2) : begin]
        begins = _beside(inside, _BEFORE, _own_neighbour(before[::-1])[::-1])
        ends = _beside(inside[::-1], _AFTER, _own_neighbour(text.text[end : end + 2]))
        # Try the most probable neighbours and the text's own first: they find most of what occurs.
        for before, after in dict.fromkeys(((begins[0], ends[0]), (begins[-1], ends[-1]))):
            if count := self._count(before + query + after, stop):
                return before + query + after, count
        # Try each side alone: this rules out most of what does not occur.
        if not self._count(query, stop):
            return query, 0
        begins = [before for before in begins if self._count(before + query, stop)]
        ends = [after for after in ends if begins and self._count(query + after, stop)]
        for before, after in product(begins, ends):
            if count := self._count(before + query + after, stop):
                return before + query + after, count
        return query, 0

    def _asked_as(self, query: str, stop: Event) -> tuple[Reply, list[Any] | None]:
        return {"query": query}, None

    @staticmethod
    def _text_in(reply: Reply) -> str:
        if not isinstance(text := reply["text"], str):
            raise TypeError("not a text")
        return text


def _beside(inside: str, marks: tuple[str, ...], own: str) -> list[str]:
    """The neighbours to try beside the first character of `inside`, the most frequent first."""
    if inside[0] in _IN_WORDS and inside[1:2].isalnum():
        # It could occur within a word. With more than a space, its parts would need longer marks.
        marks = marks[:1]
    elif not inside[0].isalnum():
        return [""]
    return [*(mark for mark in marks if mark != own or own == marks[0]), *([own] if own else [])]


def _own_neighbour(beside: str) -> str:
    """The neighbour of a word, from the two characters there; empty at an end of the text."""
    spaced = "".join(" " if c.isspace() else c for c in _SURROGATE.sub("\ufffd", beside))
    if not spaced or spaced[0].isalnum():
        return ""
    if spaced[0] in _IN_WORDS:
        return spaced if len(spaced) == 2 and not spaced[1].isalnum() else ""
    return spaced[0]


def _ranks(places: Reply) -> Iterator[tuple[int, int]]:
    """The shard and the rank of each place in the answer to a query of the type `find`."""
    for shard, ends in enumerate(places["segment_by_shard"]):
        yield from ((shard, rank) for rank in range(*ends))


class InfiniGramIndex(_Index):
    """An index on this machine's disk, searched by the `infini_gram` package.

    A folder with `tokenized.N`, `table.N` and `offset.N`, whose sizes tell the width of token ids.
    `tokenizer`: the `tokenizer.json` it was built with, by default the one in the folder.

    An n-gram is found where the index has it token for token, with one space where the text has
    white space; so not across the end of a paragraph, nor at the first word of one if the tokenizer
    includes spaces in its tokens.

    Raises `CorpusError` for missing or inconsistent files, `InputError` for a missing package.
    """

    def __init__(self, path: Path, tokenizer: Path | None = None) -> None:
        engine = needing(
            "infini_gram.engine",
            "searching an infini-gram index needs the infini_gram package, which is not installed; "
            "run `pip install infini-gram`",
        )
        self.path = path = Path(path).resolve()
        self.name = path.name
        if not path.is_dir():
            raise CorpusError(f"{path} is not a folder with an infini-gram index")
        # The engine looks for these words in the whole path, and crashes where else it finds them.
        if any(kind in str(path) for kind in _KINDS):
            raise CorpusError(
                f"infini-gram cannot open {path}: a folder name must not contain "
                f"{', '.join(_KINDS)}; rename it"
            )
        self._files = sorted(f for f in path.iterdir() if any(kind in f.name for kind in _KINDS))
        names = [file.name.partition(".") for file in self._files]
        shards = sorted(number for kind, _, number in names if kind.startswith(_KINDS[0]))
        expected = sorted(path / f"{kind}.{shard}" for kind in _KINDS for shard in shards)
        if not shards or self._files != expected:
            raise CorpusError(
                f"{path} is not a complete infini-gram index: each tokenized.N needs table.N and "
                "offset.N, and no other files may have such names"
            )
        # The table has a pointer for each token, wide enough for the bytes. Interrupted indexing
        # leaves sizes that fit no width; the engine would search all the same, and miss matches.
        sizes = {file.name: file.stat().st_size for file in self._files}

        def fits(name: str, n_token_bytes: int) -> bool:
            n_bytes, n_table_bytes = sizes[name], sizes[f"table{name.removeprefix('tokenized')}"]
            if n_bytes == 0 or n_bytes % n_token_bytes or n_table_bytes == 0:
                return False
            # As computed in infini_gram/indexing.py.
            pointer_bytes = math.ceil(math.log2(n_bytes) / 8)
            return divmod(n_table_bytes, n_bytes // n_token_bytes) == (pointer_bytes, 0)

        tokenized = [name for name in sizes if name.startswith("tokenized")]
        widths = _TOKEN_BYTES.items()
        fitting = [dtype for dtype, n in widths if all(fits(name, n) for name in tokenized)]
        if not fitting:
            raise CorpusError(
                f"the files in {path} do not fit each other: the index was not built to its end, "
                "or its tokens are not u16 or u32; build it again, without what is there"
            )
        self.token_dtype = fitting[0]
        self._tokenizer_path = tokenizer or path / "tokenizer.json"
        self._encoder = _Encoder(self._tokenizer_path)
        # The end-of-text id and the vocabulary size only affect next-token predictions.
        n_ids = 256 ** _TOKEN_BYTES[self.token_dtype] - 1
        self._engine: Any = engine.InfiniGramEngine(
            index_dir=str(path),
            eos_token_id=n_ids - 1,
            vocab_size=n_ids,
            token_dtype=self.token_dtype,
        )

    @cached_property
    def fingerprint(self) -> str:
        """12 hex digits: a digest of the files' names, sizes and ends, and the tokenizer."""
        digest = hashlib.sha256(self.token_dtype.encode())
        for file in self._files:
            n_bytes = file.stat().st_size
            digest.update(f"\0{file.name}\0{n_bytes}\0".encode())
            with file.open("rb") as stream:
                digest.update(stream.read(_END_BYTES))
                stream.seek(max(0, n_bytes - _END_BYTES))
                digest.update(stream.read(_END_BYTES))
        digest.update(self._tokenizer_path.read_bytes())
        return digest.hexdigest()[:12]

    @property
    def size(self) -> str:
        n_bytes = dict.fromkeys(_KINDS, 0)
        for file in self._files:
            n_bytes[file.name.partition(".")[0]] += file.stat().st_size
        n_documents = n_bytes["offset"] // 8
        # Each document begins with a separator, which does not count as a token.
        n_tokens = n_bytes["tokenized"] // _TOKEN_BYTES[self.token_dtype] - n_documents
        return f"{n_tokens:,} tokens in {n_documents:,} documents"

    def close(self) -> None:
        """Nothing to close: the files are memory-mapped."""

    def match_texts(
        self, texts: Sequence[LocatedText], *, exclude: Iterable[int] = (), n_threads: int = 1
    ) -> list[Matches]:
        """The longest matches of many texts, `n_threads` of them at a time.

        Raises `InputError` if `exclude` is used, `CorpusError` if the tokenizer does not fit.
        """
        self._refuse(exclude)

        def search(text: LocatedText) -> Matches:
            def occurs(i: int, j: int) -> bool:
                # For an empty query the engine would count every token of the corpus.
                ids = self._ids(text, i, j - i)
                return bool(ids) and _answer(self._engine.count(input_ids=ids))["count"] > 0

            try:
                return dj_search(len(text), 1, lambda i, j: _is_in_tokens(text, i, j, occurs))
            except LookupFailed as error:
                return error

        with ThreadPoolExecutor(max(1, n_threads)) as pool:
            return list(pool.map(search, texts))

    def cite_one(self, text: LocatedText, first: int, n_words: int, n_sources: int) -> Attribution:
        """How often the n-gram occurs, and up to `n_sources` documents, from its first places."""
        if not (ids := self._ids(text, first, n_words)):
            return Attribution(0, 0, True, ())
        places = _answer(self._engine.find(input_ids=ids))
        sources: dict[int, Occurrence] = {}
        for shard, rank in islice(_ranks(places), 3 * n_sources):
            reply = self._engine.get_doc_by_rank(s=shard, rank=rank, max_disp_len=_SHOWN_TOKENS)
            shown = _answer(reply)
            number = int(shown["doc_ix"])
            document = Document(f"{self.name}:{number}", self._encoder.text(shown["token_ids"]))
            if occurrence := self._occurrence(text, first, n_words, number, document):
                sources.setdefault(number, occurrence)
            if len(sources) == n_sources:
                break
        return Attribution(int(places["cnt"]), 0, True, tuple(sources.values()))

    def _ids(self, text: LocatedText, first: int, n_words: int) -> list[int]:
        """The n-gram's token ids; empty if the index cannot contain it."""
        start = int(text.words.starts[first])
        after_space = start == 0 or text.text[start - 1].isspace()
        ids = self._encoder.ids(_n_gram_text(text, first, n_words), after_space=after_space)
        if ids and max(ids) >= 256 ** _TOKEN_BYTES[self.token_dtype] - 1:
            raise CorpusError(
                f"{self._tokenizer_path} produces the token id {max(ids)}, which does not fit the "
                f"{self.token_dtype} ids of {self.path}; use the tokenizer that the index was "
                "built with"
            )
        return ids


class _Encoder:
    """Encodes text as the token ids that it has in the middle of a document: byte-level tokenizers
    put the space before a word into its token; Llama's always add one."""

    def __init__(self, path: Path) -> None:
        tokenizers = needing(
            "tokenizers",
            "reading the tokenizer of an infini-gram index needs the tokenizers package, which is "
            "not installed; run `pip install 'fabula[nlp]'`",
        )
        try:
            written = path.read_text(encoding="utf-8")
            model = json.loads(written)["model"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorpusError(
                f"{path} is not a tokenizer ({error}); use the tokenizer.json that the index was "
                "built with"
            ) from error
        self._tokenizer = tokenizers.Tokenizer.from_str(written)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._unknown = model.get("unk_id")
        if (unknown := model.get("unk_token")) is not None:
            self._unknown = self._tokenizer.token_to_id(unknown)
        after_space = self._encode("b a")[-1:]
        self._takes_space = self._encode("a") != after_space and self._encode(" a") == after_space
        self._anchor = self._encode("\n")

    def ids(self, n_gram: str, *, after_space: bool) -> list[int]:
        """The ids of `n_gram`; empty if some is unknown, as that id stands for many strings."""
        if after_space:
            ids = self._encode(f" {n_gram}" if self._takes_space else n_gram)
        else:
            # No tokenizer adds a space after an anchor; the anchor is cut off.
            ids = self._encode(f"\n{n_gram}")
            n = len(self._anchor)
            ids = ids[n:] if ids[:n] == self._anchor else self._encode(n_gram)
        return [] if self._unknown in ids else ids

    def text(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def _answer(reply: Any) -> Any:
    if "error" in reply:
        raise LookupFailed(f"infini-gram could not look up an n-gram: {reply['error']}")
    return reply
