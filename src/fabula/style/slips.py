"""Slips of the hand that a rule finds without parsing: doubled words, quotation marks that are
never closed, placeholders, repeated paragraphs, and words that cannot stand before the next one.

Each rule leaves alone what may be meant, so it misses some; `bench/line_labels.py` counts how often
its notes are right.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import pairwise
from typing import NamedTuple

from fabula.style.beside import MISFIT
from fabula.text.sentences import overlaps

Place = tuple[int, int]


class Slip(NamedTuple):
    """A slip: its kind, its place half-open in characters, and why it is one."""

    kind: str
    place: Place
    why: str
    also: tuple[Place, ...] = ()


_DOUBLED = re.compile(
    r"(?<![\w'’-])(the|a|an|at|of|to|and|for|on|with|she|he|they|was|were|is|are|be|from|by|as|"
    r"but|or|if|my|your|our|their|we|i|this|than|into|its|it|his|me|us|them|because|when|been|"
    r"about|can|could|would|should|not|him|which|where|has|have|behind|before|after|through|"
    r"between|against|without|under|across|while|who|how|these|those|did|then|"
    r"until|since|during|also|every|each|both|upon|onto|towards?|whose|only|some|any|went|looked|"
    r"(?:in|on|of|to|at|for|from|with|by|into) (?:the|a|his|her|my|their)|in)"
    r"\s+\1(?![\w'’-])(?!,?\s\1\b)",
    re.I,
)
"""Words that are hardly ever doubled on purpose."""
_VERB = re.compile(r"\s+(?:is|was|will|would|had|has|can|could|\w+s|\w+ed)\b")
_MEANT_TWICE = re.compile(
    r"\b(?:what|where|who|that(?! (?:it|he|she)\b)|which|how|all|only)\b.{,20} "
    r"(is|was|are|were)\s+\1 \w$"
    r"|\b(?:go|went|carr)\w* on\s+on \w$"
    r"|\b(?:be|been|was|were) in\s+in \w$"
    r"|(?:\bdealt|\w(?:ed|ing|in['’]))\s+(in|on|for|with)\s+\2 \w$"
    r"|\b(?:go|went|c[ao]m|set|burst|br[eo]a?k|get|got|let|took|tak|br[io]|mov|step|walk|stroll|"
    r"s[ea]|h[ie]|them|it|me|us|you)\w* in\s+in \w$",
    re.I,
)
_CLAUSE = re.compile(r"\b(?:once|if|when|what|whatever|where|as|that)\s+\Z", re.I)
_PASTED = re.compile(r"(?<![\w'’-])((?:[\w'’-]+\s+){2,7}[\w'’-]+)\s+\1(?![\w'’-])", re.I)
"""Three to eight words that are written twice in a row."""
_PLACEHOLDER = re.compile(
    r"\bTK(?:TK)*\b|\b(?:TODO|FIXME|TBD|TBC)\b|\bX{3,}\b|\bXX(?= (?:[a-z]+s|people|men)\b)"
    r"|(?i:\blorem ipsum\b)|@@+|\[\?+\]|\(\?{2,}\)|\((?:CHECK|TODO|VERIFY|NB)\b[^)\n]{0,60}\)"
    r"|(?i:\[(?:insert|name|todo|tk|tbd|check|describe|fix|add|more|scene|place|town|date|street|city"
    r"|country|title|year|month|day|amount|number|age|song|look up|find out|research|expand|rewrite"
    r"|make|brand|some(?:thing|one|where)|xx+)\b[^\]\n]{0,60}\])"
    r"|(?P<capitals>\[(?!REDACTED|DELETED|INAUDIBLE|ILLEGIBLE|SIC|END|SIGNED)[A-Z]{3,}[A-Z ?]*\])"
    r"|\([^()\n]{3,60}\?\?\)|\[[^\[\]\n]{4,60}\?\]"
    r"|(?i:<(?:insert|name|place|todo)\b[^>\n]{0,60}>)|(?i:\[\.{3} ?(?:to come|more)\])"
)
_ROMAN_BEFORE = re.compile(r"(?:chapter|part|book|canto|act|scene|louis|no\.?|psalm)\s+$", re.I)
_OWN = (
    "(?:own )?(?:hands?|heads?|faces?|eyes|arms?|legs?|feet|foot|mouths?|voices?|hearts?|names?|"
    "coats?|shoes|boots|hats?|doors?|windows?|wings?|tails?|paws|claws|teeth|roots|branches|leaves|"
    "hinges|nails|fingers?|knees?|shoulders?|ears?|mother|father|mothers|fathers|parents|wife|"
    "husband|sons?|daughters?|brothers?|sisters?|children|friends?|house|car|dog|room|bed|phone|"
    "money|clothes|luggage|promises?|turn|idea|job)"
)
_START = r"""(?:(?<![^\n])|[.!?][”’"]*\s+|[“‘"])"""
_END = r"""(?=\s*(?:[.,!?;:)”"’—]|$))"""
_AGREES = re.compile(r"\b(?:was|were)\Z|\A\w+ed\Z", re.I)
"""A form that differs in dialect, or of a child: she was, she sended."""
_MARK = re.compile(r"\b[a-z]{2,}[.!?][A-Z][a-z]+\b(?![./])|\b[a-z]+,[a-z]{2,}\b")
"""A mark of punctuation without a space after it."""
_MARKS_TWICE = re.compile(r",\s?,|,\.(?!\.)|(?<=[a-z])\.\.(?!\.)|;;|[!?][.,](?=[”\"])")
_SMALL = re.compile(
    r"(?<![\w.’'])(?!(?:etc|esq|viz|pro|hon|tem|ult|advt|dept|inst|chap)[.])"
    r"(?:[a-z]{3,}|[A-Z][a-z]{5,}|be|by|do|go|he|it|me|on|so|to|up|us)[.]\s+([a-z]{2,})"
)
"""A sentence in lower case."""
_MAX_MARKS = 2
"""A text with more of a kind does so on purpose."""
_MISPLACED = re.compile(
    r"\b((?:ca|could|did|do|does|had|has|have|is|was|were|wo|would)(['’])nt)\b", re.I
)
"""Contractions whose apostrophe stands before the n."""
_AN = re.compile(
    r"(?<!\ban )(?<!\by )(?<![’'])\b(a)\s+(?=[aeio]\w|u(?!n[aio]|s[eau]|til|ku|ro|ran|bi|vu|pas))"
    r"(?!eu|ewe|one|once\b|oui|(?:in|on|at|of|and|is|as|or)\b)"
    r"|\b(a)\s+(?=(?:hour|honest|heir|honou?r)[a-z]*\b)|\b(an)\s+(?=[bcdfgjklmpqstvwxyz][a-z])"
)
BROAD = re.compile(
    r"\bain['’]t\b|in['’](?!\w)|(?<!\w)[’'](?:im|er|ave|ad|is|ere|ow|em)\b|\b(?:ye|yer|yeh|th|dat|dem|"
    r"dis|wid?|mebbe|nowt|owt|summat|nobbut|tha|thi|feller|ain|me (?:mam|mum|nan|dad|mate)|knowed|"
    r"growed|throwed|heerd|hisn|yourn|oughter)\b|\b(?:warn|hain|wan)['’]t\b"
    r"|\b(?:we|they|you) was\b|(?<!\bif )(?<!\bas )(?<!though )(?<!wish )\b(?:it|I|he|she) were\b",
    re.I,
)
"""Marks of dialect."""
_MIN_BROAD, _BROAD_CHARS = 3, 1_800
"""Marks of a text in dialect, and the most characters for each."""
_SENTENCE = re.compile(
    r"(?<=[a-z]{2}\s)(?:(?:They|She|We|Then|There|The|It|My(?! (?:lady|lord|dear))|Their)"
    r"(?=\s[a-z])"
    r"|(?:He|His|Her|When|But)"
    r"(?=\s(?:was|were|had|has|is|could|would|did|said|looked|went|took|turned|came|knew|felt|saw|"
    r"will|can|never|just|he|she|they|it|I|the|a|his|her)\b))"
)
"""A capital in the middle of a sentence."""
_TAGS = "said|asked|replied|whispered|shouted|cried|answered|muttered|murmured|says?|asks?"
_MARKS_AND_CAPITALS = {
    "A mark of punctuation is missing at the end of this speech.": re.compile(
        rf"(?<!\w)[“\"][A-Z][^“”\"\n]+?([a-z]+[”\"]) (?:(?:I|he|she|they|we|[A-Z]\w+) (?:{_TAGS})|"
        rf"(?:{_TAGS}) (?:[A-Z]\w*|he|she|they))\b"
        r"|‘[A-Z](?:[^‘’\n]|’(?=\w))+?([a-z]+’) (?:I|he|she|they|we|[A-Z]\w+) "
        rf"(?:{_TAGS})\b"
        r"|[“\"](?:[^“”\"\s]+\s+){5,}[^“”\"\s]*(?<=[a-z]{2})([”\"])\Z"
    ),
    "The sentence goes on after this speech, which ends with a comma then.": re.compile(
        rf"([a-z]+\.[”\"’]) (?:(?:{_TAGS}) (?:[A-Z]|he\b|she\b|they\b|the\b)|"
        rf"(?:he|she|they|we) (?:{_TAGS}|tells?|adds?)\b|[A-Z]\w* (?:{_TAGS})\.)"
    ),
    "The sentence goes on in lower case.": re.compile(
        rf",[”\"] (He|She|They|We|It|His|Her|The|My) [a-z]|[!?][”\"] (He|She|They) (?:{_TAGS})\."
    ),
    "A sentence begins in lower case.": re.compile(rf"\b(?:{_TAGS})\. [“\"]([a-z]+)"),
    "After the speech the sentence goes on in lower case.": re.compile(
        r"\w[,!?][”\"’] (Said|Asked|Replied|Whispered|Shouted|Cried|Answered|Muttered)"
        r" (?:[A-Z]|he\b|she\b|the\b|an?\b|his\b|her\b|my\b)"
    ),
    "A question mark is probably missing at the end of this question.": re.compile(
        r"[“\"‘](?:And |But |So |Well, )?(?i:what|where|who|why|how|when)"
        r"(?:['’](?:s|re|d)(?! (?:done|gone|left|more|past)\b)|"
        r" (?:is|are|was|were|did|do|does|have|has|can|could|would|will|should)"
        r" (?!you (?:do|to)\b)(?:I|you|he|she|it|we|they|the|your|his|her|that|this)"
        r"| \w+ (?:did|do|does) (?:you|he|she|they|we|I)) [^.!?”\"\n]*?(\w+\.[”\"’])(?!\w)"
        r"|[“\"‘](?:And |But |So |Well, )?How (?:much|many|long|far|old|often) (?:[a-z]+ )?"
        r"(?:is|are|was|were|did|do|does|will|would|can|could|has|have) "
        r"[^.!?”\"\n]*?(\w+\.[”\"’])(?!\w)"
        r"|[“\"](?:What|Where|Who|Why|How|When) (?:is|are|was|were|did|do|does|can|could|will) "
        r"(?:I|you|he|she|it|we|they) [^.!?”\"\n,]*?(\w+,[”\"])"
        r"|[“\"‘](?:(?:And|But|So|Well),? )?(?:(?:Does|Did|Are|Is|Was|Were|Have|Has) "
        r"(?:you|he|she|it|we|they|this|there)|Do (?:you|they|we)|"
        r"(?:Can|Could|Will|Would) (?:I|he|she|it|we|they)) (?=[a-z])[^.!?,”\"’\n]*?"
        r"(\w+\.[”\"’])(?!\w)"
        r"|[“\"‘](?:(?:May|Can|Could|Was|Were|Is|Are|Did|Does|Do|Has) (?:I|he|she|it|we|they|"
        r"you|that|this)|(?:What|Where|Who)['’]s(?! done)) (?:[^.!?,”\"’]+ )?(\w+,[”\"’]) "
        rf"(?:(?:{_TAGS}) (?:[A-Z](?!rs?\.|s\.)[\w ]+|he|she|they|the \w+)|"
        rf"(?:[A-Z]\w+|he|she|they|I) (?:{_TAGS}))\."
        r"|, (?:has|had|is|was|did|do|does|were|are|should|have)n['’]t "
        r"((?:he|she|it|we|they|you|I)\.)"
    ),
    "A comma is missing after the one who is spoken to.": re.compile(
        r"[“\"‘](Mum|Mom|Mam|Dad|Mother|Father|Gran|Grandma|Grandpa|Sir|Doctor|Miss|Auntie|Uncle) "
        r"(?:have|are|did|do|were|can|could|will|would) (?:you|I|we)\b"
    ),
    "One of these words is too many.": re.compile(
        r"\b((?:would|could|should|ought to) (?:would|could|should|will|can|must|may|might))\b"
    ),
    "Something is missing at the end of this sentence.": re.compile(
        r"[a-z]{2} ((?:the|a|an|my|our|your|their|every|and|or|because|although|than)\.)(?=[ ”\"])"
        r"|(?:wo)?man (who\.)(?= )"
    ),
    "This is written with a capital.": re.compile(
        r"\b((?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|july|september|october|"
        r"november|december|(?:march|april|may|june|august)(?= \d)|christmas|english|british|"
        r"american|italian|spanish|german|irish)\b"
    ),
}
_DIVINE = re.compile(r"\b(?:God|Lord|Christ|Jesus|Heaven|Providence|Goddess)\b")
_SAID = re.compile(
    r"[^“”‘\"'«»\n]+?[,!?](’) (?:said|asked|cried|replied|answered|shouted|whispered|muttered|"
    r"murmured|(?:I|he|she|they|we|[A-Z][a-z]+) (?:said|asked|cried|replied|whispered))\b"
)
"""Speech that is closed but was not opened."""
_PLURAL = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|several|many|both|[Tt]here (?:were|are))\s+"
    r"(?!(?:wo)?men|children|people|an?other)([a-z]{3,}['’]s)"
    r"(?=\s+(?:and|or|in|on|at|with|from|who|that|parked)\b|\s*[.,;!?])"
    r"|\b(?:the|these|those|some|all|his|her|my|our|their)\s+([a-z]{3,}['’]s)(?=\s+(?:were|are|have)\b)"
)
"""A plural with an apostrophe."""
_MIN_PARAGRAPH = 20
"""Words of a paragraph that hardly comes again by itself; shorter ones are refrains."""
_SHOWN = 40
"""Characters of a paragraph after a quotation mark that are marked with it."""
_MAX_LETTER = 12
"""Paragraphs of a letter that is quoted as one speech."""
_SHORT_LINE, _STANZA, _INDENTED = 60, 600, "    "
"""The most characters of a line of verse, and of its stanza before it and after it."""
_TAG = re.compile(
    r"(?:[,…-]|[.!?](?= [a-z])) (?!it )(?:[\w.]+ ){0,2}(?:said|asked|cried|replied|answered|"
    r"shouted|whispered|muttered|murmured|yelled|responded)\b"
)
_MARKS = re.compile("[“”\"]|(?<!`)``(?!`)|''|’’")
_OPENING, _CLOSING = ("“", "``"), "”"
"""Marks that tell their side; the others open a quotation if none is open."""
_PLAIN_OPENING = re.compile(r"(?<![^\s—(\[])\"(?=\w)")
"""A straight mark that can only open."""
_WITHIN = re.compile(r"‘(?:[^’]|(?<![.,!?…—])’)*\Z")
"""A single mark within, not closed yet."""
_OPENS = re.compile(r"[\s>*_‘']*[“\"]")
# How a signature begins and a letter; and a speech that is left open before the next one, as
# often as stories told by somebody leave them.
_SIGNED, _DEAR = re.compile(r"[“\"]\s?[—–-]"), re.compile(r"\W(?:My )?[Dd]ear")
_LEFT_OPEN, _MAX_LEFT = re.compile(r"“[^”\n]*\n+“"), 5
_SINGLE = re.compile(
    r"(?<![\w.,!?…—-])['‘](?!(?:T(?:is|was|were|will|would)|Em|Cause|Til)\b)(?=[A-Z])"
)
_CLOSES = re.compile(r"['’](?!\w)")
_ENDS = (".", "!", "?")
_MIN_SAID, _MAX_SAID = 3, 15
"""Words of a short speech."""
_TURNED = ("--“’", "—“’", "—“", "--“", ":", ":-", ":--")
"""Ends of paragraphs after which speech goes on, or whose last mark a typesetter turned round."""
_WORDS = re.compile(r"\w+")
_FIRST = re.compile(r"['’]?\w")
_SPELT = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_LAST = re.compile(r"\b[a-z]{2,}\s*\Z")
_BREAK = re.compile(r"\s*(?:[*#~]|\Z)")
_NO_STOP = "A full stop is missing at the end of the paragraph."
_ENDED = re.compile(r"\w[.][”’\"']?\s*\Z")
_REACH = 30
"""Characters before a word that are looked at."""
_MIN_ENDED = 12
"""Words of a paragraph that ends with a mark of punctuation, unless it is a heading."""


