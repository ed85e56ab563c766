"""Asking the system for a page of a mapped file before it is read.

A search that runs in lock-step asks for the pages of all its positions, and then reads the first:
the disk works on many reads at a time, where it would get each only after the one before.
"""

from __future__ import annotations

import mmap

import numba as nb
import numpy as np
from numba import types

__all__ = ["ask_for"]

_PAGE_BYTES = np.uint64(mmap.PAGESIZE)
_IN_PAGE = np.uint64(mmap.PAGESIZE - 1)

if hasattr(mmap, "MADV_WILLNEED"):
    _WILLNEED = int(mmap.MADV_WILLNEED)
    _madvise = types.ExternalFunction("madvise", types.intc(types.uintp, types.uintp, types.intc))

    @nb.njit(inline="always")
    def ask_for(array, k):
        """Have the page with the k-th value of a mapped array read, without waiting for it."""
        place = np.uint64(array.ctypes.data) + np.uint64(k) * np.uint64(array.itemsize)
        _madvise(place & ~_IN_PAGE, _PAGE_BYTES, _WILLNEED)

else:  # pragma: no cover

    @nb.njit(inline="always")
    def ask_for(array, k):
        """There is no way to ask on this system: the page is read when it is needed."""
