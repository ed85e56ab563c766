"""The peer: infini-gram's own index and search, over the same token ids."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg  # noqa: F401 (see below)
from numpy.typing import NDArray

# On a tiny index the engine's `creativity` crashes now and then, also where no kernel has run,
# depending on what the process has loaded before; with scipy's linear algebra it was not seen to.
SEPARATOR = 0xFFFF


def to_peer_ids(tokens: NDArray[np.uint32]) -> NDArray[np.uint16]:
    """Ids as the peer takes them: 16 bits, a document begins with 0xFFFF (ours ends with 0).

    Ids above 65,534 would not fit; rank them by frequency first, and let the rarest share one.
    """
    if int(tokens.max()) >= SEPARATOR:
        raise ValueError("ids must be below 65,535")
    out = np.empty(len(tokens), np.uint16)
    out[0] = SEPARATOR
    out[1:] = tokens[:-1]
    out[out == 0] = SEPARATOR
    return out


def write_tokens(tokens: NDArray[np.uint32], folder: Path) -> None:
    """The peer's tokenised files, so that its indexing skips its own tokeniser."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    ids = to_peer_ids(tokens)
    ids.tofile(folder / "tokenized.0")
    (2 * np.flatnonzero(ids == SEPARATOR)).astype(np.uint64).tofile(folder / "offset.0")


def index_command(folder: Path, n_threads: int, memory_gb: int = 8) -> list[str]:
    """The peer's indexing over files of `write_tokens`."""
    command = [sys.executable, "-m", "infini_gram.indexing"]
    command += ["--data_dir", str(folder / "data"), "--save_dir", str(folder)]
    command += ["--temp_dir", str(folder), "--token_dtype", "u16", "--ulimit", "20000"]
    return [*command, "--cpus", str(n_threads), "--mem", str(memory_gb)]


def build_index(folder: Path, *, n_threads: int = 2) -> None:
    """Run the peer's indexing."""
    subprocess.run(index_command(folder, n_threads), check=True, capture_output=True, text=True)


def open_engine(folder: Path) -> Any:
    """The peer's engine over a built index."""
    from infini_gram.engine import InfiniGramEngine

    return InfiniGramEngine(
        index_dir=str(folder), eos_token_id=65534, vocab_size=65535, token_dtype="u16"
    )


def longest_matches(engine: Any, query: NDArray[np.uint32]) -> NDArray[np.int32]:
    """The peer's `creativity` as lengths: it gives the end of the longest match at each place."""
    ends = np.array(engine.creativity(input_ids=[int(i) for i in query])["rs"])
    return (ends - np.arange(len(query))).astype(np.int32)
