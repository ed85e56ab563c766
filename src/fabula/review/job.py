"""All instruments on the same texts: what to run and how, the report, and reference groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from fabula.core.errors import InputError, ModelError
from fabula.core.instruments import names_of_parts, own_parts
from fabula.core.provenance import note_output
from fabula.core.resume import KeptRows, kept_rows
from fabula.core.settings import (
    Between,
    Settings,
    SettingsError,
    of_field,
    part,
    seed_setting,
    setting,
)
from fabula.core.store import measurement_row, read_measurements, write_rows
from fabula.core.types import Document, Measurement
from fabula.jobs.job import SILENT, Confirm, Progress, Texts, agreed
from fabula.jobs.models import NoModelSettings, temperature_setting
from fabula.jobs.result import Result, Row, flat, picked
from fabula.jobs.shared_settings import Processes, TableFiles, grammar_setting, page_setting
from fabula.judging.job import Labels, Run, labels_of_some
from fabula.novelty.job import Matching
from fabula.reference.search import is_elsewhere
from fabula.show.parts import LeftOut, Review, bibtex_of, methods_of, numbers_of_review
from fabula.stats.norms import GroupKind, GroupNumbers, measure_group, read_groups, write_groups
from fabula.style.lines import CONFUSED, LINE_KINDS
from fabula.text import check_documents

if TYPE_CHECKING:
    from fabula.feedback.advising import Advice, Earlier
    from fabula.feedback.points import Point
    from fabula.show.sheet import Block

ON_REQUEST = ("fluency", "proofreading")
"""The instruments that are off by default."""


def _is_part(name: str) -> str | None:
    names = (*names_of_parts(), *LINE_KINDS)
    return None if name in names else f"{name!r}: must be one of {', '.join(names)}"


def _is_off(name: str) -> str | None:
    """Reject what is on by default, and what is not known."""
    names = [*ON_REQUEST, *(kind.id for kind in LINE_KINDS.values() if not kind.is_on)]
    return None if name in names else f"{name!r}: must be one of {', '.join(names)}"


def _ungrouped() -> list[str]:
    """What models say, comparisons of several texts and line notes: they make no group."""
    return [p.id for p in own_parts() if not p.has_groups]


def _is_measured(name: str) -> str | None:
    return f"{name!r} is never part of a group" if name in _ungrouped() else _is_part(name)


@dataclass(frozen=True, slots=True)
class InstrumentSettings(Processes, Matching):
    """Settings of the instruments that do not call a model."""

    references: tuple[str, ...] = setting(
        (),
        help="Corpus to measure originality against: its folder or s3:// address, http://... if "
        "it is served, or infinigram:NAME; repeat it to search several as one.",
        unit="PATH",
        option="reference",
        env="FABULA_REFERENCE",
    )
    exclude: Literal["none", "auto"] = setting(
        "none", help="auto: leave out documents of the reference that copy or quote the text."
    )
    exclude_same: str | None = of_field(
        "Leave out documents whose FIELD equals the text's, such as author or prompt_id; "
        "texts that share it are not compared with each other either."
    )
    fluency_model: str = setting(
        "local",
        help="Model used for surprisal (with fluency): local (the embedded model) or a .gguf file.",
        unit="MODEL",
        tunes="tools",
    )
    grammar: str = grammar_setting()
    dictionary: Path | None = setting(
        None,
        help="Words that are never noted as spelling or as a name: a text file, a word a line.",
        unit="FILE",
        tunes="tools",
    )
    without: tuple[str, ...] = setting(
        (),
        help="Leave an instrument out: originality, profile, lines, verdicts, feedback, "
        "book, diversity (of several texts), or one that another package adds; or a kind of "
        "note on lines, such as grammar; repeat it for several.",
        unit="INSTRUMENT",
        check=_is_part,
    )

    with_: tuple[str, ...] = setting(
        (),
        help="Add what is off by default: fluency; proofreading (the embedded model reads all "
        "words, not only suspected ones, of texts of up to 10,000 words: 8 to 14 s per 1,000); or "
        "echo (a kind of note on lines that is wrong more often than right); repeat for several.",
        unit="NAME",
        option="with",
        check=_is_off,
    )

    def asks(self, instrument: str) -> bool:
        """Whether an instrument should run."""
        is_wanted = instrument in self.with_ or instrument not in ON_REQUEST
        return is_wanted and instrument not in self.without

    def check_together(self) -> None:
        for name in self.with_:
            if name in self.without:
                raise SettingsError("with_", f"adds {name}, which `without` leaves out")
        if "proofreading" in self.with_ and {"lines", CONFUSED} & set(self.without):
            raise SettingsError("with_", "adds proofreading, whose notes `without` leaves out")
        if self.fluency_model != "local" and not self.asks("fluency"):
            raise SettingsError("fluency_model", "is of use with fluency only: add it in `with_`")


@dataclass(frozen=True, slots=True)
class AdviceOptions(Settings):
    """How one model is asked for feedback on one draft, with `only` feedback."""

    n_points: int = setting(
        7, help="feedback: maximum number of points per reading.", check=Between(1, 50)
    )
    temperature: float = temperature_setting(0.7)
    by_chapter: bool = setting(
        False,
        help="feedback: ask about each chapter of a book by itself, then about contradictions "
        "between chapters.",
    )
    since: Path | None = setting(
        None,
        help="feedback: the `points_file` of an earlier draft; shows which of its points are "
        "resolved.",
    )
    points_file: Path | None = setting(
        None,
        help="feedback: keep the points here (.jsonl), for `since` of the next draft; answers "
        "saved beside it (FILE with .answers before its ending) are not asked for again.",
    )


Only = Literal["lines", "book", "profile", "feedback", "fluency", "originality", "verdicts"]


@dataclass(frozen=True, slots=True)
class ReportSettings(InstrumentSettings):
    """All instruments, and the models that judge and advise."""

    sets: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("levels", "match", "exclude", "exclude_same"), "matching"),
        **dict.fromkeys(("rubric", "style", "labels", "judge", "by"), "verdicts"),
        **dict.fromkeys(("n_points", "by_chapter", "since", "points_file", "n_samples"), "advice"),
    }
    only: Only | None = setting(
        None, help="Run one instrument alone, and print all that it has to say."
    )
    n_people: int = setting(
        12, help="book, alone: show the N people named most often (0: all).", check=Between(0)
    )
    advice: AdviceOptions = part(AdviceOptions)
    by: str | None = of_field(
        "Correct verdicts in groups by this field: author, model, ... (`fabula compare` "
        "compares groups)."
    )
    against_each_other: bool = setting(
        False,
        help="Compare each text with all the others, as in a class: what it shares, how long the "
        "longest passage is, and with whom; in addition to `references`, if any are named.",
    )
    assignment: Path | None = setting(
        None,
        help="With `against_each_other`: a file with the wording that all texts were given; runs "
        "of five or more of its words count neither as shared nor as borrowed.",
    )
    rubric: str = setting(
        "ttcw", help="Rubric that the models judge by (with `models`).", unit="NAME|FILE"
    )
    style: Literal["reason-first", "verdict-first"] = setting(
        "reason-first", help="Ask for reasons before the verdict, or after it (faster and cheaper)."
    )
    n_samples: int = setting(5, help="Ask each model N times for feedback.", check=Between(1, 50))
    groups: tuple[Path, ...] = setting(
        (), help="Additional reference groups, as `fabula reference group` writes them."
    )
    phrases: tuple[Path, ...] = setting(
        (),
        help="Mark the phrases in this list: the file that `fabula phrases --out` wrote, "
        "or a JSON list of phrases, or of [phrase, count]; repeat it for several.",
    )
    labels: Labels | None = setting(
        None,
        help="People's labels for some of the texts, drawn at random: shows an estimate of what "
        "people would have said about all texts beside what the models say (with `models`).",
    )
    judge: Run | None = setting(
        None,
        help="Show the verdicts of this run of `fabula judge`, in place of asking `models`.",
        unit="RUN",
    )
    models: NoModelSettings = part(NoModelSettings)
    seed: int = seed_setting()
    keep: Path | None = None
    """A folder where models' answers are cached, so that none is paid for twice."""

    def asks(self, instrument: str) -> bool:
        if self.only is not None:
            # Proofreading adds to the notes on lines.
            is_more = instrument == "proofreading" and instrument in self.with_
            return instrument == self.only or (self.only == "lines" and is_more)
        # A dataclass with slots is a new class, where `super()` without arguments fails.
        return InstrumentSettings.asks(self, instrument)

    def check_together(self) -> None:
        InstrumentSettings.check_together(self)
        for name, usual in asdict(AdviceOptions()).items():
            if self.only != "feedback" and getattr(self.advice, name) != usual:
                raise SettingsError(name, "is only for `only` feedback")
        if self.only in ("feedback", "verdicts") and not self.models.models:
            raise SettingsError("models", f"must be named for `only` {self.only}")
        if self.only == "originality" and not (self.references or self.against_each_other):
            raise SettingsError("references", "must be named for `only` originality")
        if not self.against_each_other:
            if self.assignment is not None:
                raise SettingsError("assignment", "is of use with `against_each_other` only")
            return
        if self.exclude == "auto":
            raise SettingsError(
                "exclude", "auto leaves out copies, which `against_each_other` looks for"
            )
        if far := [name for name in self.references if "://" in name or is_elsewhere(name)]:
            raise SettingsError(
                "against_each_other",
                f"searches the texts together with references in a folder, and {far[0]} is not in "
                "one",
            )


