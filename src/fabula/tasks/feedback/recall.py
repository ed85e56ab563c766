"""How many planted faults answers find, and how often they name one where none was planted.

For any subset of the answers that could be parsed (a model, a prompt, a kind of fault):

- *recall*: the share of answers on changed stories that find the planted fault; *exact*: by
  quotation alone; *chance*: the expected value if each answer pointed at random places; *at least*:
  recall if every missing answer counted as a miss;
- *false alarms*: the share of answers on unchanged stories that name a fault. Such a story may have
  faults of its own, so this is an upper bound;
- *precision*: the share of answers naming a fault, on changed stories or not, that find the planted
  one; so it depends on how many of the stories were changed;
- *F1*: the harmonic mean of recall and precision, which is a ratio of counts too.

Each is a ratio of pooled counts, with an interval over stories: all answers about one, in whatever
form, are one unit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fabula.stats.agreement import Confusion, Statistic, cohen, difference
from fabula.stats.contrasts import adjusted, permutation_f, pooled_estimate
from fabula.tasks.feedback.fault_matches import Answer, Findings
from fabula.types import Contrast, Estimate

_METHOD = "pooled ratio over stories"
Counts = Sequence[tuple[float, float]]
"""For each answer, what it adds to the numerator and to the denominator."""


@dataclass(frozen=True, slots=True)
class FindScore:
    """The measures of one subset; `where` names the dimensions that are fixed."""

    where: Mapping[str, str]
    n_changed: int
    n_original: int
    missing: Mapping[str, int]
    """Answers that could not be parsed, by reason."""
    n_points: float | None
    """The mean number of points per answer."""
    values: Mapping[str, Estimate]


def score_findings(findings: Findings, crosses: Sequence[Sequence[str]]) -> Iterator[FindScore]:
    """The measures of every subset by each cross of dimensions."""
    for names in crosses:
        groups: dict[tuple[str, ...], list[Answer]] = {}
        missing: dict[tuple[str, ...], list[tuple[bool, str]]] = {}
        for one in findings.answers:
            groups.setdefault(tuple(one.labels[name] for name in names), []).append(one)
        for labels, reason in findings.missing:
            key = tuple(labels[name] for name in names)
            missing.setdefault(key, []).append((labels["method"] != "original", reason))
        for key in sorted(groups.keys() | missing.keys()):
            lacking, answers = missing.get(key, []), groups.get(key, [])
            n_changed = sum(one.found is not None for one in answers)
            n_missing = sum(is_changed for is_changed, _ in lacking)
            yield FindScore(
                dict(zip(names, key, strict=True)),
                n_changed,
                len(answers) - n_changed,
                dict(sorted(Counter(reason for _, reason in lacking).items())),
                math.fsum(one.n_points for one in answers) / len(answers) if answers else None,
                _values(answers, n_missing, findings.signature),
            )


def _values(answers: Sequence[Answer], n_missing: int, signature: str) -> dict[str, Estimate]:
    """The measures by name; they are defined in the module's docstring."""
    columns: dict[str, Counts] = {
        "recall": [_recall(one) for one in answers],
        "recall_exact": [
            (one.rule == "exact", one.found is not None and one.chance == one.chance)
            for one in answers
        ],
        "chance": [(one.chance, 1) if one.chance == one.chance else (0, 0) for one in answers],
        "false_alarms": [_alarm(one) for one in answers],
        "precision": [(one.found is True, one.names_fault) for one in answers],
        "f1": [
            (2 * (one.found is True), one.names_fault + (one.found is not None)) for one in answers
        ],
    }
    stories = [one.story for one in answers]
    values = {name: _ratio(column, stories, signature) for name, column in columns.items()}
    recall = values["recall"]
    n = recall.n + n_missing
    least = math.fsum(part for part, _ in columns["recall"]) / n if n else None
    values["recall_at_least"] = Estimate(
        least, None, None, n, "recall where a missing answer is a miss", signature, None
    )
    return values


