"""How much of each text occurs in a reference: the settings, the measure and the run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fabula.jobs.engine import Engine, open_cluster
from fabula.jobs.job import Stream
from fabula.jobs.models import Spending
from fabula.jobs.originality_result import OriginalityResult
from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.jobs.result_files import (
    page_setting,
    restart_setting,
    rows_file,
    share_of,
    share_setting,
)
from fabula.settings import Between, Settings, SettingsError, part, setting

if TYPE_CHECKING:
    from fabula.cluster import Cluster
    from fabula.measures.exclusion import ExcludeIds, ExcludeSame
    from fabula.measures.near import NearSearch
    from fabula.measures.near_paper import PaperSearch
    from fabula.measures.originality_measure import OriginalityMeasure
    from fabula.measures.quoting import QuoteJudge
    from fabula.models.model_spec import ModelOptions
    from fabula.reference import Backend, Reference
    from fabula.reference.exclude import CopyRule
    from fabula.types import Document

    Rows = Callable[[Iterable[Document]], Iterator[tuple[Document, dict[str, Any]]]]


@dataclass(frozen=True, slots=True)
class NearOptions(Settings):
    """What counts as a near match."""

    preset: Literal["paper"] | None = setting(
        None,
        help="near: the published search, in a corpus on this machine: passages by BM25, word "
        "mover similarity of 0.95.",
    )
    threshold: float | None = setting(
        None,
        help="Minimum similarity of two words.",
        unit="T",
        check=Between(0, 1, low_open=True),
        default_text="0.45",
        tunes="near",
    )
    floor: int | None = setting(
        None,
        help="Minimum number of similar content words.",
        check=Between(1),
        default_text="4",
        tunes="near",
    )
    ratio: float | None = setting(
        None,
        help="Maximum ratio of the spans' lengths in words.",
        unit="R",
        check=Between(1),
        default_text="2",
        tunes="near",
    )
    meaning: float | None = setting(
        None,
        help="Minimum cosine of the spans' sentence vectors; 0 turns the check off.",
        unit="M",
        check=Between(0, 1),
        default_text="0.5",
        tunes="near",
    )
    bits: float | None = setting(
        None,
        help="Minimum score of a match, in bits above chance.",
        unit="N",
        check=Between(0),
        default_text="22",
        tunes="near",
    )
    stop_words: str | None = setting(
        None,
        help="Words that do not count as content words.",
        unit="english|none|FILE",
        default_text="english",
        tunes="near",
    )
    vectors: str | None = setting(
        None,
        help="Word vectors: a .vec or GloVe file, or a Hugging Face model's folder; spacy "
        "for those of the English pipeline.",
        unit="PATH|spacy",
        default_text="those of the sentence encoder",
        tunes="near",
    )

    def check_together(self) -> None:
        for name in self._thresholds() if self.preset else ():
            raise SettingsError(name, "is part of what `preset` sets")

    def open(self, corpus: Reference, progress: Progress = SILENT) -> NearSearch | PaperSearch:
        """Open the search. Raises `InputError`, `ModelError`."""
        from fabula.measures.near import NearSearch, NearSettings
        from fabula.measures.near_paper import PaperSearch
        from fabula.models.vectors import open_vectors
        from fabula.text.stopwords import load_stop_words

        progress.say("loading word vectors")
        words = load_stop_words(self.stop_words or "english")
        vectors = open_vectors(self.vectors or "")
        is_english = not self.vectors
        opened: NearSearch | PaperSearch
        if self.preset:
            progress.say("indexing passages")
            opened = PaperSearch(corpus, vectors, words, is_english=is_english)
        else:
            settings = NearSettings(**self._thresholds())
            opened = NearSearch(corpus, vectors, words, settings, is_english=is_english)
        progress.say("measuring")
        return opened

    def _thresholds(self) -> dict[str, Any]:
        """The given ones."""
        names = ("threshold", "floor", "ratio", "meaning", "bits")
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None}


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
        "verbatim", help="near: also find matches in other words."
    )


@dataclass(frozen=True, slots=True)
class OriginalityOptions(Matching):
    """What determines the originality of a text."""

    references: tuple[str, ...] = setting(
        help="Corpus to compare with: its folder, its address (s3://, gs://, or "
        "https://.../manifest.json), which is fetched once, or the http://... address where "
        "`fabula reference serve` serves it (FABULA_REFERENCE_TOKEN holds the token); repeat "
        "it to search several as one. Or a web-scale index: infinigram:NAME[@URL] "
        "over HTTP (`fabula reference info` lists the names; FABULA_INFINIGRAM_URL sets "
        "your own server; "
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
        check=Between(0, 1000),
        option="spread",
    )
    n_sources: int = setting(
        3,
        help="Number of sources to name for each borrowed span.",
        check=Between(0, 100),
        option="cite",
    )
    n_parallel: int = setting(8, help="Concurrent look-ups.", check=Between(1, 64), tunes="index")
    max_retries: int = setting(
        5, help="Retries of a failed look-up.", check=Between(0), tunes="index"
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
    share: str | None = share_setting()
    restart: bool = restart_setting()
    spending: Spending = part(Spending)
    engine: Engine = part(Engine)
    html: Path | None = page_setting("Write an HTML page of the results here.")

    def check_together(self) -> None:
        share_of(self.share, self.out)
        is_limited = self.spending.max_cost is not None and self.measure.exclude_model is not None
        if is_limited and self.engine.kind != "local":
            raise SettingsError(
                "max_cost",
                "limits `exclude_model` on this machine only: the nodes of a cluster do not share "
                "a budget",
            )


def originality(
    texts: Stream,
    settings: OriginalitySettings,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
    each: Callable[[dict[str, Any]], None] | None = None,
) -> OriginalityResult:
    """Measure how original TEXTS are: L-uniqueness, the Creativity Index, and every borrowed span.

    The L-uniqueness of a text is the share of its words outside any run of L or more words found in
    the reference; the Creativity Index is the sum of L-uniqueness over the levels. With `out`,
    interrupted runs resume. Source: Lu et al. 2024.

    Raises `InputError`, `CorpusError`, `ModelError`. A text whose look-up failed has no score, and
    its row says why. All rows are kept in memory unless `each` receives them.
    """
    from fabula.jobs.held_out import groups_of, held_out_of
    from fabula.reference.backend import described

    confirm_cost(settings, confirm)
    numbers = groups_of(settings.measure.references)
    result = OriginalityResult(
        keep_texts=each is None or settings.html is not None,
        kept=[] if each is None else None,
        n_marks=settings.marking.n_marks,
    )
    with open_rows(settings, progress) as (rows, backend):
        result.size, result.age = described(backend), backend.age
        for document, row in rows(texts):
            result.add(document, row)
            if each is not None:
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
    terms: ModelOptions | None = None,
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
        judge = _open_judge(stack, options.exclude_model, terms)
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


def _open_judge(
    stack: ExitStack, spec: str | None, terms: ModelOptions | None
) -> QuoteJudge | None:
    if spec is None:
        return None
    from fabula.measures.quoting import QuoteJudge
    from fabula.models.model_spec import open_model

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
) -> NearSearch | PaperSearch:
    """Near-verbatim search with these options."""
    if corpus is None:
        raise SettingsError(
            "match",
            "near needs a reference corpus built by Fabula; an infini-gram index only says where "
            "n-grams occur verbatim",
        )
    return options.near.open(corpus, progress)


@contextmanager
def open_rows(
    settings: OriginalitySettings, progress: Progress = SILENT
) -> Iterator[tuple[Rows, Backend]]:
    """Open the source of score rows, in this process or on a cluster, and the reference."""
    from fabula.measures.scores import ScoreRun, to_row
    from fabula.resume import Ledger

    options, engine = settings.measure, settings.engine
    how: dict[str, Any] = {
        "restart": settings.restart,
        "share": share_of(settings.share, settings.out),
    }
    ledger = None
    if settings.out is not None:
        ledger = Ledger(rows_file(settings.share, settings.out), settings.restart)
    terms = settings.spending.options(ledger)
    with ExitStack() as stack:
        cluster = stack.enter_context(open_cluster(engine, progress, "measuring"))
        if cluster is not None:
            options = replace(options, references=tuple(map(_for_all_nodes, options.references)))
        measure = stack.enter_context(
            open_measure(
                options, progress, terms=terms, n_threads=engine.n_processes, fresh=settings.restart
            )
        )
        if cluster is None:
            yield ScoreRun(measure, to_row, settings.out, **how).rows, measure.reference
            return
        there = partial(open_measure, options, SILENT, terms=terms)
        scoring = ScoreRun(
            _OnCluster(cluster, measure, there), attrgetter("row"), settings.out, **how
        )
        yield scoring.rows, measure.reference


class _OnCluster:
    """An originality measure whose batches of texts are measured on a cluster.

    `measure` is the same measure opened here: it defines how a text is measured. Each process there
    opens it once, as `open_` does.
    """

    def __init__(
        self,
        cluster: Cluster,
        measure: OriginalityMeasure,
        open_: Callable[[], AbstractContextManager[OriginalityMeasure]],
    ) -> None:
        import cloudpickle

        self._cluster, self._measure = cluster, measure
        self._opened = cloudpickle.dumps(open_)
        self.signature, self.asked = measure.signature, measure.asked

    def measure(self, documents: Iterable[Document]) -> Iterator[_ScoredThere]:
        from fabula.text import in_batches

        sent: deque[list[Document]] = deque()

        def batches() -> Iterator[list[Document]]:
            for batch in in_batches(iter(documents), _NEAR_CHARS if self._measure.near else _CHARS):
                sent.append(batch)
                yield batch

        for rows in self._cluster.in_order(partial(_rows_there, self._opened), batches()):
            yield from map(_ScoredThere, sent.popleft(), rows)


_CHARS, _NEAR_CHARS = 1 << 18, 1 << 15
"""Of a batch."""


@dataclass(frozen=True, slots=True)
class _ScoredThere:
    document: Document
    row: dict[str, Any]


def _rows_there(opened: bytes, documents: list[Document]) -> list[dict[str, Any]]:
    from fabula.measures.scores import to_row

    return [to_row(result) for result in _opened_there(opened)[1].measure(documents)]


@lru_cache(maxsize=1)
def _opened_there(opened: bytes) -> tuple[ExitStack, OriginalityMeasure]:
    import cloudpickle

    stack = ExitStack()
    return stack, stack.enter_context(cloudpickle.loads(opened)())


def _for_all_nodes(spec: str) -> str:
    """A reference by a name that does not depend on the current folder."""
    return spec if ":" in spec else str(Path(spec).resolve())
