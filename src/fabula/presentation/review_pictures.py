"""Charts of a review: curves with bands of groups, strips, and the two axes."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fabula.measures.groups import GroupNumbers
from fabula.review import TextReview
from fabula.review.comparing import SENTENCE_ITEM
from fabula.text import TextSettings
from fabula.web import visible

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
        if share == 0:
            return "lower than nearly all of them"
        return (
            "higher than nearly all of them" if share == 100 else f"higher than {share} % of them"
        )


def bands_of(groups: Sequence[GroupNumbers], item: str, value: float | None) -> list[Band]:
    """The bands of all groups that have the item."""
    return [
        Band(
            title=visible(group.title),
            kind=group.kind,
            low=known.quantile(_LOW),
            median=known.quantile(0.5),
            high=known.quantile(_HIGH),
            share_below=None if value is None else known.share_below(value),
            n=known.n,
        )
        for group in groups
        if (known := group.items.get(item)) is not None
    ]


def strip(groups: Sequence[GroupNumbers], item: str, value: float | None) -> dict[str, Any] | None:
    """A value over the bands of groups, one line per group; None without groups."""
    known = [(group, group.items[item]) for group in groups if item in group.items]
    if not known:
        return None
    ends = [known_.quantile(q) for _, known_ in known for q in (0.02, 0.98)]
    ends += [] if value is None else [value]
    low, high = min(ends), max(ends)
    span = (high - low) or 1.0

    def x(number: float) -> float:
        return round(4 + (_STRIP_WIDTH - 8) * (number - low) / span, 1)

    lines = [
        {
            "kind": group.kind,
            "y": 4 + _LINE_HEIGHT * k,
            "from": x(max(low, one.quantile(0.02))),
            "to": x(min(high, one.quantile(0.98))),
            "low": x(one.quantile(_LOW)),
            "high": x(one.quantile(_HIGH)),
            "median": x(one.quantile(0.5)),
        }
        for k, (group, one) in enumerate(known)
    ]
    said = "; ".join(f"{band.title}: {band.said}" for band in bands_of(groups, item, value))
    return {
        "width": _STRIP_WIDTH,
        "height": 4 + _LINE_HEIGHT * len(known),
        "lines": lines,
        "here": None if value is None else x(value),
        "label": said,
    }


def curve_bands(groups: Sequence[GroupNumbers], xs: Mapping[int, float]) -> list[dict[str, Any]]:
    """For each group the middle four fifths of its L-uniqueness, as a polygon over the curve.

    `xs` has the position of each level; the height is that of the curve, 128 for 0 and 14 for 1.
    """
    found = []
    for group in groups:
        items = {level: group.items.get(f"uniqueness_{level}") for level in xs}
        if any(one is None for one in items.values()):
            continue
        above = [(xs[k], one.quantile(_HIGH)) for k, one in items.items() if one]
        below = [(xs[k], one.quantile(_LOW)) for k, one in reversed(items.items()) if one]
        points = " ".join(f"{x},{128 - 114 * y:.1f}" for x, y in above + below)
        found.append({"kind": group.kind, "points": points, "title": visible(group.title)})
    return found


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
    people = [g for g in groups if item in g.items]
    ends = [dot.bits_per_word for dot in dots]
    ends += [g.items[item].quantile(q) for g in people for q in (0.02, 0.98)]
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
            "label": visible(dot.label),
            "target": dot.target,
        }
        for dot in dots
    ]
    return {
        "width": width,
        "height": height,
        "left": left,
        "bottom": bottom,
        "dots": placed,
        "has_links": any(dot.target for dot in dots),
        "ticks_x": [{"x": x(share), "shown": f"{share:.0%}"} for share in (0, 0.25, 0.5, 0.75, 1)],
        "ticks_y": [{"y": y(bits), "shown": f"{bits:g}"} for bits in _ticks(low, high)],
        "bands": [
            {
                "kind": g.kind,
                "title": visible(g.title),
                "y": y(g.items[item].quantile(_HIGH)),
                "height": round(
                    y(g.items[item].quantile(_LOW)) - y(g.items[item].quantile(_HIGH)), 1
                ),
                "median": y(g.items[item].quantile(0.5)),
            }
            for g in people
        ],
    }


def fluency_view(text: TextReview, groups: Sequence[GroupNumbers]) -> dict[str, Any]:
    """The sentences of a text that a model has scored, by novelty and surprisal."""
    fluency, originality = text.fluency, text.originality
    assert fluency is not None
    # Where each word begins, and whether it lies in a borrowed run.
    places = TextSettings().locate(text.document.text).starts.astype(np.int64)
    is_covered = np.zeros(len(places), np.bool_)
    for one in originality.borrowed if originality else ():
        first, last = np.searchsorted(places, (one.span.start, one.span.end))
        is_covered[first:last] = True
    dots = []
    for sentence in fluency.sentences:
        if sentence.bits_per_word is None:
            continue
        first, last = np.searchsorted(places, (sentence.start, sentence.end))
        novelty = 1 - float(is_covered[first:last].mean()) if last > first else 1.0
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


def _ticks(low: float, high: float) -> list[float]:
    steps = (0.5 * 10**k * times for k in range(12) for times in (1, 2, 4, 10))
    step = next((s for s in steps if (high - low) / s <= 8), high - low)
    return [k * step for k in range(int(low / step) + 1, int(high / step) + 1)] or [high]
