"""View data for the pages of a study: never more than a participant may know.

Everything here is built from the texts and the form. Where a story comes from, who wrote it, what
was done to it, its document id: none of it is passed on, so that no template can show it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabula.studies.answer_log import locked_pages
from fabula.studies.assigning import Assignment
from fabula.studies.design import StudyDesign
from fabula.studies.forms import AGAIN, Answers, Key, Page, Question
from fabula.studies.labels import ENGLISH, Labels
from fabula.studies.whereabouts import all_are_opened
from fabula.text.sentences import paragraphs_of
from fabula.web import page_environment, visible

_HERE = Path(__file__).parent
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


def told(text: str) -> list[str]:
    """Split a researcher's text or a story into paragraphs."""
    return [visible(paragraph) for paragraph in paragraphs_of(text) if paragraph.strip()]


def field_name(key: Key) -> str:
    """Return the name of a field in the page: `1:narrative_ending`."""
    return ":".join(key)


def keys_of(form: Mapping[str, str]) -> dict[Key, str]:
    """Return the answers in a submitted form."""
    found = {}
    for name, value in form.items():
        part, colon, item = name.partition(":")
        if colon:
            found[part, item] = value
    return found


@dataclass(frozen=True, slots=True)
class Field:
    """A question as shown on the page."""

    question: Question
    name: str
    why: str
    value: str
    reason: str
    problem: str
    is_locked: bool


def page_view(
    design: StudyDesign,
    assignment: Assignment,
    pages: Sequence[Page],
    page: Page,
    answers: Answers,
    problems: Mapping[Key, str],
    opened: Collection[str],
) -> dict[str, Any]:
    """Return everything that a page of a unit shows. opened: the pages opened so far."""
    facts = assignment.unit.facts
    locked = page in locked_pages(pages, assignment)
    fields = [
        Field(
            question=question,
            name=field_name(question.key),
            why=field_name(question.why) if question.min_words else "",
            value=answers.get(question.key, ""),
            reason=answers.get(question.why, ""),
            problem=problems.get(question.key, "") or problems.get(question.why, ""),
            is_locked=locked,
        )
        for question in page.applicable(answers, facts)
    ]
    return {
        "page": page,
        "texts": [_text(design, assignment, shown) for shown in page.shows],
        "fields": fields,
        "is_group": page.name == "group",
        "parts": _parts(assignment, fields) if page.name == "group" else [],
        "steps": [
            _step(each, page, answers, facts)
            | {"is_open": bool(each.shows) or all_are_opened(pages, opened, answers)}
            for each in _listed(design, pages, page)
        ],
        "is_free": design.kind != "feedback",
        "previous": _beside(pages, page, -1),
        "following": _beside(pages, page, 1),
    }


def _text(design: StudyDesign, assignment: Assignment, shown: str) -> dict[str, Any]:
    unit, order, labels = assignment.unit, assignment.order, design.labels
    if shown.startswith(f"{AGAIN}-") and assignment.first is not None:
        shown = shown.removeprefix(f"{AGAIN}-")
        unit, order = assignment.first
    documents = unit.documents
    if shown.isdecimal():
        document = documents[order[int(shown) - 1]]
        # A piece of feedback includes its story; a story may have a column of that name.
        text = str(document.meta["story"]) if design.kind == "feedback" else document.text
        title = labels("story_n", n=shown) if len(documents) > 1 else labels("story")
    elif shown == "feedback":
        text, title = documents[0].text, labels("feedback_on_story")
    else:
        text, title = str(documents[0].meta.get("original", "")), labels("story_before")
    return {"title": title, "paragraphs": told(text), "kind": "said" if shown == "feedback" else ""}


def _parts(assignment: Assignment, fields: Sequence[Field]) -> list[dict[str, Any]]:
    """Return the questions on all stories, story by story, each with its opening words."""
    found = []
    for number in range(1, len(assignment.order) + 1):
        part = str(number)
        words = " ".join(assignment.unit.documents[assignment.document(part)].text.split())
        found.append(
            {
                "number": number,
                "begins": visible(words[:140]) + ("…" if len(words) > 140 else ""),
                "fields": [field for field in fields if field.question.part == part],
            }
        )
    return found


def _listed(design: StudyDesign, pages: Sequence[Page], here: Page) -> Sequence[Page]:
    """Return the pages to list; if pages build on each other, none that is still to come.

    The existence of another page may reveal what was done to the story.
    """
    return pages if design.kind != "feedback" else pages[: pages.index(here) + 1]


def _step(page: Page, here: Page, answers: Answers, facts: Mapping[str, object]) -> dict[str, Any]:
    n = len(page.applicable(answers, facts))
    n_open = len({key for key, _ in page.open(answers, facts)})
    return {
        "name": page.name,
        "title": page.title,
        "is_here": page is here,
        "n": n,
        "n_done": max(0, n - n_open),
    }


def _beside(pages: Sequence[Page], page: Page, step: int) -> Page | None:
    place = pages.index(page) + step
    return pages[place] if 0 <= place < len(pages) else None
