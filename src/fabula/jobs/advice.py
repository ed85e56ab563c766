"""Feedback on a writer's own draft or book, and the status of points on an earlier one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabula.jobs.progress import SILENT, Confirm, Progress, agreed
from fabula.jobs.result import Result
from fabula.settings import SettingsError

if TYPE_CHECKING:
    from fabula.jobs.models import ModelSettings
    from fabula.jobs.report import ReportSettings
    from fabula.resume import KeptRows, Row
    from fabula.tasks.feedback.advising import Advice, AdvicePlan, Earlier
    from fabula.tasks.feedback.points import Point
    from fabula.types import Document


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
        """The points as rows."""
        from fabula.store import measurement_row

        return [measurement_row(one) for one in self.advice.measurements()]

    def to_json(self) -> dict[str, Any]:
        advice = self.advice
        content: dict[str, Any] = {
            "points": self.rows(),
            "n_answers": advice.n_answers,
            "n_perfect": advice.n_perfect,
            "n_pointless": advice.n_pointless,
            "missing": advice.missing,
            "dropped": advice.dropped,
            "other_lines": advice.other_lines,
            "signature": advice.signature,
        }
        if self.fates:
            points = enumerate(advice.points, 1)
            content["earlier"] = [asdict(one) for one in self.fates]
            content["new"] = [f"point_{k}" for k, point in points if point in self.new]
        return content


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

    from fabula.store import read_measurements, write_rows
    from fabula.tasks.feedback.advising import AdvicePlan, earlier_draft, earlier_points
    from fabula.tasks.feedback.advising_book import chapters_to_read

    if len(settings.models.models) != 1:
        raise SettingsError("models", "must name one editor to ask")
    options = settings.advice
    measured = list(read_measurements(options.since)) if options.since else []
    past = earlier_points(measured), earlier_draft(measured)
    plan = AdvicePlan(
        settings.n_samples,
        options.n_points,
        options.temperature,
        seed=settings.seed,
        effort=settings.models.reasoning_effort,
        by_chapter=options.by_chapter,
    )
    # For a book, also one reading of each chapter for notes, and readings of all notes.
    n_parts = len(chapters_to_read(story)) if options.by_chapter else 0
    n_readings = settings.n_samples * (n_parts + 1) + n_parts
    progress.begin("reading the draft", n_readings + len(past[0]))
    with _kept_calls(options.points_file) as kept:
        advised = asyncio.run(_advised(story, plan, past, settings.models, kept, progress, confirm))
    if options.points_file is not None:
        write_rows(options.points_file, advised.rows(), are_results=True)
    if html is not None:
        from fabula.presentation.advice import write_advice_page

        write_advice_page(html, advised.advice, advised.fates, advised.new)
    return advised


async def _advised(
    story: Document,
    plan: AdvicePlan,
    past: tuple[list[Earlier], str | None],
    models: ModelSettings,
    rows: KeptRows,
    progress: Progress,
    confirm: Confirm,
) -> Advised:
    from fabula.models.encoder import Encoder
    from fabula.models.model_spec import open_model
    from fabula.models.replay import CachedModel
    from fabula.tasks.feedback import advising, advising_book

    (spec,), terms = models.models, models.options()
    earlier, before = past
    encoder = Encoder()
    price = terms.prices.of(spec)
    is_book = plan.by_chapter
    estimate = advising_book.estimate_book if is_book else advising.estimate
    ask = advising_book.advise_book if is_book else advising.advise
    confirm(spec, estimate(story, plan, len(earlier), price))
    async with open_model(spec, terms) as opened:
        # Cached answers are free, so the cache comes before the budget.
        model = CachedModel(opened, rows, effort=models.reasoning_effort)
        advice = await ask(story, model, plan, encoder, meter=progress.advance)
        if not earlier:
            return Advised(advice, [], [])
        chapters = advising_book.chapters_to_read(story) if is_book else []
        fates, new = await advising.revisit(
            earlier,
            advice,
            model,
            encoder,
            before=before,
            meter=progress.advance,
            parts=[(one.start, one.start + len(one.document.text)) for one in chapters],
        )
    return Advised(advice, fates, new)


@contextmanager
def _kept_calls(out: Path | None) -> Iterator[KeptRows]:
    """Where answers are cached: beside the points, so that none is paid for twice."""
    from fabula.errors import ModelError
    from fabula.models.replay import CALLS
    from fabula.resume import kept_rows

    path = None if out is None else out.with_suffix(".answers.jsonl")
    try:
        with kept_rows(path, CALLS) as kept:
            yield kept
    except ModelError as error:
        if out is not None:
            raise
        raise ModelError(f"{error} (without `points_file`, nothing is kept)") from error
