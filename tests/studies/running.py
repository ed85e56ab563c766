"""Studies in this process, and what people do with their pages without a browser."""

import html
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import Table, select
from starlette.testclient import TestClient
from tests.commands import write_rows

from fabula.core.types import Measurement
from fabula.studies.app import create_app
from fabula.studies.assigning import Assignment, finish
from fabula.studies.database import Store, assignments, now_ms
from fabula.studies.design import StudyDesign, load_study, new_study
from fabula.studies.exporting import export
from fabula.studies.forms import Key, pages_of
from fabula.studies.participants import invite, set_state
from fabula.studies.study_engine import open_store
from fabula.studies.units import Unit, read_units
from fabula.studies.views import save_answers

ENDING = "1:narrative_ending"
_AUTHORS = ("NewYorker", "GPT4", "Claude", "GPT3.5")


def tales(n_groups: int, n_stories: int) -> list[dict[str, Any]]:
    """Groups of stories with a common plot."""
    return [
        {"id": f"{g}_{a}", "author": a, "group": f"plot {g}",
         "text": f"Tale {g}{k}: <b>she</b> went away & came back.\n\nIt ended {k} times."}
        for g in range(n_groups)
        for k, a in enumerate(_AUTHORS[:n_stories])
    ]  # fmt: skip


def feedback_rows() -> list[dict[str, Any]]:
    """A piece of feedback on a story as it was, and one on a story that was changed."""
    return [
        {"id": f"s{k}_{method}_spot_0", "story_id": f"s{k}", "method": method, "prompt": "spot",
         "shots": 0, "model": "writer-model", "feedback": f"Point {k}.", "missing_reason": None,
         "story": text, "original": "The WHOLE story." if method == "swap" else text,
         "change": {"edits": []}, "signature": "x"}
        for k, (method, text) in enumerate(
            (("original", "A story as it was."), ("swap", "A CHANGED story.")))
    ]  # fmt: skip


def two_texts(kind: Any) -> list[dict[str, Any]]:
    return feedback_rows() if kind == "feedback" else tales(1, 2)


@dataclass
class Running:
    """A study in this process."""

    design: StudyDesign
    units: list[Unit]
    store: Store
    app: Any

    def invited(self, n: int = 1) -> list[str]:
        """The tokens of people who were invited."""
        with self.store.writing() as connection:
            return [one.token for one in invite(connection, [""] * n, "test")]

    def visitor(self) -> TestClient:
        """Somebody who was invited, with their cookie."""
        client = TestClient(self.app, follow_redirects=True, raise_server_exceptions=False)
        assert client.get(f"/i/{self.invited()[0]}").status_code == 200
        return client

    def reader(self) -> TestClient:
        """Somebody who agreed."""
        client = self.visitor()
        page = send(client, "/consent", client.get("/"))
        if "quiz-1" in page.text:
            send(client, "/quiz", page, **self.quiz_answers())
        return client

    def quiz_answers(self) -> dict[str, str]:
        return {f"quiz-{k}": q.answer for k, q in enumerate(self.design.quiz, 1)}

    def rows(self, *columns: Any) -> list[Any]:
        """What the database holds, in order."""
        key = getattr(columns[0], "table", columns[0]).primary_key
        with self.store.reading() as connection:
            return list(connection.execute(select(*columns).order_by(*key)))

    def every(self, column: Any) -> list[Any]:
        return [value for (value,) in self.rows(column)]

    def set(self, table: Table, **values: Any) -> None:
        """In every row."""
        with self.store.writing() as connection:
            connection.execute(table.update().values(**values))

    def measured(self, *, unfinished: bool = False) -> list[Measurement]:
        units = {unit.key: unit for unit in self.units}
        with self.store.reading() as connection:
            return list(export(connection, self.design, units, unfinished=unfinished))

    def given(self) -> dict[tuple[str, str], Any]:
        found = self.measured(unfinished=True)
        return {(one.document_id, one.item): one.value for one in found if one.value is not None}

    def read_all(self, reader: TestClient, **other: str) -> tuple[list[str], httpx.Response]:
        """All that somebody is given who answers some parts so; the pages, and the last one."""
        seen, page = [], reader.get("/")
        while len(seen) < 40:
            if ">Begin</a>" in page.text:
                page = reader.get(re.findall(r'button main" href="([^"]+)"', page.text)[0])
            if 'name="unit"' not in page.text:
                return seen, page
            seen.append(page.text)
            page = reader.post(page.url.path, data=filled(page, **other) | onward(page))
        raise AssertionError(page.text)

    def organiser(self) -> TestClient:
        client = TestClient(self.app, raise_server_exceptions=False)
        client.post("/organise/login", data={"password": "secret"})
        return client


