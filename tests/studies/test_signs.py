"""Counts of what was done in a field: kept once, no content, set beside those of others."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from scipy.stats import fisher_exact
from sqlalchemy import select
from starlette.testclient import TestClient
from tests.studies.test_app import ENDING, Running, hidden, make
from tests.studies_data import story_rows

from fabula.cli.main import cli
from fabula.studies.database import assignments
from fabula.studies.participants import forget
from fabula.studies.people_tables import signs
from fabula.studies.signs import Signs, signs_of_all

WHY = f"{ENDING}.why"
LOAD = "0123456789abcdef01234567"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    running = make(tmp_path, "ttcw", story_rows(1, 2))
    yield running
    running.store.close()


def write(client: TestClient, text: str, counts: str | None, **more: str) -> None:
    """A reason on the first story, with what its page counted: pastes, leaves, changes."""
    form = hidden(client.get("/page/story-1"))
    client.post("/save", data=form | {ENDING: "Yes", WHY: text})
    if counts is not None:
        sent = client.post("/signs", data=form | {"load": LOAD, f"n-{WHY}": counts} | more)
        assert sent.status_code == 204


def rows(running: Running) -> list[Any]:
    with running.store.reading() as connection:
        return list(connection.execute(select(signs).order_by(signs.c.load)))


def found(running: Running) -> dict[int, Signs]:
    with running.store.writing() as connection:
        connection.execute(assignments.update().values(state="done", done_ms=1))
        return signs_of_all(connection, running.design)


def test_counts_of_a_page_replace_those_it_sent_before(running: Running) -> None:
    client = running.reader()
    write(client, "She comes back home.", "0 1 10")
    write(client, "She comes back home.", "1 2 20")
    write(client, "She comes back home.", "0 0 5", load="f" * 24)
    assert [(row.n_pastes, row.n_leaves, row.n_keys) for row in rows(running)] == [
        (1, 2, 20), (0, 0, 5),
    ]  # fmt: skip
    assert found(running) == {1: Signs(1, 1, 1, 2, 1, 0, 0)}


@pytest.mark.parametrize(
    "wrong",
    [
        {f"n-{WHY}": "1 2"},
        {f"n-{WHY}": "1 2 -3"},
        {f"n-{WHY}": "the words themselves"},
        {"load": "x"},
        {"unit": "2"},
        {"unit": "0"},
    ],
)
def test_nothing_but_counts_of_fields_of_one_s_own_is_kept(
    running: Running, wrong: dict[str, str]
) -> None:
    write(running.reader(), "She comes back home.", "0 0 1", **{"n-9:nothing": "1 1 1"}, **wrong)
    assert rows(running) == []


def test_a_text_is_noticed_that_was_pasted_or_has_fewer_changes_than_words(
    running: Running,
) -> None:
    for text, counts in (
        ("She comes back home.", "0 3 25"),  # typed
        ("She comes back home.", "0 0 4"),  # a keyboard that writes words
        ("She comes back home.", "1 1 30"),  # pasted, and worked on
    ):
        write(running.reader(), text, counts)
    by_person = {id_: (one.n_counted, one.n_noticed) for id_, one in found(running).items()}
    assert by_person == {1: (1, 0), 2: (1, 0), 3: (1, 1)}


def test_without_a_script_counts_are_missing_with_a_reason(
    running: Running, tmp_path: Path
) -> None:
    write(running.reader(), "She comes back home.", None)
    write(running.reader(), "n/a", "0 0 3")
    write(running.reader(), "She comes back home.", "2 0 1")
    signs_ = found(running)
    assert (signs_[1].reason, signs_[1].rate, signs_[1].stands_out) == ("no_script", None, False)
    assert 2 not in signs_
    assert signs_[3].rate == 1.0
    out = tmp_path / "people.csv"
    done = CliRunner().invoke(
        cli,
        ["study", "export", str(running.design.path), "--format", "csv", "--out",
         str(tmp_path / "a.csv"), "--people", str(out)],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    with out.open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert [(r["n_noticed"], r["why_not_counted"]) for r in table] == [
        ("", "no_script"), ("", "no_words"), ("1", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("mine", "n", "others", "m"), [(5, 6, 4, 60), (2, 6, 6, 60), (1, 1, 0, 90)]
)
def test_who_stands_out_is_decided_by_fisher_s_exact_test(
    mine: int, n: int, others: int, m: int
) -> None:
    """Against scipy's own of the table; one text alone is never enough."""
    p = fisher_exact([[mine, n - mine], [others, m - others]], alternative="greater").pvalue
    assert Signs(n, n, mine, 0, mine, m, others).stands_out == (p < 0.01 and mine > 1)


def test_the_forgotten_leave_no_counts_and_the_organiser_sees_the_rest(running: Running) -> None:
    for _ in range(2):
        write(running.reader(), "She comes back home.", "1 0 1")
    found(running)
    organiser = TestClient(running.app)
    page = organiser.post("/organise/login", data={"password": "secret"})
    assert "1 of 1 <small>others 100 %</small>" in page.text
    with running.store.writing() as connection:
        forget(connection, 1, "test")
    assert len(rows(running)) == 1
