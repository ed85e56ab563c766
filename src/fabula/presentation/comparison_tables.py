"""How groups differ in any numbers: means by group, pairs with their tests, a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fabula.errors import explain
from fabula.measures.comparison import CURVE, INDEX, NOT_SAID, Comparison
from fabula.presentation.charts import COLOURS, INK, LINE, MARKERS, SOFT, figure_of
from fabula.presentation.sheet import (
    NUMBER,
    Block,
    Column,
    Missing,
    Sheet,
    contrast_sheet,
    interval_notes,
    omnibus_lines,
)
from fabula.stats.contrasts import cell_means


def save_comparison(comparison: Comparison, path: Path) -> None:
    """Two panels: mean L-uniqueness against L with its interval, and every text's index by group.

    The same comparison gives the same bytes. Raises `InputError` for an unknown extension.
    """
    scores = [one for one in comparison.groups if one.number == INDEX]
    height = max(3.4, 1.6 + 0.38 * len(scores))
    with figure_of(path, 1, 2, figsize=(9.6, height), width_ratios=(1.15, 1)) as (figure, panels):
        from matplotlib.ticker import MaxNLocator

        axes, strips = panels
        curves: dict[str, list[list[float | None]]] = {}
        for one in comparison.groups:
            if one.number.startswith(f"{CURVE}_"):
                level = int(one.number.rpartition("_")[2])
                curves.setdefault(one.group, []).append([level, *one.mean.ends().values()])
        for k, (name, curve) in enumerate(curves.items()):
            # Level, mean and the ends of its interval; None is NaN.
            points = np.array(curve, np.float64) * (1, 100, 100, 100)
            levels, means, low, high = points[~np.isnan(points[:, 1])].T
            if not len(levels):
                continue
            colour = COLOURS[k % len(COLOURS)]
            axes.plot(
                levels,
                means,
                color=colour,
                marker=MARKERS[k % len(MARKERS)],
                markersize=4,
                linewidth=1.6,
                label=name,
            )
            if not np.isnan([low, high]).any():
                axes.fill_between(levels, low, high, color=colour, alpha=0.16, linewidth=0)
        axes.set_xlabel("L, words in a row")
        axes.set_ylabel("L-uniqueness, % of words")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="y", color=LINE, linewidth=0.8)
        axes.legend(frameon=False, loc="lower right")
        rng = np.random.default_rng(0)
        for k, group in enumerate(scores):
            colour = COLOURS[k % len(COLOURS)]
            values = list(cell_means(group.values).values())
            jitter = rng.uniform(-0.22, 0.22, len(values))
            strips.scatter(values, k + jitter, s=9, color=colour, alpha=0.4, linewidths=0)
            mean = group.mean
            if mean.value is not None:
                strips.plot([mean.value] * 2, [k - 0.32, k + 0.32], color=INK, linewidth=1.8)
            if mean.low is not None and mean.high is not None:
                strips.plot([mean.low, mean.high], [k, k], color=INK, linewidth=3.2, alpha=0.75)
        names = [f"{group.group}\nn = {group.mean.n}" for group in scores]
        strips.set_yticks(range(len(scores)), names, color=INK)
        strips.set_ylim(len(scores) - 0.5, -0.5)
        strips.set_xlabel("Creativity Index; bar: mean, 95 % interval")
        strips.grid(axis="x", color=LINE, linewidth=0.8)
        figure.supxlabel(comparison.signatures[INDEX], fontsize=6, color=SOFT, x=0.01, ha="left")


_PERCENT = Column(
    "% of B",
    "+.1f",
    with_interval=True,
    name="percent",
    of=lambda one: one.details.get("percent", Missing("")),
)


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
