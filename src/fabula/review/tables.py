"""A review as tables for the terminal and for LaTeX, and as plain values for JSON.

And what to look at first, and the notes on lines, as pages and tables show them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fabula.core.errors import explain
from fabula.core.store import measurement_row
from fabula.core.types import Document
from fabula.novelty.scores import first_passages, ranked_passages, to_row
from fabula.novelty.tables import passages_table, ranked_sheet
from fabula.review.findings import Finding, findings_of, marked_findings, marked_notes, said_of
from fabula.review.parts import (
    NOTES_PER_1000,
    OWN_PARTS,
    Number,
    Review,
    TextReview,
    by_chapter,
    numbers_of_review,
    share_below,
)
from fabula.show.page import Listed, Note
from fabula.show.sheet import Block, Cell, Column, Missing, Sheet
from fabula.style.lines import LINE_KINDS, LineReview, line_of
from fabula.web import visible

_MAX_COLUMNS = 6
_QUOTE_CHARS = 110
_CELL_CHARS = 60
_AROUND_CHARS = 40
_MAX_ALONE = 2
_COLOURS = {"passage": "of-source", "near": "of-source", "point": "of-model"}
"""CSS classes of findings; those of others are `of-line`."""


def review_tables(review: Review) -> list[Block]:
    """Numbers as rows, texts as columns, at most six; then what was omitted."""
    numbers, rows = numbers_of_review(review)
    alone = review.texts[0] if len(review.texts) == 1 else None
    parts: list[Block] = []
    if alone is not None and (findings := findings_of(alone)):
        # What to look at first.
        title = Column("look at", of=lambda finding: finding.title.lower())
        columns = [title, *place_columns(alone.document.text)]
        sentences = " ".join(visible(s.sentence) for s in said_of(alone))
        parts += [sentences, "", Sheet.of("first", findings, columns), ""]
    is_class = review.together is not None and review.together.is_class
    parts += together_blocks(review) if is_class else []
    if numbers:
        # The first texts side by side; a single one with its position among the groups.
        columns = [Column("", name="number")]
        columns += [Column(text.document.id, "g") for text in review.texts[:_MAX_COLUMNS]]
        cells: list[list[Cell]] = []
        for number in numbers:
            shown = [_cell(row, number) for row in rows[:_MAX_COLUMNS]]
            place = [] if alone is None else [_place(review, number, rows[0].get(number.key))]
            cells.append([number.title, *shown, *place])
        columns += [Column("", name="place")] * (alone is not None)
        parts += [Sheet("numbers", columns, cells, forms=[number.form for number in numbers]), ""]
    if len(rows) > _MAX_COLUMNS and numbers:
        n_more = len(rows) - _MAX_COLUMNS
        parts.append(f"and {n_more:,} more texts; the page and the JSON output have them all")
    if alone is not None and numbers:
        parts += [
            f"{len(advice.points)} points to revise, by {advice.model.partition('@')[0]}"
            for advice in alone.advice
        ]
    passages = _ranked(review)
    ranked = [text.originality.ranked for text in review.texts if text.originality is not None]
    n_common = sum(len(p.commonplaces) for p in ranked if p is not None)
    parts += passages_table(first_passages(passages), len(passages), n_common)
    from fabula.groups.phrase_list import NO_DETECTOR, uses_of

    # The phrases of each list that the text contains.
    for name, measured in alone.others.items() if alone is not None else ():
        if uses := [use for m in measured for use in uses_of(m)]:
            columns = [Column("phrase"), Column("times", ",", of=lambda use: len(use.places))]
            if uses[0].said:
                columns.append(Column("used by", of="said"))
            sheet = Sheet.of("phrases", uses, columns, about=("list", name), many="phrases")
            parts += ["", sheet, NO_DETECTOR]
    parts += [] if is_class else together_blocks(review)
    parts += _corrected(review)
    return parts + [
        f"not included: {entry.part}, {entry.reason}; to include it: {entry.remedy}"
        for entry in review.left_out
    ]


def _corrected(review: Review) -> list[Block]:
    """Each judge's means over all texts, next to what experts would have said."""
    if review.rubric is None or not review.corrected:
        return []
    from fabula.raters.tables import correction_tables

    tables = [correction_tables(c, review.rubric) for c in review.corrected.values()]
    return [block for table in tables for block in ("", *table)]


def together_blocks(review: Review) -> list[Block]:
    """Which texts resemble which, and how similar all texts are."""
    if review.together is None:
        return []
    from fabula.groups.tables import together_tables

    texts = {text.document.id: text.document.text for text in review.texts}
    return [*together_tables(review.together, texts, review.found_elsewhere()), ""]


def _ranked(review: Review) -> list[dict[str, Any]]:
    return [
        passage
        for text in review.texts
        if text.originality is not None
        for passage in ranked_passages(text.document, to_row(text.originality))
    ]


def _cell(row: dict[str, float | None], number: Number) -> Cell:
    """None if it was not measured for this text at all."""
    value = row.get(number.key)
    return Missing() if value is None and number.key in row else value


