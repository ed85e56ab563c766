"""Fluency of a text: the surprisal of each stretch under a language model, in bits per word.

Novelty alone does not separate the fresh from the garbled: neither occurs elsewhere. But a garbled
stretch is also improbable to a language model, word for word. This is the surprisal of Hale
(2001) and Levy (2008), -log2 p(token | preceding text), summed over the tokens of a stretch and
divided by its words, so that models with different tokenizers can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.core import __version__
from fabula.core.types import Document, Measurement, Signature
from fabula.models.surprisal import SurprisalModel, TokenSurprisal
from fabula.text import TextSettings, check_documents
from fabula.text.chapters import CHAPTER_RULES, without_headings
from fabula.text.pipeline import pipeline_parts
from fabula.text.sentences import language_gate, not_english, sentence_spans

_WORDS = TextSettings()
_NO_TOKENS = TokenSurprisal(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


@dataclass(frozen=True, slots=True)
class SpanSurprisal:
    """The surprisal of a stretch of a text: half-open, in characters.

    `missing_reason` is "no_words", "too_short" if nothing precedes its only word, "not_finite" if
    the model's numbers are not finite, or a sentence if the text is not English.
    """

    start: int
    end: int
    n_words: int
    """Words that were scored: all that begin here, except an unscored first one."""
    bits_per_word: float | None
    missing_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Fluency:
    """The surprisal of one text, as a whole and by sentence."""

    document: Document
    n_words: int
    """Words that were scored, as in `SpanSurprisal`."""
    bits_per_word: float | None
    sentences: tuple[SpanSurprisal, ...]
    missing_reason: str | None
    signature: Signature
    tokens: TokenSurprisal = field(compare=False)

    def of_spans(self, spans: Iterable[tuple[int, int]]) -> tuple[SpanSurprisal, ...]:
        """The surprisal of arbitrary spans of the text: half-open, in characters."""
        if len(self.tokens.starts) or self.missing_reason is None:
            return _of_spans(self.document.text, self.tokens, spans)
        # Nothing was read.
        return tuple(SpanSurprisal(*span, 0, None, self.missing_reason) for span in spans)

    def measurements(self) -> list[Measurement]:
        """The text's bits per word as a measurement."""
        about = self.document.id, "fluency", "bits_per_word", "fabula"
        result = self.bits_per_word, self.missing_reason
        return [Measurement(*about, *result, (), None, str(self.signature))]

    def _repr_html_(self) -> str:
        from fabula.web import measured_lines, notebook_table

        title = f"Fluency of {self.document.id}"
        return notebook_table(title, measured_lines(self.measurements()), str(self.signature))

    def to_row(self) -> dict[str, Any]:
        return {
            "id": self.document.id,
            "n_words": self.n_words,
            "bits_per_word": self.bits_per_word,
            "missing_reason": self.missing_reason,
            "sentences": list(map(asdict, self.sentences)),
            "signature": str(self.signature),
        }


class FluencyMeasure:
    """The measure with its loaded model, and spaCy's pipeline with sentence boundaries."""

    def __init__(self, model: SurprisalModel, nlp: Any) -> None:
        self._model, self._nlp = model, nlp
        self.signature = Signature.of(
            "fluency",
            model=model.name,
            run=model.runtime,
            ctx=str(model.max_context),
            unit="bits-a-word",
            lang=language_gate(),
            parts="sentences",
            heads=CHAPTER_RULES,
            **pipeline_parts(nlp),
            tok=_WORDS.signature_parts()["tok"],
            v=__version__,
        )

    def measure(self, documents: Iterable[Document]) -> Iterator[Fluency]:
        """Measure documents as they come, in order. Raises `ModelError` from the model."""
        for document in check_documents(documents):
            yield self.measured(document, read_tokens(self._model, document))

    def measured(self, document: Document, tokens: TokenSurprisal | None) -> Fluency:
        """The result for a document, from this model's `read_tokens`."""
        text = document.text
        if tokens is None:
            return Fluency(document, 0, None, (), not_english(text), self.signature, _NO_TOKENS)
        (whole,) = _of_spans(text, tokens, [(0, len(text))])
        sentences = _of_spans(text, tokens, sentence_spans(without_headings(document), self._nlp))
        result = whole.n_words, whole.bits_per_word, sentences, whole.missing_reason
        return Fluency(document, *result, self.signature, tokens)


def read_tokens(
    model: SurprisalModel,
    document: Document,
    check: Callable[[], None] | None = None,
    report: Callable[[float], None] | None = None,
) -> TokenSurprisal | None:
    """How surprising a model finds each token of a document; None if it is not English.

    `check` and `report` as for `SurprisalModel.score`. Raises `ModelError`, `CallFailed` from the
    model.
    """
    return None if not_english(document.text) else model.score(document.text, check, report)


def _of_spans(
    text: str, tokens: TokenSurprisal, spans: Iterable[tuple[int, int]]
) -> tuple[SpanSurprisal, ...]:
    """The surprisal of each span; a token belongs where its first non-space character is.

    A first token with nothing before it is not scored, and neither is the word that it belongs to:
    otherwise that word would be free.
    """
    words = _WORDS.locate(text)
    is_ink = np.fromiter((not c.isspace() for c in text), np.bool_, len(text))
    ink = np.append(np.flatnonzero(is_ink), len(text))
    next_ink = ink[np.searchsorted(ink, tokens.starts)]
    # Never decreasing; a token without such a character counts at its first.
    places = np.where(next_ink < tokens.ends, next_ink, tokens.starts)
    bits = tokens.bits
    first = 0
    if len(bits) and np.isnan(bits[0]):
        first = int(tokens.ends[0])
        n_read = int(np.searchsorted(words.starts, first))
        first = max([first, *words.ends[:n_read].tolist()])
    surprisals = []
    for start, end in spans:
        scored_from = max(start, first)
        n_words = len(words.starts[_within(words.starts, start, end)])
        n_scored = len(words.starts[_within(words.starts, scored_from, end)])
        scored = bits[_within(places, scored_from, end)].tolist()
        value, reason = None, None
        if not n_scored:
            reason = "too_short" if n_words else "no_words"
        elif not all(map(math.isfinite, scored)):
            reason = "not_finite"
        else:
            value = math.fsum(scored) / n_scored
        surprisals.append(SpanSurprisal(start, end, n_scored, value, reason))
    return tuple(surprisals)


def _within(sorted_places: NDArray[np.int64], start: int, end: int) -> slice:
    first, last = np.searchsorted(sorted_places, (start, max(start, end)))
    return slice(int(first), int(last))
