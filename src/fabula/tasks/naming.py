"""Names for groups of short texts, from their own words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fabula.text import TextSettings

_STOP_WORDS = """
    about above across actually after again against all almost already also although always and
    another any are around away because been before being below between both but can come comes
    could did does doing down each even exactly example feel feels felt first for from get give
    given goes had has have having her here herself him himself his how however instance into its
    itself just least left less like long look lot make makes making many mean more most much never
    not nothing often once one only other otherwise our out over piece quite rather read reader
    readers reading real really same say says second see seem seemed seems she should simply since
    some somebody someone something still stories story such sure take takes than that the their
    them themselves then there these they thing things think this those though through time times
    together too true two under until upon use used using very was way well were what when where
    which while who whole whose why will with without would writer writing yes you your
"""
_STOP = frozenset(_STOP_WORDS.split())
_MIN_CHARS = 3
_PHRASE = 3
"""How many times as good as a word a phrase is that as many texts say."""


def content_words(text: str) -> set[str]:
    """The content words of a text, truncated to their first five letters."""
    words = TextSettings().words(text)
    return {word[:5] for word in words if len(word) >= _MIN_CHARS and word not in _STOP}


def names_by_words(groups: Sequence[Sequence[str]], n_phrases: int = 2) -> list[str]:
    """For each group, one or two phrases or words that many of its texts say and few of others.

    A phrase is two or three words in a row, the first and last of which are content words.
    """
    inside = [Counter(phrase for text in group for phrase in _phrases(text)) for group in groups]
    everywhere: Counter[str] = Counter()
    for counts in inside:
        everywhere.update(counts)
    names = []
    for counts in inside:

        def weight(phrase: str, counts: Counter[str] = counts) -> float:
            n = counts[phrase]
            return n**2 / everywhere[phrase] * (_PHRASE if " " in phrase and n > 1 else 1)

        chosen: list[str] = []
        for phrase in sorted(counts, key=lambda one: (-weight(one), one)):
            said = content_words(" ".join(chosen))
            if not content_words(phrase) & said:
                chosen.append(phrase)
            if len(chosen) == n_phrases:
                break
        names.append(", ".join(chosen).capitalize() or "Unnamed")
    return names


def _phrases(text: str) -> set[str]:
    """Its content words, and the phrases between them, each once."""
    words = TextSettings().words(text)
    ends = [len(word) >= _MIN_CHARS and word not in _STOP and "'" not in word for word in words]
    return {
        " ".join(words[start : start + n])
        for n in (1, 2, 3)
        for start in range(len(words) - n + 1)
        if ends[start] and ends[start + n - 1]
    }
