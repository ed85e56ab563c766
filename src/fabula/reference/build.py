"""Building, changing and verifying a reference corpus: documents in, immutable shards out.

Documents come as a stream and are cut into batches; batches are tokenised in parallel; a shard is
filled with whole batches. Where a batch or a shard ends, and every byte written, depends only on
the documents and the parameters, never on the number of workers or on an interruption.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from fabula.core import __version__
from fabula.core.errors import CorpusError, InputError
from fabula.core.resume import Share
from fabula.core.store import (  # fmt: skip
    REFERENCE,
    checksum,
    dump_json,
    fresh_folder,
    publish_folder,
    text_digest,
    write_whole,
    writer_lock,
)
from fabula.core.types import Document
from fabula.core.workers import in_order
from fabula.kernels.grams import BLOCK_WORDS, add_grams, list_pairs, n_gram_blocks, pack_pairs
from fabula.kernels.packed import bits_below, pack, pack_tokens
from fabula.kernels.sampled_keys import BLOCK_SUFFIXES, sample_keys
from fabula.kernels.suffix import build_suffix_array
from fabula.reference.backend import year_of
from fabula.reference.chance import calibrated
from fabula.reference.files import (  # fmt: skip
    JOURNAL,
    MANIFEST,
    Manifest,
    Report,
    Shard,
    ShardInfo,
    Years,
    check_files,
    concatenated,
    content_digest,
    corpus_folder,
    document_line,
    read_small,
    seal,
    unsealed,
)
from fabula.reference.parts import About, LocalPart
from fabula.reference.search import Reference
from fabula.text import TextSettings, check_documents, in_batches

_BATCH_CHARS, _BLOCK_CHARS = 1 << 20, 1 << 16
_N_SMALL = 7
"""Up to this number of batches, starting workers is not worthwhile."""
_N_PARTS, _SAMPLE_WORDS, _N_SAMPLES = 64, 24, 200
_RESERVED_BYTES = 400 << 20
"""Reserved for the interpreter, the compiled kernels, and a worker's batch."""
_BYTES_PER_TOKEN = 18
"""Measured during suffix array construction, including a copy of the tokens."""
_BYTES_PER_WORD = 250
"""For a word of the vocabulary in a Python dictionary, and during sorting."""
_MAX_SHARD_TOKENS = 2**32 - 2


@dataclass(frozen=True, slots=True)
class BuildParameters:
    """The parameters that determine where shards end."""

    shard_tokens: int = 133_000_000
    """With the batch that fills it, a shard stays below 2**27, so that a place takes 27 bits."""
    memory_bytes: int = 4 << 30

    def __post_init__(self) -> None:
        if not 1 <= self.shard_tokens <= _MAX_SHARD_TOKENS:
            raise InputError(f"`shard_tokens` must be between 1 and {_MAX_SHARD_TOKENS:,}")
        if self.memory_bytes < 2 * _RESERVED_BYTES:
            raise InputError(f"`memory` must be at least {2 * _RESERVED_BYTES >> 20} MB")

    def is_full(self, n_tokens: int, n_vocabulary: int) -> bool:
        used = _BYTES_PER_TOKEN * n_tokens + _BYTES_PER_WORD * n_vocabulary
        return n_tokens >= self.shard_tokens or used >= self.memory_bytes - _RESERVED_BYTES


@contextmanager
def _lock(folder: Path, *, waits: bool = False) -> Iterator[None]:
    """Hold the exclusive right to write there: wait for another process, or raise `BusyError`."""
    with writer_lock(folder / ".lock", str(folder), waits=waits):
        # The process that wrote these was killed: the lock excludes other writers.
        for leftover in folder.glob(".*.part"):
            leftover.unlink(missing_ok=True)
        yield


