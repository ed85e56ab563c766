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
import dataclasses
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from fabula.core import __version__
from fabula.core.errors import FabulaError, InputError, LookupFailed
from fabula.core.types import Document, Measurement, Signature
from fabula.kernels.match import choose_documents
from fabula.novelty.passages import BorrowedRun, Chance, RankedRuns, rank_runs, trim_near
from fabula.reference.backend import Backend, LocatedText, Matches, ServerAway
from fabula.reference.exclude import Copies, Copy, CopyRule, find_copies, maximal_spans
from fabula.reference.search import Reference
from fabula.text import TextWords, check_documents
from fabula.text.clusters import own_field
from fabula.text.sentences import encodable, not_english

if TYPE_CHECKING:
    from fabula.novelty.near import Counterpart, NearSearch, PaperSearch
    from fabula.novelty.quoting import QuoteJudge

_BATCH_WORDS = 100_000
_FAR_BATCH_WORDS = 10_000
MAX_PLACES = 20_000
"""Places of one n-gram in one shard at which documents are looked up for the spread."""
MAX_PAIRS = 20_000_000
"""Limit on documents over all n-grams; beyond it, only the first of each is taken."""
_N_AT_ONCE = 64
"""n-grams whose documents are looked up together."""


@dataclass(frozen=True, slots=True)
class Levels:
    """The values of L that are summed, ends included."""

    low: int = 5
    high: int = 12

    def __post_init__(self) -> None:
        if not 1 <= self.low <= self.high:
            raise InputError(
                f"`levels` {self.low}-{self.high}: must be LOW-HIGH with 1 <= LOW <= HIGH"
            )

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.low, self.high + 1))

    def __str__(self) -> str:
        return f"{self.low}-{self.high}"

    @classmethod
    def parse(cls, text: str) -> Levels:
        low, dash, high = text.partition("-")
        if not (low.isdecimal() and (high.isdecimal() if dash else True)):
            raise InputError(f"`levels` {text}: must be a range such as 5-12")
        return cls(int(low), int(high or low))


@dataclass(frozen=True, slots=True)
class ExcludeIds:
    """Documents that the user excludes: their numbers, and a name for the list."""

    numbers: frozenset[int]
    digest: str

    @classmethod
    def of(cls, reference: Reference, ids: Iterable[str]) -> Self:
        """Look up the ids. Raises `InputError` if one is not in the reference."""
        by_id = reference.numbers_of(ids)
        digest = hashlib.sha256("\n".join(sorted(by_id)).encode()).hexdigest()[:8]
        return cls(frozenset(n for numbers in by_id.values() for n in numbers), digest)

    def __str__(self) -> str:
        return f"list({self.digest})"


@dataclass(frozen=True, slots=True)
class ExcludeSame:
    """Exclude, for each text, the documents that share a field with it: its author, its prompt.

    Values found to belong together (`joined`, mapping a value to its cluster) are excluded
    together. A text that lacks the field is compared with all.
    """

    field: str
    numbers: Mapping[str, frozenset[int]]
    """By cluster, or by value if it has none."""
    joined: Mapping[str, str] = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    also: str | None = None
    """A second field, whose documents are in `numbers` too."""

    @classmethod
    def of(
        cls, reference: Reference, field: str, joined: Mapping[str, str] = MappingProxyType({})
    ) -> Self:
        """Read the field of all documents. Raises `InputError` if none has it."""
        by_name: dict[str, set[int]] = {}
        numbers = reference.numbers()
        for number, document in zip(numbers, reference.documents(numbers), strict=True):
            if (value := own_field(document, field)) is not None:
                by_name.setdefault(joined.get(value, value), set()).add(number)
        if not by_name:
            raise InputError(
                f"cannot exclude by {field!r}: no document of {reference.name} has this field"
            )
        return cls(field, {name: frozenset(held) for name, held in by_name.items()}, joined)

    @classmethod
    def of_texts_themselves(
        cls, reference: Reference, documents: Sequence[Document], also: str | None = None
    ) -> Self:
        """For texts that are part of the reference: each excludes itself, by id and words.

        also: a field; documents that share it with a text are excluded too.
        """
        # A text without words cannot be in a reference.
        texts = {text.id: text for text in documents if reference.settings.has_words(text.text)}
        same = None if also is None else cls.of(reference, also)
        by_id = {}
        for id_, numbers in reference.numbers_of(texts).items():
            words = encodable(texts[id_].text)
            held = zip(numbers, reference.documents(numbers), strict=True)
            copies = frozenset(number for number, document in held if document.text == words)
            by_id[id_] = copies | (same.of_text(texts[id_]) if same else frozenset())
        return cls("id", by_id, also=also)

    def of_text(self, document: Document) -> frozenset[int]:
        value = own_field(document, self.field) or ""
        return self.numbers.get(self.joined.get(value, value), frozenset())

    def __str__(self) -> str:
        # Only what follows the @ matters in a signature.
        name = ",".join(filter(None, (self.field, self.also))).replace("@", "#")
        clusters: dict[str, list[str]] = {}
        for value in sorted(self.joined):
            clusters.setdefault(self.joined[value], []).append(value)
        several = sorted(values for values in clusters.values() if len(values) > 1)
        if not several:
            return f"same({name})"
        digest = hashlib.sha256(json.dumps(several).encode()).hexdigest()[:8]
        return f"same({name},joined:{digest})"


