"""One file that cannot be read does not end a batch; the batch says so, and its exit code does."""

import gzip
import json
import subprocess
from pathlib import Path

import pytest
from tests.commands import rows_of
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


def check_told(result: subprocess.CompletedProcess[str]) -> None:
    assert result.returncode == 1, result.stderr
    told = [line for line in result.stderr.splitlines() if line.startswith("left out: ")]
    assert [Path(line.split(": ")[1]).name for line in told] == ["b.docx", "d.jsonl.gz"]
    assert "2 of 5 files could not be read and were left out" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_texts_after_one_that_cannot_be_read_are_profiled(texts: list[Path]):
    result = run("profile", "--json", "--set", "tools.grammar=none", *texts)
    check_told(result)
    assert [Path(row["id"]).name for row in json.loads(result.stdout)] == [
        "a.txt", "c.txt", "e.txt",
    ]  # fmt: skip


def test_the_texts_after_one_that_cannot_be_read_are_scored(
    texts: list[Path], tmp_path: Path, examples: Path
):
    corpus = tmp_path / "library.ref"
    assert run("reference", "build", examples / "library", "--out", corpus).returncode == 0
    out = tmp_path / "scores.jsonl"
    check_told(run("originality", *texts, "--reference", corpus, "--out", out))
    rows = rows_of(out)
    assert [Path(row["id"]).name for row in rows] == ["a.txt", "c.txt", "e.txt"]


def test_a_report_is_made_of_the_texts_that_can_be_read(texts: list[Path], tmp_path: Path):
    page = tmp_path / "page.html"
    check_told(run("report", *texts, "--set", "tools.grammar=none", "--out", page))
    assert page.exists()


def test_a_single_file_that_cannot_be_read_is_an_error(texts: list[Path]):
    result = run("profile", texts[1])
    assert result.returncode == 3
    assert result.stderr.startswith("error: ")
    assert "left out" not in result.stderr


def test_where_no_file_can_be_read_there_is_nothing_to_be_partial(texts: list[Path]):
    result = run("profile", texts[1], texts[3])
    assert result.returncode == 3
    assert "error: " in result.stderr


def test_a_corpus_is_never_built_of_some_of_its_texts(texts: list[Path], tmp_path: Path):
    result = run("reference", "build", *texts, "--out", tmp_path / "corpus.ref")
    assert result.returncode == 3
    assert "b.docx" in result.stderr
    assert not (tmp_path / "corpus.ref" / "manifest.json").exists()


def test_a_format_that_is_unknown_is_an_error_of_the_command_not_of_a_file(texts: list[Path]):
    result = run("profile", "--set", "reading.format=xls", *texts)
    assert result.returncode == 3
    assert "format xls: unknown" in result.stderr
    assert "left out" not in result.stderr
