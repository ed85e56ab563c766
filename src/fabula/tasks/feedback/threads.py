"""A dangling thread: something is introduced that promises to matter, and never comes back."""

from __future__ import annotations

import numpy as np

from fabula.tasks.feedback.narration import Narration, excerpt
from fabula.tasks.feedback.planting import (
    bank,
    ends_of,
    is_named_before,
    places_of,
    protagonist,
    said_of,
    tense_column,
)
from fabula.tasks.feedback.story_edits import Edit, Fault

__all__ = ["check_thread", "plant_thread", "thread_fault"]


def plant_thread(story: Narration, rng: np.random.Generator) -> Fault | str:
    """Plant a sentence in the first half that introduces a thing the story never mentions again."""
    if story.main_tense == "unclear":
        return "it is told in neither the past nor the present"
    who, threads = protagonist(story), bank()["threads"]
    things = [thing for thing in threads["things"] if not places_of(_noun(thing), story.text)]
    places = ends_of(story, 0 if who is None else who.place)
    if who is not None and not places:
        who, places = None, ends_of(story, 0)
    if not things:
        return "it already contains everything that could be planted"
    if not places:
        return "no sentence of its first half allows another to follow"
    thing = things[int(rng.integers(len(things)))]
    templates = threads["nameless" if who is None else "sentences"]
    template = templates[int(rng.integers(len(templates)))]
    k = places[int(rng.integers(len(places)))]
    the_thing = f"the {thing.partition(' ')[2]}"
    planted = said_of(template, who, tense_column(story, who), a_thing=thing, the_thing=the_thing)
    return thread_fault(story, k, planted, thing, None if who is None else who.name)


def thread_fault(story: Narration, k: int, planted: str, thing: str, person: str | None) -> Fault:
    """The fault of inserting a sentence that introduces a thing after the sentence with index k."""
    end = story.sentences[k][1]
    return Fault(
        "thread",
        (Edit(end, end, f" {planted}"),),
        f"After the sentence '{excerpt(story.text, story.sentences[k])}', {thing} is brought in "
        f"('{planted}') that is never mentioned again.",
        {"thing": _noun(thing), "person": person, "planted": planted, "place": end + 1},
    )


def _noun(thing: str) -> str:
    return thing.rpartition(" ")[2]


def check_thread(story: Narration, fault: Fault, changed: Narration) -> str | None:
    """Why a story does not have the fault; None if it has."""
    thing, planted, place = (fault.details[name] for name in ("thing", "planted", "place"))
    if changed.text[place : place + len(planted)] != planted:
        return "the planted sentence is not in its place"
    if places_of(thing, story.text) or len(places_of(thing, changed.text)) != 1:
        return "the planted thing is mentioned elsewhere"
    who = fault.details["person"]
    if who is not None and not is_named_before(who, story.text[:place]):
        return "the person is not named earlier"
    return None
