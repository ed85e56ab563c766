"""Fabula's command with one fault on the way: `disturbed.py FAULT arguments...`.

A fault is a JSON object with one of these: `{"kill_at": n}` kills the process with -9 when it is
about to make its n-th change of the folder that it works in, `{"kill_after_s": seconds}` so long
after its command begins, `{"memory_at": n}` has the memory end at a change, `{"wait_at": n,
"for": FILE}` has it wait there for a file (and write FILE.wanted while it does),
`{"largest": bytes}` lets no file grow beyond that, as a full disk does, `{"clock_s": seconds}` has
every second reading of the clock that far off, `{}` disturbs nothing. Where the environment names
`FABULA_CHANGES`, the number of changes is written there in the end. Files of other folders do not
count.
"""

import atexit
import json
import os
import resource
import signal
import sys
import threading
import time
from itertools import count
from pathlib import Path
from typing import Any

_CHANGING = ("os.rename", "os.remove", "os.truncate", "os.mkdir", "os.rmdir")
_WRITING = os.O_WRONLY | os.O_RDWR


def _is_change(event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether an event of Python's audit changes what stands in the working folder."""
    if event == "open":
        path, _, flags = arguments
        if not flags & _WRITING:
            return False
    elif event in _CHANGING:
        path = arguments[0]
    else:
        return False
    if isinstance(path, int):
        return True
    return Path(os.fsdecode(path)).absolute().is_relative_to(_FOLDER)


def _watch(fault: dict[str, Any]) -> None:
    n_changes = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal n_changes
        if not _is_change(event, arguments):
            return
        n_changes += 1
        if n_changes == fault.get("kill_at"):
            os.kill(os.getpid(), signal.SIGKILL)
        if n_changes == fault.get("memory_at"):
            raise MemoryError
        if n_changes == fault.get("wait_at"):
            Path(fault["for"] + ".wanted").touch()
            while not Path(fault["for"]).exists():
                time.sleep(0.01)

    sys.addaudithook(hook)
    if place := os.environ.get("FABULA_CHANGES"):
        atexit.register(lambda: Path(place).write_text(str(n_changes)))


def _shake_clock(off_s: float) -> None:
    now, turn = time.time, count()
    time.time = lambda: now() + (off_s if next(turn) % 2 else 0.0)


_FOLDER = Path.cwd()

if __name__ == "__main__":
    fault = json.loads(sys.argv[1])
    _watch(fault)
    if "largest" in fault:
        resource.setrlimit(resource.RLIMIT_FSIZE, (fault["largest"], fault["largest"]))
    if "clock_s" in fault:
        _shake_clock(fault["clock_s"])
    sys.argv[:2] = ["fabula"]
    from fabula.cli.main import main

    if "kill_after_s" in fault:
        timer = threading.Timer(fault["kill_after_s"], os.kill, [os.getpid(), signal.SIGKILL])
        timer.daemon = True
        timer.start()
    main()
