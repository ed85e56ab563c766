"""SIGTERM and SIGHUP end a command as Ctrl-C does: what was finished is kept."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["interrupt", "interrupted_by_signals"]

_SIGNALS = ("SIGTERM", "SIGHUP")


def interrupt(_number: int, _frame: FrameType | None) -> None:
    """A handler of signals. Raises `KeyboardInterrupt`."""
    raise KeyboardInterrupt


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Have the signals interrupt what runs inside; one that is ignored or taken stays so."""
    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    ours = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    for number in ours:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
