"""What a job is: a typed function, from whose signature all ways to start it follow.

Its positional parameters are what it reads, its parameters whose types are classes of `Settings`
say how, its keyword-only ones are handed in by whoever starts it (`progress`, `confirm`, ...), and
it returns a `Result`. The command, the function of `import fabula`, records and reruns are derived
from that; its docstring is the help of both. A paragraph that begins with "Raises" is only for
Python.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Protocol, get_args, get_origin, get_type_hints

from fabula.core.errors import FabulaError
from fabula.core.settings import Settings
from fabula.core.types import Document
from fabula.jobs.result import Result
from fabula.jobs.shared_settings import Reading

if TYPE_CHECKING:
    from fabula.models.cost import Estimate

Texts = Annotated[Sequence[Document], "texts"]
"""Texts that a job keeps in memory, all of them with ids of their own."""
Corpus = Annotated[Path, "corpus"]
"""The folder of a reference corpus, which the job may change."""


@dataclass(frozen=True, slots=True)
class Stream(Iterable[Document]):
    """Texts that are read as the job comes to them, and where from."""

    read: Callable[[], Iterable[Document]] = tuple
    names: tuple[str, ...] = ()
    """The files, folders, patterns or URLs; none for texts in memory."""
    how: Reading = field(default_factory=Reading)

    def __iter__(self) -> Iterator[Document]:
        return iter(self.read())


class WholeStream(Stream):
    """Of which every file is needed: the first that cannot be read is an error."""

    __slots__ = ()


class OneSource(WholeStream):
    """The texts of a single file, folder, pattern or URL, or of one frame."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Input:
    """What a job reads: a positional parameter."""

    name: str
    kind: Any
    """`Document` for texts, `Stream`, `Path`, `str`, `int`, or a class with a method `of`."""
    is_many: bool
    is_required: bool
    mark: str
    """What the annotation adds: `corpus`, or the word that stands for the input in usage lines."""
    is_texts: bool


@dataclass(frozen=True)
class Shape:
    """A job's function, and what its signature says."""

    function: Callable[..., Any]

    @cached_property
    def _hints(self) -> dict[str, Any]:
        """The types of what is given, and of the result; what is handed in needs none."""
        module: Any = inspect.getmodule(self.function)
        names = vars(module) if module is not None else {}
        parameters = inspect.signature(self.function).parameters
        noted = self.function.__annotations__
        hinted = {name: noted[name] for name in (*parameters, "return") if name not in self.handed}
        holder: Any = SimpleNamespace(__annotations__=hinted)
        return get_type_hints(holder, {**names, **self.function.__globals__}, include_extras=True)

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """What the job reads, in order."""
        parameters = inspect.signature(self.function).parameters
        inputs = []
        for name, hint in self._hints.items():
            if name == "return" or name in self.settings:
                continue
            is_required, mark = parameters[name].default is inspect.Parameter.empty, ""
            if get_origin(hint) is Annotated:
                hint, mark = get_args(hint)
            if hint == str | None or hint == Path | None or hint == int | None:
                hint = next(kind for kind in get_args(hint) if kind is not type(None))
            is_many = get_origin(hint) is not None
            kind = get_args(hint)[0] if is_many else hint
            is_stream = isinstance(kind, type) and issubclass(kind, Stream)
            is_many = is_many or (is_stream and kind is not OneSource)
            is_texts = is_stream or kind is Document
            inputs.append(Input(name, kind, is_many, is_required, mark, is_texts))
        return tuple(inputs)

    @cached_property
    def settings(self) -> dict[str, type[Settings]]:
        """Its settings, by parameter."""
        kinds = {name: hint for name, hint in self._hints.items() if isinstance(hint, type)}
        return {name: kind for name, kind in kinds.items() if issubclass(kind, Settings)}

    @cached_property
    def handed(self) -> frozenset[str]:
        """What is handed in: `progress`, `confirm`, `each`, `agree`, `announce`, `warn`."""
        parameters = inspect.signature(self.function).parameters
        return frozenset(name for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY)

    @cached_property
    def result(self) -> type[Result]:
        return self._hints["return"]  # type: ignore[no-any-return]

    @property
    def help(self) -> str:
        """The docstring without what is only for Python."""
        parts = (inspect.getdoc(self.function) or "").split("\n\n")
        return "\n\n".join(part for part in parts if not part.startswith("Raises"))


class Progress(Protocol):
    """Receives the progress of a job: a bar, log lines, a page, or nothing."""

    def begin(self, stage: str, total: int | None) -> None:
        """Start a stage of `total` steps; None if their number is unknown."""

    def advance(self, n: int) -> None:
        """Mark `n` more steps as done."""

    def say(self, stage: str) -> None:
        """Rename the current stage."""

    def tell(self, sentence: str) -> None:
        """Show a notice that stays visible."""


class _Silent(Progress):
    """Ignores all progress."""


SILENT: Progress = _Silent()  # type: ignore[abstract]

Confirm = Callable[[str, "Estimate"], None]
"""Called with a model and its estimated cost before its first call; raises to stop."""


def agreed(model: str, estimate: Estimate) -> None:
    """A `Confirm` that accepts everything; cost limits still apply."""


class Declined(FabulaError):  # noqa: N818 (a decision, not a fault)
    """The user does not agree to the cost: raised by a `Confirm`."""


Agree = Callable[..., None]
"""Asks a question, below lines if there are any, before what cannot be undone; raises to stop."""


def agreed_to(question: str, lines: Iterable[str] = (), /) -> None:
    """An `Agree` that asks nobody."""
