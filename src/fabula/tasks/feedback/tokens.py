"""What counts as a word of feedback when trigrams are counted.

`words` are those of every other measure. `authors` are what Rashkin et al. 2025 seem to have
counted. They do not describe it; the one row of their data that their README prints has 95
characters, 18 words and 16 trigrams, where the feedback has 16 words, four punctuation marks (two
of them quotation marks) and 20 tokens in all. That is the result of Penn Treebank tokenisation
without the tokens that are a single ASCII punctuation mark: quotation marks become tokens of two
characters there, and stay. Other rules fit this row as well; with the released files,
`fabula replicate story-feedback --tokens authors` shows how many rows this one fits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from fabula.text import TextSettings

__all__ = ["Tokens", "tokeniser", "treebank_tokens"]

Tokens = Literal["words", "authors"]
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_CLITICS = re.compile(r"(?<=\w)(n't|'(?:s|m|d|ll|re|ve))(?!\w)", re.IGNORECASE)
_PIECES = re.compile(
    r"``|''|\.{2,}|--+"
    r"|\d+(?:[.,:]\d+)*"
    r"|n't(?!\w)|'(?:s|m|d|ll|re|ve)(?!\w)"
    r"|(?:[^\W_]\.){2,}"
    r"|\w+(?:[-&/]\w+)*"
    r"|\S",
    re.IGNORECASE,
)
_QUOTES = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'"})


def tokeniser(tokens: Tokens) -> Callable[[str], list[str]]:
    """Return the function that splits a text into lower-case words."""
    if tokens == "words":
        return TextSettings().words
    return lambda text: [
        token.lower() for token in treebank_tokens(text) if token not in _PUNCTUATION
    ]


def treebank_tokens(text: str) -> list[str]:
    """Penn Treebank tokens: clitics and punctuation split off, double quotation marks as `` and ''.

    Curly quotes count as straight ones.
    """
    plain = text.translate(_QUOTES)
    plain = re.sub(r'(^|[\s(\[{<])"', r"\1 `` ", plain)
    plain = plain.replace('"', " '' ")
    return _PIECES.findall(_CLITICS.sub(r" \1", plain))
