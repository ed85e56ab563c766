"""Reference groups: the distribution of a number over texts by people, or by models.

A group is shipped or stored as numbers only, never with texts. Its numbers belong to a signature,
and a text is placed among them only if it was measured in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from fabula.core.errors import DAMAGE, InputError
from fabula.core.store import read_rows, write_rows
from fabula.core.types import Measurement, Signature

GroupKind = Literal["people", "models", "other"]
N_QUANTILES = 101
"""The smallest value, every hundredth, and the largest."""

_SHIPPED = Path(__file__).parent / "groups.jsonl"
# Differences that change numbers only in rare cases; a remark says so.
_TOLERATED = {"v", "spacy", "run"}


@dataclass(frozen=True, slots=True)
class Distribution:
    """The values of one item over a group."""

    n: int
    n_missing: int
    mean: float
    sd: float | None
    quantiles: tuple[float, ...]
    """Ascending, `N_QUANTILES` of them, from the smallest value to the largest."""

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Distribution | None:
        """None if there are no values. Quantiles are interpolated (Hyndman and Fan's type 7)."""
        listed = list(values)
        data = np.array([value for value in listed if value is not None], np.float64)
        if not len(data):
            return None
        mean = _short(float(data.mean()))
        sd = _short(float(data.std(ddof=1))) if len(data) > 1 else None
        quantiles = np.quantile(data, np.linspace(0, 1, N_QUANTILES)).tolist()
        return cls(len(data), len(listed) - len(data), mean, sd, tuple(map(_short, quantiles)))

    def quantile(self, share: float) -> float:
        """The value below which this share of the group lies."""
        return float(np.interp(share, np.linspace(0, 1, N_QUANTILES), self.quantiles))

    def share_below(self, value: float) -> float:
        """The share of the group below a value, ties counting half: 0 to 1."""
        steps = np.linspace(0, 1, N_QUANTILES)
        quantiles = np.array(self.quantiles)
        # Rounded to the stored digits, otherwise nothing would be equal.
        value = _short(value)
        if value < quantiles[0] or value > quantiles[-1]:
            return float(value > quantiles[-1])
        # Where many values are equal, so are quantiles: take the middle of their range.
        first = int(np.searchsorted(quantiles, value, "left"))
        last = int(np.searchsorted(quantiles, value, "right")) - 1
        if last >= first:
            return float((steps[first] + steps[last]) / 2)
        inside = (value - quantiles[last]) / (quantiles[first] - quantiles[last])
        return float(steps[last] + inside * (steps[first] - steps[last]))


@dataclass(frozen=True, slots=True)
class GroupNumbers:
    """A group's numbers under one signature."""

    group: str
    kind: GroupKind
    title: str
    """As a page names it: `48 stories by people, r/WritingPrompts`."""
    signature: str
    items: Mapping[str, Distribution]


@dataclass(frozen=True, slots=True)
class Found:
    """Groups measured in the same way as a text; `remark` names immaterial differences."""

    groups: tuple[GroupNumbers, ...]
    remark: str = ""


class GroupBook:
    """The available groups: those that ship, then those of the user's own files."""

    def __init__(self, groups: Iterable[GroupNumbers]) -> None:
        # The newest of the same name and signature counts.
        self.groups = tuple({(g.group, g.signature): g for g in groups}.values())

    @classmethod
    def open(cls, *own: Path) -> GroupBook:
        """Load the shipped groups and those in these files. Raises `InputError`."""
        return cls(group for path in (_SHIPPED, *own) for group in read_groups(path))

    def find(self, signature: str) -> Found:
        """The groups measured with this signature, people first."""
        parsed, close = Signature.parse(signature), []
        for group in self.groups:
            differing = parsed.differences(Signature.parse(group.signature))
            if {part.partition(":")[0] for part in differing} <= _TOLERATED:
                close.append((group, differing))
        close.sort(key=lambda pair: get_args(GroupKind).index(pair[0].kind))
        named = dict.fromkeys(part for _, differing in close for part in differing)
        remark = f"groups measured with {'; '.join(named)}" if named else ""
        return Found(tuple(group for group, _ in close), remark)


def measure_group(
    group: str, kind: GroupKind, title: str, measurements: Iterable[Measurement]
) -> list[GroupNumbers]:
    """The numbers of a group, one entry for each signature among the measurements."""
    values: dict[str, dict[str, list[float | None]]] = {}
    for measurement in measurements:
        if measurement.value is None or isinstance(measurement.value, float | int):
            of_item = values.setdefault(measurement.signature, {}).setdefault(measurement.item, [])
            of_item.append(None if measurement.value is None else float(measurement.value))
    groups = []
    for signature, items in values.items():
        by_item = {item: d for item, v in items.items() if (d := Distribution.of(v)) is not None}
        groups.append(GroupNumbers(group, kind, title, signature, by_item))
    return groups


def write_groups(path: Path, groups: Sequence[GroupNumbers]) -> None:
    """Write one group per line."""
    write_rows(path, map(asdict, groups), are_results=True)


def read_groups(path: Path) -> list[GroupNumbers]:
    """Read the output of `write_groups`. Raises `InputError`."""
    groups = []
    for number, row in enumerate(read_rows(path), 1):
        try:
            if (kind := row["kind"]) not in get_args(GroupKind):
                raise ValueError(f"kind {kind!r}")
            items = {}
            for item, entry in row["items"].items():
                quantiles = tuple(map(float, entry["quantiles"]))
                is_finite = all(map(math.isfinite, (*quantiles, float(entry["mean"]))))
                if not is_finite or len(quantiles) != N_QUANTILES or any(np.diff(quantiles) < 0):
                    raise ValueError(f"quantiles of {item}")
                sd = None if entry["sd"] is None else float(entry["sd"])
                items[str(item)] = Distribution(
                    int(entry["n"]), int(entry["n_missing"]), float(entry["mean"]), sd, quantiles
                )
            name, title, signature = (str(row[key]) for key in ("group", "title", "signature"))
            groups.append(GroupNumbers(name, kind, title, signature, items))
        except DAMAGE as error:
            raise InputError(
                f"{path}, line {number}: not the numbers of a group ({error}); use the output of "
                "`fabula reference group --out`"
            ) from error
    return groups


def _short(value: float) -> float:
    """Round to six digits: more would be false precision."""
    return float(f"{value:.6g}")
