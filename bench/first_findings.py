"""Whether what is wrong with a draft stands among the first ten findings of its report.

    python bench/first_findings.py [--stories 12] [--essays 6] [--books 3] [--show] [--smoke]

Into stories by people, speeches and novels of up to 100,000 words, which are not in the reference,
is set, each in a paragraph of its own: a sentence of a book of the reference, a paraphrase of one
(`tests/golden/paraphrases.jsonl`, the half on which nothing was chosen), a word that comes again
(an echo), and a sentence that comes again. A word of seven letters or more is misspelt; a name of
five or more that comes five times is once spelt with two of its letters swapped; and in a novel one
of its people has another name from the middle of the mentions on. Every text is planted once, a
novel `--books` times, each time in other places. Counted is what stands among the first ten
findings of `fabula report --match near` at its place; `--show` prints them.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import corpora
from changed_names import novels
from fabula.jobs.report import ReportSettings
from fabula.jobs.reviewer import Reviewer
from fabula.measures.book import pipelines
from fabula.measures.cast import cast_of
from fabula.reference import Reference
from fabula.review.findings import Finding, findings_of
from fabula.text import read_documents
from fabula.types import Document

NOVELS = "reference/gutenberg_novels.jsonl.gz"
PARAPHRASES = Path(__file__).parents[1] / "tests" / "golden" / "paraphrases.jsonl"
BOOK_WORDS = 100_000
ECHO = "A {0} stood beside the window. Nobody had moved the {0} since the morning."
ECHOED = ("lantern", "trellis", "ledger", "basin", "harness", "kettle")
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
    """A text with faults, and the words that stand where each is."""

    paragraphs: list[str]
    rng: random.Random
    marks: dict[str, str] = field(default_factory=dict)

    def insert(self, kind: str, paragraph: str) -> None:
        self.paragraphs.insert(self.rng.randrange(1, len(self.paragraphs) + 1), paragraph)
        self.marks[kind] = paragraph

    def change(self, kind: str, old: str, new: str) -> None:
        """Write a word in another way where it stands alone in a paragraph, once."""
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stories", type=int, default=corpora.sized(12, 1))
    parser.add_argument("--essays", type=int, default=corpora.sized(6, 0))
    parser.add_argument("--books", type=int, default=corpora.sized(3, 0))
    parser.add_argument("--show", action="store_true", help="print the findings of each text")
    given = parser.parse_args()
    all_novels = list(read_documents([str(corpora.SHARED / NOVELS)]))
    with tempfile.TemporaryDirectory() as name:
        measure(given, "stories", [(one, all_novels) for one in stories(given.stories)], name)
        if corpora.SMOKE:
            return
        measure(given, "speeches", [(one, all_novels) for one in essays(given.essays)], name)
        title, book = "Great Expectations", dict(novels(str(corpora.SHARED / NOVELS)))
        text = "".join(re.split(r"(\s+)", book[title])[: 2 * BOOK_WORDS])
        others = [one for one in all_novels if one.meta.get("book") != title]
        measure(given, f"a novel ({title})", [(text, others)] * given.books, name)


def stories(n: int) -> list[str]:
    rows = read_documents([str(corpora.SHARED / "human_vs_machine" / "fastdetect_writing.jsonl")])
    people = [one.text for one in rows if one.meta.get("label") == "human"]
    return [paragraphed(one) for one in people if corpora.SMOKE or len(one.split()) > 150][:n]


def essays(n: int) -> list[str]:
    rows = read_documents([str(corpora.SHARED / "reference" / "inaugural_speeches.jsonl.gz")])
    return [paragraphed(one.text) for one in rows][-n:] if n else []


def paragraphed(text: str) -> str:
    """With a paragraph for every four sentences, where there is only one."""
    if text.count("\n\n") > 2:
        return text
    sentences = re.split(r"(?<=[.!?]) +", text)
    return "\n\n".join(" ".join(sentences[k : k + 4]) for k in range(0, len(sentences), 4))


def measure(
    given: argparse.Namespace, what: str, drafts: list[tuple[str, list[Document]]], name: str
) -> None:
    """Print how much of each kind stands among the first ten."""
    if not drafts:
        return
    reference = drafts[0][1]
    path = Path(name) / what.split()[-1].strip("()")
    Reference.build(reference, path).close()
    found, n_planted = Counter[str](), Counter[str]()
    plan = ReportSettings(references=(str(path),), without=("fluency",), match="near")
    with Reviewer(plan) as reviewer:
        for k, (text, _) in enumerate(drafts):
            draft = planted(text, reference, random.Random(k), is_book=what.startswith("a novel"))
            review = reviewer.run([Document("draft", draft.text)])
            first = findings_of(review.texts[0], review)
            if given.show:
                show(draft, first)
            for kind, mark in draft.marks.items():
                n_planted[kind] += 1
                found[kind] += any(one.kind in KINDS[kind] and stands(one, mark, draft.text)
                                   for one in first)  # fmt: skip
    print(f"{what}: {len(drafts)} drafts, {sum(len(t.split()) for t, _ in drafts):,} words")
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
    """One of the ten most frequent people, from the middle of the mentions on."""
    people = cast_of(draft.text, pipelines()[1])[1:10]
    name = draft.rng.choice([one.name.split()[-1] for one in people])
    word = re.compile(rf"\b{re.escape(name)}\b")
    n_left = len(word.findall(draft.text)) // 2

    def changed(match: re.Match[str]) -> str:
        nonlocal n_left
        n_left -= 1
        return match[0] if n_left >= 0 else "Zebulon"

    draft.paragraphs = [word.sub(changed, one) for one in draft.paragraphs]
    draft.marks["renamed"] = "Zebulon"


def misspell(draft: Planted) -> None:
    """A word and a name, each once, with two letters in the middle swapped."""
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


def stands(one: Finding, mark: str, text: str) -> bool:
    """Whether a finding lies where the words of a fault are."""
    places: Iterator[re.Match[str]] = re.finditer(re.escape(mark), text)
    return any(one.start < place.end() and place.start() < one.end for place in places)


def show(draft: Planted, first: list[Finding]) -> None:
    for one in first:
        marked = (kind for kind, mark in draft.marks.items() if stands(one, mark, draft.text))
        quote = " ".join(draft.text[one.start : one.end].split())[:70]
        print(f"    {one.kind:10} {next(marked, ''):10} {quote!r} {one.why[:60]}")
    print()


if __name__ == "__main__":
    main()
