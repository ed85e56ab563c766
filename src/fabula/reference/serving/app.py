"""The web application that serves a reference."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.security import HTTPBearer
from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from pydantic import BaseModel, ValidationError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fabula.reference.serving import messages
from fabula.reference.serving.answers import (
    Asked,
    NotHere,
    TooLarge,
    Unfit,
    answer,
    check_match,
    match_together,
    tell_about,
)
from fabula.reference.serving.gate import Gate, Tokens
from fabula.reference.serving.messages import ErrorAnswer, Limits, MatchAsked
from fabula.reference.serving.served import Served, State
from fabula.store import dump_json
from fabula.web.app import guarded_app
from fabula.web.guard import Rules
from fabula.workers import default_jobs

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
            one.answered.set_result(dump_json(answer).encode())
    except Exception as error:  # noqa: BLE001 (raised where the request waits)
        if len(group) == 1:
            group[0].answered.set_exception(error)
            return
        # What is wrong with one must not be told to the others.
        for one in group:
            if not one.answered.done():
                _answer_together([one])


_DESCRIPTIONS = {
    400: "The request cannot be parsed.",
    401: "The token is missing or invalid.",
    404: "No such document or address.",
    409: "The reference has changed; start over.",
    413: "The request exceeds a limit.",
    422: "The request does not match the schema.",
    429: "Too many requests; see Retry-After.",
    503: "The server is overloaded; see Retry-After.",
}
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": text} for status, text in _DESCRIPTIONS.items()
}
_ASKED: dict[str, tuple[type[Asked], type[BaseModel]]] = {
    "/v1/match": (messages.MatchAsked, messages.MatchAnswer),
    "/v1/find": (messages.FindAsked, messages.FindAnswer),
    "/v1/documents": (messages.DocumentsAsked, messages.DocumentsAnswer),
    "/v1/ids": (messages.IdsAsked, messages.IdsAnswer),
    "/v1/words": (messages.WordsAsked, messages.WordsAnswer),
    "/v1/near": (messages.NearAsked, messages.NearAnswer),
}
_PROBLEM = (
    "the changed corpus cannot be served, so the previous state still is; see the service's log"
)


class Moved(Exception):  # noqa: N818 (a reply, not an error)
    """The state that a client started with is no longer served."""


_STATUSES: dict[type[Exception], int] = {
    NotHere: 404,
    Moved: 409,
    TooLarge: 413,
    Unfit: 422,
    Full: 503,
}
_REMEDIES = {
    401: {"www-authenticate": "Bearer"},
    413: {"connection": "close"},  # the rest of a body need not be sent
    429: {"retry-after": "1"},
    503: {"retry-after": "1"},
}


def create_app(
    served: Served, *, tokens: Tokens, limits: Limits, check_every_s: float = 5.0
) -> FastAPI:
    """The application; without tokens it only answers requests to its own machine's names.

    Checks the corpora for changes every `check_every_s` seconds.
    """
    limits = limits.model_copy(update={"n_at_once": limits.n_at_once or default_jobs()})
    workers, metrics = Workers(limits), Metrics()

    @asynccontextmanager
    async def watching(_: FastAPI) -> AsyncIterator[None]:
        watcher = threading.Thread(target=served.watch, args=[check_every_s], daemon=True)
        watcher.start()
        try:
            yield
        finally:
            served.end()
            await asyncio.to_thread(workers.close)

    router = APIRouter(responses=_ERRORS)

    @router.get("/v1/about")
    async def about() -> messages.About:
        return tell_about(served, limits)

    @router.get("/health")
    async def health(request: Request) -> messages.Health:
        state, problem = served.now, served.problem
        if problem is not None and tokens:
            # Do not reveal file locations to clients without a token.
            holder = tokens.holder(request.headers.get("authorization", ""))
            problem = _PROBLEM if holder is None else problem
        return messages.Health(
            is_ready=True,
            name=state.reference.name,
            fingerprint=state.reference.fingerprint,
            state=state.key,
            n_reloads=served.n_reloads,
            problem=problem,
        )

    @router.get("/metrics", response_class=PlainTextResponse)
    async def show_metrics() -> Response:
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    async def reply(asked: Asked) -> Response:
        state = served.now
        if asked.state != state.key:
            raise Moved("the reference changed during the run; run the command again")
        if isinstance(asked, messages.MatchAsked) and workers.is_short(state, asked):
            body, n_words = await workers.match(state, asked), len(asked.places)
        else:
            body, n_words = await workers.run(lambda: _serialised(state, asked, limits))
        metrics.words.inc(n_words)
        return Response(body, media_type="application/json")

    for path, (asked, answered) in _ASKED.items():
        _add_post(router, path, asked, answered, reply)
    app = guarded_app(
        title="Fabula reference",
        description="A reference corpus for a whole team.",
        rules=Rules(Gate(tokens, limits), limits.max_body_bytes, own_names_only=not tokens),
        refuse=_refuse,
        texts={500: "internal error; see the service's log"},
        statuses=_STATUSES,
        lifespan=watching,
    )
    asks_token = [Depends(HTTPBearer(auto_error=False, description="A token from --token-file."))]
    app.include_router(router, dependencies=asks_token if tokens else [])
    endpoints = frozenset(app.openapi()["paths"]) | {"/openapi.json"}
    app.add_middleware(Metered, metrics=metrics, endpoints=endpoints)
    return app


def _serialised(state: State, asked: Asked, limits: Limits) -> tuple[bytes, int]:
    """The answer, serialised in the thread that computed it, and the words looked up for it."""
    answered, n_words = answer(state, asked, limits)
    return dump_json(answered).encode(), n_words


def _add_post(
    router: APIRouter, path: str, asked: type[Asked], answered: type[BaseModel], reply: Any
) -> None:
    """Answer requests of the kind `asked`.

    JSON is read and checked in one pass; FastAPI would do one after the other.
    """

    async def endpoint(request: Request) -> Response:
        body = await request.body()
        content_type = request.headers.get("content-type", "").partition(";")[0]
        # A page of another site cannot send this type without asking first.
        if content_type.strip().lower() != "application/json":
            raise Unfit("body: must be sent as application/json")
        try:
            read = asked.model_validate_json(body)
        except ValidationError as error:
            raise RequestValidationError(
                [{**one, "loc": ("body", *one["loc"])} for one in error.errors()]
            ) from error
        answer: Response = await reply(read)
        return answer

    content = {"application/json": {"schema": asked.model_json_schema()}}
    router.add_api_route(
        path,
        endpoint,
        methods=["POST"],
        response_model=answered,
        operation_id=f"post{path.replace('/', '_')}",
        summary=(asked.__doc__ or "").partition("\n")[0],
        openapi_extra={"requestBody": {"content": content, "required": True}},
    )


def _refuse(_: Request, status: int, text: str) -> Response:
    """Every refusal is `{"error": ...}`."""
    return JSONResponse({"error": text}, status, headers=_REMEDIES.get(status))


class Metrics:
    """The service's own metrics, for Prometheus. They contain no words, ids or tokens."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "fabula_requests",
            "Requests by endpoint and status.",
            ["endpoint", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "fabula_request_seconds",
            "Seconds from a request to the end of its response.",
            ["endpoint"],
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "fabula_requests_in_flight", "Requests in progress.", registry=self.registry
        )
        self.words = Counter("fabula_words_searched", "Words looked up.", registry=self.registry)


class Metered:
    """Middleware that counts every request, including rejected ones."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, endpoints: Collection[str]) -> None:
        self._app, self._metrics, self._endpoints = app, metrics, endpoints
        self._known: dict[tuple[str, str], tuple[Counter, Histogram]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Arbitrary paths must not become labels.
        endpoint = scope["path"] if scope["path"] in self._endpoints else "other"
        status = "500"

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        begin = time.perf_counter()
        self._metrics.in_flight.inc()
        try:
            await self._app(scope, receive, send_noted)
        finally:
            self._metrics.in_flight.dec()
            # Looked up by their labels once: that takes longer than counting.
            if (endpoint, status) not in self._known:
                self._known[endpoint, status] = (
                    self._metrics.requests.labels(endpoint, status),
                    self._metrics.seconds.labels(endpoint),
                )
            requests, seconds = self._known[endpoint, status]
            requests.inc()
            seconds.observe(time.perf_counter() - begin)
