"""A served reference under load, beside calling the library with the same queries, in one run.

    python bench/serve.py [SECONDS] [--smoke]

The service is that of `fabula reference serve`, without its limits, in a process of its own; the
load comes from this one, on the same machine: each client sends its next request when the answer to
the last is there. Texts of 250 words by people and models, against all books and speeches at hand;
what is counted is texts, also where a request has several, as those of a client that scores a file
do.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np

import corpora
from fabula.models.vectors import open_vectors
from fabula.novelty.near import NearSearch
from fabula.reference.exclude import maximal_spans
from fabula.reference.search import Reference, number_words
from fabula.text import read_documents
from fabula.text.words import load_stop_words

N_CLIENTS = (1, 8, 64)
N_TEXTS, N_WORDS = corpora.sized(400, 32), 250
N_TOGETHER = 16
"""Texts in a request that has several."""
UNLIMITED = """
import sys
from functools import partial
from pathlib import Path
from fabula.reference import client, job
client.Limits = partial(client.Limits, n_per_s=0, n_waiting=256)
job.serve([Path(sys.argv[1])], job.ServeSettings(port=0), announce=partial(print, flush=True))
"""
"""What serves a corpus as the command does, to one client that asks for all at once."""
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
    """The same texts matched, alone and together, their borrowed runs looked up, and near ones."""
    all_words = [
        w for d in read_documents([corpora.HANNA]) for w in reference.settings.words(d.text)
    ]
    texts = [all_words[k : k + N_WORDS] for k in range(0, N_TEXTS * N_WORDS, N_WORDS)]
    together = f"match, {N_TOGETHER} a request"
    made: dict[str, list[Query]] = {"match": [], together: [], "find": [], "near": []}
    local = reference.local
    near = NearSearch(reference, open_vectors(), load_stop_words())
    walking = local
    for n in range(0, N_TEXTS, N_TOGETHER):
        some = texts[n : n + N_TOGETHER]
        made["match"] += (matching(reference, state, [words]) for words in some)
        made[together].append(matching(reference, state, some))
    for words in texts:
        spans = maximal_spans(reference.longest_matches(words), 5)
        grams = [words[first : first + n] for first, n in spans]
        how = {"limit": 3, "max_places": 100_000}
        made["find"].append(
            Query("/v1/find", encoded({"state": state, "grams": grams, **how}),
                  lambda g=grams: local.find(g, limit=3, max_places=100_000))
        )  # fmt: skip
    for words in texts[: N_TEXTS // 10]:
        (walk,) = near._walks(words)
        names = [field.name for field in fields(walk) if field.name != "terms"]
        body = {name: getattr(walk, name).tolist() for name in names}
        body |= {"state": state, "shard": 0, "terms": asdict(walk.terms)}
        made["near"].append(Query("/v1/near", encoded(body), lambda one=walk: walking.walk([one])))
    return made


def matching(reference: Reference, state: str, texts: Sequence[list[str]]) -> Query:
    known, places = number_words(texts)
    body = {"state": state, "words": known, "places": places.tolist()}
    match = partial(reference.local.match, known, places, exclude=())
    return Query("/v1/match", encoded(body), match, len(texts))


def encoded(body: object) -> bytes:
    return json.dumps(body).encode()


@contextmanager
def service(path: Path) -> Iterator[tuple[str, int]]:
    """Its address, and the number of its process."""
    process = subprocess.Popen(
        [sys.executable, "-c", UNLIMITED, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        told = (re.search(r"--reference (\S+)", line) for line in process.stdout)
        yield next(m[1] for m in told if m), process.pid
    finally:
        process.terminate()
        process.wait()


def request(query: Query) -> bytes:
    """The bytes that ask it."""
    head = f"POST {query.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(query.body)}\r\n\r\n".encode() + query.body


class Client(asyncio.Protocol):
    """A connection on which a request follows the answer to the last, until a time.

    It reads no more of an answer than its length: the client is not what is measured.
    """

    def __init__(self, turns: Iterator[bytes], took: list[float], until: float) -> None:
        self._turns, self._took, self._until = turns, took, until
        self._held, self._length, self._begin = b"", 0, 0.0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._held += data
        if not self._length and (head := self._held.find(b"\r\n\r\n") + 4) > 3:
            told = self._held[:head].lower()
            length = re.search(rb"content-length: (\d+)", told)
            if not told.startswith(b"http/1.1 200") or length is None:
                self._end(RuntimeError(self._held.decode()))
                return
            self._length = head + int(length[1])
        if self._length and len(self._held) >= self._length:
            end = time.perf_counter()
            self._took.append(end - self._begin)
            if end > self._until:
                self._end(None)
            else:
                self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        self._end(error or RuntimeError("the service closed a connection"))

    def _ask(self) -> None:
        self._held, self._length, self._begin = b"", 0, time.perf_counter()
        self._transport.write(next(self._turns))

    def _end(self, error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None) if error is None else self.ended.set_exception(error)
            self._transport.close()


async def load(url: str, asked: Sequence[Query], n_clients: int, seconds: float) -> list[float]:
    """Seconds that each request took."""
    where, loop = urlsplit(url), asyncio.get_running_loop()
    turns = itertools.cycle([request(query) for query in asked])
    took: list[float] = []
    until = time.perf_counter() + seconds
    clients = [
        loop.create_connection(lambda: Client(turns, took, until), where.hostname, where.port)
        for _ in range(n_clients)
    ]
    await asyncio.gather(*(client.ended for _, client in await asyncio.gather(*clients)))
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


def processor_s(pid: int) -> float:
    """Processor time of a process; not a number where the system has no such file."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def line(
    kind: str, how: str, took: list[float], n_texts: float, reach: float = 0, spent_s: float = 0
) -> str:
    """`n_texts` a second, beside the `reach` of a call; the server's processor time a text."""
    middle, late = np.percentile(took, [50, 99]) * 1e3
    share = f"{n_texts / reach:.2f}" if reach else ""
    spent = f"{spent_s * 1e6:.0f} us" if spent_s else ""
    return (
        f"| {kind} | {how} | {n_texts:,.0f} | {share} | {middle:.2f} ms | {late:.2f} ms | {spent} |"
    )


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else corpora.sized(50, 1) / 10
    sources = [str(corpora.SHARED / "reference"),
               str(corpora.CHILDREN)]  # fmt: skip
    with corpora.scratch() as name:
        path = name / "books.ref"
        reference = Reference.build(read_documents(sources), path, n_jobs=2)
        with service(path) as (url, pid):
            state = json.load(urlopen(f"{url}/v1/about"))["state"]
            made = queries(reference, state)
            print(f"{reference.size}; {N_TEXTS} texts of {N_WORDS} words; {seconds:g} s a line")
            print("| asked | by | texts a second | of a call | median | 99th percentile "
                  "| server's processor time a text |")  # fmt: skip
            print("| --- | --- | --- | --- | --- | --- | --- |")
            # Pauses of this process are not the service's.
            gc.collect()
            gc.freeze()
            found = {kind: measured(url, pid, kind, asked, seconds) for kind, asked in made.items()}
        best = max(share for kind in found if kind.startswith("match") for share, _ in found[kind])
        late_ms = found["match"][-1][1]
        print(f"matches, at best {best:.2f} of a call {corpora.beside(best, SHARE, at_least=True)}")
        print(f"a match, {N_CLIENTS[-1]} clients, 99th percentile {late_ms:.0f} ms "
              f"{corpora.beside(late_ms, LATE_MS)}")  # fmt: skip


def measured(
    url: str, pid: int, kind: str, asked: Sequence[Query], seconds: float
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
        before_s, begin = processor_s(pid), time.perf_counter()
        took = asyncio.run(load(url, asked, n_clients, seconds))
        # The last answers come after the time.
        n = asked[0].n_texts / (time.perf_counter() - begin)
        spent_s = (processor_s(pid) - before_s) / (len(took) * asked[0].n_texts)
        told = line(kind, f"{n_clients} at a time", took, len(took) * n, reach, spent_s)
        print(told, flush=True)
        found.append((len(took) * n / reach, float(np.percentile(took, 99)) * 1e3))
    return found


if __name__ == "__main__":
    main()
