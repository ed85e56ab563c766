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
from functools import lru_cache

from fabula.text.sentences import paragraph_spans
from fabula.text.words import word_set

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
SAYING = word_set(
    "said says say saying asked asks ask cried cries cry replied replies reply answered",
    "answers answer exclaimed exclaims exclaim shouted shouts shout whispered whispers",
    "whisper called calls added adds add murmured murmurs muttered mutters continued",
    "continues began begins thought thinks demanded demands returned remarked remarks",
    "observed declared declares begged begs sobbed laughed laughs screamed screams growled",
    "growls repeated repeats told tells inquired enquired protested suggested explained",
    "explains yelled yells snapped hissed gasped sighed groaned bellowed barked croaked",
    "mumbled stammered announced insisted admitted agreed offered urged pleaded roared",
    "snarled interrupted responded responds chimed",
)
"""Verbs of saying, in the forms found beside speech."""

_DOUBLE = '"“”„‟＂'
_SINGLE = "'‘’‚‛`´"
_PAIRS = {"«": "«»", "‹": "‹›"}
_MARK = re.compile(rf"``|[{_DOUBLE}{_SINGLE}«»‹›]")
_MARK_PAIRED = re.compile(rf"``|''|[{_DOUBLE}{_SINGLE}«»‹›]")
_ALL_MARKS = frozenset(_DOUBLE + _SINGLE + "«»‹›")
# Two apostrophes are a double mark only in texts that open with two of either kind.
_PAIRED = re.compile(r"``|(?<![^\s(\[—–-])''(?=[^\W\d_])")
_OPENS_BY_SHAPE = frozenset(("“", "„", "‟", "``", "‘", "‚", "‛", "`"))
_CLOSES_BY_SHAPE = frozenset(("”", "''"))
_BEFORE, _AFTER = frozenset("([{<—–-―*_/"), frozenset(".,;:!?)]}>…—–-―*_/")
_ENDS = frozenset(".,;:!?…—–-―)]*_")

_ELISIONS = word_set(
    "tis twas twill twould twere tisn twasn twon twouldn tain em til till cause cos cuz coz",
    "bout round n nd neath gainst fore tween twixt mongst nuff nother tude ol fraid spose",
    "scuse pon ware stead lectric cept",
)
"""Words that begin with an apostrophe, which never opens a quotation."""
_DROPPED_H = word_set(
    "e ello enry arry ave ad adn ouse ome ow alf undred ead eart orse appen im imself isself",
    "er ere ell igh eard elp ark ope onest ard old alloween urry it and is as",
)
_CLITIC = re.compile(r"(?:s|m|d|re|ve|ll|t)(?![\w'’])", re.IGNORECASE)
_DROPPED_END = word_set("o th an n ol wi t d y de fo mo lil po jus")
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_WORD_BEFORE = re.compile(r"[^\W\d_]+\Z")
_SENTENCE_END = re.compile(rf"[.!?…]+[{_DOUBLE}{_SINGLE})\]]*(?=\s|\Z)")

_MAX_SCARE_WORDS = 3
_WINDOW = 80
"""Characters of context around a mark."""
_MAX_SENTENCE = 1000
_MANY = 3
"""Number of quotations from which a text is taken to use a mark."""
_MAX_MARKS_IN_A_ROW = 4
_MAX_MARKS = 100
"""A quotation has at most this many marks, which bounds the work on unusual texts."""


@dataclass(frozen=True, slots=True)
class Quotation:
    """A span between quotation marks or after a dash: half-open in characters, with its marks."""

    start: int
    end: int
    is_speech: bool
    """False for scare quotes and titles, and for single quotes in a text that uses double ones."""
    is_closed: bool = True
    """False if one of the two marks is missing; then it extends to the end of a sentence."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """How well a mark opens and closes: 0 not at all, 1 if nothing else does, 2 or 3 well."""

    start: int
    end: int
    paragraph: int
    opens: int
    closes: int
    is_head: bool
    """Whether it is at the start of its paragraph, or of a sentence if those are unknown."""
    begins: bool
    """Whether a sentence or a clause seems to begin with it."""
    begins_sentence: bool


_Pair = tuple[int, int, bool]
"""A quotation's span, and whether it is closed."""


