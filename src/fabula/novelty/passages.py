"""Rank borrowed runs: how improbable each is, and which of them belong together.

Runs near each other, in the text and in one source, form one *borrowed passage*: a quotation with a
word changed is one quotation. A passage has *bits* (`reference.chance`); what is shorter than
`MIN_WORDS`, or has fewer bits than the least of its reference, or is found in `MANY_PLACES` places
or more, is a *commonplace*: texts that borrow nothing contain it too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fabula.core.errors import ModelError
from fabula.core.types import Span
from fabula.reference.backend import Attribution, Backend, Occurrence
from fabula.reference.chance import (
    CHANCE_WORDS,
    MIN_WORDS,
    ChainRun,
    chain_bits,
    chain_counts,
    least_bits,
    passage_bits,
)
from fabula.reference.search import Reference
from fabula.text import TextWords

if TYPE_CHECKING:
    from fabula.novelty.near import Counterpart, NearSettings, PaperSettings

MANY_PLACES = 100
MAX_GAP_WORDS = 10
"""Words of the text between two runs of one passage."""
MAX_GAP_CHARS = 100
"""Characters of the source between them."""
MIN_REFERENCE_WORDS = 1_000
"""A smaller reference gives no reliable word frequencies."""
_LISTED_BITS = 40.0 + 61.0
"""The least bits in an external index, whose words are counted as independent: the known ones have
about 2^40 words, and where it was counted (5.5 million words), 61 bits more showed as few passages
by chance as the chain does."""


@dataclass(frozen=True, slots=True)
class BorrowedRun:
    """A run of a text's words that occurs in the reference, verbatim or in other words."""

    span: Span
    first_word: int
    n_words: int
    attribution: Attribution | None
    """Where it occurs verbatim."""
    counterpart: Counterpart | None = None
    """What it resembles, if it does not occur verbatim."""

    @classmethod
    def of(
        cls,
        document_id: str,
        words: TextWords,
        first: int,
        n_words: int,
        attribution: Attribution | None,
        counterpart: Counterpart | None = None,
    ) -> BorrowedRun:
        """`n_words` words of a text from word `first` on."""
        span = Span(document_id, int(words.starts[first]), int(words.ends[first + n_words - 1]))
        return cls(span, first, n_words, attribution, counterpart)

    @property
    def end_word(self) -> int:
        return self.first_word + self.n_words

    @property
    def count(self) -> int:
        """Places where it occurs; 1 for a near run."""
        return 1 if self.attribution is None else self.attribution.count

    @property
    def n_documents(self) -> int | None:
        """Documents that contain it; None if not all were checked."""
        cited = self.attribution
        return 1 if cited is None else None if cited.is_bounded else cited.n_documents

    @property
    def sources(self) -> tuple[Occurrence, ...]:
        if self.counterpart is not None:
            return (self.counterpart.source,)
        return () if self.attribution is None else self.attribution.sources

    @property
    def similarity(self) -> float:
        """Similarity to its source; 1 if verbatim."""
        return 1.0 if self.counterpart is None else self.counterpart.similarity


@dataclass(frozen=True, slots=True)
class BorrowedPassage:
    """Runs that belong together, and how improbable it is that they were found by chance."""

    runs: tuple[BorrowedRun, ...]
    """In the order of the text."""
    n_words: int
    """Words in any of the runs."""
    n_verbatim: int
    """Those of them that occur verbatim in the reference."""
    bits: float | None
    """How improbable it is; None if word frequencies are unknown."""
    over_chance: float | None
    """Bits above the least; passages are ranked by this."""
    count: int
    """Places that contain all of it, at most."""

    @property
    def is_commonplace(self) -> bool:
        # What is unknown is not common.
        if self.over_chance is not None and (self.over_chance < 0 or self.n_words < MIN_WORDS):
            return True
        return self.count >= MANY_PLACES

    @property
    def n_documents(self) -> int | None:
        """Documents that contain all of it, at most; None if not all were checked."""
        counts = [run.n_documents for run in self.runs if run.n_documents is not None]
        return min(counts) if len(counts) == len(self.runs) else None

    @property
    def span(self) -> Span:
        """From the first word to the last, gaps included."""
        return replace(self.runs[0].span, end=max(run.span.end for run in self.runs))

    @property
    def sources(self) -> tuple[Occurrence, ...]:
        """A place in each document that contains any of it; the one with the most words first."""
        n_words: dict[int, int] = {}
        first: dict[int, Occurrence] = {}
        for run in sorted(self.runs, key=lambda run: -run.n_words):
            for source in run.sources:
                n_words[source.number] = n_words.get(source.number, 0) + run.n_words
                first.setdefault(source.number, source)
        return tuple(first[number] for number in sorted(first, key=lambda k: -n_words[k]))


