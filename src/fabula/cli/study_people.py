"""`fabula study`: what is done about people."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fabula.cli.derived import Command
from fabula.cli.options import json_option
from fabula.cli.printing import print_done
from fabula.cli.study_files import PLATFORM_TOKEN, check_out, named, opened, study_options

if TYPE_CHECKING:
    from fabula.studies.participants import Invitation

__all__ = ["PEOPLE"]

F = TypeVar("F", bound=Callable[..., Any])


def _url_option(command: F) -> F:
    return click.option(
        "--url", metavar="URL",
        help="Where others reach the page.  [default: http://127.0.0.1:8000, for this machine "
        "only]",
    )(command)  # fmt: skip


def _address(url: str | None) -> str:
    if url is None:
        click.echo("these links lead to this machine only; for others give --url", err=True)
    return (url or "http://127.0.0.1:8000").rstrip("/")


def _print_invitations(
    invitations: Sequence[Invitation], address: str, out: Path | None, *, as_json: bool
) -> None:
    from fabula.store import write_whole
    from fabula.studies.tables import invitations_csv

    if out is not None:
        write_whole(out, invitations_csv(invitations, address), is_private=True)
    rows = [
        {"participant": one.name, "note": one.note, "link": f"{address}/i/{one.token}"}
        for one in invitations
    ]
    lines = [f"{row['participant']}  {row['link']}  {row['note']}".rstrip() for row in rows]
    content = {"links": [row["link"] for row in rows], "invitations": rows}
    if out is not None:
        lines.append(f"written: {out}")
    print_done(content, *lines, as_json=as_json)


@click.command(cls=Command, short_help="Print invitation links.")
@study_options
@click.argument("n", type=click.IntRange(1, 10_000), required=False)
@_url_option
@click.option("--note", default="", help="A note on these people, for yourself.")
@click.option(
    "--notes", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE",
    help="A file with a note a line: one invitation for each, in place of N.",
)  # fmt: skip
@click.option(
    "--csv", "out", type=click.Path(path_type=Path), metavar="FILE",
    help="Write numbers, notes and links here too.",
)  # fmt: skip
@json_option
def invite(
    file: Path, n: int | None, database: str | None, url: str | None, note: str,
    notes: Path | None, out: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Print N invitations: a number, a link and a note for each person.

    Links are not kept and cannot be shown again; `study reissue` makes a new one.
    """
    from fabula.studies.forms import clean_text
    from fabula.studies.participants import invite_each

    if (n is None) == (notes is None):
        raise click.UsageError("give N, or a note for each person with --notes FILE")
    if notes is None:
        wanted = [clean_text(note)] * (n or 0)
    else:
        lines = notes.read_text(encoding="utf-8-sig").splitlines()
        wanted = [clean_text(line) for line in lines if line.strip()]
        if not wanted:
            raise click.UsageError(f"--notes {notes}: holds no line")
    with opened(file, database, create=True) as (design, _, store):
        check_out([out], design, store)
        with store.writing() as connection:
            invitations = invite_each(connection, wanted, "command line")
    _print_invitations(invitations, _address(url), out, as_json=as_json)


@click.command(cls=Command, short_help="Give a participant a new link.")
@study_options
@click.argument("participant")
@_url_option
@json_option
def reissue(
    file: Path, database: str | None, participant: str, url: str | None, as_json: bool
) -> None:
    """Print a new link for PARTICIPANT (such as p0007); the old one ends."""
    from fabula.studies.participants import number_of
    from fabula.studies.participants import reissue as make_new_link

    with opened(file, database) as (_, _, store), store.writing() as connection:
        invitation = make_new_link(connection, number_of(participant), "command line")
    _print_invitations([invitation], _address(url), None, as_json=as_json)


@click.command(cls=Command, short_help="Leave participants' answers out.")
@study_options
@click.argument("people", metavar="[PARTICIPANT]...", nargs=-1)
@click.option(
    "--status", metavar="STATUS",
    help="All whose submission stands so at the platform: RETURNED, TIMED-OUT, REJECTED, ...",
)  # fmt: skip
@click.option("--yes", is_flag=True, help="Do not ask again.")
@json_option
def remove(
    file: Path, database: str | None, people: tuple[str, ...], status: str | None, yes: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Leave out the answers of each PARTICIPANT (such as p0007), and give their places to others.

    It cannot be taken back; the answers stay in the database.
    """
    from fabula.studies.participants import number_of, pseudonym
    from fabula.studies.participants import remove as remove_participant

    if bool(people) == bool(status):
        raise click.UsageError("name participants, or a --status of the platform's")
    with opened(file, database) as (_, _, store):
        from fabula.studies.places import people_with_status

        ids = {number_of(name) for name in people}
        if status:
            with store.reading() as connection:
                ids = people_with_status(connection, status)
        names = [pseudonym(id_) for id_ in sorted(ids)]
        if names and not yes:
            click.confirm(f"Leave out all answers of {named(names)}?", abort=True)
        with store.writing() as connection:
            n = sum(remove_participant(connection, id_, "command line") for id_ in sorted(ids))
    print_done(
        {"removed": names, "n_units": n},
        f"{len(names):,} people removed, {n:,} units given to others",
        as_json=as_json,
    )


@click.command(cls=Command, short_help="Fetch how submissions stand at Prolific.")
@study_options
@json_option
def statuses(file: Path, database: str | None, as_json: bool) -> None:
    """Fetch how the study's submissions stand at Prolific, as a running server does by itself.

    The token of its API is that of the environment variable FABULA_PROLIFIC_TOKEN. Places of those
    who returned their submission, or timed out, are given to others.
    """
    from fabula.errors import InputError

    token = os.environ.get(PLATFORM_TOKEN, "")
    with opened(file, database) as (design, _, store):
        from fabula.studies.prolific import Prolific
        from fabula.studies.statuses import Statuses

        entry = design.people.entry
        if not token:
            raise InputError(f"{PLATFORM_TOKEN}: is not set; it holds a token of Prolific's API")
        if not entry.studies:
            raise InputError(f"{file}: entry: names no `studies`, the study's ids at Prolific")
        done = Statuses(Prolific(token, entry.api), entry.studies).fetch(store)
    assert done is not None
    print_done(
        asdict(done),
        f"{done.n_submissions:,} submissions, {done.n_new:,} with a new status; "
        f"{done.n_returned:,} units given back",
        *([f"{done.n_unknown:,} people have no submission at Prolific"] if done.n_unknown else []),
        as_json=as_json,
    )


@click.command(cls=Command, short_help="Delete a participant's answers.")
@study_options
@click.argument("participant")
@click.option("--yes", is_flag=True, help="Do not ask again.")
@json_option
def forget(file: Path, database: str | None, participant: str, yes: bool, as_json: bool) -> None:
    """Delete all answers of PARTICIPANT (such as p0007), for good."""
    from fabula.studies.participants import forget as forget_participant
    from fabula.studies.participants import number_of

    number = number_of(participant)
    if not yes:
        click.confirm(f"Delete all answers of {participant}, for good?", abort=True)
    with opened(file, database) as (_, _, store):
        with store.writing() as connection:
            n = forget_participant(connection, number, "command line")
        store.after_forgetting()
    print_done({"n_deleted": n}, f"{n:,} answers deleted", as_json=as_json)


PEOPLE: tuple[click.Command, ...] = (invite, reissue, statuses, remove, forget)
