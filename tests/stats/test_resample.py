"""When there is an interval: from ten independent units on, whichever statistic it is of."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fabula.measures.categories import label_accuracy
from fabula.measures.detector import Labelled, calibrate
from fabula.measures.group_comparison import compare_scores
from fabula.measures.rater_agreement import panel_agreement, panel_of
from fabula.measures.ratings import rater_agreement
from fabula.presentation.originality_tables import comparison_tables
from fabula.presentation.sheet import interval_notes, interval_shown, render
from fabula.rubrics.load import load_rubric
from fabula.stats.compare import compare_means, mean_estimate
from fabula.stats.effects import Tokens, mean_estimates, ratio_difference, ratio_estimate
from fabula.stats.permutation import compare_pairs
from fabula.stats.reliability import bootstrap_interval
from fabula.stats.resample import MIN_UNITS, percentile_interval
from fabula.store import dump_json
from fabula.tasks.feedback.answers import read_answers
from fabula.tasks.feedback.feedback_scores import score_answers
from fabula.tasks.feedback.validation import validate
from fabula.types import Estimate

SOURCE = Path(__file__).parents[2] / "src" / "fabula"


def values(n: int) -> np.ndarray:
    return np.random.default_rng(3).normal(5, 1, n)


def of_ratios(n: int) -> Tokens:
    return Tokens(np.arange(4 * n, dtype=np.int64) % (2 * n + 1), 4 * np.arange(1, n + 1))


def of_panel(n: int) -> Estimate:
    """Kappa of three experts on all fourteen items of n stories."""
    rng = np.random.default_rng(1)
    verdicts = [
        (f"{k}", item.id, rater, float(rng.random() < 0.5))
        for k in range(n)
        for item in load_rubric("ttcw").items
        for rater in "abc"
    ]
    return panel_agreement(panel_of(verdicts, "x"), load_rubric("ttcw"), "dimension")[-1].kappa


def of_bootstrap(n: int) -> Estimate:
    """Three measurements of each story: stories are the units."""
    sums = np.column_stack([np.ones(3 * n), values(3 * n)])
    return bootstrap_interval(
        5.0, sums, lambda s: s[..., 1] / s[..., 0], [k // 3 for k in range(3 * n)],
        seed=0, method="", signature="",
    )  # fmt: skip


def of_feedback(n: int) -> Estimate:
    rows = [
        {"id": f"{k}", "story_id": f"{k % n}", "feedback": "x" * (1 + k % 7), "story": "s",
         "prompt": "full", "method": "swap", "shots": 0, "model": "m", "signature": ""}
        for k in range(5 * n)
    ]  # fmt: skip
    return next(iter(score_answers(read_answers(rows)))).values["length"]


def of_validation(n: int) -> Estimate:
    ids = [f"{k}" for k in range(3 * n)]
    means = dict(zip(ids, values(3 * n).tolist(), strict=True))
    said = {id_: value + k % 3 for k, (id_, value) in enumerate(means.items())}
    found = validate(
        {"perfect": means}, {"feedback_type": said}, {id_: f"{int(id_) % n}" for id_ in ids}
    )
    return found["feedback_type"]


def of_raters(n: int) -> Estimate:
    mine = dict(zip(map(str, range(3 * n)), values(3 * n).tolist(), strict=True))
    theirs = {id_: value + int(id_) % 2 for id_, value in mine.items()}
    return rater_agreement(mine, theirs, lambda id_: f"{int(id_) % n}").similarity


def of_labels(n: int) -> Estimate:
    labels = {f"{k}": "ab"[k % 2] for k in range(4 * n)}
    gold = {id_: frozenset("a") for id_ in labels}
    return label_accuracy(labels, gold, lambda id_: f"{int(id_) % n}")


def of_detection(n: int) -> Estimate:
    """n groups with two human and two machine texts each."""
    is_human = np.arange(4 * n) % 2 == 0
    texts = Labelled(values(4 * n), is_human, np.arange(4 * n) // 4)
    return calibrate(texts, score="creativity_index", signature="", n_missing=0).auroc


def pair_of(n: int) -> tuple[Estimate, Estimate]:
    (test,) = compare_pairs({"m": {"a": values(n), "b": values(n)[::-1] + 1}}, {},
                            n_permutations=99)  # fmt: skip
    assert test.d is not None
    return test.difference, test.d


MAKERS: dict[str, Callable[[int], Estimate]] = {
    "mean": lambda n: mean_estimate(values(n), seed=0, signature=""),
    "difference, A small": lambda n: (
        compare_means(values(n).tolist(), values(30).tolist(), seed=0, signature="").percent
    ),
    "difference, B small": lambda n: (
        compare_means(values(30).tolist(), values(n).tolist(), seed=0, signature="").percent
    ),
    "bootstrap over stories": of_bootstrap,
    "experts' kappa": of_panel,
    "mean over passages": lambda n: mean_estimates({"m": {"a": values(n)}})["m", "a"],
    "difference of systems": lambda n: pair_of(n)[0],
    "Cohen's d of systems": lambda n: pair_of(n)[1],
    "ratio": lambda n: ratio_estimate(of_ratios(n)),
    "difference of ratios": lambda n: ratio_difference(
        of_ratios(n), Tokens(of_ratios(n).types // 3, of_ratios(n).ends), ""
    ),
    "feedback": of_feedback,
    "feedback and people": of_validation,
    "raters": of_raters,
    "labels": of_labels,
    "AUROC": of_detection,
}


@pytest.mark.parametrize("name", MAKERS)
def test_nine_independent_units_have_no_interval_and_ten_have_one(name: str) -> None:
    nine, ten = (MAKERS[name](n) for n in (MIN_UNITS - 1, MIN_UNITS))
    assert nine.value is not None
    assert (nine.low, nine.high) == (None, None)
    assert ten.low is not None
    assert ten.high is not None
    if name != "AUROC":
        assert (nine.n_units, ten.n_units) == (MIN_UNITS - 1, MIN_UNITS)


def test_units_without_a_part_in_the_statistic_do_not_count() -> None:
    # Twelve stories, of which three have nothing that was measured.
    sums = np.column_stack([np.ones(12), values(12)])
    sums[:3] = 0
    found = bootstrap_interval(
        5.0, sums, lambda s: s[..., 1] / s[..., 0], range(12), seed=0, method="", signature=""
    )
    assert (found.n_units, found.low) == (9, None)


def test_resamples_without_a_value_are_left_out_until_half_lack_one() -> None:
    resamples = np.arange(100.0)
    assert percentile_interval(resamples, 10) == pytest.approx((2.475, 96.525))
    resamples[50:] = np.nan
    assert percentile_interval(resamples, 10) == (None, None)
    resamples[50] = 50
    assert percentile_interval(resamples, 10) == pytest.approx((1.25, 48.75))
    assert percentile_interval(np.empty(0), 10) == (None, None)


def test_no_module_makes_intervals_of_its_own() -> None:
    """Percentiles are taken where the rule is applied; `bounds` has one of its own, and
    `groups` describes a distribution."""
    allowed = {"stats/resample.py", "stats/prediction_powered.py", "measures/groups.py"}
    takes = {
        str(file.relative_to(SOURCE))
        for file in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr in ("percentile", "nanpercentile", "quantile", "nanquantile")
        and isinstance(node.value, ast.Name)
        and node.value.id == "np"
    }
    assert takes <= allowed


def test_a_table_says_why_there_is_no_interval(tmp_path: Path) -> None:
    scores = tmp_path / "s.jsonl"
    scores.write_text(
        "".join(
            dump_json(
                {"id": f"{name}{k}", "group": name, "creativity_index": 5 + k / 10,
                 "uniqueness": {"5": 0.5}, "missing_reason": None,
                 "signature": "originality|v:0.1.0"}
            )
            + "\n"
            for name, n in (("few", 2), ("many", 12))
            for k in range(n)
        )
    )  # fmt: skip
    shown = render(*comparison_tables(compare_scores([scores], by="group")))
    few = next(line for line in shown.splitlines() if line.startswith("few "))
    assert few.split()[1] == "2"
    assert few.endswith("- (n 2)")
    assert "no interval from fewer than 10 texts" in shown
    many = Estimate(1.0, 0.5, 1.5, 12, "", "", 12)
    assert interval_shown(many, ".1f") == "0.5 to 1.5"
    # Nothing to explain where there is no value, or where enough units have none all the same.
    assert interval_notes([many, Estimate(None, None, None, 0, "", "", 0)], "texts") == []
    assert interval_shown(Estimate(0.3, None, None, 40, "", "", 40), ".1f") == "-"
