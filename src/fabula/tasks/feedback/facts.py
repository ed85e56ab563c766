"""A continuity fault: something the story has stated before is different at its last mention.

Only words of small closed classes change, and only where the story refers to the same thing: a
number or a colour of the same noun, `her sister` and `her sister`, Monday and Monday.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from fabula.tasks.feedback.narration import Narration, excerpt, word_set
from fabula.tasks.feedback.statements import check_statements, plant_statements
from fabula.tasks.feedback.story_edits import Edit, Fault

__all__ = ["CLASSES", "Mention", "change_fact", "check_fact", "mentioned_facts"]

_NUMBERS = "two three four five six seven eight nine ten eleven twelve"
_COLOURS = "red blue green yellow white black brown grey gray purple pink orange"
_WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_MONTHS = "January February March April May June July August September October November December"
_SEASONS = "spring summer autumn winter"
_MATERIALS = "golden silver wooden iron brass copper glass stone leather silk"
_COMPASS = "north south east west"
_COMPASS_ADJECTIVES = "northern southern eastern western"
# Kin of the same gender, so that the pronouns still fit; possible replacements.
_KIN = {
    "brother": "cousin uncle",
    "sister": "cousin aunt",
    "father": "uncle grandfather",
    "mother": "aunt grandmother",
    "grandfather": "uncle father",
    "grandmother": "aunt mother",
    "uncle": "cousin grandfather",
    "aunt": "cousin grandmother",
    "son": "nephew brother",
    "daughter": "niece sister",
    "nephew": "cousin son",
    "niece": "cousin daughter",
    "husband": "brother cousin",
    "wife": "sister cousin",
    "dad": "uncle grandpa",
    "mom": "aunt grandma",
    "mum": "aunt grandma",
    "grandma": "aunt mother",
    "grandpa": "uncle father",
}
CLASSES = {
    "number": _NUMBERS.split(),
    "colour": _COLOURS.split(),
    "weekday": _WEEKDAYS.split(),
    "month": _MONTHS.split(),
    "season": _SEASONS.split(),
    "material": _MATERIALS.split(),
    "direction": [*_COMPASS.split(), *_COMPASS_ADJECTIVES.split()],
    "kin": list(_KIN),
}
# These modify a noun, which is a part of the fact.
_SAID_OF = frozenset({"number", "colour", "material", "direction"})
_CLASS_OF = {word.lower(): name for name, words in CLASSES.items() for word in words}

_POSSESSIVES = word_set("his her their our my your")
_DEFINITE = word_set("the this that these those both all") | _POSSESSIVES
# Not facts of the story: body parts that come in pairs, measures, sayings, and skin colours.
_NO_NUMBER_OF = word_set(
    "arm ear eye foot hand knee leg lip shoulder parent side end half quarter corner season thing "
    "day week month year hour minute second time o'clock percent dollar mile way"
)
_NO_COLOUR_OF = word_set(
    "man woman person people boy girl child kid guy lady folk skin community family race hole "
    "market magic mail sheep tape herring thumb lie belt flag house cross light day noise board "
    "gold widow sea space rose"
)
_NO_MATERIAL_OF = word_set("hair eye voice light lining tongue heart age moon sun")
_COLOURS_OF = {
    "hair": "red black brown grey white",
    "beard": "red black brown grey white",
    "eye": "blue green brown grey",
    "wine": "red white",
}


@dataclass(frozen=True, slots=True)
class Mention:
    """A word of a class, and what it refers to: only equal `key`s are the same fact."""

    kind: str
    word: str
    key: str
    start: int
    end: int
    is_definite: bool


def mentioned_facts(story: Narration) -> list[Mention]:
    """All mentions that the rules understand, in order."""
    found = []
    for start, token in story.words():
        kind = _CLASS_OF.get(token.lower_)
        key = None if kind is None or _is_joined(token) else _key(kind, token)
        if kind is None or key is None:
            continue
        end = start + len(token)
        # Whose sister she is depends on who speaks; how many boats there are does not.
        is_own = kind == "kin" and token.text.islower()
        if not is_own or not story.is_quoted(start, end):
            found.append(Mention(kind, token.lower_, key, start, end, _is_definite(kind, token)))
    return found


def _is_joined(token: Any) -> bool:
    """Whether it is a part of something longer, such as two-faced."""
    around = [token.doc[k] for k in (token.i - 1, token.i + 1) if 0 <= k < len(token.doc)]
    # Also brown eyed, and between two worlds, which cannot become three.
    is_part = len(around) == 2 and bool(around[1].text.endswith("ed"))
    before = token.doc[max(token.i - 3, 0) : token.i]
    return (
        is_part
        or any(other.text in {"-", "–", "—", "/"} for other in around)
        or any(other.lower_ == "between" for other in before)
    )


def _key(kind: str, token: Any) -> str | None:
    word, head = token.lower_, _noun_of(token)
    if kind in _SAID_OF:
        is_of = head.pos_ == "NOUN" and head.i != token.i
        apart = {"number": _NO_NUMBER_OF, "colour": _NO_COLOUR_OF, "material": _NO_MATERIAL_OF}.get(
            kind, frozenset()
        )
        is_fit = is_of and token.text.islower() and head.lemma_.lower() not in apart
        # Beside another word of the class it would be ambiguous.
        alone = not any(
            c.i != token.i and _CLASS_OF.get(c.lower_) == kind
            for c in [*head.lefts, *token.conjuncts]
        )
        return f"{word} {head.lemma_.lower()}" if is_fit and alone else None
    if kind in ("weekday", "month"):
        is_name = token.text.istitle() and token.pos_ == "PROPN"
        # The first of May, and Miss May; other months may be names too.
        is_time = token.ent_type_ == "DATE"
        return word if is_name and is_time else None
    if kind == "season":
        # A specific one, not any: the summer, that winter. Spring is water too.
        is_certain = any(c.lower_ in ("the", "that", "this") for c in token.lefts)
        is_fit = is_certain and token.pos_ == "NOUN" and token.dep_ != "compound"
        return word if is_fit and word != "spring" else None
    return _kin_key(token)


def _noun_of(token: Any) -> Any:
    """The noun that an adjective or number modifies, before it or by `to be`; itself if none."""
    if token.dep_ in ("nummod", "amod", "compound"):
        return token.head
    if token.dep_ == "acomp" and token.head.lemma_ == "be":
        return next((c for c in token.head.lefts if c.dep_ == "nsubj"), token)
    return token


def _kin_key(token: Any) -> str | None:
    owners = [c.lower_ for c in token.lefts if c.lower_ in _POSSESSIVES]
    is_plain = token.text.islower() and token.tag_ == "NN"
    follows = token.doc[token.i + 1] if token.i + 1 < len(token.doc) else None
    if follows is not None and follows.text in {"'s", "’s"}:
        follows = None
    if token.text in ("Aunt", "Uncle") and follows is not None and follows.pos_ == "PROPN":
        return f"{token.lower_} {follows.lower_}"
    names = follows is not None and (follows.pos_ == "PROPN" or follows.lower_ in ("in", "and"))
    if is_plain and len(owners) == 1 and not names:
        return f"{owners[0]} {token.lower_}"
    return None


def _is_definite(kind: str, token: Any) -> bool:
    """Whether the mention refers to something already known: the three boats, her sister."""
    if kind not in _SAID_OF:
        return True
    head = _noun_of(token)
    return (
        any(c.lower_ in _DEFINITE or c.dep_ == "poss" for c in head.lefts)
        or head.lemma_ in _COLOURS_OF
    )


def change_fact(story: Narration, rng: np.random.Generator) -> Fault | str:
    """Replace a fact that is stated twice or more by another of its class at its last mention.

    If a story states none twice, two sentences are planted, the second contradicting the first.
    """
    by_key: dict[str, list[Mention]] = defaultdict(list)
    for mention in mentioned_facts(story):
        by_key[mention.key].append(mention)
    there = {word.lower() for word in re.findall(r"[^\W\d_]+", story.text)}
    options = []
    for mentions in by_key.values():
        first, last = mentions[0], mentions[-1]
        apart = story.sentence_of(last.start) > story.sentence_of(first.start)
        others = [word for word in _others(last) if word not in there]
        if len(mentions) >= _n_needed(last) and apart and last.is_definite and others:
            options.append((mentions, others))
    if not options:
        return plant_statements(story, rng)
    mentions, others = options[int(rng.integers(len(options)))]
    return _changed(story, mentions, others[int(rng.integers(len(others)))])


def _n_needed(mention: Mention) -> int:
    """How often a fact must be stated: `his wife` mentioned twice may be two men's."""
    owner = mention.key.partition(" ")[0]
    return 3 if mention.kind == "kin" and owner in _POSSESSIVES - {"my"} else 2


