"""From answers to tables: the published verdicts give the published tables again."""

import csv
import io
import json
import re
import sqlite3
import sys
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from lxml import etree
from tests.commands import invoke, refused, rows_of, write_rows
from tests.studies.running import Make, Running, answer, tales

from fabula.core.errors import InputError
from fabula.feedback.job import feedback_rows as feedback_rows_of
from fabula.rubrics.load import load_rubric
from fabula.rubrics.released import read_expert_verdicts
from fabula.studies.design import StudyDesign, load_study, new_study
from fabula.studies.forms import Key
from fabula.studies.participants import invite
from fabula.studies.study_engine import open_store
from fabula.text.feedback_pieces import feedback_documents


def execute(file: Path, words: str) -> list[Any]:
    with closing(sqlite3.connect(file)) as database, database:
        return database.execute(words).fetchall()


def test_a_database_of_another_version_or_program_is_refused(study: Running, tmp_path: Path):
    file, other = study.store.file, tmp_path / "other.db"
    execute(file, "UPDATE settings SET value = '9999' WHERE key = 'schema'")
    with pytest.raises(InputError, match="open it with the version that wrote it") as caught:
        open_store(study.design, study.units)
    assert str(file) in str(caught.value)
    assert "version 9999, here 1" in str(caught.value)
    assert "\n" not in str(caught.value)
    execute(file, "UPDATE settings SET value = '1' WHERE key = 'schema'")
    open_store(study.design, study.units).close()
    for table in ("alembic_version (version_num)", "settings (key, value)"):
        execute(other, f"CREATE TABLE {table}")
        with pytest.raises(InputError, match="version unknown, here 1"):
            open_store(study.design, study.units, f"sqlite:///{other}")
    assert len(execute(other, "SELECT * FROM sqlite_master")) == 2


def test_published_verdicts_give_the_table_of_the_replication(opened: Make, shared_data: Path):
    released = shared_data / "ttcw" / "ttcw_annotations.json"
    verdicts = list(read_expert_verdicts(released))
    stories = dict.fromkeys(verdict.story_id for verdict in verdicts)
    study = opened("ttcw", [
        {"id": story, "text": "A story.", "group": group, "author": author}
        for story in stories for group, _, author in [story.partition("_")]
    ])  # fmt: skip
    items = {item.index: item.id for item in load_rubric("ttcw").items}
    n = 0
    for unit in study.units:
        # An expert sits in one place on one story, and in another on the next: so do they here.
        for seat in range(3):
            given: dict[Key, str] = {}
            for part, document in enumerate(unit.documents, 1):
                mine = [v for v in verdicts if v.story_id == document.id]
                expert = list(dict.fromkeys(v.expert for v in mine))[seat]
                given |= {(str(part), items[v.index]): "Yes" if v.passed else "No"
                          for v in mine if v.expert == expert}  # fmt: skip
            n += len(given)
            answer(study, unit, given)
    assert n == 2016
    ours = invoke("study", "analyse", study.design.path).output
    # Without the released judges, which it has no need of.
    study.design.path.with_name(released.name).symlink_to(released)
    theirs = invoke("replicate", "ttcw", study.design.path.parent).output
    theirs, ours = (one.partition("Figure 4 (")[0].strip() for one in (theirs, ours))
    assert theirs == ours


def test_a_study_of_stories_has_rates_agreement_and_places(study: Running, tmp_path: Path):
    path = study.design.path
    for k in range(3):
        given: dict[Key, str] = {}
        for item in study.design.rubric.items:
            given["1", item.id] = "Yes"
            given["2", item.id] = "Yes" if k == 0 else "No"
            given["1", item.id + ".why"] = "For these reasons, I say."
        given |= {("1", "preference"): "1", ("2", "preference"): "2", ("1", "origin"): "An AI"}
        answer(study, study.units[0], given)
    # Not handed in, so not counted.
    answer(study, study.units[0], {("2", "narrative_ending"): "Yes"}, done=False)
    plot, out = tmp_path / "study.svg", tmp_path / "a.jsonl"
    found = invoke("study", "analyse", path, "--plot", plot)
    drawn = plot.read_text()
    for expected in ("tests passed", "place in the group", "taken for", "NewYorker (n = 3)"):
        assert expected in drawn
    line = next(x for x in found.output.splitlines() if x.startswith("1 Narrative Ending"))
    assert line.split()[-2:] == ["33.3", "100.0"], "GPT4, then NewYorker"
    rates = json.loads(invoke("study", "analyse", path, "--json").stdout)["pass_rate"]
    assert rates["GPT4"]["narrative_ending"] == pytest.approx(100 / 3)
    for expected in ("place in the group", "taken for", "2 stories, 84 verdicts", "study|id:study"):
        assert expected in found.output
    invoke("study", "export", path, "--out", out)
    rows = rows_of(out)
    assert len(rows) == 3 * (28 + 6)
    assert sum(row["value"] is not None for row in rows) == 3 * 31
    assert {row["rater"] for row in rows} == {"p0001", "p0002", "p0003"}
    assert rows[0]["rationale"] == "For these reasons, I say."
    for row in rows:
        is_time = re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:.*Z", row["details"].get("saved", ""))
        assert bool(is_time) == (row["value"] is not None)
    forgotten = invoke("study", "people", "--forget", path, "p0001", "--yes")
    assert forgotten.output.startswith("45 answers")
    assert "2 stories, 56 verdicts" in invoke("study", "analyse", path).output


