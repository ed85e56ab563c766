"""Which of two stories passes an item more convincingly: both orders asked, never one alone.

Judges favour a place (the first or the second story), so a preference that turns when the order
turns is none; how often that happens is reported with the preferences.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

from fabula.errors import InputError
from fabula.judging.plan import AnswerBook, Asked, Judged, JudgePlan
from fabula.judging.prompts import PAIR_SCALE
from fabula.judging.run import MAX_UNREADABLE, Caller
from fabula.models import Model
from fabula.models.concurrency import all_of, in_turn
from fabula.models.verdicts import Verdict
from fabula.text import TextSettings, check_documents
from fabula.types import Document, Item, Measurement

__all__ = ["PairSummary", "judge_pairs", "pairs_of", "summarise_pairs"]

_BETWEEN = " : "


@dataclass(frozen=True, slots=True)
class PairSummary:
    """An item over all pairs (`all`: over all items)."""

    item: str
    n_pairs: int
    n_decided: int
    n_turned: int
    """Pairs in which the preference turned with the order."""
    first_share: float | None
    """How often the story that came first was preferred, of all answers; 0.5 is no bias."""
    n_wins: dict[str, int]


def pairs_of(documents: Sequence[Document], group: str | None) -> list[tuple[Document, Document]]:
    """All pairs of stories; only within groups that share the field `group`, if it is given."""
    groups: dict[str, list[Document]] = defaultdict(list)
    for document in check_documents(documents):
        own = {"prompt_id": document.prompt_id, "author": document.author, **document.meta}
        if group and own.get(group) is None:
            raise InputError(f"{document.id}: has no field {group!r} to group by")
        groups[str(own[group]) if group else ""].append(document)
    return [pair for members in groups.values() for pair in combinations(members, 2)]


async def judge_pairs(
    pairs: Sequence[tuple[Document, Document]],
    model: Model,
    plan: JudgePlan,
    book: AnswerBook,
    *,
    meter: Callable[[int], None] = lambda _: None,
    max_unreadable: int = MAX_UNREADABLE,
) -> list[Measurement]:
    """A measurement for each pair and item: the id of the preferred story, or why there is none."""
    caller = Caller(model, plan, book, meter, max_unreadable)
    by_pair = await in_turn([partial(_judge_pair, pair, caller, plan) for pair in pairs],
                            model.n_parallel)  # fmt: skip
    judged = [one for of_pair in by_pair for both in of_pair for one in both]
    signature = str(plan.signature(model.name, judged))
    return [
        _measurement(item, pair, straight, turned, model.name, plan.rubric.key, signature)
        for pair, of_pair in zip(pairs, by_pair, strict=True)
        for item, (straight, turned) in zip(plan.items, of_pair, strict=True)
    ]


async def _judge_pair(
    pair: tuple[Document, Document], caller: Caller, plan: JudgePlan
) -> list[tuple[Judged, Judged]]:
    """Each item's answers, the stories in their order and turned."""
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
            (f"{a.id}{_BETWEEN}{b.id}", replace(item, scale=PAIR_SCALE), 0, prompt)
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
) -> Measurement:
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
        document_id=f"{first}{_BETWEEN}{second}",
        rubric=rubric,
        item=item.id,
        rater=model,
        value=value,
        missing_reason=reason,
        evidence=(),
        rationale=straight.verdict.rationale,
        signature=signature,
        details={"orders": list(said), "turned_rationale": turned.verdict.rationale},
    )


def summarise_pairs(measurements: Iterable[Measurement]) -> list[PairSummary]:
    """By item, then over all."""
    by_item: dict[str, list[Measurement]] = defaultdict(list)
    for one in measurements:
        by_item[one.item].append(one)
        by_item["all"].append(one)
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
