"""`fabula feedback noticed`: whether readers notice the planted faults."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Command, settings_options
from fabula.cli.options import check_outputs, json_option
from fabula.cli.printing import print_result
from fabula.cli.progress_bar import progress_bar
from fabula.jobs.noticing import NoticeSettings
from fabula.jobs.result_files import TableFiles

__all__ = ["noticed"]


@click.command(cls=Command, short_help="Record which planted faults readers notice.")
@click.argument("corrupted", type=click.Path(path_type=Path))
@settings_options(NoticeSettings)
@settings_options(TableFiles, "files")
@json_option
def noticed(corrupted: Path, settings: NoticeSettings, files: TableFiles, as_json: bool) -> None:
    """Record which readers notice the faults of CORRUPTED, which `feedback corrupt` wrote.

    Readers are people in a study (--study writes the stories for it) or models asked by `judge
    --rubric story_fault`. They are not told what was changed: they answer whether something is
    wrong, and where, and a fault is noticed if they copy words from the changed place. A story that
    nobody was asked about counts as not checked, never as noticed.
    """
    from fabula.jobs.noticing import record_noticed

    check_outputs([settings.out, settings.study], [corrupted, *settings.answers], files)
    with progress_bar("reading answers", None) as bar:
        found = record_noticed(corrupted, settings, progress=bar)
    print_result(
        found.tables(),
        found.to_json(),
        files,
        as_json=as_json,
        written=[settings.out, settings.study],
    )
