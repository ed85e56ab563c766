"""Does surprisal tell the fresh from the garbled? And how fast is it?

    python bench/fluency.py [--stories 40] [--model local] [--speed-stories 4] [--smoke]

Human and machine stories of HANNA. Every fifth sentence of at least six words is scored as it is,
and with its words shuffled, in its place in the story: the area under the ROC curve of bits a word,
and the share of shuffled sentences above the 95th percentile of all sentences as they are. Then
words a second, without the time to open the model.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

import corpora
from fabula.core.types import Document
from fabula.models.surprisal import SurprisalModel
from fabula.style.fluency import Fluency, FluencyMeasure
from fabula.text import TextSettings, read_documents
from fabula.text.pipeline import load_pipeline

MIN_WORDS, EVERY, SEED = 6, 5, 1


def stories(path: Path, label: str, n: int) -> list[Document]:
    """The first `n` human stories, or one machine story to each of the first prompts, by turns."""
    found = [d for d in read_documents([str(path)]) if d.meta["label"] == label]
    if label == "human":
        return found[:n]
    by_pair: dict[str, list[Document]] = {}
    for document in found:
        by_pair.setdefault(str(document.meta["pair_id"]), []).append(document)
    return [group[k % len(group)] for k, group in enumerate(islice(by_pair.values(), n))]


def garbled(found: Fluency, rng: random.Random) -> tuple[Document, list[tuple[int, int]]]:
    """The text with every fifth sentence shuffled, and where those stand; lengths stay the same."""
    text = found.document.text
    spans = []
    for one in islice(found.sentences, EVERY // 2, None, EVERY):
        sentence = text[one.start : one.end]
        words = sentence.split()
        if len(TextSettings().words(sentence)) < MIN_WORDS or len(set(words)) < MIN_WORDS:
            continue
        order = list(words)
        while order == words:
            rng.shuffle(order)
        # Wide gaps become single spaces; the lengths of texts stay the same.
        text = text[: one.start] + " ".join(order).ljust(len(sentence)) + text[one.end :]
        spans.append((one.start, one.end))
    return Document(found.document.id, text), spans


def scored(measure: FluencyMeasure, texts: list[Document]) -> Iterator[tuple[list[float], ...]]:
    """Of each story: all sentences as they are, the chosen ones as they are, and shuffled."""
    rng = random.Random(SEED)
    for found in measure.measure(texts):
        other, spans = garbled(found, rng)
        (changed,) = measure.measure([other])
        all_, own, shuffled = found.sentences, found.of_spans(spans), changed.of_spans(spans)
        yield tuple(
            [s.bits_per_word for s in part if s.n_words >= MIN_WORDS and s.bits_per_word]
            for part in (all_, own, shuffled)
        )


def auc(higher: list[float], lower: list[float]) -> float:
    """Probability that one of the first is above one of the second: Mann and Whitney's U."""
    ranks = rankdata([*higher, *lower])[: len(higher)]
    n, m = len(higher), len(lower)
    return float((ranks.sum() - n * (n + 1) / 2) / (n * m))


def speed(measure_s: float, model: SurprisalModel, texts: list[Document]) -> None:
    n_words = sum(len(TextSettings().words(d.text)) for d in texts)
    start = time.perf_counter()
    for document in texts:
        model.score(document.text)
    ours = time.perf_counter() - start
    print(f"opened in {measure_s:.1f} s; {n_words / ours:,.0f} words a second", flush=True)


def main() -> None:
    given = corpora.options(
        __doc__, data=corpora.HANNA, model=("local", "local, or a .gguf file"),
        stories=(corpora.sized(40, 1), "of each kind"), speed_stories=corpora.sized(4, 1),
    )  # fmt: skip
    nlp = load_pipeline(("senter",))
    start = time.perf_counter()
    with SurprisalModel(given.model) as model:
        opened = time.perf_counter() - start
        measure = FluencyMeasure(model, nlp)
        print(measure.signature)
        print(
            "stories  sentences  p5    p50   p95   shuffled  median  AUC    found at 5 %",
            flush=True,
        )
        limit = 0.0
        for label in ("human", "machine"):
            texts = stories(given.data, label, given.stories)
            parts = list(scored(measure, texts))
            as_is, own, shuffled = ([x for part in parts for x in part[k]] for k in range(3))
            low, middle, high = np.percentile(as_is, [5, 50, 95])
            limit = limit or high
            print(
                f"{label:8} {len(as_is):9,}  {low:5.2f} {middle:5.2f} {high:5.2f} "
                f"{len(shuffled):9,}  {np.median(shuffled):6.2f}  {auc(shuffled, own):.3f}  "
                f"{np.mean(np.array(shuffled) > high):.0%} "
                f"({np.mean(np.array(shuffled) > limit):.0%} above the limit of human ones, "
                f"{np.mean(np.array(as_is) > limit):.1%} as they are)",
                flush=True,
            )
        texts = stories(given.data, "human", given.speed_stories)
        speed(opened, model, texts)


if __name__ == "__main__":
    main()
