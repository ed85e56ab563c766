"""Units of documents for participants, and what must never reach their browser."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fabula.errors import InputError
from fabula.rubrics.released import STORIES_FILE, read_released_stories
from fabula.store import read_rows
from fabula.studies.design import StudyDesign
from fabula.studies.pairs import chosen_pairs, chosen_sets, pair_key
from fabula.text import TextSettings, check_ids, read_documents
from fabula.text.feedback_pieces import feedback_documents
from fabula.types import Document


@dataclass(frozen=True, slots=True)
class Unit:
    """The texts one participant reads at a time: a group's stories, or a story and its feedback."""

    key: str
    """Visible to the researcher only."""
    documents: tuple[Document, ...]
    facts: Mapping[str, object] = field(default_factory=dict)
    """Facts available to conditions; never sent to a browser."""
    stories: Mapping[str, str | None] = field(default_factory=dict)
    """The stories it reveals: for each, the version that is read, or None for several. A reader who
    has seen the original knows what was changed.
    """
    n_versions: int = 0
    """Maximum number of versions of one story within the unit; 0 and 1 reveal nothing."""


def read_units(design: StudyDesign) -> list[Unit]:
    """Return the units of a study, in the order of its documents. Raises `InputError`."""
    path = design.documents
    if not path.exists():
        raise InputError(f"{design.path}: documents: {path} does not exist")
    if design.kind == "feedback":
        shows_original = any(item.reveals for item in design.rubric.items)
        units = [
            Unit(
                document.id,
                (document,),
                {n: document.meta.get(n) for n in design.rubric.facts},
                *_marks([document], is_feedback=True, shows_original=shows_original),
            )
            for document in feedback_documents(list(read_rows(path)), str(path))
        ]
    else:
        groups = _groups(_stories(path), design)
        if design.kind == "pairs":
            groups = _pairs(groups, design)
        units = [Unit(key, tuple(own), {}, *_marks(own)) for key, own in groups.items()]
    if not units:
        raise InputError(f"{path}: contains nothing to read")
    _check_checks(design, units)
    return units


def _check_checks(design: StudyDesign, units: Sequence[Unit]) -> None:
    """Raise `InputError` if an attention check comes after more units than anybody reads."""
    people = design.people
    if design.kind == "ttcw" or not (people.repeat or people.attention):
        return
    n = count_for_one_person(units, design.per_story)
    late = {"repeat_at": people.repeat_at} if people.repeat else {}
    late |= {f"attention {k}: at": one.at for k, one in enumerate(people.attention, 1)}
    for name, at in late.items():
        if at > n:
            raise InputError(
                f"{design.path}: {name}: these documents give nobody that many units ({n:,} at "
                f"most); raise per_story ({design.per_story}), or name an earlier one"
            )


def _marks(
    documents: Sequence[Document], *, is_feedback: bool = False, shows_original: bool = False
) -> tuple[Mapping[str, str | None], int]:
    """Return the stories that documents are versions of, and the most versions of any.

    Stories are keyed by their ids and by their words; each has the version that is read, or None
    for several. is_feedback: whether the documents are pieces of feedback, each with the story it
    is about. shows_original: whether the reader is finally shown the story before it was changed.
    """
    found: dict[str, set[str]] = {}
    for document in documents:
        read = _digest(document.meta["story"] if is_feedback else document.text)
        original = _digest(document.meta.get("original", ""))
        marks = {f"text {read}", f"text {original or read}"}
        if "story_id" in document.meta:
            marks.add(f"id {document.meta['story_id']}")
        for mark in marks:
            found.setdefault(mark, set()).add(read)
            if shows_original and original:
                found[mark].add(original)
    only = {mark: next(iter(seen)) if len(seen) == 1 else None for mark, seen in found.items()}
    return only, max(map(len, found.values()))


def _digest(text: object) -> str:
    """Return a digest of the words; empty for none."""
    words = " ".join(str(text).split())
    return hashlib.sha256(words.encode(errors="replace")).hexdigest() if words else ""


class Seen:
    """Versions of each story that one person has read, and what they may still read."""

    def __init__(self, per_story: int, units: Iterable[Unit] = ()) -> None:
        self._per_story = per_story
        self._versions: dict[str, list[str | None]] = {}
        for unit in units:
            self.add(unit)

    def add(self, unit: Unit) -> None:
        for mark, version in unit.stories.items():
            self._versions.setdefault(mark, []).append(version)

    def allows(self, unit: Unit) -> bool:
        """Return whether the unit, with earlier ones, keeps secret what was done to each story."""
        for mark, version in unit.stories.items():
            seen = self._versions.get(mark, [])
            is_other = version is None or any(earlier != version for earlier in seen)
            if seen and (is_other or len(seen) >= self._per_story):
                return False
        return True


def count_for_one_person(units: Sequence[Unit], per_story: int = 1) -> int:
    """Return how many units one person can read before a story has been revealed to them."""
    seen, n = Seen(per_story), 0
    for unit in units:
        if seen.allows(unit):
            seen.add(unit)
            n += 1
    return n


def _stories(path: Path) -> list[Document]:
    if path.name == STORIES_FILE:
        return read_released_stories(path)
    return list(read_documents([str(path)]))


class NoGroup(InputError):  # noqa: N818 (names what is wrong)
    """A story does not name its group."""


def group_field_of(path: Path) -> str:
    """Return the field that groups the stories of a file.

    That is `group`, or the plot that each was written from, as recorded by `fabula stories write`.
    """
    stories = _stories(path)
    has_groups = any("group" in story.meta for story in stories)
    is_written = all(story.prompt_id is not None for story in stories)
    return "prompt_id" if is_written and not has_groups else "group"


def _pairs(
    groups: Mapping[str, Sequence[Document]], design: StudyDesign
) -> dict[str, Sequence[Document]]:
    """Return the groups of documents to compare, by name. Raises `InputError`."""
    size, listed = design.at_once, list(groups.values())
    for group, members in groups.items():
        if len(members) == 1:
            raise InputError(
                f"{design.documents}: the group {group!r} contains only one story, with nothing to "
                f"compare it with; remove it, or name another group_field in {design.path}"
            )
        if len(members) < size:
            raise InputError(
                f"{design.documents}: the group {group!r} contains only {len(members)} stories, "
                f"and {size} are shown at a time; remove it, or set at_once = 2 in {design.path}"
            )
    chosen: Sequence[Sequence[Document]] = (
        chosen_pairs(listed, design.max_pairs, design.seed)
        if size == 2
        else chosen_sets(listed, size, design.max_pairs, design.seed)
    )
    return {pair_key(*together): together for together in chosen}


def _groups(stories: Sequence[Document], design: StudyDesign) -> dict[str, Sequence[Document]]:
    check_ids(stories)
    groups: dict[str, list[Document]] = {}
    for story in stories:
        if not TextSettings().has_words(story.text):
            raise InputError(f"{design.documents}: the story {story.id!r} contains no words")
        group = story.meta.get(design.group_field)
        if group is None and design.group_field == "prompt_id":
            group = story.prompt_id
        if group is None or not str(group).strip():
            raise NoGroup(
                f"{design.documents}: the story {story.id!r} has no {design.group_field!r}; name "
                f"the field that groups stories as group_field in {design.path}"
            )
        groups.setdefault(str(group), []).append(story)
    return dict(groups)
