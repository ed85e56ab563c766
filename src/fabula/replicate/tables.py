"""The numbers that a paper prints, next to the computed ones; and tables of a study of stories.

`printed/<paper>.csv` has a paper's numbers by table, row and column. Where a table drops trailing
zeros they are written out, so that each number has the digits of its table.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from fabula.core.types import Estimate, Rubric
from fabula.judging.tables import PANEL_SHARES, correlation_line
from fabula.raters.agreement import AmongPeople
from fabula.show.charts import COLOURS, LINE, figure_of
from fabula.show.sheet import Block, Cell, Column, Sheet

_DIFFERS = " !"
_TINY = 1e-9
"""Tolerance that lets half of the last digit round either way, whatever its binary form."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A number that a paper prints, and the computed one."""

    table: str
    row: str
    column: str
    printed: Decimal
    computed: float | None
    why: str = ""
    """Why they differ or cannot be compared, if known."""
    by: str = ""
    """What computed it, if there are several sources."""

    def __post_init__(self) -> None:
        if self.computed is None and not self.why:
            raise ValueError(f"{self.table}, {self.row}, {self.column}: missing without a reason")

    @property
    def n_digits(self) -> int:
        """Digits after the point, as printed."""
        return -int(self.printed.as_tuple().exponent)

    @property
    def differs(self) -> bool | None:
        """Whether it rounds to another number than the printed one; None if it is missing.

        0.415 rounds to 0.41 and to 0.42.
        """
        if self.computed is None:
            return None
        half = 0.5 * 10.0**-self.n_digits + _TINY
        return not math.isclose(self.computed, float(self.printed), rel_tol=0, abs_tol=half)

    def shown(self) -> str:
        """`27.8 (27.9) !`: ours, the printed one in brackets, and a mark if they differ."""
        ours = "missing" if self.computed is None else f"{self.computed:.{self.n_digits}f}"
        return f"{ours} ({self.printed}){_DIFFERS if self.differs else ''}"

    def record(self, field: str) -> dict[str, object]:
        """Its part of a row of a CSV file."""
        parts = {"_printed": str(self.printed), "_differs": self.differs, "_why": self.why}
        return {field: self.computed} | {f"{field}{name}": value for name, value in parts.items()}

    def to_json(self) -> dict[str, object]:
        """As plain values."""
        names = ("table", "row", "column", "by", "printed", "computed", "differs", "why")
        return {name: getattr(self, name) for name in names} | {"printed": float(self.printed)}


