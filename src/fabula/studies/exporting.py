"""Export answers as measurements, and answers and people as files for other programs.

What counts is exported, of active participants: a measurement names the document, the rubric, the
item and the participant by number. Answers that were retired or withdrawn, or given by a removed
participant, are excluded; the history stays in the database.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from fabula.core import __version__
from fabula.core.errors import InputError, as_text
from fabula.core.packages import pyarrow
from fabula.core.store import dump_json, measurement_row, write_whole
from fabula.core.types import Measurement, Signature
from fabula.raters.labels import pair_key
from fabula.studies.assigning import Assignment, order_of
from fabula.studies.database import IS_ACTIVE, answers, assignments, participants, time_of
from fabula.studies.design import StudyDesign
from fabula.studies.forms import AGAIN, BEST, CHECK, TIE, WHY, WORST, Answers, Key, pages_of
from fabula.studies.participants import Invitation, pseudonym
from fabula.studies.quality import PageTime, Standing
from fabula.studies.units import Units
from fabula.text.feedback_pieces import OWN_FEEDBACK

_COLUMNS = (
    "id", "rubric", "item", "rater", "value", "missing_reason", "rationale", "details", "signature",
)  # fmt: skip
_NOT_OWN = ("id", "name", "facts")
Row = dict[str, Any]
_MOST_ROWS = 1_048_576
"""Maximum number of rows in a sheet, including the header."""


def export(
    connection: Connection, design: StudyDesign, units: Units, *, unfinished: bool = False
) -> Iterator[Measurement]:
    """Yield measurements by participant and unit; unsubmitted ones only on request."""
    states = ("done", "open", "returned") if unfinished else ("done",)
    wanted = select(assignments).join(participants)
    wanted = wanted.where(assignments.c.state.in_(states), IS_ACTIVE)
    order = assignments.c.participant_id, assignments.c.id
    rows = connection.execute(wanted.order_by(*order)).all()
    # The current answers by assignment, with the time each was saved, in one query.
    saved: dict[int, dict[Key, tuple[str, int]]] = {}
    query = select(answers).order_by(answers.c.id)
    for _, assignment_id, part, item, value, saved_ms in connection.execute(query):
        current = saved.setdefault(assignment_id, {})
        if value:
            current[part, item] = value, saved_ms
        else:
            current.pop((part, item), None)
    for row in rows:
        held = Assignment(row.id, row.participant_id, units[row.unit], order_of(row), row.page)
        measurements_of = _of_pairs if design.kind == "pairs" else _of_assignment
        yield from measurements_of(design, held, saved.get(row.id, {}), row.state)


def _of_assignment(
    design: StudyDesign, held: Assignment, kept: Mapping[Key, tuple[str, int]], state: str
) -> Iterator[Measurement]:
    current: Answers = {key: value for key, (value, _) in kept.items()}
    for page in pages_of(design, len(held.unit.documents)):
        applicable = page.applicable(current, held.unit.facts)
        for question in page.questions:
            value = current.get(question.key)
            if question.part in (CHECK, AGAIN) or (question.is_optional and value is None):
                continue
            reason = None
            if value is None:
                reason = "no_answer" if question in applicable else "not_asked"
            rubric = OWN_FEEDBACK if question.rubric is None else question.rubric.key
            part = question.part if question.part.isdecimal() else "1"
            document = held.unit.documents[held.document(part)]
            details: dict[str, object] = {"unit": held.unit.key, "place": int(part), "state": state}
            read = None if value is None else question.item.scale.read(value)
            if question.rubric is None:
                # What a labeller has to know about the story it concerns.
                known = ("story_id", "method")
                details |= {n: document.meta[n] for n in known if n in document.meta}
            if value is not None:
                details["saved"] = time_of(kept[question.key][1])
            yield Measurement(
                document_id=document.id,
                rubric=rubric,
                item=question.item.id,
                rater=pseudonym(held.participant_id),
                value=read,
                missing_reason=reason,
                evidence=(),
                rationale=current.get(question.why),
                signature=_signature(design, rubric),
                details=details,
            )


def _of_pairs(
    design: StudyDesign, held: Assignment, kept: Mapping[Key, tuple[str, int]], state: str
) -> Iterator[Measurement]:
    """Yield measurements of stories side by side: one for every two that an answer compares, or one
    for the whole set if an answer is missing."""
    documents = held.unit.documents
    for item in design.rubric.items:
        reasons = [(part, item.id + WHY) for part in ("unit", BEST)]
        why = next((kept[key][0] for key in reasons if key in kept), None)
        details = {"unit": held.unit.key, "state": state}
        whole = Measurement(
            document_id=held.unit.key,
            rubric=design.rubric.key,
            item=item.id,
            rater=pseudonym(held.participant_id),
            value=None,
            missing_reason="no_answer",
            evidence=(),
            rationale=why,
            signature=_signature(design, design.rubric.key),
            details=details,
        )
        parts = [part for part in ("unit", BEST, WORST) if (part, item.id) in kept]
        chosen = {part: kept[part, item.id] for part in parts}
        saved = time_of(max((at_ms for _, at_ms in chosen.values()), default=None))
        # The index of the document that each part names.
        places = {
            part: None if answer == TIE else held.order[int(answer[-1]) - 1]
            for part, (answer, _) in chosen.items()
        }
        # Comparisons: the indexes of two documents and the index of the preferred one.
        compared: list[tuple[tuple[int, int], int | None]]
        if design.at_once == 2:
            is_whole = "unit" in places
            compared = [((0, 1), places["unit"])] if is_whole else []
        else:
            best, worst = places.get(BEST), places.get(WORST)
            worst = None if worst == best else worst
            is_whole = best is not None and worst is not None
            pairs = preferences(best, worst, design.at_once)
            compared = [((min(two), max(two)), two[0]) for two in pairs]
        for pair, preferred in compared:
            key = pair_key(*(documents[place] for place in pair))
            value = None if preferred is None else documents[preferred].id
            reason = "no_preference" if preferred is None else None
            more = {**details, "orders": said_of(pair, preferred, held.order), "saved": saved}
            yield replace(whole, document_id=key, value=value, missing_reason=reason, details=more)
        if not is_whole:
            yield whole


def preferences(best: int | None, worst: int | None, n: int) -> Iterator[tuple[int, int]]:
    """Yield the indexes of preferred and other documents in an answer about n; None: unanswered."""
    others = [place for place in range(n) if place not in (best, worst)]
    if best is not None:
        yield from ((best, place) for place in others)
        if worst is not None:
            yield best, worst
    if worst is not None:
        yield from ((place, worst) for place in others)


def said_of(pair: tuple[int, int], preferred: int | None, order: Sequence[int]) -> list[str | None]:
    """Return an answer about two documents, or neither, in a judge's format: [straight, turned]."""
    first, second = pair
    is_straight = order.index(first) < order.index(second)
    shown_first = first if is_straight else second
    side = "tie" if preferred is None else "A" if preferred == shown_first else "B"
    return [side, None] if is_straight else [None, side]


