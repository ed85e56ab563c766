"""What raters said, as numbers: the paper's mapping, means, and agreement by slow counts."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commands import write_rows

from fabula.core.errors import InputError
from fabula.core.store import located_rows
from fabula.core.types import Measurement
from fabula.raters.ratings import (
    category_shares,
    group_estimates,
    group_means,
    item_agreement,
    label_accuracy,
    mean_scores,
    rater_agreement,
    read_gold,
    score_table,
)
from fabula.rubrics.load import load_rubric

RUBRIC = load_rubric("feedback")


def said(document: str, item: str, value: str | None, rater: str = "a") -> Measurement:
    reason = "no_verdict" if value is None else None
    return Measurement(document, RUBRIC.key, item, rater, value, reason, (), None, "s")


def test_answers_count_as_in_the_paper():
    # Table 11 and appendix D.4 of Rashkin et al. 2025.
    expected = {
        "sanity": [1, 0, 0], "feedback_type": [1, 0, 0], "perfect_agree": [1, 0],
        "correctness": [1, 0.5, 0], "error_detection": [1, 0, 0], "specificity": [1, 0],
        "relevance": [1, 0.5, 0],
    }  # fmt: skip
    assert {item.id: list(item.scale.values) for item in RUBRIC.items} == expected


def test_a_missing_answer_has_no_part_in_a_mean():
    scores = score_table(
        [
            said("d1", "correctness", "All of it", "a"),
            said("d1", "correctness", "Some of it", "b"),
            said("d1", "correctness", None, "c"),
            said("d2", "correctness", "None of it"),
            said("d3", "correctness", None),
            said("d4", "another item", "Yes"),
        ],
        RUBRIC,
    )
    means = mean_scores(scores)
    assert means["correctness"] == {"d1": 0.75, "d2": 0.0}
    groups = group_means(means, {"d1": "x", "d2": "x", "d3": "x"}.get)
    found = groups["x"]["correctness"]
    values = np.array([0.75, 0.0])
    assert (found.n, found.mean) == (2, pytest.approx(values.mean()))
    # The standard error of the mean: its values' deviation over the root of their number.
    assert found.error == pytest.approx(values.std(ddof=1) / np.sqrt(2))
    assert groups["x"]["sanity"].mean is None


RATINGS = st.lists(
    st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=4), min_size=1, max_size=8
)


@given(RATINGS)
def test_agreement_is_that_of_a_slow_count(ratings: list[list[float]]):
    found = item_agreement({"sanity": {str(k): row for k, row in enumerate(ratings)}}, RUBRIC)[
        "sanity"
    ]
    several = [values for values in ratings if len(values) > 1]
    pairs = [1 - abs(a - b) for v in several for k, a in enumerate(v) for b in v[k + 1 :]]
    assert found.similarity == (pytest.approx(np.mean(pairs)) if pairs else None)


def test_a_rater_is_compared_with_people_where_both_answered():
    mine = {"1": 1.0, "2": 0.0, "3": 0.5, "5": 1.0}
    theirs = {"1": 1.0, "2": 0.5, "3": 0.0, "4": 1.0}
    found = rater_agreement(mine, theirs, lambda document: document)
    assert found["similarity"].n == 3
    assert found["similarity"].value == pytest.approx(np.mean([1, 0.5, 0.5]))
    assert found["correlation"].value == pytest.approx(np.corrcoef([1, 0, 0.5], [1, 0.5, 0])[0, 1])
    assert rater_agreement({}, theirs, str)["similarity"].value is None


def test_shares_leave_out_what_has_no_label():
    labels = {"1": "style", "2": "none", "3": None, "4": "style"}
    groups = {"1": "m", "2": "m", "3": "m", "4": "people"}
    shares = category_shares(labels, ["none", "style", "other"], lambda id_: (groups[id_],), str)
    assert [(s.group, s.n, s.n_missing, s.shares) for s in shares] == [
        (("m",), 2, 1, {"none": 0.5, "style": 0.5, "other": 0.0}),
        (("people",), 1, 0, {"none": 0.0, "style": 1.0, "other": 0.0}),
    ]


def test_a_label_is_right_where_it_is_among_the_gold_ones(tmp_path: Path):
    path = tmp_path / "gold.jsonl"
    rows = [{"id": "1", "labels": ["style", "clarity"]}, {"id": "2", "label": "none"},
            {"id": "3", "label": "other"}, {"id": "9", "label": "other"}]  # fmt: skip
    write_rows(path, rows)
    categories = ["none", "style", "clarity", "other"]
    gold = read_gold(located_rows(path), categories, "gold")
    found = label_accuracy({"1": "clarity", "2": "style", "3": None}, gold, str)
    assert (found.value, found.n) == (0.5, 2), "no label is neither right nor wrong"
    for wrong, expected in (
        ({"id": "1", "label": "colour"}, "line 1: 'colour' is not a category"),
        ({"id": "1"}, "line 1: a gold row needs"),
    ):
        path.write_text(json.dumps(wrong) + "\n")
        with pytest.raises(InputError, match=expected):
            read_gold(located_rows(path), categories, "gold")


def test_means_of_groups_have_n_and_intervals_over_stories():
    rng = np.random.default_rng(0)
    values = {f"d{k}": float(rng.random()) for k in range(240)}
    stories = {name: f"s{k % 30}" for k, name in enumerate(values)}
    found = group_estimates({"item": values}, lambda _: "all", stories.__getitem__)["all"]["item"]
    assert (found.n, found.n_units) == (240, 30)
    assert found.value == pytest.approx(np.mean(list(values.values())))
    # Against whole stories drawn in a loop.
    by_story = [[values[d] for d in values if stories[d] == f"s{k}"] for k in range(30)]
    means = [
        np.mean([v for k in rng.integers(30, size=30) for v in by_story[k]]) for _ in range(2000)
    ]
    assert (found.low, found.high) == pytest.approx(
        tuple(np.percentile(means, [2.5, 97.5])), abs=0.015
    )
    few = group_estimates({"item": values}, lambda d: stories[d] if d < "d2" else None,
                          stories.__getitem__)  # fmt: skip
    assert all(by_item["item"].low is None for by_item in few.values())


def test_shares_of_labels_have_intervals_over_stories():
    labels = {f"d{k}": None if k % 7 == 0 else "ab"[k % 2] for k in range(120)}
    (one,) = category_shares(
        labels, ["a", "b"], lambda _: ("m",), lambda id_: str(int(id_[1:]) % 20)
    )
    assert (one.n, one.n_missing) == (102, 18)
    assert one.intervals["a"].value == one.shares["a"] == 51 / 102
    assert one.intervals["a"].n_units == 20
    low, high = one.intervals["a"].low, one.intervals["a"].high
    assert 0 < low < 0.5 < high < 1
