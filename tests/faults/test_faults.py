"""A job that is disturbed loses nothing: run again, it leaves the bytes of one that was not.

`make faults` runs the long form: `FABULA_FAULTS` is how many times each job is killed.
"""

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.work import JOBS, Done, Job, disturbed, left, prepared
from tests.serving import Served, prompt_of, serving

pytest.importorskip("inspect_ai", reason="needs fabula[hosted]")
pytest.importorskip("spacy", reason="needs fabula[nlp]")

N_KILLS = int(os.environ.get("FABULA_FAULTS", "2"))
WELL = "Verdict: Yes\n" + "She counts the lamps along the pier until one of them is gone. " * 3
KILLED = -signal.SIGKILL
FAILED = (1, 3, 4, 5)
"""Documented exit codes of what is no mistake in the command."""


@pytest.fixture(scope="module", autouse=True)
def local(small_model: Path) -> Iterator[None]:
    """What `local` names costs nothing: its answers are not the point."""
    with pytest.MonkeyPatch.context() as there:
        there.setenv("FABULA_LOCAL_MODEL", str(small_model))
        yield


@pytest.fixture(scope="module")
def model() -> Iterator[Served]:
    """One whose answer depends on the question alone."""
    with serving(lambda body, _: f"{WELL}{len(prompt_of(body))} words on.") as served:
        yield served


@dataclass
class Undisturbed:
    """What a job leaves that nothing disturbs, and how often it changed something on the way."""

    name: str
    job: Job
    bytes: dict[str, bytes]
    n_changes: int
    seconds: float
    """How long it took."""
    model: str

    def run(self, folder: Path, fault: dict[str, object]) -> Done:
        return disturbed(self.job, folder, self.model, fault)()

    def check_again(self, folder: Path) -> None:
        again = self.run(folder, {})
        assert again.returncode in self.job.codes, again.stderr
        assert left(self.job, folder) == self.bytes

    def check_told(self, fault: dict[str, object], codes: tuple[int, ...], place: Path) -> None:
        """A fault ends the job with one of these codes and a sentence, and it can be run again."""
        folder = prepared(self.job, place / "work")
        done = self.run(folder, fault)
        assert done.returncode in codes, done.stderr
        assert done.returncode == 0 or "error: " in done.stderr
        assert "Traceback" not in done.stderr
        self.check_again(folder)

    def rng(self) -> random.Random:
        return random.Random(os.environ.get("FABULA_FAULTS_SEED", self.name))


QUICK = "reference build", "originality", "report"
"""A mechanism each; the others run in `make test-all`."""


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[] if name in QUICK else pytest.mark.long) for name in JOBS],
)
def whole(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, model: Served
) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    job, address, changes = JOBS[request.param], f"{model.url}/v1#m", folder / "changes"
    prepared(job, folder / "work")
    begin = time.monotonic()
    done = disturbed(job, folder / "work", address, {}, changes)()
    seconds = time.monotonic() - begin
    assert done.returncode == 0, done.stderr
    found = left(job, folder / "work")
    assert found
    return Undisturbed(request.param, job, found, int(changes.read_text()), seconds, address)


def test_what_was_killed_goes_on_to_the_same_bytes(whole: Undisturbed, tmp_path: Path):
    """Killed before each change of a file, and then at any other time."""
    rng = whole.rng()
    everywhere = range(1, whole.n_changes + 1)
    places = rng.sample(everywhere, min(N_KILLS, whole.n_changes))
    faults: list[dict[str, object]] = [{"kill_at": at} for at in places]
    times = [rng.uniform(0, whole.seconds) for _ in range(N_KILLS - len(places))]
    faults += [{"kill_after_s": at} for at in times]
    codes = []
    for number, fault in enumerate(faults):
        folder = prepared(whole.job, tmp_path / str(number))
        codes.append(whole.run(folder, fault).returncode)
        whole.check_again(folder)
        shutil.rmtree(folder)
    # Where answers come in their order, one change fewer is made: that run ends by itself.
    assert set(codes) <= {KILLED, 0}
    assert KILLED in codes


def test_memory_that_ends_is_told_and_costs_nothing(whole: Undisturbed, tmp_path: Path):
    at = whole.rng().randrange(1, whole.n_changes + 1)
    # Where answers come in their order, one change fewer is made: that run ends by itself.
    whole.check_told({"memory_at": at}, (*FAILED, 0), tmp_path)


def test_a_full_disk_is_told_and_costs_nothing(whole: Undisturbed, tmp_path: Path):
    largest = max(map(len, whole.bytes.values()))
    whole.check_told({"largest": whole.rng().randrange(largest // 8, largest)}, FAILED, tmp_path)


def test_a_clock_that_jumps_changes_nothing(whole: Undisturbed, tmp_path: Path):
    folder = prepared(whole.job, tmp_path / "work")
    done = whole.run(folder, {"clock_s": -40_000.0})
    assert done.returncode == 0, done.stderr
    assert left(whole.job, folder) == whole.bytes


def test_of_two_writers_one_is_refused_or_both_leave_the_same(whole: Undisturbed, tmp_path: Path):
    folder, go = prepared(whole.job, tmp_path / "work"), tmp_path / "go"
    half = max(1, whole.n_changes // 2)
    first = disturbed(whole.job, folder, whole.model, {"wait_at": half, "for": str(go)})
    wanted = go.with_name("go.wanted")
    until = time.monotonic() + 120
    while not wanted.exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    second = whole.run(folder, {})
    go.touch()
    codes = []
    for done in first(), second:
        assert done.returncode in (4, *whole.job.codes), done.stderr
        codes.append(done.returncode)
    assert 0 in codes
    assert left(whole.job, folder) == whole.bytes
