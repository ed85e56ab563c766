"""PDF: lines on pages, reassembled into paragraphs.

A PDF records the positions of glyphs, not paragraphs. Lines are joined by heuristics for
manuscripts and books; repeated parts of pages (running heads, page numbers) are left out.
"""

from __future__ import annotations

import io
import itertools
import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from fabula.core.errors import InputError
from fabula.text.manuscripts import ParsedText

_N_EDGE = 2
"""Number of lines at the top and at the bottom of a page that may be repeated on others."""
_REPEATED = 0.2
"""A running head is on this share of the pages, and on at least two."""
_COMMON = 0.1
"""The margin is where at least this share of the lines of a page begin."""
_INDENT, _GAP = 0.6, 1.35
"""The indent of a first line in font sizes; a gap in multiples of the usual line distance."""
_SHORT = 0.8
"""A line shorter than this share of a full one ends a paragraph, if a sentence ends there."""
_roman = r"(?=[ivxlc])(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})"
_number = re.compile(
    rf"(?:page|p\.)?\s*[-–—|·\[(]*\s*(?:\d{{1,4}}|{_roman})\s*[-–—|·\])]*(?:\s*(?:/|of)\s*\d{{1,4}})?",
    re.IGNORECASE,
)
_ended = re.compile(r"[.!?…:;][\"”'’»)\]]*$")
_broken = re.compile(r"(\w+)[-\u00ad\u2010]$")
_LIGATURES = {0x00AD: ""} | {
    0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st",
    0xFB06: "st",
}  # fmt: skip


@dataclass(slots=True)
class _Line:
    words: str
    x: float
    y: float
    size: float
    level: int = 0


def parse_pdf(data: bytes, name: str) -> ParsedText:
    """The paragraphs of a PDF; headings are those in its outline.

    Raises `InputError`, also for a PDF that is encrypted, or contains only images of pages.
    """
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    # Unreadable files get a single error; the library's own messages would precede it.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise InputError(
                f"{name}: is password-protected; save or print it as a PDF without a password"
            )
        pages = [_lines(page) for page in reader.pages]
        # Lines that the outline names on their pages are headings.
        for entry, level in _entries(reader.outline, 1):
            number, heading = reader.get_destination_page_number(entry), _folded(str(entry.title))
            if number is not None and 0 <= number < len(pages) and heading:
                named = (line for line in pages[number] if _folded(line.words) == heading)
                if (line := next(named, None)) is not None:
                    line.level = level
        about = reader.metadata
        title, author = (about.title, about.author) if about else (None, None)
    except DependencyError as error:
        raise InputError(
            f"{name}: is encrypted; save or print it as a PDF without protection"
        ) from error
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise InputError(
            f"{name}: not a readable PDF ({error}); print it as a PDF again, or save its text"
        ) from error
    if not any(pages):
        raise InputError(
            f"{name}: contains images of pages and no text, as scans do; run text recognition on "
            "it (OCR, such as `ocrmypdf`), or use the text it was made from"
        )
    # Without the parts of pages that are repeated: running heads, and their numbers.
    tops = [page[:_N_EDGE] for page in pages]
    feet = [page[max(_N_EDGE, len(page) - _N_EDGE) :] for page in pages]
    edges = [top + foot for top, foot in zip(tops, feet, strict=True)]
    counts = Counter(key for edge in edges for key in set(map(_key, edge)) if key)
    least = max(2, _REPEATED * len(pages))
    dropped = {id(line) for edge in edges for line in edge if counts[_key(line)] >= least}
    for sides in (tops, feet):
        numbers = [[line for line in side if _number.fullmatch(line.words)] for side in sides]
        n = sum(any(not line.level for line in side) for side in numbers)
        # A number at the top of only a few pages is a chapter number.
        if 2 * n >= len(pages) and not (sides is tops and len(pages) <= 2):
            dropped |= {id(line) for side in numbers for line in side}
    kept = [[line for line in page if id(line) not in dropped or line.level] for page in pages]
    whole = Counter(word for page in kept for line in page for word in line.words.split())
    return ParsedText(list(_paragraphs(kept, whole)), _plain(title), _plain(author))


