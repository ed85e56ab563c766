"""Line by line: places in a draft that its writer may want to check, each with a reason.

No language model is used. Every note can be located and checked: a word that recurs within a few
lines, a repeated sentence, a name spelt in two ways or changed for another, an error of grammar or
spelling. None of it is a grade, and none of it must be changed: repetition can be intended.

Inconsistent names are one name in two spellings, or one person under two names. In fiction a
checker of grammar is often wrong: dialect, coined words, old forms and speech are meant. What is
likely to be meant is left out, and the rest is ordered by how plain it is.

Quoted text belongs to its speaker: there only slips, spelling and names are noted.
Thresholds are heuristics; `LINE_RULES` names them in signatures.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from typing import Any, Literal

from fabula.core.types import Document, Measurement, Signature, Span
from fabula.core.workers import in_order
from fabula.linguistic.metrics import TextTools, frequencies
from fabula.linguistic.profile import Profile, opened_tools, profile_text, spaced
from fabula.show.parts import around_of
from fabula.style.beside import PARTICIPLES
from fabula.style.slips import is_broad, slips
from fabula.text import check_documents, count_words
from fabula.text.chapters import CHAPTER_RULES, line_of, where_of, without_headings
from fabula.text.grammar import Fault
from fabula.text.parsing import Token
from fabula.text.pipeline import SENTENCES, load_pipeline
from fabula.text.reading import Reading, ReadSentence
from fabula.text.sentences import not_english, overlaps, unread_spans
from fabula.text.words import word_set

LINE_RULES = "17"
"""Version: changes with any rule or threshold below."""

_ECHO_WORDS = 20
_ECHO_ZIPF = 4.0
"""Rarer than one in 100,000 words: repetitions of more frequent words go unnoticed."""
_ECHO_TURN = 6
"""Nearer than this, words joined by a conjunction are one turn of phrase: an unhappy man and
unhappy wife."""
_MIN_ECHO = 4
_JOINS = re.compile(r"^\W*$|,|\b(?:and|or|nor|but|by|as|than)\b")
_TOPIC = 1_000
"""A word at least this frequent in the text is its topic, not an echo."""
_MIN_REPEATED = 6
"""Words of a sentence that comes again, at least."""
_BOOK, _NEARBY, _MIN_NEARBY, _MIN_FAR = 60_000, 3_000, 8, 10
"""Characters of a book, and of a sentence's distance to where it comes again nearby; its words
there, and farther away."""
_LONG_REPEATED, _MIN_ALONE = 15, 10
"""Sentences of this many words or more hardly repeat by chance; and hardly on purpose, each in a
paragraph of its own."""

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class LineKind:
    """A kind of note, its importance beside the others (from 1 down to 0), and how often it is
    right.

    Readers labelled notes on fiction; `bench/line_labels.py` counts those that the present rules
    still find.
    """

    id: str
    title: str
    weight: float
    n_right: int = 0
    """Labelled notes that a writer would want to know."""
    n_labelled: int = 0

    @property
    def precision(self) -> float | None:
        """The share of labelled notes that are right; None if fewer than ten were labelled."""
        return self.n_right / self.n_labelled if self.n_labelled >= _MIN_LABELLED else None

    @property
    def shown(self) -> str:
        """`right 85 %`: how often its notes are right; empty if that is not known."""
        return "" if self.precision is None else f"right {100 * self.precision:.0f} %"

    @property
    def is_on(self) -> bool:
        """Whether it is on by default: it is not known to be wrong more often than right."""
        return 2 * self.n_right >= self.n_labelled


CONFUSED = "confused"
"""Noted by `fabula.style.proofreading`, where its model is installed."""
LINE_KINDS: dict[str, LineKind] = {
    kind.id: kind
    for kind in (
        LineKind("placeholder", "Placeholder", 1.0),
        LineKind("name", "Name in two spellings", 0.99, 1, 1),
        LineKind("renamed", "Change of name", 0.97),
        LineKind("paragraph", "Repeated paragraph", 0.96, 1, 1),
        LineKind("sentence", "Repeated sentence", 0.95, 22, 25),
        LineKind("doubled", "Doubled word", 0.94, 19, 20),
        LineKind("unclosed", "Quotation mark", 0.92, 30, 33),
        LineKind("spelling", "Spelling", 0.9, 16, 21),
        LineKind(CONFUSED, "Wrong word?", 0.88),
        LineKind("grammar", "Grammar", 0.85, 35, 37),
        LineKind("echo", "Echo", 0.5, 1, 9),
    )
}
"""All kinds by id, the most important first."""


_MIN_LABELLED = 10


@dataclass(frozen=True, slots=True)
class LineNote:
    """A place, half-open in characters, and why it is noted; `also` is where the same occurs."""

    kind: str
    start: int
    end: int
    why: str
    strength: float
    also: tuple[Place, ...] = ()


def note_of(
    kind: str, place: Place, why: str, of: float = 1.0, also: Sequence[Place] = ()
) -> LineNote:
    """A note with the strength of its kind, adjusted by up to a tenth as `of` is 1 or 0."""
    strength = LINE_KINDS[kind].weight + 0.1 * (of - 1)
    return LineNote(kind, *place, why, round(strength, 6), tuple(also))


_MIN_NAME = 5
"""Minimum letters: many shorter names differ from others by one letter."""
_MAN = re.compile("men$")
_GREETINGS = frozenset(("Hallo", "Hello", "Hullo"))
_ABROAD = re.compile(r"\sd(?:e|u|es)\b")
_FOREIGN = re.compile(r"\b(?:d|l)(?:e|u|a|es)\s\Z")
"""What stands after a word of another language, and before one."""
_BEFORE, _CAPITAL = re.compile(r"\w+(?=\s\Z)"), re.compile(r"\s[A-Z]")
_NAMED_ONCE = 60_000
"""Characters of a text for each mention that the other name must have: a novel has many names."""
_MIN_KNOWN = 5
"""Minimum mentions of a name that a word at the start of a sentence may be a misspelling of."""
MIN_NAMED = 40
"""Minimum mentions before a change of name, and after it."""
_MIN_REACH = 0.05
"""Minimum share of the text between the first and the last mention of each."""
_MAX_GAP = 1.5
"""Maximum distance from one name to the other, relative to the mean within each."""
_MAX_RATIO = 5.0
"""Maximum ratio of these mean distances."""
_PRONOUN = re.compile(r"[^.!?“”]*?\b(?:he|him|his|(she|her))\b")
_NEAR, _MAX_APART = 100, 0.3
"""Characters beside a name that are searched, and how far apart two shares of she may be."""


def names(read: Reading) -> Iterator[LineNote]:
    """Names in two spellings, and those that change."""
    # The places of each name and of each noun that is capitalized within a sentence, and how often
    # each word is in lower case there.
    places: dict[str, list[Place]] = defaultdict(list)
    nouns: dict[str, list[Place]] = defaultdict(list)
    lower: Counter[str] = Counter()
    first: dict[str, list[Place]] = defaultdict(list)
    plural: Counter[str] = Counter()
    for sentence in read.parsed:
        for k, token in enumerate(sentence.tokens):
            plural[token.text] += token.tag == "NNPS"
            is_capitalized = token.text[:1].isupper() and token.text[1:].islower()
            if is_capitalized and token.text.isalpha() and token.pos == "PROPN":
                places[token.text].append(sentence.at(token))
            elif is_capitalized and token.text.isalpha() and token.pos == "NOUN" and k:
                nouns[token.text].append(sentence.at(token))
            elif is_capitalized and token.text.isalpha() and not k:
                first[token.text].append(sentence.at(token))
            elif token.is_word and k and token.text.islower():
                lower[token.text] += 1
    # The Indians are no person.
    people = {name: of_name for name, of_name in places.items() if 2 * plural[name] < len(of_name)}
    yield from _taken_over(read, people, lower)
    # A misspelt name at the start of a sentence may look like another word: Cecilly, an adverb.
    often = [name for name in places if len(places[name]) >= _MIN_KNOWN]
    for word in first.keys() - lower.keys() - places.keys():
        if any(is_misspelt(name, word) for name in often) and not read.is_accepted(word):
            places[word] = first[word]
    yield from _spelt_twice(read, places, nouns, lower)


def _spelt_twice(
    read: Reading,
    places: Mapping[str, Sequence[Place]],
    nouns: Mapping[str, Sequence[Place]],
    lower: Counter[str],
) -> Iterator[LineNote]:
    """A name that is one letter from another name, or from a capitalized noun ("our Nation"), at
    least three times as frequent.

    Two capitalized words of the language, such as Count and Court, are not compared.
    """
    by_name = {k: sorted([*places.get(k, ()), *nouns.get(k, ())]) for k in {**places, **nouns}}
    by_frequency = sorted(by_name, key=lambda name: (-len(by_name[name]), name))
    often = [name for name in by_frequency if len(name) >= _MIN_NAME]
    least = len(read.text) // _NAMED_ONCE
    for rank, name in enumerate(often):
        for other in often[rank + 1 :]:
            n_often, n_other = len(by_name[name]), len(by_name[other])
            is_rarer = other in places and 3 * n_other <= n_often >= least
            if not is_rarer or lower[other.lower()] or not is_misspelt(name, other):
                continue
            # A name of its own: the checker knows it (Paris, not Waiter), or it is too frequent.
            is_word = read.is_accepted(other)
            is_known = not is_word and read.is_accepted(other, as_name=True)
            is_same = _is_by_ear(name, other) and name[-1] == other[-1]
            if n_other > max(2, n_often // 20) or (is_known and not is_same):
                continue
            # Joyce and Joycey, Marie and Maria, Italian and Italiani, George and Georgie, hullo and
            # hello.
            stem = other[:-1] if other.endswith(("a", "e", "i", "o")) else None
            is_short = other == f"{name}y" or stem in (name, name[:-1], f"{name[:-1]}i")
            if is_short or {name, other} <= _GREETINGS:
                continue
            # Derived from the name: America and Americans, Kjoge and a Kjoger; or the Americans and
            # the Americas.
            root, other_root = name.removesuffix("s"), other.removesuffix("s")
            are_plural = name != root and other != other_root
            if other_root in (root, root + "n", root + "r"):
                continue
            if are_plural and root in (other_root + "n", other_root + "r"):
                continue
            if _MAN.sub("man", name) == _MAN.sub("man", other):
                continue
            if is_word and read.is_accepted(name):
                continue
            for place in by_name[other]:
                found = _BEFORE.search(read.text, max(0, place[0] - _NEAR), place[0])
                before = found[0] if found else ""
                # The Grotto beside Giotto, North Carolina beside Norah, Ernest Dowson and Dawson.
                is_other = before in places and not re.search(rf"{before}\s{name}\b", read.text)
                is_noun = is_word and before.lower() in ("the", "a", "an")
                is_foreign = _ABROAD.match(read.text, place[1])
                is_title = is_word and _CAPITAL.match(read.text, place[1])
                if is_other or is_noun or is_foreign or is_title:
                    continue
                why = f"“{other}” here, but “{name}” {n_often} times in this text."
                yield note_of("name", place, why, also=by_name[name][:1])


def _taken_over(
    read: Reading, places: Mapping[str, Sequence[Place]], lower: Counter[str]
) -> Iterator[LineNote]:
    """A name that ends where another begins: one person, perhaps, whose name was changed.

    Both are frequent, spread over the text and about equally dense, and no other name fits. The
    same pattern occurs where one person leaves the story and another enters, so the note asks.
    """
    frequent = {
        name: spots
        for name, spots in places.items()
        if len(spots) >= MIN_NAMED and 10 * lower[name.lower()] <= len(spots)
    }
    by_first = sorted(frequent, key=lambda name: frequent[name][0])
    firsts = [frequent[name][0] for name in by_first]
    pairs = []
    for name, spots in frequent.items():
        # The names that begin soon after the last place of this one.
        until = spots[-1][0] + _MAX_GAP * _step(spots)
        begin = bisect_right(firsts, spots[-1])
        end = bisect_right(firsts, until, key=lambda first: first[0])
        for other in by_first[begin:end]:
            # One is used up to a place, and the other in the same way from there on.
            both = spots, frequent[other]
            reach = min(p[-1][0] - p[0][0] for p in both)
            short, long = sorted(_step(p) for p in both)
            is_near = frequent[other][0][0] - spots[-1][0] <= _MAX_GAP * short
            if reach >= _MIN_REACH * len(read.text) and is_near and long <= _MAX_RATIO * short:
                pairs.append((name, other))
    n_pairs = Counter(name for pair in pairs for name in pair)
    for name, other in pairs:
        shares = [_share_of_she(read.text, places[one]) for one in (name, other)]
        are_two = abs(shares[0] - shares[1]) > _MAX_APART
        if n_pairs[name] > 1 or n_pairs[other] > 1 or are_two:
            continue
        why = (
            f"“{name}” is named {len(frequent[name])} times up to here and never again, “{other}” "
            f"{len(frequent[other])} times from here on. Is it the same person?"
        )
        yield note_of("renamed", frequent[other][0], why, also=frequent[name][-1:])


def _share_of_she(text: str, places: Sequence[Place]) -> float:
    """Of the first pronouns after a name, in its sentence, the share of she and her."""
    first = [one for _, end in places if (one := _PRONOUN.match(text, end, end + _NEAR))]
    return (1 + sum(one[1] is not None for one in first)) / (2 + len(first))


def _step(places: Sequence[Place]) -> float:
    """The mean distance from one place to the next, in characters."""
    return (places[-1][0] - places[0][0]) / (len(places) - 1)


_MIN_MISSPELT, _MIN_SPOKEN, _MIN_SLIP = 5, 8, 6
"""Shorter words are slips only if letters were transposed; in speech, which may be dialect; and if
the slip is not one of the ear."""
_BY_EAR_ZIPF, _SLIP_ZIPF, _USED_ZIPF, _USED_LESS = 3.0, 3.8, 1.6, 3.0
"""Least frequency of a correction that sounds like the word, and of another; and of a word that is
written too often to be a slip, unless it is a common misspelling or the correction is a thousand
times as frequent."""
_OWN_WORDS, _MISSPELT_SHARE = 8, 0.34
"""A text with so many unknown words has a vocabulary of its own if no larger share is misspelt."""
_RARE_ZIPF, _PLAIN_ZIPF = 3.0, 5.5
"""Frequency of a correction: one word in a million, and one in three thousand."""
_TRUSTED = (
    "adverb `every day`", "agree in grammatical number with the pronoun", "agree with its subject",
    "common misspellings", "different suffix", "possessive pronoun `its`", "requires the verb form",
    "should be written as two words", "the verb `passed`",
)  # fmt: skip
"""Message fragments of the checker's rules that found errors in fiction; others hardly do."""
_ALSO_PAST = word_set("bore bound fell felt found ground lay left rent saw spat wound")
"""Forms of verbs that are also the past of another: "he ground meat", "she spat"."""
_MANY_UNKNOWN = 3
"""Words of a sentence in no dictionary: it is in another language, or in dialect; two in speech."""
_WORD = re.compile(r"\w+")
_MAX_SLIPS = 2
"""A word that occurs more often is meant."""
_PUBLISHED = word_set(
    "agone aint arter babby blest brung cavil chuse chusing comest darkling draggled dramatis",
    "drawed dropt forrard gaol hisself leant leathern loike missis natured overset pitchy rayther",
    "redly reseated sayest shopman stept stopt swart throve trebly uncertainly unlooked unreserve",
    "waggon wrapt yourn",
)
"""Words that are in no dictionary of the checker, and in at least three of 35 published books."""
_SLIPS = word_set("abit alot aswell atleast eachother everytime infact infront noone")
"""Words that are noted with what is meant (`style.slips`)."""
_DERIVED = re.compile(
    r"(?:un|out|over|under)(\w{5,})|(\w{3,})(?:man|men|kind|less|like)"
    r"|(\w{3,}[^y])ness|(?P<noun>\w{3,}[^aeioulry])y"
)
"""Words that are formed from others at will: unbrimmed, foemen, fadeless, kelpy."""
_INTO = word_set("at from in near to")
_MIN_PLACE = 4
"""Letters of a place in lower case."""
_KIN = word_set("auntie aunty dad gran grandad grandma grandpa granny mom mum nan nana papa")
"""What is a name without a possessive only: Grandad, my grandad."""
_COINED_ZIPF = 2.0
"""One word in ten million: misspellings that many people make are more frequent."""
_AGREEMENT = ("agree with its subject", "agree in grammatical number")
_IRREAL = word_set("if lest let should that though till unless until whether")
_OF_THOU = word_set("thou thee thy thine")
_OBJECTS = word_set("me us him her it them you")
_OWNED = word_set("his hers ours theirs mine yours")
_AFTER_IT_IS = word_set("no not a an the been all only just so very too my your his her our their")


