"""`fabula study`: the same questions put to people, on a web page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fabula.cli.derived import Group
from fabula.cli.options import check_outputs, json_option, seed_option
from fabula.cli.printing import print_done

if TYPE_CHECKING:
    from fabula.studies.database import Store
    from fabula.studies.design import StudyDesign
    from fabula.studies.units import Unit

__all__ = ["study"]

F = TypeVar("F", bound=Callable[..., Any])
_PASSWORD = "FABULA_STUDY_PASSWORD"


@click.group(cls=Group, short_help="Run a blinded study with human participants.")
def study() -> None:
    """Run a blinded study: design it, invite people, serve its page, analyse the answers.

    \b
    fabula study new mystudy.toml --design ttcw --documents stories.jsonl
    fabula study invite mystudy.toml 12
    fabula study serve mystudy.toml
    """


def _study_options(command: F) -> F:
    """The study, and where its answers are."""
    command = click.option(
        "--database", metavar="URL",
        help="sqlite:///FILE or postgresql://...  [default: a file beside STUDY.toml]",
    )(command)  # fmt: skip
    return click.argument("file", metavar="STUDY.toml", type=click.Path(path_type=Path))(command)


@contextmanager
def _opened(
    file: Path, database: str | None, *, create: bool = False
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
        store.close()


def _check_out(out: Path, design: StudyDesign, store: Store) -> None:
    """Raise `UsageError` where an export would take the place of what it is made from."""
    held = [design.path, design.documents, *([design.rubric_file] if design.rubric_file else [])]
    if store.file is not None:
        held += [store.file.with_name(store.file.name + end) for end in ("", "-wal", "-shm")]
    check_outputs([out], held)


@study.command(short_help="Design a study and write its file.")
@click.argument("file", metavar="STUDY.toml", type=click.Path(path_type=Path))
@click.option(
    "--design", type=click.Choice(["ttcw", "feedback"]), required=True,
    help="ttcw: groups of stories by a rubric, as in `Art or Artifice?`; feedback: writing "
    "feedback, as in `Help Me Write a Story`.",
)  # fmt: skip
@click.option(
    "--documents", type=click.Path(path_type=Path, exists=True), required=True, metavar="FILE",
    help="Stories (ttcw), or what `feedback elicit` wrote (feedback).",
)  # fmt: skip
@click.option("--title", default="", help="What participants see.")
@json_option
def new(file: Path, design: Any, documents: Path, title: str, as_json: bool) -> None:
    """Write STUDY.toml, ready to run and yours to edit."""
    import shlex

    from fabula.errors import InputError
    from fabula.studies.design import load_study, new_study
    from fabula.studies.units import count_for_one_person, read_units

    new_study(file, design, documents, title=title)
    try:
        study = load_study(file)
        units = read_units(study)
    except InputError:
        # What cannot be run is not left behind.
        file.unlink()
        raise
    n = sum(len(unit.documents) for unit in units)
    kind = "groups" if design == "ttcw" else "pieces of feedback"
    n_stories = count_for_one_person(units)
    lines = [f"written: {file} ({len(units):,} {kind}, {n:,} texts)"]
    if n_stories < min(len(units), study.per_participant):
        lines.append(
            f"a person reads one piece about each story, so {n_stories:,} at most: who has seen a "
            f"story once knows what was changed in it"
        )
    lines.append(
        f"edit its texts and numbers, then: fabula study invite {shlex.quote(str(file))} 1"
    )
    content = {
        "out": str(file),
        "n_units": len(units),
        "n_texts": n,
        "n_for_one_person": min(n_stories, study.per_participant),
    }
    print_done(content, *lines, as_json=as_json)


@study.command(short_help="Print invitation links.")
@_study_options
@click.argument("n", type=click.IntRange(1, 10_000))
@click.option(
    "--url", default="http://127.0.0.1:8000", show_default=True,
    help="Where the page will be reached.",
)  # fmt: skip
@click.option("--note", default="", help="A note on these people, for yourself.")
@json_option
def invite(file: Path, n: int, database: str | None, url: str, note: str, as_json: bool) -> None:
    """Print N invitations, one link a person. They are not kept and cannot be shown again."""
    from fabula.studies.forms import clean_text
    from fabula.studies.participants import invite as invite_people

    with _opened(file, database, create=True) as (_, _, store), store.writing() as connection:
        tokens = invite_people(connection, n, "command line", clean_text(note))
    links = [f"{url.rstrip('/')}/i/{token}" for token in tokens]
    print_done({"links": links}, *links, as_json=as_json)


@study.command(short_help="Serve a study's pages.")
@_study_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True)
@click.option(
    "--behind-proxy", metavar="ADDRESS",
    help="Believe the forwarded headers of a proxy at this address (for https).",
)  # fmt: skip
@click.option("--root-path", default="", metavar="PATH", help="Where the proxy mounts the study.")
def serve(
    file: Path, database: str | None, host: str, port: int, behind_proxy: str | None, root_path: str
) -> None:
    """Serve the study's page. Organisers log in at /organise.

    Their password is that of the environment variable FABULA_STUDY_PASSWORD; without it, one is
    drawn and printed.
    """
    import secrets

    with _opened(file, database, create=True) as (design, units, store):
        from fabula.studies.app import create_app
        from fabula.web import app as web

        password = os.environ.get(_PASSWORD) or secrets.token_urlsafe(9)
        app = create_app(design, units, store, password=password)
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
    "--format", "format_", type=click.Choice(["jsonl", "csv", "parquet"]), default="jsonl",
    show_default=True,
)  # fmt: skip
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="FILE",
    help="Write the measurements here.",
)  # fmt: skip
@click.option("--unfinished", is_flag=True, help="Also what was not handed in.")
@json_option
def export(
    file: Path, database: str | None, format_: str, out: Path, unfinished: bool, as_json: bool
) -> None:
    """Write all answers that count as measurements, one a row."""
    from fabula.studies.exporting import export as export_answers
    from fabula.studies.tables import write_measurements

    with _opened(file, database) as (design, units, store), store.reading() as connection:
        _check_out(out, design, store)
        known = {unit.key: unit for unit in units}
        found = list(export_answers(connection, design, known, unfinished=unfinished))
    write_measurements(found, out, format_)
    given = [one for one in found if one.value is not None]
    n_people = len({one.rater for one in given})
    print_done(
        {"out": str(out), "n": len(given), "n_people": n_people},
        f"{len(given):,} answers of {n_people:,} people",
        f"written: {out}",
        as_json=as_json,
    )


@study.command(short_help="Delete a participant's answers.")
@_study_options
@click.argument("participant")
@click.option("--yes", is_flag=True, help="Do not ask again.")
@json_option
def forget(file: Path, database: str | None, participant: str, yes: bool, as_json: bool) -> None:
    """Delete all answers of PARTICIPANT (such as p0007), for good."""
    from fabula.errors import InputError
    from fabula.studies.participants import forget as forget_participant

    number = participant.removeprefix("p")
    if not number.isdecimal() or len(number) > 12:
        raise InputError(f"{participant}: is no participant; they are called p0001, p0002, ...")
    if not yes:
        click.confirm(f"Delete all answers of {participant}, for good?", abort=True)
    with _opened(file, database) as (_, _, store):
        with store.writing() as connection:
            n = forget_participant(connection, int(number), "command line")
        store.after_forgetting()
    print_done({"n_deleted": n}, f"{n:,} answers deleted", as_json=as_json)


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
    means with standard errors, agreement of raters (feedback).
    """
    from fabula.cli.study_analysis import analyse_feedback, analyse_ttcw
    from fabula.studies.exporting import export as export_answers

    with _opened(file, database) as (design, units, store), store.reading() as connection:
        found = list(export_answers(connection, design, {unit.key: unit for unit in units}))
    if design.kind == "ttcw":
        analyse_ttcw(design, units, found, plot=plot, seed=seed, as_json=as_json)
    else:
        if plot is not None:
            raise click.UsageError("--plot: is drawn of the design ttcw")
        analyse_feedback(design, units, found, as_json=as_json)
