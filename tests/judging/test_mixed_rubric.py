"""A rubric whose items are not all yes-no, from the command to table, JSON and page."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.commands import invoke, write_rows
from tests.serving import Reply, prompt_of, serving

RUBRIC = """
id = "mixed"
version = "1"
title = "Mixed"
[aggregate]
rule = "mean"
title = "Mean grade"
[[items]]
id = "ending"
index = 1
title = "Ending"
question = "Does the ending hold?"
[[items]]
id = "grade"
index = 2
title = "Grade"
question = "How good is it?"
scale = { kind = "number", low = 1, high = 5 }
[[items]]
id = "worst"
index = 3
title = "Weakest part"
question = "What is weakest?"
scale = { kind = "choice", options = ["plot", "style"] }
[[items]]
id = "advice"
index = 4
title = "Advice"
question = "What would you change?"
scale = { kind = "text" }
show_if = "ending == 'No'"
"""
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
    (tmp_path / "mixed.toml").write_text(RUBRIC)
    rows = [{"id": name, "text": f"This is story {name}."} for name in GRADES]
    return write_rows(tmp_path / "stories.jsonl", rows)


def judge(stories: Path, url: str, *more: str) -> Result:
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
    mean, median = sum(grades) / 3, sorted(grades)[1]
    flat = " ".join(shown.split())
    assert f"Grade mean {mean:.2f}, median {median:g} (1 to 5) 3 0" in flat
    assert "Ending 66.7% Yes 3 0" in flat
    assert "Weakest part plot 2, style 1 3 0" in flat
    assert "Advice 1 text 1 2" in flat
    assert "0.0%" not in flat
    assert "passed" not in flat
    assert values["one", "advice"] == "Cut the first page."
    # No mean of 0 or 1 with 1 to 5.
    assert "Mean grade, 1 to 5" in flat
    for name, grade in zip(GRADES, grades, strict=True):
        assert f"{name} {grade:g}" in flat
    html = page.read_text(encoding="utf-8")
    assert f"mean {mean:.2f}, median {median:g} (1 to 5)" in html
    assert "plot 2, style 1" in html
    assert "What was answered" in html
    assert "How many stories pass" not in html
    assert f"{grades[0]:g} (1 to 5)" in html
    assert " of 4" not in html


def test_samples_of_a_grade_are_a_mean_and_a_range(stories: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "120")
    one = stories.with_name("one.txt")
    one.write_text("This is story one.")
    asked: dict[str, int] = {}

    def answer(body: dict[str, Any], n: int) -> Reply:
        prompt = prompt_of(body)
        asked[prompt] = asked.get(prompt, 0) + 1
        k = asked[prompt]
        if "How good" in prompt:
            return f"{(2, 3, 5)[k - 1]}. So."
        if "weakest" in prompt:
            return "style. So." if k == 2 else "plot. So."
        return scripted(body, n)

    with serving(answer) as server:
        out, page = str(stories.with_name("three")), str(stories.with_name("p.html"))
        shown = judge(
            one,
            server.url,
            "--out",
            out,
            "--samples",
            "3",
            "--set",
            "models.parallel=1",
            "--html",
            page,
        ).output
    flat = " ".join(shown.split())
    assert "mean 3.33 of 3, from 2 to 5 (1 to 5)" in flat
    assert "plot (2 of 3)" in flat
    assert "0% Yes of 3" in flat
    assert "Cut the first page." in flat
    assert "333%" not in flat
    html = stories.with_name("p.html").read_text(encoding="utf-8")
    assert "mean 3.33 of 3, from 2 to 5 (1 to 5)" in html
    assert "3.333 (1 to 5)" in html


def test_a_report_shows_each_scale_as_what_it_is(stories: Path):
    page = stories.with_name("report.html")
    one = stories.with_name("one.txt")
    one.write_text("This is story one.")
    with serving(scripted) as server:
        done = invoke("report", one, "--out", page, "--model", f"{server.url}/v1#m", "--rubric",
                      stories.with_name("mixed.toml"), "--style", "verdict-first", "--yes",
                      "--without", "originality", "--without", "profile", "--without",
                      "feedback")  # fmt: skip
    html = page.read_text(encoding="utf-8")
    assert "(1 to 5)" in html
    assert "Cut the first page." in html
    assert " of 4" not in html
    flat = " ".join(done.output.split())
    assert "Mean grade" in flat


def test_means_of_different_ranges_are_not_taken(stories: Path):
    file = stories.with_name("mixed.toml")
    file.write_text(RUBRIC.replace("[[items]]\nid = \"advice\"", """[[items]]
id = "style"
index = 5
title = "Style"
question = "How good is it, of ten?"
scale = { kind = "number", low = 1, high = 10 }
[[items]]
id = "advice\""""))  # fmt: skip
    with serving(scripted) as server:
        shown = judge(stories, server.url, "--out", str(stories.with_name("run"))).output
    assert "Style" in shown
    assert "no mean: the items' numbers have different ranges" in " ".join(shown.split())
    assert "Mean grade" not in shown
