"""Statistics are those of R and its packages, on small tables with ties and degenerate inputs.

`tests/golden/stats/values.R` has the tables and calls R; `values.json` beside it keeps its results
with the versions of R and the packages, so that R need not be installed to compare with them.

R writes 15 digits, so what both compute in closed form agrees to 1e-9 of its size (a sum of
rounding errors), and a fit or a root to its own tolerance, which the test names. Both draw
permutations at random; `simulated` says how close two such p-values then are.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t as student_t
from tests.stats.contrasted import clusters, means

from fabula.judging.themes import group_vectors
from fabula.originality.detector import Labelled, calibrate
from fabula.stats.agreement import (
    Confusion,
    alpha,
    association_within,
    cohen,
    concordance,
    fleiss,
    icc,
    pearson,
    spearman,
)
from fabula.stats.contrasts import holm, kruskal_wallis, permutation_f
from fabula.stats.keyness import exact_p, smallest_p
from fabula.stats.paired import Tokens, compare_pairs, ratio_estimate
from fabula.stats.prediction_powered import (
    clopper_pearson_high,
    corrected_difference,
    corrected_mean,
    stratified,
)
from fabula.stats.ranking import Comparisons, rank
from fabula.stats.resampling import N_PERMUTATIONS

FOLDER = Path(__file__).parents[1] / "golden" / "stats"
KEPT = json.loads((FOLDER / "values.json").read_text("utf-8"))
CASES: dict[str, Any] = KEPT["cases"]
SCRIPT = shutil.which("Rscript")

_EXACT = 1e-9


def kinds(start: str) -> pytest.MarkDecorator:
    names = [name for name in CASES if name.startswith(start)]
    assert names, start
    return pytest.mark.parametrize("case", names)


def array(values: Any) -> NDArray[np.float64]:
    """Numbers of the file, null as NaN."""
    return np.array(values, np.float64)


def simulated(p: float, n_draws: float = np.inf) -> Any:
    """A p-value of 10,000 permutations beside one that is exact, or of `n_draws`."""
    spread = (p * (1 - p) * (1 / N_PERMUTATIONS + 1 / n_draws)) ** 0.5
    return pytest.approx(p, abs=4 * spread + 1 / N_PERMUTATIONS, rel=0)


@kinds("mann-whitney")
def test_mann_and_whitney(case: str):
    """`wilcox.test`, exact where SciPy is, and with its correction for continuity elsewhere."""
    data, of_r = CASES[case]["data"], CASES[case]["result"]
    found = means(data["a"], data["b"])
    assert found.details["u"] == of_r["u"]
    # R divides 0 by 0 where all values are equal, and has no p.
    expected = 1.0 if case.endswith("all equal") else of_r["p"]
    assert found.p == pytest.approx(expected, rel=_EXACT)


@kinds("kruskal-wallis")
def test_kruskal_and_wallis(case: str):
    """`kruskal.test`; undefined in R where all values are equal."""
    of_r = CASES[case]["result"]
    expected = (0.0, 1.0) if case.endswith("equal") else (of_r["h"], of_r["p"])
    assert kruskal_wallis(CASES[case]["data"]["groups"]) == pytest.approx(expected, rel=_EXACT)


@kinds("p.adjust")
def test_corrections_for_several_tests(case: str):
    """`p.adjust`, where missing values are no tests."""
    found = holm(CASES[case]["data"]["p"])
    expected = CASES[case]["result"]["holm"]
    assert [p is None for p in found] == [p is None for p in expected]
    assert array(found) == pytest.approx(array(expected), rel=_EXACT, nan_ok=True)


def test_cohens_d():
    """t of `t.test` times sqrt(2 / n)."""
    data = CASES["d by t"]["data"]
    columns = {"m": {"a": array(data["a"]), "b": array(data["b"])}}
    found = compare_pairs(columns, {}, n_permutations=100)[0].details["cohens_d"]
    assert found.value == pytest.approx(CASES["d by t"]["result"]["d"], rel=_EXACT)


@kinds("permutation paired")
def test_f_and_p_within_clusters(case: str):
    """F of `aov` on values less their cluster's mean, whose degrees of freedom lack those of the
    clusters' means; p of coin's test stratified by cluster, of two groups."""
    columns = zip(*CASES[case]["data"]["table"], strict=True)
    groups = [{f"{k:02}": [x] for k, x in enumerate(column)} for column in columns]
    found = permutation_f(groups, seed=3)
    of_r = CASES[case]["result"]
    expected = of_r["f"] * (len(groups) - 1) / len(groups)
    assert found.statistic == pytest.approx(expected, rel=_EXACT)
    if len(groups) == 2:
        assert found.p == simulated(of_r["p"])
        assert clusters(*groups, seed=3).p == simulated(of_r["p"])


@kinds("sign flips")
def test_p_of_pairs_is_that_of_all_signs(case: str):
    """exactRankTests' `perm.test`, on pairs or on the sums of clusters; both are exact."""
    data = CASES[case]["data"]
    clusters = np.array(data["cluster"]) if "cluster" in data else None
    columns = {"m": {name: array(data[name]) for name in "ab"}}
    found = compare_pairs(columns, {}, clusters=clusters)[0]
    assert found.p == pytest.approx(CASES[case]["result"]["p"], rel=_EXACT)


