"""Serve corpora over HTTP, as one reference for a whole team."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fabula.errors import InputError
from fabula.jobs.references import is_size, n_bytes_of
from fabula.jobs.result import Result
from fabula.settings import Between, Settings, setting


@dataclass(frozen=True, slots=True)
class ServeSettings(Settings):
    """Where corpora are served, to whom, and the limits per client and in total."""

    host: str = setting("127.0.0.1", help="Address to listen on.")
    port: int = setting(8100, help="Port to listen on.", check=Between(0, 65535))
    token_file: Path | None = setting(
        None,
        help="Tokens that give access, one per line; FABULA_REFERENCE_TOKEN holds another. "
        "Without a token, only this machine has access.",
        unit="FILE",
    )
    max_body: str = setting(
        "32MB", help="Maximum size of a request body.", unit="SIZE", check=is_size, tunes="serving"
    )
    max_words: int = setting(
        2_000_000, help="Maximum number of words in a request.", check=Between(1), tunes="serving"
    )
    max_documents: int = setting(
        64,
        help="Maximum number of documents that a request fetches.",
        check=Between(1),
        tunes="serving",
    )
    rate: int = setting(
        500,
        help="Maximum requests per second for each token; 0 for no limit.",
        check=Between(0),
        tunes="serving",
    )
    n_jobs: int | None = setting(
        None,
        help="Number of requests searched at a time.",
        check=Between(1),
        default_text="one per CPU",
        tunes="serving",
    )
    n_waiting: int = setting(
        64,
        help="Number of requests that may wait; excess requests get 503.",
        check=Between(0),
        tunes="serving",
    )
    check_every: float = setting(
        5.0,
        help="How often to check whether the corpora changed; SIGHUP checks at once, and reloads "
        "the tokens.",
        unit="SECONDS",
        check=Between(0.1),
        tunes="serving",
    )


def serve(
    directories: Annotated[Sequence[Path], "corpus"],
    settings: ServeSettings,
    *,
    announce: Callable[[str], None] = print,
    warn: Callable[[str], None] = print,
) -> Result:
    """Serve the corpora in DIR... over HTTP, as one reference for a whole team.

    Every command accepts it as `--reference http://HOST:PORT`, and gives the same numbers as the
    corpora on disk. If documents are added to a corpus or removed, the change is served within
    seconds; runs that began before must be started again.

    Raises `InputError`, `CorpusError`; else it returns when the process is stopped.
    """
    try:
        from fabula.reference.served import Limits
        from fabula.reference.service import Gate, Served, create_app, read_tokens
        from fabula.web import app as web
        from fabula.web.guard import is_loopback
    except ImportError as error:
        raise InputError(
            "serving a reference needs more packages; run: pip install 'fabula[serve]'"
        ) from error
    limits = Limits(
        max_body_bytes=max(1024, n_bytes_of(settings.max_body)),
        max_words=settings.max_words,
        max_documents=settings.max_documents,
        n_per_s=settings.rate,
        n_at_once=settings.n_jobs or 0,
        n_waiting=settings.n_waiting,
    )
    host, file = settings.host, settings.token_file
    gate = Gate(read_tokens(file), limits)
    if not gate and not is_loopback(host):
        raise InputError(
            f"`host` {host}: other machines could connect, and no token restricts access; give "
            "`token_file` FILE, or put a token into FABULA_REFERENCE_TOKEN"
        )
    served = Served(directories, say=warn)
    listening = web.listen(host, settings.port)
    url = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"

    def look_again() -> None:
        served.wake()
        try:
            # Whether tokens are required was decided at the start: none cannot become some, or some
            # none.
            if gate:
                gate.replace(read_tokens(file))
        except InputError as error:
            warn(f"the tokens were not reloaded: {error}")

    def begun() -> None:
        reference = served.now.reference
        announce(f"{reference.name}: {reference.size}, fingerprint {reference.fingerprint}")
        if gate:
            announce(f"served at {url} to clients with one of {len(gate):,} tokens")
            announce("put your token into FABULA_REFERENCE_TOKEN, and then run:")
        else:
            announce(f"served at {url} to this machine only; no token is needed")
        announce(f"  fabula originality TEXTS --reference {url}")

    web.serve(
        create_app(served, gate, limits, settings.check_every),
        listening,
        begun,
        on_hangup=look_again,
        keep_alive_s=60,
    )
    return Result()
