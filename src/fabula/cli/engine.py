"""Where the work of a command is done: this machine's processes, or a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fabula.cli.progress import Bar

if TYPE_CHECKING:
    from fabula.cluster import Cluster
    from fabula.models.clustered import ClusterTerms

__all__ = ["cluster_terms", "engine_options", "model_engine_options", "open_cluster"]

F = TypeVar("F", bound=Callable[..., Any])


def engine_options(command: F) -> F:
    """`--engine` and `--address`; the results are the same bytes."""
    said = "ray: on a Ray cluster, or on --jobs processes of one that is started for this."
    return _engine_options(command, said)


def model_engine_options(command: F) -> F:
    """The same for local models, and `--gpus`."""
    command = click.option(
        "--gpus", type=click.IntRange(min=1), metavar="N",
        help="ray: GPUs of each copy.  [default: 1 where the cluster has any]",
    )(command)  # fmt: skip
    said = (
        "ray: copies of each local model on a Ray cluster answer, one a GPU, or one a node where "
        "there are none."
    )
    return _engine_options(command, said)


def _engine_options(command: F, said: str) -> F:
    options = (
        click.option(
            "--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True,
            help=said,
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


def cluster_terms(given: dict[str, Any]) -> ClusterTerms | None:
    """What `model_engine_options` gathered; None where models answer here."""
    if given["engine"] == "local":
        for name in ("address", "gpus"):
            if given[name] is not None:
                raise click.UsageError(f"--{name} is for --engine ray")
        return None
    if not given["models"]:
        raise click.UsageError("--engine ray is for language models here; name one with --model")
    from fabula.models.clustered import ClusterTerms

    return ClusterTerms(given["address"], given["gpus"])


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
