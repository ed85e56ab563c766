"""`fabula continuation`: the next sentence of a story."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import click

from fabula.cli.options import text_options, texts_argument
from fabula.cli.reading import reading

__all__ = ["continuation"]


@click.group()
def continuation() -> None:
    """Cut books into passages, to have the sentence written that follows each."""


@continuation.command()
@texts_argument("books")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, metavar="FILE",
    help="Write a row for each passage here (.jsonl): context and gold.",
)  # fmt: skip
@click.option(
    "--sentences", "n_sentences", type=click.IntRange(min=1), default=20, show_default=True,
    help="Sentences of a context.",
)  # fmt: skip
@click.option(
    "--stride", type=click.IntRange(min=1), metavar="N",
    help="Sentences from the start of one passage to the next.  [default: no overlap]",
)  # fmt: skip
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Keep so many passages, drawn by --seed.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@text_options
def passages(
    books: tuple[str, ...],
    out: Path,
    n_sentences: int,
    stride: int | None,
    limit: int | None,
    seed: int,
    **how_to_read: Any,
) -> None:
    """Cut BOOKS into contexts and the sentences that follow them.

    Any text, or files of the Children's Book Test, whose tokens become text again (as rows of
    tokenised sentences, with --text-field sentences). No passage crosses a chapter; headings are
    left out.
    """
    from fabula.errors import InputError
    from fabula.store import dump_json, write_whole
    from fabula.tasks.continuation.passages import book_chapters, passages_of
    from fabula.text.pipeline import load_pipeline

    nlp = load_pipeline(("tok2vec", "senter"))
    with reading(books, "cutting", **how_to_read) as (documents, _):
        chapters = list(book_chapters(documents, nlp))
    found = list(passages_of(chapters, n_sentences, stride))
    if not found:
        raise InputError(
            f"{', '.join(books)}: no chapter has {n_sentences + 1} sentences; choose fewer with "
            f"--sentences"
        )
    n_found = len(found)
    if limit is not None and limit < n_found:
        keep = sorted(random.Random(seed).sample(range(n_found), limit))
        found = [found[k] for k in keep]
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(dump_json(passage.to_row()) + "\n" for passage in found)
    write_whole(out, lines.encode(errors="replace"))
    n_books = len({chapter.book for chapter in chapters})
    click.echo(
        f"written: {out}, {len(found):,} of {n_found:,} passages from {n_books:,} texts, "
        f"{len(chapters):,} chapters"
    )
