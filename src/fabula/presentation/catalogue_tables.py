"""The catalogue of public corpora and indexes, for people and for machines."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fabula.presentation.sheet import Block, Column, Sheet
from fabula.reference.catalogue import Catalogue, Collection, Index

_SAMPLE_WORDS = 100_000_000


def catalogue_tables(catalogue: Catalogue, name: str | None) -> list[Block]:
    """All entries, or the details of one. Raises `InputError` for an unknown name."""
    if name is None:
        corpora = [
            Column("corpus", of="name"),
            Column("what it is", name="title"),
            Column("words", of=_words),
            Column("up to", name="youngest", of=_youngest),
            Column("licence", cut=True),
        ]
        indexes = [
            Column("index", of="name"),
            Column("what it is", name="title"),
            Column("size", of=_size_of),
            Column("up to", "d", name="youngest"),
        ]
        return [
            Sheet.of("corpora", catalogue.corpora.values(), corpora),
            "",
            "Sizes after ~ are estimated from bytes or tokens. `fabula reference info NAME` "
            "shows more; `fabula reference build NAME --sample 100M --out DIR` builds one.",
            "",
            Sheet.of("indexes", catalogue.indexes.values(), indexes),
            "",
            "An index is queried over HTTP, with nothing to build:",
            "`fabula originality TEXTS --reference infinigram:NAME`",
        ]
    index = catalogue.index(name)
    return _about_index(index) if index else _about_corpus(catalogue.corpus(name))


def catalogue_rows(catalogue: Catalogue, name: str | None) -> list[dict[str, Any]]:
    """The machine-readable form: a row for each corpus, then one for each index."""
    if name is None:
        names = [*catalogue.corpora, *catalogue.indexes]
        return [catalogue_rows(catalogue, one)[0] for one in names]
    if (index := catalogue.index(name)) is not None:
        return [{"kind": "index", **asdict(index), "url": index.url, **asdict(index.pace)}]
    corpus = catalogue.corpus(name)
    return [
        {
            **asdict(corpus),
            "kind": "corpus",
            "documents_are": corpus.kind,
            "about_words": corpus.about_words,
            "cost_of_100M_words": asdict(corpus.cost_of(_SAMPLE_WORDS)),
        }
    ]


def _about_corpus(corpus: Collection) -> list[Block]:
    cost = corpus.cost_of(_SAMPLE_WORDS)
    download = (
        "the size of its files is not published"
        if cost.download_bytes is None
        else f"a download of at least {_bytes(cost.download_bytes)}"
    )
    formats = {"txt": "text", "wet": "WET (.gz)", "jsonl": "JSON Lines (.gz)", "parquet": "Parquet"}
    names = ", ".join(f"{what} in {name}" for what, name in corpus.columns.items())
    n_documents = "" if corpus.n_documents is None else f"{corpus.n_documents:,} "
    files = corpus.files
    lines = {
        "language": corpus.language,
        "documents": f"{n_documents}{corpus.kind}",
        "words": _words(corpus),
        "text": _bytes(corpus.n_bytes) if corpus.n_bytes else "size not published",
        "files": _bytes(corpus.n_download_bytes) if corpus.n_download_bytes else "not published",
        "up to": _youngest(corpus),
        "licence": corpus.licence,
        "read from": files.pattern or files.listing or files.table,
        "layout": f"{formats.get(corpus.format, corpus.format)} files"
        + (f"; {names}" if names else ""),
        "100M words": f"{download}; {_bytes(cost.disk_bytes)} on disk; "
        f"{cost.build_s / 60:.0f} minutes of one core",
        "it can tell": corpus.tells,
        "it cannot tell": corpus.tells_not,
        "checked": "; ".join(corpus.checked) or "nothing: these are your own words",
    }
    command = f"`fabula reference build {corpus.name} --sample 100M --out {corpus.name}.ref`"
    return _about(corpus, lines, command)


def _about_index(index: Index) -> list[Block]:
    how = (
        "by characters; a match counts only at word boundaries"
        if index.by_characters
        else "by its tokens, and whole tokens only"
    )
    lines = {
        "documents": f"{index.n_documents:,}",
        "size": _size_of(index),
        "up to": str(index.youngest),
        "asked at": index.url,
        "compares": how,
        "look-ups": index.pace.expectation(),
    }
    return _about(index, lines, f"`fabula originality TEXTS --reference infinigram:{index.name}`")


def _about(entry: Collection | Index, lines: dict[str, str], command: str) -> list[Block]:
    columns = [Column("", name="fact"), Column("", name="value")]
    sheet = Sheet("about", columns, list(lines.items()))
    return [f"{entry.name}: {entry.title}", "", sheet, "", command]


def _words(corpus: Collection) -> str:
    words = corpus.about_words
    if words is None:
        return "unknown"
    return f"{'' if corpus.n_words is not None else '~'}{_short(words)}"


def _youngest(corpus: Collection) -> str:
    if corpus.youngest is None:
        return "by document" if "year" in corpus.columns else "unknown"
    return f"{corpus.youngest}{f' ({corpus.youngest_is})' if corpus.youngest_is else ''}"


def _size_of(index: Index) -> str:
    if index.n_tokens is not None:
        return f"{_short(index.n_tokens)} tokens"
    return _bytes(index.n_bytes) if index.n_bytes is not None else "unknown"


def _short(n: float) -> str:
    for size, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if n >= size:
            return f"{n / size:.3g}{letter}"
    return f"{n:,.0f}"


def _bytes(n: float) -> str:
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n:,.0f} bytes"
