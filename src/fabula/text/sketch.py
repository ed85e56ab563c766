"""A compact sketch of a text: enough to recognise its copies and its kind without the text.

Files of scores contain no texts. What must be known of a text later is in its row as a sketch:

- *runs*: hashes of some of its runs of 20 words, chosen by winnowing (Schleimer, Wilkerson and
  Aiken 2003), so that two texts that share 25 consecutive words always share one;
- *shingles*: a MinHash (Broder 1997) of its runs of three words, so that the share of values in
  which two texts agree estimates how much of their wording they have in common;
- its *opening*, the first ten words;
- its *vocabulary*, the distinct words, as 16 bits each;
- its length, and the frequency of line breaks and of each kind of quotation mark.

The same text has the same sketch everywhere.
"""

from __future__ import annotations

import base64
import functools
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.text.words import TextSettings

SKETCH = 1
"""Version of these rules; sketches of different versions are not compared."""

RUN_WORDS = 25
"""Two texts that share a run of this many words are always detected (as in `CopyRule`)."""

_GRAM = 20
_SHINGLE = 3
_OPENING = 10
_N_HASHES = 128
_BLOCK = 1 << 13
_MARKS = {
    "line_breaks": re.compile(r"\n"),
    "sentence_ends": re.compile(r"[.!?…。！？](?![.!?…。！？])"),
    "straight_quotes": re.compile(r'"|``|\'\''),
    "curly_quotes": re.compile("[“”]"),
    "other_quotes": re.compile(r"[„‟«»‹›「」『』]|(?<!\w)[‘'](?=\w)|(?m:^\s*[—–―-]\s?(?=\w))"),
}
_settings = TextSettings()


@dataclass(frozen=True, slots=True)
class Sketch:
    """What is kept of a text."""

    n_words: int
    marks: Mapping[str, float]
    """Frequency per 100 words, by kind."""
    runs: NDArray[np.uint64]
    shingles: NDArray[np.uint16]
    """(128,), or (0,) for a text of fewer than three words."""
    opening: int | None
    """None with fewer than ten words."""
    vocabulary: NDArray[np.uint16]

    def to_row(self) -> dict[str, Any]:
        """As plain values; `of_row` reads them back."""
        row: dict[str, Any] = {"rules": SKETCH, "n_words": self.n_words, **self.marks}
        row["opening"] = self.opening
        for name in ("runs", "shingles", "vocabulary"):
            values: NDArray[Any] = getattr(self, name)
            data = values.astype(values.dtype.newbyteorder("<")).tobytes()
            row[name] = base64.b64encode(data).decode()
        return row

    @classmethod
    def of_row(cls, row: Any) -> Sketch | None:
        """Read what `to_row` wrote. None if it is missing, damaged, or of another version."""
        try:
            if row["rules"] != SKETCH:
                return None
            return cls(
                int(row["n_words"]),
                {name: float(row[name]) for name in _MARKS},
                _unpacked(row["runs"], "<u8"),
                _unpacked(row["shingles"], "<u2"),
                None if row["opening"] is None else int(row["opening"]),
                _unpacked(row["vocabulary"], "<u2"),
            )
        except (KeyError, TypeError, ValueError):
            return None


@functools.lru_cache(8)
def sketch_of(text: str) -> Sketch:
    """The sketch of a text. Takes time and memory in proportion to its length."""
    words = _settings.words(text)
    known: dict[str, int] = {}
    for word in words:
        if word not in known:
            known[word] = zlib.crc32(word.encode("utf-8", "replace"))
    codes = _mixed(np.fromiter((known[word] for word in words), np.uint64, len(words)))
    per_100 = 100 / max(1, len(words))
    runs, window = _grams(codes, _GRAM), RUN_WORDS - _GRAM + 1
    if len(runs):
        # The minimum of every `window` hashes in a row, or of all if there are fewer.
        windows = np.lib.stride_tricks.sliding_window_view(runs, min(window, len(runs)))
        runs = np.unique(windows.min(axis=1))
    grams, shingles = np.unique(_grams(codes, _SHINGLE)), np.zeros(0, np.uint16)
    if len(grams):
        factors = _mixed(np.arange(_N_HASHES, dtype=np.uint64)) | np.uint64(1)
        least = np.full(_N_HASHES, np.iinfo(np.uint64).max)
        for start in range(0, len(grams), _BLOCK):
            products = grams[start : start + _BLOCK, None] * factors
            least = np.minimum(least, (products ^ (products >> np.uint64(32))).min(axis=0))
        shingles = _mixed(least).astype(np.uint16)
    marks = {
        name: round(per_100 * sum(1 for _ in pattern.finditer(text.strip())), 4)
        for name, pattern in _MARKS.items()
    }
    opening = int(_grams(codes[:_OPENING], _OPENING)[0]) if len(words) >= _OPENING else None
    return Sketch(len(words), marks, runs, shingles, opening, np.unique(codes.astype(np.uint16)))


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hashes of numbers: the last step of splitmix64 (Steele, Lea and Flood 2014)."""
    z = values + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _grams(codes: NDArray[np.uint64], n: int) -> NDArray[np.uint64]:
    """A hash of each run of n words: uint64, shape (max(0, n_words - n + 1),)."""
    n_grams = max(0, len(codes) - n + 1)
    hashes = np.zeros(n_grams, np.uint64)
    for k in range(n):
        hashes = hashes * np.uint64(0x100000001B3) + codes[k : k + n_grams]
    return _mixed(hashes)


def _unpacked(text: str, kind: str) -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text, validate=True), kind)
