"""How many passages are shown by chance, and how many planted quotations are found.

    python bench/chance.py [--near] [--words N] [--texts N] [--plants N] [--show] [--smoke]

The reference is the shared books. Its authors' own texts are clean if what they wrote is excluded:
up to `--words` words of each are read as one text, and stories by people (HANNA) one by one.
Counted are the passages shown, beside the expected number that the report says. In those stories
quotations of 6 to 15 words from the reference are planted, as they stand there or, from 10 words
on, with the word in the middle replaced; one counts as found if a passage holds half of it.
`--near` also finds matches in other words. `--show` prints what is shown of clean texts.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence

import corpora
from fabula.core.types import Document
from fabula.novelty.job import OriginalityOptions, open_measure
from fabula.novelty.measure import ExcludeIds, Originality, OriginalityMeasure
from fabula.reference.search import Reference
from fabula.text import read_documents

LENGTHS = (6, 8, 10, 12, 15)
SOURCES = ("cbt/children_books.jsonl.gz", "reference/gutenberg_novels.jsonl.gz",
           "reference/austen_novels.jsonl.gz", "reference/moby_dick.jsonl.gz")  # fmt: skip
MAX_WORDS = 600


def clean_books(reference: Reference, n_words: int) -> Iterator[tuple[str, str, frozenset[int]]]:
    """Authors, words of theirs, and the numbers of all that they wrote."""
    own: dict[str, list[tuple[str, int]]] = defaultdict(list)
    numbers = reference.numbers()
    for number, document in zip(numbers, reference.documents(numbers), strict=True):
        own[document.author or ""].append((document.id, number))
    for author, named in sorted(own.items()):
        texts, n = [], 0
        for document in reference.documents([number for _, number in sorted(named)]):
            if n < n_words:
                texts.append(document.text)
                n += len(document.text.split())
        yield author, "\n\n".join(texts), frozenset(number for _, number in named)


def stories(n_texts: int) -> list[str]:
    rows = [one for one in read_documents([corpora.HANNA]) if one.meta["label"] == "human"]
    return [" ".join(one.text.split()[:MAX_WORDS]) for one in rows][:n_texts]


def planted(text: str, reference: Reference, n: int, rng: random.Random, is_changed: bool) -> str:
    """A text with a quotation of n words from the reference between two of its words, marked."""
    numbers, words = reference.numbers(), text.split()
    while True:
        document, located = reference.located_document(rng.choice(numbers))
        if len(located.words) > n + 20:
            break
    first = rng.randrange(len(located.words) - n)
    quoted = document.text[located.starts[first] : located.ends[first + n - 1]].split()
    if is_changed:
        quoted[len(quoted) // 2] = rng.choice(["lantern", "quietly", "orchard", "blue", "seven"])
    at = rng.randrange(20, len(words) - 20)
    return " ".join([*words[:at], f"\n{' '.join(quoted)}\n", *words[at:]])


def is_found(result: Originality, text: str) -> bool:
    assert result.ranked is not None
    begin, end = text.index("\n"), text.rindex("\n")
    held = sum(
        max(0, min(run.span.end, end) - max(run.span.start, begin))
        for passage in result.ranked.passages
        for run in passage.runs
    )
    return 2 * held >= end - begin


def show(text: str, result: Originality) -> None:
    assert result.ranked is not None
    for passage in result.ranked.passages:
        words = " ".join(text[passage.span.start : passage.span.end].split())
        over, near = passage.over_chance or 0, passage.n_verbatim < passage.n_words
        print(f"    {over:5.1f} {'near' if near else '    '} {words[:110]}")


def measured(measure: OriginalityMeasure, texts: Sequence[str]) -> list[Originality]:
    return list(measure.measure(Document(f"t{k}", text) for k, text in enumerate(texts)))


def main() -> None:
    given = corpora.options(
        __doc__, near=(False, "find matches in other words too"), words=corpora.sized(60_000, 300),
        texts=corpora.sized(48, 3), plants=corpora.sized(100, 3), show=(False, "print passages"),
    )  # fmt: skip
    with corpora.scratch() as folder:
        paths = [corpora.SHARED / name for name in SOURCES if (corpora.SHARED / name).exists()]
        reference = Reference.build(read_documents(paths), folder / "books.ref", n_jobs=2)
        factor, match = reference.about.chance_factor, "near" if given.near else "verbatim"
        print(f"{reference.size}, factor {factor:g}, {match}")
        options = OriginalityOptions((str(folder / "books.ref"),), match=match)
        with open_measure(options, n_threads=2) as measure:
            n_all, n_shown = 0, 0
            for author, text, out in clean_books(reference, given.words):
                measure.left_out = ExcludeIds(out, "own").numbers
                (result,) = measured(measure, [text])
                assert result.ranked is not None
                n_all, n_shown = n_all + result.n_words, n_shown + len(result.ranked.passages)
                expected = result.ranked.by_chance or 0
                print(f"{author}: {result.n_words:,} words, {len(result.ranked.passages)} shown, "
                      f"{expected:.2f} expected")  # fmt: skip
                if given.show:
                    show(text, result)
            print(f"books: {60_000 * n_shown / n_all:.2f} shown in 60,000 words")
            measure.left_out = frozenset()
            texts = stories(given.texts)
            results = measured(measure, texts)
            n_with = sum(bool(one.ranked and one.ranked.passages) for one in results)
            print(f"stories: something shown in {n_with} of {len(results)}")
            if given.show:
                for text, result in zip(texts, results, strict=True):
                    show(text, result)
            for n in LENGTHS:
                for is_changed in (False, True)[: 1 + (n >= 10)]:
                    rng = random.Random(n)
                    marked = [
                        planted(texts[k % len(texts)], reference, n, rng, is_changed)
                        for k in range(given.plants)
                    ]
                    found = measured(measure, marked)
                    n_found = sum(map(is_found, found, marked))
                    how = ", one word replaced" if is_changed else ""
                    print(f"{n} words{how}: {n_found} of {len(marked)} found")


if __name__ == "__main__":
    main()
