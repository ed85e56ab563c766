"""Figures for papers and slides, in Fabula's colours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fabula.errors import InputError
from fabula.measures.comparison import CURVE, INDEX, Comparison
from fabula.stats.contrasts import cell_means

if TYPE_CHECKING:
    from fabula.measures.linguistic.profile import Profile

_FORMATS = {".svg", ".pdf", ".png"}
INK, SOFT, LINE = "#201d18", "#6f675b", "#e4ded2"
# Distinct in hue and in lightness, so that they work without colour vision.
COLOURS = ("#2f6f6a", "#a4553f", "#c98016", "#4f5d95", "#7a3e6d", "#6b7d2a", "#201d18", "#8a8f98")
_MARKERS = "osD^vPX*"
_MAX_PROFILES = 12


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
                marker=_MARKERS[k % len(_MARKERS)],
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
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InputError("plots need matplotlib; run: pip install 'fabula[plots]'") from error


def save_profiles(profiles: Sequence[Profile], path: Path) -> None:
    """For each of up to 12 texts: sentence lengths in order, and the rarity of its words.

    The same profiles give the same bytes. Raises `InputError` for an unknown extension.
    """
    shown = [profile for profile in profiles if profile.sentences][:_MAX_PROFILES]
    size = (9.6, 0.9 + 1.7 * max(1, len(shown)))
    with figure_of(path, max(1, len(shown)), 2, figsize=size, width_ratios=(1.7, 1)) as (_, panels):
        for profile, rhythm, rarity in zip(shown, panels[::2], panels[1::2], strict=False):
            lengths = [sentence.n_words for sentence in profile.sentences]
            quoted = [sentence.n_quoted for sentence in profile.sentences]
            rhythm.bar(range(len(lengths)), lengths, width=0.9, color=COLOURS[7], label="told")
            rhythm.bar(range(len(lengths)), quoted, width=0.9, color=COLOURS[0], label="said")
            rhythm.axhline(np.mean(lengths), color=COLOURS[1], linestyle="--", linewidth=1)
            rhythm.set_title(profile.document.id, loc="left", fontsize=9.5, color=INK, pad=3)
            rhythm.set_ylabel("words")
            rarity.hist(profile.zipf, bins=np.arange(0, 8.5, 0.5), color=COLOURS[2])
            rarity.set_ylabel("words")
        if shown:
            panels[0].legend(frameon=False, fontsize=8)
        panels[-2].set_xlabel("sentence")
        panels[-1].set_xlabel("Zipf frequency (3: one in a million)")


def save_loss(log: Sequence[Mapping[str, float]], path: Path) -> None:
    """The training loss over tokens, and the held-out perplexity after each epoch.

    The same log gives the same bytes. Raises `InputError` for an unknown extension.
    """
    steps = [row for row in log if "loss" in row]
    seen = np.cumsum([row["n_tokens"] for row in steps]) / 1e6
    with figure_of(path, 1, 1, figsize=(6.4, 3.6)) as (_, (axes,)):
        width = max(1, len(steps) // 100)
        losses = np.array([row["loss"] for row in steps])
        means = [losses[k : k + width].mean() for k in range(0, len(losses), width)]
        axes.plot(seen[::width], means, color=COLOURS[0], linewidth=1.4, label="training")
        ends = [
            (seen[sum("loss" in r for r in log[:k]) - 1], np.log(row["perplexity"]))
            for k, row in enumerate(log)
            if "perplexity" in row
        ]
        if ends:
            axes.plot(*zip(*ends, strict=True), "o", color=COLOURS[1], label="held-out stories")
        for x, y in ends:
            axes.annotate(
                f"{np.exp(y):.0f}", (x, y), textcoords="offset points", xytext=(0, 7), ha="center"
            )
        axes.set_xlabel("million tokens read (number: perplexity)")
        axes.set_ylabel("loss, nats per token")
        axes.grid(axis="y", color=LINE, linewidth=0.8)
        axes.legend(frameon=False)


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
