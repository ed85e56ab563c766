"""`fabula study`: the same questions put to people, on a web page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabula.cli.derived import Group, settings_options
from fabula.cli.options import json_option, seed_option
from fabula.cli.printing import print_done, print_result
from fabula.cli.study_files import PLATFORM_TOKEN, named
from fabula.cli.study_files import check_out as _check_out
from fabula.cli.study_files import opened as _opened
from fabula.cli.study_files import study_options as _study_options
from fabula.cli.study_people import PEOPLE
from fabula.cli.study_preview import preview
from fabula.jobs.rater_plan import WidthSettings
from fabula.jobs.tables import TableFiles

if TYPE_CHECKING:
    from fabula.studies.design import StudyDesign
    from fabula.studies.units import Unit
    from fabula.studies.workload import Workload

__all__ = ["study"]

_PASSWORD = "FABULA_STUDY_PASSWORD"
_LEAST_PASSWORD = 10


@click.group(cls=Group, short_help="Run a blinded study with human participants.")
def study() -> None:
    """Run a blinded study: design it, invite people, serve its page, analyse the answers.

    \b
    fabula study new mystudy.toml --design ttcw --documents stories.jsonl
    fabula study invite mystudy.toml 12
    fabula study serve mystudy.toml
    """


for _command in PEOPLE:
    study.add_command(_command)


@study.command(short_help="Design a study and write its file.")
@click.argument("file", metavar="STUDY.toml", type=click.Path(path_type=Path))
@click.option(
    "--design", type=click.Choice(["ttcw", "feedback", "pairs"]), required=True,
    help="ttcw: groups of stories by a rubric, as in `Art or Artifice?`; feedback: writing "
    "feedback, as in `Help Me Write a Story`; pairs: two stories of a group, side by side.",
)  # fmt: skip
@click.option(
    "--documents", type=click.Path(path_type=Path, exists=True), required=True, metavar="FILE",
    help="Stories (ttcw, pairs), or what `feedback elicit` wrote (feedback).",
)  # fmt: skip
@click.option("--title", default="", help="What participants see.")
@click.option(
    "--group-field", metavar="NAME",
    help="Field that groups the stories (ttcw, pairs).  [default: group, or prompt_id as "
    "`stories write` has it]",
)  # fmt: skip
@json_option
def new(
    file: Path, design: Any, documents: Path, title: str, group_field: str | None, as_json: bool
) -> None:
    """Write STUDY.toml, ready to run and yours to edit.

    It says how many people the study takes, and what it cannot keep from them.
    """
    import shlex

    from fabula.errors import InputError
    from fabula.studies.design import load_study, new_study
    from fabula.studies.units import NoGroup, group_field_of, read_units
    from fabula.studies.workload import workload_of

    if group_field is None and design != "feedback":
        group_field = group_field_of(documents)
    new_study(file, design, documents, title=title, group_field=group_field or "group")
    try:
        study = load_study(file)
        units = read_units(study)
    except InputError as error:
        # What cannot be run is not left behind.
        file.unlink()
        if isinstance(error, NoGroup):
            where = str(error).partition(";")[0]
            remedy = "name the field that groups the stories with --group-field"
            raise InputError(f"{where}; {remedy}") from error
        raise
    work = workload_of(study, units)
    n = len({one.id for unit in units for one in unit.documents})
    kind = {"ttcw": "groups", "feedback": "pieces of feedback", "pairs": "pairs"}[design]
    lines = [f"written: {file} ({len(units):,} {kind}, {n:,} texts)", *_told_workload(work, kind)]
    lines += [f"note: {note}" for note in _notes(study, units, work)]
    lines.append(
        f"edit its texts and numbers, then: fabula study invite {shlex.quote(str(file))} "
        f"{work.n_people_shared_out or work.n_people}"
    )
    content = {
        "out": str(file),
        "n_units": len(units),
        "n_texts": n,
        "n_for_one_person": work.n_for_one_person,
        "n_readings": work.n_readings,
        "n_people": work.n_people,
        "n_people_shared_out": work.n_people_shared_out,
        "notes": _notes(study, units, work),
    }
    print_done(content, *lines, as_json=as_json)


def _told_workload(work: Workload, kind: str) -> list[str]:
    lines = [
        f"{work.n_readings:,} readings; a person reads {work.n_for_one_person:,} {kind} at most, "
        f"so it takes {work.n_people:,} people or more"
    ]
    if (n := work.n_people_shared_out) is not None and n > work.n_people:
        lines.append(f"as they come and read all they are given, {n:,} people fill it")
    return lines


def _notes(study: StudyDesign, units: Sequence[Unit], work: Workload) -> list[str]:
    """What an organiser should know before anybody is invited."""
    found = []
    is_limited = work.n_for_one_person < min(len(units), study.per_participant)
    if is_limited and study.kind == "pairs":
        found.append(
            f"nobody reads a story more than {study.per_story} times; per_story in {study.path} "
            f"allows more"
        )
    elif is_limited:
        found.append(
            "nobody is given two versions of one story, since one tells what was changed in the "
            "other; so nobody compares them either"
        )
    if work.giving_away:
        found.append(
            f"{named(work.giving_away)}: holds several versions of one story, and its readers see "
            f"both"
        )
    if study.kind != "feedback":
        single = [unit.key for unit in units if len(unit.documents) == 1]
        if single:
            found.append(f"{named(single)}: holds one story only, and there is nothing to rank")
        stories = {one.id: one for unit in units for one in unit.documents}
        nameless = [one.id for one in stories.values() if not one.author]
        if nameless:
            found.append(f"{named(nameless)}: has no author; `analyse` compares authors")
    return found


@study.command(short_help="Serve a study's pages.")
@_study_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True)
@click.option(
    "--behind-proxy", metavar="ADDRESS",
    help="Believe the forwarded headers of a proxy at this address (for https).",
)  # fmt: skip
@click.option("--root-path", default="", metavar="PATH", help="Where the proxy mounts the study.")
@click.option(
    "--insecure", is_flag=True,
    help="Serve other machines without https: everybody on the way can read the answers.",
)  # fmt: skip
def serve(
    file: Path, database: str | None, host: str, port: int, behind_proxy: str | None,
    root_path: str, insecure: bool,
) -> None:  # fmt: skip
    """Serve the study's page. Organisers log in at /organise.

    Their password is that of the environment variable FABULA_STUDY_PASSWORD; without it, one is
    drawn and printed. With FABULA_PROLIFIC_TOKEN, and the study's ids as `studies` under [entry],
    the statuses of Prolific's submissions are fetched every minute.
    """
    import secrets

    from fabula.errors import InputError

    with _opened(file, database, create=True, serves=True) as (design, units, store):
        from fabula.studies.app import create_app
        from fabula.web import app as web
        from fabula.web.guard import is_loopback

        is_ours = is_loopback(host)
        if not (is_ours or behind_proxy or insecure):
            raise InputError(
                f"--host {host}: whoever is on the way could read the links and the answers; put a "
                f"proxy that speaks https before it, with --behind-proxy, or allow it: --insecure"
            )
        password = os.environ.get(_PASSWORD) or secrets.token_urlsafe(9)
        if len(password) < _LEAST_PASSWORD:
            raise InputError(
                f"{_PASSWORD}: is shorter than {_LEAST_PASSWORD} characters; choose a longer "
                f"password, or leave it out to have one drawn"
            )
        app = create_app(
            design, units, store, password=password,
            own_names_only=is_ours and not behind_proxy,
            platform_token=os.environ.get(PLATFORM_TOKEN, ""),
        )  # fmt: skip
        root_path = f"/{root_path.strip('/')}" if root_path.strip("/") else ""
        listening = web.listen(host, port)
        shown = f"http://{host}:{listening.getsockname()[1]}"

        def announce() -> None:
            click.echo(f"{design.title}: {shown}, organisers: {shown}/organise")
            if not os.environ.get(_PASSWORD):
                click.echo(f"organisers' password for this run: {password}")

        web.serve(app, listening, announce, behind_proxy=behind_proxy, root_path=root_path)


@study.command(short_help="Export the answers as measurements.")
@_study_options
@click.option(
    "--format", "format_", type=click.Choice(["jsonl", "csv", "xlsx", "parquet"]), default="jsonl",
    show_default=True,
)  # fmt: skip
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="FILE",
    help="Write the measurements here.",
)  # fmt: skip
@click.option("--unfinished", is_flag=True, help="Also what was not handed in.")
@click.option(
    "--wide", is_flag=True, help="A row for each person and text, a column for each item."
)
@click.option(
    "--people", type=click.Path(path_type=Path), metavar="FILE",
    help="Write a table of participants here, in the same format.",
)  # fmt: skip
@click.option(
    "--times", type=click.Path(path_type=Path), metavar="FILE",
    help="Write how long each person took over each page here, in the same format.",
)  # fmt: skip
@click.option(
    "--adjudicated", type=click.Path(path_type=Path), metavar="FILE",
    help="Write what the organiser decided where people disagree, in the same format.",
)  # fmt: skip
@json_option
def export(
    file: Path, database: str | None, format_: str, out: Path, unfinished: bool, wide: bool,
    people: Path | None, times: Path | None, adjudicated: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Write all answers that count as measurements, one a row, each with when it was saved (UTC).

    What reads measurements (`agreement --experts`, `feedback score --people`) wants them so.
    """
    from fabula.studies.adjudicating import adjudicated as decided_answers
    from fabula.studies.adjudicating import read_resolutions
    from fabula.studies.exporting import export as export_answers
    from fabula.studies.forms import pages_of
    from fabula.studies.quality import standings
    from fabula.studies.tables import write_measurements, write_people, write_times, write_wide
    from fabula.studies.times import page_times

    with _opened(file, database) as (design, units, store), store.reading() as connection:
        _check_out([out, people, times, adjudicated], design, store)
        known = {unit.key: unit for unit in units}
        found = list(export_answers(connection, design, known, unfinished=unfinished))
        everybody = standings(connection, design, found) if people else []
        pages = {key: pages_of(design, len(unit.documents)) for key, unit in known.items()}
        spent = page_times(connection, pages) if times else []
        resolved = decided_answers(found, design, known, read_resolutions(connection))
    (write_wide if wide else write_measurements)(found, out, format_)
    if people is not None:
        write_people(everybody, people, format_)
    if times is not None:
        write_times(spent, times, format_)
    if adjudicated is not None:
        write_measurements(resolved, adjudicated, format_)
    given = [one for one in found if one.value is not None]
    n_people = len({one.rater for one in given})
    print_done(
        {"out": str(out), "n": len(given), "n_people": n_people, "n_adjudicated": len(resolved)},
        f"{len(given):,} answers of {n_people:,} people",
        *([f"{len(resolved):,} disagreements decided"] if resolved else []),
        f"written: {', '.join(str(path) for path in (out, people, times, adjudicated) if path)}",
        as_json=as_json,
    )


