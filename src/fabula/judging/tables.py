"""Tables of verdicts, never without their trust, and themes of the reasons given for them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fabula.core.errors import NEVER_CHECKED, explain
from fabula.core.types import Contrast, Estimate, Measurement, Rubric
from fabula.judging.judges import JudgeCost, JudgeFigures
from fabula.judging.pairs import PairRanking, PairSummary
from fabula.judging.plan import is_identified
from fabula.judging.run import answer_shown, score_range
from fabula.judging.session import Spent
from fabula.judging.summary import JudgeSummary
from fabula.judging.trust import Trust
from fabula.raters.agreement import AmongPeople, GradedAgreement, JudgeAgreement
from fabula.raters.tables import ON_ITEM, corrected_columns, judge_reasons, missing_lines
from fabula.show.sheet import (
    Block,
    Cell,
    Column,
    Missing,
    Sheet,
    contrast_sheet,
    interval_notes,
    interval_shown,
    item_column,
    known,
    number,
    render,
)
from fabula.stats.ranking import Strength, is_told_apart

if TYPE_CHECKING:
    from fabula.judging.agreement import JudgeComparison
    from fabula.judging.themes import Theme

_N_REASONS = 3
_WIDTH = 92
_NO_MEAN = "no mean: the items' numbers have different ranges"
_LACKS_ONE = "an answer is missing"
_DIMENSION = Column("", name="dimension", once=True, of="item.dimension")
_TEST = Column("test", of="item.title")
_TRUST = Column(
    "agreement with experts (kappa)",
    name="trust",
    of=lambda row: NEVER_CHECKED if row.trust is None else row.trust.shown,
)
_ANSWERS = (
    _DIMENSION,
    _TEST,
    # `64.3% Yes` for a test among items of other kinds.
    Column("answers", of=lambda row: row.shown + (" Yes" if row.pass_rate is not None else "")),
    Column("of", "d", name="n"),
    Column("missing", "d", of=lambda row: sum(row.missing.values())),
    Column("mean P(Yes)", ".2f", name="mean_p_yes"),
    Column("same in all wordings", ".1%", name="same", of="wordings.share_same"),
    _TRUST,
)
PANEL_SHARES = (
    Column("AC1", ".2f", name="ac1"),
    Column("alpha", ".2f", with_interval=True),
    Column("equal", ".0%", name="share_equal", of="similarity"),
    Column("Yes", ".0%", name="share_yes"),
)
"""What else a row of a panel has besides its kappa."""


def judge_tables(
    summaries: Sequence[JudgeSummary], measurements: Sequence[Measurement], rubric: Rubric
) -> list[Block]:
    """The verdicts of a single story; for more, answers by item and the score of each story."""
    blocks: list[Block] = []
    for summary in summaries:
        blocks += [f"{rubric.title}, by {summary.rater}", ""]
        about = ("judge", summary.rater)
        if len(summary.scores) == 1:
            by_item = {each.item: each for each in measurements if each.rater == summary.rater}
            rows = [
                [
                    row.item.dimension,
                    row.item.title,
                    answer_shown(answer, row.item.scale),
                    answer.details.get("p_yes"),
                    _TRUST.cell(row),
                ]
                for row in summary.items
                if (answer := by_item.get(row.item.id)) is not None
            ]
            verdict = Column("verdict"), Column("P(Yes)", ".2f", name="p_yes")
            columns = [_DIMENSION, _TEST, *verdict, _TRUST]
            blocks.append(Sheet("verdicts", columns, rows, about=about))
        else:
            columns = list(_ANSWERS)
            if all(row.item.scale.is_test for row in summary.items):
                columns[2] = Column("passed", ".1%", of="pass_rate")
            if not summary.wordings:
                del columns[-2]
            blocks.append(Sheet.of("answers", summary.items, columns, about=about))
            if score_range(rubric):
                range_ = score_range(rubric, {row.item.id for row in summary.items})
                title = ", ".join(filter(None, [rubric.aggregate.title or "score", range_]))
                score = Column(title, ".4g", name="score", of=lambda row: known(row[1], _LACKS_ONE))
                columns = [Column("story", of=lambda row: row[0]), score]
                scores = summary.scores.items()
                blocks += ["", Sheet.of("scores", scores, columns, about=about, many="stories")]
            elif rubric.aggregate.rule == "mean":
                blocks += ["", _NO_MEAN]
        blocks += ["", *_remarks(summary, rubric), summary.signature, ""]
    return blocks


def _remarks(summary: JudgeSummary, rubric: Rubric) -> list[str]:
    trust = summary.overall_trust
    remarks = [
        f"trust: over all items kappa {trust.shown} ({trust.origin}). {trust.worth}"
        if trust
        else f"trust: this judge was {summary.unchecked} with this wording and style; `fabula "
        "judge calibrate` does it"
    ]
    n_missing = sum(summary.missing.values())
    if n_missing:
        reasons = ", ".join(f"{n} {explain(reason)}" for reason, n in summary.missing.items())
        remarks.append(f"missing: {n_missing} verdicts ({reasons}); none of them counts as No")
    if (spread := summary.wordings) is not None:
        shown = "no question was answered in every wording"
        if spread.n:
            shown = (
                f"{spread.n_same} of {spread.n} verdicts are the same in every wording of the "
                f"question ({spread.share_same:.1%})"
            )
        if spread.n and spread.shares_yes:
            first, *more = (f"{share:.1%}" for share in spread.shares_yes)
            shown += f"; Yes in the rubric's words {first}, in the others {', '.join(more)}"
        remarks.append(f"wordings: {shown}")
    if summary.flip_rate is not None:
        remarks.append(
            f"test-retest: {summary.n_flips} of {summary.n_retested} verdicts flipped "
            f"({summary.flip_rate:.1%}) when a story was judged twice"
        )
    if summary.length_rho is not None:
        remarks.append(
            f"length: Spearman {summary.length_rho:+.2f} of {rubric.aggregate.title or 'score'} "
            f"with the number of words"
        )
    if summary.is_unfenced:
        remarks.append(
            "no fence: the template has no [FENCE] around [STORY], so a story can pretend to end "
            "early"
        )
    for writer, n in summary.own_stories.items():
        remarks.append(f"own stories: {n} written by the {writer}; judges prefer their own")
    return remarks


def pair_table(pairs: Sequence[PairSummary], signature: str) -> list[Block]:
    """Preferences by item, with how often they changed with the order."""

    def preferred(pair: PairSummary) -> str:
        most = sorted(pair.n_wins.items(), key=lambda entry: (-entry[1], entry[0]))[:4]
        return ", ".join(f"{story} {n}" for story, n in most)

    columns = [
        Column("test", of="item"),
        Column("pairs", "d", name="n_pairs"),
        Column("decided", "d", name="n_decided"),
        Column("turned", "d", name="n_turned"),
        Column("first preferred", ".0%", name="first_share"),
        Column("preferred", of=preferred),
    ]
    every = pairs[-1]
    sentence = f"{every.n_decided} of {every.n_pairs} comparisons decided"
    if every.n_turned:
        sentence += f"; in {every.n_turned} the preference turned with the order of the stories"
    worth = f"trust: preferences between stories were {NEVER_CHECKED}"
    return [Sheet.of("pairs", pairs, columns), "", sentence, worth, signature]


# In a cell, which has room for a word.
_NO_STRENGTH = {"one_sided": "infinite", "not_compared": "not compared"}
_IS_APART = {True: "yes", False: "no", None: None}


def _strength(row: Strength) -> Cell:
    return Missing(_NO_STRENGTH[row.missing_reason]) if row.missing_reason else row.estimate


def ranking_tables(result: PairRanking, rater: str, by: str | None) -> list[Block]:
    """The ranking of stories or groups over all items; a sentence if there is none."""
    ranking = result.ranking
    about = "stories" if result.of == "story" else f"groups by {result.of}"
    title = f"ranking of {len(result.names)} {about}, over all items, by {rater}"
    units = "pairs" if ranking.units == "pairs" else f"values of {by}"
    how = f"{ranking.n:,} answers about {ranking.n_units:,} {units}"
    if ranking.p_chance is not None:
        how += f"; p = {ranking.p_chance:.2g}, by permutation"
    parts: list[Block] = [title, ""]
    if ranking.is_told_from_chance:
        above = {int(gap.a): _IS_APART[is_told_apart(gap)] for gap in ranking.gaps}
        columns = [
            Column(result.of, of=lambda strength: result.names[strength.thing]),
            Column("strength", "+.2f", with_interval=True, of=_strength),
            Column("answers", "d", name="n", of="estimate.n"),
            Column("preferred", ".0%", of="share"),
        ]
        if result.shared:
            of_names = [result.shared.get(name) for name in result.names]
            column = Column(by or "", name="part", once=True, of=lambda s: of_names[s.thing])
            columns.insert(0, column)
        if any(above.values()):
            more = Column("above the next", name="is_above_next", of=lambda s: above.get(s.thing))
            columns.append(more)
        name, many = ("ranking", "stories") if result.of == "story" else ("group_ranking", "")
        table = (name, ranking.strengths, columns)
        parts += [Sheet.of(*table, about=("judge", rater), many=many), ""]
        parts.append(f"the preferences differ from chance ({how})")
        strengths = ranking.strengths
        mean = f"the mean of those that share {by}" if result.shared else "the mean"
        notes = [f"strength: log-odds of being preferred to {mean}"]
        if any(gap.p_adjusted is not None for gap in ranking.gaps):
            notes.append("above the next: at p < 0.05, corrected (Holm) over all neighbours")
        if any(strength.missing_reason == "one_sided" for strength in strengths):
            notes.append(
                "infinite: always or never preferred to those that have a strength; the rank comes "
                "from these comparisons"
            )
        parts += [*notes, *interval_notes([strength.estimate for strength in strengths], units)]
    else:
        parts += [f"the preferences cannot be distinguished from chance ({how}): no order is shown"]
    place = ranking.place
    if place.value is None:
        helps = f"place: no effect can be estimated ({explain(ranking.place_reason)})"
    else:
        share = 1 / (1 + math.exp(-place.value))
        helps = (
            f"place: {place.value:+.2f} [{interval_shown(place, '+.2f')}] log-odds for the story "
            f"shown first; of two equal stories it is preferred in {share:.0%}"
        )
    return [*parts, helps, ranking.place.signature]


def agreement_tables(
    judges: Sequence[JudgeAgreement],
    panel: Sequence[AmongPeople],
    correlation: Estimate,
    rubric: Rubric,
) -> list[Block]:
    """Agreement among experts, then of each judge with their majority."""
    items = item_column(rubric)
    blocks: list[Block] = ["experts among themselves, on all that they judged", ""]
    blocks += [_panel_rows(panel, items, "experts"), correlation_line(correlation), ""]
    for judge in judges:
        blocks += _judge_parts(judge, items)
    return [*blocks, *_notes(panel, judges)]


def calibration_tables(
    judges: Sequence[tuple[JudgeAgreement, Sequence[Trust]]],
    ours: Sequence[AmongPeople],
    everywhere: Sequence[AmongPeople],
    correlation: Estimate,
    rubric: Rubric,
    n_stories: tuple[int, int],
) -> list[Block]:
    """Experts and judge on the stories that the judge read; then all stories the experts judged.

    `n_stories` are the counts of both. Experts' agreement on other stories is not a baseline for a
    judge, so the two are in separate tables.
    """
    items = item_column(rubric)
    n_here, n_all = n_stories
    heading = f"the {n_here} stories that the judge read: experts among themselves"
    blocks: list[Block] = [heading, "", _panel_rows(ours, items, "experts"), ""]
    for judge, trusts in judges:
        blocks += _judge_parts(judge, items)
        overall = next((trust for trust in trusts if trust.item == "all"), None)
        if overall is not None:
            blocks += [f"kappa {overall.shown}. {overall.worth}", ""]
        if trusts and not is_identified(trusts[0].model):
            blocks += [
                "not saved: the server does not say which model it runs, and it could run another "
                "tomorrow; put the name after the address, as in http://127.0.0.1:8080/v1#name",
                "",
            ]
    if n_all > n_here:
        blocks += [
            f"all {n_all} stories of the release, including those without their texts: experts "
            f"only, not comparable with a judge of the {n_here}",
            "",
            _panel_rows(everywhere, items, "experts_everywhere"),
            correlation_line(correlation),
            "",
        ]
    return [*blocks, *_notes([*ours, *everywhere], [judge for judge, _ in judges])]


def correlation_line(correlation: Estimate) -> str:
    """The correlation of the number of tests passed between people who read the same stories."""
    if correlation.value is None:
        return "tests passed: no two people answered all of a story, or all passed as many"
    interval = f" [{interval_shown(correlation, '.2f')}]" if correlation.low is not None else ""
    r = number(correlation.value, ".2f")
    return f"tests passed: Pearson {r}{interval} between two people on a story"


def _panel_rows(panel: Sequence[AmongPeople], items: Column, name: str) -> Sheet:
    kappa = Column("Fleiss", ".2f", with_interval=True, of="kappa")
    return Sheet.of(name, panel, [items, Column("n", "d", of="kappa.n"), kappa, *PANEL_SHARES])


def _judge_parts(judge: JudgeAgreement, items: Column) -> list[Block]:
    columns = [
        items,
        Column("n", "d", of="confusion.n"),
        Column("kappa", ".2f", with_interval=True),
        Column("AC1", ".2f", name="ac1"),
        Column("bal.", ".2f", name="balanced_accuracy", of="confusion.balanced_accuracy"),
        Column("prec.", ".2f", name="precision", of="confusion.precision"),
        Column("recall", ".2f", of="confusion.recall"),
        Column("F1", ".2f", name="f1", of="confusion.f1"),
        Column("phi", ".2f", of="confusion.phi"),
    ]
    n = judge.overall.confusion.n
    blocks: list[Block] = [
        f"{judge.rater} with the experts' majority, on {n:,} items that both judged (Cohen)",
        "",
        Sheet.of("judges", (*judge.rows, judge.overall), columns, about=("judge", judge.rater)),
    ]
    if judge.overall.n_missing:
        blocks.append(f"missing: {judge.overall.n_missing} verdicts of this judge, left out")
    if judge.n_ties:
        blocks.append(f"no majority: {judge.n_ties} verdicts, on which the experts are split")
    if judge.n_stories:  # else the rubric's answers are not aggregated
        blocks.append(
            f"tests passed, {judge.n_stories} stories: Pearson "
            f"{number(judge.pearson.value, '.2f')} [{interval_shown(judge.pearson, '.2f')}], "
            f"Spearman {number(judge.spearman, '.2f')}"
        )
    return [*blocks, judge.signature, ""]


def _notes(panel: Sequence[AmongPeople], judges: Sequence[JudgeAgreement]) -> list[str]:
    shown = [row.kappa for row in panel]
    why = missing_lines((row.name, row) for row in panel)
    for judge in judges:
        rows = (*judge.rows, judge.overall)
        shown += [*(row.kappa for row in rows), judge.pearson]
        why += missing_lines(((row.name, row) for row in rows), judge.rater)
        if judge.n_stories and judge.why_no_correlation:
            why.append(f"no correlation of {judge.rater}: {judge.why_no_correlation}")
    return [*why, *interval_notes(shown, "stories")]


def spent_lines(spent: Sequence[Spent]) -> list[str]:
    """The usage of each model."""
    lines = []
    for used in spent:
        cost = "cost unknown" if used.cost is None else f"{used.cost:.4f} dollars"
        shown = "free" if used.is_free else cost
        if used.usage.is_estimated:
            shown += " (tokens estimated here, since the server does not report all of them)"
        lines.append(
            f"{used.model}: {used.n_calls:,} calls, {used.usage.n_input:,} input tokens "
            f"({used.usage.n_cached:,} from the cache), {used.usage.n_output:,} output tokens, "
            f"{shown}"
        )
    return lines


def theme_lines(themes: Sequence[Theme], rubric: Rubric) -> list[str]:
    """By item, why stories pass it, then why they fail it, with the most typical reasons."""
    lines: list[str] = []
    for item in rubric.items:
        of_item = [theme for theme in themes if theme.item == item.id]
        if of_item:
            lines += [f"{item.index} {item.title}", ""]
        for theme in of_item:
            share = f"{theme.n_rationales} of {theme.n_of}"
            lines.append(f"  {theme.side}: {theme.label} ({share})")
            for reason in theme.reasons[:_N_REASONS]:
                quoted = f"“{reason['text']}” ({reason['document']})"
                lines += (f"    {line}" for line in textwrap.wrap(quoted, _WIDTH - 4))
            lines.append("")
    if lines:
        lines.append(
            "A rationale with several sentences can count under several themes; "
            "`fabula judge themes --model` has a model name them."
        )
    # Wrapped as the terminal shows them, without its commands.
    return render(*lines).split("\n")[:-1]


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


def judge_comparison_tables(compared: JudgeComparison) -> list[Block]:
    """Agreement with the experts, faults, answers and cost; then each pair of judges."""
    everybody, corrected, pairs = compared.judges, compared.corrected, compared.pairs
    # The figures of the yes-no items, if the rubric has any.
    judges = everybody if compared.has_tests else []
    blocks: list[Block] = []
    if judges:
        blocks += [
            "with the experts' majority (Cohen's kappa); people: one person with the others, on "
            "the same documents",
            "",
            Sheet.of("comparison", judges, _AGREEMENT),
        ]
    if compared.graded is not None:
        blocks += [*([""] if blocks else []), *_graded(compared.graded, compared.graded_pairs)]
    if corrected:
        unit, form = ("Yes", ".1%") if judges else ("mean", ".2f")
        raters = [figures.judge.rater for figures in everybody if figures.judge.rater in corrected]
        rows = [replace(corrected[rater], name=rater) for rater in raters]
        columns = corrected_columns(unit, "experts would say", form, ".1f")
        blocks += [
            "",
            f"{unit} over all documents: from the judge alone, and corrected by the labels; worth: "
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
        if not any(figures.judge.wordings for figures in judges):
            del columns[2]
        blocks += [
            "",
            "faults: how much asking again and other wordings change (kappa), and how Yes depends "
            "on length, on the judge's own family, and on being shown first",
            "",
            Sheet.of("faults", judges, columns),
        ]
    blocks += ["", _answers(everybody, compared.costs)]
    if pairs:
        blocks += [
            "",
            "each two judges on what both answered: kappa with the experts of A minus that of B, "
            "and how far the two agree",
            "",
            _pairs("pairs", pairs, None),
        ]
    return [*blocks, "", *_comparison_notes(everybody, [*pairs, *compared.graded_pairs])]


def _graded(graded: GradedAgreement, pairs: Sequence[Contrast]) -> list[Block]:
    """Items that are not yes-no: each judge compared with people, then each pair of judges."""
    rows = [
        {"item": item, "rater": rater, "on_item": by_item[item]}
        for item in graded.people
        for rater, by_item in graded.judges.items()
        if item in by_item
    ]
    blocks: list[Block] = []
    if rows:
        columns = [Column("item", once=True), _RATER, Column("n", "d", of="on_item.n"), *ON_ITEM]
        sheet = Sheet.of("graded", rows, columns)
        blocks = [
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
        blocks += [
            *([""] if blocks else []),
            "each two judges on what both answered: kappa with people of A minus that of B, and "
            "how far the two agree",
            "",
            sheet,
            *(f"no {name} ({'; '.join(names)}): {reason}" for (name, reason), names in why.items()),
            *interval_notes(sheet.estimates(), "documents"),
        ]
    return blocks


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
    for judge in [figures.judge for figures in judges]:
        missing = [f"{n} {explain(reason)}" for reason, n in judge.missing.items()]
        row: list[Cell] = [judge.rater, judge.n_answers, "; ".join(missing) or "none"]
        cost = costs.get(judge.rater)
        spent = (cost.n_calls, cost.n_input + cost.n_output, cost.cost) if cost else [None] * 3
        rows.append([*row, *spent])
    return Sheet("answers", columns, rows)


def _comparison_notes(judges: Sequence[JudgeFigures], pairs: Sequence[Contrast]) -> list[str]:
    """Why figures of judges are missing: each reason once, with the figures and judges affected."""
    by_figure: dict[tuple[str, str], list[str]] = {}
    alone = [figures for figures in judges if figures.judge.kind == "judge"]
    for row in alone:
        for figure, reason in row.why_missing.items():
            by_figure.setdefault((figure, reason), []).append(row.judge.rater)
    by_reason: dict[tuple[str, str], list[str]] = {}
    for (figure, reason), raters in by_figure.items():
        names = "all" if len(raters) == len(alone) else ", ".join(raters)
        by_reason.setdefault((names, reason), []).append(figure.replace("_", " "))
    lines = [f"no {', '.join(figures)} ({who}): {why}" for (who, why), figures in by_reason.items()]
    if not pairs:
        lines.append("no pairs: fewer than two judges")
    shown = [pair.difference for pair in pairs if "why_missing" not in pair.details]
    for row in judges:
        shown += [row.kappa, row.wordings, row.length, row.own_family]
    return [*lines, *interval_notes(shown, "documents")]
