"""Finds documents of a reference that are the text itself, or copy, quote or cite it.

A text that is in the reference would trivially have no originality, so the Creativity Index of a
published text is computed without the documents that contain it (Lu et al. 2024, section
"Creativity Index" and appendix A.3, where a language model decides). Here a rule decides, so that
everyone gets the same result. A document is excluded if

- it shares an unbroken run of at least `run` words with the text (a quotation), or
- its shared runs of at least `cover_run` words cover at least the share `cover` of the text (a
  copy, perhaps edited).

The rule cannot know who copied from whom: if a text borrows a long run, the rule hides the source.
So it is for texts that were published before the reference was collected, and is off by default.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fabula.reference.search import MAX_PLACES, Reference

_N_ASKED = 256
"""Number of n-grams per lookup."""
_ALL_PLACES = 1 << 62
_N_NAMED = 64
"""Documents requested per n-gram at first; an n-gram in more of them is looked up again for all."""


@dataclass(frozen=True, slots=True)
class CopyRule:
    """Thresholds for a document to count as a copy or quotation of a text.

    The defaults: among the novels and speeches used for testing, different authors do not share 25
    words in a row by chance, and common phrases of 8 words do not cover half a text.
    """

    run: int = 25
    cover_run: int = 8
    cover: float = 0.5

    def __str__(self) -> str:
        return f"auto(run{self.run},cover{self.cover:g}x{self.cover_run},all)"


@dataclass(frozen=True, slots=True)
class Copy:
    """An excluded document, and the reason."""

    number: int
    id: str
    title: str | None
    longest_run: int
    coverage: float
    by_model: bool = False
    """Whether a model decided, because the rule did not."""

    @property
    def reason(self) -> str:
        shared = f"shares a run of {self.longest_run:,} words, {self.coverage:.0%} of the text"
        return f"{shared}, and a model calls it a copy" if self.by_model else f"{shared} in all"


@dataclass(frozen=True, slots=True)
class Copies:
    """The excluded documents, and remarks on the choice."""

    documents: tuple[Copy, ...] = ()
    remarks: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Copy]:
        return iter(self.documents)


def maximal_spans(lengths: NDArray[np.int32], min_words: int) -> list[tuple[int, int]]:
    """Maximal matches of at least `min_words` words, as (first word, number of words)."""
    ends = np.arange(len(lengths)) + lengths
    before = np.concatenate([[0], np.maximum.accumulate(ends)[:-1]]) if len(ends) else ends
    chosen = np.flatnonzero((lengths >= min_words) & (ends > before))
    return [(int(i), int(lengths[i])) for i in chosen]


def find_copies(reference: Reference, words: Sequence[str], rule: CopyRule) -> Copies:
    """The documents to exclude when `words` is measured, in the order of the reference.

    All documents that share any run are processed together: a run of m words contains m - n + 1
    n-grams at consecutive places, and the words that a document covers in runs of n words or more
    are those covered by the n-grams in it.
    """
    n = min(rule.run, rule.cover_run)
    # By document: the words of the text that its n-grams cover, its longest possible run, and its
    # last run up to where it ends.
    places = np.flatnonzero(reference.longest_matches(words) >= n).tolist()
    coverage, longest, current, ends = np.zeros((4, len(reference.about.removed)), np.int32)
    # N-grams that are so frequent that only some of their documents are known.
    bounded: set[tuple[str, ...]] = set()
    # On this machine's disk there is no need to limit the number of places.
    ask = partial(reference.part.find, max_places=_ALL_PLACES if reference.is_local else MAX_PLACES)
    for at in range(0, len(places), _N_ASKED):
        batch = places[at : at + _N_ASKED]
        grams = {i: tuple(words[i : i + n]) for i in batch}
        distinct = list(dict.fromkeys(grams.values()))
        # Most are in few documents; if each may name few, a server answers more per request.
        by_gram = dict(zip(distinct, ask(distinct, limit=_N_NAMED), strict=True))
        more = [gram for gram, hit in by_gram.items() if hit.n_documents > len(hit.numbers)]
        if more:
            n_most = max(by_gram[gram].n_documents for gram in more)
            by_gram |= dict(zip(more, ask(more, limit=n_most), strict=True))
        bounded.update(gram for gram, hit in by_gram.items() if hit.n_places < hit.count)
        for i in batch:
            numbers = by_gram[grams[i]].numbers
            before = ends[numbers]
            coverage[numbers] += i + n - np.maximum(before, i)
            current[numbers] = np.where(before == i + n - 1, current[numbers] + 1, n)
            longest[numbers] = np.maximum(longest[numbers], current[numbers])
            ends[numbers] = i + n
    is_likely = (coverage > 0) & ((longest >= rule.run) | (coverage >= rule.cover * len(words)))
    candidates = np.flatnonzero(is_likely).tolist()
    copies = []
    for number, doc in zip(candidates, reference.documents(candidates), strict=True):
        covered, run = shared_runs(words, reference.settings.words(doc.text), n)
        share = sum(covered) / len(words)
        if run >= rule.run or share >= rule.cover:
            title = doc.meta.get("title")
            copies.append(Copy(number, doc.id, None if title is None else str(title), run, share))
    remark = (
        f"{len(bounded):,} of its runs of {n} words occur at more than {MAX_PLACES:,} places: "
        f"documents that share only these with it may not have been excluded"
    )
    return Copies(tuple(copies), (remark,) if bounded else ())


def shared_runs(
    words: Sequence[str], others: Sequence[str], min_words: int
) -> tuple[list[bool], int]:
    """Which words are in a run of `min_words` or more shared with `others`; the longest run."""
    places: dict[tuple[str, ...], list[int]] = {}
    for k in range(len(others) - min_words + 1):
        places.setdefault(tuple(others[k : k + min_words]), []).append(k)
    covered = [False] * len(words)
    longest = 0
    # By place in `others`, the number of consecutive n-grams that match up to there.
    running: dict[int, int] = {}
    for i in range(len(words) - min_words + 1):
        matching = places.get(tuple(words[i : i + min_words]), ())
        running = {k: running.get(k - 1, 0) + 1 for k in matching}
        if running:
            covered[i : i + min_words] = [True] * min_words
            longest = max(longest, max(running.values()) + min_words - 1)
    return covered, longest
