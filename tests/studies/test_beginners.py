"""What goes wrong the first time: it is said before it costs anybody an answer."""

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import Result
from starlette.testclient import TestClient
from tests.commands import invoke, refused, write_rows
from tests.running_commands import running
from tests.studies.running import Running, feedback_rows, hidden, save, send, tales

from fabula.stories.story_writing import story_row
from fabula.studies.app import create_app


def new(
    folder: Path, rows: list[dict[str, Any]], *more: object, design: str = "ttcw",
    code: int | None = 0,
) -> Result:  # fmt: skip
    documents = write_rows(folder / "s.jsonl", rows)
    words = ("study", "new", folder / "study.toml", "--design", design, "--documents", documents)
    return invoke(*words, *more, code=code)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    new(tmp_path, tales(1, 2))
    return tmp_path / "study.toml"


def test_stories_that_fabula_wrote_are_grouped_by_their_plot(tmp_path: Path):
    rows = [
        story_row({"id": f"p{k}", "text": f"Tale {k} of {author}.", "plot": "A plot.",
                   "n_words": 4, "target_words": 4, "round": 1}, author)
        for k in range(2) for author in ("m1", "m2")
    ]  # fmt: skip
    done = new(tmp_path, rows)
    assert "(2 groups, 4 texts)" in done.output
    assert "note:" not in done.output
    assert tomllib.loads((tmp_path / "study.toml").read_text())["group_field"] == "prompt_id"
    invoke("study", "invite", tmp_path / "study.toml", 1)


@pytest.mark.parametrize("group", [None, "", "  "])
def test_a_story_without_a_group_is_told_with_an_option(tmp_path: Path, group: str | None):
    rows = [row | {"plot": row["group"]} for row in tales(1, 2)]
    if group is None:
        del rows[1]["group"]
    else:
        rows[1]["group"] = group
    said = str(new(tmp_path, rows, code=None).exception)
    assert "the story '0_GPT4' has no 'group'" in said
    assert "with --group-field" in said
    assert not (tmp_path / "study.toml").exists()
    new(tmp_path, rows, "--group-field", "plot")


def test_a_new_study_says_whom_it_takes_and_what_it_cannot_keep_from_them(tmp_path: Path):
    rows = tales(3, 2)
    rows[0] |= {"story_id": "s"}
    rows[1] |= {"story_id": "s"}
    del rows[3]["author"], rows[5]
    found = json.loads(new(tmp_path, rows, "--json").output)
    # Three groups by three people each, one a person.
    assert (found["n_readings"], found["n_for_one_person"], found["n_people"]) == (9, 1, 9)
    assert found["notes"] == [
        "plot 0: contains several versions of one story, and its readers see both",
        "plot 2: contains only one story, so there is nothing to rank",
        "1_GPT4: has no author; `analyse` compares authors",
    ]


def test_a_new_study_of_feedback_says_that_nobody_compares_versions(tmp_path: Path):
    rows = [row | {"story_id": "s", "original": "The WHOLE story."} for row in feedback_rows()]
    said = new(tmp_path, rows, design="feedback").output
    for words in ("6 readings; each person reads at most 1 piece of feedback",
                  "so at least 6 people are needed", "study.toml 6\n",
                  "nobody is given two versions of one story"):  # fmt: skip
        assert words in said


def test_other_machines_are_served_over_http_only_on_request(file: Path):
    serve = ("study", "serve", str(file), "--host", "0.0.0.0", "--port", "0")
    assert "--insecure" in refused(*serve)
    with running(*serve, "--insecure") as (_, url):
        port = url.rpartition(":")[2]
        anywhere = httpx.get(f"http://127.0.0.1:{port}/health", headers={"host": "study.example"})
        assert anywhere.status_code == 200


def test_a_study_on_this_machine_answers_under_its_own_names_only(file: Path):
    with running("study", "serve", str(file), "--port", "0") as (_, url):
        assert httpx.get(f"{url}/health").status_code == 200
        elsewhere = httpx.get(f"{url}/organise/login", headers={"host": "evil.example"})
        assert elsewhere.status_code == 400


def test_a_preview_shows_the_study_and_keeps_nothing(file: Path):
    before = sorted(file.parent.iterdir())
    with (
        running("study", "serve", "--preview", str(file)) as (_, url),
        httpx.Client(follow_redirects=True) as client,
    ):
        page = client.get(url)
        assert "Preview: Reading short stories" in page.text
        client.base_url = url.partition("/i/")[0]
        send(client, "/consent", page)
        assert save(client)["problems"] == {}
    assert sorted(file.parent.iterdir()) == before
    # What was answered there is in nobody's way.
    file.write_text(file.read_text().replace("few short stories", "few stories"))
    invoke("study", "invite", file, 1)


def test_a_short_password_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FABULA_STUDY_PASSWORD", "secret")
    assert "shorter than 10 characters" in refused("study", "serve", file)


def test_links_to_this_machine_are_told_to_be_such(file: Path):
    done = invoke("study", "invite", file, 1)
    assert "this machine only; set --url for other people" in done.stderr
    done = invoke("study", "invite", file, 1, "--url", "https://study.example")
    assert done.stderr == ""
    number, link = done.stdout.split()
    assert number == "p0002"
    assert link.startswith("https://study.example/i/")


def test_what_a_browser_is_told_counts_nothing_of_others(study: Running):
    for _ in range(3):
        reader = study.reader()
        form = hidden(reader.get("/page/story-1"))
        assert (form["unit"], form["revision"]) == ("1", "0")
        assert [save(reader, value)["revision"] for value in ("Yes", "No")] == [1, 2]


def test_two_people_at_one_browser_are_asked_who_is_reading(study: Running):
    first, second = study.invited(2)
    browser = TestClient(study.app, follow_redirects=True)
    send(browser, "/consent", browser.get(f"/i/{first}"))
    page = browser.get("/page/story-1")
    asked = browser.get(f"/i/{second}")
    assert "Who is reading?" in asked.text
    # The tab of the first still saves.
    assert send(browser, "/save", page, **{"1:narrative_ending": "Yes"}).status_code == 200
    assert "story-1" in str(browser.get(f"/i/{first}").url)
    (link,) = re.findall(r'href="(/i/[^"]+)"', asked.text)
    assert "I agree" in browser.get(link).text


def test_one_browser_takes_part_in_two_studies(study: Running):
    cookies: dict[str, str] = {}
    for id_ in ("one", "two"):
        app = create_app(replace(study.design, id=id_), study.units, study.store)
        # Browsers tell hosts apart and not ports.
        client = TestClient(app, follow_redirects=True, cookies=cookies)
        assert "I agree" in client.get(f"/i/{study.invited()[0]}").text
        cookies |= dict(client.cookies)
    assert len(cookies) == 2
    assert not {"one", "two"} & set("_".join(cookies).split("_"))
