"""What a writer decides about findings: it stays decided, over drafts, and can be taken back."""

import json
import os
import pickle
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.serving import serving
from tests.writer.test_desk import answer, draft, opened, send, when_over
from tests.writer.test_desk import books as books
from tests.writer.test_desk import desk as desk
from tests.writer.test_desk import spares as spares

from fabula.core.errors import InputError
from fabula.core.store import write_whole
from fabula.core.types import Document
from fabula.linguistic.profile import opened_tools
from fabula.review.job import ReportSettings
from fabula.review.reviewer import Reviewer
from fabula.style.dictionary import own_words, read_dictionary
from fabula.style.lines import LINE_KINDS
from fabula.writer.choices import Choices, Told
from fabula.writer.stored import load
from fabula.writer.work import Asked, Desk

DRAFT = (
    "The lamp went round, and teh keeper counted nine. Margaret could of gone home.\n\n"
    "She did not recieve the letter, and Margaret never asked for it.\n\n"
    "The gnarled hand of the keeper lay on the rail, and beyond it the gnarled hedge leaned. "
    "Margaret saw it, and Velquist saw it. Velquist had seen worse, but Velquist was tired."
)


@pytest.fixture
def client(desk: Desk) -> TestClient:
    """A browser beside a measured draft."""
    desk.begin(desk.drafts.add("The lamp", DRAFT, asdict(Asked())))
    client = opened(desk)
    assert when_over(client)["error"] == ""
    return client


def first(client: TestClient, path: str = "/piece/0001/1") -> list[str]:
    """The words of each finding that the first screen lists."""
    page = client.get(path).text.partition('id="findings"')[2].partition("</section>")[0]
    return re.findall(r"<strong>(.*?)</strong>", page.partition("<details")[0])


def press(client: TestClient, act: str, words: str, path: str = "/piece/0001/1") -> Any:
    """A button of the first screen beside a finding of these words."""
    page = client.get(path).text
    value = re.search(rf'name="{act}" value="([^"]*)"[^>]*, {words}"', page)
    assert value is not None
    return send(client, f"{path}/finding", **{act: value[1]})


def measured_again(client: TestClient, text: str, number: int) -> None:
    send(client, "/piece/0001/versions", text=text)
    when_over(client, f"/piece/0001/{number}")


def test_what_is_dismissed_stays_away_over_drafts_until_it_is_taken_back(
    client: TestClient, desk: Desk
):
    assert {"teh", "recieve", "could of"} <= {*first(client)}
    assert "Three possible errors" in client.get("/piece/0001/1").text
    page = press(client, "here", "teh")
    assert str(page.url).endswith("/piece/0001/1#findings")
    assert "teh" not in first(client)
    assert "Two possible errors" in page.text
    assert 'title="“teh”' not in page.text, "it is not marked in the text either"
    assert "“teh” is in neither" not in client.get("/piece/0001/1/report.html").text
    press(client, "everywhere", "recieve")

    def live(text: str) -> str:
        return str(send(client, "/piece/0001/1/check", text=text).json()["html"])

    assert "<q>teh" not in live(DRAFT.replace("counted nine", "counted ten"))
    longer = f"Wait.\n\n{DRAFT.replace('counted nine', 'counted ten')} And teh end. I recieve it."
    measured_again(client, longer, 2)
    assert first(client, "/piece/0001/2").count("teh") == 1, "the new one, not the dismissed one"
    assert "recieve" not in first(client, "/piece/0001/2")
    # The words changed: it is another finding.
    measured_again(client, longer.replace("teh keeper", "keeper recieved and"), 3)
    assert "recieved" in first(client, "/piece/0001/3")
    # A desk that was killed has them still.
    listed = opened(Desk(desk.folder)).get("/piece/0001/dismissed").text
    assert listed.index("recieve") < listed.index("teh")
    number = re.search(r'name="number" value="(\d+)"[^>]*, teh"', listed)
    assert number is not None
    send(client, "/piece/0001/dismissed", number=number[1])
    assert "teh" in first(client)
    assert first(client, "/piece/0001/2").count("teh") == 2
    assert "teh" not in client.get("/piece/0001/dismissed").text


def test_a_finding_is_dismissed_while_one_writes(client: TestClient):
    text = f"{DRAFT}\n\nIt was teh end of it."
    page = send(client, "/piece/0001/1/check", text=text).json()["html"]
    value = re.findall(r'name="here"\s+value="(spelling \d+ \d+ findings)"', page)[0]
    assert send(client, "/piece/0001/1/dismiss", text=text, here=value).status_code == 204
    after = send(client, "/piece/0001/1/check", text=text).json()["html"]
    assert after.count("“teh” is in neither") == page.count("“teh” is in neither") - 1
    measured_again(client, text, 2)
    assert first(client, "/piece/0001/2").count("teh") == 1, "the one that was there before"


def test_passages_and_points_are_dismissed_and_numbers_stay(desk: Desk):
    client = opened(desk)
    with serving(answer) as served:
        asked = {"feedback": "on", "verdicts": "on", "fluency": "on", "readings": "1"}
        draft(client, desk, model=f"{served.url}/v1#editor", **asked)
        when_over(client)
        send(client, "/piece/0001/1/answer", agreed="yes")
        assert when_over(client)["error"] == ""
    version = desk.drafts.pieces()[0].last
    before = version.found["numbers"]
    assert load(version) is not None, "all results can be read again"
    page = client.get("/piece/0001/1").text
    assert "One passage to check" in page
    assert "One point to revise" in page
    for kind in ("passage", "point"):
        (value,) = {*re.findall(rf'name="here" value="({kind} [^"]* findings)"', page)}
        page = send(client, "/piece/0001/1/finding", here=value).text
    assert "<mark" not in page
    assert "No passage to check" in page
    assert "No points are left: you dismissed them." in page
    assert version.found["numbers"] == before
    assert first(client) == []


