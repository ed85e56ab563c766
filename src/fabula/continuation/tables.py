"""Systems side by side: all compared in all metrics, with pairwise tests; as sheets and as a page.

Roemmele, Gordon and Swanson 2017, section 5 and Table 2. The paper's tests treat the systems' texts
as independent samples; here tests are paired, since all systems continue the same passages, and
passages of one chapter count as one unit, since they are correlated.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.continuation.scores import Example, Written
from fabula.core.errors import InputError, MixError, explain
from fabula.core.types import Contrast, Estimate, Signature
from fabula.jobs.result import picked
from fabula.linguistic.metrics import (
    MATTR_WINDOW,
    METRICS,
    MTLD_THRESHOLD,
    Metric,
    mattr,
    mtld,
    trigrams,
)
from fabula.show.page import write_page_file
from fabula.show.sheet import Block, Column, Sheet, interval_notes, interval_shown, number
from fabula.show.sheet import Cell as Shown
from fabula.stats.paired import Design, Tokens, compare_pairs, mean_estimates, ratio_estimate
from fabula.stats.resampling import N_PERMUTATIONS, Units

ADDITIONS = (
    Metric("mattr", 16, f"MATTR, window {MATTR_WINDOW}", is_of_all=True),
    Metric("mtld", 17, f"MTLD, threshold {MTLD_THRESHOLD}", is_of_all=True, n_digits=1),
)
"""Beyond the paper: type-token ratios that do not depend on length. Not tested."""
_WORDS, _TRIGRAMS = "type_token_ratio", "unique_trigram_ratio"


@dataclass(frozen=True, slots=True)
class Cell:
    """A system's value in a metric, and its continuations without a value, by reason."""

    estimate: Estimate
    missing: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SystemTable:
    """Table 2: every metric of every system, and every pair of systems compared in it."""

    systems: tuple[str, ...]
    n_items: Mapping[str, int]
    """Texts that each system produced."""
    n_passages: int
    n_clusters: int
    """Chapters, or passages where these are unknown: the units of intervals and tests."""
    unit: str
    """The kind of unit: `chapters` or `passages`."""
    metrics: tuple[Metric, ...]
    cells: Mapping[tuple[str, str], Cell]
    """By metric and system."""
    tests: tuple[Contrast, ...]
    controls: tuple[str, ...]
    """Systems that serve as baselines: their pairs are corrected separately."""
    n_permutations: int
    signature: str

    @property
    def least_p(self) -> float:
        """The smallest corrected p-value possible with this many clusters and permutations."""
        known = (test.details["least"] for test in self.tests)
        return min((least for least in known if least is not None), default=0.0)

    def beats(self, metric: str, a: str, b: str) -> bool:
        """Whether A's value is above B's, at the level corrected by Bonferroni, as in the paper."""
        for test in self.tests:
            if test.number == metric and {test.a, test.b} == {a, b}:
                p = test.details["p_bonferroni"]
                difference = test.difference.value
                if p is None or difference is None or p > LEVEL:
                    return False
                return difference > 0 if test.a == a else difference < 0
        return False

    def to_json(self) -> dict[str, Any]:
        return {
            **picked(self, "signature", "n_passages", "n_clusters", "unit"),
            "controls": list(self.controls),
            "n_permutations": self.n_permutations,
            "systems": dict(self.n_items),
            "metrics": [
                {
                    **picked(metric, "id", "number", "title"),
                    "values": {
                        system: {**c.estimate.ends(), "n": c.estimate.n, "missing": dict(c.missing)}
                        for system in self.systems
                        for c in (self.cells[metric.id, system],)
                    },
                    "contrasts": [t.to_json() for t in self.tests if t.number == metric.id],
                }
                for metric in self.metrics
            ],
        }


LEVEL = 0.05
"""Significance level of the marks, after correction."""


