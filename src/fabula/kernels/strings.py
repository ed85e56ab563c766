"""Looking many words up in a sorted table of strings."""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["find_strings"]


@nb.njit(nogil=True, cache=True)
def find_strings(table, offsets, wanted, wanted_offsets):
    """Where each wanted string stands in a sorted table, counted from 1; 0 where it does not.

    table, wanted: uint8, the strings' bytes in a row; offsets, wanted_offsets: int64, one more
    than there are strings. Returns uint32, shape (n_wanted,).
    """
    n_wanted = len(wanted_offsets) - 1
    found = np.zeros(n_wanted, np.uint32)
    for w in range(n_wanted):
        start = wanted_offsets[w]
        n = wanted_offsets[w + 1] - start
        low = 0
        high = len(offsets) - 1
        while low < high:
            middle = (low + high) >> 1
            at = offsets[middle]
            m = offsets[middle + 1] - at
            k = 0
            while k < n and k < m and table[at + k] == wanted[start + k]:
                k += 1
            if k == n and k == m:
                found[w] = middle + 1
                break
            if k == m or (k < n and table[at + k] < wanted[start + k]):
                low = middle + 1
            else:
                high = middle
    return found