def _place(review: Review, number: Number, value: float | None) -> str:
    """`above 83 % of people`: for the first group of people and the first of models."""
    signature = review.signatures.get(number.part)
    if signature is None or value is None or number.part == "verdicts":
        return ""
    below = share_below(review, review.texts[0], number.part, number.item, value)
    kinds = {g.group: g.kind for g in review.groups.find(signature).groups}
    places: dict[str, str] = {}
    for group, share in below.items():
        percent = round(100 * share)
        # Never 0 or 100 %: a group is a sample, so others may lie beyond its range.
        shown = "<1%" if percent == 0 else ">99%" if percent == 100 else f"{percent}%"
        places.setdefault(kinds[group], f"{shown} of {kinds[group]}")
    return f"above {', '.join(places.values())}" if places else ""


def review_json(review: Review) -> dict[str, Any]:
    """Everything, as plain values."""
    content: dict[str, Any] = {"texts": [_text_json(text, review) for text in review.texts]}
    if review.corrected:
        content["corrected"] = [correction.to_json() for correction in review.corrected.values()]
    content["left_out"] = [asdict(entry) for entry in review.left_out]
    content["signatures"] = dict(review.signatures)
    if review.together:
        content["together"] = review.together.to_json()
    return content


def _text_json(text: TextReview, review: Review) -> dict[str, Any]:
    content: dict[str, Any] = {"id": text.document.id}
    for part in OWN_PARTS:
        content |= {} if part.asks_model else part.content(text)
    content["findings"] = {
        "said": [s.sentence for s in said_of(text)],
        "first": [
            {
                "kind": finding.kind,
                "line": finding.line,
                "start": finding.start,
                "end": finding.end,
                "text": text.document.text[finding.start : finding.end],
                "why": finding.why,
                "precision": precision_of(finding.kind),
            }
            for finding in findings_of(text)
        ],
    }
    for part in OWN_PARTS:
        content |= part.content(text) if part.asks_model else {}
    below: dict[str, Any] = {}

    def compare(key: str, part: str, item: str, value: float | None) -> None:
        if value is not None and part in review.signatures:
            below[key] = dict(share_below(review, text, part, item, value))

    if text.originality is not None:
        index = text.originality.creativity_index
        compare("creativity_index", "originality", "creativity_index", index)
    if text.fluency is not None:
        compare("bits_per_word", "fluency", "bits_per_word", text.fluency.bits_per_word)
    if text.others:
        content["instruments"] = {
            name: [measurement_row(m) for m in measured] for name, measured in text.others.items()
        }
    for name, measured in text.others.items():
        for measurement in measured:
            if "book" in measurement.details:
                content["by_chapter"] = by_chapter(text, measurement.details["book"]["chapters"])
            if isinstance(measurement.value, int | float):
                item = measurement.item
                compare(f"{name}.{item}", name, item, float(measurement.value))
    content["share_of_group_below"] = below
    return content


def review_sheets(review: Review) -> list[Block]:
    """The numbers of all texts, and all borrowed passages, for LaTeX and CSV."""
    numbers, rows = numbers_of_review(review)
    columns = [Column("text"), *(Column(n.title, n.form, name=n.key) for n in numbers)]
    cells: list[list[Cell]] = [
        [text.document.id, *(_cell(row, number) for number in numbers)]
        for text, row in zip(review.texts, rows, strict=True)
    ]
    signatures = [line for signed in review.signatures.values() for line in signed.split("\n")]
    parts: list[Block] = [*signatures, Sheet("numbers", columns, cells)]
    return [*parts, *ranked_sheet(_ranked(review)), *_corrected(review)]


def noted_places(number: int, text: TextReview) -> list[Listed]:
    """The notes as marks in the text, each linked to its row."""
    return [
        Listed(note.start, note.end, 0, note.why, f"n{number}-{k}", f"l{number}-{k}")
        for k, note in enumerate(marked_notes(text), 1)
    ]


def lines_view(number: int, text: TextReview) -> dict[str, Any] | None:
    """The notes on the lines of a text, by kind; None if they were not read."""
    if text.lines is None:
        return None
    whole = text.document.text
    rows: dict[str, list[dict[str, Any]]] = {kind: [] for kind in LINE_KINDS}
    notes = marked_notes(text)
    for k, note in enumerate(notes, 1):
        rows[note.kind].append(
            {
                "id": f"n{number}-{k}",
                "href": f"l{number}-{k}",
                "line": line_of(whole, note.start),
                "quote": quoted(whole, note.start, note.end),
                "why": note.why,
            }
        )
    missing = text.lines.missing_reason
    return {
        "kinds": [
            {"title": kind.title, "right": kind.shown, "notes": rows[kind.id]}
            for kind in LINE_KINDS.values()
            if rows[kind.id]
        ],
        "n_more": len(text.lines.notes) - len(notes),
        "missing": "" if missing is None else explain(missing),
        "per_thousand": NOTES_PER_1000,
    }


