"""Infini-gram: indexes of trillions of tokens (Liu et al. 2024), over HTTP or on disk."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice, product
from pathlib import Path
from threading import Event
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError, LookupFailed
from fabula.reference.backend import Attribution, LocatedText, Matches
from fabula.reference.catalogue import API_URL, MINI_URL, read_catalogue
from fabula.reference.dj import dj_search
from fabula.reference.external_index import SURROGATE, IndexElsewhere, n_gram_text, occurs_in_tokens
from fabula.reference.http_client import LookupCache, LookupServer, cache_path
from fabula.reference.infinigram_server import InfiniGramMiniServer, InfiniGramServer, TooLong
from fabula.reference.info import Age
from fabula.types import Document

_ENOUGH_WORDS = 32
"""A match may be truncated at the server's limits only beyond this: no level is so long."""
_SEGMENT_WORDS = 32
_N_FAILED_IN_A_ROW = 3


class _Stopped(LookupFailed):
    """Another part of the text failed, so this one was not looked up."""


class InfiniGramWeb(IndexElsewhere):
    """A corpus behind infini-gram's public HTTP API, or behind a compatible server.

    Matches are exact as the server counts: it tokenises each n-gram as if a space stood before it,
    and finds only whole tokens. It accepts queries of up to 1,000 characters or 500 tokens; a
    longer match is reported as the longest that can be queried, never below 32 words.

    `n_parallel`: maximum number of requests in flight. `max_retries`: retries after faults of the
    server and the network; `backoff_s` is the wait before the first retry, doubled each time.
    `cache`: the file that stores every count, by default below FABULA_CACHE or the user's cache
    folder; `fresh` ignores cached counts and queries each again, once. `meter(n_lookups,
    n_from_cache)` is called for each answered lookup, from any thread. Results depend on none of
    these.

    `close` it, or use it in a `with` statement. Raises `InputError` if httpx is missing, the
    address is not valid or the cache cannot be used.
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
        cache: Path | None = None,
        fresh: bool = False,
        meter: Callable[[int, int], None] | None = None,
    ) -> None:
        if n_parallel < 1:
            raise InputError(f"{n_parallel} requests in parallel: must be at least 1")
        self.name = corpus
        self.url = url.rstrip("/") + "/" if url.count("/") == 2 else url
        server = LookupServer(
            self.url,
            n_parallel=n_parallel,
            max_retries=max_retries,
            timeout_s=timeout_s,
            backoff_s=backoff_s,
        )
        self._server = self._server_class(server, corpus)
        self._cache = LookupCache(cache or cache_path())
        self._n_parallel = n_parallel
        self._meter = meter
        self._lock = threading.Lock()
        self._in_flight: dict[str, Future[int]] = {}
        self._n_lookups = self._n_from_cache = 0
        self._n_failed_in_a_row = self._n_cites_failed = 0
        self._n_answered_before = 0
        self._absent: set[str] = set()
        self._fresh: set[str] | None = set() if fresh else None

    _server_class: ClassVar[type[InfiniGramServer]] = InfiniGramServer
    _public_url: ClassVar[str] = API_URL
    _finds_only_tokens: ClassVar[bool] = True

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
        known = read_catalogue().index(self.name)
        return Age() if known is None else Age(None, known.youngest)

    def match_texts(
        self, texts: Sequence[LocatedText], *, exclude: Iterable[int] = (), n_threads: int = 1
    ) -> list[Matches]:
        """The longest matches of many texts; `n_parallel` requests at a time, not `n_threads`.

        If a lookup fails for a text after all retries, its result is that `LookupFailed`. Raises
        `LookupFailed` if three texts in a row failed, over all calls, or if the first failed and
        the server never answered; `InputError` if the server does not know the index, or if
        `exclude` is used.
        """
        self._refuse(exclude)
        stop = Event()
        pool = ThreadPoolExecutor(self._n_parallel)
        try:
            searches = []
            for text in texts:
                search = partial(self._search, text, Event(), stop)
                searches.append([pool.submit(search, a, b) for a, b in _segments(text)])
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
        query = n_gram_text(text, first, n_words)
        stop = Event()
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
                self._occurrence(
                    text, first, n_words, number, Document(f"{self.name}:{number}", shown)
                )
                for number, shown in self._server.documents(query, 3 * n_sources, stop)
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
            query = n_gram_text(text, i, j - i)
            raise LookupFailed(f"cannot look up {query!r} in {self.name}: {fault}") from fault

        def occurs_whole(i: int, j: int) -> bool:
            return occurs_in_tokens(text, i, j, occurs)

        found = occurs_whole if self._finds_only_tokens else occurs
        return dj_search(len(text), 1, found, begin=begin, end=end)

    def _found_as(
        self, text: LocatedText, first: int, n_words: int, stop: Event
    ) -> tuple[str, int]:
        """The query that an n-gram is looked up as, and how often it occurs."""
        query = n_gram_text(text, first, n_words)
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
        n_answered = self._server.n_answered
        has_answered = n_answered > self._n_answered_before
        self._n_answered_before = n_answered
        self._n_failed_in_a_row = 1 if has_answered else self._n_failed_in_a_row + 1
        if self._n_failed_in_a_row >= _N_FAILED_IN_A_ROW or not n_answered:
            raise LookupFailed(
                f"the server is not responding ({failure}); finished scores are kept, and the "
                "same command resumes"
            )
        return failure

    def _count(self, query: str, stop: Event) -> int:
        """How often `query` occurs; requested once, even if several threads need it.

        Raises `LookupFailed`, `InputError`, `TooLong`.
        """
        mine: Future[int] = Future()
        with self._lock:
            theirs = self._in_flight.setdefault(query, mine)
        if theirs is not mine:
            count = theirs.result()
            self._tell(from_cache=True)
            return count
        try:
            known = self._remembered(query)
            count = self._server.count(query, stop) if known is None else known
            if known is None and (count or " " in query):
                self._cache.put(self.url, self.name, query, count)
            elif known is None:
                # An index that lacks a single word may be incomplete: the next run asks again.
                self._absent.add(query)
        except BaseException as error:
            mine.set_exception(error)
            raise
        else:
            mine.set_result(count)
        finally:
            with self._lock:
                del self._in_flight[query]
        self._tell(from_cache=known is not None)
        return count

    def _remembered(self, query: str) -> int | None:
        if query in self._absent:
            return 0
        if self._fresh is not None:
            with self._lock:
                is_new = query not in self._fresh
                self._fresh.add(query)
            if is_new:
                return None
        return self._cache.get(self.url, self.name, query)

    def _tell(self, *, from_cache: bool) -> None:
        with self._lock:
            self._n_lookups += 1
            self._n_from_cache += from_cache
            if self._meter is not None:
                self._meter(self._n_lookups, self._n_from_cache)


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
    """

    _server_class = InfiniGramMiniServer
    _public_url = MINI_URL
    # Here, punctuation can be split anywhere.
    _finds_only_tokens = False

    @property
    def fingerprint(self) -> str:
        """The fingerprint, including the rule of neighbours, which affects results."""
        return f"{super().fingerprint}.beside1"

    def _found_as(
        self, text: LocatedText, first: int, n_words: int, stop: Event
    ) -> tuple[str, int]:
        query = n_gram_text(text, first, n_words)
        begins, ends = _neighbours(text, first, n_words)
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


