"""Provenance records for files saved from Python: `FILE.provenance.json`, as for commands.

A function of `fabula` records its call: settings, digests of texts and files, the models that
answered. Its result carries that record, and a file saved from it gets a record next to it.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from fabula.provenance import Recording, recording

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Made:
    """How a result was made."""

    call: str
    """`fabula.judge`."""
    settings: dict[str, Any]
    sources: tuple[str, ...]
    """The settings that are files or folders on this machine."""
    noted: Recording


def recorded_call(function: Callable[P, R]) -> Callable[P, R]:
    """A function of `fabula` whose results, and whose output at `out`, get records."""
    signature = inspect.signature(function)
    home = "fabula.detect" if function.__module__.endswith(".detect") else "fabula"

    @wraps(function)
    def called(*args: P.args, **more: P.kwargs) -> R:
        bound = signature.bind(*args, **more)
        bound.apply_defaults()
        given: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            given |= value if name == "settings" else {name: _where(value)}
        with recording() as noted:
            result = function(*args, **more)
        noted.ended_ns = time.time_ns()
        out = given.get("out")
        settings = {name: _plain(value) for name, value in given.items()}
        sources = tuple(dict.fromkeys(_sources(given)))
        made = Made(f"{home}.{function.__name__}", settings, sources, noted)
        if out is not None:
            noted.keep(made.call, settings, {"out": Path(out)}, sources)
        if hasattr(type(result), "made"):
            # The result is frozen; its provenance is not part of it.
            object.__setattr__(result, "_made", made)
        return result

    return called


def recorded_save(method: Callable[P, R]) -> Callable[P, R]:
    """A method that saves a result at the path in its first argument."""

    @wraps(method)
    def save(*args: P.args, **more: P.kwargs) -> R:
        result: Any = args[0]
        path = args[1] if len(args) > 1 else more["path"]
        made: Made | None = result.made
        with recording() as noted:
            saved = method(*args, **more)
        if made is not None:
            noted.models |= made.noted.models
            noted.inputs |= made.noted.inputs
            noted.started_ns, noted.ended_ns = made.noted.started_ns, made.noted.ended_ns
            settings = {**made.settings, "saved_by": method.__name__}
            noted.keep(made.call, settings, {"path": Path(str(path))}, made.sources)
        return saved

    return save


def _where(value: Any) -> Any:
    """For an open reference, its locations."""
    paths = getattr(value, "paths", None)
    return [str(path) for path in paths] if isinstance(paths, list | tuple) else value


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
