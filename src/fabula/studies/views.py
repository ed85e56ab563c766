"""Save answers: all are kept, the newest counts, and those that no longer apply are retired.

A browser may submit a stale page with old answers in all its fields. A field counts as answered
only if it differs from its value when the page was served, which the history records.

View data for pages hold no more than a participant may know: where a story comes from, who wrote
it, what was done to it and its document id are not passed on, so that no template can show them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse
from sqlalchemy import Connection, select

from fabula.studies.assigning import Assignment
from fabula.studies.database import answers, assignments, now_ms, page_views
from fabula.studies.design import StudyDesign
from fabula.studies.forms import (
    AGAIN,
    WHY,
    Answers,
    FormError,
    Key,
    Page,
    Question,
    clean_text,
    retired,
    with_answer,
)
from fabula.studies.labels import ENGLISH, Labels
from fabula.text import TextSettings
from fabula.text.sentences import paragraphs_of
from fabula.web import page_environment, visible


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
        if (question := questions.get(key)) is None:
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
    is_own = assignments.c.id == assignment.id
    connection.execute(assignments.update().where(is_own).values(seen_ms=now))
    return Saved(current, newest, tuple(problems))


def _now_and_then(
    connection: Connection, assignment_id: int, revision: int | None
) -> tuple[dict[Key, str], dict[Key, str], int]:
    """Return the current answers, those at a given revision, and the newest revision."""
    current: dict[Key, str] = {}
    shown: dict[Key, str] = {}
    newest = 0
    query = select(answers.c.part, answers.c.item, answers.c.value)
    query = query.where(answers.c.assignment_id == assignment_id).order_by(answers.c.id)
    # Counted from one for each unit, so that browsers learn nothing about the study as a whole.
    for newest, (part, item, value) in enumerate(connection.execute(query), 1):
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
    page = name if is_further or (is_free and name != assignment.page) else assignment.page
    query = assignments.update().where(assignments.c.id == assignment.id)
    connection.execute(query.values(page=page, seen_ms=now_ms()))
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


SameSite = Literal["lax", "strict"]
_HERE = Path(__file__).parent
# Silent reading of English fiction is about 240 words a minute (Brysbaert 2019, doi
# 10.1016/j.jml.2019.104047). The time per question is a guess, used only for this sentence.
Problems = Mapping[Key, str]
_WORDS_A_MINUTE = 240
_MINUTES_A_QUESTION, _MINUTES_A_REASON = 0.25, 0.5
_STEP_MINUTES = 5
_WHERE = {"ttcw": "where_group", "pairs": "where_pair", "feedback": "where_piece"}
STATIC = {
    "fabula.css": (_HERE.parent / "web" / "static" / "fabula.css", "text/css"),
    "study.css": (_HERE / "static" / "study.css", "text/css"),
    "organise.js": (_HERE / "static" / "organise.js", "text/javascript"),
    "study.js": (_HERE / "static" / "study.js", "text/javascript"),
}
"""Static files; no other file on disk can be requested."""

_ENVIRONMENT = page_environment(_HERE / "templates", static=STATIC)


def render(template: str, labels: Labels = ENGLISH, **values: Any) -> str:
    """Render a page in a language; organisers' pages are in English."""
    return _ENVIRONMENT.get_template(template).render(
        labels=labels, t=labels.marked, script_labels=json.dumps(labels.for_script()), **values
    )


def base_of(request: Request) -> str:
    """Return the path at which a proxy mounts the study; empty for none."""
    return str(request.scope.get("root_path", ""))


def respond(
    request: Request, template: str, labels: Labels = ENGLISH, status: int = 200, **values: Any
) -> HTMLResponse:
    """Return a rendered page as the answer to a request."""
    return HTMLResponse(render(template, labels, base=base_of(request), **values), status)


def go(request: Request, path: str) -> RedirectResponse:
    """Redirect to a path of the study."""
    return RedirectResponse(base_of(request) + path, 303)


def let_in(
    request: Request, cookie: str, token: str, *, path: str, max_age_s: int, samesite: SameSite
) -> RedirectResponse:
    """Redirect to a path with a cookie that is sent to pages below it only."""
    response, where = go(request, path), f"{base_of(request)}{path}".rstrip("/") or "/"
    is_secure = request.url.scheme == "https"
    response.set_cookie(
        cookie, token, max_age_s, path=where, secure=is_secure, httponly=True, samesite=samesite
    )
    return response


def told(text: str) -> list[str]:
    """Split a researcher's text or a story into paragraphs."""
    return [visible(paragraph) for paragraph in paragraphs_of(text) if paragraph.strip()]


class Field:
    """A question as shown on the page, with its answer and what is wrong with it."""

    def __init__(
        self, question: Question, answers: Answers, problems: Problems, *, is_locked: bool = False
    ) -> None:
        self.question, self.is_locked = question, is_locked
        self.name = ":".join(question.key)
        """`1:narrative_ending`, a part and an item."""
        self.why = ":".join(question.why) if question.min_words else ""
        self.value, self.reason = (answers.get(key, "") for key in (question.key, question.why))
        self.problem = problems.get(question.key, "") or problems.get(question.why, "")


