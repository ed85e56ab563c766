"""Verdicts as worded in answers: "Yes", "(B)", "Story A is better", "4 out of 5", "an AI"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fabula.models.spoken import plain_line
from fabula.scales import Scale

MARKS = r"[\s\"'“”‘’«»(\[]{0,8}"
CLOSES = r"[\"'“”‘’«»)\]]{0,4}"


@dataclass(frozen=True, slots=True)
class Reading:
    """A place in an answer that states a verdict: its value, or why it has none."""

    value: float | str | None
    reason: str | None = None
    line: int = 0
    after: str = ""
    """The rest of its line."""


_FIRM = (
    r"(?:(?:(?:sad|regrettab|unfortunate|fortunate|happi|thankful|honest|frank|surprising|obvious|"
    r"decided)ly|alas|well|hm+),?\s{1,2})?"
    r"(?:an?\s)?(?:(?:clear|clearly|definite|definitely|firm|strong|resounding|emphatic|absolutely|"
    r"certainly|solid|simple|plain|unambiguous|unequivocal)[\s,]{1,2}){0,2}"
)
_STORY = r"(?:(?:story|option|text|choice|candidate|version)\s)"
_ENDS = (
    r"(?=\s{0,3}$|\s{0,3}[.,:;!…|](?!\d)|\s{0,3}[—–](?!\s?\d)|\s{1,3}-{1,2}\s(?!\d)|-{1,2}\s(?!\d)"
    r"|\s{1,3}[(\[]|\s{0,3}\?|\s{2,3}(?-i:[A-Z]))"
)
_GOES_ON = (
    r"(?=\s{1,3}(?:it|this|that|the|i|he|she|they|there|we|because|since|as|though|although|but|while|"
    r"absolutely|definitely|clearly|indeed|certainly)\b)"
)
# "Yes," says the keeper: a character in the story speaks.
_IN_SPEECH = re.compile(r"\s{0,3}[\"'“‘«„][^\"”’»]{1,60}?[,!?.…—–-][\"'”’»]\s{0,2}(?=\w)")
_PREFERRED = (
    r"(?=(?:\s(?!not\b|never\b|no\b|less\b|worse\b|weaker\b|than\b|nor\b)[\w’'-]{1,20}){0,6}?"
    r"\s(?:better|stronger|superior|preferable|wins|more\s\w{3,20})\b)"
)
_RESERVED = re.compile(r"\b(?:but|although|though|however|yet|while|whereas|except)\b", re.I)
_UNIT = r"(?:(?:st|nd|rd|th)\b(?:\splace\b)?|\s?(?:stars?|points?)\b)?"
_NUMBER = r"-?\d{1,12}(?:\.\d{1,12})?(?![\d%])"
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def verdict_in(text: str, scale: Scale, *, line: int = 0) -> Reading | None:
    """The verdict at the beginning of some text, or None."""
    if scale.form == "number":
        return _number(text, scale, line)
    options = _options(scale)
    joined = re.match(
        rf"{MARKS}(?:both\s)?(?:{options})\b(?P<more>(?:{CLOSES}\s{{0,2}}(?:,|/|\||\bor\b|\band\b|\bbut\b)"
        rf"(?:\s{{0,2}}(?:or|and|also|but|then|perhaps|maybe|an?)\b){{0,3}}{MARKS}(?:{options})"
        rf"{CLOSES}(?=\W|$)){{1,20}})(?P<ends>[\])\s]{{0,4}}(?:$|[.,;:!?\])—–-]|\s\())?",
        text,
        re.IGNORECASE,
    )
    if joined and (joined["ends"] is not None or re.search(r"/|\||\bor\b|\band\b", joined["more"])):
        return _several(joined, options, scale, line)
    firm = _FIRM if scale.is_test else ""
    prefix = f"{_STORY}?" if _has_letters(scale) else r"(?:[a-z1-9][.)]\s)?"
    head = re.match(
        rf"{MARKS}{firm}(?P<prefix>{prefix})(?P<said>{options}){CLOSES}"
        rf"(?P<ends>{_ENDS}|{_GOES_ON}|{_PREFERRED})(?P<after>.*)",
        text,
        re.IGNORECASE,
    )
    if head is None or _IN_SPEECH.match(text) or not _is_clear(head, options):
        return None
    after = head["after"]
    value = _value(head["said"], scale)
    if after.lstrip().startswith("?"):
        # "Yes? Hardly." is a question; nothing after it answers.
        return Reading(None, "contradictory" if re.search(r"\w", after) else "no_verdict", line)
    return Reading(value, None, line, after)


def _is_clear(head: re.Match[str], options: str) -> bool:
    """Whether text that begins with an option is a verdict: "Yes it does", "Story A is better"."""
    if re.match(_ENDS, head["after"]):
        return True
    if re.match(_GOES_ON, head["after"], re.IGNORECASE) and head["said"].casefold() in (
        "yes",
        "no",
    ):
        return True
    sentence = re.split(r"(?<=[.!?;:])\s", head["after"])[0]
    before = re.split(r"\bthan\b", sentence)[0]
    # "A is the better one", where no article can stand; elsewhere an article is not a story.
    is_letter = re.match(r"[A-Z]\s(?:is|wins)\b", head["said"] + head["after"]) is not None
    return bool(
        (is_letter or (head["prefix"].strip() and _has_story(head["prefix"])))
        and re.match(_PREFERRED, head["after"], re.IGNORECASE)
        and not _RESERVED.search(sentence)
        # In capitals: an article is not a story.
        and not re.search(rf"\b(?:{options.upper()})\b", before)
    )


def _has_story(prefix: str) -> bool:
    return re.fullmatch(_STORY, prefix, re.IGNORECASE) is not None


def _several(joined: re.Match[str], options: str, scale: Scale, line: int) -> Reading:
    """More than one option: the prompt's own list, a verdict given after it, or two verdicts."""
    text = joined[0]
    named = {_own(match[0].casefold()) for match in re.finditer(rf"\b(?:{options})\b", text, re.I)}
    is_all = len(named) == options.count("|") + 1
    is_list = re.search(r"/|\||\bor\b", text) and not re.search(r"\b(?:and|but|rather)\b", text)
    if len(named) == 1:
        return Reading(_value(named.pop(), scale), None, line, joined.string[joined.end() :])
    # "Yes or no? The honest answer is ..." is a question, which may be answered next.
    after = joined.string[joined.end() :] if text.endswith("?") else ""
    return Reading(None, "no_verdict" if is_all and is_list else "contradictory", line, after)


