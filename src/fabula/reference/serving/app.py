"""The web application that serves a reference."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from fastapi import APIRouter, Depends, FastAPI, Request
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
from fabula.reference.serving.answers import Asked, NotHere, TooLarge, Unfit, answer, tell_about
from fabula.reference.serving.gate import Gate, Tokens
from fabula.reference.serving.messages import ErrorAnswer, Limits
from fabula.reference.serving.served import Served
from fabula.store import dump_json
from fabula.web.app import guarded_app
from fabula.web.guard import Rules
from fabula.workers import default_jobs

T = TypeVar("T")


class Full(Exception):  # noqa: N818 (an event, not a kind of error)
    """All threads are busy, and the queue is full."""


class Workers:
    """Threads that answer requests, in the order in which they arrive."""

    def __init__(self, limits: Limits) -> None:
        self._pool = ThreadPoolExecutor(limits.n_at_once, thread_name_prefix="search")
        self._free = threading.BoundedSemaphore(limits.n_at_once + limits.n_waiting)

    async def run(self, work: Callable[[], T]) -> T:
        """Queue `work` and return its result, or raise its exception. Raises `Full`."""
        if not self._free.acquire(blocking=False):
            raise Full("too many requests in parallel")
        future = self._pool.submit(work)
        # Work whose client has disconnected keeps its place until it is done.
        future.add_done_callback(lambda _: self._free.release())
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


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

    async def reply(kind: type[Asked], body: bytes) -> Response:
        state = served.now

        def work() -> tuple[bytes, int]:
            asked = _read(kind, body)
            if asked.state != state.key:
                raise Moved("the reference changed during the run; run the command again")
            answered, n_words = answer(state, asked, limits)
            return dump_json(answered).encode(), n_words

        # Reading a body, too, may take longer than others would wait.
        answered, n_words = await workers.run(work)
        metrics.words.inc(n_words)
        return Response(answered, media_type="application/json")

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


def _read(kind: type[Asked], body: bytes) -> Asked:
    """The request, read and checked in one pass. Raises `Unfit` at its first fault."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"][:3])
        raise Unfit(f"{where or 'body'}: {first['msg']}"[:300]) from None


def _add_post(
    router: APIRouter, path: str, asked: type[Asked], answered: type[BaseModel], reply: Any
) -> None:
    """Answer requests of the kind `asked`."""

    async def endpoint(request: Request) -> Response:
        body = await request.body()
        content_type = request.headers.get("content-type", "").partition(";")[0]
        # A page of another site cannot send this type without asking first.
        if content_type.strip().lower() != "application/json":
            raise Unfit("body: must be sent as application/json")
        answer: Response = await reply(asked, body)
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
            self._metrics.requests.labels(endpoint, status).inc()
            self._metrics.seconds.labels(endpoint).observe(time.perf_counter() - begin)
