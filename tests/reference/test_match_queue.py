"""Requests for matches that wait together are answered as each alone."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference_serving import TOKEN, Serving, serving_reference

from fabula.reference import Reference
from fabula.reference.build import remove_documents
from fabula.reference.serving.answers import match_together
from fabula.reference.serving.messages import Limits, MatchAsked
from fabula.reference.serving.served import Served, State
from fabula.types import Document

WORDS = [f"w{k}" for k in range(12)]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three shards, a document removed."""
    path = tmp_path_factory.mktemp("queue") / "r"
    rng = random.Random(1)
    held = [Document(f"d{k}", " ".join(rng.choices(WORDS, k=40))) for k in range(9)]
    Reference.build(held, path, shard_tokens=130)
    remove_documents(path, [4])
    return path


@pytest.fixture(scope="module")
def state(path: Path) -> State:
    return Served([path]).now


@st.composite
def requests(draw: st.DrawFn) -> tuple[list[str], list[int]]:
    """Words, perhaps some twice or none, and a text of them with gaps."""
    words = draw(st.lists(st.sampled_from([*WORDS, "unseen"]), max_size=15))
    return words, draw(st.lists(st.integers(0, len(words)), max_size=60))


@settings(max_examples=60)
@given(st.lists(requests(), min_size=1, max_size=6), st.sets(st.integers(0, 8), max_size=3))
def test_texts_searched_together_have_the_matches_of_each(
    state: State, asked: list[tuple[list[str], list[int]]], exclude: set[int]
) -> None:
    out = sorted(exclude)
    together = match_together(
        state,
        [MatchAsked(state=state.key, words=w, places=p, exclude=out) for w, p in asked],
    )
    expected = [
        state.reference.local.match(w, np.array(p, np.int32), exclude=out).tolist()
        for w, p in asked
    ]
    assert [answer["lengths"] for answer in together] == expected
    assert {answer["state"] for answer in together} == {state.key}


class Held:
    """The first search of a reference waits until it is let go; all are counted."""

    def __init__(self, serving: Serving) -> None:
        self.n_searches = 0
        self.begun, self.go = threading.Event(), threading.Event()
        local = serving.served.now.reference.local
        self._match = local.match
        local.match = self  # type: ignore[assignment, method-assign]

    def __call__(self, words: list[str], places: Any, **more: Any) -> Any:
        self.n_searches += 1
        if self.n_searches == 1:
            self.begun.set()
            self.go.wait(30)
        if "cursed" in words:
            raise OSError("a disk that cannot be read")
        return self._match(words, places, **more)


@contextmanager
def waiting(
    path: Path, bodies: list[dict[str, Any]], n_at_once: int = 1
) -> Iterator[tuple[Held, list[Future[httpx.Response]], httpx.Client]]:
    """A service whose first search does not end, while these requests wait for the next."""
    limits = Limits(n_at_once=n_at_once, n_per_s=0)
    with (
        serving_reference(path, limits=limits) as serving,
        httpx.Client(
            base_url=serving.url,
            headers={"Authorization": f"Bearer {TOKEN}"},
            timeout=60,
            # After an internal error the server closes the connection, which nobody can use again.
            limits=httpx.Limits(max_keepalive_connections=0),
        ) as client,
        ThreadPoolExecutor(len(bodies) + 1) as pool,
    ):
        held, state = Held(serving), serving.served.now.key

        def ask(body: dict[str, Any]) -> Future[httpx.Response]:
            return pool.submit(client.post, "/v1/match", json={"state": state, **body})

        try:
            first = ask({"words": ["w1"], "places": [1]})
            assert held.begun.wait(30)
            asked = [ask(body) for body in bodies]
            until = time.monotonic() + 30
            # Those that are not refused at once, the first, and the one that asks.
            n_waiting = sum(max(body["places"]) <= len(body["words"]) for body in bodies)
            in_flight = f"fabula_requests_in_flight {n_waiting + 2}.0"
            while n_at_once == 1 and in_flight not in client.get("/metrics").text:
                assert time.monotonic() < until
                time.sleep(0.01)
            # Then their bodies have to arrive.
            time.sleep(0.3)
            yield held, asked, client
        finally:
            held.go.set()
        assert first.result().json()["lengths"] == [1]


def texts(n: int) -> list[dict[str, Any]]:
    rng = random.Random(2)
    return [
        {"words": rng.sample(WORDS, 9), "places": [rng.randrange(10) for _ in range(30)],
         "exclude": [[], [1, 2], [7]][k % 3]}
        for k in range(n)
    ]  # fmt: skip


def test_what_waits_is_searched_together_and_an_error_is_told_to_its_own_request(
    path: Path,
) -> None:
    """An unfit request is refused; where one text makes a search fail, the others are answered."""
    bodies = texts(12)
    bodies[4] = {"words": ["w1"], "places": [2]}
    bodies[7] = {"words": ["w1", "cursed"], "places": [1, 2]}
    local = Reference.open(path).local
    with waiting(path, bodies) as (held, asked, client):
        held.go.set()
        replies = [one.result() for one in asked]
        n_searches = held.n_searches - 1
        again = [client.post("/v1/match", content=one.request.read(), headers=one.request.headers)
                 for one in replies]  # fmt: skip
    # Eight if all came in time: one for each list of exclusions, and one for each of the five texts
    # of which one failed. Eleven if each were searched alone.
    assert n_searches < 11
    for k, (body, reply, alone) in enumerate(zip(bodies, replies, again, strict=True)):
        assert reply.status_code == alone.status_code == {4: 422, 7: 500}.get(k, 200)
        assert reply.content == alone.content
        if reply.status_code == 200:
            expected = local.match(
                body["words"], np.array(body["places"], np.int32), exclude=body["exclude"]
            )
            assert reply.json()["lengths"] == expected.tolist()


def test_who_comes_while_a_search_takes_long_is_answered_by_another_thread(path: Path) -> None:
    with waiting(path, texts(3), n_at_once=2) as (held, asked, _):
        # The first search ends only afterwards.
        assert [one.result(30).status_code for one in asked] == [200] * 3
        assert not held.go.is_set()
