"""The desk's offer to fetch the models that it lacks: asked first, shown while it goes on."""

import io
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.cli.test_setup_cli import bare as bare
from tests.models.test_fetching import CONTENT, PATH, Host, digest
from tests.models.test_fetching import host as host
from tests.writer.test_desk import STORY, opened, send, waiting

from fabula.core.packages import ENCODER, LANGUAGE_MODEL, PIPELINE
from fabula.models.fetching import KNOWN, Download
from fabula.writer.setup import SetupSettings
from fabula.writer.work import Asked, Desk

pytest.importorskip("spacy", reason="what has no runtime is not offered")
pytest.importorskip("xllamacpp", reason="what has no runtime is not offered")


def wheel(folder: str, *names: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in names:
            archive.writestr(f"{folder}/{name}", "{}")
    return packed.getvalue()


@pytest.fixture
def desk(bare: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A desk on a computer without models, whose makers' files are small."""
    files = {
        PIPELINE: ("/maker/p.whl", wheel("p", "meta.json", "config.cfg"), "p"),
        LANGUAGE_MODEL: (PATH, CONTENT, ""),
        ENCODER: ("/maker/e.whl", wheel("e", "model.onnx", "tokenizer.json"), "e"),
    }
    for name, (path, data, inside) in files.items():
        bare.files[path] = data
        download = Download(f"https://maker{path}", digest(data), len(data), inside)
        monkeypatch.setitem(KNOWN, name, replace(KNOWN[name], download=download))  # type: ignore[arg-type]
    setup = SetupSettings(source="maker", mirror=bare.address)
    with Desk(tmp_path / "desk", setup=setup) as opened:
        yield opened


@pytest.fixture
def client(desk: Desk) -> TestClient:
    return opened(desk)


def until(client: TestClient, words: str) -> str:
    waiting(lambda: words in client.get("/models").text)
    return client.get("/models").text


def test_what_is_missing_is_fetched_after_consent_and_drafts_can_be_measured_again(
    client: TestClient, desk: Desk, bare: Host, tmp_path: Path
):
    version = desk.drafts.add("The lamp", STORY, asdict(Asked()))
    version.keep("found.json", b'{"is_whole": true, "signatures": {"lines": "x"}}')
    home = client.get("/").text
    assert "reports need 3 models that are not on this computer yet: 3 MB, downloaded once" in home
    page = client.get("/models").text
    assert "MB, licence Apache-2.0" in page
    assert f"Kept in {tmp_path / 'models'}" in page
    assert client.post("/models", data={"csrf": "guess"}).status_code == 403
    assert bare.asked == [], "nothing is fetched before the writer agrees"

    bare.pause_s = 0.02
    assert "<progress" in send(client, "/models").text
    assert "Show progress" in client.get("/").text
    page = until(client, "All models that reports need are on this computer")
    assert "1 draft was measured without them" in page
    assert (tmp_path / "models" / LANGUAGE_MODEL / Path(PATH).name).read_bytes() == CONTENT
    assert "reports need" not in client.get("/").text
    n_asked = len(bare.asked)
    send(client, "/models")
    assert len(bare.asked) == n_asked
    assert not (version.folder / "place.html").exists()
    send(client, "/models/again")
    waiting((version.folder / "place.html").exists)


def test_fetching_stops_and_says_what_went_wrong(client: TestClient, bare: Host):
    bare.pause_s = 0.5
    send(client, "/models")
    waiting(lambda: f"/store{PATH}" in bare.asked)
    assert "2 models that are not on this computer" in send(client, "/models/stop").text
    # One thing at a time: what begins now begins after the other has stopped.
    bare.pause_s, bare.files[PATH] = 0.0, b"another file"
    send(client, "/models")
    assert "its SHA-256 is not the one that this version expects" in until(client, "SHA-256 is not")
    bare.files[PATH] = CONTENT
    send(client, "/models")
    until(client, "All models that reports need are on this computer")