def _others(mention: Mention) -> list[str]:
    """Possible replacements for the word; the article must still fit."""
    kind, word = mention.kind, mention.word
    if kind == "kin":
        return ["cousin"] if mention.key.startswith(word) else _KIN[word].split()
    thing = mention.key.partition(" ")[2]
    words = [other.lower() for other in CLASSES[kind]]
    if kind == "number":
        words = [other for other in words if abs(words.index(other) - words.index(word)) <= 3]
    elif kind == "colour":
        words = _COLOURS_OF.get(thing, "red blue green yellow white black brown grey").split()
        words = [other for other in words if {other, word} != {"grey", "gray"}]
    elif kind == "direction":
        same = _COMPASS if word in _COMPASS.split() else _COMPASS_ADJECTIVES
        words = same.split()
    elif kind == "month":
        words = [other for other in words if other not in ("march", "may")]
    vowels = "aeiou"
    return [w for w in words if w != word and (w[0] in vowels) == (word[0] in vowels)]


def _changed(story: Narration, mentions: list[Mention], new: str) -> Fault:
    last = mentions[-1]
    was = story.text[last.start : last.end]
    new = new.capitalize() if was[0].isupper() else new
    edit = Edit(last.start, last.end, new)
    shown = excerpt(story.text, story.sentences[story.sentence_of(last.start)], [edit])
    thing = f" (of: {last.key.partition(' ')[2]})" if last.kind in _SAID_OF else ""
    return Fault(
        "continuity",
        (edit,),
        f"In the sentence '{shown}', '{was}' has become '{new}'{thing}, against what the story "
        f"said before.",
        {
            "class": last.kind,
            "key": last.key,
            "old": was,
            "new": new,
            "place": last.start,
            "stated": [mention.start for mention in mentions[:-1]],
        },
    )


def check_fact(story: Narration, fault: Fault, changed: Narration) -> str | None:
    """Why a story does not have the fault; None if it has."""
    if fault.details.get("class") == "planted":
        return check_statements(story, fault, changed)
    new, key, place = (fault.details[name] for name in ("new", "key", "place"))
    if re.search(rf"(?<!\w){re.escape(new)}(?!\w)", story.text, re.IGNORECASE):
        return "the new word already occurred before"
    if changed.text[place : place + len(new)] != new:
        return "the new word is not in its place"
    before = [one.start for one in mentioned_facts(changed) if one.key == key]
    if not before or max(before) >= place:
        return "the fact is not stated before the place, or is stated again after it"
    return None