def _plain(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _lines(page: Any) -> list[_Line]:
    """The lines of a page with their positions, top to bottom."""
    lines: list[_Line] = []
    is_new = True

    def note(text: str, cm: Sequence[float], tm: Sequence[float], _: Any, size: float) -> None:
        nonlocal is_new
        x = tm[4] * cm[0] + tm[5] * cm[2] + cm[4]
        y = tm[4] * cm[1] + tm[5] * cm[3] + cm[5]
        height = abs((size or 1.0) * (tm[3] or 1.0) * (cm[3] or 1.0))
        for k, piece in enumerate(text.split("\n")):
            is_new = is_new or k > 0
            if is_new and piece.strip():
                lines.append(_Line(piece, x, y, height))
                is_new = False
            elif piece and not is_new:
                lines[-1].words += piece

    page.extract_text(visitor_text=note)
    for line in lines:
        line.words = " ".join(line.words.split())
    return lines


def _entries(entries: Any, level: int) -> Iterator[tuple[Any, int]]:
    """The entries of an outline, nested ones too, with their levels."""
    for entry in entries:
        if isinstance(entry, list):
            yield from _entries(entry, level + 1)
        else:
            yield entry, level


def _folded(words: str) -> str:
    return " ".join(re.findall(r"\w+", words.casefold()))


def _key(line: _Line) -> str:
    """A running head without the page number; empty for a line without letters."""
    words = re.sub(r"\d+", "", line.words).casefold()
    return " ".join(words.split()) if re.search(r"[^\W_]", words) else ""


def _paragraphs(pages: list[list[_Line]], whole: Counter[str]) -> Iterator[tuple[int, str]]:
    lines = [line for page in pages for line in page]
    if not lines:
        return
    full = sorted(len(line.words) for line in lines)[int(0.8 * (len(lines) - 1))]
    gaps = [a.y - b.y for page in pages for a, b in itertools.pairwise(page) if a.y > b.y]
    usual = median(gaps) if gaps else 0.0
    pending: list[_Line] = []
    for page in pages:
        # The x of lines without an indent; a single line further left is not the margin.
        counted = Counter(round(line.x) for line in page)
        common = [x for x, n in counted.items() if n >= max(2, _COMMON * len(page))]
        margin = min(common or counted, default=0)
        for k, line in enumerate(page):
            before = page[k - 1] if k else None
            if pending and _begins(line, before, pending[-1], margin, usual, full):
                yield _joined(pending, whole)
                pending = []
            pending.append(line)
    if pending:
        yield _joined(pending, whole)


def _begins(
    line: _Line, before: _Line | None, last: _Line, margin: float, usual: float, full: int
) -> bool:
    """Whether a paragraph begins with a line; `before` is the one above it on its page."""
    if line.level or last.level:
        return line.level != last.level or not line.level
    is_indented = line.x - margin > _INDENT * line.size
    if before is None:
        # A sentence continues across a page break, unless the line is indented.
        return bool(_ended.search(last.words)) and (is_indented or len(last.words) < _SHORT * full)
    if usual and before.y - line.y > _GAP * usual:
        return True
    has_ended = bool(_ended.search(before.words))
    was_indented = before.x - margin > _INDENT * before.size
    if is_indented and (has_ended or not was_indented):
        return True
    return has_ended and len(before.words) < _SHORT * full


def _joined(lines: list[_Line], whole: Counter[str]) -> tuple[int, str]:
    words = lines[0].words
    for line in lines[1:]:
        broken = _broken.search(words)
        if broken and line.words[:1].islower():
            # "well-" and "known" are one word with a hyphen if it is spelt so elsewhere.
            rest = line.words.split(maxsplit=1)[0]
            is_own = whole[f"{broken[1]}-{rest}"] > whole[f"{broken[1]}{rest}"]
            words = words if is_own and words[-1] == "-" else words[:-1]
            words += line.words
        else:
            words += " " + line.words
    return lines[0].level, words.translate(_LIGATURES)