@dataclass(frozen=True, slots=True)
class SpreadDocument:
    """A chosen document, and how many words it adds to those already covered."""

    id: str
    title: str | None
    n_new_words: int


@dataclass(frozen=True, slots=True)
class Spread:
    """How L-uniqueness falls as more documents may be used, the best first.

    Lu et al. 2024, section "Evaluation" ("How do overlapped n-grams distribute in the reference
    corpus?"). Choosing the best is the maximum coverage problem; as in the paper, documents are
    chosen greedily, which covers at least 1 - 1/e (63 %) of what the best choice of the same number
    could (Nemhauser, Wolsey and Fisher 1978).
    """

    level: int
    uniqueness: tuple[float, ...]
    """With no document, with the best one, with the best two, ..., up to the requested number."""
    n_to_half: int | None
    """Documents needed to push L-uniqueness below 0.5; None if all of them do not suffice."""
    n_documents: int
    """Documents that cover any of it."""
    n_bounded: int
    """n-grams so frequent that only some of their documents were checked."""
    documents: tuple[SpreadDocument, ...]
    """Those that were chosen."""


@dataclass(frozen=True, slots=True)
class Originality:
    """The results for one text."""

    document: Document
    words: TextWords = dataclasses.field(repr=False, compare=False)
    n_known_words: int | None
    """None if it could not be determined."""
    uniqueness: dict[int, float | None]
    """L-uniqueness by L, in [0, 1]."""
    creativity_index: float | None
    borrowed: tuple[BorrowedRun, ...]
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

    @property
    def n_words(self) -> int:
        return len(self.words.words)

    def measurements(self) -> list[Measurement]:
        """The index and each L-uniqueness as measurements."""
        evidence = tuple(run.span for run in self.borrowed)
        values: dict[str, float | None] = {"creativity_index": self.creativity_index}
        values |= {f"uniqueness_{level}": value for level, value in self.uniqueness.items()}
        rows = []
        for item, value in values.items():
            about = self.document.id, "originality", item, "fabula"
            reason = None if value is not None else self.missing_reason
            rows.append(Measurement(*about, value, reason, evidence, None, str(self.signature)))
        return rows

    def _repr_html_(self) -> str:
        from fabula.web import measured_lines, notebook_table

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
        self._chance = Chance(reference)
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
        # A remote reference takes long for a text, and scores should be saved at once.
        batch_words = 1
        if self._corpus is not None:
            batch_words = _BATCH_WORDS // 10 if self.near else _BATCH_WORDS
            batch_words = batch_words if self._corpus.is_local else _FAR_BATCH_WORDS
        batch: list[tuple[Document, LocatedText]] = []
        n_words = 0
        try:
            for document in check_documents(documents):
                text = LocatedText(document.text, self.reference.locate(document.text))
                batch.append((document, text))
                n_words += len(text)
                if n_words >= batch_words:
                    ready, batch, n_words = batch, [], 0
                    yield from self._batch(ready)
        except FabulaError:
            yield from self._batch(batch)
            raise
        yield from self._batch(batch)

    def asked(self, document: Document) -> dict[str, Any]:
        """What else determines the document's row."""
        fields: dict[str, Any] = {
            "cite": self.n_sources,
            "sources": self.spread,
            "ranked": self._chance.signature,
        }
        if self.same is not None:
            fields[self.same.field] = own_field(document, self.same.field)
        return fields

    def _batch(self, batch: Sequence[tuple[Document, LocatedText]]) -> Iterator[Originality]:
        matches = self.reference.match_texts(
            [text for _, text in batch], exclude=self.left_out, n_threads=self.n_threads
        )
        calls = [(*pair, exact) for pair, exact in zip(batch, matches, strict=True)]
        if self.near is None or self.judge is not None or self.n_threads == 1 or len(calls) == 1:
            yield from (self._one(*call) for call in calls)
            return
        with ThreadPoolExecutor(self.n_threads) as pool:
            yield from pool.map(lambda call: self._one(*call), calls)

    def _one(self, document: Document, text: LocatedText, matches: Matches) -> Originality:
        reason, detail = None, None
        if self.near is not None and self.near.is_english:
            reason = not_english(document.text)
        if reason is None:
            try:
                if isinstance(matches, LookupFailed):
                    raise matches
                return self._measured(document, text, matches)
            except ServerAway:
                raise
            except LookupFailed as error:
                reason, detail = "lookup_failed", str(error)
        return Originality(
            document=document,
            words=text.words,
            n_known_words=None,
            uniqueness=dict.fromkeys(self.levels),
            creativity_index=None,
            borrowed=(),
            excluded=(),
            missing_reason=reason,
            signature=self.signature,
            detail=detail,
        )

    def _measured(
        self, document: Document, text: LocatedText, exact: NDArray[np.int32]
    ) -> Originality:
        """The story of one text: what is left out, the matches, the numbers, their sources."""
        words = text.words.words
        copies = Copies()
        if self.rule is not None and self._corpus is not None:
            copies = find_copies(self._corpus, words, self.rule)
            if self.judge is not None:
                copies = self.judge.add_copies(self._corpus, text, copies, self.rule)
        same = self.same.of_text(document) if self.same else frozenset()
        out = frozenset(copy.number for copy in copies) | self.left_out | same
        if out != self.left_out and self._corpus is not None:
            exact = self._corpus.longest_matches(words, exclude=out)
        lengths, near = exact, dict[int, "Counterpart"]()
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
        make = partial(BorrowedRun.of, document.id, text.words)
        verbatim = {span: make(*span, source) for span, source in zip(spans, cited, strict=True)}
        borrowed = tuple(
            make(first, n, None, near[first]) if first in near else verbatim[first, n]
            for first, n in maximal_spans(lengths, self.levels.low)
        )
        runs = list(verbatim.values())
        if self.near is not None:
            near_runs = [run for run in borrowed if run.counterpart is not None]
            settings = self.near.settings
            trimmed = (trim_near(run, text.words, verbatim, settings) for run in near_runs)
            runs += [run for run in trimmed if run is not None]
        spread = None
        if self.spread and n_known and self._corpus is not None and n_words >= self.levels.low:
            covered: dict[int, list[tuple[int, int]]] = {}
            if self.near is not None:
                places = [
                    (run.counterpart.source.number, (run.first_word, run.end_word))
                    for run in borrowed
                    if run.counterpart is not None
                ]
                within = [place for _, place in places]
                covered = self.near.covered_by(words, self.levels.low, within=within, exclude=out)
                # A match may have grown from passage to passage; the last contains all of it.
                for number, place in places:
                    covered.setdefault(number, []).append(place)
            how = self.levels.low, self.spread
            spread = find_spread(self._corpus, words, exact, *how, near=covered, exclude=out)
        chance = self._chance
        bits = chance.of(words, runs, out)
        return Originality(
            document=document,
            words=text.words,
            n_known_words=n_known,
            uniqueness=by_level,
            creativity_index=math.fsum(values) if missing is None else None,
            borrowed=borrowed,
            excluded=copies.documents,
            remarks=(*copies.remarks, *(self.near.remarks if self.near else ())),
            missing_reason=missing,
            signature=self.signature,
            spread=spread,
            ranked=rank_runs(
                runs,
                bits,
                chance.least,
                chance.name,
                chance.by_chance(n_words, is_near=self.near is not None),
            ),
            n_reference_words=self._corpus.n_words if self._corpus else None,
        )


