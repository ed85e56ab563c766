"""`fabula replicate`: a paper's tables again, beside the printed numbers."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Group, settings_options
from fabula.cli.options import check_outputs, jobs_option, json_option, seed_option
from fabula.cli.printing import print_result
from fabula.cli.progress import progress_bar
from fabula.cli.replicate_creativity import creativity_index
from fabula.cli.replicate_feedback import story_feedback
from fabula.jobs.tables import TableFiles

__all__ = ["replicate"]


@click.group(cls=Group, short_help="Recompute a paper's tables from its released data.")
def replicate() -> None:
    """Compute a paper's tables from its released data, beside the printed numbers."""


@replicate.command(short_help='Replicate "Art or Artifice?" (2024).')
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--judge", "judges", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
    help="Answers of a judge, as in llm_judges/.  [default: all of DIR/llm_judges]",
)  # fmt: skip
@click.option(
    "--preferences", type=click.Path(path_type=Path), metavar="FILE",
    help="Measurements of the rubric `preference`, for Figure 4; the release has none.",
)  # fmt: skip
@click.option(
    "--plot", type=click.Path(path_type=Path), help="Draw Figure 3 here (.svg, .pdf or .png)."
)
@settings_options(TableFiles, "files")
@json_option
def ttcw(
    folder: Path,
    judges: tuple[Path, ...],
    preferences: Path | None,
    plot: Path | None,
    files: TableFiles,
    as_json: bool,
) -> None:
    """Tables 5 and 6 and Figures 3 and 4 of "Art or Artifice?" (Chakrabarty et al. 2024).

    DIR is the folder Art_or_Artifice of github.com/salesforce/creativity_eval.
    """
    from fabula.replicate.ttcw import replicate_ttcw
    from fabula.replicate.ttcw_tables import replica_tables, save_distribution

    inputs = [*judges, preferences] if preferences is not None else judges
    check_outputs([plot], inputs, files)
    replica = replicate_ttcw(folder, judges=judges, preferences=preferences)
    if plot is not None:
        save_distribution(replica, plot)
    tables, content = replica_tables(replica), replica.to_json()
    print_result(tables, content, files, as_json=as_json, written=[plot])


@replicate.command(
    "linguistic-metrics", short_help="Replicate the linguistic metrics of Roemmele et al. (2017)."
)
@click.argument("data", metavar="[DATA]", type=click.Path(path_type=Path), required=False)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), required=True, metavar="DIR",
    help="Folder of generators, continuations and scores; interrupted runs resume.",
)  # fmt: skip
@click.option(
    "--books", multiple=True, metavar="SOURCE",
    help="Cut the passages from these.  [default: DATA/cbt/cbt_test_3books.jsonl.gz]",
)  # fmt: skip
@click.option(
    "--train", multiple=True, metavar="SOURCE",
    help="Train the generators on these.  [default: the novels and children's books of DATA]",
)  # fmt: skip
@click.option(
    "--stride", type=click.IntRange(min=1), default=5, show_default=True,
    help="Sentences from the start of one passage to the next.",
)  # fmt: skip
@click.option(
    "--epochs", type=click.IntRange(min=1), default=3, show_default=True,
    help="How often the recurrent network reads the training texts.",
)  # fmt: skip
@click.option("--recurrent/--no-recurrent", default=True, help="Train the network (needs torch).")
@click.option(
    "--draws", type=click.IntRange(min=0), default=20, show_default=True, metavar="N",
    help="Compare each continuation with N random sentences of its book that are as long.",
)  # fmt: skip
@click.option(
    "--examples", type=click.IntRange(min=0), metavar="N",
    help="Show N passages with every system's sentence and scores.  [default: 2 with --html]",
)  # fmt: skip
@seed_option
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="PAGE", help="Write a page of our table."
)
@settings_options(TableFiles, "files")
@jobs_option
@json_option
def linguistic_metrics(
    data: Path | None,
    out: Path,
    books: tuple[str, ...],
    train: tuple[str, ...],
    stride: int,
    epochs: int,
    recurrent: bool,
    draws: int,
    examples: int | None,
    seed: int,
    html: Path | None,
    files: TableFiles,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Table 2 of "Evaluating Story Generation Systems Using Automated Linguistic Analyses".

    Roemmele, Gordon and Swanson 2017: random, case-based, unigram, recurrent and the books' own
    sentences in fifteen metrics, beside random sentences of the same length. DATA is a folder that
    holds cbt/ and reference/.
    """
    from fabula.presentation.continuation_tables import write_reports
    from fabula.presentation.page_file import check_page_path
    from fabula.replicate.linguistic_metrics import default_files, replicate_table
    from fabula.replicate.linguistic_metrics_tables import beside_paper
    from fabula.workers import default_jobs

    if html is not None:
        check_page_path(html)
    if data is None and not (books and train):
        raise click.UsageError("name DATA, or --books and --train")
    check_outputs([html], [*map(Path, books), *map(Path, train)], files)
    ours, theirs = default_files(data) if data is not None else ([], [])
    with progress_bar("replicating", None) as bar:
        shown = ""
        done = 0

        def report(stage: str, n: int, total: int) -> None:
            nonlocal shown, done
            if stage != shown:
                bar.begin(stage, total)
                shown, done = stage, 0
            bar.advance(n - done)
            done = n

        replica = replicate_table(
            books or ours, train or theirs, out,
            stride=stride, n_epochs=epochs, recurrent=recurrent, n_draws=draws,
            n_examples=(2 if html else 0) if examples is None else examples, seed=seed,
            n_jobs=jobs or default_jobs(), report=report,
        )  # fmt: skip
    if html is not None:
        write_reports(replica.table, html=html, latex=None, csv=None, examples=replica.examples)
    tables, content = beside_paper(replica), replica.to_json()
    print_result(tables, content, files, as_json=as_json, written=[html])


replicate.add_command(creativity_index)
replicate.add_command(story_feedback)
