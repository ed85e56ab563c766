"""Figures 3 and 4 of Chakrabarty et al. 2024, for any study of stories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fabula.presentation.charts import COLOURS, LINE, figure_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Counts = Mapping[str, Mapping[Any, int]]


def save_study(passed: Counts, ranks: Counts, origins: Counts, n_items: int, path: Path) -> None:
    """Tests passed, ranks in the group and supposed origins, by author, in percent of readings.

    Questions that were not asked have no panel. The same counts give the same bytes. Raises
    `InputError` for an unknown extension.
    """
    panels: list[tuple[str, Counts, Sequence[Any]]] = [("tests passed", passed, range(n_items + 1))]
    for title, counts in (("place in the group", ranks), ("taken for", origins)):
        found = sorted({name for row in counts.values() for name in row}, key=str)
        if found:
            panels.append((title, counts, found))
    size = (7.2, 2.9 * len(panels))
    with figure_of(path, len(panels), 1, figsize=size) as (_, axes):
        for one, (title, counts, names) in zip(axes, panels, strict=True):
            _draw(one, title, counts, names)
        axes[0].legend(frameon=False, fontsize=8)


def _draw(axes: Axes, title: str, counts: Counts, names: Sequence[Any]) -> None:
    width = 0.84 / max(1, len(counts))
    places = np.arange(len(names))
    for k, (author, row) in enumerate(counts.items()):
        total = sum(row.values())
        values = [100 * row.get(name, 0) / total if total else 0.0 for name in names]
        offset = (k - (len(counts) - 1) / 2) * width
        axes.bar(
            places + offset,
            values,
            width * 0.92,
            color=COLOURS[k % len(COLOURS)],
            label=f"{author} (n = {total})",
        )
    axes.set_xticks(places, [str(name) for name in names])
    axes.set_xlabel(title)
    axes.set_ylabel("% of readings")
    axes.grid(axis="y", color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
