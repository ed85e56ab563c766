"""Which language models are available here: the embedded one, local servers, keys that are set.

Only this machine is searched for servers, at their default ports. A key is checked only where that
is asked for, by requesting its provider's list of models: no text is sent, and nothing is charged.
"""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from fabula.core.errors import ModelError
from fabula.models.local import embedded_model

PORTS: Mapping[int, str] = {11434: "Ollama", 1234: "LM Studio", 8080: "llama.cpp", 8000: "vLLM"}
"""The default port of each local server; other servers found there are named by port."""

PROVIDERS: Mapping[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",), "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"), "mistral": ("MISTRAL_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",), "groq": ("GROQ_API_KEY",),
    "together": ("TOGETHER_API_KEY",), "fireworks": ("FIREWORKS_API_KEY",),
    "grok": ("XAI_API_KEY", "GROK_API_KEY"), "deepseek": ("DEEPSEEK_API_KEY",),
    "perplexity": ("PERPLEXITY_API_KEY",),
}  # fmt: skip
"""The environment variables that hold a provider's key, as Inspect AI reads them."""

_TIMEOUT_S = 1.0
_MAX_BYTES, _MAX_MODELS = 4 << 20, 50


@dataclass(frozen=True, slots=True)
class Available:
    """A model as `--model` takes it; for a provider, the prefix of its model names."""

    name: str
    where: str
    kind: Literal["embedded", "server", "provider"]


def find_models(ports: Sequence[int] = tuple(PORTS)) -> list[Available]:
    """The embedded model, then servers by port, then providers whose key is set."""
    models = []
    with suppress(ModelError):
        embedded_model()
        models.append(Available("local", "the embedded model: a demonstration", "embedded"))
    with ThreadPoolExecutor(max(1, len(ports))) as pool:
        models += chain.from_iterable(pool.map(_models_at, ports))
    if importlib.util.find_spec("inspect_ai") is not None:
        models += [
            Available(f"{provider}/...", f"key in {keys[0]}", "provider")
            for provider, variables in PROVIDERS.items()
            if (keys := [name for name in variables if os.environ.get(name)])
        ]
    return models


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, which would send the key elsewhere."""

    def redirect_request(self, *_: object) -> None:
        return None


def listed_models(
    url: str, headers: Mapping[str, str], timeout_s: float, *, is_here: bool = False
) -> Any:
    """What a server answers that is asked for its models. Raises `OSError`, `ValueError`."""
    # Proxies are for other machines.
    handlers = [NoRedirect(), *([urllib.request.ProxyHandler({})] if is_here else [])]
    request = urllib.request.Request(f"{url.rstrip('/')}/models", headers=dict(headers))
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=timeout_s) as answer:
            return json.loads(answer.read(_MAX_BYTES))
    except http.client.HTTPException as error:
        raise OSError(f"not an answer in HTTP ({error!r})") from error


def _models_at(port: int) -> list[Available]:
    """The models of an OpenAI-compatible server; empty if there is no such server."""
    url = f"http://127.0.0.1:{port}/v1"
    try:
        listed = listed_models(url, {}, _TIMEOUT_S, is_here=True)["data"][:_MAX_MODELS]
        names = [str(model["id"]) for model in listed]
    except (OSError, ValueError, KeyError, TypeError):
        # Another kind of server, or none, is listening at this port.
        return []
    where = f"{PORTS.get(port, 'server')}, port {port}"
    return [Available(f"{url}#{name}", where, "server") for name in names]


_LISTS = {
    "openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com/v1",
    "google": "https://generativelanguage.googleapis.com/v1beta",
    "mistral": "https://api.mistral.ai/v1", "groq": "https://api.groq.com/openai/v1",
    "together": "https://api.together.xyz/v1", "fireworks": "https://api.fireworks.ai/inference/v1",
    "grok": "https://api.x.ai/v1", "deepseek": "https://api.deepseek.com",
}  # fmt: skip
"""Where each lists its models, which requires a key. Others list them for everyone, or not."""
_KEY_TIMEOUT_S = 8.0


@dataclass(frozen=True, slots=True)
class KeyCheck:
    """The result of checking a provider's key."""

    is_good: bool | None
    """None if it could not be checked."""
    said: str
    """A sentence without its full stop."""


def check_key(model: str) -> KeyCheck | None:
    """Check the key for the provider of `provider/model`; None if none is needed."""
    provider, _, name = model.partition("/")
    variables = PROVIDERS.get(provider)
    if variables is None or not name:
        return None
    variable = next((key_name for key_name in variables if os.environ.get(key_name)), "")
    if not variable:
        return KeyCheck(False, f"no key for {provider} is set: put it into {variables[0]}")
    base = os.environ.get(f"{provider.upper()}_BASE_URL") or _LISTS.get(provider)
    if base is None:
        return KeyCheck(None, f"the key in {variable} cannot be checked before it is used")
    key = os.environ[variable].strip()
    headers = {
        "anthropic": {"x-api-key": key, "anthropic-version": "2023-06-01"},
        "google": {"x-goog-api-key": key},
    }.get(provider, {"Authorization": f"Bearer {key}"})
    try:
        listed = listed_models(base, headers, _KEY_TIMEOUT_S)
        if isinstance(listed, dict):
            listed = listed.get("data") or listed["models"]
        names = (str(model.get("id") or model["name"]) for model in listed)
        ids = {id_.removeprefix("models/") for id_ in names}
    except urllib.error.HTTPError as error:
        with error:
            if error.code in (400, 401, 403):
                return KeyCheck(False, f"{provider} refuses the key in {variable}")
            return KeyCheck(None, f"{provider} did not say whether the key is valid ({error.code})")
    except (OSError, ValueError, KeyError, TypeError) as error:
        return KeyCheck(None, f"{provider} could not be asked whether the key is valid ({error})")
    if name not in ids:
        return KeyCheck(None, f"{provider} accepts the key, but does not list a model {name}")
    return KeyCheck(True, f"{provider} accepts the key in {variable}, and has the model {name}")
