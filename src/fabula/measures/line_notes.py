"""Line by line: places in a draft that its writer may want to check, each with a reason.

No language model is used. Every note can be located and checked: a word that recurs within a few
lines, a repeated sentence, consecutive sentences that begin alike, a name spelt in two ways or
changed for another, an error of grammar or spelling, a stock phrase. None of it is a grade, and
none of it must be changed: repetition can be intended. So notes are ranked, and only the first of
them are shown.

Quoted text belongs to its speaker: there only spelling, names and stock phrases are noted.
Thresholds are heuristics of this module; `LINE_RULES` names them in signatures.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from statistics import median
from typing import Any, Literal

from fabula.measures.line_errors import errors
from fabula.measures.line_names import names
from fabula.measures.line_read import (
    LINE_KINDS,
    LineNote,
    Place,
    ReadSentence,
    ReadText,
    line_of,
    note_of,
)
from fabula.measures.linguistic.grammar import Checker, parsed_and_checked
from fabula.measures.linguistic.lexis import Frequencies
from fabula.measures.linguistic.parsing import Parser, Token
from fabula.measures.linguistic.profile import Profile, opened_tools, profile_text
from fabula.measures.stock_phrases import STOCK_PHRASES
from fabula.text import check_documents, count_words
from fabula.text.chapters import CHAPTER_RULES, without_headings
from fabula.text.language import not_english
from fabula.text.pipeline import pipeline_parts
from fabula.text.sentences import encodable, sentence_spans
from fabula.text.speech import flags_within, speech_spans
from fabula.types import Document, Measurement, Signature, Span
from fabula.workers import in_order

LINE_RULES = "6"
"""Version: changes with any rule or threshold below."""

_SPACE = re.compile(r"\s")
_ECHO_WORDS = 30
_ECHO_ZIPF = 4.3
"""Rarer than one in 50,000 words: repetitions of more frequent words go unnoticed."""
_ECHO_APART = 6
"""Nearer than this they are one turn of phrase: limb by limb, an unhappy man and unhappy wife."""
_MIN_ECHO = 4
_TOPIC = 1_000
"""A word at least this frequent in the text is its topic, not an echo."""
_MIN_REPEATED = 6
_LONG_REPEATED = 15
"""Sentences of this many words or more hardly repeat by chance."""
_SAME_BEGINNING = 4
_SAME_TWO_WORDS = 3
_LONG_WORDS = 60
_LONG_RATIO = 3

_UNSPOKEN = {
    "smiled": "smile", "smiles": "smile", "grinned": "grin", "grins": "grin", "nodded": "nod",
    "nods": "nod", "shrugged": "shrug", "shrugs": "shrug", "frowned": "frown", "frowns": "frown",
    "smirked": "smirk", "smirks": "smirk", "winced": "wince", "winces": "wince", "beamed": "beam",
    "beams": "beam", "glared": "glare", "glares": "glare", "blinked": "blink", "blinks": "blink",
    "blushed": "blush", "blushes": "blush", "shuddered": "shudder", "shudders": "shudder",
}  # fmt: skip
"""Verbs that cannot utter words, by the forms that occur beside speech."""


@dataclass(frozen=True, slots=True)
class LineReview:
    """All notes on a text, in text order; none, with the reason, if it cannot be read."""

    n_words: int | None
    """None if they are not English words."""
    notes: tuple[LineNote, ...]
    signature: str
    missing_reason: str | None = None

    def first(self, per_thousand: int) -> list[LineNote]:
        """The most important notes, in text order; all of them for 0.

        This many per thousand words, and at least this many.
        """
        if not (per_thousand and self.n_words):
            return list(self.notes)
        n = max(per_thousand, math.ceil(per_thousand * self.n_words / 1000))
        best = sorted(self.notes, key=lambda note: (-note.strength, note.start))[:n]
        return sorted(best, key=lambda note: (note.start, note.end, note.kind))

    def without(self, kinds: Collection[str], also: Collection[str] = ()) -> LineReview:
        """The review without notes of these kinds, and without those that are off by default unless
        in `also`; its signature names what is left out."""
        off = {kind.id for kind in LINE_KINDS.values() if not kind.is_on} - set(also)
        left = sorted((set(kinds) | off) & LINE_KINDS.keys())
        if not left:
            return self
        signature = f"{self.signature}|without:{'+'.join(left)}"
        notes = tuple(note for note in self.notes if note.kind not in left)
        return replace(self, notes=notes, signature=signature)

    def to_row(self, document: Document, per_thousand: int) -> dict[str, Any]:
        """As written to JSON: the first notes, and how many there are of each kind."""
        shown = self.first(per_thousand)
        return {
            "id": document.id,
            "n_words": self.n_words,
            "n_notes": dict(sorted(Counter(note.kind for note in self.notes).items())),
            "n_shown": len(shown),
            "notes": [
                {
                    "line": line_of(document.text, note.start),
                    "text": document.text[note.start : note.end],
                    **asdict(note),
                    "precision": LINE_KINDS[note.kind].precision,
                }
                for note in shown
            ],
            "missing_reason": self.missing_reason,
            "signature": self.signature,
        }

    def measurements(self, document_id: str) -> Iterator[Measurement]:
        """The number of notes of each kind, and their places, as measurements."""
        left = dict(Signature.parse(self.signature).parts).get("without", "").split("+")
        for kind in LINE_KINDS:
            if kind in left:
                continue
            notes = [note for note in self.notes if note.kind == kind]
            yield Measurement(
                document_id=document_id,
                rubric="lines",
                item=kind,
                rater="fabula",
                value=None if self.missing_reason else len(notes),
                missing_reason=self.missing_reason,
                evidence=tuple(Span(document_id, note.start, note.end) for note in notes),
                rationale=None,
                signature=self.signature,
            )


class LineReader:
    """Reads texts line by line. Raises `ModelError` if a dependency is not installed.

    checker: of grammar and spelling, as from `open_checker`; None disables both.
    """

    def __init__(self, nlp: Any, parser: Parser, checker: Checker | None) -> None:
        self._nlp, self._parser, self._checker = nlp, parser, checker
        self._frequencies = Frequencies()

    @property
    def signature(self) -> Signature:
        """Everything that determines the notes."""
        return Signature.of(
            "lines",
            rules=LINE_RULES,
            grammar="none" if self._checker is None else self._checker.name,
            freq=self._frequencies.name,
            heads=CHAPTER_RULES,
            **pipeline_parts(self._nlp),
        )

    def read(self, document: Document) -> LineReview:
        """The notes on a text; headings are not sentences."""
        text = without_headings(document)
        if (foreign := not_english(text)) is not None:
            return LineReview(None, (), str(self.signature), foreign)
        read = self.parsed(text)
        if not read.n_words:
            return LineReview(0, (), str(self.signature), "no_words")
        found = [note for rule in _RULES for note in rule(read)]
        found.sort(key=lambda note: (note.start, note.end, note.kind))
        return LineReview(count_words(document.text), tuple(found), str(self.signature))

    def parsed(self, text: str) -> ReadText:
        """A text as the rules see it."""
        plain = encodable(_SPACE.sub(" ", text))
        spans = sentence_spans(text, self._nlp)
        speech = speech_spans(text)
        sentences = []
        stream = self._parser.parse(plain[start:end] for start, end in spans)
        read = parsed_and_checked(stream, self._checker, len(spans))
        for (start, end), part, faults in zip(spans, *read, strict=True):
            spoken = flags_within([start + token.start for token in part.tokens], speech)
            sentences.append(ReadSentence(start, end, part.tokens, faults, tuple(spoken)))
        n_words = sum(len(one.words) for one in sentences)
        return ReadText(text, tuple(sentences), self._frequencies, n_words, self._is_word)

    def _is_word(self, word: str) -> bool:
        """Whether the checker accepts it in lower case, as it does not accept names."""
        if self._checker is None:
            return False
        return not any(one.is_spelling for one in self._checker.faults(f"the {word.lower()}"))


Wanted = Literal["profile", "lines"]
_FEW = 4
"""Below this many texts, starting processes is not worthwhile."""


@dataclass(frozen=True, slots=True)
class DraftReading:
    """What was requested for a draft, read once: its profile, and the notes on its lines."""

    profile: Profile | None
    lines: LineReview | None


def read_drafts(
    documents: Iterable[Document],
    wanted: Collection[Wanted],
    grammar: str = "harper",
    *,
    n_jobs: int = 1,
) -> Iterator[DraftReading]:
    """Each document's profile, and the notes on its lines, in order.

    grammar: a checker, as for `open_checker`. Raises `ModelError` if a dependency is missing.
    """
    one = functools.partial(_read, grammar, frozenset(wanted))
    yield from in_order(one, check_documents(documents), n_jobs, n_small=_FEW)


def _read(grammar: str, wanted: frozenset[Wanted], document: Document) -> DraftReading:
    tools, nlp = opened_tools(grammar)
    return DraftReading(
        profile_text(tools, nlp, document) if "profile" in wanted else None,
        _line_reader(grammar).read(document) if "lines" in wanted else None,
    )


@functools.cache
def _line_reader(grammar: str) -> LineReader:
    tools, nlp = opened_tools(grammar)
    return LineReader(nlp, tools.parser, tools.checker)


def _repeated_sentences(read: ReadText) -> Iterator[LineNote]:
    first: dict[tuple[str, ...], ReadSentence] = {}
    for sentence in read.sentences:
        key = tuple(token.lower for token in sentence.words)
        # A repetition in exactly the same words is intended, and so is verse.
        if len(key) < _MIN_REPEATED or not sentence.is_narration:
            continue
        before = first.setdefault(key, sentence)
        if before is not sentence:
            place, also = (sentence.start, sentence.end), [(before.start, before.end)]
            line = line_of(read.text, before.start)
            why = f"The same sentence already occurs in line {line}."
            yield note_of("sentence", place, why, min(1.0, len(key) / _LONG_REPEATED), also)


def _echoes(read: ReadText) -> Iterator[LineNote]:
    """Words that recur within 30 words, in the same form, and rare enough to be noticed.

    Names are left out: words that are capitalized within sentences more often than not.
    """
    places: dict[str, list[tuple[int, Place]]] = defaultdict(list)
    n_lower: Counter[str] = Counter()
    for number, sentence, token in read.narrated():
        is_within = token.start > sentence.words[0].start
        if token.text.islower() or is_within:
            n_lower[token.lower] += 1 if token.text.islower() else -1
        is_content = token.pos in ("NOUN", "VERB", "ADJ", "ADV") and len(token.lower) >= _MIN_ECHO
        start, end = sentence.at(token)
        is_part = "-" in (read.text[start - 1 : start], read.text[end : end + 1])
        if is_content and token.lower.isalpha() and not is_part:
            places[token.lower].append((number, sentence.at(token)))
    for word, found in places.items():
        zipf = 9 + read.frequencies.log(word) / math.log(10)
        if zipf > _ECHO_ZIPF or len(found) < 2 or n_lower[word] < 0:
            continue
        if len(found) > max(3, read.n_words // _TOPIC):
            continue
        chain = [found[0]]
        for one in [*found[1:], (10**12, (0, 0))]:
            if one[0] - chain[-1][0] <= _ECHO_WORDS:
                chain.append(one)
                continue
            apart = chain[-1][0] - chain[0][0]
            if len(chain) > 1 and apart >= _ECHO_APART:
                often = "twice" if len(chain) == 2 else f"{len(chain)} times"
                why = f"“{word}” occurs {often} within {apart + 1} words."
                rarity = min(1.0, (_ECHO_ZIPF - zipf) / 2)
                strength = (rarity + (1 - apart / (len(chain) * _ECHO_WORDS))) / 2
                before, here, *after = (place for _, place in chain)
                yield note_of("echo", here, why, strength, [before, *after])
            chain = [one]


def _beginnings(read: ReadText) -> Iterator[LineNote]:
    """Consecutive sentences that begin alike: three with the same two words, or four with one."""

    def is_told(one: ReadSentence) -> bool:
        # Footnotes, and bracketed lists, begin alike.
        return one.is_narration and len(one.words) > 1 and read.text[one.start] not in "[("

    rows = groupby(read.sentences, is_told)
    for row in (list(sentences) for is_narration, sentences in rows if is_narration):
        found = list(_begin_alike(read, row, 2, _SAME_TWO_WORDS))
        yield from found or _begin_alike(read, row, 1, _SAME_BEGINNING)


def _begin_alike(
    read: ReadText, row: Sequence[ReadSentence], n_words: int, least: int
) -> Iterator[LineNote]:
    for _, alike in groupby(row, lambda one: [word.lower for word in one.words[:n_words]]):
        same = list(alike)
        places = [(one.start, one.at(one.words[n_words - 1])[1]) for one in same]
        if len(places) >= least and not _is_meant(same, n_words):
            why = f"{len(places)} sentences in a row begin with “{read.text[slice(*places[0])]}”."
            yield note_of("beginning", places[0], why, min(1.0, len(places) / 6), places[1:])


def _is_meant(alike: Sequence[ReadSentence], n_words: int) -> bool:
    """Whether sentences also continue alike, or a verb recurs: "We fight. We fight on"."""
    thirds = {tuple(word.lower for word in one.words[: n_words + 1]) for one in alike}
    has_verb = any(word.pos == "VERB" for word in alike[0].words[:n_words])
    return len(thirds) == 1 or (n_words > 1 and has_verb)


def _long(read: ReadText) -> Iterator[LineNote]:
    narration = [one for one in read.sentences if one.is_narration]
    usual = median([len(one.words) for one in narration] or [0])
    for sentence in narration:
        n = len(sentence.words)
        if n > _LONG_WORDS and n > _LONG_RATIO * usual:
            place = sentence.start, sentence.end
            why = f"{n} words in one sentence; {usual:g} is usual in this text."
            yield note_of("long", place, why, min(1.0, n / (4 * _LONG_WORDS)))


def _tags(read: ReadText) -> Iterator[LineNote]:
    """Verbs beside speech that are not speech verbs."""
    for sentence in read.sentences:
        tokens, spoken = sentence.tokens, sentence.is_spoken
        for k, token in enumerate(tokens):
            verb = _UNSPOKEN.get(token.lower) if token.is_word and not spoken[k] else None
            if verb is not None and _follows_comma(tokens, spoken, k):
                why = (
                    f"Nobody can {verb} words; a full stop before it makes it something that is "
                    f"done."
                )
                yield note_of("tag", sentence.at(token), why)


def _follows_comma(tokens: Sequence[Token], spoken: Sequence[bool], k: int) -> bool:
    """Whether speech ending in a comma comes just before, apart from its speaker."""
    for before in range(k - 1, max(-1, k - 4), -1):
        if spoken[before]:
            said = (token.text for token in reversed(tokens[: before + 1]))
            return next((text for text in said if text not in "\"”’'"), "") == ","
        if tokens[before].is_word and tokens[before].pos not in ("PRON", "PROPN", "NOUN", "DET"):
            return False
    return False


def _stock(read: ReadText) -> Iterator[LineNote]:
    plain = " ".join(read.text.casefold().replace("’", "'").split())
    # Looking for each phrase first is fast, and a text has few of them.
    phrases = tuple(one for one in STOCK_PHRASES if one in plain)
    for found in _pattern_of(phrases).finditer(read.text) if phrases else ():
        phrase = " ".join(found[0].split())
        yield note_of("stock", found.span(), f"“{phrase}” is a stock phrase.")


@functools.lru_cache(64)
def _pattern_of(phrases: Collection[str]) -> re.Pattern[str]:
    longest_first = sorted(phrases, key=len, reverse=True)
    parts = (r"\s+".join(map(re.escape, one.split())).replace("'", "['’]") for one in longest_first)
    return re.compile(rf"(?<![\w'’-])(?:{'|'.join(parts)})(?![\w'’-])", re.IGNORECASE)


_RULES: tuple[Callable[[ReadText], Iterator[LineNote]], ...] = (
    names,
    _repeated_sentences,
    errors,
    _tags,
    _stock,
    _beginnings,
    _echoes,
    _long,
)
