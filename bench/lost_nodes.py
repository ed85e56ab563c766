"""Jobs on a Ray cluster that loses a node every few minutes, for an hour.

    python bench/lost_nodes.py [--minutes 60] [--every 5] [--nodes 2] [--texts 60] [--smoke]

The nodes are processes of this machine. For half of the time `fabula originality` reads from its
standard input the same texts again and again, each time with other ids; then `fabula reference
build` builds the same corpus again and again, a share on each node. Meanwhile a node is killed
every few minutes, as it works, and another one takes its place soon after. In the end each row
must have, but for its id, the bytes that one process writes for that text, and so each corpus.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import islice
from pathlib import Path
from typing import Any

import corpora
from cluster import content
from fabula.core.store import dump_json, read_rows
from fabula.text import read_documents

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.ray_nodes import ray_nodes

_N_BOOKS, _BOOK_WORDS = 12, 20_000
_PAUSE_S = 15
"""Until another node takes the place of one that was lost."""


def main() -> None:
    given = corpora.options(
        __doc__, minutes=60.0, every=(5.0, "minutes until a node is lost"), nodes=2,
        texts=corpora.sized(60, 4),
    )  # fmt: skip
    seconds, every = given.minutes * 60, given.every * 60
    if corpora.SMOKE:
        seconds, every, given.nodes = 4.0, 3600.0, 1
    # Or whatever else this machine does comes first, and a node is lost before it has begun.
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 (as Ray spells it)
    with corpora.scratch() as folder:
        books = [" ".join(document.text.split()[:_BOOK_WORDS]) for document in islice(
            read_documents([corpora.SHARED / "reference"]), _N_BOOKS)]  # fmt: skip
        rows = texts(books, given.texts)
        fabula(*build(folder / "r"), "--jobs", "1")
        once = folder / "once.jsonl"
        once.write_bytes(b"".join(line(row) for row in rows))
        fabula(*job(folder / "here.jsonl", str(once), folder), "--jobs", "1")
        expected = list(read_rows(folder / "here.jsonl"))
        there = folder / "there.jsonl"
        with ray_nodes(1, given.nodes) as nodes, ThreadPoolExecutor(1) as one:
            feeding = one.submit(fed, rows, there, nodes.address, seconds / 2, folder)
            n_lost = losing(nodes, every, feeding)
            n_fed = feeding.result()
            building = one.submit(built, nodes.address, seconds / 2, folder)
            n_lost_building = losing(nodes, every, building)
            n_built, n_right = building.result()
        n_same = compared(there, expected, n_fed)
    print(f"{n_fed:,} texts, {n_lost} nodes lost: {n_same:,} rows with the bytes of one process\n"
          f"{n_built:,} builds, {n_lost_building} nodes lost: {n_right:,} corpora with those bytes"
    )  # fmt: skip
    if (n_same, n_right) != (n_fed, n_built):
        sys.exit("bytes differ")
    if not corpora.SMOKE and not (n_lost and n_lost_building):
        sys.exit("no node was lost")


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


def build(out: Path) -> list[str]:
    size = str(corpora.sized(500_000, 2000))
    source = str(corpora.SHARED / "reference")
    words = f"reference build {source} --out {out} --set running.shard-tokens={size}"
    return words.split()


def job(out: Path, source: str, folder: Path) -> list[str]:
    words = f"originality {source} --reference {folder}/r --spread 3 --out {out}"
    return [*words.split(), "--set", "reading.format=jsonl"]


def fed(rows: list[dict[str, str]], out: Path, address: str, seconds: float, folder: Path) -> int:
    """Write texts to the job until the time is over; returns how many."""
    words = [*job(out, "-", folder), "--engine", "ray", "--set", f"running.address={address}"]
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


def built(address: str, seconds: float, folder: Path) -> tuple[int, int]:
    """Build the corpus until the time is over; how often, and how often with the right bytes."""
    until, n, n_right = time.monotonic() + seconds, 0, 0
    expected = content(folder / "r")
    while time.monotonic() < until:
        out = folder / f"r{n}"
        fabula(*build(out), "--engine", "ray", "--set", f"running.address={address}")
        n, n_right = n + 1, n_right + (content(out) == expected)
        shutil.rmtree(out)
    return n, n_right


def losing(nodes: Any, every: float, working: Future[Any]) -> int:
    """Kill the oldest node each time and add another, until the job ends; returns how many.

    In the main thread, where alone Ray can begin a node.
    """
    n, begin = 0, time.monotonic()
    while not wait([working], every).done:
        nodes.remove_node(next(iter(nodes.worker_nodes)), allow_graceful=False)
        n += 1
        print(f"a node was lost after {time.monotonic() - begin:.0f} s", flush=True)
        if not wait([working], min(_PAUSE_S, every / 2)).done:
            nodes.add_node(num_cpus=1)
    return n


def compared(out: Path, expected: list[dict[str, Any]], n_fed: int) -> int:
    """How many rows are those of one process, but for the id; the first other one is printed."""
    n_same = 0
    found = list(read_rows(out))
    for k, data in enumerate(found):
        row = expected[k % len(expected)] | {"id": str(k)}
        if dump_json(row) == dump_json(data):
            n_same += 1
        elif n_same == k:
            print(f"row {k}:\n  {dump_json(data)[:400]}\n  {dump_json(row)[:400]}")
    if len(found) != n_fed:
        print(f"{len(found):,} rows of {n_fed:,} texts")
    return n_same


if __name__ == "__main__":
    main()