def test_p_of_two_samples():
    """coin's exact test of independent values."""
    case = CASES["two samples"]
    columns = {"m": {name: array(case["data"][name]) for name in "ab"}}
    found = compare_pairs(columns, {}, design="two-sample")[0]
    assert found.p == simulated(case["result"]["p"])


def test_an_association_within_strata():
    """`lm` with a constant for each stratum, `cor` of its residuals."""
    data, of_r = CASES["association"]["data"], CASES["association"]["result"]
    for kind in ("slope", "correlation"):
        found = association_within(
            array(data["x"]), array(data["y"]), data["strata"], data["clusters"],
            kind=kind, method="", signature="",
        )  # fmt: skip
        assert found.value == pytest.approx(of_r[kind], rel=_EXACT)


def test_the_difference_of_mantel_and_haenszel():
    """metafor's `rma.mh` of risk differences."""
    tables = CASES["mantel-haenszel difference"]["data"]
    x, y, strata = [], [], []
    for k in range(len(tables["ai"])):
        for group, hits, n in ((1, "ai", "n1i"), (0, "ci", "n2i")):
            n_yes, n_all = tables[hits][k], tables[n][k]
            y += [1.0] * n_yes + [0.0] * (n_all - n_yes)
            x += [float(group)] * n_all
            strata += [k] * n_all
    found = association_within(
        np.array(x), np.array(y), strata, range(len(x)), kind="slope", method="",
        signature="",
    )  # fmt: skip
    expected = CASES["mantel-haenszel difference"]["result"]["slope"]
    assert found.value == pytest.approx(expected, rel=_EXACT)


@kinds("clopper-pearson")
def test_bounds_of_shares(case: str):
    """`binom.test`, one-sided."""
    data = CASES[case]["data"]
    found = clopper_pearson_high(data["hits"], data["n"])
    assert found == pytest.approx(CASES[case]["result"]["high"], rel=_EXACT)


@kinds("phrase")
def test_p_of_a_phrase_by_text(case: str):
    """coin's exact test of texts that hold a phrase, in each stratum; both by distance.

    `fisher.test` sums the outcomes that are no more probable instead, which is another two-sided p
    where the distribution is skewed. The smallest p of a test is of `dhyper`.
    """
    rows, of_r = CASES[case]["data"]["strata"], CASES[case]["result"]
    strata = [tuple(row[:3]) for row in rows]
    p = exact_p(strata, sum(row[3] for row in rows))
    # Where all texts hold the phrase or none does, R has no test.
    assert p == pytest.approx(1.0 if of_r["p"] is None else of_r["p"], rel=_EXACT)
    if case == "phrase skewed":
        assert of_r["fisher"] < 0.5 * p
    elif of_r["fisher"] is not None:
        assert p == pytest.approx(of_r["fisher"], rel=_EXACT)
    which = np.zeros(len(strata), np.int64)
    assert smallest_p(which, np.array(strata), 1) == pytest.approx([of_r["smallest"]], rel=_EXACT)


def test_a_ratio_of_types_and_its_jackknife():
    """boot's influence values by leaving out each text, and `qt`."""
    case = CASES["ratio of types"]
    texts = case["data"]["texts"]
    ends = np.cumsum([len(text) for text in texts])
    found = ratio_estimate(Tokens(np.concatenate(texts), ends))
    assert found.value == pytest.approx(case["result"]["value"], rel=_EXACT)
    assert (found.low, found.high) == pytest.approx(case["result"]["ends"], rel=_EXACT)


