"""The files of a reference corpus, in a folder or at an address from which they are fetched once.

    DIR/manifest.json     what the corpus is: settings, shards, removed documents, fingerprint
    DIR/building.json     only while a build or an addition is in progress
    DIR/removed-N.bin     numbers of the N documents that were removed (int64, ascending)
    DIR/held_out.jsonl    scores of its own documents against the rest, if they were measured
    DIR/shards/00000/     one immutable shard
        tokens.npy        uint16 (n_tokens,)         token ids by frequency; 0 ends each document,
                                                     65535 is any rare word
        rare_before.npy   uint32 (n_blocks,)         rare words before each 256 tokens
        rare_ids.npy      uint32 (n_rare,)           the ids of the rare words, in order
        suffixes.npy      uint64 words, packed       suffix array of the tokens
        pairs.npy         uint64 words, packed       pair of tokens -> interval of suffixes
        pair_buckets.npy  uint64 words, packed       where each bucket of pairs begins
        grams.npy         uint64 (n_blocks, 8)       a filter of the 3-grams and 4-grams
        keys.npy          uint64 (n_keys,)           the first tokens of every 80th suffix
        starts.npy        int64 (n_documents,)       each document's first token
        words.bin, words.npy                         the vocabulary; word k has id k + 1
        words_sorted.npy  uint32 (n_vocabulary,)     the words in the alphabet's order
        ids.bin, ids.npy                             the documents' ids, in order
        documents.zst, blocks.npy                    JSON Lines in compressed blocks (`zstdcat`)
        shard.json        counts, checksums, content digest

    CACHE/references/KEY/NAME/     a corpus from an address; KEY stands for the address

Checksums are compared when a corpus is first opened, and again only after files change; those of a
small folder, each time. manifest.json and shard.json contain their own. From an address a file is
fetched if it is not there as the manifest says; the manifest is read each time.

The files that a search reads are as small as fast reading allows (`kernels.packed`,
`kernels.grams`). The filter (`kernels.grams`) saves a search most of its steps and most shards, and
the keys (`kernels.sampled_keys`), which memory holds as well, half of its reads. They change no
result.
The manifest is written last, atomically, so a corpus is always as before or as after a change.
"""

from __future__ import annotations

import errno
import hashlib
import json
import mmap
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from fabula.core.cached_results import CachedResults, cache_folder
from fabula.core.errors import DAMAGE, CorpusError
from fabula.core.store import REFERENCE, checksum, dump_json, write_whole, writer_lock
from fabula.core.types import Document
from fabula.core.workers import default_jobs
from fabula.kernels.grams import BLOCK_WORDS, open_pairs
from fabula.kernels.packed import (
    BLOCK,
    RARE,
    Packed,
    Tokens,
    bits_below,
    find_strings,
    fixed,
    n_packed_words,
    read_tokens,
)
from fabula.kernels.sampled_keys import BLOCK_SUFFIXES, Keys
from fabula.reference.backend import Age
from fabula.text import TOKENISER, TextSettings, open_filesystem

MANIFEST, JOURNAL = "manifest.json", "building.json"
_SEAL = "sha256"
_DIGEST_MODULUS = 2**256
_NAME = re.compile(r"\w[\w.-]*")
"""File names of a corpus; any other could lead out of its folder."""
_OPTIONAL = ("source", "years", "chance_factor")
"""Fields of a manifest that are omitted when empty."""
_PLAIN = (
    "parameters", "removed", "removed_sha256", "removed_content", "n_removed", "n_removed_words"
)  # fmt: skip
"""Fields that are in the file as they are."""
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '([<|][biuf][0-9])', 'fortran_order': False, 'shape': \(([0-9, ]*)\), \} *\n"
)


def seal(row: dict[str, Any]) -> dict[str, Any]:
    """Add a checksum of the row's content to it."""
    return {**row, _SEAL: hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()}


