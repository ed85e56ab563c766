"""Studies with people: design and serve them, look after participants, export, analyse."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from fabula.core.errors import InputError
from fabula.core.settings import Between, Settings, SettingsError, changed, seed_setting, setting
from fabula.jobs.job import SILENT, Agree, Progress, agreed_to
from fabula.jobs.result import Result, Row, picked
from fabula.jobs.shared_settings import check_kept, plot_setting

if TYPE_CHECKING:
    from fabula.core.types import Document, Measurement
    from fabula.show.sheet import Block
    from fabula.studies.assigning import Workload
    from fabula.studies.database import Store
    from fabula.studies.design import StudyDesign
    from fabula.studies.participants import Invitation
    from fabula.studies.study_engine import Backup
    from fabula.studies.units import Unit

_PASSWORD = "FABULA_STUDY_PASSWORD"
PLATFORM_TOKEN = "FABULA_PROLIFIC_TOKEN"
_LEAST_PASSWORD = 10

StudyFile = Annotated[Path, "STUDY.toml"]
BackupFile = Annotated[Path, "FILE"]


@dataclass(frozen=True, slots=True)
class StudyPlace(Settings):
    """Where the answers are stored."""

    database: str | None = setting(
        None,
        help="sqlite:///FILE or postgresql://...",
        unit="URL",
        default_text="a file beside STUDY.toml",
    )


class OpenStudy(NamedTuple):
    """A study whose database is open."""

    design: StudyDesign
    units: Sequence[Unit]
    store: Store

    @property
    def files(self) -> list[Path]:
        """Its files, which must not be overwritten."""
        design, file = self.design, self.store.file
        held = [path for path in (design.path, design.documents, design.rubric_file) if path]
        if file is not None:
            held += [file.with_name(file.name + end) for end in ("", "-wal", "-shm")]
        return held


@contextmanager
def open_study(
    file: Path,
    place: StudyPlace,
    *,
    create: bool = False,
    serves: bool = False,
    warn: Callable[[str], None] = lambda _sentence: None,
) -> Iterator[OpenStudy]:
    """Open a study and its answers; `create` makes a database if there is none.

    Raises `InputError`, also if the study was started with a file or documents that differ.
    """
    try:
        import fabula.studies.database  # noqa: F401
    except ImportError as error:
        raise InputError("studies need more packages; run: pip install 'fabula[study]'") from error
    from sqlalchemy.exc import SQLAlchemyError

    from fabula.studies.design import load_study
    from fabula.studies.study_engine import open_store
    from fabula.studies.units import read_units

    design = load_study(file)
    units = read_units(design)
    store = open_store(design, units, place.database, create=create)
    try:
        yield OpenStudy(design, units, store)
    except SQLAlchemyError as error:
        raise InputError(f"the database failed: {str(error).splitlines()[0]}") from error
    finally:
        if not store.close(is_served=serves) and serves:
            warn(
                f"another program has {store.file} open, so the last answers are in "
                f"{store.file}-wal beside it: copy both"
            )


_KINDS = {
    "ttcw": ("group", "groups"),
    "feedback": ("piece of feedback", "pieces of feedback"),
    "pairs": ("pair", "pairs"),
}
"""The name of a design's unit, singular and plural."""


def _with_noun(n: int, singular: str, plural: str) -> str:
    return f"{n:,} {singular if n == 1 else plural}"


def _counted(n: int, design: StudyDesign) -> str:
    """`1 group`, `36 pairs`."""
    names = ("set of four", "sets of four") if design.at_once == 4 else _KINDS[design.kind]
    return _with_noun(n, *names)