def is_broad(text: str) -> bool:
    """Whether a text is in dialect, not ungrammatical by mistake."""
    n = len(BROAD.findall(text))
    return n >= max(_MIN_BROAD, len(text) / _BROAD_CHARS)


def _is_near_dialect(text: str, match: re.Match[str]) -> bool:
    return BROAD.search(text, max(0, match.start() - 200), match.end() + 200) is not None


def slips(text: str, paragraphs: Sequence[Place], speech: Sequence[Place]) -> Iterator[Slip]:
    """All slips of a text; `paragraphs` and `speech` are places in it, in order."""
    spans = [(a, b) for a, b in paragraphs if not _is_verse(text, a, b)]
    yield from _repeated_paragraphs(text, spans)
    yield from _unclosed(text, spans)
    yield from _unclosed_single(text, spans)
    yield from _marks(text, spans)
    articles: list[re.Match[str]] = []
    instead = list(_beside(text, spans, speech))
    for start, end in spans:
        for match in _DOUBLED.finditer(text, start, end):
            # "When you say it it sounds like her name", "what he is is a man", "what goes on on".
            is_subject = match[1].lower() == "it" and _VERB.match(text, match.end(), end)
            if is_subject or _MEANT_TWICE.search(text[start : match.end() + 2][-_REACH:]):
                continue
            yield Slip("doubled", match.span(), f"“{match[1]}” is written twice.")
        for match in _PASTED.finditer(text, start, end):
            words = match[1].casefold().split()
            # On and on and on and on; they dug and they dug and dug; once you got it you got it.
            goes_on = text[match.end() : end].lstrip().casefold().startswith(words[0])
            is_meant = (
                goes_on
                or words[0] == "and"
                or words[-1] in ("and", "after", "before")
                or _CLAUSE.search(text[start : match.start()])
            )
            if len(set(words)) == len(words) and not is_meant:
                yield Slip("doubled", match.span(), f"“{match[1]}” is written twice.")
        instead += _instead(text, start, end)
        for match in _MISPLACED.finditer(text, start, end):
            meant = f"{match[1][:-3]}n{match[2]}t"
            yield Slip("grammar", match.span(), f"It is written “{meant}”.")
        for match in _PLURAL.finditer(text, start, end):
            yield Slip("grammar", match.span(match.lastindex or 0), "A plural has no apostrophe.")
        articles += (
            match
            for match in _AN.finditer(text, start, end)
            if text[match.end() : match.end() + 2].islower()
        )
    # What is said again and again is meant.
    spoken = Counter(slip.why for slip in instead if overlaps(slip.place, speech))
    for slip in instead:
        is_speech = spoken[slip.why] > _MAX_MARKS or _AGREES.search(text[slice(*slip.place)])
        if not (is_speech and overlaps(slip.place, speech)):
            yield slip
    # In speech it may be dialect.
    said = [match for match in articles if overlaps(match.span(), speech)]
    is_dialect = len(said) > _MAX_MARKS or any(_is_near_dialect(text, match) for match in said)
    for match in articles:
        if not (is_dialect and match in said):
            word = match[match.lastindex or 0]
            why = f"Before this sound it is “{'an' if word.lower() == 'a' else 'a'}”."
            yield Slip("grammar", (match.start(), match.start() + len(word)), why)
    places = list(_PLACEHOLDER.finditer(text))
    is_way = sum(match["capitals"] is not None for match in places) > _MAX_MARKS
    for match in places:
        if is_way and match["capitals"]:
            continue
        if not (match[0][0] == "X" and _ROMAN_BEFORE.search(text[: match.start()][-12:])):
            yield Slip("placeholder", match.span(), "A placeholder is still here.")


