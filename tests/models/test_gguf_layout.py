"""The header of a GGUF file says what the library gguf reads of it, in a hundredth of the time."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from tests.conftest import if_installed
from tests.tiny_gguf import write_tiny_gguf

from fabula.core.errors import ModelError
from fabula.models.gguf_layout import four_bit_blocks, read_layout, read_list, unpacked
from fabula.models.local import embedded_model
from fabula.models.surprisal import read_output_layer


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_tiny_gguf(tmp_path / "tiny.gguf", has_mark=True)


@pytest.mark.parametrize("name", ["tiny", pytest.param("embedded", marks=pytest.mark.long)])
def test_settings_and_tensors_are_those_that_the_library_reads(model: Path, name: str):
    path = model if name == "tiny" else if_installed(embedded_model)
    found = read_layout(path)
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
    }
    assert own
    kept = found.tensors.items()
    assert {name: (one.shape, one.offset, one.n_bytes, one.kind) for name, one in kept} == own

    lists = {key: reader.fields[key].contents() for key in found.lists}
    assert {key: read_list(path, place) for key, place in found.lists.items()} == lists


def test_packed_matrices_are_those_that_the_library_unpacks(tmp_path: Path):
    weights = np.random.default_rng(2).normal(0, 1, (258, 64)).astype(np.float32)
    kinds = gguf.GGMLQuantizationType
    # The last is one that only the library reads.
    for kind in (kinds.Q8_0, kinds.Q4_1, kinds.Q5_0):
        packed = gguf.quantize(weights, kind)

        def change(writer: Any, packed: Any = packed, kind: Any = kind) -> None:
            writer.add_tensor("output.weight", packed, raw_dtype=kind)

        path = write_tiny_gguf(
            tmp_path / f"{kind.name}.gguf", has_mark=True, is_tied=True, change=change
        )
        tensor = read_layout(path).tensors["output.weight"]
        whole = gguf.dequantize(packed, kind)
        assert unpacked(path, tensor).tobytes() == whole.tobytes()
        if kind == kinds.Q4_1:
            integers, scales, least = four_bit_blocks(path, tensor)
            each = np.stack([integers & 15, integers >> 4], -1).reshape(258, 2, 32)
            found = each * scales[..., None] + least[..., None]
            assert found.reshape(whole.shape).tobytes() == whole.tobytes()
        else:
            with pytest.raises(ValueError, match="not 3"):
                four_bit_blocks(path, tensor)


def test_a_file_that_is_cut_anywhere_is_an_error(model: Path):
    whole = model.read_bytes()
    end = max(one.offset + one.n_bytes for one in read_layout(model).tensors.values())
    for n_bytes in (1, 4, 7, 20, 100, 1000, end // 2, end - 1):
        model.write_bytes(whole[:n_bytes])
        with pytest.raises(ModelError, match="cannot load the model"):
            read_output_layer(model)


@pytest.mark.parametrize(
    ("version", "error"),
    [(b"\0\0\0\3", "is big-endian"), (b"\1\0\0\0", "is GGUF version 1; only versions 2 and 3")],
)
def test_another_version_is_refused_in_a_sentence(model: Path, version: bytes, error: str):
    whole = model.read_bytes()
    model.write_bytes(whole[:4] + version + whole[8:])
    with pytest.raises(ModelError, match=error):
        read_output_layer(model)
