"""Word vectors: a language model's input layer, text files such as GloVe's, or spaCy's.

Vectors are stored as unit vectors in 16-bit integers: cosines are then within 0.0001 of the exact
ones, and the same on every machine.

Vectors are sometimes pruned: many words share the vector of a more frequent one, so that Peter and
Jane would be the same word. A vector belongs to the first word that has it; others count as words
without a vector, and a remark reports how many.
"""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError

if TYPE_CHECKING:
    from fabula.models.input_layer import InputLayer

K = TypeVar("K")

_SCALE = 32767
_BLOCK = 8192
_ALIGNED = 16
"""Dimensions are padded with zeros to a multiple of this, which kernels read at a time."""


class WordVectors:
    """The vectors of words, looked up as written, in lower case, and capitalised.

    `matrix` is int16, unit vectors times 32,767 by row; its last row is zeros. It may be replaced
    by a longer one when words are looked up.
    """

    def __init__(
        self,
        name: str,
        vectors: Quantised,
        find: Callable[[str], int],
        owners: bytes,
        remark: str = "",
    ) -> None:
        """`find` gives a word's row, or -1; `owners` identifies which word owns which row."""
        self.remark = remark
        """What a reader of the matches should know; may be empty."""
        self.matrix = np.concatenate([*vectors.blocks, np.zeros_like(vectors.blocks[0][:1])])
        self._has_length = np.concatenate(vectors.have_length)
        digest = hashlib.sha256(owners)
        digest.update(self.matrix.tobytes())
        self.name = f"{name}@{digest.hexdigest()[:8]}"
        self._find = find
        self._lock = threading.Lock()

    def rows(self, words: Iterable[str]) -> NDArray[np.int32]:
        """The row of each word, or -1 if it has no vector: int32, shape (n_words,)."""
        found = []
        for word in words:
            forms = map(self._find, dict.fromkeys((word, word.lower(), word.capitalize())))
            found.append(next((row for row in forms if row >= 0 and self._has_length[row]), -1))
        return np.array(found, np.int32)

    def unit(self, rows: Sequence[int] | NDArray[np.int32]) -> NDArray[np.float32]:
        """Unit vectors of rows: float32, shape (n_rows, n_dimensions)."""
        unit: NDArray[np.float32] = self.matrix[np.asarray(rows)].astype(np.float32) / _SCALE
        return unit


class _LayerVectors(WordVectors):
    """Vectors computed from a language model's tokens when a word is looked up."""

    def __init__(self, layer: InputLayer) -> None:
        self._layer = layer
        self._known: dict[str, int] = {}
        super().__init__(
            layer.name,
            quantise(np.zeros((1, layer.n_dimensions))),
            self._known.__getitem__,
            layer.digest.encode(),
        )
        self._n_rows = 0

    def rows(self, words: Iterable[str]) -> NDArray[np.int32]:
        words = list(words)
        with self._lock:
            new = list(dict.fromkeys(word for word in words if word not in self._known))
            if new:
                self._add(new)
            return np.array([self._known[word] for word in words], np.int32)

    def _add(self, words: list[str]) -> None:
        found = quantise(self._layer.vectors(words))
        rows, has_length = np.concatenate(found.blocks), np.concatenate(found.have_length)
        first, end = self._n_rows, self._n_rows + len(rows)
        if end >= len(self.matrix):
            # Double the size, so that adding stays cheap; the last row is never assigned.
            longer = np.zeros((2 * end + 1, self.matrix.shape[1]), np.int16)
            longer[:first] = self.matrix[:first]
            self.matrix = longer
        self.matrix[first:end] = rows
        self._n_rows = end
        self._known.update(
            (word, first + k if has_length[k] else -1) for k, word in enumerate(words)
        )


@dataclass(frozen=True, slots=True)
class Quantised:
    """Unit vectors in 16 bits, in blocks of rows, and which rows had nonzero length."""

    blocks: list[NDArray[np.int16]]
    have_length: list[NDArray[np.bool_]]


def open_vectors(spec: str = "") -> WordVectors:
    """Open the vectors that a user names: by default the sentence encoder's input layer, `spacy`
    for the English pipeline's, or a path.

    A path is a text file of word2vec, fastText or GloVe (`.vec`, `.txt`, also `.gz`; gensim writes
    one by `save_word2vec_format`), or the folder of a Hugging Face model, whose input layer is
    read: the vector of a word is the mean of its tokens'. Raises `InputError` if it cannot be read,
    `ModelError` if something is not installed.
    """
    from fabula.models.input_layer import InputLayer

    if not spec:
        return _LayerVectors(InputLayer.packaged())
    if spec == "spacy":
        return _spacy_vectors()
    path = Path(spec)
    if not path.exists():
        raise InputError(f"`vectors` {spec}: no such file or folder")
    if path.is_dir():
        return _LayerVectors(InputLayer.of_folder(path))
    words, found = _read_text(path)
    known: dict[str, int] = {}
    for row, word in enumerate(words):
        known.setdefault(word, row)
    owned = _owned(known, found)
    remark = _pruned(path.name, len(known) - len(owned), len(known))
    # Exactly as in the file, where each word has its own.
    owners = "\n".join(words).encode(errors="replace") + remark.encode()
    return WordVectors(path.name, found, lambda word: owned.get(word, -1), owners, remark)


