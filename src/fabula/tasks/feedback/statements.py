"""Two planted sentences, the second contradicting the first: on a fact, or on a person's motive.

A fact is planted if a story states none twice. A motive is what a person wants: later it is the
opposite, and nothing in between explains the change. The subject of the sentences is mentioned
nowhere else in the story, so that they contradict each other and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fabula.tasks.feedback.narration import Narration
from fabula.tasks.feedback.planting import (
    Person,
    bank,
    ends_of,
    is_named_before,
    places_of,
    protagonist,
    said_of,
    tense_column,
)
from fabula.tasks.feedback.story_edits import Edit, Fault

__all__ = ["check_motive", "check_statements", "pair_fault", "plant_motive", "plant_statements"]


def plant_statements(story: Narration, rng: np.random.Generator) -> Fault | str:
    """Plant a sentence in each half; the second contradicts the fact that the first states."""
    if story.main_tense == "unclear":
        return "it states no fact twice, and is told in neither the past nor the present"
    who = protagonist(story)
    found = _planted(story, "facts", who, rng) or (who and _planted(story, "facts", None, rng))
    return found or "it states no fact twice, and none can be planted in both halves"


def plant_motive(story: Narration, rng: np.random.Generator) -> Fault | str:
    """Plant what a person wants in the first half, and the opposite in the second."""
    if story.main_tense == "unclear":
        return "it is told in neither the past nor the present"
    who = protagonist(story)
    if who is None:
        return "it contains nobody who can safely be given a motive"
    found = _planted(story, "motives", who, rng)
    return found or "no motive can be planted in both halves"


def _planted(
    story: Narration, kind: str, who: Person | None, rng: np.random.Generator
) -> Fault | None:
    named = 0 if who is None else who.place
    early, late = ends_of(story, named), ends_of(story, named, late=True)
    fit = [
        pair
        for pair in bank()[kind]
        if (who is not None or "{who}" not in pair["first"])
        and not any(
            places_of(word, story.text) for word in (pair["thing"], *pair.get("others", "").split())
        )
    ]
    if not early or not late or not fit:
        return None
    pair = fit[int(rng.integers(len(fit)))]
    column = tense_column(story, who)
    both = said_of(pair["first"], who, column), said_of(pair["second"], who, column)
    a = early[int(rng.integers(len(early)))]
    b = late[int(rng.integers(len(late)))]
    words = {name: pair[name] for name in ("old", "new") if name in pair}
    person = None if who is None else who.name
    return pair_fault(story, kind, (a, b), both, pair["thing"], person, words)


def pair_fault(
    story: Narration,
    kind: str,
    after: tuple[int, int],
    planted: tuple[str, str],
    thing: str,
    person: str | None,
    words: Mapping[str, Any],
) -> Fault:
    """The fault of two sentences after those with the indices `after`; kind is facts or motives."""
    (first, second), (a, b) = planted, (story.sentences[k][1] for k in after)
    place = b + 1 + len(first) + 1
    is_motive = kind == "motives"
    why = (
        "which give opposite motives, and nothing explains the change."
        if is_motive
        else "which contradict each other."
    )
    details: dict[str, Any] = {
        "class": "planted",
        "key": thing,
        "thing": thing.lower(),
        **words,
        "planted": [first, second],
        "place": place,
        "stated": [a + 1],
    }
    if is_motive:
        details["person"] = person
    return Fault(
        "motive" if is_motive else "continuity",
        (Edit(a, a, f" {first}"), Edit(b, b, f" {second}")),
        f"Two sentences were planted, '{first}' and later '{second}', {why}",
        details,
    )


def check_statements(story: Narration, fault: Fault, changed: Narration) -> str | None:
    """Why a story does not have the fault; None if it has."""
    first, second = fault.details["planted"]
    at, place = fault.details["stated"][0], fault.details["place"]
    if changed.text[at : at + len(first)] != first:
        return "the first planted sentence is not in its place"
    if changed.text[place : place + len(second)] != second:
        return "the second planted sentence is not in its place"
    if at + len(first) >= place:
        return "the second planted sentence does not come after the first"
    return (
        "the planted text already occurred before"
        if places_of(fault.details["thing"], story.text)
        else None
    )


def check_motive(story: Narration, fault: Fault, changed: Narration) -> str | None:
    """The same check, for a motive of a person who is mentioned before."""
    who, at = fault.details["person"], fault.details["stated"][0]
    if who is not None and not is_named_before(who, changed.text[:at]):
        return "the person is not named earlier"
    return check_statements(story, fault, changed)
