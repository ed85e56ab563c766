"""`fabula detect`: telling human from machine, with how well that can be done."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Group, settings_options
from fabula.cli.options import (
    check_outputs,
    json_option,
    rows_option,
    seed_option,
    texts_argument,
)
from fabula.cli.printing import JsonRows, print_result, print_tables, print_written
from fabula.cli.reading import reading
from fabula.jobs.reading import Reading
from fabula.jobs.tables import TableFiles

__all__ = ["detect"]

_scores = click.argument(
    "scores", nargs=-1, required=True, metavar="SCORES...", type=click.Path(path_type=Path)
)


@click.group(cls=Group, short_help="Tell human from machine text, with known error rates.")
def detect() -> None:
    """Tell texts by people from texts by machines, and say how well that can be done.

    \b
    fabula originality labelled.jsonl --reference books.ref --out scores.jsonl
    fabula detect calibrate scores.jsonl --label label=human --out detector.json
    fabula detect apply detector.json scores-of-others.jsonl
    """


@detect.command(short_help="Score texts by how probable a language model finds them.")
@texts_argument("texts")
@click.option(
    "--model", default="local", show_default=True, metavar="MODEL",
    help="local (the embedded one), a .gguf file, or the folder of a Hugging Face model.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE",
    help="Write a row a text here (.jsonl); interrupted runs resume.",
)  # fmt: skip
@click.option("--restart", is_flag=True, help="Score everything again and replace --out.")
@rows_option
@settings_options(Reading, "how_to_read")
def score(
    texts: tuple[str, ...],
    model: str,
    out: Path | None,
    restart: bool,
    as_json: str | None,
    how_to_read: Reading,
) -> None:
    """Score TEXTS by how probable a language model finds them.

    Mean log-likelihood, mean log-rank, and the curvature of Fast-DetectGPT: what the Creativity
    Index as a detector is compared with. Needs the extra [neural].
    """
    from fabula.measures.probability import ProbabilityMeasure
    from fabula.measures.scores import ScoreRun, probability_row
    from fabula.models.likelihood import LikelihoodModel
    from fabula.presentation.detection_tables import probability_table

    check_outputs([out], [])
    measure = ProbabilityMeasure(LikelihoodModel(model))
    rows = []
    run = ScoreRun(measure, probability_row, out, restart=restart)
    with (
        reading(texts, "scoring", how_to_read) as (documents, _),
        JsonRows(as_json) as shown,
    ):
        for _document, row in run.rows(documents):
            rows.append(row)
            shown.print(row)
    if not as_json:
        print_tables(probability_table(rows, str(measure.signature)))
        print_written([out])


@detect.command(short_help="Calibrate a detector on labelled scores.")
@_scores
@click.option(
    "--label", required=True, metavar="FIELD=VALUE",
    help="Which texts are human: those whose field holds the value, as in label=human.",
)  # fmt: skip
@click.option(
    "--cluster", metavar="FIELD",
    help="Texts that share this field (a prompt, an author) count as one; so do near-duplicates.  "
    "[default: prompt_id, pair_id or author, whichever there is]",
)  # fmt: skip
@click.option(
    "--score", "names", multiple=True, metavar="NAME",
    type=click.Choice(["creativity_index", "log_likelihood", "log_rank", "curvature"]),
    help="Calibrate this score only.  [default: all that the files hold]",
)  # fmt: skip
@click.option(
    "--fpr", default="0.01,0.05,0.1", show_default=True, metavar="RATES",
    help="Shares of human texts that may be called machine-written, to set thresholds for.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DETECTOR",
    help="Write the detectors here, for `detect apply`.",
)  # fmt: skip
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE",
    help="Draw the ROC curves here (.svg, .pdf or .png).",
)  # fmt: skip
@seed_option
@settings_options(TableFiles, "files")
@json_option
def calibrate(
    scores: tuple[Path, ...],
    label: str,
    cluster: str | None,
    names: tuple[str, ...],
    fpr: str,
    out: Path | None,
    plot: Path | None,
    seed: int,
    files: TableFiles,
    as_json: bool,
) -> None:
    """Find out how well SCORES of labelled texts tell human from machine.

    Gives the AUROC with its 95 % interval (by bootstrap over clusters), thresholds for chosen
    false-positive rates with what these rates may really be, and the expected calibration error.
    Where the interval includes 0.5 the score cannot tell them apart, and gives no verdicts.
    Near-duplicate texts, and layout that alone tells people from machines, are reported.
    """
    from fabula.measures.detection_rows import calibration_row
    from fabula.measures.verdicts import Label, calibrate_files, write_detectors
    from fabula.presentation.detection_tables import calibration_tables

    check_outputs([out, plot, files.csv, files.latex], scores)
    files.check_files()
    if plot is not None:
        from fabula.presentation.plots import check_plot_path

        check_plot_path(plot)
    chosen = Label.parse(label)
    found = calibrate_files(
        scores, chosen, cluster=cluster, scores=names, targets=_rates(fpr), seed=seed
    )
    if out is not None:
        write_detectors(out, found, chosen, cluster)
    if plot is not None:
        from fabula.presentation.detection_tables import save_rocs

        save_rocs(found, plot)
    tables = calibration_tables(found)
    content = [calibration_row(calibration) for calibration in found]
    print_result(tables, content, files, as_json=as_json, written=[out, plot])


@detect.command(short_help="Apply a calibrated detector to scores.")
@click.argument("detector", type=click.Path(path_type=Path))
@_scores
@click.option(
    "--fpr", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.01,
    show_default=True, metavar="RATE",
    help="Share of human texts that may be called machine-written.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write the verdicts (.jsonl)."
)
@rows_option
def apply(
    detector: Path, scores: tuple[Path, ...], fpr: float, out: Path | None, as_json: str | None
) -> None:
    """Apply a DETECTOR that `detect calibrate` wrote to SCORES of other texts.

    A text is flagged, or it is not: that it was not flagged does not make it human. There is no
    verdict, and the reason instead, by a detector that cannot tell human from machine, where many
    more human texts than --fpr may be flagged, and on a text of another kind (length, layout,
    quotation marks, vocabulary) than the human texts that it was calibrated on.
    """
    from fabula.measures.verdicts import apply_detectors, read_detectors
    from fabula.presentation.detection_tables import verdict_table
    from fabula.store import dump_json, write_whole

    check_outputs([out], [detector, *scores])
    detectors = read_detectors(detector)
    rows = [row for path in scores for row in apply_detectors(detectors, path, fpr)]
    if out is not None:
        lines = "".join(dump_json(row) + "\n" for row in rows)
        write_whole(out, lines.encode(errors="replace"))
    if as_json:
        with JsonRows(as_json) as shown:
            for row in rows:
                shown.print(row)
        return
    print_tables(verdict_table(rows))
    print_written([out])


def _rates(text: str) -> list[float]:
    try:
        rates = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise click.UsageError(f"--fpr {text}: write shares such as 0.01,0.05") from error
    if not all(0 < rate < 1 for rate in rates):
        raise click.UsageError(f"--fpr {text}: shares lie between 0 and 1")
    return rates
