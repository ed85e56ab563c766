"""Figures are drawn for every format, the same bytes for the same scores."""

import sys
from pathlib import Path

import pytest
from tests.commands import write_rows
from tests.groups.test_comparison import compare_scores, row

from fabula.core.errors import InputError
from fabula.groups.comparison import Comparison
from fabula.groups.tables import save_comparison
from fabula.novelty.tables import originality_table
from fabula.show.sheet import render


@pytest.fixture
def comparison(tmp_path: Path) -> Comparison:
    rows = [row(1.0 + k / 10, model=m) for k in range(5) for m in ("A", "B & <C>")]
    rows.append(row(None, model="D $x_1$"))
    return compare_scores([write_rows(tmp_path / "s.jsonl", rows)], by="model")


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_the_same_comparison_gives_the_same_bytes(
    comparison: Comparison, tmp_path: Path, ending: str
):
    for name in ("a", "b"):
        save_comparison(comparison, tmp_path / f"{name}.{ending}")
    first = (tmp_path / f"a.{ending}").read_bytes()
    assert first == (tmp_path / f"b.{ending}").read_bytes()
    if ending == "svg":
        assert b"B &amp; &lt;C&gt;" in first
        assert comparison.signatures["creativity_index"].encode() in first


def test_what_cannot_be_drawn_is_said(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(InputError, match=r"\.svg, \.pdf or \.png"):
        save_comparison(comparison, tmp_path / "a.gif")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'fabula\[plots\]'"):
        save_comparison(comparison, tmp_path / "a.svg")


def test_a_text_named_like_markup_is_shown_as_it_is():
    rows = [("[bold]a[/]", 10, 7.5, 0.9, None), ("b", 2, None, None, "too_short")]
    shown = render(*originality_table(rows, ["5", "6"], "signature"))
    assert "[bold]a[/]" in shown
    assert "missing: the text is too short" in shown
    assert "mean Creativity Index 7.500 over 1 text, 1 without one" in shown
