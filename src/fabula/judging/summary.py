"""A judge's results over many stories and their reliability: the figures of table and page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fabula.core.errors import NEVER_CHECKED
from fabula.core.types import Document, Item, Measurement, Rubric, by_rater
from fabula.judging.run import RETEST
from fabula.judging.trust import Trust, TrustBook
from fabula.raters.agreement import aggregates
from fabula.stats.agreement import spearman
from fabula.text import count_words


@dataclass(frozen=True, slots=True)
class WordingSpread:
    """How much answers depend on the wording, for items answered in all wordings."""

    n: int
    n_same: int
    """Of these, how many are the same in every wording."""
    shares_yes: tuple[float, ...]
    """The share of Yes in each wording, the rubric's own first; empty without yes-no items."""

    @property
    def share_same(self) -> float | None:
        return self.n_same / self.n if self.n else None


@dataclass(frozen=True, slots=True)
class ItemSummary:
    """An item over all stories of a run."""

    item: Item
    values: tuple[float | str, ...]
    """The answer about each document: 1 or 0 for a yes-no item, otherwise the scale's value."""
    mean_p_yes: float | None
    missing: Mapping[str, int]
    trust: Trust | None
    wordings: WordingSpread | None = None
    """None if each question was asked in one wording."""

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def pass_rate(self) -> float | None:
        """The share of Yes; None for an item that is not yes-no."""
        if not self.values or not self.item.scale.is_test:
            return None
        return sum(value == 1.0 for value in self.values) / self.n

    @property
    def shown(self) -> str:
        """The answers, formatted by the item's scale."""
        return self.item.scale.shown_together(self.values) if self.values else "-"


@dataclass(frozen=True, slots=True)
class JudgeSummary:
    """A judge over a run. `flip_rate` and `length_rho` are None if they cannot be computed."""

    rater: str
    signature: str
    items: tuple[ItemSummary, ...]
    scores: Mapping[str, float | None]
    """The aggregate of each story over the items asked, None if a verdict is missing."""
    n_flips: int
    n_retested: int
    length_rho: float | None
    """Spearman's rho of the aggregate with the number of words."""
    own_stories: Mapping[str, int]
    overall_trust: Trust | None
    """None also if only some of the items were checked."""
    is_unfenced: bool = False
    """The story was placed in a user's template, without a fence."""
    wordings: WordingSpread | None = None

    @property
    def missing(self) -> dict[str, int]:
        total: Counter[str] = Counter()
        for item in self.items:
            total.update(item.missing)
        return dict(sorted(total.items()))

    @property
    def flip_rate(self) -> float | None:
        return self.n_flips / self.n_retested if self.n_retested else None

    @property
    def unchecked(self) -> str:
        """Why trust over all items is missing: no item was checked, or only some were."""
        n = sum(item.trust is not None for item in self.items)
        if not n:
            return NEVER_CHECKED
        return f"checked against experts on {n} of {len(self.items)} items, not over all"

    def _repr_html_(self) -> str:
        from fabula.web import notebook_table

        lines: list[tuple[str, str | None, str | None]] = []
        for summary in self.items:
            without = ", ".join(f"{reason} {n}" for reason, n in summary.missing.items())
            shown = None
            if summary.n:
                shown = f"{summary.shown}, n {summary.n}"
                if summary.item.scale.is_test:
                    shown = f"{sum(value == 1.0 for value in summary.values)} of {summary.n} Yes"
                shown += f"; missing: {without}" if without else ""
                kappa = NEVER_CHECKED if summary.trust is None else f"kappa {summary.trust.shown}"
                shown += f" ({kappa})"
            lines.append((summary.item.title, shown, None if summary.n else without or None))
        trust = self.overall_trust
        worth = self.unchecked if trust is None else f"kappa {trust.shown}. {trust.worth}"
        lines.append(("agreement with experts, all items", worth, None))
        return notebook_table(f"Verdicts of {self.rater}", lines, self.signature)


