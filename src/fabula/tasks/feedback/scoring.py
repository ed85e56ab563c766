"""Measuring feedback without people: Rashkin et al. 2025, section 5 and appendix C.

Of any subset of the answers (a model, a prompt, a corruption, and every cross of them):

- length, in characters;
- how many say that the text is perfect as it is, and the *precision* of that: of those that say so,
  the share whose story was not corrupted, as one ratio of pooled counts (equation 1), not a mean of
  ratios;
- *repetition*: the share of an answer's trigrams that another answer of the subset holds too,
  averaged over answers; with and without those that say perfect;
- overlap with the story: the share of an answer's trigrams that its story holds;
- for prompts that ask for one sentence, how many answers are one.

The paper's repetition is of an implementation that is not described; this is the plain reading. An
answer of fewer than three words has no trigram, and no part in those means.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError
from fabula.stats.resample import percentile_interval
from fabula.tasks.feedback.prompts import says_perfect
from fabula.text import TextSettings
from fabula.text.sentences import sentences_of
from fabula.types import Estimate

__all__ = [
    "DIMENSIONS",
    "METRICS",
    "Answers",
    "Subset",
    "Trigrams",
    "read_answers",
    "repetition",
    "score_answers",
    "sentence_counter",
]

DIMENSIONS = ("model", "prompt", "shots", "method")
METRICS = (
    "length", "perfect", "perfect_precision", "repetition", "repetition_imperfect", "overlap",
    "one_sentence",
)  # fmt: skip
_N_RESAMPLES = 1_000
_MIN_STORIES = 10


@dataclass(frozen=True, slots=True)
class Trigrams:
    """The different trigrams of each answer: int64, shape (n,)."""

    kinds: NDArray[np.int64]
    """Numbers that stand for their words."""
    owners: NDArray[np.int64]
    """Which answer each is of."""
    counts: NDArray[np.int64]
    """How often it stands there."""

    @classmethod
    def of(cls, kinds: NDArray[np.int64], owners: NDArray[np.int64]) -> Trigrams:
        """From all trigrams of all answers, one after another."""
        n_kinds = int(kinds.max(initial=0)) + 1
        once, counts = np.unique(owners * n_kinds + kinds, return_counts=True)
        return cls(once % n_kinds, once // n_kinds, counts)


@dataclass(frozen=True, slots=True)
class Answers:
    """All answers in columns. Arrays have shape (n_answers,) unless said otherwise."""

    labels: dict[str, list[str]]
    """By dimension, each answer's value."""
    stories: NDArray[np.int64]
    """Numbers of the stories that they are about, whatever was done to these."""
    lengths: NDArray[np.float64]
    is_perfect: NDArray[np.bool_]
    is_original: NDArray[np.bool_]
    overlaps: NDArray[np.float64]
    """NaN where an answer has no trigram."""
    one_sentence: NDArray[np.float64]
    """1 or 0; NaN where one sentence was not asked for."""
    trigrams: Trigrams
    n_missing: dict[str, int]
    """Answers that were withheld, by reason."""
    signature: str

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True, slots=True)
class Subset:
    """The measures of one subset; `where` names the dimensions that are fixed."""

    where: Mapping[str, str]
    n: int
    n_stories: int
    values: Mapping[str, Estimate]


def read_answers(
    rows: Sequence[Mapping[str, Any]],
    *,
    one_sentence: frozenset[str] = frozenset(),
    count_sentences: Callable[[list[str]], list[int]] | None = None,
) -> Answers:
    """Rows of `feedback elicit` in columns.

    `one_sentence` names the prompts that ask for a single sentence, which `count_sentences` counts.
    Raises `InputError` where a row lacks a field.
    """
    given = [row for row in map(_checked, rows, count(1)) if row["feedback"] is not None]
    missing = Counter(str(row.get("missing_reason")) for row in rows if row["feedback"] is None)
    if not given:
        raise InputError("there is no answer to measure")
    known_words: dict[str, int] = {}
    parts: list[NDArray[np.int64]] = []
    overlaps = []
    for row in given:
        own, story = (_trigrams(str(row[name]), known_words) for name in ("feedback", "story"))
        parts.append(np.array(own, np.int64).reshape(-1, 3))
        held = set(story)
        overlaps.append(sum(gram in held for gram in own) / len(own) if own else np.nan)
    single = np.full(len(given), np.nan)
    asked = [k for k, row in enumerate(given) if row["prompt"] in one_sentence]
    if count_sentences is not None and asked:
        numbers = count_sentences([str(given[k]["feedback"]) for k in asked])
        single[asked] = [float(n == 1) for n in numbers]
    stories = {row["story_id"]: None for row in given}
    places = {story: k for k, story in enumerate(stories)}
    return Answers(
        labels={name: [str(row[name]) for row in given] for name in DIMENSIONS},
        stories=np.array([places[row["story_id"]] for row in given], np.int64),
        lengths=np.array([len(str(row["feedback"])) for row in given], np.float64),
        is_perfect=np.array([says_perfect(str(row["feedback"])) for row in given], np.bool_),
        is_original=np.array([row["method"] == "original" for row in given], np.bool_),
        overlaps=np.array(overlaps, np.float64),
        one_sentence=single,
        trigrams=Trigrams.of(
            _numbered(np.concatenate(parts), len(known_words)),
            np.repeat(np.arange(len(parts)), [len(part) for part in parts]),
        ),
        n_missing=dict(missing),
        signature="+".join(dict.fromkeys(str(row.get("signature", "")) for row in given)),
    )


def _checked(row: Mapping[str, Any], number: int) -> Mapping[str, Any]:
    lacking = {"story_id", "feedback", "story", *DIMENSIONS} - row.keys()
    if lacking:
        raise InputError(f"answer {number}: no field {', '.join(sorted(lacking))}")
    return row


