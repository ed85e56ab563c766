"""`fabula rubric`: the rubrics there are, and one's own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Group, Option, settings_options
from fabula.cli.options import json_option, rows_option, yes_option
from fabula.cli.printing import JsonRows, print_done, print_rows
from fabula.cli.progress import Bar, progress_bar
from fabula.jobs.expansion import ExpansionSettings
from fabula.jobs.models import ModelSettings
from fabula.jobs.writing import confirm_prompts

__all__ = ["rubric"]

_LINE_TOKENS = 60
"""About what a name or a question takes."""


@click.group(cls=Group, short_help="Show, check, import and draft rubrics.")
def rubric() -> None:
    """Look at rubrics, check one's own, take over published wording."""


@rubric.command("list", short_help="List the built-in rubrics.")
@rows_option
def list_(as_json: str | None) -> None:
    """List the rubrics that ship with Fabula."""
    from fabula.rubrics import builtin_rubrics, load_rubric

    with JsonRows(as_json) as rows:
        for name in builtin_rubrics():
            found = load_rubric(name)
            n = len(found.items)
            rows.print({"name": name, "key": found.key, "title": found.title, "n_items": n})
            if not as_json:
                click.echo(f"{name:<14} {found.title}, {n} items about a {found.unit}")


@rubric.command(short_help="Show the items of a rubric.")
@click.argument("name", metavar="NAME|FILE")
@click.option("--toml", is_flag=True, help="Print the file itself, to start one's own from it.")
@json_option
def show(name: str, toml: bool, as_json: bool) -> None:
    """Show a rubric: its items by dimension, with the question of each."""
    from dataclasses import asdict

    from fabula.rubrics import load_rubric, rubric_toml
    from fabula.store import dump_json

    found = load_rubric(name)
    if as_json:
        click.echo(dump_json(asdict(found)))
        return
    if toml:
        click.echo(rubric_toml(found), nl=False)
        return
    click.echo(f"{found.title} ({found.key})\n{found.citation}\nWording: {found.wording}\n")
    dimension = ""
    for item in found.items:
        if item.dimension != dimension:
            dimension = item.dimension
            click.echo(f"{dimension}\n")
        click.echo(f"{item.index:>3}. {item.title} [{item.id}]")
        click.echo(_wrapped(item.question))
        if item.scale.options:
            click.echo(_wrapped(" / ".join(item.scale.options)))
        click.echo()


@rubric.command(short_help="Check rubric files for faults.")
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
@rows_option
def check(files: tuple[Path, ...], as_json: str | None) -> None:
    """Check rubric files, and show every fault of each.

    A rubric has id, version, title, and if wanted citation, wording, unit (story, group, text);
    [aggregate] with rule (count, mean, none), counts (Yes, No), title; and [[items]], each with id,
    index, title, question, and if wanted dimension, background, list_first (what to list before
    deciding), show_if (a condition such as first == 'Yes' and not second == 'No'), and scale: a
    table with kind (yes-no, choice, rank, number, text), options, low, high. Start from one that
    ships: fabula rubric show ttcw --toml.
    """
    from collections import Counter

    from fabula.errors import InputError
    from fabula.rubrics import load_rubric, rubric_faults

    faults = []
    rows = []
    for file in files:
        try:
            found = rubric_faults(file.read_bytes(), str(file))
        except OSError as error:
            found = [f"{file}: cannot be read ({error.strerror})"]
        faults += found
        rows.append({"file": str(file), "faults": found})
        if not found and not as_json:
            good = load_rubric(file)
            counts = Counter(item.dimension for item in good.items if item.dimension)
            dimensions = ", ".join(f"{name} {n}" for name, n in counts.items())
            shown = f" ({dimensions})" if dimensions else ""
            click.echo(f"{file}: {good.key}, {len(good.items)} items{shown}, good")
    if as_json:
        print_rows(rows, as_json)
    if faults:
        raise InputError("\n       ".join(faults))


@rubric.command("import", short_help="Import the published wording of a rubric.")
@click.argument("name", metavar="NAME")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE",
    help="Write the rubric here.  [default: NAME-published.toml]",
)  # fmt: skip
@json_option
def import_(name: str, file: Path, out: Path | None, as_json: bool) -> None:
    """Make a rubric with the published wording of NAME, from the authors' released FILE.

    For ttcw the file is ttcw_all_tests.json. Its ids are those of Fabula's own rubric, its digest
    is not, so that verdicts on the two wordings can be compared but are never mixed.
    """
    from fabula.errors import InputError
    from fabula.rubrics import released_rubric, rubric_toml
    from fabula.store import write_whole

    target = out or Path(f"{name}-published.toml")
    found = released_rubric(name, file)
    if target.exists() and target.read_bytes() != rubric_toml(found).encode():
        raise InputError(f"{target}: exists already; name another file with --out")
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, rubric_toml(found).encode())
    print_done(
        {"out": str(target), "key": found.key, "n_items": len(found.items)},
        f"written: {target} ({found.key}, {len(found.items)} items)",
        as_json=as_json,
    )