def line_tables(
    documents: Sequence[Document], reviews: Sequence[LineReview], per_thousand: int
) -> list[Block]:
    """For each draft its first notes in text order, and the number of each kind."""
    parts: list[Block] = []
    for document, review in zip(documents, reviews, strict=True):
        title = document.title
        if review.missing_reason is not None:
            parts += [f"{title}: not read, {explain(review.missing_reason)}", ""]
            continue
        counts = Counter(note.kind for note in review.notes)
        kinds = ", ".join(f"{counts[kind]} {kind}" for kind in LINE_KINDS if counts[kind])
        parts += [f"{title}: {review.n_words:,} words; {kinds or 'nothing to note'}", ""]
        if shown := review.first(per_thousand):
            columns = place_columns(document.text)
            columns.insert(1, Column("kind", of=lambda note: LINE_KINDS[note.kind].title.lower()))
            parts += [Sheet.of("notes", shown, columns, about=("id", document.id)), ""]
        if n_left := len(review.notes) - len(shown):
            parts += [f"{n_left:,} more; `per_thousand` 0 shows all", ""]
    return [*parts, *dict.fromkeys(review.signature for review in reviews)]


def place_columns(text: str) -> list[Column]:
    """Its line, how often such a note is right, its place in the text, and why it is one."""
    return [
        Column("line", "d", of=lambda note: line_of(text, note.start)),
        Column("right", ".0%", of=lambda note: precision_of(note.kind)),
        Column("place", of=lambda note: quoted(text, note.start, note.end, _CELL_CHARS)),
        Column("why", of=lambda note: visible(note.why)),
    ]


def precision_of(kind: str) -> float | None:
    """How often a note of this kind is right; None for other findings."""
    return LINE_KINDS[kind].precision if kind in LINE_KINDS else None


def findings_view(
    number: int, text: TextReview, review: Review, notes: Sequence[Note], n_marked: int
) -> dict[str, Any]:
    """The first screen: sentences, places in order, and an overview along the page's edge.

    n_marked: how many borrowed passages are marked in the text.
    """

    def place_of(finding: Finding) -> str:
        """Where it is on the page; empty if nothing is marked for it."""
        if finding.kind in ("passage", "near"):
            return f"m{number}-{finding.number}" if finding.number <= n_marked else ""
        if finding.kind == "point":
            return f"p{number}-{notes[finding.number - 1].name}"
        return f"l{number}-{finding.number}"

    details = [measurement.details.get("book") for measurement in text.others.get("book", ())]
    book = next((row for row in details if isinstance(row, dict)), None)
    chapters = book["chapters"] if book and book["unit"] == "chapter" else []

    def where(finding: Finding) -> str:
        """The chapter of a finding in a book that has them; else its line."""
        start = finding.start
        chapter = next((c["number"] for c in chapters if c["start"] <= start < c["end"]), None)
        return f"line {finding.line}" if chapter is None else f"chapter {chapter}"

    whole, suffix = text.document.text, "" if len(review.texts) == 1 else f"-{number}"
    return {
        "said": [
            {"sentence": s.sentence, "href": place_of(s.first) if s.first else s.about + suffix}
            for s in said_of(text)
        ],
        "first": [
            {
                "title": finding.title,
                "where": where(finding),
                "quote": quoted(whole, finding.start, finding.end),
                "around": _around(whole, finding.start, finding.end),
                "why": finding.why,
                "right": right_of(finding.kind),
                "href": place_of(finding),
                "kind": _COLOURS.get(finding.kind, "of-line"),
                "at": f"{100 * finding.start / max(1, len(whole)):.2f}",
            }
            for finding in findings_of(text)
        ],
        "n_all": len(marked_findings(text)),
    }


def _around(text: str, start: int, end: int) -> tuple[str, str]:
    """The text before and after a place of one or two words, up to the paragraph's ends.

    Longer places are quoted without context.
    """
    if len(text[start:end].split()) > _MAX_ALONE:
        return "", ""
    before = text[max(0, start - _AROUND_CHARS) : start].rpartition("\n\n")[2]
    after = text[end : end + _AROUND_CHARS].partition("\n\n")[0]
    if start > _AROUND_CHARS and len(before) == _AROUND_CHARS:
        before = "… " + before.partition(" ")[2]
    if len(after) == _AROUND_CHARS and end + _AROUND_CHARS < len(text):
        after = after.rpartition(" ")[0] + " …"
    return before, after


def right_of(kind: str) -> str:
    """How often a note of this kind is right; empty if that is not known."""
    return LINE_KINDS[kind].shown if kind in LINE_KINDS else ""


def quoted(text: str, start: int, end: int, n_chars: int = _QUOTE_CHARS) -> str:
    """The words of a place on one line, truncated between words if too long."""
    words = visible(" ".join(text[start:end].split()))
    if len(words) <= n_chars:
        return words
    return (words[:n_chars].rpartition(" ")[0] or words[:n_chars]) + " …"
