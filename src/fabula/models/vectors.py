"""Word vectors: a language model's input layer, or text files such as GloVe's.

Vectors are stored as unit vectors in 16-bit integers: cosines are then within 0.0001 of the exact
ones, and the same on every machine.

Vectors are sometimes pruned: many words share the vector of a more frequent one, so that Peter and
Jane would be the same word. A vector belongs to the first word that has it; others count as words
without a vector, and a remark reports how many.

An input layer is read without running its model, from a folder in Hugging Face's format, or from
the sentence encoder that comes with Fabula. That is an ONNX file, a Protocol Buffers message: a
sequence of fields, each a number and a value (onnx.proto, messages ModelProto, GraphProto and
TensorProto).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.core.errors import InputError, ModelError
from fabula.core.packages import needing
from fabula.models.encoder import packaged_encoder

_NAMES = (
    "embed_tokens.weight", "wte.weight", "word_embeddings.weight", "embed_in.weight",
    "tok_embeddings.weight", "shared.weight",
)  # fmt: skip
_GRAPH, _INITIALIZER, _DIMS, _NAME, _RAW = 7, 5, 1, 8, 9
_WEIGHTS = "word_embeddings.weight_q", "word_embeddings.weight_scale"
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


class InputLayer:
    """Vectors of a model's tokens, and of words as the mean of their tokens.

    From a folder it reads `tokenizer.json` and the one matrix of `model.safetensors` or its shard.
    """

    def __init__(self, name: str, tokenizer: Path, table: NDArray[Any]) -> None:
        """`table` holds a vector per token: a float type, shape (n_tokens, n_dimensions)."""
        message = "this needs tokenizers; run: pip install 'fabula[nlp]'"
        library = needing("tokenizers", message, ModelError)
        try:
            self._tokenizer = library.Tokenizer.from_file(str(tokenizer))
        except Exception as error:  # the library has no narrower exception
            raise InputError(f"{tokenizer}: not a tokeniser ({error})") from error
        # A word is tokenised in full, independent of what else is looked up.
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._table = table
        if len(table) < self._tokenizer.get_vocab_size():
            raise InputError(
                f"{tokenizer.parent}: its tokenizer has more tokens than its input layer"
            )
        # The token for unknown input is not the vector of a word.
        unknown = getattr(self._tokenizer.model, "unk_token", None)
        self._unknown = None if unknown is None else self._tokenizer.token_to_id(str(unknown))
        self.name = name
        hasher = hashlib.sha256(tokenizer.read_bytes())
        hasher.update(table.tobytes())
        self.digest = hasher.hexdigest()

    @property
    def n_dimensions(self) -> int:
        return int(self._table.shape[1])

    def vectors(self, words: list[str]) -> NDArray[np.float64]:
        """The mean of each word's tokens in running text: float64, (n_words, n), or zeros."""
        # Within a sentence, a word follows a space.
        spaced = [f" {word}".encode(errors="replace").decode() for word in words]
        encoded = self._tokenizer.encode_batch(spaced, add_special_tokens=False)
        out = np.zeros((len(words), self.n_dimensions))
        for k, tokens in enumerate(encoded):
            # The space before the word may be unknown, but no part of the word itself.
            is_known = all(
                number != self._unknown or end <= 1
                for number, (_, end) in zip(tokens.ids, tokens.offsets, strict=True)
            )
            if tokens.ids and is_known:
                out[k] = self._table[tokens.ids].astype(np.float64).mean(axis=0)
        return out


@cache
def _packaged_layer(name: str, model: Path, tokenizer: Path) -> InputLayer:
    """That of the sentence encoder, read once in a process: nothing changes it."""
    return InputLayer(f"{name}-input", tokenizer, read_onnx_layer(model))


def _read_layer(file: Path) -> NDArray[Any] | None:
    """The matrix of input vectors, float16 to float64, (n_tokens, n_dimensions); None if it is not
    in this file."""
    try:
        with file.open("rb") as raw:
            n = int.from_bytes(raw.read(8), "little")
            if not 2 <= n < 100 << 20:
                raise ValueError("its header has no length")  # noqa: TRY301
            header = json.loads(raw.read(n))
        if not isinstance(header, dict):
            raise ValueError("its header is not a table")  # noqa: TRY004, TRY301 (its content)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file}: not in safetensors format ({error})") from error
    first = 8 + n
    for name, entry in header.items():
        shape = entry.get("shape") if isinstance(entry, dict) else None
        if not (name.endswith(_NAMES) and isinstance(shape, list) and len(shape) == 2):
            continue
        if (kind := _TYPES.get(str(entry.get("dtype")))) is None:
            why = f"has type {entry.get('dtype')}, not a float type"
            raise InputError(f"{file}: its input layer {why}")
        try:
            begin, end = map(int, entry["data_offsets"])
            if not 0 <= begin <= end <= file.stat().st_size - first:
                raise ValueError("it claims to reach beyond the end of the file")  # noqa: TRY301
            n = (end - begin) // np.dtype(kind).itemsize
            table = np.fromfile(file, kind, n, offset=first + begin).reshape(shape)
        except (KeyError, ValueError, TypeError, OSError) as error:
            why = f"its input layer is truncated or damaged ({error})"
            raise InputError(f"{file}: {why}") from error
        # The upper half of a float32.
        is_half = entry["dtype"] == "BF16"
        return (table.astype(np.uint32) << 16).view(np.float32) if is_half else table
    return None


