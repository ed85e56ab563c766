"""Asking which of two stories passes an item more convincingly, always in both orders.

Judges favour a place (the first or the second story), so a preference that changes with the order
does not count; how often that happens is reported with the preferences. A ranking uses all answers,
each in the order in which it was asked, with the place effect as part of the model.

Under a budget, pairs are chosen in rounds, based on the answers so far. Each choice is recorded
before it is asked, so that a resumed run asks the same pairs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, count
from typing import Any

import numpy as np

from fabula.errors import DAMAGE, InputError
from fabula.judging.judge_prompts import PAIR_SCALE
from fabula.judging.judging_plan import AnswerBook, Asked, Judged, JudgePlan
from fabula.judging.run import MAX_UNREADABLE, Caller
from fabula.models.base import Model
from fabula.models.concurrency import all_of, in_turn
from fabula.models.verdicts import Verdict
from fabula.resume import KeptRows, Row, RowKind
from fabula.stats.pair_choice import Pair, first_pairs, next_pairs, round_size
from fabula.stats.ranking import METHOD, Comparisons, Ranking, rank
from fabula.text import TextSettings, check_documents
from fabula.types import Document, Estimate, Item, Measurement

_BETWEEN = " : "

Pairs = Sequence[tuple[Document, Document]]
ROUNDS = RowKind("the choice of pairs", ("model", "round"), ("seed", "pairs"))
"""A row for each round of a run under a budget: the pairs chosen for it."""


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


def _field(document: Document, name: str) -> str | None:
    value = document.fields.get(name)
    return None if value is None else str(value)


def numbered(pairs: Pairs) -> tuple[list[str], list[Pair]]:
    """The ids of the stories of pairs, and the pairs as indices into them."""
    places: dict[str, int] = {}
    found = [
        (places.setdefault(a.id, len(places)), places.setdefault(b.id, len(places)))
        for a, b in pairs
    ]
    return list(places), found


_Both = list[tuple[Judged, Judged]]
"""Each item's answers about a pair, with the stories in order and reversed."""


async def judge_pairs(
    pairs: Pairs,
    model: Model,
    plan: JudgePlan,
    book: AnswerBook,
    *,
    max_pairs: int | None = None,
    rounds: KeptRows | None = None,
    meter: Callable[[int], None] = lambda _: None,
    max_unreadable: int = MAX_UNREADABLE,
) -> list[Measurement]:
    """Measure each pair and item: the id of the preferred story, or why there is none.

    With `max_pairs`, that many pairs are chosen, in rounds based on earlier answers; `rounds`
    stores the choices. Raises `InputError` if these are for other stories.
    """
    caller = Caller(model, plan, book, meter, max_unreadable)

    async def judge_all(chosen: Sequence[int]) -> list[_Both]:
        calls = [partial(_judge_pair, pairs[k], caller, plan) for k in chosen]
        return await in_turn(calls, model.n_parallel)

    round_of: dict[int, int] = {}
    if max_pairs is None or max_pairs >= len(pairs):
        by_pair = dict(enumerate(await judge_all(range(len(pairs)))))
    else:
        by_pair = {}
        kept = KeptRows(ROUNDS) if rounds is None else rounds
        choices = _Choices(pairs, max_pairs, plan, model.name, kept)
        for number in count():
            chosen = choices.of_round(number, by_pair)
            if not chosen:
                break
            by_pair |= zip(chosen, await judge_all(chosen), strict=True)
            round_of |= dict.fromkeys(chosen, number)
    judged = [one for of_pair in by_pair.values() for both in of_pair for one in both]
    signature = str(plan.signature(model.name, judged))
    return [
        _measurement(
            item,
            pairs[k],
            straight,
            turned,
            model.name,
            plan.rubric.key,
            signature,
            {"round": round_of[k]} if round_of else {},
        )
        for k in sorted(by_pair)
        for item, (straight, turned) in zip(plan.items, by_pair[k], strict=True)
    ]


