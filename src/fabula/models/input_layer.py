"""The input layer of a language model, read without running the model.

From a folder in Hugging Face's format, or from the sentence encoder that comes with Fabula. That is
an ONNX file, a Protocol Buffers message: a sequence of fields, each a number and a value
(onnx.proto, messages ModelProto, GraphProto and TensorProto).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError, ModelError
from fabula.models.encoder import packaged_encoder
from fabula.packages import needing

_NAMES = (
    "embed_tokens.weight", "wte.weight", "word_embeddings.weight", "embed_in.weight",
    "tok_embeddings.weight", "shared.weight",
)  # fmt: skip
_GRAPH, _INITIALIZER, _DIMS, _NAME, _RAW = 7, 5, 1, 8, 9
_WEIGHTS = "word_embeddings.weight_q", "word_embeddings.weight_scale"
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


class InputLayer:
    """Vectors of a model's tokens, and of words as the mean of their tokens.

    From a folder it reads `tokenizer.json` and the one matrix of `model.safetensors` (or of the
    shard containing it).
    """

    def __init__(self, name: str, tokenizer: Path, table: NDArray[Any]) -> None:
        """`table` holds a vector per token: a float type, shape (n_tokens, n_dimensions)."""
        message = "this needs tokenizers; run: pip install 'fabula[nlp]'"
        library = needing("tokenizers", message, ModelError)
        if not tokenizer.is_file():
            raise InputError(
                f"{tokenizer.parent}: no tokenizer.json; name the folder of a complete model"
            )
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

    @classmethod
    def of_folder(cls, folder: Path) -> Self:
        """Raises `InputError` if the folder holds no model."""
        if not (folder / "tokenizer.json").is_file():
            raise InputError(f"{folder}: no tokenizer.json; name the folder of a complete model")
        return cls(folder.resolve().name, folder / "tokenizer.json", _read_layer(folder))

    @classmethod
    def packaged(cls) -> Self:
        """That of the sentence encoder. Raises `ModelError` if it is not installed."""
        name, model, tokenizer = packaged_encoder()
        return cls(f"{name}-input", tokenizer, read_onnx_layer(model))

    @property
    def n_dimensions(self) -> int:
        return int(self._table.shape[1])

    def vectors(self, words: list[str]) -> NDArray[np.float64]:
        """The mean of each word's tokens as they occur in running text: float64, (n_words, n).

        Zeros for a word that the tokeniser does not know.
        """
        encoded = self._tokenizer.encode_batch(
            # Within a sentence, a word follows a space.
            [f" {word}".encode(errors="replace").decode() for word in words],
            add_special_tokens=False,
        )
        out = np.zeros((len(words), self.n_dimensions))
        for k, tokens in enumerate(encoded):
            # The space before the word may be unknown, but no part of the word itself.
            is_known = all(
                one != self._unknown or end <= 1
                for one, (_, end) in zip(tokens.ids, tokens.offsets, strict=True)
            )
            if tokens.ids and is_known:
                out[k] = self._table[tokens.ids].astype(np.float64).mean(axis=0)
        return out


def _read_layer(folder: Path) -> NDArray[Any]:
    """The matrix of input vectors: float16 to float64, shape (n_tokens, n_dimensions)."""
    files = sorted(folder.glob("*.safetensors"))
    for file in files:
        try:
            header, first = _read_header(file)
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{file}: not in safetensors format ({error})") from error
        for name, entry in header.items():
            shape = entry.get("shape")
            if name.endswith(_NAMES) and isinstance(shape, list) and len(shape) == 2:
                return _read_matrix(file, entry, first)
    raise InputError(
        f"{folder}: no .safetensors file with an input layer (a matrix whose name ends in "
        f"{' or '.join(_NAMES[:3])}); save the model with safetensors"
    )


def _read_header(file: Path) -> tuple[dict[str, Any], int]:
    with file.open("rb") as raw:
        n = int.from_bytes(raw.read(8), "little")
        if not 2 <= n < 100 << 20:
            raise ValueError("its header has no length")
        header = json.loads(raw.read(n))
    if not isinstance(header, dict):
        raise ValueError("its header is not a table")  # noqa: TRY004 (a file's content)
    return {k: v for k, v in header.items() if isinstance(v, dict)}, 8 + n


def _read_matrix(file: Path, entry: dict[str, Any], first: int) -> NDArray[Any]:
    kind = _TYPES.get(str(entry.get("dtype")))
    if kind is None:
        raise InputError(f"{file}: its input layer has type {entry.get('dtype')}, not a float type")
    try:
        begin, end = map(int, entry["data_offsets"])
        if not 0 <= begin <= end <= file.stat().st_size - first:
            raise ValueError("it claims to reach beyond the end of the file")  # noqa: TRY301
        n = (end - begin) // np.dtype(kind).itemsize
        flat = np.fromfile(file, kind, n, offset=first + begin)
        table = flat.reshape(entry["shape"])
    except (KeyError, ValueError, TypeError, OSError) as error:
        raise InputError(f"{file}: its input layer is truncated or damaged ({error})") from error
    if entry["dtype"] == "BF16":
        # The upper half of a float32.
        return (table.astype(np.uint32) << 16).view(np.float32)
    return table


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
    """Shape and bytes."""
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
    """The values of a field with bytes."""
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