@cache
def load_printed(paper: str) -> Mapping[tuple[str, str, str], Decimal]:
    """A paper's printed numbers, by table, row and column, in the order of its file."""
    text = (files("fabula.replicate") / "printed" / f"{paper}.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {(r["table"], r["row"], r["column"]): Decimal(r["printed"]) for r in rows}


def printed_table(paper: str, table: str) -> dict[str, dict[str, float]]:
    """The numbers of a table, by row and column."""
    rows: dict[str, dict[str, float]] = {}
    for (name, row, column), printed in load_printed(paper).items():
        if name == table:
            rows.setdefault(row, {})[column] = float(printed)
    return rows


def claims_of(
    paper: str,
    tables: Sequence[str],
    computed: Mapping[tuple[str, str], float | None],
    *,
    missing: str,
    why: str = "",
    notes: Mapping[tuple[str, str], str] | None = None,
    by: str = "",
) -> list[Claim]:
    """A claim for each printed number of `tables`; `computed` is by row and column.

    `missing` says why numbers were not computed, `why` why they differ; `notes` by row and column.
    """
    claims = []
    for (table, row, column), printed in load_printed(paper).items():
        if table in tables:
            value = computed.get((row, column))
            reason = (notes or {}).get((row, column), missing if value is None else why)
            claims.append(Claim(table, row, column, printed, value, reason, by))
    return claims


def claim_sheet(
    name: str,
    rows: Mapping[str, str],
    columns: Mapping[str, str],
    claims: Iterable[Claim],
    others: Mapping[tuple[str, str], float | None] | None = None,
    *,
    form: str,
    forms: Sequence[str] = (),
) -> Sheet:
    """Claims by row and column, with the given titles; `others` are numbers without a claim.

    `form` is their format, and `forms` the formats if each row has its own.
    """
    cells: dict[tuple[str, str], Cell] = dict(others or {})
    cells |= {(claim.row, claim.column): claim for claim in claims}
    titles = [Column(title, form, name=column) for column, title in columns.items()]
    lines = [[title, *(cells.get((row, key)) for key in columns)] for row, title in rows.items()]
    return Sheet(name, [Column("", name="row"), *titles], lines, forms=forms)


def agreement_lines(claims: Sequence[Claim]) -> list[str]:
    """How many agree out of how many, why others differ, and why others are missing."""
    n_computed = sum(claim.computed is not None for claim in claims)
    n_equal = sum(claim.differs is False for claim in claims)
    lines = [
        f"ours (printed): {n_equal:,} of {n_computed:,} agree at the printed digits;"
        f"{_DIFFERS} where not"
    ]
    lines += dict.fromkeys(claim.why for claim in claims if claim.differs and claim.why)
    missing = Counter(claim.why for claim in claims if claim.computed is None)
    return [*lines, *(f"missing: {n:,} of {len(claims):,}, {why}" for why, n in missing.items())]


def section(
    title: str, *sheets: Sheet, claims: Sequence[Claim] = (), remarks: Sequence[str] = ()
) -> list[Block]:
    """Sheets below their title, and what `agreement_lines` says of their claims."""
    lines = [*(agreement_lines(claims) if claims else ()), *remarks]
    return [title, "", *sheets, "", *([*lines, ""] if lines else ())]


Counts = Mapping[str, Mapping[Any, float]]
_PLACE, _ORIGIN = "place in the group", "taken for"
"""The titles of ranks and of supposed origins."""


def study_tables(
    rubric: Rubric,
    rates: Mapping[str, Mapping[str, float]],
    agreement: Sequence[AmongPeople],
    passed: Counts,
    correlation: Estimate,
    ranks: Counts,
    origins: Counts,
) -> list[Block]:
    """Pass rates, agreement with intervals, tests passed, ranks and supposed origins."""
    first = Sheet(
        "passed",
        [Column("passed, %", name="test"), *(Column(author, ".1f") for author in rates)],
        [
            [f"{item.index} {item.title}", *(by_item.get(item.id) for by_item in rates.values())]
            for item in rubric.items
        ],
    )
    columns = [
        Column("agreement of readers", name="item", of="name"),
        Column("n", ",", of="kappa.n"),
        Column("Fleiss kappa", ".2f", with_interval=True, of="kappa"),
        *PANEL_SHARES,
    ]
    second = Sheet.of("agreement", agreement, columns)
    tests = range(len(rubric.items) + 1)
    third = by_author("tests_passed", "tests passed, readings", passed, tests, gap="·")
    parts = [first, "", *second.with_notes("stories"), "", third, "", correlation_line(correlation)]
    for name, title, counts in (("places", _PLACE, ranks), ("origins", _ORIGIN, origins)):
        if counts:
            parts += ["", by_author(name, title, counts)]
    return parts


def by_author(
    name: str, title: str, counts: Counts, names: Sequence[Any] = (), form: str = "d", gap: Cell = 0
) -> Sheet:
    """A row per author; the columns are `names`, or those that any author has."""
    names = names or _names(counts)
    columns = [Column(title, name="author"), *(Column(str(value), form) for value in names)]
    rows: list[list[Cell]] = [
        [author, *(row.get(value, gap) for value in names)] for author, row in counts.items()
    ]
    return Sheet(name, columns, rows)


def _names(counts: Counts) -> list[Any]:
    return sorted({name for row in counts.values() for name in row}, key=str)


@dataclass(frozen=True, slots=True)
class PairItem:
    """An item that people answered about pairs of stories."""

    item: str
    n: int
    n_neither: int
    first_share: float | None
    """Of the answers with a preference, how often it was the story shown first."""
    n_shared: int
    """Pairs that several people compared."""
    share_same: float | None
    """How often two answers to one question about a pair are the same."""


def pair_items(items: Sequence[PairItem], n_people: int, at_once: int) -> list[Block]:
    """People's answers to each item about stories side by side, and their agreement."""
    columns = [
        Column("item"),
        Column("answers", "d", name="n"),
        Column("neither", "d", name="n_neither"),
        Column("first preferred", ".0%", name="first_share"),
        Column("pairs of several people", "d", name="n_shared"),
        Column("two agree", ".0%", name="share_same"),
    ]
    chance = "two people who toss coins agree on 50%"
    if any(item.n_neither for item in items):
        chance = (
            "two people who choose one at random agree on 50%, and less often with a third answer"
        )
    heading = f"{n_people:,} people on pairs of stories"
    if at_once > 2:
        heading = (
            f"{n_people:,} people on the best and the worst of {at_once} stories; each answer "
            "counts as five about two stories"
        )
    return [heading, Sheet.of("pair_items", items, columns), chance]


def save_study(passed: Counts, ranks: Counts, origins: Counts, n_items: int, path: Path) -> None:
    """Tests passed, ranks in the group and supposed origins, by author, in percent of readings.

    Questions that were not asked have no panel. The same counts give the same bytes. Raises
    `InputError` for an unknown extension.
    """
    panels: list[tuple[str, Counts, Sequence[Any]]] = [("tests passed", passed, range(n_items + 1))]
    for title, counts in ((_PLACE, ranks), (_ORIGIN, origins)):
        if values := _names(counts):
            panels.append((title, counts, values))
    with figure_of(path, len(panels), 1, figsize=(7.2, 2.9 * len(panels))) as (_, drawn):
        for axes, (title, counts, names) in zip(drawn, panels, strict=True):
            width = 0.84 / max(1, len(counts))
            places = np.arange(len(names))
            for k, (author, row) in enumerate(counts.items()):
                total = sum(row.values())
                axes.bar(
                    places + (k - (len(counts) - 1) / 2) * width,
                    [100 * row.get(name, 0) / total if total else 0.0 for name in names],
                    width * 0.92,
                    color=COLOURS[k % len(COLOURS)],
                    label=f"{author} (n = {total})",
                )
            axes.set_xticks(places, [str(name) for name in names])
            axes.set_xlabel(title)
            axes.set_ylabel("% of readings")
            axes.grid(axis="y", color=LINE, linewidth=0.8)
            axes.set_axisbelow(True)
        drawn[0].legend(frameon=False, fontsize=8)
