"""The passages of a reference that are most like a text, by BM25.

    DIR/passages/KEY/00000/     of the shard of that number
        begins.npy    int64 (n_passages,)     each passage's first token
        lengths.npy   int32 (n_passages,)     its number of words
        data.npy, indices.npy, indptr.npy     BM25 without rarity, columns by word id (sparse)
        shard.json                            what it was made of, checksums

A document is cut into passages of so many words, each sharing some with the one before, so that an
n-gram that is no longer than what they share stands whole in one of them. KEY names length, overlap
and stop words; other ones are built beside it.

Lu et al. 2024, section "DJ Search", takes whole documents; passages of one length make the bound on
the work, and the ranking, independent of how a corpus is cut into documents.
"""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.errors import CorpusError, InputError
from fabula.kernels.movers import score_terms
from fabula.kernels.packed import read_tokens
from fabula.reference.layout import Shard, ShardInfo, checksums
from fabula.reference.search import Reference
from fabula.store import checksum, dump_json, fresh_folder, publish_folder, writer_lock
from fabula.text.stopwords import StopWords

__all__ = [
    "Passage",
    "PassageIndex",
    "PassageSettings",
    "build_passages",
    "verify_passages",
]

Report = Callable[[str], None]

# Passages are of one length, so length does not count (b = 0); nor does it matter then how the
# corpus is cut into shards.
_K1, _B = 1.5, 0.0
_FILES = ("begins", "lengths", "data", "indices", "indptr")


@dataclass(frozen=True, slots=True)
class PassageSettings:
    """How documents are cut into passages, and which words count when they are compared."""

    n_words: int = 300
    overlap: int = 50

    def __post_init__(self) -> None:
        if not 0 <= self.overlap < self.n_words:
            raise InputError(
                f"passages of {self.n_words} words that share {self.overlap}: give 0 <= shared < "
                f"length"
            )

    def key(self, stop_words: StopWords) -> str:
        return f"{self.n_words}-{self.overlap}-{stop_words.name}"

    def cut(self, n_words: int) -> list[tuple[int, int]]:
        """(first word, number of words) of each passage of a document."""
        step = self.n_words - self.overlap
        begins = [0, *range(step, max(step, n_words - self.overlap), step)]
        return [(begin, min(self.n_words, n_words - begin)) for begin in begins]


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a document of the reference."""

    number: int
    """Its document's number."""
    first_word: int
    """Which word of the document it begins with."""
    n_words: int


def build_passages(
    path: Path,
    shards: Sequence[Shard],
    settings: PassageSettings,
    stop_words: StopWords,
    report: Report = lambda stage: None,
    *,
    spread: Callable[..., Iterable[None]] = map,
) -> None:
    """Cut and index the shards of the corpus at `path` that are not yet; others stay as they are.

    A shard is written whole or not at all, so an interrupted run goes on where it was. `spread` is
    as `map`, and may do the shards side by side.
    """
    home = path / "passages" / settings.key(stop_words)
    if all(_is_current(home / shard.info.name, shard) for shard in shards):
        return
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CorpusError(
            f"{path}: has no passages of this kind yet, and they cannot be written ({error}); run "
            f"`fabula reference passages {path}` where it can be written to"
        ) from error
    with writer_lock(home / ".lock", str(home)):
        new = [
            (home / shard.info.name, shard.folder, shard.info)
            for shard in shards
            if not _is_current(home / shard.info.name, shard)
        ]
        write = partial(_write, settings=settings, stop_words=stop_words)
        report(f"indexing passages: shard 1 of {len(new)}")
        for k, _ in enumerate(spread(write, new), 2):
            if k <= len(new):
                report(f"indexing passages: shard {k} of {len(new)}")


def verify_passages(path: Path, shards: Sequence[Shard], report: Report) -> None:
    """Compare the checksums of all passages that were built for the corpus at `path`.

    Raises `CorpusError` that names the file.
    """
    for home in sorted((path / "passages").glob("*/")):
        for shard in shards:
            folder = home / shard.info.name
            if not _is_current(folder, shard):
                continue
            report(f"passages {home.name}: shard {shard.info.name}")
            row = json.loads((folder / "shard.json").read_bytes())
            for name, expected in row["files"].items():
                file = folder / name
                if not file.exists() or checksum(file) != expected:
                    raise CorpusError(
                        f"{file}: damaged or missing; delete {folder} and run `fabula reference "
                        f"passages {path}`"
                    )


