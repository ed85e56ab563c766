"""The command of a job, made from its signature."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import click

from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Command, in_options
from fabula.cli.inputs import read_stories, reading_of
from fabula.cli.options import CorpusType, check_outputs
from fabula.cli.printing import JsonRows, print_json, print_rows, print_tables, print_written
from fabula.cli.progress_bar import Bar, progress_bar
from fabula.cli.records import CommandRunner
from fabula.jobs.job import Input, OneSource, Shape, WholeStream
from fabula.jobs.reading import Reading
from fabula.jobs.registry import Job
from fabula.jobs.result import Result, has
from fabula.jobs.result_files import TableFiles, is_output, rows_file
from fabula.settings import Settings, fields_of
from fabula.types import Document


def command_of(job: Job) -> Command:
    """The command with the job's inputs, settings and output formats."""
    shape = job.load()
    kinds: dict[str, Any] = dict(shape.settings)
    if any(one.is_texts for one in shape.inputs):
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
    return Command(
        job.name.rpartition(" ")[2],
        run,
        [_argument(one) for one in shape.inputs],
        short_help=job.short,
        help=shape.help,
    )


def _argument(one: Input) -> click.Argument:
    """A positional parameter of a command."""
    if one.mark == "corpus":
        kind: Any = CorpusType()
    else:
        is_path = isinstance(one.kind, type) and (
            issubclass(one.kind, Path) or (hasattr(one.kind, "of") and not one.is_texts)
        )
        kind = click.Path(path_type=Path) if is_path else one.kind if one.kind is int else str
    is_many = one.is_many or one.mark == "texts"
    word = {"corpus": "DIR", "texts": ""}.get(one.mark, one.mark) or one.name.upper()
    shown = f"{word}..." if is_many else word
    return click.Argument(
        [one.name],
        nargs=-1 if is_many else 1,
        required=one.is_required,
        metavar=shown if one.is_required else f"[{shown}]",
        type=kind,
    )


def _do(name: str, shape: Shape, given: dict[str, Any]) -> None:
    """Do the job with what the command was given, and show its result."""
    as_json, yes = given.pop("as_json", None), given.pop("yes", False)
    form = "json" if as_json is True else as_json or None
    how = given.get("how_to_read") or Reading()
    if "how_to_read" not in shape.settings:
        given.pop("how_to_read", None)
    settings = [one for one in given.values() if isinstance(one, Settings)]
    files = next((one for one in settings if isinstance(one, TableFiles)), None)
    if "files" not in shape.settings:
        given.pop("files", None)
    outputs = list(_outputs(settings))
    check_outputs(outputs, _read_paths(shape, given, settings), files)
    with ExitStack() as stack:
        streams = [one for one in shape.inputs if one.is_texts and one.kind is not Document]
        words = _words(shape, given)
        for one in shape.inputs:
            given[one.name] = _converted(one, given[one.name], how)
        bar = Bar()
        if streams or "progress" in shape.handed:
            bar = stack.enter_context(progress_bar(name, None, in_bytes=bool(streams)))
        for one in streams:
            whole = issubclass(one.kind, WholeStream)
            if not given[one.name]:
                # Left out: the job's own default says so.
                del given[one.name]
                continue
            read = partial(reading_of, given[one.name], how, bar, whole=whole)
            given[one.name] = one.kind(read, given[one.name], how)
        rows = None
        if "each" in shape.handed:
            rows = stack.enter_context(JsonRows(form))
        handed = _handed(shape, bar, rows, yes=yes)
        more = {"sources": words, "is_shown": form is None}
        handed |= {name: more[name] for name in more.keys() & shape.handed}
        found = shape.function(**given, **handed)
    show(found, form, outputs, files, is_printed=rows is not None)


def _words(shape: Shape, given: dict[str, Any]) -> tuple[str, ...]:
    """The texts as they were named."""
    return next((tuple(given[one.name]) for one in shape.inputs if one.is_texts), ())


