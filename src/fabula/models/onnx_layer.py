"""Word embeddings from an ONNX file, read without running the network.

An ONNX file is a Protocol Buffers message: a sequence of fields, each a number and a value
(onnx.proto, messages ModelProto, GraphProto and TensorProto).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fabula.errors import ModelError

_GRAPH, _INITIALIZER = 7, 5
_DIMS, _NAME, _RAW = 1, 8, 9
_WEIGHTS = "word_embeddings.weight_q", "word_embeddings.weight_scale"


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
