"""How often is a word that is noted as wrong wrong, and how many wrong words are noted?

    python bench/proofreading.py [--words 20000] [--planted 150] [--skip 0] [--show] [--smoke]

Notes on edited books, novels and children's books by turns, are false but for the books' own
errors: their number in 10,000 words, with Garwood's interval. In other passages of the same books
an error is planted, of one kind after the other and drawn with a seed: the share that is noted, and
the share of these notes that name the right word. `--skip` leaves out so many books of each kind,
for a round on others; `--show` prints the notes.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Iterator

from scipy.stats import chi2

import corpora
from fabula.core.types import Document
from fabula.models.surprisal import SurprisalModel
from fabula.style import proofreading
from fabula.style.proofreading import MARGINS, WrongWord, alternatives, likely_wrong, wrong_words
from fabula.text import count_words, read_documents

BOOKS = corpora.SHARED / "reference" / "gutenberg_novels.jsonl.gz", corpora.CHILDREN
EVERY, PART_CHARS, SEED = 11, 6000, 1
MIN_WORDS = 60
KINDS = [kind for kind in MARGINS if kind != "context"]
"""Kinds that are planted; `contexts.py` plants the others."""


def parts(skip: int) -> Iterator[Document]:
    """The middle of every eleventh section of novels and children's books, by turns."""
    rows = [list(read_documents([str(path)]))[skip::EVERY] for path in BOOKS]
    for pair in zip(*rows, strict=False):
        for one in pair:
            # From a paragraph to a paragraph.
            begin = one.text.find("\n\n", max(0, len(one.text) // 2 - PART_CHARS // 2))
            end = one.text.find("\n\n", begin + PART_CHARS)
            yield Document(one.id, one.text[max(0, begin) : end if end > 0 else None].strip())


def errors(text: str, kind: str, rng: random.Random) -> Iterator[tuple[int, int, str, int, str]]:
    """Places that could be wrong in this way: what would stand there, where the note would begin,
    and what it would name."""
    if kind == "missing":
        for match in re.finditer(r"(?<= )([a-z]+) ([a-z]+)", text):
            if match[1] in proofreading._SMALL:
                yield *match.span(), match[2], match.start(), match[0]
    elif kind == "question":
        for match in re.finditer(r"(\w+)\?(?=[”\"])", text):
            yield *match.span(), f"{match[1]}.", match.start(), match[0]
    elif kind == "sentence":
        for match in re.finditer(r"([a-z]+)\. ([A-Z][a-z]*)", text):
            wrong = f"{match[1]} {match[2] if match[2] == 'I' else match[2].lower()}"
            if proofreading._RUN_ON.fullmatch(wrong):
                yield *match.span(), wrong, match.start(), match[0]
    elif kind == "address":
        for match in re.finditer(r"([a-z']+), ((?:Mrs?\.? )?[A-Z][a-z]+)(?=[.,!?][”\"])", text):
            yield *match.span(), f"{match[1]} {match[2]}", match.start(), match[0]
    elif kind == "verb":
        for match in re.finditer(r"(?<= )[a-z]+\b", text):
            for wrong, others in alternatives().items():
                if others.get(match[0]) == kind:
                    yield *match.span(), wrong, match.start(), match[0]
    elif kind == "name":
        for match in re.finditer(r"(?<=[a-z] )[A-Z][a-z]+", text):
            yield *match.span(), match[0].lower(), match.start(), match[0]
    elif kind == "spelling":
        for match in re.finditer(r"(?<= )[a-z]{5,}", text):
            wrong = rng.choice(list(proofreading._near(match[0])))
            if wrong != match[0]:
                yield *match.span(), wrong, match.start(), match[0]
    else:
        # A set as likely as another, however frequent its words are.
        pairs = [one[:3] for one in proofreading._others(text) if one[3] == kind]
        drawn = rng.choice(sorted({text[start:end].lower() for start, end, _ in pairs} or {""}))
        for start, end, other in pairs:
            if text[start:end].lower() == drawn:
                yield start, end, other, start, text[start:end]


def planted(text: str, kind: str, rng: random.Random) -> tuple[str, tuple[int, str]] | None:
    """The text with an error, and its place and what is right; None if it has no such word."""
    places = list(errors(text, kind, rng))
    if not places:
        return None
    start, end, wrong, at, right = rng.choice(places)
    return text[:start] + wrong + text[end:], (at, right)


def passages(document: Document) -> Iterator[str]:
    """Paragraphs, joined until they have enough words."""
    row: list[str] = []
    for paragraph in document.text.split("\n\n"):
        row.append(paragraph)
        if count_words(" ".join(row)) >= MIN_WORDS:
            yield "\n\n".join(row)
            row = []


def noted(model: SurprisalModel, document: Document) -> list[WrongWord]:
    """What the product notes if nothing else is noted."""
    return likely_wrong(wrong_words(model, document), 0, count_words(document.text))


def show(text: str, one: WrongWord, what: str) -> None:
    near = " ".join(text[max(0, one.start - 50) : one.end + 40].split())
    print(
        f"  {what} {one.gain:4.1f} {text[one.start : one.end]} > {one.other}: … {near} …",
        flush=True,
    )


def main() -> None:
    given = corpora.options(
        __doc__, words=(corpora.sized(20_000, 300), "of edited books"), skip=0, show=False,
        planted=(corpora.sized(150, 9), "errors of all kinds together"),
    )  # fmt: skip
    texts = parts(given.skip)
    clean = dict.fromkeys(MARGINS, 0)
    n_words, seconds = 0, 0.0
    with corpora.scratch() as folder, SurprisalModel("local") as model:
        # Nothing was read before.
        os.environ["FABULA_CACHE"] = str(folder)
        print(f"{model.name}, rules {proofreading.PROOF_RULES}")
        for document in texts:
            begin = time.process_time()
            found = noted(model, document)
            seconds += time.process_time() - begin
            n_words += count_words(document.text)
            for one in found:
                clean[one.kind] += 1
                if given.show:
                    show(document.text, one, "edited")
            if n_words >= given.words:
                break
        print(
            f"{n_words:,} words of edited books, {1000 * seconds / n_words:.1f} s per 1,000 words"
        )
        rng = random.Random(SEED)
        right: dict[str, list[bool]] = {kind: [] for kind in MARGINS}
        n_planted = dict.fromkeys(MARGINS, 0)
        order = KINDS
        for document in texts:
            whole, wanted = "", {}
            for text in passages(document):
                kind = order[sum(n_planted.values()) % len(order)]
                change = (
                    planted(text, kind, rng) if sum(n_planted.values()) < given.planted else None
                )
                if change is not None:
                    text, (place, word) = change
                    wanted[len(whole) + place] = kind, word
                    n_planted[kind] += 1
                    whole += text + "\n\n"
            for one in noted(model, Document(document.id, whole)) if wanted else ():
                kind, word = wanted.get(one.start, (None, ""))
                if kind is not None:
                    right[kind].append(one.other.lower() == word.lower())
                if given.show and (kind is None or one.other.lower() != word.lower()):
                    show(whole, one, f"beside planted ({word or 'none'})")
            if sum(n_planted.values()) >= given.planted:
                break
    print("kind        false  in 10,000 words     planted  noted  right word")
    for kind in MARGINS:
        n = clean[kind]
        low = chi2.ppf(0.025, 2 * n) / 2 if n else 0.0
        high = chi2.ppf(0.975, 2 * n + 2) / 2
        rate, low, high = (10_000 * value / n_words for value in (n, low, high))
        share = len(right[kind]) / max(1, n_planted[kind])
        print(
            f"{kind:10} {n:6} {rate:6.2f} [{low:.2f}, {high:5.2f}] "
            f"{n_planted[kind]:8} {share:6.0%} {sum(right[kind]) / max(1, len(right[kind])):10.0%}"
        )


if __name__ == "__main__":
    main()
