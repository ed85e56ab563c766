"""Similarity of texts that should differ: n-grams, compression, templates, vectors, common runs.

Shaib et al. 2024, "Standardizing the Measurement of Text Diversity", compares the measures. All of
them depend on the length and number of texts, so groups are compared only at equal length and equal
number.
"""

from __future__ import annotations

from fabula.measures.diversity.common_phrases import SharedPhrase
from fabula.measures.diversity.diversity_tests import Resampling
from fabula.measures.diversity.measure import Extra, Plan, Stages, measure_diversity
from fabula.measures.diversity.result import Diversity, GroupDiversity
from fabula.measures.diversity.text_pairs import SimilarPair

__all__ = [
    "Diversity", "Extra", "GroupDiversity", "Plan", "Resampling", "SharedPhrase",
    "SimilarPair", "Stages", "measure_diversity",
]  # fmt: skip
