"""What every command does alike: exit codes, notices, its log, and the configuration."""

import os
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.running_commands import running

import fabula as fb
from fabula.cli.derived import Command, command_of
from fabula.cli.main import cli, interrupted_by_signals, main
from fabula.cli.notices import progress_bar
from fabula.core import errors
from fabula.core.errors import FabulaError, InputError
from fabula.jobs.models import NoModelSettings
from fabula.jobs.registry import jobs
from fabula.jobs.shared_settings import Config, read_config


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("x"), 3), (errors.CorpusError("x"), 3), (errors.MixError("x"), 3),
        (errors.BusyError("x"), 4), (errors.ModelError("x"), 5), (errors.CallFailed("x"), 5),
        (errors.LookupFailed("x"), 5),
        (click.UsageError("x"), 2), (click.BadParameter("x"), 2), (KeyboardInterrupt(), 130),
        (OSError(28, "No space left on device"), 3),
    ],
)  # fmt: skip
def test_exit_codes_tell_kinds_of_failure_apart(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
):
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr("fabula.cli.main.cli", fail)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code


@click.command(cls=Command)
@click.option("--reference", multiple=True)
@click.option("--fail", is_flag=True)
def tool(asked: NoModelSettings, reference: tuple[str, ...], fail: bool) -> None:
    from fabula.cli.notices import progress_bar

    with progress_bar("reading", 3) as bar:
        bar.say("measuring")
        bar.tell("left out: a.txt")
    if fail:
        raise InputError("b.txt: is empty")
    click.echo(f"{reference} {asked.models} {asked.spending.price}")


def test_quiet_says_nothing_besides_results_and_verbose_steps_and_the_traceback():
    plain, quiet, verbose, failed = (
        CliRunner().invoke(tool, words).stderr
        for words in ([], ["-q"], ["-v", "--fail"], ["--fail"])
    )
    assert "left out: a.txt" in plain
    assert quiet == ""
    assert verbose.startswith("reading\nmeasuring\n")
    assert "Traceback" in verbose
    assert "Traceback" not in failed


def test_the_log_holds_steps_notices_and_errors_of_all_runs(tmp_path: Path):
    log = tmp_path / "run.log"
    for words in (["-q"], ["--fail"]):
        CliRunner().invoke(tool, [*words, "--log", str(log)])
    lines = [line.split(maxsplit=2)[2] for line in log.read_text().splitlines()]
    steps = ["INFO reading", "INFO measuring", "WARNING left out: a.txt"]
    assert lines == [*steps, *steps, "ERROR b.txt: is empty"]


