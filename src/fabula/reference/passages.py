"""The passages of a reference that are most similar to a text, by BM25.

    DIR/passages/KEY/00000/     for the shard with that number
        begins.npy    int64 (n_passages,)     each passage's first token
        lengths.npy   int32 (n_passages,)     its number of words
        data.npy, indices.npy, indptr.npy     BM25 without rarity, columns by word id (sparse)
        shard.json                            what it was made of, checksums

Each document is cut into passages of a fixed number of words that overlap, so that an n-gram no
longer than the overlap is contained whole in one of them. KEY names length, overlap and stop words;
passages with other settings are built beside it.

Lu et al. 2024, section "DJ Search", uses whole documents; passages of one length make the bound on
the work, and the ranking, independent of how a corpus is divided into documents.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.errors import CorpusError, InputError
from fabula.formats import PASSAGES
from fabula.reference.checksums import read_row, seal
from fabula.reference.layout import Shard, ShardInfo, checksums, open_shards
from fabula.reference.local_copies import copy_shards
from fabula.reference.passage_parts import PassageTokens, Queries
from fabula.reference.passage_shards import count_current, tokens_of
from fabula.reference.search import Reference
from fabula.reference.storage import Home, open_home
from fabula.store import dump_json
from fabula.text.stopwords import StopWords

__all__ = [
    "Passage",
    "PassageIndex",
    "PassageSettings",
    "build_passages",
    "verify_passages",
]

Report = Callable[[str], None]

# Passages have the same length, so length does not count (b = 0); nor does it then matter how the
# corpus is divided into shards.
_K1, _B = 1.5, 0.0
_N_REMEMBERED = 1 << 17
"""Maximum number of terms for which the number of passages with the term is cached."""


@dataclass(frozen=True, slots=True)
class PassageSettings:
    """How documents are cut into passages, and which words are compared."""

    n_words: int = 300
    overlap: int = 50

    def __post_init__(self) -> None:
        if not 0 <= self.overlap < self.n_words:
            raise InputError(
                f"passages of {self.n_words} words with an overlap of {self.overlap}: must "
                "satisfy 0 <= overlap < length"
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
    """The number of its document."""
    first_word: int
    """The index of its first word in the document."""
    n_words: int


def build_passages(
    path: str | Path,
    shards: Sequence[ShardInfo],
    settings: PassageSettings,
    stop_words: StopWords,
    report: Report = lambda stage: None,
    *,
    spread: Callable[..., Iterable[int]] = map,
) -> int:
    """Cut and index those shards of the corpus at `path` that have no passages yet.

    A shard is written whole or not at all, so interrupted runs resume. `spread` has the signature
    of `map`, and may process the shards in parallel. Returns the number of passages.
    """
    home = open_home(path).everywhere()
    folder = f"passages/{settings.key(stop_words)}"
    there = {shard.name: count_current(home, folder, shard) for shard in shards}
    if None not in there.values():
        return sum(n for n in there.values() if n is not None)
    with ExitStack() as stack:
        try:
            stack.enter_context(home.lock(folder))
        except OSError as error:
            raise CorpusError(
                f"{path}: has no passages of this kind yet, and they cannot be written ({error}); "
                f"run `fabula reference passages {path}` where the corpus is writable"
            ) from error
        new = [shard for shard in shards if count_current(home, folder, shard) is None]
        write = partial(_write, home, folder, settings=settings, stop_words=stop_words)
        report(f"indexing passages: shard 1 of {len(new)}")
        for k, (shard, n) in enumerate(zip(new, spread(write, new), strict=True), 2):
            there[shard.name] = n
            if k <= len(new):
                report(f"indexing passages: shard {k} of {len(new)}")
    return sum(n for n in there.values() if n is not None)


def verify_passages(home: Home, shards: Sequence[ShardInfo], report: Report) -> None:
    """Compare the checksums of all passages built for the corpus there.

    Raises `CorpusError` that names the file.
    """
    for key in home.names("passages"):
        for shard in shards:
            if count_current(home, f"passages/{key}", shard) is None:
                continue
            report(f"passages {key}: shard {shard.name}")
            folder = f"passages/{key}/{shard.name}"
            row = read_row(home, f"{folder}/shard.json") or {"files": {}}
            for name, expected in row["files"].items():
                if home.checksum(f"{folder}/{name}") != expected:
                    raise CorpusError(
                        f"{home.spec}/{folder}/{name}: damaged or missing; delete "
                        f"{home.spec}/{folder} and run `fabula reference passages {home.spec}`"
                    )


def _write(
    home: Home, folder: str, info: ShardInfo, settings: PassageSettings, stop_words: StopWords
) -> int:
    """Index one shard of the corpus; returns its number of passages."""
    place = f"{folder}/{info.name}"
    (shard,) = open_shards([(copy_shards(home.spec, [info.name]), info)])
    with home.writing(place) as aside:
        n_passages = _fill(aside, shard, settings, stop_words)
        home.remove(place)  # of another shard with that name
    return n_passages


def _fill(aside: Path, shard: Shard, settings: PassageSettings, stop_words: StopWords) -> int:
    """Write the files of a shard's passages to a folder."""
    from bm25s import BM25

    ends = np.append(shard.starts[1:], shard.info.n_tokens) - 1
    spans = [
        (int(start) + first, n)
        for start, end in zip(shard.starts, ends, strict=True)
        for first, n in settings.cut(int(end - start))
    ]
    begins = np.array([begin for begin, _ in spans], np.int64)
    lengths = np.array([n for _, n in spans], np.int32)
    is_content = _content_words(shard, stop_words)
    parts = (shard.read_tokens(begin, begin + n) for begin, n in spans if n)
    texts = [part[is_content[part]] for part in parts]
    with warnings.catch_warnings():
        # If passages have only stop words, there is no mean length, but b = 0 does not need it.
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        scores = BM25(k1=_K1, b=_B, method="lucene").build_index_from_ids(
            list(range(shard.info.n_vocabulary + 1)), texts, show_progress=False
        )
    # A word's rarity is determined over all shards at search time; without it, a score depends only
    # on how often the passage contains the word.
    n_passages_with = np.diff(scores["indptr"])
    rarity = np.repeat(_idf(len(spans), n_passages_with), n_passages_with)
    saturated = np.round(scores["data"] / rarity, 4).astype(np.float32)
    np.save(aside / "begins.npy", begins)
    np.save(aside / "lengths.npy", lengths)
    np.save(aside / "data.npy", saturated)
    np.save(aside / "indices.npy", scores["indices"].astype(np.int32))
    np.save(aside / "indptr.npy", scores["indptr"].astype(np.int64))
    row = {
        **PASSAGES.mark,
        "settings": asdict(settings),
        "stop_words": stop_words.name,
        "bm25": {"k1": _K1, "b": _B, "method": "lucene"},
        "content": shard.info.content,
        "tokens": tokens_of(shard.info),
        "n_passages": len(spans),
        "files": checksums(aside),
    }
    (aside / "shard.json").write_text(dump_json(seal(row)) + "\n", encoding="utf-8")
    return len(spans)


