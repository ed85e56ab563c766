"""The numbers of a text, side by side: what a table shows and what groups are compared by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fabula.judging.answers import score_range
from fabula.measures.groups import Distribution, GroupNumbers
from fabula.measures.linguistic.profile import PROFILE_METRICS
from fabula.review.found import Review, TextReview

__all__ = ["NUMBERS", "Number", "comparable", "numbers_of", "numbers_of_review", "share_below"]

Shares = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Number:
    """A number that a text has. `item` is its name among measurements."""

    key: str
    title: str
    form: str
    part: str
    item: str


NUMBERS: tuple[Number, ...] = (
    Number("creativity_index", "Creativity Index", ".3f", "originality", "creativity_index"),
    Number("bits_per_word", "Surprisal, bits a word", ".2f", "fluency", "bits_per_word"),
    *(Number(m.id, m.title, m.form, "profile", m.id) for m in PROFILE_METRICS),
)
"""What is the same for every judge; `numbers_of` adds the tests passed by each."""


def numbers_of(text: TextReview) -> dict[str, float | None]:
    """The value of each number that was asked for, None where it is missing."""
    found: dict[str, float | None] = {}
    if text.originality is not None:
        found["creativity_index"] = text.originality.creativity_index
    if text.fluency is not None:
        found["bits_per_word"] = text.fluency.bits_per_word
    if text.profile is not None:
        found |= text.profile.values
    for name, said in text.others.items():
        for one in said:
            value = one.value
            found[f"{name}.{one.item}"] = None if isinstance(value, str) else value
    return found


def _of_instruments(review: Review) -> Iterator[Number]:
    """The numbers of the instruments that measured these texts besides Fabula's own parts."""
    for one in review.instruments:
        if one.id in review.signatures:
            for figure in one.figures:
                key = f"{one.id}.{figure.item}"
                yield Number(key, figure.title, figure.form, one.id, figure.item)


def numbers_of_review(review: Review) -> tuple[list[Number], list[dict[str, float | None]]]:
    """The numbers that some text has, and each text's values; a judge's score is one of them."""
    rows = [numbers_of(text) for text in review.texts]
    judged: list[Number] = []
    has_score = review.rubric is not None and bool(score_range(review.rubric))
    for judge in review.judges if has_score else ():
        name = judge.rater.partition("@")[0]
        title = (review.rubric.aggregate.title if review.rubric else "") or "Score"
        number = Number(f"score {judge.rater}", f"{title}, by {name}", "g", "verdicts", "score")
        judged.append(number)
        for text, row in zip(review.texts, rows, strict=True):
            row[number.key] = judge.scores.get(text.document.id)
    known = {key for row in rows for key in row}
    measured = (*NUMBERS, *_of_instruments(review))
    return [*(n for n in measured if n.key in known), *judged], rows


_BY_LENGTH = frozenset(("type_token_ratio", "unique_trigram_ratio", "repeated_share"))
"""What depends on how long a text is so much that only texts of like length compare."""
_LIKE = 2
"""A text is like a group in length from half of its first decile to twice its last."""


def comparable(
    groups: Iterable[GroupNumbers], item: str, n_words: float | None
) -> tuple[GroupNumbers, ...]:
    """The groups that say something of a number of a text with so many words."""
    return tuple(
        group
        for group in groups
        if item not in _BY_LENGTH or _is_like(group.items.get("n_words"), n_words)
    )


def _is_like(lengths: Distribution | None, n_words: float | None) -> bool:
    if lengths is None or n_words is None:
        return False
    return lengths.quantile(0.1) / _LIKE <= n_words <= lengths.quantile(0.9) * _LIKE


def share_below(review: Review, text: TextReview, part: str, item: str, value: float) -> Shares:
    """Of each group that compares with a text, the share that lies below its value."""
    n_words = None if text.profile is None else text.profile.values["n_words"]
    found = review.groups.find(review.signatures[part]).groups
    return {
        group.group: group.items[item].share_below(value)
        for group in comparable(found, item, n_words)
        if item in group.items
    }
