"""Bit-packed integers, token ids in two bytes, and the table of words that they stand for.

Packed integers are stored one after the other in 64-bit words, lowest bits first, and may straddle
two words; one more word follows the last, so that reading never goes past the end.

Token ids are assigned by descending frequency, so most are small. Ids below `RARE` are stored
directly in 16 bits; all others are stored as `RARE`, with the actual ids in an array of their own.
An id's index in that array is found by counting within a block, as in the directly addressable
codes of Brisaboa, Ladra and Navarro (2013), with two levels.

Records of arrays are for Python: a compiled function takes the arrays singly (`*tokens`), since
unpacking a record costs it more than reading from memory.

Prefetching pages of a memory-mapped file.

A lock-step search requests the pages of all its positions before it reads the first. The disk then
serves many reads in parallel instead of one after the other.
"""

from __future__ import annotations

import mmap
from typing import Any, NamedTuple, TypeVar

import numba as nb
import numpy as np
from numba import types
from numpy.typing import NDArray

RARE = 65_535
"""Stands for every token id at least this large."""
BLOCK = 256
"""Tokens per block in which rare ones are counted."""
A = TypeVar("A", bound=np.ndarray[Any, Any])
_U1, _U6, _U63 = np.uint64(1), np.uint64(6), np.uint64(63)


class Packed(NamedTuple):
    """`n_values` numbers of `n_bits` bits each."""

    words: NDArray[np.uint64]
    n_bits: int
    n_values: int


class Tokens(NamedTuple):
    """Token ids."""

    codes: NDArray[np.uint16]
    """(n_tokens,): the id, or `RARE`."""
    rare_before: NDArray[np.uint32]
    """(n_blocks,): the number of rare ids before each block."""
    rare_ids: NDArray[np.uint32]
    """(n_rare,): the rare ids in order."""


def fixed(array: A) -> A:
    """The array, which can no longer be written to.

    Kernels are compiled for arrays that can be written to and once more for those that cannot, as
    those of a file and those that came over a network; what is only read should be of one kind.
    """
    array.flags.writeable = False
    return array


def bits_below(n: int) -> int:
    """The bits needed to store the numbers 0 to n - 1; at least 1."""
    return max(1, (n - 1).bit_length())


def n_packed_words(n_values: int, n_bits: int) -> int:
    """The number of 64-bit words needed for `n_values` numbers, including the extra last one."""
    return (n_values * n_bits + 63) // 64 + 1


def pack(values: NDArray[np.generic], n_bits: int) -> Packed:
    """Pack numbers below 2**n_bits, n_bits at most 64."""
    words = np.zeros(n_packed_words(len(values), n_bits), np.uint64)
    put_all(words, n_bits, values)
    return Packed(fixed(words), n_bits, len(values))


@nb.njit(inline="always")
def put(words, n_bits, k, value):
    """Set the k-th number, which must still be 0."""
    at = np.uint64(k) * np.uint64(n_bits)
    word = at >> _U6
    shift = at & _U63
    words[word] |= np.uint64(value) << shift
    # Two shifts, since a shift by 64 is undefined.
    words[word + _U1] |= (np.uint64(value) >> _U1) >> (_U63 - shift)


@nb.njit(inline="always")
def unpack(words, n_bits, k):
    """The k-th number: uint64."""
    at = np.uint64(k) * np.uint64(n_bits)
    word = at >> _U6
    shift = at & _U63
    bits = words[word] >> shift | (words[word + _U1] << _U1) << (_U63 - shift)
    # As in `put`: a mask of all 64 bits in two shifts.
    return bits & ((_U1 << np.uint64(n_bits - 1) << _U1) - _U1)


@nb.njit(nogil=True, cache=True)
def put_all(words, n_bits, values):
    """Set numbers, which must still be 0, starting with the first."""
    for k in range(len(values)):
        put(words, n_bits, k, values[k])


def read_packed(packed: Packed, begin: int, end: int) -> NDArray[np.uint32]:
    """The numbers from `begin` up to `end`, exclusive, below 2**32: uint32, (end - begin,).

    Raises `IndexError` if they are out of range.
    """
    if not 0 <= begin <= end <= packed.n_values:
        raise IndexError(f"{begin} to {end} of {packed.n_values} numbers")
    values = np.empty(end - begin, np.uint32)
    unpack_all(packed.words, packed.n_bits, begin, values)
    return values


