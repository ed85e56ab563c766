"""Studies with people: design, open, preview and serve them, and export their answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from fabula.errors import InputError
from fabula.jobs.result import Result
from fabula.jobs.result_files import check_kept
from fabula.settings import Between, Settings, SettingsError, changed, setting

if TYPE_CHECKING:
    from fabula.studies.assigning import Workload
    from fabula.studies.database import Store
    from fabula.studies.design import StudyDesign
    from fabula.studies.study_engine import Backup
    from fabula.studies.units import Unit
    from fabula.types import Measurement

_PASSWORD = "FABULA_STUDY_PASSWORD"
PLATFORM_TOKEN = "FABULA_PROLIFIC_TOKEN"
_LEAST_PASSWORD = 10

StudyFile = Annotated[Path, "STUDY.toml"]


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
        held = [design.path, design.documents]
        held += [design.rubric_file] if design.rubric_file else []
        ends = () if file is None else ("", "-wal", "-shm")
        return [*held, *(file.with_name(file.name + end) for end in ends if file is not None)]


@contextmanager
def open_study(
    file: Path,
    place: StudyPlace,
    *,
    create: bool = False,
    serves: bool = False,
    warn: Callable[[str], None] = lambda _sentence: None,
) -> Iterator[OpenStudy]:
    """Open a study and its answers.

    `create` creates the database if it does not exist. Raises `InputError`, also if the study was
    started with a file or documents that differ.
    """
    _check_packages()
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
        is_whole = store.close(is_served=serves)
        if serves and not is_whole:
            warn(
                f"another program has {store.file} open, so the last answers are in "
                f"{store.file}-wal beside it: copy both"
            )


def _check_packages() -> None:
    try:
        import fabula.studies.database  # noqa: F401
    except ImportError as error:
        raise InputError("studies need more packages; run: pip install 'fabula[study]'") from error


def answers_of(study: OpenStudy) -> list[Measurement]:
    """All answers that count."""
    from fabula.studies.exporting import export

    units = {unit.key: unit for unit in study.units}
    with study.store.reading() as connection:
        return list(export(connection, study.design, units))


_KINDS = {
    "ttcw": ("group", "groups"),
    "feedback": ("piece of feedback", "pieces of feedback"),
    "pairs": ("pair", "pairs"),
}
"""The name of a design's unit, singular and plural."""


def _with_noun(n: int, one: str, several: str) -> str:
    return f"{n:,} {one if n == 1 else several}"


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
    title: str = setting("", help="What participants see.")
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
        return len({one.id for unit in self.units for one in unit.documents})

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
            lines.append(
                f"if people arrive one by one and read all that they are given, {n:,} "
                "people fill it"
            )
        return [
            *lines,
            *(f"note: {note}" for note in self.notes()),
            f"edit its texts and numbers, then run: fabula study invite {shlex.quote(str(file))} "
            f"{work.n_people_shared_out or work.n_people}",
        ]

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"out": str(self.design.path), "n_units": len(self.units)}
        found["n_texts"] = self.n_texts
        for name in ("n_for_one_person", "n_readings", "n_people", "n_people_shared_out"):
            found[name] = getattr(self.work, name)
        return found | {"notes": self.notes()}

    def notes(self) -> list[str]:
        """What an organiser should know before inviting people."""
        design, units, work = self.design, self.units, self.work
        found = []
        is_limited = work.n_for_one_person < min(len(units), design.per_participant)
        if is_limited and design.kind == "pairs":
            n = design.per_story
            times = {1: "once", 2: "twice"}.get(n, f"{n:,} times")
            found.append(
                f"nobody reads a story more than {times}; raise per_story in {design.path} for more"
            )
        elif is_limited:
            found.append(
                "nobody is given two versions of one story, since one reveals what was changed in "
                "the other; so nobody compares them either"
            )
        if work.giving_away:
            found.append(
                f"{named(work.giving_away)}: contains several versions of one story, and its "
                "readers see both"
            )
        if design.kind != "feedback":
            single = [unit.key for unit in units if len(unit.documents) == 1]
            if single:
                only = "contains only one story, so there is nothing to rank"
                found.append(f"{named(single)}: {only}")
            stories = {one.id: one for unit in units for one in unit.documents}
            nameless = [one.id for one in stories.values() if not one.author]
            if nameless:
                found.append(f"{named(nameless)}: has no author; `analyse` compares authors")
        return found


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
    title, field = settings.title, field or "group"
    new_study(file, settings.design, settings.documents, title=title, group_field=field)
    try:
        design = load_study(file)
        units = read_units(design)
    except InputError as error:
        # A study that cannot be run is not left behind.
        file.unlink()
        if isinstance(error, NoGroup):
            where = str(error).partition(";")[0]
            raise InputError(
                f"{where}; name the field that groups the stories with `group_field`"
            ) from error
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
    if not settings.preview:
        with open_study(file, place, create=True, serves=True, warn=warn) as study:
            _serve(study, settings, announce)
    elif place.database is not None:
        raise SettingsError("database", "is of no use with `preview`, which keeps no answers")
    else:
        _serve_preview(file, settings, announce)
    return Result()


