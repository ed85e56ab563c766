"""Commands and their options, derived from the jobs; errors that name settings as options."""

from __future__ import annotations

import dataclasses
import logging
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from fabula.cli import notices
from fabula.cli.notices import Bar
from fabula.cli.records import CommandRunner, CorpusType, recorded
from fabula.core.errors import FabulaError
from fabula.core.settings import (
    Between,
    Described,
    Settings,
    SettingsError,
    build,
    fields_of,
    values_of,
)
from fabula.core.store import dump_json
from fabula.core.types import Document
from fabula.jobs.job import Declined, OneSource, Shape, WholeStream
from fabula.jobs.registry import Job
from fabula.jobs.result import Result, has
from fabula.jobs.shared_settings import (
    NAME,
    Reading,
    TableFiles,
    addresses_in,
    is_output,
    read_config,
    read_stories,
    rows_file,
)

if TYPE_CHECKING:
    from fabula.models.cost import Estimate

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
        return (shown, notices.with_options(record[1], ctx.command))


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
        self, name: str, callback: Callable[..., Any], params: list[click.Parameter], **more: Any
    ) -> None:
        hints = get_type_hints(callback)
        # A parameter whose type is a class of settings gets an option for each of their fields.
        types = ((place, kind) for place, kind in hints.items() if isinstance(kind, type))
        parts = {p: (kind, fields_of(kind)) for p, kind in types if issubclass(kind, Settings)}
        declared = {param.name for param in params}
        asked_for: list[click.Parameter] = []
        for place, kind in hints.items():
            asked_for += (_option(d, kind.sets) for d in parts.get(place, (kind, ()))[1])
            for flag, text in _USUAL.get((place, kind), ()):
                value = True if kind is bool else flag.removeprefix("--")
                switch = click.Option([flag, place], is_flag=True, flag_value=value, help=text)
                asked_for.append(switch)
        params += [param for param in asked_for if param.name not in declared]

        @wraps(callback)
        def called(*args: Any, **given: Any) -> Any:
            for place, (kind, described) in parts.items():
                values = {d.path: given.pop(_SEPARATOR.join(d.path)) for d in described}
                given[place] = build(kind, values)
            return callback(*args, **given)

        super().__init__(name, callback=called, params=params, **more)
        for option in self.params:
            short = _SHORT.get(option.opts[-1])
            if short is not None and short not in option.opts:
                option.opts.insert(0, short)
        self.params += notices.common_options()

    def shared(self) -> dict[str, list[click.Option]]:
        """Its options that many commands have, by their set."""
        by_set: dict[str, list[click.Option]] = {name: [] for name in SHARED}
        for option in self.params:
            if isinstance(option, click.Option):
                is_common = option.opts[-1] in _OF_OUTPUT
                name = "output" if is_common else getattr(option, "shared", "")
                by_set.get(name, []).append(option)
        return {name: options for name, options in by_set.items() if options}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own options, then a line for each shared set."""
        shared = self.shared()
        apart = {id(option) for options in shared.values() for option in options}
        options = (p for p in self.get_params(ctx) if isinstance(p, click.Option))
        own = (option for option in options if id(option) not in apart)
        records = [pair for option in own if (pair := option.get_help_record(ctx))]
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
        formatter.write_dl([pair for option in options if (pair := option.get_help_record(ctx))])
        if any(getattr(option, "tuned", False) for option in options):
            formatter.write_paragraph()
            formatter.write_text(f"What is set by --set can stand in {NAME} too, under [{name}].")
        return formatter.getvalue().rstrip("\n")

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.help = self.translated_help()
        super().format_help_text(ctx, formatter)

    def translated_help(self) -> str:
        """Its help, in which settings are options."""
        return notices.with_options(self.help or "", self)

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
        words, args = iter(args), []
        for word in words:
            if word == "--":
                args += [word, *words]
                break
            is_set = word == "--set" or word.startswith("--set=")
            assigned = next(words, "") if word == "--set" else word.removeprefix("--set=")
            if is_set and "=" not in assigned:
                raise click.UsageError("--set must be NAME=VALUE, as in --set models.timeout=30")
            args.append(f"--{assigned}" if is_set else word)
        config = read_config()
        params = [param for param in self.params if isinstance(param, click.Option)]
        options = {param.opts[-1].removeprefix("--"): param for param in params}
        configured = config.values_of({name: o.multiple for name, o in options.items()})
        ctx.default_map = {str(options[name].name): value for name, value in configured.items()}
        rest = super().parse_args(ctx, args)
        if config.is_of_folder and ctx.default_map:
            usual = ParameterSource.DEFAULT_MAP
            kept = (name for name in ctx.default_map if ctx.get_parameter_source(name) is usual)
            taken = [ctx.params[name] for name in kept if isinstance(ctx.params[name], tuple)]
            # Texts and keys go to no address that only this folder's file names, unasked.
            if addresses := addresses_in(chain.from_iterable(taken)):
                from platformdirs import user_config_path

                shown, place = ", ".join(addresses), user_config_path("fabula")
                warning = f"{NAME} in this folder names {shown}, which texts would be sent to"
                if not sys.stdin.isatty():
                    remedy = f"give the address as an option, or keep it in {place}"
                    raise click.UsageError(f"{warning}; {remedy}")
                click.confirm(f"{warning}. Go on?", abort=True, err=True)
        names = {option.opts[-1]: option.name for option in self.params if option.name}
        models, price = names.get("--model", names.get("--written-by")), names.get("--models.price")
        if price is not None and ctx.params.get(price) is None:
            specs = () if models is None else ctx.params[models]
            specs = specs if isinstance(specs, tuple) else (specs,)
            ctx.params[price] = config.price_of(specs)
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        with notices.logging_to(ctx):
            try:
                with recorded(ctx):
                    return super().invoke(ctx)
            except Declined as error:
                raise error.__cause__ or error from None
            except SettingsError as error:
                raise click.UsageError(notices.in_options(str(error))) from error
            except FabulaError as error:
                # Errors name settings; only this layer knows them as options.
                error.args = (notices.in_options(str(error)), *error.args[1:])
                notices.log_step(str(error), logging.ERROR)
                if ctx.meta.get(notices.VERBOSE):
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


def _option(described: Described, sets: Mapping[str, str]) -> Option:
    """The option of a setting; `sets` are the shared sets that are the job's own elsewhere."""
    field, default, kind = described.field, described.default, described.plain
    is_required, several = default is dataclasses.MISSING, get_origin(described.type) is tuple
    notes = f"  [default: {field.default_text}]" if field.default_text else ""
    notes += f"  [env: {field.env}]" if field.env else ""
    more: dict[str, Any] = {
        "help": field.help + notes,
        "required": is_required,
        "envvar": field.env or None,
        "multiple": several,
        # click turns any default, even None, into a value: the option would never be missing.
        **({} if is_required else {"default": default}),
        "show_default": not is_required and default not in (None, (), "") and default is not False,
    }
    name, inner = field.option_of(described.path[-1]), get_args(kind)[0] if several else kind
    declared = f"--{name}"
    if kind is bool and field.tuned:
        more["type"] = bool
    elif kind is bool and default is False:
        more["is_flag"] = True
    elif kind is bool:
        declared += f"/--no-{name}"
    else:
        fallback = {int: "N", Path: "FILE"}.get(inner, "FILE" if hasattr(inner, "of") else "")
        if unit := field.unit or fallback:
            more["metavar"] = unit
        check, is_number = field.check, inner in (int, float)
        more["type"] = inner
        if get_origin(inner) is Literal:
            more["type"] = click.Choice([str(choice) for choice in get_args(inner)])
        elif inner is Path or hasattr(inner, "of"):
            more["type"] = click.Path(path_type=Path, file_okay=field.unit != "DIR")
        elif isinstance(check, Between) and is_number:
            numbers: Any = click.IntRange if inner is int else click.FloatRange
            more["type"] = numbers(check.low, check.high, check.low_open, check.high_open)
    return Option(
        [_SEPARATOR.join(described.path), declared],
        setting=described.path[-1],
        shared=sets.get(described.path[-1], field.shared),
        tuned=field.tuned,
        **more,
    )


