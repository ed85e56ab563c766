"""`fabula originality`: how much of each text stands in a reference, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fabula.cli.options import jobs_option, json_option, text_options, texts_argument
from fabula.cli.reading import reading

__all__ = ["originality"]


@click.command()
@texts_argument("texts")
@click.option(
    "--reference",
    "references",
    required=True,
    multiple=True,
    metavar="DIR",
    help="Corpus to compare with; several are searched as one.",
)
@click.option(
    "--levels",
    default="5-12",
    show_default=True,
    metavar="LOW-HIGH",
    help="Lengths L of which the uniqueness is summed.",
)
@click.option(
    "--exclude",
    default="none",
    show_default=True,
    metavar="auto|none|FILE",
    help="Documents of the reference to leave out: auto, those that copy or quote the text (for "
    "published texts, which may stand in the reference); or a file with an id a line.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write scores here, a JSON row a text."
)
@click.option("--html", type=click.Path(path_type=Path), help="Write a page to read here.")
@click.option(
    "--sources",
    "n_sources",
    type=click.IntRange(0, 100),
    default=3,
    show_default=True,
    help="Sources to name of each borrowed span.",
)
@click.option("--restart", is_flag=True, help="Score everything anew, whatever --out holds.")
@json_option
@jobs_option
@text_options
def originality(
    texts: tuple[str, ...],
    references: tuple[str, ...],
    levels: str,
    exclude: str,
    out: Path | None,
    html: Path | None,
    n_sources: int,
    restart: bool,
    as_json: bool,
    jobs: int | None,
    **how_to_read: Any,
) -> None:
    """Measure how original TEXTS are: L-uniqueness, the Creativity Index, and every borrowed span.

    The L-uniqueness of a text is the share of its words that lie in no run of L or more words found
    in the reference; the Creativity Index is its sum over the levels. With --out, a run that was
    interrupted goes on where it was.
    """
    from fabula.measures.originality import Levels, OriginalityMeasure
    from fabula.measures.scores import ScoreRun
    from fabula.reference import Reference
    from fabula.store import dump_json
    from fabula.workers import default_jobs

    if html is not None:
        from fabula.report.page_file import check_page_path

        if out is not None and out.resolve() == html.resolve():
            raise click.UsageError("--out and --html name the same file")
        check_page_path(html)
    reference = Reference.open(*references)
    measure = OriginalityMeasure(
        reference,
        levels=Levels.parse(levels),
        exclude=_excluded(exclude, reference),
        n_sources=n_sources,
        n_threads=jobs or default_jobs(),
    )
    shown = _Shown(html is not None)
    with reading(texts, "measuring", **how_to_read) as (documents, _):
        for document, row in ScoreRun(measure, out, restart=restart).rows(documents):
            shown.add(document, row)
            if as_json:
                click.echo(dump_json(row))
    if html is not None:
        from fabula.report.originality_page import write_page

        write_page(html, shown.pairs, shown.n_rows, reference)
    if not as_json:
        _print_table(shown, out, html)


class _Shown:
    """What the table and the page need of a run of any length."""

    MAX_PAGE = 200

    def __init__(self, with_texts: bool) -> None:
        self.with_texts = with_texts
        self.pairs: list[tuple[Any, dict[str, Any]]] = []
        self.table: list[tuple[str, int, float | None, float | None, str | None]] = []
        self.signature = ""
        self.levels: list[str] = []
        self.n_rows = 0
        self.n_with_copies = 0
        self.n_unfamiliar = 0

    def remarks(self) -> list[str]:
        """What a reader of the numbers should know."""
        remarks = []
        if self.n_with_copies:
            remarks.append(
                f"{self.n_with_copies:,} of {self.n_rows:,} texts: documents that copy or quote "
                f"them were left out (named in the scores and on the page)"
            )
        if self.n_unfamiliar:
            remarks.append(
                f"{self.n_unfamiliar:,} of {self.n_rows:,} texts: over 20 % of the words are not "
                f"in the reference at all, and count as new; is it of the same language?"
            )
        return remarks

    def add(self, document: Any, row: dict[str, Any]) -> None:
        self.n_rows += 1
        self.n_with_copies += bool(row["excluded"])
        self.n_unfamiliar += 0 < row["n_known_words"] < 0.8 * row["n_words"]
        self.signature = row["signature"]
        self.levels = list(row["uniqueness"])
        lowest = next(iter(row["uniqueness"].values()))
        self.table.append(
            (row["id"], row["n_words"], row["creativity_index"], lowest, row["missing_reason"])
        )
        if self.with_texts and len(self.pairs) < self.MAX_PAGE:
            self.pairs.append((document, row))


def _print_table(shown: _Shown, out: Path | None, html: Path | None) -> None:
    from fabula.report.tables import originality_table

    click.echo(originality_table(shown.table, shown.levels, shown.signature), nl=False)
    for remark in shown.remarks():
        click.echo(remark)
    for path in (out, html):
        if path is not None:
            click.echo(f"written: {path}")


def _excluded(exclude: str, reference: Any) -> Any:
    from fabula.measures.originality import ExcludeIds
    from fabula.reference.exclude import CopyRule
    from fabula.text import read_ids

    if exclude == "none":
        return None
    if exclude == "auto":
        return CopyRule()
    return ExcludeIds.of(reference, read_ids(Path(exclude)))