@dataclass(frozen=True, slots=True)
class ReportFiles(TableFiles):
    """The output files of a report."""

    out: Path | None = page_setting(
        "Write the page here.", default_text="report.html, but none with `only`"
    )
    comments: Path | None = setting(
        None,
        help="Write the findings as comments into a Word document (.docx), which keeps the "
        "formatting of a .docx draft.",
    )


@dataclass(frozen=True, slots=True)
class GroupSettings(InstrumentSettings):
    """The instruments whose numbers make up a reference group."""

    without: tuple[str, ...] = setting(
        (),
        help="Leave an instrument out: originality, profile, book, or one that another package "
        "adds; repeat it for several.",
        unit="INSTRUMENT",
        check=_is_measured,
    )
    with_: tuple[str, ...] = setting(
        (),
        help="Add an instrument that is off by default: fluency.",
        unit="INSTRUMENT",
        option="with",
        check=_is_measured,
    )

    def report(self) -> ReportSettings:
        """A report without models' answers."""
        shared = {field.name: getattr(self, field.name) for field in fields(InstrumentSettings)}
        return ReportSettings(**{**shared, "without": (*self.without, *_ungrouped())})


@dataclass(frozen=True, slots=True, repr=False)
class Alone(Result):
    """What one instrument has to say."""

    blocks: Sequence[Block]
    kept: list[Row]
    columns: list[Row]
    """The rows of a frame."""

    def tables(self) -> list[Block]:
        return list(self.blocks)

    def rows(self) -> list[Row]:
        return self.kept

    def frame_rows(self) -> list[Row]:
        return self.columns


