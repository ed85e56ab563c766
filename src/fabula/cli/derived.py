"""Options derived from the settings of a job, and errors that name settings as options."""

from __future__ import annotations

import dataclasses
import logging
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import wraps
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from fabula.cli.notices import (
    VERBOSE,
    common_options,
    in_options,
    log_step,
    logging_to,
    with_options,
)
from fabula.cli.records import recorded
from fabula.errors import FabulaError
from fabula.jobs.config import NAME, addresses_in, read_config
from fabula.jobs.progress import Declined
from fabula.settings import Between, Described, Settings, SettingsError, build, fields_of

_SEPARATOR = "__"


class Option(click.Option):
    """An option derived from a setting.

    One that is `tuned` is `--models.timeout`, which users write as `--set models.timeout=30`.
    """

    def __init__(
        self, *args: Any, setting: str, shared: str = "", tuned: bool = False, **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self.hidden = tuned
        self.setting, self.shared, self.tuned = setting, shared, tuned

    def get_error_hint(self, ctx: click.Context | None) -> str:
        hint = super().get_error_hint(ctx)
        return hint.replace("--", "--set ", 1) if self.tuned else hint

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        hidden, self.hidden = self.hidden, False
        record = super().get_help_record(ctx)
        self.hidden = hidden
        if record is None:
            return None
        name, _, unit = record[0].removeprefix("--").partition(" ")
        shown = f"--set {name}={unit}" if self.tuned else record[0]
        return (shown, with_options(record[1], ctx.command))


SHARED = {
    "matching": "What counts as borrowed, and what is left out",
    "asking": "What is asked of each judge, and how often",
    "verdicts": "Whose verdicts are shown, by which rubric",
    "advice": "How models are asked for feedback",
    "models": "How models are called, and what they may cost",
    "near": "What counts as a near match",
    "index": "How a web-scale index or a served reference is asked",
    "reading": "How files and tables are read",
    "running": "Seed, and on how many processors or machines",
    "tools": "Checkers and encoders that instruments use",
    "tests": "How tests and intervals are computed, and what is listed",
    "serving": "What each client, and all together, may ask of the server",
    "output": "JSON, tables for papers, and notices",
}
"""What the sets of options are about that many commands share."""
_OF_OUTPUT = ("--json", "--jsonl", "--quiet", "--verbose", "--log")
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

    def shared(self) -> dict[str, list[click.Option]]:
        """Its options that many commands have, by their set."""
        found: dict[str, list[click.Option]] = {name: [] for name in SHARED}
        for option in self.params:
            if isinstance(option, click.Option):
                is_output = option.opts[-1] in _OF_OUTPUT
                name = "output" if is_output else getattr(option, "shared", "")
                found.get(name, []).append(option)
        return {name: options for name, options in found.items() if options}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own options, then a line for each shared set."""
        shared = self.shared()
        apart = {id(option) for options in shared.values() for option in options}
        records = [
            record
            for option in self.get_params(ctx)
            if isinstance(option, click.Option)
            and id(option) not in apart
            and (record := option.get_help_record(ctx)) is not None
        ]
        with formatter.section("Options"):
            formatter.write_dl(records)
        with formatter.section("Shared options, shown by --help and their name"):
            lines = [(f"--help {name}", SHARED[name]) for name in shared]
            if any(getattr(option, "tuned", False) for option in self.params):
                lines.append(("--set NAME=VALUE", "Set what tunes one: models.timeout=30"))
            formatter.write_dl(lines)

    def help_of(self, ctx: click.Context, name: str) -> str:
        """The options of a shared set."""
        formatter = ctx.make_formatter()
        formatter.write_text(f"{SHARED[name]}.")
        formatter.write_paragraph()
        options = self.shared()[name]
        formatter.write_dl([one for option in options if (one := option.get_help_record(ctx))])
        if any(getattr(option, "tuned", False) for option in options):
            formatter.write_paragraph()
            formatter.write_text(f"What is set by --set can stand in {NAME} too, under [{name}].")
        return formatter.getvalue().rstrip("\n")

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.help = self.translated_help()
        super().format_help_text(ctx, formatter)

    def translated_help(self) -> str:
        """Its help, in which settings are options."""
        return with_options(self.help or "", self)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for word, name in pairwise(args):
            if word in ("--help", "-h") and name in SHARED:
                if name not in self.shared():
                    sets = ", ".join(self.shared())
                    raise click.UsageError(
                        f"no shared options called {name}; this command has {sets}", ctx
                    )
                click.echo(self.help_of(ctx, name))
                ctx.exit()
        # `--set models.timeout=30` is `--models.timeout=30`.
        words, args = iter(args), []
        for word in words:
            if word == "--":
                args += [word, *words]
                break
            is_set = word == "--set" or word.startswith("--set=")
            given = next(words, "") if word == "--set" else word.removeprefix("--set=")
            if is_set and "=" not in given:
                raise click.UsageError("--set must be NAME=VALUE, as in --set models.timeout=30")
            args.append(f"--{given}" if is_set else word)
        config = read_config()
        options = {
            one.opts[-1].removeprefix("--"): one
            for one in self.params
            if isinstance(one, click.Option)
        }
        configured = config.values_of({name: one.multiple for name, one in options.items()})
        ctx.default_map = {str(options[name].name): one for name, one in configured.items()}
        left = super().parse_args(ctx, args)
        if config.is_of_folder and ctx.default_map:
            taken = [
                ctx.params[name]
                for name in ctx.default_map
                if isinstance(ctx.params[name], tuple)
                and ctx.get_parameter_source(name) is ParameterSource.DEFAULT_MAP
            ]
            # Texts and keys go to no address that only this folder's file names, unasked.
            if addresses := addresses_in(chain.from_iterable(taken)):
                from platformdirs import user_config_path

                shown = ", ".join(addresses)
                said = f"{NAME} in this folder names {shown}, which texts would be sent to"
                if not sys.stdin.isatty():
                    place = user_config_path("fabula")
                    raise click.UsageError(
                        f"{said}; give the address as an option, or keep it in {place}"
                    )
                click.confirm(f"{said}. Go on?", abort=True, err=True)
        named = {option.opts[-1]: option.name for option in self.params if option.name}
        models, price = named.get("--model", named.get("--written-by")), named.get("--models.price")
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
            except Declined as error:
                raise error.__cause__ or error from None
            except SettingsError as error:
                raise click.UsageError(in_options(str(error))) from error
            except FabulaError as error:
                # Errors name settings; only this layer knows them as options.
                error.args = (in_options(str(error)), *error.args[1:])
                log_step(str(error), logging.ERROR)
                if ctx.meta.get(VERBOSE):
                    traceback.print_exception(error)
                raise


_USUAL: dict[tuple[str, Any], tuple[tuple[str, str], ...]] = {
    ("as_json", bool): (("--json", "Print JSON to standard output and nothing else."),),
    ("as_json", str | None): (
        ("--json", "Print one JSON array of rows to standard output and nothing else."),
        ("--jsonl", "Print one line of JSON per row, as rows are ready, and nothing else."),
    ),
    ("yes", bool): (("--yes", "Agree to the cost, and to what else would be asked."),),
}
"""The options of a command's parameter, by its name and type."""


def _asked_for(function: Callable[..., Any]) -> tuple[list[click.Parameter], Callable[..., Any]]:
    """The options that a command's function asks for, and the function that click calls.

    A parameter whose type is a class of settings gets an option for each of their fields.
    """
    hints = get_type_hints(function)
    parts = {
        name: (kind, fields_of(kind))
        for name, kind in hints.items()
        if isinstance(kind, type) and issubclass(kind, Settings)
    }
    params: list[click.Parameter] = []
    for name, kind in hints.items():
        params += (_option(one, kind.sets) for one in parts.get(name, (kind, ()))[1])
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


def _option(one: Described, sets: Mapping[str, str]) -> Option:
    """The option of a setting; `sets` are the shared sets that are the job's own elsewhere."""
    field, default, kind = one.field, one.default, one.plain
    is_required, several = default is dataclasses.MISSING, get_origin(one.type) is tuple
    told = f"  [default: {field.default_text}]" if field.default_text else ""
    told += f"  [env: {field.env}]" if field.env else ""
    more: dict[str, Any] = {
        "help": field.help + told,
        "required": is_required,
        "envvar": field.env or None,
        "multiple": several,
        # click turns any default, even None, into a value: the option would never be missing.
        **({} if is_required else {"default": default}),
        "show_default": not is_required and default not in (None, (), "") and default is not False,
    }
    name, each = field.option_of(one.path[-1]), get_args(kind)[0] if several else kind
    declared = f"--{name}"
    if kind is bool and field.tuned:
        more["type"] = bool
    elif kind is bool and default is False:
        more["is_flag"] = True
    elif kind is bool:
        declared += f"/--no-{name}"
    else:
        usual = {int: "N", Path: "FILE"}.get(each, "FILE" if hasattr(each, "of") else "")
        if unit := field.unit or usual:
            more["metavar"] = unit
        check, is_number = field.check, each in (int, float)
        more["type"] = each
        if get_origin(each) is Literal:
            more["type"] = click.Choice([str(choice) for choice in get_args(each)])
        elif each is Path or hasattr(each, "of"):
            more["type"] = click.Path(path_type=Path, file_okay=field.unit != "DIR")
        elif isinstance(check, Between) and is_number:
            numbers: Any = click.IntRange if each is int else click.FloatRange
            more["type"] = numbers(check.low, check.high, check.low_open, check.high_open)
    return Option(
        [_SEPARATOR.join(one.path), declared],
        setting=one.path[-1],
        shared=sets.get(one.path[-1], field.shared),
        tuned=field.tuned,
        **more,
    )