def errors(read: Reading) -> Iterator[LineNote]:
    """A note for each error that is likely to be one."""
    is_dialect = is_broad(" ".join(s.parsed.text for s in read.parsed if s.is_narration))
    yield from _forms(read, is_dialect=is_dialect)
    counts = Counter(_WORD.findall(read.text))
    # Where no sentence begins.
    named = Counter(
        after.text
        for part in read.parsed
        for token, after in itertools.pairwise(part.tokens)
        if token.is_word
    )
    unknown: set[str] = set()
    likely: list[LineNote] = []
    n_common = 0
    # What the checker says of the same words again and again is the writer's way.
    said = Counter(
        (part.parsed.text[slice(*fault.place)], fault.message)
        for part in read.parsed
        for fault in part.faults
    )
    disagreeing: list[LineNote] = []
    for sentence in read.parsed:
        at = len(disagreeing)
        for fault in sentence.faults:
            place = sentence.start + fault.place[0], sentence.start + fault.place[1]
            word = read.text[slice(*place)]
            name = word.capitalize()
            is_elsewhere = named[name] >= max(2, len(read.text) // _NAMED_ONCE)
            meant = _misspellings().get(word.lower()) if fault.is_spelling else None
            if fault.is_spelling and word.islower():
                unknown.add(word)
            why = f"“{word}” is in neither the American nor the British dictionary."
            is_clipped = bool({"'", "’"} & set(_around(read, *place)))
            # Some writers use no apostrophes.
            is_way = is_clipped or ("'" in (meant or "") and counts[word] > _MAX_SLIPS)
            if meant is not None and not is_way:
                n_common += 1
                yield note_of("spelling", place, why + _perhaps([meant]))
            elif (
                fault.is_spelling
                and word.islower()
                and not (is_clipped or counts[word] > 1 or word in _KIN | _PUBLISHED)
                and _is_name(sentence, fault, is_elsewhere=is_elsewhere)
            ):
                of_name = f"As a name, “{name}” is written with a capital."
                if is_elsewhere:
                    of_name = f"“{word}” here, but “{name}” elsewhere in this text."
                yield note_of("spelling", place, of_name)
            elif fault.is_spelling and _is_misspelling(read, counts, sentence, fault):
                # With two letters transposed, or else one letter away.
                near = [s for s in fault.suggestions if is_misspelt(word.lower(), s.lower())]
                corrections = [s for s in near if _is_plain(word, s)] or near
                plainness = _plainness(sentence, word, corrections)
                note = note_of("spelling", place, why + _perhaps(corrections), plainness)
                if _is_plain(word, corrections[0]):
                    yield note
                else:
                    likely.append(note)
            elif is_dialect or fault.is_spelling or said[word, fault.message] > _MAX_SLIPS:
                continue
            elif _is_error(read, sentence, fault):
                # The checker's message as a sentence, with quotation marks for its code marks.
                why = re.sub("`([^`]*)`", "“\\1”", fault.message)
                why = why if why.endswith(("?", "!")) else f"{why.rstrip('.')}."
                note = note_of("grammar", place, why)
                if any(phrase in why for phrase in _AGREEMENT):
                    disagreeing.append(note)
                else:
                    yield note
        if not is_dialect:
            noted = [(note.start, note.end) for note in disagreeing[at:]]
            more = _plurals_with_singular(sentence)
            disagreeing += (one for one in more if not overlaps((one.start, one.end), noted))
    # So many are dialect.
    if len(disagreeing) <= _MAX_SLIPS:
        yield from disagreeing
    # In a text with a vocabulary of its own (dialect, old or invented words), these belong to it.
    if len(unknown) < _OWN_WORDS or n_common + len(likely) > _MISSPELT_SHARE * len(unknown):
        yield from likely


@functools.cache
def _misspellings() -> Mapping[str, str]:
    """Misspellings that many people make, and what is meant."""
    listed = files("fabula.style").joinpath("misspellings.txt").read_text(encoding="utf-8")
    pairs = (line.partition(" ") for line in listed.splitlines() if not line.startswith("#"))
    return {wrong: right for wrong, _, right in pairs}


def _is_name(sentence: ReadSentence, fault: Fault, *, is_elsewhere: bool) -> bool:
    """Whether an unknown word is a name, with a capital elsewhere, or known to the checker and
    after "in" or the like: in london, but not an old kodak or a victoria."""
    before = next((t for t in reversed(sentence.tokens) if t.place[1] <= fault.place[0]), None)
    if is_elsewhere:
        is_title = sentence.parsed.text[fault.place[1] + 1 :][:1].isupper()
        return is_title or before is None or before.tag not in ("DT", "JJ", "PRP$")
    word = sentence.parsed.text[slice(*fault.place)]
    is_known = word.capitalize() in fault.suggestions and len(word) >= _MIN_PLACE
    return is_known and before is not None and before.lower in _INTO


def _perhaps(corrections: Sequence[str]) -> str:
    likely = ", ".join(f"“{c}”" for c in corrections[:3])
    return f" Perhaps {likely}." if likely else ""


def _is_transposed(word: str, other: str) -> bool:
    return sorted(word.lower()) == sorted(other.lower())


def _is_plain(word: str, other: str) -> bool:
    """Whether letters were transposed, or the apostrophe of a contraction left out."""
    return _is_transposed(word, other) or _is_bare(word, other)


def _is_bare(word: str, other: str) -> bool:
    return other.lower().replace("'", "") == word.lower() and not other.endswith("'s")


def _is_by_ear(word: str, other: str) -> bool:
    """Whether both sound alike: one has a vowel more or another one, or a letter doubled."""
    bare, bare_other = (
        re.sub(r"(.)\1", r"\1", re.sub("[aeiou]+", "", w.lower())) for w in (word, other)
    )
    return bare == bare_other


def _is_misspelling(
    read: Reading, counts: Mapping[str, int], sentence: ReadSentence, fault: Fault
) -> bool:
    """Whether an unknown word is probably a misspelling, and not rare, coined or a name.

    It is if a word of fifty times its frequency is one letter away. Parts of compounds, single
    letters, Roman numerals, words with an apostrophe, words formed from others, words of several
    published books, and capitalized words within a sentence are not checked, nor are sentences full
    of unknown words.
    """
    start, end = (sentence.start + place for place in fault.place)
    around = _around(read, start, end)
    first = sentence.words[0].start if sentence.words else 0
    word = read.text[start:end]
    # Clipped words (wanderin') and what comes again are meant.
    is_clipped = around[-1:] in ("'", "’") or around[:1] in ("'", "’")
    if is_clipped or "'" in word or "’" in word:
        return False
    pattern = rf"\b{re.escape(word)}\b"
    is_one = _WORD.fullmatch(word) is not None
    n = counts.get(word, 0) if is_one else len(re.findall(pattern, read.text))
    # So many words around it are unknown that they are intended.
    unknown = {f.place for f in sentence.faults if f.is_spelling}
    if len(unknown) >= _MANY_UNKNOWN - (not sentence.is_narration):
        return False
    # An old verb form: "thou beliest".
    at = fault.place[0]
    form = next((t.lower for t in sentence.tokens if t.place[0] <= at < t.place[1]), "")
    is_old = form.endswith(("est", "eth", "'st"))
    if is_old and any(token.lower in _OF_THOU for token in sentence.tokens):
        return False
    # "La maison", "chambres garnies".
    beside = {fault.place[0] - 1, fault.place[1] + 1}
    is_foreign = _FOREIGN.search(read.text, max(0, start - 4), start) or any(
        not beside.isdisjoint(place) for place in unknown
    )
    if "-" in around or is_foreign or (fault.place[0] > first and word[0].isupper()):
        return False
    word = word.lower()
    if set(word) <= set("ivxlc") or word in _PUBLISHED | _SLIPS or not word.isascii():
        return False
    # Older spellings, and words made of others: surprize, expences, clappings, slaty.
    usual = {word.replace("z", "s"), word.replace("ce", "se"), re.sub("ings$", "ing", word)}
    usual.add(re.sub("y$", "e", word))
    if any(map(read.is_accepted, usual - {word})):
        return False
    others = [suggestion.lower() for suggestion in fault.suggestions]
    is_spoken = not sentence.is_narration
    likely = [o for o in others if _is_slip(word, o, n, is_spoken=is_spoken)]
    # Contractions are often written so.
    if any(_is_bare(word, other) for other in likely):
        return True
    most = max(map(frequencies().log, likely), default=-math.inf)
    if most - frequencies().log(word) < math.log(50):
        return False
    # Whether it is a known word with a prefix or suffix.
    parts = _DERIVED.fullmatch(word)
    if parts is None or frequencies().zipf(word) >= _COINED_ZIPF:
        return True
    # "Slighty" lacks an l.
    if parts["noun"] and read.is_accepted(f"{parts['noun']}ly"):
        return True
    return not read.is_accepted(next(filter(None, parts.groups())))


def _is_slip(word: str, other: str, n: int, *, is_spoken: bool) -> bool:
    """Whether the other was probably meant by a word that the text has `n` times."""
    zipf = frequencies().zipf
    if not is_misspelt(word, other) or other + "y" == word or n > _MAX_SLIPS:
        return False
    if _is_plain(word, other):
        # In speech it may be dialect.
        is_long = len(word) > _MIN_MISSPELT and zipf(other) >= _SLIP_ZIPF
        return "'" in other or is_long or not is_spoken
    # What comes twice, and what is often written, is meant.
    least = _MIN_SPOKEN if is_spoken else _MIN_MISSPELT
    is_used = zipf(word) >= _USED_ZIPF and zipf(other) - zipf(word) < _USED_LESS
    if n > 1 or is_used or len(word) < least:
        return False
    if _is_by_ear(word, other):
        return bool(zipf(other) >= _BY_EAR_ZIPF)
    return bool(len(word) >= _MIN_SLIP and zipf(other) >= _SLIP_ZIPF)


def _around(read: Reading, start: int, end: int) -> str:
    """The characters beside a place, hyphens that do not break as others."""
    return (read.text[max(0, start - 1) : start] + read.text[end : end + 1]).replace("\u2011", "-")


def _is_error(read: Reading, sentence: ReadSentence, fault: Fault) -> bool:
    """Whether a grammar error is probably real: not in speech, and by a rule that is mostly right
    about fiction."""
    if not any(part in fault.message for part in _TRUSTED):
        return False
    start, end = (sentence.start + place for place in fault.place)
    if "-" in _around(read, start, end):
        return False  # A part of a compound: the re-entrance.
    places = [(token.start, k) for k, token in enumerate(sentence.tokens)]
    k_fault = next((k for start, k in reversed(places) if start <= fault.place[0]), 0)
    if sentence.is_spoken[k_fault]:
        return False
    before, after = (
        sentence.tokens[k].lower if 0 <= k < len(sentence.tokens) else ""
        for k in (k_fault - 1, k_fault + 1)
    )
    # "If, after all, she were", "lest he lose it".
    is_irreal = bool(_IRREAL & {one.lower for one in sentence.tokens[:k_fault]})
    is_if = "were" in (sentence.tokens[k_fault].lower, after) and is_irreal
    is_subject = before not in _OBJECTS and sentence.tokens[k_fault].lower not in _OWNED
    if "agree with its subject" in fault.message and (is_if or not is_subject):
        return False  # "The valley beneath us was brimmed up", "his were blue".
    named = [token.text[:1].isupper() for token in sentence.tokens[k_fault + 2 : k_fault + 3]]
    if "possessive pronoun `its`" in fault.message and any(named):
        return False  # "It's Thursday."
    tag = sentence.tokens[k_fault + 1].tag if after else ""
    is_noun = after == "," or before == "of" or tag.startswith("NN")
    if "adverb `every day`" in fault.message and is_noun:
        return False  # "An everyday, sensible woman", "the world of everyday", "everyday living".
    if "possessive pronoun" in fault.message and after in _AFTER_IT_IS:
        return False  # "It's no use."
    if "agree in grammatical number" in fault.message:
        helps = (t for t in sentence.tokens if t.head == k_fault and t.dep in ("aux", "auxpass"))
        token = sentence.tokens[k_fault]
        is_present = token.tag in ("VB", "VBP") and token.lower not in _ALSO_PAST
        is_meant = is_irreal or next(helps, None) is not None
        return is_present and bool(fault.suggestions) and not is_meant
    return True


def _plainness(sentence: ReadSentence, word: str, corrections: Sequence[str]) -> float:
    """How obvious a misspelling is, for the order of notes: from 1 down to 0.

    Transposed letters are typing errors. Otherwise speech may be dialect, a word similar only to
    rare words may be rare itself, and one longer than its correction may be an inflection, such as
    "leant" of "lean".
    """
    if _is_transposed(word, corrections[0]):
        return 1.0
    if not sentence.is_narration:
        return 0.0
    likely = [c.lower() for c in corrections]
    zipf = max(frequencies().zipf(c) for c in likely)
    plainness = min(1.0, max(0.0, (zipf - _RARE_ZIPF) / (_PLAIN_ZIPF - _RARE_ZIPF)))
    return plainness / 2 if any(map(word.lower().startswith, likely)) else plainness


def is_misspelt(name: str, other: str) -> bool:
    """Whether a letter was changed, omitted, added or swapped with its neighbour; a final s makes
    another name (the Millers), and another first letter another person (Mason, Jason)."""
    if name[0] != other[0] or {name + "s", other + "s"} & {name, other}:
        return False
    if len(name) == len(other):
        differ = [k for k, (a, b) in enumerate(zip(name, other, strict=True)) if a != b]
        is_swap = [name[k] for k in differ] == [other[k] for k in reversed(differ)]
        return len(differ) == 1 or (len(differ) == 2 and differ[1] == differ[0] + 1 and is_swap)
    short, long = sorted((name, other), key=len)
    without_one = (long[:k] + long[k + 1 :] for k in range(len(long)))
    return len(long) == len(short) + 1 and short in without_one


def _slips(read: Reading) -> Iterator[LineNote]:
    """Slips of the hand, and sentences that occur twice.

    A refrain occurs more often, or stands alone; a repeated paragraph is noted as a whole.
    """
    whole = []
    for slip in slips(read.text, read.paragraphs, read.speech):
        why = slip.why
        if slip.kind == "paragraph":
            whole.append(slip.place)
            why = f"The same paragraph already occurs{_there(read, slip.also[0])}."
        yield note_of(slip.kind, slip.place, why, also=slip.also)
    places: dict[tuple[str, ...], list[Place]] = defaultdict(list)
    is_book = len(read.text) > _BOOK
    least = _MIN_NEARBY if is_book else _MIN_REPEATED
    for sentence in read.parsed:
        key = tuple(token.lower for token in sentence.words)
        is_whole = read.text[sentence.start : sentence.end].rstrip().endswith((".", "!", "?"))
        if len(key) >= least and sentence.is_narration and is_whole:
            places[key].append((sentence.start, sentence.end))
    alone = {(start, start + len(read.text[start:end].rstrip())) for start, end in read.paragraphs}
    for key, (before, *again) in places.items():
        if len(again) != 1 or overlaps(again[0], whole):
            continue
        is_short, apart = len(key) < _LONG_REPEATED, again[0][0] - before[1]
        is_refrain = len(key) < _MIN_ALONE and alone.issuperset([before, *again])
        # In a book sentences come again by themselves, and at once for emphasis.
        is_far = apart > _NEARBY and len(key) < _MIN_FAR
        is_chance = is_book and (is_far or (apart <= 1 and is_short))
        if not (is_refrain or is_chance):
            why = f"The same sentence already occurs{_there(read, before)}."
            yield note_of("sentence", again[0], why, min(1.0, len(key) / _LONG_REPEATED), [before])


def _there(read: Reading, place: Place) -> str:
    """Where a place is, after "occurs": its chapter or line, or else the words beside it."""
    if where := where_of(read.document, place[0]):
        return f" in {where}"
    left, right = map(str.strip, around_of(read.document, *place))
    return f", after “{left}”" if left else f", before “{right}”" if right else ""


def _echoes(read: Reading) -> Iterator[LineNote]:
    """Rare adjectives and adverbs that recur within 20 words, in the same form.

    A noun or a verb that recurs is what the passage is about. Names are left out: words that are
    capitalized within sentences more often than not.
    """
    places: dict[str, list[tuple[int, Place]]] = defaultdict(list)
    n_lower: Counter[str] = Counter()
    words = [
        (part, *pair)
        for part in read.parsed
        for pair in zip(part.tokens, part.is_spoken, strict=True)
        if pair[0].is_word
    ]
    for number, (sentence, token, is_spoken) in enumerate(words, 1):
        if is_spoken:
            continue
        if token.text.islower() or token.start > sentence.words[0].start:
            n_lower[token.lower] += 1 if token.text.islower() else -1
        is_modifier = token.pos in ("ADJ", "ADV") or token.dep == "amod"
        is_content = is_modifier and len(token.lower) >= _MIN_ECHO
        start, end = sentence.at(token)
        is_part = "-" in (read.text[start - 1 : start], read.text[end : end + 1])
        if is_content and token.lower.isalpha() and not is_part:
            places[token.lower].append((number, sentence.at(token)))
    for word, uses in places.items():
        zipf = frequencies().zipf(word)
        if zipf > _ECHO_ZIPF or len(uses) < 2 or n_lower[word] < 0:
            continue
        if len(uses) > max(3, len(words) // _TOPIC):
            continue
        chain = [uses[0]]
        for use in [*uses[1:], (10**12, (0, 0))]:
            if use[0] - chain[-1][0] <= _ECHO_WORDS:
                chain.append(use)
                continue
            apart = chain[-1][0] - chain[0][0]
            between = read.text[chain[0][1][1] : chain[-1][1][0]]
            is_turn = apart < _ECHO_TURN and _JOINS.search(between) is not None
            if len(chain) > 1 and not is_turn:
                often = "twice" if len(chain) == 2 else f"{len(chain)} times"
                why = f"“{word}” occurs {often} within {apart + 1} words."
                rarity = min(1.0, (_ECHO_ZIPF - zipf) / 2)
                strength = (rarity + (1 - apart / (len(chain) * _ECHO_WORDS))) / 2
                before, place, *after = (place for _, place in chain)
                yield note_of("echo", place, why, strength, [before, *after])
            chain = [use]


_ALSO_PASTS = word_set("become come run shrunk sprung stunk sunk")
_PARTICIPLES = {done: past for past, done in PARTICIPLES.items() if done not in _ALSO_PASTS}
_PARTICIPLES["been"] = "was"
_SINGULAR = word_set(
    "barracks cents crossroads cyclamen days dollars euros feet gallows headquarters hours inches",
    "means mews miles minutes months news nights others pounds seconds series species thirds",
    "fourths quarters summons tenths things times weeks whereabouts works years hundreds thousands",
)
"""Nouns that are singular with this ending, and amounts: "three nights has the same thing"."""
_CONJUNCTIONS = word_set("although because if though unless until whether while")
_SINGULARS = {"was": "were", "has": "have", "is": "are"}
_PLURALS = ("s", "men", "children", "people", "feet", "teeth")
_NOT_OWNED = word_set("home side today tomorrow tonight yesterday")
_AS_OWNED = word_set("best favorite favourite old own")
_OWNERS = word_set(
    "aunts bosses brothers cousins daughters doctors fathers friends grandfathers grandmothers "
    "husbands mothers neighbors neighbours sisters sons teachers uncles wifes"
)


_BESIDE, _MIN_PAST, _MAX_PRESENT, _FEW_PRESENT = 2, 2, 0.2, 0.05
"""Sentences before and after one in the present; their verbs in the past, at least; and the most
presents of a narration for each past, and of one where a name needs no more to be its subject."""
_HABITS = word_set(
    "always ever forever generally never often seldom sometimes still today usually believes hates "
    "keeps knows likes lives loves means remains remembers seems thinks"
)
"""What is so at all times, or at the time of telling."""
_RELATIVES = word_set("that what which who whom whose")


def _forms(read: Reading, *, is_dialect: bool) -> Iterator[LineNote]:
    """Wrong forms in narration, "had went", and possessives without apostrophe."""
    named = Counter(
        token.text
        for sentence in read.parsed
        for token in sentence.tokens
        if token.text.istitle() and token.pos in ("PROPN", "NOUN")
    )
    after_i = Counter(re.findall(r"\bI (\w+)", read.text))
    for sentence in read.parsed:
        tokens = sentence.tokens
        for k, token in enumerate(tokens):
            form = PARTICIPLES.get(tokens[token.head].lower)
            is_helping = token.lower in ("had", "has", "have") and token.dep == "aux"
            # "The fear he had drove him on."
            is_relative = k > 1 and tokens[k - 2].pos in ("NOUN", "PROPN")
            is_relative = is_relative and tokens[k - 1].lower not in ("that", "which", "who")
            between = tokens[k + 1 : token.head]
            is_near = len(between) < 2 or all(one.tag.startswith("RB") for one in between)
            is_near = is_near and token.head > k and not is_relative
            is_meant = is_dialect or sentence.is_spoken[k]
            if form and is_helping and is_near and not is_meant:
                why = f"After “{token.text}” it is “{form}”."
                yield note_of("grammar", sentence.at(tokens[token.head]), why)
            is_bare = token.lower in ("i", "he", "she", "we", "they") and "nsubj" in token.dep
            after = tokens[k + 1].lower if k + 1 < len(tokens) else ""
            # "Had he begun", "hadn't she seen".
            is_asked = any(one.lower in ("had", "has", "have") for one in tokens[max(0, k - 2) : k])
            # A narrator who says it twice speaks so: "I sung it."
            is_meant_here = is_asked or is_meant or after_i[after] > 1
            if is_bare and after in _PARTICIPLES and not is_meant_here:
                why = f"“{after}” does not stand alone; “{_PARTICIPLES[after]}” was probably meant."
                yield note_of("grammar", sentence.at(tokens[k + 1]), why)
            is_owner = token.lower in _OWNERS and k > 0 and tokens[k - 1].tag == "PRP$"
            # "Bernadettes window", but not "the Bernadettes".
            is_name = named[token.text] == 1 and named[token.text[:-1]] >= _MIN_KNOWN
            is_owner |= is_name and token.text.endswith("s") and tokens[k - 1].lower != "the"
            of_noun = ("NN", "NNS") if is_name else ("NN",)
            is_of_noun = after in _AS_OWNED or (after and tokens[k + 1].tag in of_noun)
            # "My cousins side by side", "our neighbors tomorrow".
            if is_owner and is_of_noun and tokens[k + 1].lower not in _NOT_OWNED:
                why = f"“{token.text}” probably lacks an apostrophe."
                yield note_of("grammar", sentence.at(token), why)


def _tenses(read: Reading) -> Iterator[LineNote]:
    """Presents among the pasts of narration, after he, she or a name: "She picks it up."

    What is always so may be said in between.
    """
    told = [
        Counter(t.tag for t, said in zip(s.tokens, s.is_spoken, strict=True) if not said)
        for s in read.parsed
    ]
    n_pasts = [tags["VBD"] for tags in told]
    n_presents = [tags["VBZ"] + tags["VBP"] for tags in told]
    n_present, n_past = sum(n_presents), sum(n_pasts)
    if n_present > _MAX_PRESENT * n_past:
        return
    named = Counter(t.text for s in read.parsed for t in s.tokens if t.pos == "PROPN")
    first = named if n_present <= _FEW_PRESENT * n_past else {}
    for at, sentence in enumerate(read.parsed):
        beside = slice(max(0, at - _BESIDE), at + _BESIDE + 1)
        is_past = sum(n_pasts[beside]) >= _MIN_PAST
        if not is_past or sum(n_presents[beside]) > n_presents[at] or not n_presents[at]:
            continue
        tokens = sentence.tokens
        # "(She does that very well.)" is said by whoever tells the story.
        if tokens[0].text == "(" or not _HABITS.isdisjoint(token.lower for token in tokens):
            continue
        for k, token in enumerate(tokens):
            is_present = token.tag == "VBZ" and token.lower.isalpha() and token.lower[-1] == "s"
            if not is_present or token.lower in _SINGULARS or sentence.is_spoken[k]:
                continue
            if _is_of_person(tokens, k, named) or _is_person(tokens[:k], first):
                why = f"“{token.text}” is in the present, what stands around it in the past."
                yield note_of("grammar", sentence.at(token), why)


def _is_of_person(tokens: Sequence[Token], k: int, named: Mapping[str, int]) -> bool:
    """Whether he or she does what a main verb says, or a person what the verb joined to it does:
    "Ann reached the door and opens it".

    Not if it may be a noun: "silver spurs", "tears and kisses", "he leaned back, elbows up".
    """
    head, before = tokens[k].head, tokens[k - 1].tag
    is_joined = tokens[k].dep == "conj" and tokens[head].tag in ("VBD", "VBN")
    governor = head if is_joined else k
    is_verb = before in (("CC", "RB") if is_joined else (",", "PRP", "RB"))
    is_noun = k > 2 and tokens[k - 2].tag == "NNS"
    is_noun = is_noun and (before == "," or tokens[k - 3].pos == "VERB")
    is_relative = is_joined and not _RELATIVES.isdisjoint(token.lower for token in tokens[:k])
    if tokens[governor].dep != "ROOT" or not is_verb or is_noun or is_relative:
        return False
    subjects = [one for one in tokens if one.head == governor and one.dep == "nsubj"]
    return any(
        one.lower in ("he", "she") or (is_joined and named[one.text] >= _MIN_KNOWN)
        for one in subjects
    )


def _is_person(tokens: Sequence[Token], named: Mapping[str, int]) -> bool:
    """Whether tokens are he, she or a known name of one or two words."""
    if len(tokens) == 1 and tokens[0].lower in ("he", "she"):
        return True
    is_name = len(tokens) in (1, 2) and all(token.tag == "NNP" for token in tokens)
    return is_name and named.get(tokens[-1].text, 0) >= _MIN_KNOWN


def _plurals_with_singular(sentence: ReadSentence) -> Iterator[LineNote]:
    """Plural subjects beside the singular of a verb, in narration: "the lights was"."""
    tokens = sentence.tokens
    for k, token in enumerate(tokens[:-1]):
        is_there = k > 1 and [one.lower for one in tokens[k - 2 : k]] == ["there", "was"]
        # "There was walkers on the road", but not "there was cakes and ale".
        if is_there and token.tag == "NNS" and token.lower.endswith(_PLURALS):
            is_one = token.lower in _SINGULAR or tokens[k + 1].tag in ("CC", ",")
            if not (is_one or sentence.is_spoken[k]):
                why = f"“{token.text}” is plural: “were” was probably meant."
                yield note_of(
                    "grammar", (sentence.at(tokens[k - 1])[0], sentence.at(token)[1]), why
                )
        at = k + 1
        if tokens[at].lower == "of":  # "The results of it was."
            ends = (j for j in range(k + 3, len(tokens[: k + 6])) if tokens[j].lower in _SINGULARS)
            at = next(ends, at)
        verb = tokens[at]
        is_subject = token.tag == "NNS" and token.dep in ("nsubj", "nsubjpass")
        if not is_subject or sentence.is_spoken[k] or verb.lower not in _SINGULARS:
            continue
        is_of_verb = at in (token.head, *_auxiliaries(tokens, token.head))
        first = next((j for j in range(k) if _is_under(tokens, j, k)), k)
        before = tokens[first - 1] if first else None
        # "One of the lights was", "a chair and tables was", "lending ears was", "two knocks was a",
        # "as he said these words was".
        is_joined = first > 1 and tokens[first - 1].tag == "CC" and tokens[first - 2].is_word
        is_of = before is not None and before.tag == "IN" and before.lower not in _CONJUNCTIONS
        is_of |= before is not None and before.pos == "VERB"
        is_part = is_joined or is_of or tokens[first].lower.endswith("ing")
        is_part |= sentence.tokens[0].lower == "one"
        has_start = first < k or before is None or before.lower in _CONJUNCTIONS
        is_amount = tokens[first].tag == "CD" and "DT" in [t.tag for t in tokens[at + 1 : at + 2]]
        is_plural = token.text.islower() and token.text.endswith(_PLURALS)
        is_plural = is_plural and token.text not in _SINGULAR
        if is_of_verb and has_start and is_plural and not (is_part or is_amount):
            why = f"“{token.text}” is plural: “{_SINGULARS[verb.lower]}” was probably meant."
            yield note_of("grammar", (sentence.at(token)[0], sentence.at(verb)[1]), why)


def _is_under(tokens: Sequence[Token], at: int, head: int) -> bool:
    """Whether a token depends on another one, directly or by others."""
    while tokens[at].head not in (at, head):
        at = tokens[at].head
    return tokens[at].head == head


def _auxiliaries(tokens: Sequence[Token], head: int) -> list[int]:
    return [k for k, one in enumerate(tokens) if one.head == head and one.dep in ("aux", "auxpass")]


RULES: tuple[Callable[[Reading], Iterator[LineNote]], ...] = (
    names,
    _slips,
    errors,
    _tenses,
    _echoes,
)


@dataclass(frozen=True, slots=True)
class LineReview:
    """All notes on a text, in text order; none, with the reason, if it cannot be read."""

    n_words: int | None
    """None if they are not English words."""
    notes: tuple[LineNote, ...]
    signature: str
    missing_reason: str | None = None

    def without(self, kinds: Collection[str], also: Collection[str] = ()) -> LineReview:
        """The review without notes of these kinds, and without those that are off by default unless
        in `also`; its signature names what is left out."""
        off = {kind.id for kind in LINE_KINDS.values() if not kind.is_on} - set(also)
        omitted = sorted((set(kinds) | off) & LINE_KINDS.keys())
        if not omitted:
            return self
        notes = tuple(note for note in self.notes if note.kind not in omitted)
        return replace(self, notes=notes, signature=f"{self.signature}|without:{'+'.join(omitted)}")

    def to_row(self, document: Document) -> dict[str, Any]:
        """As written to JSON: the notes, and how many there are of each kind."""
        return {
            "id": document.id,
            "n_words": self.n_words,
            "n_notes": dict(sorted(Counter(note.kind for note in self.notes).items())),
            "notes": [
                {
                    "line": line_of(document.text, note.start),
                    "text": document.text[note.start : note.end],
                    **asdict(note),
                    "precision": LINE_KINDS[note.kind].precision,
                }
                for note in self.notes
            ],
            "missing_reason": self.missing_reason,
            "signature": self.signature,
        }

    def measurements(self, document_id: str) -> Iterator[Measurement]:
        """The number of notes of each kind, and their places, as measurements."""
        parts = dict(Signature.parse(self.signature).parts)
        omitted = parts.get("without", "").split("+")
        omitted += [CONFUSED] * ("proofreading" not in parts)
        for kind in LINE_KINDS:
            if kind in omitted:
                continue
            notes = [note for note in self.notes if note.kind == kind]
            spans = tuple(Span(document_id, note.start, note.end) for note in notes)
            about = document_id, "lines", kind, "fabula"
            result = None if self.missing_reason else len(notes), self.missing_reason
            yield Measurement(*about, *result, spans, None, self.signature)


def read_lines(tools: TextTools, document: Document) -> LineReview:
    """The notes on a text; headings are not sentences."""
    grammar = "none" if tools.checker is None else tools.checker.name
    parts = {"rules": LINE_RULES, "grammar": grammar, "freq": tools.frequencies.name}
    parts |= {"heads": CHAPTER_RULES, **tools.parser.signature_parts}
    signature = str(Signature.of("lines", **parts))
    text = without_headings(document)
    if (foreign := not_english(text)) is not None:
        return LineReview(None, (), signature, foreign)
    reading = tools.read(text)
    # Places are said by the headings of the whole text.
    reading.document = document
    if not any(sentence.words for sentence in reading.parsed):
        return LineReview(0, (), signature, "no_words")
    notes = [note for rule in RULES for note in rule(reading)]
    notes.sort(key=lambda note: (note.start, note.end, note.kind))
    # The checker finds some of what a rule here does: "infront", "in february".
    found: list[LineNote] = []
    for note in notes:
        same = (n for n in found[-2:] if {n.kind, note.kind} <= {"grammar", "spelling"})
        if not any(note.start < other.end for other in same):
            found.append(note)
    return LineReview(count_words(document.text), tuple(found), signature)


Wanted = Literal["profile", "lines"]
_FEW = 4
"""Below this many texts, starting processes is not worthwhile."""


@dataclass(frozen=True, slots=True)
class DraftReading:
    """What was requested for a draft, read once: its profile, and the notes on its lines."""

    profile: Profile | None
    lines: LineReview | None


def read_drafts(
    documents: Iterable[Document],
    wanted: Collection[Wanted],
    grammar: str = "harper",
    *,
    n_jobs: int = 1,
) -> Iterator[DraftReading]:
    """Each document's profile, and the notes on its lines, in order.

    grammar: a checker, as for `open_checker`. Raises `ModelError` if a dependency is missing.
    """
    read = functools.partial(_read, grammar, frozenset(wanted))
    yield from in_order(read, check_documents(documents), n_jobs, n_small=_FEW)


_PIECE_CHARS = 24_000
"""About 4,000 words, which take several seconds to parse and to check."""


def read_pieces(document: Document, grammar: str, *, n_jobs: int = 1) -> Iterator[tuple[int, int]]:
    """Read what is new in a long text piece by piece; yields the number of pieces and the end of
    each in the text, in order. `read_drafts` then finds its sentences among cached results.

    Raises `ModelError` if a dependency is missing.
    """
    text = without_headings(document)
    pieces: list[tuple[int, int]] = []
    for start, end in [] if not_english(text) else unread_spans(text, load_pipeline(SENTENCES)):
        if pieces and end - pieces[-1][0] < _PIECE_CHARS:
            start = pieces.pop()[0]
        pieces.append((start, end))
    if len(pieces) < _FEW:
        return
    parts = (text[start:end] for start, end in pieces)
    read = in_order(functools.partial(_read_piece, grammar), parts, n_jobs)
    for (_, end), _ in zip(pieces, read, strict=True):
        yield len(pieces), end


def _read_piece(grammar: str, text: str) -> None:
    tools = opened_tools(grammar)
    for form in (text, spaced(text)):
        assert tools.read(form).parsed is not None


def _read(grammar: str, wanted: frozenset[Wanted], document: Document) -> DraftReading:
    tools = opened_tools(grammar)
    profile = profile_text(tools, document) if "profile" in wanted else None
    return DraftReading(profile, read_lines(tools, document) if "lines" in wanted else None)
