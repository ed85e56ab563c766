"""The vocabulary of generators: words frequent enough in the training data.

Roemmele, Gordon and Swanson 2017, section 3.1: words that occur at least 25 times; every other one
is the unknown word. Words are lower-cased, and punctuation marks are tokens like words.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError, ModelError
from fabula.measures.linguistic.lexis import UNKNOWN_WORD
from fabula.store import write_whole
from fabula.text.treebank import detokenise

MIN_COUNT = 25
UNKNOWN = 0
"""The number of every word that is not in the vocabulary."""
END_MARKS = (".", "!", "?")
"""A sentence that is written word by word ends with one of these (section 3.3)."""

MAX_TOKENS = 120
"""Maximum length of a generated sentence, in case its end does not come."""

_PLAIN = str.maketrans("“”‘’", "\"\"''")


@functools.cache
def _tokeniser() -> Any:
    try:
        from spacy.lang.en import English
    except ImportError as error:
        raise ModelError("this needs spaCy; run: pip install 'fabula[nlp]'") from error
    return English().tokenizer


def tokens_of(sentence: str) -> list[str]:
    """The words and punctuation marks of a sentence, in their case; quotes are made straight.

    >>> tokens_of("“Don’t you see?” she said.")
    ['"', 'Do', "n't", 'you', 'see', '?', '"', 'she', 'said', '.']
    """
    return [token for token in map(str, _tokeniser()(sentence.translate(_PLAIN))) if token.strip()]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words by decreasing count; number 0 is the unknown word, with the sum of their counts."""

    words: tuple[str, ...]
    counts: NDArray[np.int64]
    """int64, shape (n_words,)."""
    shown: tuple[str, ...]
    """Each word in its most frequent case inside a sentence."""
    numbers: dict[str, int]

    @classmethod
    def of(cls, counts: Counter[str], cased: Counter[str], min_count: int) -> Vocabulary:
        """The vocabulary of lower-cased counts, and of counts of cased words inside sentences."""
        kept = sorted(
            (word for word, n in counts.items() if n >= min_count), key=lambda w: (-counts[w], w)
        )
        best: dict[str, tuple[int, str]] = {}
        for form, n in cased.items():
            best[form.lower()] = max(best.get(form.lower(), (0, "")), (n, form))
        words = (UNKNOWN_WORD, *kept)
        numbers = [sum(counts.values()) - sum(counts[word] for word in kept)]
        numbers += [counts[word] for word in kept]
        shown = (UNKNOWN_WORD, *(best.get(word, (0, word))[1] for word in kept))
        return cls._of(words, np.array(numbers, np.int64), shown)

    @classmethod
    def _of(
        cls, words: Sequence[str], counts: NDArray[np.int64], shown: Sequence[str]
    ) -> Vocabulary:
        return cls(tuple(words), counts, tuple(shown), {word: k for k, word in enumerate(words)})

    @classmethod
    def read(cls, path: Path) -> Vocabulary:
        """Raises `InputError` if the file is not a vocabulary."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            rows = [line.split("\t") for line in lines]
            counts = np.array([int(n) for _, n, _ in rows], np.int64)
            words, shown = [row[0] for row in rows], [row[2] for row in rows]
        except (OSError, ValueError) as error:
            raise InputError(
                f"{path}: not a vocabulary of `fabula continuation train`; train again"
            ) from error
        return cls._of(words, counts, shown)

    def write(self, path: Path) -> None:
        """Write one word per line: word, count, word as shown, separated by tabs."""
        lines = (
            f"{word}\t{n}\t{shown}\n"
            for word, n, shown in zip(self.words, self.counts, self.shown, strict=True)
        )
        write_whole(path, "".join(lines).encode())

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, sentence: str) -> NDArray[np.uint32]:
        """The word ids of a sentence's tokens: uint32, shape (n_tokens,)."""
        tokens = tokens_of(sentence)
        return np.array([self.numbers.get(token.lower(), UNKNOWN) for token in tokens], np.uint32)

    def are_words(self) -> NDArray[np.bool_]:
        """Which entries are words, not punctuation or the unknown word: bool, shape (n_words,)."""
        flags = np.array([any(map(str.isalnum, word)) for word in self.words], np.bool_)
        flags[UNKNOWN] = False
        return flags

    def are_ends(self) -> NDArray[np.bool_]:
        """Which entries end a sentence: bool, shape (n_words,)."""
        return np.isin(np.array(self.words, object), END_MARKS)

    def spell(self, numbers: Iterable[int]) -> str:
        """The sentence with these word ids as normal text: case, spaces, quotes, contractions."""
        tokens = _treebank_quotes([self.shown[number] for number in numbers])
        sentence = detokenise(tokens)
        for k, character in enumerate(sentence):
            if character.isalnum():
                return sentence[:k] + character.upper() + sentence[k + 1 :]
        return sentence


def _treebank_quotes(tokens: Sequence[str]) -> list[str]:
    """Disambiguate straight single quotes for `detokenise`: the first opens, the next closes.

    One that is still open at the end is closed.
    """
    found: list[str] = []
    is_open = {"'": False, '"': False}
    for token in tokens:
        if token not in is_open:
            found.append(token)
            continue
        if token == "'" and not is_open[token] and found and found[-1].lower().endswith("s"):
            found.append(token)
            continue
        opens = not is_open[token]
        is_open[token] = opens
        found.append({"'": ("'", "`"), '"': ("''", "``")}[token][opens])
    found += [{"'": "'", '"': "''"}[mark] for mark in ('"', "'") if is_open[mark]]
    return found
