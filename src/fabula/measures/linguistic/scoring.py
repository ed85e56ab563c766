"""Scoring the continuations of many systems: a row each, in blocks that do not depend on another.

Each sentence of a block is parsed once, each context once for all its continuations. A block is cut
by the passages alone, so the rows do not depend on the number of processes or an interruption.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fabula.errors import InputError
from fabula.measures.linguistic.continuation import (
    Context,
    Scored,
    read_texts,
    score_continuations,
)
from fabula.measures.linguistic.metrics import ToolChoice, open_tools
from fabula.resume import RowKind, kept_rows
from fabula.store import read_rows
from fabula.workers import InOrder, in_order

__all__ = [
    "GOLD",
    "Continuation",
    "Story",
    "gold_continuations",
    "read_contexts",
    "read_continuations",
    "score_rows",
]

GOLD = "gold"
_BLOCK = 64
_SCORES = RowKind("the score", ("id", "system"), ("values", "digest", "signature"), in_order=True)


@dataclass(frozen=True, slots=True)
class Story:
    """A context by sentences, and what followed in the book."""

    id: str
    context: tuple[str, ...]
    gold: str | None
    chapter: str | None = None
    """The chapter that it is cut from, as other passages are; None where that is not known."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """What a system wrote after a context; no text where it failed."""

    story_id: str
    system: str
    text: str | None


_Block = list[tuple[Story, list[Continuation]]]


def read_contexts(path: Path) -> list[Story]:
    """The passages of `fabula continuation passages`. Raises `InputError` with the line."""
    stories: dict[str, Story] = {}
    for number, row in enumerate(read_rows(path), 1):
        where = f"{path}, line {number}"
        name, context, gold = row.get("id"), row.get("context"), row.get("gold")
        if not isinstance(name, str) or not _is_lines(context):
            raise InputError(
                f"{where}: no passage; it needs id, and context as a list of sentences, as "
                f"`fabula continuation passages` writes them"
            )
        if gold is not None and not isinstance(gold, str):
            raise InputError(f"{where}: gold is no text; write a sentence, or leave it out")
        if name in stories:
            raise InputError(f"{where}: a passage {name!r} was there before; ids must differ")
        stories[name] = Story(name, tuple(context or ()), gold, _chapter_of(row))
    if not stories:
        raise InputError(f"{path}: holds no passages")
    return list(stories.values())


def _chapter_of(row: Mapping[str, Any]) -> str | None:
    """Book and chapter of a passage, or its book alone."""
    named = [row[key] for key in ("book", "chapter") if row.get(key) is not None]
    return "/".join(map(str, named)) or None


def _is_lines(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(line, str) for line in value)


def read_continuations(paths: Iterable[Path], stories: Sequence[Story]) -> list[Continuation]:
    """The rows of the systems: `id` of the passage, `system`, and `text`, which null means failed.

    Raises `InputError` with the line, also for a passage that is not there, or a second text.
    """
    known = {story.id for story in stories}
    seen: dict[tuple[str, str], str] = {}
    found: list[Continuation] = []
    for path in paths:
        for number, row in enumerate(read_rows(path), 1):
            where = f"{path}, line {number}"
            name, system, text = row.get("id"), row.get("system"), row.get("text")
            if not isinstance(name, str) or not isinstance(system, str) or "text" not in row:
                raise InputError(f"{where}: no continuation; it needs id, system and text")
            if not system.strip() or not system.isprintable():
                raise InputError(
                    f"{where}: the system's name is empty or holds control characters; rename it"
                )
            if text is not None and not isinstance(text, str):
                raise InputError(f"{where}: text is no text; write null where there is none")
            if name not in known:
                raise InputError(f"{where}: no passage {name!r} among the contexts")
            if (name, system) in seen:
                raise InputError(
                    f"{where}: {system} continued {name!r} before ({seen[name, system]}); give "
                    f"each system a name of its own"
                )
            seen[name, system] = where
            found.append(Continuation(name, system, text))
        if not any(where.startswith(f"{path}, line ") for where in seen.values()):
            raise InputError(f"{path}: holds no continuations")
    return found


def gold_continuations(
    stories: Sequence[Story], others: Iterable[Continuation] = ()
) -> list[Continuation]:
    """What followed in the books, as a system by the name `gold`.

    Raises `InputError` where a system has that name already.
    """
    if any(other.system == GOLD for other in others):
        raise InputError(
            f"a system is named {GOLD!r}, as the books' own sentences are; rename it, or leave "
            f"these out with `no_gold`"
        )
    return [Continuation(story.id, GOLD, story.gold) for story in stories if story.gold is not None]


def score_rows(
    stories: Sequence[Story],
    continuations: Iterable[Continuation],
    choice: ToolChoice,
    out: Path | None = None,
    *,
    n_jobs: int = 1,
    spread: InOrder | None = None,
    restart: bool = False,
    advance: Callable[[int], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """A row for each continuation, by passage; appended to `out` as they come.

    `spread` does the work elsewhere than in `n_jobs` processes here.

    Rows that are there already, of an interrupted run, are kept; `InputError` where they are of
    other texts or measured in another way.
    """
    by_story: dict[str, list[Continuation]] = {}
    for continuation in continuations:
        by_story.setdefault(continuation.story_id, []).append(continuation)
    # In an order of their own: who is named first changes no byte.
    pairs = [
        (story, sorted(by_story[story.id], key=lambda text: text.system))
        for story in stories
        if story.id in by_story
    ]
    run = spread or partial(in_order, n_jobs=n_jobs)
    blocks = [pairs[k : k + _BLOCK] for k in range(0, len(pairs), _BLOCK)]
    if out is None:
        return list(_measure(blocks, choice, run, advance))
    with kept_rows(out, _SCORES, restart=restart) as kept:
        # Nothing is opened where nothing is there to be compared with.
        signature = str(open_tools(choice).signature) if len(kept) else ""
        rows = [
            row
            for story, texts in pairs
            for text in texts
            if (row := kept.find(_expected(story, text, signature))) is not None
        ]
        kept.check_end()
        advance(len(rows))
        kept.begin()
        n_whole, n_rows = 0, 0
        while n_whole < len(blocks) and n_rows + _n_texts(blocks[n_whole]) <= len(rows):
            n_rows += _n_texts(blocks[n_whole])
            n_whole += 1
        n_half = len(rows) - n_rows
        for row in _measure(blocks[n_whole:], choice, run, lambda _: None):
            if n_half:
                n_half -= 1
                continue
            kept.add(row)
            rows.append(row)
            advance(1)
    return rows


def _expected(story: Story, text: Continuation, signature: str) -> dict[str, Any]:
    """What a row of this continuation must say to be used again."""
    return {
        "id": story.id,
        "system": text.system,
        "chapter": story.chapter,
        "digest": _digest(story, text),
        "signature": signature,
    }


def _n_texts(block: _Block) -> int:
    return sum(len(texts) for _, texts in block)


def _measure(
    blocks: Iterable[_Block], choice: ToolChoice, run: InOrder, advance: Callable[[int], None]
) -> Iterator[dict[str, Any]]:
    for rows in run(partial(_score_block, choice), blocks):
        yield from rows
        advance(len(rows))


def _digest(story: Story, continuation: Continuation) -> str:
    """What was measured: the context and the text."""
    parts = "\x1f".join([*story.context, repr(continuation.text)])
    return hashlib.sha256(parts.encode(errors="replace")).hexdigest()[:16]


def _score_block(choice: ToolChoice, block: _Block) -> list[dict[str, Any]]:
    tools = open_tools(choice)
    sentences = list(dict.fromkeys(text for story, _ in block for text in story.context))
    known = dict(zip(sentences, read_texts(tools, sentences), strict=True))
    readings = iter(read_texts(tools, [c.text or "" for _, texts in block for c in texts]))
    rows: list[dict[str, Any]] = []
    for story, continuations in block:
        context = Context([known[text] for text in story.context])
        texts = [continuation.text for continuation in continuations]
        own = [next(readings) for _ in texts]
        scored = score_continuations(tools, context, texts, own)
        rows += [
            _row(story, continuation, result, str(tools.signature))
            for continuation, result in zip(continuations, scored, strict=True)
        ]
    return rows


def _row(
    story: Story, continuation: Continuation, scored: Scored, signature: str
) -> dict[str, Any]:
    made_of = _expected(story, continuation, signature)
    return {
        **{name: made_of[name] for name in ("id", "system", "chapter")},
        "values": {key: _rounded(value) for key, value in scored.values.items()},
        "missing": dict(scored.missing),
        "words": " ".join(scored.words),
        "sentence_ends": list(scored.sentence_ends),
        "errors": [list(place) for place in scored.errors],
        "digest": made_of["digest"],
        "signature": signature,
    }


def _rounded(value: float | None) -> float | None:
    """Six digits: what is beyond them depends on the processor."""
    return None if value is None else round(value, 6)
