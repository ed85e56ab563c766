"""Tables of verdicts for the terminal: never a verdict without its trust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from fabula.judging.answers import answer_shown, score_range
from fabula.judging.pairwise import PairSummary
from fabula.judging.plan import is_identified
from fabula.judging.session import Spent
from fabula.judging.summary import ItemSummary, JudgeSummary
from fabula.judging.trust import NEVER_CHECKED, Trust
from fabula.measures.agreement import JudgeAgreement, PanelRow
from fabula.models.verdicts import MISSING
from fabula.presentation.tables import (
    interval_notes,
    number,
    render,
    shown_interval,
    terminal_width,
)
from fabula.types import Measurement, Rubric

__all__ = [
    "agreement_tables",
    "calibration_tables",
    "judge_tables",
    "pair_table",
    "spent_lines",
]

_MAX_STORIES = 40
_NO_MEAN = "no mean: the items' numbers have different ranges"


def judge_tables(
    summaries: Sequence[JudgeSummary], measurements: Sequence[Measurement], rubric: Rubric
) -> str:
    """For one story its verdicts; for more, the answers by item and the score of each story."""
    parts: list[Table | str] = []
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
    return render(*parts)


def _verdicts(summary: JudgeSummary, measurements: Sequence[Measurement]) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("", "test", "verdict"):
        table.add_column(title, overflow="fold")
    table.add_column("P(Yes)", justify="right")
    table.add_column("agreement with experts (kappa)", overflow="fold")
    values = {one.item: one for one in measurements}
    dimension = None
    for row in summary.items:
        one = values.get(row.item.id)
        if one is None:
            continue
        first = row.item.dimension if row.item.dimension != dimension else ""
        dimension = row.item.dimension
        p_yes = one.details.get("p_yes")
        table.add_row(
            first, row.item.title, Text(answer_shown(one, row.item.scale)),
            "-" if p_yes is None else f"{p_yes:.2f}", _trust(row.trust),
        )  # fmt: skip
    return table


def _answers(summary: JudgeSummary) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("", overflow="fold")
    table.add_column("test", overflow="fold")
    is_plain = all(row.item.scale.is_test for row in summary.items)
    table.add_column("passed" if is_plain else "answers", justify="right" if is_plain else "left")
    for title in ("of", "missing", "mean P(Yes)"):
        table.add_column(title, justify="right")
    table.add_column("agreement with experts (kappa)", overflow="fold")
    dimension = None
    for row in summary.items:
        first = row.item.dimension if row.item.dimension != dimension else ""
        dimension = row.item.dimension
        table.add_row(
            first, row.item.title,
            Text(_shown_answers(row, is_plain=is_plain)), str(row.n),
            str(sum(row.missing.values())), number(row.mean_p_yes, ".2f"), _trust(row.trust),
        )  # fmt: skip
    return table


def _shown_answers(row: ItemSummary, *, is_plain: bool) -> str:
    """`64.3%`, or `64.3% Yes` where other items are no tests."""
    is_share = row.pass_rate is not None and not is_plain
    return f"{row.shown} Yes" if is_share else row.shown


def _scores(summary: JudgeSummary, rubric: Rubric) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("story", overflow="fold")
    title = rubric.aggregate.title or "score"
    table.add_column(", ".join(filter(None, [title, score_range(rubric)])), justify="right")
    for story, score in list(summary.scores.items())[:_MAX_STORIES]:
        shown = "missing: an answer is missing" if score is None else f"{score:.4g}"
        table.add_row(Text(story), shown)
    if len(summary.scores) > _MAX_STORIES:
        table.add_row(f"and {len(summary.scores) - _MAX_STORIES:,} more stories", "")
    return table


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
        reasons = ", ".join(f"{n} {MISSING[reason]}" for reason, n in summary.missing.items())
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


def pair_table(pairs: Sequence[PairSummary], signature: str) -> str:
    """Preferences by item, with how often they turned with the order."""
    table = Table(box=None, pad_edge=False)
    table.add_column("test", overflow="fold")
    for title in ("pairs", "decided", "turned", "first preferred"):
        table.add_column(title, justify="right")
    table.add_column("preferred", overflow="fold")
    for pair in pairs:
        best = sorted(pair.n_wins.items(), key=lambda entry: (-entry[1], entry[0]))[:4]
        first = "-" if pair.first_share is None else f"{pair.first_share:.0%}"
        table.add_row(
            pair.item, str(pair.n_pairs), str(pair.n_decided), str(pair.n_turned), first,
            Text(", ".join(f"{story} {n}" for story, n in best)),
        )  # fmt: skip
    every = pairs[-1]
    sentence = f"{every.n_decided} of {every.n_pairs} comparisons decided"
    if every.n_turned:
        sentence += f"; in {every.n_turned} the preference turned with the order of the stories"
    worth = f"trust: preferences between stories were {NEVER_CHECKED}"
    return render(table, "", sentence, worth, signature)


def agreement_tables(
    judges: Sequence[JudgeAgreement],
    panel: Sequence[PanelRow],
    expert_r: float | None,
    rubric: Rubric,
) -> str:
    """Experts among themselves, then each judge with their majority."""
    titles = {item.id: f"{item.index} {item.title}" for item in rubric.items}
    parts: list[Table | str] = ["experts among themselves, on all that they judged", ""]
    parts += [_panel_rows(panel, titles), _expert_correlation(expert_r), ""]
    for judge in judges:
        parts += _judge_parts(judge, titles)
    return render(*parts, *_notes(panel, judges))


def calibration_tables(
    judges: Sequence[tuple[JudgeAgreement, Sequence[Trust]]],
    here: Sequence[PanelRow],
    everywhere: Sequence[PanelRow],
    expert_r: float | None,
    rubric: Rubric,
    n_stories: tuple[int, int],
) -> str:
    """The stories that the judge read, with experts and judge; then all that experts judged.

    `n_stories` are the counts of both. What experts reach on other stories is no yardstick for a
    judge, so the two stand in tables of their own.
    """
    titles = {item.id: f"{item.index} {item.title}" for item in rubric.items}
    n_here, n_all = n_stories
    parts: list[Table | str] = [
        f"the {n_here} stories with texts, which the judge read: experts among themselves", "",
        _panel_rows(here, titles), "",
    ]  # fmt: skip
    for judge, trusts in judges:
        parts += _judge_parts(judge, titles)
        overall = next((trust for trust in trusts if trust.item == "all"), None)
        if overall is not None:
            parts += [f"kappa {overall.shown}. {overall.worth}", ""]
        if trusts and not is_identified(trusts[0].model):
            parts += [
                "not kept: the server does not say which model it has, and another could be there "
                "tomorrow; name it after the address, as in http://127.0.0.1:8080/v1#name", "",
            ]  # fmt: skip
    if n_all > n_here:
        parts += [
            f"all {n_all} stories of the release, also those without their texts: experts only, "
            f"not to be read beside a judge of the {n_here}", "",
            _panel_rows(everywhere, titles), _expert_correlation(expert_r), "",
        ]  # fmt: skip
    return render(*parts, *_notes([*here, *everywhere], [judge for judge, _ in judges]))


def _expert_correlation(expert_r: float | None) -> str:
    return f"tests passed: Pearson {number(expert_r, '.2f')} between two experts"


def _panel_rows(panel: Sequence[PanelRow], titles: Mapping[str, str]) -> Table:
    table = _figures(["n", "Fleiss", "95 % interval", "alpha", "equal", "Yes"])
    for row in panel:
        table.add_row(
            titles.get(row.name, row.name), str(row.kappa.n), number(row.kappa.value, ".2f"),
            shown_interval(row.kappa, ".2f"), number(row.alpha, ".2f"),
            "-" if row.percent is None else f"{row.percent:.0f} %",
            "-" if row.share_yes is None else f"{row.share_yes:.0%}",
        )  # fmt: skip
    return table


def _judge_parts(judge: JudgeAgreement, titles: Mapping[str, str]) -> list[Table | str]:
    n = judge.overall.confusion.n
    parts: list[Table | str] = [
        f"{judge.rater} with the experts' majority, on {n:,} items that both judged (Cohen)",
        "", _judge_rows(judge, titles),
    ]  # fmt: skip
    if judge.overall.n_missing:
        parts.append(f"missing: {judge.overall.n_missing} verdicts of this judge, left out")
    if judge.n_ties:
        parts.append(f"no majority: {judge.n_ties} verdicts, on which the experts are split")
    interval = shown_interval(judge.pearson, ".2f")
    return [
        *parts,
        f"tests passed, {judge.n_stories} stories: Pearson "
        f"{number(judge.pearson.value, '.2f')} [{interval}], Spearman "
        f"{number(judge.spearman, '.2f')}",
        judge.signature, "",
    ]  # fmt: skip


def _notes(panel: Sequence[PanelRow], judges: Sequence[JudgeAgreement]) -> list[str]:
    """Why some of the intervals of these are not there."""
    shown = [row.kappa for row in panel]
    for judge in judges:
        shown += [*(row.kappa for row in (*judge.rows, judge.overall)), judge.pearson]
    return interval_notes(shown, "stories")


def _judge_rows(judge: JudgeAgreement, titles: Mapping[str, str]) -> Table:
    table = _figures(["n", "kappa", "95 % interval", "bal.", "prec.", "recall", "F1", "phi"])
    for row in (*judge.rows, judge.overall):
        counts = row.confusion
        table.add_row(
            titles.get(row.name, row.name), str(counts.n), number(row.kappa.value, ".2f"),
            shown_interval(row.kappa, ".2f"), number(counts.balanced_accuracy, ".2f"),
            number(counts.precision, ".2f"), number(counts.recall, ".2f"), number(counts.f1, ".2f"),
            number(counts.phi, ".2f"),
        )  # fmt: skip
    return table


def _figures(titles: Sequence[str]) -> Table:
    """A table of figures that are never cut; on a narrow terminal the names are."""
    room = terminal_width() - sum(max(len(title), 5) + 2 for title in titles)
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True, overflow="ellipsis", max_width=max(14, min(40, room)))
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True, min_width=min(5, len(title)))
    return table


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
