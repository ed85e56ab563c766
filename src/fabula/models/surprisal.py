"""How surprising a language model finds each token of a text (extra `[local]`).

llama.cpp's server tells probabilities of what it writes, not of what it reads. In embedding mode,
without pooling, it does tell each token's last hidden state, after the final norm; the logits are
that times the output layer, which is read from the same GGUF. Beside torch on unpacked weights
(`models/likelihood.py`) this needs no torch and starts sooner, and differs by what llama.cpp rounds
to 8 bits between 4-bit weights: by 0.05 nats a token on average, 0.3 at most seen.
"""

from __future__ import annotations

import json
import math
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fabula.errors import CallFailed, ModelError
from fabula.models.local import LocalModel, embedded_model, has_gpu, n_threads
from fabula.models.output_layer import OutputLayer, read_output_layer
from fabula.models.windows import windows
from fabula.text.sentences import encodable

__all__ = ["SurprisalModel", "TokenSurprisal"]

_MAX_CONTEXT = 2048
_TIMEOUT_S = 3600
# Windows whose figures are remembered: those of two drafts of a book, 6 MB.
_MAX_KNOWN = 256
# The server is on loopback, whatever proxies the environment names.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True, eq=False)
class TokenSurprisal:
    """The tokens of a text and how surprising each is after what stands before it."""

    starts: NDArray[np.int64]
    """int64, shape (n_tokens,): offset of the first character of which a token holds a part."""
    ends: NDArray[np.int64]
    """int64, shape (n_tokens,): offset after the last one; tokens share a split character."""
    nats: NDArray[np.float32]
    """float32, shape (n_tokens,): -log p; NaN for a first token before which nothing stands."""

    @property
    def bits(self) -> NDArray[np.float64]:
        """-log2 p: float64, shape (n_tokens,)."""
        return self.nats.astype(np.float64) / math.log(2)


class SurprisalModel:
    """A causal language model that reads texts: `with SurprisalModel("local") as model`.

    `local` is the embedded GGUF, `PATH.gguf` another. Texts are read `max_context` tokens at a
    time, or as many as the model was trained on, if they are fewer. Raises `ModelError`.
    """

    def __init__(self, path_or_spec: str | Path, *, max_context: int = _MAX_CONTEXT) -> None:
        if max_context < 4:
            raise ModelError(f"a context of {max_context} tokens is too short to score a text")
        self.max_context = max_context
        self.path = embedded_model() if str(path_or_spec) == "local" else Path(path_or_spec)
        self.name = LocalModel(self.path).name
        self._reader: _Reader | None = None

    def __enter__(self) -> Self:
        self._reader = _Reader(self.path, read_output_layer(self.path), self.max_context)
        return self

    def __exit__(self, *error: object) -> None:
        # Dropping the last reference stops the server's threads and frees its memory.
        self._reader = None

    @property
    def context_tokens(self) -> int:
        """Tokens that are read at a time, with the one that marks the beginning."""
        return self._opened.n_context

    def score(self, text: str) -> TokenSurprisal:
        """The surprisal of each token, the same bytes on the same machine whatever else is scored.

        The first token is scored after the mark of a beginning (BOS), where the model's own
        tokeniser puts one before a text; else it is only read. What looks like a control token is
        taken as the characters it is; halves of characters, and characters that the tokeniser drops
        or takes for others, are read as `?`.

        A text beyond the context is read in windows that overlap by half, as by
        `LikelihoodModel.score`. Raises `CallFailed` where the model fails, `ModelError` where its
        tokeniser changes the text, so that no place can be said.
        """
        reader, text = self._opened, encodable(text)
        tokens, pieces = reader.tokenise(text)
        n_before = _n_before(text, pieces)
        if n_before is None:
            text = reader.readable(text)
            tokens, pieces = reader.tokenise(text)
            n_before = _n_before(text, pieces)
        if n_before is None:
            raise ModelError(
                f"{self.path}: its tokeniser changes the characters of a text, so surprisals "
                "cannot be located in it; choose another model"
            )
        starts, ends = _places(text.encode(), [len(piece) for piece in pieces], n_before)
        return TokenSurprisal(starts, ends, reader.nats(tokens))

    @property
    def _opened(self) -> _Reader:
        if self._reader is None:
            raise RuntimeError("open the model first: with SurprisalModel(...) as model")
        return self._reader


