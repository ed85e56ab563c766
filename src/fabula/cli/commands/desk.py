"""`fabula desk`: the writer's local page."""

from __future__ import annotations

from pathlib import Path

import click

from fabula.cli.derived import Command
from fabula.jobs.desk import DeskSettings


@click.command(cls=Command, short_help="Open a local page to drop drafts on and read reports.")
def desk(settings: DeskSettings) -> None:
    """Open the desk: a page on this machine where you drop a draft and read its report.

    The desk can be reached from this machine only. Nothing leaves the machine unless you name a
    hosted model, an index on the web or a reference served elsewhere; the desk then says first what
    it sends, and where to.
    """
    import os
    import webbrowser

    from fabula.errors import InputError

    try:
        from fabula.desk import Desk, create_app, desk_name
        from fabula.web.app import listen, serve
    except ImportError as error:
        raise InputError("the desk needs more packages; run: pip install 'fabula[desk]'") from error
    from platformdirs import user_data_path

    home = os.environ.get("FABULA_HOME")
    place = settings.folder or (Path(home) if home else user_data_path("fabula")) / "desk"
    listening = listen("127.0.0.1", settings.port)
    number = listening.getsockname()[1]
    key = _key(place)
    address, elsewhere = (
        f"http://{name}:{number}/open?given={key}" for name in (desk_name(key), "127.0.0.1")
    )
    with Desk(place, settings.references, n_jobs=settings.n_processes) as work:

        def announce() -> None:
            click.echo(
                f"The desk: {address}\nIf your browser does not know names that end in localhost: "
                f"{elsewhere}\n(only on a computer that nobody else uses: other people's pages "
                "under 127.0.0.1 receive its cookie)\n"
                f"Drafts are kept in {place}. Ctrl-C closes it."
            )
            if settings.opens:
                webbrowser.open(_door(place, address).as_uri())

        # Browsers tell hosts apart and not ports: each desk has a cookie of its own.
        app = create_app(work, key=key, cookie=f"fabula_desk_{number}")
        serve(app, listening, announce)


def _key(place: Path) -> str:
    """The desk's key, kept between runs so that open pages keep working."""
    import secrets

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
    import os

    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
