"""Which numbers moved from one version to the next by more than chance.

A mean or a share is a function of sums over paragraphs: those that both versions have are paired,
the others stand alone. It moved if its difference is beyond what the jackknife over these
paragraphs (`stats/resampling.py`) leaves to chance, 5 % for all numbers together: edits of a few
paragraphs move any number a little. A text of fewer than ten paragraphs is taken sentence by
sentence. Counts are exact.
"""

from __future__ import annotations

import difflib
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fabula.core.packages import scipy
from fabula.linguistic.profile import Profile, Sentence
from fabula.stats.resampling import MIN_UNITS, Floats, jackknife_error

COUNTS = ("n_sentences", "book.n_chapters", "book.n_scenes", "book.n_characters")
"""The numbers in a writer's view that are shown whenever they differ."""
_BY_CHANCE = 0.05
_N, _WORDS, _QUOTED, _RARE, _REPEATED, _SQUARES = range(6)
"""Columns of the sums over sentences, the last of squares of their words."""
OF_SUMS: Mapping[str, Callable[[Floats], Floats]] = {
    "sentence_length": lambda sums: sums[:, _WORDS] / sums[:, _N],
    "sentence_length_sd": lambda sums: np.sqrt(
        (sums[:, _SQUARES] - sums[:, _WORDS] ** 2 / sums[:, _N]) / (sums[:, _N] - 1)
    ),
    "dialogue_share": lambda sums: sums[:, _QUOTED] / sums[:, _WORDS],
    "rare_words": lambda sums: sums[:, _RARE] / sums[:, _WORDS],
    "repeated_share": lambda sums: sums[:, _REPEATED] / sums[:, _WORDS],
}
"""The others in a writer's view, from sums over a text, float64 (n, 6)."""


def sentence_rows(profile: Profile) -> list[list[int]]:
    """What is kept of each sentence: its paragraph, a checksum of its words, and four counts."""
    return [
        [s.paragraph, zlib.crc32(s.text.encode(errors="replace")), *_counts(s)]
        for s in profile.sentences
        if s.n_words
    ]


def moved_numbers(before: Any, after: Any) -> frozenset[str] | None:
    """The keys of `OF_SUMS` that moved by more than chance; None if too little text is known.

    before, after: kept `sentence_rows`.
    """
    try:
        both = [np.array(rows, np.float64).reshape(-1, 6) for rows in (before, after)]
    except (TypeError, ValueError):
        return None
    if any(len(set(rows[:, 0].tolist())) < MIN_UNITS for rows in both):
        # Each sentence as a paragraph of its own.
        for rows in both:
            rows[:, 0] = np.arange(len(rows))
    sides = [_by_paragraph(rows) for rows in both]
    units = _paired(*sides)
    if len(units) < MIN_UNITS:
        return None
    moved, total = set(), units.sum(axis=0)
    # Bonferroni: any one of them is an error.
    t = float(scipy("stats").t.ppf(1 - _BY_CHANCE / 2 / len(OF_SUMS), len(units) - 1))
    for key, of in OF_SUMS.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            every, left = (of(s[:, 6:]) - of(s[:, :6]) for s in (total[None], total - units))
        error = jackknife_error(left)
        if error is not None and abs(float(every[0])) > t * error:
            moved.add(key)
    return frozenset(moved)


def _counts(sentence: Sentence) -> tuple[int, int, int, int]:
    return sentence.n_words, sentence.n_quoted, sentence.n_rare, sentence.n_repeated


def _by_paragraph(rows: Floats) -> tuple[list[tuple[float, ...]], Floats]:
    """The checksums of each paragraph's sentences, and its sums: float64 (n_paragraphs, 6)."""
    starts = np.flatnonzero(np.diff(rows[:, 0], prepend=-1))
    names = [tuple(part[:, 1].tolist()) for part in np.split(rows, starts[1:])] if len(rows) else []
    words = rows[:, 2]
    columns = np.column_stack([np.ones(len(rows)), rows[:, 2:], words**2])
    return names, np.add.reduceat(columns, starts) if len(rows) else columns


def _paired(
    before: tuple[Sequence[tuple[float, ...]], Floats],
    after: tuple[Sequence[tuple[float, ...]], Floats],
) -> Floats:
    """Paragraphs beside those that took their place: float64 (n_units, 12), zeros for none."""
    (old, old_sums), (new, new_sums) = before, after
    units = []
    for _, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        unit = np.zeros((max(b - a, d - c), 12))
        unit[: b - a, :6], unit[: d - c, 6:] = old_sums[a:b], new_sums[c:d]
        units.append(unit)
    return np.concatenate([np.zeros((0, 12)), *units])
