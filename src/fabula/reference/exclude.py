"""Which documents of a reference are the text itself, or copy, quote or cite it.

A text that stands in the reference would trivially have no originality, so the Creativity Index of
a published text is computed without the documents that hold it (Lu et al. 2024, section "Creativity
Index" and appendix A.3, where a language model decides). Here a rule decides, so that everyone gets
the same answer. A document is left out when

- it shares an unbroken run of at least `run` words with the text (a quotation), or
- its shared runs of at least `cover_run` words cover at least the share `cover` of the text (a
  copy, perhaps edited).

The rule cannot know who copied from whom: of a text that borrows a long run, it hides the source.
So it is meant for texts that were published before the reference was collected, and off by default.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabula.reference.parts import Found
from fabula.reference.search import MAX_PLACES, Reference
from fabula.types import Document

__all__ = ["Copies", "Copy", "CopyRule", "find_copies", "maximal_spans", "shared_runs"]

_N_ASKED = 256
"""n-grams that are looked up at a time."""
_ALL_PLACES = 1 << 62
_N_NAMED = 64
"""Documents that an n-gram names at first; one that more hold is looked up again for all."""


@dataclass(frozen=True, slots=True)
class CopyRule:
    """When a document counts as a copy or quotation of a text.

    The defaults: among the novels and speeches that this was tried on, different authors do not
    share 25 words in a row by chance, and common phrases of 8 words do not cover half a text.
    """

    run: int = 25
    cover_run: int = 8
    cover: float = 0.5

    def __str__(self) -> str:
        return f"auto(run{self.run},cover{self.cover:g}x{self.cover_run},all)"


@dataclass(frozen=True, slots=True)
class Copy:
    """A document that was left out, and why."""

    number: int
    id: str
    title: str | None
    longest_run: int
    coverage: float
    by_model: bool = False
    """Whether a model decided, where the rule did not."""

    @property
    def reason(self) -> str:
        shared = f"shares a run of {self.longest_run:,} words, {self.coverage:.0%} of the text"
        return f"{shared}, and a model calls it a copy" if self.by_model else f"{shared} in all"


@dataclass(frozen=True, slots=True)
class Copies:
    """The documents that were left out, and what a reader should know of the choice."""

    documents: tuple[Copy, ...] = ()
    remarks: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Copy]:
        return iter(self.documents)


def maximal_spans(lengths: NDArray[np.int32], min_words: int) -> list[tuple[int, int]]:
    """(first word, number of words) of each match of `min_words` or more that no other contains."""
    ends = np.arange(len(lengths)) + lengths
    before = np.concatenate([[0], np.maximum.accumulate(ends)[:-1]]) if len(ends) else ends
    chosen = np.flatnonzero((lengths >= min_words) & (ends > before))
    return [(int(i), int(lengths[i])) for i in chosen]


def find_copies(reference: Reference, words: Sequence[str], rule: CopyRule) -> Copies:
    """The documents that are to be left out when `words` is measured, in their order.

    All documents that share any run are looked at together: a run of m words holds m - n + 1
    n-grams at places that follow each other, and what a document covers in runs of n words or more
    is what the n-grams cover that it holds.
    """
    n = min(rule.run, rule.cover_run)
    coverage, longest, n_bounded = _held(reference, words, n)
    n_least = rule.cover * len(words)
    is_likely = (coverage > 0) & ((longest >= rule.run) | (coverage >= n_least))
    candidates = np.flatnonzero(is_likely).tolist()
    documents = reference.documents(candidates)
    copies = (
        _judge(reference, number, document, words, rule)
        for number, document in zip(candidates, documents, strict=True)
    )
    remark = (
        f"{n_bounded:,} of its runs of {n} words stand at over {MAX_PLACES:,} places: documents "
        f"that share only these with it may have stayed in"
    )
    return Copies(tuple(filter(None, copies)), (remark,) if n_bounded else ())


def _held(
    reference: Reference, words: Sequence[str], n: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """By document, the words of the text that its n-grams cover, and the longest run it may share.

    int32 (n_documents,), both. Also how many n-grams are so frequent that only some of their
    documents are known.
    """
    places = np.flatnonzero(reference.longest_matches(words) >= n).tolist()
    coverage, longest, current, ends = np.zeros((4, len(reference.about.removed)), np.int32)
    bounded: set[tuple[str, ...]] = set()
    for at in range(0, len(places), _N_ASKED):
        some = places[at : at + _N_ASKED]
        grams = {i: tuple(words[i : i + n]) for i in some}
        found = _holders(reference, list(dict.fromkeys(grams.values())))
        bounded.update(gram for gram, (_, is_bounded) in found.items() if is_bounded)
        for i in some:
            numbers = found[grams[i]][0]
            before = ends[numbers]
            coverage[numbers] += i + n - np.maximum(before, i)
            current[numbers] = np.where(before == i + n - 1, current[numbers] + 1, n)
            longest[numbers] = np.maximum(longest[numbers], current[numbers])
            ends[numbers] = i + n
    return coverage, longest, len(bounded)


def _holders(
    reference: Reference, grams: list[tuple[str, ...]]
) -> dict[tuple[str, ...], tuple[NDArray[np.int64], bool]]:
    """By n-gram, the numbers of the documents that hold it, and whether some are not known."""
    # Most stand in few documents; a server answers so many n-grams at once as may name few each.
    found = dict(zip(grams, _look_up(reference, grams, _N_NAMED), strict=True))
    more = [gram for gram, one in found.items() if one.n_documents > len(one.numbers)]
    if more:
        n_most = max(found[gram].n_documents for gram in more)
        found |= dict(zip(more, _look_up(reference, more, n_most), strict=True))
    return {gram: (one.numbers, one.n_places < one.count) for gram, one in found.items()}


def _look_up(reference: Reference, grams: list[tuple[str, ...]], limit: int) -> list[Found]:
    # On this machine's disk there is no need to bound how many places are looked at.
    max_places = _ALL_PLACES if reference.is_local else MAX_PLACES
    return reference.part.find(grams, limit=limit, max_places=max_places)


def _judge(
    reference: Reference, number: int, document: Document, words: Sequence[str], rule: CopyRule
) -> Copy | None:
    covered, longest_run = shared_runs(
        words, reference.settings.words(document.text), min(rule.run, rule.cover_run)
    )
    coverage = sum(covered) / len(words)
    if longest_run < rule.run and coverage < rule.cover:
        return None
    title = document.meta.get("title")
    return Copy(number, document.id, None if title is None else str(title), longest_run, coverage)


def shared_runs(
    words: Sequence[str], others: Sequence[str], min_words: int
) -> tuple[list[bool], int]:
    """Which words lie in a run of at least `min_words` that `others` holds, and the longest run."""
    places: dict[tuple[str, ...], list[int]] = {}
    for k in range(len(others) - min_words + 1):
        places.setdefault(tuple(others[k : k + min_words]), []).append(k)
    covered = [False] * len(words)
    longest = 0
    # By place in `others`, how many n-grams in a row have matched up to there.
    running: dict[int, int] = {}
    for i in range(len(words) - min_words + 1):
        found = places.get(tuple(words[i : i + min_words]), ())
        running = {k: running.get(k - 1, 0) + 1 for k in found}
        if running:
            covered[i : i + min_words] = [True] * min_words
            longest = max(longest, max(running.values()) + min_words - 1)
    return covered, longest
