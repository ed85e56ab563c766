"""What `report` does, and its results: a page, tables, comments and plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.jobs.report import ReportSettings
from fabula.jobs.reviewer import Reviewer, corrected, with_verdicts
from fabula.review.found import Review
from fabula.types import Document, Measurement, Rubric

if TYPE_CHECKING:
    from fabula.presentation.sheet import Block


@dataclass(frozen=True, slots=True)
class Reported:
    """The results for some texts."""

    review: Review
    n_marks: int | None = None
    """Borrowed passages that the page marks per 1,000 words; None for its own default."""

    def write_page(self, path: Path) -> None:
        from fabula.presentation.review_page import write_review_page

        write_review_page(path, self.review, n_marks=self.n_marks)

    def write_comments(self, path: Path, source: Path | None) -> int:
        """Write the findings as comments in a copy of `source`; returns how many had no place."""
        from fabula.presentation.comments import write_comments

        return write_comments(path, self.review, source)

    def tables(self) -> list[Block]:
        from fabula.presentation.review_tables import review_tables

        return review_tables(self.review)

    def sheets(self) -> list[Block]:
        """The tables for files, about all texts."""
        from fabula.presentation.review_tables import review_sheets

        return review_sheets(self.review)

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values, with paragraphs on methods and the citations."""
        from fabula.presentation.methods import bibtex_of, methods_of
        from fabula.presentation.review_tables import review_json

        return review_json(self.review) | {
            "methods": methods_of(self.review),
            "bibtex": bibtex_of(self.review),
        }


def report_texts(
    documents: Sequence[Document],
    settings: ReportSettings,
    *,
    verdicts: tuple[Sequence[Measurement], Rubric] | None = None,
    people: Sequence[Measurement] = (),
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> Reported:
    """Run every available instrument, and correct models' verdicts.

    `verdicts` are existing ones, on a rubric; `people` are labels, used if `settings` names no file
    of them. Before anything is measured, raises `InputError` if a text lacks the field `by`, or a
    cost limit has no price, and `CorpusError` for a reference that cannot be opened.
    """
    if settings.by is not None:
        for document in documents:
            document.group(settings.by)
    _check_prices(settings)
    with Reviewer(settings) as reviewer:
        review = reviewer.run(documents, progress, confirm)
    if verdicts is not None:
        review = with_verdicts(review, *verdicts)
    review = replace(review, people=tuple(people) or review.people)
    review = corrected(review, settings.by)
    return Reported(review, settings.marking.n_marks)


def _check_prices(settings: ReportSettings) -> None:
    if settings.asks("verdicts") or settings.asks("feedback"):
        from fabula.models.cost import Budget

        options = settings.models.options()
        for spec in settings.models.models:
            Budget(options.prices.of(spec), options.shared_budget)
