"""A participant's progress and remaining work.

Covers only what they have been given themselves, and nothing that reveals what was done to a story.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fabula.studies.assigning import Assignment
from fabula.studies.design import StudyDesign
from fabula.studies.forms import AGAIN, Answers, Page
from fabula.studies.labels import Labels
from fabula.text import TextSettings

# Silent reading of English fiction is about 240 words a minute (Brysbaert 2019, doi
# 10.1016/j.jml.2019.104047). The time per question is a guess, used only for this sentence.
_WORDS_A_MINUTE = 240
_MINUTES_A_QUESTION = 0.25
_MINUTES_A_REASON = 0.5
_STEP_MINUTES = 5
_WHERE = {"ttcw": "where_group", "pairs": "where_pair", "feedback": "where_piece"}


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
        parts.append(_left(say, _minutes(assignment, pages, answers)))
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


def _left(say: Labels, minutes: float) -> str:
    steps = round(minutes / _STEP_MINUTES)
    if steps:
        return say("minutes_left", n=steps * _STEP_MINUTES)
    return say("less_than_minutes_left", n=_STEP_MINUTES) if minutes else say("all_answered")


def first_unopened(pages: Sequence[Page], opened: Collection[str], answers: Answers) -> Page | None:
    """Return the first page with a text never opened; comparing all texts has to wait for it.

    A page with an answer counts as opened, even if no view was recorded.
    """
    answered = {part for (part, _), value in answers.items() if value}
    for page in pages:
        if page.shows and page.name not in opened and not answered & set(page.shows):
            return page
    return None


def all_are_opened(pages: Sequence[Page], opened: Collection[str], answers: Answers) -> bool:
    """Return whether every page with a text has been opened."""
    return first_unopened(pages, opened, answers) is None
