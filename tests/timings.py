"""How long the tests took, as a file: the twenty slowest, then every file of tests."""

import json
import resource
from collections import Counter
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

from tests.session_folder import session_folder

__all__ = ["ProcessorTimes", "add_forked", "write_timings"]

N_SLOWEST = 20
_PROCESSOR_S = "processor_s"
_FORKED = "forked-s"


class ProcessorTimes:
    """Adds to each test's report the processor seconds that the worker has used since the last.

    Those of other processes count where they end and are waited for: a server's with the test or
    the fixture that stops it.
    """

    def __init__(self) -> None:
        self._used_s = _used_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        before, self._used_s = self._used_s, _used_s()
        report.user_properties.append((_PROCESSOR_S, self._used_s - before))
        return report

    def pytest_runtest_logstart(self) -> None:
        """What was used between tests, to collect them or to wait, is nobody's."""
        self._used_s = _used_s()


def _used_s() -> float:
    use = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in use)


def add_forked(folder: Path, test: str, use: resource.struct_rusage) -> None:
    """Note what a forked command used, which is not a child of the test's process.

    `test` is what pytest keeps in `PYTEST_CURRENT_TEST`: the name of the test, and its phase.
    """
    line = json.dumps([test.rpartition(" ")[0], use.ru_utime + use.ru_stime])
    with (folder / _FORKED).open("a", encoding="utf-8") as file:
        print(line, file=file)


def write_timings(path: Path, reports: Iterable[object]) -> None:
    """Seconds by the clock and of processors, set-up and tear-down included.

    What a worker's tests share counts for the first of them.
    """
    clock: Counter[str] = Counter()
    processor = _forked_s()
    for report in reports:
        if isinstance(report, pytest.TestReport):
            clock[report.nodeid] += report.duration  # type: ignore[assignment]
            processor[report.nodeid] += dict(report.user_properties).get(_PROCESSOR_S, 0)  # type: ignore[assignment]
    both = {name: (seconds, processor[name]) for name, seconds in clock.items()}
    files: dict[str, tuple[float, float]] = {}
    for name, (by_clock, used) in both.items():
        so_far = files.get(file := name.partition("::")[0], (0.0, 0.0))
        files[file] = so_far[0] + by_clock, so_far[1] + used
    slowest = sorted(both.items(), key=lambda item: -item[1][0])[:N_SLOWEST]
    dearest = sorted(files.items(), key=lambda item: -item[1][1])
    total = sum(clock.values()), sum(processor.values())
    lines = [" clock s  processor s", _line("all tests", total), ""]
    lines += [*(_line(*item) for item in slowest), "", *(_line(*item) for item in dearest)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _forked_s() -> Counter[str]:
    used: Counter[str] = Counter()
    if (file := session_folder() / _FORKED).exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            test, seconds = json.loads(line)
            used[test] += seconds
    return used


def _line(name: str, seconds: tuple[float, float]) -> str:
    return f"{seconds[0]:8.1f}  {seconds[1]:11.1f}  {name}"
