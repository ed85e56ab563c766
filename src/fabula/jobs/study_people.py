"""The people of a study: invite, reissue links, remove; their status on a platform."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fabula.errors import InputError
from fabula.jobs.progress import SILENT, Agree, Progress, agreed_to
from fabula.jobs.result import Result, Row
from fabula.jobs.result_files import check_kept
from fabula.jobs.studies import PLATFORM_TOKEN, OpenStudy, StudyFile, StudyPlace, named, open_study
from fabula.settings import Between, Settings, SettingsError, setting

if TYPE_CHECKING:
    from fabula.studies.participants import Invitation

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


@dataclass(frozen=True, slots=True, repr=False)
class Invited(Result):
    """Links, one per person. They are not stored and cannot be shown again."""

    invitations: Sequence[Invitation]
    address: str
    csv: Path | None = None

    def people(self) -> list[Row]:
        return [
            {"participant": one.name, "note": one.note, "link": f"{self.address}/i/{one.token}"}
            for one in self.invitations
        ]

    def lines(self) -> list[str]:
        shown = [f"{one['participant']}  {one['link']}  {one['note']}" for one in self.people()]
        written = [] if self.csv is None else [f"written: {self.csv}"]
        return [*(line.rstrip() for line in shown), *written]

    def to_json(self) -> dict[str, Any]:
        people = self.people()
        return {"links": [one["link"] for one in people], "invitations": people}


_N_PEOPLE = Between(1, 10_000)


def invite(
    file: StudyFile,
    settings: InviteSettings,
    place: StudyPlace,
    n: int | None = None,
    *,
    progress: Progress = SILENT,
) -> Invited:
    """Print N invitations: a number, a link and a note for each person.

    Links are not kept and cannot be shown again; `study people --reissue` makes a new one.

    Raises `InputError`.
    """
    from fabula.store import write_whole
    from fabula.studies.exporting import invitations_csv
    from fabula.studies.forms import clean_text
    from fabula.studies.participants import invite_each

    if n is None and settings.notes is None:
        raise SettingsError("notes", "or N must be given: how many people to invite")
    if n is not None and settings.notes is not None:
        raise SettingsError("notes", f"and N ({n:,}) cannot be used together")
    if n is not None and (problem := _N_PEOPLE(n)):
        raise SettingsError("n", problem)
    notes = [clean_text(settings.note)] * (n or 0)
    if settings.notes is not None:
        lines = settings.notes.read_text(encoding="utf-8-sig").splitlines()
        notes = [clean_text(line) for line in lines if line.strip()]
        if not notes:
            raise SettingsError("notes", f"{settings.notes}: contains no lines")
    if settings.csv is not None and settings.csv.exists():
        raise SettingsError("csv", f"{settings.csv} exists, and its links cannot be shown again")
    with open_study(file, place, create=True) as study:
        check_kept({"csv": settings.csv}, study.files)
        with study.store.writing() as connection:
            invitations = invite_each(connection, notes, "command line")
    if settings.csv is not None:
        table = invitations_csv(invitations, settings.address)
        write_whole(settings.csv, table, is_private=True)
    _tell_if_local(settings, progress)
    return Invited(invitations, settings.address, settings.csv)


def _tell_if_local(settings: LinkSettings, progress: Progress) -> None:
    if settings.url is None:
        progress.tell("these links work on this machine only; set `url` for other people")


@dataclass(frozen=True, slots=True)
class PeopleSettings(LinkSettings):
    """What is done: one of four."""

    reissue: bool = setting(
        False, help="Print a new link for each PARTICIPANT; the old link stops working."
    )
    remove: bool = setting(
        False,
        help="Leave out the answers of each PARTICIPANT, and give their places to others. This "
        "cannot be undone; the answers stay in the database.",
    )
    forget: bool = setting(False, help="Delete all answers of each PARTICIPANT permanently.")
    statuses: bool = setting(
        False,
        help="Fetch the status of the study's submissions from Prolific, as a running server does.",
    )
    status: str | None = setting(
        None,
        help="With `remove`: everybody whose submission has this status on the platform: RETURNED, "
        "TIMED-OUT, REJECTED, ...",
        unit="STATUS",
    )

    def check_together(self) -> None:
        if self.reissue + self.remove + self.forget + self.statuses != 1:
            raise SettingsError(
                "reissue", "or `remove`, `forget` or `statuses` must be given, and only one of them"
            )
        if self.status is not None and not self.remove:
            raise SettingsError("status", "is only for `remove`")
        if self.url is not None and not self.reissue:
            raise SettingsError("url", "is only for `reissue`")


@dataclass(frozen=True, slots=True, repr=False)
class PeopleDone(Result):
    """What was done."""

    content: dict[str, Any]
    said: Sequence[str]

    def lines(self) -> Sequence[str]:
        return self.said

    def to_json(self) -> dict[str, Any]:
        return self.content


def people(
    file: StudyFile,
    settings: PeopleSettings,
    place: StudyPlace,
    participants: Annotated[Sequence[str], "PARTICIPANT"] = (),
    *,
    agree: Agree = agreed_to,
    progress: Progress = SILENT,
) -> PeopleDone:
    """Look after the participants of a study; each PARTICIPANT is a name such as p0007.

    A new link is shown once and not kept. The API token for `statuses` is read from the environment
    variable FABULA_PROLIFIC_TOKEN; places of people who returned their submission, or timed out,
    are given to others.

    Raises `InputError`.
    """
    for name in ("statuses", "status"):
        if participants and getattr(settings, name):
            raise SettingsError(name, "and participants cannot be used together")
    if not participants and settings.remove and not settings.status:
        raise SettingsError("status", "or participants (such as p0007) must be given")
    for name in ("reissue", "forget"):
        if not participants and getattr(settings, name):
            raise SettingsError(name, "needs participants (such as p0007)")
    with open_study(file, place) as study:
        if settings.statuses:
            return _fetch_statuses(study)
        if not settings.reissue:
            return (_remove if settings.remove else _forget)(study, participants, settings, agree)
        from fabula.studies.participants import number_of, reissue

        with study.store.writing() as connection:
            numbers = dict.fromkeys(map(number_of, participants))
            links = [reissue(connection, number, "command line") for number in numbers]
    _tell_if_local(settings, progress)
    invited = Invited(links, settings.address)
    return PeopleDone(invited.to_json(), invited.lines())


def _remove(
    study: OpenStudy, participants: Sequence[str], settings: PeopleSettings, agree: Agree
) -> PeopleDone:
    from fabula.studies.participants import check_known, number_of, pseudonym, remove
    from fabula.studies.platforms import people_with_status

    ids = {number_of(name) for name in participants}
    with study.store.reading() as connection:
        if settings.status:
            ids = people_with_status(connection, settings.status)
        for id_ in ids:
            check_known(connection, id_)
    names = [pseudonym(id_) for id_ in sorted(ids)]
    if names:
        agree(f"Leave out all answers of {named(names)}?")
    with study.store.writing() as connection:
        n_units = sum(remove(connection, id_, "command line") for id_ in sorted(ids))
    said = f"{len(names):,} people removed, {n_units:,} units given to others"
    return PeopleDone({"removed": names, "n_units": n_units}, [said])


def _forget(
    study: OpenStudy, participants: Sequence[str], _settings: PeopleSettings, agree: Agree
) -> PeopleDone:
    from fabula.studies.participants import check_known, forget, number_of

    ids = {number_of(name): name for name in participants}
    with study.store.reading() as connection:
        for id_ in ids:
            check_known(connection, id_)
    agree(f"Delete all answers of {named(list(ids.values()))} permanently?")
    with study.store.writing() as connection:
        n = sum(forget(connection, id_, "command line") for id_ in ids)
    study.store.after_forgetting()
    return PeopleDone({"n_deleted": n}, [f"{n:,} answers deleted"])


def _fetch_statuses(study: OpenStudy) -> PeopleDone:
    from fabula.studies.platforms import Prolific, Statuses

    token, entry = os.environ.get(PLATFORM_TOKEN, ""), study.design.people.entry
    if not token:
        raise InputError(f"{PLATFORM_TOKEN}: is not set; set it to a token for Prolific's API")
    if not entry.studies:
        raise InputError(
            f"{study.design.path}: entry: `studies` is missing; list the study's ids at Prolific"
        )
    done = Statuses(Prolific(token, entry.api), entry.studies).fetch(study.store)
    assert done is not None
    said = [
        f"{done.n_submissions:,} submissions, {done.n_new:,} with a new status; "
        f"{done.n_returned:,} units given back"
    ]
    if done.n_unknown:
        said.append(f"{done.n_unknown:,} people have no submission at Prolific")
    return PeopleDone(asdict(done), said)
