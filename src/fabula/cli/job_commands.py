"""The command of a job, made from its signature, and how it shows the job's result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from fabula.cli.derived import Command
from fabula.cli.notices import Bar, in_options, progress_bar
from fabula.cli.records import CommandRunner, CorpusType
from fabula.jobs.job import OneSource, Shape, WholeStream
from fabula.jobs.progress import Declined
from fabula.jobs.reading import Reading, read_stories
from fabula.jobs.registry import Job
from fabula.jobs.result import Result, has
from fabula.jobs.result_files import TableFiles, is_output, rows_file
from fabula.settings import Settings, values_of
from fabula.types import Document

if TYPE_CHECKING:
    from fabula.models.cost import Estimate


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
    arguments: list[click.Parameter] = []
    for one in shape.inputs:
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
        argument = click.Argument(
            [one.name],
            nargs=-1 if is_many else 1,
            required=one.is_required,
            metavar=shown if one.is_required else f"[{shown}]",
            type=kind,
        )
        arguments.append(argument)
    return Command(
        job.name.rpartition(" ")[2], run, arguments, short_help=job.short, help=shape.help
    )


def _do(name: str, shape: Shape, given: dict[str, Any]) -> None:
    """Do the job with what the command was given, and show its result."""
    as_json, yes = given.pop("as_json", None), given.pop("yes", False)
    form = "json" if as_json is True else as_json or None
    how = given.get("how_to_read") or Reading()
    settings = [one for one in given.values() if isinstance(one, Settings)]
    files = next((one for one in settings if isinstance(one, TableFiles)), None)
    for parameter in ("how_to_read", "files"):
        if parameter not in shape.settings:
            given.pop(parameter, None)
    outputs = _checked_outputs(shape, given, settings, files)
    incomplete: list[str] = []

    def read_all(others: tuple[str, ...]) -> Iterator[Document]:
        with progress_bar("reading", None, in_bytes=True) as bar:
            yield from _reading_of(others, how, bar, incomplete)

    with ExitStack() as stack:
        texts = [one for one in shape.inputs if one.is_texts]
        streams = [one for one in texts if one.kind is not Document]
        sources = tuple(given[texts[0].name]) if texts else ()
        for one in shape.inputs:
            value, make = given[one.name], getattr(one.kind, "of", None)
            if one.kind is Document:
                given[one.name] = read_stories(tuple(value), read_all) if value else []
            elif not one.is_texts and value is not None and make is not None:
                given[one.name] = tuple(map(make, value)) if one.is_many else make(value)
        bar = Bar()
        if streams or "progress" in shape.handed:
            bar = stack.enter_context(progress_bar(name, None, in_bytes=bool(streams)))
        for one in streams:
            named = given.pop(one.name)
            if one.kind is OneSource:
                named = () if named is None else (named,)
            # Left out, the job's own default says so.
            if named:
                is_whole = issubclass(one.kind, WholeStream)
                read = partial(_reading_of, named, how, bar, incomplete, is_whole=is_whole)
                given[one.name] = one.kind(read, named, how)
        rows = stack.enter_context(_JsonRows(form)) if "each" in shape.handed else None
        known: dict[str, Any] = {
            "progress": bar,
            "confirm": partial(_confirm, bar, yes),
            "each": rows and rows.print,
            "agree": partial(_ask, bar, yes),
            "announce": click.echo,
            "warn": partial(click.echo, err=True),
            "runner": CommandRunner(yes=yes),
            "sources": sources,
            "is_shown": form is None,
        }
        handed = {name: known[name] for name in shape.handed if name in known}
        found = shape.function(**given, **handed)
    _show(found, form, outputs, files, is_printed=rows is not None)
    for sentence in incomplete:
        click.echo(sentence, err=True)
    if incomplete:
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
    from fabula.text import find_files, read_documents

    files = find_files(sources, format_=how.format)
    bar.begin("reading", sum(file.size_bytes or 0 for file in files) or None)
    n_left_out = 0

    def leave_out(error: Exception) -> None:
        nonlocal n_left_out
        n_left_out += 1
        bar.tell(f"left out: {error}")

    yield from read_documents(
        files,
        text_field=how.text_field,
        id_field=how.id_field,
        format_=how.format,
        meter=bar.advance,
        on_unreadable=None if is_whole else leave_out,
    )
    if n_left_out:
        incomplete.append(
            f"{n_left_out:,} of {len(files):,} files could not be read and were left out"
        )


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


class _JsonRows:
    """Rows printed as they arrive: one array (`json`), one per line (`jsonl`), or nothing.

    If an error stops them, the array is left unclosed, so that a partial result is not mistaken for
    a complete one.
    """

    def __init__(self, form: str | None) -> None:
        self._form = form
        self._n = 0

    def print(self, row: Any) -> None:
        if self._form is None:
            return
        before = "" if self._form == "jsonl" else ",\n" if self._n else "[\n"
        after = "\n" if self._form == "jsonl" else ""
        click.echo(before + _json_of(row) + after, nl=False)
        self._n += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._form == "json" and kind is None:
            click.echo("\n]" if self._n else "[]")


def _json_of(content: object) -> str:
    from fabula.store import dump_json

    # A model may produce a lone surrogate, which no terminal can display.
    return dump_json(content).encode(errors="replace").decode()


def _show(
    found: Result,
    form: str | None,
    outputs: Sequence[Path],
    files: TableFiles | None,
    *,
    is_printed: bool,
) -> None:
    """Print a result, or its values as JSON, then what else there is to say."""
    said = found.lines()
    wants_files = files is not None and (files.csv or files.latex)
    tables = found.tables() if wants_files or (form is None and not said) else []
    in_words: Callable[[str], str] = in_options if found.names_settings else str
    own: list[Path] = []
    if files is not None and wants_files:
        sheets = found.sheets() if has(type(found), "sheets") else tables
        own = files.write(sheets, found.records())
    if form is None:
        for line in said:
            click.echo(in_words(line).encode(errors="replace").decode())
        if not said:
            from fabula.presentation.sheet import render

            click.echo(in_words(render(*tables)), nl=False)
    elif not is_printed:
        has_only_rows = form == "jsonl" or not has(type(found), "to_json")
        content = found.rows() if has_only_rows else found.to_json()
        if isinstance(content, list):
            with _JsonRows(form) as rows:
                for row in content:
                    rows.print(row)
        else:
            click.echo(_json_of(content))
    for line in found.notices():
        click.echo(in_words(line), err=form is not None)
    if not said:
        # Never mixed into the JSON.
        for path in [*found.written(), *outputs, *own]:
            if path.exists():
                click.echo(f"written: {path}", err=form is not None)
    why = found.lacking()
    if why is not None:
        if why:
            click.echo(why, err=True)
        click.get_current_context().exit(1)


def _checked_outputs(
    shape: Shape, given: dict[str, Any], settings: Iterable[Settings], files: TableFiles | None
) -> list[Path]:
    """The files that settings name for results, tables apart; creates the folders of all.

    Raises `UsageError` if an output is an input, or two outputs are one file.
    """
    outputs: list[Path] = []
    taken: set[Path] = set()
    for one in shape.inputs:
        value = given[one.name]
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, str | Path) and (one.is_texts or isinstance(each, Path)):
                taken.add(Path(each).resolve())
    for part in settings:
        for described, value in values_of(part):
            name = described.path[-1]
            if not is_output(described):
                for each in value if isinstance(value, tuple) else (value,):
                    path = getattr(each, "path", each)
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
