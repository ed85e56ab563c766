"""A continuity fault: somebody is called by another name from the middle of the story on."""

from __future__ import annotations

import re

import numpy as np

from fabula.tasks.feedback.changes import Edit, Fault
from fabula.tasks.feedback.characters import (
    Character,
    characters,
    first_names,
    mentions_of,
)
from fabula.tasks.feedback.narration import Narration, excerpt

__all__ = ["check_name", "rename_character"]

_MIN_MENTIONS = 2


def rename_character(story: Narration, rng: np.random.Generator) -> Fault | str:
    """The person named most often has another first name from a sentence past the middle on."""
    people = characters(story)
    if not people:
        return "it calls nobody by a first name that is certain"
    middle = len(story.sentences) / 2
    for person in people:
        numbers = [story.sentence_of(place) for place in person.places]
        if sum(k < middle for k in numbers) < _MIN_MENTIONS:
            continue
        late = sorted({k for k in numbers if k >= middle})
        late = [k for k in late if sum(n >= k for n in numbers) >= _MIN_MENTIONS]
        others = [
            name for name in first_names(person.gender, story.text) if name[0] != person.name[0]
        ]
        if late and others:
            sentence = story.sentences[late[int(rng.integers(len(late)))]]
            return _renamed(story, person, others[int(rng.integers(len(others)))], sentence)
    return "it names nobody twice in both halves"


def _renamed(story: Narration, person: Character, new: str, sentence: tuple[int, int]) -> Fault:
    edits = []
    for start, end in mentions_of(person.name, story.text):
        if start >= sentence[0]:
            was = story.text[start:end]
            edits.append(Edit(start, end, new.upper() if was.isupper() else new))
    shown = excerpt(story.text, sentence, edits)
    return Fault(
        "continuity",
        tuple(edits),
        f"From the sentence '{shown}' on, {person.name} is called {new}.",
        {"old": person.name, "new": new, "place": sentence[0]},
    )


def check_name(story: Narration, fault: Fault, changed: Narration) -> str | None:
    """Why a story does not have the fault; None where it has."""
    old, new, place = (fault.details[key] for key in ("old", "new", "place"))
    if changed.text[:place] != story.text[:place]:
        return "something before the place changed"
    if re.search(rf"(?<!\w){re.escape(new)}(?!\w)", story.text, re.IGNORECASE):
        return "the new name was there before"
    if re.search(rf"(?<!\w){re.escape(old)}(?!\w)", changed.text[place:], re.IGNORECASE):
        return "the old name is still there after the place"
    if len(mentions_of(old, changed.text[:place])) < _MIN_MENTIONS:
        return "the old name is not there before the place"
    return None if len(mentions_of(new, changed.text[place:])) >= _MIN_MENTIONS else "too few"
