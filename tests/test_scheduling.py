"""Tests that share what a module makes are run by one worker, and dear ones begin first.

Their times are written by file: by the clock, and of processors.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scheduling import group_of

pytest.importorskip("xdist", reason="pytest-xdist is not installed")

HOOKS = """
from pathlib import Path

import pytest
from tests.scheduling import order, scheduler
from tests.timings import ProcessorTimes, write_timings

def pytest_configure(config):
    config.pluginmanager.register(ProcessorTimes())

def pytest_terminal_summary(terminalreporter):
    write_timings(Path("times"), [r for some in terminalreporter.stats.values() for r in some])

def pytest_collection_modifyitems(items):
    order(items)

def pytest_xdist_make_scheduler(config, log):
    return scheduler(config, log)
"""
TESTS = """
import os, time, pytest

@pytest.mark.parametrize("k", range({n}))
{mark}
def test(k):
    time.sleep(0.05)
    began = time.process_time()
    while time.process_time() < began + {used_s}:
        pass
    with open("ran", "a") as file:
        print("{name}", os.environ["PYTEST_XDIST_WORKER"], file=file)
"""


def test_a_file_is_run_by_one_worker_and_dear_ones_begin_first(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(HOOKS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = ray: dear\n")
    files = [("a", 5, ""), ("b", 4, ""), ("c", 6, "@pytest.mark.ray"), ("d", 3, "")]
    for name, n, mark in files:
        filled = TESTS.format(name=name, n=n, mark=mark, used_s=0.1 * (name == "b"))
        (tmp_path / f"test_{name}.py").write_text(filled)
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-n", "2", "-p", "no:cacheprovider"],
        cwd=tmp_path, check=True, capture_output=True, env={
            **os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "PYTEST_ADDOPTS": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
    )  # fmt: skip
    ran = [line.split() for line in (tmp_path / "ran").read_text().splitlines()]
    assert len(ran) == sum(n for _, n, _ in files)
    assert len({(file, worker) for file, worker in ran}) == len(files)
    first = {worker: file for file, worker in reversed(ran)}
    assert sorted(first.values()) == ["c", "d"]
    *_, by_file = (tmp_path / "times").read_text().split("\n\n")
    lines = [line.split() for line in by_file.splitlines()]
    processor_s = {name: float(used) for _, used, name in lines}
    assert processor_s.keys() == {f"test_{name}.py" for name, *_ in files}
    assert next(iter(processor_s)) == "test_b.py"
    assert processor_s["test_b.py"] >= 4 * 0.1
    assert all(float(clock) >= 3 * 0.05 for clock, _, _ in lines)


def test_pages_of_the_manual_the_ray_cluster_and_each_script_are_groups() -> None:
    steps = "tests/docs/test_docs_commands.py::test_it_runs_as_it_is_written"
    assert group_of(f"{steps}[docs/scale.md:8 fabula reference build books/]") == "docs/scale.md"
    assert group_of(f"{steps}[docs/use/own.md:80 a::b]") == "docs/use/own.md"
    assert group_of("tests/text/test_words.py::test_one[docs]") == "tests/text/test_words.py"
    cluster = group_of("tests/test_cluster_shares.py::test_a[x]")
    assert group_of("tests/test_cluster.py::test_b") == cluster
    scripts = [f"tests/test_bench.py::test_it[{name}]" for name in ("cluster", "judge")]
    assert [group_of(script) for script in scripts] == scripts