def unsealed(data: bytes, file: str) -> dict[str, Any]:
    """The row of JSON in a file of that name, without its checksum.

    Raises `CorpusError` that names the file if it is none, or was changed.
    """
    try:
        row = json.loads(data)
        written = {key: value for key, value in row.items() if key != _SEAL}
    except (ValueError, RecursionError, AttributeError) as error:
        raise CorpusError(f"{file}: damaged ({error}); restore it or build it again") from error
    if row != seal(written):
        raise CorpusError(
            f"{file}: damaged (changed since it was written); restore it from a copy, or build it "
            "again"
        )
    return written


def read_small(file: Path) -> bytes | None:
    """The content of a small file; None if it does not exist."""
    try:
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def content_digest(texts: Iterable[str]) -> int:
    """A digest of a collection of texts that does not depend on their order.

    The sum of the texts' SHA-256 digests, modulo 2**256: they add up and, for a removal, subtract,
    so that the same documents give the same fingerprint in whatever order they were added.
    """
    return sum(int(hashlib.sha256(t.encode()).hexdigest(), 16) for t in texts) % _DIGEST_MODULUS


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """The manifest's entry for a shard."""

    name: str
    n_documents: int
    n_words: int
    n_tokens: int
    n_vocabulary: int
    n_pairs: int
    """Distinct pairs of adjacent words."""
    n_read: int
    """Documents read for it, including those without words."""
    content: str
    """`content_digest` of its documents' texts, in hexadecimal."""
    head: str
    """`text_digest` of the first text read."""
    files: dict[str, str]
    """SHA-256 by file name."""


