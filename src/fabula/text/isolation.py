"""Read files in a separate process, with limits on memory and processor time.

A small file can unpack to a large one, or occupy a parser for minutes: an EPUB of 3 KB that lists
one chapter 300 times, a Word document of 300 KB with two million paragraphs. So formats that can
expand are read by a helper process, which the system kills when it exceeds its limits. The calling
process gets documents, or an error message; a desk continues to serve.

The helper is reused, and exits when it has been idle, or the process that started it has ended.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.core.workers import Child, connections

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Read = Callable[[Callable[[int], None]], Iterator[Document]]
"""Reads a file, and reports the number of bytes read to its argument; must be picklable."""
_Message = tuple[str, int, list[Document], str]
"""Its kind, the bytes read, documents, and an error message."""
_IDLE_S = 30
_SERVER = ("fabula.text.isolation", "serve")
_BATCH_CHARS = 1 << 16
_BATCH_DOCUMENTS = 256


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on memory, and on processor time per document."""

    memory_bytes: int
    cpu_s: float


def read_isolated(
    read: Read, name: str, limits: Limits, meter: Callable[[int], None]
) -> Iterator[Document]:
    """Yield the documents that `read` gives, read by the helper process.

    Raises `InputError`, also if the helper was killed for exceeding its limits.
    """
    with _idle_lock:
        # After a fork, the idle ones belong to the parent.
        _idle[:] = [child for child in _idle if child.owner == os.getpid()]
        was_idle = bool(_idle)
        helper = _idle.pop(0) if was_idle else Child(*_SERVER)

    def answer(request: tuple[Read, str, Limits] | None = None) -> _Message | None:
        """Its next message; None if it exited for being idle, just as the request came."""
        try:
            if request is not None:
                helper.requests.send(request)
            message: _Message = helper.answers.recv()
        except (BrokenPipeError, EOFError, ConnectionResetError) as error:
            code = helper.process.wait()
            if was_idle and request and (isinstance(error, BrokenPipeError) or code == 0):
                return None
            ended = f"{name}: takes over {limits.cpu_s:.0f} s to read, far more than a normal file"
            ended += " of its size; save its text as .txt"
            if -code != signal.SIGXCPU:
                ended = f"{name}: cannot be read: the reading process ended with code {code}, "
                ended += "possibly for lack of memory; save its text as .txt, or split it"
            raise InputError(ended) from error
        return message

    is_whole = False
    try:
        message = answer((read, name, limits))
        if message is None:
            helper.close()
            helper, was_idle = Child(*_SERVER), False
            message = answer((read, name, limits))
        while message is not None:
            kind, n_read, documents, sentence = message
            meter(n_read)
            # Documents read before an error count.
            is_whole = kind != "more"
            yield from documents
            if kind == "error":
                raise InputError(sentence)
            message = None if is_whole else answer()
    finally:
        if is_whole:
            with _idle_lock:
                _idle.append(helper)
        else:
            helper.close()


_idle: list[Child] = []
_idle_lock = threading.Lock()


@atexit.register
def _end_all() -> None:
    while _idle:
        helper = _idle.pop()
        if helper.owner == os.getpid():
            helper.close()


def serve(requests_fd: int, answers_fd: int) -> None:
    """Run the helper process: read files until there are no more requests."""
    requests, answers = connections(requests_fd, answers_fd)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while requests.poll(_IDLE_S):
            _give(answers, *requests.recv())


def _give(answers: Connection, read: Read, name: str, limits: Limits) -> None:
    """Send a file's documents in batches, each with the bytes read since the last."""
    import resource

    n_read = n_chars = 0
    batch: list[Document] = []

    def note(n_bytes: int) -> None:
        nonlocal n_read
        n_read += n_bytes

    def send(kind: str, sentence: str = "") -> None:
        nonlocal n_read, n_chars
        answers.send((kind, n_read, batch, sentence))
        batch.clear()
        n_read = n_chars = 0

    with contextlib.suppress(OSError, ValueError):
        # The limit is on top of the address space in use now; without /proc there is none.
        n_pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = n_pages * os.sysconf("SC_PAGE_SIZE") + limits.memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    _limit_cpu(limits.cpu_s)
    try:
        for document in read(note):
            batch.append(document)
            n_chars += len(document.text)
            if len(batch) == _BATCH_DOCUMENTS or n_chars > _BATCH_CHARS:
                send("more")
            _limit_cpu(limits.cpu_s)
    except InputError as error:
        send("error", str(error))
    except MemoryError:
        gigabytes = limits.memory_bytes / (1 << 30)
        send("error", f"{name}: needs over {gigabytes:.1f} GB of memory to read; split it")
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:  # noqa: BLE001 (whatever a parser of foreign bytes raises)
        why = f"damaged, or its contents do not match its extension ({error!r}); save it again"
        send("error", f"{name}: {why}")
    else:
        send("end")


def _limit_cpu(seconds: float) -> None:
    """Allow this much processor time from now on; the system kills the process beyond it."""
    import resource

    limit = math.ceil(time.process_time() + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))
