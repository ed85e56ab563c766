"""A review as tables for the terminal and for LaTeX, and as plain values for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fabula.measures.line_read import LINE_KINDS
from fabula.measures.scores import RankedPassage, first_passages, to_row
from fabula.presentation.findings_view import first_lines, quoted
from fabula.presentation.originality_tables import passages_table, ranked_sheet
from fabula.presentation.sheet import Block, Cell, Column, Missing, Sheet
from fabula.review import Review, TextReview, numbers_of_review
from fabula.review.by_chapter import by_chapter
from fabula.review.comparing import share_below
from fabula.review.findings import findings_of, said_of
from fabula.review.report_parts import OWN_PARTS, Number
from fabula.store import measurement_row
from fabula.web import visible

_MAX_COLUMNS = 6
_MAX_CHARS = 60


def review_tables(review: Review) -> list[Block]:
    """Numbers as rows, texts as columns, at most six; then what was omitted."""
    numbers, rows = numbers_of_review(review)
    parts: list[Block] = _first(review.texts[0], review) if len(review.texts) == 1 else []
    is_class = review.together is not None and review.together.is_class
    parts += _together(review) if is_class else []
    parts += [_beside(review), ""] if numbers else []
    if len(rows) > _MAX_COLUMNS and numbers:
        n_more = len(rows) - _MAX_COLUMNS
        parts.append(f"and {n_more:,} more texts; the page and the JSON output have them all")
    if len(review.texts) == 1 and numbers:
        parts += [
            f"{len(advice.points)} points to revise, by {advice.model.partition('@')[0]}"
            for advice in review.texts[0].advice
        ]
    parts += _passages(review)
    if len(review.texts) == 1:
        parts += _phrases_found(review.texts[0])
    parts += [] if is_class else _together(review)
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
        Column(
            "right",
            ".0%",
            of=lambda one: LINE_KINDS[one.kind].precision if one.kind in LINE_KINDS else None,
        ),
        Column("place", of=lambda one: quoted(text.document.text, one.start, one.end, _MAX_CHARS)),
        Column("why", of=lambda one: visible(one.why)),
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


def _together(review: Review) -> list[Block]:
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
            columns = [Column("phrase"), Column("times", ",")]
            rows: list[list[Cell]] = [[use.phrase, len(use.places)] for use in uses]
            if uses[0].said:
                columns.append(Column("used by", name="used_by"))
                rows = [[*row, use.said] for row, use in zip(rows, uses, strict=True)]
            sheet = Sheet("phrases", columns, rows, about=("list", name), many="phrases")
            parts += ["", sheet, NO_DETECTOR]
    return parts


def _passages(review: Review) -> list[Block]:
    """The first borrowed passages of all texts."""
    found = _ranked(review)
    ranked = [one.originality.ranked for one in review.texts if one.originality is not None]
    n_common = sum(len(one.commonplaces) for one in ranked if one is not None)
    return passages_table(first_passages(found), len(found), n_common)


def _ranked(review: Review) -> list[RankedPassage]:
    """The borrowed passages of all texts, each text's by rank."""
    return [
        passage
        for text in review.texts
        if text.originality is not None
        for passage in RankedPassage.of_row(text.document, to_row(text.originality))
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
        said.setdefault(kinds[group], f"{_share(share)} of {kinds[group]}")
    return f"above {', '.join(said.values())}" if said else ""


def _share(share: float) -> str:
    """Never 0 or 100 %: a group is a sample, so others may lie beyond its range."""
    percent = round(100 * share)
    return "<1%" if percent == 0 else ">99%" if percent == 100 else f"{percent}%"


def review_json(review: Review) -> dict[str, Any]:
    """Everything, as plain values."""
    return {
        "texts": [_text_json(text, review) for text in review.texts],
        **(
            {"corrected": [one.to_json() for one in review.corrected.values()]}
            if review.corrected
            else {}
        ),
        "left_out": [asdict(entry) for entry in review.left_out],
        "signatures": dict(review.signatures),
        **({"together": review.together.to_json()} if review.together else {}),
    }


def _text_json(text: TextReview, review: Review) -> dict[str, Any]:
    content: dict[str, Any] = {"id": text.document.id}
    for part in OWN_PARTS:
        content |= {} if part.asks_model else part.content(text)
    content["findings"] = first_lines(text)
    for part in OWN_PARTS:
        content |= part.content(text) if part.asks_model else {}
    below: dict[str, Any] = {}
    if text.originality is not None:
        value = text.originality.creativity_index
        below |= _below(review, text, "originality", "creativity_index", value)
    if text.fluency is not None:
        below |= _below(review, text, "fluency", "bits_per_word", text.fluency.bits_per_word)
    if text.others:
        content["instruments"] = {
            name: [measurement_row(one) for one in said] for name, said in text.others.items()
        }
    for name, said in text.others.items():
        for one in said:
            if "book" in one.details:
                content["by_chapter"] = by_chapter(text, one.details["book"]["chapters"])
            if isinstance(one.value, int | float):
                found = _below(review, text, name, one.item, float(one.value))
                below |= {f"{name}.{item}": shares for item, shares in found.items()}
    content["share_of_group_below"] = below
    return content


def _below(
    review: Review, text: TextReview, part: str, item: str, value: float | None
) -> dict[str, Any]:
    if value is None or part not in review.signatures:
        return {}
    return {item: dict(share_below(review, text, part, item, value))}


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
