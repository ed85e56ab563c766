"""How well near matches find paraphrases, and how often they mark what is unrelated.

    python bench/planted.py [--smoke] [--unrelated N] [--threshold T ...] [--meaning M ...]

`tests/golden/paraphrases.jsonl` holds paraphrases that were written by hand, of sentences of books
and speeches, by kind of change. Each is set into a text that has nothing to do with the reference:
stories of people and of models, and books for children. The same kinds of text without anything set
in are the unrelated prose. The defaults were chosen on the half of the paraphrases called `tuning`.

- found: paraphrases of which at least half the words lie in near matches with the document that
  they are of, or in verbatim ones;
- precision: the share of near matches, in the texts with paraphrases, at least half of whose words
  are of the paraphrase, and whose source is the right document;
- unrelated marked: the share of words of unrelated prose that lie in near matches, beyond verbatim
  ones.

Compared are the default; the default of version 0.1, the English pipeline's pruned vectors, where
words that share a vector are one word; and the published setting, with either vectors.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import corpora
from fabula.measures.near import NEAR_PRESETS, NearSearch, NearSettings
from fabula.models.vectors import WordVectors, open_vectors, quantise
from fabula.reference import Reference
from fabula.reference.exclude import maximal_spans
from fabula.reference.passages import PassageIndex, PassageSettings, build_passages
from fabula.text import read_documents
from fabula.text.stopwords import load_stop_words
from fabula.types import Document

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden" / "paraphrases.jsonl"
LIBRARY = ROOT / "examples" / "library"
N_WORDS, N_UNRELATED, MIN_WORDS = 120, 300, 5
HALVES = "tuning", "held-out"


@dataclass(frozen=True)
class Way:
    """A way to look for near matches."""

    name: str
    vectors: WordVectors
    settings: NearSettings


@dataclass(frozen=True)
class Text:
    """Words, and which of them are of a paraphrase."""

    words: list[str]
    begin: int = 0
    end: int = 0
    row: dict[str, str] | None = None


@dataclass
class Tally:
    """What one way found."""

    found: Counter[tuple[str, str]]
    n_right: int = 0
    n_matches: int = 0
    n_marked: int = 0
    n_unrelated: int = 0


def shared_vectors() -> WordVectors:
    """The English pipeline's vectors, as they were: words that share one are one word."""
    from fabula.text.pipeline import load_pipeline

    nlp = load_pipeline(())
    rows, strings = nlp.vocab.vectors.key2row, nlp.vocab.strings
    data = quantise(nlp.vocab.vectors.data)
    return WordVectors("shared", data, lambda word: int(rows.get(strings[word], -1)), b"shared")


def ways(given: argparse.Namespace) -> Iterator[Way]:
    ours = open_vectors()
    for threshold in given.threshold or [NearSettings().threshold]:
        for meaning in given.meaning or [NearSettings().meaning]:
            settings = NearSettings(threshold=threshold, meaning=meaning)
            yield Way(f"default, T {threshold:g}, meaning {meaning:g}", ours, settings)
    if given.threshold or given.meaning:
        return
    paper = NEAR_PRESETS["paper"]
    yield Way("published, same vectors", ours, paper)
    if not given.smoke:
        shared = shared_vectors()
        yield Way("default of 0.1", shared, replace(paper, threshold=0.88, floor=5))
        yield Way("published, pruned vectors", shared, paper)


def hosts(is_smoke: bool) -> Iterator[str]:
    """Texts that have nothing to do with the reference, one kind after the other."""
    if is_smoke:
        yield from (d.text for d in read_documents([str(LIBRARY)]))
        return
    folder = corpora.SHARED
    kinds = [
        folder / "human_vs_machine" / "hanna_writingprompts.jsonl",
        folder / "human_vs_machine" / "fastdetect_writing.jsonl",
        folder / "cbt" / "children_books.jsonl.gz",
    ]
    texts = [[d.text for d in read_documents([str(kind)])] for kind in kinds]
    for some in texts:
        random.Random(1).shuffle(some)
    for group in zip(*texts, strict=False):
        yield from group


