"""Statistics are those of R and its packages, on small tables with ties and degenerate inputs.

`tests/golden/stats/values.R` has the tables and calls R; `values.json` beside it keeps its results
with the versions of R and the packages, so that R need not be installed to compare with them.

R writes 15 digits, so closed forms agree to 1e-9 of their size, and a fit or a root to its own
tolerance, which the test names. Both draw permutations; `simulated` says how close p-values are.
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
from fabula.novelty.detector import Labelled, calibrate
from fabula.stats import agreement
from fabula.stats.contrasts import exact_p, holm, kruskal_wallis, permutation_f, smallest_p
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


def exactly(value: Any, **how: Any) -> Any:
    return pytest.approx(value, rel=1e-9, **how)


def kept(case: str) -> tuple[Any, Any]:
    """The data of a case, and what R made of it."""
    return CASES[case]["data"], CASES[case]["result"]


def kinds(start: str) -> pytest.MarkDecorator:
    names = [name for name in CASES if name.startswith(start)]
    assert names, start
    return pytest.mark.parametrize("case", names)


def array(values: Any) -> NDArray[np.float64]:
    """Numbers of the file, null as NaN."""
    return np.array(values, np.float64)


def columns(data: Any) -> dict[str, dict[str, NDArray[np.float64]]]:
    return {"m": {name: array(data[name]) for name in "ab"}}


def simulated(p: float, n_draws: float = np.inf) -> Any:
    """A p-value of 10,000 permutations beside one that is exact, or of `n_draws`."""
    spread = (p * (1 - p) * (1 / N_PERMUTATIONS + 1 / n_draws)) ** 0.5
    return pytest.approx(p, abs=4 * spread + 1 / N_PERMUTATIONS, rel=0)


@kinds("mann-whitney")
def test_mann_and_whitney(case: str):
    """`wilcox.test`, exact where SciPy is, and with its correction for continuity elsewhere."""
    data, of_r = kept(case)
    found = means(data["a"], data["b"])
    assert found.details["u"] == of_r["u"]
    # R divides 0 by 0 where all values are equal, and has no p.
    expected = 1.0 if case.endswith("all equal") else of_r["p"]
    assert found.p == exactly(expected)


@kinds("kruskal-wallis")
def test_kruskal_and_wallis(case: str):
    """`kruskal.test`; undefined in R where all values are equal."""
    data, of_r = kept(case)
    expected = (0.0, 1.0) if case.endswith("equal") else (of_r["h"], of_r["p"])
    assert kruskal_wallis(data["groups"]) == exactly(expected)


@kinds("p.adjust")
def test_corrections_for_several_tests(case: str):
    """`p.adjust`, where missing values are no tests."""
    data, of_r = kept(case)
    assert array(holm(data["p"])) == exactly(array(of_r["holm"]), nan_ok=True)


def test_cohens_d():
    """t of `t.test` times sqrt(2 / n)."""
    data, of_r = kept("d by t")
    found = compare_pairs(columns(data), {}, n_permutations=100)[0].details["cohens_d"]
    assert found.value == exactly(of_r["d"])


@kinds("permutation paired")
def test_f_and_p_within_clusters(case: str):
    """F of `aov` on values less their cluster's mean, whose degrees of freedom lack those of the
    clusters' means; p of coin's test stratified by cluster, of two groups."""
    data, of_r = kept(case)
    table = np.array(data["table"]).T.tolist()
    groups = [{f"{k:02}": [x] for k, x in enumerate(column)} for column in table]
    found = permutation_f(groups, seed=3)
    assert found.statistic == exactly(of_r["f"] * (len(groups) - 1) / len(groups))
    if len(groups) == 2:
        assert found.p == simulated(of_r["p"])
        assert clusters(*groups, seed=3).p == simulated(of_r["p"])


@kinds("sign flips")
def test_p_of_pairs_is_that_of_all_signs(case: str):
    """exactRankTests' `perm.test`, on pairs or on the sums of clusters; both are exact."""
    data, of_r = kept(case)
    clusters = np.array(data["cluster"]) if "cluster" in data else None
    assert compare_pairs(columns(data), {}, clusters=clusters)[0].p == exactly(of_r["p"])


def test_p_of_two_samples():
    """coin's exact test of independent values."""
    data, of_r = kept("two samples")
    assert compare_pairs(columns(data), {}, design="two-sample")[0].p == simulated(of_r["p"])


