from __future__ import annotations

import os
import signal
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import fabula
from tests.forking import write_programs
from tests.session_folder import begin_session, end_session, made_once
from tests.timings import write_timings
from tests.tiny_gguf import write_tiny_gguf

# Compiling a kernel takes seconds, once; a deadline would fail the example that meets it.
settings.register_profile("fabula", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("fabula")

ROOT = Path(__file__).parents[1]

# Tests run side by side; llama.cpp's threads would wait for each other at every step.
os.environ["FABULA_THREADS"] = "1"


# Under `nohup` it is ignored, and so it would be by all commands that the tests start and stop.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        write_programs(begin_session(), Path(fabula.__file__).parents[1].resolve())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--timings", type=Path, help="write how long each test took, slowest first")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if path := config.getoption("timings"):
        write_timings(path, [r for some in terminalreporter.stats.values() for r in some])


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        end_session()


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A worker takes a whole file, or what a mark says belongs together.

    What has few tests comes first: pages, browsers and clusters, which one worker would end alone
    with.
    """
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    n_tests = Counter(_group(item) for item in items)
    items.sort(key=lambda item: (n_tests[_group(item)], _group(item)))


def _group(item: pytest.Item) -> str:
    mark = item.get_closest_marker("xdist_group")
    assert mark is not None
    return str(mark.args[0])


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real books, speeches and stories, where they lie beside the checkout."""
    path = ROOT.parent / "shared" / "data"
    if not path.is_dir():
        pytest.skip("the shared data are not beside this checkout")
    return path


@pytest.fixture(scope="session")
def examples() -> Path:
    return ROOT / "examples"


@pytest.fixture(scope="session")
def small_model() -> Path:
    """A model that reads as much as the embedded one and answers noise, for nothing."""
    write = partial(write_tiny_gguf, has_mark=True, context_tokens=8192)
    return made_once("small.gguf", write)