class _Reader:
    """Decides which quotations of a text are speech, by the marks in its paragraphs."""

    def __init__(self, text: str, has_paragraphs: bool) -> None:
        self.text = text
        self.has_paragraphs = has_paragraphs
        self.paragraphs = paragraph_spans(text) if has_paragraphs else [(0, len(text))]
        is_paired = any(not _is_elision(text, m.end()) for m in _PAIRED.finditer(text))
        pattern = _MARK_PAIRED if is_paired else _MARK
        self.marks: dict[str, list[_Mark]] = {"double": [], "single": [], "«": [], "‹": []}
        matches = (
            (number, low, high, *match.span())
            for number, (low, high) in enumerate(self.paragraphs)
            for match in pattern.finditer(text, low, high)
        )
        for number, low, high, start, end in matches:
            sign = text[start:end]
            head, after = self.before(start, low), self._neighbour(end, 1, high)
            before = self._neighbour(start - 1, -1, low)
            opens, closes = _by_place(before, after, sign)
            kind = next((kind for kind in "«‹" if sign in _PAIRS[kind]), "double")
            if len(sign) == 1 and sign in _SINGLE:
                kind = "single"
                is_inner = text[start - 1 : start].isalnum() and text[end : end + 1].isalnum()
                if is_inner or (before.isspace() and _CLITIC.match(text, end)):
                    continue
                opens = self._opening(start, head) if opens else 0
                closes = self._closing(start, head) if closes and head else 0
            elif before.isdigit() and sign in '"＂':
                # Inches; they close a quotation only if nothing else does.
                opens, closes = 0, 1
            if opens or closes:
                is_head = not head
                if not has_paragraphs:
                    is_head = is_head or head[-1] in ".!?…" or head[-1] in _ALL_MARKS
                is_sentence = head[-1:] in tuple(".!?…") and self.after(end, high)[:1].isupper()
                self.marks[kind].append(
                    _Mark(start, end, number, opens, closes, is_head, _pauses(head), is_sentence)
                )

    def before(self, place: int, low: int) -> str:
        """The last words of the paragraph before a position."""
        return self.text[max(low, place - _WINDOW) : place].rstrip()

    def after(self, place: int, high: int) -> str:
        """The next words of the paragraph after a position."""
        return self.text[place : min(high, place + _WINDOW)].lstrip()

    def _neighbour(self, place: int, step: int, edge: int) -> str:
        """The next character that is not a mark; a space at the paragraph's end."""
        for k in range(place, place + step * _MAX_MARKS_IN_A_ROW, step):
            if (k < edge) if step < 0 else (k >= edge):
                return " "
            if self.text[k] not in _ALL_MARKS:
                return self.text[k]
        return " "

    def _opening(self, start: int, head: str) -> int:
        """How well an apostrophe opens, if its position allows it."""
        text, end = self.text, start + 1
        after = text[end : end + 1]
        if after.isspace():
            # The treebank's tokens are separated by spaces; so are some curly marks.
            is_curly = text[start] in "‘`‚" and head[-1:] not in _ALL_MARKS
            is_token = (
                head[-1:] in ("", ",", ":", ";", "-", "—")
                and self.after(end, len(text))[:1].isupper()
            )
            return 3 if is_curly or is_token else 0
        may = after.isalpha() or after in "…—–" or after in _ALL_MARKS or text.startswith("..", end)
        if not after or not may or _is_elision(text, end):
            return 0
        word = WORD.match(text, end)
        if word is not None and word[0].split("’")[0].split("'")[0] in _DROPPED_H:
            return 1
        # Speech may begin after a pause, or a verb of saying.
        verb = _WORD_BEFORE.search(head)
        return 3 if _pauses(head) or (verb and verb[0].lower() in SAYING) else 2

    def _closing(self, start: int, head: str) -> int:
        """How well an apostrophe closes, if its position allows it."""
        if head[-1] in _ENDS or head[-1] in _ALL_MARKS:
            return 3
        word = _WORD_BEFORE.search(head)
        if word is None:
            return 1
        last = word[0].lower()
        is_dropped = last in _DROPPED_END or (len(last) > 3 and last.endswith("in"))
        follows = self.after(start + 1, len(self.text))[:1]
        is_plural = last.endswith(("s", "x", "z")) and follows.isalpha()
        return 1 if is_dropped or is_plural else 2

    def quotations(self, kind: str) -> list[_Pair]:
        """Pairs of marks of a kind; an unpaired double mark takes a sentence."""
        marks, pairs, k = self.marks[kind], list[_Pair](), 0
        while k < len(marks):
            mark = marks[k]
            last = self._close_of(marks, k, kind) if mark.opens else None
            reached = self._beyond(marks, k) if mark.opens and last is None else None
            if last is not None:
                pairs.append((mark.start, marks[last].end, True))
            elif reached is not None:
                pairs.append((mark.start, reached[0], True))
            elif kind != "single" and mark.opens:
                pairs.append((mark.start, self._sentence_end(marks, k, len(pairs)), False))
            elif (
                kind != "single"
                and mark.closes > 1
                and (k == 0 or marks[k - 1].paragraph != mark.paragraph)
            ):
                pairs.append((self._sentence_start(mark), mark.end, False))
            k = last + 1 if last is not None else reached[1] if reached is not None else k + 1
        return pairs

    def _close_of(self, marks: Sequence[_Mark], k: int, kind: str) -> int | None:
        """The index of the mark that closes what this one opens."""
        poor = None
        for j in range(k + 1, min(k + 1 + _MAX_MARKS, len(marks))):
            mark = marks[j]
            if mark.paragraph != marks[k].paragraph:
                break
            if mark.closes > 1:
                return j
            # An apostrophe that clearly opens: then the one before it was never closed.
            is_new = mark.opens == 3 and mark.begins and (poor is not None or mark.begins_sentence)
            if mark.opens and (kind != "single" or is_new):
                break
            if mark.closes and poor is None:
                poor = j
        if poor is None or kind != "single":
            return poor
        # An unlikely apostrophe may close after up to three words, or before a verb of saying.
        n_words = len(WORD.findall(self.text[marks[k].end : marks[poor].start]))
        after = WORD.findall(self.after(marks[poor].end, len(self.text)))[:3]
        may_close = n_words <= _MAX_SCARE_WORDS or any(word.lower() in SAYING for word in after)
        return poor if may_close else None

    def _beyond(self, marks: Sequence[_Mark], k: int) -> tuple[int, int] | None:
        """The provisional end of a speech of several paragraphs, and the index of the next mark."""
        mark = marks[k]
        near = range(k + 1, min(k + 1 + _MAX_MARKS, len(marks)))
        after = next((j for j in near if marks[j].opens > 1 or marks[j].closes > 1), None)
        if after is None or mark.opens < 3 or not mark.begins:
            return None
        follows = marks[after]
        if self.has_paragraphs and follows.paragraph != mark.paragraph + 1:
            return None
        if follows.opens and follows.is_head:
            end = self.paragraphs[mark.paragraph][1] if self.has_paragraphs else follows.start
            return self.stripped(mark.start, end), after
        if follows.closes > 1 and not follows.opens:
            return follows.end, after + 1
        return None

    def _sentence_end(self, marks: Sequence[_Mark], k: int, n_before: int) -> int:
        start, (_, high) = marks[k].start, self.paragraphs[marks[k].paragraph]
        is_last = k + 1 == len(marks)
        # If the text ends here in mid-sentence, its last speech may too.
        if is_last and (
            not self.has_paragraphs
            or (n_before >= _MANY and high == len(self.text) and self.text.rstrip()[-1:].isalnum())
        ):
            return self.stripped(start, high)
        if not is_last:
            high = min(high, marks[k + 1].start)
        match = _SENTENCE_END.search(self.text, marks[k].end, high)
        return self.stripped(start, high if match is None else match.end())

    def _sentence_start(self, mark: _Mark) -> int:
        low, _ = self.paragraphs[mark.paragraph]
        if not self.has_paragraphs:
            return low
        low = max(low, mark.start - _MAX_SENTENCE)
        before = self.text[low : mark.start].rstrip(".!?…, ")
        start = max((match.end() for match in _SENTENCE_END.finditer(before)), default=0) + low
        return mark.start - len(self.text[start : mark.start].lstrip())

    def stripped(self, start: int, end: int) -> int:
        """The end of a span without its trailing space."""
        return start + len(self.text[start:end].rstrip())

    def paragraph_of(self, place: int) -> tuple[int, int]:
        """The paragraph that contains a character."""
        return self.paragraphs[max(bisect_right(self.paragraphs, (place, math.inf)) - 1, 0)]

    def is_speech(self, start: int, end: int) -> bool:
        """Whether a quotation is more than scare quotes or a title."""
        low, high = self.paragraph_of(start)
        inner = self.text[start:end].strip("".join(_ALL_MARKS) + " \n\t")
        words = WORD.findall(inner)
        if not words:
            return False
        is_title = words[0][:1].isupper() and all(w[:1].isupper() or w in _SMALL for w in words)
        if len(words) > _MAX_SCARE_WORDS and not is_title:
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
        lines = [
            (match.start(1), end, match[1])
            for start, end in self.paragraphs
            if (match := _DASH.match(self.text, start, end))
        ]
        # Hyphens also mark lists, whose lines do not end like sentences.
        spoken = [
            (start, end)
            for start, end, dash in lines
            if dash != "-" or self.text[start:end].rstrip()[-1:] in tuple(".!?…")
        ]
        talks = any(
            _TALK.search(self.text, start, end) is not None
            or any(word.lower() in SAYING for word in WORD.findall(self.text[start:end]))
            for start, end in spoken
        )
        if talks and 2 * len(spoken) >= len(lines):
            for start, end, _ in lines:
                # Without speech tags between two dashes.
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


