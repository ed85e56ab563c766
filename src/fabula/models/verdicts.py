"""What a model said: its verdict, or the reason why there is none; and the forms asked for.

An answer states its verdict in a JSON object, on a line labelled `Verdict:`, or as what its first
or last sentence begins with. Nothing else is guessed: if there is none of these, if two of them
differ, or if what follows seems to take the verdict back, there is no verdict, and the judge asks
the model once what it meant (`judging.run`). A refusal, a withheld or truncated answer, "yes and
no", half a JSON object are never a "No".

A form is described to the model in words, to a provider as a JSON schema, and to llama.cpp as a
grammar (GBNF: https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md). Some models
give the probabilities of their tokens, and so of the options of a choice.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from fabula.core.scales import Scale
from fabula.models.base import Answer, Choice, Form
from fabula.text.refusals import is_refusal

_THINK = r"(?:seed:)?(?:thinking|thought|think)"
_OPEN = re.compile(rf"(?:<\|?|\[|◁){_THINK}(?:\|?>|\]|▷)", re.IGNORECASE)
_CLOSE = re.compile(rf"(?:<\|?|\[|◁)/{_THINK}(?:\|?>|\]|▷)", re.IGNORECASE)
# The channel to which gpt-oss writes its answer.
_CHANNEL = re.compile(r"<\|channel\|>\s{0,3}final\s{0,3}<\|message\|>", re.IGNORECASE)
_CONTROL = re.compile(r"<\|[^|<>\n]{1,40}\|>|</?s>")

_LATEX = re.compile(r"\\[a-z]{3,12}\s?\{([^{}\n]{0,200})\}")
_MATH = re.compile(r"\$|\\[()\[\]]")
_TAG = (
    r"(?:(?:final|overall)[_ -]?)?(?:verdict|answer|decision|judge?ment|rating|score|choice|result)"
    r"|final"
)
_TAG_OPEN = re.compile(
    rf"<(?:{_TAG})>(?=\s{{0,3}}\S)|<(?:{_TAG})\s\w{{1,12}}=(?=[\"'])|^\W{{0,3}}\[(?:{_TAG})\](?=\s{{0,3}}\w)",
    re.IGNORECASE,
)
# A tag with content on the lines below it may hold reasons: it is a heading.
_TAG_HEADS = re.compile(rf"<(?:{_TAG})>\s{{0,3}}$", re.IGNORECASE)
_TAG_CLOSE = re.compile(rf"</(?:{_TAG})>|\[/(?:{_TAG})\]|(?<=[\"'])\s?/>", re.IGNORECASE)
# Pictures (arrows, ticks, stars, emoji), their joiners and colour modifiers, and keycap codes.
_PICTURES = re.compile(
    "[\u2190-\u2191\u2300-\u23ff\u2460-\u2bff\U0001f000-\U0001faff\ufe0f\u200d\u20e3]"
)
_EMPHASIS = re.compile(r"[*`]+|(?<!\w)_{1,3}|_{1,3}(?!\w)")
_LINE_MARK = re.compile(r"^(?:\s{0,3}(?:>|#{1,6}|[→⇒]|[-=]>|[-+•·](?=\s)|~{3}))+")
_FENCE = re.compile(r"^\s{0,3}```\s{0,3}[a-z]{0,10}\s{0,3}$", re.IGNORECASE)


def spoken(text: str) -> str:
    """An answer without reasoning and control tokens; of unfinished reasoning, the text before."""
    text = text.strip()
    if re.match(r"\[\s{0,9}\{\s{0,9}[\"']type[\"']", text):
        # The parts of content returned as a list, `[{"type": "text", "text": ...}]`.
        for read in (json.loads, ast.literal_eval):
            try:
                parts: Any = read(text)
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
            kinds = ("text", "output_text")
            shown = [p.get("text") for p in parts if isinstance(p, dict) and p.get("type") in kinds]
            text = "".join(part for part in shown if isinstance(part, str))
            break
    for channel in list(_CHANNEL.finditer(text))[-1:]:
        text = text[channel.end() :]
    ends = list(_CLOSE.finditer(text))
    begins = [mark.start() for mark in _OPEN.finditer(text)]
    if ends and text[ends[-1].end() :].strip():
        begins = [start for start in begins if start > ends[-1].end()]
        text = text[ends[-1].end() : begins[0] if begins else None]
    elif begins:
        text = text[: begins[0]]
    elif ends:
        text = ""
    return _CONTROL.sub("", text).strip()


def plain_line(line: str) -> str:
    """A line without Markdown, LaTeX and pictures; `<verdict>` becomes a label."""
    if _FENCE.match(line):
        return ""
    for _ in range(3):
        line = _LATEX.sub(r"\1", line)
    line = _TAG_OPEN.sub("Verdict: ", _TAG_HEADS.sub("Verdict", _MATH.sub("", line)))
    line = _TAG_CLOSE.sub(". ", line)
    line = _LINE_MARK.sub("", _EMPHASIS.sub("", _PICTURES.sub("", line)).strip()).strip()
    if line.startswith("|"):
        line = ": ".join(cell.strip() for cell in line.strip("|").split("|"))
    return line


READER = "6"
"""The version of the parser, and of the question about unclear answers, for signatures."""

Style = Literal["reason-first", "verdict-first"]
"""Where the verdict is: after the reasons, or before them."""

# Only for answers known to hold no verdict, so a first phrase is enough to say why.
_DECLINES = re.compile(
    r"\W*(?:<[^>]{1,80}>\s*)?(?:(?:thank(?:s| you)|i (?:appreciate"
    r"|understand))\b[^.!?\n]{1,100}?\bbut\s)?(?:i['’]?m sorry|i am sorry|sorry,|i apologi[sz]e"
    r"|unfortunately,? i|i can(?:not|['’]t)|i am (?:not able|unable)|i['’]m (?:not able|unable)"
    r"|i (?:won['’]t|will not)|i (?:do not|don['’]t) have (?:enough|sufficient|access)|as an ai)",
    re.IGNORECASE,
)
_BLOCKED = re.compile(r"\W*(?:content|response|prompt) (?:was )?blocked\W*", re.IGNORECASE)
_MAX_CHARS = 100_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """The value, or the reason for having none; and the model's reasons."""

    value: float | str | None
    missing_reason: str | None
    rationale: str | None
    is_cut: bool = False
    """The rationale was truncated at the token limit; the verdict stands."""
    is_clarified: bool = False
    """The answer was unclear, and the model said which verdict it came to."""


