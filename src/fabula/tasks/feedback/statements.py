"""A continuity fault in two planted sentences: the first states a fact, the second another one.

For stories that state none twice. The sentences were written for this; what they are about stands
nowhere else in the story, so that they contradict each other and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fabula.tasks.feedback.narration import Narration
from fabula.tasks.feedback.story_edits import Edit, Fault
from fabula.tasks.feedback.threads import ends_of, places_of, protagonist

__all__ = ["check_statements", "plant_statements"]


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two sentences that cannot both be true. `{who}` is the person; verbs are as in `_FORMS`."""

    thing: str
    old: str
    new: str
    first: str
    second: str
    others: str = ""
    """Words that may stand nowhere in the story either."""


_WEEK = "monday tuesday wednesday thursday friday saturday sunday"
_PAIRS = (
    _Pair("clock", "ten", "four", "The only clock {had} stopped at ten.",
          "The only clock still {stood} at four, where it had stopped."),
    _Pair("bell", "three", "five", "There {were} three bells in the tower nearby.",
          "All five bells in the tower nearby {were} silent."),
    _Pair("cat", "white", "black", "A white cat {slept} close by.",
          "The cat close by, black from nose to tail, {slept} on."),
    _Pair("candle", "two", "seven", "Two candles {were} burning.",
          "All seven candles {were} nearly burnt down."),
    _Pair("Tuesday", "Tuesday", "Friday", "It {was} a Tuesday.",
          "It {was} still the same day, a Friday.", _WEEK),
    _Pair("winter", "winter", "summer", "It {was} the last week of winter.",
          "So late in summer, nobody {expected} anything else.", "spring summer autumn snow"),
    _Pair("horse", "grey", "brown", "A grey horse {stood} tied to a post.",
          "The horse that {stood} tied to the post, a brown one, {was} restless."),
    _Pair("picture", "ship", "church", "The only picture there {was} of a ship.",
          "The only picture there, of an old church, {hung} crooked."),
    _Pair("coat", "green", "red", "{who} {wore} a green coat.",
          "The red coat that {who} {wore} {was} wet through.", "dress jacket cloak shirt"),
    _Pair("brother", "one", "two", "{who} {had} one brother, and no sisters.",
          "Of the two brothers that {who} {had}, neither {knew} of this.", "sister sibling son"),
    _Pair("ring", "gold", "silver", "{who} {wore} a plain gold ring.",
          "The silver ring that {who} always {wore} {felt} heavy."),
    _Pair("scar", "left", "right", "{who} {had} a long scar on the left hand.",
          "The scar on the right hand still {hurt} in the cold."),
)  # fmt: skip
_FORMS = {
    # In the past; in the present of a third person, and of the first.
    "had": ("had", "has", "have"), "wore": ("wore", "wears", "wear"),
    "was": ("was", "is", "is"), "were": ("were", "are", "are"), "felt": ("felt", "feels", "feels"),
    "stood": ("stood", "stands", "stands"), "slept": ("slept", "sleeps", "sleeps"),
    "expected": ("expected", "expects", "expects"), "hung": ("hung", "hangs", "hangs"),
    "knew": ("knew", "knows", "knows"), "hurt": ("hurt", "hurts", "hurts"),
}  # fmt: skip


def plant_statements(story: Narration, rng: np.random.Generator) -> Fault | str:
    """A sentence in each half; the second denies what the first states."""
    if story.main_tense == "unclear":
        return "it states no fact twice, and is told neither in the past nor in the present"
    who, named = protagonist(story)
    early, late = ends_of(story, named), ends_of(story, named, late=True)
    fit = [
        pair
        for pair in _PAIRS
        if (who is not None or "{who}" not in pair.first)
        and not any(places_of(word, story.text) for word in (pair.thing, *pair.others.split()))
    ]
    if not early or not late or not fit:
        return "it states no fact twice, and none can be planted in both halves"
    pair = fit[int(rng.integers(len(fit)))]
    column = 0 if story.main_tense == "past" else 2 if who == "I" else 1
    forms = {name: three[column] for name, three in _FORMS.items()}
    first = pair.first.format(who=who, **forms)
    second = pair.second.format(who=who, **forms)
    a = story.sentences[early[int(rng.integers(len(early)))]][1]
    b = story.sentences[late[int(rng.integers(len(late)))]][1]
    place = b + 1 + len(first) + 1
    return Fault(
        "continuity",
        (Edit(a, a, f" {first}"), Edit(b, b, f" {second}")),
        f"Two sentences were planted, '{first}' and later '{second}', which contradict each other.",
        {
            "class": "planted", "key": pair.thing, "thing": pair.thing.lower(), "old": pair.old,
            "new": pair.new, "planted": [first, second], "place": place, "stated": [a + 1],
        },
    )  # fmt: skip


def check_statements(story: Narration, fault: Fault, changed: Narration) -> str | None:
    """Why a story does not have the fault; None where it has."""
    first, second = fault.details["planted"]
    at, place = fault.details["stated"][0], fault.details["place"]
    if changed.text[at : at + len(first)] != first:
        return "the first planted sentence is not at its place"
    if changed.text[place : place + len(second)] != second:
        return "the second planted sentence is not at its place"
    return "what is planted was there before" if places_of(fault.details["thing"], story.text) \
        else None  # fmt: skip
