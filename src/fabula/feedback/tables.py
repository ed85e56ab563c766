"""Tables of feedback: its measures, and how well it finds planted faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fabula.core.errors import explain
from fabula.core.types import Estimate
from fabula.show.sheet import Block, Cell, Column, Sheet, contrast_sheet

if TYPE_CHECKING:
    from fabula.feedback.fault_matches import FindScore
    from fabula.feedback.job import FoundFaults, ScoredFeedback

_COLUMNS = {
    "length": "length", "perfect": "% PAI", "perfect_precision": "PAI prec",
    "perfect_precision_chance": "by chance", "repetition": "3-gramR",
    "repetition_imperfect": "w/o PAI", "overlap": "in story", "bertscore": "BERTSc.",
    "one_sentence": "1 sentence",
}  # fmt: skip
"""Labels as in Tables 1, 6 and 8."""
_SAYS = ("length", "perfect", "perfect_precision", "perfect_precision_chance")
"""Metrics of the first table of a cross; the others concern words."""


def score_tables(scored: ScoredFeedback) -> list[Block]:
    """A table for each cross of dimensions, in the paper's columns, then missing values."""
    parts: list[Block] = []
    subsets = scored.subsets
    for names in [(), *scored.crosses]:
        chosen = [s for s in subsets if set(s.where) == set(names)]
        for says in (True, False):
            figures = [
                Column(
                    title,
                    ".0f" if name == "length" else ".2f",
                    name != "perfect_precision_chance",  # without an interval
                    name=name,
                    of=f"values.{name}",
                )
                for name, title in _COLUMNS.items()
                if (name in _SAYS) is says and (name != "bertscore" or subsets[0].values[name].n)
            ]
            columns = [_subset(names), Column("n", ","), Column("stories", ",", name="n_stories")]
            name = "-".join(names) or "all"
            sheet = Sheet.of(name if says else f"{name}-words", chosen, [*columns, *figures])
            parts += [*sheet.with_notes("stories"), ""]
    parts.append(
        "PAI: says that the text is perfect as it is; prec: of those, the share of stories that "
        "were not corrupted, with the precision expected by chance beside it. 3-gramR: trigrams "
        "that also occur in another answer; in story: trigrams from the story."
    )
    for reason, n in sorted(scored.answers.n_missing.items()):
        parts.append(f"missing: {n:,} answers, {explain(reason)}")
    return [*parts, subsets[0].values["repetition"].signature]


def _subset(names: Sequence[str]) -> Column:
    return Column(
        "*".join(names) or "all answers",
        name="subset",
        of=lambda subset: " ".join(subset.where[name] for name in names) or "all",
    )


_SAID = {"perfect": ("says perfect", "is praise only"), "repetition": ("repetition", "is specific")}


def validation_table(estimates: Mapping[str, Estimate]) -> list[Block]:
    """How automatic measures correlate with people's ratings."""
    from fabula.feedback.scores import VALIDATED

    columns = [
        Column("measure"),
        Column("people: the feedback", name="people"),
        Column("n", ","),
        Column("stories", ",", name="n_stories"),
        Column("Pearson", "+.2f", with_interval=True),
        Column("paper", "+.2f"),
    ]
    rows: list[list[Cell]] = [
        [*_SAID[VALIDATED[item][0]], estimate.n, estimate.n_units, estimate, VALIDATED[item][1]]
        for item, estimate in estimates.items()
    ]
    return ["", *Sheet("validation", columns, rows).with_notes("stories")]


