"""Compare all systems in all metrics, with pairwise tests.

Roemmele, Gordon and Swanson 2017, section 5 and Table 2. The paper's tests treat the systems' texts
as independent samples; here tests are paired, since all systems continue the same passages, and
passages of one chapter count as one unit, since they are correlated.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabula.core.errors import InputError, MixError
from fabula.core.types import Contrast, Estimate, Signature
from fabula.linguistic.lexis import MATTR_WINDOW, MTLD_THRESHOLD, mattr, mtld, trigrams
from fabula.linguistic.metrics import METRICS, Metric
from fabula.stats.paired import Design, Tokens, compare_pairs, mean_estimates, ratio_estimate
from fabula.stats.resampling import N_PERMUTATIONS, Units

ADDITIONS = (
    Metric("mattr", 16, f"MATTR, window {MATTR_WINDOW}", is_of_all=True),
    Metric("mtld", 17, f"MTLD, threshold {MTLD_THRESHOLD}", is_of_all=True, n_digits=1),
)
"""Beyond the paper: type-token ratios that do not depend on length. Not tested."""

_WORDS, _TRIGRAMS = "type_token_ratio", "unique_trigram_ratio"


@dataclass(frozen=True, slots=True)
class Cell:
    """A system's value in a metric, and its continuations without a value, by reason."""

    estimate: Estimate
    missing: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SystemTable:
    """Table 2: every metric of every system, and every pair of systems compared in it."""

    systems: tuple[str, ...]
    n_items: Mapping[str, int]
    """Texts that each system produced."""
    n_passages: int
    n_clusters: int
    """Chapters of these passages, or the passages where chapters are unknown: the units of
    intervals and tests."""
    unit: str
    """The kind of unit: `chapters` or `passages`."""
    metrics: tuple[Metric, ...]
    cells: Mapping[tuple[str, str], Cell]
    """By metric and system."""
    tests: tuple[Contrast, ...]
    level: float
    correction: str
    """`bonferroni` or `holm`: the corrected p-value that the marks use."""
    controls: tuple[str, ...]
    """Systems that serve as baselines: their pairs are corrected separately."""
    n_permutations: int
    signature: str

    @property
    def least_p(self) -> float:
        """The smallest corrected p-value possible with this many clusters and permutations."""
        known = (test.details["least"] for test in self.tests)
        return min((least for least in known if least is not None), default=0.0)

    def beats(self, metric: str, a: str, b: str) -> bool:
        """Whether A's value is above B's, at the corrected level."""
        for test in self.tests:
            if test.number == metric and {test.a, test.b} == {a, b}:
                p = test.p_adjusted if self.correction == "holm" else test.details["p_bonferroni"]
                difference = test.difference.value
                if p is None or difference is None or p > self.level:
                    return False
                return difference > 0 if test.a == a else difference < 0
        return False

    def to_json(self) -> dict[str, Any]:
        return {
            "signature": self.signature,
            "n_passages": self.n_passages,
            "n_clusters": self.n_clusters,
            "unit": self.unit,
            "controls": list(self.controls),
            "n_permutations": self.n_permutations,
            "level": self.level,
            "correction": self.correction,
            "systems": dict(self.n_items),
            "metrics": [
                {
                    "id": metric.id,
                    "number": metric.number,
                    "title": metric.title,
                    "values": {
                        system: {**c.estimate.ends(), "n": c.estimate.n, "missing": dict(c.missing)}
                        for system in self.systems
                        for c in (self.cells[metric.id, system],)
                    },
                    "contrasts": [t.to_json() for t in self.tests if t.number == metric.id],
                }
                for metric in self.metrics
            ],
        }


def compare_systems(
    rows: Iterable[Mapping[str, Any]],
    order: Sequence[str] = (),
    *,
    vocabulary: frozenset[str] | None = None,
    controls: Collection[str] = (),
    design: Design = "paired",
    n_permutations: int = N_PERMUTATIONS,
    level: float = 0.05,
    correction: str = "bonferroni",
    seed: int = 0,
) -> SystemTable:
    """The table of scored continuations, the rows of `scoring.score_rows`, systems in `order`.

    With a vocabulary, type-token ratio and unique trigram ratio count only its words (section 4.1).
    Pairs with one of `controls` are corrected separately. A `two-sample` design treats passages
    and systems as independent, as the paper does; intervals are the same in both. Raises
    `MixError` if rows were measured in different ways.
    """
    by_system, passages, signature = _by_system(rows)
    systems = tuple(sorted(by_system, key=lambda s: order.index(s) if s in order else len(order)))
    aligned = {system: [by_system[system].get(name) for name in passages] for system in systems}
    means = {  # By passage, NaN where a system has none.
        metric.id: {
            system: np.array([row and row["values"][metric.id] for row in rows], np.float64)
            for system, rows in aligned.items()
        }
        for metric in METRICS
        if not metric.is_of_all
    }
    ratios = _ratios(aligned, vocabulary)
    # A passage whose chapter is unknown is a unit by itself.
    names = [("passage", p) if c is None else ("chapter", c) for p, c in passages.items()]
    units = Units.by(names)
    unit = "chapters" if any(kind == "chapter" for kind, _ in names) else "passages"
    vocab = "all"
    if vocabulary is not None:
        digest = hashlib.sha256("\n".join(sorted(vocabulary)).encode()).hexdigest()[:8]
        vocab = f"{len(vocabulary)}@{digest}"
    baselines = tuple(system for system in systems if system in controls)
    full = Signature(
        signature.name,
        (
            *signature.parts,
            ("vocab", vocab),
            ("test", f"permutation,{design},{n_permutations},{correction}-{level:g}"),
            ("ci", "95,paired"),
            ("units", f"{units.n}-{unit}"),
            ("controls", "+".join(sorted(s.replace("|", "/") for s in baselines)) or "none"),
            ("seed", str(seed)),
        ),
    )
    tests = compare_pairs(
        means,
        ratios,
        clusters=units.of,
        controls=controls,
        design=design,
        seed=seed,
        n_permutations=n_permutations,
        signature=str(full),
    )
    return SystemTable(
        systems=systems,
        n_items={
            s: sum(r["missing"].get("sentence_length") != "no_text" for r in by_system[s].values())
            for s in systems
        },
        n_passages=len(passages),
        n_clusters=units.n,
        unit=unit,
        metrics=(*METRICS, *ADDITIONS),
        cells=dict(_cells(aligned, means, ratios, units.of, str(full))),
        tests=tuple(tests),
        level=level,
        correction=correction,
        controls=baselines,
        n_permutations=n_permutations,
        signature=str(full),
    )


