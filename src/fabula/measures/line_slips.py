"""Where a draft leaves its own tense or viewpoint, says a thing twice, or overuses a phrase.

What is usual is taken from the draft itself, or, for phrases, from fiction of its kind: no rule
prescribes a style. Only narration is checked; speakers may say anything.
"""

from __future__ import annotations

import functools
import gzip
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fabula.measures.line_read import LineNote, Place, ReadSentence, ReadText, note_of
from fabula.measures.linguistic.lexis import Frequencies
from fabula.measures.linguistic.parsing import Token
from fabula.text.marks import SAYING, word_set

__all__ = [
    "NO_MANNER",
    "PET_FILE",
    "adverbs",
    "is_common",
    "pet_phrases",
    "pet_phrases_name",
    "phrases_of",
    "tense_slips",
    "viewpoint_slips",
]

PET_FILE = Path(__file__).parent / "fiction_phrases.json.gz"
"""How often phrases occur in published fiction, counted by `bench/line_phrases.py`."""

_MIN_VERBS = 12
"""Minimum number of sentences with a known tense for a text to have one."""
_ONE_TENSE = 0.9
_PAST, _PRESENT = "VBD", ("VBZ", "VBP")
_STRAY = "VBZ"
"""Unambiguously of another tense: a parser may also tag "begin" as the present."""
_ALWAYS_PRESENT = word_set("is are am 's 're 'm has have 've means mean seems seem says say said")
"""Their present tense often states what always holds, or is part of another tense."""

_MIN_NARRATED = 20
_FIRST = word_set("i me my mine myself we us our ours ourselves")
_FIRST_ONE = word_set("i me my mine myself")
_MAX_FIRST = 0.02
"""A share of narrated sentences: if more mention an "I", the narration is in the first person."""
_MAX_SLIPS = 3

NO_MANNER = word_set(
    "only early hardly nearly scarcely merely really certainly actually finally suddenly lately",
    "presently usually generally recently probably possibly surely simply exactly fully wholly",
    "entirely perfectly completely utterly absolutely especially particularly mostly partly",
    "barely likely unlikely daily weekly monthly yearly rarely seldom frequently immediately",
    "instantly shortly firstly secondly lastly namely truly apparently evidently obviously",
    "naturally fortunately unfortunately luckily happily-ever fairly highly nearby solely purely",
    "equally similarly accordingly consequently eventually formerly previously originally",
    "constantly continually occasionally constantly directly precisely practically virtually",
    "mainly chiefly largely greatly deeply badly terribly extremely exceedingly very family",
    "reply supply apply fly july italy ally belly jolly holy ugly lonely lovely friendly silly",
)
_SAID_TWICE = {
    "whispered": "quietly softly",
    "whisper": "quietly softly",
    "whispers": "quietly softly",
    "murmured": "quietly softly",
    "mumbled": "quietly indistinctly",
    "shouted": "loudly",
    "shout": "loudly",
    "shouts": "loudly",
    "yelled": "loudly",
    "screamed": "loudly",
    "shrieked": "loudly",
    "roared": "loudly",
    "bellowed": "loudly",
    "ran": "quickly fast",
    "raced": "quickly",
    "rushed": "quickly hurriedly",
    "rush": "quickly",
    "dashed": "quickly",
    "sprinted": "quickly fast",
    "hurried": "quickly hastily",
    "hastened": "quickly hastily",
    "crept": "slowly quietly stealthily",
    "creeping": "slowly quietly",
    "creep": "quietly",
    "tiptoed": "quietly softly",
    "sneaked": "quietly stealthily",
    "strolled": "slowly leisurely",
    "sauntered": "slowly casually",
    "trudged": "slowly wearily heavily",
    "ambled": "slowly",
    "grinned": "happily",
    "beamed": "happily brightly",
    "smiled": "happily",
    "glared": "angrily",
    "scowled": "angrily",
    "stormed": "angrily",
    "raged": "angrily furiously",
    "sobbed": "sadly",
    "wept": "sadly",
    "clenched": "tightly",
    "clutched": "tightly",
    "gripped": "tightly firmly",
    "grasped": "firmly tightly",
    "slammed": "loudly hard",
    "trembled": "nervously",
    "plummeted": "quickly",
    "gobbled": "quickly",
    "bolted": "quickly",
    "gazed": "fixedly",
    "stared": "fixedly intently",
    "sighed": "sadly wearily",
    "nodded": "affirmatively",
}
"""What a verb already expresses."""

