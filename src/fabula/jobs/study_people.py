"""The people of a study: invite, reissue links, remove; their status on a platform."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fabula.jobs.studies import PLATFORM_TOKEN, OpenStudy
from fabula.settings import Settings, SettingsError, setting

if TYPE_CHECKING:
    from fabula.studies.participants import Invitation
    from fabula.studies.places import Applied

_LOCAL = "http://127.0.0.1:8000"


def _is_address(url: str) -> str | None:
    if re.match(r"https?://[^/\s?#]+[^\s?#]*$", url):
        return None
    return f"{url} is not an address that links can begin with; write it like https://your.host"


@dataclass(frozen=True, slots=True)
class LinkSettings(Settings):
    """The address in an invitation."""

    url: str | None = setting(
        None,
        help="Address at which others reach the page.",
        unit="URL",
        check=_is_address,
        default_text=f"{_LOCAL}, for this machine only",
    )

    @property
    def address(self) -> str:
        return (self.url or _LOCAL).rstrip("/")


def _can_be_read(path: Path) -> str | None:
    if not path.exists():
        return f"{path} does not exist"
    return f"{path} is a folder" if path.is_dir() else None


@dataclass(frozen=True, slots=True)
class InviteSettings(LinkSettings):
    """Notes on those who are invited, and where their links are written."""

    note: str = setting("", help="A note on these people, for your own use.")
    notes: Path | None = setting(
        None,
        help="File with one note per line: makes one invitation for each, in place of N.",
        check=_can_be_read,
    )
    csv: Path | None = setting(None, help="Also write numbers, notes and links here.")


@dataclass(frozen=True, slots=True)
class Invited:
    """Links, one per person. They are not stored and cannot be shown again."""

    invitations: Sequence[Invitation]
    address: str

    @property
    def rows(self) -> list[dict[str, str]]:
        return [
            {"participant": one.name, "note": one.note, "link": f"{self.address}/i/{one.token}"}
            for one in self.invitations
        ]

    def lines(self) -> list[str]:
        return [f"{row['participant']}  {row['link']}  {row['note']}".rstrip() for row in self.rows]

    def to_json(self) -> dict[str, Any]:
        return {"links": [row["link"] for row in self.rows], "invitations": self.rows}


def notes_of(n: int | None, settings: InviteSettings) -> list[str]:
    """A note for each of `n` people, or for each line of the file `notes`. Raises `InputError`."""
    from fabula.studies.forms import clean_text

    if n is None and settings.notes is None:
        raise SettingsError("notes", "or N must be given: how many people to invite")
    if n is not None and settings.notes is not None:
        raise SettingsError("notes", f"and N ({n:,}) cannot be used together")
    if settings.notes is None:
        return [clean_text(settings.note)] * (n or 0)
    lines = settings.notes.read_text(encoding="utf-8-sig").splitlines()
    found = [clean_text(line) for line in lines if line.strip()]
    if not found:
        raise SettingsError("notes", f"{settings.notes}: contains no lines")
    return found


def invite(study: OpenStudy, notes: Sequence[str], settings: InviteSettings) -> Invited:
    """A number and a link for each person, one per note."""
    from fabula.store import write_whole
    from fabula.studies.export_files import invitations_csv
    from fabula.studies.participants import invite_each

    with study.store.writing() as connection:
        invitations = invite_each(connection, notes, "command line")
    if settings.csv is not None:
        table = invitations_csv(invitations, settings.address)
        write_whole(settings.csv, table, is_private=True)
    return Invited(invitations, settings.address)


def reissue(study: OpenStudy, participant: str, settings: LinkSettings) -> Invited:
    """A new link for a participant, such as `p0007`; the old one expires. Raises `InputError`."""
    from fabula.studies.participants import number_of
    from fabula.studies.participants import reissue as make_new_link

    with study.store.writing() as connection:
        invitation = make_new_link(connection, number_of(participant), "command line")
    return Invited([invitation], settings.address)


@dataclass(frozen=True, slots=True)
class RemoveSettings(Settings):
    """Who is removed, besides those who are named."""

    status: str | None = setting(
        None,
        help="Everybody whose submission has this status on the platform: RETURNED, TIMED-OUT, "
        "REJECTED, ...",
        unit="STATUS",
    )


class Removed(NamedTuple):
    """Who was removed, and how many units were reassigned."""

    names: list[str]
    n_units: int


def remove(
    study: OpenStudy,
    people: Sequence[str],
    settings: RemoveSettings,
    *,
    confirm: Callable[[Sequence[str]], None] = lambda _names: None,
) -> Removed:
    """Exclude the answers of these participants, and reassign their places.

    `confirm` receives their names first, and raises to keep them. Raises `InputError`.
    """
    from fabula.studies.participants import check_known, number_of, pseudonym
    from fabula.studies.participants import remove as remove_participant
    from fabula.studies.places import people_with_status

    if not people and not settings.status:
        raise SettingsError("status", "or participants (such as p0007) must be given")
    if people and settings.status:
        raise SettingsError("status", "and participants cannot be used together")
    ids = {number_of(name) for name in people}
    if settings.status:
        with study.store.reading() as connection:
            ids = people_with_status(connection, settings.status)
    with study.store.reading() as connection:
        for id_ in ids:
            check_known(connection, id_)
    names = [pseudonym(id_) for id_ in sorted(ids)]
    if names:
        confirm(names)
    with study.store.writing() as connection:
        n = sum(remove_participant(connection, id_, "command line") for id_ in sorted(ids))
    return Removed(names, n)


def fetch_statuses(study: OpenStudy) -> Applied:
    """Fetch the status of the study's submissions from Prolific.

    Raises `InputError`, also without a token.
    """
    from fabula.errors import InputError
    from fabula.studies.prolific import Prolific
    from fabula.studies.statuses import Statuses

    token, entry = os.environ.get(PLATFORM_TOKEN, ""), study.design.people.entry
    if not token:
        raise InputError(f"{PLATFORM_TOKEN}: is not set; set it to a token for Prolific's API")
    if not entry.studies:
        raise InputError(
            f"{study.design.path}: entry: `studies` is missing; list the study's ids at Prolific"
        )
    done = Statuses(Prolific(token, entry.api), entry.studies).fetch(study.store)
    assert done is not None
    return done
