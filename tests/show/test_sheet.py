"""A table is the same in the terminal, in LaTeX, in CSV and in HTML."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.core.errors import InputError
from fabula.core.settings import SettingsError
from fabula.core.types import Estimate
from fabula.jobs.shared_settings import TableFiles
from fabula.show.sheet import (
    Column,
    Missing,
    Sheet,
    csv_of,
    html_of,
    interval_notes,
    interval_shown,
    latex_of,
    number,
    render,
)

KAPPA = Estimate(0.412, 0.31, 0.5, 36, "bootstrap", "s", 12)
FEW = Estimate(0.2, None, None, 4, "bootstrap", "s", 4)
SHEET = Sheet(
    "judges",
    [Column("test"), Column("kappa", ".2f", with_interval=True), Column("share", ".0%")],
    [["[_1_ & a]", KAPPA, 0.5], ["two", FEW, None], ["three", Missing("refused"), 0.25]],
    about=("judge", "m"),
)


def records(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_terminal_shows_values_intervals_and_why_there_are_none():
    head, *lines = render(SHEET, *interval_notes(SHEET.estimates(), "stories")).splitlines()
    assert head.split() == ["test", "kappa", "95", "%", "interval", "share"]
    assert all(said in lines[0] for said in ("0.41", "0.31 to 0.50", "50%"))
    assert "- (n 4)" in lines[1]
    assert "missing: refused" in lines[2]
    assert lines[3].endswith("no interval from fewer than 10 stories")


def test_csv_holds_values_as_they_are_and_reasons_apart():
    other = Sheet("judges", SHEET.columns, [["one", KAPPA, 1.0]], about=("judge", "other"))
    panel = Sheet("experts", [Column("n", "d")], [[3]])
    files = csv_of([panel, SHEET, "a line", other])
    assert list(files) == ["experts", "judges"], "sheets of one name are one file"
    first, few, missing, another = records(files["judges"])
    assert (first["judge"], another["judge"]) == ("m", "other")
    assert (first["kappa"], first["kappa_low"], first["kappa_n"]) == ("0.412", "0.31", "36")
    assert (few["kappa_low"], few["kappa_n_units"], few["share"]) == ("", "4", "")
    assert (missing["kappa"], missing["kappa_missing"]) == ("", "refused")


def test_latex_escapes_names_and_keeps_lines_as_comments():
    latex = latex_of(["judge|v:1\nsecond", SHEET])
    assert latex.splitlines()[:3] == ["% Fabula", "% judge|v:1", "% second"]
    assert r"{}[\_1\_ \& a] & 0.41 & 0.31 to 0.50 & 50\% \\" in latex
    assert r"two & 0.20 & - (n 4) & -- \\" in latex
    assert r"\begin{tabular}{lrrr}" in latex


def test_html_escapes_everything():
    page = html_of([Sheet("t", [Column("<b>")], [["<script>"]]), "<i>"])
    assert not any(tag in page for tag in ("<script>", "<b>"))
    assert all(said in page for said in ("&lt;script&gt;", "<p>&lt;i&gt;</p>"))


def test_many_rows_are_cut_in_the_terminal_alone_and_may_have_forms_of_their_own():
    rows = [[f"t{k}", k] for k in range(50)]
    sheet = Sheet("texts", [Column("text"), Column("words", ",")], rows, many="texts")
    assert "and 10 more texts" in render(sheet)
    assert "t49" not in render(sheet)
    assert "t49" in latex_of([sheet])
    assert len(records(csv_of([sheet])["texts"])) == 50
    columns = [Column("metric"), Column("a text", "g")]
    own = Sheet("profile", columns, [["share", 0.25], ["words", 1200]], forms=[".0%", ","])
    assert [line.split()[-1] for line in render(own).splitlines()[1:]] == ["25%", "1,200"]


@given(st.integers(20, 200), st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=6))
def test_no_digit_is_cut_on_any_terminal(width: int, values: list[float]):
    columns = [Column("name", cut=True), *(Column(f"figure {k}", ",.3f") for k in range(6))]
    sheet = Sheet("s", columns, [["a long name of a row " * 3, *(values[0] for _ in range(6))]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        assert render(sheet).count(number(values[0], ",.3f")) == 6


def test_long_names_are_split_at_punctuation_where_the_table_is_too_wide(
    monkeypatch: pytest.MonkeyPatch,
):
    name = "local/smollm2-135m-instruct.q4_1@747cb1f0"
    titles = ["kind of fault", "read by", "stories", "noticed", "not noticed"]
    sheet = Sheet("some", [Column(title) for title in titles], [["original", name, 1, 2, 3]])
    monkeypatch.setenv("COLUMNS", "80")
    lines = [line.split() for line in render(sheet).splitlines()[1:]]
    parts = [lines[0][1], *(line[0] for line in lines[1:])]
    assert parts == ["local/smollm2-", "135m-instruct.", "q4_1@747cb1f0"]
    monkeypatch.setenv("COLUMNS", "120")
    assert name in render(sheet)


def test_files_are_named_after_their_tables_and_take_no_drafts_place(tmp_path: Path):
    panel = Sheet("experts", [Column("n", "d")], [[3]])
    files = TableFiles(csv=tmp_path / "t.csv", latex=tmp_path / "t.tex")
    names = [path.relative_to(tmp_path).as_posix() for path in files.write([panel, SHEET])]
    assert names == ["t.csv", "t.judges.csv", "t.tex"]
    files.check_files()
    (tmp_path / "t.tex").write_text("my thesis")
    with pytest.raises(InputError, match="was not written by Fabula"):
        files.check_files()
    with pytest.raises(SettingsError, match=r"must end with \.csv"):
        TableFiles(csv=tmp_path / "draft.txt")


def test_what_rounds_to_nothing_has_no_sign():
    assert [number(value, ".2f") for value in (-0.001, 0.001, -0.01)] == ["0.00", "0.00", "-0.01"]
    assert [number(-0.0004, form) for form in (".1%", "+.2f", "+.2%")] == ["0.0%", "0.00", "-0.04%"]
    ends = Estimate(0.0, -0.004, 0.004, 20, "", "")
    assert interval_shown(ends, ".2f") == "0.00 to 0.00"


def test_no_cell_of_a_table_is_a_formula_to_a_spreadsheet():
    sheet = Sheet("t", [Column("id"), Column("n", ".1f")], [["=HYPERLINK(1)", -1.5], ["-2", 3.0]])
    assert csv_of([sheet])["t"].splitlines() == ["id,n", "'=HYPERLINK(1),-1.5", "-2,3.0"]
