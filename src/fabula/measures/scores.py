"""The rows of `scores.jsonl`: how a text's originality is written, and how a run resumes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

import numpy as np

from fabula.errors import InputError
from fabula.measures.borrowed_passages import BorrowedPassage
from fabula.measures.counterparts import Counterpart
from fabula.measures.originality_measure import Borrowed, Originality
from fabula.measures.probability import Probability
from fabula.reference import Occurrence
from fabula.reference.exclude import CopyRule
from fabula.reference.layout import text_digest
from fabula.resume import KeptRows, RowKind, Share, kept_rows
from fabula.text import check_documents
from fabula.text.sketch import Sketch, sketch_of
from fabula.types import Document, Signature

DIRECTIONS: Mapping[str, int] = {
    "creativity_index": 1,
    "log_likelihood": -1,
    "log_rank": 1,
    "curvature": -1,
}
"""1 if human texts are expected to score higher than machine texts, -1 if lower.

The index: Lu et al. 2024. Mean log-likelihood and log-rank: Gehrmann et al. 2019 (as positive
logarithms of ranks, so that rarer tokens give more). Curvature: Bao et al. 2024.
"""

COPIED_RUN, COPIED_SHARE = CopyRule().cover_run, CopyRule().cover
"""Thresholds for texts mostly in the reference: those of the rule that excludes copies."""

_SCORES = RowKind("the score", ("id",), ("text_digest", "signature"), in_order=True)
_CONTEXT_CHARS = 60
_MAX_IN_TABLE = 10
"""Borrowed passages in a table."""
_OWN_NAMES = {*DIRECTIONS, "asked", "in_reference", "missing_detail", "remarks", "sketch", "spread"}
"""Fields that a row may set: never taken from the text's own fields."""


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A borrowed passage from a row of scores, as shown in a table."""

    id: str
    """Its text's."""
    quote: str
    rank: int
    """In its text, from 1."""
    n_words: int
    n_verbatim: int
    bits: float | None
    over_chance: float | None
    count: int
    n_documents: int | None
    score: float
    """Its rank: bits over chance, or words if bits are unknown."""
    source: str
    """The title of the first named source."""

    @classmethod
    def of_row(cls, document: Document, row: Mapping[str, Any]) -> list[RankedPassage]:
        """Those of a row, in rank order."""
        same = "n_words", "n_verbatim", "bits", "over_chance", "count", "n_documents"
        found = []
        for rank, passage in enumerate(row["passages"] or (), 1):
            text = document.text[passage["start"] : passage["end"]]
            over_chance, sources = passage["over_chance"], passage["sources"]
            found.append(
                cls(
                    id=document.id,
                    quote=" ".join(text.split()),
                    rank=rank,
                    **{name: passage[name] for name in same},
                    score=passage["n_words"] if over_chance is None else over_chance,
                    source=str(sources[0]["title"] or sources[0]["id"]) if sources else "",
                )
            )
        return found


def first_passages(passages: Iterable[RankedPassage]) -> list[RankedPassage]:
    """Those that fit in a table, the least probable first; ties in the order of the texts."""
    return sorted(passages, key=lambda one: -one.score)[:_MAX_IN_TABLE]


class Scored(Protocol):
    """The result of a measure for one document."""

    @property
    def document(self) -> Document: ...


S = TypeVar("S", bound=Scored)
S_co = TypeVar("S_co", bound=Scored, covariant=True)


class Scorer(Protocol[S_co]):
    """A measure with one result per document, all with one signature."""

    @property
    def signature(self) -> Signature: ...

    def asked(self, document: Document) -> dict[str, Any]:
        """What else determines the document's row, besides its text and the signature."""

    def measure(self, documents: Iterable[Document]) -> Iterator[S_co]: ...


class ScoreRun(Generic[S]):
    """Measures documents into rows, and appends them to a file if there is one.

    Rows already in the file, from an interrupted run, are reused if they belong to the same texts
    in the same order, measured in the same way.
    """

    def __init__(
        self,
        measure: Scorer[S],
        row_of: Callable[[S], dict[str, Any]],
        out: Path | None,
        *,
        restart: bool = False,
        share: Share | None = None,
    ) -> None:
        self._measure = measure
        self._row_of = row_of
        self._out = out
        self._restart = restart
        self._share = share

    def rows(self, documents: Iterable[Document]) -> Iterator[tuple[Document, dict[str, Any]]]:
        """Each document with its row, in order; a row is written before it is yielded."""
        stream = iter(check_documents(documents))
        if self._share is not None:
            stream = self._share.of(stream)
        with kept_rows(self._out, _SCORES, restart=self._restart, share=self._share) as rows:
            for row in rows.kept():
                if Sketch.of_row(row.get("sketch")) is None:
                    raise InputError(
                        f"{self._out}: written by another version; choose another `out`, or score "
                        f"again with `restart`"
                    )
            rows.begin()
            found = []
            for document, row in self._made(rows, stream):
                # Rows that were measured again are put in order at the end.
                if rows.has_stale:
                    found.append(row)
                yield document, row
            rows.check_end()
            rows.settle(found)

    def _made(
        self, rows: KeptRows, stream: Iterator[Document]
    ) -> Iterator[tuple[Document, dict[str, Any]]]:
        """The existing rows and, for each stretch of texts without one, new rows."""
        found = ((document, rows.find(self._expected(document))) for document in stream)
        for is_there, stretch in groupby(found, lambda one: one[1] is not None):
            if is_there:
                for document, row in stretch:
                    if row is not None:
                        rows.keep(row)
                        yield document, row
                continue
            for result in self._measure.measure(document for document, _ in stretch):
                row = self._row_of(result) | {"asked": self._measure.asked(result.document)}
                rows.add(row)
                yield result.document, row

    def _expected(self, document: Document) -> dict[str, Any]:
        """What a row of this text must contain to be reused."""
        return {
            "id": document.id,
            "text_digest": text_digest(document.text),
            "signature": str(self._measure.signature),
            "asked": self._measure.asked(document),
        }


