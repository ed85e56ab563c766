"""How improbable it is that a run of words occurs in a reference by chance.

Words are not independent, so the probability of a run is that of a chain: each word after the two
before it, by counts of the reference without the places where the run itself occurs. Trigram,
bigram and unigram shares are interpolated, with weights that depend on how often the context occurs
(Jelinek and Mercer 1980, "Interpolated estimation of Markov source parameters from sparse data").
The *bits* of a passage are minus the logarithm of that probability and of the number of places
where it occurs.

How often texts that borrow nothing contain passages of so many bits does not follow from the bits:
idioms and proverbs are older than any text. So the tail was fitted. Of books, each against a
reference without what its author wrote, a text of n words contains by chance

    E = n 2**(-15.36 - 0.258 bits) N**0.606

passages of at least so many bits in a reference of N words. A passage is shown if E is at most
n / `CHANCE_WORDS`, so that text of that many words shows one. Authors of some references (speeches,
fairy tales) share more with each other: when a reference is built, it is calibrated on what its own
authors share, and its E is larger by a factor.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fabula.reference.exclude import maximal_spans

if TYPE_CHECKING:
    from fabula.reference.search import Reference

CHANCE_WORDS = 120_000
"""Words of text that show one passage by chance."""
MIN_WORDS = 6
"""Shorter passages are common phrases, whatever their words."""
_DECAY, _GROWTH, _LOG2_SCALE = 0.258, 0.606, -15.355
_JOIN_BITS, _AGAIN_BITS, _KNOWN_BITS = 8.0, 1.0, 8.0
"""What each further run of a passage costs, as there are many places where it could go on; and the
most that a pair of words that comes again, or the first word of a run that does, adds."""
_NEAR_BITS, _SKIP_BITS, _MAX_SKIPPED = 4.0, 2.0, 8
"""What a run in other words costs, as many wordings are near to one; and each word that is skipped
between two aligned ones, of which there may be so many."""
_WEIGHTS = (
    (0.08, 0.16, 0.18, 0.24, 0.32, 0.39, 0.45, 0.54, 0.60, 0.66, 0.71, 0.75, 0.79, 0.83, 0.86, 0.88,
     0.91),
    (0.06, 0.09, 0.13, 0.18, 0.21, 0.28, 0.33, 0.37, 0.41, 0.45, 0.48, 0.50, 0.52, 0.53, 0.54, 0.55,
     0.55),
)  # fmt: skip
"""Weight of the share after one word, and after two, by the logarithm of the context's count. They
were fitted by expectation-maximisation on documents of four references of 0.5 to 6.6 million words,
each with its own counts left out; where contexts occur, the four differ by about 0.1 or less."""
_MIN_CALIBRATED, _MAX_DOCUMENTS = 100_000, 20_000
"""Words below which a reference is not calibrated, and documents above: all are read for that."""
_N_GROUPS, _GROUP_WORDS = 12, 15_000
_COUNTED_WORDS, _PRIOR, _MAX_FACTOR = 6_000, 8.0, 4.0
"""A calibration counts passages so probable that text of so many words shows one; the prior weighs
as much as 8 of them."""
Gram = tuple[str, ...]


class ChainRun(NamedTuple):
    """Words of a text that occur in a reference, or others like them."""

    first_word: int
    words: Sequence[str]
    n_places: int
    """Where it occurs."""
    source: Sequence[str] | None = None
    """The words there, if they are others."""
    pairs: Sequence[tuple[int, int, float]] = ()
    """(word, word of the source, cosine) of those that are similar, counted from 0."""


def least_bits(n_words: int, factor: float = 1.0, chance_words: float = CHANCE_WORDS) -> float:
    """The bits from which passages are so rare that text of `chance_words` words shows one by
    chance, in a reference of `n_words` words and with this factor."""
    rate = _LOG2_SCALE + _GROWTH * math.log2(max(1, n_words)) + math.log2(factor)
    return (rate + math.log2(chance_words)) / _DECAY


def chain_counts(
    reference: Reference, runs: Iterable[ChainRun], exclude: Iterable[int] = ()
) -> dict[Gram, int]:
    """How often the reference contains each n-gram of the runs, of one to three words."""
    grams = sorted({gram for run in runs for gram in _grams(run.words)})
    return dict(zip(grams, reference.counts(grams, exclude=exclude), strict=True))


def chain_bits(run: ChainRun, counts: Mapping[Gram, int], n_words: int) -> list[float]:
    """The bits of each word of a run after those before it; `n_words`: of the reference.

    Of a run in other words only those count that can be aligned with its source in one order.
    """
    words, own = run.words, Counter(_grams(run.source or run.words))
    left = {gram: max(0, counts[gram] - own[gram] * run.n_places) for gram in _grams(words)}
    bits = []
    for k, word in enumerate(words):
        share = (left[word,] + 0.5) / n_words
        for n, weights in enumerate(_WEIGHTS, 1):
            n_context = left[tuple(words[k - n : k])] if k >= n else 0
            if n_context:
                weight = weights[min(n_context.bit_length(), len(weights)) - 1]
                after = min(1.0, left[tuple(words[k - n : k + 1])] / n_context)
                share += weight * (after - share)
        bits.append(-math.log2(share))
    return bits if run.source is None else _aligned(run, run.source, bits)


def _aligned(run: ChainRun, source: Sequence[str], bits: Sequence[float]) -> list[float]:
    """The bits of the words in the best alignment of a run with its source, others 0.

    The same word gains its bits, a similar one these times the cosine.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for j, word in enumerate(source):
        places[word].append(j)
    similar = {i: (j, cosine) for i, j, cosine in run.pairs}
    # For each pair, by word: the best sum up to it, its own bits, and the pair before it.
    best: dict[tuple[int, int], tuple[float, float, tuple[int, int] | None]] = {}
    for i, word in enumerate(run.words):
        gains = dict.fromkeys(places[word], bits[i])
        if not gains and i in similar:
            j, cosine = similar[i]
            gains[j] = bits[i] * max(0.0, cosine)
        for j, gain in gains.items():
            total, cost, before = 0.0, 0.0, None
            for a in range(max(0, i - _MAX_SKIPPED - 1), i):
                for b in range(max(0, j - _MAX_SKIPPED - 1), j):
                    if (a, b) in best:
                        skipped = _SKIP_BITS * (max(i - a, j - b) - 1)
                        if best[a, b][0] - skipped > total:
                            total, cost, before = best[a, b][0] - skipped, skipped, (a, b)
            best[i, j] = total + gain, gain - cost, before
    counted = [0.0] * len(run.words)
    at = max(best, key=lambda pair: (best[pair][0], -pair[0], -pair[1]), default=None)
    while at is not None:
        _, counted[at[0]], at = best[at]
    return counted