def build_reference(
    documents: Iterable[Document],
    path: str | Path,
    *,
    settings: TextSettings,
    parameters: BuildParameters = BuildParameters(),
    n_jobs: int,
    restart: bool = False,
    report: Report = lambda stage: None,
    written_by: tuple[str, ...] = (),
    source: Mapping[str, Any] | None = None,
    share: Share | None = None,
) -> Manifest | None:
    """Build a corpus in the folder `path`, or resume an interrupted build.

    `written_by` names the models that wrote the documents, if models did; `source` is the public
    corpus that they are a sample of, with its rule. With a `share` only its shards are written, and
    nothing is returned: once all shares are, the same call without one finishes the corpus, with
    the same bytes. Repeating a finished build changes nothing. Raises `CorpusError` if `path` holds
    another corpus, or an unfinished build of others or by other parameters (unless `restart`).
    """
    stream = check_documents(documents)
    folder = corpus_folder(path)
    # `restart` must not replace files that are not part of a corpus.
    if folder.exists() and not folder.is_dir():
        raise CorpusError(f"{folder}: is a file; `out` must be a folder")
    entries = folder.iterdir() if folder.is_dir() else ()
    names = {entry.name for entry in entries} - {".lock", "shares"}
    if JOURNAL not in names and any(not name.startswith(f".{JOURNAL}.") for name in names):
        try:
            row = json.loads(read_small(folder / MANIFEST) or b"")
            is_corpus = {"format", "tokeniser", "shards"} <= row.keys()
        except (OSError, ValueError, AttributeError):
            is_corpus = False
        if not is_corpus:
            raise CorpusError(
                f"{folder}: contains other files and no reference corpus; choose a new or empty "
                "folder as `out`"
            )
    with _lock(folder if share is None else folder / "shares" / share.name):
        if read_small(folder / MANIFEST) is not None and not restart:
            present = Manifest.read(folder)
            requested = replace(
                present, settings=settings, parameters=asdict(parameters), additions=(0,),
                written_by=written_by, source=source,
            )  # fmt: skip
            # Do not download the same sample of the same files again just to compare it.
            if present == requested and (source is not None or _holds(present, 0, stream)):
                _unfinished(folder, present)
                return present
            raise CorpusError(
                f"{path}: already contains another reference corpus; add to it with "
                "`add`, choose another `out`, or replace it with `restart`"
            )
        manifest = Manifest(settings, asdict(parameters), written_by=written_by, source=source)
        return _extend(folder, manifest, stream, n_jobs, restart, report, share)


def add_documents(
    documents: Iterable[Document],
    path: str | Path,
    *,
    n_jobs: int,
    restart: bool = False,
    report: Report = lambda stage: None,
    share: Share | None = None,
) -> Manifest | None:
    """Add documents to the corpus at `path`, in new shards; resumes an interrupted addition.

    Repeating the last addition changes nothing, unless `restart` is set or some of it was removed.
    """
    stream = check_documents(documents)
    folder = corpus_folder(path)
    Manifest.read(folder)
    with _lock(folder if share is None else folder / "shares" / share.name):
        manifest = Manifest.read(folder)
        _unfinished(folder, manifest)
        if (head := next(stream, None)) is None:
            raise InputError("no texts to add")
        stream = chain([head], stream)
        last = manifest.additions[-1]
        n_before = sum(shard.n_documents for shard in manifest.shards[:last])
        is_whole = not (manifest.read_removed(folder) >= n_before).any()
        if not restart and is_whole and manifest.shards[last].head == text_digest(head.text):
            if _holds(manifest, last, stream):
                return manifest
            raise CorpusError(
                f"{path}: these texts start with the documents that were added last, but are not "
                "the same texts; use `restart` to add all of them (existing documents are kept)"
            )
        return _extend(folder, manifest, stream, n_jobs, restart, report, share)


