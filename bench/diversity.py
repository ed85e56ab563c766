"""How alike texts are: speed beside the package `diversity`, and how often halves differ.

    python bench/diversity.py [--texts 5000] [--largest 50000] [--trials 400] [--smoke]

PEER=/path/to/python in the environment names an interpreter with `diversity` and `nltk`; without it
only our side is measured. Texts are passages of novels, cut to 300 words, three groups of them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import corpora
from fabula.measures.diversity import Plan, Resampling, measure_diversity
from fabula.measures.diversity.compression import compression_ratio
from fabula.measures.diversity.diversity_tests import measure_groups
from fabula.measures.diversity.equal_samples import plan_pool
from fabula.measures.diversity.shared_ngrams import SHARED, NgramMeasures, WordTable
from fabula.text import TextSettings, read_documents
from fabula.types import Document
from fabula.workers import default_jobs

N_WORDS = 300
# Modules that the package imports and that have no part in what is timed.
PEER = """
import importlib.machinery, json, sys, time, types
for name in ("spacy", "openai", "evaluate", "sentence_transformers"):
    try:
        __import__(name)
    except ImportError:
        sys.modules[name] = empty = types.ModuleType(name)
        empty.__spec__ = importlib.machinery.ModuleSpec(name, None)
        empty.load = empty.SentenceTransformer = None
import diversity
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
texts = json.load(open(sys.argv[1]))
def timed(function):
    start = time.process_time()
    value = function()
    return value, time.process_time() - start
def bleu():
    words = [text.split() for text in texts]
    some = range(0, len(texts), max(1, len(texts) // 3))
    each = [sentence_bleu(words[:k] + words[k + 1 :], words[k],
            smoothing_function=SmoothingFunction().method1) for k in some]
    return len(each)
n, seconds = timed(bleu)
print()
print(json.dumps({
    "self_repetition": timed(lambda: diversity.self_repetition_score(texts, 4, verbose=False)),
    "ngram_diversity": timed(lambda: diversity.ngram_diversity_score(texts, 4)),
    "compression": timed(lambda: diversity.compression_ratio(texts)),
    "self_bleu of one text": [None, seconds / n],
}))
"""


def passages(n: int) -> list[str]:
    """Words of novels in a row, in normal form, from places drawn at random."""
    files = sorted((corpora.SHARED / "reference").glob("*novels.jsonl.gz"))
    settings = TextSettings()
    words = [word for one in read_documents(files) for word in settings.words(one.text)]
    rng = random.Random(0)
    starts = (rng.randrange(max(1, len(words) - N_WORDS)) for _ in range(n))
    return [" ".join(words[start : start + N_WORDS]) for start in starts]


def ngram_measures(texts: list[str]) -> NgramMeasures:
    table = WordTable.of([text.split() for text in texts])
    return NgramMeasures(tuple(one for one, _ in table.ngrams(SHARED[-1])))


def beside_the_peer(texts: list[str]) -> None:
    """The same measures of the same words, and the processor time of each side."""
    ngram_measures(texts[:50]).values(np.ones((1, min(50, len(texts))), np.uint8))  # compiles
    start = time.process_time()
    measures = ngram_measures(texts)
    values = measures.values(np.ones((1, len(texts)), np.uint8))[0]
    own = time.process_time() - start
    print(f"{len(texts):,} texts: all {len(values)} measures of n-grams in {own:.2f} s")
    start = time.process_time()
    ratio = compression_ratio([text.encode() for text in texts])
    compressed = time.process_time() - start
    if not (peer := os.environ.get("PEER")):
        print("no PEER: theirs is not measured")
        return
    mine = dict(zip(measures.names, values, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "texts.json"
        file.write_text(json.dumps(texts))
        done = subprocess.run(
            [peer, "-c", PEER, str(file)], stdout=subprocess.PIPE, text=True, check=True
        )
    theirs = json.loads(done.stdout.splitlines()[-1])
    distinct = sum(mine[f"distinct.{n}"] for n in range(1, 5))
    assert abs(theirs["self_repetition"][0] - mine["self_repetition"]) < 1e-9
    assert abs(theirs["compression"][0] - ratio) < 1e-3
    for name, value in (("self_repetition", mine["self_repetition"]), ("compression", ratio),
                        ("ngram_diversity", distinct)):  # fmt: skip
        print(
            f"  {name}: theirs {theirs[name][0]:.6f} in {theirs[name][1]:.1f} s; ours {value:.6f}"
        )
    print("  (their n-gram diversity also counts n-grams that reach from one text into the next)")
    both = theirs["self_repetition"][1] + theirs["ngram_diversity"][1]
    print(
        f"  self-repetition alone: {theirs['self_repetition'][1] / own:.0f} times our time for all"
    )
    print(f"  self-repetition and n-gram diversity: {both / own:.0f} times")
    print(
        f"  compression: {theirs['compression'][1] / compressed:.2f} times ours; both wait for gzip"
    )
    one_bleu = theirs["self_bleu of one text"][1]
    print(
        f"  self-BLEU by NLTK: {one_bleu:.1f} s a text, so {one_bleu * len(texts) / own:,.0f} times"
    )


def in_groups(texts: list[str], n_permutations: int) -> None:
    """Three groups with intervals and tests."""
    documents = [
        Document(str(k), text, meta={"model": f"m{k % 3}"}) for k, text in enumerate(texts)
    ]
    how = Resampling(n_permutations=n_permutations)
    start, cpu = time.perf_counter(), time.process_time()
    measure_diversity(documents, Plan(by="model", how=how, n_threads=default_jobs()))
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{len(texts):,} texts in 3 groups: {wall:.0f} s, {cpu:.0f} s of processor, peak memory of "
        f"this script {peak:.2f} GiB",
        flush=True,
    )


def halves(texts: list[str], n_trials: int) -> None:
    """How often two halves of one group differ at 5 %."""
    measures = ngram_measures(texts)
    rng = np.random.default_rng(0)
    n_below: Counter[str] = Counter()
    for trial in range(n_trials):
        labels = rng.permutation(np.arange(len(texts)) % 2)
        how = Resampling(n_permutations=199, seed=trial)
        tests = measure_groups(measures, plan_pool(labels, None), ["a", "b"], None, how, "").tests
        n_below.update(one.measure for one in tests if (one.p or 1) <= 0.05)
    shown = ", ".join(f"{name} {n_below[name] / n_trials:.1%}" for name in measures.names)
    print(f"halves that differ at 5 %, of {n_trials:,}: {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=corpora.sized(5000, 30))
    parser.add_argument("--largest", type=int, default=corpora.sized(50_000, 45))
    parser.add_argument("--trials", type=int, default=corpora.sized(400, 3))
    parser.add_argument("--only-peer", action="store_true", help="leave groups and halves out")
    given = parser.parse_args()
    texts = passages(given.largest)
    beside_the_peer(texts[: given.texts])
    if given.only_peer:
        return
    halves(texts[: corpora.sized(60, 20)], given.trials)
    in_groups(texts[: corpora.sized(3335, 36)], 1000 if given.largest > 45 else 99)
    in_groups(texts, 199 if given.largest > 45 else 99)


if __name__ == "__main__":
    main()
