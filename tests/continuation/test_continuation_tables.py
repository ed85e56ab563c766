import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabula.continuation.tables import (
    SystemTable,
    compare_systems,
    system_records,
    system_tables,
    write_system_page,
)
from fabula.linguistic.metrics import METRICS
from fabula.show.sheet import csv_of, latex_of, render

HOSTILE = "<script>alert(1)</script> & 50% _x_"


def row(system: str, name: str, value: float | None) -> dict[str, Any]:
    ids = [metric.id for metric in METRICS if not metric.is_of_all]
    return {
        "id": name, "system": system, "values": dict.fromkeys(ids, value),
        "missing": {} if value is not None else dict.fromkeys(ids, "no_text"),
        "words": "" if value is None else f"w{name} the",
        "sentence_ends": [] if value is None else [2], "signature": "linguistic|v:1",
    }  # fmt: skip


@pytest.fixture(scope="module")
def table() -> SystemTable:
    rng = np.random.default_rng(0)
    rows = [
        row(system, str(k), None if system == "silent" else shift + float(rng.normal()))
        for system, shift in (("low", 0.0), ("high", 3.0), (HOSTILE, 0.1), ("silent", 0.0))
        for k in range(40)
    ]
    return compare_systems(rows, ["low", "high", HOSTILE, "silent"], n_permutations=999)


def test_marks_say_which_systems_are_below(table: SystemTable):
    assert table.beats("noun_phrases", "high", "low")
    assert not table.beats("noun_phrases", "low", "high")
    lines = render(*system_tables(table)).splitlines()
    line = next(line for line in lines if "Noun phrases" in line)
    values = line.split()[3:]
    assert values[1].endswith("*‡")
    assert values[3] == "-"
    assert "missing, silent: the system gave no text; in metrics 1 (40), 2 (40)" in "".join(lines)


def test_nothing_in_a_name_becomes_html_or_latex(table: SystemTable, tmp_path: Path):
    page = tmp_path / "page.html"
    write_system_page(page, table)
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    latex = latex_of(system_tables(table))
    assert r"\& 50\% \_x\_" in latex
    noun_phrases = next(line for line in latex.splitlines() if "Noun phrases" in line)
    assert r"*\ddag{}" in noun_phrases
    assert all(line.isascii() for line in latex.splitlines() if not line.startswith("%"))


def test_csv_and_json_read_back_as_the_table(table: SystemTable):
    files = csv_of(system_records(table))
    rows = {
        (one["metric"], one["system"]): one for one in csv.DictReader(files["values"].splitlines())
    }
    cell = table.cells["noun_phrases", "high"].estimate
    assert float(rows["noun_phrases", "high"]["value"]) == cell.value
    silent = rows["noun_phrases", "silent"]
    assert (silent["value"], silent["missing"]) == ("", "40")
    pairs = list(csv.DictReader(files["pairs"].splitlines()))
    assert len(pairs) == 15 * 6
    assert {pair["p"] for pair in pairs if pair["b"] == "silent"} == {""}
    read = json.loads(json.dumps(table.to_json(), allow_nan=False))
    metric = next(m for m in read["metrics"] if m["id"] == "noun_phrases")
    assert metric["values"]["silent"] == dict.fromkeys(("value", "low", "high")) | {
        "n": 0, "missing": {"no_text": 40},
    }  # fmt: skip
    pair = next(p for p in metric["contrasts"] if (p["a"], p["b"]) == ("low", "high"))
    # three pairs were tested, the silent system's were not
    assert pair["p_bonferroni"] == pytest.approx(min(1, 3 * pair["p"]))


def in_chapters(n_chapters: int, n_each: int = 6) -> list[dict[str, Any]]:
    """Systems whose texts suit some chapters: passages of one chapter are alike."""
    rng = np.random.default_rng(4)
    rows = []
    for chapter in range(n_chapters):
        suits = float(rng.normal())
        for k in range(n_each):
            for system, shift in (("one", suits), ("two", 0.0), ("dealt", 0.1)):
                value = shift + float(rng.normal(0, 0.2))
                rows.append(row(system, f"{chapter}/{k}", value) | {"chapter": f"book/{chapter}"})
    return rows


def test_passages_of_a_chapter_are_one_unit_of_tests_and_intervals():
    rows = in_chapters(12)
    table = compare_systems(rows, ["one", "two", "dealt"], controls=["dealt"])
    apart = compare_systems(
        [{key: value for key, value in one.items() if key != "chapter"} for one in rows],
        ["one", "two", "dealt"],
    )
    assert (table.n_clusters, table.unit) == (12, "chapters")
    assert (apart.n_clusters, apart.unit) == (72, "passages")
    assert "units:12-chapters|controls:dealt" in table.signature
    assert "test:permutation,paired" in table.signature
    mine, independent = (t.cells["noun_phrases", "one"].estimate for t in (table, apart))
    assert (mine.value, mine.n, mine.n_units) == (independent.value, 72, 12)
    assert mine.high - mine.low > 1.5 * (independent.high - independent.low)
    (test, *_) = (t for t in table.tests if t.number == "noun_phrases")
    # Twelve chapters change places in 2,048 ways, all of which are tried; one pair is tested.
    assert test.p * 2048 == pytest.approx(round(test.p * 2048))
    assert test.details["p_bonferroni"] == test.p
    shown = " ".join(render(*system_tables(table)).split())
    assert "units: 12 chapters" in shown
    assert "corrected separately, as a control: pairs with dealt" in shown
    assert "passages are treated as independent" in " ".join(render(*system_tables(apart)).split())


def test_few_chapters_mark_nothing_and_the_table_says_why(tmp_path: Path):
    table = compare_systems(in_chapters(3), ["one", "two", "dealt"])
    shown = " ".join(render(*system_tables(table)).split())
    # Three chapters: p is at least 1 / 4, after three pairs 0.75.
    assert table.least_p == 0.75
    assert "with 3 chapters and 10,000 permutations no corrected p-value is below 0.75" in shown
    assert "take more chapters" in shown
    assert table.cells["noun_phrases", "one"].estimate.low is None
    page = tmp_path / "page.html"
    write_system_page(page, table)
    assert "no interval from fewer than 10 chapters" in page.read_text(encoding="utf-8")
