"""Confirmation of a job's cost at the terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fabula.cli.progress_bar import Bar
from fabula.jobs.progress import Confirm, Declined

if TYPE_CHECKING:
    from fabula.models.cost import Estimate


def confirm_on(bar: Bar, *, yes: bool) -> Confirm:
    """Return a job's `confirm` that asks at the terminal; `yes` accepts everything."""

    def confirm(model: str, estimate: Estimate) -> None:
        try:
            agree_to_cost(model, estimate, yes=yes, bar=bar)
        except (click.Abort, click.UsageError) as error:
            # A report goes on without this model; all else ends as click ends it.
            raise Declined(model) from error

    return confirm


def agree_to_cost(model: str, estimate: Estimate, *, yes: bool, bar: Bar) -> None:
    """Print the plan, and ask for confirmation if it costs money. Raises `click.UsageError`."""
    if not estimate.n_calls or estimate.cost == 0:
        return
    at_most = "at most " if estimate.is_most else ""
    cost = "price unknown, set it with --set models.price=IN/OUT"
    if estimate.cost is not None:
        cost = f"{at_most or 'about '}{estimate.cost:.2f} dollars"
    usage = estimate.usage
    with bar.paused():
        click.echo(
            f"{model}: {at_most}{estimate.n_calls:,} calls, about {usage.n_input:,} input tokens "
            f"({usage.n_cached:,} of them in shared prefixes), {usage.n_output:,} output tokens, "
            f"{cost}",
            err=True,
        )
        if yes or (estimate.cost is None and model.startswith(("http://", "https://"))):
            return
        if not sys.stdin.isatty():
            raise click.UsageError("cannot confirm the cost: not a terminal (use --yes)")
        click.confirm("Continue?", abort=True, err=True)
