"""The functions of `import fabula`, made from the jobs, with the names of the command line.

    python -m fabula.api > src/fabula/__init__.pyi

writes their signatures for editors and type checkers.
"""

from __future__ import annotations

import inspect
import keyword
import os
import textwrap
import time
from collections.abc import Iterable, Mapping
from dataclasses import MISSING
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args, get_origin

import fabula
from fabula.core.errors import FabulaError, InputError
from fabula.core.provenance import recording
from fabula.core.settings import Described, Settings, SettingsError, build, fields_of, in_names
from fabula.core.types import Document
from fabula.jobs.config import NAME, addresses_in, read_config
from fabula.jobs.given import documents_of
from fabula.jobs.job import Input
from fabula.jobs.registry import OTHERS, Job, jobs, sections
from fabula.jobs.result import Made
from fabula.jobs.shared_settings import Reading, TableFiles

S = TypeVar("S", bound=Settings)
_TEXTS = "a frame, a list, a mapping from id to text, a dataset, a file or a folder"


def job_named(name: str) -> Job | None:
    """The job of a function's name."""
    return next((job for job in jobs().values() if job.python == name), None)


@cache
def function_of(job: Job) -> Any:
    """The function of a job: keyword arguments by the names of its options."""
    face = _Face(job)

    def call(*args: Any, **given: Any) -> Any:
        return face.call(args, given)

    call.__name__ = call.__qualname__ = job.python
    call.__module__ = "fabula"
    call.__doc__ = face.doc()
    call.__signature__ = face.signature  # type: ignore[attr-defined]
    return call


class _Argument(NamedTuple):
    """A keyword argument: the job's parameter that it is part of, the setting, its default."""

    parameter: str
    setting: Described
    default: Any


