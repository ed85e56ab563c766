"""The service of a reference for a whole team: what is served, the answers, and who gets them.

A method's parameters of `Answering` are what a request of its name must hold. Results are valid by
construction: checking 100,000 numbers takes longer.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import prometheus_client as prometheus
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.security import HTTPBearer
from pydantic import ConfigDict, FailFast, Field, TypeAdapter, ValidationError
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fabula.core import __version__
from fabula.core.errors import CorpusError, FabulaError, InputError
from fabula.core.store import dump_json
from fabula.core.workers import default_jobs
from fabula.reference.client import (  # fmt: skip
    ANSWERS,
    MAX_EXCLUDED,
    MAX_GRAMS,
    MAX_NAMED,
    TOKEN,
    TOLD,
    About,
    Answer,
    ErrorAnswer,
    Health,
    Limits,
    Natural,
    Numbers,
    StateKey,
    Words,
    first_fault,
)
from fabula.reference.files import HELD_OUT, MANIFEST, Report, Shard, document_line
from fabula.reference.parts import LocalPart, ShardWords, Walk, WalkTerms, walk_shard
from fabula.reference.search import MAX_PLACES, Reference
from fabula.text import TOKENISER
from fabula.web.app import guarded_app
from fabula.web.guard import Buckets, Refusal, Rules, address_of

_MOST_PAIRS = 1 << 26
"""Words of a text times words of a shard: a walk holds a number for each."""

Reply = dict[str, Any]
Grams = Annotated[list[Annotated[Words, Field(min_length=1)]], FailFast()]
Smalls = Annotated[list[Annotated[int, Field(ge=0, lt=2**31)]], FailFast()]
Out = Annotated[Numbers, Field(description="Numbers of documents to ignore.", default_factory=list)]
_KINDS: dict[str, Any] = {
    "units": np.int32, "is_content": np.bool_, "starts": np.int64, "n_anchors": np.int64,
    "ids": np.int64, "rarities": np.int32, "gains": np.int32, "functions": np.int64,
}  # fmt: skip
"""Of the arrays of a walk."""
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer} for status in (400, 401, 404, 409, 413, 422, 429, 503)
}
_REMEDIES = {
    401: {"www-authenticate": "Bearer"},
    413: {"connection": "close"},  # the rest of a body need not be sent
    **{status: {"retry-after": "1"} for status in (429, 503)},
}


@dataclass(frozen=True, slots=True)
class State:
    """What is served at a time."""

    key: str
    """Its fingerprint, and a digest of all its manifests, including the order of documents."""
    reference: Reference


class Served:
    """The current state of corpora on this machine's disk.

    Raises `CorpusError` if the corpora cannot be opened at first. If a later change cannot be
    read, the previous state stays in service, and `problem` says why.
    """

    def __init__(self, paths: Sequence[str | Path], *, say: Report = lambda _: None) -> None:
        self.paths, self._say = list(paths), say
        self.problem: str | None = None
        self.n_reloads = 0
        self._wake, self._ends = threading.Event(), threading.Event()
        self.now = self._opened()

    def reload(self) -> bool:
        """Serve the current content of the disk; returns whether the state changed."""
        try:
            if self._digest() == self.now.key.rpartition("@")[2]:
                self.problem = None
                return False
            self.now = state = self._opened()
        except (FabulaError, OSError, ValueError, IndexError, MemoryError) as error:
            # Inconsistent files may raise any of these errors.
            if self.problem is None:
                self._say(
                    f"the changed corpus cannot be served, so the previous state still is: {error}"
                )
            self.problem = str(error) or type(error).__name__
            return False
        self.problem = None
        self.n_reloads += 1
        self._say(f"now serving {state.reference.size}, {state.reference.fingerprint}")
        return True

    def held_out(self) -> list[dict[str, object]]:
        """The stored scores of the corpora's own documents, read now."""
        files = (Path(path, HELD_OUT) for path in self.paths)
        lines = (line for file in files if file.exists() for line in file.read_bytes().splitlines())
        return list(map(json.loads, lines))

    def watch(self, every_s: float) -> None:
        """Check for changes until `end` is called, and immediately when `wake` is called."""
        while not self._ends.is_set():
            self._wake.wait(every_s)
            self._wake.clear()
            if not self._ends.is_set():
                self.reload()

    def wake(self) -> None:
        self._wake.set()

    def end(self) -> None:
        self._ends.set()
        self._wake.set()

    def _opened(self) -> State:
        before = self._digest()
        reference = Reference.open(*self.paths, report=self._say)
        if self._digest() != before:
            raise CorpusError(f"{self.paths[0]}: is being changed; try again in a moment")
        # Compile the kernels now, not while a client waits.
        reference.longest_matches(["a"], exclude=[0] if len(reference.about.removed) else [])
        return State(f"{reference.fingerprint}@{before}", reference)

    def _digest(self) -> str:
        """A digest of the manifests; it changes if a document is removed or added."""
        files = (Path(path, MANIFEST) for path in self.paths)
        # If there is none, opening reports it.
        digests = (hashlib.sha256(f.read_bytes() if f.exists() else b"").digest() for f in files)
        return hashlib.sha256(b"".join(digests)).hexdigest()[:16]


