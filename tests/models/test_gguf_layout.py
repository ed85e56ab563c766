"""The header of a GGUF file says what the library gguf reads of it, in a hundredth of the time."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
from tests.tiny_gguf import write_tiny_gguf

from fabula.errors import ModelError
from fabula.models.gguf_layout import read_layout
from fabula.models.local import embedded_model
from fabula.models.output_layer import read_output_layer


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_tiny_gguf(tmp_path / "tiny.gguf", has_mark=True)


@pytest.mark.parametrize("name", ["tiny", "embedded"])
def test_settings_and_tensors_are_those_that_the_library_reads(model: Path, name: str) -> None:
    path = model if name == "tiny" else _embedded()
    found = read_layout(gguf, path)
    reader = gguf.GGUFReader(path)
    assert found.settings == {
        key: len(field.data) if field.types[:1] == [gguf.GGUFValueType.ARRAY] else field.contents()
        for key, field in reader.fields.items()
        # The library counts the header's own fields among the settings.
        if not key.startswith("GGUF.")
    }
    own = {
        tensor.name: (tuple(tensor.shape), tensor.data_offset, tensor.n_bytes, tensor.tensor_type)
        for tensor in reader.tensors
        if tensor.name.startswith("output.") or tensor.name == "token_embd.weight"
    }
    assert own
    kept = found.tensors.items()
    assert {name: (one.shape, one.offset, one.n_bytes, one.kind) for name, one in kept} == own


def _embedded() -> Path:
    try:
        return embedded_model()
    except ModelError as error:
        pytest.skip(str(error))


def test_the_output_layer_is_the_one_that_the_library_unpacks(model: Path) -> None:
    tensors = gguf.GGUFReader(model).tensors
    own = next(one for one in tensors if one.name == "output.weight")
    whole = gguf.dequantize(own.data, own.tensor_type)
    np.testing.assert_array_equal(read_output_layer(model).matrix, whole)


def test_a_file_that_is_cut_anywhere_is_an_error(model: Path) -> None:
    whole = model.read_bytes()
    end = max(one.offset + one.n_bytes for one in read_layout(gguf, model).tensors.values())
    for n_bytes in (1, 4, 7, 20, 100, 1000, end // 2, end - 1):
        model.write_bytes(whole[:n_bytes])
        with pytest.raises(ModelError, match="cannot load the model"):
            read_output_layer(model)


@pytest.mark.parametrize(
    ("version", "error"),
    [(b"\0\0\0\3", "is big-endian"), (b"\1\0\0\0", "is of GGUF version 1; versions 2 and 3")],
)
def test_another_version_is_refused_in_a_sentence(model: Path, version: bytes, error: str) -> None:
    whole = model.read_bytes()
    model.write_bytes(whole[:4] + version + whole[8:])
    with pytest.raises(ModelError, match=error):
        read_output_layer(model)
