"""Tables for the terminal."""

from __future__ import annotations

import io
import shutil
import statistics
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from fabula.characters import without_controls
from fabula.measures.comparison import Comparison
from fabula.stats.resample import MIN_UNITS
from fabula.types import Estimate

__all__ = [
    "MISSING_REASONS",
    "comparison_tables",
    "interval_notes",
    "number",
    "originality_table",
    "render",
    "shown_interval",
    "terminal_width",
]

MISSING_REASONS = {
    "no_words": "no words in the text",
    "too_short": "shorter than the longest level",
    "no_known_words": "no word of it is in the reference",
    "lookup_failed": "a look-up failed",
}
"""Why a text has no Creativity Index, for people."""

_MAX_ROWS = 40
_WIDEST = 10_000


def originality_table(
    rows: Sequence[tuple[str, int, float | None, float | None, str | None]],
    levels: Sequence[str],
    signature: str,
) -> str:
    """Texts with their scores: (id, words, index, uniqueness at the lowest L, missing reason)."""
    table = Table(box=None, pad_edge=False)
    table.add_column("text", overflow="fold")
    table.add_column("words", justify="right")
    table.add_column(f"Creativity Index, of {len(levels)}", justify="right")
    table.add_column(f"{levels[0]}-uniqueness", justify="right")
    for name, n_words, index, lowest, reason in rows[:_MAX_ROWS]:
        shown = (
            f"{index:.3f}"
            if index is not None
            else f"missing: {MISSING_REASONS.get(reason or '', reason)}"
        )
        table.add_row(Text(name), f"{n_words:,}", shown, "-" if lowest is None else f"{lowest:.1%}")
    footer = [f"and {len(rows) - _MAX_ROWS:,} more texts"] if len(rows) > _MAX_ROWS else []
    values = [index for _, _, index, _, _ in rows if index is not None]
    if len(rows) > 1 and values:
        n_missing = len(rows) - len(values)
        footer.append(
            f"mean Creativity Index {statistics.fmean(values):.3f} over {_count(len(values))}"
            + (f", {n_missing:,} without one" if n_missing else "")
        )
    return render(table, *footer, signature)


def comparison_tables(comparison: Comparison) -> str:
    """Groups with their means, then pairs with their tests."""
    groups = Table(box=None, pad_edge=False)
    groups.add_column(comparison.field, overflow="fold")
    for title in ("texts", "missing", "Creativity Index", "95 % interval"):
        groups.add_column(title, justify="right")
    for group in comparison.groups:
        groups.add_row(
            Text(group.name),
            f"{group.index.n:,}",
            f"{sum(group.missing.values()):,}",
            number(group.index.value, ".3f"),
            shown_interval(group.index, ".3f"),
        )
    pairs = Table(box=None, pad_edge=False)
    pairs.add_column("A against B", overflow="fold")
    for title in ("(A - B) / B", "95 % interval", "P(A > B)", "p (Mann-Whitney)", "p (Holm)"):
        pairs.add_column(title, justify="right")
    for pair in comparison.pairs:
        difference = pair.difference
        percent = difference.percent.value
        pairs.add_row(
            Text(f"{pair.a} : {pair.b}"),
            "-" if percent is None else f"{percent:+.1f} %",
            shown_interval(difference.percent, "+.1f"),
            number(difference.superiority, ".3f"),
            number(difference.p, ".2g"),
            number(pair.p_holm, ".2g"),
        )
    reasons = [
        f"missing in {group.name}: {n:,} {MISSING_REASONS.get(reason, reason)}"
        for group in comparison.groups
        for reason, n in group.missing.items()
    ]
    tests = pairs if comparison.pairs else "one group, nothing to compare"
    notes = interval_notes(
        [group.index for group in comparison.groups]
        + [pair.difference.percent for pair in comparison.pairs],
        "texts",
    )
    return render(groups, *reasons, "", tests, *notes, "", comparison.signature)


def _count(n_texts: int) -> str:
    return f"{n_texts:,} text" if n_texts == 1 else f"{n_texts:,} texts"


def number(value: float | None, form: str) -> str:
    """A number, or `-` where there is none."""
    return "-" if value is None else f"{value:{form}}"


def shown_interval(estimate: Estimate, form: str) -> str:
    """`0.12 to 0.34`, `- (n 5)` where so few units have none, or `-`."""
    if estimate.low is None or estimate.high is None:
        return f"- (n {estimate.n_units})" if _is_of_few(estimate) else "-"
    return f"{estimate.low:{form}} to {estimate.high:{form}}"


def _is_of_few(estimate: Estimate) -> bool:
    """Whether it has no interval because there are too few units."""
    n_units = estimate.n_units
    return estimate.value is not None and n_units is not None and n_units < MIN_UNITS


def interval_notes(estimates: Iterable[Estimate], units: str) -> list[str]:
    """Why some of these have no interval, for below a table; `units` is what they are over."""
    if not any(_is_of_few(estimate) for estimate in estimates):
        return []
    return [f"- (n ...): no interval from fewer than {MIN_UNITS} {units}"]


def terminal_width() -> int:
    """Columns of the terminal, 100 where there is none."""
    return max(60, shutil.get_terminal_size((100, 40)).columns)


def render(*parts: Table | str) -> str:
    """Tables and lines as the terminal shows them."""
    out = io.StringIO()
    console = Console(file=out, width=terminal_width(), highlight=False)
    for part in parts:
        if isinstance(part, Table):
            # A terminal that is too narrow wraps lines; digits are never cut off.
            least = Measurement.get(console, console.options.update(width=_WIDEST), part).minimum
            console.print(part, width=max(least, console.width), crop=False)
        else:
            # A signature is to be copied whole; sentences are to be read.
            console.print(Text(part), soft_wrap="|" in part)
    # A title or an author of somebody's file never reaches the terminal as a command to it.
    return without_controls(out.getvalue(), keep_lines=True)
