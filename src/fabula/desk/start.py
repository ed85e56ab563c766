"""The job `desk`: open the writer's local page."""

from __future__ import annotations

import os
import secrets
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_data_path

from fabula.errors import InputError
from fabula.jobs.result import Result
from fabula.jobs.shared_settings import Processes
from fabula.settings import Between, setting


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
        from fabula.desk.app import create_app, desk_name
        from fabula.desk.work import Desk
        from fabula.web.app import listen, serve
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
        app = create_app(work, key=key, cookie=f"fabula_desk_{number}")
        serve(app, listening, announce_both)
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
