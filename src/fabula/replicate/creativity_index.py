"""The analyses of "AI as Humanity's Salieri", on the available texts and references.

Lu et al. 2024, section "Evaluation": the Creativity Index of people and models, by verbatim and by
near matches (Figure 3a to 3d); L-uniqueness against L (3e), including models before and after
alignment (3f, 3g); the spread of matches over documents (3h to 3j); and machine-text detection
(3n). The texts are the authors' own (`creativity_index_release`) or others. The paper's reference
is RedPajama, 900 million web documents; here the user's, so only the ranking of groups can agree.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from fabula.core.errors import InputError
from fabula.core.store import located_rows, read_rows, text_digest, write_rows
from fabula.core.types import Contrast, Document, Estimate, Signature
from fabula.groups.comparison import (
    INDEX,
    ComparedGroup,
    Comparison,
    MeasuredTexts,
    compare_all,
    compare_groups,
    contrast,
)
from fabula.groups.tables import save_comparison
from fabula.jobs.result import picked
from fabula.models.surprisal import SurprisalModel
from fabula.models.vectors import WordVectors, open_vectors
from fabula.novelty.detector import Calibration, Label, calibrate_rows, calibration_row
from fabula.novelty.measure import ExcludeSame, Levels, OriginalityMeasure
from fabula.novelty.near import PaperSearch
from fabula.novelty.scores import COPIED_SHARE, ProbabilityMeasure, probability_row, run_measure
from fabula.novelty.tables import NAMES, SHORT, calibration_remarks, save_rocs
from fabula.reference.build import build_reference
from fabula.reference.exclude import CopyRule
from fabula.reference.search import Reference
from fabula.replicate.creativity_index_release import read_outputs, read_release
from fabula.replicate.tables import Claim, agreement_lines, claims_of, load_printed
from fabula.show.charts import COLOURS, LINE, SOFT, figure_of
from fabula.show.sheet import Block, Cell, Column, Sheet, number, omnibus_lines
from fabula.stats.contrasts import Omnibus, adjusted, cell_means, compare_clusters
from fabula.stats.resampling import mean_interval
from fabula.text import TextSettings, count_words, read_documents
from fabula.text.clusters import cluster_field, find_clusters, own_field, sketch_of
from fabula.text.pipeline import SENTENCES, load_pipeline
from fabula.text.sentences import first_sentences
from fabula.text.words import load_stop_words

Match = Literal["verbatim", "near"]
MATCHES: tuple[Match, ...] = ("verbatim", "near")
CLUSTER = "cluster"
"""The field of a text that names its cluster: texts of one cluster count as one, everywhere."""


@dataclass(frozen=True, slots=True)
class Texts:
    """The composition of a set of texts."""

    n_texts: int
    n_human: int
    n_clusters: int
    n_clusters_before: int
    """Before joining clusters whose texts are copies of each other."""


LEVELS, N_DOCUMENTS, N_WORDS = Levels(5, 12), 50, 256
"""Appendix B: the L that are summed, the documents over which the spread is followed, and the word
after which a text ends with its sentence."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is compared. The defaults follow appendix B."""

    texts: Mapping[str, Sequence[Document]]
    """By name of the set, as from `read_set`; the `label` tells people from machines."""
    references: Mapping[str, Sequence[Document] | Path]
    """By name: an existing corpus, or documents to build one from."""
    label: Label
    by: str = "model"
    cluster: str | None = None
    """The field that defines clusters; None for the usual ones."""
    model: str | None = "local"
    """Model whose log-probabilities are compared; None for none."""
    matches: tuple[Match, ...] = MATCHES
    exclude: CopyRule | None = None
    """Excludes from the reference, for each text, what copies or quotes it."""
    aligned: tuple[tuple[str, str], ...] = ()
    """Groups of models before and after alignment, which are compared level by level."""
    release: Path | None = None
    """The authors' folder, if these are their texts."""
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
    """Texts at least half of which is in the reference."""
    n_cleared: dict[str, int]
    """Texts for which documents that copy or quote them were excluded, by label."""
    groups: Comparison
    """By author or model; a group's n counts clusters."""
    above: dict[str, Contrast]
    """By group of machines: people compared with it, adjusted over the groups."""
    people: Comparison
    """People compared with all machines together."""
    models: Omnibus | None
    """Whether the groups of machines differ at all; None for fewer than two."""
    by_level: tuple[Contrast, ...]
    """Of L-uniqueness at each L, over the clusters that both have, with both `means`: people
    against machines and each group of these, and groups before alignment against those after."""