@dataclass(frozen=True, slots=True)
class _Stated:
    """A verdict at a place of an answer, or the reason why that place has none."""

    value: float | str | None
    reason: str = ""
    line: int = 0
    after: str = ""
    """The rest of its line."""


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
    read = _in_json(text, scale, is_cut=is_cut) or _in_words(text, scale, style, is_cut=is_cut)
    stated, rationale = read
    values = {s.value for s in stated if s.value is not None}
    reasons = [s.reason for s in stated if s.reason]
    if len(values) > 1 or "contradictory" in reasons:
        return Verdict(None, "contradictory", text)
    if reasons:
        return Verdict(None, reasons[0], text)
    if not values:
        reason = "refusal" if _DECLINES.match(text) else "truncated" if is_cut else "no_verdict"
        return Verdict(None, reason, text)
    return Verdict(values.pop(), None, rationale, is_cut)


_KEYS = ("verdict", "answer", "final_verdict", "final_answer")
_REASONS = ("reason", "reasons", "reasoning", "rationale")
_OBJECT = re.compile(r"\{[^{}]{2,100000}\}")
_HEAD = re.compile(r'\{\s{0,9}"verdict"\s{0,9}:\s{0,9}"([^"\n]{1,200})"\s{0,9},', re.IGNORECASE)
_OUTER = re.compile(r"^```[a-z]{0,10}\s{0,4}|\s{0,4}```$", re.IGNORECASE)


