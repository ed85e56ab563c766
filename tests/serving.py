"""A real HTTP server on loopback that speaks OpenAI's protocol and says what a test wants."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tests.http_serving import Handler, on_loopback

Reply = str | tuple[int, dict[str, Any] | bytes]
"""What is said; or a status and a body, of bytes as it stands; or a redirect and its location."""


@dataclass
class Served:
    """Where it listens, and every request body that it got, with its path and headers."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def prompts(self) -> list[str]:
        return [prompt_of(body) for body in self.requests]


def prompt_of(body: dict[str, Any]) -> str:
    """The user's message of a request, its parts joined."""
    content = body["messages"][-1]["content"]
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content)


def asks_what_was_meant(body: dict[str, Any]) -> bool:
    """Whether a judge asks about an answer whose verdict was unclear."""
    return "You have answered this" in prompt_of(body)


@contextmanager
def serving(
    answer: Callable[[dict[str, Any], int], Reply],
    headers: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Served]:
    """`answer(body, n)` gives the text of the n-th reply (from 0), or a status and a body."""
    served = Served()

    class Answering(Handler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:  # noqa: N802
            body = json.loads(self.asked())
            with served.lock:
                number = len(served.requests)
                served.requests.append(body | {"_path": self.path})
            reply = answer(body, number)
            status, payload = (200, completion(reply)) if isinstance(reply, str) else reply
            data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
            told = {"Content-Type": "application/json", **headers}
            if 300 <= status < 400 and isinstance(payload, dict):
                told["Location"] = payload["location"]
            self.reply(status, data, told)

    with on_loopback(Answering) as served.url:
        yield served


def completion(text: str, finish: str = "stop") -> dict[str, Any]:
    said = {"role": "assistant", "content": text}
    return {
        "id": "x", "object": "chat.completion", "created": 0, "model": "served",
        "choices": [{"index": 0, "message": said, "finish_reason": finish}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105},
    }  # fmt: skip
