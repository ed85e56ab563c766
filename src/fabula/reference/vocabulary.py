"""The words of a shard, and other strings, in their form on disk."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.errors import CorpusError
from fabula.kernels.strings import find_strings

_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '([<|][biuf][0-9])', 'fortran_order': False, 'shape': \(([0-9, ]*)\), \} *\n"
)


@dataclass(frozen=True, slots=True)
class Strings:
    """Many strings as concatenated bytes: uint8 (n_bytes,), and int64 (n_strings + 1,) offsets."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, strings: list[str]) -> Strings:
        encoded = [string.encode(errors="replace") for string in strings]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(e) for e in encoded], out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets)

    @classmethod
    def open(cls, folder: Path, name: str, n_strings: int) -> Strings:
        """Raises `CorpusError` if a file is missing or damaged."""
        data = map_bytes(folder / f"{name}.bin")
        return cls(data, map_array(folder / f"{name}.npy", np.int64, (n_strings + 1,)))

    def save(self, folder: Path, name: str) -> None:
        (folder / f"{name}.bin").write_bytes(self.data.tobytes())
        np.save(folder / f"{name}.npy", self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, k: int) -> str:
        return self.data[self.offsets[k] : self.offsets[k + 1]].tobytes().decode(errors="replace")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A shard's words, the k-th with id k + 1, and their alphabetical order: uint32 (n_words,)."""

    words: Strings
    order: NDArray[np.uint32]

    @classmethod
    def of(cls, words: list[str]) -> Vocabulary:
        order = sorted(range(len(words)), key=words.__getitem__)
        return cls(Strings.of(words), np.array(order, np.uint32))

    @classmethod
    def open(cls, folder: Path, n_words: int) -> Vocabulary:
        """Raises `CorpusError` if a file is missing or damaged."""
        order = map_array(folder / "words_sorted.npy", np.uint32, (n_words,))
        return cls(Strings.open(folder, "words", n_words), order)

    def save(self, folder: Path) -> None:
        self.words.save(folder, "words")
        np.save(folder / "words_sorted.npy", self.order)

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, k: int) -> str:
        return self.words[k]

    def find(self, wanted: list[str]) -> NDArray[np.uint32]:
        """The token id of each word, counted from 1, or 0 if unknown: uint32 (n_wanted,)."""
        other = Strings.of(wanted)
        found: NDArray[np.uint32] = find_strings(
            self.words.data,
            self.words.offsets,
            self.order,
            plain_array(other.data),
            plain_array(other.offsets),
        )
        return found


def map_array(path: Path, kind: type[np.generic], shape: tuple[int | None, ...]) -> NDArray[Any]:
    """Map an array on disk, of this type and shape; None stands for any length.

    Raises `CorpusError` that names the file if it is missing, or contains anything else.
    """
    try:
        mapped = _mapped(path)
    except (OSError, ValueError, TypeError, OverflowError, MemoryError) as error:
        raise CorpusError(
            f"{path}: missing or damaged ({error}); run `fabula reference info --check`"
        ) from error
    fits = mapped.ndim == len(shape) and all(
        wanted in (None, found) for wanted, found in zip(shape, mapped.shape, strict=True)
    )
    if mapped.dtype != np.dtype(kind) or not fits or not mapped.flags.c_contiguous:
        raise CorpusError(
            f"{path}: damaged, or from another corpus (its type and sizes do not match); run "
            "`fabula reference info --check`"
        )
    return plain_array(mapped)


def _mapped(path: Path) -> NDArray[Any]:
    """Map an array that `np.save` wrote.

    NumPy parses the header as Python code. Where threads do so at the same time, CPython 3.11 can
    fail with a `SystemError` (python/cpython#106905).
    """
    with path.open("rb") as file:
        begin = file.read(len(_MAGIC) + 2)
        header = file.read(int.from_bytes(begin[len(_MAGIC) :], "little"))
        place = file.tell()
    found = _HEADER.fullmatch(header)
    if not begin.startswith(_MAGIC) or found is None:
        raise ValueError("not an array of NumPy")
    shape = tuple(int(one) for one in found[2].split(b",") if one.strip())
    return np.memmap(path, found[1].decode(), "r", place, shape)


def map_bytes(path: Path) -> NDArray[np.uint8]:
    """Map a file's bytes. Raises `CorpusError`."""
    try:
        # An empty file cannot be mapped.
        data = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.empty(0, np.uint8)
    except (OSError, ValueError) as error:
        raise CorpusError(
            f"{path}: missing ({error}); run `fabula reference info --check`"
        ) from error
    return plain_array(data)


def plain_array(array: NDArray[Any]) -> NDArray[Any]:
    """The same memory as a read-only plain array, so that each kernel is compiled only once."""
    view = np.asarray(array)
    view.flags.writeable = False
    return view
