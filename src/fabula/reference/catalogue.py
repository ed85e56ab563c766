"""Public corpora and web-scale indexes by name: what they are, their addresses, their cost.

The entries are in `catalogue.toml`, with the pages they were checked against. A file in the same
format adds corpora, or gives the location of another copy of a known one.

A sample of a corpus is which files to read, and which of their documents to keep. The rule,
`files1` in manifests, depends on hashes of the seed and of names alone, so the same seed
gives the same sample wherever a build is interrupted:

- Files are sorted by SHA-256(seed, name).
- If each file is one document, files are read in that order until they contain the requested number
  of words. The last one is kept whole, so no document is kept or left out because of its length.
- Otherwise, the first files are read that together contain that number, by their sizes where known,
  and at least as many files as the catalogue requires for the corpus. Each of their documents is
  kept if SHA-256(seed, name, number) falls below a share, the same for all: within the files read,
  every document has the same probability, and the sample has about the requested number of words.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import math
import re
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

from fabula.core.errors import InputError, without_controls
from fabula.core.types import Document
from fabula.text import find_files, read_documents
from fabula.text.sources import FileSource, Meter, open_filesystem
from fabula.text.words import count_words

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
RULE = "files1"
_N_ATTEMPTS, _FIRST_WAIT_S = 4, 1.0
_GUTENBERG_START = re.compile(r"^\*\*\* ?START OF TH[EI]S? PROJECT GUTENBERG.*$", re.MULTILINE)
_GUTENBERG_END = re.compile(r"^\*\*\* ?END OF TH[EI]S? PROJECT GUTENBERG", re.MULTILINE)
_YEAR = re.compile(r"\d{4}")


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
            raise InputError(f"{name}: not in the catalogue; available: {', '.join(self.corpora)}")
        return self.corpora[name]

    def index(self, name: str) -> Index | None:
        """The index with that name, in any spelling; None if unknown."""
        return next((i for i in self.indexes.values() if name in (i.name, i.also)), None)


@cache
def read_catalogue() -> Catalogue:
    """The entries that ship with Fabula."""
    content = tomllib.loads(_SHIPPED.read_text(encoding="utf-8"))
    corpora = [
        Collection(**{**row, "files": Files(**row["files"]), "checked": tuple(row["checked"])})
        for row in content["corpus"]
    ]
    indexes = [Index(**row) for row in content["index"]]
    return Catalogue({c.name: c for c in corpora}, {index.name: index for index in indexes})


@dataclass(frozen=True, slots=True)
class SampleRule:
    """The parameters of a sample."""

    n_words: int | None
    """None for all."""
    seed: int = 0
    author: str = ""


@dataclass(frozen=True, slots=True)
class _Listed:
    key: str
    """Its name in the listing, which determines its place in the order."""
    address: str
    source: FileSource | None = None
    row: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """The files to read from a corpus; chosen before any text is read."""

    collection: Collection
    rule: SampleRule
    files: tuple[_Listed, ...]
    """In reading order."""
    n_listed: int
    share: float
    """The share of their documents to keep."""
    digest: str
    """A digest of the names of all files of the corpus: another listing gives another sample."""

    @property
    def size_bytes(self) -> int | None:
        """The total size of the files to read; None if it is not known."""
        sizes = [file.source.size_bytes for file in self.files if file.source is not None]
        if self.collection.one_a_file or not sizes or None in sizes:
            return None
        return sum(size for size in sizes if size is not None)

    def to_row(self) -> dict[str, Any]:
        """The sample as JSON for the manifest: everything that determines its documents."""
        return {
            "name": self.collection.name,
            "title": self.collection.title,
            "licence": self.collection.licence,
            "youngest": self.collection.youngest,
            "youngest_is": self.collection.youngest_is,
            "rule": RULE,
            "n_words": self.rule.n_words,
            "seed": self.rule.seed,
            "author": self.rule.author or None,
            "n_files": None if self.collection.one_a_file else len(self.files),
            "n_files_listed": self.n_listed,
            "files_digest": self.digest,
            "share": self.share,
        }

    def documents(
        self, meter: Meter = lambda n_bytes: None, tell: Callable[[str], None] = lambda _: None
    ) -> Iterator[Document]:
        """The documents, as a stream. Raises `InputError` if all retries fail."""
        columns = self.collection.columns
        if self.collection.one_a_file:
            yield from self._by_file(meter, tell)
            return
        id_field = columns.get("id", "id")
        for file in self.files:
            assert file.source is not None
            documents = read_documents(
                [file.source],
                text_field=columns.get("text", "text"),
                id_field="id" if "." in id_field else id_field,
                format_=self.collection.format,
                meter=meter,
            )
            for number, document in enumerate(_with_remedy(documents, file.address)):
                if not is_kept(self.rule.seed, file.key, number, self.share):
                    continue
                # Only the fields that a corpus keeps: its title, author and year.
                row, author = document.meta, document.author
                if "author" in columns:
                    author = _in_row(row, columns["author"])
                id_ = _in_row(row, id_field) if "." in id_field else None
                title, year = (_in_row(row, columns.get(name, name)) for name in ("title", "year"))
                by, meta = str(author) if author else None, _title_and_year(title, year)
                named = document.id if id_ is None else without_controls(str(id_))
                yield Document(named, document.text, by, meta=meta)

    def _by_file(self, meter: Meter, tell: Callable[[str], None]) -> Iterator[Document]:
        columns = self.collection.columns
        years: dict[str, tuple[str, int]] = {}
        if address := self.collection.years_table:
            for row in csv.reader(io.StringIO(_text_of(address))):
                if len(row) > 2 and row[2].isdecimal():
                    years[row[0]] = row[1], int(row[2])
        n_words = n_absent = 0
        named = ("author", "title", "year")
        for file in self.files:
            if self.rule.n_words is not None and n_words >= self.rule.n_words:
                break
            if (data := _fetch(file.address, self.collection.wait_s)) is None:
                n_absent += 1
                continue
            meter(len(data))
            text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
            if (start := _GUTENBERG_START.search(text)) is not None:
                end = _GUTENBERG_END.search(text, start.end())
                text = text[start.end() : end.start() if end else len(text)].strip() + "\n"
            about = file.row or {}
            author, called, dated = (about.get(columns.get(name, "")) for name in named)
            title, year = years.get(PurePosixPath(file.key).stem, ("", None))
            meta = _title_and_year(title or called, dated, year)
            yield Document(without_controls(file.key), text, author or None, meta=meta)
            n_words += count_words(text)
        if n_absent:
            tell(f"{n_absent:,} files listed by {self.collection.name} do not exist")


def is_kept(seed: int, key: str, number: int, share: float) -> bool:
    """Whether the document with that number, in the file with that name, is in the sample."""
    return share >= 1 or _hash(f"{seed}|{key}|{number}") < share * 2**64


def choose_sample(collection: Collection, rule: SampleRule) -> Sample:
    """Choose among a corpus's files. Raises `InputError` if listing fails, or a size is unknown."""
    listed = _list_files(collection, rule.author)
    names = hashlib.sha256("\n".join(file.key for file in listed).encode()).hexdigest()[:12]
    order = sorted(listed, key=lambda file: (_hash(f"{rule.seed}|{file.key}"), file.key))
    if collection.one_a_file:
        return Sample(collection, rule, tuple(order), len(listed), 1.0, names)
    n_files, share, whole = len(order), 1.0, collection.about_words
    if rule.n_words is not None and whole is None:
        raise InputError(
            f"{collection.name}: its number of words is unknown, so a sample cannot be planned; "
            "use `sample` all to read everything"
        )
    if rule.n_words is not None and whole is not None and rule.n_words < whole:
        sizes = [file.source.size_bytes if file.source is not None else None for file in order]
        weights = [float(size) for size in sizes if size is not None]
        if len(weights) < len(order):
            weights = [1.0] * len(order)
        needed = rule.n_words / whole
        least = min(collection.min_files, len(order))
        total = math.fsum(weights)
        n_files, held = 0, 0.0
        while n_files < least or (held < needed and n_files < len(order)):
            held += weights[n_files] / total
            n_files += 1
        share = min(1.0, needed / held)
    files = []
    for file in order[:n_files]:
        if file.source is None:
            filesystem, path = open_filesystem(file.address)
            size = _reached(file.address, partial(filesystem.info, path)).get("size")
            file = replace(file, source=FileSource(file.address, size, filesystem, path), row=None)
        files.append(file)
    return Sample(collection, rule, tuple(files), len(listed), share, names)


