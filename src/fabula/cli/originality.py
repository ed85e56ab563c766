"""`fabula originality`: how much of each text stands in a reference, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fabula.cli.engine import engine_options
from fabula.cli.judging import agree_to_cost
from fabula.cli.measuring import near_options, open_rows
from fabula.cli.options import (
    check_outputs,
    cost_options,
    cost_terms,
    jobs_option,
    json_option,
    text_options,
    texts_argument,
)
from fabula.cli.progress import Bar
from fabula.cli.reading import reading

__all__ = ["originality"]


@click.command()
@texts_argument("texts")
@click.option(
    "--reference", "references", required=True, multiple=True, metavar="DIR|URL|INDEX",
    help="Corpus to compare with: its folder, its address in an object store (s3://, gs://), or "
    "http://... where `fabula reference serve` serves it (FABULA_REFERENCE_TOKEN holds the token); "
    "several are searched as one. Or a web-scale index: infinigram:NAME[@URL] over HTTP "
    "(v4_rpj_llama_s4 is RedPajama; FABULA_INFINIGRAM_URL names a server of your own), "
    "infinigram-index:PATH on this machine (PATH#tokenizer.json where it lies elsewhere).",
)  # fmt: skip
@click.option(
    "--levels", metavar="LOW-HIGH",
    help="Lengths L of which the uniqueness is summed.  [default: 5-12; 5-7 against what models "
    "wrote]",
)  # fmt: skip
@click.option(
    "--match", type=click.Choice(["verbatim", "near"]), default="verbatim", show_default=True,
    help="near: also what stands in the reference in other words, by word-mover similarity.",
)  # fmt: skip
@near_options
@click.option(
    "--exclude", default="none", show_default=True, metavar="auto|none|FILE",
    help="Documents of the reference to leave out: auto, those that copy or quote the text (for "
    "published texts, which may stand in the reference); or a file with an id a line.",
)  # fmt: skip
@click.option(
    "--exclude-same", metavar="FIELD",
    help="For each text, also leave out the documents whose FIELD is its own, such as author or "
    "prompt_id.",
)  # fmt: skip
@click.option(
    "--exclude-model", metavar="MODEL",
    help="After --exclude auto, ask this model about documents that the rule leaves in doubt.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write scores here, a JSON row a text."
)
@click.option("--html", type=click.Path(path_type=Path), help="Write a page to read here.")
@click.option(
    "--sources", "n_spread", type=click.IntRange(0, 1000), default=0, metavar="N",
    help="Follow how uniqueness falls when only the best 1, 2, ... N documents may be used.",
)  # fmt: skip
@click.option(
    "--cite", "n_sources", type=click.IntRange(0, 100), default=3, show_default=True,
    help="Sources to name of each borrowed span.",
)  # fmt: skip
@click.option(
    "--parallel", type=click.IntRange(1, 64), default=8, show_default=True,
    help="infinigram: look-ups at a time.",
)  # fmt: skip
@click.option(
    "--max-retries", type=click.IntRange(min=0), default=5, show_default=True,
    help="infinigram, http: how often a failed look-up is made again.",
)  # fmt: skip
@click.option(
    "--restart", is_flag=True,
    help="Score everything anew, whatever --out holds and look-ups have answered before.",
)  # fmt: skip
@cost_options
@json_option
@engine_options
@jobs_option
@text_options
def originality(
    texts: tuple[str, ...],
    references: tuple[str, ...],
    out: Path | None,
    html: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Measure how original TEXTS are: L-uniqueness, the Creativity Index, and every borrowed span.

    The L-uniqueness of a text is the share of its words that lie in no run of L or more words found
    in the reference; the Creativity Index is its sum over the levels. With --out, a run that was
    interrupted goes on where it was.
    """
    from fabula.store import dump_json

    check_outputs([out, html], [])
    if html is not None:
        from fabula.report.page_file import check_page_path

        check_page_path(html)
    shown = _Shown(html is not None)
    how_to_read = {name: given[name] for name in ("text_field", "id_field", "format_")}
    given["model_terms"] = _agreed_terms(given)
    with (
        reading(texts, "measuring", **how_to_read) as (documents, bar),
        open_rows(references, {**given, "out": out}, bar) as (rows, size),
    ):
        for document, row in rows(documents):
            shown.add(document, row)
            if as_json:
                click.echo(dump_json(row))
    if html is not None:
        from fabula.report.originality_page import write_page

        write_page(html, shown.pairs, shown.n_rows, size)
    if not as_json:
        _print_table(shown, out, html)
    if shown.failures:
        # For scripts: some texts have no score, and another run may find it.
        click.get_current_context().exit(1)


def _agreed_terms(given: dict[str, Any]) -> Any:
    """On what terms --exclude-model is asked, once its cost is agreed to; None without one."""
    from fabula.measures.quoting import estimate_quotes
    from fabula.models.cost import known_price

    spec = given["exclude_model"]
    if spec is None:
        return None
    terms = cost_terms(given)
    if given["max_cost"] is not None and given["engine"] != "local":
        raise click.UsageError(
            "--max-cost holds for --exclude-model with --engine local only: workers of a cluster "
            "share no budget"
        )
    expected = estimate_quotes(terms.price or known_price(spec))
    agree_to_cost(spec, expected, yes=given["yes"], bar=Bar(), per="for each text ")
    return terms


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
        self.copied: list[str] = []
        self.failures: list[str] = []
        self.n_by_remark: dict[str, int] = {}

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
        remarks += [
            f"{n:,} of {self.n_rows:,} texts: {remark}" for remark, n in self.n_by_remark.items()
        ]
        if self.copied:
            remarks.append(
                f"{len(self.copied):,} of {self.n_rows:,} texts stand in the reference for half of "
                f"their words or more (the first: {self.copied[0]}): copies, or what was borrowed? "
                f"--exclude auto and --exclude-same leave such documents out"
            )
        if self.failures:
            remarks.append(
                f"{len(self.failures):,} of {self.n_rows:,} texts have no score, since a look-up "
                f"failed ({self.failures[0]}); the same command with --out asks again"
            )
        return remarks

    def add(self, document: Any, row: dict[str, Any]) -> None:
        from fabula.measures.scores import COPIED_SHARE

        self.n_rows += 1
        self.n_with_copies += bool(row["excluded"])
        if (row["in_reference"] or 0) >= COPIED_SHARE:
            self.copied.append(row["id"])
        self.n_unfamiliar += 0 < (row["n_known_words"] or 0) < 0.8 * row["n_words"]
        for remark in row.get("remarks", ()):
            self.n_by_remark[remark] = self.n_by_remark.get(remark, 0) + 1
        if (detail := row.get("missing_detail")) is not None:
            self.failures.append(detail)
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
