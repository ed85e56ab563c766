"""One file that cannot be read does not end a batch; the batch says so, and its exit code does."""

import gzip
import json
import subprocess
from pathlib import Path

import pytest
from tests.forking import fabula_command

TEXT = "The count came back at dusk. Nobody had lit the lamps, and the dog did not bark.\n"


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [fabula_command(), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def texts(tmp_path: Path) -> list[Path]:
    """Three that can be read, and between them two that cannot."""
    whole = gzip.compress((json.dumps({"id": "row", "text": TEXT}) + "\n").encode())
    files = {
        "a.txt": TEXT.encode(), "b.docx": b"PK not a document", "c.txt": TEXT.encode(),
        "d.jsonl.gz": whole[: len(whole) // 2], "e.txt": TEXT.encode(),
    }  # fmt: skip
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    return [tmp_path / name for name in files]


def test_the_texts_after_one_that_cannot_be_read_are_profiled(texts: list[Path]):
    result = run("profile", "--json", "--set", "tools.grammar=none", *texts)
    assert result.returncode == 1, result.stderr
    told = [line for line in result.stderr.splitlines() if line.startswith("left out: ")]
    assert [Path(line.split(": ")[1]).name for line in told] == ["b.docx", "d.jsonl.gz"]
    assert "2 of 5 files could not be read and were left out" in result.stderr
    assert "Traceback" not in result.stderr
    names = [Path(row["id"]).name for row in json.loads(result.stdout)]
    assert names == ["a.txt", "c.txt", "e.txt"]


def test_a_corpus_is_never_built_of_some_of_its_texts(texts: list[Path], tmp_path: Path):
    result = run("reference", "build", *texts, "--out", tmp_path / "corpus.ref")
    assert result.returncode == 3
    assert "b.docx" in result.stderr
    assert not (tmp_path / "corpus.ref" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("chosen", "options", "said"),
    [
        ([1], [], "error: "), ([1, 3], [], "error: "),
        ([0, 1, 2, 3, 4], ["--set", "reading.format=xls"], "format xls: unknown"),
    ],
    ids=["one that cannot be read", "none that can be read", "an unknown format"],
)  # fmt: skip
def test_where_nothing_can_be_partial_it_is_an_error(
    texts: list[Path], chosen: list[int], options: list[str], said: str
):
    result = run("profile", *options, *(texts[k] for k in chosen))
    assert result.returncode == 3
    assert said in result.stderr
    assert len(chosen) > 1 or result.stderr.startswith(said)
    assert len(chosen) == 2 or "left out" not in result.stderr
