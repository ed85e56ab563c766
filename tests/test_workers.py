"""How many processors there are, on systems that tell and on those that do not."""

from __future__ import annotations

import os

import pytest

from fabula.errors import InputError
from fabula.models.local import n_threads
from fabula.workers import default_jobs


def test_where_the_system_does_not_tell_what_a_process_may_use_all_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on macOS, whose Python has no `os.sched_getaffinity`."""
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delenv("FABULA_THREADS", raising=False)
    monkeypatch.delenv("FABULA_JOBS", raising=False)
    assert default_jobs() == n_threads() == os.cpu_count()
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert default_jobs() == n_threads() == 1


def test_a_number_of_threads_that_was_asked_for_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setenv("FABULA_THREADS", "3")
    assert n_threads() == 3


def test_the_environment_says_how_many_processes_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FABULA_JOBS", "3")
    assert default_jobs() == 3
    monkeypatch.setenv("FABULA_JOBS", "many")
    with pytest.raises(InputError, match="FABULA_JOBS=many is not a number"):
        default_jobs()
