"""`fabula reference`: corpora to compare with, from the catalogue to the server."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabula.cli.confirming import confirm_on
from fabula.cli.derived import Command, Group, Option
from fabula.cli.inputs import read_stories, reading
from fabula.cli.options import CorpusType, check_outputs, texts_argument
from fabula.cli.printing import print_done, print_json, print_tables
from fabula.cli.progress_bar import progress_bar
from fabula.errors import InputError
from fabula.jobs.held_out import HeldOutSettings, measure_held_out
from fabula.jobs.reading import Reading
from fabula.jobs.references import (
    AddSettings,
    BuildSettings,
    CatalogueSettings,
    Corpus,
    InfoSettings,
    RemoveSettings,
    SampleSettings,
    VerifySettings,
    WriteSettings,
    add_to_corpus,
    build_corpus,
    build_from_catalogue,
    counted,
    info_lines,
    is_in_catalogue,
    remove_from_corpus,
    verify_corpus,
    write_corpus,
)
from fabula.jobs.serving import ServeSettings
from fabula.jobs.serving import serve as run

if TYPE_CHECKING:
    from fabula.reference import Reference


@click.command(cls=Command, short_help="Have models write texts, and build a corpus of them.")
@click.option(
    "--beginnings",
    cls=Option,
    setting="beginnings",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Sentences to continue: a .txt file with one per line, or rows of a table.",
)
def write(
    beginnings: Path, settings: WriteSettings, yes: bool, as_json: bool, how_to_read: Reading
) -> None:
    """Have models continue sentences, and build a reference from their texts.

    Use this for texts by models that are newer than any corpus: models trained on the same web
    write the same phrases (Lu et al. 2024, section "Evaluation"; 150,000 sentences there). Against
    such a reference `fabula originality` sums levels 5 to 7 by default. Interrupted runs resume.
    """
    check_outputs([settings.answers_path], [beginnings])
    sentences = read_stories((str(beginnings),), how_to_read)
    with progress_bar("texts", None) as bar:
        confirm = confirm_on(bar, yes=yes)
        written = write_corpus(sentences, settings, progress=bar, confirm=confirm)
    print_done(written.to_json(), *written.lines(), as_json=as_json)


@click.command(cls=Command, short_help="Serve corpora over HTTP.")
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=CorpusType())
def serve(directories: tuple[str | Path, ...], settings: ServeSettings) -> None:
    """Serve the corpora in DIR... over HTTP, as one reference for a whole team.

    Every command accepts it as `--reference http://HOST:PORT`, and gives the same numbers as the
    corpora on disk. If documents are added to a corpus or removed, the change is served within
    seconds; runs that began before must be started again.
    """
    run(directories, settings, announce=_announce, warn=partial(click.echo, err=True))


def _announce(reference: Reference, url: str, n_tokens: int) -> None:
    click.echo(f"{reference.name}: {reference.size}, fingerprint {reference.fingerprint}")
    if n_tokens:
        click.echo(f"served at {url} to clients with one of {n_tokens:,} tokens")
        click.echo("put your token into FABULA_REFERENCE_TOKEN, and then run:")
    else:
        click.echo(f"served at {url} to this machine only; no token is needed")
    click.echo(f"  fabula originality TEXTS --reference {url}")


@click.command(cls=Command, short_help="List public corpora and web-scale indexes.")
@click.argument("name", required=False)
def catalogue(name: str | None, settings: CatalogueSettings, as_json: bool) -> None:
    """List public corpora that a reference can be built from, and indexes that can be queried.

    With NAME: its source, licence and age, what it costs in time and disk space, and what it can
    and cannot tell. `fabula reference build NAME --sample 100M` builds one; use an index with
    `--reference infinigram:NAME`.
    """
    from fabula.presentation.catalogue_tables import catalogue_rows, catalogue_tables
    from fabula.reference.catalogue import read_catalogue

    known = read_catalogue(settings.catalogue)
    if as_json:
        rows = catalogue_rows(known, name)
        print_json(rows[0] if name else rows)
    else:
        print_tables(catalogue_tables(known, name))


_directory = click.argument("directory", metavar="DIR", type=CorpusType())


@click.group(cls=Group, short_help="Build, search and serve reference corpora.")
def reference() -> None:
    """The texts to compare with: a corpus on disk, built once and searched often."""


@reference.command(short_help="Build a reference corpus from texts.")
@texts_argument("sources")
def build(
    sources: tuple[str, ...],
    settings: BuildSettings,
    sampling: SampleSettings,
    as_json: bool,
    how_to_read: Reading,
) -> None:
    """Build a reference corpus from SOURCES: files, folders, patterns, URLs, or - for stdin.

    Reads .txt, .md, .docx, .epub, .odt, .rtf, .pdf, Scrivener projects, .jsonl, .csv, .tsv,
    .xlsx, .parquet and Common Crawl's .wet, the text formats also with .gz or .zst. Instead of
    texts, SOURCES may be a corpus by name, such as pg19, from which --sample words are read;
    `fabula reference catalogue` lists the names. To resume an interrupted build, run the same
    command again.
    """
    if is_in_catalogue(sources, sampling.catalogue):
        with progress_bar("reading", None, in_bytes=True) as bar:
            corpus = build_from_catalogue(sources[0], sampling, settings, progress=bar)
        _print_corpus(corpus, settings.adding, as_json=as_json)
        return
    if sampling != SampleSettings():
        raise InputError(
            "`sample`, `seed`, `sample_files` and `author` are only for corpora of the catalogue, "
            f"and {sources[0]} is not one; `fabula reference catalogue` lists them"
        )
    with reading(sources, "reading", how_to_read, whole=True) as (documents, bar):
        corpus = build_corpus(documents, settings, (sources, how_to_read), progress=bar)
    _print_corpus(corpus, settings.adding, as_json=as_json)


def _print_corpus(corpus: Corpus | None, settings: AddSettings, *, as_json: bool) -> None:
    if corpus is None:
        done = f"share {settings.share} is written; when all are, run the same command without it"
        print_done({"share": settings.share}, done, as_json=as_json)
    else:
        print_done(corpus.to_json(), str(corpus), as_json=as_json)


@reference.command(short_help="Add texts to a reference corpus.")
@_directory
@texts_argument("sources")
def add(
    directory: Path,
    sources: tuple[str, ...],
    settings: AddSettings,
    as_json: bool,
    how_to_read: Reading,
) -> None:
    """Add the texts of SOURCES to the corpus DIR, in new shards; existing ones do not change."""
    from fabula.reference.layout import Manifest

    before = Manifest.read(directory)
    named = sources, how_to_read
    with reading(sources, "reading", how_to_read, whole=True) as (documents, bar):
        corpus = add_to_corpus(documents, directory, settings, named, progress=bar)
    if corpus is not None and corpus.manifest == before:
        click.echo("nothing to add: these texts were the last ones added", err=as_json)
    _print_corpus(corpus, settings, as_json=as_json)


@reference.command(short_help="Show what a corpus contains and how it was built.")
@_directory
def info(directory: Path, settings: InfoSettings, as_json: bool) -> None:
    """Show what the corpus DIR contains and how it was built."""
    from fabula.reference.layout import Manifest

    if as_json and not settings.ids:
        click.echo(Manifest.read(directory).to_json().decode(), nl=False)
        return
    for line in info_lines(directory, settings):
        click.echo(line)


@reference.command(short_help="Score a corpus's own documents against it.")
@_directory
def measure(directory: Path, settings: HeldOutSettings, as_json: bool) -> None:
    """Score documents of the corpus DIR against the rest of the corpus.

    The distribution is saved in DIR, and served with it. From then on
    `fabula originality` and `fabula report` show the share of the reference's own documents whose
    Creativity Index is below the text's. Interrupted runs resume.
    """
    with progress_bar("measuring", None) as bar:
        found = measure_held_out(str(directory), settings, progress=bar)
    print_done(found.to_json(), *found.lines(), as_json=as_json)


@reference.command(short_help="Check a corpus for damage.")
@_directory
def verify(directory: Path, settings: VerifySettings, as_json: bool) -> None:
    """Check every file of DIR against its checksum, and check that searches find its own text."""
    with progress_bar("verifying", None) as bar:
        n_shards = len(verify_corpus(directory, settings, progress=bar).manifest.shards)
    print_done(
        {"reference": str(directory), "n_shards": n_shards, "is_whole": True},
        f"{directory}: {counted(n_shards, 'shard')} intact, and each finds its own text",
        as_json=as_json,
    )


@reference.command(short_help="Remove documents from a corpus.")
@_directory
@click.argument("ids", nargs=-1, metavar="ID...")
def remove(directory: Path, ids: tuple[str, ...], settings: RemoveSettings, as_json: bool) -> None:
    """Remove documents from the corpus DIR by id; searches no longer find them."""
    corpus = remove_from_corpus(directory, ids, settings)
    print_done(corpus.to_json(), str(corpus), as_json=as_json)


reference.add_command(catalogue)
reference.add_command(write)
reference.add_command(serve)
