"""The drafts on the desk: one folder per piece and per version, in plain files.

desk.json                   the version of this format
pieces/0001/piece.json      {"title": ...}
pieces/0001/1/draft.txt     the version as it was given
pieces/0001/1/draft.docx    the Word file that it was read from, if it was one
pieces/0001/1/form.json     the places of its headings and italics, if any are known
pieces/0001/1/asked.json    how it was to be measured
pieces/0001/1/place.html    the report so far, with room for the desk's bar
pieces/0001/1/found.json    the numbers and the findings that are shown, for comparing
pieces/0001/1/words.json    names and words of its own, to be offered for the dictionary
pieces/0001/1/review.pickle all results, to make the pages again; it may be deleted

Text being written is stored next to it with its saved states, so that nothing that was typed is
lost; before a piece has a version, in new/.

pieces/0001/writing.json    the text as last typed, the version it is based on, and when
pieces/0001/states.jsonl    the saved states, oldest first: one row each
pieces/0001/texts/HASH.zst  the text of a state, under the SHA-256 of its UTF-8

A row's `chain` is the SHA-256 of its contents and of the previous `chain`, so that altering,
removing or inserting a row breaks all after it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import zstandard

from fabula.core.errors import InputError
from fabula.core.store import DESK, dump_json, write_whole
from fabula.jobs.result import picked
from fabula.review.findings import followed, noted_of_rows
from fabula.show.parts import Finding
from fabula.text import count_words

_MAX_TITLE_CHARS = 120
_OF_A_NUMBER = {"key", "title", "form", "value", "signature"}
_EVERY = timedelta(minutes=5)
"""Minimum interval between saved states during writing."""
_LOST_CHARS, _LOST_SHARE = 200, 0.2
"""If this much is deleted at once, the previous text is saved first."""
_DAY_MS = 24 * 3600 * 1000
"""Tolerance for a browser clock that was set back, so that text is still saved."""
_lock = threading.RLock()


@dataclass(frozen=True, slots=True)
class Writing:
    """The text as last typed."""

    text: str
    base: int
    """The version that it is based on; 0 if there is none."""
    saved: str
    """When, in UTC (ISO 8601)."""
    typed: int = 0
    """When, in milliseconds by the browser's clock; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class KeptState:
    """A saved state."""

    at: str
    text: str
    """The SHA-256 of the text, as UTF-8, in hexadecimal."""
    n_words: int
    version: int | None
    """The measured version; None for an intermediate state."""
    chain: str


