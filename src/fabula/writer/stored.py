"""A version's results as they were measured, so that its page can be made again.

They are in review.pickle, for this version of Fabula only; without it the version is measured
again. A desk's folder may have come from somebody else: only arrays and Fabula's own types are read
from the file, so that it runs nothing.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import is_dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from fabula.core import __version__
from fabula.core.errors import DAMAGE
from fabula.core.instruments import instruments
from fabula.show.parts import Review
from fabula.stats.norms import GroupBook
from fabula.writer.drafts import Version

_FILE = "review.pickle"
_OF_ARRAYS = ("dtype", "ndarray", "scalar", "_reconstruct")


def store(version: Version, review: Review, *, is_whole: bool) -> None:
    """Keep the results; not if another package's instruments cannot be stored."""
    data = io.BytesIO()
    try:
        _Pickler(data).dump((__version__, is_whole, replace(review, instruments=())))
    except (*DAMAGE, pickle.PicklingError):
        (version.folder / _FILE).unlink(missing_ok=True)
    else:
        version.keep(_FILE, data.getvalue())


class Stored(NamedTuple):
    """A version's results."""

    review: Review
    is_whole: bool
    """Whether all parts are there."""
    made: int
    """When the file was written, in nanoseconds."""


def load(version: Version) -> Stored | None:
    """The stored results; None if there are none that can be read."""
    path = version.folder / _FILE
    try:
        made = path.stat().st_mtime_ns
        made_by, is_whole, review = _Unpickler(io.BytesIO(path.read_bytes())).load()
        review = replace(review, instruments=instruments())
    except (*DAMAGE, OSError, EOFError, ImportError, pickle.UnpicklingError):
        return None
    return Stored(review, is_whole, made) if made_by == __version__ else None


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        is_frozen = isinstance(value, MappingProxyType)
        return (_frozen, (dict(value),)) if is_frozen else NotImplemented


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] == "numpy" and name in _OF_ARRAYS:
            return super().find_class(module, name)
        found = super().find_class(module, name) if module.startswith("fabula.") else None
        is_data = isinstance(found, type) and (is_dataclass(found) or issubclass(found, tuple))
        if is_data or found in (GroupBook, _frozen):
            return found
        raise pickle.UnpicklingError(f"{module}.{name} is not a type that results contain")


def _frozen(values: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(values)
