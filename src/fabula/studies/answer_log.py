"""Save answers: all are kept, the newest counts, and those that no longer apply are retired.

A browser may submit a stale page with old answers in all its fields. A field counts as answered
only if it differs from its value when the page was served, which the history records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from fabula.studies.assigning import Assignment
from fabula.studies.database import answers, assignments, now_ms, page_views
from fabula.studies.forms import Answers, FormError, Key, Page, clean_text, retired, with_answer


@dataclass(frozen=True, slots=True)
class Saved:
    """The current answers after a save."""

    answers: Answers
    revision: int
    """Number of answers saved for this unit so far; each page carries it."""
    problems: tuple[tuple[Key, str], ...]
    """Rejected fields, with the reason for each."""


def current_answers(connection: Connection, assignment_id: int) -> tuple[dict[Key, str], int]:
    """Return the current answers and the revision."""
    current, _, newest = _now_and_then(connection, assignment_id, None)
    return current, newest


def save_answers(
    connection: Connection,
    assignment: Assignment,
    pages: Sequence[Page],
    given: Mapping[Key, str],
    revision: int | None,
) -> Saved:
    """Save the fields changed on a page that was served at `revision`.

    If `revision` is None, every field counts as changed, as when fields are sent one by one. Call
    within `Store.writing`, with the assignment locked for update.
    """
    facts = assignment.unit.facts
    current, shown, newest = _now_and_then(connection, assignment.id, revision)
    locked = {k for p in locked_pages(pages, assignment) for q in p.questions for k in q.keys}
    # If pages build on each other, only those shown can be answered.
    reached = pages
    if any(page.is_final for page in pages):
        reached = _shown(pages, assignment) or pages[:1]
    questions = {key: q for page in reached for q in page.questions for key in q.keys}
    problems: list[tuple[Key, str]] = []
    now = now_ms()

    def write(key: Key, value: str | None) -> None:
        nonlocal newest
        row = {"assignment_id": assignment.id, "part": key[0], "item": key[1], "value": value}
        connection.execute(answers.insert().values(row | {"saved_ms": now}))
        newest += 1

    for key, raw in given.items():
        question = questions.get(key)
        if question is None:
            continue
        try:
            value = clean_text(raw, question.labels) if key == question.why else question.clean(raw)
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
    own = assignments.c.id == assignment.id
    connection.execute(assignments.update().where(own).values(seen_ms=now))
    return Saved(current, newest, tuple(problems))


def _now_and_then(
    connection: Connection, assignment_id: int, revision: int | None
) -> tuple[dict[Key, str], dict[Key, str], int]:
    """Return the current answers, those at a given revision, and the newest revision."""
    current: dict[Key, str] = {}
    shown: dict[Key, str] = {}
    newest = 0
    # Counted from one for each unit, so that browsers learn nothing about the study as a whole.
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
    connection: Connection,
    assignment: Assignment,
    pages: Sequence[Page],
    name: str,
    *,
    is_new_view: bool = True,
) -> None:
    """Record the page to resume at; where pages build on each other, the furthest one.

    What a final page reveals cannot be unseen. is_new_view: whether the page was opened just now.
    """
    names = [page.name for page in pages]
    is_free = not any(page.is_final for page in pages)
    is_further = assignment.page not in names or names.index(name) > names.index(assignment.page)
    is_new = is_further or (is_free and name != assignment.page)
    page = name if is_new else assignment.page
    own = assignments.update().where(assignments.c.id == assignment.id)
    connection.execute(own.values(page=page, seen_ms=now_ms()))
    if is_new_view:
        view = {"assignment_id": assignment.id, "page": name, "at_ms": now_ms()}
        connection.execute(page_views.insert().values(view))


def opened_pages(connection: Connection, assignment_id: int) -> set[str]:
    """Return the pages of a unit that have been opened."""
    query = select(page_views.c.page).where(page_views.c.assignment_id == assignment_id)
    return set(connection.scalars(query.distinct()))


def locked_pages(pages: Sequence[Page], assignment: Assignment) -> Sequence[Page]:
    """Return the pages whose answers can no longer change because a final page was shown."""
    shown = _shown(pages, assignment)
    return pages[: next((k for k, page in enumerate(shown) if page.is_final), 0)]


def _shown(pages: Sequence[Page], assignment: Assignment) -> Sequence[Page]:
    """Return the pages up to the furthest one shown."""
    names = [page.name for page in pages]
    return pages[: names.index(assignment.page) + 1] if assignment.page in names else ()
