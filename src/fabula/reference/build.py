"""Building, changing and verifying a reference corpus: documents in, immutable shards out.

Documents come as a stream and are cut into batches; batches are tokenised in parallel; a shard is
filled with whole batches. Where a batch or a shard ends depends only on the documents and the
parameters, never on the number of workers or on an interruption, and the same holds for every byte
written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from fabula import __version__
from fabula.errors import CorpusError, InputError
from fabula.formats import REFERENCE
from fabula.reference.checksums import Report, parse_row
from fabula.reference.info import read_removed, year_of
from fabula.reference.layout import (
    Manifest,
    ShardInfo,
    Years,
    content_digest,
    open_shards,
    read_shard_info,
    text_digest,
)
from fabula.reference.search import Reference
from fabula.reference.shards import ShardBatches, kept_shard, tokenise_stream, write_shard
from fabula.reference.storage import Home, open_home
from fabula.resume import Share
from fabula.store import dump_json
from fabula.text import TextSettings, check_documents
from fabula.types import Document


def remove_documents(path: str | Path, numbers: list[int]) -> Manifest:
    """Exclude these documents from all searches. Their text stays on disk until a rebuild."""
    home = open_home(path)
    with home.lock():
        manifest = Manifest.read(home)
        before = read_removed(home, manifest)
        added = np.setdiff1d(np.array(numbers, np.int64), before)
        if not len(added):
            return manifest
        sizes = [info.n_documents for info in manifest.shards]
        firsts = np.concatenate([[0], np.cumsum(sizes)])
        n_words, content = manifest.n_removed_words, int(manifest.removed_content, 16)
        for k, info in enumerate(manifest.shards):
            here = added[(added >= firsts[k]) & (added < firsts[k + 1])] - firsts[k]
            if not len(here):
                continue
            (shard,) = open_shards([(home.path, info)])
            ends = np.append(shard.starts[1:], info.n_tokens)
            for number in here:
                n_words += int(ends[number] - shard.starts[number]) - 1
                content += content_digest([shard.document(int(number)).text])
        after = np.union1d(before, added)
        file = f"removed-{len(after)}.bin"
        home.write(file, after.tobytes())
        changed = replace(
            manifest,
            removed=file,
            removed_sha256=hashlib.sha256(after.tobytes()).hexdigest(),
            removed_content=f"{content % 2**256:x}",
            n_removed=len(after),
            n_removed_words=n_words,
        )
        home.write("manifest.json", changed.to_json())
        if manifest.removed is not None:
            home.remove(manifest.removed)
        return changed


_MANIFEST = "manifest.json"
_JOURNAL = "building.json"
_BATCH_CHARS = 1 << 20

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

    @property
    def batch_chars(self) -> int:
        # Small shards, as in tests, need smaller batches. Assumes four characters per token.
        return min(_BATCH_CHARS, 4 * self.shard_tokens)

    def is_full(self, n_tokens: int, n_vocabulary: int) -> bool:
        used = _BYTES_PER_TOKEN * n_tokens + _BYTES_PER_WORD * n_vocabulary
        return n_tokens >= self.shard_tokens or used >= self.memory_bytes - _RESERVED_BYTES


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
    corpus that they are a sample of, with its sampling rule. With a `share` only its shards are
    written, and nothing is returned: once all shares are, the same call without one finishes the
    corpus, with the same bytes. Repeating a finished build changes nothing. Raises `CorpusError` if
    `path` holds another corpus, or an unfinished build of other documents or parameters (unless
    `restart`).
    """
    stream = _Dated(check_documents(documents))
    home = open_home(path)
    _check_room(home)
    with home.lock("" if share is None else f"shares/{share.name}"):
        if home.read(_MANIFEST) is not None and not restart:
            found = Manifest.read(home)
            asked = settings, asdict(parameters), (0,), written_by, source
            there = (
                found.settings,
                found.parameters,
                found.additions,
                found.written_by,
                found.source,
            )
            # Do not download the same sample of the same files again just to compare it.
            if there == asked and (source is not None or _holds(found, 0, stream)):
                _forget_finished(home, found)
                return found
            raise CorpusError(
                f"{path}: already contains another reference corpus; add to it with "
                "`add`, choose another `out`, or replace it with `restart`"
            )
        manifest = Manifest(settings, asdict(parameters), written_by=written_by, source=source)
        return _extend(home, manifest, stream, n_jobs, restart, report, share)


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
    stream = _Dated(check_documents(documents))
    home = open_home(path)
    Manifest.read(home)
    with home.lock("" if share is None else f"shares/{share.name}"):
        manifest = Manifest.read(home)
        _forget_finished(home, manifest)
        head = next(stream, None)
        if head is None:
            raise InputError("no texts to add")
        stream = _Dated(chain([head], stream))
        last = manifest.additions[-1]
        n_before = sum(shard.n_documents for shard in manifest.shards[:last])
        is_whole = not (read_removed(home, manifest) >= n_before).any()
        if not restart and is_whole and manifest.shards[last].head == text_digest(head.text):
            if _holds(manifest, last, stream):
                return manifest
            raise CorpusError(
                f"{path}: these texts start with the documents that were added last, but are not "
                "the same texts; use `restart` to add all of them (existing documents are kept)"
            )
        return _extend(home, manifest, stream, n_jobs, restart, report, share)


