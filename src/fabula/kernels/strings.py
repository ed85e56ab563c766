"""Looking up many words in a table of strings, and numbering them."""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["find_strings", "number_strings"]

_FIRST_BITS = 10
"""The hash table of strings begins with 2 to this power slots."""
_FNV_START = np.uint64(0xCBF29CE484222325)
_FNV_FACTOR = np.uint64(0x100000001B3)
_MIX = np.uint64(0x9E3779B97F4A7C15)


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


@nb.njit(nogil=True, cache=True)
def number_strings(data, separator, n_strings):
    """Number strings from 0 in order of first appearance; equal ones have the same number.

    data: uint8, the bytes of `n_strings` strings with the byte `separator` after each. Returns
    int32, shape (n_strings,), and how many numbers there are, or -1 if the data are of another
    number of strings. Hashes are FNV-1a, and strings of the same hash are compared.
    """
    numbers = np.empty(n_strings, np.int32)
    bits = _FIRST_BITS
    hashes = np.empty(1 << bits, np.uint64)
    starts = np.empty(1 << bits, np.int64)
    held = np.full(1 << bits, -1, np.int32)
    n_numbers = 0
    start = 0
    for k in range(n_strings):
        h = _FNV_START
        end = start
        while end < len(data) and data[end] != separator:
            h = (h ^ np.uint64(data[end])) * _FNV_FACTOR
            end += 1
        at = np.int64((h * _MIX) >> np.uint64(64 - bits))
        while held[at] >= 0:
            if hashes[at] == h:
                first = starts[at]
                i = 0
                while i < end - start and data[first + i] == data[start + i]:
                    i += 1
                # The bytes up to the end are equal; the known string must end there too.
                if i == end - start and data[first + i] == separator:
                    break
            at = (at + 1) & ((1 << bits) - 1)
        if held[at] < 0:
            hashes[at] = h
            starts[at] = start
            held[at] = n_numbers
            n_numbers += 1
        numbers[k] = held[at]
        start = end + 1
        if 2 * n_numbers > 1 << bits:
            hashes, starts, held = _grown(hashes, starts, held, bits)
            bits += 1
    return numbers, n_numbers if start == len(data) else -1


@nb.njit(nogil=True, cache=True)
def _grown(hashes, starts, held, bits):
    """The hash table with twice as many slots."""
    more_hashes = np.empty(2 << bits, np.uint64)
    more_starts = np.empty(2 << bits, np.int64)
    more_held = np.full(2 << bits, -1, np.int32)
    for old in range(1 << bits):
        if held[old] < 0:
            continue
        at = np.int64((hashes[old] * _MIX) >> np.uint64(63 - bits))
        while more_held[at] >= 0:
            at = (at + 1) & ((2 << bits) - 1)
        more_hashes[at] = hashes[old]
        more_starts[at] = starts[old]
        more_held[at] = held[old]
    return more_hashes, more_starts, more_held