@dataclass(frozen=True, slots=True)
class RankedRuns:
    """The borrowed passages of a text, the most improbable first, and its commonplaces."""

    passages: tuple[BorrowedPassage, ...]
    commonplaces: tuple[BorrowedPassage, ...]
    longest_run: int
    """Words in the longest run, 0 if there is none."""
    word_counts: str | None = None
    """The source of the word counts for the bits; None if the reference is too small, or external
    with no word list installed."""
    by_chance: float | None = None
    """How many passages a text of this length shows by chance; None if that is unknown."""


PassageBits = Callable[[Sequence[BorrowedRun]], float]


class Chance:
    """How improbable passages are by a reference's own counts.

    In an external index, where each count would be a request, by wordfreq's list of English if that
    is installed.
    """

    def __init__(self, reference: Backend) -> None:
        self._reference = reference
        self.least = _LISTED_BITS
        """The least bits of a passage that is shown."""
        self.name: str | None = None
        """The source of the counts; None if there are none."""
        if isinstance(reference, Reference):
            self.least = least_bits(reference.n_words, reference.about.chance_factor)
            self.name = "reference" if reference.n_words >= MIN_REFERENCE_WORDS else None
        else:
            from fabula.linguistic.metrics import Frequencies

            with suppress(ModelError):
                self._list = Frequencies()
                self.name = self._list.name
        rule = f"{MIN_WORDS}words,{MANY_PLACES}places,{MAX_GAP_WORDS}words,{MAX_GAP_CHARS}chars"
        self.signature = f"{self.name},chain1,{self.least:.2f}bits,{rule}"
        """Everything that determines a rank besides the reference."""

    def by_chance(self, n_words: int, *, is_near: bool) -> float | None:
        """How many passages a text of so many words shows by chance; None if that is unknown.

        With matches in other words about twice as many were counted (`bench/chance.py`).
        """
        if self.name != "reference":
            return None
        return n_words / CHANCE_WORDS * (2 if is_near else 1)

    def of(
        self, words: Sequence[str], runs: Iterable[BorrowedRun], exclude: Iterable[int] = ()
    ) -> PassageBits | None:
        """The bits of any passage of these runs of a text; None if word frequencies are unknown."""
        if self.name is None:
            return None
        if isinstance(self._reference, Reference):
            n_words = self._reference.n_words
            counts = chain_counts(self._reference, (_counted(words, run) for run in runs), exclude)

            def word_bits(run: ChainRun) -> list[float]:
                return chain_bits(run, counts, n_words)
        else:

            def word_bits(run: ChainRun) -> list[float]:
                return [-self._list.log(word.casefold()) / math.log(2) for word in run.words]

        return lambda passage: passage_bits([_counted(words, r) for r in passage], word_bits)


def _counted(words: Sequence[str], run: BorrowedRun) -> ChainRun:
    own = words[run.first_word : run.end_word]
    if (near := run.counterpart) is None:
        return ChainRun(run.first_word, own, run.count)
    return ChainRun(run.first_word, own, run.count, near.words.words, near.pairs)


def trim_near(
    run: BorrowedRun,
    words: TextWords,
    verbatim: Iterable[tuple[int, int]],
    settings: NearSettings | PaperSettings,
) -> BorrowedRun | None:
    """Trim a near run of ends that only the rest of it pays for.

    The segment of its content words with the largest sum of cosine minus the threshold is kept. If
    more than half of its words occur verbatim in the reference (`verbatim`: first word, number of
    words), a stretch beyond those needs as many content words as a match by itself. None if what is
    left occurs verbatim, or has no content words. words: those of the text.
    """
    counterpart, begin, end = run.counterpart, run.first_word, run.end_word
    assert counterpart is not None
    inside = [(max(a, begin), min(a + n, end)) for a, n in verbatim]
    inside = [(a, b) for a, b in inside if b > a]
    places = [begin + i for i, _, _ in counterpart.pairs]
    sums = [0.0]
    for *_, cosine in counterpart.pairs:
        sums.append(sums[-1] + (cosine - settings.threshold))
    # Of segments with equal sums the longest, then the first.
    best, lowest = (-math.inf, 0, 0), 0
    for k in range(1, len(sums)):
        if sums[k - 1] < sums[lowest]:
            lowest = k - 1
        best = max(best, (sums[k] - sums[lowest], k - lowest, -lowest))
    start, stop = -best[2], best[1] - best[2]
    first, last = begin, end
    if len({k for a, b in inside for k in range(a, b)}) > run.n_words / 2:
        left, right = min(a for a, _ in inside), max(b for _, b in inside)
        n_before = sum(place < left for place in places[start:stop])
        n_after = sum(place >= right for place in places[start:stop])
        first = left if n_before < settings.floor else min(places[start], left)
        last = right if n_after < settings.floor else max(places[stop - 1] + 1, right)
    elif stop - start >= settings.floor:
        first, last = places[start], places[stop - 1] + 1
    if any(a <= first and last <= b for a, b in inside):
        return None
    if (first, last) == (begin, end):
        return run
    pairs = [pair for pair in counterpart.pairs if first <= begin + pair[0] < last]
    if not pairs:
        return None
    low, high = min(j for _, j, _ in pairs), max(j for _, j, _ in pairs)
    theirs = counterpart.words.part(low, high - low + 1)
    source = counterpart.source
    span = replace(source.span, start=int(theirs.starts[0]), end=int(theirs.ends[-1]))
    part = replace(
        counterpart,
        similarity=min(1.0, math.fsum(cosine for *_, cosine in pairs) / len(pairs)),
        source=replace(source, span=span),
        words=theirs,
        pairs=tuple((begin + i - first, j - low, cosine) for i, j, cosine in pairs),
    )
    return BorrowedRun.of(run.span.document_id, words, first, last - first, None, part)


