"""A judge's means next to what experts would have said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from fabula.measures.corrected_means import CorrectedRow, Correction
from fabula.presentation.sheet import Block, Cell, Column, Missing, Sheet, number
from fabula.types import Estimate, Rubric

_ABOUT = {
    "texts": "intervals are about these texts",
    "source": "intervals are about the source of these texts",
}


def correction_tables(found: Correction, rubric: Rubric) -> list[Block]:
    """Groups and all, items, differences of groups; then the effect of more labels."""
    form = ".1%" if found.unit == "share of Yes" else ".2f"
    titles = {item.id: f"{item.index} {item.title}" for item in rubric.items}
    parts: list[Block] = [
        f"{found.judge}, {found.unit}: as judged, and corrected by experts' labels; "
        f"{_ABOUT[found.about]}",
        "",
        _rows("corrected", [*found.groups, found.overall], {}, form),
        "",
        _rows("corrected_items", found.items, titles, form),
    ]
    if found.numbers:
        parts += ["", _rows("corrected_numbers", found.numbers, titles, ".2f")]
    if found.differences:
        parts += ["", _differences(found, form)]
    if found.transfers:
        parts += ["", _transfers(found, form)]
    left = ", ".join(titles[name] for name in found.left_out)
    lines = [f"not corrected: {left}", ""] if left else []
    return [*parts, "", *_sentences(found, form), *lines, found.signature]


def _rows(name: str, rows: Sequence[CorrectedRow], titles: Mapping[str, str], form: str) -> Sheet:
    columns = [
        Column("", name="row", cut=True, of=lambda row: titles.get(row.name, row.name)),
        Column("judge", form, name="raw"),
        Column("experts", form, with_interval=True, name="corrected", of=estimate_cell),
        Column("labelled", "d", name="n_labelled"),
        Column("of", "d", name="n"),
        Column("worth", ".0f", name="n_worth"),
    ]
    return Sheet.of(name, rows, columns)


def estimate_cell(row: CorrectedRow) -> Cell:
    """A row's figure with its interval, or why there is none."""
    if row.value is None:
        return Missing(row.reason or "")
    return Estimate(row.value, row.low, row.high, row.n_labelled, "", "")


def _differences(found: Correction, form: str) -> Sheet:
    columns = [
        Column("group", name="a"),
        Column("less", name="b"),
        Column("judge", f"+{form}", name="raw"),
        Column(
            "experts",
            f"+{form}",
            with_interval=True,
            name="corrected",
            of=lambda one: Estimate(one.value, one.low, one.high, 0, "", ""),
        ),
        Column("p (Holm)", ".3f", name="p"),
    ]
    return Sheet.of("differences", found.differences, columns)


def _transfers(found: Correction, form: str) -> Sheet:
    columns = [
        Column("group", name="group", of="name"),
        Column(
            "by the others' labels",
            form,
            name="value",
            of=lambda one: Missing("does not hold") if one.value is None else one.value,
        ),
        Column(
            "own labels differ by",
            f"+{form}",
            with_interval=True,
            name="difference",
            of=lambda one: Estimate(one.difference, one.low, one.high, one.n_labelled, "", ""),
        ),
        Column("p (Holm)", ".3f", name="p"),
    ]
    return Sheet.of("transfers", found.transfers, columns)


def _sentences(found: Correction, form: str) -> list[str]:
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
    reasons = {
        row.reason
        for row in chain(found.items, found.numbers, found.groups, [overall])
        if row.reason
    }
    lines += [f"no interval: {reason}" for reason in sorted(reasons) if reason.startswith("fewer")]
    broken = [one.name for one in found.transfers if one.value is None]
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
    return [*lines, ""] if lines else []