@dataclass(frozen=True, slots=True)
class Detector:
    """How well a score tells people from machines, all or one group of these."""

    texts: str
    against: str
    machines: str | None
    """A group; None for all."""
    calibration: Calibration


@dataclass(frozen=True, slots=True)
class Spread:
    """How uniqueness falls over documents, for people and machines."""

    texts: str
    reference: str
    match: Match
    n: dict[str, int]
    """Clusters that have texts by people, and by machines."""
    curves: dict[str, list[float]]
    """Mean uniqueness after 0, 1, 2, ... documents, by `human` and `machine`."""
    difference: Contrast
    """People against machines, after the last document."""
    to_half: dict[str, tuple[float | None, int, int]]
    """Mean documents to push it below a half, number of texts where possible, number of all."""
    level: int
    signature: str


@dataclass(frozen=True, slots=True)
class Analyses:
    """All results."""

    texts: Mapping[str, Texts]
    scored: tuple[Scored, ...]
    spreads: tuple[Spread, ...]
    detectors: tuple[Detector, ...]
    human: str
    """The label of people."""

    is_release: bool = False
    """Whether the texts are the authors' own."""

    @property
    def claims(self) -> list[Claim]:
        """The printed numbers, for each set and reference; 3h with near matches, as in the paper.

        The novels' numbers apply to texts other than the authors', whatever these are.
        """
        claims: list[Claim] = []
        for by, scored in grouped(self.scored).items():
            kind, tables = _PRINTED[scored[0].texts if self.is_release else ""]
            numbers: dict[tuple[str, str], float | None] = {}
            for entry in scored:
                # By how many percent people are above machines, if these are one group.
                for pair in entry.people.contrasts if len(entry.people.contrasts) == 1 else ():
                    above = pair.details["percent"].value
                    if above is not None and pair.a != self.human:
                        above = -100 * above / (100 + above)
                    numbers[kind, str(entry.match)] = above
                for pair in entry.by_level:
                    apart = pair.difference.value
                    at = pair.a, pair.b, pair.details["level"]
                    if at == (self.human, _OLMO, 11) and apart is not None:
                        # In percentage points.
                        numbers.setdefault((kind, f"gap_11_{entry.match}"), 100 * apart)
            for spread in grouped(self.spreads).get(by, []):
                for side, curve in spread.curves.items():
                    if spread.match == "near":  # Figure 3h
                        numbers[kind, f"{side}_uniqueness_50"] = curve[-1]
                        numbers[kind, f"{side}_to_half"] = spread.to_half[side][0]
            differs = [] if self.is_release else ["other texts (the paper's are novels)"]
            differs.append("another reference than RedPajama")
            parts = Signature.parse(scored[0].groups.signatures[INDEX]).parts
            differs += [sentence for part, sentence in _TOLD_APART.items() if part in parts]
            claims += claims_of(
                "creativity_index",
                tables,
                numbers,
                missing="not asked for, people and one group of machines in no cluster, or no "
                "text that falls below a half",
                why=f"{scored[0].texts} against {scored[0].reference} differs from the paper: "
                f"{'; '.join(differs)}. What can agree is which side stands "
                "above.",
                by=by,
            )
        return claims


_PUBLISHED = TextSettings(case="keep", punct="keep")
"""How the paper's search tells words apart."""
_TOLD_APART = {
    ("case", "fold"): "upper and lower case are the same",
    ("punct", "drop"): "punctuation does not count",
}
"""Parts of a signature by which words are told apart otherwise."""
_PAIRED = "difference of means over clusters, t corrected for skewness"
_OLMO = "Olmo-7B-instruct"
_PRINTED: Mapping[str, tuple[str, list[str]]] = {
    "": ("novels", ["Figure 3d", "Figure 3h"]),
    "book": ("novels", ["Figure 3d", "Figure 3e", "Figure 3h"]),
    "poem": ("poems", ["Figure 3b"]),
    "speech": ("speeches", ["Figure 3c"]),
}
"""The paper's numbers for each kind of its texts, and for any others."""


