"""Where a model's output layer lies is found once, and again when the file changes."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
from tests.tiny_gguf import write_tiny_gguf

from fabula.models import gguf_layout
from fabula.models.gguf_layout import read_layout
from fabula.models.output_layer import read_output_layer


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FABULA_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path, has_mark=True)
    return path


def test_what_is_remembered_is_what_the_library_reads(model: Path) -> None:
    first = read_layout(gguf, model)
    assert list((model.parent / "cache" / "gguf").glob("*.json"))

    class Unread:
        """The library, which is not asked again."""

    again = read_layout(Unread, model)
    assert again == first
    reader = gguf.GGUFReader(model)
    for tensor in reader.tensors:
        if tensor.name in again.tensors:
            kept = again.tensors[tensor.name]
            assert (kept.offset, kept.n_bytes) == (tensor.data_offset, tensor.n_bytes)
            assert kept.shape == tuple(tensor.shape)
    matrix = read_output_layer(model).matrix
    own = next(one for one in reader.tensors if one.name == "output.weight")
    np.testing.assert_array_equal(matrix, gguf.dequantize(own.data, own.tensor_type))


@pytest.mark.parametrize("note", [b"", b"{", b"[]", b'{"format": 1}', b'{"format": 9}'])
def test_a_damaged_note_costs_the_time_again_and_nothing_else(model: Path, note: bytes) -> None:
    first = read_layout(gguf, model)
    (file,) = (model.parent / "cache" / "gguf").glob("*.json")
    file.write_bytes(note)
    assert read_layout(gguf, model) == first


def test_another_file_at_the_same_place_is_read_anew(model: Path) -> None:
    first = read_layout(gguf, model)
    model.unlink()
    write_tiny_gguf(model, has_mark=True, context_tokens=1234)
    second = read_layout(gguf, model)
    assert second != first
    assert read_output_layer(model).context_tokens == 1234


def test_a_cache_that_cannot_be_written_is_no_obstacle(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(gguf_layout, "write_whole", full)
    assert read_layout(gguf, model).tensors
