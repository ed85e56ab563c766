"""The format of every file that Fabula writes and reads: its version, and how others are handled.

A file, or each of its rows, gives the version of its format in a field; without one, the version
is 1, as each format began. Files written by a newer Fabula are refused, since their fields may
mean other things; older ones are read, or refused with the command that recreates them.

A format's version increases when the meaning of a field changes, or when a reader of the previous
version would misread it. Its files in `tests/golden/formats/` are never removed.

A study's database has its own versions (`studies/migrations/`). Rubrics and study files are
written by people; unknown fields in them are errors.
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
    "DIVERSITY",
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
    """A kind of file, the version that is written, and the oldest version that is read."""

    kind: str
    """For messages, as it follows "holds": `a reference corpus`."""
    version: int
    remedy: str
    """How to recreate an older one, or what to do instead."""
    oldest: int = 1
    field: str = "format"
    error: type[FabulaError] = InputError

    @property
    def mark(self) -> dict[str, int]:
        """The version field to write into a file."""
        return {self.field: self.version}

    def check(self, said: Mapping[str, Any], where: object, *, replaces: bool = False) -> int:
        """Return the version given by a file's header or row. Raises `error` if it is not readable.

        A row's signature also says which Fabula wrote it. replaces: accept an older file, since
        a new one is about to replace it.
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
"""Rows of any kind of file: scores, answers, measurements, trust, groups and so on."""
RUN = Format("a judge's run", 1, "choose another `out`")
"""Its `run.json`; answers and measurements are rows."""
REFERENCE = Format(
    "a reference corpus", 2, "build it again with `fabula reference build`", 2, error=CorpusError
)
PASSAGES = Format(
    "passages of a corpus",
    1,
    "delete that folder and run `fabula reference passages`",
    error=CorpusError,
)
DETECTORS = Format("detectors", 2, "calibrate again with `fabula detect calibrate --out`", 2)
DIVERSITY = Format(
    "a result of diversity",
    2,
    "measure it again with `fabula diversity --json`",
    2,
    field="fabula_diversity",
)
PHRASES = Format(
    "phrases of a group",
    1,
    "write it again with `fabula groups phrases --out`",
    field="fabula_phrases",
)
TRAINING = Format("a training corpus", 2, _TRAIN, 2)
CASES = Format("an index of cases", 1, _TRAIN, error=CorpusError)
NETWORK = Format("a recurrent network", 1, _TRAIN, error=CorpusError)
PROVENANCE = Format("a record of how a result was made", 1, "make the result again")
DESK = Format("the desk's drafts", 1, "name another folder with `dir`")

FORMATS = (
    ROWS,
    RUN,
    REFERENCE,
    PASSAGES,
    DETECTORS,
    DIVERSITY,
    PHRASES,
    TRAINING,
    CASES,
    NETWORK,
    DESK,
    PROVENANCE,
)
