"""Short requests for matches that wait at the same time are searched together.

A search of sixteen texts of 250 words takes half of the time of sixteen searches, and threads then
exchange results once instead of sixteen times (`bench/serve.py`).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from fabula.reference.serving.messages import Limits, MatchAsked
from fabula.reference.serving.pool import Workers
from fabula.reference.serving.replies import check_match, match_together
from fabula.reference.serving.snapshots import State

__all__ = ["MatchQueue"]

_MOST_WORDS = 16_384
"""Words that are searched together: about ten milliseconds of work against a corpus in memory."""
_MOST_OF_ONE = 4096
"""Words of a request that waits for others."""
_MOST_EXCLUDED = 256
"""Longer lists hardly ever agree, and comparing them takes longer."""
_LATE_S = 0.02
"""A request that has waited for longer than this is searched by another thread."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    state: State
    asked: MatchAsked
    answered: asyncio.Future[bytes]
    since: float


_Answer = bytes | Exception


class MatchQueue:
    """Requests that wait for a thread of `workers`, each of which takes several.

    After each search a thread is free for others' work, so neither kind of request waits for all
    of the other. Requests are answered in the order in which they arrived.
    """

    def __init__(self, workers: Workers, limits: Limits) -> None:
        self._workers, self._limits = workers, limits
        self._waiting: deque[_Waiting] = deque()
        self._n_searching = 0
        """Threads that search, or will."""
        self._lock = threading.Lock()
        self._is_starting = self._is_watching = False

    @staticmethod
    def takes(state: State, asked: MatchAsked) -> bool:
        """Whether this request can wait for others; only searches in memory are so short."""
        return (
            max(len(asked.places), len(asked.words)) <= _MOST_OF_ONE
            and len(asked.exclude) <= _MOST_EXCLUDED
            and not any(shard.is_on_disk for shard in state.shards)
        )

    async def ask(self, state: State, asked: MatchAsked) -> bytes:
        """The answer, serialised. Raises `Full`, `TooLarge`, `Unfit`."""
        check_match(state, asked, self._limits)
        self._workers.hold()
        loop = asyncio.get_running_loop()
        waiting = _Waiting(state, asked, loop.create_future(), time.monotonic())
        self._waiting.append(waiting)
        if not self._is_starting:
            # Requests that are being read in this turn of the loop come along.
            self._is_starting = True
            loop.call_soon(self._start)
        return await waiting.answered

    def _start(self) -> None:
        """Have a thread search, or another if those that do cannot keep up.

        One is enough as long as most of the time goes into HTTP and JSON, and has the most to
        search together.
        """
        self._is_starting = False
        with self._lock:
            if not self._waiting or self._n_searching >= self._workers.n_at_once:
                return
            is_needed = not self._n_searching or self._is_late()
            self._n_searching += is_needed
        if is_needed:
            self._workers.submit(self._search)
        elif not self._is_watching:
            self._is_watching = True
            asyncio.get_running_loop().call_later(_LATE_S, self._look_again)

    def _look_again(self) -> None:
        self._is_watching = False
        self._start()

    def _is_late(self) -> bool:
        return time.monotonic() - self._waiting[0].since > _LATE_S

    def _search(self) -> None:
        """In a thread: answer the first that wait."""
        some = self._next()
        answers = _answers(some)
        self._workers.let_go(len(some))
        if some:
            some[0].answered.get_loop().call_soon_threadsafe(_deliver, some, answers)
        with self._lock:
            if not self._waiting or (self._n_searching > 1 and not self._is_late()):
                self._n_searching -= 1
                return
        # Behind what others have submitted meanwhile.
        self._workers.submit(self._search)

    def _next(self) -> list[_Waiting]:
        some: list[_Waiting] = []
        n_words = 0
        with self._lock:
            while self._waiting:
                n_words += len(self._waiting[0].asked.places)
                if some and n_words > _MOST_WORDS:
                    break
                some.append(self._waiting.popleft())
        return some


def _answers(some: Sequence[_Waiting]) -> list[_Answer]:
    """The answer to each; those about the same documents are found together."""
    alike: defaultdict[tuple[str, tuple[int, ...]], list[int]] = defaultdict(list)
    for k, one in enumerate(some):
        alike[one.state.key, tuple(one.asked.exclude)].append(k)
    answers: dict[int, _Answer] = {}
    for numbers in alike.values():
        group = [some[k] for k in numbers]
        answers |= zip(numbers, _together(group), strict=True)
    return [answers[k] for k in range(len(some))]


def _together(group: Sequence[_Waiting]) -> list[_Answer]:
    try:
        found = match_together(group[0].state, [one.asked for one in group])
        return [answer.model_dump_json().encode() for answer in found]
    except Exception as error:  # noqa: BLE001 (raised where the request waits)
        if len(group) == 1:
            return [error]
        # What is wrong with one must not be told to the others.
        return [answer for one in group for answer in _together([one])]


def _deliver(some: Sequence[_Waiting], answers: Sequence[_Answer]) -> None:
    for one, answer in zip(some, answers, strict=True):
        if one.answered.done():  # its client is gone
            continue
        if isinstance(answer, Exception):
            one.answered.set_exception(answer)
        else:
            one.answered.set_result(answer)
