"""Records of how a command's results were made, and reruns from them.

The settings of a job are the options of its command, so a record of a command is one of its job.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabula.cli.notices import notify
from fabula.cli.options import CorpusType

if TYPE_CHECKING:
    from fabula.provenance import Recording

_ONLY_SHOWN = ("as_json", "yes")
"""Options that do not affect files."""
_WRITTEN = ("out", "csv", "latex", "html", "plot", "comments", "details", "answers", "log")
"""Options, by the last part of their names, whose files a command writes."""
_MODELS = ("models", "model", "writer", "exclude_model", "fluency_model", "translator", "grammar")
"""Options that name a model or a server."""
RERUN = frozenset((
    "agreement", "book", "compare", "continuation generate", "continuation passages",
    "continuation score", "continuation train", "detect apply", "detect calibrate", "detect score",
    "diversity", "feedback corrupt", "feedback elicit", "feedback find", "feedback for",
    "feedback label", "feedback rate", "feedback sample", "feedback score", "groups measure",
    "groups phrases", "judge compare", "judge correct", "judge stories", "lines", "originality",
    "plan", "profile", "reference add", "reference build", "reference measure", "reference remove",
    "reference write", "replicate creativity-index", "replicate linguistic-metrics",
    "replicate story-feedback", "replicate ttcw", "report", "rubric draft", "rubric expand",
    "stories draw", "stories openings", "stories plot", "stories write", "study analyse", "themes",
))  # fmt: skip
"""Commands that make a result and nothing else, which a record may start."""


@contextmanager
def recorded(ctx: click.Context) -> Iterator[None]:
    """Record the files that the command writes, unless it fails."""
    if not any(_may_name_a_result(param) for param in ctx.command.params):
        yield
        return
    from fabula.provenance import IN_PLACE, Before, recording

    outputs = dict(_outputs(ctx))
    command = " ".join(_names(ctx))
    changed = {name: Before.of(path) for name, path in outputs.items() if command in IN_PLACE}
    settings = {name: value for name, value in ctx.params.items() if name not in _ONLY_SHOWN}
    with recording() as noted, ExitStack() as stack:
        stack.callback(_tell_of_changes, noted)
        noted.before = {name: one for name, one in changed.items() if one is not None}
        try:
            yield
        except click.exceptions.Exit as ended:
            # 1 means partial success; the files written remain.
            if ended.exit_code > 1:
                raise
            noted.keep(command, _named(settings), outputs, _sources(ctx, outputs))
            raise
        noted.keep(command, _named(settings), outputs, _sources(ctx, outputs))


def _tell_of_changes(noted: Recording) -> None:
    """Say if a server changed its model while it was asked."""
    served: dict[str, list[str]] = {}
    for name, told, _ in noted.models:
        if told:
            served.setdefault(name, []).append(told)
    for name, names in served.items():
        if len(names) > 1:
            notify(f"{name}: answered as {' and as '.join(names)}: it is not one model throughout")


def _names(ctx: click.Context) -> Iterator[str]:
    """Yield the names of the groups and the command, without the program's: `judge`, `stories`."""
    if ctx.parent is not None:
        yield from _names(ctx.parent)
        yield ctx.command.name or ""


def _named(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by their dotted paths: `measure.levels`."""
    return {name.replace("__", "."): value for name, value in settings.items()}


def _may_name_a_result(param: click.Parameter) -> bool:
    """Return whether a parameter may name a result.

    That is an option with one file, or `--out`; for commands of `reference`, the corpus argument.
    """
    if not isinstance(param, click.Option):
        return isinstance(param.type, CorpusType)
    return not param.multiple and (isinstance(param.type, click.Path) or _is_out(param))


def _is_out(param: click.Parameter) -> bool:
    return isinstance(param, click.Option) and param.opts[-1] == "--out"


def _outputs(ctx: click.Context) -> Iterator[tuple[str, Path]]:
    """Yield options that may name a result: a file by any option, a folder only by `--out`."""
    for param in ctx.command.params:
        value = ctx.params.get(param.name or "")
        if value is None or not _may_name_a_result(param):
            continue
        path = Path(str(value))
        if not isinstance(param, click.Option) or _is_out(param) or not path.is_dir():
            yield str(param.name).replace("__", "."), path


def _sources(ctx: click.Context, outputs: Mapping[str, Path]) -> Iterator[str]:
    """Yield local paths named by other arguments and options."""
    written = {str(path) for path in outputs.values()}
    for param in ctx.command.params:
        value = ctx.params.get(param.name or "")
        for one in value if isinstance(value, tuple) else (value,):
            is_word = isinstance(one, str | Path) and not isinstance(param.type, click.Choice)
            if is_word and str(one) not in written and _is_here(str(one)):
                yield str(one)


def _is_here(source: str) -> bool:
    import glob

    if not source:
        return False  # an option that was left empty, not the current folder
    try:
        return Path(source).exists() or bool(glob.has_magic(source) and glob.glob(source))
    except (OSError, ValueError):
        return False


def words_of(command: click.Command, settings: Mapping[str, Any]) -> list[str]:
    """Return command-line arguments for these settings, independent of any configuration."""
    words: list[str] = []
    arguments: list[str] = []
    for param in command.params:
        value = settings.get(_dotted(param))
        if value is None or param.name in _ONLY_SHOWN or not param.expose_value:
            continue
        several = value if isinstance(value, list) else [value]
        if not isinstance(param, click.Option):
            arguments += map(str, several)
        elif param.is_flag:
            if value or param.secondary_opts:
                words.append(param.opts[-1] if value else param.secondary_opts[-1])
        else:
            words += [f"{param.opts[-1]}={one}" for one in several]
    return [*words, "--", *arguments] if arguments else words


def written_by(command: click.Command, settings: Mapping[str, Any]) -> list[str]:
    """The settings whose places the command writes."""
    return [
        _dotted(param)
        for param in command.params
        if settings.get(_dotted(param)) is not None
        and (isinstance(param.type, CorpusType) or _option(param) in _WRITTEN)
    ]


def elsewhere(
    command: click.Command, settings: Mapping[str, Any], folder: Path, near: Collection[Path]
) -> list[str]:
    """What a command run in a folder reads outside of those `near`, and which servers and models
    it asks."""
    written = written_by(command, settings)
    found: list[str] = []
    for param in command.params:
        value = settings.get(_dotted(param))
        if _dotted(param) in written or isinstance(param.type, click.Choice):
            continue
        for named in value if isinstance(value, list) else [value]:
            if not isinstance(named, str) or named in ("local", "none", param.default):
                continue
            path = (folder / Path(named).expanduser()).resolve()
            is_near = any(place.resolve() in (path, *path.parents) for place in near)
            is_address = "://" in named or "::" in named  # as fsspec chains them
            is_asked = is_address or (_option(param) in _MODELS and not path.exists())
            if is_asked or (not is_near and _is_here(str(path))):
                found.append(named)
    return list(dict.fromkeys(found))


def _dotted(param: click.Parameter) -> str:
    return (param.name or "").replace("__", ".")


def _option(param: click.Parameter) -> str:
    return _dotted(param).rpartition(".")[2] if isinstance(param, click.Option) else ""
