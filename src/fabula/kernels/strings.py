"""Looking up many words in a table of strings."""

from __future__ import annotations

import numba as nb
import numpy as np


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
