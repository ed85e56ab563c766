"""What a first kernel costs besides its work."""

import subprocess
import sys

CODE = """
import sys
import numpy as np
from fabula.kernels.match import run_ends
assert run_ends(np.array([1, 0, 2], np.uint32)).tolist() == [1, 1, 3]
assert "scipy.linalg" not in sys.modules, "imported for nothing"

import numba
product = numba.njit(lambda a, b: np.dot(a, b))
a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
assert np.array_equal(product(a, b), a @ b)
assert "scipy.linalg.cython_blas" in sys.modules
"""


def test_no_linear_algebra_is_imported_until_a_kernel_uses_it():
    subprocess.run([sys.executable, "-c", CODE], check=True)