def sheet_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a workbook's first sheet, by its XML: text, or numbers, and no formula."""
    with zipfile.ZipFile(path) as book:
        files = ("xl/sharedStrings.xml", "xl/worksheets/sheet1.xml")
        strings, sheet = (etree.fromstring(book.read(name)) for name in files)
    assert not list(sheet.iter("{*}f"))
    texts = ["".join(one.itertext()) for one in strings.iter("{*}si")]
    rows = []
    for row in sheet.iter("{*}row"):
        rows.append({})
        for cell in row.iter("{*}c"):
            value = str(cell.findtext("{*}v"))
            column = str(cell.get("r")).rstrip("0123456789")
            rows[-1][column] = texts[int(value)] if cell.get("t") == "s" else float(value)
    return [{name: row.get(column) for column, name in rows[0].items()} for row in rows[1:]]


def test_an_export_has_a_row_for_each_person_and_text_and_one_for_each_person(
    opened: Make, tmp_path: Path
):
    rows = tales(1, 2)
    # An id that a spreadsheet would calculate stays what it is.
    rows[0]["id"] = "=1+1"
    study = opened("ttcw", rows)
    for value in ("Yes", "No"):
        answer(study, study.units[0], {
            ("1", "narrative_ending"): value, ("1", "narrative_ending.why"): "=HYPERLINK(1)",
            ("2", "preference"): "1", ("1", "origin"): "An AI",
        })  # fmt: skip
    with study.store.writing() as connection:
        invite(connection, ["=note"], "test")
    readers: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
        "jsonl": lambda p: rows_of(p),
        "csv": lambda p: list(csv.DictReader(io.StringIO(p.read_text()))),
        "parquet": lambda p: pq.read_table(p).to_pylist(),
        "xlsx": sheet_rows,
    }
    for form, read in readers.items():
        out, people = tmp_path / f"a.{form}", tmp_path / f"p.{form}"
        invoke("study", "export", study.design.path, "--out", out, "--wide",
               "--people", people)  # fmt: skip
        wide = {(row["rater"], row["id"]): row for row in read(out)}
        assert set(wide) == {(r, d) for r in ("p0001", "p0002") for d in ("=1+1", rows[1]["id"])}
        first = wide["p0001", "=1+1"]
        ends = [float(wide[r, "=1+1"]["narrative_ending"]) for r in ("p0001", "p0002")]
        assert ends == [1, 0]
        # Guarded where a spreadsheet reads it, and only what people typed.
        assert first["narrative_ending.why"] == ("'" if form == "csv" else "") + "=HYPERLINK(1)"
        assert first["origin"] == "An AI"
        assert first.get("preference") in (None, ""), "not answered"
        assert (first["unit"], int(first["place"]), first["state"]) == ("plot 0", 1, "done")
        three = read(people)
        assert [row["rater"] for row in three] == ["p0001", "p0002", "p0003"]
        assert [int(row["n_done"]) for row in three] == [1, 1, 0]
        assert [row["state"] for row in three] == ["ready", "ready", "invited"]
        assert three[2]["note"] == ("'" if form == "csv" else "") + "=note"
        assert three[0]["consented"].startswith("20")
        assert three[2]["consented"] in (None, "")


