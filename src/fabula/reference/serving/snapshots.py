"""The documents that are served, and how a changed corpus replaces the previous one."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fabula.errors import CorpusError, FabulaError
from fabula.kernels.packed import Packed, pack, read_packed
from fabula.reference.layout import HELD_OUT, Shard
from fabula.reference.passage_parts import LocalPassages
from fabula.reference.search import Reference
from fabula.reference.storage import open_home

__all__ = ["N_KEPT", "State", "States"]

N_KEPT = 3
"""Number of states kept for clients in mid-run, including the newest."""
_N_TRIES = 5


@dataclass(slots=True)
class State:
    """A snapshot of a reference."""

    key: str
    """Its fingerprint, and a digest of all its manifests, including the order of documents."""
    reference: Reference
    _suffixes: dict[int, Packed] = field(default_factory=dict)
    _passages: dict[str, LocalPassages] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def shards(self) -> list[Shard]:
        return self.reference.local.shards

    @property
    def n_numbers(self) -> int:
        return len(self.reference.about.removed)

    def suffixes(self, k: int) -> Packed:
        """The suffix array of the k-th shard, without removed documents."""
        shard, out = self.shards[k], self.reference.local.excluded(())[k]
        if out is None:
            return shard.suffixes
        with self._lock:
            if k not in self._suffixes:
                suffixes = read_packed(shard.suffixes, 0, shard.suffixes.n_values)
                documents = np.searchsorted(shard.starts, suffixes, side="right") - 1
                kept = pack(suffixes[~out[documents]], shard.suffixes.n_bits)
                # As for the others, so that kernels are compiled only once.
                kept.words.flags.writeable = False
                self._suffixes[k] = kept
            return self._suffixes[k]

    def passages(self, key: str) -> LocalPassages:
        """Passages with the settings `key`, opened once. Raises `CorpusError` if not built."""
        with self._lock:
            if key not in self._passages:
                self._passages[key] = self.reference.local.passages(key)
            return self._passages[key]

    def n_ends(self, k: int) -> int:
        """The number of documents of the k-th shard not removed: each has one end."""
        out = self.reference.local.excluded(())[k]
        return len(self.shards[k].starts) - (0 if out is None else int(out.sum()))


class States:
    """The current state, and the previous ones.

    Raises `CorpusError` if the corpora cannot be opened at first. If a later change cannot be read,
    the previous state remains in service, and `problem` says why.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        *,
        n_kept: int = N_KEPT,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.paths = list(paths)
        self.problem: str | None = None
        self.n_reloads = 0
        self.when_changed: Callable[[State], None] = lambda _: None
        self._say = say or (lambda _: None)
        self._n_kept = n_kept
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._wake = threading.Event()
        self._ends = threading.Event()
        self._now = self._opened()
        self._kept = OrderedDict({self._now.key: self._now})

    @property
    def now(self) -> State:
        return self._now

    def of(self, key: str) -> State | None:
        """The state that a client started with, or None if it is no longer kept."""
        with self._lock:
            return self._kept.get(key)

    def reload(self) -> bool:
        """Serve the current content of the disk; returns whether the state changed."""
        with self._turn:
            try:
                if _digest(self.paths) == self._now.key.rpartition("@")[2]:
                    self.problem = None
                    return False
                state = self._opened()
            except (FabulaError, OSError, ValueError, IndexError, MemoryError) as error:
                # Inconsistent files may raise any of these errors.
                if self.problem is None:
                    self._say(
                        "the changed corpus cannot be served, so the previous state still is: "
                        f"{error}"
                    )
                self.problem = str(error) or type(error).__name__
                return False
            self.problem = None
            with self._lock:
                self._kept[state.key] = self._now = state
                self._kept.move_to_end(state.key)
                while len(self._kept) > self._n_kept:
                    self._kept.popitem(last=False)
            self.n_reloads += 1
            self.when_changed(state)
            self._say(f"now serving {state.reference.size}, {state.reference.fingerprint}")
            return True

    def held_out(self) -> list[dict[str, object]]:
        """The stored scores of the corpora's own documents, read now.

        Scores of an earlier state are included: their signature identifies it.
        """
        kept = [open_home(path).read(HELD_OUT) or b"" for path in self.paths]
        return [json.loads(line) for data in kept for line in data.splitlines()]

    def watch(self, every_s: float) -> None:
        """Check for changes until `end` is called, and immediately when `wake` is called."""
        while not self._ends.is_set():
            self._wake.wait(every_s)
            self._wake.clear()
            if not self._ends.is_set():
                self.reload()

    def wake(self) -> None:
        self._wake.set()

    def end(self) -> None:
        self._ends.set()
        self._wake.set()

    def _opened(self) -> State:
        for _ in range(_N_TRIES):
            before = _digest(self.paths)
            reference = Reference.open(*self.paths, report=self._say)
            if _digest(self.paths) == before:
                # Compile the kernels now, not while a client waits.
                reference.longest_matches(
                    ["a"], exclude=[0] if len(reference.about.removed) else []
                )
                return State(f"{reference.fingerprint}@{before}", reference)
        raise CorpusError(f"{self.paths[0]}: changes faster than it can be opened; try again later")


def _digest(paths: Sequence[str | Path]) -> str:
    """A digest of the manifests; it changes if a document is removed or added."""
    digest = hashlib.sha256()
    for path in paths:
        # If there is none, opening reports it.
        manifest = open_home(path).read("manifest.json") or b""
        digest.update(hashlib.sha256(manifest).digest())
    return digest.hexdigest()[:16]