class Answering:
    """`count` is told the number of words looked up. Methods raise `HTTPException`."""

    def __init__(self, served: Served, limits: Limits, count: Callable[[int], object]) -> None:
        self._served, self._limits, self._count = served, limits, count

    def reader(self, name: str) -> TypeAdapter[Any]:
        """Reads a request of that name, and answers it."""
        return TypeAdapter(getattr(self, name), config=ConfigDict(strict=True))

    def match(self, *, state: StateKey, words: Words, places: Smalls, exclude: Out) -> Reply:
        """The length of the longest n-gram that begins at each place of a text.

        `words` are distinct, and in normal form. `places` is the text: for each position, the
        number of its word, counted from 1; 0 is a gap that no n-gram crosses.
        """
        part = self._part(state, exclude)
        _hold("words", max(len(places), len(words)), self._limits.max_words)
        if max(places, default=0) > len(words):
            raise HTTPException(422, "places: one is beyond the given words")
        lengths = part.match(words, np.array(places, np.int32), exclude=exclude)
        self._count(len(places))
        return {"state": state, "lengths": lengths.tolist()}

    def find(
        self, *, state: StateKey, grams: Grams, limit: Natural, max_places: Natural, exclude: Out
    ) -> Reply:
        """Where n-grams occur: counts, and the first documents that contain each.

        `limit` is the number of documents to name for each n-gram, and `max_places` of its places
        in each shard to look up documents at.
        """
        part, n_words = self._part(state, exclude), sum(map(len, grams))
        _hold("n-grams", len(grams), MAX_GRAMS)
        _hold("words", n_words, self._limits.max_words)
        _hold("places of an n-gram", max_places, MAX_PLACES)
        if len(grams) > 1:
            _hold("documents named", len(grams) * limit, MAX_NAMED)
        hits = part.find(grams, limit=limit, max_places=max_places, exclude=exclude)
        self._count(n_words)
        lists = ({"numbers": hit.numbers.tolist(), "places": hit.places.tolist()} for hit in hits)
        rows = [asdict(hit) | more for hit, more in zip(hits, lists, strict=True)]
        return {"state": state, "found": rows}

    def documents(self, *, state: StateKey, numbers: Numbers) -> Reply:
        """The documents with these numbers, as they were read when the corpus was built."""
        part = self._part(state)
        _hold("documents", len(numbers), self._limits.max_documents)
        for number in numbers:
            if number >= len(part.about.removed) or part.about.removed[number]:
                raise HTTPException(404, f"no document has the number {number}, or it was removed")
        rows = [json.loads(document_line(document)) for document in part.documents(numbers)]
        return {"state": state, "documents": rows}

    def ids(self, *, state: StateKey, ids: Words) -> Reply:
        """The numbers of the documents with each of these ids."""
        _hold("ids", len(ids), MAX_EXCLUDED)
        return {"state": state, "numbers": self._part(state).numbers_of(ids)}

    def words(self, *, state: StateKey, shard: Natural) -> Reply:
        """The words of a shard by token id, and how often each occurs."""
        held = ShardWords.of(_shard(self._part(state), shard))
        return {"state": state, "words": held.words, "counts": held.counts.tolist()}

    def near(
        self, *, state: StateKey, shard: Natural, units: Smalls,
        is_content: Annotated[list[bool], FailFast()], starts: Numbers, n_anchors: Numbers,
        ids: Numbers, rarities: Smalls, gains: Smalls, functions: Numbers, terms: WalkTerms,
        exclude: Out,
    ) -> Reply:  # fmt: skip
        """The stretches of a shard that say what a text says in other words.

        The fields are those of `reference.parts.Walk`; bits are in units of 1 /
        `kernels.walk.PARTS`.
        """
        part = self._part(state, exclude)
        searched = _shard(part, shard)
        _hold("words", max(len(units), len(functions)), self._limits.max_words)
        _hold("pairs of words", len(is_content) * len(ids), _MOST_PAIRS)
        lists = units, is_content, starts, n_anchors, ids, rarities, gains, functions
        arrays = map(np.array, lists, _KINDS.values())
        walk = Walk(**dict(zip(_KINDS, arrays, strict=True)), terms=terms)
        if (wrong := walk.misfit(len(searched.vocabulary))) is not None:
            raise HTTPException(422, f"{wrong}: a number is out of its range")
        first, excluded = int(part.first_numbers[shard]), part.excluded(exclude)[shard]
        runs = walk_shard(searched, walk, excluded, first)
        self._count(len(units))
        return {"state": state} | {f.name: getattr(runs, f.name).tolist() for f in fields(runs)}

    def _part(self, state: str, exclude: Sequence[int] = ()) -> LocalPart:
        """What is served, if it is what a client began with and has these documents."""
        now = self._served.now
        if state != now.key:
            raise HTTPException(409, "the reference changed during the run; run the command again")
        _hold("documents excluded", len(exclude), MAX_EXCLUDED)
        if max(exclude, default=-1) >= len(now.reference.about.removed):
            raise HTTPException(422, "exclude: one is beyond the document numbers")
        return now.reference.local


