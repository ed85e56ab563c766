"""Building a reference corpus: documents in, immutable shards out.

Documents come as a stream and are cut into batches; batches become words in parallel; whole batches
fill a shard until it is full. Where a batch or a shard ends depends only on the documents and the
parameters, never on the number of workers or on an interruption, and so does every byte written.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import zstandard
from numpy.typing import NDArray

from fabula import __version__
from fabula.errors import CorpusError, InputError
from fabula.kernels.match import count_pairs, fill_pair_table, pair_slots
from fabula.kernels.suffix import build_suffix_array
from fabula.reference.layout import (
    Manifest,
    ShardInfo,
    Strings,
    checksums,
    content_digest,
    document_line,
    read_shard_info,
)
from fabula.store import dump_json, fresh_folder, publish_folder, write_whole, writer_lock
from fabula.text import TextSettings
from fabula.types import Document

__all__ = ["BuildParameters", "add_documents", "build_reference"]

_JOURNAL = "building.json"
_BATCH_CHARS = 1 << 20
_BLOCK_CHARS = 1 << 16
_N_SMALL = 8
"""So few batches are not worth starting workers for."""

_RESERVED_BYTES = 400 << 20
"""The interpreter, the compiled kernels, and a worker's batch."""
_BYTES_PER_TOKEN = 18
"""Measured while a suffix array is built, a copy of the tokens included."""
_BYTES_PER_WORD = 250
"""A word of the vocabulary in a Python dictionary, and while it is sorted."""
_MAX_SHARD_TOKENS = 2**32 - 2

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class BuildParameters:
    """What decides where shards end."""

    shard_tokens: int = 1 << 27
    memory_bytes: int = 4 << 30

    def __post_init__(self) -> None:
        if not 1 <= self.shard_tokens <= _MAX_SHARD_TOKENS:
            raise InputError(f"--shard-tokens must lie between 1 and {_MAX_SHARD_TOKENS:,}")
        if self.memory_bytes < 2 * _RESERVED_BYTES:
            raise InputError(f"--memory must be at least {2 * _RESERVED_BYTES >> 20} MB")

    @property
    def batch_chars(self) -> int:
        # Small shards, as in tests, need batches of their size. Four characters make a token.
        return min(_BATCH_CHARS, 4 * self.shard_tokens)

    def is_full(self, n_tokens: int, n_vocabulary: int) -> bool:
        used = _BYTES_PER_TOKEN * n_tokens + _BYTES_PER_WORD * n_vocabulary
        return n_tokens >= self.shard_tokens or used >= self.memory_bytes - _RESERVED_BYTES


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """A batch of documents as words: what a worker hands back."""

    tokens: NDArray[np.uint32]
    """Places in `words` counted from 1; 0 ends each document."""
    words: list[str]
    n_tokens: list[int]
    """By document, its end included."""
    ids: list[str]
    blocks: list[tuple[bytes, int]]
    """Compressed lines, and how many documents they hold."""
    n_read: int
    content: int


def build_reference(
    documents: Iterable[Document],
    path: Path,
    *,
    settings: TextSettings,
    parameters: BuildParameters,
    n_jobs: int,
    restart: bool = False,
    report: Report = lambda stage: None,
) -> Manifest:
    """Build a corpus at `path`, or finish one whose build was interrupted.

    Raises `CorpusError` where `path` holds a corpus already, or an unfinished build of other
    documents or parameters (unless `restart`).
    """
    with writer_lock(path / ".lock", str(path)):
        manifest = Manifest(settings, asdict(parameters))
        if (path / "manifest.json").exists():
            plan = _unfinished(path)
            if plan is not None and plan["first"] == 0 and not restart:
                # The last run was stopped between its last two steps.
                (path / _JOURNAL).unlink()
                return Manifest.read(path)
            if not restart:
                raise CorpusError(
                    f"{path}: holds a reference corpus already; add to it with `fabula reference "
                    f"add`, choose another --out, or replace it with --restart"
                )
            (path / "manifest.json").unlink()
        return _extend(path, manifest, documents, n_jobs, restart, report)


def add_documents(
    documents: Iterable[Document],
    path: Path,
    *,
    n_jobs: int,
    restart: bool = False,
    report: Report = lambda stage: None,
) -> Manifest:
    """Add documents to the corpus at `path`, in new shards; finishes an interrupted addition."""
    Manifest.read(path)
    with writer_lock(path / ".lock", str(path)):
        manifest = Manifest.read(path)
        plan = _unfinished(path)
        if plan is not None and plan["first"] < len(manifest.shards) and not restart:
            # The last addition was stopped between its last two steps. If this is the same one
            # it is done; adding its documents twice would be wrong.
            stream = iter(documents)
            for shard in manifest.shards[plan["first"] :]:
                _check_finished(path / "shards" / shard.name, stream, path)
            (path / _JOURNAL).unlink()
            return manifest
        return _extend(path, manifest, documents, n_jobs, restart, report)