def test_a_study_of_feedback_has_means_and_agreement(opened: Make, tmp_path: Path):
    study = opened("feedback")
    said = [("All of it", "Yes"), ("Some of it", "No"), ("None of it", "Yes")]
    for unit in study.units:
        for correct, relevant in said:
            given = {
                ("unit", "own_feedback"): "n/a", ("unit", "sanity"): "Only feedback",
                ("unit", "feedback_type"): "Suggestions", ("unit", "correctness"): correct,
                ("unit", "error_detection"): "No", ("unit", "specificity"): "Yes",
            }  # fmt: skip
            if unit.facts["corrupted"] == "Yes":
                given["unit", "relevance"] = relevant
            answer(study, unit, given)
    analyse = "study", "analyse", study.design.path
    found = json.loads(invoke(*analyse, "--json").stdout)
    assert found["means"]["method"]["swap"]["correctness"]["mean"] == pytest.approx(0.5)
    assert found["means"]["method"]["original"]["relevance"]["mean"] is None
    assert found["means"]["model"]["writer-model"]["relevance"]["n"] == 1
    # By hand: pairs of 1, 0.5, 0 are alike by 0.5, 0, 0.5.
    assert found["agreement"]["correctness"]["similarity"] == pytest.approx(np.mean([0.5, 0, 0.5]))
    assert found["agreement"]["specificity"]["alpha"] is None
    assert "among raters" in invoke(*analyse).output
    # People's answers and a model's go into the same call.
    out = tmp_path / "people.jsonl"
    invoke("study", "export", study.design.path, "--out", out)
    rows = rows_of(out)
    own = [row for row in rows if row["rubric"] == "own_feedback"]
    assert {row["value"] for row in own} == {"n/a"}
    assert [own[0]["details"][name] for name in ("story_id", "method")] == ["s0", "original"]
    # What they would have told the writer is feedback of their own, and nothing else of it is.
    labelled = feedback_rows_of([out])
    expected = [(f"{row['id']}_{row['rater']}", row["details"]["method"]) for row in own]
    assert [(row["id"], row["method"]) for row in labelled] == expected
    (first, *_) = feedback_documents(labelled, str(out), with_story=False)
    assert (first.text, first.author, first.meta["corrupted"]) == ("n/a", None, "No")


@pytest.fixture
def design(tmp_path: Path) -> StudyDesign:
    """Of a study of two stories that was never opened."""
    new_study(tmp_path / "study.toml", "ttcw", write_rows(tmp_path / "s.jsonl", tales(1, 2)))
    return load_study(tmp_path / "study.toml")


def test_nothing_to_analyse_is_said(design: StudyDesign):
    assert "fabula study serve" in refused("study", "analyse", design.path)
    assert invoke("study", "invite", design.path, "2").output.count("/i/") == 2
    assert "nobody has handed in" in refused("study", "analyse", design.path)


def test_no_export_takes_the_place_of_what_it_is_made_from(design: StudyDesign, tmp_path: Path):
    invoke("study", "invite", design.path, "1")
    database = tmp_path / "study.db"

    def content() -> list[str]:
        with closing(sqlite3.connect(database)) as connection:
            return list(connection.iterdump())

    before = content()
    for taken in (database, design.documents, design.path, tmp_path / "study.db-wal"):
        invoke("study", "export", design.path, "--out", taken, code=2)
    assert content() == before
    assert design.documents.exists()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        *((url, "--database") for url in ("sqlite://", "sqlite:///:memory:", "nonsense",
                                          "postgresql://ann:secret@host:port/db")),
        ("postgresql://me:secret@localhost/study", "pip install 'fabula[postgres]'"),
    ],
)  # fmt: skip
def test_a_database_that_cannot_be_had_is_said(
    design: StudyDesign, monkeypatch: pytest.MonkeyPatch, url: str, words: str
):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    said = refused("study", "invite", design.path, "1", "--database", url)
    assert words in said
    assert "secret" not in said


def test_what_cannot_be_run_is_not_written(tmp_path: Path):
    path = tmp_path / "étude d'été.toml"
    rows = write_rows(tmp_path / "rows.jsonl", [{"id": "a", "text": "No group here."}])
    new = ("study", "new", path, "--design", "ttcw", "--documents", rows)
    refused(*new)
    assert not path.exists()
    write_rows(rows, [{"id": "a", "text": "A story.", "group": "g"}])
    invoke(*new)
    assert load_study(path).id == "etude-d-ete"
    text = path.read_text()
    for rubric, expected in (("preference", "ranks a group"), ("feedback", "about feedback")):
        path.write_text(text.replace('rubric = "ttcw"', f'rubric = "{rubric}"'))
        with pytest.raises(InputError, match=expected):
            load_study(path)