@dataclass(frozen=True, slots=True)
class NewStudySettings(Settings):
    """What a study is made of."""

    design: Literal["ttcw", "feedback", "pairs", "best-worst"] = setting(
        help="ttcw: groups of stories by a rubric, as in `Art or Artifice?`; feedback: writing "
        "feedback, as in `Help Me Write a Story`; pairs: two stories of a group, side by side; "
        "best-worst: four of them, of which the best and the worst are named."
    )
    documents: Path = setting(
        help="Stories (ttcw, pairs, best-worst), or what `feedback elicit` wrote (feedback).",
        check=lambda path: None if path.exists() else f"{path} does not exist",
    )
    group_field: str | None = setting(
        None,
        help="Field that groups the stories (ttcw, pairs, best-worst).",
        unit="NAME",
        default_text="group, or prompt_id as `stories write` has it",
    )


@dataclass(frozen=True, slots=True, repr=False)
class DesignedStudy(Result):
    """A study that is ready to run."""

    design: StudyDesign
    units: Sequence[Unit]
    work: Workload

    @property
    def n_texts(self) -> int:
        return len({document.id for unit in self.units for document in unit.documents})

    def lines(self) -> list[str]:
        """How many people it takes, and what it cannot hide from them."""
        import shlex

        work, file = self.work, self.design.path
        shown = _counted(len(self.units), self.design)
        people = _with_noun(work.n_people, "person is", "people are")
        lines = [
            f"written: {file} ({shown}, {_with_noun(self.n_texts, 'text', 'texts')})",
            f"{_with_noun(work.n_readings, 'reading', 'readings')}; each person reads at most "
            f"{_counted(work.n_for_one_person, self.design)}, so at least {people} needed",
        ]
        if (n := work.n_people_shared_out) is not None and n > work.n_people:
            condition = "people arrive one by one and read all that they are given"
            lines.append(f"if {condition}, {n:,} people fill it")
        command = f"fabula study invite {shlex.quote(str(file))}"
        then = f"{command} {work.n_people_shared_out or work.n_people}"
        lines += [f"note: {note}" for note in self.notes()]
        return [*lines, f"edit its texts and numbers, then run: {then}"]

    def to_json(self) -> dict[str, Any]:
        sizes = {"out": str(self.design.path), "n_units": len(self.units), "n_texts": self.n_texts}
        names = ("n_for_one_person", "n_readings", "n_people", "n_people_shared_out")
        return {**sizes, **picked(self.work, *names), "notes": self.notes()}

    def notes(self) -> list[str]:
        """What an organiser should know before inviting people."""
        design, units, work = self.design, self.units, self.work
        notes = []
        is_limited = work.n_for_one_person < min(len(units), design.per_participant)
        if is_limited and design.kind == "pairs":
            n = design.per_story
            times = {1: "once", 2: "twice"}.get(n, f"{n:,} times")
            more = f"raise per_story in {design.path} for more"
            notes.append(f"nobody reads a story more than {times}; {more}")
        elif is_limited:
            notes.append(
                "nobody is given two versions of one story, since one reveals what was changed in "
                "the other; so nobody compares them either"
            )
        if work.giving_away:
            several = "contains several versions of one story, and its readers see both"
            notes.append(f"{named(work.giving_away)}: {several}")
        if design.kind != "feedback":
            if single := [unit.key for unit in units if len(unit.documents) == 1]:
                only = "contains only one story, so there is nothing to rank"
                notes.append(f"{named(single)}: {only}")
            stories = {story.id: story for unit in units for story in unit.documents}
            if nameless := [story.id for story in stories.values() if not story.author]:
                notes.append(f"{named(nameless)}: has no author; `analyse` compares authors")
        return notes


def named(names: Sequence[str]) -> str:
    """The first three, and how many more."""
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3:,} more"


