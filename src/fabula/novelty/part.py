"""Originality as a part of the report, and its own page: a text with its borrowed passages marked.

The page is one file without scripts. It is built from the rows of `scores.jsonl` and the texts.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from markupsafe import Markup

from fabula.core.errors import explain
from fabula.core.types import Document
from fabula.novelty.passages import BorrowedPassage
from fabula.novelty.scores import first_passages, ranked_passages, to_row
from fabula.novelty.tables import passages_table, ranked_sheet
from fabula.show.norms import HIGH, LOW, bands_of
from fabula.show.page import Borrowed, Gloss, cut_text, write_page_file
from fabula.show.parts import (
    Finding,
    FindingKey,
    Marks,
    NumbersPart,
    Review,
    Said,
    TextReview,
    counted,
    finding_at,
    number_word,
    papers,
)
from fabula.show.sheet import Block
from fabula.stats.norms import GroupNumbers
from fabula.text.emphasis import unmarked

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
_MAX_PANELS = 60
_WEIGHTS = {"passage": 1.1, "near": 1.05}

Row = Mapping[str, Any]


def write_page(
    path: Path, texts: Sequence[tuple[Document, dict[str, Any]]], n_texts: int, against: str
) -> None:
    """Write the page of these texts, each with its row of scores; `n_texts` counts all scored,
    `against` is the size of the reference."""
    articles = []
    for number, (document, row) in enumerate(texts, 1):
        article = article_of(number, document, row)
        articles.append(article | {"paragraphs": cut_text(document.text, article["borrowed"])})
    page = {
        "title": articles[0]["title"] if len(articles) == 1 else f"{n_texts:,} texts",
        "articles": articles,
        "n_left_out": n_texts - len(articles),
        "against": against,
        "signature": texts[0][1]["signature"],
    }
    write_page_file(path, "novelty/page.html.j2", page)


def article_of(number: int, document: Document, row: dict[str, Any]) -> dict[str, Any]:
    """A text with its row of scores, ready to be shown."""
    levels = {int(level): value for level, value in row["uniqueness"].items()}
    low, high = min(levels), max(levels)
    passages = passages_of(row, document.text)
    commonplaces = commonplaces_of(row, document.text)
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
        "borrowed": borrowed_of(row, document.text, passages, commonplaces),
        "sources": sources[:_MAX_SOURCES],
        "n_more_sources": max(0, len(sources) - _MAX_SOURCES),
        "near": near_of(row, document.text),
        "spread": _spread(row.get("spread")),
        "notices": _notices(row, lowest),
        # For each passage the row of its first source.
        "rows": {number: named[id_] for number, id_ in firsts.items() if id_ in named},
        # The margin has the sources, where a review has points of feedback.
        "has_notes": False,
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


def passages_of(row: Row, text: str) -> list[Borrowed]:
    """The passages of a row of scores by rank; the first are marked in the text."""
    n_most = max(_MIN_MARKS, math.ceil(row["n_words"] * MARKS_PER_1000 / 1000))
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
    quote = " ".join(unmarked(text, passage["start"], passage["end"]).split())
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


class OriginalityPart(NumbersPart):
    """How much of each text is found elsewhere, and where."""

    id, title, order, page_order = "originality", "Originality", 10, 20
    template, style = "novelty/part.html.j2", "novelty/part.css.j2"
    findings = ("passage", "near")
    colour = "of-source"
    fading = MappingProxyType({"passage": 0.8, "near": 0.7})
    metrics = (("creativity_index", "Creativity Index", ".3f"),)

    def row_of(self, text: TextReview) -> dict[str, Any]:
        return to_row(text.results[self.id])

    def blocks(self, review: Review) -> Sequence[Block]:
        passages = self._ranked(review)
        texts = [text.results[self.id].ranked for text in review.texts if self.id in text.results]
        n_common = sum(len(ranked.commonplaces) for ranked in texts if ranked is not None)
        return passages_table(first_passages(passages), len(passages), n_common)

    def sheets(self, review: Review) -> Sequence[Block]:
        return ranked_sheet(self._ranked(review))

    def _ranked(self, review: Review) -> list[dict[str, Any]]:
        return [
            passage
            for text in review.texts
            if self.id in text.results
            for passage in ranked_passages(text.document, self.row_of(text))
        ]

    def weighed(self, text: TextReview) -> Iterable[list[tuple[float, Finding]]]:
        passages = self._passages(text)
        for kind, weight in _WEIGHTS.items():
            yield [(weight, passage) for passage in passages if passage.kind == kind]

    def _passages(self, text: TextReview) -> list[Finding]:
        result = text.results.get(self.id)
        findings = []
        for number, passage in enumerate(
            result.ranked.passages if result and result.ranked else (), 1
        ):
            kind, title = "near", "Reworded"
            if 2 * passage.n_verbatim >= passage.n_words:
                kind = "passage"
                title = "Word for word" if _is_whole(passage) else "Nearly word for word"
            words = f"{passage.n_words} words"
            if passage.n_verbatim == passage.n_words:
                words += ", word for word"
                words += f" in {len(passage.runs)} runs" if len(passage.runs) > 1 else ""
            elif passage.n_verbatim:
                words += f", {passage.n_verbatim} of them word for word"
            times = f"{passage.count:,} time{'s' if passage.count != 1 else ''}"
            why = f"{words}, found {times} elsewhere."
            if passage.sources:
                document = passage.sources[0].document
                by = f", {document.author}" if document.author else ""
                more = max(0, (passage.n_documents or passage.count) - 1)
                others = f" and {more:,} more" if more else ""
                sources = f"{document.meta.get('title') or document.id}{by}{others}"
                why = f"{words}; also found in {sources}{'' if sources.endswith('.') else '.'}"
            place = passage.span.start, passage.span.end
            findings.append(finding_at(text, kind, title, place, why, number))
        return findings

    def without(self, text: TextReview, hidden: Collection[FindingKey]) -> TextReview:
        result = text.results.get(self.id)
        if result is None or result.ranked is None:
            return text
        both = zip(self._passages(text), result.ranked.passages, strict=True)
        shown = tuple(passage for finding, passage in both if finding.key not in hidden)
        return text.having(self.id, replace(result, ranked=replace(result.ranked, passages=shown)))

    def said(self, text: TextReview) -> Iterable[Said]:
        result = text.results.get(self.id)
        if result is None or result.ranked is None:
            return
        ranked, passages = result.ranked, self._passages(text)
        n_exact = sum(finding.kind == "passage" for finding in passages)
        both = zip(passages, ranked.passages, strict=True)
        is_whole = all(_is_whole(passage) for f, passage in both if f.kind == "passage")
        exactly = "word for word" if is_whole else "word for word or nearly so"
        exact = f", {number_word(n_exact).lower()} of them {exactly}" if n_exact else ""
        exact = f", {exactly}" if n_exact == len(passages) else exact
        sentence = f"{counted(len(passages), 'passage')} to check{exact}."
        if not passages:
            sentence = "No passage to check."
        elif ranked.by_chance is not None:
            shown = "fewer than 0.1" if ranked.by_chance < 0.05 else f"{ranked.by_chance:.1f}"
            sentence += f" By chance, a text of this length shows {shown}."
        yield Said(sentence, self.id, next(iter(passages), None))
        if n_common := len(ranked.commonplaces):
            yield Said(f"{counted(n_common, 'common phrase')}, hidden.", self.id)

    def view(self, number: int, text: TextReview, review: Review) -> Any:
        if self.id not in text.results:
            return None
        view = article_of(number, text.document, self.row_of(text))
        groups = review.groups_of(self.id)
        return {
            **view,
            "against": review.size,
            # The position of its Creativity Index in groups.
            "bands": bands_of(groups, "creativity_index", text.results[self.id].creativity_index),
            "curve_bands": curve_bands(groups, {t["level"]: t["x"] for t in view["ticks"]}),
        }

    def view_of_all(self, review: Review, n_linked: int) -> Any:
        """A small curve for each of the first texts."""
        panels = []
        for number, text in enumerate(review.texts[:_MAX_PANELS], 1):
            if (result := text.results.get(self.id)) is None:
                continue
            shares = {level: u for level, u in result.uniqueness.items() if u is not None}
            low, high = min(result.uniqueness), max(result.uniqueness)
            points = " ".join(
                f"{4 + 112 * (level - low) / max(1, high - low):.1f},{44 - 40 * value:.1f}"
                for level, value in shares.items()
            )
            index = result.creativity_index
            panels.append(
                {
                    "number": number if number <= n_linked else None,
                    "title": text.document.title,
                    "points": points,
                    "index": "missing" if index is None else f"{index:.2f}",
                    "label": ", ".join(f"{level}: {value:.0%}" for level, value in shares.items()),
                }
            )
        return panels

    def marks(self, view: Any) -> Marks:
        return Marks(borrowed=view["borrowed"], rows=view["rows"])

    def anchor(self, number: int, finding: Finding, view: Any) -> str:
        return f"m{number}-{finding.number}" if finding.number <= view["n_marked"] else ""

    def methods_of(self, review: Review) -> str:
        parts = self.decided(review)
        levels = parts.get("L", "")
        kind = "verbatim" if parts.get("match") == "verbatim" else "verbatim or near-verbatim"
        return (
            "Originality is the Creativity Index (Lu et al. 2024): the sum over L = "
            f"{levels.replace('-', ' to ')} of the share of words outside any run of L or more "
            f"words found ({kind}) in the reference corpus ({review.size}; "
            f"{parts.get('ref', '')}). Case was "
            f"{'folded' if parts.get('case') == 'fold' else 'kept'}, punctuation "
            f"{'dropped' if parts.get('punct') == 'drop' else 'kept'}. Missing scores were left "
            "out, never counted as 0."
        )

    def references_of(self, review: Review) -> Sequence[str]:
        return papers("lu2024salieri")


def _is_whole(passage: BorrowedPassage) -> bool:
    """Whether it is one run in the same words; between runs there may be other words."""
    return passage.n_verbatim == passage.n_words and len(passage.runs) == 1


def curve_bands(groups: Sequence[GroupNumbers], xs: Mapping[int, float]) -> list[dict[str, Any]]:
    """For each group the middle four fifths of its L-uniqueness, as a polygon over the curve.

    `xs` has the position of each level; the height is that of the curve, 128 for 0 and 14 for 1.
    """
    polygons = []
    for group in groups:
        items = {level: group.items.get(f"uniqueness_{level}") for level in xs}
        if any(spread is None for spread in items.values()):
            continue
        above = [(xs[k], spread.quantile(HIGH)) for k, spread in items.items() if spread]
        below = [(xs[k], spread.quantile(LOW)) for k, spread in reversed(items.items()) if spread]
        points = " ".join(f"{x},{128 - 114 * y:.1f}" for x, y in above + below)
        polygons.append({"kind": group.kind, "points": points, "title": group.title})
    return polygons


PARTS = (OriginalityPart(),)
