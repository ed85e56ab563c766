"""A real HTTP server on loopback that speaks infini-gram's protocol, well or badly.

In front of the real engine: the replies are those of api/api_server.py in liujch1998/infini-gram,
its limits and its operators included.
"""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from typing import Any

from tests.http_serving import Handler, on_loopback

Body = dict[str, Any]

NONSENSE = {
    "html": (200, {}, b"<html><h1>Service restarting</h1></html>"), "list": (200, {}, b"[0]"),
    "no count": (200, {}, b'{"latency": 0.1}'), "negative": (200, {}, b'{"count": -1}'),
    "text": (200, {}, b'{"count": "0"}'), "null": (200, {}, b'{"count": null}'),
    "truth": (200, {}, b'{"count": false}'),
    "huge": (200, {}, b'{"count": 1000000000000000000000}'),
    "fraction": (200, {}, b'{"count": 0.0}'),
    "approximate": (200, {}, b'{"count": 0, "approx": true}'),
    "error": (200, {}, b'{"error": "[Flask] Web request timed out. Please try again later."}'),
    "error and count": (200, {}, b'{"error": "overloaded", "count": 0}'),
    "bad bytes": (200, {}, b'\xff\xfe{"count": 0}'),
    "500": (500, {}, b'{"error": "[Flask] Internal server error: 0", "count": 0}'),
    "503": (503, {}, b""), "429": (429, {"Retry-After": "0"}, b'{"message": "Too Many Requests"}'),
    "403": (403, {}, b'{"message": "Forbidden"}'),
}  # fmt: skip
"""Replies that are no count, though some look like the count 0."""


@dataclass
class Served:
    """Where it listens, every request that it got, and how many it had in hand at most."""

    url: str = ""
    requests: list[Body] = field(default_factory=list)
    n_in_flight: int = 0
    peak: int = 0
    attempts: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)


Faults = Callable[[str, int], str | None]
"""`faults(what, attempt)`: how the server fails at that attempt (from 0) of that request: a name
in NONSENSE, `drop`, `slow`, `cut`; or None."""


def some_faults(seed: int, kinds: list[str], share: float, most: int = 4) -> Faults:
    """A share of all attempts fails, never more than the first `most` of a request.

    Whatever order requests come in, each meets the same faults.
    """

    def faults(what: str, attempt: int) -> str | None:
        chance = random.Random(f"{seed} {attempt} {what}")
        return chance.choice(kinds) if attempt < most and chance.random() < share else None

    return faults


class Answers:
    """The engine's answers, as the published server gives them."""

    def __init__(self, engine: Any, tokenizer: Any, index: str) -> None:
        self.engine, self.tokenizer, self.index = engine, tokenizer, index

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text).ids
        return ids

    def __call__(self, body: Body) -> tuple[int, Body]:
        body = dict(body)
        kind, index = body.pop("query_type"), body.pop("index")
        if index != self.index:
            return 400, {"error": f"[Flask] Invalid index: {index}"}
        if ("query" in body) == ("query_ids" in body):
            return 400, {"error": "[Flask] Exactly one of query and query_ids must be present!"}
        ids = body.pop("query_ids", None)
        if ids is None:
            query = body.pop("query")
            if len(query) > 1000:
                return 200, {"error": "Please limit your input to <= 1000 characters!"}
            if " AND " in query or " OR " in query:
                clauses = [clause.split(" OR ") for clause in query.split(" AND ")]
                cnf = [[self.encode(term) for term in clause] for clause in clauses]
                return 200, {**self.engine.count_cnf(cnf=cnf), "token_ids": cnf}
            ids = self.encode(query)
        if len(ids) > 500:
            return 200, {"error": "Please limit your input to <= 500 tokens!"}
        if kind == "get_doc_by_rank":
            reply = self.engine.get_doc_by_rank(**body)
            reply["spans"] = self.spans(reply["token_ids"], ids)
        else:
            reply = getattr(self.engine, kind)(input_ids=ids)
        return 200, {**reply, "latency": 0.1, "token_ids": ids}

    def spans(self, shown: list[int], needle: list[int]) -> list[tuple[str, str | None]]:
        """The document, cut at each place of the needle, and each part decoded by itself."""
        parts: list[tuple[list[int], str | None]] = []
        at = 0
        for k in range(len(shown) - len(needle) + 1):
            if k >= at and shown[k : k + len(needle)] == needle:
                parts += [(shown[at:k], None), (needle, "0")]
                at = k + len(needle)
        parts.append((shown[at:], None))
        return [(self.tokenizer.decode(ids), label) for ids, label in parts if ids]


@contextmanager
def serving_infinigram(
    answers: Callable[[Body], tuple[int, Body]],
    faults: Faults = lambda what, attempt: None,
    *,
    slow_s: float = 0.3,
    each_s: float = 0.0,
) -> Iterator[Served]:
    """`slow_s`: how long a slow reply takes; `each_s`: what every reply takes."""
    served = Served()

    class Answering(Handler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_POST(self) -> None:  # noqa: N802
            body = json.loads(self.asked())
            what = json.dumps(body, sort_keys=True)
            with served.lock:
                served.requests.append(body)
                attempt = served.attempts[what]
                served.attempts[what] += 1
                served.n_in_flight += 1
                served.peak = max(served.peak, served.n_in_flight)
            try:
                fault = faults(what, attempt)
                time.sleep(slow_s if fault == "slow" else each_s)
                if fault == "drop":
                    self.close_connection = True
                    return
                status, headers, data = NONSENSE.get(fault or "", (0, {}, b""))
                if not status:
                    status, reply = answers(body)
                    data = json.dumps(reply).encode()
            finally:
                with served.lock:
                    served.n_in_flight -= 1
            if fault == "cut":
                headers = {**headers, "Content-Length": str(len(data))}
                data = data[: len(data) // 2]
                self.close_connection = True
            self.reply(status, data, headers)

    class Server(ThreadingHTTPServer):
        request_queue_size = 64

        def handle_error(self, *_: object) -> None:
            """A client that no longer waits is no error here."""

    with on_loopback(Answering, Server) as url:
        served.url = f"{url}/"
        yield served
