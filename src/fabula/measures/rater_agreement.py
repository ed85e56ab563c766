"""Agreement of raters on a rubric: among people, and between a judge and people.

The truth for a judge is the majority of the experts (Chakrabarty et al. 2024, section 6). Intervals
are over stories, since all ratings of a story are correlated. Stories may have different numbers of
experts: agreement is averaged over the pairs available for each subject.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError
from fabula.measures.labels import read_labels
from fabula.stats.agreement import (
    Confusion,
    alpha,
    cohen,
    describe_raters,
    fleiss,
    gwet,
    pearson,
    percent_agreement,
    pooled_pairs,
    spearman,
)
from fabula.types import Estimate, Measurement, Rubric

Grouping = Literal["item", "dimension", "author"]

Ratings = Mapping[tuple[str, str], float]
"""One rater's verdicts: 1 for Yes, 0 for No, by document and item."""


@dataclass(frozen=True, slots=True)
class Panel:
    """The experts' ratings: float64, shape (n_subjects, n_raters), NaN where there is none.

    A subject is a document and an item. Columns are positions, not people: the person in a column
    differs between stories.
    """

    subjects: tuple[tuple[str, str], ...]
    ratings: NDArray[np.float64]
    source: str
    authors: Mapping[str, str] = field(default_factory=dict)
    """The author of each document, if known."""

    def majority(self) -> dict[tuple[str, str], float]:
        """The verdict of more than half of the experts; ties are omitted."""
        found = {}
        for subject, row in zip(self.subjects, self.ratings, strict=True):
            given = row[~np.isnan(row)]
            if len(given) and 2 * given.sum() != len(given):
                found[subject] = float(2 * given.sum() > len(given))
        return found


@dataclass(frozen=True, slots=True)
class PanelRow:
    """Agreement of experts on some subjects."""

    name: str
    kappa: Estimate
    """`n` counts the subjects with two or more raters, the only ones that have pairs."""
    ac1: Estimate
    """Gwet's AC1, which does not collapse where Yes or No is rare."""
    alpha: Estimate
    """Krippendorff's, nominal."""
    percent: float | None
    share_yes: float | None
    why_missing: str | None = None
    """Why there is no kappa, and no alpha."""


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """Agreement of a judge with the experts' majority on some subjects."""

    name: str
    kappa: Estimate
    ac1: Estimate
    """Gwet's AC1, which does not collapse where Yes or No is rare."""
    confusion: Confusion
    n_missing: int
    """Verdicts missing from the judge: the experts have one, the judge has none."""
    why_missing: str | None = None
    """Why there is no kappa."""


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """A judge compared with experts: by group, over all, and in the number of tests passed."""

    rater: str
    signature: str
    rows: tuple[JudgeRow, ...]
    overall: JudgeRow
    pearson: Estimate
    spearman: float | None
    n_stories: int
    n_ties: int = 0
    """Subjects that were judged, but on which the experts are split: they have no majority."""
    why_no_correlation: str | None = None


def read_experts(path: Path, rubric: Rubric) -> Panel:
    """The experts in a label file, such as the authors' `ttcw_annotations.json`.

    Only yes-no items count. Raises `InputError`, also for duplicate answers by an expert.
    """
    return experts_of(read_labels(path, rubric), rubric, path.name, where=str(path))


def experts_of(
    labels: Sequence[Measurement], rubric: Rubric, source: str, *, where: str = ""
) -> Panel:
    """The panel of labels; at least one must be on a yes-no item.

    `where` names their origin in errors, if that says more than `source`. Raises `InputError`.
    """
    panel = panel_of_labels(labels, rubric, source)
    if not panel.subjects:
        raise InputError(f"{where or source}: contains no verdicts on yes-no items of {rubric.id}")
    return panel


def panel_of_labels(labels: Sequence[Measurement], rubric: Rubric, source: str) -> Panel:
    """The panel of raters of a rubric's yes-no items, without ties of repeated answers.

    Raises `InputError` for a second verdict of one person.
    """
    yes_no = {item.id for item in rubric.items if item.scale.agreement == "kappa"}
    verdicts = (
        (one.document_id, one.item, one.rater, float(one.value > 0.5))
        for one in labels
        if one.item in yes_no and isinstance(one.value, float) and one.value != 0.5
    )
    return replace(panel_of(verdicts, source), authors=_authors(labels))


def panel_of(verdicts: Iterable[tuple[str, str, str, float]], source: str) -> Panel:
    """A panel from story, item, expert and 1 or 0. Raises `InputError` for a second verdict."""
    given: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for story, item, rater, value in verdicts:
        if rater in given[story, item]:
            raise InputError(
                f"{source}: expert {rater} has two verdicts on {item} of {story}; keep one of them"
            )
        given[story, item][rater] = value
    # Within a story an expert keeps the same column on every item, whatever the order of rows.
    seats: dict[str, list[str]] = {}
    for (story, _), values in given.items():
        seats[story] = sorted({*seats.get(story, []), *values})
    ratings = np.full((len(given), max(map(len, seats.values()), default=0)), np.nan)
    for row, ((story, _), values) in zip(ratings, given.items(), strict=True):
        for rater, value in values.items():
            row[seats[story].index(rater)] = value
    return Panel(tuple(given), ratings, source)


