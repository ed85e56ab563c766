"""A review as tables for the terminal and for LaTeX, and as plain values for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fabula.core.instruments import own_parts
from fabula.core.store import measurement_row
from fabula.review.findings import findings_of, said_of
from fabula.show.parts import Number, Review, TextReview, numbers_of_review, parts_of, share_below
from fabula.show.sheet import Block, Cell, Column, Missing, Sheet
from fabula.style.part import place_columns, precision_of
from fabula.web import visible

_MAX_COLUMNS = 6


def review_tables(review: Review) -> list[Block]:
    """Numbers as rows, texts as columns, at most six; then what was omitted."""
    numbers, rows = numbers_of_review(review)
    alone = review.texts[0] if len(review.texts) == 1 else None
    blocks: list[Block] = []
    if alone is not None and (findings := findings_of(alone)):
        # What to look at first.
        title = Column("look at", of=lambda finding: finding.title.lower())
        columns = [title, *place_columns(alone.document)]
        sentences = " ".join(visible(s.sentence) for s in said_of(alone, review))
        blocks += [sentences, "", Sheet.of("first", findings, columns), ""]
    parts = sorted(parts_of(review), key=lambda part: part.page_order)
    leading = [part for part in parts if part.leads(review)]
    blocks += [block for part in leading for block in part.blocks(review)]
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
        blocks += [Sheet("numbers", columns, cells, forms=[number.form for number in numbers]), ""]
    if len(rows) > _MAX_COLUMNS and numbers:
        n_more = len(rows) - _MAX_COLUMNS
        blocks.append(f"and {n_more:,} more texts; the page and the JSON output have them all")
    blocks += [block for part in parts if part not in leading for block in part.blocks(review)]
    return blocks + [
        f"not included: {entry.part}, {entry.reason}; to include it: {entry.remedy}"
        for entry in review.left_out
    ]


def _cell(row: dict[str, float | None], number: Number) -> Cell:
    """None if it was not measured for this text at all."""
    value = row.get(number.key)
    return Missing() if value is None and number.key in row else value


def _place(review: Review, number: Number, value: float | None) -> str:
    """`above 83 % of people`: for the first group of people and the first of models."""
    part = next(part for part in parts_of(review) if part.id == number.part)
    if value is None or not part.has_groups:
        return ""
    below = share_below(review, review.texts[0], number.part, number.item, value)
    kinds = {g.group: g.kind for g in review.groups_of(number.part)}
    places: dict[str, str] = {}
    for group, share in below.items():
        percent = round(100 * share)
        # Never 0 or 100 %: a group is a sample, so others may lie beyond its range.
        shown = "<1%" if percent == 0 else ">99%" if percent == 100 else f"{percent}%"
        places.setdefault(kinds[group], f"{shown} of {kinds[group]}")
    return f"above {', '.join(places.values())}" if places else ""


def review_json(review: Review) -> dict[str, Any]:
    """Everything, as plain values."""
    of_all = {part.id: part.content_of_all(review) for part in parts_of(review)}
    content: dict[str, Any] = {"texts": [_text_json(text, review) for text in review.texts]}
    for part in own_parts():
        content |= of_all[part.id] if part.asks_model else {}
    content["left_out"] = [asdict(entry) for entry in review.left_out]
    content["signatures"] = dict(review.signatures)
    for part in own_parts():
        content |= {} if part.asks_model else of_all[part.id]
    return content


def _text_json(text: TextReview, review: Review) -> dict[str, Any]:
    content: dict[str, Any] = {"id": text.document.id}
    for part in own_parts():
        content |= {} if part.asks_model else part.content(text)
    content["findings"] = {
        "said": [s.sentence for s in said_of(text, review)],
        "first": [
            {
                "kind": finding.kind,
                "line": finding.line,
                "where": finding.where,
                "start": finding.start,
                "end": finding.end,
                "text": text.document.text[finding.start : finding.end],
                "why": finding.why,
                "precision": precision_of(finding.kind),
            }
            for finding in findings_of(text)
        ],
    }
    for part in own_parts():
        content |= part.content(text) if part.asks_model else {}
    instruments = [i for i in parts_of(review)[len(own_parts()) :] if i.id in text.results]
    if instruments:
        content["instruments"] = {
            part.id: [measurement_row(m) for m in text.results[part.id]] for part in instruments
        }
    for part in instruments:
        content |= part.content(text)
    content["share_of_group_below"] = {
        key: dict(share_below(review, text, part.id, item, value))
        for part in parts_of(review)
        if part.id in review.signatures
        for key, (item, value) in part.compared(text).items()
        if value is not None
    }
    return content


def review_sheets(review: Review) -> list[Block]:
    """The numbers of all texts, and the parts' own tables, for LaTeX and CSV."""
    numbers, rows = numbers_of_review(review)
    columns = [Column("text"), *(Column(n.title, n.form, name=n.key) for n in numbers)]
    cells: list[list[Cell]] = [
        [text.document.id, *(_cell(row, number) for number in numbers)]
        for text, row in zip(review.texts, rows, strict=True)
    ]
    signatures = [line for signed in review.signatures.values() for line in signed.split("\n")]
    numbered = Sheet("numbers", columns, cells)
    blocks = [block for part in parts_of(review) for block in part.sheets(review)]
    return [*signatures, numbered, *blocks]
