"""What `report` does, and its results: a page, tables, comments and plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.errors import InputError, ModelError
from fabula.jobs.job import Texts
from fabula.jobs.judging import labels_of_some
from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.jobs.report import ReportFiles, ReportSettings
from fabula.jobs.result import Result, Row
from fabula.jobs.reviewer import Reviewer, corrected, with_verdicts
from fabula.review import Review
from fabula.settings import SettingsError
from fabula.types import Document, Measurement

if TYPE_CHECKING:
    from fabula.measures.book import Book
    from fabula.measures.line_notes import LineReview
    from fabula.presentation.sheet import Block
    from fabula.resume import KeptRows
    from fabula.tasks.feedback.advising import Advice, Earlier
    from fabula.tasks.feedback.points import Point


@dataclass(frozen=True, slots=True, repr=False)
class ReadLines(Result):
    """Drafts with their notes."""

    documents: Sequence[Document]
    reviews: Sequence[LineReview]
    per_thousand: int

    def tables(self) -> list[Block]:
        from fabula.presentation.review_tables import line_tables

        return line_tables(self.documents, self.reviews, self.per_thousand)

    def rows(self) -> list[Row]:
        """One row per document: the notes that are shown, and the number of each kind."""
        return [
            review.to_row(document, self.per_thousand)
            for document, review in zip(self.documents, self.reviews, strict=True)
        ]


@dataclass(frozen=True, slots=True, repr=False)
class MeasuredBooks(Result):
    """Texts by chapter, and what determined the numbers."""

    documents: Sequence[Document]
    books: Sequence[Book | None]
    """None for a text without words."""
    n_people: int
    signature: str

    def tables(self) -> list[Block]:
        from fabula.presentation.book_page import book_tables

        return book_tables(self.documents, self.books, self.n_people, self.signature)

    def rows(self) -> list[Row]:
        """One row per text, with all of its chapters, people and repetitions."""
        return [
            {
                "id": document.id,
                **({"missing_reason": "no_words"} if book is None else book.to_row()),
                "signature": self.signature,
            }
            for document, book in zip(self.documents, self.books, strict=True)
        ]

    def frame_rows(self) -> list[Row]:
        """One row per chapter, with numbers only."""
        return [
            {"id": row["id"], **{k: v for k, v in chapter.items() if k != "characters"}}
            for row in self.rows()
            for chapter in row.get("chapters", ())
        ]


@dataclass(frozen=True, slots=True, repr=False)
class Advised(Result):
    """What a model would change in a draft, and the status of its points on an earlier one."""

    advice: Advice
    fates: Sequence[Earlier]
    new: Sequence[Point]

    def lines(self) -> list[str]:
        from fabula.presentation.advice import advice_text

        shown = advice_text(self.advice, self.fates, self.new)
        return [shown.encode(errors="replace").decode().rstrip("\n")]

    def rows(self) -> list[Row]:
        from fabula.store import measurement_row

        return [measurement_row(one) for one in self.advice.measurements()]

    def to_json(self) -> dict[str, Any]:
        advice = self.advice
        content: dict[str, Any] = {"points": self.rows()}
        for name in ("n_answers", "n_perfect", "n_pointless", "missing", "dropped", "other_lines"):
            content[name] = getattr(advice, name)
        content["signature"] = advice.signature
        if self.fates:
            points = enumerate(advice.points, 1)
            content["earlier"] = [asdict(one) for one in self.fates]
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
    n_marks: int | None = None
    """Borrowed passages that the page marks per 1,000 words; None for its own default."""
    alone: Result | None = None
    """What one instrument has to say, if it has more than the page shows."""
    page: Path | None = None
    """The page, if it has its usual name."""
    source: str | None = None
    """The file that was read, if it was one."""

    def write_page(self, path: Path) -> None:
        from fabula.presentation.page_file import check_page_path
        from fabula.presentation.review_page import write_review_page

        check_page_path(path)
        write_review_page(path, self._one(path), n_marks=self.n_marks)

    def write_comments(self, path: str | Path, source: str | Path | None = None) -> int:
        """Write the findings as comments in a copy of the draft; returns how many had no place.

        `source` is the draft, by default the file that was read.

        Raises `InputError` for several texts.
        """
        from fabula.presentation.comments import write_comments

        draft = source or self.source
        return write_comments(Path(path), self._one(Path(path)), Path(draft) if draft else None)

    def _one(self, path: Path | None = None) -> Review:
        if self.review is None:
            raise InputError(f"{path}: cannot be written after a report on one instrument alone")
        return self.review

    def tables(self) -> list[Block]:
        from fabula.presentation.review_tables import review_tables

        return review_tables(self._one()) if self.alone is None else self.alone.tables()

    def sheets(self) -> list[Block]:
        """The tables for files, about all texts."""
        from fabula.presentation.review_tables import review_sheets

        return review_sheets(self._one()) if self.alone is None else self.alone.sheets()

    def rows(self) -> list[Row]:
        """A row per text with every number; with one instrument alone, its own rows."""
        if self.alone is not None:
            return self.alone.rows()
        from fabula.review import numbers_of_review

        _, rows = numbers_of_review(self._one())
        named = zip(self._one().texts, rows, strict=True)
        return [{"id": text.document.id, **row} for text, row in named]

    def compared_rows(self) -> list[Row]:
        from fabula.store import measurement_row

        return [
            text.document.beside(measurement_row(value))
            for text in self._one().texts
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
        from fabula.presentation.review_tables import review_json
        from fabula.review import bibtex_of, methods_of

        return review_json(self._one()) | {
            "methods": methods_of(self._one()),
            "bibtex": bibtex_of(self._one()),
        }

    def writers(self) -> dict[str, Any]:
        return {".html": self.write_page, ".docx": self.write_comments}

    def written(self) -> Sequence[Path]:
        return () if self.page is None else (self.page,)

    def lacking(self) -> str | None:
        # For scripts: something that was asked for is lacking.
        is_whole = not any(entry["is_failure"] for entry in self.left_out)
        return None if is_whole else ""


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
    page = files.out
    if page is None and is_shown and settings.only is None:
        from fabula.provenance import note_output

        page = Path("report.html")
        note_output("out", page)
    settings = _checked(texts, settings, files, page)
    alone = _alone(texts, settings, page, progress, confirm)
    review = None
    has_page = page is not None and settings.only != "feedback"
    if alone is None or files.comments is not None or has_page:
        with Reviewer(settings) as reviewer:
            review = reviewer.run(texts, progress, confirm)
        if settings.judge is not None:
            rubric, verdicts = settings.judge.read()
            review = with_verdicts(review, verdicts, rubric)
            review = replace(review, people=tuple(labels_of_some(texts, settings.labels, rubric)))
        review = corrected(review, settings.by)
    usual = page if files.out is None else None
    source = sources[0] if sources else None
    found = Reported(texts, review, settings.marking.n_marks, alone, usual, source)
    if review is not None and page is not None:
        found.write_page(page)
    if files.comments is not None:
        n_lost = found.write_comments(files.comments)
        if n_lost:
            progress.tell(
                f"{n_lost:,} findings have no place in {files.comments}; they are on the page"
            )
    return found


def _checked(
    texts: Texts, settings: ReportSettings, files: ReportFiles, page: Path | None
) -> ReportSettings:
    """The settings with a place for answers. Raises before anything is measured."""
    from fabula.presentation.comments import check_comments_path
    from fabula.presentation.page_file import check_page_path

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
    from fabula.measures.book import BookInstrument, measure_book, pipelines
    from fabula.measures.line_notes import read_drafts
    from fabula.text import check_documents

    documents = list(check_documents(texts))
    if settings.only == "lines":
        progress.begin("reading line by line", len(documents))
        reviews, n_jobs = [], settings.n_processes
        for read in read_drafts(documents, ["lines"], settings.grammar, n_jobs=n_jobs):
            assert read.lines is not None
            reviews.append(read.lines.without(settings.without, settings.with_))
            progress.advance(1)
        return ReadLines(documents, reviews, settings.per_thousand)
    progress.begin("measuring chapters", len(documents))
    books = []
    for document in documents:
        books.append(measure_book(document, *pipelines(), always=True))
        progress.advance(1)
    return MeasuredBooks(documents, books, settings.n_people, str(BookInstrument().signature))


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

    from fabula.models.encoder import Encoder
    from fabula.models.model_spec import open_model
    from fabula.models.replay import CALLS, CachedModel
    from fabula.resume import kept_rows
    from fabula.store import read_measurements, write_rows
    from fabula.tasks.feedback import advising

    options, models = settings.advice, settings.models
    if len(models.models) != 1:
        raise SettingsError("models", "must name one editor to ask")
    measured = list(read_measurements(options.since)) if options.since else []
    earlier, before = advising.earlier_points(measured), advising.earlier_draft(measured)
    effort, is_book = models.reasoning_effort, options.by_chapter
    plan = advising.AdvicePlan(
        settings.n_samples,
        options.n_points,
        options.temperature,
        seed=settings.seed,
        effort=effort,
        by_chapter=is_book,
    )
    # For a book, also one reading of each chapter for notes, and readings of all notes.
    chapters = advising.chapters_to_read(story) if is_book else []
    n_readings = settings.n_samples * (len(chapters) + 1) + len(chapters)
    progress.begin("reading the draft", n_readings + len(earlier))

    async def ask(kept: KeptRows) -> Advised:
        (spec,), terms, encoder = models.models, models.options(), Encoder()
        estimate = advising.estimate_book if is_book else advising.estimate
        ask_all = advising.advise_book if is_book else advising.advise
        confirm(spec, estimate(story, plan, len(earlier), terms.prices.of(spec)))
        async with open_model(spec, terms) as opened:
            # Cached answers are free, so the cache comes before the budget.
            model, meter = CachedModel(opened, kept, effort=effort), progress.advance
            advice = await ask_all(story, model, plan, encoder, meter=meter)
            if not earlier:
                return Advised(advice, [], [])
            parts = [(one.start, one.start + len(one.document.text)) for one in chapters]
            fates, new = await advising.revisit(
                earlier, advice, model, encoder, before=before, meter=meter, parts=parts
            )
        return Advised(advice, fates, new)

    # Answers are kept beside the points, so that none is paid for twice.
    file = options.points_file
    try:
        with kept_rows(file and file.with_suffix(".answers.jsonl"), CALLS) as kept:
            advised = asyncio.run(ask(kept))
    except ModelError as error:
        if file is not None:
            raise
        raise ModelError(f"{error} (without `points_file`, nothing is kept)") from error
    if file is not None:
        write_rows(file, advised.rows(), are_results=True)
    if html is not None:
        from fabula.presentation.advice import write_advice_page

        write_advice_page(html, advised.advice, advised.fates, advised.new)
    return advised
