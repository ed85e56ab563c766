from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

# Compiling a kernel takes seconds, once; a deadline would fail the example that meets it.
settings.register_profile("fabula", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("fabula")

ROOT = Path(__file__).parents[1]

# Tests run side by side; llama.cpp's threads would wait for each other at every step.
os.environ["FABULA_THREADS"] = "1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with few tests first: browsers and clusters, which one worker would end alone with."""
    n_tests = Counter(item.path for item in items)
    items.sort(key=lambda item: n_tests[item.path])


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real books, speeches and stories, where they lie beside the checkout."""
    path = ROOT.parent / "shared" / "data"
    if not path.is_dir():
        pytest.skip("the shared data are not beside this checkout")
    return path


@pytest.fixture(scope="session")
def examples() -> Path:
    return ROOT / "examples"
