"""Score the continuations of many systems: one row each, in independent blocks.

Each sentence of a block is parsed once, each context once for all its continuations. Blocks depend
only on the passages, so the rows do not depend on the number of processes or on interruptions.
"""

from __future__ import annotations

import hashlib
import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from fabula.core.errors import InputError
from fabula.core.resume import Row, RowKind, kept_rows
from fabula.core.store import read_rows
from fabula.core.workers import InOrder, in_order
from fabula.jobs.result import picked
from fabula.linguistic import metrics

GOLD = "gold"
_BLOCK = 64
"""Passages that are measured in one batch."""
_SCORES = RowKind("the score", ("id", "system"), ("values", "digest", "signature"), in_order=True)


@dataclass(frozen=True, slots=True)
class Story:
    """A context by sentences, and what followed in the book."""

    id: str
    context: tuple[str, ...]
    gold: str | None
    chapter: str | None = None
    """The chapter that it comes from, shared with other passages; None if unknown."""
    book: str | None = None


@dataclass(frozen=True, slots=True)
class Continuation:
    """What a system wrote after a context; no text if it failed."""

    story_id: str
    system: str
    text: str | None


_Block = list[tuple[Story, list[Continuation]]]


def read_contexts(path: Path) -> list[Story]:
    """Read the passages of `fabula continuation passages`. Raises `InputError` with the line."""
    stories: dict[str, Story] = {}
    for number, row in enumerate(read_rows(path, is_edited=True), 1):
        where = f"{path}, line {number}"
        name, context, gold = row.get("id"), row.get("context"), row.get("gold")
        is_lines = isinstance(context, list) and all(isinstance(line, str) for line in context)
        if not isinstance(name, str) or not is_lines:
            raise InputError(
                f"{where}: not a passage; it needs id, and context as a list of sentences, in the "
                "format of `fabula continuation passages`"
            )
        if gold is not None and not isinstance(gold, str):
            raise InputError(f"{where}: gold is not a string; use a sentence, or leave it out")
        if name in stories:
            raise InputError(f"{where}: the passage {name!r} occurs twice; ids must differ")
        named = [str(row[key]) for key in ("book", "chapter") if row.get(key) is not None]
        book = None if row.get("book") is None else named[0]
        stories[name] = Story(name, tuple(context or ()), gold, "/".join(named) or None, book)
    if not stories:
        raise InputError(f"{path}: contains no passages")
    return list(stories.values())


def read_continuations(paths: Iterable[Path], stories: Sequence[Story]) -> list[Continuation]:
    """The rows of the systems: `id` of the passage, `system`, and `text` (null if it failed).

    Raises `InputError` with the line, also for an unknown passage or a duplicate text.
    """
    known = {story.id for story in stories}
    seen: dict[tuple[str, str], str] = {}
    continuations: list[Continuation] = []
    for path in paths:
        for number, row in enumerate(read_rows(path, is_edited=True), 1):
            where = f"{path}, line {number}"
            name, system, text = row.get("id"), row.get("system"), row.get("text")
            if not isinstance(name, str) or not isinstance(system, str) or "text" not in row:
                raise InputError(f"{where}: not a continuation; it needs id, system and text")
            if not system.strip() or not system.isprintable():
                raise InputError(
                    f"{where}: the system's name is empty or contains control characters; rename it"
                )
            if text is not None and not isinstance(text, str):
                raise InputError(f"{where}: text is not a string; use null if there is none")
            if name not in known:
                raise InputError(f"{where}: the contexts contain no passage {name!r}")
            if (name, system) in seen:
                raise InputError(
                    f"{where}: {system} already continued {name!r} ({seen[name, system]}); give "
                    "each system its own name"
                )
            seen[name, system] = where
            continuations.append(Continuation(name, system, text))
        if not any(where.startswith(f"{path}, line ") for where in seen.values()):
            raise InputError(f"{path}: contains no continuations")
    return continuations


def gold_continuations(
    stories: Sequence[Story], others: Iterable[Continuation] = ()
) -> list[Continuation]:
    """The books' own continuations, as a system named `gold`.

    Raises `InputError` if a system already has that name.
    """
    if any(other.system == GOLD for other in others):
        raise InputError(
            f"a system is named {GOLD!r}, the name of the books' own sentences; rename it, or "
            "leave these out with `no_gold`"
        )
    return [Continuation(story.id, GOLD, story.gold) for story in stories if story.gold is not None]


