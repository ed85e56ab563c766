"""Notes on drafts as tables: where, what, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fabula.measures.line_notes import LineReview
from fabula.measures.line_read import LINE_KINDS, LineNote, line_of
from fabula.presentation.findings_view import quoted
from fabula.presentation.sheet import Block, Column, Sheet
from fabula.reasons import explain
from fabula.types import Document
from fabula.web import visible

_MAX_CHARS = 60


def line_tables(
    documents: Sequence[Document], reviews: Sequence[LineReview], per_thousand: int
) -> list[Block]:
    """For each draft its first notes in text order, and the number of each kind."""
    parts: list[Block] = []
    for document, review in zip(documents, reviews, strict=True):
        title = visible(document.title)
        if review.missing_reason is not None:
            parts += [f"{title}: not read, {explain(review.missing_reason)}", ""]
            continue
        parts += [f"{title}: {_counted(review)}", ""]
        shown = review.first(per_thousand)
        if shown:
            parts += [_notes(document, shown), ""]
        if n_left := len(review.notes) - len(shown):
            parts += [f"{n_left:,} more; `per_thousand` 0 shows all", ""]
    return [*parts, *dict.fromkeys(review.signature for review in reviews)]


def _counted(review: LineReview) -> str:
    counts = Counter(note.kind for note in review.notes)
    named = [f"{counts[kind]} {kind}" for kind in LINE_KINDS if counts[kind]]
    return f"{review.n_words:,} words; " + (", ".join(named) or "nothing to note")


def _notes(document: Document, notes: Sequence[LineNote]) -> Sheet:
    columns = [
        Column("line", "d", of=lambda note: line_of(document.text, note.start)),
        Column("kind", of=lambda note: LINE_KINDS[note.kind].title.lower()),
        Column("right", ".0%", of=lambda note: LINE_KINDS[note.kind].precision),
        Column("place", of=lambda note: quoted(document.text, note.start, note.end, _MAX_CHARS)),
        Column("why", of=lambda note: visible(note.why)),
    ]
    return Sheet.of("notes", notes, columns, about=("id", document.id))
