"""How a reference corpus lies on disk.

    DIR/manifest.json     what the corpus is: settings, shards, removed documents, fingerprint
    DIR/building.json     only while a build or an addition is under way
    DIR/removed-N.bin     numbers of the N documents that were removed (int64, ascending)
    DIR/shards/00000/     one immutable shard
        tokens.npy        uint32 (n_tokens,)         token ids; 0 ends each document
        suffixes.npy      uint32 (n_tokens,)         suffix array of the tokens
        pairs.npy         uint32 (n_slots, 4)        pair of tokens -> interval of suffixes
        starts.npy        int64 (n_documents,)       each document's first token
        words.bin, words.npy                         the vocabulary, sorted; word k has id k + 1
        ids.bin, ids.npy                             the documents' ids, in order
        documents.zst, blocks.npy                    JSON Lines in compressed blocks (`zstdcat`)
        shard.json        counts, checksums, content digest

The manifest is written last and replaced at once, so a corpus is always the one before a change or
the one after it.
"""

from __future__ import annotations

import hashlib
import json
import mmap
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from fabula.errors import CorpusError
from fabula.kernels.strings import find_strings
from fabula.reference.home import Home, open_home
from fabula.store import checksum, dump_json
from fabula.text import TOKENISER, TextSettings
from fabula.types import Document

__all__ = ["FORMAT", "Manifest", "Shard", "ShardInfo", "Strings", "content_digest", "text_digest"]

FORMAT = 1
_DIGEST_MODULUS = 2**256


def content_digest(texts: list[str]) -> int:
    """A number for a collection of texts that does not depend on their order.

    The sum of the texts' SHA-256 digests, modulo 2**256: digests of collections add up and, for a
    removal, subtract, so that the same documents give the same fingerprint however they came in.
    """
    return sum(int(hashlib.sha256(t.encode()).hexdigest(), 16) for t in texts) % _DIGEST_MODULUS


def text_digest(text: str) -> str:
    """Sixteen hexadecimal digits that stand for a text."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """What the manifest says of a shard."""

    name: str
    n_documents: int
    n_words: int
    n_tokens: int
    n_vocabulary: int
    n_read: int
    """Documents that were read for it, those without a word included."""
    content: str
    """`content_digest` of its documents' texts, in hexadecimal."""
    head: str
    """`text_digest` of the first text read."""
    files: dict[str, str]
    """SHA-256 by file name."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a reference corpus is."""

    settings: TextSettings
    parameters: dict[str, Any]
    shards: tuple[ShardInfo, ...] = ()
    additions: tuple[int, ...] = ()
    """The first shard of the build, and of each addition."""
    removed: str | None = None
    """File of removed documents' numbers."""
    removed_sha256: str | None = None
    removed_content: str = "0"
    n_removed: int = 0
    n_removed_words: int = 0
    written_by: tuple[str, ...] = ()
    """The models that wrote the documents, where models did."""

    @property
    def n_documents(self) -> int:
        return sum(shard.n_documents for shard in self.shards) - self.n_removed

    @property
    def n_words(self) -> int:
        return sum(shard.n_words for shard in self.shards) - self.n_removed_words

    @property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that stand for the documents and how they became words."""
        content = sum(int(shard.content, 16) for shard in self.shards)
        content = (content - int(self.removed_content, 16)) % _DIGEST_MODULUS
        parts = f"{TOKENISER}|{self.settings.case}|{self.settings.punct}|{content:x}"
        return hashlib.sha256(parts.encode()).hexdigest()[:12]

    def to_json(self) -> bytes:
        document = {
            "format": FORMAT,
            "tokeniser": TOKENISER,
            "fingerprint": self.fingerprint,
            "n_documents": self.n_documents,
            "n_words": self.n_words,
            **asdict(self),
        }
        return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()

    @classmethod
    def read(cls, path: str | Path | Home) -> Manifest:
        """The manifest of the corpus at `path`. Raises `CorpusError` where there is none."""
        home = open_home(path)
        path, file = home.spec, f"{home.spec}/manifest.json"
        if (data := home.read("manifest.json")) is None:
            if home.read("building.json") is not None:
                raise CorpusError(
                    f"{path}: its build did not end; run the same `fabula reference build` again "
                    f"to finish it"
                )
            raise CorpusError(
                f"{path}: not a reference corpus (no manifest.json); build one with "
                f"`fabula reference build SOURCES --out {path}`"
            )
        try:
            row = json.loads(data)
            found = row["format"], row["tokeniser"]
            if found != (FORMAT, TOKENISER):
                raise CorpusError(
                    f"{path}: written in format {found[0]} with tokeniser {found[1]}, this version "
                    f"reads {FORMAT} and {TOKENISER}; build it again"
                )
            manifest = cls(
                settings=TextSettings(**row["settings"]),
                parameters=row["parameters"],
                shards=tuple(ShardInfo(**shard) for shard in row["shards"]),
                additions=tuple(row["additions"]),
                written_by=tuple(row.get("written_by", ())),
                **{
                    key: row[key]
                    for key in (
                        "removed",
                        "removed_sha256",
                        "removed_content",
                        "n_removed",
                        "n_removed_words",
                    )
                },
            )
        except (ValueError, KeyError, TypeError) as error:
            raise CorpusError(f"{file}: damaged ({error!r}); restore it or build again") from error
        if manifest.fingerprint != row["fingerprint"]:
            raise CorpusError(f"{file}: its fingerprint does not fit its shards; build it again")
        return manifest

    def with_shards(self, shards: list[ShardInfo]) -> Manifest:
        """As it is after a build or an addition wrote these shards."""
        additions = (*self.additions, len(self.shards))
        return replace(self, shards=(*self.shards, *shards), additions=additions)


@dataclass(frozen=True, slots=True)
class Strings:
    """Many strings as bytes in a row: uint8 (n_bytes,), and int64 (n_strings + 1,) offsets."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, strings: list[str]) -> Strings:
        encoded = [string.encode(errors="replace") for string in strings]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(e) for e in encoded], out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets)

    @classmethod
    def open(cls, folder: Path, name: str) -> Strings:
        size = (folder / f"{name}.bin").stat().st_size
        data = np.memmap(folder / f"{name}.bin", np.uint8, "r") if size else np.empty(0, np.uint8)
        return cls(_plain(data), _load(folder / f"{name}.npy"))

    def save(self, folder: Path, name: str) -> None:
        (folder / f"{name}.bin").write_bytes(self.data.tobytes())
        np.save(folder / f"{name}.npy", self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, k: int) -> str:
        return self.data[self.offsets[k] : self.offsets[k + 1]].tobytes().decode()

    def find(self, wanted: list[str]) -> NDArray[np.uint32]:
        """For sorted strings: each wanted one's place counted from 1, or 0. uint32 (n_wanted,)."""
        other = Strings.of(wanted)
        found: NDArray[np.uint32] = find_strings(
            self.data, self.offsets, _plain(other.data), _plain(other.offsets)
        )
        return found


