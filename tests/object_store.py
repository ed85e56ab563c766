"""A real S3 server over a folder, for tests: rclone's."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

RCLONE = shutil.which("rclone", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
BUCKET = "corpora"


@dataclass(frozen=True)
class Bucket:
    """The folder behind a bucket, and what leads there."""

    folder: Path
    environment: dict[str, str]


@contextmanager
def s3_server(folder: Path) -> Iterator[dict[str, str]]:
    """Serve `folder` on loopback, a bucket in it; gives the environment that leads there."""
    s3fs = pytest.importorskip("s3fs", reason="needs fabula[remote]")
    if RCLONE is None:
        pytest.skip("rclone is not installed")
    (folder / BUCKET).mkdir(parents=True, exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen(
        [RCLONE, "serve", "s3", str(folder), "--addr", f"127.0.0.1:{port}", "--auth-key",
         "key,secret", "--config", os.devnull,],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as server:  # fmt: skip
        try:
            for _ in range(200):
                with socket.socket() as tried:
                    if tried.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield {
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "key",
                "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1",
                # Of a part of an object this server tells the checksum of the whole.
                "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required",
            }  # fmt: skip
        finally:
            server.kill()
            s3fs.S3FileSystem.clear_instance_cache()  # They know this server's address.


@contextmanager
def reached(environment: dict[str, str]) -> Iterator[None]:
    """This process, too, finds the server that this environment leads to."""
    import s3fs

    with pytest.MonkeyPatch.context() as here:
        for name, value in environment.items():
            here.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()  # They know the address of a server.
        try:
            yield
        finally:
            s3fs.S3FileSystem.clear_instance_cache()