def remove_documents(path: str | Path, numbers: list[int]) -> Manifest:
    """Exclude these documents from all searches. Their text stays on disk until a rebuild."""
    folder = corpus_folder(path)
    with _lock(folder):
        manifest = Manifest.read(folder)
        before = manifest.read_removed(folder)
        added = np.setdiff1d(np.array(numbers, np.int64), before)
        if not len(added):
            return manifest
        firsts = np.concatenate([[0], np.cumsum([info.n_documents for info in manifest.shards])])
        n_words, content = manifest.n_removed_words, int(manifest.removed_content, 16)
        for k, info in enumerate(manifest.shards):
            chosen = added[(added >= firsts[k]) & (added < firsts[k + 1])] - firsts[k]
            if not len(chosen):
                continue
            place = folder / "shards" / info.name
            check_files([(place, info.files)])
            shard = Shard(place, info)
            ends = np.append(shard.starts[1:], info.n_tokens)
            for number in chosen:
                n_words += int(ends[number] - shard.starts[number]) - 1
                content += content_digest([shard.document(int(number)).text])
        after = np.union1d(before, added)
        file = f"removed-{len(after)}.bin"
        write_whole(folder / file, after.tobytes())
        changed = replace(
            manifest,
            removed=file,
            removed_sha256=hashlib.sha256(after.tobytes()).hexdigest(),
            removed_content=f"{content % 2**256:x}",
            n_removed=len(after),
            n_removed_words=n_words,
        )
        write_whole(folder / MANIFEST, changed.to_json())
        if manifest.removed is not None:
            (folder / manifest.removed).unlink(missing_ok=True)
        return changed


def _extend(
    folder: Path,
    manifest: Manifest,
    documents: Iterator[Document],
    n_jobs: int,
    restart: bool,
    report: Report,
    share: Share | None,
) -> Manifest | None:
    """Write the documents in new shards, after those of an interrupted build of the same ones."""
    n_by_year: Counter[int] = Counter()
    if (years := manifest.years) is not None:
        n_by_year[years.last] = 0
        n_by_year[years.first] += years.n_dated

    def dated() -> Iterator[Document]:
        for document in documents:
            if (year := year_of(document)) is not None:
                n_by_year[year] += 1
            yield document

    stream = dated()
    # Shares may begin at the same time.
    with nullcontext() if share is None else _lock(folder / "shares", waits=True):
        _begin(folder, manifest, restart and share is None)
    first, done = len(manifest.shards), list[ShardInfo]()
    mismatch = CorpusError(
        f"{folder}: the texts differ from those of the interrupted build; use the same texts, or "
        "start over with `restart`"
    )
    # Shards written out of order before an interruption are kept when they are reached.
    while (info := _read_info(folder, first + len(done))) is not None:
        report(f"checking completed shards (shard {int(info.name) + 1})")
        done.append(info)
        if not _is_of(info, stream, manifest.settings):
            raise mismatch
    for k, shard in enumerate(_shards(stream, manifest, n_jobs, report), first + len(done)):
        if share is not None and not share.has(k):
            continue
        if (info := _read_info(folder, k)) is None:
            info = write_shard(folder / "shards" / f"{k:05d}", shard, n_jobs, report)
        elif (info.n_read, info.content) != (shard.n_read, f"{shard.content % 2**256:x}"):
            raise mismatch
        done.append(info)
    if share is not None:
        return None
    if not done:
        raise InputError("no document contains any words; a reference needs texts")
    years = Years(min(n_by_year), max(n_by_year), n_by_year.total()) if n_by_year else None
    shards, additions = (*manifest.shards, *done), (*manifest.additions, first)
    manifest = replace(manifest, shards=shards, additions=additions, years=years)
    report("calibrating")
    opened = [Shard(folder / "shards" / info.name, info) for info in shards]
    factor = calibrated(Reference(LocalPart(About.of(folder, manifest), opened)))
    manifest = replace(manifest, chance_factor=factor)
    write_whole(folder / MANIFEST, manifest.to_json())
    (folder / JOURNAL).unlink(missing_ok=True)
    for leftover in (folder / "shares", *(folder / "shards").glob("*.part*")):
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink(missing_ok=True)
    return manifest


def _read_info(folder: Path, k: int) -> ShardInfo | None:
    """Read the `shard.json` of the k-th shard; None if it is missing or incomplete."""
    file = folder / "shards" / f"{k:05d}" / "shard.json"
    if (data := read_small(file)) is None:
        return None
    try:
        return ShardInfo(**unsealed(data, str(file)))
    except TypeError as error:
        raise CorpusError(
            f"{file}: damaged ({error}); restore it, or build again with `restart`"
        ) from error