@dataclass(frozen=True, slots=True, repr=False)
class Advised(Result):
    """What a model would change in a draft, and the status of its points on an earlier one."""

    advice: Advice
    fates: Sequence[Earlier]
    new: Sequence[Point]

    def lines(self) -> list[str]:
        from fabula.feedback.part import advice_text

        shown = advice_text(self.advice, self.fates, self.new)
        return [shown.encode(errors="replace").decode().rstrip("\n")]

    def rows(self) -> list[Row]:
        return [measurement_row(point) for point in self.advice.measurements()]

    def to_json(self) -> dict[str, Any]:
        advice = self.advice
        names = "n_answers", "n_perfect", "n_pointless", "missing", "dropped", "other_lines"
        content = {"points": self.rows(), **picked(advice, *names, "signature")}
        if self.fates:
            points = enumerate(advice.points, 1)
            content["earlier"] = [asdict(fate) for fate in self.fates]
            content["new"] = [f"point_{k}" for k, point in points if point in self.new]
        return content


@dataclass(frozen=True, slots=True, repr=False)
class Reported(Result):
    """The results for some texts, or those of one instrument alone."""

    names_settings = False
    """What stands in backticks may be quoted from a text."""
    documents: Sequence[Document]
    review: Review | None
    """None if one instrument ran alone and no page was asked for."""
    alone: Result | None = None
    """What one instrument has to say, if it has more than the page shows."""
    page: Path | None = None
    """The page, if it has its usual name."""
    source: str | None = None
    """The file that was read, if it was one."""

    def write_page(self, path: Path) -> None:
        from fabula.review.page import write_review_page
        from fabula.show.page import check_page_path

        check_page_path(path)
        write_review_page(path, self._whole(path))

    def write_comments(self, path: str | Path, source: str | Path | None = None) -> int:
        """Write the findings as comments in a copy of the draft; returns how many had no place.

        `source` is the draft, by default the file that was read.

        Raises `InputError` for several texts.
        """
        from fabula.review.comments import write_comments

        draft = source or self.source
        return write_comments(Path(path), self._whole(Path(path)), Path(draft) if draft else None)

    def _whole(self, path: Path | None = None) -> Review:
        if self.review is None:
            raise InputError(f"{path}: cannot be written after a report on one instrument alone")
        return self.review

    def tables(self) -> list[Block]:
        from fabula.review.tables import review_tables

        return review_tables(self._whole()) if self.alone is None else self.alone.tables()

    def sheets(self) -> list[Block]:
        """The tables for files, about all texts."""
        from fabula.review.tables import review_sheets

        return review_sheets(self._whole()) if self.alone is None else self.alone.sheets()

    def rows(self) -> list[Row]:
        """A row per text with every number; with one instrument alone, its own rows."""
        if self.alone is not None:
            return self.alone.rows()
        _, rows = numbers_of_review(self._whole())
        pairs = zip(self._whole().texts, rows, strict=True)
        return [{"id": text.document.id, **row} for text, row in pairs]

    def compared_rows(self) -> list[Row]:
        return [
            text.document.beside(measurement_row(value))
            for text in self._whole().texts
            for value in text.measurements()
        ]

    def frame_rows(self) -> list[Row]:
        return self.rows() if self.alone is None else self.alone.frame_rows()

    def measurements(self) -> list[Measurement]:
        return [] if self.review is None else list(self.review.measurements())

    @property
    def left_out(self) -> list[dict[str, Any]]:
        """Instruments that did not run, each with the reason and the remedy."""
        return [] if self.review is None else [asdict(entry) for entry in self.review.left_out]

    def to_json(self) -> Any:
        """Everything as plain values, with paragraphs on methods and the citations."""
        if self.alone is not None:
            return self.alone.to_json()
        from fabula.review.tables import review_json

        review = self._whole()
        cited = {"methods": methods_of(review), "bibtex": bibtex_of(review)}
        return review_json(review) | cited

    def writers(self) -> dict[str, Any]:
        return {".html": self.write_page, ".docx": self.write_comments}

    def written(self) -> Sequence[Path]:
        return () if self.page is None else (self.page,)

    def lacking(self) -> str | None:
        # For scripts: something that was asked for is lacking.
        return "" if any(entry["is_failure"] for entry in self.left_out) else None


