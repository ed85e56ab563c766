"""Borrowed text as a page shows it: passages by rank, commonplaces hidden behind their count."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from fabula.presentation.marked_text import Borrowed, Gloss
from fabula.web import visible

MARKS_PER_1000 = 20
"""Passages marked per 1,000 words by default: one in fifty words."""
_MIN_MARKS = 5
"""Marked in any text, however short."""
_QUOTE_CHARS = 240
_VERBATIM, _NEAR = 0.7, 0.3
"""The darkness of a mark."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PassageView:
    """A borrowed passage, or a commonplace, in a list."""

    number: int
    quote: str
    reason: str
    """Why it has its rank: words, bits, places."""
    sources: list[dict[str, Any]]
    n_more: int
    """Documents that contain it and are not named."""
    n_words: int
    is_near: bool
    is_marked: bool


def passages_of(row: Row, text: str, n_marks: int | None) -> list[PassageView]:
    """The passages of a row of scores by rank; `n_marks` of them are marked per 1,000 words."""
    per_1000 = MARKS_PER_1000 if n_marks is None else n_marks
    n_most = max(_MIN_MARKS, math.ceil(row["n_words"] * per_1000 / 1000)) if per_1000 else 0
    return [
        _view(number, one, text, [source_of(source) for source in one["sources"]], number <= n_most)
        for number, one in enumerate(row["passages"] or (), 1)
    ]


def commonplaces_of(row: Row, text: str) -> list[PassageView]:
    """The commonplaces of a row of scores, each with its first named source."""
    named = {(one["start"], one["end"]): one["sources"][:1] for one in row["covered"]}
    return [
        _view(0, one, text, [source_of(s) for s in named.get((one["start"], one["end"]), ())])
        for one in row["commonplaces"] or ()
    ]


def _view(
    number: int, one: Row, text: str, sources: list[dict[str, Any]], is_marked: bool = False
) -> PassageView:
    quote = " ".join(text[one["start"] : one["end"]].split())
    if len(quote) > _QUOTE_CHARS:
        quote = quote[:_QUOTE_CHARS].rpartition(" ")[0] + " …"
    return PassageView(
        number=number,
        quote=visible(quote),
        reason=_reason(one),
        sources=sources,
        n_more=max(0, (one["n_documents"] or one["count"]) - len(sources)),
        n_words=one["n_words"],
        is_near=one["n_verbatim"] < one["n_words"],
        is_marked=is_marked,
    )


def _reason(one: Row) -> str:
    """Its words, their bits, and how often they occur."""
    parts = [f"{one['n_words']} words"]
    n_verbatim, n_runs = one["n_verbatim"], len(one["runs"])
    if n_verbatim == one["n_words"]:
        parts.append("word for word" + (f" in {n_runs} runs" if n_runs > 1 else ""))
    elif n_verbatim:
        parts.append(f"{n_verbatim} of them word for word")
    else:
        # Rounded down: only a verbatim match is 100 % similar.
        least = min(run["similarity"] for run in one["runs"] if "similarity" in run)
        parts = [f"{parts[0]} in other words", f"{int(least * 100)}% similar"]
    if one["bits"] is not None:
        parts.append(f"{one['bits']:.0f} bits")
    n, n_documents = one["count"], one["n_documents"]
    found = "found once" if n == 1 else f"found {n:,} times"
    if n != 1 and n_documents is not None:
        found += f" in {n_documents:,} document{'' if n_documents == 1 else 's'}"
    return ", ".join([*parts, found])