def _in_json(text: str, scale: Scale, *, is_cut: bool) -> tuple[list[_Stated], str | None] | None:
    """{"verdict": ..., "reason": ...}, alone or within other words; None if there is none."""
    whole = _OUTER.sub("", text)
    if whole.startswith("{"):
        if (fields := _fields(whole)) is not None:
            return _of_fields(fields, scale)
        head = _HEAD.match(whole)
        if head is not None and is_cut:
            # Truncated within the reason, after the verdict.
            return [_whole(head[1], scale)], whole[head.end() :].strip()
    statements: list[_Stated] = []
    rationale = None
    around = text
    for match in _OBJECT.finditer(text):
        fields = _fields(match[0]) or []
        if any(str(key).casefold() in _KEYS for key, _ in fields):
            stated, rationale = _of_fields(fields, scale)
            statements += stated
            around = around.replace(match[0], "\n")
    statements = [_unless_turned(s, text[text.rindex("}") + 1 :], scale) for s in statements]
    return ([*statements, *_labelled(_lines(around), scale)], rationale) if statements else None


def _fields(text: str) -> list[tuple[Any, Any]] | None:
    """The fields of an object as JSON or Python writes it, also duplicates; None for no object."""
    try:
        fields = json.loads(text, object_pairs_hook=list)
        return fields if isinstance(fields, list) else None
    except (ValueError, RecursionError):
        pass
    try:
        tree = ast.parse(text[:20_000], mode="eval").body
        if not isinstance(tree, ast.Dict):
            return None
        pairs = zip(tree.keys, tree.values, strict=True)
        return [(ast.literal_eval(key), ast.literal_eval(value)) for key, value in pairs if key]
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _of_fields(fields: Any, scale: Scale) -> tuple[list[_Stated], str | None]:
    stated: list[_Stated] = []
    rationale = None
    for key, value in fields if isinstance(fields, list) else ():
        if isinstance(value, list) and all(isinstance(pair, tuple) for pair in value):
            # A nested object: {"evaluation": {"verdict": ...}}.
            inner, inner_reason = _of_fields(value, scale)
            stated, rationale = [*stated, *inner], rationale or inner_reason
        elif str(key).casefold() in _KEYS:
            is_plain = isinstance(value, str | int | float) and not isinstance(value, bool)
            stated.append(_whole(str(value) if is_plain else "", scale))
        elif str(key).casefold() in _REASONS and value:
            rationale = str(value)
            if stated and _TURNED.search(rationale):
                stated[-1] = _Stated(None, "contradictory")
    return stated, rationale


def _whole(text: str, scale: Scale) -> _Stated:
    """A field that must contain a verdict and nothing else."""
    stated = _beginning(plain_line(text), scale)
    if stated is None or re.search(r"\w", stated.after):
        return _Stated(None, "no_verdict")
    return stated


