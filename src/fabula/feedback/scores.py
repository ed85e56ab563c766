"""Measuring feedback without people: Rashkin et al. 2025, section 5 and appendix C.

For any subset of the answers (a model, a prompt, a corruption, and every cross of them):

- length, in characters;
- how many say that the text is perfect as it is, and the *precision* of that: the share of those
  answers whose story was not corrupted, as one ratio of pooled counts (equation 1), not a mean of
  ratios; beside it its *chance* level, the share of all answers whose story was not corrupted: the
  precision of calling every story perfect, or of tossing a coin;
- *repetition*: the share of an answer's trigrams that also occur in another answer of its cell (the
  answers of one model to one prompt with the same number of examples), averaged over the subset;
  with and without the answers that say perfect. The paper's Table 1 is the mean of its Table 9,
  whose rows are these cells. Repetition rises with the number of answers compared, so only cells of
  one size are comparable. It can also be computed within the subset itself;
- overlap with the story: the share of an answer's trigrams that occur in its story, and BERTScore
  with it (Zhang et al. 2020; F1, greedy matching), which is comparable within one encoder only;
- for prompts that ask for one sentence, how many answers are one.

The paper does not describe its implementation of repetition; this is the plain reading. An answer
of fewer than three words has no trigrams and is left out of those means.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, count
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fabula.core.errors import InputError
from fabula.core.types import Estimate
from fabula.feedback.eliciting import says_perfect
from fabula.models.encoder import Encoder
from fabula.stats.agreement import pearson
from fabula.stats.contrasts import pooled_estimate
from fabula.stats.resampling import Floats
from fabula.text import TextSettings
from fabula.text.feedback_pieces import feedback_id, why_missing
from fabula.text.sentences import sentences_of

Tokens = Literal["words", "authors"]
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_CLITICS = re.compile(r"(?<=\w)(n't|'(?:s|m|d|ll|re|ve))(?!\w)", re.IGNORECASE)
_PIECES = re.compile(
    r"(?i)``|''|\.{2,}|--+"
    r"|\d+(?:[.,:]\d+)*"
    r"|n't(?!\w)|'(?:s|m|d|ll|re|ve)(?!\w)"
    r"|(?:[^\W_]\.){2,}"
    r"|\w+(?:[-&/]\w+)*"
    r"|\S"
)
_QUOTES = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'"})


def tokeniser(tokens: Tokens) -> Callable[[str], list[str]]:
    """Return the function that splits a text into lower-case words."""
    if tokens == "words":
        return TextSettings().words
    return lambda text: [t.lower() for t in treebank_tokens(text) if t not in _PUNCTUATION]


def treebank_tokens(text: str) -> list[str]:
    """Penn Treebank tokens: clitics and punctuation split off, double quotation marks as `` and ''.

    Curly quotes count as straight ones.
    """
    plain = text.translate(_QUOTES)
    plain = re.sub(r'(^|[\s(\[{<])"', r"\1 `` ", plain)
    plain = plain.replace('"', " '' ")
    return _PIECES.findall(_CLITICS.sub(r" \1", plain))


DIMENSIONS = ("model", "prompt", "shots", "method")


@dataclass(frozen=True, slots=True)
class Trigrams:
    """The distinct trigrams of each answer: int64, shape (n,)."""

    kinds: NDArray[np.int64]
    owners: NDArray[np.int64]
    """The answer that each belongs to."""
    counts: NDArray[np.int64]
    """Its count in that answer."""


@dataclass(frozen=True, slots=True)
class Answers:
    """All answers in columns. Arrays have shape (n_answers,) unless stated otherwise."""

    ids: list[str]
    """The ids that raters use."""
    labels: dict[str, list[str]]
    """By dimension, each answer's value."""
    stories: NDArray[np.int64]
    """Numbers of the stories they are about, the same for all versions of a story."""
    lengths: Floats
    is_perfect: NDArray[np.bool_]
    is_original: NDArray[np.bool_]
    overlaps: Floats
    """NaN if an answer has no trigrams."""
    bertscores: Floats
    """NaN if it was not measured, or one of the two texts has no tokens."""
    one_sentence: Floats
    """1 or 0; NaN if one sentence was not asked for."""
    trigrams: Trigrams
    n_words: Floats
    """As counted for trigrams."""
    n_missing: dict[str, int]
    """Missing answers, by reason."""
    signature: str

    def __len__(self) -> int:
        return len(self.lengths)