def panel_agreement(panel: Panel, rubric: Rubric, by: Grouping, *, seed: int = 0) -> list[PanelRow]:
    """Fleiss's kappa and Krippendorff's alpha of the experts, by group, then over all."""
    rows = []
    groups = _groups(panel.subjects, rubric, by, panel.authors)
    for name, places in [*groups.items(), ("all", list(range(len(panel.subjects))))]:
        ratings = panel.ratings[places]
        n_raters = describe_raters(ratings)
        stories, items = (
            zip(*(panel.subjects[k] for k in places), strict=True) if places else ((), ())
        )
        signature = f"experts:{panel.source}|raters:{n_raters}|rubric:{rubric.id}-{rubric.version}"
        kappa, ac1, alphas = (
            statistic.estimate(stories, seed=seed, method=method, signature=signature)
            for statistic, method in (
                (fleiss(ratings, items), f"Fleiss kappa of {n_raters} raters"),
                (gwet(ratings, items), f"Gwet's AC1 of {n_raters} raters"),
                (alpha(ratings, items=items), "Krippendorff's alpha (nominal)"),
            )
        )
        why = "all answers are the same" if kappa.n else "no document has answers from two people"
        share = float(np.nanmean(ratings)) if ratings.size else None
        percent = percent_agreement(ratings)
        why_missing = None if kappa.value is not None else why
        rows.append(PanelRow(name, kappa, ac1, alphas, percent, share, why_missing))
    return rows


def judge_agreement(
    measurements: Sequence[Measurement],
    panel: Panel,
    rubric: Rubric,
    by: Grouping,
    *,
    seed: int = 0,
) -> JudgeAgreement:
    """A judge's agreement with the majority, over the stories rated by both."""
    yes_no = {item.id for item in rubric.items if item.scale.agreement == "kappa"}
    measurements = [one for one in measurements if one.item in yes_no]
    judge = ratings_of(measurements)
    truth = panel.majority()
    # A missing answer from the judge counts as missing; one that was never requested does not.
    asked = {(one.document_id, one.item) for one in measurements}
    subjects = [subject for subject in panel.subjects if subject in asked and subject in truth]
    if not subjects:
        raise InputError(
            f"{panel.source}: contains no verdicts on any story that was judged; check that "
            "the ids match"
        )
    said = np.array([judge.get(subject, np.nan) for subject in subjects])
    is_so = np.array([truth[subject] for subject in subjects])
    signature = f"{measurements[0].signature}|experts:{panel.source}"
    rows = []
    groups = _groups(subjects, rubric, by, {**panel.authors, **_authors(measurements)})
    for name, places in [*groups.items(), ("all", list(range(len(subjects))))]:
        a, b = said[places], is_so[places]
        stories, items = ([subjects[place][k] for place in places] for k in (0, 1))
        kappa, ac1 = (
            statistic.estimate(
                stories, seed=seed, method=f"{name} with the majority", signature=signature
            )
            for statistic, name in (
                (cohen(a, b, items), "Cohen kappa"),
                (gwet(np.column_stack([a, b]), items), "Gwet's AC1"),
            )
        )
        counts = Confusion.of(a, b)
        why = "judge and experts said the same" if counts.n else "the judge has no verdict"
        why_missing = None if kappa.value is not None else why
        rows.append(JudgeRow(name, kappa, ac1, counts, int(np.isnan(a).sum()), why_missing))
    mine, theirs, stories = _story_scores(judge, panel, rubric)
    correlation = pearson(mine, theirs).estimate(
        stories,
        seed=seed,
        method="Pearson of tests passed with the experts' mean",
        signature=signature,
    )
    why = "fewer than two stories have all verdicts of both"
    if len(mine) > 1:
        by_whom = "by the experts" if np.ptp(mine) else "by the judge"
        why = f"all stories have the same number {by_whom}"
    return JudgeAgreement(
        rater=measurements[0].rater,
        signature=signature,
        rows=tuple(rows[:-1]),
        overall=rows[-1],
        pearson=correlation,
        spearman=spearman(mine, theirs).value,
        n_stories=len(stories),
        n_ties=sum(subject in asked and subject not in truth for subject in panel.subjects),
        why_no_correlation=None if correlation.value is not None else why,
    )


def aggregates(
    ratings: Ratings, rubric: Rubric, asked: Collection[str] | None = None
) -> dict[str, float]:
    """The rubric's aggregate for each document without missing answers.

    asked: the items that it is over, if not all of the rubric.
    A mean is on one scale: the numbers if there are any, else yes-no items as 1 and 0; numbers from
    different ranges have none.
    """
    grades = [item for item in rubric.items if item.scale.is_grade]
    tests = [item for item in rubric.items if item.scale.is_test]
    taken = grades if rubric.aggregate.rule == "mean" and grades else tests
    if len({(item.scale.low, item.scale.high) for item in taken}) > 1:
        return {}
    items = [item.id for item in taken if asked is None or item.id in asked]
    found = {}
    for document in dict.fromkeys(document for document, _ in ratings):
        given = [ratings[document, item] for item in items if (document, item) in ratings]
        if not items or len(given) < len(items):
            continue
        if rubric.aggregate.rule == "count":
            counted = 1.0 if rubric.aggregate.counts == "Yes" else 0.0
            found[document] = float(sum(value == counted for value in given))
        elif rubric.aggregate.rule == "mean":
            found[document] = math.fsum(given) / len(given)
    return found


