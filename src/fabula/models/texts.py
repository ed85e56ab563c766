"""Ask models for texts, one row per text, and keep what they wrote without what they put around it.

"Sure! Here's the story:", a title or a word count is not part of a story, and in a study it gives
away which story a model wrote. Only text at the very beginning or end is cut, whole lines at a
time, and only if it addresses the person who asked; a chapter's heading and scene breaks stay.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fabula.core.errors import CallFailed, InputError, ModelError
from fabula.core.resume import KeptRows, Row
from fabula.models.base import Answer, Model, Prompt, Sampling, in_turn
from fabula.text.refusals import is_refusal

_MAX_WORDS, _MAX_TITLE = 60, 12
_WORK = (
    r"(?:story|tale|piece|narrative|version|draft|rewrite|revision|poem|speech|article|proof|plot"
    r"|take|summary|sentence|continuation|text|translation|fiction|chapter|scene|attempt|opening"
    r"|passage|paragraphs?|expansion|result|novel|vignette|retelling)"
)
_YES = (
    r"(?:sure(?: thing)?|certainly|of course|absolutely|gladly|okay|ok|great|understood|alright|yes"
    r"|no problem|with pleasure|got it|definitely|thank you[^.!:\n]{0,60}|thanks[^.!:\n]{0,60}"
    r"|(?:great|what an?|interesting|lovely|wonderful|beautiful)[^.!:\n]{0,40}|i(?:[’']d"
    r"| would)(?: be (?:happy|glad|delighted)|[’']?ll| love)[^.!:\n]{0,60}|happy to[^.!:\n]{0,40}"
    r"|i[’']?(?:ve| have) (?:written|rewritten|revised|shortened|expanded)[^.!:\n]{0,80})"
)
# What may follow "Here is the story" if the model is speaking: never "my mother told me".
_ABOUT = (
    r"(?:,?\s(?:based on|inspired by|following|using|according to|as requested|as you|(?:of|in|at"
    r"|about|around|to|under|within|just|now|close to|closer to|near|nearer to)\s(?:(?:just|about"
    r"|around|roughly|approximately|exactly|under|close to|closer to|nearer to|the|your"
    r"|a)\s){0,3}(?:\d|length|word|target|plot|prompt|premise|style|requirements?|request)"
    r"|with (?:the|your|a) (?:plot|premise|length|request|word|style|target)|for (?:you|your"
    r"|the plot|the prompt|this)|from (?:the|your)|that (?:meets|fits|follows|matches|stays|is|uses"
    r"|begins|starts|continues|aims|comes)|on (?:it|this|the plot|your)|rewritten|revised|shortened"
    r"|expanded|lengthened|adjusted|trimmed|aimed|you (?:asked|requested|wanted|gave|provided)"
    r"|(?:continuing|beginning|starting)\b)[^\n]{0,160}?)?"
)
_OPENS = re.compile(
    rf"(?:{_YES}[.!,:—–-]*\s+){{0,2}}(?:(?:here[’']?s|here is|here are|below is|below you will find"
    rf"|this is|the following is)(?:\s(?:an?|the|your|my|one))?(?:[\s-]+(?!of\b|that\b"
    rf"|which\b)[\w’'-]+,?){{0,7}}?[\s-]+{_WORK}\b(?: of (?:the|your|this) (?:story|text|plot))?"
    rf"(?:,? (?:titled|called|entitled) [^\n:]{{1,60}})?{_ABOUT}|here you go|here it is"
    r"|i[’']?(?:ve| have) (?:written|rewritten|revised|shortened|expanded|lengthened"
    r"|trimmed)[^.:\n]{0,120}"
    rf"|(?:short |revised |rewritten |the )?(?:story|summary|plot summary|translation|continuation"
    rf"|version))\s*(?P<end>[:.!]+)[*_]*",
    re.IGNORECASE,
)
_TITLE = re.compile(
    r"(?i)(?:#{1,6}\s+(?P<a>[^\n]{1,100})|(?P<m>\*{1,3}|_{1,3})(?P<b>[^*_\n]{1,80})(?P=m)"
    r"|(?:\*\*)?title(?:\*\*)?\s*:\s*(?:\*\*)?(?P<c>[^\n]{1,100}))\s*"
)
_NUMBER = (
    r"(?:\d+|(?-i:[IVXLC]{1,6})|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
)
_HEADING = re.compile(
    rf"(?i)\W*(?:(?:chapter|part|book|act|scene|section|day)\W+(?:the \w+|{_NUMBER})\b.*|prologue"
    rf"|epilogue|{_NUMBER}\W*)"
)
_RULE = re.compile(r"\s*(?:[-*_=~#—–]\s*){3,}|\s*```\w*\s*")
_COUNT = re.compile(
    r"(?i)\W*(?:(?:total |final |approximate )?words? ?count\b[^\n]{0,40}|words\s*:\s*[\d,]+"
    r"|(?:approximately|about|approx\.?|around|roughly|~|exactly|total:?)?\s*[\d,]{2,7}[ -]words?"
    r"(?: long| in total| exactly| total)?)\W*"
)
_CLOSES = re.compile(
    r"(?i)\W{0,4}(?:(?:please )?(?:do )?let me know\b.*?\b(?:chang\w+|adjust\w*|revis\w+|edit\w*"
    r"|tweak\w*|longer|shorter|version|rewrit\w+|story|tone|draft|different|expand\w*|modif\w+"
    r"|refin\w+|further|feedback|anything else|you think|continue|improve\w*|help)\b"
    r"|(?:i )?hope (?:this|that|you|it)\b.*?\b(?:enjoy\w*|like|helps?|meets?|fits?|captur\w+|works?"
    r"|useful|requirements?|request|looking for|expectations)\b|(?:please )?feel free to (?:ask|let"
    r"|request|reach|use|adjust|modify|tell|change|edit)\b|(?:would|do) you (?:like|want) (?:me|a"
    r"|an|another|to see|any|it)\b.*?\?|shall i\b.*?\b(?:version|story|longer|shorter|continue"
    r"|revise|adjust|expand|change)\b|if you(?:[’']d| would)? (?:like|want|need|prefer"
    r"|have)\b.*?\bi (?:can|could|would|will|[’']d|[’']ll)\b|i (?:can|could|[’']d be (?:happy"
    r"|glad) to|am happy to|[’']m happy to) (?:also )?(?:adjust|revise|make|write|expand|shorten"
    r"|change|rewrite|continue|provide|tailor)\b|\(?(?:author[’']s )?note\s*:.*|(?:this|the|my"
    r"|above) (?:revised |rewritten |final |short )?(?:story|version|draft|piece"
    r"|rewrite)\b.*?\b(?:words?(?: long)?|word count|plot (?:you|as)|requested|requirements?"
    r"|your)\b|i(?:[’']ve| have)? (?:kept|aimed|tried|made|expanded|shortened|added|removed|trimmed"
    r"|followed|ended)\b.*?\b(?:story|words?|version|plot|prompt|length|draft)\b"
    r"|thank you for (?:the|this|your)\b.*?\b(?:prompt|plot|opportunity|request|idea)\b|enjoy!*"
    r"|end of (?:the )?story)[^\n]*"
)
_META = re.compile(
    r"(?i)\b(?:chang\w+|adjust\w*|revis\w+|edit\w*|tweak\w*|longer|shorter|versions?|rewrit\w+"
    r"|stor(?:y|ies)|tone|drafts?|expand\w*|modif\w+|refin\w+|feedback|words?|plots?|prompt"
    r"|request\w*|requirements?|endings?|style|length|enjoy\w*|expectations|anything else|poem"
    r"|speech|article|continu\w+)\b"
)
_QUOTES = re.compile(r"[\"“”«»]")


def unframed(answer: str, *, has_title: bool = False) -> tuple[str, list[str]]:
    """The text of an answer without what the model said around it, and that in its order.

    With `has_title`, a title at the beginning belongs to the text, which is empty if all is frame.
    """
    lines = answer.strip().split("\n")
    before: list[str] = []
    after: list[str] = []
    while lines and (cut := _cut_before(lines, has_title=has_title)):
        before.append(cut)
        rest = lines[0][len(cut) :].strip()
        lines = [rest, *lines[1:]] if rest else _stripped(lines[1:])
    while lines and _is_after(lines):
        after.insert(0, lines[-1].strip())
        lines = _stripped(lines[:-1])
    return "\n".join(lines).strip(), [*before, *after]


def _stripped(lines: list[str]) -> list[str]:
    return "\n".join(lines).strip("\n \t").split("\n") if any(map(str.strip, lines)) else []


def _cut_before(lines: list[str], *, has_title: bool) -> str:
    """The part of the first line that is not part of the text; it may be all of it, or nothing."""
    line = lines[0]
    if _RULE.fullmatch(line):
        return line
    is_alone = len(lines) == 1 or not lines[1].strip() or _RULE.fullmatch(lines[1]) is not None
    if (opening := _OPENS.match(line.lstrip("*_ "))) is not None:
        length = len(line) - len(line.lstrip("*_ ")) + opening.end()
        is_whole = not line[length:].strip("*_ ")
        if is_whole and (":" in opening["end"] or is_alone) and len(line.split()) <= _MAX_WORDS:
            return line
        if not is_whole and opening["end"] == ":" and line[length] == " ":
            return line[:length]
    if has_title or len(lines) == 1:
        return ""
    title = _TITLE.fullmatch(line.strip())
    if title is None and not (is_alone and line.isupper()):
        return ""
    if title is not None and title["m"] == "*" and not is_alone:
        return ""
    name = next(filter(None, title.group("a", "b", "c"))).strip(" *_") if title else line.strip()
    is_sentence = name.endswith((".", ",", ";", ":", "…")) or len(name.split()) > _MAX_TITLE
    return "" if is_sentence or _HEADING.fullmatch(name) else line


def _is_after(lines: list[str]) -> bool:
    line = lines[-1]
    if _RULE.fullmatch(line) or _COUNT.fullmatch(line):
        return True
    if len(lines) > 1 and lines[-2].strip() and not _RULE.fullmatch(lines[-2]):
        return False
    return (
        _CLOSES.fullmatch(line) is not None
        and (_META.search(line) is not None)
        and not _QUOTES.search(line)
        and len(line.split()) <= _MAX_WORDS
    )


_MAX_FAILURES = 10


@dataclass(frozen=True, slots=True)
class Written:
    """What a model wrote, or why there is nothing."""

    text: str | None
    missing_reason: str | None
    frame_removed: list[str]
    """Text around the requested one ("Sure! Here's the story:") that was cut off."""


def why_no_text(answer: Answer | None) -> str | None:
    """Why an answer cannot be used as a text; None if it can. No answer: the call failed."""
    if answer is None:
        return "failed"
    if answer.stop in ("blocked", "too_long"):
        return answer.stop
    if not answer.text.strip():
        return "no_answer"
    return "refused" if is_refusal(answer.text) else None


def read_written(answer: Answer, *, has_title: bool = False) -> Written:
    """The requested text alone; with `has_title`, a title at the beginning belongs to it."""
    if (reason := why_no_text(answer)) is not None:
        return Written(None, reason, [])
    text, removed = unframed(answer.text, has_title=has_title)
    if not text or is_refusal(text):
        return Written(None, "refused" if text else "no_answer", removed)
    return Written(text, None, removed)


Meter = Callable[[int], None]
Make = Callable[[], Awaitable[Row]]
Wanted = tuple[Row, Make]
"""A row for a model to make: the fields a kept row must match, and how to make it."""


async def ask_for(
    wanted: Iterable[Wanted], rows: KeptRows, n_parallel: int, meter: Meter = lambda _: None
) -> list[Row]:
    """A row for each, in order, reusing existing rows.

    A call that failed gives a row without its key, which is not kept. Raises `InputError` if an
    existing row was made from something else, `ModelError` after ten consecutive failures.
    """

    async def ask(expected: Row, make: Make) -> Row:
        if (row := rows.find(expected)) is None:
            row = await make()
            rows.add(row)
        return row

    failed = dict.fromkeys(rows.kind.fields) | {"missing_reason": "failed"}
    return await in_parallel([partial(ask, *want) for want in wanted], n_parallel, failed, meter)


async def in_parallel(
    calls: Iterable[Make], n_parallel: int, failed: Row, meter: Meter = lambda _: None
) -> list[Row]:
    """The rows in order, copies of `failed` for failed calls; `ModelError` after ten in a row."""
    n_failures = 0

    async def row_of(call: Make) -> Row:
        nonlocal n_failures
        try:
            row = await call()
        except CallFailed as error:
            n_failures += 1
            if n_failures >= _MAX_FAILURES:
                raise ModelError(
                    f"{n_failures} calls failed in a row, the last one with: {error}; finished "
                    "texts are kept, run the same command again to resume"
                ) from error
            row = dict(failed)
        else:
            n_failures = 0
        meter(1)
        return row

    return await in_turn([partial(row_of, call) for call in calls], n_parallel)


_WRAPPING = " \t\"'“”*_`#-"
_MAX_LINE_CHARS = 240


async def one_line(model: Model, question: str, *, max_tokens: int = 60) -> str | None:
    """The first line of the answer, without quotes and labels; None if it is empty or a refusal."""
    try:
        answer = await model.ask(Prompt("", question), Sampling(max_tokens=max_tokens))
    except CallFailed:
        return None
    if is_refusal(answer.text):
        return None
    for line in answer.text.splitlines():
        bare = re.sub(r"^[A-Z][a-z]+:\s+", "", line.strip(_WRAPPING)).strip(_WRAPPING)
        # "Here is the name:" is not the name.
        if bare and not bare.endswith(":") and answer.stop != "blocked":
            return bare[:_MAX_LINE_CHARS]
    return None


def read_prompts(path: Path, mark: str) -> tuple[dict[str, Any] | None, str]:
    """A TOML file with a table `prompts` of texts that contain `mark` once, or any other text.

    Returns what TOML holds, else None, and the text. Raises `InputError` with what is wrong.
    """
    is_paper = path.suffix.lower() in (".txt", ".md", ".markdown")
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = None if is_paper else tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        kind = "text" if is_paper else "TOML"
        raise InputError(f"`prompt_file` {path}: cannot be read as {kind} ({error})") from error
    if content is not None:
        prompts = content.get("prompts")
        if not isinstance(prompts, dict) or not prompts:
            raise InputError(f"{path}: needs a table [prompts] with a text for each prompt")
        for name, prompt in prompts.items():
            if not isinstance(prompt, str) or prompt.count(mark) != 1:
                raise InputError(
                    f"{path}: the prompt {name!r} must be a text that contains {mark} exactly once"
                )
    return content, text
