"""Agreement of raters on a rubric: among people, between a judge and people, between two judges.

Any scale is treated alike: an answer is a number (yes-no 1 and 0, a choice the number of its
option), an item has the statistic of its scale's level, and several items are those of yes-no.

- Yes-no: the truth for a judge is the majority of the experts (Chakrabarty et al. 2024, section 6).
- Other scales: kappa has quadratic weights for numbers and ordered choices, none for other choices;
  it is over all pairs of two raters of a document. A judge is one more person, compared with each.

Stories may have different numbers of raters; intervals are over stories, since all ratings of a
story are correlated. People's agreement depends on the documents: over obviously different texts
they agree on more than over texts of one kind, so they are measured on a judge's documents.
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
Measurements = Sequence[Measurement]
Answers = Mapping[str, Mapping[str, float]]
"""People's answers to an item as numbers, by document and rater."""

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

    A subject is a document and an item. A column is a position; its person differs between stories.
    """

    subjects: tuple[tuple[str, str], ...]
    ratings: NDArray[np.float64]
    source: str
    authors: Mapping[str, str] = field(default_factory=dict)
    """The author of each document, if known."""

    def majority(self) -> dict[tuple[str, str], float]:
        """The verdict of more than half of the experts; ties are omitted."""
        majority = {}
        for subject, row in zip(self.subjects, self.ratings, strict=True):
            answers = row[~np.isnan(row)]
            if len(answers) and 2 * answers.sum() != len(answers):
                majority[subject] = float(2 * answers.sum() > len(answers))
        return majority

    def on(self, documents: Collection[str]) -> Panel:
        """The part that covers these documents."""
        return self.take([k for k, (text, _) in enumerate(self.subjects) if text in documents])

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
    n_missing: int = 0
    """Verdicts missing from the judge: the experts have one, the judge has none."""
    ac1: Estimate = _NOTHING
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


def read_experts(path: Path, rubric: Rubric) -> Panel:
    """Experts' yes-no answers in a file such as `ttcw_annotations.json`. Raises `InputError`."""
    panel = panel_of_labels(read_labels(path, rubric), rubric, path.name)
    if not panel.subjects:
        raise InputError(f"{path}: contains no verdicts on yes-no items of {rubric.id}")
    return panel


def panel_of_labels(labels: Sequence[Measurement], rubric: Rubric, source: str) -> Panel:
    """The raters of a rubric's yes-no items, without ties. Raises `InputError` for duplicates."""
    yes_no = {item.id for item in rubric.items if item.scale.agreement == "kappa"}
    verdicts = (
        (label.document_id, label.item, label.rater, float(label.value > 0.5))
        for label in labels
        if label.item in yes_no and isinstance(label.value, float) and label.value != 0.5
    )
    return replace(panel_of(verdicts, source), authors=_authors(labels))