_MARKS = r"[\s\"'“”‘’«»(\[]{0,8}"
_CLOSES = r"[\"'“”‘’«»)\]]{0,4}"
_LEAD = (
    r"(?:(?:so|thus|hence|therefore|overall|ultimately|finally|in (?:conclusion|summary|short)|"
    r"to (?:conclude|sum up)|in a word|all in all|all told|on balance|on the whole|bottom line|"
    r"(?:having|weighing|considering|given|after|for (?:these|this|all))\s[^.!?:]{1,80}(?=,)|"
    r"accordingly|consequently)[\s,:–—-]{1,4})"
)
_NOUN = (
    r"(?:(?:the|my|final|overall|short|quick|brief|direct|simple)\s){0,3}(?P<noun>verdict|answer|"
    r"judge?ment|conclusion|decision|choice|preference|rating|score|grade|mark|assessment|result|winner|"
    r"(?:better|stronger|preferred)\s(?:story|one|text)|(?:end|gesamt)?urteil|antwort|fazit)"
    r"(?:\s?\([^()\n]{1,60}\))?"
)
_LABEL = re.compile(
    rf"(?i)^{_MARKS}(?P<number>\(?\d{{1,2}}[.)]\s)?{_LEAD}?{_NOUN}{_CLOSES}\s{{0,3}}"
    rf"(?:(?:is\s{{0,2}})?(?:[:;=|→–—]|-{{1,2}}>?(?=\s))|$)(?P<said>.*)"
)
_CONCLUSION = re.compile(
    rf"(?i){_MARKS}(?:{_LEAD}?{_NOUN}(?:\s(?:is|would be|must be|has to be))?"
    rf"(?:(?<=[se])\s|\s{{0,2}}[:=–—-])\s{{0,2}}|"
    rf"{_LEAD}?i(?:['’]d|\s(?:would|should|must|have to))?\s(?:say|answer|vote|conclude)"
    rf"[\s:,]{{1,3}}|{_LEAD})(?P<said>.{{1,120}})"
)
# "Yes, the ending holds": what may follow a verdict. "No opinion", "Yes-ish" and "3 of 5" are none.
_ENDS = (
    r"(?=\s{0,3}$|\s{0,3}[.,:;!…|?](?!\d)|\s{0,3}[—–](?!\s?\d)|\s{1,3}-{1,2}\s(?!\d)|-{2}\s(?!\d)"
    r"|\s{1,3}[(\[])"
)
_GOES_ON = r"(?=\s{1,3}(?:it|this|that|the|i|he|she|they|there|because|since|though)\b)"
_FIRM = (
    r"(?:(?:(?:well|alas|sadly|regrettably|unfortunately|honestly|clearly|definitely|certainly|absolutely),?\s)|"
    r"an?\s(?:clear|definite|firm|strong|resounding)\s)?"
)
# "Yes," says the keeper: a character in the story speaks.
_IN_SPEECH = re.compile(r"\s{0,3}[\"'“‘«„][^\"”’»]{1,60}?[,!?.…—–-][\"'”’»]\s{0,2}(?=\w)")
_NUMBER = r"-?\d{1,9}(?:\.\d{1,9})?(?![\d%])"
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def _in_words(
    text: str, scale: Scale, style: Style, *, is_cut: bool
) -> tuple[list[_Stated], str | None]:
    """All places of an answer that state its verdict, and the reasons around them."""
    lines = _lines(text)
    if not (full := [k for k, line in enumerate(lines) if line]):
        return [], None
    answers = list(_labelled(lines, scale))
    first, last = full[0], full[-1]
    is_list = scale.form == "number" and any(re.match(r"\d{1,3}[.)]\s", lines[k]) for k in full[1:])
    head = tail = None
    if not is_list:
        # What the first line begins with, after a question or the number of a list.
        line = re.sub(r"^(?:1[.)]\s(?=\D)|[^.!?]{5,200}\?\s)", "", lines[first])
        if (head := _beginning(line, scale, first)) is None:
            sentence, *more = _SENTENCE.split(line, maxsplit=1)
            head = _concluded(sentence, scale, first)
            head = replace(head, after=" ".join([head.after, *more])) if head else None
        # What the last line, or else the last sentence, begins with.
        parts = dict.fromkeys((lines[last], _last_sentence(lines[last])))
        stated = (_beginning(s, scale, last) or _concluded(s, scale, last) for s in parts)
        tail = next(filter(None, stated), None)
    if style == "verdict-first":
        answers = [head, *answers] if head else answers or ([tail] if tail else [])
    else:
        answers = answers or [s for s in (tail, head) if s][:1]
    closing = _beginning(_last_sentence(lines[last]), scale)
    is_another = first != last or _last_sentence(lines[last]) != lines[last]
    agree = is_another and head and closing and head.value == closing.value is not None
    if is_cut and answers and answers[-1].line == last and not re.search(r"\w", answers[-1].after):
        # The next token could have changed it: 1 into 10, "No" into "None of it".
        return [_Stated(None, "truncated")], None
    if not agree:
        answers = [
            _unless_turned(s, "\n".join([s.after, *lines[s.line + 1 :]]), scale) for s in answers
        ]
    if not answers:
        return [], None
    # The reasons: the answer without its verdict, if that begins or ends it.
    reasons = text.split("\n")
    begun, ended = answers[0], answers[-1]
    if (begun.line <= first + 1 and begun.line != last) or len(full) == 1:
        after = begun.after.lstrip(" \t.,:;!?\"'“”)]—–-([")
        reasons = [after, *reasons[begun.line + 1 :]]
    elif ended.line == last:
        reasons = reasons[: ended.line]
    return answers, "\n".join(reasons).strip() or None


