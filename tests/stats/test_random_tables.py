"""Every statistic of agreement on 120 random tables, complete and with gaps, beside a library's;
where a table leaves it undefined (nobody to compare with, or all the same), None with a reason."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any

import krippendorff
import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray
from sklearn import metrics
from statsmodels.stats import inter_rater
from tests.essay import ESSAY

from fabula.core.types import Estimate, Measurement
from fabula.raters import agreement
from fabula.stats.agreement import (
    Confusion,
    alpha,
    cohen,
    concordance,
    fleiss,
    pearson,
    percent_agreement,
    spearman,
)

Table = NDArray[np.float64]
N_TABLES = 120
SCALES = ((0.0, 1.0), (1.0, 2.0, 3.0, 4.0, 5.0), (0.0, 1 / 3, 2 / 3), (10.1, 40.4, 101.0))


def tables(*, n_raters: int | None = None, gaps: bool) -> Iterator[Table]:
    """Subjects by raters; every tenth table has one value only, others few subjects."""
    rng = np.random.default_rng([N_TABLES, n_raters or 0, gaps])
    for k in range(N_TABLES):
        scale = SCALES[k % len(SCALES)] if k % 10 else (SCALES[k // 10 % len(SCALES)][1],)
        shape = (int(rng.integers(1, 16)), n_raters or int(rng.integers(2, 6)))
        table = rng.choice(scale, shape)
        # Raters who agree more than chance does, as people may.
        table = np.where(rng.random(shape) < 0.4, table[:, :1], table)
        yield np.where(rng.random(shape) < 0.3, np.nan, table) if gaps else table


def both(table: Table) -> tuple[Table, Table]:
    a, b = table[~np.isnan(table).any(axis=1)].T
    return a, b


def several(table: Table) -> list[list[float]]:
    """The ratings of each subject that has two or more."""
    rows = [[one for one in row if not math.isnan(one)] for row in table.tolist()]
    return [row for row in rows if len(row) > 1]


def varies(*values: float) -> bool:
    return len(set(values)) > 1


def codes(*columns: Table) -> list[NDArray[np.int64]]:
    """Categories as numbers, which scikit-learn asks for."""
    kinds = np.unique(np.concatenate(columns))
    return [np.searchsorted(kinds, column) for column in columns]


def cohen_by_scikit_learn(table: Table) -> float | None:
    a, b = both(table)
    return float(metrics.cohen_kappa_score(*codes(a, b))) if varies(*a, *b) else None


def weighted_by_scikit_learn(table: Table) -> float | None:
    """Quadratic weights of its places are those of the values where the values are evenly apart."""
    a, b = both(table)
    if not varies(*a, *b):
        return None
    step = np.gcd.reduce(np.rint(np.unique([*a, *b]) * 30).astype(int))
    places = [np.rint(column * 30 / step).astype(int) for column in (a, b)]
    labels = range(min(map(min, places)), max(map(max, places)) + 1)
    return float(metrics.cohen_kappa_score(*places, weights="quadratic", labels=list(labels)))


def fleiss_by_statsmodels(table: Table) -> float | None:
    if not varies(*table.ravel()):
        return None
    counts, _ = inter_rater.aggregate_raters(codes(table.ravel())[0].reshape(table.shape))
    return float(inter_rater.fleiss_kappa(counts))


def fleiss_by_fractions(table: Table) -> float | None:
    """Pairs of a subject that are equal, and chance by each subject's shares (Gwet 2014, 2.6)."""
    rows = several(table)
    kinds = sorted({one for row in rows for one in row})
    if len(kinds) < 2:
        return None
    equal = [Fraction(sum(a == b for a, b in combinations(row, 2)), math.comb(len(row), 2))
             for row in rows]  # fmt: skip
    chance = sum((sum(Fraction(row.count(kind), len(row)) for row in rows) / len(rows)) ** 2
                 for kind in kinds)  # fmt: skip
    return float((sum(equal) / Fraction(len(rows)) - chance) / (1 - chance))


def alpha_by_package(table: Table, level: Any) -> float | None:
    paired = table[(~np.isnan(table)).sum(axis=1) > 1]
    if not varies(*paired[~np.isnan(paired)]):
        return None
    return float(krippendorff.alpha(reliability_data=paired.T, level_of_measurement=level))


def by_scipy(name: str) -> Callable[[Table], float | None]:
    def value(table: Table) -> float | None:
        a, b = both(table)
        return getattr(scipy.stats, name)(a, b)[0] if varies(*a) and varies(*b) else None

    return value


