"""`fabula profile`: what a whole text is like, in measured ways."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Command, settings_options
from fabula.cli.options import (
    check_outputs,
    grammar_option,
    rows_option,
    texts_argument,
)
from fabula.cli.printing import JsonRows, print_tables, print_written
from fabula.cli.reading import reading
from fabula.jobs.engine import Engine, open_cluster
from fabula.jobs.reading import Reading

__all__ = ["profile"]


@click.command(cls=Command, short_help="Measure rhythm, dialogue, word rarity and more.")
@texts_argument("texts")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE",
    help="Write a row for each text here (.jsonl).",
)  # fmt: skip
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="PAGE",
    help="Write a page: rhythm, rare words, what is said again.",
)  # fmt: skip
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE",
    help="Draw rhythm and rarity of up to 12 texts here (.svg, .pdf or .png).",
)  # fmt: skip
@grammar_option
@settings_options(Reading, "how_to_read")
@settings_options(Engine, "engine")
@rows_option
def profile(
    texts: tuple[str, ...],
    out: Path | None,
    html: Path | None,
    plot: Path | None,
    grammar: str,
    engine: Engine,
    as_json: str | None,
    how_to_read: Reading,
) -> None:
    """Profile TEXTS: rhythm of sentences, dialogue, rarity of words, grammar, repetition.

    English only. A number that cannot be had is missing, with its reason.
    """
    from fabula.api.results import Profiles
    from fabula.errors import InputError
    from fabula.measures.linguistic.profile import profile_texts

    check_outputs([out, html, plot], [Path(text) for text in texts])
    _check_paths(html, plot)
    with (
        reading(texts, "profiling", how_to_read) as (documents, bar),
        open_cluster(engine, bar, "profiling") as cluster,
        JsonRows(as_json) as rows,
    ):
        found = Profiles([])
        spread = None if cluster is None else cluster.in_order
        for one in profile_texts(documents, grammar, n_jobs=engine.n_processes, spread=spread):
            found.profiles.append(one)
            rows.print(one.to_row())
    if not found.profiles:
        raise InputError(f"{', '.join(texts)}: holds no texts")
    for path, save in ((out, found.save_rows), (html, found.save_page), (plot, found.plot)):
        if path is not None:
            save(path)
    if not as_json:
        print_tables(found.tables())
        print_written([out, html, plot])


def _check_paths(html: Path | None, plot: Path | None) -> None:
    """Before the work, not after it."""
    if html is not None:
        from fabula.presentation.page_file import check_page_path

        check_page_path(html)
    if plot is not None:
        from fabula.presentation.plots import check_plot_path

        check_plot_path(plot)