class _Dated(Iterator[Document]):
    """Documents, with the range of the years in the field `year` of those read so far."""

    def __init__(self, documents: Iterator[Document]) -> None:
        self._documents = documents
        self.years: Years | None = None

    def __next__(self) -> Document:
        document = next(self._documents)
        if (year := year_of(document)) is not None:
            self.years = Years(year, year, 1).with_more(self.years)
        return document


def _extend(
    home: Home,
    manifest: Manifest,
    stream: _Dated,
    n_jobs: int,
    restart: bool,
    report: Report,
    share: Share | None,
) -> Manifest | None:
    parameters = BuildParameters(**manifest.parameters)
    first = len(manifest.shards)
    if share is None:
        _begin(home, manifest, restart)
    else:
        # One of several that may begin at the same time.
        with home.lock("shares", waits=True):
            _begin(home, manifest, restart=False)
    done: list[ShardInfo] = []
    # Shards written out of order before an interruption are kept when they are reached.
    while (info := read_shard_info(home, f"{first + len(done):05d}")) is not None:
        report(f"checking completed shards (shard {int(info.name) + 1})")
        done.append(info)
        if not _is_of(info, stream, manifest.settings):
            raise CorpusError(
                f"{home}: the texts differ from those of the interrupted build; use the same "
                "texts, or start over with `restart`"
            )
    shards = _fill_shards(stream, manifest.settings, parameters, n_jobs, report)
    for k, shard in enumerate(shards, first + len(done)):
        if share is None or share.has(k):
            name = f"{k:05d}"
            kept = kept_shard(home, name, shard.n_read, shard.content)
            done.append(kept or write_shard(home, name, shard, n_jobs, report))
    if share is not None:
        return None
    if not done:
        raise InputError("no document contains any words; a reference needs texts")
    manifest = replace(
        manifest,
        shards=(*manifest.shards, *done),
        additions=(*manifest.additions, first),
        years=stream.years if manifest.years is None else manifest.years.with_more(stream.years),
    )
    home.write(_MANIFEST, manifest.to_json())
    home.remove(_JOURNAL)
    home.remove("shares")
    for left in home.names("shards"):
        if ".part" in left:
            home.remove(f"shards/{left}")
    return manifest


def _check_room(home: Home) -> None:
    """Refuse to build among files that are not part of a corpus, which `restart` might replace."""
    if home.path.exists() and not home.path.is_dir():
        raise CorpusError(f"{home}: is a file; `out` must be a folder")
    ours = {".lock", "shares"}
    names = {n for n in home.names() if n not in ours and not n.startswith(f".{_JOURNAL}.")}
    if not names or _JOURNAL in names:
        return
    try:
        row = json.loads(home.read(_MANIFEST) or b"")
        is_corpus = {"format", "tokeniser", "shards"} <= row.keys()
    except (OSError, ValueError, AttributeError):
        is_corpus = False
    if not is_corpus:
        raise CorpusError(
            f"{home}: contains other files and no reference corpus; choose a new or empty "
            "folder as `out`"
        )