G = TypeVar("G", Scored, Spread)


def grouped(items: Iterable[G]) -> dict[str, list[G]]:
    """By texts and reference, in order of appearance."""
    groups: dict[str, list[G]] = {}
    for item in items:
        groups.setdefault(f"{item.texts}, against {item.reference}", []).append(item)
    return groups


def read_set(
    path: Path, n_words: int | None, label: Label, cluster: str | None = None
) -> list[Document]:
    """The texts of a file, processed by `cluster_set`."""
    return cluster_set(list(read_documents([str(path)])), n_words, label, cluster)


def cluster_set(
    found: Sequence[Document], n_words: int | None, label: Label, cluster: str | None = None
) -> list[Document]:
    """Texts without what a pair shares, up to the end of the sentence that passes `n_words`.

    Each has its `cluster`, by the named field or the usual ones, and by what the whole texts,
    including what is dropped, have in common.
    """
    fields = [d.fields for d in found]
    field = cluster_field(fields, cluster)
    clusters = find_clusters(
        [_key(d, field) for d in found],
        [sketch_of(d.text) for d in found],
        [str(values.get(label.field)) == label.human for values in fields],
        [text_digest(d.text) for d in found],
    )
    cut = []
    for document, of in zip(found, clusters.numbers, strict=True):
        text = document.text[int(document.meta.get("shared_prefix_chars") or 0) :]
        if n_words is not None and count_words(text) > n_words:
            text = first_sentences(text, load_pipeline(SENTENCES), n_words=n_words)
        added = {"model": document.meta.get("model") or "human", CLUSTER: clusters.names[of]}
        cut.append(replace(document, text=text, meta={**document.meta, **added}))
    return cut


def _key(document: Document, field: str | None) -> str:
    value = None if field is None else own_field(document, field)
    return f"id={document.id}" if value is None else f"{field}={value}"


def made_of(texts: Sequence[Document], label: Label, cluster: str | None) -> Texts:
    """The number of texts, people and clusters in a set from `read_set`."""
    field = cluster_field([d.fields for d in texts], cluster)
    return Texts(
        n_texts=len(texts),
        n_human=sum(str(d.meta.get(label.field)) == label.human for d in texts),
        n_clusters=len({d.meta[CLUSTER] for d in texts}),
        n_clusters_before=len({_key(d, field) for d in texts}),
    )


def release_plan(folder: Path, cluster: str | None = None) -> Plan:
    """Compare the authors' texts, from a copy of their repository. Raises `InputError`.

    Texts end with the sentence that passes 256 words (appendix B.2), and what a
    pair has in common is dropped, so that neither length nor prompt tells them apart. They are
    compared with machine texts of other prompts, unless other references are given, and documents
    that copy or quote a text are excluded for it (appendix A.3).
    """
    label = Label("label", "human")
    whole = read_release(folder)
    texts = {kind: cluster_set(some, N_WORDS, label, cluster) for kind, some in whole.items()}
    machine = machines(label, (cluster_set(some, None, label, cluster) for some in whole.values()))
    return Plan(texts, {"machine": machine}, label, exclude=CopyRule(), release=folder)


def machines(label: Label, sets: Iterable[Sequence[Document]]) -> list[Document]:
    """Machine texts, used as a reference."""
    some = (d for texts in sets for d in texts if str(d.meta.get(label.field)) != label.human)
    return [replace(d, id=f"machine-{d.id}") for d in some]