def command_of(job: Job) -> Command:
    """The command with the job's inputs, settings and output formats."""
    shape = job.load()
    kinds: dict[str, Any] = dict(shape.settings)
    if any(source.is_texts for source in shape.inputs):
        kinds["how_to_read"] = Reading
    has_tables = has(shape.result, "tables")
    if has_tables and not any(issubclass(kind, TableFiles) for kind in kinds.values()):
        kinds["files"] = TableFiles
    if has_tables or has(shape.result, "to_json") or has(shape.result, "rows"):
        kinds["as_json"] = str | None if has(shape.result, "rows") else bool
    if {"confirm", "agree", "runner"} & shape.handed:
        kinds["yes"] = bool

    def run(**given: Any) -> None:
        _do(job.name, shape, given)

    run.__annotations__ = kinds
    arguments: list[click.Parameter] = []
    for source in shape.inputs:
        if source.mark == "corpus":
            kind: Any = CorpusType()
        else:
            is_made = hasattr(source.kind, "of") and not source.is_texts
            is_path = isinstance(source.kind, type) and (is_made or issubclass(source.kind, Path))
            kind = click.Path(path_type=Path) if is_path else int if source.kind is int else str
        is_many, required = source.is_many or source.mark == "texts", source.is_required
        word = {"corpus": "DIR", "texts": ""}.get(source.mark, source.mark) or source.name.upper()
        shown = f"{word}..." if is_many else word
        argument = click.Argument(
            [source.name],
            nargs=-1 if is_many else 1,
            required=required,
            metavar=shown if required else f"[{shown}]",
            type=kind,
        )
        arguments.append(argument)
    name = job.name.rpartition(" ")[2]
    return Command(name, run, arguments, short_help=job.short, help=shape.help)


