"""Threads that search, with a bounded queue; short requests for matches are searched together.

A search of sixteen texts of 250 words takes half of the time of sixteen searches, and threads then
exchange results once instead of sixteen times (`bench/serve.py`).
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from fabula.reference.serving.answers import check_match, match_together
from fabula.reference.serving.messages import Limits, MatchAsked
from fabula.reference.serving.served import State

T = TypeVar("T")

_MOST_WORDS = 16_384
"""Words that are searched together: about ten milliseconds of work against a corpus in memory."""
_MOST_OF_ONE = 4096
"""Words of a request that waits for others."""
_MOST_EXCLUDED = 256
"""Longer lists hardly ever agree, and comparing them takes longer."""


class Full(Exception):  # noqa: N818 (an event, not a kind of error)
    """All threads are busy, and the queue is full."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    state: State
    asked: MatchAsked
    answered: Future[bytes] = field(default_factory=Future)


class Workers:
    """Threads that answer requests, in the order in which they arrive."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pool = ThreadPoolExecutor(limits.n_at_once, thread_name_prefix="search")
        self._n_most = limits.n_at_once + limits.n_waiting
        self._n_held = 0
        self._waiting: deque[_Waiting] = deque()
        self._lock = threading.Lock()

    async def run(self, work: Callable[[], T]) -> T:
        """Queue `work` and return its result, or raise its exception. Raises `Full`."""
        self._hold()
        return await self._result(self._pool.submit(work))

    async def match(self, state: State, asked: MatchAsked) -> bytes:
        """The answer, serialised. Raises `Full`, `TooLarge`, `Unfit`."""
        check_match(state, asked, self._limits)
        self._hold()
        waiting = _Waiting(state, asked)
        self._waiting.append(waiting)
        # Whichever thread is free first takes all that wait; the others find nothing to do.
        self._pool.submit(self._search)
        return await self._result(waiting.answered)

    @staticmethod
    def is_short(state: State, asked: MatchAsked) -> bool:
        """Whether `match` takes this request; only searches in memory are so short."""
        return (
            max(len(asked.places), len(asked.words)) <= _MOST_OF_ONE
            and len(asked.exclude) <= _MOST_EXCLUDED
            and not any(shard.is_on_disk for shard in state.reference.local.shards)
        )

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _hold(self) -> None:
        with self._lock:
            if self._n_held >= self._n_most:
                raise Full("too many requests in parallel")
            self._n_held += 1

    async def _result(self, future: Future[T]) -> T:
        # Work whose client has disconnected keeps its place until it is done.
        future.add_done_callback(self._let_go)
        return await asyncio.wrap_future(future)

    def _let_go(self, _: Future[T]) -> None:
        with self._lock:
            self._n_held -= 1

    def _search(self) -> None:
        """In a thread: answer the first that wait; those about the same documents together."""
        alike: defaultdict[tuple[str, tuple[int, ...]], list[_Waiting]] = defaultdict(list)
        n_words = 0
        with self._lock:
            while self._waiting and n_words <= _MOST_WORDS:
                one = self._waiting.popleft()
                n_words += len(one.asked.places)
                # A client that has gone away has cancelled its future.
                if one.answered.set_running_or_notify_cancel():
                    alike[one.state.key, tuple(one.asked.exclude)].append(one)
        for group in alike.values():
            _answer_together(group)


def _answer_together(group: Sequence[_Waiting]) -> None:
    try:
        found = match_together(group[0].state, [one.asked for one in group])
        for one, answer in zip(group, found, strict=True):
            one.answered.set_result(answer.model_dump_json().encode())
    except Exception as error:  # noqa: BLE001 (raised where the request waits)
        if len(group) == 1:
            group[0].answered.set_exception(error)
            return
        # What is wrong with one must not be told to the others.
        for one in group:
            if not one.answered.done():
                _answer_together([one])
