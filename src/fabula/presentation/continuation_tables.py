"""Systems side by side: Table 2 of the paper, as sheets and as a page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabula.measures.linguistic.metrics import Metric
from fabula.measures.linguistic.system_scores import Example, Written
from fabula.measures.linguistic.table import SystemTable
from fabula.presentation.page_file import write_page_file
from fabula.presentation.sheet import (
    Block,
    Cell,
    Column,
    Sheet,
    interval_notes,
    interval_shown,
    number,
)
from fabula.reasons import explain
from fabula.types import Contrast, Estimate

_MARKS = ("*", "†", "‡", "§", "¶", "‖", "#", "◊")


def marks(table: SystemTable) -> dict[str, str]:
    """The mark that says "greater than this system", for each system."""
    letters = (*_MARKS, *(f"({chr(97 + k)})" for k in range(26)))
    return dict(zip(table.systems, letters, strict=False))


def _beaten(table: SystemTable, metric: Metric, system: str) -> list[str]:
    """The systems that this one is above, at the corrected level."""
    others = (other for other in table.systems if other != system)
    return [other for other in others if table.beats(metric.id, system, other)]


def _marks_of(table: SystemTable, metric: Metric, system: str) -> str:
    shown = marks(table)
    return "".join(shown.get(other, "") for other in _beaten(table, metric, system))


def _value(estimate: Estimate, metric: Metric) -> str:
    """The value; one too small for its digits is not shown as 0."""
    least = 10.0**-metric.n_digits
    if estimate.value is not None and 0 < estimate.value < least / 2:
        return f"<{least:.{metric.n_digits}f}"
    return number(estimate.value, f".{metric.n_digits}f")


@dataclass(frozen=True, slots=True)
class _Marked:
    """A system's value, with the marks of the systems that it is above."""

    table: SystemTable
    metric: Metric
    system: str

    def shown(self) -> str:
        marked = _marks_of(self.table, self.metric, self.system)
        return _value(self._estimate, self.metric) + marked

    def record(self, field: str) -> dict[str, object]:
        above = _beaten(self.table, self.metric, self.system)
        return {field: self._estimate.value, f"{field}_above": "; ".join(above)}

    @property
    def _estimate(self) -> Estimate:
        return self.table.cells[self.metric.id, self.system].estimate


def _sections(table: SystemTable) -> Iterator[tuple[str, list[Metric]]]:
    """The metrics under the headings of the paper's table."""
    tested = {test.number for test in table.tests}
    known = [metric for metric in table.metrics if metric.number <= 15]
    yield "Story-independent metrics", [m for m in known if not m.needs_context]
    yield "Story-dependent metrics", [m for m in known if m.needs_context]
    yield (
        "Beyond the paper, not tested",
        [m for m in table.metrics if m.id not in tested and m.number > 15],
    )


def system_tables(table: SystemTable) -> list[Block]:
    """The table, with the meaning of its marks, and missing values."""
    rows: list[list[Cell]] = []
    columns = [Column("", name="metric"), *(Column(system, ".3f") for system in table.systems)]
    for heading, metrics in _sections(table):
        rows.append([heading, *[""] * (len(columns) - 1)])
        for metric in metrics:
            cells = [_Marked(table, metric, system) for system in table.systems]
            rows.append([f"{metric.number:2}. {metric.title}", *cells])
    return [Sheet("systems", columns, rows), "", *_remarks(table), table.signature]


