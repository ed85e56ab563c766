"""The replication of "Art or Artifice?" for the terminal: ours beside the printed figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from fabula.presentation.sheet import number, render, terminal_width
from fabula.replicate.ttcw import (
    AUTHORS,
    OUTLIER_GROUP,
    PRINTED,
    PRINTED_AVERAGE,
    PRINTED_JUDGES,
    PRINTED_PEARSON,
    JudgeReplica,
    Replica,
)

__all__ = ["replica_tables", "save_distribution"]

_DIFFERS = " !"


def replica_tables(replica: Replica) -> str:
    """Table 5, dimensions, Figure 3, aggregate correlation, Table 6, Figure 4 where given."""
    in_paper = [judge for judge in replica.judges if judge.name in PRINTED_JUDGES]
    others = [judge for judge in replica.judges if judge.name not in PRINTED_JUDGES]
    by_kind = ((in_paper, True), (others, False))
    parts: list[Table | str] = [
        f"Table 5: passed by the experts, % (printed), over {replica.n_stories} stories and "
        f"{replica.n_verdicts:,} verdicts; ! where ours differs",
        "", _table5(replica), "",
        "The printed average of GPT4, 27.9, is not the mean of its own printed column, 27.8.",
        "",
        "Table 5: agreement of the experts, Fleiss kappa (printed); ! where ours differs",
        "", _kappas(replica), "",
        f"The printed kappas are of all groups but group {OUTLIER_GROUP}, \"The Facade Renovation "
        f"That's Going Well\" (44 stories): so all 14 agree to two decimals, over all 48 stories "
        f"only 3 do. The printed pass rates are of all 48.",
        "", "Passed by dimension, %", "", _dimensions(replica), "",
        "Figure 3: tests passed in an assessment, number of assessments", "", _passed(replica), "",
        f"Tests passed, Pearson between two experts: {number(replica.pearson, '.2f')} without "
        f"group {OUTLIER_GROUP}, {number(replica.pearson_all, '.2f')} over all (printed "
        f"{PRINTED_PEARSON:.2f})",
        "",
    ]  # fmt: skip
    if replica.judges:
        parts += [
            "Table 6: judges, Cohen kappa with the majority of three experts (printed)", "",
            *[_table6(replica, some, printed=has) for some, has in by_kind if some], "",
            "The released answers are of a later run (March 2024) with a prompt that asks for the "
            "verdict first, not the paper's, which reasons first: they are not expected to agree.",
            *_missing(replica), "",
        ]  # fmt: skip
    if replica.ranks:
        parts += ["Figure 4a: places in the group", "", _counts(replica.ranks), ""]
    if replica.origins:
        parts += ["Figure 4b: taken for", "", _counts(replica.origins), ""]
    if not replica.ranks and not replica.origins:
        parts.append(
            "Figure 4 (ranking and supposed origin): the release has no such data; give "
            "measurements of the rubric `preference` with `preferences`"
        )
    return render(*parts)


def _table5(replica: Replica) -> Table:
    """Pass rates by author and test."""
    table = Table(box=None, pad_edge=False)
    room = terminal_width() - 13 * len(replica.pass_rate) - 3
    table.add_column("test", overflow="ellipsis", no_wrap=True, max_width=max(5, room))
    for title in replica.pass_rate:
        table.add_column(Text(title), justify="right", no_wrap=True, min_width=11)
    for item in replica.rubric.items:
        printed = dict(zip(AUTHORS, PRINTED[item.index].pass_rate, strict=True))
        cells = [
            _beside(rates[item.index], printed.get(author), ".1f")
            for author, rates in replica.pass_rate.items()
        ]
        table.add_row(f"{item.index} {item.title}", *cells)
    printed = dict(zip(AUTHORS, PRINTED_AVERAGE.pass_rate, strict=True))
    averages = [
        _beside(_mean(rates.values()), printed.get(author), ".1f")
        for author, rates in replica.pass_rate.items()
    ]
    table.add_row("average", *averages)
    return table


def _kappas(replica: Replica) -> Table:
    """Agreement of the experts by test, without one group and over all."""
    table = Table(box=None, pad_edge=False)
    table.add_column("test", overflow="ellipsis", no_wrap=True)
    table.add_column(f"without group {OUTLIER_GROUP}", justify="right", no_wrap=True)
    table.add_column("all 48 stories", justify="right", no_wrap=True)
    for item in replica.rubric.items:
        kappa = _beside(replica.fleiss[item.index], PRINTED[item.index].fleiss, ".2f")
        every = number(replica.fleiss_all[item.index], ".2f")
        table.add_row(f"{item.index} {item.title}", kappa, every)
    kappa = _beside(_mean(replica.fleiss.values()), PRINTED_AVERAGE.fleiss, ".2f")
    table.add_row("average", kappa, number(_mean(replica.fleiss_all.values()), ".2f"))
    return table


def _dimensions(replica: Replica) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    names = list(dict.fromkeys(item.dimension for item in replica.rubric.items))
    for name in names:
        table.add_column(name, justify="right")
    for author, rates in replica.dimension.items():
        table.add_row(Text(author), *(f"{rates[name]:.1f}" for name in names))
    return table


def _passed(replica: Replica) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    n_items = len(replica.rubric.items)
    for total in range(n_items + 1):
        table.add_column(str(total), justify="right")
    for author, counts in replica.passed.items():
        table.add_row(Text(author), *(str(counts.get(k, "·")) for k in range(n_items + 1)))
    return table


def _table6(replica: Replica, judges: Sequence[JudgeReplica], *, printed: bool) -> Table:
    """A column for each judge; after it the printed one, where the paper has that judge too."""
    table = Table(box=None, pad_edge=False)
    table.add_column("test", overflow="ellipsis", no_wrap=True, max_width=26)
    for judge in judges:
        table.add_column(Text(judge.name), justify="right", no_wrap=True)
        if printed:
            table.add_column("(paper)", justify="right", no_wrap=True)

    def add(title: str, cells: Sequence[str], beside: Sequence[str] = ()) -> None:
        pairs = zip(cells, beside or [""] * len(cells), strict=True)
        table.add_row(title, *(c for pair in pairs for c in (pair if printed else pair[:1])))

    columns = [PRINTED_JUDGES.get(judge.name, 0) for judge in judges]
    for item in replica.rubric.items:
        add(
            f"{item.index} {item.title}",
            [number(judge.kappa[item.index], ".2f") for judge in judges],
            [f"({PRINTED[item.index].cohen[k]:.2f})" for k in columns],
        )
    add(
        "average",
        [number(_mean(judge.kappa.values()), ".3f") for judge in judges],
        [f"({PRINTED_AVERAGE.cohen[k]:.3f})" for k in columns],
    )
    add("answers", [str(judge.n_answers) for judge in judges])
    add("says Yes, %", [number(judge.pass_rate, ".1f") for judge in judges])
    add("balanced accuracy", [number(judge.balanced_accuracy, ".2f") for judge in judges])
    return table


def _missing(replica: Replica) -> list[str]:
    return [
        f"{judge.name}: no verdict in "
        + ", ".join(f"{n} ({reason})" for reason, n in judge.missing.items())
        for judge in replica.judges
        if judge.missing
    ]


def _counts(counts: Mapping[str, Mapping[Any, int]]) -> Table:
    names = sorted({name for row in counts.values() for name in row}, key=str)
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for name in names:
        table.add_column(Text(str(name)), justify="right")
    for author, row in counts.items():
        table.add_row(Text(author), *(str(row.get(name, 0)) for name in names))
    return table


def _beside(ours: float | None, printed: float | None, form: str) -> str:
    shown = number(ours, form)
    if printed is None:
        return shown
    differs = ours is None or float(f"{ours:{form}}") != float(f"{printed:{form}}")
    return f"{shown} ({printed:{form}}){_DIFFERS if differs else ''}"


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def save_distribution(replica: Replica, path: Path) -> None:
    """Figure 3: how many tests an assessment passed, by author; .svg, .pdf or .png."""
    from fabula.presentation.plots import save_distributions

    n_items = len(replica.rubric.items)
    series: dict[str, Sequence[int]] = {
        author: [counts.get(k, 0) for k in range(n_items + 1)]
        for author, counts in replica.passed.items()
    }
    save_distributions(series, path, x_label="tests passed", y_label="assessments")
