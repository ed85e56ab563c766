"""Figures for papers and slides, in Fabula's colours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fabula.core.errors import InputError
from fabula.core.packages import needing

_FORMATS = {".svg", ".pdf", ".png"}
INK, SOFT, LINE = "#201d18", "#6f675b", "#e4ded2"
# Distinct in hue and in lightness, so that they work without colour vision.
COLOURS = ("#2f6f6a", "#a4553f", "#c98016", "#4f5d95", "#7a3e6d", "#6b7d2a", "#201d18", "#8a8f98")
MARKERS = "osD^vPX*"


def save_distributions(
    series: Mapping[str, Sequence[int]], path: Path, *, x_label: str, y_label: str
) -> None:
    """A row of bars for each name, over 0, 1, 2, ...; on a common scale.

    The same series give the same bytes. Raises `InputError` for an unknown extension.
    """
    n, size = len(series), (6.4, 1.0 + 1.05 * len(series))
    with figure_of(path, n, 1, figsize=size, sharex=True, sharey=True) as (figure, panels):
        for k, (axes, (name, counts)) in enumerate(zip(panels, series.items(), strict=True)):
            axes.bar(range(len(counts)), counts, color=COLOURS[k % len(COLOURS)], width=0.82)
            axes.set_title(name, loc="left", fontsize=9.5, color=INK, pad=3)
            axes.grid(axis="y", color=LINE, linewidth=0.8)
            axes.set_axisbelow(True)
            axes.set_xticks(range(len(counts)))
        panels[-1].set_xlabel(x_label)
        figure.supylabel(y_label, fontsize=9.5, color=INK)


def check_plot_path(path: Path) -> None:
    """Raise `InputError` for an unknown extension, or if matplotlib is not installed."""
    if path.suffix.lower() not in _FORMATS:
        raise InputError(f"{path}: unknown figure format; use .svg, .pdf or .png")
    check_matplotlib()


def check_matplotlib() -> None:
    """Raise `InputError` if matplotlib is not installed; call it before long work, not after."""
    needing("matplotlib", "plots need matplotlib; run: pip install 'fabula[plots]'")


@contextmanager
def figure_of(path: Path, n_rows: int, n_columns: int, **options: Any) -> Iterator[tuple[Any, Any]]:
    """A figure and its panels, in Fabula's style; saved on exit."""
    check_plot_path(path)
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    style: dict[Any, Any] = {
        "svg.hashsalt": "fabula",
        "svg.fonttype": "none",
        "text.parse_math": False,
        "font.size": 9.5,
        "axes.edgecolor": SOFT,
        "axes.labelcolor": INK,
        "xtick.color": SOFT,
        "ytick.color": SOFT,
        "text.color": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with plt.rc_context(style):
        figure, panels = plt.subplots(
            n_rows, n_columns, layout="constrained", squeeze=False, **options
        )
        yield figure, panels.ravel()
        dated = {".svg": "Date", ".pdf": "CreationDate"}.get(path.suffix.lower())
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=180, metadata={dated: None} if dated else None)
        plt.close(figure)
