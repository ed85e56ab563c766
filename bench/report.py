"""How long a report takes: one story cold and warm, and many together against one by one.

    python bench/report.py [--stories FILE.json] [--reference BOOKS...] [--n 100] [--runs 5]
                           [--smoke]
    python bench/report.py --book [--title "Great Expectations"] [--runs 3] [--smoke]

Cold is a whole process, as a user starts it for a text that was never read; again is the same for
the same text; warm is the next draft on a desk that is open, with a sentence more at its end, in
the middle or at the beginning. As it is without options, and with fluency, for which the small
model that ships reads the story. Seconds by the clock, and in brackets those of processors, which
other work disturbs less. Against the public-domain books of ../shared/data; single runs of all are
estimated from a few. Targets, of processor seconds: `fabula --help` 0.15, a cold report 4.

`--book` measures one novel of those, up to 100,000 words, against the others: a whole process for
the first time, for the same text and for the next draft, with a sentence more in the middle; the
same on a desk; and the memory and the page of the first, whose target is 45 processor seconds.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import corpora
from fabula.core.cached_results import CachedResults
from fabula.core.types import Document
from fabula.reference.search import Reference
from fabula.review.job import ReportSettings
from fabula.review.reviewer import Reviewer
from fabula.text import read_documents

DATA = corpora.SHARED
WAYS: dict[str, tuple[str, ...]] = {"as it is": (), "with fluency": ("fluency",)}
BOOK_WORDS = 100_000
CHANGES = {"the end": 1.0, "the middle": 0.5, "the beginning": 0.0}


def main() -> None:
    given = corpora.options(
        __doc__, stories=DATA / "ttcw" / "ttcw_short_stories.json", reference=DATA / "reference",
        n=corpora.sized(100, 2), runs=(int, "of each kind; 5, or 3 of a book"),
        book=(False, "measure a book"), title=("Great Expectations", "of the book"),
    )  # fmt: skip
    given.runs = given.runs or corpora.sized(3 if given.book else 5, 1)
    with corpora.scratch() as folder:
        os.environ["FABULA_CACHE"] = str(folder / "cache")
        if given.book:
            measure_book(folder, given.title, given.runs)
            return
        books = folder / "books.ref"
        Reference.build(read_documents([str(given.reference)]), books).close()
        texts = stories(given.stories, given.n)
        longest = min(texts, key=lambda text: abs(len(text.split()) - 2000))
        took = [timed(lambda: call("--help")).processors for _ in range(given.runs)]
        shown = statistics.median(took)
        print(f"fabula --help: {shown:.2f} processor s {corpora.beside(shown, 0.15)}")
        print(f"a story of {len(longest.split()):,} words")
        for what, added in list(WAYS.items())[: corpora.sized(len(WAYS), 1)]:
            cold, again = [], []
            for _ in range(given.runs):
                forget()
                cold.append(single(folder, books, longest, added))
                again.append(single(folder, books, longest, added))
            report(f"{what}: cold, a whole process", cold, None if added else 4)
            report(f"{what}: again, a whole process", again)
            forget()
            for where, took in on_the_desk(books, longest, added, given.runs).items():
                report(f"{what}: warm, on the desk, more at {where}", took)
        added = WAYS["as it is"]
        firsts = texts[: corpora.sized(2 * given.runs, 1)]
        alone = statistics.mean(single(folder, books, text, added).clock for text in firsts)
        path = folder / "all.jsonl"
        rows = [{"id": f"{k}", "text": text} for k, text in enumerate(texts)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        together = run(folder, books, path, added).clock
        print(f"{len(texts)} stories of {sum(len(t.split()) for t in texts):,} words: "
              f"together {together:.1f} s, one by one {len(texts) * alone:.1f} s, "
              f"{len(texts) * alone / together:.1f} times")  # fmt: skip


class Seconds(NamedTuple):
    """How long something took: by the clock, and on all processors together."""

    clock: float
    processors: float


def timed(work: Callable[[], object]) -> Seconds:
    def processors() -> float:
        # Of this process and of those that it waited for.
        return sum(os.times()[:4])

    before, begin = processors(), time.perf_counter()
    work()
    return Seconds(time.perf_counter() - begin, processors() - before)


def forget() -> None:
    """Remove what was computed of earlier texts; that the reference is whole stays known."""
    CachedResults().path.unlink(missing_ok=True)


def measure_book(folder: Path, title: str, n_runs: int) -> None:
    """How long reports of a book and of its next draft take, in a new process and on a desk."""
    novels = list(read_documents([str(DATA / "reference" / "gutenberg_novels.jsonl.gz")]))
    own = novels[:3] if corpora.SMOKE else [n for n in novels if n.meta.get("book") == title]
    books = folder / "books.ref"
    reference = Reference.build([one for one in novels if one not in own], books)
    reference.close()
    draft, n_chapters = book_of(own)
    print(f"{title}: {len(draft.split()):,} words in {n_chapters} chapters, against "
          f"{reference.n_words:,} words")  # fmt: skip
    added = WAYS["as it is"]
    took: dict[str, list[Seconds]] = {"the first time": [], "again": [], "the next draft": []}
    # That the reference is whole is known from an earlier report.
    single(folder, books, draft[:1000], added)
    for k in range(n_runs):
        forget()
        texts = (draft, draft, with_more(draft, 0.5, k))
        for what, text in zip(took, texts, strict=True):
            took[what].append(single(folder, books, text, added))
    for what, seconds in took.items():
        report(f"{what}, a whole process", seconds, 45 if what == "the first time" else None)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    page = (folder / "page.html").stat().st_size / 1e6
    later = statistics.median(one.clock for one in took["the next draft"])
    print(f"  the next draft, seconds {corpora.beside(later, 5)}")
    print(f"  memory {peak:.2f} GB {corpora.beside(peak, 1.5)}")
    print(f"  page {page:.2f} MB {corpora.beside(page, 3)}")
    on_desk = on_the_desk(books, draft, added, n_runs)
    for where, seconds in on_desk.items():
        report(f"the next draft on the desk, more at {where}", seconds)


def book_of(rows: list[Document]) -> tuple[str, int]:
    """Chapters under their headings, until there are enough words; and how many."""
    chapters: list[str] = []
    n_words = 0
    for row in rows:
        if n_words < BOOK_WORDS:
            chapters.append(f"{row.meta.get('section', row.title)}\n\n{row.text}")
            n_words += len(row.text.split())
    return "\n\n".join(chapters), len(chapters)


def with_more(text: str, share: float, k: int) -> str:
    """A text with a paragraph more, after this share of its paragraphs."""
    paragraphs = text.split("\n\n")
    n = round(share * len(paragraphs))
    more = f"It was the {k + 1}th version, and she said so."
    return "\n\n".join([*paragraphs[:n], more, *paragraphs[n:]])


def report(what: str, took: list[Seconds], target_s: float | None = None) -> None:
    clock = [one.clock for one in took]
    processors = statistics.median(one.processors for one in took)
    wanted = f" {corpora.beside(processors, target_s)}" if target_s else ""
    print(f"  {what}: median {statistics.median(clock):.2f} s ({min(clock):.2f} to "
          f"{max(clock):.2f}) [{processors:.2f} s]{wanted}", flush=True)  # fmt: skip


def stories(path: Path, n: int) -> list[str]:
    """The stories that are there, as often as it takes, each a little another."""
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    whole = [row["content"] for row in rows if len(row["content"].split()) > 100]
    return [f"{whole[k % len(whole)]}\n\nPart {k}." for k in range(n)]


def single(folder: Path, books: Path, text: str, added: tuple[str, ...]) -> Seconds:
    path = folder / "one.txt"
    path.write_text(text, encoding="utf-8")
    return run(folder, books, path, added)


def run(folder: Path, books: Path, path: Path, added: tuple[str, ...]) -> Seconds:
    arguments = [
        "report", str(path), "--reference", str(books), "--out", str(folder / "page.html"),
        *(word for part in added for word in ("--with", part)),
    ]  # fmt: skip
    return timed(lambda: call(*arguments))


def call(*arguments: str) -> None:
    subprocess.run([corpora.FABULA, *arguments], check=True, capture_output=True)


def on_the_desk(
    books: Path, text: str, added: tuple[str, ...], n_runs: int
) -> dict[str, list[Seconds]]:
    """Drafts of a text that was read before, by where a paragraph was added."""
    plan = ReportSettings(references=(str(books),), with_=added)
    took: dict[str, list[Seconds]] = {where: [] for where in CHANGES}
    with Reviewer(plan) as reviewer:
        reviewer.run([Document("d", text)])
        for k in range(n_runs):
            for where, share in CHANGES.items():
                draft = Document("d", with_more(text, share, k))
                took[where].append(timed(partial(reviewer.run, [draft])))
    return took


if __name__ == "__main__":
    main()