_INNER = word_set(
    "thought wondered knew felt hoped feared wanted wished realized realised remembered decided",
    "believed supposed doubted longed dreaded understood guessed",
)
"""What only an inside view can report, in the past tense of stories."""
_MIN_INNER = 5
_ONE_HEAD = 0.8

_PET_SIZES = (5, 4, 3)
_MIN_PET = 4
_PET_REACH = 0.4
"""Minimum share of the text that its places span: nearer ones respond to each other."""
_OPEN = word_set("a an the and or but of to in on at by for with from that as his her its their my")
"""A phrase that begins or ends with one of these is a fragment of others."""
_PET_RATIO = 8.0
_PET_LOG_P = math.log(1e-5)
_PET_ZIPF = 4.3
"""A phrase with a rarer word belongs to the topic of the text."""
_PET_POS = ("VERB", "ADV")
_PLAIN = SAYING | word_set("is are was were be been had has have did do does went go")


def tense_slips(read: ReadText) -> Iterator[LineNote]:
    """A verb of one person's action in another tense than the narration before and after it.

    Applies if nine of ten sentences are in the past, or in the present. General truths, remarks to
    the reader and what "I" think of it now are in the present in any story.
    """
    told = [one for one in read.sentences if one.is_narration and one.words]
    tenses = [_tense(one) for one in told]
    known = [tense for tense in tenses if tense]
    if len(known) < _MIN_VERBS:
        return
    usual, n_usual = Counter(known).most_common(1)[0]
    if n_usual < _ONE_TENSE * len(known):
        return
    other = "present" if usual == "past" else "past"
    for k, (sentence, tense) in enumerate(zip(told, tenses, strict=True)):
        around = [tenses[j] for j in (k - 1, k + 1) if 0 <= j < len(told)]
        if tense == other == "present" and all(one == usual for one in around):
            token = _root(sentence)
            if token is not None and token.tag == _STRAY and _is_one_doing(sentence, token):
                yield _tense_note(read, sentence, token, usual, other)
        elif tense == usual:
            for token in _joined(sentence):
                if _tense_of(token) == other and (usual == "present" or token.tag == _STRAY):
                    yield _tense_note(read, sentence, token, usual, other)


def _tense_note(
    read: ReadText, sentence: ReadSentence, token: Token, usual: str, other: str
) -> LineNote:
    place = sentence.at(token)
    return note_of(
        "tense",
        place,
        f"“{read.text[slice(*place)]}” is in the {other} tense, in a story told in the {usual}.",
    )


def _root(sentence: ReadSentence) -> Token | None:
    return next((t for t in sentence.tokens if t.dep == "ROOT" and t.pos in ("VERB", "AUX")), None)


def _tense_of(token: Token) -> str | None:
    return "past" if token.tag == _PAST else "present" if token.tag in _PRESENT else None


def _tense(sentence: ReadSentence) -> str | None:
    """The tense of a sentence's main verb, or of its auxiliary; None if it has none."""
    root = _root(sentence)
    if root is None:
        return None
    number = sentence.tokens.index(root)
    helps = [t for t in sentence.tokens if t.head == number and t.dep in ("aux", "auxpass")]
    if any(t.tag == "MD" for t in helps):
        return None
    return next(filter(None, map(_tense_of, (*helps, root))), None)


