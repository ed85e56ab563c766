"""A draft read once: its profile as a whole, and the notes on its lines."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

from fabula.measures.line_notes import LineReader, LineReview
from fabula.measures.linguistic.profile import Profile, opened_tools, profile_text
from fabula.text import check_documents
from fabula.types import Document
from fabula.workers import in_order

Wanted = Literal["profile", "lines"]
_FEW = 4
"""Below this many texts, starting processes is not worthwhile."""


@dataclass(frozen=True, slots=True)
class DraftReading:
    """What was requested for a draft."""

    profile: Profile | None
    lines: LineReview | None


def read_drafts(
    documents: Iterable[Document],
    wanted: Collection[Wanted],
    grammar: str = "harper",
    *,
    n_jobs: int = 1,
) -> Iterator[DraftReading]:
    """Each document's profile, and the notes on its lines, in order.

    grammar: a checker, as for `open_checker`. Raises `ModelError` if a dependency is missing.
    """
    one = partial(_read, grammar, frozenset(wanted))
    yield from in_order(one, check_documents(documents), n_jobs, n_small=_FEW)


def _read(grammar: str, wanted: frozenset[Wanted], document: Document) -> DraftReading:
    tools, nlp = opened_tools(grammar)
    return DraftReading(
        profile_text(tools, nlp, document) if "profile" in wanted else None,
        _line_reader(grammar).read(document) if "lines" in wanted else None,
    )


@functools.cache
def _line_reader(grammar: str) -> LineReader:
    tools, nlp = opened_tools(grammar)
    return LineReader(nlp, tools.parser, tools.checker)
