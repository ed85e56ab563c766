"""The people named in a long text, where, and who of them says how much.

A name is a word that is capitalized within sentences, hardly ever in lower case, and that the
pipeline tags as a person at most of the places that are checked (up to eight of each word, spread
over the text, since it is slow), or that stands where only speakers do ("...," said Perks). Family
words are names where they are capitalized within sentences without an article, a possessive or a
name ("told Mother", not "my Mother", "Mother Hulda"). Speakers in capitals after "the" are people
too: "said the Story Girl", "said the Mole".

Forms of a name are joined by rules: "Anne" and "Anne Shirley", "Mr. Darcy" and "Darcy" if nobody
else has that name. A surname shared by several people goes to the one who has three quarters of its
uses, or is kept separate. Pronouns, nicknames ("Lizzy") and people who are never named ("the
captain", the narrator) are not joined: a count says how often a name occurs, not how long the
person is present.

A speech belongs to the person named beside it with a verb of saying: in the clause right after it
("...," said Anne; "...," Anne said) or right before it (Anne said softly, "..."). A speech without
such words has the speaker of its paragraph, if that has one. Pronouns ("she said") and turns
without a name are not attributed: counting cannot separate two speakers who take turns.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import regex

from fabula.core.cached_results import Kept, Memo
from fabula.text.pipeline import NAMES, load_pipeline, pipeline_name
from fabula.text.reading import Reading
from fabula.text.sentences import encodable
from fabula.text.speech import SAYING, WORD
from fabula.text.words import word_set

CAST_RULES = "3"
"""Version: changes with any rule or threshold below."""

_N_ASKED = 8
_BATCH = 64
_REMEMBERED_CHARS = 1 << 20
_MIN_NAMED = 5
_MOST = 0.75
_KINDS = {
    "mr": "mr mister sir lord master monsieur",
    "mrs": "mrs madam madame lady",
    "miss": "miss mistress ms mademoiselle",
    "rank": "dr doctor professor captain colonel general major lieutenant sergeant inspector "
    "detective officer judge squire count countess baron duke saint st reverend rev",
}
_ALONE = "uncle aunt king queen prince princess father mother brother sister"
_TITLES = {title: kind for kind, titles in _KINDS.items() for title in titles.split()}
_TITLES |= {title: title for title in _ALONE.split()}
_KIN = word_set(
    "Mother Father Mamma Mama Mammy Mummy Mum Mom Mommy Ma Papa Pa Dad Daddy Grandmother",
    "Grandfather Grandmamma Grandpapa Grandma Grandpa Granny Gran Grandad Auntie Aunty Aunt Uncle",
)
"""Family words; one is a name where `_DETERMINED` does not precede it, and no name follows."""
_DETERMINED = re.compile(
    r"(?:\b(?:a|an|the|my|thy|his|her|your|our|their|its|this|some|any|every|each|no|whose|old"
    r"|heavenly|almighty|holy)|['’]s)(?:\s(?:dear|dearest|darling|poor|own|good|little|sweet))*\s\Z",
    re.IGNORECASE,
)
_WORD_BEFORE = re.compile(r"\b[a-z][\w'’-]*\s\Z")
_MIN_SPEAKING = 3
"""Minimum number of places beside speech and its verb at which a word is a person's name."""
_NEVER = word_set(
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April June",
    "July August September October November December Christmas Easter God Lord Heaven Bible",
    "English French German American Chapter Book Part Volume",
)
_NAME = r"(?:\p{Lu}['’])?\p{Lu}\p{L}*\p{Ll}\p{L}*(?:-\p{Lu}\p{L}+)*"
_WORD = regex.compile(rf"(?<![\p{{L}}'’-]){_NAME}")
_SMALL = regex.compile(r"(?<![\p{L}'’-])\p{Ll}[\p{L}-]*")
_SAID = "|".join(sorted(SAYING))
_SPEAKING = regex.compile(
    rf"[\"”'’]\s(?:(?:{_SAID})\s({_NAME})(?![\p{{L}}'’-]|\s\p{{Lu}})|({_NAME})\s(?:{_SAID})\b)"
)
_KIN_WORD = regex.compile(
    rf"(?<![\p{{L}}'’-])(?:{'|'.join(sorted(_KIN))})(?![\p{{L}}-]|\sof\b|\s\p{{Lu}}[\p{{L}}.])"
)
_CALLED = rf"[Tt]he((?:\s{_NAME}){{1,3}})(?![\p{{L}}'’-]|\s\p{{Lu}})"
_CALLED_SPEAKING = regex.compile(rf"[\"”'’]\s(?:(?:{_SAID})\s{_CALLED}|{_CALLED}\s(?:{_SAID})\b)")
_CAPITALISED_TITLES = "|".join(sorted((t.capitalize() for t in _TITLES), key=len, reverse=True))

