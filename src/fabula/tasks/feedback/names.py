"""A continuity fault: a character's name changes from the middle of the story on."""

from __future__ import annotations

import re

import numpy as np

from fabula.tasks.feedback.characters import (
    characters,
    first_names,
    kinds_called,
    mentions_of,
)
from fabula.tasks.feedback.narration import Narration, excerpt
from fabula.tasks.feedback.story_edits import Edit, Fault

__all__ = ["check_name", "rename_character"]

_MIN_MENTIONS = 2


def rename_character(story: Narration, rng: np.random.Generator) -> Fault | str:
    """Rename a character from a mention after the first third on.

    The person named most often gets another first name; if nobody is named, a character called by
    what they are, such as the fox, is called something else of the kind.
    """
    third = len(story.sentences) / 3
    people = characters(story)
    called = [(one.name, one.places, first_names(one.gender, story.text)) for one in people]
    called = [
        (name, places, [o for o in others if o[0] != name[0]]) for name, places, others in called
    ] or kinds_called(story)
    if not called:
        return "nobody in it is certain to be called by a first name, or by what they are"
    for name, places, others in called:
        late = [
            place
            for place in places[_MIN_MENTIONS:]
            if story.sentence_of(place) >= third
            and story.sentence_of(place) > story.sentence_of(places[0])
        ]
        if late and others:
            place = late[int(rng.integers(len(late)))]
            return _renamed(story, name, others[int(rng.integers(len(others)))], place)
    return "nobody in it is named three times, one of them after its first third"


def _renamed(story: Narration, name: str, new: str, place: int) -> Fault:
    edits = []
    for start, end in _mentions(name, story.text):
        if start >= place:
            was = story.text[start:end]
            shown = new.upper() if was.isupper() else new.capitalize() if was.istitle() else new
            edits.append(Edit(start, end, shown))
    sentence = story.sentences[story.sentence_of(place)]
    shown = excerpt(story.text, sentence, edits)
    the = "" if name[0].isupper() else "the "
    return Fault(
        "continuity",
        tuple(edits),
        f"From the sentence '{shown}' on, {the}{name} is called {the}{new}.",
        {"old": name, "new": new, "place": place},
    )


def _mentions(name: str, text: str) -> list[tuple[int, int]]:
    """Where a character is mentioned: by name, or in any case by what they are."""
    if name[0].isupper():
        return mentions_of(name, text)
    pattern = rf"(?<![\w-]){re.escape(name)}(?!\w|-\w)"
    return [match.span() for match in re.finditer(pattern, text, re.IGNORECASE)]


def check_name(story: Narration, fault: Fault, changed: Narration) -> str | None:
    """Why a story does not have the fault; None if it has."""
    old, new, place = (fault.details[key] for key in ("old", "new", "place"))
    if changed.text[:place] != story.text[:place]:
        return "the text before the place changed"
    if re.search(rf"(?<!\w){re.escape(new)}(?!\w)", story.text, re.IGNORECASE):
        return "the new name already occurred before"
    if re.search(rf"(?<!\w){re.escape(old)}(?!\w)", changed.text[place:], re.IGNORECASE):
        return "the old name still occurs after the place"
    if len(_mentions(old, changed.text[:place])) < _MIN_MENTIONS:
        return "the old name does not occur before the place"
    return None if _mentions(new, changed.text[place:]) else "the new name is not in its place"
