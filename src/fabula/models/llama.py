"""What reads texts: a network of the Llama family from a GGUF file, run by ONNX Runtime in float32;
and for other families llama.cpp's server.

llama.cpp multiplies weights of type Q4_1 by vectors only, and rounds activations to 8 bits. Here
whole blocks of tokens are multiplied, with the file's own 4-bit weights and float activations, in
two fifths of the time; surprisals equal transformers' on unpacked weights to 0.0003 nats.
"""

from __future__ import annotations

import importlib.util
import json
import struct
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fabula.core.errors import CallFailed, ModelError
from fabula.core.packages import needing
from fabula.models.gguf_layout import (
    F32,
    Q4_1,
    Layout,
    four_bit_blocks,
    read_layout,
    read_list,
    unpacked,
)
from fabula.models.local import LOOPBACK, n_threads, runtime, start_server

_BLOCK = 32
# Added to the attention of a token that is not seen.
_UNSEEN = -1e9
STEP_TOKENS = 128
"""Tokens that go through the layers together; the next draft is reread from such a step on.

With 128, 256 or 512 the states are the same bytes, in the same processor time (measured with ONNX
Runtime 1.31 on 1,100 tokens); fewer mean that less is reread.
"""
_MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
_NORMS = ("attn_norm", "ffn_norm")

_SETTINGS = (
    "attention.head_count", "embedding_length", "attention.head_count_kv", "block_count",
    "attention.layer_norm_rms_epsilon", "rope.freq_base",
)  # fmt: skip
_HARMLESS = {
    f"llama.{name}"
    for name in ("context_length", "feed_forward_length", "vocab_size", "rope.dimension_count")
}

# Pre-tokenisers by their names in GGUF files: whether each digit is a token of its own.
_PARTINGS = {"gpt-2": False, "smollm": True}
_USER_DEFINED = 4
_LISTS = ("tokens", "merges", "token_type")


def llama_layout(path: Path) -> Layout | None:
    """The layout of a file that this process can run; None for another, or a damaged one.

    That is: no extensions of the family, matrices in float32 or Q4_1, a byte-level vocabulary.
    """
    try:
        layout = read_layout(path)
        settings, tensors, lists = layout.settings, layout.tensors, layout.lists
        names = {f"llama.{name}" for name in _SETTINGS}
        family_keys = {key for key in settings if key.startswith("llama.")}
        has_more = not family_keys <= names | _HARMLESS  # a scaled rotation, experts
        is_family = settings.get("general.architecture") == "llama" and not has_more
        if not is_family or not names <= settings.keys():
            return None
        layers = range(settings["llama.block_count"])
        of_layers = {f"blk.{k}.{name}.weight" for k in layers for name in _MATRICES + _NORMS}
        others = {"token_embd.weight", "output_norm.weight"}
        if tensors.keys() - {"output.weight", "output.bias"} != of_layers | others:
            return None
        n_heads, n_dimensions = (settings[f"llama.{name}"] for name in _SETTINGS[:2])
        whole = n_dimensions // n_heads
        is_run = (
            {tensors[name].kind for name in of_layers} <= {F32, Q4_1}
            and settings.get("llama.rope.dimension_count", whole) == whole
            and settings.get("tokenizer.ggml.model") == "gpt2"
            and settings.get("tokenizer.ggml.pre") in _PARTINGS
            and all(f"tokenizer.ggml.{name}" in lists for name in _LISTS)
            and not settings.get("tokenizer.ggml.add_space_prefix", False)
            # Such tokens are matched before a text is split.
            and _USER_DEFINED not in read_list(path, lists["tokenizer.ggml.token_type"])
        )
    except (ImportError, OSError, ValueError, LookupError, TypeError, OverflowError):
        # The code that opens the file reports what is wrong with it.
        return None
    return layout if is_run else None