def _serve(study: OpenStudy, settings: StudyServeSettings, announce: Callable[[str], None]) -> None:
    import secrets

    from fabula.studies.app import create_app
    from fabula.web.guard import is_loopback

    host, proxy = settings.host, settings.behind_proxy
    is_ours = is_loopback(host)
    if not (is_ours or proxy or settings.insecure):
        raise InputError(
            f"`host` {host}: anybody on the network path could read the links and the answers; put "
            "a proxy with https in front, with `behind_proxy`, or allow it: `insecure`"
        )
    set_password = os.environ.get(_PASSWORD)
    password = set_password or secrets.token_urlsafe(9)
    if len(password) < _LEAST_PASSWORD:
        raise InputError(
            f"{_PASSWORD}: is shorter than {_LEAST_PASSWORD} characters; choose a longer password, "
            "or unset it to have one generated"
        )
    app = create_app(
        *study,
        password=password,
        own_names_only=is_ours and not proxy,
        platform_token=os.environ.get(PLATFORM_TOKEN, ""),
    )

    def begun(url: str) -> None:
        announce(f"{study.design.title}: {url}, organisers: {url}/organise")
        if not set_password:
            announce(f"organisers' password for this run: {password}")

    _listen(app, settings, 8000, begun)


def _serve_preview(
    file: Path, settings: StudyServeSettings, announce: Callable[[str], None]
) -> None:
    import secrets
    import tempfile

    _check_packages()
    from fabula.studies.app import create_app
    from fabula.studies.design import load_study
    from fabula.studies.participants import invite
    from fabula.studies.study_engine import open_store
    from fabula.studies.units import read_units

    design = load_study(file)
    design = replace(design, title=design.labels("preview", title=design.title))
    units = read_units(design)
    password = secrets.token_urlsafe(9)
    with tempfile.TemporaryDirectory(prefix="fabula-preview-") as folder:
        store = open_store(design, units, f"sqlite:///{folder}/preview.db")
        try:
            with store.writing() as connection:
                (token,) = invite(connection, 1, "preview", "yourself")
            app = create_app(design, units, store, password=password, own_names_only=True)

            def begun(url: str) -> None:
                announce(f"{design.title}: {url}/i/{token}?change=yes")
                announce(f"organisers: {url}/organise, password {password}")
                announce("answers given here are not kept")

            _listen(app, settings, 0, begun)
        finally:
            store.close()


def _listen(
    app: Any, settings: StudyServeSettings, usual_port: int, begun: Callable[[str], None]
) -> None:
    """Serve until the process is stopped; `begun` is called with the URL once it listens."""
    from fabula.web import app as web

    host, mounted = settings.host, settings.root_path.strip("/")
    listening = web.listen(host, usual_port if settings.port is None else settings.port)
    url = f"http://{host}:{listening.getsockname()[1]}"
    path = f"/{mounted}" if mounted else ""
    proxy = settings.behind_proxy
    web.serve(app, listening, lambda: begun(url), behind_proxy=proxy, root_path=path)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSettings(Settings):
    """Which answers are exported, and in what format."""

    format: Literal["jsonl", "csv", "xlsx", "parquet"] = setting(
        "jsonl", help="Format of the files."
    )
    out: Path = setting(help="Write the measurements here.")
    unfinished: bool = setting(False, help="Include answers that were not handed in.")
    wide: bool = setting(
        False, help="Write a row for each person and text, with a column for each item."
    )
    people_file: Path | None = setting(
        None, help="Write a table of participants here, in the same format.", option="people"
    )
    times: Path | None = setting(
        None, help="Write the time each person took over each page here, in the same format."
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
        design, units = study.design, {one.key: one for one in study.units}
        with study.store.reading() as connection:
            found = list(measurements_of(connection, design, units, unfinished=settings.unfinished))
            everybody = standings(connection, design, found) if people else []
            pages = {key: pages_of(design, len(unit.documents)) for key, unit in units.items()}
            spent = page_times(connection, pages) if times else []
    write = exporting.write_wide if settings.wide else exporting.write_measurements
    write(found, settings.out, settings.format)
    if people is not None:
        exporting.write_people(everybody, people, settings.format)
    if times is not None:
        exporting.write_times(spent, times, settings.format)
    given = [one for one in found if one.value is not None]
    n_people = len({one.rater for one in given})
    return Exported([path for path in files.values() if path], len(given), n_people)


@dataclass(frozen=True, slots=True, repr=False)
class Copied(Result):
    """What was copied from a study, or back into its database."""

    done: Backup
    file: Path
    is_restored: bool = False

    def lines(self) -> list[str]:
        done = self.done
        said = f"{done.n_answers:,} saved answers of {done.n_people:,} people,"
        if self.is_restored:
            lines = [f"{said} restored and compared"]
        else:
            lines = [f"{said} copied and compared", f"written: {self.file}"]
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
    file: StudyFile,
    backup_file: Annotated[Path, "FILE"],
    settings: BackupSettings,
    place: StudyPlace,
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
