"""Numba kernels: arrays in, arrays out. They know no files and no words, only token ids.

Every kernel is compiled once and kept on disk (`cache=True`), releases the GIL (`nogil=True`), so
that plain threads use all cores, and is tested against a slow, obvious version in plain Python.
"""
