"""Common code for indexes that Fabula did not build."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

from fabula.errors import InputError
from fabula.reference.backend import Attribution, LocatedText, Occurrence
from fabula.reference.info import Age
from fabula.text import TextSettings, TextWords
from fabula.types import Document, Span

SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair, which no request can contain."""


class IndexElsewhere(ABC):
    """Words and punctuation marks as written: an external index has no other normal form."""

    settings = TextSettings(case="keep", punct="keep")

    @property
    def age(self) -> Age:
        """Unknown, unless set."""
        return Age()

    def locate(self, text: str) -> TextWords:
        """The words and punctuation marks of `text`, with their positions."""
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
        """How often an n-gram occurs, and up to `n_sources` documents that contain it."""

    def _refuse(self, exclude: Iterable[int]) -> None:
        if any(True for _ in exclude):
            raise InputError(
                "an infini-gram index cannot leave documents out; build your own reference with "
                "`fabula reference build`, or score without exclusions"
            )

    def _occurrence(
        self, text: LocatedText, first: int, n_words: int, number: int, shown: Document
    ) -> Occurrence | None:
        """The n-gram's first place in a document as shown, or None if it is not found.

        Words are compared, not characters: an index returns its tokens, and the spaces between them
        may differ from those in the document.
        """
        wanted = text.words.words[first : first + n_words]
        words, starts, ends = self.locate(shown.text)
        for k in range(len(words) - n_words + 1):
            if words[k] == wanted[0] and words[k : k + n_words] == wanted:
                span = Span(shown.id, int(starts[k]), int(ends[k + n_words - 1]))
                return Occurrence(number, shown, span)
        return None


def n_gram_text(text: LocatedText, first: int, n_words: int) -> str:
    """An n-gram as written in its text, with each run of white space replaced by one space."""
    # A request cannot contain a lone half of a surrogate pair.
    return SURROGATE.sub("\ufffd", " ".join(text.raw(first, n_words).split()))


def occurs_in_tokens(text: LocatedText, i: int, j: int, occurs: Callable[[int, int], bool]) -> bool:
    """Whether words i to j (half-open) occur in an index that finds only whole tokens.

    A run of punctuation, such as the comma and the quotation mark at the end of speech, is often
    one token, and an n-gram that ends in the middle of it is not found. But if it is found with the
    rest of the run, it occurs.
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
