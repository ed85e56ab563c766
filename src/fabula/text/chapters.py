"""Chapters and scenes of a text: by the headings of its file, or by the typography of books.

What counts as a heading, most reliable first:

- headings marked in the file (styles of Word, h1 to h6 of EPUB, # of Markdown);
- "Chapter I", "CHAPTER ONE. The River", "Stave 3", "Letter 2": a word and a number;
- numbers alone ("IV", "12."), or before a title ("IV. The River"), counting up from 1;
- lines in capitals, or titles with more space above than paragraphs have, with much text below;
- "Part II", "Book the First", if there is nothing smaller.

"Prologue" and "Epilogue" are chapters; a preface, contents and notes around the story are not. A
table of contents is recognised by headings without text between them that recur later. A scene ends
at a line without words (`* * *`, `#`), or at a gap wider than those between other paragraphs.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from statistics import median
from typing import Any

from fabula.core.types import Document
from fabula.text.emphasis import unmarked
from fabula.text.sentences import paragraph_spans
from fabula.text.words import ORDINALS, UNITS, word_set

CHAPTER_RULES = "1"
"""Changes with any rule below; part of the signature of results by chapter."""
Place = tuple[int, int]
_Key = tuple[str, int | None, str]
_MAX_HEADING = 110
_MAX_TITLE = 220
"""In characters, over all its lines."""
_MAX_LABEL = 40
_MIN_BODY = 200
"""Characters of text below a number that stands alone: the median over a text."""
_MIN_WEAK_BODY = 1_200
"""The same below a line that is a heading by its appearance alone."""
_MAX_EPIGRAPH = 600
"""Characters between the heading of a part and its first chapter."""
_EMPTY = 150
"""Characters below a heading in a table of contents."""

_TEENS = "thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORDS = {word: k for k, word in enumerate((*UNITS, *_TEENS.split()), 1)}
_WORDS |= {word: 10 * k for k, word in enumerate(_TENS.split(), 2)}
_WORDS |= {
    f"{ten}{joint}{unit}": _WORDS[ten] + k
    for ten in _TENS.split()
    for k, unit in enumerate(UNITS[:9], 1)
    for joint in "- "
}
_WORDS |= {word: k for k, word in enumerate(ORDINALS, 1)} | {"last": 0}
_ROMAN = r"(?=[IVXLC])C{0,3}(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,4})"
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_WORD_NUMBER = "|".join(sorted(_WORDS, key=len, reverse=True))
_ANY_NUMBER = rf"(?:{_ROMAN}|\d{{1,3}}|{_WORD_NUMBER})"

_SMALL_UNITS = "chapter|chap|stave|canto|adventure|episode|letter"
_LARGE_UNITS = "volume|vol|part|book|section|act"
_NAMED = re.compile(
    rf"(?P<unit>{_SMALL_UNITS}|{_LARGE_UNITS})\b\.?\s+(?:the\s+)?(?P<number>{_ANY_NUMBER})(?!\w)"
    r"(?P<rest>.*)",
    re.IGNORECASE,
)
_ORDINAL_FIRST = re.compile(
    rf"(?i)(?:the\s+)?(?P<number>{'|'.join(ORDINALS)})\s+"
    rf"(?P<unit>{_SMALL_UNITS}|{_LARGE_UNITS})\b(?P<rest>.*)"
)
_NUMBER_ALONE = re.compile(rf"(?P<number>{_ROMAN}|\d{{1,3}}|(?i:{_WORD_NUMBER}))[.:)]?")
_NUMBER_AND_TITLE = re.compile(
    rf"(?P<number>{_ROMAN}|\d{{1,3}})(?:[.:)]|\s*[—–-])?\s+(?P<rest>\S.*)"
)
_STORY = re.compile(
    r"(?:prologue|prelude|epilogue|finale|conclusion|interlude|coda)(?P<rest>$|[.:—–-].*)",
    re.IGNORECASE,
)
_MATTER = re.compile(
    r"(?i)(?:the )?(?:table of )?(?:contents|preface\b.*|foreword|introduction\b.*|introductory.*"
    r"|dedication|acknowledge?ments?|afterword|appendix.*|about the author|author['’]s note"
    r"|transcriber['’]s notes?.*|(?:foot|end)?notes?|bibliography|index|glossary"
    r"|(?:list of )?illustrations|copyright.*|epigraph|title page)[.:]?"
)
_MARKDOWN = re.compile(r"(#{1,6})\s+(.*?)\s*#*")
_DECORATION = ' \t_*=~|[]"“”'
_SEPARATOR = re.compile(r"\s*(?:[^\w\s]\s*){1,12}|\s*(?:[oO0x]\s?){1,5}\s*")
_A_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|['’-])*")
_ENDS_LINE = (",", ";", "-", "—", "–")
_IS_PROSE = re.compile(r"\A[\"“]|(?<!\bMr)(?<!\bMrs)(?<!\bDr)(?<!\bSt)[.!?][\"”’]?\s")
_ENDS_SENTENCE = re.compile(r"[.!?…,;:][\"'”’)\]]*\Z|[\"”’]\Z")
_COUNTED = ("small", "titled", "number")
_MAYBE_TITLES = {"small": ("titled", "matter", "story"), "number": ("matter", "story")}
"""The kinds of lines that may be the title of the heading above."""
_SMALL_WORDS = word_set("a an and as at but by for from in into of on or the to with s")


@dataclass(frozen=True, slots=True)
class Chapter:
    """A chapter: half-open in characters, from its heading to the start of the next one."""

    number: int
    """Its number in the text, from 1."""
    title: str
    start: int
    body: int
    """The start of its text, after the heading."""
    end: int
    part: str = ""
    """The heading of the part of the book that contains it."""
    scenes: tuple[Place, ...] = ()
    """At least one; together they are the text without heading and separators."""

    @property
    def name(self) -> str:
        """The title without "Chapter I"; that alone if there is nothing else."""
        for pattern in (_NAMED, _NUMBER_AND_TITLE):
            if match := pattern.fullmatch(self.title):
                return match["rest"].strip(_DECORATION + ".:)—–-") or self.title
        return self.title

    @property
    def label(self) -> str:
        """`chapter 3, The River`; `chapter 3` if the heading is that number alone."""
        name = " ".join(self.name.split())
        named = _read(self.title, 0)
        is_number = name == self.title and named is not None and named.number == self.number
        short = name if len(name) <= _MAX_LABEL else f"{name[:_MAX_LABEL].rpartition(' ')[0]} …"
        return f"chapter {self.number}" + ("" if is_number else f", {short}")


@dataclass(frozen=True, slots=True)
class _Heading:
    start: int
    end: int
    style: str
    title: str
    number: int | None = None
    level: int = 0

    @property
    def key(self) -> _Key:
        return self.style, self.number, "" if self.number is not None else self.title.casefold()


def chapters_of(document: Document) -> list[Chapter]:
    """The chapters of a document in order; none if it has fewer than two headings."""
    text = document.text
    marked, markdown, spans = _marked(document)
    headings = _chosen(marked, text) or _chosen(markdown, text) or _by_convention(text, spans)
    if len([head for head in headings if head.style not in ("large", "matter")]) < 2:
        return []
    usual = _usual_gap(text, spans)
    chapters: list[Chapter] = []
    part = ""
    ends = [*(head.start for head in headings[1:]), len(text)]
    for head, end in zip(headings, ends, strict=True):
        if head.style == "large":
            part = head.title
        elif head.style != "matter":
            body = head.end + len(text[head.end : end]) - len(text[head.end : end].lstrip())
            if scenes := tuple(_scenes(text, body, end, spans, usual)):
                number = len(chapters) + 1
                chapters.append(Chapter(number, head.title, head.start, body, end, part, scenes))
    return chapters if len(chapters) > 1 else []


def where_of(document: Document, place: int) -> str:
    """`chapter 3, The River, line 40`: where an offset is, as a reader can find it in the source.

    Only plain text has lines that can be counted; empty if there are neither lines nor chapters.
    """
    text, headings = document.text, document.meta.get("headings")
    chapters = _known_chapters(text, tuple(map(tuple, headings or ())))
    k = bisect_right(chapters, place, key=lambda chapter: chapter.start)
    where = [chapters[k - 1].label] if k and place < chapters[k - 1].end else []
    where += [f"line {line_of(text, place)}"] if headings is None else []
    return ", ".join(where)


def line_of(text: str, place: int) -> int:
    """The line of an offset in a text, from 1."""
    return text.count("\n", 0, place) + 1


@lru_cache(8)
def _known_chapters(text: str, headings: tuple[Any, ...]) -> list[Chapter]:
    """Many places of one text are asked for in a row."""
    return chapters_of(Document("", text, meta={"headings": headings}))


def without_headings(document: Document) -> str:
    """The text with spaces in place of headings, so that all other offsets stay valid.

    Headings are those marked by the file or in Markdown, whatever their number, and, in a text with
    two or more chapters, those recognised by typography, including contents and notes.
    """
    text = document.text
    marked, markdown, spans = _marked(document)
    # A Markdown heading can be a title, or a paragraph ("### Human: Oh! And...").
    plain = [h for h in markdown if len(h.title) <= _MAX_HEADING and not _IS_PROSE.search(h.title)]
    headings = plain + marked
    if not _chosen(headings, text):
        typographic = _by_convention(text, spans)
        is_book = len([head for head in typographic if head.style not in ("large", "matter")]) > 1
        headings += typographic if is_book else []
    for head in headings:
        text = text[: head.start] + " " * (head.end - head.start) + text[head.end :]
    return text


def is_heading(paragraph: str) -> bool:
    """Whether a paragraph by itself is a heading, by its words or its capitals."""
    line = paragraph.strip()
    if not line or "\n" in line or len(line) > _MAX_HEADING:
        return False
    heading = _read(line, 0)
    # "I Know." alone starts no numbering.
    is_read = heading is not None and heading.style != "titled"
    is_the_end = line.strip(_DECORATION + ".").casefold() == "the end"
    letters = [character for character in line if character.isalpha()]
    is_capitals = len(letters) > 1 and line.isupper() and not _ENDS_SENTENCE.search(line)
    return is_read or is_the_end or bool(_MARKDOWN.fullmatch(line)) or is_capitals


def _marked(document: Document) -> tuple[list[_Heading], list[_Heading], list[Place]]:
    """The headings that a reader found in the file (`meta["headings"]`: start, level, title), those
    of Markdown, and the spans of all paragraphs."""
    text = document.text
    spans = [span for span in paragraph_spans(text) if text[slice(*span)].strip()]
    marked = [
        _Heading(start, start + len(title), f"h{level}", " ".join(title.split()), level=level)
        for start, level, title in document.meta.get("headings") or ()
        if text.startswith(title, start)
    ]
    markdown = []
    for start, end in spans:
        line = text[start:end].split("\n")[0].rstrip()
        match = _MARKDOWN.fullmatch(line.lstrip())
        if match and match[2]:
            level, title = len(match[1]), unmarked(match[2], 0, len(match[2]))
            markdown.append(_Heading(start, start + len(line), f"h{level}", title, level=level))
    return marked, markdown, spans


def _chosen(headings: Sequence[_Heading], text: str) -> list[_Heading]:
    """Of headings with levels, those of chapters and of the parts above them."""
    pairs = [(head, _read(head.title, 0)) for head in headings]
    counts = Counter(
        h.level for h, read in pairs if read is None or read.style not in ("matter", "large")
    )
    named = Counter(head.level for head, read in pairs if read and read.style == "small")
    levels = [level for level, n in sorted(counts.items()) if n > 1]
    if not levels:
        return []
    level = named.most_common(1)[0][0] if named and named.most_common(1)[0][1] > 1 else levels[0]
    # Parts, if most headings of a level precede one of the next without text between.
    beside = (pair for pair in pairwise(headings) if pair[0].level == level)
    follows = [len(text[a.end : b.start].strip()) < _EMPTY and b.level > level for a, b in beside]
    if not named and len(levels) > 1 and 2 * follows.count(True) > len(follows):
        level = levels[1]
    kept = []
    for head, read in pairs:
        style = "story"
        if read and read.style == "matter":
            style = "matter"
        elif head.level < level:
            style = "story" if read and read.style == "story" else "large"
        elif head.level > level:
            continue
        kept.append(replace(head, style=style, number=read.number if read else None))
    return kept


def _by_convention(text: str, spans: Sequence[Place]) -> list[_Heading]:
    usual = _usual_gap(text, spans)
    heads: list[_Heading] = []
    by_look: list[_Heading] = []
    for k, (start, end) in enumerate(spans):
        if heads and start < heads[-1].end:
            continue
        if head := _read(text[start:end], start):
            heads.append(_with_title(text, spans, k, head))
            continue
        line = text[start:end].strip(_DECORATION)
        if not line or len(line) > _MAX_HEADING:
            continue
        gap = text[spans[k - 1][1] : start].count("\n") if k else 0
        is_apart = gap > usual + 1 and "\n" not in line and len(line) <= 60
        if line.isupper() and len(line) > 1 and not line.endswith((*_ENDS_LINE, "!", "?", ":")):
            by_look.append(_Heading(start, end, "capitals", " ".join(line.split())))
        elif is_apart and _is_title_case(line) and not line.endswith((*_ENDS_LINE, ":")):
            by_look.append(_Heading(start, end, "wide", line))
    if not (heads or by_look):
        return []
    heads = _without_contents(text, heads)
    small = [head for head in heads if head.style == "small"]
    if len(small) < 2:
        kinds = ([head for head in heads if head.style == style] for style in ("titled", "number"))
        small = max((_numbered(text, some) for some in kinds), key=len)
    else:
        # With the headings between chapters that continue the numbering without the word.
        rest, small = small, []
        for head in (head for head in heads if head.style in _COUNTED):
            if head.style == "small":
                small.append(rest.pop(0))
            elif small and head.number and small[-1].number and head.number == small[-1].number + 1:
                follows = rest[0].number if rest else None
                small += [head] if follows is None or follows > head.number else []
    parts = (pair for pair in pairwise(heads) if pair[0].style == "large")
    large = [h for h, after in parts if len(text[h.end : after.start].strip()) < _MAX_EPIGRAPH]
    for style in ("capitals", "wide"):
        if len(small) < 2:
            weak = _last_of_each([head for head in by_look if head.style == style], large, text)
            small = weak if len(weak) > 2 and _body(text, weak) >= _MIN_WEAK_BODY else []
    if len(small) < 2:
        small = [replace(head, style="small") for head in heads if head.style == "large"]
        large = []
    if not small:
        return []
    first, last = small[0].start, small[-1].start
    matter = [head for head in heads if head.style == "matter" and not first < head.start < last]
    story = _last_of_each([head for head in heads if head.style == "story"], small, text)
    return sorted([*small, *large, *matter, *story], key=lambda head: head.start)


def _read(paragraph: str, start: int) -> _Heading | None:
    """The heading that the first line of a paragraph is by its words; None if it is not one."""
    first, *more = paragraph.split("\n")
    line = first.strip(_DECORATION)
    if not line or len(line) > _MAX_HEADING:
        return None
    end = start + len(first)
    if match := _NAMED.fullmatch(line) or _ORDINAL_FIRST.fullmatch(line):
        unit, rest = match["unit"].casefold(), match["rest"]
        is_small = re.fullmatch(_SMALL_UNITS, unit) is not None
        title = rest.strip(_DECORATION + ".:)—–-")
        is_prose = more and title and not (title.isupper() or _is_title_case(title))
        # What follows "Chapter 3" on its line can be a title after a mark, or in capitals.
        after = rest.lstrip(".:)]—–- \t_*")
        is_marked = not after or rest[:1] in ".:)]—–-"
        may_follow = is_marked or (
            rest[0].isspace() and (after[0].isupper() or not after[0].isalpha())
        )
        if is_prose or not may_follow:
            return None
        style = "small" if is_small else "large"
    elif match := _NUMBER_ALONE.fullmatch(line):
        style = "number"
    elif (
        (match := _NUMBER_AND_TITLE.fullmatch(line))
        and (rest := match["rest"].strip(_DECORATION))
        and not rest.endswith(_ENDS_LINE)
        and len(rest) <= 80
        and (rest.isupper() or _is_title_case(rest))
    ):
        style = "titled"
    elif _STORY.fullmatch(line):
        return _Heading(start, end, "story", line)
    elif _MATTER.fullmatch(line):
        return _Heading(start, end, "matter", line)
    else:
        return None
    if more and (again := _read(more[0], 0)) and again.style == style:
        # Consecutive lines that are all headings are a table of contents.
        return _Heading(start, start + len(paragraph), "matter", "Contents")
    numeral = match["number"]
    word = " ".join(numeral.casefold().split())
    number = int(numeral) if numeral.isdecimal() else _WORDS.get(word)
    if number is None:
        number = largest = 0
        for letter in reversed(numeral.upper()):
            value = _ROMAN_VALUES[letter]
            number += value if value >= largest else -value
            largest = max(largest, value)
    return _Heading(start, end, style, line, number)


def _is_title_case(line: str) -> bool:
    words = [word for word in _A_WORD.findall(line) if word.lower() not in _SMALL_WORDS]
    are_capital = [word[0].isupper() for word in words]
    return bool(words) and are_capital[0] and are_capital.count(True) >= 0.6 * len(words)


def _with_title(text: str, spans: Sequence[Place], k: int, head: _Heading) -> _Heading:
    """The heading with a title from the lines below it, or from the next paragraph."""
    if head.style not in ("small", "large", "number"):
        return head
    start, end = spans[k]
    rest = text[head.end : end].strip()
    named = _NAMED.fullmatch(head.title)
    has_room = named is None or not named["rest"].strip(".:)]—–- \t")
    if not rest and k + 1 < len(spans) and has_room:
        start, end = spans[k + 1]
        rest = text[start:end].strip()
        below = _read(rest, 0)
        is_other = below is not None and below.style not in _MAYBE_TITLES.get(head.style, ())
        if is_other or (rest.count("\n") > 3 and not rest.isupper()):
            return head
    elif not rest:
        return head
    lines = [line.strip(_DECORATION) for line in rest.split("\n")]
    whole = " ".join(lines)
    is_title = whole.isupper() or (
        len(lines) == 1
        and len(whole) <= _MAX_HEADING
        and _is_title_case(whole)
        and not _ENDS_SENTENCE.search(whole.rstrip("."))
        and not _IS_PROSE.search(rest)
    )
    if is_title and len(whole) <= _MAX_TITLE:
        return replace(head, end=end, title=f"{head.title.rstrip('. ')}. {whole}")
    return head


def _without_contents(text: str, heads: Sequence[_Heading]) -> list[_Heading]:
    """Remove headings that have no text below them and recur later: tables of contents."""
    kept: list[_Heading] = []
    k = 0
    while k < len(heads):
        last = k
        while last + 1 < len(heads) and (
            len(text[heads[last].end : heads[last + 1].start].strip()) < _EMPTY
        ):
            last += 1
        again = _again(heads[k : last + 1], {head.key for head in heads[last + 1 :]})
        entries, rest = heads[k : k + again], heads[k + again : last + 1]
        is_said = any(head.title.casefold().endswith("contents") for head in entries)
        n = sum(head.style in _COUNTED for head in entries)
        n_later = sum(head.style in _COUNTED for head in (*rest, *heads[last + 1 :]))
        is_contents = n > 2 or (is_said and n + len(entries) > 2)
        kept += rest if is_contents and 2 * n_later >= n else (*entries, *rest)
        k = last + 1
    return kept


def _last_of_each(heads: Sequence[_Heading], more: Sequence[_Heading], text: str) -> list[_Heading]:
    """Remove those that recur, as in a table of contents, and those that nothing follows."""
    last = {head.key: head.start for head in heads}
    ends = dict(pairwise([*sorted(head.start for head in (*heads, *more)), len(text)]))
    return [h for h in heads if last[h.key] == h.start and ends[h.start] - h.end >= _EMPTY]


def _again(cluster: Sequence[_Heading], later: Set[_Key]) -> int:
    """The start of the book among consecutive headings that begin with a table of contents.

    That is where the first part, or else the first chapter, recurs; or a last one that is number 1,
    with its part, or a prologue that does not come later; or after them all.
    """
    styles = ("large", *_COUNTED)
    first = next((head for style in styles for head in cluster if head.style == style), None)
    for k, head in enumerate(cluster):
        if first is not None and k > 1 and head is not first and head.key == first.key:
            return k
    last = len(cluster) - 1
    is_prologue = cluster[last].style == "story" and cluster[last].key not in later
    if cluster[last].number != 1 and not is_prologue:
        return len(cluster)
    while last and (cluster[last - 1].number == 1 or cluster[last - 1].style == "large"):
        last -= 1
    return last


def _numbered(text: str, heads: Sequence[_Heading]) -> list[_Heading]:
    """Headings whose numbers count up from 1, repeatedly; none if there is little text below.

    A misprinted number is accepted if the one after it is right, and one may be missing.
    """
    kept: list[_Heading] = []
    expected = 1
    for k, head in enumerate(heads):
        follows = heads[k + 1].number if k + 1 < len(heads) else None
        if head.number == 1 and follows == 2:
            expected = 1
        elif kept and head.number == expected + 1 and follows != expected + 1:
            expected += 1
        elif not kept or not (head.number == expected or follows == expected + 1):
            continue
        kept.append(head)
        expected += 1
    return kept if len(kept) > 1 and _body(text, kept) >= _MIN_BODY else []


def _body(text: str, heads: Sequence[_Heading]) -> float:
    """The median number of characters below headings."""
    ends = [*(head.start for head in heads[1:]), len(text)]
    return median(end - head.end for head, end in zip(heads, ends, strict=True))


def _usual_gap(text: str, spans: Sequence[Place]) -> int:
    """The number of line breaks between most paragraphs."""
    gaps = Counter(text[a[1] : b[0]].count("\n") for a, b in pairwise(spans))
    return gaps.most_common(1)[0][0] if gaps else 2


def _scenes(text: str, start: int, end: int, spans: Sequence[Place], usual: int) -> list[Place]:
    """The spans of text between separators and wide gaps."""
    scenes: list[Place] = []
    is_new = True
    for a, b in ((max(a, start), min(b, end)) for a, b in spans if a < end and b > start):
        if _SEPARATOR.fullmatch(text[a:b]):
            is_new = True
        elif is_new or text[scenes[-1][1] : a].count("\n") > usual + 1:
            scenes.append((a, b))
            is_new = False
        else:
            scenes[-1] = scenes[-1][0], b
    return scenes


def sections_of(text: str, n_chars: int) -> list[Chapter]:
    """Split a text without chapters into sections of about `n_chars` characters at paragraphs."""
    spans = [span for span in paragraph_spans(text) if text[slice(*span)].strip()]
    starts: list[int] = []
    for start, _ in spans:
        if not starts or start - starts[-1] >= n_chars:
            starts.append(start)
    return [
        Chapter(k, f"Section {k}", start, start, end, "", ((start, end),))
        for k, (start, end) in enumerate(pairwise([*starts, len(text)]), 1)
    ]


def parts_of(document: Document, n_chars: int) -> list[tuple[str, int, int]]:
    """The label, start and end of each part to edit by itself; together they are the whole text.

    Parts are the chapters, each with what stands between it and the one before. What is longer than
    two times `n_chars` characters is split at paragraphs.
    """
    text = document.text
    ends = [(chapter.label, chapter.end) for chapter in chapters_of(document)] or [("", 0)]
    ends[-1] = ends[-1][0], len(text)
    parts = []
    start = 0
    for label, end in ends:
        n = max(1, round((end - start) / n_chars)) if end - start > 2 * n_chars else 1
        cuts = [start + one.start for one in sections_of(text[start:end], (end - start) // n)[1:]]
        for k, part in enumerate(pairwise([start, *cuts, end]), 1):
            split = f"{label} ({k})" if label else f"section {k}"
            parts.append((split if cuts else label, *part))
        start = end
    return parts