def report(
    texts: Texts,
    settings: ReportSettings,
    files: ReportFiles,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
    sources: Sequence[str] = (),
    is_shown: bool = False,
) -> Reported:
    """Show everything that can be said about TEXTS on one page: borrowing, style, and more.

    Runs every instrument that can run, and says what was left out and how to get it. With `models`,
    a model judges by the Torrance tests and says what to revise; its answers are saved beside the
    page, so that you do not pay twice for an interrupted run. Several texts are shown side by side.

    With `only`, one instrument prints all that it has to say. lines: places in a draft to look at,
    each with the reason; a note is not a grade, and repetition can be deliberate. book: length,
    pace, speech, repetition and people by chapter, or by stretches where there are no headings.
    feedback: what one model would change in your draft, what matters most first; points that quote
    words not in the draft are dropped and counted, and so is praise, and the embedded model is far
    too small for good advice. Or profile, fluency, originality, verdicts. All are for English but
    originality, verdicts and feedback.

    Raises `InputError`, also for a text without the field `by`, a cost limit without a price and
    `judge` beside a model that judges, and `CorpusError` for a reference that cannot be opened.
    """
    from fabula.review.reviewer import Reviewer, corrected, with_verdicts

    page = files.out
    if page is None and is_shown and settings.only is None:
        page = Path("report.html")
        note_output("out", page)
    settings = _checked(texts, settings, files, page)
    alone = _alone(texts, settings, page, progress, confirm)
    review = None
    if alone is None or files.comments is not None or (page and settings.only != "feedback"):
        with Reviewer(settings) as reviewer:
            review = reviewer.run(texts, progress, confirm)
        if settings.judge is not None:
            rubric, verdicts = settings.judge.read()
            review = with_verdicts(review, verdicts, rubric)
            people = tuple(labels_of_some(texts, settings.labels, rubric))
            judged = replace(review.of_all["verdicts"], people=people)
            review = replace(review, of_all={**review.of_all, "verdicts": judged})
        review = corrected(review, settings.by)
    usual = page if files.out is None else None
    source = sources[0] if sources else None
    result = Reported(texts, review, alone, usual, source)
    if review is not None and page is not None:
        result.write_page(page)
    if files.comments is not None and (n_lost := result.write_comments(files.comments)):
        lost = f"{n_lost:,} findings have no place in {files.comments}"
        progress.tell(f"{lost}; they are on the page")
    return result


