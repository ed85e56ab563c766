"""The phrases, or templates, that occur in most texts of a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.measures.diversity.shared_ngrams import Ngrams
from fabula.types import Span

PHRASES = range(4, 9)
"""Lengths of phrases that are listed."""
_N_EXAMPLES = 3
_N_LOOKED_AT = 50
"""Candidates of each length for every phrase that is listed."""


@dataclass(frozen=True, slots=True)
class SharedPhrase:
    """A phrase shared by texts of a group; `n_elsewhere` texts of other groups have it too."""

    phrase: str
    n_texts: int
    n_times: int
    n_elsewhere: int
    examples: tuple[Span, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "phrase": self.phrase,
            "n_texts": self.n_texts,
            "n_times": self.n_times,
            "n_texts_elsewhere": self.n_elsewhere,
            "examples": [
                {"id": span.document_id, "start": span.start, "end": span.end}
                for span in self.examples
            ],
        }


def shared_phrases(
    lengths: Sequence[Ngrams],
    is_in: NDArray[np.bool_],
    n_listed: int,
    words_at: Callable[[int, int], Sequence[str]],
    span_at: Callable[[int, int, int], Span],
) -> list[SharedPhrase]:
    """The most widespread phrases, by texts times words, none of them very similar to another.

    is_in: (n_texts,), the texts of the group. words_at: the words of an n-gram from its beginning
    and length. span_at: its position, from its text, beginning and length.
    """
    if not n_listed:
        return []
    found: list[tuple[int, int, int, Ngrams]] = []
    for one in lengths:
        if not len(one.ends):
            continue
        begins = np.concatenate([[0], one.ends[:-1]])
        n_texts = np.add.reduceat(is_in[one.texts].astype(np.int64), begins)
        best = np.argsort(-n_texts, kind="stable")[: n_listed * _N_LOOKED_AT]
        found += [(int(n_texts[t]) * one.n, one.n, int(t), one) for t in best if n_texts[t] > 1]
    # Python's sort is stable, so ties keep the order of the texts.
    found.sort(key=lambda entry: (-entry[0], -entry[1]))
    listed: list[SharedPhrase] = []
    taken: list[Sequence[str]] = []
    for _, _, t, one in found:
        here = slice(int(one.ends[t - 1]) if t else 0, int(one.ends[t]))
        words = words_at(int(one.firsts[here][0]), one.n)
        if any(_overlap(words, other) for other in taken):
            continue
        taken.append(words)
        texts, counts, firsts = one.texts[here], one.counts[here], one.firsts[here]
        own = is_in[texts]
        shown = zip(texts[own][:_N_EXAMPLES], firsts[own][:_N_EXAMPLES], strict=True)
        listed.append(
            SharedPhrase(
                " ".join(words),
                int(own.sum()),
                int(counts[own].sum()),
                int((~own).sum()),
                tuple(span_at(int(text), int(first), one.n) for text, first in shown),
            )
        )
        if len(listed) == n_listed:
            break
    return listed


def _overlap(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether more than half of the shorter occurs in the longer as a run."""
    shorter, longer = sorted((a, b), key=len)
    n = len(shorter) // 2 + 1
    runs = {tuple(longer[k : k + n]) for k in range(len(longer) - n + 1)}
    return any(tuple(shorter[k : k + n]) in runs for k in range(len(shorter) - n + 1))