def new(file: StudyFile, settings: NewStudySettings) -> DesignedStudy:
    """Write STUDY.toml, ready to run and for you to edit.

    Shows how many people the study needs, and what it cannot hide from them.

    Raises `InputError`.
    """
    from fabula.studies.assigning import workload_of
    from fabula.studies.design import load_study, new_study
    from fabula.studies.units import NoGroup, group_field_of, read_units

    field = settings.group_field
    if field is None and settings.design != "feedback":
        field = group_field_of(settings.documents)
    new_study(file, settings.design, settings.documents, group_field=field or "group")
    try:
        design = load_study(file)
        units = read_units(design)
    except InputError as error:
        # A study that cannot be run is not left behind.
        file.unlink()
        if isinstance(error, NoGroup):
            remedy = "name the field that groups the stories with `group_field`"
            raise InputError(f"{str(error).partition(';')[0]}; {remedy}") from error
        raise
    return DesignedStudy(design, units, workload_of(design, units))


@dataclass(frozen=True, slots=True)
class StudyServeSettings(Settings):
    """Where a study's page is served."""

    preview: bool = setting(
        False, help="Try the study out on this machine, with a link for yourself: nothing is kept."
    )
    host: str = setting("127.0.0.1", help="Address to listen on.")
    port: int | None = setting(
        None,
        help="Port to listen on.",
        check=Between(0, 65535),
        default_text="8000; a free one for a preview",
    )
    behind_proxy: str | None = setting(
        None,
        help="Trust the forwarded headers of a proxy at this address (for https).",
        unit="ADDRESS",
    )
    root_path: str = setting("", help="Path at which the proxy mounts the study.", unit="PATH")
    insecure: bool = setting(
        False,
        help="Serve other machines without https: anybody on the network path can read the "
        "answers.",
    )

    def check_together(self) -> None:
        for name in changed(self) if self.preview else ():
            if name not in ("preview", "port"):
                raise SettingsError(name, "is of no use with `preview`, on this machine only")


def serve(
    file: StudyFile,
    settings: StudyServeSettings,
    place: StudyPlace,
    *,
    announce: Callable[[str], None] = print,
    warn: Callable[[str], None] = lambda _sentence: None,
) -> Result:
    """Serve the study's page. Organisers log in at /organise.

    Their password is read from the environment variable FABULA_STUDY_PASSWORD; without it, one is
    generated and printed. With FABULA_PROLIFIC_TOKEN, and the study's ids as `studies` under
    [entry], the statuses of Prolific's submissions are fetched every minute.

    With `preview`, the page is served on this machine only, with a link for yourself. Answers go
    into a separate database, which is deleted at the end: they are never counted and take nobody's
    place, and you can still change the study. The title says that it is a preview. The organiser's
    page has further links.

    Raises `InputError`; else it returns when the process is stopped.
    """
    import secrets
    import tempfile

    is_preview, host, proxy = settings.preview, settings.host, settings.behind_proxy
    if is_preview and place.database is not None:
        raise SettingsError("database", "is of no use with `preview`, which keeps no answers")
    with ExitStack() as stack:
        if is_preview:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="fabula-preview-"))
            place = StudyPlace(f"sqlite:///{folder}/preview.db")
        opened = open_study(file, place, create=True, serves=not is_preview, warn=warn)
        design, units, store = stack.enter_context(opened)
        from fabula.studies.app import create_app
        from fabula.studies.participants import invite
        from fabula.web import app as web
        from fabula.web.guard import is_loopback

        is_ours = is_loopback(host)
        if not (is_ours or proxy or settings.insecure):
            raise InputError(
                f"`host` {host}: anybody on the network path could read the links and the answers; "
                "put a proxy with https in front, with `behind_proxy`, or allow it: `insecure`"
            )
        set_password = None if is_preview else os.environ.get(_PASSWORD)
        password = set_password or secrets.token_urlsafe(9)
        if len(password) < _LEAST_PASSWORD:
            raise InputError(
                f"{_PASSWORD}: is shorter than {_LEAST_PASSWORD} characters; choose a longer "
                "password, or unset it to have one generated"
            )
        if is_preview:
            design = replace(design, title=design.labels("preview", title=design.title))
            with store.writing() as connection:
                (invitation,) = invite(connection, ["yourself"], "preview")
        app = create_app(
            design,
            units,
            store,
            password=password,
            own_names_only=is_ours and not proxy,
            platform_token="" if is_preview else os.environ.get(PLATFORM_TOKEN, ""),
        )
        usual_port, mounted = 0 if is_preview else 8000, settings.root_path.strip("/")
        listening = web.listen(host, usual_port if settings.port is None else settings.port)
        url = f"http://{host}:{listening.getsockname()[1]}"

        def begun() -> None:
            if is_preview:
                announce(f"{design.title}: {url}/i/{invitation.token}?change=yes")
                announce(f"organisers: {url}/organise, password {password}")
                announce("answers given here are not kept")
                return
            announce(f"{design.title}: {url}, organisers: {url}/organise")
            if not set_password:
                announce(f"organisers' password for this run: {password}")

        path = f"/{mounted}" if mounted else ""
        web.serve(app, listening, begun, behind_proxy=proxy, root_path=path)
    return Result()


