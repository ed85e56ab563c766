"""Whether a provider accepts the key that is set for it.

Only its list of models is requested: no text is sent, and nothing is charged.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from dataclasses import dataclass

from fabula.models.available import PROVIDERS

_LISTS = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "google": "https://generativelanguage.googleapis.com/v1beta",
    "mistral": "https://api.mistral.ai/v1",
    "groq": "https://api.groq.com/openai/v1",
    "together": "https://api.together.xyz/v1",
    "fireworks": "https://api.fireworks.ai/inference/v1",
    "grok": "https://api.x.ai/v1",
    "deepseek": "https://api.deepseek.com",
}
"""Where each lists its models, which requires a key. Others list them for everyone, or not."""
_TIMEOUT_S = 8.0
_MAX_BYTES = 4 << 20


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
    variable = next((one for one in variables if os.environ.get(one)), "")
    if not variable:
        return KeyCheck(False, f"no key for {provider} is set: put it into {variables[0]}")
    base = os.environ.get(f"{provider.upper()}_BASE_URL") or _LISTS.get(provider)
    if base is None:
        return KeyCheck(None, f"the key in {variable} cannot be checked before it is used")
    try:
        known = _listed(base.rstrip("/"), provider, os.environ[variable].strip())
    except urllib.error.HTTPError as error:
        with error:
            if error.code in (400, 401, 403):
                return KeyCheck(False, f"{provider} refuses the key in {variable}")
            return KeyCheck(None, f"{provider} did not say whether the key is valid ({error.code})")
    except (OSError, ValueError, KeyError, TypeError) as error:
        return KeyCheck(None, f"{provider} could not be asked whether the key is valid ({error})")
    if name not in known:
        return KeyCheck(None, f"{provider} accepts the key, but does not list a model {name}")
    return KeyCheck(True, f"{provider} accepts the key in {variable}, and has the model {name}")


def _listed(base: str, provider: str, key: str) -> set[str]:
    headers = {"Authorization": f"Bearer {key}"}
    if provider == "anthropic":
        headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
    elif provider == "google":
        headers = {"x-goog-api-key": key}
    request = urllib.request.Request(f"{base}/models", headers=headers)
    # A redirect would send the key elsewhere.
    opener = urllib.request.build_opener(_NoRedirect)
    with opener.open(request, timeout=_TIMEOUT_S) as answer:
        listed = json.loads(answer.read(_MAX_BYTES))
    if isinstance(listed, dict):
        listed = listed.get("data") or listed["models"]
    names = (str(one.get("id") or one["name"]) for one in listed)
    return {name.removeprefix("models/") for name in names}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None
