"""Writes a graph in ONNX's format, with weights passed separately.

A network of known layers is a few hundred nodes, and the protocol buffer messages are simple enough
to write without a library. Field numbers are those of `onnx.proto`:
https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MICROSOFT: Final = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""

_IR_VERSION, _OPSET = 9, 18
_TYPES = {"float32": 1, "uint8": 2, "int32": 6, "int64": 7}
_FLOAT, _INT = 1, 2
_EXTERNAL = 1


class OnnxGraph:
    """A graph that is built node by node, in the order in which they run."""

    def __init__(self) -> None:
        self._parts: list[bytes] = [_text(2, "graph")]
        self.weights: dict[str, NDArray[Any]] = {}
        """By name; they are passed to the session, not copied into the file."""

    def add_input(self, name: str, kind: str, shape: Sequence[int | str]) -> None:
        """`kind` is numpy's name of the type; a named axis may have any length."""
        self._parts.append(_field(11, _value(name, kind, shape)))

    def add_output(self, name: str, kind: str, shape: Sequence[int | str]) -> None:
        self._parts.append(_field(12, _value(name, kind, shape)))

    def add_weight(self, name: str, values: NDArray[Any]) -> str:
        """Returns the name, so that it can be passed to a node."""
        self.weights[name] = np.ascontiguousarray(values)
        where = _field(13, _text(1, "location") + _text(2, "none"))
        head = b"".join(_number(1, n) for n in values.shape) + _number(2, _TYPES[str(values.dtype)])
        self._parts.append(_field(5, head + _text(8, name) + where + _number(14, _EXTERNAL)))
        return name

    def add_constant(self, name: str, values: Sequence[int]) -> str:
        """A list of integers, such as a shape, stored in the file itself."""
        data = struct.pack(f"<{len(values)}q", *values)
        head = _number(1, len(values)) + _number(2, _TYPES["int64"])
        self._parts.append(_field(5, head + _text(8, name) + _field(9, data)))
        return name

    def add(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        domain: str = "",
        **attributes: int | float,
    ) -> str:
        """Add a node; returns the name of its first output."""
        node = b"".join(_text(1, one) for one in inputs)
        node += b"".join(_text(2, one) for one in outputs)
        node += _text(4, operator) + _text(7, domain)
        for name, value in attributes.items():
            if isinstance(value, float):
                body = _key(2, 5) + struct.pack("<f", value) + _number(20, _FLOAT)
            else:
                body = _number(3, value) + _number(20, _INT)
            node += _field(5, _text(1, name) + body)
        self._parts.append(_field(1, node))
        return outputs[0]

    def to_bytes(self) -> bytes:
        """Serialise the graph."""
        opsets = [_text(1, "") + _number(2, _OPSET), _text(1, MICROSOFT) + _number(2, 1)]
        return b"".join(
            [_number(1, _IR_VERSION), _field(7, b"".join(self._parts))]
            + [_field(8, one) for one in opsets]
        )


def _value(name: str, kind: str, shape: Sequence[int | str]) -> bytes:
    axes = b"".join(_field(1, _text(2, n) if isinstance(n, str) else _number(1, n)) for n in shape)
    return _text(1, name) + _field(2, _field(1, _number(1, _TYPES[kind]) + _field(2, axes)))


def _key(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _number(number: int, value: int) -> bytes:
    return _key(number, 0) + _varint(value)


def _text(number: int, value: str) -> bytes:
    return _field(number, value.encode())


def _field(number: int, data: bytes) -> bytes:
    return _key(number, 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    """Seven bits per byte, the lowest first; negative numbers as 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
