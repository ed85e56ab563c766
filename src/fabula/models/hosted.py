"""Remote models: every provider of Inspect AI, and any URL with an OpenAI-compatible API.

Retries, rate limits, the cache, batches and prompt-cache markers are Inspect's; this module builds
the requests, and classifies the responses: an answer, a refusal, a failure.
"""

from __future__ import annotations

import asyncio
import os
import re
import warnings
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit
from urllib.request import getproxies

from fabula.core.errors import CallFailed, ModelError
from fabula.core.packages import needing
from fabula.models.available import listed_models
from fabula.models.base import (
    Answer,
    ChargedCallFailed,
    Choice,
    Form,
    Prompt,
    Sampling,
    Stop,
    Usage,
)
from fabula.models.cost import most_likely_tokens
from fabula.models.verdicts import in_words, option_masses, schema_of

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessageUser, GenerateConfig, ModelOutput

    from fabula.models.model_spec import ModelOptions

# Providers that enforce a JSON schema, and those that return log-probabilities.
_HOLDS = {"openai", "google", "mistral", "vllm", "sglang", "together", "fireworks", "grok"}
_TELLS = {"openai", "openai-api", "grok", "together", "vllm", "sglang", "fireworks"}
_MAX_TOP_LOGPROBS = 20
_STOPS: dict[str, Stop] = {
    "max_tokens": "length", "model_length": "too_long", "content_filter": "blocked",
}  # fmt: skip
_ANY_MODEL = "default"
"""The model name sent to a URL that names no model."""
_LIST_TIMEOUT_S, _MAX_WAIT_S = 5.0, 1800.0


