"""Tables that compare judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fabula.errors import explain
from fabula.judging.judges import JudgeCost, JudgeFigures
from fabula.measures.agreement import GradedAgreement
from fabula.measures.corrected_means import CorrectedRow
from fabula.presentation.correction_tables import corrected_columns
from fabula.presentation.rating_tables import ON_ITEM, judge_reasons
from fabula.presentation.sheet import Block, Cell, Column, Sheet, contrast_sheet, interval_notes
from fabula.types import Contrast

_RATER = Column("", name="rater")
_JUDGE = Column("", name="rater", of="judge.rater")
_AGREEMENT = (
    _JUDGE,
    Column("n", "d", of="kappa.n"),
    Column("kappa", ".2f", with_interval=True),
    Column("people", ".2f", name="baseline"),
    Column("sens.", ".2f", name="sensitivity", of="confusion.recall"),
    Column("spec.", ".2f", name="specificity", of="confusion.specificity"),
    Column("Yes", ".0%", name="share_yes"),
)
_AGREE = Column("agree", ".2f", with_interval=True, name="agreement", of="details.agreement")


def judge_comparison_tables(
    judges: Sequence[JudgeFigures],
    pairs: Sequence[Contrast],
    costs: Mapping[str, JudgeCost],
    corrected: Mapping[str, CorrectedRow],
    graded: GradedAgreement | None = None,
    graded_pairs: Sequence[Contrast] = (),
    *,
    everybody: Sequence[JudgeFigures],
) -> list[Block]:
    """Agreement with the experts, faults, answers and cost; then each pair of judges.

    `judges` is empty if the rubric has no yes-no items; `everybody` has all judges regardless.
    """
    parts: list[Block] = []
    if judges:
        parts += [
            "with the experts' majority (Cohen's kappa); people: one person with the others, on "
            "the same documents",
            "",
            Sheet.of("comparison", judges, _AGREEMENT),
        ]
    if graded is not None:
        parts += [*([""] if parts else []), *_graded(graded, graded_pairs)]
    if corrected:
        said, form = ("Yes", ".1%") if judges else ("mean", ".2f")
        raters = [one.judge.rater for one in everybody if one.judge.rater in corrected]
        rows = [replace(corrected[rater], name=rater) for rater in raters]
        columns = corrected_columns(said, "experts would say", form, ".1f")
        parts += [
            "",
            f"{said} over all documents: from the judge alone, and corrected by the labels; worth: "
            "how many labelled documents give the same precision without the judge",
            "",
            Sheet.of("corrected", rows, [Column("", name="rater", of="name"), *columns]),
        ]
    if judges:
        columns = [
            _JUDGE,
            Column("retest", ".2f", name="retest_kappa", of="retest.value"),
            Column("worded", ".2f", with_interval=True, name="wordings_kappa", of="wordings"),
            Column("length", "+.2f", with_interval=True),
            Column("own", "+.0%", with_interval=True, name="own_family"),
            Column("first", ".0%", name="first_place", of="judge.place.first_share"),
        ]
        if not any(one.judge.wordings for one in judges):
            del columns[2]
        parts += [
            "",
            "faults: how much asking again and other wordings change (kappa), and how Yes depends "
            "on length, on the judge's own family, and on being shown first",
            "",
            Sheet.of("faults", judges, columns),
        ]
    parts += ["", _answers(everybody, costs)]
    if pairs:
        parts += [
            "",
            "each two judges on what both answered: kappa with the experts of A minus that of B, "
            "and how far the two agree",
            "",
            _pairs("pairs", pairs, None),
        ]
    return [*parts, "", *_notes(everybody, [*pairs, *graded_pairs])]


def _graded(graded: GradedAgreement, pairs: Sequence[Contrast]) -> list[Block]:
    """Items that are not yes-no: each judge compared with people, then each pair of judges."""
    things = [
        {"item": item, "rater": rater, "on_item": by_item[item]}
        for item in graded.people
        for rater, by_item in graded.judges.items()
        if item in by_item
    ]
    parts: list[Block] = []
    if things:
        columns = [Column("item", once=True), _RATER, Column("n", "d", of="on_item.n"), *ON_ITEM]
        sheet = Sheet.of("graded", things, columns)
        parts = [
            "items that are not yes-no: kappa with a person (with quadratic weights for numbers), "
            "and between two people on the same documents",
            "",
            sheet,
            *judge_reasons(graded),
            *interval_notes(sheet.estimates(), "documents"),
        ]
    if pairs:
        sheet = _pairs("graded_pairs", pairs, Column("item", once=True, of="number"))
        why: dict[tuple[str, str], list[str]] = {}
        for p in pairs:
            for key in p.details["why_missing"].items():
                why.setdefault(key, []).append(f"{p.a} and {p.b}, {p.number}")
        parts += [
            *([""] if parts else []),
            "each two judges on what both answered: kappa with people of A minus that of B, and "
            "how far the two agree",
            "",
            sheet,
            *(f"no {name} ({'; '.join(who)}): {reason}" for (name, reason), who in why.items()),
            *interval_notes(sheet.estimates(), "documents"),
        ]
    return parts


def _pairs(name: str, pairs: Sequence[Contrast], number: Column | None) -> Sheet:
    return contrast_sheet(name, pairs, "+.2f", number=number, more=[_AGREE], p="", adjusted=False)


def _answers(judges: Sequence[JudgeFigures], costs: Mapping[str, JudgeCost]) -> Sheet:
    columns = [
        _RATER,
        Column("answers", "d", name="n_answers"),
        Column("missing"),
        Column("calls", ",d", name="n_calls"),
        Column("tokens", ",d", name="n_tokens"),
        Column("dollars", ".4f", name="cost"),
    ]
    rows: list[list[Cell]] = []
    for one in judges:
        missing = [f"{n} {explain(reason)}" for reason, n in one.judge.missing.items()]
        row: list[Cell] = [one.judge.rater, one.judge.n_answers, "; ".join(missing) or "none"]
        cost = costs.get(one.judge.rater)
        spent = (cost.n_calls, cost.n_input + cost.n_output, cost.cost) if cost else [None] * 3
        rows.append([*row, *spent])
    return Sheet("answers", columns, rows)


def _notes(judges: Sequence[JudgeFigures], pairs: Sequence[Contrast]) -> list[str]:
    """Why figures of judges are missing: each reason once, with the figures and judges affected."""
    by_figure: dict[tuple[str, str], list[str]] = {}
    alone = [one for one in judges if one.judge.kind == "judge"]
    for one in alone:
        for figure, reason in one.why_missing.items():
            by_figure.setdefault((figure, reason), []).append(one.judge.rater)
    by_reason: dict[tuple[str, str], list[str]] = {}
    for (figure, reason), raters in by_figure.items():
        who = "all" if len(raters) == len(alone) else ", ".join(raters)
        by_reason.setdefault((who, reason), []).append(figure.replace("_", " "))
    lines = [f"no {', '.join(figures)} ({who}): {why}" for (who, why), figures in by_reason.items()]
    if not pairs:
        lines.append("no pairs: fewer than two judges")
    shown = [pair.difference for pair in pairs if "why_missing" not in pair.details]
    for one in judges:
        shown += [one.kappa, one.wordings, one.length, one.own_family]
    return [*lines, *interval_notes(shown, "documents")]
