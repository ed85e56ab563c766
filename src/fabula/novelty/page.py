"""The page of a text's originality: the readable text with its borrowed passages marked.

The page is one file without scripts. It is built from the rows of `scores.jsonl` and the texts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from fabula.core.errors import explain
from fabula.core.types import Document
from fabula.show.page import Borrowed, Gloss, Listed, Note, cut_text, write_page_file

_MAX_SOURCES = 60
_MAX_NUMBERS = 12
_MAX_SPREAD = 10
_ENOUGH_WORDS = 10_000_000
"""A smaller reference finds almost nothing in most texts: the 5.5 million words of books used in
docs/originality.md leave 100 openings of novels at 7.93 of 8 on average."""
_NEARLY_ALL = 0.9
MARKS_PER_1000 = 20
"""Passages marked per 1,000 words by default: one in fifty words."""
_MIN_MARKS = 5
"""Marked in any text, however short."""
_QUOTE_CHARS = 240

Row = Mapping[str, Any]


def write_page(
    path: Path,
    texts: Sequence[tuple[Document, dict[str, Any]]],
    n_texts: int,
    against: str,
    n_marks: int | None = None,
) -> None:
    """Write the page of these texts, each with its row of scores; `n_texts` counts all scored,
    `against` is the size of the reference, `n_marks` as in `passages_of`."""
    articles = [article_of(k, doc, row, n_marks=n_marks) for k, (doc, row) in enumerate(texts, 1)]
    page = {
        "title": articles[0]["title"] if len(articles) == 1 else f"{n_texts:,} texts",
        "articles": articles,
        "n_left_out": n_texts - len(articles),
        "against": against,
        "signature": texts[0][1]["signature"],
    }
    write_page_file(path, "originality.html.j2", page)


def article_of(
    number: int,
    document: Document,
    row: dict[str, Any],
    notes: Sequence[Note] = (),
    listed: Sequence[Listed] = (),
    n_marks: int | None = None,
    breaks: Sequence[int] = (),
) -> dict[str, Any]:
    """A text with its row of scores, ready to be shown, with everything else marked in it."""
    levels = {int(level): value for level, value in row["uniqueness"].items()}
    low, high = min(levels), max(levels)
    passages = passages_of(row, document.text, n_marks)
    commonplaces = commonplaces_of(row, document.text)
    borrowed = borrowed_of(row, document.text, passages, commonplaces)
    n_marked = sum(passage.is_marked for passage in passages)
    # The named sources, the one with the most shared words first.
    entries: dict[str, dict[str, Any]] = {}
    for passage in passages:
        for source in passage.sources:
            entry = entries.setdefault(source["id"], {**source, "n_words": 0, "passages": []})
            entry["n_words"] += passage.n_words
            entry["passages"].append(passage)
    for entry in entries.values():
        entry["n_more"] = max(0, len(entry["passages"]) - _MAX_NUMBERS)
    sources = sorted(entries.values(), key=lambda e: (-e["n_words"], e["passages"][0].number))
    curve = [
        {"level": k, "x": _x(k, low, high), "y": round(128 - 114 * v, 1), "shown": f"{v:.1%}"}
        for k, v in levels.items()
        if v is not None
    ]
    lowest, n_words, too_small = levels[low], row["n_reference_words"], ""
    is_small = n_words is not None and n_words < _ENOUGH_WORDS
    if is_small and not passages and lowest is not None and lowest >= _NEARLY_ALL:
        too_small = (
            f"No passage was found, and {lowest:.0%} of the words are in no run of the reference. "
            f"Against {n_words:,} words that is true of nearly every text: the library is too "
            "small to show how new this one is."
        )
    points = ", ".join(f"{point['level']} words {point['shown']}" for point in curve)
    named = {source["id"]: k for k, source in enumerate(sources[:_MAX_SOURCES], 1)}
    firsts = {p.number: p.sources[0]["id"] for p in passages if p.sources}
    return {
        "number": number,
        "title": document.title,
        "n_words": row["n_words"],
        "index": row["creativity_index"],
        "missing": row["missing_reason"] and explain(row["missing_reason"]),
        "n_levels": len(levels),
        "low": low,
        "lowest": lowest,
        "longest": row["longest_run"] or 0,
        "curve": curve,
        "ticks": [{"level": level, "x": _x(level, low, high)} for level in levels],
        "curve_label": f"L-uniqueness by length of run: {points}",
        # Shown in place of the curve, if the reference is too small to tell.
        "too_small": too_small,
        "passages": passages,
        "commonplaces": commonplaces,
        "n_marked": n_marked,
        # Commonplaces, and passages that are not marked, which are shown on request.
        "n_hidden": len(passages) - n_marked + len(commonplaces),
        "paragraphs": cut_text(document.text, borrowed, notes, listed, breaks),
        "sources": sources[:_MAX_SOURCES],
        "n_more_sources": max(0, len(sources) - _MAX_SOURCES),
        "near": near_of(row, document.text),
        "spread": _spread(row.get("spread")),
        "notices": _notices(row, lowest),
        # For each passage the row of its first source.
        "rows": {number: named[id_] for number, id_ in firsts.items() if id_ in named},
        # Whether the margin has points of feedback instead of sources.
        "has_notes": bool(notes),
    }


def _notices(row: dict[str, Any], lowest: float | None) -> list[str]:
    notices = []
    if out := row["excluded"]:
        shown = [f"{copy['title'] or copy['id']!s} {copy['reason']}" for copy in out[:5]]
        if len(out) > 5:
            shown.append(f"and {len(out) - 5} more")
        notices.append(
            f"Left out of the reference as copies or quotations of this text: {'; '.join(shown)}."
        )
    elif lowest is not None and lowest < 0.5:
        notices.append(
            Markup(
                "More than half of this text occurs in the reference. If the reference contains "
                "the text itself, <code>fabula originality --exclude auto</code> leaves copies of "
                "the text out."
            )
        )
    notices += [f"{remark}." for remark in row.get("remarks", ())]
    if row.get("missing_detail"):
        notices.append(f"It has no score: {row['missing_detail']}.")
    n_known = row["n_known_words"]
    unknown = 1 - n_known / row["n_words"] if row["n_words"] and n_known is not None else 0
    if unknown > 0.2:
        notices.append(
            f"{unknown:.0%} of its words do not occur in the reference at all: is it in the same "
            "language and of the same kind? Words that the reference does not contain count as "
            "new."
        )
    return notices


def _spread(spread: dict[str, Any] | None) -> dict[str, Any] | None:
    if spread is None:
        return None
    left = spread["uniqueness"]
    return {
        **spread,
        "points": [
            {"x": _x(k, 0, len(left) - 1), "y": round(128 - 114 * value, 1)}
            for k, value in enumerate(left)
        ],
        "label": ", ".join(f"{k}: {value:.1%}" for k, value in enumerate(left)),
        "last": len(left) - 1,
        "chosen": [
            {**document, "title": str(document["title"] or document["id"])}
            for document in spread["documents"][:_MAX_SPREAD]
        ],
    }


def _x(level: int, low: int, high: int) -> float:
    return round(40 + 284 * (level - low) / max(1, high - low), 1)


def passages_of(row: Row, text: str, n_marks: int | None) -> list[Borrowed]:
    """The passages of a row of scores by rank; `n_marks` of them are marked per 1,000 words."""
    per_1000 = MARKS_PER_1000 if n_marks is None else n_marks
    n_most = max(_MIN_MARKS, math.ceil(row["n_words"] * per_1000 / 1000)) if per_1000 else 0
    return [
        _passage(number, passage, text, passage["sources"], is_marked=number <= n_most)
        for number, passage in enumerate(row["passages"] or (), 1)
    ]


def commonplaces_of(row: Row, text: str) -> list[Borrowed]:
    """The commonplaces of a row of scores, each with its first named source."""
    named = {(run["start"], run["end"]): run["sources"][:1] for run in row["covered"]}
    return [
        _passage(0, common, text, named.get((common["start"], common["end"]), ()), is_common=True)
        for common in row["commonplaces"] or ()
    ]


def _passage(
    number: int,
    passage: Row,
    text: str,
    sources: Sequence[Row],
    *,
    is_marked: bool = False,
    is_common: bool = False,
) -> Borrowed:
    quote = " ".join(text[passage["start"] : passage["end"]].split())
    if len(quote) > _QUOTE_CHARS:
        quote = quote[:_QUOTE_CHARS].rpartition(" ")[0] + " …"
    parts = [f"{passage['n_words']} words"]
    n_verbatim, n_runs = passage["n_verbatim"], len(passage["runs"])
    if n_verbatim == passage["n_words"]:
        parts.append("word for word" + (f" in {n_runs} runs" if n_runs > 1 else ""))
    elif n_verbatim:
        parts.append(f"{n_verbatim} of them word for word")
    else:
        # Rounded down: only a verbatim match is 100 % similar.
        least = min(run["similarity"] for run in passage["runs"] if "similarity" in run)
        parts = [f"{parts[0]} in other words", f"{int(least * 100)}% similar"]
    if passage["bits"] is not None:
        parts.append(f"{passage['bits']:.0f} bits")
    n, n_documents = passage["count"], passage["n_documents"]
    frequency = "found once" if n == 1 else f"found {n:,} times"
    if n != 1 and n_documents is not None:
        frequency += f" in {n_documents:,} document{'' if n_documents == 1 else 's'}"
    return Borrowed(
        number=number,
        start=passage["start"],
        end=passage["end"],
        n_words=passage["n_words"],
        reason=", ".join([*parts, frequency]),
        sources=[source_of(source) for source in sources],
        n_more=max(0, (passage["n_documents"] or passage["count"]) - len(sources)),
        quote=quote,
        is_near=passage["n_verbatim"] < passage["n_words"],
        is_marked=is_marked,
        is_common=is_common,
    )


def borrowed_of(
    row: Row, text: str, passages: Sequence[Borrowed], commonplaces: Sequence[Borrowed]
) -> list[Borrowed]:
    """What is marked in the text, in text order, without overlaps.

    Where several overlap the best rank has the words, and within one passage verbatim matches come
    before near ones.
    """
    ranked = list(zip(row["passages"] or (), passages, strict=True))
    marks = list(zip(row["commonplaces"] or (), commonplaces, strict=True))
    # What is shown on request: commonplaces, and passages beyond those marked.
    hidden = [pair for pair in ranked if not pair[1].is_marked]
    marks += [(raw, replace(passage, number=0, is_common=True)) for raw, passage in hidden]
    marks += [
        (raw, replace(passage, is_near=is_near))
        for raw, passage in reversed(ranked)
        for is_near in ((True, False) if passage.is_marked else ())
    ]
    # For each character the index of its mark; -1 for none.
    owners = np.full(len(text), -1, np.int64)
    for k, (raw, mark) in enumerate(marks):
        for run in raw["runs"]:
            if mark.is_common or mark.is_near == ("similarity" in run):
                owners[run["start"] : run["end"]] = k
    marked = []
    for start, end in pairwise([0, *(np.flatnonzero(np.diff(owners)) + 1).tolist(), len(text)]):
        piece = text[start:end]
        if start < end and owners[start] >= 0 and any(map(str.isalnum, piece)):
            begin = start + len(piece) - len(piece.lstrip())
            _, mark = marks[owners[start]]
            marked.append(replace(mark, start=begin, end=begin + len(piece.strip())))
    return marked


def near_of(row: Row, text: str) -> list[Borrowed]:
    """The near runs with their sources, without those that mostly repeat an earlier one."""
    runs = [
        (run, number, passage)
        for name in ("passages", "commonplaces")
        for number, passage in enumerate(row[name] or (), 1)
        for run in passage["runs"]
        if "similarity" in run
    ]
    listed: list[Borrowed] = []
    for span in row["covered"]:
        for run, number, passage in runs if span["kind"] == "near" else ():
            reached = listed[-1].end if listed else 0
            is_new = run["end"] - max(run["start"], reached) >= (run["end"] - run["start"]) / 2
            if span["start"] <= run["start"] and run["end"] <= span["end"] and is_new:
                (whole,) = span["sources"]
                sources = [s for s in passage.get("sources", ()) if s["id"] == whole["id"]]
                # The kept part of the run, from the span in which it was found, cut at its content
                # words; each with its counterpart.
                glosses: list[Gloss] = []
                at = run["start"]
                for pair in span["pairs"]:
                    if pair["start"] < run["start"] or run["end"] < pair["end"]:
                        continue
                    if pair["start"] > at:
                        glosses.append(Gloss(text[at : pair["start"]].replace("\n", " ")))
                    piece = text[pair["start"] : pair["end"]]
                    is_same = piece.casefold() == pair["source"].casefold()
                    glosses.append(Gloss(piece, pair["source"], pair["similarity"], is_same))
                    at = pair["end"]
                if at < run["end"]:
                    glosses.append(Gloss(text[at : run["end"]].replace("\n", " ")))
                mark = Borrowed(
                    number=number if "sources" in passage else 0,
                    start=run["start"],
                    end=run["end"],
                    n_words=run["n_words"],
                    reason=f"found in other words, {int(run['similarity'] * 100)}% similar",
                    sources=[source_of(source) for source in sources[:1] or [whole]],
                    is_near=True,
                    similarity=run["similarity"],
                    glosses=tuple(glosses),
                )
                listed.append(mark)
    return listed


def source_of(source: Row) -> dict[str, Any]:
    """A source as it is cited, with the surrounding words."""
    return {
        **{key: str(source[key]) for key in ("before", "text", "after")},
        "id": source["id"],
        "title": str(source["title"] or source["id"]),
        "author": None if source["author"] is None else str(source["author"]),
        "year": source["year"],
    }
