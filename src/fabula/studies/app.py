"""The web application of a study."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException as StarletteHTTPException

from fabula.studies import onboarding, organiser, pages
from fabula.studies.assigning import StudyChanged
from fabula.studies.database import Store
from fabula.studies.design import StudyDesign
from fabula.studies.forms import Page, pages_of
from fabula.studies.units import Unit
from fabula.studies.views import STATIC, render
from fabula.web.assets import serve_assets
from fabula.web.guard import HEADERS, Buckets, Guard

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
    # No description of the interface is served: it would tell how answers are taken.
    app = FastAPI(
        lifespan=_few_threads, title=design.title, docs_url=None, redoc_url=None, openapi_url=None
    )
    app.state.study = Study(design, {unit.key: unit for unit in units}, store)
    app.state.password = password
    # Ten tries at once, then one in ten seconds: nobody guesses it. From everywhere together more,
    # so that nobody can shut the organiser out.
    app.state.tries = Buckets(10, 0.1), Buckets(300, 3.0)
    app.add_middleware(Guard, cookie=pages.COOKIE)
    app.include_router(onboarding.router)
    app.include_router(pages.router)
    app.include_router(organiser.router)
    serve_assets(app, STATIC)

    @app.get("/health")
    def health() -> dict[str, bool]:
        return {"ok": True}

    @app.exception_handler(StarletteHTTPException)
    def refused(request: Request, error: StarletteHTTPException) -> Response:
        if error.status_code in (302, 303):
            return RedirectResponse(str(error.detail), error.status_code)
        return _message(request, error.status_code, _SAID.get(error.status_code, error.detail))

    @app.exception_handler(RequestValidationError)
    def unread(request: Request, _: Exception) -> Response:
        return _message(request, 422, _SAID[422])

    @app.exception_handler(StudyChanged)
    def changed(request: Request, _: Exception) -> Response:
        return _message(request, 503, _SAID[503])

    @app.exception_handler(Exception)
    def broken(request: Request, _: Exception) -> Response:
        # What went wrong stands in the server's log, not in the browser.
        return _message(request, 500, _SAID[500])

    return app


_SAID = {
    403: "This page is not open to you. Please use the link that you were sent.",
    404: "There is no such page.",
    405: "There is no such page.",
    422: "This could not be read. Please go back and try again.",
    503: "The study is being changed. Please come back a little later by the same link.",
    500: "Something went wrong on our side. What you saved is kept; please try again.",
}


def _message(request: Request, status: int, text: object) -> HTMLResponse:
    html = render("message.html.j2", title="", base=request.scope.get("root_path", ""),
                  heading="Sorry", paragraphs=[str(text)], code="")  # fmt: skip
    # What failed is answered outside of the guard.
    return HTMLResponse(html, status, headers={**HEADERS, "cache-control": "no-store"})
