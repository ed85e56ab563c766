"""Ask models for texts, one row per text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from fabula.errors import CallFailed, ModelError
from fabula.models.base import Answer
from fabula.models.concurrency import in_turn
from fabula.resume import KeptRows, Row
from fabula.text.framing import unframed
from fabula.text.refusals import is_refusal

T = TypeVar("T")

_MAX_FAILURES = 10


@dataclass(frozen=True, slots=True)
class Written:
    """What a model wrote, or why there is nothing."""

    text: str | None
    missing_reason: str | None
    frame_removed: list[str]
    """Text around the requested one ("Sure! Here's the story:") that was cut off."""


def why_no_text(answer: Answer) -> str | None:
    """Why an answer cannot be used as a text; None if it can."""
    if answer.stop in ("blocked", "too_long"):
        return answer.stop
    if not answer.text.strip():
        return "no_answer"
    return "refused" if is_refusal(answer.text) else None


def read_written(answer: Answer, *, has_title: bool = False) -> Written:
    """The text that was asked for, without what the model said around it.

    With `has_title`, a title at the beginning belongs to the text.
    """
    reason = why_no_text(answer)
    if reason is not None:
        return Written(None, reason, [])
    found = unframed(answer.text, has_title=has_title)
    removed = list(found.removed)
    if not found.text or is_refusal(found.text):
        return Written(None, "refused" if found.text else "no_answer", removed)
    return Written(found.text, None, removed)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A row for a model to make: the fields a kept row must match, and how to make it."""

    expected: Row
    make: Callable[[], Awaitable[Row]]


async def ask_for(
    wanted: Iterable[Wanted],
    rows: KeptRows,
    n_parallel: int,
    meter: Callable[[int], None] = lambda _: None,
) -> list[Row]:
    """A row for each, in order, reusing existing rows.

    A call that failed gives a row without its key, which is not kept. Raises `InputError` if an
    existing row was made from something else, `ModelError` after ten consecutive failures.
    """

    async def ask(one: Wanted) -> Row:
        row = rows.find(one.expected)
        if row is None:
            row = await one.make()
            rows.add(row)
        meter(1)
        return row

    def failed(_: object) -> Row:
        meter(1)
        return dict.fromkeys(rows.kind.fields) | {"missing_reason": "failed"}

    return await in_parallel([partial(ask, one) for one in wanted], n_parallel, failed)


async def in_parallel(
    calls: Iterable[Callable[[], Awaitable[T]]], n_parallel: int, failed: Callable[[CallFailed], T]
) -> list[T]:
    """The results in order; `failed` converts failed calls.

    Raises `ModelError` after ten consecutive failures.
    """
    n_failures = 0

    async def one(call: Callable[[], Awaitable[T]]) -> T:
        nonlocal n_failures
        try:
            result = await call()
        except CallFailed as error:
            n_failures += 1
            if n_failures >= _MAX_FAILURES:
                raise ModelError(
                    f"{n_failures} calls failed in a row, the last one with: {error}; finished "
                    "texts are kept, run the same command again to resume"
                ) from error
            return failed(error)
        n_failures = 0
        return result

    return await in_turn([partial(one, call) for call in calls], n_parallel)
