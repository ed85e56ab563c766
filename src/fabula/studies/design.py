"""A study as data: what is read, by how many, the questions, and the instructions.

A study is a TOML file that a researcher edits. Errors name the field.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
import unicodedata
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from fabula.errors import InputError
from fabula.rubrics.load import load_rubric
from fabula.studies.labels import ENGLISH, Labels, load_labels
from fabula.studies.recruiting import LongText, Outcome, Recruiting, ShortText, Strict
from fabula.types import Rubric

Kind = Literal["ttcw", "feedback", "pairs"]
NewKind = Literal["ttcw", "feedback", "pairs", "best-worst"]
"""Starter files; `best-worst` is a pairs study with four stories at a time."""
DESIGNS: tuple[NewKind, ...] = ("ttcw", "feedback", "pairs", "best-worst")
_HERE = Path(__file__).parent


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
    """The TOML file."""

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
    completion_code: str = ""
    language: str = "en"
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
    completion_code: str
    texts: Texts
    quiz: tuple[QuizQuestion, ...]
    quiz_pass: int
    """Number of quiz questions that must be right."""

    rubric_file: Path | None = None
    """Path of the rubric, unless it ships with Fabula."""
    per_story: int = 1
    """Maximum number of units about one story per participant, and only if each shows the same
    version of it.
    """
    people: Recruiting = field(default_factory=Recruiting)
    at_once: int = 2
    """Number of stories shown together: two, of which one is preferred, or four, of which the best
    and the worst are named (pairs).
    """
    ties: bool = False
    """Whether participants may prefer neither of two stories (pairs)."""
    max_pairs: int | None = None
    """Number of pairs, or sets of four, to draw; None means all pairs within groups, or twice as
    many sets as stories (pairs).
    """
    labels: Labels = field(default=ENGLISH, repr=False)
    """The page's interface text, in the language of the study."""

    def code(self, outcome: Outcome) -> str:
        """Return the code or link for participants with this outcome; empty if there is none."""
        code: str = getattr(self.people.codes, outcome)
        if not code and outcome == "attention":
            return self.code("done")
        return code or (self.completion_code if outcome == "done" else "")

    @property
    def digest(self) -> str:
        """Return an eight-digit digest of what determines the answers: questions, texts, quiz.

        Readers per unit are not included, because they may be increased while a study runs.
        """
        shown = repr(
            (
                self.id,
                self.kind,
                self.rubric.digest,
                self.group_rubric and self.group_rubric.digest,
                self.reason_words,
                self.seed,
                self.texts,
                self.quiz,
                self.quiz_pass,
                self.ties,
                self.at_once,
                self.labels.language,
                self.labels.digest,
            )
        )
        return hashlib.sha256((shown + self.people.questions_digest).encode()).hexdigest()[:8]


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
    try:
        labels = load_labels(file.language, path.parent)
    except InputError as error:
        raise InputError(f"{path}: language: {error}") from error
    left = {"contact", "thanks"} - file.texts.model_fields_set
    texts = file.texts.model_copy(update={name: labels(name) for name in sorted(left)})
    rubric_file = path.parent / file.rubric if file.rubric.endswith(".toml") else None
    rubric = load_rubric(rubric_file or file.rubric)
    group_rubric = labels.rubric(load_rubric("preference")) if file.design == "ttcw" else None
    _check_rubric(rubric, group_rubric, file.design, path)
    _check_checks(file, rubric, path)
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
        "people": Recruiting(**{name: getattr(file, name) for name in Recruiting.model_fields}),
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


def _check_checks(file: _File, rubric: Rubric, path: Path) -> None:
    """Raise `InputError` if an attention check would never be asked."""
    known = {item.id: item for item in rubric.items}
    for id_ in file.repeat:
        if id_ not in known:
            raise InputError(
                f"{path}: repeat: {rubric.id} has no item {id_}; it has {', '.join(known)}"
            )
        if known[id_].show_if or known[id_].reveals:
            raise InputError(
                f"{path}: repeat: {id_} is not always asked; name items that are, of {rubric.id}"
            )
    if file.design == "ttcw":
        return
    places = {f"attention {k}: at": one.at for k, one in enumerate(file.attention, 1)}
    places |= {"repeat_at": file.repeat_at} if file.repeat else {}
    late = [name for name, at in places.items() if at > file.per_participant]
    if late:
        raise InputError(
            f"{path}: {late[0]}: nobody is given that many units; raise per_participant "
            f"({file.per_participant}), or name an earlier one"
        )


def new_study(
    path: Path, design: NewKind, documents: Path, *, title: str = "", group_field: str = "group"
) -> None:
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
    if title:
        first, _, rest = text.partition("\ntitle = ")
        text = f"{first}\ntitle = {_quoted(title)}\n{rest.partition(chr(10))[2]}"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _quoted(text: str) -> str:
    # TOML's basic strings use JSON's syntax.
    return json.dumps(text.encode(errors="replace").decode(), ensure_ascii=False)
