"""Wrong words that no dictionary finds, such as "there" for "their", by the embedded model.

A word that suits its neighbours badly (`contexts`) is compared with the other one in its place: by
how many nats of likelihood would the text gain, the word and the eight tokens after it? It is noted
if they reach a margin, which is larger for what suits them less badly. A novel takes seconds.

A text that is read whole is compared with more: each word of a confusion set with the others of its
set, forms of a verb, a small word that is missing, possessives, misspellings, names in lower case,
questions and people spoken to without their mark, and sentences that run on. Noted is the best that
gains its margin. Margins were chosen on fiction with many errors; where fewer are found, a word
must gain more, since it is more often meant. `bench/proofreading.py` measures both on other texts.

It is read in stretches of some paragraphs, each after the last words before it and without anything
else, so that a changed paragraph leaves the others as they were. Where stretches end depends on the
paragraphs themselves: after a change they soon end where they did before. Verse and headings are
not read, nor words in capitals and names; paragraphs in dialect are left alone.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache
from importlib.resources import files
from string import ascii_lowercase
from typing import Any

from fabula.core.cached_results import Kept
from fabula.core.errors import ModelError
from fabula.core.types import Document
from fabula.jobs.job import Progress
from fabula.linguistic.metrics import frequencies
from fabula.models.surprisal import SurprisalModel, Swap
from fabula.style.contexts import Suspect, suspects
from fabula.style.lines import CONFUSED, LineNote, LineReview, note_of
from fabula.style.slips import BROAD, is_broad
from fabula.text import count_words
from fabula.text.chapters import without_headings
from fabula.text.sentences import encodable, overlaps, paragraph_spans
from fabula.text.words import word_set

PROOF_RULES = "6"
"""Version: changes with any rule or constant below, with the sets and with `contexts.npz`."""
MARGINS = {
    "set": 4.0, "slip": 10.0, "form": 8.0, "verb": 4.0, "missing": 7.0, "possessive": 5.0,
    "question": 3.0, "address": 1.0, "sentence": 5.0, "name": 8.0, "spelling": 10.0, "context": 5.0,
}  # fmt: skip
"""Nats that another word must gain, by kind: sections of the list, and what is not listed."""
WHOLE_WORDS = 10_000
"""The most words of a text that is read whole where that is asked for."""
_USUAL, _PLAIN_GAIN = 6.0, 4.0
"""Errors in 1,000 words of a draft for which the margins hold; a word that gains so much more than
its margin counts as one of them."""
_ONCE = ("name", "spelling")
"""What comes again is meant."""
_STANDARD = ("verb", "form", "spelling")
"""What differs in dialect."""
_LACKS, _MISSING_GAINS = 7.0, 3.0
"""How much less than its margin the first token of a word may gain, and what a small word must gain
by itself, for the rest to be read."""
_SMALL = word_set(
    "a an and as at be been by for from had has have he her his i if in is it me my not of off on "
    "out she so that the them they to up was we were who with you"
)
_CONTEXT_CHARS = 500
"""About 120 tokens, read before each stretch."""
_AFTER_CHARS, _MAX_BEFORE = 120, 4
"""Read after a word that is suspected, and the most paragraphs before its own."""
_MIN_CHARS, _MAX_CHARS = 1_600, 4_000
"""A stretch ends with the first chosen paragraph from the one, and before it exceeds the other."""
_ONE_IN = 3
"""Paragraphs that a stretch may end with, chosen by their characters."""
_MIN_VERSE, _VERSE_SHARE = 3, 0.75
"""Lines of a paragraph that is verse, and the share of them that begins with a capital."""
_PLAIN = str.maketrans("‘’“”", "''\"\"")
_SPEECH = str.maketrans("", "", '“”"')
_SPACE = re.compile(r"\s")
_CAPITALISED = re.compile(r"(?<=[\w,;] )[A-Z][\w']*")
_LOWER = re.compile(r"(?<![\w'])[a-z][\w']*")
_PLURAL = re.compile(
    r"(?<![\w'-])([a-z]{2,}[^\Wsui])(?:s|'s)(?![\w'-])"
    r"|\b(?<![Tt]he )(?!The|These|Those|All|Both)(?:[A-Z][a-z]+|Mrs?\.|Ms\.|Dr\.) "
    r"([A-Z][a-z]+[^\Wsui])s(?= [a-z])"
)
"""What may be a possessive, or should be none; of names only where another name stands before."""
_QUESTION = re.compile(r"(\w+)[.,](?=['\"])")
_RUN_ON = re.compile(r"(\w+) (he|she|they|it|we|I|there|then|the|you|nobody|his|her|my)\b")
"""Where a sentence may run on into another one."""
_ADDRESS = re.compile(
    r"(?<![\w'])([a-z][a-z']*|Yes|No|Hello|Thanks|Sorry|Please) "
    r"((?:(?:Mr|Mrs|Ms|Dr)\.? |Miss )?(?!Mr|Ms|Dr|St\b)[A-Z][a-z]+|"
    r"ladies|gentlemen|sir|mum|dad)(?=[.,!?]['\"\s])"
)
"""Somebody who may be spoken to."""
_GENERAL = re.compile(r"\b(?:it|that|which|what) \Z", re.I)
"""Before a third person that may hold at all times: it takes a while."""
_RARE_ZIPF, _MORE_ZIPF, _LEAST_ZIPF = 2.3, 2.0, 2.5
"""The most frequent word that may be misspelt; how much more frequent the other one is, at least;
and its least frequency."""
_NAME_ZIPF, _VERB_ZIPF, _PART_ZIPF = (2.0, 5.0), 3.0, 4.5
"""Of what may be a name; the least of a verb's past, and of each of two words run together."""
_MIN_LETTERS = 5
"""Shorter words are not respelt."""
_RULED = ("spelling", "grammar", "doubled")
"""Kinds of notes beside which a place needs no other."""


