"""The functions of `import fabula`, made from the jobs."""

from __future__ import annotations

import inspect
import keyword
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import MISSING
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

from fabula.errors import FabulaError, InputError
from fabula.jobs.config import NAME, addresses_in, read_config
from fabula.jobs.given import documents_of
from fabula.jobs.job import Input, Shape
from fabula.jobs.made import recorded
from fabula.jobs.reading import Reading
from fabula.jobs.registry import Job, jobs
from fabula.jobs.result_files import TableFiles
from fabula.settings import Described, Settings, SettingsError, build, fields_of, plain_type
from fabula.settings import in_names as _in_names

S = TypeVar("S", bound=Settings)
_TEXTS = "a frame, a list, a mapping from id to text, a dataset, a file or a folder"


def job_named(name: str) -> Job | None:
    """The job of a function's name."""
    return next((job for job in jobs().values() if job.python == name), None)


def function_names() -> list[str]:
    """The names of all jobs in Python."""
    return [job.python for job in jobs().values()]


@cache
def function_of(job: Job) -> Any:
    """The function of a job: keyword arguments by the names of its options."""
    face = _Face(job.load())

    def call(*args: Any, **given: Any) -> Any:
        return face.call(job, args, given)

    call.__name__ = call.__qualname__ = job.python
    call.__module__ = "fabula"
    call.__doc__ = face.doc()
    call.__signature__ = face.signature()  # type: ignore[attr-defined]
    return call


