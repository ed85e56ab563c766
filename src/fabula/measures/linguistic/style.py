"""Stylistic similarity of a continuation and its context, by parts of speech.

Roemmele, Gordon and Swanson 2017, section 4.2, "Style Matching" (metrics 13 and 14).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from fabula.measures.linguistic.lexis import trigrams

__all__ = ["CATEGORIES", "category_trigrams", "style_match"]

CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "adverb": ("ADV",),
    "adjective": ("ADJ",),
    "conjunction": ("CCONJ", "SCONJ"),
    "determiner": ("DET",),
    "noun": ("NOUN",),
    "pronoun": ("PRON",),
    "preposition": ("ADP",),
    "punctuation": ("PUNCT",),
}
"""The eight categories, as universal parts of speech; proper nouns are not included."""


def style_match(a: Counter[str], b: Counter[str]) -> float | None:
    """The mean over the categories of 1 - |share A - share B| / (share A + share B).

    Takes counts of parts of speech, punctuation included; None if a text has no token. A
    category absent from both matches fully, as in language style matching (Ireland and Pennebaker
    2010), which the paper follows.
    """
    n_a, n_b = a.total(), b.total()
    if not n_a or not n_b:
        return None
    total = 0.0
    for parts in CATEGORIES.values():
        share_a = sum(a[part] for part in parts) / n_a
        share_b = sum(b[part] for part in parts) / n_b
        both = share_a + share_b
        total += 1 - abs(share_a - share_b) / both if both else 1
    return total / len(CATEGORIES)


def category_trigrams(sentences: Iterable[Sequence[str]]) -> set[tuple[str, str, str]]:
    """Part-of-speech trigrams, punctuation included; none crosses a sentence boundary."""
    return {three for sentence in sentences for three in trigrams(sentence)}