def _spacy_vectors() -> WordVectors:
    from fabula.text.pipeline import load_pipeline

    nlp = load_pipeline(())
    vectors, strings = nlp.vocab.vectors, nlp.vocab.strings
    name = f"{nlp.meta['name']}-{nlp.meta['version']}"
    data = quantise(vectors.data)
    # spaCy prunes the rarer words, which come after those that keep their vectors.
    rows = _owned(dict(vectors.key2row), data)
    remark = _pruned(name, len(vectors.key2row) - len(rows), len(vectors.key2row))
    owners = np.array(sorted(rows.items()), np.uint64).tobytes() + remark.encode()
    return WordVectors(name, data, lambda word: int(rows.get(strings[word], -1)), owners, remark)


def _owned(rows: Mapping[K, int], vectors: Quantised) -> dict[K, int]:
    """The words with a vector of their own: equal vectors belong to the first word."""
    matrix = np.concatenate(vectors.blocks)
    held: dict[bytes, int] = {}
    first = [held.setdefault(row.tobytes(), k) for k, row in enumerate(matrix)]
    seen: set[int] = set()
    owned = {}
    for word, row in rows.items():
        if first[row] not in seen:
            seen.add(first[row])
            owned[word] = row
    return owned


def _pruned(name: str, n_shared: int, n_words: int) -> str:
    if not n_shared:
        return ""
    return (
        f"{n_shared:,} of the {n_words:,} words of the vectors {name} share the vector of another "
        "word (they were pruned): each of them resembles only itself"
    )


def quantise(vectors: NDArray[Any]) -> Quantised:
    """Unit vectors times 32,767, a block of rows at a time."""
    found = Quantised([], [])
    for begin in range(0, max(1, len(vectors)), _BLOCK):
        data = np.asarray(vectors[begin : begin + _BLOCK], np.float64)
        norms = np.sqrt((data**2).sum(axis=1))
        has_length = np.isfinite(norms) & (norms > 0)
        n, n_dimensions = data.shape
        out = np.zeros((n, -(-n_dimensions // _ALIGNED) * _ALIGNED), np.int16)
        out[has_length, :n_dimensions] = np.rint(
            data[has_length] / norms[has_length, None] * _SCALE
        )
        found.blocks.append(out)
        found.have_length.append(has_length)
    return found


def _read_text(path: Path) -> tuple[list[str], Quantised]:
    """One word per line, then its numbers. word2vec and fastText begin with two counts."""
    words: list[str] = []
    block: list[NDArray[np.float32]] = []
    found = Quantised([], [])
    n_dimensions, n_promised = 0, None

    def close() -> None:
        part = quantise(np.stack(block))
        found.blocks.extend(part.blocks)
        found.have_length.extend(part.have_length)
        block.clear()

    try:
        for number, line in enumerate(_lines(path), 1):
            parts = line.rstrip().split(" ")
            if number == 1 and len(parts) == 2 and all(part.isdecimal() for part in parts):
                n_promised, n_dimensions = map(int, parts)
                continue
            n_dimensions = n_dimensions or len(parts) - 1
            # Some words of GloVe contain spaces; numbers before the vector mean another length.
            is_longer = len(parts) > n_dimensions + 1 and _is_number(parts[-n_dimensions - 1])
            if len(parts) <= n_dimensions or n_dimensions < 2 or (is_longer and n_promised):
                raise InputError(
                    f"{path}, line {number}: not a word and {max(n_dimensions, 2)} numbers; use "
                    "word vectors in the format of GloVe, word2vec or fastText"
                )
            try:
                block.append(np.array(parts[-n_dimensions:], np.float32))
            except ValueError as error:
                raise InputError(f"{path}, line {number}: {error}") from error
            words.append(" ".join(parts[:-n_dimensions]))
            if len(block) == _BLOCK:
                close()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot read word vectors ({error})") from error
    if block:
        close()
    if not words:
        raise InputError(f"{path}: contains no word vectors")
    if n_promised is not None and n_promised != len(words):
        raise InputError(
            f"{path}: should contain {n_promised:,} words but contains {len(words):,}; download it "
            "again"
        )
    return words, found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _lines(path: Path) -> Iterator[str]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="\n") as lines:
        yield from lines