def uniqueness(lengths: NDArray[np.int32], level: int) -> float | None:
    """L-uniqueness at L = `level` from the longest match at each word (int32, shape (n_words,)).

    None if the text has fewer than `level` words.
    """
    n_words = len(lengths)
    if n_words < level:
        return None
    begins = np.flatnonzero(lengths >= level)
    change = np.zeros(n_words + 1, np.int64)
    np.add.at(change, begins, 1)
    np.add.at(change, begins + lengths[begins], -1)
    return float(np.count_nonzero(np.cumsum(change)[:-1] == 0)) / n_words


def find_spread(
    reference: Reference,
    words: Sequence[str],
    lengths: NDArray[np.int32],
    level: int,
    n_documents: int,
    *,
    near: Mapping[int, Sequence[tuple[int, int]]] = MappingProxyType({}),
    exclude: Iterable[int] = (),
) -> Spread:
    """The spread of a text's matches of `level` words or more.

    lengths: int32 (n_words,), the longest verbatim matches; `near` adds the half-open stretches of
    words that documents, by number, cover in other words.
    """
    exclude = frozenset(exclude)
    by_gram: dict[tuple[str, ...], tuple[NDArray[np.int64], bool]] = {}
    holders: list[NDArray[np.int64]] = []
    stretches: list[tuple[int, int]] = []
    n_pairs = 0
    places = np.flatnonzero(lengths >= level).tolist()
    # A longer match is covered by the n-grams of `level` words that it contains.
    for k, i in enumerate(places):
        gram = tuple(words[i : i + level])
        if gram not in by_gram:
            # Also request the next ones: a server answers them at once.
            grams = (tuple(words[j : j + level]) for j in places[k : k + _N_AT_ONCE])
            new = [other for other in dict.fromkeys(grams) if other not in by_gram]
            answers = reference.documents_of(new, MAX_PLACES, exclude=exclude)
            by_gram |= dict(zip(new, answers, strict=True))
        if n_pairs > MAX_PAIRS:
            by_gram[gram] = by_gram[gram][0][:1], True
        holders.append(by_gram[gram][0])
        stretches.append((i, i + level))
        n_pairs += len(holders[-1])
    for number, spans in near.items():
        holders += [np.array([number], np.int64)] * len(spans)
        stretches += spans
    numbers = np.concatenate([np.empty(0, np.int64), *holders])
    n_each = np.array([len(held) for held in holders], np.int64)
    bounds = np.repeat(np.array(stretches, np.int32).reshape(-1, 2), n_each, axis=0)
    order = np.argsort(numbers, kind="stable")
    distinct, begins = np.unique(numbers[order], return_index=True)
    offsets = np.append(begins, len(numbers)).astype(np.int64)
    n_words = len(words)
    chosen, gains = choose_documents(
        offsets, bounds[order, 0], bounds[order, 1], n_words, n_documents, n_words // 2 + 1
    )
    left = 1 - np.concatenate([[0], np.cumsum(gains)]) / max(1, n_words)
    below = np.flatnonzero(left < 0.5)
    documents = []
    for k, gain in zip(chosen[:n_documents], gains[:n_documents], strict=True):
        document = reference.document(int(distinct[k]))
        title = document.meta.get("title")
        named = None if title is None else str(title)
        documents.append(SpreadDocument(document.id, named, int(gain)))
    return Spread(
        level=level,
        uniqueness=tuple(float(value) for value in left[: len(documents) + 1]),
        documents=tuple(documents),
        n_to_half=int(below[0]) if len(below) else None,
        n_documents=len(distinct),
        n_bounded=sum(is_bounded for _, is_bounded in by_gram.values()),
    )
