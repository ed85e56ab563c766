"""The page of all results for one text, or for many: one file without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fabula.instruments import Figure
from fabula.measures.groups import GroupNumbers
from fabula.measures.scores import to_row
from fabula.presentation.advice import advice_notes, notes_of, nothing_left
from fabula.presentation.book_page import book_view, chapters_to_fold, folds_of
from fabula.presentation.findings_view import findings_view, lines_view, noted_places
from fabula.presentation.marked_text import Listed, cut_text
from fabula.presentation.originality_page import article_of
from fabula.presentation.page_file import write_page_file
from fabula.presentation.profile_page import CHART_HEIGHT, CHART_WIDTH, profile_view
from fabula.presentation.review_pictures import (
    Dot,
    bands_of,
    curve_bands,
    fluency_view,
    scatter,
    strip,
)
from fabula.presentation.review_tables import together_blocks
from fabula.presentation.sheet import html_of
from fabula.reasons import NEVER_CHECKED, explain
from fabula.review import Number, Review, TextReview, numbers_of_review
from fabula.review.comparing import by_chapter, comparable
from fabula.review.report_parts import bibtex_of, methods_of, parts_of, title_of
from fabula.text import count_words
from fabula.types import Measurement
from fabula.web import visible

_PLAIN_METRICS = (
    "n_sentences", "sentence_length", "sentence_length_sd", "dialogue_share", "rare_words",
    "repeated_share",
)  # fmt: skip
"""The part of the profile for writers; the rest is for researchers."""
_MAX_WHOLE = 40
_MAX_ROWS = 1_000
_MAX_PANELS = 60
_MAX_PHRASES = 200


def write_review_page(path: Path, review: Review, *, n_marks: int | None = None) -> None:
    """Write the page; the same review gives the same bytes."""
    write_page_file(path, "review.html.j2", page_of(review, n_marks=n_marks))


def page_of(review: Review, *, n_marks: int | None = None) -> dict[str, Any]:
    """What the template shows; `n_marks` borrowed passages are marked per 1,000 words."""
    whole = review.texts[:_MAX_WHOLE]
    texts = [_text(k, text, review, n_marks) for k, text in enumerate(whole, 1)]
    one = len(review.texts) == 1
    asked = [judge.rater for judge in review.judges]
    asked += [advice.model for text in review.texts for advice in text.advice]
    signatures = {
        visible(title_of(part, review)): [visible(line) for line in signature.split("\n")]
        for part, signature in review.signatures.items()
    }
    return {
        "title": texts[0]["title"] if one else f"{len(review.texts):,} texts",
        "one": one,
        "against": review.size,
        "texts": texts,
        "n_not_whole": len(review.texts) - len(texts),
        "table": None if one else _table(review),
        "panels": [] if one else _panels(review),
        "together": Markup(html_of(together_blocks(review))) if review.together else None,
        "is_class": review.together is not None and review.together.is_class,
        "corrected": _corrected(review),
        "picture": None if one else _picture_of_texts(review),
        "left_out": [
            {
                "title": visible(title_of(one.part, review)),
                "reason": visible(one.reason),
                # Text in backticks is for a terminal.
                "remedy": [
                    (k % 2 == 1, visible(p)) for k, p in enumerate(one.remedy.split("`")) if p
                ],
                "is_failure": one.is_failure,
            }
            for one in review.left_out
        ],
        "methods": [visible(paragraph) for paragraph in methods_of(review)],
        "bibtex": bibtex_of(review),
        "signatures": signatures,
        # The lines of a strip, from above.
        "legend": [
            {"kind": group.kind, "title": visible(group.title)}
            for group in _groups(review, "profile")
        ],
        "remarks": _remarks(review),
        "never_checked": NEVER_CHECKED,
        "rubric": review.rubric,
        # Whether the embedded model produced a result.
        "is_demonstration": any("smollm2" in name for name in asked),
        "width": CHART_WIDTH,
        "height": CHART_HEIGHT,
        "plain_metrics": _PLAIN_METRICS,
    }


def _corrected(review: Review) -> dict[str, Markup]:
    """By judge, its figures next to what experts would have said."""
    if review.rubric is None or not review.corrected:
        return {}
    from fabula.presentation.correction_tables import correction_tables

    return {
        rater: Markup(html_of(correction_tables(one, review.rubric)[1:]))
        for rater, one in review.corrected.items()
    }


def _text(number: int, text: TextReview, review: Review, n_marks: int | None) -> dict[str, Any]:
    """One text as the page shows it."""
    document = text.document
    many = len(text.advice) > 1
    notes = [
        note
        for k, advice in enumerate(text.advice)
        for note in notes_of(advice, before="abcdefgh"[k % 8] if many else "")
    ]
    listed = _listed(number, text, review)
    marked = [*listed, *noted_places(number, text)]
    chapters = chapters_to_fold(document)
    breaks = [place for one in chapters for place in (one.start, one.body)]
    article: dict[str, Any] | None = None
    bands, bands_of_curve = [], []
    if text.originality is not None:
        row = to_row(text.originality)
        article = article_of(number, document, row, notes, marked, n_marks, breaks)
        groups = _groups(review, "originality")
        bands = bands_of(groups, "creativity_index", text.originality.creativity_index)
        bands_of_curve = curve_bands(groups, {t["level"]: t["x"] for t in article["ticks"]})
        paragraphs = article["paragraphs"]
    else:
        paragraphs = cut_text(document.text, notes=notes, listed=marked, breaks=breaks)
    n_marked = article["n_marked"] if article else 0
    return {
        "number": number,
        "title": visible(document.title),
        "by": visible(document.author or ""),
        "n_words": count_words(document.text),
        "article": article,
        "paragraphs": paragraphs,
        "notes": notes,
        # The position of its Creativity Index in groups.
        "bands": bands,
        "curve_bands": bands_of_curve,
        "fluency": fluency_view(text, _groups(review, "fluency")) if text.fluency else None,
        "profile": _profile(text, review),
        "judges": _judges(text, review),
        "others": [_other(number, name, text, review) for name in text.others],
        "remarks": [line for advice in text.advice for line in advice_notes(advice)],
        "nothing": [visible(nothing_left(one)) for one in text.advice if not one.points],
        # Whether phrases of a list are marked.
        "has_listed": bool(listed),
        "lines": lines_view(number, text),
        # What to look at first.
        "findings": findings_view(number, text, review, notes, n_marked),
        # The paragraphs by chapter, if the text is a book; else none.
        "folds": folds_of(document, number, chapters, paragraphs),
    }


def _groups(review: Review, part: str) -> Sequence[GroupNumbers]:
    signature = review.signatures.get(part, "")
    return review.groups.find(signature).groups if signature else ()


def _remarks(review: Review) -> list[str]:
    found = [f"{visible(remark)}." for remark in review.remarks]
    for part in parts_of(review):
        if not part.has_groups or part.id not in review.signatures:
            continue
        here = review.groups.find(review.signatures[part.id])
        if here.remark:
            found.append(f"{visible(part.title)}: {visible(here.remark)}.")
        elif not here.groups:
            found.append(
                f"{visible(part.title)}: no reference group was measured in this way, so there is "
                "nothing to show whether these numbers are high or low."
            )
    return found


def _profile(text: TextReview, review: Review) -> dict[str, Any] | None:
    if text.profile is None:
        return None
    groups = _groups(review, "profile")
    view = profile_view(text.profile)
    for metric in view["metrics"]:
        like = comparable(groups, metric["id"], text.profile.values["n_words"])
        metric["strip"] = strip(like, metric["id"], text.profile.values[metric["id"]])
    return view


def _listed(number: int, text: TextReview, review: Review) -> list[Listed]:
    """The places of listed phrases, each linked to its row."""
    from fabula.measures.phrase_list import uses_of

    return [
        Listed(*place, use.n_words, visible(use.said), f"{name}-{number}-row{k}")
        for name, said in text.others.items()
        for one in said
        for k, use in enumerate(uses_of(one)[:_MAX_PHRASES], 1)
        for place in use.places
    ]


def _phrases(number: int, one: Measurement) -> dict[str, Any] | None:
    """The phrases of a list that a text contains; None for another measurement."""
    from fabula.measures.phrase_list import NO_DETECTOR, uses_of

    if "phrases" not in one.details:
        return None
    uses = uses_of(one)
    return {
        "about": NO_DETECTOR,
        "n_more": max(0, len(uses) - _MAX_PHRASES),
        "rows": [
            {
                "id": f"{one.rubric}-{number}-row{k}",
                "phrase": visible(use.phrase),
                "n": len(use.places),
                "said": visible(use.said),
            }
            for k, use in enumerate(uses[:_MAX_PHRASES], 1)
        ],
    }


def _other(number: int, name: str, text: TextReview, review: Review) -> dict[str, Any]:
    """Another instrument's results: its figures among groups, and the places it names."""
    instrument = review.instrument(name)
    figures = {} if instrument is None else {one.item: one for one in instrument.figures}
    groups = _groups(review, name)
    rows, places, phrases, book = [], [], None, None
    for one in text.others[name]:
        figure = figures.get(one.item, Figure(one.item, one.item))
        value = one.value
        known = None if isinstance(value, str) else value
        rows.append(
            {
                "title": visible(figure.title),
                "explained": visible(figure.explained),
                "value": visible(str(value)) if known is None else format(known, figure.form),
                "missing": visible(explain(one.missing_reason)) if value is None else "",
                "strip": None if known is None else strip(groups, one.item, known),
            }
        )
        if "book" in one.details:
            row = one.details["book"]
            book = book_view(text.document, number, row, by_chapter(text, row["chapters"]))
        phrases = _phrases(number, one)
        if phrases is not None:
            continue
        quoted = [visible(text.document.text[span.start : span.end]) for span in one.evidence]
        if quoted or one.rationale:
            places.append({"quoted": quoted, "text": visible(one.rationale or figure.title)})
    return {
        "id": name,
        "title": visible(title_of(name, review)),
        "figures": rows,
        "places": places,
        "phrases": phrases,
        "book": book,
    }


