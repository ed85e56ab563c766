"""The page of a text's originality: the text as one would read it, with what is borrowed in it.

The page is one file without scripts. It is made from the rows of `scores.jsonl` and the texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fabula.report.near_parts import Gloss, glosses_of, spread_of
from fabula.report.page_file import write_page_file
from fabula.report.tables import MISSING_REASONS
from fabula.types import Document
from fabula.web import visible

__all__ = ["write_page"]

_MAX_SOURCES = 60
_PARAGRAPH = re.compile(r"[^\S\n]*\n(?:[^\S\n]*\n)+[^\S\n]*")


@dataclass(frozen=True, slots=True)
class Borrowed:
    """A borrowed span as the page shows it."""

    number: int
    start: int
    end: int
    n_words: int
    shade: float
    frequency: str
    n_more: int
    sources: list[dict[str, Any]]
    is_near: bool = False
    similarity: float | None = None
    glosses: tuple[Gloss, ...] = ()
    """A near span's words, each with the word of the source that is most like it."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a paragraph: plain, borrowed, or a line break."""

    text: str = ""
    borrowed: Borrowed | None = None
    is_first: bool = False
    is_last: bool = False
    is_break: bool = False


@dataclass(slots=True)
class Article:
    """One text with its numbers."""

    number: int
    title: str
    n_words: int
    index: float | None
    missing: str
    n_levels: int
    low: int
    shade_top: int
    lowest: float | None
    longest: int
    curve: list[dict[str, Any]]
    ticks: list[dict[str, Any]]
    curve_label: str
    borrowed: list[Borrowed]
    paragraphs: list[list[Piece]]
    sources: list[dict[str, Any]]
    n_more_sources: int
    near: list[Borrowed]
    spread: dict[str, Any] | None
    notices: list[str] = field(default_factory=list)


def write_page(
    path: Path,
    texts: Sequence[tuple[Document, dict[str, Any]]],
    n_texts: int,
    against: str,
) -> None:
    """Write the page of these texts, each with its row of scores; `n_texts` counts all scored,
    `against` is how large the reference is."""
    articles = [_article(k, document, row) for k, (document, row) in enumerate(texts, 1)]
    title = articles[0].title if len(articles) == 1 else f"{n_texts:,} texts"
    page = {
        "title": title,
        "articles": articles,
        "n_left_out": n_texts - len(articles),
        "against": against,
        "signature": texts[0][1]["signature"],
    }
    write_page_file(path, "originality.html.j2", page)


def _article(number: int, document: Document, row: dict[str, Any]) -> Article:
    levels = {int(level): value for level, value in row["uniqueness"].items()}
    low, high = min(levels), max(levels)
    borrowed = [
        _borrowed(k, span, low, high, document.text) for k, span in enumerate(row["covered"], 1)
    ]
    sources = _by_source(borrowed)
    curve = _curve(levels)
    points = ", ".join(f"{point['level']} words {point['shown']}" for point in curve)
    return Article(
        number=number,
        title=visible(str(document.meta.get("title") or document.id)),
        n_words=row["n_words"],
        index=row["creativity_index"],
        missing=MISSING_REASONS.get(row["missing_reason"] or "", ""),
        n_levels=len(levels),
        low=low,
        shade_top=high,
        lowest=levels[low],
        longest=max((b.n_words for b in borrowed), default=0),
        curve=curve,
        ticks=[{"level": level, "x": _x(level, low, high)} for level in levels],
        curve_label=f"L-uniqueness by length of run: {points}",
        borrowed=borrowed,
        paragraphs=_paragraphs(document.text, borrowed),
        sources=sources[:_MAX_SOURCES],
        n_more_sources=max(0, len(sources) - _MAX_SOURCES),
        near=_listed(borrowed),
        spread=spread_of(row.get("spread")),
        notices=_notices(row, levels[low]),
    )


def _listed(borrowed: Iterable[Borrowed]) -> list[Borrowed]:
    """The near spans, without those that say mostly what one before them said."""
    listed: list[Borrowed] = []
    for span in borrowed:
        if span.is_near:
            reached = listed[-1].end if listed else 0
            if span.end - max(span.start, reached) >= (span.end - span.start) / 2:
                listed.append(span)
    return listed


def _notices(row: dict[str, Any], lowest: float | None) -> list[str]:
    notices = []
    if row["excluded"]:
        shown = "; ".join(
            f"{visible(str(copy['title'] or copy['id']))} {copy['reason']}"
            for copy in row["excluded"][:5]
        )
        more = len(row["excluded"]) - 5
        notices.append(
            f"Left out of the reference as copies or quotations of this text: {shown}"
            + (f"; and {more} more." if more > 0 else ".")
        )
    elif lowest is not None and lowest < 0.5:
        notices.append(
            Markup(
                "More than half of this text stands in the reference. If it holds the text itself, "
                "measure with <code>--exclude&nbsp;auto</code> to leave copies of the text out."
            )
        )
    if row.get("missing_detail"):
        notices.append(f"It has no score: {visible(row['missing_detail'])}.")
    n_known = row["n_known_words"]
    unknown = 1 - n_known / row["n_words"] if row["n_words"] and n_known is not None else 0
    if unknown > 0.2:
        notices.append(
            f"{unknown:.0%} of its words do not occur in the reference at all: is it of the same "
            f"language and kind? What a reference does not know counts as new."
        )
    return notices