@dataclass(frozen=True, slots=True)
class Years:
    """The first and last year of the documents that state one, and the number of such documents."""

    first: int
    last: int
    n_dated: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of a reference corpus."""

    settings: TextSettings
    parameters: dict[str, Any]
    shards: tuple[ShardInfo, ...] = ()
    additions: tuple[int, ...] = ()
    """The first shard of the build, and of each addition."""
    removed: str | None = None
    """Name of the file with the removed documents' numbers."""
    removed_sha256: str | None = None
    removed_content: str = "0"
    n_removed: int = 0
    n_removed_words: int = 0
    written_by: tuple[str, ...] = ()
    """The models that wrote the documents, if models did."""
    source: Mapping[str, Any] | None = None
    """The public corpus it samples, with the sampling rule; None for other corpora."""
    years: Years | None = None
    """The years of its documents, if they state them."""
    chance_factor: float | None = None
    """How many times as many passages as usual its authors share by chance, if more."""

    @property
    def n_documents(self) -> int:
        return sum(shard.n_documents for shard in self.shards) - self.n_removed

    @property
    def n_words(self) -> int:
        return sum(shard.n_words for shard in self.shards) - self.n_removed_words

    @property
    def fingerprint(self) -> str:
        """A fingerprint of the documents and the settings, 12 hexadecimal digits."""
        content = sum(int(shard.content, 16) for shard in self.shards)
        content = (content - int(self.removed_content, 16)) % _DIGEST_MODULUS
        parts = f"{TOKENISER}|{self.settings.case}|{self.settings.punct}|{content:x}"
        return hashlib.sha256(parts.encode()).hexdigest()[:12]

    @property
    def age(self) -> Age:
        """From the years that all documents state, or else from their public corpus."""
        oldest = None if self.years is None else self.years.first
        if self.years and self.years.n_dated == sum(shard.n_read for shard in self.shards):
            return Age(oldest, self.years.last)
        # Later additions need not be from that corpus.
        is_sample = self.source is not None and len(self.additions) == 1
        return Age(oldest, self.source["youngest"] if self.source and is_sample else None)

    def to_json(self) -> bytes:
        row = {key: value for key, value in asdict(self).items() if key not in _OPTIONAL or value}
        counted = {name: getattr(self, name) for name in ("fingerprint", "n_documents", "n_words")}
        document = {**REFERENCE.mark, "tokeniser": TOKENISER, **counted, **row}
        return (json.dumps(seal(document), indent=1, ensure_ascii=False) + "\n").encode()

    @classmethod
    def read(cls, folder: str | Path) -> Manifest:
        """Read the manifest of the corpus in a folder. Raises `CorpusError` if there is none."""
        file = Path(folder, MANIFEST)
        if (data := read_small(file)) is not None:
            return cls.parse(data, str(file))
        if read_small(Path(folder, JOURNAL)) is not None:
            raise CorpusError(
                f"{folder}: its build was interrupted; run the same `fabula reference build` "
                "again to finish it"
            )
        raise CorpusError(
            f"{folder}: not a reference corpus (no manifest.json); build one with "
            f"`fabula reference build SOURCES --out {folder}`"
        )

    @classmethod
    def parse(cls, data: bytes, file: str) -> Manifest:
        """The manifest in a file with that name. Raises `CorpusError`."""
        row = unsealed(data, file)
        try:
            # Each version of the manifest states its own format.
            REFERENCE.check({"format": row["format"]}, file)
            if row["tokeniser"] != TOKENISER:
                raise CorpusError(
                    f"{file}: written with tokeniser {row['tokeniser']}, but this version reads "
                    f"{TOKENISER}; {REFERENCE.remedy}"
                )
            manifest = cls(
                settings=TextSettings(**row["settings"]),
                shards=tuple(ShardInfo(**shard) for shard in row["shards"]),
                additions=tuple(row["additions"]),
                written_by=tuple(row.get("written_by", ())),
                source=row.get("source"),
                years=Years(**row["years"]) if row.get("years") else None,
                chance_factor=row.get("chance_factor"),
                **{key: row[key] for key in _PLAIN},
            )
            names = [name for shard in manifest.shards for name in (shard.name, *shard.files)]
            for name in names if manifest.removed is None else [*names, manifest.removed]:
                if not _NAME.fullmatch(name):
                    raise CorpusError(
                        f"{file}: lists the file {name!r}, which no corpus contains; build it again"
                    )
            is_sound = manifest.fingerprint == row["fingerprint"]
        except DAMAGE as error:
            raise CorpusError(
                f"{file}: damaged ({error!r}); restore it or build it again"
            ) from error
        if not is_sound:
            raise CorpusError(f"{file}: its fingerprint does not match its shards; build it again")
        return manifest

    def read_removed(self, folder: Path) -> NDArray[np.int64]:
        """The numbers of the removed documents: int64, shape (n_removed,), ascending."""
        if self.removed is None:
            return np.empty(0, np.int64)
        data = read_small(folder / self.removed)
        if data is None or hashlib.sha256(data).hexdigest() != self.removed_sha256:
            raise CorpusError(
                f"{folder}/{self.removed}: missing or damaged; restore it, or build the corpus "
                "again"
            )
        return np.frombuffer(data, np.int64)


