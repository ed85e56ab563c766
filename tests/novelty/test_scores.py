"""Rows of scores: what they hold, and that a run goes on where it was, with the same bytes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabula.core.errors import InputError
from fabula.core.store import read_rows, write_rows
from fabula.core.types import Document
from fabula.novelty.measure import ExcludeSame, Levels, OriginalityMeasure
from fabula.novelty.scores import run_measure, to_row
from fabula.reference.search import Reference

TEXTS = [
    Document("a", "One two three four five six seven.", author="Ann",
             meta={"model": "m", "n_words": 9}),
    Document("b", "nothing"),
    Document("c", "We saw one two three four five of them."),
]  # fmt: skip


@pytest.fixture
def measure(tmp_path: Path) -> OriginalityMeasure:
    held = Document("s", "Zero one two three four five.", author="Bob",
                    meta={"title": "Numbers", "year": 1900})  # fmt: skip
    return OriginalityMeasure(Reference.build([held], tmp_path / "ref"), levels=Levels(5, 6))


def run(measure: OriginalityMeasure, out: Path, texts: list[Document], **options: bool) -> bytes:
    list(run_measure(measure, texts, out, **options))
    return out.read_bytes()


def test_a_row_holds_numbers_spans_and_own_fields(measure: OriginalityMeasure, tmp_path: Path):
    first, second, _ = map(json.loads, run(measure, tmp_path / "s.jsonl", TEXTS).splitlines())
    assert (first["id"], first["n_words"], first["uniqueness"]) == ("a", 7, {"5": 2 / 7, "6": 1.0})
    assert first["creativity_index"] == 2 / 7 + 1
    assert (first["author"], first["model"], first["input_n_words"]) == ("Ann", "m", 9)
    (span,) = first["covered"]
    assert TEXTS[0].text[span["start"] : span["end"]] == "One two three four five"
    assert (span["n_words"], span["count"], span["n_documents"]) == (5, 1, 1)
    (source,) = span["sources"]
    about = {"id": "s", "title": "Numbers", "author": "Bob", "year": 1900}
    quoted = {"before": "Zero ", "text": "one two three four five", "after": "."}
    assert (about | quoted).items() <= source.items()
    assert (second["creativity_index"], second["missing_reason"]) == (None, "no_known_words")
    assert first["signature"].startswith("originality|match:verbatim|L:5-6|tok:")


@pytest.mark.parametrize(
    "other",
    [[Document("z", TEXTS[0].text)], [Document("a", "Another text altogether.")], TEXTS[:1]],
    ids=["another id", "another text", "fewer texts"],
)
def test_others_scores_are_not_overwritten(measure: OriginalityMeasure, tmp_path: Path, other: Any):
    before = run(measure, tmp_path / "s.jsonl", TEXTS)
    with pytest.raises(InputError, match=r"line \d: contains the score of another text"):
        run(measure, tmp_path / "s.jsonl", other)
    assert (tmp_path / "s.jsonl").read_bytes() == before
    assert run(measure, tmp_path / "s.jsonl", other, restart=True) != before


def test_own_fields_are_not_taken_for_measured_ones(measure: OriginalityMeasure, tmp_path: Path):
    own = {"curvature": 1, "spread": "wide", "missing_detail": "torn", "asked": 3, "model": "m"}
    unsaid = {"score": float("nan"), "half": "\ud83d"}
    text = Document("a", TEXTS[0].text, meta=own | unsaid)
    row = json.loads(run(measure, tmp_path / "s.jsonl", [text]))
    # What JSON cannot say becomes null.
    assert (row["model"], row["score"], row["half"]) == ("m", None, "?")
    assert {f"input_{name}" for name in own if name != "model"} <= row.keys()
    assert not {"curvature", "spread", "missing_detail"} & row.keys()


def test_a_run_goes_on_only_with_the_same_request(measure: OriginalityMeasure, tmp_path: Path):
    out = tmp_path / "s.jsonl"
    run(measure, out, TEXTS[:1])
    reference = measure.reference
    assert isinstance(reference, Reference)
    other = OriginalityMeasure(reference, levels=measure.levels, spread=3)
    assert str(other.signature) == str(measure.signature)
    with pytest.raises(InputError, match="measured or made with other settings"):
        run(other, out, TEXTS)
    own = ExcludeSame("author", {"Bob": frozenset([0])})
    same = OriginalityMeasure(reference, levels=measure.levels, exclude_same=own)
    out = tmp_path / "same.jsonl"
    bob, nobody = (replace(TEXTS[0], author=name) for name in ("Bob", ""))
    assert json.loads(run(same, out, [bob]))["creativity_index"] is None
    with pytest.raises(InputError, match="measured or made with other settings"):
        run(same, out, [replace(bob, author="Ann")])
    assert json.loads(run(same, tmp_path / "n.jsonl", [nobody]))["creativity_index"] is not None


def test_a_row_says_how_much_of_the_text_stands_in_the_reference(tmp_path: Path):
    held = [f"w{k}" for k in range(40)]
    reference = Reference.build([Document("s", " ".join(held))], tmp_path / "ref")
    measure = OriginalityMeasure(reference)
    new = [f"x{k}" for k in range(20)]
    # A run of 25 words is a copy, one of 7 is not.
    for text, share in ((held, 1.0), (held[:25] + new, round(25 / 45, 4)), (held[:7] + new, 0.0)):
        (result,) = measure.measure([Document("t", " ".join(text))])
        assert to_row(result)["in_reference"] == share


def test_rows_without_a_sketch_are_scored_again(measure: OriginalityMeasure, tmp_path: Path):
    path = tmp_path / "s.jsonl"
    whole = run(measure, path, TEXTS)
    rows = list(read_rows(path))
    del rows[0]["sketch"]
    write_rows(path, rows)
    with pytest.raises(InputError, match="written by another version"):
        run(measure, path, TEXTS)
    assert run(measure, path, TEXTS, restart=True) == whole
