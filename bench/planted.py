"""How well near-copies are found, against how much of them was replaced: recall and precision.

    python bench/planted.py [--threshold T ...] [--floor N ...] [--plot FILE]

Spans of 8 to 20 words are drawn from a reference of books and speeches; a share of their content
words is replaced by one of the five nearest words by word vector; two are set into each of 200
texts of people and models that have nothing to do with the reference.

- word recall: the share of planted words that a match covers;
- recall: the share of planted spans of which matches cover at least half the words;
- precision: the share of matches, near or verbatim beyond what the texts had before, at least half
  of whose words were planted.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import corpora
from fabula.kernels.packed import read_tokens
from fabula.measures.near import NearSearch, NearSettings
from fabula.models.vectors import WordVectors, open_vectors
from fabula.reference import Reference
from fabula.reference.exclude import maximal_spans
from fabula.reference.passages import PassageIndex, PassageSettings, build_passages
from fabula.text import read_documents
from fabula.text.stopwords import StopWords, load_stop_words

N_TEXTS, N_PLANTED, N_WORDS = 200, 2, 250
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
MIN_WORDS = 5


@dataclass(frozen=True)
class Planted:
    words: list[str]
    is_planted: NDArray[np.bool_]
    spans: list[tuple[int, int]]
    before: NDArray[np.bool_]
    """Words that stood in verbatim matches before anything was planted."""


class Neighbours:
    """The words most like a word, among those that the reference holds at least five times."""

    def __init__(self, reference: Reference, vectors: WordVectors, stop_words: StopWords) -> None:
        counts: dict[str, int] = {}
        for shard in reference.local.shards:
            ids = read_tokens(shard.tokens, 0, shard.info.n_tokens)
            found = np.bincount(ids, minlength=shard.info.n_vocabulary + 1)
            for k in np.flatnonzero(found[1:] >= 5):
                word = shard.vocabulary[int(k)]
                counts[word] = counts.get(word, 0) + int(found[k + 1])
        words = [w for w in counts if stop_words.is_content(w) and w.isalpha()]
        rows = vectors.rows(words)
        self._by_row: dict[int, str] = {}
        for word, row in sorted(zip(words, rows, strict=True), key=lambda x: -counts[x[0]]):
            self._by_row.setdefault(int(row), word)
        self._by_row.pop(-1, None)
        self._rows = np.array(list(self._by_row))
        self._unit = vectors.unit(self._rows)
        self._vectors = vectors

    def of(self, word: str) -> list[str]:
        row = int(self._vectors.rows([word])[0])
        if row < 0:
            return []
        cosines = self._unit @ self._vectors.unit([row])[0]
        near = np.argsort(-cosines, kind="stable")
        return [self._by_row[int(self._rows[k])] for k in near if self._rows[k] != row][:5]


def plant(
    reference: Reference,
    stop_words: StopWords,
    neighbours: Neighbours,
    share: float,
    seed: int,
) -> list[Planted]:
    rng = np.random.default_rng(seed)
    hosts = [
        reference.locate(d.text).words[:N_WORDS]
        for d in read_documents([str(corpora.SHARED / "human_vs_machine")])
    ]
    hosts = [words for words in hosts if len(words) == N_WORDS]
    chosen = rng.choice(len(hosts), N_TEXTS, replace=False)
    out = []
    for host in (hosts[k] for k in chosen):
        lengths = reference.longest_matches(host)
        begin, words, spans = 0, [], []
        marks: list[bool] = []
        old: list[bool] = []
        known = covered(lengths)
        cuts = sorted(rng.choice(np.arange(10, N_WORDS - 10), N_PLANTED, replace=False))
        for cut in cuts:
            words += host[begin:cut]
            marks += [False] * (cut - begin)
            old += list(known[begin:cut])
            span = draw(reference, stop_words, neighbours, share, rng)
            spans.append((len(words), len(words) + len(span)))
            words += span
            marks += [True] * len(span)
            old += [False] * len(span)
            begin = cut
        words += host[begin:]
        marks += [False] * (N_WORDS - begin)
        old += list(known[begin:])
        out.append(Planted(words, np.array(marks), spans, np.array(old)))
    return out


def draw(
    reference: Reference, stop_words: StopWords, neighbours: Neighbours, share: float,
    rng: np.random.Generator,
) -> list[str]:  # fmt: skip
    """A span of the reference with a share of its content words replaced; it has at least one."""
    while True:
        shard = reference.local.shards[rng.integers(len(reference.local.shards))]
        n = int(rng.integers(8, 21))
        at = int(rng.integers(shard.info.n_tokens - n))
        tokens = read_tokens(shard.tokens, at, at + n)
        if not tokens.all():
            continue
        words = [shard.vocabulary[int(t) - 1] for t in tokens]
        content = [k for k, w in enumerate(words) if stop_words.is_content(w)]
        n_replaced = int(rng.binomial(1, share * len(content) % 1) + share * len(content) // 1)
        replaced = 0
        for k in rng.permutation(content):
            near = neighbours.of(words[k]) if replaced < n_replaced else []
            if near:
                words[k] = near[rng.integers(len(near))]
                replaced += 1
        if content and replaced == n_replaced:
            return words


def covered(lengths: NDArray[np.int32]) -> NDArray[np.bool_]:
    out = np.zeros(len(lengths), np.bool_)
    for i, n in maximal_spans(lengths, MIN_WORDS):
        out[i : i + n] = True
    return out


def judge(search: NearSearch, reference: Reference, texts: list[Planted]) -> dict[str, float]:
    n_words = n_covered = n_found = n_true = n_matches = n_unrelated = n_plain = 0
    for text in texts:
        exact = reference.longest_matches(text.words)
        lengths, _ = search.search(text.words, exact, MIN_WORDS)
        inside = covered(lengths)
        n_words += int(text.is_planted.sum())
        n_covered += int((inside & text.is_planted).sum())
        n_found += sum(inside[a:b].mean() >= 0.5 for a, b in text.spans)
        near = np.where(lengths > exact, lengths, 0)
        for i, n in maximal_spans(np.maximum(near, exact), MIN_WORDS):
            if near[i] or not text.before[i : i + n].all():
                n_matches += 1
                n_true += bool(text.is_planted[i : i + n].mean() >= 0.5)
        plain = ~text.is_planted
        n_plain += int(plain.sum())
        n_unrelated += int((inside & plain & ~text.before).sum())
    return {
        "word recall": n_covered / n_words,
        "recall": n_found / (N_PLANTED * len(texts)),
        "precision": n_true / max(1, n_matches),
        "unrelated covered": n_unrelated / n_plain,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threshold", type=float, nargs="+", default=[0.88, 0.95])
    parser.add_argument("--floor", type=int, nargs="+", default=[1, 3, 5])
    parser.add_argument("--passages", type=int, default=NearSettings().n_passages)
    parser.add_argument("--window", type=int, default=NearSettings().window)
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    parser.add_argument("--reference", help="a corpus that is built already")
    parser.add_argument("--seed", type=int, default=1, help="the defaults were chosen on seed 0")
    parser.add_argument("--plot")
    given = parser.parse_args()
    stop_words, vectors = load_stop_words(), open_vectors()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(given.reference or folder)
        if given.reference:
            reference = Reference.open(path)
        else:
            sources = [str(corpora.SHARED / "reference")]
            reference = Reference.build(read_documents(sources), path, n_jobs=2)
        build_passages(path, reference.local.shards, PassageSettings(), stop_words)
        index = PassageIndex(reference, PassageSettings(), stop_words)
        neighbours = Neighbours(reference, vectors, stop_words)
        texts = {
            share: plant(reference, stop_words, neighbours, share, given.seed)
            for share in given.shares
        }
        search = NearSearch(index, vectors)
        base = replace(NearSettings(), n_passages=given.passages, window=given.window)
        print("threshold floor replaced  word recall  recall  precision  unrelated covered")
        rows = []
        for threshold in given.threshold:
            for floor in given.floor:
                search.settings = replace(base, threshold=threshold, floor=floor)
                for share in given.shares:
                    row = judge(search, reference, texts[share])
                    rows.append({"threshold": threshold, "floor": floor, "share": share, **row})
                    shown = "  ".join(f"{value:9.3f}" for value in row.values())
                    print(f"{threshold:9.2f} {floor:5d} {share:8.1f}  {shown}", flush=True)
    if given.plot:
        draw_curves(rows, Path(given.plot))


def draw_curves(rows: list[dict[str, float]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(10, 4), sharex=True, layout="constrained")
    for axes, what in zip(panels, ("recall", "precision"), strict=True):
        for key in sorted({(row["threshold"], row["floor"]) for row in rows}):
            line = [row for row in rows if (row["threshold"], row["floor"]) == key]
            label = f"threshold {key[0]:g}, floor {key[1]:g}"
            axes.plot([100 * r["share"] for r in line], [r[what] for r in line], "o-", label=label)
        axes.axhline(0.95, color="grey", linewidth=0.8)
        axes.set_xlabel("% of content words replaced")
        axes.set_ylabel(what)
    panels[1].legend(fontsize=6)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
