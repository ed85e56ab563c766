"""Parts of the originality page: near spans with their sources, and the spread over documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fabula.web import visible

_MAX_SPREAD = 10


@dataclass(frozen=True, slots=True)
class Gloss:
    """A stretch of a near span, with what the source has in its place."""

    text: str
    source: str = ""
    similarity: float | None = None
    is_same: bool = False


def glosses_of(span: dict[str, Any], text: str) -> Iterator[Gloss]:
    """The near span cut at its content words; each with its counterpart."""
    at = span["start"]
    for pair in span["pairs"]:
        if pair["start"] > at:
            yield Gloss(visible(" ".join(text[at : pair["start"]].split("\n"))))
        own = text[pair["start"] : pair["end"]]
        is_same = own.casefold() == pair["source"].casefold()
        yield Gloss(visible(own), visible(pair["source"]), pair["similarity"], is_same)
        at = pair["end"]
    if at < span["end"]:
        yield Gloss(visible(" ".join(text[at : span["end"]].split("\n"))))


def spread_of(spread: dict[str, Any] | None) -> dict[str, Any] | None:
    """The curve of uniqueness over documents, and the chosen documents."""
    if spread is None:
        return None
    left = spread["uniqueness"]
    width = max(1, len(left) - 1)
    return {
        **spread,
        "points": [
            {"x": round(40 + 284 * k / width, 1), "y": round(128 - 114 * value, 1)}
            for k, value in enumerate(left)
        ],
        "label": ", ".join(f"{k}: {value:.1%}" for k, value in enumerate(left)),
        "last": len(left) - 1,
        "chosen": [
            {**document, "title": visible(str(document["title"] or document["id"]))}
            for document in spread["documents"][:_MAX_SPREAD]
        ],
    }