def _holds(manifest: Manifest, first: int, stream: Iterator[Document]) -> bool:
    """Whether the shards from `first` on hold exactly the documents of the stream."""
    settings = manifest.settings
    return all(_is_of(shard, stream, settings) for shard in manifest.shards[first:]) and not any(
        settings.has_words(document.text) for document in stream
    )


def _is_of(shard: ShardInfo, stream: Iterator[Document], settings: TextSettings) -> bool:
    """Whether a shard was made of the next documents of the stream; consumes them."""
    read = (document.text for document in islice(stream, shard.n_read))
    return f"{content_digest(filter(settings.has_words, read)):x}" == shard.content


def _unfinished(folder: Path, manifest: Manifest) -> dict[str, Any] | None:
    """The note of an unfinished build or addition; one lacking only the last step is removed."""
    if (journal := read_small(folder / JOURNAL)) is None:
        return None
    plan = unsealed(journal, f"{folder}/{JOURNAL}")
    if not isinstance(plan.get("first"), int):
        raise CorpusError(f"{folder}/{JOURNAL}: damaged; start over with `restart`")
    if plan["first"] >= len(manifest.shards):
        return plan
    (folder / JOURNAL).unlink(missing_ok=True)
    return None


def _begin(folder: Path, manifest: Manifest, restart: bool) -> None:
    """Note what is being built; refuse to resume something else."""
    plan = {
        "fabula": __version__,
        **REFERENCE.mark,
        "settings": asdict(manifest.settings),
        "parameters": manifest.parameters,
        "first": len(manifest.shards),
    }
    if manifest.source is not None:
        plan["source"] = dict(manifest.source)
    unfinished = None if restart else _unfinished(folder, manifest)
    if unfinished is not None and not unfinished.get("clearing"):
        if unfinished != plan:
            raise CorpusError(
                f"{folder}: contains an interrupted build with other parameters or from "
                "another version; repeat its command, or start over with `restart`"
            )
        return
    # Until all old files are deleted, none may be taken for part of this build.
    clearing = seal({"clearing": True, "first": plan["first"]})
    write_whole(folder / JOURNAL, dump_json(clearing).encode())
    if not manifest.shards:
        (folder / MANIFEST).unlink(missing_ok=True)
    for place in (folder / "shards").glob("*"):
        if place.name.isdecimal() and int(place.name) >= len(manifest.shards):
            shutil.rmtree(place)
    write_whole(folder / JOURNAL, dump_json(seal(plan)).encode())


@dataclass(slots=True)
class TokenBatch:
    """Tokenised documents: those of a batch, as returned by a worker, or of a shard so far."""

    known: dict[str, int] = field(default_factory=dict)
    """The distinct words, numbered from 1."""
    parts: list[NDArray[np.uint32]] = field(default_factory=list)
    """The documents in these numbers; 0 ends each of them."""
    lengths: list[int] = field(default_factory=list)
    """The tokens of each document, including its end."""
    ids: list[str] = field(default_factory=list)
    blocks: list[tuple[bytes, int]] = field(default_factory=list)
    """Compressed lines, and the number of documents in them."""
    n_read: int = 0
    content: int = 0
    head: str = ""


def _shards(
    stream: Iterator[Document], manifest: Manifest, n_jobs: int, report: Report
) -> Iterator[TokenBatch]:
    """The documents of each shard: batches are tokenised in order, some of them at a time."""
    parameters = BuildParameters(**manifest.parameters)
    # Small shards, as in tests, need smaller batches. Assumes four characters per token.
    batches = in_batches(stream, min(_BATCH_CHARS, 4 * parameters.shard_tokens))
    tokenise = partial(tokenise_batch, settings=manifest.settings)
    shard, n_tokens = TokenBatch(), 0
    for batch in in_order(tokenise, batches, n_jobs, n_small=_N_SMALL):
        vocabulary, numbers = shard.known, np.zeros(len(batch.known) + 1, np.uint32)
        numbers[1:] = [vocabulary.setdefault(word, len(vocabulary) + 1) for word in batch.known]
        shard.parts += [numbers[part] for part in batch.parts]
        shard.lengths += batch.lengths
        shard.ids += batch.ids
        shard.blocks += batch.blocks
        shard.n_read += batch.n_read
        shard.content += batch.content
        shard.head = shard.head or batch.head
        n_tokens += sum(batch.lengths)
        report(f"reading: {n_tokens - len(shard.ids):,} words of this shard")
        if parameters.is_full(n_tokens, len(vocabulary)):
            yield shard
            shard, n_tokens = TokenBatch(), 0
    if shard.ids:
        yield shard


