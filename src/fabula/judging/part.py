"""Verdicts as a part of the report and as a page: with reasons, and never without the trust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from fabula.core.errors import NEVER_CHECKED, explain
from fabula.core.store import measurement_row
from fabula.core.types import Document, Measurement, Rubric
from fabula.judging.run import RETEST, answer_shown, score_range
from fabula.judging.summary import JudgeSummary
from fabula.raters.corrected_means import Correction
from fabula.raters.tables import correction_tables
from fabula.show.page import write_page_file
from fabula.show.parts import (
    Number,
    ReportPart,
    Review,
    TextReview,
    Values,
    joined,
    name_of,
    papers,
)
from fabula.show.sheet import Block, html_of

_MAX_STORIES = 200
_TTCW = "ttcw"


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
    write_page_file(path, "judging/page.html.j2", page)


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


@dataclass(frozen=True, slots=True)
class JudgedTexts:
    """Verdicts about some texts together."""

    rubric: Rubric | None = None
    judges: tuple[JudgeSummary, ...] = ()
    people: tuple[Measurement, ...] = ()
    """People's labels of some of the texts."""
    corrected: Mapping[str, Correction] = field(default_factory=lambda: MappingProxyType({}))
    """By judge, what these people would have said of all texts; empty without labels."""


class VerdictsPart(ReportPart):
    """A rubric's items, answered by models."""

    id, title, order, page_order = "verdicts", "Tests of creative writing", 50, 80
    template, style = "judging/part.html.j2", "judging/part.css.j2"
    has_groups = False
    asks_model = True

    def measurements(self, result: Any, document: Document) -> Sequence[Measurement]:
        return list(result)

    def numbers(self, review: Review) -> Sequence[Number]:
        rubric = self._of_all(review).rubric
        if rubric is None or not score_range(rubric):
            return ()
        title = rubric.aggregate.title or "Score"
        return [
            Number(f"score {j.rater}", f"{title}, by {name_of(j.rater)}", "g", self.id, "score")
            for j in self._of_all(review).judges
        ]

    def values(self, text: TextReview, review: Review) -> Values:
        scores = {f"score {judge.rater}": judge.scores for judge in self._of_all(review).judges}
        return {n.key: scores[n.key].get(text.document.id) for n in self.numbers(review)}

    def content(self, text: TextReview) -> Mapping[str, Any]:
        return {self.id: [measurement_row(verdict) for verdict in text.results.get(self.id, ())]}

    def content_of_all(self, review: Review) -> Mapping[str, Any]:
        corrected = self._of_all(review).corrected
        return {"corrected": [c.to_json() for c in corrected.values()]} if corrected else {}

    def blocks(self, review: Review) -> Sequence[Block]:
        """Each judge's means over all texts, next to what experts would have said."""
        return [block for tables in self._corrected(review).values() for block in ("", *tables)]

    sheets = blocks

    def _corrected(self, review: Review) -> dict[str, list[Block]]:
        judged = self._of_all(review)
        if judged.rubric is None:
            return {}
        return {
            rater: correction_tables(correction, judged.rubric)
            for rater, correction in judged.corrected.items()
        }

    def view(self, number: int, text: TextReview, review: Review) -> Any:
        judged, verdicts = self._of_all(review), text.results.get(self.id, ())
        if judged.rubric is None:
            return None
        judges = [
            judge_view(judge, verdicts, [text.document], judged.rubric, judged.people)
            for judge in judged.judges
            if any(verdict.rater == judge.rater for verdict in verdicts)
        ]
        return {"judges": judges, "rubric": judged.rubric, "never_checked": NEVER_CHECKED}

    def view_of_all(self, review: Review, n_linked: int) -> Any:
        tables = self._corrected(review)
        rubric = self._of_all(review).rubric
        # By judge, its figures next to what experts would have said.
        shown = {rater: Markup(html_of(blocks[1:])) for rater, blocks in tables.items()}
        return {"rubric": rubric, "corrected": shown} if tables else None

    def models(self, review: Review) -> Sequence[str]:
        return [judge.rater for judge in self._of_all(review).judges]

    def methods_of(self, review: Review) -> str:
        judged = self._of_all(review)
        rubric, judges = judged.rubric, judged.judges
        title = rubric.title if rubric else "the rubric"
        source = " (Chakrabarty et al. 2024)" if rubric and rubric.id == _TTCW else ""
        checked = [
            f"{name_of(judge.rater)}: Cohen's kappa with experts {judge.overall_trust.shown}"
            if judge.overall_trust
            else f"{name_of(judge.rater)}: {judge.unchecked}"
            for judge in judges
        ]
        sentence = (
            f"{joined([name_of(judge.rater) for judge in judges])} answered the items of the "
            f"rubric “{title}”{source}, one at a time, at temperature 0; answers without a verdict "
            f"are missing ({'; '.join(checked)})."
        )
        n_labelled = max((c.overall.n_labelled for c in judged.corrected.values()), default=0)
        if n_labelled:
            sentence += (
                " What experts would have said about all texts was estimated from these answers "
                f"and their labels for {n_labelled:,} texts by prediction-powered inference "
                "(Angelopoulos et al. 2023), with 95 % intervals over texts."
            )
        return sentence

    def references_of(self, review: Review) -> Sequence[str]:
        judged = self._of_all(review)
        is_ttcw = judged.rubric is not None and judged.rubric.id == _TTCW
        return papers(
            *(["chakrabarty2024art"] if is_ttcw else []),
            *(["angelopoulos2023ppi"] if judged.corrected else []),
        )

    def _of_all(self, review: Review) -> JudgedTexts:
        judged: JudgedTexts = review.of_all.get(self.id, JudgedTexts())
        return judged


PARTS = (VerdictsPart(),)