def _is_current(folder: Path, shard: Shard) -> bool:
    """Whether the folder was made of this very shard (a corpus may be built anew in its place)."""
    try:
        row = json.loads((folder / "shard.json").read_bytes())
    except (OSError, ValueError):
        return False
    return bool(row["content"] == shard.info.content and row["tokens"] == _tokens_of(shard))


def _tokens_of(shard: Shard) -> str:
    return shard.info.files["tokens.npy"] + shard.info.files["rare_ids.npy"]


def _write(
    places: tuple[Path, Path, ShardInfo], settings: PassageSettings, stop_words: StopWords
) -> None:
    """Index one shard: the folder to write, and where the shard lies."""
    from bm25s import BM25

    folder, at, info = places
    shard = Shard(at, info)
    aside = fresh_folder(folder)
    ends = np.append(shard.starts[1:], info.n_tokens) - 1
    spans = [
        (int(start) + first, n)
        for start, end in zip(shard.starts, ends, strict=True)
        for first, n in settings.cut(int(end - start))
    ]
    begins = np.array([begin for begin, _ in spans], np.int64)
    lengths = np.array([n for _, n in spans], np.int32)
    is_content = _content_words(shard, stop_words)
    parts = (read_tokens(shard.tokens, begin, begin + n) for begin, n in spans if n)
    texts = [part[is_content[part]] for part in parts]
    with warnings.catch_warnings():
        # Passages of nothing but stop words have no mean length, which b = 0 does not ask for.
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        scores = BM25(k1=_K1, b=_B, method="lucene").build_index_from_ids(
            list(range(shard.info.n_vocabulary + 1)), texts, show_progress=False
        )
    # How rare a word is, is decided over all shards when they are searched; without it, a score
    # is a function of how often the passage holds the word.
    n_passages_with = np.diff(scores["indptr"])
    rarity = np.repeat(_idf(len(spans), n_passages_with), n_passages_with)
    saturated = np.round(scores["data"] / rarity, 4).astype(np.float32)
    np.save(aside / "begins.npy", begins)
    np.save(aside / "lengths.npy", lengths)
    np.save(aside / "data.npy", saturated)
    np.save(aside / "indices.npy", scores["indices"].astype(np.int32))
    np.save(aside / "indptr.npy", scores["indptr"].astype(np.int64))
    row = {
        "settings": asdict(settings),
        "stop_words": stop_words.name,
        "bm25": {"k1": _K1, "b": _B, "method": "lucene"},
        "content": shard.info.content,
        "tokens": _tokens_of(shard),
        "n_passages": len(spans),
        "files": checksums(aside),
    }
    (aside / "shard.json").write_text(dump_json(row) + "\n", encoding="utf-8")
    if folder.exists():
        shutil.rmtree(folder)
    publish_folder(aside, folder)


def _content_words(shard: Shard, stop_words: StopWords) -> NDArray[np.bool_]:
    """By word id, whether it is a content word: bool, shape (n_vocabulary + 1,)."""
    vocabulary = shard.vocabulary
    found = [stop_words.is_content(vocabulary[k]) for k in range(len(vocabulary))]
    return np.array([False, *found], np.bool_)


class _OpenShard:
    """The passages of one shard, mapped from disk."""

    def __init__(self, folder: Path, shard: Shard) -> None:
        if not (folder / "shard.json").exists():
            raise CorpusError(
                f"{folder.parents[2]}: has no passages of this kind; build them with "
                f"`fabula reference passages {folder.parents[2]}`"
            )
        if not _is_current(folder, shard):
            raise CorpusError(
                f"{folder}: the passages are of other texts than the corpus; build them again "
                f"with `fabula reference passages {folder.parents[2]}`"
            )
        try:
            row = json.loads((folder / "shard.json").read_bytes())
            arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in _FILES}
        except (OSError, ValueError) as error:
            raise CorpusError(f"{folder}: a file is missing or damaged ({error})") from error
        self.begins, self.lengths, self.data, self.indices, self.indptr = (
            np.asarray(arrays[name]) for name in _FILES
        )
        if not self._fits(int(row["n_passages"]), shard):
            raise CorpusError(
                f"{folder}: its files do not fit each other; delete the folder and run `fabula "
                f"reference passages` again"
            )
        self.shard = shard
        self.documents = np.searchsorted(shard.starts, self.begins, side="right") - 1

    def _fits(self, n_passages: int, shard: Shard) -> bool:
        """Whether no number leads outside its array: kernels do not look."""
        ends = self.begins + self.lengths
        return bool(
            len(self.begins) == len(self.lengths) == n_passages
            and len(self.indptr) == shard.info.n_vocabulary + 2
            and self.indptr[0] == 0
            and self.indptr[-1] == len(self.data) == len(self.indices)
            and (np.diff(self.indptr) >= 0).all()
            and 0 <= self.indices.min(initial=0) <= self.indices.max(initial=0) < n_passages
            and self.begins.min(initial=0) >= 0
            and self.lengths.min(initial=1) > 0
            and ends.max(initial=0) <= shard.info.n_tokens
        )


