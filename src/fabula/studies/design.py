"""A study as data: what is read, by whom and how many, the questions, and the instructions.

A study is a TOML file that a researcher edits. Errors name the field.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fabula.core.errors import InputError
from fabula.core.scales import Scale
from fabula.core.types import Item, Rubric
from fabula.rubrics.load import load_rubric
from fabula.studies.labels import ENGLISH, Labels, Language, load_labels

Kind = Literal["ttcw", "feedback", "pairs"]
NewKind = Literal["ttcw", "feedback", "pairs", "best-worst"]
"""Starter files; `best-worst` is a pairs study with four stories at a time."""
_HERE = Path(__file__).parent
ShortText = Annotated[str, Field(min_length=1, max_length=300)]
LongText = Annotated[str, Field(max_length=60_000)]
_PROLIFIC = "https://api.prolific.com"
Outcome = Literal["done", "declined", "failed", "full", "withdrawn", "attention"]
"""How a participant's part in a study ends."""


class Strict(BaseModel):
    # A misspelt field must be an error, not silently ignored.
    model_config = ConfigDict(extra="forbid", frozen=True)


class Codes(Strict):
    """What takes people back to their platform by outcome: a code, an https:// link, or nothing."""

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
    be fetched from Prolific."""
    allow: str = ""
    """A file of ids, next to the study's file; people not listed are rejected."""
    signed: bool = False
    """Whether URLs must be signed by Prolific."""
    address: str = ""
    """URL to which the platform sends people; signed URLs must be issued for it."""
    joins_per_address: Annotated[int, Field(ge=0)] = 20
    """Maximum number of people per IP address and day; 0 for no limit."""
    api: str = _PROLIFIC


class Example(Strict):
    """A worked example in the tutorial: a text, a question about it, its answer and the reason."""

    text: LongText
    question: LongText
    answer: ShortText
    why: LongText = ""


class AboutQuestion(Strict):
    """A question about the participant: options, a number from `low` to `high`, or free text."""

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
    participant's first unit after a later one."""
    repeat_at: Annotated[int, Field(ge=2)] = 2
    """The unit after which items are repeated."""

    @property
    def attention_items(self) -> Mapping[str, Attention]:
        """Return the attention items by the key under which answers are stored."""
        return {f"attention_{k}": check for k, check in enumerate(self.attention, 1)}

    @property
    def questions_digest(self) -> str:
        """Return a digest of what determines the answers."""
        again = (self.repeat, self.repeat_at) if self.repeat else ()
        return repr((self.tutorial, self.about, self.attention, again))

    @property
    def asked_with(self) -> Mapping[str, int]:
        """Return the number of the participant's unit that each check comes with, by its field."""
        again = {"repeat_at": self.repeat_at} if self.repeat else {}
        return {f"attention {k}: at": check.at for k, check in enumerate(self.attention, 1)} | again

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
        ids = [q.id for q in self.about]
        for question in self.about:
            place = f"{where}: about: {question.id}"
            if ids.count(question.id) > 1:
                raise InputError(f"{place}: two questions have this id; give each its own")
            if (fault := question.item.scale.fault()) is not None:
                raise InputError(f"{place}: {fault}")
            if question.options and (question.low, question.high) != (None, None):
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


class Texts(Strict):
    """Texts shown to participants; paragraphs are separated by blank lines."""

    welcome: LongText = ""
    consent: LongText = ""
    instructions: LongText = ""
    thanks: LongText = "Thank you."
    contact: ShortText = "the person who invited you"


class QuizQuestion(Strict):
    """One question of the qualifying quiz, with its single right answer."""

    text: LongText
    question: LongText
    options: Annotated[tuple[ShortText, ...], Field(min_length=2)]
    answer: ShortText
    why: LongText = ""