def _borrowed(number: int, span: dict[str, Any], low: int, high: int, text: str) -> Borrowed:
    share = (min(span["n_words"], high) - low) / max(1, high - low)
    is_near = span.get("kind") == "near"
    return Borrowed(
        number=number,
        start=span["start"],
        end=span["end"],
        n_words=span["n_words"],
        shade=round(0.16 + 0.54 * share, 2),
        frequency=_frequency(span),
        n_more=0 if is_near else max(0, (span["n_documents"] or span["count"]) - 1),
        sources=[_source(source) for source in span["sources"]],
        is_near=is_near,
        similarity=span.get("similarity"),
        glosses=tuple(glosses_of(span, text)) if is_near else (),
    )


def _frequency(span: dict[str, Any]) -> str:
    if span.get("kind") == "near":
        return f"found in other words, {span['similarity']:.0%} similar"
    n_documents = span["n_documents"]
    if n_documents is None:
        return f"found {span['count']:,} times"
    if span["count"] == 1:
        return "found once"
    plural = "document" if n_documents == 1 else "documents"
    return f"found {span['count']:,} times in {n_documents:,} {plural}"


def _source(source: dict[str, Any]) -> dict[str, Any]:
    shown = {key: visible(str(source[key])) for key in ("before", "text", "after")}
    return {
        **shown,
        "id": source["id"],
        "title": visible(str(source["title"] or source["id"])),
        "author": None if source["author"] is None else visible(str(source["author"])),
        "year": source["year"],
    }


def _by_source(borrowed: Iterable[Borrowed]) -> list[dict[str, Any]]:
    """The named sources, the one with most shared words first."""
    found: dict[str, dict[str, Any]] = {}
    for span in borrowed:
        for source in span.sources:
            entry = found.setdefault(source["id"], {**source, "n_words": 0, "numbers": []})
            entry["n_words"] += span.n_words
            entry["numbers"].append(span.number)
    for entry in found.values():
        numbers = list(map(str, entry["numbers"]))
        shown = ", ".join(numbers[:12])
        entry["spans"] = f"{shown}, …" if len(numbers) > 12 else shown
    return sorted(found.values(), key=lambda entry: (-entry["n_words"], entry["numbers"][0]))


def _curve(levels: dict[int, float | None]) -> list[dict[str, Any]]:
    low, high = min(levels), max(levels)
    return [
        {
            "level": level,
            "x": _x(level, low, high),
            "y": round(128 - 114 * value, 1),
            "shown": f"{value:.1%}",
        }
        for level, value in levels.items()
        if value is not None
    ]


def _x(level: int, low: int, high: int) -> float:
    return round(40 + 284 * (level - low) / max(1, high - low), 1)


def _paragraphs(text: str, borrowed: list[Borrowed]) -> list[list[Piece]]:
    """The text cut at blank lines, line breaks and the edges of borrowed spans."""
    segments = _segments(borrowed)
    first_shown: set[int] = set()
    paragraphs = []
    edges = [(m.start(), m.end()) for m in _PARAGRAPH.finditer(text)]
    starts = [0, *(end for _, end in edges)]
    ends = [*(start for start, _ in edges), len(text)]
    k = 0
    for start, end in zip(starts, ends, strict=True):
        while k < len(segments) and segments[k][1] <= start:
            k += 1
        pieces: list[Piece] = []
        at, j = start, k
        while j < len(segments) and segments[j][0] < end:
            a, b, span = max(segments[j][0], start), min(segments[j][1], end), segments[j][2]
            pieces += _lines(text[at:a], None, first_shown, is_last=False)
            pieces += _lines(text[a:b], span, first_shown, is_last=b == segments[j][1])
            at = b
            j += 1
        pieces += _lines(text[at:end], None, first_shown, is_last=False)
        if any(piece.text.strip() for piece in pieces):
            paragraphs.append(pieces)
    return paragraphs


def _segments(borrowed: list[Borrowed]) -> list[tuple[int, int, Borrowed]]:
    """Stretches of text, each given to the longest borrowed span that covers it (then the first).

    Both the starts and the ends of maximal spans ascend, so a sweep over their edges is enough.
    """
    edges = sorted({edge for span in borrowed for edge in (span.start, span.end)})
    segments: list[tuple[int, int, Borrowed]] = []
    first = 0
    for a, b in pairwise(edges):
        while first < len(borrowed) and borrowed[first].end <= a:
            first += 1
        k, best = first, None
        while k < len(borrowed) and borrowed[k].start <= a:
            if best is None or borrowed[k].n_words > best.n_words:
                best = borrowed[k]
            k += 1
        if best is None:
            continue
        if segments and segments[-1][1] == a and segments[-1][2] is best:
            segments[-1] = (segments[-1][0], b, best)
        else:
            segments.append((a, b, best))
    return segments


def _lines(
    text: str, span: Borrowed | None, first_shown: set[int], *, is_last: bool
) -> list[Piece]:
    pieces: list[Piece] = []
    lines = text.split("\n")
    for k, line in enumerate(lines):
        if k:
            pieces.append(Piece(is_break=True))
        if not line:
            continue
        is_first = span is not None and span.number not in first_shown
        if span is not None:
            first_shown.add(span.number)
        if k:
            # The indent of a line of verse; HTML would drop spaces.
            n_spaces = len(line) - len(line.lstrip(" "))
            line = "\u00a0" * n_spaces + line[n_spaces:]
        pieces.append(Piece(visible(line), span, is_first, is_last=is_last and k == len(lines) - 1))
    return pieces