def _checked(
    texts: Texts, settings: ReportSettings, files: ReportFiles, page: Path | None
) -> ReportSettings:
    """The settings with a place for answers. Raises before anything is measured."""
    from fabula.review.comments import check_comments_path
    from fabula.show.page import check_page_path

    judges = bool(settings.models.models) and settings.asks("verdicts")
    if settings.judge is not None and judges:
        raise InputError("`judge` already contains verdicts; leave out `models` or its verdicts")
    if settings.labels is not None and settings.judge is None and not judges:
        raise SettingsError("labels", "correct what `models` say, but no model was named")
    if settings.by is not None:
        for document in texts:
            document.group(settings.by)
    if files.comments is not None:
        check_comments_path(files.comments, len(texts))
    if settings.asks("verdicts") or settings.asks("feedback"):
        from fabula.models.cost import Budget

        options = settings.models.options()
        for spec in settings.models.models:
            Budget(options.prices.of(spec), options.shared_budget)
    if page is None:
        return settings
    check_page_path(page)
    keep = page.with_suffix(".answers")
    if keep.is_file():
        raise SettingsError("out", f"needs a folder named {keep} for the answers, which is a file")
    return replace(settings, keep=keep)


def _alone(
    texts: Texts, settings: ReportSettings, page: Path | None, progress: Progress, confirm: Confirm
) -> Result | None:
    """What an instrument has to say by itself, if that is more than a page of the report shows.

    Raises `InputError`, `ModelError` if something is missing.
    """
    if settings.only == "feedback":
        if len(texts) > 1:
            raise InputError(f"feedback is about a single draft, not {len(texts):,} texts")
        return advise(texts[0], settings, page, progress=progress, confirm=confirm)
    if settings.only not in ("lines", "book"):
        return None
    from fabula.models.surprisal import SurprisalModel
    from fabula.style.book import BookInstrument, book_tables, measure_book
    from fabula.style.dictionary import read_dictionary, without_words
    from fabula.style.lines import read_drafts
    from fabula.style.part import line_tables
    from fabula.style.proofreading import proofread_drafts

    documents = list(check_documents(texts))
    if settings.only == "lines":
        progress.begin("reading line by line", len(documents))
        notes, n_jobs = [], settings.n_processes
        words = read_dictionary(settings.dictionary)
        drafts = read_drafts(documents, ["lines"], settings.grammar, n_jobs=n_jobs)
        for document, read in zip(documents, drafts, strict=True):
            assert read.lines is not None
            chosen = read.lines.without(settings.without, settings.with_)
            notes.append(without_words(chosen, document.text, words))
            progress.advance(1)
        is_asked = settings.asks("proofreading")
        if is_asked or CONFUSED not in settings.without:
            with ExitStack() as stack:
                notes = proofread_drafts(
                    lambda: stack.enter_context(SurprisalModel("local")),
                    documents, notes, progress, is_asked=is_asked,
                )  # fmt: skip
        rows = [noted.to_row(draft) for draft, noted in zip(documents, notes, strict=True)]
        return Alone(line_tables(documents, notes), rows, list(map(flat, rows)))
    progress.begin("measuring chapters", len(documents))
    books = []
    for document in documents:
        books.append(measure_book(document, always=True))
        progress.advance(1)
    signature = str(BookInstrument().signature)
    none = {"missing_reason": "no_words"}
    rows = [
        {"id": document.id, **(none if book is None else book.to_row()), "signature": signature}
        for document, book in zip(documents, books, strict=True)
    ]
    # By chapter, with numbers only.
    columns = [
        {"id": row["id"], **{k: v for k, v in chapter.items() if k != "characters"}}
        for row in rows
        for chapter in row.get("chapters", ())
    ]
    return Alone(book_tables(documents, books, settings.n_people, signature), rows, columns)