class _Reader:
    """llama.cpp with the model in memory, and its output layer."""

    def __init__(self, path: Path, layer: OutputLayer, max_context: int) -> None:
        self._path, self._layer = path, layer
        self.n_context = min(max_context, layer.context_tokens)
        self._server = _started(path, self.n_context)
        plain, marked = (self.tokenise("a", is_marked=is_marked)[0] for is_marked in (False, True))
        places = [k for k in range(len(marked)) if marked[k : k + len(plain)] == plain]
        self._beginning = marked[: places[0]] if places else []
        self._known: dict[bytes, NDArray[np.float32]] = {}

    def tokenise(self, text: str, *, is_marked: bool = False) -> tuple[list[int], list[bytes]]:
        """The tokens, and the bytes of each."""
        request = {
            "content": text,
            "add_special": is_marked,
            "parse_special": False,
            "with_pieces": True,
        }
        found = self._call("/tokenize", request)["tokens"]
        # A piece that is not whole UTF-8 comes as a list of bytes.
        pieces = [
            one["piece"].encode() if isinstance(one["piece"], str) else bytes(one["piece"])
            for one in found
        ]
        return [int(one["id"]) for one in found], pieces

    def readable(self, text: str) -> str:
        """The text with `?` for each character that the tokeniser does not give back."""
        characters = sorted(set(text) - {"\n"})
        _, pieces = self.tokenise("".join(f"\n{character}" for character in characters))
        # What comes back is each character on its own line; a first line is what stands before.
        _, *back = b"".join(pieces).split(b"\n")
        if len(back) != len(characters):
            return text
        pairs = zip(characters, back, strict=True)
        return text.translate({ord(c): "?" for c, found in pairs if c.encode() != found})

    def nats(self, tokens: list[int]) -> NDArray[np.float32]:
        """The surprisal of each token: float32, shape (n_tokens,)."""
        found = np.full(len(tokens), np.nan, np.float32)
        mark = self._beginning
        for start, first, end in windows(len(tokens), self.n_context - len(mark)):
            window = mark + tokens[start:end]
            n_known = max(1, len(mark) + first - start)
            if n_known < len(window):
                found[end - (len(window) - n_known) : end] = self._window(window, n_known)
        return found

    def _window(self, tokens: list[int], n_known: int) -> NDArray[np.float32]:
        """The surprisal of a window's tokens from the `n_known`-th on; remembered, since the next
        draft of a text has most windows before the first change in common with the last."""
        key = np.array([n_known, *tokens], np.int64).tobytes()
        nats = self._known.pop(key, None)
        if nats is None:
            states = self._states(tokens)[n_known - 1 : -1]
            scored = self._layer.surprisals(states, tokens[n_known:], n_threads=n_threads())
            nats = scored.astype(np.float32)
        self._known[key] = nats
        if len(self._known) > _MAX_KNOWN:
            # The one that was asked for longest ago.
            del self._known[next(iter(self._known))]
        return nats

    def _states(self, tokens: list[int]) -> NDArray[np.float32]:
        """Last hidden states after the final norm: float32, shape (n_tokens, n_dimensions)."""
        reply = self._call("/embeddings", {"content": tokens, "embd_normalize": -1})
        states = np.array(reply[0]["embedding"], np.float32)
        if states.shape != (len(tokens), self._layer.matrix.shape[1]):
            raise ModelError(
                f"{self._path}: cannot compute surprisal with this model: its hidden states have "
                f"shape {states.shape}, its output layer {self._layer.matrix.shape}"
            )
        return states

    def _call(self, path: str, request: dict[str, Any]) -> Any:
        asked = urllib.request.Request(
            f"{self._server.listening_address}{path}",
            json.dumps(request).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with _opener.open(asked, timeout=_TIMEOUT_S) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")
            raise CallFailed(f"the local model failed: {said}") from error
        except (OSError, ValueError) as error:
            raise CallFailed(f"the local model failed: {error}") from error


def _started(path: Path, n_context: int) -> Any:
    try:
        import xllamacpp
    except ImportError as error:
        raise ModelError("local models need xllamacpp; run: pip install 'fabula[local]'") from error
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.embedding = True
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_NONE
    # A window is read in one batch, and leaves nothing behind.
    params.n_ctx = params.n_batch = params.n_ubatch = n_context
    params.n_parallel = 1
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.warmup = False
    # Without a GPU there is nothing to fit, and finding that out takes as long as the start.
    params.fit_params = has_gpu()
    params.verbosity = -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = n_threads()
    try:
        return xllamacpp.Server(params)
    except (RuntimeError, ValueError, OSError) as error:
        raise ModelError(f"{path}: cannot load the model ({error})") from error


def _n_before(text: str, pieces: Sequence[bytes]) -> int | None:
    """How many bytes tokens put before a text: none or a space. None where they are another's."""
    joined, data = b"".join(pieces), text.encode()
    if joined == data:
        return 0
    return 1 if joined == b" " + data else None


def _places(
    data: bytes, n_bytes: Sequence[int], n_before: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where tokens of so many bytes stand in UTF-8 `data`, in characters: starts and ends.

    The first `n_before` bytes of the tokens stand before the text.
    """
    borders = np.cumsum([0, *n_bytes], dtype=np.int64) - n_before
    borders = np.maximum(borders, 0)
    begins = (np.frombuffer(data, np.uint8) & 0xC0) != 0x80
    # Characters that begin before each byte, and before the end.
    n_begun = np.concatenate([[0], np.cumsum(begins, dtype=np.int64)])
    ends = n_begun[borders[1:]]
    # The character that a border lies within began before it.
    is_within = np.append(~begins, False)[borders[:-1]]
    starts = n_begun[borders[:-1]] - is_within
    return starts, ends
