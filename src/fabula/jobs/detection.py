"""Detect machine-written text: language-model scores, detectors, and their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fabula.jobs.result_files import plot_setting, share_of, share_setting
from fabula.settings import Between, Settings, seed_setting, setting

if TYPE_CHECKING:
    from fabula.measures.detector import Calibration
    from fabula.presentation.sheet import Block
    from fabula.resume import Row
    from fabula.types import Document

ScoreName = Literal["creativity_index", "log_likelihood", "log_rank", "curvature"]


@dataclass(frozen=True, slots=True)
class LikelihoodSettings(Settings):
    """The model that scores the texts' probability, and where its scores are kept."""

    model: str = setting("local", help="local (the embedded model) or a .gguf file.", unit="MODEL")
    out: Path | None = setting(
        None, help="Write one row per text here (.jsonl); interrupted runs resume."
    )
    share: str | None = share_setting()
    restart: bool = setting(False, help="Score everything again and replace `out`.")


def score_likelihood(
    documents: Iterable[Document],
    settings: LikelihoodSettings,
    *,
    each: Callable[[Row], None] = lambda _row: None,
) -> list[Block]:
    """Score texts by their probability under the model; `each` receives a row once it is kept.

    Returns the table. Raises `InputError`, `ModelError`.
    """
    from fabula.measures.probability import ProbabilityMeasure
    from fabula.measures.scores import ScoreRun, probability_row
    from fabula.models.surprisal import SurprisalModel
    from fabula.presentation.detection_tables import probability_table

    rows = []
    with SurprisalModel(settings.model) as model:
        measure = ProbabilityMeasure(model)
        share = share_of(settings.share, settings.out)
        run = ScoreRun(
            measure, probability_row, settings.out, restart=settings.restart, share=share
        )
        for _document, row in run.rows(documents):
            rows.append(row)
            each(row)
    return probability_table(rows, str(measure.signature))


def _rates(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _are_rates(text: str) -> str | None:
    try:
        rates = _rates(text)
    except ValueError:
        return f"{text}: write shares such as 0.01,0.05"
    return (
        None if all(0 < rate < 1 for rate in rates) else (f"{text}: shares must be between 0 and 1")
    )


@dataclass(frozen=True, slots=True)
class DetectorSettings(Settings):
    """Which texts are human, and how thresholds are set."""

    label: str = setting(
        help="Which texts are human: those whose field has the value, as in label=human.",
        unit="FIELD=VALUE",
    )
    cluster: str | None = setting(
        None,
        help="Count texts that share this field (a prompt, an author) as one; near-duplicates "
        "always count as one.",
        unit="FIELD",
        default_text="prompt_id, pair_id or author, whichever exists",
    )
    names: tuple[ScoreName, ...] = setting(
        (),
        help="Calibrate this score only.",
        unit="NAME",
        option="score",
        default_text="all scores in the files",
    )
    fpr: str = setting(
        "0.01,0.05,0.1",
        help="Shares of human texts that may be called machine-written; a threshold is set for "
        "each.",
        unit="RATES",
        check=_are_rates,
    )
    out: Path | None = setting(
        None, help="Write the detectors here, for `detect apply`.", unit="DETECTOR"
    )
    plot: Path | None = plot_setting("Draw the ROC curves here (.svg, .pdf or .png).")
    seed: int = seed_setting()


def calibrate_detectors(scores: Sequence[Path], settings: DetectorSettings) -> list[Calibration]:
    """Return a calibration for each score: how well it separates human from machine texts.

    Raises `InputError` if a row lacks a field, `MixError` if rows were measured in different ways.
    """
    from fabula.measures.detector_verdicts import Label, calibrate_files, write_detectors

    label, cluster = Label.parse(settings.label), settings.cluster
    found = calibrate_files(
        scores,
        label,
        cluster=cluster,
        scores=settings.names,
        targets=_rates(settings.fpr),
        seed=settings.seed,
    )
    if settings.out is not None:
        write_detectors(settings.out, found, label, cluster)
    if settings.plot is not None:
        from fabula.presentation.detection_tables import save_rocs

        save_rocs(found, settings.plot)
    return found


@dataclass(frozen=True, slots=True)
class ApplySettings(Settings):
    """The allowed rate of false alarms, and where verdicts are written."""

    fpr: float = setting(
        0.01,
        help="Share of human texts that may be called machine-written.",
        unit="RATE",
        check=Between(0, 1, low_open=True, high_open=True),
    )
    out: Path | None = setting(None, help="Write the verdicts here (.jsonl).")


def apply_detector(
    detector: Path, scores: Sequence[Path], settings: ApplySettings
) -> list[dict[str, Any]]:
    """Return a row with the verdict on each text, or why there is none. Raises `InputError`."""
    from fabula.measures.detector_verdicts import apply_detectors, read_detectors
    from fabula.store import write_rows

    detectors = read_detectors(detector)
    rows = [row for path in scores for row in apply_detectors(detectors, path, settings.fpr)]
    if settings.out is not None:
        write_rows(settings.out, rows, are_results=True)
    return rows
