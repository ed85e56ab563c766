"""A GGUF file: its settings, its vocabulary, and its tensors, unpacked or for another runtime.

The gguf library creates an array for each of the 100,000 entries of a vocabulary, which takes
seconds; here strings are skipped, and read only when requested. The format:
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import functools
import mmap
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.core.errors import ModelError

F32, Q4_1, Q8_0 = 0, 3, 8
"""Tensor types, by the format's number: floats, and blocks of 32 integers of 4 and 8 bits."""
# Numbers per block, and its bytes.
_BLOCKS = {F32: (1, 4), Q4_1: (32, 20), Q8_0: (32, 34)}

# How each type of value is packed, by the format's number.
_PACKED = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
_STRING, _LIST = 8, 9
_VERSIONS = (2, 3)
_ALIGNMENT = 32

# Rows unpacked at a time: 16 MiB of float32 for a thousand columns.
_UNPACKED_ROWS = 4096
_BLOCK = 32
_Q8_0 = np.dtype([("scale", "<f2"), ("numbers", "i1", _BLOCK)])
_Q4_1 = np.dtype([("scale", "<f2"), ("least", "<f2"), ("pairs", "<u2", _BLOCK // 4)])


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a file: its axes in the file's order, fastest first."""

    shape: tuple[int, ...]
    offset: int
    n_bytes: int
    kind: int
    """The format's number for its packing."""


@dataclass(frozen=True, slots=True)
class ListPlace:
    """Where the entries of a list begin, their type, and their number."""

    offset: int
    kind: int
    length: int


@dataclass(frozen=True, slots=True)
class Layout:
    """A file's description of its model. For lists among the settings, only their length."""

    settings: dict[str, Any]
    tensors: dict[str, Tensor]
    lists: dict[str, ListPlace]


def read_layout(path: Path) -> Layout:
    """The layout of a file. Raises `ModelError` for one that is big-endian or of another version,
    `ValueError` for a damaged one, `ImportError` if a tensor type requires the library `gguf`."""
    state = path.stat()
    return _read_layout(path, state.st_mtime_ns, state.st_size)


# Cached for all who open a model; a file that was rewritten is read again.
@functools.lru_cache(4)
def _read_layout(path: Path, mtime_ns: int, n_bytes: int) -> Layout:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            return _layout(path, _Header(data))
        except struct.error as error:
            raise ValueError(f"its header is truncated: {error}") from error
        except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
            raise ValueError(f"its header is damaged: {error!r}") from error


def read_list(path: Path, place: ListPlace) -> list[Any]:
    """The entries of a list: strings, or numbers."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if place.kind != _STRING:
            packed = f"<{place.length}{_PACKED[place.kind]}"
            return list(struct.unpack_from(packed, data, place.offset))
        length, at = struct.Struct("<Q").unpack_from, place.offset
        strings = []
        for _ in range(place.length):
            end = at + 8 + length(data, at)[0]
            strings.append(data[at + 8 : end].decode())
            at = end
        return strings


def _layout(path: Path, header: _Header) -> Layout:
    if header.take(4) != b"GGUF":
        raise ValueError("it does not begin with GGUF")
    version = header.number("I")
    if version not in _VERSIONS:
        if version & 0xFFFF == 0:
            raise ModelError(f"{path}: is big-endian; only little-endian GGUF files are supported")
        raise ModelError(f"{path}: is GGUF version {version}; only versions 2 and 3 are supported")
    n_tensors, n_settings = header.number("Q"), header.number("Q")
    settings = {header.string(): header.value(header.number("I")) for _ in range(n_settings)}
    entries = []
    for _ in range(n_tensors):
        name = header.string()
        shape = tuple(header.number("Q") for _ in range(header.number("I")))
        entries.append((name, shape, header.number("I"), header.number("Q")))
    alignment = settings.get("general.alignment", _ALIGNMENT)
    first = -(-header.place // alignment) * alignment
    tensors = {}
    for name, shape, kind, offset in entries:
        if kind in _BLOCKS:
            per_block, block_bytes = _BLOCKS[kind]
        else:
            import gguf

            sizes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(kind)]
            per_block, block_bytes = map(int, sizes)
        n_bytes = prod(shape) // per_block * block_bytes
        tensors[name] = Tensor(shape, first + offset, n_bytes, kind)
        if first + offset + n_bytes > header.n_bytes:
            raise ValueError(f"it ends before the last byte of {name}")
    lists = {name: value for name, value in settings.items() if isinstance(value, ListPlace)}
    counted = {name: place.length for name, place in lists.items()}
    return Layout({**settings, **counted}, tensors, lists)


class _Header:
    """Reads the bytes of a file value by value. Raises `struct.error` at their end."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self.n_bytes = len(data)
        self.place = 0

    def number(self, packed: str) -> Any:
        (value,) = struct.unpack_from(f"<{packed}", self._data, self.place)
        self.place += struct.calcsize(f"<{packed}")
        return value

    def take(self, n_bytes: int) -> bytes:
        if n_bytes > self.n_bytes - self.place:
            raise struct.error(f"{n_bytes} bytes at {self.place}")
        self.place += n_bytes
        return self._data[self.place - n_bytes : self.place]

    def string(self) -> str:
        return self.take(self.number("Q")).decode()

    def value(self, kind: int) -> Any:
        """A setting's value; for a list, its place."""
        if kind == _STRING:
            return self.string()
        if kind != _LIST:
            return self.number(_PACKED[kind])
        kind, n = self.number("I"), self.number("Q")
        place = ListPlace(self.place, kind, n)
        if kind == _STRING:
            length = struct.Struct("<Q").unpack_from
            for _ in range(n):
                self.place += 8 + length(self._data, self.place)[0]
        else:
            self.place += n * struct.calcsize(f"<{_PACKED[kind]}")
        return place


def unpacked(path: Path, tensor: Tensor) -> NDArray[np.float32]:
    """A tensor in float32, slowest axis first; the file's own order is the reverse.

    Raises `ImportError` if the library `gguf` is needed, `NotImplementedError` if it cannot either.
    """
    shape = tensor.shape[::-1]
    if tensor.kind == F32:
        return np.fromfile(path, "<f4", tensor.n_bytes // 4, offset=tensor.offset).reshape(shape)
    whole = np.empty(shape, np.float32)
    n_rows = len(whole) if whole.ndim > 1 else 1
    packed = np.memmap(path, np.uint8, "r", tensor.offset, (n_rows, tensor.n_bytes // n_rows))
    rows = whole.reshape(n_rows, -1)
    for start in range(0, n_rows, _UNPACKED_ROWS):
        part = slice(start, start + _UNPACKED_ROWS)
        block, out = np.ascontiguousarray(packed[part]), rows[part]
        if tensor.kind == Q8_0:
            blocks = block.view(_Q8_0)
            scales = blocks["scale"].astype(np.float32)[..., None]
            np.multiply(blocks["numbers"], scales, out=out.reshape(*blocks.shape, _BLOCK))
        else:
            import gguf

            out[:] = gguf.dequantize(block, gguf.GGMLQuantizationType(tensor.kind))
    return whole


def four_bit_blocks(
    path: Path, tensor: Tensor
) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.float32]]:
    """A matrix of type Q4_1: its integers q, and s and m of each block, where a weight is s q + m.

    uint8, shape (n_rows, n_blocks, 16), two integers per byte, the first in the lower half;
    float32, shape (n_rows, n_blocks). In the file, lower halves hold a block's first 16.
    """
    if tensor.kind != Q4_1:
        raise ValueError(f"of kind {tensor.kind}, not {Q4_1}")
    n_columns, n_rows = tensor.shape
    n_blocks = n_columns // _BLOCK
    data: Any = np.fromfile(path, _Q4_1, n_rows * n_blocks, offset=tensor.offset)
    blocks = data.reshape(n_rows, n_blocks)
    pairs = blocks["pairs"]
    packed = np.empty((n_rows, n_blocks, 2, _BLOCK // 4), np.uint8)
    # For two adjacent bytes, the lower halves and then the upper ones.
    packed[:, :, 0] = (pairs & 0x000F) | ((pairs >> 4) & 0x00F0)
    packed[:, :, 1] = ((pairs >> 4) & 0x000F) | ((pairs >> 8) & 0x00F0)
    scale, least = (blocks[name].astype(np.float32) for name in ("scale", "least"))
    return packed.reshape(n_rows, n_blocks, _BLOCK // 2), scale, least