def run_analyses(
    plan: Plan, out: Path, *, report: Callable[[str], None] = lambda stage: None
) -> Analyses:
    """Build, score, compare and calibrate; every step resumes where it was interrupted."""
    for name, texts in plan.texts.items():
        if len({text_digest(d.text) for d in texts}) < 2:
            raise InputError(f"{name}: contains fewer than two different texts")
        names = {own_field(d, plan.by) or f"(no {plan.by})" for d in texts}
        if unknown := [g for pair in plan.aligned for g in pair if g not in names]:
            listed = ", ".join(sorted(names))
            raise InputError(f"{name}: no group {unknown[0]} by {plan.by}; the groups are {listed}")
    scored: list[Scored] = []
    detectors: list[Detector] = []
    how: Any = {"cluster": CLUSTER, "seed": plan.seed}
    for name, reference, match, file in _score_files(plan, out, report):
        report(f"{name} against {reference}, {match}: comparing")
        groups = _grouped(file, plan.by, plan)
        signature = groups.signatures[INDEX]
        of_index = indices(groups)
        people = next((g for g in of_index if g.group == plan.label.human), None)
        others = [] if people is None else [g for g in of_index if g is not people]
        compared = [contrast(people, g, signature, seed=plan.seed) for g in others if people]
        above = {pair.b: pair for pair in adjusted(compared)}
        rows = list(read_rows(file))
        known = [g for g in others if g.values]
        cleared = Counter(str(row[plan.label.field]) for row in rows if row.get("excluded"))
        scored.append(
            Scored(
                texts=name,
                reference=reference,
                match=match,
                path=file,
                n_copied=sum((row["in_reference"] or 0) >= COPIED_SHARE for row in rows),
                n_cleared=cleared,
                groups=groups,
                above=above,
                people=_grouped(file, plan.label.field, plan),
                models=compare_all(known, seed=plan.seed) if len(known) > 1 else None,
                by_level=tuple(_level_differences(rows, list(above), signature, plan)),
            )
        )
        # People against all machines, and against each group of these if there are several.
        sides: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
        for row in rows:
            sides[str(row[plan.label.field]) == plan.label.human].append(row)
        by = sorted({str(row[plan.by]) for row in sides[False] if row.get(plan.by) is not None})
        for group in [None, *(by if len(by) > 1 else [])]:
            some = [row for row in sides[False] if group is None or str(row.get(plan.by)) == group]
            fits = calibrate_rows([*sides[True], *some], plan.label, str(file), **how)
            detectors += [Detector(name, f"{reference}, {match}", group, fit) for fit in fits]
    if plan.model is not None:
        with SurprisalModel(plan.model) as model:
            for name, texts in plan.texts.items():
                file = out / "scores" / f"{name}-probability.jsonl"
                rated = run_measure(ProbabilityMeasure(model), texts, file, row_of=probability_row)
                for k, _ in enumerate(rated, 1):
                    report(f"{name}: log-probabilities, {k:,} of {len(texts):,} texts")
                for calibrated in calibrate_rows(read_rows(file), plan.label, str(file), **how):
                    detectors.append(Detector(name, "a language model", None, calibrated))
    return Analyses(
        {name: made_of(texts, plan.label, plan.cluster) for name, texts in plan.texts.items()},
        tuple(scored),
        tuple(filter(None, (_spread(entry, plan) for entry in scored))),
        tuple(detectors),
        plan.label.human,
        plan.release is not None,
    )


def _score_files(
    plan: Plan, out: Path, report: Callable[[str], None]
) -> Iterator[tuple[str, str, Match, Path]]:
    """A file of scores for each set, reference and kind of match: (set, reference, match, file)."""
    vectors: WordVectors | None = None
    for reference_name, source in plan.references.items():
        if isinstance(source, Path):
            path = source
        else:
            path = out / "references" / reference_name
            report(f"building the reference {reference_name}")
            build_reference(source, path, settings=_PUBLISHED, n_jobs=plan.n_threads)
        reference = Reference.open(path)
        near: PaperSearch | None = None
        if "near" in plan.matches:
            report("loading word vectors")
            vectors = vectors or open_vectors()
            near = PaperSearch(reference, vectors, load_stop_words())
        for name, texts in plan.texts.items():
            # A machine's text may be in the reference; those of a text's cluster are excluded for
            # it. Clusters are known for the texts; the reference's documents have their field.
            same = None
            field = cluster_field([d.fields for d in texts], plan.cluster)
            documents = reference.documents(reference.numbers())
            if field and any(own_field(document, field) is not None for document in documents):
                keyed = ((own_field(document, field), document) for document in texts)
                joined = {k: str(d.meta[CLUSTER]) for k, d in keyed if k is not None}
                same = ExcludeSame.of(reference, field, joined)
            for match in plan.matches:
                measure = OriginalityMeasure(
                    reference,
                    levels=LEVELS,
                    exclude=plan.exclude,
                    exclude_same=same,
                    near=near if match == "near" else None,
                    n_sources=0,
                    spread=N_DOCUMENTS,
                    n_threads=plan.n_threads,
                )
                file = out / "scores" / f"{name}-{reference_name}-{match}.jsonl"
                what = f"{name} against {reference_name}, {match}"
                for k, _ in enumerate(run_measure(measure, texts, file), 1):
                    report(f"{what}: {k:,} of {len(texts):,} texts")
                yield name, reference_name, match, file
    if plan.release is not None:
        for name, match, rows in read_outputs(plan.release, plan.texts, LEVELS):
            file = out / "scores" / f"{name}-theirs-{match}.jsonl"
            write_rows(file, rows, are_results=True)
            yield name, "their search", match, file


