"""Results of comparing groups of texts, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabula.measures.diversity.common_phrases import SharedPhrase
from fabula.measures.diversity.text_pairs import SimilarPair
from fabula.stats.resampling import MIN_UNITS
from fabula.types import Contrast, Estimate


@dataclass(frozen=True, slots=True)
class GroupDiversity:
    """A group; `estimates` by measure, such as `shared_ngrams.4`."""

    name: str
    n_texts: int
    """All its texts."""
    n_too_short: int
    n_other_prompts: int
    """Texts whose prompts not all groups have."""
    n: int
    """Texts compared at a time, equally many in every group."""
    n_units: int
    """Number of texts or prompts that intervals are over."""
    estimates: Mapping[str, Estimate]
    phrases: Sequence[SharedPhrase] = ()
    templates: Sequence[SharedPhrase] = ()
    n_identical: int = 0
    """Texts that have the same words as another of the group."""

    def to_json(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, estimate in self.estimates.items():
            measure, _, n = name.partition(".")
            shown = estimate_json(estimate)
            if n:
                values.setdefault(measure, {})[n] = shown
            else:
                values[measure] = shown
        return {
            "n": self.n,
            "n_texts": self.n_texts,
            "n_too_short": self.n_too_short,
            "n_other_prompts": self.n_other_prompts,
            "n_identical": self.n_identical,
            "n_units": self.n_units,
            **values,
            "phrases": [one.to_json() for one in self.phrases],
            "templates_shared": [one.to_json() for one in self.templates],
        }


def estimate_json(estimate: Estimate) -> dict[str, Any]:
    """Value and interval; where one is None, `missing_reason` says why (see `reasons.REASONS`)."""
    found: dict[str, Any] = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    if estimate.value is None:
        found["missing_reason"] = "few_texts"
    elif estimate.low is None:
        found["missing_reason"] = reason_of(estimate)
    return found


def identical_remark(group: str, n_identical: int, n_texts: int) -> str:
    return (
        f"{group}: {n_identical:,} of {n_texts:,} texts have the same words as another; copies are "
        f"not independent, so keep one of each"
    )


def reason_of(estimate: Estimate) -> str:
    """Why a value has no interval."""
    return "few_units" if (estimate.n_units or 0) < MIN_UNITS else "no_spread"


@dataclass(frozen=True, slots=True)
class Diversity:
    """How similar the texts of groups are."""

    by: str | None
    design: str
    groups: Sequence[GroupDiversity]
    tests: Sequence[Contrast]
    pairs: Sequence[SimilarPair]
    run_words: int | None
    """The shortest run of words that counts for a pair; None if pairs were not requested."""
    left_out: Mapping[str, str]
    """Measures that were skipped, with the reason."""
    n_words: int
    """Words to which every text was cut."""
    signature: str

    @property
    def measures(self) -> list[str]:
        return list(self.groups[0].estimates) if self.groups else []

    @property
    def remarks(self) -> list[str]:
        """Notices for a reader of the numbers."""
        lines = [
            f"{one.name}: {one.n_too_short:,} of {one.n_texts:,} texts are shorter than "
            f"{self.n_words} words and were left out"
            for one in self.groups
            if one.n_too_short
        ]
        lines += [
            f"{one.name}: {one.n_other_prompts:,} of {one.n_texts:,} texts are of prompts that not "
            f"all groups have, and were left out"
            for one in self.groups
            if one.n_other_prompts
        ]
        lines += [
            identical_remark(one.name, one.n_identical, one.n_texts)
            for one in self.groups
            if one.n_identical
        ]
        if self.design == "own-prompts":
            lines.append(
                "groups have prompts of their own: one text of each prompt is compared at a time"
            )
        return lines + [f"without {name}: {why}" for name, why in self.left_out.items()]

    def to_json(self) -> dict[str, Any]:
        return {
            "by": self.by,
            "groups": {one.name: one.to_json() for one in self.groups},
            "contrasts": [one.to_json() for one in self.tests],
            "pairs": [one.to_json() for one in self.pairs],
            "left_out": dict(self.left_out),
            "remarks": self.remarks,
            "signature": self.signature,
        }
