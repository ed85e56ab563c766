"""Commands as processes of their own that need not import anything: forked from one that has.

A command differs from the installed one in four ways only. Modules are loaded before it begins;
environment variables that Python and libraries read when they are imported have the values of the
session; it uses one process where it is not told how many; it belongs to no terminal. What depends
on one of these runs the installed one, and so does the README. Arguments, streams, working
folder, environment, exit code, signals and the end of the interpreter are those of any process.

Whichever test first runs the command starts the server in the session's folder, for all of xdist's
workers. The server ends with the folder.
"""

import atexit
import contextlib
import gc
import importlib
import marshal
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

from tests.session_folder import made_once, session_folder

INSTALLED = Path(sys.executable).with_name("fabula")
"""The command as a user runs it."""
_INSPECT = "inspect"
_ANY = "any"
_CAN_FORK = sys.platform == "linux"

_CLIENT = """\
#!{python} -IS
# What `json`, `signal` and `socket` import takes twice as long as all else that this does.
import _signal, _socket, marshal, os, struct, sys

FOLDER = {folder!r}
ENDED = "the server of forks does not answer; its words are in " + FOLDER + "/log"


def received(client, n):
    data = b""
    while len(data) < n:
        more = client.recv(n - len(data))
        if not more:
            sys.exit(ENDED)
        data += more
    return struct.unpack("!i", data)[0]


asked = marshal.dumps([sys.argv, os.getcwd(), dict(os.environ)])
client = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
try:
    client.connect(FOLDER + "/socket")
except OSError:
    sys.exit(ENDED)
streams = _socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("3i", 0, 1, 2)
client.sendmsg([struct.pack("!i", len(asked))], [streams])
client.sendall(asked)
process = received(client, 4)
for passed in _signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP:
    _signal.signal(passed, lambda number, _: os.kill(process, number))
status = received(client, 4)
if os.WIFSIGNALED(status):
    if os.WTERMSIG(status) != _signal.SIGKILL:
        _signal.signal(os.WTERMSIG(status), _signal.SIG_DFL)
    os.kill(os.getpid(), os.WTERMSIG(status))
os._exit(os.WEXITSTATUS(status))
"""

_WANTED = (
    # What starts threads or reads the environment when it is imported is not among them: ray,
    # torch, llama.cpp, what speaks to object stores.
    "scipy.stats", "pyarrow.parquet", "lxml.html", "docx", "bm25s", "matplotlib.pyplot",
    "py3langid", "tokenizers", "sqlalchemy", "fabula.evals", "inspect_ai._cli.main",
    "inspect_ai.model._openai_responses", "inspect_ai.model._providers.anthropic",
    "inspect_ai.model._providers.openai_compatible", "fabula.cli.main", "fabula.api",
    "fabula.judging.job", "fabula.review.job", "fabula.judging.session", "fabula.judging.summary",
    "fabula.novelty.detector", "fabula.groups.diversity", "fabula.models.surprisal",
    "fabula.judging.part", "fabula.novelty.part", "fabula.review.page", "fabula.review.tables",
    "fabula.studies",
)  # fmt: skip


def fabula_command(name: str = INSTALLED.name) -> Path:
    """The program that forks `fabula`; the installed one where forks are unsafe."""
    if not _CAN_FORK:
        return INSTALLED.with_name(name)
    made_once("socket", _begin)
    return session_folder() / name


def _begin(place: Path) -> None:
    """Begin the server; who asks before it has imported everything waits."""
    with socket.socket(socket.AF_UNIX) as listening, (place.parent / "log").open("ab") as log:
        listening.bind(str(place))
        listening.listen(64)
        command = ["setsid", "--fork", sys.executable, place.with_name("server.py")]
        subprocess.run(command, stdin=listening, stdout=log, stderr=log, cwd="/", check=True)


def inspect_command() -> Path:
    return fabula_command(_INSPECT)


def python_command() -> Path:
    """The same of `python`, for the path of a script and its arguments."""
    return fabula_command(_ANY) if _CAN_FORK else Path(sys.executable)


def write_programs(folder: Path, sources: Path) -> None:
    """Write the programs into the session's folder. `sources` holds the package under test."""
    # A line `#!` may be cut at 127 bytes; a link is short.
    python = folder / "python"
    python.symlink_to(sys.executable)
    path = [str(sources), str(Path(__file__).parents[1])]
    (folder / "server.py").write_text(
        f"import sys\n\nsys.path[1:1] = {path}\nfrom tests.forking import serve\n\n"
        f"serve({str(folder)!r}, {os.getpid()})\n"
    )
    client = _CLIENT.format(python=python, folder=str(folder))
    for name in (INSTALLED.name, _INSPECT, _ANY):
        (folder / name).write_text(client)
        (folder / name).chmod(0o755)