class Shard:
    """An open shard: arrays mapped from disk, documents read on demand."""

    def __init__(self, folder: Path, info: ShardInfo) -> None:
        self.folder = folder
        self.info = info
        try:
            self.tokens: NDArray[np.uint32] = _load(folder / "tokens.npy")
            self.suffixes: NDArray[np.uint32] = _load(folder / "suffixes.npy")
            self.pairs: NDArray[np.uint32] = _load(folder / "pairs.npy")
            self.starts: NDArray[np.int64] = _load(folder / "starts.npy")
            self.vocabulary = Strings.open(folder, "words")
            # All files are mapped now: one that is replaced later stays as it was for this reader.
            self.ids = Strings.open(folder, "ids")
            self._blocks: NDArray[np.int64] = _load(folder / "blocks.npy")
            self._documents = _plain(np.memmap(folder / "documents.zst", np.uint8, "r"))
        except (OSError, ValueError, EOFError) as error:
            raise CorpusError(
                f"{folder}: a file is missing or damaged ({error}); run `fabula reference verify`"
            ) from error
        sizes = len(self.tokens), len(self.suffixes), len(self.starts), len(self.vocabulary)
        if sizes != (info.n_tokens, info.n_tokens, info.n_documents, info.n_vocabulary):
            raise CorpusError(f"{folder}: its files do not fit the manifest; build it again")
        self._block = lru_cache(maxsize=32)(self._read_block)

    @property
    def search_bytes(self) -> int:
        """The size of the files that a search goes to and fro in."""
        return self.tokens.nbytes + self.suffixes.nbytes + self.pairs.nbytes

    def expect_random(self) -> None:
        """Have the system read single pages of these files, and not what lies around them.

        Where the files do not fit into memory, what is read ahead only drives out what is needed.
        """
        for array in (self.tokens, self.suffixes, self.pairs):
            mapped: Any = array.base
            while mapped is not None and not isinstance(mapped, mmap.mmap):
                mapped = mapped.base
            if mapped is not None and hasattr(mmap, "MADV_RANDOM"):
                mapped.madvise(mmap.MADV_RANDOM)

    def document(self, k: int) -> Document:
        """The shard's k-th document, as it was read."""
        block = int(np.searchsorted(self._blocks[:, 1], k, side="right")) - 1
        row = json.loads(self._block(block)[k - int(self._blocks[block, 1])])
        return Document(**row)

    def _read_block(self, block: int) -> list[bytes]:
        start, end = int(self._blocks[block, 0]), int(self._blocks[block + 1, 0])
        try:
            data = zstandard.ZstdDecompressor().decompress(self._documents[start:end].tobytes())
        except zstandard.ZstdError as error:
            raise CorpusError(
                f"{self.folder / 'documents.zst'}: damaged ({error}); run "
                f"`fabula reference verify` and build the corpus again"
            ) from error
        return data.split(b"\n")


def document_line(document: Document) -> bytes:
    """A document as a line of the shard's documents; `Shard.document` reads it back."""
    row: dict[str, Any] = {"id": document.id, "text": document.text}
    if document.author is not None:
        row["author"] = document.author
    if document.prompt_id is not None:
        row["prompt_id"] = document.prompt_id
    if document.meta:
        row["meta"] = dict(document.meta)
    return dump_json(row).encode(errors="replace")


def read_shard_info(home: Home, name: str) -> ShardInfo | None:
    """What the `shard.json` of the shard of that name says; None where it is not whole."""
    data = home.read(f"shards/{name}/shard.json")
    return None if data is None else ShardInfo(**json.loads(data))


def checksums(folder: Path) -> dict[str, str]:
    """SHA-256 of each data file of a shard."""
    files = sorted(file for file in folder.iterdir() if file.name != "shard.json")
    return {file.name: checksum(file) for file in files}


def _load(path: Path) -> NDArray[Any]:
    mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    return _plain(mapped)


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """The same memory as a read-only plain array, so that each kernel is compiled only once."""
    view = np.asarray(array)
    view.flags.writeable = False
    return view
