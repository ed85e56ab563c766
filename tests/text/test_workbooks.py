"""Workbooks as tables: what XlsxWriter writes is read back, and what is none is refused."""

from pathlib import Path

import pytest
import xlsxwriter

from fabula.core.errors import InputError
from fabula.text import read_table


def test_words_numbers_truths_and_gaps_are_read(tmp_path: Path):
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["id", "value", "is so", "note"])
        sheet.write_row(1, 0, ["a & <b>", 1.5, True, "x\n_x0041_"])
        sheet.write_string(3, 0, "=1+1")
        sheet.write_string(3, 3, "ü")
        book.add_worksheet().write(0, 0, "another sheet")
    assert [(dict(row), where.rpartition(",")[2]) for row, where in read_table(path)] == [
        ({"id": "a & <b>", "value": 1.5, "is so": True, "note": "x\n_x0041_"}, " row 2"),
        ({"id": "=1+1", "value": None, "is so": None, "note": "ü"}, " row 4"),
    ]


def test_a_file_that_is_no_workbook_is_refused(tmp_path: Path):
    path = tmp_path / "t.xlsx"
    path.write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(InputError, match=r"t\.xlsx"):
        list(read_table(path))