_TABLES = (".jsonl", ".csv", ".xlsx", ".parquet")


def _is_table(path: Path) -> str | None:
    ends = path.suffix in _TABLES
    return None if ends else f"must end with {', '.join(_TABLES)}, got {path.name!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSettings(Settings):
    """Which answers are exported, and to which files; each has the format of its ending."""

    out: Path = setting(
        help="Write the measurements here (.jsonl, .csv, .xlsx or .parquet).", check=_is_table
    )
    unfinished: bool = setting(False, help="Include answers that were not handed in.")
    wide: bool = setting(
        False, help="Write a row for each person and text, with a column for each item."
    )
    people_file: Path | None = setting(
        None, help="Write a table of participants here.", check=_is_table, option="people"
    )
    times: Path | None = setting(
        None, help="Write the time each person took over each page here.", check=_is_table
    )


@dataclass(frozen=True, slots=True, repr=False)
class Exported(Result):
    """How many answers from how many people were written."""

    files: Sequence[Path]
    n: int
    n_people: int

    def lines(self) -> list[str]:
        return [
            f"{self.n:,} answers of {self.n_people:,} people",
            f"written: {', '.join(map(str, self.files))}",
        ]

    def to_json(self) -> dict[str, Any]:
        return {"out": str(self.files[0]), "n": self.n, "n_people": self.n_people}


def export(file: StudyFile, settings: ExportSettings, place: StudyPlace) -> Exported:
    """Write all valid answers as measurements, one per row, each with the time it was saved (UTC).

    Commands that read measurements (`judge agreement --labels`, `feedback score --people`) expect
    this format.

    Raises `InputError`.
    """
    from fabula.studies import exporting
    from fabula.studies.exporting import export as measurements_of
    from fabula.studies.forms import pages_of
    from fabula.studies.quality import page_times, standings

    people, times = settings.people_file, settings.times
    files = {"out": settings.out, "people_file": people, "times": times}
    with open_study(file, place) as study:
        check_kept(files, study.files)
        design, units = study.design, {unit.key: unit for unit in study.units}
        with study.store.reading() as connection:
            marks = list(measurements_of(connection, design, units, unfinished=settings.unfinished))
            everybody = standings(connection, design, marks) if people else []
            pages = {key: pages_of(design, len(unit.documents)) for key, unit in units.items()}
            spent = page_times(connection, pages) if times else []
    write = exporting.write_wide if settings.wide else exporting.write_measurements
    write(marks, settings.out)
    if people is not None:
        exporting.write_people(everybody, people)
    if times is not None:
        exporting.write_times(spent, times)
    valid = [mark for mark in marks if mark.value is not None]
    n_people = len({mark.rater for mark in valid})
    return Exported([path for path in files.values() if path], len(valid), n_people)


