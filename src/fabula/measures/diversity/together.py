"""What several texts have in common, for a page that shows them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fabula.errors import InputError
from fabula.measures.clusters import own_field
from fabula.measures.diversity.diversity_tests import Resampling
from fabula.measures.diversity.grouped_texts import GroupedTexts
from fabula.measures.diversity.measure import ALL_TEXTS, Plan, measure_diversity
from fabula.measures.diversity.result import Diversity, identical_remark
from fabula.measures.diversity.text_pairs import (
    SharedText,
    SimilarPair,
    shared_texts,
    similar_pairs,
)
from fabula.stats.resampling import MIN_UNITS
from fabula.types import Document

_N_PAIRS = 5
_N_PAIRS_OF_A_CLASS = 20


@dataclass(frozen=True, slots=True)
class Together:
    """Which texts resemble which, and how similar all are."""

    shared: Sequence[SharedText]
    """What each text shares with any other, most shared first."""
    pairs: Sequence[SimilarPair]
    """Those with the most words in common runs first; only some are listed."""
    run_words: int
    """The shortest run that counts."""
    diversity: Diversity | None
    reason: str
    """Why the set has no numbers; empty if it has."""
    remarks: Sequence[str]
    is_class: bool = False
    """Whether each text was to be compared with all others, not only described."""
    apart: str | None = None
    """Texts that share this field were not compared with each other."""

    def to_json(self) -> dict[str, Any]:
        found = self.diversity
        return {
            "shared": [asdict(one) for one in self.shared],
            "pairs": [one.to_json() for one in self.pairs],
            "run_words": self.run_words,
            "direction": "unknown",
            "not_compared_within": self.apart,
            "set": None if found is None else found.groups[0].to_json(),
            "missing_reason": self.reason or None,
            "remarks": list(self.remarks),
            "signature": None if found is None else found.signature,
        }


def measure_together(
    documents: Sequence[Document],
    *,
    seed: int,
    n_threads: int,
    is_class: bool = False,
    apart: str | None = None,
) -> Together:
    """The pairs of texts with most in common; from ten texts on, also the diversity of all.

    is_class: list more pairs. apart: a field; texts that share it are not compared with each other.
    """
    plan = Plan(how=Resampling(seed=seed), n_phrases=0, n_threads=n_threads)
    located = [plan.settings.locate(document.text) for document in documents]
    texts = GroupedTexts(documents, [ALL_TEXTS] * len(documents), None, located)
    ids = [document.id for document in documents]
    table = texts.table(plan.settings)
    owners = None if apart is None else _owners(documents, apart)
    n_pairs = _N_PAIRS_OF_A_CLASS if is_class else _N_PAIRS
    pairs = similar_pairs(ids, located, table, plan.run_words, n_pairs, owners)
    shared = shared_texts(ids, table, plan.run_words, owners)
    n_identical = texts.n_identical(ALL_TEXTS)
    remarks = []
    if n_identical:
        remarks.append(identical_remark("these texts", n_identical, len(documents)))
    found, reason = None, ""
    if len(documents) < MIN_UNITS:
        reason = f"figures of the set need {MIN_UNITS} texts, and these are {len(documents)}"
    else:
        try:
            found = measure_diversity(documents, plan)
            remarks += [line for line in found.remarks if "were left out" in line]
        except InputError:
            reason = "more than a tenth of the texts are too short to be compared"
    return Together(shared, pairs, plan.run_words, found, reason, remarks, is_class, apart)


def _owners(documents: Sequence[Document], field: str) -> list[int]:
    """A number for each text, equal where they share the field; a text without it has its own.

    Raises `InputError` if no text has the field.
    """
    values = [own_field(document, field) for document in documents]
    if all(value is None for value in values):
        raise InputError(f"cannot exclude by {field!r}: none of these texts has this field")
    numbers: dict[str | int, int] = {}
    keys = (k if value is None else value for k, value in enumerate(values))
    return [numbers.setdefault(key, len(numbers)) for key in keys]
