"""Parsing a model's answer into a verdict, or the reason why there is none.

Strict on purpose: an answer that does not state its verdict in the requested form has none, and
neither has one that retracts it. A refusal, a withheld or truncated answer, "yes and no", half a
JSON object are never a "No". What surrounds a verdict (reasoning, Markdown, LaTeX, tags, JSON) does
not matter.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from fabula.models.answer_words import CLOSES, MARKS, Reading, other_options, verdict_in
from fabula.models.base import Answer
from fabula.models.retractions import is_taken_back
from fabula.models.spoken import plain_line, spoken
from fabula.scales import Scale
from fabula.text.refusals import is_refusal

READER = "5"
"""The version of the parser, for signatures: from 2 on, more forms, and no retracted verdicts."""

Style = Literal["reason-first", "verdict-first"]
"""Where the verdict is: after the reasons, or before them."""

# Only for answers known to hold no verdict, so a first phrase is enough to say why.
_DECLINES = re.compile(
    r"\W*(?:<[^>]{1,80}>\s*)?"
    r"(?:(?:thank(?:s| you)|i (?:appreciate|understand))\b[^.!?\n]{1,100}?\bbut\s)?"
    r"(?:i['’]?m sorry|i am sorry|sorry,|i apologi[sz]e|unfortunately,? i"
    r"|i can(?:not|['’]t)|i am (?:not able|unable)|i['’]m (?:not able|unable)"
    r"|i (?:won['’]t|will not)|i (?:do not|don['’]t) have (?:enough|sufficient|access)|as an ai)",
    re.IGNORECASE,
)
# No story was read: the word before it responds to a request, not to the question.
_OFFERS = re.compile(
    r"^\W{0,3}(?:i(?:['’]ve|\shave)\s(?:\w{1,8}\s)?(?:read|received)\b|(?:i\s)?underst(?:and|ood)\W)"
    r"|\bwhat (?:would you like|do you want) me to\b"
    r"|^\W{0,3}i(?:\s(?:can|could|will|would)|['’](?:ll|d))(?:\s(?:be|certainly|gladly|happily|happy|glad|"
    r"to)){0,4}\s(?:help|assist|evaluate|review|judge|take a look)\b"
    r"|^\W{0,3}i(?:['’]d|['’]ll|\swould|\swill) be (?:glad|happy) to\b"
    r"|\bplease (?:paste|provide|share|send|upload|attach|post)\s(?:me\s)?(?:the|your)\s"
    r"(?:\w{1,12}\s)?(?:story|text|piece|draft|passage)\b",
    re.IGNORECASE,
)
_BLOCKED = re.compile(r"\W*(?:content|response|prompt) (?:was )?blocked\W*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The value, or the reason for having none; and the model's reasons."""

    value: float | str | None
    missing_reason: str | None
    rationale: str | None
    is_cut: bool = False
    """The rationale was truncated at the token limit; the verdict stands."""


def read_verdict(answer: Answer, scale: Scale, style: Style) -> Verdict:
    """Parse the verdict of an answer, strictly."""
    if answer.stop in ("too_long", "blocked"):
        return Verdict(None, answer.stop, answer.note or None)
    text = spoken(answer.text)
    if _BLOCKED.fullmatch(text[:200]):
        return Verdict(None, "blocked", text)
    is_cut = answer.stop == "length"
    if not text:
        empty = "no_verdict" if answer.text.strip() else "no_answer"
        return Verdict(None, "truncated" if is_cut else empty, answer.text.strip() or None)
    if scale.form == "prose":
        refused = "refusal" if is_refusal(text) else None
        return Verdict(None if refused else text, refused, None, is_cut)
    found, rationale = _found(text, scale, style, is_cut=is_cut)
    reasons = [one.reason for one in found if one.reason]
    values = {one.value for one in found if one.value is not None}
    if len(values) > 1 or "contradictory" in reasons:
        return Verdict(None, "contradictory", text)
    if reasons:
        return Verdict(None, reasons[0], text)
    if not values:
        reason = "refusal" if _DECLINES.match(text) else "truncated" if is_cut else "no_verdict"
        return Verdict(None, reason, text)
    return Verdict(values.pop(), None, rationale, is_cut)