@lru_cache(4)
def quotations_of(text: str, *, has_paragraphs: bool = True) -> list[Quotation]:
    """All quotations of a text in order, without nesting.

    Without `has_paragraphs`, the text is sentences from a longer one: an opening mark at the start
    of a sentence may begin a paragraph of the same speech, and the text may begin and end in one.
    """
    reader = _Reader(text, has_paragraphs)
    pairs = {kind: reader.quotations(kind) for kind in reader.marks}
    doubles, singles = _outermost(pairs["double"], pairs["«"], pairs["‹"]), pairs["single"]
    is_single = _n_spoken(reader, singles, doubles) > _MUCH * _n_spoken(reader, doubles, singles)
    if is_single:
        kept, thought = _outermost(singles, doubles), set[_Pair]()
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
    if len(dashed) <= _MUCH * sum(quote.is_speech for quote in quotations):
        return quotations
    others = set(_apart(kept, dashed))
    quotations = [q for q in quotations if (q.start, q.end, q.is_closed) in others]
    quotations += [Quotation(start, end, True) for start, end, _ in dashed]
    return sorted(quotations, key=lambda quote: quote.start)


def speech_spans(text: str, *, has_paragraphs: bool = True) -> list[tuple[int, int]]:
    """The spans of speech: half-open in characters, marks included, in order and disjoint."""
    quotations = quotations_of(text, has_paragraphs=has_paragraphs)
    return [(quote.start, quote.end) for quote in quotations if quote.is_speech]


