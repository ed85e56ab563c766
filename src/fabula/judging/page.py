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
        "judges": [judge_view(s, measurements, shown, rubric, people) for s in summaries],
        "n_left_out": len(documents) - len(shown),
        "never_checked": NEVER_CHECKED,
        "one": len(documents) == 1,
        "corrected": {rater: Markup(html_of(blocks[1:])) for rater, blocks in corrected.items()},
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
    labels: dict[tuple[str, str], list[dict[str, str]]] = {}
    for label in people:
        entry = {
            "rater": label.rater,
            "shown": answer_shown(label, rubric.item(label.item).scale),
            "rationale": label.rationale or "",
        }
        labels.setdefault((label.document_id, label.item), []).append(entry)
    by_document: dict[str, dict[str, Measurement]] = {}
    for answer in measurements:
        if answer.rater == summary.rater and not answer.document_id.endswith(RETEST):
            by_document.setdefault(answer.document_id, {})[answer.item] = answer
    trust = {row.item.id: row.trust for row in summary.items}
    range_ = score_range(rubric, trust)
    stories = []
    for document in documents:
        answers = by_document.get(document.id, {})
        verdicts = []
        for item in rubric.items:
            if item.id not in answers:
                continue
            answer, value, scale = answers[item.id], answers[item.id].value, item.scale
            if value is None:
                kind, short, shown = "miss", "?", explain(answer.missing_reason)
            else:
                kind, short, shown = "other", scale.short(value), answer_shown(answer, scale)
                if scale.is_test and isinstance(value, float):
                    kind = "pass" if value > 0.5 else "fail"
            rationale = answer.rationale or ""
            is_truncated = rationale and rationale[-1] not in '.!?…"”’)]*'
            verdict = {
                "item": item,
                "shown": shown,
                # For a cell of the grid.
                "short": short,
                "kind": kind,
                "p_yes": answer.details.get("p_yes"),
                "rationale": f"{rationale} …" if is_truncated else rationale,
                "trust": trust.get(item.id),
                "people": labels.get((document.id, item.id), ()),
            }
            verdicts.append(verdict)
        # The aggregate with its maximum; if there is none, the number of tests passed.
        answered = [each for each in answers.values() if each.value is not None]
        if (aggregate := summary.scores.get(document.id)) is not None:
            score = f"{aggregate:.4g} " + (range_ if range_.startswith("of ") else f"({range_})")
        elif answered and all(rubric.item(each.item).scale.is_test for each in answered):
            score = f"{sum(each.value == 1.0 for each in answered)} of {len(answered)}"
        else:
            score = f"{len(answered)} answers"
        if n_missing := len(answers) - len(answered):
            score += f", {n_missing} without verdict"
        details = (each.details for each in answers.values())
        kin = next((each["own_story"] for each in details if "own_story" in each), None)
        story = {
            "title": document.title,
            "author": document.author or "",
            "score": score,
            "verdicts": verdicts,
            "notice": f"Written by the {kin} as the judge; judges prefer their own." if kin else "",
        }
        stories.append(story)
    missing = [f"{n} {explain(reason)}" for reason, n in summary.missing.items()]
    return {"summary": summary, "stories": stories, "missing": missing}
