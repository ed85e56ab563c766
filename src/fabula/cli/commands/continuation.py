"""`fabula continuation`: the next sentence of a story, cut from books, generated, and measured."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Group
from fabula.cli.inputs import reading
from fabula.cli.options import check_outputs, texts_argument
from fabula.cli.printing import print_done, print_json, print_tables, print_written
from fabula.cli.progress_bar import progress_bar
from fabula.jobs.continuation import (
    CompareSettings,
    CutSettings,
    GenerateSettings,
    TrainSettings,
    compare_continuations,
    continue_passages,
    cut_passages,
    read_training_texts,
    train_generators,
)
from fabula.jobs.reading import Reading
from fabula.reasons import explain


@click.group(cls=Group, short_help="Generate and score continuations of stories.")
def continuation() -> None:
    """Continue stories by a sentence: passages, baseline generators and fifteen metrics.

    \b
      fabula continuation passages books/ --out passages.jsonl
      fabula continuation train stories/ --out generators
      fabula continuation generate --from generators --contexts passages.jsonl --out systems.jsonl
      fabula continuation score systems.jsonl yours.jsonl --contexts passages.jsonl
    """


@continuation.command(short_help="Cut books into contexts and the sentences after them.")
@texts_argument("books")
def passages(
    books: tuple[str, ...], settings: CutSettings, as_json: bool, how_to_read: Reading
) -> None:
    """Cut BOOKS into contexts and the sentences that follow them.

    BOOKS are any texts, or files of the Children's Book Test, whose tokens are turned back into
    text (as rows of tokenised sentences, with --text-field sentences). No passage crosses a chapter
    boundary; headings are left out.
    """
    with reading(books, "cutting", how_to_read, whole=True) as (documents, _):
        content = cut_passages(documents, settings, ", ".join(books))
    print_done(
        content,
        f"written: {settings.out}, {content['n']:,} of {content['n_found']:,} passages from "
        f"{content['n_texts']:,} texts, {content['n_chapters']:,} chapters",
        as_json=as_json,
    )


@continuation.command(short_help="Train the baseline generators.")
@click.argument("texts", nargs=-1, metavar="[TEXTS]...")
def train(
    texts: tuple[str, ...], settings: TrainSettings, as_json: bool, how_to_read: Reading
) -> None:
    """Train generators on the stories of TEXTS: random, unigram, case-based, recurrent.

    Without TEXTS, trains on the texts that --out was made from. If training is interrupted, run the
    same command again to resume from the last checkpoint.
    """
    if texts:
        with reading(texts, "reading", how_to_read, whole=True) as (documents, bar):
            read_training_texts(documents, settings, progress=bar)
    with progress_bar("training", None) as bar:
        trained = train_generators(settings, progress=bar)
    for line in trained.lines():
        click.echo(line, err=as_json)
    print_written([settings.plot], as_json=as_json)
    print_done(trained.to_json(), f"trained: {', '.join(settings.kinds)}", as_json=as_json)


@continuation.command(short_help="Generate the next sentence of each passage.")
def generate(settings: GenerateSettings, yes: bool, as_json: bool) -> None:
    """Have generators and language models write the next sentence of each passage.

    Interrupted runs resume; a model whose call failed is asked again.
    """
    check_outputs([settings.out], [settings.contexts])
    with progress_bar("continuations", None) as bar:
        confirm = confirm_on(bar, yes=yes)
        written = continue_passages(settings, progress=bar, confirm=confirm)
    print_done(
        written.to_json(),
        f"written: {written.out}, {written.n:,} continuations",
        *(f"without a text: {n:,} ({explain(why)})" for why, n in written.missing.items()),
        as_json=as_json,
    )


@continuation.command(short_help="Compare systems on fifteen metrics, with tests.")
@click.argument(
    "systems", nargs=-1, metavar="SYSTEMS...", type=click.Path(path_type=Path), required=True
)
def score(systems: tuple[Path, ...], settings: CompareSettings, as_json: bool) -> None:
    """Compare SYSTEMS that continue the same stories on fifteen metrics, with tests.

    A row of SYSTEMS contains the `id` of a passage, the `system` and its `text`; null means that
    the system returned none. Source: Roemmele, Gordon and Swanson 2017.
    """
    from fabula.presentation.continuation_tables import example_blocks, system_tables

    check_outputs([settings.out, settings.html], [*systems, settings.contexts], settings.files)
    with progress_bar("measuring", None) as bar:
        compared = compare_continuations(systems, settings, progress=bar)
    written = compared.write(settings)
    if as_json:
        print_json(compared.to_json())
        return
    if settings.n_examples:
        print_tables(example_blocks(compared.table, compared.examples))
    print_tables(system_tables(compared.table))
    print_written([settings.out, *written])
