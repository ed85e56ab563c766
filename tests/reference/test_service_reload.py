"""A corpus that changes while it is served: nobody gets an answer of a mixture."""

import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.reference_serving import TOKEN, Serving, serving_reference

from fabula.core.errors import CorpusError
from fabula.core.types import Document
from fabula.reference.backend import LocatedText
from fabula.reference.build import add_documents, remove_documents
from fabula.reference.search import Reference
from fabula.text import TextSettings

SEA = ["the", "sea", "was", "calm", "and", "grey"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "sea"
    held = ["the sea was calm", "calm and grey", "was calm and grey"]
    Reference.build([Document(f"d{k}", text) for k, text in enumerate(held)], path)
    return path


def health(serving: Serving) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    return httpx.get(f"{serving.url}/health", headers=headers).json()


def add(path: Path, text: str) -> None:
    add_documents([Document(text, text)], path, n_jobs=1)


def test_a_changed_corpus_is_served_and_who_began_before_is_told_to_start_again(path: Path):
    with serving_reference(path) as serving:
        before = serving.open()
        assert before.longest_matches(SEA).tolist() == [4, 3, 4, 3, 2, 1]
        add(path, "the sea was calm and grey")
        remove_documents(path, [2])
        assert serving.served.reload()
        after = serving.open()
        assert after.longest_matches(SEA).tolist() == [6, 5, 4, 3, 2, 1]
        assert after.count(["was"]) == 2
        assert before.fingerprint != after.fingerprint
        text = LocatedText("sea", TextSettings().locate("sea"))
        for ask, given in (
            (before.longest_matches, ["sea"]), (before.match_texts, [text]),
            (before.attribute, ["sea"]), (before.document, 0), (before.numbers_of, ["d0"]),
        ):  # fmt: skip
            with pytest.raises(CorpusError, match=r"changed during .* run the command again"):
                ask(given)
        before.close()
        after.close()


def test_a_removal_is_another_state_and_its_undoing_by_other_means_too(path: Path):
    """The fingerprint says which documents there are; the state says how they are numbered too."""
    with serving_reference(path) as serving:
        keys = [serving.served.now.key]
        for change in (lambda: add(path, "calm and grey"), lambda: remove_documents(path, [3])):
            change()
            assert serving.served.reload()
            keys.append(serving.served.now.key)
        assert len(set(keys)) == 3
        assert keys[0].partition("@")[0] == keys[2].partition("@")[0]
        assert not serving.served.reload()


def test_the_files_of_a_state_no_longer_served_are_closed_at_once(path: Path):
    """Also of what is left out of garbage collection, as all that exists at the start is."""
    with serving_reference(path) as serving:
        assert serving.served.now.reference.longest_matches(["calm"]).tolist() == [1]
        assert [d.id for d in serving.served.now.reference.documents([0])] == ["d0"]
        files = [weakref.ref(shard) for shard in serving.served.now.reference.local.shards]
        gc.collect()
        gc.disable()
        try:
            add(path, "another")
            assert serving.served.reload()
            until = time.monotonic() + 30
            while any(file() for file in files) and time.monotonic() < until:
                time.sleep(0.01)
            assert [file() for file in files] == [None]
        finally:
            gc.enable()


def test_a_corpus_that_cannot_be_read_leaves_the_state_before_in_service(path: Path):
    manifest = path / "manifest.json"
    whole = manifest.read_bytes()
    with serving_reference(path) as serving:
        served = serving.open()
        for damaged in (b"{", whole[: len(whole) // 2], None):
            if damaged is None:
                manifest.unlink()
            else:
                manifest.write_bytes(damaged)
            assert not serving.served.reload()
            assert "manifest.json" in health(serving)["problem"]
            assert served.longest_matches(["sea"]).tolist() == [1]
        manifest.write_bytes(whole)
        assert not serving.served.reload()
        assert health(serving)["problem"] is None
        add(path, "another one")
        assert serving.served.reload()
        assert health(serving)["n_reloads"] == 1
        served.close()


def test_a_shard_that_cannot_be_read_leaves_the_state_before_in_service(path: Path):
    with serving_reference(path) as serving:
        served = serving.open()
        add(path, "another one")
        for name, n_bytes in product(("tokens.npy", "words.npy", "starts.npy"), (0, 10, 100, 200)):
            file = path / "shards" / "00001" / name
            whole = file.read_bytes()
            file.write_bytes(whole[:n_bytes] if n_bytes < len(whole) else whole[:-1])
            assert not serving.served.reload()
            assert health(serving)["problem"]
            assert served.longest_matches(["sea", "was"]).tolist() == [2, 1]
            file.write_bytes(whole)
        assert serving.served.reload()
        assert health(serving)["problem"] is None
        served.close()


def test_changes_are_seen_without_being_told(path: Path):
    with serving_reference(path, check_every_s=0.05) as serving:
        add(path, "another one")
        until = time.monotonic() + 30
        while not health(serving)["n_reloads"]:
            assert time.monotonic() < until
            time.sleep(0.01)


def test_requests_in_flight_are_answered_by_one_state_each(path: Path):
    """Clients ask without a pause while documents come and go; each answer is of its own state."""
    expected: dict[str, list[int]] = {}
    grown = [*SEA, "0", "1", "2", "3", "4"]
    is_over = threading.Event()

    def note() -> None:
        state = serving.served.now
        expected[state.key] = Reference.open(path).longest_matches(grown).tolist()

    def ask(client: httpx.Client) -> list[tuple[str, list[int]]]:
        answers = []
        while not is_over.is_set():
            body = {"words": grown, "places": list(range(1, len(grown) + 1))}
            reply = client.post("/v1/match", json={"state": serving.served.now.key, **body})
            if reply.status_code == 409:
                continue  # It changed on the way.
            assert reply.status_code == 200, reply.text
            answers.append((reply.json()["state"], reply.json()["lengths"]))
        return answers

    with (
        serving_reference(path) as serving,
        httpx.Client(base_url=serving.url, headers={"Authorization": f"Bearer {TOKEN}"}) as client,
        ThreadPoolExecutor(4) as pool,
    ):
        note()
        asking = [pool.submit(ask, client) for _ in range(4)]
        try:
            for k in range(5):
                add(path, " ".join(grown[: 7 + k]))
                if k % 2:
                    remove_documents(path, [2 + k])
                assert serving.served.reload()
                note()
        finally:
            is_over.set()
        answers = [answer for one in asking for answer in one.result()]
    assert len(expected) == 6
    assert answers
    for state, lengths in answers:
        assert lengths == expected[state]
