"""Lookups over HTTP, with retries, whose failures never count as novelty; the client of a served
reference, and the messages that both sides check.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from email.utils import parsedate_to_datetime
from itertools import pairwise
from operator import lt
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

import numpy as np
from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError

from fabula.core.errors import CorpusError, InputError, LookupFailed
from fabula.core.packages import needing
from fabula.core.store import dump_json
from fabula.core.types import Document
from fabula.reference import parts
from fabula.reference.backend import Age, ServerAway
from fabula.reference.parts import Found, Grams, Ints, ShardWords, Stretches, Walk
from fabula.text import TOKENISER, TextSettings

if TYPE_CHECKING:
    import httpx

_LONGEST_WAIT_S = 60.0
_TRIES_OF_NOBODY = 3
_REFUSALS = frozenset({400, 401, 404, 405, 422})
"""HTTP statuses that are not retried. 403 is not one of them: the gateway in front of infini-gram's
server replies Forbidden when it is overloaded."""

T = TypeVar("T")


class Refused(Exception):  # noqa: N818 (a reply, not yet an error)
    """The server understood the request and will never answer it; the message says why."""

    def __init__(self, words: str, status: int = 0) -> None:
        super().__init__(words)
        self.status = status
        """HTTP status; 0 if the error is in the reply itself."""


class LookupServer:
    """A server that takes and returns JSON objects; requests are retried.

    `n_parallel`: maximum number of requests in flight, over all threads. `backoff_s`: the wait
    before the second attempt, doubled for each further one, with jitter, and a tenth of it after a
    dropped connection; the server's Retry-After is honoured, up to a minute. If the server has
    never answered and cannot be reached, there are only three attempts. `headers` are sent with
    every request; `refusals` are the statuses that are not retried.
    """

    def __init__(
        self,
        url: str,
        *,
        n_parallel: int = 8,
        max_retries: int = 5,
        timeout_s: float,
        backoff_s: float = 1.0,
        headers: Mapping[str, str] = {},
        refusals: frozenset[int] = _REFUSALS,
    ) -> None:
        library = needing(
            "httpx",
            "external indexes need httpx, which is not installed; run "
            "`pip install 'fabula[remote]'`",
        )
        try:
            parsed = library.URL(url)
        except library.InvalidURL as error:
            raise InputError(f"{url!r} is not a valid index address: {error}") from error
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise InputError(
                f"{url!r} is not a valid index address; use one such as https://example.org/"
            )
        self.url = url
        self._max_retries, self._backoff_s, self._refusals = max_retries, backoff_s, refusals
        self._slots = threading.BoundedSemaphore(n_parallel)
        self._jitter = random.Random()
        self._has_answered = False
        self._faults: tuple[type[Exception], ...] = (library.HTTPError, library.StreamError)
        self._nobody = library.ConnectError
        self._client: httpx.Client = library.Client(
            timeout=timeout_s,
            # For TLS all certificates are read, which takes longer than a look-up.
            verify=parsed.scheme == "https",
            limits=library.Limits(max_connections=n_parallel),
            headers={"User-Agent": "fabula (measures creative writing)", **headers},
        )

    def close(self) -> None:
        self._client.close()

    def ask(
        self,
        request: Mapping[str, Any] | bytes | None,
        read: Callable[[bytes], T],
        stop: threading.Event,
        *,
        path: str = "",
    ) -> T:
        """What `read` makes of the server's reply to `request`; it raises `ValueError` at a fault.

        For None it is a GET; bytes are JSON already. `path` is appended to the server's address.

        Raises `Refused` with the server's message if retrying is useless (`read` may raise it too),
        `InputError` if the server redirects to another address, `LookupFailed` with the last fault
        when the attempts are used up or `stop` is set.
        """
        body = json.dumps(request).encode() if isinstance(request, Mapping) else request
        method, url = "GET" if body is None else "POST", self.url + path
        headers: dict[str, str] = {} if body is None else {"Content-Type": "application/json"}
        n_attempts = self._max_retries + 1
        fault = "no request was made"
        for attempt in range(n_attempts):
            if stop.is_set():
                raise LookupFailed("the search was stopped")
            wait_s, first_wait_s = 0.0, self._backoff_s
            try:
                with self._slots:
                    response = self._client.request(method, url, content=body, headers=headers)
                # The user named only this server, and the request may contain words of an
                # unpublished story, and a token; and the next ones would lose their bodies.
                if response.next_request is not None:
                    to = response.next_request.url
                    raise InputError(
                        f"{self.url} redirects to {to.scheme}://{to.netloc.decode()}, which is not "
                        "followed; use that address if it is the one you want"
                    )
                wait_s = _retry_after(response.headers)
                if response.status_code == 200:
                    answer = read(response.content)
                    self._has_answered = True
                    return answer
                fault = f"HTTP {response.status_code} {response.reason_phrase}"
                with suppress(ValueError, LookupError, TypeError, RecursionError):
                    fault = f"HTTP {response.status_code} {response.json()['error']}"
                if response.status_code in self._refusals:
                    raise Refused(fault, response.status_code)
            except self._faults as error:
                fault = f"{type(error).__name__}: {error}".rstrip(": ")
                # A dropped connection does not mean that the server is overloaded.
                first_wait_s = self._backoff_s / 10
                if isinstance(error, self._nobody) and not self._has_answered:
                    n_attempts = min(n_attempts, _TRIES_OF_NOBODY)
            except (ValueError, RecursionError) as error:
                fault = str(error)
            if attempt + 1 >= n_attempts:
                break
            backoff_s = first_wait_s * 2**attempt * self._jitter.uniform(0.5, 1.0)
            stop.wait(min(max(wait_s, backoff_s), _LONGEST_WAIT_S))
        raise LookupFailed(
            f"{self.url} did not answer in {n_attempts} attempts; last error: {fault}"
        )


def _retry_after(headers: Mapping[str, str]) -> float:
    """Seconds to wait, which the server may state as a number or as a date; 0 if it does not."""
    value = headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0


M = TypeVar("M", bound=BaseModel)

TOKEN = "FABULA_REFERENCE_TOKEN"
"""The environment variable for a token, read by the service and its clients."""
_MOST = 2**53
"""The largest integer that every JSON parser represents exactly."""

MAX_GRAMS, MAX_NAMED, MAX_EXCLUDED = 2_000, 200_000, 100_000
"""The most n-grams of a request; documents that an answer names, as n-grams times `limit` (a single
n-gram may request all of its own); numbers that a request excludes, or ids that it looks up."""
_SERVICE_REFUSALS = frozenset({400, 401, 403, 404, 405, 409, 413, 422})
_MAX_NUMBERS = 2**31
"""Maximum number of documents of a reference; larger numbers are rejected."""
_N_FAILED_IN_A_ROW = 3

Natural = Annotated[int, Field(ge=0, le=_MOST)]
# The first fault ends a list: a body of wrong items would give an error for each.
Numbers = Annotated[list[Natural], FailFast()]
Words = Annotated[list[str], FailFast()]
StateKey = Annotated[
    str, Field(max_length=200, description="The documents as /v1/about told them.")
]


class _Message(BaseModel):
    # A later server may send fields that this client does not know.
    model_config = ConfigDict(strict=True, frozen=True)


class Answer(_Message):
    state: StateKey


class Limits(_Message):
    """Limits per request, per client, and for the whole service."""

    max_body_bytes: int = Field(default=32 << 20, ge=1024, description="Bytes per request body.")
    max_words: int = Field(default=2_000_000, ge=1, description="Words per request.")
    max_documents: int = Field(default=64, ge=1, description="Documents per request.")
    n_per_s: int = Field(
        default=500, ge=0, description="Requests per second and token; 0: unlimited."
    )
    n_at_once: int = Field(
        default=0, ge=0, description="Requests searched in parallel; 0: one per CPU."
    )
    n_waiting: int = Field(default=64, ge=0, description="Requests that wait in the queue.")


class ErrorAnswer(_Message):
    """Why a request was not answered."""

    error: str


class About(_Message):
    """What is served. Words in requests must be in the normal form defined by these settings."""

    service: Literal["fabula-reference"]
    protocol: Literal[3]
    version: str
    name: str = Field(max_length=1000)
    fingerprint: str = Field(max_length=1000)
    state: StateKey
    tokeniser: str
    settings: TextSettings
    n_documents: Natural
    n_words: Natural
    removed: Numbers = Field(description="Numbers whose documents were removed, ascending.")
    vocabularies: Numbers = Field(description="The distinct words of each shard.")
    written_by: Words
    age: Age
    chance_factor: float = Field(
        default=1.0, description="How many times as many passages as usual are shared by chance."
    )
    held_out: list[dict[str, object]] = Field(
        description="How documents of the reference score against the rest, for each way of "
        "measuring; empty if `reference measure` was not run."
    )
    limits: Limits


class Health(_Message):
    """Whether the service is ready, and which documents it serves."""

    name: str
    fingerprint: str
    state: str
    n_reloads: Natural
    problem: str | None = Field(
        description="Why the corpus on disk cannot be served; the previous state still is."
    )


class MatchAnswer(Answer):
    lengths: Numbers = Field(description="In words; 0 where nothing begins.")


class FoundAnswer(_Message):
    """Where an n-gram occurs."""

    count: Natural
    n_places: Natural = Field(description="The number of its places that were checked.")
    n_documents: Natural = Field(description="Distinct documents at those places.")
    numbers: Numbers = Field(description="The first of these documents, ascending.")
    places: Numbers = Field(description="The first word of its first place in each, from 0.")


class FindAnswer(Answer):
    found: list[FoundAnswer]


class DocumentsAnswer(Answer):
    documents: list[Document]


class IdsAnswer(Answer):
    numbers: Annotated[list[Numbers], FailFast()] = Field(description="By id, ascending.")


class WordsAnswer(Answer):
    words: Words = Field(description="By token id.")
    counts: Numbers = Field(description="The number of occurrences of each.")


class NearAnswer(Answer):
    """Stretches by column: words of the text and of a document (half-open), and their score."""

    firsts: Numbers
    ends: Numbers
    numbers: Numbers
    first_words: Numbers
    end_words: Numbers
    scores: Numbers


TOLD = ("name", "fingerprint", "settings", "n_documents", "n_words", "age", "chance_factor")
"""What is told of a reference as it is."""
ANSWERS: dict[str, type[Answer]] = {
    "match": MatchAnswer, "find": FindAnswer, "documents": DocumentsAnswer, "ids": IdsAnswer,
    "words": WordsAnswer, "near": NearAnswer,
}  # fmt: skip
"""By the last part of the path; `service.Answering` says what is asked there."""


def first_fault(error: ValidationError) -> str:
    """Where a message is wrong first, and how."""
    first = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(map(str, first['loc'][:3])) or 'body'}: {first['msg']}"[:300]


_first_host: list[str] = []
"""The only host that has been given a token without one, if any."""


def _token_for(url: str) -> str:
    """The token in the environment for the host of an address; empty without one. TOKEN@HOST (or
    HOST:PORT; several separated by spaces) goes to that host only. A token without host goes to the
    first one asked; a second, for which it was not given, raises `InputError`."""
    parts = urlsplit(url)
    tokens = os.environ.get(TOKEN, "").split()
    named = dict(token.rpartition("@")[::-2] for token in tokens if "@" in token)
    for host in (parts.netloc.rpartition("@")[2], parts.hostname or ""):
        if host in named:
            return named[host]
    if not (bare := [token for token in tokens if "@" not in token]):
        return ""
    host = parts.hostname or ""
    _first_host[:] = _first_host or [host]
    if _first_host != [host]:
        raise InputError(
            f"{url}: {TOKEN} was already given to {_first_host[0]}; say which token is for which "
            f"host, as in {TOKEN}='TOKEN@{_first_host[0]} TOKEN@{host}'"
        )
    return bare[0]


def open_served(
    url: str, *, token: str | None = None, timeout_s: float = 120, **how: Any
) -> ServedPart:
    """Connect to the service at `url`.

    `token`: by default the environment's for this host (`_token_for`). `timeout_s`: the timeout of
    each attempt; `how`: as for `LookupServer`. Raises `InputError` if access is denied or it is not
    such a service, `CorpusError` for an incompatible version, `LookupFailed` without a response.
    """
    token = _token_for(url) if token is None else token
    if not (token.isascii() and token.isprintable()):
        raise InputError(f"{TOKEN}: a token may contain ASCII letters, digits and punctuation")
    address, headers = url.rstrip("/") + "/", {"Authorization": f"Bearer {token}"} if token else {}
    server = LookupServer(
        address, timeout_s=timeout_s, headers=headers, refusals=_SERVICE_REFUSALS, **how
    )

    def read(content: bytes) -> About:
        about = _read(About, content)
        n = about.n_documents + len(about.removed)
        if n > _MAX_NUMBERS or not _are_ascending(about.removed, n):
            raise ValueError("document numbers that no reference can have")
        if about.tokeniser != TOKENISER:
            raise CorpusError(
                f"{url}: splits words with {about.tokeniser}, but this version with {TOKENISER}; "
                "run the same version of Fabula on both sides"
            )
        return about

    try:
        about = server.ask(None, read, threading.Event(), path="v1/about")
    except BaseException as error:
        server.close()
        if not isinstance(error, Refused):
            raise
        if error.status != 404:
            raise _refusal(url, error) from error
        raise InputError(
            f"{url} does not serve a reference; use the address that `fabula reference serve` "
            "prints"
        ) from error
    return ServedPart(server, about)


class ServedPart:
    """The shards behind a service, as one part of a reference.

    Every method raises `LookupFailed` if no valid answer was received in all attempts, `ServerAway`
    after three such failures in a row, and `CorpusError` if the service now serves other documents.
    """

    def __init__(self, server: LookupServer, about: About) -> None:
        removed = np.zeros(about.n_documents + len(about.removed), np.bool_)
        removed[about.removed] = True
        shared = {name: getattr(about, name) for name in TOLD}
        self.about = parts.About(removed=removed, written_by=tuple(about.written_by), **shared)
        self.n_shards = len(about.vocabularies)
        self.held_out = about.held_out
        self._server, self._told = server, about
        self._removed = frozenset(about.removed)
        self._stop = threading.Event()
        self._n_failed = 0

    def close(self) -> None:
        self._stop.set()
        self._server.close()

    def match(
        self, words: Sequence[str], places: Ints, *, exclude: Sequence[int], n_threads: int = 1
    ) -> Ints:
        # For a text without words there is nothing to request.
        if not places.any():
            return np.zeros(len(places), np.int32)
        answer = self._ask("match", words=_sendable(words), places=places.tolist(), exclude=exclude)
        return np.array(answer.lengths, np.int32)

    def find(
        self, grams: Grams, *, limit: int, max_places: int, exclude: Sequence[int] = ()
    ) -> list[Found]:
        limit = min(limit, len(self.about.removed))
        how: dict[str, Any] = {"limit": limit, "max_places": max_places, "exclude": exclude}
        queries = [_sendable(gram) for gram in grams]
        most_words = self._told.limits.max_words // max(map(len, queries), default=1)
        n_most = max(1, min(MAX_GRAMS, MAX_NAMED // max(1, limit), most_words))
        return [
            Found(hit.count, hit.n_places, hit.n_documents,
                  np.array(hit.numbers, np.int64), np.array(hit.places, np.int64))
            for at in range(0, len(queries), n_most)
            for hit in self._ask("find", grams=queries[at : at + n_most], **how).found
        ]  # fmt: skip

    def documents(self, numbers: Sequence[int]) -> list[Document]:
        n = self._told.limits.max_documents
        batches = [list(numbers[at : at + n]) for at in range(0, len(numbers), n)]
        answers = (self._ask("documents", numbers=batch) for batch in batches)
        return [document for answer in answers for document in answer.documents]

    def numbers_of(self, ids: Sequence[str]) -> list[list[int]]:
        batches = [ids[at : at + MAX_EXCLUDED] for at in range(0, len(ids), MAX_EXCLUDED)]
        answers = (self._ask("ids", ids=_sendable(batch)) for batch in batches)
        return [numbers for answer in answers for numbers in answer.numbers]

    def vocabularies(self) -> list[ShardWords]:
        answers = (self._ask("words", shard=k) for k in range(self.n_shards))
        return [ShardWords(answer.words, np.array(answer.counts, np.int64)) for answer in answers]

    def walk(self, walks: Sequence[Walk], *, exclude: Sequence[int] = ()) -> list[Stretches]:
        names = [field.name for field in fields(Walk) if field.name != "terms"]
        stretches = []
        for shard, walk in enumerate(walks):
            arrays = {name: getattr(walk, name).tolist() for name in names}
            terms = asdict(walk.terms)
            answer = self._ask("near", shard=shard, **arrays, terms=terms, exclude=exclude)
            columns = (getattr(answer, field.name) for field in fields(Stretches))
            stretches.append(Stretches(*(np.array(column, np.int64) for column in columns)))
        return stretches

    def _ask(self, name: str, *, exclude: Sequence[int] | None = None, **request: Any) -> Any:
        """The service's answer about the documents as they were when it was opened."""
        if exclude is not None:
            if len(exclude) > MAX_EXCLUDED:
                raise InputError(
                    f"{self._server.url}: excludes at most {MAX_EXCLUDED:,} documents, not "
                    f"{len(exclude):,}; use the folder of the corpus"
                )
            request["exclude"] = list(map(int, exclude))
        body = dump_json({"state": self._told.state, **request}).encode()

        def read(content: bytes) -> Any:
            answer: Any = _read(ANSWERS[name], content)
            if answer.state != self._told.state:
                raise ValueError("an answer about other documents")
            if not self._is_right(answer, request):
                raise ValueError("an answer that no reference can give")
            return answer

        try:
            answer = self._server.ask(body, read, self._stop, path=f"v1/{name}")
        except (Refused, LookupFailed) as error:
            fault = _refusal(self._server.url, error) if isinstance(error, Refused) else error
            # If a text is too long, the server is not at fault.
            is_away = isinstance(fault, LookupFailed) and getattr(error, "status", 0) != 413
            self._n_failed += is_away
            if is_away and self._n_failed >= _N_FAILED_IN_A_ROW:
                fault = ServerAway(
                    f"the server is not responding ({fault}); finished scores are kept, and the "
                    "same command with `out` resumes"
                )
            raise fault from error
        self._n_failed = 0
        return answer

    def _is_right(self, answer: Any, sent: dict[str, Any]) -> bool:
        n, out = len(self.about.removed), self._removed.union(sent.get("exclude", ()))
        match answer:
            case MatchAnswer():
                # Every part of an n-gram that occurs must occur too; none crosses a gap or the end.
                lengths, places = np.array([*answer.lengths, 0]), np.array(sent["places"])
                return (
                    len(answer.lengths) == len(places)
                    and not lengths[:-1][places == 0].any()
                    and bool((np.diff(lengths) >= -1).all())
                )
            case FindAnswer():
                return len(answer.found) == len(sent["grams"]) and all(
                    hit.n_documents <= hit.n_places <= hit.count
                    and len(hit.numbers) == len(hit.places) == min(sent["limit"], hit.n_documents)
                    and _are_ascending(hit.numbers, n, out)
                    for hit in answer.found
                )
            case DocumentsAnswer():
                return len(answer.documents) == len(sent["numbers"])
            case IdsAnswer():
                return len(answer.numbers) == len(sent["ids"]) and all(
                    _are_ascending(numbers, n, out) for numbers in answer.numbers
                )
            case WordsAnswer():
                n_words = self._told.vocabularies[sent["shard"]]
                return bool(len(answer.words) == len(answer.counts) == n_words)
            case NearAnswer():
                columns = [getattr(answer, field.name) for field in fields(Stretches)]
                return (
                    len({*map(len, columns)}) == 1
                    and max(answer.ends, default=0) <= len(sent["units"])
                    and max(answer.numbers, default=-1) < n
                    and all(map(lt, answer.firsts, answer.ends))
                    and all(map(lt, answer.first_words, answer.end_words))
                )
        return False


def _refusal(url: str, error: Refused) -> Exception:
    if error.status in (401, 403):
        return InputError(
            f"{url}: access denied ({error}); set the environment variable {TOKEN} to your token"
        )
    if error.status == 409:
        return CorpusError(
            f"{url}: its documents changed during the search; run the command again (with another "
            "`out`, or `restart`)"
        )
    return LookupFailed(f"{url} refused the look-up: {error}")


def _read(kind: type[M], content: bytes) -> M:
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        raise ValueError(f"not a valid answer ({first_fault(error)})") from None


def _are_ascending(numbers: Sequence[int], end: int, out: frozenset[int] = frozenset()) -> bool:
    """Whether these are distinct, ascending numbers of documents below `end`, none in `out`."""
    rises = all(a < b for a, b in pairwise(numbers))
    return rises and (not numbers or numbers[-1] < end) and out.isdisjoint(numbers)


def _sendable(words: Sequence[str]) -> list[str]:
    """Words as stored in a corpus: a lone half of a surrogate pair becomes a question mark."""
    return [word.encode(errors="replace").decode() for word in words]
