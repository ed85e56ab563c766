"""The surprisal of each token of a text under a language model, and the text's likelihood.

The logits are each token's last hidden state, after the final norm, times the output layer. For
models of the Llama family, such as the embedded one, the states come from ONNX Runtime; for others
from llama.cpp (`models/llama.py`). Needs the extra `[local]`.
"""

from __future__ import annotations

import functools
import importlib.metadata
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fabula.core import __version__
from fabula.core.cached_results import CachedResults, Recent
from fabula.core.errors import ModelError
from fabula.models.gguf_layout import read_layout, unpacked
from fabula.models.llama import Llama, LlamaServer, llama_layout, n_alike
from fabula.models.local import LocalModel, embedded_model, n_threads, runtime_name
from fabula.text.sentences import encodable

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
# Logits per thread: 64 MiB of float32. With fewer rows at a time, BLAS would repack the matrix for
# each few of them, which takes longer than multiplying.
_CHUNK_FLOATS = 1 << 24
# Numbers per step of a softmax: 8 MiB, so that several arrays fit into the processor's cache.
_STEP_FLOATS = 1 << 21
_STEP_ROWS = 1 << 11
# exp of this is 0 in float32; the -inf of a token that cannot come would give 0 times -inf.
_LOWEST = np.float32(-1e4)
# llama.cpp scales the last hidden states or logits of these, without a setting in the file.
_SCALED = frozenset({"grok", "minicpm", "minicpm3"})
_USUAL_CONTEXT = 2048
_OTHER_OUTPUT = re.compile(r"output\.(?!(?:weight|bias)\Z)")
_MORE_THAN_A_MATRIX = "its output layer is more than a matrix"