def advise(
    story: Document,
    settings: ReportSettings,
    html: Path | None = None,
    *,
    progress: Progress = SILENT,
    confirm: Confirm = agreed,
) -> Advised:
    """Ask a model for feedback on a draft; its consistent points come first.

    Writes the page `html`, and keeps the points as the settings say. Raises `InputError`,
    `ModelError`, `BusyError`.
    """
    import asyncio

    from fabula.feedback import advising
    from fabula.models import encoder as encoders
    from fabula.models import model_spec, replay

    options, models = settings.advice, settings.models
    if len(models.models) != 1:
        raise SettingsError("models", "must name one editor to ask")
    measured = list(read_measurements(options.since)) if options.since else []
    earlier, before = advising.earlier_points(measured), advising.earlier_draft(measured)
    effort, is_book, n_samples = models.reasoning_effort, options.by_chapter, settings.n_samples
    plan = advising.AdvicePlan(
        n_samples,
        options.n_points,
        options.temperature,
        seed=settings.seed,
        effort=effort,
        by_chapter=is_book,
    )
    # For a book, also one reading of each chapter for notes, and readings of all notes.
    chapters = advising.chapters_to_read(story) if is_book else []
    n_readings = n_samples * (len(chapters) + 1) + len(chapters)
    progress.begin("reading the draft", n_readings + len(earlier))

    async def ask(kept: KeptRows) -> Advised:
        (spec,), terms, encoder = models.models, models.options(), encoders.Encoder()
        confirm(spec, advising.estimate(story, plan, len(earlier), terms.prices.of(spec)))
        async with model_spec.open_model(spec, terms) as opened:
            # Cached answers are free, so the cache comes before the budget.
            model, meter = replay.CachedModel(opened, kept, effort=effort), progress.advance
            advice = await advising.advise(story, model, plan, encoder, meter=meter)
            if not earlier:
                return Advised(advice, [], [])
            parts = [(chapter.start, chapter.end) for chapter in chapters]
            fates, new = await advising.revisit(
                earlier, advice, model, encoder, before=before, meter=meter, parts=parts
            )
        return Advised(advice, fates, new)

    # Answers are kept beside the points, so that none is paid for twice.
    file = options.points_file
    try:
        with kept_rows(file and file.with_suffix(".answers.jsonl"), replay.CALLS) as kept:
            advised = asyncio.run(ask(kept))
    except ModelError as error:
        if file is not None:
            raise
        raise ModelError(f"{error} (without `points_file`, nothing is kept)") from error
    if file is not None:
        write_rows(file, advised.rows(), are_results=True)
    if html is not None:
        from fabula.feedback.part import write_advice_page

        write_advice_page(html, advised.advice, advised.fates, advised.new)
    return advised


