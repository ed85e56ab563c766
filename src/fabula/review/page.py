"""The page of all results for one text, or for many: one file without scripts, with its charts."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from fabula.core.errors import NEVER_CHECKED, explain
from fabula.core.instruments import Figure
from fabula.feedback.page import advice_notes, notes_of, nothing_left
from fabula.linguistic.page import CHART_HEIGHT, CHART_WIDTH, profile_view
from fabula.novelty.page import article_of
from fabula.novelty.scores import to_row
from fabula.review.parts import (
    SENTENCE_ITEM,
    Number,
    Review,
    TextReview,
    bibtex_of,
    by_chapter,
    comparable,
    methods_of,
    numbers_of_review,
    parts_of,
    title_of,
)
from fabula.review.tables import findings_view, lines_view, noted_places, together_blocks
from fabula.show.page import Listed, cut_text, write_page_file
from fabula.show.sheet import html_of
from fabula.stats.norms import GroupNumbers
from fabula.style.book_page import book_view, chapters_to_fold, folds_of
from fabula.text import TextSettings, count_words

_PLAIN_METRICS = (
    "n_sentences", "sentence_length", "sentence_length_sd", "dialogue_share", "rare_words",
    "repeated_share",
)  # fmt: skip
"""The part of the profile for writers; the rest is for researchers."""
_MAX_WHOLE = 40
_MAX_ROWS = 1_000
_MAX_PANELS = 60
_MAX_PHRASES = 200
_STRIP_WIDTH = 220
_LINE_HEIGHT = 7
_LOW, _HIGH = 0.1, 0.9
"""A band is the middle four fifths of a group."""
_LABEL_CHARS = 160
_WHY_MISSING = {
    "no_words": "no words in the text",
    "too_short": "no text before its only word",
    "not_finite": "the model gave no finite number",
}


def write_review_page(path: Path, review: Review, *, n_marks: int | None = None) -> None:
    """Write the page; the same review gives the same bytes."""
    write_page_file(path, "review.html.j2", page_of(review, n_marks=n_marks))


def page_of(review: Review, *, n_marks: int | None = None) -> dict[str, Any]:
    """What the template shows; `n_marks` borrowed passages are marked per 1,000 words."""
    texts = [_text(k, text, review, n_marks) for k, text in enumerate(review.texts[:_MAX_WHOLE], 1)]
    is_single = len(review.texts) == 1
    raters = [judge.rater for judge in review.judges]
    raters += [advice.model for text in review.texts for advice in text.advice]
    signatures = {
        title_of(part, review): signature.split("\n")
        for part, signature in review.signatures.items()
    }
    corrected = {}
    if review.rubric is not None and review.corrected:
        from fabula.raters.tables import correction_tables

        # By judge, its figures next to what experts would have said.
        for rater, correction in review.corrected.items():
            corrected[rater] = Markup(html_of(correction_tables(correction, review.rubric)[1:]))
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
    return {
        "title": texts[0]["title"] if is_single else f"{len(review.texts):,} texts",
        "one": is_single,
        "against": review.size,
        "texts": texts,
        "n_not_whole": len(review.texts) - len(texts),
        "table": None if is_single else _table(review),
        "panels": [] if is_single else _panels(review),
        "together": Markup(html_of(together_blocks(review))) if review.together else None,
        "is_class": review.together is not None and review.together.is_class,
        "corrected": corrected,
        "picture": None if is_single else _picture_of_texts(review),
        "left_out": [
            {
                "title": title_of(entry.part, review),
                "reason": entry.reason,
                # Text in backticks is for a terminal.
                "remedy": [(k % 2 == 1, p) for k, p in enumerate(entry.remedy.split("`")) if p],
                "is_failure": entry.is_failure,
            }
            for entry in review.left_out
        ],
        "methods": methods_of(review),
        "bibtex": bibtex_of(review),
        "signatures": signatures,
        # The lines of a strip, from above.
        "legend": [{"kind": g.kind, "title": g.title} for g in _groups(review, "profile")],
        "remarks": remarks,
        "never_checked": NEVER_CHECKED,
        "rubric": review.rubric,
        # Whether the embedded model produced a result.
        "is_demonstration": any("smollm2" in name for name in raters),
        "width": CHART_WIDTH,
        "height": CHART_HEIGHT,
        "plain_metrics": _PLAIN_METRICS,
    }


def _text(number: int, text: TextReview, review: Review, n_marks: int | None) -> dict[str, Any]:
    document = text.document
    notes = [
        note
        for k, advice in enumerate(text.advice)
        for note in notes_of(advice, before="abcdefgh"[k % 8] if len(text.advice) > 1 else "")
    ]
    # The places of listed phrases, each linked to its row.
    from fabula.groups.phrase_list import uses_of

    listed = [
        Listed(*place, use.n_words, use.said, f"{name}-{number}-row{k}")
        for name, measured in text.others.items()
        for measurement in measured
        for k, use in enumerate(uses_of(measurement)[:_MAX_PHRASES], 1)
        for place in use.places
    ]
    marked = [*listed, *noted_places(number, text)]
    chapters = chapters_to_fold(document)
    breaks = [place for chapter in chapters for place in (chapter.start, chapter.body)]
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
    profile: dict[str, Any] | None = None
    if text.profile is not None:
        groups, values = _groups(review, "profile"), text.profile.values
        profile = profile_view(text.profile)
        for metric in profile["metrics"]:
            like = comparable(groups, metric["id"], values["n_words"])
            metric["strip"] = strip(like, metric["id"], values[metric["id"]])
    judges = []
    if review.rubric is not None:
        from fabula.judging.page import judge_view

        judges = [
            judge_view(judge, text.verdicts, [text.document], review.rubric, review.people)
            for judge in review.judges
            if any(verdict.rater == judge.rater for verdict in text.verdicts)
        ]
    return {
        "number": number,
        "title": document.title,
        "by": document.author or "",
        "n_words": count_words(document.text),
        "article": article,
        "paragraphs": paragraphs,
        "notes": notes,
        # The position of its Creativity Index in groups.
        "bands": bands,
        "curve_bands": bands_of_curve,
        "fluency": fluency_view(text, _groups(review, "fluency")) if text.fluency else None,
        "profile": profile,
        "judges": judges,
        "others": [_other(number, name, text, review) for name in text.others],
        "remarks": [line for advice in text.advice for line in advice_notes(advice)],
        "nothing": [nothing_left(advice) for advice in text.advice if not advice.points],
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


def _other(number: int, name: str, text: TextReview, review: Review) -> dict[str, Any]:
    """Another instrument's results: its figures among groups, and the places it names."""
    from fabula.groups.phrase_list import NO_DETECTOR, uses_of

    instrument = next((known for known in review.instruments if known.id == name), None)
    figures = {} if instrument is None else {figure.item: figure for figure in instrument.figures}
    groups = _groups(review, name)
    rows, places, phrases, book = [], [], None, None
    for measurement in text.others[name]:
        figure = figures.get(measurement.item, Figure(measurement.item, measurement.item))
        value = measurement.value
        numeric = None if isinstance(value, str) else value
        rows.append(
            {
                "title": figure.title,
                "explained": figure.explained,
                "value": str(value) if numeric is None else format(numeric, figure.form),
                "missing": explain(measurement.missing_reason) if value is None else "",
                "strip": None if numeric is None else strip(groups, measurement.item, numeric),
            }
        )
        if "book" in measurement.details:
            row = measurement.details["book"]
            book = book_view(text.document, number, row, by_chapter(text, row["chapters"]))
        if "phrases" in measurement.details:
            uses = uses_of(measurement)
            phrases = {
                "about": NO_DETECTOR,
                "n_more": max(0, len(uses) - _MAX_PHRASES),
                "rows": [
                    {
                        "id": f"{measurement.rubric}-{number}-row{k}",
                        "phrase": use.phrase,
                        "n": len(use.places),
                        "said": use.said,
                    }
                    for k, use in enumerate(uses[:_MAX_PHRASES], 1)
                ],
            }
            continue
        quoted = [text.document.text[span.start : span.end] for span in measurement.evidence]
        if quoted or measurement.rationale:
            places.append({"quoted": quoted, "text": measurement.rationale or figure.title})
    return {
        "id": name,
        "title": title_of(name, review),
        "figures": rows,
        "places": places,
        "phrases": phrases,
        "book": book,
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


def _panels(review: Review) -> list[dict[str, Any]]:
    """A small curve or rhythm for each of the first texts."""
    panels = []
    for number, text in enumerate(review.texts[:_MAX_PANELS], 1):
        originality = text.originality
        if originality is None:
            continue
        shares = {level: u for level, u in originality.uniqueness.items() if u is not None}
        low, high = min(originality.uniqueness), max(originality.uniqueness)
        points = " ".join(
            f"{4 + 112 * (level - low) / max(1, high - low):.1f},{44 - 40 * value:.1f}"
            for level, value in shares.items()
        )
        index = originality.creativity_index
        panels.append(
            {
                "number": number if number <= _MAX_WHOLE else None,
                "title": text.document.title,
                "points": points,
                "index": "missing" if index is None else f"{index:.2f}",
                "label": ", ".join(f"{level}: {value:.0%}" for level, value in shares.items()),
            }
        )
    return panels


def _picture_of_texts(review: Review) -> dict[str, Any] | None:
    """Each text between novelty and surprisal."""
    dots = []
    for number, text in enumerate(review.texts, 1):
        if text.originality is None or text.fluency is None:
            continue
        lowest = next(iter(text.originality.uniqueness.values()))
        bits = text.fluency.bits_per_word
        if lowest is not None and bits is not None:
            target = f"#a{number}" if number <= _MAX_WHOLE else ""
            dots.append(Dot(lowest, bits, text.document.title, target=target))
    return scatter(dots, _groups(review, "fluency"), "bits_per_word")


@dataclass(frozen=True, slots=True)
class Band:
    """The position of a value in a group."""

    title: str
    kind: str
    low: float
    median: float
    high: float
    share_below: float | None
    n: int

    @property
    def said(self) -> str:
        """`higher than 83 % of them`."""
        if self.share_below is None:
            return ""
        share = round(100 * self.share_below)
        nearly = {0: "lower than nearly all of them", 100: "higher than nearly all of them"}
        return nearly.get(share, f"higher than {share} % of them")


def bands_of(groups: Sequence[GroupNumbers], item: str, value: float | None) -> list[Band]:
    """The bands of all groups that have the item."""
    return [
        Band(
            title=group.title,
            kind=group.kind,
            low=spread.quantile(_LOW),
            median=spread.quantile(0.5),
            high=spread.quantile(_HIGH),
            share_below=None if value is None else spread.share_below(value),
            n=spread.n,
        )
        for group in groups
        if (spread := group.items.get(item)) is not None
    ]


def strip(groups: Sequence[GroupNumbers], item: str, value: float | None) -> dict[str, Any] | None:
    """A value over the bands of groups, one line per group; None without groups."""
    spreads = [(group, group.items[item]) for group in groups if item in group.items]
    if not spreads:
        return None
    ends = [spread.quantile(q) for _, spread in spreads for q in (0.02, 0.98)]
    ends += [] if value is None else [value]
    low, high = min(ends), max(ends)
    span = (high - low) or 1.0

    def x(number: float) -> float:
        return round(4 + (_STRIP_WIDTH - 8) * (number - low) / span, 1)

    lines = [
        {
            "kind": group.kind,
            "y": 4 + _LINE_HEIGHT * k,
            "from": x(max(low, spread.quantile(0.02))),
            "to": x(min(high, spread.quantile(0.98))),
            "low": x(spread.quantile(_LOW)),
            "high": x(spread.quantile(_HIGH)),
            "median": x(spread.quantile(0.5)),
        }
        for k, (group, spread) in enumerate(spreads)
    ]
    return {
        "width": _STRIP_WIDTH,
        "height": 4 + _LINE_HEIGHT * len(spreads),
        "lines": lines,
        "here": None if value is None else x(value),
        "label": "; ".join(f"{b.title}: {b.said}" for b in bands_of(groups, item, value)),
    }


def curve_bands(groups: Sequence[GroupNumbers], xs: Mapping[int, float]) -> list[dict[str, Any]]:
    """For each group the middle four fifths of its L-uniqueness, as a polygon over the curve.

    `xs` has the position of each level; the height is that of the curve, 128 for 0 and 14 for 1.
    """
    polygons = []
    for group in groups:
        items = {level: group.items.get(f"uniqueness_{level}") for level in xs}
        if any(spread is None for spread in items.values()):
            continue
        above = [(xs[k], spread.quantile(_HIGH)) for k, spread in items.items() if spread]
        below = [(xs[k], spread.quantile(_LOW)) for k, spread in reversed(items.items()) if spread]
        points = " ".join(f"{x},{128 - 114 * y:.1f}" for x, y in above + below)
        polygons.append({"kind": group.kind, "points": points, "title": group.title})
    return polygons


@dataclass(frozen=True, slots=True)
class Dot:
    """A sentence or a text between the two axes."""

    novelty: float
    """Share of its words in no borrowed run, 0 to 1."""
    bits_per_word: float
    label: str
    target: str = ""


def scatter(
    dots: Sequence[Dot], groups: Sequence[GroupNumbers], item: str
) -> dict[str, Any] | None:
    """Novelty on the x-axis, surprisal on the y-axis; None without dots."""
    if not dots:
        return None
    width, height, left, bottom = 560, 300, 46, 262
    ends = [dot.bits_per_word for dot in dots]
    ends += [g.items[item].quantile(q) for g in groups if item in g.items for q in (0.02, 0.98)]
    low, high = min(ends), max(ends)
    margin = 0.06 * ((high - low) or 1.0)
    low, high = max(0.0, low - margin), high + margin

    def y(bits: float) -> float:
        return round(bottom - (bottom - 12) * (bits - low) / (high - low), 1)

    def x(novelty: float) -> float:
        return round(left + 14 + (width - left - 60) * novelty, 1)

    placed = [
        {
            # Most sentences borrow nothing: sorted side by side, by their words, they are
            # distinguishable.
            "x": round(
                x(dot.novelty) + (zlib.crc32(dot.label.encode(errors="replace")) % 33) - 8, 1
            )
            if dot.novelty == 1
            else x(dot.novelty),
            "y": y(dot.bits_per_word),
            "label": dot.label,
            "target": dot.target,
        }
        for dot in dots
    ]
    steps = (0.5 * 10**k * times for k in range(12) for times in (1, 2, 4, 10))
    step = next((s for s in steps if (high - low) / s <= 8), high - low)
    ticks = [k * step for k in range(int(low / step) + 1, int(high / step) + 1)] or [high]
    return {
        "width": width,
        "height": height,
        "left": left,
        "bottom": bottom,
        "dots": placed,
        "has_links": any(dot.target for dot in dots),
        "ticks_x": [{"x": x(share), "shown": f"{share:.0%}"} for share in (0, 0.25, 0.5, 0.75, 1)],
        "ticks_y": [{"y": y(bits), "shown": f"{bits:g}"} for bits in ticks],
        "bands": [
            {
                "kind": band.kind,
                "title": band.title,
                "y": y(band.high),
                "height": round(y(band.low) - y(band.high), 1),
                "median": y(band.median),
            }
            for band in bands_of(groups, item, None)
        ],
    }


def fluency_view(text: TextReview, groups: Sequence[GroupNumbers]) -> dict[str, Any]:
    """The sentences of a text that a model has scored, by novelty and surprisal."""
    fluency, originality = text.fluency, text.originality
    assert fluency is not None
    # Where each word begins, and whether it lies in a borrowed run.
    places = TextSettings().locate(text.document.text).starts
    is_covered = np.zeros(len(places), np.bool_)
    for run in originality.borrowed if originality else ():
        is_covered[slice(*np.searchsorted(places, (run.span.start, run.span.end)))] = True
    dots = []
    for sentence in fluency.sentences:
        if sentence.bits_per_word is None:
            continue
        covered = is_covered[slice(*np.searchsorted(places, (sentence.start, sentence.end)))]
        novelty = 1 - float(covered.mean()) if len(covered) else 1.0
        words = " ".join(text.document.text[sentence.start : sentence.end].split())
        dots.append(Dot(novelty, sentence.bits_per_word, words[:_LABEL_CHARS]))
    # If originality is missing, nothing is known to be new.
    is_known = originality is not None and originality.missing_reason is None
    reason = fluency.missing_reason or ""
    return {
        "bits": fluency.bits_per_word,
        "missing": _WHY_MISSING.get(reason, reason),
        "bands": bands_of(groups, "bits_per_word", fluency.bits_per_word),
        "picture": scatter(dots, groups, SENTENCE_ITEM) if is_known else None,
    }
