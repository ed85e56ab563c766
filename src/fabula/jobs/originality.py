"""How much of each text occurs in a reference: the settings, the measure and the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fabula.jobs.engine import Engine, open_cluster
from fabula.jobs.models import Spending
from fabula.jobs.originality_result import OriginalityResult
from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.jobs.result_files import page_setting
from fabula.settings import Between, Settings, SettingsError, part, setting

if TYPE_CHECKING:
    from fabula.cluster import Cluster
    from fabula.measures.exclusion import ExcludeIds, ExcludeSame
    from fabula.measures.near import NearSearch, NearSettings
    from fabula.measures.near_walk import NearWalk, WalkSettings
    from fabula.measures.originality_measure import OriginalityMeasure
    from fabula.measures.quoting import QuoteJudge
    from fabula.models import ModelOptions
    from fabula.reference import Backend, Reference
    from fabula.reference.exclude import CopyRule
    from fabula.reference.passages import PassageSettings
    from fabula.types import Document

    Rows = Callable[[Iterable[Document]], Iterator[tuple[Document, dict[str, Any]]]]

__all__ = [
    "Marking",
    "Matching",
    "NearOptions",
    "OriginalityOptions",
    "OriginalitySettings",
    "open_measure",
    "open_rows",
    "run",
]


@dataclass(frozen=True, slots=True)
class NearOptions(Settings):
    """Overrides of the preset for near matches."""

    search: Literal["passages", "index"] | None = setting(
        None,
        help="near: passages: compare with the passages that BM25 ranks first; index: walk the "
        "index from every rare word, with no limit on passages.",
        default_text="passages",
        option="near-search",
    )
    preset: Literal["paper"] | None = setting(
        None,
        help="near: the published settings: a threshold of 0.95, no minimum of content words, no "
        "check of lengths, ends or meaning.",
    )
    threshold: float | None = setting(
        None,
        help="near: minimum similarity, in both directions.",
        unit="T",
        check=Between(0, 1, low_open=True),
        default_text="0.75; 0.45 with index",
    )
    floor: int | None = setting(
        None,
        help="near: minimum number of content words in both spans.",
        unit="N",
        check=Between(1),
        default_text="5; 4 with index",
    )
    ratio: float | None = setting(
        None,
        help="near: maximum ratio of the spans' lengths in words.",
        unit="R",
        check=Between(1),
        default_text="2",
    )
    meaning: float | None = setting(
        None,
        help="near: minimum cosine of the spans' sentence vectors; 0 turns the check off.",
        unit="M",
        check=Between(0, 1),
        default_text="0.7; 0.5 with index",
    )
    bits: float | None = setting(
        None,
        help="near, with index: minimum score of a match, in bits above chance.",
        unit="N",
        check=Between(0),
        default_text="22",
    )
    n_passages: int | None = setting(
        None,
        help="near: number of most similar passages searched for each window of the text.",
        unit="K",
        check=Between(1),
        default_text="100",
        option="top-passages",
        formerly=("passages",),
    )
    window: int | None = setting(
        None,
        help="near: words in a window of the text.",
        unit="N",
        check=Between(1),
        default_text="50",
    )
    passage_words: int | None = setting(
        None,
        help="near: words in a passage of the reference.",
        unit="N",
        check=Between(1),
        default_text="300",
    )
    passage_overlap: int | None = setting(
        None,
        help="near: words that consecutive passages share.",
        unit="N",
        check=Between(0),
        default_text="50",
    )
    stop_words: str | None = setting(
        None,
        help="near: words that do not count as content words.",
        unit="english|none|FILE",
        default_text="english",
    )
    vectors: str | None = setting(
        None,
        help="near: word vectors: a .kv, .vec or GloVe file, or a Hugging Face model's folder; "
        "spacy for those of the English pipeline.",
        unit="PATH|spacy",
        default_text="those of the sentence encoder",
    )

    def check_together(self) -> None:
        is_walk = self.search == "index"
        others = (
            ("preset", "n_passages", "window", "passage_words", "passage_overlap")
            if is_walk
            else ("bits",)
        )
        for name in others:
            if getattr(self, name) is not None:
                kind = "passages" if is_walk else "index"
                raise SettingsError(name, f"is only for `search` {kind}")

    def walk_settings(self) -> WalkSettings:
        """The settings of a walk over the index, with the overrides."""
        from fabula.measures.near_walk import WalkSettings

        names = ("threshold", "floor", "ratio", "meaning", "bits")
        given = {name: getattr(self, name) for name in names}
        return WalkSettings(**{k: v for k, v in given.items() if v is not None})

    def search_settings(self) -> NearSettings:
        """The preset with the overrides."""
        from fabula.measures.near import NEAR_PRESETS, NearSettings

        names = ("threshold", "floor", "ratio", "meaning", "n_passages", "window")
        given = {name: getattr(self, name) for name in names}
        return replace(
            NEAR_PRESETS.get(self.preset or "", NearSettings()),
            **{name: value for name, value in given.items() if value is not None},
        )

    def passages(self) -> PassageSettings:
        """How the reference is split into passages."""
        from fabula.reference.passages import PassageSettings

        given = {"n_words": self.passage_words, "overlap": self.passage_overlap}
        return PassageSettings(**{k: v for k, v in given.items() if v is not None})


# Without slots, so that a settings class can have two bases.
@dataclass(frozen=True, kw_only=True)
class Matching(Settings):
    """Which runs of words count as matches."""

    levels: str | None = setting(
        None,
        help="Values of L that the Creativity Index sums.",
        unit="LOW-HIGH",
        default_text="5-12; 5-7 against texts by models",
    )
    match: Literal["verbatim", "near"] = setting(
        "verbatim", help="near: also find matches in other words, by word-mover similarity."
    )


@dataclass(frozen=True, slots=True)
class OriginalityOptions(Matching):
    """What determines the originality of a text."""

    references: tuple[str, ...] = setting(
        help="Corpus to compare with: its folder, its address in an object store (s3://, gs://), "
        "or the http://... address where `fabula reference serve` serves it "
        "(FABULA_REFERENCE_TOKEN holds the token); repeat it to search several as one. Or a "
        "web-scale index: infinigram:NAME[@URL] over HTTP (`fabula reference catalogue` "
        "lists the names; FABULA_INFINIGRAM_URL sets your own server; "
        "infinigram-mini:NAME@URL is one that compares characters), or infinigram-index:PATH "
        "on this machine (PATH#tokenizer.json if the tokenizer is elsewhere).",
        unit="DIR|URL|INDEX",
        option="reference",
    )
    near: NearOptions = part(NearOptions)
    exclude: str = setting(
        "none",
        help="Documents of the reference to leave out: auto, those that copy or quote the text "
        "(for published texts, which may be in the reference); or a file with one id per "
        "line.",
        unit="auto|none|FILE",
    )
    exclude_same: str | None = setting(
        None,
        help="Also leave out documents whose FIELD equals the text's, such as author or "
        "prompt_id; id, if the reference contains the texts themselves.",
        unit="FIELD",
    )
    exclude_model: str | None = setting(
        None,
        help="After `exclude` auto, ask this model about documents that the rule leaves undecided.",
        unit="MODEL",
    )
    n_spread: int = setting(
        0,
        help="Show how uniqueness falls when only the best 1, 2, ... N documents may be used.",
        unit="N",
        check=Between(0, 1000),
        option="spread",
        formerly=("sources",),
    )
    n_sources: int = setting(
        3,
        help="Number of sources to name for each borrowed span.",
        check=Between(0, 100),
        option="cite",
    )
    n_parallel: int = setting(8, help="infinigram: concurrent look-ups.", check=Between(1, 64))
    max_retries: int = setting(
        5, help="infinigram, http: retries of a failed look-up.", check=Between(0)
    )

    def check_together(self) -> None:
        if self.match != "near" and self.near != NearOptions():
            names = NearOptions.__dataclass_fields__
            unused = next(name for name in names if getattr(self.near, name) is not None)
            raise SettingsError(unused, "is only for `match` near")

    def open_backend(self, progress: Progress = SILENT, *, fresh: bool = False) -> Backend:
        """Open the reference. `fresh` ignores cached answers of look-ups."""
        from fabula.reference.reference_spec import is_looked_up, open_backend, pace_of

        def say(n_asked: int, n_remembered: int) -> None:
            progress.say(f"measuring ({n_asked:,} look-ups, {n_remembered:,} from the cache)")

        for spec in filter(is_looked_up, self.references):
            progress.tell(f"{spec}: {pace_of(spec).expectation(self.n_parallel)}")
        return open_backend(
            self.references,
            n_parallel=self.n_parallel,
            max_retries=self.max_retries,
            fresh=fresh,
            meter=say,
            report=progress.say,
        )


@dataclass(frozen=True, slots=True)
class Marking(Settings):
    """How many borrowed passages a page marks."""

    n_marks: int | None = setting(
        None,
        help="Page: number of passages marked per 1,000 words, the least probable ones (5 in any "
        "text); the others are listed.",
        unit="N",
        check=Between(0, 1000),
        default_text="20",
        option="marks",
    )


@dataclass(frozen=True, slots=True)
class OriginalitySettings(Settings):
    """What determines the scores, and where they are computed and kept."""

    measure: OriginalityOptions = part(None)
    marking: Marking = part(Marking)
    out: Path | None = setting(
        None, help="Write scores here, one JSON row per text; interrupted runs resume."
    )
    restart: bool = setting(
        False, help="Score everything again, ignoring `out` and the look-up cache."
    )
    spending: Spending = part(Spending)
    engine: Engine = part(Engine)
    html: Path | None = page_setting("Write an HTML page of the results here.")

    def check_together(self) -> None:
        is_limited = self.spending.max_cost is not None and self.measure.exclude_model is not None
        if is_limited and self.engine.kind != "local":
            raise SettingsError(
                "max_cost",
                "limits `exclude_model` on this machine only: the nodes of a cluster do not share "
                "a budget",
            )


def run(
    documents: Iterable[Document],
    settings: OriginalitySettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
    keep_texts: bool = False,
    each: Callable[[dict[str, Any]], None] = lambda _row: None,
) -> OriginalityResult:
    """Score documents in order; `each` receives a row as soon as it is kept.

    Writes the page `html`. Raises `InputError`, `CorpusError`, `ModelError`; finished scores are
    kept in `out`.
    """
    from fabula.jobs.held_out import groups_of, held_out_of
    from fabula.reference.backend import described

    confirm_cost(settings, confirm)
    numbers = groups_of(settings.measure.references)
    result = OriginalityResult(keep_texts or settings.html is not None, settings.marking.n_marks)
    with open_rows(settings, progress) as (rows, backend):
        result.size, result.age = described(backend), backend.age
        for document, row in rows(documents):
            result.add(document, row)
            each(row)
    result.own = held_out_of(numbers, result.signature)
    if settings.html is not None:
        result.save_page(settings.html)
    return result


def confirm_cost(settings: OriginalitySettings, confirm: Confirm) -> None:
    """Confirm the cost of the model that decides doubtful exclusions, if there is one."""
    spec = settings.measure.exclude_model
    if spec is None:
        return
    from fabula.measures.quoting import estimate_quotes

    price = settings.spending.prices().of(spec)
    confirm(f"{spec}, for each text", estimate_quotes(price))


@contextmanager
def open_measure(
    options: OriginalityOptions,
    progress: Progress = SILENT,
    opened: Reference | None = None,
    *,
    spending: Spending | None = None,
    n_threads: int = 1,
    fresh: bool = False,
    same: ExcludeSame | None = None,
) -> Iterator[OriginalityMeasure]:
    """Open the measure that the options describe; `opened` is the reference, if already open.

    same: what to exclude for each text, if `exclude_same` does not say so.
    """
    from fabula.measures.originality_measure import OriginalityMeasure
    from fabula.measures.uniqueness import Levels
    from fabula.reference import Reference

    with ExitStack() as stack:
        backend: Backend = opened or options.open_backend(progress, fresh=fresh)
        stack.enter_context(closing(backend))
        corpus = backend if isinstance(backend, Reference) else None
        judge = _open_judge(stack, options.exclude_model, (spending or Spending()).options())
        levels = options.levels
        if levels is None:
            # Passages written by a model are short: longer matches are too rare to compare.
            levels = "5-7" if corpus is not None and corpus.written_by else "5-12"
        yield OriginalityMeasure(
            backend,
            exclude_same=same or _same(options.exclude_same, corpus),
            levels=Levels.parse(levels),
            exclude=_excluded(options.exclude, corpus),
            judge=judge,
            near=_open_near(options, corpus, progress) if options.match == "near" else None,
            n_sources=options.n_sources,
            spread=options.n_spread,
            n_threads=n_threads,
        )


def _open_judge(stack: ExitStack, spec: str | None, terms: ModelOptions) -> QuoteJudge | None:
    if spec is None:
        return None
    from fabula.measures.quoting import QuoteJudge
    from fabula.models import open_model

    return stack.enter_context(QuoteJudge(open_model(spec, terms)))


def _same(field_name: str | None, corpus: Reference | None) -> ExcludeSame | None:
    if field_name is None:
        return None
    if corpus is None:
        raise SettingsError("exclude_same", "needs a reference corpus built by Fabula")
    from fabula.measures.exclusion import ExcludeSame

    return ExcludeSame.of(corpus, field_name)


def _excluded(exclude: str, corpus: Reference | None) -> CopyRule | ExcludeIds | None:
    if exclude == "none":
        return None
    if exclude == "auto":
        from fabula.reference.exclude import CopyRule

        return CopyRule()
    if corpus is None:
        raise SettingsError("exclude", "needs a reference corpus built by Fabula")
    from fabula.measures.exclusion import ExcludeIds
    from fabula.text import read_ids

    return ExcludeIds.of(corpus, read_ids(Path(exclude)))


def _open_near(
    options: OriginalityOptions, corpus: Reference | None, progress: Progress
) -> NearSearch | NearWalk:
    """Near-verbatim search with these options."""
    from fabula.measures.near_opening import open_near, open_walk

    if corpus is None:
        raise SettingsError(
            "match",
            "near needs a reference corpus built by Fabula; an infini-gram index only says where "
            "n-grams occur verbatim",
        )
    near = options.near
    if near.search == "index":
        return open_walk(
            corpus,
            near.walk_settings(),
            stop_words=near.stop_words or "english",
            vectors=near.vectors or "",
            say=progress.say,
        )
    return open_near(
        corpus,
        options.references,
        near.search_settings(),
        near.passages(),
        stop_words=near.stop_words or "english",
        vectors=near.vectors or "",
        say=progress.say,
    )


@contextmanager
def open_rows(
    settings: OriginalitySettings, progress: Progress = SILENT
) -> Iterator[tuple[Rows, Backend]]:
    """Open the source of score rows, in this process or on a cluster, and the reference."""
    from fabula.measures.scores import ScoreRun, to_row

    options, engine = settings.measure, settings.engine
    if engine.kind == "ray":
        options = replace(options, references=_corpora(options.references))
    with ExitStack() as stack:
        cluster = stack.enter_context(open_cluster(engine, progress, "measuring"))
        if cluster is not None:
            yield _rows_on_cluster(stack, cluster, replace(settings, measure=options), progress)
            return
        measure = stack.enter_context(
            open_measure(
                options,
                progress,
                spending=settings.spending,
                n_threads=engine.n_processes,
                fresh=settings.restart,
            )
        )
        scoring = ScoreRun(measure, to_row, settings.out, restart=settings.restart)
        yield scoring.rows, measure.reference


def _corpora(references: Sequence[str]) -> tuple[str, ...]:
    """The references (corpora on disk or in object stores), by names valid on all nodes."""
    from fabula.reference.layout import Manifest
    from fabula.reference.reference_spec import is_elsewhere
    from fabula.reference.storage import open_home

    if any(map(is_elsewhere, references)):
        raise SettingsError("kind", "ray needs a reference corpus built by Fabula")
    homes = [open_home(reference).everywhere() for reference in references]
    # Duplicates count once.
    found: dict[str, str] = {}
    for home in homes:
        found.setdefault(Manifest.read(home).fingerprint, home.spec)
    return tuple(found.values())


def _rows_on_cluster(
    stack: ExitStack, cluster: Cluster, settings: OriginalitySettings, progress: Progress
) -> tuple[Rows, Backend]:
    """Like `open_rows`. With several nodes, none needs the whole reference."""
    from functools import partial

    from fabula.measures.scores import ScoreRun, to_row
    from fabula.measures.team import TeamMeasure, row_of
    from fabula.reference.distributed import Holders

    options = settings.measure
    opened = None
    if len(nodes := cluster.nodes()) > 1:
        if options.match == "near" and options.near.search != "index":
            _build_passages(options, progress, cluster)
        holders = Holders.over(cluster, options.references, nodes)
        stack.callback(cluster.end, holders.actors)
        opened = holders.open()
    here = open_measure(
        options,
        progress,
        opened,
        spending=settings.spending,
        n_threads=settings.engine.n_processes,
        fresh=settings.restart,
    )
    measure = stack.enter_context(here)
    there = partial(open_measure, options, SILENT, spending=settings.spending)
    team = TeamMeasure(cluster, measure, there, to_row, options.references)
    rows = ScoreRun(team, row_of, settings.out, restart=settings.restart).rows
    return rows, measure.reference


def _build_passages(options: OriginalityOptions, progress: Progress, cluster: Cluster) -> None:
    """Build the passages for near matches, on the nodes."""
    from fabula.reference.layout import Manifest
    from fabula.reference.passages import build_passages
    from fabula.text.stopwords import load_stop_words

    words = load_stop_words(options.near.stop_words or "english")
    for path in dict.fromkeys(options.references):
        build_passages(
            path,
            Manifest.read(path).shards,
            options.near.passages(),
            words,
            progress.say,
            spread=cluster.in_order,
        )
