"""Word vectors: spaCy's, files of GloVe, word2vec and gensim, or a language model's input layer.

Vectors are kept as unit vectors in 16-bit integers: cosines are then within 0.0001 of the exact
ones, and the same on every machine.
"""

from __future__ import annotations

import gzip
import hashlib
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError
from fabula.models.input_layer import InputLayer

__all__ = ["WordVectors", "open_vectors"]

_SCALE = 32767
_ALIGNED = 16
"""Dimensions are filled up with zeros to a multiple of this, which kernels read at a time."""


class WordVectors:
    """The vectors of words, each looked up as it stands, in lower case, and capitalised.

    `matrix` is int16, shape (n_rows + 1, n_dimensions), unit vectors times 32,767; its last row is
    zeros. It may be replaced by a longer one when words are looked up.
    """

    def __init__(
        self, name: str, vectors: NDArray[Any], find: Callable[[str], int], digest: str = ""
    ) -> None:
        self.matrix, self._has_length = _quantise(vectors)
        digest = digest or hashlib.sha256(self.matrix.tobytes()).hexdigest()
        self.name = f"{name}@{digest[:8]}"
        self._find = find
        self._lock = threading.Lock()

    def rows(self, words: Iterable[str]) -> NDArray[np.int32]:
        """The row of each word, or -1 where it has no vector: int32, shape (n_words,)."""
        with self._lock:
            return np.array([self._row(word) for word in words], np.int32)

    def _row(self, word: str) -> int:
        for form in dict.fromkeys((word, word.lower(), word.capitalize())):
            row = self._find(form)
            if row >= 0 and self._has_length[row]:
                return row
        return -1

    def unit(self, rows: Sequence[int] | NDArray[np.int32]) -> NDArray[np.float32]:
        """Unit vectors of rows: float32, shape (n_rows, n_dimensions)."""
        unit: NDArray[np.float32] = self.matrix[np.asarray(rows)].astype(np.float32) / _SCALE
        return unit


class _LayerVectors(WordVectors):
    """Vectors that are put together from a language model's tokens when a word is looked up."""

    def __init__(self, layer: InputLayer) -> None:
        self._layer = layer
        self._known: dict[str, int] = {}
        super().__init__(layer.name, np.zeros((0, layer.n_dimensions)), self._known.__getitem__,
                         layer.digest)  # fmt: skip

    def rows(self, words: Iterable[str]) -> NDArray[np.int32]:
        words = list(words)
        with self._lock:
            new = list(dict.fromkeys(word for word in words if word not in self._known))
            if new:
                added, has_length = _quantise(self._layer.vectors(new))
                first = len(self.matrix) - 1
                self.matrix = np.concatenate([self.matrix[:-1], added])
                self._known.update(
                    (word, first + k if has_length[k] else -1) for k, word in enumerate(new)
                )
            return np.array([self._known[word] for word in words], np.int32)


def open_vectors(spec: str = "") -> WordVectors:
    """The vectors that a user names: nothing for spaCy's English ones, or a path.

    A path is a gensim `.kv`, a text file of word2vec, fastText or GloVe (`.vec`, `.txt`, also
    `.gz`), or the folder of a Hugging Face model, of which the input layer is read: the vector of a
    word is the mean of its tokens'. Raises `InputError` where it cannot be read, `ModelError` where
    something is not installed.
    """
    if not spec:
        return _spacy_vectors()
    path = Path(spec)
    if not path.exists():
        raise InputError(f"--vectors {spec}: no such file or folder")
    if path.is_dir():
        return _LayerVectors(InputLayer(path))
    if path.suffix == ".kv":
        words, vectors = _read_gensim(path)
    else:
        words, vectors = _read_text(path)
    known = {word: row for row, word in reversed(list(enumerate(words)))}
    return WordVectors(path.name, vectors, lambda word: known.get(word, -1))


def _spacy_vectors() -> WordVectors:
    from fabula.text.pipeline import load_pipeline

    nlp = load_pipeline(())
    vectors, strings = nlp.vocab.vectors, nlp.vocab.strings
    name = f"{nlp.meta['name']}-{nlp.meta['version']}"
    rows = vectors.key2row
    return WordVectors(name, vectors.data, lambda word: int(rows.get(strings[word], -1)))