def passage_bits(
    runs: Sequence[ChainRun], word_bits: Callable[[ChainRun], Sequence[float]]
) -> float:
    """The bits of a passage, given by its runs in the order of the text."""
    counted: dict[int, float] = {}
    pairs: set[Gram] = set()
    totals = []
    for number, run in enumerate(runs):
        new = []
        for k, bits in enumerate(word_bits(run)):
            place, pair = run.first_word + k, tuple(run.words[k - 1 : k + 1])
            if place not in counted and k and pair in pairs:
                bits = min(bits, _AGAIN_BITS)
            elif place not in counted and not k and any(run.words[0] in known for known in pairs):
                bits = min(bits, _KNOWN_BITS)
            if k:
                pairs.add(pair)
            new.append(max(0.0, bits - counted[place]) if place in counted else bits)
            counted[place] = max(bits, counted.get(place, bits))
        cost = _JOIN_BITS * (number > 0) + _NEAR_BITS * (run.source is not None)
        totals.append(max(0.0, math.fsum(new) - cost))
    return math.fsum(totals) - math.log2(max(1, min(run.n_places for run in runs)))


def calibrated(reference: Reference) -> float | None:
    """How many times as many passages as usual the authors of a reference share by chance.

    Up to 12 authors' texts, or else documents, are looked for in the reference without what their
    authors wrote; the quarter that shares most, which may quote, does not count. None if they
    share no more than usual, or the reference is too small, or has too many documents.
    """
    if reference.n_words < _MIN_CALIBRATED or reference.n_documents > _MAX_DOCUMENTS:
        return None
    least = least_bits(reference.n_words, chance_words=_COUNTED_WORDS)
    groups: dict[str, list[tuple[str, int]]] = defaultdict(list)
    numbers = reference.numbers()
    for number, document in zip(numbers, reference.documents(numbers), strict=True):
        groups[document.author or f"\n{document.id}"].append((document.id, number))
    if 2 * max(map(len, groups.values())) > len(numbers):
        # Of one author, or mostly: without what that one wrote hardly anything is left.
        groups = {f"{name}\n{one[0]}": [one] for name, own in groups.items() for one in own}
    rng, shared = random.Random(1), []
    for name in sorted(rng.sample(sorted(groups), min(_N_GROUPS, len(groups)))):
        out = frozenset(number for _, number in groups[name])
        words: list[str] = []
        for _, number in sorted(groups[name]):
            words += reference.located_document(number)[1].words
            if len(words) >= _GROUP_WORDS:
                break
        del words[_GROUP_WORDS:]
        spans = maximal_spans(reference.longest_matches(words, exclude=out), MIN_WORDS)
        grams = [words[first : first + n] for first, n in spans]
        counts = reference.counts(grams, exclude=out)
        runs = [ChainRun(0, *pair) for pair in zip(grams, counts, strict=True)]
        known = chain_counts(reference, runs, out)
        n_found = 0
        for run in runs:
            bits = math.fsum(chain_bits(run, known, reference.n_words))
            n_found += bits - math.log2(run.n_places) >= least
        n_expected = len(words) / _COUNTED_WORDS
        shared.append((n_found / max(n_expected, 1e-9), n_found, n_expected))
    kept = sorted(shared)[: math.ceil(0.75 * len(shared))]
    n_found, n_expected = sum(n for _, n, _ in kept), math.fsum(n for *_, n in kept)
    factor = (n_found + _PRIOR) / (n_expected + _PRIOR)
    return round(min(_MAX_FACTOR, factor), 3) if factor > 1 else None


def _grams(words: Sequence[str]) -> Iterator[Gram]:
    for n in (1, 2, 3):
        yield from (tuple(words[k : k + n]) for k in range(len(words) - n + 1))