def borrowed_of(row: Row, text: str, passages: Sequence[PassageView]) -> list[Borrowed]:
    """What is marked in the text, in text order, without overlaps.

    Where several overlap the best rank has the words, and within one passage verbatim matches come
    before near ones.
    """
    ranked = list(zip(row["passages"] or (), passages, strict=True))
    # What is shown on request: commonplaces, and passages beyond those marked.
    hidden = [*(row["commonplaces"] or ()), *(one for one, view in ranked if not view.is_marked)]
    marks = [
        (
            one,
            Borrowed(
                0, one["start"], one["end"], one["n_words"], 0, _reason(one), 0, [], is_common=True
            ),
        )
        for one in hidden
    ]
    for one, view in reversed(ranked):
        for is_near in (True, False) if view.is_marked else ():
            mark = Borrowed(
                number=view.number,
                start=one["start"],
                end=one["end"],
                n_words=view.n_words,
                shade=_NEAR if is_near else _VERBATIM,
                frequency=view.reason,
                n_more=view.n_more,
                sources=view.sources,
                is_near=is_near,
            )
            marks.append((one, mark))
    # For each character the index of its mark; -1 for none.
    owners = np.full(len(text), -1, np.int64)
    for k, (one, mark) in enumerate(marks):
        for run in one["runs"]:
            if mark.is_common or mark.is_near == ("similarity" in run):
                owners[run["start"] : run["end"]] = k
    marked = []
    edges = [0, *(np.flatnonzero(np.diff(owners)) + 1).tolist(), len(text)]
    for a, b in pairwise(edges):
        piece = text[a:b]
        if a < b and owners[a] >= 0 and any(map(str.isalnum, piece)):
            begin = a + len(piece) - len(piece.lstrip())
            _, mark = marks[owners[a]]
            marked.append(replace(mark, start=begin, end=begin + len(piece.strip())))
    return marked


def near_of(row: Row, text: str) -> list[Borrowed]:
    """The near runs with their sources, without those that mostly repeat an earlier one."""
    runs = [
        (run, number, one)
        for name in ("passages", "commonplaces")
        for number, one in enumerate(row[name] or (), 1)
        for run in one["runs"]
        if "similarity" in run
    ]
    listed: list[Borrowed] = []
    for span in row["covered"]:
        for run, number, one in runs if span["kind"] == "near" else ():
            reached = listed[-1].end if listed else 0
            is_new = run["end"] - max(run["start"], reached) >= (run["end"] - run["start"]) / 2
            if span["start"] <= run["start"] and run["end"] <= span["end"] and is_new:
                listed.append(_near(span, run, number if "sources" in one else 0, one, text))
    return listed


def _near(span: Row, run: Row, number: int, one: Row, text: str) -> Borrowed:
    """The kept part of a near run, from the covered span in which it was found."""
    (whole,) = span["sources"]
    kept = [source for source in one.get("sources", ()) if source["id"] == whole["id"]]
    pairs = [p for p in span["pairs"] if run["start"] <= p["start"] and p["end"] <= run["end"]]
    return Borrowed(
        number=number,
        start=run["start"],
        end=run["end"],
        n_words=run["n_words"],
        shade=_NEAR,
        frequency=f"found in other words, {int(run['similarity'] * 100)}% similar",
        n_more=0,
        sources=[source_of(source) for source in kept[:1] or [whole]],
        is_near=True,
        similarity=run["similarity"],
        glosses=tuple(_glosses({**run, "pairs": pairs}, text)),
    )


def _glosses(span: Row, text: str) -> Iterator[Gloss]:
    """The near span cut at its content words; each with its counterpart."""
    at = span["start"]
    for pair in span["pairs"]:
        if pair["start"] > at:
            yield Gloss(visible(text[at : pair["start"]].replace("\n", " ")))
        own = text[pair["start"] : pair["end"]]
        is_same = own.casefold() == pair["source"].casefold()
        yield Gloss(visible(own), visible(pair["source"]), pair["similarity"], is_same)
        at = pair["end"]
    if at < span["end"]:
        yield Gloss(visible(text[at : span["end"]].replace("\n", " ")))


def source_of(source: Row) -> dict[str, Any]:
    """A source as it is cited, with the surrounding words."""
    shown = {key: visible(str(source[key])) for key in ("before", "text", "after")}
    return {
        **shown,
        "id": source["id"],
        "title": visible(str(source["title"] or source["id"])),
        "author": None if source["author"] is None else visible(str(source["author"])),
        "year": source["year"],
    }
