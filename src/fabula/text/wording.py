"""Wording that several texts were given, such as an assignment: its runs are not their own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.text.sources import read_documents
from fabula.text.words import TextSettings, count_words

RUN_WORDS = 5
"""The shortest run that counts as given; shorter ones are how anybody puts words together."""
_WORDS = TextSettings()


@dataclass(frozen=True, slots=True)
class MaskedTexts:
    """Texts without the wording that they were given."""

    texts: Sequence[Document]
    """Those with words of their own: each run that was given is replaced by a word that occurs
    nowhere else, so that all offsets stay valid and no run of words goes across it."""
    n_given: int
    """Words that were given, in these texts."""
    without: Sequence[str]
    """The ids of the other texts, which have only words that were given."""
    digest: str
    """Of the wording, for signatures."""

    @classmethod
    def of(cls, documents: Sequence[Document], path: Path) -> MaskedTexts:
        """Read the wording from a file. Raises `InputError` if it is shorter than a run."""
        wording = "\n\n".join(document.text for document in read_documents([str(path)]))
        given = check_wording(wording, str(path))
        runs = {tuple(given[k : k + RUN_WORDS]) for k in range(len(given) - RUN_WORDS + 1)}
        numbers, texts, without, n_given = count(1), [], [], 0
        for document in documents:
            words, starts, ends = _WORDS.locate(document.text)
            spans: list[tuple[int, int]] = []
            for k in range(len(words) - RUN_WORDS + 1):
                if tuple(words[k : k + RUN_WORDS]) in runs:
                    first = spans.pop()[0] if spans and k <= spans[-1][1] else k
                    spans.append((first, k + RUN_WORDS))
            n_words = sum(len(words[first:end]) for first, end in spans)
            if n_words and n_words == len(words):
                without.append(document.id)
                continue
            own = document.text
            for first, end in spans:
                start, stop = int(starts[first]), int(ends[end - 1])
                mark = f"assignment{next(numbers)}"[start - stop :]
                own = own[:start] + mark.ljust(stop - start) + own[stop:]
            texts.append(replace(document, text=own) if spans else document)
            n_given += n_words
        digest = hashlib.sha256(" ".join(given).encode()).hexdigest()[:8]
        return cls(texts, n_given, without, digest)

    @property
    def remarks(self) -> list[str]:
        """What a reader of the numbers must know."""
        alone = [f"{id_}: has the assignment's words only, and is left out" for id_ in self.without]
        n_texts = f"{len(self.texts):,} texts"
        return [f"{self.n_given:,} words of the assignment are left out of {n_texts}", *alone]


def check_wording(wording: str, name: str) -> list[str]:
    """Its words in normal form. Raises `InputError` if there are too few to be recognised."""
    if count_words(wording) < RUN_WORDS:
        raise InputError(f"{name}: has fewer than {RUN_WORDS} words; give the whole wording")
    return _WORDS.words(wording)
