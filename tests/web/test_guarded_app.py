"""What every application refuses, whatever its routes; and how it is served and stopped."""

import asyncio
import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.testclient import TestClient

from fabula.web import app as web
from fabula.web.guard import HEADERS, Refuse, Rules, Visitors, form_fields

COOKIE = "who"


class Closed(Exception):  # noqa: N818 (as an application's own)
    pass


def page(_: Request, status: int, text: str) -> Response:
    return HTMLResponse(f"<p>{text}</p>", status)


def as_json(_: Request, status: int, text: str) -> Response:
    return JSONResponse({"error": text}, status)


async def direct(request: Request) -> Response:
    """Reads its body by itself; what it is sent says what happens."""
    sent = await request.body()
    if sent in (b"closed", b"broken"):
        raise Closed("closed today") if sent == b"closed" else RuntimeError("secret")
    return Response(sent, headers={"X-Frame-Options": "ALLOW", "Cache-Control": "max-age=5"})


def application(refuse: Refuse = page, description: str = "", **rules: Any) -> FastAPI:
    """One with a route for everything that may happen."""
    app = web.guarded_app(
        title="t",
        rules=Rules(**{"admit": Visitors(COOKIE), "max_body_bytes": 100} | rules),
        refuse=refuse,
        texts={413: "too much", 500: "it broke"},
        statuses={Closed: 409},
        description=description,
    )

    app.post("/direct")(direct)

    @app.get("/")
    def home(number: int = 0) -> str:
        return f"number {number}"

    @app.post("/body")
    def body(sent: dict[str, str]) -> int:
        return len(sent)

    @app.post("/form")
    async def form(request: Request) -> dict[str, str]:
        return await form_fields(request, "token")

    @app.get("/{what}")
    def fail(what: str) -> None:
        raise {"closed": Closed("closed today"), "moved": HTTPException(303, "/")}.get(
            what, RuntimeError("secret")
        )

    return app


def pieces() -> Iterator[bytes]:
    for _ in range(20):
        yield b'{"k": "vvvv"}'


FORM = {"content-type": "application/x-www-form-urlencoded"}
ASKED: list[tuple[Callable[[TestClient], httpx.Response], int, str]] = [
    (lambda client: client.get("/nowhere/at/all"), 404, "Not Found"),
    (lambda client: client.post("/"), 405, "Method Not Allowed"),
    (lambda client: client.get("/closed"), 409, "closed today"),
    (lambda client: client.get("/broken"), 500, "it broke"),
    (lambda client: client.get("/?number=secret"), 422, "number"),
    (lambda client: client.post("/form", data={"csrf": "guess"}), 403, "Forbidden"),
    (lambda client: client.post("/body", content=b"x" * 101), 413, "too much"),
    (lambda client: client.post("/body", content=pieces()), 413, "too much"),
    (lambda client: client.post("/form", content=pieces(), headers=FORM), 413, "too much"),
    (lambda client: client.post("/body", headers={"content-length": "9" * 5000}), 413, "too much"),
    (lambda client: client.post("/direct", content=b"closed"), 409, "closed today"),
    (lambda client: client.post("/direct", content=b"broken"), 500, "it broke"),
    (lambda client: client.post("/direct", content=pieces()), 413, "too much"),
    (lambda client: client.put("/direct"), 405, "Method Not Allowed"),
]


@pytest.mark.parametrize("refuse", [page, as_json])
@pytest.mark.parametrize(("ask", "status", "text"), ASKED)
def test_every_refusal_and_failure_has_the_form_of_the_application(
    refuse: Refuse, ask: Callable[[TestClient], httpx.Response], status: int, text: str
):
    found = ask(TestClient(application(refuse), raise_server_exceptions=False))
    assert found.status_code == status
    assert text in (found.json()["error"] if refuse is as_json else found.text)
    assert "secret" not in found.text
    assert found.headers["cache-control"] == "no-store"
    assert found.headers.items() >= HEADERS.items()


