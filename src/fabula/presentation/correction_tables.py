"""A judge's means next to what experts would have said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fabula.measures.corrected_means import CorrectedRow, Correction
from fabula.presentation.sheet import (
    Block,
    Cell,
    Column,
    Missing,
    Sheet,
    contrast_sheet,
    item_column,
    known,
    number,
)
from fabula.types import Estimate, Rubric

_ABOUT = {"texts": "these texts", "source": "the source of these texts"}


def correction_tables(found: Correction, rubric: Rubric) -> list[Block]:
    """Groups and all, items, differences of groups; then the effect of more labels."""
    form = ".1%" if found.unit == "share of Yes" else ".2f"
    items = item_column(rubric)
    parts: list[Block] = [
        f"{found.judge}, {found.unit}: as judged, and corrected by experts' labels; "
        f"intervals are about {_ABOUT[found.about]}",
        "",
        _rows("corrected", [*found.groups, found.overall], replace(items, of="name"), form),
        "",
        _rows("corrected_items", found.items, items, form),
    ]
    if found.numbers:
        parts += ["", _rows("corrected_numbers", found.numbers, items, ".2f")]
    if found.differences:
        raw = Column("judge", f"+{form}", name="raw", of="details.raw")
        sheet = contrast_sheet(
            "differences", found.differences, f"+{form}", number=None, more=[raw], p=""
        )
        parts += ["", "differences of groups, as experts would give them", "", sheet]
    if found.transfers:
        columns = [
            Column("group", of="a"),
            Column(
                "by the others' labels",
                form,
                name="level",
                of=lambda one: known(one.details["level"], "does not hold"),
            ),
            Column("own labels differ by", f"+{form}", with_interval=True, name="difference"),
            Column("p (Holm)", ".3f", name="p_adjusted"),
        ]
        parts += ["", Sheet.of("transfers", found.transfers, columns)]
    overall = found.overall
    lines = []
    if overall.n_worth is not None and overall.n_labelled:
        saved, *ends = (
            None if one is None else max(0.0, one - overall.n_labelled)
            for one in (overall.n_worth, overall.n_worth_low, overall.n_worth_high)
        )
        low, high = (f"{end:.0f}" if end is not None else "" for end in ends)
        interval = f" (95 % interval {low} to {high})" if low else ", with no interval"
        lines.append(
            f"the judge is worth {saved:.0f} labelled documents{interval} in addition to the "
            f"{overall.n_labelled} that are labelled"
        )
    if overall.n_labelled:
        wanted, width = found.n_labels_for_width, number(found.width, form)
        lines.append(
            f"an interval {width} wide needs more labels than there are documents"
            if wanted is None
            else f"an interval {width} wide needs about {wanted} labelled documents"
        )
    if found.to_label:
        lines.append(f"label next: {', '.join(found.to_label)}")
    rows = (*found.items, *found.numbers, *found.groups, overall)
    reasons = {row.reason for row in rows if row.reason}
    lines += [f"no interval: {reason}" for reason in sorted(reasons) if reason.startswith("fewer")]
    broken = [one.a for one in found.transfers if one.details["level"] is None]
    if broken:
        lines.append(
            f"what the other groups' labels teach about the judge does not hold for "
            f"{', '.join(broken)}, so a group without labels of its own has no level"
        )
    if found.n_without_verdict:
        lines.append(f"missing: the judge gave no answer on {found.n_without_verdict} documents")
    if found.n_partly_labelled:
        lines.append(
            f"{found.n_partly_labelled} documents have labels on some items only; they count for "
            "these items, and not overall"
        )
    if lines:
        lines.append("")
    if found.left_out:
        left = ", ".join(f"{one.index} {one.title}" for one in map(rubric.item, found.left_out))
        lines += [f"not corrected: {left}", ""]
    return [*parts, "", *lines, found.signature]


def _rows(name: str, rows: Sequence[CorrectedRow], names: Column, form: str) -> Sheet:
    return Sheet.of(name, rows, [names, *corrected_columns("judge", "experts", form, ".0f")])


def corrected_columns(raw: str, experts: str, form: str, worth_form: str) -> list[Column]:
    """Columns with these titles and forms: as judged, and as experts would have said."""

    def corrected(row: CorrectedRow) -> Cell:
        if row.value is None:
            return Missing(row.reason or "")
        return Estimate(row.value, row.low, row.high, row.n_labelled, "", "")

    return [
        Column(raw, form, name="raw"),
        Column(experts, form, with_interval=True, name="corrected", of=corrected),
        Column("labelled", "d", name="n_labelled"),
        Column("of", "d", name="n"),
        Column("worth", worth_form, name="n_worth"),
    ]
