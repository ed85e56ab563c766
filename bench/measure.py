"""Time and peak memory of a command with all processes that it starts."""

from __future__ import annotations

import resource
import subprocess
import threading
import time
from pathlib import Path


def tree_bytes(pid: int) -> int:
    """Memory of a process and its descendants; pages that they share are counted once (PSS)."""
    total = 0
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) << 10
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                total += tree_bytes(int(child))
    except (OSError, ProcessLookupError):
        pass  # it has just ended
    return total


def processor_s() -> float:
    """Processor time of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_measured(command: list[str]) -> tuple[float, float, int]:
    """Seconds, seconds of processor time, and the largest memory seen in samples every 20 ms."""
    used = processor_s()
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = 0

    def watch() -> None:
        nonlocal peak
        while process.poll() is None:
            peak = max(peak, tree_bytes(process.pid))
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    _, errors = process.communicate()
    seconds = time.perf_counter() - start
    watcher.join()
    if process.returncode:
        raise RuntimeError(errors.decode())
    return seconds, processor_s() - used, peak