def finding_tables(found: FoundFaults) -> list[Block]:
    """Which answers find planted faults, for each reader; then how well these agree with people."""
    parts: list[Block] = []
    for reader in found.readers:
        what = "what answers quote" if reader.by == "quotation" else f"the judge {reader.by}"
        parts += [f"found by {what}", "", *_found_by(reader.by, found)]
        if pairs := found.pairs[reader.by]:
            more = [
                Column("answers", ",d", name="n_answers", of="details.n_answers"),
                Column("stories", ",d", name="n_stories", of="difference.n_units"),
            ]
            measure = Column("measure", once=True, of=lambda pair: pair.number.replace("_", " "))
            sheet = contrast_sheet("pairs", pairs, "+.2f", number=measure, more=more)
            parts += [*replace(sheet, about=("found_by", reader.by)).with_notes("stories"), ""]
        missing = Counter(reason for _, reason in reader.missing)
        parts += [f"missing: {n:,} answers, {explain(why)}" for why, n in sorted(missing.items())]
        parts += [reader.signature, ""]
    parts += [
        "recall: of the answers on changed stories, the share that finds the change; at least: "
        "the same if every missing answer counts as a miss; chance: the same with their places "
        "drawn at random; false alarms: of the answers on original stories, the share that names "
        "a fault; precision: of the answers that name a fault, the share that finds the planted "
        "one.",
        "",
    ]
    if not found.accuracies:
        who = "quotations and judges" if len(found.readers) > 1 else "quotations"
        return [*parts, f"no labels by people were given: how often {who} are right is unknown"]
    questions = {"found": "finds the fault", "asks": "names a fault"}
    columns = [
        Column("against people", name="by"),
        Column("question", name="item", of=lambda row: questions.get(row.item, row.item)),
        Column("labelled", ",d", name="n"),
        Column("of them Yes", ",d", name="n_yes"),
        Column("not read", ",d", name="n_unread"),
        Column("accuracy", ".2f", with_interval=True),
        Column("sensitivity", ".2f"),
        Column("specificity", ".2f"),
        Column("kappa", ".2f"),
    ]
    return [*parts, *Sheet.of("accuracy", found.accuracies, columns).with_notes("stories"), ""]


def _found_by(by: str, found: FoundFaults) -> list[Block]:
    """A reader's measures by each cross of dimensions, then by kind of fault."""

    def of(names: tuple[str, ...]) -> list[FindScore]:
        return [score for score in found.scores[by] if set(score.where) == set(names)]

    def n_missing(score: FindScore) -> int:
        return sum(score.missing.values())

    sheets = []
    for names in dict.fromkeys([(), *found.crosses]):
        columns = [
            _subset(names),
            Column("changed", ",d", name="n_changed"),
            Column("original", ",d", name="n_original"),
            Column("missing", ",d", name="n_missing", of=n_missing),
            Column("points", ".1f", name="n_points"),
            Column("recall", ".2f", with_interval=True, of="values.recall"),
            Column("chance", ".2f", of="values.chance"),
            Column("false alarms", ".2f", with_interval=True, of="values.false_alarms"),
            Column("precision", ".2f", with_interval=True, of="values.precision"),
            Column("F1", ".2f", with_interval=True, name="f1", of="values.f1"),
        ]
        name = "-".join(names) or "all"
        sheets.append(Sheet.of(name, of(names), columns, about=("found_by", by)))
    models = of(("model", "method"))
    kinds = of(("method",))
    if len({score.where["model"] for score in models}) > 1:
        kinds += models
    columns = [
        Column("model", of=lambda score: score.where.get("model", "all")),
        Column("kind of fault", name="method", of="where.method"),
        Column("answers", ",d", name="n_changed"),
        Column("missing", ",d", name="n_missing", of=n_missing),
        Column("stories", ",d", name="n_stories", of="values.recall.n_units"),
        Column("recall", ".2f", with_interval=True, of="values.recall"),
        Column("at least", ".2f", name="recall_at_least", of="values.recall_at_least"),
        Column("exact", ".2f", name="recall_exact", of="values.recall_exact"),
        Column("chance", ".2f", of="values.chance"),
    ]
    changed = [score for score in kinds if score.where["method"] != "original"]
    sheets.append(Sheet.of("kinds", changed, columns, about=("found_by", by)))
    return [block for sheet in sheets for block in (*sheet.with_notes("stories"), "")]
