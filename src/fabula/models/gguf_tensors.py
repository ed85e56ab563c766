"""The tensors of a GGUF file: unpacked, or repacked for another runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.models.gguf_layout import F32, Q4_1, Q8_0, Tensor

# Rows unpacked at a time: 16 MiB of float32 for a thousand columns.
_UNPACKED_ROWS = 4096
_BLOCK = 32
_Q8_0 = np.dtype([("scale", "<f2"), ("numbers", "i1", _BLOCK)])
_Q4_1 = np.dtype([("scale", "<f2"), ("least", "<f2"), ("pairs", "<u2", _BLOCK // 4)])


def unpacked(path: Path, tensor: Tensor) -> NDArray[np.float32]:
    """A tensor in float32, slowest axis first; the file's own order is the reverse.

    Raises `ImportError` if the library `gguf` is needed, `NotImplementedError` for a type that it
    cannot unpack either.
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
        _unpack(np.ascontiguousarray(packed[part]), tensor.kind, rows[part])
    return whole


def _unpack(packed: NDArray[np.uint8], kind: int, out: NDArray[np.float32]) -> None:
    if kind == Q8_0:
        blocks = packed.view(_Q8_0)
        scales = blocks["scale"].astype(np.float32)[..., None]
        np.multiply(blocks["numbers"], scales, out=out.reshape(*blocks.shape, _BLOCK))
        return
    import gguf

    out[:] = gguf.dequantize(packed, gguf.GGMLQuantizationType(kind))


def four_bit_blocks(
    path: Path, tensor: Tensor
) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.float32]]:
    """A matrix of type Q4_1: its integers q, and s and m of each block, where a weight is s q + m.

    uint8, shape (n_rows, n_blocks, 16), two integers per byte, the first in the lower half;
    float32, shape (n_rows, n_blocks). The file has the first 16 of a block in lower halves, and the
    other 16 in upper ones.
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
    return (
        packed.reshape(n_rows, n_blocks, _BLOCK // 2),
        blocks["scale"].astype(np.float32),
        blocks["least"].astype(np.float32),
    )
