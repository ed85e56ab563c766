"""The interface of all language models: a prompt goes in, an answer comes out."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, Self

from fabula.errors import CallFailed, FabulaError

Stop = Literal["end", "length", "blocked", "too_long"]
"""Why a model stopped: done; at `max_tokens`; withheld by the provider; prompt too long."""

Effort = Literal["low", "medium", "high"]
"""How long a reasoning model thinks before it answers."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is asked. `prefix` is shared by many prompts (the story), `question` is not.

    Models cache a shared prefix, so it comes first, byte for byte.
    """

    prefix: str
    question: str

    @property
    def text(self) -> str:
        return self.prefix + self.question


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer that must contain one of `options`, before or after the reasons for it.

    Models that support it are constrained to this form; others are asked for it in words.
    """

    options: tuple[str, ...]
    is_first: bool
    label: str = "Verdict"
    reason_chars: int = 600


@dataclass(frozen=True, slots=True)
class RecordField:
    """A field of a record: one of `numbers`, or a text if there are none."""

    name: str
    about: str
    """What belongs in it, for the model."""
    numbers: tuple[int, ...] = ()
    n_chars: int = 600


@dataclass(frozen=True, slots=True)
class Records:
    """An answer that is a list of up to `n_most` records, all with the same fields.

    Models that support it give a JSON object whose field `name` is this list; others answer as the
    question says.
    """

    name: str
    fields: tuple[RecordField, ...]
    n_most: int


Form = Choice | Records
"""What an answer must contain."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How an answer is sampled. `temperature` 0 takes the most probable token each time."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 512
    seed: int = 0
    effort: Effort | None = None
    """How long a reasoning model should think; None is the model's default."""

    def __str__(self) -> str:
        effort = f"|effort:{self.effort}" if self.effort else ""
        return (
            f"temperature:{self.temperature:g}|top_p:{self.top_p:g}|tokens:{self.max_tokens}|"
            f"seed:{self.seed}{effort}"
        )


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or many calls. `n_cached` of the input came from the cache."""

    n_input: int = 0
    n_cached: int = 0
    n_output: int = 0
    is_estimated: bool = False
    """Tokens were estimated from the characters: the server did not report them."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.n_input + other.n_input,
            self.n_cached + other.n_cached,
            self.n_output + other.n_output,
            self.is_estimated or other.is_estimated,
        )


class ChargedCallFailed(CallFailed):
    """A call without an answer whose prompt was still read, and is charged."""

    def __init__(self, message: str, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.usage = usage or Usage()


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer."""

    text: str
    stop: Stop = "end"
    usage: Usage = field(default_factory=Usage)
    masses: Mapping[str, float] = field(default_factory=dict)
    """Probability of each option of the `Choice` where it was made; empty if unknown."""
    note: str = ""
    """The provider's message about a blocked or overlong prompt."""
    served: str = ""
    """The name the server gives the model; empty if it gives none."""
    runtime: str = ""
    """The local runtime that computed it, if any: `xllamacpp-2026.1`."""


class Model(Protocol):
    """A language model that has been opened; use it as an async context manager."""

    name: str
    """The name given by the user, made specific: `local/smollm2-135m-instruct@1f2e3d4c`."""
    n_parallel: int
    """The best number of prompts in parallel."""
    can_be_held: bool
    """Whether its output can be constrained to a form."""

    async def ask(self, prompt: Prompt, sampling: Sampling, form: Form | None = None) -> Answer:
        """Raises `CallFailed` if this call failed, `ModelError` if no call can succeed."""
        ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None


AskFunction = Callable[[str], str | Awaitable[str]]
"""Takes the text of a prompt and returns the text of an answer, synchronously or not."""


class FunctionModel(Model):
    """A model that is a function of the prompt.

    Answers are stored under `name`, by default that of the function: use another name for another
    model behind the same function. A plain function runs in a thread; any exception is a failed
    call. Sampling is up to the function.
    """

    can_be_held = False

    def __init__(self, ask: AskFunction, name: str = "", *, n_parallel: int = 4) -> None:
        self._ask = ask
        own = getattr(ask, "__qualname__", type(ask).__qualname__).rpartition(".")[2]
        self.name = f"function/{name or own.strip('<>')}"
        self.n_parallel = n_parallel

    async def ask(self, prompt: Prompt, sampling: Sampling, form: Form | None = None) -> Answer:
        try:
            if inspect.iscoroutinefunction(self._ask):
                found = await self._ask(prompt.text)
            else:
                found = await asyncio.to_thread(self._ask, prompt.text)
                if inspect.isawaitable(found):
                    found = await found
        except FabulaError:
            raise
        except Exception as error:
            raise CallFailed(f"{self.name}: {type(error).__name__}: {error}") from error
        if not isinstance(found, str):
            raise CallFailed(f"{self.name}: returned a {type(found).__name__}, not a string")
        return Answer(found)


FENCE = "=========="


def fence(frame: str, *texts: str) -> str:
    """Make a prompt's lines of equals signs longer than any in the texts.

    So a text that contains such a line, as a break or on purpose, does not end early.
    """
    longest = max((len(run) for text in texts for run in re.findall("=+", text)), default=0)
    if longest < len(FENCE):
        return frame
    return frame.replace(FENCE, "=" * (longest + 1))
