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

Clusters: the one definition of which texts are independent.

Texts to one prompt, or by one author, are correlated, so a *cluster* of them counts as one wherever
something is counted, estimated or guaranteed. A text's cluster is given by a field (its prompt), or
is the text alone; and clusters are joined if their texts are copies of each other, since collectors
seldom know everything that texts share:

- texts that share 25 words in a row (shorter runs, down to 20, may be detected);
- texts that are nearly the same (a fifth of their runs of three words);
- people's texts that open with the same ten words: a prompt, or a given first sentence. Machines
  produce similar openings independently.

Joining is by connected components, whatever the order of the texts.
"""

from __future__ import annotations

import base64
import functools
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.core.types import Document
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
    words = TextSettings().words(text)
    known = {word: zlib.crc32(word.encode("utf-8", "replace")) for word in set(words)}
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
        minima = np.full(_N_HASHES, np.iinfo(np.uint64).max)
        for start in range(0, len(grams), _BLOCK):
            products = grams[start : start + _BLOCK, None] * factors
            minima = np.minimum(minima, (products ^ (products >> np.uint64(32))).min(axis=0))
        shingles = _mixed(minima).astype(np.uint16)
    marks = {k: round(per_100 * len(p.findall(text.strip())), 4) for k, p in _MARKS.items()}
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


USUAL_FIELDS = ("prompt_id", "pair_id", "author")
"""Fields that define clusters; the first one present is used."""
_MIN_SHARED = 0.2
"""Share of three-word runs that makes texts near-duplicates. Texts to one prompt share 0.03."""
_BAND = 2
_REACH = 3


@dataclass(frozen=True, slots=True)
class Clusters:
    """The cluster of each text, and which keys were joined."""

    numbers: NDArray[np.int64]
    """(n,), from 0, in the order of the clusters' names."""
    names: tuple[str, ...]
    """By number: the smallest key of its texts."""
    n_before: int
    """Number of clusters without joining copies."""
    copies: tuple[int, ...]
    """Indices of texts that are near-duplicates of a text with another key."""

    def __len__(self) -> int:
        return len(self.names)


def cluster_field(rows: Sequence[Mapping[str, Any]], field: str | None) -> str | None:
    """The field to cluster by: the named one, else the first usual one that a row has."""
    if field is not None:
        return field
    return next((f for f in USUAL_FIELDS if any(has_value(r.get(f)) for r in rows)), None)


def has_value(value: Any) -> bool:
    """Whether a field has a value; an empty cell of a table does not count."""
    return value is not None and value != ""


def own_field(document: Document, field: str) -> str | None:
    """The value of a text's field, its id included; None if it has none."""
    value = {"id": document.id, **document.fields}.get(field)
    return str(value) if has_value(value) else None


def find_clusters(
    keys: Sequence[str],
    sketches: Sequence[Sketch],
    is_human: Sequence[bool],
    digests: Sequence[str] = (),
) -> Clusters:
    """Clusters of texts by key, joined if texts are copies.

    keys: what each text belongs to as far as is known; a text of its own needs a key of its own.
    digests: if given, texts with the same digest are copies too, however short.
    """
    by_copy, all_ = Components(len(keys)), Components(len(keys))
    first: dict[str, int] = {}
    for place, key in enumerate(keys):
        all_.join(place, first.setdefault(key, place))
    same: dict[str, int] = {}
    equal = [(place, same.setdefault(digest, place)) for place, digest in enumerate(digests)]
    both = zip(sketches, is_human, strict=True)
    openings = [[s.opening] if human and s.opening is not None else [] for s, human in both]
    runs = [sketch.runs for sketch in sketches]
    for a, b in [*equal, *_sharing(openings), *_sharing(runs), *_nearly_same(sketches)]:
        by_copy.join(a, b)
        all_.join(a, b)
    roots = list(map(all_.root, range(len(keys))))
    smallest: dict[int, str] = {}
    of_copies: dict[int, set[str]] = {}
    for place, key in enumerate(keys):
        smallest[roots[place]] = min(smallest.get(roots[place], key), key)
        of_copies.setdefault(by_copy.root(place), set()).add(key)
    names = tuple(sorted(smallest.values()))
    number = {name: k for k, name in enumerate(names)}
    numbers = np.array([number[smallest[root]] for root in roots], np.int64)
    copies = tuple(place for place in range(len(keys)) if len(of_copies[by_copy.root(place)]) > 1)
    return Clusters(numbers, names, len(first), copies)


def joined_keys(keys: list[str], sketches: Sequence[Sketch | None]) -> tuple[list[str], int]:
    """The cluster of each text, and how many were joined because of copies.

    Without a sketch of every text none are. Whether people wrote the texts is unknown here, so
    equal openings do not join.
    """
    known = [sketch for sketch in sketches if sketch is not None]
    if len(known) < len(keys):
        return keys, 0
    joined = find_clusters(keys, known, [False] * len(keys))
    return [joined.names[number] for number in joined.numbers], joined.n_before - len(joined)


class Components:
    """Things numbered from 0, joined in pairs: the root of each names what it is joined with."""

    def __init__(self, n: int) -> None:
        self._parent = list(range(n))

    def root(self, place: int) -> int:
        while self._parent[place] != place:
            self._parent[place] = self._parent[self._parent[place]]
            place = self._parent[place]
        return place

    def join(self, a: int, b: int) -> None:
        self._parent[self.root(a)] = self.root(b)


def _sharing(values: Sequence[Sequence[int] | NDArray[np.uint64]]) -> list[tuple[int, int]]:
    """Pairs of indices with a value in common, each with the next of the same value."""
    flat = np.concatenate([np.asarray(v, np.uint64) for v in values] or [np.zeros(0, np.uint64)])
    owners = np.repeat(np.arange(len(values)), [len(v) for v in values])
    order = np.lexsort((owners, flat))
    flat, owners = flat[order], owners[order]
    at = np.flatnonzero(flat[1:] == flat[:-1])
    return sorted(set(zip(owners[at].tolist(), owners[at + 1].tolist(), strict=True)))


def _nearly_same(sketches: Sequence[Sketch]) -> list[tuple[int, int]]:
    """Pairs of indices whose shingles agree in enough values.

    Candidates agree in a band of two values (Leskovec, Rajaraman and Ullman 2014, section 3.4), and
    are adjacent, or nearly, within their band: very similar texts agree in many bands.
    """
    known = [place for place, s in enumerate(sketches) if len(s.shingles)]
    if len(known) < 2:
        return []
    table = np.stack([sketches[place].shingles for place in known])
    # Rows sorted by value, so that the order of the texts does not matter.
    order = np.lexsort(table.T[::-1])
    table, places = table[order], np.array(known)[order]
    pairs: set[tuple[int, int]] = set()
    for start in range(0, table.shape[1], _BAND):
        band = table[:, start : start + _BAND].astype(np.uint64)
        key = band[:, 0] << np.uint64(16) | band[:, 1]
        by_key = np.argsort(key, kind="stable")
        for step in range(1, _REACH + 1):
            a, b = by_key[:-step], by_key[step:]
            alike = key[a] == key[b]
            pairs.update(zip(a[alike].tolist(), b[alike].tolist(), strict=True))
    return [
        (int(places[a]), int(places[b]))
        for a, b in sorted(pairs)
        if np.mean(table[a] == table[b]) >= _MIN_SHARED
    ]
