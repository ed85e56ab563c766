"""What every language model is to the rest of the house: a prompt goes in, an answer comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, Self

from fabula.errors import CallFailed

__all__ = [
    "Answer",
    "ChargedCallFailed",
    "Choice",
    "Effort",
    "Model",
    "Prompt",
    "Sampling",
    "Stop",
    "Usage",
]

Stop = Literal["end", "length", "blocked", "too_long"]
"""Why a model stopped: done; at `max_tokens`; withheld by the provider; prompt too long for it."""

Effort = Literal["low", "medium", "high"]
"""How long a reasoning model thinks before it answers."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is asked. `prefix` is shared by many prompts (the story), `question` is not.

    Models keep what they have read of a shared prefix, so the prefix comes first, byte for byte.
    """

    prefix: str
    question: str

    @property
    def text(self) -> str:
        return self.prefix + self.question


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer that must hold one of `options`, before or after the reasons for it.

    A model that can be held to a form is held to this one; others are asked for it in words.
    """

    options: tuple[str, ...]
    is_first: bool
    label: str = "Verdict"
    reason_chars: int = 600


@dataclass(frozen=True, slots=True)
class Sampling:
    """How an answer is drawn. `temperature` 0 takes the most probable token each time."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 512
    seed: int = 0
    effort: Effort | None = None
    """How long a reasoning model is to think; None is its own default."""

    def __str__(self) -> str:
        effort = f"|effort:{self.effort}" if self.effort else ""
        return (
            f"temperature:{self.temperature:g}|top_p:{self.top_p:g}|tokens:{self.max_tokens}|"
            f"seed:{self.seed}{effort}"
        )


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call, or of many. `n_cached` of the input were not read anew."""

    n_input: int = 0
    n_cached: int = 0
    n_output: int = 0
    is_estimated: bool = False
    """Tokens were counted here, from the characters: the server did not report them."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.n_input + other.n_input,
            self.n_cached + other.n_cached,
            self.n_output + other.n_output,
            self.is_estimated or other.is_estimated,
        )


class ChargedCallFailed(CallFailed):
    """A call without an answer whose prompt was read all the same, and is paid for."""

    def __init__(self, message: str, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.usage = usage or Usage()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said."""

    text: str
    stop: Stop = "end"
    usage: Usage = field(default_factory=Usage)
    masses: Mapping[str, float] = field(default_factory=dict)
    """Probability of each option of the `Choice`, where the answer chose; empty where unknown."""
    note: str = ""
    """What the provider said about a blocked or overlong prompt."""
    served: str = ""
    """How whoever answered names the model itself; empty where it does not."""
    runtime: str = ""
    """What computed it, where that was this machine: `xllamacpp-2026.1`."""


class Model(Protocol):
    """A language model that has been opened; use it as an async context manager."""

    name: str
    """As the user named it, made definite: `local/smollm2-135m-instruct@1f2e3d4c`."""
    n_parallel: int
    """How many prompts it is best given at a time."""
    can_be_held: bool
    """Whether it can be held to a `Choice` while it writes."""

    async def ask(self, prompt: Prompt, sampling: Sampling, choice: Choice | None = None) -> Answer:
        """Raises `CallFailed` when this call failed, `ModelError` when no call can succeed."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *error: object) -> None: ...