def concatenated(strings: list[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of strings, and where each begins: uint8 (n_bytes,), int64 (n_strings + 1,)."""
    encoded = [string.encode(errors="replace") for string in strings]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(e) for e in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), np.uint8), fixed(offsets)


@dataclass(frozen=True, slots=True)
class Strings:
    """Many strings, `concatenated`."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    order: NDArray[np.uint32]
    """uint32 (n_strings,): their alphabetical order; empty for those that are not looked up."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, k: int) -> str:
        return self.data[self.offsets[k] : self.offsets[k + 1]].tobytes().decode(errors="replace")

    def find(self, wanted: list[str]) -> NDArray[np.uint32]:
        """The position of each string, counted from 1, or 0 if unknown: uint32 (n_wanted,)."""
        ids: NDArray[np.uint32] = find_strings(
            self.data, self.offsets, self.order, *concatenated(wanted)
        )
        return ids


def map_array(path: Path, kind: type[np.generic], *shape: int | None) -> NDArray[Any]:
    """Map an array on disk, of this type and shape; None stands for any length.

    The read-only plain array of an `.npy` that `np.save` wrote, or of any other file's bytes.
    Raises `CorpusError` that names the file if it is missing, or contains anything else.
    """
    try:
        if path.suffix == ".npy":
            # NumPy parses the header as Python code. Where threads do so at the same time, CPython
            # 3.11 can fail with a `SystemError` (python/cpython#106905).
            with path.open("rb") as file:
                is_array = file.read(len(_MAGIC)) == _MAGIC
                header = _HEADER.fullmatch(file.read(int.from_bytes(file.read(2), "little")))
                place = file.tell()
            if not is_array or header is None:
                raise ValueError("not an array of NumPy")  # noqa: TRY301 (told as the others)
            lengths = tuple(int(length) for length in header[2].split(b",") if length.strip())
            mapped: NDArray[Any] = np.memmap(path, header[1].decode(), "r", place, lengths)
        else:
            # An empty file cannot be mapped.
            mapped = np.memmap(path, kind, "r") if path.stat().st_size else np.empty(0, kind)
    except (OSError, ValueError, TypeError, OverflowError, MemoryError) as error:
        raise CorpusError(
            f"{path}: missing or damaged ({error}); run `fabula reference info --check`"
        ) from error
    fits = mapped.ndim == len(shape) and all(
        wanted in (None, length) for wanted, length in zip(shape, mapped.shape, strict=True)
    )
    if mapped.dtype != np.dtype(kind) or not fits or not mapped.flags.c_contiguous:
        raise CorpusError(
            f"{path}: damaged, or from another corpus (its type and sizes do not match); run "
            "`fabula reference info --check`"
        )
    # Plain, so that each kernel is compiled only once.
    return fixed(np.asarray(mapped))


class Shard:
    """An open shard: arrays mapped from disk, documents read on demand.

    `check_files` compares checksums first. This class checks sizes and types, so that no kernel
    reads out of bounds: kernels bound their reads in a file by the sizes of its arrays. Raises
    `CorpusError` that names the file.
    """

    def __init__(self, folder: Path, info: ShardInfo) -> None:
        self.folder, self.info = folder, info
        n, n_bits = info.n_tokens, bits_below(info.n_tokens)
        self.tokens = Tokens(
            map_array(folder / "tokens.npy", np.uint16, n),
            map_array(folder / "rare_before.npy", np.uint32, -(-n // BLOCK)),
            map_array(folder / "rare_ids.npy", np.uint32, None),
        )
        if n == 0 or self.tokens.codes[-1] != 0:
            # Comparison ends there at the latest.
            raise self._damaged("tokens.npy", "no end marker")
        suffixes = map_array(folder / "suffixes.npy", np.uint64, n_packed_words(n, n_bits))
        self.suffixes = Packed(suffixes, n_bits, n)
        buckets = map_array(folder / "pair_buckets.npy", np.uint64, None)
        entries = map_array(folder / "pairs.npy", np.uint64, None)
        try:
            self.pairs = open_pairs(buckets, entries, info.n_pairs, n)
        except ValueError as error:
            raise self._damaged("pairs.npy", str(error)) from error
        self.grams = map_array(folder / "grams.npy", np.uint64, None, BLOCK_WORDS)
        if len(self.grams) == 0:
            raise self._damaged("grams.npy", "empty")
        self.keys = Keys(
            map_array(folder / "keys.npy", np.uint64, -(-n // BLOCK_SUFFIXES)), BLOCK_SUFFIXES
        )
        self._in_memory: tuple[NDArray[Any], ...] = self.grams, self.keys.values
        """What every search uses."""
        pairs = self.pairs.buckets.words, self.pairs.entries.words
        self._searched: tuple[NDArray[Any], ...] = *self.tokens, self.suffixes.words, *pairs
        self.search_bytes = sum(array.nbytes for array in (*self._in_memory, *self._searched))
        """The total size of the files that a search accesses at random."""
        self.is_on_disk = False
        """Whether it is too large for memory (`expect_random`)."""
        self.asks_ahead = False
        """Whether a search prefetches pages first, because the last one read the disk."""
        self.starts = map_array(folder / "starts.npy", np.int64, info.n_documents)
        self.vocabulary = Strings(
            map_array(folder / "words.bin", np.uint8, None),
            map_array(folder / "words.npy", np.int64, info.n_vocabulary + 1),
            map_array(folder / "words_sorted.npy", np.uint32, info.n_vocabulary),
        )
        self.ids = Strings(
            map_array(folder / "ids.bin", np.uint8, None),
            map_array(folder / "ids.npy", np.int64, info.n_documents + 1),
            np.empty(0, np.uint32),
        )
        self._blocks = blocks = map_array(folder / "blocks.npy", np.int64, None, 2)
        # All files are mapped now: for this reader, one that is replaced later stays unchanged.
        documents = map_array(folder / "documents.zst", np.uint8, None)

        # Not a method, which would keep the shard and its files until garbage is collected.
        @lru_cache(maxsize=32)
        def read_block(block: int) -> list[bytes]:
            compressed = documents[int(blocks[block, 0]) : int(blocks[block + 1, 0])].tobytes()
            return zstandard.ZstdDecompressor().decompress(compressed).split(b"\n")

        self._block = read_block

    @cached_property
    def token_counts(self) -> NDArray[np.int64]:
        """The number of occurrences of each token: int64, shape (n_vocabulary + 1,)."""
        n = self.info.n_vocabulary + 1
        codes = np.bincount(self.tokens.codes, minlength=n)[:RARE]
        # A damaged file may contain any number.
        rare = np.bincount(np.minimum(self.tokens.rare_ids, n), minlength=n)
        rare[: len(codes)] += codes[: len(rare)]
        return rare[:n]

    @cached_property
    def first_suffixes(self) -> NDArray[np.int64]:
        """The index of the first suffix for each token: int64, shape (n_vocabulary + 2,)."""
        ends = np.cumsum(np.append(0, self.token_counts))
        # In a damaged file, the counts may exceed the number of tokens.
        firsts: NDArray[np.int64] = np.minimum(ends, self.info.n_tokens)
        return firsts

    def expect_random(self) -> None:
        """Advise the system to read single pages of these files, without read-ahead.

        If the files do not fit in memory, read-ahead only evicts pages that are needed. The filter
        and the keys, which every search uses, are read whole.
        """
        if not hasattr(mmap, "MADV_RANDOM"):
            return
        self.is_on_disk = self.asks_ahead = True
        advised = ((self._searched, mmap.MADV_RANDOM), (self._in_memory, mmap.MADV_WILLNEED))
        for arrays, advice in advised:
            for array in arrays:
                base: Any = array.base
                while base is not None and not isinstance(base, mmap.mmap):
                    base = base.base
                if base is not None:
                    base.madvise(advice)

    def read_tokens(self, begin: int, end: int) -> NDArray[np.uint32]:
        """The ids of the tokens from `begin` up to `end` (exclusive), each 0 or that of a word.

        uint32 (end - begin,). Raises `CorpusError` for any other id, since kernels use ids to look
        up words, and for places outside of the shard.
        """
        if not 0 <= begin <= end <= self.info.n_tokens:
            raise self._damaged("starts.npy", "a document begins after its end")
        ids = read_tokens(self.tokens, begin, end)
        if ids.max(initial=0) > self.info.n_vocabulary:
            raise self._damaged("tokens.npy", "contains a word missing from the vocabulary")
        return ids

    def document(self, k: int) -> Document:
        """The shard's k-th document, as it was read. Raises `CorpusError` if it is damaged."""
        block = int(np.searchsorted(self._blocks[:, 1], k, side="right")) - 1
        try:
            return Document(**json.loads(self._block(block)[k - int(self._blocks[block, 1])]))
        except (zstandard.ZstdError, ValueError, IndexError, TypeError, MemoryError) as error:
            raise self._damaged("documents.zst", str(error)) from error

    def _damaged(self, file: str, why: str) -> CorpusError:
        return CorpusError(
            f"{self.folder / file}: damaged ({why}); run `fabula reference info --check` and build "
            "the corpus again"
        )


def document_line(document: Document) -> bytes:
    """Serialise a document as a line of the shard's documents; `Shard.document` reads it back."""
    row: dict[str, Any] = {"id": document.id, "text": document.text}
    more = {"author": document.author, "prompt_id": document.prompt_id}
    row |= {name: value for name, value in more.items() if value is not None}
    if document.meta:
        row["meta"] = dict(document.meta)
    return dump_json(row).encode(errors="replace")


HELD_OUT = "held_out.jsonl"
"""Beside a corpus: scores of its own documents, one line for each way to measure."""
_SMALL_BYTES = 4 << 20
"""Folders up to this size are compared each time; that takes milliseconds."""
_MANY_BYTES = 1 << 30
"""Above this size, progress is reported."""
_SETTLED_NS = 2 * 10**9
"""A file written more recently may change again within the same tick of the clock."""

Report = Callable[[str], None]


def is_address(spec: str | Path) -> bool:
    """Whether it is the address of a corpus's files: s3://, gs:// or https://.../manifest.json."""
    if not isinstance(spec, str) or "://" not in spec:
        return False
    return not spec.startswith(("http://", "https://")) or spec.endswith(f"/{MANIFEST}")


def corpus_folder(spec: str | Path) -> Path:
    """The folder that a user names; it need not exist. Raises `CorpusError` for an address."""
    if "://" in str(spec):
        raise CorpusError(
            f"{spec}: a corpus is built and changed in a folder; copy the folder there afterwards, "
            "with the tools of the store"
        )
    return Path(spec)


def check_files(
    folders: Sequence[tuple[Path, Mapping[str, str]]], report: Report = lambda stage: None
) -> None:
    """Compare the SHA-256 of the files of these folders, except those already compared.

    folders: each with checksums by file name. Raises `CorpusError` naming a missing or changed one.
    """
    expected: dict[Path, str] = {}
    stamps: dict[Path, list[int]] = {}
    keys: dict[Path, bytes] = {}
    for folder, digests in folders:
        files = {folder / name: digest for name, digest in digests.items()}
        expected |= files
        stamps |= {file: _stamp(file) for file in files}
        if sum(stamps[file][0] for file in files) > _SMALL_BYTES:
            for file, digest in files.items():
                key = f"checked\n{folder.resolve() / file.name}\n{stamps[file]}\n{digest}"
                keys[file] = key.encode(errors="surrogateescape")
    checked: set[Path] = set()
    if keys:
        compared = zip(keys, CachedResults().find(list(keys.values())), strict=True)
        checked = {file for file, result in compared if result is not None}
    new = [file for file in stamps if file not in checked]
    n_all, n_done, lock = sum(stamps[file][0] for file in new), 0, threading.Lock()

    def check(file: Path) -> None:
        nonlocal n_done
        if checksum(file) != expected[file]:
            raise CorpusError(
                f"{file}: damaged (changed since it was written); restore it from a copy, or build "
                "it again (`fabula reference info --check` checks all files)"
            )
        with lock:
            n_done += stamps[file][0]
            if n_all > _MANY_BYTES:
                report(f"checking files (once): {n_done / 1e9:.1f} of {n_all / 1e9:.1f} GB")

    if new:
        with ThreadPoolExecutor(min(default_jobs(), len(new))) as pool:
            list(pool.map(check, new))
    before = time.time_ns() - _SETTLED_NS
    settled = (file for file in new if file in keys and stamps[file][2] < before)
    unchanged = {keys[file]: b"same" for file in settled if _stamp(file) == stamps[file]}
    if unchanged:
        CachedResults().keep(unchanged)


def _stamp(file: Path) -> list[int]:
    """The attributes that change with the file: size, modification and change times, inode."""
    try:
        stat = file.stat()
    except (OSError, ValueError) as error:
        raise CorpusError(
            f"{file}: missing or unreadable ({error}); restore it from a copy, or build it again "
            "(`fabula reference info --check` checks all files)"
        ) from error
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]


def fetch_corpus(spec: str | Path, report: Report = lambda stage: None) -> Path:
    """The folder of the corpus: of one at an address, a copy whose files are all checked.

    Raises `CorpusError` if there is none, a file differs from its manifest, or the store fails.
    """
    if not is_address(spec):
        return Path(spec)
    address = str(spec).removesuffix(MANIFEST).rstrip("/")
    key = hashlib.sha256(address.encode()).hexdigest()[:16]
    folder = cache_folder() / "references" / key / address.rpartition("/")[2]
    # Processes that want the same copy wait, then find it.
    store = _Store(address)
    with writer_lock(folder / ".lock", str(folder), waits=True):
        if (data := store.read(MANIFEST)) is None:
            raise CorpusError(f"{address}: not a reference corpus (no {MANIFEST})")
        manifest = Manifest.parse(data, f"{address}/{MANIFEST}")
        parts: dict[str, Mapping[str, str]] = {f"shards/{s.name}": s.files for s in manifest.shards}
        if manifest.removed is not None:
            parts["."] = {manifest.removed: str(manifest.removed_sha256)}
        for k, (place, files) in enumerate(parts.items(), 1):
            report(f"fetching part {k} of {len(manifest.shards) + 1} from {address}")
            try:
                # What was compared before is not read again.
                check_files([(folder / place, files)])
            except CorpusError:
                for name, expected in files.items():
                    file = folder / place / name
                    if not file.exists() or checksum(file) != expected:
                        store.fetch(f"{place}/{name}".removeprefix("./"), file, expected)
        write_whole(folder / HELD_OUT, store.read(HELD_OUT) or b"")
        write_whole(folder / MANIFEST, data)
    return folder


class _Store:
    """An address, reached by fsspec. Each kind of store has its own errors: `CorpusError`."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._filesystem, root = open_filesystem(address)
        self._filesystem.invalidate_cache()
        self._root = root.rstrip("/")

    def read(self, name: str) -> bytes | None:
        try:
            data: bytes = self._filesystem.cat_file(f"{self._root}/{name}")
        except FileNotFoundError:
            return None
        except Exception as error:
            raise self._failed(error) from error
        return data

    def fetch(self, name: str, file: Path, expected: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        aside = file.with_name(f".{file.name}.part")
        try:
            self._filesystem.get_file(f"{self._root}/{name}", str(aside))
            if checksum(aside) != expected:
                raise CorpusError(  # noqa: TRY301 (not the store's fault)
                    f"{self.address}/{name}: does not match the manifest; the corpus may be "
                    "changing right now: try again, or copy it there again"
                )
            aside.replace(file)
        except FileNotFoundError as error:
            raise CorpusError(
                f"{self.address}/{name}: missing; copy the corpus there again"
            ) from error
        except CorpusError:
            raise
        except Exception as error:
            # What is wrong with this machine's disk is not the address's fault.
            if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
                raise
            raise self._failed(error) from error
        finally:
            aside.unlink(missing_ok=True)

    def _failed(self, error: Exception) -> CorpusError:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        return CorpusError(
            f"{self.address}: cannot be fetched ({reason}); check the address and who may read it, "
            "and run the same command again"
        )