def _extend(
    path: Path,
    manifest: Manifest,
    documents: Iterable[Document],
    n_jobs: int,
    restart: bool,
    report: Report,
) -> Manifest:
    parameters = BuildParameters(**manifest.parameters)
    shards = path / "shards"
    shards.mkdir(exist_ok=True)
    first = len(manifest.shards)
    _begin(path, manifest, restart)
    stream = iter(documents)
    done: list[ShardInfo] = []
    for folder in _finished(shards, first):
        report(f"checking what is done (shard {int(folder.name) + 1})")
        done.append(_check_finished(folder, stream, path))
    for batches in _fill_shards(stream, manifest.settings, parameters, n_jobs, report):
        number = first + len(done)
        done.append(_write_shard(shards / f"{number:05d}", batches, n_jobs, report))
    if not done:
        raise InputError("no document holds a word; a reference needs texts")
    manifest = manifest.with_shards(done)
    write_whole(path / "manifest.json", manifest.to_json())
    (path / _JOURNAL).unlink()
    return manifest


def _unfinished(path: Path) -> dict[str, Any] | None:
    """What a build or addition noted that did not reach its end."""
    journal = path / _JOURNAL
    plan: dict[str, Any] | None = json.loads(journal.read_bytes()) if journal.exists() else None
    return plan


def _begin(path: Path, manifest: Manifest, restart: bool) -> None:
    """Note what is being built; refuse to go on with something else."""
    plan = {
        "fabula": __version__,
        "settings": asdict(manifest.settings),
        "parameters": manifest.parameters,
        "first": len(manifest.shards),
    }
    unfinished = _unfinished(path)
    if unfinished is not None and not restart:
        if unfinished != plan:
            raise CorpusError(
                f"{path}: holds an interrupted build with other parameters or of another version; "
                f"repeat its command, or begin anew with --restart"
            )
        return
    for folder in _finished(path / "shards", len(manifest.shards)):
        shutil.rmtree(folder)
    write_whole(path / _JOURNAL, dump_json(plan).encode())


def _finished(shards: Path, first: int) -> list[Path]:
    """The folders of shards that were written whole, from number `first` on."""
    return sorted(
        folder
        for folder in shards.iterdir()
        if folder.name.isdecimal() and int(folder.name) >= first
    )


def _check_finished(folder: Path, stream: Iterator[Document], path: Path) -> ShardInfo:
    info = read_shard_info(folder)
    content = sum(content_digest([d.text]) for d in islice(stream, info.n_read)) % 2**256
    if f"{content:x}" != info.content:
        raise CorpusError(
            f"{path}: the texts are not those that the interrupted build read; "
            f"give the same ones, or begin anew with --restart"
        )
    return info


def _cut(stream: Iterator[Document], batch_chars: int) -> Iterator[list[Document]]:
    batch: list[Document] = []
    n_chars = 0
    for document in stream:
        batch.append(document)
        # An empty document counts too, or a million of them would be one batch.
        n_chars += len(document.text) + 1
        if n_chars >= batch_chars:
            yield batch
            batch, n_chars = [], 0
    if batch:
        yield batch


def tokenise_batch(documents: list[Document], settings: TextSettings) -> TokenBatch:
    """Turn documents into token ids; those without a word are left out (but counted as read)."""
    known: dict[str, int] = {}
    parts: list[NDArray[np.uint32]] = []
    n_tokens: list[int] = []
    kept: list[Document] = []
    for document in documents:
        raw = settings.raw_words(document.text)
        if not raw:
            continue
        numbers = [known.setdefault(word, len(known) + 1) for word in raw]
        numbers.append(0)
        parts.append(np.array(numbers, np.uint32))
        n_tokens.append(len(numbers))
        kept.append(document)
    # Different raw words may have one normal form; only the distinct ones are worth normalising.
    words: dict[str, int] = {}
    forms = settings.normalise(list(known))
    table = np.zeros(len(known) + 1, np.uint32)
    table[1:] = [words.setdefault(form, len(words) + 1) for form in forms]
    tokens = table[np.concatenate(parts)] if parts else np.empty(0, np.uint32)
    return TokenBatch(
        tokens=tokens,
        words=list(words),
        n_tokens=n_tokens,
        ids=[document.id for document in kept],
        blocks=list(_compress(kept)),
        n_read=len(documents),
        content=content_digest([document.text for document in documents]),
    )


def _compress(documents: list[Document]) -> Iterator[tuple[bytes, int]]:
    compressor = zstandard.ZstdCompressor(level=6)
    lines: list[bytes] = []
    n_bytes = 0
    for document in documents:
        lines.append(document_line(document))
        n_bytes += len(lines[-1])
        if n_bytes >= _BLOCK_CHARS:
            yield compressor.compress(b"\n".join(lines) + b"\n"), len(lines)
            lines, n_bytes = [], 0
    if lines:
        yield compressor.compress(b"\n".join(lines) + b"\n"), len(lines)


