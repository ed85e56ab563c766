"""How well near matches find paraphrases, and how often they mark what is unrelated.

    python bench/planted.py [--unrelated N] [--replaced N] [--way default|paper]
        [--set books|fresh] [--smoke]

`tests/golden/paraphrases.jsonl` holds paraphrases written by hand, of sentences of books and
speeches, by kind of change. Each is set into a text that has nothing to do with the reference:
stories of people and of models, and books for children. The same kinds of text alone are the
unrelated prose. The thresholds were chosen on the half of the paraphrases called `tuning`; those
called `fresh` were written afterwards, of children's books, which are their reference. Besides,
spans of 15 to 30 words of the reference are set in, with 30 and 50 % of their words, drawn at
random, replaced by content words of other documents.

- found (recall): of what was set in, how many have at least half of their words in near matches
  with the document that they are of, or in verbatim ones;
- precision: the share of near matches, in the texts with something set in, at least half of whose
  words are of it, and whose source is the right document;
- unrelated marked: the share of words of unrelated prose in near matches, beyond verbatim ones.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import corpora
from fabula.core.types import Document
from fabula.models.vectors import open_vectors
from fabula.novelty.near import NearSearch, PaperSearch
from fabula.reference.exclude import maximal_spans
from fabula.reference.search import Reference
from fabula.text import read_documents
from fabula.text.words import load_stop_words

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "paraphrases.jsonl"
N_WORDS, MIN_WORDS = 120, 5
RECALL = {
    "30% replaced": 0.77, "50% replaced": 0.36, "tuning": 0.76, "held-out": 0.68, "fresh": 0.44,
}  # fmt: skip
PRECISION, MARKED = 0.9, 0.001
"""Targets of the default search."""
WAYS: dict[str, Callable[..., NearSearch | PaperSearch]] = {
    "default": NearSearch,
    "paper": PaperSearch,
}
SETS = {
    "books": ("reference", ["human_vs_machine", "cbt/children_books.jsonl.gz"]),
    "fresh": ("cbt/children_books.jsonl.gz", ["human_vs_machine"]),
}
"""The reference of the paraphrases, and where texts that have nothing to do with it are."""
Row = dict[str, str]


@dataclass(frozen=True)
class Text:
    """Words, and which of them were set in."""

    words: list[str]
    begin: int = 0
    end: int = 0
    row: Row | None = None


@dataclass
class Tally:
    """What one way found of one half of the paraphrases, or of the spans of one kind."""

    found: Counter[str] = field(default_factory=Counter)
    n: Counter[str] = field(default_factory=Counter)
    """By kind of change: how many were found, of how many."""
    n_right: int = 0
    n_matches: int = 0


def hosts(sources: Sequence[str]) -> Iterator[str]:
    """Texts of each kind in turn."""
    folders = [corpora.SHARED / source for source in sources]
    kinds = [
        file for path in folders
        for file in (sorted(path.glob("*.jsonl"), reverse=True) if path.is_dir() else [path])
    ]  # fmt: skip
    texts = [[d.text for d in read_documents([str(kind)])] for kind in kinds]
    for some in texts:
        random.Random(1).shuffle(some)
    for group in zip(*texts, strict=False):
        yield from group


def texts_of(
    reference: Reference,
    sources: Sequence[str],
    rows: Sequence[Row],
    n_replaced: int,
    n_unrelated: int,
) -> list[Text]:
    """What is set in, each in the midst of a host; then hosts alone."""
    cut = (reference.locate(text).words[:N_WORDS] for text in hosts(sources))
    long = [words for words in cut if len(words) == N_WORDS]
    set_in = [(reference.locate(row["paraphrase"]).words, row) for row in rows]
    if n_replaced:
        set_in += replaced(reference, n_replaced)
    found, middle = [], N_WORDS // 2
    for k, (own, row) in enumerate(set_in):
        host = long[k % len(long)]
        words = [*host[:middle], *own, *host[middle:]]
        found.append(Text(words, middle, middle + len(own), row))
    alone = long[len(rows) :] or long
    return found + [Text(words) for words in alone[:n_unrelated]]


def replaced(reference: Reference, n_spans: int) -> Iterator[tuple[list[str], Row]]:
    """Spans of the reference with words replaced, and the rows that say where they are from."""
    rng, stop_words = random.Random(7), load_stop_words()
    numbers = reference.numbers()
    sample = [reference.located_document(n)[1].words for n in rng.sample(numbers, 4)]
    others = [word for words in sample for word in words if stop_words.is_content(word)]
    for share in (0.3, 0.5):
        for _ in range(n_spans):
            document, located = reference.located_document(rng.choice(numbers))
            n = min(rng.randint(15, 30), len(located.words))
            first = rng.randrange(len(located.words) - n + 1)
            words = list(located.words[first : first + n])
            for place in rng.sample(range(n), round(share * n)):
                words[place] = rng.choice(others)
            kind = f"{share:.0%} replaced"
            yield words, {"kind": kind, "split": kind, "document": document.id}


def judge(
    search: NearSearch | PaperSearch, texts: Sequence[Text]
) -> tuple[dict[str, Tally], int, int]:
    """The tallies, and how many words of the unrelated prose were marked, of how many."""
    tallies: dict[str, Tally] = defaultdict(Tally)
    n_marked = n_unrelated = 0
    for text in texts:
        exact = search.reference.longest_matches(text.words)
        lengths, near = search.search(text.words, exact, MIN_WORDS)
        verbatim = np.zeros(len(text.words), np.bool_)
        mark(verbatim, maximal_spans(exact, MIN_WORDS))
        matches = {first: int(lengths[first]) for first in near}
        found = verbatim.copy()
        if text.row is None:
            mark(found, matches.items())
            n_unrelated += len(text.words)
            n_marked += int((found & ~verbatim).sum())
            continue
        tally, kind = tallies[text.row["split"]], text.row["kind"]
        right = {
            first: n for first, n in matches.items()
            if near[first].source.document.id == text.row["document"]
        }  # fmt: skip
        mark(found, right.items())
        tally.n_matches += len(matches)
        tally.n_right += sum(
            min(first + n, text.end) - max(first, text.begin) >= n / 2 for first, n in right.items()
        )
        tally.n[kind] += 1
        tally.found[kind] += int(found[text.begin : text.end].mean() >= 0.5)
    return dict(tallies), n_marked, n_unrelated


def mark(words: NDArray[np.bool_], spans: object) -> None:
    for first, n in spans:  # type: ignore[attr-defined]
        words[first : first + n] = True


def show(way: str, taken_s: float, tallies: dict[str, Tally], n_marked: int, n: int) -> None:
    print(f"\n{way} ({taken_s:.0f} s)")

    def target(value: float, wanted: float, *, at_least: bool = True) -> str:
        return corpora.beside(value, wanted, at_least=at_least) if way == "default" else ""

    for name, tally in tallies.items():
        recall = tally.found.total() / tally.n.total()
        precision = tally.n_right / max(1, tally.n_matches)
        kinds = ", ".join(f"{kind} {tally.found[kind]}/{tally.n[kind]}" for kind in tally.n)
        print(
            f"  {name}: found {tally.found.total()} of {tally.n.total()} "
            f"{target(recall, RECALL[name])} ({kinds})\n"
            f"    precision {precision:.2f}, {tally.n_right} of {tally.n_matches} near matches "
            f"{target(precision, PRECISION)}"
        )
    print(f"  unrelated marked: {n_marked / n:.2%}, {n_marked:,} of {n:,} words "
          f"{target(n_marked / n, MARKED, at_least=False)}", flush=True)  # fmt: skip


def main() -> None:
    given = corpora.options(
        __doc__, unrelated=(corpora.sized(300, 6), "texts of it"),
        replaced=(corpora.sized(100, 2), "of each share"), way={"choices": WAYS},
        set={"choices": SETS},
    )  # fmt: skip
    rows = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    if corpora.SMOKE:
        rows = [row for row in rows if row["id"].endswith(("01", "02"))]
    for name in [given.set] if given.set else SETS:
        is_fresh = name == "fresh"
        run(name, [row for row in rows if (row["split"] == "fresh") is is_fresh], given)


def run(name: str, rows: Sequence[Row], given: argparse.Namespace) -> None:
    source, others = SETS[name]
    if corpora.SMOKE:
        # A document a sentence: then each paraphrase has one source, as among books.
        documents = iter([Document(row["document"], row["source"]) for row in rows])
    else:
        documents = read_documents([str(corpora.SHARED / source)])
    n_replaced = given.replaced if name == "books" else 0
    with corpora.scratch() as folder:
        reference = Reference.build(documents, folder, n_jobs=2)
        texts = texts_of(reference, others, rows, n_replaced, given.unrelated)
        print(f"{len(rows)} paraphrases, {reference.size}")
        for way in [given.way] if given.way else WAYS:
            search = WAYS[way](reference, open_vectors(), load_stop_words())
            start = time.perf_counter()
            found = judge(search, texts)
            show(way, time.perf_counter() - start, *found)
            if corpora.SMOKE:
                assert judge(search, texts) == found, "two runs disagree"


if __name__ == "__main__":
    main()