def texts_of(reference: Reference, rows: Sequence[dict[str, str]], given: Any) -> list[Text]:
    """The paraphrases, each in the midst of a host; then hosts alone."""
    cut = (reference.locate(text).words[:N_WORDS] for text in hosts(given.smoke))
    long = [words for words in cut if len(words) == N_WORDS]
    found = []
    for k, row in enumerate(rows):
        host, own = long[k % len(long)], reference.locate(row["paraphrase"]).words
        middle = N_WORDS // 2
        words = [*host[:middle], *own, *host[middle:]]
        found.append(Text(words, middle, middle + len(own), row))
    alone = long[len(rows) :] or long
    return found + [Text(words) for words in alone[: given.unrelated]]


def judge(search: NearSearch, texts: Sequence[Text]) -> Tally:
    tally = Tally(Counter())
    for text in texts:
        exact = search.index.reference.longest_matches(text.words)
        lengths, near = search.search(text.words, exact, MIN_WORDS)
        verbatim = covered(exact)
        marked, right = np.zeros((2, len(text.words)), np.bool_)
        for first, one in near.items():
            end = first + int(lengths[first])
            marked[first:end] = True
            inside = min(end, text.end) - max(first, text.begin)
            is_source = text.row is not None and one.source.document.id == text.row["document"]
            if is_source:
                right[first:end] = True
            if text.row is not None:
                tally.n_matches += 1
                tally.n_right += is_source and inside >= (end - first) / 2
        if text.row is None:
            tally.n_unrelated += len(text.words)
            tally.n_marked += int((marked & ~verbatim).sum())
        elif (right | verbatim)[text.begin : text.end].mean() >= 0.5:
            tally.found[text.row["kind"], text.row["split"]] += 1
    return tally


def covered(lengths: NDArray[np.int32]) -> NDArray[np.bool_]:
    out = np.zeros(len(lengths), np.bool_)
    for first, n in maximal_spans(lengths, MIN_WORDS):
        out[first : first + n] = True
    return out


def show(way: Way, tally: Tally, rows: Sequence[dict[str, str]], taken_s: float) -> None:
    n = Counter((row["kind"], row["split"]) for row in rows)
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    print(f"\n{way.name} ({taken_s:.0f} s)")
    for split in HALVES:
        total = sum(count for (_, half), count in n.items() if half == split)
        hit = sum(count for (_, half), count in tally.found.items() if half == split)
        by_kind = ", ".join(f"{k} {tally.found[k, split]}/{n[k, split]}" for k in kinds)
        print(f"  found, {split}: {hit} of {total} ({by_kind})")
    print(
        f"  precision: {tally.n_right} of {tally.n_matches} near matches "
        f"({tally.n_right / max(1, tally.n_matches):.2f})\n"
        f"  unrelated marked: {tally.n_marked} of {tally.n_unrelated:,} words "
        f"({tally.n_marked / max(1, tally.n_unrelated):.2%})",
        flush=True,
    )


def sources(is_smoke: bool, rows: Sequence[dict[str, str]]) -> Iterator[Document]:
    if is_smoke:
        # A document a sentence: then each paraphrase has one source, as among books.
        yield from (Document(row["document"], row["source"]) for row in rows)
    else:
        yield from read_documents([str(corpora.SHARED / "reference")])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--smoke", action="store_true", default=corpora.SMOKE)
    parser.add_argument("--threshold", type=float, nargs="+")
    parser.add_argument("--meaning", type=float, nargs="+")
    parser.add_argument("--unrelated", type=int, default=N_UNRELATED, help="texts of it")
    given = parser.parse_args()
    rows = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["id"].endswith(("-01", "-02"))] if given.smoke else rows
    stop_words = load_stop_words()
    with tempfile.TemporaryDirectory() as folder:
        reference = Reference.build(sources(given.smoke, rows), folder, n_jobs=2)
        shards = [shard.info for shard in reference.local.shards]
        build_passages(folder, shards, PassageSettings(), stop_words)
        index = PassageIndex(reference, PassageSettings(), stop_words)
        texts = texts_of(reference, rows, given)
        n_unrelated = sum(len(text.words) for text in texts if text.row is None)
        print(f"{len(rows)} paraphrases, {n_unrelated:,} words of unrelated prose")
        for way in ways(given):
            search = NearSearch(index, way.vectors, way.settings)
            start = time.perf_counter()
            tally = judge(search, texts)
            show(way, tally, rows, time.perf_counter() - start)
            if given.smoke:
                assert judge(search, texts) == tally, "two runs disagree"


if __name__ == "__main__":
    main()
