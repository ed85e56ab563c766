"""Whether an answer retracts its verdict: "Yes. On second thought, no", "No: it clearly passes".

Retractions are searched for in the sentence of the verdict and the next; only unambiguous phrases,
and conclusions ("on balance it fails"), count anywhere. A reservation ("Yes, though the middle
drags") is not a retraction.
"""

from __future__ import annotations

import re
from functools import cache

_FLAGS = re.IGNORECASE
_MAX_CHARS = 100_000


def _any(*alternatives: str) -> str:
    return f"(?:{'|'.join(alternatives)})"


_REVISE = _any(
    "reconsider",
    "rethink",
    r"revise",
    r"correct (?:myself|that|this|my)",
    r"change (?:my|that|this)",
)
_HARSH = _any("harsh", "kind", "generous", "lenient", "strict", "quick", "easy", "hasty")
_TURNED = re.compile(
    r"\b"
    + _any(
        r"on second thoughts?\b",
        r"(?:scratch|strike) that(?=\W{0,3}$|[.,;:!…—–-])",
        r"take (?:that|it|this) back\b",
        r"stand corrected\b",
        r"not so fast\b",
        r"just kidding\b",
        r"correction\s?[:,]",
        r"(?:revised|amended|corrected|updated)\s?(?:\w{1,10}\s?)?:",
        r"(?:edit|erratum|update)\s?:",
        r"(?:ignore|disregard|forget) (?:that|the above|what i|my)\b",
        rf"(?:let me|i (?:must|should|need to|have to|will|would|want to)) {_REVISE}",
        r"chang(?:e|ed|ing) my (?:mind|answer|verdict|judge?ment)",
        r"(?:revis|withdraw|retract|revers|overturn)(?:e|es|ing)? (?:my|that|this|the) "
        r"(?:answer|verdict|judge?ment|mark|score|rating)",
        r"i (?:retract|withdraw|revoke|reverse) ",
        r"i (?:misread|misjudged|misspoke|was (?:wrong|mistaken))",
        rf"i was too {_HARSH}",
        rf"that (?:was|would be|seems|is) (?:unfair|wrong|a mistake|(?:too|overly) {_HARSH})",
    ),
    _FLAGS,
)
"""Phrases that retract a verdict, whichever it was."""

_CONCLUDES = re.compile(
    r"\b"
    + _any(
        r"on (?:the )?(?:balance|whole|reflection)",
        "overall",
        "ultimately",
        "in the (?:end|final analysis)",
        "all (?:told|in all|things considered)",
        "at the end of the day",
        "in (?:sum|short|conclusion)",
        "to conclude",
        "as a whole",
        "weigh(?:ing|ed)?",
        "looking (?:back|again|closer)",
        "strictly",
        "when all is said",
    )
    + r"\b",
    _FLAGS,
)

