"""A job is one typed function: the command, the Python function, its record and reruns follow."""

import inspect
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

import fabula as fb
from fabula.cli.main import cli
from fabula.core.provenance import read_record
from fabula.core.settings import Between, setting
from fabula.core.store import write_rows
from fabula.jobs import registry
from fabula.jobs.job import SILENT, Progress, Texts
from fabula.judging.job import Labels
from fabula.show.sheet import Block, Column, Sheet


@dataclass(frozen=True, slots=True)
class VowelSettings(fb.Settings):
    """What is counted."""

    vowels: str = setting("aeiou", help="The letters that count.")
    n_least: int = setting(0, help="Leave out texts with fewer.", check=Between(0))
    labels: Labels | None = setting(None, help="People's labels.")
    out: Path | None = setting(None, help="Write the rows here (.jsonl).")


@dataclass(frozen=True, slots=True, repr=False)
class Vowels(fb.Result):
    """The vowels of each text."""

    counted: list[dict[str, Any]]

    def rows(self) -> list[dict[str, Any]]:
        return self.counted

    def tables(self) -> list[Block]:
        columns = [
            Column("id", of=lambda row: row["id"]),
            Column("n", "d", of=lambda row: row["n"]),
        ]
        return [Sheet.of("vowels", self.counted, columns)]


def vowels(texts: Texts, settings: VowelSettings, *, progress: Progress = SILENT) -> Vowels:
    """Count the vowels of TEXTS; see `n_least`.

    Raises `InputError`.
    """
    progress.begin("counting", len(texts))
    rows = [
        {"id": one.id, "n": sum(one.text.count(v) for v in settings.vowels), "by": {"n": 1}}
        for one in texts
    ]
    found = Vowels([row for row in rows if row["n"] >= settings.n_least])
    if settings.out is not None:
        write_rows(settings.out, found.rows(), are_results=True)
    return found


@pytest.fixture(autouse=True)
def job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    fb.register("poem vowels", "Count vowels.")(vowels)
    (tmp_path / "a.txt").write_text("ooo")
    (tmp_path / "b.txt").write_text("a")
    yield
    del registry._OWN["poem vowels"]
    vars(fb).pop("poem_vowels", None)


def run(*words: str) -> Any:
    return CliRunner().invoke(cli, list(words))


def test_it_is_a_command_with_help_and_all_forms_of_output():
    assert "poem" in run("--help").output
    shown = run("poem", "vowels", "--help").output
    assert "see --least" in shown
    assert "Raises" not in shown
    assert "--csv" in run("poem", "vowels", "--help", "output").output
    words = ("poem", "vowels", "a.txt", "b.txt", "--least", "2")
    assert json.loads(run(*words, "--json").stdout) == [{"id": "a.txt", "n": 3, "by": {"n": 1}}]
    assert run(*words, "--jsonl").stdout.count("\n") == 1
    done = run(*words, "--csv", "t.csv", "--latex", "t.tex", "--out", "rows.jsonl")
    assert "a.txt" in done.output
    assert "written: rows.jsonl" in done.output
    assert Path("t.csv").read_text().splitlines() == ["id,n", "a.txt,3"]
    assert "a.txt" in Path("t.tex").read_text()
    refused = run(*words, "--least", "-1")
    assert refused.exit_code == 2
    assert "--least" in refused.output


def test_it_is_a_function_with_a_signature_and_its_result_converts():
    function: Any = fb.poem_vowels  # type: ignore[attr-defined]
    parameters = list(inspect.signature(function).parameters)
    assert parameters[:4] == ["texts", "vowels", "least", "labels"]
    assert "see `least`" in function.__doc__
    found = function({"x": "ee", "y": "i"}, least=2)
    assert [(row["id"], row["n"]) for row in found] == [("x", 2)]
    assert len(repr(found)) < 200
    frame = function(pd.DataFrame({"id": ["x"], "text": ["ee"]})).frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns.tolist() == ["id", "n", "by_n"]
    found.save("f.csv")
    assert Path("f.csv").read_text() == "id,n\nx,2\n"
    with pytest.raises(fb.InputError, match=r"f\.xyz: cannot be written; the endings .* \.jsonl"):
        found.save("f.xyz")
    for options, said in (
        ({"leas": 2}, r"`leas` is not an argument .* did you mean `least`"),
        ({"least": -1}, "`least` must be at least 0"),
        ({"least": "2"}, "`least` must be int, got a value of type str"),
    ):
        with pytest.raises(fb.SettingsError, match=said):
            function(["a"], **options)


def test_it_is_in_a_record_and_made_again_by_rerun():
    run("poem", "vowels", "a.txt", "b.txt", "--least", "2", "--out", "rows.jsonl")
    record = read_record(Path("rows.jsonl"))
    assert record["command"] == "poem vowels"
    assert record["settings"]["n_least"] == 2
    done = run("rerun", "rows.jsonl")
    assert done.exit_code == 0, done.output
    Path("a.txt").write_text("oooo")
    assert run("rerun", "rows.jsonl").exit_code == 1
    fb.poem_vowels(["ee"], out="mine.jsonl")  # type: ignore[attr-defined]
    assert read_record(Path("mine.jsonl"))["command"] == "fabula.poem_vowels"


def test_words_that_are_taken_are_refused():
    with pytest.raises(ValueError, match="'report' already exists"):
        fb.register("report")(vowels)