class _Choices:
    """Which pairs are asked in each round: recorded choices first, then new ones."""

    def __init__(
        self, pairs: Pairs, max_pairs: int, plan: JudgePlan, model: str, rounds: KeptRows
    ) -> None:
        self._plan, self._model, self._rounds = plan, model, rounds
        self._max_pairs = max_pairs
        self._ids, self._pairs = numbered(pairs)
        self._place_of = {pair: place for place, pair in enumerate(self._pairs)}

    def of_round(self, number: int, by_pair: dict[int, _Both]) -> list[int]:
        """The indices of a round's pairs; empty when the budget is used up."""
        n_left = self._max_pairs - len(by_pair)
        if not n_left:
            return []
        made_of: Row = {"model": self._model, "round": number, "seed": self._plan.seed}
        kept = self._rounds.find(made_of)
        if kept is not None:
            return self._places(kept["pairs"])[:n_left]
        chosen = self._first(n_left) if number == 0 else self._next(n_left, by_pair)
        ids = [[self._ids[k] for k in self._pairs[place]] for place in chosen]
        self._rounds.add(made_of | {"pairs": ids})
        return chosen

    def _first(self, n_left: int) -> list[int]:
        rng = np.random.default_rng([self._plan.seed, 3])
        return [self._place_of[pair] for pair in first_pairs(self._pairs, n_left, rng)]

    def _next(self, n_left: int, by_pair: dict[int, _Both]) -> list[int]:
        n_things = len(self._ids)
        left = [pair for place, pair in enumerate(self._pairs) if place not in by_pair]
        chosen = next_pairs(
            left,
            self._answers(by_pair),
            n_things,
            min(n_left, round_size(n_things)),
            2 * len(self._plan.items),
        )
        return [self._place_of[pair] for pair in chosen]

    def _answers(self, by_pair: dict[int, _Both]) -> Comparisons:
        rows = []
        for place in sorted(by_pair):
            a, b = self._pairs[place]
            for straight, turned in by_pair[place]:
                rows += _rows(a, b, [straight.verdict.value, turned.verdict.value])
        return _comparisons(rows)

    def _places(self, kept: object) -> list[int]:
        place_of = {id_: place for place, id_ in enumerate(self._ids)}
        try:
            return [self._place_of[place_of[a], place_of[b]] for a, b in kept]  # type: ignore[attr-defined]
        except DAMAGE as error:
            raise InputError(
                "the pairs chosen earlier in this run are from other stories; choose another "
                "`out`, or start over with `restart`"
            ) from error


_Row = tuple[int, int, float]
"""First and second shown, and 1 if the first was preferred, 0 the second, 0.5 neither."""


def _rows(a: int, b: int, orders: Sequence[object]) -> list[_Row]:
    """The readable answers about a pair, in order and reversed, each as it was asked.

    People may also say that they prefer neither.
    """
    shown = ((a, b), (b, a))
    outcomes = {"A": 1.0, "B": 0.0, "tie": 0.5}
    return [(*shown[k], outcomes[str(said)]) for k, said in enumerate(orders) if said is not None]


def _comparisons(
    rows: Sequence[_Row], cluster: Sequence[int] | None = None, round_: Sequence[int] | None = None
) -> Comparisons:
    """Convert rows to arrays; `cluster` and `round_` apply to each row."""
    table = np.array(rows, np.float64).reshape(-1, 3)
    first, second = table[:, :2].T.astype(np.int64)
    clusters = None if cluster is None else np.array(cluster, np.int64)
    rounds = None if round_ is None else np.array(round_, np.int64)
    return Comparisons(first, second, table[:, 2], clusters, rounds)


async def _judge_pair(pair: tuple[Document, Document], caller: Caller, plan: JudgePlan) -> _Both:
    """Each item's answers, with the stories in order and reversed."""
    first, second = pair
    words = TextSettings()
    if not (words.has_words(first.text) and words.has_words(second.text)):
        nothing = Judged(Asked("", "", 0, "", 0), Verdict(None, "no_words", None), None)
        return [(nothing, nothing)] * len(plan.items)
    by_order: list[list[Judged]] = []
    # One order after the other: all items of an order share their prefix.
    for a, b in ((first, second), (second, first)):
        prompts = [plan.template.pair_prompt(a.text, b.text, item) for item in plan.items]
        calls = [
            (_key(a, b), replace(item, scale=PAIR_SCALE), 0, prompt)
            for item, prompt in zip(plan.items, prompts, strict=True)
        ]
        head = await caller.call(*calls[0])
        rest = await all_of([caller.call(*call) for call in calls[1:]])
        by_order.append([head, *rest])
    return list(zip(*by_order, strict=True))


def _measurement(
    item: Item,
    pair: tuple[Document, Document],
    straight: Judged,
    turned: Judged,
    model: str,
    rubric: str,
    signature: str,
    chosen: Mapping[str, int],
) -> Measurement:
    """Combine both orders; `chosen` is the round in which the pair was chosen, if any."""
    first, second = pair[0].id, pair[1].id
    said = straight.verdict.value, turned.verdict.value
    value: str | None = None
    reason: str | None = None
    if said[0] is None or said[1] is None:
        reason = straight.verdict.missing_reason or turned.verdict.missing_reason
    elif said[0] == said[1]:
        reason = "order"
    else:
        value = first if said[0] == "A" else second
    return Measurement(
        document_id=_key(*pair),
        rubric=rubric,
        item=item.id,
        rater=model,
        value=value,
        missing_reason=reason,
        evidence=(),
        rationale=straight.verdict.rationale,
        signature=signature,
        details={"orders": list(said), "turned_rationale": turned.verdict.rationale, **chosen},
    )


def summarise_pairs(measurements: Iterable[Measurement]) -> list[PairSummary]:
    """Summarise each item, then all together."""
    by_item = _by_item(measurements)
    by_item["all"] = by_item.pop("all")
    return [_pair_summary(item, of_item) for item, of_item in by_item.items()]


