"""A network of the Llama family, read from a GGUF file and run by ONNX Runtime in float32.

llama.cpp multiplies weights of type Q4_1 by vectors only, and rounds activations to 8 bits. Here
whole blocks of tokens are multiplied, with the file's own 4-bit weights and float activations, in
two fifths of the processor time; surprisals equal those of transformers on unpacked weights to
0.0003 nats.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.errors import ModelError
from fabula.models.gguf_layout import F32, Q4_1, Layout, four_bit_blocks, unpacked
from fabula.models.onnx_graph import MICROSOFT, OnnxGraph

_BLOCK = 32
STEP_TOKENS = 128
"""Tokens that go through the layers together; the next draft is reread from such a step on.

With 128, 256 or 512 the states are the same bytes, in the same processor time (measured with ONNX
Runtime 1.31 on 1,100 tokens); fewer mean that less is reread.
"""
_MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
_NORMS = ("attn_norm", "ffn_norm")


def is_llama(layout: Layout) -> bool:
    """Whether a file can be run here: of this family without extensions, with matrices in float32
    or of type Q4_1, and a byte-level vocabulary."""
    settings = layout.settings
    if settings.get("general.architecture") != "llama":
        return False
    names = {f"llama.{name}" for name in _SETTINGS}
    has_more = any(
        key.startswith("llama.") and key not in names | _HARMLESS for key in settings
    )  # a scaled rotation, experts
    if has_more or not names <= settings.keys():
        return False
    n_layers = settings["llama.block_count"]
    of_layers = {f"blk.{k}.{name}.weight" for k in range(n_layers) for name in _MATRICES + _NORMS}
    others = {"token_embd.weight", "output_norm.weight"}
    outputs = {"output.weight", "output.bias"}
    tensors = layout.tensors
    if tensors.keys() - outputs != of_layers | others:
        return False
    kinds = {tensors[name].kind for name in of_layers}
    n_heads, n_dimensions = (settings[f"llama.{name}"] for name in _SETTINGS[:2])
    whole = n_dimensions // n_heads
    return kinds <= {F32, Q4_1} and settings.get("llama.rope.dimension_count", whole) == whole


_SETTINGS = (
    "attention.head_count", "embedding_length", "attention.head_count_kv", "block_count",
    "attention.layer_norm_rms_epsilon", "rope.freq_base",
)  # fmt: skip
_HARMLESS = {
    f"llama.{name}"
    for name in ("context_length", "feed_forward_length", "vocab_size", "rope.dimension_count")
}


def check_runtime() -> None:
    """Raise `ModelError` if ONNX Runtime is missing, without importing it."""
    if importlib.util.find_spec("onnxruntime") is None:
        raise ModelError("surprisals of texts need onnxruntime; run: pip install 'fabula[local]'")


class Llama:
    """The layers of a model, in memory. Raises `ModelError` if ONNX Runtime is missing.

    `embedding` float32, shape (n_words, n_dimensions).
    """

    def __init__(
        self, path: Path, layout: Layout, embedding: NDArray[np.float32], n_threads: int
    ) -> None:
        check_runtime()
        import onnxruntime

        self._onnxruntime = onnxruntime
        self._embedding = embedding
        self._shape = shape = _Shape(layout)
        graph = _graph(path, layout, shape)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = n_threads
        options.log_severity_level = 3
        # Waiting threads do not spin, which leaves their processors to other measurements.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # The weights must live as long as the session does.
        self._weights = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy(values)
            for name, values in graph.weights.items()
        }
        options.add_external_initializers(list(self._weights), list(self._weights.values()))
        self._session = onnxruntime.InferenceSession(
            graph.to_bytes(), options, providers=["CPUExecutionProvider"]
        )
        self._read: list[int] = []
        self._keys: list[Any] = []
        self._states = np.empty((0, shape.n_dimensions), np.float32)

    def states(self, tokens: list[int], check: Callable[[], None]) -> NDArray[np.float32]:
        """Last hidden states after the final norm: float32, shape (n_tokens, n_dimensions).

        A window that begins like the previous one is read from the first whole step in which they
        differ; the states before it are the same bytes. `check` is called before each step, and
        may raise to stop reading.
        """
        n_kept = n_alike(tokens, self._read) // STEP_TOKENS * STEP_TOKENS
        shape, value = self._shape, self._onnxruntime.OrtValue.ortvalue_from_numpy
        past = [value(np.ascontiguousarray(one.numpy()[:, :, :n_kept])) for one in self._keys]
        if not past:
            nothing = np.empty((1, shape.n_key_heads, 0, shape.head_size), np.float32)
            past = [value(nothing)] * (2 * shape.n_layers)
        states = [self._states[:n_kept]]
        for start in range(n_kept, len(tokens), STEP_TOKENS):
            check()
            found, *past = self._step(tokens[start : start + STEP_TOKENS], start, past)
            states.append(found.numpy()[0])
        self._read, self._keys, self._states = list(tokens), past, np.concatenate(states)
        return self._states

    def _step(self, tokens: list[int], start: int, past: list[Any]) -> list[Any]:
        shape = self._shape
        end = start + len(tokens)
        angles = np.arange(end)[:, None] * shape.frequencies
        given = {
            "x": self._embedding[tokens][None],
            "n_before_last": np.array([end - 1], np.int32),
            "n_all": np.array([end], np.int32),
            "cos": np.cos(angles).astype(np.float32),
            "sin": np.sin(angles).astype(np.float32),
        }
        value = self._onnxruntime.OrtValue.ortvalue_from_numpy
        feeds = {name: value(one) for name, one in given.items()}
        feeds.update(zip(shape.pasts, past, strict=True))
        found: list[Any] = self._session.run_with_ort_values(["y", *shape.presents], feeds)
        return found


def n_alike(tokens: Sequence[int], others: Sequence[int]) -> int:
    """The number of tokens in the common prefix of two windows."""
    pairs = enumerate(zip(tokens, others, strict=False))
    return next((k for k, (a, b) in pairs if a != b), min(len(tokens), len(others)))


class _Shape:
    """The dimensions of a model."""

    def __init__(self, layout: Layout) -> None:
        numbers = [layout.settings[f"llama.{name}"] for name in _SETTINGS]
        self.n_heads, self.n_dimensions, self.n_key_heads, self.n_layers = map(int, numbers[:4])
        self.epsilon, base = map(float, numbers[4:])
        self.head_size = self.n_dimensions // self.n_heads
        self.frequencies = base ** (-np.arange(0, self.head_size, 2) / self.head_size)
        layers = range(self.n_layers)
        self.pasts = [f"{k}.past_{what}" for k in layers for what in ("keys", "values")]
        self.presents = [f"{k}.{what}" for k in layers for what in ("keys", "values")]


def _graph(path: Path, layout: Layout, shape: _Shape) -> OnnxGraph:
    layers = _Layers(path, layout, shape)
    graph, n = layers.graph, shape.n_dimensions
    graph.add_input("x", "float32", [1, "n", n])
    graph.add_input("n_before_last", "int32", [1])
    graph.add_input("n_all", "int32", [1])
    for name in ("cos", "sin"):
        graph.add_input(name, "float32", ["all", shape.head_size // 2])
    for names, axis in ((shape.pasts, "past"), (shape.presents, "all")):
        add = graph.add_input if axis == "past" else graph.add_output
        for name in names:
            add(name, "float32", [1, shape.n_key_heads, axis, shape.head_size])
    x = "x"
    for k in range(shape.n_layers):
        x = layers.add(k, x)
    layers.norm(x, "output_norm.weight", "y")
    graph.add_output("y", "float32", [1, "n", n])
    return graph


class _Layers:
    """Adds the layers of a model to a graph."""

    def __init__(self, path: Path, layout: Layout, shape: _Shape) -> None:
        self.graph = OnnxGraph()
        self._path, self._tensors, self._shape = path, layout.tensors, shape
        self._last_axis = self.graph.add_constant("last_axis", [3])
        self._sums: dict[str, str] = {}
        self._shapes: dict[int, str] = {}

    def add(self, k: int, x: str) -> str:
        """Add attention and the feed-forward block; returns the name of the output."""
        graph, shape, layer = self.graph, self._shape, f"blk.{k}."
        read = self.norm(x, f"{layer}attn_norm.weight", f"{layer}read")
        three = [self._times(read, f"{layer}attn_{one}.weight") for one in "qkv"]
        heads = graph.add(
            "GroupQueryAttention",
            [*three, f"{k}.past_keys", f"{k}.past_values", "n_before_last", "n_all", "cos", "sin"],
            [f"{layer}heads", f"{k}.keys", f"{k}.values"],
            MICROSOFT,
            num_heads=shape.n_heads,
            kv_num_heads=shape.n_key_heads,
            do_rotary=1,
            # Rotated pairs are adjacent in a GGUF.
            rotary_interleaved=1,
        )
        seen = self._times(heads, f"{layer}attn_output.weight")
        x = graph.add("Add", [x, seen], [f"{layer}attended"])
        read = self.norm(x, f"{layer}ffn_norm.weight", f"{layer}read_again")
        gate, up = (self._times(read, f"{layer}ffn_{one}.weight") for one in ("gate", "up"))
        # x times its sigmoid.
        opened = graph.add("QuickGelu", [gate], [f"{layer}opened"], MICROSOFT, alpha=1.0)
        passed = graph.add("Mul", [opened, up], [f"{layer}passed"])
        down = self._times(passed, f"{layer}ffn_down.weight")
        return graph.add("Add", [x, down], [f"{layer}out"])

    def norm(self, x: str, name: str, out: str) -> str:
        weight = self.graph.add_weight(name, unpacked(self._path, self._tensors[name]))
        return self.graph.add(
            "SimplifiedLayerNormalization",
            [x, weight],
            [out],
            axis=-1,
            epsilon=self._shape.epsilon,
            stash_type=1,
        )

    def _times(self, x: str, name: str) -> str:
        graph, tensor, out = self.graph, self._tensors[name], f"{name}.out"
        if tensor.kind == F32:
            weight = graph.add_weight(name, unpacked(self._path, tensor).T)
            return graph.add("MatMul", [x, weight], [out])
        # A weight is s q + m, and the node's s (q - 8): m + 8 s times a block's sum is added.
        n_columns, n_rows = tensor.shape
        integers, scales, least = four_bit_blocks(self._path, tensor)
        weights = [
            graph.add_weight(f"{name}.integers", integers),
            graph.add_weight(f"{name}.scales", scales.reshape(-1)),
        ]
        large = graph.add(
            "MatMulNBits",
            [x, *weights],
            [f"{name}.large"],
            MICROSOFT,
            K=n_columns,
            N=n_rows,
            bits=4,
            block_size=_BLOCK,
            accuracy_level=1,
        )
        offsets = graph.add_weight(f"{name}.offsets", (least + 8 * scales).T)
        small = graph.add("MatMul", [self._sum(x, n_columns), offsets], [f"{name}.small"])
        return graph.add("Add", [large, small], [out])

    def _sum(self, x: str, n_columns: int) -> str:
        """The sums of blocks of `x`, computed once for all matrices it is multiplied by."""
        if x in self._sums:
            return self._sums[x]
        graph, name = self.graph, f"blocks_of_{n_columns}"
        if n_columns not in self._shapes:
            sizes = [1, -1, n_columns // _BLOCK, _BLOCK]
            self._shapes[n_columns] = graph.add_constant(name, sizes)
        blocks = graph.add("Reshape", [x, self._shapes[n_columns]], [f"{x}.blocks"])
        self._sums[x] = graph.add("ReduceSum", [blocks, self._last_axis], [f"{x}.sums"], keepdims=0)
        return self._sums[x]
