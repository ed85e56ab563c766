"""Feedback on a whole book: chapter by chapter, and then on its continuity.

A book is longer than what a model reads carefully. So each chapter is read as a separate draft;
from each, a model notes what another chapter could contradict, in the chapter's own words; and then
it is asked which of all these notes contradict each other. A note whose words are not in its
chapter is dropped, and so is a contradiction that quotes words not in the book.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from fabula.errors import InputError
from fabula.models.base import Answer, Model, Sampling, Usage
from fabula.models.concurrency import in_turn
from fabula.models.cost import Estimate as CostEstimate
from fabula.models.cost import Price, estimate_tokens
from fabula.models.encoder import Encoder
from fabula.tasks.feedback import advising
from fabula.tasks.feedback.advising import Advice, AdvicePlan
from fabula.tasks.feedback.answer_records import note_form, point_form
from fabula.tasks.feedback.editor import CONTRADICTIONS, LEDGER, NOTES, NOTHING, Editor
from fabula.tasks.feedback.points import Point, Remark, group_remarks, read_answer
from fabula.tasks.model_texts import why_no_text
from fabula.text import TextSettings
from fabula.text.chapters import chapters_of
from fabula.text.quotations import QuotableText
from fabula.types import Document

_N_NOTES = 30
_NOTE_TOKENS = 40
"""Tokens per note, for the estimate."""


@dataclass(frozen=True, slots=True)
class _Chapter:
    name: str
    document: Document
    start: int
    """Its start in the book, in characters."""


def chapters_to_read(document: Document) -> list[_Chapter]:
    """The chapters that contain words. Raises `InputError` if there are fewer than two."""
    found = [
        _Chapter(
            f"Chapter {one.number}",
            replace(document, text=document.text[one.start : one.end]),
            one.start,
        )
        for one in chapters_of(document)
        if TextSettings().has_words(document.text[one.body : one.end])
    ]
    if len(found) < 2:
        raise InputError(
            f"{document.id}: fewer than two chapters were found; mark their headings ("
            "`# Chapter 1`), or leave out `by_chapter`"
        )
    return found


async def advise_book(
    document: Document,
    model: Model,
    plan: AdvicePlan,
    encoder: Encoder,
    *,
    meter: Callable[[int], None] = lambda _: None,
) -> Advice:
    """Ask for feedback on each chapter `plan.n_times` times, and as often on continuity.

    A point's share is of the answers on its chapter. Raises `InputError` if there are no chapters,
    `ModelError` if every call failed for all of them.
    """
    chapters = chapters_to_read(document)
    asked = [
        await advising.ask(one.document, model, plan, encoder, meter=meter) for one in chapters
    ]
    if not any(one.advice.n_answers for one in asked):
        raise asked[0].no_answer()
    points = [
        _moved(point, chapter.start, k * plan.n_times, one.advice.n_answers)
        for k, (chapter, one) in enumerate(zip(chapters, asked, strict=True))
        for point in one.advice.points
    ]
    continuity = await _continuity(document, chapters, model, plan, encoder, meter)
    points += continuity.points

    def weight(point: Point) -> float:
        """Its severity times the share of answers that make it."""
        return (point.severity or 1.0) * point.n_said / max(1, point.n_answers or 1)

    every = [*(one.advice for one in asked), continuity]
    return Advice(
        document,
        model.name,
        tuple(sorted(points, key=lambda one: (-weight(one), one.rank, one.places[0]))),
        n_answers=sum(one.n_answers for one in every),
        n_perfect=sum(one.n_perfect for one in every),
        n_pointless=sum(one.n_pointless for one in every),
        missing=_sum([one.missing for one in every]),
        dropped=_sum([one.dropped for one in every]),
        signature=plan.signature(model, encoder),
        other_lines=_sum([one.other_lines for one in every]),
    )


async def _continuity(
    document: Document,
    chapters: Sequence[_Chapter],
    model: Model,
    plan: AdvicePlan,
    encoder: Encoder,
    meter: Callable[[int], None],
) -> Advice:
    """Contradictions between chapters; all points quote the book."""
    sampling = Sampling(0.0, 1.0, plan.max_tokens, plan.seed)

    async def note(chapter: _Chapter) -> Answer | None:
        editor = Editor(chapter.document.text, model)
        answer = await editor.ask(NOTES.format(n_notes=_N_NOTES), sampling, note_form(_N_NOTES))
        meter(1)
        return answer

    noted = await in_turn([partial(note, chapter) for chapter in chapters], model.n_parallel)
    missing: Counter[str] = Counter()
    lines: list[str] = []
    for chapter, answer in zip(chapters, noted, strict=True):
        reason = "failed" if answer is None else why_no_text(answer)
        if answer is None or reason:
            missing[str(reason)] += 1
            continue
        # Each note that quotes the chapter, with the words as they are there.
        text, is_cut = chapter.document.text, answer.stop == "length"
        reading = read_answer(answer.text, 0, QuotableText.of(text), is_cut=is_cut, n_most=_N_NOTES)
        lines.append(f"\n{chapter.name}")
        lines += [
            f'- "{" ".join(text[one.start : one.end].split())}": {one.text}'
            for one in reading.remarks
        ]
    editor = Editor("\n".join(lines), model, LEDGER)
    question = CONTRADICTIONS.format(n_points=plan.n_points, nothing=NOTHING)
    form = point_form(plan.n_points)
    answers = await advising.ask_often(editor, question, form, plan, model.n_parallel, meter)
    read = advising.read_answers(answers, QuotableText.of(document.text), plan.n_points)
    found = [
        replace(point, n_answers=read.n_answers, is_continuity=True)
        for point in group_remarks(read.remarks, encoder)
    ]
    return Advice(
        document,
        model.name,
        tuple(found),
        read.n_answers,
        0,
        0,
        dict(read.missing + missing),
        {reason: n for reason, n in read.dropped.items() if reason != "no_quotation"},
        "",
        dict(read.other_lines),
    )


def _moved(point: Point, start: int, n_before: int, n_answers: int) -> Point:
    """A point on a chapter as one on the book: offsets and answer numbers shifted."""

    def moved(one: Remark) -> Remark:
        also = tuple((a + start, b + start) for a, b in one.also)
        first, last = one.start + start, one.end + start
        return replace(one, answer=one.answer + n_before, start=first, end=last, also=also)

    return replace(point, remarks=tuple(map(moved, point.remarks)), n_answers=n_answers)


def _sum(counts: Sequence[dict[str, int]]) -> dict[str, int]:
    total = Counter[str]()
    for one in counts:
        total.update(one)
    return dict(total)


def estimate_book(
    document: Document, plan: AdvicePlan, n_earlier: int, price: Price | None
) -> CostEstimate:
    """The maximum cost."""
    chapters = chapters_to_read(document)
    parts = [advising.estimate(one.document, plan, 0, None) for one in chapters]
    longest = max(estimate_tokens(one.document.text) for one in chapters)
    n_noted = len(chapters) * _N_NOTES * _NOTE_TOKENS
    reading = sum((one.usage for one in parts), start=Usage())
    # The chapters are read once more for notes, and all notes `n_times` times.
    n_again = sum(estimate_tokens(one.document.text) for one in chapters)
    n_again += plan.n_times * n_noted + n_earlier * longest
    usage = reading + Usage(n_again, 0, n_noted + plan.n_times * plan.max_tokens)
    n_calls = sum(one.n_calls for one in parts) + len(chapters) + plan.n_times + n_earlier
    cost = None if price is None else price.of(usage)
    return CostEstimate(n_calls, usage, cost, is_most=True)