class _Face:
    """How a job is called from Python."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        kinds: dict[str, type[Settings]] = dict(shape.settings)
        if any(one.is_texts for one in shape.inputs) and Reading not in kinds.values():
            kinds["how_to_read"] = Reading
        self.kinds = kinds
        self.fields = {
            name_of(one): (parameter, one)
            for parameter, kind in kinds.items()
            for one in fields_of(kind)
            if not (issubclass(kind, TableFiles) and one.path[-1] in ("csv", "latex"))
        }

    def signature(self) -> inspect.Signature:
        """Inputs and what is required by position or name, all else by name."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [
            inspect.Parameter(
                one.name,
                kind,
                default=inspect.Parameter.empty if one.is_required else None,
                annotation=input_type(one),
            )
            for one in self.shape.inputs
        ]
        named: list[inspect.Parameter] = []
        for name, (_, one) in self.fields.items():
            is_required = one.default is MISSING
            takes = name == "model" and "functions" in self.shape.handed
            parameter = inspect.Parameter(
                name,
                kind if is_required else inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if is_required else _default(one),
                annotation=("AskFunction | FunctionModel | " if takes else "") + type_shown(one),
            )
            (parameters if is_required else named).append(parameter)
        # What is required comes first: a function has no others after a default.
        parameters.sort(key=lambda one: one.default is not inspect.Parameter.empty)
        return inspect.Signature([*parameters, *named], return_annotation=self.shape.result)

    def doc(self) -> str:
        """The help of the job in Python's words, with a line for each argument."""
        lines = [inspect.getdoc(self.shape.function) or "", "", "Parameters:"]
        lines += [
            f"    {one.name}: {_TEXTS if one.is_texts else _told(one)}" for one in self.shape.inputs
        ]
        for name, (_, one) in self.fields.items():
            told = one.field.help
            told += f" [default: {one.field.default_text}]" if one.field.default_text else ""
            lines += textwrap.wrap(
                f"{name}: {told}", 96, initial_indent="    ", subsequent_indent="        "
            )
        return self.in_names("\n".join(lines))

    def in_names(self, sentence: str) -> str:
        """Names of settings in a sentence as those of arguments."""
        return _in_names(sentence, {one.path[-1]: f"`{n}`" for n, (_, one) in self.fields.items()})

    def call(self, job: Job, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        """Do the job. Raises `SettingsError` for an argument that it has not."""
        known = [*self.fields, *(one.name for one in self.shape.inputs)]
        for name in given:
            if name not in known:
                said = f"is not an argument of {job.python}; {_hint(name, known)}"
                raise SettingsError(name, said)
        bound = self.signature().bind(*args, **given).arguments
        with recorded(job, dict(bound)) as kept:
            try:
                kept.result = self._called(dict(bound))
            except FabulaError as error:
                error.args = (self.in_names(str(error)), *error.args[1:])
                raise
        return kept.result

    def _configured(self, given: dict[str, Any]) -> dict[str, Any]:
        """What is given, with the defaults of the user's `fabula.toml`.

        Raises `SettingsError` before texts go to an address that only the current folder's file
        names: nobody can be asked here.
        """
        config = read_config()
        # A job that asks a model has a limit on what it costs.
        names = ("reference", "model") if "max_cost" in self.fields else ("reference",)
        usual: dict[str, Any] = {
            name: getattr(config, name)
            for name in names
            if name in self.fields
            and get_origin(self.fields[name][1].type) is tuple
            and not given.get(name)
        }
        usual = {name: value for name, value in usual.items() if value}
        for name, value in usual.items():
            if config.is_of_folder and (named := addresses_in(value)):
                raise SettingsError(
                    name, f"is {named[0]} in {NAME} of this folder; name it yourself to agree"
                )
        tuned = {
            one.field.option_of(one.path[-1]): name
            for name, (_, one) in self.fields.items()
            if one.field.tuned
        }
        usual |= {tuned[option]: value for option, value in config.tuned(tuned).items()}
        found = {**usual, **given}
        if "price" in self.fields and not given.get("price"):
            asked = found.get("model", ())
            asked = (asked,) if _is_single(asked) else asked
            found["price"] = config.price_of(tuple(one for one in asked if isinstance(one, str)))
        return found

    def _called(self, given: dict[str, Any]) -> Any:
        given = self._configured(given)
        more: dict[str, Any] = {}
        if "functions" in self.shape.handed:
            given, more = _functions(given)
        values: dict[str, dict[tuple[str, ...], Any]] = {name: {} for name in self.kinds}
        for name, (parameter, one) in self.fields.items():
            if name in given:
                values[parameter][one.path] = value_of(one, given[name])
            elif one.default is not MISSING:
                values[parameter][one.path] = _default(one)
        settings = {name: build(kind, values[name]) for name, kind in self.kinds.items()}
        how: Any = next((one for one in settings.values() if isinstance(one, Reading)), Reading())
        frame_kind = None
        for asked in self.shape.inputs:
            if asked.name not in given or given[asked.name] is None:
                continue
            value = given[asked.name]
            if not asked.is_texts:
                more[asked.name] = _input(asked, value)
                continue
            texts = documents_of(value, how)
            frame_kind = frame_kind or texts.kind
            if "sources" in self.shape.handed:
                more["sources"] = texts.names
            more[asked.name] = texts.as_input(asked.kind, how)
        if "how_to_read" not in self.shape.settings:
            settings.pop("how_to_read", None)
        found = self.shape.function(**more, **settings)
        object.__setattr__(found, "_kind", frame_kind)
        return found


def _functions(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A model that is a function, and not a name, is handed to the job by itself."""
    from fabula.models.base import FunctionModel

    model = given.get("model")
    if model is None or isinstance(model, str | list | tuple):
        return given, {}
    if not callable(model) and not isinstance(model, FunctionModel):
        raise InputError(
            "a model must be a name or a function from a prompt to an answer, not a value of type "
            f"{type(model).__name__}"
        )
    asked: Any = model
    function = asked if isinstance(asked, FunctionModel) else FunctionModel(asked)
    return {**given, "model": "function"}, {"functions": (function,)}


def _input(one: Input, value: Any) -> Any:
    make = getattr(one.kind, "of", one.kind)
    if not one.is_many:
        return make(value)
    is_single = isinstance(value, str | Path | Mapping) or not isinstance(value, list | tuple)
    if is_single or (hasattr(one.kind, "of") and value and isinstance(value[0], Mapping)):
        return (make(value),)
    return tuple(make(each) for each in value)


def name_of(one: Described) -> str:
    """A setting's name in Python: its option's, with an underscore after a word of Python's own."""
    name = one.field.option_of(one.path[-1].rstrip("_")).rpartition(".")[2].replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


def _default(one: Described) -> Any:
    """A setting's default: the command's, but nothing is written in Python unless it is asked."""
    is_output = one.path[-1] == "out" and plain_type(one.type) is not one.type
    return None if is_output else one.default


def value_of(one: Described, value: Any) -> Any:
    """A value as the setting takes it: several as a tuple, numbers in words as words.

    A range or a list of numbers is `5-12` or `5,7,9` where the setting is written so. Raises
    `SettingsError` for a value of another type.
    """
    hint = plain_type(one.type)
    if value is None or hasattr(hint, "of"):
        return value
    several = get_origin(hint) is tuple
    if several:
        listed = (value,) if _is_single(value) else tuple(value)
        return tuple(_plain_value(one, get_args(hint)[0], each) for each in listed)
    if hint is str and isinstance(value, Iterable) and not isinstance(value, str | Path):
        return _in_words([*value], dashed="-" in one.field.unit)
    return _plain_value(one, hint, value)


def _is_single(value: Any) -> bool:
    is_one = isinstance(value, str | Path) or hasattr(value, "paths")
    return is_one or not isinstance(value, Iterable)


def _in_words(values: list[Any], *, dashed: bool) -> str:
    is_range = dashed and len(values) > 1 and all(isinstance(one, int) for one in values)
    if is_range and values == list(range(values[0], values[-1] + 1)):
        return f"{values[0]}-{values[-1]}"
    return ",".join(str(one) for one in values)


def _plain_value(one: Described, hint: Any, value: Any) -> Any:
    """A single value of a setting's type."""
    paths = getattr(value, "paths", None)
    if hint is Path and isinstance(value, str | Path):
        return Path(value)
    if hint is str and isinstance(paths, list | tuple) and len(paths) == 1:
        return str(paths[0])  # an open reference
    if hint is str and isinstance(value, int | float | Path) and not isinstance(value, bool):
        return str(value)
    wanted = {float: (int, float), int: (int,), bool: (bool,), str: (str,), Path: (Path,)}.get(hint)
    is_wrong = wanted is not None and not isinstance(value, wanted)
    if is_wrong or (hint in (int, float) and isinstance(value, bool)):
        raise SettingsError(
            one.path[-1], f"must be {type_shown(one)}, got a value of type {type(value).__name__}"
        )
    return value


def type_shown(one: Described) -> str:
    """A setting's type, for signatures."""
    hint = plain_type(one.type)
    several = get_origin(hint) is tuple
    inner = get_args(hint)[0] if several else hint
    if inner is Path:
        shown = "str | Path"
    elif get_origin(inner) is not None:
        shown = f"Literal[{', '.join(map(repr, get_args(inner)))}]"
    elif hasattr(inner, "of"):
        shown = "Any"
    else:
        shown = inner.__name__
    if one.path[-1] == "references":
        shown = "str | Path | Reference"
    if several:
        shown = f"{shown} | Sequence[{shown}]"
    elif inner is str and not hasattr(hint, "of"):
        shown = "str | Sequence[float]" if one.field.unit in _NUMBERS else shown
    is_optional = one.default is not MISSING and _default(one) is None
    return f"{shown} | None" if is_optional else shown


_NUMBERS = ("LOW-HIGH", "RATES", "N,N", "N,N,N")
"""Units of settings that are several numbers in words."""


def input_type(one: Input) -> str:
    """An input's type, for signatures."""
    if one.is_texts:
        shown = "Texts"
    elif one.kind in (str, int):
        shown = str(one.kind.__name__)
    else:
        shown = "str | Path" if one.kind is Path else "Any"
    if one.is_many and shown not in ("Any", "Texts"):
        shown = f"{shown} | Sequence[{shown}]"
    return shown if one.is_required else f"{shown} | None"


def _told(one: Input) -> str:
    """What an input may be: for a class of ours, as its method `of` says."""
    make = getattr(one.kind, "of", None)
    if make is None:
        return input_type(one)
    return (make.__doc__ or "").partition(". Raises")[0].removeprefix("From ").rstrip(".")


def _hint(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"did you mean `{close[0]}`?" if close else f"it has {', '.join(sorted(known))}"


def settings_from(kind: type[S], given: Mapping[str, Any], fixed: Mapping[str, Any]) -> S:
    """Settings of a class from values by the names of arguments. Raises `SettingsError`.

    `fixed` are values by the names of fields; they cannot be given again.
    """
    fields = {name_of(one): one for one in fields_of(kind) if one.path[-1] not in fixed}
    values = {one.path: fixed[one.path[-1]] for one in fields_of(kind) if one.path[-1] in fixed}
    for name, value in given.items():
        if name not in fields:
            raise SettingsError(name, f"is not a setting here; {_hint(name, list(fields))}")
        values[fields[name].path] = value_of(fields[name], value)
    return build(kind, values)