def read_answers(
    rows: Sequence[Mapping[str, Any]],
    *,
    one_sentence: frozenset[str] = frozenset(),
    count_sentences: Callable[[list[str]], list[int]] | None = None,
    pipeline: str = "",
    similarity: Callable[[str, str], float] | None = None,
    encoder: str = "",
    keep_refusals: bool = False,
    tokens: Tokens = "words",
    meter: Callable[[int], None] = lambda _: None,
) -> Answers:
    """Read rows of `feedback elicit` into columns.

    `one_sentence` names the prompts that ask for a single sentence; `count_sentences` counts
    sentences by the language `pipeline` of this name. A model's refusal is missing, unless refusals
    are kept, as they are in published figures. `similarity` is BERTScore of feedback and story, by
    the encoder of this name, and `tokens` is what trigrams consist of. Raises `InputError` if a row
    lacks a field.
    """
    checked = list(map(checked_row, rows, count(1)))
    reasons = [why_missing(row, keep_refusals=keep_refusals) for row in checked]
    known = [row for row, reason in zip(checked, reasons, strict=True) if reason is None]
    missing = Counter(reason for reason in reasons if reason is not None)
    if not known:
        raise InputError("no answers to measure")
    texts = [str(row["feedback"]) for row in known]
    known_words: dict[str, int] = {}
    words_of = tokeniser(tokens)
    parts: list[NDArray[np.int64]] = []
    overlaps, nearness = [], []
    for row, text in zip(known, texts, strict=True):
        # Each run of three words, as word numbers.
        runs, story = (
            list(zip(ids, ids[1:], ids[2:], strict=False))
            for part in (text, str(row["story"]))
            for ids in [[known_words.setdefault(w, len(known_words)) for w in words_of(part)]]
        )
        story_runs = set(story)
        parts.append(np.array(runs, np.int64).reshape(-1, 3))
        overlaps.append(sum(gram in story_runs for gram in runs) / len(runs) if runs else np.nan)
        nearness.append(np.nan if similarity is None else similarity(text, str(row["story"])))
        meter(1)
    single = np.full(len(known), np.nan)
    asked = [k for k, row in enumerate(known) if row["prompt"] in one_sentence]
    if count_sentences is not None and asked:
        single[asked] = [float(n == 1) for n in count_sentences([texts[k] for k in asked])]
    grams = np.concatenate(parts)
    # Two at a time: the cube of a large vocabulary would overflow 64 bits.
    pairs = np.unique(grams[:, 0] * len(known_words) + grams[:, 1], return_inverse=True)[1]
    kinds = np.unique(pairs * len(known_words) + grams[:, 2], return_inverse=True)[1]
    owners = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    n_kinds = int(kinds.max(initial=0)) + 1
    once, counts = np.unique(owners * n_kinds + kinds, return_counts=True)
    stories = list(dict.fromkeys(row["story_id"] for row in known))
    numbered = {story: k for k, story in enumerate(stories)}
    return Answers(
        ids=[feedback_id(row) for row in known],
        labels={name: [str(row[name]) for row in known] for name in DIMENSIONS},
        stories=np.array([numbered[row["story_id"]] for row in known], np.int64),
        lengths=np.array([len(text) for text in texts], np.float64),
        is_perfect=np.array([says_perfect(text) for text in texts], np.bool_),
        is_original=np.array([row["method"] == "original" for row in known], np.bool_),
        overlaps=np.array(overlaps, np.float64),
        bertscores=np.array(nearness, np.float64),
        one_sentence=single,
        trigrams=Trigrams(once % n_kinds, once // n_kinds, counts),
        n_words=np.array([len(words_of(text)) for text in texts], np.float64),
        n_missing=dict(missing),
        signature="+".join(dict.fromkeys(str(row.get("signature", "")) for row in known))
        + ("" if keep_refusals else "|refusals:missing")
        + ("" if tokens == "words" else f"|tokens:{tokens}@1")
        + (f"|sentences:{pipeline}" if pipeline else "")
        + (f"|bertscore:{encoder}" if encoder else ""),
    )


def checked_row(row: Mapping[str, Any], number: int) -> Mapping[str, Any]:
    """The row. Raises `InputError` if it lacks a field of `feedback elicit`."""
    lacking = {"id", "story_id", "feedback", "story", *DIMENSIONS} - row.keys()
    if lacking:
        raise InputError(f"answer {number}: no field {', '.join(sorted(lacking))}")
    if row["feedback"] is None and not row.get("missing_reason"):
        raise InputError(f"answer {number}: neither feedback nor a missing_reason")
    return row


def sentence_counter(nlp: Any) -> Callable[[list[str]], list[int]]:
    """A function that counts the sentences of texts; list markers at the beginning do not count."""
    return lambda texts: list(
        map(len, sentences_of((" ".join(text.lstrip("-*• ").split()) for text in texts), nlp))
    )


def bertscore(encoder: Encoder) -> Callable[[str, str], float]:
    """F1 of two texts' tokens, each matched with the most similar one (Zhang et al. 2020).

    Without idf weights and without rescaling; NaN if a text has no tokens.
    """
    vectors = functools.lru_cache(maxsize=4096)(encoder.token_vectors)

    def score(text: str, other: str) -> float:
        a, b = vectors(text), vectors(other)
        if not len(a) or not len(b):
            return math.nan
        cosines = a @ b.T
        precision, recall = float(cosines.max(axis=1).mean()), float(cosines.max(axis=0).mean())
        # Cosines may be negative, where a harmonic mean is undefined.
        return 2 * precision * recall / (precision + recall) if min(precision, recall) > 0 else 0.0

    return score


CELL = ("model", "prompt", "shots")
VALIDATED = {"feedback_type": ("perfect", 0.90), "specificity": ("repetition", -0.55)}
"""By the item that people answered: the measure, and the paper's Pearson correlation."""


@dataclass(frozen=True, slots=True)
class Subset:
    """The measures of one subset; `where` names the dimensions that are fixed."""

    where: Mapping[str, str]
    n: int
    n_stories: int
    values: Mapping[str, Estimate]


def score_answers(
    answers: Answers, crosses: Iterable[Sequence[str]] | None = None
) -> Iterator[Subset]:
    """Yield the measures of all answers, and of every subset by every cross of the dimensions.

    `crosses` limits the crosses to these. Answers count as repeated within a cell. Intervals are
    by resampling stories: all answers about one, corrupted or not, stay together.
    """
    signature = f"{answers.signature}|repetition:cell"
    if crosses is None:
        sizes = range(len(DIMENSIONS) + 1)
        crosses = [names for n in sizes for names in combinations(DIMENSIONS, n)]
    repeated = cell_repetition(answers)
    repeated_imperfect = cell_repetition(answers, ~answers.is_perfect)
    pooled = functools.partial(pooled_estimate, method=POOLED, signature=signature)
    for names in crosses:
        distinct, groups = group_answers(answers, names)
        columns = {
            "length": answers.lengths,
            "perfect": answers.is_perfect.astype(np.float64),
            "perfect_precision": np.where(answers.is_perfect, answers.is_original, np.nan),
            "perfect_precision_chance": answers.is_original.astype(np.float64),
            "repetition": repeated,
            "repetition_imperfect": repeated_imperfect,
            "overlap": answers.overlaps,
            "bertscore": answers.bertscores,
            "one_sentence": answers.one_sentence,
        }
        for key, k in distinct.items():
            at = np.flatnonzero(groups == k)
            stories = np.unique(answers.stories[at], return_inverse=True)[1]
            values = {}
            for name, column in columns.items():
                counts = ~np.isnan(column[at])
                parts, wholes = np.where(counts, column[at], 0.0), counts.astype(np.float64)
                n, is_share = int(counts.sum()), name in _SHARES
                values[name] = pooled(parts, wholes, stories.tolist(), n=n, is_share=is_share)
            where = dict(zip(names, key, strict=True))
            yield Subset(where, len(at), int(stories.max()) + 1, values)


def group_answers(
    answers: Answers, names: Sequence[str]
) -> tuple[dict[tuple[str, ...], int], NDArray[np.int64]]:
    """The groups by these dimensions, in order, and each answer's group number: (n_answers,)."""
    keys = list(zip(*(answers.labels[name] for name in names), strict=True)) or [()] * len(answers)
    distinct = {key: k for k, key in enumerate(sorted(set(keys)))}
    return distinct, np.array([distinct[key] for key in keys], np.int64)


def cell_repetition(answers: Answers, is_in: NDArray[np.bool_] | None = None) -> Floats:
    """`repetition` of each answer in its cell; of all answers, unless `is_in` says which."""
    everyone = np.ones(len(answers), np.bool_)
    cells = group_answers(answers, CELL)[1]
    return repetition(answers.trigrams, cells, everyone if is_in is None else is_in)


def repetition(trigrams: Trigrams, groups: NDArray[np.int64], is_in: NDArray[np.bool_]) -> Floats:
    """The share of each answer's trigrams that another answer of its group has: (n_answers,).

    groups: int64, the answers' groups; is_in: bool, which answers to include. NaN for an answer
    that has no trigrams or is not included. Linear in the trigrams, except for sorting.
    """
    kept = is_in[trigrams.owners]
    columns = trigrams.kinds, trigrams.owners, trigrams.counts
    kinds, owners, counts = (column[kept] for column in columns)
    keys = groups[owners] * (int(kinds.max(initial=-1)) + 1) + kinds
    # The number of answers of its group that contain each trigram.
    _, which, n_holders = np.unique(keys, return_inverse=True, return_counts=True)
    shared = np.bincount(owners, counts * (n_holders[which] > 1), minlength=len(groups))
    total = np.bincount(owners, counts, minlength=len(groups))
    result: Floats = np.divide(shared, total, out=np.full(len(groups), np.nan), where=total > 0)
    return result


POOLED = "pooled ratio over stories"
_SHARES = {"perfect", "perfect_precision_chance", "perfect_precision", "one_sentence"}
"""Measures that count answers."""


def measured(answers: Answers) -> dict[str, dict[str, float]]:
    """The two measures by piece of feedback; repetition is within the cell, over all of `answers`.

    A piece without trigrams has no repetition.
    """
    perfect, repeated = answers.is_perfect.astype(np.float64), cell_repetition(answers)
    return known_values(answers.ids, {"perfect": perfect, "repetition": repeated})


def known_values(ids: Sequence[str], columns: Mapping[str, Floats]) -> dict[str, dict[str, float]]:
    """The numbers of each column by id, without NaN."""
    return {
        name: {id_: float(n) for id_, n in zip(ids, numbers, strict=True) if not np.isnan(n)}
        for name, numbers in columns.items()
    }


def validate(
    measures: Mapping[str, Mapping[str, float]],
    people: Mapping[str, Mapping[str, float]],
    stories: Mapping[str, str],
    *,
    seed: int = 0,
    signature: str = "",
) -> dict[str, Estimate]:
    """Pearson correlation of a measure with people's means, by item, over pieces with both.

    `stories` gives the story that each piece is about; intervals are over these.
    """
    results = {}
    for item, (name, _) in VALIDATED.items():
        values, ratings = measures.get(name, {}), people.get(item, {})
        both = [id_ for id_ in ratings if id_ in values and id_ in stories]
        a = np.array([values[id_] for id_ in both], np.float64)
        b = np.array([ratings[id_] for id_ in both], np.float64)
        about, method = [stories[id_] for id_ in both], "Pearson with people's means over stories"
        results[item] = pearson(a, b).estimate(about, seed=seed, method=method, signature=signature)
    return results
