"""`fabula continuation score`: all systems in fifteen metrics, and which differences are real."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fabula.cli.derived import Command, settings_options
from fabula.cli.options import (
    check_outputs,
    grammar_option,
    json_option,
    seed_option,
)
from fabula.cli.printing import print_tables, print_written
from fabula.cli.progress import progress_bar
from fabula.jobs.engine import Engine, open_cluster

__all__ = ["score"]


@click.command(cls=Command, short_help="Compare systems in fifteen metrics, with tests.")
@click.argument(
    "systems", nargs=-1, metavar="SYSTEMS...", type=click.Path(path_type=Path), required=True
)
@click.option(
    "--contexts", type=click.Path(path_type=Path), required=True, metavar="PASSAGES",
    help="What was continued, as `continuation passages` writes it (.jsonl).",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE",
    help="Write the metrics of each continuation here (.jsonl); interrupted runs resume.",
)  # fmt: skip
@click.option("--gold/--no-gold", default=True, help="Measure the book's own sentences too.")
@click.option(
    "--vocabulary", type=click.Path(path_type=Path), metavar="FILE",
    help="Count only these words in the two ratios: a word a line, or DIR/vocabulary.tsv of "
    "`continuation train`.",
)  # fmt: skip
@click.option(
    "--permutations", type=click.IntRange(min=99), default=10_000, show_default=True,
    help="Permutations of each test.",
)  # fmt: skip
@click.option(
    "--correction", type=click.Choice(["bonferroni", "holm"]), default="bonferroni",
    show_default=True, help="How p-values are corrected over the pairs, where the marks go by it.",
)  # fmt: skip
@click.option(
    "--level", type=click.FloatRange(0, 1, min_open=True), default=0.05, show_default=True,
    help="Level of the tests.",
)  # fmt: skip
@seed_option
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="PAGE", help="Write a page of it all."
)
@click.option("--latex", type=click.Path(path_type=Path), metavar="FILE", help="Write a table.")
@click.option(
    "--csv", type=click.Path(path_type=Path), metavar="FILE",
    help="Write the table, and the pairs beside it (FILE with .pairs before its ending).",
)  # fmt: skip
@click.option("--restart", is_flag=True, help="Measure everything again and replace --out.")
@grammar_option
@click.option(
    "--encoder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="A sentence encoder: model.onnx and tokenizer.json.  [default: MiniLM, packaged]",
)  # fmt: skip
@click.option(
    "--coreference", default="sieve", show_default=True, metavar="RESOLVER",
    help="sieve, fastcoref, or fastcoref@FOLDER.",
)  # fmt: skip
@settings_options(Engine, "engine")
@json_option
def score(
    systems: tuple[Path, ...],
    contexts: Path,
    out: Path | None,
    engine: Engine,
    as_json: bool,
    **given: Any,
) -> None:
    """Compare SYSTEMS that continue the same stories, in fifteen metrics, with tests.

    A row of SYSTEMS holds the `id` of a passage, the `system` and its `text`; null means that the
    system gave none. Sources: Roemmele, Gordon and Swanson 2017.
    """
    from fabula.measures.linguistic.metrics import ToolChoice
    from fabula.measures.linguistic.scoring import score_rows
    from fabula.measures.linguistic.table import compare_systems, read_vocabulary
    from fabula.presentation.continuation_tables import (
        check_reports,
        pairs_path,
        system_tables,
        write_reports,
    )
    from fabula.store import dump_json

    files = {kind: given[kind] for kind in ("html", "latex", "csv")}
    check_outputs([out, *files.values(), pairs_path(files["csv"])], [*systems, contexts])
    check_reports(**files)
    words = None if given["vocabulary"] is None else read_vocabulary(given["vocabulary"])
    stories, continuations = _read(systems, contexts, with_gold=given["gold"])
    with (
        progress_bar("measuring", len(continuations)) as bar,
        open_cluster(engine, bar, "measuring") as cluster,
    ):
        rows = score_rows(
            stories,
            continuations,
            ToolChoice(given["grammar"], given["encoder"], given["coreference"]),
            out,
            n_jobs=engine.n_processes,
            spread=None if cluster is None else cluster.in_order,
            restart=given["restart"],
            advance=bar.advance,
        )
        bar.say("comparing")
        table = compare_systems(
            rows,
            list(dict.fromkeys(part.system for part in continuations)),
            vocabulary=words,
            n_permutations=given["permutations"],
            **{name: given[name] for name in ("level", "correction", "seed")},
        )
    written = write_reports(table, **files)
    if as_json:
        click.echo(dump_json(table.to_json()))
        return
    print_tables(system_tables(table))
    print_written([out, *written])


def _read(systems: tuple[Path, ...], contexts: Path, *, with_gold: bool) -> tuple[Any, Any]:
    """The stories, and what continues them: the systems' texts, and the books' own."""
    from fabula.measures.linguistic.scoring import (
        gold_continuations,
        read_contexts,
        read_continuations,
    )

    stories = read_contexts(contexts)
    continuations = read_continuations(systems, stories)
    if with_gold:
        continuations += gold_continuations(stories, continuations)
    return stories, continuations
