"""llama.cpp's server for reading texts, with any model that it runs (extra `[local]`).

It returns probabilities of the text it generates, not of the text it reads. In embedding mode
without pooling, it does return each token's last hidden state, after the final norm. Compared with
transformers on unpacked weights, surprisals differ by the rounding of activations to 8 bits in
llama.cpp: by 0.05 nats per token on average, 0.4 at most observed.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.errors import CallFailed, ModelError
from fabula.models.local import has_gpu, n_threads, runtime

_TIMEOUT_S = 3600
# The server is on loopback, so proxies in the environment do not apply.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class LlamaServer:
    """llama.cpp with the model in memory. Dropping the last reference stops its threads.

    `shape` is that of its output layer: (n_words, n_dimensions).
    """

    keeps_states = False

    def __init__(self, path: Path, n_context: int, shape: tuple[int, ...]) -> None:
        self._path, self._shape = path, shape
        xllamacpp = runtime()
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_NONE
        # A window is read in one batch, and leaves no state behind.
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
            self._server: Any = xllamacpp.Server(params)
        except (RuntimeError, ValueError, OSError) as error:
            raise ModelError(f"{path}: cannot load the model ({error})") from error
        plain, marked = (self.tokenise("a", is_marked=is_marked)[0] for is_marked in (False, True))
        places = [k for k in range(len(marked)) if marked[k : k + len(plain)] == plain]
        self.beginning = marked[: places[0]] if places else []

    def tokenise(self, text: str, *, is_marked: bool = False) -> tuple[list[int], list[bytes]]:
        """The tokens, and the bytes of each."""
        request = {"content": text, "add_special": is_marked}
        request |= {"parse_special": False, "with_pieces": True}
        found = self._call("/tokenize", request)["tokens"]
        # A piece that is not valid UTF-8 comes as a list of bytes.
        pieces = [
            one["piece"].encode() if isinstance(one["piece"], str) else bytes(one["piece"])
            for one in found
        ]
        return [int(one["id"]) for one in found], pieces

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
