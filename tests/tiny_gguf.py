"""A Llama of two layers with random weights, in float32, as a GGUF file that llama.cpp reads."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MARK = 256
"""The mark of a beginning."""
N_DIMENSIONS = 64


def byte_words() -> list[str]:
    """Byte-level BPE's spelling of each byte, and then the mark of a beginning."""
    from tokenizers.pre_tokenizers import ByteLevel

    return [*sorted(ByteLevel.alphabet()), "<s>"]


def write_tiny_gguf(
    path: Path,
    *,
    has_mark: bool,
    is_spaced: bool = False,
    is_tied: bool = False,
    context_tokens: int = 128,
    change: Callable[[Any], None] = lambda writer: None,
) -> Path:
    """Writes the model: over single bytes and " t", or, spaced, as SentencePiece parts texts.

    `is_tied` leaves the output matrix out, and `change` may add to the writer what it likes.
    """
    import gguf

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(context_tokens)
    writer.add_embedding_length(N_DIMENSIONS)
    writer.add_block_count(2)
    writer.add_feed_forward_length(96)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_rope_dimension_count(16)
    n_words = _add_spaced_words(writer) if is_spaced else _add_byte_words(writer)
    writer.add_vocab_size(n_words)
    writer.add_add_bos_token(has_mark)
    change(writer)
    draw = np.random.default_rng(3)

    def add(name: str, *shape: int) -> None:
        values = draw.normal(0, 0.2, shape) if len(shape) > 1 else draw.uniform(0.5, 1.5, shape)
        writer.add_tensor(name, values.astype(np.float32))

    add("token_embd.weight", n_words, 64)
    add("output_norm.weight", 64)
    if not is_tied:
        add("output.weight", n_words, 64)
    for block in ("blk.0", "blk.1"):
        for name, *shape in (
            ("attn_norm", 64), ("attn_q", 64, 64), ("attn_k", 32, 64), ("attn_v", 32, 64),
            ("attn_output", 64, 64), ("ffn_norm", 64), ("ffn_gate", 96, 64), ("ffn_up", 96, 64),
            ("ffn_down", 64, 96),
        ):  # fmt: skip
            add(f"{block}.{name}.weight", *shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def slow_logits(path: Path, tokens: list[int]) -> NDArray[np.float64]:
    """The logits after each token, by the formulas of a Llama in float64: (n_tokens, n_words)."""
    import gguf

    weights = {
        tensor.name.removesuffix(".weight"): np.array(tensor.data, np.float64)
        for tensor in gguf.GGUFReader(path).tensors
    }
    n = len(tokens)
    angles = np.arange(n)[:, None] * 10_000.0 ** (-np.arange(0, 16, 2) / 16)
    turns = np.exp(1j * angles)[:, None]

    def norm(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        rms = np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-5)
        return np.asarray(x / rms * weights[name], np.float64)

    def turned(x: NDArray[np.float64]) -> NDArray[np.float64]:
        pairs = (x[..., ::2] + 1j * x[..., 1::2]) * turns
        return np.stack([pairs.real, pairs.imag], axis=-1).reshape(x.shape)

    x = weights["token_embd"][tokens]
    for block in ("blk.0", "blk.1"):
        h = norm(x, f"{block}.attn_norm")
        q, k, v = ((h @ weights[f"{block}.attn_{name}"].T).reshape(n, -1, 16) for name in "qkv")
        q, k = turned(q), turned(k)
        read = np.empty((n, 4, 16))
        for t in range(n):
            for head in range(4):
                scores = np.exp(k[: t + 1, head // 2] @ q[t, head] / 4)
                read[t, head] = scores @ v[: t + 1, head // 2] / scores.sum()
        x = x + read.reshape(n, 64) @ weights[f"{block}.attn_output"].T
        h = norm(x, f"{block}.ffn_norm")
        gate, up = (h @ weights[f"{block}.ffn_{name}"].T for name in ("gate", "up"))
        x = x + (gate / (1 + np.exp(-gate)) * up) @ weights[f"{block}.ffn_down"].T
    output = weights.get("output", weights["token_embd"])
    return np.asarray(norm(x, "output_norm") @ output.T, np.float64)


def _add_byte_words(writer: Any) -> int:
    words = [*byte_words(), "Ġt"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(words)
    writer.add_token_types([1] * MARK + [3, 1])
    # A list without a merge cannot be written.
    writer.add_token_merges(["Ġ t"])
    writer.add_bos_token_id(MARK)
    writer.add_eos_token_id(MARK)
    return len(words)


def _add_spaced_words(writer: Any) -> int:
    """A space before every text, `▁` for spaces, and bytes for what is no word."""
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "t", "▁t"]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(words)
    writer.add_token_scores([0.0] * 259 + [-3.0, -2.0, -1.0])
    writer.add_token_types([2, 3, 3] + [6] * 256 + [1, 1, 1])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_space_prefix(True)
    return len(words)