def test_an_association_within_strata():
    """`lm` with a constant for each stratum, `cor` of its residuals."""
    data, of_r = kept("association")
    for kind in ("slope", "correlation"):
        given = array(data["x"]), array(data["y"]), data["strata"], data["clusters"]
        found = agreement.association_within(*given, kind=kind, method="", signature="")
        assert found.value == exactly(of_r[kind])


def test_the_difference_of_mantel_and_haenszel():
    """metafor's `rma.mh` of risk differences."""
    tables, of_r = kept("mantel-haenszel difference")
    x, y, strata = [], [], []
    for k in range(len(tables["ai"])):
        for group, hits, n in ((1, "ai", "n1i"), (0, "ci", "n2i")):
            n_yes, n_all = tables[hits][k], tables[n][k]
            y += [1.0] * n_yes + [0.0] * (n_all - n_yes)
            x += [float(group)] * n_all
            strata += [k] * n_all
    given = np.array(x), np.array(y), strata, range(len(x))
    found = agreement.association_within(*given, kind="slope", method="", signature="")
    assert found.value == exactly(of_r["slope"])


@kinds("clopper-pearson")
def test_bounds_of_shares(case: str):
    """`binom.test`, one-sided."""
    data, of_r = kept(case)
    assert clopper_pearson_high(data["hits"], data["n"]) == exactly(of_r["high"])


@kinds("phrase")
def test_p_of_a_phrase_by_text(case: str):
    """coin's exact test of texts that hold a phrase, in each stratum; both by distance.
    `fisher.test` sums what is no more probable, another p where the distribution is skewed."""
    data, of_r = kept(case)
    strata = [tuple(row[:3]) for row in data["strata"]]
    p = exact_p(strata, sum(row[3] for row in data["strata"]))
    # Where all texts hold the phrase or none does, R has no test.
    assert p == exactly(1.0 if of_r["p"] is None else of_r["p"])
    if case == "phrase skewed":
        assert of_r["fisher"] < 0.5 * p
    elif of_r["fisher"] is not None:
        assert p == exactly(of_r["fisher"])
    which = np.zeros(len(strata), np.int64)
    assert smallest_p(which, np.array(strata), 1) == exactly([of_r["smallest"]])


def test_a_ratio_of_types_and_its_jackknife():
    """boot's influence values by leaving out each text, and `qt`."""
    data, of_r = kept("ratio of types")
    ends = np.cumsum([len(text) for text in data["texts"]])
    found = ratio_estimate(Tokens(np.concatenate(data["texts"]), ends))
    assert found.value == exactly(of_r["value"])
    assert (found.low, found.high) == exactly(of_r["ends"])


def test_strengths_and_their_errors_by_pair():
    """BradleyTerry2's strengths and effect of the place, to the 1e-8 at which its fit ends.
    Errors are clubSandwich's CR3, without the jackknife's (m - 1) / m (Bell and McCaffrey 2002)."""
    data, of_r = kept("bradley-terry")
    rows = []
    for first, second, n_shown, n_won in data["games"]:
        outcomes = [1.0] * int(n_won) + [0.5] * (int(2 * n_won) % 2)
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
    data, of_r = kept(case)
    named = {
        "quadratic": agreement.concordance,
        "kappa": agreement.cohen,
        "pearson": agreement.pearson,
        "spearman": agreement.spearman,
    }
    for name, statistic in named.items():
        value = statistic(array(data["a"]), array(data["b"])).value
        assert value == (None if of_r[name] is None else exactly(of_r[name])), name


def test_phi():
    """psych's `phi`."""
    data, of_r = kept("phi")
    assert agreement.Confusion.of(array(data["a"]), array(data["b"])).phi == exactly(of_r["phi"])


@kinds("alpha")
def test_alpha_and_fleisss_kappa_by_analysis_of_variance(case: str):
    """By R's `var` within subjects and over all: of the values for intervals, of their `rank` for
    ordinal scales, of an indicator a category for nominal ones."""
    data, of_r = kept(case)
    ratings = array(data["ratings"])
    for level in ("nominal", "ordinal", "interval"):
        found = agreement.alpha(ratings, level).value
        assert found == exactly(of_r[level], abs=1e-12), level
    assert agreement.fleiss(ratings).value == exactly(of_r["fleiss"])


@kinds("icc")
def test_intraclass_correlations(case: str):
    """psych's `ICC`, a single random rater."""
    data, of_r = kept(case)
    assert agreement.icc(array(data["ratings"])).value == exactly(of_r["icc"])


