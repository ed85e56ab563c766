"""Requests to infini-gram's HTTP server, and validation of its replies.

The protocol is that of api/api_server.py and docs/source/api.rst in liujch1998/infini-gram: a POST
with `index`, `query_type` and `query` or `query_ids`; the reply has `error`, with any status, or
the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any, ClassVar

from fabula.errors import InputError, LookupFailed
from fabula.reference.http_client import LookupServer, Refused

Reply = dict[str, Any]
_NAMES_URL = "https://infini-gram.readthedocs.io/en/latest/api.html"
_MAX_QUERY_CHARS = 1000
"""MAX_QUERY_CHARS in api_server.py: the maximum length of a query."""
_SHOWN_TOKENS = 1000
_SHOWN_CHARS = 1000
"""On either side of the place: `max_ctx_len`; 1,000 is the server's own default."""

# The server parses " AND " and " OR " in a query as operators and counts something else.
_BEFORE_OPERATOR = re.compile(r" (?=(?:AND|OR) )")
_TOO_LONG = re.compile(r"limit your input", re.IGNORECASE)
_NO_SUCH_INDEX = re.compile(
    r"(invalid|unknown|unsupported|no such)\W+(index|corpus)"
    r"|\b(index|corpus)\b.{0,80}(not found|not exist|is unknown|is invalid)",
    re.IGNORECASE | re.DOTALL,
)


class TooLong(Exception):  # noqa: N818 (the server's limit, not an error)
    """The server does not accept this n-gram, usually because it is too long."""


