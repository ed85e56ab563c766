"""Count the syllables of an English word by its spelling.

Groups of vowels are counted. Silent ones are subtracted (the last e of *make*, the e of *walked*
and *lonely*), and those that make two syllables count twice (*li-on*, *cre-ate*).
"""

from __future__ import annotations

import functools
import re

__all__ = ["count_syllables"]

_VOWELS = re.compile("[aeiouy]+")
_SILENT = re.compile(
    r"(?<![^aeiouylr][lr])(?<![aeiouy])e$"  # make, whole; not table, free
    r"|(?<![^aeiouylrw]l)(?<![sxzcg])(?<!ch|sh)(?<![aeiouy])es$"  # makes; not tables, houses
    r"|(?<![^aeiouylrw]l)(?<![bcdfgkptv]r)(?<![aeiouytd])ed$"  # walked; not settled, hundred
    r"|(?<=[aeiouy][^aeiouylr])e(?=(?:ly|ments?|ness|ful|fully|less|some|things?|times?|where|body"
    r"|one|day|fore|self|how|what|land|town|man|men|work|place|ty)$)"
    r"|(?<=[aeiouy][lr])e(?=(?:ly|ness|ful|fully|less|fore|ment)$)"
    r"|(?<=[rnl][cgs])e(?=(?:ly|ments?|ness|less|ful)$)"
)
_SPLIT = re.compile(
    r"(?<![tcsg])i(?=a(?!ge))|(?<=[aeiouy][bdhlmnrv])io(?=us)|(?<![tcsgxnl])i(?=o(?!us))"
    r"|i(?=um|us)|(?<=[rl])ie(?=r|st|ty)|(?<=[^aeiouytcg])i(?=e(?:r|st|nt|nce|t)s?$)"
    r"|(?<=[aeiou])(?=ing)|y(?=[aeio][a-z])(?<=[^aeiou]y)|(?<![qg])u(?=a[lrtd])|u(?=ou)"
    r"|(?<=[dfcr])u(?=e[lt])|(?<=[^aeiou])e(?=o[lprst])|(?<=[cr])e(?=at[eio])"
    r"|(?<=[aeiouy][^aeiouy])e(?=a$)|(?<=p)o(?=e[mt])|s(?=m$)"
)
_NO_VOWEL = re.compile("(?:^|(?<=[aeiou]))y(?=[aeiou])|(?<=q)u|(?<=g)ue(?=s?$)")
"""Vowel letters that are not vowels here: *yes*, *royal*, *quiet*, *tongue*."""
_BY_SYLLABLES = {
    2: "argue business colonel dr evening evenings every forehead lion lions maybe mr mrs naked "
    "people ragged science soldier soldiers someone wednesday wicked wretched",
    3: "everyone everything everywhere idea ideas",
    4: "everybody",
}
_KNOWN = {word: n for n, words in _BY_SYLLABLES.items() for word in words.split()}
"""Frequent words that are not pronounced as they are spelt."""


@functools.lru_cache(1 << 16)
def count_syllables(word: str) -> int:
    """The syllables of a word, at least 1; characters other than a to z are ignored."""
    letters = re.sub("[^a-z]", "", word.lower())
    if letters in _KNOWN:
        return _KNOWN[letters]
    spoken = _NO_VOWEL.sub("w", letters)
    n = len(_VOWELS.findall(spoken)) + len(_SPLIT.findall(spoken)) - len(_SILENT.findall(spoken))
    return max(1, n)
