"""Processes that share work: how many there are, their results, and their ends."""

import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fabula.core.errors import InputError, WorkersEnded
from fabula.core.types import Document
from fabula.core.workers import default_jobs, in_order
from fabula.models.local import n_threads
from fabula.reference import parts
from fabula.reference.search import Reference


def test_results_come_in_order_and_items_are_read_as_results_are_taken():
    read: list[int] = []

    def items() -> Iterator[int]:
        for k in range(200):
            read.append(k)
            yield k

    # A function that only this process knows: it travels by its code.
    results = in_order(lambda k: (k * k, os.getpid()), items(), 2)
    first = next(results)
    assert len(read) <= 2 * 2 + 2
    rest = list(results)
    assert [square for square, _ in (first, *rest)] == [k * k for k in range(200)]
    assert os.getpid() not in {pid for _, pid in rest}


@pytest.mark.parametrize(
    ("function", "kind", "said"),
    [
        (lambda _: int("none"), ValueError, "invalid literal"),
        (lambda _: threading.Lock(), TypeError, "pickle"),
        (lambda _: os._exit(9), WorkersEnded, "a worker process was killed"),
        (lambda _: sys.exit("away"), SystemExit, "away"),
    ],
)
def test_what_an_item_raises_is_raised_here(
    function: Callable[[int], object], kind: type[BaseException], said: str
):
    with pytest.raises(kind, match=said):
        list(in_order(function, range(20), 2))


def test_an_item_that_cannot_be_sent_is_an_error():
    with pytest.raises(TypeError, match="pickle"):
        list(in_order(str, (threading.Lock() for _ in range(20)), 2))


def half_a_message(_: int) -> None:
    """As of a process that is killed for lack of memory while it sends its result."""
    os.write(int(sys.argv[2]), struct.pack("!i", 1000) + b"half")
    os._exit(9)


def test_half_a_message_is_not_waited_for():
    with pytest.raises(WorkersEnded):
        list(in_order(half_a_message, range(20), 2))


_BUSY = """
import sys
from fabula.cli.main import interrupted_by_signals
from fabula.core.workers import in_order

with interrupted_by_signals():
    try:
        for k, _ in enumerate(in_order(lambda _: bytes(3_000_000), iter(int, 1), 2)):
            if k == 2:
                print("busy", flush=True)
    except KeyboardInterrupt:
        sys.exit(130)
"""


# A worker that SIGTERM ends may be noticed before the interrupt is.
@pytest.mark.parametrize(("number", "codes"), [(signal.SIGINT, {130}), (signal.SIGTERM, {130, 1})])
def test_an_interrupt_that_reaches_all_processes_ends_them(number: int, codes: set[int]):
    """As Ctrl-C in a terminal, while results of several megabytes are on their way."""
    path = os.pathsep.join(path for path in sys.path if path)
    with subprocess.Popen(
        [sys.executable, "-c", _BUSY], env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE, start_new_session=True,
    ) as busy:  # fmt: skip
        assert busy.stdout.readline() == b"busy\n"
        os.killpg(busy.pid, number)
        try:
            assert busy.wait(120) in codes
        finally:
            busy.kill()


def test_all_processors_are_used_where_none_are_told(monkeypatch: pytest.MonkeyPatch):
    """As on macOS, whose Python has no `os.sched_getaffinity`."""
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delenv("FABULA_THREADS", raising=False)
    monkeypatch.delenv("FABULA_JOBS", raising=False)
    assert default_jobs() == n_threads() == os.cpu_count()
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert default_jobs() == n_threads() == 1


def test_the_environment_sets_threads_and_processes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FABULA_THREADS", "3")
    assert n_threads() == 3
    monkeypatch.setenv("FABULA_JOBS", "4")
    assert default_jobs() == 4
    monkeypatch.setenv("FABULA_JOBS", "many")
    with pytest.raises(InputError, match="FABULA_JOBS=many is not a number"):
        default_jobs()


GROUP = Path("/sys/fs/cgroup/memory/fabula-tests")


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group with 512 MB, where this machine lets one be made."""
    try:
        GROUP.mkdir(exist_ok=True)
        (GROUP / "memory.limit_in_bytes").write_text(str(512 << 20))
    except OSError as error:
        pytest.skip(f"no control group can be made here ({error})")
    yield GROUP
    GROUP.rmdir()


def test_the_memory_of_a_container_is_its_limit(group: Path):
    code = "from fabula.core.workers import memory_bytes; print(memory_bytes())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())),
    )  # fmt: skip
    assert int(done.stdout) == 512 << 20


def test_a_reference_larger_than_memory_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    texts = [Document(f"d{k}", f"the lamp went round {k} times and the sea") for k in range(50)]
    in_memory = Reference.build(texts, tmp_path / "r", shard_tokens=100)
    monkeypatch.setattr(parts, "memory_bytes", lambda: 1000)
    from_disk = Reference.open(tmp_path / "r")
    words = ["and", "the", "lamp", "went", "round", "7", "times", "and", "the", "lamp"]
    assert from_disk.longest_matches(words).tolist() == in_memory.longest_matches(words).tolist()
    assert from_disk.longest_matches(words).tolist() == [2, 8, 7, 6, 5, 4, 3, 2, 2, 1]
    assert from_disk.attribute(["lamp", "went"], 3) == in_memory.attribute(["lamp", "went"], 3)
