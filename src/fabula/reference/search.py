"""Searching a reference: longest matches, counts, occurrences, sources; and opening one by name."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fabula.core.cached_results import Recent
from fabula.core.errors import InputError, LookupFailed, without_controls
from fabula.core.packages import Registry
from fabula.core.types import Document, Span
from fabula.reference import catalogue
from fabula.reference.backend import (
    Attribution,
    Backend,
    LocatedText,
    Matches,
    Occurrence,
    ServerAway,
    Spans,
)
from fabula.reference.files import Report, is_address
from fabula.reference.parts import About, Found, JoinedParts, LocalPart, Part
from fabula.text import TextSettings, TextWords

MAX_PLACES = 100_000
"""Maximum number of places of one n-gram sorted per shard; the rest are only counted."""
N_LOCATED = 64
"""Number of documents whose located words are cached, whatever their length."""
_LOCATED_WORDS = 1 << 21
"""Further documents are cached while all of them together have at most this many words."""
_N_FOUND, _N_NAMED = 1 << 14, 100
"""N-grams cached, and documents cached for each: phrases recur from text to text."""
_WEB, _INDEX, _MINI = "infinigram:", "infinigram-index:", "infinigram-mini:"
_OWN_SERVER = "FABULA_INFINIGRAM_URL"

REFERENCES: Registry[Callable[[str], Backend]] = Registry("references")
"""How to open references of other kinds, by what stands before the colon in their names."""


def number_words(documents: Iterable[Sequence[str]]) -> tuple[list[str], NDArray[np.int32]]:
    """The distinct words, and all documents concatenated as word numbers, counted from 1.

    int32, shape (n_words + n_documents,): a 0 ends each document.
    """
    distinct: dict[str, int] = {}
    places: list[int] = []
    for words in documents:
        places += (distinct.setdefault(word, len(distinct) + 1) for word in words)
        places.append(0)
    return list(distinct), np.array(places, np.int32)


class _Split(NamedTuple):
    """A document, split into words as far as it was needed."""

    document: Document
    places: NDArray[np.int64]
    """Where each word begins and ends: shape (n_words, 2)."""
    words: list[str] | None
    """All of its words; None if the places may be of the first ones only."""


class Reference:
    """One or more reference corpora, open for reading and searched as one.

    >>> reference = Reference.open(path)                               # doctest: +SKIP
    >>> reference.longest_matches(["it", "was", "the", "best", "of"])  # doctest: +SKIP
    array([5, 4, 3, 2, 1], dtype=int32)

    Words are compared in the corpus's normal form (`settings`); `reference.locate(text)` gives a
    text's words in that form. Documents are numbered from 0 in the order they were added, one
    corpus after the other; removed documents keep their numbers and are never found.
    """

    def __init__(self, part: Part) -> None:
        self.about = about = part.about
        self.name, self.fingerprint, self.settings = about.name, about.fingerprint, about.settings
        self.n_documents, self.n_words, self.age = about.n_documents, about.n_words, about.age
        self.written_by = about.written_by
        """The models that wrote it; empty if people did, or if unknown."""
        self.part = part
        self.paths: tuple[str, ...] = ()
        """The paths it was opened from, as strings; empty if it was assembled from parts."""
        self._split: Recent[int, _Split] = Recent(
            _LOCATED_WORDS, lambda _, split: len(split.places), at_least=N_LOCATED
        )
        self._found: Recent[tuple[object, ...], Found] = Recent(_N_FOUND, lambda *_: 1)
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: str | Path, *more: str | Path, report: Report = lambda _: None) -> Self:
        """Open the corpora at these paths as one reference; one at an address is fetched once.

        A corpus given twice counts once. Raises `CorpusError` if a path holds no corpus, a damaged
        one, or one with other settings.
        """
        opened = cls(LocalPart.open((path, *more), report))
        opened.paths = (str(path), *map(str, more))
        return opened

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

        values = {"shard_tokens": shard_tokens, "memory_bytes": memory_bytes}
        limits = BuildParameters(**{k: v for k, v in values.items() if v is not None})
        build_reference(
            documents, path, settings=settings, parameters=limits, n_jobs=n_jobs, restart=restart
        )
        return cls.open(path)

    @property
    def size(self) -> str:
        """Its size, formatted for people."""
        return f"{self.n_words:,} words in {self.n_documents:,} documents"

    def _repr_html_(self) -> str:
        from fabula.web import notebook_table

        lines = [("holds", self.size, None), ("words are compared as", str(self.settings), None)]
        return notebook_table(f"Reference {self.name}", lines, f"{self.name}@{self.fingerprint}")

    @property
    def is_local(self) -> bool:
        """Whether all of it is on this machine's disk."""
        return isinstance(self.part, LocalPart)

    def close(self) -> None:
        """Close connections to remote parts."""
        self.part.close()

    def locate(self, text: str) -> TextWords:
        """The words of `text` in the reference's normal form, with their positions."""
        return self.settings.locate(text)

    def match_texts(
        self, texts: Sequence[LocatedText], *, exclude: Iterable[int] = (), n_threads: int = 1
    ) -> list[Matches]:
        """The longest matches of many texts, ignoring documents numbered in `exclude`.

        A failed text has its `LookupFailed`. Raises `ServerAway` after three failures in a row.
        """
        words, out = [text.words.words for text in texts], sorted(exclude)
        try:
            return list(self.longest_matches_many(words, exclude=out, n_threads=n_threads))
        except LookupFailed as error:
            if self.is_local or isinstance(error, ServerAway):
                raise
            if len(words) == 1:
                return [error]
            # One of them may be the cause: each is queried separately, so that others do not fail.
            parts = [self.match_texts([text], exclude=out) for text in texts]
            return [matches for part in parts for matches in part]

    def cite(
        self, text: LocatedText, spans: Spans, n_sources: int, *, exclude: Iterable[int] = ()
    ) -> list[Attribution]:
        """`attribute` for each n-gram of a text."""
        grams = [tuple(text.words.words[first : first + n]) for first, n in spans]
        return self.attribute_many(grams, n_sources, exclude=exclude)

    def longest_matches(
        self, words: Sequence[str], *, exclude: Iterable[int] = (), n_threads: int = 1
    ) -> NDArray[np.int32]:
        """Length of the longest n-gram that starts at each word and occurs in a document.

        int32, shape (n_words,), from 0. Documents removed or in `exclude` do not count.
        """
        return self.longest_matches_many([words], exclude=exclude, n_threads=n_threads)[0]

    def longest_matches_many(
        self, documents: Sequence[Sequence[str]], *, exclude: Iterable[int] = (), n_threads: int = 1
    ) -> list[NDArray[np.int32]]:
        """`longest_matches` of many documents in one call; no match spans two of them."""
        lengths = [len(words) for words in documents]
        distinct, places = number_words(self.settings.normalise(words) for words in documents)
        longest = self.part.match(distinct, places, exclude=sorted(exclude), n_threads=n_threads)
        ends = np.cumsum(np.array(lengths, np.int64) + 1) - 1
        return [longest[end - n : end] for end, n in zip(ends, lengths, strict=True)]

    def count(self, words: Sequence[str], *, exclude: Iterable[int] = ()) -> int:
        """How often the n-gram `words` occurs in documents not removed or excluded."""
        return self.counts([words], exclude=exclude)[0]

    def counts(self, grams: Sequence[Sequence[str]], *, exclude: Iterable[int] = ()) -> list[int]:
        """`count` of many n-grams in one call."""
        return [hit.count for hit in self._find(grams, 0, 0, exclude)]

    def occurrences(
        self, words: Sequence[str], limit: int = 10, *, exclude: Iterable[int] = ()
    ) -> list[Occurrence]:
        """Up to `limit` places where the n-gram `words` occurs, in the order of the reference.

        Of each shard, only documents at the first `MAX_PLACES` places of its suffix array count.
        """
        gram = self.settings.normalise(words)
        (hit,) = self._find([words], limit, MAX_PLACES, exclude)
        places: list[Occurrence] = []
        for number in hit.numbers.tolist():
            theirs = self.located_document(number)[1].words
            places += (
                self.occurrence(number, place, len(gram))
                for place in range(len(theirs) - len(gram) + 1)
                if theirs[place : place + len(gram)] == gram
            )
            if len(places) >= limit:
                break
        return places[:limit]

    def attribute(
        self, words: Sequence[str], n_sources: int = 3, *, exclude: Iterable[int] = ()
    ) -> Attribution:
        """How often the n-gram occurs, in how many documents, and the first `n_sources` of them."""
        return self.attribute_many([words], n_sources, exclude=exclude)[0]

    def attribute_many(
        self, grams: Sequence[Sequence[str]], n_sources: int = 3, *, exclude: Iterable[int] = ()
    ) -> list[Attribution]:
        """`attribute` of many n-grams in one call."""
        hits = self._find(grams, n_sources, MAX_PLACES, exclude)
        # By document, so that each is fetched and split into words once.
        by_number: dict[int, list[tuple[int, int]]] = {}
        for k, hit in enumerate(hits):
            for number, place in zip(hit.numbers.tolist(), hit.places.tolist(), strict=True):
                by_number.setdefault(number, []).append((k, place))
        sources: list[list[Occurrence]] = [[] for _ in grams]
        numbers = sorted(by_number)
        for at in range(0, len(numbers), N_LOCATED):
            batch = numbers[at : at + N_LOCATED]
            # Quoted from here on: a document is split up to the last place only.
            self._split_to({k: max(p + len(grams[i]) for i, p in by_number[k]) for k in batch})
            for number in batch:
                for k, place in by_number[number]:
                    sources[k].append(self.occurrence(number, place, len(grams[k])))
        return [
            Attribution(hit.count, hit.n_documents, hit.n_places < hit.count, tuple(named))
            for hit, named in zip(hits, sources, strict=True)
        ]

    def documents_of(
        self, grams: Sequence[Sequence[str]], max_places: int, *, exclude: Iterable[int] = ()
    ) -> list[tuple[NDArray[np.int64], bool]]:
        """The numbers of the documents that contain each n-gram, and whether some are left out.

        Considers up to `max_places` places per shard. int64, shape (n_found,), ascending.
        """
        hits = self._find(grams, len(self.about.removed), max_places, exclude)
        return [(hit.numbers, hit.n_places < hit.count) for hit in hits]

    def document(self, number: int) -> Document:
        """The document with that number, as it was read when the corpus was built."""
        (document,) = self.part.documents([number])
        return document

    def documents(self, numbers: Iterable[int]) -> Iterator[Document]:
        """The documents with these numbers, fetched in batches."""
        remaining = iter(numbers)
        while batch := list(islice(remaining, N_LOCATED)):
            yield from self.part.documents(batch)

    def numbers(self) -> list[int]:
        """The numbers of all documents not removed, in order."""
        return np.flatnonzero(~self.about.removed).tolist()

    def numbers_of(self, ids: Iterable[str]) -> dict[str, list[int]]:
        """Numbers of the documents with these ids, which several may share.

        Raises `InputError` if an id is not in the reference.
        """
        distinct = list(dict.fromkeys(ids))
        by_id = dict(zip(distinct, self.part.numbers_of(distinct), strict=True))
        if missing := [id_ for id_, numbers in by_id.items() if not numbers]:
            raise InputError(
                f"{len(missing)} of {len(by_id)} ids are not in {self.name}, first "
                f"{missing[0]!r}; `fabula reference info --ids` lists them"
            )
        return by_id

    @property
    def local(self) -> LocalPart:
        """The local part. Raises `InputError` if not all of it is on this machine's disk."""
        if not isinstance(self.part, LocalPart):
            raise InputError(
                f"{self.name}: this needs a corpus on this machine's disk, not one that is served; "
                "use the folder of the corpus"
            )
        return self.part

    def located_document(self, number: int) -> tuple[Document, TextWords]:
        """The document with that number, and its words; the most recent ones are cached."""
        (split,) = self._split_to({number: None})
        return split.document, TextWords(split.words or [], *split.places.T)

    def occurrence(self, number: int, place: int, n_words: int) -> Occurrence:
        """The `n_words` words from `place`, counted from 0, in the document with that number."""
        (split,) = self._split_to({number: place + n_words})
        document = split.document
        if place < 0 or place + n_words > len(split.places):
            raise LookupFailed(
                f"{self.name}: the document {document.id!r} is shorter than the place where "
                "the match was found"
            )
        start, end = int(split.places[place, 0]), int(split.places[place + n_words - 1, 1])
        return Occurrence(number, document, Span(document.id, start, end))

    def _split_to(self, n_words: Mapping[int, int | None]) -> list[_Split]:
        """Documents with so many first words placed (None: all, and the words), fetched at once."""
        with self._lock:
            splits = {number: self._split[number] for number in n_words if number in self._split}
        missing = [number for number in n_words if number not in splits]
        splits |= {
            number: _Split(document, np.zeros((0, 2), np.int64), None)
            for number, document in zip(missing, self.part.documents(missing), strict=True)
        }
        for number, n in n_words.items():
            document, places, words = splits[number]
            if words is None and n is None:
                words, starts, ends = self.locate(document.text)
                places = np.column_stack((starts, ends))
            elif words is None and n is not None and len(places) < n:
                places = self.settings.places(document.text, n)
            splits[number] = _Split(document, places, words)
            with self._lock:
                self._split.remember(number, splits[number])
        return [splits[number] for number in n_words]

    def _find(
        self, grams: Sequence[Sequence[str]], limit: int, max_places: int, exclude: Iterable[int]
    ) -> list[Found]:
        """Where each n-gram occurs; cached if it was looked up before."""
        out = sorted(exclude)
        how = limit, max_places, tuple(out)
        keys = [tuple(self.settings.normalise(gram)) for gram in grams]
        if not all(keys):
            raise ValueError("an n-gram needs at least one word")
        with self._lock:
            hits = {gram: self._found[gram, *how] for gram in keys if (gram, *how) in self._found}
        if new := [gram for gram in dict.fromkeys(keys) if gram not in hits]:
            answers = self.part.find(new, limit=limit, max_places=max_places, exclude=out)
            hits |= dict(zip(new, answers, strict=True))
        # If all documents were requested, a frequent n-gram names too many to keep.
        for gram in hits if limit <= _N_NAMED else ():
            with self._lock:
                self._found.remember((gram, *how), hits[gram])
        return [hits[gram] for gram in keys]