@rubric.command(short_help="Draft yes/no tests from experts' free-form measures.")
@click.argument("measures", metavar="MEASURES.csv", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, metavar="FILE",
    help="Write the draft here, a .toml file to edit.",
)  # fmt: skip
@click.option(
    "--n-groups", "groups", cls=Option, setting="groups", formerly=("groups",),
    type=click.IntRange(min=1), metavar="N",
    help="How many groups a dimension has.  [default: by their distance]",
)  # fmt: skip
@click.option(
    "--distance", type=click.FloatRange(0, 2), default=0.55, show_default=True,
    help="Measures farther apart than this (1 - cosine) are of different groups.",
)  # fmt: skip
@click.option("--no-model", is_flag=True, hidden=True)
@settings_options(ModelSettings, "asked")
@yes_option
@json_option
def draft(
    measures: Path,
    out: Path,
    groups: int | None,
    distance: float,
    no_model: bool,
    asked: ModelSettings,
    yes: bool,
    as_json: bool,
) -> None:
    """Draft binary tests from experts' free-form measures, for a person to edit.

    MEASURES.csv has the columns measure, and if known dimension and participant. As in the
    formative study of "Art or Artifice?" (section 4.1), measures are grouped by meaning within
    their dimension, the fullest one stands for its group, and becomes a yes/no question.
    `--model none` drafts without a model.
    """
    from fabula.errors import InputError
    from fabula.rubrics import rubric_toml
    from fabula.store import write_whole
    from fabula.tasks.drafting import draft_rubric, read_measures

    if out.exists():
        raise InputError(f"{out}: exists already; name another file with --out")
    rows = read_measures(measures)
    if no_model:
        click.echo("warning: --no-model is now --model none; the old name goes away soon", err=True)
    asked = replace(asked, models=asked.models[:1])
    spec = None if no_model or asked.models == ("none",) else asked.models[0]
    found, sources = draft_rubric(
        rows, out.stem, n_groups=groups, distance=distance, model=spec,
        options=asked.options(),
        agree=confirm_prompts(
            asked.models, asked.options().prices, _LINE_TOKENS, confirm_on(Bar(), yes=yes)
        ),
    )  # fmt: skip
    text = rubric_toml(found) + "".join(f"# {line}\n" for line in sources)
    write_whole(out, text.encode())
    print_done(
        {"out": str(out), "n_items": len(found.items), "n_measures": len(rows)},
        f"written: {out} ({len(found.items)} tests from {len(rows)} measures); edit it, then",
        f"  fabula rubric check {out}",
        as_json=as_json,
    )


@rubric.command(short_help="Expand the items of a draft rubric.")
@click.argument("source", metavar="NAME|FILE")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, metavar="FILE",
    help="Write the expanded rubric here, a .toml file to verify.",
)  # fmt: skip
@settings_options(ExpansionSettings)
@yes_option
@json_option
def expand(source: str, out: Path, settings: ExpansionSettings, yes: bool, as_json: bool) -> None:
    """Have a model write out what each question of a rubric means, for experts to verify.

    As in section 5.2.1 of "Art or Artifice?", a question alone is ambiguous: each item gets a
    background, what to list before deciding, and with --paraphrases other wordings. What an item
    has already stays as it is.
    """
    from fabula.jobs.expansion import expand as expand_items
    from fabula.reasons import explain

    with progress_bar("writing", None) as bar:
        found = expand_items(source, out, settings, progress=bar, confirm=confirm_on(bar, yes=yes))
    lacking = ", ".join(f"{n} {explain(reason)}" for reason, n in found.missing.items())
    print_done(
        {"out": str(out), "key": found.rubric.key, "n_written": found.n_written,
         "missing": found.missing},
        f"written: {out} ({found.n_written} texts for {len(found.rubric.items)} items"
        f"{f'; missing: {lacking}' if lacking else ''}); verify it, then",
        f"  fabula rubric check {out}",
        as_json=as_json,
    )  # fmt: skip


def _wrapped(text: str) -> str:
    import shutil
    import textwrap

    width = min(100, shutil.get_terminal_size((100, 40)).columns) - 2
    return textwrap.fill(text, width, initial_indent="     ", subsequent_indent="     ")
