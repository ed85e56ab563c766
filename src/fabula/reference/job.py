"""Reference corpora: built from texts or from what models write, extended, shown, and served."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fabula.core.errors import CallFailed, InputError
from fabula.core.resume import Share, kept_rows
from fabula.core.settings import (
    Between,
    Settings,
    SettingsError,
    changed,
    part,
    seed_setting,
    setting,
)
from fabula.jobs import models as calls
from fabula.jobs.job import SILENT, Confirm, Corpus, Progress, Texts, WholeStream, agreed
from fabula.jobs.result import Result, Row, picked
from fabula.jobs.shared_settings import (
    Engine,
    Reading,
    check_kept,
    is_folder,
    open_cluster,
    restart_setting,
    rows_file,
    share_of,
    share_setting,
)

if TYPE_CHECKING:
    from fabula.core.types import Document
    from fabula.reference.catalogue import Catalogue, Collection, Index
    from fabula.reference.files import Manifest
    from fabula.reference.search import Reference
    from fabula.show.sheet import Block

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", re.IGNORECASE)


def is_size(text: str) -> str | None:
    """What is wrong with an amount of memory; None for a valid one such as `4GB`."""
    is_one = _SIZE.fullmatch(text.strip()) is not None
    return None if is_one else f"{text!r} is not an amount of memory; write 4GB or 800MB"


def n_bytes_of(size: str) -> int:
    """The bytes of an amount of memory such as `4GB`."""
    match = _SIZE.fullmatch(size.strip())
    assert match is not None
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


_WORDS = re.compile(r"(\d+(?:\.\d+)?)([KMB]?)", re.IGNORECASE)


def is_number_of_words(text: str) -> str | None:
    """What is wrong with a number of words; None for a valid one such as `100M`, and for `all`."""
    is_one = text == "all" or (_WORDS.fullmatch(text) is not None and n_words_of(text) > 0)
    return None if is_one else f"{text!r} is not a number of words; write 100M, 1.5B, 200000 or all"


def n_words_of(text: str) -> int:
    """The number that `100M` stands for."""
    match = _WORDS.fullmatch(text)
    assert match is not None
    factor: int = 1000 ** " KMB".index(match[2].upper() or " ")
    return round(float(match[1]) * factor)


Sources = tuple[Sequence[str], Reading]
_PRICED_WORDS = 100_000_000


@dataclass(frozen=True, slots=True)
class SampleSettings(Settings):
    """How much is read of a public corpus, if one is named instead of texts, or by models."""

    sample: str | None = setting(
        None,
        help="Read about this many words of a corpus from the catalogue, in documents drawn at "
        "random: 100M, 1.5B, or all. With `written_by`, draw so many of the sentences.",
        unit="WORDS",
        check=is_number_of_words,
    )
    seed: int = seed_setting("Seed of the sample and of models; the same seed, the same bytes.")
    author: str | None = setting(
        None,
        help="Read only books by this author, as in 'Austen, Jane' (gutenberg-mirror).",
        unit="NAME",
    )


@dataclass(frozen=True, slots=True)
class BuildSettings(Settings):
    """Where a corpus is built, and how."""

    out: Path = setting(help="Folder to build, or to add to.", unit="DIR", check=is_folder)
    add: bool = setting(
        False,
        help="Add the texts to the corpus that is there, in new shards; existing ones do not "
        "change.",
    )
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
        None,
        help="Words per shard, which is sorted in memory.",
        default_text="133000000",
        tunes="running",
    )
    memory: str | None = setting(
        None,
        help="Memory limit; a lower limit makes smaller shards.",
        unit="SIZE",
        default_text="4GB",
        check=is_size,
        tunes="running",
    )
    engine: Engine = part(Engine)
    share: str | None = share_setting()
    restart: bool = restart_setting()

    def check_together(self) -> None:
        for name in ("case", "punct", "preset", "shard_tokens", "memory"):
            if self.add and getattr(self, name) is not None:
                raise SettingsError(name, "is as the corpus has it, with `add`")


@dataclass(frozen=True, slots=True)
class WriterSettings(calls.ModelSettings):
    """Models that write the texts of a corpus. The defaults are those of Lu et al. 2024."""

    models: tuple[str, ...] = setting(
        (),
        help="Have this model continue the sentences of SOURCES, and build the corpus of what it "
        "writes, which is kept beside it (DIR.jsonl); named as in `fabula judge --model`; repeat "
        "it to ask several.",
        unit="MODEL",
        option="written-by",
    )
    temperature: float = calls.temperature_setting(1.0)
    max_tokens: int = calls.max_tokens_setting(2048)

    def check_together(self) -> None:
        # The others, and prices, may be from the user's configuration.
        names = ("temperature", "max_tokens", "max_cost")
        for name in changed(self):
            if name in names and not self.models:
                raise SettingsError(name, "is only for `written_by`")


def _summary(place: Path, manifest: Manifest) -> str:
    return (
        f"{place}: {counted(manifest.n_documents, 'document')}, "
        f"{counted(manifest.n_words, 'word')}, fingerprint {manifest.fingerprint}"
    )


def counted(n: int, noun: str) -> str:
    """`1 document`, `2,000 documents`."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


