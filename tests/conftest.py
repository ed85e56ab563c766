import asyncio
import gc
import importlib.util
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import certifi
import pytest
from hypothesis import settings

import fabula
from fabula import kernels
from fabula.core.errors import ModelError
from tests.forking import use_kernels, write_programs
from tests.object_store import BUCKET, RCLONE, Bucket, s3_server
from tests.ray_nodes import ray_nodes
from tests.session_folder import begin_session, end_session, locked, made_once
from tests.tiny_gguf import write_tiny_gguf

# Collecting tests makes no garbage worth a search.
gc.disable()
# Compiling a kernel takes seconds, once; a deadline would fail the example that meets it.
settings.register_profile(
    "fabula", deadline=None, max_examples=40, derandomize=bool(os.environ.get("CI"))
)
settings.load_profile("fabula")

ROOT = Path(__file__).parents[1]
T = TypeVar("T")
_UNTIL = "FABULA_TESTS_UNTIL"
_FRESH = "FABULA_TESTS_FRESH"

# Tests run side by side; threads of llama.cpp, torch and BLAS would wait for each other at every
# step.
os.environ["FABULA_THREADS"] = "1"
# A test that is about several processes says how many; to begin one takes seconds.
os.environ["FABULA_JOBS"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")


# Under `nohup` the one is ignored, and the other by what a script starts with `&`; and so they
# would be by all commands that the tests start and stop.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Tests make much that lives briefly. To search it for cycles as often as Python does takes a worker
# a twelfth of its time.
gc.set_threshold(5_000, 10, 10)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        folder = begin_session()
        if within := config.getoption("within"):
            os.environ[_UNTIL] = str(time.time() + within)
        # Nothing is read from the cache of an earlier session: it would hide what is computed now.
        os.environ["FABULA_CACHE"] = str(folder / "cache")
        _trust_few(folder / "certificates.pem")
        write_programs(folder, Path(fabula.__file__).parents[1].resolve())
        if not any(Path(kernels.__file__).with_name("__pycache__").glob("*.nbi")):
            os.environ[_FRESH] = "1"


def _trust_few(path: Path) -> None:
    """No test speaks TLS, and a client takes tens of milliseconds to read all certificates."""
    end = "-----END CERTIFICATE-----\n"
    first, _, _ = Path(certifi.where()).read_text(encoding="utf-8").partition(end)
    path.write_text(first + end, encoding="utf-8")
    os.environ["SSL_CERT_FILE"] = str(path)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--timings", type=Path, help="write how long each test took, slowest first")
    parser.addoption("--within", type=int, help="seconds; what would begin later is left out")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if path := config.getoption("timings"):
        _write_timings(path, [r for some in terminalreporter.stats.values() for r in some])
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple)
    )
    if reasons:
        told = "; ".join(f"{n} because {reason}" for reason, n in reasons.most_common())
        terminalreporter.write_line(
            f"not run: {told}. CONTRIBUTING.md says how to have what is missing.", yellow=True
        )


def _write_timings(path: Path, reports: Iterable[object]) -> None:
    """Seconds by the clock, with set-up and tear-down: the slowest tests, then every file.

    What a worker's tests share counts for the first of them.
    """
    tests, files = Counter[str](), Counter[str]()
    for report in reports:
        if isinstance(report, pytest.TestReport):
            tests[report.nodeid] += report.duration
            files[report.nodeid.partition("::")[0]] += report.duration
    parts = [("all tests", tests.total())], tests.most_common(20), files.most_common()
    lines = ("".join(f"{seconds:8.1f} s  {name}\n" for name, seconds in part) for part in parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines), encoding="utf-8")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        end_session()


# What a worker of xdist takes as a whole, so that what fixtures make is made once: a file, all that
# runs on the Ray cluster; but pages of the manual and scripts of bench/ share nothing.
_ALONE = re.compile(r"^tests/(docs/test_commands|test_bench)\.py::")
_JOB = re.compile(r"^tests/faults/.+(\[.+\])$")
_DEAR = ("browser", "ray", "slow")


def group_of(nodeid: str) -> str:
    if _ALONE.match(nodeid):
        return nodeid
    job = _JOB.match(nodeid)
    return job[1] if job else nodeid.partition("::")[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The dearest groups first, then those of few tests: none is left for the end alone."""
    n_tests = Counter(group_of(item.nodeid) for item in items)
    rank = dict.fromkeys(n_tests, len(_DEAR))
    for item in items:
        marks = [k for k, name in enumerate(_DEAR) if item.get_closest_marker(name)]
        group = group_of(item.nodeid)
        rank[group] = min([rank[group], *marks])
    items.sort(key=lambda item: (rank[g := group_of(item.nodeid)], n_tests[g], g))


@pytest.hookimpl(optionalhook=True)  # xdist may be missing
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Gives groups out in the order of the tests."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    config.option.loadscopereorder = False
    return ByGroup(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.time() > float(os.environ.get(_UNTIL, "inf")):
        pytest.skip(f"{item.config.getoption('within')} s were over")


def pytest_sessionstart() -> None:
    """In a fresh checkout one worker compiles the kernels, while the others collect tests.

    None begins a test before all have collected them; so the work is not done in each.
    """
    if os.environ.get("PYTEST_XDIST_WORKER") == "gw0" and _FRESH in os.environ:
        use_kernels()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """In a fresh checkout one after the other: what the first compiles, the others read."""
    with locked("collection") if _FRESH in os.environ else nullcontext():
        return (yield)


def pytest_collection_finish() -> None:
    """What has been imported stays: it is not searched for cycles again and again."""
    gc.freeze()
    gc.enable()


def if_installed(make: Callable[[], T]) -> T:
    """What needs a model; without it the test is left out."""
    try:
        return make()
    except ModelError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real books, speeches and stories, where they lie beside the checkout."""
    path = ROOT.parent / "shared" / "data"
    if not path.is_dir():
        pytest.skip("the shared data are not beside this checkout")
    return path


@pytest.fixture(autouse=True)
def asyncio_as_it_was() -> Iterator[None]:
    """Inspect changes it where it runs a loop within a loop, and later loops are left open."""
    yield
    assert not hasattr(asyncio, "_nest_patched"), "asyncio is changed for all that follows"


@pytest.fixture(scope="session")
def examples() -> Path:
    return ROOT / "examples"


@pytest.fixture(scope="session")
def small_model() -> Path:
    """A model that reads as much as the embedded one and answers noise, for nothing."""
    write = partial(write_tiny_gguf, has_mark=True, context_tokens=8192)
    return made_once("small.gguf", write)


@pytest.fixture(scope="session")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket | None]:
    """A bucket of an object store; None where its server is missing."""
    if RCLONE is None or importlib.util.find_spec("s3fs") is None:
        yield None
        return
    folder = tmp_path_factory.mktemp("store")
    with s3_server(folder) as environment:
        yield Bucket(folder / BUCKET, environment)


@pytest.fixture(scope="session")
def nodes() -> Iterator[Any]:
    """A Ray cluster of three nodes with a processor each. Who removes a node has added it."""
    with ray_nodes(1, n_others=2) as made:
        yield made
