"""Work in processes of the desk: whose turn it is, and how it ends."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.writer.test_desk import waiting

from fabula.core.errors import FabulaError, InputError
from fabula.models.base import Usage
from fabula.models.cost import Estimate
from fabula.writer.background import STOPPED, Queue, State, Watch


@pytest.fixture
def queue() -> Iterator[Queue]:
    opened = Queue()
    yield opened
    opened.close()


def endless(begun: Path) -> Callable[[Watch], None]:
    """Work that says in a file that it began, in which process, and does not end."""

    def work(_: Watch) -> None:
        with begun.open("a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(600)

    return work


def processes(begun: Path, n: int) -> list[int]:
    """Those that began it, waited for."""
    waiting(lambda: begun.exists() and len(begun.read_text().split()) == n)
    return list(map(int, begun.read_text().split()))


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_what_is_looked_at_does_not_wait_for_another_which_goes_on_later(
    queue: Queue, tmp_path: Path
):
    first = queue.submit("first", endless(tmp_path / "a"))
    processes(tmp_path / "a", 1)
    assert queue.ask(lambda _: "quick") == "quick", "the editor's check waits for nothing"
    second = queue.submit("second", lambda watch: watch.begin("second", 1))
    # Its page looks again and again.
    waiting(lambda: queue.look("second") or second.is_over)
    assert (first.is_over, first.error) == (False, "")
    begun = processes(tmp_path / "a", 2)
    queue.end("first", STOPPED)
    assert (first.is_over, first.error) == (True, STOPPED)
    assert not any(map(is_there, begun))


def test_a_question_holds_nobody_up(queue: Queue):
    def asks(watch: Watch) -> None:
        watch.confirm("a model", Estimate(2, Usage(1, 1), None))

    first, second = queue.submit("first", asks), queue.submit("second", lambda _: None)
    waiting(lambda: second.is_over)
    assert "will be asked 2 times" in waiting(lambda: first.question)
    first.is_agreed = True
    first.answered.set()
    waiting(lambda: first.is_over)
    assert first.error == ""


def test_what_fails_says_so_and_the_next_is_done(queue: Queue, capfd: pytest.CaptureFixture[str]):
    def refuses(_: Watch) -> Any:
        raise InputError("a sentence")

    def ends(_: Watch) -> None:
        os._exit(3)

    refused, ended = queue.submit("a", refuses), queue.submit("b", ends)
    broken = queue.submit("c", lambda _: 1 / 0)
    waiting(lambda: refused.is_over and ended.is_over and broken.is_over)
    assert refused.error == "a sentence"
    assert "press Try again" in ended.error
    assert "see the terminal" in broken.error
    assert "ZeroDivisionError" in capfd.readouterr().err
    with pytest.raises(FabulaError, match="a sentence"):
        queue.ask(refuses)


def test_closing_ends_every_process(tmp_path: Path):
    queue = Queue()
    state = queue.submit("first", endless(tmp_path / "a"))
    begun = processes(tmp_path / "a", 1)
    queue.close()
    assert not any(map(is_there, begun))
    assert (state.is_over, state.error) == (True, ""), "the next desk does it"


def test_the_minutes_left_are_those_of_the_pace_so_far():
    a_minute_ago = time.monotonic() - 60
    assert State("reading", 1, 5, a_minute_ago).shown == "reading, about 4 minutes left"
    assert State("reading", 4, 5, a_minute_ago).shown == "reading"