def compare_systems(
    rows: Iterable[Mapping[str, Any]],
    order: Sequence[str] = (),
    *,
    vocabulary: frozenset[str] | None = None,
    controls: Collection[str] = (),
    design: Design = "paired",
    n_permutations: int = N_PERMUTATIONS,
    seed: int = 0,
) -> SystemTable:
    """The table of scored continuations, the rows of `score_rows`, systems in `order`.

    With a vocabulary, type-token ratio and unique trigram ratio count only its words (section 4.1).
    Pairs with one of `controls` are corrected separately. A `two-sample` design treats passages
    and systems as independent, as the paper does; intervals are the same in both. Raises
    `MixError` if rows were measured in different ways.
    """
    by_system, passages, signature = _by_system(rows)
    systems = tuple(sorted(by_system, key=lambda s: order.index(s) if s in order else len(order)))
    aligned = {system: [by_system[system].get(name) for name in passages] for system in systems}
    means = {  # By passage, NaN where a system has none.
        metric.id: {
            system: np.array([row and row["values"][metric.id] for row in rows], np.float64)
            for system, rows in aligned.items()
        }
        for metric in METRICS
        if not metric.is_of_all
    }
    ratios = _ratios(aligned, vocabulary)
    # A passage whose chapter is unknown is a unit by itself.
    names = [("passage", p) if c is None else ("chapter", c) for p, c in passages.items()]
    units = Units.by(names)
    unit = "chapters" if any(kind == "chapter" for kind, _ in names) else "passages"
    vocab = "all"
    if vocabulary is not None:
        digest = hashlib.sha256("\n".join(sorted(vocabulary)).encode()).hexdigest()[:8]
        vocab = f"{len(vocabulary)}@{digest}"
    baselines = tuple(system for system in systems if system in controls)
    full = Signature(
        signature.name,
        (
            *signature.parts,
            ("vocab", vocab),
            ("test", f"permutation,{design},{n_permutations},bonferroni-{LEVEL:g}"),
            ("ci", "95,paired"),
            ("units", f"{units.n}-{unit}"),
            ("controls", "+".join(sorted(s.replace("|", "/") for s in baselines)) or "none"),
            ("seed", str(seed)),
        ),
    )
    tests = compare_pairs(
        means,
        ratios,
        clusters=units.of,
        controls=controls,
        design=design,
        seed=seed,
        n_permutations=n_permutations,
        signature=str(full),
    )
    return SystemTable(
        systems=systems,
        n_items={
            s: sum(r["missing"].get("sentence_length") != "no_text" for r in by_system[s].values())
            for s in systems
        },
        n_passages=len(passages),
        n_clusters=units.n,
        unit=unit,
        metrics=(*METRICS, *ADDITIONS),
        cells=dict(_cells(aligned, means, ratios, units.of, str(full))),
        tests=tuple(tests),
        controls=baselines,
        n_permutations=n_permutations,
        signature=str(full),
    )


def _by_system(
    rows: Iterable[Mapping[str, Any]],
) -> tuple[dict[str, dict[str, Mapping[str, Any]]], dict[str, str | None], Signature]:
    """Rows by system and passage, the chapter of each passage, and how all were measured."""
    by_system: dict[str, dict[str, Mapping[str, Any]]] = {}
    passages: dict[str, str | None] = {}
    signature: Signature | None = None
    for row in rows:
        parsed = Signature.parse(str(row.get("signature", "")))
        signature = signature or parsed
        if differences := signature.differences(parsed):
            raise MixError(
                f"continuations were not all measured in the same way ({'; '.join(differences)}); "
                "score all with the same settings"
            )
        passages.setdefault(row["id"], row.get("chapter"))
        by_system.setdefault(row["system"], {})[row["id"]] = row
    if signature is None:
        raise InputError("no continuations to compare")
    return by_system, passages, signature


_Aligned = Mapping[str, Sequence[Mapping[str, Any] | None]]


