"""Numba kernels: arrays in, arrays out. They work on token ids, never on files or words.

Every kernel is compiled once and cached on disk (`cache=True`), releases the GIL (`nogil=True`) so
that plain threads use all cores, and is tested against a slow, obvious version in plain Python.

Arrays are copied by a loop, not by `a[:] = b`: with the latter numba also compiles the formatting
of its shape error, which takes longer than any kernel (8 of 14 s of a first build).
"""


def _spare_linear_algebra() -> None:
    """Make numba assume that scipy's linear algebra is available, without importing it.

    Before its first kernel runs, numba imports it just to check: a quarter of a process's start-up
    time, although no kernel here uses it. A kernel that does imports it when compiled.
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
