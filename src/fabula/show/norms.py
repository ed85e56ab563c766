"""A number among reference groups: bands, strips, clouds, and which groups compare."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fabula.stats.norms import GroupNumbers

_STRIP_WIDTH = 220
_LINE_HEIGHT = 7
LOW, HIGH = 0.1, 0.9
"""A band is the middle four fifths of a group."""
_BY_LENGTH = frozenset(("type_token_ratio", "unique_trigram_ratio", "repeated_share"))
"""Numbers whose rank correlation with the length of a text is over 0.3, over 446 stories of
`shared/data/human_vs_machine`. A mean sentence's length is among them (0.35) only because one set
has shorter texts: within each of the two sets it is below 0.15."""
_LIKE = 1.25
"""A similar length is in the middle half of a group's, or up to this factor beyond."""


def comparable(
    groups: Iterable[GroupNumbers], item: str, n_words: float | None
) -> tuple[GroupNumbers, ...]:
    """The groups that a number of a text with `n_words` words can be compared with.

    None for a count, which says only how long the text is.
    """
    if item.startswith("n_"):
        return ()
    alike = []
    for group in groups:
        lengths = group.items.get("n_words")
        is_like = item not in _BY_LENGTH
        if not is_like and lengths is not None and n_words is not None:
            low, high = lengths.quantile(0.25) / _LIKE, lengths.quantile(0.75) * _LIKE
            is_like = low <= n_words <= high
        alike += [group] * is_like
    return tuple(alike)


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
            low=spread.quantile(LOW),
            median=spread.quantile(0.5),
            high=spread.quantile(HIGH),
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
            "low": x(spread.quantile(LOW)),
            "high": x(spread.quantile(HIGH)),
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
