"""What a study's file says about the people themselves: what they are shown and asked before they
read, and what takes them back to where they came from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from fabula.errors import InputError
from fabula.types import Item, Scale

__all__ = [
    "AboutQuestion",
    "Attention",
    "Codes",
    "Entry",
    "Example",
    "LongText",
    "Outcome",
    "Recruiting",
    "ShortText",
    "Strict",
]

ShortText = Annotated[str, Field(min_length=1, max_length=300)]
LongText = Annotated[str, Field(max_length=60_000)]
Outcome = Literal["done", "declined", "failed", "full", "withdrawn", "attention"]
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
    attention: str = ""
    """In place of `done`, for those with more wrong attention items than `attention_wrong`."""


class Entry(Strict):
    """Who may come from a platform."""

    platform: Literal["", "prolific", "mturk"] = ""
    """The only one that people may come from; empty for either."""
    studies: tuple[Annotated[str, Field(pattern=r"^[0-9a-zA-Z]{1,64}$")], ...] = ()
    """The study's ids at the platform; people of others are turned away. Their statuses can be
    fetched from Prolific."""
    allow: str = ""
    """A file of ids, beside the study's; people who are not in it are turned away."""
    signed: bool = False
    """Whether addresses must be signed by Prolific."""
    address: str = ""
    """Where the platform sends people; a signed address must be made for it."""
    joins_per_address: Annotated[int, Field(ge=0)] = 20
    """People who may come from one address in a day; 0 for any number."""
    every_s: Annotated[float, Field(ge=10)] = 60
    """How often a running server fetches statuses."""
    api: str = "https://api.prolific.com"


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


class Attention(Strict):
    """A question that names its right answer, for those who read it."""

    question: LongText
    options: Annotated[tuple[ShortText, ...], Field(min_length=2)] = ("Yes", "No")
    answer: ShortText
    at: Annotated[int, Field(ge=1)] = 1
    """The story of a group (ttcw), or the unit of a person, with which it is asked."""

    def item(self, id_: str) -> Item:
        """As an item of a rubric."""
        return Item(id_, 0, "", self.question, scale=Scale("choice", self.options))


class Recruiting(Strict):
    """The fields of a study's file that are about people. All of them can be left out."""

    quiz_tries: Annotated[int, Field(ge=1, le=20)] = 2
    """How often the quiz may be answered. Prolific asks for two at least."""
    minutes: Annotated[float, Field(gt=0, le=100_000)] = 30
    """How long a unit is kept for somebody who has answered nothing of it."""
    entry: Entry = Entry()
    codes: Codes = Codes()
    tutorial: tuple[Example, ...] = ()
    about: tuple[AboutQuestion, ...] = ()
    attention: tuple[Attention, ...] = ()
    attention_wrong: Annotated[int, Field(ge=0)] = 0
    """Wrong answers to attention items that are let pass."""
    repeat: tuple[ShortText, ...] = ()
    """Items that are asked again: of the first story of a group once all were read (ttcw), or of a
    person's first unit after a later one."""
    repeat_at: Annotated[int, Field(ge=2)] = 2
    """The unit after which they are asked again."""

    @property
    def attention_items(self) -> Mapping[str, Attention]:
        """By what answers to them are kept under."""
        return {f"attention_{k}": one for k, one in enumerate(self.attention, 1)}

    @property
    def questions_digest(self) -> str:
        """What of it decides the answers; empty where there is nothing, as in older studies."""
        asked = {
            "tutorial": self.tutorial,
            "about": self.about,
            "attention": self.attention,
            "repeat": (self.repeat, self.repeat_at) if self.repeat else (),
        }
        given = {name: value for name, value in asked.items() if value}
        return repr(given) if given else ""

    def check(self, where: str) -> None:
        """Raise `InputError` where fields do not fit each other."""
        self._check_entry(where)
        ids = [one.id for one in self.about]
        for one in self.about:
            place = f"{where}: about: {one.id}"
            if ids.count(one.id) > 1:
                raise InputError(f"{place}: two questions have this id; give each its own")
            if (fault := one.item.scale.fault()) is not None:
                raise InputError(f"{place}: {fault}")
            if one.options and (one.low, one.high) != (None, None):
                raise InputError(f"{place}: has options, so remove low and high")
        for number, check in enumerate(self.attention, 1):
            if check.answer not in check.options:
                raise InputError(
                    f"{where}: attention {number}: the answer {check.answer!r} is none of its "
                    f"options"
                )
        for outcome, code in self.codes:
            if ":" in code and not code.startswith("https://"):
                raise InputError(
                    f"{where}: codes: {outcome}: {code!r} is neither a code nor a link that begins "
                    f"with https://"
                )

    def _check_entry(self, where: str) -> None:
        entry = self.entry
        if entry.allow and not (Path(where).parent / entry.allow).is_file():
            raise InputError(
                f"{where}: entry: allow: {entry.allow} does not exist; create it with the ids of "
                "those who may take part, one per line"
            )
        if entry.signed and not entry.address.startswith("https://"):
            raise InputError(
                f"{where}: entry: signed: addresses are signed for one host; name it as `address`, "
                "as in https://your.host"
            )
        if entry.signed and entry.platform == "mturk":
            raise InputError(f"{where}: entry: signed: only Prolific signs addresses")
        # A token goes there: only over https, or to this machine.
        if not re.match(r"https://|http://(127\.0\.0\.1|localhost)[:/]", entry.api):
            raise InputError(f"{where}: entry: api: must begin with https://")