def test_every_answer_has_the_headers():
    client = TestClient(application(), follow_redirects=False)
    home, moved = client.get("/"), client.get("/moved")
    assert (moved.status_code, moved.headers["location"]) == (303, "/")
    for found in (home, moved):
        assert found.headers.items() >= HEADERS.items()


def test_what_answers_without_a_route_is_behind_the_same_guard():
    client = TestClient(application(admit=Visitors(COOKIE, n_at_once=1, n_per_s=0.001)))
    client.cookies.set(COOKIE, "mine")
    answer = client.post("/direct", content=b"sent")
    assert (answer.status_code, answer.text) == (200, "sent")
    # The headers of the guard, once each; how long to keep an answer is the application's to say.
    assert answer.headers.get_list("x-frame-options") == ["DENY"]
    assert answer.headers["cache-control"] == "max-age=5"
    assert client.post("/direct", content=b"sent").status_code == 429


def test_who_asks_too_often_is_refused_in_the_form_of_the_application():
    # Five at once, and a sixth after a quarter of an hour.
    visitors = Visitors(COOKIE, n_at_once=5, n_per_s=0.001)
    client = TestClient(application(as_json, admit=visitors), cookies={COOKIE: "mine"})
    assert [client.get("/").status_code for _ in range(7)] == [200] * 5 + [429] * 2
    assert "wait a moment" in client.get("/").json()["error"]
    client.cookies.set(COOKIE, "another")
    assert client.get("/").status_code == 200


def test_who_changes_the_cookie_each_time_is_limited_by_the_address():
    visitors = Visitors(COOKIE, n_at_once=1, n_per_s=0.0001)
    client = TestClient(application(as_json, admit=visitors))
    codes = [client.get("/", headers={"cookie": f"{COOKIE}={k}"}).status_code for k in range(22)]
    assert codes == [200] * 20 + [429] * 2
    elsewhere = TestClient(application(as_json, admit=visitors), client=("192.0.2.7", 5))
    assert elsewhere.get("/").status_code == 200


def test_a_name_of_another_machine_leads_in_only_where_it_may():
    for own_names_only, status in ((True, 400), (False, 200)):
        app = application(own_names_only=own_names_only)
        for name in ("localhost", "127.0.0.1:80", "[::1]:80"):
            assert TestClient(app, base_url=f"http://{name}").get("/").status_code == 200
        assert TestClient(app, base_url="http://evil.example").get("/").status_code == status


def test_the_interface_is_described_only_where_it_is_for_programs():
    assert TestClient(application(description="d")).get("/openapi.json").status_code == 200
    hidden = TestClient(application(), raise_server_exceptions=False)
    assert "paths" not in hidden.get("/openapi.json").text


def serve_and_ask(app: FastAPI, ask: Callable[[str], None], **options: Any) -> None:
    """Serve until `ask`, on another thread, is done with the address, and SIGTERM after it."""
    listening = web.listen("127.0.0.1", 0)

    def ask_and_stop() -> None:
        try:
            ask(f"http://127.0.0.1:{listening.getsockname()[1]}")
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=ask_and_stop)
    web.serve(app, listening, thread.start, **options)
    thread.join()


def connect(address: str, sent: bytes = b"") -> socket.socket:
    client = socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), 30)
    client.sendall(sent)
    return client


def is_dropped(client: socket.socket) -> bool:
    """Whether the connection ends, without an answer."""
    with client, contextlib.suppress(ConnectionResetError):
        return client.recv(1000) == b""
    return True


def test_a_server_believes_no_forwarded_address_and_guards_every_protocol():
    """An address that is made up would have a rate of its own, and a WebSocket none."""
    seen: list[str] = []
    upgrade = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13",
               "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="}  # fmt: skip

    def ask(address: str) -> None:
        for headers in ({"x-forwarded-for": "192.0.2.7"}, upgrade):
            assert "server" not in httpx.get(f"{address}/", headers=headers).headers

    serve_and_ask(application(admit=lambda asked: seen.append(asked.client.host)), ask)
    assert seen == ["127.0.0.1"] * 2


