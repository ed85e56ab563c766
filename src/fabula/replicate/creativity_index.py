"""The analyses of "AI as Humanity's Salieri", on the texts and references at hand.

Lu et al. 2024, section "Evaluation": the Creativity Index of people and models, by verbatim and by
near matches too (Figure 3a to 3d); L-uniqueness against L (3e); the spread of matches over
documents (3h to 3j); and machine-text detection (3n). The paper's reference is RedPajama, 900
million web documents; here it is what the user has, so what can agree is which group stands above
which, not the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from fabula.errors import InputError
from fabula.measures.comparison import Comparison, compare_scores
from fabula.measures.detection import Calibration
from fabula.measures.exclusion import ExcludeSame
from fabula.measures.near import NearSearch, NearSettings
from fabula.measures.originality import OriginalityMeasure
from fabula.measures.probability import ProbabilityMeasure
from fabula.measures.scores import ScoreRun, probability_row, to_row
from fabula.measures.uniqueness import Levels
from fabula.measures.verdicts import Label, calibrate_files
from fabula.models.likelihood import LikelihoodModel
from fabula.models.vectors import WordVectors, open_vectors
from fabula.reference import Reference
from fabula.reference.build import build_reference
from fabula.reference.layout import Manifest, text_digest
from fabula.reference.passages import PassageIndex, PassageSettings, build_passages
from fabula.stats.compare import Difference, compare_means, holm
from fabula.store import read_rows
from fabula.text import TextSettings, read_documents
from fabula.text.stopwords import load_stop_words
from fabula.types import Document

__all__ = ["Analyses", "Plan", "Scored", "Spread", "cut_texts", "default_plan", "run_analyses"]

Match = Literal["verbatim", "near"]
MATCHES: tuple[Match, ...] = ("verbatim", "near")
PAPER = {
    "verbatim": 52.2,
    "near": 102.5,
    "human_uniqueness_50": 0.566,
    "machine_uniqueness_50": 0.328,
    "human_to_half": 41.2,
    "machine_to_half": 13.4,
}
"""Novels, people against models: percentage difference of the index by verbatim matches and with
near ones; 5-uniqueness over the best 50 documents, and documents to push it below a half."""

_TEXTS = ("hanna_writingprompts", "fastdetect_writing")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is compared with what. The defaults follow appendix B."""

    texts: Mapping[str, Sequence[Document]]
    """By name of the set: a row's `label` field tells people from machines."""
    references: Mapping[str, Sequence[Document] | Path]
    """By name: a corpus that was built, or documents to build one of."""
    label: Label
    by: str = "model"
    group: str = "pair_id"
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
    groups: Comparison
    """By author or model."""
    above: dict[str, tuple[Difference, float | None]]
    """By group of machines: people against it, with Holm's p over the groups."""
    people: Comparison
    """People against all machines together."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How uniqueness falls over documents, people beside machines."""

    texts: str
    reference: str
    match: Match
    n: dict[str, int]
    curves: dict[str, list[float]]
    """Mean uniqueness after 0, 1, 2, ... documents, by `human` and `machine`."""
    difference: Difference
    """People against machines, after the last document."""
    to_half: dict[str, tuple[float | None, int, int]]
    """Mean documents to push it below a half, of how many texts that can be, of how many in all."""
    signature: str


@dataclass(frozen=True, slots=True)
class Analyses:
    """All that was found."""

    scored: tuple[Scored, ...]
    spreads: tuple[Spread, ...]
    detectors: tuple[tuple[str, str, Calibration], ...]
    """(texts, what the score is against, how well it tells)."""


def default_plan(data: Path, n_words: int = 256) -> Plan:
    """Human and machine stories against classics, against machine texts of other prompts, and both.

    Texts are cut to their first `n_words` words, the paper's 256 (appendix B.2), and what a pair
    has in common is dropped, so that neither length nor prompt tells them apart.
    """
    folder = data / "human_vs_machine"
    missing = [n for n in _TEXTS if not (folder / f"{n}.jsonl").is_file()]
    books = data / "reference"
    if missing or not books.is_dir():
        raise InputError(
            f"{data}: lacks human_vs_machine/ or reference/; name your own with --texts and "
            f"--reference"
        )
    texts = {name: cut_texts(folder / f"{name}.jsonl", n_words) for name in _TEXTS}
    classics = list(read_documents([str(books)]))
    machines = [
        replace(d, id=f"machine-{d.id}")
        for name in _TEXTS
        for d in cut_texts(folder / f"{name}.jsonl", None)
        if d.meta["label"] == "machine"
    ]
    return Plan(
        texts=texts,
        references={
            "classics": classics,
            "machine": machines,
            "both": [*classics, *machines],
        },
        label=Label("label", "human"),
    )


