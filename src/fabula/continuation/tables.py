"""Systems side by side: Table 2 of the paper, as sheets and as a page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from fabula.continuation.scores import Example, Written
from fabula.continuation.table import SystemTable
from fabula.core.errors import explain
from fabula.core.types import Estimate
from fabula.linguistic.metrics import Metric
from fabula.show.charts import COLOURS, LINE, figure_of
from fabula.show.page import write_page_file
from fabula.show.sheet import Block, Cell, Column, Sheet, interval_notes, interval_shown, number

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
    table: SystemTable
    metric: Metric
    system: str

    def shown(self) -> str:
        estimate = self.table.cells[self.metric.id, self.system].estimate
        return _value(estimate, self.metric) + _marks_of(self.table, self.metric, self.system)

    def record(self, field: str) -> dict[str, object]:
        above = _beaten(self.table, self.metric, self.system)
        estimate = self.table.cells[self.metric.id, self.system].estimate
        return {field: estimate.value, f"{field}_above": "; ".join(above)}


def _sections(table: SystemTable) -> Iterator[tuple[str, list[Metric]]]:
    """The metrics under the headings of the paper's table."""
    tested = {test.number for test in table.tests}
    known = [metric for metric in table.metrics if metric.number <= 15]
    yield "Story-independent metrics", [m for m in known if not m.needs_context]
    yield "Story-dependent metrics", [m for m in known if m.needs_context]
    beyond = [m for m in table.metrics if m.id not in tested and m.number > 15]
    yield "Beyond the paper, not tested", beyond


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
        n_needed = math.ceil(math.comb(len(table.systems) - len(table.controls), 2) / table.level)
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
    if {table.n_items[system] for system in table.systems} == {table.n_passages}:
        yield f"{table.n_passages:,} passages, each continued by every system"
    else:
        sizes = ", ".join(f"{system} {n:,}" for system, n in table.n_items.items())
        yield f"{table.n_passages:,} passages; continued: {sizes}"
    # Missing values, by system and reason; none of them counts as 0.
    for system in table.systems:
        by_reason: dict[str, list[tuple[int, int]]] = {}
        for metric in table.metrics:
            for reason, n in table.cells[metric.id, system].missing.items():
                by_reason.setdefault(reason, []).append((metric.number, n))
        for reason, counted in by_reason.items():
            numbers = ", ".join(f"{metric} ({n:,})" for metric, n in counted)
            yield f"missing, {system}: {explain(reason)}; in metrics {numbers}"


def example_blocks(table: SystemTable, examples: Sequence[Example]) -> list[Block]:
    """Each example: its context, what every system wrote, and the scores of that."""
    metrics = [metric for metric in table.metrics if not metric.is_of_all]
    blocks: list[Block] = []
    for example in examples:
        columns = [Column("", name="metric")]
        columns += [Column(written.system, ".3f") for written in example.written]
        rows: list[list[Cell]] = []
        for metric in metrics:
            scores = (_score(written, metric) for written in example.written)
            rows.append([f"{metric.number:2}. {metric.title}", *scores])
        blocks += [
            f"Passage {example.story.id}",
            " ".join(example.story.context),
            "",
            *(f"{written.system}: {_text(written)}" for written in example.written),
            "",
            Sheet("examples", columns, rows, about=("passage", example.story.id)),
            "",
        ]
    return blocks


def _text(written: Written) -> str:
    return explain("no_text") if written.text is None else written.text


def _score(written: Written, metric: Metric) -> str:
    return number(written.values[metric.id], f".{metric.n_digits}f")


def system_records(table: SystemTable) -> list[Sheet]:
    """The values and the pairs for CSV: a row for each metric and system, or test."""
    values = [
        {
            "number": metric.number,
            "metric": metric.id,
            "system": system,
            **cell.estimate.ends(),
            "n": cell.estimate.n,
            "n_units": cell.estimate.n_units,
            "missing": sum(cell.missing.values()),
            "missing_reasons": "; ".join(f"{why} {n}" for why, n in cell.missing.items()),
            "signature": table.signature,
        }
        for metric in table.metrics
        for system in table.systems
        for cell in [table.cells[metric.id, system]]
    ]
    pairs = [
        {
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
        for test in table.tests
        for d in [test.details["cohens_d"]]
    ]
    return [
        Sheet.of(name, rows, [Column(field) for field in next(iter(rows), ())])
        for name, rows in (("values", values), ("pairs", pairs))
    ]


def write_system_page(path: Path, table: SystemTable, examples: Sequence[Example] = ()) -> None:
    """Write the page. Raises `InputError` if it would overwrite a file not written by Fabula."""
    estimates = [cell.estimate for cell in table.cells.values()]
    estimates += [test.difference for test in table.tests]
    page = {
        "table": table,
        "marks": marks(table),
        "sections": list(_sections(table)),
        "remarks": [*_remarks(table), *interval_notes(estimates, table.unit)],
        "examples": examples,
        "places": partial(_places, table),
        "above": partial(_marks_of, table),
        "value": _value,
        "number": number,
        "interval": interval_shown,
        "score": _score,
        "text": _text,
    }
    write_page_file(path, "continuation/page.html.j2", page)


def _places(table: SystemTable, metric: Metric) -> dict[str, list[float | None]]:
    """Where each system's value and the ends of its interval are on a strip 100 wide."""
    estimates = {system: table.cells[metric.id, system].estimate for system in table.systems}
    ends = {system: (e.value, e.low, e.high) for system, e in estimates.items()}
    known = [end for three in ends.values() for end in three if end is not None]
    low = min(known, default=0.0)
    width = (max(known, default=1.0) - low) or 1.0
    return {
        system: [None if end is None else 4 + 92 * (end - low) / width for end in three]
        for system, three in ends.items()
    }


def save_loss(log: Sequence[Mapping[str, float]], path: Path) -> None:
    """The training loss over tokens, and the held-out perplexity after each epoch.

    The same log gives the same bytes. Raises `InputError` for an unknown extension.
    """
    steps = [row for row in log if "loss" in row]
    seen = np.cumsum([row["n_tokens"] for row in steps]) / 1e6
    with figure_of(path, 1, 1, figsize=(6.4, 3.6)) as (_, (axes,)):
        width = max(1, len(steps) // 100)
        losses = np.array([row["loss"] for row in steps])
        means = [losses[k : k + width].mean() for k in range(0, len(losses), width)]
        axes.plot(seen[::width], means, color=COLOURS[0], linewidth=1.4, label="training")
        ends = [
            (seen[sum("loss" in r for r in log[:k]) - 1], np.log(row["perplexity"]))
            for k, row in enumerate(log)
            if "perplexity" in row
        ]
        if ends:
            axes.plot(*zip(*ends, strict=True), "o", color=COLOURS[1], label="held-out stories")
        for x, y in ends:
            axes.annotate(
                f"{np.exp(y):.0f}", (x, y), textcoords="offset points", xytext=(0, 7), ha="center"
            )
        axes.set_xlabel("million tokens read (number: perplexity)")
        axes.set_ylabel("loss, nats per token")
        axes.grid(axis="y", color=LINE, linewidth=0.8)
        axes.legend(frameon=False)
