"""Numbers, choices and places have the agreement of their scale, a judge's beside people's."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score
from tests.essay import ESSAY
from tests.judging.judged_stories import TTCW, measured

from fabula.core.types import Measurement
from fabula.raters import agreement
from fabula.stats.agreement import icc


def said(rater: str, item: str, values: dict[str, float | str]) -> list[Measurement]:
    return [measured(d, item, value, rater, rubric=ESSAY) for d, value in values.items()]


def test_icc_is_that_of_shrout_and_fleiss():
    # Shrout and Fleiss 1979, Table 2; ICC(2,1) is .29 in their Table 4.
    table = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    assert icc(np.array(table, np.float64)).value == pytest.approx(0.29, abs=0.005)


def people_of_style(rng: np.random.Generator, n: int = 20) -> list[Measurement]:
    quality = {f"d{k}": int(rng.integers(1, 6)) for k in range(n)}
    found = []
    for rater in ("Ann", "Ben", "Cyd"):
        marks = {d: float(np.clip(q + rng.integers(-1, 2), 1, 5)) for d, q in quality.items()}
        if rater == "Cyd":
            marks = dict(list(marks.items())[:5])
        found += said(rater, "style", marks)
    return found


def test_one_document_with_more_raters_drops_no_other():
    labels = people_of_style(np.random.default_rng(0))
    found = agreement.graded_agreement([], labels, ESSAY).people["style"]
    by_document: dict[str, list[float]] = {}
    for one in labels:
        by_document.setdefault(one.document_id, []).append(float(one.value or 0))
    a, b = np.array([pair for own in by_document.values() for pair in permutations(own, 2)]).T
    expected = cohen_kappa_score(a, b, weights="quadratic", labels=[1, 2, 3, 4, 5])
    assert found.kappa.value == pytest.approx(expected)
    assert (found.n, found.kappa.n_units) == (20, 20)
    assert found.icc.value is None
    assert found.why_missing == {"icc": "not everybody answered about every document"}
    assert found.alpha.low < (found.alpha.value or 0) < (found.alpha.high or 0)
    assert found.kappa.low < (found.kappa.value or 0) < (found.kappa.high or 0)


def test_a_judge_stands_beside_people_on_the_same_documents():
    rng = np.random.default_rng(1)
    labels = people_of_style(rng)
    marks = {one.document_id: one.value for one in labels if one.rater == "Ann"}
    copy = said("copies Ann", "style", {d: v for d, v in marks.items() if v is not None})
    noise = said("noise", "style", {d: float(rng.integers(1, 6)) for d in marks})
    found = agreement.graded_agreement([*copy, *noise], labels, ESSAY).judges
    good, bad = found["copies Ann"]["style"], found["noise"]["style"]
    assert good.people.value == bad.people.value
    assert good.difference.value > 0, "it is nearer to people than they are to each other"
    assert bad.difference.high < 0
    assert bad.kappa.low < 0 < (bad.kappa.high or 0)


def test_choices_are_compared_as_what_they_are():
    voices = ["Own", "Borrowed", "None", "Own"] * 4
    grades = ["A", "B", "C", "A"] * 4
    labels = said("Ann", "advice", {"d1": "an end"})
    for item, answers in (("voice", voices), ("grade", grades)):
        labels += said("Ann", item, {f"d{k}": answer for k, answer in enumerate(answers)})
        labels += said("Ben", item, {f"d{k}": answers[k // 2 * 2] for k in range(16)})
    found = agreement.graded_agreement([], labels, ESSAY).people
    assert set(found) == {"voice", "grade"}
    both = [*zip(voices, [voices[k // 2 * 2] for k in range(16)], strict=True)]
    a, b = zip(*[*both, *[(second, first) for first, second in both]], strict=True)
    assert found["voice"].kappa.value == pytest.approx(cohen_kappa_score(a, b))
    # B stands between A and C, so grades that differ by one disagree less than voices do.
    places = {"A": 2, "B": 1, "C": 0, "Own": 2, "Borrowed": 1, "None": 0}
    weighted = cohen_kappa_score(*([places[x] for x in own] for own in (a, b)), weights="quadratic")
    assert found["grade"].kappa.value == pytest.approx(weighted)


def test_where_all_say_the_same_there_is_no_kappa():
    same = {f"d{k}": 3.0 for k in range(12)}
    labels = [one for rater in "ab" for one in said(rater, "style", same)]
    found = agreement.graded_agreement(said("m", "style", {"d1": 3.0}), labels, ESSAY)
    people, judge = found.people["style"], found.judges["m"]["style"]
    assert [people.kappa.value, people.alpha.value, people.icc.value] == [None] * 3
    why = dict.fromkeys(("kappa", "alpha", "icc"), "all answers are the same")
    assert people.why_missing == why
    assert people.similarity == 1
    assert (judge.kappa.value, judge.difference.value) == (None, None)


def test_a_fourth_expert_on_one_story_drops_no_other_story(shared_data: Path):
    panel = agreement.read_experts(shared_data / "ttcw" / "ttcw_annotations.json", TTCW)
    verdicts = [
        (story, item, f"e{k}", float(value))
        for (story, item), row in zip(panel.subjects, panel.ratings, strict=True)
        for k, value in enumerate(row)
    ]
    fourth = [(verdicts[0][0], item.id, "fourth", 1.0) for item in TTCW.items]
    panels = [agreement.panel_of(rows, "f") for rows in (verdicts, [*verdicts, *fourth])]
    three, four = (agreement.panel_agreement(one, TTCW, "item") for one in panels)
    # Chakrabarty et al. 2024, Table 5: over all 48 stories the average of 14 kappas is 0.40.
    assert np.mean([row.kappa.value for row in three[:-1]]) == pytest.approx(0.40, abs=0.005)
    for before, after in zip(three, four, strict=True):
        assert after.kappa.n == before.kappa.n
        assert after.kappa.n_units == before.kappa.n_units == 48
        assert after.kappa.value == pytest.approx(before.kappa.value, abs=0.03)
        assert "raters:3|" in before.kappa.signature
        assert "raters:3-4|" in after.kappa.signature
    assert (four[-1].name, four[-1].kappa.n) == ("all", 672)


def test_stories_without_a_pair_are_not_counted_and_those_without_a_majority_are():
    item = TTCW.items[0].id
    verdicts = [("alone", item, "a", 1.0)]
    verdicts += [(f"{k}", item, rater, float(k % 2)) for k in range(12) for rater in "ab"]
    (*_, row) = agreement.panel_agreement(agreement.panel_of(verdicts, "f"), TTCW, "item")
    assert (row.kappa.value, row.kappa.n, row.kappa.n_units) == (1.0, 12, 12)
    verdicts += [("split", item, rater, value) for rater, value in (("a", 1.0), ("b", 0.0))]
    said = [measured(k, item, 1.0) for k in ["split", *"01"]]
    found = agreement.judge_agreement(said, agreement.panel_of(verdicts, "f"), TTCW, "item")
    assert (found.n_ties, found.overall.confusion.n) == (1, 2)
