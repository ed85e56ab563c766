"""Public corpora and web-scale indexes by name: what each is, where it is read from, what it costs.

The entries stand in `catalogue.toml`, with the pages that they were checked against. A file of the
same form adds corpora, or says where another copy of a known one lies.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from fabula.errors import DAMAGE, InputError

__all__ = [
    "API_URL",
    "BY_CHARACTERS",
    "BY_TOKENS",
    "MINI_URL",
    "Catalogue",
    "Collection",
    "Cost",
    "Files",
    "Index",
    "Pace",
    "read_catalogue",
]

API_URL = "https://api.infini-gram.io/"
MINI_URL = "https://api.infini-gram-mini.io/"
_SHIPPED = Path(__file__).parent / "catalogue.toml"

_BYTES_A_WORD = 5.8
"""Of English: PG-19's bytes over its publisher's count of words."""
_WORDS_A_TOKEN = 0.75
"""Of English web text in tokens of language models, roughly."""
_BUILT_WORDS_A_S = 800_000.0
"""One core, from text: 66 million words of books in 79 s (docs/scale.md)."""
_INDEX_BYTES_A_WORD = 11.9
"""Of a corpus on disk, passages included: 65.9 MB for 5.55 million words of books and speeches."""


@dataclass(frozen=True, slots=True)
class Files:
    """Where a corpus's files are: exactly one of `pattern`, `listing` and `table` is given."""

    pattern: str = ""
    """An address with wildcards."""
    listing: str = ""
    """The address of a file that holds a path a line, each under `base`."""
    table: str = ""
    """The address of a CSV; `base` with a row's columns put in is the address of a text."""
    base: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    """What columns of the table must hold."""


@dataclass(frozen=True, slots=True)
class Collection:
    """A public corpus that a reference can be built of."""

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
    """Pages that say so."""
    n_documents: int | None = None
    n_words: int | None = None
    """As its publisher counts."""
    n_bytes: int | None = None
    n_download_bytes: int | None = None
    n_tokens: int | None = None
    tokens_are: str = ""
    youngest: int | None = None
    """The last year in which a document can have been written."""
    youngest_is: str = ""
    """What happened in that year: printed, crawled, released, written."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The columns of id, text, title, author and year, where its rows have them."""
    years_table: str = ""
    """The address of a CSV without a header: an id, a title, and the year of the text."""
    min_files: int = 1
    one_a_file: bool = False
    wait_s: float = 0.0
    """Seconds between requests that its server asks for."""

    @property
    def about_words(self) -> int | None:
        """How many words it holds, estimated where its publisher does not count them."""
        if self.n_words is not None:
            return self.n_words
        if self.n_bytes is not None:
            return round(self.n_bytes / _BYTES_A_WORD)
        return None if self.n_tokens is None else round(self.n_tokens * _WORDS_A_TOKEN)

    def cost_of(self, n_words: int) -> Cost:
        """What a reference of so many of its words takes, and its download at the least."""
        whole = self.about_words
        download = None
        if self.n_download_bytes is not None and whole:
            download = round(self.n_download_bytes * min(1.0, n_words / whole))
        return Cost(n_words / _BUILT_WORDS_A_S, round(n_words * _INDEX_BYTES_A_WORD), download)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a reference takes: estimates from measured rates."""

    build_s: float
    """On one core, without what reading over the network takes."""
    disk_bytes: int
    """With the passages that near matches are searched in."""
    download_bytes: int | None
    """At least; None where the size of the files is not published."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What looking a text up over HTTP takes, about."""

    lookups_a_word: float
    lookup_s: float

    def minutes_of(self, n_words: int, n_parallel: int = 8) -> float:
        """Of a text, with so many look-ups at a time."""
        return n_words * self.lookups_a_word * self.lookup_s / n_parallel / 60

    def expectation(self, n_parallel: int = 8) -> str:
        """For people, before a run."""
        n = round(1000 * self.lookups_a_word)
        minutes = max(1, round(self.minutes_of(1000, n_parallel)))
        unit = "minute" if minutes == 1 else "minutes"
        return (
            f"about {n:,} look-ups for 1,000 words of text, some {minutes} {unit} with "
            f"{n_parallel} at a time; what was answered before is not asked again"
        )


BY_TOKENS = Pace(2.0, 0.2)
"""The search asks twice a word at most; a count takes 20 ms (Liu et al. 2024), and the network."""
BY_CHARACTERS = Pace(3.0, 1.0)
"""With what stands beside words besides; a count takes 0.4 to 1.7 s (Xu et al. 2025)."""


@dataclass(frozen=True, slots=True)
class Index:
    """A web-scale index that answers over HTTP."""

    name: str
    title: str
    youngest: int
    n_documents: int
    n_tokens: int | None = None
    n_bytes: int | None = None
    by_characters: bool = False
    also: str = ""
    """Another way to write its name, which its server does not know."""

    @property
    def url(self) -> str:
        """The public server that answers for it."""
        return MINI_URL if self.by_characters else API_URL

    @property
    def pace(self) -> Pace:
        """What asking it takes."""
        return BY_CHARACTERS if self.by_characters else BY_TOKENS


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Everything that has a name."""

    corpora: Mapping[str, Collection]
    indexes: Mapping[str, Index]

    def corpus(self, name: str) -> Collection:
        """Raises `InputError` for a name that is not there."""
        if name not in self.corpora:
            known = ", ".join(self.corpora)
            raise InputError(f"{name}: not a corpus of the catalogue; it has {known}")
        return self.corpora[name]

    def index(self, name: str) -> Index | None:
        """The index of that name, however it is written; None for one that is not known."""
        for one in self.indexes.values():
            if name in (one.name, one.also):
                return one
        return None


def read_catalogue(own: Path | None = None) -> Catalogue:
    """What ships, and what the file `own` adds or puts in its place. Raises `InputError`."""
    shipped = _shipped()
    if own is None:
        return shipped
    more = _read(own)
    return Catalogue({**shipped.corpora, **more.corpora}, {**shipped.indexes, **more.indexes})


@cache
def _shipped() -> Catalogue:
    return _read(_SHIPPED)


def _read(path: Path) -> Catalogue:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        corpora = [_collection(row) for row in content.get("corpus", ())]
        indexes = [Index(**row) for row in content.get("index", ())]
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except DAMAGE as error:
        raise InputError(
            f"{path}: not a catalogue of corpora ({error}); write it as "
            f"fabula/reference/catalogue.toml is written"
        ) from error
    if not corpora and not indexes:
        raise InputError(f"{path}: names no corpora; each begins with [[corpus]]")
    return Catalogue({one.name: one for one in corpora}, {one.name: one for one in indexes})


def _collection(row: dict[str, Any]) -> Collection:
    known = {one.name for one in fields(Collection)}
    if unknown := row.keys() - known:
        raise ValueError(f"unknown {', '.join(sorted(unknown))}")
    if "files" not in row:
        raise ValueError(f"{row.get('name')}: has no files")
    files = Files(**row["files"])
    if sum(map(bool, (files.pattern, files.listing, files.table))) != 1:
        raise ValueError(f"{row.get('name')}: files need one of pattern, listing and table")
    texts = {"tells": "", "tells_not": "", "language": "", "licence": "unknown", "kind": ""}
    own = {**texts, **row, "files": files, "checked": tuple(row.get("checked", ()))}
    return Collection(**own)