def panel_of(verdicts: Iterable[tuple[str, str, str, float]], source: str) -> Panel:
    """A panel from story, item, expert and 1 or 0. Raises `InputError` for a second verdict."""
    by_subject: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for story, item, rater, value in verdicts:
        if rater in by_subject[story, item]:
            raise InputError(
                f"{source}: expert {rater} has two verdicts on {item} of {story}; keep one of them"
            )
        by_subject[story, item][rater] = value
    # Within a story an expert keeps the same column on every item, whatever the order of rows.
    seats: dict[str, list[str]] = {}
    for (story, _), values in by_subject.items():
        seats[story] = sorted({*seats.get(story, []), *values})
    ratings = np.full((len(by_subject), max(map(len, seats.values()), default=0)), np.nan)
    for row, ((story, _), values) in zip(ratings, by_subject.items(), strict=True):
        for rater, value in values.items():
            row[seats[story].index(rater)] = value
    return Panel(tuple(by_subject), ratings, source)


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
    measurements: Measurements, panel: Panel, rubric: Rubric, by: Grouping, *, seed: int = 0
) -> JudgeAgreement:
    """A judge's agreement with the majority, over the stories rated by both."""
    yes_no = {item.id for item in rubric.items if item.scale.agreement == "kappa"}
    measurements = [verdict for verdict in measurements if verdict.item in yes_no]
    judge = ratings_of(measurements)
    truth = panel.majority()
    # A missing answer from the judge counts as missing; one that was never requested does not.
    asked = {(verdict.document_id, verdict.item) for verdict in measurements}
    subjects = [subject for subject in panel.subjects if subject in asked and subject in truth]
    if not subjects:
        raise InputError(
            f"{panel.source}: contains no verdicts on any story that was judged; check that "
            "the ids match"
        )
    judged = np.array([judge.get(subject, np.nan) for subject in subjects])
    is_so = np.array([truth[subject] for subject in subjects])
    signature = f"{measurements[0].signature}|experts:{panel.source}"
    rows = []
    for name, places in _groups(subjects, rubric, by, {**panel.authors, **_authors(measurements)}):
        a, b = judged[places], is_so[places]
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
    scores, means = np.array([counted[story] for story in stories]), np.array([*passed.values()])
    method = "Pearson of tests passed with the experts' mean"
    correlation = stats.pearson(scores, means).estimate(
        stories, seed=seed, method=method, signature=signature
    )
    why = "fewer than two stories have all verdicts of both"
    if len(scores) > 1:
        why = f"all stories have the same number by the {'experts' if np.ptp(scores) else 'judge'}"
    return JudgeAgreement(
        rater=measurements[0].rater,
        signature=signature,
        rows=tuple(rows[:-1]),
        overall=rows[-1],
        pearson=correlation,
        spearman=stats.spearman(scores, means).value,
        n_stories=len(stories),
        n_ties=sum(subject in asked and subject not in truth for subject in panel.subjects),
        why_no_correlation=None if correlation.value is not None else why,
    )


def aggregates(
    ratings: Ratings, rubric: Rubric, asked: Collection[str] | None = None
) -> dict[str, float]:
    """The rubric's aggregate for each document without missing answers.

    asked: the items that it is over, if not all. A mean is on one scale: the numbers if there are
    any, else yes-no items as 1 and 0; numbers from different ranges have none.
    """
    grades = [item for item in rubric.items if item.scale.is_grade]
    tests = [item for item in rubric.items if item.scale.is_test]
    taken = grades if rubric.aggregate.rule == "mean" and grades else tests
    if len({(item.scale.low, item.scale.high) for item in taken}) > 1:
        return {}
    items = [item.id for item in taken if asked is None or item.id in asked]
    scores = {}
    for document in dict.fromkeys(document for document, _ in ratings) if items else ():
        values = [ratings[document, item] for item in items if (document, item) in ratings]
        if len(values) < len(items):
            continue
        if rubric.aggregate.rule == "count":
            counted = 1.0 if rubric.aggregate.counts == "Yes" else 0.0
            scores[document] = float(sum(value == counted for value in values))
        elif rubric.aggregate.rule == "mean":
            scores[document] = math.fsum(values) / len(values)
    return scores


def pass_rates(
    panel: Panel, rubric: Rubric, author_of: Callable[[str], str]
) -> dict[str, dict[str, float]]:
    """Percent of the verdicts that are Yes, by author and item."""
    authors = sorted({author_of(story) for story, _ in panel.subjects})
    rates_of: dict[str, dict[str, float]] = {author: {} for author in authors}
    for author, rates in rates_of.items():
        for item in rubric.items:
            is_theirs = [
                asked == item.id and author_of(story) == author for story, asked in panel.subjects
            ]
            ratings = panel.ratings[is_theirs]
            if not np.isnan(ratings).all():
                rates[item.id] = 100 * float(np.nanmean(ratings))
    return rates_of