def _shard(part: LocalPart, k: int) -> Shard:
    if k >= len(part.shards):
        raise HTTPException(404, f"no shard has the number {k}")
    return part.shards[k]


def _hold(what: str, n: int, most: int) -> None:
    if n > most:
        raise HTTPException(413, f"{n:,} {what}; the limit per request is {most:,}")


class Gate:
    """Admits requests with a token, kept as digest, within the rate limits; without tokens, all."""

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
        scheme, _, token = connection.headers.get("authorization", "").partition(" ")
        digest = _digest(token.strip())
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
    """Tokens of a file, one per line, and of the environment.

    Raises `InputError` if the file has none, or a line cannot be a token.
    """
    texts = {TOKEN: os.environ.get(TOKEN, "")}
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{file}: cannot be read ({error}); use a text file") from error
        if not any(map(str.strip, lines)):
            raise InputError(
                f"{file}: contains no tokens; write one per line, e.g. from `openssl rand -hex 24`"
            )
        texts |= {f"{file}, line {number}": line for number, line in enumerate(lines, 1)}
    tokens = {where: text.strip() for where, text in texts.items() if text.strip()}
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
    async def about() -> About:
        state = served.now
        described = state.reference.about
        return About(
            service="fabula-reference",
            protocol=3,
            version=__version__,
            state=state.key,
            tokeniser=TOKENISER,
            removed=np.flatnonzero(described.removed).tolist(),
            vocabularies=[len(shard.vocabulary) for shard in state.reference.local.shards],
            written_by=list(described.written_by),
            held_out=served.held_out(),
            limits=limits,
            **{name: getattr(described, name) for name in TOLD},
        )

    @router.get("/health")
    async def health(request: Request) -> Health:
        state, problem = served.now, served.problem
        if problem and gate and not gate.holder(request):
            # Do not reveal file locations to clients without a token.
            problem = "the changed corpus cannot be served; see the service's log"
        return Health(
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

    def add(name: str, kind_of_answer: type[Answer]) -> None:
        reader = answers.reader(name)

        def answered(body: bytes) -> bytes:
            # Reading a body, too, may take longer than others would wait.
            try:
                return dump_json(reader.validate_json(body)).encode()
            except ValidationError as error:
                raise HTTPException(422, first_fault(error)) from None

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
        root = f"#/paths/~1v1~1{name}/post/requestBody/content/application~1json/schema"
        schema = reader.json_schema(ref_template=root + "/$defs/{model}")
        content = {"application/json": {"schema": schema}}
        doc = inspect.getdoc(getattr(Answering, name)) or ""
        router.post(
            f"/v1/{name}",
            response_model=kind_of_answer,
            operation_id=f"post_v1_{name}",
            summary=doc.partition("\n")[0],
            description=doc,
            openapi_extra={"requestBody": {"content": content, "required": True}},
        )(endpoint)

    for name, kind in ANSWERS.items():
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
