"""Servers end in order on every signal that asks for it: nothing is left beside the files."""

import signal
from pathlib import Path

import pytest
from tests.running_commands import running


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_the_desk_ends_in_order(tmp_path: Path, name: str):
    desk = ("desk", "--port", "0", "--dir", str(tmp_path), "--no-open")
    with running(*desk) as (process, _):
        process.send_signal(signal.Signals[name])
        assert process.wait(60) == 0
