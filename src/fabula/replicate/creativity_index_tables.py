"""Tables and figures of the Creativity Index's replication."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fabula.measures.comparison import INDEX
from fabula.measures.detector_verdicts import calibration_row
from fabula.presentation.charts import COLOURS, LINE, SOFT, figure_of, save_comparison
from fabula.presentation.contrast_tables import omnibus_lines
from fabula.presentation.detection_tables import NAMES, SHORT, calibration_remarks, save_rocs
from fabula.presentation.sheet import Block, Cell, Column, Sheet, number
from fabula.replicate.claims import agreement_lines, load_printed
from fabula.replicate.creativity_index import Analyses, Scored, Spread, Texts, grouped, indices
from fabula.types import Contrast

_Mark = Callable[[str], str]
_CLAIMED = {
    "verbatim": "above, % verbatim", "near": "above, % near", "gap_11_verbatim": "L 11, verbatim",
    "gap_11_near": "L 11, near", "human_uniqueness_50": "left, people",
    "machine_uniqueness_50": "left, machines", "human_to_half": "to half, people",
    "machine_to_half": "to half, machines",
}  # fmt: skip
"""The columns compared with the paper: the printed quantity, and a title."""


def analyses_tables(found: Analyses) -> list[Block]:
    """Index by group, spread over documents, and detection; then all signatures."""
    numbers: dict[str, int] = {}

    def mark(signature: str) -> str:
        """A short mark for a signature, which is printed in full once at the end."""
        return f"[{numbers.setdefault(signature, len(numbers) + 1)}]"

    parts: list[Block] = [
        "TEXTS: those of one cluster (a prompt, and copies of each other) count as one in every "
        "mean, interval and test, and are left out of the reference together.",
        *(_texts_line(name, texts) for name, texts in found.texts.items()),
        "",
        "CREATIVITY INDEX, and people above each group: (people - group) / group, %.",
        *_index_parts(found.scored, mark),
        "",
        "BY LEVEL: L-uniqueness of A less that of B, in percentage points; * where the interval by "
        "clusters does not include 0.",
        *_level_parts(found.scored),
        "",
        "DOCUMENTS: uniqueness when only the best may be used.",
        *_spread_parts(found.spreads, mark),
        "",
        "BESIDE THE PAPER (printed; against RedPajama): people's index above models', by "
        "verbatim matches and with near ones; people's 11-uniqueness above OLMo's; what is left of "
        "5-uniqueness after 50 documents, and how many it takes to push it below a half, with near "
        "ones.",
        *_claim_parts(found),
        "",
        "HUMAN OR MACHINE: the share of pairs in which the human text ranks as more human. Where "
        "its interval includes 0.5, the score cannot tell them apart.",
        *_detection_parts(found, mark),
        "",
    ]
    return [*parts, *(f"[{k}] {signature}" for signature, k in numbers.items())]


def _texts_line(name: str, texts: Texts) -> str:
    n_joined = texts.n_clusters_before - texts.n_clusters
    more = f"; {n_joined:,} more before near-duplicates were joined" if n_joined else ""
    return (
        f"{name}: {texts.n_texts:,} texts, {texts.n_human:,} by people, in {texts.n_clusters:,} "
        f"clusters{more}"
    )


def _index_parts(scored: Sequence[Scored], mark: _Mark) -> Iterator[Block]:
    above = Column("people above, %", "+.1f", with_interval=True, name="people_above_percent")
    first, last = [Column("group"), Column("match"), Column("n", "d")], Column("p, Holm", ".2g")
    index, signature = Column("index", ".3f", with_interval=True), Column("", name="signature")
    columns = [*first, index, above, last, signature]
    for (texts, reference), some in grouped(scored):
        rows: list[list[Cell]] = []
        pairs: list[list[Cell]] = []
        for one in some:
            for group in indices(one.groups):
                found = one.above.get(group.group)
                percent: Cell = "" if found is None else found.details["percent"]
                p: Cell = "" if found is None else found.p_adjusted
                start: list[Cell] = [group.group, one.match, group.mean.n, group.mean]
                rows.append([*start, percent, p, mark(one.groups.signatures[INDEX])])
            for pair in one.people.contrasts:
                estimate = pair.details["percent"]
                start = [f"{pair.a} / {pair.b}", one.match, estimate.n]
                pairs.append([*start, estimate, pair.p_adjusted])
        name = f"{texts}, against {reference}"
        yield from ("", name, Sheet("index", columns, rows, about=("texts", name)))
        if pairs:
            yield from ("", Sheet("people", [*first, above, last], pairs, about=("texts", name)))
        for one in some:
            for line in omnibus_lines(one.models):
                yield f"machines, {one.match}: {line}"
        if n_copied := max(one.n_copied for one in some):
            yield f"{n_copied:,} of these texts occur in the reference with half of their words"
        if cleared := some[0].n_cleared:
            counts = ", ".join(f"{n:,} {label}" for label, n in sorted(cleared.items()))
            yield (
                f"for {sum(cleared.values()):,} texts ({counts}), documents that copy or quote "
                f"them were excluded"
            )


def _level_parts(scored: Sequence[Scored]) -> Iterator[Block]:
    for (texts, reference), some in grouped(scored):
        levels = list(dict.fromkeys(one.details["level"] for each in some for one in each.by_level))
        columns = [Column("A : B", name="pair"), Column("match")]
        columns += [Column(str(level), name=f"gap_{level}") for level in levels]
        rows: list[list[Cell]] = []
        for each in some:
            pairs: dict[tuple[str, str], list[Contrast]] = {}
            for one in each.by_level:
                pairs.setdefault((one.a, one.b), []).append(one)
            rows += [
                [f"{a} : {b}", each.match, *(_gap(one) for one in its)]
                for (a, b), its in pairs.items()
            ]
        name = f"{texts}, against {reference}"
        if rows:
            yield from ("", name, Sheet("levels", columns, rows, about=("texts", name)))


def _gap(one: Contrast) -> Cell:
    value, low, high = one.difference.ends().values()
    if value is None:
        return None
    is_sure = low is not None and high is not None and low * high > 0
    return f"{number(100 * value, '+.1f')}{'*' if is_sure else ''}"


def _spread_parts(spreads: Sequence[Spread], mark: _Mark) -> Iterator[Block]:
    columns = [
        Column("match"),
        Column("people", ".1%", of=lambda one: one.curves["human"][-1]),
        Column("machines", ".1%", of=lambda one: one.curves["machine"][-1]),
        Column("difference, %", "+.1f", with_interval=True, of="difference.details.percent"),
        Column("p", ".2g", of="difference.p"),
        Column("half: people", of=lambda one: _half(*one.to_half["human"])),
        Column("machines", name="half_machines", of=lambda one: _half(*one.to_half["machine"])),
        Column("", name="signature", of=lambda one: mark(one.signature)),
    ]
    for (texts, reference), some in grouped(spreads):
        n, n_documents = some[0].n, len(some[0].curves["human"]) - 1
        name = f"{texts}, against {reference}"
        yield ""
        yield (
            f"{name}: {n_documents} documents, clusters: {n['human']} of "
            f"people's texts, {n['machine']} of machines'"
        )
        yield Sheet.of("documents", some, columns, about=("texts", name))


def _half(mean: float | None, n: int, n_all: int) -> str:
    return f"none of {n_all}" if mean is None else f"{mean:.1f} (for {n} of {n_all})"


def _claim_parts(found: Analyses) -> list[Block]:
    claims = found.claims
    columns_by = [name for name in _CLAIMED if any(claim.column == name for claim in claims)]
    columns = [Column(_CLAIMED[name], ".1f", name=name) for name in columns_by]
    cells = {(claim.by, claim.column): claim for claim in claims}
    rows: list[list[Cell]] = [
        [by, *(cells.get((by, name)) for name in columns_by)]
        for by in dict.fromkeys(claim.by for claim in claims)
    ]
    sheet = Sheet("paper", [Column("texts, reference"), *columns], rows)
    return ["", sheet, "", *agreement_lines(claims)]


def _detection_parts(found: Analyses, mark: _Mark) -> Iterator[Block]:
    columns = [
        Column("against"),
        Column("machines", of=lambda one: one.machines or "all"),
        Column("score", of=lambda one: NAMES[one.calibration.score]),
        Column("outcome", of=lambda one: SHORT[one.calibration.outcome]),
        Column("AUROC", ".3f", with_interval=True, of="calibration.auroc"),
        Column("missing", "d", of="calibration.n_missing"),
        Column("ECE", ".3f", of="calibration.calibration_error"),
        Column("", name="signature", of=lambda one: mark(one.calibration.signature)),
    ]
    for texts in dict.fromkeys(one.texts for one in found.detectors):
        some = [one for one in found.detectors if one.texts == texts]
        first = some[0].calibration
        yield ""
        yield (
            f"{texts}: {first.n_human} by people, {first.n_machine} by machines, in "
            f"{first.n_clusters} clusters"
        )
        yield Sheet.of("detection", some, columns, about=("texts", texts))
        yield from calibration_remarks([one.calibration for one in some if one.machines is None])


def analyses_json(found: Analyses) -> dict[str, Any]:
    """As plain values for JSON output."""
    return {
        "paper": {
            name: float(printed)
            for (table, _, name), printed in load_printed("creativity_index").items()
            if table in ("Figure 3d", "Figure 3h")
        },
        "texts": {name: asdict(texts) for name, texts in found.texts.items()},
        "index": [
            {
                "texts": one.texts,
                "reference": one.reference,
                "match": one.match,
                "n_copied": one.n_copied,
                "n_cleared": one.n_cleared,
                "by_group": one.groups.to_json(),
                "people_above_percent": {
                    name: above.details["percent"].ends()
                    | {"p": above.p, "p_adjusted": above.p_adjusted}
                    for name, above in one.above.items()
                },
                "people": one.people.to_json(),
                "models": one.models and asdict(one.models),
                "by_level": [level.to_json() for level in one.by_level],
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
                "difference_percent": one.difference.details["percent"].value,
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
            {
                "texts": one.texts,
                "against": one.against,
                "machines": one.machines,
                **calibration_row(one.calibration),
            }
            for one in found.detectors
        ],
        "claims": [claim.to_json() for claim in found.claims],
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
    for texts in dict.fromkeys(one.texts for one in found.detectors):
        written.append(folder / f"{texts}-roc.svg")
        shown = [one for one in found.detectors if one.texts == texts and one.machines is None]
        save_rocs([one.calibration for one in shown], written[-1])
    return written


def _save_spreads(spreads: Sequence[Spread], path: Path) -> None:
    """Uniqueness against the number of documents, a panel per set and reference."""
    panels = grouped(spreads)
    n_columns = len({one.reference for one in spreads})
    n_rows = -(-len(panels) // n_columns)
    # By reference, with the sets of texts below each other.
    panels.sort(key=lambda panel: panel[0][0])
    size = (4.2 * n_columns, 0.4 + 3.2 * n_rows)
    with figure_of(path, n_rows, n_columns, figsize=size, sharey=True) as (figure, all_axes):
        for axes in all_axes[len(panels) :]:
            axes.set_axis_off()
        for axes, ((texts, reference), group) in zip(all_axes, panels, strict=False):
            for one in group:
                for side, colour in (("human", COLOURS[0]), ("machine", COLOURS[1])):
                    axes.plot(
                        [100 * value for value in one.curves[side]],
                        color=colour,
                        linestyle="-" if one.match == "verbatim" else "--",
                        linewidth=1.5,
                        label=f"{side}, {one.match}, n {one.n[side]}",
                    )
            axes.set_title(f"{texts}\nagainst {reference}", loc="left", fontsize=9)
            axes.set_xlabel("best documents that may be used")
            axes.grid(axis="y", color=LINE, linewidth=0.8)
            axes.legend(frameon=False, fontsize=7)
        for axes in all_axes[::n_columns]:
            axes.set_ylabel("uniqueness, % of words")
        lines = dict.fromkeys(one.signature for one in spreads)
        figure.supxlabel("\n".join(lines), fontsize=4, color=SOFT, x=0.01, ha="left")