def tests_passed(
    panel: Panel, rubric: Rubric, author_of: Callable[[str], str]
) -> dict[str, dict[int, int]]:
    """Number of tests passed, by author: of each reader of a story who answered all of them."""
    stories: dict[str, list[int]] = defaultdict(list)
    for place, (story, _) in enumerate(panel.subjects):
        stories[story].append(place)
    counts_of: dict[str, Counter[int]] = {}
    for story, places in stories.items():
        counts = counts_of.setdefault(author_of(story), Counter())
        for total in panel.ratings[places].sum(axis=0):
            # NaN: who skipped a test has no known number of passed ones.
            if len(places) == len(rubric.items) and not np.isnan(total):
                counts[int(total)] += 1
    return {author: dict(sorted(counts.items())) for author, counts in sorted(counts_of.items())}


def expert_correlation(panel: Panel, rubric: Rubric, *, seed: int = 0) -> Estimate:
    """Pearson's r of tests passed over ordered pairs of expert positions; interval over stories."""
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
        pairs = zip(panel.subjects, column, strict=True)
        scores.append(aggregates({k: value for k, value in pairs if not math.isnan(value)}, rubric))
    table = [[of_rater.get(document, np.nan) for of_rater in scores] for document in documents]
    return documents, np.array(table, np.float64).reshape(len(documents), len(scores))


def ratings_of(measurements: Iterable[Measurement]) -> dict[tuple[str, str], float]:
    """Yes or No by document and item; repeated answers count by majority, ties are dropped."""
    return {
        (answer.document_id, answer.item): float(answer.value > 0.5)
        for answer in measurements
        if isinstance(answer.value, float) and answer.value != 0.5
    }


def _authors(measurements: Iterable[Measurement]) -> dict[str, str]:
    pairs = ((answer.document_id, answer.details.get("author")) for answer in measurements)
    return {document: str(author) for document, author in pairs if author}


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


def people_agreement(
    panel: Panel, documents: Collection[str], judge: Ratings | None = None
) -> dict[str, PeopleAgreement]:
    """By item, and `all`, over the documents; with a judge's verdicts on them if given."""
    shared = panel.on(documents)
    places: dict[str, list[int]] = {}
    for k, (_, item) in enumerate(shared.subjects):
        places.setdefault(item, []).append(k)
    by_item = {item: _one_among(item, shared, rows, judge) for item, rows in places.items()}
    kappas = [row.fleiss for row in by_item.values() if row.fleiss is not None]
    everything = _one_among("all", shared, list(range(len(shared.subjects))), judge)
    mean = float(np.mean(kappas)) if kappas else None
    return by_item | {"all": replace(everything, fleiss_mean=mean)}


def _one_among(item: str, panel: Panel, rows: list[int], judge: Ratings | None) -> PeopleAgreement:
    ratings, items = panel.ratings[rows], [panel.subjects[k][1] for k in rows]
    documents = [panel.subjects[k][0] for k in rows]
    # Each rating, the majority of the others of its subject, and the subject's row; left out if the
    # others are tied or fewer than two; of only two people each is compared with the other.
    n_least = 2 if ratings.shape[1] > 2 else 1
    pairs: list[tuple[float, float]] = []
    subjects: list[int] = []
    for row, values in enumerate(ratings):
        known = values[~np.isnan(values)]
        for k, value in enumerate(known):
            others = np.delete(known, k)
            if len(others) >= n_least and 2 * others.sum() != len(others):
                pairs.append((value, 2 * others.sum() > len(others)))
                subjects.append(row)
    people, majority = np.array(pairs, np.float64).reshape(-1, 2).T
    among, strata = [documents[k] for k in subjects], [items[k] for k in subjects]
    kappa, fleiss = stats.cohen(people, majority, strata).value, stats.fleiss(ratings, items).value
    agreement = PeopleAgreement(item, len(set(documents)), kappa, fleiss)
    if judge is None:
        return agreement
    judged = np.array([judge.get(panel.subjects[rows[k]], np.nan) for k in subjects])
    answered = np.where(np.isnan(judged), np.nan, people)
    kappas = [(stats.cohen(answers, majority, strata), among) for answers in (judged, answered)]
    method = "difference of Cohen kappas with the majorities of the others"
    less = stats.difference(*kappas, method=method, signature=f"experts:{panel.source}")
    return replace(agreement, judge_less=less)