def _lines(text: str) -> list[str]:
    return [plain_line(line) for line in text.split("\n")]


def _labelled(lines: Sequence[str], scale: Scale) -> Iterator[_Stated]:
    """The verdicts of all lines of the form `Verdict: Yes`, or with it on the next line."""
    for k, line in enumerate(lines):
        if (match := _LABEL.match(line)) is None:
            continue
        is_asked = match["noun"].casefold() in ("verdict", "answer")
        if match["number"] and not is_asked:
            # "2. Rating: 8" in a list may be about anything.
            continue
        place, words = k, match["said"].strip()
        if not re.search(r"\w", words):
            place = next((n for n in range(k + 1, len(lines)) if lines[n]), k)
            words = lines[place] if place > k else ""
            if _LABEL.match(words):
                continue
        stated = _beginning(words, scale, place) or _concluded(words, scale, place)
        if stated is not None:
            yield stated
        elif place == k and is_asked:
            # Asked for, and not there; another heading may be about anything.
            yield _Stated(None, "no_verdict", place)


def _last_sentence(line: str) -> str:
    return re.split(r"(?<=[.!?])\s+", line)[-1]


def _concluded(sentence: str, scale: Scale, line: int) -> _Stated | None:
    """ "So Yes.", "My verdict is No.", "I would say yes", and nothing else."""
    match = _CONCLUSION.fullmatch(sentence.strip())
    stated = _beginning(match["said"], scale, line) if match else None
    return None if stated is None or re.search(r"\w", stated.after) else stated


def _beginning(text: str, scale: Scale, line: int = 0) -> _Stated | None:
    """The verdict that some text begins with, or None."""
    if scale.form == "number":
        # `4`, `4/5`, `4 out of 5`, `#2`, `2nd`, `four`.
        match = re.match(
            rf"(?i){_MARKS}(?:#|no\.\s?)?(?P<said>{_NUMBER}|(?:{'|'.join(_DIGITS)})\b)"
            rf"(?:\s{{0,2}}(?:/|out of)\s{{0,2}}(?P<of>\d{{1,4}}))?"
            rf"(?:(?:st|nd|rd|th)\b(?:\splace\b)?|\s?(?:stars?|points?)\b)?{_CLOSES}"
            rf"(?P<after>(?:{_ENDS}|\s(?=because|since|as\b)|(?(of)(?=\s{{0,3}}[—–])|(?!))).*)",
            text,
        )
        if match is None:
            return None
        shown = match["said"].casefold()
        value = scale.read(str(_DIGITS.index(shown)) if shown in _DIGITS else shown)
        is_of_another = match["of"] and (scale.high is None or float(match["of"]) != scale.high)
        if value is None or is_of_another:
            return _Stated(None, "out_of_scale", line)
        is_asked = match["after"].lstrip().startswith("?")
        return _Stated(None if is_asked else value, "no_verdict" * is_asked, line, match["after"])
    options, names = _options(scale)
    story = r"(?:(?:story|option|text|choice|version)\s)?" if _are_letters(scale) else ""
    match = re.match(
        rf"(?i){_MARKS}{_FIRM if scale.is_test else ''}{story}(?P<said>{options}){_CLOSES}"
        rf"(?:{_ENDS}{f'|{_GOES_ON}' if scale.is_test else ''})(?P<after>.*)",
        text,
    )
    if match is None or _IN_SPEECH.match(text):
        return None
    if match["after"].lstrip().startswith("?"):
        return _Stated(None, "no_verdict", line)
    value = scale.read(names[_bare(match["said"])])
    return _Stated(value, "", line, match["after"])