class Llama:
    """A model of this family, in this process; its layers are opened when a text is read.

    `output` is its output layer: float32, shape (n_words, n_dimensions). Raises `ModelError` if
    ONNX Runtime, which is not imported, or `tokenizers` is missing.
    """

    keeps_states = True
    """States before a change are the same bytes whatever follows."""

    def __init__(self, path: Path, layout: Layout, output: NDArray[np.float32]) -> None:
        if importlib.util.find_spec("onnxruntime") is None:
            raise ModelError(
                "surprisals of texts need onnxruntime; run: pip install 'fabula[local]'"
            )
        message = "surprisals of texts need tokenizers; run: pip install 'fabula[local]'"
        library = needing("tokenizers", message, ModelError)
        pre_tokenizers = library.pre_tokenizers
        words, merges, _ = (read_list(path, layout.lists[f"tokenizer.ggml.{n}"]) for n in _LISTS)
        numbers = {word: number for number, word in enumerate(words)}
        pairs = [tuple(merge.split(" ", 1)) for merge in merges]
        self._tokenizer: Any = library.Tokenizer(library.models.BPE(vocab=numbers, merges=pairs))
        settings = layout.settings
        digits = [pre_tokenizers.Digits(individual_digits=True)]
        parts = digits * _PARTINGS[settings["tokenizer.ggml.pre"]]
        parts.append(pre_tokenizers.ByteLevel(add_prefix_space=False))
        self._tokenizer.pre_tokenizer = pre_tokenizers.Sequence(parts)
        self._words = words
        mark = settings.get("tokenizer.ggml.bos_token_id")
        is_marked = settings.get("tokenizer.ggml.add_bos_token", False)
        # What is put before a text, if anything.
        self.beginning: list[int] = [] if mark is None or not is_marked else [int(mark)]
        # GPT-2's encoding: printable bytes as they are, the others as letters from U+0100 on.
        printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
        self._bytes = {chr(byte): byte for byte in printed}
        hidden = sorted(set(range(256)) - set(printed))
        self._bytes |= {chr(256 + k): byte for k, byte in enumerate(hidden)}
        is_tied = "output.weight" not in layout.tensors
        embedding = output if is_tied else unpacked(path, layout.tensors["token_embd.weight"])
        self._path, self._layout, self._embedding = path, layout, embedding
        self._shape = _Shape(layout)
        self._session: Any = None
        self._read: list[int] = []
        self._keys: list[Any] = []
        self._states = np.empty((0, self._shape.n_dimensions), np.float32)

    def tokenise(self, text: str) -> tuple[list[int], list[bytes]]:
        """The tokens, as llama.cpp makes them, and the bytes of each. Control tokens in the text
        are read as characters."""
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return tokens, [bytes(map(self._bytes.__getitem__, self._words[token])) for token in tokens]

    def _open(self) -> None:
        import onnxruntime

        self._value = onnxruntime.OrtValue.ortvalue_from_numpy
        shape = self._shape
        layers = _Layers(self._path, self._layout, shape)
        graph, n = layers.graph, shape.n_dimensions
        graph.add_input("x", "float32", [1, "n", n])
        graph.add_input("n_before_last", "int32", [1])
        graph.add_input("n_all", "int32", [1])
        graph.add_input("positions", "int64", [1, "n"])
        graph.add_input("mask", "float32", [1, 1, "n", "all"])
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
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = n_threads()
        options.log_severity_level = 3
        # Waiting threads do not spin, which leaves their processors to other measurements.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # The weights must live as long as the session does.
        self._weights = {name: self._value(values) for name, values in graph.weights.items()}
        options.add_external_initializers(list(self._weights), list(self._weights.values()))
        self._session = onnxruntime.InferenceSession(
            graph.to_bytes(), options, providers=["CPUExecutionProvider"]
        )

    def states(self, tokens: list[int], check: Callable[[], None]) -> NDArray[np.float32]:
        """Last hidden states after the final norm: float32, shape (n_tokens, n_dimensions).

        A window that begins like the previous one is read from the first whole step in which they
        differ; states before it are the same bytes. `check`, before each step, may raise to stop.
        """
        if self._session is None:
            # Only now: what is known from earlier needs no model.
            self._open()
        n_kept = n_alike(tokens, self._read) // STEP_TOKENS * STEP_TOKENS
        shape, value = self._shape, self._value
        past = [value(np.ascontiguousarray(keys.numpy()[:, :, :n_kept])) for keys in self._keys]
        if not past:
            nothing = np.empty((1, shape.n_key_heads, 0, shape.head_size), np.float32)
            past = [value(nothing)] * (2 * shape.n_layers)
        states = [self._states[:n_kept]]
        for start in range(n_kept, len(tokens), STEP_TOKENS):
            check()
            part, *past = self._step(tokens[start : start + STEP_TOKENS], start, past)
            states.append(part.numpy()[0])
        self._read, self._keys, self._states = list(tokens), past, np.concatenate(states)
        return self._states

    def endings(self, branches: Sequence[tuple[int, list[int]]]) -> list[NDArray[np.float32]]:
        """The states of other endings of the window that was read last, all read in one step.

        A branch is how many tokens of the window it follows, at least one, and its own tokens:
        float32, shape (n_tokens, n_dimensions) each. No branch sees another.
        """
        n_read, n_own = len(self._read), [len(tokens) for _, tokens in branches]
        joined = [token for _, tokens in branches for token in tokens]
        mask = np.full((len(joined), n_read + len(joined)), _UNSEEN, np.float32)
        at = 0
        for (n_before, _), n in zip(branches, n_own, strict=True):
            mask[at : at + n, :n_before] = mask[at : at + n, n_read + at : n_read + at + n] = 0
            at += n
        positions = [n_before + k for n_before, tokens in branches for k in range(len(tokens))]
        states = self._step(joined, n_read, self._keys, positions, mask)[0].numpy()[0]
        return np.split(states, np.cumsum(n_own)[:-1])

    def _step(
        self,
        tokens: list[int],
        start: int,
        past: list[Any],
        positions: Sequence[int] | None = None,
        mask: NDArray[np.float32] | None = None,
    ) -> list[Any]:
        """`positions` and `mask`, which is added to attention, are by default those of one text."""
        shape = self._shape
        end = start + len(tokens)
        angles = np.arange(end)[:, None] * shape.frequencies
        if mask is None:
            mask = np.zeros((len(tokens), end), np.float32)
        inputs = {
            "x": self._embedding[tokens][None],
            "n_before_last": np.array([end - 1], np.int32),
            "n_all": np.array([end], np.int32),
            "positions": np.array([positions or range(start, end)], np.int64),
            "mask": mask[None, None],
            "cos": np.cos(angles).astype(np.float32),
            "sin": np.sin(angles).astype(np.float32),
        }
        feeds = {name: self._value(value) for name, value in inputs.items()}
        feeds.update(zip(shape.pasts, past, strict=True))
        outputs: list[Any] = self._session.run_with_ort_values(["y", *shape.presents], feeds)
        return outputs