def score_rows(
    stories: Sequence[Story],
    continuations: Iterable[Continuation],
    choice: metrics.ToolChoice,
    out: Path | None = None,
    *,
    n_jobs: int = 1,
    spread: InOrder | None = None,
    restart: bool = False,
    advance: Callable[[int], None] = lambda _: None,
) -> list[Row]:
    """A row for each continuation, by passage; appended to `out` as they are computed.

    `spread` runs the work elsewhere than in `n_jobs` local processes.

    Rows of an interrupted run are kept; raises `InputError` if they are of other texts or settings.
    """
    by_story: dict[str, list[Continuation]] = {}
    # Sorted, so that the order of the arguments does not change the output.
    for continuation in sorted(continuations, key=lambda c: c.system):
        by_story.setdefault(continuation.story_id, []).append(continuation)
    pairs = [(story, by_story[story.id]) for story in stories if story.id in by_story]
    blocks = [pairs[k : k + _BLOCK] for k in range(0, len(pairs), _BLOCK)]
    measure = partial(spread or partial(in_order, n_jobs=n_jobs), partial(_score_block, choice))
    if out is None:
        scored: list[Row] = []
        for rows in measure(blocks):
            scored += rows
            advance(len(rows))
        return scored
    with kept_rows(out, _SCORES, restart=restart) as kept:
        # Open nothing if there is nothing to compare with.
        known = str(metrics.open_tools(choice).signature) if len(kept) else ""
        wanted = [[_expected(s, text, known) for s, texts in b for text in texts] for b in blocks]
        scored = [row for rows in wanted for key in rows if (row := kept.find(key)) is not None]
        kept.check_end()
        advance(len(scored))
        kept.begin()
        ends = list(accumulate(map(len, wanted), initial=0))
        n_whole = bisect_right(ends, len(scored)) - 1
        n_half = len(scored) - ends[n_whole]
        for rows in measure(blocks[n_whole:]):
            for row in rows[n_half:]:
                kept.add(row)
                scored.append(row)
                advance(1)
            n_half = 0
    return scored


def _expected(story: Story, text: Continuation, signature: str) -> Row:
    """What a row must have to be reused; the digest is of what was measured: context and text."""
    parts = "\x1f".join([*story.context, repr(text.text)])
    return {
        "id": story.id,
        "system": text.system,
        "chapter": story.chapter,
        "digest": hashlib.sha256(parts.encode(errors="replace")).hexdigest()[:16],
        "signature": signature,
    }


def _score_block(choice: metrics.ToolChoice, block: _Block) -> list[Row]:
    tools = metrics.open_tools(choice)
    # Most golds also occur in the contexts of other passages, and systems may repeat a sentence.
    strings = [text for story, _ in block for text in story.context]
    strings += [c.text or "" for _, continuations in block for c in continuations]
    texts_once = list(dict.fromkeys(strings))
    known = dict(zip(texts_once, metrics.read_texts(tools, texts_once), strict=True))
    rows: list[Row] = []
    for story, continuations in block:
        context = metrics.Context([known[text] for text in story.context])
        texts = [continuation.text for continuation in continuations]
        readings = [known[text or ""] for text in texts]
        scored = metrics.score_continuations(tools, context, texts, readings)
        for continuation, result in zip(continuations, scored, strict=True):
            # Rounded to six digits: further digits depend on the processor.
            values = {k: v if v is None else round(v, 6) for k, v in result.values.items()}
            row = _expected(story, continuation, str(tools.signature))
            last = {key: row.pop(key) for key in ("digest", "signature")}
            row |= {
                "values": values,
                "missing": dict(result.missing),
                "words": " ".join(result.words),
                "sentence_ends": list(result.sentence_ends),
                "errors": [list(place) for place in result.errors],
            }
            rows.append(row | last)
    return rows


@dataclass(frozen=True, slots=True)
class Written:
    """What a system wrote after a passage; no text if it failed."""

    system: str
    text: str | None
    values: Mapping[str, float | None]
    missing: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Example:
    """A passage and what each system wrote after it."""

    story: Story
    written: Sequence[Written]

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.story.id,
            "context": list(self.story.context),
            "systems": {w.system: picked(w, "text", "values", "missing") for w in self.written},
        }


def sample_examples(
    stories: Sequence[Story],
    continuations: Iterable[Continuation],
    scored: Iterable[Mapping[str, Any]],
    systems: Sequence[str],
    seed: int,
) -> list[Example]:
    """Two passages, as in the paper's Table 1, drawn from those that the most systems continued.

    `scored` are the rows of `score_rows`. The passages keep their order; there may be only one.
    """
    texts = {(c.story_id, c.system): c.text for c in continuations}
    by_story: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in scored:
        by_story.setdefault(row["id"], {})[row["system"]] = row
    most = max(map(len, by_story.values()))
    whole = [story for story in stories if len(by_story.get(story.id, ())) == most]
    chosen = sorted(random.Random(seed).sample(range(len(whole)), min(2, len(whole))))
    examples = []
    for story in (whole[k] for k in chosen):
        rows = ((system, by_story[story.id].get(system)) for system in systems)
        written = [Written(s, texts[story.id, s], r["values"], r["missing"]) for s, r in rows if r]
        examples.append(Example(story, written))
    return examples
