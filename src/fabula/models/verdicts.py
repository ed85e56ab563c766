"""From a model's answer to a verdict, or to the reason why there is none.

Strict on purpose: what does not say its verdict in the asked form has none. A refusal, a withheld
or cut answer, "yes and no", half a JSON object are never a "No".
"""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fabula.models.base import Answer
from fabula.types import Scale

__all__ = ["MISSING", "Style", "Verdict", "combine", "read_verdict"]

Style = Literal["reason-first", "verdict-first"]
"""Where the verdict stands: after the reasons, or before them."""

MISSING = {
    "no_answer": "the answer is empty",
    "no_verdict": "no verdict in the asked form",
    "two_verdicts": "verdicts that contradict each other",
    "refusal": "the model refused",
    "blocked": "withheld by the provider",
    "truncated": "cut at the limit of tokens before a verdict",
    "too_long": "the story is longer than the model's context",
    "failed": "the call failed after all retries",
    "no_words": "no words to judge",
    "not_asked": "its condition does not hold",
    "gate_missing": "the answer that decides whether it is asked is missing",
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
_LABEL = r"(?:(?:final|overall|my)\s{1,4})?(?:verdict|answer)"
# Marks around a verdict; a bound on their number keeps every pattern linear.
_MARKS = r"[\s*_`\"'“”#>]{0,12}"
_END = r"[\W_]{0,12}"
_TURN = r"(?:(?:wait|actually|well|hm+|or rather|rather|or|but|and|then again)\W{1,3}){0,3}"
_FENCE = re.compile(r"^```[a-z]{0,10}\s{0,4}|\s{0,4}```$", re.IGNORECASE)


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
    text = answer.text.strip()
    if answer.stop in ("too_long", "blocked"):
        return Verdict(None, answer.stop, answer.note or None)
    if _BLOCKED.fullmatch(text[:200]):
        return Verdict(None, "blocked", text)
    is_cut = answer.stop == "length"
    if not text:
        return Verdict(None, "truncated" if is_cut else "no_answer", None)
    if scale.kind == "text":
        refused = "refusal" if _REFUSAL.match(text) else None
        return Verdict(None if refused else text, refused, None, is_cut)
    plain = _FENCE.sub("", text)
    if plain.startswith("{"):
        found, rationale = _from_json(plain, scale, is_cut=is_cut)
    elif style == "verdict-first":
        found, rationale = _from_beginning(text, scale)
    else:
        found, rationale = _from_end(text, scale, is_cut=is_cut)
    if len(found) > 1:
        return Verdict(None, "two_verdicts", text)
    if not found:
        reason = "refusal" if _REFUSAL.match(text) else "truncated" if is_cut else "no_verdict"
        return Verdict(None, reason, text)
    value = _value(found.pop(), scale)
    if value is None:
        return Verdict(None, "out_of_scale", text)
    return Verdict(value, None, rationale, is_cut)


def combine(values: Sequence[float | str], scale: Scale) -> float | str | None:
    """Repeated answers as one: the mean of numbers, the most frequent choice (a tie is none)."""
    if not values:
        return None
    if scale.kind == "text":
        return values[0]
    if scale.kind == "choice":
        (best, n_best), *others = Counter(values).most_common()
        return None if others and others[0][1] == n_best else best
    return round(statistics.fmean(float(value) for value in values), 6)


def _from_json(text: str, scale: Scale, *, is_cut: bool) -> tuple[set[str], str | None]:
    """{"verdict": ..., "reason": ...}, whole; or cut within the reason, after its verdict."""
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError):
        head = re.match(
            rf'\{{\s{{0,9}}"verdict"\s{{0,9}}:\s{{0,9}}"({_options(scale)})"\s{{0,9}},', text, re.I
        )
        return ({_fold(head[1])}, text[head.end() :].strip()) if head and is_cut else (set(), None)
    found: set[str] = set()
    rationale = None
    for key, value in pairs:
        if str(key).casefold() == "verdict":
            whole = re.fullmatch(rf"\s*({_options(scale)})\s*\.?\s*", _plain(value), re.I)
            if whole is None:
                return set(), None
            found.add(_fold(whole[1]))
        elif str(key).casefold() == "reason" and value:
            rationale = str(value)
    return found, rationale


