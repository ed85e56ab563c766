"""The questions of each page: which apply, what answers they allow, what is still open.

Answers are text, keyed by a part of the unit (the position of a story in the participant's own
order, `1`, `2`, ...; or `unit`) and an item. The reason for an answer is an item of its own,
`ITEM.why`. Which questions apply follows from the answers and from facts that nobody is shown.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fabula.core.scales import Scale
from fabula.core.types import Item, Rubric
from fabula.rubrics.conditions import Condition
from fabula.studies.design import StudyDesign
from fabula.studies.labels import ENGLISH, Labels
from fabula.text import TextSettings

WHY = ".why"
TIE = "Neither"
BEST, WORST = "best", "worst"
"""Parts used for questions about four stories."""
CHECK, AGAIN = "check", "again"
"""Parts used for attention items and for repeated questions."""
OWN = ENGLISH.item(Item("own_feedback", 0, "", "", scale=Scale("text")))
_MAX_CHARS = 8_000
_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,6})?")

Key = tuple[str, str]
Answers = Mapping[Key, str]


class FormError(Exception):
    """An invalid answer; the message is shown to the participant."""


def clean_text(raw: str, labels: Labels = ENGLISH) -> str:
    """Return text in stored form. Raises `FormError` if it is too long."""
    text = raw.replace("\0", "").replace("\r\n", "\n").strip()
    if len(text) > _MAX_CHARS:
        raise FormError(labels("too_long", n=_MAX_CHARS))
    # Lone surrogates, which no database can store.
    return text.encode(errors="replace").decode()


@dataclass(frozen=True, slots=True)
class Question:
    """An item asked about a part of the unit."""

    part: str
    item: Item
    min_words: int = 0
    """Minimum length of the reason; 0 makes it optional."""
    n_ranks: int = 0
    is_optional: bool = False
    rubric: Rubric | None = None
    """The item's rubric; None for a standalone item."""
    labels: Labels = field(default=ENGLISH, repr=False, compare=False)

    @property
    def key(self) -> Key:
        return self.part, self.item.id

    @property
    def why(self) -> Key:
        return self.part, self.item.id + WHY

    @property
    def keys(self) -> tuple[Key, Key]:
        return self.key, self.why

    @property
    def options(self) -> tuple[str, ...]:
        """The choices; empty for free text."""
        if self.item.scale.is_ranking:
            return tuple(map(str, range(1, self.n_ranks + 1)))
        return self.item.scale.answers

    def applies(self, answers: Answers, facts: Mapping[str, object]) -> bool:
        """Return whether its condition holds."""
        if not self.item.show_if:
            return True
        known: dict[str, object] = {**facts}
        for item in self.rubric.items if self.rubric else ():
            if answer := answers.get((self.part, item.id)):
                known[item.id] = item.scale.named(item.scale.read(answer))
        return Condition.parse(self.item.show_if).holds(known)

    def clean(self, answer: str) -> str:
        """Return the answer in stored form; an empty one withdraws it. Raises `FormError`."""
        text, scale = clean_text(answer, self.labels), self.item.scale
        if not text:
            return text
        if self.options:
            if text not in self.options:
                raise FormError(self.labels("choose_one"))
        elif scale.form == "number" and (not _NUMBER.fullmatch(text) or scale.read(text) is None):
            low, high, step = (scale.limits[name] for name in ("min", "max", "step"))
            if step == "any":
                raise FormError(self.labels("write_number", low=low, high=high))
            raise FormError(self.labels("write_number_in_steps", low=low, high=high, step=step))
        return text


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a unit: its texts, and its questions whether or not they apply."""

    name: str
    title: str
    shows: tuple[str, ...]
    """Parts whose text the page shows, and `feedback` or `original`."""
    questions: tuple[Question, ...]
    is_final: bool = False
    """Whether earlier answers are locked once this page has been shown."""
    labels: Labels = field(default=ENGLISH, repr=False, compare=False)

    def applicable(self, answers: Answers, facts: Mapping[str, object]) -> list[Question]:
        """Return the questions whose conditions hold."""
        return [question for question in self.questions if question.applies(answers, facts)]

    def open(self, answers: Answers, facts: Mapping[str, object]) -> list[tuple[Key, str]]:
        """Return the unanswered questions, each with a sentence that says why."""
        still: list[tuple[Key, str]] = []
        for question in self.applicable(answers, facts):
            answer = answers.get(question.key, "")
            if not answer and question.is_optional:
                continue
            if not answer:
                still.append((question.key, self.labels("not_answered", title=question.item.title)))
            elif _n_words(answers.get(question.why, "")) < question.min_words:
                title, n = question.item.title, question.min_words
                still.append((question.why, self.labels("give_reason", title=title, n=n)))
        for question in self.questions:
            worst = answers.get(question.key, "") if question.part == WORST else ""
            if worst and worst == answers.get((BEST, question.item.id)):
                still.append((question.key, self.labels("best_is_worst", answer=worst[-1])))
        ranks = [q for q in self.questions if q.n_ranks and answers.get(q.key)]
        taken: dict[str, str] = {}
        for question in ranks:
            story = question.part
            if (other := taken.setdefault(answers[question.key], story)) != story:
                still.append((question.key, self.labels("same_place", story=story, other=other)))
        return still


def pages_of(
    design: StudyDesign, n_documents: int, number: int | None = None, *, has_first: bool = True
) -> tuple[Page, ...]:
    """Return the pages of a unit in order; those without applicable questions are dropped later.

    number: the unit's number among the participant's own, from 1, which determines the checks; None
    for all that any may have. has_first: whether the participant has submitted another unit.
    """
    say = design.labels
    if design.kind == "feedback":
        every = [Question("unit", item, rubric=design.rubric) for item in design.rubric.items]
        before = tuple(question for question in every if not question.item.reveals)
        pages = [Page("story", say("the_story"), ("1",), (Question("unit", say.item(OWN)),))]
        pages.append(Page("feedback", say("the_feedback"), ("1", "feedback"), before))
        if after := tuple(question for question in every if question.item.reveals):
            parts = ("1", "feedback", "original")
            pages.append(Page("change", say("other_version"), parts, after, is_final=True))
    elif design.kind == "pairs":
        title = say("two_stories" if design.at_once == 2 else "four_stories")
        shows = tuple(str(number) for number in range(1, design.at_once + 1))
        asked = (question for item in design.rubric.items for question in _asked(item, design))
        pages = [Page("pair", title, shows, tuple(asked))]
    else:
        pages = list(_story_pages(design, n_documents))
    for k, page in enumerate(pages):
        # Attention items come among the other questions.
        checks = [
            Question(CHECK, check.item(id_))
            for id_, check in design.people.attention_items.items()
            if (
                page.name == f"story-{min(check.at, n_documents)}"
                if design.kind == "ttcw"
                else page.name in ("feedback", "pair") and number in (None, check.at)
            )
        ]
        middle = len(page.questions) // 2
        questions = (*page.questions[:middle], *checks, *page.questions[middle:])
        pages[k] = replace(page, questions=questions)
    is_due = has_first and number in (None, design.people.repeat_at)
    if design.kind == "ttcw":
        is_due = n_documents > 1
    if design.people.repeat and is_due:
        place = n_documents if design.kind == "ttcw" else len(pages)
        # The repeated questions, next to the texts they are about.
        asked = (q for page in pages if page.name != "group" for q in page.questions)
        items = {q.item.id: q.item for q in asked if q.part != WORST}
        together = tuple(f"again-{number}" for number in range(1, design.at_once + 1))
        texts = {"ttcw": ("1",), "feedback": ("again-1", "again-feedback"), "pairs": together}
        questions = tuple(Question(AGAIN, items[id_]) for id_ in design.people.repeat)
        pages.insert(place, Page(AGAIN, say("once_more"), texts[design.kind], questions))
    return tuple(
        replace(page, labels=say, questions=tuple(replace(q, labels=say) for q in page.questions))
        for page in pages
    )


def _story_pages(design: StudyDesign, n_stories: int) -> Iterator[Page]:
    say, rubric, numbers = design.labels, design.rubric, range(1, n_stories + 1)
    for part in map(str, numbers):
        asked = (Question(part, item, design.reason_words, rubric=rubric) for item in rubric.items)
        yield Page(f"story-{part}", say("story_n", n=part), (part,), tuple(asked))
    if (rubric_of_all := design.group_rubric) is not None:
        questions = tuple(
            Question(
                str(number),
                item,
                n_ranks=n_stories * item.scale.is_ranking,
                is_optional=item.scale.kind == "text",
                rubric=rubric_of_all,
            )
            for item in rubric_of_all.items
            for number in numbers
            if not item.scale.is_ranking or n_stories > 1
        )
        yield Page("group", say("all_stories"), (), questions)


def _asked(item: Item, design: StudyDesign) -> Iterator[Question]:
    """Yield the question which of two stories is preferred, or which of four is best and worst."""
    say, n_words = design.labels, design.reason_words
    stories = tuple(f"Story {place}" for place in range(1, design.at_once + 1))
    asked = replace(item, scale=Scale("choice", (*stories, TIE) if design.ties else stories))
    if design.at_once == 2:
        question = say("which_is_better", question=item.question)
        yield Question("unit", replace(asked, question=question), n_words)
        return
    title, question = say("best_of", title=item.title), say("which_is_best", question=item.question)
    yield Question(BEST, replace(asked, title=title, question=question), n_words)
    # The two appear together, so the criterion is stated once.
    title, question = say("worst_of", title=item.title), say("which_is_worst")
    yield Question(WORST, replace(asked, title=title, question=question, background=""))


def retired(
    pages: Sequence[Page], answers: Answers, facts: Mapping[str, object]
) -> tuple[dict[Key, str], list[Key]]:
    """Return the answers that still apply, and the keys of those that no longer do.

    Removing one answer may end the condition of another, so this repeats until nothing changes.
    """
    current = {key: value for key, value in answers.items() if value}
    gone: list[Key] = []
    while True:
        questions = [q for page in pages for q in page.applicable(current, facts)]
        applying = {key for q in questions for key in q.keys}
        if not (over := [key for key in current if key not in applying]):
            return current, gone
        gone += over
        current = {key: value for key, value in current.items() if key in applying}


@functools.lru_cache(maxsize=20_000)
def _n_words(reason: str) -> int:
    return len(TextSettings().words(reason))


def with_answer(answers: Answers, key: Key, value: str) -> dict[Key, str]:
    """Return the answers with one added; an empty value removes it."""
    return {k: v for k, v in {**answers, key: value}.items() if v or k != key}