CONFIG = """reference = ["a.ref", "b.ref"]
model = "openai/gpt-4o"
[prices]
"openai/gpt-4o" = "2.5/10"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the user's own configuration may stand; the current folder is another, and empty."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    users = tmp_path / "config" / "fabula"
    users.mkdir(parents=True)
    return users


def test_the_configuration_is_the_folders_or_else_the_users(folder: Path):
    assert read_config() == Config()
    (folder / "fabula.toml").write_text('model = ["local"]')
    assert read_config() == Config(model=("local",))
    Path("fabula.toml").write_text(CONFIG)
    prices = {"openai/gpt-4o": "2.5/10"}
    assert read_config() == Config(("a.ref", "b.ref"), ("openai/gpt-4o",), True, prices)


@pytest.mark.parametrize("key", ["model", "reference"])
def test_an_address_that_only_the_folder_names_is_asked_about(folder: Path, key: str):
    Path("fabula.toml").write_text(f'{key} = ["http://192.0.2.1/x"]')
    refused = CliRunner().invoke(tool, [])
    assert refused.exit_code == 2
    assert "192.0.2.1/x, which texts would be sent to; give the address" in refused.output
    # Given by the user, on this machine, or in the user's own configuration it is not.
    assert CliRunner().invoke(tool, [f"--{key}", "http://192.0.2.1/x"]).exit_code == 0
    Path("fabula.toml").write_text(f'{key} = ["http://localhost:8100"]')
    assert CliRunner().invoke(tool, []).exit_code == 0
    Path("fabula.toml").rename(folder / "fabula.toml")
    (folder / "fabula.toml").write_text(f'{key} = ["http://192.0.2.1/x"]')
    assert CliRunner().invoke(tool, []).exit_code == 0


def test_the_configuration_holds_where_no_option_says_otherwise(folder: Path):
    Path("fabula.toml").write_text(CONFIG)
    both = "('a.ref', 'b.ref')"
    for words, said in (
        ("", f"{both} ('openai/gpt-4o',) openai/gpt-4o=2.5/10\n"),
        ("-r c.ref -m local --set models.price=1/1", "('c.ref',) ('local',) 1/1\n"),
        # The price is that of the model, and not of whatever is asked.
        ("-m local", f"{both} ('local',) None\n"),
    ):
        assert CliRunner().invoke(tool, words.split()).stdout == said


def test_a_setting_that_no_command_has_is_named(folder: Path):
    Path("fabula.toml").write_text("[tools]\ngramar = 'none'\n[models]\ntimeout = 3\n")
    done = CliRunner().invoke(cli, ["profile", "story.txt"])
    assert "fabula.toml: tools.gramar: no such setting" in str(done.exception)
    with pytest.raises(FabulaError, match=r"tools\.gramar"):
        fb.profile(["A text."])


def test_a_zero_of_the_configuration_is_a_value(folder: Path):
    Path("fabula.toml").write_text("[models]\ntemperature = 0\nmax-unreadable = 0\n")
    context = command_of(jobs()["judge stories"]).make_context("judge", ["story.txt"])
    found = {name.rpartition("__")[2]: value for name, value in context.params.items()}
    assert (found["temperature"], found["max_unreadable"]) == (0, 0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("refrence = 'x'", "fabula.toml: unknown key 'refrence'; the keys are"),
        ("reference = 3", "fabula.toml: reference must be a string or a list of strings"),
        ("prices = 'cheap'", "fabula.toml: prices must be a table such as"),
        ("model =", "fabula.toml: cannot be read as TOML"),
        ("tools = 3", "fabula.toml: tools must be a table"),
        ("[models]\ntemperature = [1]", "fabula.toml: models.temperature must be a text, a number"),
        ("[running]\nrestart = true", "fabula.toml: `restart` is for one run"),
    ],
)
def test_a_wrong_configuration_is_named_with_what_is_wrong(folder: Path, content: str, said: str):
    Path("fabula.toml").write_text(content)
    with pytest.raises(FabulaError, match=said):
        read_config()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_command_as_an_interruption_does(number: int, tmp_path: Path):
    # A pipe that nothing is written to: the command waits for texts.
    with subprocess.Popen(
        [sys.executable, "-c", "from fabula.cli.main import main; main()", "profile", "-", "-v"],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:  # fmt: skip
        assert process.stderr.readline() == "profile\n"
        process.send_signal(number)
        said = process.stderr.read()
    assert process.returncode == 130, said
    assert "interrupted; finished work is kept" in said


def test_a_job_without_a_terminal_says_now_and_then_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    now = [0.0]
    monkeypatch.setattr("fabula.cli.notices.time.monotonic", lambda: now[0])
    with progress_bar("reading", 200) as bar:
        for k in range(200):
            now[0] = k * 0.5
            bar.advance(1)
        bar.begin("asking", 4)
        now[0] += 40
        bar.advance(3)
    # 100 seconds have room for three lines of reading; the last is the new job's.
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["reading: 30%", "reading: 60%", "reading: 90%", "asking: 75%"]


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


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_the_desk_ends_in_order(tmp_path: Path, name: str):
    desk = ("desk", "--port", "0", "--dir", str(tmp_path), "--no-open")
    with running(*desk) as (process, _):
        process.send_signal(signal.Signals[name])
        assert process.wait(60) == 0