@dataclass(frozen=True, slots=True)
class NamedGroupSettings(Settings):
    """What the group is called, and what is measured."""

    name: str = setting(help="A short name, such as my-students.")
    kind: Literal["people", "models", "other"] = setting(help="Who wrote the texts.")
    out: Path = setting(
        help="Write the numbers here, one line per group (.jsonl); groups with other names in the "
        "file are kept."
    )
    title: str | None = setting(
        None, help="Title shown on the page.", default_text="the number of texts, and the name"
    )
    measured: GroupSettings = part(GroupSettings)


@dataclass(frozen=True, slots=True, repr=False)
class MeasuredGroup(Result):
    """A group of texts by its numbers, one entry for each way of measuring."""

    out: Path
    found: Sequence[GroupNumbers]
    left_out: Sequence[LeftOut]

    def lines(self) -> list[str]:
        lines = [f"{g.group}: {len(g.items)} numbers by {g.signature}" for g in self.found]
        lacking = (
            f"{left.part}, {left.reason}; to include it: {left.remedy}" for left in self.left_out
        )
        return [*lines, *(f"not included: {reason}" for reason in lacking), f"written: {self.out}"]

    def to_json(self) -> dict[str, Any]:
        return {
            "out": str(self.out),
            "groups": {g.signature: len(g.items) for g in self.found},
            "left_out": [asdict(entry) for entry in self.left_out],
        }

    def lacking(self) -> str | None:
        # For scripts: some numbers are of fewer texts than were given.
        return "" if any(entry.is_failure for entry in self.left_out) else None


def group(
    texts: Texts, settings: NamedGroupSettings, *, progress: Progress = SILENT
) -> MeasuredGroup:
    """Measure TEXTS as a group. Only the numbers are kept, not the texts.

    Give the file to `fabula report --groups`.

    Raises `InputError`, `CorpusError`.
    """
    from fabula.review.reviewer import Reviewer

    out, plan = settings.out, settings.measured.report()
    earlier = read_groups(out) if out.exists() else []
    with Reviewer(plan) as reviewer:
        review = reviewer.run(texts, progress)
    title = settings.title or f"{len(texts):,} texts, {settings.name}"
    groups = group_numbers(review, settings.name, settings.kind, title)
    write_groups(out, [*(entry for entry in earlier if entry.group != settings.name), *groups])
    left_out = [entry for entry in review.left_out if entry.part not in plan.without]
    return MeasuredGroup(out, groups, left_out)


def group_numbers(review: Review, group: str, kind: GroupKind, title: str) -> list[GroupNumbers]:
    """The distribution of every number over the texts, one entry per instrument."""
    measured = review.measurements()
    for text in review.texts:
        measured += [m for part in own_parts() for m in part.group_measurements(text)]
    return measure_group(group, kind, title, measured)