def _recall(one: Answer) -> tuple[float, float]:
    return one.found is True, one.found is not None


def _alarm(one: Answer) -> tuple[float, float]:
    return one.found is None and one.names_fault, one.found is None


def _ratio(counts: Counts, stories: Sequence[str], signature: str) -> Estimate:
    """The sum of the numerators over that of the denominators, with its interval over stories."""
    parts, wholes = np.array(counts, np.float64).reshape(-1, 2).T
    return pooled_estimate(
        parts, wholes, stories, method=_METHOD, signature=signature, n=int((wholes > 0).sum()),
        is_share=True,
    )  # fmt: skip


def compare_models(findings: Findings, *, seed: int = 0) -> list[Contrast]:
    """Compare every pair of models in `recall` and `false_alarms`, paired by question: story,
    change, prompt and examples.

    p is from a permutation test within stories, equally weighted; corrected over the pairs of a
    measure. `n_answers`: the questions that both answered.
    """
    by_model: dict[str, dict[str, Answer]] = {}
    for one in findings.answers:
        by_model.setdefault(one.labels["model"], {})[one.question] = one
    found: list[Contrast] = []
    for measure, counted in (("recall", _recall), ("false_alarms", _alarm)):
        pairs = []
        for a, b in combinations(by_model, 2):
            shared = [
                (one, by_model[b][question])
                for question, one in by_model[a].items()
                if question in by_model[b] and counted(one)[1]
            ]
            if not shared:
                continue
            stories = [one.story for one, _ in shared]
            sides = [[counted(pair[k]) for pair in shared] for k in (0, 1)]
            apart = difference(
                *((_ratio_of(side), stories) for side in sides),
                method=f"difference of {measure} over stories",
                signature=findings.signature,
            )
            clustered: list[dict[str, list[float]]] = [{}, {}]
            for group, side in zip(clustered, sides, strict=True):
                for story, (part, _) in zip(stories, side, strict=True):
                    group.setdefault(story, []).append(float(part))
            p = permutation_f(clustered, seed=seed).p
            about = {"n_answers": len(shared)}
            pairs.append(Contrast(measure, a, b, apart, p, test="permutation", details=about))
        found += adjusted(pairs)
    return found


def _ratio_of(counts: Counts) -> Statistic:
    rows = np.array(counts, np.float64)
    return Statistic(rows, lambda sums, _: (sums[..., 0], sums[..., 1]), rows[:0], len(rows))


@dataclass(frozen=True, slots=True)
class ReaderAccuracy:
    """Agreement of a reader of answers with people, on the answers that both read."""

    by: str
    item: str
    n: int
    n_yes: int
    """Answers that people labelled Yes."""
    accuracy: Estimate
    sensitivity: float | None
    specificity: float | None
    kappa: float | None
    n_unread: int
    """Answers that people labelled and this reader could not parse."""


def reader_accuracy(
    findings: Findings, labels: Mapping[str, Mapping[str, bool]]
) -> Iterator[ReaderAccuracy]:
    """Yield the accuracy per item (`found`, `asks`), against people's labels by item and answer."""
    answers = {one.id: one for one in findings.answers}
    for item, given in labels.items():
        said, truth, stories = [], [], []
        n_unread = 0
        for id_, is_so in given.items():
            one = answers.get(id_)
            verdict = None if one is None else one.found if item == "found" else one.names_fault
            if verdict is None:
                n_unread += one is None
                continue
            said.append(float(verdict))
            truth.append(float(is_so))
            stories.append(answers[id_].story)
        a, b = np.array(said, np.float64), np.array(truth, np.float64)
        table = Confusion.of(a, b)
        accuracy = _ratio(
            [(x == y, 1) for x, y in zip(said, truth, strict=True)], stories, findings.signature
        )
        yield ReaderAccuracy(
            findings.by,
            item,
            len(said),
            int(b.sum()),
            accuracy,
            table.recall,
            table.specificity,
            cohen(a, b).value,
            n_unread,
        )
