"""Tokenisation of a stream of documents in batches, in parallel and in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import zstandard
from numpy.typing import NDArray

from fabula.reference.layout import content_digest, document_line, text_digest
from fabula.text import TextSettings, in_batches
from fabula.types import Document
from fabula.workers import in_order

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


def tokenise_batch(documents: list[Document], settings: TextSettings) -> TokenBatch:
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
    tokenise = partial(tokenise_batch, settings=settings)
    yield from in_order(tokenise, in_batches(stream, batch_chars), n_jobs, n_small=_N_SMALL)