@study.command(short_help="Copy a study that may be running into one file.")
@_study_options
@click.argument("backup_file", metavar="FILE", type=click.Path(path_type=Path))
@json_option
def backup(file: Path, backup_file: Path, database: str | None, as_json: bool) -> None:
    """Copy all answers as they are now into FILE, and compare the copy with them.

    The study may be running. FILE is a file of SQLite's, also where the database is PostgreSQL.
    Keep STUDY.toml and the documents with it.
    """
    from fabula.studies.backups import back_up

    with _opened(file, database) as (design, _, store):
        _check_out([backup_file], design, store)
        done = back_up(store, backup_file)
    print_done(
        {"out": str(backup_file), "n_saved": done.n_answers, "n_people": done.n_people},
        f"{done.n_answers:,} saved answers of {done.n_people:,} people, copied and compared",
        f"written: {backup_file}",
        as_json=as_json,
    )


@study.command(short_help="Put a backup into an empty database.")
@_study_options
@click.argument("backup_file", metavar="FILE", type=click.Path(path_type=Path, exists=True))
@json_option
def restore(file: Path, backup_file: Path, database: str | None, as_json: bool) -> None:
    """Put the answers in FILE, which `study backup` wrote, into a database without any.

    FILE can also be a copy of the study's own file, with its log (FILE-wal) beside it or without.
    """
    from fabula.studies.backups import restore as put_back

    with _opened(file, database, create=True) as (design, units, store):
        done = put_back(store, design, units, backup_file)
    lines = [f"{done.n_answers:,} saved answers of {done.n_people:,} people, restored and compared"]
    if done.lacked_log:
        lines.append(f"{backup_file} was copied without its log: later answers may be missing")
    content = {
        "n_saved": done.n_answers,
        "n_people": done.n_people,
        "may_lack_answers": done.lacked_log,
    }
    print_done(content, *lines, as_json=as_json)


