"""How long the tests took, as a file: the twenty slowest, then every file of tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

__all__ = ["write_timings"]

N_SLOWEST = 20


def write_timings(path: Path, reports: Iterable[object]) -> None:
    """Seconds by the clock, set-up and tear-down included; what workers share counts for one."""
    tests: Counter[str] = Counter()
    for report in reports:
        if isinstance(report, pytest.TestReport):
            tests[report.nodeid] += report.duration  # type: ignore[assignment]
    files: Counter[str] = Counter()
    for name, seconds in tests.items():
        files[name.partition("::")[0]] += seconds
    lines = [f"{seconds:8.1f}  {name}" for name, seconds in tests.most_common(N_SLOWEST)]
    lines += ["", *(f"{seconds:8.1f}  {name}" for name, seconds in files.most_common())]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
