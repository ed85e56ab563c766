"""Asking models for texts, one row a text, and going on where a run was interrupted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from fabula.errors import CallFailed, InputError, ModelError
from fabula.models import Answer
from fabula.models.concurrency import in_turn
from fabula.store import RowWriter
from fabula.text.framing import unframed
from fabula.text.refusals import is_refusal

__all__ = [
    "WITHHELD",
    "Written",
    "check_same",
    "in_parallel",
    "read_written",
    "resumed_rows",
    "why_no_text",
]

T = TypeVar("T")
_Row = dict[str, Any]

WITHHELD = {
    "no_answer": "the answer is empty",
    "refused": "the model refused; the same command asks again",
    "blocked": "withheld by the provider",
    "too_long": "the prompt is longer than the model's context",
    "failed": "the call failed after all retries",
    "not_converged": "not near the wanted length after all rounds",
}
"""Why a model gave no text, for people."""

_MAX_FAILURES = 10
_ASKED_AGAIN = ("failed", "refused")


@dataclass(frozen=True, slots=True)
class Written:
    """What a model wrote, or why there is nothing."""

    text: str | None
    missing_reason: str | None
    frame_removed: tuple[str, ...] = ()
    """What stood around the text ("Sure! Here's the story:") and was cut off."""


def why_no_text(answer: Answer) -> str | None:
    """The reason why an answer is no text; None where it is one."""
    if answer.stop in ("blocked", "too_long"):
        return answer.stop
    if not answer.text.strip():
        return "no_answer"
    return "refused" if is_refusal(answer.text) else None


def read_written(answer: Answer, *, has_title: bool = False) -> Written:
    """The text that was asked for, without what the model said around it.

    With `has_title` a title at its beginning is of the text.
    """
    reason = why_no_text(answer)
    if reason is not None:
        return Written(None, reason)
    found = unframed(answer.text, has_title=has_title)
    if not found.text or is_refusal(found.text):
        return Written(None, "refused" if found.text else "no_answer", found.removed)
    return Written(found.text, None, found.removed)


def check_same(row: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Raise `InputError` where a row that is there was made from something else."""
    for key, value in expected.items():
        if row.get(key) != value:
            raise InputError(
                f"the row {row['id']!r} of {row['model']} was made with another {key}; choose "
                f"another `out`, or start over with `restart`"
            )


@contextmanager
def resumed_rows(
    path: Path, key: Sequence[str], fields: Sequence[str] = (), *, restart: bool = False
) -> Iterator[
    tuple[dict[tuple[Any, ...], _Row], Callable[[_Row], None], Callable[[Iterable[_Row]], None]]
]:
    """The rows that are there by their key fields, how to add one, and how to put all in order.

    A failed or refused row is asked again. Rows are added as they come; in the end these are put in
    the order that is given, after rows that are not among them. Raises `InputError` where the file
    holds something else, `BusyError` where another writes.
    """

    def key_of(row: _Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in key)

    with RowWriter(path) as file:
        kept: dict[tuple[Any, ...], _Row] = {}
        for number, row in enumerate(file.kept, 1):
            if not all(isinstance(row.get(name), str | int) for name in key) or not (
                row.keys() >= {"missing_reason", *fields}
            ):
                lacking = sorted({*key, *fields, "missing_reason"} - row.keys())
                raise InputError(
                    f"{path}, line {number}: is no row of this command"
                    f"{', it lacks ' + ', '.join(lacking) if lacking else ''}; choose another `out`"
                )
            if row["missing_reason"] not in _ASKED_AGAIN:
                kept[key_of(row)] = row
        if restart:
            kept = {}
            file.clear()
        has_begun = False
        there = dict(kept)
        has_stale = len(kept) < len(file.kept)

        def write(row: _Row) -> None:
            # Until there is something new, the file stays as it was found, also at a restart.
            nonlocal has_begun
            if not has_begun:
                file.begin()
                has_begun = True
            file.write(row)
            there[key_of(row)] = row

        def settle(rows: Iterable[_Row]) -> None:
            ours = {key_of(row): row for row in rows if row.keys() >= {*key}}
            settled = {k: row for k, row in there.items() if k not in ours} | ours
            # What was asked again stands there once, with its new answer.
            if has_begun and (has_stale or list(settled) != list(there)):
                file.replace(settled.values())

        yield kept, write, settle


async def in_parallel(
    calls: Iterable[Callable[[], Awaitable[T]]], n_parallel: int, failed: Callable[[CallFailed], T]
) -> list[T]:
    """The results in order; a failed call gives what `failed` makes of it.

    Raises `ModelError` after ten failures in a row.
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
                    f"{n_failures} calls in a row failed, the last one with: {error}; what was "
                    f"written is kept, the same command goes on"
                ) from error
            return failed(error)
        n_failures = 0
        return result

    return await in_turn([partial(one, call) for call in calls], n_parallel)
