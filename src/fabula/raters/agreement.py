"""Agreement of raters on a rubric: among people, between a judge and people, between two judges.

Any scale is treated alike: an answer is a number (yes-no 1 and 0, a choice the number of its
option), an item has the statistic of its scale's level, and several items are those of yes-no.

- Yes-no: the truth for a judge is the majority of the experts (Chakrabarty et al. 2024, section 6).
- Other scales: kappa has quadratic weights for numbers and ordered choices, none for other choices;
  it is over all pairs of two raters of a document. A judge is one more person, compared with each.

Stories may have different numbers of raters; intervals are over stories, since all ratings of a
story are correlated. People's agreement depends on the documents: over obviously different texts
they agree on more than over texts of one kind, so they are measured on the same documents as a
judge.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fabula.core.errors import InputError
from fabula.core.types import Contrast, Estimate, Item, Measurement, Rubric, by_rater
from fabula.raters.labels import read_labels
from fabula.stats import agreement as stats
from fabula.stats.agreement import Confusion

Grouping = Literal["item", "dimension", "author"]
Values = NDArray[np.float64]

Ratings = Mapping[tuple[str, str], float]
"""One rater's verdicts: 1 for Yes, 0 for No, by document and item."""
_METHODS = dict.fromkeys(("interval", "ordinal"), "kappa with quadratic weights")
_METHODS["nominal"] = "Cohen kappa"
_OVER = "over pairs of raters and documents"
_SAME = "all answers are the same"
_ALONE = "no document has answers from two people"
_NO_VERDICTS = Confusion(0, 0, 0, 0)
_NOTHING = Estimate(None, None, None, 0, "not measured on this scale", "")


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

    def on(self, documents: Collection[str]) -> Panel:
        """The part that covers these documents."""
        kept = [k for k, (document, _) in enumerate(self.subjects) if document in documents]
        return self.take(kept)

    def take(self, kept: Sequence[int]) -> Panel:
        subjects = tuple(self.subjects[k] for k in kept)
        return Panel(subjects, self.ratings[list(kept)], self.source, self.authors)


@dataclass(frozen=True, slots=True)
class AmongPeople:
    """How far people agree on an item, a dimension, an author's stories, or all (`all`)."""

    name: str
    n: int
    """Subjects that several answered, the only ones that have pairs."""
    kappa: Estimate = _NOTHING
    """Fleiss's of yes-no items; of others, between two people."""
    alpha: Estimate = _NOTHING
    """Krippendorff's, at the scale's level."""
    similarity: float | None = None
    """Mean over pairs of 1 - |a - b|, relative to the scale's span; for choices, share equal."""
    why_missing: Mapping[str, str] = field(default_factory=dict)
    """Which of the estimates have no value."""
    ac1: Estimate = _NOTHING
    """Gwet's AC1 of yes-no items, which does not collapse where Yes or No is rare."""
    share_yes: float | None = None
    icc: Estimate = _NOTHING
    """ICC(2,1) of numbers, if the same people answered about every document."""

    def brief(self) -> dict[str, float | None]:
        """What is known of feedback, for JSON."""
        return {"n": self.n, "similarity": self.similarity, "alpha": self.alpha.value}


@dataclass(frozen=True, slots=True)
class JudgeWithPeople:
    """How far a judge agrees with people on the same subjects."""

    name: str
    n: int
    """Documents, or verdicts, of both."""
    kappa: Estimate
    """With the experts' majority on yes-no items; on others, with each person."""
    why_missing: Mapping[str, str]
    """Which of the estimates have no value."""
    n_missing: int = 0
    """Verdicts missing from the judge: the experts have one, the judge has none."""
    ac1: Estimate = _NOTHING
    """Gwet's AC1 of yes-no items."""
    confusion: Confusion = _NO_VERDICTS
    people: Estimate = _NOTHING
    """Kappa between two people, on items that are not yes-no."""
    difference: Estimate = _NOTHING
    """The judge's kappa minus that of people."""
    correlation: Estimate = _NOTHING
    """Pearson with people's means; none for choices without worth."""


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """A judge compared with experts: by group, over all, and in the number of tests passed."""

    rater: str
    signature: str
    rows: tuple[JudgeWithPeople, ...]
    overall: JudgeWithPeople
    pearson: Estimate
    spearman: float | None
    n_stories: int
    n_ties: int = 0
    """Subjects that were judged, but on which the experts are split: they have no majority."""
    why_no_correlation: str | None = None