def _instead(text: str, start: int, end: int) -> Iterator[Slip]:
    """Words that do not fit beside the next or the last one."""
    for match in _SPELT.finditer(text, start, end):
        if text[max(start, match.start() - 1) : match.start()] == "’":
            continue  # A clipped word: the ’eated room.
        for before, after, meant in _wrong_words().get(match[0].lower().replace("’", "'"), ()):
            left = before.search(text, max(start, match.start() - _REACH), match.start())
            if left is None or not after.match(text, match.end(), end):
                continue
            # Some writers use no apostrophes.
            if "n't" in meant and len(re.findall(rf"\b{match[0]}\b", text)) > _MAX_MARKS:
                continue
            first = _FIRST.search(left[0])
            # A name may be capitalized: the Isle.
            if first is not None and match[0][0].isupper() and meant[0].islower():
                continue
            begin = match.start() if first is None else left.start() + first.start()
            why = f"“{match[0]}” does not fit here; “{meant}” was probably meant."
            yield Slip("grammar", (begin, match.end()), why)
            break


def _beside(text: str, spans: Sequence[Place], speech: Sequence[Place]) -> Iterator[Slip]:
    """Words that cannot stand beside each other, but for those in dialect."""
    matches = [match for span in spans for match in MISFIT.finditer(text, *span)]
    # A narrator who often leaves out "is" and "are" does so on purpose.
    is_way = sum(match["bare"] is not None for match in matches) > _MAX_MARKS
    for match in matches:
        is_dialect = match["told"] or _is_near_dialect(text, match)
        is_meant = is_way and match["bare"]
        if not is_meant and not (is_dialect and overlaps(match.span(), speech)):
            why = f"“{match[0]}”: a word here is wrong, missing or extra."
            yield Slip("grammar", match.span(), why)


