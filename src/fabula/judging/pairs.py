"""Asking which of two stories passes an item more convincingly, always in both orders.

Judges favour a place (the first or the second story), so a preference that changes with the order
does not count; how often that happens is reported with the preferences. A ranking uses all answers,
each in the order in which it was asked, with the place effect as part of the model.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, combinations
from typing import Any

import numpy as np

from fabula.core.types import Document, Estimate, Measurement
from fabula.jobs.result import picked
from fabula.judging.plan import AnswerBook, Asked, Judged, JudgePlan
from fabula.judging.prompts import PAIR_SCALE
from fabula.judging.run import MAX_UNREADABLE, Caller
from fabula.models.base import Model, all_of, in_turn
from fabula.models.verdicts import Verdict
from fabula.raters.labels import pair_key
from fabula.stats.ranking import METHOD, Comparisons, Ranking, drawn_pairs, is_told_apart, rank
from fabula.stats.resampling import Units
from fabula.text import TextSettings, check_documents

Pairs = Sequence[tuple[Document, Document]]


@dataclass(frozen=True, slots=True)
class PairSummary:
    """An item over all pairs (`all`: over all items)."""

    item: str
    n_pairs: int
    n_decided: int
    n_turned: int
    """Pairs in which the preference changed with the order."""
    first_share: float | None
    """How often the story shown first was preferred, over all answers; 0.5 without a bias."""
    n_wins: dict[str, int]


@dataclass(frozen=True, slots=True)
class PairRanking:
    """Stories, or groups of them, ranked by one judge on an item (`all`: on all items)."""

    item: str
    of: str
    """`story`, or the field whose groups are ranked."""
    names: tuple[str, ...]
    """The names of the things that the ranking numbers."""
    shared: Mapping[str, str]
    """What each story has in common with those it was paired with, if a field was given."""
    ranking: Ranking


def pairs_of(documents: Sequence[Document], group: str | None) -> list[tuple[Document, Document]]:
    """All pairs of stories; only within groups that share the field `group`, if it is given."""
    groups: dict[str, list[Document]] = defaultdict(list)
    for document in check_documents(documents):
        groups[document.group(group) if group else ""].append(document)
    return [pair for members in groups.values() for pair in combinations(members, 2)]


def drawn_from(pairs: Pairs, n_pairs: int, seed: int) -> Pairs:
    """`n_pairs` of the pairs, in their order, as `drawn_pairs` draws them."""
    places = {pair: place for place, pair in enumerate(numbered(pairs)[1])}
    drawn = drawn_pairs(list(places), n_pairs, np.random.default_rng([seed, 3]))
    return [pairs[place] for place in sorted(places[pair] for pair in drawn)]


def _field(document: Document, name: str) -> str | None:
    value = document.fields.get(name)
    return None if value is None else str(value)


def numbered(pairs: Pairs) -> tuple[list[str], list[tuple[int, int]]]:
    """The ids of the stories of pairs, and the pairs as indices into them."""
    places: dict[str, int] = {}
    for story in chain.from_iterable(pairs):
        places.setdefault(story.id, len(places))
    return list(places), [(places[a.id], places[b.id]) for a, b in pairs]


_Both = list[tuple[Judged, Judged]]
"""Each item's answers about a pair, with the stories in order and reversed."""


async def judge_pairs(
    pairs: Pairs,
    model: Model,
    plan: JudgePlan,
    book: AnswerBook,
    *,
    meter: Callable[[int], None] = lambda _: None,
    max_unreadable: int = MAX_UNREADABLE,
) -> list[Measurement]:
    """Measure each pair and item: the id of the preferred story, or why there is none."""
    caller = Caller(model, plan, book, meter, max_unreadable)
    calls = [partial(_judge_pair, pair, caller, plan) for pair in pairs]
    by_pair = await in_turn(calls, model.n_parallel)
    judged = [answer for of_pair in by_pair for orders in of_pair for answer in orders]
    signature = str(plan.signature(model.name, judged))
    rows = []
    for pair, of_pair in zip(pairs, by_pair, strict=True):
        for item, (straight, turned) in zip(plan.items, of_pair, strict=True):
            answers = straight.verdict.value, turned.verdict.value
            value: str | None = None
            reason: str | None = None
            if answers[0] is None or answers[1] is None:
                reason = straight.verdict.missing_reason or turned.verdict.missing_reason
            elif answers[0] == answers[1]:
                reason = "order"
            else:
                value = pair[0 if answers[0] == "A" else 1].id
            details = {"orders": list(answers), "turned_rationale": turned.verdict.rationale}
            why = straight.verdict.rationale
            about = pair_key(*pair), plan.rubric.key, item.id, model.name
            rows.append(Measurement(*about, value, reason, (), why, signature, details))
    return rows