def flags_within(places: Iterable[int], spans: Sequence[tuple[int, int]]) -> list[bool]:
    """Whether each character position is in a span; both are in order, and spans disjoint."""
    flags: list[bool] = []
    k: int | None = None
    for place in places:
        if k is None:
            # Compared as pairs, so that the starts need not be copied for each sentence of a book.
            k = bisect_right(spans, (place, math.inf)) - 1
        while k + 1 < len(spans) and spans[k + 1][0] <= place:
            k += 1
        flags.append(k >= 0 and place < spans[k][1])
    return flags


def _outermost(*kinds: Sequence[_Pair]) -> list[_Pair]:
    """Quotations of several kinds without those that others contain or overlap."""
    kept: list[_Pair] = []
    for pair in sorted((pair for pairs in kinds for pair in pairs), key=lambda p: (p[0], -p[1])):
        if not kept or pair[0] >= kept[-1][1]:
            kept.append(pair)
    return kept


def _apart(pairs: Sequence[_Pair], others: Sequence[_Pair]) -> list[_Pair]:
    """The pairs that share no character with the others, which are in order and disjoint."""
    starts = [start for start, _, _ in others]
    numbered = ((pair, bisect_left(starts, pair[1]) - 1) for pair in pairs)
    return [pair for pair, k in numbered if k < 0 or others[k][1] <= pair[0]]


def _n_spoken(reader: _Reader, pairs: Sequence[_Pair], others: Sequence[_Pair]) -> int:
    """How many end like speech, or have a speaker, and are in none of the others."""
    marks = "".join(_ALL_MARKS) + " "
    within = flags_within((start - 1 for start, _, _ in pairs), [(a + 1, b) for a, b, _ in others])
    return sum(
        closed
        and not inside
        and (
            reader.text[start:end].rstrip(marks)[-1:] in _SPEECH_ENDS or reader.is_told(start, end)
        )
        for (start, end, closed), inside in zip(pairs, within, strict=True)
    )


def _by_place(before: str, after: str, shown: str) -> tuple[int, int]:
    """Whether a mark opens and closes, by its neighbours, or else by its shape."""
    left, right = before.isspace() or before in _BEFORE, after.isspace() or after in _AFTER
    if before.isspace() and after in "…—–-―":
        right = False
    if after.isspace() and before in "—–-―":
        left = False
    if left != right:
        return (3, 0) if left else (0, 3)
    if shown in _OPENS_BY_SHAPE:
        return 3, 0
    if shown in _CLOSES_BY_SHAPE:
        return 0, 3
    return 3, 3


def _pauses(head: str) -> bool:
    """Whether a sentence or a clause ends with these words, so that another may begin."""
    return not head or head[-1] in _ENDS or head[-1] in _ALL_MARKS or head[-1] in _BEFORE


def _is_elision(text: str, place: int) -> bool:
    word = WORD.match(text, place)
    return word is not None and re.split("['’]", word[0])[0].lower() in _ELISIONS