def n_alike(tokens: Sequence[int], others: Sequence[int]) -> int:
    """The number of tokens in the common prefix of two windows."""
    pairs = enumerate(zip(tokens, others, strict=False))
    return next((k for k, (a, b) in pairs if a != b), min(len(tokens), len(others)))


class _Shape:
    def __init__(self, layout: Layout) -> None:
        numbers = [layout.settings[f"llama.{name}"] for name in _SETTINGS]
        self.n_heads, self.n_dimensions, self.n_key_heads, self.n_layers = map(int, numbers[:4])
        self.epsilon, base = map(float, numbers[4:])
        self.head_size = self.n_dimensions // self.n_heads
        self.frequencies = base ** (-np.arange(0, self.head_size, 2) / self.head_size)
        layers = range(self.n_layers)
        self.pasts = [f"{k}.past_{what}" for k in layers for what in ("keys", "values")]
        self.presents = [f"{k}.{what}" for k in layers for what in ("keys", "values")]


class _Layers:
    def __init__(self, path: Path, layout: Layout, shape: _Shape) -> None:
        self.graph = OnnxGraph()
        self._path, self._tensors, self._shape = path, layout.tensors, shape
        self._last_axis = self.graph.add_constant("last_axis", [3])
        self._sums: dict[str, str] = {}
        self._shapes: dict[int, str] = {}

    def add(self, k: int, x: str) -> str:
        """Add attention and the feed-forward block; returns the name of the output."""
        graph, shape, layer = self.graph, self._shape, f"blk.{k}."
        normed = self.norm(x, f"{layer}attn_norm.weight", f"{layer}read")
        projections = [self._times(normed, f"{layer}attn_{letter}.weight") for letter in "qkv"]
        pasts = [f"{k}.past_keys", f"{k}.past_values"]
        inputs = [*projections, *pasts, "n_before_last", "n_all", "cos", "sin"]
        inputs += ["positions", "mask"]
        outputs = [f"{layer}heads", f"{k}.keys", f"{k}.values"]
        form = {"num_heads": shape.n_heads, "kv_num_heads": shape.n_key_heads}
        # Rotated pairs are adjacent in a GGUF.
        form |= {"do_rotary": 1, "rotary_interleaved": 1}
        heads = graph.add("GroupQueryAttention", inputs, outputs, MICROSOFT, **form)
        output = self._times(heads, f"{layer}attn_output.weight")
        x = graph.add("Add", [x, output], [f"{layer}attended"])
        normed = self.norm(x, f"{layer}ffn_norm.weight", f"{layer}read_again")
        gate, up = (self._times(normed, f"{layer}ffn_{name}.weight") for name in ("gate", "up"))
        # x times its sigmoid.
        opened = graph.add("QuickGelu", [gate], [f"{layer}opened"], MICROSOFT, alpha=1.0)
        passed = graph.add("Mul", [opened, up], [f"{layer}passed"])
        down = self._times(passed, f"{layer}ffn_down.weight")
        return graph.add("Add", [x, down], [f"{layer}out"])

    def norm(self, x: str, name: str, out: str) -> str:
        weight = self.graph.add_weight(name, unpacked(self._path, self._tensors[name]))
        form = {"axis": -1, "epsilon": self._shape.epsilon, "stash_type": 1}
        return self.graph.add("SimplifiedLayerNormalization", [x, weight], [out], "", **form)

    def _times(self, x: str, name: str) -> str:
        graph, tensor, out = self.graph, self._tensors[name], f"{name}.out"
        if tensor.kind == F32:
            weight = graph.add_weight(name, unpacked(self._path, tensor).T)
            return graph.add("MatMul", [x, weight], [out])
        # A weight is s q + m, and the node's s (q - 8): m + 8 s times a block's sum is added.
        n_columns, n_rows = tensor.shape
        integers, scales, least = four_bit_blocks(self._path, tensor)
        packed = graph.add_weight(f"{name}.integers", integers)
        scaled = graph.add_weight(f"{name}.scales", scales.reshape(-1))
        form = {"K": n_columns, "N": n_rows, "bits": 4, "block_size": _BLOCK, "accuracy_level": 1}
        large = graph.add("MatMulNBits", [x, packed, scaled], [f"{name}.large"], MICROSOFT, **form)
        offsets = graph.add_weight(f"{name}.offsets", (least + 8 * scales).T)
        if x not in self._sums:
            # The sums of blocks of `x`, computed once for all matrices it is multiplied by.
            if n_columns not in self._shapes:
                sizes = [1, -1, n_columns // _BLOCK, _BLOCK]
                self._shapes[n_columns] = graph.add_constant(f"blocks_of_{n_columns}", sizes)
            blocks = graph.add("Reshape", [x, self._shapes[n_columns]], [f"{x}.blocks"])
            summed = [blocks, self._last_axis]
            self._sums[x] = graph.add("ReduceSum", summed, [f"{x}.sums"], keepdims=0)
        small = graph.add("MatMul", [self._sums[x], offsets], [f"{name}.small"])
        return graph.add("Add", [large, small], [out])


MICROSOFT: Final = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""

_IR_VERSION, _OPSET = 9, 18
_KINDS = {"float32": 1, "uint8": 2, "int32": 6, "int64": 7}
_FLOAT, _INT = 1, 2
_EXTERNAL = 1


class OnnxGraph:
    """A graph in ONNX's format, built node by node in the order in which they run.

    A network of known layers is a few hundred nodes, and the protocol buffer messages are simple
    enough to write without a library. Field numbers are those of `onnx.proto`:
    https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = [_text(2, "graph")]
        self.weights: dict[str, NDArray[Any]] = {}
        """By name; they are passed to the session, not copied into the file."""

    def add_input(self, name: str, kind: str, shape: Sequence[int | str]) -> None:
        """`kind` is numpy's name of the type; a named axis may have any length."""
        self._parts.append(_field(11, _value(name, kind, shape)))

    def add_output(self, name: str, kind: str, shape: Sequence[int | str]) -> None:
        self._parts.append(_field(12, _value(name, kind, shape)))

    def add_weight(self, name: str, values: NDArray[Any]) -> str:
        """Returns the name, so that it can be passed to a node."""
        self.weights[name] = np.ascontiguousarray(values)
        where = _field(13, _text(1, "location") + _text(2, "none"))
        head = b"".join(_number(1, n) for n in values.shape) + _number(2, _KINDS[str(values.dtype)])
        self._parts.append(_field(5, head + _text(8, name) + where + _number(14, _EXTERNAL)))
        return name

    def add_constant(self, name: str, values: Sequence[int]) -> str:
        """A list of integers, such as a shape, stored in the file itself."""
        data = struct.pack(f"<{len(values)}q", *values)
        head = _number(1, len(values)) + _number(2, _KINDS["int64"])
        self._parts.append(_field(5, head + _text(8, name) + _field(9, data)))
        return name

    def add(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        domain: str = "",
        **attributes: int | float,
    ) -> str:
        """Add a node; returns the name of its first output."""
        node = b"".join(_text(1, name) for name in inputs)
        node += b"".join(_text(2, name) for name in outputs)
        node += _text(4, operator) + _text(7, domain)
        for name, value in attributes.items():
            if isinstance(value, float):
                body = _key(2, 5) + struct.pack("<f", value) + _number(20, _FLOAT)
            else:
                body = _number(3, value) + _number(20, _INT)
            node += _field(5, _text(1, name) + body)
        self._parts.append(_field(1, node))
        return outputs[0]

    def to_bytes(self) -> bytes:
        """Serialise the graph."""
        opsets = [_text(1, "") + _number(2, _OPSET), _text(1, MICROSOFT) + _number(2, 1)]
        whole = _number(1, _IR_VERSION) + _field(7, b"".join(self._parts))
        return whole + b"".join(_field(8, opset) for opset in opsets)


def _value(name: str, kind: str, shape: Sequence[int | str]) -> bytes:
    axes = b"".join(_field(1, _text(2, n) if isinstance(n, str) else _number(1, n)) for n in shape)
    return _text(1, name) + _field(2, _field(1, _number(1, _KINDS[kind]) + _field(2, axes)))


def _key(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _number(number: int, value: int) -> bytes:
    return _key(number, 0) + _varint(value)


def _text(number: int, value: str) -> bytes:
    return _field(number, value.encode())


def _field(number: int, data: bytes) -> bytes:
    return _key(number, 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    """Seven bits per byte, the lowest first; negative numbers as 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_TIMEOUT_S = 3600


class LlamaServer:
    """llama.cpp's server with the model in memory. Dropping the last reference stops its threads.

    It returns probabilities of the text it generates, not of the text it reads. In embedding mode
    without pooling, it does return each token's last hidden state, after the final norm. Compared
    with transformers on unpacked weights, surprisals differ by the rounding of activations to 8
    bits in llama.cpp: by 0.05 nats per token on average, 0.4 at most observed.
    `shape` is that of its output layer: (n_words, n_dimensions).
    """

    keeps_states = False

    def __init__(self, path: Path, n_context: int, shape: tuple[int, ...]) -> None:
        self._path, self._shape = path, shape
        xllamacpp = runtime()
        cpu = xllamacpp.ggml_backend_dev_type.GGML_BACKEND_DEVICE_TYPE_CPU
        self._server = start_server(
            path,
            embedding=True,
            pooling_type=xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_NONE,
            # A window is read in one batch, and leaves no state behind.
            **dict.fromkeys(("n_ctx", "n_batch", "n_ubatch"), n_context),
            n_parallel=1,
            cache_prompt=False,
            cache_ram_mib=0,
            # Without a GPU there is nothing to fit, and finding out takes as long as the start.
            fit_params=any(device["type"] != cpu for device in xllamacpp.get_device_info()),
        )
        plain, marked = (self.tokenise("a", is_marked=is_marked)[0] for is_marked in (False, True))
        places = [k for k in range(len(marked)) if marked[k : k + len(plain)] == plain]
        self.beginning = marked[: places[0]] if places else []

    def tokenise(self, text: str, *, is_marked: bool = False) -> tuple[list[int], list[bytes]]:
        """The tokens, and the bytes of each."""
        request = {"content": text, "add_special": is_marked}
        request |= {"parse_special": False, "with_pieces": True}
        tokens = self._call("/tokenize", request)["tokens"]
        # A piece that is not valid UTF-8 comes as a list of bytes.
        pieces = (token["piece"] for token in tokens)
        read = [piece.encode() if isinstance(piece, str) else bytes(piece) for piece in pieces]
        return [int(token["id"]) for token in tokens], read

    def states(self, tokens: list[int], check: Callable[[], None]) -> NDArray[np.float32]:
        """Last hidden states after the final norm: float32, shape (n_tokens, n_dimensions).

        `check` is called before they are requested, and may raise to stop reading.
        """
        check()
        reply = self._call("/embeddings", {"content": tokens, "embd_normalize": -1})
        states = np.array(reply[0]["embedding"], np.float32)
        if states.shape != (len(tokens), self._shape[1]):
            raise ModelError(
                f"{self._path}: cannot compute surprisal with this model: its hidden states have "
                f"shape {states.shape}, its output layer {self._shape}"
            )
        return states

    def _call(self, path: str, request: dict[str, Any]) -> Any:
        address, kind = self._server.listening_address, {"Content-Type": "application/json"}
        post = urllib.request.Request(f"{address}{path}", json.dumps(request).encode(), kind)
        try:
            with LOOPBACK.open(post, timeout=_TIMEOUT_S) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            answer = error.read().decode(errors="replace")
            raise CallFailed(f"the local model failed: {answer}") from error
        except (OSError, ValueError) as error:
            raise CallFailed(f"the local model failed: {error}") from error