def _holds(manifest: Manifest, first: int, stream: Iterator[Document]) -> bool:
    """Whether the shards from `first` on hold exactly the documents of the stream."""
    settings = manifest.settings
    return all(_is_of(shard, stream, settings) for shard in manifest.shards[first:]) and not any(
        settings.has_words(document.text) for document in stream
    )


def _is_of(shard: ShardInfo, stream: Iterator[Document], settings: TextSettings) -> bool:
    """Whether a shard was made of the next documents of the stream; consumes them."""
    read = (d.text for d in islice(stream, shard.n_read))
    content = sum(content_digest([text]) for text in read if settings.has_words(text)) % 2**256
    return f"{content:x}" == shard.content


def _unfinished(home: Home) -> dict[str, Any] | None:
    """The note left by an unfinished build or addition."""
    journal = home.read(_JOURNAL)
    if journal is None:
        return None
    plan = parse_row(journal, f"{home}/{_JOURNAL}")
    if not isinstance(plan.get("first"), int):
        raise CorpusError(f"{home}/{_JOURNAL}: damaged; start over with `restart`")
    return plan


def _forget_finished(home: Home, manifest: Manifest) -> None:
    """Remove the note of a build that was interrupted between its last two steps."""
    plan = _unfinished(home)
    if plan is not None and plan["first"] < len(manifest.shards):
        home.remove(_JOURNAL)


def _begin(home: Home, manifest: Manifest, restart: bool) -> None:
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
    unfinished = None if restart else _unfinished(home)
    if unfinished is not None and not unfinished.get("clearing"):
        if unfinished != plan:
            raise CorpusError(
                f"{home}: contains an interrupted build with other parameters or from "
                "another version; repeat its command, or start over with `restart`"
            )
        return
    # Until all old files are deleted, none may be taken for part of this build.
    clearing = {"clearing": True, "first": plan["first"]}
    home.write(_JOURNAL, dump_json(clearing).encode())
    if not manifest.shards:
        home.remove(_MANIFEST)
    for name in home.names("shards"):
        if name.isdecimal() and int(name) >= len(manifest.shards):
            home.remove(f"shards/{name}")
    home.write(_JOURNAL, dump_json(plan).encode())


def _fill_shards(
    stream: Iterator[Document], settings: TextSettings, parameters: BuildParameters, n_jobs: int,
    report: Report,
) -> Iterator[ShardBatches]:  # fmt: skip
    shard = ShardBatches()
    for batch in tokenise_stream(stream, settings, parameters.batch_chars, n_jobs):
        shard.add(batch)
        report(f"reading: {shard.n_tokens - shard.n_documents:,} words of this shard")
        if parameters.is_full(shard.n_tokens, len(shard.known)):
            yield shard
            shard = ShardBatches()
    if shard.n_documents:
        yield shard


_SAMPLE_WORDS = 24


def verify_reference(
    path: str | Path, *, n_samples: int = 200, report: Report = lambda stage: None
) -> Manifest:
    """Compare all checksums, then look up `n_samples` stretches of its own text.

    Raises `CorpusError` that names the shard and the file of the first fault.
    """
    home = open_home(path)
    manifest = Manifest.read(home)
    for info in manifest.shards:
        for name, expected in info.files.items():
            report(f"shard {info.name}: {name}")
            file = f"{home}/shards/{info.name}/{name}"
            found = home.checksum(f"shards/{info.name}/{name}")
            if found is None:
                raise CorpusError(f"{file}: missing from shard {info.name}; build the corpus again")
            if found != expected:
                raise CorpusError(
                    f"{file}: shard {info.name} is damaged: this file changed since it was "
                    "written; restore it from a copy, or build the corpus again"
                )
    reference = Reference.open(path, report=report)
    report("searching for its own text")
    n_all = sum(info.n_documents for info in manifest.shards)
    rng = np.random.default_rng(0)
    numbers = rng.choice(n_all, size=min(n_samples, n_all), replace=False)
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