@functools.cache
def _wrong_words() -> Mapping[str, Sequence[tuple[re.Pattern[str], re.Pattern[str], str]]]:
    """What stands before a word, and after it, where another was meant."""
    listed = files("fabula.style").joinpath("wrong_words.txt").read_text(encoding="utf-8")
    words: dict[str, list[tuple[re.Pattern[str], re.Pattern[str], str]]] = {}
    for line in (line for line in listed.splitlines() if not line.startswith("#")):
        wrong, before, after, meant = map(str.strip, line.split(" | "))
        # A part of a word is not it, but the end of a contraction may be.
        begin = r"(?:(?<![\w’\x27])|(?=[’\x27.!?]))"
        before = rf"{begin}(?:{before})\s+\Z" if before not in ("", "START") else rf"{before}\Z"
        after = after.replace("OWN", _OWN)
        space = r"(?:\s+|END)" if after and not after.startswith(("END", "(?=", "(?!")) else ""
        after = f"{space}(?:{after})(?!\\w)".replace("END", _END)
        sides = (side.replace("'", "['’]").replace(" ", r"\s+") for side in (before, after))
        left, right = (re.compile(side.replace("START", _START), re.I) for side in sides)
        for word, other in zip(wrong.split("|"), itertools.cycle(meant.split("|"))):
            words.setdefault(word, []).append((left, right, other.replace("~", word)))
    return words