def _found(
    text: str, scale: Scale, style: Style, *, is_cut: bool
) -> tuple[list[Reading], str | None]:
    """All places of an answer that state a verdict, and the reasons around them."""
    structured = _from_json(text, scale, is_cut=is_cut)
    if structured is not None:
        return structured
    raw = text.split("\n")
    lines = [plain_line(line) for line in raw]
    _name_cells(raw, lines)
    said = [k for k, line in enumerate(lines) if line]
    found = list(_labelled(lines, scale))
    if style == "verdict-first" and said and not (found and found[0].line == said[0]):
        head = _head(lines, said[0], scale)
        found = [head, *found] if head else found
    found += _alone(lines, said, scale)
    if not found:
        found = _concluded(lines, said, scale)
    last = max((one.line for one in found), default=0)
    ends_there = found and not any(lines[last + 1 :])
    if is_cut and ends_there and not re.search(r"\w", found[-1].after):
        # The next token could have changed it: 1 into 10, "No" into "None of it".
        return [Reading(None, "truncated")], None
    found = [_checked(one, lines, scale) for one in found]
    return found, _rationale(raw, found, said) if found else None


def _name_cells(raw: Sequence[str], lines: list[str]) -> None:
    """In a table of one row, treat the cell below "Verdict" as labelled."""
    for k in range(len(raw) - 2):
        if not re.fullmatch(r"\s*\|[\s|:-]*-[\s|:-]*", raw[k + 1]):
            continue
        is_one_row = raw[k + 2].lstrip().startswith("|") and (
            k + 3 == len(raw) or not raw[k + 3].lstrip().startswith("|")
        )
        heads, cells = lines[k].split(": "), lines[k + 2].split(": ")
        if (
            is_one_row
            and len(heads) == len(cells)
            and heads[-1].casefold() in ("verdict", "answer")
        ):
            lines[k], lines[k + 1], lines[k + 2] = "", "", f"Verdict: {cells[-1]}"


def _checked(one: Reading, lines: Sequence[str], scale: Scale) -> Reading:
    """The reading, unless the following text retracts it."""
    if one.value is None:
        return one
    if _OFFERS.search(one.after):
        # "Yes, I can help with that! Please paste the story."
        return Reading(None, "no_verdict")
    after = "\n".join([one.after, *lines[one.line + 1 :]])
    verdict, others = other_options(one.value, scale)
    turned = is_taken_back(verdict, others, after, is_number=scale.form == "number")
    return Reading(None, "contradictory") if turned else one


def _rationale(raw: Sequence[str], found: Sequence[Reading], said: Sequence[int]) -> str | None:
    """The answer without its verdict, if that begins or ends it."""
    first, last = found[0], found[-1]
    if (first.line <= said[0] + 1 and first.line != said[-1]) or len(said) == 1:
        kept = [first.after.lstrip(" \t.,:;!?\"'“”)]—–-(["), *raw[first.line + 1 :]]
    elif last.line == said[-1]:
        kept = list(raw[: last.line])
    else:
        kept = list(raw)
    return "\n".join(kept).strip() or None


# Structured answers.

_KEYS = ("verdict", "answer", "final_verdict", "final_answer")
_OBJECT = re.compile(r"\{[^{}]{2,100000}\}")
_MAX_LITERAL = 20_000
_OUTER = re.compile(r"^```[a-z]{0,10}\s{0,4}|\s{0,4}```$", re.IGNORECASE)


def _from_json(text: str, scale: Scale, *, is_cut: bool) -> tuple[list[Reading], str | None] | None:
    """{"verdict": ..., "reason": ...}, alone or after other words; None if there is none.

    Complete, or truncated within the reason, after its verdict.
    """
    whole = _OUTER.sub("", text)
    if whole.startswith("{"):
        pairs = _pairs(whole)
        if pairs is not None:
            return _of_pairs(pairs, scale)
    for match in _OBJECT.finditer(text):
        pairs = _pairs(match[0])
        if pairs and any(str(key).casefold() in _KEYS for key, _ in pairs):
            around = _plain_lines(text[: match.start()]) + _plain_lines(text[match.end() :])
            found, rationale = _of_pairs(pairs, scale)
            return [*found, *_labelled(around, scale)], rationale
    if not whole.startswith("{"):
        return None
    head = re.match(r'\{\s{0,9}"verdict"\s{0,9}:\s{0,9}"([^"\n]{1,200})"\s{0,9},', whole, re.I)
    if head is None or not is_cut:
        return [], None
    return [_whole(head[1], scale)], whole[head.end() :].strip()


