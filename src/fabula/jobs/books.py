"""Books by chapter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabula.jobs.progress import SILENT, Progress
from fabula.jobs.result import Result, Row

if TYPE_CHECKING:
    from fabula.measures.book import Book
    from fabula.presentation.sheet import Block
    from fabula.types import Document


@dataclass(frozen=True, slots=True, repr=False)
class MeasuredBooks(Result):
    """Texts by chapter, and what determined the numbers."""

    documents: Sequence[Document]
    books: Sequence[Book | None]
    """None for a text without words."""
    n_people: int
    signature: str

    def tables(self) -> list[Block]:
        from fabula.presentation.book_tables import book_tables

        return book_tables(self.documents, self.books, self.n_people, self.signature)

    def rows(self) -> list[Row]:
        """One row per text, with all of its chapters, people and repetitions."""
        return [
            {
                "id": document.id,
                **({"missing_reason": "no_words"} if book is None else book.to_row()),
                "signature": self.signature,
            }
            for document, book in zip(self.documents, self.books, strict=True)
        ]

    def frame_rows(self) -> list[Row]:
        """One row per chapter, with numbers only."""
        return [
            {"id": row["id"], **{k: v for k, v in chapter.items() if k != "characters"}}
            for row in self.rows()
            for chapter in row.get("chapters", ())
        ]


def measure_books(
    documents: Sequence[Document], n_people: int, *, progress: Progress = SILENT
) -> MeasuredBooks:
    """Measure each document by chapter, however short. Raises `InputError`, `ModelError`."""
    from fabula.measures.book import BookInstrument, measure_book, pipelines
    from fabula.text import check_documents

    documents = list(check_documents(documents))
    progress.begin("measuring chapters", len(documents))
    books = []
    for document in documents:
        books.append(measure_book(document, *pipelines(), always=True))
        progress.advance(1)
    return MeasuredBooks(documents, books, n_people, str(BookInstrument().signature))
