"""The likelihood of a text under a language model in this process (extra `[neural]`).

llama.cpp's server returns probabilities of the text it generates, not of the text it reads, so the
weights are loaded by transformers and run by torch on the processor, in float32. Quantised weights
are unpacked first. llama.cpp also rounds activations to 8 bits, so its own figures for the same
GGUF differ: with 4-bit weights by 0.05 to 0.1 in a log-probability on average, 0.4 at most
observed; with the same weights in float32 by 0.002, 0.01 at most.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import inspect
import io
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fabula.errors import ModelError
from fabula.models.local import LocalModel, embedded_model, file_digest, n_threads
from fabula.models.windows import windows
from fabula.text.sentences import encodable

__all__ = ["Likelihood", "LikelihoodModel"]

# Tokens read at a time: this bounds the logits in memory to as many rows, not a whole context.
_STEP_TOKENS = 256
# Numbers per softmax: 8 MiB in float32, so that several fit into the processor's cache.
_CHUNK_FLOATS = 1 << 21
# A usual context, for models that name none (because they use relative positions).
_USUAL_CONTEXT = 2048
# exp of this is 0 in float32; a masked token's -inf would give 0 times -inf.
_LOWEST = -1e4
_WEIGHTS_AND_WORDS = {".bin", ".json", ".model", ".safetensors", ".txt"}


@dataclass(frozen=True, slots=True)
class Likelihood:
    """The likelihood of one text. A figure is None if `missing_reason` says why."""

    n_tokens: int
    """Tokens that were scored: all, except the first if nothing comes before it."""
    log_likelihood: float | None
    """Mean of log p(token | preceding tokens), in nats per token."""
    log_rank: float | None
    """Mean natural logarithm of the token's rank; 1 is the model's first choice."""
    curvature: float | None
    """Conditional probability curvature: by how many standard deviations the text is more
    probable than what the model itself would have written, token by token."""
    missing_reason: str | None = None


class LikelihoodModel:
    """A causal language model that scores texts; loaded on first use, which takes seconds.

    `local` is the embedded GGUF, `PATH.gguf` another, a folder a Hugging Face model directory.
    Only code of transformers itself is run, and nothing is downloaded. Raises `ModelError`.
    """

    def __init__(self, path_or_spec: str | Path, *, max_context: int | None = None) -> None:
        """`max_context` limits the tokens per window, if the model's context is too expensive."""
        if max_context is not None and max_context < 4:
            raise ModelError(f"a context of {max_context} tokens is too short to score a text")
        self._max_context = max_context
        self.path = embedded_model() if str(path_or_spec) == "local" else Path(path_or_spec)
        if not self.path.is_dir():
            self.name = LocalModel(self.path).name
        elif (self.path / "config.json").is_file():
            folder = self.path.resolve()
            self.name = f"local/{folder.name.lower()}@{_folder_digest(folder)}"
        else:
            raise ModelError(f"{self.path}: not a Hugging Face model directory (no config.json)")

    @property
    def context_tokens(self) -> int:
        """Tokens the model reads at a time, including the BOS token. Loads the model."""
        return self._reader.n_context

    def score(self, text: str) -> Likelihood:
        """The likelihood of one text, the same bytes on the same machine whatever else is scored.

        The first token is scored after the beginning-of-sequence token (BOS), if the model's
        tokeniser adds one; otherwise it is only read. Control tokens in the text are read as
        characters; halves of characters are read as `?`.

        A text beyond the context is read in windows that overlap by half: a window's first half was
        scored in the previous one and is read again, so each token is scored once, after at least
        half a context. Every window begins with BOS, if there is one.

        Source: Bao et al. (2024), Fast-DetectGPT, sampling and scoring by one model, as in their
        `get_sampling_discrepancy_analytic`; their baseline `get_logrank` is this log-rank with
        the opposite sign. Tied logits all have the best rank. Log-softmax in float32, sums in
        float64. Raises `ModelError`.
        """
        reader = self._reader
        tokens = reader.tokens_of(encodable(text))
        if not tokens:
            return _missing("the text has no tokens")
        if len(tokens) + len(reader.beginning) < 2:
            return _missing("the text is a single token, with nothing before it")
        return _likelihood(reader.figures(tokens))

    @cached_property
    def _reader(self) -> _Reader:
        names = ["torch", "transformers"]
        if not self.path.is_dir():
            names += ["accelerate", "gguf"]  # needed by transformers to read a GGUF
        torch, transformers, *_ = map(_library, names)
        tokenizer, network = _loaded(self.path, torch, transformers)
        config = network.config.get_text_config()
        n_context = getattr(config, "max_position_embeddings", None) or _USUAL_CONTEXT
        n_context = min(n_context, self._max_context or n_context)
        return _Reader(torch, tokenizer, network, n_context)