def graded_agreement(
    measurements: Measurements, labels: Measurements, rubric: Rubric, *, seed: int = 0
) -> GradedAgreement:
    """Judges' measurements and people's labels on the items that are neither yes-no nor prose."""
    people: dict[str, AmongPeople] = {}
    by_judge = by_rater(measurements)
    judges: dict[str, dict[str, JudgeWithPeople]] = {rater: {} for rater in by_judge}
    for item in graded_items(rubric):
        if not (by_document := numbers_said(labels, item)):
            continue
        people[item.id] = _people(by_document, item, labels[0].signature, seed)
        for rater, rows in judges.items():
            answers = [answer for answer in by_judge[rater] if answer.item == item.id]
            judged = {name: values[rater] for name, values in numbers_said(answers, item).items()}
            if any(name in by_document for name in judged):
                rows[item.id] = _judge(judged, by_document, item, answers[0].signature, seed)
    return GradedAgreement(people, {rater: kept for rater, kept in judges.items() if kept})


def graded_pairs(
    judges: Mapping[str, Measurements], labels: Measurements, rubric: Rubric, *, seed: int = 0
) -> list[Contrast]:
    """Each two judges on each item that is neither yes-no nor prose and that both answered.

    `judges` by name; `agreement` is their kappa. A difference's interval is over documents of both.
    """
    pairs = []
    for item in graded_items(rubric):
        people = numbers_said(labels, item)
        numbers = {name: numbers_said(rows, item) for name, rows in judges.items()}
        answers = {
            name: {text: next(iter(by_judge.values())) for text, by_judge in by_text.items()}
            for name, by_text in numbers.items()
        }
        for first, second in combinations([name for name in answers if answers[name]], 2):
            if not (shared := [name for name in answers[first] if name in answers[second]]):
                continue
            signature = f"{judges[first][0].signature}|against:{second}"
            columns, sides = [], []
            for by_text in (answers[first], answers[second]):
                columns.append(np.array([by_text[name] for name in shared]))
                a, b, names = _with_people({name: by_text[name] for name in shared}, people)
                sides.append((_statistic(a, b, item), names))
            method = f"difference of the kappas of two judges with people, {_OVER}"
            apart = stats.difference(*sides, method=method, signature=signature)
            agreement = _kappa(columns[0], columns[1], shared, item, signature, seed)
            alike = "a judge and people said the same"
            if not any(name in people for name in shared):
                alike = "nobody labelled these documents"
            why = _reasons(difference=(apart, alike), agreement=(agreement, _SAME))
            details = {"agreement": agreement, "why_missing": why}
            pairs.append(Contrast(item.id, first, second, apart, details=details))
    return pairs


def graded_items(rubric: Rubric) -> list[Item]:
    """The items that are neither yes-no nor prose."""
    return [item for item in rubric.items if item.scale.level and item.scale.agreement != "kappa"]


def numbers_said(measurements: Measurements, item: Item) -> dict[str, dict[str, float]]:
    """The answers on an item by document and rater: worths, ranks, or the number of an option."""
    scale = item.scale
    numbers: dict[str, dict[str, float]] = {}
    for answer in measurements:
        value = scale.decided(answer.value) if answer.item == item.id else None
        if value is None:
            continue
        if (number := scale.worth(value)) is None:
            number = scale.answers.index(value) if isinstance(value, str) else value
        numbers.setdefault(answer.document_id, {})[answer.rater] = float(number)
    return numbers


