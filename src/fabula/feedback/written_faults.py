"""What exactly was changed in a text, so that it can be shown, undone, and followed.

Faults that a language model writes: a dangling thread, a contradicted fact, a changed motive.

The model is shown the story with its sentences numbered, and answers with sentences to plant and
the numbers of those that they follow. It does not edit the story itself: only the sentences it
wrote are inserted, at these places, so that the rest of the story is unchanged and the record can
undo it. An answer that cannot be parsed, names places where nothing can be planted, repeats the
story, or introduces something the story already has, is not a fault; the reason is reported, and
the model is asked again, up to three times.

The checks do not show whether readers notice such a fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from typing import Any

from fabula.core.errors import explain
from fabula.models.base import HeldOpen, Model, Prompt, Sampling, Usage, fence
from fabula.models.cost import Estimate, Price, estimate_tokens
from fabula.models.texts import why_no_text
from fabula.text.reading import Reading
from fabula.text.speech import quotations_of
from fabula.text.words import word_set

_EXCERPT_WORDS = 7
_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Edit:
    """A span of the original, half-open in characters, and its replacement."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Fault:
    """Edits that give a story a fault, and a one-sentence description of the fault for raters."""

    edits: tuple[Edit, ...]
    what: str
    details: Mapping[str, Any]
    """What the fault consists of, for the record: names, or the planted thing."""


def apply_edits(original: str, edits: Sequence[Edit]) -> tuple[str, list[dict[str, Any]]]:
    """Apply edits that are in order and do not overlap; return the text and the record of them.

    A record holds the spans in both versions and the words on both sides; `undo` needs no more.
    """
    parts, rows = [], []
    at, n = 0, 0
    for edit in edits:
        if not at <= edit.start <= edit.end <= len(original):
            raise ValueError("edits ascend and do not overlap")
        n += edit.start - at
        parts += [original[at : edit.start], edit.text]
        row = {
            "original": [edit.start, edit.end],
            "text": [n, n + len(edit.text)],
            "was": original[edit.start : edit.end],
            "is": edit.text,
        }
        rows.append(row)
        n += len(edit.text)
        at = edit.end
    parts.append(original[at:])
    return "".join(parts), rows


def undo(text: str, record: Sequence[Mapping[str, Any]]) -> str:
    """Restore the original from the changed text and the record of its edits."""
    for row in reversed(record):
        start, end = row["text"]
        if text[start:end] != row["is"]:
            raise ValueError("the record belongs to another text")
        text = text[:start] + row["was"] + text[end:]
    return text


def edits_between(original: str, changed: str) -> list[Edit]:
    """The edits that turn one text into another, in whole words and the spaces between."""
    old, new = (re.findall(r"\w+|\s+|[^\w\s]", text) for text in (original, changed))
    ends = [0]
    for token in old:
        ends.append(ends[-1] + len(token))
    steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changes = (places for kind, *places in steps if kind != "equal")
    return [Edit(ends[a], ends[b], "".join(new[c:d])) for a, b, c, d in changes]


def excerpt(text: str, span: tuple[int, int], edits: Sequence[Edit] = ()) -> str:
    """A sentence's first words as they are after the edits, where a reader will look for them."""
    start, end = span
    inside = [edit for edit in edits if start <= edit.start and edit.end <= end]
    changed, _ = apply_edits(text[:end], inside)
    words = changed[start:].split()
    return " ".join(words[:_EXCERPT_WORDS]) + ("..." if len(words) > _EXCERPT_WORDS else "")


def moved_places(
    places: Sequence[tuple[int, int]], before: str, after: str
) -> list[tuple[int, int] | None]:
    """Map places of one text to the next version; None where all of the place's text is gone.

    They are compared word by word: a replacement takes the place of the words it replaces. Passages
    that were moved are not tracked.
    """
    old, new = ([(m.span(), m[0].casefold()) for m in _TOKEN.finditer(t)] for t in (before, after))
    before_words, after_words = ([word for _, word in version] for version in (old, new))
    steps = SequenceMatcher(None, before_words, after_words, autojunk=False).get_opcodes()
    moved: list[tuple[int, int] | None] = []
    for place in places:
        inside = [k for k, ((a, b), _) in enumerate(old) if a < place[1] and place[0] < b]
        first, last = (inside[0], inside[-1] + 1) if inside else (0, 0)
        ends: list[int] = []
        for kind, a, b, c, d in steps:
            if a < last and first < b and d > c:
                whole = kind != "equal"
                ends += [c, d] if whole else [c + max(first, a) - a, d - (b - min(last, b))]
        moved.append((new[min(ends)][0][0], new[max(ends) - 1][0][1]) if inside and ends else None)
    return moved


WRITABLE = ("fact", "thread", "motive")
"""The methods whose faults a model can write."""
_TRIES = 3
_MAX_TOKENS = 300
_MAX_WORDS = 45
_MIN_WORDS = 4
_SHARED_RUN = 6
"""A planted sentence may not share this many consecutive words with the story."""

