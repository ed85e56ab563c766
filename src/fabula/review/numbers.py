"""The numbers of a text, side by side: what a table shows and what groups are compared by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fabula.instruments import instruments
from fabula.judging.answers import score_range
from fabula.measures.linguistic.profile import PROFILE_METRICS
from fabula.review.found import Review, TextReview

__all__ = ["NUMBERS", "Number", "numbers_of", "numbers_of_review"]


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
    """The numbers of registered instruments that measured these texts."""
    for one in instruments():
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


def share_below(review: Review, signature: str, item: str, value: float) -> Mapping[str, float]:
    """Of each group measured by this signature, the share that lies below a value."""
    return {
        group.group: group.items[item].share_below(value)
        for group in review.groups.find(signature).groups
        if item in group.items
    }
