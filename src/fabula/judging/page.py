"""The page of a judge's verdicts: by dimension, with the reasons, and never without the trust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from fabula.core.errors import NEVER_CHECKED, explain
from fabula.core.types import Document, Measurement, Rubric
from fabula.judging.measurements import answer_shown, score_range
from fabula.judging.run import RETEST
from fabula.judging.summary import JudgeSummary
from fabula.show.page import write_page_file
from fabula.show.sheet import Block, html_of

_MAX_STORIES = 200


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
    page = {
        "title": shown[0].title if len(documents) == 1 else f"{len(documents):,} stories",
        "rubric": rubric,
        "judges": [judge_view(one, measurements, shown, rubric, people) for one in summaries],
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
            "rater": one.rater,
            "shown": answer_shown(one, rubric.item(one.item).scale),
            "rationale": one.rationale or "",
        }
        said.setdefault((one.document_id, one.item), []).append(answer)
    mine: dict[str, dict[str, Measurement]] = {}
    for one in measurements:
        if one.rater == summary.rater and not one.document_id.endswith(RETEST):
            mine.setdefault(one.document_id, {})[one.item] = one
    trust = {row.item.id: row.trust for row in summary.items}
    range_ = score_range(rubric, trust)
    stories = []
    for document in documents:
        given = mine.get(document.id, {})
        verdicts = []
        for item in rubric.items:
            if item.id not in given:
                continue
            one, value = given[item.id], given[item.id].value
            if value is None:
                kind, short, shown = "miss", "?", explain(one.missing_reason)
            else:
                kind, short, shown = "other", item.scale.short(value), answer_shown(one, item.scale)
                if item.scale.is_test and isinstance(value, float):
                    kind = "pass" if value > 0.5 else "fail"
            rationale = one.rationale or ""
            is_truncated = rationale and rationale[-1] not in '.!?…"”’)]*'
            verdict = {
                "item": item,
                "shown": shown,
                # For a cell of the grid.
                "short": short,
                "kind": kind,
                "p_yes": one.details.get("p_yes"),
                "rationale": f"{rationale} …" if is_truncated else rationale,
                "trust": trust.get(item.id),
                "people": said.get((document.id, item.id), ()),
            }
            verdicts.append(verdict)
        # The aggregate with its maximum; if there is none, the number of tests passed.
        answered = [one for one in given.values() if one.value is not None]
        if (aggregate := summary.scores.get(document.id)) is not None:
            score = f"{aggregate:.4g} " + (range_ if range_.startswith("of ") else f"({range_})")
        elif answered and all(rubric.item(one.item).scale.is_test for one in answered):
            score = f"{sum(one.value == 1.0 for one in answered)} of {len(answered)}"
        else:
            score = f"{len(answered)} answers"
        if n_missing := len(given) - len(answered):
            score += f", {n_missing} without verdict"
        details = (one.details for one in given.values())
        own = next((one["own_story"] for one in details if "own_story" in one), None)
        story = {
            "title": document.title,
            "author": document.author or "",
            "score": score,
            "verdicts": verdicts,
            "notice": f"Written by the {own} as the judge; judges prefer their own." if own else "",
        }
        stories.append(story)
    missing = [f"{n} {explain(reason)}" for reason, n in summary.missing.items()]
    return {"summary": summary, "stories": stories, "missing": missing}