def _number(text: str, scale: Scale, line: int) -> Reading | None:
    """`4`, `4/5`, `4 out of 5`, `#2`, `2nd`, `four`."""
    words = "|".join(_WORDS)
    head = re.match(
        rf"{MARKS}(?:#|no\.\s?)?(?P<said>{_NUMBER}|(?:{words})\b)"
        rf"(?:\s{{0,2}}(?:/|out of)\s{{0,2}}(?P<of>\d{{1,4}}))?{_UNIT}{CLOSES}"
        # After "2/5" a dash does not begin a range.
        rf"(?P<after>{_ENDS}.*|(?(of)(?=\s{{0,3}}[—–])|(?!)).*|\s(?:because|since|as)\b.*|\s(?P<join>or|and|to)\s(?:{_NUMBER}|(?:{words})\b).*)",
        text,
        re.IGNORECASE,
    )
    if head is None:
        return None
    if head["join"]:
        return Reading(None, "contradictory", line)
    if head["of"] and (scale.high is None or float(head["of"]) != scale.high):
        return Reading(None, "out_of_scale", line)
    if head["after"].lstrip().startswith("?"):
        return Reading(None, "no_verdict", line)
    said = head["said"].casefold()
    value = scale.read(str(_WORDS.index(said)) if said in _WORDS else said)
    return Reading(value, "out_of_scale" if value is None else None, line, head["after"])


def _bare(option: str) -> str:
    """An option normalised for comparison: without marks, in one case."""
    return plain_line(option).casefold()


def _options(scale: Scale) -> str:
    """The answers of a scale as a pattern, longest first so that none hides another."""
    return _pattern({_bare(option) for option in scale.answers})


def _own(option: str) -> str:
    """Strip the article: "AI" for "An AI"."""
    return re.sub(r"^an?\s", "", option)


def _pattern(options: set[str]) -> str:
    """Options as a pattern, longest first so that none hides another, each with or without `a`."""
    return "|".join(
        ("" if option == _own(option) else r"(?:an?\s)?") + re.escape(_own(option))
        for option in sorted(options - {""}, key=lambda o: (-len(_own(o)), o))
    )


def _has_letters(scale: Scale) -> bool:
    """Whether the options are single letters, as for a pair of stories."""
    return all(len(option) == 1 for option in scale.answers)


def other_options(value: float | str, scale: Scale) -> tuple[str, str]:
    """A verdict as it was worded, and a pattern of all others."""
    if scale.form == "number":
        words = "|".join(word for k, word in enumerate(_WORDS) if k != value)
        own = re.escape(f"{value:g}")
        return f"{value:g}", rf"(?!{own}(?![\d.]))-?\b\d{{1,4}}(?:\.\d{{1,3}})?(?![\w/%])|{words}"
    said = scale.word(value)
    others = {_bare(option) for option in scale.answers} - {_bare(said), ""}
    pattern = _pattern(others)
    return _bare(said), f"{_STORY}?(?:{pattern})" if _has_letters(scale) else pattern


def _value(said: str, scale: Scale) -> float | str | None:
    """The value of the answer with this wording."""
    answer = next((one for one in scale.answers if _own(_bare(one)) == _own(said.casefold())), None)
    return None if answer is None else scale.read(answer)
