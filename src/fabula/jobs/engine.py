"""Where a job runs: in this machine's processes, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fabula.jobs.progress import Progress
from fabula.settings import Between, Settings, SettingsError, setting

if TYPE_CHECKING:
    from fabula.workers import Cluster


# Without slots, so that a settings class can have two bases.
@dataclass(frozen=True, kw_only=True)
class Processes(Settings):
    """The number of worker processes on this machine."""

    n_jobs: int | None = setting(
        None,
        help="Number of processes to use; results do not depend on it.",
        check=Between(1),
        default_text="all processors",
        shared="running",
    )

    @property
    def n_processes(self) -> int:
        """The setting, or the number of processors available to this process."""
        from fabula.workers import default_jobs

        return self.n_jobs or default_jobs()


@dataclass(frozen=True, slots=True)
class Engine(Processes):
    """Where to compute. Results are the same bytes everywhere."""

    kind: Literal["local", "ray"] = setting(
        "local",
        help="ray: on a Ray cluster, or on `n_jobs` processes of one started for this command.",
        option="engine",
        shared="running",
    )
    address: str | None = setting(
        None,
        help="ray: the cluster, as `ray start` prints it; auto for one that runs on this machine.  "
        "[env: RAY_ADDRESS]",
        unit="ADDRESS",
        tunes="running",
    )

    def check_together(self) -> None:
        if self.kind == "local" and self.address is not None:
            raise SettingsError("address", "is only for `kind` ray")


@contextmanager
def open_cluster(engine: Engine, progress: Progress, stage: str) -> Iterator[Cluster | None]:
    """The cluster, or None to work on this machine. `stage` names the work for progress reports."""
    if engine.kind == "local":
        yield None
        return
    from fabula.workers import Cluster

    progress.say("connecting to the cluster")
    with Cluster(engine.address, n_cpus=engine.n_processes) as cluster:
        progress.say(stage)
        yield cluster
