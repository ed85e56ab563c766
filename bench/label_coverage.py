"""How often intervals of a corrected judge hold the truth: 95 % is promised.

    python bench/label_coverage.py [--smoke] [--trials N] [--seed S]

Documents are drawn from a known distribution: experts' shares of Yes over 14 tests, or one test
that few or half of the documents pass. A judge passes too many, is right in part or not at all, and
may be biased by group. With 8 to 30 labels: coverage and width of the corrected interval about
these texts, of the one about their source, of the labels alone (Student), and of the published
normal interval. Then clusters of 4 texts that are labelled as a whole; and how often the correction
of another group is said not to hold, where it does and where it does not. Then, where the data
is at hand, the judges that were released with TTCW: 36 stories by models are drawn again and again
(with replacement), and 12 of them labelled by their experts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t

import corpora
from fabula.core.types import Measurement
from fabula.raters.labels import read_labels
from fabula.replicate.ttcw import released_verdicts
from fabula.rubrics.load import load_rubric
from fabula.stats.prediction_powered import (
    Corrected,
    corrected_difference,
    corrected_mean,
    stratified,
    transfer,
)

Values = NDArray[np.float64]
N_ITEMS, N_DOCUMENTS, N_TTCW_LABELS = 14, 80, 12
LABELS = (8, 12, 20, 30)
CUTS = {"14 tests": 0.5, "a test that half pass": 0.0, "a test that 5 % pass": 1.645}


def said(latent: Values, cut: float, n_items: int, rng: np.random.Generator) -> Values:
    """What is passed of `n_items` tests: their share, or 0 and 1 of a single one."""
    if n_items == 1:
        return (latent > cut).astype(np.float64)
    return rng.binomial(n_items, norm.cdf(latent - cut)) / n_items


def truth(cut: float, n_items: int) -> float:
    """The mean over all documents that could be drawn."""
    return float(norm.cdf(-cut / math.sqrt(2 if n_items > 1 else 1)))


def draw(
    cut: float, n_items: int, correlation: float, bias: float, n: int, rng: np.random.Generator
) -> tuple[Values, Values]:
    latent, own = rng.standard_normal((2, n))
    judge = correlation * latent + math.sqrt(1 - correlation**2) * own
    return said(latent, cut, n_items, rng), said(judge, cut - bias, n_items, rng)


class Tally:
    """Of some intervals, how many hold the truth, and how wide they are."""

    def __init__(self) -> None:
        self.held = self.n = 0
        self.width = 0.0

    def add(self, low: float | None, high: float | None, value: float) -> None:
        if low is None or high is None:
            return
        self.n += 1
        self.held += low <= value <= high
        self.width += high - low

    def __str__(self) -> str:
        return f"{self.held / self.n:5.3f} ({self.width / self.n:.2f})" if self.n else "-"


def students(values: Values) -> tuple[float, float]:
    half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)


def published(
    labels: Values, predicted: Values, others: Values, weight: float
) -> tuple[float, float]:
    """The normal interval of PPI++ (Angelopoulos, Duchi and Zrnic 2023)."""
    middle = weight * others.mean() + (labels - weight * predicted).mean()
    variance = (labels - weight * predicted).var() / len(labels)
    half = 1.959964 * math.sqrt(variance + (weight * others).var() / len(others))
    return float(middle - half), float(middle + half)


def one_mean(
    sample: Callable[[], tuple[Values, Values]], n_labels: int, value: float, n_trials: int
) -> list[Tally]:
    tallies = [Tally() for _ in range(4)]
    for _ in range(n_trials):
        labels, predicted = sample()
        data = labels[:n_labels], predicted[:n_labels], predicted[n_labels:]
        found = corrected_mean(*data)
        assert found is not None
        finite = corrected_mean(*data, is_finite=True)
        assert finite is not None
        tallies[0].add(finite.low, finite.high, float(labels.mean()))
        tallies[1].add(found.low, found.high, value)
        tallies[2].add(*students(labels[:n_labels]), value)
        tallies[3].add(*published(*data, found.weight), value)
    return tallies


def means(n_trials: int, seed: int) -> None:
    print(f"coverage (width) of {n_trials} trials, {N_DOCUMENTS} documents")
    print("what, correlation, labels: these texts | source | labels alone | published")
    for name, cut in CUTS.items():
        n_items = N_ITEMS if name == "14 tests" else 1
        for correlation in (0.0, 0.5, 0.9):
            for n_labels in LABELS:
                rng = np.random.default_rng([seed, n_labels, round(10 * correlation), len(name)])
                sample = partial(draw, cut, n_items, correlation, 1.0, N_DOCUMENTS, rng)
                cells = one_mean(sample, n_labels, truth(cut, n_items), n_trials)
                print(f"{name:22} {correlation} {n_labels:2}: {' | '.join(map(str, cells))}")


def groups(n_trials: int, seed: int) -> None:
    """Two groups of which the judge passes one too much and the other too little."""
    print("biased by group: difference | mean of both, corrected group by group | together")
    for n_labels in LABELS:
        rng = np.random.default_rng([seed, n_labels])
        difference, apart, together = Tally(), Tally(), Tally()
        for _ in range(n_trials):
            parts: list[Corrected] = []
            pooled: list[list[Values]] = []
            for bias in (1.0, -0.5):
                labels, predicted = draw(0.5, N_ITEMS, 0.7, bias, N_DOCUMENTS // 2, rng)
                data = labels[:n_labels], predicted[:n_labels], predicted[n_labels:]
                found = corrected_mean(*data)
                assert found is not None
                parts.append(found)
                pooled.append(list(data))
            _, low, high = corrected_difference(*parts)[0].ends().values()
            difference.add(low, high, 0.0)
            whole = stratified(parts)
            apart.add(whole.low, whole.high, truth(0.5, N_ITEMS))
            both = corrected_mean(*(np.concatenate(pair) for pair in zip(*pooled, strict=True)))
            assert both is not None
            together.add(both.low, both.high, truth(0.5, N_ITEMS))
        print(f"{n_labels:2} a group: {difference} | {apart} | {together}")


def clusters(n_trials: int, seed: int) -> None:
    """Prompts of 4 texts each, some of them labelled, whose texts are alike."""
    print(
        "prompts labelled of all, of 4 texts: these texts | source | as if texts were independent"
    )
    size = 4
    for n_labelled, n in ((8, 20), (12, 40), (20, 40)):
        rng = np.random.default_rng([seed, n_labelled, n])
        tallies = [Tally() for _ in range(3)]
        names = list(np.repeat(np.arange(n), size))
        for _ in range(n_trials):
            shared, own = rng.standard_normal((2, n, 1)), rng.standard_normal((2, n, size))
            latent, noise = (math.sqrt(0.5) * (shared + own)).reshape(2, -1)
            labels = said(latent, 0.5, N_ITEMS, rng)
            predicted = said(0.7 * latent + math.sqrt(0.51) * noise, -0.5, N_ITEMS, rng)
            k = n_labelled * size
            data = labels[:k], predicted[:k], predicted[k:]
            mean, everywhere = float(labels.mean()), truth(0.5, N_ITEMS)
            ways = [(True, names, mean), (False, names, everywhere), (False, [], everywhere)]
            for tally, (is_finite, units, value) in zip(tallies, ways, strict=True):
                found = corrected_mean(*data, is_finite=is_finite, clusters=units)
                assert found is not None
                tally.add(found.low, found.high, value)
        print(f"{n_labelled} of {n}: {' | '.join(map(str, tallies))}")


def transfers(n_trials: int, seed: int) -> None:
    """Said not to hold at p < 0.05: of groups where it does, and of one that the judge favours."""
    print(
        "labels each: said not to hold where it holds | where the judge passes fewer of one group"
    )
    for n_labels in LABELS:
        rng = np.random.default_rng([seed, n_labels])
        counts = []
        for bias in (1.0, -0.5):
            n_broken = 0
            for _ in range(n_trials):
                one, other = (
                    draw(0.5, N_ITEMS, 0.7, by, N_DOCUMENTS // 2, rng) for by in (bias, 1.0)
                )
                parts = [(y[:n_labels], f[:n_labels], f[n_labels:]) for y, f in (one, other)]
                *_, p = transfer(*parts)
                n_broken += p is not None and p < 0.05
            counts.append(f"{n_broken / n_trials:.1%}")
        print(f"{n_labels:2}: {' | '.join(counts)}")


def shares(found: list[Measurement]) -> dict[str, float]:
    by_story: dict[str, list[float]] = {}
    for one in found:
        if isinstance(one.value, float):
            by_story.setdefault(one.document_id, []).append(one.value)
    return {story: float(np.mean(values)) for story, values in by_story.items()}


def redrawn(table: Values, rng: np.random.Generator) -> tuple[Values, Values]:
    labels, predicted = table[rng.integers(len(table), size=len(table))].T
    return labels, predicted


def released(n_trials: int, seed: int) -> None:
    folder = corpora.SHARED / "ttcw"
    if not (folder / "llm_judges").exists():
        print("the released judges of TTCW are not at hand")
        return
    rubric = load_rubric("ttcw")
    experts = shares(read_labels(folder / "ttcw_annotations.json", rubric))
    experts = {story: value for story, value in experts.items() if "NewYorker" not in story}
    value = float(np.mean(list(experts.values())))
    print(f"TTCW, {len(experts)} stories by models, {N_TTCW_LABELS} labelled; experts {value:.1%}")
    print("judge: says, correlation: these texts | source | labels alone | published")
    for file in sorted(Path(folder / "llm_judges").glob("annotations_*.jsonl")):
        judge = shares(released_verdicts(file, rubric))
        stories = [story for story in experts if story in judge]
        table = np.array([(experts[story], judge[story]) for story in stories])
        if len(table) < len(experts):
            print(f"{file.stem}: {len(table)} stories alone have verdicts; left out")
            continue
        rng = np.random.default_rng([seed, len(file.stem)])
        tallies = one_mean(partial(redrawn, table, rng), N_TTCW_LABELS, value, n_trials)
        r = float(np.corrcoef(table.T)[0, 1])
        name = file.stem.removeprefix("annotations_")
        print(f"{name:12} {table[:, 1].mean():5.1%} {r:+.2f}: {' | '.join(map(str, tallies))}")


def main() -> None:
    given = corpora.options(__doc__, trials=2_000, seed=0)
    n_trials = corpora.sized(given.trials, 3)
    means(n_trials, given.seed)
    groups(n_trials, given.seed)
    clusters(n_trials, given.seed)
    transfers(n_trials, given.seed)
    released(n_trials, given.seed)


if __name__ == "__main__":
    main()
