"""The desk over HTTP: who comes in, what is kept, what is asked before anything leaves."""

import io
import json
import os
import re
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import docx
import pytest
from fastapi.testclient import TestClient
from tests.http_serving import Handler, on_loopback
from tests.serving import prompt_of, serving

from fabula.core.errors import InputError
from fabula.core.types import Document
from fabula.core.workers import Child
from fabula.models.available import check_key
from fabula.reference.search import Reference
from fabula.writer.changes import moved_numbers
from fabula.writer.choices import Choices
from fabula.writer.desk_pages import changed_words
from fabula.writer.start import _door, _key, create_app, desk_name
from fabula.writer.stored import load
from fabula.writer.work import Asked, Desk, chosen_model, where_to

KEY = "the-key"
STORY = (
    "The lamp went round. She counted nine, and one, and then she put out her hand and held it "
    "still.\n\nNobody in the harbour woke."
)


@contextmanager
def open_to_all() -> Iterator[None]:
    """What is made is for everybody, unless it is said otherwise."""
    old = os.umask(0o022)
    yield
    os.umask(old)


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("desk") / "books.ref"
    source = Document("b", "Then she put out her hand and held it still until the bell had rung.",
                      meta={"title": "The Bell"})  # fmt: skip
    Reference.build([source], path).close()
    return str(path)


@pytest.fixture(scope="module")
def spares() -> Iterator[list[Child]]:
    """Processes that one desk after another uses, since opening all instruments takes seconds."""
    children: list[Child] = []
    yield children
    for child in children:
        child.close()


@pytest.fixture
def desk(tmp_path: Path, books: str, spares: list[Child]) -> Iterator[Desk]:
    with open_to_all(), Desk(tmp_path / "desk", (books,), spares=spares) as opened:
        yield opened


def opened(desk: Desk) -> TestClient:
    """A browser that came in by the key."""
    client = TestClient(create_app(desk, key=KEY), base_url="http://127.0.0.1")
    assert client.get(f"/open?given={KEY}").status_code == 200
    return client


@pytest.fixture
def client(desk: Desk) -> TestClient:
    return opened(desk)


def csrf(client: TestClient) -> str:
    page = client.get("/").text
    return page.partition('name="csrf" value="')[2].partition('"')[0]


def send(client: TestClient, path: str, files: Any = None, /, **fields: str) -> Any:
    return client.post(path, data={"csrf": csrf(client), **fields}, files=files)


def draft(client: TestClient, desk: Desk, path: str = "/drafts", /, **more: Any) -> Any:
    """A form with a draft, sent."""
    files = more.pop("files", None)
    return send(client, path, files, **{"reference": desk.references[0], "text": STORY} | more)


@contextmanager
def listing(status: int, models: list[str]) -> Iterator[tuple[str, list[str]]]:
    """A provider's list of models, and the keys that it was shown."""
    seen: list[str] = []
    body = json.dumps({"data": [{"id": one} for one in models]}).encode()

    class Answering(Handler):
        def do_GET(self) -> None:  # noqa: N802
            seen.append(self.headers["Authorization"])
            self.reply(status if self.path == "/models" else 404, body)

    with on_loopback(Answering) as url:
        yield url, seen


def waiting(holds: Callable[[], Any]) -> Any:
    """What it gives in the end."""
    ends = time.monotonic() + 120
    while not (found := holds()):
        assert time.monotonic() < ends
        time.sleep(0.02)
    return found


def when_over(client: TestClient, path: str = "/piece/0001/1") -> dict[str, Any]:
    """The last state of a report, waited for; or that it has a question."""

    def state() -> Any:
        found = client.get(f"{path}/state").json()
        return (found["over"] or found["question"]) and found

    return waiting(state)


