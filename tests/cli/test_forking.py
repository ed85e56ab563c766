"""What the tests run in place of the installed command does as that does."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.forking import INSTALLED, fabula_command

LINES = '{"id": "a", "text": "The lamp went round. She counted nine."}\n'


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--version"], 0),
        (["originality", "--help"], 0),
        (["nonsense"], 2),
        (["originality", "gone.txt", "--reference", "gone.ref"], 3),
        (["reference", "build", "-", "--format", "jsonl", "--out", "r"], 0),
    ],
)
def test_it_ends_and_prints_as_the_installed_command(
    words: list[str], code: int, tmp_path: Path
) -> None:
    ended = []
    for command in (INSTALLED, fabula_command()):
        folder = tmp_path / command.parent.name
        folder.mkdir()
        done = subprocess.run(
            [command, *words], input=LINES, capture_output=True, text=True, check=False,
            cwd=folder, env={**os.environ, "COLUMNS": "60"},
        )  # fmt: skip
        written = sorted(path.relative_to(folder) for path in folder.rglob("*"))
        ended.append((done.returncode, done.stdout, done.stderr, written))
    assert ended[0] == ended[1]
    assert ended[0][0] == code
