"""How often "What changed" on the desk lists a number, where nothing moved and where it did.

    python bench/moved.py [--smoke] [--texts 100] [--seed 0]

Of chapters of children's books, three of ten paragraphs are revised: a sentence is cut, put twice,
or its commas become full stops. Of each revised paragraph a coin decides whether the first version
has it or the second, so that numbers differ by chance alone; or the second version has them all.
Printed are the shares of texts for which each number is listed, and any of them, with 95 %
intervals (Clopper and Pearson).
"""

from __future__ import annotations

import random
import re
from collections import Counter

from scipy.stats import binomtest

import corpora
from fabula.core.types import Document
from fabula.linguistic.profile import profile_texts
from fabula.text import read_documents
from fabula.writer.changes import OF_SUMS, moved_numbers, sentence_rows

MIN_PARAGRAPHS, SHARE = 20, 0.3


def revised(paragraph: str, rng: random.Random) -> str:
    sentences = re.split(r"(?<=[.!?]) ", paragraph)
    k = rng.randrange(len(sentences))
    kind = rng.randrange(3)
    if kind == 0 and len(sentences) > 1:
        del sentences[k]
    elif kind == 1:
        sentences.insert(k, sentences[k])
    else:
        sentences[k] = re.sub(r", (\w)", lambda match: f". {match[1].upper()}", sentences[k])
    return " ".join(sentences)


def main() -> None:
    given = corpora.options(__doc__, texts=100, seed=0)
    rng = random.Random(given.seed)
    chapters = [one.text.split("\n\n") for one in read_documents([corpora.CHILDREN])]
    chapters = [one for one in chapters if len(one) >= MIN_PARAGRAPHS or corpora.SMOKE]
    pairs: dict[str, list[str]] = {"by chance": [], "all revised": []}
    for chapter in rng.sample(chapters, min(given.texts, len(chapters))):
        new = [revised(one, rng) if rng.random() < SHARE else one for one in chapter]
        sides = [
            both if rng.random() < 0.5 else both[::-1] for both in zip(chapter, new, strict=True)
        ]
        pairs["by chance"] += ["\n\n".join(side) for side in zip(*sides, strict=True)]
        pairs["all revised"] += ["\n\n".join(chapter), "\n\n".join(new)]
    for name, texts in pairs.items():
        profiles = profile_texts([Document(str(k), text) for k, text in enumerate(texts)])
        rows = [sentence_rows(profile) for profile in profiles]
        listed: Counter[str] = Counter()
        n_texts = 0
        for before, after in zip(rows[::2], rows[1::2], strict=True):
            moved = moved_numbers(before, after)
            n_texts += moved is not None
            listed.update(moved or ())
            listed["any"] += bool(moved)
        print(f"{name}, {n_texts} texts")
        for key in (*OF_SUMS, "any"):
            interval = binomtest(listed[key], n_texts).proportion_ci() if n_texts else None
            low, high = interval or (0.0, 1.0)
            print(f"  {key:20} {listed[key]:4}  [{low:.3f}, {high:.3f}]")


if __name__ == "__main__":
    main()
