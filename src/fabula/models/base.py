"""The interface of all language models: a prompt goes in, an answer comes out."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self, TypeVar

from fabula.core.errors import CallFailed, FabulaError, ModelError

Stop = Literal["end", "length", "blocked", "too_long"]
"""Why a model stopped: done; at `max_tokens`; withheld by the provider; prompt too long."""

Effort = Literal["low", "medium", "high"]
"""How long a reasoning model thinks before it answers."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is asked. Many prompts share a `prefix`, byte for byte, which models cache."""

    prefix: str
    question: str

    @property
    def text(self) -> str:
        return self.prefix + self.question


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer that must contain one of `options`, before or after reasons, by form or words."""

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

    Models that support it give a JSON object whose field `name` is the list; others, as asked.
    """

    name: str
    fields: tuple[RecordField, ...]
    n_most: int


Form = Choice | Records


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

    Answers are stored under `name`, by default the function's: use another one for another model
    behind it. A plain function runs in a thread; any exception is a failed call. Sampling is up to
    the function.
    """

    can_be_held = False

    def __init__(self, ask: AskFunction, name: str = "", *, n_parallel: int = 4) -> None:
        self._ask = ask
        usual = getattr(ask, "__qualname__", type(ask).__qualname__).rpartition(".")[2]
        self.name = f"function/{name or usual.strip('<>')}"
        self.n_parallel = n_parallel

    async def ask(self, prompt: Prompt, sampling: Sampling, form: Form | None = None) -> Answer:
        try:
            if inspect.iscoroutinefunction(self._ask):
                text = await self._ask(prompt.text)
            else:
                text = await asyncio.to_thread(self._ask, prompt.text)
                if inspect.isawaitable(text):
                    text = await text
        except FabulaError:
            raise
        except Exception as error:
            raise CallFailed(f"{self.name}: {type(error).__name__}: {error}") from error
        if not isinstance(text, str):
            raise CallFailed(f"{self.name}: returned a {type(text).__name__}, not a string")
        return Answer(text)


FENCE = "=========="


def fence(frame: str, *texts: str) -> str:
    """Make a prompt's lines of equals signs longer than any in a text, so none ends early."""
    longest = max((len(run) for text in texts for run in re.findall("=+", text)), default=0)
    return frame if longest < len(FENCE) else frame.replace(FENCE, "=" * (longest + 1))


T = TypeVar("T")


class HeldOpen:
    """A model kept open for synchronous callers: `with HeldOpen(model) as held`.

    One event loop for the whole time: a model's connections belong to the loop that opened it.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._runner: asyncio.Runner | None = None

    def __enter__(self) -> Self:
        self._runner = asyncio.Runner()
        try:
            self._runner.run(self._model.__aenter__())
        except BaseException:
            self._runner.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        if self._runner is not None:
            with self._runner as runner:
                runner.run(self._model.__aexit__(*error))
        self._runner = None

    def signed(self, *decides: str, label: str = "") -> str:
        """Name for signatures: the model, a label, and a digest of all that `decides`."""
        digest = hashlib.sha256("\0".join([self._model.name, *decides]).encode()).hexdigest()[:8]
        # These separate a signature's parts, and what is before the last @ is a label.
        name = f"{self._model.name}{label}".replace("|", "_").replace(":", "_")
        return f"model({name})@{digest}"

    def run_all(self, calls: Sequence[Callable[[], Awaitable[T]]], what: str, made: str) -> list[T]:
        """The results of all calls, in order. Raises `ModelError` if one fails."""
        try:
            return self.run(in_turn(calls, self._model.n_parallel))
        except CallFailed as error:
            raise ModelError(
                f"{what} failed: {error}; finished {made} are kept, run the same command again to "
                "resume"
            ) from error

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """The result of a call. Raises `ModelError` outside the `with` block."""
        if self._runner is None:
            call.close()
            raise ModelError(f"{self._model.name}: is not open; use it in `with`")
        return self._runner.run(call)


async def in_turn(calls: Sequence[Callable[[], Awaitable[T]]], n_parallel: int) -> list[T]:
    """Run calls, up to `n_parallel` at a time; results in order.

    After an error no call is started; those running, which are paid for, are awaited first.
    """
    results: dict[int, T] = {}
    waiting = iter(enumerate(calls))
    errors: list[Exception] = []

    async def work() -> None:
        for place, call in waiting:
            if errors:
                return
            try:
                results[place] = await call()
            except FabulaError as error:
                errors.append(error)

    await asyncio.gather(*(work() for _ in range(min(n_parallel, len(calls)))))
    if errors:
        raise errors[0]
    return [results[place] for place in range(len(calls))]


async def all_of(calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of all calls; if some fail, the others are awaited first."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


class Places:
    """Limits concurrent calls; a free slot goes to the text with the fewest running calls.

    So texts are processed side by side, each reusing its cached prefix, not one after the other.
    """

    def __init__(self, n_places: int) -> None:
        self._n_free = n_places
        self._n_under_way: Counter[str] = Counter()
        self._waiting: dict[asyncio.Future[None], str] = {}

    @asynccontextmanager
    async def take(self, text: str) -> AsyncIterator[None]:
        """Hold a slot for a call about `text`, once it is its turn."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting[turn] = text
        self._give()
        try:
            await turn
            yield
        finally:
            if self._waiting.pop(turn, None) is None:
                self._n_free += 1
                self._n_under_way[text] -= 1
            # After the tasks that are ready: the one that frees a slot may have more to ask.
            loop.call_later(0, self._give)

    def _give(self) -> None:
        while self._n_free and self._waiting:
            turn = min(self._waiting, key=lambda turn: self._n_under_way[self._waiting[turn]])
            self._n_free -= 1
            self._n_under_way[self._waiting.pop(turn)] += 1
            if not turn.done():
                turn.set_result(None)
