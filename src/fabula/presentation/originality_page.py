"""The page of a text's originality: the text as one would read it, with what is borrowed in it.

The page is one file without scripts. It is made from the rows of `scores.jsonl` and the texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fabula.presentation.marked_text import Borrowed, Note, Odd, Piece, cut_text
from fabula.presentation.near_parts import glosses_of, spread_of
from fabula.presentation.page_file import write_page_file
from fabula.reasons import explain
from fabula.types import Document
from fabula.web import visible

__all__ = ["Article", "article_of", "write_page"]

_MAX_SOURCES = 60
_MAX_NUMBERS = 12


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
    rows: dict[int, int] = field(default_factory=dict)
    """Of each span the row of its first source among `sources`."""
    has_notes: bool = False
    """Whether points of feedback stand in the margin, where sources would."""


def write_page(
    path: Path,
    texts: Sequence[tuple[Document, dict[str, Any]]],
    n_texts: int,
    against: str,
) -> None:
    """Write the page of these texts, each with its row of scores; `n_texts` counts all scored,
    `against` is how large the reference is."""
    articles = [article_of(k, document, row) for k, (document, row) in enumerate(texts, 1)]
    title = articles[0].title if len(articles) == 1 else f"{n_texts:,} texts"
    page = {
        "title": title,
        "articles": articles,
        "n_left_out": n_texts - len(articles),
        "against": against,
        "signature": texts[0][1]["signature"],
    }
    write_page_file(path, "originality.html.j2", page)


def article_of(
    number: int,
    document: Document,
    row: dict[str, Any],
    notes: Sequence[Note] = (),
    odd: Sequence[Odd] = (),
) -> Article:
    """A text with its row of scores, ready to be shown; what else is marked in it goes with it."""
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
        missing=row["missing_reason"] and explain(row["missing_reason"]),
        n_levels=len(levels),
        low=low,
        shade_top=high,
        lowest=levels[low],
        longest=max((b.n_words for b in borrowed), default=0),
        curve=curve,
        ticks=[{"level": level, "x": _x(level, low, high)} for level in levels],
        curve_label=f"L-uniqueness by length of run: {points}",
        borrowed=borrowed,
        paragraphs=cut_text(document.text, borrowed, notes, odd),
        sources=sources[:_MAX_SOURCES],
        n_more_sources=max(0, len(sources) - _MAX_SOURCES),
        near=_listed(borrowed),
        spread=spread_of(row.get("spread")),
        notices=_notices(row, levels[low]),
        rows=_rows(borrowed, sources[:_MAX_SOURCES]),
        has_notes=bool(notes),
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
                "<code>fabula originality --exclude auto</code> leaves copies of the text out."
            )
        )
    notices += [f"{visible(remark)}." for remark in row.get("remarks", ())]
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
        # Rounded down: only what is verbatim is wholly alike.
        return f"found in other words, {int(span['similarity'] * 100)}% similar"
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
        entry["n_more_spans"] = max(0, len(entry["numbers"]) - _MAX_NUMBERS)
    return sorted(found.values(), key=lambda entry: (-entry["n_words"], entry["numbers"][0]))


def _rows(borrowed: Iterable[Borrowed], sources: Sequence[dict[str, Any]]) -> dict[int, int]:
    places = {source["id"]: k for k, source in enumerate(sources, 1)}
    firsts = {span.number: span.sources[0]["id"] for span in borrowed if span.sources}
    return {number: places[id_] for number, id_ in firsts.items() if id_ in places}


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