def _neighbours(text: LocatedText, first: int, n_words: int) -> tuple[list[str], list[str]]:
    """The neighbours to try before and after an n-gram: marks, then those in its own text.

    Beside a punctuation mark, anything may stand. The lists depend only on the first and last word,
    so that every part of a match is a match.
    """
    begin = int(text.words.starts[first])
    end = int(text.words.ends[first + n_words - 1])
    inside = text.text[begin:end]
    before = _own_neighbour(text.text[max(0, begin - 2) : begin][::-1])[::-1]
    after = _own_neighbour(text.text[end : end + 2])
    return _beside(inside, _BEFORE, before), _beside(inside[::-1], _AFTER, after)


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
    spaced = "".join(" " if c.isspace() else c for c in SURROGATE.sub("\ufffd", beside))
    if not spaced or spaced[0].isalnum():
        return ""
    if spaced[0] in _IN_WORDS:
        return spaced if len(spaced) == 2 and not spaced[1].isalnum() else ""
    return spaced[0]


def _segments(text: LocatedText) -> list[tuple[int, int]]:
    """The bounds, in words, of the parts of a text that are searched in parallel.

    They do not depend on the number searched at a time: the server answers slightly differently at
    each boundary, because it assumes a space before every n-gram. So a part begins after a space.
    """
    borders = [0]
    for k, start in enumerate(text.words.starts):
        if k - borders[-1] >= _SEGMENT_WORDS and text.text[start - 1].isspace():
            borders.append(k)
    return list(zip(borders, [*borders[1:], len(text)], strict=True))
