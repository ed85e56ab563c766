"""Who comes in, how much each may ask for, and what is told to whoever asks for more."""

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError
from starlette.requests import HTTPConnection
from tests.http_serving import Handler, on_loopback
from tests.reference_serving import TOKEN, Serving, serving_reference

from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.reference import service
from fabula.reference.client import Limits, LookupServer
from fabula.reference.parts import WalkTerms
from fabula.reference.search import Reference
from fabula.reference.service import Gate, read_tokens
from fabula.web.guard import HEADERS, is_loopback

TINY = Limits(max_body_bytes=2048, max_words=20, max_documents=2, n_per_s=0, n_at_once=1)
FEW = {"MAX_GRAMS": 3, "MAX_PLACES": 10, "MAX_NAMED": 6, "MAX_EXCLUDED": 2}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("limits") / "sea"
    Reference.build([Document(f"d{k}", f"the sea was calm {k}") for k in range(5)], path)
    return path


@pytest.fixture(scope="module")
def tiny(path: Path) -> Iterator[Serving]:
    with serving_reference(path, limits=TINY) as serving, pytest.MonkeyPatch.context() as smaller:
        for name, value in FEW.items():
            smaller.setattr(service, name, value)
        yield serving


@pytest.fixture
def client(tiny: Serving) -> Iterator[httpx.Client]:
    with client_of(tiny) as client:
        yield client


def client_of(serving: Serving, token: str = TOKEN) -> httpx.Client:
    return httpx.Client(base_url=serving.url, headers={"Authorization": f"Bearer {token}"})


def asked(serving: Serving, **more: Any) -> dict[str, Any]:
    return {"state": serving.served.now.key, **more}