def _ratios(aligned: _Aligned, vocabulary: frozenset[str] | None) -> dict[str, dict[str, Tokens]]:
    """The words and trigrams of each system, by passage, as numbers that all systems share."""
    numbers: dict[Any, int] = {}
    ratios: dict[str, dict[str, Tokens]] = {_WORDS: {}, _TRIGRAMS: {}}
    for system, rows in aligned.items():
        types: dict[str, list[int]] = {_WORDS: [], _TRIGRAMS: []}
        ends: dict[str, list[int]] = {_WORDS: [], _TRIGRAMS: []}
        for row in rows:
            words = _words_of(row)
            bounds = itertools.pairwise([0, *(row["sentence_ends"] if row else ())])
            threes = [three for start, end in bounds for three in trigrams(words[start:end])]
            if vocabulary is not None:
                words = [word for word in words if word in vocabulary]
                threes = [three for three in threes if vocabulary.issuperset(three)]
            for name, tokens in ((_WORDS, words), (_TRIGRAMS, threes)):
                types[name] += [numbers.setdefault(token, len(numbers)) for token in tokens]
                ends[name].append(len(types[name]))
        for name in ratios:
            numbered = (np.array(by_name[name], np.int64) for by_name in (types, ends))
            ratios[name][system] = Tokens(*numbered)
    return ratios


def _words_of(row: Mapping[str, Any] | None) -> list[str]:
    return str(row["words"]).split(" ") if row and row["words"] else []


def _cells(
    aligned: _Aligned,
    means: Mapping[str, Mapping[str, NDArray[np.float64]]],
    ratios: Mapping[str, Mapping[str, Tokens]],
    clusters: NDArray[np.int64],
    signature: str,
) -> Iterator[tuple[tuple[str, str], Cell]]:
    estimates = mean_estimates(means, clusters=clusters, signature=signature)
    for system, rows in aligned.items():
        known = [row for row in rows if row is not None]
        for metric in means:
            why = Counter[str](row["missing"][metric] for row in known if metric in row["missing"])
            yield (metric, system), Cell(estimates[metric, system], dict(why))
        for metric in ratios:
            estimate = ratio_estimate(ratios[metric][system], signature, clusters=clusters)
            has_tokens = ratios[metric][system].lengths() > 0
            without = [row for row, has in zip(rows, has_tokens, strict=True) if row and not has]
            why = Counter()
            for row in without:
                bounds = itertools.pairwise([0, *row["sentence_ends"]])
                if not row["words"]:
                    why[str(row["missing"].get("grammaticality", "no_words"))] += 1
                elif metric == _TRIGRAMS and max(b - a for a, b in bounds) < 3:
                    why["no_trigram"] += 1
                else:
                    why["no_token"] += 1
            yield (metric, system), Cell(estimate, dict(why))
        words = [word for row in known for word in _words_of(row)]
        for metric, value in (("mattr", mattr(words)), ("mtld", mtld(words))):
            estimate = Estimate(value, None, None, len(words), "over all words", signature)
            yield (metric, system), Cell(estimate, {} if value else {"too_short": len(known)})


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
    rows: list[list[Shown]] = []
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
        f"greater than, p <= {LEVEL:g} after Bonferroni over the pairs of a "
        f"metric, up to {table.n_permutations:,} permutations: {meaning}"
    )
    if table.controls:
        yield f"corrected separately, as a control: pairs with {', '.join(table.controls)}"
    if table.least_p > LEVEL:
        n_needed = math.ceil(math.comb(len(table.systems) - len(table.controls), 2) / LEVEL)
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
            **picked(cell.estimate, "value", "low", "high", "n", "n_units"),
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
            **picked(test, "a", "b"),
            "difference": test.difference.value,
            "difference_low": test.difference.low,
            "difference_high": test.difference.high,
            "cohens_d": d.value if d else None,
            "cohens_d_low": d.low if d else None,
            "cohens_d_high": d.high if d else None,
            "p": test.p,
            "p_bonferroni": test.details["p_bonferroni"],
            "p_adjusted": test.p_adjusted,
            **picked(test.difference, "n", "n_units"),
            "signature": table.signature,
        }
        for test in table.tests
        for d in [test.details["cohens_d"]]
    ]
    named = ("values", values), ("pairs", pairs)
    return [Sheet.of(name, rows, list(map(Column, next(iter(rows), ())))) for name, rows in named]


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
