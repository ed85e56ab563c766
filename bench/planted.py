"""How well near matches find paraphrases, and how often they mark what is unrelated.

    python bench/planted.py [--smoke] [--unrelated N] [--way NAME ...] [--threshold T ...]
        [--meaning M ...]

`tests/golden/paraphrases.jsonl` holds paraphrases that were written by hand, of sentences of books
and speeches, by kind of change. Each is set into a text that has nothing to do with the reference:
stories of people and of models, and books for children. The same kinds of text without anything set
in are the unrelated prose. The defaults were chosen on the half of the paraphrases called `tuning`.
Besides, spans of 15 to 30 words of the reference are set in, with 30 and 50 % of their words, drawn
at random, replaced by content words drawn from the reference, which have nothing to do with them.

- found: paraphrases of which at least half the words lie in near matches with the document that
  they are of, or in verbatim ones;
- precision: the share of near matches, in the texts with paraphrases, at least half of whose words
  are of the paraphrase, and whose source is the right document;
- unrelated marked: the share of words of unrelated prose that lie in near matches, beyond verbatim
  ones.

- plagdet: the harmonic mean of recall (words of what was set in that were found) and precision
  (words of matches that were set in, from their source), each a mean over all, by the logarithm of
  1 + granularity, which is how many matches each one that was found is found in (Potthast et al.
  2010, "An evaluation framework for plagiarism detection"; counted in words).

Compared are the default; the walk over the index; the default of version 0.1, the English
pipeline's pruned vectors, where words that share a vector are one word; and the published setting,
with either vectors.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import corpora
from fabula.measures.near import NEAR_PRESETS, NearSearch, NearSettings
from fabula.measures.near_walk import NearWalk
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
N_REPLACED, SHARES = 100, (0.3, 0.5)
HALVES = "tuning", "held-out"
BY_INDEX = "index"
RECALL, PRECISION, MARKED = {"30% replaced": 0.98, "50% replaced": 0.85}, 0.95, 0.005
"""Targets of the walk over the index."""


@dataclass(frozen=True)
class Way:
    """A way to look for near matches."""

    name: str
    open: Callable[[PassageIndex], NearSearch | NearWalk]


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
    recalls: list[float] = field(default_factory=list)
    """The share of each span that was found."""
    precisions: list[float] = field(default_factory=list)
    """The share of each match in such a text that was set in."""
    n_pieces: list[int] = field(default_factory=list)
    """Of each span that was found, in how many matches."""

    @property
    def granularity(self) -> float:
        return statistics.fmean(self.n_pieces) if self.n_pieces else 1.0

    @property
    def plagdet(self) -> float:
        if not any(self.recalls) or not any(self.precisions):
            return 0.0
        means = [statistics.fmean(self.recalls), statistics.fmean(self.precisions)]
        return statistics.harmonic_mean(means) / math.log2(1 + self.granularity)


def shared_vectors() -> WordVectors:
    """The English pipeline's vectors, as they were: words that share one are one word."""
    from fabula.text.pipeline import load_pipeline

    nlp = load_pipeline(())
    rows, strings = nlp.vocab.vectors.key2row, nlp.vocab.strings
    data = quantise(nlp.vocab.vectors.data)
    return WordVectors("shared", data, lambda word: int(rows.get(strings[word], -1)), b"shared")


def by_passages(vectors: WordVectors, settings: NearSettings) -> Any:
    return lambda index: NearSearch(index, vectors, settings)


def by_index(index: PassageIndex) -> NearWalk:
    return NearWalk(index.reference, open_vectors(), index.stop_words)


def ways(given: argparse.Namespace) -> Iterator[Way]:
    ours = open_vectors()
    for threshold in given.threshold or [NearSettings().threshold]:
        for meaning in given.meaning or [NearSettings().meaning]:
            settings = NearSettings(threshold=threshold, meaning=meaning)
            name = f"default, T {threshold:g}, meaning {meaning:g}"
            yield Way(name, by_passages(ours, settings))
    if given.threshold or given.meaning:
        return
    yield Way(BY_INDEX, by_index)
    paper = NEAR_PRESETS["paper"]
    yield Way("published, same vectors", by_passages(ours, paper))
    if not given.smoke:
        shared = shared_vectors()
        yield Way("default of 0.1", by_passages(shared, replace(paper, threshold=0.88, floor=5)))
        yield Way("published, pruned vectors", by_passages(shared, paper))


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
    set_in = [(reference.locate(row["paraphrase"]).words, row) for row in rows]
    set_in += replaced(reference, given.replaced)
    found = []
    for k, (own, row) in enumerate(set_in):
        host, middle = long[k % len(long)], N_WORDS // 2
        words = [*host[:middle], *own, *host[middle:]]
        found.append(Text(words, middle, middle + len(own), row))
    alone = long[len(rows) :] or long
    return found + [Text(words) for words in alone[: given.unrelated]]


