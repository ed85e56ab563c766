"""Opening a served reference: what it contains, and whether this version is compatible."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

from fabula.errors import CorpusError, InputError
from fabula.reference.http_client import LookupServer, Refused, Reply
from fabula.reference.info import About, Age
from fabula.reference.search import MAX_PLACES
from fabula.reference.serving import messages
from fabula.reference.serving.client import ServedPart
from fabula.reference.serving.plausibility import TOKEN, are_ascending, read_answer, refusal
from fabula.text import TOKENISER, TextSettings

__all__ = ["ask_held_out", "open_served"]

_REFUSALS = frozenset({400, 401, 403, 404, 405, 409, 413, 422})
_MAX_NUMBERS = 2**31
"""Maximum number of documents of a reference; larger numbers are rejected."""


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

    `token`: by default that of the environment's FABULA_REFERENCE_TOKEN. `timeout_s`: the timeout
    of each attempt; the others as for `LookupServer`. Raises `InputError` if access is denied or it
    is not such a service, `CorpusError` if this version is not compatible, and `LookupFailed` if
    there is no response.
    """
    server = _server(
        url,
        token,
        n_parallel=n_parallel,
        max_retries=max_retries,
        timeout_s=timeout_s,
        backoff_s=backoff_s,
    )
    try:
        told = _ask_about(server, url)
        return _about(told), ServedPart(server, told)
    except BaseException:
        server.close()
        raise


def ask_held_out(
    url: str, *, max_retries: int = 5, timeout_s: float = 120, backoff_s: float = 1.0
) -> list[dict[str, object]]:
    """The scores of the documents that the service serves against the rest of them.

    Rows as in `held_out.jsonl`; empty if they were not measured, or for an earlier version of the
    service. Raises as `open_served` does.
    """

    def fault(reply: Reply) -> str | None:
        told = read_answer(messages.HeldOutAnswer, reply)
        return told if isinstance(told, str) else None

    server = _server(
        url, None, n_parallel=1, max_retries=max_retries, timeout_s=timeout_s, backoff_s=backoff_s
    )
    try:
        reply = server.ask(None, fault, threading.Event(), path="v1/held-out")
    except Refused as error:
        if error.status == 404:
            return []
        raise refusal(url, error) from error
    finally:
        server.close()
    return messages.HeldOutAnswer.model_validate(reply).groups


def _server(url: str, token: str | None, **options: Any) -> LookupServer:
    token = os.environ.get(TOKEN, "").strip() if token is None else token
    if not (token.isascii() and token.isprintable()):
        raise InputError(f"{TOKEN}: a token may contain ASCII letters, digits and punctuation")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return LookupServer(url.rstrip("/") + "/", headers=headers, refusals=_REFUSALS, **options)


def _ask_about(server: LookupServer, url: str) -> messages.About:
    def fault(reply: Reply) -> str | None:
        told = read_answer(messages.About, reply)
        if isinstance(told, str):
            return f"not a reference service: {told}"
        is_right = (
            told.n_numbers <= _MAX_NUMBERS
            and are_ascending(told.removed, told.n_numbers)
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
        raise refusal(url, error) from error
    told = messages.About.model_validate(reply)
    if told.tokeniser != TOKENISER:
        raise CorpusError(
            f"{url}: splits words with {told.tokeniser}, but this version with {TOKENISER}; run "
            "the same version of Fabula on both sides"
        )
    if told.limits.max_places < MAX_PLACES:
        raise CorpusError(
            f"{url}: checks {told.limits.max_places:,} places of an n-gram, but results identical "
            f"to a local corpus need {MAX_PLACES:,}; start the service with "
            f"`--max-places {MAX_PLACES}`"
        )
    return told


def _about(told: messages.About) -> About:
    removed = np.zeros(told.n_numbers, np.bool_)
    removed[told.removed] = True
    return About(
        name=told.name,
        fingerprint=told.fingerprint,
        settings=TextSettings(told.case, told.punct),
        n_documents=told.n_documents,
        n_words=told.n_words,
        written_by=tuple(told.written_by),
        removed=removed,
        age=Age(told.oldest, told.youngest),
    )