@dataclass(frozen=True, slots=True, repr=False)
class BuiltCorpus(Result):
    """The state of a corpus after it was built or changed."""

    place: Path
    manifest: Manifest | None
    """None if only a share of it was written."""
    share: str | None = None
    is_same: bool = False
    """Whether nothing was added."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The corpus as a reference: `originality(texts, reference=built)`."""
        return (str(self.place),)

    def open(self) -> Reference:
        """The corpus, to be searched."""
        from fabula.reference.search import Reference

        return Reference.open(self.place)

    def lines(self) -> list[str]:
        if self.manifest is None:
            return [f"share {self.share} is written; when all are, run the same command without it"]
        return [_summary(self.place, self.manifest)]

    def notices(self) -> list[str]:
        return ["nothing to add: these texts were the last ones added"] if self.is_same else []

    def to_json(self) -> dict[str, Any]:
        if (manifest := self.manifest) is None:
            return {"share": self.share}
        content = picked(manifest, "n_documents", "n_words", "n_removed", "fingerprint")
        content = {"reference": str(self.place), **content}
        return content if manifest.source is None else content | {"source": manifest.source}


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class WrittenCorpus(BuiltCorpus):
    """A corpus of texts by models, and the rows it is built from."""

    asked: Sequence[Row]
    answers: Path

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row["model"] for row in self.asked))

    def lines(self) -> list[str]:
        from fabula.reference.openings import without_prompt

        assert self.manifest is not None, "it is None only for a share"
        texts = [(row["text"], row["prompt"]) for row in self.asked if row["text"] is not None]
        n_echoed = sum(without_prompt(text, prompt) != text for text, prompt in texts)
        n_lacking = len(self.asked) - len(texts)
        n_texts, n_words = self.manifest.n_documents, self.manifest.n_words
        lines = [f"{self.place}: {n_texts:,} texts, {n_words:,} words, by {', '.join(self.models)}"]
        if n_echoed:
            lines.append(f"{n_echoed:,} answers began with their sentence, which was cut off")
        if n_lacking:
            lines.append(f"missing: {n_lacking:,} texts that the models did not return")
        return [*lines, f"written: {self.answers}"]

    def to_json(self) -> dict[str, Any]:
        content = BuiltCorpus.to_json(self)
        del content["n_removed"]
        more = {"models": self.models, "n_asked": len(self.asked), "answers": str(self.answers)}
        return content | more


