"""A sample of borrowed spans for people to label, and the accuracy of the rule and a model.

What a text shares with a reference is a quotation, an idiom, or ordinary words by chance. Only
people can say which, so passages and commonplaces (`borrowed_passages`) are sampled in equal
numbers and labelled with the rubric `borrowed`. Each labelled span is weighted by its stratum's
size per label, so that shares, accuracy and recall are those of all spans.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fabula.errors import InputError
from fabula.measures.borrowed_passages import BorrowedPassage
from fabula.measures.originality_measure import Originality
from fabula.measures.quoting import text_around
from fabula.stats.reliability import bootstrap_interval
from fabula.store import read_rows
from fabula.types import Estimate, Measurement, Signature

__all__ = [
    "KINDS",
    "RUBRIC",
    "DrawnSpan",
    "KindShare",
    "SpanReader",
    "draw_spans",
    "kind_shares",
    "read_spans",
    "spans_reader",
    "voted_kinds",
]

RUBRIC = "borrowed"
KINDS = ("quotation", "idiom", "chance")
_CONTEXT_CHARS = 200


@dataclass(frozen=True, slots=True)
class DrawnSpan:
    """Words of a text found in the reference, with what a reader needs to judge them."""

    id: str
    document: str
    start: int
    end: int
    words: str
    source: str
    source_title: str | None
    text: str
    """Both places with their context, for labelling."""
    here: str
    there: str
    """The context of the words in the text, and in the source: what a model is shown."""
    n_words: int
    bits: float | None
    over_chance: float | None
    count: int
    n_documents: int | None
    is_passage: bool
    """Whether the rule calls it a passage; else a commonplace."""
    n_stratum: int
    """How many spans the rule calls the same, in all texts."""
    signature: str

    def to_row(self) -> dict[str, Any]:
        """With an empty `kind`, for a person to fill."""
        return {**asdict(self), "kind": None}

    @classmethod
    def of_row(cls, row: Mapping[str, Any], where: str) -> Self:
        """Raises `InputError` if a field is missing."""
        lacking = [one.name for one in fields(cls) if one.name not in row]
        if lacking:
            raise InputError(
                f"{where}: not a span: it lacks {', '.join(lacking)}; use a file from "
                "`fabula spans sample`"
            )
        return cls(**{one.name: row[one.name] for one in fields(cls)})


def read_spans(path: Path) -> list[DrawnSpan]:
    """Read the spans of a sample.

    Raises `InputError` for a file that is not one, and `MixError` for spans that were measured in
    different ways: they are not a sample of one set.
    """
    found = [DrawnSpan.of_row(row, f"{path}, line {k}") for k, row in enumerate(read_rows(path), 1)]
    if not found:
        raise InputError(f"{path}: contains no spans")
    expected = Signature.parse(found[0].signature)
    for number, span in enumerate(found, 1):
        expected.check_same(
            span.signature,
            f"{path}, line {number} and the spans before it",
            "score each sample separately",
        )
    return found


def draw_spans(results: Iterable[Originality], n: int, seed: int) -> list[DrawnSpan]:
    """Draw `n` borrowed spans, half of them passages, in the order of the texts.

    If there are too few of one kind, more of the other are drawn. Near matches are omitted: their
    words are not those of the source. Raises `InputError` if nothing is borrowed.
    """
    kinds: tuple[list[DrawnSpan], list[DrawnSpan]] = [], []
    for result in results:
        if result.ranked is None:
            continue
        for one in (*result.ranked.passages, *result.ranked.commonplaces):
            if one.sources and all(run.is_verbatim for run in one.runs):
                kinds[one.is_commonplace].append(_drawn(result, one))
    n_passages = min(len(kinds[0]), max(n // 2, n - len(kinds[1])))
    rng = random.Random(seed)
    found: list[DrawnSpan] = []
    for kind, n_drawn in zip(kinds, (n_passages, min(len(kinds[1]), n - n_passages)), strict=True):
        places = sorted(rng.sample(range(len(kind)), n_drawn))
        found += [_with_stratum(kind[k], len(kind)) for k in places]
    if not found:
        raise InputError(
            "the texts share no run of words with the reference, so there is nothing to sample"
        )
    # The order must not reveal the rule's decision to the labellers.
    return sorted(found, key=lambda span: span.id)


def _drawn(result: Originality, passage: BorrowedPassage) -> DrawnSpan:
    text, span, source = result.document.text, passage.span, passage.sources[0]
    there = source.document
    title = there.meta.get("title")
    return DrawnSpan(
        id=f"{result.document.id}:{span.start}-{span.end}",
        document=result.document.id,
        start=span.start,
        end=span.end,
        words=" ".join(text[span.start : span.end].split()),
        source=there.id,
        source_title=None if title is None else str(title),
        text=(
            f"In the text:\n{_marked(text, span.start, span.end)}\n\n"
            f"In the reference ({title or there.id}; {passage.count:,} places hold it):\n"
            f"{_marked(there.text, source.span.start, source.span.end)}"
        ),
        here=text_around(text, span.start, span.end),
        there=text_around(there.text, source.span.start, source.span.end),
        n_words=passage.n_words,
        bits=passage.bits,
        over_chance=passage.over_chance,
        count=passage.count,
        n_documents=passage.n_documents,
        is_passage=not passage.is_commonplace,
        n_stratum=0,
        signature=str(result.signature),
    )


def _with_stratum(span: DrawnSpan, n: int) -> DrawnSpan:
    from dataclasses import replace

    return replace(span, n_stratum=n)


def _marked(text: str, start: int, end: int) -> str:
    parts = (
        text[max(0, start - _CONTEXT_CHARS) : start],
        text[start:end],
        text[end : end + _CONTEXT_CHARS],
    )
    before, words, after = (" ".join(part.split()) for part in parts)
    return f"... {before} [[{words}]] {after} ..."


def voted_kinds(labels: Iterable[Measurement], ids: Iterable[str]) -> dict[str, str]:
    """The majority label of each span; spans with a tie are omitted."""
    known = set(ids)
    votes: dict[str, Counter[str]] = {}
    for one in labels:
        if one.value is not None and one.document_id in known:
            votes.setdefault(one.document_id, Counter())[str(one.value)] += 1
    found = {}
    for id_, counts in votes.items():
        (kind, most), *others = counts.most_common(2)
        if not others or others[0][1] < most:
            found[id_] = kind
    return found


def _weights(spans: Sequence[DrawnSpan]) -> list[float]:
    """The weight of each span among all spans."""
    n_drawn = Counter(span.is_passage for span in spans)
    return [span.n_stratum / n_drawn[span.is_passage] for span in spans]


@dataclass(frozen=True, slots=True)
class KindShare:
    """How many spans people give each label, by the rule's call, and the share of all spans."""

    kind: str
    n_passages: int
    n_commonplaces: int
    share: Estimate


