"""Where the work of a command is done: this machine's processes, or a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fabula.cli.progress import Bar

if TYPE_CHECKING:
    from fabula.cluster import Cluster

__all__ = ["engine_options", "open_cluster"]

F = TypeVar("F", bound=Callable[..., Any])


def engine_options(command: F) -> F:
    """`--engine` and `--address`; the results are the same bytes."""
    options = (
        click.option(
            "--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True,
            help="ray: on a Ray cluster, or on --jobs processes of one that is started for this.",
        ),
        click.option(
            "--address", metavar="ADDRESS",
            help="ray: the cluster, as `ray start` names it; auto for the one that runs on this "
            "machine.  [env: RAY_ADDRESS]",
        ),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def open_cluster(given: dict[str, Any], bar: Bar) -> Iterator[Cluster | None]:
    """The cluster that the options name; None where the work is done here."""
    if given["engine"] == "local":
        if given["address"] is not None:
            raise click.UsageError("--address is for --engine ray")
        yield None
        return
    from fabula.cluster import Cluster
    from fabula.workers import default_jobs

    bar.say("reaching the cluster")
    with Cluster(given["address"], n_cpus=given["jobs"] or default_jobs()) as cluster:
        bar.say("measuring")
        yield cluster
