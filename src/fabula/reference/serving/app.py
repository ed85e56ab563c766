"""The web application that serves a reference."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.security import HTTPBearer
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from pydantic import BaseModel

from fabula.reference.serving import messages
from fabula.reference.serving.gate import Gate, Tokens
from fabula.reference.serving.infinigram_protocol import (
    InfiniGramAnswer,
    InfiniGramAsked,
    NotAnswered,
    answer_infinigram,
)
from fabula.reference.serving.limiting import NotHere, TooLarge, Unfit
from fabula.reference.serving.messages import ErrorAnswer, Limits
from fabula.reference.serving.pool import Full, Workers
from fabula.reference.serving.replies import Asked, answer, tell_about
from fabula.reference.serving.service_metrics import Metered, Metrics
from fabula.reference.serving.snapshots import State, States
from fabula.web.app import guarded_app
from fabula.web.guard import Rules
from fabula.workers import default_jobs

__all__ = ["create_app"]

_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorAnswer, "description": "The request cannot be parsed."},
    401: {"model": ErrorAnswer, "description": "The token is missing or invalid."},
    404: {"model": ErrorAnswer, "description": "No such document or address."},
    409: {"model": ErrorAnswer, "description": "The reference has changed; start over."},
    413: {"model": ErrorAnswer, "description": "The request exceeds a limit."},
    422: {"model": ErrorAnswer, "description": "The request does not match the schema."},
    429: {"model": ErrorAnswer, "description": "Too many requests; see Retry-After."},
    503: {"model": ErrorAnswer, "description": "The server is overloaded; see Retry-After."},
}


_PROBLEM = (
    "the changed corpus cannot be served, so the previous state still is; see the service's log"
)


class Moved(Exception):  # noqa: N818 (a reply, not an error)
    """The state that a client started with is no longer kept."""


_STATUSES: dict[type[Exception], int] = {
    NotAnswered: 400,
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


class Service:
    """The parts of the service: states, threads, metrics."""

    def __init__(self, states: States, limits: Limits) -> None:
        n_at_once = limits.n_at_once or default_jobs()
        self.limits = limits.model_copy(update={"n_at_once": n_at_once})
        self.states, self.metrics = states, Metrics()
        self.workers = Workers(n_at_once, limits.n_waiting)
        self.metrics.tell(states.now)
        states.when_changed = self._changed

    async def answer(self, work: Callable[[], tuple[BaseModel, int]]) -> Response:
        """The result of `work`, serialised in the thread that computed it."""

        def found() -> tuple[bytes, int]:
            answered, n_words = work()
            return answered.model_dump_json().encode(), n_words

        body, n_words = await self.workers.run(found)
        self.metrics.words.inc(n_words)
        return Response(body, media_type="application/json")

    async def ask(self, asked: Asked) -> Response:
        state = self.state(asked.state)
        return await self.answer(lambda: answer(state, asked, self.limits))

    def state(self, key: str | None) -> State:
        """The state that a client started with. Raises `Moved`."""
        found = self.states.now if key is None else self.states.of(key)
        if found is None:
            raise Moved("the reference changed during the run; run the command again")
        return found

    def _changed(self, state: State) -> None:
        self.metrics.reloads.inc()
        self.metrics.tell(state)


def create_app(
    states: States, *, tokens: Tokens, limits: Limits, check_every_s: float = 5.0
) -> FastAPI:
    """The application; without tokens it only answers requests to its own machine's names.

    Checks the corpora for changes every `check_every_s` seconds.
    """
    service = Service(states, limits)

    @asynccontextmanager
    async def watching(_: FastAPI) -> AsyncIterator[None]:
        watcher = threading.Thread(target=states.watch, args=[check_every_s], daemon=True)
        watcher.start()
        try:
            yield
        finally:
            states.end()
            await asyncio.to_thread(service.workers.close)

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
    app.include_router(_router(service, tokens), dependencies=asks_token if tokens else [])
    endpoints = frozenset(app.openapi()["paths"]) | {"/openapi.json"}
    app.add_middleware(Metered, metrics=service.metrics, endpoints=endpoints)
    return app


def _router(service: Service, tokens: Tokens) -> APIRouter:
    router = APIRouter(responses=_ERRORS)
    states = service.states

    @router.get("/v1/about")
    async def about() -> messages.About:
        return tell_about(states.now, service.limits)

    @router.get("/health")
    async def health(request: Request) -> messages.Health:
        now, problem = states.now, states.problem
        if problem is not None and tokens:
            # Do not reveal file locations to clients without a token.
            holder = tokens.holder(request.headers.get("authorization", ""))
            problem = _PROBLEM if holder is None else problem
        return messages.Health(
            is_ready=True,
            name=now.reference.name,
            fingerprint=now.reference.fingerprint,
            state=now.key,
            n_reloads=states.n_reloads,
            problem=problem,
        )

    @router.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> Response:
        return Response(service.metrics.page(), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    @router.get("/v1/held-out")
    async def held_out() -> messages.HeldOutAnswer:
        return messages.HeldOutAnswer(groups=await asyncio.to_thread(states.held_out))

    @router.post("/v1/match", response_model=messages.MatchAnswer)
    async def match(asked: messages.MatchAsked) -> Response:
        return await service.ask(asked)

    @router.post("/v1/find", response_model=messages.FindAnswer)
    async def find(asked: messages.FindAsked) -> Response:
        return await service.ask(asked)

    @router.post("/v1/documents", response_model=messages.DocumentsAnswer)
    async def documents(asked: messages.DocumentsAsked) -> Response:
        return await service.ask(asked)

    @router.post("/v1/ids", response_model=messages.IdsAnswer)
    async def ids(asked: messages.IdsAsked) -> Response:
        return await service.ask(asked)

    @router.post("/v1/passages", response_model=messages.PassagesAnswer)
    async def passages(asked: messages.PassagesAsked) -> Response:
        return await service.ask(asked)

    @router.post("/v1/passages/holders", response_model=messages.HoldersAnswer)
    async def holders(asked: messages.HoldersAsked) -> Response:
        return await service.ask(asked)

    @router.post("/v1/passages/best", response_model=messages.BestAnswer)
    async def best(asked: messages.BestAsked) -> Response:
        return await service.ask(asked)

    @router.post("/v1/passages/read", response_model=messages.ReadAnswer)
    async def read(asked: messages.ReadAsked) -> Response:
        return await service.ask(asked)

    @router.post("/v1/passages/words", response_model=messages.WordsAnswer)
    async def words(asked: messages.WordsAsked) -> Response:
        return await service.ask(asked)

    @router.post("/v1/batch", response_model=messages.BatchAnswer)
    async def batch(asked: messages.BatchAsked) -> Response:
        return await service.ask(asked)

    @router.post("/", response_model=InfiniGramAnswer)
    async def infinigram(asked: InfiniGramAsked) -> Response:
        state = states.now
        return await service.answer(lambda: answer_infinigram(state, asked))

    return router


def _refuse(_: Request, status: int, text: str) -> Response:
    """Every refusal is `{"error": ...}`."""
    return JSONResponse({"error": text}, status, headers=_REMEDIES.get(status))