class _Reader:
    """The loaded weights and tokeniser."""

    def __init__(self, torch: Any, tokenizer: Any, network: Any, n_context: int) -> None:
        self._torch, self._tokenizer, self._network = torch, tokenizer, network
        # Releases of transformers from 5.24 have a new name for the state of earlier tokens.
        named = inspect.signature(network.forward).parameters
        self._state = "cache" if "cache" in named else "past_key_values"
        self.n_context = n_context
        marked = tokenizer("a")["input_ids"]
        has_mark = tokenizer.bos_token_id is not None and marked[:1] == [tokenizer.bos_token_id]
        self.beginning: list[int] = marked[:1] if has_mark else []

    def tokens_of(self, text: str) -> list[int]:
        found = self._tokenizer(
            text, add_special_tokens=False, split_special_tokens=True, verbose=False
        )
        return list(found["input_ids"])

    def figures(self, tokens: list[int]) -> list[list[float]]:
        """Log p, log rank, and mean and variance of log p, for each scored token."""
        with _threads(self._torch), self._torch.inference_mode():
            return [
                row
                for start, first, end in windows(len(tokens), self.n_context - len(self.beginning))
                for row in self._read(self.beginning + tokens[start:end], first - start)
            ]

    def _read(self, tokens: list[int], n_known: int) -> Iterator[list[float]]:
        """The figures of a window's tokens after BOS and the first `n_known`."""
        n_known = max(1, n_known + len(self.beginning))
        read = self._torch.tensor([tokens])
        past = None
        for start in range(0, len(tokens) - 1, _STEP_TOKENS):
            end = min(start + _STEP_TOKENS, len(tokens) - 1)
            reply = self._network(
                input_ids=read[:, start:end], use_cache=True, **{self._state: past}
            )
            past = getattr(reply, self._state, None)
            if past is None and end < len(tokens) - 1:
                raise ModelError("this model keeps no state between steps; name a transformer")
            begin = max(start, n_known - 1)
            if begin < end:
                logits = reply.logits[0, begin - start :]
                yield from _figures(self._torch, logits, read[0, begin + 1 : end + 1])


def _figures(torch: Any, logits: Any, tokens: Any) -> Iterator[list[float]]:
    """Log p, log rank, and mean and variance of log p under the model's own distribution.

    `logits` float, shape (n, vocabulary); `tokens` int64, shape (n,): the actual next tokens.
    """
    n_rows = max(1, _CHUNK_FLOATS // logits.shape[-1])
    for start in range(0, len(tokens), n_rows):
        rows = logits[start : start + n_rows].float()
        came = tokens[start : start + n_rows, None]
        log_p = torch.log_softmax(rows, -1)
        log_rank = (1 + (rows > rows.gather(1, came)).sum(-1)).double().log()
        own = log_p.gather(1, came)[:, 0].double()
        p, log_p = log_p.exp(), log_p.clamp_min(_LOWEST)
        mean = (p * log_p).sum(-1, dtype=torch.float64)
        # About the mean, not E[x²] - E[x]²: never negative, and without cancellation.
        apart = log_p.sub_(mean.float()[:, None]).square_()
        variance = (p * apart).sum(-1, dtype=torch.float64)
        yield from torch.stack([own, log_rank, mean, variance], 1).tolist()


def _likelihood(figures: Sequence[Sequence[float]]) -> Likelihood:
    n = len(figures)
    log_p, log_rank, mean, variance = (math.fsum(column) for column in zip(*figures, strict=True))
    if not all(map(math.isfinite, (log_p, mean, variance))):
        return _missing("the model's log-probabilities are not all finite", n)
    if variance == 0:
        reason = "the model is certain of every token, so the curvature is undefined"
        return Likelihood(n, log_p / n, log_rank / n, None, reason)
    return Likelihood(n, log_p / n, log_rank / n, (log_p - mean) / math.sqrt(variance))


def _missing(reason: str, n_tokens: int = 0) -> Likelihood:
    return Likelihood(n_tokens, None, None, None, reason)


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ModelError(
            f"likelihoods of texts need {name}; run: pip install 'fabula[neural]'"
        ) from error


def _loaded(path: Path, torch: Any, transformers: Any) -> tuple[Any, Any]:
    """The tokeniser and the network of a GGUF or of a folder."""
    from safetensors import SafetensorError

    folder = path if path.is_dir() else path.parent
    asked: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    if folder != path:
        asked["gguf_file"] = path.name
    try:
        with _quiet(transformers), _threads(torch):
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **asked)
            network, report = transformers.AutoModelForCausalLM.from_pretrained(
                str(folder), dtype=torch.float32, output_loading_info=True, **asked
            )
    except (
        OSError,
        ValueError,
        RuntimeError,
        LookupError,
        TypeError,
        AttributeError,
        ImportError,
        SafetensorError,
        struct.error,
    ) as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(f"{path}: cannot load the model ({said})") from error
    # Weights missing from the file would be initialised at random, and used as if trained.
    lacking = sorted(map(str, [*report["missing_keys"], *report["mismatched_keys"]]))
    if lacking:
        raise ModelError(f"{path}: the model is incomplete; it lacks {lacking[0]}")
    network.eval()
    return tokenizer, network


@contextlib.contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Suppress progress bars and advice while a model loads; errors are still raised."""
    logging = transformers.utils.logging
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        # One of its progress bars ignores all settings.
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.set_verbosity(before)


@contextlib.contextmanager
def _threads(torch: Any) -> Iterator[None]:
    """Use `n_threads` threads: their number may affect the last digit."""
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads())
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _folder_digest(folder: Path) -> str:
    """Eight digits over the names, sizes and ends of a folder's weights, vocabulary, settings."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in _WEIGHTS_AND_WORDS and path.is_file():
            digest.update(f"{path.name}:{file_digest(path)}\n".encode())
    return digest.hexdigest()[:8]
