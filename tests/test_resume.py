"""One rule says which rows of a job's file are used again, and which are made again."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.core.errors import InputError
from fabula.core.resume import RowKind, kept_rows
from tests.commands import rows_of, write_rows

TEXTS = RowKind("the text", ("id", "model"), ("missing_reason", "text"))
SCORES = RowKind("the score", ("id",), ("text_digest", "signature"), in_order=True)


def text(number: int, made_of: str = "p", **more: Any) -> dict[str, Any]:
    row = {"id": f"t{number}", "model": "m", "prompt": made_of, "text": f"text {number}"}
    return row | {"missing_reason": None} | more


def job(path: Path, n: int, n_before_crash: int | None = None, made_of: str = "p") -> int:
    """Make `n` rows, or crash after so many new ones. Returns how many were made."""
    n_made, rows = 0, []
    with kept_rows(path, TEXTS) as kept:
        for number in range(n):
            row = kept.find({"id": f"t{number}", "model": "m", "prompt": made_of})
            if row is None:
                if n_made == n_before_crash:
                    raise KeyboardInterrupt
                row = text(number, made_of)
                kept.add(row)
                n_made += 1
            rows.append(row)
        kept.settle(rows)
    return n_made


@given(st.integers(0, 8), st.lists(st.integers(0, 8), max_size=4))
def test_an_interrupted_job_makes_each_row_once_and_the_same_bytes(n: int, crashes: list[int]):
    with tempfile.TemporaryDirectory() as folder:
        whole, often = Path(folder) / "whole.jsonl", Path(folder) / "often.jsonl"
        job(whole, n)
        n_made = 0
        for n_rows in crashes:
            try:
                n_made += job(often, n, n_rows)
            except KeyboardInterrupt:
                n_made += n_rows
        assert n_made + job(often, n) == n
        assert often.read_bytes() == whole.read_bytes()


def test_what_failed_is_made_again_and_stands_there_once_in_its_place(tmp_path: Path):
    rows = [text(0), text(1, missing_reason="refused", text=None), text(2)]
    path = write_rows(tmp_path / "o.jsonl", rows)
    assert job(path, 3) == 1
    assert [row["text"] for row in rows_of(path)] == ["text 0", "text 1", "text 2"]


def test_what_was_made_of_something_else_is_refused_and_stays(tmp_path: Path):
    path = tmp_path / "o.jsonl"
    job(path, 2)
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"o\.jsonl, line 1: contains the text .*another prompt"):
        job(path, 2, made_of="q")
    assert path.read_bytes() == before


def test_rows_of_other_runs_stay_before_those_of_this_one(tmp_path: Path):
    path = tmp_path / "o.jsonl"
    write_rows(path, [text(0, model="other")])
    job(path, 2)
    assert [row["model"] for row in rows_of(path)] == ["other", "m", "m"]


def test_a_file_of_another_kind_is_left_alone_also_at_a_restart(tmp_path: Path):
    path = write_rows(tmp_path / "scores.jsonl", [{"id": "a", "creativity_index": 7.5}])
    before, said = path.read_bytes(), r"line 1: not a row of this command \(it lacks .*model"
    with pytest.raises(InputError, match=said), kept_rows(path, TEXTS, restart=True):
        pass
    assert path.read_bytes() == before


def test_a_restart_without_a_new_row_changes_nothing(tmp_path: Path):
    path = tmp_path / "o.jsonl"
    job(path, 2)
    before = path.read_bytes()
    with kept_rows(path, TEXTS, restart=True) as kept:
        assert len(kept) == 0
        kept.settle([])
    assert path.read_bytes() == before


def test_a_job_of_one_row_moves_no_other(tmp_path: Path):
    path = tmp_path / "o.jsonl"
    with kept_rows(path, TEXTS) as kept:
        for number in (2, 0, 1):
            kept.add(text(number))
    before = path.read_bytes()
    assert job(path, 1) == 0
    assert path.read_bytes() == before


def test_rows_that_a_killed_job_left_are_put_in_order(tmp_path: Path):
    whole, killed = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    job(whole, 3)
    with kept_rows(killed, TEXTS) as kept:
        kept.add(text(2, missing_reason="failed"))
        for number in (2, 0, 1):
            kept.add(text(number))
    assert job(killed, 3) == 0
    assert killed.read_bytes() == whole.read_bytes()


def score(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "text_digest": name * 2, "signature": "s|v:0.1"} | more


def test_of_a_stream_what_is_there_must_be_how_it_begins(tmp_path: Path):
    path = write_rows(tmp_path / "s.jsonl", (score(name) for name in "ab"))
    with kept_rows(path, SCORES) as kept, pytest.raises(InputError, match=r"line 1: .*'a'"):
        kept.find(score("b"))
    with kept_rows(path, SCORES) as kept:
        assert kept.find(score("a")) is not None
        with pytest.raises(InputError, match="line 2: contains the score of another text"):
            kept.check_end()
    said = r"measured or made with other settings \(v: 0\.0 \| 0\.1\)"
    with kept_rows(path, SCORES) as kept, pytest.raises(InputError, match=said):
        kept.find(score("a", signature="s|v:0.0"))