def test_the_cookie_is_not_the_key_and_has_a_name_that_nobody_knows(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    """Browsers send a host's cookies to all its ports, and so to other users' pages there."""
    app = create_app(desk, key=KEY)
    name = desk_name(KEY)
    assert re.fullmatch(r"[0-9a-f]{20}\.localhost", name)
    own = TestClient(app, base_url=f"http://{name}:8765")
    found = own.get(f"/open?given={KEY}&next=//evil.example", follow_redirects=False)
    assert found.headers["location"] == "/"
    for flag in ("HttpOnly", "SameSite=strict"):
        assert flag in found.headers["set-cookie"]
    (cookie,) = own.cookies.jar
    assert KEY not in str(cookie.value)
    stolen = TestClient(app, base_url="http://127.0.0.1", cookies={"fabula_desk": KEY})
    assert stolen.get("/").status_code == 403
    stolen.cookies.set("fabula_desk", str(cookie.value))
    assert stolen.get("/").status_code == 200, "why it has the name"
    # It opens no door, and ends.
    assert stolen.get(f"/open?given={cookie.value}").status_code == 403
    in_ten_weeks = time.time() + 70 * 86_400
    monkeypatch.setattr("fabula.writer.start.time.time", lambda: in_ten_weeks)
    late = TestClient(app, base_url=f"http://{name}", cookies={"fabula_desk": str(cookie.value)})
    assert late.get("/").status_code == 403


def test_a_draft_is_measured_edited_and_compared(client: TestClient, desk: Desk):
    page = draft(client, desk, title="The <b>lamp")
    assert str(page.url).endswith("/piece/0001/1")
    assert when_over(client)["error"] == ""
    report = client.get("/piece/0001/1").text
    assert "The &lt;b&gt;lamp" in report
    assert "put out her hand and held it still" in report.partition("<mark")[2]
    assert "How it reads" in report
    kept = client.get("/piece/0001/1/report.html")
    assert "default-src 'none'" in kept.text
    assert 'aria-label="Desk"' not in kept.text
    assert STORY.split("\n")[0] in client.get("/piece/0001/1/edit").text
    mended = STORY.replace("put out her hand", "gave it her hand")
    draft(client, desk, "/piece/0001/versions", text=mended)
    when_over(client, "/piece/0001/2")
    beside = client.get("/beside?left=0001-1&right=0001-2").text
    for shown in ("<del>put out </del>", "<ins>gave it </ins>", "too little text to tell",
                  "0 gone, 0 new, 1 still there."):  # fmt: skip
        assert shown in beside
    assert ", line " not in beside, "the desk shows no lines"
    assert "<table" not in beside, "no writer sees the index, and the counts stayed as they were"
    assert "fabula " not in client.get("/piece/0001/2").text.partition("</head>")[2]

    def checked(text: str) -> dict[str, Any]:
        return send(client, "/piece/0001/2/check", text=text).json()

    (mark,) = checked(STORY)["marks"]
    assert STORY[slice(*mark)] == "then she put out her hand and held it still"
    without = checked(STORY.replace("put out her hand and held it still", "slept"))
    assert "1 gone, 0 new, 0 still there" in without["html"]
    assert without["marks"] == []
    assert "measure this version" in checked("Other words. " * 4_000)["html"]
    lit = checked(f"\U0001f3ee\n\n{STORY}")
    assert "1 still there" in lit["html"]
    ((start, _),) = lit["marks"]
    assert start == mark[0] + len("\U0001f3ee\n\n") + 1, "as a browser counts, in UTF-16"
    assert [len(piece.versions) for piece in desk.drafts.pieces()] == [2]
    # Of a chapter on the screen, what is gone from it.
    faults = [f"CHAPTER {k}\n\nHe did not recieve {one}.\n\n" for k, one in ((1, "it"), (2, "her"))]
    draft(client, desk, "/piece/0001/versions", text="".join(faults))
    when_over(client, "/piece/0001/3")
    edges, seen = (0, len(faults[0]), len("".join(faults))), []
    for first, last in pairwise(edges):
        text = f"{faults[0]}{faults[1].replace('recieve', 'receive')}"
        there = send(client, "/piece/0001/3/check", text=text, first=str(first), last=str(last))
        seen.append(there.json()["html"].partition("</p>")[0].partition("</b> ")[2])
    assert seen == ["0 gone, 0 new, 1 still there.", "1 gone, 0 new, 0 still there."]
    send(client, "/piece/0001/remove")
    assert client.get("/piece/0001/1").status_code == 404
    assert not any(path.is_dir() for path in desk.drafts.folder.iterdir())


def test_numbers_are_listed_only_where_they_moved_by_more_than_chance(
    client: TestClient, desk: Desk
):
    pairs = ("the lamp was lit and the bell rang", "nobody came to the door, and rain fell",
             "her boots were wet and her hands were cold")  # fmt: skip
    text = "\n\n".join(f"In the house at the harbour, {pairs[k % 3]}." for k in range(24))
    cut = re.sub(r", (\w)", lambda match: f". {match[1].upper()}", text[: len(text) // 2])
    versions = text, text.replace("house at", "house, at", 1), cut + text[len(text) // 2 :]
    draft(client, desk, text=versions[0])
    for version in versions[1:]:
        draft(client, desk, "/piece/0001/versions", text=version)
    for number in (1, 2, 3):
        when_over(client, f"/piece/0001/{number}")
    comma, halves = (client.get(f"/beside?left=0001-1&right=0001-{n}").text for n in (2, 3))
    assert "No number moved by more than chance." in comma
    titles = re.findall(r'<th scope="row">([^<]*)', halves)
    assert titles == ["Sentences", "Sentence length", "Spread of sentence length"]


def test_a_short_draft_is_proofread_unless_its_notes_are_hidden(client: TestClient, desk: Desk):
    text = "The street was quiet.\n\nShe wanted to by some bread, but there was no money left."
    draft(client, desk, text=text)
    when_over(client)
    (version,) = desk.drafts.pieces()[0].versions
    assert [text[one.start : one.end] for one in version.findings] == ["by"]
    Choices(version.folder.parent).switch({"grammar"})
    draft(client, desk, "/piece/0001/versions", text=f"{text} It rained.")
    when_over(client, "/piece/0001/2")
    read = [load(one) for one in desk.drafts.pieces()[0].versions]
    assert ["|whole:10000" in one.review.signatures["lines"] for one in read if one] == [
        True,
        False,
    ]


def test_few_paragraphs_are_compared_by_sentence():
    # 3 paragraphs of 6 sentences: a checksum, words, and none quoted, rare or repeated.
    long = [[k // 6, k, 14 + k % 3, 0, 0, 0] for k in range(18)]
    short = [[k // 12, 100 + k, 6 + k % 3, 0, 0, 0] for k in range(36)]
    edited = [[0, 99, 17, 0, 0, 0], *long[1:]]
    assert moved_numbers(long, short) == {"sentence_length"}
    assert moved_numbers(long, edited) == moved_numbers(long, long) == frozenset()
    for unknown in (None, [], long[:9], [["x"]]):
        assert moved_numbers(unknown, unknown) is None


def test_every_page_counts_the_same_words(client: TestClient, desk: Desk):
    """Headings count, and *didn't* is one word, whatever splits a text to measure it."""
    text = "# One\n\nShe didn't and couldn't look at the well-known lamp — not once.\n"
    desk.begin(desk.drafts.add("t", text, asdict(Asked())))
    assert when_over(client)["error"] == ""
    assert '<div class="sub">13 words' in client.get("/piece/0001/1").text
    assert '<td class="num">13</td>' in client.get("/piece/0001/versions").text


def test_models_that_can_be_asked_are_offered(client: TestClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    page = client.get("/").text
    assert '<option value="local">' in page
    assert "mistral/" not in page
    monkeypatch.setenv("MISTRAL_API_KEY", "k")
    assert '<option value="mistral/">mistral: key in MISTRAL_API_KEY' in client.get("/").text


@pytest.mark.parametrize(
    ("model", "name", "asked"),
    [
        ("", "ignored", ""), ("local", "", "local"), ("mistral/", "small", "mistral/small"),
        ("mistral/", "mistral/small", "mistral/small"), ("other", "http://h/v1#m", "http://h/v1#m"),
    ],
)  # fmt: skip
def test_a_model_is_chosen_from_the_list_or_named(model: str, name: str, asked: str):
    read = Asked.read({"model": model, "model_name": name})
    assert read.model == asked
    assert chosen_model(asked, ["local", "mistral/"])[0] == model
    again = chosen_model(asked, ["local", "mistral/"])
    assert Asked.read({"model": again[0], "model_name": again[1]}) == read
    with pytest.raises(InputError, match="Enter the model"):
        Asked.read({"model": "mistral/", "model_name": " "})


@pytest.mark.parametrize(
    ("status", "models", "said", "button"),
    [
        (200, ["small"], "accepts the key in MISTRAL_API_KEY, and has the model small",
         ">Send it<"),
        (200, ["large"], "does not list a model small", ">Send it<"),
        (401, [], "Mistral refuses the key in MISTRAL_API_KEY", "Send it anyway"),
        (500, [], "did not say whether the key is valid (500)", ">Send it<"),
    ],
)  # fmt: skip
def test_key_and_price_stand_before_the_consent(
    client: TestClient, desk: Desk, monkeypatch: pytest.MonkeyPatch, status: int,
    models: list[str], said: str, button: str,
):  # fmt: skip
    """The provider is a server here that lists these models to who shows the key."""
    with listing(status, models) as (url, seen):
        monkeypatch.setenv("MISTRAL_API_KEY", "k")
        monkeypatch.setenv("MISTRAL_BASE_URL", url)
        checked = check_key("mistral/small")
        assert seen == ["Bearer k"]
        monkeypatch.setattr("fabula.writer.desk_pages.check_key", lambda model: checked)
        monkeypatch.setenv("MISTRAL_BASE_URL", "https://api.mistral.example")
        page = draft(client, desk, model="mistral/", model_name="small", feedback="on").text
    for shown in (said, button, "will be asked"):
        assert shown in page
    assert desk.drafts.pieces() == []


def test_keys_are_tried_only_where_there_are_any(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    assert check_key("local") is None
    assert check_key("ollama/llama3") is None
    assert check_key("mistral/small").is_good is False
    monkeypatch.setenv("PERPLEXITY_API_KEY", "k")
    assert check_key("perplexity/sonar").is_good is None


def test_files_are_read_by_what_they_are(client: TestClient, desk: Desk):
    word, data = docx.Document(), io.BytesIO()
    word.add_paragraph("She counted nine, and one, and then she put out her hand and held ")
    word.paragraphs[0].add_run("it").italic = True
    word.save(data)
    draft(client, desk, text="", files={"file": ("My Draft.docx", data.getvalue())})
    when_over(client)
    assert "<em>it</em>" in client.get("/piece/0001/1").text
    (piece,) = desk.drafts.pieces()
    assert (piece.title, piece.last.text[:11]) == ("My Draft", "She counted")
    wrong = draft(client, desk, text="", files={"file": ("../../x.exe", b"MZ\x00")})
    assert wrong.status_code == 400
    assert ">x.exe: unknown extension" in wrong.text
    broken = ("The Lamp.docx", b"PK of a kind")
    for path, files in (("/drafts", {"file": broken}), ("/references", [("files", broken)])):
        assert ">The Lamp.docx: " in send(client, path, files).text
    both = [("files", ("a.txt", b"A lamp.")), ("files", broken)]
    path = send(client, "/classes", both).url.path
    waiting(lambda: ">The Lamp.docx: " in client.get(path).text)
    assert "No text" in draft(client, desk, text=" \n").text
    assert len(desk.drafts.pieces()) == 1


def commented(client: TestClient, path: str) -> Any:
    """The Word file with comments of a version, and what each comment says."""
    saved = client.get(f"{path}/comments.docx")
    assert saved.headers["content-disposition"].startswith("attachment")
    word = docx.Document(io.BytesIO(saved.content))
    return word, [comment.text for comment in word.comments]


def test_a_draft_is_saved_as_a_word_file_with_its_findings(client: TestClient, desk: Desk):
    """A Word draft as a copy of its file; what was edited or typed with headings and italics."""
    word, held = docx.Document(), io.BytesIO()
    word.add_heading("The First Lamp", 2)
    word.add_paragraph("She did not ").add_run("recieve").bold = True
    word.add_paragraph("It was ").add_run("very late").italic = True
    word.add_paragraph("Nobody in the harbour woke.")
    word.save(held)
    file = {"file": ("lamp.docx", held.getvalue())}
    # A page that asks before it is sent holds the file; nothing listens there.
    asked = draft(client, desk, text="", files=file, model="http://192.0.2.1/v1#m", verdicts="on")
    held_by_page = dict(re.findall(r'name="(file_name|file_data)" value="([^"]*)"', asked.text))
    assert desk.drafts.pieces() == []
    draft(client, desk, text="", title="lamp", **held_by_page)
    when_over(client)
    assert "/piece/0001/1/comments.docx" in client.get("/piece/0001/1").text
    copy, notes = commented(client, "/piece/0001/1")
    assert [run.bold for run in copy.paragraphs[1].runs if run.text] == [None, True]
    assert [("Spelling" in note, "recieve" in note) for note in notes] == [(True, True)]
    text = desk.drafts.pieces()[0].last.text
    draft(client, desk, "/piece/0001/versions", text="One more line.\n\n" + text)
    when_over(client, "/piece/0001/2")
    edited, again = commented(client, "/piece/0001/2")
    assert again == notes
    assert [p.style.name for p in edited.paragraphs[:3]] == ["Normal", "Heading 2", "Normal"]
    assert [run.text for p in edited.paragraphs for run in p.runs if run.italic] == ["very late"]
    draft(client, desk, text="# One\n\nThey recieve it.")
    when_over(client, "/piece/0002/1")
    typed, notes = commented(client, "/piece/0002/1")
    assert [(p.style.name, p.text) for p in typed.paragraphs] == [
        ("Heading 1", "One"), ("Normal", "They recieve it.")
    ]  # fmt: skip
    assert len(notes) == 1


def test_what_is_asked_is_said_before_anything_leaves(client: TestClient, desk: Desk):
    asked = {"model": "openai/gpt-4o", "verdicts": "on", "reference": "infinigram:v4"}
    page = draft(client, desk, **asked).text
    assert "This leaves your machine" in page
    assert "the whole draft is sent to openai" in page.lower()
    assert "runs of words from the draft are sent to api.infini-gram.io" in page.lower()
    assert desk.drafts.pieces() == []


@pytest.mark.parametrize(
    ("model", "reference", "n_told"),
    [
        ("", "/books.ref", 0), ("local", "", 0), ("/m/Some.GGUF", "", 0), ("ollama/llama3", "", 0),
        ("http://127.0.0.1:8000/v1#m", "infinigram:x@http://localhost:1/", 0),
        ("http://10.0.0.7/v1#m", "", 1), ("anthropic/claude", "infinigram:x", 2),
        ("", "http://127.0.0.1:8100", 0), ("", "https://corpora.example:8100", 1),
    ],
)  # fmt: skip
def test_it_knows_what_leaves_this_machine(model: str, reference: str, n_told: int):
    assert len(where_to(Asked(model=model, reference=reference))) == n_told


def test_it_knows_where_the_user_sends_a_provider_s_calls(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FABULA_INFINIGRAM_URL", "https://index.example/")
    assert "index.example" in where_to(Asked(reference="infinigram:v4"))[0]
    monkeypatch.setenv("OLLAMA_BASE_URL", "https://gpu.example/v1")
    assert "gpu.example" in where_to(Asked(model="ollama/llama3"))[0]
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:9/v1")
    assert where_to(Asked(model="openai/gpt-4o")) == []


def answer(body: dict[str, Any], _: int) -> str:
    if "Put each" in prompt_of(body):
        return '- "counted nine, and one": The count leads nowhere. Let it cost her something.'
    return "It is so.\nVerdict: Yes"


def test_a_model_is_asked_only_after_the_writer_agreed(client: TestClient, desk: Desk):
    with serving(answer) as served:
        model = {"model": f"{served.url}/v1#editor", "feedback": "on", "readings": "2"}
        draft(client, desk, **model)
        assert "will be asked" in when_over(client)["question"]
        assert "How it reads" in client.get("/piece/0001/1").text, "the rest is there already"
        assert served.requests == []
        send(client, "/piece/0001/1/answer", agreed="no")
        assert "was not asked, at your request" in when_over(client)["error"]
        assert served.requests == []
        draft(client, desk, "/piece/0001/versions", **model)
        when_over(client, "/piece/0001/2")
        send(client, "/piece/0001/2/answer", agreed="yes")
        assert when_over(client, "/piece/0001/2")["error"] == ""
        assert served.requests != []
    page = client.get("/piece/0001/2").text
    assert "Let it cost her something." in page
    assert "made in 2 of 2 readings" in page


def test_a_draft_that_is_removed_stops_and_holds_nobody_up(client: TestClient, desk: Desk):
    with serving(answer) as served:
        draft(client, desk, model=f"{served.url}/v1#editor", feedback="on")
        when_over(client)
        send(client, "/piece/0001/remove")
        draft(client, desk, text="Another. " * 20)
        assert desk.drafts.pieces()[0].id == "0002", "a number is never given twice"
        assert when_over(client, "/piece/0002/1")["error"] == ""
        assert served.requests == []
    assert "Another." in client.get("/piece/0002/1").text


def test_a_writer_stops_a_report_and_goes_on_with_it(tmp_path: Path, spares: list[Child]):
    with serving(answer) as served:
        with Desk(tmp_path, spares=spares) as desk:
            client, model = opened(desk), f"{served.url}/v1#m"
            desk.begin(desk.drafts.add("t", STORY, asdict(Asked(model=model))))
            assert when_over(client)["question"]
            assert ">Stop</button>" in client.get("/piece/0001/1").text
            send(client, "/piece/0001/1/stop")
            page = client.get("/piece/0001/1").text
            assert "stopped; press Try again to go on" in page
            assert "How it reads" in page, "what was ready stays"
        with Desk(tmp_path, spares=spares) as desk:
            client = opened(desk)
            assert when_over(client)["error"].startswith("stopped")
            send(client, "/piece/0001/1/again")
            assert when_over(client)["question"]
        assert served.requests == []


def test_what_was_answered_is_not_paid_for_again_by_the_next_try(client: TestClient, desk: Desk):
    def breaks(body: dict[str, Any], n: int) -> Any:
        if n == 3:
            return 401, {"error": {"message": "no more", "type": "auth", "code": 401}}
        return answer(body, n)

    def agree() -> str:
        when_over(client)
        send(client, "/piece/0001/1/answer", agreed="yes")
        return str(when_over(client)["error"])

    with serving(breaks) as served:
        draft(client, desk, model=f"{served.url}/v1#m", verdicts="on")
        assert agree()
        assert "Try again" in client.get("/piece/0001/1").text
        send(client, "/piece/0001/1/again")
        assert agree() == ""
        # The one that failed was asked again, and none of the others.
        assert len(served.requests) == 14 + 1


def test_what_is_typed_is_kept_shown_again_and_put_among_versions(client: TestClient, desk: Desk):
    version = desk.drafts.add("t", STORY, asdict(Asked()))
    typed = STORY + " And\r\nthen."
    assert "20" in send(client, "/piece/0001/1/writing", text=typed).json()["saved"]
    for path, shown in (
        ("/", "write on</a>: kept"), ("/piece/0001/1", "is not measured yet"),
        ("/piece/0001/1/edit", "And\nthen."), ("/piece/0001/versions", "version 1, measured"),
    ):  # fmt: skip
        assert shown in client.get(path).text, path
    send(client, "/piece/0001/1/start")
    assert "And\nthen." not in client.get("/piece/0001/1/edit").text
    assert "And" in client.get("/piece/0001/states/2").text
    assert client.get("/piece/0001/states/2/draft.txt").text == STORY + " And\nthen."
    assert client.get("/piece/0001/1/draft.txt").text == version.text
    send(client, "/piece/0001/states/2/restore")
    assert "And\nthen." in client.get("/piece/0001/1/edit").text
    for path in ("/piece/0001/states/0", "/piece/0001/states/9", "/piece/0009/versions"):
        assert client.get(path).status_code == 404, path


def test_a_process_record_is_exported_and_shows_what_was_altered(client: TestClient, desk: Desk):
    desk.drafts.add("The/Lamp", STORY, asdict(Asked()))
    send(client, "/piece/0001/1/writing", text=STORY + " More.")
    send(client, "/piece/0001/1/start")
    page = client.get("/piece/0001/record").text
    assert "The chain is intact" in page
    assert "It does not prove who wrote the text." in page
    first, again = (send(client, "/piece/0001/record", texts="on") for _ in range(2))
    assert first.content == again.content
    with zipfile.ZipFile(io.BytesIO(first.content)) as archive:
        rows = json.loads(archive.read("record.json"))["states"]
        texts = [archive.read(f"texts/{row['text']}.txt").decode() for row in rows]
        assert "does not prove" in archive.read("about.txt").decode()
    assert texts == [STORY, STORY + " More."]
    path = desk.drafts.folder / "0001" / "states.jsonl"
    path.write_text(path.read_text().replace('"n_words":', '"n_words":1', 1))
    assert "broken at state 1" in client.get("/piece/0001/record").text


def test_what_is_written_before_it_is_a_draft_comes_along_later(client: TestClient, desk: Desk):
    for text in ("The lamp. " * 60, "Short."):
        send(client, "/writing", text=text)
    assert "Short.</textarea>" in client.get("/").text
    draft(client, desk, text="Short.")
    assert desk.drafts.new.writing() is None
    journal = desk.drafts.journal("0001")
    assert [one.version for one in journal.states()] == [None, None, 1]
    send(client, "/writing", text="Another.")
    draft(client, desk, files={"file": ("a.txt", b"A file.")})
    written = desk.drafts.new.writing()
    assert written is not None, "a file that is dropped leaves what was typed where it is"
    assert [one.version for one in desk.drafts.journal("0002").states()] == [1]


def test_broken_files_of_the_desk_hide_no_draft(tmp_path: Path, spares: list[Child]):
    for broken in ("[broken", "null", '{"numbers": [{}]}', '{"numbers": 7}'):
        (tmp_path / "references.json").write_text(broken)
        with Desk(tmp_path, spares=spares) as desk:
            version = desk.drafts.add("t", STORY, asdict(Asked()))
            (version.folder / "found.json").write_text(broken)
            assert opened(desk).get("/").status_code == 200


def test_what_was_interrupted_is_taken_up_by_the_next_desk(tmp_path: Path, spares: list[Child]):
    with Desk(tmp_path, spares=spares) as first:
        version = first.drafts.add("t", STORY, asdict(Asked()))
    assert not version.found
    with Desk(tmp_path, spares=spares) as second:
        assert when_over(opened(second))["error"] == ""
    assert version.found["is_whole"]


def test_hostile_drafts_show_as_text(client: TestClient, desk: Desk):
    text = "<script>alert(1)</script> <!--bar--> \x00\x07 \u202e </textarea><img src=x onerror=a()>"
    draft(client, desk, text=text, title="</title><script>")
    when_over(client)
    send(client, "/piece/0001/1/writing", text=text + "<script>")
    for path in ("/", "/piece/0001/1", "/piece/0001/1/edit", "/piece/0001/1/report.html",
                 "/piece/0001/versions", "/piece/0001/states/1",
                 "/beside?left=0001-1&right=0001-1", "/piece/0001/1/remove"):  # fmt: skip
        page = client.get(path)
        assert page.status_code == 200, path
        assert "<script>" not in page.text
        assert "<img" not in page.text
    for path in ("/piece/../1", "/piece/0001/99", "/piece/x/1", "/beside?left=1-1&right=a-b",
                 "/static/../work.py", "/piece/0001/999999999999999999999"):  # fmt: skip
        assert client.get(path).status_code in (404, 422), path


def test_changed_words_put_together_are_both_versions():
    before, after = "One two three.\n\nFour five.\n", "One  three!\n\nFour five.\nSix"
    old, new = changed_words(before, after)
    assert "".join(one.text for one in old) == before
    assert "".join(one.text for one in new) == after
    assert {one.kind for one in old} == {"same", "gone"}
    assert {one.kind for one in new} == {"same", "new"}


@pytest.mark.parametrize(
    "path", ["books\0.ref", "infinigram:a\0b", "http://h/\0", "infinigram-index:\0", "\0"]
)
def test_a_reference_with_a_control_character_is_refused(client: TestClient, desk: Desk, path: str):
    added = send(client, "/references", path=path)
    assert added.status_code == 400
    assert "control characters" in added.text
    # As a form that was tampered with sends it beside a draft.
    page = draft(client, desk, reference=path, agreed="yes")
    assert page.status_code == 200
    assert "control characters" in when_over(client, page.url.path)["error"]


@pytest.mark.parametrize("reference", ["http://[", "http://[::1", "infinigram:x@http://["])
def test_an_address_that_cannot_be_read_is_told(client: TestClient, desk: Desk, reference: str):
    page = draft(client, desk, reference=reference)
    assert page.status_code == 200
    assert "are sent to" in page.text


def test_references_are_removed_and_those_made_here_are_deleted(client: TestClient, desk: Desk):
    given = desk.references[0]
    files = [("files", ("one.txt", b"The lamp went round and round.")),
             ("files", ("two.txt", b"Nobody in the harbour woke."))]  # fmt: skip
    send(client, "/references", files, name="My old <work>")
    made = desk.references[0]
    assert made.endswith("my-old-work.ref")
    with closing(Reference.open(made)) as reference:
        assert reference.size.endswith("in 2 documents")
    wrong = send(client, "/references", path="/nowhere.ref")
    assert wrong.status_code == 400
    assert "/nowhere.ref" in wrong.text
    for path, remark in ((made, "its files are deleted"), (given, "files are kept")):
        question = client.get("/references/remove", params={"path": path})
        assert remark in question.text
        send(client, "/references/remove", path=path)
        assert path not in client.get("/").text
    assert (Path(made).exists(), Path(given).exists()) == (False, True)
    assert client.get("/references/remove", params={"path": given}).status_code == 404
    with Desk(desk.folder) as again:
        assert again.references == []


OPENINGS = {
    "# The Lamp\n\nIt went round and round.": "The Lamp",
    "The lamp went round. She counted nine.": "The lamp went round. She counted nine",
    "She counted nine lamps along the wall, and one more by the door, and stopped there.":
        "She counted nine lamps along the wall…",
    "“Stay.” She did not turn round, for nobody had spoken to her in all that year.": "“Stay.”",
    "It was the kind of evening on which even the harbour seemed to listen for somebody.":
        "It was the kind of evening on which even the harbour seemed…",
    "Wort" * 30: "Wort" * 15 + "…",
    "\n \n—\n": "—",
}  # fmt: skip


def test_a_draft_without_a_title_is_named_by_whole_phrases(client: TestClient, desk: Desk):
    for text, title in OPENINGS.items():
        draft(client, desk, text=text)
        assert desk.drafts.pieces()[0].title == title


def test_every_page_of_the_desk_needs_the_key_and_every_form_a_page_of_it(
    client: TestClient, desk: Desk
):
    app = create_app(desk, key=KEY)
    stranger = TestClient(app, base_url="http://127.0.0.1", cookies={"fabula_desk": "guess"})
    paths = {re.sub(r"{\w+}", "1", path): kinds for path, kinds in app.openapi()["paths"].items()}
    open_to_all = {"/open", "/static/1", "/favicon.ico"}
    assert len(paths) > 20
    assert stranger.get("/open?given=guess").status_code == 403
    elsewhere = TestClient(app, base_url="http://evil.example", cookies={"fabula_desk": KEY})
    assert elsewhere.get("/").status_code == 400
    for path in paths.keys() - open_to_all:
        for kind in paths[path]:
            assert stranger.request(kind, path).status_code == 403, path
        if "post" in paths[path]:
            for data in ({}, {"csrf": "guess"}, {"csrf": KEY}):
                assert client.post(path, data=data | {"text": STORY}).status_code == 403, path
    assert desk.drafts.pieces() == []


def test_what_a_form_does_not_ask_for_sets_nothing(client: TestClient, desk: Desk):
    more = {"is_whole": "true", "made": "1999", "keep": "/tmp", "n_jobs": "99", "id": "7",
            "number": "9", "piece": "../x", "models": "openai/gpt-4o"}  # fmt: skip
    assert draft(client, desk, **more).url.path == "/piece/0001/1"
    (version,) = desk.drafts.pieces()[0].versions
    assert version.asked.keys() == {*asdict(Asked()), "made"}
    assert (version.asked["model"], version.asked["made"] > "2000") == ("", True)
    when_over(client)


HOSTILE_NAMES = [
    "../../../evil.txt", "..", "a/..", "..\\..\\evil.txt", "/nowhere/evil.txt", ".evil", "x\0.txt",
    "a\r\nb: c.txt", f"{chr(0x1F600) * 200}.txt",
]  # fmt: skip


def test_a_file_is_kept_in_its_folder_whatever_its_name(
    client: TestClient, desk: Desk, tmp_path: Path
):
    other = ("files", ("other.txt", b"Nobody in the harbour woke."))
    for number, name in enumerate(HOSTILE_NAMES, 1):
        send(client, "/drafts", {"file": (name, STORY.encode())})
        send(client, "/references", [("files", (name, b"A lamp."))], name=name)
        group = send(client, "/classes", [("files", (name, b"A lamp.")), other])
        assert group.status_code == 200, name
        texts = desk.folder / "classes" / f"{number:04}" / "texts"
        assert len(list(texts.iterdir())) == 2, name
    assert {path.name for path in tmp_path.iterdir()} == {"desk"}
    kept = "pieces new references references.json classes desk.json"
    assert {path.name for path in desk.folder.iterdir()} <= set(kept.split())


def test_an_id_leads_to_no_folder_but_its_own(client: TestClient, desk: Desk):
    desk.drafts.add("Mine", STORY, asdict(Asked()))
    for folder in (desk.folder, desk.folder / "pieces" / "other"):
        shutil.copytree(desk.folder / "pieces" / "0001", folder, dirs_exist_ok=True)
    assert client.get("/piece/0001/1/draft.txt").text == STORY
    for id_ in ("%2e%2e", "%2e%2e%2fpieces%2f0001", "other", "0001%2f."):
        for path in (f"/piece/{id_}/1", f"/piece/{id_}/1/draft.txt", f"/classes/{id_}"):
            assert client.get(path).status_code == 404, path


def test_a_title_puts_no_header_into_a_download(client: TestClient, desk: Desk):
    title = 'x"; filename="y.exe"\r\nSet-Cookie: a=b\r\n\r\n<script>'
    draft(client, desk, title=title)
    when_over(client)
    for found in (client.get("/piece/0001/1/draft.txt"), client.get("/piece/0001/1/report.html"),
                  send(client, "/piece/0001/record")):  # fmt: skip
        assert found.status_code == 200
        assert "set-cookie" not in found.headers
        disposition = found.headers["content-disposition"]
        assert disposition.startswith("attachment; filename")
        assert not set("<>\r\n;") & set(disposition.partition("; ")[2])


def test_what_a_desk_keeps_is_its_owner_s_alone(client: TestClient, desk: Desk):
    send(client, "/writing", text=STORY)
    files = [("files", (f"{k}.txt", b"The lamp went round.")) for k in range(2)]
    send(client, "/references", files)
    send(client, "/classes", files)
    modes = {path.name: path.stat().st_mode & 0o777 for path in desk.folder.iterdir()}
    # Of the version of the form everybody may know.
    assert modes.pop("desk.json")
    assert modes.pop("references.json") == 0o600
    assert modes == dict.fromkeys(("pieces", "new", "references", "classes"), 0o700)


def test_the_key_of_a_desk_is_its_owner_s_alone_and_cannot_be_guessed(tmp_path: Path):
    with open_to_all():
        key = _key(tmp_path / "desk")
        door = _door(tmp_path / "desk", f"http://127.0.0.1:1/open?given={key}")
    assert [path.stat().st_mode & 0o777 for path in (door, door.with_name("key"))] == [0o600] * 2
    assert len(key) >= 32
    assert (key, _key(tmp_path / "desk")) == (_key(tmp_path / "desk"), key)
    assert key != _key(tmp_path / "another")


FERRY = "The ferry was late again and the porter counted the lamps on the far bank. "
CLASS = {
    "anna.txt": FERRY + "Anna wrote this rather crooked sentence herself.",
    "ben.txt": FERRY + "Ben wrote about trains, timetables and porridge.",
    "cleo.txt": "She has nothing in common with anybody here, and likes it so.",
}


def test_several_files_are_compared_with_each_other(client: TestClient, desk: Desk):
    files = [("files", (name, text.encode(), "text/plain")) for name, text in CLASS.items()]
    path = send(client, "/classes", files).url.path
    waiting(lambda: "What each shares with the others" in client.get(path).text)
    page = client.get(path).text
    assert "anna.txt and ben.txt: 15 words in common runs" in page
    assert "direction unknown" in page
    saved = client.get(f"{path}/report.html")
    assert saved.headers["content-disposition"].startswith("attachment")
    assert "/classes" not in saved.text, "what is saved leads nowhere on the desk"
    assert "3 texts: anna, ben, cleo" in client.get("/classes").text
    send(client, f"{path}/remove")
    assert client.get(path).status_code == 404
    assert not list((desk.folder / "classes").iterdir())


def test_a_class_in_any_format_is_compared_without_its_assignment(client: TestClient, desk: Desk):
    word, held = docx.Document(), io.BytesIO()
    word.add_paragraph(CLASS["anna.txt"])
    word.save(held)
    files = [("files", ("anna.docx", held.getvalue())),
             ("files", ("ben.rtf", b"{\\rtf1 " + CLASS["ben.txt"].encode() + b"}"))]  # fmt: skip
    path = send(client, "/classes", files, assignment=FERRY).url.path
    waiting(lambda: "What each shares with the others" in client.get(path).text)
    page = client.get(path).text
    assert "no two texts share a run of 6 words" in page
    assert "words of the assignment are left out of 2 texts" in page
    answer = send(client, "/classes", files, assignment="A ferry.")
    assert (answer.status_code, "fewer than 5 words" in answer.text) == (400, True)


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
