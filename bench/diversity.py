"""How alike texts are: speed beside the package `diversity`, and of large sets.

    python bench/diversity.py [--texts 5000] [--largest 50000] [--only-peer] [--smoke]

PEER=/path/to/python in the environment names an interpreter with `diversity` and `nltk`; without it
only our side is measured. Texts are passages of novels, cut to 300 words, three groups of them.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import time
from typing import Any

import numpy as np

import corpora
from fabula.core.types import Document
from fabula.core.workers import default_jobs
from fabula.groups.diversity import Plan, compression_ratio, measure_diversity
from fabula.groups.grouped_texts import Resampling
from fabula.groups.shared_ngrams import DISTINCT, REPEATED, SHARED, NgramMeasures, Ngrams, WordTable
from fabula.kernels.ngram_counts import count_in_subsets
from fabula.text import TextSettings, read_documents

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
    """Words of novels in a row, in normal form; if there are too few, passages overlap."""
    files = sorted((corpora.SHARED / "reference").glob("*novels.jsonl.gz"))
    files += [*(corpora.SHARED / "cbt").glob("children_books.jsonl.gz")]
    settings = TextSettings()
    words = [word for one in read_documents(files) for word in settings.words(one.text)]
    rng = random.Random(0)
    starts = [*range(0, len(words) - N_WORDS, N_WORDS)]
    rng.shuffle(starts)
    starts += [rng.randrange(max(1, len(words) - N_WORDS)) for _ in range(n - len(starts))]
    return [" ".join(words[start : start + N_WORDS]) for start in starts[:n]]


def ngrams_of(texts: list[str], longest: int) -> tuple[Ngrams, ...]:
    table = WordTable([text.split() for text in texts])
    return tuple(one for one, _ in table.ngrams(longest))


def ngram_measures(texts: list[str]) -> NgramMeasures:
    return NgramMeasures(ngrams_of(texts, SHARED[-1]))


def all_measures(texts: list[str]) -> dict[str, float]:
    """Every measure of n-grams, of 1 to 8 words."""
    measures = ngram_measures(texts)
    values = measures.values(np.ones((1, len(texts)), np.uint8))[0]
    return dict(zip(measures.names, map(float, values), strict=True))


def self_repetition(texts: list[str]) -> float:
    """Only this, which needs the n-grams of 4 words."""
    one = ngrams_of(texts, REPEATED)[-1]
    _, _, n_others, _ = count_in_subsets(
        one.ends, one.texts, one.counts, np.ones((1, len(texts)), np.uint8)
    )
    return float(np.log1p(n_others).mean())


def ngram_diversity(texts: list[str]) -> float:
    """Only this: distinct n-grams over all, of 1 to 4 words, summed."""
    return sum(
        (len(one.ends) + int(one.n_own.sum())) / int(one.totals.sum())
        for one in ngrams_of(texts, DISTINCT[-1])
    )


def compression(texts: list[str]) -> float:
    return compression_ratio([text.encode() for text in texts])


OWN = {
    "self_repetition": self_repetition,
    "ngram_diversity": ngram_diversity,
    "compression": compression,
    "all": all_measures,
}


def timed(texts: list[str]) -> dict[str, tuple[Any, float]]:
    """Each of ours with its processor time."""
    found = {}
    for name, function in OWN.items():
        start = time.process_time()
        value = function(texts)
        found[name] = value, time.process_time() - start
    return found


def beside_the_peer(texts: list[str]) -> None:
    """The same measures of the same words, and the processor time of each side.

    Ours are timed before and after theirs, and the mean counts: other work on the machine slows
    both.
    """
    timed(texts[:50])  # compiles
    own = timed(texts)
    print(f"{len(texts):,} texts: all measures of n-grams in {own['all'][1]:.2f} s")
    if not (peer := os.environ.get("PEER")):
        print("no PEER: theirs is not measured")
        return
    with corpora.scratch() as folder:
        file = folder / "texts.json"
        file.write_text(json.dumps(texts))
        done = subprocess.run(
            [peer, "-I", "-c", PEER, str(file)], stdout=subprocess.PIPE, text=True, check=True
        )
    theirs = json.loads(done.stdout.splitlines()[-1])
    again = timed(texts)
    seconds = {name: (own[name][1] + again[name][1]) / 2 for name in own}
    assert abs(theirs["self_repetition"][0] - own["self_repetition"][0]) < 1e-9
    assert abs(theirs["compression"][0] - own["compression"][0]) < 1e-3
    for name in ("self_repetition", "ngram_diversity", "compression"):
        value, peers = theirs[name]
        print(
            f"  {name}: theirs {value:.6f} in {peers:.2f} s, ours {own[name][0]:.6f} in "
            f"{seconds[name]:.2f} s: {peers / seconds[name]:.1f} times"
        )
    print("  (their n-gram diversity also counts n-grams that reach from one text into the next)")
    both = theirs["self_repetition"][1] + theirs["ngram_diversity"][1]
    one_bleu = theirs["self_bleu of one text"][1]
    print(
        f"  both, beside all of ours ({seconds['all']:.2f} s): {both / seconds['all']:.0f} times; "
        f"with compression on both sides: "
        f"{(both + theirs['compression'][1]) / (seconds['all'] + seconds['compression']):.0f} times"
    )
    print(
        f"  self-BLEU by NLTK: {one_bleu:.1f} s a text, so "
        f"{one_bleu * len(texts) / seconds['all']:,.0f} times the time of all of ours"
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


def main() -> None:
    given = corpora.options(
        __doc__, texts=corpora.sized(5000, 30), largest=corpora.sized(50_000, 45),
        only_peer=(False, "leave groups and halves out"),
    )  # fmt: skip
    texts = passages(given.largest)
    beside_the_peer(texts[: given.texts])
    if given.only_peer:
        return
    in_groups(texts[: corpora.sized(3335, 36)], 1000 if given.largest > 45 else 99)
    in_groups(texts, 199 if given.largest > 45 else 99)


if __name__ == "__main__":
    main()
