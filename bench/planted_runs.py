"""Whether quotations stand before common wording: planted ones, and what else is marked.

    python bench/planted_runs.py [--smoke] [--texts N]

Quotations of 8 to 25 words from the reference, one to three, are set into texts that are not in
it: stories by people and by models, books for children, openings of novels by GPT-3.5. Every text
is cut to 600 words. Printed are, for the texts on which `MIN_BITS` was chosen and for the others,

- found: texts in which all that was planted stands among the first five passages (at least half of
  its words in one of them);
- marks: the median, over texts, of the marks that hold nothing planted: before, every borrowed run;
  after, every passage.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import corpora
from fabula.core.types import Document
from fabula.novelty.measure import Originality, OriginalityMeasure
from fabula.reference.search import Reference
from fabula.text import read_documents

FILES = (
    "human_vs_machine/hanna_writingprompts.jsonl",
    "human_vs_machine/fastdetect_writing.jsonl",
    "cbt/children_books.jsonl.gz",
    "generated/gpt35_novel.jsonl",
)
HALVES = "chosen on", "held out"
N_FIRST, MIN_WORDS, MAX_WORDS = 5, 100, 600
Stretch = tuple[int, int]


@dataclass(frozen=True)
class Planted:
    """A text with quotations in it, each from its first word to before its end."""

    document: Document
    half: str
    quotations: list[Stretch]


def hosts(n_texts: int) -> Iterator[tuple[str, list[str]]]:
    """The words of texts that are not in the reference, with the half that each is in."""
    for name in FILES:
        path = corpora.SHARED / name
        if not path.exists():
            continue
        texts = [document.text.split() for document in read_documents([str(path)])]
        texts = [words[:MAX_WORDS] for words in texts if len(words) >= MIN_WORDS]
        random.Random(1).shuffle(texts)
        for k, words in enumerate(texts[:n_texts]):
            yield HALVES[k % 2], words


def plant(reference: Reference, n_texts: int) -> Iterator[Planted]:
    """The texts with quotations; where they stand is counted in words of the reference."""
    rng = random.Random(2)
    numbers = reference.numbers()
    for half, words in hosts(n_texts):
        pieces, quotations, n_words = [], [], 0
        n_quotations = rng.randint(1, 3)
        cuts = sorted(rng.sample(range(20, len(words) - 20), n_quotations))
        for begin, end in zip([0, *cuts], [*cuts, len(words)], strict=True):
            pieces.append(" ".join(words[begin:end]))
            n_words += len(reference.locate(pieces[-1]).words)
            if end < len(words):
                pieces.append(quotation(reference, numbers, rng))
                n = len(reference.locate(pieces[-1]).words)
                quotations.append((n_words, n_words + n))
                n_words += n
        yield Planted(Document(f"t{n_words}-{rng.random()}", "\n".join(pieces)), half, quotations)


def quotation(reference: Reference, numbers: Sequence[int], rng: random.Random) -> str:
    """8 to 25 words of a document of the reference, as they stand there."""
    while True:
        document, located = reference.located_document(rng.choice(numbers))
        n = rng.randint(8, 25)
        if len(located.words) >= n:
            first = rng.randrange(len(located.words) - n + 1)
            return document.text[located.starts[first] : located.ends[first + n - 1]]


def inside(a: Stretch, b: Stretch) -> int:
    """Words in both."""
    return max(0, min(a[1], b[1]) - max(a[0], b[0]))


def is_found(result: Originality, planted: Planted) -> bool:
    assert result.ranked is not None
    first = [run for one in result.ranked.passages[:N_FIRST] for run in one.runs]
    stretches = [(run.first_word, run.end_word) for run in first]
    return all(
        2 * max((inside(quoted, one) for one in stretches), default=0) >= quoted[1] - quoted[0]
        for quoted in planted.quotations
    )


def n_unplanted(stretches: Sequence[Stretch], planted: Planted) -> int:
    """How many of the stretches hold nothing that was planted."""
    return sum(not any(inside(one, quoted) for quoted in planted.quotations) for one in stretches)


def main() -> None:
    given = corpora.options(__doc__, texts=(corpora.sized(100, 4), "of each kind"))
    with corpora.scratch() as folder:
        documents = read_documents([str(corpora.SHARED / "reference")])
        reference = Reference.build(documents, folder)
        texts = list(plant(reference, given.texts))
        results = list(OriginalityMeasure(reference).measure(one.document for one in texts))
        print(f"{len(texts)} texts against {reference.size}")
        for half in HALVES:
            pairs = [(r, one) for r, one in zip(results, texts, strict=True) if one.half == half]
            show(half, pairs)
        again = OriginalityMeasure(reference).measure(one.document for one in texts)
        assert [one.ranked for one in again] == [one.ranked for one in results], "two runs disagree"


def show(half: str, pairs: Sequence[tuple[Originality, Planted]]) -> None:
    before, after = [], []
    for result, planted in pairs:
        assert result.ranked is not None
        runs = [(run.first_word, run.first_word + run.n_words) for run in result.borrowed]
        marked = [
            (run.first_word, run.end_word) for one in result.ranked.passages for run in one.runs
        ]
        before.append(n_unplanted(runs, planted))
        after.append(n_unplanted(marked, planted))
    n_found = sum(is_found(*pair) for pair in pairs)
    print(
        f"{half}: found in {n_found} of {len(pairs)} texts ({n_found / len(pairs):.1%}); "
        f"marks of common wording, median {statistics.median(before):g} before, "
        f"{statistics.median(after):g} after; all {sum(before):,} before, {sum(after):,} after"
    )


if __name__ == "__main__":
    main()
