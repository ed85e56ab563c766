"""Originality scores, and comparisons of groups of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fabula.core.errors import explain
from fabula.novelty.detector import OUTCOMES, Calibration
from fabula.show.charts import COLOURS, LINE, SOFT, figure_of
from fabula.show.sheet import Block, Cell, Column, Displayed, Sheet, known
from fabula.stats.norms import Distribution

_QUOTE_CHARS = 60


def originality_table(
    rows: Sequence[tuple[str, int, float | None, float | None, str | None]],
    levels: Sequence[str],
    signature: str,
    own: Distribution | None = None,
) -> list[Block]:
    """Texts with their scores: (id, words, index, uniqueness at the lowest L, missing reason).

    `own`: the index of the reference's own documents, to which each text is compared.
    """
    columns = [
        Column("text"),
        Column("words", ",", name="n_words"),
        Column(f"Creativity Index, of {len(levels)}", ".3f", name="creativity_index"),
        Column(f"{levels[0]}-uniqueness", ".1%", name=f"uniqueness_{levels[0]}"),
    ]
    cells: list[list[Cell]] = [
        [name, n_words, known(index, explain(reason)), lowest]
        for name, n_words, index, lowest, reason in rows
    ]
    if own is not None:
        columns.append(Column("above", ".0%", name="share_below"))
        for row, (_, _, index, _, _) in zip(cells, rows, strict=True):
            row.append(None if index is None else own.share_below(index))
    footer = []
    values = [index for _, _, index, _, _ in rows if index is not None]
    if len(rows) > 1 and values:
        n_missing = len(rows) - len(values)
        footer.append(
            f"mean Creativity Index {statistics.fmean(values):.3f} over {len(values):,} text"
            + ("" if len(values) == 1 else "s")
            + (f", {n_missing:,} without one" if n_missing else "")
        )
    if own is not None:
        footer.append(
            f"above: the share of {own.n:,} documents of the reference itself that score less"
        )
    return [Sheet("scores", columns, cells, many="texts"), *footer, signature]


def passages_table(
    passages: Sequence[dict[str, Any]], n_passages: int, n_commonplaces: int
) -> list[Block]:
    """The first of the borrowed passages, the least probable first; empty if there are none."""
    if not n_passages and not n_commonplaces:
        return []
    common = f"{n_commonplaces:,} common phrase" + ("s" if n_commonplaces != 1 else "")
    if not passages:
        return ["", f"no borrowed passage; {common}"]
    columns = [Column("passage", cut=True, of="quote"), _TEXT, *_WORDS, _PLACES, _SOURCE]
    if len({passage["id"] for passage in passages}) == 1:
        columns.remove(_TEXT)
    n_more = n_passages - len(passages)
    more = f"and {n_more:,} more borrowed passages; " if n_more else ""
    return ["", Sheet.of("passages", passages, columns), f"{more}{common}"]


def ranked_sheet(passages: Sequence[dict[str, Any]]) -> list[Block]:
    """All borrowed passages of all texts with their ranks, as files store them."""
    if not passages:
        return []

    def passage(row: dict[str, Any]) -> Cell:
        """In full in CSV, elsewhere as many words as fit on a line."""
        quote: str = row["quote"]
        cut = quote[:_QUOTE_CHARS].rpartition(" ")[0] + " ..."
        return Displayed(quote, cut) if len(quote) > _QUOTE_CHARS else quote

    columns = [
        _TEXT,
        Column("rank", "d"),
        Column("passage", of=passage),
        *_WORDS,
        Column("bits over chance", ".0f", name="over_chance", of=lambda p: known(p["over_chance"])),
        _PLACES,
        Column("documents", ",", name="n_documents"),
        _SOURCE,
    ]
    return [Sheet.of("passages", passages, columns)]


_TEXT = Column("text", once=True, of="id")
_WORDS = (
    Column("words", "d", name="n_words"),
    Column("word for word", "d", name="n_verbatim"),
    Column("bits", ".0f", of=lambda passage: known(passage["bits"])),
)
_PLACES = Column("places", ",", name="count")
_SOURCE = Column("also found in", name="source")


_TELLING = 0.25
LAYOUT = {
    "n_words": "Length",
    "line_breaks": "The number of line breaks",
    "sentence_ends": "The length of sentences",
    "straight_quotes": "The number of straight quotation marks",
    "curly_quotes": "The number of curly quotation marks",
    "other_quotes": "The number of single or foreign quotation marks",
}
SEPARATES = "separates"
SHORT = {
    SEPARATES: "tells",
    "cannot tell": "cannot tell",
    "reversed": "reversed",
    "too few": "too few clusters",
}
NAMES = {
    "creativity_index": "Creativity Index",
    "log_likelihood": "log-likelihood",
    "log_rank": "log-rank",
    "curvature": "Fast-DetectGPT",
}


def calibration_tables(calibrations: Sequence[Calibration]) -> list[Block]:
    """One line per detector, then the thresholds of those that tell human from machine."""
    detectors = Sheet(
        "detectors",
        [
            Column("", "d", name="detector"),
            Column("score"),
            Column("outcome"),
            Column("AUROC", ".3f", with_interval=True),
            Column("ECE", ".3f", name="calibration_error"),
        ],
        [
            [k, NAMES[c.score], SHORT[c.outcome], c.auroc, c.calibration_error]
            for k, c in enumerate(calibrations, 1)
        ],
    )
    limits = Sheet(
        "thresholds",
        [
            Column("", "d", name="detector"),
            Column("asked for", ".2g", name="target"),
            Column("human texts flagged", ".1%", name="false_positives"),
            Column("at most, 95 %", ".1%", name="false_positives_high"),
            Column("machine texts flagged", ".1%", name="true_positives"),
            Column("texts flagged"),
            Column("threshold"),
        ],
        [
            [
                k,
                threshold.target,
                threshold.false_positives,
                threshold.false_positives_high,
                threshold.true_positives,
                "below" if c.direction > 0 else "above",
                # With all its digits: a rounded threshold flags other texts.
                Displayed(c.direction * threshold.value, repr(c.direction * threshold.value)),
            ]
            for k, c in enumerate(calibrations, 1)
            if c.outcome == SEPARATES
            for threshold in c.thresholds
        ],
    )
    silent = {k: c for k, c in enumerate(calibrations, 1) if c.outcome != SEPARATES}
    footer: list[Block] = []
    if silent:
        why = "; ".join(dict.fromkeys(OUTCOMES[c.outcome] for c in silent.values()))
        footer.append(f"No verdicts are given by {', '.join(map(str, silent))}: {why}.")
    footer += ["ECE: expected calibration error of the probabilities, measured on other clusters."]
    for k, calibration in enumerate(calibrations, 1):
        field = calibration.collected and calibration.collected.cluster
        by = "" if field is None else f" by {field}"
        footer.append(
            f"{k}: {calibration.n_human:,} human and {calibration.n_machine:,} machine texts in "
            f"{calibration.n_clusters:,} clusters{by}, {calibration.n_human_clusters:,} of them "
            f"with human texts; {calibration.n_missing:,} without a score"
        )
        footer.append(f"   {calibration.signature}")
    shown: list[Block] = [detectors, "", limits] if limits.rows else [detectors]
    return [*shown, "", *footer, *calibration_remarks(calibrations)]


def calibration_remarks(calibrations: Sequence[Calibration]) -> list[str]:
    """Problems with how the texts were collected."""
    remarks = []
    for calibration in calibrations:
        if (collected := calibration.collected) is None:
            continue
        if collected.n_copies:
            remarks.append(
                f"{collected.n_copies:,} of the texts nearly repeat a text of another cluster, or "
                f"open like it; such clusters count as one ({calibration.n_clusters:,}, not "
                f"{collected.n_clusters_before:,})"
            )
        remarks += [
            f"{LAYOUT[name]} alone tells human from machine texts here (AUROC "
            f"{max(area, 1 - area):.2f}): the two were collected or published differently, which "
            "may explain the success of a score"
            for name, area in collected.layout.items()
            if abs(area - 0.5) >= _TELLING
        ]
    return list(dict.fromkeys(remarks))


def probability_table(rows: Sequence[dict[str, Any]], signature: str) -> list[Block]:
    """Texts with a model's scores."""

    def score(title: str) -> Column:
        # Its name is that of the score, as in rows.
        column = Column(title, ".3f")
        return replace(column, of=lambda row: known(row[column.field], row["missing_reason"]))

    columns = [Column("text", of="id"), Column("tokens", ",", name="n_tokens")]
    columns += map(score, ("log-likelihood", "log-rank", "curvature"))
    return [Sheet.of("probabilities", rows, columns, many="texts"), signature]