def index_url(spec: str) -> str:
    """The server for `infinigram:NAME[@URL]` or `infinigram-mini:NAME[@URL]`."""
    public = catalogue.MINI_URL if _is_by_characters(spec) else catalogue.API_URL
    return spec.partition("@")[2] or os.environ.get(_OWN_SERVER) or public


def _is_by_characters(spec: str) -> bool:
    """Whether infini-gram mini serves it, by its prefix or by the catalogue."""
    index = _known_index(spec)
    return spec.startswith(_MINI) or (index is not None and index.by_characters)


def _known_index(spec: str) -> catalogue.Index | None:
    return catalogue.read_catalogue().index(spec.partition(":")[2].partition("@")[0])


def is_served(spec: str) -> bool:
    """Whether it names a reference served by `fabula reference serve`."""
    return spec.startswith(("http://", "https://")) and not is_address(spec)


def is_elsewhere(spec: str) -> bool:
    """Whether it names something other than a corpus in a folder or at an address."""
    is_other = spec.startswith((_WEB, _INDEX, _MINI)) or spec.partition(":")[0] in REFERENCES
    return is_served(spec) or is_other


def is_looked_up(spec: str) -> bool:
    """Whether words are looked up over HTTP, in an infini-gram index."""
    return spec.startswith((_WEB, _MINI))


