"""Every kind of file that Fabula writes and reads again: its version, and what becomes of others.

A file, or each of its rows, says the version of its format in a field. One that says none is of
version 1: that is how each kind began. What a newer Fabula wrote may mean other things and is
refused; an older one is read, or refused with the command that makes it again.

A kind gets the next version when what one of its fields means changes, or when a reader of the
version before would read it wrongly. Its files in `tests/golden/formats/` stay there for ever.

A study's database counts its own versions (`studies/migrations/`); rubrics and studies' files are
written by people, and what they hold that is not known is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fabula import __version__
from fabula.errors import CorpusError, FabulaError, InputError
from fabula.types import newer_version

__all__ = [
    "CASES",
    "DESK",
    "DETECTORS",
    "FORMATS",
    "NETWORK",
    "PASSAGES",
    "PHRASES",
    "PROVENANCE",
    "REFERENCE",
    "ROWS",
    "RUN",
    "TRAINING",
    "Format",
]


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file, the version that is written, and the oldest that is read."""

    kind: str
    """For people, as it stands after "holds": `a reference corpus`."""
    version: int
    remedy: str
    """How to make an older one again, or what to do instead."""
    oldest: int = 1
    field: str = "format"
    error: type[FabulaError] = InputError

    @property
    def mark(self) -> dict[str, int]:
        """What a file says of its version."""
        return {self.field: self.version}

    def check(self, said: Mapping[str, Any], where: object, *, replaces: bool = False) -> int:
        """The version that a file's head or row says. Raises `error` where it is not read.

        A row's signature tells too which Fabula wrote it. replaces: an older one may go, since a
        new one is about to take its place.
        """
        found, writer = said.get(self.field, 1), newer_version(said.get("signature"))
        if isinstance(found, bool) or not isinstance(found, int) or found < 1:
            raise self.error(
                f"{where}: damaged (its `{self.field}` is {found!r}, not a version); {self.remedy}"
            )
        if found > self.version or writer is not None:
            raise self.error(
                f"{where}: written by {f'version {writer}' if writer else 'a newer version'} of "
                f"Fabula ({self.kind} of format {found}), and this is {__version__}, which reads "
                f"format {self.version}; use that version, or {self.remedy}"
            )
        if found < self.oldest and not replaces:
            raise self.error(
                f"{where}: written by an earlier version of Fabula ({self.kind} of format "
                f"{found}), and this is {__version__}, which reads format {self.oldest}; "
                f"{self.remedy}"
            )
        return found


_TRAIN = "train again with `fabula continuation train`"

ROWS = Format("rows", 1, "name another file", field="fabula_format")
"""Each row of every file of rows: scores, answers, measurements, trust, groups and all others."""
RUN = Format("a judge's run", 1, "choose another `out`")
"""Its `run.json`; answers and measurements are rows."""
REFERENCE = Format(
    "a reference corpus", 2, "build it again with `fabula reference build`", 2, error=CorpusError
)
PASSAGES = Format(
    "passages of a corpus", 1, "delete that folder and run `fabula reference passages`",
    error=CorpusError,
)  # fmt: skip
DETECTORS = Format("detectors", 2, "calibrate again with `fabula detect calibrate --out`", 2)
PHRASES = Format(
    "phrases of a group", 1, "write it again with `fabula groups phrases --out`",
    field="fabula_phrases",
)  # fmt: skip
TRAINING = Format("a training corpus", 2, _TRAIN, 2)
CASES = Format("an index of cases", 1, _TRAIN, error=CorpusError)
NETWORK = Format("a recurrent network", 1, _TRAIN, error=CorpusError)
PROVENANCE = Format("a record of how a result was made", 1, "make the result again")
DESK = Format("the desk's drafts", 1, "name another folder with `dir`")

FORMATS = (
    ROWS, RUN, REFERENCE, PASSAGES, DETECTORS, PHRASES, TRAINING, CASES, NETWORK, DESK, PROVENANCE,
)  # fmt: skip