def _statistic(a: Values, b: Values, item: Item) -> stats.Statistic:
    return stats.cohen(a, b) if item.scale.level == "nominal" else stats.concordance(a, b)


def _pairs_of_people(people: Answers, documents: Sequence[str]) -> tuple[Values, Values, list[str]]:
    """All ordered pairs of two people of a document, and the documents of the pairs."""
    return _columns(
        [(*pair, name) for name in documents for pair in permutations(people[name].values(), 2)]
    )


def _columns(pairs: Sequence[tuple[float, float, str]]) -> tuple[Values, Values, list[str]]:
    """The first answers of pairs, the second, and the documents."""
    table = np.array([pair[:2] for pair in pairs], np.float64).reshape(len(pairs), 2)
    return table[:, 0], table[:, 1], [name for *_, name in pairs]


def _people(people: Answers, item: Item, signature: str, seed: int) -> AmongPeople:
    several = [name for name, values in people.items() if len(values) > 1]
    raters = list(dict.fromkeys(rater for name in several for rater in people[name]))
    table = np.array(
        [[people[name].get(rater, np.nan) for rater in raters] for name in several], np.float64
    ).reshape(len(several), len(raters))
    a, b, names = _pairs_of_people(people, several)
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
    similar = float(1 - apart.mean()) if len(apart) and level != "ordinal" else None
    why = _reasons(kappa=(kappa, same), alpha=(alphas, same), icc=(iccs, no_icc))
    return AmongPeople(item.id, len(several), kappa, alphas, similar, why, icc=iccs)


def _reasons(**figures: tuple[Estimate, str]) -> dict[str, str]:
    """By name, the reasons of the estimates without a value."""
    return {name: why for name, (estimate, why) in figures.items() if estimate.value is None}


def _kappa(a: Values, b: Values, ids: list[str], item: Item, signature: str, seed: int) -> Estimate:
    method = f"{_METHODS[item.scale.level or 'nominal']} {_OVER}"
    estimate = _statistic(a, b, item).estimate(ids, seed=seed, method=method, signature=signature)
    return replace(estimate, n=len(set(ids)))


def _with_people(judged: Mapping[str, float], people: Answers) -> tuple[Values, Values, list[str]]:
    """A judge's answers with each person's of the same document, and the documents."""
    rows = ((name, answer, people.get(name, {}).values()) for name, answer in judged.items())
    return _columns([(answer, value, name) for name, answer, values in rows for value in values])


def _judge(
    judged: Mapping[str, float], labels: Answers, item: Item, signature: str, seed: int
) -> JudgeWithPeople:
    shared = [name for name in judged if name in labels]
    answers, others, names = _with_people(judged, labels)
    a, b, among = _pairs_of_people(labels, shared)
    means = np.array([np.mean(list(labels[name].values())) for name in shared])
    marks = np.array([judged[name] for name in shared])
    has_order = item.scale.level != "nominal"
    kappa = _kappa(answers, others, names, item, signature, seed)
    people = _kappa(a, b, among, item, signature, seed)
    sides = (_statistic(answers, others, item), names), (_statistic(a, b, item), among)
    apart = stats.difference(*sides, method=f"difference of kappas, {_OVER}", signature=signature)
    correlation = stats.pearson(marks, means if has_order else means * np.nan).estimate(
        shared, seed=seed, method="Pearson with people's means over documents", signature=signature
    )
    alone = _SAME if among else _ALONE
    no_correlation = f"{'people' if np.ptp(marks) else 'the judge'} said the same of every document"
    if not has_order:
        no_correlation = "the options have no order"
    elif len(marks) < 2:
        no_correlation = "judge and people answered about one document only"
    why = _reasons(
        kappa=(kappa, _SAME),
        people=(people, alone),
        difference=(apart, alone if people.value is None else _SAME),
        correlation=(correlation, no_correlation),
    )
    return JudgeWithPeople(
        item.id, len(shared), kappa, why, people=people, difference=apart, correlation=correlation
    )
