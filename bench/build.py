"""Building an index beside infini-gram's own indexing: the same ids, the same two cores.

    python bench/build.py [N_TOKENS ...] [--smoke]

Whole processes from ids on disk to an index on disk: seconds, processor time and peak memory, with
and without the start-up, which is a process's cost on a thousand tokens. Ours writes the table of
pairs and the filter too, which the peer does not have. Where others use the machine, trust the
ratio of processor times more; it does not say how well the threads share the work.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import corpora
import peer
from fabula.core.workers import default_jobs

OURS = """
import sys
from pathlib import Path
import numpy as np
from fabula.kernels.suffix import build_suffix_array
from fabula.reference.build import write_index

folder, n_threads = Path(sys.argv[1]), int(sys.argv[2])
tokens = np.load(folder / "ids.npy")
suffixes = build_suffix_array(tokens, int(tokens.max()) + 1, n_threads=n_threads)
write_index(folder, tokens, suffixes, n_threads=n_threads)
"""

WHOLE = "whole process"
RATE, MEMORY = 1.5, 0.7
"""Targets, of the peer's."""


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


def run_measured(command: list[str]) -> tuple[float, float, int]:
    """Seconds, seconds of processor, and the largest memory seen in samples every 20 ms.

    Of a command with all processes that it starts.
    """

    def processor_s() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

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


def measure_both(tokens: NDArray[np.uint32], n_threads: int) -> list[tuple[float, float, int]]:
    """(seconds, processor seconds, peak bytes) of ours and of the peer's whole process."""
    with corpora.scratch() as folder:
        np.save(folder / "ids.npy", tokens)
        peer.write_tokens(tokens, folder / "peer")
        del tokens
        ours = run_measured([sys.executable, "-c", OURS, str(folder), str(n_threads)])
        theirs = run_measured(peer.index_command(folder / "peer", n_threads))
        return [ours, theirs]


def report(label: str, size: int, ours: tuple[float, ...], theirs: tuple[float, ...]) -> None:
    rates = [size / 1e6 / seconds for seconds, *_ in (ours, theirs)]
    memory = [peak / size for *_, peak in (ours, theirs)]
    print(
        f"  {label}: fabula {rates[0]:.2f} Mtok/s, {ours[1]:.1f} s of processor time, "
        f"{memory[0]:.1f} B/token peak; infini-gram {rates[1]:.2f} Mtok/s, {theirs[1]:.1f} s, "
        f"{memory[1]:.1f} B/token peak; ratio {rates[0] / rates[1]:.2f} of the rate, "
        f"{ours[1] / theirs[1]:.2f} of the processor time, {memory[0] / memory[1]:.2f} of the "
        f"memory",
        flush=True,
    )
    if label == WHOLE:
        print(
            f"    rate {corpora.beside(rates[0] / rates[1], RATE, at_least=True)}, memory "
            f"{corpora.beside(memory[0] / memory[1], MEMORY)}"
        )


def main() -> None:
    sizes = [int(float(size)) for size in sys.argv[1:]] or (
        [20_000] if corpora.SMOKE else [10_000_000, 150_000_000]
    )
    n_threads = default_jobs()
    real, _ = corpora.real_corpus()
    small = corpora.corpus_of(real, 1000)
    if not corpora.SMOKE:
        measure_both(small, n_threads)  # compiles, where no compiled kernels are kept yet
    idle = measure_both(small, n_threads)
    print(f"{n_threads} cores; memory: proportional set size of all processes, in samples")
    print(
        "start-up: "
        + ", ".join(f"{s:.2f} s, {c:.2f} s of processor time, {b / 1e6:.0f} MB" for s, c, b in idle)
    )
    for size in sizes:
        print(f"{size / 1e6:,.0f}M tokens")
        both = measure_both(corpora.corpus_of(real, size), n_threads)
        report(WHOLE, size, *both)
        net = [tuple(np.subtract(*pair)) for pair in zip(both, idle, strict=True)]
        report("less start-up", size, *net)


if __name__ == "__main__":
    main()
