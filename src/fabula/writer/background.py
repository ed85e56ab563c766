"""The desk's work in other processes, which can be ended at any moment.

One job at a time has the processor: the one whose draft the writer looks at, or else the first in
line. A job that nobody looks at gives way to one that somebody does, and is done later from what it
kept, the results of `core.cached_results`. One that waits for the writer or for a model that was
agreed to holds nobody up.
"""

from __future__ import annotations

import importlib
import threading
import time
import traceback
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from fabula.core.errors import FabulaError
from fabula.core.workers import Child, connections
from fabula.jobs.job import Declined
from fabula.jobs.result import picked
from fabula.models.cost import Estimate

STOPPED = "stopped; press Try again to go on"
FAILED = "Something went wrong; see the terminal in which the desk runs."
_ENDED = "its process was ended, perhaps for lack of memory; press Try again to go on"
_LOOKS_S = 1.5
"""A page on the screen asks for the state several times as often."""
_MAX_APART = 3
"""Processes that wait for answers."""
_MAX_SPARES = 2
"""Idle processes: for a report, and for the editor's checks."""
_LONG_S = 60


@dataclass(slots=True)
class State:
    """The progress of a job."""

    stage: str = "waiting"
    n_done: int = 0
    n_total: int | None = None
    began_s: float = 0.0
    """When the stage began, by the monotonic clock."""
    edition: int = 0
    """Increases with each finished part of the report."""
    question: str = ""
    """The cost of a model, while confirmation is pending."""
    error: str = ""
    is_over: bool = False
    answered: threading.Event = field(default_factory=threading.Event)
    is_agreed: bool = False

    @property
    def shown(self) -> str:
        """The stage, and the minutes left if it takes long, by the pace so far."""
        if not (self.n_total and self.n_done):
            return self.stage
        left_s = (time.monotonic() - self.began_s) * (self.n_total / self.n_done - 1)
        n_minutes = round(left_s / 60)
        minutes = "a minute" if n_minutes == 1 else f"{n_minutes} minutes"
        return self.stage if left_s < _LONG_S else f"{self.stage}, about {minutes} left"

    def begin(self, stage: str, total: int | None) -> None:
        self.stage, self.n_done, self.n_total = stage, 0, total
        self.began_s = time.monotonic()

    def finish(self, error: str = "") -> None:
        self.error = error or self.error
        self.stage, self.question, self.is_over = "", "", True
        self.answered.set()

    def to_json(self) -> dict[str, Any]:
        counts = {"stage": self.shown, "done": self.n_done, "total": self.n_total}
        return {**counts, **picked(self, "edition", "question", "error"), "over": self.is_over}


class Watch:
    """In the process: what a job reports, and what it asks."""

    def __init__(self, send: Callable[[Any], None], receive: Callable[[], Any]) -> None:
        self._send, self._receive = send, receive

    def begin(self, stage: str, total: int | None) -> None:
        self._send(("begin", stage, total))

    def advance(self, n: int) -> None:
        self._send(("advance", n))

    def say(self, stage: str) -> None:
        self._send(("say", stage))

    def tell(self, sentence: str) -> None:
        """Nothing: the page shows everything itself."""

    def show(self) -> None:
        """Another part of the report is ready."""
        self._send(("show",))

    def lack(self, error: str) -> None:
        """Something is missing from the report; the first reason is shown."""
        self._send(("lack", error))

    def confirm(self, model: str, estimate: Estimate) -> None:
        """Wait until the writer accepts or declines a model's cost."""
        if not estimate.n_calls or estimate.cost == 0:
            return
        self._send(("ask", asked_for(model, estimate)))
        if not self._receive():
            self._send(("lack", f"{model} was not asked, at your request"))
            raise Declined(model)


def asked_for(model: str, estimate: Estimate) -> str:
    dollars, usage = estimate.cost, estimate.usage
    cost = "at an unknown price" if dollars is None else f"for about {dollars:.2f} dollars"
    return (
        f"{model} will be asked {estimate.n_calls:,} times, {cost}: about {usage.n_input:,} input "
        f"and {usage.n_output:,} output tokens."
    )


Work = Callable[[Watch], Any]
"""Called in the process, to which it is sent by cloudpickle."""


def serve(requests_fd: int, answers_fd: int) -> None:
    """In the process: do one piece of work after another, until the desk is gone."""
    import pickle

    requests, answers = connections(requests_fd, answers_fd)
    # Before there is any work, since it takes a second or two.
    importlib.import_module("fabula.writer.work")

    def receive() -> Any:
        return pickle.loads(requests.recv_bytes())

    def send(message: Any) -> None:
        answers.send_bytes(pickle.dumps(message))

    with suppress(EOFError, OSError):
        while True:
            work = receive()
            result, error = None, ""
            try:
                result = work(Watch(send, receive))
            except FabulaError as refused:
                error = str(refused)
            except Exception:  # noqa: BLE001 (the desk lives on)
                traceback.print_exc()
                error = FAILED
            send(("end", result, error))


@dataclass(slots=True, eq=False)
class _Job:
    key: Hashable
    work: Work
    state: State
    child: Child | None = None
    """None while it waits for its turn."""
    is_apart: bool = False
    """It waits for an answer, and needs no processor."""
    seen_s: float = 0.0

    @property
    def is_looked_at(self) -> bool:
        return time.monotonic() - self.seen_s < _LOOKS_S


