"""A Ray cluster for tests: several real nodes on this machine."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# A node that is lost is missed after five seconds, not half a minute; a slow one is not lost.
# Processes that have nothing to do are kept, and none begins before it has: that takes seconds of a
# processor.
_QUICK = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 1000,
          "health_check_timeout_ms": 10000, "health_check_failure_threshold": 5,
          "idle_worker_killing_time_threshold_ms": 600_000,
          "prestart_worker_first_driver": False}  # fmt: skip


@contextmanager
def ray_nodes(n_cpus_head: int, n_others: int = 0) -> Iterator[Any]:
    """A head, and others with a processor each; nodes can be added and removed."""
    from ray.cluster_utils import Cluster as Nodes

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        head = {"num_cpus": n_cpus_head, "include_dashboard": False, "include_log_monitor": False,
                "no_monitor": True, "_system_config": _QUICK}  # fmt: skip
        made = Nodes(initialize_head=True, head_node_args=head)
        try:
            for _ in range(n_others):
                made.add_node(num_cpus=1)
            yield made
        finally:
            made.shutdown()