def _pairs(text: str) -> list[tuple[Any, Any]] | None:
    """The fields of an object, including duplicate keys; None if it is not an object.

    As JSON; or as Python writes it, with single quotes or a comma before the brace.
    """
    try:
        found = json.loads(text, object_pairs_hook=list)
        return found if isinstance(found, list) else None
    except (ValueError, RecursionError):
        pass
    try:
        tree = ast.parse(text[:_MAX_LITERAL], mode="eval").body
        if not isinstance(tree, ast.Dict):
            return None
        pairs = zip(tree.keys, tree.values, strict=True)
        return [(ast.literal_eval(key), ast.literal_eval(one)) for key, one in pairs if key]
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _of_pairs(pairs: Any, scale: Scale) -> tuple[list[Reading], str | None]:
    found: list[Reading] = []
    rationale = None
    for key, value in pairs if isinstance(pairs, list) else ():
        if isinstance(value, list) and all(isinstance(one, tuple) for one in value):
            # A nested object: {"evaluation": {"verdict": ...}}.
            inner, given = _of_pairs(value, scale)
            found, rationale = [*found, *inner], rationale or given
        elif str(key).casefold() in _KEYS:
            found.append(_whole(_plain(value), scale))
        elif str(key).casefold() in ("reason", "reasons", "reasoning", "rationale") and value:
            rationale = str(value)
            if found and found[-1].value is not None:
                found[-1] = _checked(Reading(found[-1].value, after=rationale), [], scale)
    return found, rationale


def _whole(text: str, scale: Scale) -> Reading:
    """A field that must contain a verdict and nothing else."""
    one = verdict_in(plain_line(text), scale)
    if one is None or re.search(r"\w", one.after):
        return Reading(None, "no_verdict")
    return one


