"""The reference of all commands, generated from the commands themselves.

python -m fabula.cli.manual > docs/commands.md
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator

import click

from fabula.cli.derived import SHARED, Command
from fabula.cli.main import cli

_Seen = dict[str, dict[str, str]]
"""The lines of shared options, by set and option."""


def command_reference() -> str:
    """Return every command with its arguments and options, as Markdown."""
    parts = [
        "# Commands\n",
        (
            "Generated from the commands by `make docs`; `fabula COMMAND --help` shows the same "
            "text. Options that many commands share stand once, at the end; `fabula COMMAND --help "
            "models` shows those of a set.\n"
        ),
    ]
    seen: _Seen = {}
    parts += _of(cli, click.Context(cli, info_name="fabula"), seen)
    parts.append("## Shared options\n")
    for name, lines in seen.items():
        parts += [f"### {name}\n", f"{SHARED[name]}.\n", *filter(None, lines.values()), ""]
    return "\n".join(parts)


def _of(command: click.Command, context: click.Context, seen: _Seen) -> Iterator[str]:
    path = context.command_path
    if isinstance(command, click.Group):
        if path != "fabula":
            yield f"## {path}\n"
        yield _told(command.help)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _of(inner, click.Context(inner, info_name=name, parent=context), seen)
        return
    assert isinstance(command, Command)
    yield f"{'##' if path.count(' ') == 1 else '###'} {path}\n"
    yield f"    {path} {' '.join(command.collect_usage_pieces(context))}\n"
    yield _told(command.translated_help())
    shared = command.shared()
    apart = {id(option) for options in shared.values() for option in options}
    for option in command.params:
        if isinstance(option, click.Option) and id(option) not in apart:
            yield _line(option, context)
    for name, options in shared.items():
        for option in options:
            seen.setdefault(name, {}).setdefault(option.opts[-1], _line(option, context))
    yield f"- shared: {', '.join(shared)}\n"


def _line(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    return "" if record is None else f"- `{record[0]}`: {' '.join(record[1].split())}"


def _told(help_: str | None) -> str:
    """Return help as paragraphs, with unwrapped blocks as code."""
    blocks = []
    for paragraph in inspect.cleandoc(help_ or "").split("\n\n"):
        if paragraph.startswith("\b\n"):
            blocks.append(textwrap.indent(paragraph.removeprefix("\b\n"), "    "))
        else:
            blocks.append(re.sub(r"\s+", " ", paragraph))
    return "\n\n".join(blocks) + "\n"


if __name__ == "__main__":
    click.echo(command_reference(), nl=False)
