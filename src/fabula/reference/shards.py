"""A shard: documents are tokenised in batches until it is full, and it is written whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import zstandard
from numpy.typing import NDArray

from fabula.errors import CorpusError
from fabula.kernels.grams import BLOCK_WORDS, add_grams, n_gram_blocks
from fabula.kernels.packed import bits_below, pack, pack_tokens
from fabula.kernels.sampled_keys import BLOCK_SUFFIXES, sample_keys
from fabula.kernels.suffix import build_suffix_array
from fabula.kernels.token_pairs import list_pairs, pack_pairs
from fabula.reference.checksums import Report, seal
from fabula.reference.layout import (
    GRAMS,
    KEYS,
    ShardInfo,
    content_digest,
    document_line,
    read_shard_info,
    text_digest,
)
from fabula.reference.storage import Home
from fabula.reference.vocabulary import Strings, Vocabulary
from fabula.store import checksum, dump_json
from fabula.text import TextSettings, in_batches
from fabula.types import Document
from fabula.workers import in_order


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


_BLOCK_CHARS = 1 << 16
_N_SMALL = 7
"""Up to this number of batches, starting workers is not worthwhile."""


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """A batch of tokenised documents, as returned by a worker."""

    tokens: NDArray[np.uint32]
    """Indices into `words`, counted from 1; 0 ends each document."""
    words: list[str]
    n_tokens: list[int]
    """Per document, including its end."""
    ids: list[str]
    blocks: list[tuple[bytes, int]]
    """Compressed lines, and the number of documents in them."""
    n_read: int
    content: int
    head: str


def _tokenise_batch(documents: list[Document], settings: TextSettings) -> TokenBatch:
    """Convert documents to token ids; those without words are left out (but counted as read)."""
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
    # Several raw words may have the same normal form; only distinct ones are normalised.
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
        content=content_digest([document.text for document in kept]),
        head=text_digest(documents[0].text),
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


def tokenise_stream(
    stream: Iterator[Document], settings: TextSettings, batch_chars: int, n_jobs: int
) -> Iterator[TokenBatch]:
    """Tokenise batches, in order, with a bounded number of them in progress."""
    tokenise = partial(_tokenise_batch, settings=settings)
    yield from in_order(tokenise, in_batches(stream, batch_chars), n_jobs, n_small=_N_SMALL)


_N_PARTS = 64


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
        tokens, words = shard.tokens()
        shard.known.clear()
        suffixes = build_suffix_array(tokens, len(words) + 1, n_threads=n_jobs)
        n_pairs = write_index(aside, tokens, suffixes, n_threads=n_jobs)
        del suffixes
        lengths = np.array(shard.n_tokens_by_document, np.int64)
        np.save(aside / "starts.npy", np.cumsum(lengths) - lengths)
        Vocabulary.of(words).save(aside)
        Strings.of(shard.ids).save(aside, "ids")
        ends = np.zeros((len(shard.blocks) + 1, 2), np.int64)
        ends[1:] = np.cumsum([(len(data), n) for data, n in shard.blocks], axis=0)
        with (aside / "documents.zst").open("wb") as file:
            file.writelines(data for data, _ in shard.blocks)
        np.save(aside / "blocks.npy", ends)
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
            files={file.name: checksum(file) for file in sorted(aside.iterdir())},
        )
        (aside / "shard.json").write_text(dump_json(seal(asdict(info))) + "\n", encoding="utf-8")
        report(f"keeping shard {int(name) + 1}: {shard.n_tokens:,} words")
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
        listed = list(pool.map(lambda edge: list_pairs(tokens, suffixes, *edge), pairwise(edges)))
    table = pack_pairs(listed, n_tokens)
    np.save(folder / "pair_buckets.npy", table.buckets.words)
    np.save(folder / "pairs.npy", table.entries.words)
    return table.entries.n_values