def _plain(value: Any) -> str:
    """A string or a number as text; anything else is no verdict."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _from_beginning(text: str, scale: Scale) -> tuple[set[str], str | None]:
    """`Yes. ...`: the verdict stands alone, before a stop, a comma, a dash or the end of the line.

    "No opinion", "A careful reading", "3 of the 5" begin with an option and are no verdicts.
    """
    options = _options(scale)
    head = re.match(
        rf"{_MARKS}(?:{_LABEL}{_MARKS}:)?{_MARKS}({options})[*_`\"'”’]{{0,4}}"
        rf"(?P<rest>(?:\s{{0,3}}[.,:;!?()—–-](?!\d).*|\s{{0,3}}\n.*|\s{{2}}(?-i:[A-Z]).*|\s*)\Z)",
        text,
        re.IGNORECASE | re.DOTALL,
    )
    if head is None:
        return set(), None
    rest = head["rest"]
    if scale.kind in ("number", "rank") and re.search(r"^\s{0,3}\d{1,3}[.)]\s", rest, re.MULTILINE):
        # "1. The ending ... 2. The pace ...": a list, not a number.
        return set(), None
    # "Yes. Actually, no.", "Yes - no": an answer that takes itself back, at once or later.
    back = re.finditer(
        rf"(?:\A|[.!?\n—–-])\s{{0,3}}{_TURN}({options})(?=\W{{0,3}}(?:\Z|\n)|[.,;!])", rest, re.I
    )  # fmt: skip
    turned = {_fold(match[1]) for match in back}
    first = {_fold(head[1])}
    also = re.match(
        rf"[\W_]{{0,4}}(?:and|or|but)\W{{1,3}}(?:also\W{{1,3}})?({options})\b", rest, re.I
    )
    if also or (turned - first and scale.kind in ("yes-no", "choice")):
        return first | turned | ({_fold(also[1])} if also else set()), None
    rationale = rest.lstrip(" \t\r\n.,:;!?*_`\"'“”—–-()").strip()
    return first | _labelled(rest, scale)[0], rationale or None


def _from_end(text: str, scale: Scale, *, is_cut: bool) -> tuple[set[str], str | None]:
    """`Verdict: Yes` on a line of its own, or a last line that is only the verdict."""
    found, is_clear = _labelled(text, scale)
    if not is_clear:
        return set(), None
    body, _, last = text.rpartition("\n")
    bare = re.fullmatch(rf"{_MARKS}({_options(scale)}){_END}", last[:200], re.IGNORECASE)
    if bare:
        found = found | {_fold(bare[1])}
    if is_cut and (
        bare or re.search(rf"{_LABEL}\W{{1,9}}\w{{0,40}}\Z", last[-200:], re.IGNORECASE)
    ):
        # What would have come next could have changed it: 1 into 10, "No" into "None of it".
        return set(), None
    rationale = text
    if bare or re.match(rf"{_MARKS}{_LABEL}\b", last, re.IGNORECASE):
        rationale = body
    return found, rationale.strip() or None


def _labelled(text: str, scale: Scale) -> tuple[set[str], bool]:
    """The verdicts of all lines of the form `Verdict: Yes`, and whether all of them are clear."""
    options = _options(scale)
    found: set[str] = set()
    for line in re.finditer(rf"^{_MARKS}{_LABEL}{_MARKS}[:–-](?P<said>[^\n]*)", text, _LINES):
        said = re.match(rf"{_MARKS}({options})(?![\w/]|[.,-]\d)(?P<more>.*)", line["said"], _LINES)
        if said is None or re.search(rf"(?<!\w)(?:{options})(?!\w)", said["more"], _LINES):
            return set(), False
        if (
            re.fullmatch(_END, said["more"]) is None
            and said["more"].lstrip("*_`\"'”’ ")[:1] not in ".,;(—–-"
        ):
            return set(), False
        found.add(_fold(said[1]))
    return found, True


_LINES = re.IGNORECASE | re.MULTILINE


def _options(scale: Scale) -> str:
    """The answers of a scale as a pattern, longest first so that none hides another."""
    if scale.kind == "yes-no":
        return "Yes|No"
    if scale.kind == "choice":
        return "|".join(re.escape(option) for option in sorted(scale.options, key=len)[::-1])
    return r"-?\d{1,12}(?:\.\d{1,12})?(?![\d/])"


def _fold(verdict: str) -> str:
    return verdict.casefold()


def _value(verdict: str, scale: Scale) -> float | str | None:
    if scale.kind == "yes-no":
        return 1.0 if verdict == "yes" else 0.0
    if scale.kind == "choice":
        return next((option for option in scale.options if option.casefold() == verdict), None)
    number = float(verdict)
    low = 1 if scale.low is None and scale.kind == "rank" else scale.low
    if (low is not None and number < low) or (scale.high is not None and number > scale.high):
        return None
    return number
