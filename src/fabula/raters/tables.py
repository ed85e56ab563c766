"""Tables and charts of raters' answers about feedback, and of the topics of feedback."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fabula.core.types import Estimate, Rubric
from fabula.raters.agreement import AmongPeople, GradedAgreement, JudgeWithPeople
from fabula.raters.corrected_means import CorrectedRow, Correction
from fabula.raters.ratings import CategoryShares, GroupMean
from fabula.show.charts import COLOURS, LINE, figure_of
from fabula.show.sheet import (
    Block,
    Cell,
    Column,
    Missing,
    Sheet,
    contrast_sheet,
    interval_notes,
    interval_shown,
    item_column,
    known,
    number,
)

FIELDS = ("model", "method", "prompt", "shots")
"""Fields that feedback is grouped by, one table each."""


def means_table(
    title: str, means: Mapping[str, Mapping[str, GroupMean]], items: Sequence[str]
) -> Sheet:
    """A row for each group: mean and standard error by item (the form of Tables 3 to 5)."""

    def shown(mean: GroupMean | None) -> str:
        if mean is None or mean.mean is None:
            return "-"
        return f"{mean.mean:.3f}" + ("" if mean.error is None else f" ±{mean.error:.2f}")

    columns = [Column(title), *(Column(item.replace("_", " "), ".3f", name=item) for item in items)]
    rows = [[group, *(shown(row.get(item)) for item in items)] for group, row in means.items()]
    return Sheet(f"means_{title}", columns, rows)


def estimates_table(title: str, groups: Mapping[str, Mapping[str, Estimate]]) -> list[Block]:
    """A row for each group and item: n and the mean with its interval over stories."""
    columns = [
        Column(title, once=True),
        Column("question", name="item"),
        Column("n", ","),
        Column("stories", ",", name="n_stories"),
        Column("mean", ".3f", with_interval=True),
    ]
    rows: list[list[Cell]] = [
        [group, item.replace("_", " "), mean.n, mean.n_units, mean]
        for group, by_item in groups.items()
        for item, mean in by_item.items()
    ]
    return Sheet(f"means_{title}", columns, rows).with_notes("stories")


def agreement_table(agreement: Mapping[str, AmongPeople]) -> Sheet:
    """Agreement among raters, by item (the form of Table 2)."""
    columns = [
        Column("among raters", name="item", of="name"),
        Column("n", ","),
        Column("similarity", ".2f"),
        Column("alpha", ".2f", of="alpha.value"),
    ]
    return Sheet.of("raters", agreement.values(), columns)


def people_table(rater: str, agreement: Mapping[str, Mapping[str, Estimate]]) -> list[Block]:
    """A model's answers compared with people's means, by item."""
    columns = [
        Column(f"{rater} with people", name="item"),
        Column("n", ",", of="similarity.n"),
        Column("stories", ",", name="n_stories", of="similarity.n_units"),
        Column("1 - |a - b|", ".2f", with_interval=True, name="similarity"),
        Column("Pearson", "+.2f", with_interval=True, of="correlation"),
    ]
    rows: list[dict[str, Any]] = [{"item": item, **figures} for item, figures in agreement.items()]
    return Sheet.of("people", rows, columns, about=("rater", rater)).with_notes("stories")


_SHOWN = {"people": "kappa of people", "difference": "less people", "correlation": "Pearson"}
ON_ITEM = (
    Column("kappa", ".2f", with_interval=True, of="on_item.kappa"),
    Column("people", ".2f", of="on_item.people"),
    Column("less people", "+.2f", with_interval=True, name="difference", of="on_item.difference"),
    Column("Pearson", "+.2f", of="on_item.correlation"),
)
"""A judge on one item, beside people."""


def graded_tables(graded: GradedAgreement) -> list[Block]:
    """Items that are not yes-no: agreement among people, then of each judge with them."""
    columns = [
        Column("people", name="item", of="name"),
        Column("n", ","),
        Column("kappa", ".2f", with_interval=True),
        Column("alpha", ".2f", with_interval=True),
        Column("ICC", ".2f", with_interval=True, name="icc"),
        Column("similarity", ".2f"),
    ]
    people = Sheet.of("people", graded.people.values(), columns)
    blocks: list[Block] = [
        "items that are not yes-no: kappa between two people (with quadratic weights for "
        "numbers), Krippendorff's alpha at the scale's level, ICC(2,1)",
        "",
        people,
    ]
    estimates = list(people.estimates())
    columns = [Column("judge", name="item"), Column("n", ",", of="on_item.n"), *ON_ITEM]
    for rater, by_item in graded.judges.items():
        rows = [{"item": item, "on_item": agreement} for item, agreement in by_item.items()]
        sheet = Sheet.of("judges_graded", rows, columns, about=("rater", rater))
        heading = f"{rater} with people, and people among themselves on the same documents"
        blocks += ["", heading, "", sheet]
        estimates += sheet.estimates()
    why = missing_lines(graded.people.items())
    return [*blocks, *why, *judge_reasons(graded), *interval_notes(estimates, "documents")]


def missing_lines(
    rows: Iterable[tuple[str, AmongPeople | JudgeWithPeople]], of: str = ""
) -> list[str]:
    """Why estimates about named rows (of a judge) are missing: each reason once, with the rows."""
    lacking: dict[tuple[str, str], list[str]] = {}
    for name, row in rows:
        why: dict[str, list[str]] = {}
        for figure, reason in row.why_missing.items():
            why.setdefault(reason, []).append(_SHOWN.get(figure, figure))
        for reason, figures in why.items():
            lacking.setdefault((" and ".join(figures), reason), []).append(name)
    return [
        f"no {figures}{of and f' of {of}'} ({', '.join(names)}): {reason}"
        for (figures, reason), names in lacking.items()
    ]


def judge_reasons(graded: GradedAgreement) -> list[str]:
    """Why figures of judges on items that are not yes-no are missing."""
    groups = (missing_lines(by_item.items(), rater) for rater, by_item in graded.judges.items())
    return [line for lines in groups for line in lines]


def category_tables(
    shares: Sequence[CategoryShares],
    categories: Sequence[str],
    accuracy: Estimate | None,
    signature: str,
) -> list[Block]:
    """A table for each writer: corruptions in columns, categories in percent."""
    blocks: list[Block] = []
    for writer in dict.fromkeys(row.group[0] for row in shares):
        shown = [row for row in shares if row.group[0] == writer]
        columns = [Column("% of its feedback", name="category")]
        for group in shown:
            method = group.group[1]
            columns += [Column(method, ".0f"), Column("95 %", name=f"{method}_interval")]
        rows: list[list[Cell]] = []
        for category in categories:
            rows.append([category])
            for group in shown:
                percent = 100 * group.shares[category] if group.shares else None
                interval = interval_shown(group.intervals[category], ".0%") if group.shares else ""
                rows[-1] += [percent, interval.replace("%", "")]
        rows.append(["n", *(cell for row in shown for cell in (row.n, ""))])
        if any(row.n_missing for row in shown):
            rows.append(["no label", *(cell for row in shown for cell in (row.n_missing, ""))])
        notes = interval_notes((e for row in shown for e in row.intervals.values()), "stories")
        blocks += [writer, Sheet("categories", columns, rows, about=("writer", writer)), *notes, ""]
    if accuracy is not None:
        blocks.append(
            f"right on the labels given: {number(accuracy.value, '.0%')} of {accuracy.n:,} "
            f"(95 %: {interval_shown(accuracy, '.0%')}); the paper's labeller: 84 % of 480"
        )
        blocks += interval_notes([accuracy], "stories")
    else:
        blocks.append("no labels by people were given (`labels`): how often it is right is unknown")
    return [*blocks, signature]


def save_categories(
    shares: Sequence[CategoryShares], categories: Sequence[str], path: Path
) -> None:
    """A panel for each writer, a bar for each category and corruption (Figures 5 and 6).

    Groups are (writer, corruption). Same shares, same bytes. Raises `InputError` for other endings.
    """
    writers = list(dict.fromkeys(group.group[0] for group in shares))
    methods = list(dict.fromkeys(group.group[1] for group in shares))
    size = (2.2 + 3.4 * len(writers), 1.2 + 0.62 * len(categories))
    with figure_of(path, 1, len(writers), figsize=size, sharex=True, sharey=True) as (_, panels):
        height = 0.8 / len(methods)
        places = np.arange(len(categories))
        for axes, writer in zip(panels, writers, strict=True):
            for group in (row for row in shares if row.group[0] == writer):
                k = methods.index(group.group[1])
                axes.barh(
                    places + (k - (len(methods) - 1) / 2) * height,
                    [100 * group.shares.get(name, 0.0) for name in categories],
                    height * 0.92,
                    color=COLOURS[k % len(COLOURS)],
                    label=f"{group.group[1]} (n = {group.n:,})",
                )
            axes.set_title(writer, loc="left", fontsize=9.5)
            axes.set_xlabel("% of its feedback")
            axes.grid(axis="x", color=LINE, linewidth=0.8)
            axes.set_axisbelow(True)
            axes.legend(frameon=False, fontsize=7.5)
        panels[0].set_yticks(places, categories)
        panels[0].invert_yaxis()


_ABOUT = {"texts": "these texts", "source": "the source of these texts"}


def correction_tables(result: Correction, rubric: Rubric) -> list[Block]:
    """Groups and all, items, differences of groups; then the effect of more labels."""
    form = ".1%" if result.unit == "share of Yes" else ".2f"
    items = item_column(rubric)
    blocks: list[Block] = [
        f"{result.judge}, {result.unit}: as judged, and corrected by experts' labels; "
        f"intervals are about {_ABOUT[result.about]}",
        "",
        _rows("corrected", [*result.groups, result.overall], replace(items, of="name"), form),
        "",
        _rows("corrected_items", result.items, items, form),
    ]
    if result.numbers:
        blocks += ["", _rows("corrected_numbers", result.numbers, items, ".2f")]
    if result.differences:
        raw = Column("judge", f"+{form}", name="raw", of="details.raw")
        sheet = contrast_sheet(
            "differences", result.differences, f"+{form}", number=None, more=[raw], p=""
        )
        blocks += ["", "differences of groups, as experts would give them", "", sheet]
    if result.transfers:
        columns = [
            Column("group", of="a"),
            Column(
                "by the others' labels",
                form,
                name="level",
                of=lambda contrast: known(contrast.details["level"], "does not hold"),
            ),
            Column("own labels differ by", f"+{form}", with_interval=True, name="difference"),
            Column("p (Holm)", ".3f", name="p_adjusted"),
        ]
        blocks += ["", Sheet.of("transfers", result.transfers, columns)]
    overall = result.overall
    lines = []
    if overall.n_worth is not None and overall.n_labelled:
        saved, *ends = (
            None if n is None else max(0.0, n - overall.n_labelled)
            for n in (overall.n_worth, overall.n_worth_low, overall.n_worth_high)
        )
        low, high = (f"{end:.0f}" if end is not None else "" for end in ends)
        interval = f" (95 % interval {low} to {high})" if low else ", with no interval"
        lines.append(
            f"the judge is worth {saved:.0f} labelled documents{interval} in addition to the "
            f"{overall.n_labelled} that are labelled"
        )
    if overall.n_labelled:
        n_labels, width = result.n_labels_for_width, number(result.width, form)
        enough = f"about {n_labels} labelled documents"
        needed = "more labels than there are documents" if n_labels is None else enough
        lines.append(f"an interval {width} wide needs {needed}")
    if result.to_label:
        lines.append(f"label next: {', '.join(result.to_label)}")
    rows = (*result.items, *result.numbers, *result.groups, overall)
    reasons = {row.reason for row in rows if row.reason}
    lines += [f"no interval: {reason}" for reason in sorted(reasons) if reason.startswith("fewer")]
    broken = [contrast.a for contrast in result.transfers if contrast.details["level"] is None]
    if broken:
        lines.append(
            f"what the other groups' labels teach about the judge does not hold for "
            f"{', '.join(broken)}, so a group without labels of its own has no level"
        )
    if result.n_without_verdict:
        lines.append(f"missing: the judge gave no answer on {result.n_without_verdict} documents")
    if result.n_partly_labelled:
        lines.append(
            f"{result.n_partly_labelled} documents have labels on some items only; they count for "
            "these items, and not overall"
        )
    if lines:
        lines.append("")
    if result.left_out:
        names = ", ".join(f"{i.index} {i.title}" for i in map(rubric.item, result.left_out))
        lines += [f"not corrected: {names}", ""]
    return [*blocks, "", *lines, result.signature]


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
