"""The tokeniser of a GGUF file with a byte-level vocabulary, as in GPT-2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fabula.errors import ModelError
from fabula.models.gguf_layout import Layout, read_list

__all__ = ["ByteWords", "has_byte_words"]

# Pre-tokenisers by their names in GGUF files: whether each digit is a token of its own.
_PARTINGS = {"gpt-2": False, "smollm": True}
_USER_DEFINED = 4
_LISTS = ("tokens", "merges", "token_type")


def has_byte_words(path: Path, layout: Layout) -> bool:
    """Whether a file uses this tokeniser."""
    settings, lists = layout.settings, layout.lists
    return (
        settings.get("tokenizer.ggml.model") == "gpt2"
        and settings.get("tokenizer.ggml.pre") in _PARTINGS
        and all(f"tokenizer.ggml.{name}" in lists for name in _LISTS)
        and not settings.get("tokenizer.ggml.add_space_prefix", False)
        # Such tokens are matched before a text is split.
        and _USER_DEFINED not in read_list(path, lists["tokenizer.ggml.token_type"])
    )


class ByteWords:
    """Tokenises like llama.cpp. Raises `ModelError` without `tokenizers`."""

    def __init__(self, path: Path, layout: Layout) -> None:
        try:
            from tokenizers import Tokenizer, models, pre_tokenizers
        except ImportError as error:
            raise ModelError(
                "surprisals of texts need tokenizers; run: pip install 'fabula[local]'"
            ) from error
        words, merges, _ = (read_list(path, layout.lists[f"tokenizer.ggml.{n}"]) for n in _LISTS)
        numbers = {word: number for number, word in enumerate(words)}
        pairs = [tuple(one.split(" ", 1)) for one in merges]
        self._tokenizer: Any = Tokenizer(models.BPE(vocab=numbers, merges=pairs))
        settings = layout.settings
        digits = [pre_tokenizers.Digits(individual_digits=True)]
        self._tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            digits * _PARTINGS[settings["tokenizer.ggml.pre"]]
            + [pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
        self._words = words
        mark = settings.get("tokenizer.ggml.bos_token_id")
        is_marked = settings.get("tokenizer.ggml.add_bos_token", False)
        self.beginning: list[int] = [] if mark is None or not is_marked else [int(mark)]
        self._bytes = _byte_of_letter()

    def tokenise(self, text: str) -> tuple[list[int], list[bytes]]:
        """The tokens, and the bytes of each. Control tokens in the text are read as characters."""
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return tokens, [bytes(map(self._bytes.__getitem__, self._words[one])) for one in tokens]


def _byte_of_letter() -> dict[str, int]:
    """GPT-2's encoding: printable bytes as they are, the others as letters from U+0100 on."""
    printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = sorted(set(range(256)) - set(printed))
    letters = {chr(byte): byte for byte in printed}
    return letters | {chr(256 + k): byte for k, byte in enumerate(hidden)}
