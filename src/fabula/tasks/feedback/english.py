"""Find words that are not English, which poor translations leave behind.

No writer damages a text in this way.
"""

from __future__ import annotations

import functools
import importlib.metadata
import re
from collections.abc import Callable

from fabula.errors import ModelError

_MIN_ZIPF = 1.0
# Common words (die, hat) are English, though more frequent in another language.
_COMMON_ZIPF, _MAX_LEAD = 3.5, 2.0
_OTHERS = ("es", "de", "fr", "it", "pt", "nl")
_WORD = re.compile(r"[^\W\d_]+")


def foreign_words(original: str, text: str) -> list[str]:
    """The words of a text that are neither in its original nor English, in order.

    A word is English if wordfreq's English list has it (at least ten times per billion words) and,
    unless it is common, no other language's list has it a hundred times as often. Words of the
    original, including names, never count. In the 986 seed stories, checked as translations of an
    empty text, 26 of 48,309 words count, most of them misspelt. Raises `ModelError` if wordfreq is
    not installed.
    """
    own = {word.lower() for word in _WORD.findall(original)}
    new = dict.fromkeys(word for word in _WORD.findall(text) if word.lower() not in own)
    return [word for word in new if _is_foreign(word.lower())]


def vocabulary_name() -> str:
    """The name of the word list, for signatures."""
    _frequency()
    return f"wordfreq-{importlib.metadata.version('wordfreq')}"


@functools.lru_cache(1 << 16)
def _is_foreign(word: str) -> bool:
    if len(word) == 1:
        return False
    zipf = _frequency()
    english = zipf(word, "en")
    if not _MIN_ZIPF <= english < _COMMON_ZIPF:
        return english < _MIN_ZIPF
    return any(zipf(word, other) >= english + _MAX_LEAD for other in _OTHERS)


def _frequency() -> Callable[[str, str], float]:
    try:
        from wordfreq import zipf_frequency
    except ImportError as error:
        raise ModelError("this needs wordfreq; run: pip install 'fabula[nlp]'") from error
    return zipf_frequency
