"""Word vectors saved by gensim, read without executing pickled code.

A pickle is a program. Here it can only call a few stand-ins defined below, which hold bytes and
shapes; arrays are built from them afterwards, and only of numbers.
"""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError

__all__ = ["read_gensim"]

_NUMBERS = frozenset(["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"])


class _Attributes:
    """Stands in for gensim's classes: it only accepts their attributes."""

    def __init__(self, *arguments: Any) -> None: ...

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, dict):
            self.__dict__.update(state)


class _Type:
    """Stands in for `numpy.dtype`: a code, and the byte order."""

    def __init__(self, code: Any = "", *_: Any) -> None:
        self.code = code
        self.order = "<"

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, tuple) and len(state) > 1 and state[1] in ("<", ">", "|"):
            self.order = "<" if state[1] == "|" else state[1]

    @property
    def is_number(self) -> bool:
        return isinstance(self.code, str) and self.code in _NUMBERS


class _Kind:
    """Stands in for `numpy.ndarray`, as an argument; it cannot be called."""

    def __init__(self, *_: Any) -> None:
        raise pickle.UnpicklingError("it builds an array from nothing")


class _Array:
    """Stands in for an array: the data to build it from."""

    def __init__(self, *_: Any) -> None:
        self.parts: tuple[Any, Any, Any, Any] | None = None

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, tuple) and len(state) == 5:
            _, shape, kind, is_fortran, data = state
            self.parts = shape, kind, is_fortran, data

    def plain(self) -> NDArray[Any] | None:
        """The array, if it is numeric and its bytes match its shape."""
        if self.parts is None:
            return None
        shape, kind, is_fortran, data = self.parts
        is_shape = isinstance(shape, tuple) and all(
            isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape
        )
        if not (is_shape and isinstance(kind, _Type) and kind.is_number):
            return None
        if not isinstance(data, bytes | bytearray):
            return None
        dtype = np.dtype(kind.order + kind.code)
        if math.prod(shape) * dtype.itemsize != len(data):
            return None
        order = "F" if is_fortran else "C"
        return np.frombuffer(bytes(data), dtype).reshape(shape, order=order)  # type: ignore[call-overload, no-any-return]


def _from_buffer(data: Any, kind: Any, shape: Any, order: Any = "C") -> _Array:
    """Stands in for numpy's function for arrays in its newer pickles."""
    array = _Array()
    array.parts = shape, kind, order == "F", data
    return array


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    """How older pickles represent bytes."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError("it contains text where bytes belong")
    return text.encode("latin-1")


def _nothing(*_: Any) -> None:
    """Stands in for a scalar number; none is needed."""


_STAND_INS: dict[tuple[str, str], Any] = {
    ("_codecs", "encode"): _encode,
    ("numpy", "ndarray"): _Kind,
    ("numpy", "dtype"): _Type,
    **{
        (f"numpy.{core}.multiarray", name): stand_in
        for core in ("core", "_core")
        for name, stand_in in (("_reconstruct", _Array), ("scalar", _nothing))
    },
    **{(f"numpy.{core}.numeric", "_frombuffer"): _from_buffer for core in ("core", "_core")},
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        stand_in = _STAND_INS.get((module, name))
        if stand_in is not None:
            return stand_in
        classes = (
            "KeyedVectors",
            "Word2VecKeyedVectors",
            "FastTextKeyedVectors",
            "Vocab",
            "CompatVocab",
        )
        if module.startswith("gensim.") and name in classes:
            return _Attributes
        raise pickle.UnpicklingError(
            f"it contains {module}.{name}, which does not belong to word vectors"
        )


def read_gensim(path: Path) -> tuple[list[str], NDArray[Any]]:
    """Read the output of gensim's `KeyedVectors.save`: words, vectors (n_words, n_dimensions).

    Large arrays are in files beside it. Raises `InputError`.
    """
    try:
        with path.open("rb") as file:
            state = vars(_Unpickler(file, encoding="latin1").load())
        found = state.get("vectors")
        vectors = found.plain() if isinstance(found, _Array) else None
        if found is None:
            vectors = np.load(f"{path}.vectors.npy", allow_pickle=False)
    except (
        pickle.UnpicklingError,
        OSError,
        EOFError,
        ValueError,
        AttributeError,
        IndexError,
        TypeError,
        KeyError,
        MemoryError,
        OverflowError,
        RecursionError,
    ) as error:
        raise InputError(f"{path}: cannot read word vectors ({error})") from error
    words = state.get("index_to_key") or state.get("index2word")
    if (
        not isinstance(words, list)
        or vectors is None
        or vectors.ndim != 2
        or vectors.shape[0] != len(words)
        or vectors.shape[1] < 2
        or vectors.dtype.kind != "f"
    ):
        raise InputError(
            f"{path}: its words and vectors do not match; save `model.wv` with gensim 4"
        )
    return [str(word) for word in words], vectors
