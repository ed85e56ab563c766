"""Commands as processes of their own: some that end, and some that serve until they are stopped."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import fabula
from tests.forking import fabula_command

REFUSED = -1
"""Usage errors, which click shows, end with 2; other errors with the code of their kind."""


def environment(**more: str) -> dict[str, str]:
    """With the sources under test."""
    sources = str(Path(fabula.__file__).parents[1].resolve())
    own = {"PYTHONPATH": sources, "COLUMNS": "100", "FABULA_STUDY_PASSWORD": "a secret of ours"}
    return {**os.environ, **own, **more}


def run(
    *words: object, code: int | None = 0, cwd: Path | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    """A command that ends as `code` says; how is not asked where it is None."""
    done = subprocess.run(
        [fabula_command(), *map(str, words)], cwd=cwd, env=environment(**more),
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    if code == REFUSED:
        assert done.returncode in (2, 3, 4, 5), said
        assert ("Error: " if done.returncode == 2 else "error: ") in done.stderr, said
        assert done.stdout == ""
    elif code not in (None, done.returncode):
        error = subprocess.CalledProcessError(done.returncode, words, done.stdout, done.stderr)
        error.add_note(said)
        raise error
    return done


@contextmanager
def running(
    *words: str, said: list[str] | None = None, **more: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A command that serves, and the address that it prints; in the end `said` is what it said."""
    lines = [] if said is None else said
    with subprocess.Popen(
        [fabula_command(), *words], env=environment(**more),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            for line in process.stdout:
                lines.append(line.rstrip("\n"))
                if found := re.search(r"http://[\d.]+:\d+\S*", line):
                    yield process, found[0].rstrip(",")
                    break
            else:
                raise AssertionError(f"it printed no address: {lines}")
        finally:
            process.kill()
            lines += process.stdout.read().splitlines()
