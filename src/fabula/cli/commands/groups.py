"""`fabula groups`: how numbers are distributed over texts by people, or by models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fabula.cli.derived import Group
from fabula.cli.inputs import read_stories
from fabula.cli.options import check_outputs, texts_argument
from fabula.cli.printing import print_done, print_result, print_rows
from fabula.cli.progress_bar import progress_bar
from fabula.jobs.phrases import NamedTexts, PhraseSettings, key_phrases, split_texts
from fabula.jobs.reading import Reading
from fabula.jobs.report import GroupSettings
from fabula.jobs.result_files import TableFiles


@click.group(cls=Group, short_help="Measure and show reference groups of texts.")
def groups() -> None:
    """Reference groups: the usual range of each number for texts by people and by models.

    Some ship with Fabula; `fabula report` compares a text with those measured in the same way.
    """


@groups.command(short_help="Measure texts as a reference group.")
@texts_argument("texts")
@click.option("--name", required=True, help="A short name, such as my-students.")
@click.option(
    "--kind",
    type=click.Choice(["people", "models", "other"]),
    required=True,
    help="Who wrote the texts.",
)
@click.option(
    "--title", help="Title shown on the page.  [default: the number of texts, and the name]"
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="Write the numbers here, one line per group (.jsonl); groups with other names in the "
    "file are kept.",
)
def measure(
    texts: tuple[str, ...],
    name: str,
    kind: Any,
    title: str | None,
    out: Path,
    settings: GroupSettings,
    as_json: bool,
    how_to_read: Reading,
) -> None:
    """Measure TEXTS as a group. Only the numbers are kept, not the texts.

    Give the file to `fabula report --groups`.
    """
    from dataclasses import asdict

    from fabula.jobs.reviewer import Reviewer
    from fabula.measures.groups import read_groups, write_groups
    from fabula.review import group_numbers

    check_outputs([out], [Path(text) for text in texts])
    kept = [group for group in read_groups(out) if group.group != name] if out.exists() else []
    documents = read_stories(texts, how_to_read)
    plan = settings.report()
    with progress_bar("measuring", None) as bar, Reviewer(plan) as reviewer:
        review = reviewer.run(documents, bar)
    shown = title or f"{len(documents):,} texts, {name}"
    found = group_numbers(review, name, kind, shown)
    write_groups(out, [*kept, *found])
    left_out = [entry for entry in review.left_out if entry.part not in plan.without]
    print_done(
        {
            "out": str(out),
            "groups": {group.signature: len(group.items) for group in found},
            "left_out": [asdict(entry) for entry in left_out],
        },
        *(f"{group.group}: {len(group.items)} numbers by {group.signature}" for group in found),
        *(
            f"not included: {one.part}, {one.reason}; to include it: {one.remedy}"
            for one in left_out
        ),
        f"written: {out}",
        as_json=as_json,
    )
    if any(entry.is_failure for entry in review.left_out):
        # For scripts: some numbers are of fewer texts than were given.
        click.get_current_context().exit(1)


@groups.command(short_help="Show the built-in reference groups, and your own.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILES]...")
def show(files: tuple[Path, ...], as_json: str | None) -> None:
    """Show the groups that ship with Fabula, and those in FILES: the median and the middle 80 %."""
    from dataclasses import asdict

    from fabula.measures.groups import GroupBook

    found = GroupBook.open(*files).groups
    if as_json:
        print_rows(map(asdict, found), as_json)
        return
    for group in found:
        click.echo(f"{group.group} ({group.kind}): {group.title}\n  {group.signature}")
        for item, one in group.items.items():
            ends = ", ".join(f"{one.quantile(share):.4g}" for share in (0.1, 0.5, 0.9))
            click.echo(f"  {item}: {ends}  (n {one.n})")


@groups.command(short_help="List phrases that one group uses more than another.")
@texts_argument("texts")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the phrases here, one per line (.jsonl), for `fabula report --phrases`.",
)
def phrases(
    texts: tuple[str, ...],
    settings: PhraseSettings,
    out: Path | None,
    files: TableFiles,
    as_json: bool,
    how_to_read: Reading,
) -> None:
    """List the phrases that texts of A use more often than texts of B, and B more than A.

    TEXTS are two files or folders, A and B; or, with --by, one or more whose texts are divided by a
    field. Texts are cut to the same length. A listed phrase occurs in more texts of its group than
    chance explains: words within one text do not count as independent. A phrase that hardly occurs
    outside a longer one is left out.
    """
    from fabula.measures.phrase_list import write_key_phrases
    from fabula.presentation.diversity_tables import phrase_tables

    check_outputs([out], [Path(text) for text in texts], files)
    a, b = _two_groups(texts, settings, how_to_read)
    with progress_bar("comparing", None) as bar:
        found = key_phrases(a, b, settings, progress=bar)
    if out is not None:
        write_key_phrases(out, found)
    print_result(
        phrase_tables(found, settings.n_listed),
        found.to_json(),
        files,
        as_json=as_json,
        written=[out],
    )


def _two_groups(
    texts: tuple[str, ...], settings: PhraseSettings, how: Reading
) -> tuple[NamedTexts, NamedTexts]:
    """The two groups: by a field, or two files, named after them."""
    if settings.by is not None:
        return split_texts(read_stories(texts, how), settings)
    if len(texts) != 2:
        raise click.UsageError("name two files or folders, A and B, or a field with --by")
    a, b = texts
    if a == b:
        raise click.UsageError(f"{a} was given for both groups; use two different ones")
    names = (Path(a).stem, Path(b).stem) if Path(a).stem != Path(b).stem else (a, b)
    return (names[0], read_stories((a,), how)), (names[1], read_stories((b,), how))
