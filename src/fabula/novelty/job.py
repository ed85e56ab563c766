"""How much of each text occurs in a reference: the settings, the measure, the run, its result."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from fabula.core.settings import Between, Settings, SettingsError, changed, of_field, part, setting
from fabula.jobs.job import SILENT, Confirm, Progress, Stream, agreed
from fabula.jobs.models import Spending
from fabula.jobs.result import Result, Row, flat, picked, single_values
from fabula.jobs.shared_settings import (
    Engine,
    open_cluster,
    page_setting,
    restart_setting,
    rows_file,
    share_of,
    share_setting,
)

if TYPE_CHECKING:
    from fabula.core.types import Document
    from fabula.core.workers import Cluster
    from fabula.models.model_spec import ModelOptions
    from fabula.novelty.measure import ExcludeIds, ExcludeSame, OriginalityMeasure
    from fabula.novelty.near import NearSearch, PaperSearch
    from fabula.reference.backend import Age, Backend
    from fabula.reference.exclude import CopyRule
    from fabula.reference.search import Reference
    from fabula.show.sheet import Block
    from fabula.stats.norms import Distribution


_TECHNICAL = ("text_digest", "word_counts")
"""Fields of a row that no frame has."""
_UNFAMILIAR = 0.2
"""Share of words unknown to the reference above which a remark is made."""


def _near(help: str, default_text: str, **known: Any) -> Any:  # noqa: A002 (click's word)
    return setting(None, help=help, default_text=default_text, tunes="near", **known)


@dataclass(frozen=True, slots=True)
class NearOptions(Settings):
    """What counts as a near match."""

    preset: Literal["paper"] | None = setting(
        None,
        help="near: the published search, in a corpus on this machine: passages by BM25, word "
        "mover similarity of 0.95.",
    )
    threshold: float | None = _near(
        "Minimum similarity of two words.", "0.45", unit="T", check=Between(0, 1, low_open=True)
    )
    meaning: float | None = _near(
        "Minimum cosine of the spans' sentence vectors; 0 turns the check off.",
        "0.5",
        unit="M",
        check=Between(0, 1),
    )
    bits: float | None = _near(
        "Minimum score of a match, in bits above chance.", "22", unit="N", check=Between(0)
    )
    stop_words: str | None = _near(
        "Words that do not count as content words.", "english", unit="english|none|FILE"
    )
    vectors: str | None = _near(
        "Word vectors: a .vec or GloVe file, or a Hugging Face model's folder.",
        "those of the sentence encoder",
        unit="PATH",
    )

    def check_together(self) -> None:
        for name in self._thresholds() if self.preset else ():
            raise SettingsError(name, "is part of what `preset` sets")

    def open(self, corpus: Reference, progress: Progress = SILENT) -> NearSearch | PaperSearch:
        """Open the search. Raises `InputError`, `ModelError`."""
        from fabula.models.vectors import open_vectors
        from fabula.novelty.near import NearSearch, NearSettings, PaperSearch
        from fabula.text.words import load_stop_words

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
        values = picked(self, "threshold", "meaning", "bits")
        return {name: value for name, value in values.items() if value is not None}


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
    exclude_same: str | None = of_field(
        "Also leave out documents whose FIELD equals the text's, such as author or "
        "prompt_id; id, if the reference contains the texts themselves."
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
            raise SettingsError(changed(self.near)[0], "is only for `match` near")

    def open_backend(self, progress: Progress = SILENT, *, fresh: bool = False) -> Backend:
        """Open the reference. `fresh` ignores cached answers of look-ups."""
        from fabula.reference.search import is_looked_up, open_backend, pace_of

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
class OriginalitySettings(Settings):
    """What determines the scores, and where they are computed and kept."""

    measure: OriginalityOptions = part(None)
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


@dataclass(slots=True, repr=False)
class OriginalityResult(Result):
    """A run of any length: rows for a table, remarks, and the first texts for a page."""

    MAX_KEPT: ClassVar[int] = 200
    keep_texts: bool = False
    kept: list[Row] | None = None
    """All rows, as in `out`, if they are kept."""
    texts: list[tuple[Document, dict[str, Any]]] = field(default_factory=list)
    """The first texts with their rows, if they are kept."""
    table: list[tuple[str, int, float | None, float | None, str | None]] = field(
        default_factory=list
    )
    """(id, words, Creativity Index, uniqueness at the lowest level, why it is missing)."""
    passages: list[Row] = field(default_factory=list)
    """The least probable over all texts."""
    n_passages: int = 0
    n_commonplaces: int = 0
    size: str = ""
    """The size and age of the reference, for display."""
    own: Distribution | None = None
    """The Creativity Index of the reference's own documents, if it was measured."""
    age: Age | None = None
    """The age of its documents."""
    signature: str = ""
    levels: list[str] = field(default_factory=list)
    n_rows: int = 0
    n_with_copies: int = 0
    n_unfamiliar: int = 0
    copied: list[str] = field(default_factory=list)
    younger: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    n_by_remark: Counter[str] = field(default_factory=Counter)

    def add(self, document: Document, row: dict[str, Any]) -> None:
        from fabula.novelty.scores import COPIED_SHARE, first_passages, ranked_passages

        self.n_rows += 1
        if self.kept is not None:
            self.kept.append(row)
        self.n_with_copies += bool(row["excluded"])
        if self.age is not None:
            self.younger += self.age.younger([document])
        if (row["in_reference"] or 0) >= COPIED_SHARE:
            self.copied.append(row["id"])
        self.n_unfamiliar += 0 < (row["n_known_words"] or 0) < (1 - _UNFAMILIAR) * row["n_words"]
        self.n_by_remark.update(row.get("remarks", ()))
        if (detail := row.get("missing_detail")) is not None:
            self.failures.append(detail)
        self.signature = row["signature"]
        self.levels = list(row["uniqueness"])
        lowest = next(iter(row["uniqueness"].values()))
        self.table.append(
            (row["id"], row["n_words"], row["creativity_index"], lowest, row["missing_reason"])
        )
        self.n_passages += len(row["passages"] or ())
        self.n_commonplaces += len(row["commonplaces"] or ())
        self.passages = first_passages([*self.passages, *ranked_passages(document, row)])
        if self.keep_texts and len(self.texts) < self.MAX_KEPT:
            self.texts.append((document, row))

    def rows(self) -> list[Row]:
        return self.kept or []

    def frame_rows(self) -> list[Row]:
        """A row per text: `id`, its scores, `uniqueness_L` for each L, and its own fields."""
        first = ("id", "creativity_index", "n_words", "missing_reason", "uniqueness")
        return [
            flat({name: row[name] for name in first}) | single_values(row, (*first, *_TECHNICAL))
            for row in self.rows()
        ]

    def tables(self) -> list[Block]:
        from fabula.novelty.tables import originality_table, passages_table

        return [
            *originality_table(self.table, self.levels, self.signature, self.own),
            *passages_table(self.passages, self.n_passages, self.n_commonplaces),
        ]

    def writers(self) -> dict[str, Any]:
        return {".html": self.save_page}

    def lacking(self) -> str | None:
        # For scripts: some texts have no score. If a look-up failed, another run may find it.
        return "" if any(index is None for _, _, index, _, _ in self.table) else None

    def _repr_html_(self) -> str:
        from fabula.web import notebook_table

        lines = [(id_, index, why) for id_, _, index, _, why in self.table]
        return notebook_table("Creativity Index", lines, self.signature)

    def notices(self) -> list[str]:
        of_all = f"of {self.n_rows:,} texts"
        remarks = []
        if self.n_with_copies:
            remarks.append(
                f"{self.n_with_copies:,} {of_all}: documents that copy or quote them were left out "
                "(named in the scores and on the page)"
            )
        if self.n_unfamiliar:
            remarks.append(
                f"{self.n_unfamiliar:,} {of_all}: over {_UNFAMILIAR:.0%} of the words do not occur "
                "in the reference at all, and count as new; check that it is in the same language"
            )
        remarks += [f"{n:,} {of_all}: {remark}" for remark, n in self.n_by_remark.items()]
        if self.age is not None and self.younger:
            remarks.append(younger_remark(self.younger, self.n_rows, self.age))
        if self.copied:
            remarks.append(
                f"{len(self.copied):,} {of_all}: at least half of the words occur in one document "
                f"of the reference (the first: {self.copied[0]}): copied, or borrowed? `exclude` "
                "auto and `exclude_same` leave such documents out"
            )
        if self.failures:
            remarks.append(
                f"{len(self.failures):,} {of_all} have no score, since a look-up failed "
                f"({self.failures[0]}); run again with `out` to retry"
            )
        return remarks

    def save_page(self, path: Path) -> None:
        from fabula.novelty.part import write_page

        write_page(path, self.texts, self.n_rows, self.size)


