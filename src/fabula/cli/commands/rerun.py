"""`fabula rerun`: a result made again from the record beside it, and compared."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabula.cli.derived import Command
from fabula.cli.printing import print_done
from fabula.cli.records import RERUN, elsewhere, words_of, written_by
from fabula.errors import FabulaError, InputError
from fabula.jobs.rerun import Rerun, RerunSettings, compare_results
from fabula.provenance import (
    differences,
    digest_of,
    folder_of_record,
    read_record,
    record_path,
    steps_of,
)

if TYPE_CHECKING:
    from fabula.provenance import Record


@click.command(cls=Command, short_help="Make a result again, and check that it is the same.")
@click.argument("result", metavar="RESULT")
def rerun(result: str, settings: RerunSettings, yes: bool, as_json: bool) -> None:
    """Make RESULT again from the record beside it, and show the differences.

    RESULT is a file or folder that a command of Fabula wrote; RESULT.provenance.json says how. The
    new result goes into a temporary folder, so RESULT does not change. Models are asked again,
    which may cost money. The exit code is 1 if the results differ.

    A record may come from somebody else. Whatever it says, all that is written goes into that
    folder, commands that do more than make a result are refused, and files elsewhere and servers
    are named and asked about first (--yes agrees).
    """
    place = Path(result.rstrip("/").removesuffix(".provenance.json"))
    record = read_record(place)
    if not place.exists():
        raise InputError(f"{place}: does not exist, so there is nothing to compare with")
    own = place.resolve()
    names = _settings_of(record, own)
    if not names:
        raise InputError(f"{record_path(place)}: is the record of another result")
    if settings.keep is not None and settings.keep.exists():
        raise InputError(f"{settings.keep}: already exists; choose another folder with `keep`")
    with tempfile.TemporaryDirectory(prefix="fabula-rerun-") as aside:
        folder = Path(aside) if settings.keep is None else settings.keep.resolve()
        made = _made_again(record, own, names[0], folder, yes=yes)
        if not made.exists():
            raise InputError(
                f"{place}: the command ended without writing it again; run "
                f"`fabula {record['command']}` to see why"
            )
        numbers = compare_results(own, made)
        steps = zip(steps_of(record, own), steps_of(read_record(made), made), strict=False)
        causes = list(dict.fromkeys(one for then, now in steps for one in differences(then, now)))
    if digest_of(own) != record["outputs"][names[0]]["sha256"]:
        causes.insert(0, f"{place} has changed since the record was written")
    found = Rerun(str(place), f"fabula {record['command']}", tuple(numbers), tuple(causes))
    print_done(found.to_json(), *found.lines(), as_json=as_json)
    if not found.is_equal:
        click.get_current_context().exit(1)


def _settings_of(record: Record, own: Path) -> list[str]:
    """The settings that may have named a result, that of its own place first."""
    outputs = {name: str(one["path"]) for name, one in record["outputs"].items()}
    folder = folder_of_record(record, own)

    def is_another(name: str) -> bool:
        path = outputs[name]
        return (folder / path).resolve() != own

    named = (name for name, path in outputs.items() if Path(path).name == own.name)
    return sorted(named, key=is_another)


def _made_again(record: Record, own: Path, name: str, place: Path, *, yes: bool) -> Path:
    """Where the result is that the setting `name` names, after the steps of the record."""
    own_name = own.name
    made = place / name / own_name
    for step in steps_of(record, own):
        # Of what was changed in place, the steps before make and change the same one.
        is_before = step is not record
        targets = {
            other: made
            if other == name or (is_before and Path(one["path"]).name == own_name)
            else place / other / Path(one["path"]).name
            for other, one in step["outputs"].items()
        }
        folder = folder_of_record(step, own).resolve()
        # A folder further up would make everything below it the record's own.
        near = {own.parent, place} | ({folder} & set(own.parents[:2]))
        _run(step, folder, targets, near, place, yes=yes)
    return made


def _run(
    record: Record,
    folder: Path,
    targets: dict[str, Path],
    near: set[Path],
    place: Path,
    *,
    yes: bool,
) -> None:
    """Run the command with its results at `targets`, by the settings that name them.

    Whatever else it writes goes into the folder `place`. What it reads lies `near`, or is agreed.
    """
    if record["command"].startswith("fabula."):
        raise InputError(
            f"it was saved from Python, by `{record['command']}()`; repeat that call with the "
            f"settings of the record"
        )
    root = click.get_current_context().find_root().command
    command: Any = root
    for name in record["command"].split():
        is_group = isinstance(command, click.Group)
        command = command.get_command(click.Context(command), name) if is_group else None
    if command is None:
        raise InputError(f"`fabula {record['command']}` is not a command of this version")
    if record["command"] not in RERUN:
        raise InputError(
            f"`fabula {record['command']}` does more than make a result, so a record does not "
            "start it; run the command yourself if you trust the record"
        )
    settings = dict(record["settings"])
    for name in dict.fromkeys([*targets, *written_by(command, settings)]):
        target = targets.get(name) or place / name / Path(str(settings[name])).name
        target.parent.mkdir(parents=True, exist_ok=True)
        settings[name] = str(target)
    _agree(record, elsewhere(command, settings, folder, near), yes=yes)
    if any("-" in one for one in settings.values() if isinstance(one, list)):
        raise InputError("its texts came from standard input, which is not kept; nothing to rerun")
    words = [*record["command"].split(), *words_of(command, settings)]
    if yes and any(param.name == "yes" for param in command.params):
        words.insert(len(record["command"].split()), "--yes")
    try:
        with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
            root.main(words, prog_name="fabula", standalone_mode=False)
    except (FabulaError, click.ClickException) as error:
        said = error.format_message() if isinstance(error, click.ClickException) else str(error)
        raise InputError(f"`fabula {record['command']}` cannot run again: {said}") from error
    except OSError as error:
        where = error.filename or folder
        raise InputError(f"{os.fspath(where)}: {error.strerror}") from error


def _agree(record: Record, places: list[str], *, yes: bool) -> None:
    """Ask about files elsewhere and servers, which a stranger's record may name."""
    if not places or yes:
        return
    named = f"`fabula {record['command']}` uses what does not lie beside the result"
    if not sys.stdin.isatty():
        raise InputError(f"{named}: {', '.join(places)}; add --yes if you trust the record")
    click.confirm("\n  ".join([f"{named}:", *places]) + "\nGo on?", abort=True, err=True)