def test_a_request_without_end_does_not_hold_up_the_stop(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(web, "_GRACE_S", 0.1)
    app = application(description="d")
    began, ended = threading.Event(), threading.Event()
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    @app.get("/for/ever")
    async def forever() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.set()
            raise

    waiting: list[socket.socket] = []

    def ask(address: str) -> None:
        waiting.append(connect(address, b"GET /for/ever HTTP/1.1\r\nhost: x\r\n\r\n"))
        assert began.wait(30)

    serve_and_ask(app, ask)
    assert b" 200 " not in waiting[0].recv(100)
    waiting[0].close()
    assert ended.is_set()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_a_hangup_that_is_taken_stops_nothing():
    taken = threading.Event()

    def ask(address: str) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        assert taken.wait(30)
        assert httpx.get(f"{address}/").status_code == 200

    serve_and_ask(application(), ask, on_hangup=taken.set)


def test_half_sent_requests_are_dropped_and_whole_ones_are_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(web, "_REQUEST_S", 0.5)
    post = b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    half = [b"", b"GET / HT", post, post + b"content-length: 10\r\n\r\n{"]
    app = application()
    dropped: list[bool] = []

    @app.get("/slow/answer")
    def slow() -> str:
        threading.Event().wait(1.5)
        return "late"

    def ask(address: str) -> None:
        clients = [connect(address, data) for data in half]
        without_length = connect(address, post + b"\r\n")
        # What takes the server long is not the client's fault.
        with httpx.Client(base_url=address) as patient:
            assert patient.get("/slow/answer").json() == "late"
            assert patient.get("/").status_code == 200
        dropped.extend(map(is_dropped, clients))
        with without_length:
            assert without_length.recv(1000).startswith(b"HTTP/1.1 4"), "it is answered"

    serve_and_ask(app, ask)
    assert dropped == [True] * 4
    assert "Traceback" not in caplog.text


def test_what_stands_around_a_body_is_held_to_a_limit():
    """Names, values, trailers and what extends a chunk, each without end."""
    chunked = b"transfer-encoding: chunked\r\n\r\n"
    refused: list[bytes] = []

    def ask(address: str) -> None:
        for before in (b"", b"x: ", chunked + b"0\r\nx: ", chunked + b"1;"):
            with connect(address, b"POST /body HTTP/1.1\r\nhost: x\r\n" + before) as client:
                client.sendall(b"x" * 80_000)
                # Whoever waits for the end lets this time out.
                with contextlib.suppress(ConnectionResetError):
                    while client.recv(1000):
                        pass
            refused.append(before)
        # A body may be as long, and is the application's to refuse.
        assert httpx.post(f"{address}/body", content=b"x" * 80_000).status_code == 413
        assert httpx.get(f"{address}/").status_code == 200

    serve_and_ask(application(), ask)
    assert len(refused) == 4


@pytest.mark.parametrize(("behind", "n_held"), [({}, 3), ({"behind_proxy": "127.0.0.1"}, 9)])
def test_one_address_holds_only_so_many_connections(
    behind: dict[str, str], n_held: int, monkeypatch: pytest.MonkeyPatch
):
    """Who holds them idle keeps nobody else of that address out: the oldest are dropped."""
    monkeypatch.setattr(web, "_N_PER_ADDRESS", 3)
    dropped: list[bool] = []

    def ask(address: str) -> None:
        held = [connect(address) for _ in range(n_held)]
        for _ in range(2):
            assert httpx.get(f"{address}/").status_code == 200
        if not behind:
            dropped.append(is_dropped(held[0]))
        for client in held:
            client.close()

    serve_and_ask(application(), ask, **behind)
    assert dropped == ([] if behind else [True])
