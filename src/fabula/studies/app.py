"""The web application of a study."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, get_args

from anyio import CapacityLimiter, move_on_after
from anyio.to_thread import current_default_thread_limiter, run_sync
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse

from fabula.studies import organiser, participant_pages
from fabula.studies.assigning import Assignment, StudyChanged
from fabula.studies.database import Store, StoreFailed, Trouble
from fabula.studies.design import StudyDesign
from fabula.studies.forms import Page, pages_of
from fabula.studies.labels import ENGLISH
from fabula.studies.platforms import PlatformFailed, Prolific, Statuses, followed
from fabula.studies.units import Unit, count_for_one_person
from fabula.studies.views import STATIC, base_of, respond
from fabula.web.app import guarded_app
from fabula.web.guard import Buckets, Rules, Visitors

_FRESH_S, _LIMIT_S, _CHECKPOINT_S = 1.0, 3.0, 60.0


@asynccontextmanager
async def checkpointed(store: Store) -> AsyncIterator[None]:
    """Checkpoint the database file every minute, not only when it is closed."""

    async def now_and_then() -> None:
        while True:
            await asyncio.sleep(_CHECKPOINT_S)
            await run_sync(store.checkpoint, limiter=CapacityLimiter(1))

    task = asyncio.create_task(now_and_then())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@dataclass(frozen=True, slots=True)
class Study:
    """A running study."""

    design: StudyDesign
    units: dict[str, Unit]
    store: Store
    prolific: Prolific
    """Has no token if none was configured; the public keys are available without one."""
    statuses: Statuses | None = None
    _pages: dict[tuple[int, int, bool], tuple[Page, ...]] = field(default_factory=dict)
    n_for_one: int = 1
    """Maximum number of units that one person can be assigned."""

    def pages(self, held: Assignment) -> tuple[Page, ...]:
        """Return the pages of an assigned unit."""
        key = len(held.unit.documents), held.number, held.first is not None
        if key not in self._pages:
            n_documents, number, has_first = key
            self._pages[key] = pages_of(self.design, n_documents, number, has_first=has_first)
        return self._pages[key]


@asynccontextmanager
async def _running(app: FastAPI) -> AsyncIterator[None]:
    # More threads than this would only wait for each other.
    current_default_thread_limiter().total_tokens = 8
    study = app.state.study
    async with checkpointed(study.store):
        with followed(study.store, study.statuses):
            yield


def create_app(
    design: StudyDesign,
    units: Sequence[Unit],
    store: Store,
    *,
    password: str | None = None,
    own_names_only: bool = False,
    platform_token: str = "",
) -> FastAPI:
    """Build the application; without a password, no organiser can log in.

    platform_token: token for Prolific's API; with it, statuses are fetched while the application
    runs. own_names_only: accept only requests addressed to a host name of this machine.
    """
    app = guarded_app(
        title=design.title,
        rules=Rules(
            admit=Visitors(participant_pages.cookie_of(design.id)), own_names_only=own_names_only
        ),
        refuse=_message,
        texts={},
        statuses={StudyChanged: 503, StoreFailed: 503, PlatformFailed: 503},
        static=STATIC,
        lifespan=_running,
    )
    entry = design.people.entry
    prolific = Prolific(platform_token, entry.api)
    statuses = Statuses(prolific, entry.studies) if platform_token and entry.studies else None
    known = {unit.key: unit for unit in units}
    n_for_one = min(count_for_one_person(units, design.per_story), design.per_participant)
    app.state.study = Study(design, known, store, prolific, statuses, n_for_one=n_for_one)
    app.state.password = password
    # Ten attempts at once, then one every ten seconds: too slow to guess a password. The limit
    # across all addresses is higher, so that nobody can lock the organiser out.
    app.state.tries = Buckets(10, 0.1), Buckets(300, 3.0)
    for pages in (participant_pages, organiser):
        app.include_router(pages.router)

    problem: str | None = None
    checked_s = -_FRESH_S
    check = asyncio.Lock()
    # A dedicated thread, because all others may be waiting for the database.
    thread = CapacityLimiter(1)

    @app.get("/health")
    async def state_of_health() -> JSONResponse:
        nonlocal problem, checked_s
        async with check:
            # The last result counts until it is stale.
            if time.monotonic() - checked_s >= _FRESH_S:
                problem = "the study's database is not responding"
                with move_on_after(_LIMIT_S):
                    problem = await run_sync(store.problem, limiter=thread, abandon_on_cancel=True)
                checked_s = time.monotonic()
        if problem is None:
            return JSONResponse({"ok": True})
        return JSONResponse({"ok": False, "problem": problem}, 503)

    return app


_FAILURES = {str(StoreFailed(trouble)): trouble for trouble in get_args(Trouble)}
_FAILURES[str(StudyChanged())] = "being_changed"
"""Labels for failures that have their own message."""


def _message(request: Request, status: int, text: str) -> HTMLResponse:
    path = request.scope["path"]
    is_organiser = path.startswith("/organise")
    say = ENGLISH if is_organiser else request.app.state.study.design.labels
    label = _FAILURES.get(text, f"status_{404 if status == 405 else status}")
    if label in say.words and not (is_organiser and status == 429):
        text = say(label)
    text = f"{text[:1].upper()}{text[1:].rstrip('.')}."
    if status == 503 and (fields := getattr(request.state, "form", None)) is not None:
        # Submitted values stay on the page, so that no answer has to be typed twice.
        shown: dict[str, Any] = {"title": say("not_saved_yet"), "action": path, "fields": fields}
        shown["paragraphs"] = [text, say("kept_on_page")]
        response = respond(request, "retry.html.j2", say, status, **shown)
    else:
        home = f"{base_of(request)}/{'organise' if is_organiser else ''}"
        shown = {"title": "", "heading": say("sorry"), "paragraphs": [text], "code": ""}
        shown["back"] = home if label == "status_404" else ""
        response = respond(request, "message.html.j2", say, status, **shown)
    if status == 503:
        response.headers["retry-after"] = "5"
    return response