def verdict_table(rows: Sequence[dict[str, Any]]) -> list[Block]:
    """Texts with their verdicts, and how often such verdicts are wrong."""
    reasons = {row["missing_reason"] for row in rows}
    if len(reasons) == 1 and None not in reasons:
        return ["", f"no verdict on any of {len(rows):,} texts: {reasons.pop()}"]

    def shown(row: dict[str, Any]) -> str:
        """A suspicion about a person is never shown without its error rate."""
        if row["verdict"] == "machine":
            return f"flagged, as up to {row['false_positives_high']:.1%} of such people's texts are"
        return row["verdict"] or f"none: {row['missing_reason']}"

    human = Column("probability of human", ".2f", name="probability_human")
    columns = [Column("text", of="id"), Column("verdict", of=shown), human]
    n_flagged = sum(row["verdict"] == "machine" for row in rows)
    n_judged = sum(row["verdict"] is not None for row in rows)
    first = rows[0]
    return [
        Sheet.of("verdicts", rows, columns, many="texts"),
        f"{n_flagged:,} of {n_judged:,} flagged, no verdict on {len(rows) - n_judged:,} more. Of "
        f"the human texts that it was calibrated on, {first['false_positives']:.1%} were flagged "
        f"too; of other human texts of their kind at most {first['false_positives_high']:.1%}, "
        "with 95 % confidence. A text that is not flagged is not necessarily human; probabilities "
        "are valid for mixtures like that of the calibration.",
    ]