def test_kinds_are_switched_at_once_and_results_that_are_gone_are_measured_again(
    client: TestClient, desk: Desk
):
    assert "gnarled" not in first(client), "echoes are off"
    page = client.get("/piece/0001/1").text
    assert re.search(r'value="doubled" checked>\s*Doubled word\s*<small>right 95 %', page)
    before = client.get("/piece/0001/1/state").json()
    send(client, "/piece/0001/1/kinds", kind="echo")
    assert first(client) == ["gnarled"], "and nothing else"
    assert client.get("/piece/0001/1/state").json() == before, "nothing was measured"
    assert "gnarled" in send(client, "/piece/0001/1/check", text=DRAFT + " End.").json()["html"]
    send(client, "/piece/0001/1/kinds", kind="spelling")
    (desk.folder / "pieces/0001/1/review.pickle").write_bytes(b"of another version")
    client.get("/piece/0001/1")
    when_over(client)
    assert {*first(client)} == {"teh", "recieve"}


def test_own_words_are_offered_once_and_kept_in_a_dictionary(client: TestClient, desk: Desk):
    page = client.get("/piece/0001/1").text
    assert re.search(r'value="Velquist" checked', page)
    send(client, "/piece/0001/1/words", word="Velquist")
    assert "to add to this piece" not in client.get("/piece/0001/1").text
    kept = desk.folder / "pieces/0001/dictionary.txt"
    assert kept.read_text() == "Velquist\n"
    send(client, "/piece/0001/dictionary", words="Velquist\r\n Teh \r\n")
    assert "teh" not in first(client)
    assert ">\nTeh\nVelquist</textarea>" in client.get("/piece/0001/dismissed").text
    assert "<q>teh" not in send(client, "/piece/0001/1/check", text=DRAFT + " Teh.").json()["html"]


def test_what_was_useful_is_counted_on_the_desk(client: TestClient, desk: Desk):
    press(client, "useful", "teh")
    press(client, "useless", "recieve")
    press(client, "here", "could of")
    page = client.get("/piece/0001/1").text
    assert re.search(r'name="useful"[^>]*aria-pressed="true"[^>]*, teh"', page)
    told = "Of the first findings that you marked, 1 of 3 were useful"
    assert told in client.get("/piece/0001/dismissed").text
    assert sorted(Told(desk.folder).counts()) == [("Grammar", 0, 1), ("Spelling", 1, 2)]
    assert "teh" not in (desk.folder / "told.json").read_text()
    send(client, "/piece/0001/dismissed", number="1")
    assert sorted(Told(desk.folder).counts()) == [("Spelling", 1, 2)]


def test_choices_need_the_desk_s_own_form(client: TestClient):
    for path in ("1/finding", "1/dismiss", "1/kinds", "1/words", "dismissed", "dictionary"):
        assert client.post(f"/piece/0001/{path}", data={"csrf": "x"}).status_code == 403
    assert send(client, "/piece/0001/1/finding", here="nonsense").status_code == 422
    assert send(client, "/piece/0001/1/finding", here="spelling 1 2 findings").status_code == 200


def test_results_from_elsewhere_run_nothing(desk: Desk, tmp_path: Path):
    version = desk.drafts.add("t", DRAFT, asdict(Asked()))
    for call in (os.mkdir, write_whole):
        target = tmp_path / "made"
        row = (call, (target,) if call is os.mkdir else (target, b"x"))
        evil = type("Evil", (), {"__reduce__": lambda _, row=row: row})
        version.keep("review.pickle", pickle.dumps(evil()))
        assert load(version) is None
        assert not target.exists()


def test_damaged_choices_are_none(tmp_path: Path):
    choices = Choices(tmp_path)
    rows: list[Any] = [{"id": 1}, 3, {"id": "x", "kind": "spelling"}]
    (tmp_path / "dismissed.json").write_text(json.dumps(rows))
    (tmp_path / "choices.json").write_text('{"kinds": [1], "offered": 3}')
    assert choices.dismissed() == []
    off = {kind.id for kind in LINE_KINDS.values() if not kind.is_on}
    assert {kind.id for kind in choices.kinds() if not kind.is_on} == off


def test_the_command_line_reads_the_same_dictionary(tmp_path: Path):
    words = tmp_path / "dictionary.txt"
    words.write_text("\ufeffTEH\n\n recieve \n", encoding="utf-8")
    assert read_dictionary(words) == {"teh", "recieve"}

    def noted(**more: Any) -> tuple[list[str], str]:
        settings = ReportSettings(without=("book", "profile", "confused"), **more)
        with Reviewer(settings) as reviewer:
            review = reviewer.run([Document("d", DRAFT)])
        notes = review.texts[0].results["lines"].notes
        spelt = [DRAFT[n.start : n.end] for n in notes if n.kind == "spelling"]
        return spelt, review.signatures["lines"]

    (plain, before), (known, after) = noted(), noted(dictionary=words)
    assert (plain, known) == (["teh", "recieve"], [])
    assert re.fullmatch(re.escape(before) + r"\|dictionary:[0-9a-f]{8}", after)
    with pytest.raises(InputError, match=r"nowhere\.txt: not a dictionary"):
        noted(dictionary=tmp_path / "nowhere.txt")


def test_own_words_are_unknown_and_come_again():
    text = "The zorbling ran. " * 5 + "A quibbet sat. " * 4 + "Then Velquist saw Perks. " * 3
    own = own_words(opened_tools("harper").read(text))
    assert (own.names, own.words) == (("Velquist",), ("zorbling",))