class _File(Recruiting):
    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,60}$")]
    title: ShortText
    design: Kind
    documents: str
    rubric: str
    raters: Annotated[int, Field(ge=1, le=1000)] = 3
    per_participant: Annotated[int, Field(ge=1, le=100_000)] = 1
    per_story: Annotated[int, Field(ge=1, le=1000)] = 1
    hours: Annotated[float, Field(gt=0, le=10_000)] = 24.0
    group_field: str = "group"
    seed: Annotated[int, Field(ge=0)] = 0
    reason_words: Annotated[int, Field(ge=0, le=200)] = 4
    language: Language = "en"
    at_once: Literal[2, 4] = 2
    ties: bool = False
    max_pairs: Annotated[int, Field(ge=1)] | None = None
    texts: Texts = Texts()
    quiz: tuple[QuizQuestion, ...] = ()
    quiz_pass: Annotated[int, Field(ge=0)] | None = None


@dataclass(frozen=True, slots=True)
class StudyDesign:
    """The full design of a study, fixed before the first participant arrives."""

    path: Path
    id: str
    title: str
    kind: Kind
    documents: Path
    rubric: Rubric
    group_rubric: Rubric | None
    """Asked after a group of stories has been read."""
    raters: int
    """Number of participants per unit."""
    per_participant: int
    """Maximum number of units per participant."""
    hours: float
    """How long a unit is reserved for an inactive participant."""
    group_field: str
    seed: int
    reason_words: int
    """Minimum number of words in a reason; 0 makes reasons optional."""
    texts: Texts
    quiz: tuple[QuizQuestion, ...]
    quiz_pass: int
    """Number of quiz questions that must be right."""

    rubric_file: Path | None = None
    """Path of the rubric, unless it ships with Fabula."""
    per_story: int = 1
    """Maximum number of units about one story per participant, all with the same version of it."""
    people: Recruiting = field(default_factory=Recruiting)
    at_once: int = 2
    """Stories shown together (pairs): two, one preferred; or four, the best and worst named."""
    ties: bool = False
    """Whether participants may prefer neither of two stories (pairs)."""
    max_pairs: int | None = None
    """Pairs or sets of four to draw; None: all pairs in groups, or two sets per story (pairs)."""
    labels: Labels = field(default=ENGLISH, repr=False)
    """The page's interface text, in the language of the study."""

    def code(self, outcome: Outcome) -> str:
        """Return the code or link for participants with this outcome; empty if there is none."""
        code: str = getattr(self.people.codes, outcome)
        return self.people.codes.done if not code and outcome == "attention" else code

    @property
    def digest(self) -> str:
        """An eight-digit digest of what determines the answers; `raters` may be raised later."""
        group_digest, labels = self.group_rubric and self.group_rubric.digest, self.labels
        shown: tuple[object, ...] = (self.id, self.kind, self.rubric.digest, group_digest)
        shown += (self.reason_words, self.seed, self.texts, self.quiz, self.quiz_pass)
        shown += (self.ties, self.at_once, labels.language)
        return hashlib.sha256(f"{shown}{self.people.questions_digest}".encode()).hexdigest()[:8]