@dataclass(frozen=True, slots=True)
class WrongWord:
    """A word of a text, half-open in characters, and the one that is likelier by so many nats."""

    start: int
    end: int
    other: str
    gain: float
    kind: str


@cache
def alternatives() -> Mapping[str, Mapping[str, str]]:
    """For each word, or phrase, of the confusion sets the others, with their kinds."""
    kinds: dict[str, dict[str, str]] = {}
    kind = "set"
    listed = files("fabula.style").joinpath("confusions.txt").read_text(encoding="utf-8")
    for line in listed.splitlines():
        if line.startswith("["):
            kind = line.strip("[]")
        elif line and not line.startswith("#"):
            words = line.split("=") if "=" in line else line.split()
            for word in words:
                others = kinds.setdefault(word, {})
                # Of a verb, its base, its third person and its past, only later ones are meant.
                for other in words[words.index(word) + 1 :] if kind == "verb" else words:
                    if other != word:
                        others.setdefault(other, kind)
    return kinds


@cache
def _pattern() -> re.Pattern[str]:
    longest_first = sorted(alternatives(), key=len, reverse=True)
    return re.compile(
        rf"(?<![\w'-])(?:{'|'.join(map(re.escape, longest_first))})(?![\w-]|'\w)", re.IGNORECASE
    )


def proofread_drafts(
    opened: Callable[[], SurprisalModel],
    drafts: Sequence[Document],
    reviews: Sequence[LineReview],
    progress: Progress,
    *,
    is_asked: bool,
) -> list[LineReview]:
    """The notes on drafts, with those on words that may be wrong.

    Unless it is asked for, only suspected words are read, and none if there is no model that can
    compare them. Raises `ModelError`.
    """
    try:
        model = opened()
    except ModelError:
        if is_asked:
            raise
        return list(reviews)
    if not (is_asked or model.compares_words):
        return list(reviews)
    progress.begin("proofreading", sum(len(draft.text) for draft in drafts))
    whole_words = WHOLE_WORDS if is_asked else 0
    return [
        proofread(model, draft, lines, progress.advance, whole_words)
        for draft, lines in zip(drafts, reviews, strict=True)
    ]


def proofread(
    model: SurprisalModel,
    document: Document,
    lines: LineReview,
    advance: Callable[[int], object],
    whole_words: int,
) -> LineReview:
    """The notes on a document, and on its words that may be wrong; none if it was not read.

    What a rule already notes is not noted again. `advance` and `whole_words` as for `wrong_words`.
    """
    decided = f"{_decided(model)}|usual:{_USUAL:g}|whole:{whole_words}"
    lines = replace(lines, signature=f"{lines.signature}|{decided}")
    if lines.missing_reason is not None:
        return lines
    ruled = [(note.start, note.end) for note in lines.notes if note.kind in _RULED]
    found = [
        one
        for one in wrong_words(model, document, advance, whole_words)
        if not overlaps((one.start, one.end), ruled)
    ]
    likely = likely_wrong(found, len(lines.notes), count_words(document.text))
    notes = [_note(document.text, one) for one in likely]
    ordered = sorted((*lines.notes, *notes), key=lambda note: (note.start, note.end, note.kind))
    return replace(lines, notes=tuple(ordered))