def tokenise_batch(documents: list[Document], settings: TextSettings) -> TokenBatch:
    """Convert documents to token ids; those without words are left out (but counted as read)."""
    distinct: dict[str, int] = {}
    parts: list[NDArray[np.uint32]] = [np.empty(0, np.uint32)]
    with_words: list[Document] = []
    for document in documents:
        if raw := settings.raw_words(document.text):
            numbers = [distinct.setdefault(word, len(distinct) + 1) for word in raw]
            parts.append(np.array([*numbers, 0], np.uint32))
            with_words.append(document)
    # Several raw words may have the same normal form; only distinct ones are normalised.
    words: dict[str, int] = {}
    forms = settings.normalise(list(distinct))
    table = np.zeros(len(distinct) + 1, np.uint32)
    table[1:] = [words.setdefault(form, len(words) + 1) for form in forms]
    compressor = zstandard.ZstdCompressor(level=6)
    blocks: list[tuple[bytes, int]] = []
    lines: list[bytes] = []
    n_bytes = 0
    for k, document in enumerate(with_words, 1):
        lines.append(document_line(document))
        n_bytes += len(lines[-1])
        if n_bytes >= _BLOCK_CHARS or k == len(with_words):
            blocks.append((compressor.compress(b"\n".join(lines) + b"\n"), len(lines)))
            n_bytes, lines = 0, []
    tokens, lengths = [table[np.concatenate(parts)]], [len(part) for part in parts[1:]]
    ids = [document.id for document in with_words]
    content = content_digest([document.text for document in with_words])
    head = text_digest(documents[0].text)
    return TokenBatch(words, tokens, lengths, ids, blocks, len(documents), content, head)


def write_shard(place: Path, shard: TokenBatch, n_jobs: int, report: Report) -> ShardInfo:
    """Write the shard atomically, as the folder `place`."""
    n_tokens, vocabulary = sum(shard.lengths), shard.known
    report(f"sorting shard {int(place.name) + 1}: {n_tokens:,} words")
    aside = fresh_folder(place)
    counts = np.zeros(len(vocabulary) + 1, np.int64)
    for part in shard.parts:
        counts += np.bincount(part, minlength=len(counts))
    # Ids are by frequency; words of the same frequency are sorted alphabetically.
    words = sorted(vocabulary, key=lambda word: (-counts[vocabulary[word]], word))
    rank = np.zeros(len(words) + 1, np.uint32)
    rank[[vocabulary[word] for word in words]] = np.arange(1, len(words) + 1, dtype=np.uint32)
    tokens = np.concatenate([rank[part] for part in shard.parts])
    # Sorting needs the memory.
    vocabulary.clear()
    shard.parts.clear()
    suffixes = build_suffix_array(tokens, len(words) + 1, n_threads=n_jobs)
    n_pairs = write_index(aside, tokens, suffixes, n_threads=n_jobs)
    del suffixes
    lengths = np.array(shard.lengths, np.int64)
    np.save(aside / "starts.npy", np.cumsum(lengths) - lengths)
    for name, strings in (("words", words), ("ids", shard.ids)):
        data, offsets = concatenated(strings)
        (aside / f"{name}.bin").write_bytes(data.tobytes())
        np.save(aside / f"{name}.npy", offsets)
    order = sorted(range(len(words)), key=words.__getitem__)
    np.save(aside / "words_sorted.npy", np.array(order, np.uint32))
    ends = np.zeros((len(shard.blocks) + 1, 2), np.int64)
    ends[1:] = np.cumsum([(len(data), n) for data, n in shard.blocks], axis=0)
    with (aside / "documents.zst").open("wb") as file:
        file.writelines(data for data, _ in shard.blocks)
    np.save(aside / "blocks.npy", ends)
    info = ShardInfo(
        name=place.name,
        n_documents=len(shard.ids),
        n_words=n_tokens - len(shard.ids),
        n_tokens=n_tokens,
        n_vocabulary=len(words),
        n_pairs=n_pairs,
        n_read=shard.n_read,
        content=f"{shard.content % 2**256:x}",
        head=shard.head,
        files={file.name: checksum(file) for file in sorted(aside.iterdir())},
    )
    (aside / "shard.json").write_text(dump_json(seal(asdict(info))) + "\n", encoding="utf-8")
    report(f"keeping shard {int(place.name) + 1}: {n_tokens:,} words")
    publish_folder(aside, place)
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
        grams = pool.submit(make_filter, tokens, n_threads=max(1, n_threads - 1))
        coded = pack_tokens(tokens)
        np.save(folder / "tokens.npy", coded.codes)
        np.save(folder / "rare_before.npy", coded.rare_before)
        np.save(folder / "rare_ids.npy", coded.rare_ids)
        np.save(folder / "keys.npy", sample_keys(coded.codes, suffixes[::BLOCK_SUFFIXES]).values)
        del coded
        np.save(folder / "suffixes.npy", pack(suffixes, bits_below(n_tokens)).words)
        np.save(folder / "grams.npy", grams.result())
        listed = list(pool.map(lambda edge: list_pairs(tokens, suffixes, *edge), pairwise(edges)))
    table = pack_pairs(listed, n_tokens)
    np.save(folder / "pair_buckets.npy", table.buckets.words)
    np.save(folder / "pairs.npy", table.entries.words)
    return table.entries.n_values


