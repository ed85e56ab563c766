"""Tables and curves of detectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from fabula.measures.detection import Calibration
from fabula.measures.verdicts import OUTCOMES
from fabula.report.plots import COLOURS, LINE, SOFT, figure_of
from fabula.report.tables import render

__all__ = ["calibration_tables", "probability_table", "save_rocs", "verdict_table"]

_MAX_ROWS = 40
SEPARATES = "separates"
SHORT = {
    SEPARATES: "tells",
    "cannot tell": "cannot tell",
    "reversed": "reversed",
    "too few": "too few groups",
}
NAMES = {
    "creativity_index": "Creativity Index",
    "log_likelihood": "log-likelihood",
    "log_rank": "log-rank",
    "curvature": "Fast-DetectGPT",
}


def calibration_tables(found: Sequence[Calibration]) -> str:
    """One line a detector, then the thresholds of those that tell human from machine."""
    table = Table(box=None, pad_edge=False)
    for column in ("", "score", "outcome"):
        table.add_column(column, no_wrap=True)
    for column in ("AUROC, 95 % interval", "ECE"):
        table.add_column(column, justify="right", no_wrap=True)
    for k, one in enumerate(found, 1):
        table.add_row(
            str(k), NAMES[one.score], SHORT[one.outcome], auroc_shown(one), error_shown(one)
        )
    limits = Table(box=None, pad_edge=False)
    for column in (
        "",
        "asked for",
        "human texts flagged",
        "at most, 95 %",
        "machine texts flagged",
        "below",
    ):
        limits.add_column(column, justify="right")
    for k, one in enumerate(found, 1):
        for t in one.thresholds if one.outcome == SEPARATES else ():
            sign = "" if one.direction > 0 else "-"
            limits.add_row(
                str(k), f"{t.target:.2g}", f"{t.false_positives:.1%}",
                f"{t.false_positives_high:.1%}", f"{t.true_positives:.1%}",
                f"{sign}score {t.value:.6g}",
            )  # fmt: skip
    footer = ["ECE: expected calibration error of the probabilities, over other groups."]
    for k, one in enumerate(found, 1):
        footer.append(
            f"{k}: {one.n_human:,} human and {one.n_machine:,} machine texts in {one.n_groups:,} "
            f"groups, {one.n_missing:,} without a score"
        )
        footer.append(f"   {one.signature}")
    silent = [str(k) for k, one in enumerate(found, 1) if one.outcome != SEPARATES]
    if silent:
        footer.insert(
            0,
            f"No verdicts are given by {', '.join(silent)}: "
            + "; ".join(dict.fromkeys(OUTCOMES[o.outcome] for o in found if o.outcome != SEPARATES))
            + ".",
        )
    shown = render(table)
    return shown + ("\n" + render(limits) if limits.row_count else "") + "\n" + render("", *footer)


def error_shown(one: Calibration) -> str:
    """The expected calibration error, where there is one."""
    return "-" if one.calibration_error is None else f"{one.calibration_error:.3f}"


def auroc_shown(one: Calibration) -> str:
    """The AUROC with its interval."""
    found = one.auroc
    if found.low is None or found.high is None:
        return f"{found.value:.3f}"
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def probability_table(rows: Sequence[dict[str, Any]], signature: str) -> str:
    """Texts with what a model finds of them."""
    table = Table(box=None, pad_edge=False)
    table.add_column("text", overflow="fold")
    for column in ("tokens", "log-likelihood", "log-rank", "curvature"):
        table.add_column(column, justify="right")
    for row in rows[:_MAX_ROWS]:
        values = [row[name] for name in ("log_likelihood", "log_rank", "curvature")]
        shown = [
            f"{value:.3f}" if value is not None else f"missing: {row['missing_reason']}"
            for value in values
        ]
        table.add_row(Text(row["id"]), f"{row['n_tokens']:,}", *shown)
    more = [f"and {len(rows) - _MAX_ROWS:,} more texts"] if len(rows) > _MAX_ROWS else []
    return render(table, *more, signature)


def verdict_table(rows: Sequence[dict[str, Any]]) -> str:
    """Texts with their verdicts, and how often such verdicts are wrong."""
    reasons = {row["missing_reason"] for row in rows}
    if len(reasons) == 1 and None not in reasons:
        return render("", f"no verdict on any of {len(rows):,} texts: {reasons.pop()}")
    table = Table(box=None, pad_edge=False)
    table.add_column("text", overflow="fold")
    table.add_column("verdict")
    table.add_column("probability of human", justify="right")
    for row in rows[:_MAX_ROWS]:
        p = row["probability_human"]
        verdict = row["verdict"] or f"none: {row['missing_reason']}"
        table.add_row(Text(row["id"]), verdict, "-" if p is None else f"{p:.2f}")
    n_flagged = sum(row["verdict"] == "machine" for row in rows)
    first = rows[0]
    more = [f"and {len(rows) - _MAX_ROWS:,} more texts"] if len(rows) > _MAX_ROWS else []
    return render(
        table,
        *more,
        f"{n_flagged:,} of {len(rows):,} flagged. Of the human texts that it was calibrated on, "
        f"{first['false_positives']:.1%} were flagged too; of others of their kind at most "
        f"{first['false_positives_high']:.1%}, with 95 % confidence. A text that is not flagged is "
        f"not thereby human; probabilities hold for mixtures as in the calibration.",
    )


def save_rocs(found: Sequence[Calibration], path: Path) -> None:
    """ROC curves. The same calibrations give the same bytes."""
    with figure_of(path, 1, 1, figsize=(5.6, 5.2)) as (figure, (axes,)):
        axes.plot([0, 100], [0, 100], color=SOFT, linewidth=0.8, linestyle=":")
        for k, one in enumerate(found):
            x, y = zip(*one.curve, strict=True)
            label = f"{k + 1} {NAMES[one.score]}, {auroc_shown(one)}"
            axes.plot(
                [100 * v for v in x], [100 * v for v in y], color=COLOURS[k % len(COLOURS)],
                linewidth=1.5, label=label, linestyle="-" if k < len(COLOURS) else "--",
            )  # fmt: skip
        axes.set_xlabel("% of human texts called machine-written")
        axes.set_ylabel("% of machine texts called machine-written")
        axes.grid(color=LINE, linewidth=0.8)
        axes.legend(frameon=False, fontsize=7, loc="lower right")
        signed = (f"{k}: {one.signature}" for k, one in enumerate(found, 1))
        lines = [line[at : at + 150] for line in signed for at in range(0, len(line), 150)]
        figure.supxlabel("\n".join(lines), fontsize=4, color=SOFT, x=0.01, ha="left")
