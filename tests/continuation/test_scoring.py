"""Scores of many continuations: the same bytes on any number of processes; and their tables."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import rows_of, write_rows
from tests.conftest import if_installed

from fabula.continuation import scores
from fabula.continuation.scores import Continuation, Story, gold_continuations, score_rows
from fabula.continuation.tables import (
    SystemTable,
    compare_systems,
    system_records,
    system_tables,
    write_system_page,
)
from fabula.core.errors import InputError, MixError
from fabula.linguistic.metrics import METRICS, ToolChoice, open_tools, read_vocabulary
from fabula.show.sheet import csv_of, latex_of, render

CHOICE = ToolChoice()
Whole = tuple[list[Story], Path]
CONTEXT = ("The old king had a golden ring.", "He lost it in the garden.")


@pytest.fixture(scope="module")
def tools() -> None:
    if_installed(lambda: open_tools(CHOICE))


def stories(n: int) -> list[Story]:
    contexts = [(f"The king had {k} rings.", *CONTEXT) for k in range(n)]
    return [Story(f"p{k}", own, f"The king lost {k}.") for k, own in enumerate(contexts)]


def continuations(known: list[Story]) -> list[Continuation]:
    texts = ["The king found the ring.", "It rained!", "", None, "A dog."]
    return [
        Continuation(story.id, system, texts[(k + shift) % len(texts)])
        for k, story in enumerate(known)
        for shift, system in enumerate(("one", "two"))
    ] + gold_continuations(known)


@pytest.fixture(scope="module")
def whole(tools: None, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    known, out = stories(70), tmp_path_factory.mktemp("scores") / "scores.jsonl"
    score_rows(known, continuations(known), CHOICE, out)
    return known, out


def test_neither_processes_nor_order_change_a_byte_or_a_p_value(whole: Whole, tmp_path: Path):
    known, out = whole
    score_rows(known, continuations(known)[::-1], CHOICE, tmp_path / "two.jsonl", n_jobs=2)
    assert (tmp_path / "two.jsonl").read_bytes() == out.read_bytes()
    rows = rows_of(out)
    first = compare_systems(rows, ["one", "two", "gold"], n_permutations=999)
    other = compare_systems(rows, ["gold", "two", "one"], n_permutations=999)
    turned = {(t.number, t.b, t.a): t for t in other.tests}
    for test in first.tests:
        same = turned[test.number, test.a, test.b]
        assert (same.p, same.p_adjusted) == (test.p, test.p_adjusted)
        if test.difference.value is not None:
            assert same.difference.value == pytest.approx(-test.difference.value)


@pytest.mark.parametrize("cut", [0.2, 0.97])
def test_a_run_cut_short_goes_on_to_the_same_bytes(whole: Whole, tmp_path: Path, cut: float):
    known, out = whole
    data = out.read_bytes()
    path = tmp_path / "scores.jsonl"
    path.write_bytes(data[: int(cut * len(data))])
    advanced: list[int] = []
    rows = score_rows(known, continuations(known), CHOICE, path, advance=advanced.append)
    assert path.read_bytes() == data
    assert sum(advanced) == len(rows) == 210


def test_rows_of_other_texts_are_not_taken_over(whole: Whole):
    known, out = whole
    before = out.read_bytes()
    others = [Continuation(c.story_id, c.system, "Else.") for c in continuations(known)]
    with pytest.raises(InputError, match="`restart`"):
        score_rows(known, others, CHOICE, out)
    assert out.read_bytes() == before


def test_the_table_counts_what_is_missing_by_reason(whole: Whole):
    rows = rows_of(whole[1])
    table = compare_systems(rows, ["one", "two", "gold"], n_permutations=999)
    cell = table.cells["grammaticality", "one"]
    assert dict(cell.missing) == {"no_words": 14, "no_text": 14}
    assert cell.estimate.n == 42
    # an empty text has 0 words, a text that was not given has no length
    assert table.cells["sentence_length", "one"].estimate.n == 56
    shown = render(*system_tables(table))
    assert "missing, one: the system gave no text" in shown
    assert "nan" not in shown.lower()
    text = json.dumps(table.to_json(), allow_nan=False)
    # texts that were given, the empty ones among them
    assert json.loads(text)["systems"] == {"one": 56, "two": 56, "gold": 70}
    assert dict(table.cells["type_token_ratio", "one"].missing) == {"no_words": 14, "no_text": 14}
    assert table.cells["unique_trigram_ratio", "one"].estimate.n == 42 - 28  # two words have none
    assert "no difference can be marked" not in shown
    few = render(*system_tables(compare_systems(rows, n_permutations=30)))
    assert "take at least 60" in " ".join(few.split())


def test_ratios_count_the_words_of_the_whole_output(whole: Whole):
    base = {"missing": {}, "values": {m.id: 1.0 for m in METRICS if not m.is_of_all},
            "system": "s", "signature": "linguistic|v:1"}  # fmt: skip
    rows = [{**base, "id": "p1", "words": "a b a b c", "sentence_ends": [5]},
            {**base, "id": "p2", "words": "a b c d", "sentence_ends": [2, 4]}]  # fmt: skip
    table = compare_systems(rows, n_permutations=99)
    # a b c d of nine; aba bab abc of three, none across the end of a sentence
    assert table.cells["type_token_ratio", "s"].estimate.value == 4 / 9
    assert table.cells["unique_trigram_ratio", "s"].estimate.value == 3 / 3
    small = compare_systems(rows, vocabulary=frozenset("ab"), n_permutations=99)
    # a b of six; aba bab
    assert small.cells["type_token_ratio", "s"].estimate.value == 2 / 6
    assert small.cells["unique_trigram_ratio", "s"].estimate.value == 2 / 2
    assert "vocab:2@" in small.signature
    with pytest.raises(MixError, match="v: 1"):
        compare_systems([*rows, {**rows[0], "id": "p3", "signature": "linguistic|v:2"}])


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("{", "not JSON"), ("[1]", "not a JSON object"),
        ('{"id": 3, "context": []}', "not a passage"),
        ('{"id": "a", "context": "one string"}', "list of sentences"),
        ('{"id": "a", "context": ["x"], "gold": 7}', "gold is not a string"),
    ],
)  # fmt: skip
def test_contexts_that_are_none_say_so(tmp_path: Path, row: str, complaint: str):
    path = tmp_path / "passages.jsonl"
    path.write_text(row + "\n")
    with pytest.raises(InputError, match=rf"passages\.jsonl, line 1.*{complaint}"):
        scores.read_contexts(path)


@pytest.mark.usefixtures("tools")
def test_passages_know_their_chapter_and_scores_carry_it(tmp_path: Path):
    path = tmp_path / "passages.jsonl"
    fields = [{"book": "b", "chapter": 2}, {"book": "b", "chapter": 2}, {"book": "c"}, {}]
    row = {"context": list(CONTEXT), "gold": "It was so."}
    write_rows(path, [row | {"id": f"{k}"} | more for k, more in enumerate(fields)])
    known = scores.read_contexts(path)
    chapters = ["b/2", "b/2", "c", None]
    assert [story.chapter for story in known] == chapters
    rows = score_rows(known, gold_continuations(known), CHOICE, tmp_path / "scores.jsonl")
    assert [row["chapter"] for row in rows] == chapters
    assert compare_systems(rows, n_permutations=99).n_clusters == 3
    others = [replace(story, chapter="other") for story in known]
    with pytest.raises(InputError, match="choose another `out`"):
        score_rows(others, gold_continuations(others), CHOICE, tmp_path / "scores.jsonl")


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        (['{"id": "p0", "system": "s"}'], "needs id, system and text"),
        (['{"id": "p9", "system": "s", "text": "x"}'], "no passage 'p9'"),
        (['{"id": "p0", "system": "s", "text": 5}'], "use null"),
        (['{"id": "p0", "system": "s", "text": "x"}'] * 2, "already continued"),
        (['{"id": "p0", "system": "", "text": "x"}'], "name is empty"),
        (['{"id": "p0", "system": "a\\nb", "text": "x"}'], "control characters"),
        ([], "contains no continuations"),
        (['{"id": "p0", "system": "gold", "text": "x"}'], "rename it"),
    ],
)
def test_continuations_that_are_none_say_so(tmp_path: Path, rows: list[str], complaint: str):
    path = tmp_path / "systems.jsonl"
    path.write_text("\n".join(rows))
    with pytest.raises(InputError, match=complaint):
        # A system named gold and the books' own sentences do not mix.
        gold_continuations(stories(2), scores.read_continuations([path], stories(2)))


def test_a_vocabulary_is_words_by_line_or_a_table(tmp_path: Path):
    path = tmp_path / "v"
    path.write_text("<unknown>\t9\t<unknown>\nThe\t3\tThe\nking\n\n")
    assert read_vocabulary(path) == {"the", "king"}
    path.write_text("\n")
    with pytest.raises(InputError, match="contains no words"):
        read_vocabulary(path)


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
    values = csv.DictReader(files["values"].splitlines())
    rows = {(one["metric"], one["system"]): one for one in values}
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
    bare = [{key: value for key, value in one.items() if key != "chapter"} for one in rows]
    apart = compare_systems(bare, ["one", "two", "dealt"])
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
