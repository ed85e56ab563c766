"""Inputs that once broke a parser: each ends in a sentence, or in a result.

`bench/fuzz.py` found them (`make fuzz` goes on); every one is kept in `golden/fuzz/TARGET/`.
"""

from pathlib import Path

import pytest

from fuzz import Target, defect, targets

KEPT = sorted((Path(__file__).parent / "golden" / "fuzz").glob("*/*"))


@pytest.fixture(scope="module")
def known() -> dict[str, Target]:
    return targets()


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_once_broke_a_parser_no_longer_does(path: Path, known: dict[str, Target]):
    assert defect(known[path.parent.name], path.read_bytes()) is None
