"""The page of all results for one text, or for many: one file without scripts, with its charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fabula.review.findings import BY_WORDS, findings_of, marked_findings, said_of
from fabula.show.page import cut_text, write_page_file
from fabula.show.parts import (
    Finding,
    Marks,
    Number,
    ReportPart,
    Review,
    TextReview,
    bibtex_of,
    methods_of,
    numbers_of_review,
    part_of_finding,
    parts_of,
    title_of,
)
from fabula.style.book import chapters_to_fold, folds_of
from fabula.style.part import quoted, right_of
from fabula.text import count_words

_MAX_WHOLE = 40
_MAX_ROWS = 1_000


def write_review_page(path: Path, review: Review) -> None:
    """Write the page; the same review gives the same bytes."""
    write_page_file(path, "review/page.html.j2", page_of(review))


def page_of(review: Review) -> dict[str, Any]:
    """What the template shows."""
    parts = sorted(parts_of(review), key=lambda part: part.page_order)
    texts = [_text(k, text, review, parts) for k, text in enumerate(review.texts[:_MAX_WHOLE], 1)]
    is_single = len(review.texts) == 1
    remarks = [f"{remark}." for remark in review.remarks]
    for part in parts_of(review):
        if not part.has_groups or part.id not in review.signatures:
            continue
        norms = review.groups.find(review.signatures[part.id])
        if norms.remark:
            remarks.append(f"{part.title}: {norms.remark}.")
        elif not norms.groups:
            remarks.append(
                f"{part.title}: no reference group was measured in this way, so there is "
                "nothing to show whether these numbers are high or low."
            )
    of_all = [
        {"template": part.template, "view": view, "leads": part.leads(review)}
        for part in reversed(parts)
        if not is_single and (view := part.view_of_all(review, _MAX_WHOLE))
    ]
    models = (model for part in parts for model in part.models(review))
    return {
        "title": texts[0]["title"] if is_single else f"{len(review.texts):,} texts",
        "one": is_single,
        "against": review.size,
        "texts": texts,
        "n_not_whole": len(review.texts) - len(texts),
        "table": None if is_single else _table(review),
        # What is known of the texts together, by part.
        "of_all": of_all,
        "is_class": any(part.leads(review) for part in parts),
        "left_out": left_out_of(review),
        "methods": methods_of(review),
        "bibtex": bibtex_of(review),
        "signatures": {
            title_of(part, review): signature.split("\n")
            for part, signature in review.signatures.items()
        },
        "remarks": remarks,
        "styles": list(dict.fromkeys(part.style for part in parts if part.style)),
        # Whether the embedded model produced a result.
        "is_demonstration": any("smollm2" in model for model in models),
    }


def left_out_of(review: Review) -> list[dict[str, Any]]:
    """What the template shows of the instruments that did not run."""
    return [
        {
            "title": title_of(entry.part, review),
            "reason": entry.reason,
            # Text in backticks is for a terminal.
            "remedy": [(k % 2 == 1, p) for k, p in enumerate(entry.remedy.split("`")) if p],
            "is_failure": entry.is_failure,
        }
        for entry in review.left_out
    ]


def _text(
    number: int, text: TextReview, review: Review, parts: Sequence[ReportPart]
) -> dict[str, Any]:
    document = text.document
    views = {part.id: view for part in parts if (view := part.view(number, text, review))}
    marks = {part.id: part.marks(views[part.id]) for part in parts if part.id in views}
    borrowed = next((m for m in marks.values() if m.borrowed), Marks())
    notes = [note for m in marks.values() for note in m.notes]
    # Of two marks on the same words the first: a phrase of a list before a note on lines.
    late = sorted((part for part in parts if part.id in marks), key=lambda part: -part.page_order)
    listed = [mark for part in late for mark in marks[part.id].listed]
    shown = [
        {"id": part.id, "order": part.order, "template": part.template, "view": views[part.id]}
        for part in parts
        if part.id in views
    ]
    chapters = chapters_to_fold(document)
    breaks = [place for chapter in chapters for place in (chapter.start, chapter.body)]
    italics = [(a, b) for a, b in document.meta.get("italic_places", ())]
    titles = [str(title) for *_, title in document.meta.get("headings") or ()]
    marked = borrowed.borrowed, notes, listed, breaks, italics, titles
    paragraphs = cut_text(document.text, *marked)
    return {
        "number": number,
        "title": document.title,
        "by": document.author or "",
        "n_words": count_words(document.text),
        "body": {
            "number": number,
            "paragraphs": paragraphs,
            "rows": borrowed.rows,
            # The margin has points of feedback instead of sources.
            "has_notes": bool(notes),
        },
        # What each part shows, in the order of the page, and in that of files.
        "parts": shown,
        "in_order": sorted(shown, key=lambda part: part["order"]),
        # What to look at first.
        "findings": _findings(number, text, review, views),
        # The paragraphs by chapter, if the text is a book; else none.
        "folds": folds_of(document, number, chapters, paragraphs),
    }


def _findings(
    number: int, text: TextReview, review: Review, views: Mapping[str, Any]
) -> dict[str, Any]:
    """The first screen: sentences, places in order, and an overview along the page's edge."""

    def place_of(finding: Finding) -> str:
        """Where it is on the page; empty if nothing is marked for it."""
        part = part_of_finding(finding.kind)
        return part.anchor(number, finding, views[part.id])

    def shown(finding: Finding) -> dict[str, Any]:
        return {
            "finding": finding,
            "is_word": finding.kind in BY_WORDS,
            "title": finding.title,
            "where": finding.where,
            "quote": quoted(whole, finding.start, finding.end),
            "around": finding.around,
            "why": finding.why,
            "right": right_of(finding.kind),
            "href": place_of(finding),
            "kind": part_of_finding(finding.kind).colour,
            "at": f"{100 * finding.start / max(1, len(whole)):.2f}",
        }

    whole, suffix = text.document.text, "" if len(review.texts) == 1 else f"-{number}"
    return {
        "said": [
            {"sentence": s.sentence, "href": place_of(s.first) if s.first else s.about + suffix}
            for s in said_of(text, review)
        ],
        "first": list(map(shown, findings_of(text))),
        # All of them, which the desk can dismiss.
        "all": list(map(shown, marked_findings(text))),
    }


def _table(review: Review) -> dict[str, Any]:
    numbers, rows = numbers_of_review(review)
    shown = [number for number in numbers if number.key != "n_sentences"]

    def cell(row: dict[str, float | None], number: Number) -> str:
        value = row.get(number.key)
        if value is None:
            return "missing" if number.key in row else ""
        return format(value, number.form)

    return {
        "titles": [number.title for number in shown],
        "rows": [
            {
                "number": k if k <= _MAX_WHOLE else None,
                "title": text.document.title,
                "by": text.document.author or "",
                "cells": [cell(row, number) for number in shown],
            }
            for k, text, row in zip(range(1, _MAX_ROWS + 1), review.texts, rows, strict=False)
        ],
        "n_more": max(0, len(review.texts) - _MAX_ROWS),
    }