def _marks(text: str, spans: Sequence[Place]) -> Iterator[Slip]:
    """Marks of punctuation that are missing or twice there, and sentences in lower case."""
    found: dict[str, list[Place]] = defaultdict(list)
    is_spaced = "\n\n" in text
    long = [len(_WORDS.findall(text, *span)) >= _MIN_ENDED for span in spans]
    for k, (start, end) in enumerate(spans):
        for match in _MARK.finditer(text, start, end):
            found["A space is missing after the mark."].append(match.span())
        for match in _MARKS_TWICE.finditer(text, start, end):
            found["One mark is too many here."].append(match.span())
        for match in _SENTENCE.finditer(text, start, end):
            if not (match[0] in ("He", "His") and _DIVINE.search(text)):
                found["A full stop is probably missing before this."].append(match.span())
        for match in _SMALL.finditer(text, start, end):
            found["A sentence begins in lower case."].append(match.span(1))
        for why, pattern in _MARKS_AND_CAPITALS.items():
            matches = pattern.finditer(text, start, end)
            found[why] += (match.span(match.lastindex or 0) for match in matches)
        cut = _LAST.search(text, start, end)
        if long[k] and cut is not None and _BREAK.match(text, end):
            found[_NO_STOP].append(cut.span())
        # Not where a title, verses or an example stand between, nor within verses.
        between = text[spans[k - 1][1] : start] if k else "-"
        if not long[k] or between.strip() or (is_spaced and between.count("\n") < 2):
            continue
        last, first = _LAST.search(text, *spans[k - 1]), _WORDS.match(text, start, end)
        if long[k - 1] and last is not None:
            found[_NO_STOP].append(last.span())
        elif first is not None and first[0].islower() and _ENDED.search(text, *spans[k - 1]):
            found["A sentence begins in lower case."].append(first.span())
    for why, places in found.items():
        if len(places) <= min(_MAX_MARKS, max(1, long.count(True) // 10)):
            yield from (Slip("grammar", place, why) for place in places)


def _is_verse(text: str, start: int, end: int) -> bool:
    """Whether a paragraph has short or indented lines, or is a deeply indented one."""
    lines = text[text.rfind("\n", 0, start) + 1 : end].strip("\n").split("\n")
    if any(line.startswith(_INDENTED) for line in lines):
        return True
    # A line of a stanza may be a paragraph; without blank lines there is none.
    before = text[max(0, start - _STANZA) : start].rpartition("\n\n")
    after = text[end : end + _STANZA].partition("\n\n")
    is_stanza = (before[1] or start <= _STANZA) and (after[1] or end + _STANZA >= len(text))
    stanza = f"{before[2]}{text[start:end]}{after[0]}".strip("\n").split("\n")
    is_short = len(stanza) > 1 and max(map(len, stanza)) < _SHORT_LINE
    return bool(is_stanza and is_short) or any(line[:1].isspace() for line in lines[1:])


def _repeated_paragraphs(text: str, spans: Sequence[Place]) -> Iterator[Slip]:
    """Paragraphs that stand twice in the same words: pasted twice, perhaps."""
    places: dict[tuple[str, ...], list[Place]] = {}
    for start, end in spans:
        words = tuple(_WORDS.findall(text[start:end].casefold()))
        if len(words) >= _MIN_PARAGRAPH:
            places.setdefault(words, []).append((start, end))
    for first, *again in places.values():
        # A refrain comes more often.
        if len(again) == 1:
            yield Slip("paragraph", again[0], "", (first,))


def _unclosed(text: str, spans: Sequence[Place]) -> Iterator[Slip]:
    """Paragraphs with a double quotation mark that is never closed, or never opened.

    An open one is sound if the next paragraph begins with a mark, unless the paragraph before was
    closed (a story told by someone in the story), and a speech tag stands soon after the mark, or
    it is short and the next one is closed. So is a letter of several paragraphs that is opened and
    closed once.
    """
    was_open = False
    # Stories told by somebody leave many speeches open.
    is_told = len(_LEFT_OPEN.findall(text)) > _MAX_LEFT
    last_of_letter, last_end, is_after_verse = -1, 0, False
    for k, (start, end) in enumerate(spans):
        marks = list(_MARKS.finditer(text, start, end))
        # Verses, which are no spans, stand before, and marks have not stood since.
        is_rest = is_after_verse or bool(text[last_end:start].strip())
        is_after_verse, last_end = is_rest and not marks, end
        open_at: int | None = None
        amiss: int | None = None
        is_within = False
        for mark in marks:
            is_opening = mark[0] in _OPENING or (mark[0] != _CLOSING and open_at is None)
            if open_at is not None and _PLAIN_OPENING.match(text, mark.start()):
                is_opening = _TAG.search(text, open_at, mark.start()) is not None
            # “She says, ‘I told them, “Go!”’”
            if open_at is not None and is_opening != is_within:
                is_inner = is_within or _WITHIN.search(text, open_at, mark.start()) is not None
                is_within = is_opening and is_inner
                if is_inner:
                    continue
            if is_opening == (open_at is not None) and amiss is None:
                # One that opens while another is open, or closes while none is.
                amiss = mark.start() if open_at is None else open_at
            open_at = mark.start() if is_opening else None
        was_open, is_story = open_at is not None, was_open
        if amiss is None and open_at is not None:
            last_of_letter = _last_of_letter(text, spans, k)
        # “Yours most cordially,
        is_signed = end - start < _SHORT_LINE and text[start:end].endswith(",")
        if is_signed or text[start:end].endswith(_TURNED) or (open_at is None and amiss is None):
            continue
        # Speech may go on before and after the verses in it.
        next_at = spans[k + 1][0] if k + 1 < len(spans) else len(text)
        is_sound = (
            text[end:next_at].strip() if amiss is None else is_rest and text[amiss] == _CLOSING
        )
        if is_sound or k == last_of_letter:
            continue
        if amiss is None and open_at is not None:
            spoken = text[open_at : min(end, open_at + 150)]
            is_tagged = _TAG.search(spoken) and not re.search(r" ['‘]", spoken) and not is_story
            goes_on = k + 1 < len(spans) and _OPENS.match(text, *spans[k + 1])
            is_short = (
                goes_on and not (is_story or is_told) and _is_said(text, open_at, end, spans[k + 1])
            )
            is_letter = last_of_letter > k or _DEAR.match(text, open_at)
            if is_letter or (goes_on and not (is_tagged or is_short)):
                continue
            amiss = open_at
        at = start if amiss is None else amiss
        last = end if end <= at + _SHOWN else text.rfind(" ", at, at + _SHOWN)
        why = "A quotation in this paragraph is never closed, or never opened."
        yield Slip("unclosed", (at, max(last, at + 1)), why)


def _is_said(text: str, open_at: int, end: int, after: Place) -> bool:
    """Whether what begins with a mark is a short speech, and the next paragraph another one."""
    n_words = len(_WORDS.findall(text, open_at, end))
    marks = _MARKS.findall(text, *after)
    is_closed = len(marks) % 2 == 0 and not any(mark in _OPENING for mark in marks[1::2])
    is_closed = is_closed and not _SIGNED.match(text, *after)
    return _MIN_SAID <= n_words <= _MAX_SAID and text[open_at:end].endswith(_ENDS) and is_closed


def _unclosed_single(text: str, spans: Sequence[Place]) -> Iterator[Slip]:
    """Paragraphs whose last single mark is never closed, or whose first was never opened, in a text
    that quotes speech by them; an open one is sound as in `_unclosed`."""
    if len(_SINGLE.findall(text)) <= text.count("“") + text.count('"') // 2:
        return
    for (start, end), after in pairwise([*spans, (len(text), len(text))]):
        if (said := _SAID.match(text, start, end)) is not None:
            yield Slip("unclosed", (start, said.end(1)), "A quotation here is never opened.")
        opening = [match.start() for match in _SINGLE.finditer(text, start, end)][-1:]
        if not opening or _CLOSES.search(text, opening[0], end):
            continue
        n_words = len(_WORDS.findall(text, opening[0], end))
        is_short = _MIN_SAID <= n_words <= _MAX_SAID and _CLOSES.search(text, *after)
        goes_on = text.startswith(("‘", "'"), after[0])
        if text[opening[0] : end].endswith(_ENDS) and (is_short or not goes_on):
            yield Slip("unclosed", (opening[0], end), "A quotation here is never closed.")


def _last_of_letter(text: str, spans: Sequence[Place], first: int) -> int:
    """The paragraph that ends with the next mark, which closes what the first one opens; or -1."""
    for k in range(first + 1, min(first + _MAX_LETTER, len(spans))):
        if marks := list(_MARKS.finditer(text, *spans[k])):
            closes = marks[0][0] not in _OPENING and len(marks) == 1
            return k if closes and not text[marks[0].end() : spans[k][1]].strip("*_ ") else -1
    return -1
