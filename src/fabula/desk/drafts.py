"""The drafts on the desk: one folder per piece and per version, in plain files.

desk.json                   the version of this format
pieces/0001/piece.json      {"title": ...}
pieces/0001/1/draft.txt     the version as it was given
pieces/0001/1/asked.json    how it was to be measured
pieces/0001/1/report.html   the report so far
pieces/0001/1/place.html    the same, with room for the desk's bar
pieces/0001/1/found.json    the numbers and the findings, for comparing

Text being written is stored next to it (`journal.py`); before a piece has a version, in new/.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fabula.desk.journal import Journal, Writing
from fabula.errors import InputError
from fabula.formats import DESK
from fabula.review.finding_changes import Noted, noted_of_rows
from fabula.store import dump_json, write_whole

MAX_TITLE_CHARS = 120
_OF_A_NUMBER = {"key", "title", "form", "value", "signature"}


@dataclass(frozen=True, slots=True)
class Version:
    """One state of a piece."""

    piece: str
    number: int
    folder: Path

    @property
    def text(self) -> str:
        return (self.folder / "draft.txt").read_bytes().decode(errors="surrogatepass")

    @property
    def asked(self) -> dict[str, Any]:
        return read_object(self.folder / "asked.json")

    @property
    def found(self) -> dict[str, Any]:
        """Its numbers; empty until there are any."""
        found = read_object(self.folder / "found.json")
        numbers = found.get("numbers")
        given = numbers if isinstance(numbers, list) else []
        whole = [n for n in given if isinstance(n, dict) and n.keys() >= _OF_A_NUMBER]
        return found | {"numbers": whole} if found else {}

    @property
    def findings(self) -> list[Noted]:
        return noted_of_rows(self.found.get("findings"))

    @property
    def signatures(self) -> dict[str, str]:
        """The signatures that determined the findings of each instrument that ran."""
        signed = self.found.get("signatures")
        return {str(k): str(v) for k, v in signed.items()} if isinstance(signed, dict) else {}

    def keep(self, name: str, data: bytes) -> None:
        write_whole(self.folder / name, data)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of writing with its versions, the oldest first."""

    id: str
    title: str
    versions: tuple[Version, ...]

    @property
    def last(self) -> Version:
        return self.versions[-1]


class Drafts:
    """All pieces in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "pieces"
        self.new = Journal(folder / "new")
        """Text being written before it becomes a piece."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            # Drafts are private.
            self.folder.chmod(0o700)
            mark = folder / "desk.json"
            DESK.check(read_object(mark), mark)
            if not mark.exists():
                write_whole(mark, dump_json(DESK.mark).encode())
        except OSError as error:
            raise InputError(
                f"{folder}: cannot store drafts there ({error.strerror}); choose another folder "
                "with `dir`"
            ) from error

    def pieces(self) -> list[Piece]:
        """Pieces by last edit, the newest first."""
        found = [self._piece(path) for path in self.folder.iterdir() if path.name.isdecimal()]

        def edited(piece: Piece) -> tuple[str, str]:
            return str(piece.last.asked.get("made", "")), piece.id

        return sorted(filter(None, found), key=edited, reverse=True)

    def piece(self, id_: str) -> Piece | None:
        """None if there is no such piece."""
        return self._piece(self.folder / id_) if id_.isdecimal() and len(id_) < 12 else None

    def journal(self, piece: str) -> Journal:
        """Text being written for a piece, and its saved states."""
        return Journal(self.folder / piece)

    def unmeasured(self, version: Version) -> Writing | None:
        """What is being written after a version; None if that is the version itself."""
        writing = self.journal(version.piece).writing()
        return None if writing is None or writing.text == version.text else writing

    def add(
        self, title: str, text: str, asked: Mapping[str, Any], *, is_written: bool = False
    ) -> Version:
        """A new piece with its first version; `is_written`: on the desk, as saved in `new`."""
        taken = [int(path.name) for path in self.folder.iterdir() if path.name.isdecimal()]
        # Numbers are never reused: leftovers of a removed piece must not belong to another.
        last = read_json(self.folder / "last.json")
        number = max([*taken, last if isinstance(last, int) else 0]) + 1
        write_whole(self.folder / "last.json", str(number).encode())
        folder = self.folder / f"{number:04d}"
        folder.mkdir()
        shown = " ".join(title.split())[:MAX_TITLE_CHARS] or "Untitled"
        write_whole(folder / "piece.json", dump_json({"title": shown}).encode(errors="replace"))
        if is_written:
            Journal(folder).take_over(self.new)
        return self._add(folder, 1, text, asked)

    def add_version(self, piece: Piece, text: str, asked: Mapping[str, Any]) -> Version:
        return self._add(self.folder / piece.id, piece.last.number + 1, text, asked)

    def remove(self, piece: Piece) -> None:
        """Delete a piece with all versions permanently."""
        # First the file that makes it a piece: it is then gone even if another file is being
        # written.
        (self.folder / piece.id / "piece.json").unlink(missing_ok=True)
        shutil.rmtree(self.folder / piece.id, ignore_errors=True)

    def _add(self, folder: Path, number: int, text: str, asked: Mapping[str, Any]) -> Version:
        made = datetime.now(UTC).isoformat(timespec="milliseconds")
        version = Version(folder.name, number, folder / str(number))
        version.folder.mkdir()
        version.keep("draft.txt", text.encode(errors="surrogatepass"))
        version.keep("asked.json", dump_json({**asked, "made": made}).encode(errors="replace"))
        journal = Journal(folder)
        journal.put_aside()
        journal.keep(text, number)
        return version

    def _piece(self, folder: Path) -> Piece | None:
        if not (folder / "piece.json").exists():
            return None
        versions = [
            Version(folder.name, int(path.name), path)
            for path in folder.iterdir()
            if path.name.isdecimal() and (path / "asked.json").exists()
        ]
        if not versions:
            return None
        versions.sort(key=lambda version: version.number)
        title = str(read_object(folder / "piece.json").get("title", "Untitled"))
        return Piece(folder.name, title, tuple(versions))


def place_in(folder: Path) -> str:
    """The report's page with room for the bar; empty until there is one."""
    path = folder / "place.html"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def read_object(path: Path) -> dict[str, Any]:
    """The same of an object; empty for anything else."""
    found = read_json(path)
    return found if isinstance(found, dict) else {}


def read_json(path: Path) -> Any:
    """The content of a file; None if it is missing or damaged."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
