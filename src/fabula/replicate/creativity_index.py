"""The analyses of "AI as Humanity's Salieri", on the texts and references at hand.

Lu et al. 2024, section "Evaluation": the Creativity Index of people and models, by verbatim and by
near matches too (Figure 3a to 3d); L-uniqueness against L (3e); the spread of matches over
documents (3h to 3j); and machine-text detection (3n). The paper's reference is RedPajama, 900
million web documents; here it is what the user has, so what can agree is which group stands above
which, not the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from fabula.errors import InputError
from fabula.measures.comparison import Comparison, compare_scores, difference
from fabula.measures.detection import Calibration
from fabula.measures.exclusion import ExcludeSame, own_field
from fabula.measures.near import NearSearch, NearSettings
from fabula.measures.originality import OriginalityMeasure
from fabula.measures.probability import ProbabilityMeasure
from fabula.measures.scores import COPIED_SHARE, ScoreRun, probability_row, to_row
from fabula.measures.uniqueness import Levels
from fabula.measures.verdicts import Label, calibrate_files
from fabula.models.likelihood import LikelihoodModel
from fabula.models.vectors import WordVectors, open_vectors
from fabula.reference import Reference
from fabula.reference.build import build_reference
from fabula.reference.layout import Manifest, text_digest
from fabula.reference.passages import PassageIndex, PassageSettings, build_passages
from fabula.replicate.claims import Claim, claims_of
from fabula.replicate.creativity_index_texts import CLUSTER, Texts, field_of, made_of, read_set
from fabula.stats.clustered import compare_clusters
from fabula.stats.compare import Difference, holm
from fabula.store import read_rows
from fabula.text import TextSettings, read_documents
from fabula.text.stopwords import load_stop_words
from fabula.types import Document

__all__ = [
    "Analyses",
    "Plan",
    "Scored",
    "Spread",
    "default_plan",
    "grouped",
    "run_analyses",
]

Match = Literal["verbatim", "near"]
MATCHES: tuple[Match, ...] = ("verbatim", "near")

_TEXTS = ("hanna_writingprompts", "fastdetect_writing")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is compared with what. The defaults follow appendix B."""

    texts: Mapping[str, Sequence[Document]]
    """By name of the set, as `read_set` reads it; the `label` tells people from machines."""
    references: Mapping[str, Sequence[Document] | Path]
    """By name: a corpus that was built, or documents to build one of."""
    label: Label
    by: str = "model"
    cluster: str | None = None
    """The field that clusters were read by; the usual ones, where it is None."""
    levels: Levels = Levels(5, 12)
    spread: int = 50
    model: str | None = "local"
    """Whose log-probabilities are compared; None for none."""
    near: NearSettings = NearSettings()
    seed: int = 0
    n_threads: int = 1


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of one set against one reference by one kind of match."""

    texts: str
    reference: str
    match: Match
    path: Path
    n_copied: int
    """Texts of which half or more stands in the reference."""
    groups: Comparison
    """By author or model; a group's n counts clusters."""
    above: dict[str, tuple[Difference, float | None]]
    """By group of machines: people against it, with Holm's p over the groups."""
    people: Comparison
    """People against all machines together."""

    def people_above(self, human: str) -> float | None:
        """In percent; None where machines are several groups, or none."""
        if len(self.people.pairs) != 1:
            return None
        (pair,) = self.people.pairs
        percent = pair.difference.percent.value
        if percent is None or pair.a == human:
            return percent
        return -100 * percent / (100 + percent)


@dataclass(frozen=True, slots=True)
class Spread:
    """How uniqueness falls over documents, people beside machines."""

    texts: str
    reference: str
    match: Match
    n: dict[str, int]
    """Clusters that have texts by people, and by machines."""
    curves: dict[str, list[float]]
    """Mean uniqueness after 0, 1, 2, ... documents, by `human` and `machine`."""
    difference: Difference
    """People against machines, after the last document."""
    to_half: dict[str, tuple[float | None, int, int]]
    """Mean documents to push it below a half, of how many texts that can be, of how many in all."""
    level: int
    signature: str

    def as_printed(self) -> dict[str, float | None]:
        """The numbers of Figure 3h; none where another level or number of documents was asked."""
        if self.level != 5 or len(self.curves["human"]) != 51:
            return {}
        left = {f"{side}_uniqueness_50": curve[-1] for side, curve in self.curves.items()}
        return left | {f"{side}_to_half": mean for side, (mean, *_) in self.to_half.items()}


