"""The web application of a study."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse

from fabula.studies import onboarding, organiser, pages
from fabula.studies.assigning import StudyChanged
from fabula.studies.database import Store
from fabula.studies.design import StudyDesign
from fabula.studies.forms import Page, pages_of
from fabula.studies.units import Unit
from fabula.studies.views import STATIC, render
from fabula.web.app import PAGE_TEXTS, guarded_app
from fabula.web.guard import Buckets, Rules, Visitors

__all__ = ["Study", "create_app"]


@dataclass(frozen=True, slots=True)
class Study:
    """A study that runs."""

    design: StudyDesign
    units: dict[str, Unit]
    store: Store
    _pages: dict[int, tuple[Page, ...]] = field(default_factory=dict)

    def pages(self, unit: Unit) -> tuple[Page, ...]:
        """The pages of a unit: the same for all that hold so many documents."""
        n = len(unit.documents)
        if n not in self._pages:
            self._pages[n] = pages_of(self.design, n)
        return self._pages[n]


@asynccontextmanager
async def _few_threads(_: FastAPI) -> AsyncIterator[None]:
    # More threads than this only wait for each other.
    current_default_thread_limiter().total_tokens = 8
    yield


def create_app(
    design: StudyDesign,
    units: Sequence[Unit],
    store: Store,
    *,
    password: str | None = None,
) -> FastAPI:
    """The application; without a password nobody can log in as organiser."""
    app = guarded_app(
        title=design.title,
        rules=Rules(admit=Visitors(pages.COOKIE)),
        refuse=_message,
        texts=_TEXTS,
        statuses={StudyChanged: 503},
        static=STATIC,
        lifespan=_few_threads,
    )
    app.state.study = Study(design, {unit.key: unit for unit in units}, store)
    app.state.password = password
    # Ten tries at once, then one in ten seconds: nobody guesses it. From everywhere together more,
    # so that nobody can shut the organiser out.
    app.state.tries = Buckets(10, 0.1), Buckets(300, 3.0)
    app.include_router(onboarding.router)
    app.include_router(pages.router)
    app.include_router(organiser.router)

    @app.get("/health")
    def health() -> dict[str, bool]:
        return {"ok": True}

    return app


_TEXTS = PAGE_TEXTS | {
    403: "This page is not open to you. Please use the link that you were sent.",
    503: "The study is being changed. Please come back a little later by the same link.",
    500: "Something went wrong on our side. What you saved is kept; please try again.",
}


def _message(request: Request, status: int, text: str) -> HTMLResponse:
    html = render("message.html.j2", title="", base=request.scope.get("root_path", ""),
                  heading="Sorry", paragraphs=[text], code="")  # fmt: skip
    return HTMLResponse(html, status)