def _is_one_doing(sentence: ReadSentence, verb: Token) -> bool:
    """Whether the subject is he, she or a name, and the sentence is no aside to the reader."""
    number = sentence.tokens.index(verb)
    words = {token.lower for token in sentence.words}
    if verb.lower in _ALWAYS_PRESENT or words & (_FIRST | {"you", "your", "one", "always"}):
        return False
    if sentence.tokens[-1].text.startswith("?"):
        return False
    subject = next((t for t in sentence.tokens if t.dep == "nsubj" and t.head == number), None)
    return subject is not None and (subject.lower in ("he", "she") or subject.pos == "PROPN")


def _joined(sentence: ReadSentence) -> Iterator[Token]:
    """Verbs that share the subject of the main one: "She rose and goes"."""
    root = _root(sentence)
    if root is None:
        return
    number = sentence.tokens.index(root)
    for k, token in enumerate(sentence.tokens):
        if token.dep != "conj" or token.head != number or token.pos != "VERB":
            continue
        own = [t for t in sentence.tokens if t.head == k]
        is_own = any(t.dep in ("nsubj", "nsubjpass", "aux", "auxpass", "expl") for t in own)
        if not is_own and token.lower not in _ALWAYS_PRESENT:
            yield token


def viewpoint_slips(read: ReadText) -> Iterator[LineNote]:
    """An "I" in narration that otherwise has none, and thoughts of a non-viewpoint character."""
    told = [one for one in read.sentences if one.is_narration and one.words]
    if len(told) < _MIN_NARRATED:
        return
    own = [
        (sentence, token)
        for sentence in told
        for token in sentence.words
        if token.lower in _FIRST_ONE and (token.lower != "i" or token.text == "I")
    ]
    if own and len(own) <= max(1, min(_MAX_SLIPS, _MAX_FIRST * len(told))):
        for sentence, token in own:
            yield note_of(
                "viewpoint",
                sentence.at(token),
                f"“{token.text}” in a story that nobody tells as “I”: a thought, the narrator, or "
                f"a slip?",
            )
    yield from _other_heads(told)


def _other_heads(told: Sequence[ReadSentence]) -> Iterator[LineNote]:
    found: dict[str, list[Place]] = defaultdict(list)
    for sentence in told:
        for k, token in enumerate(sentence.tokens):
            if token.lower not in _INNER or token.pos != "VERB":
                continue
            for subject in sentence.tokens:
                is_subject = subject.dep == "nsubj" and subject.head == k
                if is_subject and subject.pos == "PROPN" and subject.start < token.start:
                    found[subject.text].append((sentence.at(subject)[0], sentence.at(token)[1]))
    counts = Counter({name: len(places) for name, places in found.items()})
    if not counts:
        return
    whose, n = counts.most_common(1)[0]
    if n < _MIN_INNER or n < _ONE_HEAD * counts.total():
        return
    for name, places in found.items():
        for place in places if name != whose else ():
            yield note_of(
                "viewpoint",
                place,
                f"What {name} has in mind, where else it is {whose}'s thoughts that are told.",
                0.5,
            )


def adverbs(read: ReadText) -> Iterator[LineNote]:
    """Adverbs that repeat what their verb already says."""
    for sentence in read.sentences:
        tokens = sentence.tokens
        for k, token in enumerate(tokens):
            if sentence.is_spoken[k] or not _is_of_manner(token, tokens):
                continue
            verb = tokens[token.head]
            if token.lower in _SAID_TWICE.get(verb.lower, "").split():
                why = f"“{verb.text}” says “{token.lower}” already."
                yield note_of("adverb", sentence.at(token), why)


def _is_of_manner(token: Token, tokens: Sequence[Token]) -> bool:
    is_adverb = token.pos == "ADV" and token.lower.endswith("ly") and token.dep == "advmod"
    return is_adverb and token.lower not in NO_MANNER and tokens[token.head].pos == "VERB"


