"""Tables of verdicts: never a verdict without its trust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fabula.judging.answers import answer_shown, score_range
from fabula.judging.pairwise import PairSummary
from fabula.judging.plan import is_identified
from fabula.judging.session import Spent
from fabula.judging.summary import ItemSummary, JudgeSummary
from fabula.judging.trust import NEVER_CHECKED, Trust
from fabula.measures.agreement import JudgeAgreement, PanelRow
from fabula.presentation.sheet import (
    Block,
    Cell,
    Column,
    Missing,
    Sheet,
    interval_notes,
    interval_shown,
    number,
)
from fabula.reasons import explain
from fabula.types import Measurement, Rubric

__all__ = [
    "agreement_tables",
    "calibration_tables",
    "judge_tables",
    "pair_table",
    "spent_lines",
]

_NO_MEAN = "no mean: the items' numbers have different ranges"
_DIMENSION = Column("", name="dimension", once=True)
_TEST = Column("test")
_TRUST = Column("agreement with experts (kappa)", name="trust")


def judge_tables(
    summaries: Sequence[JudgeSummary], measurements: Sequence[Measurement], rubric: Rubric
) -> list[Block]:
    """For one story its verdicts; for more, the answers by item and the score of each story."""
    parts: list[Block] = []
    for summary in summaries:
        parts += [f"{rubric.title}, by {summary.rater}", ""]
        if len(summary.scores) == 1:
            mine = [one for one in measurements if one.rater == summary.rater]
            parts.append(_verdicts(summary, mine))
        else:
            parts.append(_answers(summary))
            if score_range(rubric):
                parts += ["", _scores(summary, rubric)]
            elif rubric.aggregate.rule == "mean":
                parts += ["", _NO_MEAN]
        parts += ["", *_remarks(summary, rubric), summary.signature, ""]
    return parts


def _about(rater: str) -> tuple[str, str]:
    return "judge", rater


def _verdicts(summary: JudgeSummary, measurements: Sequence[Measurement]) -> Sheet:
    columns = [_DIMENSION, _TEST, Column("verdict"), Column("P(Yes)", ".2f", name="p_yes"), _TRUST]
    values = {one.item: one for one in measurements}
    rows: list[list[Cell]] = []
    for row in summary.items:
        one = values.get(row.item.id)
        if one is not None:
            verdict = answer_shown(one, row.item.scale)
            p_yes = one.details.get("p_yes")
            rows.append([row.item.dimension, row.item.title, verdict, p_yes, _trust(row.trust)])
    return Sheet("verdicts", columns, rows, about=_about(summary.rater))


def _answers(summary: JudgeSummary) -> Sheet:
    is_plain = all(row.item.scale.is_test for row in summary.items)
    columns = [
        _DIMENSION,
        _TEST,
        Column("passed", ".1%") if is_plain else Column("answers"),
        Column("of", "d", name="n"),
        Column("missing", "d"),
        Column("mean P(Yes)", ".2f", name="mean_p_yes"),
        _TRUST,
    ]
    rows: list[list[Cell]] = [
        [
            row.item.dimension,
            row.item.title,
            row.pass_rate if is_plain else _shown_answers(row),
            row.n,
            sum(row.missing.values()),
            row.mean_p_yes,
            _trust(row.trust),
        ]
        for row in summary.items
    ]
    return Sheet("answers", columns, rows, about=_about(summary.rater))


def _shown_answers(row: ItemSummary) -> str:
    """As its scale has it; `64.3% Yes` for a test among items that are none."""
    return row.shown if row.pass_rate is None else f"{row.shown} Yes"


def _scores(summary: JudgeSummary, rubric: Rubric) -> Sheet:
    title = ", ".join(filter(None, [rubric.aggregate.title or "score", score_range(rubric)]))
    without = Missing("an answer is missing")
    rows = [[story, without if s is None else s] for story, s in summary.scores.items()]
    columns = [Column("story"), Column(title, ".4g", name="score")]
    return Sheet("scores", columns, rows, about=_about(summary.rater), many="stories")


def _remarks(summary: JudgeSummary, rubric: Rubric) -> list[str]:
    """What a careful reader of the verdicts should know."""
    trust = summary.overall_trust
    remarks = [
        f"trust: over all items kappa {trust.shown} ({trust.data}; {trust.how}). {trust.worth}"
        if trust
        else f"trust: this judge was {NEVER_CHECKED} with this wording and style; "
        f"`fabula judge calibrate` does it"
    ]
    n_missing = sum(summary.missing.values())
    if n_missing:
        reasons = ", ".join(f"{n} {explain(reason)}" for reason, n in summary.missing.items())
        remarks.append(f"missing: {n_missing} verdicts ({reasons}); none of them counts as No")
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
    remarks += [
        f"own stories: {n} written by the {kind}; judges prefer their own"
        for kind, n in summary.own_stories.items()
    ]
    return remarks


def _trust(trust: Trust | None) -> str:
    return NEVER_CHECKED if trust is None else trust.shown


def pair_table(pairs: Sequence[PairSummary], signature: str) -> list[Block]:
    """Preferences by item, with how often they turned with the order."""
    columns = [
        _TEST,
        Column("pairs", "d", name="n_pairs"),
        Column("decided", "d", name="n_decided"),
        Column("turned", "d", name="n_turned"),
        Column("first preferred", ".0%", name="first_share"),
        Column("preferred"),
    ]
    rows: list[list[Cell]] = [
        [
            pair.item,
            pair.n_pairs,
            pair.n_decided,
            pair.n_turned,
            pair.first_share,
            ", ".join(f"{story} {n}" for story, n in _most_preferred(pair)),
        ]
        for pair in pairs
    ]
    every = pairs[-1]
    sentence = f"{every.n_decided} of {every.n_pairs} comparisons decided"
    if every.n_turned:
        sentence += f"; in {every.n_turned} the preference turned with the order of the stories"
    worth = f"trust: preferences between stories were {NEVER_CHECKED}"
    return [Sheet("pairs", columns, rows), "", sentence, worth, signature]


def _most_preferred(pair: PairSummary) -> list[tuple[str, int]]:
    return sorted(pair.n_wins.items(), key=lambda entry: (-entry[1], entry[0]))[:4]


def agreement_tables(
    judges: Sequence[JudgeAgreement],
    panel: Sequence[PanelRow],
    expert_r: float | None,
    rubric: Rubric,
) -> list[Block]:
    """Experts among themselves, then each judge with their majority."""
    titles = {item.id: f"{item.index} {item.title}" for item in rubric.items}
    parts: list[Block] = ["experts among themselves, on all that they judged", ""]
    parts += [_panel_rows(panel, titles, "experts"), _expert_correlation(expert_r), ""]
    for judge in judges:
        parts += _judge_parts(judge, titles)
    return [*parts, *_notes(panel, judges)]


def calibration_tables(
    judges: Sequence[tuple[JudgeAgreement, Sequence[Trust]]],
    here: Sequence[PanelRow],
    everywhere: Sequence[PanelRow],
    expert_r: float | None,
    rubric: Rubric,
    n_stories: tuple[int, int],
) -> list[Block]:
    """The stories that the judge read, with experts and judge; then all that experts judged.

    `n_stories` are the counts of both. What experts reach on other stories is no yardstick for a
    judge, so the two stand in tables of their own.
    """
    titles = {item.id: f"{item.index} {item.title}" for item in rubric.items}
    n_here, n_all = n_stories
    parts: list[Block] = [
        f"the {n_here} stories with texts, which the judge read: experts among themselves",
        "",
        _panel_rows(here, titles, "experts"),
        "",
    ]
    for judge, trusts in judges:
        parts += _judge_parts(judge, titles)
        overall = next((trust for trust in trusts if trust.item == "all"), None)
        if overall is not None:
            parts += [f"kappa {overall.shown}. {overall.worth}", ""]
        if trusts and not is_identified(trusts[0].model):
            parts += [
                "not kept: the server does not say which model it has, and another could be there "
                "tomorrow; name it after the address, as in http://127.0.0.1:8080/v1#name",
                "",
            ]
    if n_all > n_here:
        parts += [
            f"all {n_all} stories of the release, also those without their texts: experts only, "
            f"not to be read beside a judge of the {n_here}",
            "",
            _panel_rows(everywhere, titles, "experts_everywhere"),
            _expert_correlation(expert_r),
            "",
        ]
    return [*parts, *_notes([*here, *everywhere], [judge for judge, _ in judges])]


def _expert_correlation(expert_r: float | None) -> str:
    return f"tests passed: Pearson {number(expert_r, '.2f')} between two experts"


def _panel_rows(panel: Sequence[PanelRow], titles: Mapping[str, str], name: str) -> Sheet:
    columns = [
        Column("", name="row", cut=True),
        Column("n", "d"),
        Column("Fleiss", ".2f", with_interval=True),
        Column("alpha", ".2f"),
        Column("equal, %", ".0f", name="percent_equal"),
        Column("Yes", ".0%", name="share_yes"),
    ]
    rows: list[list[Cell]] = [
        [
            titles.get(row.name, row.name),
            row.kappa.n,
            row.kappa,
            row.alpha,
            row.percent,
            row.share_yes,
        ]
        for row in panel
    ]
    return Sheet(name, columns, rows)


def _judge_parts(judge: JudgeAgreement, titles: Mapping[str, str]) -> list[Block]:
    n = judge.overall.confusion.n
    parts: list[Block] = [
        f"{judge.rater} with the experts' majority, on {n:,} items that both judged (Cohen)",
        "",
        _judge_rows(judge, titles),
    ]
    if judge.overall.n_missing:
        parts.append(f"missing: {judge.overall.n_missing} verdicts of this judge, left out")
    if judge.n_ties:
        parts.append(f"no majority: {judge.n_ties} verdicts, on which the experts are split")
    interval = interval_shown(judge.pearson, ".2f")
    return [
        *parts,
        f"tests passed, {judge.n_stories} stories: Pearson "
        f"{number(judge.pearson.value, '.2f')} [{interval}], Spearman "
        f"{number(judge.spearman, '.2f')}",
        judge.signature,
        "",
    ]


def _notes(panel: Sequence[PanelRow], judges: Sequence[JudgeAgreement]) -> list[str]:
    """Why some of the intervals of these are not there."""
    shown = [row.kappa for row in panel]
    for judge in judges:
        shown += [*(row.kappa for row in (*judge.rows, judge.overall)), judge.pearson]
    return interval_notes(shown, "stories")


def _judge_rows(judge: JudgeAgreement, titles: Mapping[str, str]) -> Sheet:
    columns = [
        Column("", name="row", cut=True),
        Column("n", "d"),
        Column("kappa", ".2f", with_interval=True),
        Column("bal.", ".2f", name="balanced_accuracy"),
        Column("prec.", ".2f", name="precision"),
        Column("recall", ".2f"),
        Column("F1", ".2f", name="f1"),
        Column("phi", ".2f"),
    ]
    rows: list[list[Cell]] = [
        [
            titles.get(row.name, row.name),
            row.confusion.n,
            row.kappa,
            row.confusion.balanced_accuracy,
            row.confusion.precision,
            row.confusion.recall,
            row.confusion.f1,
            row.confusion.phi,
        ]
        for row in (*judge.rows, judge.overall)
    ]
    return Sheet("judges", columns, rows, about=_about(judge.rater))


def spent_lines(spent: Sequence[Spent]) -> list[str]:
    """What each model took."""
    lines = []
    for one in spent:
        cost = "cost unknown" if one.cost is None else f"{one.cost:.4f} dollars"
        shown = "nothing to pay" if one.is_free else cost
        if one.usage.is_estimated:
            shown += " (tokens estimated here, since the server does not report all of them)"
        lines.append(
            f"{one.model}: {one.n_calls:,} calls, {one.usage.n_input:,} tokens read "
            f"({one.usage.n_cached:,} from the cache), {one.usage.n_output:,} written, {shown}"
        )
    return lines