@dataclass(frozen=True, slots=True, repr=False)
class Copied(Result):
    """What was copied from a study, or back into its database."""

    done: Backup
    file: Path
    is_restored: bool = False

    def lines(self) -> list[str]:
        done = self.done
        what = "restored" if self.is_restored else "copied"
        of_whom = f"{done.n_answers:,} saved answers of {done.n_people:,} people"
        lines = [f"{of_whom}, {what} and compared"]
        lines += [] if self.is_restored else [f"written: {self.file}"]
        if done.lacked_log:
            lines.append(f"{self.file} was copied without its log: later answers may be missing")
        return lines

    def to_json(self) -> dict[str, Any]:
        counts = {"n_saved": self.done.n_answers, "n_people": self.done.n_people}
        if self.is_restored:
            return {**counts, "may_lack_answers": self.done.lacked_log}
        return {"out": str(self.file), **counts}


@dataclass(frozen=True, slots=True)
class BackupSettings(Settings):
    """Which way answers are copied."""

    restore: bool = setting(False, help="Put the answers in FILE into an empty database.")


def backup(
    file: StudyFile, backup_file: BackupFile, settings: BackupSettings, place: StudyPlace
) -> Copied:
    """Copy all current answers into FILE and compare the copy with the original, or restore them.

    The study may be running. FILE is an SQLite file, even if the database is PostgreSQL. Keep
    STUDY.toml and the documents with it.

    With `restore`, FILE can also be a copy of the study's own file, with or without its log
    (FILE-wal) beside it.

    Raises `InputError`.
    """
    from fabula.studies.study_engine import back_up, restore

    if settings.restore and not backup_file.exists():
        raise SettingsError("backup_file", f"{backup_file} does not exist")
    with open_study(file, place, create=settings.restore) as study:
        if settings.restore:
            done = restore(study.store, study.design, study.units, backup_file)
            return Copied(done, backup_file, is_restored=True)
        check_kept({"backup_file": backup_file}, study.files)
        return Copied(back_up(study.store, backup_file), backup_file)


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
        return [who.row(self.address) for who in self.invitations]

    def lines(self) -> list[str]:
        shown = [f"{row['participant']}  {row['link']}  {row['note']}" for row in self.people()]
        written = [] if self.csv is None else [f"written: {self.csv}"]
        return [*(line.rstrip() for line in shown), *written]

    def to_json(self) -> dict[str, Any]:
        people = self.people()
        return {"links": [row["link"] for row in people], "invitations": people}


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
    from fabula.core.store import write_whole
    from fabula.studies import exporting, forms, participants

    if n is None and settings.notes is None:
        raise SettingsError("notes", "or N must be given: how many people to invite")
    if n is not None and settings.notes is not None:
        raise SettingsError("notes", f"and N ({n:,}) cannot be used together")
    if n is not None and (problem := _N_PEOPLE(n)):
        raise SettingsError("n", problem)
    notes = [""] * (n or 0)
    if settings.notes is not None:
        lines = settings.notes.read_text(encoding="utf-8-sig").splitlines()
        if not (notes := [forms.clean_text(line) for line in lines if line.strip()]):
            raise SettingsError("notes", f"{settings.notes}: contains no lines")
    if settings.csv is not None and settings.csv.exists():
        raise SettingsError("csv", f"{settings.csv} exists, and its links cannot be shown again")
    with open_study(file, place, create=True) as study:
        check_kept({"csv": settings.csv}, study.files)
        with study.store.writing() as connection:
            invitations = participants.invite(connection, notes, "command line")
    if settings.csv is not None:
        table = exporting.invitations_csv(invitations, settings.address)
        write_whole(settings.csv, table, is_private=True)
    _tell_if_local(settings, progress)
    return Invited(invitations, settings.address, settings.csv)


def _tell_if_local(settings: LinkSettings, progress: Progress) -> None:
    if settings.url is None:
        progress.tell("these links work on this machine only; set `url` for other people")


