"""A shard: batches are collected until it is full, and it is written whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fabula.errors import CorpusError
from fabula.kernels.grams import BLOCK_WORDS, add_grams, n_gram_blocks
from fabula.kernels.packed import bits_below, pack, pack_tokens
from fabula.kernels.sampled_keys import BLOCK_SUFFIXES, sample_keys
from fabula.kernels.suffix import build_suffix_array
from fabula.kernels.token_pairs import list_pairs, pack_pairs
from fabula.reference.batches import TokenBatch
from fabula.reference.checksums import seal
from fabula.reference.layout import GRAMS, KEYS, ShardInfo, checksums, read_shard_info
from fabula.reference.storage import Home
from fabula.reference.vocabulary import Strings, Vocabulary
from fabula.store import dump_json


def make_filter(
    chunks: Iterable[NDArray[np.uint32]], n_tokens: int, *, n_threads: int
) -> NDArray[np.uint64]:
    """The filter of `n_tokens` tokens; each chunk starts with the last tokens of the previous one.

    uint64 (n_blocks, BLOCK_WORDS); the same bytes for any number of threads or chunks.
    """
    blocks = np.zeros((n_gram_blocks(n_tokens), BLOCK_WORDS), np.uint64)
    edges = list(pairwise(np.linspace(0, len(blocks), n_threads + 1).astype(int).tolist()))
    with ThreadPoolExecutor(n_threads) as pool:
        for tokens in chunks:
            list(pool.map(lambda edge, tokens=tokens: add_grams(tokens, blocks, *edge), edges))
    return blocks


_N_PARTS = 64
Report = Callable[[str], None]


class ShardBatches:
    """The batches of one shard, with a common numbering of words."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.parts: list[NDArray[np.uint32]] = []
        self.n_tokens_by_document: list[int] = []
        self.ids: list[str] = []
        self.blocks: list[tuple[bytes, int]] = []
        self.n_tokens = 0
        self.n_read = 0
        self.content = 0
        self.head = ""

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
        self.head = self.head or batch.head

    def tokens(self) -> tuple[NDArray[np.uint32], list[str]]:
        """Token ids by frequency, and the words in that order; ties are sorted alphabetically."""
        counts = np.zeros(len(self.known) + 1, np.int64)
        for part in self.parts:
            counts += np.bincount(part, minlength=len(counts))
        numbers = {word: -n for word, n in zip(self.known, counts[1:].tolist(), strict=True)}
        words = sorted(numbers, key=lambda word: (numbers[word], word))
        rank = np.zeros(len(words) + 1, np.uint32)
        rank[[self.known[word] for word in words]] = np.arange(1, len(words) + 1, dtype=np.uint32)
        tokens = np.empty(self.n_tokens, np.uint32)
        end = 0
        for k, part in enumerate(self.parts):
            np.take(rank, part, out=tokens[end : end + len(part)])
            end += len(part)
            self.parts[k] = part[:0]
        return tokens, words


def kept_shard(home: Home, name: str, n_read: int, content: int) -> ShardInfo | None:
    """The existing shard of that name, made of `n_read` documents with that content digest.

    None if there is none. Raises `CorpusError` if it has other documents.
    """
    info = read_shard_info(home, name)
    if info is None:
        return None
    if (info.n_read, info.content) != (n_read, f"{content % 2**256:x}"):
        raise CorpusError(
            f"{home}/shards/{name}: the texts differ from those of the interrupted build; "
            "use the same texts, or start over with `restart`"
        )
    return info


def write_shard(
    home: Home, name: str, shard: ShardBatches, n_jobs: int, report: Report
) -> ShardInfo:
    """Write the shard atomically."""
    report(f"sorting shard {int(name) + 1}: {shard.n_tokens:,} words")
    with home.writing(f"shards/{name}") as aside:
        info = _fill(aside, name, shard, n_jobs)
        report(f"keeping shard {int(name) + 1}: {shard.n_tokens:,} words")
    return info


def _fill(aside: Path, name: str, shard: ShardBatches, n_jobs: int) -> ShardInfo:
    """Write the files of a shard to a folder."""
    tokens, words = shard.tokens()
    shard.known.clear()
    suffixes = build_suffix_array(tokens, len(words) + 1, n_threads=n_jobs)
    n_pairs = write_index(aside, tokens, suffixes, n_threads=n_jobs)
    lengths = np.array(shard.n_tokens_by_document, np.int64)
    np.save(aside / "starts.npy", np.cumsum(lengths) - lengths)
    Vocabulary.of(words).save(aside)
    Strings.of(shard.ids).save(aside, "ids")
    _write_documents(aside, shard.blocks)
    info = ShardInfo(
        name=name,
        n_documents=shard.n_documents,
        n_words=len(tokens) - shard.n_documents,
        n_tokens=len(tokens),
        n_vocabulary=len(words),
        n_pairs=n_pairs,
        n_read=shard.n_read,
        content=f"{shard.content % 2**256:x}",
        head=shard.head,
        files=checksums(aside),
    )
    (aside / "shard.json").write_text(dump_json(seal(asdict(info))) + "\n", encoding="utf-8")
    return info


def write_index(
    folder: Path, tokens: NDArray[np.uint32], suffixes: NDArray[np.uint32], *, n_threads: int
) -> int:
    """Write everything a search reads except the words; returns the number of pairs.

    Besides `tokens` and `suffixes` it takes 4 bytes of memory per token, or 22 per pair.
    """
    n_tokens = len(tokens)
    edges = np.linspace(0, n_tokens, _N_PARTS + 1).astype(np.int64)
    with ThreadPoolExecutor(n_threads) as pool:
        # Packing and writing take one thread.
        grams = pool.submit(make_filter, [tokens], n_tokens, n_threads=max(1, n_threads - 1))
        coded = pack_tokens(tokens)
        np.save(folder / "tokens.npy", coded.codes)
        np.save(folder / "rare_before.npy", coded.rare_before)
        np.save(folder / "rare_ids.npy", coded.rare_ids)
        np.save(folder / KEYS, sample_keys(coded.codes, suffixes[::BLOCK_SUFFIXES]).values)
        del coded
        np.save(folder / "suffixes.npy", pack(suffixes, bits_below(n_tokens)).words)
        np.save(folder / GRAMS, grams.result())
        listed = list(
            pool.map(lambda edge: list_pairs(tokens, suffixes, *edge), list(pairwise(edges)))
        )
    table = pack_pairs(listed, n_tokens)
    np.save(folder / "pair_buckets.npy", table.buckets.words)
    np.save(folder / "pairs.npy", table.entries.words)
    return table.entries.n_values


def _write_documents(folder: Path, blocks: list[tuple[bytes, int]]) -> None:
    ends = np.zeros((len(blocks) + 1, 2), np.int64)
    ends[1:] = np.cumsum([(len(data), n) for data, n in blocks], axis=0)
    with (folder / "documents.zst").open("wb") as file:
        file.writelines(data for data, _ in blocks)
    np.save(folder / "blocks.npy", ends)