def pet_phrases(read: ReadText) -> Iterator[LineNote]:
    """Phrases of common words that recur far more often than in published fiction.

    A Poisson test against the phrase's rate there (or, if it is too rare to be listed, the highest
    rate that it can have), and at least eight times that rate.
    """
    found: dict[tuple[str, ...], list[Place]] = defaultdict(list)
    for sentence in read.sentences:
        for phrase, place in phrases_of(sentence):
            found[phrase].append(place)
    n_words, least, rates = _fiction()
    taken = set[Place]()
    often = [phrase for phrase, places in found.items() if len(places) >= _MIN_PET]
    for phrase in sorted(often, key=lambda one: (-len(one), -len(found[one]), one)):
        places = [
            place
            for place in found[phrase]
            if not any(a <= place[0] and place[1] <= b for a, b in taken)
        ]
        if (
            len(places) < _MIN_PET
            or not _is_apart(read, places)
            or not is_common(read.frequencies, phrase)
        ):
            continue
        expected = rates.get(" ".join(phrase), least) / n_words * read.n_words
        is_more = len(places) >= _PET_RATIO * expected
        if not is_more or _log_tail(len(places), expected) > _PET_LOG_P:
            continue
        taken.update(places)
        usual = "hardly ever" if expected < 0.05 else f"about {expected:.1f} times"
        yield note_of(
            "pet",
            places[1],
            f"“{' '.join(phrase)}” comes {len(places)} times here, {usual} in as much published "
            f"fiction.",
            min(1.0, len(places) / 12),
            [places[0], *places[2:]],
        )


def phrases_of(sentence: ReadSentence) -> Iterator[tuple[tuple[str, ...], Place]]:
    """Runs of three to five words outside speech, with a content word and no name."""
    words = [
        (token, spoken)
        for token, spoken in zip(sentence.tokens, sentence.is_spoken, strict=True)
        if token.is_word or token.pos == "PUNCT"
    ]
    lowers = [token.lower for token, _ in words]
    is_content = [token.pos in _PET_POS for token, _ in words]
    is_plain = [lower in _PLAIN for lower in lowers]
    # For each word, how many may stand in a phrase from it on.
    reach = [0] * (len(words) + 1)
    for k in range(len(words) - 1, -1, -1):
        token, spoken = words[k]
        is_out = spoken or not token.is_word or token.pos in ("PROPN", "NUM")
        reach[k] = 0 if is_out else reach[k + 1] + 1
    for n in _PET_SIZES:
        for k in range(len(words) - n + 1):
            end = k + n
            if reach[k] < n or lowers[end - 1] in _OPEN or lowers[k] in ("and", "or", "but"):
                continue
            # "The old woman" is a person, and "said the man" is how stories are told.
            if True in is_content[k:end] and True not in is_plain[k:end]:
                place = sentence.at(words[k][0])[0], sentence.at(words[end - 1][0])[1]
                yield tuple(lowers[k:end]), place


def _is_apart(read: ReadText, places: Sequence[Place]) -> bool:
    return places[-1][0] - places[0][0] >= _PET_REACH * len(read.text)


def is_common(frequencies: Frequencies, phrase: Sequence[str]) -> bool:
    """Whether no word of a phrase is so rare that a text repeating it would be about it."""
    return all(
        "'" in word or 9 + frequencies.log(word) / math.log(10) >= _PET_ZIPF for word in phrase
    )


@functools.cache
def _fiction() -> tuple[int, float, Mapping[str, float]]:
    """The number of words counted, the count of an unlisted phrase, and the listed phrases."""
    held = json.loads(gzip.decompress(PET_FILE.read_bytes()))
    return held["n_words"], float(held["least"]), held["counts"]


def pet_phrases_name() -> str:
    """How a signature names the counts."""
    n_words, least, counts = _fiction()
    return f"fiction-{n_words}-{len(counts)}-{least:g}"


def _log_tail(n: int, mean: float) -> float:
    """An upper bound of the log probability of n or more where `mean` are expected, by Poisson."""
    # Chernoff's bound, which avoids the sum.
    return n - mean - n * math.log(n / mean) if n > mean else 0.0
