"""How long a report takes: one story cold and warm, and many together against one by one.

    python bench/report.py [--stories FILE.json] [--reference BOOKS...] [--n 100] [--smoke]

Cold is a whole process, as a user starts it; warm is the next draft on a desk that is open. As it
is without options, which asks no hosted model but reads the story with the small model that ships,
and without that too. Against the public-domain books of ../shared/data; 100 single runs are
estimated from ten.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import corpora
from fabula.jobs.report import ReportSettings
from fabula.jobs.reviewer import Reviewer
from fabula.reference import Reference
from fabula.text import read_documents
from fabula.types import Document, Part

DATA = corpora.SHARED
N_SINGLE = corpora.sized(5, 1)
WAYS: dict[str, tuple[Part, ...]] = {"as it is": (), "without fluency": ("fluency",)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stories", type=Path, default=DATA / "ttcw" / "ttcw_short_stories.json")
    parser.add_argument("--reference", type=Path, default=DATA / "reference")
    parser.add_argument("--n", type=int, default=corpora.sized(100, 2))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        books = folder / "books.ref"
        Reference.build(read_documents([str(given.reference)]), books).close()
        texts = stories(given.stories, given.n)
        longest = min(texts, key=lambda text: abs(len(text.split()) - 2000))
        print(f"a story of {len(longest.split()):,} words")
        for what, left_out in WAYS.items():
            cold = [single(folder, books, longest, left_out) for _ in range(N_SINGLE)]
            report(f"{what}: cold, a whole process", cold)
            report(f"{what}: warm, on the desk", on_the_desk(books, longest, left_out))
        left_out = WAYS["without fluency"]
        firsts = texts[: 2 * N_SINGLE]
        alone = statistics.mean(single(folder, books, text, left_out) for text in firsts)
        path = folder / "all.jsonl"
        rows = [{"id": f"{k}", "text": text} for k, text in enumerate(texts)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        together = run(folder, books, path, left_out)
        print(f"{len(texts)} stories of {sum(len(t.split()) for t in texts):,} words without "
              f"fluency: together {together:.1f} s, one by one {len(texts) * alone:.1f} s, "
              f"{len(texts) * alone / together:.1f} times")  # fmt: skip


def report(what: str, seconds: list[float]) -> None:
    print(f"  {what}: median {statistics.median(seconds):.2f} s ({min(seconds):.2f} to "
          f"{max(seconds):.2f})", flush=True)  # fmt: skip


def stories(path: Path, n: int) -> list[str]:
    """The stories that are there, as often as it takes, each a little another."""
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    whole = [row["content"] for row in rows if len(row["content"].split()) > 100]
    return [f"{whole[k % len(whole)]}\n\nPart {k}." for k in range(n)]


def single(folder: Path, books: Path, text: str, left_out: tuple[Part, ...]) -> float:
    path = folder / "one.txt"
    path.write_text(text, encoding="utf-8")
    return run(folder, books, path, left_out)


def run(folder: Path, books: Path, path: Path, left_out: tuple[Part, ...]) -> float:
    command = [
        str(Path(sys.executable).with_name("fabula")), "report", str(path),
        "--reference", str(books), "--out", str(folder / "page.html"),
        *(word for part in left_out for word in ("--without", part)),
    ]  # fmt: skip
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - begin


def on_the_desk(books: Path, text: str, left_out: tuple[Part, ...]) -> list[float]:
    plan = ReportSettings(references=(str(books),), without=left_out)
    took = []
    with Reviewer(plan) as reviewer:
        for k in range(N_SINGLE + 1):
            begin = time.perf_counter()
            reviewer.run([Document("d", f"{text}\n\nVersion {k}.")])
            took.append(time.perf_counter() - begin)
    return took[1:]


if __name__ == "__main__":
    main()
