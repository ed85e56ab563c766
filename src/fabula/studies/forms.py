"""What is asked, page by page: which questions apply, what may be answered, what is still open.

Answers are text, under a part of the unit (the place of a story in the participant's own order,
`1`, `2`, ...; or `unit`) and an item. The reason for an answer is an item of its own, `ITEM.why`.
What applies follows from the current answers and from facts that participants never see.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fabula.rubrics import Condition
from fabula.studies.design import StudyDesign
from fabula.studies.pairs import pair_item
from fabula.text import TextSettings
from fabula.types import Item, Rubric, Scale

__all__ = [
    "OWN",
    "WHY",
    "Answers",
    "FormError",
    "Page",
    "Question",
    "clean_text",
    "pages_of",
    "retired",
    "with_answer",
]

WHY = ".why"
OWN = Item(
    "own_feedback",
    0,
    "Your own feedback",
    "What would you tell the writer? Name the most important thing to mend, in a sentence or two; "
    "write n/a if you would change nothing.",
    scale=Scale("text"),
)
_MAX_CHARS = 8_000
_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,6})?")

Key = tuple[str, str]
Answers = Mapping[Key, str]


class FormError(Exception):
    """An answer that cannot be taken; the message is for the participant."""


def clean_text(raw: str) -> str:
    """Words as they are kept. Raises `FormError` where there are too many."""
    text = raw.replace("\0", "").replace("\r\n", "\n").strip()
    if len(text) > _MAX_CHARS:
        raise FormError(f"Please write at most {_MAX_CHARS:,} characters.")
    # Halves of characters, which no database can hold.
    return text.encode(errors="replace").decode()


@dataclass(frozen=True, slots=True)
class Question:
    """An item about a part of the unit."""

    part: str
    item: Item
    min_words: int = 0
    """Of its reason; 0 asks for none."""
    n_ranks: int = 0
    rubric: Rubric | None = None
    """That of the item; None of one that stands alone."""

    @property
    def key(self) -> Key:
        return self.part, self.item.id

    @property
    def why(self) -> Key:
        return self.part, self.item.id + WHY

    @property
    def options(self) -> tuple[str, ...]:
        """What may be chosen; empty where words are written."""
        if self.item.scale.is_ranking:
            return tuple(str(place) for place in range(1, self.n_ranks + 1))
        return self.item.scale.answers

    def clean(self, answer: str) -> str:
        """The answer as it is kept; empty takes it back. Raises `FormError`."""
        text, scale = clean_text(answer), self.item.scale
        if not text:
            return text
        if self.options:
            if text not in self.options:
                raise FormError("Please choose one of the answers.")
        elif scale.form == "number" and not (
            _NUMBER.fullmatch(text) and scale.read(text) is not None
        ):
            raise FormError(f"Please write {scale.allowed}.")
        return text


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a unit: what it shows, and its questions whether they apply or not."""

    name: str
    title: str
    shows: tuple[str, ...]
    """Parts whose text stands there, and `feedback` or `original`."""
    questions: tuple[Question, ...]
    is_final: bool = False
    """What was answered before it stays as it is once it has been shown."""

    def applicable(self, answers: Answers, facts: Mapping[str, object]) -> list[Question]:
        """The questions whose conditions hold."""
        return [question for question in self.questions if _applies(question, answers, facts)]

    def open(self, answers: Answers, facts: Mapping[str, object]) -> list[tuple[Key, str]]:
        """What is still to be answered, and why, a sentence each."""
        found: list[tuple[Key, str]] = []
        for question in self.applicable(answers, facts):
            given = answers.get(question.key, "")
            if not given:
                found.append((question.key, f"{question.item.title}: not answered yet."))
            elif _n_words(answers.get(question.why, "")) < question.min_words:
                found.append(
                    (question.why, f"{question.item.title}: please give your reason, at least "
                     f"{question.min_words} words.")
                )  # fmt: skip
        ranks = [q for q in self.questions if q.n_ranks and answers.get(q.key)]
        taken: dict[str, str] = {}
        for question in ranks:
            place = answers[question.key]
            if place in taken:
                found.append(
                    (question.key, f"Story {question.part} and story {taken[place]} have the same "
                     f"place; give each story its own.")
                )  # fmt: skip
            taken.setdefault(place, question.part)
        return found