def summarise(
    measurements: Sequence[Measurement],
    documents: Sequence[Document],
    rubric: Rubric,
    book: TrustBook,
) -> list[JudgeSummary]:
    """One summary for each judge, in order of appearance."""
    summaries = []
    for answers in by_rater(measurements).values():
        first = [answer for answer in answers if not answer.document_id.endswith(RETEST)]
        second = [answer for answer in answers if answer.document_id.endswith(RETEST)]
        again = {(m.document_id.removesuffix(RETEST), m.item): _side(m, rubric) for m in second}
        signature = answers[0].signature
        trust = book.of_judge(signature, rubric.key)
        sides = [((answer.document_id, answer.item), _side(answer, rubric)) for answer in first]
        ratings = {key: side for key, side in sides if isinstance(side, float)}
        counted = aggregates(ratings, rubric, {answer.item for answer in first})
        scores = {answer.document_id: counted.get(answer.document_id) for answer in first}
        pairs = [(side, again.get(key)) for key, side in sides]
        flips = [before != after for before, after in pairs if None not in (before, after)]
        # A story's measurements have the same author.
        kin = {m.document_id: str(kind) for m in first if (kind := m.details.get("own_story"))}
        scored = ((scores.get(document.id), document.text) for document in documents)
        lengths = [(score, count_words(text)) for score, text in scored if score is not None]
        table = np.array(lengths, np.float64)
        items = []
        for item in rubric.items:
            of_item = [answer for answer in first if answer.item == item.id]
            if not of_item:
                continue
            decided = [item.scale.decided(answer.value) for answer in of_item]
            reasons = [
                "tie" if value is None and answer.value is not None else answer.missing_reason
                for answer, value in zip(of_item, decided, strict=True)
            ]
            p_yes = [answer.details["p_yes"] for answer in of_item if "p_yes" in answer.details]
            items.append(
                ItemSummary(
                    item=item,
                    values=tuple(value for value in decided if value is not None),
                    mean_p_yes=float(np.mean(p_yes)) if p_yes else None,
                    missing=dict(sorted(Counter(filter(None, reasons)).items())),
                    trust=trust.get(item.id),
                    wordings=_wordings(of_item, rubric),
                )
            )
        summaries.append(
            JudgeSummary(
                rater=answers[0].rater,
                signature=signature,
                items=tuple(items),
                scores=scores,
                n_flips=sum(flips),
                n_retested=len(flips),
                length_rho=spearman(table[:, 0], table[:, 1]).value if len(lengths) > 2 else None,
                own_stories=dict(sorted(Counter(kin.values()).items())),
                overall_trust=trust.get("all"),
                is_unfenced=any("unfenced" in answer.details for answer in first),
                wordings=_wordings(first, rubric),
            )
        )
    return summaries


def _side(answer: Measurement, rubric: Rubric) -> float | str | None:
    """The value of a measurement for comparison; None for a tie or free text."""
    scale = rubric.item(answer.item).scale
    return None if scale.form == "prose" else scale.decided(answer.value)


def _wordings(measurements: Sequence[Measurement], rubric: Rubric) -> WordingSpread | None:
    """The effect of wordings; None if there was only one, or answers cannot be compared."""
    answers: list[tuple[float | str, ...]] = []
    of_tests: list[tuple[float, ...]] = []
    for answer in measurements:
        scale = rubric.item(answer.item).scale
        if scale.form == "prose" or "wordings" not in answer.details:
            continue
        decided = [scale.decided(value) for value in answer.details["wordings"]]
        answered = tuple(value for value in decided if value is not None)
        if len(answered) < len(decided):
            continue
        answers.append(answered)
        if scale.is_test:
            of_tests.append(tuple(float(value) for value in answered))
    if not any("wordings" in each.details for each in measurements):
        return None
    n_same = sum(len(set(answered)) == 1 for answered in answers)
    shares_yes = (math.fsum(votes) / len(votes) for votes in zip(*of_tests, strict=True))
    return WordingSpread(len(answers), n_same, tuple(shares_yes))