@dataclass(frozen=True, slots=True)
class PeopleSettings(LinkSettings):
    """What is done: one of three."""

    reissue: bool = setting(
        False, help="Print a new link for each PARTICIPANT; the old link stops working."
    )
    remove: bool = setting(
        False,
        help="Leave out the answers of each PARTICIPANT, and give their places to others. This "
        "cannot be undone; the answers stay in the database.",
    )
    forget: bool = setting(False, help="Delete all answers of each PARTICIPANT permanently.")
    status: str | None = setting(
        None,
        help="With `remove`: everybody whose submission has this status on the platform: RETURNED, "
        "TIMED-OUT, REJECTED, ...",
        unit="STATUS",
    )

    def check_together(self) -> None:
        if self.reissue + self.remove + self.forget != 1:
            raise SettingsError(
                "reissue", "or `remove` or `forget` must be given, and only one of them"
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

    A new link is shown once and not kept.

    Raises `InputError`.
    """
    if participants and settings.status:
        raise SettingsError("status", "and participants cannot be used together")
    if not participants and settings.remove and not settings.status:
        raise SettingsError("status", "or participants (such as p0007) must be given")
    for name in ("reissue", "forget"):
        if not participants and getattr(settings, name):
            raise SettingsError(name, "needs participants (such as p0007)")
    with open_study(file, place) as study:
        if not settings.reissue:
            return _left_out(study, participants, settings, agree)
        from fabula.studies.participants import number_of, reissue

        with study.store.writing() as connection:
            numbers = dict.fromkeys(map(number_of, participants))
            links = [reissue(connection, number, "command line") for number in numbers]
    _tell_if_local(settings, progress)
    invited = Invited(links, settings.address)
    return PeopleDone(invited.to_json(), invited.lines())


def _left_out(
    study: OpenStudy, participants: Sequence[str], settings: PeopleSettings, agree: Agree
) -> PeopleDone:
    """People removed, whose answers stay in the database, or forgotten, whose answers go."""
    from fabula.studies.participants import check_known, forget, number_of, pseudonym, remove
    from fabula.studies.platforms import people_with_status

    ids = {number_of(name): name for name in participants}
    with study.store.reading() as connection:
        if settings.status:
            ids = dict.fromkeys(people_with_status(connection, settings.status), "")
        for id_ in ids:
            check_known(connection, id_)
    if settings.forget:
        agree(f"Delete all answers of {named(list(ids.values()))} permanently?")
        with study.store.writing() as connection:
            n = sum(forget(connection, id_, "command line") for id_ in ids)
        study.store.after_forgetting()
        return PeopleDone({"n_deleted": n}, [f"{n:,} answers deleted"])
    if removed := [pseudonym(id_) for id_ in sorted(ids)]:
        agree(f"Leave out all answers of {named(removed)}?")
    with study.store.writing() as connection:
        n = sum(remove(connection, id_, "command line") for id_ in sorted(ids))
    line = f"{len(removed):,} people removed, {n:,} units given to others"
    return PeopleDone({"removed": removed, "n_units": n}, [line])


@dataclass(frozen=True, slots=True)
class AnalysisSettings(Settings):
    """What is drawn of a study, and how intervals are computed."""

    plot: Path | None = plot_setting(
        "Draw tests passed, ranks and supposed origins here (ttcw; .svg, .pdf or .png)."
    )
    seed: int = seed_setting()


@dataclass(frozen=True, slots=True, repr=False)
class StudyAnalysis(Result):
    """The tables of a study's answers so far, as in the paper that it follows."""

    blocks: Sequence[Block]
    content: dict[str, Any]
    draw: Callable[[Path], None] | None = None
    """Draws Figures 3 and 4 of Chakrabarty et al. 2024, from a study of the design ttcw."""

    def tables(self) -> list[Block]:
        return list(self.blocks)

    def to_json(self) -> dict[str, Any]:
        return self.content

    def writers(self) -> dict[str, Any]:
        return {} if self.draw is None else dict.fromkeys((".svg", ".pdf", ".png"), self.draw)


def analyse(file: StudyFile, settings: AnalysisSettings, place: StudyPlace) -> StudyAnalysis:
    """Print the paper's tables from the answers: pass rates, agreement, ranks and origins (ttcw);
    means with standard errors, agreement between raters (feedback); rankings by the Bradley-Terry
    model, as in `judge --pairwise` (pairs).

    Raises `InputError`, also if nobody has handed in anything yet.
    """
    from fabula.raters import ratings
    from fabula.raters import tables as rating_tables

    with open_study(file, place) as study:
        # What is missing for studies is told by opening one.
        from fabula.studies.exporting import export as export_answers

        design, units = study.design, study.units
        with study.store.reading() as connection:
            marks = list(export_answers(connection, design, {unit.key: unit for unit in units}))
    if settings.plot is not None and design.kind != "ttcw":
        raise SettingsError("plot", "is only for the design ttcw")
    if design.kind == "pairs":
        return analyse_pairs(design, units, marks, seed=settings.seed)
    documents = [document for unit in units for document in unit.documents]
    if design.kind == "ttcw":
        analysis = _of_stories(design, marks, documents, settings.seed)
        if settings.plot is not None and analysis.draw is not None:
            analysis.draw(settings.plot)
        return analysis
    scores = ratings.score_table(marks, design.rubric)
    if not any(scores.values()):
        raise _too_early(design)
    means, by_field = ratings.mean_scores(scores), {}
    items = [item.id for item in design.rubric.items if item.scale.has_worth]
    for name in rating_tables.FIELDS:
        by = {document.id: str(document.meta.get(name, "any")) for document in documents}
        by_field[name] = ratings.group_means(means, by.get)
    agreement = ratings.item_agreement({item: scores[item] for item in items}, design.rubric)
    n_people = len({mark.rater for mark in marks})
    parts: list[Block] = [
        f"{n_people:,} people; mean of 1 - |a - b| over pairs, "
        "Krippendorff's alpha with |a - b| as the distance",
        rating_tables.agreement_table(agreement),
        "",
    ]
    for name, groups in by_field.items():
        if len(groups) > 1 or name == "model":
            parts += [rating_tables.means_table(name, groups, items), ""]
    shown = {
        name: {
            group: {item: asdict(mean) for item, mean in of_group.items()}
            for group, of_group in groups.items()
        }
        for name, groups in by_field.items()
    }
    agreements = {item: among.brief() for item, among in agreement.items()}
    content = {"agreement": agreements, "means": shown, "n_people": n_people}
    return StudyAnalysis([*parts, marks[0].signature], content)


def _of_stories(
    design: StudyDesign, marks: Sequence[Measurement], documents: Sequence[Document], seed: int
) -> StudyAnalysis:
    """Tables 5 and 6 and Figures 3 and 4 of Chakrabarty et al. 2024, of yes-no items."""
    from fabula.raters import agreement as measures
    from fabula.replicate import ttcw
    from fabula.replicate.tables import save_study, study_tables

    tests = tuple(item for item in design.rubric.items if item.scale.is_test)
    rubric, known = replace(design.rubric, items=tests), {item.id for item in tests}
    verdicts = [
        (mark.document_id, mark.item, mark.rater, mark.value)
        for mark in marks
        if mark.item in known and isinstance(mark.value, float)
    ]
    panel = measures.panel_of(verdicts, design.id)
    if not panel.subjects:
        raise _too_early(design)
    preferred = [mark for mark in marks if mark.item in ("preference", "origin")]
    authors = {document.id: document.author or "unknown" for document in documents}
    author_of, signature = authors.__getitem__, marks[0].signature
    rates = measures.pass_rates(panel, rubric, author_of)
    agreement = measures.panel_agreement(panel, rubric, "item", seed=seed)
    correlation = measures.expert_correlation(panel, rubric, seed=seed)
    passed = measures.tests_passed(panel, rubric, author_of)
    ranks, origins = ttcw.preferences_by_author(preferred, authors)
    # The figures of the paper can be shown beside those of its stories.
    stories = {f"{group}_{author}" for group in range(12) for author in ttcw.AUTHORS}
    parts: list[Block]
    if design.rubric.id == "ttcw" and set(authors) == stories:
        parts = ttcw.replica_tables(ttcw.panel_replica(panel, design.rubric, preferred))
    else:
        parts = study_tables(rubric, rates, agreement, passed, correlation, ranks, origins)
        n_stories = len({story for story, _ in panel.subjects})
        counts = f"{n_stories:,} stories, {len(verdicts):,} verdicts"
        parts += ["", counts, ttcw.NOT_MADE, signature]
    if left_out := [item.id for item in design.rubric.items if item.id not in known]:
        parts.append(f"not in these tables, since they are not yes-no: {', '.join(left_out)}")
    content = {
        "pass_rate": rates,
        "agreement": [asdict(row) for row in agreement],
        "tests_passed": passed,
        "tests_passed_pearson": asdict(correlation),
        "ranks": ranks,
        "origins": origins,
        "n_verdicts": len(verdicts),
        "signature": signature,
    }
    draw = partial(save_study, passed, ranks, origins, len(rubric.items))
    return StudyAnalysis(parts, content, draw)


def analyse_pairs(
    design: StudyDesign, units: Sequence[Unit], found: Sequence[Measurement], *, seed: int
) -> StudyAnalysis:
    """Rank stories, and their authors, by Bradley and Terry's model with a place effect.

    Each answer counts in the order in which the stories were shown. For stories, answers about one
    pair, or one set of four, are treated as correlated; for authors, those about one group of
    stories. `found` are a study's measurements. Raises `InputError` without answers.
    """
    from fabula.judging.pairs import rank_groups, rank_stories, ranking_row
    from fabula.judging.tables import ranking_tables
    from fabula.replicate.tables import PairItem, pair_items
    from fabula.studies.quality import compared_answers
    from fabula.studies.units import pairs_within

    if not (answers := [mark for mark in found if "orders" in mark.details]):
        raise _too_early(design)
    pairs = list(pairs_within([unit.documents for unit in units]).values())
    # An answer about four stories makes five comparisons at once.
    cluster = None if design.at_once == 2 else "unit"
    by = design.group_field
    rankings = rank_stories(answers, pairs, by, seed=seed, by_item=True, cluster=cluster)
    rankings += rank_groups(answers, pairs, by, "author", seed=seed, by_item=True)
    compared = compared_answers(answers)
    items = []
    for item in design.rubric.items:
        of_item = [answer for answer in answers if answer.item == item.id]
        sides = [side for answer in of_item for side in answer.details["orders"] if side]
        alike = [shared for shared in compared if shared.item == item.id]
        n_others = sum(shared.n_others for shared in alike)
        n_decided = len(sides) - sides.count("tie")
        n = len({(answer.rater, answer.details["unit"]) for answer in of_item})
        n_shared = len({shared.document_id for shared in alike})
        first = sides.count("A") / n_decided if n_decided else None
        same = sum(shared.n_same for shared in alike) / n_others if n_others else None
        items.append(PairItem(item.title, n, sides.count("tie"), first, n_shared, same))
    n_people = len({answer.rater for answer in answers})
    # Over all items, then by item; of stories, then of authors.
    rankings.sort(key=lambda ranking: ranking.item != "all")
    parts: list[Block] = [*pair_items(items, n_people, design.at_once)]
    for ranking in rankings:
        if ranking.item == "all":
            parts += ["", *ranking_tables(ranking, "people", by)]
    content = {"n_people": n_people, "at_once": design.at_once, "items": list(map(asdict, items))}
    rows = [ranking_row(ranked, "people") for ranked in rankings]
    return StudyAnalysis(parts, {**content, "rankings": rows})


def _too_early(design: StudyDesign) -> InputError:
    return InputError(f"{design.path}: nobody has handed in anything yet")