def _signature(design: StudyDesign, rubric: str) -> str:
    asked = f"{design.kind}@{design.digest}"
    return str(Signature.of("study", id=design.id, rubric=rubric, design=asked, v=__version__))


def write_measurements(found: Sequence[Measurement], path: Path) -> None:
    """Write complete measurements, one per row, in the format of the file's ending.

    Outside JSON, details are JSON; in CSV and Parquet, whose columns have a type, values are text.
    """
    rows = [measurement_row(measurement) for measurement in found]
    if path.suffix != ".jsonl":
        rows = [row | {"details": dump_json(row["details"])} for row in rows]
    if path.suffix in (".csv", ".parquet"):
        rows = [row | {"value": _text(row["value"])} for row in rows]
    _write(rows, _COLUMNS, path, frozenset({"value", "rationale"}))


def write_wide(found: Sequence[Measurement], path: Path) -> None:
    """Write a row for each person and document, with a column for each item and each reason.

    Missing values are empty or null; the reasons are only in the other format.
    """
    rows: dict[tuple[str, str, str], Row] = {}
    items: dict[str, None] = {}
    for mark in found:
        details = mark.details
        begin = {"rater": mark.rater, "unit": details["unit"], "id": mark.document_id}
        begin |= {"place": details.get("place"), "state": details["state"]}
        row = rows.setdefault((mark.rater, str(details["unit"]), mark.document_id), begin)
        items[mark.item] = None
        row[mark.item] = mark.value if path.suffix == ".xlsx" else _text(mark.value)
        if mark.rationale is not None:
            items[f"{mark.item}.why"] = None
            row[f"{mark.item}.why"] = mark.rationale
    columns = ("rater", "unit", "id", "place", "state", *items)
    _write(list(rows.values()), columns, path, frozenset(items))