_Row = tuple[int, int, float]
"""First and second shown, and 1 if the first was preferred, 0 the second, 0.5 neither."""


def _rows(a: int, b: int, orders: Sequence[object]) -> list[_Row]:
    """The readable answers about a pair, in order and reversed, each as it was asked.

    People may also say that they prefer neither.
    """
    shown = ((a, b), (b, a))
    outcomes = {"A": 1.0, "B": 0.0, "tie": 0.5}
    return [(*shown[k], outcomes[str(pick)]) for k, pick in enumerate(orders) if pick is not None]


def _comparisons(rows: Sequence[_Row], cluster: Sequence[int] | None = None) -> Comparisons:
    table = np.array(rows, np.float64).reshape(-1, 3)
    first, second = table[:, :2].T.astype(np.int64)
    clusters = None if cluster is None else np.array(cluster, np.int64)
    return Comparisons(first, second, table[:, 2], clusters)


async def _judge_pair(pair: tuple[Document, Document], caller: Caller, plan: JudgePlan) -> _Both:
    """Each item's answers, with the stories in order and reversed."""
    first, second = pair
    if not all(TextSettings().has_words(story.text) for story in pair):
        nothing = Judged(Asked("", "", 0, "", 0), Verdict(None, "no_words", None), None)
        return [(nothing, nothing)] * len(plan.items)
    by_order: list[list[Judged]] = []
    # One order after the other: all items of an order share their prefix.
    for a, b in ((first, second), (second, first)):
        prompts = [plan.template.pair_prompt(a.text, b.text, item) for item in plan.items]
        calls = [
            (pair_key(a, b), replace(item, scale=PAIR_SCALE), 0, prompt)
            for item, prompt in zip(plan.items, prompts, strict=True)
        ]
        head = await caller.call(*calls[0])
        by_order.append([head, *await all_of([caller.call(*call) for call in calls[1:]])])
    return list(zip(*by_order, strict=True))


def summarise_pairs(measurements: Iterable[Measurement]) -> list[PairSummary]:
    """Summarise each item, then all together."""
    by_item = _by_item(measurements)
    by_item["all"] = by_item.pop("all")
    rows = []
    for item, of_item in by_item.items():
        places = [place for each in of_item for place in each.details["orders"] if place]
        preferred = [str(answer.value) for answer in of_item if answer.value is not None]
        n_turned = sum(answer.missing_reason == "order" for answer in of_item)
        share = places.count("A") / len(places) if places else None
        wins = dict(Counter(preferred))
        rows.append(PairSummary(item, len(of_item), len(preferred), n_turned, share, wins))
    return rows


def rank_stories(
    measurements: Sequence[Measurement],
    pairs: Pairs,
    by: str | None,
    *,
    seed: int,
    by_item: bool = False,
    extra: str = "",
    cluster: str | None = None,
) -> list[PairRanking]:
    """The stories of pairs, ranked by the answers of one judge on all items.

    `by` is the field that stories of a pair share. With `by_item`, each item follows separately.
    `extra` is added to signatures. Answers with the same detail `cluster` are correlated; without
    it, those about one pair are.
    """
    ids, places = numbered(pairs)
    pair_of = {pair_key(*pair): place for pair, place in zip(pairs, places, strict=True)}
    shared = {story.id: _field(story, by) or "" for pair in pairs for story in pair} if by else {}
    rankings = []
    for item, of_item in _rankable(measurements, by_item=by_item):
        rows: list[_Row] = []
        units: list[object] = []
        for answer in of_item:
            added = _rows(*pair_of[answer.document_id], answer.details["orders"])
            rows += added
            units += [answer.details[cluster]] * len(added) if cluster else []
        clusters = Units.by(units).of.tolist() if cluster else None
        signature = f"{of_item[0].signature}|ranking:{METHOD}"
        signature += f"|clusters:{cluster}{extra}" if cluster else extra
        ranking = rank(_comparisons(rows, clusters), len(ids), seed=seed, signature=signature)
        rankings.append(PairRanking(item, "story", tuple(ids), shared, ranking))
    return rankings