def _list_files(collection: Collection, author: str) -> list[_Listed]:
    """The texts of a corpus, optionally of one author."""
    files = collection.files
    if author and not files.table:
        raise InputError(
            f"{collection.name}: `author` requires gutenberg-mirror, which lists authors"
        )
    if files.pattern:
        sources = _reached(files.pattern, lambda: find_files([files.pattern], format_="txt"))
        return [_Listed(PurePosixPath(f.name).name, f.name, f) for f in sources]
    listed = []
    if files.listing:
        listed = [_Listed(line, files.base + line) for line in _text_of(files.listing).split()]
    for row in csv.DictReader(io.StringIO(_text_of(files.table))) if files.table else ():
        name = row.get(collection.columns.get("author", "")) or ""
        is_wanted = all(row.get(column) == value for column, value in files.where.items())
        if is_wanted and author.casefold() in name.casefold():
            address = files.base
            for column, value in row.items():
                address = address.replace(f"{{{column}}}", value or "")
            listed.append(_Listed(PurePosixPath(address).name, address, row=row))
    if not listed:
        what = f"by an author named {author!r}" if author else f"in {files.listing or files.table}"
        raise InputError(f"{collection.name}: no texts {what}; write names as in Austen, Jane")
    return listed


def _in_row(row: Mapping[str, Any], column: str) -> Any:
    """The value of a column; for `A.b`, the value of b in the JSON object in column A."""
    outer, _, inner = column.partition(".")
    if not inner:
        return row.get(column)
    try:
        return json.loads(row[outer])[inner]
    except (KeyError, ValueError, TypeError):
        return None