@dataclass(frozen=True, slots=True)
class Analyses:
    """All that was found."""

    texts: Mapping[str, Texts]
    scored: tuple[Scored, ...]
    spreads: tuple[Spread, ...]
    detectors: tuple[tuple[str, str, Calibration], ...]
    """(texts, what the score is against, how well it tells)."""
    human: str
    """The label of people."""

    @property
    def claims(self) -> list[Claim]:
        """Figures 3d and 3h, for each set and reference; 3h with near matches, as in the paper."""
        found: list[Claim] = []
        for by, scored in grouped(self.scored):
            numbers = {("novels", str(one.match)): one.people_above(self.human) for one in scored}
            for spread in self.spreads:
                if (spread.texts, spread.reference, spread.match) == (*by, "near"):
                    numbers |= {("novels", name): n for name, n in spread.as_printed().items()}
            found += claims_of(
                "creativity_index",
                ["Figure 3d", "Figure 3h"],
                numbers,
                missing="people and one group of machines in no cluster, not 5-uniqueness over 50 "
                "documents, or no text that falls below a half",
                why="Other texts (the paper's are novels), and another reference than RedPajama: "
                "what can agree is which side stands above.",
                by=", against ".join(by),
            )
        return found


G = TypeVar("G", Scored, Spread)


def grouped(items: Iterable[G]) -> list[tuple[tuple[str, str], list[G]]]:
    """By texts and reference, in the order they come."""
    found: dict[tuple[str, str], list[G]] = {}
    for item in items:
        found.setdefault((item.texts, item.reference), []).append(item)
    return list(found.items())


def default_plan(data: Path, n_words: int = 256, cluster: str | None = None) -> Plan:
    """Human and machine stories against classics, against machine texts of other prompts, and both.

    Texts are cut to their first `n_words` words, the paper's 256 (appendix B.2), and what a pair
    has in common is dropped, so that neither length nor prompt tells them apart.
    """
    folder = data / "human_vs_machine"
    missing = [n for n in _TEXTS if not (folder / f"{n}.jsonl").is_file()]
    books = data / "reference"
    if missing or not books.is_dir():
        raise InputError(
            f"{data}: lacks human_vs_machine/ or reference/; name your own with `texts` and "
            f"`references`"
        )
    label = Label("label", "human")
    paths = {name: folder / f"{name}.jsonl" for name in _TEXTS}
    classics = list(read_documents([str(books)]))
    machines = [
        replace(d, id=f"machine-{d.id}")
        for path in paths.values()
        for d in read_set(path, None, label, cluster)
        if d.meta["label"] == "machine"
    ]
    return Plan(
        texts={name: read_set(path, n_words, label, cluster) for name, path in paths.items()},
        references={
            "classics": classics,
            "machine": machines,
            "both": [*classics, *machines],
        },
        label=label,
    )


def run_analyses(
    plan: Plan, out: Path, *, report: Callable[[str], None] = lambda stage: None
) -> Analyses:
    """Build, score, compare and calibrate; every step resumes where it was interrupted."""
    for name, texts in plan.texts.items():
        if len({text_digest(d.text) for d in texts}) < 2:
            raise InputError(f"{name}: holds fewer than two different texts")
    scored: list[Scored] = []
    detectors: list[tuple[str, str, Calibration]] = []
    vectors: WordVectors | None = None
    for reference_name, source in plan.references.items():
        path = _build(source, out / "references" / reference_name, plan, report)
        reference = Reference.open(path)
        report("loading word vectors")
        vectors = vectors or open_vectors()
        near = _near(path, reference, vectors, plan, report)
        for name, texts in plan.texts.items():
            same = _same(reference, texts, plan)
            for match in MATCHES:
                measure = OriginalityMeasure(
                    reference,
                    levels=plan.levels,
                    exclude_same=same,
                    near=near if match == "near" else None,
                    n_sources=0,
                    spread=plan.spread,
                    n_threads=plan.n_threads,
                )
                report(f"{name} against {reference_name}, {match}")
                file = out / "scores" / f"{name}-{reference_name}-{match}.jsonl"
                for _ in ScoreRun(measure, to_row, file).rows(texts):
                    pass
                scored.append(_compare(name, reference_name, match, file, plan))
                (found,) = calibrate_files(
                    [file],
                    plan.label,
                    cluster=CLUSTER,
                    scores=["creativity_index"],
                    seed=plan.seed,
                )
                detectors.append((name, f"{reference_name}, {match}", found))
    detectors += _comparators(plan, out, report)
    spreads = [_spread(one, plan) for one in scored]
    return Analyses(
        {name: made_of(texts, plan.label, plan.cluster) for name, texts in plan.texts.items()},
        tuple(scored),
        tuple(s for s in spreads if s is not None),
        tuple(detectors),
        plan.label.human,
    )


