"""Public corpora and web-scale indexes by name: what they are, their addresses, their cost.

The entries are in `catalogue.toml`, with the pages they were checked against. A file in the same
format adds corpora, or gives the location of another copy of a known one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache, partial
from pathlib import Path
from typing import Any

from fabula.errors import DAMAGE, InputError

API_URL = "https://api.infini-gram.io/"
MINI_URL = "https://api.infini-gram-mini.io/"
_SHIPPED = Path(__file__).parent / "catalogue.toml"

_BYTES_A_WORD = 5.8
"""For English: PG-19's bytes divided by its publisher's word count."""
_WORDS_A_TOKEN = 0.75
"""For English web text and tokens of language models, roughly."""
_BUILT_WORDS_A_S = 800_000.0
"""One core, from text: 66 million words of books in 79 s (docs/scale.md)."""
_INDEX_BYTES_A_WORD = 11.9
"""For a corpus on disk with passages: 65.9 MB for 5.55 million words of books and speeches."""


@dataclass(frozen=True, slots=True)
class Files:
    """The location of a corpus's files: exactly one of `pattern`, `listing` and `table` is set."""

    pattern: str = ""
    """An address with wildcards."""
    listing: str = ""
    """The address of a file with one path per line, each under `base`."""
    table: str = ""
    """The address of a CSV; `base` formatted with a row's columns is the address of a text."""
    base: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    """Required values of columns of the table."""


@dataclass(frozen=True, slots=True)
class Collection:
    """A public corpus from which a reference can be built."""

    name: str
    title: str
    language: str
    licence: str
    kind: str
    format: str
    files: Files
    tells: str
    tells_not: str
    checked: tuple[str, ...]
    """Pages that the entry was checked against."""
    n_documents: int | None = None
    n_words: int | None = None
    """As counted by its publisher."""
    n_bytes: int | None = None
    n_download_bytes: int | None = None
    n_tokens: int | None = None
    tokens_are: str = ""
    youngest: int | None = None
    """The last year in which a document can have been written."""
    youngest_is: str = ""
    """What happened in that year, e.g. printed, crawled, released, written."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The columns of id, text, title, author and year, if its rows have them."""
    years_table: str = ""
    """The address of a CSV without a header: an id, a title, and the year of the text."""
    min_files: int = 1
    one_a_file: bool = False
    wait_s: float = 0.0
    """Seconds between requests, as its server requires."""

    @property
    def about_words(self) -> int | None:
        """Its number of words, estimated if its publisher does not count them."""
        if self.n_words is not None:
            return self.n_words
        if self.n_bytes is not None:
            return round(self.n_bytes / _BYTES_A_WORD)
        return None if self.n_tokens is None else round(self.n_tokens * _WORDS_A_TOKEN)

    def cost_of(self, n_words: int) -> Cost:
        """The cost of a reference of `n_words` of its words, with a lower bound on the download."""
        download = None
        if self.n_download_bytes is not None and (whole := self.about_words):
            download = round(self.n_download_bytes * min(1.0, n_words / whole))
        return Cost(n_words / _BUILT_WORDS_A_S, round(n_words * _INDEX_BYTES_A_WORD), download)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a reference: estimates from measured rates."""

    build_s: float
    """On one core, excluding the time to read over the network."""
    disk_bytes: int
    """Including the passages used to find near matches."""
    download_bytes: int | None
    """A lower bound; None if the size of the files is not published."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The approximate cost of looking up a text over HTTP."""

    lookups_a_word: float
    lookup_s: float

    def expectation(self, n_parallel: int = 8) -> str:
        """A message for people, before a run."""
        n = round(1000 * self.lookups_a_word)
        minutes = max(1, round(1000 * self.lookups_a_word * self.lookup_s / n_parallel / 60))
        unit = "minute" if minutes == 1 else "minutes"
        return (
            f"about {n:,} look-ups per 1,000 words of text, some {minutes} {unit} at {n_parallel} "
            "in parallel; earlier answers are cached"
        )


BY_TOKENS = Pace(2.0, 0.2)
"""At most two lookups per word; a count takes 20 ms (Liu et al. 2024), plus the network."""
BY_CHARACTERS = Pace(3.0, 1.0)
"""Also looks up neighbours of words; a count takes 0.4 to 1.7 s (Xu et al. 2025)."""


@dataclass(frozen=True, slots=True)
class Index:
    """A web-scale index available over HTTP."""

    name: str
    title: str
    youngest: int
    n_documents: int
    n_tokens: int | None = None
    n_bytes: int | None = None
    by_characters: bool = False
    also: str = ""
    """An alternative spelling of its name, which its server does not know."""

    @property
    def url(self) -> str:
        """The public server that serves it."""
        return MINI_URL if self.by_characters else API_URL

    @property
    def pace(self) -> Pace:
        """The cost of querying it."""
        return BY_CHARACTERS if self.by_characters else BY_TOKENS


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All named corpora and indexes."""

    corpora: Mapping[str, Collection]
    indexes: Mapping[str, Index]

    def corpus(self, name: str) -> Collection:
        """Raises `InputError` for an unknown name."""
        if name not in self.corpora:
            known = ", ".join(self.corpora)
            raise InputError(f"{name}: not in the catalogue; available: {known}")
        return self.corpora[name]

    def index(self, name: str) -> Index | None:
        """The index with that name, in any spelling; None if unknown."""
        return next((one for one in self.indexes.values() if name in (one.name, one.also)), None)


def read_catalogue(own: Path | None = None) -> Catalogue:
    """The built-in entries, with those of the file `own` added or replaced. Raises `InputError`."""
    shipped = _shipped()
    if own is None:
        return shipped
    more = _read(own)
    return Catalogue({**shipped.corpora, **more.corpora}, {**shipped.indexes, **more.indexes})


def _read(path: Path) -> Catalogue:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        corpora = [_collection(row) for row in content.get("corpus", ())]
        indexes = [Index(**row) for row in content.get("index", ())]
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except DAMAGE as error:
        raise InputError(
            f"{path}: not a catalogue of corpora ({error}); see fabula/reference/catalogue.toml "
            "for the format"
        ) from error
    if not corpora and not indexes:
        raise InputError(f"{path}: contains no corpora; each starts with [[corpus]]")
    return Catalogue({one.name: one for one in corpora}, {one.name: one for one in indexes})


_shipped = cache(partial(_read, _SHIPPED))


def _collection(row: dict[str, Any]) -> Collection:
    known = {one.name for one in fields(Collection)}
    if unknown := row.keys() - known:
        raise ValueError(f"unknown {', '.join(sorted(unknown))}")
    if "files" not in row:
        raise ValueError(f"{row.get('name')}: has no files")
    files = Files(**row["files"])
    if sum(map(bool, (files.pattern, files.listing, files.table))) != 1:
        raise ValueError(f"{row.get('name')}: files need exactly one of pattern, listing and table")
    texts = {"tells": "", "tells_not": "", "language": "", "licence": "unknown", "kind": ""}
    own = {**texts, **row, "files": files, "checked": tuple(row.get("checked", ()))}
    return Collection(**own)