def build(
    sources: WholeStream,
    settings: BuildSettings,
    sampling: SampleSettings,
    writing: WriterSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> BuiltCorpus:
    """Build a reference corpus from SOURCES: files, folders, patterns, URLs, or - for stdin.

    Reads .txt, .md, .docx, .epub, .odt, .rtf, .pdf, Scrivener projects, .jsonl, .csv, .tsv,
    .xlsx, .parquet and Common Crawl's .wet, the text formats also with .gz or .zst. Instead of
    texts, SOURCES may be a corpus by name, such as pg19, from which `sample` words are read;
    `fabula reference info` lists the names. To resume an interrupted build, run the same
    command again.

    With `written_by`, SOURCES are sentences, such as a .txt file with one per line, or rows of a
    table: models continue them, and the corpus is built of their texts. Use this for texts by
    models that are newer than any corpus: models trained on the same web write the same phrases (Lu
    et al. 2024, section "Evaluation"; 150,000 sentences there). Against such a reference
    `fabula originality` sums levels 5 to 7 by default. Interrupted runs resume.

    Raises `InputError`, `CorpusError`; `CallFailed` if a call failed, since a corpus of only some
    of the answers would be a different one: what was written is kept.
    """
    if writing.models:
        return _build_written(sources, settings, sampling, writing, progress, confirm)
    from fabula.reference.catalogue import SampleRule, choose_sample, read_catalogue
    from fabula.reference.files import Manifest

    names = sources.names
    before = Manifest.read(settings.out) if settings.add else None
    catalogue = read_catalogue()
    # A file of that name comes first.
    if len(names) == 1 and names[0] in catalogue.corpora and not Path(names[0]).exists():
        if settings.add:
            raise SettingsError("add", f"is for texts of your own, and {names[0]} is none")
        collection = catalogue.corpora[names[0]]
        if sampling.sample is None:
            n = collection.about_words
            unknown = "its size is known once it is read"
            holds = unknown if n is None else f"it contains about {n:,} words"
            remedy = "set how many words to read, as in 100M, or all"
            raise SettingsError("sample", f"is required for {names[0]}: {holds}; {remedy}")
        n_words = None if sampling.sample == "all" else n_words_of(sampling.sample)
        rule = SampleRule(n_words, sampling.seed, sampling.author or "")
        progress.say(f"listing the files of {names[0]}")
        sample = choose_sample(collection, rule)
        progress.begin("reading", sample.size_bytes)
        documents = sample.documents(progress.advance, progress.tell)
        return _written(documents, settings, None, progress, source=sample.to_row())
    if sampling != SampleSettings():
        shown = f", and {names[0]} is not one" if names else ""
        raise InputError(
            "`sample`, `seed` and `author` are only for corpora of the catalogue"
            f"{shown}; `fabula reference info` lists them"
        )
    built = _written(sources, settings, (names, sources.how), progress)
    return replace(built, is_same=before is not None and built.manifest == before)


def _written(
    documents: Iterable[Document],
    settings: BuildSettings,
    sources: Sources | None,
    progress: Progress,
    **about: Any,
) -> BuiltCorpus:
    """The corpus; nodes of a cluster read `sources` too. `about` is for `build_reference`."""
    from fabula.reference.build import BuildParameters, add_documents, build_reference
    from fabula.text import TextSettings

    write: Callable[..., Manifest | None] = add_documents
    if not settings.add:
        plain: Literal["keep"] | None = "keep" if settings.preset == "paper" else None
        words = TextSettings(settings.case or plain or "fold", settings.punct or plain or "drop")
        n_bytes = None if settings.memory is None else n_bytes_of(settings.memory)
        values = {"shard_tokens": settings.shard_tokens, "memory_bytes": n_bytes}
        parameters = BuildParameters(**{k: v for k, v in values.items() if v is not None})
        write = partial(build_reference, settings=words, parameters=parameters, **about)
    place = settings.out
    share = share_of(settings.share, place)
    if share is not None and settings.restart:
        raise SettingsError("restart", "cannot be used with `share`: start over without it first")
    with open_cluster(settings.engine, progress, "building") as cluster:
        # Whoever starts over deletes what is there, which shares cannot all do.
        if cluster is not None and share is None and not settings.restart:
            if sources is None or not sources[0] or "-" in sources[0]:
                raise SettingsError("kind", "ray needs texts in files that every node can read")
            nodes = cluster.nodes()
            shares = [Share(k, len(nodes)) for k in range(1, len(nodes) + 1)]
            build = partial(_write_share, write, place.resolve(), sources)
            n_cpus = min(map(cluster.n_cpus, nodes))
            for k, _ in enumerate(cluster.in_order(build, shares, n_cpus=n_cpus), 1):
                progress.say(f"building: {k} of {len(shares)} shares are done")
        manifest = write(
            documents,
            place,
            restart=settings.restart,
            share=share,
            n_jobs=settings.engine.n_processes,
            report=progress.say,
        )
    return BuiltCorpus(place, manifest, settings.share)


def _write_share(
    write: Callable[..., Manifest | None], place: Path, sources: Sources, share: Share
) -> None:
    """On a node, which reads the texts itself: write the shards of a share."""
    from fabula.core.workers import default_jobs

    names, how = sources
    write(how.documents(names), place, n_jobs=default_jobs(), share=share)


def _build_written(
    sources: WholeStream,
    settings: BuildSettings,
    sampling: SampleSettings,
    writing: WriterSettings,
    progress: Progress,
    confirm: Confirm,
) -> WrittenCorpus:
    """Have models continue each line of the sources, and build a corpus from the results."""
    from fabula.reference.openings import by_line, draw_sentences, written_documents
    from fabula.text import check_ids

    unfit = {"add": settings.add, "share": settings.share, "author": sampling.author}
    for name, value in {**unfit, "kind": settings.engine.kind == "ray"}.items():
        if value:
            raise SettingsError(name, "cannot be used with `written_by`")
    answers = settings.out.with_name(settings.out.name + ".jsonl")
    check_kept({"out": answers}, map(Path, sources.names))
    if not (beginnings := list(sources)):
        raise InputError(f"{', '.join(sources.names) or 'sources'}: contains no sentences")
    check_ids(beginnings)
    n = None if sampling.sample in (None, "all") else n_words_of(sampling.sample)
    terms = OpeningSettings(
        out=answers,
        kind="continuation",
        temperature=writing.temperature,
        max_tokens=writing.max_tokens,
        seed=sampling.seed,
        restart=settings.restart,
        models=writing,
    )
    sentences = draw_sentences(by_line(beginnings), n, sampling.seed)
    rows = openings(sentences, terms, progress=progress, confirm=confirm).asked
    if n_failed := sum(row["missing_reason"] == "failed" for row in rows):
        raise CallFailed(
            f"{n_failed:,} of {len(rows):,} calls failed; the texts so far are kept in {answers}; "
            "run the same command again to get the rest and build the reference"
        )
    progress.begin("building", None)
    models = tuple(dict.fromkeys(row["model"] for row in rows))
    built = _written(written_documents(rows), settings, None, progress, written_by=models)
    return WrittenCorpus(built.place, built.manifest, asked=rows, answers=answers)


@dataclass(frozen=True, slots=True)
class RemoveSettings(Settings):
    """Which documents are removed, besides those that are named."""

    ids_file: Path | None = setting(None, help="File with one id per line.")


def remove(
    directory: Corpus, settings: RemoveSettings, ids: Annotated[Sequence[str], "ID"] = ()
) -> BuiltCorpus:
    """Remove documents from the corpus DIR by id; searches no longer find them.

    Raises `CorpusError` for an id that the corpus does not have.
    """
    from fabula.reference.build import remove_documents
    from fabula.reference.search import Reference
    from fabula.text import read_ids

    file = settings.ids_file
    if not (chosen := [*ids, *(read_ids(file) if file is not None else [])]):
        raise SettingsError("ids_file", "is required if no document is named")
    lists = Reference.open(directory).numbers_of(chosen).values()
    manifest = remove_documents(directory, [n for numbers in lists for n in numbers])
    return BuiltCorpus(directory, manifest)


@dataclass(frozen=True, slots=True)
class InfoSettings(Settings):
    """What is shown."""

    ids: bool = setting(False, help="List the ids of a corpus's documents instead, one per line.")
    check: bool = setting(
        False,
        help="Check every file of a corpus against its checksum, and that searches find its own "
        "text.",
    )
    groups: bool = setting(
        False,
        help="Show the reference groups that ship with Fabula: the median and the middle 80 %.",
    )


class ReferenceInfo(Result, ABC):
    """What there is to compare with."""

    __slots__ = ()

    @abstractmethod
    def rows(self) -> list[Row]:
        """A row for each corpus, index, document or group."""


@dataclass(frozen=True, slots=True, repr=False)
class CatalogueInfo(ReferenceInfo):
    """Public corpora and indexes, or one of them."""

    catalogue: Catalogue
    name: str | None

    def tables(self) -> list[Block]:
        """All entries, or the details of one. Raises `InputError` for an unknown name."""
        from fabula.show.sheet import Column, Sheet

        if self.name is None:
            title = Column("what it is", name="title")
            youngest = Column("up to", name="youngest", of=_youngest)
            words, licence = Column("words", of=_words), Column("licence", cut=True)
            corpora = [Column("corpus", of="name"), title, words, youngest, licence]
            size, up_to = Column("size", of=_size_of), Column("up to", "d", name="youngest")
            indexes = [Column("index", of="name"), title, size, up_to]
            return [
                Sheet.of("corpora", self.catalogue.corpora.values(), corpora),
                "",
                "Sizes after ~ are estimated from bytes or tokens. `fabula reference info NAME` "
                "shows more; `fabula reference build NAME --sample 100M --out DIR` builds one.",
                "",
                Sheet.of("indexes", self.catalogue.indexes.values(), indexes),
                "",
                "An index is queried over HTTP, with nothing to build:",
                "`fabula originality TEXTS --reference infinigram:NAME`",
            ]
        return _about(self.catalogue.index(self.name) or self.catalogue.corpus(self.name))

    def rows(self) -> list[Row]:
        """A row for each corpus, then one for each index."""
        if self.name is None:
            names = (*self.catalogue.corpora, *self.catalogue.indexes)
            return [row for name in names for row in replace(self, name=name).rows()]
        if (index := self.catalogue.index(self.name)) is not None:
            return [{"kind": "index", **asdict(index), "url": index.url, **asdict(index.pace)}]
        corpus = self.catalogue.corpus(self.name)
        more = {"kind": "corpus", "documents_are": corpus.kind, "about_words": corpus.about_words}
        cost = asdict(corpus.cost_of(_PRICED_WORDS))
        return [asdict(corpus) | more | {"cost_of_100M_words": cost}]

    def to_json(self) -> Any:
        return self.rows()[0] if self.name else self.rows()


@dataclass(frozen=True, slots=True, repr=False)
class Listing(ReferenceInfo):
    """Documents of a corpus, or groups, in lines and as rows."""

    said: Sequence[str]
    found: list[Row]
    is_of_one: bool = False
    """Whether its row is about a corpus as a whole."""

    def lines(self) -> Sequence[str]:
        return self.said

    def rows(self) -> list[Row]:
        return self.found

    def to_json(self) -> Any:
        return self.found[0] if self.is_of_one else self.found


def info(
    settings: InfoSettings, name: str | None = None, *, progress: Progress = SILENT
) -> ReferenceInfo:
    """List public corpora that a reference can be built from, and indexes that can be queried.

    With the NAME of one: its source, licence and age, what it costs in time and disk space, and
    what it can and cannot tell. `fabula reference build NAME --sample 100M` builds one; use an
    index with `--reference infinigram:NAME`.

    With the folder of a corpus as NAME: what it contains and how it was built. With a .jsonl file
    that `reference group` wrote: its groups, and those that ship with Fabula.

    Raises `InputError`, and `CorpusError` for a corpus that is damaged.
    """
    from fabula.reference.catalogue import read_catalogue

    catalogue = read_catalogue()
    is_listed = name is None or name in catalogue.corpora or catalogue.index(name) is not None
    is_groups = settings.groups or (name is not None and name.endswith(".jsonl"))
    if name is not None and not is_groups and (Path(name).exists() or not is_listed):
        if problem := is_folder(name):
            raise SettingsError("name", problem)
        if not Path(name).exists():
            where = "`fabula reference info` lists the names"
            raise InputError(f"{name}: no such folder, and not in the catalogue; {where}")
        from fabula.reference.build import verify_reference
        from fabula.reference.files import Manifest
        from fabula.reference.search import Reference

        place = Path(name)
        if settings.check:
            checked = verify_reference(place, report=progress.say)
            n_shards = len(checked.shards)
            intact = f"{place}: {counted(n_shards, 'shard')} intact, and each finds its own text"
            row = {"reference": str(place), "n_shards": n_shards, "is_whole": True}
            return Listing([intact], [row], is_of_one=True)
        if settings.ids:
            ids = [id_ for _, id_ in Reference.open(place).local.ids()]
            return Listing(ids, [{"id": id_} for id_ in ids])
        manifest = Manifest.read(place)
        n_bytes = sum(f.stat().st_size for f in (place / "shards").rglob("*") if f.is_file())
        lines = [
            _summary(place, manifest),
            f"  case {manifest.settings.case}, punctuation {manifest.settings.punct}, "
            f"{counted(len(manifest.shards), 'shard')}, {n_bytes / 1e6:,.1f} MB, "
            f"{counted(manifest.n_removed, 'document')} removed",
        ]
        if manifest.written_by:
            lines.append(f"  written by {', '.join(manifest.written_by)}")
        limit = ""
        if (youngest := manifest.age.youngest) is not None:
            limit = f"; a text written after {youngest} cannot be in it"
        lines.append(f"  years of its documents: {manifest.age}{limit}")
        if (source := manifest.source) is not None:
            size = source["n_words"]
            how = "all of it" if size is None else f"about {size:,} words, seed {source['seed']}"
            author = f" by {source['author']}" if source["author"] else ""
            lines.append(f"  from {source['name']}{author} ({source['title']}): {how}")
            lines.append(f"  licence: {source['licence']}")
        return Listing(lines, [json.loads(manifest.to_json())], is_of_one=True)
    for wrong in ("ids", "check"):
        if getattr(settings, wrong):
            raise SettingsError(wrong, "needs the folder of a corpus")
    if not is_groups:
        return CatalogueInfo(catalogue, name)
    from fabula.stats.norms import GroupBook

    groups = GroupBook.open(*([] if name is None else [Path(name)])).groups
    shown = []
    for group in groups:
        shown += [f"{group.group} ({group.kind}): {group.title}", f"  {group.signature}"]
        for item, norm in group.items.items():
            ends = ", ".join(f"{norm.quantile(share):.4g}" for share in (0.1, 0.5, 0.9))
            shown.append(f"  {item}: {ends}  (n {norm.n})")
    return Listing(shown, [asdict(group) for group in groups])


def _about(entry: Collection | Index) -> list[Block]:
    """What is known of a corpus or an index, and the command that uses it."""
    from fabula.reference.catalogue import Index
    from fabula.show.sheet import Column, Sheet

    if isinstance(entry, Index):
        compares = "by its tokens, and whole tokens only"
        if entry.by_characters:
            compares = "by characters; a match counts only at word boundaries"
        lines = {
            "documents": f"{entry.n_documents:,}",
            "size": _size_of(entry),
            "up to": str(entry.youngest),
            "asked at": entry.url,
            "compares": compares,
            "look-ups": entry.pace.expectation(),
        }
        command = f"`fabula originality TEXTS --reference infinigram:{entry.name}`"
    else:
        cost, files = entry.cost_of(_PRICED_WORDS), entry.files
        download = "the size of its files is not published"
        if cost.download_bytes is not None:
            download = f"a download of at least {_bytes(cost.download_bytes)}"
        formats = {
            "txt": "text", "wet": "WET (.gz)", "jsonl": "JSON Lines (.gz)", "parquet": "Parquet"
        }  # fmt: skip
        layout = f"{formats.get(entry.format, entry.format)} files"
        if entry.columns:
            layout += "; " + ", ".join(f"{what} in {name}" for what, name in entry.columns.items())
        n_documents = "" if entry.n_documents is None else f"{entry.n_documents:,} "
        lines = {
            "language": entry.language,
            "documents": f"{n_documents}{entry.kind}",
            "words": _words(entry),
            "text": _bytes(entry.n_bytes) if entry.n_bytes else "size not published",
            "files": _bytes(entry.n_download_bytes) if entry.n_download_bytes else "not published",
            "up to": _youngest(entry),
            "licence": entry.licence,
            "read from": files.pattern or files.listing or files.table,
            "layout": layout,
            "100M words": f"{download}; {_bytes(cost.disk_bytes)} on disk; "
            f"{cost.build_s / 60:.0f} minutes of one core",
            "it can tell": entry.tells,
            "it cannot tell": entry.tells_not,
            "checked": "; ".join(entry.checked) or "nothing: these are your own words",
        }
        command = f"`fabula reference build {entry.name} --sample 100M --out {entry.name}.ref`"
    sheet = Sheet("about", [Column("", name="fact"), Column("", name="value")], list(lines.items()))
    return [f"{entry.name}: {entry.title}", "", sheet, "", command]


def _words(corpus: Collection) -> str:
    if (words := corpus.about_words) is None:
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


def _short(n: float, units: Sequence[str] = "TBM", form: str = ".3g", plain: str = "") -> str:
    for size, unit in zip((1e12, 1e9, 1e6), units, strict=True):
        if n >= size:
            return f"{n / size:{form}}{unit}"
    return f"{n:,.0f}{plain}"


def _bytes(n: float) -> str:
    return _short(n, (" TB", " GB", " MB"), ".1f", " bytes")


@dataclass(frozen=True, slots=True)
class ServeSettings(Settings):
    """Where corpora are served, and to whom."""

    host: str = setting("127.0.0.1", help="Address to listen on.")
    port: int = setting(8100, help="Port to listen on.", check=Between(0, 65535))
    token_file: Path | None = setting(
        None,
        help="Tokens that give access, one per line; FABULA_REFERENCE_TOKEN holds another. "
        "Without a token, only this machine has access.",
        unit="FILE",
    )


def serve(
    directories: Annotated[Sequence[Path], "corpus"],
    settings: ServeSettings,
    *,
    announce: Callable[[str], None] = print,
    warn: Callable[[str], None] = print,
) -> Result:
    """Serve the corpora in DIR... over HTTP, as one reference for a whole team.

    Every command accepts it as `--reference http://HOST:PORT`, and gives the same numbers as the
    corpora on disk. If documents are added to a corpus or removed, the change is served within
    seconds; runs that began before must be started again.

    Raises `InputError`, `CorpusError`; else it returns when the process is stopped.
    """
    try:
        from fabula.reference.client import Limits
        from fabula.reference.service import Gate, Served, create_app, read_tokens
        from fabula.web import app as web
        from fabula.web.guard import is_loopback
    except ImportError as error:
        raise InputError(
            "serving a reference needs more packages; run: pip install 'fabula[serve]'"
        ) from error
    limits = Limits()
    host, file = settings.host, settings.token_file
    gate = Gate(read_tokens(file), limits)
    if not gate and not is_loopback(host):
        raise InputError(
            f"`host` {host}: other machines could connect, and no token restricts access; give "
            "`token_file` FILE, or put a token into FABULA_REFERENCE_TOKEN"
        )
    served = Served(directories, say=warn)
    listening = web.listen(host, settings.port)
    url = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"

    def look_again() -> None:
        served.wake()
        try:
            # Whether tokens are required was decided at the start: some cannot become none.
            if gate:
                gate.replace(read_tokens(file))
        except InputError as error:
            warn(f"the tokens were not reloaded: {error}")

    def begun() -> None:
        reference = served.now.reference
        announce(f"{reference.name}: {reference.size}, fingerprint {reference.fingerprint}")
        if gate:
            announce(f"served at {url} to clients with one of {len(gate):,} tokens")
            announce("put your token into FABULA_REFERENCE_TOKEN, and then run:")
        else:
            announce(f"served at {url} to this machine only; no token is needed")
        announce(f"  fabula originality TEXTS --reference {url}")

    app = create_app(served, gate, limits)
    web.serve(app, listening, begun, on_hangup=look_again, keep_alive_s=60)
    return Result()


@dataclass(frozen=True, slots=True)
class OpeningSettings(Settings):
    """How texts are written from their beginnings. The defaults are those of Lu et al. 2024."""

    out: Path = setting(help="Write a row for each text here (.jsonl).")
    kind: Literal["novel", "poem", "speech", "news", "proof", "continuation"] = setting(
        "novel", help="Kind of text to write."
    )
    formats: tuple[str, ...] = setting(
        ("plain",),
        help="Prompt format: plain; ideas, perspectives, novelty, bold, free, agent, writer, "
        "direction, task, life, which ask for creativity; one of the prompt file; or all.",
        unit="NAME",
        option="prompt",
    )
    prompt_file: Path | None = setting(
        None,
        help="Your own prompts (.toml), or the text of the paper (.txt, .md), whose appendix B.1 "
        "has the published ones.",
    )
    n_sentences: int | None = setting(
        None,
        help="BEGINNINGS are whole texts by people: models get the first N sentences of each, and "
        "the text itself, up to the sentence that passes 256 words, becomes a row too.",
        check=Between(1),
        option="sentences",
    )
    top_p: float = setting(
        0.9, help="Nucleus sampling threshold (top-p).", check=Between(0, 1), tunes="models"
    )
    temperature: float = calls.temperature_setting(1.0)
    max_tokens: int = calls.max_tokens_setting(288)
    seed: int = seed_setting("Seed for sampling.")
    share: str | None = share_setting()
    restart: bool = restart_setting()
    models: calls.ModelSettings = part(calls.ModelSettings)


def openings(
    beginnings: Texts,
    settings: OpeningSettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> calls.WrittenStories:
    """Have models continue a first sentence, a headline or a theorem.

    BEGINNINGS are rows of a table, files with one beginning each, or a .txt file with one per line;
    with `n_sentences` they are people's whole texts, which then stand beside the models'.
    The defaults are those of the Creativity Index paper (appendix B.1): top-p 0.9, 288 tokens.

    Raises `InputError`, `ModelError`, `BusyError`; finished texts are kept in `out`.
    """
    from fabula.models.base import Sampling
    from fabula.reference import openings as task
    from fabula.text.pipeline import SENTENCES, load_pipeline
    from fabula.text.sentences import first_sentences

    file, n = settings.prompt_file, settings.n_sentences
    published = None if file is None else task.read_formats(file, settings.kind)
    choices = list(task.FORMATS if published is None else published)
    formats = tuple(choices) if "all" in settings.formats else settings.formats
    if unknown := [name for name in formats if name not in choices]:
        raise SettingsError("formats", f"{unknown[0]}: must be one of {', '.join(choices)}, or all")
    share = share_of(settings.share, settings.out)
    documents = list(beginnings) if n is not None else task.by_line(beginnings)
    documents = list(documents if share is None else share.of(documents))
    human: list[Row] = []
    if n is not None:
        nlp, whole = load_pipeline(SENTENCES), documents
        documents = [replace(doc, text=first_sentences(doc.text, nlp, n=n)) for doc in whole]
        pairs = zip(whole, documents, strict=True)
        human = [task.human_row(doc, beginning, settings.kind, nlp) for doc, beginning in pairs]
    effort = settings.models.reasoning_effort
    heat, top_p, seed = settings.temperature, settings.top_p, settings.seed
    sampling = Sampling(heat, top_p, settings.max_tokens, seed, effort)
    texts = [document.text for document in documents for _ in formats]
    with kept_rows(settings.out, task.OPENINGS, restart=settings.restart, share=share) as kept:
        progress.begin("texts", len(texts) * settings.models.n_models)
        rows = calls.ask_models(
            settings.models,
            kept,
            lambda model: task.write_openings(
                documents,
                model,
                kept,
                kind=settings.kind,
                formats=formats,
                published=published,
                sampling=sampling,
                meter=progress.advance,
            ),
            calls.estimate_texts(texts, settings.max_tokens),
            confirm,
        )
        finished = [*human, *rows]
        kept.settle(finished)
    return calls.WrittenStories(rows, rows_file(settings.share, settings.out), finished=finished)
