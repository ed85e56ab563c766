"""Checks that the answers of a served reference are plausible."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from fabula.errors import CorpusError, InputError, LookupFailed
from fabula.reference.http_client import Refused, Reply

__all__ = ["TOKEN", "are_ascending", "read_answer", "refusal", "sendable"]

TOKEN = "FABULA_REFERENCE_TOKEN"
"""The environment variable for a token, read by the service and its clients."""

M = TypeVar("M", bound=BaseModel)


def refusal(url: str, error: Refused) -> Exception:
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


def read_answer(kind: type[M], reply: Reply) -> M | str:
    """The parsed answer, or what is wrong with it."""
    try:
        return kind.model_validate(reply)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"][:3])
        return f"not a valid answer ({where}: {first['msg']})"[:200]


def are_ascending(numbers: Sequence[int], end: int, out: frozenset[int] = frozenset()) -> bool:
    """Whether these are distinct, ascending numbers of documents below `end`, none in `out`."""
    rises = all(a < b for a, b in pairwise(numbers))
    return rises and (not numbers or numbers[-1] < end) and out.isdisjoint(numbers)


def sendable(words: Sequence[str]) -> list[str]:
    """Words as stored in a corpus: a lone half of a surrogate pair becomes a question mark."""
    return [word.encode(errors="replace").decode() for word in words]
