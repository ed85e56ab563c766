"""Readability by the established formulas, and the structure of sentences.

Six readability formulas (Flesch 1948; Kincaid et al. 1975; Gunning 1952; McLaughlin 1969; Coleman
and Liau 1975; Smith and Senter 1967), the shares of parts of speech, the distance of words from
their governors (Liu 2008), and the similarity of neighbouring sentences (Foltz, Kintsch and
Landauer 1998). Words, formulas, distances and similarities are those of TextDescriptives (Hansen,
Olsen and Enevoldsen 2023), except for syllables, which `syllables` counts.

A word here is a token with a letter or a digit and without an apostrophe, so that *don't* is one.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fabula.measures.linguistic.cohesion import cosine
from fabula.measures.linguistic.metrics import ProfileMetric
from fabula.measures.linguistic.parsing import Parsed, Parser
from fabula.measures.linguistic.syllables import count_syllables

__all__ = ["READABILITY_METRICS", "TextCounts", "grades", "readability"]

MIN_WORDS = 100
"""Minimum words for a grade: the size of Flesch's samples."""
MIN_SMOG_SENTENCES = 30
"""Number of sentences that McLaughlin's formula is defined for."""
_LONG_SYLLABLES = 3
_GRADES = (
    "flesch_reading_ease",
    "flesch_kincaid_grade",
    "gunning_fog",
    "smog",
    "coleman_liau",
    "ari",
)
_NOT_QUALITY = "not how good or how clear it is"

_POS = {
    "NOUN": "Nouns",
    "PROPN": "Names",
    "PRON": "Pronouns",
    "VERB": "Verbs",
    "AUX": "Auxiliaries",
    "ADJ": "Adjectives",
    "ADV": "Adverbs",
    "ADP": "Prepositions",
    "DET": "Determiners",
    "CCONJ": "Coordinating conjunctions",
    "SCONJ": "Subordinating conjunctions",
    "PART": "Particles",
    "NUM": "Numbers",
    "INTJ": "Interjections",
    "PUNCT": "Punctuation",
}

READABILITY_METRICS = (
    ProfileMetric(
        "flesch_reading_ease",
        "Flesch reading ease",
        f"up to about 100, higher is easier; by lengths of words and sentences, {_NOT_QUALITY}",
        ".1f",
    ),
    ProfileMetric(
        "flesch_kincaid_grade",
        "Flesch-Kincaid grade",
        f"US school grade by syllables and sentence length; {_NOT_QUALITY}",
        ".1f",
    ),
    ProfileMetric(
        "gunning_fog",
        "Gunning fog",
        f"school grade by words of three syllables and more; {_NOT_QUALITY}",
        ".1f",
    ),
    ProfileMetric(
        "smog",
        "SMOG",
        "grade for full understanding, by words of three syllables; made for health leaflets",
        ".1f",
    ),
    ProfileMetric(
        "coleman_liau",
        "Coleman-Liau",
        f"school grade by characters, not syllables; {_NOT_QUALITY}",
        ".1f",
    ),
    ProfileMetric(
        "ari",
        "Automated readability index",
        f"school grade by characters, made for manuals; {_NOT_QUALITY}",
        ".1f",
    ),
    ProfileMetric(
        "syllables",
        "Syllables a word",
        "the mean, counted by spelling; names are often wrong",
        ".2f",
    ),
    ProfileMetric(
        "dependency_distance",
        "Dependency distance",
        "words from a word to the one that governs it; long sentences have more, clear or not",
        ".2f",
    ),
    ProfileMetric(
        "dependency_distance_sd",
        "Spread of dependency distance",
        "standard deviation over sentences; variety of length, not of thought",
        ".2f",
    ),
    ProfileMetric(
        "coherence_first",
        "Coherence, next sentence",
        "cosine of the mean word vectors of neighbours; shared topic and function words, not logic",
    ),
    ProfileMetric(
        "coherence_second",
        "Coherence, next but one",
        "the same two sentences apart; talk that alternates need not be less coherent",
    ),
    *(
        ProfileMetric(
            f"share_{pos.lower()}",
            title,
            "share of tokens by the tagger; describes, no norm",
            ".1%",
        )
        for pos, title in _POS.items()
    ),
)
"""The numbers of readability and style, in display order."""


