"""What a study's file says about the people themselves: what they are shown and asked before they
read, and what takes them back to where they came from.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from fabula.errors import InputError
from fabula.types import Item, Scale

__all__ = [
    "AboutQuestion",
    "Codes",
    "Example",
    "LongText",
    "Outcome",
    "Recruiting",
    "ShortText",
    "Strict",
]

ShortText = Annotated[str, Field(min_length=1, max_length=300)]
LongText = Annotated[str, Field(max_length=60_000)]
Outcome = Literal["done", "declined", "failed", "full", "withdrawn"]
"""How somebody's part in a study ends."""


class Strict(BaseModel):
    # A misspelt field must be a fault, not a field that is silently ignored.
    model_config = ConfigDict(extra="forbid", frozen=True)


class Codes(Strict):
    """What takes people back to their platform, by how their part ended: a code to enter there, or
    a link that begins with https://. Empty where there is none.
    """

    done: str = ""
    declined: str = ""
    failed: str = ""
    full: str = ""
    withdrawn: str = ""


class Example(Strict):
    """A worked example of the tutorial: a text, a question about it, its answer and why."""

    text: LongText
    question: LongText
    answer: ShortText
    why: LongText = ""


class AboutQuestion(Strict):
    """A question about the participant: options to choose from, a number (`low` to `high`), or,
    without either, words.
    """

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
    question: ShortText
    options: tuple[ShortText, ...] = ()
    low: float | None = None
    high: float | None = None
    required: bool = False

    @property
    def item(self) -> Item:
        """As an item, so that it is asked and read as those of a rubric are."""
        if self.options:
            scale = Scale("choice", self.options)
        elif self.low is None and self.high is None:
            scale = Scale("text")
        else:
            scale = Scale("number", low=self.low, high=self.high)
        return Item(self.id, 0, "", self.question, scale=scale)


class Recruiting(Strict):
    """The fields of a study's file that are about people. All of them can be left out."""

    quiz_tries: Annotated[int, Field(ge=1, le=20)] = 2
    """How often the quiz may be answered. Prolific asks for two at least."""
    codes: Codes = Codes()
    tutorial: tuple[Example, ...] = ()
    about: tuple[AboutQuestion, ...] = ()

    @property
    def questions_digest(self) -> str:
        """What of it decides the answers; empty where there is nothing, as in older studies."""
        asked = {"tutorial": self.tutorial, "about": self.about}
        given = {name: value for name, value in asked.items() if value}
        return repr(given) if given else ""

    def check(self, where: str) -> None:
        """Raise `InputError` where fields do not fit each other."""
        ids = [one.id for one in self.about]
        for one in self.about:
            place = f"{where}: about: {one.id}"
            if ids.count(one.id) > 1:
                raise InputError(f"{place}: two questions have this id; give each its own")
            if (fault := one.item.scale.fault()) is not None:
                raise InputError(f"{place}: {fault}")
            if one.options and (one.low, one.high) != (None, None):
                raise InputError(f"{place}: has options, so remove low and high")
        for outcome, code in self.codes:
            if ":" in code and not code.startswith("https://"):
                raise InputError(
                    f"{where}: codes: {outcome}: {code!r} is neither a code nor a link that begins "
                    f"with https://"
                )
