"""The web application that serves a reference."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from pydantic import BaseModel, ValidationError

from fabula.reference.serving import messages
from fabula.reference.serving.gate import Gate, Tokens
from fabula.reference.serving.infinigram_protocol import (
    InfiniGramAnswer,
    InfiniGramAsked,
    NotAnswered,
    answer_infinigram,
)
from fabula.reference.serving.limiting import NotHere, TooLarge, Unfit
from fabula.reference.serving.match_queue import MatchQueue
from fabula.reference.serving.messages import ErrorAnswer, Limits
from fabula.reference.serving.pool import Full, Workers
from fabula.reference.serving.replies import Asked, answer, tell_about
from fabula.reference.serving.service_metrics import Metered, Metrics
from fabula.reference.serving.snapshots import State, States
from fabula.web.app import guarded_app
from fabula.web.guard import Rules
from fabula.workers import default_jobs

__all__ = ["create_app"]

M = TypeVar("M", bound=BaseModel)

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


_ASKED: dict[str, tuple[type[Asked], type[BaseModel]]] = {
    "/v1/match": (messages.MatchAsked, messages.MatchAnswer),
    "/v1/find": (messages.FindAsked, messages.FindAnswer),
    "/v1/documents": (messages.DocumentsAsked, messages.DocumentsAnswer),
    "/v1/ids": (messages.IdsAsked, messages.IdsAnswer),
    "/v1/passages": (messages.PassagesAsked, messages.PassagesAnswer),
    "/v1/passages/holders": (messages.HoldersAsked, messages.HoldersAnswer),
    "/v1/passages/best": (messages.BestAsked, messages.BestAnswer),
    "/v1/passages/read": (messages.ReadAsked, messages.ReadAnswer),
    "/v1/passages/words": (messages.WordsAsked, messages.WordsAnswer),
    "/v1/batch": (messages.BatchAsked, messages.BatchAnswer),
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
        self.matches = MatchQueue(self.workers, self.limits)
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
        if isinstance(asked, messages.MatchAsked) and self.matches.takes(state, asked):
            body = await self.matches.ask(state, asked)
            self.metrics.words.inc(len(asked.places))
            return Response(body, media_type="application/json")
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

    router = _router(service, tokens)
    app = guarded_app(
        title="Fabula reference",
        description="A reference corpus for a whole team.",
        rules=Rules(Gate(tokens, limits), limits.max_body_bytes, own_names_only=not tokens),
        refuse=_refuse,
        posts={
            route.path: route.endpoint
            for route in router.routes
            if isinstance(route, APIRoute) and route.methods == {"POST"}
        },
        texts={500: "internal error; see the service's log"},
        statuses=_STATUSES,
        lifespan=watching,
    )
    asks_token = [Depends(HTTPBearer(auto_error=False, description="A token from --token-file."))]
    app.include_router(router, dependencies=asks_token if tokens else [])
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

    async def ask(asked: Asked) -> Response:
        return await service.ask(asked)

    async def infinigram(asked: InfiniGramAsked) -> Response:
        state = states.now
        return await service.answer(lambda: answer_infinigram(state, asked))

    for path, (asked, answered) in _ASKED.items():
        _add_post(router, path, asked, answered, ask)
    _add_post(router, "/", InfiniGramAsked, InfiniGramAnswer, infinigram)
    return router


def _add_post(
    router: APIRouter,
    path: str,
    asked: type[M],
    answered: Any,
    answer: Callable[[M], Awaitable[Response]],
) -> None:
    """Answer requests of the kind `asked` by answers of the kind `answered`, or a union of kinds.

    JSON is read and checked in one pass; FastAPI would do one after the other.
    """

    async def endpoint(request: Request) -> Response:
        body = await request.body()
        if not _is_json(request.headers.get("content-type", "")):
            raise Unfit("body: must be sent as application/json")
        try:
            read = asked.model_validate_json(body)
        except ValidationError as error:
            raise RequestValidationError(
                [{**one, "loc": ("body", *one["loc"])} for one in error.errors()]
            ) from error
        return await answer(read)

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


def _is_json(content_type: str) -> bool:
    """A page of another site cannot send this type without asking first."""
    return content_type.partition(";")[0].strip().lower() == "application/json"


def _refuse(_: Request, status: int, text: str) -> Response:
    """Every refusal is `{"error": ...}`."""
    return JSONResponse({"error": text}, status, headers=_REMEDIES.get(status))