def pass_rates(
    panel: Panel, rubric: Rubric, author_of: Callable[[str], str]
) -> dict[str, dict[str, float]]:
    """Percent of the verdicts that are Yes, by author and item."""
    found: dict[str, dict[str, float]] = {}
    for author in sorted({author_of(story) for story, _ in panel.subjects}):
        rates = {}
        for item in rubric.items:
            places = [
                k
                for k, (story, of_item) in enumerate(panel.subjects)
                if of_item == item.id and author_of(story) == author
            ]
            given = panel.ratings[places]
            if not np.isnan(given).all():
                rates[item.id] = 100 * float(np.nanmean(given))
        found[author] = rates
    return found


def tests_passed(
    panel: Panel, rubric: Rubric, author_of: Callable[[str], str]
) -> dict[str, dict[int, int]]:
    """Number of tests passed, by author: of each reader of a story who answered all of them."""
    stories: dict[str, list[int]] = {}
    for place, (story, _) in enumerate(panel.subjects):
        stories.setdefault(story, []).append(place)
    found: dict[str, Counter[int]] = {}
    for story, places in stories.items():
        counts = found.setdefault(author_of(story), Counter())
        for total in panel.ratings[places].sum(axis=0):
            # NaN: who skipped a test has no known number of passed ones.
            if len(places) == len(rubric.items) and not np.isnan(total):
                counts[int(total)] += 1
    return {author: dict(sorted(counts.items())) for author, counts in sorted(found.items())}


def expert_correlation(panel: Panel, rubric: Rubric, *, seed: int = 0) -> Estimate:
    """Pearson's r of the number of tests passed, pooled over ordered pairs of expert positions.

    Its interval is over stories.
    """
    stories, scores = _panel_scores(panel, rubric)
    a, b, places = pooled_pairs(scores)
    return pearson(a, b).estimate(
        [stories[place] for place in places],
        seed=seed,
        method="Pearson of tests passed between two readers of a story",
        signature=panel.source,
    )


def _panel_scores(panel: Panel, rubric: Rubric) -> tuple[list[str], NDArray[np.float64]]:
    """Tests passed by document and expert position: float64, shape (n_documents, n_raters)."""
    documents = list(dict.fromkeys(document for document, _ in panel.subjects))
    by_rater = [
        aggregates(
            {
                subject: float(value)
                for subject, value in zip(panel.subjects, column, strict=True)
                if not np.isnan(value)
            },
            rubric,
        )
        for column in panel.ratings.T
    ]
    table = [[scores.get(document, np.nan) for scores in by_rater] for document in documents]
    return documents, np.array(table, np.float64).reshape(len(documents), len(by_rater))


def _story_scores(
    judge: Ratings, panel: Panel, rubric: Rubric
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[str]]:
    """The judge's and the experts' mean number of tests passed, for stories that have both."""
    mine = aggregates(judge, rubric)
    documents, scores = _panel_scores(panel, rubric)
    theirs = {
        document: float(np.nanmean(row))
        for document, row in zip(documents, scores, strict=True)
        if not np.isnan(row).all()
    }
    stories = [document for document in documents if document in mine and document in theirs]
    pairs = np.array([(mine[story], theirs[story]) for story in stories]).reshape(len(stories), 2)
    return pairs[:, 0], pairs[:, 1], stories


def ratings_of(measurements: Iterable[Measurement]) -> dict[tuple[str, str], float]:
    """Yes or No by document and item; repeated answers count by majority, ties are dropped."""
    return {
        (one.document_id, one.item): float(one.value > 0.5)
        for one in measurements
        if isinstance(one.value, float) and one.value != 0.5
    }


def _authors(measurements: Iterable[Measurement]) -> dict[str, str]:
    """The author of each document, according to its measurements."""
    return {
        one.document_id: str(one.details["author"])
        for one in measurements
        if one.details.get("author")
    }


def _groups(
    subjects: Sequence[tuple[str, str]], rubric: Rubric, by: Grouping, authors: Mapping[str, str]
) -> dict[str, list[int]]:
    """The indices of the subjects of each group, in the rubric's order."""
    groups: dict[str, list[int]] = {}
    if by == "item":
        groups = {item.id: [] for item in rubric.items if item.scale.agreement == "kappa"}
    elif by == "dimension":
        groups = {item.dimension: [] for item in rubric.items}
    dimensions = {item.id: item.dimension for item in rubric.items}
    for place, (document, item) in enumerate(subjects):
        name = item
        if by == "dimension":
            name = dimensions[item]
        elif by == "author":
            name = authors.get(document, "author unknown")
        groups.setdefault(name, []).append(place)
    return {name: places for name, places in groups.items() if places}
