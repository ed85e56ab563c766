"""Measure a judge on texts that people have judged, so that its verdicts carry its trust."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.errors import InputError
from fabula.jobs.judging import (
    FOLDER_HELP,
    Judged,
    LabelledSettings,
    ask_judges,
    plan_of,
    with_examples,
)
from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.jobs.result_files import page_setting
from fabula.settings import setting

if TYPE_CHECKING:
    from fabula.judging.trust import Trust
    from fabula.measures.graded import GradedAgreement
    from fabula.measures.rater_agreement import JudgeAgreement, Panel
    from fabula.presentation.sheet import Block
    from fabula.types import Document, Measurement


@dataclass(frozen=True, slots=True)
class CalibrateSettings(LabelledSettings):
    """A run on texts that people have judged."""

    labels: Path | None = setting(
        None,
        help="People's labels for the stories: a table of document, item, rater, value, or a "
        "study's export.",
        default_text="those in the released folder",
    )
    out: Path | None = setting(Path("calibrated"), help=FOLDER_HELP, unit="DIR")
    html: Path | None = page_setting(
        "Write a page here: each verdict and reason beside those of people."
    )


@dataclass(frozen=True, slots=True)
class Calibration:
    """Judges compared with people on the same texts, and what was kept."""

    judged: Judged
    panel: Panel
    judges: list[tuple[JudgeAgreement, list[Trust]]]
    """On yes-no items."""
    graded: GradedAgreement
    graded_trusts: list[Trust]
    """On all other items."""
    book_path: Path | None
    """Where the trust is kept; None if no judge has a name of its own."""

    def trusts(self) -> list[dict[str, Any]]:
        """For JSON: the trust of each judge in each item."""
        return [asdict(one) for _, trusts in self.judges for one in trusts] + [
            asdict(one) for one in self.graded_trusts
        ]

    def tables(self) -> list[Block]:
        from fabula.judging.people import panel_on
        from fabula.measures.rater_agreement import expert_correlation, panel_agreement
        from fabula.presentation.judging_tables import calibration_tables
        from fabula.presentation.rating_tables import graded_tables

        plan, panel = self.judged.plan, self.panel
        parts: list[Block] = []
        if self.judges:
            here = panel_on(panel, {one.document_id for one in self.judged.measurements})
            parts += calibration_tables(
                self.judges,
                panel_agreement(here, plan.rubric, "item", seed=plan.seed),
                panel_agreement(panel, plan.rubric, "item", seed=plan.seed),
                expert_correlation(panel, plan.rubric, seed=plan.seed),
                plan.rubric,
                (_n_documents(here), _n_documents(panel)),
            )
        return parts + (graded_tables(self.graded) if self.graded.people else [])


def _n_documents(panel: Panel) -> int:
    return len({document for document, _ in panel.subjects})


def calibrate_judges(
    documents: Sequence[Document],
    labels: Path,
    settings: CalibrateSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> Calibration:
    """Ask each model about the documents with labels, and keep its agreement with them.

    Writes the page `html`. Raises `InputError`, before anything is paid for, if no labels match the
    documents.
    """
    from fabula.judging.calibrate import calibrate, graded_trust
    from fabula.judging.trust import TrustBook
    from fabula.measures.graded import graded_agreement
    from fabula.measures.labels import read_labels
    from fabula.measures.rater_agreement import panel_of_labels

    plan = plan_of(settings.judging)
    given = read_labels(labels, plan.rubric)
    labelled = {one.document_id for one in given}
    asked = [one for one in documents if one.id in labelled]
    if not asked:
        raise InputError(f"{labels}: labels none of the stories; check that the ids match")
    plan, _ = with_examples(plan, asked, given, settings.n_shots)
    judged = ask_judges(asked, plan, settings, progress=progress, confirm=confirm)
    judged = replace(judged, people=given)
    panel = panel_of_labels(given, plan.rubric, labels.name)
    today = datetime.now(UTC).date().isoformat()
    book = TrustBook()
    said = [one for one in judged.measurements if _has_kappa(one, judged)]
    judges = calibrate(said, panel, plan, book, today) if panel.subjects and said else []
    graded = graded_agreement(judged.measurements, given, plan.rubric, seed=plan.seed)
    rest = graded_trust(judged.measurements, graded, plan, book, labels.name, today)
    if settings.html is not None:
        # Its verdicts carry the trust that was just measured.
        judged.save_page(settings.html)
    is_kept = any(_is_kept(trust) for trust in [*rest, *(t for _, many in judges for t in many)])
    return Calibration(judged, panel, judges, graded, rest, book.path if is_kept else None)


def _has_kappa(one: Measurement, judged: Judged) -> bool:
    return judged.plan.rubric.item(one.item).scale.agreement == "kappa"


def _is_kept(trust: Trust) -> bool:
    from fabula.judging.judging_plan import is_identified

    return is_identified(trust.model)
