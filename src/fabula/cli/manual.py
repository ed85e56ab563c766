"""The reference of all commands, generated from the commands themselves.

python -m fabula.cli.manual > docs/commands.md
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator

import click

from fabula.cli.main import cli


def command_reference() -> str:
    """Return every command with its arguments and options, as Markdown."""
    parts = [
        "# Commands\n",
        (
            "Generated from the commands by `make docs`; `fabula COMMAND --help` shows the same "
            "text.\n"
        ),
    ]
    parts += _of(cli, click.Context(cli, info_name="fabula"))
    return "\n".join(parts)


def _of(command: click.Command, context: click.Context) -> Iterator[str]:
    path = context.command_path
    if isinstance(command, click.Group):
        if path != "fabula":
            yield f"## {path}\n"
        yield _told(command.help)
        for name in sorted(command.list_commands(context)):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                yield from _of(inner, click.Context(inner, info_name=name, parent=context))
        return
    depth = path.count(" ")
    yield f"{'##' if depth == 1 else '###'} {path}\n"
    yield f"    {path} {' '.join(command.collect_usage_pieces(context))}\n"
    yield _told(command.help)
    for option in command.params:
        record = option.get_help_record(context)
        # Arguments have no help of their own: the text describes them.
        if record is not None and isinstance(option, click.Option):
            yield f"- `{record[0]}`: {' '.join(record[1].split())}"
    yield ""


def _told(help_: str | None) -> str:
    """Return help as paragraphs, with unwrapped blocks as code."""
    found = []
    for paragraph in inspect.cleandoc(help_ or "").split("\n\n"):
        if paragraph.startswith("\b\n"):
            found.append(textwrap.indent(paragraph.removeprefix("\b\n"), "    "))
        else:
            found.append(re.sub(r"\s+", " ", paragraph))
    return "\n\n".join(found) + "\n"


if __name__ == "__main__":
    click.echo(command_reference(), nl=False)