@nb.njit(nogil=True, cache=True)
def unpack_all(words, n_bits, begin, values):
    """Fill `values` with the numbers starting at `begin`."""
    for k in range(len(values)):
        values[k] = unpack(words, n_bits, begin + k)


def pack_tokens(tokens: NDArray[np.uint32]) -> Tokens:
    """Pack token ids in two bytes each, with the rare ones stored separately."""
    codes = np.empty(len(tokens), np.uint16)
    np.minimum(tokens, RARE, out=codes, casting="unsafe")
    places = np.flatnonzero(codes == RARE)
    rare_before = np.searchsorted(places, np.arange(0, len(tokens), BLOCK)).astype(np.uint32)
    return Tokens(fixed(codes), fixed(rare_before), fixed(tokens[places]))


@nb.njit(nogil=True, cache=True)
def rare_token(codes, rare_before, rare_ids, place):
    """The token id at a place, below `len(codes)`, whose code is `RARE`: uint32."""
    block = place // BLOCK
    k = np.int64(rare_before[block])
    for before in range(block * BLOCK, place):
        k += codes[before] == RARE
    # Damaged files may have more places than ids.
    return rare_ids[k] if k < len(rare_ids) else np.uint32(RARE)


def read_tokens(tokens: Tokens, begin: int, end: int) -> NDArray[np.uint32]:
    """The token ids from `begin` up to `end`, exclusive: uint32, shape (end - begin,).

    Raises `IndexError` if they are out of range.
    """
    if not 0 <= begin <= end <= len(tokens.codes):
        raise IndexError(f"{begin} to {end} of {len(tokens.codes)} tokens")
    ids = np.empty(end - begin, np.uint32)
    fill_tokens(*tokens, begin, ids)
    return ids


@nb.njit(nogil=True, cache=True)
def fill_tokens(codes, rare_before, rare_ids, begin, ids):
    """Fill `ids` with the token ids starting at `begin`."""
    for k in range(len(ids)):
        code = codes[begin + k]
        ids[k] = code if code < RARE else rare_token(codes, rare_before, rare_ids, begin + k)


_PAGE_BYTES = np.uint64(mmap.PAGESIZE)
_IN_PAGE = np.uint64(mmap.PAGESIZE - 1)

if hasattr(mmap, "MADV_WILLNEED"):
    _WILLNEED = int(mmap.MADV_WILLNEED)
    _madvise = types.ExternalFunction("madvise", types.intc(types.uintp, types.uintp, types.intc))

    @nb.njit(inline="always")
    def ask_for(array, k):
        """Request the page with the k-th value of a mapped array, without waiting for it."""
        place = np.uint64(array.ctypes.data) + np.uint64(k) * np.uint64(array.itemsize)
        _madvise(place & ~_IN_PAGE, _PAGE_BYTES, _WILLNEED)

else:  # pragma: no cover

    @nb.njit(inline="always")
    def ask_for(array, k):
        """Do nothing: this system cannot prefetch, so pages are read when needed."""


@nb.njit(nogil=True, cache=True)
def find_strings(table, offsets, order, wanted, wanted_offsets):
    """The position of each wanted string in a table, counted from 1; 0 if it is not there.

    table, wanted: uint8, the concatenated bytes of the strings; offsets, wanted_offsets: int64,
    one more than there are strings; order: uint32, shape (n_strings,), the table's strings sorted.
    Returns uint32, shape (n_wanted,).
    """
    n_wanted = len(wanted_offsets) - 1
    found = np.zeros(n_wanted, np.uint32)
    for w in range(n_wanted):
        start = wanted_offsets[w]
        n = wanted_offsets[w + 1] - start
        low = 0
        high = len(order)
        while low < high:
            middle = (low + high) >> 1
            # Reads stay within the table even if the files are damaged.
            entry = min(np.int64(order[middle]), len(offsets) - 2)
            at = min(max(offsets[entry], 0), len(table))
            m = min(offsets[entry + 1], len(table)) - at
            k = 0
            while k < n and k < m and table[at + k] == wanted[start + k]:
                k += 1
            if k == n and k == m:
                found[w] = entry + 1
                break
            if k >= m or (k < n and table[at + k] < wanted[start + k]):
                low = middle + 1
            else:
                high = middle
    return found