STATISTICS: dict[str, tuple[Any, Any, int | None, str]] = {
    "Cohen, scikit-learn": (lambda t: cohen(*t.T), cohen_by_scikit_learn, 2, "both"),
    "quadratic weights, scikit-learn": (
        lambda t: concordance(*t.T), weighted_by_scikit_learn, 2, "both"),
    "Fleiss, statsmodels": (fleiss, fleiss_by_statsmodels, None, "complete"),
    "Fleiss, fractions": (fleiss, fleiss_by_fractions, None, "gaps"),
    **{
        f"alpha {level}, krippendorff": (
            lambda t, level=level: alpha(t, level),
            lambda t, theirs=theirs: alpha_by_package(t, theirs), None, "both")
        for level, theirs in (("nominal",) * 2, ("ordinal",) * 2, ("interval",) * 2,
                              # The distance of feedback: not squared, which is one of its own.
                              ("absolute", lambda v1, v2, **_: np.abs(v1 - v2)))
    },
    "Pearson, scipy": (lambda t: pearson(*t.T), by_scipy("pearsonr"), 2, "both"),
    "Spearman, scipy": (lambda t: spearman(*t.T), by_scipy("spearmanr"), 2, "both"),
}  # fmt: skip


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
@pytest.mark.parametrize("name", STATISTICS)
def test_it_is_what_the_library_has_or_none(name: str, gaps: bool):
    """Of tables, and of resampled ones, in which a subject stands up to three times."""
    ours, theirs, n_raters, kinds = STATISTICS[name]
    if kinds not in ("both", "gaps" if gaps else "complete"):
        return
    n_none, rng = 0, np.random.default_rng(5)
    for table in tables(n_raters=n_raters, gaps=gaps):
        statistic, expected = ours(table), theirs(table)
        assert statistic.value == (None if expected is None else near(expected)), table
        n_none += expected is None
        if name.startswith("Spearman"):
            continue  # whose ranks are those of the whole table
        times = rng.integers(0, 4, len(table))
        expected = theirs(np.repeat(table, times, axis=0))
        with np.errstate(all="ignore"):
            found = float(statistic.of_sums(times @ statistic.rows))
        assert not math.isfinite(found) if expected is None else found == near(expected), table
    assert n_none, "no degenerate table was tried"


def near(value: float) -> Any:
    return pytest.approx(value, abs=1e-7)


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_a_percentage_is_that_of_equal_pairs(gaps: bool):
    for table in tables(gaps=gaps):
        pairs = [pair for row in several(table) for pair in combinations(row, 2)]
        expected = 100 * sum(a == b for a, b in pairs) / len(pairs) if pairs else None
        assert percent_agreement(table) == (None if expected is None else near(expected)), table


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_a_judges_counts_are_those_of_scikit_learn(gaps: bool):
    n_none = 0
    for table in [*tables(n_raters=2, gaps=gaps)][::4]:
        table = (table > 0.5).astype(float) + 0 * table
        judge, truth = both(table)
        defined = {
            "accuracy": len(truth) > 0, "balanced_accuracy": varies(*truth),
            "precision": judge.any(), "recall": truth.any(), "f1": judge.any() or truth.any(),
            "phi": varies(*truth) and varies(*judge),
        }  # fmt: skip
        counts = Confusion.of(*table.T)
        for name, is_defined in defined.items():
            found = getattr(counts, name)
            score = getattr(metrics, "matthews_corrcoef" if name == "phi" else f"{name}_score")
            expected = score(truth, judge) if is_defined else None
            assert found == (None if expected is None else pytest.approx(expected)), (name, table)
            n_none += found is None
    assert n_none


ANSWERS = {
    "thesis": (0.0, 1.0), "style": (1.0, 2.0, 3.0, 4.0, 5.0), "voice": ("Own", "Borrowed", "None"),
    "grade": ("A", "B", "C"),
}  # fmt: skip


def labelled(rng: np.random.Generator, raters: str, n: int) -> list[Measurement]:
    """Answers of raters to all items of the essay's rubric: few, many, or all the same."""
    chance = rng.random()
    same = rng.random() < 0.3
    return [
        Measurement(f"d{k}", ESSAY.key, item, rater, value, None, (), None, "s")
        for rater in raters
        for item, answers in ANSWERS.items()
        for k in range(n)
        if rng.random() < chance
        for value in [answers[0] if same else answers[int(rng.integers(len(answers)))]]
    ]


def test_an_agreement_without_a_value_says_why():
    rng = np.random.default_rng(9)
    reasons: set[str] = set()

    def check(why: Any, **figures: Estimate) -> None:
        assert set(why) == {name for name, one in figures.items() if one.value is None}
        assert all(one.value is None or math.isfinite(one.value) for one in figures.values())
        reasons.update(why.values())

    for _ in range(N_TABLES):
        n = int(rng.integers(1, 6))
        labels, verdicts = (labelled(rng, raters, n) for raters in ("AB", "JK"))
        graded = agreement.graded_agreement(verdicts, labels, ESSAY)
        for one in graded.people.values():
            check(one.why_missing, kappa=one.kappa, alpha=one.alpha, icc=one.icc)
        for judge in (judge for by_item in graded.judges.values() for judge in by_item.values()):
            check(judge.why_missing, kappa=judge.kappa, people=judge.people,
                  difference=judge.difference, correlation=judge.correlation)  # fmt: skip
        of = {rater: [one for one in verdicts if one.rater == rater] for rater in "JK"}
        for pair in agreement.graded_pairs(of, labels, ESSAY):
            why = pair.details["why_missing"]
            check(why, difference=pair.difference, agreement=pair.details["agreement"])
        panel = agreement.panel_of_labels(labels, ESSAY, "f")
        for row in agreement.panel_agreement(panel, ESSAY, "item"):
            check(row.why_missing, kappa=row.kappa, alpha=row.alpha)
        mine = [one for one in of["J"] if (one.document_id, one.item) in panel.majority()]
        if mine:
            found = agreement.judge_agreement(mine, panel, ESSAY, "item")
            for beside in (*found.rows, found.overall):
                check(beside.why_missing, kappa=beside.kappa)
            why = found.why_no_correlation
            check({"pearson": why} if why else {}, pearson=found.pearson)
    assert len(reasons) > 8, reasons
