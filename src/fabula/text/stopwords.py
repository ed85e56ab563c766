"""Stop words, left out where texts are compared by content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from fabula.errors import InputError
from fabula.text.words import TextSettings

# Matches the word in any case and with any tokeniser setting.
_PLAIN = TextSettings()


@dataclass(frozen=True, slots=True)
class StopWords:
    """A list of words with its name: `english@1a2b3c4d`."""

    name: str
    words: frozenset[str]

    @classmethod
    def of(cls, label: str, words: Iterable[str]) -> StopWords:
        chosen = frozenset(_PLAIN.normalise(list(words)))
        digest = hashlib.sha256("\n".join(sorted(chosen)).encode()).hexdigest()[:8]
        return cls(f"{label}@{digest}", chosen)

    def is_content(self, word: str) -> bool:
        """Whether a word in normal form carries meaning: not listed, and not punctuation."""
        folded = word.casefold()
        return folded not in self.words and any(map(str.isalnum, word))


def load_stop_words(spec: str = "english") -> StopWords:
    """Load the user's list: `english`, `none`, or a file of words, with `#` for comments.

    Raises `InputError` if the file cannot be read.
    """
    if spec == "none":
        return StopWords.of("none", ())
    if spec == "english":
        text = files("fabula.text").joinpath("function_words.txt").read_text(encoding="utf-8")
        label = "english"
    else:
        path = Path(spec)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"`stop_words` {path}: cannot be read as UTF-8 ({error})") from error
        label = path.stem
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return StopWords.of(label, (word for line in lines for word in _PLAIN.words(line)))