class Queue:
    """The jobs of a desk, each in a process while it has its turn.

    spares: idle processes, which are taken first and remain when the queue is closed.
    """

    def __init__(self, spares: list[Child] | None = None) -> None:
        self._lock = threading.RLock()
        self._jobs: list[_Job] = []
        """In the order in which they were submitted; without those that are over."""
        self._has_own = spares is None
        self._spares = [] if spares is None else spares
        """Their instruments are open."""
        self._asked: set[Child] = set()
        """Those that do quick work."""
        self._is_closed = False

    def submit(self, key: Hashable, work: Work) -> State:
        """Queue work; it replaces a job of the same key."""
        self.end(key)
        with self._lock:
            # Who submits a draft looks at it next.
            seen_s = time.monotonic() + _LOOKS_S
            self._jobs.append(_Job(key, work, State(), seen_s=seen_s))
            state = self._jobs[-1].state
            self._turn()
        return state

    def prepare(self) -> None:
        """Start a process before there is work for it."""
        with self._lock:
            self._spares.append(self._free())

    def look(self, key: Hashable) -> None:
        """Somebody looks at this job's draft."""
        with self._lock:
            for job in self._jobs:
                if job.key == key:
                    job.seen_s = max(job.seen_s, time.monotonic())
            self._turn()

    def end(self, key: Hashable, error: str = "") -> None:
        """End a job; what it kept stays. Returns when its process is gone."""
        with self._lock:
            ended = [job for job in self._jobs if job.key == key]
            children = [child for job in ended if (child := self._dropped(job)) is not None]
            for job in ended:
                self._jobs.remove(job)
                job.state.finish(error)
        for child in children:
            child.process.wait()
        with self._lock:
            self._turn()

    def ask(self, work: Work) -> Any:
        """The result of quick work, which waits for no job. Raises `FabulaError`."""
        with self._lock:
            if self._is_closed:
                raise FabulaError("the desk is closed")
            child = self._free()
            self._asked.add(child)
        message = None
        with suppress(EOFError, OSError):
            _send(child, work)
            while message is None or message[0] != "end":
                message = _received(child)
        with self._lock:
            self._asked.remove(child)
            self._leave(child, is_usable=message is not None and message[0] == "end")
        if message is None or message[0] != "end":
            raise FabulaError(_ENDED)
        if message[2]:
            raise FabulaError(message[2])
        return message[1]

    def close(self) -> None:
        """End everything. What is not over is not lost: a desk begins it again."""
        with self._lock:
            self._is_closed = True
            jobs, self._jobs = self._jobs, []
            idle = self._spares if self._has_own else []
            dropped = map(self._dropped, jobs)
            children = [child for child in (*dropped, *self._asked, *idle) if child is not None]
            for child in children:
                child.kill()
            for job in jobs:
                job.state.finish()
        for child in children:
            child.process.wait()

    def _turn(self) -> None:
        """Give the processor to the job whose turn it is. With the lock held."""
        waiting = [job for job in self._jobs if job.child is None]
        if self._is_closed or not waiting:
            return
        looked_at = [job for job in waiting if job.is_looked_at]
        job = max(looked_at, key=lambda job: job.seen_s, default=waiting[0])
        busy = next((job for job in self._jobs if job.child and not job.is_apart), None)
        apart = [job for job in self._jobs if job.is_apart]
        if (busy or len(apart) >= _MAX_APART) and not looked_at:
            return
        if busy is not None:
            if job.seen_s - busy.seen_s < _LOOKS_S:
                return
            self._dropped(busy)
        if len(apart) >= _MAX_APART:
            # Rather one that was not answered than one whose model is paid for.
            self._dropped(min(apart, key=lambda job: (not job.state.question, job.seen_s)))
        child = job.child = self._free()
        threading.Thread(target=self._follow, args=(job, child), daemon=True).start()

    def _free(self) -> Child:
        return self._spares.pop() if self._spares else Child("fabula.writer.background", "serve")

    def _leave(self, child: Child, *, is_usable: bool) -> None:
        """Keep an idle process for the next work, or end it. With the lock held."""
        if is_usable and not self._is_closed and len(self._spares) < _MAX_SPARES:
            self._spares.append(child)
        else:
            child.close()

    def _dropped(self, job: _Job) -> Child | None:
        """Kill the process of a job, which waits for another turn. With the lock held."""
        child, job.child, job.is_apart = job.child, None, False
        state = job.state
        state.question = state.error = ""
        state.begin("waiting", None)
        state.answered.set()
        if child is not None:
            child.kill()
        return child

    def _follow(self, job: _Job, child: Child) -> None:
        """Receive what a job reports, until it is over or its process was killed."""
        error: str | None = None
        with suppress(EOFError, OSError):
            _send(child, job.work)
            while error is None:
                what, *values = _received(child)
                with self._lock:
                    if job.child is not child:
                        break
                    if what == "end":
                        error = values[1]
                    else:
                        self._report(job, what, *values)
                if what == "ask":
                    job.state.answered.wait()
                    _send(child, job.state.is_agreed)
        with self._lock:
            is_current = job.child is child
            if is_current:
                job.child = None
                self._jobs.remove(job)
                job.state.finish(_ENDED if error is None else error)
            self._leave(child, is_usable=is_current and error is not None)
            self._turn()

    def _report(self, job: _Job, what: str, *values: Any) -> None:
        """Take in what a job reports. With the lock held."""
        state = job.state
        if what == "begin":
            state.begin(*values)
        elif what == "advance":
            state.n_done += values[0]
        elif what == "say":
            state.stage = values[0]
        elif what == "show":
            state.edition += 1
        elif what == "lack":
            state.error = state.error or values[0]
        elif what == "ask":
            state.answered.clear()
            state.question, job.is_apart = values[0], True
            self._turn()


def _send(child: Child, message: Any) -> None:
    import cloudpickle

    child.requests.send_bytes(cloudpickle.dumps(message))


def _received(child: Child) -> Any:
    import pickle

    return pickle.loads(child.answers.recv_bytes())
