"""Reference corpora: built from texts, extended, and built from texts by language models."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fabula.jobs.engine import Engine, Processes, open_cluster
from fabula.jobs.models import ModelSettings
from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.jobs.reading import Reading
from fabula.jobs.result_files import is_folder, share_of, share_setting
from fabula.jobs.stories import OpeningSettings, write_openings
from fabula.resume import Row, Share
from fabula.settings import Between, Settings, SettingsError, part, seed_setting, setting

if TYPE_CHECKING:
    from fabula.reference.catalogue import Collection
    from fabula.reference.layout import Manifest
    from fabula.types import Document

Sources = tuple[Sequence[str], Reading]
"""Names of files and folders, and how they are read."""


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", re.IGNORECASE)


def is_size(text: str) -> str | None:
    """What is wrong with an amount of memory; None for a valid one such as `4GB`."""
    is_one = _SIZE.fullmatch(text.strip()) is not None
    return None if is_one else f"{text!r} is not an amount of memory; write 4GB or 800MB"


def n_bytes_of(size: str) -> int:
    """The bytes of an amount of memory such as `4GB`."""
    found = _SIZE.fullmatch(size.strip())
    assert found is not None
    return int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))


_WORDS = re.compile(r"(\d+(?:\.\d+)?)([KMB]?)", re.IGNORECASE)


def is_number_of_words(text: str) -> str | None:
    """What is wrong with a number of words; None for a valid one such as `100M`, and for `all`."""
    is_one = text == "all" or (_WORDS.fullmatch(text) is not None and n_words_of(text) > 0)
    return None if is_one else f"{text!r} is not a number of words; write 100M, 1.5B, 200000 or all"


def n_words_of(text: str) -> int:
    """The number that `100M` stands for."""
    found = _WORDS.fullmatch(text)
    assert found is not None
    factor: int = 1000 ** " KMB".index(found[2].upper() or " ")
    return round(float(found[1]) * factor)


_CATALOGUE_HELP = "Additional corpora by name, or other locations for known ones (.toml)."


@dataclass(frozen=True, slots=True)
class CatalogueSettings(Settings):
    """Collections to list besides the built-in public corpora and indexes."""

    catalogue: Path | None = setting(None, help=_CATALOGUE_HELP)


@dataclass(frozen=True, slots=True)
class SampleSettings(Settings):
    """How much of a public corpus is read, if one is named instead of texts."""

    sample: str | None = setting(
        None,
        help="Read about this many words of a corpus from the catalogue, in documents drawn at "
        "random: 100M, 1.5B, or all.",
        unit="WORDS",
        check=is_number_of_words,
    )
    seed: int = seed_setting("Seed of the sample; the same seed gives the same bytes.")
    n_files: int | None = setting(
        None,
        help="Spread the sample over at least N of the corpus's files; more files take longer to "
        "read.",
        check=Between(1),
        default_text="depends on the corpus",
        option="sample-files",
    )
    author: str | None = setting(
        None,
        help="Read only books by this author, as in 'Austen, Jane' (gutenberg-mirror).",
        unit="NAME",
    )
    catalogue: Path | None = setting(None, help=_CATALOGUE_HELP)


@dataclass(frozen=True, slots=True)
class AddSettings(Settings):
    """How texts become shards of a corpus."""

    engine: Engine = part(Engine)
    share: str | None = share_setting()
    restart: bool = setting(False, help="Start over, ignoring the results of an earlier run.")


@dataclass(frozen=True, slots=True)
class BuildSettings(Settings):
    """Where a corpus is built, and how."""

    out: Path = setting(help="Folder to build.", unit="DIR", check=is_folder)
    case: Literal["fold", "keep"] | None = setting(
        None, help="fold: ignore case; keep: distinguish Word from word.", default_text="fold"
    )
    punct: Literal["drop", "keep"] | None = setting(
        None,
        help="drop: n-grams contain words only; keep: punctuation marks count too.",
        default_text="drop",
    )
    preset: Literal["paper"] | None = setting(
        None,
        help="paper: the published setting, with case and punctuation kept; `case` and `punct` "
        "override it.",
    )
    shard_tokens: int | None = setting(
        None, help="Words per shard, which is sorted in memory.", default_text="133000000"
    )
    memory: str | None = setting(
        None,
        help="Memory limit; a lower limit makes smaller shards.",
        unit="SIZE",
        default_text="4GB",
        check=is_size,
    )
    adding: AddSettings = part(AddSettings)


@dataclass(frozen=True, slots=True)
class Corpus:
    """The current state of a corpus."""

    place: Path
    manifest: Manifest

    def __str__(self) -> str:
        return (
            f"{self.place}: {counted(self.manifest.n_documents, 'document')}, "
            f"{counted(self.manifest.n_words, 'word')}, fingerprint {self.manifest.fingerprint}"
        )

    def to_json(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "reference": str(self.place),
            "n_documents": self.manifest.n_documents,
            "n_words": self.manifest.n_words,
            "n_removed": self.manifest.n_removed,
            "fingerprint": self.manifest.fingerprint,
        }
        return (
            content if self.manifest.source is None else content | {"source": self.manifest.source}
        )


@dataclass(frozen=True, slots=True)
class InfoSettings(Settings):
    """What is shown about a corpus."""

    ids: bool = setting(False, help="List the documents' ids instead, one per line.")


def info_lines(place: Path, settings: InfoSettings) -> Iterator[str]:
    """What a corpus contains, how it was built and how old it is; or its documents' ids."""
    from fabula.reference import Reference
    from fabula.reference.info import Age
    from fabula.reference.layout import Manifest
    from fabula.reference.storage import open_home

    if settings.ids:
        for _, id_ in Reference.open(place).local.ids():
            yield id_
        return
    manifest = Manifest.read(place)
    yield str(Corpus(place, manifest))
    yield (
        f"  case {manifest.settings.case}, punctuation {manifest.settings.punct}, "
        f"{counted(len(manifest.shards), 'shard')}, "
        f"{open_home(place).n_bytes('shards') / 1e6:,.1f} MB, "
        f"{counted(manifest.n_removed, 'document')} removed"
    )
    if manifest.written_by:
        yield f"  written by {', '.join(manifest.written_by)}"
    age = Age.of(manifest)
    yield f"  years of its documents: {age}{age.consequence}"
    if (source := manifest.source) is not None:
        asked = source["n_words"]
        how = "all of it" if asked is None else f"about {asked:,} words, seed {source['seed']}"
        author = f" by {source['author']}" if source["author"] else ""
        yield f"  from {source['name']}{author} ({source['title']}): {how}"
        yield f"  licence: {source['licence']}"


