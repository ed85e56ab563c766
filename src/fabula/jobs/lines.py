"""Read drafts line by line: which places the writer may want to look at, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabula.jobs.progress import SILENT, Progress
from fabula.jobs.result import Result, Row

if TYPE_CHECKING:
    from fabula.jobs.report import ReportSettings
    from fabula.measures.line_notes import LineReview
    from fabula.presentation.sheet import Block
    from fabula.types import Document


@dataclass(frozen=True, slots=True, repr=False)
class ReadLines(Result):
    """Drafts with their notes."""

    documents: Sequence[Document]
    reviews: Sequence[LineReview]
    per_thousand: int

    def tables(self) -> list[Block]:
        from fabula.presentation.findings_view import line_tables

        return line_tables(self.documents, self.reviews, self.per_thousand)

    def rows(self) -> list[Row]:
        """One row per document: the notes that are shown, and the number of each kind."""
        return [
            review.to_row(document, self.per_thousand)
            for document, review in zip(self.documents, self.reviews, strict=True)
        ]


def read_lines(
    documents: Sequence[Document], settings: ReportSettings, *, progress: Progress = SILENT
) -> ReadLines:
    """The notes on each document. Raises `InputError`, `ModelError` if something is missing."""
    from fabula.measures.line_notes import read_drafts
    from fabula.text import check_documents

    documents = list(check_documents(documents))
    progress.begin("reading line by line", len(documents))
    reviews = []
    for found in read_drafts(documents, ["lines"], settings.grammar, n_jobs=settings.n_processes):
        assert found.lines is not None
        reviews.append(found.lines.without(settings.without, settings.with_))
        progress.advance(1)
    return ReadLines(documents, reviews, settings.per_thousand)
