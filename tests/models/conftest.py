"""Tiny random models, which no test changes."""

from pathlib import Path

import pytest
from tests.tiny_gguf import write_tiny_gguf

TEXT = "The lamp went out. Nobody rowed over to see why."
"""Which they spell in their tokens."""


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("tiny") / "Plain.gguf", has_mark=False)


@pytest.fixture(scope="session")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("tiny") / "Marked.gguf", has_mark=True)
