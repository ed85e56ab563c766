"""The numbers that a paper prints, next to the computed ones.

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
    return {
        (record["table"], record["row"], record["column"]): Decimal(record["printed"])
        for record in csv.DictReader(text.splitlines())
    }


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