@dataclass(frozen=True, slots=True, eq=False)
class OutputLayer:
    """The layer between a model's last hidden state and its logits."""

    matrix: Floats
    """float32, shape (n_vocabulary, n_dimensions)."""
    bias: Floats | None
    """float32, shape (n_vocabulary,)."""
    softcap: float | None
    """Logits x become c tanh(x / c)."""
    context_tokens: int
    """The context length the model was trained on."""

    def surprisals(self, states: Floats, tokens: Sequence[int], *, n_threads: int = 1) -> Doubles:
        """-log p of each token after the state before it, in nats: float64, shape (n_tokens,).

        `states` float32, shape (n_tokens, n_dimensions). Logits in float32, a few rows at a time on
        each thread; their sums in float64. The same bytes with any number of threads.
        """
        chunks = self._in_chunks(_surprisals, states, tokens, n_threads)
        return np.concatenate([np.empty(0), *chunks])

    def likelihoods(self, states: Floats, tokens: Sequence[int], *, n_threads: int = 1) -> Doubles:
        """Of each token after the state before it: log p, log rank, and the mean and variance of
        log p over all tokens, weighted by p: float64, shape (n_tokens, 4). Computed as
        `surprisals`; equal logits all have the best rank."""
        chunks = self._in_chunks(_likelihoods, states, tokens, n_threads)
        return np.concatenate([np.empty((0, 4)), *chunks])

    def differences(self, states: Floats, tokens: Sequence[int], others: Sequence[int]) -> Doubles:
        """log p of another token minus that of each token, after the state before it: float64,
        shape (n_tokens,), without a soft cap. `states` float32, shape (n_tokens, n_dimensions).
        """
        gains = np.empty(len(states))
        for k in range(0, len(states), _STEP_ROWS):
            part = slice(k, k + _STEP_ROWS)
            apart = self.matrix[others[part]] - self.matrix[tokens[part]]
            gains[part] = np.einsum("ij,ij->i", apart, states[part], dtype=np.float64)
        if self.bias is not None:
            gains += self.bias[others] - self.bias[tokens]
        return gains

    def _in_chunks(
        self,
        figures: Callable[[Floats, NDArray[np.int64]], Doubles],
        states: Floats,
        tokens: Sequence[int],
        n_threads: int,
    ) -> list[Doubles]:
        """The figures of logits and tokens, a few rows at a time on each thread, in order."""
        from threadpoolctl import threadpool_limits

        n_rows = max(1, _CHUNK_FLOATS // len(self.matrix))
        targets = np.asarray(tokens, np.int64)
        parts = [slice(k, k + n_rows) for k in range(0, len(targets), n_rows)]
        # How BLAS splits a product over its own threads affects the last digit.
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(n_threads) as pool:
            return list(pool.map(lambda p: figures(self._logits(states[p]), targets[p]), parts))

    def _logits(self, states: Floats) -> Floats:
        """float32, shape (n_tokens, n_vocabulary)."""
        logits: Floats = states @ self.matrix.T
        if self.bias is not None:
            logits += self.bias
        if self.softcap is not None:
            logits /= self.softcap
            np.tanh(logits, out=logits)
            logits *= self.softcap
        return logits


def _surprisals(logits: Floats, tokens: NDArray[np.int64]) -> Doubles:
    logits -= logits.max(axis=1, keepdims=True)
    scores = logits[np.arange(len(logits)), tokens].astype(np.float64)
    np.exp(logits, out=logits)
    surprisals: Doubles = np.log(logits.sum(axis=1, dtype=np.float64)) - scores
    return surprisals


def _likelihoods(logits: Floats, tokens: NDArray[np.int64]) -> Doubles:
    n_rows = max(1, _STEP_FLOATS // logits.shape[1])
    rows = np.empty((len(tokens), 4))
    for start in range(0, len(tokens), n_rows):
        log_p, targets = logits[start : start + n_rows], tokens[start : start + n_rows]
        at = np.arange(len(targets))
        rank = 1 + (log_p > log_p[at, targets][:, None]).sum(axis=1)
        log_p -= log_p.max(axis=1, keepdims=True)
        total = np.exp(log_p).sum(axis=1, dtype=np.float64)
        own_log_p = log_p[at, targets] - np.log(total)
        log_p -= np.log(total).astype(np.float32)[:, None]
        p = np.exp(log_p)
        np.maximum(log_p, _LOWEST, out=log_p)
        mean = (p * log_p).sum(axis=1, dtype=np.float64)
        # About the mean, not E[x²] - E[x]²: never negative, and without cancellation.
        log_p -= mean.astype(np.float32)[:, None]
        log_p *= log_p
        log_p *= p
        figures = [own_log_p, np.log(rank), mean, log_p.sum(axis=1, dtype=np.float64)]
        rows[start : start + n_rows] = np.stack(figures, axis=1)
    return rows


def read_output_layer(path: Path) -> OutputLayer:
    """The output layer of a GGUF, unpacked to float32. Raises `ModelError` if it is damaged, or if
    logits are not the last hidden state times a matrix, plus a bias, with a soft cap."""
    try:
        import threadpoolctl  # noqa: F401 (needed when the layer is used)

        layout = read_layout(path)
        tensors = layout.tensors
        matrix = tensors.get("output.weight") or tensors.get("token_embd.weight")
        settings = layout.settings
        why = ""
        if (_ending(settings, "split.count") or 1) > 1 or matrix is None:
            why = "the file is incomplete; join its parts with llama-gguf-split --merge"
        elif (architecture := settings.get("general.architecture")) in _SCALED:
            why = f"{_MORE_THAN_A_MATRIX} ({architecture})"
        elif scale := next((key for key in settings if key.endswith(".logit_scale")), ""):
            why = f"{_MORE_THAN_A_MATRIX} ({scale})"
        elif other := next((name for name in tensors if _OTHER_OUTPUT.match(name)), ""):
            why = f"{_MORE_THAN_A_MATRIX} ({other})"
        elif (
            _ending(settings, ".attention.causal") is False
            or _ending(settings, ".decoder_start_token_id") is not None
        ):
            why = "it does not read from left to right"
        elif matrix.shape[0] != _ending(settings, ".embedding_length"):
            why = f"its hidden states and its output layer ({matrix.shape[0]}) differ in size"
        elif matrix.shape[1] < settings.get("tokenizer.ggml.tokens", 0):
            why = "it has more tokens than its output layer"
        if why or matrix is None:
            # A token's probability would not be the one the model defines.
            raise ModelError(f"{path}: cannot compute surprisal with this model: {why}")
        bias = tensors.get("output.bias")
        softcap = _ending(settings, ".final_logit_softcapping") or None
        n_context = _ending(settings, ".context_length") or _USUAL_CONTEXT
        added = None if bias is None else unpacked(path, bias)
        return OutputLayer(unpacked(path, matrix), added, softcap, n_context)
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


def windows(n_tokens: int, n_window: int) -> Iterator[tuple[int, int, int]]:
    """Start, first scored token and end of each window; half of it was read in the one before."""
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
# Tokens after a swap that count, and the share of their surprisal that another word may take away:
# a swap that needs more is not read, nor an added word that does not make up for its own nats or is
# not among the likeliest at its place.
_SWAP_TOKENS, _SWAP_HOPE, _ADDED_COSTS, _ADDED_READ = 8, 0.45, 5.0, 2
# Swaps that are read together: no more tokens than those of a step.
_SWAPS_READ = 16
# Windows whose figures are cached: those of two drafts of a book, 6 MB.
_MAX_KNOWN = 256


@dataclass(frozen=True, slots=True, eq=False)
class TokenSurprisal:
    """The tokens of a text, and the surprisal of each given the preceding ones."""

    starts: NDArray[np.int64]
    """int64, shape (n_tokens,): offset of the first character of which a token holds a part."""
    ends: NDArray[np.int64]
    """int64, shape (n_tokens,): offset after the last one; tokens share a split character."""
    nats: Floats
    """float32, shape (n_tokens,): -log p; NaN for a first token with nothing before it."""

    @property
    def bits(self) -> Doubles:
        """-log2 p: float64, shape (n_tokens,)."""
        return self.nats.astype(np.float64) / math.log(2)


@dataclass(frozen=True, slots=True)
class Swap:
    """Other characters for some of a text, half-open, or none; or more at a place of the text."""

    start: int
    end: int
    other: str
    least: float
    """What it must gain to be of interest, in nats."""
    first: float = -math.inf
    """What its first token alone must gain."""


@dataclass(frozen=True, slots=True)
class _Branch:
    """A swap that is read: the window goes on with `own` after `n_before` of its tokens."""

    number: int
    n_before: int
    own: list[int]
    targets: list[int]
    """What follows the last tokens of `own`."""
    so_far: float
    """What is gained by the first token, and by all that the window has."""


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
    def of(cls, figures: Doubles) -> Likelihood:
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
        store: CachedResults | None = None,
    ) -> None:
        if max_context is not None and max_context < 4:
            raise ModelError(f"a context of {max_context} tokens is too short to score a text")
        self.path = embedded_model() if str(path_or_spec) == "local" else Path(path_or_spec)
        self.name = LocalModel(self.path).name
        self._layout = llama_layout(self.path)
        usual = _CONTEXT_OF_SERVER if self._layout is None else _CONTEXT_HERE
        self.max_context = max_context or usual
        self._store = store
        self._engine: Llama | LlamaServer | None = None

    @property
    def runtime(self) -> str:
        """The runtime of the model, and its version, for signatures: `onnxruntime-1.22.0`."""
        if self._layout is None:
            return runtime_name()
        return f"onnxruntime-{importlib.metadata.version('onnxruntime')}"

    def __enter__(self) -> Self:
        self._layer = layer = read_output_layer(self.path)
        self.context_tokens = min(self.max_context, layer.context_tokens)
        if self._layout is None:
            self._engine = LlamaServer(self.path, self.context_tokens, layer.matrix.shape)
        else:
            self._engine = Llama(self.path, self._layout, layer.matrix)
        self._key = f"surprisal 2\n{__version__}|{self.name}|{self.runtime}\n".encode()
        self._known: Recent[bytes, Floats] = Recent(_MAX_KNOWN, lambda *_: 1)
        # The last window read, and its figures by the positions of the states they come from.
        self._last: tuple[list[int], dict[tuple[int, int], Floats]] = ([], {})
        return self

    def __exit__(self, *error: object) -> None:
        # Dropping the last reference stops the server's threads and frees its memory.
        self._engine = None
        del self._layer, self._known, self._last

    @property
    def _opened(self) -> Llama | LlamaServer:
        if self._engine is None:
            raise RuntimeError("open the model first: with SurprisalModel(...) as model")
        return self._engine

    def score(
        self,
        text: str,
        check: Callable[[], None] | None = None,
        report: Callable[[float], None] | None = None,
    ) -> TokenSurprisal:
        """The surprisal of each token, the same bytes on the same machine whatever else is scored.

        The first token is scored after the beginning-of-sequence token (BOS), if the model's
        tokeniser adds one; otherwise it is only read. Control tokens in the text are read as
        characters; halves of characters, and characters that the tokeniser drops or replaces by
        others, are read as `?`.

        A text beyond the context is read in windows that overlap by half: a window's first half was
        scored in the previous one and is read again, so each token is scored once, after at least
        half a context. Every window begins with BOS, if there is one. `check` is called
        periodically; an exception it raises stops the reading. `report` is called after each window
        with the share of the text read so far. Raises `CallFailed` if the model
        fails, `ModelError` if its tokeniser changes the text, so that tokens cannot be located.
        """
        text, tokens, pieces = self._read(text)
        if (n_before := _n_before(text, pieces)) is None:
            raise ModelError(
                f"{self.path}: its tokeniser changes the characters of a text, so surprisals "
                "cannot be located in it; choose another model"
            )
        # Where tokens begin and end: in bytes, `n_before` of them before the text, then characters.
        borders = np.cumsum([0, *map(len, pieces)], dtype=np.int64) - n_before
        borders = np.maximum(borders, 0)
        begins = (np.frombuffer(text.encode(), np.uint8) & 0xC0) != 0x80
        # Characters that begin before each byte, and before the end.
        n_begun = np.concatenate([[0], np.cumsum(begins, dtype=np.int64)])
        ends = n_begun[borders[1:]]
        # If a boundary lies within a character, that character began before it.
        is_within = np.append(~begins, False)[borders[:-1]]
        starts = n_begun[borders[:-1]] - is_within
        nats = self._nats(tokens, check or (lambda: None), report or (lambda _: None))
        return TokenSurprisal(starts, ends, nats)

    def likelihood(self, text: str) -> Likelihood:
        """The likelihood of one text, which is read as by `score`.

        Source: Bao et al. (2024), Fast-DetectGPT, sampling and scoring by one model, as in their
        `get_sampling_discrepancy_analytic`; their baseline `get_logrank` is this log-rank with the
        opposite sign. Raises `CallFailed` if the model fails.
        """
        _, tokens, _ = self._read(text)
        if not tokens:
            return Likelihood(0, missing_reason="the text has no tokens")
        parts = [np.empty((0, 4))]
        for window, n_known, _ in self._windows(tokens):
            states = self._opened.states(window, lambda: None)
            for start in range(n_known - 1, len(window) - 1, _SCORED_TOKENS):
                end = min(start + _SCORED_TOKENS, len(window) - 1)
                targets = window[start + 1 : end + 1]
                part = self._layer.likelihoods(states[start:end], targets, n_threads=n_threads())
                parts.append(part)
        figures = np.concatenate(parts)
        if not len(figures):
            why = "the text is a single token, with nothing before it"
            return Likelihood(0, missing_reason=why)
        return Likelihood.of(figures)

    @property
    def compares_words(self) -> bool:
        """Whether `gains` can be asked of this model."""
        return isinstance(self._opened, Llama)

    def gains(self, text: str, swaps: Sequence[Swap]) -> list[float | None]:
        """By how many nats each swap makes the text likelier: itself, and the 8 tokens after it.

        None if that is less than its `least`, or if it does not begin and end with a token. The
        text is read once, and then only the swaps that may still gain as much, from where they
        leave it. Raises `ModelError` if the model is run by llama.cpp, which does not keep what it
        has read.
        """
        engine = self._opened
        if not isinstance(engine, Llama):
            raise ModelError(
                f"{self.path}: cannot compare words with this model; unset FABULA_LOCAL_MODEL to "
                "use the embedded one"
            )
        line_break, _ = engine.tokenise("\n")
        tokens, pieces = engine.tokenise(encodable(text))
        window = [*(engine.beginning or line_break), *tokens, *line_break]
        states = engine.states(window, lambda: None)
        gained: list[float | None] = [None] * len(swaps)
        branches = self._branches(engine, window, states, self._placed(text, pieces, window), swaps)
        for k in range(0, len(branches), _SWAPS_READ):
            some = branches[k : k + _SWAPS_READ]
            read = engine.endings([(one.n_before, one.own) for one in some])
            targets = [token for one in some for token in one.targets]
            nats = self._layer.surprisals(np.concatenate(read), targets, n_threads=n_threads())
            for one in some:
                own, nats = nats[: len(one.own)], nats[len(one.own) :]
                gain = one.so_far - math.fsum(own)
                if gain >= swaps[one.number].least:
                    gained[one.number] = gain
        return gained

    def _placed(self, text: str, pieces: Sequence[bytes], window: list[int]) -> dict[int, int]:
        """By the number of characters before it, the place of each token in its window."""
        n_bytes = np.cumsum([0, *(len(c.encode(errors="replace")) for c in text)])
        begins = np.cumsum([0, *map(len, pieces)])
        first = len(window) - 1 - len(pieces)
        place_of = {int(begin): k for k, begin in enumerate(begins, first)}
        return {k: place_of[n] for k, n in enumerate(n_bytes.tolist()) if n in place_of}

    def _branches(
        self,
        engine: Llama,
        window: list[int],
        states: Floats,
        place_of: Mapping[int, int],
        swaps: Sequence[Swap],
    ) -> list[_Branch]:
        """The swaps that may gain as much as they must, by the reading of the text itself."""
        tokens_of = functools.cache(lambda other: engine.tokenise(other)[0] if other else [])
        located: list[tuple[int, int, int, list[int]]] = []
        for number, swap in enumerate(swaps):
            first, last = place_of.get(swap.start), place_of.get(swap.end)
            if first is not None and last is not None and (first < last or swap.other):
                located.append((number, first, last, tokens_of(swap.other)))
        # Both first tokens are after the same ones, so the sum over the vocabulary is not needed.
        gains = self._layer.differences(
            states[[first - 1 for _, first, _, _ in located]],
            [window[first] for _, first, _, _ in located],
            [(other or window[last:])[0] for _, _, last, other in located],
        ).tolist()
        begun = [
            (*one, gain)
            for one, gain in zip(located, gains, strict=True)
            if one[2] > one[1] + 1 or gain >= swaps[one[0]].first
        ]
        added: dict[int, list[float]] = defaultdict(list)
        for _, first, last, _, gain in begun:
            if first == last:
                added[first].append(gain)
        best = {first: sorted(gains)[-_ADDED_READ:][0] for first, gains in added.items()}
        places = sorted({
            k
            for _, first, last, _, _ in begun
            for k in range(first + 1, min(last + _SWAP_TOKENS, len(window)))
        })  # fmt: skip
        before = states[[k - 1 for k in places]]
        targets = [window[k] for k in places]
        nats = dict(
            zip(places, self._layer.surprisals(before, targets, n_threads=n_threads()), strict=True)
        )
        branches = []
        for number, first, last, other, gain in begun:
            swap, end = swaps[number], min(last + _SWAP_TOKENS, len(window))
            begin = max(first + 1, last)
            replaced = math.fsum(nats[k] for k in range(first + 1, last))
            after = math.fsum(nats[k] for k in range(begin, min(begin + _SWAP_TOKENS // 2, end)))
            least = swap.least + (1 if first < last else _ADDED_COSTS)
            own = [*other, *window[last:end]]
            is_hopeful = gain + replaced >= max(swap.first, least - _SWAP_HOPE * after)
            if len(own) > 1 and is_hopeful and (first < last or gain >= best[first]):
                so_far = math.fsum([gain, *(nats[k] for k in range(first + 1, end))])
                branches.append(_Branch(number, first, own[:-1], own[1:], so_far))
        return branches

    def _read(self, text: str) -> tuple[str, list[int], list[bytes]]:
        """The text as the tokeniser reproduces it, if it can, its tokens, and the bytes of each."""
        text = encodable(text)
        tokens, pieces = self._opened.tokenise(text)
        if _n_before(text, pieces) is not None:
            return text, tokens, pieces
        # With `?` for each character that the tokeniser does not reproduce: each comes back on its
        # own line; the first line is what the tokeniser adds before.
        characters = sorted(set(text) - {"\n"})
        _, pieces = self._opened.tokenise("".join(f"\n{character}" for character in characters))
        _, *back = b"".join(pieces).split(b"\n")
        if len(back) == len(characters):
            pairs = zip(characters, back, strict=True)
            text = text.translate({ord(c): "?" for c, read in pairs if c.encode() != read})
        return text, *self._opened.tokenise(text)

    def _nats(
        self, tokens: list[int], check: Callable[[], None], report: Callable[[float], None]
    ) -> Floats:
        """The surprisal of each token: float32, shape (n_tokens,)."""
        nats_of = np.full(len(tokens), np.nan, np.float32)
        for window, n_known, end in self._windows(tokens):
            # The surprisal of a window's tokens from the `n_known`-th on; cached, since the next
            # draft of a text shares most windows before the first change with the previous one.
            key = self._key + np.array([n_known, *window], np.int64).tobytes()
            n_scored = len(window) - n_known
            nats = self._known.get(key)
            if nats is None and self._store is not None:
                (stored,) = self._store.find([key])
                if stored is not None and len(stored) == 4 * n_scored:
                    nats = np.frombuffer(stored, "<f4").astype(np.float32)
            if nats is None:
                nats = self._scored(window, n_known, check)
                if self._store is not None:
                    self._store.keep({key: nats.astype("<f4").tobytes()})
            self._known.remember(key, nats)
            nats_of[end - n_scored : end] = nats
            report(end / len(tokens))
        return nats_of

    def _windows(self, tokens: list[int]) -> Iterator[tuple[list[int], int, int]]:
        """Each window with its mark, how many of its tokens are not scored, and its end."""
        mark = self._opened.beginning
        for start, first, end in windows(len(tokens), self.context_tokens - len(mark)):
            window = mark + tokens[start:end]
            n_known = max(1, len(mark) + first - start)
            if n_known < len(window):
                yield window, n_known, end

    def _scored(self, tokens: list[int], n_known: int, check: Callable[[], None]) -> Floats:
        """Of tokens from the `n_known`-th on; steps shared with the last window are known."""
        states = self._opened.states(tokens, check)
        keeps = self._opened.keeps_states
        step = _SCORED_TOKENS if keeps else len(tokens)
        last_tokens, scored = self._last if keeps else ([], {})
        n_same = n_alike(tokens, last_tokens)
        kept: dict[tuple[int, int], Floats] = {}
        for start in range(0, len(tokens) - 1, step):
            # The state at a position predicts the token at the next.
            first, end = max(start, n_known - 1), min(start + step, len(tokens) - 1)
            if first >= end:
                continue
            if (first, end) in scored and end < n_same:
                kept[first, end] = scored[first, end]
                continue
            check()
            targets = tokens[first + 1 : end + 1]
            nats = self._layer.surprisals(states[first:end], targets, n_threads=n_threads())
            kept[first, end] = nats.astype(np.float32)
        self._last = tokens, kept
        return np.concatenate(list(kept.values()))


def _n_before(text: str, pieces: Sequence[bytes]) -> int | None:
    """Bytes that tokens put before a text: none or a space. None if they are of another text."""
    joined, data = b"".join(pieces), text.encode()
    if joined == data:
        return 0
    return 1 if joined == b" " + data else None
