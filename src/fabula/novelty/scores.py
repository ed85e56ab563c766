"""The rows of `scores.jsonl`: how a text's originality is written, and how a run resumes.

How probable texts are to a language model, as scores to tell human from machine.

Mean log-likelihood and log-rank (Gehrmann, Strobelt and Rush 2019), and the conditional probability
curvature of Fast-DetectGPT (Bao et al. 2024) with one model for sampling and scoring.

A model's probabilities depend on line breaks, on curly or straight quotation marks, and on the
spaces a tokeniser left before punctuation. These come from the software with which a text was typed
or published, not from its author, and where texts by people and by machines were collected
differently they alone separate the two. So texts are read without them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.core import __version__
from fabula.core.errors import InputError
from fabula.core.resume import RowKind, Share, kept_rows
from fabula.core.store import text_digest
from fabula.core.types import Document, Signature
from fabula.novelty.measure import Originality, OriginalityMeasure
from fabula.novelty.passages import BorrowedPassage, BorrowedRun, words_of
from fabula.reference.backend import Occurrence
from fabula.reference.exclude import CopyRule
from fabula.text import TextWords, check_documents
from fabula.text.clusters import Sketch, sketch_of

if TYPE_CHECKING:
    from fabula.models.surprisal import Likelihood, SurprisalModel


Row = dict[str, Any]

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


_RANKS = ("passages", "commonplaces", "longest_run", "word_counts", "by_chance")


def to_row(result: Originality) -> Row:
    """A result as a row of `scores.jsonl`: our fields first, then the document's own.

    The document's fields whose names are used here get the prefix `input_`.
    """
    document, ranked = result.document, result.ranked
    in_reference, of_ranks = None, dict[str, Any]()
    if result.n_known_words:
        # A text half of which is in the reference was hardly collected independently of it.
        copied = words_of(run for run in result.borrowed if run.n_words >= COPIED_RUN)
        in_reference = round(len(copied) / result.n_words, 4)
    if ranked is not None:
        of_ranks = {
            "passages": [
                _ranked_row(passage) | {"sources": list(map(_source_row, passage.sources))}
                for passage in ranked.passages
            ],
            "commonplaces": list(map(_ranked_row, ranked.commonplaces)),
            "longest_run": ranked.longest_run,
            "word_counts": ranked.word_counts,
            "by_chance": None if ranked.by_chance is None else round(ranked.by_chance, 4),
        }
    row: Row = {
        "id": document.id,
        "text_digest": text_digest(document.text),
        "n_words": result.n_words,
        "n_known_words": result.n_known_words,
        "uniqueness": {str(level): value for level, value in result.uniqueness.items()},
        "creativity_index": result.creativity_index,
        "covered": [_borrowed_row(run, result.words) for run in result.borrowed],
        "excluded": [
            {"id": copy.id, "title": copy.title, "reason": copy.reason} for copy in result.excluded
        ],
        "in_reference": in_reference,
        **(of_ranks or dict.fromkeys(_RANKS)),
        "n_reference_words": result.n_reference_words,
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


def probability_row(result: Probability) -> Row:
    """A model's score of a text as a row, with the document's own fields as in `to_row`."""
    likelihood, document = result.likelihood, result.document
    row: Row = {
        "id": document.id,
        "text_digest": text_digest(document.text),
        "n_tokens": likelihood.n_tokens,
        "log_likelihood": likelihood.log_likelihood,
        "log_rank": likelihood.log_rank,
        "curvature": likelihood.curvature,
        "missing_reason": likelihood.missing_reason,
        "signature": str(result.signature),
    }
    return _with_own(row, document)


def _with_own(row: Row, document: Document) -> Row:
    """The row with the text's sketch and the document's own fields, as `to_row` says."""
    row["sketch"] = sketch_of(document.text).to_row()
    return document.beside(row, _OWN_NAMES)


def _borrowed_row(run: BorrowedRun, words: TextWords) -> Row:
    row: Row = {"start": run.span.start, "end": run.span.end, "n_words": run.n_words}
    sources = list(map(_source_row, run.sources))
    if (near := run.counterpart) is None:
        assert run.attribution is not None
        if run.attribution.missing_sources is not None:
            row["missing_sources"] = run.attribution.missing_sources
        return row | {
            "kind": "verbatim",
            "count": run.count,
            "n_documents": run.n_documents,
            "sources": sources,
        }
    # Each content word of the run with the most similar word of the source.
    text, theirs = near.source.document.text, near.words
    pairs = [
        {
            "start": int(words.starts[run.first_word + i]),
            "end": int(words.ends[run.first_word + i]),
            "source": text[int(theirs.starts[j]) : int(theirs.ends[j])],
            "source_start": int(theirs.starts[j]),
            "similarity": 1.0
            if words.words[run.first_word + i] == theirs.words[j]
            else min(round(cosine, 3), 0.999),
        }
        for i, j, cosine in near.pairs
    ]
    similarity = _near_similarity(near.similarity)
    return row | {"kind": "near", "similarity": similarity, "sources": sources, "pairs": pairs}


def _ranked_row(passage: BorrowedPassage) -> Row:
    bits, over_chance = passage.bits, passage.over_chance
    return {
        "start": passage.span.start,
        "end": passage.span.end,
        "n_words": passage.n_words,
        "n_verbatim": passage.n_verbatim,
        "bits": None if bits is None else round(bits, 2),
        "over_chance": None if over_chance is None else round(over_chance, 2),
        "count": passage.count,
        "n_documents": passage.n_documents,
        "runs": [
            {"start": run.span.start, "end": run.span.end, "n_words": run.n_words}
            | ({"similarity": _near_similarity(run.similarity)} if run.counterpart else {})
            for run in passage.runs
        ],
    }


def _near_similarity(similarity: float) -> float:
    """A near match is not verbatim, whatever the mean over its content words."""
    return min(round(similarity, 4), 0.9999)


def _source_row(source: Occurrence) -> Row:
    """A source in citation form, with the words around the span: whole ones only, if possible."""
    document, span = source.document, source.span
    before = document.text[max(0, span.start - _CONTEXT_CHARS) : span.start]
    after = document.text[span.end : span.end + _CONTEXT_CHARS]
    if len(before) == _CONTEXT_CHARS and " " in before:
        before = before.partition(" ")[2]
    if len(after) == _CONTEXT_CHARS and " " in after:
        after = after.rpartition(" ")[0]
    return {
        "id": document.id,
        "title": document.meta.get("title"),
        "author": document.author,
        "year": document.meta.get("year"),
        "start": span.start,
        "end": span.end,
        "before": before,
        "text": document.text[span.start : span.end],
        "after": after,
    }


def ranked_passages(document: Document, row: Mapping[str, Any]) -> list[Row]:
    """The borrowed passages of a row, as tables list them, in rank order."""
    rows = []
    for rank, passage in enumerate(row["passages"] or (), 1):
        over_chance, sources = passage["over_chance"], passage["sources"]
        source = str(sources[0]["title"] or sources[0]["id"]) if sources else ""
        quote = " ".join(document.text[passage["start"] : passage["end"]].split())
        # By bits over chance, or by words if bits are unknown.
        score = passage["n_words"] if over_chance is None else over_chance
        fields = {"id": document.id, "rank": rank, "quote": quote, "score": score, "source": source}
        rows.append(dict(passage) | fields)
    return rows


def first_passages(passages: Iterable[Row]) -> list[Row]:
    """Those that fit in a table, the least probable first; ties in the order of the texts."""
    return sorted(passages, key=lambda passage: -passage["score"])[:_MAX_IN_TABLE]


_Rows = Iterator[tuple[Document, dict[str, Any]]]


def run_measure(
    measure: OriginalityMeasure | ProbabilityMeasure,
    documents: Iterable[Document],
    out: Path | None = None,
    *,
    row_of: Callable[[Any], dict[str, Any]] = to_row,
    rows_of: Callable[[Iterable[Document]], _Rows] | None = None,
    restart: bool = False,
    share: Share | None = None,
) -> _Rows:
    """Each document with its row, in order; a row is written to `out` before it is yielded.

    Rows already there, from an interrupted run, are reused if they belong to the same texts in the
    same order, measured in the same way. row_of: of a result. rows_of: of new texts, where they are
    measured elsewhere.
    """
    signature, stream = str(measure.signature), iter(check_documents(documents))

    def made(new: Iterable[Document]) -> _Rows:
        results = ((result.document, row_of(result)) for result in measure.measure(new))
        for document, row in results if rows_of is None else rows_of(new):
            yield document, row | {"asked": measure.asked(document)}

    if out is None:
        yield from made(stream)
        return
    with kept_rows(out, _SCORES, restart=restart, share=share) as kept:
        for row in kept.kept():
            if Sketch.of_row(row.get("sketch")) is None:
                raise InputError(
                    f"{out}: written by another version; choose another `out`, or score again with "
                    "`restart`"
                )
        kept.begin()

        def stored(document: Document) -> dict[str, Any] | None:
            digest, asked = text_digest(document.text), measure.asked(document)
            key = {"id": document.id, "text_digest": digest, "signature": signature}
            return kept.find({**key, "asked": asked})

        of_share = stream if share is None else share.of(stream)
        pairs = ((document, stored(document)) for document in of_share)
        rows = []
        # New rows are made for each stretch of texts without one.
        for is_there, stretch in groupby(pairs, lambda pair: pair[1] is not None):
            for document, known in stretch if is_there else made(doc for doc, _ in stretch):
                assert known is not None
                (kept.keep if is_there else kept.add)(known)
                # Rows that were measured again are put in order at the end.
                if kept.has_stale:
                    rows.append(known)
                yield document, known
        kept.check_end()
        kept.settle(rows)


PLAIN = "plain1"
"""Name of these rules; it changes when they do, and is part of signatures."""

_ONE_KIND = str.maketrans(
    {
        **dict.fromkeys("’‘ʼ＇‛´′`", "'"),
        **dict.fromkeys("“”„‟«»″〝〞＂", '"'),
        **dict.fromkeys("‐‑", "-"),
        "…": "...",
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff", ""),
    }
)
_RULES = [
    # Emphasis, headings, quotation levels and rules, as in Markdown and mail.
    (re.compile(r"[*_~|\\]+|(?<!\S)(?:#+|>+|-{3,}|={3,})(?!\S)|#{2,}"), " "),
    (re.compile(r"``|‘‘"), "“"),
    (re.compile(r"''|’’"), "”"),
    (re.compile(r"[“„«‟〝]\s+"), "“"),
    (re.compile(r"\s+([”»〞])"), r"\1"),
    (re.compile(r"\s*(?:[–—―−]|--+)\s*|\s+-\s+"), " - "),
    (re.compile(r"\.(?:\s?\.){2,}"), "…"),
    # What a tokeniser split: ca n't, it 's, so ; he said .
    (re.compile(r"(?<=\w)\s+(?=(?:n['’]t|['’](?:s|re|ve|ll|d|m))\b)", re.IGNORECASE), ""),
    (re.compile(r"\s+(?=[.,;:!?%)\]…]+(?:\s|$|[\"”'’]))"), ""),
    (re.compile(r"(?<=[(\[])\s+"), ""),
]
_spaces = re.compile(r"\s+")


def plain_text(text: str) -> str:
    """`text` on one line, with one kind of quotation mark, dash and space.

    Words, their order and their case are kept. Applying it twice changes nothing more.
    """
    before, plain = "", unicodedata.normalize("NFC", text)
    while plain != before:
        # A rule may make an earlier one applicable; each shortens the text or leaves fewer kinds.
        before = plain
        for pattern, instead in _RULES:
            plain = pattern.sub(instead, plain)
        plain = _spaces.sub(" ", plain.translate(_ONE_KIND)).strip()
    return plain


@dataclass(frozen=True, slots=True)
class Probability:
    """A model's scores of one document."""

    document: Document
    likelihood: Likelihood
    signature: Signature


class ProbabilityMeasure:
    """The measure with its open model, ready for documents."""

    def __init__(self, model: SurprisalModel) -> None:
        self._model = model
        self.signature = Signature.of(
            "probability",
            model=model.name,
            run=model.runtime,
            ctx=str(model.max_context),
            text=PLAIN,
            v=__version__,
        )

    def asked(self, document: Document) -> dict[str, Any]:
        """Nothing else determines a row."""
        return {}

    def measure(self, documents: Iterable[Document]) -> Iterator[Probability]:
        """Measure documents as they come, in order."""
        for document in check_documents(documents):
            likelihood = self._model.likelihood(plain_text(document.text))
            yield Probability(document, likelihood, self.signature)
