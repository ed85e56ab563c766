"""A judge's run on disk: starting, resuming and finishing it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fabula.errors import InputError
from fabula.judging.judge_prompts import PAIR_SCALE
from fabula.judging.judging_plan import ANSWERS, AnswerBook, JudgePlan
from fabula.models.replay import recorded
from fabula.models.verdicts import read_verdict
from fabula.resume import KeptRows, Row
from fabula.rubrics.load import load_rubric, rubric_toml
from fabula.store import RUN, RowWriter, measurement_row, read_measurements, write_rows, write_whole
from fabula.types import Measurement, Rubric, Signature

_TEXTS = ("id", "item", "model", "prompt_digest")
"""The fields of an answer that are texts."""


class RunFolder:
    """A folder with `run.json`, `rubric.toml`, `answers.jsonl` and, when done, measurements."""

    def __init__(self, path: Path, plan: JudgePlan, again: Collection[str] = ()) -> None:
        if path.exists() and not path.is_dir():
            raise InputError(f"{path}: is a file; `out` must name a folder")
        self.path = path
        self._plan = plan
        self._again = again
        self._has_begun = False
        self._rows: KeptRows | None = None
        self._earlier: Path | None = None
        """The answers of an earlier run, which this one sets aside."""

    @contextmanager
    def open(self, *, restart: bool = False) -> Iterator[AnswerBook]:
        """Open the answers so far, as their only writer.

        The folder is not changed until the first answer is written or `begin` is called; a restart
        sets old answers aside then. Raises `InputError` if the folder holds another kind of run,
        `BusyError` if another process has it open.
        """
        is_new, had_answers = not self.path.exists(), (self.path / "answers.jsonl").exists()
        with RowWriter(self.path / "answers.jsonl", restart=restart) as file:
            for number, row in enumerate(file.kept, 1):
                try:
                    good = all(isinstance(row.get(name), str) for name in _TEXTS)
                    good &= all(isinstance(row.get(name), int) for name in ("sample", "seed"))
                    if good and not row.get("failed"):
                        recorded(row)
                except (TypeError, ValueError, AttributeError):
                    good = False
                if not good:
                    raise InputError(
                        f"{file.path}, line {number}: not an answer from a judge; choose another "
                        "`out`"
                    )
            if file.kept and not restart:
                self._check_same()
            self._earlier = file.path if file.kept and restart else None
            self._rows = KeptRows(ANSWERS, file, restart=restart)
            try:
                yield AnswerBook(self._rows, self._is_asked_again)
            finally:
                if not (self._has_begun or had_answers):
                    # A model that is not available leaves nothing behind.
                    file.path.unlink()
                    if is_new:
                        self.path.rmdir()

    def _is_asked_again(self, row: Row) -> bool:
        """Whether an answer lacks its verdict for one of the reasons in `again`."""
        if not self._again:
            return False
        plan = self._plan
        known = {item.id: item.scale for item in plan.rubric.items}
        scale = PAIR_SCALE if plan.kind == "pairs" else known.get(row["item"])
        if scale is None:
            return False
        return read_verdict(recorded(row), scale, plan.template.style).missing_reason in self._again

    def begin(self) -> None:
        """Start writing: the folder now belongs to this run."""
        if self._has_begun or self._rows is None:
            return
        self._has_begun = True
        if self._earlier is not None:
            number = 1 + len(list(self.path.glob("answers.before-restart-*.jsonl")))
            aside = self.path / f"answers.before-restart-{number}.jsonl"
            write_whole(aside, self._earlier.read_bytes())
        self._rows.begin()
        # Until this run is finished there are no measurements; those of the last run are removed.
        (self.path / "measurements.jsonl").unlink(missing_ok=True)
        write_whole(self.path / "rubric.toml", rubric_toml(self._plan.rubric).encode())
        settings = {**RUN.mark, "kind": "judge", "signature": str(self._plan.signature("*"))}
        write_rows(self.path / "run.json", [settings])

    def _check_same(self) -> None:
        """Samples and wordings may be added, and answers parsed again; all else must be unchanged.

        When truncated answers are asked again, the token limit may grow: complete answers stay
        valid.
        """
        try:
            row = json.loads((self.path / "run.json").read_bytes())
            signature = str(row["signature"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{self.path}: contains answers without a run.json that says how they were "
                "obtained; choose another `out`"
            ) from error
        RUN.check(row, self.path / "run.json")
        was, now = Signature.parse(signature), self._plan.signature("*")
        free = ["samples:", "paraphrases:", "reader:", "v:"]
        limit = dict(was.parts).get("tokens", "")
        if "truncated" in self._again and limit.isdecimal() and int(limit) < self._plan.max_tokens:
            free.append("tokens:")
        differences = [one for one in was.differences(now) if not one.startswith(tuple(free))]
        if differences:
            raise InputError(
                f"{self.path}: was judged with other settings ({'; '.join(differences)}); choose "
                "another `out`, or start over with `restart`"
            )

    def finish(self, measurements: Sequence[Measurement]) -> None:
        """Write the measurements atomically."""
        rows = map(measurement_row, measurements)
        write_rows(self.path / "measurements.jsonl", rows, are_results=True)


def read_run(path: Path) -> tuple[Rubric, list[Measurement]]:
    """The rubric and the measurements of a finished run. Raises `InputError`."""
    if not (path / "rubric.toml").exists():
        raise InputError(f"{path}: is not a run of `fabula judge`")
    if not (path / "measurements.jsonl").exists():
        raise InputError(f"{path}: is not finished; run the command that made it again")
    rubric = load_rubric(path / "rubric.toml")
    return rubric, list(read_measurements(path / "measurements.jsonl"))