def _title_and_year(title: Any, dated: Any, year: int | None = None) -> dict[str, Any]:
    """Those of the two fields that are known; a date begins with its year."""
    match = _YEAR.match(str(dated)) if dated is not None else None
    meta = {"title": title, "year": year or (int(match[0]) if match else None)}
    return {name: value for name, value in meta.items() if value}


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _text_of(address: str) -> str:
    """A list of files or a table, as decompressed text."""
    if (data := _fetch(address)) is None:
        raise InputError(f"{address}: not found; name another location in a `catalogue`")
    if address.endswith(".gz"):
        data = gzip.decompress(data)
    return data.decode("utf-8-sig")


def _fetch(address: str, wait_s: float = 0) -> bytes | None:
    """The bytes of a file, or None if it does not exist. Retries if the network fails."""
    filesystem, path = open_filesystem(address)
    for attempt in range(_N_ATTEMPTS):
        time.sleep(wait_s if attempt == 0 else max(wait_s, _FIRST_WAIT_S * 2 ** (attempt - 1)))
        try:
            data: bytes = filesystem.cat_file(path)
        except FileNotFoundError:
            return None
        except _faults() as error:
            fault = error
        else:
            return data
    raise _away(address, fault)


def _reached(address: str, read: Callable[[], Any]) -> Any:
    """Call `read` and return its result. Raises `InputError` if the network fails."""
    try:
        return read()
    except InputError as error:
        if "cannot be reached" in str(error):
            raise _away(address, error) from error
        raise
    except _faults() as error:
        raise _away(address, error) from error


def _with_remedy(documents: Iterator[Document], address: str) -> Iterator[Document]:
    """The documents; an error suggests a remedy if the network caused it."""
    try:
        yield from documents
    except InputError as error:
        if "://" not in address or address.startswith("file:"):
            raise
        raise InputError(
            f"{error}; if the connection was lost, run the same command again"
        ) from error
    except _faults() as error:
        raise _away(address, error) from error


def _away(address: str, fault: BaseException) -> InputError:
    return InputError(
        f"{address}: cannot be read over the network ({type(fault).__name__}: {fault}); check the "
        "connection and run the same command again to resume"
    )


def _faults() -> tuple[type[Exception], ...]:
    """Exceptions that the installed libraries raise for network failures."""
    faults: list[type[Exception]] = [OSError]
    for library, fault in (("aiohttp", "ClientError"), ("httpx", "HTTPError")):
        with suppress(ImportError):
            faults.append(getattr(import_module(library), fault))
    return tuple(faults)