def _bare(option: str) -> str:
    """An option for comparison: without marks and article, in one case."""
    return re.sub(r"^an?\s", "", plain_line(option).casefold())


def _options(scale: Scale) -> tuple[str, dict[str, str]]:
    """The answers of a scale as a pattern, and by how they are compared."""
    names = {_bare(answer): answer for answer in scale.answers}
    longest = sorted(names, key=lambda name: (-len(name), name))
    with_article = {name for name, answer in names.items() if plain_line(answer).casefold() != name}
    parts = [(r"(?:an?\s)?" if name in with_article else "") + re.escape(name) for name in longest]
    return "|".join(parts), names


def _are_letters(scale: Scale) -> bool:
    return all(len(option) == 1 for option in scale.answers)


_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n+")
_NEVER = re.compile(r"(?!)")

# What seems to take a verdict back. It costs one more question where it does not.
_TURNED = re.compile(
    r"(?i)\b(?:on second thoughts?|(?:scratch|strike) that(?=\W{0,3}$|\W{1,2}\s)|just kidding|"
    r"take (?:that|it|this) back|stand corrected|yes and no|no and yes|the opposite|correction,|"
    r"make (?:it|that) (?:an?\s)?(?:\d|yes|no)\b|(?:disregard|ignore) (?:that|the above)|"
    r"(?:correction|(?:revised|amended|corrected|updated?|edit|erratum)(?:\s\w{1,10})?)\s?:|"
    r"that (?:was|is|would be|seems) (?:unfair|wrong|too|a mistake)|"
    r"(?:i|let me|must|should|need to|have to)\s(?:\w{1,10}\s)?(?:revise|change|correct|reconsider|"
    r"rethink|retract|withdraw) (?:my|that|this)?|i (?:retract|withdraw|misread|misjudged|mixed|"
    r"overlooked|was (?:wrong|mistaken|too)|mean\b))|"
    r"(?:^\W{0,3}|[.;:!?…—–-]\s?|\bno,?\s)(?:wait|hold on|hang on|not so fast)\b"
)
_OFFERS = re.compile(
    r"(?i)\b(?:please (?:paste|provide|share|send|upload|attach|post)|(?:like|want) me to|"
    r"(?:help|assist) (?:you )?with|i have (?:now )?(?:read|received) (?:it|the|your))\b"
)
"""No story was read: "Yes, I can help with that! Please paste it.\""""
_IT = (
    r"(?:\b(?:it|this|(?:the|this)\s(?:\w{1,14}\s)?(?:story|piece|text|work|narrative|tale|draft"
    r"|whole|writing|passage|chapter|test|bar|mark))|(?:^|[.,;:!?]\s)that),?\s(?:(?:\w{2,16}ly"
    r"|still|just|also|even|only|in fact|after all|would|nevertheless|indeed)\s){0,2}"
)
_DO = r"(?:pass|succeed|work|qualify|suffice|hold up|measure up|make it|meet|satisfy|deserve)"
_NOT = r"(?:(?:does|did|do|is|has|can|could|will|would)\s?(?:not|n['’]t)|cannot)"
_OVER = r"(?=\W{0,3}$|[.,;:!?)—–]|\s(?:the|this|that|its|my|on|as|overall|at|a)\b)"
_OPPOSITE = {
    "yes": re.compile(
        rf"(?i){_IT}(?:fails|failed|flunks|(?:falls|fell|comes up|came up) short|misses|{_NOT}"
        rf"(?:(?=\W{{0,3}}$|[.,;:!?)])|\s(?:\w{{2,16}}ly\s)?{_DO})|(?:is|was) not (?:passed|met))"
        r"|\bi (?:can(?:not|['’]t)|(?:do|would|could)\s?(?:not|n['’]t)) (?:\w{1,12}\s){0,2}"
        r"(?:pass|say|think|believe)\b(?! of)|\ba fail(?:ure)?\b|^\W{0,4}(?:well,?\s|or\s|then\s)?"
        r"(?:hardly|barely|not (?:really|quite|at all|yet|exactly)|or not|far from it)"
        r"(?=\W{0,3}$|[.,;:!?—–])"
    ),
    "no": re.compile(
        rf"(?i){_IT}(?:(?:passes|passed|succeeds|works|qualifies|holds up|meets|satisfies|deserves|"
        rf"does|did|is met|has been met){_OVER}|(?:does|did|would|should|must|can)\s"
        rf"(?:\w{{2,16}}ly\s|indeed\s)?{_DO})|\ba (?:pass|success)\b|"
        r"\bi (?:would|will|must|should|can) (?:\w{1,12}\s){0,2}(?:pass|accept)\b"
    ),
}