def _content_words(shard: Shard, stop_words: StopWords) -> NDArray[np.bool_]:
    """Whether each word id is a content word: bool, shape (n_vocabulary + 1,)."""
    vocabulary = shard.vocabulary
    found = [stop_words.is_content(vocabulary[k]) for k in range(len(vocabulary))]
    return np.array([False, *found], np.bool_)


class PassageIndex:
    """The passages of one or more corpora, ranked as one.

    BM25 weights a word by its rarity over all shards together, so that a document is ranked the
    same in whichever shard it is. Documents excluded from a search still count towards rarity.
    """

    def __init__(
        self, reference: Reference, settings: PassageSettings, stop_words: StopWords
    ) -> None:
        self.reference = reference
        self.settings = settings
        self.stop_words = stop_words
        self.part = reference.part.passages(settings.key(stop_words))
        self.n_passages = self.part.n_passages
        self._n_with: dict[str, int] = {}

    def best(
        self, words: Iterable[str], n_passages: int, *, exclude: Iterable[int] = ()
    ) -> NDArray[np.int64]:
        """The passages most similar to these words, up to `n_passages`, in the reference's order.

        int64, shape (n_found, 2): shard, and passage of the shard. Each content word counts once.
        Passages without any of the words are left out; ties go to the first.
        """
        return self.best_many([words], n_passages, exclude=exclude)[0]

    def best_many(
        self, texts: Sequence[Iterable[str]], n_passages: int, *, exclude: Iterable[int] = ()
    ) -> list[NDArray[np.int64]]:
        """`best` of several texts, in one request to each part of the reference."""
        is_content = self.stop_words.is_content
        held = [sorted({word for word in words if is_content(word)}) for words in texts]
        terms = sorted({term for some in held for term in some})
        number = {term: k for k, term in enumerate(terms)}
        places = [np.array([number[term] for term in some], np.int64) for some in held]
        queries = Queries(terms, self._weights(terms), places)
        found = self.part.best(queries, n_passages, exclude=sorted(exclude))
        return [np.stack([one.shards, one.passages], axis=1).astype(np.int64) for one in found]

    def read(self, chosen: Sequence[NDArray[np.int64]]) -> dict[int, PassageTokens]:
        """All passages that `best_many` selected, with their words, by shard; each is read once."""
        if not sum(map(len, chosen)):
            return {}
        shards, passages = np.concatenate(chosen).T
        wanted = {int(k): np.unique(passages[shards == k]) for k in np.unique(shards)}
        return self.part.read(wanted)

    def passage(self, k: int, p: int) -> Passage:
        """Passage `p` of shard `k`."""
        one = self.part.read({k: np.array([p], np.int64)})[k]
        return Passage(int(one.numbers[0]), int(one.first_words[0]), int(one.lengths[0]))

    def _weights(self, terms: Sequence[str]) -> NDArray[np.float32]:
        """The weight of each term, from the number of passages with it; these are cached."""
        found = {term: self._n_with.get(term) for term in terms}
        new = [term for term, n in found.items() if n is None]
        if new:
            counted = dict(zip(new, self.part.n_with(new).tolist(), strict=True))
            found |= counted
            if len(self._n_with) > _N_REMEMBERED:
                self._n_with = {}
            self._n_with |= counted
        n_with = np.array(list(found.values()), np.int64)
        return _idf(self.n_passages, n_with).astype(np.float32)


def _idf(n: int, frequency: NDArray[Any]) -> NDArray[np.float64]:
    """Lucene's IDF: the logarithm of 1 + (n - f + 0.5) / (f + 0.5)."""
    idf: NDArray[np.float64] = np.log1p((n - frequency + 0.5) / (frequency + 0.5))
    return idf