@dataclass(frozen=True, slots=True)
class VerifySettings(Settings):
    """How thoroughly a corpus is checked, besides the checksums of all its files."""

    n_samples: int = setting(
        200, help="Number of documents from which a run of words is looked up.", check=Between(0)
    )


def verify_corpus(place: Path, settings: VerifySettings, *, progress: Progress = SILENT) -> Corpus:
    """Check every file against its checksum, and that the corpus finds its own text.

    Raises `CorpusError` at the first problem.
    """
    from fabula.reference.build import verify_reference

    n = settings.n_samples
    return Corpus(place, verify_reference(place, n_samples=n, report=progress.say))


@dataclass(frozen=True, slots=True)
class RemoveSettings(Settings):
    """Which documents are removed, besides those that are named."""

    ids_file: Path | None = setting(None, help="File with one id per line.")


def remove_from_corpus(place: Path, ids: Sequence[str], settings: RemoveSettings) -> Corpus:
    """Remove documents from a corpus by id; searches no longer find them.

    Raises `CorpusError` for an id that the corpus does not have.
    """
    from fabula.reference import Reference
    from fabula.reference.build import remove_documents
    from fabula.text import read_ids

    file = settings.ids_file
    wanted = [*ids, *(read_ids(file) if file is not None else [])]
    if not wanted:
        raise SettingsError("ids_file", "is required if no document is named")
    numbers = Reference.open(place).numbers_of(wanted)
    return Corpus(place, remove_documents(place, [n for found in numbers.values() for n in found]))


