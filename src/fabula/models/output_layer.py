"""The output layer of a language model in a GGUF file: from hidden states to probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.errors import ModelError
from fabula.models.gguf_layout import Layout, Tensor, read_layout, unpacked

# Logits per thread: 64 MiB of float32. With fewer rows at a time, BLAS would repack the matrix for
# each few of them, which takes longer than multiplying.
_CHUNK_FLOATS = 1 << 24
# Numbers per step of a softmax: 8 MiB, so that several arrays fit into the processor's cache.
_STEP_FLOATS = 1 << 21
# exp of this is 0 in float32; the -inf of a token that cannot come would give 0 times -inf.
_LOWEST = np.float32(-1e4)
# llama.cpp scales the last hidden states or logits of these, without a setting in the file.
_SCALED = frozenset({"grok", "minicpm", "minicpm3"})
_USUAL_CONTEXT = 2048
_MORE_THAN_A_MATRIX = "its output layer is more than a matrix"


@dataclass(frozen=True, slots=True, eq=False)
class OutputLayer:
    """The layer between a model's last hidden state and its logits."""

    matrix: NDArray[np.float32]
    """float32, shape (n_vocabulary, n_dimensions)."""
    bias: NDArray[np.float32] | None
    """float32, shape (n_vocabulary,)."""
    softcap: float | None
    """Logits x become c tanh(x / c)."""
    context_tokens: int
    """The context length the model was trained on."""

    def surprisals(
        self, states: NDArray[np.float32], tokens: Sequence[int], *, n_threads: int = 1
    ) -> NDArray[np.float64]:
        """-log p of each token after the state before it, in nats: float64, shape (n_tokens,).

        `states` float32, shape (n_tokens, n_dimensions). Logits in float32, a few rows at a time on
        each thread; their sums in float64. The same bytes with any number of threads.
        """
        found = self._in_chunks(_surprisals, states, tokens, n_threads)
        return np.concatenate([np.empty(0), *found])

    def likelihoods(
        self, states: NDArray[np.float32], tokens: Sequence[int], *, n_threads: int = 1
    ) -> NDArray[np.float64]:
        """Of each token after the state before it: log p, log rank, and the mean and variance of
        log p over all tokens, weighted by p: float64, shape (n_tokens, 4).

        Computed as `surprisals`; equal logits all have the best rank.
        """
        found = self._in_chunks(_likelihoods, states, tokens, n_threads)
        return np.concatenate([np.empty((0, 4)), *found])

    def _in_chunks(
        self,
        figures: Callable[[NDArray[np.float32], NDArray[np.int64]], NDArray[np.float64]],
        states: NDArray[np.float32],
        tokens: Sequence[int],
        n_threads: int,
    ) -> list[NDArray[np.float64]]:
        """The figures of logits and tokens, a few rows at a time on each thread, in order."""
        from threadpoolctl import threadpool_limits

        n_rows = max(1, _CHUNK_FLOATS // len(self.matrix))
        came = np.asarray(tokens, np.int64)
        parts = [slice(k, k + n_rows) for k in range(0, len(came), n_rows)]
        # How BLAS splits a product over its own threads affects the last digit.
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(n_threads) as pool:
            return list(pool.map(lambda p: figures(self._logits(states[p]), came[p]), parts))

    def _logits(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        """float32, shape (n_tokens, n_vocabulary)."""
        logits: NDArray[np.float32] = states @ self.matrix.T
        if self.bias is not None:
            logits += self.bias
        if self.softcap is not None:
            logits /= self.softcap
            np.tanh(logits, out=logits)
            logits *= self.softcap
        return logits


def _surprisals(logits: NDArray[np.float32], tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    logits -= logits.max(axis=1, keepdims=True)
    own = logits[np.arange(len(logits)), tokens].astype(np.float64)
    np.exp(logits, out=logits)
    surprisals: NDArray[np.float64] = np.log(logits.sum(axis=1, dtype=np.float64)) - own
    return surprisals


def _likelihoods(logits: NDArray[np.float32], tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    n_rows = max(1, _STEP_FLOATS // logits.shape[1])
    found = np.empty((len(tokens), 4))
    for start in range(0, len(tokens), n_rows):
        log_p, came = logits[start : start + n_rows], tokens[start : start + n_rows]
        at = np.arange(len(came))
        rank = 1 + (log_p > log_p[at, came][:, None]).sum(axis=1)
        log_p -= log_p.max(axis=1, keepdims=True)
        total = np.exp(log_p).sum(axis=1, dtype=np.float64)
        own = log_p[at, came] - np.log(total)
        log_p -= np.log(total).astype(np.float32)[:, None]
        p = np.exp(log_p)
        np.maximum(log_p, _LOWEST, out=log_p)
        mean = (p * log_p).sum(axis=1, dtype=np.float64)
        # About the mean, not E[x²] - E[x]²: never negative, and without cancellation.
        log_p -= mean.astype(np.float32)[:, None]
        log_p *= log_p
        log_p *= p
        found[start : start + n_rows] = np.stack(
            [own, np.log(rank), mean, log_p.sum(axis=1, dtype=np.float64)], axis=1
        )
    return found


def read_output_layer(path: Path) -> OutputLayer:
    """The output layer of a GGUF, unpacked to float32.

    Raises `ModelError` if the file is damaged, or if its logits are not the last hidden state times
    a matrix, plus a bias, with a soft cap.
    """
    try:
        import threadpoolctl  # noqa: F401 (needed when the layer is used)

        layout = read_layout(path)
        tensors = layout.tensors
        matrix = tensors.get("output.weight") or tensors.get("token_embd.weight")
        _check(path, layout, matrix)
        assert matrix is not None
        bias = tensors.get("output.bias")
        return OutputLayer(
            matrix=unpacked(path, matrix),
            bias=None if bias is None else unpacked(path, bias),
            softcap=_ending(layout.settings, ".final_logit_softcapping") or None,
            context_tokens=_ending(layout.settings, ".context_length") or _USUAL_CONTEXT,
        )
    except ImportError as error:
        raise ModelError(
            f"surprisals of texts need {error.name}; run: pip install 'fabula[local]'"
        ) from error
    except NotImplementedError as error:
        raise ModelError(
            f"{path}: its output layer has an unsupported packing ({error}); choose another "
            "quantisation of the model"
        ) from error
    except (OSError, ValueError, LookupError, TypeError, OverflowError, MemoryError) as error:
        raise ModelError(f"{path}: cannot load the model ({error})") from error


def _ending(settings: dict[str, Any], name: str) -> Any:
    """The setting with this name, which follows the architecture's, or None."""
    return next((value for key, value in settings.items() if key.endswith(name)), None)


def _check(path: Path, layout: Layout, matrix: Tensor | None) -> None:
    """Raises `ModelError` if a token's probability would not be the one the model defines."""
    settings, tensors = layout.settings, layout.tensors

    def refuse(why: str) -> None:
        raise ModelError(f"{path}: cannot compute surprisal with this model: {why}")

    if (_ending(settings, "split.count") or 1) > 1 or matrix is None:
        refuse("the file is incomplete; join its parts with llama-gguf-split --merge")
        return
    architecture = settings.get("general.architecture")
    if architecture in _SCALED:
        refuse(f"{_MORE_THAN_A_MATRIX} ({architecture})")
    for key in settings:
        if key.endswith(".logit_scale"):
            refuse(f"{_MORE_THAN_A_MATRIX} ({key})")
    for name in tensors:
        if name.startswith("output.") and name not in ("output.weight", "output.bias"):
            refuse(f"{_MORE_THAN_A_MATRIX} ({name})")
    reads_backwards = _ending(settings, ".attention.causal") is False
    if reads_backwards or _ending(settings, ".decoder_start_token_id") is not None:
        refuse("it does not read from left to right")
    n_dimensions, n_words = matrix.shape
    if n_dimensions != _ending(settings, ".embedding_length"):
        refuse(f"its hidden states and its output layer ({n_dimensions}) differ in size")
    if n_words < settings.get("tokenizer.ggml.tokens", 0):
        refuse("it has more tokens than its output layer")
