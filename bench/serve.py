"""A served reference under load, beside calling the library with the same queries, in one run.

    python bench/serve.py [SECONDS] [--smoke]

The service is `fabula reference serve` in a process of its own; the load comes from this one, on
the same machine: each client sends its next request when the answer to the last is there. Texts of
250 words by people and models, against all books and speeches at hand; what is counted is texts,
also where a request has several, as those of a client that scores a file do.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np

import corpora
from fabula.reference import Reference
from fabula.reference.exclude import maximal_spans
from fabula.reference.matching import number_words
from fabula.text import read_documents

N_CLIENTS = (1, 8, 64)
N_TEXTS, N_WORDS = corpora.sized(400, 32), 250
N_TOGETHER = 16
"""Texts in a request that has several."""
SHARE, LATE_MS = 1 / 3, 50
"""Targets: of a call's texts a second, at best; the 99th percentile of a text, at 64 clients."""


@dataclass(frozen=True)
class Query:
    """One question, over HTTP and as a call."""

    path: str
    body: bytes
    call: Callable[[], object]
    n_texts: int = 1


def queries(reference: Reference, state: str) -> dict[str, list[Query]]:
    """The same texts matched as words, sent as plain text, and their borrowed runs looked up."""
    source = corpora.SHARED / "human_vs_machine" / "hanna_writingprompts.jsonl"
    all_words = [w for d in read_documents([str(source)]) for w in reference.settings.words(d.text)]
    texts = [all_words[k : k + N_WORDS] for k in range(0, N_TEXTS * N_WORDS, N_WORDS)]
    together = f"match, {N_TOGETHER} a request"
    made: dict[str, list[Query]] = {"match": [], together: [], "batch": [], "find": []}
    local = reference.local
    for n in range(0, N_TEXTS, N_TOGETHER):
        some = texts[n : n + N_TOGETHER]
        made["match"] += (matching(reference, state, [words]) for words in some)
        made[together].append(matching(reference, state, some))
    for words in texts:
        text = " ".join(words)
        made["batch"].append(
            Query("/v1/batch", encoded({"texts": [text]}), lambda t=text: matched(reference, t))
        )
        spans = maximal_spans(reference.longest_matches(words), 5)
        grams = [words[first : first + n] for first, n in spans]
        how = {"limit": 3, "max_places": 100_000}
        made["find"].append(
            Query("/v1/find", encoded({"state": state, "grams": grams, **how}),
                  lambda g=grams: local.find(g, limit=3, max_places=100_000))
        )  # fmt: skip
    return made


def matching(reference: Reference, state: str, texts: Sequence[list[str]]) -> Query:
    known, places = number_words(texts)
    body = {"state": state, "words": known, "places": places.tolist()}
    match = partial(reference.local.match, known, places)
    return Query("/v1/match", encoded(body), match, len(texts))


def matched(reference: Reference, text: str) -> object:
    return reference.longest_matches(reference.locate(text).words)


def encoded(body: object) -> bytes:
    return json.dumps(body).encode()


@contextmanager
def service(path: Path) -> Iterator[str]:
    process = subprocess.Popen(
        [corpora.FABULA, "reference", "serve", str(path), "--port", "0",
         "--rate", "0", "--waiting", "256"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        yield next(m[1] for line in process.stdout if (m := re.search(r"--reference (\S+)", line)))
    finally:
        process.terminate()
        process.wait()


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, query: Query) -> bytes:
    """One request on an open connection; the body of its answer."""
    head = f"POST {query.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(query.body)}\r\n\r\n".encode() + query.body)
    told = (await reader.readuntil(b"\r\n\r\n")).lower()
    if not told.startswith(b"http/1.1 200"):
        raise RuntimeError(told.decode())
    length = re.search(rb"content-length: (\d+)", told)
    assert length
    return await reader.readexactly(int(length[1]))


async def load(url: str, asked: Sequence[Query], n_clients: int, seconds: float) -> list[float]:
    """Seconds that each request took."""
    where = urlsplit(url)
    turns = itertools.cycle(asked)
    took: list[float] = []
    until = time.perf_counter() + seconds

    async def client() -> None:
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        begin = time.perf_counter()
        while True:
            await ask(reader, writer, next(turns))
            end = time.perf_counter()
            took.append(end - begin)
            if end > until:
                break
            begin = end
        writer.close()

    await asyncio.gather(*(client() for _ in range(n_clients)))
    return took


def call_directly(asked: Sequence[Query], seconds: float) -> list[float]:
    took = []
    until = time.perf_counter() + seconds
    for query in itertools.cycle(asked):
        begin = time.perf_counter()
        query.call()
        took.append(time.perf_counter() - begin)
        if time.perf_counter() > until:
            return took
    return took


def line(kind: str, how: str, took: list[float], n_texts: float, reach: float = 0) -> str:
    """`n_texts` a second, beside the `reach` of a call."""
    middle, late = np.percentile(took, [50, 99]) * 1e3
    share = f"{n_texts / reach:.2f}" if reach else ""
    return f"| {kind} | {how} | {n_texts:,.0f} | {share} | {middle:.2f} ms | {late:.2f} ms |"


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else corpora.sized(50, 1) / 10
    sources = [str(corpora.SHARED / "reference"),
               str(corpora.SHARED / "cbt" / "children_books.jsonl.gz")]  # fmt: skip
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        path = Path(name) / "books.ref"
        reference = Reference.build(read_documents(sources), path, n_jobs=2)
        with service(path) as url:
            state = json.load(urlopen(f"{url}/v1/about"))["state"]
            made = queries(reference, state)
            print(f"{reference.size}; {N_TEXTS} texts of {N_WORDS} words; {seconds:g} s a line")
            print("| asked | by | texts a second | of a call | median | 99th percentile |")
            print("| --- | --- | --- | --- | --- | --- |")
            found = {kind: measured(url, kind, asked, seconds) for kind, asked in made.items()}
        best = max(share for kind in found if kind.startswith("match") for share, _ in found[kind])
        late_ms = found["match"][-1][1]
        print(f"matches, at best {best:.2f} of a call {corpora.beside(best, SHARE, at_least=True)}")
        print(f"a match, {N_CLIENTS[-1]} clients, 99th percentile {late_ms:.0f} ms "
              f"{corpora.beside(late_ms, LATE_MS)}")  # fmt: skip


def measured(
    url: str, kind: str, asked: Sequence[Query], seconds: float
) -> list[tuple[float, float]]:
    """For each number of clients: texts a second as a share of a call's, and late ones, in ms."""
    n = asked[0].n_texts / seconds
    call_directly(asked, min(0.5, seconds))
    took = call_directly(asked, seconds)
    reach = len(took) * n
    print(line(kind, "a call", took, reach), flush=True)
    asyncio.run(load(url, asked, 8, min(0.5, seconds)))
    found = []
    for n_clients in N_CLIENTS:
        took = asyncio.run(load(url, asked, n_clients, seconds))
        told = line(kind, f"{n_clients} at a time", took, len(took) * n, reach)
        print(told, flush=True)
        found.append((len(took) * n / reach, float(np.percentile(took, 99)) * 1e3))
    return found


if __name__ == "__main__":
    main()
