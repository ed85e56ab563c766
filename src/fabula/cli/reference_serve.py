"""`fabula reference serve`: a reference for a whole team."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabula.cli.derived import Command
from fabula.cli.options import CorpusType, SizeType

if TYPE_CHECKING:
    from fabula.reference.serving.gate import Tokens
    from fabula.reference.serving.snapshots import States

__all__ = ["serve"]


@click.command(cls=Command, short_help="Serve corpora over HTTP.")
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=CorpusType())
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8100, show_default=True)
@click.option(
    "--token-file", type=click.Path(path_type=Path), metavar="FILE",
    help="Tokens that let in, one a line; FABULA_REFERENCE_TOKEN holds another. Without any, only "
    "this machine can ask.",
)  # fmt: skip
@click.option(
    "--max-body", type=SizeType(), default="32MB", show_default=True, metavar="SIZE",
    help="Largest body of a request.",
)  # fmt: skip
@click.option(
    "--max-words", type=click.IntRange(min=1), default=500_000, show_default=True,
    help="Words of a request.",
)  # fmt: skip
@click.option(
    "--max-grams", type=click.IntRange(min=1), default=2_000, show_default=True,
    help="N-grams of a request.",
)  # fmt: skip
@click.option(
    "--max-places", type=click.IntRange(min=0), default=100_000, show_default=True,
    help="Places of an n-gram in a shard at which documents are looked up.",
)  # fmt: skip
@click.option(
    "--max-named", type=click.IntRange(min=1), default=200_000, show_default=True,
    help="Documents named in an answer about several n-grams.",
)  # fmt: skip
@click.option(
    "--max-documents", type=click.IntRange(min=1), default=64, show_default=True,
    help="Documents that a request fetches.",
)  # fmt: skip
@click.option(
    "--max-excluded", type=click.IntRange(min=0), default=100_000, show_default=True,
    help="Documents that a request leaves out.",
)  # fmt: skip
@click.option(
    "--rate", type=click.IntRange(min=0), default=500, show_default=True,
    help="Requests a second of each token; 0 for any number.",
)  # fmt: skip
@click.option(
    "--jobs", type=click.IntRange(min=1), help="Requests searched at a time.  [default: one a CPU]"
)
@click.option(
    "--waiting", type=click.IntRange(min=0), default=64, show_default=True,
    help="Requests that wait for their turn; more are told to come back.",
)  # fmt: skip
@click.option(
    "--check-every", type=click.FloatRange(0.1), default=5.0, show_default=True, metavar="SECONDS",
    help="How often to look whether the corpora changed; SIGHUP looks at once, and reads the "
    "tokens again.",
)  # fmt: skip
def serve(
    directories: tuple[str | Path, ...],
    host: str,
    port: int,
    token_file: Path | None,
    check_every: float,
    **given: Any,
) -> None:
    """Serve the corpora in DIR... over HTTP, as one reference for a whole team.

    Every command takes it as `--reference http://HOST:PORT`, and the numbers are those of the
    corpora on the disk. Infini-gram's clients can ask it too. A corpus that is added to, or from
    which documents are removed, is served in its new form within seconds.
    """
    from fabula.errors import InputError

    try:
        from fabula.reference.serving.app import create_app
        from fabula.reference.serving.gate import Tokens, read_tokens
        from fabula.reference.serving.messages import Limits
        from fabula.web import app as web
        from fabula.web.guard import is_loopback
    except ImportError as error:
        raise InputError(
            "serving a reference needs more packages; run: pip install 'fabula[serve]'"
        ) from error
    from fabula.reference.serving.snapshots import States

    limits = Limits(
        max_body_bytes=max(1024, given["max_body"]), max_words=given["max_words"],
        max_grams=given["max_grams"], max_places=given["max_places"],
        max_named=given["max_named"], max_documents=given["max_documents"],
        max_excluded=given["max_excluded"], n_per_s=given["rate"], n_at_once=given["jobs"] or 0,
        n_waiting=given["waiting"],
    )  # fmt: skip
    tokens = Tokens(read_tokens(token_file))
    if not tokens and not is_loopback(host):
        raise InputError(
            f"--host {host}: other machines could ask, and no token keeps anybody out; give "
            f"--token-file FILE, or put a token into FABULA_REFERENCE_TOKEN"
        )
    states = States(directories, say=lambda told: click.echo(told, err=True))
    listening = web.listen(host, port)
    address = f"{_shown(host)}:{listening.getsockname()[1]}"
    app = create_app(states, tokens=tokens, limits=limits, check_every_s=check_every)
    web.serve(
        app,
        listening,
        lambda: _say_what_is_served(states, address, len(tokens)),
        on_hangup=lambda: _look_again(states, tokens, token_file),
        keep_alive_s=60,
    )


def _look_again(states: States, tokens: Tokens, token_file: Path | None) -> None:
    """Have the corpora looked at, and read the tokens again."""
    from fabula.errors import InputError
    from fabula.reference.serving.gate import read_tokens

    states.wake()
    try:
        # Who may ask at all was decided at the start: none cannot become some, or some none.
        if tokens:
            tokens.replace(read_tokens(token_file))
    except InputError as error:
        click.echo(f"the tokens stay as they were: {error}", err=True)


def _say_what_is_served(states: States, address: str, n_tokens: int) -> None:
    reference = states.now.reference
    click.echo(f"{reference.name}: {reference.size}, fingerprint {reference.fingerprint}")
    url = f"http://{address}"
    if n_tokens:
        click.echo(f"served at {url} to whoever has one of {n_tokens:,} tokens")
        click.echo("put yours into FABULA_REFERENCE_TOKEN, and then:")
    else:
        click.echo(f"served at {url} to this machine; no token is asked")
    click.echo(f"  fabula originality TEXTS --reference {url}")


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