def cut_texts(path: Path, n_words: int | None) -> list[Document]:
    """The texts of a file, without what a pair shares, cut to their first `n_words` words."""
    found = []
    for document in read_documents([str(path)]):
        shared = int(document.meta.get("shared_prefix_chars") or 0)
        text = document.text[shared:]
        words = TextSettings().locate(text)
        if n_words is not None and len(words.words) > n_words:
            text = text[: int(words.ends[n_words - 1])]
        meta = {**document.meta, "model": document.meta.get("model") or "human"}
        found.append(replace(document, text=text, meta=meta))
    return found


def run_analyses(
    plan: Plan, out: Path, *, report: Callable[[str], None] = lambda stage: None
) -> Analyses:
    """Build, score, compare and calibrate; every step goes on where it was interrupted."""
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
        # A machine's text is in the reference of machine texts; those of its prompt are left out.
        same = ExcludeSame.of(reference, plan.group) if _has_field(reference, plan.group) else None
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
            for name, texts in plan.texts.items():
                report(f"{name} against {reference_name}, {match}")
                file = out / "scores" / f"{name}-{reference_name}-{match}.jsonl"
                for _ in ScoreRun(measure, to_row, file).rows(texts):
                    pass
                scored.append(_compare(name, reference_name, match, file, plan))
                (found,) = calibrate_files(
                    [file], plan.label, group=plan.group, scores=["creativity_index"],
                    seed=plan.seed,
                )  # fmt: skip
                detectors.append((name, f"{reference_name}, {match}", found))
    detectors += _comparators(plan, out, report)
    spreads = [_spread(one, plan) for one in scored]
    return Analyses(tuple(scored), tuple(s for s in spreads if s is not None), tuple(detectors))


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


def _has_field(reference: Reference, field: str) -> bool:
    return any(field in reference.document(number).meta for number in reference.numbers())


def _compare(name: str, reference: str, match: Match, path: Path, plan: Plan) -> Scored:
    groups = compare_scores([path], by=plan.by, seed=plan.seed)
    people = next((g for g in groups.groups if g.name == plan.label.human), None)
    others = [g for g in groups.groups if people is not None and g is not people]
    differences = [
        compare_means(people.values, g.values, seed=plan.seed, signature=groups.signature)
        for g in others
        if people is not None
    ]
    corrected = holm([difference.p for difference in differences])
    found = zip(others, differences, corrected, strict=True)
    above = {group.name: (difference, p) for group, difference, p in found}
    both = compare_scores([path], by=plan.label.field, seed=plan.seed)
    return Scored(name, reference, match, path, groups, above, both)


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
        calibrations = calibrate_files([file], plan.label, group=plan.group, seed=plan.seed)
        found += [(name, "a language model", calibration) for calibration in calibrations]
    return found


def _spread(scored: Scored, plan: Plan) -> Spread | None:
    """People beside machines over the number of documents; None where a side has no texts."""
    curves: dict[str, list[list[float]]] = {"human": [], "machine": []}
    halves: dict[str, list[int | None]] = {"human": [], "machine": []}
    signature = ""
    for row in read_rows(scored.path):
        spread: dict[str, Any] | None = row.get("spread")
        if spread is None:
            continue
        signature = row["signature"]
        side = "human" if str(row[plan.label.field]) == plan.label.human else "machine"
        left = spread["uniqueness"]
        curves[side].append(left + left[-1:] * (plan.spread + 1 - len(left)))
        halves[side].append(spread["n_to_half"])
    if not (curves["human"] and curves["machine"]):
        return None
    return Spread(
        texts=scored.texts,
        reference=scored.reference,
        match=scored.match,
        n={side: len(rows) for side, rows in curves.items()},
        curves={
            side: [math.fsum(column) / len(column) for column in zip(*rows, strict=True)]
            for side, rows in curves.items()
        },
        difference=compare_means(
            *([row[-1] for row in curves[side]] for side in ("human", "machine")),
            seed=plan.seed,
            signature=signature,
        ),
        to_half={side: _mean_known(values) for side, values in halves.items()},
        signature=signature,
    )


def _mean_known(values: Sequence[int | None]) -> tuple[float | None, int, int]:
    known = [value for value in values if value is not None]
    return (math.fsum(known) / len(known) if known else None), len(known), len(values)
