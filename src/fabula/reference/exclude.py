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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabula.reference.search import MAX_PLACES, Reference
from fabula.types import Document

__all__ = ["Copy", "CopyRule", "find_copies", "maximal_spans", "shared_runs"]

_MAX_ROUNDS = 20


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
        return f"auto(run{self.run},cover{self.cover:g}x{self.cover_run})"


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


def maximal_spans(lengths: NDArray[np.int32], min_words: int) -> list[tuple[int, int]]:
    """(first word, number of words) of each match of `min_words` or more that no other contains."""
    ends = np.arange(len(lengths)) + lengths
    before = np.concatenate([[0], np.maximum.accumulate(ends)[:-1]]) if len(ends) else ends
    chosen = np.flatnonzero((lengths >= min_words) & (ends > before))
    return [(int(i), int(lengths[i])) for i in chosen]


def find_copies(reference: Reference, words: Sequence[str], rule: CopyRule) -> list[Copy]:
    """The documents that are to be left out when `words` is measured, in their order.

    Candidates are the documents that hold a longest shared run; when some are left out, the next
    longest runs give the next candidates, until none is found. So a document is overlooked if each
    of its runs is part of a longer one in a document that stays.
    """
    found: dict[int, Copy] = {}
    seen: set[int] = set()
    for _ in range(_MAX_ROUNDS):
        lengths = reference.longest_matches(words, exclude=found)
        spans = maximal_spans(lengths, min(rule.run, rule.cover_run))
        grams = [words[start : start + n] for start, n in spans]
        holders = reference.documents_of(grams, MAX_PLACES, exclude=found)
        candidates = sorted({n for numbers, _ in holders for n in numbers.tolist()} - seen)
        seen.update(candidates)
        documents = reference.documents(candidates)
        copies = [
            copy
            for number, document in zip(candidates, documents, strict=True)
            if (copy := _judge(reference, number, document, words, rule))
        ]
        if not copies:
            break
        found.update((copy.number, copy) for copy in copies)
    return [found[number] for number in sorted(found)]


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