def make_filter(tokens: NDArray[np.uint32], *, n_threads: int) -> NDArray[np.uint64]:
    """The filter of these tokens: uint64 (n_blocks, BLOCK_WORDS), for any number of threads."""
    blocks = np.zeros((n_gram_blocks(len(tokens)), BLOCK_WORDS), np.uint64)
    edges = pairwise(np.linspace(0, len(blocks), n_threads + 1).astype(int).tolist())
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(lambda edge: add_grams(tokens, blocks, *edge), edges))
    return blocks


def verify_reference(path: str | Path, *, report: Report = lambda stage: None) -> Manifest:
    """Compare all checksums, then look up stretches of its own text, of up to 200 documents.

    Raises `CorpusError` that names the shard and the file of the first fault.
    """
    folder = corpus_folder(path)
    manifest = Manifest.read(folder)
    for info in manifest.shards:
        for name, expected in info.files.items():
            report(f"shard {info.name}: {name}")
            file = folder / "shards" / info.name / name
            if not file.exists():
                raise CorpusError(f"{file}: missing from shard {info.name}; build the corpus again")
            if checksum(file) != expected:
                raise CorpusError(
                    f"{file}: shard {info.name} is damaged: this file changed since it was "
                    "written; restore it from a copy, or build the corpus again"
                )
    reference = Reference.open(path, report=report)
    report("searching for its own text")
    n_all = sum(info.n_documents for info in manifest.shards)
    rng = np.random.default_rng(0)
    numbers = rng.choice(n_all, size=min(_N_SAMPLES, n_all), replace=False)
    for number in sorted(map(int, numbers)):
        if reference.about.removed[number]:
            continue
        document = reference.document(number)
        words = reference.locate(document.text).words
        start = int(rng.integers(max(1, len(words) - _SAMPLE_WORDS)))
        sample = words[start : start + _SAMPLE_WORDS]
        lengths = reference.longest_matches(sample)
        rest = np.arange(len(sample), 0, -1)
        if not np.array_equal(lengths, rest) or reference.count(sample) < 1:
            shard = manifest.shards[reference.local.shard_of(number)]
            raise CorpusError(
                f"{shard.name}: the shard does not find its own text (document {document.id!r}, "
                f"word {start}); build the corpus again"
            )
    return manifest