def _by_system(
    rows: Iterable[Mapping[str, Any]],
) -> tuple[dict[str, dict[str, Mapping[str, Any]]], dict[str, str | None], Signature]:
    """Rows by system and passage, the chapter of each passage, and how all were measured."""
    by_system: dict[str, dict[str, Mapping[str, Any]]] = {}
    passages: dict[str, str | None] = {}
    signature: Signature | None = None
    for row in rows:
        parsed = Signature.parse(str(row.get("signature", "")))
        signature = signature or parsed
        if differences := signature.differences(parsed):
            raise MixError(
                f"continuations were not all measured in the same way ({'; '.join(differences)}); "
                "score all with the same settings"
            )
        passages.setdefault(row["id"], row.get("chapter"))
        by_system.setdefault(row["system"], {})[row["id"]] = row
    if signature is None:
        raise InputError("no continuations to compare")
    return by_system, passages, signature


_Aligned = Mapping[str, Sequence[Mapping[str, Any] | None]]


def _ratios(aligned: _Aligned, vocabulary: frozenset[str] | None) -> dict[str, dict[str, Tokens]]:
    """The words and trigrams of each system, by passage, as numbers that all systems share."""
    numbers: dict[Any, int] = {}
    ratios: dict[str, dict[str, Tokens]] = {_WORDS: {}, _TRIGRAMS: {}}
    for system, rows in aligned.items():
        types: dict[str, list[int]] = {_WORDS: [], _TRIGRAMS: []}
        ends: dict[str, list[int]] = {_WORDS: [], _TRIGRAMS: []}
        for row in rows:
            words = [] if row is None else _words_of(row)
            bounds = itertools.pairwise([0, *([] if row is None else row["sentence_ends"])])
            threes = [three for start, end in bounds for three in trigrams(words[start:end])]
            if vocabulary is not None:
                words = [word for word in words if word in vocabulary]
                threes = [three for three in threes if vocabulary.issuperset(three)]
            for name, tokens in ((_WORDS, words), (_TRIGRAMS, threes)):
                types[name] += [numbers.setdefault(token, len(numbers)) for token in tokens]
                ends[name].append(len(types[name]))
        for name in ratios:
            numbered = (np.array(by_name[name], np.int64) for by_name in (types, ends))
            ratios[name][system] = Tokens(*numbered)
    return ratios


def _words_of(row: Mapping[str, Any]) -> list[str]:
    words: list[str] = row["words"].split(" ") if row["words"] else []
    return words


def _cells(
    aligned: _Aligned,
    means: Mapping[str, Mapping[str, NDArray[np.float64]]],
    ratios: Mapping[str, Mapping[str, Tokens]],
    clusters: NDArray[np.int64],
    signature: str,
) -> Iterator[tuple[tuple[str, str], Cell]]:
    estimates = mean_estimates(means, clusters=clusters, signature=signature)
    for system, rows in aligned.items():
        known = [row for row in rows if row is not None]
        for metric in means:
            why = Counter[str](row["missing"][metric] for row in known if metric in row["missing"])
            yield (metric, system), Cell(estimates[metric, system], dict(why))
        for metric in ratios:
            estimate = ratio_estimate(ratios[metric][system], signature, clusters=clusters)
            has_tokens = ratios[metric][system].lengths() > 0
            without = [row for row, has in zip(rows, has_tokens, strict=True) if row and not has]
            why = Counter()
            for row in without:
                bounds = itertools.pairwise([0, *row["sentence_ends"]])
                if not row["words"]:
                    why[str(row["missing"].get("grammaticality", "no_words"))] += 1
                elif metric == _TRIGRAMS and max(b - a for a, b in bounds) < 3:
                    why["no_trigram"] += 1
                else:
                    why["no_token"] += 1
            yield (metric, system), Cell(estimate, dict(why))
        words = [word for row in known for word in _words_of(row)]
        for metric, value in (("mattr", mattr(words)), ("mtld", mtld(words))):
            estimate = Estimate(value, None, None, len(words), "over all words", signature)
            yield (metric, system), Cell(estimate, {} if value else {"too_short": len(known)})
