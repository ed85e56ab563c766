"""The job `desk`: open the writer's local page."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import time
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from platformdirs import user_data_path

from fabula.core.errors import FabulaError, InputError
from fabula.core.settings import Between, setting
from fabula.jobs.result import Result
from fabula.jobs.shared_settings import Processes
from fabula.web.app import guarded_app
from fabula.web.guard import HEADERS, Rules, Visitors, csrf_of, is_secret
from fabula.writer import choice_pages, classes, desk_pages, editor_pages
from fabula.writer.work import STATIC, Desk, render


@dataclass(frozen=True)
class DeskSettings(Processes):
    """How the desk is opened."""

    references: tuple[str, ...] = setting(
        (),
        help="Corpus offered for comparison.",
        unit="PATH",
        option="reference",
        env="FABULA_REFERENCE",
    )
    folder: Path | None = setting(
        None,
        help="Folder where drafts are kept.",
        unit="DIR",
        option="dir",
        default_text="a folder of the current user",
    )
    port: int = setting(8765, help="Port to listen on.", check=Between(0, 65535))
    opens: bool = setting(True, help="Open the page in the browser.", option="open")


def desk(settings: DeskSettings, *, announce: Callable[[str], None] = print) -> Result:
    """Open the desk: a page on this machine where you drop a draft and read its report.

    The desk can be reached from this machine only. Nothing leaves the machine unless you name a
    hosted model, an index on the web or a reference served elsewhere; the desk then says first what
    it sends, and where to.

    Raises `InputError`.
    """
    try:
        from fabula.web.app import listen, serve
        from fabula.writer.work import Desk
    except ImportError as error:
        raise InputError("the desk needs more packages; run: pip install 'fabula[desk]'") from error

    home = os.environ.get("FABULA_HOME")
    place = settings.folder or (Path(home) if home else user_data_path("fabula")) / "desk"
    listening = listen("127.0.0.1", settings.port)
    number = listening.getsockname()[1]
    key = _key(place)
    address, elsewhere = (
        f"http://{name}:{number}/open?given={key}" for name in (desk_name(key), "127.0.0.1")
    )
    with Desk(place, settings.references, n_jobs=settings.n_processes) as work:

        def stop() -> None:
            # A thread that waits for a service elsewhere cannot be ended, and has nothing to lose:
            # files are written whole.
            last = threading.Timer(_TO_END_S, os._exit, [0])
            last.daemon = True
            last.start()
            work.close()

        def announce_both() -> None:
            announce(
                f"The desk: {address}\nIf your browser does not know names that end in localhost: "
                f"{elsewhere}\n(only on a computer that nobody else uses: other people's pages "
                "under 127.0.0.1 receive its cookie)\n"
                f"Drafts are kept in {place}. Ctrl-C closes it."
            )
            if settings.opens:
                webbrowser.open(_door(place, address).as_uri())

        # Browsers tell hosts apart and not ports: each desk has a cookie of its own.
        work.prepare()
        app = create_app(work, key=key, cookie=f"fabula_desk_{number}")
        serve(app, listening, announce_both, on_stop=stop)
    return Result()


def _key(place: Path) -> str:
    """The desk's key, kept between runs so that open pages keep working."""
    path = place / "key"
    key = path.read_text(encoding="ascii", errors="replace").strip() if path.exists() else ""
    if len(key) < 20:
        key = secrets.token_urlsafe(24)
        _write_secret(path, key)
    return key


def _door(place: Path, address: str) -> Path:
    """A page that leads to the desk: an address on a command line can be seen by everybody."""
    path = place / "open.html"
    _write_secret(path, f'<meta http-equiv="refresh" content="0; url={address}">')
    return path


def _write_secret(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


COOKIE = "fabula_desk"
_TO_END_S = 2.5
"""How long active requests may take when the desk is closed."""
_MAX_BODY_BYTES = 64 * 1024 * 1024
_MONTH_S = 30 * 24 * 3600
# Reports contain their own styles; otherwise the policy is as strict as for studies.
_HEADERS = HEADERS | {
    "content-security-policy": "default-src 'none'; style-src 'self' 'unsafe-inline'; "
    "script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
}
_TEXTS = {
    403: "This desk belongs to somebody else. Open it at the address that `fabula desk` prints.",
    404: "Page not found.",
    405: "This page cannot be asked for in that way.",
    413: "This is more than the page can accept at once.",
    422: "This could not be read. Please go back and try again.",
    500: "Something went wrong; see the terminal in which the desk runs.",
}


def desk_name(key: str) -> str:
    """A name of this machine for this desk alone.

    Browsers send a cookie to every port of a host, so under 127.0.0.1 it would reach the pages of
    other users of the machine; nobody else knows this name.
    """
    return f"{hashlib.sha256(f'name {key}'.encode()).hexdigest()[:20]}.localhost"


def _session(key: str, n_before: int = 0) -> str:
    """The value of this month's cookie, or of an earlier month's. It does not reveal the key."""
    month = int(time.time() // _MONTH_S) - n_before
    return hashlib.sha256(f"session {month} {key}".encode()).hexdigest()


def create_app(desk: Desk, *, key: str, cookie: str = COOKIE) -> FastAPI:
    """The application; it requires `key`, and a host name of this machine."""

    def owner(request: Request) -> None:
        # Other users of this machine can reach its loopback interface too.
        sent = request.cookies.get(cookie, "")
        if not any(is_secret(sent, _session(key, n)) for n in (0, 1)):
            raise HTTPException(403)

    visitors = Visitors(cookie, n_at_once=400, n_per_s=100.0)
    app = guarded_app(
        title="Fabula",
        rules=Rules(visitors, _MAX_BODY_BYTES, own_names_only=True, headers=_HEADERS),
        refuse=lambda _, status, text: HTMLResponse(render("message.html.j2", text=text), status),
        texts=_TEXTS,
        statuses={FabulaError: 400},
        static=STATIC,
    )
    app.state.desk, app.state.csrf = desk, csrf_of(key)
    for pages in (editor_pages, choice_pages, classes, desk_pages):
        app.include_router(pages.router, dependencies=[Depends(owner)])

    @app.get("/open")
    def come_in(given: str = "") -> Response:
        if not is_secret(given, key):
            raise HTTPException(403)
        response = RedirectResponse("/", 303)
        session = _session(key)
        response.set_cookie(cookie, session, max_age=_MONTH_S, httponly=True, samesite="strict")
        return response

    return app