def _unless_turned(stated: _Stated, after: str, scale: Scale) -> _Stated:
    """The verdict, unless what follows seems to state another, or to take it back."""
    if stated.value is None:
        return stated
    word, other = _others(stated.value, scale)
    opposite = _OPPOSITE[word] if scale.is_test else _NEVER
    sentences = [part for part in _SENTENCE.split(after[:_MAX_CHARS]) if re.search(r"\w", part)]
    if _OFFERS.search(after.partition("\n")[0]):
        return _Stated(None, "no_verdict")
    is_turned = any(map(_TURNED.search, sentences)) or any(
        other.search(part) or opposite.search(part) for part in (*sentences[:2], *sentences[-2:])
    )
    return _Stated(None, "contradictory") if is_turned else stated


@cache
def _others(value: float | str, scale: Scale) -> tuple[str, re.Pattern[str]]:
    """The verdict as it was worded, and where another one is stated."""
    if scale.form == "number":
        number = rf"(?!{re.escape(f'{value:g}')}(?![\d.]))-?\d{{1,4}}(?:\.\d{{1,3}})?(?![\w/%])"
        words = "|".join(word for k, word in enumerate(_DIGITS) if k != value)
        return f"{value:g}", re.compile(
            r"(?:^\W{0,4}|\b(?:or|and|to|rather|maybe|perhaps|probably|so|say|no|is|be)[\s,:]{1,3}"
            rf"(?:an?\s)?)(?:{number}|(?:{words})\b)(?=\W{{0,3}}$|[.,;!?)]|\s(?:is|would|seems)\b)",
            re.IGNORECASE | re.MULTILINE,
        )
    word = _bare(scale.word(value))
    names = [name for name in _options(scale)[1] if name != word]
    others = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    flags = "" if _are_letters(scale) else "i"
    others = others.upper() if _are_letters(scale) else others
    form = rf"(?{flags}:{others})" if flags else others
    return word, re.compile(
        r"(?m)(?:^|[.!?;:,…—–(\"“]|\s-)\W{0,3}(?i:(?!not\b)(?:(?!not\b)\w{1,14},?\s){0,3}?"
        rf"(?:an?\s|story\s)?){form}(?=\W{{0,3}}$|[.,;:!?)\"”—–]|\s-)"
        rf"|(?i:\b(?:say|be|is|to|pick|choose|prefer|rather|answer|than)\s(?:an?\s|story\s)?){form}"
        r"(?=\W{0,3}$|[.,;:!?)\"”—–])"
        + (rf"|\b(?:{others})\s(?:is|was|wins|works|handles)\b" if _are_letters(scale) else "")
    )