def write_people(standings: Sequence[Standing], path: Path) -> None:
    """Write a row for each participant: when they came, what they did, how long it took."""
    rows = []
    for person in standings:
        kept = {name: getattr(person, name) for name in Standing.__slots__ if name not in _NOT_OWN}
        facts = asdict(person.facts)
        checks, about = facts.pop("checks"), facts.pop("about")
        about_self = {f"about.{item}": value for item, value in about.items()}
        rows.append({"rater": person.name, **kept, **facts, **checks, **about_self})
    columns = tuple(dict.fromkeys(name for row in rows for name in row)) or ("rater",)
    words = {"note", *(name for name in columns if name.startswith("about."))}
    _write(rows, columns, path, frozenset(words))


def write_times(times: Sequence[PageTime], path: Path) -> None:
    """Write a row for each opened page: how long the participant spent on it."""
    _write([asdict(row) for row in times], tuple(PageTime.__slots__), path, frozenset())


def invitations_csv(invitations: Sequence[Invitation], address: str) -> bytes:
    """Return a CSV row for each invitation: number, note, link to the study at this address."""
    rows: list[Row] = [person.row(address) for person in invitations]
    return _csv(rows, ("participant", "note", "link"), frozenset({"note"}))


def _write(rows: Sequence[Row], columns: Sequence[str], path: Path, words: frozenset[str]) -> None:
    """words: columns of participants' text, never formulas; escaping others would alter ids."""
    if path.suffix == ".jsonl":
        data = json_lines(rows)
    elif path.suffix == ".csv":
        data = _csv(rows, columns, words)
    elif path.suffix == ".xlsx":
        # Return a workbook of one sheet: numbers as numbers, all else as text, never formulas.
        import xlsxwriter

        if len(rows) >= _MOST_ROWS:
            raise InputError(
                f"{path}: a sheet has at most {_MOST_ROWS - 1:,} rows; choose another format"
            )
        sink = io.BytesIO()
        with xlsxwriter.Workbook(sink, {"in_memory": True}) as book:
            # Otherwise the same answers would produce different bytes each time.
            book.set_properties({"created": datetime(2000, 1, 1)})
            sheet = book.add_worksheet("answers")
            lines = [columns, *([row.get(name) for name in columns] for row in rows)]
            for place, cells in enumerate(lines):
                for column, cell in enumerate(cells):
                    if isinstance(cell, str):
                        sheet.write_string(place, column, cell.encode(errors="replace").decode())
                    elif cell is not None:
                        sheet.write_number(place, column, cell)
            sheet.freeze_panes(1, 0)
        data = sink.getvalue()
    else:
        pa = pyarrow(what=f"{path}: writing .parquet")
        pq = pyarrow("parquet", what=f"{path}: writing .parquet")
        arrays = [pa.array([row.get(name) for row in rows]) for name in columns]
        # A column with no answers is a text column too.
        arrays = [a.cast(pa.string()) if pa.types.is_null(a.type) else a for a in arrays]
        sink = io.BytesIO()
        pq.write_table(pa.table(arrays, names=list(columns)), sink)
        data = sink.getvalue()
    write_whole(path, data, is_private=True)


def json_lines(rows: Iterable[Row]) -> bytes:
    return "".join(dump_json(row) + "\n" for row in rows).encode(errors="replace")


def _csv(rows: Sequence[Row], columns: Sequence[str], words: frozenset[str]) -> bytes:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        cells = {name: "" if row.get(name) is None else str(row[name]) for name in columns}
        writer.writerow([as_text(text) if name in words else text for name, text in cells.items()])
    return file.getvalue().encode(errors="replace")


def _text(value: Any) -> str | None:
    return f"{value:g}" if isinstance(value, float) else None if value is None else str(value)
