"""Names for groups of short texts, from their own words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fabula.text import TextSettings

_STOP_WORDS = """
    about all also and any are because been being but can could did does doing each even feel
    feels felt for from had has have having her him his how into its itself just like make makes
    many more most much not one only other our out over piece quite rather read reader readers
    reading really same say see she should some somebody stories story such than that the their
    them themselves then there these they this those through too using very was way well were
    what when where which while who will with would writer writing yes you your
"""
_STOP = frozenset(_STOP_WORDS.split())
_MIN_CHARS = 3


def content_words(text: str) -> set[str]:
    """The content words of a text, truncated to their first five letters."""
    words = TextSettings().words(text)
    return {word[:5] for word in words if len(word) >= _MIN_CHARS and word not in _STOP}


def names_by_words(groups: Sequence[Sequence[str]], n_words: int = 3) -> list[str]:
    """For each group, the words that are frequent in it and rare in the others."""
    words = TextSettings()
    inside = [
        Counter(
            word
            for text in group
            for word in set(words.words(text))
            if len(word) >= _MIN_CHARS and word not in _STOP
        )
        for group in groups
    ]
    everywhere: Counter[str] = Counter()
    for counts in inside:
        everywhere.update(counts)
    names = []
    for counts in inside:
        best = sorted(counts, key=lambda word: (-(counts[word] ** 2) / everywhere[word], word))
        names.append(" ".join(best[:n_words]).capitalize() or "Unnamed")
    return names
