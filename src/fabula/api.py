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
from fabula.jobs.given import documents_of
from fabula.jobs.job import Input
from fabula.jobs.registry import OTHERS, Job, jobs, sections
from fabula.jobs.result import Made
from fabula.jobs.shared_settings import NAME, Reading, TableFiles, addresses_in, read_config

S = TypeVar("S", bound=Settings)
_TEXTS = "a frame, a list, a mapping from id to text, a dataset, a file or a folder"


def job_named(name: str) -> Job | None:
    """The job of a function's name."""
    return next((job for job in jobs().values() if job.python == name), None)


@cache
def function_of(job: Job) -> Any:
    """The function of a job: keyword arguments by the names of its options."""
    face = _Face(job)

    def call(*args: Any, **named: Any) -> Any:
        return face.call(args, named)

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
        if any(source.is_texts for source in self.shape.inputs) and Reading not in kinds.values():
            kinds["how_to_read"] = Reading
        self.kinds = kinds
        self.fields = {
            name_of(described): _Argument(parameter, described, _default(described))
            for parameter, kind in kinds.items()
            for described in fields_of(kind)
            if not (issubclass(kind, TableFiles) and described.path[-1] in ("csv", "latex"))
        }
        self.options, self.is_several = dict[str, str](), dict[str, bool]()
        for name, (_, d, _) in self.fields.items():
            option = d.field.option_of(d.path[-1])
            self.options[option], self.is_several[option] = name, get_origin(d.type) is tuple
        # Inputs and what is required by position or name, all else by name.
        kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
        parameters, named = list[inspect.Parameter](), list[inspect.Parameter]()
        for source in self.shape.inputs:
            usual = empty if source.is_required else None
            shown = _input_type(source)
            parameters.append(inspect.Parameter(source.name, kind, default=usual, annotation=shown))
        for name, (_, described, usual) in self.fields.items():
            is_required = described.default is MISSING
            takes = name == "model" and "functions" in self.shape.handed
            shown = ("AskFunction | FunctionModel | " if takes else "") + _type_shown(described)
            passing = kind if is_required else inspect.Parameter.KEYWORD_ONLY
            usual = empty if is_required else usual
            parameter = inspect.Parameter(name, passing, default=usual, annotation=shown)
            (parameters if is_required else named).append(parameter)
        # What is required comes first: a function has no others after a default.
        parameters.sort(key=lambda p: p.default is not empty)
        result = self.shape.result
        self.signature = inspect.Signature([*parameters, *named], return_annotation=result)

    def doc(self) -> str:
        """The help of the job in Python's words, with a line for each argument."""
        lines = [inspect.getdoc(self.shape.function) or "", "", "Parameters:"]
        for source in self.shape.inputs:
            # For a class of ours, as its method `of` says.
            of = getattr(source.kind, "of", None)
            text = _input_type(source)
            if of is not None:
                text = (of.__doc__ or "").partition(". Raises")[0].removeprefix("From ")
            lines.append(f"    {source.name}: {_TEXTS if source.is_texts else text.rstrip('.')}")
        for name, (_, described, _) in self.fields.items():
            text, usual = described.field.help, described.field.default_text
            text += f" [default: {usual}]" if usual else ""
            lines += textwrap.wrap(
                f"{name}: {text}", 96, initial_indent="    ", subsequent_indent="        "
            )
        return self.in_arguments("\n".join(lines))

    def in_arguments(self, sentence: str) -> str:
        """Names of settings in a sentence as those of arguments."""
        names = {argument.setting.path[-1]: f"`{name}`" for name, argument in self.fields.items()}
        return in_names(sentence, names)

    def call(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Do the job, and note how its result is made; beside its output `out` as a record.

        Raises `SettingsError` for an argument that it has not.
        """
        names = [*self.fields, *(source.name for source in self.shape.inputs)]
        for name in keywords:
            if name not in names:
                hint = _hint(name, names)
                raise SettingsError(name, f"is not an argument of {self.name}; {hint}")
        arguments = dict(self.signature.bind(*args, **keywords).arguments)
        with recording() as noted:
            try:
                result = self._done(arguments)
            except FabulaError as error:
                error.args = (self.in_arguments(str(error)), *error.args[1:])
                raise
        noted.ended_ns = time.time_ns()
        for name, value in arguments.items():
            # For an open reference, its locations.
            paths = getattr(value, "paths", None)
            arguments[name] = list(map(str, paths)) if isinstance(paths, list | tuple) else value
        sources = dict.fromkeys(
            str(entry)
            for name, value in arguments.items()
            for entry in (value if isinstance(value, list | tuple) else (value,))
            if name != "out" and isinstance(entry, str | Path) and os.path.exists(entry)
        )
        settings = {name: _recorded(value) for name, value in arguments.items()}
        made = Made(f"fabula.{self.name}", settings, tuple(sources), noted)
        if isinstance(out := arguments.get("out"), str | Path):
            noted.keep(made.call, settings, {"out": Path(out)}, made.sources)
        # The result is frozen; its provenance is not part of it.
        object.__setattr__(result, "_made", made)
        return result

    def _done(self, arguments: dict[str, Any]) -> Any:
        """What the job returns for these arguments, with the user's defaults for all others.

        Raises `SettingsError` before texts go to an address that only the current folder's file
        names: nobody can be asked here.
        """
        config = read_config()
        defaults = {self.options[n]: v for n, v in config.values_of(self.is_several).items()}
        for name in ("reference", "model") if config.is_of_folder else ():
            addresses = () if arguments.get(name) else addresses_in(defaults.get(name, ()))
            if addresses:
                raise SettingsError(
                    name, f"is {addresses[0]} in {NAME} of this folder; name it yourself to agree"
                )
        chosen, more = {**defaults, **arguments}, dict[str, Any]()
        model = chosen.get("model")
        if "price" in self.fields and not arguments.get("price"):
            models = model if isinstance(model, list | tuple) else (model,)
            specs = tuple(spec for spec in models if isinstance(spec, str))
            chosen["price"] = config.price_of(specs) or chosen.get("price")
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
            chosen["model"], more["functions"] = "function", (model,)
        values: dict[str, dict[tuple[str, ...], Any]] = {name: {} for name in self.kinds}
        for name, (parameter, described, default) in self.fields.items():
            if name in chosen:
                values[parameter][described.path] = value_of(described, chosen[name])
            elif default is not MISSING:
                values[parameter][described.path] = default
        settings = {name: build(kind, values[name]) for name, kind in self.kinds.items()}
        how: Any = next((s for s in settings.values() if isinstance(s, Reading)), Reading())
        frame_kind = None
        for source in self.shape.inputs:
            if (value := chosen.get(source.name)) is None:
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
        if len(value) <= 64 and all(isinstance(entry, bool | int | float | str) for entry in value):
            return list(value)
        return f"{type(value).__name__} of {len(value):,}"
    made = getattr(value, "made", None)
    if isinstance(made, Made):
        return {"call": made.call, "settings": made.settings}
    name = getattr(value, "__qualname__", type(value).__qualname__)
    return f"{getattr(value, '__module__', '')}.{name}".lstrip(".")


def name_of(described: Described) -> str:
    """A setting's name in Python: its option's, with an underscore after a word of Python's own."""
    option = described.field.option_of(described.path[-1].rstrip("_"))
    name = option.rpartition(".")[2].replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


def _default(described: Described) -> Any:
    """A setting's default: the command's, but nothing is written in Python unless it is asked."""
    is_output = described.path[-1] == "out" and described.plain is not described.type
    return None if is_output else described.default


def value_of(described: Described, value: Any) -> Any:
    """A value as the setting takes it: several as a tuple, numbers in words as words.

    A range or a list of numbers is `5-12` or `5,7,9` where the setting is written so. Raises
    `SettingsError` for a value of another type.
    """
    hint = described.plain
    if value is None or hasattr(hint, "of"):
        return value
    is_single = isinstance(value, str | Path) or hasattr(value, "paths")
    is_single = is_single or not isinstance(value, Iterable)
    is_several = get_origin(hint) is tuple
    listed = (value,) if is_single or (hint is not str and not is_several) else tuple(value)
    if hint is str and not isinstance(value, str | Path) and isinstance(value, Iterable):
        may_be_range = "-" in described.field.unit and all(isinstance(n, int) for n in listed)
        if may_be_range and len(listed) > 1 and listed == (*range(listed[0], listed[-1] + 1),):
            return f"{listed[0]}-{listed[-1]}"
        return ",".join(map(str, listed))
    kind, values = get_args(hint)[0] if is_several else hint, []
    allowed = {float: (int, float), int: (int,), bool: (bool,), str: (str,), Path: (Path,)}
    for entry in listed:
        # Of an open reference, its location.
        paths = getattr(entry, "paths", None)
        if kind is str and isinstance(paths, list | tuple) and len(paths) == 1:
            entry = paths[0]
        if kind is Path and isinstance(entry, str):
            entry = Path(entry)
        if kind is str and isinstance(entry, int | float | Path) and not isinstance(entry, bool):
            entry = str(entry)
        is_wrong = kind in allowed and not isinstance(entry, allowed[kind])
        if is_wrong or (kind in (int, float) and isinstance(entry, bool)):
            shown, name = _type_shown(described), type(entry).__name__
            raise SettingsError(described.path[-1], f"must be {shown}, got a value of type {name}")
        values.append(entry)
    return tuple(values) if is_several else values[0]


def _type_shown(described: Described) -> str:
    hint = described.plain
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
    if described.path[-1] == "references":
        shown = "str | Path | Reference"
    if several:
        shown = f"{shown} | Sequence[{shown}]"
    elif inner is str and not hasattr(hint, "of"):
        shown = "str | Sequence[float]" if described.field.unit in _NUMBERS else shown
    is_optional = described.default is not MISSING and _default(described) is None
    return f"{shown} | None" if is_optional else shown


_NUMBERS = ("LOW-HIGH", "RATES", "N,N", "N,N,N")
"""Units of settings that are several numbers in words."""


def _input_type(source: Input) -> str:
    if source.is_texts:
        shown = "Texts"
    elif source.kind in (str, int):
        shown = str(source.kind.__name__)
    else:
        shown = "str | Path" if source.kind is Path else "Any"
    if source.is_many and shown not in ("Any", "Texts"):
        shown = f"{shown} | Sequence[{shown}]"
    return shown if source.is_required else f"{shown} | None"


def _hint(name: str, names: list[str]) -> str:
    close = get_close_matches(name, names, n=1)
    return f"did you mean `{close[0]}`?" if close else f"it has {', '.join(sorted(names))}"


def settings_from(kind: type[S], given: Mapping[str, Any], fixed: Mapping[str, Any]) -> S:
    """Settings of a class from values by the names of arguments. Raises `SettingsError`.

    `fixed` are values by the names of fields; they cannot be given again.
    """
    fields = {name_of(d): d for d in fields_of(kind) if d.path[-1] not in fixed}
    values = {d.path: fixed[d.path[-1]] for d in fields_of(kind) if d.path[-1] in fixed}
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
    built_in = [job for name, members in sections().items() if name != OTHERS for job in members]
    functions = [function_of(job) for job in built_in]
    results = {inspect.signature(function).return_annotation for function in functions}
    imports = [f"from {kind.__module__} import {kind.__name__}" for kind in results]
    imports += [
        f"from {place} import {name} as {name}"
        for place, names in vars(fabula)["_PLACES"].items()
        for name in names.split()
    ]
    parts = [_HEAD + "\n".join(sorted(set(imports))), "Texts = Any\n__version__: str"]
    for function in functions:
        signature, lines = inspect.signature(function), list[str]()
        for parameter in signature.parameters.values():
            if parameter.kind is parameter.KEYWORD_ONLY and "    *," not in lines:
                lines.append("    *,")
            default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
            # Paths and classes of settings have no literal.
            default = " = ..." if default and "(" in default.replace("()", "") else default
            lines.append(f"    {parameter.name}: {parameter.annotation}{default},")
        doc = textwrap.indent(inspect.getdoc(function) or "", "    ").strip()
        name, listed = signature.return_annotation.__name__, "\n".join(lines)
        parts.append(f'def {function.__name__}(\n{listed}\n) -> {name}:\n    r"""{doc}\n    """\n')
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


if __name__ == "__main__":
    print(stub(), end="")
