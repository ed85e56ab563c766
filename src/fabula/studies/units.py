"""What participants are given: units of documents, and what must never reach their browser."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fabula.errors import InputError
from fabula.rubrics.released import STORIES_FILE, read_released_stories
from fabula.store import read_rows
from fabula.studies.design import StudyDesign
from fabula.text import TextSettings, check_ids, read_documents
from fabula.text.feedback import feedback_documents
from fabula.types import Document

__all__ = ["Unit", "count_for_one_person", "read_units", "units_digest"]


@dataclass(frozen=True, slots=True)
class Unit:
    """What one participant reads at a time: the stories of a group, or a story and its feedback."""

    key: str
    """Known to the researcher only."""
    documents: tuple[Document, ...]
    facts: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    """What conditions may name; never sent to anybody."""
    stories: frozenset[str] = frozenset()
    """What it tells its reader about: of units that share a story, a person is given one. Whoever
    has seen a story as it was knows what was changed in it."""


def read_units(design: StudyDesign) -> list[Unit]:
    """The units of a study, in the order of its documents. Raises `InputError`."""
    path = design.documents
    if not path.exists():
        raise InputError(f"{design.path}: documents: {path} is not there")
    if design.kind == "feedback":
        units = [
            Unit(
                document.id,
                (document,),
                {n: document.meta.get(n) for n in design.rubric.facts},
                _story_marks(document),
            )
            for document in feedback_documents(list(read_rows(path)), str(path))
        ]
    else:
        units = _groups(_stories(path), design)
    if not units:
        raise InputError(f"{path}: holds nothing to read")
    return units


def _story_marks(feedback: Document) -> frozenset[str]:
    """The story that a piece of feedback is about, by its id and by its words as they were."""
    words = str(feedback.meta.get("original", feedback.meta.get("story", ""))).split()
    marks = {"text " + hashlib.sha256(" ".join(words).encode(errors="replace")).hexdigest()}
    if "story_id" in feedback.meta:
        marks.add(f"id {feedback.meta['story_id']}")
    return frozenset(marks)


def count_for_one_person(units: Sequence[Unit]) -> int:
    """How many units one person can be given: none that shares a story with another."""
    seen: set[str] = set()
    n = 0
    for unit in units:
        if seen.isdisjoint(unit.stories):
            n += 1
        seen |= unit.stories
    return n


def _stories(path: Path) -> list[Document]:
    if path.name == STORIES_FILE:
        return read_released_stories(path)
    return list(read_documents([str(path)]))


def _groups(stories: Sequence[Document], design: StudyDesign) -> list[Unit]:
    check_ids(stories)
    groups: dict[str, list[Document]] = {}
    for story in stories:
        if not TextSettings().has_words(story.text):
            raise InputError(f"{design.documents}: the story {story.id!r} holds no words")
        group = story.meta.get(design.group_field)
        if group is None and design.group_field == "prompt_id":
            group = story.prompt_id
        if group is None:
            raise InputError(
                f"{design.documents}: the story {story.id!r} has no {design.group_field!r}; name "
                f"the field that groups stories as group_field in {design.path}"
            )
        groups.setdefault(str(group), []).append(story)
    return [Unit(key, tuple(members)) for key, members in groups.items()]


def units_digest(units: Sequence[Unit]) -> str:
    """Eight digits over all that is read, so that nobody goes on with other documents."""
    digest = hashlib.sha256()
    for unit in units:
        for document in unit.documents:
            known: Any = sorted((str(k), str(v)) for k, v in document.meta.items())
            digest.update(repr((unit.key, document.id, document.text, known)).encode())
    return digest.hexdigest()[:8]
