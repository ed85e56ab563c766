"""The documents that are served, and how a changed corpus replaces the previous one."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabula.errors import CorpusError, FabulaError
from fabula.reference.search import Reference
from fabula.reference.storage import HELD_OUT


@dataclass(frozen=True, slots=True)
class State:
    """What is served at a time."""

    key: str
    """Its fingerprint, and a digest of all its manifests, including the order of documents."""
    reference: Reference


class Served:
    """The current state of corpora on this machine's disk.

    Raises `CorpusError` if the corpora cannot be opened at first. If a later change cannot be read,
    the previous state remains in service, and `problem` says why.
    """

    def __init__(
        self, paths: Sequence[str | Path], *, say: Callable[[str], None] = lambda _: None
    ) -> None:
        self.paths = list(paths)
        self.problem: str | None = None
        self.n_reloads = 0
        self._say = say
        self._wake, self._ends = threading.Event(), threading.Event()
        self.now = self._opened()

    def reload(self) -> bool:
        """Serve the current content of the disk; returns whether the state changed."""
        try:
            if self._digest() == self.now.key.rpartition("@")[2]:
                self.problem = None
                return False
            self.now = state = self._opened()
        except (FabulaError, OSError, ValueError, IndexError, MemoryError) as error:
            # Inconsistent files may raise any of these errors.
            if self.problem is None:
                self._say(
                    f"the changed corpus cannot be served, so the previous state still is: {error}"
                )
            self.problem = str(error) or type(error).__name__
            return False
        self.problem = None
        self.n_reloads += 1
        self._say(f"now serving {state.reference.size}, {state.reference.fingerprint}")
        return True

    def held_out(self) -> list[dict[str, object]]:
        """The stored scores of the corpora's own documents, read now."""
        files = (Path(path, HELD_OUT) for path in self.paths)
        lines = (line for file in files if file.exists() for line in file.read_bytes().splitlines())
        return list(map(json.loads, lines))

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
        before = self._digest()
        reference = Reference.open(*self.paths, report=self._say)
        if self._digest() != before:
            raise CorpusError(f"{self.paths[0]}: is being changed; try again in a moment")
        # Compile the kernels now, not while a client waits.
        reference.longest_matches(["a"], exclude=[0] if len(reference.about.removed) else [])
        return State(f"{reference.fingerprint}@{before}", reference)

    def _digest(self) -> str:
        """A digest of the manifests; it changes if a document is removed or added."""
        files = (Path(path, "manifest.json") for path in self.paths)
        # If there is none, opening reports it.
        digests = (hashlib.sha256(f.read_bytes() if f.exists() else b"").digest() for f in files)
        return hashlib.sha256(b"".join(digests)).hexdigest()[:16]
