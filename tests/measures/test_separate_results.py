"""Results of diversity that were measured apart: read, refused, compared."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from scipy import stats

from fabula.errors import InputError, MixError
from fabula.measures.diversity import Diversity, Plan, Resampling, measure_diversity
from fabula.measures.diversity.separate_results import join_results, read_result
from fabula.stats.compare import welch_f
from fabula.types import Document

WORDS = [f"w{k}" for k in range(60)]


def texts_of(seed: int, n: int, group: str, stock: str = "") -> list[Document]:
    """Random texts of 30 words, half of which hold the stock phrase."""
    rng = random.Random(seed)
    return [
        Document(
            f"{group}{seed}-{k}",
            f"{stock * rng.randrange(2)} {' '.join(rng.choices(WORDS, k=30))}",
            meta={"group": group, "prompt": f"tell of the {WORDS[k]} and the sea"},
        )
        for k in range(n)
    ]


def measured(documents: Sequence[Document], **more: Any) -> Diversity:
    how = Resampling(n_permutations=99)
    return measure_diversity(documents, replace(Plan(n_words=30, how=how, n_phrases=0), **more))


@pytest.fixture(scope="module")
def both() -> Diversity:
    """Two groups measured together."""
    stock = "once upon a time there was "
    return measured([*texts_of(0, 14, "plain"), *texts_of(1, 14, "stock", stock)], by="group")


@pytest.fixture(scope="module")
def third() -> Diversity:
    """A further one, as many texts of the same length."""
    return measured(texts_of(2, 20, "late", "in a town by the sea lived "), by="group", n_texts=14)


def stored(found: Diversity) -> Diversity:
    return read_result(json.loads(json.dumps(found.to_json())), "a.json")


def test_what_is_written_is_read_again(both: Diversity) -> None:
    again = stored(both)
    written, read = both.to_json(), again.to_json()
    for group in written["groups"].values():
        group["phrases"] = []
    for test in [*written["tests"], *read["tests"]]:
        # Holm's correction is computed again for the pairs of all results.
        del test["p_holm"]
    assert read == written


def test_groups_measured_apart_differ_by_both_of_their_errors(
    both: Diversity, third: Diversity
) -> None:
    found = join_results([("a", stored(both)), ("b", stored(third))])
    assert [one.name for one in found.groups] == ["plain", "stock", "late"]
    assert third.groups[0].n == 14
    test = next(t for t in found.tests if (t.measure, t.a, t.b) == ("self_bleu", "plain", "late"))
    plain, late = both.groups[0], third.groups[0]
    # The oracle: SciPy's intervals and tests of the values and errors, as a reader would take them
    # from the JSON.
    apart = (plain.estimates["self_bleu"].value or 0) - (late.estimates["self_bleu"].value or 0)
    mine, theirs = plain.errors["self_bleu"], late.errors["self_bleu"]
    error, df = math.sqrt(mine.value**2 + theirs.value**2), min(mine.df, theirs.df)
    assert (mine.df, theirs.df) == (13, 19)
    assert test.difference.value == pytest.approx(apart)
    low, high = stats.t.interval(0.95, df, loc=apart, scale=error)
    assert (test.difference.low, test.difference.high) == pytest.approx((low, high))
    assert test.p == pytest.approx(2 * stats.t.sf(abs(apart) / error, df))
    assert test.n_permutations == 0
    assert test.p_holm is not None
    assert test.p_holm > (test.p or 0)


def test_groups_of_one_result_keep_the_test_that_was_made_there(
    both: Diversity, third: Diversity
) -> None:
    own = {one.measure: one for one in both.tests}
    kept = join_results([("a", stored(both)), ("b", stored(third))])
    turned = join_results([("a", stored(both)), ("b", stored(third))], baseline="plain")
    for measure, one in own.items():
        mine = next(t for t in kept.tests if (t.measure, t.a, t.b) == (measure, "plain", "stock"))
        assert (mine.p, mine.n_permutations) == (one.p, 99)
        other = next(t for t in turned.tests if (t.measure, t.a) == (measure, "stock"))
        assert (other.b, other.p) == ("plain", one.p)
        assert other.difference.value == -(one.difference.value or 0.0)
        if one.difference.low is not None:
            assert other.difference.high == -one.difference.low
    assert {(one.a, one.b) for one in turned.tests} == {("stock", "plain"), ("late", "plain")}
    with pytest.raises(
        InputError, match="`baseline` early: no such group; the groups are plain, stock"
    ):
        join_results([("a", both)], baseline="early")


def test_what_was_measured_in_another_way_is_refused_and_named(both: Diversity) -> None:
    shorter = measured(texts_of(3, 14, "late"), by="group", n_words=20)
    with pytest.raises(MixError) as caught:
        join_results([("a", both), ("b", shorter)])
    said = str(caught.value)
    assert said.startswith("a and b: not measured in the same way (words: 30 | 20)")
    assert said.endswith(
        "measure both with the same numbers of words and texts and the same settings"
    )
    fewer = measured(texts_of(3, 12, "late"), by="group")
    with pytest.raises(MixError, match=r"\(texts: 14 \| 12\)"):
        join_results([("a", both), ("b", fewer)])


def test_whether_words_of_prompts_count_is_in_the_signature() -> None:
    documents = texts_of(4, 12, "a")
    by_text = measured(documents, prompt="prompt")
    ids = [replace(one, meta={"prompt": f"p{k}"}) for k, one in enumerate(documents)]
    by_id = measured(ids, prompt="prompt")
    assert "|echo:left-out|" in by_text.signature
    assert "|echo:kept|" in by_id.signature
    assert "echo" not in measured(documents).signature
    with pytest.raises(MixError, match=r"echo: left-out \| kept"):
        join_results([("a", by_text), ("b", by_id)])


def test_the_same_texts_are_recognised_and_not_compared(both: Diversity) -> None:
    again = measured([*reversed(texts_of(0, 14, "plain"))], by="group")
    found = join_results([("a", stored(both)), ("b", stored(again))])
    assert [one.name for one in found.groups] == ["plain (a)", "stock", "plain (b)"]
    assert {(one.a, one.b) for one in found.tests} == {
        ("plain (a)", "stock"),
        ("stock", "plain (b)"),
    }
    assert "plain (a) and plain (b) are the same texts, and are not compared" in found.remarks
    assert not found.omnibus


def test_all_groups_are_tested_by_their_errors(both: Diversity, third: Diversity) -> None:
    found = join_results([("a", both), ("b", third)])
    one = next(test for test in found.omnibus if test.measure == "distinct.2")
    groups = [*both.groups, *third.groups]
    values = [group.estimates["distinct.2"].value or 0.0 for group in groups]
    errors = [group.errors["distinct.2"] for group in groups]
    expected = welch_f(values, [e.value for e in errors], [e.df for e in errors])
    assert (one.f, one.df_within, one.p) == expected
    assert one.df_between == 2


def test_the_f_of_means_is_that_of_scipy() -> None:
    rng = random.Random(5)
    samples = [[rng.gauss(k, 1 + k) for _ in range(8 + 3 * k)] for k in range(4)]
    means = [sum(some) / len(some) for some in samples]
    f, _, p = welch_f(means, [stats.sem(some) for some in samples], [len(s) - 1 for s in samples])
    expected = stats.f_oneway(*samples, equal_var=False)
    assert (f, p) == pytest.approx((expected.statistic, expected.pvalue))


def test_damage_is_said_with_the_remedy(both: Diversity) -> None:
    content = both.to_json()
    for change in ({"groups": 3}, {"signature": "diversity"}, {"tests": [{}]}):
        with pytest.raises(InputError, match=r"a\.json: not a whole result .*--json"):
            read_result({**content, **change}, "a.json")


def test_sets_measured_apart_rarely_differ_where_they_are_of_one_kind() -> None:
    """At 5 % no more than 5 % do: in 40 trials 7 would come about once in two hundred."""
    n_below: Counter[str] = Counter()
    for trial in range(40):
        a, b = (
            measured(texts_of(100 + 2 * trial + k, 20, "a", "in a town by the sea "))
            for k in range(2)
        )
        found = join_results([("a", a), ("b", b)])
        n_below.update(one.measure for one in found.tests if (one.p or 1) <= 0.05)
    assert max(n_below.values()) <= 6
