"""Find quoted speech in a text, by its quotation marks and dashes.

Double marks (straight, curly, low, and the treebank's grave accents), single ones, guillemets and
dashes at the start of a paragraph are interpreted by their position, not their shape, so that
straight and curly forms of a text give the same places. The rules:

- A mark opens after a space, a bracket or a dash, and closes before one; the closing mark must be
  in the same paragraph. A speech of several paragraphs opens each of them and closes the last.
- An apostrophe opens only before a letter, and not before a known elision ('twas, 'em) or a clitic
  ('s, 'll). After a plural in s (the boys' hats), a dropped g (cookin') or a digit (6') it closes
  only if nothing else can.
- Single marks count as speech only in texts that use them, rather than double ones, for it.
- A double mark that is never closed extends to the end of its sentence, or of a text that is cut
  off in the middle of one; a single one is not a quotation mark.
- Up to three words, or a title, are not speech (scare quotes, "The Raven") unless a verb of saying
  is next to them or they end like speech.
- A paragraph that begins with a dash is speech if the text has hardly any other; it ends with its
  paragraph, and between two dashes a verb of saying belongs to the narration.

Unmarked speech (plays, some novels) is not detected.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fabula.text.marks import ALL_MARKS, MAX_SCARE_WORDS, SAYING, WORD, MarkedText, Pair, word_set

READER = "marks-and-dashes-1"
"""Name of this reader in signatures; it changes when its results change."""

_SMALL = word_set("a an and at by for from in into of on or the to with")
_SPOKEN_ENDS = frozenset(",!?…—–-―")
_SPEECH_ENDS = _SPOKEN_ENDS | {"."}
_NO_SPEECH_AFTER = frozenset(("called", "calls"))
"""Before a quotation these name a thing: a man called "Bob"."""
_MUCH = 3
"""The ratio of speech of one kind to another at which a text is taken to use the first."""

_DASH = re.compile(r"\s*(—|–|―|--?)\s*(?=[^\W\d_]|[¿¡…'‘’])")
_INNER_DASH = re.compile(r"\s+(?:—|–|―|--?)|(?:—|–|―|--)")
_TALK = re.compile(r"[?!]|\b(?:I|you|we|me|my|your|us)\b")


@dataclass(frozen=True, slots=True)
class Quotation:
    """A span between quotation marks or after a dash: half-open in characters, with its marks."""

    start: int
    end: int
    is_speech: bool
    """False for scare quotes and titles, and for single quotes in a text that uses double ones."""
    is_closed: bool = True
    """False if one of the two marks is missing; then it extends to the end of a sentence."""


class _Reader(MarkedText):
    """Decides which quotations of a text are speech."""

    def is_speech(self, start: int, end: int) -> bool:
        """Whether a quotation is more than scare quotes or a title."""
        low, high = self.paragraph_of(start)
        inner = self.text[start:end].strip("".join(ALL_MARKS) + " \n\t")
        words = WORD.findall(inner)
        if not words:
            return False
        is_title = words[0][:1].isupper() and all(w[:1].isupper() or w in _SMALL for w in words)
        if len(words) > MAX_SCARE_WORDS and not is_title:
            return True
        before, after = self.before(start, low), self.after(end, high)
        if self.is_told(start, end) or not (before or after):
            return True
        begins = not before or not before[-1].isalnum()
        if inner[-1] in _SPOKEN_ENDS or inner.endswith(".."):
            return begins or inner[-1] != "," or not is_title or len(words) == 1
        return begins and inner[-1] == "."

    def is_told(self, start: int, end: int) -> bool:
        """Whether a verb of saying is next to a quotation."""
        low, high = self.paragraph_of(start)
        head = self.before(start, low)
        before = {word.lower() for word in WORD.findall(head)[-3:]}
        after = {word.lower() for word in WORD.findall(self.after(end, high))[:3]}
        # "No" said he; but: the "doctors" said nothing.
        is_subject = head[-1:].isalnum()
        return bool((after & SAYING and not is_subject) or before & (SAYING - _NO_SPEECH_AFTER))

    def dashed(self) -> Iterator[tuple[int, int]]:
        """Speech after dashes at the start of paragraphs, in texts that mark speech this way."""
        found = [
            (match.start(1), end, match[1])
            for start, end in self.paragraphs
            if (match := _DASH.match(self.text, start, end))
        ]
        # Hyphens also mark lists, whose lines do not end like sentences.
        spoken = [
            (start, end)
            for start, end, dash in found
            if dash != "-" or self.text[start:end].rstrip()[-1:] in tuple(".!?…")
        ]
        if 2 * len(spoken) >= len(found) and any(self._talks(*line) for line in spoken):
            for start, end, _ in found:
                yield from self._without_narration(start, end)

    def _talks(self, start: int, end: int) -> bool:
        words = WORD.findall(self.text[start:end])
        is_told = any(word.lower() in SAYING for word in words)
        return is_told or _TALK.search(self.text, start, end) is not None

    def _without_narration(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """A paragraph after a dash, without speech tags between two dashes."""
        begin, is_told = start, False
        first = _DASH.match(self.text, start, end)
        for dash in _INNER_DASH.finditer(self.text, first.end() if first else start, end):
            words = WORD.findall(self.after(dash.end(), end))[:4]
            if is_told:
                begin, is_told = dash.start(), False
            elif any(word.lower() in SAYING for word in words):
                yield begin, dash.start()
                is_told = True
        if not is_told:
            yield begin, self.stripped(begin, end)


def quotations_of(text: str, *, has_paragraphs: bool = True) -> list[Quotation]:
    """All quotations of a text in order, without nesting.

    Without `has_paragraphs`, the text is consecutive sentences from a longer one: an opening mark
    at the start of a sentence may begin a paragraph of the same speech, and the text may begin and
    end within speech.
    """
    reader = _Reader(text, has_paragraphs)
    found = {kind: reader.quotations(kind) for kind in reader.marks}
    doubles, singles = _outermost(found["double"], found["«"], found["‹"]), found["single"]
    is_single = _n_spoken(reader, singles, doubles) > _MUCH * _n_spoken(reader, doubles, singles)
    if is_single:
        kept, thought = _outermost(singles, doubles), set[Pair]()
    else:
        thought = set(_apart(singles, doubles))
        kept = sorted([*doubles, *thought])
    quotations = [
        Quotation(
            start, end, (start, end, closed) not in thought and reader.is_speech(start, end), closed
        )
        for start, end, closed in kept
    ]
    dashed = [(start, end, True) for start, end in reader.dashed()]
    if len(dashed) <= _MUCH * sum(one.is_speech for one in quotations):
        return quotations
    others = set(_apart(kept, dashed))
    quotations = [one for one in quotations if (one.start, one.end, one.is_closed) in others]
    quotations += [Quotation(start, end, True) for start, end, _ in dashed]
    return sorted(quotations, key=lambda one: one.start)


def speech_spans(text: str, *, has_paragraphs: bool = True) -> list[tuple[int, int]]:
    """The spans of speech: half-open in characters, marks included, in order and disjoint."""
    return [
        (one.start, one.end)
        for one in quotations_of(text, has_paragraphs=has_paragraphs)
        if one.is_speech
    ]


def flags_within(places: Iterable[int], spans: Sequence[tuple[int, int]]) -> list[bool]:
    """Whether each character position is in a span; spans are in order and disjoint."""
    # Compared as pairs, so that the starts need not be copied for each sentence of a book.
    found = ((place, bisect_right(spans, (place, math.inf)) - 1) for place in places)
    return [k >= 0 and place < spans[k][1] for place, k in found]


def _outermost(*kinds: Sequence[Pair]) -> list[Pair]:
    """Quotations of several kinds without those that others contain or overlap."""
    kept: list[Pair] = []
    for one in sorted((pair for pairs in kinds for pair in pairs), key=lambda p: (p[0], -p[1])):
        if not kept or one[0] >= kept[-1][1]:
            kept.append(one)
    return kept


def _apart(pairs: Sequence[Pair], others: Sequence[Pair]) -> list[Pair]:
    """The pairs that share no character with the others, which are in order and disjoint."""
    starts = [start for start, _, _ in others]
    numbered = ((pair, bisect_left(starts, pair[1]) - 1) for pair in pairs)
    return [pair for pair, k in numbered if k < 0 or others[k][1] <= pair[0]]


def _n_spoken(reader: _Reader, pairs: Sequence[Pair], others: Sequence[Pair]) -> int:
    """How many end like speech, or have a speaker, and are in none of the others."""
    marks = "".join(ALL_MARKS) + " "
    within = flags_within((start - 1 for start, _, _ in pairs), [(a + 1, b) for a, b, _ in others])
    return sum(
        closed
        and not inside
        and (
            reader.text[start:end].rstrip(marks)[-1:] in _SPEECH_ENDS or reader.is_told(start, end)
        )
        for (start, end, closed), inside in zip(pairs, within, strict=True)
    )