def _plain(value: Any) -> str:
    """A string or a number as text; anything else is not a verdict."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _plain_lines(text: str) -> list[str]:
    return [plain_line(line) for line in text.split("\n")]


# Answers in words.

_SO = (
    r"(?:(?:so|thus|hence|therefore|accordingly|consequently|overall|ultimately|finally|in "
    r"(?:conclusion|summary|short|sum|brief|a word)|to (?:conclude|sum up|summari[sz]e)|all in all|"
    r"all told|on balance|on the whole|bottom line|tl;?dr)"
    r"[\s,:–—-]{1,4})"
)
_NOUN = r"(?:verdict|answer)"
_LOOSE = (
    r"(?:judge?ment|conclusion|decision|choice|preference|overall|assessment|result|outcome|"
    r"winner|pick|(?:better|stronger|preferred)\s(?:story|one|text)|"
    r"fazit|(?:end|gesamt)?urteil|antwort|ergebnis|bewertung)"
)
# What may follow a verdict in its sentence: "yes, on balance", "no, since ...", "yes, it passes".
_ADDS = re.compile(
    r"\W*(?:(?:on (?:the whole|balance)|overall|all in all|all told|in the end|in my view|"
    r"i (?:think|fear|suppose|believe|would say)|i['’]?(?: a)?m (?:afraid|sorry to say))"
    r"|(?:since|because|given that)\b.*|(?<=:\s)(?!(?:if|for|in|when|provided|as long as)\b).*"
    r"|(?:it|(?:this|the) (?:story|piece|text))\s(?:does|passes|fails|"
    r"does\s?(?:not|n['’]t))(?:\s(?:this|the|that) \w{1,12})?)?\W*",
    re.IGNORECASE,
)
_MARKED = r"(?:rating|score|grade|mark)"
_I_SAY = (
    r"(?:(?:it(?:['’]s|\sis)\san?|i(?:['’]d|['’]ll|\s(?:would|should|will|must|have to))?\s(?:say|"
    r"answer|vote|conclude|decide|settle on|go with|lean towards? an?|come down on"
    r"(?:\sthe side of)?|(?:give|rate|score|award|call)"
    r"(?:\s(?:it|(?:this|the)(?:\s(?:story|piece|text))?))?(?:\san?)?))[\s:,]{1,3})"
)
# "It is close, but I say", "Having weighed these, my verdict is"; never "If it had an ending, ...".
_LEAD = (
    r"(?:[^.!?]{1,200}?\s(?:but|so|yet)\s|(?:having|weighing|considering|taking|judging|given|"
    r"based on|after|for (?:these|this|all|the above))\s[^.!?]{1,100},\s)"
)
_MINE = r"(?:(?:the|my)\s)?(?:(?:final|overall|short|quick|brief|direct|simple)\s){0,2}"
_ASIDE = r"(?:\s?\([^()\n]{1,60}\))?"
_COLON = r"\s{0,3}(?:is\s{0,2})?(?:[:;=|→–—]|-{1,2}>?(?=\s)|(?:\s|^)-(?=\w))"
_NUMBERED = r"(?:\(?\d{1,2}[.)]\s{0,3})?"
_LABEL = re.compile(
    rf"^{MARKS}{_NUMBERED}{_SO}?{_MINE}(?P<noun>{_NOUN}|{_LOOSE}){_ASIDE}{CLOSES}"
    rf"(?:{_COLON}|(?P<bare>\s{{0,3}})$)(?P<said>.*)",
    re.IGNORECASE,
)
_MARK = re.compile(rf"^{MARKS}{_SO}?{_MINE}{_MARKED}{_ASIDE}{_COLON}(?P<said>.*)", re.IGNORECASE)
_CONCLUSION = re.compile(
    rf"(?:{_LEAD}?{_SO}?{_MINE}(?:(?:{_NOUN}|{_LOOSE}|{_MARKED})\s(?:is|would be|must be|has to be)"
    rf"|(?:{_NOUN}|{_LOOSE}){_COLON})|{_LEAD}?{_SO}?{_I_SAY}|{_SO})"
    rf"[\s:]{{0,3}}(?P<said>.{{1,120}})",
    re.IGNORECASE,
)


def _labelled(lines: Sequence[str], scale: Scale) -> Iterator[Reading]:
    """The verdicts of all lines of the form `Verdict: Yes`, or with it on the next line."""
    for k, line in enumerate(lines):
        match = _LABEL.match(line)
        if match is None and scale.form == "number":
            match = _MARK.match(line)
        if match is None:
            continue
        place, said = k, match["said"].strip()
        if not re.search(r"\w", said):
            # A heading; or `Verdict:` with the verdict below it.
            place = next((n for n in range(k + 1, len(lines)) if lines[n]), k)
            said = lines[place] if place > k else ""
        one = _stated(said, scale, place)
        if place > k and _LABEL.match(said):
            continue
        is_asked = (match.groupdict().get("noun") or "").casefold() in ("verdict", "answer")
        if one is not None:
            yield one
        elif is_asked and match.groupdict().get("bare") is None:
            # Requested but missing; a heading or "Conclusion: ..." may be about anything.
            yield Reading(None, "no_verdict", place)


def _head(lines: Sequence[str], first: int, scale: Scale) -> Reading | None:
    """`Yes. ...` at the beginning: the verdict before a stop, a comma, a dash, the line's end.

    "No opinion", "A careful reading", "3 of the 5" begin with an option but are not verdicts.
    """
    if scale.form == "number" and any(
        re.match(r"\s{0,3}\d{1,3}[.)]\s", line) for line in lines[first + 1 :]
    ):
        # "1. The ending ... 2. The pace ...": a list, not a number.
        return None
    return _stated(lines[first], scale, first)


def _stated(text: str, scale: Scale, line: int) -> Reading | None:
    """The verdict at the start of a line, or ending its first sentence: "My answer is No"."""
    one = verdict_in(text, scale, line=line)
    if one is None:
        sentence, *more = re.split(r"(?<=[.!?])\s+", text, maxsplit=1)
        match = _CONCLUSION.fullmatch(sentence)
        one = verdict_in(match["said"], scale, line=line) if match else None
        one = one and (replace(one, after=" ".join([one.after, *more])) if _ends(one) else None)
    return one


def _alone(lines: Sequence[str], said: Sequence[int], scale: Scale) -> list[Reading]:
    """The first or the last line, if it is a verdict and nothing else."""
    found = []
    for k in dict.fromkeys([*said[:1], *said[-1:]]):
        one = verdict_in(lines[k], scale, line=k)
        if one is not None and not re.search(r"\w", one.after):
            found.append(one)
    return found


def _concluded(lines: Sequence[str], said: Sequence[int], scale: Scale) -> list[Reading]:
    """The last sentence, if it is "So Yes." or "My verdict is No." and nothing else."""
    if not said:
        return []
    sentence = re.split(r"(?<=[.!?])\s+(?=\S+\s|\S+:)", lines[said[-1]])[-1]
    # "... holds. Verdict: Yes" and "... holds. So Yes." keep their verdict with its label.
    for part in (lines[said[-1]], sentence):
        match = _CONCLUSION.fullmatch(part.strip())
        one = verdict_in(match["said"], scale, line=said[-1]) if match else None
        if one is not None and _ends(one):
            return [one]
    return []


def _ends(one: Reading) -> bool:
    """Whether nothing follows a verdict in its sentence that could change it."""
    return _ADDS.fullmatch(one.after) is not None