Place = tuple[int, int]
_Form = tuple[str, tuple[str, ...]]
"""A title's kind, or none, and the words of a name."""


@dataclass(frozen=True, slots=True)
class Person:
    """A person by the most frequent form of the name, and all places of all forms."""

    name: str
    forms: tuple[str, ...]
    places: tuple[Place, ...]


def cast_of(read: Reading) -> list[Person]:
    """The people named at least five times in a text, the most frequent first."""
    people = list(_family(read.text))
    names = _names(read)
    people += _called(read.text, names)
    if not names:
        return people
    word = "|".join(map(regex.escape, sorted(names, key=len, reverse=True)))
    run = regex.compile(
        rf"(?<![\p{{L}}'’-])(?:(?P<title>{_CAPITALISED_TITLES})\.?\s)?"
        rf"(?P<name>(?:{word})(?:\s(?:{word}))*)(?![\p{{L}}-])"
    )
    by_form: dict[_Form, list[Place]] = defaultdict(list)
    shown: dict[_Form, Counter[str]] = defaultdict(Counter)
    for match in run.finditer(read.text):
        title = _TITLES[match["title"].lower()] if match["title"] else ""
        form = title, tuple(match["name"].split())
        by_form[form].append(match.span())
        shown[form][" ".join(match[0].split())] += 1
    for forms in _joined({form: len(places) for form, places in by_form.items()}):
        places = sorted(place for form in forms for place in by_form[form])
        n_by_name = Counter(name for form in forms for name in shown[form].elements())
        ordered = sorted(n_by_name, key=lambda name: (-n_by_name[name], name))
        if len(places) >= _MIN_NAMED:
            people.append(Person(ordered[0], tuple(ordered), tuple(places)))
    return sorted(people, key=lambda person: (-len(person.places), person.name))