# The story as a whole is said to do what the verdict denies.
_ADVERBS = (
    r"(?:(?:\w{2,16}ly|still|just|indeed|then|also|even|thus|so|only|in fact|after all|of course|"
    r"nevertheless|nonetheless|all the same)\s){0,3}"
)
_STORY = _any(
    "story",
    "piece",
    "text",
    "work",
    "narrative",
    "tale",
    "draft",
    "whole",
    "writing",
    "passage",
    "chapter",
)
_IT = (
    rf"(?:\b(?:it|this|(?:the|this|that|your)\s(?:\w{{1,14}}\s)?{_STORY})"
    rf"|(?:^|[.,;:!?]\s)that)[,\s]{{1,2}}{_ADVERBS}"
)
_ENDS = r"(?=\s{0,2}(?:$|[.,;:!?)—–]))"
_BAR = (
    r"(?:the|this|that|its|my|our|any)\s(?:\w{1,12}\s){0,2}"
    r"(?:bar|test|mark|criteri\w{1,3}|standard|requirement|threshold|question|grade)"
)
_NOT = r"(?:(?:does|do|did|can|could|will|would|has|is)\s?(?:not|n['’]t)|cannot|never)\s"
_SUCCEED = _any(
    rf"pass(?:{_ENDS}|\s{_BAR})",
    rf"(?:succeed|make it|work|deliver){_ENDS}",
    "qualify",
    "suffice",
    "hold up",
    "measure up",
    "manage it",
    rf"(?:meet|satisfy|clear|reach|fulfil)\s{_BAR}",
)
_MET = r"(?:passed|met|satisfied|reached|cleared|fulfilled)\b"
_CALLED = (
    r"\b(?:call|consider|count|rate|judge|deem)\s(?:it|this|the\s\w{1,12})\s(?:as\s)?an?\s"
    r"(?:\w{2,12}\s)?"
)
_BECOMES = r"(?:is|remains|deserves|earns|gets)\san?\s(?:\w{2,12}\s)?"
_I_WILL = (
    r"\bi(?:\s(?:would|will|must|should|can|could|have to|had to|am going to)|['’](?:d|ll|m going "
    r"to))\s(?:\w{1,12}\s){0,3}"
)
_I_DOUBT = (
    r"\bi (?:(?:(?:do not|don['’]t|cannot|can['’]t) (?:\w{1,12}\s)?(?:think|believe|feel|say)"
    r"(?: that)?)|doubt(?: that| if| whether)?)\s"
)
_FAILS = _any(
    _IT
    + _any(
        rf"fails(?:{_ENDS}|\s{_BAR}|\s(?:overall|outright|badly|on (?:this|that|the whole)))",
        r"fails to (?:pass|meet|satisfy|clear|reach|qualify|succeed)",
        rf"(?:falls|comes up|came up|fell) short{_ENDS}",
        "misses the mark",
        "flunks",
        rf"(?:has )?failed{_ENDS}",
        rf"{_NOT}{_ADVERBS}{_SUCCEED}",
        rf"(?:does|did|is|has|can|will|would)\s?(?:not|n['’]t){_ENDS}",
        rf"{_BECOMES}fail(?:ure)?{_ENDS}",
    ),
    rf"\b{_BAR}\s(?:is|was|has)\s(?:not|never)\s(?:been\s)?{_MET}",
    rf"{_CALLED}(?:failure|fail|miss)\b",
    rf"{_I_WILL}(?:fail|reject) (?:it|this|the)",
    r"\bi can(?:not|['’]t) (?:\w{1,12}\s){0,3}(?:pass it|say (?:that )?(?:so|yes|it))",
    rf"{_I_DOUBT}{_IT}(?:passes|succeeds|works|qualifies|does|holds up|meets\s{_BAR}){_ENDS}",
)
_PASSES = _any(
    _IT
    + _any(
        rf"passes(?:{_ENDS}|\s{_BAR})",
        rf"(?:has|had) passed{_ENDS}",
        rf"(?:succeeds|qualifies|works|holds up|does){_ENDS}",
        rf"(?:meets|satisfies|clears|reaches|fulfils)\s{_BAR}",
        rf"(?:does|did|would|should|must|will|can)\s{_ADVERBS}{_SUCCEED}",
        rf"{_BECOMES}(?:pass|yes|success){_ENDS}",
    ),
    rf"\b{_BAR}\s(?:is|was|has)\s{_ADVERBS}(?:been\s)?{_MET}",
    rf"{_CALLED}(?:pass|success)\b",
    rf"{_I_WILL}(?:pass|accept) (?:it|this|the)",
    rf"{_I_DOUBT}{_IT}fails{_ENDS}",
)

# Another verdict.
_SAYING = (
    r"\b(?:answer|verdict|judge?ment|decision|conclusion|closer to|nearer to|leaning|"
    r"i(?:['’]d|['’]ll)?(?:\s\w{1,12}){0,4}\s(?:say|meant?|conclude|vote|go with|settle (?:on|for)|"
    r"lean|answer|come down on|pick|choose|prefer|favou?r)|"
    r"(?:it|that|this) (?:should|ought to|must|has to) (?:be|read|have been))\b"
    r"\W{0,3}(?:\w{1,12}\W{1,2}){0,4}?"
)
_TURN = (
    r"(?:(?:well|hm+|so|thus|hence|therefore|overall|actually|but|or|and|then again|wait|rather|no|"
    r"yes|in truth|i mean|sorry|"
    r"make (?:it|that)|at least|more (?:precisely|exactly|likely|accurately)|\w{2,14}ly|just|still)"
    r"[\s,:.…!—–-]{1,4}){0,3}"
)
_HARDLY = _any(
    "hardly",
    "not (?:really|quite|entirely|exactly|at all|yet)",
    "or not",
    "barely",
    "(?:or )?(?:maybe|perhaps|probably) not",
    "far from it",
    "by no means",
    "in no way",
)
_INTO = (
    r"(?:(?:lower|rais|reduc|adjust|chang)(?:e|ed|ing)(?:\s(?:it|that))?|(?:down|up)(?:graded)?)"
    r"\sto"
)
_BUT = _any(
    "no",
    "or",
    "but",
    "and",
    "so",
    "otherwise",
    "rather",
    "also",
    "then",
    "actually",
    "maybe",
    "perhaps",
    "probably",
    "else",
    "closer to",
    "i mean",
    "at least",
    _INTO,
    r"(?:make|made|should (?:be|read|have been)|means)(?:\s(?:it|that))?",
)


