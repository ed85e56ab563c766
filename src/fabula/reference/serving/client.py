"""Client of a served reference over HTTP: replies are checked; failures never count as novelty."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from itertools import pairwise
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from fabula.errors import CorpusError, InputError, LookupFailed
from fabula.reference.backend import ServerAway
from fabula.reference.http_client import LookupServer, Refused, Reply
from fabula.reference.info import About, Age
from fabula.reference.part_walk import ShardWords, Stretches, Walk
from fabula.reference.parts import Found
from fabula.reference.serving import messages
from fabula.reference.serving.messages import MAX_EXCLUDED, MAX_GRAMS, MAX_NAMED, TOKEN
from fabula.text import TOKENISER, TextSettings
from fabula.types import Document

M = TypeVar("M", bound=BaseModel)

_REFUSALS = frozenset({400, 401, 403, 404, 405, 409, 413, 422})
_MAX_NUMBERS = 2**31
"""Maximum number of documents of a reference; larger numbers are rejected."""
_N_FAILED_IN_A_ROW = 3


_first_host: list[str] = []
"""The only host that has been given a token without one, if any."""


def _token_for(url: str) -> str:
    """The token in the environment for the host of an address; empty without one.

    TOKEN@HOST (or HOST:PORT; several separated by spaces) goes to that host only. A token that
    names no host goes to the first host that is asked: a second one would receive what was given
    for the first. Raises `InputError` there.
    """
    parts = urlsplit(url)
    tokens = os.environ.get(TOKEN, "").split()
    named = dict(one.rpartition("@")[::-2] for one in tokens if "@" in one)
    for host in (parts.netloc.rpartition("@")[2], parts.hostname or ""):
        if host in named:
            return named[host]
    bare = [one for one in tokens if "@" not in one]
    if not bare:
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
    url: str,
    *,
    n_parallel: int = 8,
    max_retries: int = 5,
    timeout_s: float = 120,
    backoff_s: float = 1.0,
    token: str | None = None,
) -> tuple[About, ServedPart]:
    """Connect to the service at `url`; returns what it serves, and its client.

    `token`: by default the environment's for this host (`_token_for`). `timeout_s`: the timeout of
    each attempt; the others as for `LookupServer`. Raises `InputError` if access is denied or it
    is not such a service, `CorpusError` if this version is not compatible, and `LookupFailed` if
    there is no response.
    """
    token = _token_for(url) if token is None else token
    if not (token.isascii() and token.isprintable()):
        raise InputError(f"{TOKEN}: a token may contain ASCII letters, digits and punctuation")
    server = LookupServer(
        url.rstrip("/") + "/",
        n_parallel=n_parallel,
        max_retries=max_retries,
        timeout_s=timeout_s,
        backoff_s=backoff_s,
        headers={"Authorization": f"Bearer {token}"} if token else {},
        refusals=_REFUSALS,
    )
    try:
        told = _ask_about(server, url)
    except BaseException:
        server.close()
        raise
    removed = np.zeros(told.n_numbers, np.bool_)
    removed[told.removed] = True
    about = About(
        name=told.name,
        fingerprint=told.fingerprint,
        settings=TextSettings(told.case, told.punct),
        n_documents=told.n_documents,
        n_words=told.n_words,
        written_by=tuple(told.written_by),
        removed=removed,
        age=Age(told.oldest, told.youngest),
    )
    return about, ServedPart(server, told)


class ServedPart:
    """The shards behind a service, as one part of a reference.

    Every method raises `LookupFailed` if no valid answer was received in all attempts, `ServerAway`
    after three such failures in a row, and `CorpusError` if the service now serves other documents.
    """

    def __init__(self, server: LookupServer, told: messages.About) -> None:
        self.n_documents = told.n_numbers
        self.held_out = told.held_out
        self._server, self._told = server, told
        self._removed = frozenset(told.removed)
        self._stop = threading.Event()
        self._n_failed = 0

    def close(self) -> None:
        self._stop.set()
        self._server.close()

    def match(
        self,
        words: Sequence[str],
        places: NDArray[np.int32],
        *,
        exclude: Sequence[int] = (),
        n_threads: int = 1,
    ) -> NDArray[np.int32]:
        """As in every part; input longer than a request is sent in pieces.

        A match that reaches the end of a piece is requested again from its start.
        """
        longest = np.zeros(len(places), np.int32)
        out = self._excluded(exclude)
        # For a text without words there is nothing to request.
        begin = 0 if places.any() else len(places)
        while begin < len(places):
            end = min(len(places), begin + self._told.limits.max_words)
            body = self._match_body(words, places[begin:end], out)
            while len(body) > self._told.limits.max_body_bytes and end - begin > 1:
                end = begin + (end - begin) // 2
                body = self._match_body(words, places[begin:end], out)
            found = self._match(body, places[begin:end])
            n_sure = end - begin
            if end < len(places) and places[end]:
                reaching = np.flatnonzero(np.arange(begin, end) + found == end)
                n_sure = int(reaching[0]) if len(reaching) else n_sure
            if not n_sure:
                raise LookupFailed(
                    f"{self._server.url}: {end - begin:,} consecutive words occur in the "
                    "reference, more than the service accepts in one request; start the service "
                    "with higher limits"
                )
            longest[begin : begin + n_sure] = found[:n_sure]
            begin += n_sure
        return longest

    def find(
        self,
        grams: Sequence[Sequence[str]],
        *,
        limit: int,
        max_places: int,
        exclude: Sequence[int] = (),
    ) -> list[Found]:
        limit = min(limit, self.n_documents)
        n_most = max(1, min(MAX_GRAMS, MAX_NAMED // max(1, limit)))
        how = {"limit": limit, "max_places": max_places, "exclude": self._excluded(exclude)}
        out = self._removed.union(exclude)
        limits = self._told.limits

        def fault(found: Sequence[messages.FoundAnswer], n: int) -> str | None:
            is_right = len(found) == n and all(
                one.n_documents <= one.n_places <= one.count
                and len(one.numbers) == len(one.places) == min(limit, one.n_documents)
                and _are_ascending(one.numbers, self.n_documents, out)
                for one in found
            )
            return None if is_right else "places that no reference can have"

        def ask(some: Sequence[Sequence[str]]) -> list[Found]:
            body = self._body(messages.FindAsked, grams=[_sendable(gram) for gram in some], **how)
            n_words = sum(map(len, some))
            if len(some) > 1 and (len(body) > limits.max_body_bytes or n_words > limits.max_words):
                half = (len(some) + 1) // 2
                return ask(some[:half]) + ask(some[half:])
            answer = self._ask("v1/find", body, messages.FindAnswer,
                               lambda answer: fault(answer.found, len(some)))  # fmt: skip
            return [
                Found(
                    one.count,
                    one.n_places,
                    one.n_documents,
                    np.array(one.numbers, np.int64),
                    np.array(one.places, np.int64),
                )
                for one in answer.found
            ]

        # In the order of the n-grams, however they are distributed.
        return [one for at in range(0, len(grams), n_most) for one in ask(grams[at : at + n_most])]

    def documents(self, numbers: Sequence[int]) -> list[Document]:
        n_most, found = self._told.limits.max_documents, list[Document]()
        for at in range(0, len(numbers), n_most):
            some = list(numbers[at : at + n_most])
            answer = self._ask(
                "v1/documents",
                self._body(messages.DocumentsAsked, numbers=some),
                messages.DocumentsAnswer,
                _counted(len(some), "documents"),
            )
            found += (
                Document(one.id, one.text, one.author, one.prompt_id, one.meta)
                for one in answer.documents
            )
        return found

    def numbers_of(self, ids: Sequence[str]) -> list[list[int]]:
        found: list[list[int]] = []
        for at in range(0, len(ids), MAX_EXCLUDED):
            some = _sendable(ids[at : at + MAX_EXCLUDED])
            answer = self._ask(
                "v1/ids",
                self._body(messages.IdsAsked, ids=some),
                messages.IdsAnswer,
                _counted(len(some), "numbers"),
            )
            if not all(_are_ascending(n, self.n_documents, self._removed) for n in answer.numbers):
                raise LookupFailed(f"{self._server.url}: invalid document numbers")
            found += answer.numbers
        return found

    def walks(self) -> ServedWalks:
        return ServedWalks(self._words(), self._walk)

    def _words(self) -> list[ShardWords]:
        """The words of all shards, which are fetched once."""
        found = []
        for shard, n in enumerate(self._told.vocabularies):
            words: list[str] = []
            counts: list[int] = []
            while len(words) < n:
                n_new = min(n - len(words), self._told.limits.max_words)
                answer = self._ask(
                    "v1/words",
                    self._body(messages.WordsAsked, shard=shard, first=len(words) + 1),
                    messages.WordsAnswer,
                    _counted(n_new, "words", "counts"),
                )
                words += answer.words
                counts += answer.counts
            found.append(ShardWords(words, np.array(counts, np.int64)))
        return found

    def _walk(self, shard: int, walk: Walk, exclude: list[int]) -> Stretches:
        def fault(answer: messages.NearAnswer) -> str | None:
            columns = [getattr(answer, field.name) for field in fields(Stretches)]
            is_right = len({*map(len, columns)}) == 1 and (
                max(answer.ends, default=0) <= len(walk.units)
                and max(answer.numbers, default=-1) < self.n_documents
                and all(a < b for a, b in zip(answer.firsts, answer.ends, strict=True))
                and all(a < b for a, b in zip(answer.first_words, answer.end_words, strict=True))
            )
            return None if is_right else "stretches that no text can have"

        names = [field.name for field in fields(Walk) if field.name != "terms"]
        body = self._body(
            messages.NearAsked,
            shard=shard,
            **{name: getattr(walk, name).tolist() for name in names},
            terms=asdict(walk.terms),
            exclude=self._excluded(exclude),
        )
        answer = self._ask("v1/near", body, messages.NearAnswer, fault)
        return Stretches(
            *(np.array(getattr(answer, field.name), np.int64) for field in fields(Stretches))
        )

    def _match_body(
        self, words: Sequence[str], places: NDArray[np.int32], exclude: list[int]
    ) -> bytes:
        used, renumbered = np.unique(places, return_inverse=True)
        # 0 is a gap and remains 0; the others are counted from 1.
        shift = 0 if len(used) and used[0] == 0 else 1
        known = _sendable([words[k - 1] for k in used.tolist() if k])
        return self._body(
            messages.MatchAsked, words=known, places=(renumbered + shift).tolist(), exclude=exclude
        )

    def _match(self, body: bytes, places: NDArray[np.int32]) -> NDArray[np.int32]:
        # The maximum extent of a match: up to the next gap.
        n = len(places)
        gaps = np.where(places == 0, np.arange(n), n)
        room = np.minimum.accumulate(gaps[::-1])[::-1] - np.arange(n)

        def fault(answer: messages.MatchAnswer) -> str | None:
            if len(answer.lengths) != n:
                return f"{len(answer.lengths)} lengths for {n} words"
            lengths = np.array(answer.lengths, np.int64)
            is_short = bool((lengths > room).any())
            # Every part of an n-gram that occurs must occur too.
            falls = bool((lengths[1:] < lengths[:-1] - 1).any())
            return "lengths that no text can have" if is_short or falls else None

        return np.array(self._ask("v1/match", body, messages.MatchAnswer, fault).lengths, np.int32)

    def _excluded(self, exclude: Sequence[int]) -> list[int]:
        if len(exclude) > MAX_EXCLUDED:
            raise InputError(
                f"{self._server.url}: excludes at most {MAX_EXCLUDED:,} documents, not "
                f"{len(exclude):,}; use the folder of the corpus"
            )
        return [int(number) for number in exclude]

    def _body(self, kind: type[BaseModel], **asked: Any) -> bytes:
        return kind.model_construct(state=self._told.state, **asked).model_dump_json().encode()

    def _ask(self, path: str, body: bytes, kind: type[M], fault_in: Callable[[M], str | None]) -> M:
        """The service's answer about the documents as they were when it was opened."""
        answers: list[M] = []

        def fault(reply: Reply) -> str | None:
            answer = _read(kind, reply)
            if isinstance(answer, str):
                return answer
            if getattr(answer, "state", None) != self._told.state:
                return "an answer about other documents"
            answers.append(answer)
            return fault_in(answer)

        try:
            self._server.ask(body, fault, self._stop, path=path)
        except (Refused, LookupFailed) as error:
            raise self._failed(error) from error
        self._n_failed = 0
        return answers[-1]

    def _failed(self, error: Refused | LookupFailed) -> Exception:
        """The error to raise: `ServerAway` if it is the third failure in a row."""
        told = _refusal(self._server.url, error) if isinstance(error, Refused) else error
        self._n_failed += isinstance(told, LookupFailed)
        if not isinstance(told, LookupFailed) or self._n_failed < _N_FAILED_IN_A_ROW:
            return told
        return ServerAway(
            f"the server is not responding ({told}); finished scores are kept, and the same "
            "command with `out` resumes"
        )


