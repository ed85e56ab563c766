"""Infini-gram: indexes of trillions of tokens (Liu et al. 2024), over HTTP or on disk."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError, LookupFailed
from fabula.reference.backend import Attribution, LocatedText, Matches
from fabula.reference.dj import dj_search
from fabula.reference.external_index import IndexElsewhere, n_gram_text, occurs_in_tokens
from fabula.reference.http_client import LookupCache, LookupServer, cache_path
from fabula.reference.infinigram_index import InfiniGramIndex
from fabula.reference.infinigram_server import InfiniGramServer, TooLong
from fabula.types import Document

__all__ = ["API_URL", "InfiniGramIndex", "InfiniGramWeb"]

API_URL = "https://api.infini-gram.io/"

_ENOUGH_WORDS = 32
"""A match may be cut at the server's limits only beyond this: no level of a measure is so long."""
_SEGMENT_WORDS = 32
_N_FAILED_IN_A_ROW = 3


class _Stopped(LookupFailed):
    """Another part of the text failed, so this one was not asked."""


class InfiniGramWeb(IndexElsewhere):
    """A corpus behind infini-gram's public HTTP API, or behind a server that speaks like it.

    Matches are exact as the server counts: it turns each n-gram into tokens as if a space stood
    before it, and finds only whole tokens. It takes no query of more than 1,000 characters or 500
    tokens; a longer match is told as long as can be asked, never below 32 words.

    `n_parallel`: requests in flight at most. `max_retries`: attempts after the first, for faults of
    the server and the network; `backoff_s` is the wait before the first of them, which doubles.
    `cache`: the file that keeps every count, below FABULA_CACHE or the user's cache folder if not
    given; `fresh` asks everything anew all the same, once. `meter(n_lookups, n_from_cache)` is told
    of each look-up answered, in any thread. Results depend on none of these.

    `close` it, or use it in a `with` statement. Raises `InputError` where httpx is missing, the
    address is none or the cache cannot be used.
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
            raise InputError(f"{n_parallel} requests at a time ask nothing; allow at least 1")
        self.name = corpus
        self.url = url.rstrip("/") + "/" if url.count("/") == 2 else url
        server = LookupServer(
            self.url,
            n_parallel=n_parallel,
            max_retries=max_retries,
            timeout_s=timeout_s,
            backoff_s=backoff_s,
        )
        self._server = InfiniGramServer(server, corpus)
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections and of the cache."""
        self._server.close()
        self._cache.close()

    @property
    def fingerprint(self) -> str:
        """The corpus's name, and which server where it is not the public one."""
        if self.url == API_URL:
            return self.name
        return f"{self.name}.{hashlib.sha256(self.url.encode()).hexdigest()[:8]}"

    @property
    def size(self) -> str:
        return f"the infini-gram index {self.name}"

    def match_texts(
        self, texts: Sequence[LocatedText], *, exclude: Iterable[int] = (), n_threads: int = 1
    ) -> list[Matches]:
        """The longest matches of many texts; `n_parallel` requests at a time, not `n_threads`.

        A text for which a look-up failed after all retries has that `LookupFailed` for a result.
        Raises `LookupFailed` where three texts in a row failed, over all calls, or the first did
        and the server never answered; `InputError` where it does not know the index, or documents
        are to be left out.
        """
        self._refuse(exclude)
        stop = threading.Event()
        pool = ThreadPoolExecutor(self._n_parallel)
        try:
            searches = []
            for text in texts:
                given_up = threading.Event()
                searches.append(
                    [
                        pool.submit(self._search, text, begin, end, given_up, stop)
                        for begin, end in _segments(text)
                    ]
                )
            return [self._gather(parts) for parts in searches]
        except KeyboardInterrupt:
            # Requests that hang are not waited for.
            stop.set()
            self._server.close()
            raise
        finally:
            # Where one text ends the work, the others are not waited for.
            stop.set()
            pool.shutdown(cancel_futures=True)

    def cite_one(self, text: LocatedText, first: int, n_words: int, n_sources: int) -> Attribution:
        """How often the n-gram occurs, and `n_sources` documents as far as the server shows them.

        A document is shown around the n-gram, at most 1,000 tokens. Where the server counts but
        does not show documents, there are none and a reason; after three such n-grams in a row they
        are not asked for any more. Raises `LookupFailed` where the count is not known.
        """
        query = n_gram_text(text, first, n_words)
        stop = threading.Event()
        try:
            count = self._count(query, stop)
        except TooLong as error:
            raise LookupFailed(f"{query[:40]!r}... is too long to be looked up: {error}") from error
        if not count or n_sources < 1:
            return Attribution(count, 0, True, ())
        if self._n_cites_failed >= _N_FAILED_IN_A_ROW:
            return Attribution(count, 0, True, (), "the server shows no documents")
        try:
            located = (
                self._occurrence(
                    text, first, n_words, number, Document(f"{self.name}:{number}", shown)
                )
                for number, shown in self._server.documents(query, 3 * n_sources, stop)
            )
            sources = tuple(islice(filter(None, located), n_sources))
        except (LookupFailed, TooLong) as error:
            # What the text shares is known, and so is its score; only whose it is, is not.
            self._n_cites_failed += 1
            return Attribution(count, 0, True, (), str(error))
        self._n_cites_failed = 0
        return Attribution(count, 0, True, sources)

    def _search(
        self,
        text: LocatedText,
        begin: int,
        end: int,
        given_up: threading.Event,
        stop: threading.Event,
    ) -> NDArray[np.int32]:
        """Longest matches at the words from `begin` to `end`: int32, shape (end - begin,)."""

        def occurs(i: int, j: int) -> bool:
            query = n_gram_text(text, i, j - i)
            if given_up.is_set():
                raise _Stopped("another part of the text could not be looked up")
            try:
                return self._count(query, stop) > 0
            except TooLong as error:
                if j - i > _ENOUGH_WORDS:
                    return False
                fault: Exception = error
            except LookupFailed as error:
                fault = error
            given_up.set()
            raise LookupFailed(
                f"{query!r} could not be looked up in {self.name}: {fault}"
            ) from fault

        return dj_search(
            len(text),
            1,
            lambda i, j: occurs_in_tokens(text, i, j, occurs),
            begin=begin,
            end=end,
        )

    def _gather(self, parts: Sequence[Future[NDArray[np.int32]]]) -> Matches:
        """The parts of a text as one, or why it has none; counts the texts that fail in a row."""
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
            # That is the text's fault, not the server's.
            return failure
        # A server that has answered other questions since is there.
        n_answered = self._server.n_answered
        has_answered = n_answered > self._n_answered_before
        self._n_answered_before = n_answered
        self._n_failed_in_a_row = 1 if has_answered else self._n_failed_in_a_row + 1
        if self._n_failed_in_a_row >= _N_FAILED_IN_A_ROW or not n_answered:
            raise LookupFailed(
                f"the server stays away ({failure}); what was scored is kept, and the same command "
                "goes on from there"
            )
        return failure

    def _count(self, query: str, stop: threading.Event) -> int:
        """How often `query` occurs; asked once, however many threads want to know.

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
            if known is None:
                self._remember(query, count)
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

    def _remember(self, query: str, count: int) -> None:
        if count or " " in query:
            self._cache.put(self.url, self.name, query, count)
        else:
            # An index that lacks a single word is perhaps not whole yet: the next run asks again.
            self._absent.add(query)

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


def _segments(text: LocatedText) -> list[tuple[int, int]]:
    """Where the parts of a text begin and end that are searched side by side, in words.

    They do not depend on how many are searched at a time: the server answers a little differently
    at each border, as it takes a space to stand before every n-gram. So a part begins after one.
    """
    borders = [0]
    for k, start in enumerate(text.words.starts):
        if k - borders[-1] >= _SEGMENT_WORDS and text.text[start - 1].isspace():
            borders.append(k)
    return list(zip(borders, [*borders[1:], len(text)], strict=True))