def counted(n: int, noun: str) -> str:
    """`1 document`, `2,000 documents`."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def build_corpus(
    documents: Iterable[Document],
    settings: BuildSettings,
    sources: Sources | None = None,
    *,
    progress: Progress = SILENT,
) -> Corpus | None:
    """Build a corpus from the documents, or resume an interrupted build; None for a share of it.

    `sources` names the sources of the documents, and how they are read: the nodes of a cluster read
    them too. Raises `InputError`, `CorpusError`.
    """
    write = _write_parameters(settings)
    return _written(write, documents, settings.out, settings.adding, sources, progress)


def _write_parameters(settings: BuildSettings) -> Callable[..., Manifest | None]:
    """The function that builds a corpus with these settings."""
    from fabula.reference.build import BuildParameters, build_reference
    from fabula.text import TextSettings

    plain: Literal["keep"] | None = "keep" if settings.preset == "paper" else None
    words = TextSettings(settings.case or plain or "fold", settings.punct or plain or "drop")
    n_bytes = None if settings.memory is None else n_bytes_of(settings.memory)
    given = {"shard_tokens": settings.shard_tokens, "memory_bytes": n_bytes}
    parameters = BuildParameters(**{k: v for k, v in given.items() if v is not None})
    return partial(build_reference, settings=words, parameters=parameters)


def add_to_corpus(
    documents: Iterable[Document],
    place: Path,
    settings: AddSettings,
    sources: Sources | None = None,
    *,
    progress: Progress = SILENT,
) -> Corpus | None:
    """Add documents to a corpus, in new shards; otherwise like `build_corpus`."""
    from fabula.reference.build import add_documents

    return _written(add_documents, documents, place, settings, sources, progress)


def build_from_catalogue(
    name: str, sampling: SampleSettings, settings: BuildSettings, *, progress: Progress = SILENT
) -> Corpus | None:
    """Build a corpus from a public one, or from a sample of it; resumes with the same bytes.

    Raises `InputError` if the network does not reach it, `CorpusError`.
    """
    from fabula.reference.catalogue import read_catalogue
    from fabula.reference.corpus_sample import SampleRule, choose_sample

    collection = read_catalogue(sampling.catalogue).corpus(name)
    if sampling.sample is None:
        raise SettingsError("sample", f"is required for {name}: {_how_large(collection)}")
    n_words = None if sampling.sample == "all" else n_words_of(sampling.sample)
    rule = SampleRule(n_words, sampling.seed, sampling.n_files, sampling.author or "")
    progress.say(f"listing the files of {name}")
    sample = choose_sample(collection, rule)
    progress.begin("reading", sample.size_bytes)
    documents = sample.documents(progress.advance, progress.tell)
    write = partial(_write_parameters(settings), source=sample.to_row())
    return _written(write, documents, settings.out, settings.adding, None, progress)


def _how_large(collection: Collection) -> str:
    """The size of a collection, and how to request a part of it."""
    words = collection.about_words
    holds = (
        "its size is known once it is read"
        if words is None
        else f"it contains about {words:,} words"
    )
    return f"{holds}; set how many words to read, as in 100M, or all"


def is_in_catalogue(sources: Sequence[str], own: Path | None = None) -> bool:
    """Whether texts are named by a corpus of the catalogue; a file of that name comes first."""
    from fabula.reference.catalogue import read_catalogue

    (name, *others) = sources
    return not others and not Path(name).exists() and name in read_catalogue(own).corpora


def _written(
    write: Callable[..., Manifest | None],
    documents: Iterable[Document],
    place: Path,
    settings: AddSettings,
    sources: Sources | None,
    progress: Progress,
) -> Corpus | None:
    """The corpus, or None if only a share of it was written."""
    how: dict[str, Any] = {"n_jobs": settings.engine.n_processes, "report": progress.say}
    share = share_of(settings.share, place)
    if share is not None and settings.restart:
        raise SettingsError("restart", "cannot be used with `share`: start over without it first")
    with open_cluster(settings.engine, progress, "building") as cluster:
        # Whoever starts over deletes what is there, which shares cannot all do.
        if cluster is not None and share is None and not settings.restart:
            if sources is None or "-" in sources[0]:
                raise SettingsError("kind", "ray needs texts in files that every node can read")
            nodes = cluster.nodes()
            shares = [Share(k, len(nodes)) for k in range(1, len(nodes) + 1)]
            build = partial(_write_share, write, place.resolve(), sources)
            n_cpus = min(map(cluster.n_cpus, nodes))
            for k, _ in enumerate(cluster.in_order(build, shares, n_cpus=n_cpus), 1):
                progress.say(f"building: {k} of {len(shares)} shares are done")
        manifest = write(documents, place, restart=settings.restart, share=share, **how)
    return None if manifest is None else Corpus(place, manifest)


def _write_share(
    write: Callable[..., Manifest | None], place: Path, sources: Sources, share: Share
) -> None:
    """On a node, which reads the texts itself: write the shards of a share."""
    from fabula.text import find_files, read_documents
    from fabula.workers import default_jobs

    names, how = sources
    documents = read_documents(
        find_files(names, format_=how.format),
        text_field=how.text_field,
        id_field=how.id_field,
        format_=how.format,
    )
    write(documents, place, n_jobs=default_jobs(), share=share)


@dataclass(frozen=True, slots=True)
class WriteSettings(Settings):
    """What models write for a corpus. The defaults are those of Lu et al. 2024."""

    out: Path = setting(help="Folder to build.", unit="DIR")
    answers: Path | None = setting(
        None, help="Keep the models' texts here (.jsonl).", default_text="beside DIR, DIR.jsonl"
    )
    n_sample: int | None = setting(
        None, help="Draw N of the sentences at random.", check=Between(1)
    )
    top_p: float = setting(0.9, help="Nucleus sampling threshold (top-p).", check=Between(0, 1))
    temperature: float = setting(1.0, help="Sampling temperature.", check=Between(0, 2))
    max_tokens: int = setting(
        2048, help="Maximum length of a continuation, in tokens.", check=Between(1)
    )
    seed: int = seed_setting()
    restart: bool = setting(False, help="Ask for everything again, and rebuild.")
    models: ModelSettings = part(ModelSettings)
    processes: Processes = part(Processes)

    @property
    def answers_path(self) -> Path:
        """Where the answers are kept."""
        return self.answers or self.out.with_name(self.out.name + ".jsonl")


@dataclass(frozen=True, slots=True)
class WrittenCorpus:
    """A corpus of texts by models, and the rows it is built from."""

    corpus: Corpus
    rows: Sequence[Row]
    answers: Path

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row["model"] for row in self.rows))

    def lines(self) -> list[str]:
        """What there is, and what is missing, for display."""
        from fabula.tasks.written import without_prompt

        texts = [(row["text"], row["prompt"]) for row in self.rows if row["text"] is not None]
        n_echoed = sum(without_prompt(text, prompt) != text for text, prompt in texts)
        n_lacking = len(self.rows) - len(texts)
        manifest = self.corpus.manifest
        lines = [
            f"{self.corpus.place}: {manifest.n_documents:,} texts, {manifest.n_words:,} words, by "
            f"{', '.join(self.models)}"
        ]
        if n_echoed:
            lines.append(f"{n_echoed:,} answers began with their sentence, which was cut off")
        if n_lacking:
            lines.append(f"missing: {n_lacking:,} texts that the models did not return")
        return [*lines, f"written: {self.answers}"]

    def to_json(self) -> dict[str, Any]:
        content = self.corpus.to_json()
        del content["n_removed"]
        more = {"models": self.models, "n_asked": len(self.rows), "answers": str(self.answers)}
        return content | more


def write_corpus(
    beginnings: Sequence[Document],
    settings: WriteSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> WrittenCorpus:
    """Have models continue each line of the beginnings, and build a corpus from the results.

    Raises `CallFailed` if a call failed: a corpus of only some of the answers would be a different
    one. What was written is kept.
    """
    from fabula.errors import CallFailed
    from fabula.reference.build import build_reference
    from fabula.tasks.plots import by_line
    from fabula.tasks.written import draw_sentences, written_documents
    from fabula.text import TextSettings

    sentences = draw_sentences(by_line(beginnings), settings.n_sample, settings.seed)
    answers = settings.answers_path
    asked = OpeningSettings(
        out=answers,
        kind="continuation",
        top_p=settings.top_p,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
        seed=settings.seed,
        restart=settings.restart,
        models=settings.models,
    )
    rows = write_openings(sentences, asked, progress=progress, confirm=confirm).rows
    n_failed = sum(row["missing_reason"] == "failed" for row in rows)
    if n_failed:
        raise CallFailed(
            f"{n_failed:,} of {len(rows):,} calls failed; the texts so far are kept in {answers}; "
            "run the same command again to get the rest and build the reference"
        )
    progress.begin("building", None)
    manifest = build_reference(
        written_documents(rows),
        settings.out,
        settings=TextSettings(),
        n_jobs=settings.processes.n_processes,
        restart=settings.restart,
        report=progress.say,
        written_by=tuple(dict.fromkeys(row["model"] for row in rows)),
    )
    assert manifest is not None, "it is None only for a share"
    return WrittenCorpus(Corpus(settings.out, manifest), rows, answers)
