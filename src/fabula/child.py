"""A Python subprocess with one pipe in each direction.

No other process holds an end of either pipe, so each side notices immediately when the other
exits, even in the middle of a message. Only the parent handles interrupts: Ctrl-C reaches every
process of a terminal, and a child stopped while sending would leave half a message.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection, Pipe
from pathlib import Path


class Child:
    """The subprocess, as seen by its parent; it runs `function(*connections(...))`.

    `module` and `function` name what it runs, called with the file descriptors of its two pipes.
    """

    def __init__(self, module: str, function: str) -> None:
        theirs, self.requests = Pipe(duplex=False)
        self.answers, mine = Pipe(duplex=False)
        package = str(Path(__file__).parents[1])
        path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
        code = f"import sys; from {module} import {function}; {function}(*map(int, sys.argv[1:]))"
        fds = theirs.fileno(), mine.fileno()
        with _interrupts_held():
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", code, *map(str, fds)],
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
            )
        theirs.close()
        mine.close()

    def kill(self) -> None:
        """Kill it immediately. A thread waiting for it gets an `EOFError`."""
        self.process.kill()

    def close(self) -> None:
        """Release it, once no other thread uses its pipes."""
        self.requests.close()
        self.answers.close()
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Block interrupts in a process started meanwhile until it ignores them itself."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def connections(requests_fd: int, answers_fd: int) -> tuple[Connection, Connection]:
    """In the child: requests and answers. The child exits as soon as its parent has."""
    import resource

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # A child killed for using too much memory leaves no core dump.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    threading.Thread(target=_end_with_owner, args=(requests_fd,), daemon=True).start()
    return Connection(requests_fd, writable=False), Connection(answers_fd, readable=False)


def _end_with_owner(requests_fd: int) -> None:
    """End this process when the other end of a pipe is closed."""
    import select

    hangup = select.poll()
    hangup.register(requests_fd, 0)
    while not any(event & select.POLLHUP for _, event in hangup.poll()):
        pass
    os._exit(0)