_FRAME = """Below is a story with its sentences numbered. Add a fault to it of one kind, without \
changing any of its sentences, in its own style and tense. An attentive reader should be able to \
notice the fault. What stands between the lines of equals signs is only the story.

The fault: {task}

Write nothing but these lines:
{form}
"""
_STORY = """
========== Story
{story}
==========

Your lines:"""
_TASKS = {
    "thread": "a thing that seems to matter is brought in by one new sentence in the first half "
    "of the story, and nothing ever comes of it. Choose a thing that is nowhere in the story.",
    "fact": "two new sentences contradict each other about one thing: the first, in the first half "
    "of the story, states a fact; the second, in the second half, states another that cannot also "
    "be true. Choose a thing that is nowhere in the story.",
    "motive": "two new sentences give one person of the story opposite motives: the first, in the "
    "first half, says what the person wants; the second, in the second half, has the person want "
    "or do the contrary, and nothing explains why. What is wanted must be nowhere in the story.",
}
_ONE = "AFTER: the number of the sentence that yours follows, from {early}\nSENTENCE: your sentence"
_TWO = (
    "\nSECOND AFTER: the number of the sentence that your second one follows, from {late}\n"
    "SECOND SENTENCE: your second sentence"
)
_THING = "\nTHING: the one word of your sentences that names the thing"
_PERSON = "\nPERSON: who has the motive, as the story calls them"
_LINE = re.compile(
    r"(?i)^[\s*#>-]*(SECOND AFTER|SECOND SENTENCE|AFTER|SENTENCE|THING|PERSON)[\s*]*:[\s*]*(.*)$"
)
_WORD = re.compile(r"[\w’']+")
_PRONOUN = re.compile(r"\b(?:he|she|his|her|him|they|their)\b", re.IGNORECASE)
_AROUND = ' \t"“”*`'
# A sentence that begins like this depends on the one before it.
_LEANING = word_set(
    "he she it they him her his its their them this that these those there then so but and or yet "
    "both another one which who such instead still however otherwise neither nor too"
)


class FaultWriter(HeldOpen):
    """A language model that writes faults; use it as a context manager."""

    def __init__(self, model: Model, seed: int = 0) -> None:
        super().__init__(model)
        self._seed = seed

    @property
    def name(self) -> str:
        """Name for signatures: the model and a digest of the prompt's wording."""
        return self.signed(_FRAME, _STORY, repr(_TASKS), _ONE, _TWO, _THING, _PERSON)

    def write(self, wanted: Sequence[tuple[str, Reading]]) -> list[Fault | str]:
        """For each method and story, the fault or why there is none. Raises `ModelError`."""
        calls = [partial(self._one, method, story) for method, story in wanted]
        return self.run_all(calls, "writing a fault", "faults")

    async def _one(self, method: str, story: Reading) -> Fault | str:
        prompt = fault_prompt(method, story)
        if prompt is None:
            return "no sentence in each half of it allows another to follow"
        why_not = ""
        for k in range(_TRIES):
            # Another seed makes it a different question for the cache too.
            sampling = Sampling(temperature=0.7, max_tokens=_MAX_TOKENS, seed=self._seed + k)
            answer = await self._model.ask(prompt, sampling)
            reason = why_no_text(answer)
            if reason is not None:
                why_not = explain(reason)
                continue
            fault = _fault_of(method, story, answer.text, self._model.name)
            if isinstance(fault, Fault):
                return fault
            why_not = fault
        return f"the model wrote no fault that can be planted ({why_not})"


def fault_prompt(method: str, story: Reading) -> Prompt | None:
    """The prompt for a story; None if nothing can be planted in it."""
    early, late = _ends_of(story), _ends_of(story, late=True)
    if not early or (method != "thread" and not late):
        return None
    form = _ONE + (_THING if method == "thread" else _TWO + _THING)
    form += _PERSON if method == "motive" else ""
    firsts, lasts = (", ".join(str(k + 1) for k in places) for places in (early, late))
    shown = "\n".join(
        f"{k} {' '.join(story.text[a:b].split())}" for k, (a, b) in enumerate(story.sentences, 1)
    )
    frame = _FRAME.format(task=_TASKS[method], form=form.format(early=firsts, late=lasts))
    return Prompt(frame, fence(_STORY, story.text).format(story=shown))


def estimate_faults(texts: Sequence[str], price: Price | None) -> Estimate:
    """The maximum cost of a fault in each text, with three attempts."""
    frame = max(map(len, _TASKS.values())) + len(_FRAME + _STORY + _ONE + _TWO + _THING)
    n_calls = len(texts) * _TRIES
    n_input = _TRIES * sum(estimate_tokens(" " * frame + text) for text in texts)
    return Estimate.of(n_calls, Usage(n_input, 0, n_calls * _MAX_TOKENS), price, is_most=True)


