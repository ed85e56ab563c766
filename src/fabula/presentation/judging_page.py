"""The page of a judge's verdicts: by dimension, with the reasons, and never without the trust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from fabula.judging.measurements import answer_shown, score_range
from fabula.judging.run import RETEST
from fabula.judging.summary import JudgeSummary
from fabula.presentation.page_file import write_page_file
from fabula.presentation.sheet import Block, html_of
from fabula.reasons import NEVER_CHECKED, explain
from fabula.types import Document, Item, Measurement, Rubric
from fabula.web import visible

_MAX_STORIES = 200


Answers = Mapping[tuple[str, str], Sequence[Mapping[str, str]]]
"""People's answers as the page shows them, by document and item."""


def write_judging_page(
    path: Path,
    summaries: Sequence[JudgeSummary],
    measurements: Sequence[Measurement],
    documents: Sequence[Document],
    rubric: Rubric,
    corrected: Mapping[str, Sequence[Block]] = MappingProxyType({}),
    people: Sequence[Measurement] = (),
) -> None:
    """Write the page of a run of `fabula judge`; at most 200 stories are shown one by one.

    `corrected` has, by judge, the tables of what experts would have said; `people` has people's
    answers, which are shown next to the judge's reasons.
    """
    shown = list(documents)[:_MAX_STORIES]
    title = visible(shown[0].title) if len(documents) == 1 else f"{len(documents):,} stories"
    page = {
        "title": title,
        "rubric": rubric,
        "judges": [
            judge_view(summary, measurements, shown, rubric, people) for summary in summaries
        ],
        "n_left_out": len(documents) - len(shown),
        "never_checked": NEVER_CHECKED,
        "one": len(documents) == 1,
        "corrected": {rater: Markup(html_of(parts[1:])) for rater, parts in corrected.items()},
        "is_plain": all(item.scale.is_test for item in rubric.items),
    }
    write_page_file(path, "judging.html.j2", page)


def judge_view(
    summary: JudgeSummary,
    measurements: Sequence[Measurement],
    documents: Sequence[Document],
    rubric: Rubric,
    people: Sequence[Measurement] = (),
) -> dict[str, Any]:
    """A judge as a page shows it, with its verdicts on these texts, and people's next to them."""
    said: dict[tuple[str, str], list[dict[str, str]]] = {}
    for one in people:
        answer = {
            "rater": visible(one.rater),
            "shown": visible(answer_shown(one, rubric.item(one.item).scale)),
            "rationale": visible(one.rationale or ""),
        }
        said.setdefault((one.document_id, one.item), []).append(answer)
    mine: dict[str, dict[str, Measurement]] = {}
    for one in measurements:
        if one.rater == summary.rater and not one.document_id.endswith(RETEST):
            mine.setdefault(one.document_id, {})[one.item] = one
    overall = summary.overall_trust
    return {
        "summary": summary,
        "stories": [_story(one, mine.get(one.id, {}), summary, rubric, said) for one in documents],
        "missing": [f"{n} {explain(reason)}" for reason, n in summary.missing.items()],
        "trust": f"{overall.shown} ({overall.origin})" if overall else "",
        "worth": overall.worth if overall else "",
    }


def _story(
    document: Document,
    verdicts: Mapping[str, Measurement],
    summary: JudgeSummary,
    rubric: Rubric,
    people: Answers,
) -> dict[str, Any]:
    """A story with its verdicts by one judge."""
    trust = {row.item.id: row.trust for row in summary.items}
    n_missing = sum(one.value is None for one in verdicts.values())
    details = (one.details for one in verdicts.values())
    own = next((one["own_story"] for one in details if "own_story" in one), None)
    return {
        "title": visible(document.title),
        "author": visible(document.author or ""),
        "score": _score(document.id, verdicts, summary, rubric)
        + (f", {n_missing} without verdict" if n_missing else ""),
        "verdicts": [
            {
                **_verdict(item, verdicts[item.id]),
                "trust": trust.get(item.id),
                "people": people.get((document.id, item.id), ()),
            }
            for item in rubric.items
            if item.id in verdicts
        ],
        "notice": f"Written by the {own} as the judge; judges prefer their own." if own else "",
    }


def _score(
    id_: str, verdicts: Mapping[str, Measurement], summary: JudgeSummary, rubric: Rubric
) -> str:
    """The aggregate with its maximum; if there is none, the number of tests passed."""
    score = summary.scores.get(id_)
    range_ = score_range(rubric, {row.item.id for row in summary.items})
    if score is not None:
        return f"{score:.4g} {range_}" if range_.startswith("of ") else f"{score:.4g} ({range_})"
    given = [one for one in verdicts.values() if one.value is not None]
    of_tests = [one for one in given if rubric.item(one.item).scale.is_test]
    if not of_tests or len(of_tests) < len(given):
        return f"{len(given)} answers"
    return f"{sum(one.value == 1.0 for one in of_tests)} of {len(of_tests)}"


def _verdict(item: Item, one: Measurement) -> dict[str, Any]:
    value = one.value
    if value is None:
        kind, short, shown = "miss", "?", explain(one.missing_reason)
    else:
        kind, short, shown = "other", item.scale.short(value), answer_shown(one, item.scale)
        if item.scale.is_test and isinstance(value, float):
            kind = "pass" if value > 0.5 else "fail"
    rationale = visible(one.rationale or "")
    is_truncated = rationale and rationale[-1] not in '.!?…"”’)]*'
    return {
        "title": item.title,
        "dimension": item.dimension,
        "shown": visible(shown),
        # For a cell of the grid.
        "short": short,
        "kind": kind,
        "p_yes": one.details.get("p_yes"),
        "rationale": f"{rationale} …" if is_truncated else rationale,
    }