@dataclass(frozen=True, slots=True)
class OpenPage:
    """A page of a participant's open unit, with the answers given so far."""

    design: StudyDesign
    held: Assignment
    pages: tuple[Page, ...]
    page: Page
    answers: Answers
    revision: int
    opened: Collection[str]

    def to_answer_first(self) -> Page | None:
        """Return the page that this one waits for: one before, or, to compare, one not opened."""
        page, facts = self.page, self.held.unit.facts
        if self.design.kind != "feedback":
            return None if page.shows else self._first_unopened()
        before = self.pages[: self.pages.index(page)]
        first = next((p for p in before if p.open(self.answers, facts)), None)
        if first is None and not page.applicable(self.answers, facts):
            return before[-1]
        return first

    def short_reasons(self) -> dict[Key, str]:
        """Return the reasons that are missing or too short, for questions with answers."""
        still = self.page.open(self.answers, self.held.unit.facts)
        return {key: text for key, text in still if key[1].endswith(WHY)}

    def view(self, problems: Mapping[Key, str]) -> dict[str, Any]:
        """Return everything that the page shows."""
        page, answers, facts = self.page, self.answers, self.held.unit.facts
        is_locked = page in locked_pages(self.pages, self.held)
        questions = page.applicable(answers, facts)
        fields = [Field(question, answers, problems, is_locked=is_locked) for question in questions]
        # The questions on all stories, story by story, each with its opening words.
        parts = []
        for number, place in enumerate(self.held.order, 1) if page.name == "group" else ():
            words = " ".join(self.held.unit.documents[place].text.split())
            begins = visible(words[:140]) + ("…" if len(words) > 140 else "")
            asked = [field for field in fields if field.question.part == str(number)]
            parts.append({"number": number, "begins": begins, "fields": asked})
        # Where pages build on each other, none is listed that is still to come: that there is
        # another may reveal what was done to the story.
        index = self.pages.index(page)
        is_free = self.design.kind != "feedback"
        unopened = self._first_unopened()
        return {
            "page": page,
            "texts": [self._text(shown) for shown in page.shows],
            "fields": fields,
            "is_group": page.name == "group",
            "parts": parts,
            "steps": [
                {
                    "name": step.name,
                    "title": step.title,
                    "is_here": step is page,
                    "n": (n := len(step.applicable(answers, facts))),
                    "n_done": max(0, n - len({key for key, _ in step.open(answers, facts)})),
                    "is_open": bool(step.shows) or unopened is None,
                }
                for step in (self.pages if is_free else self.pages[: index + 1])
            ],
            "is_free": is_free,
            "previous": self.pages[index - 1] if index else None,
            "following": self.pages[index + 1] if index + 1 < len(self.pages) else None,
        }

    def where(self, n_for_one: int) -> str:
        """Return a progress line such as `Story 3 of 4, about 20 minutes left`.

        In the design feedback, where the number of questions depends on what was done to the story,
        it only says which of their pieces this is. n_for_one: most units that one person is given.
        """
        parts, say, number = [], self.design.labels, self.held.number
        stories = [page for page in self.pages if page.name.startswith("story-")]
        if self.page in stories:
            parts.append(say("where_story", k=stories.index(self.page) + 1, n=len(stories)))
        if number and n_for_one > 1:
            label = "where_four" if self.design.at_once == 4 else _WHERE[self.design.kind]
            where = say(label, k=number)
            parts.append(say("at_most", where=where, n=n_for_one) if number <= n_for_one else where)
        if self.design.kind != "feedback":
            # Estimate the minutes to read the stories without answers and to answer what is open.
            minutes = 0.0
            for page in self.pages:
                if not any(self.answers.get(question.key) for question in page.questions):
                    # Texts of repeated questions have been read before.
                    for part in page.shows if page.name != AGAIN else ():
                        text = self.held.unit.documents[self.held.document(part)].text
                        minutes += len(TextSettings().words(text)) / _WORDS_A_MINUTE
                for question in page.questions:
                    if not self.answers.get(question.key):
                        has_reason = bool(question.min_words)
                        minutes += _MINUTES_A_QUESTION + _MINUTES_A_REASON * has_reason
            if steps := round(minutes / _STEP_MINUTES):
                parts.append(say("minutes_left", n=steps * _STEP_MINUTES))
            elif minutes:
                parts.append(say("less_than_minutes_left", n=_STEP_MINUTES))
            else:
                parts.append(say("all_answered"))
        return ", ".join(parts)

    def _first_unopened(self) -> Page | None:
        """Return the first page with a text neither opened nor answered: comparing waits for it."""
        answered = {part for (part, _), value in self.answers.items() if value}
        for page in self.pages:
            if page.shows and page.name not in self.opened and not answered & set(page.shows):
                return page
        return None

    def _text(self, shown: str) -> dict[str, Any]:
        unit, order, say = self.held.unit, self.held.order, self.design.labels
        if shown.startswith(f"{AGAIN}-") and self.held.first is not None:
            shown = shown.removeprefix(f"{AGAIN}-")
            unit, order = self.held.first
        documents = unit.documents
        if shown.isdecimal():
            document = documents[order[int(shown) - 1]]
            # A piece of feedback includes its story; a story may have a column of that name.
            text = str(document.meta["story"]) if self.design.kind == "feedback" else document.text
            title = say("story_n", n=shown) if len(documents) > 1 else say("story")
        elif shown == "feedback":
            text, title = documents[0].text, say("feedback_on_story")
        else:
            text, title = str(documents[0].meta.get("original", "")), say("story_before")
        kind = "said" if shown == "feedback" else ""
        return {"title": title, "paragraphs": told(text), "kind": kind}
