"""What `report` does, and its results: a page, tables, comments and plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.errors import InputError
from fabula.jobs.job import Texts
from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.jobs.report import ReportFiles, ReportSettings
from fabula.jobs.result import Result, Row
from fabula.jobs.reviewer import Reviewer, corrected, with_verdicts
from fabula.review.found import Review
from fabula.settings import SettingsError
from fabula.types import Document, Measurement

if TYPE_CHECKING:
    from fabula.presentation.sheet import Block


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
        from fabula.review.report_parts import bibtex_of, methods_of

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
    if (
        alone is None
        or files.comments is not None
        or (page is not None and settings.only != "feedback")
    ):
        review = _reviewed(texts, settings, progress, confirm)
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
    _check_prices(settings)
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
    """What an instrument has to say by itself, if that is more than a page of the report shows."""
    if settings.only == "lines":
        from fabula.jobs.lines import read_lines

        return read_lines(texts, settings, progress=progress)
    if settings.only == "book":
        from fabula.jobs.books import measure_books

        return measure_books(texts, settings.n_people, progress=progress)
    if settings.only == "feedback":
        from fabula.jobs.advice import advise

        if len(texts) > 1:
            raise InputError(f"feedback is about a single draft, not {len(texts):,} texts")
        return advise(texts[0], settings, page, progress=progress, confirm=confirm)
    return None


def _reviewed(
    texts: Texts, settings: ReportSettings, progress: Progress, confirm: Confirm
) -> Review:
    """All instruments on the texts, and models' verdicts corrected by people's labels."""
    from fabula.jobs.judging import labels_of_some

    with Reviewer(settings) as reviewer:
        review = reviewer.run(texts, progress, confirm)
    if settings.judge is not None:
        rubric, verdicts = settings.judge.read()
        review = with_verdicts(review, verdicts, rubric)
        review = replace(review, people=tuple(labels_of_some(texts, settings.labels, rubric)))
    return corrected(review, settings.by)


def _check_prices(settings: ReportSettings) -> None:
    if settings.asks("verdicts") or settings.asks("feedback"):
        from fabula.models.cost import Budget

        options = settings.models.options()
        for spec in settings.models.models:
            Budget(options.prices.of(spec), options.shared_budget)