class HostedModel:
    """A model by Inspect's name (`openai/gpt-4o`) or URL; `#model` names one of several there."""

    def __init__(self, spec: str, options: ModelOptions, n_parallel: int) -> None:
        self._spec = self.name = spec
        self._options, self.n_parallel = options, n_parallel
        self._provider = "openai-api" if _is_url(spec) else spec.partition("/")[0]
        self.can_be_held = is_held(self._provider, options.structured)
        self._model: Any = None
        self._listed: str | None = None

    async def __aenter__(self) -> Self:
        message = f"{self._spec}: hosted models need Inspect AI; run: pip install 'fabula[hosted]'"
        get_model = needing("inspect_ai.model", message, ModelError).get_model
        name = self._spec
        options: dict[str, Any] = {}
        if _is_url(self._spec):
            url, _, model = self._spec.partition("#")
            name = f"openai-api/url/{model or _ANY_MODEL}"
            # The client would retry too, in addition to Inspect, which counts its retries.
            options = {"base_url": url, "api_key": _key_for(url), "max_retries": 0}
            # Raise if nothing is listening: no number of retries would help.
            try:
                parts = urlsplit(url)
                port = parts.port or (443 if parts.scheme == "https" else 80)
            except ValueError as error:
                raise ModelError(f"{url}: not a server address ({error})") from error
            try:
                # An address that cannot be reached from here may be reached through the proxy.
                if parts.scheme not in getproxies():
                    connecting = asyncio.open_connection(parts.hostname, port)
                    _, writer = await asyncio.wait_for(connecting, 10)
                    writer.close()
            except (OSError, TimeoutError) as error:
                raise ModelError(
                    f"{url}: no connection ({error or 'no reply in 10 s'}); is the server running?"
                ) from error
        try:
            self._model = get_model(name, memoize=False, **options)
        except Exception as error:
            # Inspect formats its messages for the terminal: [bold]...[/bold].
            text = re.sub(r"\[/?[a-z ]+\]", "", str(error)).strip()
            key = re.search(r"\b[A-Z][A-Z0-9_]*(?:_KEY|_TOKEN|_ID|_URL)\b", text)
            why = f"cannot be used: {text.splitlines()[0] if text else type(error).__name__}"
            if key is not None:
                why = f"needs {key[0]} in the environment; set it and run the same command again"
            elif "not recognized" in text:
                why = (
                    "no such provider; a model is `local`, a path to a .gguf file, a URL, or "
                    "provider/model as in openai/gpt-4o, anthropic/claude-sonnet-4-5, "
                    "ollama/llama3.2"
                )
            raise ModelError(f"{self._spec}: {why}") from error
        api = self._model.api
        # A provider's client is not to send prompts, which hold stories, to another address.
        inner = getattr(getattr(api, "client", None), "_client", None)
        clients: list[Any] = [getattr(api, "http_client", None), inner]
        for client in clients:
            if hasattr(client, "follow_redirects"):
                client.follow_redirects = False
        _join_parts(api)
        # Make Inspect wait as long as Retry-After says; without one it waits as usual.
        from tenacity import wait_exponential_jitter

        usual = wait_exponential_jitter(initial=3, max=_MAX_WAIT_S, jitter=3)

        def wait(state: Any) -> float:
            seconds = getattr(api.should_retry(state.outcome.exception()), "retry_after", None)
            return float(usual(state)) if seconds is None else min(float(seconds), _MAX_WAIT_S)

        api.retry_wait = lambda: wait
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._model.api.aclose()

    async def ask(self, prompt: Prompt, sampling: Sampling, form: Form | None = None) -> Answer:
        from inspect_ai.model import CachePolicy, GenerateConfig

        held = self.can_be_held
        config = GenerateConfig(
            max_tokens=sampling.max_tokens,
            temperature=sampling.temperature,
            seed=sampling.seed,
            max_retries=self._options.max_retries,
            attempt_timeout=self._options.timeout_s,
            reasoning_effort=sampling.effort,
            max_connections=self.n_parallel,
            cache_prompt=True if self._provider == "anthropic" else None,
            batch=True if self._options.batch else None,
        ).merge(form_of(form, self._provider, held=held))
        if sampling.top_p != 1:
            config.top_p = sampling.top_p
        if self._options.cache:
            # Repeated samples differ in their seed, which is part of Inspect's cache key.
            config.cache = CachePolicy(expiry=None, scopes={"seed": str(sampling.seed)})
        message = message_of(prompt, form, self._provider, held=held)
        try:
            output = await self._model.generate([message], config=config)
        except Exception as error:
            raise _call_fault(self._spec, error) from error
        answer = answer_of(output, form)
        if not output.choices and not output.error:
            raise ChargedCallFailed(f"{self._spec}: the reply contains no answer", answer.usage)
        # The model's own name: what the server reports, not where it is.
        if not _is_url(self._spec) or (output.model and output.model != _ANY_MODEL):
            served = output.model
        else:
            if self._listed is None:
                url = self._spec.partition("#")[0]
                key, names = {"Authorization": f"Bearer {_key_for(url)}"}, set()
                with suppress(OSError, ValueError, KeyError, TypeError):
                    listed = await asyncio.to_thread(listed_models, url, key, _LIST_TIMEOUT_S)
                    names = {str(model["id"]) for model in listed["data"]}
                self._listed = names.pop() if len(names) == 1 else ""
            served = self._listed
        return replace(answer, served=served)


def is_held(provider: str, structured: bool | None) -> bool:
    """Whether a provider's models use a JSON schema; None enables it if known to work."""
    return provider in _HOLDS if structured is None else structured


def message_of(prompt: Prompt, form: Form | None, provider: str, *, held: bool) -> ChatMessageUser:
    """A prompt in the best form for a provider."""
    from inspect_ai.model import ChatMessageUser, ContentText

    if form is not None and held:
        prompt = Prompt(prompt.prefix, f"{prompt.question}\n{in_words(form)}\n")
    if provider != "anthropic":
        return ChatMessageUser(content=prompt.text)
    # The provider caches what comes before the mark; others find the prefix themselves.
    prefix = ContentText(text=prompt.prefix, cache_breakpoint=True)
    return ChatMessageUser(content=[prefix, ContentText(text=prompt.question)])


def form_of(form: Form | None, provider: str, *, held: bool) -> GenerateConfig:
    """What a call requests besides the answer: its form, and the probabilities of the options."""
    from inspect_ai.model import GenerateConfig, ResponseSchema
    from inspect_ai.util import JSONSchema

    config = GenerateConfig()
    if isinstance(form, Choice) and provider in _TELLS:
        config.logprobs, config.top_logprobs = True, _MAX_TOP_LOGPROBS
    if form is not None and held:
        schema = JSONSchema.model_validate(schema_of(form))
        config.response_schema = ResponseSchema(name="answer", json_schema=schema, strict=True)
    return config


