"""The web application that serves a reference."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import os
import threading
import time
from collections.abc import AsyncIterator, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import prometheus_client as prometheus
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.security import HTTPBearer
from pydantic import ValidationError
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fabula import __version__
from fabula.errors import InputError
from fabula.reference.serving import messages
from fabula.reference.serving.answers import Answering
from fabula.reference.serving.messages import TOKEN, ErrorAnswer, Limits
from fabula.reference.serving.served import Served
from fabula.store import dump_json
from fabula.text import TOKENISER
from fabula.web.app import guarded_app
from fabula.web.guard import Buckets, Refusal, Rules, address_of
from fabula.workers import default_jobs

_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer} for status in (400, 401, 404, 409, 413, 422, 429, 503)
}
_REMEDIES = {
    401: {"www-authenticate": "Bearer"},
    413: {"connection": "close"},  # the rest of a body need not be sent
    **{status: {"retry-after": "1"} for status in (429, 503)},
}


class Gate:
    """Admits requests with a token, within the rate limits; without tokens, all requests.

    Only digests of tokens are stored, and compared.
    """

    def __init__(self, tokens: Iterable[str], limits: Limits) -> None:
        self.replace(tokens)
        self._n_per_s, rate = limits.n_per_s, limits.n_per_s or 1e9
        self._known = Buckets(int(2 * rate), rate)
        # For clients that guess tokens, which may share a proxy with those that check health.
        self._strangers, self._open = Buckets(200, 50.0), Buckets(200, 50.0)

    def replace(self, tokens: Iterable[str]) -> None:
        """Replace all accepted tokens by these."""
        self._digests = frozenset(map(_digest, tokens))

    def __len__(self) -> int:
        return len(self._digests)

    def holder(self, connection: HTTPConnection) -> str | None:
        """A name for the token of a request, or None if it has none that is valid."""
        scheme, _, given = connection.headers.get("authorization", "").partition(" ")
        digest = _digest(given.strip())
        return digest if digest in self._digests and scheme.lower() == "bearer" else None

    def __call__(self, connection: HTTPConnection) -> Refusal | None:
        address = address_of(connection)
        if connection.scope["path"] == "/health":
            return None if self._open.take(address) else (429, "too many requests")
        holder = self.holder(connection) if self._digests else address
        if holder is None:
            if not self._strangers.take(address):
                return 429, "too many requests without a token"
            return 401, (
                f"a token is required: send Authorization: Bearer TOKEN, or set {TOKEN} for fabula"
            )
        if not self._known.take(holder):
            return 429, f"more than {self._n_per_s:,} requests per second"
        return None


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def read_tokens(file: Path | None) -> list[str]:
    """The tokens in a file, one per line, and that of the environment.

    Raises `InputError` if the file has none, or a line cannot be a token.
    """
    given = {TOKEN: os.environ.get(TOKEN, "")}
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{file}: cannot be read ({error}); use a text file") from error
        if not any(map(str.strip, lines)):
            raise InputError(
                f"{file}: contains no tokens; write one per line, e.g. from `openssl rand -hex 24`"
            )
        given |= {f"{file}, line {number}": line for number, line in enumerate(lines, 1)}
    tokens = {where: text.strip() for where, text in given.items() if text.strip()}
    for where, token in tokens.items():
        if not token.isascii() or not token.isprintable() or " " in token:
            raise InputError(f"{where}: a token may contain ASCII letters, digits and punctuation")
    return list(tokens.values())


def create_app(served: Served, gate: Gate, limits: Limits, check_every_s: float = 5.0) -> FastAPI:
    """The application; without tokens it only answers requests to its own machine's names.

    Checks the corpora for changes every `check_every_s` seconds.
    """
    limits = limits.model_copy(update={"n_at_once": limits.n_at_once or default_jobs()})
    router, metrics = APIRouter(responses=_ERRORS), Metrics()
    pool = _add_posts(router, Answering(served, limits, metrics.words.inc), limits)

    @asynccontextmanager
    async def watching(_: FastAPI) -> AsyncIterator[None]:
        threading.Thread(target=served.watch, args=[check_every_s], daemon=True).start()
        try:
            yield
        finally:
            served.end()
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)

    @router.get("/v1/about")
    async def about() -> messages.About:
        state = served.now
        told = state.reference.about
        same = ("name", "fingerprint", "settings", "n_documents", "n_words", "age")
        return messages.About(
            service="fabula-reference",
            protocol=3,
            version=__version__,
            state=state.key,
            tokeniser=TOKENISER,
            removed=np.flatnonzero(told.removed).tolist(),
            vocabularies=[len(shard.vocabulary) for shard in state.reference.local.shards],
            written_by=list(told.written_by),
            held_out=served.held_out(),
            limits=limits,
            **{name: getattr(told, name) for name in same},
        )

    @router.get("/health")
    async def health(request: Request) -> messages.Health:
        state, problem = served.now, served.problem
        if problem and gate and not gate.holder(request):
            # Do not reveal file locations to clients without a token.
            problem = "the changed corpus cannot be served; see the service's log"
        return messages.Health(
            name=state.reference.name,
            fingerprint=state.reference.fingerprint,
            state=state.key,
            n_reloads=served.n_reloads,
            problem=problem,
        )

    @router.get("/metrics", response_class=PlainTextResponse)
    async def show_metrics() -> Response:
        page = prometheus.generate_latest(metrics.registry)
        return Response(page, media_type=prometheus.CONTENT_TYPE_PLAIN_0_0_4)

    app = guarded_app(
        title="Fabula reference",
        description="A reference corpus for a whole team.",
        rules=Rules(gate, limits.max_body_bytes, own_names_only=not gate),
        # Every refusal is `{"error": ...}`.
        refuse=lambda _, status, text: JSONResponse(
            {"error": text}, status, headers=_REMEDIES.get(status)
        ),
        texts={500: "internal error; see the service's log"},
        lifespan=watching,
    )
    asks_token = [Depends(HTTPBearer(auto_error=False, description="A token from --token-file."))]
    app.include_router(router, dependencies=asks_token if gate else [])
    # Arbitrary paths must not become labels of metrics.
    app.add_middleware(metrics.around, endpoints={*app.openapi()["paths"], "/openapi.json"})
    return app


def _add_posts(router: APIRouter, answers: Answering, limits: Limits) -> ThreadPoolExecutor:
    """Add what answers each kind of request; returns the threads that search."""
    pool = ThreadPoolExecutor(limits.n_at_once, thread_name_prefix="search")
    free = threading.BoundedSemaphore(limits.n_at_once + limits.n_waiting)

    def add(name: str, kind_of_answer: type[messages.Answer]) -> None:
        asked = answers.reader(name)

        def answered(body: bytes) -> bytes:
            # Reading a body, too, may take longer than others would wait.
            try:
                return dump_json(asked.validate_json(body)).encode()
            except ValidationError as error:
                raise HTTPException(422, messages.first_fault(error)) from None

        async def endpoint(request: Request) -> Response:
            body = await request.body()
            content_type = request.headers.get("content-type", "").partition(";")[0]
            # A page of another site cannot send this type without asking first.
            if content_type.strip().lower() != "application/json":
                raise HTTPException(422, "body: must be sent as application/json")
            if not free.acquire(blocking=False):
                raise HTTPException(503, "too many requests in parallel")
            future = pool.submit(answered, body)
            # Work whose client has disconnected keeps its place until it is done.
            future.add_done_callback(lambda _: free.release())
            return Response(await asyncio.wrap_future(future), media_type="application/json")

        # References are resolved from the whole description.
        here = f"#/paths/~1v1~1{name}/post/requestBody/content/application~1json/schema"
        schema = asked.json_schema(ref_template=here + "/$defs/{model}")
        content = {"application/json": {"schema": schema}}
        told = inspect.getdoc(getattr(Answering, name)) or ""
        router.post(
            f"/v1/{name}",
            response_model=kind_of_answer,
            operation_id=f"post_v1_{name}",
            summary=told.partition("\n")[0],
            description=told,
            openapi_extra={"requestBody": {"content": content, "required": True}},
        )(endpoint)

    for name, kind in messages.ANSWERS.items():
        add(name, kind)
    return pool


class Metrics:
    """The service's own metrics, for Prometheus. They contain no words, ids or tokens."""

    def __init__(self) -> None:
        self.registry = registry = prometheus.CollectorRegistry()
        self.seconds = prometheus.Histogram(
            "fabula_request_seconds",
            "Seconds from a request to the end of its response, by endpoint and status.",
            ["endpoint", "status"],
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
            registry=registry,
        )
        self.in_flight = prometheus.Gauge(
            "fabula_requests_in_flight", "Requests in progress.", registry=registry
        )
        self.words = prometheus.Counter(
            "fabula_words_searched", "Words looked up.", registry=registry
        )

    def around(self, app: ASGIApp, endpoints: Collection[str]) -> ASGIApp:
        """Middleware that measures every request, including rejected ones."""

        async def measured(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            endpoint = scope["path"] if scope["path"] in endpoints else "other"
            status, begin = 500, time.perf_counter()

            async def send_noted(message: Message) -> None:
                nonlocal status
                status = message.get("status", status)
                await send(message)

            try:
                with self.in_flight.track_inprogress():
                    await app(scope, receive, send_noted)
            finally:
                self.seconds.labels(endpoint, status).observe(time.perf_counter() - begin)

        return measured
