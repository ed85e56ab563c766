"""The characters of a story, and a continuity fault: a name changes from the middle of it on.

The fault goes beyond Rashkin et al. 2025, whose corruptions are visible within a few sentences. The
rule looks for a name that certainly is one, and the changed story is checked; a story without such
a name is left out, with the reason.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from fabula.feedback.written_faults import Edit, Fault, apply_edits, excerpt
from fabula.text.reading import Reading
from fabula.text.words import word_set

RULES = "4"
"""The version of the rules, for signatures."""
_MAX_TRIES = 10
_MIN_MENTIONS = 2
_LISTS: dict[str, Any] = tomllib.loads(
    files("fabula.feedback").joinpath("characters.toml").read_text(encoding="utf-8")
)
_NAMES, _KINDS = _LISTS["replacing"], _LISTS["kinds"]
_KIND_OF = {word: kind for kind, words in _KINDS.items() for word in words.split()}
_CALLED = word_set(_LISTS["called"])
_GENDERS: dict[str, str] = {
    name: gender
    for names in (_LISTS["others"], _NAMES)
    for gender, listed in names.items()
    for name in listed.split()
}
_NEUTRAL = ("Alexis", "Ashley", "Casey", "Jamie", "Jordan", "Kerry", "Leslie", "Morgan", "Robin")
_TITLES = word_set(
    "mr mrs ms miss mister dr doctor professor captain colonel general major lieutenant sergeant "
    "sir madam lord lady judge king queen prince princess saint st father mother brother sister "
    "aunt uncle cousin grandma grandpa officer detective inspector reverend president"
)
# After these titles a person is called by the first name: Aunt Polly, Princess Clara.
_FIRST_NAME_TITLES = word_set("aunt uncle cousin king queen prince princess")
_DETERMINERS = word_set("the a an this that these those my your his her its our their")
_PRONOUNS = {
    "she": "she", "her": "she", "hers": "she", "herself": "she", "he": "he", "him": "he",
    "his": "he", "himself": "he",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Character:
    """A person whom the story calls by a first name."""

    name: str
    gender: str | None
    places: tuple[int, ...]


def mentions_of(name: str, text: str) -> list[tuple[int, int]]:
    """Where a character is mentioned, as a whole word; Anna's counts.

    A name as it is spelled, or in capitals; in any case if it is what they are, such as fox.
    """
    pattern = rf"(?<![\w-])(?:{re.escape(name)}|{re.escape(name.upper())})(?!\w|-\w)"
    flags = 0 if name[0].isupper() else re.IGNORECASE
    return [match.span() for match in re.finditer(pattern, text, flags)]


def characters(story: Reading) -> list[Character]:
    """The people whom a story names at least twice, most frequent first."""
    n_person, n_token, n_proper, n_other = (Counter[str]() for _ in range(4))
    common: set[str] = set()
    for _, token in story.words():
        word = token.text
        if not re.fullmatch(r"[^\W\d_]{3,}", word):
            continue
        if not word[0].isupper():
            # What is also a common word here (will, rose) is never certain to be a person.
            common.add(word.capitalize())
            continue
        name = word.capitalize() if word.isupper() else word
        n_token[name] += 1
        n_proper[name] += token.pos_ == "PROPN"
        n_person[name] += token.ent_type_ == "PERSON"
        n_other[name] += _is_other(token)
    persons = [
        Character(name, _gender(name, story), tuple(a for a, _ in mentions_of(name, story.text)))
        for name, n in n_token.items()
        if n >= 2 and name not in common and name.lower() not in _TITLES
        if n_proper[name] >= 0.9 * n and n_other[name] <= 0.1 * n
        if n_person[name] >= (0.15 if name in _GENDERS else 0.6) * n
    ]
    return sorted(persons, key=lambda person: (-len(person.places), person.name))


def _is_other(token: object) -> bool:
    """Whether a word, at this place, is not a first name: a surname, or the name of a thing."""
    doc, k = token.doc, token.i  # type: ignore[attr-defined]
    if k == 0:
        return False
    before = doc[k - 1]
    word = before.lower_.rstrip(".")
    if word in _TITLES:
        follows = doc[k + 1] if k + 1 < len(doc) else None
        has_surname = follows is not None and follows.ent_type_ == "PERSON" and follows.is_title
        return word not in _FIRST_NAME_TITLES and not has_surname
    if word in _DETERMINERS:
        return True
    is_name = before.pos_ == "PROPN" and before.text[0].isupper() and before.is_alpha
    return bool(is_name and before.ent_type_ == "PERSON")


def _gender(name: str, story: Reading) -> str | None:
    """By the name, or else by the pronouns of the sentences that name nobody else."""
    if name in _GENDERS:
        return _GENDERS[name]
    counts: Counter[str] = Counter()
    for begin, doc in story.docs:
        for sentence in doc.sents:
            span = begin + sentence.start_char, begin + sentence.end_char
            if mentions_of(name, sentence.text) and not story.is_quoted(*span):
                words = (token.lower_ for token in sentence)
                counts.update(_PRONOUNS[word] for word in words if word in _PRONOUNS)
    (best, n), *rest = [*counts.most_common(), ("", 0)]
    return best if n >= 4 and n >= 4 * sum(other for _, other in rest) else None


def first_names(gender: str | None, text: str) -> list[str]:
    """First names that fit and do not occur in a text, ignoring case."""
    taken = {word.lower() for word in re.findall(r"[^\W\d_]+", text)}
    names = _NEUTRAL if gender is None else tuple(dict.fromkeys(_NAMES[gender].split()))
    return [name for name in names if name.lower() not in taken]


_DEFINITE = word_set("the this that his her their our my your")


def kinds_called(story: Reading) -> list[tuple[str, tuple[int, ...], list[str]]]:
    """Characters called by what they are, and possible replacements, most frequent first.

    Some, such as the man, have no replacement. Only if just one of them is mentioned: never in the
    plural, and introduced at most once.
    """
    places: dict[str, list[int]] = {}
    unfit: set[str] = set()
    present = {word.lower() for word in re.findall(r"[^\W\d_]+", story.text)}
    for start, token in story.words():
        word = token.lower_
        if word not in _KIND_OF and word not in _CALLED:
            # If there are several foxes, "the fox" is ambiguous.
            unfit.add(token.lemma_.lower())
            continue
        is_definite = any(c.lower_ in _DEFINITE for c in token.lefts)
        is_first = word not in places
        if token.dep_ == "compound" or not (is_definite or is_first or token.text.istitle()):
            unfit.add(word)
        places.setdefault(word, []).append(start)
    kinds = []
    for word, starts in places.items():
        if word not in unfit:
            kind = _KINDS.get(_KIND_OF.get(word, ""), "").split()
            others = [name for name in kind if name not in present and f"{name}s" not in present]
            kinds.append((word, tuple(starts), others))
    return sorted(kinds, key=lambda kind: (-len(kind[1]), kind[0]))


def plant_rename(story: Reading, rng: np.random.Generator) -> Fault | str:
    """Rename a character from a mention after the first third on, or say why that is impossible.

    The person named most often gets another first name; if nobody is named, a character called by
    what they are, such as the fox, is called something else of the kind. The changed story has the
    fault (`check_name`).
    """
    text, third = story.text, len(story.sentences) / 3
    called = [
        (who.name, who.places, [n for n in first_names(who.gender, text) if n[0] != who.name[0]])
        for who in characters(story)
    ] or kinds_called(story)
    if not called:
        return "nobody in it is certain to be called by a first name, or by what they are"
    fit = []
    for name, places, others in called:
        # Without places, a name occurs only within another, as Anne in Anne-Marie.
        first = max(third, story.sentence_of(places[0]) + 1) if places else third
        late = [place for place in places[_MIN_MENTIONS:] if story.sentence_of(place) >= first]
        fit += [(name, late, others)] if late and others else []
    if not fit:
        return "nobody in it is named three times, one of them after its first third"
    name, late, others = fit[0]
    the = "" if name[0].isupper() else "the "
    for _ in range(_MAX_TRIES):
        place = late[int(rng.integers(len(late)))]
        new = others[int(rng.integers(len(others)))]
        edits = []
        for start, end in mentions_of(name, text):
            if start >= place:
                was = text[start:end]
                shown = new.upper() if was.isupper() else new.capitalize() if was.istitle() else new
                edits.append(Edit(start, end, shown))
        shown = excerpt(text, story.sentences[story.sentence_of(place)], edits)
        what = f"From the sentence '{shown}' on, {the}{name} is called {the}{new}."
        fault = Fault(tuple(edits), what, {"old": name, "new": new})
        why_not = check_name(story, fault)
        if why_not is None:
            return fault
    return f"no change passed the check ({why_not})"


def check_name(story: Reading, fault: Fault) -> str | None:
    """Why a story does not have the fault; None if it has."""
    old, new = (fault.details[key] for key in ("old", "new"))
    place = fault.edits[0].start
    changed, _ = apply_edits(story.text, fault.edits)
    if re.search(rf"(?<!\w){re.escape(new)}(?!\w)", story.text, re.IGNORECASE):
        return "the new name already occurred before"
    if re.search(rf"(?<!\w){re.escape(old)}(?!\w)", changed[place:], re.IGNORECASE):
        return "the old name still occurs after the place"
    if len(mentions_of(old, changed[:place])) < _MIN_MENTIONS:
        return "the old name does not occur before the place"
    return None if mentions_of(new, changed[place:]) else "the new name is not in its place"