class _Face:
    """How a job is called from Python."""

    def __init__(self, job: Job) -> None:
        self.name, self.shape = job.python, job.load()
        kinds: dict[str, type[Settings]] = dict(self.shape.settings)
        if any(one.is_texts for one in self.shape.inputs) and Reading not in kinds.values():
            kinds["how_to_read"] = Reading
        self.kinds = kinds
        self.fields = {
            name_of(one): _Argument(parameter, one, _default(one))
            for parameter, kind in kinds.items()
            for one in fields_of(kind)
            if not (issubclass(kind, TableFiles) and one.path[-1] in ("csv", "latex"))
        }
        self.options, self.is_several = dict[str, str](), dict[str, bool]()
        for name, (_, one, _) in self.fields.items():
            option = one.field.option_of(one.path[-1])
            self.options[option], self.is_several[option] = name, get_origin(one.type) is tuple
        # Inputs and what is required by position or name, all else by name.
        kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
        parameters, named = list[inspect.Parameter](), list[inspect.Parameter]()
        for source in self.shape.inputs:
            usual = empty if source.is_required else None
            shown = _input_type(source)
            made = inspect.Parameter(source.name, kind, default=usual, annotation=shown)
            parameters.append(made)
        for name, (_, one, usual) in self.fields.items():
            is_required = one.default is MISSING
            takes = name == "model" and "functions" in self.shape.handed
            shown = ("AskFunction | FunctionModel | " if takes else "") + _type_shown(one)
            how = kind if is_required else inspect.Parameter.KEYWORD_ONLY
            usual = empty if is_required else usual
            made = inspect.Parameter(name, how, default=usual, annotation=shown)
            (parameters if is_required else named).append(made)
        # What is required comes first: a function has no others after a default.
        parameters.sort(key=lambda one: one.default is not empty)
        result = self.shape.result
        self.signature = inspect.Signature([*parameters, *named], return_annotation=result)

    def doc(self) -> str:
        """The help of the job in Python's words, with a line for each argument."""
        lines = [inspect.getdoc(self.shape.function) or "", "", "Parameters:"]
        for one in self.shape.inputs:
            # For a class of ours, as its method `of` says.
            of = getattr(one.kind, "of", None)
            told = _input_type(one)
            if of is not None:
                told = (of.__doc__ or "").partition(". Raises")[0].removeprefix("From ")
            lines.append(f"    {one.name}: {_TEXTS if one.is_texts else told.rstrip('.')}")
        for name, (_, described, _) in self.fields.items():
            told, usual = described.field.help, described.field.default_text
            told += f" [default: {usual}]" if usual else ""
            lines += textwrap.wrap(
                f"{name}: {told}", 96, initial_indent="    ", subsequent_indent="        "
            )
        return self.in_arguments("\n".join(lines))

    def in_arguments(self, sentence: str) -> str:
        """Names of settings in a sentence as those of arguments."""
        names = {one.setting.path[-1]: f"`{name}`" for name, one in self.fields.items()}
        return in_names(sentence, names)

    def call(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Do the job, and note how its result is made; beside its output `out` as a record.

        Raises `SettingsError` for an argument that it has not.
        """
        known = [*self.fields, *(one.name for one in self.shape.inputs)]
        for name in named:
            if name not in known:
                hint = _hint(name, known)
                raise SettingsError(name, f"is not an argument of {self.name}; {hint}")
        given = dict(self.signature.bind(*args, **named).arguments)
        with recording() as noted:
            try:
                result = self._done(given)
            except FabulaError as error:
                error.args = (self.in_arguments(str(error)), *error.args[1:])
                raise
        noted.ended_ns = time.time_ns()
        for name, value in given.items():
            # For an open reference, its locations.
            paths = getattr(value, "paths", None)
            given[name] = list(map(str, paths)) if isinstance(paths, list | tuple) else value
        sources = dict.fromkeys(
            str(one)
            for name, value in given.items()
            for one in (value if isinstance(value, list | tuple) else (value,))
            if name != "out" and isinstance(one, str | Path) and os.path.exists(one)
        )
        settings = {name: _recorded(value) for name, value in given.items()}
        made = Made(f"fabula.{self.name}", settings, tuple(sources), noted)
        if isinstance(out := given.get("out"), str | Path):
            noted.keep(made.call, settings, {"out": Path(out)}, made.sources)
        # The result is frozen; its provenance is not part of it.
        object.__setattr__(result, "_made", made)
        return result

    def _done(self, asked: dict[str, Any]) -> Any:
        """What the job returns for these arguments, with the user's defaults for all others.

        Raises `SettingsError` before texts go to an address that only the current folder's file
        names: nobody can be asked here.
        """
        config = read_config()
        usual = {self.options[n]: one for n, one in config.values_of(self.is_several).items()}
        for name in ("reference", "model") if config.is_of_folder else ():
            named = () if asked.get(name) else addresses_in(usual.get(name, ()))
            if named:
                raise SettingsError(
                    name, f"is {named[0]} in {NAME} of this folder; name it yourself to agree"
                )
        given, more = {**usual, **asked}, dict[str, Any]()
        model = given.get("model")
        if "price" in self.fields and not asked.get("price"):
            models = model if isinstance(model, list | tuple) else (model,)
            specs = tuple(one for one in models if isinstance(one, str))
            given["price"] = config.price_of(specs) or given.get("price")
        is_function = model is not None and not isinstance(model, str | list | tuple)
        if "functions" in self.shape.handed and is_function:
            from fabula.models.base import FunctionModel

            # A model that is a function, and not a name, is handed to the job by itself.
            if not (isinstance(model, FunctionModel) or callable(model)):
                raise InputError(
                    "a model must be a name or a function from a prompt to an answer, not a "
                    f"value of type {type(model).__name__}"
                )
            model = model if isinstance(model, FunctionModel) else FunctionModel(model)
            given["model"], more["functions"] = "function", (model,)
        values: dict[str, dict[tuple[str, ...], Any]] = {name: {} for name in self.kinds}
        for name, (parameter, one, default) in self.fields.items():
            if name in given:
                values[parameter][one.path] = value_of(one, given[name])
            elif default is not MISSING:
                values[parameter][one.path] = default
        settings = {name: build(kind, values[name]) for name, kind in self.kinds.items()}
        how: Any = next((one for one in settings.values() if isinstance(one, Reading)), Reading())
        frame_kind = None
        for source in self.shape.inputs:
            if (value := given.get(source.name)) is None:
                continue
            make = getattr(source.kind, "of", source.kind)
            if not source.is_texts:
                is_single = not isinstance(value, list | tuple)
                has_rows = not is_single and hasattr(source.kind, "of") and value
                if not source.is_many:
                    more[source.name] = make(value)
                elif is_single or (has_rows and isinstance(value[0], Mapping)):
                    more[source.name] = (make(value),)
                else:
                    more[source.name] = tuple(map(make, value))
                continue
            read, kind, names = documents_of(value, how)
            frame_kind = frame_kind or kind
            if "sources" in self.shape.handed:
                more["sources"] = names
            more[source.name] = read() if source.kind is Document else source.kind(read, names, how)
        if "how_to_read" not in self.shape.settings:
            settings.pop("how_to_read", None)
        result = self.shape.function(**more, **settings)
        object.__setattr__(result, "_kind", frame_kind)
        return result


def _recorded(value: Any) -> Any:
    """A setting as JSON; objects by their type, and texts in memory by their number.

    The inputs include a digest of such texts.
    """
    if value is None or isinstance(value, bool | int | float | str | Path):
        return value
    if isinstance(value, list | tuple):
        if len(value) <= 64 and all(isinstance(one, bool | int | float | str) for one in value):
            return list(value)
        return f"{type(value).__name__} of {len(value):,}"
    made = getattr(value, "made", None)
    if isinstance(made, Made):
        return {"call": made.call, "settings": made.settings}
    name = getattr(value, "__qualname__", type(value).__qualname__)
    return f"{getattr(value, '__module__', '')}.{name}".lstrip(".")


def name_of(one: Described) -> str:
    """A setting's name in Python: its option's, with an underscore after a word of Python's own."""
    name = one.field.option_of(one.path[-1].rstrip("_")).rpartition(".")[2].replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


def _default(one: Described) -> Any:
    """A setting's default: the command's, but nothing is written in Python unless it is asked."""
    is_output = one.path[-1] == "out" and one.plain is not one.type
    return None if is_output else one.default


def value_of(one: Described, value: Any) -> Any:
    """A value as the setting takes it: several as a tuple, numbers in words as words.

    A range or a list of numbers is `5-12` or `5,7,9` where the setting is written so. Raises
    `SettingsError` for a value of another type.
    """
    hint = one.plain
    if value is None or hasattr(hint, "of"):
        return value
    is_single = isinstance(value, str | Path) or hasattr(value, "paths")
    is_single = is_single or not isinstance(value, Iterable)
    is_several = get_origin(hint) is tuple
    listed = (value,) if is_single or (hint is not str and not is_several) else tuple(value)
    if hint is str and not isinstance(value, str | Path) and isinstance(value, Iterable):
        is_range = len(listed) > 1 and all(isinstance(each, int) for each in listed)
        if is_range and "-" in one.field.unit and listed == (*range(listed[0], listed[-1] + 1),):
            return f"{listed[0]}-{listed[-1]}"
        return ",".join(map(str, listed))
    kind, values = get_args(hint)[0] if is_several else hint, []
    allowed = {float: (int, float), int: (int,), bool: (bool,), str: (str,), Path: (Path,)}
    for each in listed:
        # Of an open reference, its location.
        paths = getattr(each, "paths", None)
        if kind is str and isinstance(paths, list | tuple) and len(paths) == 1:
            each = paths[0]
        if kind is Path and isinstance(each, str):
            each = Path(each)
        if kind is str and isinstance(each, int | float | Path) and not isinstance(each, bool):
            each = str(each)
        is_wrong = kind in allowed and not isinstance(each, allowed[kind])
        if is_wrong or (kind in (int, float) and isinstance(each, bool)):
            shown, name = _type_shown(one), type(each).__name__
            raise SettingsError(one.path[-1], f"must be {shown}, got a value of type {name}")
        values.append(each)
    return tuple(values) if is_several else values[0]


def _type_shown(one: Described) -> str:
    hint = one.plain
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


def _input_type(one: Input) -> str:
    if one.is_texts:
        shown = "Texts"
    elif one.kind in (str, int):
        shown = str(one.kind.__name__)
    else:
        shown = "str | Path" if one.kind is Path else "Any"
    if one.is_many and shown not in ("Any", "Texts"):
        shown = f"{shown} | Sequence[{shown}]"
    return shown if one.is_required else f"{shown} | None"


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


_HEAD = """# Generated from the jobs by `make docs`.
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from fabula.models.base import AskFunction
"""


def stub() -> str:
    """The text of `__init__.pyi`."""
    built_in = [job for name, own in sections().items() if name != OTHERS for job in own]
    functions = [function_of(job) for job in built_in]
    results = {inspect.signature(one).return_annotation for one in functions}
    imports = [f"from {kind.__module__} import {kind.__name__}" for kind in results]
    imports += [
        f"from {place} import {name} as {name}"
        for place, names in vars(fabula)["_PLACES"].items()
        for name in names.split()
    ]
    parts = [_HEAD + "\n".join(sorted(set(imports))), "Texts = Any\n__version__: str"]
    for function in functions:
        signature, lines = inspect.signature(function), list[str]()
        for one in signature.parameters.values():
            if one.kind is one.KEYWORD_ONLY and "    *," not in lines:
                lines.append("    *,")
            default = "" if one.default is one.empty else f" = {one.default!r}"
            # Paths and classes of settings have no literal.
            default = " = ..." if default and "(" in default.replace("()", "") else default
            lines.append(f"    {one.name}: {one.annotation}{default},")
        doc = textwrap.indent(inspect.getdoc(function) or "", "    ").strip()
        name, listed = signature.return_annotation.__name__, "\n".join(lines)
        parts.append(f'def {function.__name__}(\n{listed}\n) -> {name}:\n    r"""{doc}\n    """\n')
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


if __name__ == "__main__":
    print(stub(), end="")
