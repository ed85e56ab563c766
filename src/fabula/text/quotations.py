"""Find quotations from a text, ignoring differences in case, spaces and punctuation."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

_DOUBLE, _SINGLE = '"“”„‟«»‹›', "'‘’‚"
_OPENING, _CLOSING = "“„«‹‘‚", "”»›’"
_LEFT_OUT = re.compile(r"\[?(?:\.{3,}|…)\]?")
_MIN_CHARS = 4
_MAX_MARKS = 12
_MAX_CHARS = 600


@dataclass(frozen=True, slots=True)
class QuotableText:
    """A text indexed for quotations: its words in lower case, separated by single spaces."""

    text: str
    folded: str
    places: tuple[int, ...]
    """The position in `text` of each character of `folded`."""

    @classmethod
    def of(cls, text: str) -> QuotableText:
        characters: list[str] = []
        places: list[int] = []
        for place, character in enumerate(text):
            folded = "'" if character in "’‘" else character.casefold()
            if not (folded == "'" or folded.isalnum() or unicodedata.combining(character)):
                folded = " "
            if folded == " " and characters[-1:] == [" "]:
                continue
            characters += folded
            places += [place] * len(folded)
        return cls(text, "".join(characters), tuple(places))

    def find(self, quotation: str) -> list[tuple[int, int]]:
        """All places of a quotation in order, half-open in characters of the text.

        Whole words only. A quotation with omissions (`...`) is found where its parts follow each
        other most closely. A single word is found only if it occurs exactly once and is long
        enough: otherwise it is ambiguous.
        """
        folded = (QuotableText.of(part).folded for part in _LEFT_OUT.split(quotation))
        parts = [part for part in (part.strip(" '") for part in folded) if part]
        if not parts:
            return []
        if len(parts) == 1:
            found = list(self._all(parts[0]))
            if " " not in parts[0] and (len(found) > 1 or len(parts[0]) < _MIN_CHARS):
                return []
            return [self._span(start, start + len(parts[0])) for start in found]
        chains = []
        for start in self._all(parts[0]):
            end = start + len(parts[0])
            for part in parts[1:]:
                at = next((place for place in self._all(part) if place >= end), None)
                if at is None:
                    break
                end = at + len(part)
            else:
                chains.append((start, end))
        return [self._span(*min(chains, key=lambda chain: chain[1] - chain[0]))] if chains else []

    def _all(self, part: str) -> Iterator[int]:
        at = self.folded.find(part)
        while at >= 0:
            before, after = self.folded[at - 1 : at], self.folded[at + len(part) :][:1]
            if not ((before.isalnum() and part[0].isalnum()) or after.isalnum()):
                yield at
            at = self.folded.find(part, at + 1)

    def _span(self, start: int, end: int) -> tuple[int, int]:
        return self.places[start], self.places[end - 1] + 1


def quoted_parts(line: str) -> list[tuple[int, int]]:
    """The places of possible quotations in a line, without their marks; the longest first.

    Marks are double or single, straight, curly, low, angled, or backticks. Quotations can contain
    quotations, so every pair of marks may be the outer one; but the text between two quotations is
    not a quotation, and an apostrophe within a word is not a mark.
    """
    pairs = []
    for marks in (_DOUBLE, _SINGLE, "`"):
        places = [k for k, character in enumerate(line) if character in marks]
        begin = [k for k in places if _may_open(line, k)][:_MAX_MARKS]
        end = [k for k in places if _may_close(line, k)][:_MAX_MARKS]
        pairs += [(a + 1, b) for a in begin for b in end if 1 < b - a <= _MAX_CHARS]
    return sorted(pairs, key=lambda pair: (pair[0] - pair[1], pair[0]))


def _may_open(line: str, place: int) -> bool:
    """A mark opens after a space, a bracket or another mark; a curly one unless it closes.

    German closes with the mark that opens in English, and Danish opens with the one that closes.
    """
    mark, before, after = line[place], line[place - 1 : place], line[place + 1 : place + 2]
    if mark in _OPENING:
        return mark in "«‹„‚" or not (after == "" or after.isspace())
    return not (before.isalnum() or before in tuple(".,;:!?)]}…%'’"))


def _may_close(line: str, place: int) -> bool:
    """A mark closes before a space, punctuation, another mark, or the end."""
    mark, before, after = line[place], line[place - 1 : place], line[place + 1 : place + 2]
    if mark in _OPENING and before.isspace():
        return False
    return (mark in _CLOSING and mark != "’") or not after.isalnum()
