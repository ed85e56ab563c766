"""`fabula detect`: detectors of machine text, with their error rates."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Group
from fabula.cli.inputs import reading
from fabula.cli.options import check_outputs, texts_argument
from fabula.cli.printing import JsonRows, print_result, print_rows, print_tables, print_written
from fabula.jobs.detection import (
    ApplySettings,
    DetectorSettings,
    LikelihoodSettings,
    apply_detector,
    calibrate_detectors,
    score_likelihood,
)
from fabula.jobs.reading import Reading
from fabula.jobs.result_files import TableFiles, rows_file

_scores = click.argument(
    "scores", nargs=-1, required=True, metavar="SCORES...", type=click.Path(path_type=Path)
)


@click.group(cls=Group, short_help="Distinguish human from machine text, with known error rates.")
def detect() -> None:
    """Distinguish texts by people from texts by machines, and measure how well that works.

    \b
    fabula originality labelled.jsonl --reference books.ref --out scores.jsonl
    fabula detect calibrate scores.jsonl --label label=human --out detector.json
    fabula detect apply detector.json scores-of-others.jsonl
    """


@detect.command(short_help="Score texts by how probable a language model finds them.")
@texts_argument("texts")
def score(
    texts: tuple[str, ...], settings: LikelihoodSettings, as_json: str | None, how_to_read: Reading
) -> None:
    """Score TEXTS by how probable a language model finds them.

    Computes mean log-likelihood, mean log-rank, and the curvature of Fast-DetectGPT, the baselines
    for the Creativity Index as a detector. Needs the extra [local].
    """
    check_outputs([settings.out], [])
    with reading(texts, "scoring", how_to_read) as (documents, _), JsonRows(as_json) as rows:
        tables = score_likelihood(documents, settings, each=rows.print)
    if not as_json:
        print_tables(tables)
        print_written([settings.out and rows_file(settings.share, settings.out)])


@detect.command(short_help="Calibrate a detector on labelled scores.")
@_scores
def calibrate(
    scores: tuple[Path, ...], settings: DetectorSettings, files: TableFiles, as_json: bool
) -> None:
    """Measure how well SCORES of labelled texts distinguish human from machine.

    Shows the AUROC with its 95 % interval (over clusters), thresholds for chosen
    false-positive rates with upper bounds on the true rates, and the expected calibration error. If
    the interval includes 0.5, the score cannot distinguish them, and gives no verdicts.
    Near-duplicate texts, and layout that alone tells people from machines, are reported.
    """
    from fabula.measures.detector_verdicts import calibration_row
    from fabula.presentation.detection_tables import calibration_tables

    out, plot = settings.out, settings.plot
    check_outputs([out, plot], scores, files)
    found = calibrate_detectors(scores, settings)
    content = [calibration_row(calibration) for calibration in found]
    print_result(calibration_tables(found), content, files, as_json=as_json, written=[out, plot])


@detect.command(short_help="Apply a calibrated detector to scores.")
@click.argument("detector", type=click.Path(path_type=Path))
@_scores
def apply(
    detector: Path, scores: tuple[Path, ...], settings: ApplySettings, as_json: str | None
) -> None:
    """Apply a DETECTOR that `detect calibrate` wrote to SCORES of other texts.

    A text is either flagged or not flagged; "not flagged" does not mean human. The detector gives a
    reason instead of a verdict if it cannot tell human from machine, if many more human texts than
    --fpr may be flagged, or if the text differs in kind (length, layout, quotation marks,
    vocabulary) from the human texts that it was calibrated on.
    """
    from fabula.presentation.detection_tables import verdict_table

    check_outputs([settings.out], [detector, *scores])
    rows = apply_detector(detector, scores, settings)
    if as_json:
        print_rows(rows, as_json)
        return
    print_tables(verdict_table(rows))
    print_written([settings.out])