def _fault_of(method: str, story: Reading, answer: str, model: str) -> Fault | str:
    """The fault that an answer describes, or what is wrong with it."""
    lines: dict[str, str] = {}
    for match in filter(None, map(_LINE.match, answer.splitlines())):
        # The first of each name counts.
        lines.setdefault(match[1].upper(), match[2].strip(_AROUND))
    thing = lines.get("THING", "").rstrip(".")
    if len(thing.split()) != 1 or not thing.isalpha():
        return "its answer does not name the thing in one word"
    numbered = [("AFTER", "SENTENCE")]
    if method != "thread":
        numbered.append(("SECOND AFTER", "SECOND SENTENCE"))
    after, planted = [], []
    for late, (where, what) in enumerate(numbered):
        number = re.match(r"\D{0,12}(\d{1,4})\b", lines.get(where, ""))
        k, sentence = int(number[1]) - 1 if number else -1, lines.get(what, "")
        if k not in _ends_of(story, late=bool(late)):
            return "its answer does not name a sentence that another can follow"
        words = [word.casefold() for word in _WORD.findall(sentence)]
        if not _MIN_WORDS <= len(words) <= _MAX_WORDS:
            return f"its sentence has {len(words)} words"
        is_ended = sentence[0].isupper() and sentence[-1] in ".!?"
        if not is_ended or set('{}<>[]"“”') & set(sentence):
            return "what it wrote is not a sentence of narration"
        if re.search(r"(?<!\bMr)(?<!\bMrs)(?<!\bDr)[.!?]\s", sentence):
            return "it wrote more than one sentence"
        story_words = [word.casefold() for word in _WORD.findall(story.text)]
        known, new = (
            {tuple(part[at : at + _SHARED_RUN]) for at in range(len(part) - _SHARED_RUN + 1)}
            for part in (story_words, words)
        )
        if known & new:
            return "its sentence repeats the story"
        n_named = _n_named(thing, sentence)
        if not n_named or (method == "thread" and n_named > 1):
            return "its sentence does not name the thing once"
        after.append(k)
        planted.append(sentence)
    if len(set(map(str.casefold, planted))) < len(planted):
        return "its two sentences are the same"
    if _n_named(thing, story.text):
        return "the story already mentions the thing"
    details: dict[str, Any] = {"thing": thing.lower(), "written_by": model}
    if method == "motive":
        person = lines.get("PERSON", "").rstrip(".")
        if not person:
            return "its answer does not name a person"
        # The first `the fox` may be a fox.
        word = re.escape(person.removeprefix("the "))
        earlier = story.text[: story.sentences[after[0]][1]]
        if re.search(rf"(?<!\w){word}(?!\w)", earlier, re.IGNORECASE) is None:
            return "the person is not named earlier"
        details["person"] = person
    ends = [story.sentences[k][1] for k in after]
    edits = tuple(Edit(end, end, f" {text}") for end, text in zip(ends, planted, strict=True))
    if method == "thread":
        what = (
            f"After the sentence '{excerpt(story.text, story.sentences[after[0]])}', the "
            f"{thing.lower()} is brought in ('{planted[0]}') that is never mentioned again."
        )
    else:
        why = "which contradict each other."
        if method == "motive":
            why = "which give opposite motives, and nothing explains the change."
        what = f"Two sentences were planted, '{planted[0]}' and later '{planted[1]}', {why}"
    return Fault(edits, what, details)


def _n_named(thing: str, text: str) -> int:
    """How often a thing is named, also as a part of a word: keys, keyhole."""
    return len(re.findall(rf"(?<!\w){re.escape(thing)}", text, re.IGNORECASE))


def _ends_of(story: Reading, *, late: bool = False) -> list[int]:
    """The best sentences of the first half, or of the second, to plant another one after.

    Best is the end of a paragraph of narration, after which nobody is called he or she before being
    named.
    """
    text, spans = story.text, story.sentences
    ranked: list[tuple[int, int]] = []
    middle = len(spans) // 2
    begin, stop = (middle, len(spans) - 1) if late else (0, middle)
    for k in range(begin, stop):
        start, end = spans[k]
        following = text[end : spans[k + 1][0]]
        is_end = re.search(r"\n\s*\n", following) is not None
        # Verse, and lines with manual breaks, are not split.
        fits = is_end or "\n" not in following
        if story.is_quoted(start, end + 1) or text[end - 1] not in ".!?" or not fits:
            continue
        if following.strip() or "\n" in text[start:end] or re.search(r"\n[ \t]", following):
            continue
        after = text[slice(*spans[k + 1])]
        first = _WORD.search(after)
        if first is None or first[0].lower() not in _LEANING:
            # Whether its narration uses he or she before it names anybody.
            for quotation in reversed(quotations_of(after)):
                after = f"{after[: quotation.start]} {after[quotation.end :]}"
            pronoun = _PRONOUN.search(after)
            is_named = pronoun is None or re.search(r"\b[A-Z]\w+", after[1 : pronoun.start()])
            ranked.append((k, (0 if is_end else 1) + (0 if is_named else 2)))
    best = min((rank for _, rank in ranked), default=0)
    return [k for k, rank in ranked if rank == best]
