"""Arguments shared by the commands of `fabula study`: the study's file, and its database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from fabula.cli.derived import settings_options
from fabula.jobs.studies import StudyPlace

F = TypeVar("F", bound=Callable[..., Any])

file_argument = click.argument("file", metavar="STUDY.toml", type=click.Path(path_type=Path))


def study_options(command: F) -> F:
    """The study, and where its answers are."""
    return file_argument(settings_options(StudyPlace, "place")(command))
