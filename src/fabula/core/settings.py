"""The settings of jobs: frozen dataclasses whose fields define each setting in one place.

A field has a type, a default, a help line, a unit and a check. Command options, forms, and the
checks of calls from Python are derived from it, so a setting has one name, one help text and one
default everywhere. Constructors reject invalid values, wherever they come from.

    @dataclass(frozen=True, slots=True)
    class Sampling(Settings):
        n_samples: int = setting(1, help="Times to ask.", check=Between(1, 1000), option="samples")
        seed: int = setting(0, help="Seed of all random draws.", check=Between(0))

A field whose type is a subclass of `Settings` is a part: its fields become options of the same
command.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, replace
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from fabula.core.errors import InputError

_KEY = "fabula"
S = TypeVar("S", bound="Settings")
F = TypeVar("F", bound=Callable[..., Any])


class SettingsError(InputError):
    """A setting has an invalid value, or one that conflicts with others.

    `name` is the field's name, which a command line shows as its option; `problem` follows it:
    "must be at least 1, got 0".
    """

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"`{name}` {problem}")
        self.name, self.problem = name, problem


Check = Callable[[Any], "str | None"]
"""Returns what is wrong with a value, as words that follow the setting's name, or None.

A whole sentence follows a colon instead.
"""


@dataclass(frozen=True, slots=True)
class Between:
    """A number from `low` to `high`, both included unless an end is open; None is no limit."""

    low: float | None = None
    high: float | None = None
    low_open: bool = False
    high_open: bool = False

    def __call__(self, value: Any, /) -> str | None:
        low, high = self.low, self.high
        is_above = low is None or (value > low if self.low_open else value >= low)
        is_below = high is None or (value < high if self.high_open else value <= high)
        return None if is_above and is_below else f"must be {self.words()}, got {value!r}"

    def words(self) -> str:
        """The condition in words: "at least 1", "above 0 and at most 1"."""
        low = "" if self.low is None else f"{'above' if self.low_open else 'at least'} {self.low:g}"
        high = (
            "" if self.high is None else f"{'below' if self.high_open else 'at most'} {self.high:g}"
        )
        return " and ".join(filter(None, (low, high)))


@dataclass(frozen=True, slots=True)
class Field:
    """The definition of a setting, besides its type and its default."""

    help: str
    unit: str = ""
    """Placeholder for the value in a usage line: N, FILE, DOLLARS."""
    check: Check | None = None
    option: str = ""
    """Name of the option, if it is not the field's name (without `n_`)."""
    default_text: str = ""
    """What a default of None means, for help texts."""
    shared: str = ""
    """The set of settings, alike in many jobs, that it belongs to: models, reading, running."""
    tuned: bool = False
    """Whether it only tunes a set: no option of its own, but `--set models.timeout=30`."""
    env: str = ""
    """The environment variable that sets it if no option does."""

    def option_of(self, name: str) -> str:
        """Its long option without the dashes; `name` is the field's name."""
        option = self.option or name.removeprefix("n_").replace("_", "-")
        return f"{self.shared}.{option}" if self.tuned else option


def setting(
    default: Any = MISSING,
    *,
    help: str,  # noqa: A002 (click's word)
    tunes: str = "",
    **known: Any,
) -> Any:
    """A field of a settings class; `known` as in `Field`. Without a default it is required.

    One that `tunes` a shared set has no option of its own.
    """
    if tunes:
        known |= {"shared": tunes, "tuned": True}
    metadata = {_KEY: Field(help, **known)}
    if default is MISSING:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def seed_setting(
    help: str = "Seed of all random draws; the same seed gives the same bytes.",  # noqa: A002
) -> int:
    """The field `seed` of a job that draws at random."""
    made: int = setting(0, help=help, check=Between(0, 2**63 - 1), shared="running")
    return made


def of_field(help: str, **known: Any) -> Any:  # noqa: A002
    """A setting that names a field of the texts, or none; `known` as in `Field`."""
    return setting(None, help=help, unit="FIELD", **known)


def part(kind: type[S] | None) -> S:
    """A field holding further settings, all at defaults; required if `kind` is None."""
    made: Any = dataclasses.field() if kind is None else dataclasses.field(default_factory=kind)
    return made  # type: ignore[no-any-return]


