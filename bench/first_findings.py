"""Whether what is wrong with a draft stands among the first ten findings of its report.

    python bench/first_findings.py [--stories 12] [--speeches 6] [--books 3] [--show] [--smoke]

The drafts are stories by people, speeches, and a novel of 100,000 words, none of which is in the
reference. Each gets four paragraphs: a sentence of the reference, a paraphrase of one
(`tests/golden/paraphrases.jsonl`, the held-out half), a rare word that occurs twice (an echo), and
a repeated sentence. Two letters of a word are transposed, and two of a name that occurs five times
or more; in the novel, a character gets another name halfway through the mentions. The novel is used
`--books` times, with faults elsewhere each time. A fault counts if a finding of its kind is at its
place among the first ten of `fabula report --match near --with echo`; `--show` prints these.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import corpora
from changed_names import NEW
from fabula.core.types import Document
from fabula.linguistic.cast import cast_of
from fabula.reference.search import Reference
from fabula.review.findings import Finding, findings_of
from fabula.review.job import ReportSettings
from fabula.review.reviewer import Reviewer
from fabula.text import read_documents
from fabula.text.reading import Reading
from report import book_of

NOVELS = "reference/gutenberg_novels.jsonl.gz"
PARAPHRASES = Path(__file__).parents[1] / "tests" / "golden" / "paraphrases.jsonl"
TITLE = "Great Expectations"
ECHO = "A {0} coat hung beside the window. Nobody had moved the {0} chair since the morning."
ECHOED = ("gnarled", "speckled", "lopsided", "threadbare", "sallow", "brittle")
AGAIN = "It was long before anybody spoke of that evening again."
KINDS = {
    "passage": ("passage",),
    "paraphrase": ("passage", "near"),
    "echo": ("echo",),
    "sentence": ("sentence",),
    "spelling": ("spelling",),
    "name": ("name", "spelling"),
    "renamed": ("renamed",),
}
"""The kinds of findings that name each kind of fault."""


@dataclass
class Planted:
    """A text with faults; `marks` has the words at the place of each."""

    paragraphs: list[str]
    rng: random.Random
    marks: dict[str, str] = field(default_factory=dict)

    def insert(self, kind: str, paragraph: str) -> None:
        self.paragraphs.insert(self.rng.randrange(1, len(self.paragraphs) + 1), paragraph)
        self.marks[kind] = paragraph

    def change(self, kind: str, old: str, new: str) -> None:
        """Change a word in one of the paragraphs in which it occurs once."""
        word = re.compile(rf"(?<![\w-]){re.escape(old)}(?![\w-])")
        having = [k for k, one in enumerate(self.paragraphs) if len(word.findall(one)) == 1]
        if having:
            k = self.rng.choice(having)
            self.paragraphs[k] = word.sub(new, self.paragraphs[k])
            self.marks[kind] = new

    @property
    def text(self) -> str:
        return "\n\n".join(self.paragraphs)


def main() -> None:
    given = corpora.options(
        __doc__, stories=corpora.sized(12, 1), speeches=corpora.sized(6, 0),
        books=corpora.sized(3, 0), show=(False, "print the findings of each text"),
    )  # fmt: skip
    library = list(read_documents([str(corpora.SHARED / NOVELS)]))
    drafts = {"stories": stories(given.stories), "speeches": speeches(given.speeches)}
    for what, texts in drafts.items():
        if texts:
            measure(what, texts, library, is_book=False, is_shown=given.show)
    if given.books:
        own = [one for one in library if one.meta.get("book") == TITLE]
        others = [one for one in library if one.meta.get("book") != TITLE]
        text, _ = book_of(own)
        measure(TITLE, [text] * given.books, others, is_book=True, is_shown=given.show)


def stories(n: int) -> list[str]:
    rows = read_documents([str(corpora.FAST_DETECT)])
    people = [one.text for one in rows if one.meta.get("label") == "human"]
    return [paragraphed(one) for one in people if corpora.SMOKE or len(one.split()) > 150][:n]


def speeches(n: int) -> list[str]:
    rows = read_documents([str(corpora.SHARED / "reference" / "inaugural_speeches.jsonl.gz")])
    return [paragraphed(one.text) for one in rows][-n:] if n else []


def paragraphed(text: str) -> str:
    """With a paragraph for every four sentences, if it has hardly any."""
    if text.count("\n\n") > 2:
        return text
    sentences = re.split(r"(?<=[.!?]) +", text)
    return "\n\n".join(" ".join(sentences[k : k + 4]) for k in range(0, len(sentences), 4))


def measure(
    what: str, texts: list[str], library: list[Document], *, is_book: bool, is_shown: bool
) -> None:
    """Print how many faults of each kind are among the first ten findings."""
    found, n_planted = Counter[str](), Counter[str]()
    with corpora.scratch() as folder:
        path = folder / "library.ref"
        Reference.build(library, path).close()
        plan = ReportSettings(references=(str(path),), with_=("echo",), match="near")
        with Reviewer(plan) as reviewer:
            for k, text in enumerate(texts):
                draft = planted(text, library, random.Random(k), is_book=is_book)
                review = reviewer.run([Document("draft", draft.text)])
                first = findings_of(review.texts[0])
                if is_shown:
                    show(draft, first)
                for kind in draft.marks:
                    n_planted[kind] += 1
                    ours = (one for one in first if one.kind in KINDS[kind])
                    found[kind] += any(is_at(one, draft, kind) for one in ours)
    print(f"{what}: {len(texts)} drafts, {sum(len(text.split()) for text in texts):,} words")
    for kind in KINDS:
        if n_planted[kind]:
            print(f"  {kind}: {found[kind]} of {n_planted[kind]} among the first ten")


def planted(text: str, reference: list[Document], rng: random.Random, *, is_book: bool) -> Planted:
    draft = Planted(text.split("\n\n"), rng)
    if is_book:
        rename(draft)
    misspell(draft)
    draft.insert("passage", sentence_of(reference, rng))
    if words := paraphrase(reference, rng):
        draft.insert("paraphrase", words)
    draft.insert("echo", ECHO.format(rng.choice([w for w in ECHOED if w not in text])))
    draft.insert("sentence", AGAIN)
    draft.insert("sentence", AGAIN)
    return draft


def rename(draft: Planted) -> None:
    """Change the name of one of the more frequent characters, halfway through the mentions."""
    people = cast_of(Reading(draft.text))[1:10]
    name = draft.rng.choice([one.name.split()[-1] for one in people])
    word = re.compile(rf"\b{re.escape(name)}\b")
    n_left = len(word.findall(draft.text)) // 2

    def changed(match: re.Match[str]) -> str:
        nonlocal n_left
        n_left -= 1
        return match[0] if n_left >= 0 else NEW

    draft.paragraphs = [word.sub(changed, one) for one in draft.paragraphs]
    draft.marks["renamed"] = NEW


def misspell(draft: Planted) -> None:
    """Transpose two letters of a word and of a name, each once."""
    words = Counter(re.findall(r"(?<![\w-])[a-z]{7,}(?![\w-])", draft.text))
    draft.change("spelling", old := draft.rng.choice(sorted(words)), swapped(old))
    names = Counter(re.findall(r"(?<=[a-z,] )[A-Z][a-z]{4,}\b", draft.text))
    often = sorted(one for one, n in names.items() if n >= 5 and one.lower() not in words)
    if often:
        draft.change("name", old := draft.rng.choice(often), swapped(old))


def swapped(word: str) -> str:
    k = next(k for k in range(2, len(word)) if word[k] != word[k + 1])
    return word[:k] + word[k + 1] + word[k] + word[k + 2 :]


def sentence_of(reference: list[Document], rng: random.Random) -> str:
    found: list[str] = []
    while not found:
        text = " ".join(rng.choice(reference).text.split())
        found = re.findall(r"(?<=[a-z]\. )[A-Z][^.!?\"“”_]{90,160}\.", text)
    return rng.choice(found)


def paraphrase(reference: list[Document], rng: random.Random) -> str:
    ids = {one.id for one in reference}
    rows = [json.loads(line) for line in PARAPHRASES.read_text(encoding="utf-8").splitlines()]
    fitting = [r for r in rows if r["split"] == "held-out" and r["document"] in ids]
    return str(rng.choice(fitting)["paraphrase"]) if fitting else ""


def is_at(one: Finding, draft: Planted, kind: str) -> bool:
    """Whether a finding overlaps a fault of this kind."""
    places = re.finditer(re.escape(draft.marks[kind]), draft.text)
    return any(one.start < place.end() and place.start() < one.end for place in places)


def show(draft: Planted, first: list[Finding]) -> None:
    for one in first:
        marked = (kind for kind in draft.marks if is_at(one, draft, kind))
        quote = " ".join(draft.text[one.start : one.end].split())[:70]
        print(f"    {one.kind:10} {next(marked, ''):10} {quote!r} {one.why[:60]}")
    print()


if __name__ == "__main__":
    main()
