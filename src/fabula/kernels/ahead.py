"""Prefetching pages of a memory-mapped file.

A lock-step search requests the pages of all its positions before it reads the first. The disk then
serves many reads in parallel instead of one after the other.
"""

from __future__ import annotations

import mmap

import numba as nb
import numpy as np
from numba import types

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