def is_taken_back(verdict: str, others: str, after: str, *, is_number: bool = False) -> bool:
    """Whether the text after a verdict, up to the end of the answer, reverses it.

    `others` is a pattern of the other possible answers. A text has many numbers, so another number
    only reverses a verdict if it is stated as one.
    """
    sentences = [part.strip() for part in re.split(r"(?<=[.!?…])\s+|\n+", after[:_MAX_CHARS])]
    near = [sentences[0], *[part for part in sentences[1:] if re.search(r"\w", part)][:1]]
    opposite = _opposite(verdict)
    at_once, anywhere = _near(verdict, others, is_number), _elsewhere(others, is_number)
    return (
        any(_TURNED.search(part) or anywhere.search(part) for part in sentences)
        or any(at_once.search(part) for part in near)
        or any(
            opposite.search(part)
            for part in sentences
            if opposite is not None and (part in near or _CONCLUDES.search(part))
        )
    )


@cache
def _opposite(verdict: str) -> re.Pattern[str] | None:
    """The story as a whole is said to do what the verdict denies; None for other verdicts."""
    if verdict == "yes":
        return re.compile(rf"{_FAILS}|{_SAYING}(?:negative|the opposite)", _FLAGS)
    if verdict == "no":
        return re.compile(rf"{_PASSES}|{_SAYING}(?:positive|affirmative|the opposite)", _FLAGS)
    return None


@cache
def _near(verdict: str, others: str, is_number: bool) -> re.Pattern[str]:
    """Immediately after the verdict: another one, or doubt about it."""
    begins = "" if is_number else r"^|[.!?,;:—–(…]|-\s|"
    parts = [
        r"^\W{0,3}(?:wait|hold on|hang on)\b",
        rf"(?:{begins}\b{_BUT}\b)[\s(:,]{{0,3}}{_TURN}(?:an?\s|the\s)?(?:{others})"
        r"(?=\W{0,3}$|[.,;:!—–]|\s-{1,2}\s)",
        rf"\b(?:{others})\s(?:is|was|would be|seems)\s(?:\w{{1,12}}\s){{0,3}}"
        r"(?:better|stronger|right|closer|best|preferable)(?=\W{0,2}$|[.,;:!?)]|\s(?:than|here|overall)\b)",
        rf"\b(?:{others})\s(?:is|was)\sthe\s(?:more\s)?\w{{1,20}}\sof the (?:two|pair)"
        r"(?=\W{0,3}$)",
        rf"\b(?:{others})\s(?:wins|works better|does better)\b",
    ]
    if verdict in ("yes", "no"):
        parts.append(r"\b(?:yes and no|no and yes)\b")
        parts.append(
            r"\b(?:it|that|this)(?:['’]s|\s(?:is|has to be|must be))\s(?:\w{1,12}\s)?an?\s"
            rf"(?:{others})"
            r"(?=\W{0,3}$|[.,;!])"
        )
    if verdict == "yes":
        parts.append(rf"^\W{{0,4}}{_TURN}{_HARDLY}(?=\W{{0,3}}$|[.,;:!?—–])")
    return re.compile("|".join(parts), _FLAGS)


@cache
def _elsewhere(others: str, is_number: bool) -> re.Pattern[str]:
    """Another verdict, stated as one, or on a line or in a sentence of its own."""
    said = rf"{_SAYING}[\"'“‘]?(?:{others})(?=\W{{0,3}}$|[\"'”’]|[.,;!])"
    # Not in quotation marks: what a character in the story says does not reverse the verdict.
    alone = rf"^[\s(\[—–-]{{0,4}}{_TURN}(?:{others})(?=\W{{0,3}}$|[,;!—–])"
    if is_number:
        return re.compile(said, _FLAGS)
    # "Verdict: Yes", and below it "Ending: Yes", "Pacing: No": it is unclear which was asked.
    scored = rf"|^\w[\w’' ]{{1,40}}:\s(?:{others})\W{{0,3}}$" if others in ("yes", "no") else ""
    return re.compile(f"{said}|{alone}{scored}", _FLAGS)