def _grouped(path: Path, by: str, plan: Plan) -> Comparison:
    measured = MeasuredTexts(by, CLUSTER, are_rows=True)
    for row, where in located_rows(path):
        measured.add(row, where)
    return compare_groups(measured, seed=plan.seed)


def indices(groups: Comparison) -> list[ComparedGroup]:
    """The groups, in their Creativity Index."""
    return [group for group in groups.groups if group.number == INDEX]


def _level_differences(
    rows: Sequence[dict[str, Any]], machines: Sequence[str], signature: str, plan: Plan
) -> Iterator[Contrast]:
    """Over the clusters that both sides have."""
    human = plan.label.human
    sides = {str(row[plan.label.field]) for row in rows} - {human}
    pairs = [(plan.label.field, human, side) for side in sorted(sides)]
    pairs += [(plan.by, human, group) for group in machines if group not in sides]
    pairs += [(plan.by, before, after) for before, after in plan.aligned]
    for field, a, b in pairs:
        for level in LEVELS:
            cells: dict[str, dict[str, list[float]]] = {a: {}, b: {}}
            for row in rows:
                value, name = row["uniqueness"][str(level)], str(row.get(field))
                if name in cells and value is not None:
                    cells[name].setdefault(row[CLUSTER], []).append(value)
            first, second = cell_means(cells[a]), cell_means(cells[b])
            shared = sorted(first.keys() & second.keys())
            n = len(shared)
            gap, means = Estimate(None, None, None, 0, _PAIRED, signature, 0), [None, None]
            if n:
                table = np.array([[first[name], second[name]] for name in shared], np.float64)
                apart, means = table[:, 0] - table[:, 1], table.mean(axis=0).tolist()
                gap = Estimate(float(apart.mean()), *mean_interval(apart), n, _PAIRED, signature, n)
            about = {"level": level, "means": means}
            yield Contrast(f"uniqueness_{level}", a, b, gap, details=about)