def rank_runs(
    runs: Iterable[BorrowedRun],
    bits: PassageBits | None,
    least: float,
    word_counts: str | None = None,
    by_chance: float | None = None,
) -> RankedRuns:
    """Passages and commonplaces, each ranked. No run lies within another of its kind.

    bits: of a passage, given by its runs; None if unknown. least: of a passage that is no
    commonplace; word_counts: where the bits are from. A passage that lies mostly in higher-ranked
    ones is not listed.
    """

    def place(run: BorrowedRun) -> tuple[int, int, float, list[int]]:
        numbers = [source.number for source in run.sources]
        return run.first_word, -run.n_words, -run.similarity, numbers

    def rank(passage: BorrowedPassage) -> tuple[bool, float, int, int]:
        score = passage.n_words if passage.over_chance is None else passage.over_chance
        return passage.is_commonplace, -score, -passage.n_words, passage.runs[0].first_word

    ordered = sorted(runs, key=place)
    groups: list[_Group] = []
    is_open: list[_Group] = []
    for run in ordered:
        is_open = [
            group
            for group in is_open
            if run.first_word - max(other.end_word for other in group.runs) <= MAX_GAP_WORDS
        ]
        # Mostly within a near run: it is the verbatim part of that run.
        group = max(is_open, key=lambda g: g.n_held(run), default=None)
        if group is None or 2 * group.n_held(run) <= run.n_words:
            group = next((g for g in reversed(is_open) if g.numbers_with(run)), None)
        if group is None:
            group = _Group([], {source.number for source in run.sources})
            groups.append(group)
            is_open.append(group)
        group.numbers = group.numbers_with(run) or group.numbers
        group.runs.append(run)
    passages = []
    for members in (group.runs for group in groups):
        n_words, count = len(words_of(members)), min(run.count for run in members)
        n_verbatim = len(words_of(run for run in members if run.counterpart is None))
        total = None if bits is None else bits(members)
        over = None if total is None else total - least
        passages.append(BorrowedPassage(tuple(members), n_words, n_verbatim, total, over, count))
    taken: set[int] = set()
    listed = []
    for passage in sorted(passages, key=rank):
        words = words_of(passage.runs)
        if 2 * len(words - taken) > len(words):
            listed.append(passage)
            taken |= words
    return RankedRuns(
        passages=tuple(passage for passage in listed if not passage.is_commonplace),
        commonplaces=tuple(passage for passage in listed if passage.is_commonplace),
        longest_run=max((run.n_words for run in ordered), default=0),
        word_counts=word_counts,
        by_chance=by_chance,
    )


@dataclass(slots=True)
class _Group:
    """Runs joined so far, and the documents that contain them near each other."""

    runs: list[BorrowedRun]
    numbers: set[int]

    def n_held(self, run: BorrowedRun) -> int:
        """How many words of the run lie in one of these near runs that begins before it."""
        ends = (other.end_word for other in self.runs if other.counterpart is not None)
        return min(run.n_words, max(ends, default=0) - run.first_word)

    def numbers_with(self, run: BorrowedRun) -> set[int]:
        """The documents that contain the run near one of these, which is near it in the text."""
        near = [
            (source.number, source.span)
            for other in self.runs
            if run.first_word - other.end_word <= MAX_GAP_WORDS
            for source in other.sources
        ]
        return self.numbers & {
            source.number
            for source in run.sources
            for number, span in near
            if number == source.number
            and max(source.span.start, span.start) - min(source.span.end, span.end) <= MAX_GAP_CHARS
        }


def words_of(runs: Iterable[BorrowedRun]) -> set[int]:
    """The words of the text that lie in any of the runs."""
    return {k for run in runs for k in range(run.first_word, run.end_word)}
