"""Similarity of texts that should differ: n-grams, compression, templates, vectors, common runs.

Shaib et al. 2024, "Standardizing the Measurement of Text Diversity", compares the measures. All of
them depend on the length and number of texts, so groups are compared only at equal length and equal
number.
"""
