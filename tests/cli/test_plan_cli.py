"""`fabula plan raters` as a user types it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from tests.essay import ESSAY_TOML

from fabula.cli.main import cli
from fabula.rubrics import load_rubric

ITEMS = [item.id for item in load_rubric("ttcw").items][:4]


def pilot(path: Path, n_stories: int = 30, n_raters: int = 3) -> Path:
    rng = np.random.default_rng(7)
    chance = rng.beta(1, 1, (n_stories, 1, 1))
    said = rng.random((n_stories, len(ITEMS), n_raters)) < chance
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["document", "item", "rater", "value"])
        out.writerows(
            [f"s{d}", ITEMS[k], f"r{r}", int(yes)] for (d, k, r), yes in np.ndenumerate(said)
        )
    return path


def run(*words: object) -> str:
    done = CliRunner().invoke(cli, ["plan", "raters", *map(str, words)])
    return done.stdout if done.exception is None else str(done.exception)


def test_it_says_how_many_stories_each_number_of_raters_takes(tmp_path: Path) -> None:
    labels = pilot(tmp_path / "pilot.csv")
    found = json.loads(run(labels, "--max-raters", 4, "--kappa-width", 0.3, "--json"))
    rows = found["rows"]
    assert [row["n_raters"] for row in rows] == [1, 2, 3, 4]
    assert rows[0]["kappa_stories"] is None
    needed = [row["kappa_stories"] for row in rows[1:]]
    assert needed == sorted(needed, reverse=True)
    assert rows[2]["kappa_readings"] == 3 * rows[2]["kappa_stories"]
    shown = run(labels, "--max-raters", 4, "--kappa-width", 0.3)
    assert "0.3 (Fleiss's kappa)" in shown
    narrower = json.loads(run(labels, "--kappa-width", 0.15, "--json"))["rows"]
    assert narrower[1]["kappa_stories"] > 3 * rows[1]["kappa_stories"]


def test_the_same_seed_gives_the_same_plan(tmp_path: Path) -> None:
    labels = pilot(tmp_path / "pilot.csv")
    assert run(labels, "--json") == run(labels, "--json")


def test_a_pilot_that_is_too_small_is_refused_with_its_name(tmp_path: Path) -> None:
    said = run(pilot(tmp_path / "few.csv", n_stories=9))
    assert "few.csv: the pilot has fewer than 10 stories" in said
    alone = run(pilot(tmp_path / "alone.csv", n_raters=1))
    assert "alone.csv: fewer than 10 stories of the pilot have two raters" in alone


def test_predicted_widths_are_those_of_the_bootstrap_of_the_released_verdicts(
    shared_data: Path,
) -> None:
    labels = shared_data / "ttcw" / "ttcw_annotations.json"
    found = json.loads(run(labels, "--json"))["pilot"]
    for name in ("mean", "kappa"):
        width = found[name]["high"] - found[name]["low"]
        assert found["predicted"][name] == pytest.approx(width, rel=0.1)
    assert found["n_stories"] == 48
    assert found["n_raters"] == 3


def test_numbers_are_planned_item_by_item_and_what_has_no_order_says_why(tmp_path: Path) -> None:
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
    given = [labels, "--rubric", tmp_path / "essay.toml", "--max-raters", 3]
    found = json.loads(run(*given, "--json"))
    assert (found["rows"], found["pilot"]) == ([], None), "there are no yes-no verdicts"
    assert set(found["items"]) == {"style", "grade"}
    assert found["why_missing"] == {"voice": "only yes-no items and numbers are planned"}
    # A tenth of the way from 1 to 5.
    style = found["items"]["style"]
    assert style["mean_width"] == pytest.approx(0.4)
    assert [row["kappa_stories"] is None for row in style["rows"]] == [True, False, False]
    shown = run(*given)
    assert "style: 95 % intervals no wider than 0.4 (mean)" in shown
    assert "not planned: voice" in shown
