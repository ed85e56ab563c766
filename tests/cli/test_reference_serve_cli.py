"""`fabula reference serve` and the commands that ask it, each in a process of its own."""

import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.commands import rows_of, write_rows
from tests.reference_serving import serving_process
from tests.running_commands import REFUSED, run

from fabula.core.types import Document
from fabula.novelty.measure import Levels, OriginalityMeasure
from fabula.novelty.scores import run_measure
from fabula.reference.backend import ServerAway
from fabula.reference.build import add_documents, remove_documents
from fabula.reference.client import open_served
from fabula.reference.search import Reference
from fabula.text import read_documents


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, examples: Path) -> Path:
    """A corpus in several shards with a text removed, and stories to measure against it."""
    home = tmp_path_factory.mktemp("serve")
    files = sorted((examples / "library").iterdir())
    held = [
        Document(file.stem, file.read_text(encoding="utf-8"), author=f"a{k % 3}",
                 meta={"title": file.stem.title()})
        for k, file in enumerate(files)
    ]  # fmt: skip
    Reference.build(held, home / "library.ref", shard_tokens=500)
    remove_documents(home / "library.ref", [1])
    story = (examples / "the-count.txt").read_text(encoding="utf-8")
    write_rows(home / "stories.jsonl", (
        {"id": f"s{k}", "author": f"a{k % 4}",
         "text": f"{story[50 * k :][:400]} {held[k % len(held)].text[100 : 100 + 60 * k]}"}
        for k in range(8)
    ))  # fmt: skip
    return home


HOW = ("--exclude", "auto", "--exclude-same", "author", "--spread", "3", "--levels", "3-6")


def test_a_server_killed_in_the_middle_loses_and_falsifies_nothing(home: Path, tmp_path: Path):
    stories, corpus = str(home / "stories.jsonl"), str(home / "library.ref")
    out, killed = tmp_path / "scores.jsonl", tmp_path / "killed.jsonl"
    first = write_rows(tmp_path / "stories.jsonl", rows_of(home / "stories.jsonl")[:3])
    texts = partial(read_documents, [stories])

    def score(reference: str, texts: str, to: Path) -> tuple[int, str]:
        done = run("originality", texts, "--reference", reference, *HOW, "--out", to, "--set",
                   "index.max-retries=1", code=None)  # fmt: skip
        return done.returncode, done.stderr

    with serving_process(corpus, "--port", "0") as at:
        port = at.url.rpartition(":")[2]
        assert score(at.url, str(first), out)[0] == 0
        part = open_served(at.url, max_retries=1, backoff_s=0.01)
        measure = OriginalityMeasure(Reference(part), levels=Levels(3, 6))
        rows = []
        with pytest.raises(ServerAway, match="the same command with `out` resumes"):  # noqa: PT012
            for _, row in run_measure(measure, texts(), killed):
                rows.append(row)
                if len(rows) == 2:
                    at.process.kill()
                    at.process.wait()
        part.close()
    kept = rows_of(killed)
    # Texts ahead of the kill may have been looked up by then.
    reasons = [row["missing_reason"] for row in kept]
    assert len(reasons) >= 4
    assert reasons == [None] * (len(reasons) - 2) + ["lookup_failed"] * 2
    assert [row["creativity_index"] for row in kept[-2:]] == [None, None]
    # The reference is away: the same command says so, and changes nothing.
    before = out.read_bytes()
    code, said = score(f"http://127.0.0.1:{port}", stories, out)
    assert code == 5
    assert "did not answer" in said
    assert out.read_bytes() == before
    # It is back, at the same place: both files are completed.
    with serving_process(corpus, "--port", port) as at:
        assert score(at.url, stories, out)[0] == 0
        part = open_served(at.url)
        measure = OriginalityMeasure(Reference(part), levels=Levels(3, 6))
        done = list(run_measure(measure, texts(), killed))
        part.close()
    assert score(corpus, stories, tmp_path / "local.jsonl")[0] == 0
    assert out.read_bytes() == (tmp_path / "local.jsonl").read_bytes()
    local = OriginalityMeasure(Reference.open(corpus), levels=Levels(3, 6))
    assert [row for _, row in done] == [row for _, row in run_measure(local, texts())]


def test_a_hangup_reads_the_tokens_again_and_a_bad_file_changes_nothing(tmp_path: Path):
    """The corpus is read again too; and Ctrl-C ends it quietly."""
    path, file = tmp_path / "sea.ref", tmp_path / "tokens"
    before = Reference.build([Document("d", "the sea was calm")], path).fingerprint
    file.write_text("first\n", encoding="utf-8")
    with serving_process(str(path), "--port", "0", "--token-file", str(file)) as at:

        def lets_in(token: str) -> bool:
            headers = {"Authorization": f"Bearer {token}"}
            return httpx.get(f"{at.url}/v1/about", headers=headers).status_code == 200

        def health() -> dict[str, Any]:
            return httpx.get(f"{at.url}/health").json()

        assert lets_in("first")
        assert health()["fingerprint"] == before
        add_documents([Document("e", "and grey")], path, n_jobs=1)
        file.write_text("second\n", encoding="utf-8")
        os.kill(at.process.pid, signal.SIGHUP)
        ends = time.monotonic() + 30
        while lets_in("first") or not health()["n_reloads"]:
            assert time.monotonic() < ends, "it did not look"
            time.sleep(0.05)
        assert lets_in("second")
        assert health()["fingerprint"] == Reference.open(path).fingerprint != before
        file.write_text("\n", encoding="utf-8")
        os.kill(at.process.pid, signal.SIGHUP)
        assert lets_in("second")
        assert not lets_in("first")
        at.process.send_signal(signal.SIGINT)
        assert at.process.wait(30) == 0
    said = "\n".join(at.said)
    assert "now serving 6 words in 2 documents" in said
    assert "the tokens were not reloaded" in said
    assert not any(one in said for one in ("Traceback", "Interrupt", "first", "second"))


@pytest.mark.parametrize(("arguments", "said"), [
    (("--host", "0.0.0.0"), "give --token-file FILE, or put a token into FABULA_REFERENCE_TOKEN"),
    (("--token-file", "none"), "none: cannot be read"),
    (("--host", "192.0.2.1", "--token-file", "tokens"), "cannot listen on it"),
    ((), "not a reference corpus"),
])  # fmt: skip
def test_what_cannot_be_served_is_said_in_a_sentence(
    home: Path, tmp_path: Path, arguments: tuple[str, ...], said: str
):
    (tmp_path / "tokens").write_text("secret-token\n", encoding="utf-8")
    given = [str(tmp_path / one) if one in ("none", "tokens") else one for one in arguments]
    served = home / "library.ref" if given else tmp_path
    done = run("reference", "serve", served, "--port", "0", *given, code=REFUSED)
    assert said in done.stderr
    assert "secret-token" not in done.stderr + done.stdout