def test_strengths_and_their_errors_by_pair():
    """BradleyTerry2's strengths and effect of the place, to the 1e-8 at which its fit ends.

    Errors are clubSandwich's CR3, which leaves out the factor (m - 1) / m of the jackknife over m
    pairs (Bell and McCaffrey 2002).
    """
    data, of_r = CASES["bradley-terry"]["data"], CASES["bradley-terry"]["result"]
    rows = []
    for first, second, n_shown, n_won in data["games"]:
        n_ties = int(2 * n_won) % 2
        outcomes = [1.0] * int(n_won) + [0.5] * n_ties
        outcomes += [0.0] * (n_shown - len(outcomes))
        rows += [(first, second, outcome) for outcome in outcomes]
    first, second, outcome = (np.array(column) for column in zip(*rows, strict=True))
    found = rank(Comparisons(first, second, outcome), 5, seed=0, signature="")
    estimates = [one.estimate for one in sorted(found.strengths, key=lambda one: one.thing)]
    estimates.append(found.place)
    values = [*of_r["strengths"], of_r["place"]]
    assert [one.value for one in estimates] == pytest.approx(values, abs=1e-6)
    m = of_r["n_pairs"]
    assert found.n_units == m
    halves = [(one.high - one.low) / 2 for one in estimates if one.low is not None]
    reach = student_t.ppf(0.975, m - 1) * ((m - 1) / m) ** 0.5
    assert halves == pytest.approx(reach * np.array(of_r["cr3"]), rel=1e-5)


@kinds("kappa")
def test_kappas_and_correlations(case: str):
    """vcd's `Kappa`, plain and with quadratic weights; `cor`. Undefined in both for a constant."""
    a, b = (array(CASES[case]["data"][name]) for name in "ab")
    of_r = CASES[case]["result"]
    quadratic = concordance(a, b).value
    assert array(quadratic) == pytest.approx(array(of_r["quadratic"]), rel=_EXACT, nan_ok=True)
    for found, name in ((cohen, "kappa"), (pearson, "pearson"), (spearman, "spearman")):
        value = found(a, b).value
        if of_r[name] is None:
            assert value is None
        else:
            assert value == pytest.approx(of_r[name], rel=_EXACT)


def test_phi():
    """psych's `phi`."""
    data = CASES["phi"]["data"]
    found = Confusion.of(array(data["a"]), array(data["b"])).phi
    assert found == pytest.approx(CASES["phi"]["result"]["phi"], rel=_EXACT)


@kinds("alpha")
def test_alpha_and_fleisss_kappa_by_analysis_of_variance(case: str):
    """No package of Debian has them; here they are of R's `var` within subjects and over all.

    Of the values for intervals, of their `rank` for ordinal scales, of an indicator a category for
    nominal ones.
    """
    ratings, of_r = array(CASES[case]["data"]["ratings"]), CASES[case]["result"]
    for level in ("nominal", "ordinal", "interval"):
        found = alpha(ratings, level).value
        assert found == pytest.approx(of_r[level], rel=_EXACT, abs=1e-12), level
    assert fleiss(ratings).value == pytest.approx(of_r["fleiss"], rel=_EXACT)


@kinds("icc")
def test_intraclass_correlations(case: str):
    """psych's `ICC`, a single random rater."""
    found = icc(array(CASES[case]["data"]["ratings"])).value
    assert found == pytest.approx(CASES[case]["result"]["icc"], rel=_EXACT)


def test_means_of_labels_alone():
    """`t.test` of numbers; survey's `svyciprop(method = "beta")` of Yes and No, `binom.test` where
    all labels are equal."""
    nothing = np.zeros(0)
    for case in ("student", "effective number", "equal labels none", "equal labels all"):
        labels, of_r = array(CASES[case]["data"]["labels"]), CASES[case]["result"]
        found = corrected_mean(labels, np.zeros(len(labels)), nothing)
        assert found.value == pytest.approx(of_r.get("value", labels[0]), rel=_EXACT)
        low, high = of_r["ends"]
        if case == "student":
            # Widened on the side of the longer tail.
            assert found.low == pytest.approx(low, rel=_EXACT)
            assert high < found.high < high + 0.1 * (high - low)
        else:
            assert (found.low, found.high) == pytest.approx((low, high), rel=_EXACT, abs=1e-12)


