"""Nothing that is sent before the last answer tells what a participant may not know."""

import itertools
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient
from tests.studies.running import Make, Running, send

import fabula

OWN = str(Path(fabula.__file__).parent)
Row = dict[str, Any]
NOTED = {"unit:own_feedback": "Say who."}
STORY = "The old man swept the steps. He sat down and waited. Then he swept them again."
ADVICE = {
    "sanity": "Only feedback", "feedback_type": "Suggestions", "correctness": "Some of it",
    "error_detection": "Yes", "specificity": "No",
}  # fmt: skip


_DRAWN = {
    rb'name="csrf" value="\w+"': b"CSRF",
    rb'name="revision" value="\d+"|"revision":\d+': b"REVISION",
    rb"fabula_study\w*=[\w-]+": b"COOKIE",
    # As long as a revision has digits.
    rb"'content-length', '\d+'": b"LENGTH",
}
"""What is drawn anew for each participant."""


@dataclass
class Session:
    """A participant, and every byte that they were sent, headers included."""

    study: Running
    client: TestClient
    sent: list[bytes] = field(default_factory=list)

    def take(self, reply: httpx.Response) -> httpx.Response:
        for one in [*reply.history, reply]:
            head = f"{one.status_code} {sorted(one.headers.items())}\n".encode()
            self.sent.append(head + one.content)
        return reply

    def get(self, path: str) -> httpx.Response:
        return self.take(self.client.get(path))

    def post(self, path: str, page: httpx.Response, /, **form: str) -> httpx.Response:
        """Send the form of a page, with these fields."""
        return self.take(send(self.client, path, page, **form))

    def all(self) -> bytes:
        return b"".join(self.sent)

    def normal(self) -> bytes:
        """What was sent, without what is drawn anew for each participant."""
        found = b"\0".join(self.sent)
        for pattern, name in _DRAWN.items():
            found = re.sub(pattern, name, found)
        return found


@pytest.fixture
def session(opened: Make) -> Callable[..., Session]:
    """Makes a session of a participant in a study of its own, as far as the first page."""
    numbers = itertools.count()

    def begin(kind: Any, rows: list[Row]) -> Session:
        study = opened(kind, rows, name=f"ZQX{next(numbers)}", id="zqxid", per_participant=1)
        found = Session(study, TestClient(study.app))
        page = found.post("/consent", found.get(f"/i/{study.invited()[0]}"))
        if study.design.quiz:
            found.post("/quiz", page, **study.quiz_answers())
        return found

    return begin


def stories(mark: str) -> list[Row]:
    """A group of stories; all that is hidden of them holds the mark."""
    return [
        {"id": f"{mark}ID{k}", "author": f"{mark}AUTHOR{k}", "group": "ZQXGROUP", "model": mark,
         "prompt_id": f"{mark}PROMPT", "story": f"{mark}STORY", "title": f"{mark}TITLE",
         "text": f"Tale {k}. {STORY}"}
        for k in range(2)
    ]  # fmt: skip


def advice(mark: str, method: str, **changes: Any) -> list[Row]:
    """A piece of feedback; all that is hidden of it holds the mark, but for the method's name."""
    return [{
        "id": f"{mark}ID", "story_id": f"{mark}STORY", "method": method, "prompt": f"{mark}PROMPT",
        "shots": 2, "model": f"{mark}MODEL", "feedback": "Say who he is.", "missing_reason": None,
        "story": STORY, "original": f"{STORY} {mark}ORIGINAL" * 9, "signature": f"{mark}SIGNATURE",
        "change": {"edits": [], "note": mark}, **changes,
    }]  # fmt: skip


def read_stories(session: Session) -> None:
    """Everything that a reader of stories can press, wrong and right, to the end."""
    for number in (1, 2):
        path = f"/page/story-{number}"
        page = session.get(path)
        session.post(path, page, go="finish")
        for name in re.findall(r'type="radio" name="([^"]+)" value="Yes"', page.text):
            given = {name: "Yes", f"{name}.why": "Since I find it so."}
            session.post("/save", page, **given)
    page = session.get("/page/group")
    session.post("/page/group", page, go="finish")
    options = re.findall(r'type="radio" name="([^"]+)" value="([^"]+)"', page.text)
    session.post("/page/group", page, go="", **dict(options))
    given = {name: name[0] if "preference" in name else value for name, value in options}
    end = session.post("/page/group", page, go="finish", **given)
    assert "You have finished" in end.text
    session.get("/page/story-1")
    session.get("/")


