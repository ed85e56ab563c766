"""Records of how a command's results were made, and reruns from them.

The settings of a job are the options of its command, so a record of a command is one of its job.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import click

from fabula.cli.notices import notify
from fabula.core.errors import FabulaError, InputError
from fabula.jobs.shared_settings import WRITTEN, is_folder

_ONLY_SHOWN = ("as_json", "yes")
"""Options that do not affect files."""
_WRITTEN = (*WRITTEN, "log")
"""Options, by the last part of their names, whose files a command writes."""
_MODELS = ("models", "model", "writer", "exclude_model", "fluency_model", "translator", "grammar")
"""Options that name a model or a server."""


class CorpusType(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """The folder of a corpus."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if problem := is_folder(value):
            self.fail(problem, param, ctx)
        return Path(str(value))


@contextmanager
def recorded(ctx: click.Context) -> Iterator[None]:
    """Record the files that the command writes, unless it fails.

    A result is named by an option with one file, or by `--out`, which may be a folder too; for
    commands of `reference`, by the corpus argument.
    """
    outputs: dict[str, Path] = {}
    has_results = False
    for param in ctx.command.params:
        is_option = isinstance(param, click.Option)
        is_out = is_option and param.opts[-1] == "--out"
        if is_option and (param.multiple or not (is_out or isinstance(param.type, click.Path))):
            continue
        if not is_option and not isinstance(param.type, CorpusType):
            continue
        has_results, value = True, ctx.params.get(param.name or "")
        path = None if value is None else Path(str(value))
        if path is not None and (not is_option or is_out or not path.is_dir()):
            outputs[_dotted(param)] = path
    if not has_results:
        yield
        return
    from fabula.core.provenance import Before, is_in_place, recording

    # The words of the groups and the command, without the program's: `judge`, `stories`.
    words, within = list[str](), ctx
    while within.parent is not None:
        words.insert(0, within.command.name or "")
        within = within.parent
    command = " ".join(words)
    params = {name: value for name, value in ctx.params.items() if name not in _ONLY_SHOWN}
    settings = {name.replace("__", "."): value for name, value in params.items()}
    is_changed = is_in_place(command, settings)
    before = {name: Before.of(path) for name, path in outputs.items() if is_changed}
    with recording() as noted:
        noted.before = {name: state for name, state in before.items() if state is not None}
        try:
            yield
        except click.exceptions.Exit as ended:
            # 1 means partial success; the files written remain.
            if ended.exit_code == 1:
                noted.keep(command, settings, outputs, _sources(ctx, outputs))
            raise
        else:
            noted.keep(command, settings, outputs, _sources(ctx, outputs))
        finally:
            # A server may have changed its model while it was asked.
            served: dict[str, list[str]] = {}
            for name, answered, _ in noted.models:
                if answered:
                    served.setdefault(name, []).append(answered)
            for name, names in served.items():
                if len(names) > 1:
                    shown = " and as ".join(names)
                    notify(f"{name}: answered as {shown}: it is not one model throughout")


def _sources(ctx: click.Context, outputs: Mapping[str, Path]) -> Iterator[str]:
    """Yield local paths named by other arguments and options."""
    written = {str(path) for path in outputs.values()}
    for param in ctx.command.params:
        value = ctx.params.get(param.name or "")
        for entry in value if isinstance(value, tuple) else (value,):
            is_word = isinstance(entry, str | Path) and not isinstance(param.type, click.Choice)
            if is_word and str(entry) not in written and _is_here(str(entry)):
                yield str(entry)


def _is_here(source: str) -> bool:
    import glob

    if not source:
        return False  # an option that was left empty, not the current folder
    try:
        return Path(source).exists() or bool(glob.has_magic(source) and glob.glob(source))
    except (OSError, ValueError):
        return False


def written_by(command: click.Command, settings: Mapping[str, Any]) -> list[str]:
    """The settings whose places the command writes."""
    return [
        _dotted(param)
        for param in command.params
        if settings.get(_dotted(param)) is not None
        and (isinstance(param.type, CorpusType) or _option(param) in _WRITTEN)
    ]


def _dotted(param: click.Parameter) -> str:
    return (param.name or "").replace("__", ".")


def _option(param: click.Parameter) -> str:
    return _dotted(param).rpartition(".")[2] if isinstance(param, click.Option) else ""


class CommandRunner:
    """Runs the commands of records, for `rerun`: `words` are a command's, `settings` its record's.

    `yes` agrees to what a record uses, and to what models cost.
    """

    def __init__(self, *, yes: bool) -> None:
        self._yes = yes
        self._root: Any = click.get_current_context().find_root().command

    def _command(self, words: str) -> Any:
        command = self._root
        for word in words.split():
            command = command.get_command(click.Context(command), word)
        return command

    def written_by(self, words: str, settings: Mapping[str, Any]) -> list[str]:
        return written_by(self._command(words), settings)

    def run(
        self, words: str, settings: Mapping[str, Any], folder: Path, near: Collection[Path]
    ) -> None:
        """Run the command in a folder. Raises `InputError`.

        Asks first about what it reads outside of the places `near`, and which servers and models it
        asks, which a stranger's record may name.
        """
        command, places = self._command(words), dict[str, None]()
        written = written_by(command, settings)
        for param in command.params:
            value = settings.get(_dotted(param))
            if _dotted(param) in written or isinstance(param.type, click.Choice):
                continue
            for entry in value if isinstance(value, list) else [value]:
                if not isinstance(entry, str) or entry in ("local", "none", param.default):
                    continue
                path = (folder / Path(entry).expanduser()).resolve()
                is_near = any(place.resolve() in (path, *path.parents) for place in near)
                is_address = "://" in entry or "::" in entry  # as fsspec chains them
                is_asked = is_address or (_option(param) in _MODELS and not path.exists())
                if is_asked or (not is_near and _is_here(str(path))):
                    places[entry] = None
        if places and not self._yes:
            uses = f"`fabula {words}` uses what does not lie beside the result"
            if not sys.stdin.isatty():
                raise InputError(f"{uses}: {', '.join(places)}; add --yes if you trust the record")
            click.confirm("\n  ".join([f"{uses}:", *places]) + "\nGo on?", abort=True, err=True)
        typed, arguments = words.split(), list[str]()
        if self._yes and any(param.name == "yes" for param in command.params):
            typed.append("--yes")
        # All settings, independent of any configuration.
        for param in command.params:
            value = settings.get(_dotted(param))
            if value is None or param.name in _ONLY_SHOWN or not param.expose_value:
                continue
            several = value if isinstance(value, list) else [value]
            if not isinstance(param, click.Option):
                arguments += map(str, several)
            elif param.is_flag:
                if value or param.secondary_opts:
                    typed.append(param.opts[-1] if value else param.secondary_opts[-1])
            else:
                typed += [f"{param.opts[-1]}={entry}" for entry in several]
        typed += ["--", *arguments] if arguments else []
        try:
            with chdir(folder), redirect_stdout(io.StringIO()):
                self._root.main(typed, prog_name="fabula", standalone_mode=False)
        except (FabulaError, click.ClickException) as error:
            why = error.format_message() if isinstance(error, click.ClickException) else str(error)
            raise InputError(f"`fabula {words}` cannot run again: {why}") from error
        except OSError as error:
            raise InputError(f"{os.fspath(error.filename or folder)}: {error.strerror}") from error
