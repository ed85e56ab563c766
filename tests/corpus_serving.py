"""A local HTTP server that holds small corpora in the layouts of public ones.

Everything lies under the host's name as the first part of a path: `/data.commoncrawl.org/...`.
Below `/huggingface.co/` it also speaks what the client library of Hugging Face's hub asks.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.http_serving import Handler, on_loopback

_HUB = re.compile(r"/huggingface\.co/(?:(api)/)?datasets/([^/]+/[^/]+)(?:/([^?]*))?$")
_REVISION = "0" * 40


@dataclass
class Holdings:
    """What is served, what was asked for, and what is broken."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    """By path without the leading slash."""
    asked: list[str] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    """Paths at which the connection is cut."""

    def localised(self, catalogue: Path, to: Path) -> Path:
        """A catalogue whose addresses lead here."""
        text = catalogue.read_text(encoding="utf-8")
        to.write_text(text.replace("https://", f"{self.url}/").replace("wait_s = 2.0", ""))
        return to

    def bodies(self) -> list[str]:
        """The paths whose content was asked for, each once."""
        return sorted({what.partition(" ")[2] for what in self.asked if what.startswith("GET")})


@contextmanager
def serving_corpora() -> Iterator[Holdings]:
    held = Holdings()

    class Answering(Handler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:  # noqa: N802
            path = unquote(urlsplit(self.path).path)
            held.asked.append(f"{self.command} {path.lstrip('/')}")
            if path.lstrip("/") in held.broken:
                self.close_connection = True
                return
            hub = _HUB.fullmatch(path)
            if hub is not None and hub[1]:
                self.answer(*self.of_hub(hub[2], hub[3] or ""))
            elif hub is not None and (found := re.match(r"resolve/[^/]+/(.*)", hub[3] or "")):
                self.file(f"huggingface.co/datasets/{hub[2]}/resolve/main/{found[1]}")
            else:
                self.file(path.lstrip("/"))

        do_HEAD = do_GET  # noqa: N815 (the name that the base class calls)

        def do_POST(self) -> None:  # noqa: N802
            body = self.asked()
            hub = _HUB.fullmatch(unquote(urlsplit(self.path).path))
            wanted = json.loads(body)["paths"]
            self.answer(200, [one for one in self.tree(hub[2]) if one["path"] in wanted])

        def tree(self, dataset: str) -> list[dict[str, Any]]:
            prefix = f"huggingface.co/datasets/{dataset}/resolve/main/"
            found: dict[str, dict[str, Any]] = {}
            for path, data in held.files.items():
                if path.startswith(prefix):
                    name = path.removeprefix(prefix)
                    for parent in map(str, list(Path(name).parents)[:-1]):
                        found[parent] = {"type": "directory", "path": parent, "oid": "d", "size": 0}
                    found[name] = {"type": "file", "path": name, "oid": "f", "size": len(data)}
            return [found[name] for name in sorted(found)]

        def of_hub(self, dataset: str, rest: str) -> tuple[int, Any]:
            if rest == "" or rest.startswith("revision/"):
                return 200, {"id": dataset, "sha": _REVISION, "siblings": []}
            below = rest.partition("/")[2].partition("/")[2]
            return 200, [
                one for one in self.tree(dataset) if one["path"].startswith(f"{below}/".lstrip("/"))
            ]

        def answer(self, status: int, content: Any) -> None:
            self.reply(status, json.dumps(content).encode(), {"Content-Type": "application/json"})

        def file(self, path: str) -> None:
            data = held.files.get(path)
            if data is None:
                self.reply(404, b"")
                return
            span = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            headers = {"Accept-Ranges": "bytes", "ETag": '"x"', "X-Repo-Commit": _REVISION}
            if span is None:
                self.reply(200, data, headers)
                return
            first, last = int(span[1]), min(int(span[2] or len(data)), len(data) - 1)
            part = data[first : last + 1]
            headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
            self.reply(206, part, headers)

    with on_loopback(Answering) as held.url:
        yield held
