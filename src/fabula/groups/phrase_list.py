"""Phrase lists in files, and where their phrases occur in a text: not a detector.

A list is either written by `fabula phrases --out`, with how often two groups use each
phrase, or a plain JSON list of phrases, or of [phrase, count].
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from fabula.core.errors import DAMAGE, InputError
from fabula.core.instruments import Figure
from fabula.core.store import PHRASES, checksum, read_rows, write_rows
from fabula.core.types import Document, Measurement, Signature, Span
from fabula.show.page import Listed
from fabula.show.parts import Marks, MeasuredPart, Review, TextReview
from fabula.show.sheet import Block, Column, Sheet
from fabula.text import TextSettings

if TYPE_CHECKING:
    from fabula.groups.key_phrases import KeyPhrases

_MONROE = """@article{monroe2008fightin,
  title = {Fightin' Words: Lexical Feature Selection and Evaluation for Identifying the Content of
           Political Conflict},
  author = {Monroe, Burt L. and Colaresi, Michael P. and Quinn, Kevin M.},
  journal = {Political Analysis},
  volume = {16},
  number = {4},
  pages = {372--403},
  year = {2008}
}"""
_MAX_SHOWN = 200
NO_DETECTOR = (
    "This is not a detector. Everybody uses such phrases, and no number of them says who wrote a "
    "text."
)


@dataclass(frozen=True, slots=True)
class ListedPhrase:
    """A phrase, and how often the groups use it, in words; empty if the list does not say so."""

    phrase: str
    said: str = ""


@dataclass(frozen=True, slots=True)
class PhraseList:
    """Phrases that one group uses more than another, or phrases from any list."""

    name: str
    against: str
    """The other group; empty for an external list."""
    n_texts: tuple[int, int] | None
    """Texts of both groups that were compared."""
    date: str
    settings: TextSettings
    phrases: Sequence[ListedPhrase]
    digest: str


def write_key_phrases(path: Path, key_phrases: KeyPhrases, date: str | None = None) -> None:
    """Write a file for `read_phrases`: groups, sizes, signature and date, then the phrases.

    Phrases of both groups are written; the list belongs to A.
    """
    header: dict[str, Any] = {
        **PHRASES.mark,
        "date": date or datetime.now(UTC).date().isoformat(),
        **key_phrases.to_json(),
    }
    phrases = header.pop("phrases")
    write_rows(path, [header, *phrases])


def read_phrases(path: Path) -> PhraseList:
    """Read a phrase file, or a JSON list of phrases or [phrase, count]. Raises `InputError`."""
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text; is this a list of phrases?") from error
    a, b, n_texts, date, settings = path.stem, "", None, "", TextSettings()
    phrases = []
    try:
        if text.lstrip().startswith("["):
            for entry in json.loads(text):
                pair = entry if isinstance(entry, list) else [entry]
                if not pair or len(pair) > 2 or not isinstance(pair[0], str):
                    raise ValueError(f"{entry!r:.60}")
                # A count is additional information.
                [float(count) for count in pair[1:]]
                phrases.append(ListedPhrase(pair[0]))
        else:
            if not text.startswith(f'{{"{PHRASES.field}":'):
                raise ValueError("its first line is not a phrase list header")
            header, *rows = read_rows(path)
            PHRASES.check(header, path)
            a, b, date = str(header["a"]["name"]), str(header["b"]["name"]), str(header["date"])
            n_a, n_b = n_texts = int(header["a"]["n_compared"]), int(header["b"]["n_compared"])
            parts = dict(Signature.parse(header["signature"]).parts)
            case, punct = parts["case"], parts["punct"]
            if case not in ("fold", "keep") or punct not in ("drop", "keep"):
                raise ValueError(f"words by case {case!r} and punct {punct!r}")
            settings = TextSettings(cast("Any", case), cast("Any", punct))
            phrases = [
                ListedPhrase(
                    str(row["phrase"]),
                    f"{a} {float(row['rate_a']):.2f}, {b} {float(row['rate_b']):.2f} in 1,000 "
                    f"words; in {int(row['texts_a']):,} of {n_a:,} and {int(row['texts_b']):,} of "
                    f"{n_b:,} texts",
                )
                for row in rows
                # A template can stand for any words; marking them would be meaningless.
                if row["over"] == a and row["kind"] == "words"
            ]
    except DAMAGE as error:
        raise InputError(
            f"{path}: not a list of phrases ({error}); use the output of "
            "`fabula phrases --out`, or a JSON list of phrases or of [phrase, count]"
        ) from error
    if not phrases:
        raise InputError(f"{path}: contains no phrases")
    return PhraseList(a, b, n_texts, date, settings, phrases, checksum(path)[:8])


@dataclass(frozen=True, slots=True)
class PhraseUse:
    """A listed phrase that a text uses, and its places in characters."""

    phrase: str
    said: str
    """How often the groups use it."""
    places: tuple[tuple[int, int], ...]
    n_words: int


class PhraseInstrument(MeasuredPart):
    """Count the listed phrases in a text, with their places. Where one lies within a longer listed
    phrase, only the longer one counts.
    """

    template = "groups/phrases.html.j2"

    def __init__(self, listed: PhraseList, number: int = 1) -> None:
        self._list = listed
        self.id = "phrases" if number == 1 else f"phrases{number}"
        self.title = f"Phrases of {listed.name}"
        self.figures: Sequence[Figure] = (
            Figure(
                "per_1000_words",
                f"Phrases of {listed.name}, in 1,000 words",
                ".2f",
                f"of {len(listed.phrases):,} that {listed.name} uses more than {listed.against}"
                if listed.against
                else f"of {len(listed.phrases):,} that are listed",
            ),
        )
        self.citation = _MONROE if listed.against else ""
        self._by_first: dict[str, list[tuple[list[str], ListedPhrase]]] = {}
        for phrase in listed.phrases:
            words = listed.settings.words(phrase.phrase)
            if words:
                self._by_first.setdefault(words[0], []).append((words, phrase))

    @property
    def signature(self) -> Signature:
        return Signature.of(
            "phrase-list",
            list=f"{self._list.name}@{self._list.digest}",
            **self._list.settings.signature_parts(),
        )

    @property
    def methods(self) -> str:
        listed, n = self._list, len(self._list.phrases)
        if not listed.against:
            return f"{n:,} phrases of the list {listed.name} were looked for. {NO_DETECTOR}"
        n_a, n_b = listed.n_texts or (0, 0)
        return (
            f"{n:,} phrases were looked for that {n_a:,} texts of {listed.name} use more than "
            f"{n_b:,} texts of {listed.against} (log-odds with an informative prior, Monroe et al. "
            f"2008; tested by text; {listed.date}). {NO_DETECTOR}"
        )

    def measure(self, documents: Sequence[Document]) -> Iterator[Sequence[Measurement]]:
        for document in documents:
            located = self._list.settings.locate(document.text)
            n_words = len(located.words)
            uses: dict[str, PhraseUse] = {}
            for first, n, phrase in self.find(located.words):
                place = int(located.starts[first]), int(located.ends[first + n - 1])
                before = uses.get(phrase.phrase, PhraseUse(phrase.phrase, phrase.said, (), n))
                uses[phrase.phrase] = replace(before, places=(*before.places, place))
            ordered = sorted(uses.values(), key=lambda u: (-len(u.places), -u.n_words, u.phrase))
            places = sorted(place for use in ordered for place in use.places)
            value = 1000 * len(places) / n_words if n_words else None
            reason = None if n_words else "no_words"
            spans = tuple(Span(document.id, *place) for place in places)
            about = document.id, self.id, "per_1000_words", "fabula"
            details = {"phrases": [asdict(use) for use in ordered]}
            yield [Measurement(*about, value, reason, spans, None, str(self.signature), details)]

    def blocks(self, review: Review) -> Sequence[Block]:
        """The phrases of the list that a single text contains."""
        uses = [use for text in review.texts for use in self._uses(text)]
        if len(review.texts) > 1 or not uses:
            return ()
        columns = [Column("phrase"), Column("times", ",", of=lambda use: len(use.places))]
        if uses[0].said:
            columns.append(Column("used by", of="said"))
        sheet = Sheet.of("phrases", uses, columns, about=("list", self.id), many="phrases")
        return ["", sheet, NO_DETECTOR]

    def view(self, number: int, text: TextReview, review: Review) -> Any:
        view = super().view(number, text, review)
        if view is None:
            return None
        uses = self._uses(text)
        shown = [(f"{self.id}-{number}-row{k}", use) for k, use in enumerate(uses[:_MAX_SHOWN], 1)]
        return view | {
            "about": NO_DETECTOR,
            "n_more": max(0, len(uses) - _MAX_SHOWN),
            "rows": [
                {"id": row, "phrase": use.phrase, "n": len(use.places), "said": use.said}
                for row, use in shown
            ],
            # The places of listed phrases, each linked to its row.
            "listed": [
                Listed(*place, use.n_words, use.said, row)
                for row, use in shown
                for place in use.places
            ],
        }

    def marks(self, view: Any) -> Marks:
        return Marks(listed=view["listed"])

    def _uses(self, text: TextReview) -> list[PhraseUse]:
        return [use for measured in text.results.get(self.id, ()) for use in uses_of(measured)]

    def find(self, words: Sequence[str]) -> list[tuple[int, int, ListedPhrase]]:
        """Where listed phrases begin, their lengths, and which; none lies within another."""
        uses: list[tuple[int, int, ListedPhrase]] = []
        end = 0
        for k, word in enumerate(words):
            starting = [
                (len(listed), phrase)
                for listed, phrase in self._by_first.get(word, ())
                if list(words[k : k + len(listed)]) == listed
            ]
            n, best = max(starting, key=lambda entry: entry[0], default=(0, None))
            # A match that began earlier and ends here or later contains it.
            if best is not None and k + n > end:
                uses.append((k, n, best))
                end = k + n
        return uses


def uses_of(measurement: Measurement) -> list[PhraseUse]:
    """The phrases of a `PhraseInstrument` measurement."""
    return [
        PhraseUse(**{**use, "places": tuple((int(a), int(b)) for a, b in use["places"])})
        for use in measurement.details["phrases"]
    ]
