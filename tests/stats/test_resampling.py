"""When there is an interval: from ten independent units on, whichever statistic it is of."""

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import brentq
from scipy.stats import norm, ttest_ind, ttest_rel
from scipy.stats import t as student_t
from statsmodels.stats.proportion import proportion_confint
from tests.groups.test_comparison import compare_rows, row
from tests.stats.contrasted import means, percent

from fabula.core.types import Contrast, Estimate
from fabula.feedback.scores import validate
from fabula.groups.tables import comparison_tables
from fabula.novelty.detector import Labelled, calibrate
from fabula.raters.agreement import panel_agreement, panel_of
from fabula.raters.ratings import label_accuracy, rater_agreement
from fabula.rubrics.load import load_rubric
from fabula.show.sheet import interval_notes, interval_shown, render
from fabula.stats import resampling
from fabula.stats.agreement import cohen
from fabula.stats.contrasts import mean_estimate, pooled_estimate
from fabula.stats.paired import Tokens, compare_pairs, mean_estimates, ratio_estimate


def values(n: int) -> np.ndarray:
    return np.random.default_rng(3).normal(5, 1, n)


def of_ratios(n: int, alike: int = 1) -> Tokens:
    return Tokens(np.arange(4 * n, dtype=np.int64) % (2 * n + 1) // alike, 4 * np.arange(1, n + 1))


def of_panel(n: int) -> Estimate:
    """Kappa of three experts on all fourteen items of n stories."""
    rng, rubric = np.random.default_rng(1), load_rubric("ttcw")
    answers = product(range(n), rubric.items, "abc")
    verdicts = [(f"{k}", one.id, rater, float(rng.random() < 0.5)) for k, one, rater in answers]
    return panel_agreement(panel_of(verdicts, "x"), rubric, "dimension")[-1].kappa


def of_pool(n: int) -> Estimate:
    """Three measurements of each story: stories are the units."""
    groups = [k // 3 for k in range(3 * n)]
    return pooled_estimate(values(3 * n), np.ones(3 * n), groups, method="", signature="")


def of_validation(n: int) -> Estimate:
    means = dict(zip(map(str, range(3 * n)), values(3 * n).tolist(), strict=True))
    said = {id_: value + int(id_) % 3 for id_, value in means.items()}
    stories = {id_: f"{int(id_) % n}" for id_ in means}
    return validate({"perfect": means}, {"feedback_type": said}, stories)["feedback_type"]


def of_raters(n: int) -> Estimate:
    mine = dict(zip(map(str, range(3 * n)), values(3 * n).tolist(), strict=True))
    theirs = {id_: value + int(id_) % 2 for id_, value in mine.items()}
    return rater_agreement(mine, theirs, lambda id_: f"{int(id_) % n}")["similarity"]


def of_labels(n: int) -> Estimate:
    labels = {f"{k}": "ab"[k % 2] for k in range(4 * n)}
    gold = {id_: frozenset("a") for id_ in labels}
    return label_accuracy(labels, gold, lambda id_: f"{int(id_) % n}")


def of_detection(n: int) -> Estimate:
    """n groups with two human and two machine texts each."""
    is_human = np.arange(4 * n) % 2 == 0
    texts = Labelled(values(4 * n), is_human, np.arange(4 * n) // 4)
    return calibrate(texts, score="creativity_index", signature="", n_missing=0).auroc


def pair_of(n: int) -> Contrast:
    columns = {"m": {"a": values(n), "b": values(n)[::-1] + 1}}
    return compare_pairs(columns, {}, n_permutations=99)[0]


MAKERS: dict[str, Callable[[int], Estimate]] = {
    "mean": lambda n: mean_estimate(values(n), signature=""),
    "difference, A small": lambda n: percent(means(values(n).tolist(), values(30).tolist())),
    "difference, B small": lambda n: percent(means(values(30).tolist(), values(n).tolist())),
    "mean over stories": of_pool,
    "experts' kappa": of_panel,
    "mean over passages": lambda n: mean_estimates({"m": {"a": values(n)}})["m", "a"],
    "difference of systems": lambda n: pair_of(n).difference,
    "Cohen's d of systems": lambda n: pair_of(n).details["cohens_d"],
    "ratio": lambda n: ratio_estimate(of_ratios(n)),
    "difference of ratios": lambda n: ratio_estimate(of_ratios(n), minus=of_ratios(n, 3)),
    "feedback and people": of_validation,
    "raters": of_raters,
    "labels": of_labels,
    "AUROC": of_detection,
}


@pytest.mark.parametrize("name", MAKERS)
def test_nine_independent_units_have_no_interval_and_ten_have_one(name: str):
    nine, ten = (MAKERS[name](n) for n in (resampling.MIN_UNITS - 1, resampling.MIN_UNITS))
    assert nine.value is not None
    assert (nine.low, nine.high) == (None, None)
    assert ten.low is not None
    assert ten.high is not None
    if name != "AUROC":
        assert (nine.n_units, ten.n_units) == (resampling.MIN_UNITS - 1, resampling.MIN_UNITS)


def test_no_module_makes_intervals_of_its_own():
    """Percentiles are taken where the rule is applied; others describe what was drawn or a grid."""
    files = (Path(__file__).parents[2] / "src" / "fabula").rglob("*.py")
    takes = re.compile(r"\bnp\.(?:nan)?(?:percentile|quantile)\b")
    found = {f"{x.parent.name}/{x.name}" for x in files if takes.search(x.read_text("utf-8"))}
    allowed = {"resampling", "prediction_powered", "planning", "agreement"}
    assert found <= {"stats/norms.py", *(f"stats/{name}.py" for name in allowed)}


def test_a_table_says_why_there_is_no_interval():
    units = [("few", k) for k in range(2)] + [("many", k) for k in range(12)]
    rows = [row(5 + k / 10, group=group) for group, k in units]
    shown = render(*comparison_tables(compare_rows(rows, by="group")))
    few = next(line for line in shown.splitlines() if " few " in line)
    assert few.split()[2] == "2"
    assert few.endswith("- (n 2)")
    assert "no interval from fewer than 10 texts" in shown
    many = Estimate(1.0, 0.5, 1.5, 12, "", "", 12)
    assert interval_shown(many, ".1f") == "0.5 to 1.5"
    assert interval_notes([many, Estimate(None, None, None, 0, "", "", 0)], "texts") == []
    without = Estimate(0.3, None, None, 40, "", "", 40)
    assert interval_shown(without, ".1f") == "-"
    (note,) = interval_notes([many, without], "texts")
    assert "nothing varies" in note


@given(hnp.arrays(np.float64, st.integers(10, 30), elements=st.integers(-9, 9).map(float)))
def test_a_mean_has_the_wider_of_student_s_ends_and_hall_s(x: np.ndarray):
    """Hall's by a search for the mean whose transformed t is that of the table."""
    if np.ptp(x) == 0:
        assert resampling.mean_interval(x) == (None, None)
        return
    n, middle, error = len(x), x.mean(), x.std(ddof=1) / len(x) ** 0.5
    skew = n * ((x - middle) ** 3).sum() / (n - 1) / (n - 2) / x.std(ddof=1) ** 3 / n**0.5
    t = student_t.ppf(0.975, n - 1)
    found = resampling.mean_interval(x)
    for end, side in zip(found, (t, -t), strict=True):

        def beside(w: float, side: float = side) -> float:
            return float(w + skew * w**2 / 3 + skew**2 * w**3 / 27 + skew / 6 - side)

        far = max(brentq(beside, -1e4, 1e4), side, key=lambda w: w * side)
        assert end == pytest.approx(middle - far * error)


@pytest.mark.parametrize("n", [10, 25])
def test_a_ratio_has_the_values_that_student_s_test_does_not_reject(n: int):
    """Fieller's by SciPy's tests of a - r b: the paired one, and Welch's."""
    rng = np.random.default_rng(n)
    a, b = rng.gamma(4, 2, n), rng.gamma(4, 1, n)
    own, other = (a - a.mean()) / n, (b - b.mean()) / n
    nothing = np.zeros(n)
    paired = resampling.ratio_interval(a.mean(), b.mean(), (own, other))
    apart = resampling.ratio_interval(a.mean(), b.mean(), (own, nothing), (nothing, other))
    for end in paired:
        assert ttest_rel(a, end * b).pvalue == pytest.approx(0.05)
    for end in apart:
        # The degrees of freedom are those at the ratio itself.
        assert ttest_ind(a, end * b, equal_var=False).pvalue == pytest.approx(0.05, abs=0.005)
    near_zero = b - b.mean() + 0.1
    assert resampling.ratio_interval(a.mean(), 0.1, (own, (near_zero - 0.1) / n)) == (None, None)


def test_intervals_of_tiny_numbers_are_those_of_large_ones():
    """Exactly, as a power of 2 rounds nothing; the fourth power of what is tiny here is 0."""
    rng, tiny = np.random.default_rng(0), 2.0**-500
    a, b = rng.normal(3, 1, (2, 12))
    own, other = (a - a.mean()) / 12, (b - b.mean()) / 12
    low, high = resampling.influence_interval(a.mean(), own)
    found = resampling.influence_interval(a.mean() * tiny, own * tiny)
    assert found == (low * tiny, high * tiny)
    of_tiny = a.mean() * tiny, b.mean() * tiny, (own * tiny, other * tiny)
    assert resampling.ratio_interval(*of_tiny) == resampling.ratio_interval(
        a.mean(), b.mean(), (own, other)
    )


@pytest.mark.parametrize("hits", [0, 1, 3, 12])
def test_a_share_of_single_answers_has_wilson_s_interval(hits: int):
    parts = np.array([1.0] * hits + [0.0] * (12 - hits))
    expected = proportion_confint(hits, 12, method="wilson")
    assert resampling.share_interval(parts, np.ones(12)) == pytest.approx(expected, abs=1e-12)


def test_answers_that_are_alike_within_their_story_count_as_one():
    alone = resampling.share_interval(np.array([1.0] * 4 + [0.0] * 8), np.ones(12))
    alike = resampling.share_interval(np.array([5.0] * 4 + [0.0] * 8), np.full(12, 5.0))
    assert None not in (*alone, *alike)
    # Student's quantile of 12 stories, in place of the normal one.
    assert alike[0] < alone[0] < alone[1] < alike[1]
    assert alike == pytest.approx(alone, abs=0.05)
    nobody = resampling.share_interval(np.zeros(12), np.full(12, 5.0))
    assert nobody[0] == 0
    assert 0.2 < nobody[1] < 0.35


@pytest.mark.parametrize("value", [0.0, 0.5, 0.9, 0.99, 1.0])
def test_an_auroc_has_the_values_whose_own_error_does_not_reject_it(value: float):
    """Newcombe 2006, method 5, on a grid."""
    m, n = 12, 20
    grid = np.linspace(0, 1, 200_001)
    more = (m + n) / 2 - 1
    variance = grid * (1 - grid) * (1 + more * ((1 - grid) / (2 - grid) + grid / (1 + grid)))
    kept = grid[(value - grid) ** 2 <= norm.ppf(0.975) ** 2 * variance / (m * n)]
    assert resampling.auroc_interval(value, m, n) == pytest.approx((kept[0], kept[-1]), abs=1e-5)


def test_rare_answers_and_perfect_agreement_do_not_make_certain():
    """One Yes of both in 30 texts: kappa is 1 of what was seen, and hardly known."""
    rare = np.array([1.0] + [0.0] * 29)
    found = cohen(rare, rare).estimate(range(30), seed=0, method="", signature="")
    assert found.value == found.high == 1
    assert found.low < 0.5
