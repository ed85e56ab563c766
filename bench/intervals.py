"""How often intervals called 95 % hold the truth, and tests at 5 % reject what is so.

    python bench/intervals.py [--smoke] [--trials N] [--only WORD]

Each row is a simulation with a known truth, at 10, 12, 20 and 40 independent units (texts, stories,
prompts). Printed: the share of the intervals given that hold the truth and, in brackets, the share
of trials in which none was given, where that is above 0. For tests: the share that rejects at 5 %
where nothing differs. docs/reliability.md has the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import norm

import corpora
from fabula.novelty.detector import Labelled, calibrate
from fabula.stats import agreement
from fabula.stats.contrasts import (
    compare_clusters,
    compare_means,
    mean_estimate,
    permutation_f,
    pooled_estimate,
)
from fabula.stats.prediction_powered import corrected_mean

Values = NDArray[np.float64]
Draw = np.random.Generator
SIZES = 10, 12, 20, 40
Ends = tuple[float | None, float | None]
Trial = Callable[[Draw, int, int], Ends]
"""An interval of a sample of so many units; the last argument is a seed."""
HOW = {"method": "", "signature": ""}


def ends(estimate: object) -> Ends:
    return estimate.low, estimate.high  # type: ignore[attr-defined]


# --- means and shares --------------------------------------------------------------------------

SKEWED: dict[str, tuple[Callable[[Draw, int], Values], float]] = {
    "normal": (lambda rng, n: rng.normal(size=n), 0.0),
    "exponential": (lambda rng, n: rng.exponential(size=n), 1.0),
    "gamma 0.5": (lambda rng, n: rng.gamma(0.5, size=n), 0.5),
    "lognormal 0.7": (lambda rng, n: rng.lognormal(0, 0.7, n), float(np.exp(0.245))),
    "shares near 1": (lambda rng, n: rng.beta(8, 1, n), 8 / 9),
}


def mean_of(draw: Callable[[Draw, int], Values], rng: Draw, n: int, seed: int) -> Ends:
    return ends(mean_estimate(draw(rng, n), signature=""))


def share(p: float, size: int, rho: float, rng: Draw, n: int, seed: int) -> Ends:
    """Of answers in clusters of `size`, whose shares vary as a beta distribution."""
    own = rng.beta(p * (1 - rho) / rho, (1 - p) * (1 - rho) / rho, n) if rho else np.full(n, p)
    hits = rng.random((n, size)) < own[:, None]
    groups = np.repeat(np.arange(n), size)
    return ends(
        pooled_estimate(
            hits.ravel().astype(float), np.ones(n * size), groups.tolist(), is_share=True, **HOW
        )
    )


def difference(draw: Callable[[Draw, int], Values], rng: Draw, n: int, seed: int) -> Ends:
    groups = {"a": 1.5 * draw(rng, n), "b": draw(rng, 2 * n)}
    return ends(compare_means("", groups, signature="").details["percent"])


def shared_clusters(rng: Draw, n: int, seed: int) -> Ends:
    """Two groups of skewed values to the same prompts; A is 1.5 times B."""
    prompt = rng.gamma(2, size=n)
    groups = [
        {str(k): (factor * prompt[k] * rng.gamma(2, 0.5, 3)).tolist() for k in range(n)}
        for factor in (1.5, 1.0)
    ]
    sides = dict(zip("ab", groups, strict=True))
    return ends(compare_clusters("", sides, seed=seed, signature="").details["percent"])


# --- agreement --------------------------------------------------------------------------------


def verdicts(rng: Draw, n: int, m: int, p: float, kappa: float) -> Values:
    """Yes with probability p; all raters of a story say the same with probability kappa."""
    alike = rng.random((n, 1)) < kappa
    return np.where(alike, rng.random((n, 1)) < p, rng.random((n, m)) < p).astype(float)


def cohen(p: float, kappa: float, rng: Draw, n: int, seed: int) -> Ends:
    table = verdicts(rng, n, 2, p, kappa)
    return ends(agreement.cohen(*table.T).estimate(range(n), seed=seed, **HOW))


def fleiss(p: float, kappa: float, rng: Draw, n: int, seed: int) -> Ends:
    return ends(
        agreement.fleiss(verdicts(rng, n, 3, p, kappa)).estimate(range(n), seed=seed, **HOW)
    )


ITEMS = np.linspace(0.08, 0.7, 14)


def over_items(rng: Draw, n: int) -> Values:
    """Three raters on 14 items of different base rates: shape (n * 14, 3)."""
    story = rng.normal(size=(n, 1, 1))
    p = expit(logit(ITEMS)[None, :, None] + story)
    alike = rng.random((n, 14, 1)) < 0.3
    said = np.where(alike, rng.random((n, 14, 1)) < p, rng.random((n, 14, 3)) < p)
    return said.reshape(n * 14, 3).astype(float)


def fleiss_over_items(rng: Draw, n: int, seed: int) -> Ends:
    groups, items = np.repeat(np.arange(n), 14).tolist(), list(range(14)) * n
    return ends(agreement.fleiss(over_items(rng, n), items).estimate(groups, seed=seed, **HOW))


def cohen_over_items(rng: Draw, n: int, seed: int) -> Ends:
    groups, items = np.repeat(np.arange(n), 14).tolist(), list(range(14)) * n
    return ends(
        agreement.cohen(*over_items(rng, n)[:, :2].T, items).estimate(groups, seed=seed, **HOW)
    )


EVEN = norm.ppf([0.2, 0.4, 0.6, 0.8])
SKEW = norm.ppf([0.6, 0.8, 0.92, 0.98])


def marks(cuts: Values, icc: float, rng: Draw, n: int) -> Values:
    """Marks from 1 to 5 of three raters."""
    latent = rng.normal(size=(n, 1)) * icc**0.5 + rng.normal(size=(n, 3)) * (1 - icc) ** 0.5
    return 1.0 + np.searchsorted(cuts, latent)


def graded(kind: str, cuts: Values, icc: float, rng: Draw, n: int, seed: int) -> Ends:
    table = marks(cuts, icc, rng, n)
    a, b = table[:, 0], table[:, 1]
    found = {
        "quadratic kappa": lambda: agreement.concordance(a, b).estimate(range(n), seed=seed, **HOW),
        "Pearson": lambda: agreement.pearson(a, b).estimate(range(n), seed=seed, **HOW),
        "ICC": lambda: agreement.icc(table).estimate(range(n), seed=seed, **HOW),
        "alpha": lambda: agreement.alpha(table, "interval").estimate(
            range(n), method="", seed=seed, signature=""
        ),
    }
    return ends(found[kind]())


def pearson_normal(rho: float, rng: Draw, n: int, seed: int) -> Ends:
    a, b = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], n).T
    return ends(agreement.pearson(a, b).estimate(range(n), seed=seed, **HOW))


def true_of(kind: str, cuts: Values, icc: float) -> float:
    table = marks(cuts, icc, np.random.default_rng(1), 400_000)
    if kind in ("alpha", "ICC"):
        return float(agreement.alpha(table[:100_000], "interval").value or 0)
    if kind == "Pearson":
        return float(np.corrcoef(table[:, 0], table[:, 1])[0, 1])
    return agreement.concordance(table[:, 0], table[:, 1]).value or 0.0


# --- detectors and corrected judges -------------------------------------------------------------


def auroc(value: float, size: int, rng: Draw, n: int, seed: int) -> Ends:
    """n people and n models, each in clusters of `size` texts, whose scores are normal."""
    apart = 2**0.5 * norm.ppf(value)
    groups = np.repeat(np.arange(2 * n), size)
    shared = 0.7 if size > 1 else 0.0
    scores = rng.normal(size=2 * n)[groups] * shared**0.5
    scores += rng.normal(size=len(groups)) * (1 - shared) ** 0.5
    is_human = groups < n
    texts = Labelled(scores + apart * is_human, is_human, groups.astype(str))
    return ends(calibrate(texts, score="curvature", signature="", n_missing=0).auroc)


def corrected(is_rare: bool, rng: Draw, n: int, seed: int) -> Ends:
    """n labels beside 400 predictions of a judge who is right in part."""
    latent = rng.normal(size=n + 400)
    if is_rare:
        truth = (latent + rng.normal(size=n + 400) > 1.81).astype(float)
        judge = (latent + rng.normal(size=n + 400) > 0.5).astype(float)
    else:
        truth, judge = np.exp(0.7 * latent), np.exp(0.5 * latent + rng.normal(0, 0.4, n + 400))
    found = corrected_mean(truth[:n], judge[:n], judge[n:])
    assert found is not None
    return found.low, found.high


# --- tests ------------------------------------------------------------------------------------


def p_of(
    spreads: tuple[float, ...], sizes: tuple[float, ...], rng: Draw, n: int, seed: int
) -> float:
    groups = [
        {f"{k}-{j}": [value] for j, value in enumerate(rng.normal(0, spread, int(n * size)))}
        for k, (spread, size) in enumerate(zip(spreads, sizes, strict=True))
    ]
    p = permutation_f(groups, seed=seed, n_permutations=299).p
    assert p is not None
    return p


def p_shared(spreads: tuple[float, ...], rng: Draw, n: int, seed: int) -> float:
    prompt = rng.normal(size=n)
    groups = [
        {str(j): [float(prompt[j] + value)] for j, value in enumerate(rng.normal(0, spread, n))}
        for spread in spreads
    ]
    p = permutation_f(groups, seed=seed, n_permutations=299).p
    assert p is not None
    return p


def intervals() -> Iterator[tuple[str, float, Trial]]:
    for name, (draw, truth) in SKEWED.items():
        yield f"mean, {name}", truth, partial(mean_of, draw)
    for name in ("normal", "exponential"):
        draw = SKEWED[name][0]
        moved = (lambda rng, n: 5 + rng.normal(size=n)) if name == "normal" else draw
        yield f"percentage difference, {name}", 50.0, partial(difference, moved)
    yield "percentage difference, shared clusters", 50.0, shared_clusters
    for p, size, rho in ((0.1, 1, 0), (0.5, 1, 0), (0.1, 5, 0.2), (0.3, 5, 0.4)):
        clustered = f" in clusters of {size}" if size > 1 else ""
        yield f"share of {p}{clustered}", p, partial(share, p, size, rho)
    for p, kappa in ((0.1, 0.4), (0.1, 0.0), (0.1, 0.8), (0.3, 0.1), (0.5, 0.4)):
        yield f"Cohen's kappa {kappa}, Yes {p:.0%}", kappa, partial(cohen, p, kappa)
        yield f"Fleiss's kappa {kappa}, Yes {p:.0%}", kappa, partial(fleiss, p, kappa)
    big = over_items(np.random.default_rng(1), 20_000)
    strata = list(range(14)) * 20_000
    yield (
        "Fleiss's kappa within 14 items",
        agreement.fleiss(big, strata).estimate(range(len(big)), seed=0, **HOW).value or 0.0,
        fleiss_over_items,
    )
    yield (
        "Cohen's kappa within 14 items",
        agreement.cohen(*big[:, :2].T, strata).estimate(range(len(big)), seed=0, **HOW).value
        or 0.0,
        cohen_over_items,
    )
    for kind in ("quadratic kappa", "Pearson", "ICC", "alpha"):
        for name, cuts, icc in (("even", EVEN, 0.3), ("even", EVEN, 0.7), ("skewed", SKEW, 0.3)):
            truth = true_of(kind, cuts, icc)
            yield f"{kind} {truth:.2f}, {name} marks", truth, partial(graded, kind, cuts, icc)
    for rho in (0.0, 0.8):
        yield f"Pearson {rho}, normal values", rho, partial(pearson_normal, rho)
    for value, size in ((0.8, 1), (0.97, 1), (0.99, 1), (0.8, 4)):
        clustered = f" in clusters of {size}" if size > 1 else ""
        yield f"AUROC {value}{clustered}", value, partial(auroc, value, size)
    yield "corrected mean, skewed scores", float(np.exp(0.245)), partial(corrected, False)
    yield "corrected share of 0.1", 1 - norm.cdf(1.81 / 2**0.5), partial(corrected, True)


def tests() -> Iterator[tuple[str, Callable[[Draw, int, int], float]]]:
    yield "permutation F, two groups, spreads 1 and 4, sizes 1 and 1", partial(p_of, (1, 4), (1, 1))
    yield "permutation F, two groups, spreads 1 and 4, sizes 3 and 1", partial(p_of, (1, 4), (3, 1))
    yield "permutation F, two groups, spreads 1 and 4, sizes 1 and 3", partial(p_of, (1, 4), (1, 3))
    yield "permutation F, four groups, spreads 1, 1, 1, 4", partial(p_of, (1, 1, 1, 4), (1,) * 4)
    yield "permutation F, two groups, shared clusters, spreads 1 and 4", partial(p_shared, (1, 4))
    yield "permutation F, four groups, shared clusters", partial(p_shared, (1, 1, 1, 4))


def main() -> None:
    options = corpora.options(__doc__, trials=1000, only="")
    n_trials, sizes = (3, SIZES[:1]) if corpora.SMOKE else (options.trials, SIZES)
    print(f"| {n_trials:,} trials | " + " | ".join(f"n {n}" for n in sizes) + " |")
    print("| --- |" + " --- |" * len(sizes))
    for name, truth, trial in intervals():
        if options.only in name:
            cells = []
            for n in sizes:
                rng = np.random.default_rng(n)
                found = [trial(rng, n, seed) for seed in range(n_trials)]
                held = [low <= truth <= high for low, high in found
                        if low is not None and high is not None]  # fmt: skip
                none = 1 - len(held) / n_trials
                cells.append(
                    (f"{np.mean(held):.0%}" if held else "-") + (f" ({none:.0%})" if none else "")
                )
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    for name, p in tests():
        if options.only in name:
            rates = []
            for n in sizes:
                rng = np.random.default_rng(n)
                rates.append(np.mean([p(rng, n, seed) <= 0.05 for seed in range(n_trials)]))
            print(f"| {name} | " + " | ".join(f"{rate:.1%}" for rate in rates) + " |", flush=True)


if __name__ == "__main__":
    main()
