"""Searching a reference corpus: longest matches, counts, occurrences, sources."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fabula.errors import CorpusError, InputError
from fabula.kernels.match import count_allowed, find_interval
from fabula.reference.backend import Attribution, LocatedText, Matches, Occurrence
from fabula.reference.layout import Manifest, Shard
from fabula.reference.matching import match_shard
from fabula.reference.removed import read_removed
from fabula.text import TextSettings, TextWords
from fabula.types import Document, Span

__all__ = ["Reference"]

MAX_PLACES = 100_000
"""Places of one n-gram in one shard that are put in order; more are counted, but not looked at."""
_N_LOCATED = 64
"""Documents whose words' places are remembered."""


class Reference:
    """One or more reference corpora, open for reading and searched as one.

    >>> reference = Reference.open(path)                               # doctest: +SKIP
    >>> reference.longest_matches(["it", "was", "the", "best", "of"])  # doctest: +SKIP
    array([5, 4, 3, 2, 1], dtype=int32)

    Words are compared in the corpus's normal form (`settings`); `reference.locate(text)` gives a
    text's words in that form. Documents are numbered from 0 in the order they came in, corpora
    one after the other; removed documents keep their numbers and are never found.
    """

    def __init__(self, paths: Sequence[Path], manifests: Sequence[Manifest]) -> None:
        self.settings: TextSettings = manifests[0].settings
        for path, manifest in zip(paths, manifests, strict=True):
            if manifest.settings != self.settings:
                raise CorpusError(
                    f"{path}: made with {manifest.settings}, {paths[0]} with {self.settings}; "
                    f"search references of one kind together"
                )
        self.name = "+".join(path.resolve().name for path in paths)
        self.fingerprint = "+".join(manifest.fingerprint for manifest in manifests)
        self.n_documents = sum(manifest.n_documents for manifest in manifests)
        self.n_words = sum(manifest.n_words for manifest in manifests)
        self.written_by = tuple(
            dict.fromkeys(model for manifest in manifests for model in manifest.written_by)
        )
        """The models that wrote it; empty where people did, or nobody said."""
        self.shards = [
            Shard(path / "shards" / info.name, info)
            for path, manifest in zip(paths, manifests, strict=True)
            for info in manifest.shards
        ]
        sizes = [shard.info.n_documents for shard in self.shards]
        self.first_numbers = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._removed = np.zeros(int(self.first_numbers[-1]), np.bool_)
        first = 0
        for path, manifest in zip(paths, manifests, strict=True):
            self._removed[first + read_removed(path, manifest)] = True
            first += sum(info.n_documents for info in manifest.shards)
        self._located: OrderedDict[int, tuple[Document, TextWords]] = OrderedDict()
        self._lock = threading.Lock()
        # The same phrases recur from text to text.
        self._found = lru_cache(maxsize=1 << 14)(self._find)

    @classmethod
    def open(cls, path: str | Path, *more: str | Path) -> Self:
        """Open the corpora at these paths as one reference.

        Raises `CorpusError` where a path holds none, a damaged one, or one of other settings.
        """
        paths = [Path(p) for p in (path, *more)]
        return cls(paths, [Manifest.read(p) for p in paths])

    @classmethod
    def build(
        cls,
        documents: Iterable[Document],
        path: str | Path,
        *,
        settings: TextSettings = TextSettings(),
        shard_tokens: int | None = None,
        memory_bytes: int | None = None,
        n_jobs: int = 1,
        restart: bool = False,
    ) -> Self:
        """Build a corpus at `path` (or finish an interrupted build) and open it."""
        from fabula.reference.build import BuildParameters, build_reference

        given = {"shard_tokens": shard_tokens, "memory_bytes": memory_bytes}
        parameters = BuildParameters(**{k: v for k, v in given.items() if v is not None})
        build_reference(
            documents,
            Path(path),
            settings=settings,
            parameters=parameters,
            n_jobs=n_jobs,
            restart=restart,
        )
        return cls.open(path)

    @property
    def size(self) -> str:
        """How large it is, for people."""
        return f"{self.n_words:,} words in {self.n_documents:,} documents"

    def _repr_html_(self) -> str:
        from fabula.web.notebook import notebook_table

        lines = [("holds", self.size, None), ("words are compared as", str(self.settings), None)]
        return notebook_table(f"Reference {self.name}", lines, f"{self.name}@{self.fingerprint}")

    def close(self) -> None:
        """Nothing to let go of: files are mapped, and closed with the last array."""

    def locate(self, text: str) -> TextWords:
        """The words of `text` in the reference's normal form, and where they stand."""
        return self.settings.locate(text)

    def match_texts(
        self, texts: Sequence[LocatedText], *, exclude: Iterable[int] = (), n_threads: int = 1
    ) -> list[Matches]:
        """The longest matches of many texts; documents numbered in `exclude` do not count."""
        words = [text.words.words for text in texts]
        return list(self.longest_matches_many(words, exclude=exclude, n_threads=n_threads))

    def cite(
        self,
        text: LocatedText,
        first: int,
        n_words: int,
        n_sources: int,
        *,
        exclude: Iterable[int] = (),
    ) -> Attribution:
        """`attribute` for the n-gram of `n_words` words from word `first` of a text on."""
        words = tuple(text.words.words[first : first + n_words])
        return self.attribute(words, n_sources, exclude=exclude)

    def longest_matches(
        self, words: Sequence[str], *, exclude: Iterable[int] = (), n_threads: int = 1
    ) -> NDArray[np.int32]:
        """Length of the longest n-gram that starts at each word and occurs in a document.

        int32, shape (n_words,); 0 where the word itself does not occur. Documents that are
        removed, or numbered in `exclude`, do not count.
        """
        return self.longest_matches_many([words], exclude=exclude, n_threads=n_threads)[0]

    def longest_matches_many(
        self,
        documents: Sequence[Sequence[str]],
        *,
        exclude: Iterable[int] = (),
        n_threads: int = 1,
    ) -> list[NDArray[np.int32]]:
        """`longest_matches` of many documents in one call; no match crosses from one to another."""
        lengths = [len(words) for words in documents]
        distinct: dict[str, int] = {}
        places = np.zeros(sum(lengths) + len(lengths), np.int64)
        at = 0
        for words in documents:
            for word in self.settings.normalise(words):
                places[at] = distinct.setdefault(word, len(distinct) + 1)
                at += 1
            at += 1
        excluded = self.excluded(exclude)
        longest = np.zeros(len(places), np.int32)
        for shard, out in zip(self.shards, excluded, strict=True):
            ids = np.zeros(len(distinct) + 1, np.uint32)
            ids[1:] = shard.vocabulary.find(list(distinct))
            np.maximum(longest, match_shard(shard, ids[places], out, n_threads), out=longest)
        ends = np.cumsum(np.array(lengths, np.int64) + 1) - 1
        return [longest[end - n : end] for end, n in zip(ends, lengths, strict=True)]

    def count(self, words: Sequence[str], *, exclude: Iterable[int] = ()) -> int:
        """How often the n-gram `words` occurs in documents not removed or excluded."""
        excluded = self.excluded(exclude)
        total = 0
        for shard, out in zip(self.shards, excluded, strict=True):
            low, high = self._interval(shard, words)
            total += (
                high - low
                if out is None
                else int(count_allowed(shard.suffixes, shard.starts, out, low, high))
            )
        return total

    def occurrences(
        self, words: Sequence[str], limit: int = 10, *, exclude: Iterable[int] = ()
    ) -> list[Occurrence]:
        """Places where the n-gram `words` stands, in the order of the reference, at most `limit`.

        Of an n-gram that is more frequent than that in a shard, only the first `MAX_PLACES` places
        of the suffix array are put in order.
        """
        numbers, places = self._places(words, exclude)
        return [
            self.occurrence(int(number), int(place), len(words))
            for number, place in zip(numbers[:limit], places[:limit], strict=True)
        ]

    def attribute(
        self, words: Sequence[str], n_sources: int = 3, *, exclude: Iterable[int] = ()
    ) -> Attribution:
        """How often the n-gram occurs, in how many documents, and the first `n_sources` of them."""
        count, n_documents, n_places, first = self._found(
            tuple(words), n_sources, frozenset(exclude)
        )
        sources = tuple(self.occurrence(number, place, len(words)) for number, place in first)
        return Attribution(count, n_documents, n_places < count, sources)

    def _find(
        self, words: tuple[str, ...], n_sources: int, exclude: frozenset[int]
    ) -> tuple[int, int, int, tuple[tuple[int, int], ...]]:
        """Count, documents, places looked at, and (document, place) of the first sources."""
        count = self.count(words, exclude=exclude)
        numbers, places = self._places(words, exclude)
        distinct, first = np.unique(numbers, return_index=True)
        chosen = zip(distinct[:n_sources].tolist(), places[first[:n_sources]].tolist(), strict=True)
        return count, len(distinct), len(places), tuple(chosen)

    def documents_with(self, words: Sequence[str], *, exclude: Iterable[int] = ()) -> list[int]:
        """The numbers of the documents in which the n-gram stands (bounded as `occurrences`)."""
        numbers, _ = self._places(words, exclude)
        return [int(number) for number in np.unique(numbers)]

    def documents_of(
        self, words: Sequence[str], max_places: int, *, exclude: Iterable[int] = ()
    ) -> tuple[NDArray[np.int64], bool]:
        """The numbers of the documents in which the n-gram stands, and whether some are left out.

        Looks at `max_places` places in each shard at most. int64, shape (n_found,), ascending.
        """
        exclude = frozenset(exclude)
        numbers, _ = self._places(words, exclude, max_places)
        return np.unique(numbers), len(numbers) < self.count(words, exclude=exclude)

    def document(self, number: int) -> Document:
        """The document of that number, as it was read when the corpus was built."""
        k = self.shard_of(number)
        return self.shards[k].document(number - int(self.first_numbers[k]))

    def numbers(self) -> list[int]:
        """The numbers of all documents that are not removed, in order."""
        return np.flatnonzero(~self._removed).tolist()

    def is_removed(self, number: int) -> bool:
        """Whether the document of that number was removed."""
        return bool(self._removed[number])

    def shard_of(self, number: int) -> int:
        """Which shard, counted over all corpora, holds the document of that number."""
        return int(np.searchsorted(self.first_numbers, number, side="right")) - 1

    def numbers_of(self, ids: Iterable[str]) -> dict[str, list[int]]:
        """The numbers of the documents with these ids; several documents may share one.

        Raises `InputError` where an id is not in the reference.
        """
        found: dict[str, list[int]] = {id_: [] for id_ in ids}
        for first, shard in zip(self.first_numbers, self.shards, strict=False):
            for k in range(len(shard.ids)):
                if (id_ := shard.ids[k]) in found and not self._removed[int(first) + k]:
                    found[id_].append(int(first) + k)
        missing = [id_ for id_, numbers in found.items() if not numbers]
        if missing:
            raise InputError(
                f"{len(missing)} of {len(found)} ids are not in {self.name}, the first is "
                f"{missing[0]!r}; `fabula reference info --ids` lists them"
            )
        return found

    def ids(self) -> Iterable[str]:
        """The ids of all documents that are not removed, in order."""
        for first, shard in zip(self.first_numbers, self.shards, strict=False):
            for k in range(len(shard.ids)):
                if not self._removed[int(first) + k]:
                    yield shard.ids[k]

    def _interval(self, shard: Shard, words: Sequence[str]) -> tuple[int, int]:
        normal = self.settings.normalise(words)
        if not normal:
            raise ValueError("an n-gram has at least one word")
        query = shard.vocabulary.find(normal)
        if not query.all():
            return 0, 0
        low, high = find_interval(shard.tokens, shard.suffixes, query)
        return int(low), int(high)

    def _places(
        self, words: Sequence[str], exclude: Iterable[int], max_places: int = MAX_PLACES
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Document numbers and word places of an n-gram, in order. Both int64, shape (n_found,)."""
        all_numbers, all_places = [], []
        for first, shard, out in zip(
            self.first_numbers, self.shards, self.excluded(exclude), strict=False
        ):
            low, high = self._interval(shard, words)
            places = np.sort(shard.suffixes[low : min(high, low + max_places)]).astype(np.int64)
            numbers = np.searchsorted(shard.starts, places, side="right") - 1
            if out is not None:
                places, numbers = places[~out[numbers]], numbers[~out[numbers]]
            all_numbers.append(numbers + first)
            all_places.append(places - shard.starts[numbers])
        return np.concatenate(all_numbers), np.concatenate(all_places)

    def occurrence(self, number: int, place: int, n_words: int) -> Occurrence:
        """The words from `place` on, counted from 0, of the document of that number."""
        document, located = self.located_document(number)
        start, end = int(located.starts[place]), int(located.ends[place + n_words - 1])
        return Occurrence(number, document, Span(document.id, start, end))

    def excluded(self, exclude: Iterable[int]) -> list[NDArray[np.bool_] | None]:
        """By shard, which of its documents are out: removed, or of these numbers.

        bool, shape (n_documents,); None where none is.
        """
        out = self._removed
        numbers = list(exclude)
        if numbers:
            out = out.copy()
            out[numbers] = True
        parts = [out[a:b] for a, b in pairwise(self.first_numbers)]
        return [part if part.any() else None for part in parts]

    def located_document(self, number: int) -> tuple[Document, TextWords]:
        """The document of that number, and its words; the last ones are remembered."""
        with self._lock:
            known = self._located.pop(number, None)
            if known is None:
                document = self.document(number)
                known = document, self.locate(document.text)
                if len(self._located) >= _N_LOCATED:
                    self._located.popitem(last=False)
            self._located[number] = known
        return known
