"""Measure a judge on texts that people have judged, so that its verdicts carry its trust."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fabula.errors import InputError
from fabula.jobs.given import Labels
from fabula.jobs.job import Stream
from fabula.jobs.judging import (
    FOLDER_HELP,
    Judged,
    LabelledSettings,
    ask_judges,
    plan_of,
    with_examples,
)
from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.jobs.result import Result, Row
from fabula.jobs.result_files import page_setting
from fabula.settings import SettingsError, setting

if TYPE_CHECKING:
    from fabula.judging.trust import Trust
    from fabula.measures.agreement import GradedAgreement, JudgeAgreement, Panel
    from fabula.presentation.sheet import Block


@dataclass(frozen=True, slots=True)
class CalibrateSettings(LabelledSettings):
    """A run on texts that people have judged."""

    labels: Labels | None = setting(
        None,
        help="People's labels for the stories: a table of document, item, rater, value, or a "
        "study's export.",
        default_text="those in the released folder",
    )
    out: Path | None = setting(Path("calibrated"), help=FOLDER_HELP, unit="DIR")
    html: Path | None = page_setting(
        "Write a page here: each verdict and reason beside those of people."
    )


@dataclass(frozen=True, slots=True, repr=False)
class Calibration(Result):
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

    def rows(self) -> list[Row]:
        """The trust of each judge in each item."""
        trusts = [one for _, mine in self.judges for one in mine]
        return [asdict(one) for one in [*trusts, *self.graded_trusts]]

    def tables(self) -> list[Block]:
        from fabula.measures.agreement import expert_correlation, panel_agreement
        from fabula.presentation.judging_tables import calibration_tables
        from fabula.presentation.rating_tables import graded_tables

        plan, panel = self.judged.plan, self.panel
        parts: list[Block] = []
        if self.judges:
            here = panel.on({one.document_id for one in self.judged.said})
            parts += calibration_tables(
                self.judges,
                panel_agreement(here, plan.rubric, "item", seed=plan.seed),
                panel_agreement(panel, plan.rubric, "item", seed=plan.seed),
                expert_correlation(panel, plan.rubric, seed=plan.seed),
                plan.rubric,
                (_n_documents(here), _n_documents(panel)),
            )
        return parts + (graded_tables(self.graded) if self.graded.people else [])

    def notices(self) -> Sequence[str]:
        return self.judged.notices()

    def written(self) -> Sequence[Path]:
        return () if self.book_path is None else (self.book_path,)

    def lacking(self) -> str | None:
        return self.judged.lacking()

    def writers(self) -> dict[str, Any]:
        return self.judged.writers()


def _n_documents(panel: Panel) -> int:
    return len({document for document, _ in panel.subjects})


def calibrate(
    stories: Annotated[Stream, "DIR|STORIES"],
    settings: CalibrateSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> Calibration:
    """Measure how far a judge agrees with people on stories that people have judged.

    STORIES with `labels`, for any rubric; or DIR, the folder Art_or_Artifice of
    github.com/salesforce/creativity_eval, which holds the texts of 36 of the 48 stories of TTCW and
    their experts' verdicts. The judge is compared with people on the same stories. Its agreement is
    saved by model, wording, style and mode, and shown with every later verdict of that judge.

    Raises `InputError`, before anything is paid for, if no labels match the stories.
    """
    from fabula.judging.judging_plan import is_identified
    from fabula.judging.trust import TrustBook, graded_trust, released_folder
    from fabula.judging.trust import calibrate as calibrated
    from fabula.measures.agreement import graded_agreement, panel_of_labels

    if settings.labels is not None:
        documents, labels = list(stories), settings.labels
    elif len(stories.names) == 1:
        documents, path = released_folder(Path(stories.names[0]))
        labels = Labels(path)
    else:
        raise SettingsError(
            "labels", "are needed for stories; without them, give the one released folder"
        )
    plan = plan_of(settings.judging)
    given = labels.read(plan.rubric)
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
    said = [one for one in judged.said if plan.rubric.item(one.item).scale.agreement == "kappa"]
    judges = calibrated(said, panel, plan, book, today) if panel.subjects and said else []
    graded = graded_agreement(judged.said, given, plan.rubric, seed=plan.seed)
    rest = graded_trust(judged.said, graded, plan, book, labels.name, today)
    if settings.html is not None:
        # Its verdicts carry the trust that was just measured.
        judged.save_page(settings.html)
    trusts = [*rest, *(trust for _, many in judges for trust in many)]
    is_kept = any(is_identified(trust.model) for trust in trusts)
    return Calibration(judged, panel, judges, graded, rest, book.path if is_kept else None)