def pages_of(design: StudyDesign, n_documents: int) -> tuple[Page, ...]:
    """The pages of a unit, in order; those without an applicable question are left out later."""
    if design.kind == "feedback":
        return tuple(_feedback_pages(design))
    if design.kind == "pairs":
        return (_pair_page(design),)
    return tuple(_story_pages(design, n_documents))


def _story_pages(design: StudyDesign, n_stories: int) -> Iterator[Page]:
    for number in range(1, n_stories + 1):
        part = str(number)
        yield Page(
            name=f"story-{number}",
            title=f"Story {number}",
            shows=(part,),
            questions=tuple(
                Question(part, item, design.reason_words, rubric=design.rubric)
                for item in design.rubric.items
            ),
        )
    if design.group_rubric is not None:
        yield Page(
            name="group",
            title="All stories",
            shows=(),
            questions=tuple(
                Question(
                    str(number),
                    item,
                    n_ranks=n_stories * item.scale.is_ranking,
                    rubric=design.group_rubric,
                )
                for item in design.group_rubric.items
                for number in range(1, n_stories + 1)
                if not item.scale.is_ranking or n_stories > 1
            ),
        )


def _pair_page(design: StudyDesign) -> Page:
    return Page(
        name="pair",
        title="Two stories",
        shows=("1", "2"),
        questions=tuple(
            Question("unit", pair_item(item, ties=design.ties), design.reason_words)
            for item in design.rubric.items
        ),
    )


def _feedback_pages(design: StudyDesign) -> Iterator[Page]:
    yield Page("story", "The story", ("1",), (Question("unit", OWN),))
    asked = [Question("unit", item, rubric=design.rubric) for item in design.rubric.items]
    before = tuple(question for question in asked if not question.item.reveals)
    yield Page("feedback", "The feedback", ("1", "feedback"), before)
    if after := tuple(question for question in asked if question.item.reveals):
        shows = ("1", "feedback", "original")
        yield Page("change", "The other version", shows, after, is_final=True)


def _applies(question: Question, answers: Answers, facts: Mapping[str, object]) -> bool:
    if not question.item.show_if:
        return True
    known: dict[str, object] = {**facts}
    for item in question.rubric.items if question.rubric else ():
        answer = answers.get((question.part, item.id))
        if answer:
            known[item.id] = item.scale.named(item.scale.read(answer))
    return Condition.parse(question.item.show_if).holds(known)


def retired(
    pages: Sequence[Page], answers: Answers, facts: Mapping[str, object]
) -> tuple[dict[Key, str], list[Key]]:
    """The answers that still apply, and the keys of those that no longer do.

    Taking one answer back may end the condition of another, so this goes on until nothing changes.
    """
    current = dict(answers)
    gone: list[Key] = []
    while True:
        applying: set[Key] = set()
        for page in pages:
            for question in page.applicable(current, facts):
                applying |= {question.key, question.why}
        over = [key for key in current if key not in applying and current[key]]
        if not over:
            return {key: value for key, value in current.items() if value}, gone
        for key in over:
            gone.append(key)
            del current[key]


@functools.lru_cache(maxsize=20_000)
def _n_words(reason: str) -> int:
    return len(TextSettings().words(reason))


def with_answer(answers: Answers, key: Key, value: str) -> dict[Key, str]:
    """The answers after one more; an empty one is taken back."""
    changed = {**answers, key: value}
    return changed if value else {k: v for k, v in changed.items() if k != key}
