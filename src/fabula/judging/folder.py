"""A judge's run on disk: begin it, go on with it, and leave it whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fabula.errors import InputError
from fabula.judging.run import AnswerBook, JudgePlan
from fabula.rubrics import load_rubric, rubric_toml
from fabula.store import RowWriter, dump_json, measurement_row, read_measurements, write_whole
from fabula.types import Measurement, Rubric, Signature

__all__ = ["RunFolder", "read_run"]

_ANSWER_FIELDS = {"id", "item", "sample", "model", "prompt_digest", "seed"}


class RunFolder:
    """A folder with `run.json`, `rubric.toml`, `answers.jsonl` and, when done, measurements."""

    def __init__(self, path: Path, plan: JudgePlan) -> None:
        if path.exists() and not path.is_dir():
            raise InputError(f"{path}: is a file; --out names a folder")
        self.path = path
        self._plan = plan

    @contextmanager
    def open(self, *, restart: bool = False) -> Iterator[AnswerBook]:
        """The answers so far, and the only right to add to them.

        Raises `InputError` where the folder holds another kind of run, `BusyError` where another
        process has it.
        """
        with RowWriter(self.path / "answers.jsonl") as file:
            for number, row in enumerate(file.kept, 1):
                if not row.keys() >= _ANSWER_FIELDS:
                    raise InputError(
                        f"{file.path}, line {number}: not an answer of a judge; choose another "
                        f"--out"
                    )
            if restart:
                file.clear()
            elif file.kept:
                self._check_same()
            file.begin()
            # Until this run is done there are no measurements, not those of the last one.
            (self.path / "measurements.jsonl").unlink(missing_ok=True)
            write_whole(self.path / "rubric.toml", rubric_toml(self._plan.rubric).encode())
            write_whole(self.path / "run.json", (dump_json(self._settings()) + "\n").encode())
            yield AnswerBook(file.kept, file.write)

    def _settings(self) -> dict[str, Any]:
        return {"kind": "judge", "signature": str(self._plan.signature("*"))}

    def _check_same(self) -> None:
        """Samples may be added to a run; all else must be as it was."""
        try:
            signature = str(json.loads((self.path / "run.json").read_bytes())["signature"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{self.path}: holds answers without a run.json that says how they were asked; "
                f"choose another --out"
            ) from error
        differences = [
            difference
            for difference in Signature.parse(signature).differences(self._plan.signature("*"))
            if not difference.startswith(("samples:", "v:"))
        ]
        if differences:
            raise InputError(
                f"{self.path}: was judged in another way ({'; '.join(differences)}); choose "
                f"another --out, or begin anew with --restart"
            )

    def finish(self, measurements: Sequence[Measurement]) -> None:
        """Write the measurements, whole."""
        lines = "".join(dump_json(measurement_row(one)) + "\n" for one in measurements)
        write_whole(self.path / "measurements.jsonl", lines.encode(errors="replace"))


def read_run(path: Path) -> tuple[Rubric, list[Measurement]]:
    """The rubric and the measurements of a finished run. Raises `InputError`."""
    if not (path / "rubric.toml").exists():
        raise InputError(f"{path}: is no run of `fabula judge`")
    if not (path / "measurements.jsonl").exists():
        raise InputError(f"{path}: is not finished; run the command that made it again")
    rubric = load_rubric(path / "rubric.toml")
    return rubric, list(read_measurements(path / "measurements.jsonl"))