def _remarks(table: SystemTable) -> Iterator[str]:
    meaning = ", ".join(f"{mark} {system}" for system, mark in marks(table).items())
    yield (
        f"greater than, p <= {table.level:g} after {table.correction.title()} over the pairs of a "
        f"metric, up to {table.n_permutations:,} permutations: {meaning}"
    )
    if table.controls:
        yield f"corrected separately, as a control: pairs with {', '.join(table.controls)}"
    if table.least_p > table.level:
        n_systems = len(table.systems) - len(table.controls)
        n_needed = math.ceil(math.comb(n_systems, 2) / table.level)
        few = 2 ** (table.n_clusters - 1) <= table.n_permutations
        yield (
            f"no difference can be marked: with {table.n_clusters:,} {table.unit} and "
            f"{table.n_permutations:,} permutations no corrected p-value is below "
            f"{table.least_p:.2g}; take "
            + (f"more {table.unit}" if few else f"at least {n_needed:,} permutations")
        )
    are_paired = "permutation,paired" in table.signature
    yield (
        f"{'tests and ' if are_paired else ''}intervals use paired differences over the passages "
        f"that both systems continue; units: {table.n_clusters:,} {table.unit}"
    )
    if not are_paired:
        yield "tests take the passages of two systems as independent samples, as the paper does"
    if table.unit == "passages":
        yield (
            "passages are treated as independent, since they name no chapter; if they overlap, or "
            "come from one text, add the fields book and chapter"
        )
    sizes = {table.n_items[system] for system in table.systems}
    if sizes == {table.n_passages}:
        yield f"{table.n_passages:,} passages, each continued by every system"
    else:
        each = ", ".join(f"{system} {n:,}" for system, n in table.n_items.items())
        yield f"{table.n_passages:,} passages; continued: {each}"
    yield from _missing_lines(table)


def example_blocks(table: SystemTable, examples: Sequence[Example]) -> list[Block]:
    """Each example: its context, what every system wrote, and the scores of that."""
    metrics = [metric for metric in table.metrics if not metric.is_of_all]
    blocks: list[Block] = []
    for example in examples:
        columns = [Column("", name="metric")]
        columns += [Column(one.system, ".3f") for one in example.written]
        rows: list[list[Cell]] = []
        for metric in metrics:
            scores = (_score(one, metric) for one in example.written)
            rows.append([f"{metric.number:2}. {metric.title}", *scores])
        blocks += [
            f"Passage {example.story.id}",
            " ".join(example.story.context),
            "",
            *(f"{one.system}: {_text(one)}" for one in example.written),
            "",
            Sheet("examples", columns, rows, about=("passage", example.story.id)),
            "",
        ]
    return blocks


def _text(written: Written) -> str:
    return explain("no_text") if written.text is None else written.text


def _score(written: Written, metric: Metric) -> str:
    return number(written.values[metric.id], f".{metric.n_digits}f")


def _missing_lines(table: SystemTable) -> Iterator[str]:
    """Missing values, by system and reason; none of them counts as 0."""
    for system in table.systems:
        by_reason: dict[str, list[tuple[int, int]]] = {}
        for metric in table.metrics:
            for reason, n in table.cells[metric.id, system].missing.items():
                by_reason.setdefault(reason, []).append((metric.number, n))
        for reason, found in by_reason.items():
            numbers = ", ".join(f"{metric} ({n:,})" for metric, n in found)
            yield f"missing, {system}: {explain(reason)}; in metrics {numbers}"


def system_records(table: SystemTable) -> list[Sheet]:
    """The values and the pairs for CSV: a row for each metric and system, or test."""
    return [_records("values", _value_rows(table)), _records("pairs", _pair_rows(table))]


def _records(name: str, rows: Iterable[dict[str, Any]]) -> Sheet:
    found = list(rows)
    fields = list(found[0]) if found else []
    return Sheet(name, [Column(field) for field in fields], [list(row.values()) for row in found])


def write_system_page(path: Path, table: SystemTable, examples: Sequence[Example] = ()) -> None:
    """Write the page. Raises `InputError` if it would overwrite a file not written by Fabula."""
    write_page_file(path, "continuation.html.j2", page_values(table, examples))