def _trigrams(text: str, known: dict[str, int]) -> list[tuple[int, int, int]]:
    """Each run of three words, as numbers of `known`, which grows."""
    ids = [known.setdefault(word, len(known)) for word in TextSettings().words(text)]
    return list(zip(ids, ids[1:], ids[2:], strict=False))


def score_answers(answers: Answers, *, seed: int = 0) -> Iterator[Subset]:
    """The measures of all answers, and of every subset by every cross of the dimensions.

    Intervals are by resampling stories: all answers about one, corrupted or not, stay together.
    """
    for n in range(len(DIMENSIONS) + 1):
        for names in combinations(DIMENSIONS, n):
            yield from _score_by(answers, names, seed)


def _numbered(grams: NDArray[np.int64], n_words: int) -> NDArray[np.int64]:
    """Numbers that stand for trigrams of word numbers, which are (n, 3): int64 (n,)."""
    # Two at a time: the cube of a large vocabulary would not fit into 64 bits.
    pairs = np.unique(grams[:, 0] * n_words + grams[:, 1], return_inverse=True)[1]
    found: NDArray[np.int64] = np.unique(pairs * n_words + grams[:, 2], return_inverse=True)[1]
    return found


def repetition(
    trigrams: Trigrams, groups: NDArray[np.int64], is_in: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """The share of each answer's trigrams that another answer of its group holds: (n_answers,).

    groups: int64, the answers' groups; is_in: bool, which answers there are. NaN for an answer that
    has no trigram, or is not there. Linear in the trigrams, but for sorting.
    """
    kept = is_in[trigrams.owners]
    kinds, owners, counts = (
        column[kept] for column in (trigrams.kinds, trigrams.owners, trigrams.counts)
    )
    n_kinds = int(kinds.max(initial=-1)) + 1
    # In how many answers of its group each trigram is.
    _, which, n_holders = np.unique(
        groups[owners] * n_kinds + kinds, return_inverse=True, return_counts=True
    )
    shared = np.bincount(owners, counts * (n_holders[which] > 1), minlength=len(groups))
    total = np.bincount(owners, counts, minlength=len(groups))
    result: NDArray[np.float64] = np.divide(
        shared, total, out=np.full(len(groups), np.nan), where=total > 0
    )
    return result


def _score_by(answers: Answers, names: Sequence[str], seed: int) -> Iterator[Subset]:
    keys = list(zip(*(answers.labels[name] for name in names), strict=True)) or [()] * len(answers)
    distinct = {key: k for k, key in enumerate(sorted(set(keys)))}
    groups = np.array([distinct[key] for key in keys], np.int64)
    everyone = np.ones(len(answers), np.bool_)
    columns = {
        "length": answers.lengths,
        "perfect": answers.is_perfect.astype(np.float64),
        "repetition": repetition(answers.trigrams, groups, everyone),
        "repetition_imperfect": repetition(answers.trigrams, groups, ~answers.is_perfect),
        "overlap": answers.overlaps,
        "one_sentence": answers.one_sentence,
    }
    for key, k in distinct.items():
        of = np.flatnonzero(groups == k)
        stories = np.unique(answers.stories[of], return_inverse=True)[1]
        n_stories = int(stories.max()) + 1
        weights = _weights(n_stories, seed)
        values = {
            name: _ratio(column[of], ~np.isnan(column[of]), stories, weights, answers.signature)
            for name, column in columns.items()
        }
        perfect = answers.is_perfect[of]
        values["perfect_precision"] = _ratio(
            (perfect & answers.is_original[of]).astype(np.float64), perfect, stories, weights,
            answers.signature,
        )  # fmt: skip
        yield Subset(
            where=dict(zip(names, key, strict=True)),
            n=len(of),
            n_stories=n_stories,
            values={name: values[name] for name in METRICS},
        )


@functools.lru_cache(maxsize=8)
def _weights(n_stories: int, seed: int) -> NDArray[np.float64]:
    """How often each resample holds each story: float64 (n_resamples, n_stories)."""
    if n_stories < _MIN_STORIES:
        return np.empty((0, n_stories))
    rng = np.random.default_rng([seed, n_stories])
    draws = rng.multinomial(n_stories, np.full(n_stories, 1 / n_stories), size=_N_RESAMPLES)
    return draws.astype(np.float64)


def _ratio(
    values: NDArray[np.float64],
    counts: NDArray[np.bool_],
    stories: NDArray[np.int64],
    weights: NDArray[np.float64],
    signature: str,
) -> Estimate:
    """The sum of the values that count, over how many do, with its interval over stories."""
    how = "pooled ratio, percentile bootstrap over stories"
    n = int(counts.sum())
    if not n:
        return Estimate(None, None, None, 0, how, signature)
    n_stories = weights.shape[1]
    sums = np.bincount(stories, np.where(counts, values, 0.0), minlength=n_stories)
    numbers = np.bincount(stories, counts, minlength=n_stories)
    value = float(sums.sum() / numbers.sum())
    if not len(weights) or int((numbers > 0).sum()) < _MIN_STORIES:
        return Estimate(value, None, None, n, how, signature)
    below = weights @ numbers
    resampled = (weights @ sums)[below > 0] / below[below > 0]
    return Estimate(value, *percentile_interval(resampled), n, how, signature)


def sentence_counter(nlp: Any) -> Callable[[list[str]], list[int]]:
    """How many sentences each of many texts has; list marks at the beginning are none."""

    def count_all(texts: list[str]) -> list[int]:
        lines = [[" ".join(text.lstrip("-*• ").split())] for text in texts]
        found = sentences_of((line for (line,) in lines), nlp)
        return [len(sentences) for sentences in found]

    return count_all
