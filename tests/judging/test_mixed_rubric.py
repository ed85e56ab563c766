"""A rubric whose items are not all yes-no, from the command to table, JSON and page."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.commands import invoke, write_rows
from tests.judging.judged_stories import rubric_text
from tests.serving import Reply, prompt_of, serving

ITEMS: dict[str, Any] = {
    "ending": "Does the ending hold?",
    "grade": {"question": "How good is it?", "scale": {"kind": "number", "low": 1, "high": 5}},
    "worst": {"question": "What is weakest?", "title": "Weakest part",
              "scale": {"kind": "choice", "options": ["plot", "style"]}},
    "advice": {"question": "What would you change?", "scale": {"kind": "text"},
               "show_if": "ending == 'No'"},
}  # fmt: skip
MEAN = {"rule": "mean", "title": "Mean grade"}
GRADES = {"one": ["5", "4"], "two": ["2", "3"], "three": ["4", "4"]}


def scripted(body: dict[str, Any], _: int) -> Reply:
    prompt = prompt_of(body)
    story = next(name for name in GRADES if f"story {name}." in prompt)
    if "How good" in prompt:
        return f"{GRADES[story][body['seed'] % 2]}. Since it is."
    if "ending hold" in prompt:
        return "No. It stops." if story == "one" else "Yes. It is earned."
    if "weakest" in prompt:
        return "style. It is plain." if story == "two" else "plot. It is thin."
    return "Cut the first page."


@pytest.fixture
def stories(tmp_path: Path) -> Path:
    (tmp_path / "mixed.toml").write_text(rubric_text("mixed", ITEMS, aggregate=MEAN))
    (tmp_path / "one.txt").write_text("This is story one.")
    rows = [{"id": name, "text": f"This is story {name}."} for name in GRADES]
    return write_rows(tmp_path / "stories.jsonl", rows)


def judge(stories: Path, url: str, *more: object) -> Result:
    return invoke("judge", stories, "--rubric", stories.with_name("mixed.toml"), "--model",
                  f"{url}/v1#m", "--style", "verdict-first", "--yes", *more)  # fmt: skip


def test_each_scale_is_shown_as_what_it_is(stories: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "120")
    page, out = stories.with_name("page.html"), stories.with_name("run")
    with serving(scripted) as server:
        shown = judge(stories, server.url, "--out", str(out), "--html", str(page)).output
        rows = judge(stories, server.url, "--out", str(out), "--jsonl").output
    values = {
        (row["id"], row["item"]): row["value"]
        for row in map(json.loads, filter(lambda line: line.startswith("{"), rows.splitlines()))
    }
    grades = [values[name, "grade"] for name in GRADES]
    # The mean and the median by hand; the table leaves nothing of a grade as a share of Yes.
    of_grades = f"mean {sum(grades) / 3:.2f}, median {sorted(grades)[1]:g} (1 to 5)"
    assert values["one", "advice"] == "Cut the first page."
    flat, html = " ".join(shown.split()), page.read_text(encoding="utf-8")
    for said in (
        f"Grade {of_grades} 3 0", "Ending 66.7% Yes 3 0", "Weakest part plot 2, style 1 3 0",
        "Advice 1 text 1 2",
        "Mean grade, 1 to 5",  # and no mean of 0 or 1 with 1 to 5
        *(f"{name} {grade:g}" for name, grade in zip(GRADES, grades, strict=True)),
    ):  # fmt: skip
        assert said in flat
    for said in (of_grades, "plot 2, style 1", "What was answered", f"{grades[0]:g} (1 to 5)"):
        assert said in html
    assert not any(said in flat for said in ("0.0%", "passed"))
    assert not any(said in html for said in ("How many stories pass", " of 4"))


def test_samples_of_a_grade_are_a_mean_and_a_range(stories: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "120")
    page = stories.with_name("p.html")
    asked: Counter[str] = Counter()

    def answer(body: dict[str, Any], n: int) -> Reply:
        prompt = prompt_of(body)
        asked[prompt] += 1
        if "How good" in prompt:
            return f"{(2, 3, 5)[asked[prompt] - 1]}. So."
        if "weakest" in prompt:
            return "style. So." if asked[prompt] == 2 else "plot. So."
        return scripted(body, n)

    with serving(answer) as server:
        shown = judge(stories.with_name("one.txt"), server.url, "--out", stories.with_name("three"),
                      "--samples", 3, "--set", "models.parallel=1", "--html", page)  # fmt: skip
    flat, html = " ".join(shown.output.split()), page.read_text(encoding="utf-8")
    mean = "mean 3.33 of 3, from 2 to 5 (1 to 5)"
    for said in (mean, "plot (2 of 3)", "0% Yes of 3", "Cut the first page."):
        assert said in flat
    assert "333%" not in flat
    assert mean in html
    assert "3.333 (1 to 5)" in html


def test_means_of_different_ranges_are_not_taken(stories: Path):
    of_ten = {"question": "How good is it, of ten?",
              "scale": {"kind": "number", "low": 1, "high": 10}}  # fmt: skip
    text = rubric_text("mixed", {**ITEMS, "style": of_ten}, aggregate=MEAN)
    stories.with_name("mixed.toml").write_text(text)
    with serving(scripted) as server:
        shown = judge(stories, server.url, "--out", str(stories.with_name("run"))).output
    assert "Style" in shown
    assert "no mean: the items' numbers have different ranges" in " ".join(shown.split())
    assert "Mean grade" not in shown
