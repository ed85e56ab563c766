"""Many people who answer a study at once, while its server is killed and started again.

The server is `fabula study serve` in a process of its own. A participant does what the page's
script does: one answer at a time, and the same again until it is acknowledged.
"""

import asyncio
import json
import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from sqlalchemy import select
from tests.studies.running import Running, make, open_study

import fabula
from fabula.core.types import Measurement
from fabula.rubrics.load import load_rubric
from fabula.studies.database import answers, assignments, participants
from fabula.studies.participants import hash_of, invite, pseudonym

Answer = tuple[str, str]
_ITEMS = tuple(item.id for item in load_rubric("ttcw").items)
_GROUP_ITEMS = ("preference", "origin", "familiar")
_ORIGINS = ("An experienced writer", "An amateur writer", "An AI")
_RETRY_S = (0.1, 0.2, 0.4, 0.8)
"""As the page's script, but sooner: everybody here thinks faster too."""
_HIDDEN = re.compile(r'name="(csrf|unit|revision|shown)" value="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Load:
    """How many take part, how often the server is killed, and how fast people answer."""

    n_participants: int
    n_kills: int
    seconds: float
    """That everybody needs for all answers, were the server never gone."""
    n_stories: int = 4
    """That each group holds; at least two, or there is nothing to rank."""
    seed: int = 0


@dataclass(slots=True)
class Outcome:
    """What happened, and what the database holds afterwards.

    Kills are by SIGKILL, stops by SIGTERM, copies of SQLite's file alone after a stop, each with
    all that had been acknowledged. Times are of saves acknowledged at the first attempt, and of the
    others from the first attempt on. Unseen is what was committed without being acknowledged.
    """

    seconds: float = 0.0
    down_s: float = 0.0
    n_kills: int = 0
    n_stops: int = 0
    n_copies: int = 0
    n_requests: int = 0
    n_refused: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    undisturbed_s: list[float] = field(default_factory=list)
    disturbed_s: list[float] = field(default_factory=list)
    n_acknowledged: int = 0
    n_committed_unseen: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)