@study.command(short_help="Print the paper's tables from a study's answers.")
@_study_options
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE",
    help="Draw tests passed, places and supposed origins (ttcw; .svg, .pdf, .png).",
)  # fmt: skip
@seed_option
@json_option
def analyse(file: Path, database: str | None, plot: Path | None, seed: int, as_json: bool) -> None:
    """Print the paper's tables from the answers: pass rates, agreement, ranks and origins (ttcw);
    means with standard errors, agreement of raters (feedback); rankings by Bradley and Terry's
    model, as `judge --pairwise` makes them (pairs).
    """
    from fabula.cli.study_analysis import analyse_feedback, analyse_ttcw
    from fabula.studies.exporting import export as export_answers

    with _opened(file, database) as (design, units, store), store.reading() as connection:
        found = list(export_answers(connection, design, {unit.key: unit for unit in units}))
    if design.kind == "ttcw":
        analyse_ttcw(design, units, found, plot=plot, seed=seed, as_json=as_json)
        return
    if plot is not None:
        raise click.UsageError("--plot: is drawn of the design ttcw")
    if design.kind == "pairs":
        from fabula.jobs.study_pairs import analyse_pairs

        ranked = analyse_pairs(design, units, found, seed=seed)
        print_result(ranked.tables(), ranked.to_json(), TableFiles(), as_json=as_json)
    else:
        analyse_feedback(design, units, found, as_json=as_json)


@study.command(short_help="Plan how many people and stories a study needs.")
@_study_options
@settings_options(WidthSettings)
@settings_options(TableFiles, "files")
@json_option
def power(
    file: Path, database: str | None, settings: WidthSettings, files: TableFiles, as_json: bool
) -> None:
    """Plan how many people and stories intervals of a wanted width take, from the answers so far.

    They are its pilot: yes-no items on ten stories or more, by two people each or more. How many
    stories a person reads is that of STUDY.toml.
    """
    from fabula.jobs.rater_plan import plan_study
    from fabula.studies.exporting import export as export_answers

    files.check_files()
    with _opened(file, database) as (design, units, store), store.reading() as connection:
        _check_out([files.csv, files.latex], design, store)
        found = list(export_answers(connection, design, {unit.key: unit for unit in units}))
    plan = plan_study(design, units, found, settings)
    print_result(plan.tables(), plan.to_json(), files, as_json=as_json)


study.add_command(preview)
