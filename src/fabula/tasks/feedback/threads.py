"""A dangling thread: a thing is brought in that promises to matter, and never comes back."""

from __future__ import annotations

import re

import numpy as np

from fabula.tasks.feedback.changes import Edit, Fault
from fabula.tasks.feedback.characters import characters
from fabula.tasks.feedback.narration import Narration, excerpt, word_set
from fabula.text.speech import quotations_of

__all__ = ["check_thread", "plant_thread"]

# {who} is the person. No pronoun stands for the person, whose gender may be unknown, and no place
# or time is named, which the story may not have.
_PLANTS = {
    "letter": "Unknown to anyone else, {who} {had} a sealed letter that {was} not to be opened "
    "before the very last day.",
    "key": "Before going any further, {who} {made} sure that the small brass key {was} still where "
    "nobody would look for it.",
    "box": "Only {who} {knew} about the little locked box, and what {would} happen once it {was} "
    "opened.",
    "map": "More than once, {who} {wondered} who had sent the torn map, and when the other half "
    "{would} come.",
    "ring": "Nobody {noticed} the silver ring that {who} {had} hidden away for the day when it "
    "{would} be needed.",
    "parcel": "There {was} also the small parcel that a stranger {had_} entrusted to {whom}, with "
    "a promise to come back for it.",
}
# For stories that name nobody.
_NAMELESS = {
    "letter": "Where nobody {looked}, a sealed letter {was} waiting for the one who {was} meant to "
    "open it.",
    "key": "Where nobody {looked}, a small brass key {was} waiting for the one who {would} need "
    "it.",
    "box": "Nobody {knew_} yet about the little locked box, and what {would} happen once it {was} "
    "opened.",
    "map": "Somebody {had_} torn the map in two, and the other half {was} still to be found.",
    "ring": "Nobody {noticed} the silver ring that {was} to change everything.",
    "parcel": "There {was} also the small parcel that a stranger {had_} left behind, with a "
    "promise to come back for it.",
}
_FORMS = {
    # In the past; in the present of a third person, and of the first.
    "had": ("had", "has", "have"), "made": ("made", "makes", "make"),
    "knew": ("knew", "knows", "know"), "wondered": ("wondered", "wonders", "wonder"),
    "noticed": ("noticed", "notices", "notices"), "was": ("was", "is", "is"),
    "would": ("would", "will", "will"), "had_": ("had", "has", "has"),
    "knew_": ("knew", "knows", "knows"), "looked": ("looked", "looks", "looks"),
}  # fmt: skip
_MIN_NARRATOR = 3
# A sentence that begins so leans on the one before it.
_LEANING = word_set(
    "he she it they him her his its their them this that these those there then so but and or yet "
    "both another one which who such instead still however otherwise neither nor too"
)


def plant_thread(story: Narration, rng: np.random.Generator) -> Fault | str:
    """A sentence in the first half brings in a thing, of which the story never speaks again."""
    if story.tense == "unclear":
        return "it is told neither in the past nor in the present"
    who, named = _protagonist(story)
    things = [thing for thing in _PLANTS if not _places(thing, story.text)]
    places = _ends(story, named)
    if not things:
        return "all things that could be planted are in it already"
    if not places:
        return "no sentence of its first half can be followed by another"
    thing = things[int(rng.integers(len(things)))]
    k = places[int(rng.integers(len(places)))]
    planted = _sentence(thing, who, story.tense == "past")
    end = story.sentences[k][1]
    return Fault(
        "thread",
        (Edit(end, end, f" {planted}"),),
        f"After the sentence '{excerpt(story.text, story.sentences[k])}', a {thing} is brought in "
        f"('{planted}') that is never mentioned again.",
        {"thing": thing, "person": who, "planted": planted, "place": end + 1},
    )


def _protagonist(story: Narration) -> tuple[str | None, int]:
    """Who is named most often, or the narrator, or nobody; and where for the first time."""
    narrator = [
        start for start, token in story.words()
        if token.text == "I" and token.tag_ == "PRP" and not story.is_quoted(start, start + 1)
    ]  # fmt: skip
    if len(narrator) >= _MIN_NARRATOR:
        return "I", narrator[0]
    people = characters(story)
    return (people[0].name, people[0].places[0]) if people else (None, 0)


def _sentence(thing: str, who: str | None, is_past: bool) -> str:
    column = 0 if is_past else 2 if who == "I" else 1
    forms = {name: three[column] for name, three in _FORMS.items()}
    template = _NAMELESS[thing] if who is None else _PLANTS[thing]
    return template.format(who=who, whom="me" if who == "I" else who, **forms)


def _places(thing: str, text: str) -> list[int]:
    """Where a thing is named, also as a part of a word: keys, keyhole, letterbox."""
    return [match.start() for match in re.finditer(rf"(?<!\w){thing}", text, re.IGNORECASE)]


def _ends(story: Narration, named: int) -> list[int]:
    """Sentences that another may follow, the best kind that there is of them.

    Best is the end of a narrated paragraph, after which nobody is called he or she before being
    named.
    """
    text, spans = story.text, story.sentences
    found: list[tuple[int, int]] = []
    for k in range(story.sentence_of(named), len(spans) // 2):
        start, end = spans[k]
        following = text[end : spans[k + 1][0]]
        is_end = re.search(r"\n\s*\n", following) is not None
        # Verse, and lines broken by hand, stay whole.
        fits = is_end or "\n" not in following
        if story.is_quoted(start, end + 1) or text[end - 1] not in ".!?" or not fits:
            continue
        if following.strip() or "\n" in text[start:end] or re.search(r"\n[ \t]", following):
            continue
        after = text[slice(*spans[k + 1])]
        first = re.search(r"[\w’']+", after)
        if first is None or first[0].lower() not in _LEANING:
            found.append((k, (0 if is_end else 1) + (2 if _calls_back(after) else 0)))
    best = min((rank for _, rank in found), default=0)
    return [k for k, rank in found if rank == best]


def _calls_back(sentence: str) -> bool:
    """Whether the narration says he or she before it names anybody."""
    plain = sentence
    for one in reversed(quotations_of(sentence)):
        plain = f"{plain[: one.start]} {plain[one.end :]}"
    pronoun = re.search(r"\b(?:he|she|his|her|him|they|their)\b", plain, re.IGNORECASE)
    return pronoun is not None and not re.search(r"\b[A-Z]\w+", plain[1 : pronoun.start()])


def check_thread(story: Narration, fault: Fault, changed: Narration) -> str | None:
    """Why a story does not have the fault; None where it has."""
    thing, planted, place = (fault.details[name] for name in ("thing", "planted", "place"))
    if changed.text[place : place + len(planted)] != planted:
        return "the planted sentence is not at its place"
    if _places(thing, story.text) or len(_places(thing, changed.text)) != 1:
        return "the planted thing is mentioned elsewhere"
    who = fault.details["person"]
    if who is not None and not re.search(rf"(?<!\w){re.escape(who)}(?!\w)", story.text[:place]):
        return "the person is not named before"
    return None
