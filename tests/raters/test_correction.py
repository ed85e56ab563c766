"""A judge that is corrected by experts says what they would have said, or why it cannot."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.essay import ESSAY
from tests.judging.judged_stories import TTCW, measured

from fabula.core.errors import InputError
from fabula.core.types import Measurement, Rubric
from fabula.raters.corrected_means import correct
from fabula.raters.labels import labels_of, read_labels
from fabula.replicate.ttcw import released_verdicts
from fabula.stats.prediction_powered import corrected_mean

FIRST, SECOND = TTCW.items[0].id, TTCW.items[1].id
GRADES = replace(ESSAY, items=ESSAY.items[1:2])
"""Its one number, which has a mean of its own."""


def judged(values: dict[tuple[str, str], float | None], rubric: Rubric = TTCW) -> list[Measurement]:
    return [measured(*key, value, rubric=rubric) for key, value in values.items()]


Labels = list[tuple[str, str, str, object]]


def labels(rows: Labels, rubric: Rubric = TTCW) -> list[Measurement]:
    named = ("document", "item", "rater", "value")
    placed = ((dict(zip(named, row, strict=True)), "row") for row in rows)
    return labels_of(placed, rubric, "labels.csv")


def author_of(story: str) -> str:
    return story.partition("_")[2]


def test_a_released_judge_is_corrected_by_the_experts_of_twelve_stories(shared_data: Path):
    folder = shared_data / "ttcw"
    experts = read_labels(folder / "ttcw_annotations.json", TTCW)
    judge = released_verdicts(folder / "llm_judges" / "annotations_claude3-opus.jsonl", TTCW)
    stories = sorted({one.document_id for one in judge})
    known = set(np.random.default_rng(1).permutation(stories)[:12])
    some = [one for one in experts if one.document_id in known]
    found = correct(judge, some, TTCW)
    # The judge says Yes far more often than experts do, and the correction finds these.
    truth = float(np.mean([one.value for one in experts]))
    # By majority they pass 33.9 % (Chakrabarty et al. 2024, Table 5, as the mean of its rates).
    everyone = correct(judge, experts, TTCW, truth="majority")
    assert everyone.overall.value == pytest.approx(0.339, abs=0.0005)
    overall = found.overall
    assert overall.raw > 0.6
    assert overall.low < truth < overall.high < overall.raw
    assert (overall.n_labelled, overall.n) == (12, 48)
    # The same from the statistics alone: a document is the mean of its answers.
    others = [s for s in stories if s not in known]

    def means(said: list[Measurement], names: Any) -> Any:
        return np.array([np.mean([m.value for m in said if m.document_id == s]) for s in names])

    plain = corrected_mean(means(experts, known), means(judge, known), means(judge, others))
    assert overall.value == pytest.approx(plain.value)
    assert (len(found.items), len(found.to_label)) == (14, 5)
    assert not known & set(found.to_label)
    assert "correction:ppi++" in found.signature
    assert "annotations.json@" in found.signature


def test_a_difference_that_only_the_judge_sees_goes():
    """Two authors who pass half of the tests; the judge passes all of one and none of the other."""
    rng = np.random.default_rng(0)
    keys = [(f"{k}_{a}", item) for a in "ab" for k in range(60) for item in (FIRST, SECOND)]
    said: Any = {key: float(key[0].endswith("a")) for key in keys}
    few = [key for key in keys if int(key[0][:-2]) < 10]
    rows: Labels = [(*key, "Ann", int(rng.random() < 0.5)) for key in few]
    found = correct(judged(said), labels(rows), TTCW, group_of=author_of)
    (contrast,) = found.differences
    assert contrast.details["raw"] == 1.0
    difference = contrast.difference
    assert abs(difference.value) < 0.3
    assert difference.low < 0 < difference.high
    # Student's interval, so the value is its middle.
    assert (difference.low + difference.high) / 2 == pytest.approx(difference.value)
    assert contrast.p_adjusted > 0.05
    assert [row.name for row in found.groups] == ["a", "b"]
    # Documents to label next come from both groups, whose spread is about the same.
    assert {author_of(story) for story in found.to_label} == {"a", "b"}


def test_a_group_without_labels_has_no_figure_and_no_overall_either():
    said = {(f"{k}_{author}", FIRST): 1.0 for k in range(8) for author in "ab"}
    rows = [(f"{k}_a", FIRST, "Ann", k % 2) for k in range(5)]
    found = correct(judged(said), labels(rows), TTCW, group_of=author_of)
    a, b = found.groups
    assert a.value is not None
    assert (b.value, b.reason) == (None, "nothing is labelled")
    assert (found.overall.value, found.overall.reason) == (None, "see b")
    assert found.differences[0].difference.value is None
    # What is not known at all is labelled first.
    assert author_of(found.to_label[0]) == "b"


def test_labels_that_are_no_random_draw_are_refused():
    said = {(f"{k}", FIRST): float(k >= 30) for k in range(60)}
    rows = [(f"{k}", FIRST, "Ann", k % 2) for k in range(12)]
    found = correct(judged(said), labels(rows), TTCW)
    assert found.overall.value is None
    assert found.overall.reason == "labelled documents are unlike the others"
    assert found.overall.raw == 0.5
    with pytest.raises(InputError, match="check that the ids match"):
        correct(judged(said), labels([("b", FIRST, "Ann", 1)]), TTCW)


def test_what_is_missing_is_counted_and_never_a_no():
    said: Any = {(f"{k}", item): 1.0 for k in range(12) for item in (FIRST, SECOND)}
    said |= {("11", FIRST): None, ("11", SECOND): None, ("10", FIRST): None, ("9", FIRST): 0.5}
    rows: Labels = [(f"{k}", item, "Ann", 1) for k in range(5) for item in (FIRST, SECOND)]
    rows += [("5", FIRST, "Ann", 0), ("4", FIRST, "Ben", ""), ("3", FIRST, "Ben", 0.5)]
    found = correct(judged(said), labels(rows), TTCW)
    assert found.overall.raw == 1.0
    assert (found.overall.n, found.n_without_verdict, found.n_partly_labelled) == (11, 1, 1)
    first, second = found.items
    # The judge has no verdict of document 11, a tie on 9 and none on 10; of people, 6 answered.
    assert (first.n, first.n_labelled, second.n, second.n_labelled) == (9, 6, 11, 5)
    assert first.value == pytest.approx(5 / 6)


def test_grades_are_corrected_on_their_own_scale():
    said = {(f"{k}", "style"): 4.0 + k % 2 for k in range(40)}
    rows = [(f"{k}", "style", "Ann", 2 + k % 2) for k in range(12)]
    found = correct(judged(said, GRADES), labels(rows, GRADES), GRADES, width=0.25)
    # Two below the judge, wherever both are.
    assert found.overall.value == pytest.approx(2.5, abs=0.01)
    assert (found.unit, found.width) == ("mean (1 to 5)", 1.0)
    assert found.overall.n_worth > 30


def test_numbers_beside_tests_are_corrected_by_themselves():
    test, number = (item.id for item in ESSAY.items[:2])
    rng = np.random.default_rng(2)
    truth = rng.integers(1, 6, 20)
    marks = np.clip(truth + rng.integers(0, 3, 20), 1, 5)
    said = {(f"e{k}", test): float(truth[k] > 2) for k in range(20)}
    said |= {(f"e{k}", number): float(marks[k]) for k in range(20)}
    rows: Labels = [(f"e{k}", test, "Ann", int(truth[k] > 1)) for k in range(12)]
    rows += [(f"e{k}", number, "Ann", int(truth[k])) for k in range(12)]
    found = correct(judged(said, ESSAY), labels(rows, ESSAY), ESSAY)
    assert (found.unit, [row.name for row in found.items]) == ("share of Yes", [test])
    (row,) = found.numbers
    # The same from the statistics alone.
    numbers = (one.astype(float) for one in (truth[:12], marks[:12], marks[12:]))
    plain = corrected_mean(*numbers, is_finite=True)
    assert (row.name, row.value, row.low, row.high) == (number, plain.value, plain.low, plain.high)
    assert row.raw == pytest.approx(marks.mean())
    assert found.to_json()["items"][number]["corrected"] == plain.value
    assert found.left_out == ()


def test_an_interval_says_what_it_is_about():
    """Of texts that are all labelled nothing is unknown; of their source something always is."""
    said = {(f"{k}", FIRST): 1.0 for k in range(40)}
    rows = [(f"{k}", FIRST, "Ann", int(k % 5 < 2)) for k in range(40)]
    known, source = (
        correct(judged(said), labels(rows), TTCW, about=about).overall
        for about in ("texts", "source")
    )
    assert (known.low, known.value, known.high) == (0.4, 0.4, 0.4)
    # Clopper and Pearson of 16 of 40 is 0.2486 (R); that of its variance over n - 1 a little wider.
    assert source.low == pytest.approx(0.2486, abs=0.002)
    # Ten authors of four texts, all alike: labels of three of them are three answers, not twelve.
    rows = [(f"{k + j}", FIRST, "Ann", int(k < 16)) for j in (0, 1) for k in range(0, 40, 4)]
    alone, alike = (
        correct(judged(said), labels(rows), TTCW, about="source", cluster_of=cluster).overall
        for cluster in (None, lambda name: str(int(name) // 4))
    )
    assert alike.low < alone.low - 0.05


def test_a_correction_that_does_not_hold_for_a_group_gives_it_no_level():
    """The judge passes all of `a` rightly and all of `b`, of which people pass none."""
    rng = np.random.default_rng(4)
    said, rows = {}, []
    for author, shift in (("a", 0), ("b", -2), ("c", 0)):
        for k in range(40):
            truth = int(rng.integers(2, 5))
            said[f"{k}_{author}", "style"] = float(min(5, truth + rng.integers(0, 2)))
            if k < 12:
                rows.append((f"{k}_{author}", "style", "Ann", max(1, truth + shift)))
    found = correct(judged(said, GRADES), labels(rows, GRADES), GRADES, group_of=author_of)
    assert {one.a: one.details["level"] is None for one in found.transfers}["b"]
    a, b, _ = found.transfers
    assert (b.p_adjusted or 1) < 0.001
    assert b.difference.value < -1
    # Its level from its own labels stands.
    assert found.groups[1].value is not None
    assert a.details["n_labelled"] == 12