def _do(name: str, shape: Shape, arguments: dict[str, Any]) -> None:
    """Do the job with what the command was given, and show its result."""
    as_json, yes = arguments.pop("as_json", None), arguments.pop("yes", False)
    form = "json" if as_json is True else as_json or None
    how = arguments.get("how_to_read") or Reading()
    settings = [value for value in arguments.values() if isinstance(value, Settings)]
    files = next((part for part in settings if isinstance(part, TableFiles)), None)
    for parameter in ("how_to_read", "files"):
        if parameter not in shape.settings:
            arguments.pop(parameter, None)
    outputs = _checked_outputs(shape, arguments, settings, files)
    incomplete: list[str] = []

    def read_all(others: tuple[str, ...]) -> Iterator[Document]:
        with notices.progress_bar("reading", None, in_bytes=True) as bar:
            yield from _reading_of(others, how, bar, incomplete)

    with ExitStack() as stack:
        texts = [source for source in shape.inputs if source.is_texts]
        streams = [source for source in texts if source.kind is not Document]
        sources = tuple(arguments[texts[0].name]) if texts else ()
        for source in shape.inputs:
            value, make = arguments[source.name], getattr(source.kind, "of", None)
            if source.kind is Document:
                arguments[source.name] = read_stories(tuple(value), read_all) if value else []
            elif not source.is_texts and value is not None and make is not None:
                arguments[source.name] = tuple(map(make, value)) if source.is_many else make(value)
        bar = Bar()
        if streams or "progress" in shape.handed:
            bar = stack.enter_context(notices.progress_bar(name, None, in_bytes=bool(streams)))
        for source in streams:
            names = arguments.pop(source.name)
            if source.kind is OneSource:
                names = () if names is None else (names,)
            # Left out, the job's own default says so.
            if names:
                is_whole = issubclass(source.kind, WholeStream)
                read = partial(_reading_of, names, how, bar, incomplete, is_whole=is_whole)
                arguments[source.name] = source.kind(read, names, how)
        rows = stack.enter_context(_json_rows(form)) if "each" in shape.handed else None
        offered: dict[str, Any] = {
            "progress": bar,
            "confirm": partial(_confirm, bar, yes),
            "each": rows,
            "agree": partial(_ask, bar, yes),
            "announce": click.echo,
            "warn": partial(click.echo, err=True),
            "runner": CommandRunner(yes=yes),
            "sources": sources,
            "is_shown": form is None,
        }
        handed = {name: offered[name] for name in shape.handed if name in offered}
        result = shape.function(**arguments, **handed)
    _show(result, form, outputs, files, is_printed=rows is not None)
    if incomplete:
        click.echo("\n".join(incomplete), err=True)
        # So that scripts can detect incomplete input.
        click.get_current_context().exit(1)


def _reading_of(
    sources: tuple[str, ...],
    how: Reading,
    bar: Bar,
    incomplete: list[str],
    *,
    is_whole: bool = False,
) -> Iterator[Document]:
    """The documents of the sources, while the bar advances.

    If there are several files, unreadable ones are skipped with a notice, and `incomplete` says so
    at the end. `is_whole`: for results that need every file; the first unreadable one is an error.
    """
    from fabula.text import find_files

    files = find_files(sources, format_=how.format)
    bar.begin("reading", sum(file.size_bytes or 0 for file in files) or None)
    n_left_out = 0

    def leave_out(error: Exception) -> None:
        nonlocal n_left_out
        n_left_out += 1
        bar.tell(f"left out: {error}")

    skip = None if is_whole else leave_out
    yield from how.documents(files, meter=bar.advance, on_unreadable=skip)
    if n_left_out:
        n = f"{n_left_out:,} of {len(files):,}"
        incomplete.append(f"{n} files could not be read and were left out")


def _confirm(bar: Bar, yes: bool, model: str, estimate: Estimate) -> None:
    """Print what is planned, and ask if it costs money. Raises `Declined`."""
    if not estimate.n_calls or estimate.cost == 0:
        return
    at_most = "at most " if estimate.is_most else ""
    cost = "price unknown, set it with --set models.price=IN/OUT"
    if estimate.cost is not None:
        cost = f"{at_most or 'about '}{estimate.cost:.2f} dollars"
    usage = estimate.usage
    line = (
        f"{model}: {at_most}{estimate.n_calls:,} calls, about {usage.n_input:,} input tokens "
        f"({usage.n_cached:,} of them in shared prefixes), {usage.n_output:,} output tokens, {cost}"
    )
    is_own_server = estimate.cost is None and model.startswith(("http://", "https://"))
    try:
        _ask(bar, yes or is_own_server, "Continue?", [line], cannot="cannot confirm the cost")
    except (click.Abort, click.UsageError) as error:
        # A report goes on without this model; all else ends as click ends it.
        raise Declined(model) from error


