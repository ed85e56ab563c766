"""Printed numbers: as printed, compared at their digits, never equal where ours is missing."""

import csv
import io
import math
from collections import Counter
from decimal import Decimal
from importlib.resources import files

import pytest

from fabula.replicate.tables import Claim, agreement_lines, claim_sheet, load_printed
from fabula.show.sheet import csv_of, latex_of, render

PAPERS = ("ttcw", "linguistic_metrics", "creativity_index", "story_feedback")


def claim(printed: str, computed: float | None, why: str = "") -> Claim:
    return Claim("Table 1", "row", "column", Decimal(printed), computed, why)


@pytest.mark.parametrize(
    ("printed", "computed", "differs"),
    [
        # Half of the last digit rounds either way.
        ("0.41", 0.415, False), ("0.42", 0.415, False), ("0.40", 0.415, True),
        ("0.43", 0.415, True), ("0.42", 0.4149, True), ("0.41", 0.4149, False),
        # One digit asks for less than two.
        ("0.4", 0.4149, False), ("0.40", 0.4049, False), ("0.40", 0.4051, True),
        ("-0.55", -0.5549, False), ("-0.55", 0.55, True), ("102.5", 102.54, False),
        ("13", 13.4, False), ("13", 13.6, True), ("0.00", math.nan, True),
    ],
)  # fmt: skip
def test_numbers_are_compared_at_the_printed_digits(printed: str, computed: float, differs: bool):
    assert claim(printed, computed).differs is differs


def test_a_missing_number_is_never_equal_and_has_a_reason():
    one = claim("0.00", None, "nobody counted")
    assert one.differs is None
    assert one.shown() == "missing (0.00)"
    assert one.to_json()["computed"] is None
    assert one.to_json()["why"] == "nobody counted"
    assert agreement_lines([one, claim("0.5", 0.5)]) == [
        "ours (printed): 1 of 1 agree at the printed digits; ! where not",
        "missing: 1 of 2, nobody counted",
    ]
    with pytest.raises(ValueError, match="missing without a reason"):
        claim("0.00", None)


def test_a_sheet_shows_claims_among_other_numbers_everywhere():
    claims = [
        claim("27.9", 27.7778, "a slip"),
        Claim("Table 1", "b", "column", Decimal("0.50"), 0.5),
    ]
    sheet = claim_sheet(
        "t", {"row": "first", "b": "second"}, {"column": "ours (printed)", "other": "more"},
        claims, {("row", "other"): 1.0}, form=".2f",
    )  # fmt: skip
    shown = [line.split() for line in render(sheet).splitlines()]
    assert shown[1:] == [
        ["first", "27.8", "(27.9)", "!", "1.00"], ["second", "0.50", "(0.50)", "-"],
    ]  # fmt: skip
    assert "27.8 (27.9) ! & 1.00" in latex_of([sheet])
    first, second = csv.DictReader(io.StringIO(csv_of([sheet])["t"]))
    assert first == {
        "row": "first", "column": "27.7778", "column_printed": "27.9", "column_differs": "True",
        "column_why": "a slip", "other": "1.0",
    }  # fmt: skip
    assert (second["column_printed"], second["column_differs"]) == ("0.50", "False")


@pytest.mark.parametrize("paper", PAPERS)
def test_printed_numbers_are_numbers_and_each_stands_once(paper: str):
    text = (files("fabula.replicate") / "printed" / f"{paper}.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert list(rows[0]) == ["table", "row", "column", "printed"]
    places = Counter((row["table"], row["row"], row["column"]) for row in rows)
    assert max(places.values()) == 1
    printed = load_printed(paper)
    assert [str(number) for number in printed.values()] == [row["printed"] for row in rows]