def read_onnx_layer(path: Path) -> NDArray[np.float32]:
    """The word embeddings, 8-bit integers times a scale per row: float32, (n_tokens, n_dimensions).

    Raises `ModelError` if the file holds no such table.
    """
    data = memoryview(path.read_bytes())
    try:
        tensors = {
            name: _tensor(part)
            for graph in _parts(data, _GRAPH)
            for part in _parts(graph, _INITIALIZER)
            for name in _WEIGHTS
            if b"".join(_parts(part, _NAME)).decode().endswith(name)
        }
        (shape, weights), (_, scales) = (tensors[name] for name in _WEIGHTS)
        integers = np.frombuffer(weights, np.int8).reshape(shape)
        table: NDArray[np.float32] = integers * np.frombuffer(scales, "<f4").reshape(-1, 1)
    except (KeyError, ValueError, IndexError, UnicodeDecodeError) as error:
        raise ModelError(
            f"{path}: cannot read its word embeddings ({error!r}); install the package again"
        ) from error
    return table


def _tensor(part: memoryview) -> tuple[list[int], memoryview]:
    shape = []
    for number, value in _fields(part):
        if number == _DIMS and isinstance(value, int):
            shape.append(value)
        elif number == _DIMS and not isinstance(value, int):
            at = 0
            while at < len(value):
                size, at = _varint(value, at)
                shape.append(size)
    (raw,) = _parts(part, _RAW)
    return shape, raw


def _parts(data: memoryview, number: int) -> list[memoryview]:
    return [value for n, value in _fields(data) if n == number and not isinstance(value, int)]


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Each field's number and value: an integer, or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if key & 7 == 2:
            size, at = _varint(data, at)
        elif key & 7 in (1, 5):
            size = 8 if key & 7 == 1 else 4
        else:
            raise ValueError("not in ONNX format")
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """The integer that begins at `at`, and where the next value begins."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


_Rows = tuple[NDArray[np.int16], NDArray[np.bool_]]
"""Unit vectors in 16 bits by row, and which rows had nonzero length."""

_SCALE = 32767
_BLOCK = 8192
_ALIGNED = 16
"""Dimensions are padded with zeros to a multiple of this, which kernels read at a time."""


class WordVectors:
    """The vectors of words, looked up as written, in lower case, and capitalised.

    `matrix`: int16, unit vectors times 32,767 by row, the last one zeros; look-ups may lengthen it.
    """

    def __init__(
        self, name: str, vectors: _Rows, find: Callable[[str], int], owners: bytes, remark: str = ""
    ) -> None:
        """`find` gives a word's row, or -1; `owners` identifies which word owns which row."""
        self.remark = remark
        """What a reader of the matches should know; may be empty."""
        matrix, self._has_length = vectors
        self.matrix = np.concatenate([matrix, np.zeros_like(matrix[:1])])
        digest = hashlib.sha256(owners)
        digest.update(self.matrix.tobytes())
        self.name = f"{name}@{digest.hexdigest()[:8]}"
        self._find = find
        self._lock = threading.Lock()

    def rows(self, words: Iterable[str]) -> NDArray[np.int32]:
        """The row of each word, or -1 if it has no vector: int32, shape (n_words,)."""
        rows = []
        for word in words:
            forms = map(self._find, dict.fromkeys((word, word.lower(), word.capitalize())))
            rows.append(next((row for row in forms if row >= 0 and self._has_length[row]), -1))
        return np.array(rows, np.int32)

    def unit(self, rows: Sequence[int] | NDArray[np.int32]) -> NDArray[np.float32]:
        """Unit vectors of rows: float32, shape (n_rows, n_dimensions)."""
        unit: NDArray[np.float32] = self.matrix[np.asarray(rows)].astype(np.float32) / _SCALE
        return unit


class _LayerVectors(WordVectors):
    """Vectors computed from a language model's tokens when a word is looked up."""

    def __init__(self, layer: InputLayer) -> None:
        self._layer = layer
        self._known: dict[str, int] = {}
        empty = quantise(np.zeros((1, layer.n_dimensions)))
        super().__init__(layer.name, empty, self._known.__getitem__, layer.digest.encode())
        self._n_rows = 0

    def rows(self, words: Iterable[str]) -> NDArray[np.int32]:
        words = list(words)
        with self._lock:
            new = list(dict.fromkeys(word for word in words if word not in self._known))
            if new:
                rows, known = quantise(self._layer.vectors(new))
                first, end = self._n_rows, self._n_rows + len(rows)
                if end >= len(self.matrix):
                    # Double the size, so that adding stays cheap; the last row is never assigned.
                    longer = np.zeros((2 * end + 1, self.matrix.shape[1]), np.int16)
                    longer[:first] = self.matrix[:first]
                    self.matrix = longer
                self.matrix[first:end] = rows
                self._n_rows = end
                self._known |= {word: first + k if known[k] else -1 for k, word in enumerate(new)}
            return np.array([self._known[word] for word in words], np.int32)