@dataclass(frozen=True, slots=True)
class PeopleAgreement:
    """Agreement on one item, or on all (`all`)."""

    item: str
    n_documents: int
    one_with_rest: float | None
    """Cohen's kappa of one person with the majority of the others, if there is one."""
    fleiss: float | None
    fleiss_mean: float | None = None
    """The mean of the items' kappas; None for a single item."""
    judge_less: Estimate | None = None
    """The judge's kappa minus people's, where both answer to the same references: the judge takes
    each person's place before the majority of the others (Calderon, Reichart and Dror 2025)."""


@dataclass(frozen=True, slots=True)
class GradedAgreement:
    """By item; judges by rater, then by item."""

    people: Mapping[str, AmongPeople]
    judges: Mapping[str, Mapping[str, JudgeWithPeople]]


# Panels of experts: yes-no items.


def read_experts(path: Path, rubric: Rubric) -> Panel:
    """The experts in a label file, such as the authors' `ttcw_annotations.json`.

    Only yes-no items count. Raises `InputError`, also for duplicate answers by an expert.
    """
    panel = panel_of_labels(read_labels(path, rubric), rubric, path.name)
    if not panel.subjects:
        raise InputError(f"{path}: contains no verdicts on yes-no items of {rubric.id}")
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


def panel_agreement(
    panel: Panel, rubric: Rubric, by: Grouping, *, seed: int = 0
) -> list[AmongPeople]:
    """The experts' agreement on yes-no items, by group, then over all."""
    rows = []
    for name, places in _groups(panel.subjects, rubric, by, panel.authors):
        ratings = panel.ratings[places]
        n_raters = stats.describe_raters(ratings)
        stories, items = ([panel.subjects[place][k] for place in places] for k in (0, 1))
        signature = f"experts:{panel.source}|raters:{n_raters}|rubric:{rubric.id}-{rubric.version}"
        kappa, ac1, alphas = (
            statistic.estimate(stories, seed=seed, method=method, signature=signature)
            for statistic, method in (
                (stats.fleiss(ratings, items), f"Fleiss kappa of {n_raters} raters"),
                (stats.gwet(ratings, items), f"Gwet's AC1 of {n_raters} raters"),
                (stats.alpha(ratings, items=items), "Krippendorff's alpha (nominal)"),
            )
        )
        why = _SAME if kappa.n else _ALONE
        percent = stats.percent_agreement(ratings)
        similar = None if percent is None else percent / 100
        reasons = _reasons(kappa=(kappa, why), alpha=(alphas, why))
        share_yes = float(np.nanmean(ratings)) if ratings.size else None
        rows.append(AmongPeople(name, kappa.n, kappa, alphas, similar, reasons, ac1, share_yes))
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
    for name, places in _groups(subjects, rubric, by, {**panel.authors, **_authors(measurements)}):
        a, b = said[places], is_so[places]
        stories, items = ([subjects[place][k] for place in places] for k in (0, 1))
        kappa, ac1 = (
            statistic.estimate(stories, seed=seed, method=method, signature=signature)
            for statistic, method in (
                (stats.cohen(a, b, items), "Cohen kappa with the majority"),
                (stats.gwet(np.column_stack([a, b]), items), "Gwet's AC1 with the majority"),
            )
        )
        counts = Confusion.of(a, b)
        why = "judge and experts said the same" if counts.n else "the judge has no verdict"
        reasons = _reasons(kappa=(kappa, why))
        n_missing = int(np.isnan(a).sum())
        rows.append(JudgeWithPeople(name, counts.n, kappa, reasons, n_missing, ac1, counts))
    # The numbers of tests passed, for stories that have both.
    counted = aggregates(judge, rubric)
    passed = {
        document: float(np.nanmean(row))
        for document, row in zip(*_panel_scores(panel, rubric), strict=True)
        if document in counted and not np.isnan(row).all()
    }
    stories = list(passed)
    mine, theirs = np.array([counted[story] for story in stories]), np.array([*passed.values()])
    method = "Pearson of tests passed with the experts' mean"
    correlation = stats.pearson(mine, theirs).estimate(
        stories, seed=seed, method=method, signature=signature
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
        spearman=stats.spearman(mine, theirs).value,
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
    for document in dict.fromkeys(document for document, _ in ratings) if items else ():
        given = [ratings[document, item] for item in items if (document, item) in ratings]
        if len(given) < len(items):
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
    authors = sorted({author_of(story) for story, _ in panel.subjects})
    found: dict[str, dict[str, float]] = {author: {} for author in authors}
    for author, rates in found.items():
        for item in rubric.items:
            mine = [
                asked == item.id and author_of(story) == author for story, asked in panel.subjects
            ]
            given = panel.ratings[mine]
            if not np.isnan(given).all():
                rates[item.id] = 100 * float(np.nanmean(given))
    return found


def tests_passed(
    panel: Panel, rubric: Rubric, author_of: Callable[[str], str]
) -> dict[str, dict[int, int]]:
    """Number of tests passed, by author: of each reader of a story who answered all of them."""
    stories: dict[str, list[int]] = defaultdict(list)
    for place, (story, _) in enumerate(panel.subjects):
        stories[story].append(place)
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
    a, b, places = stats.pooled_pairs(scores)
    of_pairs = [stories[place] for place in places]
    method = "Pearson of tests passed between two readers of a story"
    return stats.pearson(a, b).estimate(of_pairs, seed=seed, method=method, signature=panel.source)


def _panel_scores(panel: Panel, rubric: Rubric) -> tuple[list[str], NDArray[np.float64]]:
    """Tests passed by document and expert position: float64, shape (n_documents, n_raters)."""
    documents = list(dict.fromkeys(document for document, _ in panel.subjects))
    scores = []
    for column in panel.ratings.T.tolist():
        given = zip(panel.subjects, column, strict=True)
        scores.append(aggregates({k: value for k, value in given if not math.isnan(value)}, rubric))
    table = [[own.get(document, np.nan) for own in scores] for document in documents]
    return documents, np.array(table, np.float64).reshape(len(documents), len(scores))


def ratings_of(measurements: Iterable[Measurement]) -> dict[tuple[str, str], float]:
    """Yes or No by document and item; repeated answers count by majority, ties are dropped."""
    return {
        (one.document_id, one.item): float(one.value > 0.5)
        for one in measurements
        if isinstance(one.value, float) and one.value != 0.5
    }


def _authors(measurements: Iterable[Measurement]) -> dict[str, str]:
    said = ((one.document_id, one.details.get("author")) for one in measurements)
    return {document: str(author) for document, author in said if author}


def _groups(
    subjects: Sequence[tuple[str, str]], rubric: Rubric, by: Grouping, authors: Mapping[str, str]
) -> list[tuple[str, list[int]]]:
    """The indices of the subjects of each group, in the rubric's order; then of `all`."""
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
    known = [(name, places) for name, places in groups.items() if places]
    return [*known, ("all", list(range(len(subjects))))]


# People on the documents of a judge, one of them with the others.


def people_agreement(
    panel: Panel, documents: Collection[str], judge: Ratings | None = None
) -> dict[str, PeopleAgreement]:
    """By item, and `all`, over the documents; with a judge's verdicts on them if given."""
    here = panel.on(documents)
    places: dict[str, list[int]] = {}
    for k, (_, item) in enumerate(here.subjects):
        places.setdefault(item, []).append(k)
    found = {item: _one_among(item, here, own, judge) for item, own in places.items()}
    kappas = [one.fleiss for one in found.values() if one.fleiss is not None]
    everything = _one_among("all", here, list(range(len(here.subjects))), judge)
    mean = float(np.mean(kappas)) if kappas else None
    return found | {"all": replace(everything, fleiss_mean=mean)}


def _one_among(
    item: str, panel: Panel, rows: Sequence[int], judge: Ratings | None
) -> PeopleAgreement:
    ratings, items = panel.ratings[rows], [panel.subjects[k][1] for k in rows]
    documents = [panel.subjects[k][0] for k in rows]
    # Each rating, the majority of the others of its subject, and the subject's row. Ratings are
    # left out if the others are tied or fewer than two; of only two people each is compared with
    # the other.
    n_least = 2 if ratings.shape[1] > 2 else 1
    each: list[tuple[float, float]] = []
    subjects: list[int] = []
    for row, values in enumerate(ratings):
        given = values[~np.isnan(values)]
        for k, value in enumerate(given):
            others = np.delete(given, k)
            if len(others) >= n_least and 2 * others.sum() != len(others):
                each.append((value, 2 * others.sum() > len(others)))
                subjects.append(row)
    one, rest = np.array(each, np.float64).reshape(-1, 2).T
    among, strata = [documents[k] for k in subjects], [items[k] for k in subjects]
    kappa, fleiss = stats.cohen(one, rest, strata).value, stats.fleiss(ratings, items).value
    found = PeopleAgreement(item, len(set(documents)), kappa, fleiss)
    if judge is None:
        return found
    mine = np.array([judge.get(panel.subjects[rows[k]], np.nan) for k in subjects])
    theirs = np.where(np.isnan(mine), np.nan, one)
    kappas = [(stats.cohen(answers, rest, strata), among) for answers in (mine, theirs)]
    method = "difference of Cohen kappas with the majorities of the others"
    less = stats.difference(*kappas, method=method, signature=f"experts:{panel.source}")
    return replace(found, judge_less=less)


# Other items: numbers, choices, places.


def graded_agreement(
    measurements: Sequence[Measurement],
    labels: Sequence[Measurement],
    rubric: Rubric,
    *,
    seed: int = 0,
) -> GradedAgreement:
    """Judges' measurements and people's labels on the items that are neither yes-no nor prose."""
    people: dict[str, AmongPeople] = {}
    by_judge = by_rater(measurements)
    judges: dict[str, dict[str, JudgeWithPeople]] = {rater: {} for rater in by_judge}
    for item in graded_items(rubric):
        said = numbers_said(labels, item)
        if not said:
            continue
        people[item.id] = _people(said, item, labels[0].signature, seed)
        for rater, found in judges.items():
            mine = [one for one in by_judge[rater] if one.item == item.id]
            given = {name: values[rater] for name, values in numbers_said(mine, item).items()}
            if any(name in said for name in given):
                found[item.id] = _judge(given, said, item, mine[0].signature, seed)
    return GradedAgreement(people, {rater: found for rater, found in judges.items() if found})


def graded_pairs(
    judges: Mapping[str, Sequence[Measurement]],
    labels: Sequence[Measurement],
    rubric: Rubric,
    *,
    seed: int = 0,
) -> list[Contrast]:
    """Each two judges on each item that is neither yes-no nor prose and that both answered.

    `judges` by name; `agreement` is kappa between the two. The interval of a difference is over
    documents, of both at once.
    """
    pairs = []
    for item in graded_items(rubric):
        people = numbers_said(labels, item)
        given = {name: numbers_said(own, item) for name, own in judges.items()}
        answers = {
            name: {document: next(iter(one.values())) for document, one in own.items()}
            for name, own in given.items()
        }
        for first, second in combinations([name for name in answers if answers[name]], 2):
            both = [name for name in answers[first] if name in answers[second]]
            if not both:
                continue
            signature = f"{judges[first][0].signature}|against:{second}"
            columns, sides = [], []
            for mine in (answers[first], answers[second]):
                columns.append(np.array([mine[name] for name in both]))
                own, theirs, names = _with_people({name: mine[name] for name in both}, people)
                sides.append((_statistic(own, theirs, item), names))
            method = f"difference of the kappas of two judges with people, {_OVER}"
            apart = stats.difference(*sides, method=method, signature=signature)
            agreement = _kappa(columns[0], columns[1], both, item, signature, seed)
            alike = "a judge and people said the same"
            if not any(name in people for name in both):
                alike = "nobody labelled these documents"
            why = _reasons(difference=(apart, alike), agreement=(agreement, _SAME))
            details = {"agreement": agreement, "why_missing": why}
            pairs.append(Contrast(item.id, first, second, apart, details=details))
    return pairs


def graded_items(rubric: Rubric) -> list[Item]:
    """The items that are neither yes-no nor prose."""
    return [one for one in rubric.items if one.scale.level and one.scale.agreement != "kappa"]


def numbers_said(measurements: Sequence[Measurement], item: Item) -> dict[str, dict[str, float]]:
    """The answers on an item, by document and rater, as numbers.

    Worths, ranks, or the number of an option.
    """
    scale = item.scale
    found: dict[str, dict[str, float]] = {}
    for one in measurements:
        value = scale.decided(one.value) if one.item == item.id else None
        if value is None:
            continue
        number = scale.worth(value)
        if number is None:
            number = scale.answers.index(value) if isinstance(value, str) else value
        found.setdefault(one.document_id, {})[one.rater] = float(number)
    return found


def _statistic(a: Values, b: Values, item: Item) -> stats.Statistic:
    return stats.cohen(a, b) if item.scale.level == "nominal" else stats.concordance(a, b)


def _pairs_of_people(
    said: Mapping[str, Mapping[str, float]], documents: Sequence[str]
) -> tuple[Values, Values, list[str]]:
    """All ordered pairs of two people of a document, and the documents of the pairs."""
    return _columns(
        [(*pair, name) for name in documents for pair in permutations(said[name].values(), 2)]
    )


def _columns(pairs: Sequence[tuple[float, float, str]]) -> tuple[Values, Values, list[str]]:
    """The first answers of pairs, the second, and the documents."""
    table = np.array([pair[:2] for pair in pairs], np.float64).reshape(len(pairs), 2)
    return table[:, 0], table[:, 1], [name for *_, name in pairs]


def _people(
    said: Mapping[str, Mapping[str, float]], item: Item, signature: str, seed: int
) -> AmongPeople:
    several = [name for name, values in said.items() if len(values) > 1]
    raters = list(dict.fromkeys(rater for name in several for rater in said[name]))
    table = np.array(
        [[said[name].get(rater, np.nan) for rater in raters] for name in several], np.float64
    ).reshape(len(several), len(raters))
    a, b, names = _pairs_of_people(said, several)
    level = item.scale.level or "nominal"
    apart = (a != b) if level == "nominal" else np.abs(a - b) / item.scale.span
    kappa = _kappa(a, b, names, item, signature, seed)
    # Non-numeric values have no table, and so no value.
    numbers = table if level == "interval" else table[:0]
    alphas, iccs = (
        statistic.estimate(names, seed=seed, method=method, signature=signature)
        for statistic, names, method in (
            (stats.alpha(table, level), several, f"Krippendorff's alpha ({level})"),
            (stats.icc(numbers), several[: len(numbers)], "ICC(2,1)"),
        )
    )
    same = no_icc = _SAME if several else _ALONE
    if level != "interval":
        no_icc = "the answers are not numbers"
    elif several and np.isnan(table).any():
        no_icc = "not everybody answered about every document"
    elif len(several) == 1:
        no_icc = "several answered about one document only"
    elif several and np.ptp(table) > 0:
        no_icc = "it would divide by zero"
    return AmongPeople(
        item.id,
        n=len(several),
        kappa=kappa,
        alpha=alphas,
        icc=iccs,
        similarity=float(1 - apart.mean()) if len(apart) and level != "ordinal" else None,
        why_missing=_reasons(kappa=(kappa, same), alpha=(alphas, same), icc=(iccs, no_icc)),
    )


def _reasons(**figures: tuple[Estimate, str]) -> dict[str, str]:
    """By name, the reasons of the estimates without a value."""
    return {name: why for name, (one, why) in figures.items() if one.value is None}


def _kappa(
    a: Values, b: Values, names: Sequence[str], item: Item, signature: str, seed: int
) -> Estimate:
    method = f"{_METHODS[item.scale.level or 'nominal']} {_OVER}"
    found = _statistic(a, b, item).estimate(names, seed=seed, method=method, signature=signature)
    return replace(found, n=len(set(names)))


def _with_people(
    given: Mapping[str, float], said: Mapping[str, Mapping[str, float]]
) -> tuple[Values, Values, list[str]]:
    """A judge's answers with each person's of the same document, and the documents."""
    both = ((name, mine, said.get(name, {}).values()) for name, mine in given.items())
    return _columns([(mine, value, name) for name, mine, values in both for value in values])


def _judge(
    given: Mapping[str, float],
    said: Mapping[str, Mapping[str, float]],
    item: Item,
    signature: str,
    seed: int,
) -> JudgeWithPeople:
    both = [name for name in given if name in said]
    mine, theirs, names = _with_people(given, said)
    a, b, among = _pairs_of_people(said, both)
    means = np.array([np.mean(list(said[name].values())) for name in both])
    own = np.array([given[name] for name in both])
    has_order = item.scale.level != "nominal"
    kappa = _kappa(mine, theirs, names, item, signature, seed)
    people = _kappa(a, b, among, item, signature, seed)
    sides = (_statistic(mine, theirs, item), names), (_statistic(a, b, item), among)
    apart = stats.difference(*sides, method=f"difference of kappas, {_OVER}", signature=signature)
    ordered = means if has_order else np.full(len(means), np.nan)
    correlation = stats.pearson(own, ordered).estimate(
        both, seed=seed, method="Pearson with people's means over documents", signature=signature
    )
    alone = _SAME if among else _ALONE
    no_correlation = f"{'people' if np.ptp(own) else 'the judge'} said the same of every document"
    if not has_order:
        no_correlation = "the options have no order"
    elif len(own) < 2:
        no_correlation = "judge and people answered about one document only"
    return JudgeWithPeople(
        item.id,
        n=len(both),
        kappa=kappa,
        people=people,
        difference=apart,
        correlation=correlation,
        why_missing=_reasons(
            kappa=(kappa, _SAME),
            people=(people, alone),
            difference=(apart, alone if people.value is None else _SAME),
            correlation=(correlation, no_correlation),
        ),
    )
