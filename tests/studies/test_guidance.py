"""What participants are told: where they are, what is lacking, and that handing in is the end."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.commands import invoke, rows_of
from tests.studies.test_app import ENDING, Running, answer_all, hidden, make
from tests.studies_data import feedback_rows, story_rows

from fabula.studies.app import create_app
from fabula.studies.database import answers, assignments, page_views
from fabula.studies.forms import pages_of
from fabula.studies.quality import MOST_MS, Event, _events, page_times, spent_ms


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Running]:
    running = make(tmp_path, "ttcw", story_rows(2, 2))
    design = replace(running.design, per_participant=2)
    app = create_app(design, running.units, running.store)
    yield Running(design, running.units, running.store, app)
    running.store.close()


def test_everybody_knows_where_they_are_and_how_long_it_takes(study: Running):
    reader = study.reader()
    page = reader.get("/page/story-1")
    # 2 stories of 14 questions at 45 seconds, 2 of 3 at 15: 22.5 minutes; and a few words.
    assert (
        '<p class="where">Story 1 of 2, Group 1 of 2 at most, about 25 minutes left</p>'
        in page.text
    )
    assert "Your reason, in 4 words or more" in page.text
    assert "Hand in" not in page.text
    reader.get("/page/story-2")
    group = reader.get("/page/group")
    assert "Once you hand in, you can no longer change anything." in group.text
    after = answer_all(reader, ["story-1", "story-2", "group"])
    assert "Handed in. This is the next one." in after.text
    assert "Group 2 of 2 at most" in reader.get("/page/story-1").text
    assert "You have finished" in answer_all(reader, ["story-1", "story-2", "group"]).text


def test_in_feedback_nothing_tells_how_many_questions_come(tmp_path: Path):
    running = make(tmp_path, "feedback", feedback_rows())
    reader = running.reader()
    page = reader.get("/page/story")
    assert '<p class="where">Story 1 of 2 at most</p>' in page.text
    assert "stays as it is" not in page.text
    page = reader.post(
        "/page/story", data=hidden(page) | {"unit:own_feedback": "n/a", "go": "next"}
    )
    assert "Once you continue, you can no longer change your answers on this page." in page.text
    assert reader.get("/open").url.path == "/page/feedback"
    running.store.close()


def test_a_short_reason_is_told_at_its_page_and_once(study: Running):
    reader = study.reader()
    page = reader.get("/page/story-1")
    given = {ENDING: "Yes", f"{ENDING}.why": "So it is."}
    told = "please give your reason, at least 4 words"
    kept = reader.post("/page/story-1", data=hidden(page) | given | {"go": ""})
    assert told in kept.text
    assert "So it is." in kept.text
    assert ">Saved.<" in kept.text, "saved all the same"
    stopped = reader.post("/page/story-1", data=hidden(page) | given | {"go": "story-2"})
    assert told in stopped.text
    assert "Press the button again" in stopped.text
    assert "not answered yet" not in stopped.text, "what is open is nobody's fault yet"
    gone = reader.post("/page/story-1", data=hidden(stopped) | {"go": "story-2"})
    assert gone.url.path == "/page/story-2"
    # Where each answer is sent by itself, a reason is told to be short once it was left.
    form = hidden(reader.get("/page/story-1")) | {f"{ENDING}.why": "It is."}
    assert reader.post("/save", data=form).json()["short"] == {}
    left = reader.post("/save", data=form | {"ended": f"{ENDING}.why"}).json()
    assert told in left["short"][f"{ENDING}.why"]
    assert left["problems"] == {}


def test_the_list_of_what_is_open_leads_to_each_gap_and_back(study: Running):
    reader = study.reader()
    for name in ("story-1", "story-2"):
        page = reader.get(f"/page/{name}")
    assert "/open" not in page.text
    listed = reader.get("/open")
    assert "Nearly done" in listed.text
    assert 'href="/page/story-2?from=open#q-2:narrative_ending"' in listed.text
    page = reader.get("/page/story-2?from=open")
    assert "Back to what is open" in page.text
    back = reader.post(
        "/page/story-2",
        data=hidden(page)
        | {"2:narrative_ending": "No", "2:narrative_ending.why": "It ends too soon.", "go": "open"},
    )
    assert back.url.path == "/open"
    assert "#q-2:narrative_ending" not in back.text
    answer_all(reader, ["story-1", "story-2", "group"][:2])
    page = reader.get("/page/group")
    rest = {f"{k}:{item}": value for k in (1, 2) for item, value in
            (("preference", str(k)), ("origin", "An AI"), ("familiar", "No"))}  # fmt: skip
    done = reader.post("/page/group", data=hidden(page) | rest | {"go": "open"})
    assert "Everything is answered" in done.text
    assert "Handed in" in reader.post("/page/group", data=hidden(done) | {"go": "finish"}).text


def test_time_is_counted_by_page_and_no_gap_is_left_out(study: Running):
    reader = study.reader()
    page = reader.get("/page/story-1")
    reader.get("/page/story-2")
    reader.post("/save", data=hidden(page) | {ENDING: "Yes"})
    # A minute before the first page, an hour on it, two minutes on the second, and the answer on
    # the first: by hand, the hour counts ten minutes.
    with study.store.writing() as connection:
        start = 1_000_000
        connection.execute(assignments.update().values(given_ms=start))
        for number, at in ((1, 60_000), (2, 3_660_000)):
            view = page_views.c.id == number
            connection.execute(page_views.update().where(view).values(at_ms=start + at))
        connection.execute(answers.update().values(saved_ms=start + 3_780_000))
    with study.store.reading() as connection:
        pages = {unit.key: pages_of(study.design, 2) for unit in study.units}
        found = page_times(connection, pages)
        ((_, events),) = _events(connection, {})
    assert [(one.page, one.seconds, one.n_opened, one.n_saved) for one in found] == [
        ("story-1", MOST_MS / 1000, 1, 1), ("story-2", 120.0, 1, 0),
    ]  # fmt: skip
    assert sum(spent_ms(events).values()) == 60_000 + MOST_MS + 120_000
    assert spent_ms([Event(5, "a")]) == {}
    study.store.checkpoint()
    out = study.design.path.parent
    invoke(
        "study", "export", study.design.path, "--out", out / "o.jsonl", "--times", out / "t.jsonl"
    )
    rows = rows_of(out / "t.jsonl")
    assert [(row["rater"], row["page"], row["seconds"]) for row in rows] == [
        ("p0001", "story-1", 600.0), ("p0001", "story-2", 120.0),
    ]  # fmt: skip
