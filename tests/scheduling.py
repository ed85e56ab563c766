"""Which tests a worker of xdist takes together, and which come first.

A worker takes a whole file, a whole page of the manual, or all that runs on the Ray cluster, so
that what fixtures make is made once. xdist's own groups are not used: since pytest 9.2, xdist 3.8
ignores them.
"""

import re
from collections import Counter
from typing import Any

import pytest

__all__ = ["group_of", "order", "scheduler"]

_GROUPS = (
    re.compile(r"\[(docs/[^\]:]+\.md):"),  # the steps of a page of the manual
    re.compile(r"^(tests/test_cluster)"),  # all that runs on the session's Ray cluster
    re.compile(r"^(tests/test_bench\.py::.+)"),  # scripts share nothing
    re.compile(r"^tests/faults/.+(\[.+\])$"),  # a job, by all that is done to it
)
_DEAR = ("ray", "slow", "browser")


def group_of(nodeid: str) -> str:
    """What one worker takes as a whole: most often the test's file."""
    found = next(filter(None, (one.search(nodeid) for one in _GROUPS)), None)
    return found[1] if found else nodeid.partition("::")[0]


def order(items: list[pytest.Item]) -> None:
    """Bring groups together: the dearest first, and then those of few tests.

    So no worker is left alone with a long group while the others have nothing to do.
    """
    groups = [group_of(item.nodeid) for item in items]
    n_tests = Counter(groups)
    rank = dict.fromkeys(groups, len(_DEAR))
    for item, group in zip(items, groups, strict=True):
        marks = [k for k, name in enumerate(_DEAR) if item.get_closest_marker(name)]
        rank[group] = min([rank[group], *marks])
    items.sort(key=lambda item: (rank[g := group_of(item.nodeid)], n_tests[g], g))


def scheduler(config: pytest.Config, log: Any) -> Any:
    """For `pytest_xdist_make_scheduler`: gives groups out in the order of the tests."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    config.option.loadscopereorder = False
    return ByGroup(config, log)
