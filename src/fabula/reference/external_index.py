"""What the indexes that Fabula did not build have in common."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

from fabula.errors import InputError
from fabula.reference.backend import Attribution, LocatedText, Occurrence
from fabula.reference.info import Age
from fabula.text import TextSettings, TextWords
from fabula.types import Document, Span

__all__ = ["SURROGATE", "IndexElsewhere", "n_gram_text", "occurs_in_tokens"]

SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character, which no request can hold."""


class IndexElsewhere(ABC):
    """Words and punctuation marks as they stand: an index elsewhere knows no other form."""

    settings = TextSettings(case="keep", punct="keep")

    @property
    def age(self) -> Age:
        """Unknown, unless somebody says it."""
        return Age()

    def locate(self, text: str) -> TextWords:
        """The words and punctuation marks of `text`, and where they stand."""
        return self.settings.locate(text)

    def cite(
        self,
        text: LocatedText,
        spans: Sequence[tuple[int, int]],
        n_sources: int,
        *,
        exclude: Iterable[int] = (),
    ) -> list[Attribution]:
        """`cite_one` for each n-gram of a text: (first word, number of words)."""
        self._refuse(exclude)
        return [self.cite_one(text, first, n_words, n_sources) for first, n_words in spans]

    @abstractmethod
    def cite_one(self, text: LocatedText, first: int, n_words: int, n_sources: int) -> Attribution:
        """How often an n-gram occurs, and `n_sources` documents that hold it."""

    def _refuse(self, exclude: Iterable[int]) -> None:
        if any(True for _ in exclude):
            raise InputError(
                "an infini-gram index cannot leave documents out; build a reference of your own "
                "with `fabula reference build`, or score without exclusions"
            )

    def _occurrence(
        self, text: LocatedText, first: int, n_words: int, number: int, shown: Document
    ) -> Occurrence | None:
        """The n-gram's first place in a document as it is shown, or None where it is not found.

        Words are compared, not characters: an index gives back its tokens, and the spaces between
        them may be others than in the document.
        """
        wanted = text.words.words[first : first + n_words]
        words, starts, ends = self.locate(shown.text)
        for k in range(len(words) - n_words + 1):
            if words[k] == wanted[0] and words[k : k + n_words] == wanted:
                span = Span(shown.id, int(starts[k]), int(ends[k + n_words - 1]))
                return Occurrence(number, shown, span)
        return None


def n_gram_text(text: LocatedText, first: int, n_words: int) -> str:
    """An n-gram as it stands in its text, but each run of white space is one space."""
    # A lone half of a surrogate pair has no place in a request.
    return SURROGATE.sub("\ufffd", " ".join(text.raw(first, n_words).split()))


def occurs_in_tokens(text: LocatedText, i: int, j: int, occurs: Callable[[int, int], bool]) -> bool:
    """Whether words i to j (half-open) occur in an index that finds whole tokens only.

    A run of punctuation, as the comma and the quotation mark at the end of speech, is often one
    token, and an n-gram that ends in the middle of it is not found. But where it is found with
    the rest of the run, it occurs.
    """
    if occurs(i, j):
        return True
    words, starts, ends = text.words
    while (
        j < len(words)
        and ends[j - 1] == starts[j]
        and not words[j - 1][-1].isalnum()
        and not words[j][0].isalnum()
    ):
        j += 1
        if occurs(i, j):
            return True
    return False