def pace_of(spec: str) -> catalogue.Pace:
    """The cost of looking up texts there."""
    return catalogue.BY_CHARACTERS if _is_by_characters(spec) else catalogue.BY_TOKENS


def check_spec(spec: str) -> None:
    """Raise `InputError` if this cannot be a path or an address."""
    if without_controls(spec) != spec:
        raise InputError(
            f"{without_controls(spec)}: a reference's path or address must not contain "
            "control characters"
        )


def open_backend(
    specs: Sequence[str],
    *,
    n_parallel: int = 8,
    max_retries: int = 5,
    fresh: bool = False,
    meter: Callable[[int, int], None] | None = None,
    report: Report = lambda _: None,
) -> Backend:
    """Open corpora, in folders, at addresses or served at `http://...`, as one; or
    `infinigram:NAME[@URL]`, `infinigram-mini:NAME[@URL]`, or `infinigram-index:PATH`.

    The default URL is the environment's FABULA_INFINIGRAM_URL, or else the public server: that of
    infini-gram mini for the names that the catalogue lists as its own. The options apply to HTTP
    lookups; `fresh` ignores cached counts. `meter` receives the number of lookups, and the number
    answered from the cache; `report` receives messages on what is copied. Raises `CorpusError`,
    `InputError` and, if a served reference does not respond, `LookupFailed`.
    """
    for named in specs:
        check_spec(named)
    spec = next((spec for spec in specs if is_elsewhere(spec) and not is_served(spec)), None)
    if spec is None:
        if not any(map(is_served, specs)):
            return Reference.open(*specs, report=report)
        from fabula.reference.client import open_served

        # On disk and behind servers, as one, in this order; duplicates count once.
        parts: dict[str, tuple[str, Part]] = {}
        try:
            for named in dict.fromkeys(specs):
                part: Part = (
                    open_served(named, n_parallel=n_parallel, max_retries=max_retries)
                    if is_served(named)
                    else LocalPart.open([named], report)
                )
                if parts.setdefault(part.about.fingerprint, (named, part))[1] is not part:
                    part.close()
            places, opened = zip(*parts.values(), strict=True)
            about = About.joined(places, [part.about for part in opened])
        except BaseException:
            for _, part in parts.values():
                part.close()
            raise
        return Reference(opened[0] if len(opened) == 1 else JoinedParts(opened, about))
    if len(specs) > 1:
        raise InputError(
            f"`references` {spec}: only corpora can be searched together; search this one by itself"
        )
    kind, _, rest = spec.partition(":")
    if kind in REFERENCES:
        return REFERENCES[kind](rest)
    if spec.startswith(_INDEX):
        from fabula.reference.infinigram import InfiniGramIndex

        path, _, tokenizer = spec.removeprefix(_INDEX).partition("#")
        if not path:
            raise InputError("`references` infinigram-index: add the folder of the index")
        return InfiniGramIndex(Path(path), Path(tokenizer) if tokenizer else None)
    from fabula.reference.infinigram import InfiniGramMini, InfiniGramWeb

    if not (name := spec.partition(":")[2].partition("@")[0]):
        raise InputError(
            "`references` infinigram: add the name of an index, as in infinigram:v4_rpj_llama_s4; "
            "`fabula reference info` lists them"
        )
    index, url = _known_index(spec), index_url(spec)
    opener = InfiniGramMini if _is_by_characters(spec) else InfiniGramWeb
    named = name if index is None else index.name
    return opener(
        named, url, n_parallel=n_parallel, max_retries=max_retries, fresh=fresh, meter=meter
    )
