"""Settings: checked by the constructor, described once, and built from values by path."""

import dataclasses
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabula.core.errors import InputError
from fabula.core.settings import Between, Settings, SettingsError, build, fields_of, part, setting


@dataclass(frozen=True, slots=True)
class Draw(Settings):
    n_samples: int = setting(1, help="Times.", unit="N", check=Between(1, 9))
    seed: int = setting(0, help="Seed.", check=Between(0))


@dataclass(frozen=True, slots=True)
class Job(Settings):
    sources: tuple[str, ...] = setting(help="Texts.", option="source")
    kind: Literal["a", "b"] | None = setting(None, help="Kind.")
    kinds: tuple[Literal["a", "b"], ...] = setting((), help="Kinds.")
    share: float | None = setting(None, help="Share.", check=Between(0, 1, low_open=True))
    draw: Draw = part(Draw)
    out: Path | None = setting(None, help="File.")
    kept: str = "not an option"

    def check_together(self) -> None:
        if self.kind == "b" and self.share is None:
            raise SettingsError("share", "is needed with `kind` b")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"share": 0.0}, "`share` must be above 0 and at most 1, got 0.0"),
        ({"share": float("nan")}, "`share` must be above 0 and at most 1, got nan"),
        ({"kind": "c"}, "`kind` must be one of 'a', 'b', None; got 'c'"),
        ({"kinds": ("a", "c")}, "`kinds` must be one of 'a', 'b'; got 'c'"),
        ({"kinds": "ab"}, "`kinds` must be a tuple, got the string 'ab'"),
        ({"sources": "a.txt"}, "`sources` must be a tuple, got the string 'a.txt'"),
        ({"kind": "b"}, "`share` is needed with `kind` b"),
    ],
)
def test_a_wrong_value_never_gets_past_the_constructor(values: dict[str, object], said: str):
    with pytest.raises(InputError) as caught:
        Job(**({"sources": ("a",)} | values))  # type: ignore[arg-type]
    assert str(caught.value) == said


def test_every_setting_is_described_once_with_its_place():
    described = {one.path: one for one in fields_of(Job)}
    assert list(described) == [
        ("sources",), ("kind",), ("kinds",), ("share",), ("draw", "n_samples"), ("draw", "seed"),
        ("out",),
    ]  # fmt: skip
    assert described[("sources",)].default is dataclasses.MISSING
    assert described[("draw", "n_samples")].field.option_of("n_samples") == "samples"
    assert described[("sources",)].field.option_of("sources") == "source"


def test_an_address_is_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    @dataclass(frozen=True)
    class Kept(Settings):
        out: Path | None = setting(None, help="Where it is kept.")

    monkeypatch.chdir(tmp_path)
    for address in "s3://b/rows.jsonl", "memory://rows.jsonl":
        with pytest.raises(SettingsError, match=f"`out` must be a path on this .* got {address};"):
            Kept(Path(address))
    assert Kept(Path("/s3:/rows.jsonl")).out is not None
    Path("s3:").mkdir()
    assert Kept(Path("s3:/rows.jsonl")).out is not None


@given(st.integers(1, 9), st.integers(0, 2**40), st.none() | st.floats(0.001, 1))
def test_settings_are_built_by_path_and_pickled(n: int, seed: int, share: float | None):
    values = {("sources",): ("a",), ("draw", "n_samples"): n, ("draw", "seed"): seed,
              ("share",): share}  # fmt: skip
    made = build(Job, values)
    assert made == Job(("a",), share=share, draw=Draw(n, seed))
    assert pickle.loads(pickle.dumps(made)) == made


@given(
    st.none() | st.integers(-5, 5), st.none() | st.integers(-5, 5), st.booleans(), st.booleans(),
    st.integers(-6, 6),
)  # fmt: skip
def test_between_equals_comparing_one_end_at_a_time(
    low: int | None, high: int | None, low_open: bool, high_open: bool, value: int
):
    above = low is None or (value > low if low_open else value >= low)
    below = high is None or (value < high if high_open else value <= high)
    assert (Between(low, high, low_open, high_open)(value) is None) == (above and below)
