"""How groups differ: the one table of contrasts, and the comparison of groups in any numbers."""

from __future__ import annotations

from collections.abc import Sequence

from fabula.errors import explain
from fabula.measures.comparison import NOT_SAID, Comparison
from fabula.presentation.sheet import Block, Column, Missing, Sheet, interval_notes
from fabula.stats.contrasts import Omnibus
from fabula.types import Contrast

NUMBER = Column("number", once=True)
_PERCENT = Column(
    "% of B",
    "+.1f",
    with_interval=True,
    name="percent",
    of=lambda one: one.details.get("percent", Missing("")),
)


def contrast_sheet(
    name: str,
    contrasts: Sequence[Contrast],
    form: str,
    *,
    number: Column | None = NUMBER,
    more: Sequence[Column] = (),
    p: str | Column = "p",
    adjusted: bool = True,
) -> Sheet:
    """A row for each contrast: A, B and A - B in this form, `more` of their columns, p."""
    columns = [
        *([] if number is None else [number]),
        Column("A", name="a"),
        Column("B", name="b"),
        Column("A - B", form, with_interval=True, name="difference"),
        *more,
        *([p] if isinstance(p, Column) else [Column(p, ".2g", name="p")] if p else []),
        *([Column("p (Holm)", ".2g", name="p_adjusted")] if adjusted else []),
    ]
    return Sheet.of(name, contrasts, columns)


def comparison_tables(found: Comparison) -> list[Block]:
    """Each number's mean by group, then pairs with their tests."""
    tested = {one.number for one in found.contrasts} or {one.number for one in found.groups}
    shown = [one for one in found.groups if one.number in tested]
    unit = "texts" if found.cluster is None else "clusters"
    groups = Sheet.of(
        "groups",
        shown,
        [
            Column("number", once=True),
            Column(found.field, name="group"),
            Column(unit, ",", name="n", of="mean.n"),
            Column("missing", ",", of="n_missing"),
            Column("mean", ".4g", with_interval=True),
        ],
    )
    more = [Column("P(A > B)", ".3f", name="superiority", of="details.superiority")]
    if any("percent" in one.details for one in found.contrasts):
        more.insert(0, _PERCENT)
    number = NUMBER if len({one.number for one in found.contrasts}) > 1 else None
    pairs = contrast_sheet("pairs", found.contrasts, "+.3g", number=number, more=more)
    n_tests = sum(one.p_adjusted is not None for one in found.contrasts)
    tests = "; ".join(dict.fromkeys(one.test for one in found.contrasts))
    over = "" if n_tests == 1 else f"; p (Holm): corrected over all {n_tests:,} tests above"
    shown_pairs: Block = pairs if found.contrasts else "no two groups have a number in common"
    reasons = [
        f"missing in {one.group} ({one.number}): {n:,} {explain(reason)}"
        for one in shown
        for reason, n in one.missing.items()
        if reason != NOT_SAID
    ]
    at_once = [line for name, one in found.omnibus.items() for line in omnibus_lines(one, name)]
    notes = interval_notes([*groups.estimates(), *pairs.estimates()], unit)
    if found.cluster is not None:
        notes.append(
            f"Texts with the same {found.cluster} count as one in a group; tests permute "
            f"groups within each {found.cluster} that they share, and whole ones otherwise."
        )
    if found.n_joined:
        notes.append(f"{found.n_joined:,} more before near-duplicates were joined")
    if found.shared_field is not None:
        notes.append(
            f"Texts share {found.shared_field}, but are counted as independent: cluster by it "
            f"(--cluster {found.shared_field})."
        )
    signatures = dict.fromkeys(found.signatures[one.number] for one in shown)
    tables: list[Block] = [groups, *reasons, *at_once, "", shown_pairs]
    return [*tables, *([f"p: {tests}{over}"] if n_tests else []), *notes, "", *signatures]


def omnibus_lines(found: Omnibus | None, number: str = "") -> list[str]:
    """Whether several groups differ at all; for two the test of the pair says so."""
    if found is None or found.n_groups < 3:
        return []
    unit = "clusters" if found.is_clustered else "texts"
    p = f"no p from {found.n_units:,} {unit}" if found.p is None else f"p = {found.p:.2g}"
    statistic = "infinite" if found.statistic is None else f"{found.statistic:.2f}"
    what = f" in {number}" if number else ""
    return [
        f"all {found.n_groups:,} groups alike{what}: {found.test} = {statistic} over "
        f"{found.n_units:,} {unit}, {p}"
    ]
