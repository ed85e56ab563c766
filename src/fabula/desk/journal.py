"""Text being written and its saved states: nothing that was typed is lost.

writing.json      the text as last typed, the version it is based on, and when
states.jsonl      the saved states, oldest first: one row each
texts/HASH.zst    the text of a state, under the SHA-256 of its UTF-8

A row's `chain` is the SHA-256 of its contents and of the previous `chain`, so that altering,
removing or inserting a row breaks all after it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import zstandard

from fabula.store import dump_json, write_whole
from fabula.text import count_words

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
            elif not states or _age(states[-1]) >= _EVERY:
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
        data = text.encode(errors="replace")
        digest = hashlib.sha256(data).hexdigest()
        with _lock:
            states = self.states()
            if version is None and (not text.strip() or (states and states[-1].text == digest)):
                return
            path = self.folder / "texts" / f"{digest}.zst"
            path.parent.mkdir(exist_ok=True)
            if not path.exists():
                write_whole(path, zstandard.ZstdCompressor().compress(data))
            row = KeptState(_now(), digest, count_words(text), version, "")
            row = replace(row, chain=chained(states[-1].chain if states else "", row))
            lines = "".join(dump_json(asdict(one)) + "\n" for one in (*states, row))
            write_whole(self.folder / "states.jsonl", lines.encode())

    def states(self) -> list[KeptState]:
        """All states, the oldest first; up to the first unreadable row."""
        found: list[KeptState] = []
        try:
            for line in (self.folder / "states.jsonl").read_bytes().splitlines():
                found.append(KeptState(**json.loads(line)))  # noqa: PERF401 (what was read counts)
        except (OSError, ValueError, TypeError, RecursionError):
            pass
        return found

    def text(self, state: KeptState) -> str | None:
        """The text of a state; None if its file is missing or was altered."""
        try:
            data = (self.folder / "texts" / f"{state.text}.zst").read_bytes()
            whole = zstandard.ZstdDecompressor().decompress(data)
        except (OSError, zstandard.ZstdError):
            return None
        return whole.decode() if hashlib.sha256(whole).hexdigest() == state.text else None

    def take_over(self, other: Journal) -> None:
        """Prepend the states of another journal, which is no longer needed, to this one."""
        with _lock:
            other.put_aside()
            for name in ("states.jsonl", "texts"):
                if (other.folder / name).exists():
                    shutil.move(other.folder / name, self.folder / name)


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


def _age(state: KeptState) -> timedelta:
    try:
        return datetime.now(UTC) - datetime.fromisoformat(state.at)
    except (ValueError, TypeError):
        return _EVERY