def _ask(
    bar: Bar, yes: bool, question: str, lines: Iterable[str] = (), *, cannot: str = "cannot ask"
) -> None:
    """Ask before what costs money or time, or cannot be undone. Raises `click.UsageError`."""
    with bar.paused():
        for line in lines:
            click.echo(line, err=True)
        if yes:
            return
        if not sys.stdin.isatty():
            raise click.UsageError(f"{cannot}: not a terminal (use --yes)")
        click.confirm(question, abort=True, err=True)


@contextmanager
def _json_rows(form: str | None) -> Iterator[Callable[[Any], None]]:
    """Rows printed as they arrive: one array (`json`), one per line (`jsonl`), or nothing.

    If an error stops them, the array is left unclosed, so that nobody takes it for a complete one.
    """
    n = 0

    def print_row(row: Any) -> None:
        nonlocal n
        if form is not None:
            before = "" if form == "jsonl" else ",\n" if n else "[\n"
            after = "\n" if form == "jsonl" else ""
            click.echo(before + _json_of(row) + after, nl=False)
            n += 1

    yield print_row
    if form == "json":
        click.echo("\n]" if n else "[]")


def _json_of(content: object) -> str:
    # A model may produce a lone surrogate, which no terminal can display.
    return dump_json(content).encode(errors="replace").decode()


def _show(
    result: Result,
    form: str | None,
    outputs: Sequence[Path],
    files: TableFiles | None,
    *,
    is_printed: bool,
) -> None:
    """Print a result, or its values as JSON, then what else there is to say."""
    lines = result.lines()
    wants_files = files is not None and (files.csv or files.latex)
    tables = result.tables() if wants_files or (form is None and not lines) else []
    in_words: Callable[[str], str] = notices.in_options if result.names_settings else str
    written: list[Path] = []
    if files is not None and wants_files:
        sheets = result.sheets() if has(type(result), "sheets") else tables
        written = files.write(sheets, result.records())
    if form is None:
        for line in lines:
            click.echo(in_words(line).encode(errors="replace").decode())
        if not lines:
            from fabula.show.sheet import render

            click.echo(in_words(render(*tables)), nl=False)
    elif not is_printed:
        has_only_rows = form == "jsonl" or not has(type(result), "to_json")
        content = result.rows() if has_only_rows else result.to_json()
        if isinstance(content, list):
            with _json_rows(form) as print_row:
                for row in content:
                    print_row(row)
        else:
            click.echo(_json_of(content))
    for line in result.notices():
        click.echo(in_words(line), err=form is not None)
    if not lines:
        # Never mixed into the JSON.
        for path in [*result.written(), *outputs, *written]:
            if path.exists():
                click.echo(f"written: {path}", err=form is not None)
    if (why := result.lacking()) is not None:
        if why:
            click.echo(why, err=True)
        click.get_current_context().exit(1)


def _checked_outputs(
    shape: Shape, arguments: dict[str, Any], settings: Iterable[Settings], files: TableFiles | None
) -> list[Path]:
    """The files that settings name for results, tables apart; creates the folders of all.

    Raises `UsageError` if an output is an input, or two outputs are one file.
    """
    outputs: list[Path] = []
    taken: set[Path] = set()
    for source in shape.inputs:
        value = arguments[source.name]
        for entry in value if isinstance(value, tuple) else (value,):
            if isinstance(entry, str | Path) and (source.is_texts or isinstance(entry, Path)):
                taken.add(Path(entry).resolve())
    for part in settings:
        for described, value in values_of(part):
            name = described.path[-1]
            if not is_output(described):
                for entry in value if isinstance(value, tuple) else (value,):
                    path = getattr(entry, "path", entry)
                    if isinstance(path, Path):
                        taken.add(path.resolve())
            elif value is not None and not (part is files and name in ("csv", "latex")):
                share = getattr(part, "share", None) if name == "out" else None
                outputs.append(rows_file(share, value))
    tables = [] if files is None else [path for path in (files.csv, files.latex) if path]
    for path in [*outputs, *tables]:
        if path.is_dir():
            raise click.UsageError(f"{path} is a folder; name a file")
        if path.resolve() in taken:
            raise click.UsageError(
                f"{path} is already read or written by this command; name another file"
            )
        taken.add(path.resolve())
        # Fail now, not after everything is computed.
        path.parent.mkdir(parents=True, exist_ok=True)
    if files is not None:
        files.check_files()
    return outputs
