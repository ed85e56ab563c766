"""A version's results as they were measured, so that its page can be made again.

They are in review.pickle, for this version of Fabula only; without it the version is measured
again. As all of the desk's folder, the file is only for its owner.
"""

from __future__ import annotations

import io
import pickle
from types import MappingProxyType
from typing import Any, NamedTuple

from fabula.core import __version__
from fabula.core.errors import DAMAGE
from fabula.show.parts import Review
from fabula.writer.drafts import Version

_FILE = "review.pickle"


def store(version: Version, review: Review, *, is_whole: bool) -> None:
    """Keep the results; not if another package's instruments cannot be stored."""
    data = io.BytesIO()
    try:
        _Pickler(data).dump((__version__, is_whole, review))
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
        made_by, is_whole, review = pickle.loads(path.read_bytes())
    except (*DAMAGE, OSError, EOFError, ImportError, pickle.UnpicklingError):
        return None
    return Stored(review, is_whole, made) if made_by == __version__ else None


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        is_frozen = isinstance(value, MappingProxyType)
        return (_frozen, (dict(value),)) if is_frozen else NotImplemented


def _frozen(values: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(values)
