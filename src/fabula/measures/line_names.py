"""Inconsistent names: one name in two spellings, or one person under two names."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from fabula.measures.line_errors import is_misspelt
from fabula.measures.line_read import LineNote, Place, ReadText, note_of

_MIN_NAME = 5
"""Minimum letters: many shorter names differ from others by one letter."""
MIN_NAMED = 20
"""Minimum mentions before a change of name, and after it."""
_MIN_REACH = 0.05
"""Minimum share of the text between the first and the last mention of each."""
_MAX_GAP = 1.5
"""Maximum distance from one name to the other, relative to the mean within each."""
_MAX_RATIO = 5.0
"""Maximum ratio of these mean distances."""


def names(read: ReadText) -> Iterator[LineNote]:
    """Names in two spellings, and those that change."""
    places, nouns, lower = _capitalized(read)
    yield from _spelt_twice(read, places, nouns, lower)
    yield from _taken_over(read, places, lower)


def _spelt_twice(
    read: ReadText,
    places: Mapping[str, Sequence[Place]],
    nouns: Mapping[str, Sequence[Place]],
    lower: Counter[str],
) -> Iterator[LineNote]:
    """A name that is one letter from another name, or from a capitalized noun ("our Nation"), at
    least three times as frequent.

    Two capitalized words of the language, such as Count and Court, are not compared.
    """
    found = {
        name: sorted([*places.get(name, ()), *nouns.get(name, ())]) for name in {**places, **nouns}
    }
    by_frequency = sorted(found, key=lambda name: (-len(found[name]), name))
    often = [name for name in by_frequency if len(name) >= _MIN_NAME]
    for rank, name in enumerate(often):
        for other in often[rank + 1 :]:
            is_rarer = other in places and 3 * len(found[other]) <= len(found[name])
            if not is_rarer or lower[other.lower()] or not is_misspelt(name, other):
                continue
            if _is_derived(name, other) or (read.is_word(other) and read.is_word(name)):
                continue
            for place in found[other]:
                why = f"“{other}” here, but “{name}” {len(found[name])} times in this text."
                yield note_of("name", place, why, also=found[name][:1])


def _is_derived(name: str, other: str) -> bool:
    """Whether the other is derived from the name: America and Americans, Kjoge and a Kjoger."""
    root, other_root = name.removesuffix("s"), other.removesuffix("s")
    if name != root and other != other_root and root in (other_root + "n", other_root + "r"):
        return True  # The Americans, the Americas.
    return other_root in (root, root + "n", root + "r")


def _taken_over(
    read: ReadText, places: Mapping[str, Sequence[Place]], lower: Counter[str]
) -> Iterator[LineNote]:
    """A name that ends where another begins: one person, perhaps, whose name was changed.

    Both are frequent, spread over the text and about equally dense, and no other name fits. The
    same pattern occurs where one person leaves the story and another enters, so the note asks.
    """
    kept = {
        name: found
        for name, found in places.items()
        if len(found) >= MIN_NAMED and 10 * lower[name.lower()] <= len(found)
    }
    by_first = sorted(kept, key=lambda name: kept[name][0])
    firsts = [kept[name][0] for name in by_first]
    pairs = []
    for name, found in kept.items():
        # The names that begin soon after the last place of this one.
        until = found[-1][0] + _MAX_GAP * _step(found)
        begin = bisect_right(firsts, found[-1])
        end = bisect_right(firsts, until, key=lambda first: first[0])
        pairs += [
            (name, other)
            for other in by_first[begin:end]
            if _takes_over(found, kept[other], len(read.text))
        ]
    n_pairs = Counter(one for pair in pairs for one in pair)
    for name, other in pairs:
        if n_pairs[name] > 1 or n_pairs[other] > 1:
            continue
        why = (
            f"“{name}” is named {len(kept[name])} times up to here and never again, “{other}” "
            f"{len(kept[other])} times from here on. Is it the same person?"
        )
        yield note_of("renamed", kept[other][0], why, also=kept[name][-1:])


def _takes_over(before: Sequence[Place], after: Sequence[Place], n_chars: int) -> bool:
    """Whether one name is used up to a place, and the other in the same way from there on."""
    both = before, after
    if min(places[-1][0] - places[0][0] for places in both) < _MIN_REACH * n_chars:
        return False
    short, long = sorted(_step(places) for places in both)
    return after[0][0] - before[-1][0] <= _MAX_GAP * short and long <= _MAX_RATIO * short


def _step(places: Sequence[Place]) -> float:
    """The mean distance from one place to the next, in characters."""
    return (places[-1][0] - places[0][0]) / (len(places) - 1)


def _capitalized(
    read: ReadText,
) -> tuple[dict[str, list[Place]], dict[str, list[Place]], Counter[str]]:
    """The places of each name and of each noun that is capitalized within a sentence, and how often
    each word is in lower case there."""
    places: dict[str, list[Place]] = defaultdict(list)
    nouns: dict[str, list[Place]] = defaultdict(list)
    lower: Counter[str] = Counter()
    for sentence in read.sentences:
        for k, token in enumerate(sentence.tokens):
            is_capitalized = token.text[:1].isupper() and token.text[1:].islower()
            if is_capitalized and token.text.isalpha() and token.pos == "PROPN":
                places[token.text].append(sentence.at(token))
            elif is_capitalized and token.text.isalpha() and token.pos == "NOUN" and k:
                nouns[token.text].append(sentence.at(token))
            elif token.is_word and k and token.text.islower():
                lower[token.text] += 1
    return places, nouns, lower
