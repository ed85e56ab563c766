"""A review as tables for the terminal and for LaTeX, and as plain values for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fabula.measures.scores import first_passages, ranked_passages, to_row
from fabula.presentation.findings_view import first_lines, place_columns
from fabula.presentation.originality_tables import passages_table, ranked_sheet
from fabula.presentation.sheet import Block, Cell, Column, Missing, Sheet
from fabula.review import Review, TextReview, numbers_of_review
from fabula.review.comparing import by_chapter, share_below
from fabula.review.findings import findings_of, said_of
from fabula.review.report_parts import OWN_PARTS, Number
from fabula.store import measurement_row
from fabula.web import visible

_MAX_COLUMNS = 6


def review_tables(review: Review) -> list[Block]:
    """Numbers as rows, texts as columns, at most six; then what was omitted."""
    numbers, rows = numbers_of_review(review)
    parts: list[Block] = _first(review.texts[0], review) if len(review.texts) == 1 else []
    is_class = review.together is not None and review.together.is_class
    parts += together_blocks(review) if is_class else []
    parts += [_beside(review), ""] if numbers else []
    if len(rows) > _MAX_COLUMNS and numbers:
        n_more = len(rows) - _MAX_COLUMNS
        parts.append(f"and {n_more:,} more texts; the page and the JSON output have them all")
    if len(review.texts) == 1 and numbers:
        parts += [
            f"{len(advice.points)} points to revise, by {advice.model.partition('@')[0]}"
            for advice in review.texts[0].advice
        ]
    passages = _ranked(review)
    ranked = [one.originality.ranked for one in review.texts if one.originality is not None]
    n_common = sum(len(one.commonplaces) for one in ranked if one is not None)
    parts += passages_table(first_passages(passages), len(passages), n_common)
    if len(review.texts) == 1:
        parts += _phrases_found(review.texts[0])
    parts += [] if is_class else together_blocks(review)
    parts += _corrected(review)
    return parts + [
        f"not included: {entry.part}, {entry.reason}; to include it: {entry.remedy}"
        for entry in review.left_out
    ]


def _first(text: TextReview, review: Review) -> list[Block]:
    """What to look at first."""
    found = findings_of(text)
    if not found:
        return []
    columns = [
        Column("look at", of=lambda one: one.title.lower()),
        Column("line", "d"),
        *place_columns(text.document.text),
    ]
    said = " ".join(visible(one.sentence) for one in said_of(text))
    return [said, "", Sheet.of("first", found, columns), ""]


def _corrected(review: Review) -> list[Block]:
    """Each judge's means over all texts, next to what experts would have said."""
    if review.rubric is None or not review.corrected:
        return []
    from fabula.presentation.correction_tables import correction_tables

    tables = [correction_tables(one, review.rubric) for one in review.corrected.values()]
    return [block for table in tables for block in ("", *table)]


def together_blocks(review: Review) -> list[Block]:
    """Which texts resemble which, and how similar all texts are."""
    if review.together is None:
        return []
    from fabula.presentation.diversity_tables import together_tables

    texts = {text.document.id: text.document.text for text in review.texts}
    return [*together_tables(review.together, texts, review.found_elsewhere()), ""]


def _phrases_found(text: TextReview) -> list[Block]:
    """The phrases of each list that a text contains."""
    from fabula.measures.phrase_list import NO_DETECTOR, uses_of

    parts: list[Block] = []
    for name, said in text.others.items():
        uses = [use for one in said for use in uses_of(one)]
        if uses:
            columns = [Column("phrase"), Column("times", ",", of=lambda use: len(use.places))]
            if uses[0].said:
                columns.append(Column("used by", of="said"))
            sheet = Sheet.of("phrases", uses, columns, about=("list", name), many="phrases")
            parts += ["", sheet, NO_DETECTOR]
    return parts


def _ranked(review: Review) -> list[dict[str, Any]]:
    """The borrowed passages of all texts, each text's by rank."""
    return [
        passage
        for text in review.texts
        if text.originality is not None
        for passage in ranked_passages(text.document, to_row(text.originality))
    ]


def _beside(review: Review) -> Sheet:
    """The first texts side by side; a single one with its position among the groups."""
    numbers, rows = numbers_of_review(review)
    shown = rows[:_MAX_COLUMNS]
    is_placed = len(review.texts) == 1
    columns = [Column("", name="number")]
    columns += [Column(text.document.id, "g") for text in review.texts[:_MAX_COLUMNS]]
    columns += [Column("", name="place")] * is_placed
    cells: list[list[Cell]] = [
        [
            number.title,
            *(_cell(row, number) for row in shown),
            *([_place(review, number, rows[0].get(number.key))] if is_placed else []),
        ]
        for number in numbers
    ]
    return Sheet("numbers", columns, cells, forms=[number.form for number in numbers])


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
    said: dict[str, str] = {}
    for group, share in below.items():
        percent = round(100 * share)
        # Never 0 or 100 %: a group is a sample, so others may lie beyond its range.
        shown = "<1%" if percent == 0 else ">99%" if percent == 100 else f"{percent}%"
        said.setdefault(kinds[group], f"{shown} of {kinds[group]}")
    return f"above {', '.join(said.values())}" if said else ""


def review_json(review: Review) -> dict[str, Any]:
    """Everything, as plain values."""
    content: dict[str, Any] = {"texts": [_text_json(text, review) for text in review.texts]}
    if review.corrected:
        content["corrected"] = [one.to_json() for one in review.corrected.values()]
    content["left_out"] = [asdict(entry) for entry in review.left_out]
    content["signatures"] = dict(review.signatures)
    if review.together:
        content["together"] = review.together.to_json()
    return content


def _text_json(text: TextReview, review: Review) -> dict[str, Any]:
    content: dict[str, Any] = {"id": text.document.id}
    for part in OWN_PARTS:
        content |= {} if part.asks_model else part.content(text)
    content["findings"] = first_lines(text)
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
            name: [measurement_row(one) for one in said] for name, said in text.others.items()
        }
    for name, said in text.others.items():
        for one in said:
            if "book" in one.details:
                content["by_chapter"] = by_chapter(text, one.details["book"]["chapters"])
            if isinstance(one.value, int | float):
                compare(f"{name}.{one.item}", name, one.item, float(one.value))
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
    signatures = [line for one in review.signatures.values() for line in one.split("\n")]
    parts: list[Block] = [*signatures, Sheet("numbers", columns, cells)]
    return [*parts, *ranked_sheet(_ranked(review)), *_corrected(review)]