def _quantise(vectors: NDArray[Any]) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
    """Unit vectors times 32,767, with a row of zeros at the end; and which had any length."""
    data = np.asarray(vectors, np.float64)
    norms = np.sqrt((data**2).sum(axis=1))
    has_length = np.isfinite(norms) & (norms > 0)
    n, n_dimensions = data.shape
    out = np.zeros((n + 1, -(-n_dimensions // _ALIGNED) * _ALIGNED), np.int16)
    out[:-1][has_length, :n_dimensions] = np.rint(
        data[has_length] / norms[has_length, None] * _SCALE
    )
    return out, has_length


def _read_text(path: Path) -> tuple[list[str], NDArray[np.float32]]:
    """A line a word: the word, then its numbers. word2vec and fastText begin with two counts."""
    words: list[str] = []
    vectors: list[NDArray[np.float32]] = []
    n_dimensions = 0
    try:
        for number, line in enumerate(_lines(path), 1):
            parts = line.rstrip().split(" ")
            if number == 1 and len(parts) == 2 and all(part.isdecimal() for part in parts):
                n_dimensions = int(parts[1])
                continue
            n_dimensions = n_dimensions or len(parts) - 1
            if len(parts) <= n_dimensions or n_dimensions < 2:
                raise InputError(
                    f"{path}, line {number}: not a word and {max(n_dimensions, 2)} numbers; give "
                    f"word vectors as GloVe, word2vec or fastText write them"
                )
            try:
                vectors.append(np.array(parts[-n_dimensions:], np.float32))
            except ValueError as error:
                raise InputError(f"{path}, line {number}: {error}") from error
            # Some words of GloVe hold spaces.
            words.append(" ".join(parts[:-n_dimensions]))
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: word vectors cannot be read from it ({error})") from error
    if not words:
        raise InputError(f"{path}: holds no word vectors")
    return words, np.stack(vectors)


def _lines(path: Path) -> Iterator[str]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="\n") as lines:
        yield from lines


class _Attributes:
    """What stands in for any of gensim's classes: it only takes its attributes."""

    def __init__(self, *arguments: Any) -> None: ...

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


class _VectorsUnpickler(pickle.Unpickler):
    """Reads gensim's word vectors, and nothing that could run: a pickle may hold any code."""

    _ARRAYS = frozenset({"_reconstruct", "_frombuffer", "ndarray", "dtype", "scalar"})

    def find_class(self, module: str, name: str) -> Any:
        root = module.partition(".")[0]
        if root == "numpy" and name in self._ARRAYS:
            return super().find_class(module.replace("numpy.core", "numpy._core"), name)
        if (module, name) == ("_codecs", "encode"):
            return super().find_class(module, name)
        if root == "gensim" and name in ("KeyedVectors", "Word2VecKeyedVectors", "Vocab"):
            return _Attributes
        raise pickle.UnpicklingError(f"it holds {module}.{name}, which is no part of word vectors")


def _read_gensim(path: Path) -> tuple[list[str], NDArray[np.float32]]:
    """What gensim's `KeyedVectors.save` writes; large arrays lie beside the file."""
    try:
        with path.open("rb") as file:
            state = _VectorsUnpickler(file, encoding="latin1").load().__dict__
        words = state.get("index_to_key") or state.get("index2word")
        vectors = state.get("vectors")
        if vectors is None:
            vectors = np.load(f"{path}.vectors.npy", allow_pickle=False)
    except (pickle.UnpicklingError, OSError, EOFError, ValueError, AttributeError, ImportError,
            IndexError, TypeError, KeyError) as error:  # fmt: skip
        raise InputError(f"{path}: word vectors cannot be read from it ({error})") from error
    if not isinstance(words, list) or getattr(vectors, "shape", (0,))[0] != len(words):
        raise InputError(f"{path}: its words and vectors do not fit each other")
    return [str(word) for word in words], vectors
