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
from fabula.text import TextSettings
from fabula.text.sentences import paragraphs_of
from fabula.web import page_environment, visible

_HERE = Path(__file__).parent
# Silent reading of English fiction is about 240 words a minute (Brysbaert 2019, doi
# 10.1016/j.jml.2019.104047). The time per question is a guess, used only for this sentence.
_WORDS_A_MINUTE = 240
_MINUTES_A_QUESTION = 0.25
_MINUTES_A_REASON = 0.5
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


def told(text: str) -> list[str]:
    """Split a researcher's text or a story into paragraphs."""
    return [visible(paragraph) for paragraph in paragraphs_of(text) if paragraph.strip()]


def field_name(key: Key) -> str:
    """Return the name of a field in the page: `1:narrative_ending`."""
    return ":".join(key)


def keys_of(form: Mapping[str, str]) -> dict[Key, str]:
    """Return the answers in a submitted form."""
    named = ((name.partition(":"), value) for name, value in form.items())
    return {(part, item): value for (part, colon, item), value in named if colon}


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


def field_of(
    question: Question, answers: Answers, problems: Mapping[Key, str], *, is_locked: bool = False
) -> Field:
    """Return a question as shown, with its answer and what is wrong with it."""
    return Field(
        question=question,
        name=field_name(question.key),
        why=field_name(question.why) if question.min_words else "",
        value=answers.get(question.key, ""),
        reason=answers.get(question.why, ""),
        problem=problems.get(question.key, "") or problems.get(question.why, ""),
        is_locked=is_locked,
    )


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
    is_locked = page in locked_pages(pages, assignment)
    fields = [
        field_of(question, answers, problems, is_locked=is_locked)
        for question in page.applicable(answers, facts)
    ]
    # Where pages build on each other, none is listed that is still to come: that there is another
    # may reveal what was done to the story.
    here = pages.index(page)
    listed = pages if design.kind != "feedback" else pages[: here + 1]
    return {
        "page": page,
        "texts": [_text(design, assignment, shown) for shown in page.shows],
        "fields": fields,
        "is_group": page.name == "group",
        "parts": _parts(assignment, fields) if page.name == "group" else [],
        "steps": [
            {
                "name": each.name,
                "title": each.title,
                "is_here": each is page,
                "n": (n := len(each.applicable(answers, facts))),
                "n_done": max(0, n - len({key for key, _ in each.open(answers, facts)})),
                "is_open": bool(each.shows) or first_unopened(pages, opened, answers) is None,
            }
            for each in listed
        ],
        "is_free": design.kind != "feedback",
        "previous": pages[here - 1] if here else None,
        "following": pages[here + 1] if here + 1 < len(pages) else None,
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
    for number, place in enumerate(assignment.order, 1):
        words = " ".join(assignment.unit.documents[place].text.split())
        begins = visible(words[:140]) + ("…" if len(words) > 140 else "")
        own = [field for field in fields if field.question.part == str(number)]
        found.append({"number": number, "begins": begins, "fields": own})
    return found


def where_they_are(
    design: StudyDesign,
    assignment: Assignment,
    pages: Sequence[Page],
    page: Page,
    answers: Answers,
    n_for_one: int,
) -> str:
    """Return a progress line such as `Story 3 of 4, about 20 minutes left`.

    In the design feedback, where the number of questions depends on what was done to the story, it
    only says which of their pieces this is.
    """
    parts, say = [], design.labels
    stories = [one for one in pages if one.name.startswith("story-")]
    if page in stories:
        parts.append(say("where_story", k=stories.index(page) + 1, n=len(stories)))
    if assignment.number and n_for_one > 1:
        label = "where_four" if design.at_once == 4 else _WHERE[design.kind]
        where = say(label, k=assignment.number)
        is_within = assignment.number <= n_for_one
        parts.append(say("at_most", where=where, n=n_for_one) if is_within else where)
    if design.kind != "feedback":
        minutes = _minutes(assignment, pages, answers)
        if steps := round(minutes / _STEP_MINUTES):
            parts.append(say("minutes_left", n=steps * _STEP_MINUTES))
        elif minutes:
            parts.append(say("less_than_minutes_left", n=_STEP_MINUTES))
        else:
            parts.append(say("all_answered"))
    return ", ".join(parts)


def _minutes(assignment: Assignment, pages: Sequence[Page], answers: Answers) -> float:
    """Estimate the minutes to read the stories without answers and to answer what is open."""
    minutes = 0.0
    for page in pages:
        if not any(answers.get(question.key) for question in page.questions):
            # Texts of repeated questions have been read before.
            for part in page.shows if page.name != AGAIN else ():
                text = assignment.unit.documents[assignment.document(part)].text
                minutes += len(TextSettings().words(text)) / _WORDS_A_MINUTE
        for question in page.questions:
            if not answers.get(question.key):
                minutes += _MINUTES_A_QUESTION + _MINUTES_A_REASON * bool(question.min_words)
    return minutes


def first_unopened(pages: Sequence[Page], opened: Collection[str], answers: Answers) -> Page | None:
    """Return the first page with a text never opened; comparing all texts has to wait for it.

    A page with an answer counts as opened, even if no view was recorded.
    """
    answered = {part for (part, _), value in answers.items() if value}
    for page in pages:
        if page.shows and page.name not in opened and not answered & set(page.shows):
            return page
    return None
