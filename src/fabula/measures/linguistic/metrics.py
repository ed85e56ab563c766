"""The fifteen metrics by name, and the tools that determine them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from fabula import __version__
from fabula.measures.linguistic.coreference import Sieve
from fabula.measures.linguistic.grammar import Checker, open_checker
from fabula.measures.linguistic.lexis import FLOOR, Frequencies
from fabula.measures.linguistic.parsing import CONTENT, Parser
from fabula.text.chapters import CHAPTER_RULES
from fabula.text.language import language_gate
from fabula.text.speech import READER
from fabula.types import Signature


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of a continuation, numbered as in the paper's Table 2."""

    id: str
    number: int
    title: str
    needs_context: bool = False
    is_of_all: bool = False
    """One number for the whole output of a system, not a mean over its continuations."""
    n_digits: int = 3


@dataclass(frozen=True, slots=True)
class ProfileMetric:
    """A number of the profile, its meaning in plain words, and how many digits are shown."""

    id: str
    title: str
    explained: str
    form: str = ".3f"


METRICS = (
    Metric("sentence_length", 1, "Sentence length", n_digits=2),
    Metric("grammaticality", 2, "Grammaticality"),
    Metric("type_token_ratio", 3, "Type-token ratio", is_of_all=True),
    Metric("unique_trigram_ratio", 4, "Unique trigram ratio", is_of_all=True),
    Metric("inverse_word_frequency", 5, "Inverse word frequency"),
    Metric("noun_phrases", 6, "Noun phrases"),
    Metric("noun_phrase_length", 7, "Noun phrase length"),
    Metric("verb_phrases", 8, "Verb phrases"),
    Metric("verb_phrase_length", 9, "Verb phrase length"),
    Metric("jaccard_similarity", 10, "Jaccard similarity", needs_context=True),
    Metric("vector_similarity", 11, "Word vector similarity", needs_context=True),
    Metric("sentence_similarity", 12, "Sentence encoding similarity", needs_context=True),
    Metric("pos_similarity", 13, "Word POS similarity", needs_context=True),
    Metric("pos_trigram_similarity", 14, "Trigram POS similarity", needs_context=True),
    Metric("coreference_rate", 15, "Entity coreference rate", needs_context=True),
)


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """The tools that measure; the same choice gives the same numbers."""

    grammar: str = "harper"
    """`harper`, `languagetool`, `languagetool@URL` or `none`."""
    encoder: Path | None = None
    """A folder with an exported sentence encoder; the packaged one by default."""


class TextTools:
    """The tools that need a text alone. Raises `ModelError` if one is not installed."""

    def __init__(self, grammar: str = "harper") -> None:
        self.parser = Parser()
        self.frequencies = Frequencies()
        self.checker: Checker | None = open_checker(grammar)

    def _parts(self) -> dict[str, str]:
        return {
            "lang": language_gate(),
            **self.parser.signature_parts,
            "word": "token-with-letter-or-digit",
            "grammar": f"{self.checker.name},names-capital-by-pos" if self.checker else "none",
            "freq": f"{self.frequencies.name},ln,clitics-in-full,floor {FLOOR:g}",
            "np": "base",
            "vp": "verb-and-governed-less-subject",
            "empty": "missing",
        }

    @functools.cached_property
    def profile_signature(self) -> Signature:
        """Everything that determines the numbers of a text's profile."""
        return Signature.of(
            "profile", **self._parts(), dialogue=READER, heads=CHAPTER_RULES, v=__version__
        )


class Tools(TextTools):
    """The tools that need a continuation and its context."""

    def __init__(self, choice: ToolChoice) -> None:
        from fabula.models.encoder import Encoder

        super().__init__(choice.grammar)
        self.encoder = Encoder(choice.encoder, n_threads=1)
        self.resolver = Sieve()

    @functools.cached_property
    def signature(self) -> Signature:
        """Everything that determines the numbers of a continuation."""
        return Signature.of(
            "linguistic",
            **self._parts(),
            content="+".join(sorted(CONTENT)),
            jaccard="types,empty-and-some-0",
            vec="pipe,mean-of-pairs",
            enc=self.encoder.name,
            style="8-categories,absent-in-both-1",
            trigrams="within-sentences",
            coref=self.resolver.name,
            v=__version__,
        )


@functools.cache
def open_tools(choice: ToolChoice) -> Tools:
    """The tools of this process, loaded once."""
    return Tools(choice)
