"""Clusters: the one definition of which texts are independent.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.text.sketch import Sketch
from fabula.types import Document

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
    own, all_ = _Components(len(keys)), _Components(len(keys))
    first: dict[str, int] = {}
    for place, key in enumerate(keys):
        all_.join(place, first.setdefault(key, place))
    same: dict[str, int] = {}
    equal = [(place, same.setdefault(digest, place)) for place, digest in enumerate(digests)]
    openings = [
        [sketch.opening] if human and sketch.opening is not None else []
        for sketch, human in zip(sketches, is_human, strict=True)
    ]
    runs = [sketch.runs for sketch in sketches]
    for a, b in [*equal, *_sharing(openings), *_sharing(runs), *_nearly_same(sketches)]:
        own.join(a, b)
        all_.join(a, b)
    roots = list(map(all_.root, range(len(keys))))
    least: dict[int, str] = {}
    of_copies: dict[int, set[str]] = {}
    for place, key in enumerate(keys):
        least[roots[place]] = min(least.get(roots[place], key), key)
        of_copies.setdefault(own.root(place), set()).add(key)
    names = tuple(sorted(least.values()))
    number = {name: k for k, name in enumerate(names)}
    numbers = np.array([number[least[root]] for root in roots], np.int64)
    copies = tuple(place for place in range(len(keys)) if len(of_copies[own.root(place)]) > 1)
    return Clusters(numbers, names, len(first), copies)


def joined_keys(keys: list[str], sketches: Sequence[Sketch | None]) -> tuple[list[str], int]:
    """The cluster of each text, and how many were joined because of copies.

    Without a sketch of every text none are. Whether people wrote the texts is unknown here, so
    equal openings do not join.
    """
    known = [sketch for sketch in sketches if sketch is not None]
    if len(known) < len(keys):
        return keys, 0
    found = find_clusters(keys, known, [False] * len(keys))
    return [found.names[number] for number in found.numbers], found.n_before - len(found)


class _Components:
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
    found: set[tuple[int, int]] = set()
    for start in range(0, table.shape[1], _BAND):
        band = table[:, start : start + _BAND].astype(np.uint64)
        key = band[:, 0] << np.uint64(16) | band[:, 1]
        by_key = np.argsort(key, kind="stable")
        for step in range(1, _REACH + 1):
            a, b = by_key[:-step], by_key[step:]
            alike = key[a] == key[b]
            found.update(zip(a[alike].tolist(), b[alike].tolist(), strict=True))
    return [
        (int(places[a]), int(places[b]))
        for a, b in sorted(found)
        if np.mean(table[a] == table[b]) >= _MIN_SHARED
    ]
