"""Tables and figures of the Creativity Index's replication."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from rich.table import Table

from fabula.measures.detection_rows import calibration_row
from fabula.presentation.detection_tables import (
    NAMES,
    SHORT,
    auroc_shown,
    calibration_remarks,
    save_rocs,
)
from fabula.presentation.plots import COLOURS, LINE, SOFT, figure_of, save_comparison
from fabula.presentation.sheet import number, render
from fabula.replicate.creativity_index import PAPER, Analyses, Scored, Spread
from fabula.replicate.creativity_index_texts import Texts
from fabula.types import Estimate

__all__ = ["analyses_json", "analyses_tables", "write_figures"]


class _Marks:
    """Short marks for signatures, which are printed once at the end."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def __call__(self, signature: str) -> str:
        return f"[{self._known.setdefault(signature, len(self._known) + 1)}]"

    def lines(self) -> list[str]:
        return [f"[{k}] {signature}" for signature, k in self._known.items()]


def analyses_tables(found: Analyses) -> str:
    """Index by group, spread over documents, and detection; then all signatures."""
    mark = _Marks()
    parts: list[Table | str] = [
        "TEXTS: those of one cluster (a prompt, and copies of each other) count as one in every "
        "mean, interval and test, and are left out of the reference together.",
        *(_texts_line(name, texts) for name, texts in found.texts.items()),
        "",
        "CREATIVITY INDEX, and people above each group: (people - group) / group, %. In the paper "
        f"people are {PAPER['verbatim']:g} % above models by verbatim matches, "
        f"{PAPER['near']:g} % with near ones (novels, against RedPajama).",
        *_index_parts(found.scored, mark),
        "",
        "DOCUMENTS: uniqueness when only the best may be used. In the paper "
        f"{PAPER['human_uniqueness_50']:.1%} of people's words and "
        f"{PAPER['machine_uniqueness_50']:.1%} of models' are left after 50, and it takes "
        f"{PAPER['human_to_half']:g} and {PAPER['machine_to_half']:g} to push it below a half.",
        *_spread_parts(found.spreads, mark),
        "",
        "HUMAN OR MACHINE: the share of pairs in which the human text ranks as more human. Where "
        "its interval includes 0.5, the score cannot tell them apart.",
        *_detection_parts(found, mark),
        "",
    ]
    return render(*parts, *mark.lines())


def _texts_line(name: str, texts: Texts) -> str:
    joined = texts.n_clusters_before - texts.n_clusters
    more = f"; {joined:,} more before near-duplicates were joined" if joined else ""
    return (
        f"{name}: {texts.n_texts:,} texts, {texts.n_human:,} by people, in {texts.n_clusters:,} "
        f"clusters{more}"
    )


def _table(*columns: str, n_left: int = 1) -> Table:
    table = Table(box=None, pad_edge=False)
    for k, column in enumerate(columns):
        table.add_column(column, justify="left" if k < n_left else "right", overflow="fold")
    return table


def _index_parts(scored: Sequence[Scored], mark: _Marks) -> Iterator[Table | str]:
    for (texts, reference), some in _grouped(scored):
        yield ""
        yield f"{texts}, against {reference}"
        table = _table("group", "match", "n", "index, 95 % interval", "people above it", "p, Holm",
                       "", n_left=2)  # fmt: skip
        for one in some:
            for group in one.groups.groups:
                difference, p = one.above.get(group.name, (None, None))
                table.add_row(
                    group.name, one.match, str(group.index.n), _mean(group.index),
                    "" if difference is None else _percent(difference.percent),
                    "" if difference is None else _p(p), mark(one.groups.signature),
                )  # fmt: skip
            for pair in one.people.pairs:
                table.add_row(
                    f"{pair.a} / {pair.b}", one.match, str(pair.difference.percent.n), "",
                    _percent(pair.difference.percent), _p(pair.p_holm), "",
                )  # fmt: skip
        yield table
        if n_copied := max(one.n_copied for one in some):
            yield f"{n_copied:,} of these texts stand in the reference for half of their words"


G = TypeVar("G", Scored, Spread)


def _grouped(items: Sequence[G]) -> list[tuple[tuple[str, str], list[G]]]:
    """By texts and reference, in the order they come."""
    found: dict[tuple[str, str], list[G]] = {}
    for item in items:
        found.setdefault((item.texts, item.reference), []).append(item)
    return list(found.items())


def _mean(estimate: Estimate) -> str:
    if estimate.value is None or estimate.low is None:
        return "-" if estimate.value is None else f"{estimate.value:.3f}"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _percent(estimate: Estimate) -> str:
    if estimate.value is None:
        return "-"
    if estimate.low is None:
        return f"{estimate.value:+.1f}"
    return f"{estimate.value:+.1f} [{estimate.low:+.1f}, {estimate.high:+.1f}]"


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}"


