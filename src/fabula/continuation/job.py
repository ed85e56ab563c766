"""Story continuation: passages of books, generators, and scores of their next sentences."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from fabula.core.errors import InputError
from fabula.core.settings import Between, Settings, SettingsError, part, seed_setting, setting
from fabula.jobs import models as calls
from fabula.jobs.job import SILENT, Confirm, Progress, WholeStream, agreed
from fabula.jobs.result import Result, Row, picked
from fabula.jobs.shared_settings import (
    Engine,
    Processes,
    encoder_setting,
    grammar_setting,
    open_cluster,
    page_setting,
    restart_setting,
    rows_file,
    share_of,
    share_setting,
)

if TYPE_CHECKING:
    from fabula.continuation.corpus import Corpus
    from fabula.continuation.recurrent import Progress as Training
    from fabula.continuation.scores import Example
    from fabula.continuation.tables import SystemTable
    from fabula.show.sheet import Block, Sheet

Kind = Literal["random", "unigram", "case", "recurrent"]
_TRAINED: tuple[Kind, ...] = ("random", "unigram", "case")
_SENTENCE_TOKENS = 40
"""Approximate tokens of a continuation."""
_NONE = WholeStream()


@dataclass(frozen=True, slots=True)
class CutSettings(Settings):
    """How books are split into contexts and the sentences after them."""

    out: Path = setting(help="Write a row for each passage here (.jsonl): context and gold.")
    n_sentences: int = setting(20, help="Number of sentences in a context.", check=Between(1))
    stride: int | None = setting(
        None,
        help="Number of sentences from the start of one passage to the next.",
        check=Between(1),
        default_text="no overlap",
    )
    limit: int | None = setting(None, help="Sample N passages (see `seed`).", check=Between(1))
    seed: int = seed_setting()


@dataclass(frozen=True, slots=True, repr=False)
class Passages(Result):
    """The passages that were cut or drawn, and of how many."""

    passages: Sequence[Row]
    out: Path
    n_found: int
    n_texts: int
    n_chapters: int

    def rows(self) -> list[Row]:
        return list(self.passages)

    def lines(self) -> list[str]:
        return [
            f"written: {self.out}, {len(self.passages):,} of {self.n_found:,} passages from "
            f"{self.n_texts:,} texts, {self.n_chapters:,} chapters"
        ]

    def to_json(self) -> dict[str, Any]:
        counts = picked(self, "n_found", "n_texts", "n_chapters")
        return {"out": str(self.out), "n": len(self.passages), **counts}


def passages(books: WholeStream, settings: CutSettings) -> Passages:
    """Cut BOOKS into contexts and the sentences that follow them.

    BOOKS are any texts, or files of the Children's Book Test, whose tokens are turned back into
    text (as rows of tokenised sentences, with `text_field` sentences). No passage crosses a chapter
    boundary; headings are left out.

    Raises `InputError` if no chapter is long enough, or two books have the same name.
    """
    from fabula.continuation.passages import book_chapters, passages_of
    from fabula.core.store import write_rows

    named, n = ", ".join(books.names) or "the books", settings.n_sentences
    chapters = list(book_chapters(books))
    cut = list(passages_of(chapters, n, settings.stride))
    if not cut:
        raise InputError(
            f"{named}: no chapter has {n + 1} sentences; choose fewer with `n_sentences`"
        )
    if len({passage.id for passage in cut}) < len(cut):
        raise InputError(
            f"{named}: two books have the same name, or one was given twice; their passages could "
            "not be told apart"
        )
    rows = [asdict(passage) | {"context": list(passage.context)} for passage in cut]
    n_found = len(rows)
    if settings.limit is not None and settings.limit < n_found:
        kept = sorted(random.Random(settings.seed).sample(range(n_found), settings.limit))
        rows = [rows[k] for k in kept]
    write_rows(settings.out, rows)
    n_texts = len({chapter.book for chapter in chapters})
    return Passages(rows, settings.out, n_found, n_texts, len(chapters))


@dataclass(frozen=True, slots=True)
class TrainSettings(Settings):
    """Which generators are trained, and how."""

    out: Path = setting(
        help="Folder for the trained generators. Those already trained on the same texts are kept.",
        unit="DIR",
    )
    kinds: tuple[Kind, ...] = setting(
        _TRAINED, help="Generators to train; repeat it for several.", option="kind"
    )
    min_count: int = setting(
        25,
        help="Minimum number of times a word must occur to be in the vocabulary.",
        check=Between(1),
    )
    n_epochs: int = setting(
        3, help="Number of passes of the recurrent network over all stories.", check=Between(1)
    )
    seed: int = seed_setting()
    restart: bool = restart_setting()
    processes: Processes = part(Processes)


@dataclass(frozen=True, slots=True, repr=False)
class Trained(Result):
    """What generators were trained on, and the losses of the recurrent network."""

    corpus: Corpus
    log: Sequence[dict[str, float]]
    settings: TrainSettings

    def lines(self) -> list[str]:
        corpus = self.corpus
        lines = [
            f"{self.settings.out}: {corpus.n_stories:,} stories, {corpus.n_sentences:,} sentences, "
            f"{corpus.n_tokens:,} tokens; {len(corpus.vocabulary) - 1:,} words occur at least "
            f"{corpus.min_count} times"
        ]
        for row in self.log:
            if "perplexity" in row:
                shown = f"perplexity {row['perplexity']:.1f} on held-out stories"
                lines.append(f"epoch {int(row['epoch'])}: {shown}")
        return [*lines, f"trained: {', '.join(self.settings.kinds)}"]

    def to_json(self) -> dict[str, Any]:
        return {"out": str(self.settings.out), "trained": self.settings.kinds}


def train(
    settings: TrainSettings, texts: WholeStream = _NONE, *, progress: Progress = SILENT
) -> Trained:
    """Train generators on the stories of TEXTS: random, unigram, case-based, recurrent.

    Without TEXTS, trains on the texts that `out` was made from. If training is interrupted, run the
    same command again to resume from the last checkpoint.

    Raises `InputError`, `ModelError`, `BusyError`.
    """
    from fabula.continuation.corpus import Corpus, build_corpus

    if texts is _NONE:
        corpus = Corpus.open(settings.out)
    else:
        n_jobs, say = settings.processes.n_processes, progress.say
        corpus = build_corpus(
            texts, settings.out, min_count=settings.min_count, n_jobs=n_jobs, report=say
        )
    if "case" in settings.kinds:
        from fabula.continuation.retrieval import index_cases

        progress.begin("indexing cases", None)
        index_cases(corpus, progress.say)
    if "recurrent" not in settings.kinds:
        return Trained(corpus, [], settings)
    from fabula.continuation.recurrent import Training as Plan
    from fabula.continuation.recurrent import train_recurrent

    n_epochs, done = settings.n_epochs, 0
    progress.begin("training", n_epochs * 100)

    def show(training: Training) -> None:
        nonlocal done
        share = training.window / training.n_windows
        progress.say(f"training, epoch {min(n_epochs, int(share) + 1)} of {n_epochs}")
        progress.advance(int(100 * share) - done)
        done = int(100 * share)

    plan = Plan(n_epochs=n_epochs, seed=settings.seed)
    log = train_recurrent(corpus, plan, restart=settings.restart, report=show).log
    return Trained(corpus, log, settings)


def _is_generator(kind: str) -> str | None:
    from fabula.continuation.generating import GENERATORS

    return None if kind in GENERATORS else f"{kind!r}: must be one of {', '.join(GENERATORS)}"


@dataclass(frozen=True, slots=True)
class GenerateSettings(Settings):
    """What continues the passages, and how."""

    contexts: Path = setting(
        help="Passages to continue, as `continuation passages` writes them (.jsonl).",
        unit="PASSAGES",
    )
    out: Path = setting(help="Write a row for each continuation here (.jsonl).")
    folder: Path | None = setting(
        None, help="Folder that `continuation train` wrote.", unit="DIR", option="from"
    )
    kinds: tuple[str, ...] = setting(
        _TRAINED,
        help="Generator to use, repeat it for several: random, unigram, case, recurrent from that "
        "folder; as-long needs none: it is a control, a sentence of the same book with as many "
        "words as the book's own.",
        unit="NAME",
        check=_is_generator,
        option="kind",
    )
    temperature: float = calls.temperature_setting(0.7, check=Between(0.01, 10))
    seed: int = seed_setting()
    share: str | None = share_setting()
    restart: bool = restart_setting()
    processes: Processes = part(Processes)
    models: calls.NoModelSettings = part(calls.NoModelSettings)

    def check_together(self) -> None:
        has_writer = bool(self.models.models) or not {*get_args(Kind)}.issuperset(self.kinds)
        if self.folder is None and not has_writer:
            raise SettingsError("folder", "DIR, `models` MODEL, or both: name at least one writer")


class Continuations(calls.Written):
    """The next sentences of passages."""

    __slots__ = ()

    def lines(self) -> list[str]:
        from fabula.core.errors import explain

        return [
            f"written: {self.out}, {self.n:,} continuations",
            *(f"without a text: {n:,} ({explain(why)})" for why, n in self.missing.items()),
        ]


def generate(
    settings: GenerateSettings, *, progress: Progress = SILENT, confirm: Confirm = agreed
) -> Continuations:
    """Have generators and language models write the next sentence of each passage.

    Interrupted runs resume; a model whose call failed is asked again.

    Raises `InputError`, `ModelError`, `BusyError`.
    """
    from fabula.continuation import generating
    from fabula.continuation.corpus import MAX_TOKENS
    from fabula.continuation.scores import read_contexts
    from fabula.core.resume import kept_rows
    from fabula.models.base import Sampling
    from fabula.text.pipeline import SENTENCES, load_pipeline

    models, seed = settings.models, settings.seed
    share = share_of(settings.share, settings.out)
    stories = read_contexts(settings.contexts)
    stories = list(stories if share is None else share.of(stories))
    heat, choices = settings.temperature, list[generating.GeneratorChoice]()
    for kind in dict.fromkeys(settings.kinds):
        if place := settings.folder if kind in get_args(Kind) else settings.contexts:
            choices.append(generating.GeneratorChoice(kind, place, heat))
            choices[-1].open()  # before anything is written
    sampling = Sampling(heat, max_tokens=MAX_TOKENS, seed=seed, effort=models.reasoning_effort)
    rows: list[Row] = []
    what, restart = generating.CONTINUATIONS, settings.restart
    n_jobs, meter = settings.processes.n_processes, progress.advance
    with kept_rows(settings.out, what, restart=restart, share=share) as kept:
        progress.begin("continuations", len(stories) * (len(choices) + models.n_models))
        for choice in choices:
            progress.say(choice.kind)
            rows += generating.generate(
                stories, choice, kept, seed=seed, n_jobs=n_jobs, meter=meter
            )
        progress.say("continuations")
        nlp = load_pipeline(SENTENCES) if models.models else None
        ask_each = generating.ask_continuations
        ask = partial(ask_each, stories, rows=kept, sampling=sampling, nlp=nlp, meter=meter)
        contexts = [" ".join(story.context) for story in stories]
        cost = calls.estimate_texts(contexts, _SENTENCE_TOKENS)
        rows += calls.ask_models(models, kept, ask, cost, confirm)
        kept.settle(rows)
    return Continuations(rows, rows_file(settings.share, settings.out))


@dataclass(frozen=True, slots=True)
class CompareSettings(Settings):
    """How systems are measured and compared."""

    contexts: Path = setting(
        help="Passages that were continued, as `continuation passages` writes them (.jsonl).",
        unit="PASSAGES",
    )
    out: Path | None = setting(
        None, help="Write the metrics of each continuation here (.jsonl); interrupted runs resume."
    )
    vocabulary: Path | None = setting(
        None,
        help="Count only these words in the two ratios: one word per line, or DIR/vocabulary.tsv "
        "from `continuation train`.",
    )
    test: Literal["paired", "two-sample"] = setting(
        "paired",
        help="Compare systems passage by passage and book by book, or as independent samples, as "
        "the paper does.",
        tunes="tests",
    )
    n_permutations: int = setting(
        10_000, help="Number of permutations in each test.", check=Between(99), tunes="tests"
    )
    seed: int = seed_setting()
    html: Path | None = page_setting("Write a page with all results here.")
    restart: bool = restart_setting()
    grammar: str = grammar_setting()
    encoder: Path | None = encoder_setting()
    engine: Engine = part(Engine)


@dataclass(frozen=True, slots=True, repr=False)
class ComparedSystems(Result):
    """All systems side by side, and some passages with what each wrote."""

    table: SystemTable
    examples: Sequence[Example]
    names_settings: ClassVar[bool] = False

    def tables(self) -> list[Block]:
        from fabula.continuation.tables import system_tables

        return system_tables(self.table)

    def records(self) -> list[Sheet]:
        """The values and the pairs, for CSV."""
        from fabula.continuation.tables import system_records

        return system_records(self.table)

    def writers(self) -> dict[str, Any]:
        from fabula.continuation.tables import write_system_page

        return {".html": lambda path: write_system_page(path, self.table, self.examples)}

    def to_json(self) -> dict[str, Any]:
        return {**self.table.to_json(), "examples": [e.to_json() for e in self.examples]}


def score(
    systems: Sequence[Path], settings: CompareSettings, *, progress: Progress = SILENT
) -> ComparedSystems:
    """Compare SYSTEMS that continue the same stories on fifteen metrics, with tests.

    A row of SYSTEMS contains the `id` of a passage, the `system` and its `text`; null means that
    the system returned none. Source: Roemmele, Gordon and Swanson 2017.

    Raises `InputError` with the line.
    """
    from fabula.continuation import scores as system_scores
    from fabula.continuation.generating import AS_LONG
    from fabula.continuation.scores import sample_examples
    from fabula.continuation.tables import compare_systems, write_system_page
    from fabula.linguistic import metrics

    words = None if settings.vocabulary is None else metrics.read_vocabulary(settings.vocabulary)
    stories = system_scores.read_contexts(settings.contexts)
    continuations = system_scores.read_continuations(systems, stories)
    continuations += system_scores.gold_continuations(stories, continuations)
    choice = metrics.ToolChoice(settings.grammar, settings.encoder)
    progress.begin("measuring", len(continuations))
    with open_cluster(settings.engine, progress, "measuring") as cluster:
        rows = system_scores.score_rows(
            stories,
            continuations,
            choice,
            settings.out,
            n_jobs=settings.engine.n_processes,
            spread=None if cluster is None else cluster.in_order,
            restart=settings.restart,
            advance=progress.advance,
        )
        progress.say("comparing")
        table = compare_systems(
            rows,
            list(dict.fromkeys(continuation.system for continuation in continuations)),
            vocabulary=words,
            controls=[AS_LONG],
            design=settings.test,
            n_permutations=settings.n_permutations,
            seed=settings.seed,
        )
    examples = sample_examples(stories, continuations, rows, table.systems, settings.seed)
    if settings.html is not None:
        write_system_page(settings.html, table, examples)
    return ComparedSystems(table, examples)