def likely_wrong(found: Sequence[WrongWord], n_noted: int, n_words: int) -> list[WrongWord]:
    """Those that are likely to be wrong in a text of so many words with so many other notes.

    A gain is the logarithm of a ratio of likelihoods: the rarer errors are, the larger must it be.
    """
    above = [one.gain - MARGINS[one.kind] for one in found]
    n_errors = n_noted + sum(one >= _PLAIN_GAIN for one in above)
    rate = 1_000 * (n_errors + 0.5) / max(n_words, 1)
    least = max(0.0, math.log(_USUAL / rate))
    # What is suspected is rare enough.
    pairs = zip(found, above, strict=True)
    return [one for one, by in pairs if one.kind == "context" or by >= least]


def _decided(model: SurprisalModel) -> str:
    """What decides which words are noted, as parts of a signature."""
    margins = "+".join(f"{margin:g}" for margin in MARGINS.values())
    return f"proofreading:{PROOF_RULES}|model:{model.name}|run:{model.runtime}|margins:{margins}"


def _note(text: str, one: WrongWord) -> LineNote:
    before = re.search(r"(?:\S+[^\S\n]+){,2}\S*\Z", text[max(0, one.start - 60) : one.start])
    after = re.match(r"\S*(?:[^\S\n]+\S+){,2}", text[one.end : one.end + 60])
    near = text[
        one.start - len(before[0] if before else "") : one.end + len(after[0] if after else "")
    ]
    other = one.other.replace("'", "’") if re.search("[’“]", text) else one.other
    quote = " ".join(near.translate(_SPEECH).split())
    why = f"“{quote}”: is “{other}” meant?"
    return note_of(CONFUSED, (one.start, one.end), why, min(1.0, one.gain / 15))


