"""Numbers in as few bits as they need, and token ids in two bytes.

Packed numbers lie one after the other in 64-bit words, lowest bits first, without regard to where
a word ends; one more word follows the last, so that reading never looks past the end.

Token ids go by how often they occur, so nearly all of a text's are small. Those below `RARE` stand
as they are, in 16 bits; in place of the others stands `RARE`, and the ids follow one another in an
array of their own. Which of these it is, is counted within a block, as in the directly addressable
codes of Brisaboa, Ladra and Navarro (2013), with two levels.

Records of arrays are for Python: a compiled function takes the arrays singly (`*tokens`), since
to look into a record costs it more than to read from memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BLOCK", "RARE", "Packed", "Tokens", "bits_below", "fill_tokens", "n_packed_words", "pack",
    "pack_tokens", "put", "rare_token", "read_packed", "read_tokens", "unpack",
]  # fmt: skip

RARE = 65_535
"""Stands for each token id that is as large or larger."""
BLOCK = 256
"""Tokens among which rare ones are counted."""
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
    """(n_blocks,): how many rare ones stand before each block."""
    rare_ids: NDArray[np.uint32]
    """(n_rare,): the rare ones in order."""


def bits_below(n: int) -> int:
    """The bits that each of the numbers 0 to n - 1 fits in; at least 1."""
    return max(1, (n - 1).bit_length())


def n_packed_words(n_values: int, n_bits: int) -> int:
    """The 64-bit words that so many numbers take, and the one after them."""
    return (n_values * n_bits + 63) // 64 + 1


def pack(values: NDArray[np.generic], n_bits: int) -> Packed:
    """Pack numbers below 2**n_bits, n_bits at most 64."""
    words = np.zeros(n_packed_words(len(values), n_bits), np.uint64)
    put_all(words, n_bits, values)
    return Packed(words, n_bits, len(values))


@nb.njit(inline="always")
def put(words, n_bits, k, value):
    """Set the k-th number, which must be 0 still."""
    at = np.uint64(k) * np.uint64(n_bits)
    word = at >> _U6
    shift = at & _U63
    words[word] |= np.uint64(value) << shift
    # Two shifts, since one by 64 is not defined.
    words[word + _U1] |= (np.uint64(value) >> _U1) >> (_U63 - shift)


@nb.njit(inline="always")
def unpack(words, n_bits, k):
    """The k-th number: uint64."""
    at = np.uint64(k) * np.uint64(n_bits)
    word = at >> _U6
    shift = at & _U63
    bits = words[word] >> shift | (words[word + _U1] << _U1) << (_U63 - shift)
    # As `put`: a mask of all 64 bits in two shifts.
    return bits & ((_U1 << np.uint64(n_bits - 1) << _U1) - _U1)


@nb.njit(nogil=True, cache=True)
def put_all(words, n_bits, values):
    """Set numbers, which must be 0 still, from the first on."""
    for k in range(len(values)):
        put(words, n_bits, k, values[k])


def read_packed(packed: Packed, begin: int, end: int) -> NDArray[np.uint32]:
    """The numbers from `begin` to before `end`, below 2**32: uint32, shape (end - begin,).

    Raises `IndexError` where there are not so many.
    """
    if not 0 <= begin <= end <= packed.n_values:
        raise IndexError(f"{begin} to {end} of {packed.n_values} numbers")
    values = np.empty(end - begin, np.uint32)
    unpack_all(packed.words, packed.n_bits, begin, values)
    return values


@nb.njit(nogil=True, cache=True)
def unpack_all(words, n_bits, begin, values):
    """Fill `values` with the numbers from `begin` on."""
    for k in range(len(values)):
        values[k] = unpack(words, n_bits, begin + k)


def pack_tokens(tokens: NDArray[np.uint32]) -> Tokens:
    """Token ids in two bytes, and the rare ones apart."""
    codes = np.empty(len(tokens), np.uint16)
    np.minimum(tokens, RARE, out=codes, casting="unsafe")
    places = np.flatnonzero(codes == RARE)
    rare_before = np.searchsorted(places, np.arange(0, len(tokens), BLOCK)).astype(np.uint32)
    return Tokens(codes, rare_before, tokens[places])


@nb.njit(nogil=True, cache=True)
def rare_token(codes, rare_before, rare_ids, place):
    """The token id at a place, below `len(codes)`, whose code is `RARE`: uint32."""
    block = place // BLOCK
    k = np.int64(rare_before[block])
    for before in range(block * BLOCK, place):
        k += codes[before] == RARE
    # Of damaged files there may be more places than ids.
    return rare_ids[k] if k < len(rare_ids) else np.uint32(RARE)


def read_tokens(tokens: Tokens, begin: int, end: int) -> NDArray[np.uint32]:
    """The token ids from `begin` to before `end`: uint32, shape (end - begin,).

    Raises `IndexError` where there are not so many.
    """
    if not 0 <= begin <= end <= len(tokens.codes):
        raise IndexError(f"{begin} to {end} of {len(tokens.codes)} tokens")
    ids = np.empty(end - begin, np.uint32)
    fill_tokens(*tokens, begin, ids)
    return ids


@nb.njit(nogil=True, cache=True)
def fill_tokens(codes, rare_before, rare_ids, begin, ids):
    """Fill `ids` with the token ids from `begin` on."""
    for k in range(len(ids)):
        code = codes[begin + k]
        ids[k] = code if code < RARE else rare_token(codes, rare_before, rare_ids, begin + k)