def replaced(reference: Reference, n_spans: int) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Spans of the reference with words replaced, and the rows that say where they are from."""
    rng, stop_words = random.Random(7), load_stop_words()
    numbers = reference.numbers()
    sample = [reference.located_document(n)[1].words for n in rng.sample(numbers, 4)]
    others = [word for words in sample for word in words if stop_words.is_content(word)]
    for share in SHARES:
        for _ in range(n_spans):
            document, located = reference.located_document(rng.choice(numbers))
            n = min(rng.randint(15, 30), len(located.words))
            first = rng.randrange(len(located.words) - n + 1)
            words = list(located.words[first : first + n])
            for place in rng.sample(range(n), round(share * n)):
                words[place] = rng.choice(others)
            kind = f"{share:.0%} replaced"
            yield words, {"kind": kind, "split": kind, "document": document.id}


def judge(search: NearSearch | NearWalk, texts: Sequence[Text]) -> dict[str, Tally]:
    """By what was set in: paraphrases, and spans by the share of words replaced."""
    tallies: dict[str, Tally] = defaultdict(lambda: Tally(Counter()))
    reference = search.index.reference if isinstance(search, NearSearch) else search.reference
    for text in texts:
        exact = reference.longest_matches(text.words)
        lengths, near = search.search(text.words, exact, MIN_WORDS)
        spans = {(first, first + int(lengths[first])): one for first, one in near.items()}
        if text.row is None:
            marked = np.zeros(len(text.words), np.bool_)
            for first, end in spans:
                marked[first:end] = True
            alone = tallies[HALVES[0]]
            alone.n_unrelated += len(text.words)
            alone.n_marked += int((marked & ~covered(exact)).sum())
        else:
            split = text.row["split"]
            tally = tallies[HALVES[0] if split in HALVES else split]
            right = {
                span for span, one in spans.items()
                if one.source.document.id == text.row["document"]
            }  # fmt: skip
            add(tally, text, text.row, spans, right, covered(exact))
    return dict(tallies)


def add(
    tally: Tally,
    text: Text,
    row: dict[str, str],
    spans: Iterable[tuple[int, int]],
    right: set[tuple[int, int]],
    verbatim: NDArray[np.bool_],
) -> None:
    """What was found of what was set into a text; `right` are the spans of its own document."""
    found = verbatim.copy()
    near = np.zeros(len(text.words), np.bool_)
    n_pieces = 0
    for first, end in spans:
        inside = max(0, min(end, text.end) - max(first, text.begin))
        is_right = (first, end) in right
        tally.n_matches += 1
        tally.n_right += is_right and inside >= (end - first) / 2
        tally.precisions.append(inside / (end - first) if is_right else 0.0)
        if is_right:
            found[first:end] = True
            near[first:end] = True
            n_pieces += inside > 0
    tally.recalls.append(float(near[text.begin : text.end].mean()))
    if n_pieces:
        tally.n_pieces.append(n_pieces)
    if found[text.begin : text.end].mean() >= 0.5:
        tally.found[row["kind"], row["split"]] += 1


def covered(lengths: NDArray[np.int32]) -> NDArray[np.bool_]:
    out = np.zeros(len(lengths), np.bool_)
    for first, n in maximal_spans(lengths, MIN_WORDS):
        out[first : first + n] = True
    return out


def show(
    way: Way, tallies: dict[str, Tally], rows: Sequence[dict[str, str]], n: int, taken_s: float
) -> None:
    print(f"\n{way.name} ({taken_s:.0f} s)")
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    counts = Counter((row["kind"], row["split"]) for row in rows)
    for name, tally in sorted(tallies.items()):
        if name not in HALVES:
            print(f"  {name}: found {sum(tally.found.values())} of {n}")
        else:
            for split in HALVES:
                total = sum(count for (_, half), count in counts.items() if half == split)
                hit = sum(count for (_, half), count in tally.found.items() if half == split)
                by_kind = ", ".join(
                    f"{k} {tally.found[k, split]}/{counts[k, split]}" for k in kinds
                )
                print(f"  found, {split}: {hit} of {total} ({by_kind})")
        print(
            f"    precision: {tally.n_right} of {tally.n_matches} near matches "
            f"({tally.n_right / max(1, tally.n_matches):.2f}); near alone: plagdet "
            f"{tally.plagdet:.2f}, granularity {tally.granularity:.2f}"
        )
        if tally.n_unrelated:
            print(
                f"  unrelated marked: {tally.n_marked} of {tally.n_unrelated:,} words "
                f"({tally.n_marked / tally.n_unrelated:.2%})",
                flush=True,
            )
        if way.name == BY_INDEX:
            show_targets(name, tally, n)


def show_targets(name: str, tally: Tally, n: int) -> None:
    if name in RECALL:
        recall = sum(tally.found.values()) / n
        precision = tally.n_right / max(1, tally.n_matches)
        print(f"    found {corpora.beside(recall, RECALL[name], at_least=True)}")
        print(f"    precision {corpora.beside(precision, PRECISION, at_least=True)}")
    if tally.n_unrelated:
        share = tally.n_marked / tally.n_unrelated
        print(f"    unrelated {corpora.beside(share, MARKED)}")


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
    parser.add_argument("--way", nargs="+", help="only ways whose name begins so")
    parser.add_argument("--replaced", type=int, default=N_REPLACED, help="spans of each share")
    given = parser.parse_args()
    given.replaced = 2 if given.smoke else given.replaced
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
            if given.way and not way.name.startswith(tuple(given.way)):
                continue
            search = way.open(index)
            start = time.perf_counter()
            tallies = judge(search, texts)
            show(way, tallies, rows, given.replaced, time.perf_counter() - start)
            if given.smoke:
                assert judge(search, texts) == tallies, "two runs disagree"


if __name__ == "__main__":
    main()
