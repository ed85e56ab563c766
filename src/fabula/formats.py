"""The format of every file that Fabula writes and reads, and its version.

A file, or each of its rows, gives the version of its format in a field; without one, the version
is 1. This version of Fabula reads the formats that it writes; others are refused in a sentence with
the command that makes the file again. A format's version increases when the meaning of a field
changes, or when a reader of the previous version would misread it.

Rubrics and study files are written by people; unknown fields in them are errors.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fabula import __version__
from fabula.errors import CorpusError, FabulaError, InputError
from fabula.types import newer_version


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file, and the version of its format."""

    kind: str
    """For messages, as it follows "holds": `a reference corpus`."""
    version: int
    remedy: str
    """How to recreate one of another version, or what to do instead."""
    field: str = "format"
    error: type[FabulaError] = InputError

    @property
    def mark(self) -> dict[str, int]:
        """The version field to write into a file."""
        return {self.field: self.version}

    def check(self, said: Mapping[str, Any], where: object) -> None:
        """Raise `error` if a file's header or row gives another version than this one reads.

        A row's signature also says which Fabula wrote it.
        """
        found, writer = said.get(self.field, 1), newer_version(said.get("signature"))
        if isinstance(found, bool) or not isinstance(found, int) or found < 1:
            raise self.error(
                f"{where}: damaged (its `{self.field}` is {found!r}, not a version); {self.remedy}"
            )
        if found == self.version and writer is None:
            return
        by = f"version {writer}" if writer else "another version"
        raise self.error(
            f"{where}: written by {by} of Fabula ({self.kind} of format {found}), and this is "
            f"{__version__}, which reads format {self.version}; use that version, or {self.remedy}"
        )


CHECKSUM = "fabula_checksum"
"""The last field of a row that holds results: CRC-32 of the line before it."""

CHANGED = (
    f"{{where}}: was changed after Fabula wrote it, as its `{CHECKSUM}` shows; restore it or make "
    "it again, or remove that field to use the row as it is"
)


def was_changed(row: dict[str, Any], line: bytes) -> bool:
    """Remove a row's checksum; whether it shows that the line was changed since it was written."""
    said = row.pop(CHECKSUM, None)
    if said is None:
        return False
    begin, _, end = line.rpartition(b',"%b":' % CHECKSUM.encode())
    return said != f"{zlib.crc32(begin):08x}" or end.strip() != b'"%b"}' % said.encode()


def check_unchanged(row: dict[str, Any], line: bytes, where: object) -> None:
    """Raise `InputError` if a row was changed since it was written; remove its checksum."""
    if was_changed(row, line):
        raise InputError(CHANGED.format(where=where))


_TRAIN = "train again with `fabula continuation train`"

ROWS = Format("rows", 1, "name another file", field="fabula_format")
"""Rows of any kind of file: scores, answers, measurements, trust, groups and so on."""
RUN = Format("a judge's run", 1, "choose another `out`")
"""Its `run.json`; answers and measurements are rows."""
REFERENCE = Format(
    "a reference corpus", 2, "build it again with `fabula reference build`", error=CorpusError
)
DETECTORS = Format("detectors", 2, "calibrate again with `fabula detect calibrate --out`")
PHRASES = Format(
    "phrases of a group", 1, "write it again with `fabula phrases --out`", field="fabula_phrases"
)
TRAINING = Format("a training corpus", 2, _TRAIN)
CASES = Format("an index of cases", 1, _TRAIN, error=CorpusError)
NETWORK = Format("a recurrent network", 1, _TRAIN, error=CorpusError)
PROVENANCE = Format("a record of how a result was made", 1, "make the result again")
DESK = Format("the desk's drafts", 1, "name another folder with `dir`")

FORMATS = (ROWS, RUN, REFERENCE, DETECTORS, PHRASES, TRAINING, CASES, NETWORK, DESK, PROVENANCE)
