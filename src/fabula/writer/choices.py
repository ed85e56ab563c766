"""What a writer decided about findings: dismissed ones, the piece's dictionary, kinds, usefulness.

pieces/0001/dismissed.json   the dismissed findings, each with its place in a text of the piece
pieces/0001/dictionary.txt   words that are never noted as spelling or as a name: a word a line
pieces/0001/choices.json     kinds that were switched on or off, and the words that were offered
told.json                    which of the first findings were useful, by kind; sent nowhere
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from pathlib import Path

from fabula.core.instruments import own_parts
from fabula.core.store import dump_json, write_whole
from fabula.review.findings import BY_WORDS, Place, followed, is_again
from fabula.show.parts import Finding, FindingKey
from fabula.style.dictionary import OwnWords, read_dictionary
from fabula.style.lines import LINE_KINDS
from fabula.writer.drafts import Journal, Piece, Version, read_json, read_object

_TITLES = {
    "passage": "Passage found elsewhere",
    "near": "Reworded passage",
    "point": "Feedback",
} | {kind.id: kind.title for kind in LINE_KINDS.values()}
_lock = threading.RLock()


@dataclass(frozen=True, slots=True)
class ShownKind:
    """A kind of finding as the desk offers it."""

    id: str
    title: str
    right: str
    """How often it is right; empty if that is not known."""
    is_on: bool


@dataclass(frozen=True, slots=True)
class Dismissed:
    """A finding that the writer wants no more of."""

    id: int
    kind: str
    title: str
    words: str
    why: str
    start: int
    end: int
    version: int
    """The version whose text it was in, or after which that text was written."""
    text: str
    """The SHA-256 of that text."""
    is_everywhere: bool
    """Whether every finding of this kind about these words is dismissed."""

    @property
    def finding(self) -> Finding:
        return Finding(self.kind, self.title, self.start, self.end, 0, self.why, self.words)


class Choices:
    """The choices for one piece, in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.dictionary_file = folder / "dictionary.txt"

    @property
    def state(self) -> str:
        """A hash of everything that decides what is shown; empty if nothing was chosen."""
        told = Told(self.folder.parent.parent).of_piece(self.folder.name)
        paths = (
            self.folder / name for name in ("dismissed.json", "dictionary.txt", "choices.json")
        )
        held = [path.read_bytes() if path.exists() else b"" for path in paths]
        held += [dump_json(told).encode()] if told else []
        return hashlib.sha256(b"\0".join(held)).hexdigest()[:16] if any(held) else ""

    def dismissed(self) -> list[Dismissed]:
        """The dismissed findings, the oldest first; rows that cannot be read are skipped."""
        rows, types = read_json(self.folder / "dismissed.json"), {"int": int, "bool": bool}
        typed = {f.name: types.get(str(f.type), str) for f in fields(Dismissed)}
        known = {kind for part in own_parts() for kind in part.findings}
        return [
            Dismissed(**{name: row[name] for name in typed})
            for row in (rows if isinstance(rows, list) else ())
            if isinstance(row, dict)
            and all(type(row.get(name)) is kind for name, kind in typed.items())
            and row["kind"] in known
        ]

    def dismiss(self, finding: Finding, version: int, text: str, *, everywhere: bool) -> None:
        """Dismiss a finding in a text: at its place, or everywhere if it is about a word."""
        with _lock:
            rows = self.dismissed()
            row = Dismissed(
                id=max((row.id for row in rows), default=0) + 1,
                kind=finding.kind,
                title=finding.title,
                words=finding.words,
                why=finding.why,
                start=finding.start,
                end=finding.end,
                version=version,
                text=Journal(self.folder).store(text),
                is_everywhere=everywhere and finding.kind in BY_WORDS,
            )
            self._write_dismissed([*rows, row])

    def take_back(self, number: int) -> Dismissed | None:
        """Show a dismissed finding again; it is returned, or None if there is none."""
        with _lock:
            rows = self.dismissed()
            self._write_dismissed([row for row in rows if row.id != number])
        return next((row for row in rows if row.id == number), None)

    def _write_dismissed(self, rows: Iterable[Dismissed]) -> None:
        data = dump_json(list(map(asdict, rows))).encode(errors="replace")
        write_whole(self.folder / "dismissed.json", data)

    def dictionary(self) -> list[str]:
        """The words of the piece's dictionary, as the writer spelt them."""
        if not self.dictionary_file.exists():
            return []
        lines = self.dictionary_file.read_text(encoding="utf-8", errors="replace").splitlines()
        return [word for line in lines if (word := line.strip())]

    def write_dictionary(self, words: Iterable[str]) -> None:
        """Replace the dictionary; a word counts once, whatever its case."""
        once = {word.casefold(): word for line in words if (word := " ".join(line.split()))}
        text = "".join(f"{once[key]}\n" for key in sorted(once))
        write_whole(self.dictionary_file, text.encode(errors="replace"))

    def folded_words(self) -> frozenset[str]:
        return read_dictionary(self.dictionary_file if self.dictionary_file.exists() else None)

    def offered(self, own: OwnWords) -> OwnWords:
        """Those of a text's own words that were not offered before and are in no dictionary."""
        offered = read_object(self.folder / "choices.json").get("offered")
        known = {*map(str.casefold, map(str, offered if isinstance(offered, list) else ()))}
        known |= self.folded_words()

        def fresh(words: Sequence[str]) -> tuple[str, ...]:
            return tuple(word for word in words if word.casefold() not in known)

        return OwnWords(fresh(own.names), fresh(own.words))

    def note_offered(self, words: Sequence[str], chosen: Sequence[str]) -> None:
        """These words were offered: add those that were chosen, and offer none of them again."""
        with _lock:
            self.write_dictionary([*self.dictionary(), *chosen])
            content = read_object(self.folder / "choices.json")
            before = content.get("offered")
            offered = {*words, *map(str, before if isinstance(before, list) else ())}
            self._write_choices(content | {"offered": sorted(offered)})

    def kinds(self) -> list[ShownKind]:
        """All kinds of findings, the most important first, and whether each is shown."""
        switched = read_object(self.folder / "choices.json").get("kinds")
        switched = switched if isinstance(switched, dict) else {}
        kinds = []
        for part in own_parts():
            for kind in part.findings:
                line = LINE_KINDS.get(kind)
                is_on = line is None or line.is_on
                is_on = switched[kind] if isinstance(switched.get(kind), bool) else is_on
                title = _TITLES.get(kind, kind.capitalize())
                kinds.append(ShownKind(kind, title, line.shown if line else "", is_on))
        return kinds

    def line_kinds(self) -> tuple[list[str], list[str]]:
        """The kinds of notes on lines that are not shown, and those that are."""
        kinds = [kind for kind in self.kinds() if kind.id in LINE_KINDS]
        off = [kind.id for kind in kinds if not kind.is_on]
        return off, [kind.id for kind in kinds if kind.is_on]

    def switch(self, on: Iterable[str]) -> None:
        """Show findings of these kinds, and of no others."""
        with _lock:
            chosen, content = set(on), read_object(self.folder / "choices.json")
            kinds = {kind.id: kind.id in chosen for kind in self.kinds()}
            self._write_choices(content | {"kinds": kinds})

    def _write_choices(self, content: Mapping[str, object]) -> None:
        data = dump_json(content).encode(errors="replace")
        write_whole(self.folder / "choices.json", data)

    def hidden(
        self, piece: Piece, version: Version, findings: Sequence[Finding], text: str | None = None
    ) -> set[FindingKey]:
        """Those of a version's findings that are not shown: dismissed, or of a kind that is off.

        With `text`, of the findings in that text, which was written after the version.
        """
        off = {kind.id for kind in self.kinds() if not kind.is_on}
        hidden = {finding.key for finding in findings if finding.kind in off}
        rows = self.dismissed()
        everywhere = {(row.kind, row.words.casefold()) for row in rows if row.is_everywhere}
        hidden |= {f.key for f in findings if (f.kind, f.words.casefold()) in everywhere}
        groups: dict[tuple[str, int], list[Dismissed]] = {}
        for row in rows:
            if not row.is_everywhere:
                groups.setdefault((row.text, row.version), []).append(row)
        for (digest, number), here in groups.items():
            base = Journal(self.folder).text_of(digest)
            if base is None:
                continue
            between = [
                other.text for other in piece.versions if number < other.number < version.number
            ]
            steps = [base, *between, version.text, *(() if text is None else (text,))]
            if text is not None and number >= version.number:
                # Nothing is known to be between them.
                steps = [base, text]
            places = _followed([(row.start, row.end) for row in here], steps)
            for row, place in zip(here, places, strict=True):
                hidden |= {f.key for f in findings if is_again(row.finding, place, f)}
        return hidden


