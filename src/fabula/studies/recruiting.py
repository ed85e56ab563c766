"""Settings of a study about its participants.

They cover what participants are shown and asked before they read, and what takes them back to their
platform.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from fabula.errors import InputError
from fabula.scales import Scale
from fabula.types import Item

ShortText = Annotated[str, Field(min_length=1, max_length=300)]
LongText = Annotated[str, Field(max_length=60_000)]
_PROLIFIC = "https://api.prolific.com"
Outcome = Literal["done", "declined", "failed", "full", "withdrawn", "attention"]
"""How a participant's part in a study ends."""


class Strict(BaseModel):
    # A misspelt field must be an error, not silently ignored.
    model_config = ConfigDict(extra="forbid", frozen=True)


class Codes(Strict):
    """What takes people back to their platform, by the outcome of their part.

    Each is a code to enter there, or a link that begins with https://. Empty if there is none.
    """

    done: str = ""
    declined: str = ""
    failed: str = ""
    full: str = ""
    withdrawn: str = ""
    attention: str = ""
    """Replaces `done` for those with more wrong attention items than `attention_wrong`."""


class Entry(Strict):
    """Who may join from a platform."""

    platform: Literal["", "prolific", "mturk"] = ""
    """The only platform that people may join from; empty allows either."""
    studies: tuple[Annotated[str, Field(pattern=r"^[0-9a-zA-Z]{1,64}$")], ...] = ()
    """The study's ids at the platform; people from other studies are rejected. Their statuses can
    be fetched from Prolific.
    """
    allow: str = ""
    """A file of ids, next to the study's file; people not listed are rejected."""
    signed: bool = False
    """Whether URLs must be signed by Prolific."""
    address: str = ""
    """URL to which the platform sends people; signed URLs must be issued for it."""
    joins_per_address: Annotated[int, Field(ge=0)] = 20
    """Maximum number of people per IP address and day; 0 for no limit."""
    every_s: Annotated[float, Field(ge=10)] = 60
    """Interval at which a running server fetches statuses, in seconds."""
    api: str = _PROLIFIC


class Example(Strict):
    """A worked example in the tutorial: a text, a question about it, its answer and the reason."""

    text: LongText
    question: LongText
    answer: ShortText
    why: LongText = ""


class AboutQuestion(Strict):
    """A question about the participant.

    It has options to choose from, a number (`low` to `high`), or, with neither, free text.
    """

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
    question: ShortText
    options: tuple[ShortText, ...] = ()
    low: float | None = None
    high: float | None = None
    required: bool = False

    @property
    def item(self) -> Item:
        """Return the question as an item, so that it is asked and read like those of a rubric."""
        if self.options:
            scale = Scale("choice", self.options)
        elif self.low is None and self.high is None:
            scale = Scale("text")
        else:
            scale = Scale("number", low=self.low, high=self.high)
        return Item(self.id, 0, "", self.question, scale=scale)


class Attention(Strict):
    """An attention check: a question that names its right answer."""

    question: LongText
    options: Annotated[tuple[ShortText, ...], Field(min_length=2)] = ("Yes", "No")
    answer: ShortText
    at: Annotated[int, Field(ge=1)] = 1
    """The story of a group (ttcw), or the participant's unit, with which it is asked."""

    def item(self, id_: str) -> Item:
        """Return the question as an item of a rubric."""
        return Item(id_, 0, "", self.question, scale=Scale("choice", self.options))


class Recruiting(Strict):
    """The fields of a study's file that are about people. All of them are optional."""

    quiz_tries: Annotated[int, Field(ge=1, le=20)] = 2
    """Number of attempts at the quiz. Prolific requires at least two."""
    minutes: Annotated[float, Field(gt=0, le=100_000)] = 30
    """Minutes for which a unit is reserved before its first answer."""
    entry: Entry = Entry()
    codes: Codes = Codes()
    tutorial: tuple[Example, ...] = ()
    about: tuple[AboutQuestion, ...] = ()
    attention: tuple[Attention, ...] = ()
    attention_wrong: Annotated[int, Field(ge=0)] = 0
    """Number of wrong answers to attention items that are tolerated."""
    repeat: tuple[ShortText, ...] = ()
    """Items to repeat: about the first story of a group once all were read (ttcw), or about a
    participant's first unit after a later one.
    """
    repeat_at: Annotated[int, Field(ge=2)] = 2
    """The unit after which items are repeated."""

    @property
    def attention_items(self) -> Mapping[str, Attention]:
        """Return the attention items by the key under which answers are stored."""
        return {f"attention_{k}": one for k, one in enumerate(self.attention, 1)}

    @property
    def questions_digest(self) -> str:
        """Return a digest of what determines the answers."""
        again = (self.repeat, self.repeat_at) if self.repeat else ()
        return repr((self.tutorial, self.about, self.attention, again))

    def check(self, where: str) -> None:
        """Raise `InputError` if fields are inconsistent."""
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
        # Prolific's token goes to Prolific, or to a server of this machine in its place.
        if not re.fullmatch(rf"{_PROLIFIC}/?|http://(127\.0\.0\.1|localhost)(:\d+)?/?", entry.api):
            raise InputError(f"{where}: entry: api: must be {_PROLIFIC}, where its token goes")
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
