"""A dangling thread: a thing is brought in that promises to matter, and never comes back."""

from __future__ import annotations

import re

import numpy as np

from fabula.tasks.feedback.characters import characters
from fabula.tasks.feedback.narration import Narration, excerpt, word_set
from fabula.tasks.feedback.story_edits import Edit, Fault
from fabula.text.speech import quotations_of

__all__ = ["check_thread", "ends_of", "places_of", "plant_thread", "protagonist"]

# Things that somebody could carry or hide in any age; the last word names them.
_THINGS = (
    "a sealed letter", "a small brass key", "a locked box", "a torn map", "a silver ring",
    "a small parcel", "a glass vial", "a wax seal", "a black feather", "an ivory comb",
    "a red ribbon", "a bent coin", "a tin whistle", "a small bell", "a blue bead",
    "a folded note", "a single glove", "a broken lantern", "a knotted cord", "a thin dagger",
)  # fmt: skip
# {who} is the person, {thing} what is brought in. No pronoun stands for the person, whose gender
# may be unknown, and no place or time is named, which the story may not have.
_PLANTS = (
    "Unknown to anyone else, {who} {had} {a_thing} that nobody {was} to see before the very last "
    "day.",
    "Before going any further, {who} {made} sure that {thing} {was} still where nobody would look "
    "for it.",
    "Only {who} {knew} about {thing}, and what {would} happen once it {was} found.",
    "More than once, {who} {wondered} who had sent {thing}, and when somebody {would} come for it.",
    "Nobody {noticed} {thing} that {who} {had} hidden away for the day when it {would} be needed.",
    "There {was} also {thing} that a stranger {had_} entrusted to {whom}, with a promise to come "
    "back for it.",
    "Long ago, {who} {had} promised never to speak of {thing}, and that promise {would} soon be "
    "broken.",
    "Somebody {had_} been following {whom} for days because of {thing}.",
    "If {thing} ever {came} to light, {who} {would} lose everything.",
)
# For stories that name nobody.
_NAMELESS = (
    "Where nobody {looked}, {a_thing} {was} waiting for the one who {was} meant to find it.",
    "Nobody {knew_} yet about {thing}, and what {would} happen once it {was} found.",
    "Nobody {noticed} {thing} that {was} to change everything.",
    "There {was} also {thing} that a stranger {had_} left behind, with a promise to come back for "
    "it.",
    "If {thing} ever {came} to light, nothing {would} be as before.",
)
_FORMS = {
    # In the past; in the present of a third person, and of the first.
    "had": ("had", "has", "have"), "made": ("made", "makes", "make"),
    "knew": ("knew", "knows", "know"), "wondered": ("wondered", "wonders", "wonder"),
    "noticed": ("noticed", "notices", "notices"), "was": ("was", "is", "is"),
    "would": ("would", "will", "will"), "had_": ("had", "has", "has"),
    "knew_": ("knew", "knows", "knows"), "looked": ("looked", "looks", "looks"),
    "came": ("came", "comes", "comes"),
}  # fmt: skip
_MIN_NARRATOR = 3
# A sentence that begins so leans on the one before it.
_LEANING = word_set(
    "he she it they him her his its their them this that these those there then so but and or yet "
    "both another one which who such instead still however otherwise neither nor too"
)


def plant_thread(story: Narration, rng: np.random.Generator) -> Fault | str:
    """A sentence in the first half brings in a thing, of which the story never speaks again."""
    if story.main_tense == "unclear":
        return "it is told neither in the past nor in the present"
    who, named = protagonist(story)
    things = [thing for thing in _THINGS if not places_of(_noun(thing), story.text)]
    places = ends_of(story, named)
    if not things:
        return "all things that could be planted are in it already"
    if not places:
        return "no sentence of its first half can be followed by another"
    thing = things[int(rng.integers(len(things)))]
    templates = _NAMELESS if who is None else _PLANTS
    template = templates[int(rng.integers(len(templates)))]
    k = places[int(rng.integers(len(places)))]
    planted = _sentence(template, thing, who, story.main_tense == "past")
    end = story.sentences[k][1]
    return Fault(
        "thread",
        (Edit(end, end, f" {planted}"),),
        f"After the sentence '{excerpt(story.text, story.sentences[k])}', {thing} is brought in "
        f"('{planted}') that is never mentioned again.",
        {"thing": _noun(thing), "person": who, "planted": planted, "place": end + 1},
    )


def _noun(thing: str) -> str:
    return thing.rpartition(" ")[2]


def protagonist(story: Narration) -> tuple[str | None, int]:
    """Who is named most often, or the narrator, or nobody; and where for the first time."""
    narrator = [
        start for start, token in story.words()
        if token.text == "I" and token.tag_ == "PRP" and not story.is_quoted(start, start + 1)
    ]  # fmt: skip
    if len(narrator) >= _MIN_NARRATOR:
        return "I", narrator[0]
    people = characters(story)
    return (people[0].name, people[0].places[0]) if people else (None, 0)


def _sentence(template: str, thing: str, who: str | None, is_past: bool) -> str:
    column = 0 if is_past else 2 if who == "I" else 1
    forms = {name: three[column] for name, three in _FORMS.items()}
    the = f"the {thing.partition(' ')[2]}"
    whom = "me" if who == "I" else who
    return template.format(who=who, whom=whom, a_thing=thing, thing=the, **forms)


def places_of(thing: str, text: str) -> list[int]:
    """Where a thing is named, also as a part of a word: keys, keyhole, letterbox."""
    return [match.start() for match in re.finditer(rf"(?<!\w){thing}", text, re.IGNORECASE)]


def ends_of(story: Narration, named: int, *, late: bool = False) -> list[int]:
    """Sentences of the first half, or of the second, that another may follow; the best there are.

    Best is the end of a narrated paragraph, after which nobody is called he or she before being
    named. None is before `named`, where somebody is named for the first time.
    """
    text, spans = story.text, story.sentences
    found: list[tuple[int, int]] = []
    middle = len(spans) // 2
    begin, stop = (middle, len(spans) - 1) if late else (0, middle)
    for k in range(max(begin, story.sentence_of(named)), stop):
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
    if places_of(thing, story.text) or len(places_of(thing, changed.text)) != 1:
        return "the planted thing is mentioned elsewhere"
    who = fault.details["person"]
    if who is not None and not re.search(rf"(?<!\w){re.escape(who)}(?!\w)", story.text[:place]):
        return "the person is not named before"
    return None
