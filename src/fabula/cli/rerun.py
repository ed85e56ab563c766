"""Rerun a result: whether it is the same, and how it differs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabula.core import provenance
from fabula.core.errors import InputError
from fabula.core.provenance import Record
from fabula.core.settings import Settings, setting
from fabula.core.store import CHECKSUM
from fabula.jobs.registry import jobs
from fabula.jobs.result import Result, picked

_N_SHOWN = 5
_LEFT_OUT = (".lock", "run.json", "answers.jsonl")
"""Files of a folder that depend on when a model answered and not on what it said."""


@dataclass(frozen=True, slots=True)
class RerunSettings(Settings):
    """What is rerun."""

    keep: Path | None = setting(
        None, help="Keep what was made again in this folder, which must not exist.", unit="DIR"
    )


@dataclass(frozen=True, slots=True, repr=False)
class Rerun(Result):
    """The outcome of a rerun."""

    result: str
    command: str
    numbers: tuple[str, ...]
    """How the results differ; empty if their bytes are equal."""
    causes: tuple[str, ...]
    """What else differs between then and now: inputs, versions, machine, models."""

    @property
    def is_equal(self) -> bool:
        return not self.numbers

    def to_json(self) -> dict[str, Any]:
        content = picked(self, "result", "command", "is_equal")
        return content | {"numbers": list(self.numbers), "causes": list(self.causes)}

    def lacking(self) -> str | None:
        return None if self.is_equal else ""

    def lines(self) -> list[str]:
        if self.is_equal:
            but = " all the same" if self.causes else ""
            return [f"{self.result}: equal, byte for byte{but}", *self.causes]
        lines = [f"{self.result}: differs", *self.numbers]
        usual = ["inputs, versions, machine and models are as they were"]
        return [*lines, *(["what else differs:", *self.causes] if self.causes else usual)]


def rerun(result: str, settings: RerunSettings, *, runner: Any = None) -> Rerun:
    """Make RESULT again from the record beside it, and show the differences.

    RESULT is a file or folder that a command of Fabula wrote; RESULT.provenance.json says how. The
    new result goes into a temporary folder, so RESULT does not change. Models are asked again,
    which may cost money. The exit code is 1 if the results differ.

    A record may come from somebody else. Whatever it says, all that is written goes into that
    folder, commands that do more than make a result are refused, and files elsewhere and servers
    are named and asked about first (--yes agrees).

    Raises `InputError`, also from Python: it is a command that makes a result again.
    """
    # `runner` is handed in by the command line, which knows commands: its `CommandRunner`.
    if runner is None:
        raise InputError(f"a result is made again by its command: run `fabula rerun {result}`")
    place = Path(result.rstrip("/").removesuffix(".provenance.json"))
    record = provenance.read_record(place)
    if not place.exists():
        raise InputError(f"{place}: does not exist, so there is nothing to compare with")
    original = place.resolve()
    # The settings that may have named the result, that of its own place first.
    outputs = {name: str(output["path"]) for name, output in record["outputs"].items()}
    names = [name for name, path in outputs.items() if Path(path).name == original.name]
    if not names:
        raise InputError(f"{provenance.record_path(place)}: is the record of another result")
    home = provenance.folder_of_record(record, original)
    name = min(names, key=lambda name: (home / outputs[name]).resolve() != original)
    if settings.keep is not None and settings.keep.exists():
        raise InputError(f"{settings.keep}: already exists; choose another folder with `keep`")
    with tempfile.TemporaryDirectory(prefix="fabula-rerun-") as aside:
        folder = Path(aside) if settings.keep is None else settings.keep.resolve()
        remade = _made_again(record, original, name, folder, runner)
        if not remade.exists():
            raise InputError(
                f"{place}: the command ended without writing it again; run "
                f"`fabula {record['command']}` to see why"
            )
        numbers = compare_results(original, remade)
        before, after = provenance.steps_of(record, original), provenance.read_record(remade)
        steps = zip(before, provenance.steps_of(after, remade), strict=False)
        differing = (line for step in steps for line in provenance.differences(*step))
        causes = list(dict.fromkeys(differing))
    if provenance.digest_of(original) != record["outputs"][name]["sha256"]:
        causes.insert(0, f"{place} has changed since the record was written")
    return Rerun(str(place), f"fabula {record['command']}", tuple(numbers), tuple(causes))


def _made_again(record: Record, original: Path, name: str, place: Path, runner: Any) -> Path:
    """Where the result is that the setting `name` names, after the steps of the record.

    Whatever else they write goes into the folder `place`; what they read elsewhere is agreed.
    """
    remade = place / name / original.name
    for step in provenance.steps_of(record, original):
        # Of what was changed in place, the steps before make and change the same one.
        is_before = step is not record
        targets = {
            other: remade
            if other == name or (is_before and Path(output["path"]).name == original.name)
            else place / other / Path(output["path"]).name
            for other, output in step["outputs"].items()
        }
        folder = provenance.folder_of_record(step, original).resolve()
        # A folder further up would make everything below it the record's own.
        near = {original.parent, place} | ({folder} & set(original.parents[:2]))
        words, settings = step["command"], dict(step["settings"])
        if words.startswith("fabula."):
            raise InputError(
                f"it was saved from Python, by `{words}()`; repeat that call with the settings of "
                "the record"
            )
        if (job := jobs().get(words)) is None:
            raise InputError(f"`fabula {words}` is not a command of this version")
        if job.acts:
            raise InputError(
                f"`fabula {words}` does more than make a result, so a record does not start it; "
                "run the command yourself if you trust the record"
            )
        for key in dict.fromkeys([*targets, *runner.written_by(words, settings)]):
            target = targets.get(key) or place / key / Path(str(settings[key])).name
            target.parent.mkdir(parents=True, exist_ok=True)
            settings[key] = str(target)
        if any("-" in value for value in settings.values() if isinstance(value, list)):
            raise InputError(
                "its texts came from standard input, which is not kept; nothing to rerun"
            )
        runner.run(words, settings, folder, near)
    return remade


def compare_results(before: Path, after: Path) -> list[str]:
    """How two results of one command differ, file by file; for rows, also field by field."""
    if not before.is_dir():
        return list(_of_files(before, after, after.name))
    from fabula.reference.files import HELD_OUT

    old, new = (
        {
            path.relative_to(folder).as_posix()
            for path in folder.rglob("*")
            if path.is_file() and path.name not in _LEFT_OUT
        }
        for folder in (before, after)
    )
    names = old | new
    if "manifest.json" in old & new and HELD_OUT not in old & new:
        # `reference measure` adds this to a corpus.
        names.discard(HELD_OUT)
    return [line for name in sorted(names) for line in _of_files(before / name, after / name, name)]


def _of_files(before: Path, after: Path, name: str) -> Iterator[str]:
    for path, when in (before, "then"), (after, "now"):
        if not path.is_file():
            yield f"{name}: was not written {when}"
            return
    old, new = before.read_bytes(), after.read_bytes()
    if old == new:
        return
    then, now = (_rows(data) if before.suffix == ".jsonl" else None for data in (old, new))
    if then is None or now is None:
        yield f"{name}: {len(old):,} bytes then, {len(new):,} now, and not the same"
        return
    if len(then) != len(now):
        yield f"{name}: {len(then):,} rows then, {len(now):,} now"
    pairs = enumerate(zip(then, now, strict=False), 1)
    differing = [(number, *_first_difference(a, b)) for number, (a, b) in pairs if a != b]
    for number, field, was, is_ in differing[:_N_SHOWN]:
        yield f"{name}, row {number}: {field} {was} then, {is_} now"
    if len(differing) > _N_SHOWN:
        yield f"{name}: {len(differing) - _N_SHOWN:,} more rows differ"
    if not differing and len(then) == len(now):
        yield f"{name}: the same rows, in different bytes"


def _rows(data: bytes) -> list[Any] | None:
    try:
        rows = [json.loads(line) for line in data.splitlines()]
    except (ValueError, RecursionError):
        return None
    return [
        {name: row[name] for name in row if name != CHECKSUM} if isinstance(row, dict) else row
        for row in rows
    ]


def _first_difference(a: Any, b: Any, name: str = "") -> tuple[str, str, str]:
    """The name of the first field that differs, and its two values, truncated."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys([*a, *b]):
            if a.get(key) != b.get(key):
                return _first_difference(a.get(key), b.get(key), f"{name}.{key}" if name else key)
    was, now = (json.dumps(value, ensure_ascii=False)[:60] for value in (a, b))
    return name or "value", was, now
