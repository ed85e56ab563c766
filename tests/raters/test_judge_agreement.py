"""Panels of experts of any size: nobody who joins drops what others said."""

from pathlib import Path

import numpy as np
import pytest

from fabula.core.types import Measurement
from fabula.raters.agreement import judge_agreement, panel_agreement, panel_of, read_experts
from fabula.rubrics.load import load_rubric

TTCW = load_rubric("ttcw")


def verdicts_of(path: Path) -> list[tuple[str, str, str, float]]:
    panel = read_experts(path, TTCW)
    return [
        (story, item, f"e{k}", float(value))
        for (story, item), row in zip(panel.subjects, panel.ratings, strict=True)
        for k, value in enumerate(row)
    ]


def test_a_fourth_expert_on_one_story_drops_no_other_story(shared_data: Path):
    verdicts = verdicts_of(shared_data / "ttcw" / "ttcw_annotations.json")
    fourth = [(verdicts[0][0], item.id, "fourth", 1.0) for item in TTCW.items]
    three, four = (
        panel_agreement(panel_of(rows, "f"), TTCW, "item")
        for rows in (verdicts, [*verdicts, *fourth])
    )
    # Chakrabarty et al. 2024, Table 5: over all 48 stories the average of 14 kappas is 0.40.
    assert np.mean([row.kappa.value for row in three[:-1]]) == pytest.approx(0.40, abs=0.005)
    for before, after in zip(three, four, strict=True):
        assert after.kappa.n == before.kappa.n
        assert after.kappa.n_units == before.kappa.n_units == 48
        assert after.kappa.value == pytest.approx(before.kappa.value, abs=0.03)
        assert "raters:3|" in before.kappa.signature
        assert "raters:3-4|" in after.kappa.signature
    assert (four[-1].name, four[-1].kappa.n) == ("all", 672)


def test_stories_of_one_expert_have_no_pair_and_are_not_counted():
    item = TTCW.items[0].id
    verdicts = [("alone", item, "a", 1.0)]
    verdicts += [(f"{k}", item, rater, float(k % 2)) for k in range(12) for rater in "ab"]
    (*_, row) = panel_agreement(panel_of(verdicts, "f"), TTCW, "item")
    assert (row.kappa.value, row.kappa.n, row.kappa.n_units) == (1.0, 12, 12)


def test_subjects_on_which_experts_are_split_are_counted():
    item = TTCW.items[0].id
    verdicts = [("split", item, rater, value) for rater, value in (("a", 1.0), ("b", 0.0))]
    verdicts += [(f"{k}", item, rater, float(k % 2)) for k in range(3) for rater in "ab"]
    said = [
        Measurement(story, "ttcw", item, "m", 1.0, None, (), None, "s")
        for story in ("split", "0", "1")
    ]
    found = judge_agreement(said, panel_of(verdicts, "f"), TTCW, "item")
    assert (found.n_ties, found.overall.confusion.n) == (1, 2)
