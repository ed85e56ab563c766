"""A continuity fault: a character's name changes from the middle of the story on.

It goes beyond Rashkin et al. 2025, whose corruptions are visible within a few sentences. The rule
looks for a name that certainly is one, and the changed story is checked; a story without such a
name is left out, with the reason.
"""

from __future__ import annotations

import re

import numpy as np

from fabula.tasks.feedback.characters import characters, first_names, kinds_called, mentions_of
from fabula.tasks.feedback.narration import Narration, excerpt
from fabula.tasks.feedback.story_edits import Edit, Fault, apply_edits

RULES = "4"
"""The version of the rules, for signatures."""
_MAX_TRIES = 10
_MIN_MENTIONS = 2


def plant_rename(story: Narration, rng: np.random.Generator) -> Fault | str:
    """Rename a character so that the changed story has the fault, or say why that is impossible."""
    why_not: str | None = None
    for _ in range(_MAX_TRIES):
        fault = rename_character(story, rng)
        if isinstance(fault, str):
            return fault
        why_not = check_name(story, fault)
        if why_not is None:
            return fault
    return f"no change passed the check ({why_not})"


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
        tuple(edits),
        f"From the sentence '{shown}' on, {the}{name} is called {the}{new}.",
        {"old": name, "new": new},
    )


def _mentions(name: str, text: str) -> list[tuple[int, int]]:
    """Where a character is mentioned: by name, or in any case by what they are."""
    if name[0].isupper():
        return mentions_of(name, text)
    pattern = rf"(?<![\w-]){re.escape(name)}(?!\w|-\w)"
    return [match.span() for match in re.finditer(pattern, text, re.IGNORECASE)]


def check_name(story: Narration, fault: Fault) -> str | None:
    """Why a story does not have the fault; None if it has."""
    old, new = (fault.details[key] for key in ("old", "new"))
    place = fault.edits[0].start
    changed, _ = apply_edits(story.text, fault.edits)
    if re.search(rf"(?<!\w){re.escape(new)}(?!\w)", story.text, re.IGNORECASE):
        return "the new name already occurred before"
    if re.search(rf"(?<!\w){re.escape(old)}(?!\w)", changed[place:], re.IGNORECASE):
        return "the old name still occurs after the place"
    if len(_mentions(old, changed[:place])) < _MIN_MENTIONS:
        return "the old name does not occur before the place"
    return None if _mentions(new, changed[place:]) else "the new name is not in its place"
