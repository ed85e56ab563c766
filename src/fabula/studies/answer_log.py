"""Taking answers: every one kept, the newest counts, what no longer applies is retired.

A page that a browser sent long ago may come back with old answers in all its fields. What was not
touched on that page is not an answer: a field counts only where it differs from what the page held
when it was sent, which the history tells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from fabula.studies.assigning import Assignment
from fabula.studies.database import answers, assignments, now_ms, page_views
from fabula.studies.forms import Answers, FormError, Key, Page, retired, with_answer

__all__ = [
    "Saved",
    "current_answers",
    "locked_pages",
    "note_view",
    "opened_pages",
    "save_answers",
    "show_page",
]


@dataclass(frozen=True, slots=True)
class Saved:
    """What counts after a save."""

    answers: Answers
    revision: int
    """How many answers were kept of this unit so far; a page that is sent carries it."""
    problems: tuple[tuple[Key, str], ...]
    """Fields that could not be taken, and why."""


def current_answers(connection: Connection, assignment_id: int) -> tuple[dict[Key, str], int]:
    """The answers that count now, and the revision."""
    current, _, newest = _now_and_then(connection, assignment_id, None)
    return current, newest


def save_answers(
    connection: Connection,
    assignment: Assignment,
    pages: Sequence[Page],
    given: Mapping[Key, str],
    revision: int | None,
) -> Saved:
    """Take the fields that were changed on a page that was sent at `revision`.

    None says that every field was touched, as where each is sent by itself. Within
    `Store.writing`, with the assignment held for update.
    """
    facts = assignment.unit.facts
    current, shown, newest = _now_and_then(connection, assignment.id, revision)
    locked = {
        key
        for page in locked_pages(pages, assignment)
        for q in page.questions
        for key in (q.key, q.why)
    }
    reached = _reached(pages, assignment)
    questions = {key: q for page in reached for q in page.questions for key in (q.key, q.why)}
    problems: list[tuple[Key, str]] = []
    now = now_ms()

    def write(key: Key, value: str | None) -> None:
        nonlocal newest
        connection.execute(
            answers.insert().values(
                assignment_id=assignment.id, part=key[0], item=key[1], value=value, saved_ms=now
            )
        )
        newest += 1

    for key, raw in given.items():
        question = questions.get(key)
        if question is None:
            continue
        try:
            value = (question.clean_reason if key == question.why else question.clean)(raw)
        except FormError as error:
            problems.append((key, str(error)))
            continue
        is_untouched = revision is not None and value == shown.get(key, "")
        if is_untouched or value == current.get(key, ""):
            continue
        if key in locked:
            problems.append((key, question.labels("no_longer")))
            continue
        write(key, value)
        current = with_answer(current, key, value)
    current, gone = retired(pages, current, facts)
    for key in gone:
        write(key, None)
    connection.execute(
        assignments.update().where(assignments.c.id == assignment.id).values(seen_ms=now)
    )
    return Saved(current, newest, tuple(problems))


def _now_and_then(
    connection: Connection, assignment_id: int, revision: int | None
) -> tuple[dict[Key, str], dict[Key, str], int]:
    """The answers now, as they stood at a revision, and the newest revision."""
    current: dict[Key, str] = {}
    shown: dict[Key, str] = {}
    newest = 0
    # Counted from one for each unit: what a browser is told says nothing about the whole study.
    for newest, (part, item, value) in enumerate(
        connection.execute(
            select(answers.c.part, answers.c.item, answers.c.value)
            .where(answers.c.assignment_id == assignment_id)
            .order_by(answers.c.id)
        ),
        1,
    ):
        current[part, item] = value or ""
        if revision is not None and newest <= revision:
            shown[part, item] = value or ""
    return {k: v for k, v in current.items() if v}, shown, newest


def show_page(
    connection: Connection, assignment: Assignment, pages: Sequence[Page], name: str
) -> None:
    """Remember the page, to go on there; where pages build on each other, the furthest one.

    What a final page reveals cannot be unseen.
    """
    names = [page.name for page in pages]
    is_free = not any(page.is_final for page in pages)
    is_further = assignment.page not in names or names.index(name) > names.index(assignment.page)
    is_new = is_further or (is_free and name != assignment.page)
    connection.execute(
        assignments.update()
        .where(assignments.c.id == assignment.id)
        .values(page=name if is_new else assignment.page, seen_ms=now_ms())
    )


def note_view(connection: Connection, assignment_id: int, page: str, version: int) -> None:
    """Keep when a page was opened, and which version of the study it showed."""
    connection.execute(
        page_views.insert().values(
            assignment_id=assignment_id, page=page, at_ms=now_ms(), version=version
        )
    )


def opened_pages(connection: Connection, assignment_id: int) -> set[str]:
    """The pages of a unit that were opened."""
    rows = connection.execute(
        select(page_views.c.page).where(page_views.c.assignment_id == assignment_id).distinct()
    )
    return {row.page for row in rows}


def _reached(pages: Sequence[Page], assignment: Assignment) -> Sequence[Page]:
    """The pages that can be answered: where they build on each other, those that were shown."""
    if not any(page.is_final for page in pages):
        return pages
    names = [page.name for page in pages]
    return pages[: names.index(assignment.page) + 1] if assignment.page in names else pages[:1]


def locked_pages(pages: Sequence[Page], assignment: Assignment) -> list[Page]:
    """The pages whose answers stay as they are, since a final page was shown."""
    names = [page.name for page in pages]
    if assignment.page not in names:
        return []
    reached = names.index(assignment.page)
    finals = [k for k, page in enumerate(pages) if page.is_final and k <= reached]
    return list(pages[: finals[0]]) if finals else []
