"""A job on a Ray cluster that loses a node every few minutes, for an hour.

    python bench/lost_nodes.py [--minutes 60] [--every 5] [--nodes 2] [--texts 60] [--smoke]

The nodes are processes of this machine. `fabula originality` reads from its standard input the same
texts again and again, each time with other ids, until the time is over.
Meanwhile a node is killed every few minutes, as it works, and another one takes its place soon
after. In the end each row must be, but for its id, the row that one process writes for that text.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import islice
from pathlib import Path
from typing import Any

import corpora
from fabula.text import read_documents

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.ray_nodes import ray_nodes

_N_BOOKS, _BOOK_WORDS = 12, 20_000
_PAUSE_S = 15
"""Until another node takes the place of one that was lost."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--every", type=float, default=5, help="minutes until a node is lost")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--texts", type=int, default=corpora.sized(60, 4))
    given = parser.parse_args()
    seconds, every = given.minutes * 60, given.every * 60
    if corpora.SMOKE:
        seconds, every, given.nodes = 4.0, 3600.0, 1
    # Or whatever else this machine does comes first, and a node is lost before it has begun.
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 (as Ray spells it)
    with tempfile.TemporaryDirectory(prefix="fabula-nodes-") as name:
        folder = Path(name)
        books = [" ".join(document.text.split()[:_BOOK_WORDS]) for document in islice(
            read_documents([corpora.SHARED / "reference"]), _N_BOOKS)]  # fmt: skip
        rows = texts(books, given.texts)
        library = folder / "books.jsonl"
        library.write_bytes(b"".join(line({"id": f"b{k}", "text": t}) for k, t in enumerate(books)))
        fabula("reference", "build", str(library), "--out", f"{folder}/r", "--shard-tokens",
               "40000", "--jobs", "1")  # fmt: skip
        once = folder / "once.jsonl"
        once.write_bytes(b"".join(line(row) for row in rows))
        fabula(*job(folder / "here.jsonl", str(once), folder), "--jobs", "1")
        expected = [json.loads(one) for one in (folder / "here.jsonl").read_bytes().splitlines()]
        there = folder / "there.jsonl"
        with ray_nodes(1, given.nodes) as nodes, ThreadPoolExecutor(1) as one:
            feeding = one.submit(fed, rows, there, nodes.address, seconds, folder)
            lost = losing(nodes, every, feeding)
            n_fed = feeding.result()
        n_same = compared(there, expected, n_fed)
    print(f"{n_fed:,} texts in {seconds / 60:.1f} minutes, {len(lost)} nodes lost: "
          f"{n_same:,} rows as of one process")  # fmt: skip
    if n_same != n_fed or (not lost and not corpora.SMOKE):
        sys.exit("rows differ, or no node was lost")


def texts(books: list[str], n: int) -> list[dict[str, str]]:
    """Stretches of books, so that much is found, with words of their own in between."""
    words = [book.split() for book in books]
    rows = []
    for k in range(n):
        own = words[k % len(words)]
        pieces = [own[(97 * k + 400 * j) % max(1, len(own) - 60) :][:40] for j in range(8)]
        said = [word for j, piece in enumerate(pieces) for word in (*piece, f"own{k}n{j}")]
        rows.append({"id": f"{k}", "text": " ".join(said)})
    return rows


def line(row: dict[str, str]) -> bytes:
    return (json.dumps(row) + "\n").encode()


def fabula(*words: str) -> None:
    subprocess.run([corpora.FABULA, *words], check=True, stdout=subprocess.DEVNULL)


def job(out: Path, source: str, folder: Path) -> list[str]:
    words = f"originality {source} --format jsonl --reference {folder}/r --spread 3 --out {out}"
    return words.split()


def fed(rows: list[dict[str, str]], out: Path, address: str, seconds: float, folder: Path) -> int:
    """Write texts to the job until the time is over; returns how many."""
    words = [*job(out, "-", folder), "--engine", "ray", "--address", address]
    until = time.monotonic() + seconds
    n = 0
    with subprocess.Popen(
        [corpora.FABULA, *words], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        # The pipe holds some texts: the job waits for more only where all are done.
        while time.monotonic() < until or n < len(rows):
            process.stdin.write(line(rows[n % len(rows)] | {"id": f"{n}"}))
            n += 1
        process.stdin.close()
        if (code := process.wait()) != 0:
            raise RuntimeError(f"the job ended with code {code}")
    return n


def losing(nodes: Any, every: float, feeding: Future[int]) -> list[float]:
    """Kill the oldest node each time and add another, until the job ends; when each was lost.

    In the main thread, where alone Ray can begin a node.
    """
    lost: list[float] = []
    begin = time.monotonic()
    while not wait([feeding], every).done:
        nodes.remove_node(next(iter(nodes.worker_nodes)), allow_graceful=False)
        lost.append(time.monotonic() - begin)
        print(f"a node was lost after {lost[-1]:.0f} s", flush=True)
        if not wait([feeding], min(_PAUSE_S, every / 2)).done:
            nodes.add_node(num_cpus=1)
    return lost


def compared(out: Path, expected: list[dict[str, Any]], n_fed: int) -> int:
    """How many rows are those of one process, but for the id; the first other one is printed."""
    n_same = 0
    found = out.read_bytes().splitlines()
    for k, data in enumerate(found):
        row = expected[k % len(expected)] | {"id": f"{k}"}
        if json.dumps(row) == json.dumps(json.loads(data)):
            n_same += 1
        elif n_same == k:
            print(f"row {k}:\n  {data.decode()[:400]}\n  {json.dumps(row)[:400]}")
    if len(found) != n_fed:
        print(f"{len(found):,} rows of {n_fed:,} texts")
    return n_same


if __name__ == "__main__":
    main()
