"""A file cannot take more time or memory than an ordinary one of its size."""

import gzip
import json
import os
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import docx
import pytest
from tests.commands import write_rows
from tests.text.epubs import write_epub

from fabula.core.errors import InputError
from fabula.core.workers import Child, connections
from fabula.text import find_files, isolation, read_documents, sources
from fabula.text.isolation import Limits
from fabula.text.readers import READERS

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def write_docx(path: Path, n_paragraphs: int) -> Path:
    """A Word document of so many paragraphs, written without building them one by one."""
    docx.Document().save(path.with_suffix(".plain"))
    paragraphs = "<w:p><w:r><w:t>word </w:t></w:r></w:p>" * n_paragraphs
    body = f'<w:document xmlns:w="{WORD}"><w:body>{paragraphs}</w:body></w:document>'
    with (
        zipfile.ZipFile(path.with_suffix(".plain")) as plain,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as written,
    ):
        for name in plain.namelist():
            written.writestr(name, body if name == "word/document.xml" else plain.read(name))
    return path


def read(path: Path) -> list[str]:
    return [document.text for document in read_documents([path])]


def test_a_document_that_takes_too_long_is_refused_and_the_next_one_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    limited = replace(READERS["docx"], limits=Limits(2 << 30, 1.0))
    monkeypatch.setitem(READERS, "docx", limited)
    bomb = write_docx(tmp_path / "bomb.docx", 400_000)
    assert bomb.stat().st_size < 100_000
    with pytest.raises(InputError, match=r"bomb\.docx: takes over 1 s to read.*\.txt"):
        read(bomb)
    assert read(write_docx(tmp_path / "plain.docx", 2)) == ["word \n\nword "]


def test_a_document_that_takes_too_much_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    limited = replace(READERS["docx"], limits=Limits(64 << 20, 10.0))
    monkeypatch.setitem(READERS, "docx", limited)
    bomb = write_docx(tmp_path / "bomb.docx", 400_000)
    with pytest.raises(InputError, match=r"bomb\.docx: .*memory"):
        read(bomb)


def test_a_chapter_named_many_times_stands_in_the_book_once(tmp_path: Path):
    book = write_epub(tmp_path / "b.epub", ["<p>One.</p>", "<p>Two.</p>"], [0, 1, 0, 0, 1] * 100)
    assert read(book) == ["One.\n\nTwo."]


def test_a_text_that_unpacks_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from fabula.text import readers

    monkeypatch.setattr(readers, "_MAX_UNPACKED_BYTES", 1 << 20)
    monkeypatch.setattr(sources, "_is_harmless", lambda *_: True)  # a limit of this process
    path = tmp_path / "zeros.txt.gz"
    path.write_bytes(gzip.compress(b" " * (1 << 22)))
    with pytest.raises(InputError, match=r"zeros\.txt\.gz: larger than 1 GiB; split it"):
        read(path)


def test_what_is_read_aside_is_what_is_read_here(tmp_path: Path):
    """Rows, their order, their other fields, the bytes counted, and the error at the end."""
    rows = [{"id": f"r{k}", "text": f"text {k} " * (k % 50), "n": k} for k in range(1000)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    plain, packed = tmp_path / "t.jsonl", tmp_path / "p.jsonl.gz"
    for ending in ("", "{"):
        plain.write_text(lines + ending, encoding="utf-8")
        packed.write_bytes(gzip.compress((lines + ending).encode()))
        told = []
        for path in (plain, packed):
            n_read: list[int] = []
            documents, message = [], ""
            try:
                documents += read_documents([path], meter=n_read.append)
            except InputError as error:
                message = str(error).replace(str(path), "FILE")
            told.append(([(d.id, d.text, dict(d.meta)) for d in documents], message))
            assert sum(n_read) == path.stat().st_size
        assert told[0] == told[1]
        assert len(told[0][0]) == 1000
        assert ("line 1001" in told[0][1]) == bool(ending)


def test_threads_read_at_the_same_time(tmp_path: Path):
    paths = [write_epub(tmp_path / f"{k}.epub", [f"<p>Book {k}.</p>"]) for k in range(3)]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(read, paths)) == [[f"Book {k}."] for k in range(3)]


def test_a_reader_that_stops_early_leaves_no_process_behind(tmp_path: Path):
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id":"a","text":"some words"}\n' * 50_000))
    documents = read_documents([path])
    next(documents)
    documents.close()  # type: ignore[attr-defined]
    # Nothing half read is taken for the beginning of the next file.
    assert read(write_epub(tmp_path / "b.epub", ["<p>One.</p>"])) == ["One."]
    code = (
        "import sys\nfrom fabula.text import read_documents, isolation\n"
        "list(read_documents([sys.argv[1]]))\nprint(isolation._idle[0].process.pid)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "b.epub")]
    helper = int(subprocess.run(command, capture_output=True, check=True).stdout)
    with pytest.raises(ProcessLookupError):
        os.kill(helper, 0)


def leave(requests_fd: int, answers_fd: int) -> None:
    """A helper that exits because it was idle, just as a request comes."""
    requests, _ = connections(requests_fd, answers_fd)
    requests.poll(60)


def test_a_helper_that_ended_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    book = write_epub(tmp_path / "b.epub", ["<p>One.</p>"])
    assert read(book) == ["One."]
    isolation._idle[0].close()
    isolation._idle[0] = Child("tests.text.test_isolation", "leave")
    assert read(book) == ["One."]
    # So is one that was killed.
    helper = isolation._idle[0].process
    helper.kill()
    helper.wait()
    assert read(book) == ["One."]


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "a.txt").write_text("text", encoding="utf-8")
    with pytest.raises(InputError, match=r"pipe\.txt: not a regular file"):
        find_files([str(tmp_path / "pipe.txt")])
    assert [Path(file.name).name for file in find_files([str(tmp_path)])] == ["a.txt"]


def test_control_characters_do_not_reach_ids(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    ids = ["a\u001b[31mred", "b\nc", "d\u202ee\x9b", "Ünïcode id"]
    write_rows(path, ({"id": i, "text": "x"} for i in ids))
    found = [d.id for d in read_documents([path])]
    assert found == ["a\ufffd[31mred", "b\ufffdc", "d\ufffde\ufffd", "Ünïcode id"]
    named = tmp_path / "evil\u001b]0;x\u0007.txt"
    named.write_text("text", encoding="utf-8")
    assert "\u001b" not in next(read_documents([named])).id