class Journal:
    """The journal of one piece, in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def writing(self) -> Writing | None:
        """What was typed since the last version; None if nothing was."""
        try:
            held = json.loads((self.folder / "writing.json").read_bytes())
            typed = int(held.get("typed", 0))
            return Writing(str(held["text"]), int(held["base"]), str(held["saved"]), typed)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None

    def save(self, text: str, base: int, typed: int = 0) -> Writing:
        """Save the text as last typed; a request that arrives out of order is ignored."""
        with _lock:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            before, states = self.writing(), self.states()
            if before is not None and 0 < before.typed - typed < _DAY_MS and typed:
                return before
            n_lost = 0 if before is None else len(before.text) - len(text)
            if before is not None and n_lost > max(_LOST_CHARS, _LOST_SHARE * len(before.text)):
                self.keep(before.text)
            else:
                is_due = True
                with suppress(ValueError, TypeError, IndexError):
                    is_due = datetime.now(UTC) - datetime.fromisoformat(states[-1].at) >= _EVERY
                if is_due:
                    self.keep(text)
            writing = Writing(text.encode(errors="replace").decode(), base, _now(), typed)
            write_whole(self.folder / "writing.json", dump_json(asdict(writing)).encode())
            return writing

    def put_aside(self) -> None:
        """Finish writing; the text is saved as a state."""
        with _lock:
            if (writing := self.writing()) is not None:
                self.keep(writing.text)
            (self.folder / "writing.json").unlink(missing_ok=True)

    def keep(self, text: str, version: int | None = None) -> None:
        """Save a state, unless it equals the last one and was not measured."""
        digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()
        with _lock:
            states = self.states()
            if version is None and (not text.strip() or (states and states[-1].text == digest)):
                return
            self.store(text)
            row = KeptState(_now(), digest, count_words(text), version, "")
            row = replace(row, chain=chained(states[-1].chain if states else "", row))
            lines = "".join(dump_json(asdict(state)) + "\n" for state in (*states, row))
            write_whole(self.folder / "states.jsonl", lines.encode())

    def store(self, text: str) -> str:
        """Store a text; returns its name, the SHA-256 of its UTF-8."""
        data = text.encode(errors="replace")
        digest = hashlib.sha256(data).hexdigest()
        path = self.folder / "texts" / f"{digest}.zst"
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            write_whole(path, zstandard.ZstdCompressor().compress(data))
        return digest

    def states(self) -> list[KeptState]:
        """All states, the oldest first; up to the first unreadable row."""
        states: list[KeptState] = []
        with suppress(OSError, ValueError, TypeError, RecursionError):
            for line in (self.folder / "states.jsonl").read_bytes().splitlines():
                states.append(KeptState(**json.loads(line)))  # noqa: PERF401 (what was read counts)
        return states

    def text(self, state: KeptState) -> str | None:
        """The text of a state; None if its file is missing or was altered."""
        return self.text_of(state.text)

    def text_of(self, digest: str) -> str | None:
        """The same of a stored text."""
        try:
            data = (self.folder / "texts" / f"{digest}.zst").read_bytes()
            whole = zstandard.ZstdDecompressor().decompress(data)
        except (OSError, ValueError, zstandard.ZstdError):
            return None
        return whole.decode() if hashlib.sha256(whole).hexdigest() == digest else None


def chained(before: str, state: KeptState) -> str:
    """The hash of a row that follows one with the hash `before`."""
    version = "" if state.version is None else str(state.version)
    row = "\n".join((before, state.at, state.text, str(state.n_words), version))
    return hashlib.sha256(row.encode()).hexdigest()


def shown_time(time: str) -> str:
    """A time for display, in this machine's time zone: `23 Nov 2026, 06:20`."""
    try:
        moment = datetime.fromisoformat(time).astimezone()
    except ValueError:
        return ""
    return f"{moment.day} {moment:%b %Y, %H:%M}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True)
