"""Reference groups: a value's place among others, and what makes two ways to measure alike."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.core.errors import InputError
from fabula.core.store import read_rows, write_rows
from fabula.core.types import Measurement
from fabula.linguistic.profile import PROFILE_METRICS
from fabula.stats.norms import (
    Distribution,
    GroupBook,
    GroupNumbers,
    measure_group,
    read_groups,
    write_groups,
)

SIGNATURE = "profile|pipe:en_core_web_md-3.7.1|spacy:3.8.18|v:0.1.0"


@given(st.lists(st.integers(0, 30), min_size=1, max_size=300), st.integers(-2, 33))
def test_the_share_below_is_that_of_the_values_themselves(values: list[int], value: int):
    """Against the plain count, equals counting half; a hundredth is lost by keeping quantiles."""
    found = Distribution.of(map(float, values))
    data = np.array(values)
    expected = np.mean(data < value) + np.mean(data == value) / 2
    # Between two neighbours the quantiles are interpolated: one value more or less.
    assert found.share_below(value) == pytest.approx(expected, abs=0.015 + 1.01 / len(values))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=100), st.floats(0, 1))
def test_quantiles_are_those_of_numpy(values: list[float], share: float):
    found = Distribution.of(values)
    near = round(share, 2)
    assert found.quantile(near) == pytest.approx(np.quantile(values, near), rel=1e-4, abs=1e-6)


def test_missing_values_are_counted_and_never_zero():
    found = Distribution.of([None, 2.0, None, 4.0])
    assert (found.n, found.n_missing, found.mean) == (2, 2, 3.0)
    assert Distribution.of([None]) is None
    assert Distribution.of([230 / 37] * 9).share_below(230 / 37) == 0.5


def one(item: str, value: float | None, signature: str = SIGNATURE) -> Measurement:
    reason = "too_short" if value is None else None
    return Measurement("d", "profile", item, "fabula", value, reason, (), None, signature)


def test_a_group_is_written_and_read_back_the_same(tmp_path: Path):
    measurements = [one("mtld", 60.25), one("mtld", None), one("mtld", 80.0), one("words", 7.0),
                    one("index", 7.5, "originality|ref:a@1")]  # fmt: skip
    groups = measure_group("mine", "people", "3 texts", measurements)
    assert [set(group.items) for group in groups] == [{"mtld", "words"}, {"index"}]
    assert groups[0].items["mtld"].n_missing == 1
    write_groups(tmp_path / "g.jsonl", groups)
    assert read_groups(tmp_path / "g.jsonl") == groups


@pytest.mark.parametrize(
    "wrong", [{"kind": "aliens"}, {"items": {"a": {"n": 1}}}, {"items": None}, {"kind": []}]
)
def test_a_file_that_holds_no_groups_is_named_with_its_line(tmp_path: Path, wrong: Any):
    (group,) = measure_group("mine", "people", "t", [one("mtld", 1.0)])
    write_groups(tmp_path / "g.jsonl", [group])
    (row,) = read_rows(tmp_path / "g.jsonl")
    write_rows(tmp_path / "g.jsonl", [row, row | wrong])
    with pytest.raises(InputError, match=r"g\.jsonl, line 2: not the numbers of a group"):
        read_groups(tmp_path / "g.jsonl")


def test_only_what_was_measured_alike_is_compared():
    said = [("models", "models", SIGNATURE), ("people", "people", SIGNATURE),
            ("other", "people", "profile|pipe:other|v:0.1.0")]  # fmt: skip
    groups = [measure_group(name, kind, "t", [one("mtld", 1.0, s)]) for name, kind, s in said]
    book = GroupBook([group for (group,) in groups])
    found = book.find(SIGNATURE)
    assert [group.group for group in found.groups] == ["people", "models"], "people come first"
    assert found.remark == ""
    newer = book.find(SIGNATURE.replace("spacy:3.8.18", "spacy:3.9.0"))
    assert len(newer.groups) == 2
    assert "spacy: 3.9.0 | 3.8.18" in newer.remark
    assert not book.find(SIGNATURE.replace("md-3.7.1", "lg-3.7.1")).groups
    # The name of a reference does not matter, its content does.
    (group,) = measure_group("g", "people", "t", [one("i", 1.0, "originality|ref:books.ref@12ab")])
    book = GroupBook([group])
    assert book.find("originality|ref:mine@12ab").groups == (group,)
    assert not book.find("originality|ref:books.ref@ffff").groups


def test_the_groups_that_ship_hold_every_number_of_a_profile_and_no_text():
    groups = GroupBook.open().groups
    for name in ("profile", "fluency", "originality"):
        found = [g for g in groups if g.signature.startswith(f"{name}|")]
        assert {g.kind for g in found} == {"people", "models"}, name
        if name == "profile":
            assert all({m.item for m in PROFILE_METRICS} == set(g.items) for g in found)
    for group in groups:
        assert isinstance(group, GroupNumbers)
        assert all(one.n > 10 for one in group.items.values())
