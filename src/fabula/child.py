"""A Python process of one's own, with a pipe to it and a pipe from it.

Nobody else holds an end of either pipe, so each side learns at once that the other has ended, also
in the middle of a message. Interrupts are for the process that started it: Ctrl-C reaches all
processes of a terminal, and one that is stopped while it sends would leave half a message.
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

__all__ = ["Child", "connections"]


class Child:
    """The process, seen from the one that started it; it runs `function(*connections(...))`.

    `module` and `function` say what it runs; it is called with the numbers of its two pipes.
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
        """End it at once. Whoever waits for it in another thread gets an `EOFError`."""
        self.process.kill()

    def close(self) -> None:
        """Forget it, once no other thread uses its pipes."""
        self.requests.close()
        self.answers.close()
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """A process that is started meanwhile sees no interrupt before it says that it ignores them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def connections(requests_fd: int, answers_fd: int) -> tuple[Connection, Connection]:
    """In the child: requests and answers. It ends at once when the one that started it has."""
    import resource

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # One that is ended for taking too much leaves no image of its memory behind.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    threading.Thread(target=_end_with_owner, args=(requests_fd,), daemon=True).start()
    return Connection(requests_fd, writable=False), Connection(answers_fd, readable=False)


def _end_with_owner(requests_fd: int) -> None:
    """Ends this process when the other end of a pipe is closed."""
    import select

    hangup = select.poll()
    hangup.register(requests_fd, 0)
    while not any(event & select.POLLHUP for _, event in hangup.poll()):
        pass
    os._exit(0)
