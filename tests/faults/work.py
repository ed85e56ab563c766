"""Of each way in which jobs keep what is done, one or two: what it reads, and what it leaves.

Shards of a corpus (build, add, remove); rows, computed (originality) and asked for (elicit); the
answers of a run (judge); whole files (report). What a study keeps is in `studies/test_crashes`.
"""

import hashlib
import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.forking import fabula_command, python_command
from tests.session_folder import made_once

ROOT = Path(__file__).parents[2]
_SCRIPT = Path(__file__).with_name("disturbed.py")
_WORDS = (ROOT / "examples" / "the-count.txt").read_text(encoding="utf-8").split()
_ANSWERS = ("answers.jsonl", "run.json")
"""Of a run with a model: in the order in which answers came, with the time."""


@dataclass(frozen=True)
class Job:
    """A command line, in which `{model}` is the address of a model, and what it writes."""

    command: str
    out: str
    left_out: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    """Commands that write what this one reads, run once."""
    codes: tuple[int, ...] = (0,)
    """With what it may end where it is run again."""


JOBS = {
    "reference build": Job(
        "reference build books --out out.ref --set running.shard-tokens=400 --jobs 1", "out.ref"),
    "reference add": Job(
        "reference build more.jsonl --add --out out.ref --jobs 1", "out.ref",
        before=("reference build books --out out.ref --jobs 1",)),
    "reference remove": Job(
        "reference remove out.ref t2", "out.ref",
        before=("reference build texts.jsonl --out out.ref --jobs 1",),
        # Where it was killed when all was done, the text is no longer there to remove.
        codes=(0, 3)),
    "originality": Job(
        "originality texts.jsonl --reference books.ref --out out.jsonl --jobs 1", "out.jsonl",
        before=("reference build books --out books.ref --jobs 1",)),
    "elicit": Job(
        "feedback elicit corrupted.jsonl --model {model} --yes --out out.jsonl", "out.jsonl",
        before=("feedback corrupt texts.jsonl --methods swap --out corrupted.jsonl",)),
    "judge": Job(
        "judge texts.jsonl --model {model} --yes --style verdict-first --out out", "out",
        left_out=_ANSWERS),
    "report": Job(
        "report texts.jsonl --reference books.ref --out out.html --jobs 1",
        "out.html", before=("reference build books --out books.ref --jobs 1",)),
}  # fmt: skip


def _write_inputs(folder: Path) -> None:
    """Books, and stories that were dealt from the words of one."""
    shutil.copytree(ROOT / "examples" / "library", folder / "books")
    rng = random.Random(1)
    for name, n_texts in ("texts.jsonl", 4), ("more.jsonl", 3):
        rows = []
        for k in range(n_texts):
            sentences = []
            for _ in range(9):
                start = rng.randrange(len(_WORDS) - 16)
                said = " ".join(_WORDS[start : start + rng.randrange(7, 16)]).strip(".,;:?!\"'“”‘’")
                sentences.append(said[0].upper() + said[1:] + ".")
            rows.append({"id": f"{name[0]}{k}", "text": " ".join(sentences), "author": f"a{k % 2}"})
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / name).write_text(lines, encoding="utf-8")


def prepared(job: Job, folder: Path) -> Path:
    """A folder in which the job's command can run; what is made for it is made once a session."""

    def make(place: Path) -> None:
        place.mkdir()
        _write_inputs(place)
        for command in job.before:
            subprocess.run(
                [fabula_command(), *command.split()], cwd=place, check=True, capture_output=True
            )

    digest = hashlib.sha256(repr(job.before).encode()).hexdigest()[:12]
    shutil.copytree(made_once(f"faults-{digest}", make), folder)
    return folder


def left(job: Job, folder: Path) -> dict[str, bytes]:
    """The bytes of every file that the job is to leave, by name."""
    out = folder / job.out
    if out.is_file():
        return {out.name: out.read_bytes()}
    return {
        str(file.relative_to(out)): file.read_bytes()
        for file in sorted(out.rglob("*"))
        if file.is_file() and file.name not in (".lock", *job.left_out)
    }


Done = subprocess.CompletedProcess[str]


def disturbed(
    job: Job, folder: Path, model: str, fault: dict[str, Any], changes: Path | None = None
) -> Callable[[], Done]:
    """Begin the job with a fault; the result waits until it has ended."""
    told = {} if changes is None else {"FABULA_CHANGES": str(changes)}
    command = job.command.format(model=model).split()
    process = subprocess.Popen(
        [python_command(), _SCRIPT, json.dumps(fault), *command], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | told,
    )  # fmt: skip

    def ended() -> Done:
        said, errors = process.communicate(timeout=300)
        return subprocess.CompletedProcess(command, process.returncode, said, errors)

    return ended
