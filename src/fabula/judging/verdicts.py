"""From a model's answer to a verdict, or to the reason why there is none.

Strict on purpose: what does not say its verdict in the asked form has none. A refusal, a withheld
or cut answer, "yes and no", half a JSON object are never a "No".
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from fabula.judging.prompts import Style
from fabula.models import Answer
from fabula.types import Scale

__all__ = ["MISSING", "Verdict", "read_verdict"]

MISSING = {
    "no_answer": "the answer is empty",
    "no_verdict": "no verdict in the asked form",
    "two_verdicts": "verdicts that contradict each other",
    "refusal": "the model refused",
    "blocked": "withheld by the provider",
    "truncated": "cut at the limit of tokens before a verdict",
    "too_long": "the story is longer than the model's context",
    "failed": "the call failed after all retries",
    "no_words": "no words in the story",
    "not_asked": "its condition does not hold",
    "out_of_scale": "a verdict outside the scale",
    "order": "the other story is preferred when their order is turned",
    "tie": "repeated answers are equally divided",
}
"""Why there is no verdict, for people."""

_REFUSAL = re.compile(
    r"\W*(?:<[^>]{1,80}>\s*)?(?:i['’]?m sorry|i am sorry|sorry,|i apologi[sz]e|unfortunately,? i"
    r"|i can(?:not|['’]t)|i am (?:not able|unable)|i['’]m (?:not able|unable)"
    r"|i (?:won['’]t|will not)|i (?:do not|don['’]t) have (?:enough|sufficient|access)|as an ai)",
    re.IGNORECASE,
)
_BLOCKED = re.compile(r"\W*(?:content|response|prompt) (?:was )?blocked\W*", re.IGNORECASE)
_LABEL = r"(?:(?:final|overall|my)\s+)?(?:verdict|answer)"
_DECORATION = r"[\s*_`\"'“”#>]*"
_FENCE = re.compile(r"^```[a-z]*\s*|\s*```$", re.IGNORECASE)
_MAX_CHARS = 200_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """The value, or the reason for having none; what the model gave as its reasons."""

    value: float | str | None
    missing_reason: str | None
    rationale: str | None
    is_cut: bool = False
    """The rationale was cut at the limit of tokens; the verdict stands."""


def read_verdict(answer: Answer, scale: Scale, style: Style) -> Verdict:
    """The verdict of an answer, read strictly."""
    text = answer.text.strip()[:_MAX_CHARS]
    if answer.stop in ("too_long", "blocked"):
        return Verdict(None, answer.stop, answer.note or None)
    if _BLOCKED.fullmatch(text):
        return Verdict(None, "blocked", text)
    if not text:
        return Verdict(None, "truncated" if answer.stop == "length" else "no_answer", None)
    is_cut = answer.stop == "length"
    if scale.kind == "text":
        return Verdict(text, None, None, is_cut)
    plain = _FENCE.sub("", text)
    if plain.startswith("{"):
        found, rationale = _from_json(plain, scale, is_cut=is_cut)
    elif style == "verdict-first":
        found, rationale = _from_beginning(text, scale)
    else:
        found, rationale = _from_end(text, scale)
    if len(found) > 1:
        return Verdict(None, "two_verdicts", text)
    if not found:
        reason = "refusal" if _REFUSAL.match(text) else "truncated" if is_cut else "no_verdict"
        return Verdict(None, reason, text)
    value = _value(found.pop(), scale)
    if value is None:
        return Verdict(None, "out_of_scale", text)
    return Verdict(value, None, rationale, is_cut)


def _from_json(text: str, scale: Scale, *, is_cut: bool) -> tuple[set[str], str | None]:
    """{"verdict": ..., "reason": ...}, whole; or cut within the reason, after its verdict."""
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        head = re.match(rf'\{{\s*"verdict"\s*:\s*"({_options(scale)})"\s*,', text, re.IGNORECASE)
        return ({_fold(head[1])}, text[head.end() :].strip()) if head and is_cut else (set(), None)
    fields = {str(key).casefold(): value for key, value in row.items()}
    verdict = fields.get("verdict")
    rationale = fields.get("reason")
    is_number = isinstance(verdict, int | float) and not isinstance(verdict, bool)
    if not isinstance(verdict, str) and not is_number:
        return set(), None
    whole = re.fullmatch(rf"\s*({_options(scale)})\s*\.?\s*", str(verdict), re.IGNORECASE)
    return {_fold(whole[1])} if whole else set(), str(rationale) if rationale else None


def _from_beginning(text: str, scale: Scale) -> tuple[set[str], str | None]:
    options = _options(scale)
    head = re.match(
        rf"{_DECORATION}(?:{_LABEL}{_DECORATION}:)?{_DECORATION}({options})(?![\w/])(?P<rest>.*)",
        text,
        re.IGNORECASE | re.DOTALL,
    )
    if head is None:
        return set(), None
    rest = head["rest"]
    # "Yes and no", "No, or rather yes": an answer that takes itself back at once.
    if re.match(rf"[\s,;]*(?:and|or|but|/)\W+(?:also\W+|rather\W+)?(?:{options})\b", rest, re.I):
        return set(), None
    rationale = rest.lstrip(" \t\r\n.,:;!*_`\"'“”—–-").strip()
    return {_fold(head[1])} | _labelled(rest, scale), rationale or None


def _from_end(text: str, scale: Scale) -> tuple[set[str], str | None]:
    found = _labelled(text, scale)
    body, _, last = text.rpartition("\n")
    bare = re.fullmatch(rf"{_DECORATION}({_options(scale)}){_DECORATION}\.?\W*", last, re.I)
    if bare:
        return found | {_fold(bare[1])}, body.strip() or None
    rationale = re.sub(
        rf"\n?{_DECORATION}{_LABEL}{_DECORATION}[:–-]{_DECORATION}(?:{_options(scale)})\W*$",
        "", text, flags=re.I,
    )  # fmt: skip
    return found, rationale.strip() or None


def _labelled(text: str, scale: Scale) -> set[str]:
    """The verdicts of all lines of the form `Verdict: Yes`."""
    pattern = (
        rf"^{_DECORATION}{_LABEL}{_DECORATION}[:–-]{_DECORATION}({_options(scale)})"
        rf"(?=\W*$|[.,;]\s)"
    )
    found = re.finditer(pattern, text, re.IGNORECASE | re.MULTILINE)
    return {_fold(match[1]) for match in found}


def _options(scale: Scale) -> str:
    """The answers of a scale as a pattern, longest first so that none hides another."""
    if scale.kind == "yes-no":
        return "Yes|No"
    if scale.kind == "choice":
        return "|".join(re.escape(option) for option in sorted(scale.options, key=len)[::-1])
    return r"-?\d+(?:\.\d+)?"


def _fold(verdict: str) -> str:
    return verdict.casefold()


def _value(verdict: str, scale: Scale) -> float | str | None:
    if scale.kind == "yes-no":
        return 1.0 if verdict == "yes" else 0.0
    if scale.kind == "choice":
        return next(option for option in scale.options if option.casefold() == verdict)
    number = float(verdict)
    low = 1 if scale.low is None and scale.kind == "rank" else scale.low
    if (low is not None and number < low) or (scale.high is not None and number > scale.high):
        return None
    return number
