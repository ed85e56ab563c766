"""User errors as Inspect AI shows them: a message, without a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from inspect_ai._util.error import PrerequisiteError
from rich.markup import escape

from fabula.errors import FabulaError


@contextmanager
def in_a_sentence() -> Iterator[None]:
    """Raise `FabulaError`s as the only kind of error that Inspect prints as a bare message."""
    try:
        yield
    except FabulaError as error:
        raise PrerequisiteError(escape(str(error))) from error
