"""Which language models are available here: the embedded one, local servers, keys that are set.

Only this machine is searched for servers, at their default ports. Nothing is sent anywhere else;
keys are not tested.
"""

from __future__ import annotations

import importlib.util
import json
import os
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from fabula.errors import ModelError
from fabula.models.local import embedded_model

PORTS: Mapping[int, str] = {11434: "Ollama", 1234: "LM Studio", 8080: "llama.cpp", 8000: "vLLM"}
"""The default port of each local server; other servers found there are named by port."""

PROVIDERS: Mapping[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "mistral": ("MISTRAL_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "together": ("TOGETHER_API_KEY",),
    "fireworks": ("FIREWORKS_API_KEY",),
    "grok": ("XAI_API_KEY", "GROK_API_KEY"),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "perplexity": ("PERPLEXITY_API_KEY",),
}
"""The environment variables that hold a provider's key, as Inspect AI reads them."""

_TIMEOUT_S = 1.0
_MAX_BYTES = 1 << 20
_MAX_MODELS = 50


@dataclass(frozen=True, slots=True)
class Available:
    """A model as `--model` takes it; for a provider, the prefix of its model names."""

    name: str
    where: str
    kind: Literal["embedded", "server", "provider"]


def find_models(ports: Sequence[int] = tuple(PORTS)) -> list[Available]:
    """The embedded model, then servers by port, then providers whose key is set."""
    found = []
    with suppress(ModelError):
        embedded_model()
        found.append(Available("local", "the embedded model: a demonstration", "embedded"))
    with ThreadPoolExecutor(max(1, len(ports))) as pool:
        found += chain.from_iterable(pool.map(_models_at, ports))
    if importlib.util.find_spec("inspect_ai") is not None:
        found += [
            Available(f"{provider}/...", f"key in {keys[0]}", "provider")
            for provider, variables in PROVIDERS.items()
            if (keys := [one for one in variables if os.environ.get(one)])
        ]
    return found


def _models_at(port: int) -> list[Available]:
    """The models of an OpenAI-compatible server; empty if there is no such server."""
    url = f"http://127.0.0.1:{port}/v1"
    # Proxies are for other machines.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/models", timeout=_TIMEOUT_S) as answer:
            listed = json.loads(answer.read(_MAX_BYTES))["data"]
        names = [str(one["id"]) for one in listed[:_MAX_MODELS]]
    except (OSError, ValueError, KeyError, TypeError):
        # Another kind of server, or none, is listening at this port.
        return []
    where = f"{PORTS.get(port, 'server')}, port {port}"
    return [Available(f"{url}#{name}", where, "server") for name in names]
