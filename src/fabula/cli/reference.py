"""`fabula reference`: build, add, write, passages, info, verify, remove, serve."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabula.cli.derived import Group, settings_options
from fabula.cli.options import (
    CorpusType,
    SizeType,
    json_option,
    texts_argument,
)
from fabula.cli.printing import print_done
from fabula.cli.progress import Bar, progress_bar
from fabula.cli.reading import reading
from fabula.cli.reference_serve import serve
from fabula.cli.reference_write import write
from fabula.jobs.engine import Engine, open_cluster
from fabula.jobs.reading import Reading

if TYPE_CHECKING:
    from fabula.cluster import Cluster
    from fabula.reference.build import WriteShards
    from fabula.reference.layout import Manifest
    from fabula.reference.reading_cluster import FarDocuments

__all__ = ["reference"]

_restart = click.option(
    "--restart", is_flag=True, help="Start over, ignoring what an earlier run left."
)
_passages = click.option(
    "--passages/--no-passages",
    default=True,
    help="Index passages too, which near matches are looked for in.",
)
_directory = click.argument("directory", metavar="DIR", type=CorpusType())


@click.group(cls=Group, short_help="Build, search and serve reference corpora.")
def reference() -> None:
    """The texts to compare with: a corpus on disk, built once, searched often."""


@reference.command(short_help="Build a reference corpus from texts.")
@texts_argument("sources")
@click.option(
    "--out", required=True, type=CorpusType(), metavar="DIR",
    help="Folder to build, or an address of an object store: s3://, gs://.",
)  # fmt: skip
@click.option(
    "--case",
    type=click.Choice(["fold", "keep"]),
    help="fold: Word and word are the same.  [default: fold]",
)
@click.option(
    "--punct",
    type=click.Choice(["drop", "keep"]),
    help="drop: n-grams are of words; keep: of punctuation marks too.  [default: drop]",
)
@click.option(
    "--preset",
    type=click.Choice(["paper"]),
    help="paper: case and punctuation as they stand, the published setting; --case and --punct "
    "still win.",
)
@click.option(
    "--shard-tokens",
    type=int,
    metavar="N",
    help="Words of a shard, which is sorted in memory.  [default: 133000000]",
)
@click.option(
    "--memory",
    type=SizeType(),
    metavar="SIZE",
    help="Memory to stay under; shards are smaller with less.  [default: 4GB]",
)
@_passages
@settings_options(Engine, "engine")
@_restart
@json_option
@settings_options(Reading, "how_to_read")
def build(
    sources: tuple[str, ...],
    out: str | Path,
    case: str | None,
    punct: str | None,
    preset: str | None,
    shard_tokens: int | None,
    memory: int | None,
    passages: bool,
    engine: Engine,
    restart: bool,
    as_json: bool,
    how_to_read: Reading,
) -> None:
    """Build a reference corpus from SOURCES: files, folders, patterns, URLs, or - for stdin.

    Reads .txt, .md, .docx, .epub, .jsonl, .csv, .tsv and .parquet, the text formats also with .gz
    or .zst. An interrupted build resumes when the same command is run again.
    """
    from fabula.reference.build import BuildParameters, build_reference
    from fabula.text import TextSettings

    plain = "keep" if preset == "paper" else None
    settings = TextSettings(
        case=case or plain or "fold",  # type: ignore[arg-type]
        punct=punct or plain or "drop",  # type: ignore[arg-type]
    )
    given = {"shard_tokens": shard_tokens, "memory_bytes": memory}
    parameters = BuildParameters(**{k: v for k, v in given.items() if v is not None})
    with (
        reading(sources, "reading", how_to_read, whole=True) as (documents, bar),
        open_cluster(engine, bar, "reading") as cluster,
    ):
        manifest = build_reference(
            _read_there(cluster, sources, how_to_read, bar) or documents,
            out,
            settings=settings,
            parameters=parameters,
            n_jobs=engine.n_processes,
            restart=restart,
            report=bar.say,
            write=_writer(cluster),
        )
        if passages:
            index_passages(out, bar.say, cluster=cluster)
    _print_corpus(out, manifest, as_json=as_json)


@reference.command(short_help="Add texts to a reference corpus.")
@_directory
@texts_argument("sources")
@_passages
@settings_options(Engine, "engine")
@_restart
@json_option
@settings_options(Reading, "how_to_read")
def add(
    directory: str | Path,
    sources: tuple[str, ...],
    passages: bool,
    engine: Engine,
    restart: bool,
    as_json: bool,
    how_to_read: Reading,
) -> None:
    """Add the texts of SOURCES to the corpus DIR, in new shards; what is there stays as it is."""
    from fabula.reference.build import add_documents
    from fabula.reference.layout import Manifest

    before = Manifest.read(directory)
    with (
        reading(sources, "reading", how_to_read, whole=True) as (documents, bar),
        open_cluster(engine, bar, "reading") as cluster,
    ):
        manifest = add_documents(
            _read_there(cluster, sources, how_to_read, bar) or documents,
            directory,
            n_jobs=engine.n_processes,
            restart=restart,
            report=bar.say,
            write=_writer(cluster),
        )
        if passages:
            index_passages(directory, bar.say, cluster=cluster)
    if manifest == before:
        click.echo("nothing to add: these texts were the last ones added", err=as_json)
    _print_corpus(directory, manifest, as_json=as_json)


@reference.command(short_help="Index the passages that near matches are searched in.")
@_directory
@click.option(
    "--passage-words", type=click.IntRange(min=1), default=300, show_default=True, metavar="N",
    help="Words of a passage.",
)  # fmt: skip
@click.option(
    "--passage-overlap", type=click.IntRange(min=0), default=50, show_default=True, metavar="N",
    help="Words that a passage shares with the one before.",
)  # fmt: skip
@click.option(
    "--stop-words", default="english", show_default=True, metavar="english|none|FILE",
    help="Words that are not indexed.",
)  # fmt: skip
@json_option
def passages(
    directory: str | Path,
    passage_words: int,
    passage_overlap: int,
    stop_words: str,
    as_json: bool,
) -> None:
    """Index the passages of the corpus DIR, which near matches are looked for in.

    `reference build` has done so; this is for other lengths and stop words.
    """
    with progress_bar("indexing passages", None) as bar:
        n = index_passages(directory, bar.say, passage_words, passage_overlap, stop_words)
    print_done(
        {"reference": str(directory), "n_passages": n, "passage_words": passage_words},
        f"{directory}: {_count(n, 'passage')} of {passage_words} words",
        as_json=as_json,
    )


@reference.command(short_help="Show what a corpus holds and how it was built.")
@_directory
@click.option("--ids", is_flag=True, help="List the documents' ids instead, one a line.")
@json_option
def info(directory: str | Path, ids: bool, as_json: bool) -> None:
    """Say what the corpus DIR holds and how it was built."""
    from fabula.reference.layout import Manifest
    from fabula.reference.storage import open_home

    manifest = Manifest.read(directory)
    if ids:
        from fabula.reference import Reference

        for _, id_ in Reference.open(directory).local.ids():
            click.echo(id_)
    elif as_json:
        click.echo(manifest.to_json().decode(), nl=False)
    else:
        click.echo(_summary(directory, manifest))
        n_bytes = open_home(directory).n_bytes("shards")
        click.echo(
            f"  case {manifest.settings.case}, punctuation {manifest.settings.punct}, "
            f"{_count(len(manifest.shards), 'shard')}, {n_bytes / 1e6:,.1f} MB, "
            f"{_count(manifest.n_removed, 'document')} removed"
        )
        if manifest.written_by:
            click.echo(f"  written by {', '.join(manifest.written_by)}")


@reference.command(short_help="Check a corpus for damage.")
@_directory
@click.option(
    "--samples",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    help="Documents of which a stretch is looked up.",
)
@json_option
def verify(directory: str | Path, samples: int, as_json: bool) -> None:
    """Check every file of DIR against its checksum, and that the corpus finds its own text."""
    from fabula.reference.verify import verify_reference

    with progress_bar("verifying", None) as bar:
        manifest = verify_reference(directory, n_samples=samples, report=bar.say)
    print_done(
        {"reference": str(directory), "n_shards": len(manifest.shards), "is_whole": True},
        f"{directory}: {_count(len(manifest.shards), 'shard')} whole, and found by its own text",
        as_json=as_json,
    )


@reference.command(short_help="Remove documents from a corpus.")
@_directory
@click.argument("ids", nargs=-1, metavar="ID...")
@click.option("--ids-file", type=click.Path(path_type=Path), help="File with an id a line.")
@json_option
def remove(
    directory: str | Path, ids: tuple[str, ...], ids_file: Path | None, as_json: bool
) -> None:
    """Take documents out of the corpus DIR by their ids; searches no longer find them."""
    from fabula.reference import Reference
    from fabula.reference.tombstones import remove_documents
    from fabula.text import read_ids

    wanted = [*ids, *(read_ids(ids_file) if ids_file else [])]
    if not wanted:
        raise click.UsageError("name the documents to remove, or give --ids-file")
    numbers = Reference.open(directory).numbers_of(wanted)
    manifest = remove_documents(directory, [n for found in numbers.values() for n in found])
    _print_corpus(directory, manifest, as_json=as_json)


reference.add_command(write)
reference.add_command(serve)


def _print_corpus(directory: str | Path, manifest: Manifest, *, as_json: bool) -> None:
    content = {
        "reference": str(directory),
        "n_documents": manifest.n_documents,
        "n_words": manifest.n_words,
        "n_removed": manifest.n_removed,
        "fingerprint": manifest.fingerprint,
    }
    print_done(content, _summary(directory, manifest), as_json=as_json)


def _summary(directory: str | Path, manifest: Manifest) -> str:
    return (
        f"{directory}: {_count(manifest.n_documents, 'document')}, "
        f"{_count(manifest.n_words, 'word')}, fingerprint {manifest.fingerprint}"
    )


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _writer(cluster: Cluster | None) -> WriteShards | None:
    if cluster is None:
        return None
    from fabula.reference.build_cluster import on_cluster

    return on_cluster(cluster)


def _read_there(
    cluster: Cluster | None, sources: tuple[str, ...], how_to_read: Reading, bar: Bar
) -> FarDocuments | None:
    """What the sources name, read by the nodes where all of them can."""
    if cluster is None:
        return None
    from fabula.reference.reading_cluster import FarDocuments, are_far
    from fabula.text import find_files

    files = find_files(sources, format_=how_to_read.format)
    if not are_far(files):
        return None
    how = {
        "text_field": how_to_read.text_field,
        "id_field": how_to_read.id_field,
        "format_": how_to_read.format,
    }
    return FarDocuments(cluster, files, how, bar.advance)


def index_passages(
    path: str | Path,
    report: Callable[[str], None],
    n_words: int = 300,
    overlap: int = 50,
    stop_words: str = "english",
    *,
    cluster: Cluster | None = None,
) -> int:
    """Index what is not yet; returns how many passages there are."""
    from fabula.reference.layout import Manifest
    from fabula.reference.passages import PassageSettings, build_passages
    from fabula.text.stopwords import load_stop_words

    settings, chosen = PassageSettings(n_words, overlap), load_stop_words(stop_words)
    spread = map if cluster is None else cluster.in_order
    shards = Manifest.read(path).shards
    return build_passages(path, shards, settings, chosen, report, spread=spread)