def younger_remark(ids: Sequence[str], n_texts: int, age: Age) -> str:
    """What a reference cannot contain, since it is older than the texts."""
    return (
        f"{len(ids):,} of {n_texts:,} texts were written after {age.youngest}, later than every "
        f"document of the reference: they cannot be in it (the first: {ids[0]})"
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
    its row says why.
    """
    from fabula.core.resume import Ledger
    from fabula.novelty.held_out import groups_of, held_out_of
    from fabula.novelty.scores import run_measure
    from fabula.reference.backend import described

    options, engine, terms = settings.measure, settings.engine, None
    share = share_of(settings.share, settings.out)
    if (spec := options.exclude_model) is not None:
        from fabula.novelty.quoting import estimate_quotes

        confirm(f"{spec}, for each text", estimate_quotes(settings.spending.prices().of(spec)))
        ledger = None
        if settings.out is not None:
            ledger = Ledger(rows_file(settings.share, settings.out), settings.restart)
        terms = settings.spending.options(ledger)
    numbers = groups_of(options.references)
    keeps_texts = each is None or settings.html is not None
    result = OriginalityResult(keeps_texts, [] if each is None else None)
    how: dict[str, Any] = {"restart": settings.restart, "share": share}
    with ExitStack() as stack:
        cluster = stack.enter_context(open_cluster(engine, progress, "measuring"))
        if cluster is not None:
            # By names that do not depend on the current folder.
            names = (ref if ":" in ref else str(Path(ref).resolve()) for ref in options.references)
            options = replace(options, references=tuple(names))
        n_threads, fresh = engine.n_processes, settings.restart
        opened = open_measure(options, progress, terms=terms, n_threads=n_threads, fresh=fresh)
        measure = stack.enter_context(opened)
        result.size, result.age = described(measure.reference), measure.reference.age
        if cluster is not None:
            opener = partial(open_measure, options, SILENT, terms=terms)
            how["rows_of"] = partial(_rows_on, cluster, measure, opener)
        for document, row in run_measure(measure, texts, settings.out, **how):
            result.add(document, row)
            if each is not None:
                each(row)
    result.own = held_out_of(numbers, result.signature)
    if settings.html is not None:
        result.save_page(settings.html)
    return result


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
    from fabula.novelty import measure as measures
    from fabula.reference.exclude import CopyRule
    from fabula.reference.search import Reference
    from fabula.text import read_ids

    with ExitStack() as stack:
        backend: Backend = opened or options.open_backend(progress, fresh=fresh)
        stack.enter_context(closing(backend))
        corpus = backend if isinstance(backend, Reference) else None
        judge, near = None, None
        exclude: CopyRule | ExcludeIds | None = None
        if options.exclude_model is not None:
            from fabula.models.model_spec import open_model
            from fabula.novelty.quoting import QuoteJudge

            judge = stack.enter_context(QuoteJudge(open_model(options.exclude_model, terms)))
        if same is None and options.exclude_same is not None:
            same = measures.ExcludeSame.of(_needed(corpus, "exclude_same"), options.exclude_same)
        # Passages written by a model are short: longer matches are too rare to compare.
        usual = "5-7" if corpus is not None and corpus.written_by else "5-12"
        levels = measures.Levels.parse(usual if options.levels is None else options.levels)
        if options.exclude == "auto":
            exclude = CopyRule()
        elif options.exclude != "none":
            exclude = measures.ExcludeIds.of(
                _needed(corpus, "exclude"), read_ids(Path(options.exclude))
            )
        if options.match == "near":
            near = options.near.open(_needed(corpus, "match"), progress)
        yield measures.OriginalityMeasure(
            backend,
            exclude_same=same,
            levels=levels,
            exclude=exclude,
            judge=judge,
            near=near,
            n_sources=options.n_sources,
            spread=options.n_spread,
            n_threads=n_threads,
        )


def _needed(corpus: Reference | None, name: str) -> Reference:
    """The corpus that a setting needs. Raises `SettingsError` if the reference is none."""
    if corpus is None:
        problem = "needs a reference corpus built by Fabula"
        if name == "match":
            problem = f"near {problem}; an infini-gram index only says where n-grams occur verbatim"
        raise SettingsError(name, problem)
    return corpus


def _rows_on(
    cluster: Cluster,
    measure: OriginalityMeasure,
    open_: Callable[[], AbstractContextManager[OriginalityMeasure]],
    documents: Iterable[Document],
) -> Iterator[tuple[Document, Row]]:
    """Each document with its row, measured on a cluster in batches.

    `measure` is the same measure opened here. Each process there opens it once, as `open_` does.
    """
    import cloudpickle

    from fabula.text import in_batches

    sent: deque[list[Document]] = deque()

    def batches() -> Iterator[list[Document]]:
        for batch in in_batches(iter(documents), _NEAR_CHARS if measure.near else _CHARS):
            sent.append(batch)
            yield batch

    for rows in cluster.in_order(partial(_rows_there, cloudpickle.dumps(open_)), batches()):
        yield from zip(sent.popleft(), rows, strict=True)


_CHARS, _NEAR_CHARS = 1 << 18, 1 << 15
"""Of a batch."""


def _rows_there(opened: bytes, documents: list[Document]) -> list[dict[str, Any]]:
    from fabula.novelty.scores import to_row

    return [to_row(result) for result in _opened_there(opened)[1].measure(documents)]


@lru_cache(maxsize=1)
def _opened_there(opened: bytes) -> tuple[ExitStack, OriginalityMeasure]:
    import cloudpickle

    stack = ExitStack()
    return stack, stack.enter_context(cloudpickle.loads(opened)())
