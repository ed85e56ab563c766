"""`fabula study`: manage the participants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from fabula.cli.derived import Command
from fabula.cli.options import check_outputs, study_argument
from fabula.cli.printing import print_done
from fabula.jobs.studies import StudyPlace, named, open_study
from fabula.jobs.study_people import (
    Invited,
    InviteSettings,
    LinkSettings,
    RemoveSettings,
    fetch_statuses,
    notes_of,
)
from fabula.jobs.study_people import invite as invite_people
from fabula.jobs.study_people import reissue as make_new_link
from fabula.jobs.study_people import remove as remove_people


def _print_invited(
    done: Invited, settings: LinkSettings, out: Path | None, *, as_json: bool
) -> None:
    if settings.url is None:
        click.echo("these links work on this machine only; set --url for other people", err=True)
    written = [] if out is None else [f"written: {out}"]
    print_done(done.to_json(), *done.lines(), *written, as_json=as_json)


@click.command(cls=Command, short_help="Print invitation links.")
@study_argument
@click.argument("n", type=click.IntRange(1, 10_000), required=False)
def invite(
    file: Path, n: int | None, place: StudyPlace, settings: InviteSettings, as_json: bool
) -> None:
    """Print N invitations: a number, a link and a note for each person.

    Links are not kept and cannot be shown again; `study reissue` makes a new one.
    """
    notes = notes_of(n, settings)
    with open_study(file, place, create=True) as opened:
        check_outputs([settings.csv], opened.files)
        done = invite_people(opened, notes, settings)
    _print_invited(done, settings, settings.csv, as_json=as_json)


@click.command(cls=Command, short_help="Give a participant a new link.")
@study_argument
@click.argument("participant")
def reissue(
    file: Path, place: StudyPlace, participant: str, settings: LinkSettings, as_json: bool
) -> None:
    """Print a new link for PARTICIPANT (such as p0007); the old link stops working."""
    with open_study(file, place) as opened:
        done = make_new_link(opened, participant, settings)
    _print_invited(done, settings, None, as_json=as_json)


@click.command(cls=Command, short_help="Leave participants' answers out.")
@study_argument
@click.argument("people", metavar="[PARTICIPANT]...", nargs=-1)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def remove(
    file: Path,
    place: StudyPlace,
    people: tuple[str, ...],
    settings: RemoveSettings,
    yes: bool,
    as_json: bool,
) -> None:
    """Leave out the answers of each PARTICIPANT (such as p0007), and give their places to others.

    This cannot be undone; the answers stay in the database.
    """

    def confirm(names: Sequence[str]) -> None:
        if not yes:
            click.confirm(f"Leave out all answers of {named(names)}?", abort=True)

    with open_study(file, place) as opened:
        done = remove_people(opened, people, settings, confirm=confirm)
    print_done(
        {"removed": done.names, "n_units": done.n_units},
        f"{len(done.names):,} people removed, {done.n_units:,} units given to others",
        as_json=as_json,
    )


@click.command(cls=Command, short_help="Fetch the status of submissions from Prolific.")
@study_argument
def statuses(file: Path, place: StudyPlace, as_json: bool) -> None:
    """Fetch the status of the study's submissions from Prolific, as a running server does.

    The API token is read from the environment variable FABULA_PROLIFIC_TOKEN. Places of people who
    returned their submission, or timed out, are given to others.
    """
    with open_study(file, place) as opened:
        done = fetch_statuses(opened)
    print_done(
        asdict(done),
        f"{done.n_submissions:,} submissions, {done.n_new:,} with a new status; "
        f"{done.n_returned:,} units given back",
        *([f"{done.n_unknown:,} people have no submission at Prolific"] if done.n_unknown else []),
        as_json=as_json,
    )


@click.command(cls=Command, short_help="Delete a participant's answers.")
@study_argument
@click.argument("participant")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def forget(file: Path, place: StudyPlace, participant: str, yes: bool, as_json: bool) -> None:
    """Delete all answers of PARTICIPANT (such as p0007) permanently."""
    from fabula.studies.participants import check_known, number_of
    from fabula.studies.participants import forget as forget_participant

    number = number_of(participant)
    with open_study(file, place) as opened:
        with opened.store.reading() as connection:
            check_known(connection, number)
        if not yes:
            click.confirm(f"Delete all answers of {participant} permanently?", abort=True)
        with opened.store.writing() as connection:
            n = forget_participant(connection, number, "command line")
        opened.store.after_forgetting()
    print_done({"n_deleted": n}, f"{n:,} answers deleted", as_json=as_json)


PEOPLE: tuple[click.Command, ...] = (invite, reissue, statuses, remove, forget)
