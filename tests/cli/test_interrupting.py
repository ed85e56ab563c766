import signal
import time
import weakref

import pytest

from fabula.cli.main import interrupted_by_signals


class Thing:
    """What a weak reference can point to."""


def release(things: list[Thing]) -> None:
    things.clear()
    time.sleep(20)


@pytest.mark.parametrize("is_background_job", [False, True])
def test_an_interrupt_that_comes_in_a_callback_is_not_lost(
    is_background_job: bool, capfd: pytest.CaptureFixture[str]
):
    def interrupted(_reference: object) -> None:
        raise KeyboardInterrupt

    things = [Thing()]
    watch = weakref.ref(things[0], interrupted)
    before = signal.getsignal(signal.SIGINT)
    if is_background_job:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt), interrupted_by_signals():
            # Python prints what a callback raises, and carries on.
            release(things)
    finally:
        signal.signal(signal.SIGINT, before)
    assert watch() is None
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("by", [KeyboardInterrupt, ValueError])
def test_an_interrupt_that_compiled_code_hides_is_one(by: type[BaseException]):
    # As Numba nests them if one comes while it loads what it compiled before.
    inner = SystemError("returned a result with an exception set")
    inner.__cause__ = by()
    expected = KeyboardInterrupt if by is KeyboardInterrupt else SystemError
    with pytest.raises(expected), interrupted_by_signals():
        raise SystemError("returned a result with an exception set") from inner