def _followed(places: list[Place], texts: Sequence[str]) -> list[Place | None]:
    """The places in the last of these texts; None for one that is gone on the way."""
    now: list[Place | None] = list(places)
    for before, after in pairwise(texts):
        live = [k for k, place in enumerate(now) if place is not None]
        moved = followed([place for place in now if place is not None], before, after)
        for k, place in zip(live, moved, strict=True):
            now[k] = place
    return now


class Told:
    """Which of the first findings were useful, on this desk."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "told.json"

    def rows(self) -> dict[str, tuple[str, bool]]:
        """The kind of each marked finding and whether it was useful, by piece and a hash."""
        return {
            key: (row["kind"], row["is_useful"])
            for key, row in read_object(self.path).items()
            if isinstance(row, dict)
            and isinstance(row.get("kind"), str)
            and isinstance(row.get("is_useful"), bool)
        }

    def of_piece(self, piece: str) -> dict[str, bool]:
        return {
            key: useful for key, (_, useful) in self.rows().items() if key.startswith(f"{piece}/")
        }

    def mark(self, piece: str, kind: str, words: str, *, is_useful: bool | None) -> None:
        """Keep a mark, which replaces an earlier one; None takes away that it was not useful."""
        with _lock:
            rows, key = self.rows(), told_key(piece, kind, words)
            if is_useful is not None:
                rows[key] = kind, is_useful
            elif rows.get(key) == (kind, False):
                del rows[key]
            content = {key: {"kind": kind, "is_useful": good} for key, (kind, good) in rows.items()}
            write_whole(self.path, dump_json(content).encode())

    def counts(self) -> list[tuple[str, int, int]]:
        """For each kind its title, how many were useful, and how many were marked."""
        marked = Counter(kind for kind, _ in self.rows().values())
        useful = Counter(kind for kind, is_useful in self.rows().values() if is_useful)
        return [(_TITLES.get(kind, kind), useful[kind], n) for kind, n in marked.most_common()]


def told_key(piece: str, kind: str, words: str) -> str:
    digest = hashlib.sha256(f"{kind}\n{words.casefold()}".encode(errors="replace")).hexdigest()
    return f"{piece}/{digest[:16]}"