def _spread_parts(spreads: Sequence[Spread], mark: _Marks) -> Iterator[Table | str]:
    for (texts, reference), some in _grouped(spreads):
        n, n_documents = some[0].n, len(some[0].curves["human"]) - 1
        yield ""
        yield (
            f"{texts}, against {reference}: {n_documents} documents, clusters: {n['human']} of "
            f"people's texts, {n['machine']} of machines'"
        )
        table = _table("match", "people", "machines", "difference, %", "p", "half: people",
                       "machines", "")  # fmt: skip
        for one in some:
            table.add_row(
                one.match, f"{one.curves['human'][-1]:.1%}", f"{one.curves['machine'][-1]:.1%}",
                _percent(one.difference.percent), _p(one.difference.p),
                *(_half(one.to_half[side]) for side in ("human", "machine")), mark(one.signature),
            )  # fmt: skip
        yield table


def _half(found: tuple[float | None, int, int]) -> str:
    mean, n, n_all = found
    return f"none of {n_all}" if mean is None else f"{mean:.1f} (for {n} of {n_all})"


def _detection_parts(found: Analyses, mark: _Marks) -> Iterator[Table | str]:
    for texts in dict.fromkeys(name for name, _, _ in found.detectors):
        some = [(against, one) for name, against, one in found.detectors if name == texts]
        yield ""
        yield (
            f"{texts}: {some[0][1].n_human} by people, {some[0][1].n_machine} by machines, in "
            f"{some[0][1].n_clusters} clusters"
        )
        table = _table("against", "score", "outcome", "AUROC, 95 % interval", "missing", "ECE", "",
                       n_left=3)  # fmt: skip
        for against, one in some:
            table.add_row(
                against, NAMES[one.score], SHORT[one.outcome], auroc_shown(one),
                str(one.n_missing), number(one.calibration_error, ".3f"), mark(one.signature),
            )  # fmt: skip
        yield table
        yield from calibration_remarks([one for _, one in some])


def analyses_json(found: Analyses) -> dict[str, Any]:
    """As plain values for JSON output."""
    return {
        "paper": PAPER,
        "texts": {name: asdict(texts) for name, texts in found.texts.items()},
        "index": [
            {
                "texts": one.texts,
                "reference": one.reference,
                "match": one.match,
                "n_copied": one.n_copied,
                "by_group": one.groups.to_json(),
                "people_above_percent": {
                    name: {
                        "value": d.percent.value,
                        "low": d.percent.low,
                        "high": d.percent.high,
                        "p": d.p,
                        "p_holm": p,
                    }
                    for name, (d, p) in one.above.items()
                },
                "people": one.people.to_json(),
            }
            for one in found.scored
        ],
        "spread": [
            {
                "texts": one.texts,
                "reference": one.reference,
                "match": one.match,
                "n": one.n,
                "uniqueness": one.curves,
                "difference_percent": one.difference.percent.value,
                "p": one.difference.p,
                "n_to_half": {
                    side: {"mean": mean, "n": n, "of": n_all}
                    for side, (mean, n, n_all) in one.to_half.items()
                },
                "signature": one.signature,
            }
            for one in found.spreads
        ],
        "detection": [
            {"texts": texts, "against": against, **calibration_row(one)}
            for texts, against, one in found.detectors
        ],
    }


def write_figures(found: Analyses, folder: Path) -> list[Path]:
    """Index and L-uniqueness for each comparison, the spread, and the ROC curves, as SVG."""
    written = []
    for one in found.scored:
        path = folder / f"{one.texts}-{one.reference}-{one.match}.svg"
        save_comparison(one.groups, path)
        written.append(path)
    if found.spreads:
        written.append(folder / "documents.svg")
        _save_spreads(found.spreads, written[-1])
    for texts in dict.fromkeys(name for name, _, _ in found.detectors):
        written.append(folder / f"{texts}-roc.svg")
        save_rocs([one for name, _, one in found.detectors if name == texts], written[-1])
    return written


def _save_spreads(spreads: Sequence[Spread], path: Path) -> None:
    """Uniqueness against the number of documents, a panel a set and reference."""
    panels = _grouped(spreads)
    n_columns = len({one.reference for one in spreads})
    n_rows = -(-len(panels) // n_columns)
    # By reference, the sets of texts below each other.
    panels.sort(key=lambda panel: panel[0][0])
    size = (4.2 * n_columns, 0.4 + 3.2 * n_rows)
    with figure_of(path, n_rows, n_columns, figsize=size, sharey=True) as (figure, all_axes):
        for axes in all_axes[len(panels) :]:
            axes.set_axis_off()
        for axes, ((texts, reference), group) in zip(all_axes, panels, strict=False):
            for one in group:
                for side, colour in (("human", COLOURS[0]), ("machine", COLOURS[1])):
                    axes.plot(
                        [100 * value for value in one.curves[side]], color=colour,
                        linestyle="-" if one.match == "verbatim" else "--", linewidth=1.5,
                        label=f"{side}, {one.match}, n {one.n[side]}",
                    )  # fmt: skip
            axes.set_title(f"{texts}\nagainst {reference}", loc="left", fontsize=9)
            axes.set_xlabel("best documents that may be used")
            axes.grid(axis="y", color=LINE, linewidth=0.8)
            axes.legend(frameon=False, fontsize=7)
        for axes in all_axes[::n_columns]:
            axes.set_ylabel("uniqueness, % of words")
        lines = dict.fromkeys(one.signature for one in spreads)
        figure.supxlabel("\n".join(lines), fontsize=4, color=SOFT, x=0.01, ha="left")