class Settings:
    """Base class of settings, which are frozen dataclasses. Raises `SettingsError`."""

    __slots__ = ()
    sets: ClassVar[Mapping[str, str]] = {}
    """The shared sets of settings that are a job's own elsewhere, by name."""

    def __post_init__(self) -> None:
        for described in fields_of(type(self)):
            if len(described.path) > 1:
                continue
            name, check, choices = described.path[0], described.field.check, described.choices
            value = getattr(self, name)
            make = getattr(described.plain, "of", None)
            if make is not None and value is not None:
                # The class is frozen once it is made.
                object.__setattr__(self, name, make(value))
            is_several = get_origin(described.type) is tuple
            if is_several and isinstance(value, str):
                raise SettingsError(name, f"must be a tuple, got the string {value!r}")
            for each in value if is_several else (value,):
                if choices and each not in choices:
                    allowed = ", ".join(map(repr, choices))
                    raise SettingsError(name, f"must be one of {allowed}; got {each!r}")
                begin = _ADDRESS.match(str(each)) if isinstance(each, Path) else None
                # `s3://...` as a path would be a folder named `s3:` here.
                if begin is not None and not Path(begin[0]).exists():
                    address = str(each).replace(":/", "://", 1)
                    raise SettingsError(
                        name,
                        f"must be a path on this machine, got {address}; only a reference corpus "
                        "can be kept in an object store",
                    )
                if check is not None and each is not None and (problem := check(each)):
                    raise SettingsError(name, problem)
        self.check_together()

    def check_together(self) -> None:
        """Check fields against each other. Raises `SettingsError`; the base accepts everything."""


@dataclass(frozen=True, slots=True)
class Described:
    """A setting with its path: the names of the parts that lead to it, and its own name."""

    path: tuple[str, ...]
    field: Field
    type: Any
    plain: Any
    """The type without `| None`."""
    choices: tuple[Any, ...]
    """The values that a `Literal` allows, alone, optional or in a tuple; () for other types."""
    default: Any
    """`dataclasses.MISSING` if the setting is required."""


def _once(function: F) -> F:
    """Call it once for each class of settings."""
    return cache(function)  # type: ignore[return-value]


@_once
def fields_of(kind: type[Settings]) -> tuple[Described, ...]:
    """All settings of a class, including those of its parts, in order of definition."""
    rows: list[Described] = []
    for item, hint in _hinted(kind):
        if isinstance(hint, type) and issubclass(hint, Settings):
            rows += (replace(inner, path=(item.name, *inner.path)) for inner in fields_of(hint))
        elif (field := item.metadata.get(_KEY)) is not None:
            plain = hint
            if get_origin(hint) in (Union, UnionType):
                plain = next(each for each in get_args(hint) if each is not type(None))
            rows.append(Described((item.name,), field, hint, plain, _choices(hint), item.default))
    return tuple(rows)


@_once
def _hinted(kind: type[Settings]) -> tuple[tuple[dataclasses.Field[Any], Any], ...]:
    hints = get_type_hints(kind)
    return tuple((item, hints[item.name]) for item in dataclasses.fields(kind))  # type: ignore[arg-type]


def _choices(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) is Literal:
        return get_args(hint)
    inner = next(filter(None, map(_choices, get_args(hint))), ())
    return (*inner, None) if inner and type(None) in get_args(hint) else inner


def build(kind: type[S], values: Mapping[tuple[str, ...], Any]) -> S:
    """Build settings of a class from values by path, with paths as in `fields_of`."""
    arguments: dict[str, Any] = {}
    for item, hint in _hinted(kind):
        if isinstance(hint, type) and issubclass(hint, Settings):
            inner = {path[1:]: value for path, value in values.items() if path[0] == item.name}
            arguments[item.name] = build(hint, inner)
        elif (item.name,) in values:
            arguments[item.name] = values[item.name,]
    return kind(**arguments)


def values_of(settings: Settings) -> Iterator[tuple[Described, Any]]:
    """Each setting, of parts too, with its value."""
    for described in fields_of(type(settings)):
        value: Any = settings
        for name in described.path:
            value = getattr(value, name)
        yield described, value


def changed(settings: Settings) -> list[str]:
    """The names of the settings that are not at their defaults."""
    return [row.path[-1] for row, value in values_of(settings) if value != row.default]


_NAMED = re.compile(r"`(\w+)(?:=True)?`")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/")


def in_names(sentence: str, names: Mapping[str, str]) -> str:
    """A sentence in which settings, named as `n_jobs`, have the names of a door: `--jobs`."""
    return _NAMED.sub(lambda match: names.get(match[1], match[0]), sentence)
