"""A hundred people who answer at once, while the study's server is stopped twenty times.

    python bench/study.py [--participants 100] [--kills 20] [--seconds 75] [--smoke]

By SIGKILL and SIGTERM in turn; after each SIGTERM a copy of SQLite's file alone must hold all that
was acknowledged. On SQLite, and on a PostgreSQL of its own where its programs are there. Ends with
1 where an acknowledged answer is not in the database, or is there twice, or a request failed
otherwise than by a crash.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import corpora

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.studies.simulation import Load, Outcome, simulate, write_study


@contextmanager
def postgres(folder: Path) -> Iterator[str | None]:
    """The address of a database on a PostgreSQL server of our own, or None."""
    found = shutil.which("initdb")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name))
    programs = Path(found).resolve().parent if found else next(reversed(folders), None)
    if programs is None or not (programs / "pg_ctl").exists():
        yield None
        return
    as_user: list[str] = []
    if os.geteuid() == 0:
        # PostgreSQL refuses to run as root.
        user = pwd.getpwnam("postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def run(program: str, *options: str) -> None:
        command = [*as_user, str(programs / program), "-D", str(folder / "data"), *options]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)

    run("initdb", "-U", "study", "-A", "trust", "-E", "UTF8")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    run("pg_ctl", "-o", options, "-l", str(folder / "log"), "-w", "start")
    try:
        yield f"postgresql://study@127.0.0.1:{port}/postgres"
    finally:
        run("pg_ctl", "-m", "immediate", "-w", "stop")


def row(name: str, outcome: Outcome) -> str:
    """A line of the table; times in milliseconds."""
    saves = sorted([*outcome.undisturbed_s, *outcome.disturbed_s])
    up_s = outcome.seconds - outcome.down_s
    cells = [
        name, f"{outcome.n_acknowledged:,}", f"{outcome.seconds:.0f}", f"{outcome.down_s:.0f}",
        f"{(outcome.n_requests - outcome.n_refused) / up_s:.0f}",
        *(f"{1000 * value:.0f}" for value in percentiles(outcome.undisturbed_s)),
        *(f"{1000 * value:.0f}" for value in percentiles(saves)),
        str(sum(outcome.errors.values())), str(len(outcome.lost)), str(len(outcome.twice)),
        str(outcome.n_committed_unseen),
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def percentiles(seconds: list[float]) -> tuple[float, float, float]:
    """The median, the 95th and the 99th percentile."""
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return cuts[49], cuts[94], cuts[98]


DATABASE = "sqlite" if corpora.SMOKE else "both"
HEAD = """\
Requests a second while the server was up. Times of a save in ms: median, 95 %, 99 %; first those
acknowledged at the first attempt, then all, with the time until the server was back.

| database | saves | s | down s | req/s | 50 | 95 | 99 | all 50 | 95 | 99 | errors | lost | \
twice | committed unseen |
| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |"""


def main() -> None:
    given = corpora.options(
        __doc__, participants=corpora.sized(100, 4), kills=corpora.sized(20, 1),
        seconds=(float(corpora.sized(75, 1)), "for all answers of one, without the crashes"),
        database={"choices": ["sqlite", "postgresql", "both"], "default": DATABASE},
    )  # fmt: skip
    load = Load(given.participants, given.kills, given.seconds)
    outcomes: dict[str, Outcome] = {}
    with corpora.scratch() as name, tempfile.TemporaryDirectory() as server:
        folder = name
        file = write_study(folder, load.n_participants)
        if given.database != "postgresql":
            outcomes["SQLite"] = simulate(
                file, f"sqlite:///{folder / 'study.db'}", load, [corpora.FABULA]
            )
        if given.database != "sqlite":
            with postgres(Path(server)) as address:
                if address is None:
                    print("PostgreSQL is not installed: not measured")
                else:
                    outcomes["PostgreSQL"] = simulate(file, address, load, [corpora.FABULA])
    print(HEAD)
    for database, outcome in outcomes.items():
        print(row(database, outcome))
    for database, outcome in outcomes.items():
        held = f", of whose .db alone {outcome.n_copies:,} copies held everything"
        print(
            f"{database}: {outcome.n_kills:,} SIGKILL, {outcome.n_stops:,} SIGTERM"
            + (held if database == "SQLite" else "")
        )
    for database, outcome in outcomes.items():
        for what in [*outcome.errors.items(), *outcome.lost[:10], *outcome.twice[:10]]:
            print(f"{database}: {what}")
    if any(outcome.lost or outcome.twice or outcome.errors for outcome in outcomes.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