Make = Callable[..., Running]


def csrf(page: httpx.Response) -> str:
    return hidden(page)["csrf"]


def hidden(page: httpx.Response) -> dict[str, str]:
    found = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page.text)
    return {name: html.unescape(value) for name, value in found}


def send(client: TestClient, path: str, page: httpx.Response, /, **fields: str) -> httpx.Response:
    """Send the form of a page, with these fields."""
    return client.post(path, data=hidden(page) | fields)


def save(reader: TestClient, value: str = "Yes", item: str = ENDING) -> Any:
    """Somebody opens the first story and answers a question: what the page's script is told."""
    saved = send(reader, "/save", reader.get("/page/story-1"), **{item: value})
    assert saved.is_success
    return saved.json()


def make(
    folder: Path, kind: Any, rows: list[dict[str, Any]] | None = None, *, url: str | None = None,
    more: str = "", name: str = "study", **lines: object,
) -> Running:  # fmt: skip
    """A study, of two texts if no others are given, whose file has these lines, and more at its
    end."""
    rows = two_texts(kind) if rows is None else rows
    file = folder / f"{name}.toml"
    file.unlink(missing_ok=True)
    new_study(file, kind, write_rows(folder / f"{name}.jsonl", rows))
    text = file.read_text()
    for key, value in lines.items():
        line = f"{key} = {json.dumps(value)}"
        text, n = re.subn(rf"(?m)^(# )?{key} = .*", line, text, count=1)
        text = text if n else text.replace("\n[texts]", f"\n{line}\n[texts]")
    file.write_text(text + more)
    return open_study(file, url)


def open_study(file: Path, url: str | None = None) -> Running:
    design = load_study(file)
    units = read_units(design)
    store = open_store(design, units, url)
    return Running(design, units, store, create_app(design, units, store, password="secret"))


def filled(page: httpx.Response, why: str = "For these reasons I say so.", **parts: str) -> Any:
    """The form of a page with an answer in each field: for some parts a certain one."""
    form = hidden(page)
    for field, value in re.findall(r'type="radio" name="([^"]+)" value="([^"]*)"', page.text):
        part, _, item = field.partition(":")
        form.setdefault(field, part if item == "preference" else parts.get(part, value))
    areas = re.findall(r'<textarea[^>]* name="([^"]+)"', page.text)
    return form | dict.fromkeys(areas, why)


def onward(page: httpx.Response) -> dict[str, str]:
    return {"go": re.findall(r'class="main" name="go" value="([^"]+)"', page.text)[-1]}


def answer_all(reader: TestClient, end: str = "finish") -> httpx.Response:
    """Fill in every page on two stories as a browser without JavaScript does, and hand in."""
    for name, go in pairwise(("story-1", "story-2", "group", end)):
        page = reader.get(f"/page/{name}")
        page = reader.post(f"/page/{name}", data=filled(page) | {"go": go})
    return page


def answer(study: Running, unit: Unit, given: dict[Key, str], *, done: bool = True) -> None:
    """One participant's answers on one unit, in the order of its documents, as the page saves."""
    with study.store.writing() as connection:
        (participant,) = invite(connection, [""], "test")
        set_state(connection, participant.id, "ready", consented_ms=now_ms())
        places = tuple(range(len(unit.documents)))
        key = connection.execute(
            assignments.insert().values(
                participant_id=participant.id, unit=unit.key, order=",".join(map(str, places)),
                state="open", page="", given_ms=now_ms(), seen_ms=now_ms(),
            )
        ).inserted_primary_key  # fmt: skip
        pages = pages_of(study.design, len(places))
        for page in pages:
            held = Assignment(key[0], participant.id, unit, places, page.name)
            mine = {q.key for q in page.questions} | {q.why for q in page.questions}
            part = {one: value for one, value in given.items() if one in mine}
            assert not save_answers(connection, held, pages, part, None).problems
        if done:
            finish(connection, held)
