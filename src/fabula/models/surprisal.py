"""The surprisal of each token of a text under a language model, and the text's likelihood.

Needs the extra `[local]`.

The logits are each token's last hidden state, after the final norm, times the output layer. For
models of the Llama family, such as the embedded one, the states come from `models/llama.py`; for
others from llama.cpp (`models/llama_server.py`).
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from fabula import __version__
from fabula.cached_results import CachedResults
from fabula.errors import ModelError
from fabula.models.gguf_layout import Layout, read_layout, read_list, unpacked
from fabula.models.llama import Llama, check_runtime, is_llama, n_alike
from fabula.models.llama_server import LlamaServer
from fabula.models.local import LocalModel, embedded_model, n_threads, runtime_name
from fabula.models.output_layer import OutputLayer, read_output_layer
from fabula.packages import needing
from fabula.text.sentences import encodable

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
        message = "surprisals of texts need tokenizers; run: pip install 'fabula[local]'"
        library = needing("tokenizers", message, ModelError)
        pre_tokenizers = library.pre_tokenizers
        words, merges, _ = (read_list(path, layout.lists[f"tokenizer.ggml.{n}"]) for n in _LISTS)
        numbers = {word: number for number, word in enumerate(words)}
        pairs = [tuple(one.split(" ", 1)) for one in merges]
        self._tokenizer: Any = library.Tokenizer(library.models.BPE(vocab=numbers, merges=pairs))
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
        # GPT-2's encoding: printable bytes as they are, the others as letters from U+0100 on.
        printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
        self._bytes = {chr(byte): byte for byte in printed}
        hidden = sorted(set(range(256)) - set(printed))
        self._bytes |= {chr(256 + k): byte for k, byte in enumerate(hidden)}

    def tokenise(self, text: str) -> tuple[list[int], list[bytes]]:
        """The tokens, and the bytes of each. Control tokens in the text are read as characters."""
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return tokens, [bytes(map(self._bytes.__getitem__, self._words[one])) for one in tokens]


_FORM = b"surprisal 2\n"


class SurprisalStore:
    """The windows of `CachedResults(path)`. Whatever goes wrong, a window is read again."""

    def __init__(self, path: Path | None = None) -> None:
        self._results = CachedResults(path)

    def find(self, key: bytes, n_tokens: int) -> NDArray[np.float32] | None:
        """float32, shape (n_tokens,); None if it is not there, or damaged."""
        (numbers,) = self._results.find([_FORM + key])
        if numbers is None or len(numbers) != 4 * n_tokens:
            return None
        return np.frombuffer(numbers, "<f4").astype(np.float32)

    def keep(self, key: bytes, nats: NDArray[np.float32]) -> None:
        """Store the figures of a window."""
        self._results.keep({_FORM + key: nats.astype("<f4").tobytes()})


def windows(n_tokens: int, n_window: int) -> Iterator[tuple[int, int, int]]:
    """Start, first scored token and end of each window; from the second on, half is read again.

    Each token is scored once, after at least half a window.
    """
    n_again = (n_window + 1) // 2
    start, first = 0, 0
    while first < n_tokens:
        end = min(start + n_window, n_tokens)
        yield start, first, end
        start, first = end - n_again, end


# A story of 3,000 words fits. llama.cpp keeps the attention of a whole window in memory.
_CONTEXT_HERE, _CONTEXT_OF_SERVER = 4096, 2048
# Tokens whose surprisals are computed together: with fewer, BLAS repacks the matrix more often.
_SCORED_TOKENS = 512
# Windows whose figures are cached: those of two drafts of a book, 6 MB.
_MAX_KNOWN = 256


@dataclass(frozen=True, slots=True, eq=False)
class TokenSurprisal:
    """The tokens of a text, and the surprisal of each given the preceding ones."""

    starts: NDArray[np.int64]
    """int64, shape (n_tokens,): offset of the first character of which a token holds a part."""
    ends: NDArray[np.int64]
    """int64, shape (n_tokens,): offset after the last one; tokens share a split character."""
    nats: NDArray[np.float32]
    """float32, shape (n_tokens,): -log p; NaN for a first token with nothing before it."""

    @property
    def bits(self) -> NDArray[np.float64]:
        """-log2 p: float64, shape (n_tokens,)."""
        return self.nats.astype(np.float64) / math.log(2)


@dataclass(frozen=True, slots=True)
class Likelihood:
    """The likelihood of one text. A figure is None if `missing_reason` says why."""

    n_tokens: int
    """Tokens that were scored: all, except the first if nothing comes before it."""
    log_likelihood: float | None = None
    """Mean of log p(token | preceding tokens), in nats per token."""
    log_rank: float | None = None
    """Mean natural logarithm of the token's rank; 1 is the model's first choice."""
    curvature: float | None = None
    """Conditional probability curvature: by how many standard deviations the text is more
    probable than what the model itself would have written, token by token."""
    missing_reason: str | None = None

    @classmethod
    def of(cls, figures: NDArray[np.float64]) -> Likelihood:
        """From the rows of `OutputLayer.likelihoods`, one per token."""
        n = len(figures)
        log_p, log_rank, mean, variance = (math.fsum(column) for column in figures.T)
        if not all(map(math.isfinite, (log_p, mean, variance))):
            return cls(n, missing_reason="the model's log-probabilities are not all finite")
        if variance == 0:
            reason = "the model is certain of every token, so the curvature is undefined"
            return cls(n, log_p / n, log_rank / n, None, reason)
        return cls(n, log_p / n, log_rank / n, (log_p - mean) / math.sqrt(variance))


class SurprisalModel:
    """A causal language model that reads texts: `with SurprisalModel("local") as model`.

    `local` is the embedded GGUF, `PATH.gguf` another. Texts are read `max_context` tokens at a
    time, up to the context the model was trained on; the default is 4,096, or 2,048 if llama.cpp
    reads them. Windows in `store` are not read again. Raises `ModelError`.
    """

    def __init__(
        self,
        path_or_spec: str | Path,
        *,
        max_context: int | None = None,
        store: SurprisalStore | None = None,
    ) -> None:
        if max_context is not None and max_context < 4:
            raise ModelError(f"a context of {max_context} tokens is too short to score a text")
        self.path = embedded_model() if str(path_or_spec) == "local" else Path(path_or_spec)
        self.name = LocalModel(self.path).name
        self._layout = _layout_of_llama(self.path)
        usual = _CONTEXT_OF_SERVER if self._layout is None else _CONTEXT_HERE
        self.max_context = max_context or usual
        self._store = store
        self._reader: _Reader | None = None

    @property
    def runtime(self) -> str:
        """The runtime of the model, and its version, for signatures: `onnxruntime-1.22.0`."""
        if self._layout is None:
            return runtime_name()
        return f"onnxruntime-{importlib.metadata.version('onnxruntime')}"

    def __enter__(self) -> Self:
        layer = read_output_layer(self.path)
        n_context = min(self.max_context, layer.context_tokens)
        engine: _Engine = (
            LlamaServer(self.path, n_context, layer.matrix.shape)
            if self._layout is None
            else _Here(self.path, self._layout, layer)
        )
        self._reader = _Reader(
            engine, layer, n_context, f"{__version__}|{self.name}|{self.runtime}", self._store
        )
        return self

    def __exit__(self, *error: object) -> None:
        # Dropping the last reference stops the server's threads and frees its memory.
        self._reader = None

    @property
    def context_tokens(self) -> int:
        """Tokens read at a time, including the BOS token."""
        return self._opened.n_context

    def score(self, text: str, check: Callable[[], None] | None = None) -> TokenSurprisal:
        """The surprisal of each token, the same bytes on the same machine whatever else is scored.

        The first token is scored after the beginning-of-sequence token (BOS), if the model's
        tokeniser adds one; otherwise it is only read. Control tokens in the text are read as
        characters; halves of characters, and characters that the tokeniser drops or replaces by
        others, are read as `?`.

        A text beyond the context is read in windows that overlap by half: a window's first half was
        scored in the previous one and is read again, so each token is scored once, after at least
        half a context. Every window begins with BOS, if there is one. `check` is called
        periodically; an exception it raises stops the reading. Raises `CallFailed` if the model
        fails, `ModelError` if its tokeniser changes the text, so that tokens cannot be located.
        """
        reader = self._opened
        text, tokens, pieces = reader.read(text)
        n_before = _n_before(text, pieces)
        if n_before is None:
            raise ModelError(
                f"{self.path}: its tokeniser changes the characters of a text, so surprisals "
                "cannot be located in it; choose another model"
            )
        starts, ends = _places(text.encode(), [len(piece) for piece in pieces], n_before)
        return TokenSurprisal(starts, ends, reader.nats(tokens, check or _go_on))

    def likelihood(self, text: str) -> Likelihood:
        """The likelihood of one text, which is read as by `score`.

        Source: Bao et al. (2024), Fast-DetectGPT, sampling and scoring by one model, as in their
        `get_sampling_discrepancy_analytic`; their baseline `get_logrank` is this log-rank with the
        opposite sign. Raises `CallFailed` if the model fails.
        """
        reader = self._opened
        _, tokens, _ = reader.read(text)
        if not tokens:
            return Likelihood(0, missing_reason="the text has no tokens")
        figures = reader.likelihoods(tokens)
        if not len(figures):
            why = "the text is a single token, with nothing before it"
            return Likelihood(0, missing_reason=why)
        return Likelihood.of(figures)

    @property
    def _opened(self) -> _Reader:
        if self._reader is None:
            raise RuntimeError("open the model first: with SurprisalModel(...) as model")
        return self._reader


class _Engine(Protocol):
    """Splits a text into tokens, and reads them."""

    beginning: list[int]
    """The token that the tokeniser puts before a text, if any."""
    keeps_states: bool
    """States before a change are the same bytes whatever follows."""

    def tokenise(self, text: str) -> tuple[list[int], list[bytes]]:
        """The tokens, and the bytes of each."""

    def states(self, tokens: list[int], check: Callable[[], None]) -> NDArray[np.float32]:
        """Last hidden states after the final norm: float32, shape (n_tokens, n_dimensions)."""


class _Here:
    """A model of the Llama family, in this process."""

    keeps_states = True

    def __init__(self, path: Path, layout: Layout, layer: OutputLayer) -> None:
        check_runtime()
        words = ByteWords(path, layout)
        self.beginning, self.tokenise = words.beginning, words.tokenise
        is_tied = "output.weight" not in layout.tensors
        embedding = layer.matrix if is_tied else unpacked(path, layout.tensors["token_embd.weight"])
        self._open = partial(Llama, path, layout, embedding, n_threads())
        self._llama: Llama | None = None

    def states(self, tokens: list[int], check: Callable[[], None]) -> NDArray[np.float32]:
        if self._llama is None:
            # Only now: what is known from earlier needs no model.
            self._llama = self._open()
        return self._llama.states(tokens, check)


class _Reader:
    """A model in memory, and its output layer."""

    def __init__(
        self,
        engine: _Engine,
        layer: OutputLayer,
        n_context: int,
        name: str,
        store: SurprisalStore | None,
    ) -> None:
        self._engine, self._layer = engine, layer
        self._name, self._store = f"{name}\n".encode(), store
        self.n_context = n_context
        self.tokenise = engine.tokenise
        self._known: dict[bytes, NDArray[np.float32]] = {}
        # The last window read, and its figures by the positions of the states they come from.
        self._last: tuple[list[int], dict[tuple[int, int], NDArray[np.float32]]] = ([], {})

    def read(self, text: str) -> tuple[str, list[int], list[bytes]]:
        """The text as the tokeniser reproduces it, if it can, its tokens, and the bytes of each."""
        text = encodable(text)
        tokens, pieces = self.tokenise(text)
        if _n_before(text, pieces) is None:
            text = self.readable(text)
            tokens, pieces = self.tokenise(text)
        return text, tokens, pieces

    def readable(self, text: str) -> str:
        """The text with `?` for each character that the tokeniser does not reproduce."""
        characters = sorted(set(text) - {"\n"})
        _, pieces = self.tokenise("".join(f"\n{character}" for character in characters))
        # Each character comes back on its own line; the first line is what the tokeniser adds
        # before.
        _, *back = b"".join(pieces).split(b"\n")
        if len(back) != len(characters):
            return text
        pairs = zip(characters, back, strict=True)
        return text.translate({ord(c): "?" for c, found in pairs if c.encode() != found})

    def nats(self, tokens: list[int], check: Callable[[], None]) -> NDArray[np.float32]:
        """The surprisal of each token: float32, shape (n_tokens,)."""
        found = np.full(len(tokens), np.nan, np.float32)
        for window, n_known, end in self._windows(tokens):
            found[end - (len(window) - n_known) : end] = self._window(window, n_known, check)
        return found

    def likelihoods(self, tokens: list[int]) -> NDArray[np.float64]:
        """`OutputLayer.likelihoods` of all tokens after something: float64, shape (n, 4)."""
        found = [np.empty((0, 4))]
        for window, n_known, _ in self._windows(tokens):
            states = self._engine.states(window, _go_on)
            for start in range(n_known - 1, len(window) - 1, _SCORED_TOKENS):
                end = min(start + _SCORED_TOKENS, len(window) - 1)
                came = window[start + 1 : end + 1]
                found.append(
                    self._layer.likelihoods(states[start:end], came, n_threads=n_threads())
                )
        return np.concatenate(found)

    def _windows(self, tokens: list[int]) -> Iterator[tuple[list[int], int, int]]:
        """Each window with its mark, how many of its tokens are not scored, and its end."""
        mark = self._engine.beginning
        for start, first, end in windows(len(tokens), self.n_context - len(mark)):
            window = mark + tokens[start:end]
            n_known = max(1, len(mark) + first - start)
            if n_known < len(window):
                yield window, n_known, end

    def _window(
        self, tokens: list[int], n_known: int, check: Callable[[], None]
    ) -> NDArray[np.float32]:
        """The surprisal of a window's tokens from the `n_known`-th on; cached, since the next draft
        of a text shares most windows before the first change with the previous one."""
        key = np.array([n_known, *tokens], np.int64).tobytes()
        nats = self._known.pop(key, None)
        if nats is None and self._store is not None:
            nats = self._store.find(self._name + key, len(tokens) - n_known)
        if nats is None:
            nats = self._scored(tokens, n_known, check)
            if self._store is not None:
                self._store.keep(self._name + key, nats)
        self._known[key] = nats
        if len(self._known) > _MAX_KNOWN:
            # Evict the least recently used one.
            del self._known[next(iter(self._known))]
        return nats

    def _scored(
        self, tokens: list[int], n_known: int, check: Callable[[], None]
    ) -> NDArray[np.float32]:
        """Like `_window`; steps shared with the previous window are not scored again."""
        states = self._engine.states(tokens, check)
        keeps = self._engine.keeps_states
        step = _SCORED_TOKENS if keeps else len(tokens)
        before, scored = self._last if keeps else ([], {})
        n_same = n_alike(tokens, before)
        found: dict[tuple[int, int], NDArray[np.float32]] = {}
        for start in range(0, len(tokens) - 1, step):
            # The state at a position predicts the token at the next.
            first, end = max(start, n_known - 1), min(start + step, len(tokens) - 1)
            if first >= end:
                continue
            if (first, end) in scored and end < n_same:
                found[first, end] = scored[first, end]
                continue
            check()
            came = tokens[first + 1 : end + 1]
            nats = self._layer.surprisals(states[first:end], came, n_threads=n_threads())
            found[first, end] = nats.astype(np.float32)
        self._last = tokens, found
        return np.concatenate(list(found.values()))


def _go_on() -> None:
    """The default check, which never stops the reading."""


def _layout_of_llama(path: Path) -> Layout | None:
    """The layout of a file that this process can run; None for another, or a damaged one."""
    try:
        layout = read_layout(path)
        is_ours = is_llama(layout) and has_byte_words(path, layout)
    except (ImportError, OSError, ValueError, LookupError, TypeError, OverflowError):
        # The code that opens the file reports what is wrong with it.
        return None
    return layout if is_ours else None


def _n_before(text: str, pieces: Sequence[bytes]) -> int | None:
    """Bytes that tokens put before a text: none or a space. None if they are of another text."""
    joined, data = b"".join(pieces), text.encode()
    if joined == data:
        return 0
    return 1 if joined == b" " + data else None


def _places(
    data: bytes, n_bytes: Sequence[int], n_before: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Locate tokens, given by number of bytes, in UTF-8 `data`: starts and ends in characters.

    The first `n_before` bytes of the tokens come before the text.
    """
    borders = np.cumsum([0, *n_bytes], dtype=np.int64) - n_before
    borders = np.maximum(borders, 0)
    begins = (np.frombuffer(data, np.uint8) & 0xC0) != 0x80
    # Characters that begin before each byte, and before the end.
    n_begun = np.concatenate([[0], np.cumsum(begins, dtype=np.int64)])
    ends = n_begun[borders[1:]]
    # If a boundary lies within a character, that character began before it.
    is_within = np.append(~begins, False)[borders[:-1]]
    starts = n_begun[borders[:-1]] - is_within
    return starts, ends