class PassageIndex:
    """The passages of one or more corpora, ranked as one.

    BM25 weighs a word by how rare it is over all shards together, so that a document is found alike
    in whichever shard it lies. Documents that are left out of a search still count as far as that.
    """

    def __init__(
        self, reference: Reference, settings: PassageSettings, stop_words: StopWords
    ) -> None:
        self.reference = reference
        self.settings = settings
        self.stop_words = stop_words
        key = settings.key(stop_words)
        self.shards = [
            _OpenShard(shard.folder.parents[1] / "passages" / key / shard.info.name, shard)
            for shard in reference.local.shards
        ]
        self.n_passages = sum(len(shard.begins) for shard in self.shards)

    def best(
        self, words: Iterable[str], n_passages: int, *, exclude: Iterable[int] = ()
    ) -> NDArray[np.int64]:
        """The passages most similar to these words, at most `n_passages`, in the reference's order.

        int64, shape (n_found, 2): shard, and passage of the shard. Each content word counts once.
        Passages that share none are not among them; of equally good ones the first are.
        """
        terms = sorted({word for word in words if self.stop_words.is_content(word)})
        ids = [shard.shard.vocabulary.find(terms).astype(np.int64) for shard in self.shards]
        n_with = [
            shard.indptr[i + 1] - shard.indptr[i] for shard, i in zip(self.shards, ids, strict=True)
        ]
        weights = _idf(self.n_passages, np.sum(n_with, axis=0)).astype(np.float32)
        out = self.reference.local.excluded(exclude)
        found = []
        for k, shard in enumerate(self.shards):
            scores = np.zeros(len(shard.begins), np.float32)
            here = np.flatnonzero(n_with[k])
            score_terms(
                shard.data, shard.indices, shard.indptr, ids[k][here], weights[here], scores
            )
            if (mask := out[k]) is not None:
                scores[mask[shard.documents]] = 0
            found.append(scores)
        return _top(found, n_passages)

    def passage(self, k: int, p: int) -> Passage:
        """Passage `p` of shard `k`."""
        shard = self.shards[k]
        document = int(shard.documents[p])
        return Passage(
            number=int(self.reference.local.first_numbers[k]) + document,
            first_word=int(shard.begins[p] - shard.shard.starts[document]),
            n_words=int(shard.lengths[p]),
        )


def _idf(n: int, frequency: NDArray[Any]) -> NDArray[np.float64]:
    """Lucene's: the logarithm of 1 + (n - f + 0.5) / (f + 0.5)."""
    idf: NDArray[np.float64] = np.log1p((n - frequency + 0.5) / (frequency + 0.5))
    return idf


def _top(scores: Sequence[NDArray[np.float32]], n_passages: int) -> NDArray[np.int64]:
    """(shard, passage) of the best scores above 0, in order; of equal ones the first."""
    parts = []
    for k, values in enumerate(scores):
        places = np.flatnonzero(values > 0)
        places = places[_largest(values[places], n_passages)]
        parts.append((np.full(len(places), k), places, values[places]))
    shards, places, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    chosen = _largest(values, n_passages)
    return np.stack([shards[chosen], places[chosen]], axis=1).astype(np.int64)


def _largest(values: NDArray[np.float32], n: int) -> NDArray[np.int64]:
    """Where the n largest values stand, in order; of equal ones the first."""
    if len(values) <= n:
        return np.arange(len(values))
    least = np.partition(values, len(values) - n)[len(values) - n]
    above = np.flatnonzero(values > least)
    equal = np.flatnonzero(values == least)[: n - len(above)]
    return np.sort(np.concatenate([above, equal]))