def to_row(result: Originality) -> dict[str, Any]:
    """A result as a row of `scores.jsonl`: our fields first, then the document's own.

    The document's fields whose names are used here get the prefix `input_`.
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
        "in_reference": _share_in_reference(result),
        **_ranked_row(result),
        "missing_reason": result.missing_reason,
        "signature": str(result.signature),
    }
    if result.detail is not None:
        row["missing_detail"] = result.detail
    if result.remarks:
        row["remarks"] = list(result.remarks)
    if result.spread is not None:
        row["spread"] = asdict(result.spread) | {
            "uniqueness": [round(value, 6) for value in result.spread.uniqueness]
        }
    return _with_own(row, document)


def _share_in_reference(result: Originality) -> float | None:
    """The share of words in borrowed runs of at least `COPIED_RUN`; None if unknown.

    A text half of which is in the reference was hardly collected independently of it.
    """
    if not result.n_known_words:
        return None
    inside = np.zeros(result.n_words, np.bool_)
    for borrowed in result.borrowed:
        if borrowed.n_words >= COPIED_RUN:
            inside[borrowed.first_word : borrowed.first_word + borrowed.n_words] = True
    return round(float(inside.mean()), 4)


def probability_row(result: Probability) -> dict[str, Any]:
    """A model's score of a text as a row, with the document's own fields as in `to_row`."""
    found, document = result.likelihood, result.document
    row: dict[str, Any] = {
        "id": document.id,
        "text_digest": text_digest(document.text),
        "n_tokens": found.n_tokens,
        "log_likelihood": found.log_likelihood,
        "log_rank": found.log_rank,
        "curvature": found.curvature,
        "missing_reason": found.missing_reason,
        "signature": str(result.signature),
    }
    return _with_own(row, document)


def _with_own(row: dict[str, Any], document: Document) -> dict[str, Any]:
    """The row with the text's sketch and the document's own fields.

    Fields whose names are used get the prefix `input_`.
    """
    row["sketch"] = sketch_of(document.text).to_row()
    return document.beside(row, _OWN_NAMES)


def _borrowed_row(borrowed: Borrowed) -> dict[str, Any]:
    row: dict[str, Any] = {
        "start": borrowed.span.start,
        "end": borrowed.span.end,
        "n_words": borrowed.n_words,
    }
    found, near = borrowed.attribution, borrowed.counterpart
    if near is not None:
        return row | {
            "kind": "near",
            "similarity": _near_similarity(near.similarity),
            "sources": [_source_row(near.source)],
            "pairs": _pair_rows(borrowed, near),
        }
    assert found is not None
    if found.missing_sources is not None:
        row["missing_sources"] = found.missing_sources
    return row | {
        "kind": "verbatim",
        "count": found.count,
        "n_documents": None if found.is_bounded else found.n_documents,
        "sources": [_source_row(source) for source in found.sources],
    }


def _ranked_row(result: Originality) -> dict[str, Any]:
    """Borrowed passages and commonplaces, each with its rank."""
    ranked = result.ranked
    return {
        "passages": None
        if ranked is None
        else [
            _ranked_run(one) | {"sources": list(map(_source_row, one.sources))}
            for one in ranked.passages
        ],
        "commonplaces": None if ranked is None else list(map(_ranked_run, ranked.commonplaces)),
        "longest_run": None if ranked is None else ranked.longest_run,
        "word_counts": None if ranked is None else ranked.word_counts,
        "n_reference_words": result.n_reference_words,
    }


def _ranked_run(passage: BorrowedPassage) -> dict[str, Any]:
    return {
        "start": passage.span.start,
        "end": passage.span.end,
        "n_words": passage.n_words,
        "n_verbatim": passage.n_verbatim,
        "bits": _rounded(passage.bits),
        "over_chance": _rounded(passage.over_chance),
        "count": passage.count,
        "n_documents": passage.n_documents,
        "runs": [
            {"start": run.span.start, "end": run.span.end, "n_words": run.n_words}
            | ({} if run.similarity is None else {"similarity": _near_similarity(run.similarity)})
            for run in passage.runs
        ],
    }


def _rounded(bits: float | None) -> float | None:
    return None if bits is None else round(bits, 2)


def _near_similarity(similarity: float) -> float:
    """A near match is not verbatim, whatever the mean over its content words."""
    return min(round(similarity, 4), 0.9999)


def _pair_rows(borrowed: Borrowed, near: Counterpart) -> list[dict[str, Any]]:
    """Each content word of the span with the most similar word of the source."""
    text, words = near.source.document.text, near.words
    return [
        {
            "start": int(borrowed.words.starts[mine]),
            "end": int(borrowed.words.ends[mine]),
            "source": text[int(words.starts[theirs]) : int(words.ends[theirs])],
            "source_start": int(words.starts[theirs]),
            "similarity": 1.0
            if borrowed.words.words[mine] == words.words[theirs]
            else min(round(cosine, 3), 0.999),
        }
        for mine, theirs, cosine in near.pairs
    ]


def _source_row(source: Occurrence) -> dict[str, Any]:
    """A source in citation form, with the words around the span."""
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
    """Whole words only, if there is a space to cut at."""
    if len(text) < _CONTEXT_CHARS or " " not in text:
        return text
    return text.partition(" ")[2] if side < 0 else text.rpartition(" ")[0]