class InfiniGramServer:
    """One index behind a server.

    Every method raises `LookupFailed` if no valid answer was received in all attempts, or `stop`
    was set; `TooLong`; and `InputError` if the server does not know the index.
    """

    def __init__(self, server: LookupServer, index: str) -> None:
        self._server = server
        self._index = index
        self._tokens: dict[str, tuple[list[int], list[Any] | None]] = {}
        self.n_answered = 0

    def close(self) -> None:
        self._server.close()

    def count(self, query: str, stop: Event) -> int:
        """How often `query` occurs."""
        reply = self._ask_about(query, {"query_type": "count"}, _check_count, stop)
        # For an empty query the server counts every token of the corpus.
        return 0 if reply.get("token_ids") == [] else int(reply["count"])

    def documents(self, query: str, limit: int, stop: Event) -> Iterator[tuple[int, str]]:
        """Distinct documents that contain `query`, from the first `limit` of its places.

        Each is its number and the text around the place, as far as the server shows it.
        """
        places = self._ask_about(query, {"query_type": "find"}, _check_places, stop)
        ranks = ((s, k) for s, ends in enumerate(places["segment_by_shard"]) for k in range(*ends))
        seen: set[tuple[int, int]] = set()
        for (shard, rank), _ in zip(ranks, range(limit), strict=False):
            request = {"query_type": "get_doc_by_rank", "s": shard, "rank": rank, **self._shown}
            reply = self._ask_about(query, request, self._check_document, stop)
            if (shard, reply["doc_ix"]) not in seen:
                seen.add((shard, reply["doc_ix"]))
                yield reply["doc_ix"], self._text_in(reply)

    _shown: ClassVar[Reply] = {"max_disp_len": _SHOWN_TOKENS}
    """How much of a document to request."""

    @staticmethod
    def _text_in(reply: Reply) -> str:
        """The text of a document. Raises `ValueError`, `KeyError`, `TypeError` if it is none."""
        spans = reply["spans"]
        if not isinstance(spans, list) or not all(isinstance(span, list) for span in spans):
            raise TypeError
        joined = ""
        for part in [part for part, *_ in spans]:
            # Each was decoded separately, and some tokenizers drop a space at the beginning.
            joined += f" {part}" if joined[-1:].isalnum() and part[:1].isalnum() else part
        return joined

    def _check_document(self, reply: Reply) -> None:
        try:
            self._text_in(reply)
            is_document = _is_count(reply.get("doc_ix"))
        except (AttributeError, LookupError, TypeError, ValueError):
            is_document = False
        if not is_document:
            raise ValueError("no document in the reply")

    def _ask_about(
        self, query: str, request: Reply, check: Callable[[Reply], None], stop: Event
    ) -> Reply:
        """The answer to a query about an n-gram.

        The meaning of its token ids is compared with the earlier one: an index may be replaced
        during a run.
        """
        if len(query) > _MAX_QUERY_CHARS:
            raise TooLong(f"it has more than {_MAX_QUERY_CHARS} characters")
        asked_as, expected = self._asked_as(query, stop)
        reply = self._ask({**request, **asked_as}, check, stop)
        if expected is not None and reply.get("tokens", expected) != expected:
            self._tokens.clear()
            raise LookupFailed(f"{self._server.url}: the index was replaced during the search")
        return reply

    def _asked_as(self, query: str, stop: Event) -> tuple[Reply, list[Any] | None]:
        """The n-gram in a request: as text, or as token ids if some of its words are operators.

        Also the text of the ids, if the server returns it. No token spans a space, so the ids of
        the pieces are those of the whole. A server that returns no token ids has no operators.
        """
        pieces = _BEFORE_OPERATOR.split(query)
        if len(pieces) == 1:
            return {"query": query}, None
        ids: list[int] = []
        tokens: list[Any] | None = []
        for piece in pieces:
            known = self._tokens.get(piece)
            if known is None:
                reply = self._ask({"query_type": "count", "query": piece}, _check_count, stop)
                if not isinstance(reply.get("token_ids"), list):
                    return {"query": query}, None
                told = reply.get("tokens")
                known = reply["token_ids"], told if isinstance(told, list) else None
                self._tokens[piece] = known
            ids += known[0]
            tokens = tokens + known[1] if tokens is not None and known[1] is not None else None
        return {"query_ids": ids}, tokens

    def _ask(self, request: Reply, check: Callable[[Reply], None], stop: Event) -> Reply:
        def read(content: bytes) -> Reply:
            reply = json.loads(content)
            if not isinstance(reply, dict):
                raise ValueError("the reply is not a JSON object")  # noqa: TRY004
            if "error" in reply:
                words = str(reply["error"])
                if _TOO_LONG.search(words) or _NO_SUCH_INDEX.search(words):
                    raise Refused(words)
                raise ValueError(f"error: {words}")
            check(reply)
            return reply

        try:
            reply = self._server.ask({"index": self._index, **request}, read, stop)
        except Refused as error:
            # A server that has answered knows the index, but rejects this query.
            knows_it = self.n_answered and not _NO_SUCH_INDEX.search(str(error))
            if knows_it or _TOO_LONG.search(str(error)):
                raise TooLong(str(error)) from error
            raise InputError(
                f"{self._server.url} does not serve the index {self._index!r} ({error}); the "
                f"index names of infini-gram's server are listed at {_NAMES_URL}"
            ) from error
        self.n_answered += 1
        return reply


class InfiniGramMiniServer(InfiniGramServer):
    """An index behind infini-gram mini's server, which indexes characters, not tokens.

    Its protocol is that of docs/source/api.rst in xuhaoxh/infini-gram-mini: it has no operators,
    and shows a document as text around the place.
    """

    _shown: ClassVar[Reply] = {"max_ctx_len": _SHOWN_CHARS}

    def _asked_as(self, query: str, stop: Event) -> tuple[Reply, list[Any] | None]:
        return {"query": query}, None

    @staticmethod
    def _text_in(reply: Reply) -> str:
        if not isinstance(text := reply["text"], str):
            raise TypeError("not a text")
        return text


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _check_count(reply: Reply) -> None:
    if not _is_count(reply.get("count")):
        raise ValueError(f"no count in the reply {str(reply)[:80]}")
    if reply.get("approx"):
        # Only operators make a count approximate, and then 0 may hide some.
        raise ValueError("an approximate count")


def _check_places(reply: Reply) -> None:
    segments = reply.get("segment_by_shard")
    if not isinstance(segments, list) or not all(
        isinstance(ends, list) and len(ends) == 2 and all(map(_is_count, ends)) for ends in segments
    ):
        raise ValueError("no segment_by_shard in the reply")
