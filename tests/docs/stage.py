"""Runs the steps of a page in order, each once, with what they need around them."""

import asyncio
import contextlib
import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.docs.reading_pages import Step, expected_files
from tests.docs.scenery import N_STORIES, make_scenery
from tests.session_folder import locked

__all__ = ["Outcome", "Stage"]

_LIMIT_S = 240
_SERVERS = {
    r"\bstudy serve\b": 8000, r"^fabula desk\b": 8765, r"\breference serve\b": 8100,
}  # fmt: skip
"""The ports of commands that serve until they are stopped."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a step ended, what it printed, and which files that it names are not there."""

    code: int
    stdout: str
    stderr: str
    lacking: tuple[str, ...] = ()
    hindrance: str = ""
    """What on this machine kept it from being run."""

    @property
    def told(self) -> str:
        return f"exit code {self.code}\n{self.stdout}\n{self.stderr}"


@dataclass(slots=True)
class Stage:
    """The folder of one session of a page, and what has run there so far.

    A step runs after all steps before it, whichever test is run alone. What a command on another
    page has done to the same files is not computed again where `is_shared`: its files are copied.
    """

    folder: Path
    environment: dict[str, str]
    steps: list[Step]
    is_shared: bool
    outcomes: dict[Step, Outcome] = field(default_factory=dict)
    _invited: list[str] = field(default_factory=list)

    def outcome(self, step: Step) -> Outcome:
        for each in self.steps[: self.steps.index(step) + 1]:
            if each not in self.outcomes:
                self.outcomes[each] = self._done(each)
        return self.outcomes[step]

    def _done(self, step: Step) -> Outcome:
        """Run the step, or copy what it did where all that it names was the same."""
        if step.kind == "python":
            return self._finished(["python", "-"], step.text)
        make_scenery(step.text, self.folder)
        if not self.is_shared:
            return self._run(step)
        with locked(f"steps/{_digest(step.text, self.folder)}") as kept:
            if (kept / "outcome.json").exists():
                shutil.copytree(kept / "files", self.folder, symlinks=True, dirs_exist_ok=True)
                outcome = Outcome(**json.loads((kept / "outcome.json").read_text("utf-8")))
            else:
                before = _files(self.folder)
                outcome = self._run(step)
                _keep(self.folder, before, outcome, kept)
        self._invited += re.findall(r"/i/(\S+)", outcome.stdout)
        return outcome

    def _run(self, step: Step) -> Outcome:
        for pattern, port in _SERVERS.items():
            if re.search(pattern, step.text):
                return self._served(step.text, port)
        done = self._finished(["bash", "-c", step.text])
        written = expected_files(step.text)
        lacking = tuple(name for name in written if not (self.folder / name).exists())
        return Outcome(done.code, done.stdout, done.stderr, lacking)

    def _finished(self, command: list[str], said: str = "") -> Outcome:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, input=said, capture_output=True,
            text=True, timeout=_LIMIT_S, check=False,
        )  # fmt: skip
        return Outcome(done.returncode, done.stdout, done.stderr)

    def _served(self, command: str, port: int) -> Outcome:
        """Start the server, let two of the invited take part, and stop it as Ctrl-C does."""
        with _turn_at_the_port(port):
            return self._served_alone(command, port)

    def _served_alone(self, command: str, port: int) -> Outcome:
        if not _port_is_free(port, time.monotonic() + 60):
            return Outcome(-1, "", "", hindrance=f"port {port} of this machine is taken")
        with (self.folder / "serve.log").open("w+", encoding="utf-8") as log:
            process = subprocess.Popen(
                ["bash", "-c", command], cwd=self.folder, env=self.environment, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            try:
                if _answers(process, port, time.monotonic() + 60) and "study" in command:
                    asyncio.run(_take_part(self._invited[:2], N_STORIES, port))
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGINT)
                try:
                    code = process.wait(30)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    code = process.wait()
            log.seek(0)
            return Outcome(code, log.read(), "")


def _digest(command: str, folder: Path) -> str:
    """Of the command, and of all files in its folder that it names, or that lie beside those."""
    words = set(shlex.split(command.replace("\\\n", " "), comments=True))
    names = {Path(value).parts[0] for word in words for value in (word, word.partition("=")[2])
             if value and not value.startswith(("/", "-"))}  # fmt: skip
    stems = {f"{Path(name).stem}." for name in names if "." in name}
    # What a judge was found to be worth is kept at home.
    named = {entry for entry in folder.iterdir() if entry.name in names | {"home"}
             or entry.name.startswith(tuple(stems))}  # fmt: skip
    digest = hashlib.sha256(command.encode())
    for path in sorted(_files(folder)):
        if folder / path.parts[0] in named:
            content = os.readlink(folder / path) if (folder / path).is_symlink() else ""
            digest.update(f"\n{path}\n{content}\n".encode())
            digest.update(b"" if content else (folder / path).read_bytes())
    return digest.hexdigest()


def _files(folder: Path) -> dict[Path, tuple[int, int]]:
    """When each file below was last written, and its size; a link is a file."""
    found = {}
    for at, folders, names in os.walk(folder):
        links = [name for name in folders if (Path(at) / name).is_symlink()]
        for path in (Path(at) / name for name in (*names, *links)):
            state = path.lstat()
            found[path.relative_to(folder)] = (state.st_mtime_ns, state.st_size)
    return found


def _keep(folder: Path, before: dict[Path, tuple[int, int]], outcome: Outcome, kept: Path) -> None:
    """Keep how a step ended, and the files that it wrote."""
    after = _files(folder)
    assert before.keys() <= after.keys(), "a step removed a file; that cannot be copied"
    (kept / "files").mkdir(parents=True)
    for path in after.keys() - before.keys() | {p for p in before if before[p] != after[p]}:
        (kept / "files" / path.parent).mkdir(parents=True, exist_ok=True)
        shutil.copy2(folder / path, kept / "files" / path, follow_symlinks=False)
    (kept / "outcome.json").write_text(json.dumps(asdict(outcome)), encoding="utf-8")


@contextlib.contextmanager
def _turn_at_the_port(port: int) -> Iterator[None]:
    """Hold the port among tests that run side by side: the commands name no other."""
    with (Path(tempfile.gettempdir()) / f"fabula-tests-port-{port}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _port_is_free(port: int, until: float) -> bool:
    """Whether nobody listens at the port, or soon nobody does."""
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return True
        time.sleep(0.2)
    return False


def _answers(process: subprocess.Popen[bytes], port: int, until: float) -> bool:
    """Whether the server says something before it ends, or time is up."""
    while process.poll() is None and time.monotonic() < until:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", port), 10) as client,
        ):
            client.sendall(b"GET / HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
            if client.recv(100).startswith(b"HTTP/"):
                return True
        time.sleep(0.05)
    return False


@dataclass
class _Here:
    """The server as participants know it."""

    port: int
    n_kills: int = 0
    is_down: bool = False


async def _take_part(tokens: list[str], n_stories: int, port: int) -> None:
    import aiohttp
    from tests.studies.simulation import Load, Outcome, Person

    seen = Outcome()
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
        for number, token in enumerate(tokens):
            load = Load(n_participants=len(tokens), n_kills=0, seconds=0, n_stories=n_stories)
            await Person(number, token, _Here(port), http, load, seen).take_part()  # type: ignore[arg-type]
    assert not seen.errors, seen.errors