def _names(read: Reading) -> set[str]:
    text, nlp = read.text, load_pipeline(NAMES)
    small = Counter(match[0] for match in _SMALL.finditer(text))
    places: dict[str, list[int]] = defaultdict(list)
    n_within: Counter[str] = Counter()
    n_titled: Counter[str] = Counter()
    n_speaking = Counter(match[1] or match[2] for match in _SPEAKING.finditer(text))
    for match in _WORD.finditer(text):
        word, start = match[0], match.start()
        if word in _NEVER or word in _KIN or word.lower() in _TITLES:
            continue
        places[word].append(start)
        before = text[max(0, start - 14) : start].rstrip()
        last = before.rsplit(None, 1)[-1].rstrip(".").lower() if before else ""
        n_titled[word] += last in _TITLES
        n_within[word] += last in _TITLES or before[-1:].isalpha() or before[-1:] in (",", ";")
    candidates = {
        word: starts
        for word, starts in places.items()
        if len(starts) >= _MIN_NAMED
        and 5 * n_within[word] >= len(starts)
        and 10 * small[word.lower()] <= len(starts)
    }
    # How often each word is tagged as a person, out of the places checked.
    chosen: set[tuple[int, int]] = set()
    for starts in candidates.values():
        step = max(1, len(starts) // _N_ASKED)
        chosen.update(map(read.paragraph_of, starts[::step][:_N_ASKED]))
    parts = [encodable(" ".join(text[slice(*span)].split())) for span in sorted(chosen)]
    named: Counter[str] = Counter()
    checked: Counter[str] = Counter()

    def find(paragraphs: Sequence[str]) -> Iterator[frozenset[int]]:
        for doc in nlp.pipe(paragraphs, batch_size=_BATCH):
            people = (entity for entity in doc.ents if entity.label_ == "PERSON")
            yield frozenset(token.idx for entity in people for token in entity)

    for part, people in zip(parts, _people_memo(nlp).each(parts, find, _BATCH), strict=True):
        for match in _WORD.finditer(part):
            if match[0] in candidates:
                checked[match[0]] += 1
                named[match[0]] += match.start() in people
    return {
        word
        for word, starts in candidates.items()
        if 2 * named[word] >= max(1, checked[word])
        or 3 * n_titled[word] >= len(starts)
        or n_speaking[word] >= _MIN_SPEAKING
    }


def _family(text: str) -> Iterator[Person]:
    """The people who are called by a family word alone, at least five times within sentences."""
    places: dict[str, list[Place]] = defaultdict(list)
    n_within: Counter[str] = Counter()
    for match in _KIN_WORD.finditer(text):
        before = text[max(0, match.start() - 40) : match.start()]
        if not _DETERMINED.search(before):
            places[match[0]].append(match.span())
            # Not "Heavenly Father", nor where a capital begins a sentence or an address.
            n_within[match[0]] += bool(_WORD_BEFORE.search(before))
    for word, of_word in places.items():
        if n_within[word] >= _MIN_NAMED:
            yield Person(word, (word,), tuple(of_word))


def _called(text: str, names: Set[str]) -> Iterator[Person]:
    """Those who speak and are called by what they are, in capitals: the Story Girl, the Mole."""
    n_speaking = Counter(
        " ".join((match[1] or match[2]).split()) for match in _CALLED_SPEAKING.finditer(text)
    )
    for called, n in n_speaking.items():
        if n < _MIN_SPEAKING or names & set(called.split()):
            continue
        words = r"\s".join(map(regex.escape, called.split()))
        found = regex.finditer(rf"(?<!\p{{L}})[Tt]he\s{words}(?![\p{{L}}-]|\s\p{{Lu}})", text)
        if len(places := [match.span() for match in found]) >= _MIN_NAMED:
            yield Person(f"the {called}", (f"the {called}",), tuple(places))


@functools.cache
def _people_memo(nlp: Any) -> Memo[frozenset[int]]:
    """The places of words in people's names, by paragraph, that a pipeline found."""
    kept = Kept(f"people 1|{pipeline_name(nlp)}", sorted, lambda _, places: frozenset(places))
    return Memo(_REMEMBERED_CHARS, kept)


def _joined(counts: dict[_Form, int]) -> list[list[_Form]]:
    """Forms that mean one person, by the rules in this module's docstring."""
    group: dict[_Form, _Form] = {form: form for form in counts}

    def root(form: _Form) -> _Form:
        while group[form] != form:
            form = group[form]
        return form

    def join(form: _Form, others: Sequence[_Form]) -> bool:
        """Join with the only other group, or with the one that has most of them."""
        weights: Counter[_Form] = Counter()
        for other in others:
            weights[root(other)] += counts[other]
        best = weights.most_common(1)
        if not best or best[0][1] < _MOST * weights.total():
            return False
        group[root(form)] = best[0][0]
        return True

    ordered = sorted(counts, key=lambda form: (-len(form[1]), -counts[form], form))
    full = [form for form in ordered if len(form[1]) > 1]
    titled = [form for form in ordered if len(form[1]) == 1 and form[0]]
    alone = [form for form in ordered if len(form[1]) == 1 and not form[0]]
    for form in full:
        alike = [other for other in full if other != form and other[1] == form[1]]
        ends = (form[1][0], form[1][-1])
        alike += [o for o in full if len(o[1]) == 2 < len(form[1]) and o[1] == ends]
        if ("mrs", form[1][:1]) in counts or ("mr", form[1][-1:]) in counts:
            # The wife of Joe Gargery is called by his name.
            alike = [other for other in alike if (other[0] == "mrs") == (form[0] == "mrs")]
        join(form, alike)
    for form in titled:
        title, (name,) = form
        with_title = [o for o in full if name in (o[1][0], o[1][-1]) and o[0] == title]
        first = [o for o in (*full, *alone) if o[1][0] == name and o[0] in ("", title)]
        is_surname = any(o[1][-1] == name for o in full)
        n_titles = len({o[0] for o in titled if o[1] == form[1]})
        plain = [o for o in full if o[1][-1] == name and not o[0]]
        if with_title:
            join(form, with_title)
        elif not is_surname and first and n_titles == 1 and title != "mrs":
            join(form, first)
        elif n_titles == 1 and title != "mrs" and len({root(o) for o in plain}) == 1:
            join(form, plain)
    for form in alone:
        name = form[1][0]
        first = [o for o in full if o[1][0] == name]
        last = [o for o in (*full, *titled) if o[1][-1] == name]
        men = [o for o in last if o[0] == "mr"]
        join(form, first or ([o for o in last if o[0] not in ("mrs", "miss")] if men else last))
    people: dict[_Form, list[_Form]] = defaultdict(list)
    for form in ordered:
        people[root(form)].append(form)
    return list(people.values())


TALK_RULES = "1"
"""Version: changes with any rule or threshold below."""

_MAX_CHARS = 120
_MAX_BETWEEN = 1
"""Words between a name and its verb: poor, softly."""
_MAX_FIRST = 2
"""Words between the speech and the nearer of the two."""
_MAX_LAST = 6
"""Words from the verb to a speech that follows it."""
_END = re.compile(r"[.!?;…]")
_NO_SUBJECT = word_set(
    "to of for at and with by the a that as when while in about on from her his my their our",
    "your than like beside before after behind upon into",
)
"""After one of these a name is not the speaker: said to Anne."""

_TELLER = "I"
"""The narrator, who has no name."""


@dataclass(frozen=True, slots=True)
class Talk:
    """What somebody says."""

    n_speeches: int
    n_words: int


def talk_of(
    people: Sequence[Person], speakers: Sequence[str | None], n_words: Sequence[int]
) -> Mapping[str, Talk]:
    """By name, for those who say anything. n_words: for each speech."""
    n_speeches, n_said = Counter[str](), Counter[str]()
    for speaker, n in zip(speakers, n_words, strict=True):
        if speaker is not None:
            n_speeches[speaker] += 1
            n_said[speaker] += n
    named = [person.name for person in people if person.name in n_speeches]
    return {name: Talk(n_speeches[name], n_said[name]) for name in named}


def speakers_of(read: Reading, people: Sequence[Person]) -> list[str | None]:
    """The name of each speech's speaker, in order; None if unknown."""
    text, speech = read.text, read.speech
    names = sorted((start, end, person.name) for person in people for start, end in person.places)
    speakers: list[str | None] = []
    starts = [start for start, _ in speech]
    for low, high in read.paragraphs:
        # The speeches that begin in the paragraph.
        inside = speech[len(speakers) : bisect_left(starts, high)]
        of_paragraph = []
        for k, (start, end) in enumerate(inside):
            before = inside[k - 1][1] if k else low
            after = inside[k + 1][0] if k + 1 < len(inside) else high
            # In the clause that follows the speech.
            after = min(after, end + _MAX_CHARS)
            stop = _clause_end(text, end, after, names)
            speaker = _subject(_words_of(text, end, after), stop, _MAX_FIRST, names)
            at = max(before, start - _MAX_CHARS)
            if not speaker and text[at:start].rstrip()[-1:] in (",", ":"):
                # In the clause before it, ending in a comma or colon.
                while (stop := _clause_end(text, at, start, names)) < start:
                    at = stop + 1
                words = _words_of(text, at, start)
                says = (k for k, (_, word) in enumerate(words) if word.lower() in SAYING)
                if len(words) - max(says, default=0) <= _MAX_LAST:
                    speaker = _subject(words, start, len(words), names)
            of_paragraph.append(speaker)
        named = {name for name in of_paragraph if name is not None}
        only = named.pop() if len(named) == 1 else None
        speakers += [name or only for name in of_paragraph]
    return [name if name != _TELLER else None for name in speakers]


def _words_of(text: str, start: int, end: int) -> list[tuple[int, str]]:
    return [(match.start(), match[0]) for match in WORD.finditer(text, start, end)]


def _clause_end(text: str, start: int, end: int, names: Sequence[tuple[int, int, str]]) -> int:
    """The first mark that ends a sentence, except those within a name: Mr. Darcy."""
    for mark in _END.finditer(text, start, end):
        k = bisect_left(names, (mark.start(),)) - 1
        if k < 0 or names[k][1] <= mark.start():
            return mark.start()
    return end


def _subject(
    words: Sequence[tuple[int, str]], stop: int, most: int, names: Sequence[tuple[int, int, str]]
) -> str | None:
    """The name next to the first speech verb; at most `most` words come before both."""
    words = [(place, word) for place, word in words if place < stop]
    verb = next((k for k, (_, word) in enumerate(words) if word.lower() in SAYING), None)
    if verb is None:
        return None
    beside = [word for _, word in words[max(0, verb - 1) : verb + 2]]
    if verb <= most and not {"I", "we", "We"}.isdisjoint(beside):
        return _TELLER
    places = [place for place, _ in words]
    begin = bisect_left(names, (places[0] if places else 0,))
    for low, high, name in names[begin : bisect_left(names, (stop,))]:
        first = bisect_left(places, low)
        last = bisect_left(places, high) - 1
        if min(first, verb) > most:
            continue
        between = words[last + 1 : verb] if last < verb else words[verb + 1 : first]
        is_subject = not any(
            word.lower() in _NO_SUBJECT
            for _, word in (between if first > verb else words[max(0, first - 1) : first])
        )
        if len(between) <= _MAX_BETWEEN and is_subject:
            return name
    return None
