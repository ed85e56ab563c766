"""Infini-gram: indexes of trillions of tokens (Liu et al. 2024), over HTTP or on disk."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice, product
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError, LookupFailed
from fabula.reference.backend import Attribution, LocatedText, Matches
from fabula.reference.catalogue import API_URL, MINI_URL, read_catalogue
from fabula.reference.dj import dj_search
from fabula.reference.external_index import (
    SURROGATE,
    IndexElsewhere,
    n_gram_text,
    occurs_in_tokens,
)
from fabula.reference.http_client import LookupCache, LookupServer, cache_path
from fabula.reference.infinigram_index import InfiniGramIndex
from fabula.reference.infinigram_server import InfiniGramMiniServer, InfiniGramServer, TooLong
from fabula.reference.info import Age
from fabula.types import Document

__all__ = ["API_URL", "InfiniGramIndex", "InfiniGramMini", "InfiniGramWeb"]

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
        if self.url == self._public_url:
            return self.name
        return f"{self.name}.{hashlib.sha256(self.url.encode()).hexdigest()[:8]}"

    @property
    def size(self) -> str:
        return f"the infini-gram index {self.name}"

    @property
    def age(self) -> Age:
        """As the catalogue has it for the index of that name."""
        known = read_catalogue().index(self.name)
        return Age() if known is None else Age(None, known.youngest)

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
            query, count = self._found_as(text, first, n_words, stop)
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
            raise LookupFailed(
                f"{query!r} could not be looked up in {self.name}: {fault}"
            ) from fault

        return dj_search(
            len(text),
            1,
            lambda i, j: self._occurs(text, i, j, occurs),
            begin=begin,
            end=end,
        )

    def _occurs(
        self, text: LocatedText, i: int, j: int, occurs: Callable[[int, int], bool]
    ) -> bool:
        return occurs_in_tokens(text, i, j, occurs)

    def _found_as(
        self, text: LocatedText, first: int, n_words: int, stop: threading.Event
    ) -> tuple[str, int]:
        """What an n-gram is looked up as, and how often that occurs."""
        query = n_gram_text(text, first, n_words)
        return query, self._count(query, stop)

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


_BEFORE = (
    *(" ", "\n", '"', "(", "\u201c", "\u2018", "\u2014", "--", "[", "*", ">", "\t"),
    *(" '", " \u2019", " -"),
)
_AFTER = (
    *(" ", ",", ".", "\n", '"', "?", "!", ";", ":", ")", "\u201d", "\u2014", "--", "]", "*", "<"),
    *("\u2026", "' ", "\u2019 ", "- "),
)
"""What stands beside a word where it begins and ends, the most frequent first. An apostrophe or a
hyphen alone may stand within a word."""
_IN_WORDS = "'\u2019-"


class InfiniGramMini(InfiniGramWeb):
    """A corpus behind infini-gram mini's API, whose index is of characters.

    The server finds `he cat` in `the cats`. So where an n-gram begins or ends with a word it is
    looked up with what stands beside a word: a space on both sides, what stands there in the text
    itself, and then each of a fixed list of marks before and after it. What occurs only beside
    other characters, or within words, does not count; a count is of the first neighbours that
    occur, and a lower bound.
    """

    _server_class = InfiniGramMiniServer
    _public_url = MINI_URL

    @property
    def fingerprint(self) -> str:
        """With the rule of neighbours, which decides what is found."""
        return f"{super().fingerprint}.beside1"

    def _occurs(
        self, text: LocatedText, i: int, j: int, occurs: Callable[[int, int], bool]
    ) -> bool:
        # Punctuation can be cut anywhere here.
        return occurs(i, j)

    def _found_as(
        self, text: LocatedText, first: int, n_words: int, stop: threading.Event
    ) -> tuple[str, int]:
        query = n_gram_text(text, first, n_words)
        begins, ends = _neighbours(text, first, n_words)
        # What is most probable, and the text's own neighbours: most of what occurs is found so.
        for before, after in dict.fromkeys(((begins[0], ends[0]), (begins[-1], ends[-1]))):
            if count := self._count(before + query + after, stop):
                return before + query + after, count
        # Each side alone: most of what does not occur ends here.
        if not self._count(query, stop):
            return query, 0
        begins = [before for before in begins if self._count(before + query, stop)]
        ends = [after for after in ends if begins and self._count(query + after, stop)]
        for before, after in product(begins, ends):
            if count := self._count(before + query + after, stop):
                return before + query + after, count
        return query, 0


def _neighbours(text: LocatedText, first: int, n_words: int) -> tuple[list[str], list[str]]:
    """What may stand before and after an n-gram: marks, and last what stands there in its own text.

    Beside a punctuation mark anything may. The lists depend on the first and the last word alone,
    so that every part of what is found is found.
    """
    begin = int(text.words.starts[first])
    end = int(text.words.ends[first + n_words - 1])
    inside = text.text[begin:end]
    before = _own_neighbour(text.text[max(0, begin - 2) : begin][::-1])[::-1]
    after = _own_neighbour(text.text[end : end + 2])
    return _beside(inside, _BEFORE, before), _beside(inside[::-1], _AFTER, after)


def _beside(inside: str, marks: tuple[str, ...], own: str) -> list[str]:
    """What may stand beside the first character of `inside`, the most frequent first."""
    if inside[0] in _IN_WORDS and inside[1:2].isalnum():
        # It could stand within a word. With more than a space its parts would need longer marks.
        marks = marks[:1]
    elif not inside[0].isalnum():
        return [""]
    return [*(mark for mark in marks if mark != own or own == marks[0]), *([own] if own else [])]


def _own_neighbour(beside: str) -> str:
    """What stands next to a word, of the two characters there; nothing at an end of the text."""
    spaced = "".join(" " if c.isspace() else c for c in SURROGATE.sub("\ufffd", beside))
    if not spaced or spaced[0].isalnum():
        return ""
    if spaced[0] in _IN_WORDS:
        return spaced if len(spaced) == 2 and not spaced[1].isalnum() else ""
    return spaced[0]


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
