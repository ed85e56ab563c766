"""How often two halves of one group of texts differ in diversity at 5 %.

    python bench/diversity_halves.py [--trials 100] [--compression] [--only REGEX] [--smoke]

Stories by people and by each model (HANNA, Fast-DetectGPT's WritingPrompts) are split at random
many times, and tested as two groups are, by permutation. The stories of all models are split within
each prompt, so that the halves share their prompts.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

import corpora
from fabula.groups.diversity import Compression
from fabula.groups.grouped_texts import Measures, Resampling, measure_groups, plan_pool
from fabula.groups.shared_ngrams import SHARED, NgramMeasures, WordTable
from fabula.text import TextSettings

N_WORDS = corpora.sized(150, 40)
N_TEXTS = 48
"""At most, of each group."""


def groups() -> Iterator[tuple[str, list[list[str]], list[str] | None]]:
    """The name of each group, the words of its texts, and their prompts if halves share them."""
    settings = TextSettings()
    for path in (corpora.HANNA, corpora.FAST_DETECT):
        rows = [json.loads(line) for line in path.open(encoding="utf-8")]
        # The same text by a person is in Fast-DetectGPT's set once for each model.
        rows = list({row["text"]: row for row in rows}.values())
        found = []
        for row in rows:
            words = settings.words(row["text"][row.get("shared_prefix_chars") or 0 :])
            if len(words) >= N_WORDS:
                found.append((row.get("model") or row["label"], row["pair_id"], words[:N_WORDS]))
        found.sort(key=lambda one: one[0])
        for group, own in groupby(found, key=lambda one: one[0]):
            yield f"{path.stem}: {group}", [words for _, _, words in own][:N_TEXTS], None
        machines = [one for one in found if one[0] != "human"]
        times = Counter(prompt for _, prompt, _ in machines)
        several = [one for one in machines if times[one[1]] > 1]
        several = sorted(several, key=lambda one: str(one[1]))[:N_TEXTS]
        if len(several) >= 20:
            texts, prompts = [one[2] for one in several], [str(one[1]) for one in several]
            yield f"{path.stem}: all models, halved within prompts", texts, prompts


def halved(
    n: int, prompts: list[str] | None, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which texts take part, and the half of each; as many texts of a prompt in either."""
    order = rng.permutation(n)
    if prompts is None:
        return np.arange(n), (np.argsort(order) % 2).astype(np.int64)
    seen: Counter[str] = Counter()
    half = np.zeros(n, np.int64)
    for k in order.tolist():
        half[k] = seen[prompts[k]] % 2
        seen[prompts[k]] += 1
    kept = np.array([k for k in range(n) if seen[prompts[k]] % 2 == 0 or seen[prompts[k]] > 2])
    return kept, half[kept]


def trial(
    measures: Measures, half: NDArray[np.int64], prompts: list[str] | None, seed: int
) -> dict[str, float | None]:
    """The p-value of each measure."""
    how = Resampling(n_permutations=199, seed=seed)
    _, tests = measure_groups(measures, plan_pool(half, prompts), ["a", "b"], None, how, "")
    return {one.number: one.p for one in tests}


def main() -> None:
    given = corpora.options(
        __doc__, trials=corpora.sized(100, 2),
        compression=(False, "also that, which takes a second each time"),
        only=("", "groups whose name has this regular expression"),
    )  # fmt: skip
    n_below: Counter[str] = Counter()
    n_tests: Counter[str] = Counter()
    for number, (name, texts, prompts) in enumerate(groups()):
        if not re.search(given.only, name):
            continue
        table = WordTable(texts)
        kinds: list[Measures] = [NgramMeasures(tuple(n for n, _ in table.ngrams(SHARED[-1])))]
        if given.compression:
            kinds.append(Compression(tuple(" ".join(words).encode() for words in texts)))
        # Stories on the same prompts must not be split alike in every group.
        rng = np.random.default_rng(number)
        n_differ = 0
        for seed in range(given.trials):
            kept, half = halved(len(texts), prompts, rng)
            own = None if prompts is None else [prompts[k] for k in kept]
            for kind in kinds:
                ps = trial(kind.narrowed(kept), half, own, 10_000 * number + seed)
                for measure, p in ps.items():
                    n_tests[measure] += p is not None
                    n_below[measure] += p is not None and p <= 0.05
                    n_differ += p is not None and p <= 0.05 and measure == "shared_ngrams.4"
        print(
            f"{name}: {len(texts)} texts, shared 4-grams differ in {n_differ} of {given.trials}",
            flush=True,
        )
    shown = ", ".join(f"{one} {n_below[one] / n:.1%} of {n:,}" for one, n in n_tests.items() if n)
    print(f"halves that differ at 5 %: {shown}")


if __name__ == "__main__":
    main()
