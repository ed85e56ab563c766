"""Labels: people's answers to the items of a rubric, from any file format that has them.

A label is a measurement whose rater is a person, so everything computed from a judge's measurements
can be computed from people's. Files differ in form only: a table with a row for each answer or for
each document (CSV, JSON Lines, Parquet, XLSX), the export of a study, and the authors'
`ttcw_annotations.json`. Of two stories compared, a label says whether the first is preferred.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fabula.core.errors import InputError
from fabula.core.types import Document, Item, Measurement, Rubric
from fabula.rubrics.released import read_expert_verdicts, split_story_id
from fabula.text import read_table

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "document": ("document", "document_id", "id", "story", "story_id"),
    "item": ("item", "item_id", "test", "question"),
    "rater": ("rater", "rater_id", "expert", "annotator", "participant"),
    "value": ("value", "verdict", "answer", "label", "score", "rating"),
    "reason": ("reason", "rationale", "explanation", "comment"),
}
"""Column names by content; the first name present is used."""

_KEPT = {name for what in ("document", "rater") for name in COLUMNS[what]} | {"author"}
_BETWEEN = " : "
"""Between the ids of stories that were compared."""
_TRUE, _FALSE = ("yes", "y", "true", "1", "1.0"), ("no", "n", "false", "0", "0.0")


def read_labels(path: Path, rubric: Rubric) -> list[Measurement]:
    """Read the labels of a file on the items of a rubric.

    Raises `InputError` for a file without them, with its columns, for an item that the rubric
    lacks, an answer that its scale lacks, and a second answer by one person.
    """
    if path.suffix != ".json":
        return labels_of(read_table(path), rubric, path.name)
    # The authors' release, whose story ids name the author.
    if rubric.id != "ttcw":
        raise InputError(f"{path}: contains verdicts on ttcw, not on {rubric.id}")
    rows = (
        (
            {
                "document": verdict.story_id,
                "item": str(verdict.index),
                "rater": verdict.expert,
                "value": "Yes" if verdict.passed else "No",
                "reason": verdict.rationale,
                "author": split_story_id(verdict.story_id)[1],
            },
            f"{path}, row {number}",
        )
        for number, verdict in enumerate(read_expert_verdicts(path), 1)
    )
    return labels_of(rows, rubric, path.name)


def labels_of(
    rows: Iterable[tuple[Mapping[str, Any], str]], rubric: Rubric, source: str
) -> list[Measurement]:
    """The labels of rows with `document`, `item`, `rater`, `value` and, optionally, `reason`.

    rows: each with its location, for errors. Columns may have the other names of `COLUMNS`, an item
    its number in place of its id. Raises `InputError` as `read_labels` does.
    """
    items = {str(name): item for item in rubric.items for name in (item.index, item.id)}
    labels: dict[tuple[str, str, str], Measurement] = {}
    for row, where in rows:
        names = [item.id for item in rubric.items if item.id in row]
        answers = [row]
        if names and not any(name in row for name in COLUMNS["item"]):
            # A column for each item.
            about = {name: row[name] for name in row if name in _KEPT}
            answers = [
                about | {"item": id_, "value": row[id_], "reason": row.get(f"{id_}.why")}
                for id_ in names
            ]
        for answer in answers:
            if (label := _label(where, answer, items, rubric, source)) is None:
                continue
            key = label.document_id, label.item, label.rater
            if key in labels:
                raise InputError(
                    f"{where}: {label.rater} has a second answer on {label.item} of "
                    f"{label.document_id}; keep one of them"
                )
            labels[key] = label
    if not any(each.value is not None for each in labels.values()):
        raise InputError(f"{source}: contains no answers to items of {rubric.id}")
    return list(labels.values())


def pair_key(*documents: Document) -> str:
    """The id of stories compared with each other, as judges and studies name them."""
    return _BETWEEN.join(document.id for document in documents)


def sides(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Whether a judge of pairs prefers the first story, as people say it; others unchanged."""
    return [
        replace(m, value=side)
        if isinstance(m.value, str) and (side := _side(m.document_id, m.value)) is not None
        else m
        for m in measurements
    ]


def _side(document: str, answer: str) -> float | None:
    """1 if the answer is the id of the first of two stories, 0 if of the second; else None."""
    if document.startswith(f"{answer}{_BETWEEN}"):
        return 1.0
    return 0.0 if document.endswith(f"{_BETWEEN}{answer}") else None


def _label(
    where: str, row: Mapping[str, Any], items: Mapping[str, Item], rubric: Rubric, source: str
) -> Measurement | None:
    """A row's label; None for a row that answers another rubric."""
    of = str(row.get("rubric") or "").partition("@")[0]
    name = str(_cell(row, "item", where)).strip()
    if (item := items.get(name)) is None:
        if of and rubric.id not in (of, of.rpartition("-")[0]):
            # A study asks for preferences too: answers to another rubric are skipped.
            return None
        raise InputError(
            f"{where}: {rubric.id} has no item {name!r}; its items are "
            f"{', '.join(allowed.id for allowed in rubric.items)}"
        )
    document = str(_cell(row, "document", where)).strip()
    answer = _cell(row, "value", where, may_lack=True)
    value: float | str | None = _side(document, answer) if isinstance(answer, str) else None
    if value is None and answer is not None:
        scale = item.scale
        word = f"{answer:g}" if isinstance(answer, float) else str(answer).strip()
        if scale.is_test and word.lower() in (*_TRUE, *_FALSE):
            value = float(word.lower() in _TRUE)
        else:
            if scale.form == "option":
                # An apostrophe keeps spreadsheets from treating an answer as a formula.
                forms = (word.casefold(), word.removeprefix("'").casefold())
                word = next((o for o in scale.answers if o.casefold() in forms), word)
            with contextlib.suppress(ValueError):
                value = scale.read(word.replace(",", ".") if scale.form == "number" else word)
        if value is None:
            # A share of Yes, or the worth of a choice's option.
            with contextlib.suppress(ValueError):
                number = float(word)
                options = dict(zip(scale.values, scale.options, strict=False))
                value = number if scale.is_test and 0 <= number <= 1 else options.get(number)
        if value is None:
            raise InputError(
                f"{where}: {str(answer)[:80]!r} is not an answer to {item.id}; allowed: "
                f"{scale.allowed}"
            )
    reason = str(row.get("missing_reason") or "no_answer") if value is None else None
    text = _cell(row, "reason", where, may_lack=True)
    why = str(text) if text else None
    about = document, rubric.key, item.id, str(_cell(row, "rater", where)).strip()
    details = {"author": row["author"]} if isinstance(row.get("author"), str) else {}
    return Measurement(*about, value, reason, (), why, f"labels:{source}", details)


def _cell(row: Mapping[str, Any], holds: str, where: str, *, may_lack: bool = False) -> Any:
    """A row's document, item and so on; None if it is empty and optional."""
    names = [name for name in COLUMNS[holds] if name in row]
    # Arrow's tables have separate columns for numbers and words: use the first that is filled.
    value = next((row[name] for name in names if row[name] not in (None, "")), None)
    if value is None and not (may_lack and (names or holds == "reason")):
        columns = ", ".join(map(repr, row)) or "none"
        fault = "is empty" if names else "is missing"
        raise InputError(
            f"{where}: the column {holds!r} {fault}; labels have document, item, rater, value and, "
            f"optionally, reason, but the columns here are {columns}"
        )
    return value