def rank_groups(
    measurements: Sequence[Measurement],
    pairs: Pairs,
    by: str,
    of: str,
    *,
    seed: int,
    by_item: bool = False,
    extra: str = "",
) -> list[PairRanking]:
    """Groups of stories by the field `of`, such as models, ranked over all their texts.

    What stories of a pair share (`by`), such as a prompt, is a cluster. A pair within one group, or
    with a story that lacks the field, does not count. Empty if there are not two groups.
    """
    fields = {pair_key(*pair): tuple(_field(story, of) for story in pair) for pair in pairs}
    across = {key: (a, b) for key, (a, b) in fields.items() if a and b and a != b}
    shared = {pair_key(*pair): str(_field(pair[0], by)) for pair in pairs}
    clusters = {name: k for k, name in enumerate(dict.fromkeys(shared.values()))}
    names = sorted({name for groups in across.values() for name in groups})
    if not names:
        return []
    places = {name: place for place, name in enumerate(names)}
    rankings = []
    for item, of_item in _rankable(measurements, by_item=by_item):
        rows: list[_Row] = []
        cluster: list[int] = []
        for answer in of_item:
            if answer.document_id in across:
                a, b = (places[name] for name in across[answer.document_id])
                added = _rows(a, b, answer.details["orders"])
                rows += added
                cluster += [clusters[shared[answer.document_id]]] * len(added)
        signature = f"{of_item[0].signature}|ranking:{METHOD}|groups:{of}|clusters:{by}{extra}"
        ranking = rank(_comparisons(rows, cluster), len(names), seed=seed, signature=signature)
        rankings.append(PairRanking(item, of, tuple(names), {}, ranking))
    return rankings


def ranking_row(pair_ranking: PairRanking, rater: str) -> dict[str, Any]:
    """A ranking as a JSON row, the strongest first."""
    ranking, names = pair_ranking.ranking, pair_ranking.names
    return {
        "ranking": pair_ranking.of,
        "item": pair_ranking.item,
        "rater": rater,
        **picked(ranking, "n", "n_units", "units", "p_chance", "is_told_from_chance"),
        "place": _ends(ranking.place) | {"missing_reason": ranking.place_reason},
        "strengths": [
            {"name": names[strength.thing], "part": strength.part, **_ends(strength.estimate)}
            | {"share": strength.share, "missing_reason": strength.missing_reason}
            for strength in ranking.strengths
        ],
        "gaps": [
            replace(gap, a=names[int(gap.a)], b=names[int(gap.b)]).to_json()
            | {"is_told_apart": is_told_apart(gap)}
            for gap in ranking.gaps
        ],
        "method": ranking.place.method,
        "signature": ranking.place.signature,
    }


def _ends(estimate: Estimate) -> dict[str, Any]:
    return picked(estimate, "value", "low", "high", "n", "n_units")


def _rankable(
    measurements: Sequence[Measurement], *, by_item: bool
) -> Iterator[tuple[str, list[Measurement]]]:
    """All items as one, and each separately if requested."""
    grouped = _by_item(measurements)
    yield "all", grouped.pop("all")
    if by_item:
        yield from grouped.items()


def _by_item(measurements: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    """All measurements, then those of each item."""
    by_item: dict[str, list[Measurement]] = {"all": list(measurements)}
    for answer in by_item["all"]:
        by_item.setdefault(answer.item, []).append(answer)
    return by_item
