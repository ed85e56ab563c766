"""Provenance records for files saved from Python: `FILE.provenance.json`, as for commands.

A function of `fabula` records its call: settings, digests of texts and files, the models that
answered. Its result carries that record, and a file saved from it gets a record next to it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.provenance import Recording, recording

if TYPE_CHECKING:
    from fabula.jobs.registry import Job
    from fabula.jobs.result import Result


@dataclass(frozen=True, slots=True)
class Made:
    """How a result was made."""

    call: str
    """`fabula.judge`."""
    settings: dict[str, Any]
    sources: tuple[str, ...]
    """The settings that are files or folders on this machine."""
    noted: Recording


@dataclass(slots=True)
class Kept:
    """The result of a recorded call, once it is there."""

    result: Any = None


@contextmanager
def recorded(job: Job, given: dict[str, Any]) -> Iterator[Kept]:
    """Note how the result of a call is made, and write a record beside its output at `out`."""
    kept = Kept()
    with recording() as noted:
        yield kept
    noted.ended_ns = time.time_ns()
    values = {}
    for name, value in given.items():
        # For an open reference, its locations.
        paths = getattr(value, "paths", None)
        values[name] = list(map(str, paths)) if isinstance(paths, list | tuple) else value
    out = values.get("out")
    settings = {name: _plain(value) for name, value in values.items()}
    sources = tuple(dict.fromkeys(_sources(values)))
    made = Made(f"fabula.{job.python}", settings, sources, noted)
    if isinstance(out, str | Path):
        noted.keep(made.call, settings, {"out": Path(out)}, sources)
    # The result is frozen; its provenance is not part of it.
    object.__setattr__(kept.result, "_made", made)


@contextmanager
def saving(result: Result, path: Path) -> Iterator[None]:
    """Write a record beside a file that is saved from a result."""
    made = result.made
    with recording() as noted:
        yield
    if made is not None:
        noted.models |= made.noted.models
        noted.inputs |= made.noted.inputs
        noted.started_ns, noted.ended_ns = made.noted.started_ns, made.noted.ended_ns
        noted.keep(made.call, {**made.settings, "saved": True}, {"path": path}, made.sources)


def _sources(given: dict[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        several = value if isinstance(value, list | tuple) else (value,)
        for one in several:
            if name != "out" and isinstance(one, str | Path) and _is_here(one):
                yield str(one)


def _is_here(source: str | Path) -> bool:
    try:
        return Path(source).exists()
    except (OSError, ValueError):
        return False


def _plain(value: Any) -> Any:
    """A setting as JSON; objects by their type, and texts in memory by their number.

    The inputs include a digest of such texts.
    """
    if value is None or isinstance(value, bool | int | float | str | Path):
        return value
    if isinstance(value, list | tuple):
        if len(value) <= 64 and all(isinstance(one, bool | int | float | str) for one in value):
            return list(value)
        return f"{type(value).__name__} of {len(value):,}"
    made = getattr(value, "made", None)
    if isinstance(made, Made):
        return {"call": made.call, "settings": made.settings}
    name = getattr(value, "__qualname__", type(value).__qualname__)
    return f"{getattr(value, '__module__', '')}.{name}".lstrip(".")
