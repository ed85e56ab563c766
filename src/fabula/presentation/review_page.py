"""The page of everything that was found of one text, or of many: one file without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fabula.instruments import Figure, find_instrument
from fabula.judging.trust import NEVER_CHECKED
from fabula.measures.groups import GroupNumbers
from fabula.measures.scores import to_row
from fabula.presentation.advice_page import notes_of
from fabula.presentation.advice_tables import advice_notes, nothing_left
from fabula.presentation.fluency_view import (
    ODD_QUANTILE,
    FluencyView,
    fluency_view,
    odd_from,
    odd_sentences,
)
from fabula.presentation.judging_page import Judge, judge_view
from fabula.presentation.marked_text import Note, cut_text
from fabula.presentation.methods import bibtex_of, methods_of
from fabula.presentation.originality_page import Article, article_of
from fabula.presentation.page_file import write_page_file
from fabula.presentation.profile_page import CHART_HEIGHT, CHART_WIDTH, profile_view
from fabula.presentation.review_groups import group_views, was_tested
from fabula.presentation.review_pictures import (
    Band,
    Dot,
    bands_of,
    curve_bands,
    scatter,
    strip,
)
from fabula.reasons import explain
from fabula.review import GroupTest, LeftOut, Review, TextReview, numbers_of_review
from fabula.types import Document
from fabula.web import visible

__all__ = ["page_of", "write_review_page"]

_MAX_WHOLE = 40
_MAX_ROWS = 1_000
_MAX_PANELS = 60
PART_TITLES = {
    "originality": "Originality",
    "fluency": "Fluency",
    "profile": "Linguistic profile",
    "verdicts": "Tests of creative writing",
    "feedback": "Feedback",
}


@dataclass(slots=True)
class TextView:
    """One text as the page shows it."""

    number: int
    title: str
    by: str
    n_words: int | None
    article: Article | None
    paragraphs: list[Any]
    notes: list[Note]
    bands: list[Band] = field(default_factory=list)
    """Where its Creativity Index stands in groups."""
    curve_bands: list[dict[str, Any]] = field(default_factory=list)
    fluency: FluencyView | None = None
    profile: dict[str, Any] | None = None
    judges: list[Judge] = field(default_factory=list)
    others: list[dict[str, Any]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    nothing: list[str] = field(default_factory=list)


def title_of(part: str) -> str:
    """The name of a part of the report, for people."""
    instrument = None if part in PART_TITLES else find_instrument(part)
    return PART_TITLES.get(part, part) if instrument is None else visible(instrument.title)


def write_review_page(
    path: Path, review: Review, *, by: str | None = None, tests: Sequence[GroupTest] = ()
) -> None:
    """Write the page; the same review gives the same bytes."""
    write_page_file(path, "review.html.j2", page_of(review, by=by, tests=tests))


def page_of(
    review: Review, *, by: str | None = None, tests: Sequence[GroupTest] = ()
) -> dict[str, Any]:
    """What the template shows."""
    texts = [_text(k, text, review) for k, text in enumerate(review.texts[:_MAX_WHOLE], 1)]
    one = len(review.texts) == 1
    tested = by if was_tested(tests) else None
    signatures = {
        title_of(part): [visible(line) for line in signature.split("\n")]
        for part, signature in review.signatures.items()
    }
    return {
        "title": texts[0].title if one else f"{len(review.texts):,} texts",
        "one": one,
        "against": review.size,
        "texts": texts,
        "n_not_whole": len(review.texts) - len(texts),
        "table": None if one else _table(review),
        "panels": [] if one else _panels(review),
        "picture": None if one else _picture_of_texts(review),
        "tests": group_views(tests),
        "by": visible(by or ""),
        "left_out": [_left_out(entry) for entry in review.left_out],
        "methods": [visible(paragraph) for paragraph in methods_of(review, tested)],
        "bibtex": bibtex_of(review),
        "signatures": signatures,
        "legend": _legend(review),
        "remarks": _group_remarks(review),
        "never_checked": NEVER_CHECKED,
        "rubric": review.rubric,
        "is_demonstration": _is_demonstration(review),
        "width": CHART_WIDTH,
        "height": CHART_HEIGHT,
        "odd_share": f"{ODD_QUANTILE:.0%}",
    }


def _text(number: int, text: TextReview, review: Review) -> TextView:
    document = text.document
    many = len(text.advice) > 1
    notes = [
        note
        for k, advice in enumerate(text.advice)
        for note in notes_of(advice, before="abcdefgh"[k % 8] if many else "")
    ]
    limit = odd_from(_groups(review, "fluency"))
    odd = [] if text.fluency is None else odd_sentences(text.fluency, limit)
    article = None
    if text.originality is not None:
        article = article_of(number, document, to_row(text.originality), notes, odd)
    view = TextView(
        number=number,
        title=_title(document),
        by=visible(document.author or ""),
        n_words=_n_words(text),
        article=article,
        paragraphs=article.paragraphs if article else cut_text(document.text, notes=notes, odd=odd),
        notes=notes,
        profile=_profile(text, review),
        judges=_judges(text, review),
        others=[_other(name, text, review) for name in text.others],
        remarks=[line for advice in text.advice for line in advice_notes(advice)],
        nothing=[visible(nothing_left(one)) for one in text.advice if not one.points],
    )
    if article is not None and text.originality is not None:
        groups = _groups(review, "originality")
        view.bands = bands_of(groups, "creativity_index", text.originality.creativity_index)
        view.curve_bands = curve_bands(groups, {t["level"]: t["x"] for t in article.ticks})
    if text.fluency is not None:
        view.fluency = fluency_view(text, _groups(review, "fluency"), limit)
    return view


def _groups(review: Review, part: str) -> Sequence[GroupNumbers]:
    signature = review.signatures.get(part, "")
    return review.groups.find(signature).groups if signature else ()


def _group_remarks(review: Review) -> list[str]:
    found = []
    for part, signature in review.signatures.items():
        if part in ("verdicts", "feedback"):
            continue
        here = review.groups.find(signature)
        if here.remark:
            found.append(f"{title_of(part)}: {visible(here.remark)}.")
        elif not here.groups:
            found.append(
                f"{title_of(part)}: no reference group was measured in this way, so nothing "
                f"says whether these numbers are high or low."
            )
    return found


def _legend(review: Review) -> list[dict[str, str]]:
    """The lines of a strip, from above."""
    groups = _groups(review, "profile")
    return [{"kind": group.kind, "title": visible(group.title)} for group in groups]


def _is_demonstration(review: Review) -> bool:
    """Whether the embedded model said something."""
    said = [judge.rater for judge in review.judges]
    said += [advice.model for text in review.texts for advice in text.advice]
    return any("smollm2" in name for name in said)


def _profile(text: TextReview, review: Review) -> dict[str, Any] | None:
    if text.profile is None:
        return None
    groups = _groups(review, "profile")
    view = profile_view(text.profile)
    for metric in view["metrics"]:
        metric["strip"] = strip(groups, metric["id"], text.profile.values[metric["id"]])
    return view


def _other(name: str, text: TextReview, review: Review) -> dict[str, Any]:
    """What a registered instrument says: its figures among groups, and the places it names."""
    instrument = find_instrument(name)
    figures = {} if instrument is None else {one.item: one for one in instrument.figures}
    groups = _groups(review, name)
    rows, places = [], []
    for one in text.others[name]:
        figure = figures.get(one.item, Figure(one.item, one.item))
        value = one.value
        number = None if isinstance(value, str) else value
        rows.append(
            {
                "title": visible(figure.title),
                "explained": visible(figure.explained),
                "value": visible(str(value)) if number is None else format(number, figure.form),
                "missing": visible(explain(one.missing_reason)) if value is None else "",
                "strip": None if number is None else strip(groups, one.item, number),
            }
        )
        quoted = [visible(text.document.text[span.start : span.end]) for span in one.evidence]
        if quoted or one.rationale:
            places.append({"quoted": quoted, "text": visible(one.rationale or figure.title)})
    return {"id": name, "title": title_of(name), "figures": rows, "places": places}


def _judges(text: TextReview, review: Review) -> list[Judge]:
    if review.rubric is None:
        return []
    return [
        judge_view(judge, text.verdicts, [text.document], review.rubric)
        for judge in review.judges
        if any(one.rater == judge.rater for one in text.verdicts)
    ]


def _n_words(text: TextReview) -> int | None:
    if text.originality is not None:
        return text.originality.n_words
    value = text.profile.values["n_words"] if text.profile is not None else None
    return None if value is None else int(value)


def _title(document: Document) -> str:
    return visible(str(document.meta.get("title") or document.id))


def _left_out(entry: LeftOut) -> dict[str, Any]:
    return {
        "title": title_of(entry.part),
        "reason": visible(entry.reason),
        # What stands between backticks is for a terminal.
        "remedy": [(k % 2 == 1, visible(p)) for k, p in enumerate(entry.remedy.split("`")) if p],
        "is_failure": entry.is_failure,
    }


def _table(review: Review) -> dict[str, Any]:
    numbers, rows = numbers_of_review(review)
    shown = [number for number in numbers if number.key != "n_sentences"]
    return {
        "titles": [visible(number.title) for number in shown],
        "rows": [
            {
                "number": k if k <= _MAX_WHOLE else None,
                "title": _title(text.document),
                "by": visible(text.document.author or ""),
                "cells": [_cell(row.get(n.key), n.form, n.key in row) for n in shown],
            }
            for k, (text, row) in enumerate(
                zip(review.texts[:_MAX_ROWS], rows[:_MAX_ROWS], strict=True), 1
            )
        ],
        "n_more": max(0, len(review.texts) - _MAX_ROWS),
    }


def _cell(value: float | None, form: str, is_asked: bool) -> str:
    if value is None:
        return "missing" if is_asked else ""
    return format(value, form)


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
                "title": _title(text.document),
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
            dots.append(Dot(lowest, bits, _title(text.document), target=target))
    return scatter(dots, _groups(review, "fluency"), "bits_per_word", None)
