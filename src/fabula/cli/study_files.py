"""What the commands of `fabula study` have in common: the study's file, and its open database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fabula.cli.options import check_outputs

if TYPE_CHECKING:
    from fabula.studies.database import Store
    from fabula.studies.design import StudyDesign
    from fabula.studies.units import Unit

__all__ = ["PLATFORM_TOKEN", "check_out", "named", "opened", "study_options"]

F = TypeVar("F", bound=Callable[..., Any])
PLATFORM_TOKEN = "FABULA_PROLIFIC_TOKEN"


def study_options(command: F) -> F:
    """The study, and where its answers are."""
    command = click.option(
        "--database", metavar="URL",
        help="sqlite:///FILE or postgresql://...  [default: a file beside STUDY.toml]",
    )(command)  # fmt: skip
    return click.argument("file", metavar="STUDY.toml", type=click.Path(path_type=Path))(command)


@contextmanager
def opened(
    file: Path, database: str | None, *, create: bool = False, serves: bool = False
) -> Iterator[tuple[StudyDesign, list[Unit], Store]]:
    from fabula.errors import InputError

    try:
        from sqlalchemy.exc import SQLAlchemyError

        from fabula.studies.database import open_store
    except ImportError as error:
        raise InputError("studies need more packages; run: pip install 'fabula[study]'") from error
    from fabula.studies.design import load_study
    from fabula.studies.units import read_units

    design = load_study(file)
    units = read_units(design)
    store = open_store(design, units, database, create=create)
    try:
        yield design, units, store
    except SQLAlchemyError as error:
        raise InputError(f"the database failed: {str(error).splitlines()[0]}") from error
    finally:
        is_whole = store.close(is_served=serves)
        if serves and not is_whole:
            click.echo(
                f"another program has {store.file} open, so the last answers are in "
                f"{store.file}-wal beside it: copy both",
                err=True,
            )


def check_out(outputs: Sequence[Path | None], design: StudyDesign, store: Store) -> None:
    """Raise `UsageError` where an export would take the place of what it is made from."""
    held = [design.path, design.documents, *([design.rubric_file] if design.rubric_file else [])]
    if store.file is not None:
        held += [store.file.with_name(store.file.name + end) for end in ("", "-wal", "-shm")]
    check_outputs(outputs, held)


def named(names: Sequence[str]) -> str:
    """The first three, and how many more."""
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3:,} more"