def kind_shares(
    spans: Sequence[DrawnSpan], kinds: Mapping[str, str], *, seed: int = 0
) -> list[KindShare]:
    """For the spans that people labelled, by kind."""
    labelled = [span for span in spans if span.id in kinds]
    weights = _weights(labelled)
    found = []
    for kind in KINDS:
        of_kind = [kinds[span.id] == kind for span in labelled]
        n_passages = sum(
            is_so and one.is_passage for is_so, one in zip(of_kind, labelled, strict=True)
        )
        share = _ratio(labelled, of_kind, [True] * len(labelled), weights, "share", seed)
        found.append(KindShare(kind, n_passages, sum(of_kind) - n_passages, share))
    return found


@dataclass(frozen=True, slots=True)
class SpanReader:
    """How often the rule, or a model, agrees with people about what is a quotation."""

    by: str
    n: int
    """Spans that people labelled and that have a verdict of this reader."""
    n_missing: int
    n_quotations: int
    """The number that people call quotations."""
    n_called: int
    """The number that the reader calls quotations."""
    accuracy: Estimate
    precision: Estimate
    recall: Estimate
    at_best: float | None
    """The accuracy of calling nothing a quotation, or everything, whichever is higher."""


def spans_reader(
    by: str,
    spans: Sequence[DrawnSpan],
    verdicts: Mapping[str, bool | None],
    kinds: Mapping[str, str],
    *,
    seed: int = 0,
) -> SpanReader:
    """Compare a reader's verdicts (whether a span is a quotation) with people's kinds, by id."""
    labelled = [span for span in spans if span.id in kinds]
    known = [span for span in labelled if verdicts.get(span.id) is not None]
    weights = _weights(known)
    truth = [kinds[span.id] == KINDS[0] for span in known]
    said = [bool(verdicts[span.id]) for span in known]
    right = [a == b for a, b in zip(truth, said, strict=True)]
    both = [a and b for a, b in zip(truth, said, strict=True)]
    every = [True] * len(known)
    share = _ratio(known, truth, every, weights, "share", seed).value
    return SpanReader(
        by,
        len(known),
        len(labelled) - len(known),
        sum(truth),
        sum(said),
        _ratio(known, right, every, weights, "accuracy", seed),
        _ratio(known, both, said, weights, "precision", seed),
        _ratio(known, both, truth, weights, "recall", seed),
        None if share is None else max(share, 1 - share),
    )


def _ratio(
    spans: Sequence[DrawnSpan],
    part: Sequence[bool],
    whole: Sequence[bool],
    weights: Sequence[float],
    what: str,
    seed: int,
) -> Estimate:
    sums = np.array(
        [(w * a, w * b) for a, b, w in zip(part, whole, weights, strict=True)], np.float64
    ).reshape(-1, 2)
    above, below = sums.sum(axis=0)
    return bootstrap_interval(
        float(above / below) if below else None,
        sums,
        _of_sums,
        [span.document for span in spans],
        seed=seed,
        method=f"{what}, weighted by stratum, percentile bootstrap over texts",
        signature=spans[0].signature if spans else "",
        n=sum(whole),
    )


def _of_sums(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    ratios: NDArray[np.float64] = sums[..., 0] / sums[..., 1]
    return ratios