def _pair_summary(item: str, measurements: Sequence[Measurement]) -> PairSummary:
    places = [place for one in measurements for place in one.details["orders"] if place]
    return PairSummary(
        item=item,
        n_pairs=len(measurements),
        n_decided=sum(one.value is not None for one in measurements),
        n_turned=sum(one.missing_reason == "order" for one in measurements),
        first_share=places.count("A") / len(places) if places else None,
        n_wins=dict(Counter(str(one.value) for one in measurements if one.value is not None)),
    )


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
    pair_of = {_key(*pair): place for pair, place in zip(pairs, places, strict=True)}
    shared = {one.id: _field(one, by) or "" for pair in pairs for one in pair} if by else {}
    found = []
    for item, of_item in _rankable(measurements, by_item=by_item):
        rows: list[_Row] = []
        round_: list[int] = []
        units: list[object] = []
        for one in of_item:
            own = _rows(*pair_of[one.document_id], one.details["orders"])
            rows += own
            units += [one.details[cluster]] * len(own) if cluster else []
            round_ += [one.details.get("round", 0)] * len(own)
        is_chosen = any("round" in one.details for one in of_item)
        known = {unit: number for number, unit in enumerate(dict.fromkeys(units))}
        clusters = [known[unit] for unit in units] if cluster else None
        answers = _comparisons(rows, clusters, round_ if is_chosen else None)
        signed = _signature(of_item, f"|clusters:{cluster}{extra}" if cluster else extra)
        ranking = rank(answers, len(ids), seed=seed, signature=signed)
        found.append(PairRanking(item, "story", tuple(ids), shared, ranking))
    return found


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
    fields = {_key(*pair): tuple(_field(one, of) for one in pair) for pair in pairs}
    across = {key: (a, b) for key, (a, b) in fields.items() if a and b and a != b}
    shared = {_key(*pair): str(_field(pair[0], by)) for pair in pairs}
    clusters = {name: k for k, name in enumerate(dict.fromkeys(shared.values()))}
    names = sorted({name for both in across.values() for name in both})
    if not names:
        return []
    places = {name: place for place, name in enumerate(names)}
    found = []
    for item, of_item in _rankable(measurements, by_item=by_item):
        rows: list[_Row] = []
        cluster: list[int] = []
        for one in of_item:
            if one.document_id in across:
                a, b = (places[name] for name in across[one.document_id])
                own = _rows(a, b, one.details["orders"])
                rows += own
                cluster += [clusters[shared[one.document_id]]] * len(own)
        signature = _signature(of_item, f"|groups:{of}|clusters:{by}{extra}")
        ranking = rank(_comparisons(rows, cluster), len(names), seed=seed, signature=signature)
        found.append(PairRanking(item, of, tuple(names), {}, ranking))
    return found


def ranking_row(found: PairRanking, rater: str) -> dict[str, Any]:
    """A ranking as a JSON row, the strongest first."""
    ranking, names = found.ranking, found.names
    return {
        "ranking": found.of,
        "item": found.item,
        "rater": rater,
        "n": ranking.n,
        "n_units": ranking.n_units,
        "units": ranking.units,
        "p_chance": ranking.p_chance,
        "is_told_from_chance": ranking.is_told_from_chance,
        "place": _ends(ranking.place) | {"missing_reason": ranking.place_reason},
        "strengths": [
            {"name": names[one.thing], "part": one.part, **_ends(one.estimate)}
            | {"share": one.share, "missing_reason": one.missing_reason}
            for one in ranking.strengths
        ],
        "gaps": [
            {"upper": names[gap.upper], "lower": names[gap.lower], **_ends(gap.difference)}
            | {"p": gap.p, "is_told_apart": gap.is_told_apart}
            for gap in ranking.gaps
        ],
        "method": ranking.place.method,
        "signature": ranking.place.signature,
    }


def _ends(estimate: Estimate) -> dict[str, Any]:
    names = ("value", "low", "high", "n", "n_units")
    return {name: getattr(estimate, name) for name in names}


def _rankable(
    measurements: Sequence[Measurement], *, by_item: bool
) -> Iterator[tuple[str, list[Measurement]]]:
    """All items as one, and each separately if requested."""
    grouped = _by_item(measurements)
    yield "all", grouped.pop("all")
    if by_item:
        yield from grouped.items()


def _key(first: Document, second: Document) -> str:
    """The id of a measurement of two stories."""
    return f"{first.id}{_BETWEEN}{second.id}"


def _signature(measurements: Sequence[Measurement], extra: str) -> str:
    return f"{measurements[0].signature}|ranking:{METHOD}{extra}"


def _by_item(measurements: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    """All measurements, then those of each item."""
    by_item: dict[str, list[Measurement]] = {"all": []}
    for one in measurements:
        by_item["all"].append(one)
        by_item.setdefault(one.item, []).append(one)
    return by_item