def open_vectors(spec: str = "") -> WordVectors:
    """Open the vectors of a path, or by default those of the sentence encoder's input layer.

    A path is a text file of word2vec, fastText or GloVe (`.vec`, `.txt`, also `.gz`; gensim writes
    one by `save_word2vec_format`), or the folder of a Hugging Face model, whose input layer is
    read: the vector of a word is the mean of its tokens'. Raises `InputError` if it cannot be read,
    `ModelError` if something is not installed.
    """
    if not spec:
        return _LayerVectors(_packaged_layer(*packaged_encoder()))
    path = Path(spec)
    if not path.exists():
        raise InputError(f"`vectors` {spec}: no such file or folder")
    if path.is_dir():
        if not (path / "tokenizer.json").is_file():
            raise InputError(f"{path}: no tokenizer.json; name the folder of a complete model")
        for file in sorted(path.glob("*.safetensors")):
            if (table := _read_layer(file)) is not None:
                name = path.resolve().name
                return _LayerVectors(InputLayer(name, path / "tokenizer.json", table))
        raise InputError(
            f"{path}: no .safetensors file with an input layer (a matrix whose name ends in "
            f"{' or '.join(_NAMES[:3])}); save the model with safetensors"
        )
    words, found = _read_text(path)
    known: dict[str, int] = {}
    for row, word in enumerate(words):
        known.setdefault(word, row)
    owned, remark = _owned(path.name, known, found[0])
    # Exactly as in the file, where each word has its own.
    owners = "\n".join(words).encode(errors="replace") + remark.encode()
    return WordVectors(path.name, found, lambda word: owned.get(word, -1), owners, remark)


def _owned(
    name: str, rows: Mapping[str, int], matrix: NDArray[np.int16]
) -> tuple[dict[str, int], str]:
    """The words with a vector of their own, as equal vectors belong to the first word; a remark."""
    first_row: dict[bytes, int] = {}
    first = [first_row.setdefault(row.tobytes(), k) for k, row in enumerate(matrix)]
    owners: dict[int, tuple[str, int]] = {}
    for word, row in rows.items():
        owners.setdefault(first[row], (word, row))
    owned = dict(owners.values())
    if not (n_shared := len(rows) - len(owned)):
        return owned, ""
    return owned, (
        f"{n_shared:,} of the {len(rows):,} words of the vectors {name} share the vector of "
        "another word (they were pruned): each of them resembles only itself"
    )


def quantise(vectors: NDArray[Any]) -> _Rows:
    """Unit vectors times 32,767, a block of rows at a time."""
    n, n_dimensions = vectors.shape
    matrix = np.zeros((n, -(-n_dimensions // _ALIGNED) * _ALIGNED), np.int16)
    has_length = np.zeros(n, np.bool_)
    for begin in range(0, n, _BLOCK):
        part = slice(begin, begin + _BLOCK)
        data = np.asarray(vectors[part], np.float64)
        norms = np.sqrt((data**2).sum(axis=1))
        has_length[part] = known = np.isfinite(norms) & (norms > 0)
        matrix[part][known, :n_dimensions] = np.rint(data[known] / norms[known, None] * _SCALE)
    return matrix, has_length


def _read_text(path: Path) -> tuple[list[str], _Rows]:
    """One word per line, then its numbers. word2vec and fastText begin with two counts."""
    words: list[str] = []
    block: list[NDArray[np.float32]] = []
    blocks: list[_Rows] = []
    n_dimensions, n_promised = 0, None
    opened = gzip.open if path.suffix == ".gz" else open

    def close() -> None:
        blocks.append(quantise(np.stack(block)))
        block.clear()

    try:
        with opened(path, "rt", encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                parts = line.rstrip().split(" ")
                if number == 1 and len(parts) == 2 and all(part.isdecimal() for part in parts):
                    n_promised, n_dimensions = map(int, parts)
                    continue
                n_dimensions = n_dimensions or len(parts) - 1
                # Some words of GloVe contain spaces; numbers before the vector mean another length.
                is_longer = len(parts) > n_dimensions + 1 and _is_number(parts[-n_dimensions - 1])
                if len(parts) <= n_dimensions or n_dimensions < 2 or (is_longer and n_promised):
                    raise InputError(
                        f"{path}, line {number}: not a word and {max(n_dimensions, 2)} numbers; "
                        "use word vectors in the format of GloVe, word2vec or fastText"
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
    matrices, have_length = zip(*blocks, strict=True)
    return words, (np.concatenate(matrices), np.concatenate(have_length))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