def test_means_of_labels_alone():
    """`t.test` of numbers; survey's `svyciprop(method = "beta")` of Yes and No, `binom.test` where
    all labels are equal."""
    nothing = np.zeros(0)
    for case in ("student", "effective number", "equal labels none", "equal labels all"):
        data, of_r = kept(case)
        labels = array(data["labels"])
        found = corrected_mean(labels, np.zeros(len(labels)), nothing)
        assert found.value == exactly(of_r.get("value", labels[0]))
        low, high = of_r["ends"]
        if case == "student":
            # Widened on the side of the longer tail.
            assert found.low == exactly(low)
            assert high < found.high < high + 0.1 * (high - low)
        else:
            assert (found.low, found.high) == exactly((low, high), abs=1e-12)


def test_predictions_at_full_weight():
    """The difference of `t.test`, and its variance with a degree of freedom less for the weight."""
    data, of_r = kept("full weight")
    given = (array(data[name]) for name in ("labels", "predicted", "others"))
    found = corrected_mean(*given, weight=1.0)
    assert found.value == exactly(of_r["value"])
    n = len(data["labels"])
    expected = of_r["of_labels"] * (n - 1) / (n - 2) + of_r["of_rest"]
    assert found.variance == exactly(expected)


def test_differences_and_strata_of_labels():
    """`t.test` of Welch; survey's `svymean` with two strata."""
    data, of_r = kept("difference by welch")
    parts = []
    for name, n in (("a", 40), ("b", 75)):
        labels = array(data[name])
        # Constant predictions say nothing, so they get no weight.
        parts.append(corrected_mean(labels, np.zeros(len(labels)), np.zeros(n - len(labels))))
    expected = of_r["value"], *of_r["ends"], of_r["p"]
    apart, p = corrected_difference(*parts)
    assert (*apart.ends().values(), p) == exactly(expected)
    found, (_, of_r) = stratified(parts), kept("stratified")
    assert found.value == exactly(of_r["value"])
    assert found.variance**0.5 == exactly(of_r["error"])


def test_groups_of_vectors():
    """`hclust` with Ward's criterion and with mean cosines, cut by `cutree`."""
    data, of_r = kept("groups")
    points = np.array(data["points"], np.float32)
    for found, labels in (
        (group_vectors(points, n_groups=3), of_r["ward"]),
        (group_vectors(points, distance=0.35), of_r["average"]),
    ):
        members = [[k for k, own in enumerate(labels) if own == one] for one in set(labels)]
        assert sorted(found) == sorted(members)


def test_a_detector():
    """pROC's area under the curve; `glm` on Platt's targets, ours to its optimiser's 1e-5."""
    data, of_r = kept("detector")
    n = len(data["scores"])
    texts = Labelled(array(data["scores"]), np.array(data["is_human"]) == 1, np.arange(n))
    found = calibrate(texts, score="creativity_index", signature="", n_missing=0)
    assert found.auroc.value == exactly(of_r["auc"])
    expected = of_r["slope"], of_r["intercept"]
    assert (found.slope, found.intercept) == pytest.approx(expected, rel=1e-4)


def test_the_kept_values_are_those_of_the_script(tmp_path: Path):
    """Run again by the R that is here, numbers up to 1e-6 of their size: versions differ."""
    if SCRIPT is None:
        pytest.skip("R is not installed")
    names = ", ".join(f'"{name}"' for name in KEPT["versions"] if name != "R")
    code = f"cat(setdiff(c({names}), rownames(installed.packages())))"
    done = subprocess.run([SCRIPT, "-e", code], capture_output=True, text=True, check=False)
    if done.stdout or done.returncode:
        pytest.skip(f"R is without {done.stdout or done.stderr}")
    new = tmp_path / "values.json"
    words = [SCRIPT, "--vanilla", str(FOLDER / "values.R"), str(new)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    again = json.loads(new.read_text("utf-8"))["cases"]
    assert again.keys() == CASES.keys()
    for name, case in CASES.items():
        assert again[name]["data"] == case["data"], name
        assert again[name]["result"].keys() == case["result"].keys(), name
        for key, value in case["result"].items():
            close = pytest.approx(array(value), rel=1e-6, abs=1e-9, nan_ok=True)
            assert array(again[name]["result"][key]) == close, (name, key)