def _tokenise(
    stream: Iterator[Document], settings: TextSettings, batch_chars: int, n_jobs: int
) -> Iterator[TokenBatch]:
    """Batches as words, in order, with a bounded number of them under way."""
    batches = _cut(stream, batch_chars)
    head = list(islice(batches, _N_SMALL))
    if n_jobs == 1 or len(head) < _N_SMALL:
        yield from (tokenise_batch(batch, settings) for batch in chain(head, batches))
        return
    parallel = joblib.Parallel(
        n_jobs=n_jobs, return_as="generator", batch_size=1, pre_dispatch=2 * n_jobs
    )
    yield from parallel(
        joblib.delayed(tokenise_batch)(batch, settings) for batch in chain(head, batches)
    )


def _fill_shards(
    stream: Iterator[Document],
    settings: TextSettings,
    parameters: BuildParameters,
    n_jobs: int,
    report: Report,
) -> Iterator[ShardBatches]:
    shard = ShardBatches()
    for batch in _tokenise(stream, settings, parameters.batch_chars, n_jobs):
        shard.add(batch)
        report(f"reading: {shard.n_tokens - shard.n_documents:,} words of this shard")
        if parameters.is_full(shard.n_tokens, len(shard.known)):
            yield shard
            shard = ShardBatches()
    if shard.n_documents:
        yield shard


class ShardBatches:
    """The batches of one shard, under one numbering of words."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.parts: list[NDArray[np.uint32]] = []
        self.n_tokens_by_document: list[int] = []
        self.ids: list[str] = []
        self.blocks: list[tuple[bytes, int]] = []
        self.n_tokens = 0
        self.n_read = 0
        self.content = 0

    @property
    def n_documents(self) -> int:
        return len(self.ids)

    def add(self, batch: TokenBatch) -> None:
        known = self.known
        numbers = np.zeros(len(batch.words) + 1, np.uint32)
        numbers[1:] = [known.setdefault(word, len(known) + 1) for word in batch.words]
        self.parts.append(numbers[batch.tokens])
        self.n_tokens_by_document += batch.n_tokens
        self.ids += batch.ids
        self.blocks += batch.blocks
        self.n_tokens += len(batch.tokens)
        self.n_read += batch.n_read
        self.content += batch.content

    def tokens(self) -> tuple[NDArray[np.uint32], list[str]]:
        """Token ids in the sorted vocabulary, and the vocabulary."""
        words = sorted(self.known)
        rank = np.zeros(len(words) + 1, np.uint32)
        rank[[self.known[word] for word in words]] = np.arange(1, len(words) + 1, dtype=np.uint32)
        tokens = np.empty(self.n_tokens, np.uint32)
        end = 0
        for k, part in enumerate(self.parts):
            np.take(rank, part, out=tokens[end : end + len(part)])
            end += len(part)
            self.parts[k] = part[:0]
        return tokens, words


def _write_shard(folder: Path, shard: ShardBatches, n_jobs: int, report: Report) -> ShardInfo:
    report(f"sorting shard {int(folder.name) + 1}: {shard.n_tokens:,} words")
    aside = fresh_folder(folder)
    tokens, words = shard.tokens()
    shard.known.clear()
    suffixes = build_suffix_array(tokens, len(words) + 1, n_threads=n_jobs)
    np.save(aside / "tokens.npy", tokens)
    np.save(aside / "suffixes.npy", suffixes)
    n_slots = pair_slots(count_pairs(tokens, suffixes))
    pairs = np.lib.format.open_memmap(
        aside / "pairs.npy", mode="w+", dtype=np.uint32, shape=(n_slots, 4)
    )
    fill_pair_table(tokens, suffixes, np.asarray(pairs))
    pairs.flush()
    del pairs
    lengths = np.array(shard.n_tokens_by_document, np.int64)
    np.save(aside / "starts.npy", np.cumsum(lengths) - lengths)
    Strings.of(words).save(aside, "words")
    Strings.of(shard.ids).save(aside, "ids")
    _write_documents(aside, shard.blocks)
    info = ShardInfo(
        name=folder.name,
        n_documents=shard.n_documents,
        n_words=len(tokens) - shard.n_documents,
        n_tokens=len(tokens),
        n_vocabulary=len(words),
        n_read=shard.n_read,
        content=f"{shard.content % 2**256:x}",
        files=checksums(aside),
    )
    (aside / "shard.json").write_text(dump_json(asdict(info)) + "\n", encoding="utf-8")
    publish_folder(aside, folder)
    return info


def _write_documents(folder: Path, blocks: list[tuple[bytes, int]]) -> None:
    ends = np.zeros((len(blocks) + 1, 2), np.int64)
    ends[1:] = np.cumsum([(len(data), n) for data, n in blocks], axis=0)
    with (folder / "documents.zst").open("wb") as file:
        file.writelines(data for data, _ in blocks)
    np.save(folder / "blocks.npy", ends)


def default_jobs() -> int:
    """The processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
