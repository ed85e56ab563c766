"""Commands as processes of their own: some that end, and some that serve until they are stopped."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import fabula
from tests.forking import fabula_command


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A command that serves, and the address that it prints."""
    source = str(Path(fabula.__file__).parents[1])
    process = subprocess.Popen(
        [fabula_command(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONPATH": source, "FABULA_STUDY_PASSWORD": "a secret of ours"},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://[\d.]+:\d+\S*", line):
                yield process, found[0].rstrip(",")
                break
        else:
            raise AssertionError("it printed no address")
    finally:
        process.kill()
        process.communicate()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [fabula_command(), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True)
