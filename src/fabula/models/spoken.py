"""The final text of an answer, without reasoning, markup and wrapping."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

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
    """An answer without the preceding reasoning, and without control tokens.

    Unfinished reasoning is not an answer: only the text before it remains, if any.
    """
    text = _joined(text.strip())
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


def _joined(text: str) -> str:
    """Join the parts of content returned as a list, `[{"type": "text", "text": ...}]`."""
    if not re.match(r"\[\s{0,9}\{\s{0,9}[\"']type[\"']", text):
        return text
    for read in (json.loads, ast.literal_eval):
        try:
            parts: Any = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        kinds = ("text", "output_text")
        texts = [
            one.get("text") for one in parts if isinstance(one, dict) and one.get("type") in kinds
        ]
        return "".join(one for one in texts if isinstance(one, str))
    return text


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