def in_words(form: Form) -> str:
    """The request for JSON, which comes after the question."""
    if isinstance(form, Choice):
        first, second = _names(form)
        return (
            f"Write the answer as a JSON object with the fields {first} and {second}, in this "
            "order."
        )
    *fields, last = (f"{field.name} ({field.about})" for field in form.fields)
    return (
        f"Instead of lines, write one JSON object: its field {form.name} is a list of objects with "
        f"the fields {', '.join(fields)} and {last}, in this order. The list is empty if there is "
        "nothing to say."
    )


def schema_of(form: Form) -> dict[str, Any]:
    """The JSON schema of an answer."""
    text: dict[str, Any] = {"type": "string"}
    if isinstance(form, Choice):
        verdict = text | {"enum": list(form.options)}
        return _object({name: text if name == "reason" else verdict for name in _names(form)})
    kinds = {
        field.name: {"type": "integer", "enum": list(field.numbers)} if field.numbers else text
        for field in form.fields
    }
    return _object({form.name: {"type": "array", "items": _object(kinds)}})


def grammar_of(form: Form) -> str:
    """The grammar: `Yes. Reason`, a line of reasons and `Verdict: Yes`, or records in JSON."""
    if isinstance(form, Choice):
        options = " | ".join(map(json.dumps, form.options))
        if form.is_first:
            return f'root ::= ({options}) ". " [^\\n]{{1,{form.reason_chars}}}'
        label = json.dumps(f"\n{form.label}: ")
        return f"root ::= [^\\n]{{1,{form.reason_chars}}} {label} ({options})"
    fields = ' ", " '.join(f"{_key(field.name)} {field.name}" for field in form.fields)
    more = f' (", " record){{0,{form.n_most - 1}}}' if form.n_most > 1 else ""
    rules = [
        f'root ::= "{{" {_key(form.name)} "[" (record{more})? "]}}"',
        f'record ::= "{{" {fields} "}}"',
    ]
    for field in form.fields:
        text = f'"\\"" character{{1,{field.n_chars}}} "\\""'
        rules.append(f"{field.name} ::= " + (" | ".join(f'"{k}"' for k in field.numbers) or text))
    return "\n".join([*rules, r'character ::= [^"\\\x00-\x1f] | "\\" ["\\/nt]'])


def _names(choice: Choice) -> tuple[str, str]:
    """The fields of a choice, in the order in which they should be written."""
    verdict = choice.label.lower()
    return (verdict, "reason") if choice.is_first else ("reason", verdict)


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    whole = {"type": "object", "properties": properties, "required": list(properties)}
    return whole | {"additionalProperties": False}


def _key(name: str) -> str:
    return json.dumps(f"{json.dumps(name)}: ")


Position = tuple[str, Sequence[tuple[str, float]]]
"""A token of the answer, and its alternatives with their log-probabilities."""


def option_masses(positions: Iterable[Position], choice: Choice) -> dict[str, float]:
    """The probability mass of each option at the verdict; empty if the verdict is not found.

    The verdict is the first token that is an option, or the last one if reasons come first.
    Spellings of an option (`Yes`, ` yes`, `YES.`) add up. The masses do not sum to 1: the rest is
    for other tokens. Options of several words have none, as their first token may begin another.
    """
    if any(" " in option for option in choice.options):
        return {}
    folded = {option.casefold(): option for option in choice.options}
    tokens = list(positions)
    for token, alternatives in tokens if choice.is_first else reversed(tokens):
        if _plain(token) not in folded or not alternatives:
            continue
        masses = dict.fromkeys(choice.options, 0.0)
        for other, logprob in alternatives:
            if (option := folded.get(_plain(other))) is not None:
                # A log-probability is at most 0, whatever a server says.
                masses[option] += math.exp(min(0.0, logprob)) if not math.isnan(logprob) else 0.0
        return masses
    return {}


def _plain(token: str) -> str:
    return token.strip(" \n\t\u0120\u2581.,:;*\"'").casefold()