def _value_rows(table: SystemTable) -> Iterator[dict[str, Any]]:
    for metric in table.metrics:
        for system in table.systems:
            cell = table.cells[metric.id, system]
            yield {
                "number": metric.number,
                "metric": metric.id,
                "system": system,
                "value": cell.estimate.value,
                "low": cell.estimate.low,
                "high": cell.estimate.high,
                "n": cell.estimate.n,
                "n_units": cell.estimate.n_units,
                "missing": sum(cell.missing.values()),
                "missing_reasons": "; ".join(f"{why} {n}" for why, n in cell.missing.items()),
                "signature": table.signature,
            }


def _pair_rows(table: SystemTable) -> Iterator[dict[str, Any]]:
    for test in table.tests:
        d = test.details["cohens_d"]
        yield {
            "metric": test.number,
            "a": test.a,
            "b": test.b,
            "difference": test.difference.value,
            "difference_low": test.difference.low,
            "difference_high": test.difference.high,
            "cohens_d": d.value if d else None,
            "cohens_d_low": d.low if d else None,
            "cohens_d_high": d.high if d else None,
            "p": test.p,
            "p_bonferroni": test.details["p_bonferroni"],
            "p_adjusted": test.p_adjusted,
            "n": test.difference.n,
            "n_units": test.difference.n_units,
            "signature": table.signature,
        }


def page_values(table: SystemTable, examples: Sequence[Example] = ()) -> dict[str, Any]:
    """What the page's template shows."""
    estimates = [
        *(cell.estimate for cell in table.cells.values()),
        *(test.difference for test in table.tests),
    ]
    return {
        "systems": [(system, marks(table).get(system, "")) for system in table.systems],
        "sections": [
            (heading, [_page_metric(table, metric) for metric in metrics])
            for heading, metrics in _sections(table)
        ],
        "remarks": [*_remarks(table), *interval_notes(estimates, table.unit)],
        "signature": table.signature,
        "n_passages": table.n_passages,
        "examples": [_page_example(table, example) for example in examples],
    }


def _page_example(table: SystemTable, example: Example) -> dict[str, Any]:
    metrics = [metric for metric in table.metrics if not metric.is_of_all]
    return {
        "id": example.story.id,
        "context": " ".join(example.story.context),
        "written": [(one.system, _text(one)) for one in example.written],
        "scores": [
            (f"{metric.number}. {metric.title}", [_score(one, metric) for one in example.written])
            for metric in metrics
        ],
    }


def _page_metric(table: SystemTable, metric: Metric) -> dict[str, Any]:
    cells = [table.cells[metric.id, system] for system in table.systems]
    edges = [e for c in cells for e in (c.estimate.low, c.estimate.high, c.estimate.value)]
    known = [edge for edge in edges if edge is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    width = (high - low) or 1.0

    def place(value: float | None) -> float | None:
        return None if value is None else 4 + 92 * (value - low) / width

    return {
        "number": metric.number,
        "title": metric.title,
        "cells": [
            {
                "value": _value(cell.estimate, metric),
                "interval": interval_shown(cell.estimate, f".{metric.n_digits}f"),
                "above": _marks_of(table, metric, system),
                "at": place(cell.estimate.value),
                "low": place(cell.estimate.low),
                "high": place(cell.estimate.high),
                "missing": sum(cell.missing.values()),
            }
            for cell, system in zip(cells, table.systems, strict=True)
        ],
        "pairs": [_page_pair(test, metric) for test in table.tests if test.number == metric.id],
    }


def _page_pair(test: Contrast, metric: Metric) -> dict[str, str]:
    form = f"+.{metric.n_digits}f"
    d = test.details["cohens_d"]
    return {
        "a": test.a,
        "b": test.b,
        "difference": number(test.difference.value, form),
        "interval": interval_shown(test.difference, form),
        "d": number(d.value, "+.2f") if d else "-",
        "d_interval": interval_shown(d, "+.2f") if d else "-",
        "p": number(test.p, ".2g"),
        "p_bonferroni": number(test.details["p_bonferroni"], ".2g"),
        "p_holm": number(test.p_adjusted, ".2g"),
    }
