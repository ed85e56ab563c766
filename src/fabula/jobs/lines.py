"""Read drafts line by line: which places the writer may want to look at, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fabula.jobs.engine import Processes
from fabula.jobs.progress import SILENT, Progress
from fabula.settings import Between, setting

if TYPE_CHECKING:
    from fabula.measures.line_notes import LineReview
    from fabula.presentation.sheet import Block
    from fabula.types import Document


def _is_kind(name: str) -> str | None:
    from fabula.measures.line_read import LINE_KINDS

    return None if name in LINE_KINDS else f"{name!r}: must be one of {', '.join(LINE_KINDS)}"


@dataclass(frozen=True, slots=True)
class LineSettings(Processes):
    """What is noted, and how much of it is shown."""

    without: tuple[str, ...] = setting(
        (),
        help="Leave a kind of note out: name, renamed, sentence, spelling, grammar, tag, stock, "
        "beginning, echo or long; repeat it for several.",
        unit="KIND",
        check=_is_kind,
    )
    with_: tuple[str, ...] = setting(
        (),
        help="Turn on a kind of note that is off by default, since it is wrong more often than "
        "right: stock, echo or long; repeat it for several.",
        unit="KIND",
        option="with",
        check=_is_kind,
    )
    per_thousand: int = setting(
        10, help="Show the N most important notes per thousand words (0: all).", check=Between(0)
    )
    grammar: str = setting(
        "harper",
        help="harper, languagetool (its server, as languagetool@URL if not on port 8081), or none.",
        unit="CHECKER",
    )


@dataclass(frozen=True, slots=True)
class ReadLines:
    """Drafts with their notes."""

    documents: Sequence[Document]
    reviews: Sequence[LineReview]
    per_thousand: int

    def tables(self) -> list[Block]:
        from fabula.presentation.line_tables import line_tables

        return line_tables(self.documents, self.reviews, self.per_thousand)

    def to_json(self) -> list[dict[str, Any]]:
        """One row per document: the notes that are shown, and the number of each kind."""
        return [
            review.to_row(document, self.per_thousand)
            for document, review in zip(self.documents, self.reviews, strict=True)
        ]


def read_lines(
    documents: Sequence[Document], settings: LineSettings, *, progress: Progress = SILENT
) -> ReadLines:
    """The notes on each document. Raises `InputError`, `ModelError` if something is missing."""
    from fabula.measures.draft_reading import read_drafts
    from fabula.text import check_documents

    documents = list(check_documents(documents))
    progress.begin("reading line by line", len(documents))
    reviews = []
    for found in read_drafts(documents, ["lines"], settings.grammar, n_jobs=settings.n_processes):
        assert found.lines is not None
        reviews.append(found.lines.without(settings.without, settings.with_))
        progress.advance(1)
    return ReadLines(documents, reviews, settings.per_thousand)
