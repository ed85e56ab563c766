"""`fabula study`: people answer the same questions on a web page."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from fabula.cli.commands.study_people import PEOPLE
from fabula.cli.derived import Group
from fabula.cli.options import check_outputs, study_argument
from fabula.cli.printing import print_done, print_result
from fabula.jobs.result_files import TableFiles
from fabula.jobs.studies import (
    ExportSettings,
    NewStudySettings,
    Preview,
    PreviewSettings,
    StudyPlace,
    StudyServeSettings,
    design_study,
    export_study,
    open_study,
    preview_study,
    serve_study,
)
from fabula.jobs.study_analysis import AnalysisSettings, analyse_study


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
@study_argument
def new(file: Path, settings: NewStudySettings, as_json: bool) -> None:
    """Write STUDY.toml, ready to run and for you to edit.

    Shows how many people the study needs, and what it cannot hide from them.
    """
    designed = design_study(file, settings)
    print_done(designed.to_json(), *designed.lines(), as_json=as_json)


@study.command(short_help="Serve a study's pages.")
@study_argument
def serve(file: Path, place: StudyPlace, settings: StudyServeSettings) -> None:
    """Serve the study's page. Organisers log in at /organise.

    Their password is read from the environment variable FABULA_STUDY_PASSWORD; without it, one is
    generated and printed. With FABULA_PROLIFIC_TOKEN, and the study's ids as `studies` under
    [entry], the statuses of Prolific's submissions are fetched every minute.
    """

    def announce(url: str, password: str | None) -> None:
        click.echo(f"{opened.design.title}: {url}, organisers: {url}/organise")
        if password is not None:
            click.echo(f"organisers' password for this run: {password}")

    warn = partial(click.echo, err=True)
    with open_study(file, place, create=True, serves=True, warn=warn) as opened:
        serve_study(opened, settings, announce=announce)


@study.command(short_help="Try a study out; nothing is kept.")
@study_argument
def preview(file: Path, settings: PreviewSettings) -> None:
    """Serve STUDY.toml on this machine, with a link for yourself, until you stop it.

    Answers go into a separate database, which is deleted at the end: they are never counted and
    take nobody's place, and you can still change the study. The title says that it is a preview.
    The organiser's page has further links.
    """

    def announce(found: Preview) -> None:
        click.echo(f"{found.title}: {found.link}")
        click.echo(f"organisers: {found.organisers}, password {found.password}")
        click.echo("answers given here are not kept")

    preview_study(file, settings, announce=announce)


@study.command(short_help="Export the answers as measurements.")
@study_argument
def export(file: Path, place: StudyPlace, settings: ExportSettings, as_json: bool) -> None:
    """Write all valid answers as measurements, one per row, each with the time it was saved (UTC).

    Commands that read measurements (`agreement --experts`, `feedback score --people`) expect this
    format.
    """
    with open_study(file, place) as opened:
        check_outputs(settings.files, opened.files)
        done = export_study(opened, settings)
    print_done(
        {"out": str(settings.out), **done._asdict()},
        f"{done.n:,} answers of {done.n_people:,} people",
        f"written: {', '.join(str(path) for path in settings.files if path)}",
        as_json=as_json,
    )


@study.command(short_help="Copy a study, even while it runs, into one file.")
@study_argument
@click.argument("backup_file", metavar="FILE", type=click.Path(path_type=Path))
def backup(file: Path, backup_file: Path, place: StudyPlace, as_json: bool) -> None:
    """Copy all current answers into FILE, and compare the copy with the original.

    The study may be running. FILE is an SQLite file, even if the database is PostgreSQL.
    Keep STUDY.toml and the documents with it.
    """
    from fabula.studies.backups import back_up

    with open_study(file, place) as opened:
        check_outputs([backup_file], opened.files)
        done = back_up(opened.store, backup_file)
    print_done(
        {"out": str(backup_file), "n_saved": done.n_answers, "n_people": done.n_people},
        f"{done.n_answers:,} saved answers of {done.n_people:,} people, copied and compared",
        f"written: {backup_file}",
        as_json=as_json,
    )


@study.command(short_help="Put a backup into an empty database.")
@study_argument
@click.argument("backup_file", metavar="FILE", type=click.Path(path_type=Path, exists=True))
def restore(file: Path, backup_file: Path, place: StudyPlace, as_json: bool) -> None:
    """Restore the answers in FILE, which `study backup` wrote, into an empty database.

    FILE can also be a copy of the study's own file, with or without its log (FILE-wal) beside it.
    """
    from fabula.studies.backups import restore as put_back

    with open_study(file, place, create=True) as opened:
        done = put_back(opened.store, opened.design, opened.units, backup_file)
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
@study_argument
def analyse(
    file: Path, place: StudyPlace, settings: AnalysisSettings, files: TableFiles, as_json: bool
) -> None:
    """Print the paper's tables from the answers: pass rates, agreement, ranks and origins (ttcw);
    means with standard errors, agreement between raters (feedback); rankings by the Bradley-Terry
    model, as in `judge --pairwise` (pairs).
    """
    check_outputs([settings.plot], [file], files)
    with open_study(file, place) as opened:
        found = analyse_study(opened, settings)
    print_result(found.tables(), found.to_json(), files, as_json=as_json, written=[settings.plot])
