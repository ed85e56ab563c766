"""Errors of spelling and grammar that a checker found, and which of them a writer is shown.

In fiction a checker is often wrong: dialect, coined words, old forms and speech are meant. What is
likely to be meant is left out, and the rest is ordered by how plain it is.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from fabula.measures.line_read import LineNote, ReadSentence, ReadText, note_of
from fabula.measures.linguistic.grammar import Fault
from fabula.text.words import word_set

_MIN_MISSPELT = 5
"""Shorter words are slips only if letters were transposed."""
_RARE_ZIPF, _PLAIN_ZIPF = 3.0, 5.5
"""Frequency of a correction: one word in a million, and one in three thousand."""
_DOUBTFUL = (
    "they're",
    "instead of 'about'",
    "already implies",
    "irregular form",
    "one of the",
    "hyphen",
    "lain",
    "`intent`",
    "`interested`",
    "after `how`",
    "snuck",
    "oxymoron",
    "'therein'",
    "`due to`",
    "inside a building",
    "ought to be",
    "preposition in this phrase is 'to', not 'in'",
)
"""Message fragments of rules that are more often wrong than right about fiction."""
_DIALECT = re.compile(
    r"\b(?:ain|warn|hain|wan)['’]t\b|\b(?:knowed|growed|throwed|heerd|hisn|yourn|oughter)\b", re.I
)
"""Narration with such words is in dialect, not ungrammatical by mistake."""
_MIN_DIALECT = 3
_MANY_UNKNOWN = 3
"""Words of a sentence in no dictionary: it is in another language, or in dialect; two in speech."""
_WORD = re.compile(r"\w+")
_AN = re.compile(r"an\s+[aehiou]", re.IGNORECASE)
_MAX_SLIPS = 2
"""A word that occurs more often is meant."""
_PUBLISHED = word_set(
    "agone arter babby blest cavil chuse chusing comest darkling draggled dramatis drawed dropt",
    "forrard gaol hisself leant leathern loike missis natured overset pitchy rayther redly",
    "reseated sayest shopman stept stopt swart throve trebly uncertainly unlooked unreserve waggon",
    "wrapt yourn",
)
"""Words that are in no dictionary of the checker, and in at least three of 35 published books."""
_DERIVED = re.compile(
    r"(?:un|out|over|under)(\w{5,})|(\w{3,})(?:man|men|kind|less|like)"
    r"|(\w{3,}[^y])ness|(?P<noun>\w{3,}[^aeioulry])y"
)
"""Words that are formed from others at will: unbrimmed, foemen, fadeless, kelpy."""
_COINED_ZIPF = 2.0
"""One word in ten million: misspellings that many people make are more frequent."""
_OF_THOU = word_set("thou thee thy thine")
_NEVER_TWICE = word_set("the a an of and")


def errors(read: ReadText) -> Iterator[LineNote]:
    """A note for each error that is likely to be one."""
    narration = [read.text[s.start : s.end] for s in read.sentences if s.is_narration]
    is_dialect = sum(len(_DIALECT.findall(part)) for part in narration) >= _MIN_DIALECT
    counts = Counter(_WORD.findall(read.text))
    for sentence in read.sentences:
        for fault in sentence.faults:
            place = sentence.start + fault.place[0], sentence.start + fault.place[1]
            word = read.text[slice(*place)]
            if fault.is_spelling and _is_misspelling(read, counts, sentence, fault):
                corrections = _nearest(word, fault)
                why = f"“{word}” is in neither the American nor the British dictionary."
                plainness = _plainness(read, sentence, word, corrections)
                yield note_of("spelling", place, why + _perhaps(corrections), plainness)
            elif not fault.is_spelling and not is_dialect and _is_error(read, sentence, fault):
                why = _ended(fault.message)
                yield note_of("grammar", place, why + _perhaps(fault.suggestions))


def _perhaps(corrections: Sequence[str]) -> str:
    likely = ", ".join(f"“{one}”" for one in corrections[:3])
    return f" Perhaps {likely}." if likely else ""


def _nearest(word: str, fault: Fault) -> list[str]:
    """Suggestions with two letters transposed, or else those one letter away."""
    near = [one for one in fault.suggestions if is_misspelt(word.lower(), one.lower())]
    return [one for one in near if _is_transposed(word, one)] or near


def _is_transposed(word: str, other: str) -> bool:
    return sorted(word.lower()) == sorted(other.lower())


def _is_foreign(sentence: ReadSentence, fault: Fault) -> bool:
    """Whether so many words around an unknown one are unknown that they are intended, or it is an
    old verb form: "thou beliest"."""
    unknown = {one.place for one in sentence.faults if one.is_spelling}
    if len(unknown) >= _MANY_UNKNOWN - (not sentence.is_narration):
        return True
    at = fault.place[0]
    word = next((t.lower for t in sentence.tokens if t.place[0] <= at < t.place[1]), "")
    is_old = word.endswith(("est", "eth", "'st"))
    return is_old and any(token.lower in _OF_THOU for token in sentence.tokens)


def _is_misspelling(
    read: ReadText, counts: Mapping[str, int], sentence: ReadSentence, fault: Fault
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
    if is_clipped or _is_frequent(read, counts, word):
        return False
    if re.search("['’]", word) or _is_foreign(sentence, fault):
        return False
    if "-" in around or (fault.place[0] > first and word[0].isupper()):
        return False
    word = word.lower()
    if set(word) <= set("ivxlc") or word in _PUBLISHED:
        return False
    others = [
        read.frequencies.log(one.lower())
        for one in fault.suggestions
        if is_misspelt(word, one.lower())
        and (len(word) >= _MIN_MISSPELT or _is_transposed(word, one))
    ]
    is_likely = max(others, default=-math.inf) - read.frequencies.log(word) >= math.log(50)
    return is_likely and not _is_derived(read, word)


def _is_derived(read: ReadText, word: str) -> bool:
    """Whether a rare word is a known one with a prefix or suffix."""
    parts = _DERIVED.fullmatch(word)
    if parts is None or _zipf(read, word) >= _COINED_ZIPF:
        return False
    # "Slighty" lacks an l.
    if parts["noun"] and read.is_word(f"{parts['noun']}ly"):
        return False
    return read.is_word(next(filter(None, parts.groups())))


def _zipf(read: ReadText, word: str) -> float:
    """The Zipf frequency of a word: the logarithm to base 10 of its count in a billion words."""
    return 9 + read.frequencies.log(word) / math.log(10)


def _around(read: ReadText, start: int, end: int) -> str:
    """The characters before and after a place."""
    return read.text[max(0, start - 1) : start] + read.text[end : end + 1]


def _is_frequent(read: ReadText, counts: Mapping[str, int], word: str) -> bool:
    """Whether a word occurs more than twice. counts: of all runs of letters and digits."""
    if _WORD.fullmatch(word):
        return counts.get(word, 0) > _MAX_SLIPS
    # Searching for the characters is fast, and finds at least as many.
    is_possible = read.text.count(word) > _MAX_SLIPS
    return is_possible and len(re.findall(rf"\b{re.escape(word)}\b", read.text)) > _MAX_SLIPS


def _is_error(read: ReadText, sentence: ReadSentence, fault: Fault) -> bool:
    """Whether a grammar error is probably real: not in speech, and by a rule that is mostly right
    about fiction."""
    if any(said in fault.message for said in _DOUBTFUL):
        return False
    start, end = (sentence.start + place for place in fault.place)
    if "-" in _around(read, start, end):
        return False  # A part of a compound: the re-entrance.
    if "indefinite article" in fault.message and _AN.match(read.text, start):
        return False  # "An hotel" is old usage, and the checker is wrong about "an urn".
    places = [(token.start, k) for k, token in enumerate(sentence.tokens)]
    here = next((k for start, k in reversed(places) if start <= fault.place[0]), 0)
    if sentence.is_spoken[here]:
        return False
    if "repeat this word" in fault.message:
        return sentence.tokens[here].lower in _NEVER_TWICE
    if any(one in fault.message for one in ("agree in grammatical number", "Did you mean `")):
        helps = (t for t in sentence.tokens if t.head == here and t.dep in ("aux", "auxpass"))
        is_verb = sentence.tokens[here].tag in ("VB", "VBP") and bool(fault.suggestions)
        if "Did you mean `" in fault.message and not is_verb:
            return True
        return is_verb and next(helps, None) is None
    return True


def _plainness(
    read: ReadText, sentence: ReadSentence, word: str, corrections: Sequence[str]
) -> float:
    """How obvious a misspelling is, for the order of notes: from 1 down to 0.

    Transposed letters are typing errors. Otherwise speech may be dialect, a word similar only to
    rare words may be rare itself, and one longer than its correction may be an inflection, such as
    "leant" of "lean".
    """
    if _is_transposed(word, corrections[0]):
        return 1.0
    if not sentence.is_narration:
        return 0.0
    likely = [one.lower() for one in corrections]
    zipf = max(_zipf(read, one) for one in likely)
    plainness = min(1.0, max(0.0, (zipf - _RARE_ZIPF) / (_PLAIN_ZIPF - _RARE_ZIPF)))
    return plainness / 2 if any(map(word.lower().startswith, likely)) else plainness


def _ended(message: str) -> str:
    """A checker's message as a sentence, with quotation marks for its code marks."""
    message = re.sub("`([^`]*)`", "“\\1”", message)
    return message if message.endswith(("?", "!")) else message.rstrip(".") + "."


def is_misspelt(name: str, other: str) -> bool:
    """Whether a letter was changed, omitted, added or swapped with its neighbour; a final s makes
    another name (the Millers), and another first letter another person (Mason, Jason)."""
    if name[0] != other[0] or {name + "s", other + "s"} & {name, other}:
        return False
    if len(name) == len(other):
        differ = [k for k, (a, b) in enumerate(zip(name, other, strict=True)) if a != b]
        is_swap = (
            len(differ) == 2
            and differ[1] == differ[0] + 1
            and name[differ[0]] == other[differ[1]]
            and name[differ[1]] == other[differ[0]]
        )
        return len(differ) == 1 or is_swap
    short, long = sorted((name, other), key=len)
    return len(long) == len(short) + 1 and any(
        long[:k] + long[k + 1 :] == short for k in range(len(long))
    )
