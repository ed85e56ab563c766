"""How many documents a text's matches are spread over.

Lu et al. 2024, section "Evaluation" ("How do overlapped n-grams distribute in the reference
corpus?"): the L-uniqueness that remains when only the best N documents may be used, and how many
documents it takes to push it below a half. Choosing the best is the maximum coverage problem; as in
the paper, documents are chosen greedily, which covers at least 1 - 1/e (63 %) of what the best
choice of the same number could (Nemhauser, Wolsey and Fisher 1978).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabula.kernels.cover import choose_documents
from fabula.reference import Reference

MAX_PLACES = 20_000
"""Places of one n-gram in one shard at which documents are looked up."""
MAX_PAIRS = 20_000_000
"""Limit on documents over all n-grams; beyond it, only the first of each is taken."""

_N_AT_ONCE = 64
"""n-grams whose documents are looked up together."""

Intervals = Mapping[int, Sequence[tuple[int, int]]]
"""By document number, the half-open stretches of words that it covers."""


@dataclass(frozen=True, slots=True)
class SpreadDocument:
    """A chosen document, and how many words it adds to those already covered."""

    id: str
    title: str | None
    n_new_words: int


@dataclass(frozen=True, slots=True)
class Spread:
    """How L-uniqueness falls as more documents may be used, the best first."""

    level: int
    uniqueness: tuple[float, ...]
    """With no document, with the best one, with the best two, ..., up to the requested number."""
    n_to_half: int | None
    """Documents needed to push L-uniqueness below 0.5; None if all of them do not suffice."""
    n_documents: int
    """Documents that cover any of it."""
    n_bounded: int
    """n-grams so frequent that only some of their documents were checked."""
    documents: tuple[SpreadDocument, ...]
    """Those that were chosen."""


def find_spread(
    reference: Reference,
    words: Sequence[str],
    lengths: NDArray[np.int32],
    level: int,
    n_documents: int,
    *,
    near: Intervals | None = None,
    exclude: Iterable[int] = (),
) -> Spread:
    """The spread of a text's matches of `level` words or more.

    lengths: int32 (n_words,), the longest verbatim matches; `near` adds what documents cover in
    other words.
    """
    n_words = len(words)
    numbers, firsts, ends, n_bounded = _verbatim(reference, words, lengths, level, exclude)
    if near:
        numbers = np.concatenate(
            [numbers, *(np.full(len(spans), n, np.int64) for n, spans in near.items())]
        )
        spans = np.array([span for spans in near.values() for span in spans], np.int32)
        firsts = np.concatenate([firsts, spans.reshape(-1, 2)[:, 0]])
        ends = np.concatenate([ends, spans.reshape(-1, 2)[:, 1]])
    order = np.argsort(numbers, kind="stable")
    distinct, begins = np.unique(numbers[order], return_index=True)
    offsets = np.append(begins, len(numbers)).astype(np.int64)
    chosen, gains = choose_documents(
        offsets, firsts[order], ends[order], n_words, n_documents, n_words // 2 + 1
    )
    left = 1 - np.concatenate([[0], np.cumsum(gains)]) / max(1, n_words)
    below = np.flatnonzero(left < 0.5)
    shown = chosen[:n_documents]
    documents = []
    for k, gain in zip(shown, gains[:n_documents], strict=True):
        document = reference.document(int(distinct[k]))
        title = document.meta.get("title")
        named = None if title is None else str(title)
        documents.append(SpreadDocument(document.id, named, int(gain)))
    return Spread(
        level=level,
        uniqueness=tuple(float(value) for value in left[: len(shown) + 1]),
        documents=tuple(documents),
        n_to_half=int(below[0]) if len(below) else None,
        n_documents=len(distinct),
        n_bounded=n_bounded,
    )


def _verbatim(
    reference: Reference,
    words: Sequence[str],
    lengths: NDArray[np.int32],
    level: int,
    exclude: Iterable[int],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], int]:
    """(document, first word, end) for each document of each n-gram of `level` words that occurs.

    A longer match is covered by the n-grams of `level` words that it contains.
    """
    exclude = frozenset(exclude)
    numbers, firsts = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    known: dict[tuple[str, ...], tuple[NDArray[np.int64], bool]] = {}
    n_pairs = 0
    places = np.flatnonzero(lengths >= level).tolist()
    for k, i in enumerate(places):
        gram = tuple(words[i : i + level])
        if gram not in known:
            # Also request the next ones: a server answers them at once.
            some = (tuple(words[j : j + level]) for j in places[k : k + _N_AT_ONCE])
            new = [one for one in dict.fromkeys(some) if one not in known]
            found = reference.documents_of(new, MAX_PLACES, exclude=exclude)
            known |= dict(zip(new, found, strict=True))
        if n_pairs > MAX_PAIRS:
            known[gram] = known[gram][0][:1], True
        numbers.append(known[gram][0])
        n_pairs += len(numbers[-1])
        firsts.append(np.full(len(numbers[-1]), i, np.int32))
    first = np.concatenate(firsts)
    n_bounded = sum(is_bounded for _, is_bounded in known.values())
    return np.concatenate(numbers), first, first + np.int32(level), n_bounded
