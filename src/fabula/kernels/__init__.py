"""Numba kernels: arrays in, arrays out. They know no files and no words, only token ids.

Every kernel is compiled once and kept on disk (`cache=True`), releases the GIL (`nogil=True`), so
that plain threads use all cores, and is tested against a slow, obvious version in plain Python.

An array is copied into another by a loop, not as `a[:] = b`: with that numba also compiles the
sentence of its error about shapes, which takes longer than any kernel (8 of 14 s of a first build).
"""

from __future__ import annotations

__all__: list[str] = []


def _spare_linear_algebra() -> None:
    """Have numba take it that scipy's linear algebra is there, without importing it.

    Before its first kernel runs, numba imports it to learn just that: a quarter of the start-up of
    a process, where no kernel here uses it. One that does imports it when it is compiled.
    """
    from numba.np import linalg

    asks = getattr(linalg, "ensure_blas", None)
    if asks is None:
        return
    linalg.ensure_blas = lambda: None
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        linalg.ensure_blas = asks


_spare_linear_algebra()
