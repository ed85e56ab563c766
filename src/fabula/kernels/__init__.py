"""Numba kernels: arrays in, arrays out. They know no files and no words, only token ids.

Every kernel is compiled once and kept on disk (`cache=True`), releases the GIL (`nogil=True`), so
that plain threads use all cores, and is tested against a slow, obvious version in plain Python.

An array is copied into another by a loop, not as `a[:] = b`: with that numba also compiles the
sentence of its error about shapes, which takes longer than any kernel (8 of 14 s of a first build).
"""