def _same(reference: Reference, texts: Sequence[Document], plan: Plan) -> ExcludeSame | None:
    """A machine's text may stand in the reference; those of a text's cluster are left out for it.

    Clusters are known of the texts; the reference's documents have the field that they are made of.
    """
    field = field_of(texts, plan.cluster)
    documents = reference.documents(reference.numbers())
    if field is None or all(own_field(document, field) is None for document in documents):
        return None
    joined = {
        value: str(document.meta[CLUSTER])
        for document in texts
        if (value := own_field(document, field)) is not None
    }
    return ExcludeSame.of(reference, field, joined)


def _build(
    source: Sequence[Document] | Path, path: Path, plan: Plan, report: Callable[[str], None]
) -> Path:
    if isinstance(source, Path):
        return source
    report(f"building the reference {path.name}")
    build_reference(source, path, settings=TextSettings(), n_jobs=plan.n_threads)
    return path


def _near(
    path: Path,
    reference: Reference,
    vectors: WordVectors,
    plan: Plan,
    report: Callable[[str], None],
) -> NearSearch:
    settings, stop_words = PassageSettings(), load_stop_words()
    build_passages(path, Manifest.read(path).shards, settings, stop_words, report)
    return NearSearch(PassageIndex(reference, settings, stop_words), vectors, plan.near)


def _compare(name: str, reference: str, match: Match, path: Path, plan: Plan) -> Scored:
    groups = compare_scores([path], by=plan.by, cluster=CLUSTER, seed=plan.seed)
    people = next((g for g in groups.groups if g.name == plan.label.human), None)
    others = [g for g in groups.groups if people is not None and g is not people]
    differences = [
        difference(people, g, seed=plan.seed, signature=groups.signature)
        for g in others
        if people is not None
    ]
    corrected = holm([one.p for one in differences])
    found = zip(others, differences, corrected, strict=True)
    above = {group.name: (one, p) for group, one, p in found}
    both = compare_scores([path], by=plan.label.field, cluster=CLUSTER, seed=plan.seed)
    n_copied = sum((row["in_reference"] or 0) >= COPIED_SHARE for row in read_rows(path))
    return Scored(name, reference, match, path, n_copied, groups, above, both)


def _comparators(
    plan: Plan, out: Path, report: Callable[[str], None]
) -> list[tuple[str, str, Calibration]]:
    """What a language model's probabilities tell of the same texts."""
    if plan.model is None:
        return []
    measure = ProbabilityMeasure(LikelihoodModel(plan.model))
    found = []
    for name, texts in plan.texts.items():
        file = out / "scores" / f"{name}-probability.jsonl"
        for k, _ in enumerate(ScoreRun(measure, probability_row, file).rows(texts), 1):
            report(f"{name}: log-probabilities, {k:,} of {len(texts):,} texts")
        calibrations = calibrate_files([file], plan.label, cluster=CLUSTER, seed=plan.seed)
        found += [(name, "a language model", calibration) for calibration in calibrations]
    return found


def _spread(scored: Scored, plan: Plan) -> Spread | None:
    """People beside machines over the number of documents; None where a side has no texts.

    A cluster's texts of one side count as one, by their mean.
    """
    curves: dict[str, dict[str, list[list[float]]]] = {"human": {}, "machine": {}}
    halves: dict[str, list[int | None]] = {"human": [], "machine": []}
    signature = ""
    for row in read_rows(scored.path):
        spread: dict[str, Any] | None = row.get("spread")
        if spread is None:
            continue
        signature = row["signature"]
        side = "human" if str(row[plan.label.field]) == plan.label.human else "machine"
        left = spread["uniqueness"]
        curve = left + left[-1:] * (plan.spread + 1 - len(left))
        curves[side].setdefault(row[CLUSTER], []).append(curve)
        halves[side].append(spread["n_to_half"])
    if not (curves["human"] and curves["machine"]):
        return None
    means = {
        side: {name: _mean_curve(found[name]) for name in sorted(found)}
        for side, found in curves.items()
    }
    return Spread(
        texts=scored.texts,
        reference=scored.reference,
        match=scored.match,
        n={side: len(rows) for side, rows in means.items()},
        curves={side: _mean_curve(list(rows.values())) for side, rows in means.items()},
        difference=compare_clusters(
            *({name: row[-1] for name, row in means[s].items()} for s in ("human", "machine")),
            seed=plan.seed,
            signature=signature,
        ),
        to_half={side: _mean_known(values) for side, values in halves.items()},
        level=plan.levels.low,
        signature=signature,
    )


def _mean_curve(curves: Sequence[Sequence[float]]) -> list[float]:
    return [math.fsum(column) / len(column) for column in zip(*curves, strict=True)]


def _mean_known(values: Sequence[int | None]) -> tuple[float | None, int, int]:
    known = [value for value in values if value is not None]
    return (math.fsum(known) / len(known) if known else None), len(known), len(values)