class ServedWalks:
    """The shards behind a service, for near matches."""

    def __init__(
        self, vocabularies: Sequence[ShardWords], walk: Callable[[int, Walk, list[int]], Stretches]
    ) -> None:
        self.vocabularies = vocabularies
        self._walk = walk

    def walk(self, walks: Sequence[Walk], *, exclude: Sequence[int] = ()) -> list[Stretches]:
        return [self._walk(k, walk, list(exclude)) for k, walk in enumerate(walks)]


def _ask_about(server: LookupServer, url: str) -> messages.About:
    def fault(reply: Reply) -> str | None:
        told = _read(messages.About, reply)
        if isinstance(told, str):
            return f"not a reference service of this version: {told}"
        is_right = (
            told.n_numbers <= _MAX_NUMBERS
            and _are_ascending(told.removed, told.n_numbers)
            and told.n_numbers == told.n_documents + len(told.removed)
        )
        return None if is_right else "document numbers that no reference can have"

    try:
        reply = server.ask(None, fault, threading.Event(), path="v1/about")
    except Refused as error:
        if error.status == 404:
            raise InputError(
                f"{url} does not serve a reference; use the address that "
                "`fabula reference serve` prints"
            ) from error
        raise _refusal(url, error) from error
    told = messages.About.model_validate(reply)
    if told.tokeniser != TOKENISER:
        raise CorpusError(
            f"{url}: splits words with {told.tokeniser}, but this version with {TOKENISER}; run "
            "the same version of Fabula on both sides"
        )
    return told


def _refusal(url: str, error: Refused) -> Exception:
    """The error to raise, with advice to the user."""
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


def _read(kind: type[M], reply: Reply) -> M | str:
    """The parsed answer, or what is wrong with it."""
    try:
        return kind.model_validate(reply)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"][:3])
        return f"not a valid answer ({where}: {first['msg']})"[:200]


def _counted(n: int, *names: str) -> Callable[[BaseModel], str | None]:
    """Finds fault with an answer whose lists do not have as many items as were asked for."""

    def fault(answer: BaseModel) -> str | None:
        is_right = all(len(getattr(answer, name)) == n for name in names)
        return None if is_right else f"{names[0]} that were not requested"

    return fault


def _are_ascending(numbers: Sequence[int], end: int, out: frozenset[int] = frozenset()) -> bool:
    """Whether these are distinct, ascending numbers of documents below `end`, none in `out`."""
    rises = all(a < b for a, b in pairwise(numbers))
    return rises and (not numbers or numbers[-1] < end) and out.isdisjoint(numbers)


def _sendable(words: Sequence[str]) -> list[str]:
    """Words as stored in a corpus: a lone half of a surrogate pair becomes a question mark."""
    return [word.encode(errors="replace").decode() for word in words]
