"""Whether people write more diversely than models: on both halves of the prompts, and halves alike.

    python bench/diversity_models.py [--trials 400] [--smoke]

Stories by people and by six models on the same 48 prompts (HANNA), 200 words of each. Prompts are
split into two halves with a seed. Printed are

- for each half and measure, which models are less diverse than people: the difference from people
  with its interval (jackknife over prompts) and p (permutations within prompts, Holm over models);
- how often two halves of the stories of all models differ at 5 %, drawn at random within prompts.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter

import numpy as np

import corpora
from fabula.measures.diversity import Plan, Resampling, measure_diversity
from fabula.measures.diversity.diversity_tests import DiversityTest, measure_groups
from fabula.measures.diversity.equal_samples import plan_pool
from fabula.measures.diversity.shared_ngrams import SHARED, NgramMeasures, WordTable
from fabula.text import TextSettings, read_documents
from fabula.types import Document

SHOWN = ("shared_ngrams.4", "self_bleu", "compression", "distinct.4")
MORE_ALIKE = {"distinct.4": -1}
"""The sign of a measure where texts are more alike, 1 where not named."""
N_WORDS, N_RUNS, SEED = 200, 1000, 20


def stories() -> list[Document]:
    """Whose model is `people` where people wrote them, and whose prompt is the pair's number."""
    source = corpora.SHARED / "human_vs_machine" / "hanna_writingprompts.jsonl"
    found = []
    for one in read_documents([source]):
        meta = {
            "model": one.meta.get("model") or ("people" if _is_human(one) else "model"),
            "prompt": str(one.meta.get("prompt") or one.meta["pair_id"]),
        }
        found.append(Document(one.id, one.text, meta=meta))
    return found


def _is_human(one: Document) -> bool:
    return one.meta["label"] == "human"


def in_half(documents: list[Document], name: str, n_words: int) -> tuple[int, int]:
    """Print a half's table; returns how many of its tests say that people are more diverse, and
    how many tests there are."""
    how = Resampling(n_permutations=corpora.sized(N_RUNS, 99), seed=SEED)
    plan = Plan(by="model", prompt="prompt", baseline="people", n_words=n_words, how=how)
    found = measure_diversity(documents, plan)
    people = next(one for one in found.groups if one.name == "people")
    print(f"\n{name}: {people.n} stories of {n_words} words from each, people first")
    n_so = n_all = 0
    for measure in SHOWN:
        value = people.estimates[measure].value
        print(f"  {measure}: {'none' if value is None else f'{value:.4f}'}")
        for test in (one for one in found.tests if one.measure == measure):
            is_so = _says_people(test)
            n_so, n_all = n_so + is_so, n_all + 1
            print(f"    {test.a}: {_shown(test)}{'' if is_so else '  (not shown)'}")
    return n_so, n_all


def _says_people(test: DiversityTest) -> bool:
    """Whether the model is more alike than people, by p and by interval."""
    low, high = test.difference.low, test.difference.high
    if test.p_holm is None or low is None or high is None:
        return False
    sign = MORE_ALIKE.get(test.measure, 1)
    return test.p_holm <= 0.05 and min(sign * low, sign * high) > 0


def _shown(test: DiversityTest) -> str:
    one = test.difference
    if one.value is None or one.low is None or one.high is None or test.p_holm is None:
        return "missing"
    way = f"p {test.p_holm:.3f}" if test.n_permutations else f"p {test.p_holm:.3f} (t)"
    return f"{one.value:+.4f} [{one.low:+.4f}, {one.high:+.4f}], {way}"


def halves(documents: list[Document], n_words: int, n_trials: int) -> None:
    """How often two random halves of the models' stories differ at 5 %, prompt by prompt."""
    settings = TextSettings()
    words = [settings.words(one.text)[:n_words] for one in documents]
    kept = [k for k, some in enumerate(words) if len(some) == n_words]
    prompts = [documents[k].meta["prompt"] for k in kept]
    numbers = {prompt: k for k, prompt in enumerate(dict.fromkeys(prompts))}
    table = WordTable.of(
        [words[k] for k in kept],
        [settings.words(prompt) for prompt in numbers],
        [numbers[prompt] for prompt in prompts],
    )
    measures = NgramMeasures(tuple(one for one, _ in table.ngrams(SHARED[-1])))
    rng = np.random.default_rng(SEED)
    n_below: Counter[str] = Counter()
    for trial in range(n_trials):
        labels = np.zeros(len(kept), np.int64)
        for number in numbers.values():
            own = np.flatnonzero([numbers[prompt] == number for prompt in prompts])
            labels[own] = rng.permutation(np.arange(len(own)) % 2)
        how = Resampling(n_draws=1, n_permutations=199, seed=trial)
        _, tests = measure_groups(measures, plan_pool(labels, prompts), ["a", "b"], None, how, "")
        n_below.update(one.measure for one in tests if one.p is not None and one.p <= 0.05)
    shown = ", ".join(f"{name} {n_below[name] / n_trials:.1%}" for name in measures.names)
    print(f"\nhalves of {len(kept)} stories by models that differ at 5 %, of {n_trials:,}: {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=corpora.sized(400, 3))
    given = parser.parse_args()
    n_words = corpora.sized(N_WORDS, 40)
    documents = stories()
    prompts = sorted({one.meta["prompt"] for one in documents})
    random.Random(SEED).shuffle(prompts)
    first = set(prompts[: len(prompts) // 2])
    n_so = n_all = 0
    for name, is_first in (("first half of the prompts", True), ("the other half", False)):
        own = [one for one in documents if (one.meta["prompt"] in first) == is_first]
        found = in_half(own, name, n_words)
        n_so, n_all = n_so + found[0], n_all + found[1]
    print(f"\npeople more diverse, by interval and p: {n_so} of {n_all} comparisons")
    halves([one for one in documents if one.meta["model"] != "people"], n_words, given.trials)


if __name__ == "__main__":
    main()