def wrong_words(
    model: SurprisalModel,
    document: Document,
    advance: Callable[[int], object] = int,
    whole_words: int = WHOLE_WORDS,
) -> list[WrongWord]:
    """Words that may be wrong, in text order; stretches that were read before are not read again.

    A text of up to `whole_words` words is read whole. `advance` is called with the characters that
    are done and may raise to stop: what was read is kept. Raises `ModelError` from the model.
    """
    text = without_headings(document).translate(_PLAIN)
    # A word that is also in lower case is not a name.
    small = Counter(_LOWER.findall(text))
    names = {word for word in _CAPITALISED.findall(text) if word.lower() not in small}
    stretches = list(suspected(text, suspects(text)))
    if count_words(document.text) <= whole_words:
        stretches = sorted((*stretches, *_stretches(text)), key=lambda stretch: stretch.end)
    kept: Kept[list[WrongWord]] = Kept(
        _decided(model),
        lambda found: [list(astuple(one)) for one in found],
        lambda _, rows: [WrongWord(*row) for row in rows],
    )
    known = kept.find([stretch.key for stretch in stretches])
    broad = [span for span in paragraph_spans(text) if BROAD.search(text, *span)]
    left_out = _STANDARD if is_broad(text) else ()
    found: dict[int, WrongWord] = {}
    n_done = 0
    for stretch in stretches:
        results = known.get(stretch.key)
        if results is None:
            results = _read(model, stretch)
            kept.keep({stretch.key: results})
        for one in results:
            start = stretch.place(one.start)
            placed = replace(one, start=start, end=start + one.end - one.start)
            word = text[placed.start : placed.end]
            is_name = word in names and one.kind != "possessive"
            is_meant = one.kind in left_out or (one.kind in _ONCE and small[word] > 1)
            is_known = start in found and one.kind != "context"
            if not (is_known or is_name or is_meant or overlaps((start, placed.end), broad)):
                found[start] = placed
        advance(stretch.end - n_done)
        n_done = stretch.end
    advance(len(text) - n_done)
    return [found[start] for start in sorted(found)]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Paragraphs that are read together, after the words before them."""

    context: str
    paragraphs: tuple[tuple[int, str], ...]
    """Where each begins in the text, and its characters, with single line breaks as spaces."""
    word: WrongWord | None = None
    """The only word that is suspected."""
    margin: float = 0.0
    """What the other one must gain."""

    @property
    def text(self) -> str:
        return "\n".join(words for _, words in self.paragraphs)

    @property
    def key(self) -> str:
        suspected = f"\n\n{self.word} {self.margin:.3f}" if self.word else ""
        return f"{self.context}\n\n{self.text}{suspected}"

    @property
    def end(self) -> int:
        start, words = self.paragraphs[-1]
        return start + len(words)

    def place(self, place: int) -> int:
        """Where a place of its text is in the whole text."""
        for start, words in self.paragraphs:
            if place <= len(words):
                return start + place
            place -= len(words) + 1
        raise ValueError("the place is not in the stretch")


def _stretches(text: str) -> Iterator[_Stretch]:
    row: list[tuple[int, str]] = []
    context, n_chars, is_over = "", 0, False
    for start, words in _paragraphs(text):
        if row and (is_over or n_chars + len(words) > _MAX_CHARS):
            yield _Stretch(context, tuple(row))
            context, row, n_chars = _last_words(context, row), [], 0
        row.append((start, words))
        n_chars += len(words)
        is_over = n_chars >= _MIN_CHARS and zlib.crc32(words.encode()) % _ONE_IN == 0
    if row:
        yield _Stretch(context, tuple(row))


def suspected(text: str, words: Iterable[Suspect]) -> Iterator[_Stretch]:
    """What is read of each suspected word: the end of what is before it, and a few words after."""
    paragraphs, k = list(_paragraphs(text)), -1
    for start, end, other, below in words:
        while k + 1 < len(paragraphs) and paragraphs[k + 1][0] <= start:
            k += 1
        if k < 0 or end > paragraphs[k][0] + len(paragraphs[k][1]):
            continue  # Verse.
        begin, read = paragraphs[k]
        context = _last_words("", paragraphs[max(0, k - _MAX_BEFORE) : k])
        if start - begin > _CONTEXT_CHARS:
            cut = read.find(" ", start - begin - _CONTEXT_CHARS) + 1
            begin, read, context = begin + cut, read[cut:], ""
        read = read[: end - begin + _AFTER_CHARS]
        own = text[start:end]
        other = other.capitalize() if own[0].isupper() else other
        word = WrongWord(start - begin, end - begin, other, 0.0, "context")
        yield _Stretch(context, ((begin, read),), word, MARGINS["context"] + below)


def _last_words(context: str, row: Sequence[tuple[int, str]]) -> str:
    read = "\n".join([context, *(words for _, words in row)]).strip()
    return read if len(read) <= _CONTEXT_CHARS else read[-_CONTEXT_CHARS:].partition(" ")[2]


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """The start and the characters of each paragraph of prose; long ones in parts."""
    for first, last in paragraph_spans(text):
        lines = [line.lstrip(" \t_\"'") for line in text[first:last].split("\n")]
        capitals = [line for line in lines if line[:1].isupper()]
        if len(lines) >= _MIN_VERSE and len(capitals) >= _VERSE_SHARE * len(lines):
            continue
        for part in re.finditer(rf"\S.{{,{_MAX_CHARS - 2}}}(?!\w)", text[first:last], re.DOTALL):
            yield first + part.start(), encodable(_SPACE.sub(" ", part[0].rstrip()))


def _swaps(stretch: _Stretch) -> Iterator[tuple[WrongWord, Swap]]:
    """What may be wrong in a stretch, with what would be read for it."""
    text = stretch.text
    if stretch.word is not None:
        yield stretch.word, _swap(text, stretch.word, stretch.margin)
        return
    for start, end, other, kind in _others(text):
        one = WrongWord(start, end, other, 0.0, kind)
        yield one, _swap(text, one, MARGINS[kind])
    for match in _QUESTION.finditer(text):
        mark = text[match.end()]
        swap = Swap(match.end(1), match.end() + 1, f"?{mark}", MARGINS["question"])
        yield WrongWord(*match.span(), f"{match[1]}?", 0.0, "question"), swap
    for match in _ADDRESS.finditer(text):
        swap = Swap(match.end(1), match.end(1), ",", MARGINS["address"])
        yield WrongWord(*match.span(), f"{match[1]}, {match[2]}", 0.0, "address"), swap
    for match in _RUN_ON.finditer(text):
        after = match[2][0].upper() + match[2][1:]
        swap = Swap(match.end(1), match.end(), f". {after}", MARGINS["sentence"], -2.0)
        yield WrongWord(*match.span(), f"{match[1]}. {after}", 0.0, "sentence"), swap
    for match in _LOWER.finditer(text):
        (start, end), word = match.span(), match[0]
        is_free = text[start - 1 : start] == " " and text[end : end + 1] != "-"
        for small in _SMALL if is_free else ():
            swap = Swap(start - 1, start - 1, f" {small}", MARGINS["missing"], _MISSING_GAINS)
            yield WrongWord(start, end, f"{small} {word}", 0.0, "missing"), swap


def _swap(text: str, word: WrongWord, margin: float) -> Swap:
    # Tokens begin with the space before a word.
    space = " " * text[: word.start].endswith(" ")
    begin = word.start - len(space)
    return Swap(begin, word.end, space + word.other, margin, margin - _LACKS)


def _others(text: str) -> Iterator[tuple[int, int, str, str]]:
    """Words and phrases for which others may be meant: the place, the other one, and the kind."""
    for match in _pattern().finditer(text):
        (start, end), word = match.span(), match[0]
        is_name = word[0].isupper() and _CAPITALISED.match(text, start)
        if is_name or (word.isupper() and len(word) > 1):
            continue
        for other, kind in alternatives().get(word.lower(), {}).items():
            if not (kind == "verb" and _GENERAL.search(text, max(0, start - 6), start)):
                yield start, end, other.capitalize() if word[0].isupper() else other, kind
    for match in _PLURAL.finditer(text):
        noun, start = match[1] or match[2], match.start(match.lastindex or 0)
        if f"{noun}s" not in alternatives():
            for other in (f"{noun}s", f"{noun}'s", f"{noun}s'"):
                if other != text[start : match.end()]:
                    yield start, match.end(), other, "possessive"
    for match in _LOWER.finditer(text):
        for other, kind in _unlisted(match[0]):
            yield *match.span(), other, kind


@cache
def _unlisted(word: str) -> Sequence[tuple[str, str]]:
    """Other forms of a verb, a name, and words a letter away, where the word is in no set."""
    zipf = frequencies().zipf
    if not word.isalpha() or len(word) < 3:
        return ()
    others = {form: "verb" for form in _forms(word) if zipf(form) >= _LEAST_ZIPF}
    others |= {word.capitalize(): "name"} if _NAME_ZIPF[0] <= zipf(word) < _NAME_ZIPF[1] else {}
    least = max(_LEAST_ZIPF, zipf(word) + _MORE_ZIPF)
    if zipf(word) < _RARE_ZIPF and len(word) >= _MIN_LETTERS:
        others |= {other: "spelling" for other in _near(word) if zipf(other) >= least}
    return [pair for pair in others.items() if pair[0] not in alternatives().get(word, {})]


def _forms(word: str) -> Sequence[str]:
    """Of a regular verb: its third person and its past, or the past alone."""
    zipf = frequencies().zipf
    for base in (word, word[:-1], word[:-2], re.sub("ies$", "y", word)):
        if len(base) < 3 or base.endswith(("s", "ing")):
            continue
        stem = re.sub("(?<=[^aeiou])y$", "i", base)
        third = stem + ("es" if re.search("(?:i|x|z|ch|sh)$", stem) else "s")
        pasts = [stem + ("d" if base.endswith("e") else "ed"), f"{base}{base[-1]}ed"]
        past = max(pasts, key=zipf)
        if word in (base, third) and zipf(past) >= _VERB_ZIPF:
            return (past,) if word == third else (third, past)
    return ()


def _near(word: str) -> Iterator[str]:
    """What one letter changed, added, left out or exchanged with the next makes, and two words."""
    for k in range(len(word) + 1):
        before, after = word[:k], word[k:]
        yield before + after[1:]
        if min(frequencies().zipf(before), frequencies().zipf(after)) >= _PART_ZIPF:
            yield f"{before} {after}"
        yield f"{before}{after[1:2]}{after[:1]}{after[2:]}"
        for letter in ascii_lowercase:
            yield before + letter + after
            yield before + letter + after[1:]


def _read(model: SurprisalModel, stretch: _Stretch) -> list[WrongWord]:
    """The best other word of each place that gains enough: by how much more than it must, since a
    margin says how seldom a word is written for another."""
    before = f"{stretch.context}\n" if stretch.context else ""
    pairs = list(_swaps(stretch))
    n = len(before)
    moved = [replace(swap, start=swap.start + n, end=swap.end + n) for _, swap in pairs]
    gains: list[Any] = model.gains(before + stretch.text, moved) if pairs else []
    best: dict[int, tuple[float, WrongWord]] = {}
    for (one, swap), gain in zip(pairs, gains, strict=True):
        if gain is not None and gain - swap.least > best.get(one.start, (-1.0, one))[0]:
            best[one.start] = gain - swap.least, replace(one, gain=round(gain, 3))
    return [best[start][1] for start in sorted(best)]
