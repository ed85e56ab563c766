"""Vocabulary: how rare and how varied the words are.

Roemmele, Gordon and Swanson 2017, section 4.1, "Lexical Diversity" and "Lexical Frequency" (metrics
3 to 5). Because the type-token ratio falls with length, two length-independent measures are added:
MATTR (Covington and McFall 2010) and MTLD (McCarthy and Jarvis 2010).
"""

from __future__ import annotations

import functools
import importlib.metadata
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from fabula.core.errors import InputError, ModelError

# A clitic counts as the word it stands for; the list barely contains clitics themselves.
_CLITICS = {
    "n't": "not", "'s": "is", "'ll": "will", "'re": "are", "'ve": "have", "'m": "am", "'d": "would",
    "ca": "can", "wo": "will", "sha": "shall", "'em": "them", "'t": "it",
}  # fmt: skip

FLOOR = 1e-9
"""The frequency of a word missing from the list: the list's own smallest step."""
MATTR_WINDOW = 50
UNKNOWN_WORD = "<unknown>"
"""What generators write for an unknown word; not a word of any vocabulary."""

MTLD_THRESHOLD = 0.72


class Frequencies:
    """Word frequencies of English by wordfreq, whose sources include Reddit.

    Raises `ModelError` if the package is not installed.
    """

    def __init__(self) -> None:
        try:
            import wordfreq
        except ImportError as error:
            raise ModelError(
                "word frequencies need wordfreq; run: pip install 'fabula[nlp]'"
            ) from error
        self.name = f"wordfreq-{importlib.metadata.version('wordfreq')}"
        self._log: Callable[[str], float] = functools.lru_cache(1 << 18)(
            lambda word: math.log(max(wordfreq.word_frequency(word, "en", minimum=FLOOR), FLOOR))
        )

    def log(self, word: str) -> float:
        """The natural logarithm of a word's share of all words; a clitic is its full word."""
        return self._log(_CLITICS.get(word, word))

    def zipf(self, word: str) -> float:
        """The logarithm to base 10 of how often a word occurs in a thousand million words."""
        return 9 + self.log(word) / math.log(10)

    def inverse(self, words: Sequence[str]) -> float:
        """The mean of the negative logarithms: higher is rarer. `words` is not empty."""
        return -math.fsum(map(self.log, words)) / len(words)


frequencies = functools.cache(Frequencies)
"""Those of this process, with what they looked up."""


def trigrams(tokens: Sequence[str]) -> list[tuple[str, str, str]]:
    """All runs of three consecutive items."""
    return list(zip(tokens, tokens[1:], tokens[2:], strict=False))


def type_token_ratio(tokens: Iterable[object]) -> float | None:
    """Distinct tokens as a share of all; None if there are none."""
    counts = Counter(tokens)
    return len(counts) / counts.total() if counts else None


def read_vocabulary(path: Path) -> frozenset[str]:
    """Words to count: one per line, or a `vocabulary.tsv` of `fabula continuation train`."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a list of words ({error})") from error
    words = {line.partition("\t")[0].strip().lower() for line in lines} - {"", UNKNOWN_WORD}
    if not words:
        raise InputError(f"{path}: contains no words; write one per line")
    return frozenset(words)


def mattr(words: Sequence[str], window: int = MATTR_WINDOW) -> float | None:
    """The mean type-token ratio of every window of this many words; None for shorter texts."""
    if len(words) < window:
        return None
    counts = Counter(words[:window])
    total = len(counts)
    for gone, come in zip(words, words[window:], strict=False):
        counts[come] += 1
        counts[gone] -= 1
        if not counts[gone]:
            del counts[gone]
        total += len(counts)
    return total / window / (len(words) - window + 1)


def mtld(words: Sequence[str], threshold: float = MTLD_THRESHOLD) -> float | None:
    """The mean length of runs until their type-token ratio falls to the threshold, both directions.

    None if no word is repeated and the ratio therefore never falls.
    """
    lengths = []
    for one_way in (words, words[::-1]):
        n_runs, types, n = 0.0, set[str](), 0
        for word in one_way:
            types.add(word)
            n += 1
            if len(types) / n <= threshold:
                n_runs += 1
                types, n = set(), 0
        if n:
            n_runs += (1 - len(types) / n) / (1 - threshold)
        if n_runs:
            lengths.append(len(words) / n_runs)
    return math.fsum(lengths) / len(lengths) if lengths else None