def serve(folder: str, session: int) -> None:
    """Fork for each that asks at the socket, which is the standard input, until the folder or
    pytest's first process is gone."""
    running: dict[int, tuple[int, socket.socket]] = {}
    with socket.socket(fileno=os.dup(0)) as listening:
        _import_all()
        while Path(folder).exists() and Path(f"/proc/{session}").exists():
            clients = {client: child for child, client in running.values()}
            for ready in select.select([listening, *running, *clients], [], [], 1)[0]:
                if ready is listening:
                    client, _ = listening.accept()
                    child = _fork(client)
                    running[os.pidfd_open(child)] = child, client
                elif ready in running:
                    child, client = running.pop(ready)
                    os.close(ready)
                    _, status = os.waitpid(child, 0)
                    _tell(client, status)
                    client.close()
                elif ready in clients:
                    # Whoever asked was killed; the end of the child is met in the next turn.
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(clients[ready], signal.SIGKILL)


def _import_all() -> None:
    for name in _WANTED:
        try:
            importlib.import_module(name)
        except ImportError as error:
            if (error.name or "").startswith("fabula"):
                raise  # what others make may be missing; of our own, the name is wrong
    import tqdm

    from fabula.cli.derived import command_of
    from fabula.core.errors import FabulaError
    from fabula.core.types import Document
    from fabula.jobs.registry import jobs
    from fabula.linguistic.profile import profile_texts
    from fabula.show.page import page_templates

    for job in jobs().values():
        command_of(job)
    with contextlib.suppress(FabulaError):
        # Words, vectors, pipelines and rules of grammar, which are kept until a process ends.
        list(profile_texts([Document("a", "The lamp went round.")]))
    tqdm.tqdm.monitor_interval = 0  # bm25s shows progress, and a thread would be left of it
    # Compiled once for all that fork.
    for name in page_templates().list_templates(
        filter_func=lambda name: name.endswith(".j2") and "templates/" not in name
    ):
        page_templates().get_template(name)
    # numba takes a second until it runs the first kernel, whether or not that is in its cache.
    use_kernels()
    gc.collect()
    gc.freeze()


def use_kernels() -> None:
    """Build and search a small reference: what numba has not kept of its kernels is compiled.

    Not those that work on several threads: OpenMP ends a process that is forked from one with its
    threads.
    """
    import fabula
    from fabula.core.types import Document
    from fabula.novelty.job import NearOptions
    from fabula.novelty.measure import OriginalityMeasure
    from fabula.reference.search import Reference

    with tempfile.TemporaryDirectory() as folder:
        texts = [f"The lamp went round, and she counted {k} ships." for k in range(9)]
        reference = fabula.reference_build(texts, Path(folder, "r"), jobs=1)
        for match in "verbatim", "near":
            fabula.originality(texts, reference, match=match, jobs=1)
        vectors = Path(folder, "vectors.txt")
        vectors.write_text("lamp 1 0\nships 0 1\n")
        with contextlib.closing(Reference.open(Path(folder, "r"))) as opened:
            for preset in None, "paper":
                near = NearOptions(preset=preset, vectors=str(vectors)).open(opened)
                list(OriginalityMeasure(opened, near=near).measure([Document("a", texts[0])]))


def _fork(client: socket.socket) -> int:
    """Begin what the client asks for, and tell it the number of the process."""
    header, streams, _, _ = socket.recv_fds(client, 4, 3)
    (n_bytes,) = struct.unpack("!i", header)
    with client.makefile("rb") as stream:
        asked = marshal.loads(stream.read(n_bytes))
    child = os.fork()
    if not child:
        for number, stream_fd in enumerate(streams):
            os.dup2(stream_fd, number)
        os.closerange(3, max(streams) + 1)
        os.setpgid(0, 0)
        os._exit(_run(_become(*asked)))
    for stream_fd in streams:
        os.close(stream_fd)
    _tell(client, child)
    return child


def _tell(client: socket.socket, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):
        client.sendall(struct.pack("!i", number))


def _run(script: Path) -> int:
    """Run the script and end as the interpreter does, but for taking its modules apart.

    Every page that this touches would have to be copied first.
    """
    code: object = 0
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001 (nothing stands above it)
        traceback.print_exc()
        code = 1
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError as error:
        print(f"Exception ignored: {error}", file=sys.stderr)
        code = 120
    sys.stderr.flush()
    return (code or 0) & 0xFF


def _become(arguments: list[str], folder: str, environment: dict[str, str]) -> Path:
    """Make this the process that Python begins for the script, which is given back."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update({"FABULA_JOBS": "1"} | environment)
    time.tzset()
    name = Path(arguments[0]).name
    sys.argv = arguments[1:] if name == _ANY else [str(INSTALLED.with_name(name)), *arguments[1:]]
    script = Path(sys.argv[0])
    sys.path[0] = str(script.parent)
    return script