NEAR: dict[str, Any] = {
    "shard": 0, "units": [0], "is_content": [True], "starts": [0, 1], "n_anchors": [1], "ids": [1],
    "rarities": [9], "gains": [9], "functions": [], "exclude": [],
    "terms": dict.fromkeys((field.name for field in fields(WalkTerms)), 5),
}  # fmt: skip
BEYOND: list[tuple[str, dict[str, Any], int, str]] = [
    *(
        ("/v1/match", {"words": ["sea"], "places": [1], **more}, status, said)
        for more, status, said in (
            ({"places": [1] * 21}, 413, "21 words; the limit per request is 20"),
            ({"words": ["sea"] * 21, "places": []}, 413, "words"),
            ({"words": ["x" * 3000]}, 413, "larger than 2,048 bytes"),
            ({"places": [2]}, 422, "beyond the given words"), ({"places": [-1]}, 422, "places.0"),
            ({"exclude": [0, 1, 2]}, 413, "excluded"),
            ({"exclude": [5]}, 422, "beyond the document numbers"),
        )
    ),
    *(
        ("/v1/find", {"grams": [["sea"]], "limit": 0, "max_places": 0, **more}, status, said)
        for more, status, said in (
            ({"grams": [["sea"]] * 4}, 413, "n-grams"), ({"grams": [["sea"] * 21]}, 413, "words"),
            ({"grams": [[]]}, 422, "grams.0"), ({"max_places": 11}, 413, "places of an n-gram"),
            ({"grams": [["sea"]] * 2, "limit": 4, "max_places": 1}, 413, "documents named"),
        )
    ),
    ("/v1/documents", {"numbers": [0, 1, 2]}, 413, "3 documents"),
    ("/v1/documents", {"numbers": [5]}, 404, "no document has the number 5"),
    ("/v1/ids", {"ids": ["a", "b", "c"]}, 413, "3 ids"),
    ("/v1/ids", {"ids": [], "more": 1}, 422, "more"),
    ("/v1/ids", {"ids": [], "state": "none@0"}, 409, "run the command again"),
    ("/v1/words", {"shard": 1}, 404, "no shard has the number 1"),
    *(
        ("/v1/near", NEAR | more, status, said)
        for more, status, said in (
            ({"shard": 1}, 404, "no shard has the number 1"),
            ({"units": [0] * 21}, 413, "21 words"),
            ({"exclude": [5]}, 422, "beyond the document numbers"),
            ({"terms": {}}, 422, "terms.content_cost"), ({"rarities": [2**50]}, 422, "rarities.0"),
            ({"terms": NEAR["terms"] | {"width": 9999}}, 422, "width"),
        )
    ),
    *(
        ("/v1/near", NEAR | {name: value}, 422, f"{name}: a number is out of its range")
        for name, value in (
            ("units", [1]), ("units", []), ("starts", [0]), ("starts", [1, 1]), ("ids", [99]),
            ("ids", [0]), ("n_anchors", [2]), ("n_anchors", []), ("rarities", []),
            ("gains", [2**21]), ("functions", [0]), ("functions", [99]),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("address", "body", "status", "said"), BEYOND, ids=str)
def test_a_request_beyond_a_limit_is_refused_and_told_which(
    tiny: Serving, client: httpx.Client, address: str, body: Any, status: int, said: str
):
    reply = client.post(address, json=asked(tiny) | body)
    assert (reply.status_code, reply.headers["content-type"]) == (status, "application/json")
    assert said in reply.json()["error"]


def test_one_n_gram_may_have_all_of_its_documents(tiny: Serving, client: httpx.Client):
    body = asked(tiny, grams=[["sea"]], limit=100, max_places=10)
    (found,) = client.post("/v1/find", json=body).json()["found"]
    assert found == {
        "count": 5, "n_places": 5, "n_documents": 5, "numbers": [0, 1, 2, 3, 4], "places": [1] * 5,
    }  # fmt: skip
    assert client.get("/v1/about").json()["limits"] == TINY.model_dump()


@pytest.mark.parametrize("length", ["Transfer-Encoding: chunked", "Content-Length: 3000"])
def test_a_body_in_pieces_of_unsaid_length_is_held_to_the_limit(tiny: Serving, length: str):
    host, _, port = tiny.url.removeprefix("http://").partition(":")
    head = (
        f"POST /v1/match HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n{length}\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), 10) as plain:
        plain.sendall(head.encode())
        if "chunked" in length:
            for _ in range(3):
                plain.sendall(b"400\r\n" + b"x" * 1024 + b"\r\n")
        # The end of the body never comes, and need not.
        assert plain.recv(1000).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("body", [b"", b"{", b'{"state": "s"}', b"[" * 100_000, b'"\xff"'])
def test_a_body_that_is_no_such_request_is_refused(client: httpx.Client, body: bytes):
    reply = client.post("/v1/match", content=body, headers={"content-type": "application/json"})
    assert reply.status_code in (413, 422)
    assert reply.json()["error"]


def test_only_json_is_read(tiny: Serving, client: httpx.Client):
    """A page elsewhere can send plain text without asking first, but not JSON."""
    body = json.dumps(asked(tiny, grams=[["sea"]], limit=1, max_places=1))
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        reply = client.post("/v1/find", content=body, headers={"content-type": kind})
        assert (reply.status_code, "application/json" in reply.json()["error"]) == (422, True)


@pytest.mark.parametrize("header", [
    None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x",
    f"Bearer {TOKEN[:-1]}", "Bearer \xff\xfe",
])  # fmt: skip
def test_nothing_is_told_without_the_token(tiny: Serving, header: str | None):
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    with httpx.Client(base_url=tiny.url, headers=headers) as stranger:
        for method, address in (
            ("GET", "/v1/about"), ("GET", "/metrics"), ("GET", "/openapi.json"),
            ("POST", "/v1/match"), ("POST", "/v1/near"), ("GET", "/nowhere"),
        ):  # fmt: skip
            reply = stranger.request(method, address)
            assert (reply.status_code, reply.headers["www-authenticate"]) == (401, "Bearer")
            assert set(reply.json()) == {"error"}
        assert stranger.get("/health").status_code == 200


def test_every_answer_is_a_safe_one(tiny: Serving, client: httpx.Client):
    """A browser takes none of them for a page, and keeps none."""
    for path in ("/v1/about", "/health", "/metrics", "/openapi.json", "/nowhere"):
        for headers in (client.get(path).headers, httpx.get(f"{tiny.url}{path}").headers):
            assert headers.items() >= HEADERS.items(), path
            assert headers["cache-control"] == "no-store"


def test_who_asks_too_often_is_told_to_wait_and_others_are_not(path: Path):
    limits, tokens = Limits(n_per_s=1), ("first", "second")
    with serving_reference(path, limits=limits, tokens=tokens) as serving:
        with client_of(serving, "first") as client:
            replies = [client.get("/v1/about") for _ in range(5)]
        refused = [reply for reply in replies if reply.status_code == 429]
        assert refused
        assert all(reply.headers["retry-after"] == "1" for reply in refused)
        for token, status in (("second", 200), ("third", 401)):
            with client_of(serving, token) as client:
                assert client.get("/v1/about").status_code == status


def test_too_many_exclusions_are_told_with_the_remedy(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("fabula.reference.client.MAX_EXCLUDED", 2)
    with serving_reference(path) as serving:
        served = serving.open()
        assert served.longest_matches(["sea"], exclude=[0, 1]).tolist() == [1]
        for ask in (served.longest_matches, served.attribute):
            with pytest.raises(InputError, match="at most 2 documents, not 3; use the folder"):
                ask(["sea"], exclude=[0, 1, 2])
        # Ids are looked up a few at a time.
        assert served.numbers_of([f"d{k}" for k in range(5)]) == {f"d{k}": [k] for k in range(5)}
        served.close()


def test_beyond_those_that_wait_requests_are_told_to_come_back(path: Path):
    """One thread searches, one request waits, and the third is refused at once."""
    held, n_held = threading.Event(), threading.Semaphore(0)
    with serving_reference(path, limits=Limits(n_at_once=1, n_waiting=1)) as serving:
        local = serving.served.now.reference.local
        plain = local.match

        def slow(*given: Any, **more: Any) -> Any:
            n_held.release()
            held.wait(30)
            return plain(*given, **more)

        local.match = slow  # type: ignore[method-assign]
        body = asked(serving, words=["sea"], places=[1])
        with ThreadPoolExecutor(2) as pool, client_of(serving) as client:
            one = pool.submit(client.post, "/v1/match", json=body, timeout=60)
            assert n_held.acquire(timeout=30)
            two = pool.submit(client.post, "/v1/match", json=body, timeout=60)
            metrics, until = "", time.monotonic() + 30
            while "fabula_requests_in_flight 3.0" not in metrics:  # two, and the one that asks
                assert time.monotonic() < until, metrics
                metrics = client.get("/metrics").text
            refused = client.post("/v1/match", json=body)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert client.get("/health").status_code == 200
            held.set()
            assert [f.result().json()["lengths"] for f in (one, two)] == [[1], [1]]
            assert client.post("/v1/match", json=body).status_code == 200


def test_without_tokens_only_names_of_this_machine_lead_in(path: Path):
    """A page elsewhere whose name is made to lead here would ask under its own name."""
    with serving_reference(path, tokens=()) as serving:
        for name, status in (
            ("evil.example", 400), ("evil.example:80", 400), ("", 400), ("127.0.0.1.example", 400),
            ("localhost", 200), ("localhost:1", 200), ("[::1]:9", 200), ("127.0.0.1", 200),
        ):  # fmt: skip
            reply = httpx.get(f"{serving.url}/v1/about", headers={"Host": name})
            assert reply.status_code == status, name


def test_metrics_count_what_was_asked_and_hold_nothing_of_it(path: Path):
    with serving_reference(path) as serving, client_of(serving) as client:
        body = asked(serving, words=["calm", "secretword"], places=[1, 2, 1])
        for _ in range(2):
            client.post("/v1/match", json=body)
        client.post("/v1/match", json=body | {"places": [9]})
        client.get("/made/up/secretpath")
        page = client.get("/metrics").text
        figures = dict(re.findall(r"(?m)^(\w+(?:\{[^}]*\})?) (\S+)$", page))
    assert figures['fabula_request_seconds_count{endpoint="/v1/match",status="200"}'] == "2.0"
    assert figures['fabula_request_seconds_count{endpoint="/v1/match",status="422"}'] == "1.0"
    assert figures['fabula_request_seconds_count{endpoint="other",status="404"}'] == "1.0"
    assert figures["fabula_words_searched_total"] == "6.0"
    assert "secret" not in page
    assert TOKEN not in page


def test_tokens_are_read_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("FABULA_REFERENCE_TOKEN", raising=False)
    assert read_tokens(None) == []
    file = tmp_path / "tokens"
    file.write_text("one\n\n  two \n", encoding="utf-8")
    assert read_tokens(file) == ["one", "two"]
    monkeypatch.setenv("FABULA_REFERENCE_TOKEN", "three")
    assert read_tokens(file) == ["three", "one", "two"]
    for held, said in (
        (b"\n", "contains no tokens"), (b"a b\n", "line 1"), ("ü".encode(), "line 1"),
        (b"\xff", "cannot be read"),
    ):  # fmt: skip
        file.write_bytes(held)
        with pytest.raises(InputError, match=said) as refused:
            read_tokens(file)
        assert "a b" not in str(refused.value)
    with pytest.raises(InputError, match="cannot be read"):
        read_tokens(tmp_path / "none")


def test_tokens_are_compared_whole():
    def holder(header: str, *tokens: str) -> str | None:
        scope = {"type": "http", "path": "/", "headers": [(b"authorization", header.encode())]}
        return Gate(tokens, Limits()).holder(HTTPConnection(scope))

    assert None is not holder("Bearer one", "one", "two") != holder("bearer two", "one", "two")
    assert holder("Bearer one two", "one", "two") is None
    assert holder("Bearer ") is None


@pytest.mark.parametrize(("host", "expected"), [
    ("127.0.0.1", True), ("127.3.2.1", True), ("::1", True), ("localhost", True),
    ("0.0.0.0", False), ("::", False), ("192.168.1.2", False), ("example.org", False), ("", False),
])  # fmt: skip
def test_loopback_is_what_no_other_machine_reaches(host: str, expected: bool):
    assert is_loopback(host) is expected


def test_a_page_elsewhere_may_read_no_answer(tiny: Serving, client: httpx.Client):
    """A browser shows an answer to another site's script only where headers allow it."""
    asks = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization"}  # fmt: skip
    for reply in (
        client.options("/v1/match", headers=asks), client.get("/v1/about", headers=asks),
        client.post("/v1/match", json=asked(tiny, words=["sea"], places=[1]), headers=asks),
    ):  # fmt: skip
        assert not any(name.startswith("access-control") for name in reply.headers)
        assert reply.headers["cross-origin-resource-policy"] == "same-origin"


def test_where_the_files_lie_is_told_to_who_has_a_token_only(path: Path):
    with serving_reference(path) as serving, client_of(serving) as client:
        serving.served.problem = f"{path}: manifest.json is damaged"
        assert client.get("/health").json()["problem"] == serving.served.problem
        told = httpx.get(f"{serving.url}/health")
        assert "see the service's log" in told.json()["problem"]
        assert str(path.parent) not in told.text
        everything = "".join(client.get(one).text for one in ("/v1/about", "/metrics"))
        assert str(path.parent) not in everything


@pytest.mark.parametrize("status", [302, 307])
def test_nothing_is_sent_where_a_service_redirects_to(status: int):
    """Neither the words nor the token, not even a request that shows who asks."""
    seen: list[str] = []

    class Redirecting(Handler):
        def do_POST(self) -> None:  # noqa: N802
            seen.append(self.headers["host"])
            self.asked()
            port = self.server.server_address[1]
            self.reply(status, headers={"location": f"http://localhost:{port}/elsewhere"})

    with on_loopback(Redirecting) as url:
        asking = LookupServer(
            f"{url}/", n_parallel=1, max_retries=0, timeout_s=10, backoff_s=0.01,
            headers={"Authorization": f"Bearer {TOKEN}"},
        )  # fmt: skip
        with pytest.raises(InputError, match="redirects to http://localhost:"):
            asking.ask({"query": "the lamp"}, bytes, threading.Event())
        asking.close()
    assert seen == [url.removeprefix("http://")]


def test_who_guesses_tokens_is_slowed_and_who_has_one_is_not():
    gate = Gate(["right"], Limits())

    def ask(token: str, path: str = "/") -> Any:
        headers = [(b"authorization", f"Bearer {token}".encode())]
        scope = {"type": "http", "path": path, "headers": headers, "client": ("192.0.2.7", 5)}
        return gate(HTTPConnection(scope))

    refusals = [ask(f"guess-{k}")[0] for k in range(400)]
    assert refusals[:200] == [401] * 200
    assert refusals[-1] == 429
    assert ask("right") is None
    # Behind a proxy, what watches over the service has the address of whoever guesses.
    assert ask("", "/health") is None
    assert [ask("", "/health") for _ in range(400)][-1] == (429, "too many requests")
    assert ask("right") is None


def test_the_first_fault_of_a_list_ends_it(tiny: Serving):
    """Each of 4 million would cost a kilobyte."""
    read = service.Answering(tiny.served, TINY, lambda _: None).reader("match")
    with pytest.raises(ValidationError) as raised:
        read.validate_json(json.dumps({"state": "s", "words": [1] * 1000, "places": []}))
    assert raised.value.error_count() == 1
