"""`fabula plan` as a user types it."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import invoke, write_rows
from tests.essay import ESSAY_TOML

from fabula.rubrics.load import load_rubric

ITEMS = [item.id for item in load_rubric("ttcw").items][:4]


def pilot(path: Path, n_stories: int = 30, n_raters: int = 3, authors: str = "") -> Path:
    rng = np.random.default_rng(7)
    chance = rng.beta(1, 1, (n_stories, 1, 1))
    if authors:
        chance[::2] = chance[::2] * 0.6
    said = rng.random((n_stories, len(ITEMS), n_raters)) < chance
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["document", "item", "rater", "value", *(["author"] if authors else [])])
        out.writerows(
            [f"s{d}", ITEMS[k], f"r{r}", int(yes), *authors[d % 2 : d % 2 + 1]]
            for (d, k, r), yes in np.ndenumerate(said)
        )
    return path


def run(*words: object) -> str:
    done = invoke("plan", *words, code=None)
    return done.output if done.exit_code in (0, 2) else str(done.exception)


def found(*words: object) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(run(*words, "--json"))
    return content


def test_two_groups_have_power(tmp_path: Path):
    labels = pilot(tmp_path / "pilot.csv", 60, 2, authors="AB")
    given = [labels, "--stories", "10,40,160", "--raters", 2, "--per-person", 5]
    content = found(*given)
    assert content["sizes"][1]["n_people"] == 32
    assert "share of Yes within 0.01: by none of these sizes" in run(*given, "--mean-width", 0.01)
    powers = [one["power"] for one in content["sizes"]]
    assert powers == sorted(powers)
    assert powers[0] < 0.5 < powers[2]
    assert content["sizes"][1]["n_readings"] == 160
    assert content["pilots"][0]["groups"] == ["A", "B"]
    assert "60 stories" not in run(labels)
    # Too few of each, but enough together.
    few = pilot(tmp_path / "few.csv", 14, 2, authors="AB")
    assert "the pilot has 14 stories" in run(few)
    assert "fewer than 10 stories of each group" in run(few, "--authors", "A,B")
    assert "30 stories by A and 30 stories by B" in run(labels)
    assert "must be two of the pilot's authors: A, B" in run(labels, "--authors", "A,C")
    # Authors may also be those of the stories.
    alone = pilot(tmp_path / "alone.csv", 60, 2)
    assert "the labels have no `author`" in run(alone, "--authors", "A,B")
    rows = [{"id": f"s{d}", "text": "x", "author": "AB"[d % 2]} for d in range(60)]
    stories = write_rows(tmp_path / "stories.jsonl", rows)
    assert "30 stories by A" in run(alone, "--documents", stories)


def test_what_cannot_be_planned_is_refused_with_its_name(tmp_path: Path):
    few, labels = pilot(tmp_path / "few.csv", n_stories=9), pilot(tmp_path / "pilot.csv")
    assert "few.csv: the pilot has fewer than 10 stories" in run(few)
    assert "--stories must be whole numbers" in run(labels, "--stories", "10,x")
    assert "--raters must be whole numbers" in run(labels, "--raters", "0")


def test_widths_are_those_of_the_bootstrap_of_the_released_verdicts(shared_data: Path):
    labels = shared_data / "ttcw" / "ttcw_annotations.json"
    (size,) = found(labels, "--stories", 48, "--raters", 3)["sizes"]
    done = invoke("judge", "agreement", "--labels", labels, "--json")
    overall = json.loads(done.stdout)["agreement"]["experts"][-1]["kappa"]
    assert size["kappa_width"] == pytest.approx(overall["high"] - overall["low"], rel=0.1)


def test_numbers_are_planned_item_by_item_and_what_has_no_order_says_why(tmp_path: Path):
    (tmp_path / "essay.toml").write_text(ESSAY_TOML)
    rng = np.random.default_rng(3)
    lines = ["document,item,rater,value"]
    for d, quality in enumerate(rng.integers(1, 6, 40)):
        for rater in ("r1", "r2", "r3"):
            mark = int(np.clip(quality + rng.integers(-1, 2), 1, 5))
            lines += [f"s{d},style,{rater},{mark}", f"s{d},grade,{rater},{'CBA'[mark // 2]}",
                      f"s{d},voice,{rater},{'Own' if mark > 3 else 'None'}"]  # fmt: skip
    labels = tmp_path / "pilot.csv"
    labels.write_text("\n".join(lines))
    given = [labels, "--rubric", tmp_path / "essay.toml", "--stories", "20,80"]
    content = found(*given)
    assert [one["item"] for one in content["pilots"]] == ["style", "grade"]
    assert content["why_missing"] == {"voice": "only yes-no items and numbers are planned"}
    # A tenth of the way from 1 to 5.
    assert content["pilots"][0]["mean_width"] == pytest.approx(0.4)
    style = [one for one in content["sizes"] if one["item"] == "style"]
    assert [one["kappa_width"] is None for one in style] == [True] * 2 + [False] * 4
    shown = " ".join(run(*given).split())
    assert "style: the pilot has 40 stories" in shown
    assert "mean within 0.4" in shown
    assert "not planned: voice" in shown
