"""Whether a text is of the kind that a detector was calibrated on.

The false-positive rate was measured on certain people's texts, and is valid for texts like them: of
similar length, with as many line breaks, sentences and quotation marks of each style, in similar
vocabulary. Texts outside the range of the people's texts get no verdict. Machines' texts do not
matter here, since nothing is guaranteed about how often they are flagged.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.text.sketch import Sketch

_TRIMMED = 0.005
"""Share of the people's texts trimmed at either end of a range: outliers do not widen it."""
_SLACK_WORDS = 0.1
_NAMES = {
    "n_words": "{} words",
    "line_breaks": "{} line breaks per 100 words",
    "sentence_ends": "{} ends of sentences per 100 words",
    "straight_quotes": "{} straight quotation marks per 100 words",
    "curly_quotes": "{} curly quotation marks per 100 words",
    "other_quotes": "{} single or foreign quotation marks per 100 words",
    "unknown_words": "{} % words that no calibration text has",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """The range of the people's texts, and what identifies the calibration texts."""

    ranges: Mapping[str, tuple[float, float]]
    vocabulary: NDArray[np.uint16]
    """The words of all texts, as in sketches, sorted."""
    runs: NDArray[np.uint64]
    digests: frozenset[str]

    @classmethod
    def of(
        cls,
        sketches: Sequence[Sketch],
        is_human: NDArray[np.bool_],
        clusters: NDArray[np.int64],
        digests: Sequence[str],
    ) -> Kind:
        """The kind of labelled texts, at least one of which is by a person."""
        people = [s for s, human in zip(sketches, is_human, strict=True) if human]
        ranges = {name: _range([traits(s)[name] for s in people]) for name in traits(people[0])}
        unknown = _unknown_shares(sketches, clusters)[is_human]
        ranges["unknown_words"] = (0.0, _range(unknown.tolist())[1])
        return cls(
            ranges,
            np.unique(np.concatenate([s.vocabulary for s in sketches])),
            np.unique(np.concatenate([s.runs for s in sketches])),
            frozenset(digests),
        )

    def refusal(self, sketch: Sketch) -> str | None:
        """Why a text is of another kind, or None."""
        if not sketch.n_words:
            return None
        unknown = 100 * float(np.mean(~np.isin(sketch.vocabulary, self.vocabulary)))
        found = []
        for name, value in {**traits(sketch), "unknown_words": unknown}.items():
            low, high = self.ranges[name]
            slack = _SLACK_WORDS * value if name == "n_words" else 100 / sketch.n_words
            if not low - slack <= value <= high + slack:
                shown = "up to " if name == "unknown_words" else f"{low:.3g} to "
                found.append(f"{_NAMES[name].format(f'{value:.3g}')} (people's: {shown}{high:.3g})")
        return f"of another kind than the calibration texts: {', '.join(found)}" if found else None

    def holds(self, sketch: Sketch, digest: str) -> bool:
        """Whether the text is one of the calibration texts, or shares a long run with one."""
        return digest in self.digests or bool(np.isin(sketch.runs, self.runs).any())

    def to_row(self) -> dict[str, Any]:
        """As plain values; `of_row` reads them."""
        return {
            "ranges": {name: list(ends) for name, ends in self.ranges.items()},
            "vocabulary": _packed(self.vocabulary.astype("<u2")),
            "runs": _packed(self.runs.astype("<u8")),
            "digests": sorted(self.digests),
        }

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Kind:
        """Read output of `to_row`. Raises `KeyError`, `TypeError` or `ValueError` if damaged."""
        ranges = {name: row["ranges"][name] for name in _NAMES}
        return cls(
            {name: (float(low), float(high)) for name, (low, high) in ranges.items()},
            np.frombuffer(base64.b64decode(row["vocabulary"], validate=True), "<u2"),
            np.frombuffer(base64.b64decode(row["runs"], validate=True), "<u8"),
            frozenset(map(str, row["digests"])),
        )


def traits(sketch: Sketch) -> dict[str, float]:
    """Length and layout of a text."""
    return {"n_words": float(sketch.n_words), **sketch.marks}


def _range(values: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(values)
    n_left_out = int(_TRIMMED * len(ordered))
    return ordered[n_left_out], ordered[len(ordered) - 1 - n_left_out]


def _unknown_shares(sketches: Sequence[Sketch], clusters: NDArray[np.int64]) -> NDArray[np.float64]:
    """For each text, the percentage of its words that no text of another cluster has."""
    words = np.concatenate([s.vocabulary for s in sketches])
    owners = np.repeat(clusters, [len(s.vocabulary) for s in sketches])
    pairs = np.unique(np.stack([words.astype(np.int64), owners]), axis=1)
    n_clusters = np.bincount(pairs[0], minlength=1 << 16)
    # A text's cluster has all of its words, so a word in one cluster is in no other.
    return np.array(
        [100 * float(np.mean(n_clusters[s.vocabulary] < 2)) if s.n_words else 0.0 for s in sketches]
    )


def _packed(values: NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode()