def write_study(folder: Path, n_participants: int, n_groups: int = 5, n_stories: int = 4) -> Path:
    """A study of groups of stories of a thousand words, with a place in it for everybody."""
    rng = random.Random(0)
    rows = [
        {"id": f"{g}_{k}", "author": f"author {k}", "group": str(g), "text": "\n\n".join(
            " ".join(f"{rng.getrandbits(20):x}" for _ in range(100)) + "." for _ in range(10))}
        for g in range(n_groups) for k in range(n_stories)
    ]  # fmt: skip
    study = make(folder, "ttcw", rows, raters=-(-n_participants // n_groups))
    study.store.close()
    return study.design.path


def simulate(file: Path, database: str, load: Load, command: Sequence[str | Path]) -> Outcome:
    """Run the study, which the command starts, with everybody in it; then compare what was
    acknowledged with what is kept."""
    with closing(open_study(file, database).store) as store, store.writing() as connection:
        invitations = invite(connection, [""] * load.n_participants, "simulation")
        tokens = [one.token for one in invitations]
    outcome = Outcome()
    server = Server(file, database, command)
    try:
        people = asyncio.run(_crowd(server, tokens, load, outcome))
    finally:
        server.kill()
    if log := server.log.read_text(encoding="utf-8").strip():
        outcome.errors["in the server's log: " + log.splitlines()[-1]] += 1
    study = open_study(file, database)
    with closing(study.store):
        _compare(study, people, outcome)
    return outcome


class Server:
    """`fabula study serve`, always at the same port."""

    def __init__(self, file: Path, database: str, command: Sequence[str | Path]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.log = file.parent / "server.log"
        is_sqlite = database.startswith("sqlite")
        self.sqlite_file = Path(database.removeprefix("sqlite:///")) if is_sqlite else None
        self._command = [*command, "study", "serve", file, "--database", database, "--port",
                         str(self.port)]  # fmt: skip
        self.n_kills = 0
        self.start()

    def start(self) -> None:
        self.is_down = True
        source = str(Path(fabula.__file__).parents[1])
        own = {"PYTHONPATH": source, "FABULA_STUDY_PASSWORD": "a secret of ours"}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, env=os.environ | own, stdout=subprocess.PIPE, stderr=log
            )

    def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        """The exit code."""
        self.n_kills += 1
        self.is_down = True
        self._process.send_signal(number)
        # Until nobody holds its output: what forks a command outlives the one who asked for it.
        self._process.communicate()
        return self._process.returncode

    async def wait_until_there(self) -> None:
        # On a disk that was never read from, the first command of all takes a minute.
        for _ in range(3600):
            if self._process.poll() is not None:
                raise RuntimeError(f"the server ended: {self.log.read_text(encoding='utf-8')}")
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                await writer.wait_closed()
                self.is_down = False
                return
            await asyncio.sleep(0.05)
        raise RuntimeError("the server does not answer")


class Person:
    def __init__(
        self, number: int, token: str, server: Server, http: aiohttp.ClientSession,
        load: Load, outcome: Outcome,
    ) -> None:  # fmt: skip
        self.token = token
        self.acknowledged: dict[Answer, str] = {}
        self.retried: list[tuple[Answer, str, float]] = []
        """Answers that took several attempts, and when the last one began (s since 1970)."""
        self._server, self._http, self._outcome = server, http, outcome
        self._rng = random.Random(f"{load.seed} {number}")
        self._n_stories = load.n_stories
        self.n_answers = len(self._answers())
        self._think_s = load.seconds / self.n_answers
        self._cookie = ""
        self._form: dict[str, str] = {}

    async def take_part(self) -> None:
        """From the invitation until the unit is handed in."""
        await self._think(0, 2)
        await self._ask("GET", f"/i/{self.token}", 303)
        await self._open("/")
        await self._ask("POST", "/consent", 303, self._form)
        await self._ask("GET", "/", 200)
        here = ""
        for page, answer, value in self._answers():
            if page != here:
                here = page
                await self._open(f"/page/{page}")
            await self._think(0.5, 1.5)
            await self._save(page, answer, value)
            # Some change their mind, and some of these back again.
            while value in ("Yes", "No") and self._rng.random() < 0.05:
                value = "No" if value == "Yes" else "Yes"
                await self._save(page, answer, value)
        whole = {":".join(answer): value for answer, value in self.acknowledged.items()
                 if answer[1] in _GROUP_ITEMS}  # fmt: skip
        await self._ask("POST", f"/page/{here}", 303, {**self._form, **whole, "go": "finish"})

    def _answers(self) -> list[tuple[str, Answer, str]]:
        """Page, field and value, in the order in which they are given."""
        rng = random.Random(self.token)
        found = []
        parts = [str(part) for part in range(1, self._n_stories + 1)]
        for part in parts:
            for item in _ITEMS:
                reason = f"Because of what happens there: {rng.random()}."
                found.append((f"story-{part}", (part, item), rng.choice(("Yes", "No"))))
                found.append((f"story-{part}", (part, f"{item}.why"), reason))
        for part, place in zip(parts, rng.sample(parts, len(parts)), strict=True):
            values = (place, rng.choice(_ORIGINS), rng.choice(("Yes", "No")))
            for item, value in zip(_GROUP_ITEMS, values, strict=True):
                found.append(("group", (part, item), value))
        return found

    async def _think(self, least: float, most: float) -> None:
        await asyncio.sleep(self._think_s * self._rng.uniform(least, most))

    async def _open(self, path: str) -> None:
        """A page, whose form is sent from now on."""
        self._form = dict(_HIDDEN.findall(await self._ask("GET", path, 200)))

    async def _save(self, page: str, answer: Answer, value: str) -> None:
        begun = time.perf_counter()
        form = {**self._form, "page": page, ":".join(answer): value}
        attempts: list[float] = []
        reply = json.loads(await self._ask("POST", "/save", 200, form, attempts))
        spent = time.perf_counter() - begun
        if reply["problems"] or "html" in reply:
            self._outcome.errors[f"save: {reply}"] += 1
        self._form["revision"] = str(reply["revision"])
        self.acknowledged[answer] = value
        self._outcome.n_acknowledged += 1
        if len(attempts) == 1:
            self._outcome.undisturbed_s.append(spent)
        else:
            self._outcome.disturbed_s.append(spent)
            self.retried.append((answer, value, attempts[-1]))

    async def _ask(
        self, method: str, path: str, wanted: int, form: dict[str, str] | None = None,
        attempts: list[float] | None = None,
    ) -> str:  # fmt: skip
        """The body of the answer, after as many attempts as it takes."""
        url = f"http://127.0.0.1:{self._server.port}{path}"
        headers = {"Cookie": self._cookie} if self._cookie else {}
        asked = f"{method} {path[:6]}"
        for attempt in range(200):
            n_kills, was_down = self._server.n_kills, self._server.is_down
            self._outcome.n_requests += 1
            if attempts is not None:
                attempts.append(time.time())
            try:
                async with self._http.request(
                    method, url, data=form, headers=headers, allow_redirects=False
                ) as reply:
                    text = await reply.text()
            except aiohttp.ClientConnectorError:
                self._outcome.n_refused += 1
            except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
                # A connection from before the crash may be tried once more.
                if not was_down and n_kills == self._server.n_kills:
                    self._outcome.errors[f"{asked}: {type(error).__name__}"] += 1
            else:
                if reply.status == wanted:
                    for name, cookie in reply.cookies.items():
                        self._cookie = f"{name}={cookie.value}"
                    return text
                if reply.status == 503 and "retry-after" in reply.headers:
                    # It waited for a busy disk; a page keeps the answer, and asks again.
                    self._outcome.n_refused += 1
                else:
                    self._outcome.errors[f"{asked}: status {reply.status}"] += 1
            await asyncio.sleep(_RETRY_S[min(attempt, 3)] * self._rng.uniform(0.75, 1.25))
        raise RuntimeError(f"{method} {path}: never answered")


async def _crowd(server: Server, tokens: list[str], load: Load, outcome: Outcome) -> list[Person]:
    await server.wait_until_there()
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=30),
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as http:  # fmt: skip
        people = [Person(n, token, server, http, load, outcome) for n, token in enumerate(tokens)]
        begun = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for person in people:
                group.create_task(person.take_part())
            group.create_task(_crashes(server, people, load, outcome))
        outcome.seconds = time.perf_counter() - begun
    return people


async def _crashes(server: Server, people: list[Person], load: Load, outcome: Outcome) -> None:
    """Kill the server again and again, spread evenly over the answers that come in."""
    rng = random.Random(load.seed)
    n_answers = sum(person.n_answers for person in people)
    for k in range(load.n_kills):
        while outcome.n_acknowledged < (k + rng.uniform(0.2, 0.8)) * n_answers / load.n_kills:
            await asyncio.sleep(0.01)
        begun = time.perf_counter()
        if k % 2:
            _stop_in_order(server, outcome)
            outcome.n_stops += 1
        else:
            server.kill()
            outcome.n_kills += 1
        server.start()
        await server.wait_until_there()
        outcome.down_s += time.perf_counter() - begun


def _stop_in_order(server: Server, outcome: Outcome) -> None:
    """With SIGTERM; a copy of SQLite's file alone then holds all that was acknowledged."""
    if code := server.kill(signal.SIGTERM):
        outcome.errors[f"SIGTERM: exit code {code}"] += 1
    if server.sqlite_file is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(server.sqlite_file, folder)
        with closing(sqlite3.connect(copy)) as connection:
            (n,) = connection.execute("SELECT count(*) FROM answers").fetchone()
    # Whoever changed their mind has several rows.
    if n < outcome.n_acknowledged:
        outcome.lost.append(f"a copy after SIGTERM: {n} of {outcome.n_acknowledged}")
    else:
        outcome.n_copies += 1


def _compare(study: Running, people: list[Person], outcome: Outcome) -> None:
    """What was acknowledged, against the export and the history."""
    columns = (answers.c.part, answers.c.item, answers.c.value, answers.c.saved_ms)
    numbers = dict(map(tuple, study.rows(participants.c.token_hash, participants.c.id)))
    kept: dict[str, dict[Answer, str]] = {}
    for one in study.measured():
        kept.setdefault(one.rater, {}).update(_answers_of(one))
    history: dict[int, list[tuple[Answer, str, float]]] = {}
    with study.store.reading() as connection:
        for number, part, item, value, saved_ms in connection.execute(
            select(assignments.c.participant_id, *columns)
            .join(assignments, assignments.c.id == answers.c.assignment_id)
            .order_by(answers.c.id)
        ):
            history.setdefault(number, []).append(((part, item), value, saved_ms / 1000))
    for person in people:
        number = numbers[hash_of(person.token)]
        name = pseudonym(number)
        mine = kept.get(name, {})
        for answer in person.acknowledged.keys() | mine.keys():
            sent, held = person.acknowledged.get(answer), mine.get(answer)
            if sent != held:
                outcome.lost.append(f"{name} {answer}: acknowledged {sent!r}, kept {held!r}")
        rows = history.get(number, [])
        last: dict[Answer, str] = {}
        for answer, value, _ in rows:
            # What the answer's row before it said.
            if last.get(answer) == value:
                outcome.twice.append(f"{name} {answer}: {value!r}")
            last[answer] = value
        outcome.n_committed_unseen += sum(
            any(row[:2] == (answer, value) and row[2] < began - 0.001 for row in rows)
            for answer, value, began in person.retried
        )


def _answers_of(one: Measurement) -> Iterator[tuple[Answer, str]]:
    """The fields that a measurement was made of."""
    part = str(one.details["place"])
    if isinstance(one.value, float):
        is_rank = one.item == "preference"
        yield (part, one.item), str(int(one.value)) if is_rank else ("No", "Yes")[int(one.value)]
    elif one.value is not None:
        yield (part, one.item), str(one.value)
    if one.rationale is not None:
        yield (part, f"{one.item}.why"), one.rationale
