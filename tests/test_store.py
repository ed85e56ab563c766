"""Files are whole, also where several write them; rows have one writer at a time."""

import fcntl
import json
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.core.errors import BusyError, CorpusError, InputError
from fabula.core.store import (
    FORMATS,
    REFERENCE,
    Format,
    RowWriter,
    read_rows,
    write_rows,
    write_whole,
)
from fabula.core.types import Document
from fabula.reference.files import seal, unsealed
from fabula.reference.search import Reference

N_WRITERS, N_WRITES = 3, 100


def content(writer: int, k: int) -> bytes:
    return json.dumps([writer, k, "x" * (10_000 + 997 * writer)]).encode()


def write_often(path: Path, writer: int) -> int:
    for k in range(N_WRITES):
        write_whole(path, content(writer, k))
    return N_WRITES


def append_rows(path: Path, writer: int) -> int:
    """Rows by one of several writers, each of whom replaces the file now and then."""
    n_written = 0
    for k in range(N_WRITES):
        try:
            with RowWriter(path) as file:
                file.begin()
                file.write({"id": f"{writer}-{k}"})
                if k % 5 == 0:
                    file.replace([*file.kept, {"id": f"{writer}-{k}"}])
                n_written += 1
        except BusyError:
            time.sleep(0.001)
    return n_written


@pytest.fixture(scope="module")
def pool() -> ProcessPoolExecutor:
    with ProcessPoolExecutor(N_WRITERS, multiprocessing.get_context("spawn")) as executor:
        yield executor  # type: ignore[misc]


def test_300_writes_at_once_leave_one_of_them_whole(tmp_path: Path, pool: ProcessPoolExecutor):
    path = tmp_path / "page.html"
    paths, writers = [path] * N_WRITERS, range(N_WRITERS)
    assert sum(pool.map(write_often, paths, writers)) == N_WRITERS * N_WRITES == 300
    whole = {content(writer, N_WRITES - 1) for writer in writers}
    assert path.read_bytes() in whole
    assert os.listdir(tmp_path) == ["page.html"]


def test_no_row_that_was_written_is_lost(tmp_path: Path, pool: ProcessPoolExecutor):
    path = tmp_path / "rows.jsonl"
    n = sum(pool.map(append_rows, [path] * N_WRITERS, range(N_WRITERS)))
    rows = [row["id"] for row in read_rows(path)]
    assert len(rows) == n == len(set(rows))
    assert os.listdir(tmp_path) == ["rows.jsonl"]


def test_the_second_writer_of_rows_is_told_that_it_is_busy(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    with RowWriter(path), pytest.raises(BusyError, match="another process is writing"):
        RowWriter(path)


def test_what_dead_writers_left_is_removed_and_what_lives_is_not(tmp_path: Path):
    names = (".page.html.1-dead.part", ".page.html.2-alive.part", ".other.html.3.part", "page[1].x")
    for name in names:
        (tmp_path / name).write_bytes(b"half")
    with (tmp_path / names[1]).open("ab") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        write_whole(tmp_path / "page.html", b"whole")
    assert sorted(os.listdir(tmp_path)) == sorted([*names[1:], "page.html"])


def test_a_write_that_fails_names_the_file_and_leaves_nothing(tmp_path: Path):
    (tmp_path / "page.html").mkdir()
    with pytest.raises(OSError, match=r"page\.html") as caught:
        write_whole(tmp_path / "page.html", b"x")
    assert caught.value.filename == str(tmp_path / "page.html")
    assert os.listdir(tmp_path) == ["page.html"]


@pytest.mark.parametrize("name", ["a" * 240, "é" * 120, "[x]*.html"])
def test_names_of_any_kind_can_be_written(tmp_path: Path, name: str):
    write_whole(tmp_path / name, b"one")
    write_whole(tmp_path / name, b"two")
    assert (tmp_path / name).read_bytes() == b"two"
    assert os.listdir(tmp_path) == [name]


NEWER = {
    "scores": {"id": "a", "signature": "originality|match:verbatim|L:5-12|v:99.0.1"},
    "profiles": {"id": "a", "signature": "profile|v:0.2|grammar:none"},
    "rows of another format": {"id": "a", "fabula_format": 2},
}


@pytest.mark.parametrize("row", NEWER.values(), ids=NEWER.keys())
def test_rows_that_a_newer_version_wrote_are_refused_and_stay(
    tmp_path: Path, row: dict[str, object]
):
    path = tmp_path / "rows.jsonl"
    content = json.dumps({"id": "0"}) + "\n" + json.dumps(row) + "\n"
    path.write_text(content)
    with pytest.raises(InputError, match=r"rows\.jsonl, line 2: written by .* use that version"):
        RowWriter(path)
    with pytest.raises(InputError, match=r"rows\.jsonl, line 2: written by"):
        list(read_rows(path))
    assert path.read_text() == content


@pytest.mark.parametrize("signature", ["x|v:0.1.0", "x|v:0.0.9", "x", "", None, 3, "x|v:", "x|v:y"])
def test_rows_of_this_version_and_older_ones_are_read(tmp_path: Path, signature: object):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"id": "a", "signature": signature}) + "\n")
    assert len(list(read_rows(path))) == 1
    with RowWriter(path) as file:
        assert len(file.kept) == 1


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(value=_VALUES, data=st.data())
def test_no_damage_to_a_row_of_results_is_read_as_another_row(
    tmp_path_factory: pytest.TempPathFactory, value: object, data: st.DataObject
):
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    row = {"id": "a", "value": value}
    write_rows(path, [row], are_results=True)
    whole = path.read_bytes()
    assert list(read_rows(path)) == [json.loads(json.dumps(row, default=str))]
    place = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(damaged)
    try:
        (read,) = read_rows(path)
    except (InputError, ValueError):
        return
    # Only what stands around the checksum may be read: its name, or the end of the line.
    assert {name: read[name] for name in row} == row


@pytest.mark.parametrize("format_", FORMATS, ids=lambda one: one.kind)
def test_what_is_written_is_read_and_nothing_else(format_: Format):
    format_.check(format_.mark, "file")
    for version in {1, format_.version + 1, 99} - {format_.version}:
        with pytest.raises(format_.error, match="another version of Fabula") as refused:
            format_.check({format_.field: version}, "that/file")
        assert str(refused.value).startswith("that/file: ")
        assert format_.remedy in str(refused.value)
    for version in ("1", True, 0, -1, 1.0, None):
        with pytest.raises(format_.error, match=r"damaged \(its"):
            format_.check({format_.field: version}, "file")


def test_a_corpus_of_another_version_is_refused_with_the_remedy(tmp_path: Path):
    Reference.build([Document("a", "one two three")], tmp_path)
    manifest = tmp_path / "manifest.json"
    row = unsealed(manifest.read_bytes(), "") | {"format": REFERENCE.version - 1}
    manifest.write_text(json.dumps(seal(row)))
    with pytest.raises(CorpusError, match=r"manifest\.json: .*build it again with `fabula ref"):
        Reference.open(tmp_path)
