"""`fabula study preview`: a study as its participants see it, in which nothing counts."""

from __future__ import annotations

import secrets
import tempfile
from dataclasses import replace
from pathlib import Path

import click

from fabula.cli.derived import Command

__all__ = ["preview"]


@click.command(cls=Command, short_help="Try a study out; nothing is kept.")
@click.argument("file", metavar="STUDY.toml", type=click.Path(path_type=Path))
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on.  [default: free]"
)
def preview(file: Path, port: int) -> None:
    """Serve STUDY.toml on this machine, with a link for yourself, until you stop it.

    What is answered goes into a database of its own, which is thrown away at the end: it is never
    counted, gives no place to anybody, and leaves the study free to be changed. The title says that
    it is a preview. Further links are on the organiser's page.
    """
    from fabula.errors import InputError

    try:
        from fabula.studies.database import open_store
    except ImportError as error:
        raise InputError("studies need more packages; run: pip install 'fabula[study]'") from error
    from fabula.studies.app import create_app
    from fabula.studies.design import load_study
    from fabula.studies.participants import invite
    from fabula.studies.units import read_units
    from fabula.web import app as web

    design = load_study(file)
    design = replace(design, title=f"Preview: {design.title}")
    units = read_units(design)
    password = secrets.token_urlsafe(9)
    with tempfile.TemporaryDirectory(prefix="fabula-preview-") as folder:
        store = open_store(design, units, f"sqlite:///{folder}/preview.db")
        try:
            with store.writing() as connection:
                (token,) = invite(connection, 1, "preview", "yourself")
            app = create_app(design, units, store, password=password, own_names_only=True)
            listening = web.listen("127.0.0.1", port)
            shown = f"http://127.0.0.1:{listening.getsockname()[1]}"

            def announce() -> None:
                click.echo(f"{design.title}: {shown}/i/{token}?change=yes")
                click.echo(f"organisers: {shown}/organise, password {password}")
                click.echo("nothing that is answered here is kept")

            web.serve(app, listening, announce, behind_proxy=None, root_path="")
        finally:
            store.close()