def _join_parts(api: Any) -> None:
    """Make Inspect accept content that is a list of parts, which some servers send."""
    read = getattr(api, "chat_choices_from_completion", None)
    if read is None:
        return
    # Inspect also logs the original answer; that it is not a string need not be reported.
    warnings.filterwarnings("ignore", message="Pydantic serializer", category=UserWarning)

    def joined(completion: Any, tools: Any) -> Any:
        # An answer is paid for, whatever the server says beside it.
        completion.model = completion.model or ""
        for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
            if hasattr(completion.usage, name):
                # Servers also give a number as text or a fraction; 0 if it is none.
                n_tokens = 0
                with suppress(TypeError, ValueError, OverflowError):
                    n_tokens = round(float(getattr(completion.usage, name)))
                setattr(completion.usage, name, n_tokens)
        for choice in completion.choices or []:
            parts = choice.message.content if choice.message is not None else None
            if isinstance(parts, list):
                texts = [part.get("text") for part in parts if isinstance(part, dict)]
                choice.message.content = "".join(text for text in texts if isinstance(text, str))
        return read(completion, tools)

    api.chat_choices_from_completion = joined


def _is_url(spec: str) -> bool:
    return spec.startswith(("http://", "https://"))


def _key_for(url: str) -> str:
    """The key for a URL, of which most local servers accept any. OpenAI's goes to OpenAI only."""
    is_openai = urlsplit(url).scheme == "https" and urlsplit(url).hostname == "api.openai.com"
    key = os.environ.get("OPENAI_API_KEY") if is_openai else None
    return key or os.environ.get("FABULA_API_KEY") or "none"


def answer_of(output: ModelOutput, form: Form | None = None) -> Answer:
    """Convert Inspect's output to an answer."""
    reported = output.usage
    usage = Usage()
    if reported is not None:
        n_cached = reported.input_tokens_cache_read or 0
        n_input = reported.input_tokens + n_cached + (reported.input_tokens_cache_write or 0)
        usage = Usage(n_input, n_cached, reported.output_tokens)
    content = output.choices[0].message.content if output.choices else ""
    parts = [] if isinstance(content, str) else content
    thought = "".join(part.reasoning for part in parts if part.type == "reasoning")
    if usage.n_output == 0 and thought:
        # Reasoning is paid for, even if the server neither counts it nor shows it as text.
        written = thought + output.completion
        usage = replace(usage, n_output=most_likely_tokens(written), is_estimated=True)
    if not output.choices:
        return Answer("", usage=usage, note=output.error or "")
    best = output.choices[0]
    positions = (
        (entry.token, [(other.token, other.logprob) for other in entry.top_logprobs or []])
        for entry in (best.logprobs.content if best.logprobs else [])
    )
    masses = option_masses(positions, form) if isinstance(form, Choice) else {}
    stop = _STOPS.get(best.stop_reason, "end")
    note = output.error or ("" if stop == "end" else output.completion[:200])
    return Answer(output.completion, stop, usage, masses, note)


def _call_fault(spec: str, error: Exception) -> ModelError:
    """Classify the failure of a call: `CallFailed`, or `ModelError` if no call can succeed."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    if timeout := re.match(r"attempt_timeout '(\d+)' exceeded", str(cause)):
        return ChargedCallFailed(f"{spec}: no answer within {timeout[1]} s (`timeout`)")
    status = getattr(cause, "status_code", None) or getattr(error, "status_code", None)
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    message = (lines[0] if lines else type(cause).__name__)[:300]
    host = urlsplit(spec).netloc or spec
    if status in (301, 302, 303, 307, 308):
        return ModelError(
            f"{host}: redirects to another address, which is not followed; use that address"
        )
    if status == 402:
        return ModelError(f"{host}: the account has no credit left ({message}); add some to resume")
    if status in (401, 403):
        return ModelError(f"{host}: the key was refused ({message}); check it in the environment")
    if status == 404:
        return ModelError(f"{spec}: the provider has no such model ({message})")
    if status is None and not isinstance(cause, OSError):
        # Neither rejected nor unreachable: a response that cannot be parsed, or a timeout.
        return ChargedCallFailed(f"{spec}: {message}")
    return CallFailed(f"{spec}: {message}")
