"""The reference of commands says what the commands say."""

from pathlib import Path

import click
from tests.cli.test_derived import commands

from fabula.cli.derived import Command
from fabula.cli.main import cli
from fabula.cli.manual import command_reference

DOCS = Path(__file__).parents[2] / "docs" / "commands.md"


def test_the_written_reference_is_that_of_these_commands():
    assert DOCS.read_text(encoding="utf-8") == command_reference(), "run `make docs`"


def test_every_command_and_option_is_in_it():
    text = command_reference()
    shared = text.partition("## Shared options")[2]
    single = {path: one for path, one in commands(cli) if not isinstance(one, click.Group)}
    assert len(single) >= 35
    for path, command in single.items():
        section = text.split(f" {path}\n", 1)[1].partition("\n## ")[0].partition("\n### ")[0]
        assert isinstance(command, Command)
        apart = [option for options in command.shared().values() for option in options]
        for option in command.params:
            if isinstance(option, click.Option):
                name = option.opts[0]
                shown = f"--set {name[2:]}" if getattr(option, "tuned", False) else name
                assert shown in (shared if option in apart else section), f"{path} {name}"
