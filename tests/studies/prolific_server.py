"""A server on loopback that answers as Prolific's API does: submissions in pages, and faults.

The form of its answers is that of docs.prolific.com/api-reference/submissions/get-submissions.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.http_serving import Handler, on_loopback

__all__ = ["TOKEN", "MockProlific", "mock_prolific"]

TOKEN = "a token of ours"


@dataclass
class MockProlific:
    """What the platform knows, and how it misbehaves."""

    base: str = ""
    study: str = ""
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Submissions by id."""
    keys: list[dict[str, Any]] = field(default_factory=list)
    fault_rate: float = 0.0
    faults: list[int] = field(default_factory=list)
    """Statuses to answer next, before any that are drawn; 0 is none."""
    answered: Counter[int] = field(default_factory=Counter)
    rng: random.Random = field(default_factory=lambda: random.Random(0))

    def add(self, session: str, worker: str, status: str = "ACTIVE") -> None:
        self.rows[session] = {
            "id": session, "participant_id": worker, "status": status, "study_code": None,
            "started_at": "2026-11-23T03:00:00Z", "is_complete": False,
        }  # fmt: skip

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, Any], dict[str, str]]:
        code = 0
        if self.faults:
            code = self.faults.pop(0)
        elif self.rng.random() < self.fault_rate:
            code = self.rng.choice((429, 500, 503))
        if code:
            return code, {"error": {"status": code}}, {"retry-after": "1"} if code == 429 else {}
        parts = urlsplit(path)
        if parts.path == "/.well-known/study/jwks.json":
            return 200, {"keys": self.keys}, {}
        if authorization != f"Token {TOKEN}":
            return 401, {"error": {"status": 401}}, {}
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path != "/api/v1/submissions/" or query.get("study") != self.study:
            return 404, {"error": {"status": 404}}, {}
        page, size = int(query["page"]), min(20, int(query["page_size"]))
        rows = list(self.rows.values())
        is_last = page * size >= len(rows)
        link = None if is_last else f"{self.base}/api/v1/submissions/?page={page + 1}"
        content = {
            "results": rows[(page - 1) * size : page * size],
            "_links": {"next": {"href": link, "title": "Next"}},
            "meta": {"count": len(rows)},
        }
        return 200, content, {}


@contextmanager
def mock_prolific(study: str) -> Iterator[MockProlific]:
    mock = MockProlific(study=study)

    class Answering(Handler):
        def do_GET(self) -> None:  # noqa: N802
            code, content, headers = mock.answer(self.path, self.headers.get("authorization", ""))
            mock.answered[code] += 1
            self.reply(code, json.dumps(content).encode(), headers)

    with on_loopback(Answering) as mock.base:
        yield mock
