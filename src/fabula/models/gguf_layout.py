"""Where the output layer lies in a GGUF file: found once, and remembered.

    CACHE/gguf/KEY.json     the file's size and time, its settings, and its output tensors

The library goes through a vocabulary entry by entry, which takes seconds; what is needed of it is a
few numbers, that stay until the file changes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fabula.errors import ModelError
from fabula.store import cache_folder, dump_json, write_whole

__all__ = ["Layout", "Tensor", "read_layout"]

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a file: its axes in the file's order, the fastest first."""

    shape: tuple[int, ...]
    offset: int
    n_bytes: int
    kind: int
    """The library's number of how it is packed."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What a file says of its model. Of a list among the settings, only how long it is."""

    settings: dict[str, Any]
    tensors: dict[str, Tensor]
    """Those of the output layer, and the input layer's, which may be the same."""


def read_layout(gguf: Any, path: Path) -> Layout:
    """The layout of a file, by the library `gguf` where it is not known yet.

    Raises `ModelError` for a big-endian file, and what the library raises for a damaged one.
    """
    note, state = _note(path)
    known = _known(note, state)
    if known is not None:
        return known
    reader = gguf.GGUFReader(path)
    if reader.byte_order != "I":
        raise ModelError(f"{path}: is big-endian, and only little-endian GGUF files can be read")
    settings = {
        # Lists are a vocabulary long, and only how long matters here.
        key: len(field.data) if field.types[:1] == [gguf.GGUFValueType.ARRAY] else field.contents()
        for key, field in reader.fields.items()
    }
    tensors = {
        one.name: Tensor(
            tuple(int(n) for n in one.shape),
            int(one.data_offset),
            int(one.n_bytes),
            int(one.tensor_type),
        )
        for one in reader.tensors
        if one.name.startswith("output.") or one.name == "token_embd.weight"
    }
    layout = Layout(settings, tensors)
    with contextlib.suppress(OSError, TypeError):
        # A folder that cannot be written to costs the time again, and nothing else.
        note.parent.mkdir(parents=True, exist_ok=True)
        row = {"format": _FORMAT, "state": state, **asdict(layout)}
        write_whole(note, dump_json(row).encode())
    return layout


def _note(path: Path) -> tuple[Path, list[int]]:
    """Where the layout of a file is remembered, and what tells whether the file has changed."""
    place = os.path.realpath(path).encode(errors="surrogateescape")
    found = path.stat()
    key = hashlib.sha256(place).hexdigest()[:16]
    state = [found.st_size, found.st_mtime_ns, found.st_ino]
    return cache_folder() / "gguf" / f"{key}.json", state


def _known(note: Path, state: list[int]) -> Layout | None:
    """What was remembered of a file that is in this state; None where nothing was."""
    try:
        row = json.loads(note.read_bytes())
        if (row["format"], row["state"]) != (_FORMAT, state):
            return None
        tensors = {
            name: Tensor(tuple(map(int, one["shape"])), one["offset"], one["n_bytes"], one["kind"])
            for name, one in row["tensors"].items()
        }
        return Layout(dict(row["settings"]), tensors)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
