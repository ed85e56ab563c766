"""Detect machine-written text: language-model scores, detectors, and their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.core.settings import Between, Settings, of_field, seed_setting, setting
from fabula.jobs.given import Rows, named_parts
from fabula.jobs.job import Stream
from fabula.jobs.result import Result, Row
from fabula.jobs.shared_settings import plot_setting, restart_setting, share_of, share_setting

if TYPE_CHECKING:
    from fabula.novelty.detector import Calibration, Label
    from fabula.show.sheet import Block


@dataclass(frozen=True, slots=True)
class LikelihoodSettings(Settings):
    """The model that scores the texts' probability, and where its scores are kept."""

    model: str = setting("local", help="local (the embedded model) or a .gguf file.", unit="MODEL")
    out: Path | None = setting(
        None, help="Write one row per text here (.jsonl); interrupted runs resume."
    )
    share: str | None = share_setting()
    restart: bool = restart_setting()


@dataclass(frozen=True, slots=True, repr=False)
class Probabilities(Result):
    """How probable a language model finds each text."""

    kept: list[Row]
    signature: str

    def rows(self) -> list[Row]:
        return self.kept

    def tables(self) -> list[Block]:
        from fabula.novelty.tables import probability_table

        return probability_table(self.kept, self.signature)


def score(
    texts: Stream, settings: LikelihoodSettings, *, each: Callable[[Row], None] = lambda _row: None
) -> Probabilities:
    """Score TEXTS by how probable a language model finds them.

    Computes mean log-likelihood, mean log-rank, and the curvature of Fast-DetectGPT, the baselines
    for the Creativity Index as a detector. Needs the extra [local].

    Raises `InputError`, `ModelError`.
    """
    from fabula.models.surprisal import SurprisalModel
    from fabula.novelty.scores import ProbabilityMeasure, probability_row, run_measure

    rows = []
    with SurprisalModel(settings.model) as model:
        measure, share = ProbabilityMeasure(model), share_of(settings.share, settings.out)
        for _document, row in run_measure(
            measure,
            texts,
            settings.out,
            row_of=probability_row,
            restart=settings.restart,
            share=share,
        ):
            rows.append(row)
            each(row)
    return Probabilities(rows, str(measure.signature))


def _rates(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _are_rates(text: str) -> str | None:
    try:
        are_shares = all(0 < rate < 1 for rate in _rates(text))
    except ValueError:
        return f"{text}: write shares such as 0.01,0.05"
    return None if are_shares else f"{text}: shares must be between 0 and 1"


@dataclass(frozen=True, slots=True)
class DetectorSettings(Settings):
    """Which texts are human, and how thresholds are set."""

    label: str = setting(
        help="Which texts are human: those whose field has the value, as in label=human.",
        unit="FIELD=VALUE",
    )
    cluster: str | None = of_field(
        "Count texts that share this field (a prompt, an author) as one; near-duplicates "
        "always count as one.",
        default_text="prompt_id, pair_id or author, whichever exists",
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


@dataclass(frozen=True, slots=True, repr=False)
class Detector(Result):
    """How well scores tell human from machine, ready to be applied to other texts."""

    calibrations: list[Calibration]
    label: Label
    cluster: str | None

    def tables(self) -> list[Block]:
        from fabula.novelty.tables import calibration_tables

        return calibration_tables(self.calibrations)

    def rows(self) -> list[Row]:
        from fabula.novelty.detector import calibration_row

        return [calibration_row(calibration) for calibration in self.calibrations]

    def writers(self) -> dict[str, Any]:
        """The detectors, for `detect apply`, and a picture of the ROC curves."""
        from fabula.novelty.detector import write_detectors
        from fabula.novelty.tables import save_rocs

        def write(path: Path) -> None:
            write_detectors(path, self.calibrations, self.label, self.cluster)

        plots = (".svg", ".pdf", ".png")
        return {".json": write, **dict.fromkeys(plots, partial(save_rocs, self.calibrations))}


def calibrate(scores: Sequence[Rows], settings: DetectorSettings) -> Detector:
    """Measure how well SCORES of labelled texts distinguish human from machine.

    Shows the AUROC with its 95 % interval (over clusters), thresholds for chosen
    false-positive rates with upper bounds on the true rates, and the expected calibration error. If
    the interval includes 0.5, the score cannot distinguish them, and gives no verdicts.
    Near-duplicate texts, and layout that alone tells people from machines, are reported.

    Raises `InputError` if a row lacks a field, `MixError` if rows were measured in different ways.
    """
    from fabula.novelty.detector import Calibration, Label, calibrate_rows

    label, cluster = Label.parse(settings.label), settings.cluster
    calibrations = list[Calibration]()
    for rows, name in named_parts(scores):
        calibrations += calibrate_rows(
            rows, label, name, targets=_rates(settings.fpr), cluster=cluster, seed=settings.seed
        )
    detector = Detector(calibrations, label, cluster)
    if settings.out is not None:
        detector.writers()[".json"](settings.out)
    if settings.plot is not None:
        detector.writers()[settings.plot.suffix](settings.plot)
    return detector


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


@dataclass(frozen=True, slots=True)
class DetectorFile:
    """Detectors: a file that `detect calibrate` wrote, or its result."""

    source: Path | Detector

    @classmethod
    def of(cls, value: Any) -> DetectorFile:
        """From a path or a result."""
        return cls(value if isinstance(value, Detector) else Path(value))

    def read(self) -> list[dict[str, Any]]:
        """Raises `InputError`."""
        from fabula.novelty.detector import calibration_row, read_detectors

        if isinstance(self.source, Path):
            return read_detectors(self.source)
        made = self.source.calibrations
        return [calibration_row(c) | {"kind": c.collected.kind} for c in made if c.collected]


@dataclass(frozen=True, slots=True, repr=False)
class DetectorVerdicts(Result):
    """The verdict on each text, or why there is none."""

    kept: list[Row]

    def rows(self) -> list[Row]:
        return self.kept

    def tables(self) -> list[Block]:
        from fabula.novelty.tables import verdict_table

        return verdict_table(self.kept)


def apply(
    detector: DetectorFile, scores: Sequence[Rows], settings: ApplySettings
) -> DetectorVerdicts:
    """Apply a DETECTOR that `detect calibrate` wrote to SCORES of other texts.

    A text is either flagged or not flagged; "not flagged" does not mean human. The detector gives a
    reason instead of a verdict if it cannot tell human from machine, if many more human texts than
    `fpr` may be flagged, or if the text differs in kind (length, layout, quotation marks,
    vocabulary) from the human texts that it was calibrated on.

    Raises `InputError`, and `MixError` for scores that were measured in another way.
    """
    from fabula.core.store import write_rows
    from fabula.novelty.detector import apply_to_rows

    detectors, rows = detector.read(), list[Row]()
    for part, name in named_parts(scores):
        rows += apply_to_rows(detectors, part, name, settings.fpr)
    if settings.out is not None:
        write_rows(settings.out, rows, are_results=True)
    return DetectorVerdicts(rows)
