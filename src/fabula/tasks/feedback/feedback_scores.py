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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fabula.stats.agreement import pearson
from fabula.stats.contrasts import pooled_estimate
from fabula.tasks.feedback.answers import DIMENSIONS, Answers, Trigrams
from fabula.types import Estimate

CELL = ("model", "prompt", "shots")
METRICS = (
    "length", "perfect", "perfect_precision", "perfect_precision_chance", "repetition",
    "repetition_imperfect", "overlap", "bertscore", "one_sentence",
)  # fmt: skip
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
    answers: Answers,
    *,
    within: Literal["cell", "subset"] = "cell",
    crosses: Iterable[Sequence[str]] | None = None,
) -> Iterator[Subset]:
    """Yield the measures of all answers, and of every subset by every cross of the dimensions.

    `crosses` limits the crosses to these. `within` is the scope in which answers count as repeated:
    the cell, or the subset.
    Intervals are by resampling stories: all answers about one, corrupted or not, stay together.
    """
    signature = f"{answers.signature}|repetition:{within}"
    cells = group_answers(answers, CELL)[1] if within == "cell" else None
    if crosses is None:
        every = range(len(DIMENSIONS) + 1)
        crosses = [names for n in every for names in combinations(DIMENSIONS, n)]
    everyone = np.ones(len(answers), np.bool_)
    for names in crosses:
        distinct, groups = group_answers(answers, names)
        compared = groups if cells is None else cells
        columns = {
            "length": answers.lengths,
            "perfect": answers.is_perfect.astype(np.float64),
            "perfect_precision_chance": answers.is_original.astype(np.float64),
            "repetition": repetition(answers.trigrams, compared, everyone),
            "repetition_imperfect": repetition(answers.trigrams, compared, ~answers.is_perfect),
            "overlap": answers.overlaps,
            "bertscore": answers.bertscores,
            "one_sentence": answers.one_sentence,
        }
        for key, k in distinct.items():
            of = np.flatnonzero(groups == k)
            stories = np.unique(answers.stories[of], return_inverse=True)[1]
            values = {
                name: _ratio(name, column[of], ~np.isnan(column[of]), stories, signature)
                for name, column in columns.items()
            }
            perfect = answers.is_perfect[of]
            right = (perfect & answers.is_original[of]).astype(np.float64)
            precision = _ratio("perfect_precision", right, perfect, stories, signature)
            values["perfect_precision"] = precision
            yield Subset(
                where=dict(zip(names, key, strict=True)),
                n=len(of),
                n_stories=int(stories.max()) + 1,
                values={name: values[name] for name in METRICS},
            )


def group_answers(
    answers: Answers, names: Sequence[str]
) -> tuple[dict[tuple[str, ...], int], NDArray[np.int64]]:
    """The groups by these dimensions, in order, and each answer's group number: (n_answers,)."""
    keys = list(zip(*(answers.labels[name] for name in names), strict=True)) or [()] * len(answers)
    distinct = {key: k for k, key in enumerate(sorted(set(keys)))}
    return distinct, np.array([distinct[key] for key in keys], np.int64)


def cell_repetition(answers: Answers) -> NDArray[np.float64]:
    """Repetition of each answer in its cell: float64, shape (n_answers,), NaN without trigrams."""
    return repetition(
        answers.trigrams, group_answers(answers, CELL)[1], np.ones(len(answers), np.bool_)
    )


def repetition(
    trigrams: Trigrams, groups: NDArray[np.int64], is_in: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """The share of each answer's trigrams that another answer of its group has: (n_answers,).

    groups: int64, the answers' groups; is_in: bool, which answers to include. NaN for an answer
    that has no trigrams or is not included. Linear in the trigrams, except for sorting.
    """
    kept = is_in[trigrams.owners]
    kinds, owners, counts = (
        column[kept] for column in (trigrams.kinds, trigrams.owners, trigrams.counts)
    )
    n_kinds = int(kinds.max(initial=-1)) + 1
    # The number of answers of its group that contain each trigram.
    _, which, n_holders = np.unique(
        groups[owners] * n_kinds + kinds, return_inverse=True, return_counts=True
    )
    shared = np.bincount(owners, counts * (n_holders[which] > 1), minlength=len(groups))
    total = np.bincount(owners, counts, minlength=len(groups))
    result: NDArray[np.float64] = np.divide(
        shared, total, out=np.full(len(groups), np.nan), where=total > 0
    )
    return result


_SHARES = {"perfect", "perfect_precision_chance", "perfect_precision", "one_sentence"}
"""Measures that count answers."""


def _ratio(
    name: str,
    values: NDArray[np.float64],
    counts: NDArray[np.bool_],
    stories: NDArray[np.int64],
    signature: str,
) -> Estimate:
    """The sum of the selected values divided by their number, with its interval over stories."""
    return pooled_estimate(
        np.where(counts, values, 0.0),
        counts.astype(np.float64),
        stories.tolist(),
        method="pooled ratio over stories",
        signature=signature,
        n=int(counts.sum()),
        is_share=name in _SHARES,
    )


def measured(answers: Answers) -> dict[str, dict[str, float]]:
    """The two measures by piece of feedback; repetition is within the cell, over all of `answers`.

    A piece without trigrams has no repetition.
    """
    columns = {
        "perfect": answers.is_perfect.astype(np.float64),
        "repetition": cell_repetition(answers),
    }
    return known_values(answers.ids, columns)


def known_values(
    ids: Sequence[str], columns: Mapping[str, NDArray[np.float64]]
) -> dict[str, dict[str, float]]:
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
    found = {}
    for item, (name, _) in VALIDATED.items():
        mine, said = measures.get(name, {}), people.get(item, {})
        both = [id_ for id_ in said if id_ in mine and id_ in stories]
        a = np.array([mine[id_] for id_ in both], np.float64)
        b = np.array([said[id_] for id_ in both], np.float64)
        found[item] = pearson(a, b).estimate(
            [stories[id_] for id_ in both],
            seed=seed,
            method="Pearson with people's means over stories",
            signature=signature,
        )
    return found
