"""People whom a platform sends, who agree, read, vanish, return their places, come back too late.

Every event goes through the study's pages or, for statuses, through a server that answers as
Prolific does, with refusals and faults. After each, no unit may be held by more than it wants; who
is told that nothing is left must be right; and in the end every place must have been filled.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import tomli_w
from sqlalchemy import ColumnElement, select, update
from starlette.testclient import TestClient
from tests.http_serving import Handler, on_loopback
from tests.judging.judged_stories import rubric_text
from tests.studies.running import Running, make

from fabula.studies.database import assignments, participants
from fabula.studies.participant_pages import cookie_of
from fabula.studies.participants import remove
from fabula.studies.platforms import PlatformFailed, Prolific, Statuses
from fabula.web.guard import csrf_of

STUDY = f"{7:024x}"
_HOLDERS = select(participants.c.platform_id).join(
    assignments, assignments.c.participant_id == participants.c.id
)
_WEIGHTS = {
    "come": 24, "come_again": 8, "agree": 22, "decline": 2, "answer": 16, "hand_in": 16,
    "return_it": 4, "time_out": 3, "come_late": 6, "fetch": 6, "pass_time": 8, "pass_day": 3,
    "remove": 5, "withdraw": 3, "appear_again": 1,
}  # fmt: skip


TOKEN = "a token of ours"


@dataclass
class MockProlific:
    """What the platform knows, by submission, and how it misbehaves.

    Its answers are as docs.prolific.com/api-reference/submissions/get-submissions has them.
    """

    base: str = ""
    study: str = ""
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    keys: list[dict[str, Any]] = field(default_factory=list)
    fault_rate: float = 0.0
    faults: list[int] = field(default_factory=list)
    """Statuses to answer next, before any that are drawn; 0 is none."""
    answered: Counter[int] = field(default_factory=Counter)
    rng: random.Random = field(default_factory=lambda: random.Random(0))

    def add(self, session: str, worker: str, status: str = "ACTIVE") -> None:
        self.rows[session] = {
            "id": session, "participant_id": worker, "status": status, "study_code": None,
            "started_at": "2026-11-23T03:00:00Z", "is_complete": False,
        }  # fmt: skip

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, Any], dict[str, str]]:
        code = 0
        if self.faults:
            code = self.faults.pop(0)
        elif self.rng.random() < self.fault_rate:
            code = self.rng.choice((429, 500, 503))
        if code:
            return code, {"error": {"status": code}}, {"retry-after": "1"} if code == 429 else {}
        parts = urlsplit(path)
        if parts.path == "/.well-known/study/jwks.json":
            return 200, {"keys": self.keys}, {}
        if authorization != f"Token {TOKEN}":
            return 401, {"error": {"status": 401}}, {}
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path != "/api/v1/submissions/" or query.get("study") != self.study:
            return 404, {"error": {"status": 404}}, {}
        page, size = int(query["page"]), min(20, int(query["page_size"]))
        rows = list(self.rows.values())
        more = f"{self.base}/api/v1/submissions/?page={page + 1}"
        link = more if page * size < len(rows) else None
        return 200, {
            "results": rows[(page - 1) * size : page * size],
            "_links": {"next": {"href": link, "title": "Next"}},
            "meta": {"count": len(rows)},
        }, {}  # fmt: skip


@contextmanager
def mock_prolific(study: str) -> Iterator[MockProlific]:
    mock = MockProlific(study=study)

    class Answering(Handler):
        def do_GET(self) -> None:  # noqa: N802
            code, content, headers = mock.answer(self.path, self.headers.get("authorization", ""))
            mock.answered[code] += 1
            self.reply(code, json.dumps(content).encode(), headers)

    with on_loopback(Answering) as mock.base:
        yield mock


@dataclass(slots=True)
class Outcome:
    """What happened, and what went wrong: empty lists where nothing did."""

    events: Counter[str] = field(default_factory=Counter)
    n_people: int = 0
    n_told_full: int = 0
    n_failed_fetches: int = 0
    answered: Counter[int] = field(default_factory=Counter)
    n_places: int = 0
    n_filled: int = 0
    over_filled: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Person:
    number: int
    cookie: str = ""
    is_told_full: bool = False

    @property
    def worker(self) -> str:
        return f"{self.number:024x}"

    @property
    def session(self) -> str:
        return f"{0xABC000000 + self.number:024x}"


class Simulation:
    def __init__(self, study: Running, client: TestClient, mock: MockProlific, seed: int) -> None:
        self.design, self.store, self.client, self.mock = study.design, study.store, client, mock
        self.rng = random.Random(seed)
        self.people: list[Person] = []
        prolific = Prolific(TOKEN, mock.base, wait=lambda _: None)
        self.statuses = Statuses(prolific, [STUDY])
        self.out = Outcome()

    # What people do.

    def come(self) -> Person:
        one = Person(len(self.people) + 1)
        self.people.append(one)
        self.mock.add(one.session, one.worker)
        path = f"/join?PROLIFIC_PID={one.worker}&STUDY_ID={STUDY}&SESSION_ID={one.session}"
        found = self.client.get(path)
        one.cookie = found.headers.get("set-cookie", "").partition("=")[2].partition(";")[0]
        self._expect(found.status_code == 303 and one.cookie, f"join: {found.status_code}")
        self._look(one)
        return one

    def _look(self, one: Person) -> None:
        one.is_told_full = "Nothing is left to read" in self._ask("GET", "/", one)
        if one.is_told_full:
            self.out.n_told_full += 1
            self._check_full(one)

    def come_again(self) -> None:
        if one := self._somebody():
            self._look(one)

    def agree(self) -> None:
        # Who has just come, mostly.
        one = self.people[-1] if self.people and self.rng.random() < 0.8 else self._somebody()
        if one:
            self._ask("POST", "/consent", one, agree="yes")
            self._look(one)

    def decline(self) -> None:
        if one := self._somebody():
            self._ask("POST", "/consent", one, agree="no")

    def answer(self) -> None:
        if one := self._reader():
            self._ask("POST", "/save", one, page="story-1", **{"1:ending": "Yes"})

    def hand_in(self) -> None:
        if one := self._reader():
            self._hand_in(one)

    def _hand_in(self, one: Person) -> None:
        self._ask("GET", "/page/story-1", one)
        answers = {"1:ending": "Yes", "1:origin": "An AI", "1:familiar": "No"}
        self._ask("POST", "/page/group", one, go="finish", **answers)

    def come_late(self) -> None:
        """Somebody whose place was given back sends their page all the same."""
        if one := self._reader("returned"):
            self._hand_in(one)

    def return_it(self) -> None:
        self._change("RETURNED")

    def time_out(self) -> None:
        self._change("TIMED-OUT")

    def appear_again(self) -> None:
        """A submission that had timed out is handed in at the platform after all."""
        timed_out = [row for row in self.mock.rows.values() if row["status"] == "TIMED-OUT"]
        if timed_out:
            self.rng.choice(timed_out)["status"] = "AWAITING REVIEW"

    def _change(self, status: str) -> None:
        """Of somebody who reads, mostly."""
        one = self._reader() if self.rng.random() < 0.8 else self._somebody()
        if one and self.mock.rows[one.session]["status"] == "ACTIVE":
            self.mock.rows[one.session]["status"] = status

    def withdraw(self) -> None:
        if one := self._somebody():
            self._ask("POST", "/withdraw", one, do=self.rng.choice(("keep", "delete")))

    # What happens to them.

    def fetch(self) -> None:
        try:
            self.statuses.fetch(self.store)
        except PlatformFailed:
            self.out.n_failed_fetches += 1
            return
        self._check_gone()

    def pass_time(self) -> None:
        self._let_pass(self.design.people.minutes / 60 + 0.1)
        # Whoever comes next has the place.
        self.come_again()

    def pass_day(self) -> None:
        self._let_pass(self.design.hours + 0.1)

    def _let_pass(self, hours: float) -> None:
        """For one who reads: the clock of everybody else stands still."""
        with self.store.writing() as connection:
            open_ = select(assignments.c.id).where(assignments.c.state == "open")
            ids = list(connection.execute(open_).scalars())
            if ids:
                before = assignments.c.seen_ms - int(hours * 3_600_000)
                one = assignments.c.id == self.rng.choice(ids)
                connection.execute(update(assignments).where(one).values(seen_ms=before))

    def remove(self) -> None:
        if one := self._somebody():
            its = select(participants.c.id).where(participants.c.platform_id == one.worker)
            with self.store.writing() as connection:
                for id_ in connection.execute(its).scalars().all():
                    remove(connection, id_, "simulation")

    # Whom it happens to, and what they send.

    def _somebody(self) -> Person | None:
        return self.rng.choice(self.people[-60:]) if self.people else None

    def _reader(self, state: str = "open") -> Person | None:
        found = self._holders(assignments.c.state == state)
        return self.rng.choice(found[-60:]) if found else None

    def _holders(self, *which: ColumnElement[bool]) -> list[Person]:
        """People with a unit, in the order in which units were given."""
        known = _HOLDERS.where(participants.c.platform_id.is_not(None), *which)
        with self.store.reading() as connection:
            workers = connection.execute(known.order_by(assignments.c.id)).scalars().all()
        return [self.people[int(worker, 16) - 1] for worker in workers]

    def _ask(self, method: str, path: str, one: Person, **fields: str) -> str:
        form = {"csrf": csrf_of(one.cookie), "unit": "1", "revision": "0", **fields}
        headers = {"cookie": f"{cookie_of(self.design.id)}={one.cookie}"}
        sent = form if method == "POST" else None
        found = self.client.request(method, path, data=sent, headers=headers)
        # Who deleted everything is not known any more.
        self._expect(found.status_code in (200, 303, 403), f"{method} {path}: {found.status_code}")
        return found.text

    def _expect(self, holds: object, what: str) -> None:
        if not holds:
            self.out.errors.append(what)

    # What must hold.

    def _held(self, *states: str) -> Counter[str]:
        """Places held or handed in by unit, counted here and not by what is tested."""
        kept = assignments.c.state.in_(states), participants.c.state != "removed"
        with self.store.reading() as connection:
            found = connection.execute(_HOLDERS.with_only_columns(assignments.c.unit).where(*kept))
            return Counter(found.scalars())

    def check(self, event: str) -> None:
        for unit, n in self._held("open", "done").items():
            if n > self.design.raters:
                self.out.over_filled.append(f"{unit} has {n} after {event}")

    def _check_full(self, one: Person) -> None:
        """Whoever has had nothing yet is told so only where nothing is left."""
        mine = self._holders(participants.c.platform_id == one.worker)
        if not mine and self._held("open", "done").total() < self.out.n_places:
            self.out.lost.append(f"{one.number} was told that nothing is left")

    def _check_gone(self) -> None:
        """Nobody holds what the platform has just said to be given back."""
        kept = [one for one in self._holders(assignments.c.state == "open")
                if self.mock.rows[one.session]["status"] in ("RETURNED", "TIMED-OUT")]  # fmt: skip
        if kept:
            self.out.lost.append(f"{len(kept)} places are held by people who left")

    def fill(self) -> None:
        """People come until nothing is left."""
        self.mock.fault_rate = 0.0
        self.fetch()
        with self.store.writing() as connection:
            late = update(assignments).where(assignments.c.state == "open")
            connection.execute(late.values(seen_ms=0))
        for _ in range(self.out.n_places + 1):
            one = self.come()
            if one.is_told_full:
                break
            self._ask("POST", "/consent", one, agree="yes")
            self._hand_in(one)
            self.check("filling")
        self.out.n_filled = self._held("done").total()


def make_study(folder: Path, n_units: int, api: str) -> Running:
    """A study with a question about each of so many texts, by two people each."""
    rows = [
        {"id": str(k), "text": f"Tale {k} ends well.", "group": str(k), "author": "a"}
        for k in range(n_units)
    ]
    (folder / "one.toml").write_text(rubric_text("one", {"ending": "Is the ending earned?"}))
    entry = {"platform": "prolific", "studies": [STUDY], "api": api, "joins_per_address": 0}
    lines: dict[str, Any] = {"rubric": "one.toml", "reason_words": 0, "raters": 2}
    more = "\n" + tomli_w.dumps({"entry": entry})
    return make(folder, "ttcw", rows, more=more, **lines)


def simulate(folder: Path, n_events: int, seed: int = 0) -> Outcome:
    """So many events in a new study in this folder, then everybody who is still needed."""
    n_units = max(4, n_events // 60)
    with mock_prolific(STUDY) as mock:
        study = make_study(folder, n_units, mock.base)
        # A list of many pages would never be had whole.
        mock.fault_rate = 0.6 if n_events < 1000 else 0.3
        with closing(study.store), TestClient(study.app, follow_redirects=False) as client:
            run = Simulation(study, client, mock, seed)
            run.out.n_places = study.design.raters * n_units
            for event in run.rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()), k=n_events):
                getattr(run, event)()
                run.out.events[event] += 1
                run.check(event)
            run.fill()
            run.out.n_people, run.out.answered = len(run.people), mock.answered
    return run.out
