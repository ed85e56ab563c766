"""Several texts on the desk: compared with each other, kept, and removed for good."""

import time

from fastapi.testclient import TestClient
from tests.desk.test_desk import KEY, client, csrf, desk

from fabula.desk.start import create_app
from fabula.desk.work import Desk

__all__ = ["client", "desk"]

FERRY = "The ferry was late again and the porter counted the lamps on the far bank. "
TEXTS = {
    "anna.txt": FERRY + "Anna wrote this rather crooked sentence herself.",
    "ben.txt": FERRY + "Ben wrote about trains, timetables and porridge.",
    "cleo.txt": "She has nothing in common with anybody here, and likes it so.",
}


def sent(client: TestClient, names: list[str], **more: str) -> str:
    """Where the files' report will be."""
    files = [("files", (name, TEXTS[name].encode(), "text/plain")) for name in names]
    data = {"csrf": csrf(client), **more}
    answer = client.post("/classes", data=data, files=files, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def test_several_files_are_compared_with_each_other(client: TestClient, desk: Desk):
    path = sent(client, list(TEXTS))
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
    client.post(f"{path}/remove", data={"csrf": csrf(client)})
    assert client.get(path).status_code == 404
    assert not list((desk.folder / "classes").iterdir())


def test_what_is_no_class_is_refused_and_nothing_is_kept(client: TestClient, desk: Desk):
    one = [("files", ("anna.txt", b"Alone.", "text/plain"))]
    answer = client.post("/classes", data={"csrf": csrf(client)}, files=one)
    assert answer.status_code == 400
    assert "choose at least two files" in answer.text
    two = [*one, ("files", ("../../anna.txt", b"Not alone.", "text/plain"))]
    data = {"csrf": csrf(client), "reference": "infinigram:x"}
    answer = client.post("/classes", data=data, files=two)
    assert answer.status_code == 400
    assert "infinigram:x is not in one" in answer.text
    assert not list((desk.folder / "classes").iterdir())
    data["csrf"] = "guess"
    assert client.post("/classes", data=data, files=two).status_code == 403
    stranger = TestClient(create_app(desk, key=KEY), base_url="http://127.0.0.1")
    assert stranger.get("/classes").status_code == 403
