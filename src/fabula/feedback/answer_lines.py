"""Split an editor's answer into remarks and other lines: records as JSON, or else lines.

A model that is held to a schema answers in JSON; others sometimes do so by themselves. Otherwise
they answer in lists with dashes, numbers (bold or not) or headings, with remarks below each other
or nested, as block quotations with a comment below, as tables, or as paragraphs; around them there
may be a greeting, headings and a closing line.

Quotations from the draft are found ignoring differences in case, spaces and punctuation.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from fabula.models.base import RecordField, Records
from fabula.text import TextSettings
from fabula.text.sentences import overlaps

_DOUBLE, _SINGLE = '"“”„‟«»‹›', "'‘’‚"
_OPENING, _CLOSING = "“„«‹‘‚", "”»›’"
_LEFT_OUT = re.compile(r"\[?(?:\.{3,}|…)\]?")
_MIN_CHARS = 4
_MAX_MARKS = 12
_MAX_QUOTED_CHARS = 600


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
        if len(parts) > 1:
            chains = sorted(chains, key=lambda chain: chain[1] - chain[0])[:1]
        elif " " not in parts[0] and (len(chains) > 1 or len(parts[0]) < _MIN_CHARS):
            return []
        return [(self.places[start], self.places[end - 1] + 1) for start, end in chains]

    def _all(self, part: str) -> Iterator[int]:
        at = self.folded.find(part)
        while at >= 0:
            before, after = self.folded[at - 1 : at], self.folded[at + len(part) :][:1]
            if not ((before.isalnum() and part[0].isalnum()) or after.isalnum()):
                yield at
            at = self.folded.find(part, at + 1)


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
        pairs += [(a + 1, b) for a in begin for b in end if 1 < b - a <= _MAX_QUOTED_CHARS]
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


_QUOTATION = RecordField(
    "quotation", "the words of the draft, copied exactly, without quotation marks", n_chars=200
)
_POINTS, _NOTES = "points", "notes"
_BEGIN = re.compile(rf'\{{\s*"(?:{_POINTS}|{_NOTES})"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_END = re.compile(r"\]\s*\}?")
_FENCE = re.compile(r"\s*(?:```|~~~)\w*\s*")
_SEVERITIES = (1, 2, 3)


def point_form(n_points: int) -> Records:
    """Points, each with the words that it is about and how much it matters."""
    severity = RecordField("severity", "how much it matters", numbers=_SEVERITIES[::-1])
    remark = RecordField("remark", "what is wrong there and what could be done about it")
    return Records(_POINTS, (_QUOTATION, severity, remark), n_points)


def note_form(n_notes: int) -> Records:
    """Facts, each with the words that state it."""
    return Records(_NOTES, (_QUOTATION, RecordField("remark", "the fact", n_chars=200)), n_notes)


@dataclass(slots=True)
class Entry:
    """A possible remark: its text without Markdown, and what was emphasised in it."""

    text: str
    emphasised: tuple[str, ...] = ()
    indent: int = 0
    has_children: bool = False
    quotation: str | None = None
    """In a record, the words that it is about, and how much it matters."""
    severity: int | None = None

    def add(self, line: str) -> None:
        self.text = f"{self.text} {without_marks(line)}"
        self.emphasised += _emphasised(line)


@dataclass(slots=True)
class AnswerLines:
    """The entries of an answer in order, and the number of its other lines by kind."""

    items: list[Entry] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)
    """By `preamble`, `heading`, `closing`."""
    is_json: bool = False
    n_broken: int = 0
    """Records without a quotation or a remark, and one that the answer breaks off in."""


def answer_records(answer: str) -> AnswerLines | None:
    """The records of an answer; None if it has no such list."""
    begin = _BEGIN.search(answer)
    if begin is None:
        return None
    read, at = json.JSONDecoder(strict=False).raw_decode, begin.end()
    lines = AnswerLines(is_json=True)
    while True:
        gap = _BETWEEN.match(answer, at)
        at = gap.end() if gap else at
        if (end := _END.match(answer, at)) is not None:
            at = end.end()
            break
        try:
            value, at = read(answer, at)
        except (ValueError, RecursionError):
            # It breaks off, or goes on in another language.
            lines.n_broken, at = lines.n_broken + 1, len(answer)
            break
        fields = value if isinstance(value, dict) else {}
        quotation, remark = fields.get("quotation"), fields.get("remark")
        if not (isinstance(quotation, str) and isinstance(remark, str)):
            lines.n_broken += 1
            continue
        level = str(fields.get("severity", ""))
        severity = int(level) if level in map(str, _SEVERITIES) else None
        remark, quotation = " ".join(remark.split()), " ".join(quotation.split())
        lines.items.append(Entry(remark, quotation=quotation, severity=severity))
    lines.others["preamble"] = _n_lines(answer[: begin.start()])
    lines.others["closing"] = _n_lines(answer[at:])
    lines.others = +lines.others
    return lines


def _n_lines(text: str) -> int:
    has_words = TextSettings().has_words
    return sum(has_words(line) and not _FENCE.fullmatch(line) for line in text.splitlines())


_ITEM = re.compile(
    r"(?i)^(?P<indent>[ \t]*)(?:#{1,6}[ \t]*)?(?:\*\*|__)?"
    r"(?:(?:point|issue|problem|note|suggestion|comment)\s*#?\d{1,2}\s*[.:)–-]"
    r"|[-*•–—▪◦‣·+➤](?![-*_])|[(\[]?\d{1,2}\\?[.):\]]|\d\ufe0f?\u20e3|\(?[a-h]\))"
    r"(?:\*\*|__)?(?:[ \t]+|(?=[\"“„«‘'`]))"
)
_RULE = re.compile(r"\W*")
_EMPHASISED = re.compile(
    r"\*\*(.+?)\*\*|__(.+?)__|(?<!\*)\*([^*\n]+)\*(?!\*)|(?<!_)_([^_\n]+)_(?!_)"
)
_HEADING = re.compile(r"\s*(?:#{1,6}\s.*|\*\*[^*]+\*\*:?|__[^_]+__:?)\s*")
_LINK = re.compile(r"\[([^\]\n]+)\]\([^)\s]*\)")
_SINGLE_STAR = re.compile(r"(?<![\w*])([*_])(?=\S)([^*_\n]+?)(?<=\S)\1(?![\w*])")
_ESCAPED = re.compile(r"\\([*_#.()`\-\]\[])")
_MIN_SAID = 3


def answer_lines(answer: str, draft: QuotableText) -> AnswerLines:
    """Split an answer into entries; every line with words belongs to one of them, or is counted."""
    reader = _Reader(draft, is_list=any(map(_ITEM.match, answer.splitlines())))
    for line in answer.splitlines():
        reader.take(line)
    return reader.finish()


class _Reader:
    def __init__(self, draft: QuotableText, *, is_list: bool) -> None:
        self._draft, self._is_list = draft, is_list
        self._lines = AnswerLines()
        self._current: Entry | None = None
        self._outside: list[str] = []
        """Lines after the last item, until it is known whether another item follows."""
        self._is_after_gap = False

    def take(self, line: str) -> None:
        if not line.strip():
            self._is_after_gap = True
            return
        if _RULE.fullmatch(line):
            return
        match = _ITEM.match(line)
        if line.lstrip().startswith("|"):
            line, match = " — ".join(cell.strip() for cell in line.strip(" |").split("|")), None
        if line.lstrip().startswith(">"):
            # A block quotation counts as quoted, with quotation marks or without.
            line = line.lstrip("> \t")
            self._begin(line if quoted_parts(line) else f"“{without_marks(line).strip()}”", 0)
        elif match is not None:
            body, parent = line[match.end() :], self._current
            indent = 0 if line.lstrip().startswith("#") else len(match["indent"].expandtabs(4))
            quoted, is_more = self._quoted(body), False
            if parent is not None and indent > parent.indent:
                # A nested entry counts if it is about another place than its parent.
                theirs = quotations_in(parent.text, parent.emphasised, self._draft)
                known = [place for _, _, found_places in theirs for place in found_places]
                is_more = all(overlaps(place, known) for *_, places in quoted for place in places)
                parent.has_children = parent.has_children or not is_more
            if parent is not None and is_more:
                parent.add(body)
            elif not quoted and _HEADING.fullmatch(line) and "#" in line[:7]:
                self._heading()
            else:
                self._begin(body, indent)
        else:
            self._line(line)
        self._is_after_gap = False

    def _line(self, line: str) -> None:
        has_quotation, says_something = bool(self._quoted(line)), False
        if self._current is not None:
            # Whether it has words besides what it quotes.
            text = self._current.text
            quoted = quotations_in(text, (), self._draft)
            rest = text if not quoted else text[: quoted[0][0]] + " " + text[quoted[0][1] :]
            says_something = len(TextSettings().words(rest)) >= _MIN_SAID
        if _HEADING.fullmatch(line) and not has_quotation:
            self._heading()
        elif self._current is None:
            if has_quotation and not (self._is_list and line.rstrip().endswith(":")):
                self._begin(line, 0)
            else:
                self._outside.append(line)
        elif not says_something:
            self._current.add(line)
        elif has_quotation and (self._is_after_gap or not self._is_list):
            self._begin(line, 0)
        elif self._is_after_gap or self._outside:
            self._outside.append(line)
        else:
            self._current.add(line)

    def _heading(self) -> None:
        self._settle()
        self._current = None
        self._lines.others["heading"] += 1

    def _begin(self, body: str, indent: int) -> None:
        self._settle()
        item = Entry(without_marks(body), _emphasised(body), indent)
        self._lines.items.append(item)
        self._current = item

    def _settle(self) -> None:
        """Another item follows: the lines before it belong to the previous one, or the preamble."""
        if self._current is not None:
            for line in self._outside:
                self._current.add(line)
        elif not self._lines.items:
            self._lines.others["preamble"] += len(self._outside)
        else:
            self._lines.items += [Entry(without_marks(line)) for line in self._outside]
        self._outside = []

    def finish(self) -> AnswerLines:
        if self._lines.items:
            self._lines.others["closing"] += len(self._outside)
        else:
            # Only lines without a place: they are remarks all the same.
            self._lines.items += [Entry(without_marks(line)) for line in self._outside]
        self._lines.others = +self._lines.others
        return self._lines

    def _quoted(self, line: str) -> list[tuple[int, int, list[tuple[int, int]]]]:
        return quotations_in(without_marks(line), _emphasised(line), self._draft)


def quotations_in(
    text: str, emphasised: tuple[str, ...], draft: QuotableText
) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """Find the quotations of the draft in an entry: their places in the entry and in the draft.

    In the order of the entry, the outermost first. Emphasised text counts as quoted if it has at
    least two words and occurs in the draft.
    """
    parts = quoted_parts(text)
    for words in emphasised:
        at = text.find(words)
        if at >= 0 and len(words.split()) > 1:
            parts.append((at, at + len(words)))
    quoted = ((a, b, draft.find(text[a:b])) for a, b in parts)
    return sorted((part for part in quoted if part[2]), key=lambda part: (part[0], -part[1]))


def without_marks(line: str) -> str:
    """A line without Markdown: emphasis, headings, links. Backticks stay, since they may quote."""
    plain = _LINK.sub(r"\1", line.strip())
    plain = re.sub(r"^(?:#{1,6}|>)\s+", "", plain)
    plain = re.sub(r"\*\*|__|~~", "", plain)
    plain = _SINGLE_STAR.sub(r"\2", plain)
    return _ESCAPED.sub(r"\1", plain).strip()


def _emphasised(line: str) -> tuple[str, ...]:
    marked = (next(filter(None, match.groups())) for match in _EMPHASISED.finditer(line))
    return tuple(without_marks(words).strip(" :.") for words in marked)
