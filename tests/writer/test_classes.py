"""Several texts on the desk: compared with each other, kept, and removed for good."""

import time

from fastapi.testclient import TestClient
from tests.writer.test_desk import client as client
from tests.writer.test_desk import desk as desk
from tests.writer.test_desk import send

from fabula.writer.work import Desk

FERRY = "The ferry was late again and the porter counted the lamps on the far bank. "
TEXTS = {
    "anna.txt": FERRY + "Anna wrote this rather crooked sentence herself.",
    "ben.txt": FERRY + "Ben wrote about trains, timetables and porridge.",
    "cleo.txt": "She has nothing in common with anybody here, and likes it so.",
}


def test_several_files_are_compared_with_each_other(client: TestClient, desk: Desk):
    files = [("files", (name, text.encode(), "text/plain")) for name, text in TEXTS.items()]
    path = send(client, "/classes", files).url.path
    ends = time.monotonic() + 120
    while (page := client.get(path).text) and "What each shares with the others" not in page:
        assert time.monotonic() < ends, page
        time.sleep(0.1)
    assert "anna.txt and ben.txt: 15 words in common runs" in page
    assert "direction unknown" in page
    saved = client.get(f"{path}/report.html")
    assert saved.headers["content-disposition"].startswith("attachment")
    assert "/classes" not in saved.text, "what is saved leads nowhere on the desk"
    assert "3 texts: anna, ben, cleo" in client.get("/classes").text
    send(client, f"{path}/remove")
    assert client.get(path).status_code == 404
    assert not list((desk.folder / "classes").iterdir())


def test_what_is_no_class_is_refused_and_nothing_is_kept(client: TestClient, desk: Desk):
    one = [("files", ("anna.txt", b"Alone.", "text/plain"))]
    two = [*one, ("files", ("../../anna.txt", b"Not alone.", "text/plain"))]
    for files, more, said in (
        (one, {}, "choose at least two files"),
        (two, {"reference": "infinigram:x"}, "infinigram:x is not in one"),
    ):
        answer = send(client, "/classes", files, **more)
        assert answer.status_code == 400
        assert said in answer.text
    assert not list((desk.folder / "classes").iterdir())