def load_study(path: Path) -> StudyDesign:
    """Load a study from its file. Raises `InputError` naming the field and the remedy."""
    try:
        table = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); `fabula study new {path}` writes one"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not TOML: {error}") from error
    try:
        file = _File.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise InputError(f"{path}: {place}: {first['msg'][0].lower()}{first['msg'][1:]}") from error
    for number, question in enumerate(file.quiz, 1):
        if question.answer not in question.options:
            raise InputError(
                f"{path}: quiz question {number}: the answer {question.answer!r} is not one of its "
                "options"
            )
    needed = len(file.quiz) if file.quiz_pass is None else file.quiz_pass
    if needed > len(file.quiz):
        raise InputError(f"{path}: quiz_pass: there are only {len(file.quiz)} questions")
    file.check(str(path))
    labels = load_labels(file.language)
    left = {"contact", "thanks"} - file.texts.model_fields_set
    texts = file.texts.model_copy(update={name: labels(name) for name in sorted(left)})
    rubric_file = path.parent / file.rubric if file.rubric.endswith(".toml") else None
    rubric = load_rubric(rubric_file or file.rubric)
    group_rubric = labels.rubric(load_rubric("preference")) if file.design == "ttcw" else None
    _check_rubric(rubric, group_rubric, file.design, path)
    # Checks that would never be asked.
    known = {item.id: item for item in rubric.items}
    for id_ in file.repeat:
        if id_ not in known:
            has = ", ".join(known)
            raise InputError(f"{path}: repeat: {rubric.id} has no item {id_}; it has {has}")
        if known[id_].show_if or known[id_].reveals:
            raise InputError(
                f"{path}: repeat: {id_} is not always asked; name items that are, of {rubric.id}"
            )
    for name, number in file.asked_with.items() if file.design != "ttcw" else ():
        if number > file.per_participant:
            raise InputError(
                f"{path}: {name}: nobody is given that many units; raise per_participant "
                f"({file.per_participant}), or name an earlier one"
            )
    if file.design != "pairs" and (file.ties or file.at_once > 2 or file.max_pairs is not None):
        raise InputError(f"{path}: at_once, ties and max_pairs are only for the design pairs")
    if file.ties and file.at_once > 2:
        raise InputError(f"{path}: ties: of four stories the best and the worst are always named")
    names = {field.name for field in fields(StudyDesign)} & _File.model_fields.keys()
    as_written: dict[str, Any] = {name: getattr(file, name) for name in names}
    as_read = {
        "path": path,
        "kind": file.design,
        "documents": path.parent / file.documents,
        "rubric": rubric,
        "group_rubric": group_rubric,
        "rubric_file": rubric_file,
        "reason_words": 0 if file.design == "feedback" else file.reason_words,
        "texts": texts,
        "quiz_pass": needed,
        "people": file,
        "labels": labels,
    }
    return StudyDesign(**as_written | as_read)


def _check_rubric(rubric: Rubric, group_rubric: Rubric | None, kind: Kind, path: Path) -> None:
    """Raise `InputError` if the design cannot ask the items of a rubric."""
    if kind == "feedback":
        return
    taken = {item.id for item in group_rubric.items} if group_rubric else set()
    for item in rubric.items:
        why = None
        if item.scale.is_ranking:
            why = "ranks a group, but is asked about one story at a time"
        elif item.id in taken:
            why = "is already asked about the group of stories"
        elif item.reveals or rubric.facts:
            why = "is about feedback; use the design feedback"
        elif kind == "pairs" and (item.show_if or not item.scale.is_test):
            why = "is not a yes-no question that is always asked, so it cannot be asked about pairs"
        if why is not None:
            raise InputError(f"{path}: rubric: the item {item.id} of {rubric.id} {why}")
    if not any(item.scale.is_test for item in rubric.items):
        raise InputError(f"{path}: rubric: {rubric.id} has no yes-no item, which ttcw counts")


def new_study(path: Path, design: NewKind, documents: Path, *, group_field: str = "group") -> None:
    """Write a ready-to-run study for the researcher to edit. Raises `InputError`."""
    if path.exists():
        raise InputError(f"{path}: already exists; choose another name, or edit it")
    if path.suffix != ".toml":
        raise InputError(f"{path}: a study's file must end in .toml")
    shown = Path(os.path.relpath(documents.resolve(), path.resolve().parent))
    text = (_HERE / "designs" / f"{design}.toml").read_text(encoding="utf-8")
    plain = unicodedata.normalize("NFKD", path.stem.casefold()).encode("ascii", "ignore").decode()
    name = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    name = (name if name[:1].isalpha() else f"study-{name}")[:61].strip("-")
    text = text.replace("ID", _quoted(name), 1).replace("DOCUMENTS", _quoted(shown.as_posix()), 1)
    text = text.replace('group_field = "group"', f"group_field = {_quoted(group_field)}")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _quoted(text: str) -> str:
    # TOML's basic strings use JSON's syntax.
    return json.dumps(text.encode(errors="replace").decode(), ensure_ascii=False)