def _converted(one: Input, value: Any, how: Reading) -> Any:
    if one.kind is Document:
        return read_stories(tuple(value), how) if value else []
    if one.kind is OneSource:
        return () if value is None else (value,)
    if one.is_texts or value is None:
        return value
    make = getattr(one.kind, "of", None)
    if make is None:
        return value
    return tuple(map(make, value)) if one.is_many else make(value)


def _handed(shape: Shape, bar: Bar, rows: JsonRows | None, *, yes: bool) -> dict[str, Any]:
    """What the job asks whoever starts it for."""
    known: dict[str, Any] = {
        "progress": bar,
        "confirm": confirm_on(bar, yes=yes),
        "each": None if rows is None else rows.print,
        "agree": partial(_agree, bar, yes=yes),
        "announce": click.echo,
        "warn": partial(click.echo, err=True),
        "runner": CommandRunner(yes=yes),
    }
    return {name: known[name] for name in shape.handed if name in known}


def _agree(bar: Bar, question: str, lines: Iterable[str] = (), *, yes: bool) -> None:
    """Ask before something that cannot be undone or costs time. Raises `click.UsageError`."""
    with bar.paused():
        for line in lines:
            click.echo(line, err=True)
        if yes:
            return
        if not sys.stdin.isatty():
            raise click.UsageError("cannot ask: not a terminal (use --yes)")
        click.confirm(question, abort=True, err=True)


def show(
    found: Result,
    form: str | None,
    outputs: Sequence[Path],
    files: TableFiles | None,
    *,
    is_printed: bool = False,
) -> None:
    """Print a result, or its values as JSON, then what else there is to say."""
    said = found.lines()
    wants_files = files is not None and (files.csv or files.latex)
    tables = found.tables() if wants_files or (form is None and not said) else []
    own: list[Path] = []
    if files is not None and wants_files:
        sheets = found.sheets() if has(type(found), "sheets") else tables
        own = files.write(sheets, found.records())
    if form is None:
        for line in said:
            shown = in_options(line) if found.names_settings else line
            click.echo(shown.encode(errors="replace").decode())
        if not said:
            print_tables(tables, names_settings=found.names_settings)
    elif is_printed:
        pass
    elif form == "jsonl" or not has(type(found), "to_json"):
        print_rows(found.rows(), form)
    elif isinstance(content := found.to_json(), list):
        print_rows(content, form)
    else:
        print_json(content)
    for line in found.notices():
        click.echo(in_options(line) if found.names_settings else line, err=form is not None)
    if not said:
        written = [*found.written(), *outputs, *own]
        print_written([one for one in written if one.exists()], as_json=form is not None)
    why = found.lacking()
    if why is not None:
        if why:
            click.echo(why, err=True)
        click.get_current_context().exit(1)


def _outputs(settings: Iterable[Settings]) -> Iterator[Path]:
    """The files that settings name for results."""
    for one in settings:
        for described in fields_of(type(one)):
            if isinstance(one, TableFiles) and described.path[-1] in ("csv", "latex"):
                continue
            value: Any = one
            for name in described.path:
                value = getattr(value, name)
            if value is not None and is_output(described):
                share = getattr(one, "share", None)
                is_rows = described.path[-1] == "out" and share is not None
                yield rows_file(share, value) if is_rows else value


def _read_paths(
    shape: Shape, given: dict[str, Any], settings: Iterable[Settings]
) -> Iterator[Path]:
    """The files that the job reads."""
    for one in shape.inputs:
        value = given[one.name]
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, str | Path) and (one.is_texts or isinstance(each, Path)):
                yield Path(each)
    for part in settings:
        for described in fields_of(type(part)):
            value = part
            for name in described.path:
                value = getattr(value, name)
            for each in value if isinstance(value, tuple) else (value,):
                path = getattr(each, "path", each)
                if isinstance(path, Path) and not is_output(described):
                    yield path
