"""A corpus that changes while it is served: nobody gets an answer of a mixture."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.reference_serving import TOKEN, serving_reference

from fabula.errors import CorpusError
from fabula.reference import Reference
from fabula.reference.build import add_documents
from fabula.reference.serving.snapshots import N_KEPT
from fabula.reference.tombstones import remove_documents
from fabula.types import Document

SEA = ["the", "sea", "was", "calm", "and", "grey"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "sea"
    held = ["the sea was calm", "calm and grey", "was calm and grey"]
    Reference.build([Document(f"d{k}", text) for k, text in enumerate(held)], path)
    return path


def add(path: Path, text: str) -> None:
    add_documents([Document(text, text)], path, n_jobs=1)


def test_a_client_in_the_middle_goes_on_with_what_it_began_with(path: Path) -> None:
    with serving_reference(path) as serving:
        before = serving.open()
        expected = before.longest_matches(SEA).tolist()
        add(path, "the sea was calm and grey")
        remove_documents(path, [2])
        assert serving.states.reload()
        after = serving.open()
        assert before.longest_matches(SEA).tolist() == expected == [4, 3, 4, 3, 2, 1]
        assert after.longest_matches(SEA).tolist() == [6, 5, 4, 3, 2, 1]
        # The removed document is still there for the one, and not for the other.
        assert before.documents_with(["was"]) == [0, 2]
        assert after.documents_with(["was"]) == [0, 3]
        assert before.fingerprint != after.fingerprint
        assert (
            after.longest_matches(SEA).tolist()
            == Reference.open(path).longest_matches(SEA).tolist()
        )
        before.close()
        after.close()


def test_a_removal_is_another_state_and_its_undoing_by_other_means_too(path: Path) -> None:
    """The fingerprint says which documents there are; the state says how they are numbered too."""
    with serving_reference(path) as serving:
        keys = [serving.states.now.key]
        add(path, "calm and grey")
        assert serving.states.reload()
        keys.append(serving.states.now.key)
        remove_documents(path, [3])
        assert serving.states.reload()
        keys.append(serving.states.now.key)
        assert len(set(keys)) == 3
        assert keys[0].partition("@")[0] == keys[2].partition("@")[0]
        assert not serving.states.reload()


def test_the_files_of_a_state_no_longer_kept_are_closed_at_once(path: Path) -> None:
    """Also of what is left out of garbage collection, as all that exists at the start is."""
    with serving_reference(path) as serving:
        assert serving.states.now.reference.longest_matches(["calm"]).tolist() == [1]
        assert [d.id for d in serving.states.now.reference.documents([0])] == ["d0"]
        files = [weakref.ref(shard) for shard in serving.states.now.shards]
        gc.collect()
        gc.disable()
        try:
            for k in range(N_KEPT):
                add(path, f"number {k}")
                assert serving.states.reload()
            until = time.monotonic() + 30
            while any(file() for file in files) and time.monotonic() < until:
                time.sleep(0.01)
            assert [file() for file in files] == [None]
        finally:
            gc.enable()


def test_what_is_no_longer_kept_is_told_with_the_remedy(path: Path) -> None:
    with serving_reference(path) as serving:
        before = serving.open()
        for k in range(N_KEPT - 1):
            add(path, f"number {k}")
            assert serving.states.reload()
        assert before.longest_matches(["calm"]).tolist() == [1]
        add(path, "the last")
        assert serving.states.reload()
        for ask in (
            lambda: before.longest_matches(["sea"]),
            lambda: before.match_texts([located("sea")]),
            lambda: before.attribute(["sea"]),
            lambda: before.document(0),
            lambda: before.numbers_of(["d0"]),
        ):
            with pytest.raises(CorpusError, match=r"changed during .* run the command again"):
                ask()
        before.close()


def located(text: str) -> Any:
    from fabula.reference import LocatedText
    from fabula.text import TextSettings

    return LocatedText(text, TextSettings().locate(text))


def test_a_corpus_that_cannot_be_read_leaves_the_state_before_in_service(path: Path) -> None:
    manifest = path / "manifest.json"
    whole = manifest.read_bytes()
    with serving_reference(path) as serving:
        served = serving.open()
        for damaged in (b"{", whole[: len(whole) // 2], None):
            if damaged is None:
                manifest.unlink()
            else:
                manifest.write_bytes(damaged)
            assert not serving.states.reload()
            known = {"Authorization": f"Bearer {TOKEN}"}
            health = httpx.get(f"{serving.url}/health", headers=known).json()
            assert health["is_ready"]
            assert "manifest.json" in health["problem"]
            assert served.longest_matches(["sea"]).tolist() == [1]
        manifest.write_bytes(whole)
        assert not serving.states.reload()
        assert httpx.get(f"{serving.url}/health").json()["problem"] is None
        add(path, "another one")
        assert serving.states.reload()
        assert httpx.get(f"{serving.url}/health").json()["n_reloads"] == 1
        served.close()


@pytest.mark.parametrize("n_bytes", [0, 10, 100, 200])
def test_a_shard_that_cannot_be_read_leaves_the_state_before_in_service(
    path: Path, n_bytes: int
) -> None:
    with serving_reference(path) as serving:
        served = serving.open()
        add(path, "another one")
        file = path / "shards" / "00001" / "starts.npy"
        whole = file.read_bytes()
        for damaged in ("tokens.npy", "words.npy", "starts.npy"):
            place = file.with_name(damaged)
            held = place.read_bytes()
            place.write_bytes(held[:n_bytes] if n_bytes < len(held) else held[:-1])
            assert not serving.states.reload()
            assert httpx.get(f"{serving.url}/health").json()["problem"]
            assert served.longest_matches(["sea", "was"]).tolist() == [2, 1]
            place.write_bytes(held)
        assert file.read_bytes() == whole
        assert serving.states.reload()
        assert httpx.get(f"{serving.url}/health").json()["problem"] is None
        served.close()


def test_changes_are_seen_without_being_told(path: Path) -> None:
    with serving_reference(path, check_every_s=0.05) as serving:
        seen = threading.Event()
        told = serving.states.when_changed
        serving.states.when_changed = lambda state: (told(state), seen.set())[0]
        add(path, "another one")
        assert seen.wait(30)
        page = httpx.get(
            f"{serving.url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}
        ).text
        assert "fabula_reloads_total 1.0" in page
        assert "fabula_shards 2.0" in page


def test_requests_in_flight_are_answered_by_one_state_each(path: Path) -> None:
    """Clients ask without a pause while documents come and go; each answer is of its own state."""
    expected: dict[str, list[int]] = {}
    grown = [*SEA, "0", "1", "2", "3", "4"]
    is_over = threading.Event()

    def note() -> None:
        state = serving.states.now
        expected[state.key] = Reference.open(path).longest_matches(grown).tolist()

    def ask(client: httpx.Client) -> list[tuple[str, list[int]]]:
        answers = []
        while not is_over.is_set():
            reply = client.post("/v1/batch", json={"texts": [" ".join(grown)]})
            assert reply.status_code == 200, reply.text
            answers.append((reply.json()["state"], reply.json()["texts"][0]["lengths"]))
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
                assert serving.states.reload()
                note()
        finally:
            is_over.set()
        answers = [answer for one in asking for answer in one.result()]
    assert len(expected) == 6
    assert answers
    for state, lengths in answers:
        assert lengths == expected[state]