def save_rocs(calibrations: Sequence[Calibration], path: Path) -> None:
    """ROC curves. The same calibrations give the same bytes."""
    with figure_of(path, 1, 1, figsize=(5.6, 5.2)) as (figure, (axes,)):
        axes.plot([0, 100], [0, 100], color=SOFT, linewidth=0.8, linestyle=":")
        for k, calibration in enumerate(calibrations):
            x, y = zip(*calibration.curve, strict=True)
            area = calibration.auroc
            label = f"{k + 1} {NAMES[calibration.score]}, {area.value:.3f}"
            if area.low is not None and area.high is not None:
                label += f" [{area.low:.3f}, {area.high:.3f}]"
            axes.plot(
                [100 * v for v in x],
                [100 * v for v in y],
                color=COLOURS[k % len(COLOURS)],
                linewidth=1.5,
                label=label,
                linestyle="-" if k < len(COLOURS) else "--",
            )
        axes.set_xlabel("% of human texts called machine-written")
        axes.set_ylabel("% of machine texts called machine-written")
        axes.grid(color=LINE, linewidth=0.8)
        axes.legend(frameon=False, fontsize=7, loc="lower right")
        signed = (f"{k}: {c.signature}" for k, c in enumerate(calibrations, 1))
        lines = [line[at : at + 150] for line in signed for at in range(0, len(line), 150)]
        figure.supxlabel("\n".join(lines), fontsize=4, color=SOFT, x=0.01, ha="left")