def judge_advice(session: Session, *, by_script: bool) -> None:
    """All but the last press of a reader of feedback; what comes too early is tried as well."""
    page = session.get("/")
    for early in ("feedback", "change"):
        session.get(f"/page/{early}")
    session.post("/page/story", page, go="next")
    session.post("/page/story", page, go="next", **NOTED)
    for item, answer in ADVICE.items():
        page = session.get("/page/feedback")
        given = {f"unit:{item}": answer}
        if by_script:
            session.post("/save", page, **given)
        else:
            session.post("/page/feedback", page, go="", **given)
        if item != "specificity":
            session.post("/page/feedback", page, go="next", **given)
            session.get("/page/change")
            session.get("/page/story")


def test_a_whole_session_holds_nothing_hidden(session: Any):
    judging = session("feedback", advice("ZQX", "ZQXMETHOD", original="As it was before."))
    judge_advice(judging, by_script=True)
    page = judging.post("/page/feedback", judging.get("/page/feedback"), go="next")
    assert "As it was before." in page.text
    judging.post("/page/change", page, go="next", **{"unit:relevance": "Yes"})
    assert "Thank you" in judging.get("/").text
    assert b"zqx" not in judging.all().lower()


def test_who_wrote_the_stories_changes_not_a_byte(session: Any):
    found = []
    for mark in ("ZQXHUMAN", "ZQXMACHINE7"):
        reading = session("ttcw", stories(mark))
        read_stories(reading)
        assert b"zqx" not in reading.all().lower()
        found.append(reading.normal())
    assert found[0] == found[1]


@pytest.mark.parametrize("by_script", [True, False])
def test_what_was_done_to_a_story_changes_no_byte_before_its_time(session: Any, by_script: bool):
    found = []
    for mark, method in (("ZQXA", "original"), ("ZQXLONGER", "swap"), ("ZQXB", "delete")):
        judging = session("feedback", advice(mark, method))
        judge_advice(judging, by_script=by_script)
        found.append(judging.normal())
    assert found[0] == found[1] == found[2]
    assert b"original" not in found[0].lower()


class Steps:
    """Counts the lines of Fabula and of its templates that are executed, in whatever thread."""

    def __init__(self) -> None:
        self.n = 0

    def of(self, ask: Callable[[], httpx.Response]) -> tuple[httpx.Response, int]:
        """What is answered, and the lines that it took."""
        self.n, before = 0, sys.gettrace()
        # Requests are served by threads that begin with them.
        threading.settrace(self._called)
        sys.settrace(self._called)
        try:
            reply = ask()
        finally:
            sys.settrace(before)
            threading.settrace(before)  # type: ignore[arg-type]
        return reply, self.n

    def _called(self, frame: FrameType, _event: str, _arg: object) -> Any:
        file = frame.f_code.co_filename
        return self._executed if file.startswith(OWN) or file.endswith(".j2") else None

    def _executed(self, _frame: FrameType, event: str, _arg: object) -> Any:
        self.n += event == "line"
        return self._executed


def steps_of(judging: Session) -> list[int]:
    """Those of each request of a reader of feedback, up to the last answer."""
    count, found = Steps(), []

    def counted(ask: Callable[..., httpx.Response], *about: Any, **form: str) -> httpx.Response:
        reply, n = count.of(lambda: ask(*about, **form))
        found.append(n)
        return reply

    page = counted(judging.get, "/")
    counted(judging.post, "/page/story", page, go="next", **NOTED)
    for item, answer in ADVICE.items():
        page = counted(judging.get, "/page/feedback")
        counted(judging.post, "/save", page, page="feedback", **{f"unit:{item}": answer})
    return found


def test_what_was_done_to_a_story_changes_not_how_much_work_a_request_is(session: Any):
    # Whatever is done once.
    judge_advice(session("feedback", advice("ZQXA", "original")), by_script=True)
    unchanged, changed = (
        steps_of(session("feedback", advice("ZQXA", how))) for how in ("original", "swap")
    )
    assert min(unchanged) > 1_000
    # A question that applies is a line or two more; a page that it adds would be hundreds.
    assert max(abs(a - b) for a, b in zip(unchanged, changed, strict=True)) < 10


def test_a_form_sent_by_hand_shows_no_page_and_is_not_taken_before_its_time(session: Any):
    found = []
    for method in ("original", "swap"):
        judging = session("feedback", advice("ZQX", method, original="As it was before."))
        first = judging.get("/")
        given = {f"unit:{item}": answer for item, answer in (ADVICE | {"relevance": "Yes"}).items()}
        for path in ("/page/change", "/page/feedback", "/save"):
            for name in ("change", "feedback"):
                judging.post(path, first, page=name, go="", **given)
        found.append(judging.normal())
        assert b"As it was before." not in judging.all()
        assert b"Say who he is." not in judging.all()
        assert judging.study.given() == {}
    assert found[0] == found[1]
