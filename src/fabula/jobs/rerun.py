"""Rerun a result: whether it is the same, and how it differs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabula.formats import CHECKSUM
from fabula.settings import Settings, setting

_N_SHOWN = 5
_LEFT_OUT = (".lock", "run.json", "answers.jsonl")
"""Files of a folder that depend on when a model answered and not on what it said."""


@dataclass(frozen=True, slots=True)
class RerunSettings(Settings):
    """What is rerun."""

    keep: Path | None = setting(
        None, help="Keep what was made again in this folder, which must not exist.", unit="DIR"
    )


@dataclass(frozen=True, slots=True)
class Rerun:
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
        return {
            "result": self.result,
            "command": self.command,
            "is_equal": self.is_equal,
            "numbers": list(self.numbers),
            "causes": list(self.causes),
        }

    def lines(self) -> list[str]:
        """Lines for display."""
        if self.is_equal:
            but = " all the same" if self.causes else ""
            return [f"{self.result}: equal, byte for byte{but}", *self.causes]
        found = [f"{self.result}: differs", *self.numbers]
        if not self.causes:
            return [*found, "inputs, versions, machine and models are as they were"]
        return [*found, "what else differs:", *self.causes]


def compare_results(before: Path, after: Path) -> list[str]:
    """How two results of one command differ, file by file; for rows, also field by field."""
    if not before.is_dir():
        return list(_of_files(before, after, after.name))
    found: list[str] = []
    for name in _compared(_files_in(before), _files_in(after)):
        found += _of_files(before / name, after / name, name)
    return found


def _compared(old: Collection[str], new: Collection[str]) -> list[str]:
    """The files to compare.

    Left out is what `reference measure` adds to a corpus, if only one has it.
    """
    from fabula.reference.storage import HELD_OUT

    in_both = set(old) & set(new)
    is_corpus = "manifest.json" in in_both
    return [
        name
        for name in sorted({*old, *new})
        if name in in_both or not (is_corpus and name == HELD_OUT)
    ]


def _files_in(folder: Path) -> list[str]:
    return [
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in _LEFT_OUT
    ]


def _of_files(before: Path, after: Path, name: str) -> Iterator[str]:
    for path, when in (before, "then"), (after, "now"):
        if not path.is_file():
            yield f"{name}: was not written {when}"
            return
    old, new = before.read_bytes(), after.read_bytes()
    if old == new:
        return
    rows = [_rows(data) for data in (old, new)] if before.suffix == ".jsonl" else [None, None]
    if rows[0] is None or rows[1] is None:
        yield f"{name}: {len(old):,} bytes then, {len(new):,} now, and not the same"
        return
    if len(rows[0]) != len(rows[1]):
        yield f"{name}: {len(rows[0]):,} rows then, {len(rows[1]):,} now"
    differing = [
        (number, *_first_difference(a, b))
        for number, (a, b) in enumerate(zip(*rows, strict=False), 1)
        if a != b
    ]
    for number, field, was, now in differing[:_N_SHOWN]:
        yield f"{name}, row {number}: {field} {was} then, {now} now"
    if len(differing) > _N_SHOWN:
        yield f"{name}: {len(differing) - _N_SHOWN:,} more rows differ"
    if not differing and len(rows[0]) == len(rows[1]):
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
    was, now = (json.dumps(one, ensure_ascii=False)[:60] for one in (a, b))
    return name or "value", was, now
