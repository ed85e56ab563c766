"""Do phrases learned on some prompts tell people from models on others? And is the test exact?

    python bench/keyness.py [--trials 200] [--list FILE ...] [--smoke]

Stories of HANNA. Phrases are learned on half of the prompts, and texts of the other half are scored
by how many of them stand in 1,000 words: those of the models, and those of the models less those of
the people. Both halves are scored so, once each. AUROC with intervals over prompts, beside lists
from elsewhere (`--list`, JSON, as they match: word by word). With a background, half of the novels
printed before 1920, phrases that are common in them are left out. How many of the models' phrases
stand in 1,000 words of the other half, and how often halves of one group differ at 5 %, is shown
too; and what was learned on these models says of stories by others (Fast-DetectGPT).

Some of the people's stories are tokenised (*did n't*), which would tell them apart by itself, so
such words are joined first.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

import corpora
from fabula.core.types import Document
from fabula.groups.key_phrases import KeynessPlan, KeyPhrases, find_key_phrases
from fabula.groups.phrase_list import ListedPhrase, PhraseInstrument, PhraseList, read_phrases
from fabula.novelty.detector import Labelled, calibrate
from fabula.reference.search import Reference
from fabula.text import TextSettings, read_documents

Score = Callable[[Document], float]
MODELS, PEOPLE = "machine", "human"


_CLITIC = re.compile(
    r"\s+(?=n['’]t\b)|\s*(?=['’]\s*(?:s|re|ve|ll|d|m)\b)|(?<=['’])\s+(?=(?:s|re|ve|ll|d|m)\b)"
)


def joined(document: Document) -> Document:
    return replace(document, text=_CLITIC.sub("", document.text))


def of_label(documents: Sequence[Document], label: str) -> list[Document]:
    return [one for one in documents if one.meta["label"] == label]


def prompt_of(document: Document) -> str:
    return str(document.meta["pair_id"])


def learned(
    documents: Sequence[Document], plan: KeynessPlan, background: Reference | None
) -> KeyPhrases:
    return find_key_phrases(
        (MODELS, of_label(documents, MODELS)),
        (PEOPLE, of_label(documents, PEOPLE)),
        plan,
        background=background,
    )


def instrument(found: KeyPhrases, side: str) -> PhraseInstrument:
    rows = [ListedPhrase(one.phrase) for one in found.phrases if one.over == side]
    return PhraseInstrument(PhraseList(side, "", None, "", TextSettings(), rows, ""))


def rate(listed: PhraseInstrument) -> Score:
    def score(document: Document) -> float:
        ((measured,),) = listed.measure([document])
        return float(measured.value or 0.0)

    return score


def shown(name: str, texts: Sequence[Document], scores: Sequence[float]) -> None:
    """The AUROC of a score that should be higher in texts of models."""
    numbers = {prompt: k for k, prompt in enumerate(sorted({prompt_of(one) for one in texts}))}
    labelled = Labelled(
        -np.array(scores),
        np.array([one.meta["label"] == PEOPLE for one in texts]),
        np.array([numbers[prompt_of(one)] for one in texts]),
    )
    # Higher is expected of models; which score it is called is of no weight here.
    found = calibrate(labelled, score="log_likelihood", signature="", n_missing=0).auroc
    interval = "-" if found.low is None else f"{found.low:.3f} to {found.high:.3f}"
    print(f"{name:44} AUROC {found.value:.3f} [{interval}]", flush=True)


def held_out(
    documents: Sequence[Document], plans: dict[str, tuple[KeynessPlan, Reference | None]]
) -> None:
    """Each half of the prompts scored by what was learned on the other."""
    prompts = sorted({prompt_of(one) for one in documents})
    random.Random(0).shuffle(prompts)
    first = set(prompts[: len(prompts) // 2])
    halves = [
        [one for one in documents if (prompt_of(one) in first) == is_first]
        for is_first in (True, False)
    ]
    scored = [*halves[1], *halves[0]]
    for name, (plan, background) in plans.items():
        over, both, sizes = [], [], []
        for own, other in (halves, halves[::-1]):
            found = learned(own, plan, background)
            models, people = (rate(instrument(found, side)) for side in (MODELS, PEOPLE))
            over += [models(one) for one in other]
            both += [models(one) - people(one) for one in other]
            sizes.append([len(found.over(group)) for group in (found.a, found.b)])
        print(f"{name}: phrases of models and of people {sizes[0]} and {sizes[1]}")
        shown("  of the models", scored, over)
        shown("  of the models less those of people", scored, both)


def novels() -> tuple[list[Document], list[Document]]:
    """Every second book printed before 1920, and the others; a book is several documents."""
    files = sorted((corpora.SHARED / "reference").glob("gutenberg_novels.jsonl.gz"))
    documents = list(read_documents(files))
    book_of = [one.id.rpartition("-")[0] or one.id for one in documents]
    first = set(sorted(set(book_of))[::2])
    parts: tuple[list[Document], list[Document]] = ([], [])
    for one, book in zip(documents, book_of, strict=True):
        parts[book not in first].append(one)
    return parts


def in_old_prose(found: KeyPhrases, words: Sequence[str]) -> None:
    """Phrases of the models in novels printed before 1920, by how many words they have."""
    n_of: dict[str, int] = {}
    for _, _, one in instrument(found, MODELS).find(words):
        n_of[one.phrase] = n_of.get(one.phrase, 0) + 1
    for shortest in (1, 2, 3):
        n = sum(times for phrase, times in n_of.items() if len(phrase.split()) >= shortest)
        rates = 1000 * n / len(words)
        print(f"  of {shortest} words and more: {rates:.2f} in 1,000 of {len(words):,} words")
    print("  most often:", sorted(n_of.items(), key=lambda entry: -entry[1])[:5])


def of_others(found: KeyPhrases) -> None:
    """Stories by other models and other people."""
    documents = list(read_documents([corpora.FAST_DETECT]))
    score = rate(instrument(found, MODELS))
    shown("  of others", documents, [score(one) for one in documents])


def halves(documents: Sequence[Document], n_trials: int) -> None:
    """How often halves of the stories by models have a phrase that passes."""
    rng = random.Random(0)
    texts = of_label(documents, MODELS)[: corpora.sized(72, 12)]
    plan = KeynessPlan(n_words=100, longest=3, min_ratio=1.0)
    n_differ = 0
    for _ in range(n_trials):
        rng.shuffle(texts)
        middle = len(texts) // 2
        found = find_key_phrases(("a", texts[:middle]), ("b", texts[middle:]), plan)
        n_differ += bool(found.phrases)
    print(
        f"halves of one group with a phrase that passes, of {n_trials}: {n_differ / n_trials:.1%}"
    )


def main() -> None:
    given = corpora.options(
        __doc__, trials=corpora.sized(200, 3),
        list={"type": Path, "action": "append", "default": [], "help": "JSON"},
    )  # fmt: skip
    documents = [joined(one) for one in read_documents([corpora.HANNA])]
    n_words = corpora.sized(200, 50)
    proven = KeynessPlan(prompt="pair_id", n_words=n_words)
    loose = replace(proven, max_p=1.0)
    books, other_books = novels()
    with corpora.scratch() as folder, closing(Reference.build(books, folder)) as known:
        print(f"background: {known.size}")
        plans: dict[str, tuple[KeynessPlan, Reference | None]] = {
            "p 0.05, ratio 3": (proven, None),
            "p 0.05, ratio 3, background": (proven, known),
            "any p, ratio 2": (replace(loose, min_ratio=2.0), None),
            "any p, ratio 3": (loose, None),
            "any p, ratio 3, 2 words and more": (replace(loose, shortest=2), None),
            **{
                f"any p, ratio 3, background up to {n:g}": (replace(loose, max_background=n), known)
                for n in (1.0, 3.0, 10.0)
            },
        }
        held_out(documents, plans)
        words = TextSettings().words(" ".join(one.text for one in other_books))
        words = words[: corpora.sized(1_000_000, 5_000)]
        for name, (plan, background) in plans.items():
            found = learned(documents, plan, background)
            print(f"{name}, learned on all prompts: {len(found.over(found.a))} phrases of models")
            if found.over(found.a):
                in_old_prose(found, words)
                of_others(found)
    for path in given.list:
        score = rate(PhraseInstrument(read_phrases(path)))
        shown(path.stem, documents, [score(one) for one in documents])
    halves(documents, given.trials)


if __name__ == "__main__":
    main()
