"""How much the settings of the Creativity Index change it, relative to the effect it should show.

Lu et al. 2024 leave open, or define only in their programs, what a word is (their text is cased,
and punctuation marks are words), what is excluded from the reference, and why the levels are 5 to
12. Here texts are scored under every combination of these, and the variance of the results is
partitioned (an analysis of variance; combinations are balanced, so that its parts add up): between
people and models, between the texts of either, by each setting, and by the interaction of a setting
with people versus models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray

from fabula.errors import InputError
from fabula.measures.detector import auroc
from fabula.measures.originality_measure import OriginalityMeasure
from fabula.reference import Reference
from fabula.reference.build import build_reference
from fabula.reference.exclude import CopyRule
from fabula.replicate.creativity_index import Plan, same_cluster, score
from fabula.replicate.creativity_index_texts import CLUSTER
from fabula.store import read_rows
from fabula.text import TextSettings
from fabula.types import Document

__all__ = ["FACTORS", "SettingEffect", "SettingsTable", "compare_settings"]

FACTORS: Mapping[str, tuple[str, str]] = {
    "case": ("fold", "keep"),
    "punctuation": ("drop", "keep"),
    "tokeniser": ("word1", "split"),
    "self-exclusion": ("auto", "none"),
    "levels": ("all", "lowest three"),
}
"""The settings that are varied, and the two values of each: Fabula's default first. `split` splits
words at apostrophes and hyphens."""

_JOINT = regex.compile(r"(?<=\p{L})['’‘\-‐‑](?=\p{L})")
_N_LOW = 3


@dataclass(frozen=True, slots=True)
class SettingEffect:
    """The effect of one setting, over all values of the others."""

    name: str
    values: tuple[str, str]
    uniqueness: tuple[float, float]
    """Mean uniqueness over the levels, at either value."""
    above: tuple[float | None, float | None]
    """People above machines, in percent."""
    auroc: tuple[float, float]
    share: float
    """Share of the total variance."""
    share_apart: float
    """Share of the total variance due to its interaction with people versus machines."""


@dataclass(frozen=True, slots=True)
class SettingsTable:
    """The effects of all settings on one set of texts against one reference."""

    texts: str
    reference: str
    n_texts: int
    n_missing: int
    """Texts without an index under at least one setting."""
    effects: tuple[SettingEffect, ...]
    share_sides: float
    """Share of the variance between people and machines."""
    share_texts: float
    """Between the texts of either."""
    share_rest: float
    """Interactions of settings with single texts, and with each other."""
    signatures: tuple[str, ...]


def compare_settings(
    plan: Plan, out: Path, *, report: Callable[[str], None] = lambda stage: None
) -> tuple[SettingsTable, ...]:
    """Score each set against each reference under every combination of settings, verbatim.

    References are rebuilt eight times, so they should be small. Interrupted runs resume. Raises
    `InputError` if a level range has no more than three levels.
    """
    if len(list(plan.levels)) <= _N_LOW:
        raise InputError(f"`levels` {plan.levels}: comparing settings takes more than {_N_LOW}")
    tables = []
    for name, source in plan.references.items():
        files: dict[tuple[str, ...], list[Path]] = {}
        documents = _documents(source)
        for case, punct, tokeniser in product(*list(FACTORS.values())[:3]):
            key = f"{case}-{punct}-{tokeniser}"
            report(f"settings: building {name}, {key}")
            path = out / "settings" / name / key
            build_reference(
                [_tokenised(d, tokeniser) for d in documents],
                path,
                settings=TextSettings(case=case, punct=punct),  # type: ignore[arg-type]
                n_jobs=plan.n_threads,
            )
            reference = Reference.open(path)
            for exclusion in FACTORS["self-exclusion"]:
                files[case, punct, tokeniser, exclusion] = _score_sets(
                    plan, reference, path.parent / "scores", tokeniser, exclusion, key, report
                )
        for place, texts in enumerate(plan.texts):
            found = {setting: list(read_rows(some[place])) for setting, some in files.items()}
            tables.append(_table(texts, name, found, plan))
    return tuple(tables)


def _documents(source: Sequence[Document] | Path) -> Sequence[Document]:
    if not isinstance(source, Path):
        return source
    reference = Reference.open(source)
    return list(reference.documents(reference.numbers()))


def _tokenised(document: Document, tokeniser: str) -> Document:
    if tokeniser == FACTORS["tokeniser"][0]:
        return document
    return replace(document, text=_JOINT.sub(" ", document.text))


def _score_sets(
    plan: Plan,
    reference: Reference,
    folder: Path,
    tokeniser: str,
    exclusion: str,
    key: str,
    report: Callable[[str], None],
) -> list[Path]:
    """A file of scores for each set of texts."""
    files = []
    for name, whole in plan.texts.items():
        texts = [_tokenised(d, tokeniser) for d in whole]
        measure = OriginalityMeasure(
            reference,
            levels=plan.levels,
            exclude=CopyRule() if exclusion == "auto" else None,
            exclude_same=same_cluster(reference, texts, plan),
            n_sources=0,
            n_threads=plan.n_threads,
        )
        files.append(folder / f"{name}-{key}-{exclusion}.jsonl")
        score(measure, texts, files[-1], f"settings: {name}, {key}, exclude {exclusion}", report)
    return files


def _table(
    texts: str,
    reference: str,
    found: Mapping[tuple[str, ...], Sequence[Mapping[str, Any]]],
    plan: Plan,
) -> SettingsTable:
    ranges = list(plan.levels), list(plan.levels)[:_N_LOW]
    n_values = tuple(len(values) for values in FACTORS.values())
    first = next(iter(found.values()))
    # (n_texts, 2, 2, 2, 2, 2), in the order of FACTORS: the mean uniqueness over the levels.
    values = np.full((len(first), *n_values), np.nan)
    for setting, rows in found.items():
        at = tuple(FACTORS[n].index(v) for n, v in zip(list(FACTORS)[:4], setting, strict=True))
        for place, row in enumerate(rows):
            if row["creativity_index"] is None:
                continue
            for k, levels in enumerate(ranges):
                some = [row["uniqueness"][str(level)] for level in levels]
                values[(place, *at, k)] = math.fsum(some) / len(some)
    known = np.isfinite(values).reshape(len(first), -1).all(axis=1)
    rows = [row for row, has_all in zip(first, known, strict=True) if has_all]
    is_human = np.array([str(row[plan.label.field]) == plan.label.human for row in rows], np.bool_)
    if not is_human.any() or is_human.all():
        raise InputError(f"{texts}: no text by people, or none by machines, has all settings")
    clusters = [str(row[CLUSTER]) for row in rows]
    return _analysed(
        texts,
        reference,
        values[known],
        is_human,
        clusters,
        int((~known).sum()),
        tuple(dict.fromkeys(str(rows[0]["signature"]) for rows in found.values())),
    )


def _analysed(
    texts: str,
    reference: str,
    values: NDArray[np.float64],
    is_human: NDArray[np.bool_],
    clusters: Sequence[str],
    n_missing: int,
    signatures: tuple[str, ...],
) -> SettingsTable:
    """values: float64 (n_texts, 2, 2, 2, 2, 2)."""
    centre, n_settings = values.mean(), values[0].size
    total = float(((values - centre) ** 2).sum()) or math.nan
    own = values.reshape(len(values), -1).mean(axis=1)
    side = np.where(is_human, own[is_human].mean(), own[~is_human].mean())
    above, areas = _contrasts(values, is_human, clusters)
    effects, shares = [], 0.0
    for axis, (name, options) in enumerate(FACTORS.items(), 1):
        others = tuple(k for k in range(1, values.ndim) if k != axis)
        by_text = values.mean(axis=others)  # (n_texts, 2)
        means = by_text.mean(axis=0)
        of_side = np.where(
            is_human[:, None], by_text[is_human].mean(axis=0), by_text[~is_human].mean(axis=0)
        )
        each = n_settings / 2
        share = float(each * len(values) * ((means - centre) ** 2).sum() / total)
        apart = of_side - side[:, None] - means + centre
        share_apart = float(each * (apart**2).sum() / total)
        shares += share + share_apart
        rest = tuple(k - 1 for k in others)
        effects.append(
            SettingEffect(
                name,
                options,
                (float(means[0]), float(means[1])),
                _both(above.mean(axis=rest)),
                (float(areas.mean(axis=rest)[0]), float(areas.mean(axis=rest)[1])),
                share,
                share_apart,
            )
        )
    share_sides = float(n_settings * ((side - centre) ** 2).sum() / total)
    share_texts = float(n_settings * ((own - side) ** 2).sum() / total)
    return SettingsTable(
        texts,
        reference,
        len(values),
        n_missing,
        tuple(effects),
        share_sides,
        share_texts,
        1 - shares - share_sides - share_texts,
        signatures,
    )


def _contrasts(
    values: NDArray[np.float64], is_human: NDArray[np.bool_], clusters: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """People above machines in percent, over the clusters that both have, and the AUROC, under each
    combination: float64 (2, 2, 2, 2, 2), both; NaN if no cluster has both."""
    cells: dict[str, tuple[list[int], list[int]]] = {}
    for place, name in enumerate(clusters):
        cells.setdefault(name, ([], []))[0 if is_human[place] else 1].append(place)
    shared = [sides for sides in cells.values() if all(sides)]
    areas = np.apply_along_axis(lambda scores: auroc(scores, is_human), 0, values)
    if not shared:
        return np.full(areas.shape, np.nan), areas
    people, machines = (
        np.mean([values[sides[k]].mean(axis=0) for sides in shared], axis=0) for k in (0, 1)
    )
    above: NDArray[np.float64] = 100 * (people - machines) / machines
    return above, areas


def _both(values: NDArray[np.float64]) -> tuple[float | None, float | None]:
    first, second = (float(v) if math.isfinite(v) else None for v in values)
    return first, second
