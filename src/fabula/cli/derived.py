"""Options derived from the settings of a job, and errors that name settings as options."""

from __future__ import annotations

import dataclasses
import re
import traceback
import types
from collections.abc import Callable
from functools import wraps
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from fabula.cli.config import agree_to_addresses, read_config
from fabula.cli.notices import common_options, is_verbose, log_error, logging_to
from fabula.cli.records import recorded
from fabula.errors import FabulaError
from fabula.settings import Between, Described, Field, Settings, SettingsError, build, fields_of

_SEPARATOR = "__"


class Option(click.Option):
    """An option derived from a setting."""

    def __init__(self, *args: Any, setting: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self.setting = setting

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        return None if record is None else (record[0], _with_options(record[1], ctx.command))


_SHORT = {"--out": "-o", "--model": "-m", "--reference": "-r", "--jobs": "-j"}
"""Short forms of the most common options, the same in every command."""


class Command(click.Command):
    """A command with the common options and the user's configured defaults.

    Settings named in errors are shown as options.
    """

    def __init__(
        self,
        name: str | None,
        callback: Callable[..., Any],
        params: list[click.Parameter],
        **more: Any,
    ) -> None:
        asked_for, called = _asked_for(callback)
        declared = {param.name for param in params}
        params += [param for param in asked_for if param.name not in declared]
        super().__init__(name, callback=called, params=params, **more)
        for option in self.params:
            short = _SHORT.get(option.opts[-1])
            if short is not None and short not in option.opts:
                option.opts.insert(0, short)
        self.params += common_options()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        config = read_config()
        defaults = {
            option.name: getattr(config, option.opts[-1].removeprefix("--"))
            for option in self.params
            if option.opts[-1] in ("--reference", "--model") and option.multiple
        }
        ctx.default_map = {name: value for name, value in defaults.items() if name and value}
        left = super().parse_args(ctx, args)
        if config.is_of_folder and ctx.default_map:
            taken = [
                ctx.params[name]
                for name in ctx.default_map
                if ctx.get_parameter_source(name) is ParameterSource.DEFAULT_MAP
            ]
            agree_to_addresses(chain.from_iterable(taken))
        named = {option.opts[-1]: option.name for option in self.params if option.name}
        models, price = named.get("--model"), named.get("--price")
        if price is not None and ctx.params.get(price) is None:
            asked = () if models is None else ctx.params[models]
            asked = asked if isinstance(asked, tuple) else (asked,)
            ctx.params[price] = config.price_of(asked)
        return left

    def invoke(self, ctx: click.Context) -> Any:
        with logging_to(ctx):
            try:
                with recorded(ctx):
                    return super().invoke(ctx)
            except SettingsError as error:
                raise click.UsageError(in_options(str(error))) from error
            except FabulaError as error:
                # Errors name settings; only this layer knows them as options.
                error.args = (in_options(str(error)), *error.args[1:])
                log_error(str(error))
                if is_verbose():
                    traceback.print_exception(error)
                raise


class Group(click.Group):
    """A group of such commands."""

    command_class = Command
    group_class = type


_USUAL: dict[tuple[str, Any], tuple[tuple[str, str], ...]] = {
    ("as_json", bool): (("--json", "Print JSON to standard output and nothing else."),),
    ("as_json", str | None): (
        ("--json", "Print one JSON array of rows to standard output and nothing else."),
        ("--jsonl", "Print one line of JSON per row, as rows are ready, and nothing else."),
    ),
    ("yes", bool): (("--yes", "Accept the cost without asking for confirmation."),),
}
"""The options of a command's parameter, by its name and type."""


def _asked_for(function: Callable[..., Any]) -> tuple[list[click.Parameter], Callable[..., Any]]:
    """The options that a command's function asks for, and the function that click calls.

    A parameter whose type is a class of settings gets an option for each of their fields.
    """
    hints = get_type_hints(function)
    parts = {
        name: (kind, list(fields_of(kind)))
        for name, kind in hints.items()
        if isinstance(kind, type) and issubclass(kind, Settings)
    }
    params: list[click.Parameter] = []
    for name, kind in hints.items():
        params += (
            Option(_names(one), setting=one.path[-1], **_attributes(one))
            for one in parts.get(name, (kind, []))[1]
        )
        for option, told in _USUAL.get((name, kind), ()):
            value = True if kind is bool else option.removeprefix("--")
            params.append(click.Option([option, name], is_flag=True, flag_value=value, help=told))

    @wraps(function)
    def called(*args: Any, **given: Any) -> Any:
        for name, (kind, described) in parts.items():
            values = {one.path: given.pop(_SEPARATOR.join(one.path)) for one in described}
            given[name] = build(kind, values)
        return function(*args, **given)

    return params, called


def _names(one: Described) -> list[str]:
    """Return the names of an option, as click declares them."""
    option = one.field.option_of(one.path[-1])
    can_be_off = _plain(one.type) is bool and one.default is not False
    return [_SEPARATOR.join(one.path), f"--{option}" + (f"/--no-{option}" if can_be_off else "")]


def _attributes(one: Described) -> dict[str, Any]:
    """Return click's attributes for an option."""
    field, default = one.field, one.default
    is_required, several = default is dataclasses.MISSING, get_origin(one.type) is tuple
    told = f"  [default: {field.default_text}]" if field.default_text else ""
    told += f"  [env: {field.env}]" if field.env else ""
    found: dict[str, Any] = {
        "help": field.help + told,
        "required": is_required,
        "envvar": field.env or None,
        "multiple": several,
        # click turns any default, even None, into a value: the option would never be missing.
        **({} if is_required else {"default": default}),
        "show_default": not is_required and default not in (None, (), "") and default is not False,
    }
    kind = _plain(one.type)
    if kind is bool:
        return found | {"is_flag": True} if default is False else found
    each = get_args(kind)[0] if several else kind
    if unit := field.unit or {int: "N", Path: "FILE"}.get(each):
        found["metavar"] = unit
    return found | {"type": _click_type(field, each)}


def _plain(hint: Any) -> Any:
    """Return a type without `| None`."""
    if get_origin(hint) in (Union, types.UnionType):
        (plain,) = (one for one in get_args(hint) if one is not type(None))
        return plain
    return hint


def _click_type(field: Field, kind: Any) -> Any:
    if get_origin(kind) is Literal:
        return click.Choice([str(choice) for choice in get_args(kind)])
    if kind is Path:
        return click.Path(path_type=Path, file_okay=field.unit != "DIR")
    check = field.check
    if isinstance(check, Between) and kind in (int, float):
        numbers = click.IntRange if kind is int else click.FloatRange
        return numbers(check.low, check.high, check.low_open, check.high_open)  # type: ignore[arg-type]
    return kind


_NAMED = re.compile(r"`(\w+)(?:=True)?`")


def in_options(sentence: str) -> str:
    """Replace settings named as `name` in a sentence with options of the running command."""
    context = click.get_current_context(silent=True)
    return sentence if context is None else _with_options(sentence, context.command)


def _with_options(sentence: str, command: click.Command) -> str:
    options: dict[str, str] = {}
    for param in command.params:
        if isinstance(param, click.Option):
            long = [*param.secondary_opts, param.opts[-1]]
            options |= {option.lstrip("-").replace("-", "_"): option for option in long}
            options[getattr(param, "setting", param.name)] = param.opts[-1]
    return _NAMED.sub(lambda found: options.get(found[1], found[0]), sentence)