def _spread(scored: Scored, plan: Plan) -> Spread | None:
    """People and machines over the number of documents; None if a side has no texts.

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
        curve = left + left[-1:] * (N_DOCUMENTS + 1 - len(left))
        curves[side].setdefault(row[CLUSTER], []).append(curve)
        halves[side].append(spread["n_to_half"])
    if not (curves["human"] and curves["machine"]):
        return None
    means = {
        side: {name: _mean_curve(by_cluster[name]) for name in sorted(by_cluster)}
        for side, by_cluster in curves.items()
    }
    last = {
        side: {name: [curve[-1] for curve in some] for name, some in by_cluster.items()}
        for side, by_cluster in curves.items()
    }
    to_half: dict[str, tuple[float | None, int, int]] = {}
    for side, values in halves.items():
        known = [value for value in values if value is not None]
        mean = math.fsum(known) / len(known) if known else None
        to_half[side] = mean, len(known), len(values)
    return Spread(
        texts=scored.texts,
        reference=scored.reference,
        match=scored.match,
        n={side: len(rows) for side, rows in means.items()},
        curves={side: _mean_curve(list(rows.values())) for side, rows in means.items()},
        difference=compare_clusters(
            f"uniqueness_{LEVELS.low}", last, seed=plan.seed, signature=signature
        ),
        to_half=to_half,
        level=LEVELS.low,
        signature=signature,
    )


def _mean_curve(curves: Sequence[Sequence[float]]) -> list[float]:
    return [math.fsum(column) / len(column) for column in zip(*curves, strict=True)]


_Mark = Callable[[str], str]
_CLAIMED = {
    "verbatim": "above, % verbatim", "near": "above, % near", "gap_11_verbatim": "L 11, verbatim",
    "gap_11_near": "L 11, near", "human_uniqueness_50": "left, people",
    "machine_uniqueness_50": "left, machines", "human_to_half": "to half, people",
    "machine_to_half": "to half, machines",
}  # fmt: skip
"""The columns compared with the paper: the printed quantity, and a title."""


def analyses_tables(found: Analyses) -> list[Block]:
    """Index by group, spread over documents, and detection; then all signatures."""
    numbers: dict[str, int] = {}

    def mark(signature: str) -> str:
        """A short mark for a signature, which is printed in full once at the end."""
        return f"[{numbers.setdefault(signature, len(numbers) + 1)}]"

    claims = found.claims
    columns_by = [name for name in _CLAIMED if any(claim.column == name for claim in claims)]
    columns = [Column(_CLAIMED[name], ".1f", name=name) for name in columns_by]
    cells = {(claim.by, claim.column): claim for claim in claims}
    sources = dict.fromkeys(claim.by for claim in claims)
    rows: list[list[Cell]] = [[s, *(cells.get((s, name)) for name in columns_by)] for s in sources]
    listed = []
    for name, texts in found.texts.items():
        n_joined = texts.n_clusters_before - texts.n_clusters
        more = f"; {n_joined:,} more before near-duplicates were joined" if n_joined else ""
        by = f"{texts.n_texts:,} texts, {texts.n_human:,} by people"
        listed.append(f"{name}: {by}, in {texts.n_clusters:,} clusters{more}")
    parts: list[Block] = [
        "TEXTS: those of one cluster (a prompt, and copies of each other) count as one in every "
        "mean, interval and test, and are left out of the reference together.",
        *listed,
        "",
        "CREATIVITY INDEX, and people above each group: (people - group) / group, %.",
        *_index_parts(found.scored, mark),
        "",
        "BY LEVEL: L-uniqueness of A less that of B, in percentage points; * where the interval by "
        "clusters does not include 0.",
        *_level_parts(found.scored),
        "",
        "DOCUMENTS: uniqueness when only the best may be used.",
        *_spread_parts(found.spreads, mark),
        "",
        "BESIDE THE PAPER (printed; against RedPajama): people's index above models', by "
        "verbatim matches and with near ones; people's 11-uniqueness above OLMo's; what is left of "
        "5-uniqueness after 50 documents, and how many it takes to push it below a half, with near "
        "ones.",
        "",
        Sheet("paper", [Column("texts, reference"), *columns], rows),
        "",
        *agreement_lines(claims),
        "",
        "HUMAN OR MACHINE: the share of pairs in which the human text ranks as more human. Where "
        "its interval includes 0.5, the score cannot tell them apart.",
        *_detection_parts(found, mark),
        "",
    ]
    return [*parts, *(f"[{k}] {signature}" for signature, k in numbers.items())]


def _index_parts(scored: Sequence[Scored], mark: _Mark) -> Iterator[Block]:
    above = Column("people above, %", "+.1f", with_interval=True, name="people_above_percent")
    first, last = [Column("group"), Column("match"), Column("n", "d")], Column("p, Holm", ".2g")
    index, signature = Column("index", ".3f", with_interval=True), Column("", name="signature")
    columns = [*first, index, above, last, signature]
    for name, some in grouped(scored).items():
        rows: list[list[Cell]] = []
        pairs: list[list[Cell]] = []
        for entry in some:
            for group in indices(entry.groups):
                beside = entry.above.get(group.group)
                percent: Cell = "" if beside is None else beside.details["percent"]
                p: Cell = "" if beside is None else beside.p_adjusted
                start: list[Cell] = [group.group, entry.match, group.mean.n, group.mean]
                rows.append([*start, percent, p, mark(entry.groups.signatures[INDEX])])
            for pair in entry.people.contrasts:
                estimate = pair.details["percent"]
                start = [f"{pair.a} / {pair.b}", entry.match, estimate.n]
                pairs.append([*start, estimate, pair.p_adjusted])
        yield from ("", name, Sheet("index", columns, rows, about=("texts", name)))
        if pairs:
            yield from ("", Sheet("people", [*first, above, last], pairs, about=("texts", name)))
        for entry in some:
            for line in omnibus_lines(entry.models):
                yield f"machines, {entry.match}: {line}"
        if n_copied := max(e.n_copied for e in some):
            yield f"{n_copied:,} of these texts occur in the reference with half of their words"
        if cleared := some[0].n_cleared:
            counts = ", ".join(f"{n:,} {label}" for label, n in sorted(cleared.items()))
            yield (
                f"for {sum(cleared.values()):,} texts ({counts}), documents that copy or quote "
                f"them were excluded"
            )


def _level_parts(scored: Sequence[Scored]) -> Iterator[Block]:
    for name, some in grouped(scored).items():
        levels = list(dict.fromkeys(gap.details["level"] for e in some for gap in e.by_level))
        columns = [Column("A : B", name="pair"), Column("match")]
        columns += [Column(str(level), name=f"gap_{level}") for level in levels]
        rows: list[list[Cell]] = []
        for entry in some:
            pairs: dict[tuple[str, str], list[Contrast]] = {}
            for pair in entry.by_level:
                pairs.setdefault((pair.a, pair.b), []).append(pair)
            rows += [[f"{a} : {b}", entry.match, *map(_gap, its)] for (a, b), its in pairs.items()]
        if rows:
            yield from ("", name, Sheet("levels", columns, rows, about=("texts", name)))


def _gap(pair: Contrast) -> Cell:
    value, low, high = pair.difference.ends().values()
    if value is None:
        return None
    is_sure = low is not None and high is not None and low * high > 0
    return f"{number(100 * value, '+.1f')}{'*' if is_sure else ''}"


def _spread_parts(spreads: Sequence[Spread], mark: _Mark) -> Iterator[Block]:
    columns = [
        Column("match"),
        Column("people", ".1%", of=lambda s: s.curves["human"][-1]),
        Column("machines", ".1%", of=lambda s: s.curves["machine"][-1]),
        Column("difference, %", "+.1f", with_interval=True, of="difference.details.percent"),
        Column("p", ".2g", of="difference.p"),
        Column("half: people", of=lambda s: _half(*s.to_half["human"])),
        Column("machines", name="half_machines", of=lambda s: _half(*s.to_half["machine"])),
        Column("", name="signature", of=lambda s: mark(s.signature)),
    ]
    for name, some in grouped(spreads).items():
        n, n_documents = some[0].n, len(some[0].curves["human"]) - 1
        clusters = f"{n['human']} of people's texts, {n['machine']} of machines'"
        line = f"{name}: {n_documents} documents, clusters: {clusters}"
        yield from ("", line, Sheet.of("documents", some, columns, about=("texts", name)))


def _half(mean: float | None, n: int, n_all: int) -> str:
    return f"none of {n_all}" if mean is None else f"{mean:.1f} (for {n} of {n_all})"


def _detection_parts(analyses: Analyses, mark: _Mark) -> Iterator[Block]:
    columns = [
        Column("against"),
        Column("machines", of=lambda d: d.machines or "all"),
        Column("score", of=lambda d: NAMES[d.calibration.score]),
        Column("outcome", of=lambda d: SHORT[d.calibration.outcome]),
        Column("AUROC", ".3f", with_interval=True, of="calibration.auroc"),
        Column("missing", "d", of="calibration.n_missing"),
        Column("ECE", ".3f", of="calibration.calibration_error"),
        Column("", name="signature", of=lambda d: mark(d.calibration.signature)),
    ]
    for texts in dict.fromkeys(d.texts for d in analyses.detectors):
        some = [d for d in analyses.detectors if d.texts == texts]
        first = some[0].calibration
        by = f"{first.n_human} by people, {first.n_machine} by machines"
        line = f"{texts}: {by}, in {first.n_clusters} clusters"
        yield from ("", line, Sheet.of("detection", some, columns, about=("texts", texts)))
        yield from calibration_remarks([d.calibration for d in some if d.machines is None])


def analyses_json(found: Analyses) -> dict[str, Any]:
    """As plain values for JSON output."""
    return {
        "paper": {
            name: float(printed)
            for (table, _, name), printed in load_printed("creativity_index").items()
            if table in ("Figure 3d", "Figure 3h")
        },
        "texts": {name: asdict(texts) for name, texts in found.texts.items()},
        "index": [
            {
                **picked(entry, "texts", "reference", "match", "n_copied", "n_cleared"),
                "by_group": entry.groups.to_json(),
                "people_above_percent": {
                    name: above.details["percent"].ends()
                    | {"p": above.p, "p_adjusted": above.p_adjusted}
                    for name, above in entry.above.items()
                },
                "people": entry.people.to_json(),
                "models": entry.models and asdict(entry.models),
                "by_level": [level.to_json() for level in entry.by_level],
            }
            for entry in found.scored
        ],
        "spread": [
            {
                **picked(spread, "texts", "reference", "match", "n"),
                "uniqueness": spread.curves,
                "difference_percent": spread.difference.details["percent"].value,
                "p": spread.difference.p,
                "n_to_half": {
                    side: {"mean": mean, "n": n, "of": n_all}
                    for side, (mean, n, n_all) in spread.to_half.items()
                },
                "signature": spread.signature,
            }
            for spread in found.spreads
        ],
        "detection": [
            picked(detector, "texts", "against", "machines") | calibration_row(detector.calibration)
            for detector in found.detectors
        ],
        "claims": [claim.to_json() for claim in found.claims],
    }


def write_figures(found: Analyses, folder: Path) -> list[Path]:
    """Index and L-uniqueness for each comparison, the spread, and the ROC curves, as SVG."""
    written = []
    for entry in found.scored:
        path = folder / f"{entry.texts}-{entry.reference}-{entry.match}.svg"
        save_comparison(entry.groups, path)
        written.append(path)
    if found.spreads:
        written.append(folder / "documents.svg")
        # Uniqueness against the number of documents, a panel per set and reference.
        panels = list(grouped(found.spreads).values())
        n_columns = len({s.reference for s in found.spreads})
        n_rows = -(-len(panels) // n_columns)
        # By reference, with the sets of texts below each other.
        panels.sort(key=lambda panel: panel[0].texts)
        size = (4.2 * n_columns, 0.4 + 3.2 * n_rows)
        with figure_of(written[-1], n_rows, n_columns, figsize=size, sharey=True) as (figure, grid):
            for axes in grid[len(panels) :]:
                axes.set_axis_off()
            for axes, panel in zip(grid, panels, strict=False):
                for spread in panel:
                    for side, colour in (("human", COLOURS[0]), ("machine", COLOURS[1])):
                        axes.plot(
                            [100 * value for value in spread.curves[side]],
                            color=colour,
                            linestyle="-" if spread.match == "verbatim" else "--",
                            linewidth=1.5,
                            label=f"{side}, {spread.match}, n {spread.n[side]}",
                        )
                title = f"{panel[0].texts}\nagainst {panel[0].reference}"
                axes.set_title(title, loc="left", fontsize=9)
                axes.set_xlabel("best documents that may be used")
                axes.grid(axis="y", color=LINE, linewidth=0.8)
                axes.legend(frameon=False, fontsize=7)
            for axes in grid[::n_columns]:
                axes.set_ylabel("uniqueness, % of words")
            lines = dict.fromkeys(s.signature for s in found.spreads)
            figure.supxlabel("\n".join(lines), fontsize=4, color=SOFT, x=0.01, ha="left")
    for texts in dict.fromkeys(d.texts for d in found.detectors):
        written.append(folder / f"{texts}-roc.svg")
        shown = [d for d in found.detectors if d.texts == texts and d.machines is None]
        save_rocs([d.calibration for d in shown], written[-1])
    return written
