import pytest

from fabula.cli.notices import progress_bar


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