@dataclass(frozen=True, slots=True)
class TextCounts:
    """The counts that the formulas use."""

    n_words: int
    n_sentences: int
    n_chars: int
    """Of the words."""
    n_syllables: int
    n_long: int
    """Words of three or more syllables."""

    @classmethod
    def of(cls, parsed: Sequence[Parsed]) -> TextCounts:
        words = [text for part in parsed for text in _words(part)]
        syllables = [count_syllables(word) for word in words]
        return cls(
            n_words=len(words),
            n_sentences=len(parsed),
            n_chars=sum(map(len, words)),
            n_syllables=sum(syllables),
            n_long=sum(n >= _LONG_SYLLABLES for n in syllables),
        )


def _words(parsed: Parsed) -> Iterator[str]:
    for token in parsed.tokens:
        if token.is_word and "'" not in token.lower:
            yield token.text


def grades(counts: TextCounts) -> dict[str, float]:
    """The six formulas, whatever the length of the text; it has at least one word."""
    sentence = counts.n_words / counts.n_sentences
    syllables = counts.n_syllables / counts.n_words
    chars = counts.n_chars / counts.n_words
    return {
        "flesch_reading_ease": 206.835 - 1.015 * sentence - 84.6 * syllables,
        "flesch_kincaid_grade": 0.39 * sentence + 11.8 * syllables - 15.59,
        "gunning_fog": 0.4 * (sentence + 100 * counts.n_long / counts.n_words),
        "smog": 1.043 * math.sqrt(30 * counts.n_long / counts.n_sentences) + 3.1291,
        "coleman_liau": 5.88 * chars - 29.6 / sentence - 15.8,
        "ari": 4.71 * chars + 0.5 * sentence - 21.43,
    }


def readability(parser: Parser, parsed: Sequence[Parsed]) -> dict[str, float | str]:
    """The numbers of a text's sentences, or the reason why one is missing.

    There is at least one sentence, and each has a word.
    """
    counts = TextCounts.of(parsed)
    found: dict[str, float | str] = {}
    if counts.n_words < MIN_WORDS:
        found |= dict.fromkeys(_GRADES, "too_short")
    else:
        found |= grades(counts)
        if counts.n_sentences < MIN_SMOG_SENTENCES:
            found["smog"] = "too_short"
    found["syllables"] = counts.n_syllables / counts.n_words if counts.n_words else "no_words"
    distances = [_distance(part) for part in parsed]
    mean = math.fsum(distances) / len(distances)
    squares = math.fsum((one - mean) ** 2 for one in distances)
    found["dependency_distance"] = mean
    found["dependency_distance_sd"] = (
        math.sqrt(squares / len(distances)) if len(distances) > 1 else "one_sentence"
    )
    vectors = [parser.vector_of(part) for part in parsed]
    for name, order in (("coherence_first", 1), ("coherence_second", 2)):
        alike = [
            cosine(a, b)
            for a, b in zip(vectors, itertools.islice(vectors, order, None), strict=False)
            if a.any() and b.any()
        ]
        reason = "one_sentence" if len(parsed) == 1 else "too_short"
        found[name] = math.fsum(alike) / len(alike) if alike else reason
    tags = Counter(token.pos for part in parsed for token in part.tokens)
    found |= {f"share_{pos.lower()}": tags[pos] / tags.total() for pos in _POS}
    return found


def _distance(parsed: Parsed) -> float:
    """The mean distance of all tokens to their governors; 0 for the root."""
    apart = sum(abs(token.head - k) for k, token in enumerate(parsed.tokens))
    return apart / len(parsed.tokens)
