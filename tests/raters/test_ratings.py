"""What raters said, as numbers: the paper's mapping, means, and agreement by slow counts."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commands import write_rows
from tests.judging.judged_stories import measured

from fabula.core.errors import InputError
from fabula.core.store import located_rows
from fabula.raters import ratings
from fabula.rubrics.load import load_rubric

RUBRIC = load_rubric("feedback")


def test_answers_count_as_in_the_paper():
    # Table 11 and appendix D.4 of Rashkin et al. 2025.
    expected = {
        "sanity": [1, 0, 0], "feedback_type": [1, 0, 0], "perfect_agree": [1, 0],
        "correctness": [1, 0.5, 0], "error_detection": [1, 0, 0], "specificity": [1, 0],
        "relevance": [1, 0.5, 0],
    }  # fmt: skip
    assert {item.id: list(item.scale.values) for item in RUBRIC.items} == expected


def test_a_missing_answer_has_no_part_in_a_mean():
    answers = [
        ("d1", "All of it", "a"), ("d1", "Some of it", "b"), ("d1", None, "c"),
        ("d2", "None of it", "a"), ("d3", None, "a"),
    ]  # fmt: skip
    answered = [("correctness", *one) for one in answers] + [("another item", "d4", "Yes", "a")]
    said = [measured(d, item, v, rater, rubric=RUBRIC) for item, d, v, rater in answered]
    means = ratings.mean_scores(ratings.score_table(said, RUBRIC))
    assert means["correctness"] == {"d1": 0.75, "d2": 0.0}
    groups = ratings.group_means(means, {"d1": "x", "d2": "x", "d3": "x"}.get)
    found = groups["x"]["correctness"]
    values = np.array([0.75, 0.0])
    assert (found.n, found.mean) == (2, pytest.approx(values.mean()))
    # The standard error of the mean: its values' deviation over the root of their number.
    assert found.error == pytest.approx(values.std(ddof=1) / np.sqrt(2))
    assert groups["x"]["sanity"].mean is None


MARKS = st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=4)


@given(st.lists(MARKS, min_size=1, max_size=8))
def test_agreement_is_that_of_a_slow_count(rows: list[list[float]]):
    scores = {"sanity": {str(k): row for k, row in enumerate(rows)}}
    found = ratings.item_agreement(scores, RUBRIC)["sanity"]
    several = [values for values in rows if len(values) > 1]
    pairs = [1 - abs(a - b) for v in several for k, a in enumerate(v) for b in v[k + 1 :]]
    assert found.similarity == (pytest.approx(np.mean(pairs)) if pairs else None)


def test_a_rater_is_compared_with_people_where_both_answered():
    mine = {"1": 1.0, "2": 0.0, "3": 0.5, "5": 1.0}
    theirs = {"1": 1.0, "2": 0.5, "3": 0.0, "4": 1.0}
    found = ratings.rater_agreement(mine, theirs, lambda document: document)
    assert found["similarity"].n == 3
    assert found["similarity"].value == pytest.approx(np.mean([1, 0.5, 0.5]))
    assert found["correlation"].value == pytest.approx(np.corrcoef([1, 0, 0.5], [1, 0.5, 0])[0, 1])
    assert ratings.rater_agreement({}, theirs, str)["similarity"].value is None


def test_a_label_is_right_where_it_is_among_the_gold_ones(tmp_path: Path):
    path = tmp_path / "gold.jsonl"
    rows = [{"id": "1", "labels": ["style", "clarity"]}, {"id": "2", "label": "none"},
            {"id": "3", "label": "other"}, {"id": "9", "label": "other"}]  # fmt: skip
    write_rows(path, rows)
    categories = ["none", "style", "clarity", "other"]
    gold = ratings.read_gold(located_rows(path), categories, "gold")
    found = ratings.label_accuracy({"1": "clarity", "2": "style", "3": None}, gold, str)
    assert (found.value, found.n) == (0.5, 2), "no label is neither right nor wrong"
    for wrong, expected in (({"label": "colour"}, "'colour' is not a category"),
                            ({}, "a gold row needs")):  # fmt: skip
        located = located_rows(write_rows(path, [{"id": "1"} | wrong]))
        with pytest.raises(InputError, match=f"line 1: {expected}"):
            ratings.read_gold(located, categories, "gold")


def test_means_of_groups_have_n_and_intervals_over_stories():
    rng = np.random.default_rng(0)
    values = {f"d{k}": float(rng.random()) for k in range(240)}
    stories = {name: f"s{k % 30}" for k, name in enumerate(values)}
    story_of = stories.__getitem__
    found = ratings.group_estimates({"item": values}, lambda _: "all", story_of)["all"]["item"]
    assert (found.n, found.n_units) == (240, 30)
    assert found.value == pytest.approx(np.mean(list(values.values())))
    of_one = ratings.group_estimates({"item": values}, story_of, story_of)
    assert of_one["s0"]["item"].low is None, "a story says nothing of others"
    # Against whole stories drawn in a loop.
    by_story = [[values[d] for d in values if stories[d] == f"s{k}"] for k in range(30)]
    draws = rng.integers(30, size=(2000, 30))
    means = [np.mean([v for k in draw for v in by_story[k]]) for draw in draws]
    ends = tuple(np.percentile(means, [2.5, 97.5]))
    assert (found.low, found.high) == pytest.approx(ends, abs=0.015)


def test_shares_leave_out_what_has_no_label_and_have_intervals_over_stories():
    labels = {f"d{k}": None if k % 7 == 0 else "ab"[k % 2] for k in range(120)}
    (m, people) = ratings.category_shares(
        labels, ["a", "b", "c"], lambda id_: ("people" if id_ == "d1" else "m",),
        lambda id_: str(int(id_[1:]) % 20),
    )  # fmt: skip
    assert (people.group, people.n, people.n_missing) == (("people",), 1, 0)
    assert people.shares == {"a": 0.0, "b": 1.0, "c": 0.0}
    assert (m.group, m.n, m.n_missing) == (("m",), 101, 18)
    assert m.shares == {"a": 51 / 101, "b": 50 / 101, "c": 0.0}
    assert (m.intervals["a"].value, m.intervals["a"].n_units) == (51 / 101, 20)
    low, high = m.intervals["a"].low, m.intervals["a"].high
    assert 0 < low < 0.5 < high < 1
