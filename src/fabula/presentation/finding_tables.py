"""Tables of planted faults: which answers find them, and how accurate their readers are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from fabula.presentation.sheet import Block, Cell, Column, Sheet, interval_notes
from fabula.reasons import explain
from fabula.tasks.feedback.fault_matches import Findings
from fabula.tasks.feedback.recall import FindScore, ModelPair, ReaderAccuracy


def finding_tables(
    readers: Sequence[Findings],
    scores: Mapping[str, Sequence[FindScore]],
    pairs: Mapping[str, Sequence[ModelPair]],
    accuracies: Sequence[ReaderAccuracy],
    crosses: Sequence[tuple[str, ...]],
) -> list[Block]:
    """For each reader its tables; then how well readers agree with people."""
    parts: list[Block] = []
    for one in readers:
        what = "what answers quote" if one.by == "quotation" else f"the judge {one.by}"
        parts += [f"found by {what}", ""]
        own = scores[one.by]
        for names in dict.fromkeys([(), *crosses]):
            parts += _with_notes(_overall(names, _of(own, names), one.by))
        models = _of(own, ("model", "method"))
        kinds = [] if len({score.where["model"] for score in models}) < 2 else models
        by_kind = [*_of(own, ("method",)), *kinds]
        changed = [s for s in by_kind if s.where["method"] != "original"]
        parts += _with_notes(_by_kind(changed, one.by))
        if pairs[one.by]:
            parts += _with_notes(_pairs(pairs[one.by], one.by))
        missing = Counter(reason for _, reason in one.missing)
        parts += [f"missing: {n:,} answers, {explain(why)}" for why, n in sorted(missing.items())]
        parts += [one.signature, ""]
    parts += [
        "recall: of the answers on changed stories, the share that finds the change; at least: "
        "the same if every missing answer counts as a miss; chance: the same with their places "
        "drawn at random; false alarms: of the answers on original stories, the share that names "
        "a fault; precision: of the answers that name a fault, the share that finds the planted "
        "one.",
        "",
    ]
    if accuracies:
        return [*parts, *_with_notes(_accuracy(accuracies))]
    who = "quotations and judges" if len(readers) > 1 else "quotations"
    return [*parts, f"no labels by people were given: how often {who} are right is unknown"]


def _of(scores: Sequence[FindScore], names: tuple[str, ...]) -> list[FindScore]:
    return [score for score in scores if set(score.where) == set(names)]


def _with_notes(sheet: Sheet) -> list[Block]:
    return [sheet, *interval_notes(sheet.estimates(), "stories"), ""]


def _overall(names: Sequence[str], scores: Sequence[FindScore], by: str) -> Sheet:
    columns = [
        Column("*".join(names) or "all answers", name="subset"),
        Column("changed", ",d", name="n_changed"),
        Column("original", ",d", name="n_original"),
        Column("missing", ",d", name="n_missing"),
        Column("points", ".1f", name="n_points"),
        Column("recall", ".2f", with_interval=True),
        Column("chance", ".2f"),
        Column("false alarms", ".2f", with_interval=True),
        Column("precision", ".2f", with_interval=True),
        Column("F1", ".2f", with_interval=True, name="f1"),
    ]
    rows: list[list[Cell]] = [
        [
            " ".join(score.where[name] for name in names) or "all",
            score.n_changed,
            score.n_original,
            sum(score.missing.values()),
            score.n_points,
            *(
                score.values[name]
                for name in ("recall", "chance", "false_alarms", "precision", "f1")
            ),
        ]
        for score in scores
    ]
    return Sheet("-".join(names) or "all", columns, rows, about=("found_by", by))


def _by_kind(scores: Sequence[FindScore], by: str) -> Sheet:
    columns = [
        Column("model"),
        Column("kind of fault", name="method"),
        Column("answers", ",d", name="n_changed"),
        Column("missing", ",d", name="n_missing"),
        Column("stories", ",d", name="n_stories"),
        Column("recall", ".2f", with_interval=True),
        Column("at least", ".2f", name="recall_at_least"),
        Column("exact", ".2f", name="recall_exact"),
        Column("chance", ".2f"),
    ]
    rows: list[list[Cell]] = [
        [
            score.where.get("model", "all"),
            score.where["method"],
            score.n_changed,
            sum(score.missing.values()),
            score.values["recall"].n_units,
            *(
                score.values[name]
                for name in ("recall", "recall_at_least", "recall_exact", "chance")
            ),
        ]
        for score in scores
    ]
    return Sheet("kinds", columns, rows, about=("found_by", by))


def _pairs(pairs: Sequence[ModelPair], by: str) -> Sheet:
    columns = [
        Column("measure", of=lambda pair: pair.measure.replace("_", " ")),
        Column("model", name="a"),
        Column("less", name="b"),
        Column("answers", ",d", name="n"),
        Column("stories", ",d", name="n_stories", of="difference.n_units"),
        Column("difference", "+.2f", with_interval=True),
        Column("p", ".3f"),
        Column("p (Holm)", ".3f", name="p_holm"),
    ]
    return Sheet.of("pairs", pairs, columns, about=("found_by", by))


_ITEMS = {"found": "finds the fault", "asks": "names a fault"}


def _accuracy(accuracies: Sequence[ReaderAccuracy]) -> Sheet:
    columns = [
        Column("against people", name="by"),
        Column("question", name="item", of=lambda one: _ITEMS.get(one.item, one.item)),
        Column("labelled", ",d", name="n"),
        Column("of them Yes", ",d", name="n_yes"),
        Column("not read", ",d", name="n_unread"),
        Column("accuracy", ".2f", with_interval=True),
        Column("sensitivity", ".2f"),
        Column("specificity", ".2f"),
        Column("kappa", ".2f"),
    ]
    return Sheet.of("accuracy", accuracies, columns)
