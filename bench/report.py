"""How long a report takes: one story cold and warm, and many together against one by one.

    python bench/report.py [--stories FILE.json] [--reference BOOKS...] [--n 100]

Cold is a whole process, as a user starts it; warm is the next draft on a desk that is open. Without
language models, against the public-domain books of ../shared/data; 100 single runs are estimated
from ten, of which five have run the code before.
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

from fabula.reference import Reference
from fabula.review import Reviewer, ReviewPlan
from fabula.text import read_documents
from fabula.types import Document
from fabula.workers import default_jobs

DATA = Path(__file__).parents[2] / "shared" / "data"
N_SINGLE = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stories", type=Path, default=DATA / "ttcw" / "ttcw_short_stories.json")
    parser.add_argument("--reference", type=Path, default=DATA / "reference")
    parser.add_argument("--n", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        books = folder / "books.ref"
        Reference.build(read_documents([str(given.reference)]), books).close()
        texts = stories(given.stories, given.n)
        longest = min(texts, key=lambda text: abs(len(text.split()) - 2000))
        print(f"a story of {len(longest.split()):,} words, without language models")
        cold = [single(folder, books, longest) for _ in range(N_SINGLE)]
        print(f"  cold, a whole process: median {statistics.median(cold):.2f} s "
              f"({min(cold):.2f} to {max(cold):.2f})")  # fmt: skip
        warm = on_the_desk(books, longest)
        print(f"  warm, on the desk: median {statistics.median(warm):.2f} s "
              f"({min(warm):.2f} to {max(warm):.2f})")  # fmt: skip
        alone = statistics.mean(single(folder, books, text) for text in texts[: 2 * N_SINGLE])
        path = folder / "all.jsonl"
        rows = [{"id": f"{k}", "text": text} for k, text in enumerate(texts)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        together = run(folder, books, path)
        print(f"{len(texts)} stories of {sum(len(t.split()) for t in texts):,} words: together "
              f"{together:.1f} s, one by one {len(texts) * alone:.1f} s, "
              f"{len(texts) * alone / together:.1f} times")  # fmt: skip


def stories(path: Path, n: int) -> list[str]:
    """The stories that are there, as often as it takes, each a little another."""
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    whole = [row["content"] for row in rows if len(row["content"].split()) > 100]
    return [f"{whole[k % len(whole)]}\n\nPart {k}." for k in range(n)]


def single(folder: Path, books: Path, text: str) -> float:
    path = folder / "one.txt"
    path.write_text(text, encoding="utf-8")
    return run(folder, books, path)


def run(folder: Path, books: Path, path: Path) -> float:
    command = [
        str(Path(sys.executable).with_name("fabula")), "report", str(path),
        "--reference", str(books),
        "--without", "fluency", "--out", str(folder / "page.html"),
    ]  # fmt: skip
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - begin


def on_the_desk(books: Path, text: str) -> list[float]:
    plan = ReviewPlan(
        references=(str(books),), without=frozenset({"fluency"}), n_jobs=default_jobs()
    )
    took = []
    with Reviewer(plan) as reviewer:
        for k in range(N_SINGLE + 1):
            begin = time.perf_counter()
            reviewer.run([Document("d", f"{text}\n\nVersion {k}.")])
            took.append(time.perf_counter() - begin)
    return took[1:]


if __name__ == "__main__":
    main()
