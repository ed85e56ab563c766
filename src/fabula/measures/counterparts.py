"""Shared by all near-match searches: word vectors, and a sentence encoder for meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fabula.models.vectors import WordVectors
from fabula.reference import Occurrence
from fabula.reference.exclude import maximal_spans
from fabula.text import TextWords
from fabula.text.language import language_gate
from fabula.text.stopwords import StopWords

if TYPE_CHECKING:
    from fabula.models.encoder import Encoder


@dataclass(frozen=True, slots=True)
class Counterpart:
    """The span of the reference that an n-gram is most similar to."""

    similarity: float
    """The smaller of the two directional means, in [0, 1]."""
    source: Occurrence
    words: TextWords
    """The words of the source's span, with their places in its document."""
    pairs: tuple[tuple[int, int, float], ...]
    """(word of the text, word of the source, cosine) for each content word of the n-gram with its
    most similar counterpart; words are counted from the first of each n-gram."""


class SearchForNear:
    """What the search of the index and the published one have in common.

    `meaning` is the least cosine of the sentence vectors of both sides, 0 for no check; `encoder`
    replaces the packaged one. `is_english`: the vectors are of English words, so texts in other
    languages are not searched.
    """

    def __init__(
        self,
        vectors: WordVectors,
        stop_words: StopWords,
        meaning: float,
        encoder: Encoder | None,
        *,
        is_english: bool,
    ) -> None:
        from fabula.models.encoder import Encoder

        self.vectors = vectors
        self.stop_words = stop_words
        self.is_english = is_english
        self._meaning = meaning
        # Single-threaded, so that its sums do not depend on the machine.
        self._encoder = (encoder or Encoder(n_threads=1)) if meaning else None

    def signature_parts(self) -> Mapping[str, str]:
        """Everything that determines a near match besides the reference."""
        return {
            "stop": self.stop_words.name,
            "vec": self.vectors.name,
            **({"lang": language_gate()} if self.is_english else {}),
            "sense": f"{self._encoder.name},{self._meaning:g}" if self._encoder else "none",
        }

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notices for a reader of the matches."""
        return (self.vectors.remark,) if self.vectors.remark else ()

    def _longest(
        self,
        words: Sequence[str],
        exact: NDArray[np.int32],
        counterparts: dict[tuple[int, int], Counterpart],
        min_words: int,
    ) -> tuple[NDArray[np.int32], dict[int, Counterpart]]:
        """The longest match at each word, and the counterparts not contained in a longer match.

        Counterparts are keyed by the half-open bounds of what they resemble in `words`, and ordered
        by its first word. exact and the lengths: int32 (n_words,).
        """
        agreeing = self._agreeing(words, counterparts)
        found = exact.copy()
        for first, end in agreeing:
            found[first] = max(found[first], end - first)
        longest = {(first, first + n) for first, n in maximal_spans(found, min_words)}
        return found, {span[0]: one for span, one in agreeing.items() if span in longest}

    def _agreeing(
        self, words: Sequence[str], counterparts: dict[tuple[int, int], Counterpart]
    ) -> dict[tuple[int, int], Counterpart]:
        """Those that mean the same as what they resemble, as far as the encoder can tell."""
        if self._encoder is None or not counterparts:
            return counterparts
        mine = [" ".join(words[first:end]) for first, end in counterparts]
        theirs = [" ".join(one.words.words) for one in counterparts.values()]
        vectors = self._encoder.encode([*mine, *theirs])
        cosines = (vectors[: len(mine)] * vectors[len(mine) :]).sum(axis=1).tolist()
        return {
            span: one
            for (span, one), cosine in zip(counterparts.items(), cosines, strict=True)
            if cosine >= self._meaning
        }
