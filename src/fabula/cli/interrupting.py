"""SIGTERM and SIGHUP end a command as Ctrl-C does: finished work is kept.

Python drops an interrupt that arrives during a callback (of a weak reference, of a garbage
collection): it prints the traceback and carries on. This module sends such an interrupt again.
Compiled code that an interrupt reaches may raise `SystemError` because of it, as Numba's does; that
is an interrupt too.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_SIGNALS = ("SIGTERM", "SIGHUP")
_AGAIN_AFTER_S = 0.01


def interrupt(_number: int, _frame: FrameType | None) -> None:
    """Signal handler. Raises `KeyboardInterrupt`."""
    raise KeyboardInterrupt


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Make the signals interrupt the enclosed code, unless already ignored or handled."""
    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    ours = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    for number in ours:
        signal.signal(number, interrupt)
    before = sys.unraisablehook

    def send_again(unraisable: UnraisableHookArgs) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            before(unraisable)
            return
        # Send it later and from another thread: from here it would be dropped like the first one.
        # Use SIGTERM if this handler is installed for it, since a shell's background job ignores
        # SIGINT.
        number = ours[0] if ours else signal.SIGINT
        main = threading.main_thread().ident
        timer = threading.Timer(_AGAIN_AFTER_S, signal.pthread_kill, [main, number])
        timer.daemon = True
        timer.start()

    sys.unraisablehook = send_again
    try:
        yield
    except SystemError as error:
        if not _is_by_interrupt(error):
            raise
        raise KeyboardInterrupt from error
    finally:
        sys.unraisablehook = before
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _is_by_interrupt(error: BaseException) -> bool:
    cause = error.__cause__
    return cause is not None and (isinstance(cause, KeyboardInterrupt) or _is_by_interrupt(cause))
