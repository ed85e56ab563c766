"""How often a detector's bound of false alarms is exceeded: 5 % at most is promised.

    python bench/false_alarms.py [--smoke] [--trials N] [--seed S]

People's texts are drawn with scores that are correlated within an author, and a threshold for 1, 5
and 10 % false alarms is set on them. What share of all people's texts lies below it is known of the
normal distribution that they were drawn from; an exceedance is a trial in which it is larger than
the bound. Beside it, how often the bound for independent texts (Clopper and Pearson) is exceeded.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

import corpora
from fabula.novelty.detector import Labelled, find_threshold
from fabula.stats.prediction_powered import clopper_pearson_high

TARGETS = (0.01, 0.05, 0.1)
DESIGNS = {
    "30 authors of 20 texts, correlation 0": (30, 20, 0.0),
    "30 authors of 20 texts, correlation 0.5": (30, 20, 0.5),
    "30 authors of 20 texts, correlation 0.9": (30, 20, 0.9),
    "30 authors of 1 to 200 texts, correlation 0.5": (30, None, 0.5),
    "600 texts by 600 authors": (600, 1, 0.0),
    "100 texts by 100 authors": (100, 1, 0.0),
}


def draw(
    n_authors: int, n_texts: int | None, correlation: float, rng: np.random.Generator
) -> Labelled:
    """Texts by people, and one by a machine, which thresholds do not look at."""
    sizes = np.full(n_authors, n_texts or 1)
    if n_texts is None:
        sizes = np.exp(rng.uniform(0, np.log(200), n_authors)).astype(np.int64)
    authors = np.append(np.repeat(np.arange(n_authors), sizes), n_authors)
    own = rng.standard_normal(n_authors + 1)[authors]
    scores = np.sqrt(correlation) * own
    scores += np.sqrt(1 - correlation) * rng.standard_normal(len(authors))
    return Labelled(scores, authors < n_authors, authors)


def main() -> None:
    given = corpora.options(__doc__, trials=1_000, seed=0)
    n_trials = 3 if corpora.SMOKE else given.trials
    print(f"{n_trials} trials; exceedance by clusters (as if independent), mean bound")
    for name, design in DESIGNS.items():
        cells = []
        for target in TARGETS:
            exceeded, exceeded_plain, bounds = 0, 0, []
            for trial in range(n_trials):
                rng = np.random.default_rng([given.seed, trial, len(name)])
                texts = draw(*design, rng)
                found = find_threshold(texts, target)
                truth, n_people = float(norm.cdf(found.value)), int(texts.is_human.sum())
                plain = clopper_pearson_high(round(found.false_positives * n_people), n_people)
                exceeded += truth > found.false_positives_high
                exceeded_plain += truth > plain
                bounds.append(found.false_positives_high)
            assert all(target / 2 < bound <= 1 for bound in bounds)
            cells.append(
                f"{target:4.0%}: {exceeded / n_trials:5.1%} ({exceeded_plain / n_trials:5.1%}), "
                f"{np.mean(bounds):5.1%}"
            )
        print(f"{name:48}", "   ".join(cells))


if __name__ == "__main__":
    main()
