"""People whom a platform sends, who agree, read, vanish, return their places, come back too late.

Every event goes through the study's pages or, for statuses, through a server that answers as
Prolific does, with refusals and faults. After each, no unit may be held by more than it wants; who
is told that nothing is left must be right; and in the end every place must have been filled.
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import func, select, update
from starlette.testclient import TestClient
from tests.commands import write_rows
from tests.studies.prolific_server import TOKEN, MockProlific, mock_prolific

from fabula.studies.app import create_app
from fabula.studies.database import Store, assignments, participants
from fabula.studies.design import StudyDesign, load_study, new_study
from fabula.studies.participant_pages import cookie_of
from fabula.studies.participants import remove
from fabula.studies.platforms import PlatformFailed, Prolific, Statuses
from fabula.studies.study_engine import open_store
from fabula.studies.units import read_units
from fabula.web.guard import csrf_of

__all__ = ["Outcome", "simulate"]

STUDY = f"{7:024x}"
_RUBRIC = """
id = "one"
version = "1"
title = "One question"

[[items]]
id = "ending"
index = 1
title = "Ending"
question = "Is the ending earned?"
"""
_WEIGHTS = {
    "come": 24, "come_again": 8, "agree": 22, "decline": 2, "answer": 16, "hand_in": 16,
    "return_it": 4, "time_out": 3, "come_late": 6, "fetch": 6, "pass_time": 8, "pass_day": 3,
    "remove": 5, "withdraw": 3, "appear_again": 1,
}  # fmt: skip


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
    """A study, a platform, and everybody who came."""

    def __init__(
        self, design: StudyDesign, store: Store, client: TestClient, mock: MockProlific, seed: int
    ) -> None:
        self.design, self.store, self.client, self.mock = design, store, client, mock
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
        page = self._ask("GET", "/", one)
        one.is_told_full = "Nothing is left to read" in page
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
            with self.store.writing() as connection:
                id_ = connection.execute(
                    select(participants.c.id).where(participants.c.platform_id == one.worker)
                ).scalar()
                if id_ is not None:
                    remove(connection, id_, "simulation")

    # Whom it happens to, and what they send.

    def _somebody(self) -> Person | None:
        return self.rng.choice(self.people[-60:]) if self.people else None

    def _reader(self, state: str = "open") -> Person | None:
        with self.store.reading() as connection:
            workers = connection.execute(
                select(participants.c.platform_id)
                .join(assignments, assignments.c.participant_id == participants.c.id)
                .where(assignments.c.state == state, participants.c.platform_id.is_not(None))
                .order_by(assignments.c.id)
            ).scalars()
            numbers = [int(worker, 16) for worker in workers]
        return self.people[self.rng.choice(numbers[-60:]) - 1] if numbers else None

    def _ask(self, method: str, path: str, one: Person, **fields: str) -> str:
        form = {"csrf": csrf_of(one.cookie), "unit": "1", "revision": "0", **fields}
        headers = {"cookie": f"{cookie_of(self.design.id)}={one.cookie}"}
        found = self.client.request(
            method, path, data=form if method == "POST" else None, headers=headers
        )
        # Who deleted everything is not known any more.
        self._expect(found.status_code in (200, 303, 403), f"{method} {path}: {found.status_code}")
        return found.text

    def _expect(self, holds: object, what: str) -> None:
        if not holds:
            self.out.errors.append(what)

    # What must hold.

    def _held(self) -> dict[str, int]:
        """Places held or handed in by unit, counted here and not by what is tested."""
        with self.store.reading() as connection:
            rows = connection.execute(
                select(assignments.c.unit, func.count().label("n"))
                .join(participants, participants.c.id == assignments.c.participant_id)
                .where(assignments.c.state.in_(("open", "done")), participants.c.state != "removed")
                .group_by(assignments.c.unit)
            )
            return {row.unit: row.n for row in rows}

    def check(self, event: str) -> None:
        for unit, n in self._held().items():
            if n > self.design.raters:
                self.out.over_filled.append(f"{unit} has {n} after {event}")

    def _check_full(self, one: Person) -> None:
        """Whoever has had nothing yet is told so only where nothing is left."""
        with self.store.reading() as connection:
            mine = connection.execute(
                select(assignments.c.id)
                .join(participants, participants.c.id == assignments.c.participant_id)
                .where(participants.c.platform_id == one.worker)
            ).first()
        if mine is None and sum(self._held().values()) < self.out.n_places:
            self.out.lost.append(f"{one.number} was told that nothing is left")

    def _check_gone(self) -> None:
        """Nobody holds what the platform has just said to be given back."""
        with self.store.reading() as connection:
            holders = connection.execute(
                select(participants.c.platform_id)
                .join(assignments, assignments.c.participant_id == participants.c.id)
                .where(assignments.c.state == "open", participants.c.platform_id.is_not(None))
            ).scalars()
            kept = [who for who in holders if self._status(who) in ("RETURNED", "TIMED-OUT")]
        if kept:
            self.out.lost.append(f"{len(kept)} places are held by people who left")

    def _status(self, worker: str) -> str:
        return str(self.mock.rows[self.people[int(worker, 16) - 1].session]["status"])

    def fill(self) -> None:
        """People come until nothing is left."""
        self.mock.fault_rate = 0.0
        self.fetch()
        with self.store.writing() as connection:
            connection.execute(
                update(assignments).where(assignments.c.state == "open").values(seen_ms=0)
            )
        for _ in range(self.out.n_places + 1):
            one = self.come()
            if one.is_told_full:
                break
            self._ask("POST", "/consent", one, agree="yes")
            self._hand_in(one)
            self.check("filling")
        with self.store.reading() as connection:
            self.out.n_filled = connection.execute(
                select(func.count())
                .select_from(assignments)
                .join(participants, participants.c.id == assignments.c.participant_id)
                .where(assignments.c.state == "done", participants.c.state != "removed")
            ).scalar_one()


def simulate(folder: Path, n_events: int, seed: int = 0, database: str | None = None) -> Outcome:
    """So many events in a new study in this folder, then everybody who is still needed."""
    n_units = max(4, n_events // 60)
    rows = [
        {"id": str(k), "text": f"Tale {k} ends well.", "group": str(k), "author": "a"}
        for k in range(n_units)
    ]
    documents = write_rows(folder / "stories.jsonl", rows)
    (folder / "one.toml").write_text(_RUBRIC, encoding="utf-8")
    file = folder / "study.toml"
    new_study(file, "ttcw", documents)
    with mock_prolific(STUDY) as mock:
        text = file.read_text(encoding="utf-8").replace('"ttcw"\n', '"one.toml"\n')
        text = text.replace('design = "one.toml"', 'design = "ttcw"')
        text = text.replace("reason_words = 4", "reason_words = 0").replace(
            "raters = 3", "raters = 2"
        )
        text += f'\n[entry]\nplatform = "prolific"\nstudies = ["{STUDY}"]\napi = "{mock.base}"\n'
        text += "joins_per_address = 0\n"
        file.write_text(text, encoding="utf-8")
        design = load_study(file)
        units = read_units(design)
        store = open_store(design, units, database)
        app = create_app(design, units, store)
        # A list of many pages would never be had whole.
        mock.fault_rate = 0.6 if n_events < 1000 else 0.3
        try:
            with TestClient(app, follow_redirects=False) as client:
                run = Simulation(design, store, client, mock, seed)
                run.out.n_places = design.raters * n_units
                for event in run.rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()), k=n_events):
                    getattr(run, event)()
                    run.out.events[event] += 1
                    run.check(event)
                run.fill()
                run.out.n_people, run.out.answered = len(run.people), mock.answered
        finally:
            store.close()
    return run.out