class Form:
    """What the file of a version has besides its text. Places are half-open, in characters."""

    headings: Sequence[tuple[int, int, str]] = ()
    """The start, level and words of each, as a document's `meta["headings"]`."""
    italics: Sequence[tuple[int, int]] = ()
    word: bytes | None = None
    """The file itself, if it is a Word file."""

    def of_next(self, before: str, after: str) -> Form:
        """That of an edited text: its headings and italics are those whose words are still there.

        A heading takes up its line, so words that became part of a longer one are none.
        """
        spans = [(start, start + len(title)) for start, _, title in self.headings]
        places = followed([*spans, *self.italics], before, after)
        headings = []
        for (_, level, title), place in zip(self.headings, places, strict=False):
            if place is not None:
                begin = after.rfind("\n", 0, place[0]) + 1
                line = after[begin:].partition("\n")[0]
                if 0 < len(line.strip()) <= 2 * len(title):
                    begin += len(line) - len(line.lstrip())
                    headings.append((begin, level, line.strip()))
        italics = [place for place in places[len(spans) :] if place is not None]
        return Form(headings, italics, self.word if before == after else None)


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
    def form(self) -> Form:
        """What is known of it; the Word file only if the text was read from it."""
        content, path = read_object(self.folder / "form.json"), self.folder / "draft.docx"
        known: dict[str, list[Any]] = {}
        for name, types in (("headings", [int, int, str]), ("italics", [int, int])):
            rows = content.get(name)
            known[name] = [
                tuple(row)
                for row in (rows if isinstance(rows, list) else ())
                if isinstance(row, list) and list(map(type, row)) == types
            ]
        return Form(**known, word=path.read_bytes() if path.exists() else None)

    @property
    def found(self) -> dict[str, Any]:
        """Its numbers; empty until there are any."""
        content = read_object(self.folder / "found.json")
        numbers = content.get("numbers")
        rows = numbers if isinstance(numbers, list) else []
        whole = [n for n in rows if isinstance(n, dict) and n.keys() >= _OF_A_NUMBER]
        return content | {"numbers": whole} if content else {}

    @property
    def findings(self) -> list[Finding]:
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
        pieces = [piece_in(path) for path in self.folder.iterdir() if path.name.isdecimal()]
        made = {piece.id: str(piece.last.asked.get("made", "")) for piece in pieces if piece}
        return sorted(filter(None, pieces), key=lambda p: (made[p.id], p.id), reverse=True)

    def piece(self, id_: str) -> Piece | None:
        """None if there is no such piece."""
        return piece_in(self.folder / id_) if id_.isdecimal() and len(id_) < 12 else None

    def journal(self, piece: str) -> Journal:
        """Text being written for a piece, and its saved states."""
        return Journal(self.folder / piece)

    def unmeasured(self, version: Version) -> Writing | None:
        """What is being written after a version; None if that is the version itself."""
        writing = self.journal(version.piece).writing()
        return None if writing is None or writing.text == version.text else writing

    def add(
        self,
        title: str,
        text: str,
        asked: Mapping[str, Any],
        form: Form = Form(),
        *,
        is_written: bool = False,
    ) -> Version:
        """A new piece with its first version; `is_written`: on the desk, as saved in `new`."""
        taken = [int(path.name) for path in self.folder.iterdir() if path.name.isdecimal()]
        # Numbers are never reused: leftovers of a removed piece must not belong to another.
        last = read_json(self.folder / "last.json")
        number = max([*taken, last if isinstance(last, int) else 0]) + 1
        write_whole(self.folder / "last.json", str(number).encode())
        folder = self.folder / f"{number:04d}"
        folder.mkdir()
        shown = " ".join(title.split())[:_MAX_TITLE_CHARS] or "Untitled"
        write_whole(folder / "piece.json", dump_json({"title": shown}).encode(errors="replace"))
        if is_written:
            with _lock:
                self.new.put_aside()
                for name in ("states.jsonl", "texts"):
                    if (self.new.folder / name).exists():
                        shutil.move(self.new.folder / name, folder / name)
        return self._add(folder, 1, text, asked, form)

    def add_version(
        self, piece: Piece, text: str, asked: Mapping[str, Any], form: Form | None = None
    ) -> Version:
        """The next version of a piece; without `form`, what is known of the last one is kept."""
        last = piece.last
        form = last.form.of_next(last.text, text) if form is None else form
        return self._add(self.folder / piece.id, last.number + 1, text, asked, form)

    def remove(self, piece: Piece) -> None:
        """Delete a piece with all versions permanently."""
        # First the file that makes it a piece: it is then gone even if another file is being
        # written.
        (self.folder / piece.id / "piece.json").unlink(missing_ok=True)
        shutil.rmtree(self.folder / piece.id, ignore_errors=True)

    def _add(
        self, folder: Path, number: int, text: str, asked: Mapping[str, Any], form: Form
    ) -> Version:
        version = Version(folder.name, number, folder / str(number))
        version.folder.mkdir()
        version.keep("draft.txt", text.encode(errors="surrogatepass"))
        if form.word is not None:
            version.keep("draft.docx", form.word)
        if places := {k: v for k, v in picked(form, "headings", "italics").items() if v}:
            version.keep("form.json", dump_json(places).encode(errors="replace"))
        version.keep("asked.json", dump_json({**asked, "made": _now()}).encode(errors="replace"))
        journal = Journal(folder)
        journal.put_aside()
        journal.keep(text, number)
        return version


def piece_in(folder: Path) -> Piece | None:
    """The piece in a folder; None if there is none."""
    if not (folder / "piece.json").exists():
        return None
    versions = [
        Version(folder.name, int(path.name), path)
        for path in folder.iterdir()
        if path.name.isdecimal() and (path / "asked.json").exists()
    ]
    versions.sort(key=lambda version: version.number)
    title = str(read_object(folder / "piece.json").get("title", "Untitled"))
    return Piece(folder.name, title, tuple(versions)) if versions else None


def place_in(folder: Path) -> str:
    """The report's page with room for the bar; empty until there is one."""
    path = folder / "place.html"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def read_object(path: Path) -> dict[str, Any]:
    """The same of an object; empty for anything else."""
    content = read_json(path)
    return content if isinstance(content, dict) else {}


def read_json(path: Path) -> Any:
    """The content of a file; None if it is missing or damaged."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
