"""What does not fit into memory is found alike, and the limit is the container's."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabula.core.types import Document
from fabula.core.workers import memory_bytes
from fabula.reference import parts
from fabula.reference.search import Reference

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


def test_without_a_limit_it_is_the_machine_s():
    assert 0 < memory_bytes() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


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
