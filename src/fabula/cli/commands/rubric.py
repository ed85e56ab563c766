"""`fabula rubric`: built-in rubrics, and your own."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import click

from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Group
from fabula.cli.printing import JsonRows, print_done, print_json
from fabula.cli.progress_bar import Bar, progress_bar
from fabula.jobs.rubrics import (
    DraftSettings,
    ExpansionSettings,
    ImportSettings,
    ShowSettings,
    import_rubric,
    rubric_text,
)
from fabula.jobs.rubrics import draft as draft_tests
from fabula.jobs.rubrics import expand as expand_items


@click.group(cls=Group, short_help="Show, check, import and draft rubrics.")
def rubric() -> None:
    """Show rubrics, check your own, and import published wording."""


@rubric.command("list", short_help="List the built-in rubrics.")
def list_(as_json: str | None) -> None:
    """List the rubrics that ship with Fabula."""
    from fabula.rubrics.load import builtin_rubrics, load_rubric

    with JsonRows(as_json) as rows:
        for name in builtin_rubrics():
            found = load_rubric(name)
            n = len(found.items)
            rows.print({"name": name, "key": found.key, "title": found.title, "n_items": n})
            if not as_json:
                click.echo(f"{name:<14} {found.title}, {n} items about a {found.unit}")


@rubric.command(short_help="Show the items of a rubric.")
@click.argument("name", metavar="NAME|FILE")
def show(name: str, settings: ShowSettings, as_json: bool) -> None:
    """Show a rubric: its items by dimension, with the question of each."""

    from fabula.rubrics.load import load_rubric

    found = load_rubric(name)
    if as_json:
        print_json(asdict(found))
    else:
        click.echo(rubric_text(found, settings), nl=False)


@rubric.command(short_help="Check rubric files for errors.")
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
def check(files: tuple[Path, ...], as_json: str | None) -> None:
    """Check rubric files, and show all errors in each.

    A rubric has id, version, title, and optionally citation, wording, unit (story, group, text);
    [aggregate] with rule (count, mean, none), counts (Yes, No), title; and [[items]], each with id,
    index, title, question, and optionally dimension, background, list_first (what to list before
    deciding), show_if (a condition such as first == 'Yes' and not second == 'No'), and scale: a
    table with kind (yes-no, choice, rank, number, text), options, low, high. Start from a built-in
    one: fabula rubric show ttcw --toml.
    """
    from collections import Counter

    from fabula.errors import InputError
    from fabula.rubrics.load import load_rubric, rubric_faults

    faults: list[str] = []
    with JsonRows(as_json) as rows:
        for file in files:
            try:
                found = rubric_faults(file.read_bytes(), str(file))
            except OSError as error:
                found = [f"{file}: cannot be read ({error.strerror})"]
            faults += found
            rows.print({"file": str(file), "faults": found})
            if not found and not as_json:
                good = load_rubric(file)
                counts = Counter(item.dimension for item in good.items if item.dimension)
                dimensions = ", ".join(f"{name} {n}" for name, n in counts.items())
                shown = f" ({dimensions})" if dimensions else ""
                click.echo(f"{file}: {good.key}, {len(good.items)} items{shown}, valid")
    if faults:
        raise InputError("\n       ".join(faults))


@rubric.command("import", short_help="Import the published wording of a rubric.")
@click.argument("name", metavar="NAME")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
def import_(name: str, file: Path, settings: ImportSettings, as_json: bool) -> None:
    """Make a rubric with the published wording of NAME, from the authors' released FILE.

    For ttcw the file is ttcw_all_tests.json. The new rubric has the same ids as Fabula's own but a
    different digest, so that verdicts on the two wordings can be compared but are never mixed.
    """
    found, out = import_rubric(name, file, settings)
    print_done(
        {"out": str(out), "key": found.key, "n_items": len(found.items)},
        f"written: {out} ({found.key}, {len(found.items)} items)",
        as_json=as_json,
    )


@rubric.command(short_help="Draft yes/no tests from experts' free-form measures.")
@click.argument("measures", metavar="MEASURES.csv", type=click.Path(path_type=Path))
@click.option("--no-model", is_flag=True, hidden=True)
def draft(
    measures: Path, settings: DraftSettings, no_model: bool, yes: bool, as_json: bool
) -> None:
    """Draft binary tests from experts' free-form measures, for a person to edit.

    MEASURES.csv has the column measure, and optionally dimension and participant. As in the
    formative study of "Art or Artifice?" (section 4.1), measures are grouped by meaning within
    their dimension, and the fullest measure of each group becomes a yes/no question.
    `--model none` drafts without a model.
    """
    if no_model:
        click.echo(
            "warning: --no-model is now --model none; the old name will be removed soon", err=True
        )
        settings = replace(settings, models=replace(settings.models, models=("none",)))
    found, n = draft_tests(measures, settings, confirm=confirm_on(Bar(), yes=yes))
    out = settings.out
    print_done(
        {"out": str(out), "n_items": len(found.items), "n_measures": n},
        f"written: {out} ({len(found.items)} tests from {n} measures); edit it, then run",
        f"  fabula rubric check {out}",
        as_json=as_json,
    )


@rubric.command(short_help="Expand the items of a draft rubric.")
@click.argument("source", metavar="NAME|FILE")
def expand(source: str, settings: ExpansionSettings, yes: bool, as_json: bool) -> None:
    """Have a model write out what each question of a rubric means, for experts to verify.

    A question alone is ambiguous, so each item gets a background, what to list before deciding, and
    with --paraphrases other wordings, as in section 5.2.1 of "Art or Artifice?". Parts that an item
    already has are not changed.
    """
    from fabula.reasons import explain

    with progress_bar("writing", None) as bar:
        found = expand_items(source, settings, progress=bar, confirm=confirm_on(bar, yes=yes))
    out = settings.out
    lacking = ", ".join(f"{n} {explain(reason)}" for reason, n in found.missing.items())
    print_done(
        {
            "out": str(out),
            "key": found.rubric.key,
            "n_written": found.n_written,
            "missing": found.missing,
        },
        f"written: {out} ({found.n_written} texts for {len(found.rubric.items)} "
        f"items{f'; missing: {lacking}' if lacking else ''}); verify it, then run",
        f"  fabula rubric check {out}",
        as_json=as_json,
    )
