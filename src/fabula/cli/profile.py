"""`fabula profile`: what a whole text is like, in measured ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fabula.cli.engine import engine_options, open_cluster
from fabula.cli.options import (
    check_outputs,
    grammar_option,
    jobs_option,
    json_option,
    text_options,
    texts_argument,
)
from fabula.cli.reading import reading

__all__ = ["profile"]


@click.command()
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
@text_options
@engine_options
@jobs_option
@json_option
def profile(
    texts: tuple[str, ...],
    out: Path | None,
    html: Path | None,
    plot: Path | None,
    grammar: str,
    engine: str,
    address: str | None,
    jobs: int | None,
    as_json: bool,
    **how_to_read: Any,
) -> None:
    """Profile TEXTS: rhythm of sentences, dialogue, rarity of words, grammar, repetition.

    English only. A number that cannot be had is missing, with its reason.
    """
    from fabula.errors import InputError
    from fabula.measures.linguistic.profile import profile_texts
    from fabula.report.profile_page import profile_tables, write_profile_page
    from fabula.store import dump_json, write_whole
    from fabula.workers import default_jobs

    check_outputs([out, html, plot], [Path(text) for text in texts])
    _check_paths(html, plot)
    asked = {"engine": engine, "address": address, "jobs": jobs}
    with (
        reading(texts, "profiling", **how_to_read) as (documents, bar),
        open_cluster(asked, bar) as cluster,
    ):
        found = []
        spread = None if cluster is None else cluster.in_order
        n_jobs = jobs or default_jobs()
        for one in profile_texts(documents, grammar, n_jobs=n_jobs, spread=spread):
            found.append(one)
            if as_json:
                click.echo(dump_json(one.to_row()))
    if not found:
        raise InputError(f"{', '.join(texts)}: holds no texts")
    written = []
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        lines = "".join(dump_json(one.to_row()) + "\n" for one in found)
        write_whole(out, lines.encode(errors="replace"))
        written.append(out)
    if html is not None:
        write_profile_page(found, html)
        written.append(html)
    if plot is not None:
        from fabula.report.plots import save_profiles

        save_profiles(found, plot)
        written.append(plot)
    if not as_json:
        click.echo(profile_tables(found), nl=False)
        for path in written:
            click.echo(f"written: {path}")


def _check_paths(html: Path | None, plot: Path | None) -> None:
    """Before the work, not after it."""
    if html is not None:
        from fabula.report.page_file import check_page_path

        check_page_path(html)
    if plot is not None:
        from fabula.report.plots import check_plot_path

        check_plot_path(plot)