def test_predictions_at_full_weight():
    """The difference of `t.test`, and its variance with a degree of freedom less for the weight."""
    data, of_r = CASES["full weight"]["data"], CASES["full weight"]["result"]
    columns = (array(data[name]) for name in ("labels", "predicted", "others"))
    found = corrected_mean(*columns, weight=1.0)
    assert found.value == pytest.approx(of_r["value"], rel=_EXACT)
    n = len(data["labels"])
    expected = of_r["of_labels"] * (n - 1) / (n - 2) + of_r["of_rest"]
    assert found.variance == pytest.approx(expected, rel=_EXACT)


def test_differences_and_strata_of_labels():
    """`t.test` of Welch; survey's `svymean` with two strata."""
    case = CASES["difference by welch"]
    parts = []
    for name, n in (("a", 40), ("b", 75)):
        labels = array(case["data"][name])
        # Constant predictions say nothing, so they get no weight.
        part = corrected_mean(labels, np.zeros(len(labels)), np.zeros(n - len(labels)))
        parts.append(part)
    of_r = case["result"]
    expected = of_r["value"], *of_r["ends"], of_r["p"]
    apart, p = corrected_difference(*parts)
    assert (*apart.ends().values(), p) == pytest.approx(expected, rel=_EXACT)
    found, of_r = stratified(parts), CASES["stratified"]["result"]
    assert found.value == pytest.approx(of_r["value"], rel=_EXACT)
    assert found.variance**0.5 == pytest.approx(of_r["error"], rel=_EXACT)


def test_groups_of_vectors():
    """`hclust` with Ward's criterion and with mean cosines, cut by `cutree`."""
    data, of_r = CASES["groups"]["data"], CASES["groups"]["result"]
    points = np.array(data["points"], np.float32)
    for found, labels in (
        (group_vectors(points, n_groups=3), of_r["ward"]),
        (group_vectors(points, distance=0.35), of_r["average"]),
    ):
        members = [[k for k, own in enumerate(labels) if own == one] for one in set(labels)]
        assert sorted(found) == sorted(members)


def test_a_detector():
    """pROC's area under the curve; `glm` on Platt's targets, ours to its optimiser's 1e-5."""
    data, of_r = CASES["detector"]["data"], CASES["detector"]["result"]
    n = len(data["scores"])
    texts = Labelled(array(data["scores"]), np.array(data["is_human"]) == 1, np.arange(n))
    found = calibrate(texts, score="creativity_index", signature="", n_missing=0)
    assert found.auroc.value == pytest.approx(of_r["auc"], rel=_EXACT)
    expected = of_r["slope"], of_r["intercept"]
    assert (found.slope, found.intercept) == pytest.approx(expected, rel=1e-4)


def _without_r() -> str | None:
    """Why the script cannot run here, or None."""
    if SCRIPT is None:
        return "R is not installed"
    names = ", ".join(f'"{name}"' for name in KEPT["versions"] if name != "R")
    code = f"cat(setdiff(c({names}), rownames(installed.packages())))"
    done = subprocess.run([SCRIPT, "-e", code], capture_output=True, text=True, check=False)
    return f"R is without {done.stdout or done.stderr}" if done.stdout or done.returncode else None


def test_the_kept_values_are_those_of_the_script(tmp_path: Path):
    """Run again by the R that is here, whose version may be another."""
    if (reason := _without_r()) or SCRIPT is None:
        pytest.skip(str(reason))
    new = tmp_path / "values.json"
    words = [SCRIPT, "--vanilla", str(FOLDER / "values.R"), str(new)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    again = json.loads(new.read_text("utf-8"))["cases"]
    assert again.keys() == CASES.keys()
    for name, case in CASES.items():
        assert again[name]["data"] == case["data"], name
        _assert_same(again[name]["result"], case["result"], name)


def _assert_same(new: Any, kept: Any, name: str) -> None:
    """Equal, numbers up to 1e-6 of their size: optimisers and libraries differ by version."""
    if isinstance(kept, dict):
        assert new.keys() == kept.keys(), name
        for key, value in kept.items():
            _assert_same(new[key], value, f"{name}, {key}")
    else:
        assert array(new) == pytest.approx(array(kept), rel=1e-6, abs=1e-9, nan_ok=True), name
