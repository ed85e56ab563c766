"""The rows of `scores.jsonl`: how a text's originality is written, and how a run goes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from fabula.errors import InputError
from fabula.measures.originality import Borrowed, Originality, OriginalityMeasure
from fabula.reference import Occurrence
from fabula.reference.layout import text_digest
from fabula.store import RowWriter
from fabula.types import Document

__all__ = ["ScoreRun", "to_row"]

_CONTEXT_CHARS = 60


class ScoreRun:
    """Measures documents into rows, and appends them to a file if there is one.

    Rows that the file holds already, from a run that was interrupted, are taken from there, if
    they are of the same texts in the same order, measured in the same way.
    """

    def __init__(
        self, measure: OriginalityMeasure, out: Path | None, *, restart: bool = False
    ) -> None:
        self._measure = measure
        self._out = out
        self._restart = restart

    def rows(self, documents: Iterable[Document]) -> Iterator[tuple[Document, dict[str, Any]]]:
        """Each document with its row, in order; a row is in the file before it is handed out."""
        if self._out is None:
            for result in self._measure.measure(documents):
                yield result.document, to_row(result)
            return
        with RowWriter(self._out) as file:
            for number, row in enumerate(file.kept, 1):
                if not {"id", "creativity_index", "signature"} <= row.keys():
                    raise InputError(
                        f"{self._out}, line {number}: not a row of scores; choose another --out"
                    )
            if self._restart:
                file.clear()
            file.begin()
            stream = iter(documents)
            yield from self._kept(file, stream)
            for result in self._measure.measure(stream):
                row = to_row(result)
                file.write(row)
                yield result.document, row

    def _kept(
        self, file: RowWriter, stream: Iterator[Document]
    ) -> Iterator[tuple[Document, dict[str, Any]]]:
        signature = str(self._measure.signature)
        for number, row in enumerate(file.kept, 1):
            document = next(stream, None)
            expected = document and (document.id, text_digest(document.text), signature)
            if document is None or expected != (
                row.get("id"),
                row.get("text_digest"),
                row.get("signature"),
            ):
                raise InputError(
                    f"{file.path}, line {number}: holds the score of another text or of another "
                    f"way to measure; choose another --out, or begin anew with --restart"
                )
            yield document, row


def to_row(result: Originality) -> dict[str, Any]:
    """A result as a row of `scores.jsonl`: ours first, then the document's own fields.

    An own field of a name that is used here gets `input_` before it.
    """
    document = result.document
    row: dict[str, Any] = {
        "id": document.id,
        "text_digest": text_digest(document.text),
        "n_words": result.n_words,
        "n_known_words": result.n_known_words,
        "uniqueness": {str(level): value for level, value in result.uniqueness.items()},
        "creativity_index": result.creativity_index,
        "covered": [_borrowed_row(borrowed) for borrowed in result.borrowed],
        "excluded": [
            {"id": copy.id, "title": copy.title, "reason": copy.reason} for copy in result.excluded
        ],
        "missing_reason": result.missing_reason,
        "signature": str(result.signature),
    }
    own = {"author": document.author, "prompt_id": document.prompt_id}
    own = {key: value for key, value in own.items() if value is not None} | dict(document.meta)
    return row | {f"input_{key}" if key in row else key: value for key, value in own.items()}


def _borrowed_row(borrowed: Borrowed) -> dict[str, Any]:
    found = borrowed.attribution
    return {
        "start": borrowed.span.start,
        "end": borrowed.span.end,
        "n_words": borrowed.n_words,
        "count": found.count,
        "n_documents": None if found.is_bounded else found.n_documents,
        "sources": [_source_row(source) for source in found.sources],
    }


def _source_row(source: Occurrence) -> dict[str, Any]:
    """A source as people cite it, with the words around the span."""
    document, span = source.document, source.span
    return {
        "id": document.id,
        "title": document.meta.get("title"),
        "author": document.author,
        "year": document.meta.get("year"),
        "start": span.start,
        "end": span.end,
        "before": _context(document.text[max(0, span.start - _CONTEXT_CHARS) : span.start], -1),
        "text": document.text[span.start : span.end],
        "after": _context(document.text[span.end : span.end + _CONTEXT_CHARS], 1),
    }


def _context(text: str, side: Literal[-1, 1]) -> str:
    """Whole words only, where there is a space to cut at."""
    if len(text) < _CONTEXT_CHARS:
        return text
    if side < 0:
        _, space, rest = text.partition(" ")
        return rest if space else text
    rest, space, _ = text.rpartition(" ")
    return rest if space else text
