"""`fabula replicate story-feedback`."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Command, settings_options
from fabula.cli.options import check_outputs, json_option, seed_option
from fabula.cli.printing import print_result
from fabula.cli.progress import progress_bar
from fabula.jobs.feedback import open_encoder
from fabula.jobs.tables import TableFiles

__all__ = ["story_feedback"]


@click.command(
    cls=Command, name="story-feedback", short_help='Replicate "Help Me Write a Story" (2025).'
)
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), required=False)
@click.option(
    "--run", "runs", multiple=True, type=click.Path(path_type=Path), metavar="FEEDBACK.jsonl",
    help="Feedback of yours, as `fabula feedback elicit` writes it: the same tables.",
)  # fmt: skip
@click.option(
    "--ratings", multiple=True, type=click.Path(path_type=Path), metavar="RUNDIR",
    help="Finished runs of `fabula feedback rate` that rated the feedback of --run: Tables 3 to 5.",
)  # fmt: skip
@click.option(
    "--bertscore", "encoder", metavar="packaged|DIR",
    help="Measure BERTScore too (Table 6), by the packaged encoder or that of a folder.",
)  # fmt: skip
@settings_options(TableFiles, "files")
@seed_option
@json_option
def story_feedback(
    folder: Path | None,
    runs: tuple[Path, ...],
    ratings: tuple[Path, ...],
    encoder: str | None,
    files: TableFiles,
    seed: int,
    as_json: bool,
) -> None:
    """Tables 1 and 3 to 9 of "Help Me Write a Story" (Rashkin et al. 2025).

    DIR is the folder of the files released at github.com/google-deepmind/igen. First, and also
    without DIR, the printed tables are held against each other.
    """
    from fabula.replicate.story_feedback import NOTHING, Means, replicate_released, replicate_run
    from fabula.replicate.story_feedback_check import check_printed
    from fabula.replicate.story_feedback_files import HOME
    from fabula.replicate.story_feedback_tables import check_tables, replica_json, replica_tables
    from fabula.tasks.feedback.answers import sentence_counter
    from fabula.text.pipeline import load_pipeline

    if ratings and not runs:
        raise click.UsageError("--ratings: name the feedback that was rated, with --run")
    check_outputs([], runs, files)
    check = check_printed()
    released = own = None
    if folder is not None or runs:
        with progress_bar("measuring", None):
            means = Means(
                sentence_counter(load_pipeline(("tok2vec", "senter"))), open_encoder(encoder)
            )
            if folder is not None:
                released = replicate_released(folder, means=means, seed=seed)
            if runs:
                own = replicate_run(runs, ratings, means=means, seed=seed)
    replicas = [replica for replica in (released, own) if replica is not None]
    content = {
        "check": check.to_json(),
        "released": released and replica_json(released),
        "run": own and replica_json(own),
        "claims": [one.to_json() for replica in replicas or [NOTHING] for one in replica.claims],
    }
    parts = check_tables(check)
    for replica in replicas:
        parts += replica_tables(replica)
    if not replicas:
        parts.append(
            f"The released files are at {HOME}; give their folder as DIR, or feedback of yours "
            f"with --run."
        )
    print_result(parts, content, files, as_json=as_json)