def _judges(text: TextReview, review: Review) -> list[dict[str, Any]]:
    if review.rubric is None:
        return []
    from fabula.presentation.judging_page import judge_view

    return [
        judge_view(judge, text.verdicts, [text.document], review.rubric, review.people)
        for judge in review.judges
        if any(one.rater == judge.rater for one in text.verdicts)
    ]


def _table(review: Review) -> dict[str, Any]:
    numbers, rows = numbers_of_review(review)
    shown = [number for number in numbers if number.key != "n_sentences"]

    def cell(row: dict[str, float | None], number: Number) -> str:
        value = row.get(number.key)
        if value is None:
            return "missing" if number.key in row else ""
        return format(value, number.form)

    return {
        "titles": [visible(number.title) for number in shown],
        "rows": [
            {
                "number": k if k <= _MAX_WHOLE else None,
                "title": visible(text.document.title),
                "by": visible(text.document.author or ""),
                "cells": [cell(row, number) for number in shown],
            }
            for k, text, row in zip(range(1, _MAX_ROWS + 1), review.texts, rows, strict=False)
        ],
        "n_more": max(0, len(review.texts) - _MAX_ROWS),
    }


def _panels(review: Review) -> list[dict[str, Any]]:
    """A small curve or rhythm for each of the first texts."""
    panels = []
    for k, text in enumerate(review.texts[:_MAX_PANELS], 1):
        found = text.originality
        if found is None:
            continue
        known = {level: value for level, value in found.uniqueness.items() if value is not None}
        low, high = min(found.uniqueness), max(found.uniqueness)
        points = " ".join(
            f"{4 + 112 * (level - low) / max(1, high - low):.1f},{44 - 40 * value:.1f}"
            for level, value in known.items()
        )
        index = found.creativity_index
        panels.append(
            {
                "number": k if k <= _MAX_WHOLE else None,
                "title": visible(text.document.title),
                "points": points,
                "index": "missing" if index is None else f"{index:.2f}",
                "label": ", ".join(f"{level}: {value:.0%}" for level, value in known.items()),
            }
        )
    return panels


def _picture_of_texts(review: Review) -> dict[str, Any] | None:
    """Each text between novelty and surprisal."""
    dots = []
    for k, text in enumerate(review.texts, 1):
        if text.originality is None or text.fluency is None:
            continue
        lowest = next(iter(text.originality.uniqueness.values()))
        bits = text.fluency.bits_per_word
        if lowest is not None and bits is not None:
            target = f"#a{k}" if k <= _MAX_WHOLE else ""
            dots.append(Dot(lowest, bits, visible(text.document.title), target=target))
    return scatter(dots, _groups(review, "fluency"), "bits_per_word")
