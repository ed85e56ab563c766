"""Numbers, choices and places have the agreement of their scale, a judge's beside people's."""

from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score
from tests.essay import ESSAY

from fabula.core.types import Measurement
from fabula.raters.agreement import graded_agreement
from fabula.stats.agreement import icc


def said(rater: str, item: str, values: dict[str, float | str]) -> list[Measurement]:
    return [
        Measurement(document, ESSAY.key, item, rater, value, None, (), None, "s")
        for document, value in values.items()
    ]


def test_icc_is_that_of_shrout_and_fleiss():
    # Shrout and Fleiss 1979, Table 2; ICC(2,1) is .29 in their Table 4.
    table = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    ratings = np.array(table, np.float64)
    assert icc(ratings).value == pytest.approx(0.29, abs=0.005)
    ratings[0, 0] = np.nan
    assert icc(ratings).value is None
    assert icc(np.ones((4, 2))).value is None
    assert icc(np.array([[4.0, 3.0], [3.0, 4.0]])).value is None


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
    found = graded_agreement([], labels, ESSAY).people["style"]
    by_document: dict[str, list[float]] = {}
    for one in labels:
        by_document.setdefault(one.document_id, []).append(float(one.value or 0))
    pairs = [pair for values in by_document.values() for pair in permutations(values, 2)]
    a, b = np.array(pairs).T
    assert found.kappa.value == pytest.approx(
        cohen_kappa_score(a, b, weights="quadratic", labels=[1, 2, 3, 4, 5])
    )
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
    found = graded_agreement([*copy, *noise], labels, ESSAY).judges
    good, bad = found["copies Ann"]["style"], found["noise"]["style"]
    assert good.people.value == bad.people.value
    assert good.difference.value > 0, "it is nearer to people than they are to each other"
    assert bad.difference.high < 0
    assert bad.kappa.low < 0 < (bad.kappa.high or 0)


def test_choices_are_compared_as_what_they_are():
    voices = ["Own", "Borrowed", "None", "Own"] * 4
    labels = said("Ann", "voice", {f"d{k}": voice for k, voice in enumerate(voices)})
    labels += said("Ben", "voice", {f"d{k}": voices[k // 2 * 2] for k in range(16)})
    grades = ["A", "B", "C", "A"] * 4
    labels += said("Ann", "grade", {f"d{k}": grade for k, grade in enumerate(grades)})
    labels += said("Ben", "grade", {f"d{k}": grades[k // 2 * 2] for k in range(16)})
    labels += said("Ann", "advice", {"d1": "an end"})
    found = graded_agreement([], labels, ESSAY).people
    assert set(found) == {"voice", "grade"}
    both = [*zip(voices, [voices[k // 2 * 2] for k in range(16)], strict=True)]
    a, b = zip(*[*both, *[(second, first) for first, second in both]], strict=True)
    assert found["voice"].kappa.value == pytest.approx(cohen_kappa_score(a, b))
    # B stands between A and C, so grades that differ by one disagree less than voices do.
    places = {"A": 2, "B": 1, "C": 0, "Own": 2, "Borrowed": 1, "None": 0}
    weighted = cohen_kappa_score(
        [places[one] for one in a], [places[one] for one in b], weights="quadratic"
    )
    assert found["grade"].kappa.value == pytest.approx(weighted)


def test_where_all_say_the_same_there_is_no_kappa():
    labels = [
        one for rater in "ab" for one in said(rater, "style", {f"d{k}": 3.0 for k in range(12)})
    ]
    found = graded_agreement(said("m", "style", {"d1": 3.0}), labels, ESSAY)
    people, judge = found.people["style"], found.judges["m"]["style"]
    assert [people.kappa.value, people.alpha.value, people.icc.value] == [None] * 3
    assert people.why_missing == dict.fromkeys(
        ("kappa", "alpha", "icc"), "all answers are the same"
    )
    assert people.similarity == 1
    assert (judge.kappa.value, judge.difference.value) == (None, None)
