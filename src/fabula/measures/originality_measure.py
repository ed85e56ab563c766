"""How original a text is against a reference: L-uniqueness, Creativity Index, borrowed spans.

Lu et al. 2024, "AI as Humanity's Salieri", section "Creativity Index":

- the *L-uniqueness* of a text is the share of its words that lie in no n-gram, n >= L, that occurs
  in the reference;
- its *Creativity Index* is the sum of its L-uniqueness over a range of L, 5 to 12 in the paper
  (appendix B.3), so 0 to 8.

Both follow from the length of the longest n-gram that starts at each word and occurs in the
reference, since every part of an n-gram that occurs does so too.

What the paper leaves open: a text with fewer than L words has no n-gram to look for, so its
L-uniqueness is missing, and so is its index; a text without a single word known to the reference is
in another language or spelling, and its originality is missing, not perfect.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fabula import __version__
from fabula.errors import FabulaError, InputError, LookupFailed
from fabula.measures.borrowed_passages import (
    BorrowedRun,
    RankedRuns,
    WordInformation,
    rank_runs,
    trim_near,
)
from fabula.measures.counterparts import Counterpart
from fabula.measures.exclusion import ExcludeIds, ExcludeSame, own_field
from fabula.measures.near import NearSearch, NearSettings
from fabula.measures.spread import Spread, find_spread
from fabula.measures.uniqueness import Levels, uniqueness
from fabula.reference import Attribution, Backend, LocatedText, Reference
from fabula.reference.backend import Matches, ServerAway
from fabula.reference.exclude import Copies, Copy, CopyRule, find_copies, maximal_spans
from fabula.text import TextWords, check_documents
from fabula.text.language import not_english
from fabula.types import Document, Measurement, Signature, Span

if TYPE_CHECKING:
    from fabula.measures.near_paper import PaperSearch
    from fabula.measures.quoting import QuoteJudge

_BATCH_WORDS = 100_000
_FAR_BATCH_WORDS = 10_000


@dataclass(frozen=True, slots=True)
class Borrowed:
    """A stretch of the text that occurs in the reference, and that no longer one contains."""

    span: Span
    first_word: int
    n_words: int
    attribution: Attribution | None
    """Where it occurs verbatim."""
    counterpart: Counterpart | None
    """What it resembles, if it does not occur verbatim."""
    words: TextWords
    """Its words, with their places in the text."""


@dataclass(frozen=True, slots=True)
class Originality:
    """The results for one text."""

    document: Document
    n_words: int
    n_known_words: int | None
    """None if it could not be determined."""
    uniqueness: dict[int, float | None]
    """L-uniqueness by L, in [0, 1]."""
    creativity_index: float | None
    borrowed: tuple[Borrowed, ...]
    excluded: tuple[Copy, ...]
    missing_reason: str | None
    """"no_words", "too_short", "no_known_words", "lookup_failed", or a sentence if near matches
    need English and the text is not."""
    signature: Signature
    detail: str | None = None
    """Details of why it is missing."""
    spread: Spread | None = None
    remarks: tuple[str, ...] = ()
    """Notices for a reader of its numbers."""
    ranked: RankedRuns | None = None
    """Its borrowed runs by how improbable they are; None if a lookup failed."""
    n_reference_words: int | None = None
    """None if the reference does not report its size."""

    def measurements(self) -> list[Measurement]:
        """The index and each L-uniqueness as measurements."""
        evidence = tuple(b.span for b in self.borrowed)
        values: dict[str, float | None] = {"creativity_index": self.creativity_index}
        values |= {f"uniqueness_{level}": value for level, value in self.uniqueness.items()}
        return [
            Measurement(
                document_id=self.document.id,
                rubric="originality",
                item=item,
                rater="fabula",
                value=value,
                missing_reason=None if value is not None else self.missing_reason,
                evidence=evidence,
                rationale=None,
                signature=str(self.signature),
            )
            for item, value in values.items()
        ]

    def _repr_html_(self) -> str:
        from fabula.web.notebook import measured_lines, notebook_table

        lines = [("words", self.n_words, None), *measured_lines(self.measurements())]
        lines.append(("borrowed spans", len(self.borrowed), None))
        return notebook_table(f"Originality of {self.document.id}", lines, str(self.signature))


class OriginalityMeasure:
    """The measure with all its settings, ready for documents.

    `exclude` leaves documents out of the reference: by rule (what copies or quotes the text), or by
    id; `exclude_same` those that share a field with the text; `judge` asks a model about documents
    on which the rule is inconclusive. `near` also finds matches in other words. `n_sources` is how
    many sources of each borrowed span are named. `spread` is the maximum number of documents used
    for the matches' spread, 0 to skip it.
    """

    def __init__(
        self,
        reference: Backend,
        *,
        levels: Levels = Levels(),
        exclude: CopyRule | ExcludeIds | None = None,
        exclude_same: ExcludeSame | None = None,
        judge: QuoteJudge | None = None,
        near: NearSearch | PaperSearch | None = None,
        n_sources: int = 3,
        spread: int = 0,
        n_threads: int = 1,
    ) -> None:
        self.reference = reference
        self.levels = levels
        self.rule = exclude if isinstance(exclude, CopyRule) else None
        self.left_out = exclude.numbers if isinstance(exclude, ExcludeIds) else frozenset()
        self.same = exclude_same
        self.judge = judge
        self.near = near
        self.n_sources = n_sources
        self.spread = spread
        self.n_threads = n_threads
        # These need the documents to be local.
        self._corpus = reference if isinstance(reference, Reference) else None
        self._information = WordInformation(reference)
        leaves_out = exclude is not None or exclude_same is not None
        if self._corpus is None and (leaves_out or near is not None or spread):
            raise InputError(
                f"{reference.name} only reports what it contains: near matches, the spread over "
                "documents and `exclude` need a reference corpus built by Fabula"
            )
        if judge is not None and self.rule is None:
            raise InputError(
                "the model judges documents after the rule: set `exclude` auto as well"
            )
        parts = [str(exclude or ""), judge.signature if judge else "", str(exclude_same or "")]
        out = "+".join(filter(None, parts)) or "none"
        self.signature = Signature.of(
            "originality",
            match="near" if near else "verbatim",
            L=str(levels),
            **(near.signature_parts() if near else {}),
            **reference.settings.signature_parts(),
            ref=f"{reference.name}@{reference.fingerprint}",
            excl=out,
            v=__version__,
        )

    def held_out(self, own: ExcludeSame) -> OriginalityMeasure:
        """The same measure for documents of the reference itself, which `own` excludes in turn.

        Its numbers have this measure's signature: they are those of texts from outside, for which
        nothing has to be excluded.
        """
        measure = copy.copy(self)
        measure.same = own
        return measure

    def measure(self, documents: Iterable[Document]) -> Iterator[Originality]:
        """Measure documents as they come, in order; a batch of them is searched at a time.

        If a lookup fails, the document's scores are missing: it never counts as novel. If reading
        fails, the documents read before are measured first.
        """
        batch: list[tuple[Document, LocatedText]] = []
        n_words = 0
        try:
            for document in check_documents(documents):
                text = LocatedText(document.text, self.reference.locate(document.text))
                batch.append((document, text))
                n_words += len(text)
                if n_words >= self._batch_words:
                    ready, batch, n_words = batch, [], 0
                    yield from self._batch(ready)
        except FabulaError:
            yield from self._batch(batch)
            raise
        yield from self._batch(batch)

    def asked(self, document: Document) -> dict[str, Any]:
        """What else determines the document's row."""
        asked: dict[str, Any] = {
            "cite": self.n_sources,
            "sources": self.spread,
            "ranked": self._information.signature,
        }
        if self.same is not None:
            asked[self.same.field] = own_field(document, self.same.field)
        return asked

    @property
    def _batch_words(self) -> int:
        """A remote reference takes long for a text, and scores should be saved at once."""
        if self._corpus is None:
            return 1
        if not self._corpus.is_local:
            return _FAR_BATCH_WORDS
        return _BATCH_WORDS // 10 if self.near else _BATCH_WORDS

    def _batch(self, batch: Sequence[tuple[Document, LocatedText]]) -> Iterator[Originality]:
        found = self.reference.match_texts(
            [text for _, text in batch], exclude=self.left_out, n_threads=self.n_threads
        )
        calls = [(*pair, matches) for pair, matches in zip(batch, found, strict=True)]
        if self.near is None or self.judge is not None or self.n_threads == 1 or len(calls) == 1:
            yield from (self._one(*call) for call in calls)
            return
        with ThreadPoolExecutor(self.n_threads) as pool:
            yield from pool.map(lambda call: self._one(*call), calls)

    def _one(self, document: Document, text: LocatedText, matches: Matches) -> Originality:
        needs_english = self.near is not None and self.near.is_english
        if needs_english and (foreign := not_english(document.text)) is not None:
            return self._missing(document, text, foreign)
        try:
            if isinstance(matches, LookupFailed):
                raise matches
            return self._measure(document, text, matches)
        except ServerAway:
            raise
        except LookupFailed as error:
            return self._missing(document, text, "lookup_failed", str(error))

    def _missing(
        self, document: Document, text: LocatedText, reason: str, detail: str | None = None
    ) -> Originality:
        return Originality(
            document=document,
            n_words=len(text),
            n_known_words=None,
            uniqueness=dict.fromkeys(self.levels),
            creativity_index=None,
            borrowed=(),
            excluded=(),
            missing_reason=reason,
            signature=self.signature,
            detail=detail,
        )

    def _measure(
        self, document: Document, text: LocatedText, exact: NDArray[np.int32]
    ) -> Originality:
        words = text.words.words
        copies = Copies()
        if self.rule is not None and self._corpus is not None:
            copies = find_copies(self._corpus, words, self.rule)
            if self.judge is not None:
                copies = self.judge.add_copies(self._corpus, text, copies, self.rule)
        own = self.same.of_text(document) if self.same else frozenset()
        out = frozenset(one.number for one in copies) | self.left_out | own
        if out != self.left_out and self._corpus is not None:
            exact = self._corpus.longest_matches(words, exclude=out)
        lengths, near = exact, dict[int, Counterpart]()
        n_words, n_known = len(exact), int(np.count_nonzero(exact))
        if self.near is not None and n_known:
            lengths, near = self.near.search(words, exact, self.levels.low, exclude=out)
        missing = None if n_words >= self.levels.high else "too_short"
        if not n_known:
            missing = "no_known_words" if n_words else "no_words"
        by_level = {level: uniqueness(lengths, level) if n_known else None for level in self.levels}
        values = [value for value in by_level.values() if value is not None]
        spans = maximal_spans(exact, self.levels.low)
        cited = self.reference.cite(text, spans, self.n_sources, exclude=out)
        verbatim = dict(zip(spans, cited, strict=True))
        return Originality(
            document=document,
            n_words=n_words,
            n_known_words=n_known,
            uniqueness=by_level,
            creativity_index=math.fsum(values) if missing is None else None,
            borrowed=tuple(
                Borrowed(
                    span=_span(document, text, first, n),
                    first_word=first,
                    n_words=n,
                    attribution=None if first in near else verbatim[first, n],
                    counterpart=near.get(first),
                    words=text.words.part(first, n),
                )
                for first, n in maximal_spans(lengths, self.levels.low)
            ),
            excluded=copies.documents,
            remarks=(*copies.remarks, *(self.near.remarks if self.near else ())),
            missing_reason=missing,
            signature=self.signature,
            spread=self._spread(words, exact, lengths, near, out) if n_known else None,
            ranked=self._ranked(document, text, lengths, near, verbatim),
            n_reference_words=self._corpus.n_words if self._corpus else None,
        )

    def _ranked(
        self,
        document: Document,
        text: LocatedText,
        lengths: NDArray[np.int32],
        near: Mapping[int, Counterpart],
        verbatim: Mapping[tuple[int, int], Attribution],
    ) -> RankedRuns:
        near_settings = self.near.settings if self.near else NearSettings()
        runs = [
            BorrowedRun(
                span=_span(document, text, first, n),
                first_word=first,
                n_words=n,
                count=found.count,
                n_documents=None if found.is_bounded else found.n_documents,
                sources=found.sources,
            )
            for (first, n), found in verbatim.items()
        ]
        for first, counterpart in near.items():
            n = int(lengths[first])
            left = trim_near(first, n, counterpart, verbatim, near_settings)
            if left is not None:
                begin, n, there = left
                span, sources = _span(document, text, begin, n), (there.source,)
                runs.append(BorrowedRun(span, begin, n, 1, 1, sources, there.similarity))
        places = {k for run in runs for k in range(run.first_word, run.end_word)}
        bits = self._information.of(text.words.words, sorted(places))
        ranked = rank_runs(runs, bits, self._information.chance_bits)
        return replace(ranked, word_counts=self._information.name)

    def _spread(
        self,
        words: Sequence[str],
        exact: NDArray[np.int32],
        lengths: NDArray[np.int32],
        found: Mapping[int, Counterpart],
        out: frozenset[int],
    ) -> Spread | None:
        if not self.spread or self._corpus is None or len(words) < self.levels.low:
            return None
        near = None
        if self.near is not None:
            kept = {first: (first, first + int(lengths[first])) for first in found}
            near = self.near.covered_by(words, self.levels.low, within=kept.values(), exclude=out)
            # A match may have grown from passage to passage; the last contains all of it.
            for first, counterpart in found.items():
                near.setdefault(counterpart.source.number, []).append(kept[first])
        return find_spread(
            self._corpus, words, exact, self.levels.low, self.spread, near=near, exclude=out
        )


def _span(document: Document, text: LocatedText, first: int, n_words: int) -> Span:
    """The offsets of words in a text."""
    starts, ends = text.words.starts, text.words.ends
    return Span(document.id, int(starts[first]), int(ends[first + n_words - 1]))
